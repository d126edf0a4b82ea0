// SPDX-License-Identifier: Apache-2.0
// C's preprocessor, as far as the dialect goes: #include, #define with parameters, # and ##, #if.
// One reading of it serves the description of a kernel and the texts for all compilers, so that no
// GPU driver's own is needed.
//
// What comes out has #line where lines are left out: a compiler's message names the user's file and
// line. #pragma, #extension, #version and #include <...> are left for the compiler.
#ifndef GRT_PREPROCESS_H
#define GRT_PREPROCESS_H

#include <stdbool.h>
#include <stddef.h>

struct grt_pp_file {
    const char *name;  // in messages, and what an #include inside is looked for beside
    char *text;        // ends with 0; freed by the preprocessor
};

// Opens what `from` includes as "name": fills `file`, whose name is freed by nobody and lives as
// long as the context. False when there is none.
typedef bool grt_pp_open_fn(void *context, const char *from, const char *name,
                            struct grt_pp_file *file);

// The text, to be freed. NULL with a sentence that begins with file and line (GRT_BAD_DATA).
char *grt_preprocess(const char *name, const char *text, grt_pp_open_fn *open, void *context);

#endif
