// SPDX-License-Identifier: Apache-2.0
// An iteration with the host in every step: what ppo_graphs.c records as one graph is one for each
// of its parts here, and what they give passes through the host.
//
//     begin | observe, act, step of step 0 | ... of step 1 | ... | end | worth   then the epochs
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "gpurt/device.h"
#include "ppo_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_words.k"

enum part { BEGIN, OBSERVE, ACT, STEP, END, WORTH };

static uint32_t place(const struct grt_ppo *ppo, enum part part, uint32_t step) {
    uint32_t last = 1 + 3 * ppo->desc.horizon;
    return part == BEGIN ? 0 : part >= END ? last + part - END : 1 + 3 * step + part - OBSERVE;
}

static struct grt_graph *make_part(struct grt_ppo *ppo, enum part part, uint32_t step) {
    struct ppo_actors *a = &ppo->learning;
    struct grt_graph *graph = grt_graph_create(ppo->dev, "by host");
    if (!graph) {
        return NULL;
    }
    grt_graph_phase(graph, "part");
    switch (part) {
    case BEGIN:
        grt_ppo_record_begin(ppo, graph);
        break;
    case OBSERVE:
        grt_ppo_record_observe(ppo, a, graph, step);
        break;
    case ACT:
        grt_ppo_record_actions(ppo, a, graph, step, PPO_DRAWN);
        break;
    case STEP:
        grt_ppo_record_world(ppo, a, graph, step);
        break;
    case END:
        grt_ppo_record_end(ppo, graph);
        break;
    case WORTH:
        grt_ppo_record_worth(ppo, graph);
        break;
    }
    if (!grt_graph_bake(graph)) {
        grt_graph_destroy(&graph);
    }
    return graph;
}

static bool make_parts(struct grt_ppo *ppo) {
    if (ppo->host) {
        return true;
    }
    uint32_t count = place(ppo, WORTH, 0) + 1;
    ppo->host = calloc(count, sizeof(struct grt_graph *));
    if (!ppo->host) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for PPO");
    }
    ppo->host_count = count;
    bool ok = true;
    for (int part = BEGIN; ok && part <= WORTH; part++) {
        uint32_t steps = part >= OBSERVE && part <= STEP ? ppo->desc.horizon : 1;
        for (uint32_t t = 0; ok && t < steps; t++) {
            uint32_t at = place(ppo, (enum part)part, t);
            ppo->host[at] = make_part(ppo, (enum part)part, t);
            ok = ppo->host[at] != NULL;
        }
    }
    return ok;
}

static bool run_part(struct grt_ppo *ppo, enum part part, uint32_t step) {
    return grt_graph_run(ppo->host[place(ppo, part, step)]) && grt_dev_wait(ppo->dev);
}

// ---- what crosses ----

static bool to_host(struct grt_range range, void *scratch) {
    return grt_buf_read(range.buf, range.offset, scratch, range.size);
}

static bool and_back(struct grt_range range, void *scratch) {
    return to_host(range, scratch) && grt_buf_write(range.buf, range.offset, scratch, range.size);
}

static struct grt_range of_step(const struct grt_tensor *t, uint64_t stride, uint64_t numbers,
                                uint32_t step) {
    return (struct grt_range){t->range.buf, t->range.offset + step * stride * 4, numbers * 4};
}

static bool cross_observations(struct grt_ppo *ppo, uint32_t step, void *scratch) {
    const struct ppo_actors *a = &ppo->learning;
    uint64_t copies = grt_worlds_copies(a->worlds);
    return and_back(of_step(a->obs, a->obs_stride, a->rows * a->obs_words, step), scratch) &&
           (!a->whole ||
            and_back(of_step(a->whole, a->whole_stride, copies * a->whole_words, step), scratch)) &&
           (ppo->sizes->choices == 0 || and_back(grt_ppo_part(a, PPO_MASK, step), scratch));
}

static bool step_once(struct grt_ppo *ppo, uint32_t step, void *scratch,
                      struct grt_ppo_times *times) {
    const struct ppo_actors *a = &ppo->learning;
    double begun = grt_seconds();
    bool ok = run_part(ppo, OBSERVE, step) && cross_observations(ppo, step, scratch) &&
              run_part(ppo, ACT, step) && to_host(grt_ppo_part(a, PPO_LOGP, step), scratch) &&
              and_back(grt_ppo_actions(ppo, a, step), scratch);
    double chosen = grt_seconds();
    ok = ok && run_part(ppo, STEP, step) && to_host(grt_ppo_part(a, PPO_REWARD, step), scratch) &&
         to_host(grt_ppo_part(a, PPO_END, step), scratch);
    times->seconds[GRT_PPO_PHASE_ACTIONS] += chosen - begun;
    times->seconds[GRT_PPO_PHASE_ENVIRONMENT] += grt_seconds() - chosen;
    return ok;
}

// The largest of what crosses.
static uint64_t scratch_bytes(const struct grt_ppo *ppo) {
    const struct ppo_actors *a = &ppo->learning;
    uint64_t most = a->obs_stride > a->whole_stride ? a->obs_stride : a->whole_stride;
    most = most > a->acts_stride ? most : a->acts_stride;
    return 4 * (most > a->stride ? most : a->stride);
}

// ---- the iteration ----

static bool collect(struct grt_ppo *ppo, void *scratch, struct grt_ppo_report *report,
                    struct grt_ppo_times *times) {
    bool ok = grt_graph_run(ppo->keep) && run_part(ppo, BEGIN, 0);
    for (uint32_t t = 0; ok && t < ppo->desc.horizon && !report->stopped; t++) {
        report->stopped = ppo->desc.stop && ppo->desc.stop();
        ok = report->stopped || step_once(ppo, t, scratch, times);
    }
    if (!ok || report->stopped) {
        return ok;
    }
    ok = run_part(ppo, END, 0) && cross_observations(ppo, ppo->desc.horizon, scratch);
    double begun = grt_seconds();
    ok = ok && run_part(ppo, WORTH, 0);
    times->seconds[GRT_PPO_PHASE_ADVANTAGES] = grt_seconds() - begun;
    return ok;
}

// After the clock on the wall was read: asking takes time.
static void add_busy(struct grt_ppo *ppo, const struct grt_ppo_report *report,
                     struct grt_ppo_times *times) {
    static const enum grt_ppo_phase phases[] = {
        [BEGIN] = GRT_PPO_PHASE_ACTIONS, [OBSERVE] = GRT_PPO_PHASE_ACTIONS,
        [ACT] = GRT_PPO_PHASE_ACTIONS,   [STEP] = GRT_PPO_PHASE_ENVIRONMENT,
        [END] = GRT_PPO_PHASE_ACTIONS,   [WORTH] = GRT_PPO_PHASE_ADVANTAGES};
    for (int part = BEGIN; part <= WORTH; part++) {
        uint32_t steps = part >= OBSERVE && part <= STEP ? ppo->desc.horizon : 1;
        for (uint32_t t = 0; t < steps; t++) {
            grt_ppo_add_times(ppo->host[place(ppo, (enum part)part, t)],
                              (double *const[]){&times->busy[phases[part]]}, 1);
        }
    }
    times->busy[GRT_PPO_PHASE_UPDATE] = report->update;
}

bool grt_ppo_iterate_by_host(struct grt_ppo *ppo, struct grt_ppo_report *report,
                             struct grt_ppo_times *times) {
    if (!ppo || !report || !times) {
        return grt_fail(GRT_INVALID, "grt_ppo_iterate_by_host: no PPO, report or times");
    }
    *report = (struct grt_ppo_report){.iteration = ppo->done + 1};
    *times = (struct grt_ppo_times){0};
    void *scratch = malloc(scratch_bytes(ppo));
    if (!scratch) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for observations");
    }
    double begun = grt_seconds();
    bool ok = make_parts(ppo) && collect(ppo, scratch, report, times);
    double collected = grt_seconds();
    ok = ok && grt_ppo_update(ppo, report) && grt_dev_wait(ppo->dev);
    times->seconds[GRT_PPO_PHASE_UPDATE] = grt_seconds() - collected;
    ok = ok && grt_ppo_conclude(ppo, begun, report);
    free(scratch);
    if (ok && !report->stopped) {
        add_busy(ppo, report, times);
        report->acting =
            times->busy[GRT_PPO_PHASE_ENVIRONMENT] + times->busy[GRT_PPO_PHASE_ACTIONS];
        report->valuing = times->busy[GRT_PPO_PHASE_ADVANTAGES];
    }
    return ok;
}
