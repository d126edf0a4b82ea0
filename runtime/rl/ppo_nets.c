// SPDX-License-Identifier: Apache-2.0
// The networks of PPO over rows of a trajectory: layer by layer on inputs that are gathered before,
// or, where the device has kernels for it, straight from where observations lie
// (nn/fused/mlp_rows.h).
#include <string.h>

#include "nn/layer_ops.h"
#include "ops/op_support.h"
#include "ppo_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_params.k"

#define WG 64          // lanes of a workgroup that gathers
#define MOST_LANES 32  // that share a row of inputs

struct grt_tensor grt_ppo_rows(const struct grt_tensor *t, uint64_t rows) {
    struct grt_tensor part = *t;
    part.shape[0] = rows;
    part.range.size = grt_tensor_bytes(&part);
    return part;
}

// What a network reads of rows of inputs.
static struct grt_tensor taken(const struct ppo_net *n, struct grt_graph *graph,
                               const struct grt_tensor *rows) {
    if (!n->tight) {
        return *rows;
    }
    struct grt_tensor x = grt_ppo_rows(n->tight, rows->shape[0]);
    grt_nn_columns(graph, &x, 0, rows, 0, x.shape[1]);
    return x;
}

// y = module(x) for the rows of x.
static void forward(struct grt_ppo *ppo, struct ppo_net *n, struct grt_graph *graph,
                    const struct grt_tensor *x, bool training) {
    const struct grt_pass pass = {.graph = graph, .training = training, .state = ppo->state->range};
    struct grt_tensor y = grt_ppo_rows(n->y, x->shape[0]);
    if (!n->y16) {
        grt_module_forward(n->module, &pass, x, &y);
        return;
    }
    struct grt_tensor y16 = grt_ppo_rows(n->y16, x->shape[0]);
    grt_module_forward(n->module, &pass, x, &y16);
    grt_op_convert(graph, &y, &y16);
}

static uint32_t words_of(const struct grt_tensor *rows) {
    return (uint32_t)(rows->shape[1] * grt_dtype_size(rows->dtype) / 4);
}

// Inputs of both networks for rows of the trajectory, from position `first` on.
static void record_inputs(struct grt_ppo *ppo, struct grt_graph *graph, uint64_t first,
                          uint64_t count, bool ordered, bool own, bool both) {
    const struct ppo_actors *a = &ppo->learning;
    const struct ppo_inputs_params params = {.first = (uint32_t)first,
                                             .count = (uint32_t)count,
                                             .rows = (uint32_t)a->rows,
                                             .agents = ppo->sizes->agents,
                                             .obs = ppo->sizes->obs,
                                             .whole = ppo->sizes->global,
                                             .obs_words = a->obs_words,
                                             .whole_words = a->whole_words,
                                             .obs_stride = (uint32_t)a->obs_stride,
                                             .whole_stride = (uint32_t)a->whole_stride,
                                             .own_words = words_of(ppo->actor.x),
                                             .both_words = words_of(ppo->critic.x)};
    const struct grt_range ranges[] = {a->obs->range, a->whole ? a->whole->range : a->obs->range,
                                       ppo->order->range,
                                       own ? ppo->actor.x->range : grt_op_unused_at(graph, 0),
                                       both ? ppo->critic.x->range : grt_op_unused_at(graph, 1)};
    // A lane is a thread's work on a CPU.
    uint32_t lanes = grt_dev_info(ppo->dev)->caps.software
                         ? 1
                         : grt_op_power_above(params.own_words, MOST_LANES);
    const uint32_t groups[3] = {(uint32_t)((count * lanes + WG - 1) / WG), 1, 1};
    grt_op_launch(graph,
                  grt_kernel_desc(.name = "ppo_inputs",
                                  .specs = {{"WG", WG},
                                            {"EACH", 4 / grt_dtype_size(ppo->net.dtype)},
                                            {"ORDERED", ordered},
                                            {"OWN", own},
                                            {"BOTH", both},
                                            {"LANES", lanes}}),
                  &params, sizeof params, ranges, 5, groups);
}

// ---- straight from where rows lie ----

static struct grt_row_part part_of(const struct grt_ppo *ppo, uint32_t numbers, uint64_t words,
                                   uint64_t stride) {
    uint32_t each = 4 / grt_dtype_size(ppo->net.dtype);
    return (struct grt_row_part){.numbers = numbers, .pitch = words * each, .step = stride * each};
}

// A network over rows of the copies, without rows and operands.
static struct grt_mlp_rows_desc apart(const struct grt_ppo *ppo, const struct ppo_net *n,
                                      const struct ppo_actors *a) {
    uint32_t far = n->whole ? ppo->sizes->global : 0;
    struct grt_mlp_rows_desc d = {
        .model = n->mlp, .dtype = ppo->net.dtype, .params = &ppo->params, .first = n->first_param};
    d.places.near = part_of(ppo, ppo->sizes->obs, a->obs_words, a->obs_stride);
    d.places.far = part_of(ppo, far, a->whole_words, a->whole_stride);
    d.places.near.range = a->obs ? a->obs->range : (struct grt_range){0};
    d.places.far.range = far > 0 && a->whole ? a->whole->range : (struct grt_range){0};
    d.places.period = a->rows;
    d.places.share = ppo->sizes->agents;
    return d;
}

void grt_ppo_declare_apart(struct grt_ppo *ppo, struct ppo_net *n) {
    const struct grt_shape in = {.rank = 1,
                                 .dim = {ppo->sizes->obs + (n->whole ? ppo->sizes->global : 0)}};
    if ((ppo->desc.variant && strcmp(ppo->desc.variant, "layers") == 0) ||
        !grt_mlp_of(n->module, &in, &n->mlp)) {
        return;
    }
    struct grt_mlp_rows_desc d = apart(ppo, n, &ppo->learning);
    d.rows = ppo->batch;
    if (!grt_mlp_rows_usable(ppo->dev, &d)) {
        return;
    }
    grt_net_scratch(&ppo->net, grt_mlp_rows_scratch(ppo->dev, &d));
    n->apart = true;
    // Of one choice there is nothing to learn.
    n->learns = !ppo->desc.variant && ppo->sizes->choices != 1 &&
                grt_mlp_rows_learns(ppo->dev, &d, &grt_ppo_learners[grt_ppo_head(ppo, n)]);
}

// When both are known.
void grt_ppo_declare_hidden(struct grt_ppo *ppo, struct ppo_net *n) {
    if (!n->apart || grt_ppo_learns(ppo)) {
        return;
    }
    struct grt_mlp_rows_desc d = apart(ppo, n, &ppo->learning);
    d.rows = ppo->batch;
    n->hidden = grt_plan_tensor(ppo->plan, grt_tensor_desc(.label = "hidden units", .group = "acts",
                                                           .dtype = GRT_U32,
                                                           .shape = {grt_mlp_rows_hidden(&d) / 4}));
}

// Rows of all steps, from position `first` on.
static struct grt_mlp_rows_desc apart_from(const struct grt_ppo *ppo, const struct ppo_net *n,
                                           uint64_t first, uint64_t count) {
    struct grt_mlp_rows_desc d = apart(ppo, n, &ppo->learning);
    d.places.first = first;
    d.rows = count;
    d.state = ppo->state->range;
    d.scratch = ppo->net.scratch ? ppo->net.scratch->range : (struct grt_range){0};
    return d;
}

// Those of a minibatch.
struct grt_mlp_rows_desc grt_ppo_apart_batch(const struct grt_ppo *ppo, const struct ppo_net *n,
                                             uint64_t first, uint64_t count) {
    struct grt_mlp_rows_desc d = apart_from(ppo, n, first, count);
    d.places.order = ppo->order->range;
    d.hidden = n->hidden ? n->hidden->range : (struct grt_range){0};
    return d;
}

// ---- either way ----

void grt_ppo_forward_actor(struct grt_ppo *ppo, struct ppo_actors *a, struct grt_graph *graph,
                           uint64_t step, uint64_t first, uint64_t count) {
    struct ppo_net *n = &ppo->actor;
    if (n->apart) {
        struct grt_mlp_rows_desc d = apart(ppo, n, a);
        struct grt_tensor y = grt_ppo_rows(n->y, count);
        d.places.first = step * a->rows + first;
        d.rows = count;
        d.y = &y;
        grt_op_mlp_rows_forward(graph, &d);
        return;
    }
    struct grt_tensor seen = grt_ppo_rows(n->x, count);
    uint64_t at = step * a->obs_stride + first * a->obs_words;
    seen.range = grt_op_part(a->obs->range, at * 4, seen.range.size);
    struct grt_tensor x = taken(n, graph, &seen);
    forward(ppo, n, graph, &x, false);
}

// Rows of x that were gathered for a network.
static struct grt_tensor gathered(const struct grt_ppo *ppo, const struct ppo_net *n,
                                  struct grt_graph *graph, uint64_t count) {
    struct grt_tensor x = grt_ppo_rows(n->whole ? ppo->critic.x : ppo->actor.x, count);
    return taken(n, graph, &x);
}

void grt_ppo_forward_critic(struct grt_ppo *ppo, struct grt_graph *graph, uint64_t first,
                            uint64_t count) {
    struct ppo_net *n = &ppo->critic;
    if (n->apart) {
        struct grt_mlp_rows_desc d = apart_from(ppo, n, first, count);
        struct grt_tensor y = grt_ppo_rows(n->y, count);
        d.y = &y;
        grt_op_mlp_rows_forward(graph, &d);
        return;
    }
    record_inputs(ppo, graph, first, count, false, !n->whole, n->whole);
    struct grt_tensor x = gathered(ppo, n, graph, count);
    forward(ppo, n, graph, &x, false);
}

void grt_ppo_forward_batch(struct grt_ppo *ppo, struct grt_graph *graph, uint64_t first,
                           uint64_t count, struct ppo_batch *batch) {
    bool own = !ppo->actor.apart || (!ppo->critic.apart && !ppo->critic.whole);
    bool both = !ppo->critic.apart && ppo->critic.whole;
    *batch = (struct ppo_batch){.first = first, .count = count};
    if (own || both) {
        record_inputs(ppo, graph, first, count, true, own, both);
    }
    struct ppo_net *const nets[] = {&ppo->actor, &ppo->critic};
    for (int i = 0; i < 2; i++) {
        struct ppo_net *n = nets[i];
        struct grt_tensor y = grt_ppo_rows(n->y, count);
        if (n->apart) {
            struct grt_mlp_rows_desc d = grt_ppo_apart_batch(ppo, n, first, count);
            d.y = &y;
            grt_op_mlp_rows_forward(graph, &d);
        } else {
            batch->x[i] = gathered(ppo, n, graph, count);
            forward(ppo, n, graph, &batch->x[i], true);
        }
    }
}

void grt_ppo_backward_batch(struct grt_ppo *ppo, struct grt_graph *graph,
                            const struct ppo_batch *batch) {
    const struct grt_pass pass = {.graph = graph, .training = true, .state = ppo->state->range};
    struct ppo_net *const nets[] = {&ppo->actor, &ppo->critic};
    for (int i = 0; i < 2; i++) {
        struct ppo_net *n = nets[i];
        struct grt_tensor dy = grt_ppo_rows(n->dy, batch->count);
        if (n->apart) {
            struct grt_mlp_rows_desc d = grt_ppo_apart_batch(ppo, n, batch->first, batch->count);
            d.dy = &dy;
            grt_op_mlp_rows_backward(graph, &d);
        } else {
            grt_module_backward(n->module, &pass, &batch->x[i], &dy, NULL, false);
        }
    }
}
