// SPDX-License-Identifier: Apache-2.0
// Looking at a system under a root folder: paths, patterns, short texts, and libraries where the
// dynamic linker would look for them.
#ifndef APPS_DOCTOR_FILES_H
#define APPS_DOCTOR_FILES_H

#include <glob.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doctor.h"

// The folders libraries are searched in, in order.
struct doctor_search {
    const char *root;
    uint32_t count;
    char dirs[96][DOCTOR_PATH];
};

void doctor_search_init(struct doctor_search *search, const struct doctor_source *source);

enum doctor_library { DOCTOR_LIBRARY_MISSING, DOCTOR_LIBRARY_FOREIGN, DOCTOR_LIBRARY_FOUND };

// Finds a library by name or by path and writes where it lies. Foreign: only ones for another
// processor were found.
enum doctor_library doctor_search_library(const struct doctor_search *search, const char *name,
                                          char *path);

// The path as the process opens it: the root comes before absolute paths only.
void doctor_full_path(char *full, const char *root, const char *path);
bool doctor_exists(const char *root, const char *path);
bool doctor_is_folder(const char *root, const char *path);
// The beginning of a file, without white space at its end; false when it cannot be read.
bool doctor_read_text(const char *root, const char *path, char *text, size_t capacity);
// Whether the first megabytes of a file hold this word.
bool doctor_contains(const char *root, const char *path, const char *word);
// The paths that match, sorted; free them with globfree(). Each begins with the root, and
// doctor_match() gives the i-th without it.
size_t doctor_matches(const char *root, const char *pattern, glob_t *found);
const char *doctor_match(const char *root, const glob_t *found, size_t i);
// The next part of a list with colons; empty parts are passed over.
bool doctor_next_part(const char **list, char *part);

#endif
