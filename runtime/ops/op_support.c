// SPDX-License-Identifier: Apache-2.0
#include "op_support.h"

#include <string.h>

#include "device/internal.h"
#include "gpurt/profile.h"
#include "base/log.h"

uint64_t grt_op_room(struct grt_range range) {
    uint64_t rest = range.offset < range.buf->size ? range.buf->size - range.offset : 0;
    return range.size ? range.size : rest;
}

bool grt_op_tensor(struct grt_graph *graph, const char *op, const char *name,
                   const struct grt_tensor *tensor) {
    if (!graph) {
        return grt_fail(GRT_INVALID, "%s: no graph", op);
    }
    if (!tensor) {
        grt_graph_reject(graph, GRT_INVALID, "%s: no tensor %s", op, name);
        return false;
    }
    if (!tensor->range.buf || grt_tensor_count(tensor) == 0) {
        grt_graph_reject(graph, GRT_INVALID, "%s: tensor '%s' %s", op, tensor->label,
                         tensor->range.buf ? "has no elements"
                                           : "is not allocated; allocate its plan first");
        return false;
    }
    uint64_t bytes = grt_tensor_bytes(tensor), room = grt_op_room(tensor->range);
    if (bytes > room) {
        grt_graph_reject(graph, GRT_INVALID, "%s: tensor '%s' has %llu bytes, its range %llu", op,
                         tensor->label, (unsigned long long)bytes, (unsigned long long)room);
        return false;
    }
    return true;
}

uint64_t grt_op_cols(const struct grt_tensor *x) {
    return x->rank > 0 ? x->shape[x->rank - 1] : 1;
}

struct grt_range grt_op_part(struct grt_range range, uint64_t offset, uint64_t size) {
    return (struct grt_range){range.buf, range.offset + offset, size};
}

struct grt_range grt_op_unused_at(struct grt_graph *graph, uint32_t i) {
    struct grt_dev *dev = grt_graph_dev(graph);
    uint64_t align = grt_dev_align(dev), size = align > 256 ? align : 256;
    if (!dev->unused) {
        dev->unused =
            grt_buf_create(dev, grt_buf_desc(.size = GRT_OP_UNUSED * size, .label = "unused"));
        if (!dev->unused) {
            grt_graph_reject(graph, grt_last_status(), "%s", grt_last_error());
            return (struct grt_range){.buf = NULL};
        }
    }
    return (struct grt_range){dev->unused, i * size, size};
}

struct grt_range grt_op_unused(struct grt_graph *graph) {
    return grt_op_unused_at(graph, 0);
}

bool grt_op_scratch(struct grt_graph *graph, const char *op, const char *of,
                    struct grt_range scratch, uint64_t wanted) {
    uint64_t given = scratch.buf ? grt_op_room(scratch) : 0;
    if (given < wanted) {
        grt_graph_reject(graph, GRT_INVALID, "%s of '%s' needs %llu bytes of scratch, given %llu",
                         op, of, (unsigned long long)wanted, (unsigned long long)given);
        return false;
    }
    return true;
}

uint32_t grt_op_wg(const struct grt_dev *dev) {
    const struct grt_caps *caps = &dev->info.caps;
    uint32_t wg = grt_profile_whole(dev->profile, GRT_KEY_STREAM_WG);
    if (wg == 0) {
        wg = caps->subgroup > 0 ? caps->subgroup : 1;
    }
    return wg < caps->max_wg ? wg : caps->max_wg;
}

// A power of two, the same on every device of a kind so that sums have the same bits: CPU drivers
// pay for each barrier of the tree.
uint32_t grt_op_tree_wg(const struct grt_dev *dev) {
    return dev->info.caps.software ? 16 : 256;
}

struct grt_pieces grt_op_pieces(const struct grt_graph *graph, uint64_t total, uint32_t size) {
    const struct grt_caps *caps = &grt_graph_dev(graph)->info.caps;
    uint64_t largest = (uint64_t)1 << 30;  // elements: indices and strides stay within 32 bits
    if (caps->max_binding > 0 && caps->max_binding / size < largest) {
        largest = caps->max_binding / size;
    }
    // Every piece begins at an aligned offset, whatever the element's size.
    uint64_t align = grt_dev_align(grt_graph_dev(graph));
    largest = largest >= align ? largest / align * align : align;
    return (struct grt_pieces){.total = total, .largest = largest};
}

bool grt_op_next(struct grt_pieces *pieces) {
    pieces->first += pieces->count;
    uint64_t left = pieces->total - pieces->first;
    pieces->count = left < pieces->largest ? left : pieces->largest;
    return left > 0;
}

struct grt_range grt_op_piece(const struct grt_tensor *tensor, const struct grt_pieces *pieces) {
    uint64_t size = grt_dtype_size(tensor->dtype);
    return (struct grt_range){tensor->range.buf, tensor->range.offset + pieces->first * size,
                              pieces->count * size};
}

uint64_t grt_op_reach(const struct grt_dev *dev) {
    uint64_t most = (uint64_t)1 << 30;
    uint64_t reach = dev->info.caps.max_binding / 4;
    return reach > 0 && reach < most ? reach : most;
}

uint64_t grt_op_row_unit(const struct grt_dev *dev) {
    return grt_dev_align(dev) / 4;
}

struct grt_pieces grt_op_rows(struct grt_graph *graph, const char *op, uint64_t total,
                              uint64_t cols) {
    const struct grt_dev *dev = grt_graph_dev(graph);
    uint64_t unit = grt_op_row_unit(dev);
    uint64_t most = grt_op_reach(dev) / cols;
    most = most >= total ? total : most / unit * unit;
    if (most == 0) {
        grt_graph_reject(graph, GRT_UNSUPPORTED,
                         "%s over rows of %llu numbers: %s reaches %llu at once", op,
                         (unsigned long long)cols, dev->info.selector,
                         (unsigned long long)(grt_op_reach(dev) / unit));
        total = 0;
    }
    return (struct grt_pieces){.total = total, .largest = most};
}

void grt_op_row_grid(const struct grt_dev *dev, uint64_t count, uint32_t groups[3]) {
    uint64_t widest = dev->info.caps.max_groups[0] < 32768 ? dev->info.caps.max_groups[0] : 32768;
    groups[0] = (uint32_t)(count < widest ? count : widest);
    groups[1] = (uint32_t)((count + groups[0] - 1) / groups[0]);
    groups[2] = 1;
}

void grt_op_launch(struct grt_graph *graph, const struct grt_kernel_desc *kernel,
                   const void *params, uint32_t params_size, const struct grt_range *ranges,
                   uint32_t range_count, const uint32_t groups[3]) {
    struct grt_dispatch dispatch = {
        .kernel = grt_kernel_promise(grt_graph_dev(graph), kernel),
        .params = params,
        .params_size = params_size,
        .groups = {groups[0], groups[1], groups[2]},
    };
    if (!dispatch.kernel) {
        grt_graph_reject(graph, grt_last_status(), "%s", grt_last_error());
        return;
    }
    memcpy(dispatch.bindings, ranges, range_count * sizeof *ranges);
    grt_graph_dispatch(graph, &dispatch);
}

uint32_t grt_op_power_above(uint64_t value, uint32_t most) {
    uint32_t power = 1;
    while (power < value && power < most) {
        power *= 2;
    }
    return power;
}

static void add_spec(struct grt_kernel_desc *kernel, const char *name, uint32_t value) {
    uint32_t spec = 0;
    while (kernel->specs[spec].name) {
        spec++;
    }
    kernel->specs[spec] = (struct grt_spec){name, value};
}

// Lanes of a row: four columns each keep a GPU's lanes busy in short rows. On a CPU a lane is a
// thread's work, and trees cost barriers: only long rows are shared.
static uint32_t row_lanes(const struct grt_dev *dev, uint64_t cols) {
    if (dev->info.caps.software) {
        return cols > 1024 ? grt_op_tree_wg(dev) : 1;
    }
    return grt_op_power_above((cols + 3) / 4, grt_op_tree_wg(dev));
}

static void launch_rows(struct grt_graph *graph, const struct grt_kernel_desc *kernel,
                        uint64_t rows, uint32_t lanes, const void *params, uint32_t params_size,
                        const struct grt_range *ranges, uint32_t range_count) {
    const struct grt_dev *dev = grt_graph_dev(graph);
    uint32_t wg = grt_op_tree_wg(dev), groups[3];
    struct grt_kernel_desc full = *kernel;
    add_spec(&full, "WG", wg);
    add_spec(&full, "LANES", lanes);
    grt_op_row_grid(dev, (rows + wg / lanes - 1) / (wg / lanes), groups);
    grt_op_launch(graph, &full, params, params_size, ranges, range_count, groups);
}

void grt_op_launch_rows(struct grt_graph *graph, const struct grt_kernel_desc *kernel,
                        uint64_t rows, uint64_t cols, const void *params, uint32_t params_size,
                        const struct grt_range *ranges, uint32_t range_count) {
    launch_rows(graph, kernel, rows, row_lanes(grt_graph_dev(graph), cols), params, params_size,
                ranges, range_count);
}

void grt_op_launch_apart(struct grt_graph *graph, const struct grt_kernel_desc *kernel,
                         uint64_t rows, uint64_t cols, const void *params, uint32_t params_size,
                         const struct grt_range *ranges, uint32_t range_count) {
    const struct grt_dev *dev = grt_graph_dev(graph);
    uint32_t each = dev->info.caps.software ? 1 : 4;
    uint32_t lanes = grt_op_power_above((cols + each - 1) / each, grt_op_tree_wg(dev));
    launch_rows(graph, kernel, rows, lanes, params, params_size, ranges, range_count);
}

void grt_op_stream(struct grt_graph *graph, const struct grt_pieces *pieces,
                   const struct grt_kernel_desc *kernel, const void *params, uint32_t params_size,
                   const struct grt_range *ranges, uint32_t range_count) {
    struct grt_dev *dev = grt_graph_dev(graph);
    struct grt_kernel_desc with_wg = *kernel;
    uint32_t wg = grt_op_wg(dev);
    add_spec(&with_wg, "WG", wg);
    uint64_t groups = (pieces->count + wg - 1) / wg;
    uint64_t most = grt_profile_whole(dev->profile, GRT_KEY_STREAM_GROUPS);
    uint32_t grid[3] = {(uint32_t)(groups < most ? groups : most), 1, 1};
    grt_op_launch(graph, &with_wg, params, params_size, ranges, range_count, grid);
}
