// SPDX-License-Identifier: Apache-2.0
// From a source to HDF5: rows are read and written some megabytes at a time, so the source may be
// larger than the memory. The sizes of the data sets must be known first: where images are left
// out, all are read once more.
#include "import.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <hdf5.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "gpurt/direct.h"
#include "base/thread.h"
#include "base/whole_file.h"
#include "data/file/hdf5_put.h"

#define MOST_THREADS 16
#define BLOCK_BYTES (4u << 20)  // of images written at once

static const struct import_reader *const readers[] = {
    &import_numpy, &import_cifar10,          &import_cifar10_pickled, &import_cifar100,
    &import_stl10, &import_cifar100_pickled, &import_folder,          NULL};

bool import_has(const char *folder, const char *name, char path[IMPORT_PATH]) {
    int length = snprintf(path, IMPORT_PATH, "%s/%s", folder, name);
    return length > 0 && length < IMPORT_PATH && access(path, F_OK) == 0;
}

void import_note(const struct import *import, const char *format, ...) {
    char text[IMPORT_PATH + 256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (import->desc->note) {
        import->desc->note(text);
    }
}

// ---- names of classes ----

bool import_add_name(struct import *import, const char *name, size_t length) {
    char **longer = realloc(import->names, (import->classes + 1) * sizeof *longer);
    if (longer) {
        import->names = longer;
    }
    char *copy = longer ? strndup(name, length) : NULL;
    if (!copy) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for the names of classes");
    }
    import->names[import->classes++] = copy;
    return true;
}

bool import_read_names(struct import *import, const char *path) {
    FILE *file = fopen(path, "r");
    char line[512];
    bool good = true;
    while (file && good && fgets(line, sizeof line, file)) {
        size_t length = strcspn(line, "\r\n");
        good = length == 0 || import_add_name(import, line, length);
    }
    if (file) {
        fclose(file);
    }
    return good;
}

static void forget_names(struct import *import) {
    for (uint32_t i = 0; import->names && i < import->classes; i++) {
        free(import->names[i]);
    }
    free(import->names);
    import->names = NULL;
}

// ---- the file ----

static bool put_names(hid_t file, const struct import *import) {
    bool fits = true;
    bool good = grt_attribute_put_texts(file, "class_names", (const char *const *)import->names,
                                        import->classes, &fits);
    if (!fits) {
        import_note(import, "the names of %u classes are too long for the file", import->classes);
    }
    return good;
}

struct sets {
    hid_t x, y;  // y below 0: the part has no labels
};

static hid_t create_set(hid_t file, const char *group, const char *name, hid_t type, int rank,
                        const hsize_t *shape) {
    char path[64];
    hid_t links = H5Pcreate(H5P_LINK_CREATE), space = H5Screate_simple(rank, shape, NULL);
    snprintf(path, sizeof path, "%s%s%s", group, group[0] ? "/" : "", name);
    H5Pset_create_intermediate_group(links, 1);
    hid_t set = H5Dcreate2(file, path, type, space, links, H5P_DEFAULT, H5P_DEFAULT);
    H5Sclose(space);
    H5Pclose(links);
    return set;
}

struct writing {
    struct import *import;
    const struct import_reader *reader;
    uint64_t done, all, left_out;
    uint8_t *x;
    int32_t *y;
    uint64_t block;        // rows of x and y
    uint32_t threads;      // that read rows
    bool stopped, failed;  // failed: and the sentence said
};

// Rows of a block that threads read ahead, each into its own place. A row that is not simply taken,
// or of which there is something to say, is left to whoever goes through them in order.
struct ahead {
    struct writing *w;
    uint32_t part;
    uint64_t first, count, bytes;
    atomic_uint_fast64_t next;
    bool *taken;
};

static _Thread_local bool spoken;

static void hear(const char *text) {
    (void)text;
    spoken = true;
}

static void *read_ahead(void *context) {
    struct ahead *a = context;
    struct grt_import_desc desc = *a->w->import->desc;
    struct import import = *a->w->import;
    bool before = grt_quiet(true);
    desc.note = hear;
    import.desc = &desc;
    import.ahead = true;
    for (uint64_t i = atomic_fetch_add(&a->next, 1); i < a->count && !(desc.stop && desc.stop());
         i = atomic_fetch_add(&a->next, 1)) {
        spoken = false;
        enum import_row row =
            a->w->reader->read(&import, a->part, a->first + i, a->w->x + i * a->bytes, a->w->y + i);
        a->taken[i] = row == IMPORT_TAKEN && !spoken;
    }
    grt_quiet(before);
    return NULL;
}

static void read_by_threads(struct ahead *a) {
    pthread_t ids[MOST_THREADS];
    uint32_t count = 0;
    while (count + 1 < a->w->threads && count + 1 < a->count &&
           pthread_create(&ids[count], NULL, read_ahead, a) == 0) {
        count++;
    }
    read_ahead(a);
    while (count > 0) {
        pthread_join(ids[--count], NULL);
    }
}

// The next rows of a part into w->x and w->y; how many, short of `count` where some are left out.
static uint64_t read_block(struct writing *w, uint32_t part, uint64_t first, uint64_t count) {
    uint64_t bytes = (uint64_t)w->import->height * w->import->width * w->import->channels, got = 0;
    struct ahead ahead = {.w = w, .part = part, .first = first, .count = count, .bytes = bytes};
    ahead.taken = w->threads > 1 ? calloc(count, sizeof *ahead.taken) : NULL;
    if (ahead.taken) {
        read_by_threads(&ahead);
    }
    for (uint64_t i = 0; i < count && !w->failed; i++) {
        enum import_row row = IMPORT_TAKEN;
        if (!ahead.taken || !ahead.taken[i]) {
            row = w->reader->read(w->import, part, first + i, w->x + i * bytes, w->y + i);
        }
        got += row == IMPORT_TAKEN;
        w->left_out += row == IMPORT_LEFT_OUT;
        w->failed = row == IMPORT_FAILED;
        w->stopped = w->import->desc->stop && w->import->desc->stop();
        w->failed = w->failed || w->stopped;
    }
    free(ahead.taken);
    w->done += count;
    return got;
}

// False where the file cannot be written, or w says why.
static bool write_part(struct writing *w, hid_t file, uint32_t part) {
    const struct import *import = w->import;
    const struct import_part *p = &import->parts[part];
    const hsize_t shape[4] = {p->rows, import->height, import->width, import->channels};
    uint64_t before = w->left_out;
    struct sets sets = {create_set(file, p->group, "x", H5T_STD_U8LE, 4, shape),
                        p->labelled ? create_set(file, p->group, "y", H5T_STD_I32LE, 1, shape)
                                    : -1};
    bool good = sets.x >= 0 && (sets.y >= 0 || !p->labelled);
    for (uint64_t first = 0; good && first < p->rows; first += w->block) {
        uint64_t count = p->rows - first < w->block ? p->rows - first : w->block;
        uint64_t got = read_block(w, part, first, count);
        good = !w->failed;
        if (good && w->left_out == before && got == count) {
            good = grt_rows_put(sets.x, H5T_NATIVE_UINT8, 4, shape, first, count, w->x) &&
                   (!p->labelled ||
                    grt_rows_put(sets.y, H5T_NATIVE_INT32, 1, shape, first, count, w->y));
        }
        if (good && import->desc->progress) {
            import->desc->progress(w->done, w->all);
        }
    }
    good = H5Dclose(sets.x) >= 0 && good;
    return (!p->labelled || H5Dclose(sets.y) >= 0) && good;
}

static bool write_sets(struct writing *w, hid_t file) {
    const struct import *import = w->import;
    bool good = true;
    w->done = w->left_out = 0;
    for (uint32_t i = 0; good && i < import->part_count; i++) {
        good = import->parts[i].rows == 0 || write_part(w, file, i);
    }
    return good && grt_attribute_put_text(file, "gpurt_make", w->reader->kind) &&
           (import->classes == 0 ||
            grt_attribute_put(file, "classes", H5T_NATIVE_UINT32, &import->classes)) &&
           (!import->names || put_names(file, import));
}

static bool write_file(struct writing *w, const char *temporary) {
    bool good = false;
    errno = 0;
    grt_hdf5_enter();
    H5E_BEGIN_TRY {
        hid_t file = H5Fcreate(temporary, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        good = file >= 0 && write_sets(w, file);
        good = file >= 0 && H5Fclose(file) >= 0 && good;
    }
    H5E_END_TRY;
    grt_hdf5_leave();
    if (good || (w->failed && !w->stopped)) {
        return good;
    }
    int error = w->stopped ? 0 : errno;
    return grt_fail(GRT_IO, "%s: %s%s%s", w->import->desc->path,
                    w->stopped ? "not written: interrupted" : "cannot be written",
                    error ? ": " : "", error ? strerror(error) : "");
}

static uint64_t rows_of(const struct import *import) {
    uint64_t rows = 0;
    for (uint32_t i = 0; i < import->part_count; i++) {
        rows += import->parts[i].rows;
    }
    return rows;
}

// Once, or twice where images are left out: then the second time has the others alone.
static bool write_whole(struct writing *w, const char *temporary, uint64_t *left_out) {
    for (int turn = 0; turn < 2; turn++) {
        w->all = rows_of(w->import);
        if (w->all == 0) {
            return grt_fail(GRT_BAD_DATA, "%s: no image of it can be read",
                            w->import->desc->source);
        }
        if (!write_file(w, temporary)) {
            return false;
        }
        if (w->left_out == 0) {
            return true;
        }
        *left_out += w->left_out;
        w->reader->drop(w->import);
    }
    return grt_fail(GRT_IO, "%s: changed while it was read", w->import->desc->source);
}

static uint32_t threads_of(const struct grt_import_desc *d) {
    long cores = d->threads > 0 ? (long)d->threads : sysconf(_SC_NPROCESSORS_ONLN);
    return (uint32_t)(cores < 1 ? 1 : cores < MOST_THREADS ? cores : MOST_THREADS);
}

static bool import_all(struct import *import, const struct import_reader *reader,
                       struct grt_import_result *result) {
    const struct grt_import_desc *d = import->desc;
    uint64_t bytes = (uint64_t)import->height * import->width * import->channels;
    struct writing w = {
        .import = import, .reader = reader, .block = bytes < BLOCK_BYTES ? BLOCK_BYTES / bytes : 1};
    w.threads = reader->apart ? threads_of(d) : 1;
    struct grt_whole_file file;
    w.x = malloc(w.block * bytes);
    w.y = malloc(w.block * sizeof *w.y);
    bool good = (w.x && w.y) || grt_fail(GRT_NO_MEMORY, "no host memory for images");
    good = good && grt_whole_file_open_named(&file, d->path);
    if (good) {
        good = write_whole(&w, file.temporary, &result->left_out);
        good = grt_whole_file_close(&file, good) && good;
    }
    free(w.x);
    free(w.y);
    result->rows = rows_of(import);
    result->height = import->height;
    result->width = import->width;
    result->channels = import->channels;
    result->classes = import->classes;
    return good;
}

static bool is_hdf5(const char *path) {
    static const char magic[] = "\x89HDF\r\n\x1a\n";
    char begins[sizeof magic - 1];
    FILE *file = fopen(path, "rb");
    bool is = file && fread(begins, sizeof begins, 1, file) == 1 &&
              memcmp(begins, magic, sizeof begins) == 0;
    if (file) {
        fclose(file);
    }
    return is;
}

bool grt_data_import(const struct grt_import_desc *desc, struct grt_import_result *result) {
    if (!desc || !desc->source || !desc->path || !result || desc->size > IMPORT_MOST_SIDE) {
        return grt_fail(GRT_INVALID,
                        "grt_data_import: a source, a path and a result are wanted, "
                        "and a size of at most %d",
                        IMPORT_MOST_SIDE);
    }
    *result = (struct grt_import_result){0};
    if (access(desc->source, R_OK) != 0) {
        return grt_fail(GRT_NO_INPUT, "%s: %s", desc->source, strerror(errno));
    }
    if (!grt_direct_known(desc->source)) {
        return false;
    }
    const struct import_reader *reader = NULL;
    for (size_t i = 0; readers[i] && !reader; i++) {
        reader = readers[i]->knows(desc->source) ? readers[i] : NULL;
    }
    if (!reader && is_hdf5(desc->source)) {
        return grt_fail(GRT_BAD_DATA,
                        "%s: an HDF5 file is used as it is, nothing is to be imported: --data %s",
                        desc->source, desc->source);
    }
    if (!reader) {
        return grt_fail(GRT_BAD_DATA,
                        "%s: none of CIFAR-10, CIFAR-100, STL-10, a folder of folders of .png and "
                        ".jpg, .npy, .npz, .csv and .tsv",
                        desc->source);
    }
    struct import import = {.desc = desc};
    snprintf(result->kind, sizeof result->kind, "%s", reader->kind);
    bool good = reader->open(&import) && import_all(&import, reader, result);
    reader->close(&import);
    forget_names(&import);
    return good;
}
