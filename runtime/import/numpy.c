// SPDX-License-Identifier: Apache-2.0
// Arrays of NumPy: .npy with u8 [N][H][W], [N][H][W][C] or [N][C][H][W], its labels in another; or
// .npz, a zip archive of such files, stored or deflated, whose names say what they are.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "import.h"
#include "numpy.h"

struct arrays {
    uint8_t *file;
    struct numpy_array x[IMPORT_PARTS], y[IMPORT_PARTS];
    bool planes;  // [N][C][H][W]
};

// Which part and role an array's name says, in any of the common ways.
static bool find_role(const char *name, uint32_t *part, uint32_t *role) {
    static const char *const names[IMPORT_PARTS][2] = {
        {"x images data x_train train_x train_images train_data arr_0",
         "y labels targets y_train train_y train_labels train_targets arr_1"},
        {"x_test test_x test_images test_data", "y_test test_y test_labels test_targets"},
        {"x_val val_x val_images val_data", "y_val val_y val_labels val_targets"},
    };
    size_t length = strcspn(name, ".");
    for (*part = 0; *part < IMPORT_PARTS; (*part)++) {
        for (*role = 0; *role < 2; (*role)++) {
            for (const char *at = names[*part][*role]; *at; at += strspn(at, " ")) {
                size_t size = strcspn(at, " ");
                if (size == length && strncmp(at, name, size) == 0) {
                    return true;
                }
                at += size;
            }
        }
    }
    return false;
}

const char *import_array_role(const char *name) {
    static const char *const roles[IMPORT_PARTS][2] = {
        {"x", "y"}, {"test/x", "test/y"}, {"validation/x", "validation/y"}};
    uint32_t part, role;
    return find_role(name, &part, &role) ? roles[part][role] : NULL;
}

static struct numpy_array *place_of(struct arrays *all, const char *name) {
    uint32_t part, role;
    return !find_role(name, &part, &role) ? NULL : role == 0 ? &all->x[part] : &all->y[part];
}

struct finding {
    struct import *import;
    struct arrays *all;
};

static bool find(void *context, const char *name, struct numpy_array **array) {
    const struct finding *f = context;
    const char *path = f->import->desc->source;
    *array = place_of(f->all, name);
    if (!*array) {
        import_note(f->import, "%s: %s is none of the names that are known; left out", path, name);
    }
    return !*array || !(*array)->bytes || numpy_wrong(path, name, "a second array of that meaning");
}

// ---- the reader ----

static bool check_images(struct import *import, struct arrays *all, const struct numpy_array *x) {
    const char *path = import->desc->source;
    if (x->kind != 'u' || x->width != 1 || x->rank < 3) {
        return numpy_wrong(path, "images",
                           "u8 of [N][H][W], [N][H][W][C] or [N][C][H][W] is wanted");
    }
    bool planes = x->rank == 4 && x->shape[1] <= 4 && x->shape[3] > 4;
    uint64_t channels = x->rank == 3 ? 1 : planes ? x->shape[1] : x->shape[3];
    uint64_t height = x->shape[planes ? 2 : 1], width = x->shape[planes ? 3 : 2];
    if (height > IMPORT_MOST_SIDE || width > IMPORT_MOST_SIDE || channels > 64) {
        return numpy_wrong(path, "images", "more than 16384 pixels wide or high, or 64 channels");
    }
    bool first = import->height == 0;
    if (!first && (height != import->height || width != import->width ||
                   channels != import->channels || planes != all->planes)) {
        return numpy_wrong(path, "images", "of another shape than those to train on");
    }
    import->height = (uint32_t)height;
    import->width = (uint32_t)width;
    import->channels = (uint32_t)channels;
    all->planes = planes;
    return true;
}

static int64_t label_at(const struct numpy_array *y, uint64_t row) {
    uint64_t bits = numpy_number(y->bytes + row * y->width, y->width);
    bool negative = y->kind == 'i' && y->width > 0 && (bits >> (8 * y->width - 1) & 1);
    return negative ? -1 : bits > INT32_MAX ? -1 : (int64_t)bits;
}

static bool check_labels(struct import *import, const struct numpy_array *y, uint64_t rows) {
    const char *path = import->desc->labels ? import->desc->labels : import->desc->source;
    if ((y->kind != 'i' && y->kind != 'u') || y->swapped || y->shape[0] != rows ||
        (y->rank > 1 && (y->rank > 2 || y->shape[1] != 1))) {
        return numpy_wrong(path, "labels", "a whole number for each image is wanted");
    }
    for (uint64_t i = 0; i < rows; i++) {
        int64_t label = label_at(y, i);
        if (label < 0 || label >= IMPORT_MOST_CLASSES) {
            return numpy_wrong(path, "labels", "one is below 0 or above a million");
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
    bool good = npz ? numpy_each(source, &all->file, find, &(struct finding){import, all})
                    : numpy_read(source, &all->x[0]) &&
                          (!import->desc->labels || numpy_read(import->desc->labels, &all->y[0]));
    if (good && !all->x[0].bytes) {
        good = numpy_wrong(source, "", "no array of images, such as x, images or x_train");
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
