// SPDX-License-Identifier: Apache-2.0
#include "files.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/talk.h"
#include "base/whole_file.h"

static bool given(const struct file_named *file) {
    return file->path && file->path[0];
}

static bool writes(const struct file_named *file) {
    return file->use == FILE_WRITTEN || file->use == FILE_KEPT;
}

// best.h5 and step-000000000507.h5
static bool is_checkpoint_name(const char *name) {
    unsigned long long step = 0;
    int end = 0;
    return strcmp(name, "best.h5") == 0 ||
           (sscanf(name, "step-%llu.h5%n", &step, &end) == 1 && end > 0 && !name[end]);
}

// Whether a file is, or would be, a checkpoint of the folder: by the name behind links.
static bool lies_in(const struct file_named *file, const struct file_named *folder) {
    char target[GRT_WHOLE_FILE_PATH], inside[GRT_WHOLE_FILE_PATH];
    const char *path = grt_whole_file_replaces(file->path, target) ? target : file->path;
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    snprintf(inside, sizeof inside, "%.3800s/%.255s", folder->path, name);
    return is_checkpoint_name(name) && grt_whole_file_same(path, inside);
}

static bool clash(const struct file_named *a, const struct file_named *b) {
    if (b->use == FILE_FOLDER) {
        return a->use == FILE_WRITTEN && lies_in(a, b);
    }
    bool both = writes(a) && writes(b);
    bool one = (a->use == FILE_WRITTEN && b->use == FILE_READ) ||
               (a->use == FILE_READ && b->use == FILE_WRITTEN);
    return (both || one) && grt_whole_file_same(a->path, b->path);
}

static int say(const struct file_named *a, const struct file_named *b) {
    const struct file_named *written = a->use == FILE_WRITTEN ? a : b,
                            *other = a == written ? b : a;
    if (writes(other)) {
        talk_error("'%s' (%s) is written as %s too: name two files", written->path, written->by,
                   other->by);
    } else {
        talk_error("'%s' (%s) is read as %s and would be overwritten: name another file",
                   written->path, written->by, other->by);
    }
    return COMMAND_USAGE;
}

int files_apart(const struct file_named *files, size_t count) {
    const struct file_named profile = {FILE_READ, "GPURT_PROFILE", getenv("GPURT_PROFILE")};
    for (size_t i = 0; i < count; i++) {
        if (!given(&files[i])) {
            continue;
        }
        for (size_t k = 0; k < count; k++) {
            // Of a folder and a file in either order, of two files once.
            bool once = k > i || files[k].use == FILE_FOLDER;
            if (k != i && once && given(&files[k]) && clash(&files[i], &files[k])) {
                return say(&files[i], &files[k]);
            }
        }
        if (given(&profile) && clash(&files[i], &profile)) {
            return say(&files[i], &profile);
        }
    }
    return COMMAND_OK;
}
