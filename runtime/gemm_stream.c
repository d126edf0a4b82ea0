// SPDX-License-Identifier: Apache-2.0
// f16 and bf16 products of many rows with a small b, through Vulkan's cooperative matrices on NVIDIA's devices:
// shaders/lib/gemm_stream.k.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gemm_coop.h"

struct stream {
    uint32_t sections, strips;  // 32 of k, 32 columns
    uint32_t mt, lanes;         // blocks of 16 rows of a subgroup; lanes of a workgroup
    uint32_t held;              // b lies in registers, not in shared memory
    uint32_t ahead;
    uint32_t at_once;  // workgroups on a compute unit
    uint32_t mp;
};

// Bytes of shared memory, as in the shader.
static uint32_t shmem(const struct stream *s) {
    if (!s->held) {
        return s->sections * s->strips * 2048;
    }
    uint32_t high = s->lanes / 32 / s->strips;
    uint32_t stride = s->sections * 4 + 1;
    uint32_t a = 2 * high * s->mt * 16 * stride * 16, b = 2 * high * s->strips * 2048;
    return a > b ? a : b;
}

static struct stream choose(const struct gemm_case *g) {
    struct stream s = {.sections = gemm_ceil_div(g->k, 32), .strips = gemm_ceil_div(g->n, 32)};
    s.mt = 2;
    s.held = s.sections * s.strips > 20;
    s.lanes = s.sections * s.strips > 8 ? 256 : 128;
    s.ahead = 1;
    s.at_once = s.held ? 1 : 24 / (s.sections * s.strips) < 4 ? 24 / (s.sections * s.strips) : 4;
    s.mp = 1;
    if (s.held) {
        s.lanes = s.strips <= 8 ? s.lanes / 32 / s.strips * s.strips * 32 : 0;
        while (s.lanes && s.mt > s.mp && shmem(&s) > g->dev->info.caps.shmem) {
            s.mt -= 1;
        }
    } else {
        uint32_t most = gemm_ceil_div(g->m, s.mt * 16) * 32;
        s.lanes = most < s.lanes ? most : s.lanes;
    }
    return s;
}

static bool few_usable(const struct gemm_case *g) {
    const struct grt_dev_info *info = &g->dev->info;
    char name[32];
    snprintf(name, sizeof name, "gemm_stream_%s_16", grt_dtype_text(g->in));
    if ((g->in != GRT_F16 && g->in != GRT_BF16) || info->caps.subgroup != 32 ||
        !strstr(info->vendor, "NVIDIA") || coop_shape(info, g->in, GRT_F32) != 0x101010 ||
        !grt_kernel_exists(g->dev, name) || g->desc->a_transposed || g->k % 8 || g->n % 8 ||
        g->params.lda % 8 || g->params.ldb % 8 || g->params.a_batch % 8 || g->params.b_batch % 8 ||
        g->params.c_batch % 8 ||
        g->batch > info->caps.max_groups[2] || gemm_ceil_div(g->k, 32) > 64 ||
        gemm_ceil_div(g->n, 32) > 64) {
        return false;
    }
    struct stream s = choose(g);
    return s.lanes && s.sections <= 8 && shmem(&s) <= info->caps.shmem;
}

static void stream_record(struct grt_graph *graph, const struct gemm_case *g) {
    struct stream s = choose(g);
    uint32_t units = g->dev->info.caps.compute_units ? g->dev->info.caps.compute_units : 16;
    uint32_t rows = s.held ? s.lanes / 32 / s.strips * s.mt * 16 : s.lanes / 32 * s.mt * 16;
    uint32_t count = gemm_ceil_div(g->m, rows);
    uint32_t rounds = (uint32_t)(((uint64_t)count * g->batch + units * s.at_once - 1) / (units * s.at_once));
    const struct grt_spec specs[] = {{"WG", s.lanes},       {"MT", s.mt},
                                     {"KS", s.sections},    {"NS", s.strips},
                                     {"TAIL", g->k % 32 != 0}, {"HELD", s.held},
                                     {"AHEAD", s.ahead}, {"MP", s.mp}};
    char kernel[16];
    snprintf(kernel, sizeof kernel, "stream_%s", grt_dtype_text(g->in));
    const uint32_t groups[3] = {gemm_ceil_div(count, rounds), 1, g->batch};
    gemm_dispatch(graph, g, kernel, specs, sizeof specs / sizeof specs[0], groups);
}

static bool stream_usable(const struct gemm_case *g) {
    return (uint64_t)g->m * g->batch >= 16384 && few_usable(g);
}

const struct gemm_variant gemm_variant_stream = {"stream", stream_usable, stream_record};
const struct gemm_variant gemm_variant_stream_few = {"stream_few", few_usable, stream_record};
