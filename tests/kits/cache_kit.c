// SPDX-License-Identifier: Apache-2.0
// See cache_kit.h.
#include "cache_kit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char kit_cache[256];
static char *before;  // XDG_CACHE_HOME of the cases around it

void kit_remove_tree(const char *path) {
    DIR *dir = opendir(path);
    for (struct dirent *row = dir ? readdir(dir) : NULL; row; row = readdir(dir)) {
        if (strcmp(row->d_name, ".") != 0 && strcmp(row->d_name, "..") != 0) {
            char inside[1024];
            snprintf(inside, sizeof inside, "%.600s/%.255s", path, row->d_name);
            kit_remove_tree(inside);
        }
    }
    if (dir) {
        closedir(dir);
    }
    remove(path);
}

// What Mesa has compiled for other cases is of use: none is about its cache.
static void keep_mesa(const char *now) {
    const char *home = getenv("HOME");
    char folder[512];
    if (now || home) {
        snprintf(folder, sizeof folder, "%.480s%s", now ? now : home, now ? "" : "/.cache");
        setenv("MESA_SHADER_CACHE_DIR", folder, 0);
    }
}

int kit_cache_begin(void **state) {
    const char *tmp = getenv("TMPDIR");
    const char *now = getenv("XDG_CACHE_HOME");
    keep_mesa(now);
    snprintf(kit_cache, sizeof kit_cache, "%.200s/gpurt-test-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
    if (!mkdtemp(kit_cache)) {
        return -1;
    }
    before = now ? strdup(now) : NULL;
    setenv("XDG_CACHE_HOME", kit_cache, 1);
    return test_case_begin(state);
}

int kit_cache_end(void **state) {
    kit_remove_tree(kit_cache);
    if (before) {
        setenv("XDG_CACHE_HOME", before, 1);
    } else {
        unsetenv("XDG_CACHE_HOME");
    }
    free(before);
    before = NULL;
    return test_case_end(state);
}
