// SPDX-License-Identifier: Apache-2.0
// CIFAR and STL-10: files of records of one length. Images lie plane by plane; those of STL-10
// column by column within a plane.
//
//     CIFAR-10, binary     label, 3 x 32 x 32                     data_batch_1.bin, test_batch
//     CIFAR-100, binary    coarse label, fine label, 3 x 32 x 32  train.bin, test.bin
//     of Python            3 x 32 x 32, labels in the pickle      data_batch_1, or train and test
//     STL-10, binary       3 x 96 x 96, labels from 1 in train_y  train_X.bin, unlabeled_X.bin
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "import.h"

#define PIECES 8
#define MOST_RECORD (3 * 96 * 96 + 2)

// A file of a part.
struct piece {
    uint32_t part;
    FILE *x, *y;      // y: labels in a file of their own
    int32_t *labels;  // or in memory
    uint64_t first, rows;
    uint64_t at;      // byte of the first record
    uint32_t record;  // bytes
    uint32_t before;  // bytes of a record before the image, the last of them the label
    char path[IMPORT_PATH];
};

struct batches {
    struct piece pieces[PIECES];
    uint32_t count;
    bool columns;  // planes lie column by column
    int32_t base;  // the first label
    uint8_t buffer[MOST_RECORD];
};

static struct piece *add_piece(struct import *import, const char *name, uint32_t part) {
    struct batches *b = import->own;
    struct piece *p = &b->pieces[b->count++];
    p->part = part;
    import_has(import->desc->source, name, p->path);
    p->x = fopen(p->path, "rb");
    if (!p->x) {
        grt_fail(GRT_NO_INPUT, "%s: %s", p->path, strerror(errno));
        return NULL;
    }
    return p;
}

// Counts the records from p->at on; `bytes` 0: to the end of the file.
static bool count_rows(struct import *import, struct piece *p, uint64_t bytes) {
    if (bytes == 0 && fseeko(p->x, 0, SEEK_END) == 0) {
        off_t end = ftello(p->x);
        bytes = end > 0 ? (uint64_t)end : 0;
    }
    if (bytes == 0 || bytes % p->record != 0) {
        return grt_fail(GRT_BAD_DATA, "%s: %llu bytes are no whole number of records of %u",
                        p->path, (unsigned long long)bytes, p->record);
    }
    p->rows = bytes / p->record;
    p->first = import->parts[p->part].rows;
    import->parts[p->part].rows += p->rows;
    return fseeko(p->x, (off_t)p->at, SEEK_SET) == 0 ||
           grt_fail(GRT_IO, "%s: %s", p->path, strerror(errno));
}

static struct batches *begin(struct import *import, uint32_t side) {
    struct batches *b = calloc(1, sizeof *b);
    if (!b) {
        grt_fail(GRT_NO_MEMORY, "no host memory to read images");
        return NULL;
    }
    import->own = b;
    import->height = import->width = side;
    import->channels = 3;
    import->parts[0] = (struct import_part){.group = "", .labelled = true};
    import->parts[1] = (struct import_part){.group = "test", .labelled = true};
    import->part_count = 2;
    return b;
}

static enum import_row wrong_row(const struct piece *p, uint64_t row, const char *what) {
    grt_fail(GRT_BAD_DATA, "%s: record %llu: %s", p->path, (unsigned long long)(row - p->first),
             what);
    return IMPORT_FAILED;
}

static enum import_row read_row(struct import *import, uint32_t part, uint64_t row, uint8_t *x,
                                int32_t *y) {
    struct batches *b = import->own;
    struct piece *p = b->pieces;
    while (p->part != part || row - p->first >= p->rows) {
        p++;
    }
    uint32_t side = import->height, plane = side * side;
    if (fread(b->buffer, 1, p->record, p->x) != p->record) {
        return wrong_row(p, row, "cannot be read");
    }
    const uint8_t *from = b->buffer + p->before;
    for (uint32_t i = 0; i < plane; i++) {
        uint32_t at = b->columns ? i % side * side + i / side : i;
        for (uint32_t c = 0; c < 3; c++) {
            x[3 * i + c] = from[c * plane + at];
        }
    }
    if (!import->parts[part].labelled) {
        return IMPORT_TAKEN;
    }
    int label = p->labels ? p->labels[row - p->first]
                : p->y    ? fgetc(p->y)
                          : b->buffer[p->before - 1];
    label -= b->base;
    if (label < 0 || (uint32_t)label >= import->classes) {
        return wrong_row(p, row, "its label is of no class");
    }
    *y = label;
    return IMPORT_TAKEN;
}

static void close_all(struct import *import) {
    struct batches *b = import->own;
    for (uint32_t i = 0; b && i < b->count; i++) {
        if (b->pieces[i].x) {
            fclose(b->pieces[i].x);
        }
        if (b->pieces[i].y) {
            fclose(b->pieces[i].y);
        }
        free(b->pieces[i].labels);
    }
    free(b);
}

// Names from a file, where it is there, else numbers; `classes` of them.
static bool name_classes(struct import *import, const char *name, uint32_t classes) {
    char path[IMPORT_PATH];
    if (import_has(import->desc->source, name, path) && !import_read_names(import, path)) {
        return false;
    }
    if (import->names && import->classes != classes) {
        return grt_fail(GRT_BAD_DATA, "%s: %u names, and there are %u classes", path,
                        import->classes, classes);
    }
    import->classes = classes;
    return true;
}

// ---- CIFAR, binary ----

static const char *const train_batches[] = {"data_batch_1", "data_batch_2", "data_batch_3",
                                            "data_batch_4", "data_batch_5"};

static bool open_binary(struct import *import, const char *const *names, uint32_t count,
                        uint32_t before) {
    for (uint32_t i = 0; i < count; i++) {
        char path[IMPORT_PATH], name[32];
        snprintf(name, sizeof name, "%s.bin", names[i]);
        // Some batches alone are fine too; of what is there all is read.
        if (!import_has(import->desc->source, name, path)) {
            continue;
        }
        struct piece *p = add_piece(import, name, i + 1 == count ? 1 : 0);
        if (!p) {
            return false;
        }
        p->record = before + 3072;
        p->before = before;
        if (!count_rows(import, p, 0)) {
            return false;
        }
    }
    return true;
}

static bool knows_cifar10(const char *source) {
    char path[IMPORT_PATH];
    return import_has(source, "data_batch_1.bin", path);
}

static bool open_cifar10(struct import *import) {
    static const char *const names[] = {"data_batch_1", "data_batch_2", "data_batch_3",
                                        "data_batch_4", "data_batch_5", "test_batch"};
    return begin(import, 32) && name_classes(import, "batches.meta.txt", 10) &&
           open_binary(import, names, 6, 1);
}

static bool knows_cifar100(const char *source) {
    char path[IMPORT_PATH];
    return import_has(source, "train.bin", path);
}

static bool open_cifar100(struct import *import) {
    static const char *const names[] = {"train", "test"};
    return begin(import, 32) && name_classes(import, "fine_label_names.txt", 100) &&
           open_binary(import, names, 2, 2);
}

// ---- CIFAR, pickled ----

static bool add_pickle(struct import *import, const char *name, uint32_t part, const char *label) {
    char path[IMPORT_PATH];
    struct import_pickle pickle;
    if (!import_has(import->desc->source, name, path)) {
        return true;
    }
    struct piece *p = add_piece(import, name, part);
    if (!p || !import_read_pickle(path, label, &pickle)) {
        return false;
    }
    p->labels = pickle.labels;
    p->at = pickle.at;
    p->record = 3072;
    if (!count_rows(import, p, pickle.bytes)) {
        return false;
    }
    return p->rows == pickle.label_count ||
           grt_fail(GRT_BAD_DATA, "%s: %llu images and %llu labels", path,
                    (unsigned long long)p->rows, (unsigned long long)pickle.label_count);
}

static bool knows_pickled10(const char *source) {
    char path[IMPORT_PATH];
    return import_has(source, "data_batch_1", path);
}

static bool open_pickled10(struct import *import) {
    char path[IMPORT_PATH];
    bool good = begin(import, 32) != NULL;
    if (good && import_has(import->desc->source, "batches.meta", path)) {
        good = import_read_pickled_names(import, path, "label_names");
    }
    good = good && name_classes(import, "batches.meta.txt", 10);
    for (uint32_t i = 0; good && i < sizeof train_batches / sizeof *train_batches; i++) {
        good = add_pickle(import, train_batches[i], 0, "labels");
    }
    return good && add_pickle(import, "test_batch", 1, "labels");
}

static bool knows_pickled100(const char *source) {
    char path[IMPORT_PATH], inside[IMPORT_PATH];
    // A folder "train" is one of a folder of folders.
    return import_has(source, "train", path) && import_has(source, "meta", inside) &&
           !import_has(path, ".", inside);
}

static bool open_pickled100(struct import *import) {
    char path[IMPORT_PATH];
    return begin(import, 32) && import_has(import->desc->source, "meta", path) &&
           import_read_pickled_names(import, path, "fine_label_names") &&
           name_classes(import, "fine_label_names.txt", 100) &&
           add_pickle(import, "train", 0, "fine_labels") &&
           add_pickle(import, "test", 1, "fine_labels");
}

// ---- STL-10 ----

static bool knows_stl10(const char *source) {
    char path[IMPORT_PATH];
    return import_has(source, "train_X.bin", path);
}

static bool open_stl10(struct import *import) {
    static const struct {
        const char *x, *y;
    } names[] = {
        {"train_X.bin", "train_y.bin"}, {"test_X.bin", "test_y.bin"}, {"unlabeled_X.bin", NULL}};
    struct batches *b = begin(import, 96);
    if (!b || !name_classes(import, "class_names.txt", 10)) {
        return false;
    }
    b->columns = true;
    b->base = 1;
    import->parts[2] = (struct import_part){.group = "unlabelled"};
    import->part_count = 3;
    for (uint32_t i = 0; i < 3; i++) {
        char path[IMPORT_PATH];
        if (!import_has(import->desc->source, names[i].x, path)) {
            continue;
        }
        struct piece *p = add_piece(import, names[i].x, i);
        if (!p) {
            return false;
        }
        p->record = 3 * 96 * 96;
        if (names[i].y) {
            import_has(import->desc->source, names[i].y, path);
            p->y = fopen(path, "rb");
            if (!p->y) {
                return grt_fail(GRT_NO_INPUT, "%s: %s", path, strerror(errno));
            }
        }
        if (!count_rows(import, p, 0)) {
            return false;
        }
    }
    return true;
}

const struct import_reader import_cifar10 = {"CIFAR-10, binary", knows_cifar10, open_cifar10,
                                             read_row,           NULL,          close_all};
const struct import_reader import_cifar100 = {
    "CIFAR-100, binary", knows_cifar100, open_cifar100, read_row, NULL, close_all};
const struct import_reader import_cifar10_pickled = {
    "CIFAR-10 of Python", knows_pickled10, open_pickled10, read_row, NULL, close_all};
const struct import_reader import_cifar100_pickled = {
    "CIFAR-100 of Python", knows_pickled100, open_pickled100, read_row, NULL, close_all};
const struct import_reader import_stl10 = {"STL-10, binary", knows_stl10, open_stl10,
                                           read_row,         NULL,        close_all};
