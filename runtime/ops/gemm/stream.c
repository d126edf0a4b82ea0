// SPDX-License-Identifier: Apache-2.0
// f16 and bf16 products of many rows with a small b, through Vulkan's cooperative matrices laid out
// as mma.sync has them: shaders/gemm/lib/gemm_stream.k.
//
// H200, driver 580.159.04, 2026-11-15, TFLOP/s by this / by coop / torch 2.11: f16 65536x128x128
// 219 / 141 / 134 to 215 (between runs), 65536x256x256 284 / 183 / 351 to 360, 65536x64x64 83 / 62
// / 33 to 54, 64 x (1024x256x32) 91 / 55 / 76, 1024 x 64^3 72 / 50 / 48, 4096 x 32^3 41 / 30 / 16;
// bf16 65536x128x128 173 / 124 / 132 to 208, 65536x256x256 243 / 166 / 357 to 366.
//
// What else was tried, us for 65536x128x128 beside 11.0: that loop 11.3; b by matrix loads 11.8; 16
// rows at a time and 512 lanes 12.6, 768 lanes, where registers spill, 18.1; 384 or 512 lanes that
// ask for rows late 15.0, 12.5; b in registers 13.9. 64 x (1024x256x32) is at 11.7 to 11.9 with 1
// to 4 blocks and 256 or 512 lanes; with that loop, 128 lanes and rows asked for early it was 11.1.
#include <stdio.h>

#include "coop.h"

#define BLOCKS 2u         // of 16 rows, of a subgroup
#define LANES 256u        // of a workgroup, at most
#define MOST_SECTIONS 4u  // whose rows a subgroup has in registers
// Sections times strips of b, 2 KiB each, in shared memory. Two workgroups have half of that each.
#define MOST_SHARED 16u

struct stream {
    uint32_t sections, strips;  // 32 of k, 32 columns
    bool held;                  // b lies in registers, not in shared memory
    uint32_t lanes;
    uint32_t rows;     // that a workgroup takes at once
    uint32_t at_once;  // workgroups on a compute unit
};

static struct stream shape_of(const struct gemm_case *g) {
    struct stream s = {.sections = gemm_ceil_div(g->k, 32), .strips = gemm_ceil_div(g->n, 32)};
    uint32_t b = s.sections * s.strips;
    s.held = s.sections > MOST_SECTIONS || b > MOST_SHARED;
    if (s.held) {
        uint32_t high = LANES / 32 / s.strips;
        s.lanes = high * s.strips * 32;
        s.rows = high * BLOCKS * 16;
        s.at_once = 1;
    } else {
        uint32_t most = gemm_ceil_div(g->m, BLOCKS * 16) * 32;
        s.lanes = most < LANES ? most : LANES;
        s.rows = s.lanes / 32 * BLOCKS * 16;
        s.at_once = b > MOST_SHARED / 2 ? 1 : 2;
    }
    return s;
}

// Bytes of shared memory, as in the shader.
static uint32_t shmem(const struct stream *s) {
    if (!s->held) {
        return s->sections * s->strips * 2048;
    }
    uint32_t stride = s->sections * 4 + (s->sections % 2 == 0 ? 4 : 0);
    uint32_t a = 2 * s->rows * stride * 16, b = 2 * (s->lanes / 32) * 2048;
    return a > b ? a : b;
}

// Whether b suits: whole sections and strips where registers have it.
static bool fits(const struct gemm_case *g) {
    if (g->k > 256 || g->n > 32 * MOST_SHARED) {
        return false;
    }
    struct stream s = shape_of(g);
    return shmem(&s) <= g->dev->info.caps.shmem &&
           (!s.held || (s.strips <= LANES / 32 && g->k % 32 == 0 && g->n % 32 == 0));
}

// All is read and written in chunks of 8 elements.
static bool aligned(const struct gemm_case *g) {
    const struct gemm_params *p = &g->params;
    return g->k % 8 == 0 && g->n % 8 == 0 && p->lda % 8 == 0 && p->ldb % 8 == 0 &&
           p->a_batch % 8 == 0 && p->b_batch % 8 == 0 && p->c_batch % 8 == 0;
}

static bool usable(const struct gemm_case *g) {
    const struct grt_dev_info *info = &g->dev->info;
    char name[32];
    snprintf(name, sizeof name, "gemm_stream_%s_16", grt_dtype_text(g->in));
    return (g->in == GRT_F16 || g->in == GRT_BF16) && !g->desc->a_transposed && aligned(g) &&
           g->k > 0 && fits(g) && gemm_within(g, 1, 1) && info->caps.subgroup == 32 &&
           info->caps.mma_layout && coop_shape(info, g->in, GRT_F32) == 0x101010 &&
           grt_kernel_exists(g->dev, name);
}

// b is on its way while nothing else can be done. Where there are few rows coop begins sooner:
// 8192x128x128 takes it 4.9 us, this 7.1 (same run). A b in registers was measured with 256 x 256
// alone.
static bool pays(const struct gemm_case *g) {
    if (!fits(g)) {
        return false;
    }
    struct stream s = shape_of(g);
    return (uint64_t)g->m * g->batch >= 256 * (uint64_t)gemm_units(g) &&
           (!s.held || (s.sections > 6 && s.strips > 6));
}

// As many workgroups as fill the device once, each with about as many rows.
static void record(struct grt_graph *graph, const struct gemm_case *g) {
    struct stream s = shape_of(g);
    uint32_t count = gemm_ceil_div(g->m, s.rows), slots = gemm_units(g) * s.at_once;
    uint64_t turns = ((uint64_t)count * g->batch + slots - 1) / slots;
    uint32_t parts = turns < count ? gemm_ceil_div(count, (uint32_t)turns) : 1;
    const struct grt_spec specs[] = {
        {"WG", s.lanes},
        {"MT", BLOCKS},
        {"KS", s.sections},
        {"NS", s.strips},
        {"TAIL", g->k % 32 != 0},
        {"HELD", s.held},
        {"AHEAD", count > parts},
        {"WHOLE", g->m % (s.held ? s.rows : BLOCKS * 16) == 0 && g->n % 32 == 0}};
    char kernel[16];
    snprintf(kernel, sizeof kernel, "stream_%s", grt_dtype_text(g->in));
    const uint32_t groups[3] = {parts, 1, g->batch};
    gemm_dispatch(graph, g, kernel, specs, sizeof specs / sizeof specs[0], groups);
}

const struct gemm_variant gemm_variant_stream = {"stream", usable, pays, record};
