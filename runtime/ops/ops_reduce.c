// SPDX-License-Identifier: Apache-2.0
// Reductions: over rows in one launch, over everything in one or two.
//
//     all of x:  [ n ] = rows of `cols` numbers -> one partial each -> one number
//
// The rows of the first launch depend on n alone, so the order of additions does too.
#include "device/internal.h"
#include "op_support.h"
#include "gpurt/ops.h"
#include "base/log.h"
#include "shaders/host.h"
#include "shaders/lib/op_params.k"
#include "shaders/lib/op_words.k"

#define SINGLE_LAUNCH 16384u  // numbers that one workgroup takes by itself
#define MAX_PARTIALS 4096u

const char *grt_reduce_text(enum grt_reduce reduce) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_REDUCES(X)
#undef X
    };
    return (unsigned)reduce < GRT_REDUCE_COUNT ? texts[reduce] : "unknown reduction";
}

static uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

static bool in_one_launch(const struct grt_dev *dev, uint64_t n) {
    return n <= SINGLE_LAUNCH && n <= grt_op_reach(dev);
}

// Numbers of one row when n are reduced in two launches.
static uint64_t partial_cols(const struct grt_dev *dev, uint64_t n) {
    uint64_t cols = round_up((n + MAX_PARTIALS - 1) / MAX_PARTIALS, 1024);
    cols = cols < 4096 ? 4096 : cols;
    uint64_t most = grt_op_reach(dev) / grt_op_row_unit(dev);
    return cols < most ? cols : most;
}

uint64_t grt_op_reduce_scratch(const struct grt_dev *dev, const struct grt_reduce_desc *desc) {
    if (!dev || !desc || !desc->x) {
        return 0;
    }
    uint64_t n = grt_tensor_count(desc->x);
    uint64_t align = grt_dev_align(dev);
    bool pairs = desc->reduce == GRT_REDUCE_ARGMAX;
    uint64_t results = desc->rows ? n / grt_op_cols(desc->x) : 1;
    uint64_t bytes = pairs ? round_up(results * 4, align) : 0;  // values beside the indices
    if (!desc->rows && !in_one_launch(dev, n)) {
        uint64_t cols = partial_cols(dev, n);
        uint64_t partials = (n + cols - 1) / cols;
        bytes += (pairs ? 2 : 1) * round_up(partials * 4, align);
    }
    return bytes;
}

// One stage: rows of `cols` numbers of x (`total` in all) to one result each.
struct stage {
    struct grt_range x, from;   // from: indices of the numbers, with argmax's second stage
    struct grt_range y, value;  // value: argmax only
    uint64_t rows, cols, total;
    uint32_t op, finish;
    float scale;
    bool argmax, pairs, by_row;
};

static void launch(struct grt_graph *graph, const struct stage *stage, uint64_t first,
                   uint64_t rows, const uint32_t groups[3]) {
    uint32_t wg = grt_op_tree_wg(grt_graph_dev(graph));
    uint64_t begin = first * stage->cols;
    uint64_t count =
        rows * stage->cols < stage->total - begin ? rows * stage->cols : stage->total - begin;
    struct grt_range x = grt_op_part(stage->x, begin * 4, count * 4);
    struct grt_range y = grt_op_part(stage->y, first * 4, rows * 4);
    if (stage->argmax) {
        const struct argmax_params params = {.cols = (uint32_t)stage->cols,
                                             .pitch = (uint32_t)stage->cols,
                                             .total = (uint32_t)count,
                                             .base = stage->by_row ? 0 : (uint32_t)begin,
                                             .by_row = stage->by_row};
        struct grt_range ranges[] = {
            x, stage->pairs ? grt_op_part(stage->from, begin * 4, count * 4) : x,
            grt_op_part(stage->value, first * 4, rows * 4), y};
        const struct grt_kernel_desc kernel = {"argmax", {{"WG", wg}, {"PAIRS", stage->pairs}}};
        grt_op_launch(graph, &kernel, &params, sizeof params, ranges, 4, groups);
    } else {
        const struct reduce_params params = {.cols = (uint32_t)stage->cols,
                                             .pitch = (uint32_t)stage->cols,
                                             .total = (uint32_t)count,
                                             .scale = stage->scale};
        struct grt_range ranges[] = {x, y};
        const struct grt_kernel_desc kernel = {
            "reduce", {{"WG", wg}, {"OP", stage->op}, {"FINISH", stage->finish}}};
        grt_op_launch(graph, &kernel, &params, sizeof params, ranges, 2, groups);
    }
}

static void run_stage(struct grt_graph *graph, const struct stage *stage) {
    struct grt_pieces rows = grt_op_rows(graph, "reduction", stage->rows, stage->cols);
    while (grt_op_next(&rows)) {
        uint32_t groups[3];
        grt_op_row_grid(grt_graph_dev(graph), rows.count, groups);
        launch(graph, stage, rows.first, rows.count, groups);
    }
}

static bool check(struct grt_graph *graph, const struct grt_reduce_desc *desc) {
    const char *name = grt_reduce_text(desc->reduce);
    const struct grt_tensor *x = desc->x, *y = desc->y;
    if (!grt_op_tensor(graph, name, "y", y) || !grt_op_tensor(graph, name, "x", x)) {
        return false;
    }
    bool argmax = desc->reduce == GRT_REDUCE_ARGMAX;
    uint64_t results = desc->rows ? grt_tensor_count(x) / grt_op_cols(x) : 1;
    if (x->dtype != GRT_F32 || y->dtype != (argmax ? GRT_U32 : GRT_F32) ||
        grt_tensor_count(y) != results) {
        grt_graph_reject(graph, GRT_INVALID, "%s of '%s': '%s' must hold %llu of %s", name,
                         x->label, y->label, (unsigned long long)results, argmax ? "u32" : "f32");
        return false;
    }
    if (argmax && !desc->rows && grt_tensor_count(x) > UINT32_MAX) {
        grt_graph_reject(graph, GRT_UNSUPPORTED, "argmax of '%s': an index beyond 32 bits",
                         x->label);
        return false;
    }
    uint64_t scratch = grt_op_reduce_scratch(grt_graph_dev(graph), desc);
    return grt_op_scratch(graph, name, x->label, desc->scratch, scratch);
}

void grt_op_reduce(struct grt_graph *graph, const struct grt_reduce_desc *desc) {
    if (!graph || !desc || (unsigned)desc->reduce >= GRT_REDUCE_COUNT) {
        grt_graph_reject(graph, GRT_INVALID, "reduce: %s", desc ? "no such reduction" : "no desc");
        return;
    }
    if (!check(graph, desc)) {
        return;
    }
    uint64_t n = grt_tensor_count(desc->x);
    uint64_t align = grt_dev_align(grt_graph_dev(graph));
    enum grt_reduce reduce = desc->reduce;
    uint64_t per_result = desc->rows ? grt_op_cols(desc->x) : n;
    struct stage last = {
        .x = desc->x->range,
        .y = desc->y->range,
        .value = desc->scratch,  // argmax: the values nobody asked for lie first
        .rows = n / per_result,
        .cols = per_result,
        .total = n,
        .op = reduce == GRT_REDUCE_MAX    ? JOIN_LARGEST
              : reduce == GRT_REDUCE_NORM ? JOIN_SQUARES
                                          : JOIN_SUM,
        .finish = reduce == GRT_REDUCE_MEAN   ? FINISH_MEAN
                  : reduce == GRT_REDUCE_NORM ? FINISH_NORM
                                              : FINISH_NONE,
        .scale = 1.0f / (float)per_result,
        .argmax = reduce == GRT_REDUCE_ARGMAX,
        .by_row = desc->rows,
    };
    if (!desc->rows && !in_one_launch(grt_graph_dev(graph), n)) {
        struct stage first = last;
        first.cols = partial_cols(grt_graph_dev(graph), n);
        first.rows = (n + first.cols - 1) / first.cols;
        first.finish = FINISH_NONE;
        uint64_t size = round_up(first.rows * 4, align);
        uint64_t begin = last.argmax ? round_up(4, align) : 0;
        first.y = grt_op_part(desc->scratch, begin, size);
        first.value = last.argmax ? grt_op_part(desc->scratch, begin + size, size) : first.y;
        run_stage(graph, &first);
        last.x = first.value;
        last.from = first.y;
        last.pairs = last.argmax;
        last.op = last.op == JOIN_SQUARES ? JOIN_SUM : last.op;  // the squares are taken already
        last.cols = last.total = first.rows;
    }
    run_stage(graph, &last);
}
