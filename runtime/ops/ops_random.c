// SPDX-License-Identifier: Apache-2.0
// Random numbers.
#include "device/internal.h"
#include "op_support.h"
#include "gpurt/ops.h"
#include "shaders/host.h"
#include "shaders/lib/op_params.k"
#include "shaders/lib/op_words.k"

#define X(name, text) _Static_assert((unsigned)GRT_DIST_##name == DIST_##name, text);
GRT_DISTS(X)
#undef X

void grt_op_random(struct grt_graph *graph, const struct grt_random_desc *desc) {
    if (!graph || !desc || (unsigned)desc->dist >= GRT_DIST_COUNT) {
        grt_graph_reject(graph, GRT_INVALID, "random: %s",
                         desc ? "no such distribution" : "no desc");
        return;
    }
    if (!grt_op_tensor(graph, "random", "y", desc->y)) {
        return;
    }
    enum grt_dtype dtype = desc->dist == GRT_DIST_BITS ? GRT_U32 : GRT_F32;
    uint64_t count = grt_tensor_count(desc->y);
    if (desc->y->dtype != dtype || count > (uint64_t)4 << 32) {
        grt_graph_reject(graph, GRT_INVALID, "random: '%s' must be %s and at most 2^34 elements",
                         desc->y->label, grt_dtype_text(dtype));
        return;
    }
    if (!desc->state.buf) {
        grt_graph_reject(graph, GRT_INVALID, "random: no state");
        return;
    }
    struct grt_range state = {desc->state.buf, desc->state.offset, sizeof(struct grt_rng_state)};
    const struct grt_kernel_desc kernel = {"random", {{"DIST", (uint32_t)desc->dist}}};
    struct grt_pieces pieces = grt_op_pieces(graph, count, 4);
    while (grt_op_next(&pieces)) {
        const struct random_params params = {.n = (uint32_t)pieces.count,
                                             .first = (uint32_t)(pieces.first / 4),
                                             .stream = desc->stream};
        struct grt_range ranges[] = {state, grt_op_piece(desc->y, &pieces)};
        grt_op_stream(graph, &pieces, &kernel, &params, sizeof params, ranges, 2);
    }
    if (desc->advance) {
        const uint32_t by = 1;
        grt_op_launch(graph, grt_kernel_desc(.name = "tick", .specs = {{"WG", 1}}), &by, sizeof by,
                      &state, 1, (const uint32_t[3]){1, 1, 1});
    }
}
