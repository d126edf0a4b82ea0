// SPDX-License-Identifier: Apache-2.0
// The description of a kernel, or of an environment, from the reading of the dialect that
// shaders/describe.h makes.
#ifndef GRT_DESCRIBE_H
#define GRT_DESCRIBE_H

#include "backends/kernel_info.h"

#define GRT_MAX_SHMEM 8  // rows

// Texts and tables of a description; it does not move, for its info points into it.
struct grt_described {
    struct grt_kernel_info info;  // without the readings
    char *memory;                 // names
    struct grt_spec_info *specs;
    struct grt_arg_info *args;
    struct {
        uint32_t element;   // bytes
        const char *count;  // an expression of the kernel's constants
    } shmem[GRT_MAX_SHMEM];
    uint32_t shmem_count;
};

// Reads the only kernel of a text. False with a sentence that begins with `file` (GRT_BAD_DATA).
bool grt_describe_kernel(struct grt_described *d, const char *file, const char *text);
void grt_describe_finish(struct grt_described *d);

// What an environment says of itself. `fact` gets each number, `state` each name of the state, in
// their order; `row` gets each row of its other lists as texts, strings without their quotes: a
// size, a setting, a rule, a term. False from one ends it. `name` gets that of the environment.
// False with a sentence that begins with `file`.
#define GRT_DESCRIBE_TEXTS 6
struct grt_describe_env {
    char name[48];
    bool (*fact)(void *context, const char *name, double value);
    bool (*state)(void *context, const char *name);
    bool (*row)(void *context, const char *list, const char *const texts[GRT_DESCRIBE_TEXTS],
                uint32_t count);
    void *context;
};
bool grt_describe_env(struct grt_describe_env *env, const char *file, const char *text);

#endif
