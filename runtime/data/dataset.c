// SPDX-License-Identifier: Apache-2.0
// Opening a data set: the file is inspected, shapes are matched with what the desc asks for, then,
// where the answer depends on values, every row is looked at once.
#include "gpurt/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "dataset_parts.h"

#define WINDOW_BYTES (64u << 20)  // decoded tiles of one window, at most
#define WINDOW_UNITS 16           // of one window, at most
#define TILES_KEPT 40             // decoded tiles of an array: two windows and some

static bool refuse(const char *why) {
    return grt_fail(GRT_INVALID, "grt_dataset_open: %s", why);
}

static bool check_desc(const struct grt_dataset_desc *desc) {
    if (!desc || !desc->path || !desc->path[0]) {
        return refuse("no path");
    }
    if (desc->input_count > GRT_DATA_MAX_ARRAYS || desc->target_count > GRT_DATA_MAX_ARRAYS) {
        return refuse("more than 16 inputs or targets");
    }
    if ((desc->input_count > 0 && !desc->inputs) || (desc->target_count > 0 && !desc->targets)) {
        return refuse("a count of names, and no names");
    }
    if (desc->no_targets && (desc->target_count > 0 || desc->class_targets || desc->weights)) {
        return refuse("targets named, and no_targets");
    }
    if ((unsigned)desc->on_nan >= GRT_ON_NAN_COUNT) {
        return refuse("unknown on_nan");
    }
    if (!(desc->validation_split >= 0.0 && desc->validation_split < 1.0)) {
        return refuse("validation_split is not from 0 to below 1");
    }
    if (desc->class_targets && desc->classes > GRT_MOST_CLASSES) {
        return refuse("more than 16777216 classes");
    }
    if (desc->kinds && (desc->class_targets || desc->share_targets)) {
        return refuse("kinds of each target, and one of all");
    }
    for (uint32_t i = 0; desc->kinds && i < desc->target_count; i++) {
        if (desc->kinds[i].classes > GRT_MOST_CLASSES) {
            return refuse("more than 16777216 classes");
        }
    }
    if (!desc->mean != !desc->std) {
        return refuse("mean without std, or std without mean");
    }
    return true;
}

// ---- shapes ----

static bool bad(const struct grt_dataset *data, const char *why, const struct grt_array *array) {
    return grt_fail(GRT_BAD_DATA, "%s: '%s' %s", data->path, array->name, why);
}

// Of images; else 0.
static uint32_t height(const struct grt_array *array) {
    return array->rank == 4 ? (uint32_t)(array->shape[1] / array->width) : 0;
}

// Whether all inputs have the same number of points, or none.
static bool points_alike(const struct grt_dataset *data) {
    const struct grt_array *first = &data->arrays[0];
    uint32_t i = 1;
    while (i < data->input_count && (data->arrays[i].rank >= 3) == (first->rank >= 3) &&
           data->arrays[i].shape[1] == first->shape[1] &&
           height(&data->arrays[i]) == height(first)) {
        i++;
    }
    return i == data->input_count;
}

static bool match_inputs(struct grt_dataset *data) {
    struct grt_dataset_info *info = &data->info;
    const struct grt_array *first = &data->arrays[0];
    data->flat = !points_alike(data);
    info->file_rows = first->shape[0];
    info->points = first->rank >= 3 && !data->flat ? (uint32_t)first->shape[1] : 0;
    info->height = data->flat ? 0 : height(first);
    info->input_count = data->input_count;
    uint64_t features = 0;
    for (uint32_t i = 0; i < data->input_count; i++) {
        const struct grt_array *array = &data->arrays[i];
        data->feature_at[i] = (uint32_t)features;
        info->inputs[i] = (struct grt_dataset_input){
            .name = array->name,
            .first = (uint32_t)features,
            .points = array->rank >= 3 ? (uint32_t)array->shape[1] : 0,
            .height = height(array),
            .features = (uint32_t)array->shape[2],
        };
        features += array->shape[2] * (data->flat ? array->shape[1] : 1);
        if (features > 1u << 24 || features * (data->flat ? 1 : first->shape[1]) > 1u << 28) {
            return bad(data, "makes rows of more than 2^28 numbers", array);
        }
    }
    info->features = (uint32_t)features;
    info->x_width = (uint32_t)(features * (data->flat ? 1 : first->shape[1]));
    return true;
}

static bool match_targets(struct grt_dataset *data, const struct grt_dataset_desc *desc) {
    uint64_t width = 0;
    uint32_t end = data->input_count + data->target_count, aims = end - data->info.weighted;
    for (uint32_t i = data->input_count; i < end; i++) {
        const struct grt_array *array = &data->arrays[i];
        data->feature_at[i] = (uint32_t)width;
        width += array->shape[1] * array->shape[2];
        if (width > 1u << 28) {
            return bad(data, "makes rows of more than 2^28 numbers", array);
        }
        if (i < aims) {
            data->info.target_widths[i - data->input_count] =
                (uint32_t)(array->shape[1] * array->shape[2]);
        }
        if (data->mixed && i < aims && data->kinds[i - data->input_count].classes > 0 &&
            (array->shape[1] * array->shape[2] != 1 || grt_element_is_float(array->element.type))) {
            return bad(data,
                       "cannot be a class: one integer a row is wanted; losses are in the order "
                       "of targets",
                       array);
        }
        if (i == aims && array->shape[1] * array->shape[2] != 1) {
            return bad(data, "cannot be sample weights: one number a row is wanted", array);
        }
        if (desc->class_targets && i < aims &&
            (aims - data->input_count > 1 || width > 1 ||
             grt_element_is_float(array->element.type))) {
            return bad(data,
                       "cannot be a class: one integer a row is wanted, in one data set; `gpurt "
                       "train supervised` with loss=mse learns numbers",
                       array);
        }
    }
    data->info.y_width = (uint32_t)width;
    return true;
}

static bool match_rows(struct grt_dataset *data) {
    struct grt_dataset_info *info = &data->info;
    for (uint32_t i = 0; i < data->input_count + data->target_count; i++) {
        const struct grt_array *array = &data->arrays[i];
        if (array->shape[0] != info->file_rows) {
            return grt_fail(GRT_BAD_DATA, "%s: '%s' has %llu rows and '%s' has %llu", data->path,
                            data->arrays[0].name, (unsigned long long)info->file_rows, array->name,
                            (unsigned long long)array->shape[0]);
        }
        info->row_bytes +=
            array->shape[1] * array->shape[2] * grt_element_size(array->element.type);
        info->filtered = info->filtered || array->filter_count > 0;
    }
    return true;
}

// ---- tiles and order ----

// Whether every tile stays once it is inflated.
static bool all_kept(const struct grt_dataset *data) {
    double bytes = 0;
    for (uint32_t i = 0; i < data->input_count + data->target_count; i++) {
        const struct grt_array *array = &data->arrays[i];
        if (array->filter_count > 0) {
            bytes += (double)grt_array_tiles(array) * (double)array->tile_bytes;
        }
    }
    return bytes <= WINDOW_BYTES;
}

// Rows worth reading together: those of the tallest compressed tile, or, where windows are asked
// for, of a piece of one. Single rows where all tiles are kept.
static uint64_t unit_rows(const struct grt_dataset *data, const struct grt_dataset_desc *desc) {
    uint64_t unit = 1;
    if (!data->info.filtered && desc->shuffle_window > 0 &&
        desc->shuffle_window < data->info.file_rows) {
        unit = desc->shuffle_window > 2 * WINDOW_UNITS ? desc->shuffle_window / WINDOW_UNITS : 2;
    }
    if (all_kept(data)) {
        return unit;
    }
    for (uint32_t i = 0; i < data->input_count + data->target_count; i++) {
        const struct grt_array *array = &data->arrays[i];
        if (array->filter_count > 0 && array->tile[0] > unit) {
            unit = array->tile[0];
        }
    }
    return unit;
}

uint32_t grt_dataset_window(const struct grt_dataset *data) {
    uint64_t bytes = data->order.unit * data->info.row_bytes;
    uint64_t units = WINDOW_BYTES / (bytes > 0 ? bytes : 1);
    units = data->info.filtered ? units : WINDOW_UNITS;
    return units < 1 ? 1 : units > WINDOW_UNITS ? WINDOW_UNITS : (uint32_t)units;
}

static bool create_tiles(struct grt_dataset *data) {
    uint64_t unit = data->order.unit;
    uint32_t window = grt_dataset_window(data);
    for (uint32_t i = 0; i < data->input_count + data->target_count; i++) {
        const struct grt_array *array = &data->arrays[i];
        if (array->filter_count == 0) {
            continue;
        }
        // Tiles over the rows of two windows, in each of the columns of tiles.
        uint64_t high = 2 * window * ((unit + array->tile[0] - 1) / array->tile[0]);
        uint64_t kept = (high + 8) * array->grid[1] * array->grid[2];
        uint64_t all = grt_array_tiles(array);
        kept = kept < all && !all_kept(data) ? kept : all;
        kept = kept > TILES_KEPT ? kept : TILES_KEPT;
        data->tiles[i] = grt_tiles_create(array, data->file.fd, (uint32_t)kept);
        if (!data->tiles[i]) {
            return grt_fail(GRT_NO_MEMORY, "%s: no host memory for %llu chunks", data->path,
                            (unsigned long long)kept);
        }
    }
    return true;
}

// Room for mean and deviation, one behind the other, and for what is derived of them.
static bool make_moments(struct grt_dataset *data, const struct grt_dataset_desc *desc) {
    if (!desc->normalise) {
        return true;
    }
    size_t features = data->info.features;
    data->mean = calloc(3 * features, sizeof *data->mean);
    data->norm.mean_f32 = calloc(2 * features, sizeof *data->norm.mean_f32);
    if (!data->mean || !data->norm.mean_f32) {
        return grt_fail(GRT_NO_MEMORY, "no host memory to normalise");
    }
    data->std = data->mean + features;
    data->norm.scale = data->std + features;
    data->norm.scale_f32 = data->norm.mean_f32 + features;
    return true;
}

static bool find_rows(struct grt_dataset *data, const struct grt_dataset_desc *desc) {
    struct grt_dataset_info *info = &data->info;
    uint64_t unit = unit_rows(data, desc);
    data->order = grt_order(info->file_rows, unit, desc->validation_split, desc->seed);
    if (!create_tiles(data) || !make_moments(data, desc) || !grt_look_values(data, desc)) {
        return false;
    }
    info->rows = info->file_rows - data->order.dropped_count;
    if (info->rows == 0) {
        return grt_fail(GRT_BAD_DATA, "%s: every row has a number that is not finite", data->path);
    }
    struct grt_order order = grt_order(info->rows, unit, desc->validation_split, desc->seed);
    order.dropped = data->order.dropped;
    order.dropped_count = data->order.dropped_count;
    data->order = order;
    info->window_rows = order.unit > 1 ? order.unit * grt_dataset_window(data) : 0;
    for (int part = 0; part < GRT_PART_COUNT; part++) {
        info->part_rows[part] = grt_order_rows(&order, (enum grt_part)part);
    }
    if (desc->validation_split > 0.0 && info->rows == 1) {
        return grt_fail(GRT_BAD_DATA,
                        "%s: one row cannot be split for validation; validation_split: 0 trains "
                        "without",
                        data->path);
    }
    if (desc->validation_split > 0.0 && info->part_rows[GRT_PART_VALIDATION] == 0) {
        return grt_fail(GRT_BAD_DATA,
                        "%s: its %llu rows lie in one %s and cannot be split for validation; %s",
                        data->path, (unsigned long long)info->rows,
                        info->filtered ? "compressed chunk" : "piece of a window",
                        info->filtered ? "h5repack -l CHUNK= makes smaller ones"
                                       : "give a smaller shuffle_window");
    }
    return true;
}

static bool find_moments(struct grt_dataset *data, const struct grt_dataset_desc *desc) {
    uint32_t features = data->info.features;
    if (!desc->normalise) {
        return true;
    }
    if (desc->mean && desc->features > 0 && desc->features != features) {
        return grt_fail(GRT_BAD_DATA,
                        "%s: samples have %u features; mean and deviation to normalize with are "
                        "of %u",
                        data->path, features, desc->features);
    }
    if (desc->mean) {
        memcpy(data->mean, desc->mean, features * sizeof *data->mean);
        memcpy(data->std, desc->std, features * sizeof *data->std);
    } else if (!grt_look_moments(data, desc)) {
        return false;
    }
    for (uint32_t k = 0; k < features; k++) {
        if (!(data->std[k] > 0)) {
            return refuse("a std that is not above 0");
        }
        data->norm.scale[k] = 1 / data->std[k];
        data->norm.mean_f32[k] = (float)data->mean[k];
        data->norm.scale_f32[k] = (float)data->norm.scale[k];
    }
    data->norm.mean = data->mean;
    data->info.mean = data->mean;
    data->info.std = data->std;
    return true;
}

// ---- the whole ----

static bool open_arrays(struct grt_dataset *data, const struct grt_dataset_desc *desc) {
    static const char *const x[] = {"x"}, *const y[] = {"y"};
    const char *names[DATASET_ARRAYS], *keys[DATASET_ARRAYS];
    bool named = desc->input_count > 0, aimed = desc->target_count > 0;
    data->input_count = named ? desc->input_count : 1;
    data->target_count = desc->no_targets ? 0 : aimed ? desc->target_count : 1;
    data->info.weighted = desc->weights != NULL;
    data->mixed = desc->kinds && !desc->no_targets;
    if (data->mixed) {
        memcpy(data->kinds, desc->kinds, data->target_count * sizeof *data->kinds);
    }
    memcpy(names, named ? desc->inputs : x, data->input_count * sizeof *names);
    memcpy(names + data->input_count, aimed ? desc->targets : y,
           data->target_count * sizeof *names);
    if (desc->weights) {
        names[data->input_count + data->target_count++] = desc->weights;
    }
    uint32_t count = data->input_count + data->target_count;
    for (uint32_t i = 0; i < count; i++) {
        keys[i] = i < data->input_count              ? "inputs"
                  : desc->weights && i == count - 1u ? "sample_weights"
                                                     : "targets";
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!names[i]) {
            return refuse("a name is NULL");
        }
    }
    return grt_file_open(desc->path, data->path, names, keys, count, &data->file, data->arrays);
}

// The type in which rows of arrays are kept.
static enum grt_element_type kept_type(const struct grt_array *arrays, uint32_t count) {
    enum grt_element_type type = count > 0 ? arrays[0].element.type : GRT_ELEMENT_F32;
    for (uint32_t i = 1; i < count; i++) {
        type = arrays[i].element.type == type ? type : GRT_ELEMENT_F32;
    }
    return type == GRT_ELEMENT_U8 || type == GRT_ELEMENT_F16 ? type : GRT_ELEMENT_F32;
}

static struct grt_array kept_form(enum grt_element_type type, uint64_t rows, uint64_t points,
                                  uint64_t features) {
    static struct grt_tile at_the_beginning;
    struct grt_array form = {.element = {.type = type},
                             .shape = {rows, points, features},
                             .rank = 3,
                             .tile = {rows, points, features},
                             .width = points,
                             .tile_width = points,
                             .grid = {1, 1, 1},
                             .tiles = &at_the_beginning};
    form.slab_bytes = points * features * grt_element_size(type);
    form.tile_bytes = rows * form.slab_bytes;
    return form;
}

static void choose_forms(struct grt_dataset *data) {
    struct grt_dataset_info *info = &data->info;
    data->form_x = kept_form(kept_type(data->arrays, data->input_count), info->file_rows,
                             info->x_width / info->features, info->features);
    // Weights are kept as they are scaled: f16 may not hold that.
    data->form_y = kept_form(info->classes > 0 || info->weighted || data->mixed
                                 ? GRT_ELEMENT_F32
                                 : kept_type(data->arrays + data->input_count, data->target_count),
                             info->file_rows, 1, info->y_width);
    info->kept_bytes = data->form_x.tile_bytes + data->form_y.tile_bytes;
}

struct grt_dataset *grt_dataset_open(const struct grt_dataset_desc *desc) {
    if (!check_desc(desc)) {
        return NULL;
    }
    struct grt_dataset *data = calloc(1, sizeof *data);
    char *path = strdup(desc->shown ? desc->shown : desc->path);
    if (!data || !path) {
        free(data);
        free(path);
        grt_fail(GRT_NO_MEMORY, "no host memory for a data set");
        return NULL;
    }
    data->path = path;
    data->file.fd = -1;
    data->on_nan = desc->on_nan;
    data->share_targets = desc->share_targets;
    if (!open_arrays(data, desc) || !match_inputs(data) || !match_targets(data, desc) ||
        !match_rows(data) || !find_rows(data, desc) || !find_moments(data, desc) ||
        !grt_look_distinct(data)) {
        grt_dataset_close(&data);
        return NULL;
    }
    choose_forms(data);
    data->map = grt_map_create(data->file.fd, data->file.bytes);
    return data;
}

void grt_dataset_close(struct grt_dataset **data) {
    if (!data || !*data) {
        return;
    }
    struct grt_dataset *d = *data;
    *data = NULL;
    for (uint32_t i = 0; i < DATASET_ARRAYS; i++) {
        grt_tiles_destroy(&d->tiles[i]);
    }
    grt_map_destroy(&d->map);
    grt_file_close(&d->file, d->arrays, DATASET_ARRAYS);
    free(d->ram.x);
    free(d->ram.y);
    free(d->dropped);
    free(d->mean);  // std and scale lie behind it
    free(d->norm.mean_f32);
    free(d->path);
    free(d);
}

void grt_sample_text(int64_t height, int64_t points, int64_t features, char text[GRT_SAMPLE_TEXT]) {
    int used = 0;
    if (height > 0) {
        used = snprintf(text, GRT_SAMPLE_TEXT, "%lldx%lld pixels of ", (long long)height,
                        (long long)(points / height));
    } else if (points > 0) {
        used = snprintf(text, GRT_SAMPLE_TEXT, "%lld points of ", (long long)points);
    }
    snprintf(text + used, GRT_SAMPLE_TEXT - (size_t)used, "%lld features", (long long)features);
}

struct grt_dataset_info grt_dataset_info(const struct grt_dataset *data) {
    return data ? data->info : (struct grt_dataset_info){0};
}
