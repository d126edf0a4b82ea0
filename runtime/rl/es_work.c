// SPDX-License-Identifier: Apache-2.0
#include "es_work.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"

#define PIECE_SECONDS 1.0

struct grt_graph *es_work_graph(struct es_work *work, double seconds) {
    if (work->count > 0 && (seconds == 0 || work->seconds + seconds <= PIECE_SECONDS)) {
        work->seconds += seconds;
        return work->pieces[work->count - 1];
    }
    struct grt_graph **more = realloc(work->pieces, (work->count + 1) * sizeof(struct grt_graph *));
    if (!more) {
        grt_fail(GRT_NO_MEMORY, "no host memory for %s", work->label);
        return NULL;
    }
    work->pieces = more;
    more[work->count] = grt_graph_create(work->dev, work->label);
    if (!more[work->count]) {
        return NULL;
    }
    grt_graph_phase(more[work->count], work->label);  // for the device's clock
    work->seconds = seconds;
    return more[work->count++];
}

bool es_work_bake(struct es_work *work) {
    for (uint32_t i = 0; i < work->count; i++) {
        if (!grt_graph_bake(work->pieces[i])) {
            return false;
        }
    }
    return true;
}

bool es_work_run(struct es_work *work, bool (*stop)(void), struct es_work_time *time) {
    struct grt_phase_time times[1];
    *time = (struct es_work_time){0};
    double start = grt_seconds();
    for (uint32_t i = 0; i < work->count && !time->stopped; i++) {
        if (i > 0 && stop && stop()) {
            time->stopped = true;
        } else if (!grt_graph_finish(work->pieces[i])) {
            return false;
        } else {
            time->busy += grt_graph_times(work->pieces[i], times, 1) ? times[0].seconds : 0;
        }
    }
    time->seconds = grt_seconds() - start;
    return true;
}

void es_work_destroy(struct es_work *work) {
    for (uint32_t i = 0; i < work->count; i++) {
        grt_graph_destroy(&work->pieces[i]);
    }
    free(work->pieces);
    work->pieces = NULL;
    work->count = 0;
}
