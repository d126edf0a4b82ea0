// SPDX-License-Identifier: Apache-2.0
// Inside runtime/import: a reader for each kind of source, and what they share. A new kind is one
// file and one row of the table in import.c.
#ifndef GRT_IMPORT_PARTS_H
#define GRT_IMPORT_PARTS_H

#include <stddef.h>

#include "gpurt/import.h"

#define IMPORT_PARTS 3
#define IMPORT_MOST_SIDE 16384  // pixels of an image's side
#define IMPORT_MOST_CLASSES 1048576
#define IMPORT_PATH 4096

struct import_part {
    const char *group;  // "test", or "" for x and y themselves
    uint64_t rows;
    bool labelled;
};

struct import {
    const struct grt_import_desc *desc;
    struct import_part parts[IMPORT_PARTS];
    uint32_t part_count;
    uint32_t height, width, channels;
    char **names;  // of the classes, `classes` of them; NULL: they have none
    uint32_t classes;
    void *own;   // the reader's
    bool ahead;  // a copy, by which a thread reads ahead: what is told is told again
};

enum import_row {
    IMPORT_TAKEN,
    IMPORT_LEFT_OUT,  // and the note said
    IMPORT_FAILED,    // and the sentence said
};

struct import_reader {
    const char *kind;
    bool (*knows)(const char *source);
    // Sets everything of the struct but desc; false with the sentence. close is called either way.
    bool (*open)(struct import *import);
    // x [height][width][channels]; y is set where the part is labelled. Rows are read in order, or
    // where `apart` is set by several threads at once, each with a copy of the struct.
    enum import_row (*read)(struct import *import, uint32_t part, uint64_t row, uint8_t *x,
                            int32_t *y);
    // Takes rows that were left out off the parts; NULL: none ever are.
    void (*drop)(struct import *import);
    void (*close)(struct import *import);
    bool apart;
};

extern const struct import_reader import_cifar10, import_cifar100, import_cifar10_pickled,
    import_cifar100_pickled, import_stl10, import_numpy, import_folder;

// Whether the folder has such an entry; the path of it in `path`.
bool import_has(const char *folder, const char *name, char path[IMPORT_PATH]);
// Names of classes, a line each; a file that is missing gives none.
bool import_read_names(struct import *import, const char *path);
bool import_add_name(struct import *import, const char *name, size_t length);
void import_note(const struct import *import, const char *format, ...) GRT_PRINTF(2, 3);

// What an array of NumPy is called in the file by its name: "x", "test/y", or NULL.
const char *import_array_role(const char *name);

// ---- images in files (decode.c) ----

struct import_image {
    uint32_t height, width;
    uint8_t *pixels;  // [height][width][channels], allocated
};
// A file with `channels` 1 or 3; NULL, or why not. *scaled is set where 16 bits became 8.
const char *import_decode(const uint8_t *bytes, size_t size, uint32_t channels,
                          struct import_image *image, bool *scaled, char why[160]);
const char *import_decode_png(const uint8_t *bytes, size_t size, uint32_t channels,
                              struct import_image *image, bool *scaled, char why[160]);
const char *import_decode_jpeg(const uint8_t *bytes, size_t size, uint32_t channels,
                               struct import_image *image, bool *scaled, char why[160]);
// Into a square of `side` pixels: bilinear with antialiasing, the middle of the longer side.
bool import_fit(const struct import_image *image, uint32_t channels, uint32_t side, uint8_t *to);

// ---- pickles (pickle.c) ----

struct import_pickle {
    uint64_t at, bytes;  // of the array "data" in the file
    int32_t *labels;     // allocated; NULL: the pickle has none
    uint64_t label_count;
};
// A batch as CIFAR's are; `label` is the key of its labels. Nothing in it is run.
bool import_read_pickle(const char *path, const char *label, struct import_pickle *pickle);
// The list of texts under a key, as names of classes.
bool import_read_pickled_names(struct import *import, const char *path, const char *key);

#endif
