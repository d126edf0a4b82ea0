// SPDX-License-Identifier: Apache-2.0
#include "gpurt/safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/log.h"
#include "base/whole_file.h"

#define MAX_FILE ((uint64_t)1 << 40)

// The names that the format has for our types.
static const char *const type_names[GRT_DTYPE_COUNT] = {
    [GRT_F32] = "F32", [GRT_F16] = "F16", [GRT_BF16] = "BF16", [GRT_U32] = "U32",
    [GRT_I32] = "I32", [GRT_I8] = "I8",   [GRT_U8] = "U8",
};

// PyTorch's count of batches is a scalar of 64 bits; here it is one f32.
#define COUNT_TYPE "I64"
#define COUNT_BYTES 8

static bool is_count(const char *name) {
    static const char ending[] = "num_batches_tracked";
    size_t length = strlen(name);
    return length >= sizeof ending - 1 && strcmp(name + length - (sizeof ending - 1), ending) == 0;
}

static bool is_stored_count(const struct grt_archive_tensor *t) {
    return is_count(t->name) && t->dtype == GRT_F32 && t->bytes == sizeof(float);
}

// ---- reading ----

struct entry {
    const char *name;
    bool count;  // of batches
    enum grt_dtype dtype;
    uint32_t rank;
    uint64_t shape[GRT_MAX_RANK];
    uint64_t begin, end;
};

struct parse {
    const char *path;
    const unsigned char *data;  // the elements
    uint64_t data_size;
    struct grt_archive *archive;
};

static bool read_shape(const struct parse *p, struct entry *e, const json_t *shape) {
    size_t rank = json_array_size(shape);
    uint64_t bytes = e->count ? COUNT_BYTES : grt_dtype_size(e->dtype);
    if (!json_is_array(shape) || rank > GRT_MAX_RANK) {
        return grt_fail(GRT_BAD_DATA, "%s: %s: a shape of up to %d numbers is wanted", p->path,
                        e->name, GRT_MAX_RANK);
    }
    e->rank = (uint32_t)rank;
    for (uint32_t i = 0; i < e->rank; i++) {
        const json_t *size = json_array_get(shape, i);
        if (!json_is_integer(size) || json_integer_value(size) < 0) {
            return grt_fail(GRT_BAD_DATA, "%s: %s: a shape has whole numbers from 0 on", p->path,
                            e->name);
        }
        e->shape[i] = (uint64_t)json_integer_value(size);
        if (e->shape[i] != 0 && bytes > p->data_size / e->shape[i]) {
            return grt_fail(GRT_BAD_DATA, "%s: %s: its shape is larger than the file", p->path,
                            e->name);
        }
        bytes *= e->shape[i];
    }
    if (bytes != e->end - e->begin) {
        return grt_fail(GRT_BAD_DATA,
                        "%s: %s: its shape has %" PRIu64 " bytes, its offsets %" PRIu64, p->path,
                        e->name, bytes, e->end - e->begin);
    }
    return true;
}

static bool read_offsets(const struct parse *p, struct entry *e, const json_t *offsets) {
    const json_t *begin = json_array_get(offsets, 0);
    const json_t *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin) ||
        (uint64_t)json_integer_value(end) > p->data_size) {
        return grt_fail(GRT_BAD_DATA, "%s: %s: data_offsets must be two numbers within the file",
                        p->path, e->name);
    }
    e->begin = (uint64_t)json_integer_value(begin);
    e->end = (uint64_t)json_integer_value(end);
    return true;
}

static bool read_entry(const struct parse *p, struct entry *e, const json_t *object) {
    const char *type = json_string_value(json_object_get(object, "dtype"));
    if (!json_is_object(object) || json_object_size(object) != 3 || !type) {
        return grt_fail(GRT_BAD_DATA, "%s: %.100s: dtype, shape and data_offsets are wanted",
                        p->path, e->name);
    }
    e->dtype = GRT_DTYPE_COUNT;
    for (uint32_t i = 0; i < GRT_DTYPE_COUNT; i++) {
        if (strcmp(type, type_names[i]) == 0) {
            e->dtype = (enum grt_dtype)i;
        }
    }
    e->count = strcmp(type, COUNT_TYPE) == 0 && is_count(e->name);
    if (e->dtype == GRT_DTYPE_COUNT && !e->count) {
        return grt_fail(GRT_BAD_DATA,
                        "%s: %.100s: elements of type %.16s are not taken; F32, F16, BF16, U32, "
                        "I32, I8 and U8 are",
                        p->path, e->name, type);
    }
    return read_offsets(p, e, json_object_get(object, "data_offsets")) &&
           read_shape(p, e, json_object_get(object, "shape"));
}

static bool read_metadata(const struct parse *p, json_t *metadata) {
    const char *name = NULL;
    json_t *text = NULL;
    if (!json_is_object(metadata)) {
        return grt_fail(GRT_BAD_DATA, "%s: __metadata__ must be an object", p->path);
    }
    json_object_foreach(metadata, name, text) {
        if (!json_is_string(text)) {
            return grt_fail(GRT_BAD_DATA, "%s: __metadata__ has texts only", p->path);
        }
        if (!grt_archive_set_text(p->archive, name, json_string_value(text))) {
            return false;
        }
    }
    return true;
}

static int by_begin(const void *a, const void *b) {
    const struct entry *x = a;
    const struct entry *y = b;
    if (x->begin != y->begin) {
        return x->begin < y->begin ? -1 : 1;
    }
    // One without elements begins where its neighbour does, and comes first.
    return x->end < y->end ? -1 : x->end > y->end ? 1 : 0;
}

// A count as it is here; the largest f32 that is whole is enough of it.
static float count_of(const unsigned char *bytes) {
    uint64_t whole = 0;
    for (uint32_t i = 0; i < COUNT_BYTES; i++) {
        whole |= (uint64_t)bytes[i] << 8 * i;
    }
    return (float)(whole < 1u << 24 ? whole : 1u << 24);
}

static bool add_tensor(const struct parse *p, const struct entry *e) {
    const unsigned char *data = p->data + e->begin;
    if (e->count && e->end - e->begin == COUNT_BYTES) {
        float count = count_of(data);
        return grt_archive_add(p->archive, e->name, GRT_F32, 1, (const uint64_t[]){1}, &count);
    }
    return !e->count && grt_archive_add(p->archive, e->name, e->dtype, e->rank, e->shape, data);
}

// In the order of the file each begins where the one before ends, and the last ends with it.
static bool add_tensors(const struct parse *p, struct entry *entries, size_t count) {
    uint64_t at = 0;
    if (count > 1) {
        qsort(entries, count, sizeof *entries, by_begin);
    }
    for (size_t i = 0; i < count; i++) {
        if (entries[i].begin != at) {
            return grt_fail(GRT_BAD_DATA,
                            "%s: %s: begins at %" PRIu64 ", the tensor before ends at "
                            "%" PRIu64,
                            p->path, entries[i].name, entries[i].begin, at);
        }
        at = entries[i].end;
    }
    if (at != p->data_size) {
        return grt_fail(GRT_BAD_DATA, "%s: tensors end at %" PRIu64 " of %" PRIu64 " bytes",
                        p->path, at, p->data_size);
    }
    for (size_t i = 0; i < count; i++) {
        bool before = grt_quiet(true);
        bool added = add_tensor(p, &entries[i]);
        grt_quiet(before);
        if (!added) {
            return grt_fail(GRT_BAD_DATA, "%s: '%.200s' is no name for a tensor, or no memory",
                            p->path, entries[i].name);
        }
    }
    return true;
}

static bool read_header(const struct parse *p, json_t *header) {
    const char *name = NULL;
    json_t *object = NULL;
    size_t count = 0;
    size_t most = json_object_size(header);
    if (!json_is_object(header) || most > GRT_ARCHIVE_MAX_TENSORS) {
        return grt_fail(GRT_BAD_DATA, "%s: the header must be an object of up to %d tensors",
                        p->path, GRT_ARCHIVE_MAX_TENSORS);
    }
    struct entry *entries = calloc(most + 1, sizeof *entries);
    bool good = true;
    if (!entries) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for %s", p->path);
    }
    json_object_foreach(header, name, object) {
        if (!good) {
            break;
        }
        if (strcmp(name, "__metadata__") == 0) {
            good = read_metadata(p, object);
            continue;
        }
        entries[count].name = name;
        good = read_entry(p, &entries[count++], object);
    }
    good = good && add_tensors(p, entries, count);
    free(entries);
    return good;
}

struct grt_archive *grt_safetensors_parse(const char *path, const void *bytes, size_t size) {
    const unsigned char *data = bytes;
    uint64_t header_size = 0;
    if (!path || !bytes || size < 8) {
        grt_fail(GRT_BAD_DATA, "%s: no safetensors file: it is too short", path ? path : "");
        return NULL;
    }
    for (uint32_t i = 0; i < 8; i++) {
        header_size |= (uint64_t)data[i] << 8 * i;
    }
    if (header_size > size - 8 || header_size > GRT_SAFETENSORS_MAX_HEADER) {
        grt_fail(GRT_BAD_DATA,
                 "%s: no safetensors file: a header of %" PRIu64 " bytes in a file of %zu", path,
                 header_size, size);
        return NULL;
    }
    json_error_t error;
    json_t *header =
        json_loadb((const char *)data + 8, header_size, JSON_REJECT_DUPLICATES, &error);
    if (!header) {
        grt_fail(GRT_BAD_DATA, "%s: the header is no JSON: %s, at byte %d", path, error.text,
                 8 + error.position);
        return NULL;
    }
    struct parse p = {.path = path,
                      .data = data + 8 + header_size,
                      .data_size = size - 8 - header_size,
                      .archive = grt_archive_create()};
    if (!p.archive || !read_header(&p, header)) {
        grt_archive_destroy(&p.archive);
    } else {
        snprintf(p.archive->path, sizeof p.archive->path, "%.1023s", path);
    }
    json_decref(header);
    return p.archive;
}

struct grt_archive *grt_safetensors_load(const char *path) {
    uint64_t size = 0;
    if (!path) {
        grt_fail(GRT_INVALID, "a path is wanted");
        return NULL;
    }
    void *bytes = grt_whole_file_read(path, MAX_FILE, &size);
    struct grt_archive *archive = bytes ? grt_safetensors_parse(path, bytes, size) : NULL;
    free(bytes);
    return archive;
}

// ---- writing ----

static json_t *metadata_of(const struct grt_archive *archive) {
    json_t *metadata = json_object();
    for (uint32_t i = 0; metadata && i < archive->value_count; i++) {
        const struct grt_archive_value *value = &archive->values[i];
        char number[64];
        if (value->type == GRT_ARCHIVE_WHOLE) {
            snprintf(number, sizeof number, "%" PRId64, value->whole);
        } else {
            snprintf(number, sizeof number, "%.17g", value->real);
        }
        json_object_set_new(metadata, value->name,
                            json_string(value->type == GRT_ARCHIVE_TEXT ? value->text : number));
    }
    return metadata;
}

static uint64_t element_bytes(const struct grt_archive_tensor *t) {
    return is_stored_count(t) ? COUNT_BYTES : grt_dtype_size(t->dtype);
}

// Wider elements first, so that every tensor lies at a multiple of its element's size.
static uint32_t order_of(const struct grt_archive *archive, uint32_t *order) {
    uint32_t count = 0;
    for (uint32_t size = COUNT_BYTES; size > 0; size /= 2) {
        for (uint32_t i = 0; i < archive->tensor_count; i++) {
            if (element_bytes(&archive->tensors[i]) == size) {
                order[count++] = i;
            }
        }
    }
    return count;
}

// The header, padded with spaces to a multiple of 8; freed by the caller.
static char *header_text(const struct grt_archive *archive, const uint32_t *order, size_t *size) {
    json_t *header = json_object();
    uint64_t at = 0;
    if (archive->value_count > 0) {
        json_object_set_new(header, "__metadata__", metadata_of(archive));
    }
    for (uint32_t i = 0; i < archive->tensor_count; i++) {
        const struct grt_archive_tensor *t = &archive->tensors[order[i]];
        bool count = is_stored_count(t);
        uint64_t end = at + (count ? COUNT_BYTES : t->bytes);
        json_t *shape = json_array();
        for (uint32_t k = 0; k < t->rank && !count; k++) {
            json_array_append_new(shape, json_integer((json_int_t)t->shape[k]));
        }
        json_object_set_new(header, t->name,
                            json_pack("{s:s, s:o, s:[I, I]}", "dtype",
                                      count ? COUNT_TYPE : type_names[t->dtype], "shape", shape,
                                      "data_offsets", (json_int_t)at, (json_int_t)end));
        at = end;
    }
    // What could not be allocated, or is no UTF-8, is missing.
    bool whole = header && json_object_size(header) ==
                               archive->tensor_count + (archive->value_count > 0 ? 1u : 0u);
    char *text = whole ? json_dumps(header, JSON_COMPACT) : NULL;
    json_decref(header);
    size_t length = text ? strlen(text) : 0;
    *size = (length + 7) / 8 * 8;
    char *padded = text ? realloc(text, *size + 1) : NULL;
    if (!padded) {
        free(text);
        return NULL;
    }
    memset(padded + length, ' ', *size - length);
    return padded;
}

static bool write_elements(struct grt_whole_file *file, const struct grt_archive_tensor *t) {
    if (!is_stored_count(t)) {
        return grt_whole_file_write(file, t->data, t->bytes);
    }
    unsigned char bytes[COUNT_BYTES];
    float count = *(const float *)t->data;
    uint64_t whole = count > 0 && count < 0x1p63f ? (uint64_t)count : 0;
    for (uint32_t i = 0; i < COUNT_BYTES; i++) {
        bytes[i] = (unsigned char)(whole >> 8 * i);
    }
    return grt_whole_file_write(file, bytes, sizeof bytes);
}

static bool write_file(const struct grt_archive *archive, const uint32_t *order, const char *path) {
    size_t size = 0;
    struct grt_whole_file file;
    unsigned char length[8];
    char *header = header_text(archive, order, &size);
    if (!header) {
        return grt_fail(GRT_INVALID, "%s: names and values must be UTF-8", path);
    }
    for (uint32_t i = 0; i < 8; i++) {
        length[i] = (unsigned char)((uint64_t)size >> 8 * i);
    }
    bool good = grt_whole_file_open(&file, path);
    if (good) {
        good = grt_whole_file_write(&file, length, sizeof length) &&
               grt_whole_file_write(&file, header, size);
        for (uint32_t i = 0; good && i < archive->tensor_count; i++) {
            const struct grt_archive_tensor *t = &archive->tensors[order[i]];
            good = write_elements(&file, t);
        }
        good = grt_whole_file_close(&file, good) && good;
    }
    free(header);
    return good;
}

bool grt_safetensors_save(const struct grt_archive *archive, const char *path) {
    if (!archive || !path) {
        return grt_fail(GRT_INVALID, "an archive and a path are wanted");
    }
    uint32_t *order = calloc(archive->tensor_count + 1, sizeof *order);
    if (!order) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for %s", path);
    }
    order_of(archive, order);
    bool good = write_file(archive, order, path);
    free(order);
    return good;
}
