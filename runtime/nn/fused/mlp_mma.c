// SPDX-License-Identifier: Apache-2.0
// The fused MLP on NVIDIA's matrix units through OpenCL with PTX inside: cl/nvidia/mlp_pass_mma.k
// and mlp_grads_mma.k. Vulkan imports the pass as PTX, for losses alone.
#include "mlp_case.h"

#define OUTPUTS_PADDED 16u

static uint32_t inputs_padded(const struct mlp_case *c) {
    uint32_t padded = 16;
    while (padded < c->inputs) {
        padded *= 2;
    }
    return padded;
}

// What Hopper's other kernels need includes shared memory beyond 48 KiB.
static bool roomy(const struct mlp_case *c) {
    return grt_kernels_roomy(c->dev);
}

// ---- the pass: rows of a warp, warps of a workgroup ----

struct pass {
    uint32_t tiles, warps;  // tiles of 16 rows
};

// With 32 rows a warp reads the weights half as often, which pays where they are many; four warps
// share what is read, fewer where processors would stand idle. Microseconds of 65536 rows with
// (tiles, warps) on an H200 (driver 580.159.04, 2026-11): 12 layers of 128 (2, 4) 180, (2, 8) 203,
// (1, 4) 424; 6 of 64 (1, 4) 45, (2, 4) 48. Of 4096: 12 of 128 (2, 2) 62, (2, 1) 69, (1, 4) 72, (1,
// 2) 83, (1, 1) 98.
static struct pass choose_pass(const struct mlp_case *c) {
    struct pass s = {c->width == 128 ? 2 : 1, 4};
    while (s.warps > 2 && c->tiled < mlp_units(c->dev) * s.warps * s.tiles * 16) {
        s.warps /= 2;
    }
    return s;
}

// ---- the gradients: a tile of weights for a workgroup ----

struct grads {
    uint32_t wm, wn;  // of a warp
    uint32_t bk, stages;
    uint32_t tiles;
};

static struct grads choose_grads(const struct mlp_case *c) {
    uint32_t warp = c->width <= 32 ? 16 : c->width / 2;
    uint32_t first = mlp_ceil_div(inputs_padded(c), c->width);
    uint32_t bk = c->width <= 64 ? 64 : 32;
    return (struct grads){warp, warp, bk, roomy(c) ? 4 : 2, first + c->depth};
}

static uint32_t grads_warps(const struct mlp_case *c, const struct grads *g) {
    return c->width / g->wm * (c->width / g->wn);
}

static void plan(const struct mlp_case *c, struct mlp_plan *p) {
    struct pass pass = choose_pass(c);
    struct grads grads = choose_grads(c);
    uint32_t block = pass.warps * pass.tiles * 16;
    p->blocks = mlp_ceil_div(c->rows, block);
    p->padded = p->blocks * block;
    // Two workgroups a processor, more of small ones.
    uint32_t at_once = mlp_units(c->dev) * (c->width >= 64 ? 2 : 6);
    mlp_cut(p, at_once / grads.tiles, grads.bk);
    uint32_t layers = (c->desc->model.act == GRT_ACT_RELU ? 2 : 3) * c->depth;  // h, d and slopes
    uint64_t row = inputs_padded(c) + (uint64_t)layers * c->width + OUTPUTS_PADDED;
    p->units_bytes = p->most_units = row * p->padded * 2;
}

static bool usable(const struct mlp_case *c) {
    bool imports = grt_dev_info(c->dev)->caps.imports;
    return (c->desc->dtype == GRT_F16 || c->desc->dtype == GRT_BF16) && (!imports || c->judged) &&
           grt_kernel_builds(c->dev, imports ? "probe_wgmma_48k" : "probe_mma");
}

static bool better(const struct mlp_case *c) {
    (void)c;
    return true;
}

static void record_pass(struct grt_graph *graph, const struct mlp_call *call) {
    const struct mlp_case *c = call->c;
    struct pass pass = choose_pass(c);
    const struct grt_spec pass_specs[] = {{"WG", pass.warps * 32},
                                          {"KIND", c->desc->dtype == GRT_BF16},
                                          {"KEEP", mlp_keep(c)},
                                          {"MT", pass.tiles},
                                          {"BUFS", c->width < 128 || roomy(c) ? 2 : 1},
                                          {"ORDERED", c->ordered}};
    const struct grt_range pass_ranges[] = {call->x,       call->target, call->weights,
                                            call->masters, call->units,  call->y,
                                            call->losses,  call->state,  call->order};
    const uint32_t pass_groups[3] = {call->plan.blocks, 1, 1};
    mlp_launch(graph, call, "mlp_pass_mma", pass_specs, sizeof pass_specs / sizeof pass_specs[0],
               pass_ranges, sizeof pass_ranges / sizeof pass_ranges[0], pass_groups);
}

static void record_grads(struct grt_graph *graph, const struct mlp_call *call) {
    const struct mlp_case *c = call->c;
    struct grads grads = choose_grads(c);
    const struct grt_spec grads_specs[] = {{"WG", grads_warps(c, &grads) * 32},
                                           {"KIND", c->desc->dtype == GRT_BF16},
                                           {"WM", grads.wm},
                                           {"WN", grads.wn},
                                           {"BK", grads.bk},
                                           {"STAGES", grads.stages}};
    const struct grt_range grads_ranges[] = {call->units, call->sums};
    const uint32_t grads_groups[3] = {grads.tiles, call->plan.parts, 1};
    mlp_launch(graph, call, "mlp_grads_mma", grads_specs,
               sizeof grads_specs / sizeof grads_specs[0], grads_ranges, 2, grads_groups);
}

const struct mlp_variant mlp_variant_mma = {"mma",  16,   128,         usable,
                                            better, plan, record_pass, record_grads};
