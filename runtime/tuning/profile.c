// SPDX-License-Identifier: Apache-2.0
// The profile of a device: every file that is for it, merged from the least specific to the most.
//
//     defaults of profile.h < class < vendor < architecture < device < user's file < GPURT_PROFILE
//
// Of two files of one level the one with more conditions wins, then the later one by name. All
// files are read anew for each device that is opened: 20 of them take less than a millisecond.
#include "gpurt/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile_file.h"
#include "base/log.h"

#define MAX_PARTS 16

struct part {
    char name[PROFILE_PATH];
    char why[GRT_PROFILE_TEXT];
    enum grt_profile_level level;
    uint32_t conditions;
    struct profile_file *file;  // until it is merged
};

struct grt_profile {
    struct grt_profile_value values[GRT_KEY_COUNT];
    bool said[GRT_KEY_COUNT];
    uint32_t part_count;
    struct part parts[MAX_PARTS];  // the least specific first
};

static bool more_specific(const struct part *a, const struct part *b) {
    return a->level != b->level ? a->level > b->level : a->conditions > b->conditions;
}

// Puts a file in its place, behind those that are not more specific.
static bool add_part(struct grt_profile *profile, const struct part *part) {
    if (profile->part_count == MAX_PARTS) {
        return grt_fail(GRT_CONFIG, "%s: more than %d profiles are for one device", part->name,
                        MAX_PARTS);
    }
    uint32_t at = profile->part_count;
    while (at > 0 && more_specific(&profile->parts[at - 1], part)) {
        at--;
    }
    memmove(&profile->parts[at + 1], &profile->parts[at],
            (profile->part_count - at) * sizeof profile->parts[0]);
    profile->parts[at] = *part;
    profile->part_count++;
    return true;
}

// Reads one text; a shipped file that is not for the device is no part of its profile.
static bool add_text(struct grt_profile *profile, const struct grt_dev_info *info,
                     struct part *part, const char *text, size_t size) {
    char why[PROFILE_WHY];
    part->file = malloc(sizeof *part->file);
    if (!part->file) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for profile %s", part->name);
    }
    bool good = profile_parse(part->name, text, size, part->file, why);
    bool shipped = part->level == GRT_PROFILE_DEFAULT;
    if (!good) {
        grt_fail(GRT_CONFIG, "%s%s", why,
                 shipped                            ? ""
                 : part->level == GRT_PROFILE_NAMED ? "; mend it or unset GPURT_PROFILE"
                                                    : "; mend it, or remove it and tune again");
    } else if (shipped &&
               !profile_matches(&part->file->match, info, part->why, &part->conditions)) {
        free(part->file);
        return true;
    } else {
        part->level = shipped ? part->file->level : part->level;
        good = add_part(profile, part);
    }
    if (!good) {
        free(part->file);
    }
    return good;
}

static bool add_shipped(struct grt_profile *profile, const struct grt_dev_info *info) {
    for (uint32_t i = 0; profile_texts[i].name; i++) {
        struct part part = {.level = GRT_PROFILE_DEFAULT};
        snprintf(part.name, sizeof part.name, "%s", profile_texts[i].name);
        if (!add_text(profile, info, &part, profile_texts[i].text, strlen(profile_texts[i].text))) {
            return false;
        }
    }
    return true;
}

static bool add_disk(struct grt_profile *profile, const struct grt_dev_info *info, const char *path,
                     enum grt_profile_level level, const char *reason) {
    struct part part = {.level = level};
    char why[PROFILE_WHY];
    size_t size = 0;
    bool missing = false;
    snprintf(part.name, sizeof part.name, "%s", path);
    snprintf(part.why, sizeof part.why, "%s", reason);
    char *text = profile_read(path, &size, &missing, why);
    if (!text) {
        // The user's own file need not be there; one that is named must be.
        return (missing && level == GRT_PROFILE_USER) ||
               grt_fail(GRT_CONFIG, "%s%s", why,
                        level == GRT_PROFILE_NAMED ? "; name another or unset GPURT_PROFILE" : "");
    }
    bool good = add_text(profile, info, &part, text, size);
    free(text);
    return good;
}

static bool add_user(struct grt_profile *profile, const struct grt_dev_info *info) {
    char path[PROFILE_PATH];
    const char *named = getenv("GPURT_PROFILE");
    if (grt_profile_user_path(info, path, sizeof path) &&
        !add_disk(profile, info, path, GRT_PROFILE_USER, "the user's file for this device")) {
        return false;
    }
    return !named || !named[0] ||
           add_disk(profile, info, named, GRT_PROFILE_NAMED, "GPURT_PROFILE names it");
}

static void merge(struct grt_profile *profile) {
    char why[PROFILE_WHY];
    for (uint32_t key = 0; key < GRT_KEY_COUNT; key++) {
        struct grt_profile_value *value = &profile->values[key];
        value->count = profile_count((enum grt_profile_key)key);
        profile_numbers((enum grt_profile_key)key,
                        grt_profile_key_info((enum grt_profile_key)key)->fallback, value->numbers,
                        why);
        snprintf(value->profile, sizeof value->profile, "default");
        snprintf(value->from, sizeof value->from, "default");
    }
    for (uint32_t i = 0; i < profile->part_count; i++) {
        for (uint32_t key = 0; key < GRT_KEY_COUNT; key++) {
            const struct profile_row *row = &profile->parts[i].file->rows[key];
            struct grt_profile_value *value = &profile->values[key];
            if (row->line == 0) {
                continue;
            }
            memcpy(value->numbers, row->numbers, sizeof value->numbers);
            memcpy(value->from, row->from, sizeof value->from);
            snprintf(value->profile, sizeof value->profile, "%.220s:%u", profile->parts[i].name,
                     row->line);
        }
    }
}

struct grt_profile *grt_profile_create(const struct grt_dev_info *info) {
    struct grt_profile *profile = info ? calloc(1, sizeof *profile) : NULL;
    if (!profile) {
        grt_fail(info ? GRT_NO_MEMORY : GRT_INVALID, "grt_profile_create: no %s",
                 info ? "host memory" : "device");
        return NULL;
    }
    bool good = add_shipped(profile, info) && add_user(profile, info);
    if (good) {
        merge(profile);
    }
    for (uint32_t i = 0; i < profile->part_count; i++) {
        free(profile->parts[i].file);
        profile->parts[i].file = NULL;
    }
    if (!good) {
        grt_profile_destroy(&profile);
    }
    return profile;
}

void grt_profile_destroy(struct grt_profile **profile) {
    if (profile) {
        free(*profile);
        *profile = NULL;
    }
}

const struct grt_profile_value *grt_profile_get(const struct grt_profile *profile,
                                                enum grt_profile_key key) {
    if (!profile || (unsigned)key >= GRT_KEY_COUNT) {
        grt_fail(GRT_INVALID, "grt_profile_get: no %s", profile ? "such setting" : "profile");
        return NULL;
    }
    return &profile->values[key];
}

bool profile_set(struct grt_profile *profile, enum grt_profile_key key,
                 const struct grt_profile_value *value) {
    if ((unsigned)key >= GRT_KEY_COUNT || value->count != profile_count(key)) {
        return grt_fail(GRT_INVALID, "grt_dev_profile_set: no such setting, or of other numbers");
    }
    profile->values[key] = *value;
    profile->said[key] = false;
    return true;
}

bool grt_profile_first_time(struct grt_profile *profile, enum grt_profile_key key) {
    bool first = !profile->said[key];
    profile->said[key] = true;
    return first;
}

uint32_t grt_profile_whole(const struct grt_profile *profile, enum grt_profile_key key) {
    const struct grt_profile_value *value = grt_profile_get(profile, key);
    return value ? (uint32_t)value->numbers[0] : 0;
}

bool grt_profile_part(const struct grt_profile *profile, uint32_t i,
                      struct grt_profile_part *part) {
    if (!profile || !part || i >= profile->part_count) {
        return false;
    }
    const struct part *p = &profile->parts[profile->part_count - 1 - i];
    *part = (struct grt_profile_part){p->name, p->level, p->why};
    return true;
}
