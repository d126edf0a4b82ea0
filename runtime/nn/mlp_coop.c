// SPDX-License-Identifier: Apache-2.0
// The fused MLP on the matrix unit through Vulkan's KHR cooperative matrices: shaders/mlp/mlp_pass_coop.k and
// mlp_grads_coop.k.
#include "mlp_case.h"

#define OUTPUTS_PADDED 16u

// ---- the pass ----

struct pass {
    uint32_t width;
    uint32_t rows;          // of a workgroup
    uint32_t down, across;  // subgroups
    uint32_t slab;          // columns of weights in shared memory at once
};

// Blocks of many rows read the weights seldom; where they would leave processors idle, the second row of a
// width serves. Two workgroups of a processor want no more than 24 KiB each (H200).
static const struct pass passes[] = {
    {16, 128, 8, 1, 16}, {16, 32, 2, 1, 16}, {32, 64, 4, 1, 32},   {32, 32, 2, 2, 32},
    {64, 64, 4, 2, 32},  {64, 32, 2, 4, 64}, {128, 128, 2, 4, 32}, {128, 32, 1, 8, 32},
};

static const struct pass *choose_pass(const struct mlp_case *c) {
    const struct pass *p = passes;
    while (p->width != c->width) {
        p += 2;
    }
    return c->rows < p->rows * mlp_units(c) ? p + 1 : p;
}

static uint32_t inputs_padded(const struct mlp_case *c) {
    uint32_t padded = choose_pass(c)->slab;
    while (padded < c->inputs) {
        padded *= 2;
    }
    return padded;
}

// ---- the gradients ----

struct grads {
    uint32_t blocks;  // of 16 x 16 weights of a subgroup, down and across
    uint32_t deep;    // rows at once
    uint32_t subgroups, tiles;
};

static struct grads choose_grads(const struct mlp_case *c) {
    uint32_t blocks = c->width <= 32 ? 1 : c->width / 32;
    uint32_t side = c->width / 16 / blocks;
    return (struct grads){blocks, c->width <= 64 ? 64 : 32, side * side,
                          mlp_ceil_div(inputs_padded(c), c->width) + c->depth};
}

static void plan(const struct mlp_case *c, struct mlp_plan *p) {
    const struct pass *pass = choose_pass(c);
    struct grads grads = choose_grads(c);
    p->blocks = mlp_ceil_div(c->rows, pass->rows);
    p->padded = p->blocks * pass->rows;
    uint32_t at_once = mlp_units(c) * (c->width >= 64 ? 2 : 6);
    mlp_cut(p, at_once / grads.tiles, grads.deep);
    uint64_t row = inputs_padded(c) + 2ull * c->depth * c->width + OUTPUTS_PADDED;
    p->units_bytes = row * p->padded * 2;
}

static bool has_shape(const struct grt_caps *caps) {
    for (uint32_t i = 0; i < caps->matrix_shape_count; i++) {
        const struct grt_matrix_shape *s = &caps->matrix_shapes[i];
        if (s->in == GRT_F16 && s->out == GRT_F32 && s->m == 16 && s->n == 16 && s->k == 16) {
            return true;
        }
    }
    return false;
}

// The largest kernel has 8 subgroups and 45 KiB of shared memory.
static bool usable(const struct mlp_case *c) {
    const struct grt_caps *caps = &c->dev->info.caps;
    struct mlp_plan p;
    plan(c, &p);
    return c->desc->dtype == GRT_F16 && c->desc->model.act == GRT_ACT_RELU &&
           (caps->subgroup == 16 || caps->subgroup == 32) && caps->f16_storage && has_shape(caps) &&
           grt_kernel_exists(c->dev, "mlp_pass_coop") && caps->max_wg >= 8 * caps->subgroup &&
           caps->shmem >= 46 * 1024 &&
           (caps->max_binding == 0 || p.units_bytes <= caps->max_binding);
}

static bool better(const struct mlp_case *c) {
    (void)c;
    return true;
}

static void record_pass(struct grt_graph *graph, const struct mlp_call *call) {
    const struct mlp_case *c = call->c;
    const struct pass *pass = choose_pass(c);
    uint32_t lanes = c->dev->info.caps.subgroup;
    uint32_t aligned = (c->inputs % 8 == 0 ? 1u : 0u) | (c->inputs % 4 == 0 ? 2u : 0u);
    const struct grt_spec pass_specs[] = {{"WG", pass->down * pass->across * lanes},
                                          {"IP", inputs_padded(c)},
                                          {"LANES", lanes},
                                          {"ROWS", pass->rows},
                                          {"DOWN", pass->down},
                                          {"ACROSS", pass->across},
                                          {"SLAB", pass->slab},
                                          {"ALIGNED", aligned},
                                          {"KEEP", c->desc->y != NULL}};
    const struct grt_range pass_ranges[] = {call->x,     call->target, call->weights, call->masters,
                                            call->units, call->y,      call->losses,  call->state};
    const uint32_t pass_groups[3] = {call->plan.blocks, 1, 1};
    mlp_launch(graph, call, "mlp_pass_coop", pass_specs, sizeof pass_specs / sizeof pass_specs[0],
               pass_ranges, sizeof pass_ranges / sizeof pass_ranges[0], pass_groups);
}

static void record_grads(struct grt_graph *graph, const struct mlp_call *call) {
    const struct mlp_case *c = call->c;
    struct grads grads = choose_grads(c);
    uint32_t lanes = c->dev->info.caps.subgroup;
    const struct grt_spec grads_specs[] = {{"WG", grads.subgroups * lanes},
                                           {"IP", inputs_padded(c)},
                                           {"LANES", lanes},
                                           {"DEEP", grads.deep},
                                           {"MI", grads.blocks},
                                           {"NI", grads.blocks}};
    const struct grt_range grads_ranges[] = {call->units, call->sums};
    const uint32_t grads_groups[3] = {grads.tiles, call->plan.parts, 1};
    mlp_launch(graph, call, "mlp_grads_coop", grads_specs,
               sizeof grads_specs / sizeof grads_specs[0], grads_ranges, 2, grads_groups);
}

const struct mlp_variant mlp_variant_coop = {"coop", usable,      better,
                                             plan,   record_pass, record_grads};
