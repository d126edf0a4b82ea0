// SPDX-License-Identifier: Apache-2.0
// A folder of folders of images: each is a class, in the order of their names, and so are the files
// in it. Folders train, test, val and so on that have such folders are parts.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/whole_file.h"
#include "import.h"

#define MOST_BYTES (256u << 20)  // of a file

struct entry {
    char *path;
    int32_t label;
    bool left_out;
    bool told;  // that 16 bits became 8
};

struct folder {
    struct entry *entries[IMPORT_PARTS];
    uint64_t room[IMPORT_PARTS];
};

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_image(const char *name) {
    static const char *const endings[] = {".png", ".jpg", ".jpeg"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t length = strlen(name), ending = strlen(endings[i]);
        if (length > ending && strcasecmp(name + length - ending, endings[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void free_names(char **names, size_t count) {
    for (size_t i = 0; names && i < count; i++) {
        free(names[i]);
    }
    free(names);
}

// The folders, or the images, of a folder by name, hidden ones left out; NULL with the sentence.
static char **list(const char *path, bool folders, size_t *count) {
    char **names = calloc(1, sizeof *names);
    DIR *dir = names ? opendir(path) : NULL;
    const struct dirent *found;
    bool good = dir != NULL;
    *count = 0;
    while (good && (found = readdir(dir)) != NULL) {
        char inside[IMPORT_PATH];
        if (found->d_name[0] == '.' || !import_has(path, found->d_name, inside) ||
            (folders ? !is_folder(inside) : !is_image(found->d_name) || is_folder(inside))) {
            continue;
        }
        char **longer = realloc(names, (*count + 2) * sizeof *names);
        names = longer ? longer : names;
        names[*count] = longer ? strdup(found->d_name) : NULL;
        good = names[*count] != NULL;
        *count += good;
    }
    if (dir) {
        closedir(dir);
    }
    if (!good) {
        grt_fail(dir ? GRT_NO_MEMORY : GRT_NO_INPUT, "%s: %s", path,
                 dir ? "no host memory" : strerror(errno));
        free_names(names, *count);
        return NULL;
    }
    qsort(names, *count, sizeof *names, by_name);
    return names;
}

static int32_t class_of(const struct import *import, const char *name) {
    for (uint32_t i = 0; i < import->classes; i++) {
        if (strcmp(import->names[i], name) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

static bool add_entry(struct import *import, uint32_t part, const char *path, int32_t label) {
    struct folder *f = import->own;
    uint64_t rows = import->parts[part].rows;
    if (rows >= f->room[part] || !f->entries[part]) {
        struct entry *more = realloc(f->entries[part], 2 * (rows + 32) * sizeof *more);
        if (!more) {
            return grt_fail(GRT_NO_MEMORY, "no host memory for a list of images");
        }
        f->entries[part] = more;
        f->room[part] = 2 * (rows + 32);
    }
    char *copy = strdup(path);
    f->entries[part][rows] = (struct entry){.path = copy, .label = label};
    import->parts[part].rows += copy != NULL;
    return copy || grt_fail(GRT_NO_MEMORY, "no host memory for a list of images");
}

static bool add_class(struct import *import, uint32_t part, const char *path, int32_t label) {
    size_t count = 0;
    char **names = list(path, false, &count);
    bool good = names != NULL;
    for (size_t i = 0; good && i < count; i++) {
        char inside[IMPORT_PATH];
        import_has(path, names[i], inside);
        good = add_entry(import, part, inside, label);
    }
    free_names(names, count);
    return good;
}

// The classes of the first part are those of all.
static bool add_part(struct import *import, const char *path, const char *group) {
    uint32_t part = import->part_count;
    size_t count = 0;
    char **names = list(path, true, &count);
    bool good = names != NULL;
    import->parts[part] = (struct import_part){.group = group, .labelled = true};
    import->part_count++;
    for (size_t i = 0; good && part == 0 && i < count; i++) {
        good = import_add_name(import, names[i], strlen(names[i]));
    }
    for (size_t i = 0; good && i < count; i++) {
        char inside[IMPORT_PATH];
        int32_t label = class_of(import, names[i]);
        import_has(path, names[i], inside);
        good = label >= 0 ||
               grt_fail(GRT_BAD_DATA, "%s: no class of that name among those to train", inside);
        good = good && add_class(import, part, inside, label);
    }
    free_names(names, count);
    return good;
}

// LEFT_OUT with a note.
static enum import_row read_image(const struct import *import, struct entry *e,
                                  struct import_image *image) {
    const char *path = e->path;
    char why[160];
    bool scaled = false;
    uint64_t size = 0;
    bool before = grt_quiet(true);
    uint8_t *bytes = grt_whole_file_read(path, MOST_BYTES, &size);
    grt_quiet(before);
    const char *wrong = !bytes ? "cannot be read"
                        : size == 0
                            ? "has no bytes"
                            : import_decode(bytes, size, import->channels, image, &scaled, why);
    free(bytes);
    if (wrong) {
        import_note(import, "%s: %s; left out", path, wrong);
        return IMPORT_LEFT_OUT;
    }
    if (scaled && !e->told && import->desc->note) {
        import_note(import, "%s: 16 bits a channel; 8 are kept", path);
        e->told = !import->ahead;
    }
    return IMPORT_TAKEN;
}

static enum import_row read_row(struct import *import, uint32_t part, uint64_t row, uint8_t *x,
                                int32_t *y) {
    struct folder *f = import->own;
    struct entry *e = &f->entries[part][row];
    struct import_image image = {0};
    enum import_row taken = read_image(import, e, &image);
    if (taken != IMPORT_TAKEN) {
        e->left_out = true;
        return taken;
    }
    if (import->desc->size > 0) {
        taken = import_fit(&image, import->channels, import->desc->size, x) ? IMPORT_TAKEN
                                                                            : IMPORT_FAILED;
    } else if (image.height != import->height || image.width != import->width) {
        grt_fail(GRT_BAD_DATA,
                 "%s: %ux%u pixels, and images before it are %ux%u: --size N makes all alike",
                 e->path, image.height, image.width, import->height, import->width);
        taken = IMPORT_FAILED;
    } else {
        memcpy(x, image.pixels, (size_t)image.height * image.width * import->channels);
    }
    *y = e->label;
    free(image.pixels);
    return taken;
}

// The size of the first image that can be read.
static bool find_size(struct import *import) {
    const struct folder *f = import->own;
    struct grt_import_desc quiet = *import->desc;
    const struct grt_import_desc *loud = import->desc;
    import->height = import->width = import->desc->size;
    quiet.note = NULL;
    import->desc = &quiet;
    for (uint32_t part = 0; import->height == 0 && part < import->part_count; part++) {
        for (uint64_t i = 0;
             f->entries[part] && import->height == 0 && i < import->parts[part].rows; i++) {
            struct import_image image = {0};
            if (read_image(import, &f->entries[part][i], &image) == IMPORT_TAKEN) {
                import->height = image.height;
                import->width = image.width;
                free(image.pixels);
            }
        }
    }
    import->desc = loud;
    if (import->height == 0) {
        import->height = import->width = 1;  // each image is told of when it is left out
    }
    return true;
}

static bool open_folder(struct import *import) {
    static const struct {
        const char *name, *group;
    } parts[] = {{"train", ""},
                 {"test", "test"},
                 {"val", "validation"},
                 {"valid", "validation"},
                 {"validation", "validation"}};
    const char *source = import->desc->source;
    char path[IMPORT_PATH];
    import->own = calloc(1, sizeof(struct folder));
    if (!import->own) {
        return grt_fail(GRT_NO_MEMORY, "no host memory to read images");
    }
    bool good = true;
    import->channels = import->desc->gray ? 1 : 3;
    bool cut = import_has(source, "train", path) && is_folder(path);
    for (size_t i = 0; good && cut && i < sizeof parts / sizeof *parts; i++) {
        if (import_has(source, parts[i].name, path) && is_folder(path) &&
            import->part_count < IMPORT_PARTS) {
            good = add_part(import, path, parts[i].group);
        }
    }
    good = good && (cut || add_part(import, source, ""));
    if (good && import->parts[0].rows == 0) {
        good = grt_fail(GRT_BAD_DATA, "%s: its folders have no .png and no .jpg", source);
    }
    return good && find_size(import);
}

static void drop(struct import *import) {
    struct folder *f = import->own;
    for (uint32_t part = 0; part < import->part_count; part++) {
        uint64_t kept = 0;
        for (uint64_t i = 0; i < import->parts[part].rows; i++) {
            struct entry *e = &f->entries[part][i];
            if (e->left_out) {
                free(e->path);
            } else {
                f->entries[part][kept++] = *e;
            }
        }
        import->parts[part].rows = kept;
    }
}

static void close_folder(struct import *import) {
    struct folder *f = import->own;
    for (uint32_t part = 0; f && part < IMPORT_PARTS; part++) {
        for (uint64_t i = 0; i < import->parts[part].rows; i++) {
            free(f->entries[part][i].path);
        }
        free(f->entries[part]);
    }
    free(f);
}

static bool knows(const char *source) {
    size_t count = 0;
    bool before = grt_quiet(true);
    char **names = is_folder(source) ? list(source, true, &count) : NULL;
    grt_quiet(before);
    free_names(names, count);
    return count > 0;
}

const struct import_reader import_folder = {"folder of images", knows, open_folder, read_row, drop,
                                            close_folder,       true};
