// SPDX-License-Identifier: Apache-2.0
// The settings there are, from the list in profile.h, and how their numbers are read.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile_file.h"

const char *grt_profile_level_text(enum grt_profile_level level) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_PROFILE_LEVELS(X)
#undef X
    };
    return (unsigned)level < GRT_PROFILE_LEVEL_COUNT ? texts[level] : "unknown level";
}

static const struct grt_profile_key_info keys[] = {
#define whole true
#define real false
#define X(name, key, type, numbers, min, max, fallback, meaning)                                   \
    {key, numbers, type, min, max, fallback, meaning},
    GRT_PROFILE_KEYS(X)
#undef X
#undef whole
#undef real
};

const struct grt_profile_key_info *grt_profile_key_info(enum grt_profile_key key) {
    return (unsigned)key < GRT_KEY_COUNT ? &keys[key] : NULL;
}

uint32_t profile_count(enum grt_profile_key key) {
    uint32_t count = 0;
    for (const char *text = keys[key].numbers; *text; text++) {
        count += *text != ' ' && (text[1] == ' ' || text[1] == '\0');
    }
    return count;
}

// Settings by the names that files of earlier versions have: those files still load.
static const struct {
    const char *name;
    enum grt_profile_key key;
} earlier[] = {
    {"gemm.wgmma_lean", GRT_KEY_GEMM_WGMMA_48K},
    {"gemm.wgmma_lean.step", GRT_KEY_GEMM_WGMMA_48K_STEP},
    {"gemm.wgmma_lean.ends", GRT_KEY_GEMM_WGMMA_48K_ENDS},
};

enum grt_profile_key grt_profile_key_find(const char *name) {
    for (uint32_t i = 0; i < GRT_KEY_COUNT; i++) {
        if (strcmp(keys[i].key, name) == 0) {
            return (enum grt_profile_key)i;
        }
    }
    for (size_t i = 0; i < sizeof earlier / sizeof earlier[0]; i++) {
        if (strcmp(earlier[i].name, name) == 0) {
            return earlier[i].key;
        }
    }
    return GRT_KEY_COUNT;
}

// One number at *text, moved behind it and the spaces that follow.
static bool one_number(const struct grt_profile_key_info *info, const char **text, double *number,
                       char *why) {
    const char *word = *text;
    size_t length = strcspn(word, " \t");
    char *end = NULL;
    *number = strtod(word, &end);
    // strtod also knows nan, inf, hexadecimal and signs; a profile has none of these.
    if (end != word + length || strspn(word, "0123456789.") != length || !isfinite(*number)) {
        snprintf(why, PROFILE_WHY, "'%.*s' is no number", (int)(length < 32 ? length : 32), word);
        return false;
    }
    if (info->whole && *number != floor(*number)) {
        snprintf(why, PROFILE_WHY, "%g is not whole", *number);
        return false;
    }
    if (*number < info->min || *number > info->max) {
        snprintf(why, PROFILE_WHY, "%.12g is not between %g and %.12g", *number, info->min,
                 info->max);
        return false;
    }
    *text = word + length;
    *text += strspn(*text, " \t");
    return true;
}

bool profile_numbers(enum grt_profile_key key, const char *text, double *numbers,
                     char why[PROFILE_WHY]) {
    const struct grt_profile_key_info *info = grt_profile_key_info(key);
    uint32_t wanted = profile_count(key);
    uint32_t count = 0;
    for (; *text && count < wanted; count++) {
        if (!one_number(info, &text, &numbers[count], why)) {
            return false;
        }
    }
    if (*text || count < wanted) {
        snprintf(why, PROFILE_WHY, "%s takes %u numbers, %s", info->key, wanted, info->numbers);
        return false;
    }
    return true;
}
