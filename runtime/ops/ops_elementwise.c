// SPDX-License-Identifier: Apache-2.0
// Fill, copy, convert and maps: one number in, one number out, at the speed of memory.
//
// A tensor is handled in pieces that every device can reach through one binding and count in 32
// bits; nearly always that is one piece.
#include <string.h>

#include "op_support.h"
#include "gpurt/ops.h"
#include "base/half.h"
#include "base/log.h"
#include "shaders/host.h"
#include "shaders/lib/op_params.k"
#include "shaders/lib/op_words.k"

#define X(name, text, arity) _Static_assert((unsigned)GRT_MAP_##name == MAP_##name, text);
GRT_MAPS(X)
#undef X

static uint32_t code16(enum grt_dtype dtype) {
    return dtype == GRT_BF16 ? 1 : 0;  // the kernels' KIND
}

static bool is_float(enum grt_dtype dtype) {
    return dtype == GRT_F32 || dtype == GRT_F16 || dtype == GRT_BF16;
}

static bool is_16bit(enum grt_dtype dtype) {
    return dtype == GRT_F16 || dtype == GRT_BF16;
}

void grt_op_fill(struct grt_graph *graph, const struct grt_tensor *y, float value) {
    if (!grt_op_tensor(graph, "fill", "y", y)) {
        return;
    }
    if (!is_float(y->dtype)) {
        grt_graph_reject(graph, GRT_INVALID, "fill: '%s' is %s, not f32, f16 or bf16", y->label,
                         grt_dtype_text(y->dtype));
        return;
    }
    struct grt_pieces pieces = grt_op_pieces(graph, grt_tensor_count(y), grt_dtype_size(y->dtype));
    while (grt_op_next(&pieces)) {
        uint32_t n = (uint32_t)pieces.count;
        if (is_16bit(y->dtype)) {
            const struct fill16_params params = {.n = n, .bits = grt_16_of_f32(y->dtype, value)};
            grt_op_stream(graph, &pieces, grt_kernel_desc(.name = "fill16"), &params, sizeof params,
                          (struct grt_range[]){grt_op_piece(y, &pieces)}, 1);
        } else {
            const struct fill_params params = {.n = n, .value = value};
            grt_op_stream(graph, &pieces, grt_kernel_desc(.name = "fill"), &params, sizeof params,
                          (struct grt_range[]){grt_op_piece(y, &pieces)}, 1);
        }
    }
}

// Copies `bytes` from `begin` on in whole elements of `size` bytes with the kernel of that width.
static void copy_elements(struct grt_graph *graph, const struct grt_tensor *y,
                          const struct grt_tensor *x, uint64_t begin, uint64_t bytes,
                          uint32_t size) {
    const char *kernel = size == 16 ? "copy4" : size == 4 ? "copy" : "copy2";
    struct grt_pieces pieces = grt_op_pieces(graph, bytes / size, size);
    while (grt_op_next(&pieces)) {
        const uint32_t n = (uint32_t)pieces.count;
        uint64_t offset = begin + pieces.first * size;
        struct grt_range ranges[] = {
            {x->range.buf, x->range.offset + offset, pieces.count * size},
            {y->range.buf, y->range.offset + offset, pieces.count * size},
        };
        grt_op_stream(graph, &pieces, grt_kernel_desc(.name = kernel), &n, sizeof n, ranges, 2);
    }
}

void grt_op_copy(struct grt_graph *graph, const struct grt_tensor *y, const struct grt_tensor *x) {
    if (!grt_op_tensor(graph, "copy", "y", y) || !grt_op_tensor(graph, "copy", "x", x)) {
        return;
    }
    uint64_t bytes = grt_tensor_bytes(x);
    if (y->dtype != x->dtype || grt_tensor_count(y) != grt_tensor_count(x) || bytes % 2 != 0) {
        grt_graph_reject(graph, GRT_INVALID,
                         "copy: '%s' (%llu of %s) to '%s' (%llu of %s): same type and number, an "
                         "even number of bytes",
                         x->label, (unsigned long long)grt_tensor_count(x),
                         grt_dtype_text(x->dtype), y->label,
                         (unsigned long long)grt_tensor_count(y), grt_dtype_text(y->dtype));
        return;
    }
    // lavapipe checks every access of a lane: a kernel copies 0.4 GB/s there and the driver 20 to
    // 45 (16 MiB, Mesa 22.3, two cores, 2026-11).
    const struct grt_caps *caps = &grt_dev_info(grt_graph_dev(graph))->caps;
    if (caps->software && caps->subgroup > 1 && bytes % 4 == 0) {
        struct grt_range to = y->range, from = x->range;
        to.size = from.size = bytes;
        grt_graph_copy(graph, to, from);
        return;
    }
    // The bulk in vectors of 16 bytes, up to the last offset a binding may begin at; the rest in
    // words, or in halves where the last word is not whole.
    uint64_t align = grt_dev_align(grt_graph_dev(graph));
    uint64_t bulk = bytes / align * align;
    if (bulk > 0) {
        copy_elements(graph, y, x, 0, bulk, 16);
    }
    if (bulk < bytes) {
        copy_elements(graph, y, x, bulk, bytes - bulk, bytes % 4 == 0 ? 4 : 2);
    }
}

void grt_op_convert(struct grt_graph *graph, const struct grt_tensor *y,
                    const struct grt_tensor *x) {
    if (!grt_op_tensor(graph, "convert", "y", y) || !grt_op_tensor(graph, "convert", "x", x)) {
        return;
    }
    if (!is_float(y->dtype) || !is_float(x->dtype) || grt_tensor_count(y) != grt_tensor_count(x)) {
        grt_graph_reject(
            graph, GRT_INVALID,
            "convert: '%s' (%llu of %s) to '%s' (%llu of %s): equally many of f32, f16 "
            "or bf16",
            x->label, (unsigned long long)grt_tensor_count(x), grt_dtype_text(x->dtype), y->label,
            (unsigned long long)grt_tensor_count(y), grt_dtype_text(y->dtype));
        return;
    }
    if (y->dtype == x->dtype) {
        grt_op_copy(graph, y, x);
        return;
    }
    bool wide = x->dtype == GRT_F32;
    const struct grt_kernel_desc widen = {"widen", {{"KIND", code16(x->dtype)}}};
    const struct grt_kernel_desc narrow = {"narrow", {{"KIND", code16(y->dtype)}}};
    const struct grt_kernel_desc recode = {"recode",
                                           {{"FROM", code16(x->dtype)}, {"TO", code16(y->dtype)}}};
    const struct grt_kernel_desc *kernel = wide ? &narrow : y->dtype == GRT_F32 ? &widen : &recode;
    struct grt_pieces pieces = grt_op_pieces(graph, grt_tensor_count(x), 4);
    while (grt_op_next(&pieces)) {
        const uint32_t n = (uint32_t)pieces.count;
        struct grt_range ranges[] = {grt_op_piece(x, &pieces), grt_op_piece(y, &pieces)};
        grt_op_stream(graph, &pieces, kernel, &n, sizeof n, ranges, 2);
    }
}

const char *grt_map_text(enum grt_map map) {
    static const char *const texts[] = {
#define X(name, text, arity) text,
        GRT_MAPS(X)
#undef X
    };
    return (unsigned)map < GRT_MAP_COUNT ? texts[map] : "unknown map";
}

uint32_t grt_map_arity(enum grt_map map) {
    static const uint32_t arities[] = {
#define X(name, text, arity) arity,
        GRT_MAPS(X)
#undef X
    };
    return (unsigned)map < GRT_MAP_COUNT ? arities[map] : 0;
}

static bool same_place(const struct grt_tensor *a, const struct grt_tensor *b) {
    return a->range.buf == b->range.buf && a->range.offset == b->range.offset;
}

void grt_op_map(struct grt_graph *graph, const struct grt_map_desc *desc) {
    uint32_t arity = desc ? grt_map_arity(desc->map) : 0;
    if (arity == 0) {
        grt_graph_reject(graph, GRT_INVALID, "map: %s", desc ? "no such map" : "no desc");
        return;
    }
    const char *name = grt_map_text(desc->map);
    if (!grt_op_tensor(graph, name, "y", desc->y) || !grt_op_tensor(graph, name, "a", desc->a) ||
        (arity == 2 && !grt_op_tensor(graph, name, "b", desc->b))) {
        return;
    }
    const struct grt_tensor *y = desc->y, *a = desc->a, *b = arity == 2 ? desc->b : desc->a;
    uint64_t count = grt_tensor_count(y);
    if (y->dtype != GRT_F32 || a->dtype != GRT_F32 || b->dtype != GRT_F32 ||
        grt_tensor_count(a) != count || grt_tensor_count(b) != count) {
        grt_graph_reject(graph, GRT_INVALID, "%s: '%s', '%s' and '%s' must be f32 and equally many",
                         name, y->label, a->label, b->label);
        return;
    }
    bool defaults = desc->alpha == 0.0f && desc->beta == 0.0f;
    struct map_params params = {.alpha = desc->alpha, .beta = desc->beta};
    if (defaults && (desc->map == GRT_MAP_SCALE || desc->map == GRT_MAP_ADD)) {
        params.alpha = 1.0f;
        params.beta = desc->map == GRT_MAP_ADD ? 1.0f : 0.0f;
    }
    bool a_is_y = same_place(a, y), b_is_y = same_place(b, y);
    const struct grt_kernel_desc kernel = {
        "map",
        {{"OP", (uint32_t)desc->map}, {"A_IS_Y", a_is_y}, {"B_IS_Y", b_is_y}},
    };
    // An operand that is y is not read through its own binding; the binding gets something
    // harmless.
    struct grt_range unused =
        a_is_y && b_is_y ? grt_op_unused(graph) : (struct grt_range){.buf = NULL};
    struct grt_pieces pieces = grt_op_pieces(graph, count, 4);
    while (grt_op_next(&pieces)) {
        params.n = (uint32_t)pieces.count;
        struct grt_range of_a = grt_op_piece(a, &pieces), of_b = grt_op_piece(b, &pieces);
        struct grt_range ranges[] = {
            a_is_y ? (b_is_y ? unused : of_b) : of_a,
            b_is_y ? (a_is_y ? unused : of_a) : of_b,
            grt_op_piece(y, &pieces),
        };
        grt_op_stream(graph, &pieces, &kernel, &params, sizeof params, ranges, 3);
    }
}
