// SPDX-License-Identifier: Apache-2.0
// Transpose.
#include "device/internal.h"
#include "op_support.h"
#include "gpurt/ops.h"
#include "shaders/host.h"
#include "shaders/lib/op_params.k"

// Of numbers above 0.
static uint64_t gcd(uint64_t a, uint64_t b) {
    while (b > 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void grt_op_transpose(struct grt_graph *graph, const struct grt_tensor *y,
                      const struct grt_tensor *x) {
    if (!grt_op_tensor(graph, "transpose", "y", y) || !grt_op_tensor(graph, "transpose", "x", x)) {
        return;
    }
    bool fits = x->rank >= 2 && y->rank == x->rank && y->dtype == x->dtype;
    for (uint32_t i = 0; fits && i < x->rank; i++) {
        uint32_t other = i == x->rank - 1 ? i - 1 : i == x->rank - 2 ? i + 1 : i;
        fits = y->shape[other] == x->shape[i];
    }
    uint32_t size = grt_dtype_size(x->dtype);
    if (!fits || size < 2) {
        grt_graph_reject(graph, GRT_INVALID, "transpose of '%s' into '%s': %s", x->label, y->label,
                         fits ? "elements of 2 or 4 bytes only"
                              : "same type, and the last two of at least two axes exchanged");
        return;
    }
    const struct grt_caps *caps = &grt_graph_dev(graph)->info.caps;
    uint64_t rows = x->shape[x->rank - 2], cols = x->shape[x->rank - 1];
    uint64_t count = grt_tensor_count(x) / (rows * cols);
    // Several matrices a launch, as many as a binding reaches and the third axis counts; a cut
    // falls where the offset is aligned.
    uint64_t bytes = rows * cols * size;
    uint64_t align = grt_dev_align(grt_graph_dev(graph));
    uint64_t reach = caps->max_binding > 0 ? caps->max_binding : UINT64_MAX;
    uint64_t at_once = reach / bytes < caps->max_groups[2] ? reach / bytes : caps->max_groups[2];
    uint64_t in_32_bits = UINT32_MAX / (rows * cols);
    at_once = at_once < in_32_bits ? at_once : in_32_bits;
    if (at_once < count) {
        uint64_t unit = align / gcd(bytes, align);
        at_once -= unit > 1 ? at_once % unit : 0;
    }
    at_once = at_once < count ? at_once : count;
    if (at_once == 0) {
        grt_graph_reject(graph, GRT_UNSUPPORTED,
                         "transpose of '%s': a matrix of %llu bytes, %s reaches %llu at once",
                         x->label, (unsigned long long)bytes, grt_graph_dev(graph)->info.selector,
                         (unsigned long long)reach);
        return;
    }
    const uint32_t tile = 16, most = 32768;
    const struct transpose_params params = {.rows = (uint32_t)rows, .cols = (uint32_t)cols};
    const struct grt_kernel_desc kernel = {
        size == 4 ? "transpose" : "transpose16",
        {{"WG", caps->software ? tile : tile * tile}, {"TILE", tile}},
    };
    for (uint64_t first = 0; first < count; first += at_once) {
        uint64_t matrices = count - first < at_once ? count - first : at_once;
        struct grt_range ranges[] = {
            {x->range.buf, x->range.offset + first * bytes, matrices * bytes},
            {y->range.buf, y->range.offset + first * bytes, matrices * bytes},
        };
        uint64_t wide = (cols + tile - 1) / tile, high = (rows + tile - 1) / tile;
        const uint32_t groups[3] = {(uint32_t)(wide < most ? wide : most),
                                    (uint32_t)(high < most ? high : most), (uint32_t)matrices};
        grt_op_launch(graph, &kernel, &params, sizeof params, ranges, 2, groups);
    }
}
