// SPDX-License-Identifier: Apache-2.0
// What times say about settings. Nothing is measured here, so that a test can give the numbers.
#include "tune.h"

void tune_time_add(struct tune_time *sum, const struct tune_time *more) {
    sum->median += more->median;
    sum->fastest += more->fastest;
    sum->spread = sum->spread > more->spread ? sum->spread : more->spread;
}

bool tune_time_leads(const struct tune_time *time, const struct tune_time *best) {
    return time->median > 0 && (best->median <= 0 || time->fastest < best->fastest);
}

bool tune_duel_slower(const struct tune_answer *answer) {
    double spread = answer->times[0].spread + answer->times[1].spread;
    return answer->times[1].median > answer->times[0].median * (1 + spread);
}

bool tune_verdict_add(struct tune_verdict *verdict, const struct tune_answer *answer) {
    tune_time_add(&verdict->before, &answer->times[0]);
    tune_time_add(&verdict->best, &answer->times[1]);
    verdict->any = verdict->any || answer->wins;
    return verdict->shapes <= 1 || !tune_duel_slower(answer);
}

bool tune_verdict_wins(const struct tune_verdict *verdict) {
    return verdict->any && verdict->best.median < verdict->before.median;
}
