// SPDX-License-Identifier: Apache-2.0
// The fused MLP with 256 or 512 units a layer on Hopper's matrix units, through OpenCL, and through
// Vulkan, which imports the kernels as PTX: cl/nvidia/mlp_pass_wgmma.k and mlp_grads_wgmma.k.
#include "cl/nvidia/lib/wgmma_limits.k"
#include "mlp_case.h"

#define BLOCK 64u  // rows of a warpgroup
#define LEAST 64u  // columns of what the pass leaves

static uint32_t inputs_padded(const struct mlp_case *c) {
    return c->inputs <= LEAST ? LEAST : 2 * LEAST;
}

// Warpgroups that multiply: two read the weights half as often, one where processors would stand
// idle. Microseconds of a step with 4096 rows with one and two on an H200 (OpenCL, driver
// 580.159.04, 2026-11): 6 layers of 256 68 and 84, 8 of 512 254 and 341.
static uint32_t workers(const struct mlp_case *c) {
    return c->tiled < 2 * BLOCK * mlp_units(c->dev) ? 1 : 2;
}

// Workgroups that have tensor maps of their own.
static uint32_t places(const struct mlp_case *c) {
    uint32_t units = mlp_units(c->dev);
    return units < MOST_GROUPS ? units : MOST_GROUPS;
}

static uint32_t grads_tiles(const struct mlp_case *c) {
    uint32_t down = c->width / 128, across = c->width / 256;
    return down + (c->depth - 1) * down * across + across;
}

static void plan(const struct mlp_case *c, struct mlp_plan *p) {
    uint32_t rows = workers(c) * BLOCK;
    p->padded = mlp_ceil_div(c->rows, rows) * rows;
    p->blocks = p->padded / 16;  // a warp leaves one
    mlp_cut(p, places(c) / grads_tiles(c), BLOCK);
    uint32_t layers = (c->desc->model.act == GRT_ACT_RELU ? 2 : 3) * c->depth;  // h, d and slopes
    uint64_t row = (inputs_padded(c) + (uint64_t)layers * c->width + LEAST) * 2;
    p->units_bytes = row * p->padded;
    p->most_units = row * mlp_ceil_div(c->rows, 2 * BLOCK) * 2 * BLOCK;
}

// 512 units lie in shared memory, and take the way through the scratch, which is not there forward
// alone. The copy engine reads rows that are multiples of 16 bytes.
static bool usable(const struct mlp_case *c) {
    return (c->desc->dtype == GRT_F16 || c->desc->dtype == GRT_BF16) && c->inputs % 8 == 0 &&
           (c->width == 256 ? grt_kernel_builds(c->dev, "probe_wgmma_48k")
                            : !c->alone && grt_kernels_roomy(c->dev));
}

// Layer by layer what goes back needs no place of its own for each layer: where that would be more
// than a quarter of the memory that may be taken, memory decides. A workgroup reads all weights for
// its 64 rows, which few rows of 512 units do not pay for. Microseconds of a step fused and layer
// by layer, 8 of 512, Vulkan and OpenCL (H200, driver 580.159.04, 2026-11): 64 rows 183, 136 and
// 190, 177; 256 194, 155 and 192, 195; 1024 198, 246 and 195, 257. 6 of 256, 64 rows: 55, 86 and
// 52, 111.
static bool better(const struct mlp_case *c) {
    struct mlp_plan p;
    plan(c, &p);
    uint64_t memory = grt_dev_mem_most(c->dev);  // 0: not known
    return c->alone ||
           ((memory == 0 || p.units_bytes <= memory / 4) && (c->width == 256 || c->tiled >= 512));
}

static void record_pass(struct grt_graph *graph, const struct mlp_call *call) {
    const struct mlp_case *c = call->c;
    // A slab has 128 columns. Beside the ring lie the weights of 8 or 16 outputs, and 512 units.
    // Microseconds of a step with 65536 rows by 6 layers of 256 with (SLAB, STAGES), as above: (64,
    // 12) 338, (32, 24) 342, (64, 5) 362, (32, 5) 386.
    bool large = grt_kernels_roomy(c->dev);
    uint32_t stages = c->width == 512 ? (workers(c) > 1 ? 5 : 8)
                      : large         ? 12
                                      : (c->outputs <= 8 ? 5 : 4);
    uint32_t rows = workers(c) * BLOCK, blocks = call->plan.padded / rows;
    const struct grt_spec specs[] = {{"WG", (workers(c) + 1) * 128},
                                     {"KIND", c->desc->dtype == GRT_BF16},
                                     {"KEEP", mlp_keep(c)},
                                     {"SLAB", large ? 64 : 32},
                                     {"STAGES", stages},
                                     {"ORDERED", c->ordered}};
    const struct grt_range ranges[] = {call->x,       call->target, call->weights,
                                       call->masters, call->units,  call->y,
                                       call->losses,  call->state,  call->order};
    uint32_t most = c->desc->groups ? c->desc->groups : places(c);
    const uint32_t groups[3] = {blocks < most ? blocks : most, 1, 1};
    mlp_launch(graph, call, "mlp_pass_wgmma", specs, sizeof specs / sizeof specs[0], ranges,
               sizeof ranges / sizeof ranges[0], groups);
}

static void record_grads(struct grt_graph *graph, const struct mlp_call *call) {
    const struct mlp_case *c = call->c;
    bool large = grt_kernels_roomy(c->dev);
    // As above, with (ROWS, STAGES): (64, 4) 338, (32, 8) 348, (16, 3) 395.
    const struct grt_spec specs[] = {{"WG", 384},
                                     {"KIND", c->desc->dtype == GRT_BF16},
                                     {"ROWS", large ? 64 : 16},
                                     {"STAGES", large ? 4 : 3}};
    const struct grt_range ranges[] = {call->units, call->sums};
    const uint32_t groups[3] = {grads_tiles(c) * call->plan.parts, 1, 1};
    mlp_launch(graph, call, "mlp_grads_wgmma", specs, sizeof specs / sizeof specs[0], ranges, 2,
               groups);
}

static const char *kernels(const struct mlp_case *c) {
    return grt_kernels_roomy(c->dev) ? "" : ", in 48 KiB";
}

const struct mlp_variant mlp_variant_wgmma = {"wgmma", 256,         512,          usable, better,
                                              plan,    record_pass, record_grads, kernels};
