// SPDX-License-Identifier: Apache-2.0
// Reading rows. Rows of plain arrays that lie apart are copied out of the mapped file (map.h), in
// the order drawn, some of them fetched ahead into the processor's caches. Where rows follow each
// other, or there is no map, they are read in pieces, for which they are sorted by their place in
// the file: the disk goes one way, and every compressed tile is looked up once.
//
//     rows wanted     3 4    9                 17
//     one pread()    [3 4 5 6 7 8 9]          [17]      gaps below GAP bytes are read through
//                      |
//                   staging -> each row to its place in the batch, converted
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dataset_parts.h"
#include "sink.h"
#include "timeline/timeline.h"

#define STAGING (256u << 10)
// A page: a call costs more than copying so many bytes, and the disk gives them anyway.
#define GAP 4096u
#define NEAR 4u             // rows: closer ones are read in pieces
#define AHEAD 16u           // rows fetched before they are copied
#define LINE 64u            // bytes of a processor's cache line
#define MOST_FETCHED 1024u  // bytes of a row; what lies behind them the processor finds by itself

struct key {
    uint64_t row;
    uint32_t at;  // its place in the batch
};

struct grt_reader {
    struct grt_dataset *data;
    struct key *keys, *spare;
    uint32_t capacity;
    unsigned char *staging;
    uint64_t staging_size;
    // While rows are read:
    bool sorted;     // the keys are theirs
    bool unchecked;  // an array has numbers that nobody has looked at, or that are not finite
    struct grt_sink behind;  // the array that is read next; without an `array` there is none
};

struct grt_reader *grt_reader_create(struct grt_dataset *data) {
    struct grt_reader *reader = calloc(1, sizeof *reader);
    if (!reader) {
        return NULL;
    }
    reader->data = data;
    reader->staging_size = STAGING;
    for (uint32_t i = 0; i < data->input_count + data->target_count; i++) {
        if (!data->tiles[i] && data->arrays[i].slab_bytes > reader->staging_size) {
            reader->staging_size = data->arrays[i].slab_bytes;
        }
    }
    reader->staging = malloc(reader->staging_size);
    if (!reader->staging) {
        grt_reader_destroy(&reader);
    }
    return reader;
}

void grt_reader_destroy(struct grt_reader **reader) {
    if (!*reader) {
        return;
    }
    free((*reader)->keys);
    free((*reader)->spare);
    free((*reader)->staging);
    free(*reader);
    *reader = NULL;
}

// ---- order ----

static bool reserve(struct grt_reader *reader, uint32_t count, struct grt_fault *fault) {
    if (count <= reader->capacity) {
        return true;
    }
    free(reader->keys);
    free(reader->spare);
    reader->keys = malloc(count * sizeof *reader->keys);
    reader->spare = malloc(count * sizeof *reader->spare);
    reader->capacity = reader->keys && reader->spare ? count : 0;
    return reader->capacity == count ||
           grt_fault(fault, GRT_NO_MEMORY, "no host memory for %u rows", count);
}

// By 11 bits at a time, lowest first: some 10 ns a row where qsort() takes 100.
static bool sort_rows(struct grt_reader *reader, const uint64_t *rows, uint32_t count,
                      struct grt_fault *fault) {
    if (!reserve(reader, count, fault)) {
        return false;
    }
    uint64_t most = 0;
    bool sorted = true;
    for (uint32_t i = 0; i < count; i++) {
        reader->keys[i] = (struct key){rows[i], i};
        sorted = sorted && rows[i] >= most;
        most = rows[i] > most ? rows[i] : most;
    }
    for (uint32_t shift = 0; !sorted && shift < 64 && most >> shift > 0; shift += 11) {
        uint32_t starts[2048] = {0};
        for (uint32_t i = 0; i < count; i++) {
            starts[reader->keys[i].row >> shift & 2047]++;
        }
        uint32_t sum = 0;
        for (uint32_t d = 0; d < 2048; d++) {
            uint32_t here = starts[d];
            starts[d] = sum;
            sum += here;
        }
        for (uint32_t i = 0; i < count; i++) {
            reader->spare[starts[reader->keys[i].row >> shift & 2047]++] = reader->keys[i];
        }
        struct key *other = reader->keys;
        reader->keys = reader->spare;
        reader->spare = other;
    }
    return true;
}

// ---- arrays that are not compressed ----

static bool read_run(struct grt_reader *reader, const struct grt_sink *sink, const struct key *keys,
                     uint32_t count, uint64_t offset, uint64_t b, uint64_t c,
                     struct grt_fault *fault) {
    const struct grt_array *array = sink->array;
    uint64_t slab = array->slab_bytes;
    int fd = reader->data->file.fd;
    if (count == 1 && grt_sink_straight(sink)) {
        return grt_read_bytes(fd, sink->out + keys->at * sink->width * 4, slab, offset, fault);
    }
    uint64_t span = (keys[count - 1].row - keys[0].row + 1) * slab;
    if (!grt_read_bytes(fd, reader->staging, span, offset, fault)) {
        return false;
    }
    if (array->element.swapped) {
        uint32_t size = grt_element_size(array->element.type);
        grt_element_swap(reader->staging, size, span / size);
    }
    bool good = true;
    for (uint32_t i = 0; good && i < count; i++) {
        good = grt_sink_put(sink, keys[i].row, keys[i].at, b, c,
                            reader->staging + (keys[i].row - keys[0].row) * slab, fault);
    }
    return good;
}

static bool read_plain(struct grt_reader *reader, const struct grt_sink *sink, uint32_t count,
                       uint64_t b, uint64_t c, struct grt_fault *fault) {
    const struct grt_array *array = sink->array;
    const struct key *keys = reader->keys;
    uint64_t slab = array->slab_bytes;
    uint64_t most = reader->staging_size / slab;  // rows of a run, gaps included
    uint64_t skip = GAP / slab;                   // rows of a gap
    bool good = true;
    for (uint32_t first = 0, end; good && first < count; first = end) {
        uint64_t a = keys[first].row / array->tile[0];
        uint64_t tile_end = (a + 1) * array->tile[0];
        for (end = first + 1; end < count; end++) {
            uint64_t row = keys[end].row;
            if (row - keys[end - 1].row > skip + 1 || row - keys[first].row >= most ||
                row >= tile_end) {
                break;
            }
        }
        const struct grt_tile *tile = &array->tiles[(a * array->grid[1] + b) * array->grid[2] + c];
        uint64_t offset = tile->offset + (keys[first].row - a * array->tile[0]) * slab;
        good = read_run(reader, sink, &keys[first], end - first, offset, b, c, fault);
    }
    return good;
}

// ---- compressed arrays ----

static bool read_tiles(struct grt_reader *reader, const struct grt_sink *sink, uint32_t count,
                       uint64_t b, uint64_t c, struct grt_fault *fault) {
    const struct grt_array *array = sink->array;
    bool good = true;
    for (uint32_t i = 0; good && i < count;) {
        uint64_t a = reader->keys[i].row / array->tile[0];
        uint64_t number = (a * array->grid[1] + b) * array->grid[2] + c;
        const unsigned char *elements = grt_tiles_get(sink->tiles, number, fault);
        if (!elements) {
            return false;
        }
        for (; good && i < count && reader->keys[i].row < (a + 1) * array->tile[0]; i++) {
            uint64_t slab = (reader->keys[i].row - a * array->tile[0]) * array->slab_bytes;
            good = grt_sink_put(sink, reader->keys[i].row, reader->keys[i].at, b, c,
                                elements + slab, fault);
        }
        grt_tiles_release(sink->tiles, number);
    }
    return good;
}

// ---- arrays in memory ----

// The part of a row that lies in tile (b, c) of its kind.
static const unsigned char *slab_at(const struct grt_sink *sink, uint64_t row, uint64_t b,
                                    uint64_t c) {
    const struct grt_array *array = sink->array;
    uint64_t a = array->grid[0] > 1 ? row / array->tile[0] : 0;
    const struct grt_tile *tile = &array->tiles[(a * array->grid[1] + b) * array->grid[2] + c];
    return sink->base + tile->offset + (row - a * array->tile[0]) * array->slab_bytes;
}

// To the second of the caches: the first one's few ways to memory are not held up.
static void fetch(const unsigned char *at, uint64_t bytes) {
    bytes = bytes < MOST_FETCHED ? bytes : MOST_FETCHED;
    for (uint64_t line = 0; line < bytes; line += LINE) {
        __builtin_prefetch(at + line, 0, 2);
    }
    __builtin_prefetch(at + bytes - 1, 0, 2);
}

// The rows of an array that go out as they are, where they lie one behind the other; or NULL.
static const unsigned char *whole_of(const struct grt_sink *sink) {
    bool whole = sink->array && sink->base && sink->array->grid[0] == 1 && grt_sink_straight(sink);
    return whole ? sink->base + sink->array->tiles->offset : NULL;
}

// Rows of one number, most often targets: a call for each would take longer than the number.
static bool copy_numbers(const struct grt_sink *sink, const unsigned char *whole,
                         const uint64_t *rows, uint32_t count) {
    uint32_t odd = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bits;
        __builtin_prefetch(whole + rows[i + AHEAD < count ? i + AHEAD : i] * 4);
        memcpy(&bits, whole + rows[i] * 4, 4);
        memcpy(sink->out + i * sink->width * 4, &bits, 4);
        odd |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    return odd == 0;
}

// Rows as they are. Whether all were finite. Small rows of the array behind it are fetched with
// them: when their turn comes they are there.
static bool copy_rows(const struct grt_sink *sink, const struct grt_sink *behind,
                      const uint64_t *rows, uint32_t count) {
    const unsigned char *whole = whole_of(sink), *other = whole_of(behind);
    uint64_t bytes = sink->array->slab_bytes, other_bytes = other ? behind->array->slab_bytes : 0;
    bool finite = true;
    if (whole && bytes == 4) {
        return copy_numbers(sink, whole, rows, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t row = rows[i], next = i + AHEAD < count ? rows[i + AHEAD] : row;
        fetch(whole ? whole + next * bytes : slab_at(sink, next, 0, 0), bytes);
        if (other && other_bytes <= LINE) {
            __builtin_prefetch(other + row * other_bytes, 0, 2);
        }
        const unsigned char *from = whole ? whole + row * bytes : slab_at(sink, row, 0, 0);
        finite &= grt_copy_finite(sink->out + i * sink->width * 4, from, bytes / 4);
    }
    grt_copies_seen();
    return finite;
}

static bool gather(struct grt_reader *reader, const struct grt_sink *sink, const uint64_t *rows,
                   uint32_t count, struct grt_fault *fault) {
    const struct grt_array *array = sink->array;
    uint32_t size = grt_element_size(array->element.type);
    if (grt_sink_straight(sink)) {
        reader->unchecked = !copy_rows(sink, &reader->behind, rows, count) || reader->unchecked;
        return true;
    }
    bool good = true;
    reader->unchecked = true;
    for (uint64_t t = 0; good && t < array->grid[1] * array->grid[2]; t++) {
        uint64_t b = t / array->grid[2], c = t % array->grid[2];
        for (uint32_t i = 0; good && i < count; i++) {
            if (i + AHEAD < count) {
                fetch(slab_at(sink, rows[i + AHEAD], b, c), array->slab_bytes);
            }
            const unsigned char *slab = slab_at(sink, rows[i], b, c);
            if (array->element.swapped) {
                memcpy(reader->staging, slab, array->slab_bytes);
                grt_element_swap(reader->staging, size, array->slab_bytes / size);
                slab = reader->staging;
            }
            good = grt_sink_put(sink, rows[i], i, b, c, slab, fault);
        }
    }
    return good;
}

// ---- one array ----

static bool read_array(struct grt_reader *reader, const struct grt_sink *sink, const uint64_t *rows,
                       uint32_t count, struct grt_fault *fault) {
    if (sink->base) {
        // Rows that are copied as they are: what takes time is to have their pages read.
        double begun = grt_sink_straight(sink) ? grt_timeline_clock() : 0.0;
        bool good = gather(reader, sink, rows, count, fault);
        grt_timeline_stage(GRT_STAGE_READ, begun);
        return good;
    }
    if (!reader->sorted && !sort_rows(reader, rows, count, fault)) {
        return false;
    }
    reader->sorted = true;
    reader->unchecked = true;
    bool good = true;
    for (uint64_t b = 0; good && b < sink->array->grid[1]; b++) {
        for (uint64_t c = 0; good && c < sink->array->grid[2]; c++) {
            good = sink->tiles ? read_tiles(reader, sink, count, b, c, fault)
                               : read_plain(reader, sink, count, b, c, fault);
        }
    }
    return good;
}

// ---- batches ----

bool grt_check_finite(const uint64_t *rows, uint32_t count, const float *values, uint64_t width,
                      const char *of, struct grt_fault *fault) {
    uint64_t bad = grt_not_finite(values, count * width);
    if (bad == count * width) {
        return true;
    }
    return grt_fault(fault, GRT_BAD_DATA,
                     "row %llu of the %s is not finite (column %llu is %f); on_nan: drop leaves "
                     "such rows out",
                     (unsigned long long)rows[bad / width], of, (unsigned long long)(bad % width),
                     (double)values[bad]);
}

bool grt_check_shares(const uint64_t *rows, uint32_t count, const float *values, uint64_t width,
                      uint64_t pitch, const char *name, struct grt_fault *fault) {
    for (uint64_t i = 0; i < count * width; i++) {
        float value = values[i / width * pitch + i % width];
        if (!(value >= 0.0f && value <= 1.0f)) {
            return grt_fault(fault, GRT_BAD_DATA,
                             "row %llu of the targets%s%s%s has %g (column %llu); bce wants 0 to 1",
                             (unsigned long long)rows[i / width], name ? " '" : "",
                             name ? name : "", name ? "'" : "", (double)value,
                             (unsigned long long)(i % width));
        }
    }
    return true;
}

bool grt_check_weights(const uint64_t *rows, uint32_t count, const void *words, uint64_t width,
                       struct grt_fault *fault) {
    const unsigned char *at = (const unsigned char *)words + (width - 1) * 4;
    for (uint32_t i = 0; i < count; i++, at += width * 4) {
        float weight;
        memcpy(&weight, at, sizeof weight);
        if (!(weight >= 0.0f) || weight > FLT_MAX) {
            return grt_fault(fault, GRT_BAD_DATA,
                             "row %llu of the sample weights is %g; weights are finite, from 0 on",
                             (unsigned long long)rows[i], (double)weight);
        }
    }
    return true;
}

// Whether the rows come one behind the other, or nearly so: then they are read in large pieces,
// which costs less than to have each page of the file mapped.
static bool nearly_in_order(const uint64_t *rows, uint32_t count) {
    uint32_t i = 1;
    while (i < count && rows[i] > rows[i - 1] && rows[i] - rows[i - 1] <= NEAR) {
        i++;
    }
    return i == count;
}

// Classes of array i of the data set; 0: it is numbers.
static uint32_t classes_of(const struct grt_dataset *data, uint32_t i) {
    bool weight = data->info.weighted && i + 1 == data->input_count + data->target_count;
    return i < data->input_count || weight ? 0
           : data->mixed                   ? data->kinds[i - data->input_count].classes
                                           : data->info.classes;
}

// The sink of array i of the data set.
static struct grt_sink file_sink(const struct grt_dataset *data, enum grt_read_mode mode,
                                 uint32_t i, void *out, bool scattered) {
    const struct grt_dataset_info *info = &data->info;
    const struct grt_array *array = &data->arrays[i];
    bool target = i >= data->input_count;
    uint32_t classes = classes_of(data, i);
    bool kept = mode == GRT_READ_KEPT;
    const struct grt_array *form = target ? &data->form_y : &data->form_x;
    bool raw = kept && form->element.type != GRT_ELEMENT_F32;
    bool norm = (mode == GRT_READ_CHECKED || (kept && !raw)) && !target && data->norm.mean;
    enum grt_sink_as as = raw                     ? GRT_SINK_ELEMENT
                          : mode == GRT_READ_WIDE ? GRT_SINK_DOUBLE
                          : classes > 0           ? GRT_SINK_CLASS
                                                  : GRT_SINK_F32;
    uint32_t size = raw ? grt_element_size(array->element.type) : as == GRT_SINK_DOUBLE ? 8 : 4;
    return (struct grt_sink){
        .array = array,
        .tiles = data->tiles[i],
        .base = scattered && data->map && !data->tiles[i] ? grt_map_bytes(data->map) : NULL,
        .as = as,
        .out = out ? (unsigned char *)out + (uint64_t)data->feature_at[i] * size : NULL,
        .width = target ? info->y_width : info->x_width,
        .pitch = target || data->flat ? array->shape[2] : info->features,
        .size = size,
        .classes = classes,
        .counted = data->mixed,
        .norm = norm ? &data->norm : NULL,
        .feature = data->feature_at[i],
        .step = data->flat ? array->shape[2] : 0,
    };
}

// Rows kept in memory are checked already. Classes are words as numbers are.
static struct grt_sink kept_sink(const struct grt_dataset *data, bool target, void *out) {
    const struct grt_array *form = target ? &data->form_y : &data->form_x;
    bool norm = !target && data->norm.mean && form->element.type != GRT_ELEMENT_F32;
    return (struct grt_sink){
        .array = form,
        .base = target ? data->ram.y : data->ram.x,
        .as = GRT_SINK_F32,
        .out = out,
        .width = form->shape[1] * form->shape[2],
        .pitch = form->shape[2],
        .size = 4,
        .norm = norm ? &data->norm : NULL,
    };
}

static bool read_kept(struct grt_reader *reader, const uint64_t *rows, uint32_t count, void *x,
                      void *y, struct grt_fault *fault) {
    const struct grt_sink sinks[2] = {kept_sink(reader->data, false, x),
                                      kept_sink(reader->data, true, y)};
    reader->behind = y ? sinks[1] : (struct grt_sink){0};
    return gather(reader, &sinks[0], rows, count, fault) &&
           (!y || gather(reader, &sinks[1], rows, count, fault));
}

// What is read of the file to be kept as it is there.
static bool check_elements(const struct grt_array *form, const uint64_t *rows, uint32_t count,
                           const unsigned char *elements, bool shares, const char *of,
                           struct grt_fault *fault) {
    uint64_t width = form->shape[1] * form->shape[2];
    float *numbers = malloc(width * sizeof *numbers);
    if (!numbers) {
        return grt_fault(fault, GRT_NO_MEMORY, "no host memory for a row");
    }
    bool good = true;
    for (uint32_t i = 0; good && i < count; i++) {
        grt_element_to_f32(form->element.type, numbers, elements + i * form->slab_bytes, width);
        good = grt_check_finite(&rows[i], 1, numbers, width, of, fault) &&
               (!shares || grt_check_shares(&rows[i], 1, numbers, width, width, NULL, fault));
    }
    free(numbers);
    return good;
}

// Of several targets those that are shares.
static bool check_kinds(const struct grt_dataset *data, const uint64_t *rows, uint32_t count,
                        const float *y, struct grt_fault *fault) {
    const struct grt_dataset_info *info = &data->info;
    bool good = true;
    for (uint32_t i = 0; good && i < data->target_count - info->weighted; i++) {
        good = !data->kinds[i].shares ||
               grt_check_shares(rows, count, y + data->feature_at[data->input_count + i],
                                info->target_widths[i], info->y_width,
                                data->arrays[data->input_count + i].name, fault);
    }
    return good;
}

static bool check_numbers(const struct grt_dataset *data, enum grt_read_mode mode,
                          const uint64_t *rows, uint32_t count, const void *of, bool target,
                          struct grt_fault *fault) {
    const struct grt_array *form = target ? &data->form_y : &data->form_x;
    const char *what = target ? "targets" : "inputs";
    uint64_t width = form->shape[1] * form->shape[2];
    bool shares = target && data->share_targets;
    uint32_t weights = target ? data->info.weighted : 0;
    if (target && data->info.classes > 0) {
        return !weights || grt_check_weights(rows, count, of, width, fault);
    }
    if (target && data->mixed && !check_kinds(data, rows, count, of, fault)) {
        return false;
    }
    if (mode == GRT_READ_KEPT && form->element.type != GRT_ELEMENT_F32) {
        return (form->element.type == GRT_ELEMENT_U8 && !shares) ||
               check_elements(form, rows, count, of, shares, what, fault);
    }
    return (!weights || grt_check_weights(rows, count, of, width, fault)) &&
           grt_check_finite(rows, count, of, width, what, fault) &&
           (!shares || grt_check_shares(rows, count, of, width - weights, width, NULL, fault));
}

// Weights count by their shares of a sum. A power of two brings the largest below 1, exactly, so
// that their unit is nothing to gradients in f16 and to sums in f32.
static void scale_weights(const struct grt_dataset *data, uint32_t count, void *words) {
    uint64_t width = data->info.y_width;
    unsigned char *at = (unsigned char *)words + (width - 1) * 4;
    for (uint32_t i = 0; i < count; i++, at += width * 4) {
        float weight;
        memcpy(&weight, at, sizeof weight);
        weight = ldexpf(weight, -data->weight_exponent);
        memcpy(at, &weight, sizeof weight);
    }
}

bool grt_reader_read(struct grt_reader *reader, enum grt_read_mode mode, const uint64_t *rows,
                     uint32_t count, void *x, void *y, struct grt_fault *fault) {
    const struct grt_dataset *data = reader->data;
    bool checked = mode == GRT_READ_CHECKED || mode == GRT_READ_KEPT;
    bool scattered = data->map && !nearly_in_order(rows, count);
    if (data->ram.x && mode == GRT_READ_CHECKED) {
        return read_kept(reader, rows, count, x, y, fault);
    }
    reader->sorted = false;
    bool good = true;
    bool odd[2] = {false, false};  // inputs, targets: their numbers are to be looked at
    uint32_t arrays = data->input_count + (y ? data->target_count : 0);
    for (uint32_t i = x ? 0 : data->input_count; good && i < arrays; i++) {
        bool target = i >= data->input_count;
        const struct grt_sink sink = file_sink(data, mode, i, target ? y : x, scattered);
        reader->behind =
            i + 1 < arrays ? file_sink(data, mode, i + 1, y, scattered) : (struct grt_sink){0};
        reader->unchecked = false;
        good = read_array(reader, &sink, rows, count, fault);
        odd[target] = odd[target] || reader->unchecked;
    }
    good = good && (!scattered || grt_map_check(data->map, fault));
    if (!good || !checked) {
        return good;
    }
    good = (!x || !odd[0] || check_numbers(data, mode, rows, count, x, false, fault)) &&
           (!y || !(odd[1] || data->share_targets || data->mixed || data->info.weighted) ||
            check_numbers(data, mode, rows, count, y, true, fault));
    if (good && y && data->info.weighted) {
        scale_weights(data, count, y);
    }
    return good;
}
