// SPDX-License-Identifier: Apache-2.0
// Arrays of NumPy: .npy with u8 [N][H][W], [N][H][W][C] or [N][C][H][W], its labels in another; or
// .npz, a zip archive of such files, stored or deflated, whose names say what they are.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/log.h"
#include "base/whole_file.h"
#include "import.h"

#define MOST_BYTES (1ull << 34)
#define AXES 4

struct array {
    const uint8_t *bytes;
    uint8_t *own;  // the same where it was inflated, or read by itself
    uint64_t size;
    char kind;       // b, i, u or f, as NumPy has them
    uint32_t width;  // bytes of an element
    uint32_t rank;
    uint64_t shape[AXES];
};

struct arrays {
    uint8_t *file;
    struct array x[IMPORT_PARTS], y[IMPORT_PARTS];
    bool planes;  // [N][C][H][W]
};

static uint64_t number(const uint8_t *at, uint32_t bytes) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        value |= (uint64_t)at[i] << 8 * i;
    }
    return value;
}

static bool wrong(const char *path, const char *name, const char *what) {
    return grt_fail(GRT_BAD_DATA, "%s: %s%s%s", path, name, name[0] ? ": " : "", what);
}

// ---- .npy ----

// What stands behind 'key': in the header.
static const char *behind(const char *header, const char *key) {
    const char *at = strstr(header, key);
    at = at ? strchr(at + strlen(key), ':') : NULL;
    return at ? at + 1 + strspn(at + 1, " ") : NULL;
}

static bool read_shape(const char *at, struct array *a) {
    at++;  // (
    while (a->rank < AXES && isdigit((unsigned char)*at)) {
        char *end = NULL;
        a->shape[a->rank++] = strtoull(at, &end, 10);
        at = end + strspn(end, ", ");
    }
    return a->rank > 0 && *at == ')';
}

// From the bytes of a whole .npy.
static bool read_array(const char *path, const char *name, struct array *a) {
    static const uint8_t magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    char header[512];
    if (a->size < 12 || memcmp(a->bytes, magic, sizeof magic) != 0) {
        return wrong(path, name, "no .npy");
    }
    uint64_t begin = a->bytes[6] == 1 ? 10 : 12;
    uint64_t length = number(a->bytes + 8, a->bytes[6] == 1 ? 2 : 4);
    if (length >= sizeof header || begin + length > a->size) {
        return wrong(path, name, "its header is too long");
    }
    memcpy(header, a->bytes + begin, length);
    header[length] = '\0';
    const char *type = behind(header, "'descr'"), *order = behind(header, "'fortran_order'");
    const char *shape = behind(header, "'shape'");
    if (!type || !order || !shape || *shape != '(' || type[0] != '\'' || !read_shape(shape, a)) {
        return wrong(path, name, "its header has no descr, fortran_order and shape of 1 to 4 axes");
    }
    if (strncmp(order, "False", 5) != 0) {
        return wrong(path, name, "in Fortran's order; numpy.ascontiguousarray turns it");
    }
    a->kind = type[2];
    a->width = (uint32_t)strtoul(type + 3, NULL, 10);
    if (type[1] == '>' || a->width == 0 || a->width > 8) {
        return wrong(path, name, "of a type that is not taken");
    }
    uint64_t bytes = a->width;
    for (uint32_t i = 0; i < a->rank; i++) {
        if (a->shape[i] == 0 || bytes > MOST_BYTES / a->shape[i]) {
            return wrong(path, name, "its shape is empty or too large");
        }
        bytes *= a->shape[i];
    }
    a->bytes += begin + length;
    a->size -= begin + length;
    return bytes <= a->size || wrong(path, name, "it ends before its last row");
}

static bool read_npy(const char *path, struct array *a) {
    a->own = grt_whole_file_read(path, MOST_BYTES, &a->size);
    a->bytes = a->own;
    return a->own && read_array(path, "", a);
}

// ---- .npz ----

static bool inflate_into(const uint8_t *from, uint64_t size, uint8_t *to, uint64_t bytes) {
    z_stream z = {.next_in = (uint8_t *)(uintptr_t)from, .next_out = to};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) {
        return false;
    }
    int code = Z_OK;
    while (code == Z_OK) {
        uint64_t in = size - z.total_in, out = bytes - z.total_out;
        z.avail_in = in < 1u << 30 ? (uInt)in : 1u << 30;
        z.avail_out = out < 1u << 30 ? (uInt)out : 1u << 30;
        code =
            z.avail_in == 0 || z.avail_out == 0 ? inflate(&z, Z_FINISH) : inflate(&z, Z_NO_FLUSH);
    }
    bool good = code == Z_STREAM_END && z.total_out == bytes;
    inflateEnd(&z);
    return good;
}

struct entry {
    char name[64];
    uint64_t at, packed, bytes;
    uint32_t method;
};

// An entry of the central directory at `at`, moved behind it; sizes of 64 bits stand in its extra
// field.
static bool next_entry(const uint8_t *file, uint64_t size, uint64_t *at, struct entry *e) {
    const uint8_t *h = file + *at;
    if (*at + 46 > size || number(h, 4) != 0x02014b50) {
        return false;
    }
    uint64_t name = number(h + 28, 2), extra = number(h + 30, 2), note = number(h + 32, 2);
    if (*at + 46 + name + extra + note > size) {
        return false;
    }
    *e = (struct entry){.method = (uint32_t)number(h + 10, 2),
                        .packed = number(h + 20, 4),
                        .bytes = number(h + 24, 4),
                        .at = number(h + 42, 4)};
    snprintf(e->name, sizeof e->name, "%.*s", (int)(name < 63 ? name : 63), (const char *)h + 46);
    const uint8_t *x = h + 46 + name, *end = x + extra;
    while (x + 4 <= end && x + 4 + number(x + 2, 2) <= end) {
        const uint8_t *v = x + 4, *last = v + number(x + 2, 2);
        uint64_t *fields[] = {&e->bytes, &e->packed, &e->at};
        for (int i = 0; number(x, 2) == 1 && i < 3; i++) {
            if (*fields[i] == UINT32_MAX && v + 8 <= last) {
                *fields[i] = number(v, 8);
                v += 8;
            }
        }
        x = last;
    }
    *at += 46 + name + extra + note;
    return true;
}

static bool unpack(const char *path, const uint8_t *file, uint64_t size, const struct entry *e,
                   struct array *a) {
    const uint8_t *h = file + e->at;
    uint64_t begin = e->at + 30 <= size ? e->at + 30 + number(h + 26, 2) + number(h + 28, 2) : size;
    if (begin > size || e->packed > size - begin || e->bytes > MOST_BYTES ||
        (e->method != 0 && e->method != 8) || (e->method == 0 && e->packed != e->bytes)) {
        return wrong(path, e->name, "a damaged entry, or one that is packed in another way");
    }
    a->bytes = file + begin;
    a->size = e->bytes;
    if (e->method == 8) {
        a->own = malloc(e->bytes + 1);
        if (!a->own || !inflate_into(file + begin, e->packed, a->own, e->bytes)) {
            return wrong(path, e->name, "cannot be inflated");
        }
        a->bytes = a->own;
    }
    return read_array(path, e->name, a);
}

// Which part and role an entry's name says, in any of the common ways.
static struct array *place_of(struct arrays *all, const char *name) {
    static const char *const names[IMPORT_PARTS][2] = {
        {"x images data x_train train_x train_images train_data arr_0",
         "y labels targets y_train train_y train_labels train_targets arr_1"},
        {"x_test test_x test_images test_data", "y_test test_y test_labels test_targets"},
        {"x_val val_x val_images val_data", "y_val val_y val_labels val_targets"},
    };
    size_t length = strcspn(name, ".");
    for (uint32_t part = 0; part < IMPORT_PARTS; part++) {
        for (int role = 0; role < 2; role++) {
            for (const char *at = names[part][role]; *at; at += strspn(at, " ")) {
                size_t size = strcspn(at, " ");
                if (size == length && strncmp(at, name, size) == 0) {
                    return role == 0 ? &all->x[part] : &all->y[part];
                }
                at += size;
            }
        }
    }
    return NULL;
}

static bool read_npz(struct import *import, struct arrays *all) {
    const char *path = import->desc->source;
    uint64_t size = 0;
    all->file = grt_whole_file_read(path, MOST_BYTES, &size);
    if (!all->file) {
        return false;
    }
    uint64_t end = size >= 22 ? size - 22 : 0, at = 0;
    while (end > 0 && number(all->file + end, 4) != 0x06054b50) {
        end--;
    }
    if (size < 22 || number(all->file + end, 4) != 0x06054b50) {
        return wrong(path, "", "no .npz: it has no directory at its end");
    }
    uint64_t count = number(all->file + end + 10, 2);
    at = number(all->file + end + 16, 4);
    struct entry e;
    for (uint64_t i = 0; i < count; i++) {
        if (!next_entry(all->file, end, &at, &e)) {
            return wrong(path, "", "its directory is damaged");
        }
        struct array *a = place_of(all, e.name);
        if (!a) {
            import_note(import, "%s: %s is none of the names that are known; left out", path,
                        e.name);
        } else if (a->bytes) {
            return wrong(path, e.name, "a second array of that meaning");
        } else if (!unpack(path, all->file, size, &e, a)) {
            return false;
        }
    }
    return true;
}

// ---- the reader ----

static bool check_images(struct import *import, struct arrays *all, const struct array *x) {
    const char *path = import->desc->source;
    if (x->kind != 'u' || x->width != 1 || x->rank < 3) {
        return wrong(path, "images", "u8 of [N][H][W], [N][H][W][C] or [N][C][H][W] is wanted");
    }
    bool planes = x->rank == 4 && x->shape[1] <= 4 && x->shape[3] > 4;
    uint64_t channels = x->rank == 3 ? 1 : planes ? x->shape[1] : x->shape[3];
    uint64_t height = x->shape[planes ? 2 : 1], width = x->shape[planes ? 3 : 2];
    if (height > IMPORT_MOST_SIDE || width > IMPORT_MOST_SIDE || channels > 64) {
        return wrong(path, "images", "more than 16384 pixels wide or high, or 64 channels");
    }
    bool first = import->height == 0;
    if (!first && (height != import->height || width != import->width ||
                   channels != import->channels || planes != all->planes)) {
        return wrong(path, "images", "of another shape than those to train on");
    }
    import->height = (uint32_t)height;
    import->width = (uint32_t)width;
    import->channels = (uint32_t)channels;
    all->planes = planes;
    return true;
}

static int64_t label_at(const struct array *y, uint64_t row) {
    uint64_t bits = number(y->bytes + row * y->width, y->width);
    bool negative = y->kind == 'i' && y->width > 0 && (bits >> (8 * y->width - 1) & 1);
    return negative ? -1 : bits > INT32_MAX ? -1 : (int64_t)bits;
}

static bool check_labels(struct import *import, const struct array *y, uint64_t rows) {
    const char *path = import->desc->labels ? import->desc->labels : import->desc->source;
    if ((y->kind != 'i' && y->kind != 'u') || y->shape[0] != rows ||
        (y->rank > 1 && (y->rank > 2 || y->shape[1] != 1))) {
        return wrong(path, "labels", "a whole number for each image is wanted");
    }
    for (uint64_t i = 0; i < rows; i++) {
        int64_t label = label_at(y, i);
        if (label < 0 || label >= IMPORT_MOST_CLASSES) {
            return wrong(path, "labels", "one is below 0 or above a million");
        }
        import->classes =
            (uint32_t)label >= import->classes ? (uint32_t)label + 1 : import->classes;
    }
    return true;
}

static bool open_numpy(struct import *import) {
    static const char *const groups[] = {"", "test", "validation"};
    const char *source = import->desc->source;
    struct arrays *all = calloc(1, sizeof *all);
    import->own = all;
    if (!all) {
        return grt_fail(GRT_NO_MEMORY, "no host memory to read arrays");
    }
    bool npz = strcmp(source + strlen(source) - 4, ".npz") == 0;
    bool good = npz ? read_npz(import, all)
                    : read_npy(source, &all->x[0]) &&
                          (!import->desc->labels || read_npy(import->desc->labels, &all->y[0]));
    if (good && !all->x[0].bytes) {
        good = wrong(source, "", "no array of images, such as x, images or x_train");
    }
    for (uint32_t i = 0; good && i < IMPORT_PARTS; i++) {
        import->parts[i] = (struct import_part){.group = groups[i], .labelled = all->y[i].bytes};
        import->part_count = IMPORT_PARTS;
        if (all->x[i].bytes) {
            import->parts[i].rows = all->x[i].shape[0];
            good = check_images(import, all, &all->x[i]) &&
                   (!all->y[i].bytes || check_labels(import, &all->y[i], all->x[i].shape[0]));
        }
    }
    return good;
}

static enum import_row read_row(struct import *import, uint32_t part, uint64_t row, uint8_t *x,
                                int32_t *y) {
    const struct arrays *all = import->own;
    uint64_t pixels = (uint64_t)import->height * import->width, channels = import->channels;
    const uint8_t *from = all->x[part].bytes + row * pixels * channels;
    for (uint64_t i = 0; i < pixels * channels; i++) {
        x[i] = all->planes ? from[i % channels * pixels + i / channels] : from[i];
    }
    *y = import->parts[part].labelled ? (int32_t)label_at(&all->y[part], row) : 0;
    return IMPORT_TAKEN;
}

static void close_numpy(struct import *import) {
    struct arrays *all = import->own;
    for (uint32_t i = 0; all && i < IMPORT_PARTS; i++) {
        free(all->x[i].own);
        free(all->y[i].own);
    }
    free(all ? all->file : NULL);
    free(all);
}

static bool knows(const char *source) {
    size_t length = strlen(source);
    const char *ending = length > 4 ? source + length - 4 : "";
    return strcmp(ending, ".npy") == 0 || strcmp(ending, ".npz") == 0;
}

const struct import_reader import_numpy = {"NumPy", knows, open_numpy, read_row, NULL, close_numpy};
