// SPDX-License-Identifier: Apache-2.0
#include "train_ppo_time.h"

static double at_most(double a, double b) {
    return a < b ? a : b;
}

void ppo_parts(const struct grt_ppo_times *times, double seconds,
               struct ppo_part parts[PPO_PARTS]) {
    struct ppo_part *host = &parts[GRT_PPO_PHASE_COUNT], *whole = host + 1;
    double sum = 0, busy = 0;
    for (int i = 0; i < GRT_PPO_PHASE_COUNT; i++) {
        double took = times->seconds[i];
        sum += took;
        busy += times->busy[i];
        parts[i] = (struct ppo_part){.name = grt_ppo_phase_text((enum grt_ppo_phase)i),
                                     .seconds = took,
                                     .busy = took > 0 ? at_most(times->busy[i] / took, 1) : 0};
    }
    // Two clocks may disagree by a little.
    *whole = (struct ppo_part){.name = "whole", .seconds = seconds > sum ? seconds : sum};
    whole->busy = whole->seconds > 0 ? at_most(busy / whole->seconds, 1) : 0;
    *host = (struct ppo_part){.name = "host", .seconds = whole->seconds - sum};
    for (int i = 0; i < PPO_PARTS; i++) {
        parts[i].share = whole->seconds > 0 ? parts[i].seconds / whole->seconds : 0;
    }
}

struct grt_ppo_times ppo_times(const struct grt_ppo_report *r, double environment) {
    double alone = at_most(environment, r->acting);
    struct grt_ppo_times times = {.seconds = {[GRT_PPO_PHASE_ENVIRONMENT] = alone,
                                              [GRT_PPO_PHASE_ACTIONS] = r->acting - alone,
                                              [GRT_PPO_PHASE_ADVANTAGES] = r->valuing,
                                              [GRT_PPO_PHASE_UPDATE] = r->update}};
    for (int i = 0; i < GRT_PPO_PHASE_COUNT; i++) {
        times.busy[i] = times.seconds[i];
    }
    return times;
}
