// SPDX-License-Identifier: Apache-2.0
#include "gpurt/direct.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arrays.h"
#include "base/cache.h"
#include "base/log.h"
#include "base/whole_file.h"
#include "gpurt/unfinished.h"

#define MOST_TAKEN 64

struct taken {
    uint64_t key;
    char *path;  // of the HDF5 file; NULL: there is none
    bool columns;
    struct grt_table_result table;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct taken all[MOST_TAKEN];
static uint64_t count;  // that were ever taken
static pid_t owner;     // a child that is forked leaves the files where they are

enum form { HDF5, TABLE, ARRAYS };

static enum form form_of(const char *path) {
    const char *slash = strrchr(path, '/'), *ending = strrchr(slash ? slash : path, '.');
    ending = ending ? ending : "";
    return strcmp(ending, ".csv") == 0 || strcmp(ending, ".tsv") == 0   ? TABLE
           : strcmp(ending, ".npy") == 0 || strcmp(ending, ".npz") == 0 ? ARRAYS
                                                                        : HDF5;
}

static uint64_t digest_names(const char *const *names, uint32_t number, uint64_t key) {
    for (uint32_t i = 0; i < number; i++) {
        key = grt_digest(names[i], strlen(names[i]) + 1, key);
    }
    return grt_digest(&number, sizeof number, key);
}

bool grt_direct_known(const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    const char *ending = path ? strrchr(slash ? slash : path, '.') : NULL;
    bool known = !ending || (strcasecmp(ending, ".parquet") != 0 && strcasecmp(ending, ".pq") != 0);
    // A file that is not there is told of by who opens it.
    known = known || access(path, F_OK) != 0;
    return known || grt_fail(GRT_BAD_DATA,
                             "%s: Parquet is not read; python3 -c \"import pandas; "
                             "pandas.read_parquet('%s').to_csv('%.*s.csv', index=False)\" makes a "
                             "table of it",
                             path, path, (int)(ending - path), path);
}

// Of the file as it is now, and of what is wanted of it.
static bool key_of(const struct grt_direct_desc *d, uint64_t *key) {
    struct stat info;
    if (stat(d->path, &info) != 0) {
        return false;
    }
    const uint64_t file[] = {(uint64_t)info.st_dev,          (uint64_t)info.st_ino,
                             (uint64_t)info.st_size,         (uint64_t)info.st_mtim.tv_sec,
                             (uint64_t)info.st_mtim.tv_nsec, d->no_targets};
    *key = grt_digest(file, sizeof file, 0);
    *key = digest_names(&d->path, 1, *key);
    *key = digest_names(d->inputs, d->input_count, *key);
    *key = digest_names(d->targets, d->target_count, *key);
    *key = digest_names(d->class_names, d->class_count, *key);
    *key = digest_names(&d->fill, d->fill ? 1 : 0, *key);
    *key = digest_names(&d->weights, d->weights ? 1 : 0, *key);
    return true;
}

static bool ends_npy(const char *name) {
    size_t length = strlen(name);
    return length > 4 && strcmp(name + length - 4, ".npy") == 0;
}

static bool import_arrays(const struct grt_direct_desc *d, const char *path, struct taken *t) {
    bool one = ends_npy(d->path);
    const char *labels = one && !d->no_targets && d->target_count > 0 ? d->targets[0] : NULL;
    t->columns = one;
    if (one && d->input_count > 0) {
        return grt_fail(GRT_CONFIG, "%s is one array, x: leave `inputs` out; several are a .npz",
                        d->path);
    }
    if (labels && (d->target_count > 1 || !ends_npy(labels))) {
        return grt_fail(GRT_CONFIG,
                        "%s is one array, x: the target is another .npy, `targets=y.npy`; several "
                        "arrays are a .npz",
                        d->path);
    }
    if (one && d->weights && !ends_npy(d->weights)) {
        return grt_fail(GRT_CONFIG,
                        "%s is one array, x: the weights are another .npy, "
                        "`sample_weights=w.npy`; several arrays are a .npz",
                        d->path);
    }
    return arrays_import(d, labels, path);
}

static bool import_table(const struct grt_direct_desc *d, const char *path, struct taken *t) {
    const struct grt_table_desc table = {.source = d->path,
                                         .path = path,
                                         .inputs = d->inputs,
                                         .input_count = d->input_count,
                                         .targets = d->targets,
                                         .target_count = d->target_count,
                                         .no_targets = d->no_targets,
                                         .weights = d->weights,
                                         .fill = d->fill && d->fill[0] ? d->fill : NULL,
                                         .class_names = d->class_names,
                                         .class_count = d->class_count};
    t->columns = true;
    return grt_table_import(&table, &t->table);
}

static void forget(struct taken *t) {
    if (t->path) {
        unlink(t->path);
        grt_unfinished_remove(t->path);
    }
    free(t->path);
    grt_table_result_finish(&t->table);
    *t = (struct taken){0};
}

static void forget_all(void) {
    for (uint32_t i = 0; owner == getpid() && i < MOST_TAKEN; i++) {
        forget(&all[i]);
    }
}

// Into a temporary file, which goes with the process, by whatever signal. One without a name would
// be safer, but HDF5 wants the real path of what it opens.
static bool take(const struct grt_direct_desc *d, struct taken *t) {
    char path[GRT_WHOLE_FILE_PATH];
    int fd = grt_temporary_file(path, sizeof path);
    if (fd < 0) {
        return false;
    }
    close(fd);
    t->path = strdup(path);
    if (!t->path) {
        unlink(path);
        grt_unfinished_remove(path);
        return grt_fail(GRT_NO_MEMORY, "no host memory for %s", d->path);
    }
    if (owner != getpid()) {
        owner = getpid();
        atexit(forget_all);
    }
    return form_of(d->path) == TABLE ? import_table(d, path, t) : import_arrays(d, path, t);
}

bool grt_direct(const struct grt_direct_desc *d, struct grt_direct *direct) {
    if (!d || !d->path || !direct) {
        return grt_fail(GRT_INVALID, "grt_direct: a path and a result are wanted");
    }
    *direct = (struct grt_direct){.path = d->path};
    uint64_t key = 0;
    if (!grt_direct_known(d->path)) {
        return false;
    }
    // A file that is not there is told of by who opens it.
    if (form_of(d->path) == HDF5 || !key_of(d, &key)) {
        return true;
    }
    pthread_mutex_lock(&lock);
    // Files of the process that forked this one are not this one's to remove.
    if (owner != 0 && owner != getpid()) {
        memset(all, 0, sizeof all);
        count = 0;
    }
    struct taken *t = NULL;
    for (uint64_t i = 0; !t && i < count && i < MOST_TAKEN; i++) {
        t = all[i].path && all[i].key == key ? &all[i] : NULL;
    }
    bool good = true;
    if (!t) {
        t = &all[count % MOST_TAKEN];
        forget(t);
        t->key = key;
        good = take(d, t);
        if (good) {
            count++;
        } else {
            forget(t);
        }
    }
    if (good) {
        *direct = (struct grt_direct){t->path, t->columns, t->table.input_names,
                                      t->table.target_names, t->table.class_names};
    }
    pthread_mutex_unlock(&lock);
    return good;
}

const char *grt_direct_path(const char *path) {
    struct grt_direct direct = {0};
    return grt_direct(&(struct grt_direct_desc){.path = path}, &direct) ? direct.path : NULL;
}
