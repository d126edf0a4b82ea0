// SPDX-License-Identifier: Apache-2.0
#include "gpurt/archive.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

struct grt_archive *grt_archive_create(void) {
    struct grt_archive *archive = calloc(1, sizeof *archive);
    if (!archive) {
        grt_fail(GRT_NO_MEMORY, "no host memory for an archive");
    }
    return archive;
}

void grt_archive_destroy(struct grt_archive **archive) {
    if (!archive || !*archive) {
        return;
    }
    for (uint32_t i = 0; i < (*archive)->tensor_count; i++) {
        if (!(*archive)->tensors[i].lent) {
            free((*archive)->tensors[i].data);
        }
    }
    if ((*archive)->give_back) {
        (*archive)->give_back((*archive)->lender);
    }
    for (uint32_t i = 0; i < (*archive)->value_count; i++) {
        free((*archive)->values[i].text);
    }
    free((*archive)->tensors);
    free((*archive)->values);
    free(*archive);
    *archive = NULL;
}

// Makes room for one more element: the array grows by doubling.
static bool grow(void **array, uint32_t count, size_t element) {
    if (count > 0 && (count & (count - 1)) != 0) {
        return true;
    }
    void *more = realloc(*array, (count ? 2 * (size_t)count : 1) * element);
    if (!more) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for an archive");
    }
    *array = more;
    return true;
}

// ---- tensors ----

// Names become paths of HDF5 groups, so every part between slashes must be a name.
static bool name_allowed(const char *name) {
    size_t part = 0, parts = 0;
    for (const char *c = name;; c++) {
        if (*c == '/' || *c == '\0') {
            parts++;
            const char *begin = c - part;
            if (part == 0 || (part == 1 && *begin == '.') ||
                (part == 2 && strncmp(begin, "..", 2) == 0)) {
                return false;
            }
            part = 0;
            if (*c == '\0') {
                return parts <= GRT_ARCHIVE_PARTS;
            }
            continue;
        }
        if ((unsigned char)*c < ' ' || *c == 127) {
            return false;
        }
        part++;
    }
}

// Bytes of a shape; false when they do not fit 63 bits.
static bool shape_bytes(enum grt_dtype dtype, uint32_t rank, const uint64_t *shape,
                        uint64_t *bytes) {
    *bytes = grt_dtype_size(dtype);
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] != 0 && *bytes > INT64_MAX / shape[i]) {
            return false;
        }
        *bytes *= shape[i];
    }
    return true;
}

struct grt_archive_tensor *grt_archive_find(const struct grt_archive *archive, const char *name) {
    for (uint32_t i = 0; archive && name && i < archive->tensor_count; i++) {
        if (strcmp(archive->tensors[i].name, name) == 0) {
            return &archive->tensors[i];
        }
    }
    return NULL;
}

// A tensor without elements; NULL with the sentence.
static struct grt_archive_tensor *name_tensor(struct grt_archive *archive, const char *name,
                                              enum grt_dtype dtype, uint32_t rank,
                                              const uint64_t *shape) {
    uint64_t bytes = 0;
    if (!archive || !name || (unsigned)dtype >= GRT_DTYPE_COUNT || rank > GRT_MAX_RANK ||
        (rank > 0 && !shape) || !shape_bytes(dtype, rank, shape, &bytes)) {
        grt_fail(GRT_INVALID, "an archive, a name, a type and a shape are wanted");
        return NULL;
    }
    if (strlen(name) >= GRT_ARCHIVE_NAME || !name_allowed(name)) {
        grt_fail(GRT_INVALID, "'%.200s' is no name for a tensor", name);
        return NULL;
    }
    if (grt_archive_find(archive, name)) {
        grt_fail(GRT_INVALID, "there are two tensors '%s'", name);
        return NULL;
    }
    if (archive->tensor_count == GRT_ARCHIVE_MAX_TENSORS) {
        grt_fail(GRT_INVALID, "more than %d tensors", GRT_ARCHIVE_MAX_TENSORS);
        return NULL;
    }
    if (!grow((void **)&archive->tensors, archive->tensor_count, sizeof *archive->tensors)) {
        return NULL;
    }
    struct grt_archive_tensor *tensor = &archive->tensors[archive->tensor_count++];
    *tensor = (struct grt_archive_tensor){.dtype = dtype, .rank = rank, .bytes = bytes};
    snprintf(tensor->name, sizeof tensor->name, "%s", name);
    for (uint32_t i = 0; i < rank; i++) {
        tensor->shape[i] = shape[i];
    }
    return tensor;
}

struct grt_archive_tensor *grt_archive_add(struct grt_archive *archive, const char *name,
                                           enum grt_dtype dtype, uint32_t rank,
                                           const uint64_t *shape, const void *data) {
    struct grt_archive_tensor *tensor = name_tensor(archive, name, dtype, rank, shape);
    if (!tensor) {
        return NULL;
    }
    tensor->data = calloc(1, tensor->bytes ? tensor->bytes : 1);
    if (!tensor->data) {
        archive->tensor_count--;
        grt_fail(GRT_NO_MEMORY, "no host memory for the %llu bytes of %s",
                 (unsigned long long)tensor->bytes, name);
        return NULL;
    }
    if (data && tensor->bytes > 0) {
        memcpy(tensor->data, data, tensor->bytes);
    }
    return tensor;
}

struct grt_archive_tensor *grt_archive_lend(struct grt_archive *archive, const char *name,
                                            enum grt_dtype dtype, uint32_t rank,
                                            const uint64_t *shape, void *data) {
    struct grt_archive_tensor *tensor =
        data ? name_tensor(archive, name, dtype, rank, shape) : NULL;
    if (!data) {
        grt_fail(GRT_INVALID, "'%.200s': elements to lend are wanted", name ? name : "");
    }
    if (tensor) {
        tensor->data = data;
        tensor->lent = true;
    }
    return tensor;
}

// ---- values ----

const struct grt_archive_value *grt_archive_value(const struct grt_archive *archive,
                                                  const char *name) {
    for (uint32_t i = 0; archive && name && i < archive->value_count; i++) {
        if (strcmp(archive->values[i].name, name) == 0) {
            return &archive->values[i];
        }
    }
    return NULL;
}

// The value of that name, emptied, or a new one; NULL with the sentence.
static struct grt_archive_value *value_slot(struct grt_archive *archive, const char *name) {
    if (!archive || !name || !name_allowed(name) || strchr(name, '/') ||
        strlen(name) >= GRT_ARCHIVE_VALUE_NAME) {
        grt_fail(GRT_INVALID, "'%.100s' is no name for a value", name ? name : "");
        return NULL;
    }
    uint32_t i = 0;
    while (i < archive->value_count && strcmp(archive->values[i].name, name) != 0) {
        i++;
    }
    if (i == archive->value_count) {
        if (i == GRT_ARCHIVE_MAX_VALUES) {
            grt_fail(GRT_INVALID, "no room for value '%s'", name);
            return NULL;
        }
        if (!grow((void **)&archive->values, i, sizeof *archive->values)) {
            return NULL;
        }
        archive->value_count++;
        archive->values[i].text = NULL;
    }
    free(archive->values[i].text);
    archive->values[i] = (struct grt_archive_value){.type = GRT_ARCHIVE_WHOLE};
    snprintf(archive->values[i].name, GRT_ARCHIVE_VALUE_NAME, "%s", name);
    return &archive->values[i];
}

bool grt_archive_set_whole(struct grt_archive *archive, const char *name, int64_t whole) {
    struct grt_archive_value *value = value_slot(archive, name);
    if (value) {
        value->whole = whole;
    }
    return value != NULL;
}

bool grt_archive_set_real(struct grt_archive *archive, const char *name, double real) {
    struct grt_archive_value *value = value_slot(archive, name);
    if (value) {
        value->type = GRT_ARCHIVE_REAL;
        value->real = real;
    }
    return value != NULL;
}

bool grt_archive_set_text(struct grt_archive *archive, const char *name, const char *text) {
    if (!text || strlen(text) > GRT_ARCHIVE_MAX_TEXT) {
        return grt_fail(GRT_INVALID, "the text of value '%.100s' has more than %d bytes",
                        name ? name : "", GRT_ARCHIVE_MAX_TEXT);
    }
    char *copy = strdup(text);
    struct grt_archive_value *value = copy ? value_slot(archive, name) : NULL;
    if (!copy) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for an archive");
    }
    if (!value) {
        free(copy);
        return false;
    }
    value->type = GRT_ARCHIVE_TEXT;
    value->text = copy;
    return true;
}

// Numbers come back from safetensors as texts, which is all its metadata can hold.
int64_t grt_archive_whole(const struct grt_archive *archive, const char *name, int64_t otherwise) {
    const struct grt_archive_value *value = grt_archive_value(archive, name);
    if (value && value->type == GRT_ARCHIVE_TEXT && value->text[0]) {
        char *end = NULL;
        errno = 0;
        long long whole = strtoll(value->text, &end, 10);
        return *end || errno ? otherwise : whole;
    }
    return value && value->type == GRT_ARCHIVE_WHOLE ? value->whole : otherwise;
}

double grt_archive_real(const struct grt_archive *archive, const char *name, double otherwise) {
    const struct grt_archive_value *value = grt_archive_value(archive, name);
    if (value && value->type == GRT_ARCHIVE_TEXT && value->text[0]) {
        char *end = NULL;
        double real = strtod(value->text, &end);
        return *end ? otherwise : real;
    }
    if (value && value->type == GRT_ARCHIVE_WHOLE) {
        return (double)value->whole;
    }
    return value && value->type == GRT_ARCHIVE_REAL ? value->real : otherwise;
}

const char *grt_archive_text(const struct grt_archive *archive, const char *name,
                             const char *otherwise) {
    const struct grt_archive_value *value = grt_archive_value(archive, name);
    return value && value->type == GRT_ARCHIVE_TEXT ? value->text : otherwise;
}

// ---- devices ----

bool grt_archive_take(struct grt_archive *archive, const char *name,
                      const struct grt_tensor *tensor) {
    if (!tensor || !tensor->range.buf) {
        return grt_fail(GRT_INVALID, "%s: a tensor of an allocated plan is wanted",
                        name ? name : "archive");
    }
    struct grt_archive_tensor *copy =
        grt_archive_add(archive, name, tensor->dtype, tensor->rank, tensor->shape, NULL);
    return copy && grt_buf_read(tensor->range.buf, tensor->range.offset, copy->data, copy->bytes);
}

// "f32 [64][32]"
static void shape_text(enum grt_dtype dtype, uint32_t rank, const uint64_t *shape, char text[128]) {
    int used = snprintf(text, 128, "%s ", grt_dtype_text(dtype));
    for (uint32_t i = 0; i < rank && used < 100; i++) {
        used += snprintf(text + used, (size_t)(128 - used), "[%llu]", (unsigned long long)shape[i]);
    }
}

bool grt_archive_fits(const struct grt_archive *archive, const char *name, enum grt_dtype dtype,
                      uint32_t rank, const uint64_t *shape) {
    if (!archive || !name || !shape) {
        return grt_fail(GRT_INVALID, "an archive, a name and a shape are wanted");
    }
    const char *path = archive->path[0] ? archive->path : "the archive";
    const struct grt_archive_tensor *found = grt_archive_find(archive, name);
    if (!found) {
        return grt_fail(GRT_BAD_DATA, "%s: tensor '%s' is missing", path, name);
    }
    bool same = found->dtype == dtype && found->rank == rank;
    for (uint32_t i = 0; same && i < rank; i++) {
        same = found->shape[i] == shape[i];
    }
    if (!same) {
        char theirs[128];
        char ours[128];
        shape_text(found->dtype, found->rank, found->shape, theirs);
        shape_text(dtype, rank, shape, ours);
        return grt_fail(GRT_BAD_DATA, "%s: tensor '%s' is %s there and %s here", path, name, theirs,
                        ours);
    }
    return true;
}

bool grt_archive_give(const struct grt_archive *archive, const char *name,
                      const struct grt_tensor *tensor) {
    if (!archive || !name || !tensor || !tensor->range.buf) {
        return grt_fail(GRT_INVALID, "%s: an archive and a tensor of an allocated plan are wanted",
                        name ? name : "archive");
    }
    if (!grt_archive_fits(archive, name, tensor->dtype, tensor->rank, tensor->shape)) {
        return false;
    }
    const struct grt_archive_tensor *found = grt_archive_find(archive, name);
    return grt_buf_write(tensor->range.buf, tensor->range.offset, found->data, found->bytes);
}
