// SPDX-License-Identifier: Apache-2.0
// Recording an iteration of PPO: a graph that collects, and those of epochs, of a size that
// ppo_rungs.c chooses.
#include <stdlib.h>

#include "base/log.h"
#include "gpurt/device.h"
#include "nn/layer_ops.h"
#include "ops/op_support.h"
#include "ppo_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_words.k"
#include "shaders/ppo/lib/ppo_params.k"

#define FLAT 64           // lanes where nothing is shared
#define PIECE 128         // rows: so many of any width are a multiple of every device's alignment
#define MOST_TOGETHER 16  // rows of a run that is not shuffled
#define LEAST_RUNS 1024   // of a minibatch

static struct ppo_shape shape_of(const struct ppo_actors *a) {
    return (struct ppo_shape){.rows = (uint32_t)a->rows,
                              .stride = (uint32_t)a->stride,
                              .section = (uint32_t)grt_ppo_section(a)};
}

// A kernel with one lane for each of `count`.
static void launch(struct grt_graph *graph, const struct grt_kernel_desc *kernel, uint64_t count,
                   const void *params, uint32_t size, const struct grt_range *ranges,
                   uint32_t range_count) {
    const uint32_t groups[3] = {(uint32_t)((count + FLAT - 1) / FLAT), 1, 1};
    grt_op_launch(graph, kernel, params, size, ranges, range_count, groups);
}

struct grt_range grt_ppo_part(const struct ppo_actors *a, uint32_t section, uint64_t step) {
    return grt_op_part(a->traj->range, (section * grt_ppo_section(a) + step * a->stride) * 4,
                       a->rows * 4);
}

static struct grt_range unless(const struct grt_tensor *t, struct grt_range otherwise) {
    return t ? t->range : otherwise;
}

static uint32_t kind_of(const struct grt_ppo *ppo) {
    return ppo->desc.precision == GRT_BF16;
}

// KIND of lib/words.k.
static uint32_t word_kind(const struct grt_ppo *ppo) {
    return ppo->net.dtype == GRT_F32 ? 0 : ppo->net.dtype == GRT_F16 ? 1 : 2;
}

// ---- acting ----

void grt_ppo_record_observe(const struct grt_ppo *ppo, struct ppo_actors *a,
                            struct grt_graph *graph, uint64_t step) {
    uint64_t copies = grt_worlds_copies(a->worlds);
    struct grt_range obs =
        grt_op_part(a->obs->range, step * a->obs_stride * 4, a->rows * a->obs_words * 4);
    struct grt_observe_desc observe = {
        .dtype = ppo->net.dtype, .pitch = a->obs_words * (4 / grt_dtype_size(ppo->net.dtype))};
    if (a->whole) {
        observe.global_pitch = a->whole_words * (4 / grt_dtype_size(ppo->net.dtype));
        observe.global =
            grt_op_part(a->whole->range, step * a->whole_stride * 4, copies * a->whole_words * 4);
    }
    if (ppo->sizes->choices > 0) {
        observe.mask = grt_ppo_part(a, PPO_MASK, step);
    }
    if (!a->raw) {
        observe.obs = obs;
        grt_op_worlds_observe(graph, a->worlds, &observe);
        return;
    }
    const struct grt_observe_desc raw = {.obs = a->raw->range, .mask = observe.mask};
    grt_op_worlds_observe(graph, a->worlds, &raw);
    if (a->whole) {
        grt_op_worlds_observe(graph, a->worlds, &observe);
    }
    const struct ppo_normalize_params params = {
        .rows = (uint32_t)a->rows, .obs = ppo->sizes->obs, .words = a->obs_words};
    const struct grt_range ranges[] = {a->raw->range, ppo->norm->range, obs};
    launch(
        graph,
        grt_kernel_desc(.name = "ppo_normalize", .specs = {{"WG", FLAT}, {"KIND", word_kind(ppo)}}),
        (a->rows * a->obs_words + 3) / 4, &params, sizeof params, ranges, 3);
}

// What the actor gives for rows first .. first + count - 1 of a step, and their actions.
static void record_some(struct grt_ppo *ppo, struct ppo_actors *a, struct grt_graph *graph,
                        uint64_t step, uint64_t first, uint64_t count, bool greedy) {
    grt_ppo_forward_actor(ppo, a, graph, step, first, count);
    const struct ppo_act_params params = {.shape = shape_of(a),
                                          .step = (uint32_t)step,
                                          .first = (uint32_t)first,
                                          .count = (uint32_t)count,
                                          .width = ppo->width,
                                          .acts = (uint32_t)(step * a->acts_stride),
                                          .greedy = greedy,
                                          .origin =
                                              grt_worlds_first(a->worlds) * ppo->sizes->agents};
    const struct grt_range ranges[] = {
        ppo->actor.y->range,
        ppo->log_std ? ppo->log_std->master.range : grt_op_unused(graph),
        a->control->range,
        a->traj->range,
        unless(a->acts, grt_op_unused_at(graph, 1)),
    };
    launch(graph,
           grt_kernel_desc(.name = "ppo_act",
                           .specs = {{"WG", FLAT}, {"DISCRETE", ppo->sizes->choices > 0}}),
           count, &params, sizeof params, ranges, 5);
}

struct grt_range grt_ppo_actions(const struct grt_ppo *ppo, const struct ppo_actors *a,
                                 uint64_t step) {
    return a->acts
               ? grt_op_part(a->acts->range, step * a->acts_stride * 4, a->rows * ppo->width * 4)
               : grt_ppo_part(a, PPO_ACTION, step);
}

void grt_ppo_record_actions(struct grt_ppo *ppo, struct ppo_actors *a, struct grt_graph *graph,
                            uint64_t step, enum ppo_choice choice) {
    if (choice == PPO_RANDOM) {
        struct grt_world_random_desc random = {.control = a->control->range,
                                               .actions = grt_ppo_actions(ppo, a, step),
                                               .advance = true};
        if (!a->acts) {
            random.mask = grt_ppo_part(a, PPO_MASK, step);
        }
        grt_op_worlds_random(graph, a->worlds, &random);
        return;
    }
    // As many rows at once as the networks were made for, in pieces that begin where a binding may.
    uint64_t most = ppo->net.rows;
    most -= a->rows > most ? most % PIECE : 0;
    for (uint64_t first = 0; first < a->rows; first += most) {
        uint64_t left = a->rows - first;
        record_some(ppo, a, graph, step, first, left < most ? left : most, choice == PPO_GREEDY);
    }
}

void grt_ppo_record_world(struct grt_ppo *ppo, struct ppo_actors *a, struct grt_graph *graph,
                          uint64_t step) {
    grt_op_worlds_step(graph, a->worlds,
                       &(struct grt_world_step_desc){.control = a->control->range,
                                                     .actions = grt_ppo_actions(ppo, a, step),
                                                     .rewards = grt_ppo_part(a, PPO_REWARD, step),
                                                     .ends = grt_ppo_part(a, PPO_END, step)});
}

void grt_ppo_record_step(struct grt_ppo *ppo, struct ppo_actors *a, struct grt_graph *graph,
                         uint64_t step, enum ppo_choice choice) {
    grt_ppo_record_observe(ppo, a, graph, step);
    grt_ppo_record_actions(ppo, a, graph, step, choice);
    grt_ppo_record_world(ppo, a, graph, step);
}

// ---- what the critic says of it ----

static void record_values(struct grt_ppo *ppo, struct grt_graph *graph) {
    uint64_t all = ppo->learning.rows * (ppo->desc.horizon + 1);
    for (uint64_t first = 0; first < all; first += ppo->net.rows) {
        uint64_t left = all - first, count = left < ppo->net.rows ? left : ppo->net.rows;
        grt_ppo_forward_critic(ppo, graph, first, count);
        const struct ppo_values_params params = {
            .shape = shape_of(&ppo->learning), .first = (uint32_t)first, .count = (uint32_t)count};
        const struct grt_range ranges[] = {ppo->critic.y->range, ppo->learning.traj->range};
        launch(graph, grt_kernel_desc(.name = "ppo_values", .specs = {{"WG", FLAT}}), count,
               &params, sizeof params, ranges, 2);
    }
}

// A kernel over all rows, by as many workgroups as there are parts of a sum.
static void launch_over_rows(struct grt_ppo *ppo, struct grt_graph *graph, const char *name,
                             const struct grt_range *ranges, uint32_t range_count) {
    const struct ppo_rows_params params = {.shape = shape_of(&ppo->learning),
                                           .count = (uint32_t)ppo->count};
    grt_op_launch(graph, grt_kernel_desc(.name = name, .specs = {{"WG", grt_op_tree_wg(ppo->dev)}}),
                  &params, sizeof params, ranges, range_count,
                  (const uint32_t[3]){PPO_GROUPS, 1, 1});
}

static void record_advantages(struct grt_ppo *ppo, struct grt_graph *graph) {
    const struct grt_ppo_desc *d = &ppo->desc;
    const struct ppo_actors *a = &ppo->learning;
    const struct ppo_gae_params gae = {.shape = shape_of(a),
                                       .steps = d->horizon,
                                       .gamma = (float)d->gamma,
                                       .carry = (float)(d->gamma * d->lambda)};
    launch(graph, grt_kernel_desc(.name = "ppo_gae", .specs = {{"WG", FLAT}}), a->rows, &gae,
           sizeof gae, &a->traj->range, 1);
    const struct grt_range parts[] = {a->traj->range, ppo->sums->range};
    launch_over_rows(ppo, graph, "ppo_sums", parts, 2);
}

// Which rows count, and how many.
static void record_list(struct grt_ppo *ppo, struct grt_graph *graph) {
    const struct grt_range traj = ppo->learning.traj->range;
    const struct grt_range tally[] = {traj, ppo->tallies->range};
    const struct grt_range list[] = {traj, ppo->tallies->range, ppo->list->range,
                                     ppo->norms->range};
    launch_over_rows(ppo, graph, "ppo_tally", tally, 2);
    launch_over_rows(ppo, graph, "ppo_list", list, 4);
}

static struct ppo_moments_params moments_of(const struct grt_ppo *ppo, uint32_t groups) {
    const struct ppo_actors *a = &ppo->learning;
    return (struct ppo_moments_params){.shape = shape_of(a),
                                       .count = (uint32_t)ppo->count,
                                       .obs = ppo->sizes->obs,
                                       .words = a->obs_words,
                                       .obs_stride = (uint32_t)a->obs_stride,
                                       .groups = groups};
}

static void record_moment_sums(struct grt_ppo *ppo, struct grt_graph *graph) {
    const struct ppo_actors *a = &ppo->learning;
    const struct ppo_moments_params params = moments_of(ppo, ppo->groups);
    const struct grt_range rows[] = {a->obs->range, a->traj->range, ppo->moments->range};
    grt_op_launch(graph,
                  grt_kernel_desc(.name = "ppo_moment_sums",
                                  .specs = {{"WG", FLAT}, {"KIND", word_kind(ppo)}}),
                  &params, sizeof params, rows, 3, (const uint32_t[3]){ppo->groups, 1, 1});
}

void grt_ppo_record_settle(struct grt_ppo *ppo, struct grt_graph *graph, uint32_t sums_of,
                           uint32_t moments_from) {
    const struct grt_range norms[] = {ppo->sums->range, ppo->norms->range};
    grt_op_launch(graph, grt_kernel_desc(.name = "ppo_norm", .specs = {{"WG", PPO_SUMS}}), &sums_of,
                  sizeof sums_of, norms, 2, (const uint32_t[3]){1, 1, 1});
    grt_ppo_say(ppo, graph, ppo->norms);
    if (!ppo->norm) {
        return;
    }
    // What the observations of this iteration add to their mean and deviation; the next one sees by
    // it.
    const struct ppo_moments_params params = moments_of(ppo, moments_from);
    const struct grt_range sums[] = {ppo->moments->range, ppo->norm->range, ppo->counts->range};
    grt_op_launch(
        graph, grt_kernel_desc(.name = "ppo_moments", .specs = {{"WG", grt_op_tree_wg(ppo->dev)}}),
        &params, sizeof params, sums, 3, (const uint32_t[3]){ppo->sizes->obs, 1, 1});
}

// ---- learning ----

// Rows of a minibatch that stay together: up to 16, where there are a thousand such runs or more.
// On an H200 the standing robot's update takes 0.93 of its time with single rows, that of ten UAVs
// as long.
static uint32_t run_of(const struct grt_ppo *ppo) {
    uint32_t run = 1;
    while (run < MOST_TOGETHER && 2ull * run * LEAST_RUNS <= ppo->batch) {
        run *= 2;
    }
    return run;
}

static void record_order(struct grt_ppo *ppo, struct grt_graph *graph,
                         const struct ppo_epoch *epoch) {
    const struct ppo_order_params params = {.count = (uint32_t)ppo->count,
                                            .places = (uint32_t)epoch->places,
                                            .rows = (uint32_t)epoch->rows,
                                            .batches = ppo->batches,
                                            .epoch = epoch->number,
                                            .run = run_of(ppo),
                                            .part = ppo->desc.part};
    const struct grt_range ranges[] = {ppo->learning.control->range, ppo->norms->range,
                                       ppo->list->range, ppo->order->range};
    launch(graph, grt_kernel_desc(.name = "ppo_order", .specs = {{"WG", FLAT}}), epoch->places,
           &params, sizeof params, ranges, 4);
}

static void record_loss(struct grt_ppo *ppo, struct grt_graph *graph, uint32_t batch,
                        uint64_t first, uint64_t count) {
    const struct grt_ppo_desc *d = &ppo->desc;
    const struct ppo_actors *a = &ppo->learning;
    const struct ppo_loss_params params = {.shape = shape_of(a),
                                           .first = (uint32_t)first,
                                           .count = (uint32_t)count,
                                           .batch = batch,
                                           .batches = ppo->batches,
                                           .width = ppo->width,
                                           .acts_stride = (uint32_t)a->acts_stride,
                                           .clip = (float)d->clip,
                                           .value_clip = (float)d->value_clip,
                                           .value_weight = (float)d->value_weight,
                                           .entropy_weight = (float)d->entropy_weight};
    const struct grt_range ranges[] = {
        ppo->actor.y->range,
        ppo->critic.y->range,
        a->traj->range,
        unless(a->acts, a->traj->range),
        ppo->order->range,
        ppo->norms->range,
        ppo->log_std ? ppo->log_std->master.range : ppo->norms->range,
        ppo->state->range,
        ppo->actor.dy->range,
        ppo->critic.dy->range,
        unless(ppo->dlog_std, grt_op_unused(graph)),
        ppo->stats->range,
    };
    grt_op_launch(graph,
                  grt_kernel_desc(.name = d->precision == GRT_F32 ? "ppo_loss_f32" : "ppo_loss_16",
                                  .specs = {{"WG", grt_op_tree_wg(ppo->dev)},
                                            {"KIND", kind_of(ppo)},
                                            {"DISCRETE", ppo->sizes->choices > 0}}),
                  &params, sizeof params, ranges, 12, (const uint32_t[3]){ppo->groups, 1, 1});
}

void grt_ppo_record_gradients(struct grt_ppo *ppo, struct grt_graph *graph,
                              const struct ppo_epoch *epoch, uint32_t batch) {
    uint64_t first = batch * epoch->rows, behind = epoch->places - first;
    uint64_t count = behind < epoch->rows ? behind : epoch->rows;
    uint64_t left = count;  // rows of slopes of log_std
    if (ppo->records) {
        left = grt_ppo_learn_batch(ppo, graph, batch, first, count);
    } else {
        struct ppo_batch rows;
        grt_ppo_forward_batch(ppo, graph, first, count, &rows);
        record_loss(ppo, graph, batch, first, count);
        grt_ppo_backward_batch(ppo, graph, &rows);
    }
    if (ppo->log_std) {
        struct grt_tensor slopes = grt_ppo_rows(ppo->dlog_std, left);
        grt_op_colsum(graph,
                      grt_colsum_desc(.y = &ppo->log_std->grad, .x = &slopes,
                                      .scratch = unless(ppo->net.scratch, (struct grt_range){0})));
    }
}

struct grt_range grt_ppo_losses(const struct grt_ppo *ppo) {
    return grt_op_part(ppo->stats->range, (uint64_t)ppo->groups * PPO_STATS * 4,
                       (uint64_t)ppo->groups * 4);
}

void grt_ppo_record_update(struct grt_ppo *ppo, struct grt_graph *graph) {
    grt_op_update(graph,
                  grt_update_desc(.optim = &ppo->desc.optim, .params = &ppo->params,
                                  .kept = ppo->kept, .state = ppo->state, .history = ppo->history,
                                  .loss_parts = grt_ppo_losses(ppo), .loss_part_count = ppo->groups,
                                  .norm_parts = ppo->norm_parts, .average = ppo->average,
                                  .scaling = ppo->desc.precision == GRT_F16));
}

static struct grt_graph *bake(struct grt_graph *graph) {
    if (graph && !grt_graph_bake(graph)) {
        grt_graph_destroy(&graph);
    }
    return graph;
}

void grt_ppo_record_begin(struct grt_ppo *ppo, struct grt_graph *graph) {
    const uint32_t by = 1;
    grt_graph_fill(graph, ppo->stats->range, 0);
    grt_op_launch(graph, grt_kernel_desc(.name = "tick", .specs = {{"WG", 1}}), &by, sizeof by,
                  &ppo->learning.control->range, 1, (const uint32_t[3]){1, 1, 1});
}

void grt_ppo_record_end(struct grt_ppo *ppo, struct grt_graph *graph) {
    grt_ppo_record_observe(ppo, &ppo->learning, graph, ppo->desc.horizon);
    grt_op_worlds_totals(graph, ppo->desc.worlds, ppo->learning.totals->range);
    grt_ppo_say(ppo, graph, ppo->learning.totals);
}

void grt_ppo_record_worth(struct grt_ppo *ppo, struct grt_graph *graph) {
    record_values(ppo, graph);
    record_advantages(ppo, graph);
    record_list(ppo, graph);
    if (ppo->records) {
        grt_ppo_record_records(ppo, graph);
    }
    if (ppo->norm) {
        record_moment_sums(ppo, graph);
    }
    // With others the sums are those of all: ppo_share.c.
    if (ppo->desc.parts == 0) {
        grt_ppo_record_settle(ppo, graph, PPO_GROUPS, ppo->groups);
    }
}

static struct grt_graph *make_collect(struct grt_ppo *ppo) {
    struct grt_graph *graph = grt_graph_create(ppo->dev, "collect");
    if (!graph) {
        return NULL;
    }
    // One phase for each, so that their times are known.
    grt_graph_phase(graph, "act");
    grt_ppo_record_begin(ppo, graph);
    for (uint64_t t = 0; t < ppo->desc.horizon; t++) {
        grt_ppo_record_step(ppo, &ppo->learning, graph, t, PPO_DRAWN);
    }
    grt_ppo_record_end(ppo, graph);
    grt_graph_phase(graph, "value");
    grt_ppo_record_worth(ppo, graph);
    return bake(graph);
}

struct grt_graph *grt_ppo_make_epoch(struct grt_ppo *ppo, const struct ppo_epoch *epoch) {
    struct grt_graph *graph = grt_graph_create(ppo->dev, "epoch");
    if (!graph) {
        return NULL;
    }
    grt_graph_phase(graph, "update");
    record_order(ppo, graph, epoch);
    // With others the host is between gradients and updates: ppo_share.c.
    for (uint32_t batch = 0; ppo->desc.parts == 0 && batch < ppo->batches; batch++) {
        grt_ppo_record_gradients(ppo, graph, epoch, batch);
        grt_ppo_record_update(ppo, graph);
    }
    if (ppo->desc.parts == 0) {
        grt_ppo_say(ppo, graph, ppo->stats);
        grt_ppo_say(ppo, graph, ppo->state);
    }
    return bake(graph);
}

// A graph of its own: what was kept must be whole when a later one is given up.
static struct grt_graph *make_keep(struct grt_ppo *ppo) {
    struct grt_graph *graph = grt_graph_create(ppo->dev, "keep");
    if (graph) {
        grt_ppo_undo_record(ppo, graph);
    }
    return bake(graph);
}

bool grt_ppo_record(struct grt_ppo *ppo) {
    ppo->keep = make_keep(ppo);
    ppo->collect = make_collect(ppo);
    return ppo->keep && ppo->collect && grt_ppo_rungs_begin(ppo);
}
