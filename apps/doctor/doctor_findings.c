// SPDX-License-Identifier: Apache-2.0
// The findings half of gpurt doctor: a table of rows, each with its level and a small function that
// reads the facts and says nothing, a short line that all is well, or a sentence and its remedy.
// Errors are what keeps a GPU that is there, or a device that was asked for, from being used.
// doctor_apis.c has the functions about loaders and drivers, doctor_gpus.c those about GPUs, nodes
// and containers; here are those about gpurt itself.
#include "doctor_findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// ---- saying ----

static void say(const struct check *c, enum doctor_level level, const char *remedy,
                const char *format, va_list args) {
    struct doctor_findings *out = c->out;
    if (out->count < DOCTOR_MAX_FINDINGS) {
        struct doctor_finding *finding = &out->items[out->count++];
        out->counts[level]++;
        finding->id = c->row->id;
        finding->group = c->row->group;
        finding->level = level;
        vsnprintf(finding->sentence, sizeof finding->sentence, format, args);
        snprintf(finding->remedy, sizeof finding->remedy, "%s", remedy);
    }
}

void doctor_good(const struct check *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    say(c, DOCTOR_OK, "", format, args);
    va_end(args);
}

void doctor_bad(const struct check *c, const char *remedy, const char *format, ...) {
    va_list args;
    va_start(args, format);
    say(c, c->row->level, remedy, format, args);
    va_end(args);
}

void doctor_append(char *text, size_t capacity, const char *separator, const char *item) {
    size_t used = strlen(text);
    snprintf(text + used, capacity - used, "%s%s", used ? separator : "", item);
}

// ---- gpurt itself ----

static void find_coopmat(const struct check *c) {
    if (c->facts->coopmat) {
        doctor_good(c, "cooperative-matrix kernels are built in");
    } else {
        doctor_bad(c, "build a newer glslang with ci/glslang.sh, then build gpurt again",
                   "built without cooperative-matrix kernels, as its glslang did not know them: "
                   "Vulkan leaves the matrix units of GPUs idle");
    }
}

static void find_cache(const struct check *c) {
    static const char cost[] = "kernels are compiled anew at each start, which costs time only";
    if (!c->facts->cache_dir[0]) {
        doctor_bad(c, DOCTOR_CACHE_REMEDY,
                   "no cache: neither XDG_CACHE_HOME nor HOME names a folder; %s", cost);
    } else if (c->facts->cache_problem[0]) {
        doctor_bad(c, DOCTOR_CACHE_REMEDY, "no cache: %s cannot be written (%s); %s",
                   c->facts->cache_dir, c->facts->cache_problem, cost);
    } else {
        doctor_good(c, "cache %s", c->facts->cache_dir);
    }
}

static void find_device_setting(const struct check *c) {
    const struct grt_dev_list *list = c->facts->list;
    const char *wanted = c->facts->env.device;
    if (!wanted || !doctor_was_listed(c->facts)) {
        return;
    }
    if (c->facts->chosen) {
        doctor_good(c, "GPURT_DEVICE=%s is %s", wanted, c->facts->chosen->selector);
        return;
    }
    char names[256] = "";
    char remedy[384];
    for (uint32_t i = 0; i < list->count; i++) {
        doctor_append(names, sizeof names, ", ", list->devices[i].selector);
    }
    snprintf(remedy, sizeof remedy, "unset it, or set it to one of: %s", names);
    doctor_bad(c, remedy, "GPURT_DEVICE is '%s', which is no device here", wanted);
}

// ---- the table ----

static const struct row rows[] = {
#define X(id, level, find) {"vulkan-" id, "Vulkan", DOCTOR_##level, GRT_BACKEND_VULKAN, find},
    DOCTOR_API_ROWS(X)
#undef X
#define X(id, level, find) {"opencl-" id, "OpenCL", DOCTOR_##level, GRT_BACKEND_OPENCL, find},
        DOCTOR_API_ROWS(X)
#undef X
            {"opencl-filenames", "OpenCL", DOCTOR_WARNING, GRT_BACKEND_OPENCL,
             doctor_find_filenames},
#define X(id, level, find) {id, "GPUs", DOCTOR_##level, GRT_BACKEND_REF, find},
    DOCTOR_GPU_ROWS(X)
#undef X
#define X(id, level, find) {id, "system", DOCTOR_##level, GRT_BACKEND_REF, find},
        DOCTOR_SYSTEM_ROWS(X)
#undef X
            {"coopmat", "gpurt", DOCTOR_NOTE, GRT_BACKEND_REF, find_coopmat},
    {"cache", "gpurt", DOCTOR_WARNING, GRT_BACKEND_REF, find_cache},
    {"device-setting", "gpurt", DOCTOR_ERROR, GRT_BACKEND_REF, find_device_setting},
};

void doctor_findings_make(struct doctor_findings *findings, const struct doctor_facts *facts) {
    memset(findings, 0, sizeof *findings);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rows[i].find(&(struct check){facts, &rows[i], findings});
    }
}

const char *doctor_level_text(enum doctor_level level) {
    static const char *const texts[] = {
#define X(name, text) text,
        DOCTOR_LEVELS(X)
#undef X
    };
    return texts[level];
}
