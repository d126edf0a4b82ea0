// SPDX-License-Identifier: Apache-2.0
// Reading rows. The rows of a batch are sorted by their place in the file first: neighbours are then
// read with one call, the disk goes one way, and every compressed tile is looked up once.
//
//     rows wanted     3 4    9                 17
//     one pread()    [3 4 5 6 7 8 9]          [17]      gaps below GAP bytes are read through
//                      |
//                   staging -> each row to its place in the batch, converted
//
// A single row of f32 goes straight to its place: with pinned batches the kernel's copy is the only one.
#include <stdlib.h>
#include <string.h>

#include "dataset_parts.h"

#define STAGING (256u << 10)
// A page: a call costs more than copying so many bytes, and the disk gives them anyway.
#define GAP 4096u

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
};

// Where the rows of one array go, and as what.
struct sink {
    const struct grt_array *array;
    struct grt_tiles *tiles;      // NULL: not compressed
    unsigned char *out;           // of the first row of the batch, at the array's first feature
    uint64_t width;               // numbers of a row
    uint64_t pitch;               // numbers from one point to the next
    uint32_t size;                // bytes of a number: 4, or 8 for doubles
    uint32_t classes;             // 0: floats
    const struct grt_norm *norm;  // NULL: not normalised
    uint64_t feature;             // norm: the array's first
};

struct grt_reader *grt_reader_create(struct grt_dataset *data) {
    struct grt_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    reader->data = data;
    reader->staging_size = STAGING;
    for (uint32_t i = 0; i < data->input_count + data->target_count; i++) {
        if (!data->tiles[i] && data->arrays[i].slab_bytes > reader->staging_size)
            reader->staging_size = data->arrays[i].slab_bytes;
    }
    reader->staging = malloc(reader->staging_size);
    if (!reader->staging)
        grt_reader_destroy(&reader);
    return reader;
}

void grt_reader_destroy(struct grt_reader **reader) {
    if (!*reader)
        return;
    free((*reader)->keys);
    free((*reader)->spare);
    free((*reader)->staging);
    free(*reader);
    *reader = NULL;
}

// ---- order ----

static bool reserve(struct grt_reader *reader, uint32_t count, struct grt_fault *fault) {
    if (count <= reader->capacity)
        return true;
    free(reader->keys);
    free(reader->spare);
    reader->keys = malloc(count * sizeof *reader->keys);
    reader->spare = malloc(count * sizeof *reader->spare);
    reader->capacity = reader->keys && reader->spare ? count : 0;
    return reader->capacity == count ||
           grt_fault(fault, GRT_NO_MEMORY, "no host memory for %u rows", count);
}

// By 11 bits at a time, lowest first: some 10 ns a row where qsort() takes 100.
static void sort_keys(struct grt_reader *reader, const uint64_t *rows, uint32_t count) {
    uint64_t most = 0;
    bool sorted = true;
    for (uint32_t i = 0; i < count; i++) {
        reader->keys[i] = (struct key){rows[i], i};
        sorted = sorted && rows[i] >= most;
        most = rows[i] > most ? rows[i] : most;
    }
    for (uint32_t shift = 0; !sorted && shift < 64 && most >> shift > 0; shift += 11) {
        uint32_t starts[2048] = {0};
        for (uint32_t i = 0; i < count; i++)
            starts[reader->keys[i].row >> shift & 2047]++;
        uint32_t sum = 0;
        for (uint32_t d = 0; d < 2048; d++) {
            uint32_t here = starts[d];
            starts[d] = sum;
            sum += here;
        }
        for (uint32_t i = 0; i < count; i++)
            reader->spare[starts[reader->keys[i].row >> shift & 2047]++] = reader->keys[i];
        struct key *other = reader->keys;
        reader->keys = reader->spare;
        reader->spare = other;
    }
}

// ---- one row ----

// `feature`: of the array, that the numbers begin with.
static bool convert(const struct sink *sink, uint64_t row, uint64_t feature, void *out,
                    const unsigned char *in, uint64_t count, struct grt_fault *fault) {
    enum grt_element_type type = sink->array->element.type;
    int64_t bad = 0;
    if (sink->size == sizeof(double)) {
        grt_element_to_f64(type, out, in, count);
        return true;
    }
    if (sink->norm) {
        grt_element_normalise(type, out, in, count, sink->norm, sink->feature + feature);
        return true;
    }
    if (sink->classes == 0) {
        grt_element_to_f32(type, out, in, count);
        return true;
    }
    return grt_element_to_class(type, out, in, count, sink->classes, &bad) == count ||
           grt_fault(fault, GRT_BAD_DATA, "row %llu of '%s' has class %lld; classes are 0 to %u",
                     (unsigned long long)row, sink->array->name, (long long)bad, sink->classes - 1);
}

// The part of a row that lies in tile (b, c) of its kind, to its place.
static bool place(const struct sink *sink, const struct key *key, uint64_t b, uint64_t c,
                  const unsigned char *slab, struct grt_fault *fault) {
    const struct grt_array *array = sink->array;
    uint64_t first_point = b * array->tile[1], first_feature = c * array->tile[2];
    uint64_t points = array->shape[1] - first_point, features = array->shape[2] - first_feature;
    points = points < array->tile[1] ? points : array->tile[1];
    features = features < array->tile[2] ? features : array->tile[2];
    unsigned char *out =
        sink->out +
        (key->at * sink->width + first_point * sink->pitch + first_feature) * sink->size;
    // Points may lie together on both sides.
    if (features == sink->pitch && features == array->tile[2] && (!sink->norm || points == 1))
        return convert(sink, key->row, first_feature, out, slab, points * features, fault);
    uint64_t slab_pitch = array->tile[2] * grt_element_size(array->element.type);
    bool good = true;
    for (uint64_t p = 0; good && p < points; p++)
        good = convert(sink, key->row, first_feature, out + p * sink->pitch * sink->size,
                       slab + p * slab_pitch, features, fault);
    return good;
}

// ---- arrays that are not compressed ----

// Whether a row's bytes in the file are its bytes in the batch.
static bool is_straight(const struct sink *sink) {
    const struct grt_array *array = sink->array;
    return array->element.type == GRT_ELEMENT_F32 && sink->size == 4 && !sink->norm &&
           !array->element.swapped && array->tile[1] == array->shape[1] &&
           array->tile[2] == array->shape[2] &&
           (array->shape[1] == 1 || array->shape[2] == sink->pitch);
}

static bool read_run(struct grt_reader *reader, const struct sink *sink, const struct key *keys,
                     uint32_t count, uint64_t offset, uint64_t b, uint64_t c,
                     struct grt_fault *fault) {
    const struct grt_array *array = sink->array;
    uint64_t slab = array->slab_bytes;
    int fd = reader->data->file.fd;
    if (count == 1 && is_straight(sink))
        return grt_read_bytes(fd, sink->out + keys->at * sink->width * 4, slab, offset, fault);
    uint64_t span = (keys[count - 1].row - keys[0].row + 1) * slab;
    if (!grt_read_bytes(fd, reader->staging, span, offset, fault))
        return false;
    if (array->element.swapped) {
        uint32_t size = grt_element_size(array->element.type);
        grt_element_swap(reader->staging, size, span / size);
    }
    bool good = true;
    for (uint32_t i = 0; good && i < count; i++)
        good = place(sink, &keys[i], b, c, reader->staging + (keys[i].row - keys[0].row) * slab,
                     fault);
    return good;
}

static bool read_plain(struct grt_reader *reader, const struct sink *sink, uint32_t count,
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
                row >= tile_end)
                break;
        }
        const struct grt_tile *tile = &array->tiles[(a * array->grid[1] + b) * array->grid[2] + c];
        uint64_t offset = tile->offset + (keys[first].row - a * array->tile[0]) * slab;
        good = read_run(reader, sink, &keys[first], end - first, offset, b, c, fault);
    }
    return good;
}

// ---- compressed arrays ----

static bool read_tiles(struct grt_reader *reader, const struct sink *sink, uint32_t count,
                       uint64_t b, uint64_t c, struct grt_fault *fault) {
    const struct grt_array *array = sink->array;
    bool good = true;
    for (uint32_t i = 0; good && i < count;) {
        uint64_t a = reader->keys[i].row / array->tile[0];
        uint64_t number = (a * array->grid[1] + b) * array->grid[2] + c;
        const unsigned char *elements = grt_tiles_get(sink->tiles, number, fault);
        if (!elements)
            return false;
        for (; good && i < count && reader->keys[i].row < (a + 1) * array->tile[0]; i++) {
            uint64_t slab = (reader->keys[i].row - a * array->tile[0]) * array->slab_bytes;
            good = place(sink, &reader->keys[i], b, c, elements + slab, fault);
        }
        grt_tiles_release(sink->tiles, number);
    }
    return good;
}

static bool read_array(struct grt_reader *reader, const struct sink *sink, uint32_t count,
                       struct grt_fault *fault) {
    bool good = true;
    for (uint64_t b = 0; good && b < sink->array->grid[1]; b++) {
        for (uint64_t c = 0; good && c < sink->array->grid[2]; c++)
            good = sink->tiles ? read_tiles(reader, sink, count, b, c, fault)
                               : read_plain(reader, sink, count, b, c, fault);
    }
    return good;
}

// ---- batches ----

bool grt_check_finite(const uint64_t *rows, uint32_t count, const float *values, uint64_t width,
                      const char *of, struct grt_fault *fault) {
    uint64_t bad = grt_not_finite(values, count * width);
    if (bad == count * width)
        return true;
    return grt_fault(fault, GRT_BAD_DATA,
                     "row %llu of the %s is not finite (column %llu is %f); on_nan: drop leaves "
                     "such rows out",
                     (unsigned long long)rows[bad / width], of, (unsigned long long)(bad % width),
                     (double)values[bad]);
}

bool grt_check_shares(const uint64_t *rows, uint32_t count, const float *values, uint64_t width,
                      struct grt_fault *fault) {
    for (uint64_t i = 0; i < count * width; i++) {
        if (!(values[i] >= 0.0f && values[i] <= 1.0f))
            return grt_fault(fault, GRT_BAD_DATA,
                             "row %llu of the targets has %g (column %llu); bce wants 0 to 1",
                             (unsigned long long)rows[i / width], (double)values[i],
                             (unsigned long long)(i % width));
    }
    return true;
}

static void copy_kept(const struct grt_dataset *data, const uint64_t *rows, uint32_t count,
                      float *x, uint32_t *y) {
    uint64_t xw = data->info.x_width, yw = data->info.y_width;
    for (uint32_t i = 0; i < count; i++)
        memcpy(x + i * xw, data->ram.x + rows[i] * xw, xw * sizeof *x);
    for (uint32_t i = 0; y && i < count; i++)
        memcpy(y + i * yw, data->ram.y + rows[i] * yw, yw * sizeof *y);
}

bool grt_reader_read(struct grt_reader *reader, enum grt_read_mode mode, const uint64_t *rows,
                     uint32_t count, void *x, void *y, struct grt_fault *fault) {
    const struct grt_dataset *data = reader->data;
    const struct grt_dataset_info *info = &data->info;
    bool checked = mode == GRT_READ_CHECKED;
    uint32_t size = mode == GRT_READ_WIDE ? sizeof(double) : sizeof(float);
    if (data->ram.x && checked) {
        copy_kept(data, rows, count, x, y);
        return true;
    }
    if (!reserve(reader, count, fault))
        return false;
    sort_keys(reader, rows, count);
    bool good = true;
    uint32_t arrays = data->input_count + (y ? data->target_count : 0);
    for (uint32_t i = x ? 0 : data->input_count; good && i < arrays; i++) {
        bool target = i >= data->input_count;
        const struct sink sink = {
            .array = &data->arrays[i],
            .tiles = data->tiles[i],
            .out = (unsigned char *)(target ? y : x) + (uint64_t)data->feature_at[i] * size,
            .width = target ? info->y_width : info->x_width,
            .pitch = target ? data->arrays[i].shape[2] : info->features,
            .size = size,
            .classes = target ? info->classes : 0,
            .norm = checked && !target && data->norm.mean ? &data->norm : NULL,
            .feature = data->feature_at[i],
        };
        good = read_array(reader, &sink, count, fault);
    }
    if (!good || !checked || !x)
        return good;
    return grt_check_finite(rows, count, x, info->x_width, "inputs", fault) &&
           (!y || info->classes > 0 ||
            grt_check_finite(rows, count, y, info->y_width, "targets", fault)) &&
           (!y || !data->share_targets || grt_check_shares(rows, count, y, info->y_width, fault));
}
