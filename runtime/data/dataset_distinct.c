// SPDX-License-Identifier: Apache-2.0
// What f32 does not tell apart. Doubles and large whole numbers that differ in the file may be the
// same to the model: times in seconds since 1970 are 128 s apart in f32. A sample of rows is read
// both ways, in runs of neighbours, since rows that follow each other in time differ least, and
// their distinct values are counted.
//
//     rows of the file   |run|          |run|         |run|  ...   RUNS of RUN rows, evenly spread
#include <stdlib.h>

#include "base/log.h"
#include "dataset_parts.h"

#define RUNS 32u
#define RUN 64u
#define MOST_NUMBERS (1u << 20)  // of a sample: wide rows have fewer runs

struct sample {
    uint64_t *rows;
    uint32_t count;
    double *file;    // [count][width]
    float *model;    // the same as the model gets it
    double *column;  // [count]
};

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static uint32_t count_distinct(double *values, uint32_t count) {
    uint32_t distinct = count > 0;
    qsort(values, count, sizeof *values, by_value);
    for (uint32_t i = 1; i < count; i++) {
        distinct += values[i] != values[i - 1];
    }
    return distinct;
}

// Of the whole sample, or, where it is worse there, of each run by itself.
static bool column_loses(struct sample *s, uint64_t width, uint64_t column, uint32_t *in_file,
                         uint32_t *in_model) {
    for (uint32_t part = s->count; part > 0; part = part > RUN ? RUN : 0) {
        *in_file = *in_model = 0;
        for (uint32_t first = 0; first < s->count; first += part) {
            uint32_t n = s->count - first < part ? s->count - first : part;
            for (uint32_t i = 0; i < n; i++) {
                s->column[i] = s->file[(first + i) * width + column];
            }
            *in_file += count_distinct(s->column, n);
            for (uint32_t i = 0; i < n; i++) {
                s->column[i] = s->model[(first + i) * width + column];
            }
            *in_model += count_distinct(s->column, n);
        }
        if (2 * *in_model < *in_file) {
            return true;
        }
    }
    return false;
}

static void report(const struct grt_dataset *data, struct sample *s, bool target) {
    const struct grt_dataset_info *info = &data->info;
    uint64_t width = target ? info->y_width : info->x_width, worst = 0, lost = 0;
    uint64_t columns = target ? width - info->weighted : width;
    uint32_t in_file = 0, in_model = 0;
    for (uint64_t k = 0; k < columns; k++) {
        uint32_t file, model;
        if (!column_loses(s, width, k, &file, &model)) {
            continue;
        }
        if (lost++ == 0) {
            worst = k;
            in_file = file;
            in_model = model;
        }
    }
    if (lost == 0) {
        return;
    }
    grt_log(
        GRT_LOG_WARN,
        "%s: f32 tells %u of %u values apart in %s column %llu (by a sample of rows; such columns: "
        "%llu); %s",
        data->path, in_model, in_file, target ? "target" : "input", (unsigned long long)worst,
        (unsigned long long)lost,
        target            ? "subtract an offset from it in the file"
        : data->norm.mean ? "a few values lie far from the others: take those out"
                          : "normalize: true keeps them apart");
}

static uint32_t sample_rows(const struct grt_dataset *data, uint64_t width, uint64_t *rows) {
    const struct grt_order *order = &data->order;
    uint64_t all = data->info.file_rows;
    uint64_t runs = MOST_NUMBERS / width / RUN;
    runs = runs > RUNS ? RUNS : runs < 1 ? 1 : runs;
    runs = runs * RUN > all ? (all + RUN - 1) / RUN : runs;
    uint64_t step = all / runs, dropped = 0;
    uint32_t count = 0;
    for (uint64_t r = 0; r < runs; r++) {
        uint64_t first = r * step, end = first + RUN < all ? first + RUN : all;
        end = r + 1 < runs && first + step < end ? first + step : end;
        for (uint64_t row = first; row < end; row++) {
            while (dropped < order->dropped_count && order->dropped[dropped] < row) {
                dropped++;
            }
            if (dropped == order->dropped_count || order->dropped[dropped] != row) {
                rows[count++] = row;
            }
        }
    }
    return count;
}

// Numbers that are not finite are the fault of whoever trains on them, not of a sample: they count
// as one.
static void narrow(struct sample *s, uint64_t numbers) {
    for (uint64_t i = 0; i < numbers; i++) {
        s->model[i] = (float)s->file[i];
        if (!(s->model[i] - s->model[i] == 0)) {
            s->file[i] = s->model[i] = 0;
        }
    }
}

// As grt_element_normalise() does it.
static void normalise(const struct grt_dataset *data, struct sample *s, uint64_t numbers) {
    uint32_t features = data->info.features;
    for (uint64_t i = 0; i < numbers; i++) {
        s->model[i] =
            (float)((s->file[i] - data->norm.mean[i % features]) * data->norm.scale[i % features]);
    }
}

static bool look(struct grt_dataset *data, struct grt_reader *reader, struct sample *s, bool target,
                 struct grt_fault *fault) {
    uint64_t width = target ? data->info.y_width : data->info.x_width;
    s->count = width > 0 ? sample_rows(data, width, s->rows) : 0;
    if (s->count == 0) {
        return true;
    }
    free(s->file);
    free(s->model);
    s->file = calloc(s->count * width, sizeof *s->file);
    s->model = calloc(s->count * width, sizeof *s->model);
    if (!s->file || !s->model) {
        return grt_fault(fault, GRT_NO_MEMORY, "no host memory for a sample of rows");
    }
    if (!grt_reader_read(reader, GRT_READ_WIDE, s->rows, s->count, target ? NULL : s->file,
                         target ? s->file : NULL, fault)) {
        return false;
    }
    narrow(s, s->count * width);
    if (!target && data->norm.mean) {
        normalise(data, s, s->count * width);
    }
    report(data, s, target);
    return true;
}

static bool any_wide(const struct grt_dataset *data, uint32_t first, uint32_t count) {
    bool any = false;
    for (uint32_t i = first; i < first + count; i++) {
        any = any || grt_element_is_wide(data->arrays[i].element.type);
    }
    return any;
}

bool grt_look_distinct(struct grt_dataset *data) {
    bool x = any_wide(data, 0, data->input_count);
    bool y = data->info.classes == 0 && any_wide(data, data->input_count, data->target_count);
    if (!x && !y) {
        return true;
    }
    struct grt_fault fault = {0};
    struct grt_reader *reader = grt_reader_create(data);
    struct sample s = {.rows = malloc(RUNS * RUN * sizeof *s.rows),
                       .column = malloc(RUNS * RUN * sizeof *s.column)};
    bool good = reader && s.rows && s.column
                    ? (!x || look(data, reader, &s, false, &fault)) &&
                          (!y || look(data, reader, &s, true, &fault))
                    : grt_fault(&fault, GRT_NO_MEMORY, "no host memory for a sample of rows");
    grt_reader_destroy(&reader);
    free(s.rows);
    free(s.file);
    free(s.model);
    free(s.column);
    return good || grt_fail(fault.status, "%s: %s", data->path, fault.text);
}
