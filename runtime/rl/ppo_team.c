// SPDX-License-Identifier: Apache-2.0
// An iteration of a team: what one learner does as a few graphs (ppo_run.c), with the host between
// them wherever parts meet.
#include "gpurt/ppo_team.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "gpurt/buffer.h"
#include "gpurt/device.h"
#include "ppo_team_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_words.k"

#define SAME_EVERY 100  // iterations between comparisons of the weights

// ---- making ----

static uint32_t total_words(const struct grt_ppo *ppo) {
    return GRT_WORLD_TOTALS + ppo->sizes->terms;
}

static uint32_t moment_words(const struct grt_ppo *ppo) {
    return ppo->norm ? 2 * ppo->sizes->obs + 1 : 0;
}

static bool make(struct grt_ppo_team *team) {
    const struct grt_ppo *first = team->learners[0];
    team->words = 1 + total_words(first) + PPO_SUMS + moment_words(first);
    team->blocks = calloc((size_t)team->all * team->words, sizeof *team->blocks);
    team->losses = calloc((size_t)team->all * PPO_STATS, sizeof *team->losses);
    if (!team->blocks || !team->losses) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for a team of %u", team->all);
    }
    team->tree = grt_comm_tree_create(team->comm, team->count, grt_ppo_share_count(first));
    return team->tree && ppo_team_worlds_make(team);
}

struct grt_ppo_team *grt_ppo_team_create(const struct grt_ppo_team_desc *desc) {
    if (!desc || desc->count == 0 || !desc->learners) {
        grt_fail(GRT_INVALID, "team of PPO: no %s", desc ? "learners" : "desc");
        return NULL;
    }
    uint32_t all = desc->count * grt_comm_ranks(desc->comm);
    uint32_t first = desc->count * grt_comm_rank(desc->comm);
    for (uint32_t k = 0; k < desc->count; k++) {
        const struct grt_ppo *of = desc->learners[k];
        if (!of || of->desc.parts != all || of->desc.part != first + k || (all & (all - 1)) != 0) {
            grt_fail(GRT_INVALID, "team of PPO: learner %u is not part %u of %u, a power of two", k,
                     first + k, all);
            return NULL;
        }
    }
    struct grt_ppo_team *team = calloc(1, sizeof *team);
    if (!team) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a team");
        return NULL;
    }
    *team = (struct grt_ppo_team){.comm = desc->comm,
                                  .learners = calloc(desc->count, sizeof(struct grt_ppo *)),
                                  .count = desc->count,
                                  .all = all,
                                  .first = first};
    if (team->learners) {
        memcpy(team->learners, desc->learners, desc->count * sizeof(struct grt_ppo *));
    } else {
        grt_fail(GRT_NO_MEMORY, "no host memory for a team");
    }
    if (!team->learners || !make(team)) {
        grt_ppo_team_destroy(&team);
    }
    return team;
}

void grt_ppo_team_destroy(struct grt_ppo_team **team) {
    if (!team || !*team) {
        return;
    }
    struct grt_ppo_team *t = *team;
    grt_comm_tree_destroy(&t->tree);
    free(t->learners);
    free(t->blocks);
    free(t->losses);
    free(t->worlds);
    free(t);
    *team = NULL;
}

// ---- what ranks tell each other ----

static bool lost(const struct grt_ppo_team *team) {
    return (grt_comm_stop(team->comm) & GRT_STOP_LOST) != 0;
}

// Whether all go on; report->stopped where one does not want to, or is gone. False: neither, and
// yet an exchange failed. Where the time is over, the iteration is still done.
static bool all_go_on(const struct grt_ppo_team *team, struct grt_ppo_report *report) {
    bool (*stop)(void) = team->learners[0]->desc.stop;
    if (grt_comm_ranks(team->comm) > 1) {
        if (report->stopped || (stop && stop())) {
            grt_comm_want(team->comm, GRT_STOP_SIGNAL);
        }
        bool told = grt_comm_vote(team->comm);
        report->stopped = (grt_comm_stop(team->comm) & (GRT_STOP_SIGNAL | GRT_STOP_LOST)) != 0;
        return told || report->stopped;
    }
    return true;
}

static bool gather(const struct grt_ppo_team *team, void *all, uint64_t each,
                   struct grt_ppo_report *report) {
    if (grt_comm_gather(team->comm, all, team->count * each)) {
        return true;
    }
    report->stopped = lost(team);
    return report->stopped;
}

// Also where a rank is gone, which the next exchange finds.
static bool same_weights(const struct grt_ppo_team *team) {
    const struct grt_ppo *first = team->learners[0];
    if (grt_comm_ranks(team->comm) == 1) {
        return true;
    }
    float *numbers = malloc(first->params.numbers * sizeof *numbers), *to = numbers;
    bool ok = numbers || grt_fail(GRT_NO_MEMORY, "no host memory for the weights");
    for (uint32_t i = 0; ok && i < first->params.count; i++) {
        const struct grt_tensor *t = &first->params.list[i]->master;
        ok = grt_buf_read(t->range.buf, t->range.offset, to, grt_tensor_bytes(t));
        to += grt_tensor_count(t);
    }
    ok = ok && (grt_comm_same(team->comm, "weights", first->done, numbers,
                              first->params.numbers * sizeof *numbers) ||
                lost(team));
    free(numbers);
    return ok;
}

// ---- collecting ----

// Rows of workgroups added up, one behind the other in double precision: the same bits on any host.
static bool add_rows(const struct grt_tensor *t, uint32_t rows, uint32_t width, float *sums) {
    uint64_t bytes = (uint64_t)rows * width * 4;
    float *all = malloc(bytes);
    if (!all) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for sums");
    }
    bool ok = grt_buf_read(t->range.buf, t->range.offset, all, bytes);
    for (uint32_t c = 0; ok && c < width; c++) {
        double sum = 0;
        for (uint32_t r = 0; r < rows; r++) {
            sum += (double)all[r * width + c];
        }
        sums[c] = (float)sum;
    }
    free(all);
    return ok;
}

// What the rows of a part came to.
static bool fill_block(const struct grt_ppo *ppo, float *block) {
    uint32_t norms[PPO_NORMS];
    const struct grt_range at = ppo->norms->range;
    if (!grt_buf_read(at.buf, at.offset, norms, sizeof norms)) {
        return false;
    }
    memcpy(block++, &norms[PPO_COUNT], sizeof *block);
    bool ok = grt_ppo_hear(ppo, ppo->learning.totals, block);
    block += total_words(ppo);
    ok = ok && add_rows(ppo->sums, PPO_GROUPS, PPO_SUMS, block);
    block += PPO_SUMS;
    return ok && (!ppo->norm || add_rows(ppo->moments, ppo->groups, moment_words(ppo), block));
}

static uint32_t rows_of(const struct grt_ppo_team *team, uint32_t part) {
    uint32_t rows;
    memcpy(&rows, team->blocks + (uint64_t)part * team->words, sizeof rows);
    return rows;
}

// Words of each block from `from` on become the rows of a tensor of each learner.
static bool spread(const struct grt_ppo_team *team, uint32_t from, uint32_t width, bool moments) {
    uint64_t bytes = (uint64_t)team->all * width * 4;
    float *rows = malloc(bytes ? bytes : 1);
    bool ok = true;
    if (!rows) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for sums");
    }
    for (uint32_t part = 0; part < team->all; part++) {
        memcpy(rows + (uint64_t)part * width, team->blocks + (uint64_t)part * team->words + from,
               (uint64_t)width * 4);
    }
    for (uint32_t k = 0; ok && k < team->count; k++) {
        const struct grt_tensor *t = moments ? team->learners[k]->moments : team->learners[k]->sums;
        ok = grt_buf_write(t->range.buf, t->range.offset, rows, bytes);
    }
    free(rows);
    return ok;
}

static bool collect(struct grt_ppo_team *team, struct grt_ppo_report *report) {
    bool ok = true;
    for (uint32_t k = 0; ok && k < team->count; k++) {
        ok = grt_graph_run(team->learners[k]->keep);
    }
    for (uint32_t k = 0; ok && !report->stopped && k < team->count; k++) {
        ok = grt_ppo_run(team->learners[k], team->learners[k]->collect, report);
        if (ok && !report->stopped) {
            grt_ppo_foresee(team->learners[k]);
        }
    }
    if (!ok || !all_go_on(team, report)) {
        return false;
    }
    for (uint32_t k = 0; ok && !report->stopped && k < team->count; k++) {
        ok =
            fill_block(team->learners[k], team->blocks + (uint64_t)(team->first + k) * team->words);
    }
    if (!ok || report->stopped ||
        !gather(team, team->blocks, team->words * sizeof *team->blocks, report) ||
        report->stopped) {
        return ok && report->stopped;
    }
    const struct grt_ppo *first = team->learners[0];
    uint32_t sums = 1 + total_words(first), moments = sums + PPO_SUMS;
    ok = spread(team, sums, PPO_SUMS, false) &&
         (!first->norm || spread(team, moments, moment_words(first), true));
    for (uint32_t k = 0; ok && k < team->count; k++) {
        ok = grt_graph_finish(team->learners[k]->settle) && grt_ppo_take_rung(team->learners[k]);
    }
    return ok;
}

// ---- learning ----

// Rows of a minibatch that count, as shaders/ppo/lib/ppo_rows.k deals them.
static uint32_t batch_rows(uint32_t counting, uint32_t batches, uint32_t batch) {
    uint64_t share = (counting + (uint64_t)batches - 1) / batches, before = batch * share;
    uint64_t left = before < counting ? counting - before : 0;
    return (uint32_t)(left < share ? left : share);
}

// The gradients of this rank's parts, each weighed by its rows.
static bool take_gradients(struct grt_ppo_team *team, uint32_t batch,
                           struct grt_ppo_report *report) {
    uint32_t batches = team->learners[0]->batches;
    uint64_t rows = 0;
    bool ok = true;
    for (uint32_t part = 0; part < team->all; part++) {
        rows += batch_rows(rows_of(team, part), batches, batch);
    }
    for (uint32_t k = 0; ok && !report->stopped && k < team->count; k++) {
        struct grt_graph *graph = grt_ppo_batch(team->learners[k], batch);
        ok = graph && grt_ppo_run(team->learners[k], graph, report);
    }
    ok = ok && grt_dev_wait(team->learners[0]->dev);
    grt_comm_tree_begin(team->tree);
    for (uint32_t k = 0; ok && !report->stopped && k < team->count; k++) {
        struct grt_ppo *ppo = team->learners[k];
        uint32_t own = batch_rows(rows_of(team, team->first + k), batches, batch);
        float weight = rows > 0 ? (float)own / (float)rows : 0.0f;
        const float *down = grt_buf_host(ppo->down);
        float *leaf = grt_comm_tree_leaf(team->tree);
        for (uint64_t i = 0; i < grt_ppo_share_count(ppo); i++) {
            leaf[i] = down[i] * weight;
        }
        grt_comm_tree_add(team->tree);
        grt_ppo_add_times(grt_ppo_batch(ppo, batch), (double *const[]){&report->update}, 1);
    }
    return ok;
}

static bool learn_batch(struct grt_ppo_team *team, uint32_t batch, struct grt_ppo_report *report) {
    if (!take_gradients(team, batch, report) || !all_go_on(team, report)) {
        return false;
    }
    const float *sum = report->stopped ? NULL : grt_comm_tree_sum(team->tree);
    if (!sum) {
        report->stopped = report->stopped || lost(team);
        return report->stopped;
    }
    bool ok = true;
    for (uint32_t k = 0; ok && k < team->count; k++) {
        struct grt_ppo *ppo = team->learners[k];
        memcpy(grt_buf_host(ppo->up), sum, grt_ppo_share_count(ppo) * sizeof *sum);
        ok = grt_graph_run(ppo->apply);
    }
    return ok;
}

// Sums of the losses so far, over all parts.
static bool sum_losses(struct grt_ppo_team *team, double sums[PPO_STATS],
                       struct grt_ppo_report *report) {
    for (uint32_t k = 0; k < team->count; k++) {
        if (!grt_ppo_stats(team->learners[k],
                           team->losses + (uint64_t)(team->first + k) * PPO_STATS)) {
            return false;
        }
    }
    if (!gather(team, team->losses, PPO_STATS * sizeof *team->losses, report)) {
        return false;
    }
    for (uint32_t i = 0; i < PPO_STATS; i++) {
        sums[i] = 0;
        for (uint32_t part = 0; part < team->all; part++) {
            sums[i] += team->losses[(uint64_t)part * PPO_STATS + i];
        }
    }
    return true;
}

static bool learn(struct grt_ppo_team *team, double sums[PPO_STATS],
                  struct grt_ppo_report *report) {
    const struct grt_ppo *first = team->learners[0];
    bool ok = true;
    while (ok && !report->stopped && report->epochs < first->desc.epochs &&
           !grt_ppo_moved(first, report->epochs, sums)) {
        for (uint32_t k = 0; ok && k < team->count; k++) {
            struct grt_graph *order = grt_ppo_epoch(team->learners[k], report->epochs);
            ok = order && grt_graph_run(order);
        }
        for (uint32_t batch = 0; ok && !report->stopped && batch < first->batches; batch++) {
            ok = learn_batch(team, batch, report);
        }
        report->epochs++;
        bool last = report->epochs == first->desc.epochs;
        if (ok && !report->stopped && (last || first->desc.target_kl > 0)) {
            ok = sum_losses(team, sums, report);
        }
    }
    return ok;
}

// ---- an iteration ----

static bool take_back(struct grt_ppo_team *team, struct grt_ppo_report *report) {
    bool ok = true;
    *report = (struct grt_ppo_report){.stopped = true};
    for (uint32_t k = 0; k < team->count; k++) {
        ok = grt_ppo_undo(team->learners[k]) && ok;
    }
    return ok;
}

// Sums of the episodes of all parts.
static void report_totals(const struct grt_ppo_team *team, struct grt_ppo_report *report) {
    const struct grt_ppo *first = team->learners[0];
    float totals[GRT_WORLD_TOTALS + GRT_PPO_TERMS] = {0};
    uint32_t terms = first->sizes->terms < GRT_PPO_TERMS ? first->sizes->terms : GRT_PPO_TERMS;
    report->rows = 0;
    for (uint32_t part = 0; part < team->all; part++) {
        const float *own = team->blocks + (uint64_t)part * team->words + 1;
        for (uint32_t i = 0; i < GRT_WORLD_TOTALS + terms; i++) {
            totals[i] += own[i];
        }
        report->rows += rows_of(team, part);
    }
    grt_ppo_report_totals(totals, terms, report);
}

static bool conclude(struct grt_ppo_team *team, double begun, const double sums[PPO_STATS],
                     struct grt_ppo_report *report) {
    if (!grt_dev_wait(team->learners[0]->dev) ||
        !grt_ppo_report_losses(team->learners[0], sums, report)) {
        return false;
    }
    report_totals(team, report);
    report->seconds = grt_seconds() - begun;
    for (uint32_t k = 0; k < team->count; k++) {
        struct grt_ppo *ppo = team->learners[k];
        grt_ppo_add_times(ppo->collect, (double *const[]){&report->acting, &report->valuing}, 2);
        ppo->done++;
        ppo->fresh = true;
        ppo->pace = report->seconds;
    }
    return team->learners[0]->done % SAME_EVERY != 0 || same_weights(team);
}

bool grt_ppo_team_iterate(struct grt_ppo_team *team, struct grt_ppo_report *report) {
    double sums[PPO_STATS] = {0}, begun = grt_seconds();
    if (!team || !report) {
        return grt_fail(GRT_INVALID, "grt_ppo_team_iterate: no %s", team ? "report" : "team");
    }
    *report = (struct grt_ppo_report){.iteration = team->learners[0]->done + 1};
    if (!team->compared && !same_weights(team)) {
        return false;
    }
    team->compared = true;
    bool ok = collect(team, report) && (report->stopped || learn(team, sums, report));
    if (!ok) {
        return false;
    }
    return report->stopped ? take_back(team, report) : conclude(team, begun, sums, report);
}

bool grt_ppo_team_environment(struct grt_ppo_team *team, double *seconds) {
    if (!team || !seconds) {
        return grt_fail(GRT_INVALID, "grt_ppo_team_environment: no %s", team ? "place" : "team");
    }
    *seconds = 0;
    for (uint32_t k = 0; k < team->count; k++) {
        double own = 0;
        if (!grt_ppo_environment(team->learners[k], &own)) {
            return false;
        }
        *seconds += own;
    }
    return true;
}
