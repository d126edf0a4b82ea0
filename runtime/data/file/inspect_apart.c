// SPDX-License-Identifier: Apache-2.0
// The HDF5 library in a child process, and what data sets ask there.
//
//     parent   opens the file itself, forks             reads the answer; keeps its descriptor
//     child                  asks the library -> fault, arrays, tiles -> pipe
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "inspect.h"

// The library takes minutes for a million chunks, and a damaged index can keep it for ever.
#define MOST_SECONDS 600.0
#define MOST_TILES (1ull << 22)

bool grt_apart_receive(const struct grt_child *child, void *data, size_t size) {
    return grt_child_receive(child, data, size, MOST_SECONDS, NULL) == GRT_CHILD_ANSWERED;
}

static int ask(struct grt_child *parent, void *context) {
    struct grt_apart *apart = context;
    struct grt_fault fault = {0};
    H5E_BEGIN_TRY {
        hid_t id = grt_inspect_open(apart->path, apart->file, &fault);
        if (id >= 0) {
            apart->ask(apart, id, &fault);
        }
    }
    H5E_END_TRY;
    bool sent = grt_child_send(parent, &fault, sizeof fault) &&
                (fault.status != GRT_OK || apart->send(apart, parent));
    return sent ? 0 : 1;
}

bool grt_inspect_apart(struct grt_apart *apart, struct grt_fault *fault) {
    struct grt_child child = GRT_NO_CHILD;
    char why[256], how[160];
    if (!grt_inspect_file(apart->path, apart->file, fault)) {
        return false;
    }
    if (!grt_child_start(&child, ask, apart, why)) {
        return grt_fault(fault, GRT_NO_MEMORY, "cannot be looked at: %s", why);
    }
    struct grt_fault found;
    enum grt_child_news news = grt_child_receive(&child, &found, sizeof found, MOST_SECONDS, NULL);
    bool heard = news == GRT_CHILD_ANSWERED;
    if (heard && found.status != GRT_OK) {
        found.text[sizeof found.text - 1] = '\0';
        grt_fault(fault, found.status, "%s", found.text);
    } else if (heard) {
        heard = apart->hear(apart, &child);
    }
    grt_child_end(&child, how);
    if (news == GRT_CHILD_LATE) {
        return grt_fault(fault, GRT_BAD_DATA,
                         "is damaged: the HDF5 library did not come back from it within %g s",
                         MOST_SECONDS);
    }
    if (!heard) {
        return grt_fault(fault, GRT_BAD_DATA, "is damaged: the HDF5 library %s while it read it",
                         how[0] ? how : "gave no answer");
    }
    return fault->status == GRT_OK;
}

// ---- data sets ----

struct opening {
    const char *const *names, *const *keys;
    uint32_t count;
    struct grt_array *arrays;
};

static bool ask_arrays(struct grt_apart *apart, hid_t id, struct grt_fault *fault) {
    struct opening *o = apart->context;
    for (uint32_t i = 0; fault->status == GRT_OK && i < o->count; i++) {
        grt_inspect_array(id, apart->file, o->names[i], o->keys ? o->keys[i] : NULL, &o->arrays[i],
                          fault);
    }
    return fault->status == GRT_OK;
}

static bool send_arrays(const struct grt_apart *apart, const struct grt_child *parent) {
    const struct opening *o = apart->context;
    bool sent = true;
    for (uint32_t i = 0; sent && i < o->count; i++) {
        const struct grt_array *array = &o->arrays[i];
        sent = grt_child_send(parent, array, sizeof *array) &&
               grt_child_send(parent, array->tiles, grt_array_tiles(array) * sizeof *array->tiles);
    }
    return sent;
}

static bool hear_array(const struct grt_child *child, struct grt_array *array) {
    struct grt_array heard;
    if (!grt_apart_receive(child, &heard, sizeof heard)) {
        return false;
    }
    heard.tiles = NULL;
    heard.name[sizeof heard.name - 1] = '\0';
    for (int i = 0; i < 3; i++) {
        if (heard.grid[i] == 0 || heard.grid[i] > MOST_TILES) {
            return false;
        }
    }
    if (heard.grid[0] * heard.grid[1] > MOST_TILES || grt_array_tiles(&heard) > MOST_TILES) {
        return false;
    }
    *array = heard;
    size_t bytes = grt_array_tiles(array) * sizeof *array->tiles;
    array->tiles = malloc(bytes);
    return array->tiles && grt_apart_receive(child, array->tiles, bytes);
}

static bool hear_arrays(struct grt_apart *apart, const struct grt_child *child) {
    struct opening *o = apart->context;
    bool heard = true;
    for (uint32_t i = 0; heard && i < o->count; i++) {
        heard = hear_array(child, &o->arrays[i]);
    }
    return heard;
}

bool grt_file_open(const char *path, const char *shown, const char *const *names,
                   const char *const *keys, uint32_t count, struct grt_file *file,
                   struct grt_array *arrays) {
    struct grt_fault fault = {0};
    struct opening opening = {names, keys, count, arrays};
    memset(arrays, 0, count * sizeof *arrays);
    file->fd = -1;
    if (grt_inspect_apart(&(struct grt_apart){.path = path,
                                              .file = file,
                                              .ask = ask_arrays,
                                              .send = send_arrays,
                                              .hear = hear_arrays,
                                              .context = &opening},
                          &fault)) {
        return true;
    }
    grt_file_close(file, arrays, count);
    return grt_fail(fault.status, "%s: %s", shown, fault.text);
}

void grt_file_close(struct grt_file *file, struct grt_array *arrays, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        free(arrays[i].tiles);
        arrays[i].tiles = NULL;
    }
    if (file->fd >= 0) {
        close(file->fd);
    }
    file->fd = -1;
}
