// SPDX-License-Identifier: Apache-2.0
// Files of NumPy: .npy, and .npz, a zip archive of such files, stored or deflated.
#include "numpy.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/log.h"
#include "base/whole_file.h"

#define MOST_BYTES (1ull << 34)

uint64_t numpy_number(const uint8_t *at, uint32_t bytes) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        value |= (uint64_t)at[i] << 8 * i;
    }
    return value;
}

bool numpy_wrong(const char *path, const char *name, const char *what) {
    return grt_fail(GRT_BAD_DATA, "%s: %s%s%s", path, name, name[0] ? ": " : "", what);
}

// ---- .npy ----

// What stands behind 'key': in the header.
static const char *behind(const char *header, const char *key) {
    const char *at = strstr(header, key);
    at = at ? strchr(at + strlen(key), ':') : NULL;
    return at ? at + 1 + strspn(at + 1, " ") : NULL;
}

static bool read_shape(const char *at, struct numpy_array *a) {
    at++;  // (
    while (a->rank < NUMPY_AXES && isdigit((unsigned char)*at)) {
        char *end = NULL;
        a->shape[a->rank++] = strtoull(at, &end, 10);
        at = end + strspn(end, ", ");
    }
    return a->rank > 0 && *at == ')';
}

static bool unusable(const char *path, const char *name, struct numpy_array *a, const char *what) {
    a->left = a->spare;
    return a->spare || numpy_wrong(path, name, what);
}

// From the bytes of a whole .npy.
static bool read_array(const char *path, const char *name, struct numpy_array *a) {
    static const uint8_t magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    char header[512];
    if (a->size < 12 || memcmp(a->bytes, magic, sizeof magic) != 0) {
        return unusable(path, name, a, "no .npy");
    }
    uint64_t begin = a->bytes[6] == 1 ? 10 : 12;
    uint64_t length = numpy_number(a->bytes + 8, a->bytes[6] == 1 ? 2 : 4);
    if (length >= sizeof header || begin + length > a->size) {
        return unusable(path, name, a, "its header is too long");
    }
    memcpy(header, a->bytes + begin, length);
    header[length] = '\0';
    const char *type = behind(header, "'descr'"), *order = behind(header, "'fortran_order'");
    const char *shape = behind(header, "'shape'");
    if (!type || !order || !shape || *shape != '(' || type[0] != '\'' || !read_shape(shape, a)) {
        return unusable(path, name, a,
                        "its header has no descr, fortran_order and shape of 1 to 4 axes");
    }
    if (strncmp(order, "False", 5) != 0) {
        return unusable(path, name, a, "in Fortran's order; numpy.ascontiguousarray turns it");
    }
    if (type[1] == '\0' || type[2] == '\0') {
        return unusable(path, name, a, "its descr ends too early");
    }
    a->kind = type[2];
    a->swapped = type[1] == '>';
    a->width = (uint32_t)strtoul(type + 3, NULL, 10);
    if (!strchr("<>|=", type[1]) || !strchr("biuf", a->kind) || a->width == 0 || a->width > 8) {
        return unusable(path, name, a, "of a type that is not taken");
    }
    uint64_t bytes = a->width;
    for (uint32_t i = 0; i < a->rank; i++) {
        if (a->shape[i] == 0 || bytes > MOST_BYTES / a->shape[i]) {
            return unusable(path, name, a, "its shape is empty or too large");
        }
        bytes *= a->shape[i];
    }
    a->bytes += begin + length;
    a->size -= begin + length;
    return bytes <= a->size || unusable(path, name, a, "it ends before its last row");
}

bool numpy_read(const char *path, struct numpy_array *a) {
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
    if (*at > size || size - *at < 46 || numpy_number(h, 4) != 0x02014b50) {
        return false;
    }
    uint64_t name = numpy_number(h + 28, 2), extra = numpy_number(h + 30, 2),
             note = numpy_number(h + 32, 2);
    if (*at + 46 + name + extra + note > size) {
        return false;
    }
    *e = (struct entry){.method = (uint32_t)numpy_number(h + 10, 2),
                        .packed = numpy_number(h + 20, 4),
                        .bytes = numpy_number(h + 24, 4),
                        .at = numpy_number(h + 42, 4)};
    snprintf(e->name, sizeof e->name, "%.*s", (int)(name < 63 ? name : 63), (const char *)h + 46);
    const uint8_t *x = h + 46 + name, *end = x + extra;
    while (x + 4 <= end && x + 4 + numpy_number(x + 2, 2) <= end) {
        const uint8_t *v = x + 4, *last = v + numpy_number(x + 2, 2);
        uint64_t *fields[] = {&e->bytes, &e->packed, &e->at};
        for (int i = 0; numpy_number(x, 2) == 1 && i < 3; i++) {
            if (*fields[i] == UINT32_MAX && v + 8 <= last) {
                *fields[i] = numpy_number(v, 8);
                v += 8;
            }
        }
        x = last;
    }
    *at += 46 + name + extra + note;
    return true;
}

static bool unpack(const char *path, const uint8_t *file, uint64_t size, const struct entry *e,
                   struct numpy_array *a) {
    bool inside = size >= 30 && e->at <= size - 30;
    const uint8_t *h = file + (inside ? e->at : 0);
    uint64_t begin = inside ? e->at + 30 + numpy_number(h + 26, 2) + numpy_number(h + 28, 2) : size;
    if (!inside || begin > size || e->packed > size - begin || e->bytes > MOST_BYTES ||
        (e->method != 0 && e->method != 8) || (e->method == 0 && e->packed != e->bytes)) {
        return numpy_wrong(path, e->name, "a damaged entry, or one that is packed in another way");
    }
    a->bytes = file + begin;
    a->size = e->bytes;
    if (e->method == 8) {
        a->own = malloc(e->bytes + 1);
        if (!a->own || !inflate_into(file + begin, e->packed, a->own, e->bytes)) {
            return numpy_wrong(path, e->name, "cannot be inflated");
        }
        a->bytes = a->own;
    }
    return read_array(path, e->name, a);
}

// Where the directory has more than 65534 entries or begins past 4 GiB, another end of it stands
// before the one at `end`, and before that a locator that says where. False: it is not there.
static bool find_large(const uint8_t *file, uint64_t end, uint64_t *count, uint64_t *at) {
    if (*count != UINT16_MAX && *at != UINT32_MAX) {
        return true;
    }
    const uint8_t *locator = end >= 20 ? file + end - 20 : NULL;
    if (!locator || numpy_number(locator, 4) != 0x07064b50) {
        return *at != UINT32_MAX;  // there may be just so many
    }
    uint64_t record = numpy_number(locator + 8, 8);
    if (end < 56 || record > end - 56 || numpy_number(file + record, 4) != 0x06064b50) {
        return false;
    }
    *count = numpy_number(file + record + 32, 8);
    *at = numpy_number(file + record + 48, 8);
    return *at <= end;
}

bool numpy_each(const char *path, uint8_t **bytes, numpy_fn *fn, void *context) {
    uint64_t size = 0;
    uint8_t *file = *bytes = grt_whole_file_read(path, MOST_BYTES, &size);
    if (!file) {
        return false;
    }
    uint64_t end = size >= 22 ? size - 22 : 0, at = 0;
    while (end > 0 && numpy_number(file + end, 4) != 0x06054b50) {
        end--;
    }
    if (size < 22 || numpy_number(file + end, 4) != 0x06054b50) {
        return numpy_wrong(path, "", "no .npz: it has no directory at its end");
    }
    uint64_t count = numpy_number(file + end + 10, 2);
    at = numpy_number(file + end + 16, 4);
    if (!find_large(file, end, &count, &at)) {
        return numpy_wrong(path, "", "its directory of 64 bits is damaged");
    }
    struct entry e;
    for (uint64_t i = 0; i < count; i++) {
        if (!next_entry(file, end, &at, &e)) {
            return numpy_wrong(path, "", "its directory is damaged");
        }
        struct numpy_array *a = NULL;
        if (!fn(context, e.name, &a) || (a && !unpack(path, file, size, &e, a))) {
            return false;
        }
    }
    return true;
}
