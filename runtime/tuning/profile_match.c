// SPDX-License-Identifier: Apache-2.0
// What a device is, from the names its driver gives it, and whether a profile is for it.
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "profile_file.h"

// How a vendor calls itself in the driver's vendor text.
static const struct {
    const char *part;
    const char *vendor;
} vendors[] = {
    {"NVIDIA", "nvidia"}, {"AMD", "amd"},     {"Advanced Micro Devices", "amd"},
    {"Intel", "intel"},   {"Apple", "apple"}, {"Qualcomm", "qualcomm"},
    {"Arm", "arm"},
};

// Architectures by a part of the device's name; the first that is found counts, so the longer of
// two similar names stands first. Drivers name AMD's chips as gfx1030, NAVI21 or by the card.
static const struct {
    const char *part;
    const char *vendor;
    const char *arch;
} chips[] = {
    // clang-format off
    {"Ada Generation", "nvidia", "ada"},  // "RTX 2000 Ada Generation" is no RTX 20
    {"Quadro RTX", "nvidia", "turing"}, {"RTX 20", "nvidia", "turing"},
    {"GTX 16", "nvidia", "turing"}, {"Tesla T4", "nvidia", "turing"},
    {"V100", "nvidia", "volta"}, {"TITAN V", "nvidia", "volta"},
    {"RTX 40", "nvidia", "ada"}, {"L40", "nvidia", "ada"}, {"L4", "nvidia", "ada"},
    {"RTX A", "nvidia", "ampere-consumer"}, {"RTX 30", "nvidia", "ampere-consumer"},
    {"A100", "nvidia", "ampere"}, {"A800", "nvidia", "ampere"}, {"A30", "nvidia", "ampere"},
    {"A40", "nvidia", "ampere-consumer"}, {"A10", "nvidia", "ampere-consumer"},
    {"A16", "nvidia", "ampere-consumer"}, {"A2", "nvidia", "ampere-consumer"},
    {"H100", "nvidia", "hopper"}, {"H200", "nvidia", "hopper"}, {"H800", "nvidia", "hopper"},
    {"H20", "nvidia", "hopper"}, {"GH200", "nvidia", "hopper"},
    {"B100", "nvidia", "blackwell"}, {"B200", "nvidia", "blackwell"},
    {"GB200", "nvidia", "blackwell"}, {"RTX 50", "nvidia", "blackwell"},
    {"RTX PRO", "nvidia", "blackwell"},
    {"gfx103", "amd", "rdna2"}, {"NAVI2", "amd", "rdna2"}, {"RX 6", "amd", "rdna2"},
    {"PRO W6", "amd", "rdna2"}, {"VANGOGH", "amd", "rdna2"}, {"REMBRANDT", "amd", "rdna2"},
    {"gfx110", "amd", "rdna3"}, {"NAVI3", "amd", "rdna3"}, {"RX 7", "amd", "rdna3"},
    {"PRO W7", "amd", "rdna3"}, {"PHOENIX", "amd", "rdna3"},
    {"gfx90a", "amd", "cdna2"}, {"MI210", "amd", "cdna2"}, {"MI250", "amd", "cdna2"},
    {"Arc(TM) A", "intel", "dg2"}, {"Arc A", "intel", "dg2"}, {"DG2", "intel", "dg2"},
    {"Arc(TM) Pro A", "intel", "dg2"}, {"Data Center GPU Flex", "intel", "dg2"},
    {"Graphics [0x56", "intel", "dg2"},  // older drivers name the PCI device
    {"Arc(TM) B", "intel", "battlemage"}, {"Arc B", "intel", "battlemage"},
    {"Arc(TM) Pro B", "intel", "battlemage"}, {"Graphics [0xe2", "intel", "battlemage"},
    {"BMG", "intel", "battlemage"}, {"Battlemage", "intel", "battlemage"},
    {"Apple M", "apple", "apple"}, {"Adreno", "qualcomm", "adreno"},
    {"Mali", "arm", "mali"}, {"Immortalis", "arm", "mali"},
    // clang-format on
};

// CPU drivers, by the driver's name.
static const struct {
    const char *driver;
    const char *arch;
} software[] = {
    {"Portable Computing Language", "pocl"},
    {"llvmpipe", "lavapipe"},
    {"ref", "ref"},
};

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

// Whether `part` (length letters) stands in the text at the beginning of a word, in any case: "A10"
// is not in "RTX 3060 GA106".
static bool has_word(const char *text, const char *part, size_t length) {
    for (const char *at = text; *at; at++) {
        bool begins = at == text || !isalnum((unsigned char)at[-1]);
        if (begins && strncasecmp(at, part, length) == 0) {
            return true;
        }
    }
    return false;
}

bool profile_known_vendor(const char *vendor) {
    for (size_t i = 0; i < COUNT(vendors); i++) {
        if (strcmp(vendors[i].vendor, vendor) == 0) {
            return true;
        }
    }
    return false;
}

bool profile_known_arch(const char *arch) {
    for (size_t i = 0; i < COUNT(chips); i++) {
        if (strcmp(chips[i].arch, arch) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < COUNT(software); i++) {
        if (strcmp(software[i].arch, arch) == 0) {
            return true;
        }
    }
    return false;
}

// A CPU driver's vendor is the maker of the CPU, whose GPUs have nothing to do with it.
static struct profile_kind cpu_kind(const struct grt_dev_info *info) {
    struct profile_kind kind = {"", "", "cpu"};
    for (size_t i = 0; i < COUNT(software); i++) {
        if (strcasecmp(info->driver, software[i].driver) == 0) {
            kind.arch = software[i].arch;
        }
    }
    return kind;
}

struct profile_kind profile_kind_of(const struct grt_dev_info *info) {
    struct profile_kind kind = {"", "", "gpu"};
    if (info->caps.software) {
        return cpu_kind(info);
    }
    for (size_t i = 0; i < COUNT(vendors) && !*kind.vendor; i++) {
        if (has_word(info->vendor, vendors[i].part, strlen(vendors[i].part))) {
            kind.vendor = vendors[i].vendor;
        }
    }
    for (size_t i = 0; i < COUNT(chips) && !*kind.arch; i++) {
        bool same = !*kind.vendor || strcmp(kind.vendor, chips[i].vendor) == 0;
        if (same && has_word(info->name, chips[i].part, strlen(chips[i].part))) {
            kind.vendor = chips[i].vendor;
            kind.arch = chips[i].arch;
        }
    }
    return kind;
}

// The first of the parts "a | b" that the name has; its length in *length, NULL when none.
static const char *found_part(const char *name, const char *parts, size_t *length) {
    for (const char *part = parts; *part;) {
        part += strspn(part, " |");
        size_t whole = strcspn(part, "|");
        *length = whole;
        while (*length > 0 && part[*length - 1] == ' ') {
            (*length)--;
        }
        if (*length > 0 && has_word(name, part, *length)) {
            return part;
        }
        part += whole;
    }
    return NULL;
}

// Adds one more reason to the sentence.
static void add_reason(char *why, uint32_t *conditions, const char *what, const char *value,
                       size_t length) {
    size_t used = strlen(why);
    snprintf(why + used, GRT_PROFILE_TEXT - used, "%s%s '%.*s'", *conditions ? ", " : "", what,
             (int)length, value);
    (*conditions)++;
}

bool profile_matches(const struct profile_match *match, const struct grt_dev_info *info,
                     char why[GRT_PROFILE_TEXT], uint32_t *conditions) {
    struct profile_kind kind = profile_kind_of(info);
    double gib = (double)info->caps.memory / (1 << 30);
    why[0] = '\0';
    *conditions = 0;
    if (match->name[0]) {
        size_t length = 0;
        const char *part = found_part(info->name, match->name, &length);
        if (!part) {
            return false;
        }
        add_reason(why, conditions, "its name has", part, length);
    }
    const struct {
        const char *what, *wanted, *has;
    } words[] = {
        {"architecture", match->arch, kind.arch},
        {"vendor", match->vendor, kind.vendor},
        {"class", match->class, kind.class},
        {"backend", match->backend, grt_backend_text(info->backend)},
    };
    for (size_t i = 0; i < COUNT(words); i++) {
        if (words[i].wanted[0] && strcmp(words[i].wanted, words[i].has) != 0) {
            return false;
        }
        if (words[i].wanted[0]) {
            add_reason(why, conditions, words[i].what, words[i].has, strlen(words[i].has));
        }
    }
    if (match->memory[0]) {
        if (gib < match->from_gib || gib >= match->below_gib) {
            return false;
        }
        char range[64];
        if (match->below_gib < HUGE_VAL) {
            snprintf(range, sizeof range, "%g to %g GiB", match->from_gib, match->below_gib);
        } else {
            snprintf(range, sizeof range, "%g GiB or more", match->from_gib);
        }
        add_reason(why, conditions, "memory", range, strlen(range));
    }
    return true;
}
