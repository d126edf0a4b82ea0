// SPDX-License-Identifier: Apache-2.0
// The fused MLP on the matrix unit through Vulkan's cooperative matrices, two ways to do the pass:
// "coop", KHR's alone (shaders/mlp/mlp_pass_coop.k), and "chain", where sums can be operands too
// (mlp_pass_chain.k). The gradients are the same (mlp_grads_coop.k).
#include "mlp_case.h"

#define OUTPUTS_PADDED 16u

static uint32_t padded_from(uint32_t padded, uint32_t inputs) {
    while (padded < inputs) {
        padded *= 2;
    }
    return padded;
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

// What both passes and the gradients need. The largest kernels have 16 subgroups or 45 KiB of
// shared memory.
static bool runs(const struct mlp_case *c, const char *kernel, uint64_t units_bytes) {
    const struct grt_caps *caps = &grt_dev_info(c->dev)->caps;
    return c->desc->dtype == GRT_F16 && (caps->subgroup == 16 || caps->subgroup == 32) &&
           caps->f16_storage && has_shape(caps) && grt_kernel_exists(c->dev, kernel) &&
           caps->max_wg >= 16 * caps->subgroup && caps->shmem >= 46 * 1024 &&
           (caps->max_binding == 0 || units_bytes <= caps->max_binding);
}

// Which rows of x and of the first layer are whole vectors.
static uint32_t aligned(const struct mlp_case *c) {
    return (c->inputs % 8 == 0 ? 1u : 0u) | (c->inputs % 4 == 0 ? 2u : 0u);
}

static void launch_pass(struct grt_graph *graph, const struct mlp_call *call, const char *kernel,
                        const struct grt_spec *specs, uint32_t spec_count) {
    const struct grt_range ranges[] = {call->x,       call->target, call->weights,
                                       call->masters, call->units,  call->y,
                                       call->losses,  call->state,  call->order};
    const uint32_t groups[3] = {call->plan.blocks, 1, 1};
    mlp_launch(graph, call, kernel, specs, spec_count, ranges, sizeof ranges / sizeof ranges[0],
               groups);
}

// ---- the gradients ----

struct grads {
    uint32_t down, across;  // blocks of 16 x 16 weights of a subgroup
    uint32_t deep;          // rows at once
};

// Microseconds of 65536 rows with (down, across, deep) on an H200 (driver 580.159.04, 2026-11), the
// last launch included: 12 layers of 128 (4, 4, 32) 150, (2, 2, 32) 193, (4, 2, 32) 197, (4, 4, 16)
// 184, (2, 4, 64) 186; 6 of 64 (1, 1, 64) 49, (2, 1, 64) 50, (2, 2, 64) 53, (1, 1, 32) 61, (1, 1,
// 128) 56.
static struct grads choose_grads(const struct mlp_case *c) {
    return c->width == 128 ? (struct grads){4, 4, 32} : (struct grads){1, 1, 64};
}

// Of WIDTH x WIDTH weights.
static uint32_t grads_tiles(const struct mlp_case *c, uint32_t inputs) {
    return mlp_ceil_div(inputs, c->width) + c->depth;
}

// With blocks of `rows` rows, `inputs` columns of x and `slopes` layers of slopes.
static void plan_grads(const struct mlp_case *c, struct mlp_plan *p, uint32_t rows, uint32_t inputs,
                       uint32_t slopes) {
    p->blocks = mlp_ceil_div(c->rows, rows);
    p->padded = p->blocks * rows;
    // Workgroups of a processor. Microseconds of 65536 rows (as below): 3 layers of 16 with 3 20, 2
    // 22, 6 22, 12 31; 6 of 64 with 2 49, 1 61, 4 56; 12 of 128 with 2 150, 1 210, 3 204.
    uint32_t at_once = mlp_units(c->dev) * (c->width >= 64 ? 2 : 3);
    mlp_cut(p, at_once / grads_tiles(c, inputs), choose_grads(c).deep);
    uint64_t rest = (2ull * c->depth + slopes) * c->width + OUTPUTS_PADDED;
    p->units_bytes = (inputs + rest) * p->padded * 2;
    // Fewer rows may be another row of another table.
    p->most_units = (padded_from(64, c->inputs) + rest) * mlp_ceil_div(c->rows, 256) * 256 * 2;
}

static void launch_grads(struct grt_graph *graph, const struct mlp_call *call, uint32_t inputs) {
    const struct mlp_case *c = call->c;
    struct grads grads = choose_grads(c);
    uint32_t lanes = grt_dev_info(c->dev)->caps.subgroup;
    uint32_t subgroups = c->width / 16 / grads.down * (c->width / 16 / grads.across);
    const struct grt_spec specs[] = {{"WG", subgroups * lanes}, {"IP", inputs},
                                     {"LANES", lanes},          {"DEEP", grads.deep},
                                     {"MI", grads.down},        {"NI", grads.across}};
    const struct grt_range ranges[] = {call->units, call->sums};
    const uint32_t groups[3] = {grads_tiles(c, inputs), call->plan.parts, 1};
    mlp_launch(graph, call, "mlp_grads_coop", specs, sizeof specs / sizeof specs[0], ranges, 2,
               groups);
}

// ---- coop ----

struct coop {
    uint32_t width;
    uint32_t rows;          // of a workgroup
    uint32_t down, across;  // subgroups
    uint32_t slab;          // columns of weights in shared memory at once
};

// Blocks of many rows read the weights seldom; where they would leave processors idle, the second
// row of a width serves. Two workgroups of a processor want no more than 24 KiB each (H200).
static const struct coop coops[] = {
    {16, 128, 8, 1, 16}, {16, 32, 2, 1, 16}, {32, 64, 4, 1, 32},   {32, 32, 2, 2, 32},
    {64, 64, 4, 2, 32},  {64, 32, 2, 4, 64}, {128, 128, 2, 4, 32}, {128, 32, 1, 8, 32},
};

// Of the way forward alone. The launches of a validation, 196608 and 3392 rows by 6 layers of 64,
// take 43 us in the mean, with the row of the table 47 (H200, driver 580.159.04, 2026-11).
static const struct coop alone = {64, 128, 4, 2, 32};

static const struct coop *choose_coop(const struct mlp_case *c) {
    const struct coop *p = coops;
    if (c->alone && c->width == alone.width && c->tiled >= alone.rows * mlp_units(c->dev)) {
        return &alone;
    }
    while (p->width != c->width) {
        p += 2;
    }
    return c->tiled < p->rows * mlp_units(c->dev) ? p + 1 : p;
}

static uint32_t coop_inputs(const struct mlp_case *c) {
    return padded_from(choose_coop(c)->slab, c->inputs);
}

static void coop_plan(const struct mlp_case *c, struct mlp_plan *p) {
    plan_grads(c, p, choose_coop(c)->rows, coop_inputs(c), 0);
}

static bool coop_usable(const struct mlp_case *c) {
    struct mlp_plan p;
    coop_plan(c, &p);
    return c->desc->model.act == GRT_ACT_RELU && runs(c, "mlp_pass_coop", p.units_bytes);
}

static bool coop_better(const struct mlp_case *c) {
    (void)c;
    return true;
}

static void coop_pass(struct grt_graph *graph, const struct mlp_call *call) {
    const struct mlp_case *c = call->c;
    const struct coop *pass = choose_coop(c);
    uint32_t lanes = grt_dev_info(c->dev)->caps.subgroup;
    const struct grt_spec specs[] = {{"WG", pass->down * pass->across * lanes},
                                     {"IP", coop_inputs(c)},
                                     {"LANES", lanes},
                                     {"ROWS", pass->rows},
                                     {"DOWN", pass->down},
                                     {"ACROSS", pass->across},
                                     {"SLAB", pass->slab},
                                     {"ALIGNED", aligned(c)},
                                     {"KEEP", mlp_keep(c)},
                                     {"ORDERED", c->ordered}};
    launch_pass(graph, call, "mlp_pass_coop", specs, sizeof specs / sizeof specs[0]);
}

static void coop_grads(struct grt_graph *graph, const struct mlp_call *call) {
    launch_grads(graph, call, coop_inputs(call->c));
}

const struct mlp_variant mlp_variant_coop = {"coop",      16,        128,       coop_usable,
                                             coop_better, coop_plan, coop_pass, coop_grads};

// ---- chain ----

struct chain {
    uint32_t tiles, subgroups;  // of 16 rows each has; in a workgroup
    uint32_t cols, chunk;       // columns in shared memory at once; and of sums
};

// Microseconds of 65536 rows with (tiles, subgroups, cols, chunk), as above: 12 layers of 128 (2,
// 8, 64, 32) 190, (2, 8, 64, 64) 197, (2, 4, 32, 32) 210, (2, 8, 32, 32) 226, (2, 4, 64, 32) 251,
// and 353 by "coop"; 6 of 64 (1, 8, 64, 64) 41, (1, 8, 64, 32) 42, (2, 4, 64, 32) 42, (2, 8, 64,
// 32) 44, "coop" 58; 3 of 16 (2, 4, 16, 16) 10, "coop" 12.
static struct chain choose_chain(const struct mlp_case *c) {
    bool many = c->tiled >= mlp_units(c->dev) * 256;
    return c->width == 128  ? (many ? (struct chain){2, 8, 64, 32} : (struct chain){2, 4, 32, 32})
           : c->width == 16 ? (struct chain){2, 4, 16, 16}
                            : (struct chain){1, 8, c->width, c->width};
}

static uint32_t chain_rows(const struct mlp_case *c) {
    struct chain s = choose_chain(c);
    return s.tiles * s.subgroups * 16;
}

static uint32_t chain_inputs(const struct mlp_case *c) {
    return padded_from(16, c->inputs);
}

static void chain_plan(const struct mlp_case *c, struct mlp_plan *p) {
    plan_grads(c, p, chain_rows(c), chain_inputs(c),
               c->desc->model.act == GRT_ACT_RELU ? 0 : c->depth);
}

// It does not end with losses alone: with that written into it, 12 layers of 128 took five times as
// long to train (H200, driver 580.159.04, 2026-11).
static bool chain_usable(const struct mlp_case *c) {
    struct mlp_plan p;
    chain_plan(c, &p);
    const struct grt_caps *caps = &grt_dev_info(c->dev)->caps;
    return !c->judged && caps->matrix_convert && caps->i16_arith &&
           runs(c, "mlp_pass_chain", p.units_bytes);
}

// Few rows are better cut by columns too: 4096 rows by 12 layers of 128 take "coop" 47
// microseconds.
static bool chain_better(const struct mlp_case *c) {
    return c->desc->model.act != GRT_ACT_RELU || c->tiled >= mlp_units(c->dev) * chain_rows(c);
}

static void chain_pass(struct grt_graph *graph, const struct mlp_call *call) {
    const struct mlp_case *c = call->c;
    struct chain pass = choose_chain(c);
    uint32_t lanes = grt_dev_info(c->dev)->caps.subgroup;
    const struct grt_spec specs[] = {{"WG", pass.subgroups * lanes},
                                     {"IP", chain_inputs(c)},
                                     {"LANES", lanes},
                                     {"MT", pass.tiles},
                                     {"CHUNK", pass.chunk},
                                     {"COLS", pass.cols},
                                     {"ALIGNED", aligned(c)},
                                     {"KEEP", mlp_keep(c)},
                                     {"ORDERED", c->ordered}};
    launch_pass(graph, call, "mlp_pass_chain", specs, sizeof specs / sizeof specs[0]);
}

static void chain_grads(struct grt_graph *graph, const struct mlp_call *call) {
    launch_grads(graph, call, chain_inputs(call->c));
}

const struct mlp_variant mlp_variant_chain = {"chain",      16,         128,        chain_usable,
                                              chain_better, chain_plan, chain_pass, chain_grads};
