// SPDX-License-Identifier: Apache-2.0
// A folder of checkpoints: the newest `keep` stay, and the newest whole one is found.
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "checkpoint_parts.h"

#define STEP_NAME "step-%012llu.h5"

bool grt_checkpoint_path(const char *dir, uint64_t step, char *path, size_t capacity) {
    int length = snprintf(path, capacity, "%s/" STEP_NAME, dir, (unsigned long long)step);
    return length > 0 && (size_t)length < capacity;
}

bool grt_checkpoint_make_dir(const char *dir) {
    char path[4096];
    if (!dir || !*dir || strlen(dir) >= sizeof path) {
        return grt_fail(GRT_INVALID, "a path of a folder is wanted");
    }
    for (size_t i = 1; i <= strlen(dir); i++) {
        if (dir[i] != '/' && dir[i] != '\0') {
            continue;
        }
        snprintf(path, sizeof path, "%.*s", (int)i, dir);
        if (mkdir(path, 0777) != 0 && errno != EEXIST) {
            return grt_fail(GRT_NO_OUTPUT, "cannot make the folder %s: %s", path, strerror(errno));
        }
    }
    struct stat info;
    if (stat(dir, &info) != 0 || !S_ISDIR(info.st_mode)) {
        return grt_fail(GRT_NO_OUTPUT, "%s is no folder", dir);
    }
    if (access(dir, W_OK | X_OK) != 0) {
        return grt_fail(GRT_NO_OUTPUT, "cannot write into the folder %s: %s", dir, strerror(errno));
    }
    return true;
}

// The step of a file of ours. A name that we would write otherwise, step-7.h5, is somebody else's.
static bool step_of(const char *name, uint64_t *step) {
    unsigned long long number = 0;
    char ours[64];
    if (sscanf(name, "step-%20llu.h5", &number) != 1) {
        return false;
    }
    snprintf(ours, sizeof ours, STEP_NAME, number);
    *step = number;
    return strcmp(name, ours) == 0;
}

// Whether this is what a process that is gone left half written, "NAME.PID.tmp"; writes NAME.
static bool left_over(const char *file, char name[256]) {
    long pid = 0;
    int end = 0;
    const char *tail = file + strlen(file);
    for (int dots = 0; dots < 2 && tail > file; dots += *tail == '.') {
        tail--;
    }
    snprintf(name, 256, "%.*s", (int)(tail - file), file);
    return sscanf(tail, ".%ld.tmp%n", &pid, &end) == 1 && end > 0 && tail[end] == '\0' && pid > 0 &&
           kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

static void remove_in(const char *dir, const char *name) {
    char path[4352];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    unlink(path);
}

void grt_checkpoint_clean(const char *path) {
    char dir[4096];
    char name[256];
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    int length = slash == path ? 1 : slash ? (int)(slash - path) : 1;
    snprintf(dir, sizeof dir, "%.*s", length, slash ? path : ".");
    DIR *folder = opendir(dir);
    for (struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        if (left_over(entry->d_name, name) && strcmp(name, base) == 0) {
            remove_in(dir, entry->d_name);
        }
    }
    if (folder) {
        closedir(folder);
    }
}

static int newest_first(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

// The steps that a folder has files of, the newest first; freed by the caller. NULL when out of
// memory or there is no such folder.
static uint64_t *list_steps(const char *dir, size_t *count, bool clean) {
    DIR *folder = opendir(dir);
    uint64_t *steps = NULL;
    size_t room = 0;
    *count = 0;
    if (!folder) {
        grt_fail(GRT_NO_INPUT, "cannot read the folder %s: %s", dir, strerror(errno));
        return NULL;
    }
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        uint64_t step = 0;
        char name[256];
        struct stat info;
        if (clean && left_over(entry->d_name, name) &&
            (step_of(name, &step) || strcmp(name, "best.h5") == 0)) {
            remove_in(dir, entry->d_name);
        }
        if (!step_of(entry->d_name, &step) ||
            fstatat(dirfd(folder), entry->d_name, &info, 0) != 0 || !S_ISREG(info.st_mode)) {
            continue;
        }
        if (*count == room) {
            room = room ? 2 * room : 64;
            uint64_t *more = realloc(steps, room * sizeof *steps);
            if (!more) {
                break;
            }
            steps = more;
        }
        steps[(*count)++] = step;
    }
    closedir(folder);
    if (!steps) {
        steps = calloc(1, sizeof *steps);
    }
    if (*count > 1) {
        qsort(steps, *count, sizeof *steps, newest_first);
    }
    return steps;
}

bool grt_checkpoint_store(const struct grt_checkpoint_dir *dir, const struct grt_archive *archive,
                          uint64_t step) {
    char path[4096];
    if (!dir || !dir->dir || !archive || !grt_checkpoint_path(dir->dir, step, path, sizeof path)) {
        return grt_fail(GRT_INVALID, "a folder and an archive are wanted");
    }
    if (!grt_checkpoint_make_dir(dir->dir) || !checkpoint_save(archive, path, dir->twin)) {
        return false;
    }
    size_t count = 0;
    uint64_t *steps = list_steps(dir->dir, &count, true);
    uint32_t kept = 0;
    for (size_t i = 0; steps && dir->keep > 0 && i < count; i++) {
        // A step beyond this one is none of this run's: it is left alone and takes nobody's place.
        kept += steps[i] <= step;
        if (kept > dir->keep && grt_checkpoint_path(dir->dir, steps[i], path, sizeof path)) {
            unlink(path);
        }
    }
    free(steps);
    return true;
}

struct grt_archive *grt_checkpoint_newest(const char *dir) {
    size_t count = 0;
    char path[4096];
    struct grt_archive *archive = NULL;
    if (!dir) {
        grt_fail(GRT_INVALID, "a folder is wanted");
        return NULL;
    }
    uint64_t *steps = list_steps(dir, &count, false);
    if (!steps) {
        return NULL;
    }
    for (size_t i = 0; !archive && i < count; i++) {
        if (!grt_checkpoint_path(dir, steps[i], path, sizeof path)) {
            break;
        }
        bool before = grt_quiet(true);
        archive = grt_checkpoint_load(path);
        grt_quiet(before);
        if (!archive) {
            grt_log(GRT_LOG_WARN, "%s is damaged or cannot be read; an older one is looked for",
                    path);
        }
    }
    free(steps);
    if (!archive) {
        grt_fail(GRT_NO_INPUT, "no whole checkpoint in %s", dir);
    }
    return archive;
}

bool grt_checkpoint_any(const char *dir) {
    size_t count = 0;
    bool before = grt_quiet(true);
    uint64_t *steps = dir ? list_steps(dir, &count, false) : NULL;
    grt_quiet(before);
    free(steps);
    return count > 0;
}

// Moves a file of a folder into one below it; one that is not there is no failure.
static bool move(const char *dir, const char *name, const char *into) {
    char from[4096];
    char to[4352];
    snprintf(from, sizeof from, "%s/%s", dir, name);
    snprintf(to, sizeof to, "%s/%s", into, name);
    return rename(from, to) == 0 || errno == ENOENT ||
           grt_fail(GRT_IO, "cannot move %s to %s: %s", from, to, strerror(errno));
}

bool grt_checkpoint_set_aside(const char *dir, char *path, size_t capacity) {
    size_t count = 0;
    uint64_t *steps = dir && path ? list_steps(dir, &count, false) : NULL;
    if (!steps) {
        return false;
    }
    int made = -1;
    for (uint32_t i = 1; made != 0 && i < 100000; i++) {
        int length = snprintf(path, capacity, "%s/earlier-%u", dir, i);
        bool fits = length > 0 && (size_t)length < capacity;
        made = fits ? mkdir(path, 0777) : -1;
        if (made != 0 && (!fits || errno != EEXIST)) {
            break;
        }
    }
    bool good = made == 0 ||
                grt_fail(GRT_NO_OUTPUT, "cannot make a folder in %s: %s", dir, strerror(errno));
    for (size_t i = 0; good && i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, STEP_NAME, (unsigned long long)steps[i]);
        good = move(dir, name, path);
    }
    good = good && move(dir, "best.h5", path);
    free(steps);
    return good;
}
