// SPDX-License-Identifier: Apache-2.0
// Inside runtime/: one profile as it was read, and which devices it is for.
#ifndef GRT_PROFILE_FILE_H
#define GRT_PROFILE_FILE_H

#include "gpurt/profile.h"

#define PROFILE_VERSION 1
#define PROFILE_WORD 96
#define PROFILE_WHY 768  // bytes of a sentence about a mistake
#define PROFILE_PATH 4096
#define PROFILE_MAX_BYTES (64u << 10)

// Conditions, "" or 0 where there is none.
#define PROFILE_CONDITIONS(X)                                                                      \
    X(name)    /* part of the device's name, any case; several parts are joined by | */            \
    X(arch)    /* of profile_match.c's table */                                                    \
    X(vendor)  /* likewise */                                                                      \
    X(class)   /* gpu or cpu */                                                                    \
    X(backend) /* vulkan, opencl or ref */                                                         \
    X(memory)  /* GiB, from and below: "20 36", or "70" for no upper limit */

struct profile_match {
#define X(name) char name[PROFILE_WORD];
    PROFILE_CONDITIONS(X)
#undef X
    double from_gib, below_gib;  // of `memory`
};

struct profile_row {
    uint32_t line;  // 0: not set
    uint32_t count;
    double numbers[GRT_PROFILE_NUMBERS];
    char from[GRT_PROFILE_TEXT];
};

struct profile_file {
    enum grt_profile_level level;
    struct profile_match match;
    struct profile_row rows[GRT_KEY_COUNT];
};

// The shipped files, embedded by the build; ends with a NULL name.
struct profile_text {
    const char *name;  // "nvidia-a100-80g"
    const char *text;
};
extern const struct profile_text profile_texts[];

// Reads a whole file's text. False with "path:line: what is wrong" in `why`.
bool profile_parse(const char *path, const char *text, size_t size, struct profile_file *file,
                   char why[PROFILE_WHY]);
// How many numbers a setting has.
uint32_t profile_count(enum grt_profile_key key);
// Numbers of one setting, "128 128 16 8 8". False with what is wrong with them in `why`.
bool profile_numbers(enum grt_profile_key key, const char *text, double *numbers,
                     char why[PROFILE_WHY]);

// What a device is, from the names its driver gives it.
struct profile_kind {
    const char *vendor;  // "nvidia"; "" when unknown, and for CPU drivers
    const char *arch;    // "hopper"; "" when unknown
    const char *class;   // "gpu" or "cpu"
};
struct profile_kind profile_kind_of(const struct grt_dev_info *info);
// Whether all conditions hold; `why` then says which. `conditions` counts them.
bool profile_matches(const struct profile_match *match, const struct grt_dev_info *info,
                     char why[GRT_PROFILE_TEXT], uint32_t *conditions);
// Whether the architecture table knows the word, so that a condition can hold at all.
bool profile_known_arch(const char *arch);
bool profile_known_vendor(const char *vendor);

// The text of a file on disk, to be freed. NULL with `why` when it cannot be read; `missing` tells
// that there is no such file.
char *profile_read(const char *path, size_t *size, bool *missing, char why[PROFILE_WHY]);

// True once for each setting of a profile: for what shall be said once.
bool grt_profile_first_time(struct grt_profile *profile, enum grt_profile_key key);
// Replaces a setting; false with the sentence when it has another count of numbers.
bool profile_set(struct grt_profile *profile, enum grt_profile_key key,
                 const struct grt_profile_value *value);

#endif
