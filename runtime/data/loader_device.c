// SPDX-License-Identifier: Apache-2.0
// Batches on their way to the device: a small graph that copies for each pinned slot, baked once,
// or all rows at once, to stay there.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "loader_parts.h"

#define FILL_BYTES (8u << 20)  // rows are put on the device in pieces of this size

// ---- all rows on the device ----

static bool copy_all(struct grt_buf *buf, const unsigned char *bytes, uint64_t size) {
    bool good = true;
    for (uint64_t first = 0; good && first < size; first += FILL_BYTES) {
        uint64_t count = size - first < FILL_BYTES ? size - first : FILL_BYTES;
        good = grt_buf_write(buf, first, bytes + first, count);
    }
    return good;
}

static bool copy_rows(struct grt_dataset *data) {
    const struct grt_rows_on_device *rows = &data->device;
    uint64_t features = data->info.features;
    return copy_all(rows->x, data->ram.x, data->form_x.tile_bytes) &&
           (!rows->y || copy_all(rows->y, data->ram.y, data->form_y.tile_bytes)) &&
           (!rows->norm ||
            (grt_buf_write(rows->norm, 0, data->norm.mean_f32, features * 4) &&
             grt_buf_write(rows->norm, features * 4, data->norm.scale_f32, features * 4)));
}

// Kernels take words.
static uint64_t words_of(uint64_t bytes) {
    return (bytes + 3) & ~(uint64_t)3;
}

static bool device_fits(const struct grt_dataset *data, struct grt_dev *dev,
                        char why[GRT_CACHE_WHY]) {
    const struct grt_dataset_info *info = &data->info;
    uint64_t x = data->form_x.tile_bytes, y = data->form_y.tile_bytes;
    uint64_t left = grt_dev_mem_left(dev), reach = grt_dev_info(dev)->caps.max_binding;
    double numbers = (double)info->file_rows * info->x_width, bytes = (double)x + (double)y;
    if (info->file_rows >= UINT32_MAX || numbers > UINT32_MAX) {
        snprintf(why, GRT_CACHE_WHY, "%.1f MB, and kernels count 2^32 numbers", bytes / 1e6);
    } else if (reach > 0 && (x > reach || y > reach)) {
        snprintf(why, GRT_CACHE_WHY, "%.1f MB, and a kernel of %s reaches %.1f MB at once",
                 bytes / 1e6, grt_dev_info(dev)->selector, (double)reach / 1e6);
    } else if (x + y > left) {
        snprintf(why, GRT_CACHE_WHY, "%.1f MB, and %.1f MB may be taken of %s", bytes / 1e6,
                 (double)left / 1e6, grt_dev_info(dev)->selector);
    } else {
        return true;
    }
    return false;
}

bool grt_cache_fits(const struct grt_dataset *data, struct grt_dev *dev, enum grt_cache cache,
                    char why[GRT_CACHE_WHY]) {
    why[0] = '\0';
    return cache == GRT_CACHE_DEVICE ? device_fits(data, dev, why)
           : cache == GRT_CACHE_RAM  ? grt_rows_fit(data, why)
                                     : true;
}

static struct grt_buf *make_buf(struct grt_dev *dev, uint64_t bytes) {
    return grt_buf_create(dev, grt_buf_desc(.size = words_of(bytes), .label = "data"));
}

static bool make_rows(struct grt_dataset *data, struct grt_dev *dev) {
    struct grt_rows_on_device *rows = &data->device;
    bool norm = data->norm.mean && data->form_x.element.type != GRT_ELEMENT_F32;
    bool targets = data->info.y_width > 0;
    rows->dev = dev;
    rows->x = make_buf(dev, data->form_x.tile_bytes);
    rows->y = rows->x && targets ? make_buf(dev, data->form_y.tile_bytes) : NULL;
    rows->norm = rows->x && norm ? make_buf(dev, data->info.features * 8ull) : NULL;
    return rows->x && (rows->y || !targets) && (rows->norm || !norm);
}

// Through the rows kept in memory, which are given up again unless another loader has them.
bool grt_loader_to_device(struct grt_loader *loader, uint32_t threads) {
    struct grt_dataset *data = loader->desc.data;
    struct grt_rows_on_device *rows = &data->device;
    char why[GRT_CACHE_WHY];
    if (rows->users > 0 && rows->dev != loader->desc.dev) {
        return grt_fail(GRT_INVALID, "grt_loader_create: %s is on another device already",
                        data->path);
    }
    loader->on_device = true;
    if (rows->users++ > 0) {
        return true;
    }
    if (!device_fits(data, loader->desc.dev, why)) {
        return grt_fail(GRT_NO_MEMORY, "%s: %s; use cache: ram", data->path, why);
    }
    if (!make_rows(data, loader->desc.dev) || !grt_rows_keep(data, threads)) {
        return false;
    }
    bool good = copy_rows(data);
    grt_rows_drop(data);
    return good;
}

void grt_loader_off_device(struct grt_loader *loader) {
    struct grt_rows_on_device *rows = &loader->desc.data->device;
    if (!loader->on_device || --rows->users > 0) {
        return;
    }
    grt_buf_destroy(&rows->x);
    grt_buf_destroy(&rows->y);
    grt_buf_destroy(&rows->norm);
}

static enum grt_dtype dtype_of(const struct grt_array *form) {
    return form->element.type == GRT_ELEMENT_U8    ? GRT_U8
           : form->element.type == GRT_ELEMENT_F16 ? GRT_F16
                                                   : GRT_F32;
}

static struct grt_range whole(struct grt_buf *buf) {
    return (struct grt_range){buf, 0, buf ? grt_buf_size(buf) : 0};
}

bool grt_loader_device(const struct grt_loader *loader, struct grt_tensor *x, struct grt_tensor *y,
                       struct grt_range *norm) {
    if (!loader || !x || !y || !norm || !loader->on_device) {
        return grt_fail(GRT_INVALID, "grt_loader_device: %s",
                        !loader             ? "no loader"
                        : !x || !y || !norm ? "no tensor to fill"
                                            : "its cache is not the device");
    }
    const struct grt_dataset *data = loader->desc.data;
    const struct grt_dataset_info *info = &data->info;
    const struct grt_rows_on_device *rows = &data->device;
    *x = (struct grt_tensor){
        .range = whole(rows->x),
        .dtype = dtype_of(&data->form_x),
        .rank = info->points > 0 ? 3 : 2,
        .shape = {info->file_rows, info->points > 0 ? info->points : info->features,
                  info->points > 0 ? info->features : 0},
        .label = "data x",
    };
    *y = (struct grt_tensor){.label = "data y"};
    *norm = whole(rows->norm);
    if (rows->y) {
        y->range = whole(rows->y);
        y->dtype = info->classes > 0 ? GRT_U32 : dtype_of(&data->form_y);
        y->rank = info->y_width == 1 && info->classes > 0 ? 1 : 2;
        y->shape[0] = info->file_rows;
        y->shape[1] = y->rank == 1 ? 0 : info->y_width;
    }
    return true;
}

// ---- graphs ----

// A part of a batch, in bytes: where its x and y begin in a slot, and their sizes.
struct part {
    uint64_t x_from, x_bytes, y_from, y_bytes;
};

static struct part part_of(const struct grt_loader *loader, uint32_t number) {
    const struct grt_dataset_info *info = &loader->desc.data->info;
    uint64_t first = (uint64_t)number * loader->part_rows, left = loader->desc.batch - first;
    uint64_t rows = left < loader->part_rows ? left : loader->part_rows;
    return (struct part){first * info->x_width * 4, rows * info->x_width * 4,
                         loader->x_bytes + first * info->y_width * 4, rows * info->y_width * 4};
}

static uint32_t turn_of(const struct grt_loader *loader, uint32_t slot, uint32_t part) {
    uint32_t turns = loader->desc.turns > 1 ? loader->desc.turns : 1;
    return (loader->part_count > 1 ? part : slot) % turns;
}

uint32_t grt_loader_turn(const struct grt_loader *loader, const struct grt_batch *batch,
                         uint32_t part) {
    return turn_of(loader, batch->slot, part);
}

static bool fits(const struct grt_loader *loader, const char *name, const struct grt_tensor *tensor,
                 uint64_t width, bool classes) {
    uint64_t wanted = loader->part_rows * width;
    if (tensor && tensor->range.buf && grt_tensor_count(tensor) >= wanted &&
        tensor->dtype == (classes ? GRT_U32 : GRT_F32)) {
        return true;
    }
    return grt_fail(GRT_INVALID,
                    "grt_loader_bind: %s must be %s with %llu elements in %u rows, allocated", name,
                    classes ? "u32" : "f32", (unsigned long long)wanted, loader->part_rows);
}

static bool bake(struct grt_loader *loader, uint32_t slot_number, uint32_t number) {
    uint32_t turn = turn_of(loader, slot_number, number);
    struct grt_slot *slot = &loader->slots[slot_number];
    const struct grt_range *x = &loader->bound_x[turn].range, *y = &loader->bound_y[turn].range;
    struct part part = part_of(loader, number);
    struct grt_graph *graph = grt_graph_create(loader->desc.dev, "batch");
    grt_graph_destroy(&slot->uploads[number].graph);
    slot->uploads[number].graph = graph;
    if (!graph) {
        return false;
    }
    grt_graph_copy(graph, (struct grt_range){x->buf, x->offset, part.x_bytes},
                   (struct grt_range){slot->buf, part.x_from, part.x_bytes});
    if (part.y_bytes > 0) {
        grt_graph_copy(graph, (struct grt_range){y->buf, y->offset, part.y_bytes},
                       (struct grt_range){slot->buf, part.y_from, part.y_bytes});
    }
    if (loader->desc.turns > 1) {
        grt_graph_aside(graph);
    }
    return grt_graph_bake(graph);
}

// All graphs of a turn.
static bool bake_all(struct grt_loader *loader, uint32_t turn) {
    for (uint32_t i = 0; i < loader->slot_count; i++) {
        struct grt_slot *slot = &loader->slots[i];
        if (slot->buf && !slot->uploads) {
            slot->uploads = calloc(loader->part_count + 1ull, sizeof *slot->uploads);
            if (!slot->uploads) {
                return grt_fail(GRT_NO_MEMORY, "no host memory for a loader");
            }
        }
        for (uint32_t k = 0; slot->buf && k < loader->part_count; k++) {
            if (turn_of(loader, i, k) == turn && !bake(loader, i, k)) {
                return false;
            }
        }
    }
    return true;
}

void grt_loader_unbind(struct grt_loader *loader) {
    for (uint32_t i = 0; loader->slots && i < loader->slot_count; i++) {
        struct grt_slot *slot = &loader->slots[i];
        for (uint32_t k = 0; slot->uploads && k < loader->part_count; k++) {
            grt_graph_destroy(&slot->uploads[k].graph);
        }
        free(slot->uploads);
        slot->uploads = NULL;
    }
    loader->part_count = 0;
}

bool grt_loader_bind(struct grt_loader *loader, uint32_t turn, const struct grt_tensor *x,
                     const struct grt_tensor *y) {
    if (!loader || !loader->desc.dev || !loader->slots || turn >= loader->desc.turns || !x) {
        return grt_fail(GRT_INVALID, "grt_loader_bind: no %s",
                        !loader             ? "loader"
                        : !loader->desc.dev ? "device"
                        : !loader->slots    ? "batches: its rows are on the device"
                        : !x                ? "x"
                                            : "such turn");
    }
    const struct grt_dataset_info *info = &loader->desc.data->info;
    uint32_t batch = loader->desc.batch;
    uint32_t rows = x->shape[0] > 0 && x->shape[0] < batch ? (uint32_t)x->shape[0] : batch;
    if (rows != loader->part_rows) {
        grt_loader_unbind(loader);
        loader->bound[0] = loader->bound[1] = false;
    }
    loader->part_rows = rows;
    loader->part_count = (batch + rows - 1) / rows;
    loader->bound[turn] = false;
    if (!fits(loader, "x", x, info->x_width, false) ||
        (info->y_width > 0 && !fits(loader, "y", y, info->y_width, info->classes > 0))) {
        return false;
    }
    loader->bound_x[turn] = *x;
    loader->bound_y[turn] = info->y_width > 0 ? *y : (struct grt_tensor){0};
    loader->bound[turn] = bake_all(loader, turn);
    return loader->bound[turn];
}

bool grt_loader_upload(struct grt_loader *loader, const struct grt_batch *batch, uint32_t number) {
    bool there = loader && batch && batch->slot < loader->slot_count &&
                 (loader->part_count == 0 || number < loader->part_count);
    const struct grt_slot *slot = there ? &loader->slots[batch->slot] : NULL;
    uint32_t turn = slot ? turn_of(loader, batch->slot, number) : 0;
    if (!slot || !loader->bound[turn]) {
        return grt_fail(GRT_INVALID, "grt_loader_upload: %s",
                        !loader  ? "no loader"
                        : !batch ? "no batch"
                        : slot   ? "grt_loader_bind() was not called"
                                 : "no such slot or part");
    }
    if (slot->uploads) {
        return grt_graph_run(slot->uploads[number].graph);
    }
    struct part part = part_of(loader, number);
    const unsigned char *from = (const unsigned char *)slot->x;
    const struct grt_range *x = &loader->bound_x[turn].range, *y = &loader->bound_y[turn].range;
    return grt_buf_write(x->buf, x->offset, from + part.x_from, part.x_bytes) &&
           (part.y_bytes == 0 ||
            grt_buf_write(y->buf, y->offset, from + part.y_from, part.y_bytes));
}
