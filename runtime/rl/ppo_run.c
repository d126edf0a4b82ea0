// SPDX-License-Identifier: Apache-2.0
// Running PPO: iterations, evaluations, and the numbers of them.
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "gpurt/device.h"
#include "ppo_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_words.k"

static bool read(const struct grt_tensor *t, void *data) {
    return grt_buf_read(t->range.buf, t->range.offset, data, grt_tensor_bytes(t));
}

static double phase_seconds(struct grt_graph *graph) {
    struct grt_phase_time times[GRT_MAX_PHASES];
    uint32_t count = grt_graph_times(graph, times, GRT_MAX_PHASES);
    double seconds = 0;
    for (uint32_t i = 0; i < count && i < GRT_MAX_PHASES; i++) {
        seconds += times[i].seconds;
    }
    return seconds;
}

// Means over the episodes that ended.
static bool report_totals(const struct ppo_actors *a, struct grt_ppo_report *r) {
    uint32_t terms = grt_worlds_sizes(a->worlds)->terms;
    float *totals = malloc(grt_tensor_bytes(a->totals));
    bool ok = totals ? read(a->totals, totals) : grt_fail(GRT_NO_MEMORY, "no host memory");
    if (ok) {
        double each = totals[0] > 0 ? 1.0 / (double)totals[0] : 0.0;
        r->episodes = (double)totals[0];
        r->mean_return = (double)totals[1] * each;
        r->length = (double)totals[2] * each;
        for (uint32_t i = 0; i < terms && i < GRT_PPO_TERMS; i++) {
            r->terms[i] = (double)totals[GRT_WORLD_TOTALS + i] * each;
        }
    }
    free(totals);
    return ok;
}

// Sums of the losses so far, over all workgroups.
static bool read_stats(const struct grt_ppo *ppo, double sums[PPO_STATS]) {
    float stats[PPO_GROUPS * (PPO_STATS + 1)];
    if (!read(ppo->stats, stats)) {
        return false;
    }
    for (uint32_t k = 0; k < PPO_STATS; k++) {
        sums[k] = 0;
        for (uint32_t g = 0; g < PPO_GROUPS; g++) {
            sums[k] += (double)stats[g * PPO_STATS + k];
        }
    }
    return true;
}

static bool report_losses(const struct grt_ppo *ppo, struct grt_ppo_report *r) {
    double sums[PPO_STATS];
    float norms[PPO_NORMS];
    struct grt_learn_state state;
    if (!read_stats(ppo, sums) || !read(ppo->norms, norms) || !read(ppo->state, &state)) {
        return false;
    }
    double each = sums[PPO_STAT_ROWS] > 0 ? 1.0 / sums[PPO_STAT_ROWS] : 0.0;
    r->rows = (double)norms[PPO_COUNT];
    r->explained = (double)norms[PPO_EXPLAINED];
    r->policy_loss = sums[PPO_STAT_POLICY] * each;
    r->value_loss = sums[PPO_STAT_VALUE] * each;
    r->entropy = sums[PPO_STAT_ENTROPY] * each;
    r->kl = sums[PPO_STAT_KL] * each;
    r->clip_rate = sums[PPO_STAT_CLIPPED] * each;
    r->grad_norm = (double)state.grad_norm;
    r->lr = (double)state.lr;
    return state.halted == 0 ||
           grt_fail(GRT_INVALID, "ppo: iteration %u: a loss or gradient is not finite; try a lower learning rate",
                    r->iteration);
}

// Whether the policy has moved so far that the iteration's epochs end.
static bool moved(const struct grt_ppo *ppo) {
    double sums[PPO_STATS];
    return ppo->desc.target_kl > 0 && read_stats(ppo, sums) && sums[PPO_STAT_ROWS] > 0 &&
           sums[PPO_STAT_KL] / sums[PPO_STAT_ROWS] > ppo->desc.target_kl;
}

bool grt_ppo_iterate(struct grt_ppo *ppo, struct grt_ppo_report *report) {
    if (!ppo || !report) {
        return grt_fail(GRT_INVALID, "grt_ppo_iterate: no %s", ppo ? "report" : "PPO");
    }
    *report = (struct grt_ppo_report){.iteration = ppo->done + 1};
    double start = grt_seconds();
    bool ok = grt_graph_run(ppo->collect);
    while (ok && report->epochs < ppo->desc.epochs && !moved(ppo)) {
        ok = grt_graph_run(ppo->epochs[report->epochs]);
        report->epochs += ok;
    }
    ok = ok && report_totals(&ppo->learning, report) && report_losses(ppo, report);
    report->seconds = grt_seconds() - start;
    report->collect = ok ? phase_seconds(ppo->collect) : 0;
    for (uint32_t i = 0; ok && i < report->epochs; i++) {
        report->update += phase_seconds(ppo->epochs[i]);
    }
    ppo->done += ok;
    return ok;
}

// ---- evaluation ----

static bool make_evaluation(struct grt_ppo *ppo, struct grt_worlds *worlds) {
    struct ppo_actors *a = &ppo->evaluating;
    grt_graph_destroy(&ppo->evaluate);
    grt_plan_destroy(&a->plan);
    *a = (struct ppo_actors){.worlds = worlds};
    struct grt_plan *plan = grt_plan_create(ppo->dev);
    if (!plan || !grt_ppo_declare_actors(ppo, a, plan, 1)) {
        grt_plan_destroy(&plan);
        return false;
    }
    if (!grt_plan_alloc(plan)) {
        return false;
    }
    ppo->evaluate = grt_graph_create(ppo->dev, "evaluate");
    if (ppo->evaluate) {
        grt_ppo_record_step(ppo, a, ppo->evaluate, 0, true);
    }
    return ppo->evaluate && grt_graph_bake(ppo->evaluate);
}

bool grt_ppo_evaluate(struct grt_ppo *ppo, struct grt_worlds *worlds, uint32_t seed,
                      struct grt_ppo_report *report) {
    if (!ppo || !worlds || !report) {
        return grt_fail(GRT_INVALID, "grt_ppo_evaluate: no PPO, worlds or report");
    }
    struct ppo_actors *a = &ppo->evaluating;
    double start = grt_seconds();
    if (a->worlds != worlds && !make_evaluation(ppo, worlds)) {
        a->worlds = NULL;
        return false;
    }
    *report = (struct grt_ppo_report){.iteration = ppo->done};
    const struct grt_rng_state control = {.seed = {seed, 0}};
    struct grt_graph *begin = grt_graph_create(ppo->dev, "begin evaluation");
    bool ok = begin && grt_buf_write(a->control->range.buf, a->control->range.offset, &control,
                                     sizeof control);
    if (ok) {
        grt_op_worlds_reset(begin, worlds, a->control->range);
        grt_op_worlds_totals(begin, worlds, a->totals->range);
        ok = grt_graph_finish(begin);
    }
    grt_graph_destroy(&begin);
    uint32_t length = grt_worlds_length(worlds);
    for (uint32_t t = 0; ok && t < length; t++) {
        ok = grt_graph_run(ppo->evaluate);
    }
    struct grt_graph *end = ok ? grt_graph_create(ppo->dev, "end evaluation") : NULL;
    if (end) {
        grt_op_worlds_totals(end, worlds, a->totals->range);
    }
    ok = end && grt_graph_finish(end) && report_totals(a, report);
    grt_graph_destroy(&end);
    report->rows = report->episodes * report->length * grt_worlds_sizes(worlds)->agents;
    report->seconds = grt_seconds() - start;
    return ok;
}
