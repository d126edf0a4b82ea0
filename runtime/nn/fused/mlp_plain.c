// SPDX-License-Identifier: Apache-2.0
// The fused MLP in f32 for CPU drivers: shaders/mlp/mlp_pass_f32.k and mlp_grads_f32.k.
#include "mlp_case.h"

// Numbers of a row that the pass leaves: what goes into each layer, gradients of what comes out.
static uint32_t row_units(const struct mlp_case *c) {
    return c->inputs + 2 * c->depth * c->width + c->outputs;
}

static uint32_t lanes(const struct mlp_case *c) {
    const struct grt_caps *caps = &grt_dev_info(c->dev)->caps;
    return grt_dev_info(c->dev)->backend == GRT_BACKEND_VULKAN && caps->subgroup ? caps->subgroup
                                                                                 : 1;
}

// How often a lane may take four rows. llvmpipe leaves all loops of a kernel when they have gone
// round 65535 times together (Mesa 22.3): 65536 rows through 3 layers of 32 had gradients off by
// 0.13. The sum counts every loop of the pass, whether or not the compiler unrolls it.
static uint32_t most_turns(const struct mlp_case *c) {
    uint32_t w = c->width, behind = c->depth - 1, inputs = 3 * c->inputs + 8;
    uint32_t there = w / 4 * (c->inputs + 1) + behind * (w / 4) * (w / 4 + 1);
    uint32_t outputs = 2 * w + c->outputs * (w / 2 + 16);
    uint32_t back = behind * (w / 8 * (w + 1) + w);
    bool limited = grt_dev_info(c->dev)->backend == GRT_BACKEND_VULKAN;
    uint32_t turns = 65000 / (inputs + there + outputs + back + 2 * c->depth);
    return !limited ? 1u << 30 : turns > 1 ? turns : 1;
}

// A lane has four rows of everything in its own memory, which a GPU has not.
static void plan(const struct mlp_case *c, struct mlp_plan *p) {
    uint32_t quads = mlp_ceil_div(c->rows, 4), wg = lanes(c);
    // Several groups a core, so that none waits long for the others.
    uint32_t groups = mlp_ceil_div(quads, wg), least = mlp_ceil_div(groups, most_turns(c));
    uint32_t most = c->desc->groups ? c->desc->groups : 8 * mlp_units(c->dev);
    most = most > least ? most : least;
    p->padded = quads * 4;
    p->blocks = (groups < most ? groups : most) * wg;
    p->parts = p->most_parts = mlp_ceil_div(c->rows, 2048);
    p->chunk = mlp_ceil_div(quads, p->parts) * 4;
    p->units_bytes = p->most_units = (uint64_t)row_units(c) * p->padded * 4;
}

static bool usable(const struct mlp_case *c) {
    const struct grt_caps *caps = &grt_dev_info(c->dev)->caps;
    struct mlp_plan p;
    plan(c, &p);
    uint64_t texels = p.units_bytes / 16;
    return c->desc->dtype == GRT_F32 && caps->software && texels <= UINT32_MAX &&
           (caps->max_binding == 0 || p.units_bytes <= caps->max_binding) &&
           texels <= caps->max_texels;
}

static bool better(const struct mlp_case *c) {
    return c->width <= 32;
}

static uint32_t tiles(uint32_t from, uint32_t to) {
    return mlp_ceil_div(from, 4) * mlp_ceil_div(to, 4);
}

static void record_pass(struct grt_graph *graph, const struct mlp_call *call) {
    const struct mlp_case *c = call->c;
    uint32_t wg = lanes(c);
    const struct grt_spec pass_specs[] = {
        {"WG", wg}, {"VEC", c->inputs % 4 == 0}, {"KEEP", mlp_keep(c)}, {"ORDERED", c->ordered}};
    const struct grt_range pass_ranges[] = {call->x, call->target, call->weights, call->units,
                                            call->y, call->losses, call->state,   call->order,
                                            call->x, call->weights};
    const uint32_t pass_groups[3] = {call->plan.blocks / wg, 1, 1};
    mlp_launch(graph, call, "mlp_pass_f32", pass_specs, 4, pass_ranges, 10, pass_groups);
}

static void record_grads(struct grt_graph *graph, const struct mlp_call *call) {
    const struct mlp_case *c = call->c;
    uint32_t wg = lanes(c);
    uint32_t all = tiles(c->inputs, c->width) + (c->depth - 1) * tiles(c->width, c->width) +
                   tiles(c->width, c->outputs);
    const struct grt_spec grads_specs[] = {{"WG", wg}};
    const struct grt_range grads_ranges[] = {call->units, call->sums};
    const uint32_t grads_groups[3] = {mlp_ceil_div(all, wg), call->plan.parts, 1};
    mlp_launch(graph, call, "mlp_grads_f32", grads_specs, 1, grads_ranges, 2, grads_groups);
}

const struct mlp_variant mlp_variant_plain = {"plain", 16,   128,         usable,
                                              better,  plan, record_pass, record_grads};
