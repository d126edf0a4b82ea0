// SPDX-License-Identifier: Apache-2.0
// Running PPO: iterations, evaluations, and the numbers of them.
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/half.h"
#include "base/log.h"
#include "gpurt/device.h"
#include "ppo_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_words.k"

#define SLOW_SECONDS 0.5  // a stop is obeyed within about this time

void grt_ppo_add_times(struct grt_graph *graph, double *const seconds[], uint32_t places) {
    struct grt_phase_time times[GRT_MAX_PHASES];
    uint32_t count = grt_graph_times(graph, times, GRT_MAX_PHASES);
    for (uint32_t i = 0; i < count && i < places; i++) {
        *seconds[i] += times[i].seconds;
    }
}

void grt_ppo_report_totals(const float *totals, uint32_t terms, struct grt_ppo_report *r) {
    double each = totals[0] > 0 ? 1.0 / (double)totals[0] : 0.0;
    r->episodes = (double)totals[0];
    r->mean_return = (double)totals[1] * each;
    r->length = (double)totals[2] * each;
    for (uint32_t i = 0; i < terms && i < GRT_PPO_TERMS; i++) {
        r->terms[i] = (double)totals[GRT_WORLD_TOTALS + i] * each;
    }
}

// Means over the episodes that ended, of the copies that learn or of those of an evaluation.
static bool report_totals(const struct grt_ppo *ppo, const struct ppo_actors *a,
                          struct grt_ppo_report *r) {
    const struct grt_range range = a->totals->range;
    uint32_t terms = grt_worlds_sizes(a->worlds)->terms;
    float *totals = calloc(1, grt_tensor_bytes(a->totals));
    if (!totals) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for totals");
    }
    bool ok = a == &ppo->learning
                  ? grt_ppo_hear(ppo, a->totals, totals)
                  : grt_buf_read(range.buf, range.offset, totals, grt_tensor_bytes(a->totals));
    if (ok) {
        grt_ppo_report_totals(totals, terms, r);
    }
    free(totals);
    return ok;
}

bool grt_ppo_stats(const struct grt_ppo *ppo, double *sums) {
    float stats[PPO_MOST_GROUPS * (PPO_STATS + 1)];
    if (!grt_ppo_hear(ppo, ppo->stats, stats)) {
        return false;
    }
    for (uint32_t k = 0; k < PPO_STATS; k++) {
        sums[k] = 0;
        for (uint32_t g = 0; g < ppo->groups; g++) {
            sums[k] += (double)stats[g * PPO_STATS + k];
        }
    }
    return true;
}

bool grt_ppo_report_losses(const struct grt_ppo *ppo, const double *sums,
                           struct grt_ppo_report *r) {
    uint32_t norms[PPO_NORMS];
    struct grt_learn_state state;
    if (!grt_ppo_hear(ppo, ppo->norms, norms) || !grt_ppo_hear(ppo, ppo->state, &state)) {
        return false;
    }
    double each = sums[PPO_STAT_ROWS] > 0 ? 1.0 / sums[PPO_STAT_ROWS] : 0.0;
    r->rows = norms[PPO_COUNT];
    r->explained = (double)grt_f32_of_bits(norms[PPO_EXPLAINED]);
    r->policy_loss = sums[PPO_STAT_POLICY] * each;
    r->value_loss = sums[PPO_STAT_VALUE] * each;
    r->entropy = sums[PPO_STAT_ENTROPY] * each;
    r->kl = sums[PPO_STAT_KL] * each;
    r->clip_rate = sums[PPO_STAT_CLIPPED] * each;
    r->grad_norm = (double)state.grad_norm;
    r->lr = (double)state.lr;
    return state.halted == 0 ||
           grt_fail(
               GRT_INVALID,
               "ppo: iteration %u: a loss or gradient is not finite; try a lower learning rate",
               r->iteration);
}

bool grt_ppo_moved(const struct grt_ppo *ppo, uint32_t epochs, const double *sums) {
    return ppo->desc.target_kl > 0 && epochs > 0 && sums[PPO_STAT_ROWS] > 0 &&
           sums[PPO_STAT_KL] / sums[PPO_STAT_ROWS] > ppo->desc.target_kl;
}

static bool moved(const struct grt_ppo *ppo, uint32_t epochs) {
    double sums[PPO_STATS] = {0};
    return ppo->desc.target_kl > 0 && epochs > 0 && grt_ppo_stats(ppo, sums) &&
           grt_ppo_moved(ppo, epochs, sums);
}

bool grt_ppo_run(struct grt_ppo *ppo, struct grt_graph *graph, struct grt_ppo_report *report) {
    bool slow = ppo->pace == 0 || ppo->pace > SLOW_SECONDS;
    return grt_graph_run_until(graph, slow ? ppo->desc.stop : NULL, &report->stopped);
}

bool grt_ppo_update(struct grt_ppo *ppo, struct grt_ppo_report *report) {
    bool ok = report->stopped || grt_ppo_take_rung(ppo);
    while (ok && !report->stopped && report->epochs < ppo->desc.epochs &&
           !moved(ppo, report->epochs)) {
        struct grt_graph *epoch = grt_ppo_epoch(ppo, report->epochs);
        ok = epoch && grt_ppo_run(ppo, epoch, report);
        report->epochs += ok && !report->stopped;
    }
    return ok;
}

bool grt_ppo_conclude(struct grt_ppo *ppo, double begun, struct grt_ppo_report *report) {
    if (report->stopped) {
        *report = (struct grt_ppo_report){.stopped = true};
        return grt_ppo_undo(ppo);
    }
    double sums[PPO_STATS];
    bool ok = report_totals(ppo, &ppo->learning, report) && grt_ppo_stats(ppo, sums) &&
              grt_ppo_report_losses(ppo, sums, report);
    report->seconds = grt_seconds() - begun;
    for (uint32_t i = 0; ok && i < report->epochs; i++) {
        grt_ppo_add_times(grt_ppo_epoch(ppo, i), (double *const[]){&report->update}, 1);
    }
    if (ok && report->epochs > 0) {
        const struct ppo_epoch epoch = grt_ppo_epoch_of(ppo, 0);
        ppo->place_seconds = report->update / ((double)report->epochs * (double)epoch.places);
    }
    ppo->done += ok;
    ppo->fresh = ok;
    return ok;
}

bool grt_ppo_iterate(struct grt_ppo *ppo, struct grt_ppo_report *report) {
    if (!ppo || !report || ppo->desc.parts > 0) {
        return grt_fail(GRT_INVALID, "grt_ppo_iterate: %s",
                        !ppo      ? "no PPO"
                        : !report ? "no report"
                                  : "a learner of a team learns with it");
    }
    *report = (struct grt_ppo_report){.iteration = ppo->done + 1};
    double begun = grt_seconds();
    bool ok = grt_graph_run(ppo->keep) && grt_ppo_run(ppo, ppo->collect, report);
    if (ok && !report->stopped) {
        grt_ppo_foresee(ppo);
    }
    ok = ok && grt_ppo_update(ppo, report) && grt_ppo_conclude(ppo, begun, report);
    if (ok && !report->stopped) {
        grt_ppo_add_times(ppo->collect, (double *const[]){&report->acting, &report->valuing}, 2);
        ppo->pace = report->seconds;
    }
    return ok;
}

// ---- evaluation ----

const char *grt_ppo_trial_text(enum grt_ppo_trial trial) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_PPO_TRIALS(X)
#undef X
    };
    return (unsigned)trial < GRT_PPO_TRIAL_COUNT ? texts[trial] : "";
}

static bool make_evaluation(struct grt_ppo *ppo, struct grt_worlds *worlds) {
    struct ppo_actors *a = &ppo->evaluating;
    for (int i = 0; i < GRT_PPO_TRIAL_COUNT; i++) {
        grt_graph_destroy(&ppo->trials[i]);
    }
    grt_plan_destroy(&a->plan);
    *a = (struct ppo_actors){.worlds = worlds};
    struct grt_plan *plan = grt_plan_create(ppo->dev);
    bool ok = plan && grt_ppo_declare_actors(ppo, a, plan, 1) && grt_ppo_plan_fits(ppo, a, plan) &&
              grt_plan_alloc(plan);
    if (!ok) {
        grt_plan_destroy(&plan);
        *a = (struct ppo_actors){0};
    }
    return ok;
}

static bool make_trial(struct grt_ppo *ppo, enum grt_ppo_trial trial) {
    struct grt_graph *graph = grt_graph_create(ppo->dev, "trial");
    if (graph) {
        grt_ppo_record_step(ppo, &ppo->evaluating, graph, 0,
                            trial == GRT_PPO_TRY_RANDOM ? PPO_RANDOM : PPO_GREEDY);
    }
    if (graph && !grt_graph_bake(graph)) {
        grt_graph_destroy(&graph);
    }
    ppo->trials[trial] = graph;
    return graph != NULL;
}

// Sums of the episodes since the last call, after a reset with a seed where there is one.
static bool take_totals(struct grt_ppo *ppo, const uint32_t *seed) {
    struct ppo_actors *a = &ppo->evaluating;
    struct grt_graph *graph = grt_graph_create(ppo->dev, "totals");
    bool ok = graph && a->control;
    if (ok && seed) {
        const struct grt_rng_state control = {.seed = {*seed, 0}};
        ok = grt_buf_write(a->control->range.buf, a->control->range.offset, &control,
                           sizeof control);
        grt_op_worlds_reset(graph, a->worlds, a->control->range);
    }
    if (ok) {
        grt_op_worlds_totals(graph, a->worlds, a->totals->range);
    }
    ok = ok && grt_graph_finish(graph);
    grt_graph_destroy(&graph);
    return ok;
}

bool grt_ppo_prepare(struct grt_ppo *ppo, struct grt_worlds *worlds) {
    if (!ppo || !worlds) {
        return grt_fail(GRT_INVALID, "grt_ppo_prepare: no PPO or worlds");
    }
    return ppo->evaluating.worlds == worlds || make_evaluation(ppo, worlds);
}

bool grt_ppo_begin_trial(struct grt_ppo *ppo, struct grt_worlds *worlds, enum grt_ppo_trial trial,
                         uint32_t seed) {
    return grt_ppo_prepare(ppo, worlds) && (ppo->trials[trial] || make_trial(ppo, trial)) &&
           take_totals(ppo, &seed);
}

// So many steps. Where they take long they are waited for now and then, so that a stop is seen.
static bool play(const struct grt_ppo *ppo, struct grt_graph *step, uint32_t length,
                 struct grt_ppo_report *report) {
    double seen = grt_seconds();
    uint32_t every = 1, since = 0;
    bool ok = true;
    for (uint32_t t = 0; ok && t < length && !report->stopped; t++) {
        ok = grt_graph_run(step);
        if (!ppo->desc.stop || ++since < every) {
            continue;
        }
        ok = ok && grt_dev_wait(ppo->dev);
        double now = grt_seconds(), each = (now - seen) / since;
        every = each * length < SLOW_SECONDS ? length : (uint32_t)(SLOW_SECONDS / each) + 1;
        report->stopped = ppo->desc.stop();
        seen = now;
        since = 0;
    }
    return ok;
}

bool grt_ppo_average(struct grt_ppo *ppo, bool in) {
    struct grt_graph *graph = ppo->average ? grt_graph_create(ppo->dev, "average") : NULL;
    const struct grt_params *p = &ppo->params;
    if (graph && in) {
        grt_graph_copy(graph, p->grad->range, p->master->range);
    }
    if (graph) {
        grt_graph_copy(graph, p->master->range, in ? ppo->average->range : p->grad->range);
    }
    if (graph && !in) {
        grt_graph_fill(graph, p->grad->range, 0);
    }
    bool ok = graph && grt_graph_finish(graph);
    grt_graph_destroy(&graph);
    return !ppo->average || (ok && grt_params_sync(&ppo->params));
}

static bool evaluate(struct grt_ppo *ppo, struct grt_worlds *worlds, enum grt_ppo_trial trial,
                     uint32_t seed, struct grt_ppo_report *report) {
    double start = grt_seconds();
    bool ok = grt_ppo_begin_trial(ppo, worlds, trial, seed);
    *report = (struct grt_ppo_report){.iteration = ppo->done};
    ok = ok && play(ppo, ppo->trials[trial], grt_worlds_length(worlds), report);
    if (!ok || report->stopped) {
        return ok;
    }
    ok = take_totals(ppo, NULL) && report_totals(ppo, &ppo->evaluating, report);
    report->rows = report->episodes * report->length * grt_worlds_sizes(worlds)->agents;
    report->seconds = grt_seconds() - start;
    return ok;
}

bool grt_ppo_evaluate(struct grt_ppo *ppo, struct grt_worlds *worlds, enum grt_ppo_trial trial,
                      uint32_t seed, struct grt_ppo_report *report) {
    if (!ppo || !worlds || !report || (unsigned)trial >= GRT_PPO_TRIAL_COUNT) {
        return grt_fail(GRT_INVALID, "grt_ppo_evaluate: no PPO, worlds, trial or report");
    }
    // A trial that fails leaves the networks their own parameters too.
    bool in = grt_ppo_average(ppo, true);
    bool ok = in && evaluate(ppo, worlds, trial, seed, report);
    bool out = in && grt_ppo_average(ppo, false);
    return ok && out;
}
