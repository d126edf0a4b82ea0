// SPDX-License-Identifier: Apache-2.0
// A minibatch of PPO in two launches, one for each network, there and back with the loss between
// (cl/nvidia/ppo_learn.k). The loss of the policy and that of the values have nothing in common but
// the rows, so each network has its own.
#include <stdlib.h>

#include "ops/op_support.h"
#include "ppo_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_params.k"
#include "shaders/ppo/lib/ppo_words.k"

#define WG 64

bool grt_ppo_learns(const struct grt_ppo *ppo) {
    return ppo->actor.learns && ppo->critic.learns;
}

void grt_ppo_record_records(const struct grt_ppo *ppo, struct grt_graph *graph) {
    const struct ppo_actors *a = &ppo->learning;
    const struct ppo_records_params params = {
        .shape = {(uint32_t)a->rows, (uint32_t)a->stride, (uint32_t)grt_ppo_section(a)},
        .count = (uint32_t)ppo->count};
    const struct grt_range ranges[] = {a->traj->range, ppo->records->range};
    grt_op_launch(graph, grt_kernel_desc(.name = "ppo_records", .specs = {{"WG", WG}}), &params,
                  sizeof params, ranges, 2,
                  (const uint32_t[3]){(uint32_t)((ppo->count + WG - 1) / WG), 1, 1});
}

static void learn(struct grt_ppo *ppo, struct grt_graph *graph, const struct ppo_net *n,
                  const struct grt_mlp_rows_desc *rows, uint32_t head,
                  const struct ppo_learn_head *params) {
    const struct ppo_actors *a = &ppo->learning;
    const struct grt_range ranges[] = {
        ppo->records->range,
        a->acts ? a->acts->range : ppo->records->range,
        ppo->norms->range,
        ppo->state->range,
        ppo->stats->range,
        ppo->dlog_std && n == &ppo->actor ? ppo->dlog_std->range : grt_op_unused(graph)};
    const struct grt_mlp_rows_kernel kernel = {.name = grt_ppo_learner.kernel,
                                               .spec = {"HEAD", head},
                                               .ranges = ranges,
                                               .range_count = sizeof ranges / sizeof ranges[0],
                                               .params = params,
                                               .params_size = sizeof *params};
    grt_op_mlp_rows_learn(graph, rows, &kernel);
}

uint64_t grt_ppo_learn_batch(struct grt_ppo *ppo, struct grt_graph *graph, uint32_t batch,
                             uint64_t first, uint64_t count) {
    const struct grt_ppo_desc *d = &ppo->desc;
    struct ppo_learn_head head = {.groups = ppo->groups,
                                  .batch = batch,
                                  .batches = ppo->batches,
                                  .acts_stride = (uint32_t)ppo->learning.acts_stride,
                                  .log_std = ppo->log_std ? (uint32_t)ppo->log_std->first : 0,
                                  .clip = (float)d->clip,
                                  .weight = (float)d->entropy_weight};
    // The actor first: the critic adds to its loss.
    struct grt_mlp_rows_desc rows = grt_ppo_apart_batch(ppo, &ppo->actor, first, count);
    learn(ppo, graph, &ppo->actor, &rows,
          ppo->sizes->choices > 0 ? PPO_LEARN_CHOICE : PPO_LEARN_NORMAL, &head);
    uint64_t groups = grt_mlp_rows_groups(ppo->dev, &rows);
    rows = grt_ppo_apart_batch(ppo, &ppo->critic, first, count);
    head.clip = (float)d->value_clip;
    head.weight = (float)d->value_weight;
    learn(ppo, graph, &ppo->critic, &rows, PPO_LEARN_VALUE, &head);
    return groups;
}

// ---- its check ----

// Records whose returns are the targets, and what else the kernel reads.
struct trial {
    struct grt_plan *plan;
    struct grt_tensor *records, *norms, *stats;
};

static bool write_trial(const struct trial *t, const float *targets, uint32_t positions,
                        uint64_t rows) {
    uint32_t norms[PPO_NORMS] = {[PPO_COUNT] = (uint32_t)rows};
    float *records = calloc(positions, PPO_SECTIONS * sizeof *records);
    for (uint32_t i = 0; records && i < positions; i++) {
        records[i * PPO_SECTIONS + PPO_RETURN] = targets[i];
    }
    bool good = records &&
                grt_buf_write(t->records->range.buf, t->records->range.offset, records,
                              grt_tensor_bytes(t->records)) &&
                grt_buf_write(t->norms->range.buf, t->norms->range.offset, norms, sizeof norms);
    free(records);
    return good;
}

static bool check_learn(struct grt_dev *dev, const struct grt_mlp_rows_desc *d,
                        const float *targets, uint32_t positions, float weight) {
    struct trial t = {.plan = grt_plan_create(dev)};
    struct grt_graph *graph = grt_graph_create(dev, "ppo check");
    uint32_t groups = grt_mlp_rows_groups(dev, d);
    bool good = t.plan && graph;
    if (good) {
        t.records = grt_plan_tensor(t.plan, grt_tensor_desc(.label = "records", .dtype = GRT_U32,
                                                            .shape = {positions, PPO_SECTIONS}));
        t.norms = grt_plan_tensor(
            t.plan, grt_tensor_desc(.label = "norms", .dtype = GRT_U32, .shape = {PPO_NORMS}));
        t.stats = grt_plan_tensor(t.plan, grt_tensor_desc(.label = "stats", .dtype = GRT_F32,
                                                          .shape = {groups, PPO_STATS + 1}));
        good = t.records && t.norms && t.stats && grt_plan_alloc(t.plan) &&
               write_trial(&t, targets, positions, d->rows);
    }
    if (good) {
        const struct ppo_learn_head head = {.groups = groups, .batches = 1, .weight = weight};
        const struct grt_range ranges[] = {t.records->range,    t.records->range, t.norms->range,
                                           d->state,            t.stats->range,
                                           grt_op_unused(graph)};
        grt_graph_fill(graph, d->params->grad->range, UINT32_MAX);
        grt_op_mlp_rows_learn(graph, d,
                              &(struct grt_mlp_rows_kernel){.name = grt_ppo_learner.kernel,
                                                            .spec = {"HEAD", PPO_LEARN_VALUE},
                                                            .ranges = ranges,
                                                            .range_count = 6,
                                                            .params = &head,
                                                            .params_size = sizeof head});
        good = grt_graph_finish(graph);
    }
    grt_graph_destroy(&graph);
    grt_plan_destroy(&t.plan);
    return good;
}

const struct grt_mlp_rows_learner grt_ppo_learner = {
    .kernel = "ppo_learn", .op = "ppo", .variant = "learn", .learn = check_learn};
