// SPDX-License-Identifier: Apache-2.0
// A minibatch of PPO in two launches, one for each network, there and back with the loss between
// (cl/nvidia/ppo_learn.k). The loss of the policy and that of the values have nothing in common but
// the rows, so each network has its own.
#include "ops/op_support.h"
#include "ppo_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_params.k"
#include "shaders/ppo/lib/ppo_words.k"

#define WG 64

uint32_t grt_ppo_head(const struct grt_ppo *ppo, const struct ppo_net *n) {
    if (n == &ppo->critic) {
        return PPO_LEARN_VALUE;
    }
    return ppo->sizes->choices > 0 ? PPO_LEARN_CHOICE : PPO_LEARN_NORMAL;
}

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
    const struct grt_range ranges[] = {ppo->records->range,
                                       a->acts ? a->acts->range : ppo->records->range,
                                       ppo->norms->range,
                                       ppo->state->range,
                                       ppo->stats->range,
                                       ppo->dlog_std && n == &ppo->actor ? ppo->dlog_std->range
                                                                         : grt_op_unused(graph)};
    const struct grt_mlp_rows_kernel kernel = {.name = "ppo_learn",
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
    learn(ppo, graph, &ppo->actor, &rows, grt_ppo_head(ppo, &ppo->actor), &head);
    uint64_t groups = grt_mlp_rows_groups(ppo->dev, &rows);
    rows = grt_ppo_apart_batch(ppo, &ppo->critic, first, count);
    head.clip = (float)d->value_clip;
    head.weight = (float)d->value_weight;
    learn(ppo, graph, &ppo->critic, &rows, grt_ppo_head(ppo, &ppo->critic), &head);
    return groups;
}
