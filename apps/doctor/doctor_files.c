// SPDX-License-Identifier: Apache-2.0
// Libraries are searched for by name in files and folders, not with dlopen(): loading a driver runs
// its code, which is what may be broken, and another system under a root cannot be loaded at all.
#include "doctor_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LD_CONF_DEPTH 4

void doctor_full_path(char *full, const char *root, const char *path) {
    int length = snprintf(full, DOCTOR_PATH, "%s%s", path[0] == '/' ? root : "", path);
    if (length >= DOCTOR_PATH) {
        full[0] = '\0';  // opens nothing, where a shortened path might
    }
}

bool doctor_exists(const char *root, const char *path) {
    char full[DOCTOR_PATH];
    doctor_full_path(full, root, path);
    return access(full, F_OK) == 0;
}

bool doctor_is_folder(const char *root, const char *path) {
    char full[DOCTOR_PATH];
    struct stat st;
    doctor_full_path(full, root, path);
    return stat(full, &st) == 0 && S_ISDIR(st.st_mode);
}

static size_t read_bytes(const char *full, void *bytes, size_t capacity) {
    FILE *file = fopen(full, "rb");
    if (!file) {
        return 0;
    }
    size_t size = fread(bytes, 1, capacity, file);
    fclose(file);
    return size;
}

bool doctor_read_text(const char *root, const char *path, char *text, size_t capacity) {
    char full[DOCTOR_PATH];
    doctor_full_path(full, root, path);
    size_t size = read_bytes(full, text, capacity - 1);
    while (size > 0 && strchr(" \t\r\n", text[size - 1])) {
        size--;
    }
    text[size] = '\0';
    return size > 0;
}

bool doctor_contains(const char *root, const char *path, const char *word) {
    enum { LIMIT = 4 << 20 };
    char full[DOCTOR_PATH];
    char *bytes = malloc(LIMIT);
    if (!bytes) {
        return false;
    }
    doctor_full_path(full, root, path);
    size_t size = read_bytes(full, bytes, LIMIT);
    size_t length = strlen(word);
    bool found = false;
    for (size_t i = 0; i + length <= size && !found; i++) {
        found = memcmp(bytes + i, word, length) == 0;
    }
    free(bytes);
    return found;
}

size_t doctor_matches(const char *root, const char *pattern, glob_t *found) {
    char full[DOCTOR_PATH];
    doctor_full_path(full, root, pattern);
    memset(found, 0, sizeof *found);
    return glob(full, 0, NULL, found) == 0 ? found->gl_pathc : 0;
}

const char *doctor_match(const char *root, const glob_t *found, size_t i) {
    const char *path = found->gl_pathv[i];
    return path[0] == '/' ? path + strlen(root) : path;
}

bool doctor_next_part(const char **list, char *part) {
    while (*list && **list) {
        size_t length = strcspn(*list, ":");
        const char *start = *list;
        *list += length + (start[length] == ':');
        if (length > 0 && length < DOCTOR_PATH) {
            memcpy(part, start, length);
            part[length] = '\0';
            return true;
        }
    }
    return false;
}

// ---- libraries ----

static void add_dir(struct doctor_search *search, const char *dir) {
    const uint32_t capacity = sizeof search->dirs / sizeof search->dirs[0];
    if (dir[0] == '/' && strlen(dir) < DOCTOR_PATH && search->count < capacity) {
        snprintf(search->dirs[search->count++], DOCTOR_PATH, "%s", dir);
    }
}

static void add_dirs(struct doctor_search *search, const char *pattern) {
    glob_t found;
    size_t count = doctor_matches(search->root, pattern, &found);
    for (size_t i = 0; i < count; i++) {
        add_dir(search, doctor_match(search->root, &found, i));
    }
    globfree(&found);
}

// ld.so.conf: folders, comments, and "include PATTERN".
static void read_ld_conf(struct doctor_search *search, const char *path, uint32_t depth) {
    char line[DOCTOR_PATH];
    doctor_full_path(line, search->root, path);
    FILE *file = depth < LD_CONF_DEPTH ? fopen(line, "r") : NULL;
    if (!file) {
        return;
    }
    while (fgets(line, sizeof line, file)) {
        char *rest = NULL;
        line[strcspn(line, "#")] = '\0';
        char *word = strtok_r(line, " \t\r\n:,", &rest);
        bool include = word && strcmp(word, "include") == 0;
        if (include) {
            word = strtok_r(NULL, " \t\r\n", &rest);
        }
        for (; word; word = strtok_r(NULL, " \t\r\n:,", &rest)) {
            if (!include) {
                add_dir(search, word);
                continue;
            }
            char pattern[DOCTOR_PATH + 8];
            glob_t found;
            snprintf(pattern, sizeof pattern, "%s%s", word[0] == '/' ? "" : "/etc/", word);
            size_t count = doctor_matches(search->root, pattern, &found);
            for (size_t i = 0; i < count; i++) {
                read_ld_conf(search, doctor_match(search->root, &found, i), depth + 1);
            }
            globfree(&found);
        }
    }
    fclose(file);
}

// A bundle of gpurt brings loaders along: in lib/ one that comes before the system's, in
// lib/fallback one that comes after.
static void add_bundle(struct doctor_search *search, const char *prefix, const char *folder) {
    char dir[DOCTOR_PATH];
    if (prefix && snprintf(dir, sizeof dir, "%s/%s", prefix, folder) < DOCTOR_PATH) {
        add_dir(search, dir);
    }
}

void doctor_search_init(struct doctor_search *search, const struct doctor_source *source) {
    // What the linkers of Debian, Fedora, Alpine and (last) NixOS know without being told.
    static const char *const patterns[] = {
        "/lib/*-linux-gnu", "/usr/lib/*-linux-gnu",   "/lib64", "/usr/lib64", "/lib", "/usr/lib",
        "/usr/local/lib",   "/run/opengl-driver/lib",
    };
    const char *ld_library_path = source->env.ld_library_path;
    char dir[DOCTOR_PATH];
    search->root = source->root;
    search->count = 0;
    add_bundle(search, source->prefix, "lib");
    while (doctor_next_part(&ld_library_path, dir)) {
        add_dir(search, dir);
    }
    read_ld_conf(search, "/etc/ld.so.conf", 0);
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        add_dirs(search, patterns[i]);
    }
    add_bundle(search, source->prefix, "lib/fallback");
}

// Whether an ELF file is for another processor than this program: class and machine differ from
// those in our own header. A 32-bit libvulkan.so.1 on a 64-bit system is no loader for us.
static bool is_foreign(const char *full) {
    enum { CLASS = 4, MACHINE = 18, SIZE = 20 };
    unsigned char theirs[SIZE];
    unsigned char ours[SIZE];
    return read_bytes(full, theirs, SIZE) == SIZE && memcmp(theirs, "\177ELF", 4) == 0 &&
           read_bytes("/proc/self/exe", ours, SIZE) == SIZE &&
           (theirs[CLASS] != ours[CLASS] || memcmp(theirs + MACHINE, ours + MACHINE, 2) != 0);
}

static enum doctor_library look(const struct doctor_search *search, const char *path) {
    char full[DOCTOR_PATH];
    doctor_full_path(full, search->root, path);
    if (access(full, F_OK) != 0) {
        return DOCTOR_LIBRARY_MISSING;
    }
    return is_foreign(full) ? DOCTOR_LIBRARY_FOREIGN : DOCTOR_LIBRARY_FOUND;
}

enum doctor_library doctor_search_library(const struct doctor_search *search, const char *name,
                                          char *path) {
    if (strchr(name, '/')) {
        snprintf(path, DOCTOR_PATH, "%s", name);
        return look(search, path);
    }
    enum doctor_library best = DOCTOR_LIBRARY_MISSING;
    for (uint32_t i = 0; i < search->count && best != DOCTOR_LIBRARY_FOUND; i++) {
        char candidate[DOCTOR_PATH];
        if (snprintf(candidate, sizeof candidate, "%s/%s", search->dirs[i], name) < DOCTOR_PATH) {
            enum doctor_library found = look(search, candidate);
            best = found > best ? found : best;
        }
        if (best == DOCTOR_LIBRARY_FOUND) {
            memcpy(path, candidate, sizeof candidate);
        }
    }
    return best;
}
