// SPDX-License-Identifier: Apache-2.0
// The fused MLP of narrow layers on Hopper with forward, backward and weight gradients in one
// launch, through OpenCL, and through Vulkan, which imports the kernel as PTX:
// cl/nvidia/mlp_step_mma.k.
#include "mlp_case.h"

#define LANES 256u
#define BLOCK (LANES / 2)  // rows
#define OUTPUTS_PADDED 16u
#define SHARED (227u << 10)
#define SUMS 112u  // of gradients, that a lane has registers for

static uint32_t inputs_padded(const struct mlp_case *c) {
    uint32_t padded = 16;
    while (padded < c->inputs) {
        padded *= 2;
    }
    return padded;
}

// What a lane holds, as the kernel cuts it.
static uint32_t sums_held(const struct mlp_case *c) {
    uint32_t across = c->width > 32 ? c->width / 32 : 1, team = c->width / 16 * across;
    uint32_t first = inputs_padded(c) / across;
    uint32_t columns =
        (first > 16 ? first : 16) + (c->depth - 1) * (c->width / across) + c->width / team;
    return (columns / 8 + c->depth / 8 + 1) * 4;
}

// All weights, and of a block's rows x, units of all layers, gradients of two, and of the outputs;
// then a number of each lane.
static uint64_t shared_bytes(const struct mlp_case *c) {
    uint64_t inputs = inputs_padded(c), width = c->width;
    uint64_t weights = width * (inputs + (c->depth - 1) * width + OUTPUTS_PADDED);
    uint64_t row = inputs + (c->depth + 2) * width + OUTPUTS_PADDED;
    return (weights + BLOCK * row) * 2 + LANES * 4;
}

static bool usable(const struct mlp_case *c) {
    return (c->desc->dtype == GRT_F16 || c->desc->dtype == GRT_BF16) && !c->alone &&
           c->desc->model.act == GRT_ACT_RELU && sums_held(c) <= SUMS &&
           shared_bytes(c) <= SHARED && grt_kernels_roomy(c->dev);
}

static bool better(const struct mlp_case *c) {
    (void)c;
    return true;
}

// Workgroups: as many as run at once, if registers allow two of the narrow ones.
static uint32_t most_groups(const struct mlp_case *c) {
    return mlp_units(c->dev) * (c->width >= 32 ? 1 : 2);
}

static void plan(const struct mlp_case *c, struct mlp_plan *p) {
    uint32_t blocks = mlp_ceil_div(c->rows, BLOCK);
    uint32_t most = c->desc->groups ? c->desc->groups : most_groups(c);
    // As many as take equally many blocks.
    uint32_t turns = mlp_ceil_div(blocks, most);
    *p = (struct mlp_plan){.padded = blocks * BLOCK, .chunk = BLOCK};
    p->parts = p->blocks = mlp_ceil_div(blocks, turns);
    p->most_parts = most_groups(c);
}

static void record_pass(struct grt_graph *graph, const struct mlp_call *call) {
    const struct mlp_case *c = call->c;
    const struct grt_spec specs[] = {{"WG", LANES},
                                     {"KIND", c->desc->dtype == GRT_BF16},
                                     {"KEEP", mlp_keep(c)},
                                     {"ORDERED", c->ordered}};
    const struct grt_range ranges[] = {call->x,       call->target, call->weights,
                                       call->masters, call->sums,   call->y,
                                       call->losses,  call->state,  call->order};
    const uint32_t groups[3] = {call->plan.parts, 1, 1};
    mlp_launch(graph, call, "mlp_step_mma", specs, sizeof specs / sizeof specs[0], ranges,
               sizeof ranges / sizeof ranges[0], groups);
}

const struct mlp_variant mlp_variant_step = {"step", 16,   64,          usable,
                                             better, plan, record_pass, NULL};
