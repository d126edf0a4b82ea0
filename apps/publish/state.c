// SPDX-License-Identifier: Apache-2.0
#include "state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gpurt/unfinished.h"

#define MOST_BYTES 4096    // of a file
#define MOST_ENTRIES 4096  // of the folder
#define FRESH_SECONDS 60

void state_init(struct state *state) {
    *state = (struct state){0};
#define X(field) state->field = NAN;
    STATE_NUMBERS(X)
#undef X
}

int state_device(const struct state *state, const struct sensor_sample *sample) {
    for (size_t i = 0; i < sample->count; i++) {
        const struct sensor_device *device = &sample->devices[i];
        bool cpu = strcmp(device->reader, "cpu") == 0;
        bool same = state->pci[0] ? strcmp(device->pci, state->pci) == 0
                                  : strcmp(device->name, state->name) == 0;
        if (state->software == 1 ? cpu : same) {
            return (int)i;
        }
    }
    return -1;
}

// ---- the folder ----

// A descriptor of the folder, or -1.
static int open_folder(char path[STATE_PATH], bool make) {
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int length = runtime && runtime[0] == '/'
                     ? snprintf(path, STATE_PATH, "%s/gpurt", runtime)
                     : snprintf(path, STATE_PATH, "/tmp/gpurt-%lu", (unsigned long)geteuid());
    if (length >= STATE_PATH) {
        return -1;
    }
    if (make && mkdir(path, 0700) != 0 && errno != EEXIST) {
        return -1;
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat info;
    // In /tmp anybody may have made it first.
    if (fd >= 0 &&
        (fstat(fd, &info) != 0 || info.st_uid != geteuid() || (info.st_mode & 077) != 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

bool state_folder(char path[STATE_PATH]) {
    int fd = open_folder(path, true);
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

// ---- writing ----

static json_t *json_of(const struct state *state) {
    json_t *json = json_object();
#define X(field)                                                                                   \
    if (state->field[0]) {                                                                         \
        json_object_set_new(json, #field, json_string(state->field));                              \
    }
    STATE_TEXTS(X)
#undef X
#define X(field)                                                                                   \
    if (isfinite(state->field)) {                                                                  \
        json_object_set_new(json, #field, json_real(state->field));                                \
    }
    STATE_NUMBERS(X)
#undef X
    return json;
}

// A locked file with these bytes under the name, in place of the one before; its descriptor, or -1.
static int put(int folder, const char *name, const char *bytes, size_t size) {
    char temporary[48];
    snprintf(temporary, sizeof temporary, ".%s", name);
    unlinkat(folder, temporary, 0);  // of a process with our number that was killed
    int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && write(fd, bytes, size) == (ssize_t)size &&
        renameat(folder, temporary, folder, name) == 0) {
        return fd;
    }
    unlinkat(folder, temporary, 0);
    close(fd);
    return -1;
}

bool state_publish(struct state_file *file, const struct state *state) {
    char folder[STATE_PATH], name[32];
    if (file->folder < 0) {
        file->folder = open_folder(folder, true);
        if (file->folder < 0) {
            return false;
        }
        snprintf(file->path, sizeof file->path, "%s/%ld.json", folder, (long)getpid());
        grt_unfinished_add(file->path);
    }
    snprintf(name, sizeof name, "%ld.json", (long)getpid());
    json_t *json = json_of(state);
    char *text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    int fd = text ? put(file->folder, name, text, strlen(text)) : -1;
    free(text);
    if (fd >= 0 && file->fd >= 0) {
        close(file->fd);  // behind the rename: the lock has no gap under the name
    }
    file->fd = fd >= 0 ? fd : file->fd;
    if (fd < 0) {  // the folder may have gone with the user's last login: the next time opens it
        grt_unfinished_remove(file->path);
        close(file->folder);
        file->folder = -1;
    }
    return fd >= 0;
}

void state_withdraw(struct state_file *file) {
    if (file->folder >= 0) {
        unlinkat(file->folder, strrchr(file->path, '/') + 1, 0);
        grt_unfinished_remove(file->path);
        close(file->folder);
    }
    if (file->fd >= 0) {
        close(file->fd);
    }
    *file = STATE_FILE;
}

// ---- reading ----

static void take_text(const json_t *json, const char *key, char into[STATE_TEXT]) {
    const char *text = json_string_value(json_object_get(json, key));
    snprintf(into, STATE_TEXT, "%s", text ? text : "");
}

static void take_number(const json_t *json, const char *key, double *into) {
    const json_t *number = json_object_get(json, key);
    double value = json_number_value(number);
    *into = json_is_number(number) && isfinite(value) ? value : NAN;
}

static bool parse(const char *bytes, size_t size, struct state *state) {
    json_t *json = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, NULL);
    bool good = json_is_object(json);
    if (good) {
#define X(field) take_text(json, #field, state->field);
        STATE_TEXTS(X)
#undef X
#define X(field) take_number(json, #field, &state->field);
        STATE_NUMBERS(X)
#undef X
    }
    json_decref(json);
    return good;
}

// Whether nobody holds the file that still has this name.
static bool is_dead(int folder, int fd, const char *name) {
    struct stat mine, named;
    return flock(fd, LOCK_SH | LOCK_NB) == 0 && fstat(fd, &mine) == 0 &&
           fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && mine.st_ino == named.st_ino &&
           mine.st_dev == named.st_dev;
}

// One file of the folder; true: a state of a living process.
static bool read_one(int folder, const char *name, struct state *state) {
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    char bytes[MOST_BYTES];
    bool good = false;
    if (fd < 0) {
        return false;
    }
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid()) {
        close(fd);
        return false;
    }
    // One that is being written is not locked yet, for a moment.
    bool fresh = name[0] == '.' && time(NULL) - info.st_mtime < FRESH_SECONDS;
    if (!fresh && is_dead(folder, fd, name)) {
        unlinkat(folder, name, 0);
    } else if (name[0] != '.' && info.st_size < MOST_BYTES) {
        ssize_t size = read(fd, bytes, sizeof bytes);
        good = size > 0 && parse(bytes, (size_t)size, state);
        state->pid = strtod(name, NULL);
    }
    close(fd);
    return good;
}

// "123.json", or ".123.json" before it is renamed.
static bool is_ours(const char *name) {
    name += name[0] == '.';
    size_t digits = strspn(name, "0123456789");
    return digits > 0 && digits < 12 && strcmp(name + digits, ".json") == 0;
}

static int by_pid(const void *a, const void *b) {
    double left = ((const struct state *)a)->pid, right = ((const struct state *)b)->pid;
    return (left > right) - (left < right);
}

size_t state_read_all(struct state states[STATE_MOST]) {
    char path[STATE_PATH];
    size_t count = 0;
    int fd = open_folder(path, false);
    int folder = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    DIR *names = folder >= 0 ? fdopendir(folder) : NULL;
    struct dirent *entry = NULL;
    for (int i = 0; names && i < MOST_ENTRIES && count < STATE_MOST; i++) {
        entry = readdir(names);
        if (!entry) {
            break;
        }
        state_init(&states[count]);
        count += is_ours(entry->d_name) && read_one(fd, entry->d_name, &states[count]);
    }
    if (names) {
        closedir(names);
    } else if (folder >= 0) {
        close(folder);
    }
    if (fd >= 0) {
        close(fd);
    }
    qsort(states, count, sizeof *states, by_pid);
    // A name that is renamed while the folder is read may come twice.
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || states[kept - 1].pid != states[i].pid) {
            states[kept++] = states[i];
        }
    }
    return kept;
}
