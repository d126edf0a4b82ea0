// SPDX-License-Identifier: Apache-2.0
// Reductions: over rows in one launch, over everything in one or two.
//
//     all of x:  [ n ] = rows of `cols` numbers -> one partial each -> one number
//
// The rows of the first launch depend on n alone, so the order of additions does too.
#include "internal.h"
#include "op_support.h"
#include "ops.h"
#include "report.h"

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

// Numbers that a binding reaches, counted in 32 bits with room to step.
static uint64_t reach_of(const struct grt_dev *dev) {
    uint64_t most = (uint64_t)1 << 30;
    uint64_t reach = dev->info.caps.max_binding / 4;
    return reach > 0 && reach < most ? reach : most;
}

// Rows that a launch begins at are multiples of this: their results then lie at offsets a binding may
// have, and so do the rows themselves.
static uint64_t row_unit(const struct grt_dev *dev) {
    return dev->info.caps.align > 16 ? dev->info.caps.align / 4 : 4;
}

static uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

static bool in_one_launch(const struct grt_dev *dev, uint64_t n) {
    return n <= SINGLE_LAUNCH && n <= reach_of(dev);
}

// Numbers of one row when n are reduced in two launches.
static uint64_t partial_cols(const struct grt_dev *dev, uint64_t n) {
    uint64_t cols = round_up((n + MAX_PARTIALS - 1) / MAX_PARTIALS, 1024);
    cols = cols < 4096 ? 4096 : cols;
    uint64_t most = reach_of(dev) / row_unit(dev);
    return cols < most ? cols : most;
}

static uint64_t last_extent(const struct grt_tensor *x) {
    return x->rank > 0 ? x->shape[x->rank - 1] : 1;
}

uint64_t grt_op_reduce_scratch(const struct grt_dev *dev, const struct grt_reduce_desc *desc) {
    if (!dev || !desc || !desc->x) {
        return 0;
    }
    uint64_t n = grt_tensor_count(desc->x);
    uint64_t align = dev->info.caps.align > 16 ? dev->info.caps.align : 16;
    bool pairs = desc->reduce == GRT_REDUCE_ARGMAX;
    uint64_t results = desc->rows ? n / last_extent(desc->x) : 1;
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

static struct grt_range part(struct grt_range range, uint64_t offset, uint64_t size) {
    return (struct grt_range){range.buf, range.offset + offset, size};
}

static void launch(struct grt_graph *graph, const struct stage *stage, uint64_t first,
                   uint64_t rows, const uint32_t groups[3]) {
    uint32_t wg = grt_op_tree_wg(grt_graph_dev(graph));
    uint64_t begin = first * stage->cols;
    uint64_t count =
        rows * stage->cols < stage->total - begin ? rows * stage->cols : stage->total - begin;
    struct grt_range x = part(stage->x, begin * 4, count * 4);
    struct grt_range y = part(stage->y, first * 4, rows * 4);
    if (stage->argmax) {
        const struct {
            uint32_t cols, pitch, total, base, by_row;
        } params = {(uint32_t)stage->cols, (uint32_t)stage->cols, (uint32_t)count,
                    stage->by_row ? 0 : (uint32_t)begin, stage->by_row};
        struct grt_range ranges[] = {x, stage->pairs ? part(stage->from, begin * 4, count * 4) : x,
                                     part(stage->value, first * 4, rows * 4), y};
        const struct grt_kernel_desc kernel = {"argmax", {{"WG", wg}, {"PAIRS", stage->pairs}}};
        grt_op_launch(graph, &kernel, &params, sizeof params, ranges, 4, groups);
    } else {
        const struct {
            uint32_t cols, pitch, total;
            float scale;
        } params = {(uint32_t)stage->cols, (uint32_t)stage->cols, (uint32_t)count, stage->scale};
        struct grt_range ranges[] = {x, y};
        const struct grt_kernel_desc kernel = {
            "reduce", {{"WG", wg}, {"OP", stage->op}, {"FINISH", stage->finish}}};
        grt_op_launch(graph, &kernel, &params, sizeof params, ranges, 2, groups);
    }
}

// Cuts the rows into launches that a binding can reach and a grid can count. Pieces begin at rows
// whose offsets are aligned in x and in y.
static void run_stage(struct grt_graph *graph, const struct stage *stage) {
    const struct grt_dev *dev = grt_graph_dev(graph);
    const struct grt_caps *caps = &dev->info.caps;
    uint64_t reach = reach_of(dev);
    uint64_t at_once = reach / stage->cols;
    at_once = at_once >= stage->rows ? stage->rows : at_once / row_unit(dev) * row_unit(dev);
    if (at_once == 0) {
        grt_graph_reject(graph, GRT_UNSUPPORTED,
                         "reduction over rows of %llu numbers: %s reaches %llu at once",
                         (unsigned long long)stage->cols, dev->info.selector,
                         (unsigned long long)(reach / row_unit(dev)));
        return;
    }
    for (uint64_t first = 0; first < stage->rows; first += at_once) {
        uint64_t rows = stage->rows - first < at_once ? stage->rows - first : at_once;
        uint64_t widest = caps->max_groups[0] < 32768 ? caps->max_groups[0] : 32768;
        uint32_t wide = (uint32_t)(rows < widest ? rows : widest);
        const uint32_t groups[3] = {wide, (uint32_t)((rows + wide - 1) / wide), 1};
        launch(graph, stage, first, rows, groups);
    }
}

static bool check(struct grt_graph *graph, const struct grt_reduce_desc *desc) {
    const char *name = grt_reduce_text(desc->reduce);
    const struct grt_tensor *x = desc->x, *y = desc->y;
    if (!grt_op_tensor(graph, name, "y", y) || !grt_op_tensor(graph, name, "x", x)) {
        return false;
    }
    bool argmax = desc->reduce == GRT_REDUCE_ARGMAX;
    uint64_t results = desc->rows ? grt_tensor_count(x) / last_extent(x) : 1;
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
    uint64_t given = desc->scratch.buf
                         ? (desc->scratch.size ? desc->scratch.size
                                               : desc->scratch.buf->size - desc->scratch.offset)
                         : 0;
    if (given < scratch) {
        grt_graph_reject(graph, GRT_INVALID, "%s of '%s' needs %llu bytes of scratch, given %llu",
                         name, x->label, (unsigned long long)scratch, (unsigned long long)given);
        return false;
    }
    return true;
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
    uint64_t align = grt_op_align(graph);
    enum grt_reduce reduce = desc->reduce;
    uint64_t per_result = desc->rows ? last_extent(desc->x) : n;
    struct stage last = {
        .x = desc->x->range,
        .y = desc->y->range,
        .value = desc->scratch,  // argmax: the values nobody asked for lie first
        .rows = n / per_result,
        .cols = per_result,
        .total = n,
        .op = reduce == GRT_REDUCE_MAX    ? 2
              : reduce == GRT_REDUCE_NORM ? 1
                                          : 0,
        .finish = reduce == GRT_REDUCE_MEAN   ? 1
                  : reduce == GRT_REDUCE_NORM ? 2
                                              : 0,
        .scale = 1.0f / (float)per_result,
        .argmax = reduce == GRT_REDUCE_ARGMAX,
        .by_row = desc->rows,
    };
    if (!desc->rows && !in_one_launch(grt_graph_dev(graph), n)) {
        struct stage first = last;
        first.cols = partial_cols(grt_graph_dev(graph), n);
        first.rows = (n + first.cols - 1) / first.cols;
        first.finish = 0;
        uint64_t size = round_up(first.rows * 4, align);
        uint64_t begin = last.argmax ? round_up(4, align) : 0;
        first.y = part(desc->scratch, begin, size);
        first.value = last.argmax ? part(desc->scratch, begin + size, size) : first.y;
        run_stage(graph, &first);
        last.x = first.value;
        last.from = first.y;
        last.pairs = last.argmax;
        last.op = last.op == 1 ? 0 : last.op;  // the squares are taken already
        last.cols = last.total = first.rows;
    }
    run_stage(graph, &last);
}
