// SPDX-License-Identifier: Apache-2.0
// The findings half of gpurt doctor: a table of rows, each with its level and a small function that
// reads the facts and says nothing, a short line that all is well, or a sentence and its remedy.
// Errors are what keeps a GPU that is there, or a device that was asked for, from being used.
// doctor_gpus.c has the functions about GPUs, their nodes and containers.
#include "doctor_findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CACHE_REMEDY "set XDG_CACHE_HOME to a folder that can be written"

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

// ---- loaders and drivers, the same for Vulkan and OpenCL ----

const struct api_words doctor_api_words[DOCTOR_API_COUNT] = {
    [GRT_BACKEND_VULKAN] =
        {
            .name = "Vulkan",
            .loader = "libvulkan.so.1",
            .loader_package = "libvulkan1",
            .file = "manifest",
            .places = "/etc/vulkan/icd.d, /usr/share/vulkan/icd.d and the XDG folders",
            .packages = "mesa-vulkan-drivers (AMD, Intel, CPU) or nvidia-vulkan-icd (NVIDIA)",
            .nvidia_package = "nvidia-vulkan-icd",
            .variable = "VK_ICD_FILENAMES",
        },
    [GRT_BACKEND_OPENCL] =
        {
            .name = "OpenCL",
            .loader = "libOpenCL.so.1",
            .loader_package = "ocl-icd-libopencl1",
            .file = "vendor file",
            .places = "/etc/OpenCL/vendors",
            .packages = "pocl-opencl-icd (CPU), intel-opencl-icd, mesa-opencl-icd (AMD) or "
                        "nvidia-opencl-icd",
            .nvidia_package = "nvidia-opencl-icd",
            .variable = "OCL_ICD_VENDORS",
        },
};

static const struct doctor_api *api_of(const struct check *c) {
    return &c->facts->apis[c->row->api];
}

static const struct api_words *words_of(const struct check *c) {
    return &doctor_api_words[c->row->api];
}

static const struct grt_backend_report *report_of(const struct check *c) {
    static const struct grt_backend_report none;
    return c->facts->list ? &c->facts->list->reports[c->row->api] : &none;
}

// The search by file name may miss a loader in an unusual place; devices that are listed prove it.
static void find_loader(const struct check *c) {
    char remedy[128];
    if (api_of(c)->loader[0]) {
        doctor_good(c, "%s loader %s", words_of(c)->name, api_of(c)->loader);
    } else if (report_of(c)->device_count == 0) {
        snprintf(remedy, sizeof remedy, "apt install %s", words_of(c)->loader_package);
        doctor_bad(c, remedy, "no %s loader: %s is not installed", words_of(c)->name,
                   words_of(c)->loader);
    }
}

static const char *const state_texts[] = {
#define X(name, text) text,
    DOCTOR_DRIVER_STATES(X)
#undef X
};

static bool is_broken(const struct doctor_driver *driver) {
    return state_texts[driver->state][0] != '\0';
}

// A driver that the user has chosen by a variable and that cannot be used.
static void find_named(const struct check *c) {
    for (uint32_t i = 0; i < api_of(c)->driver_count; i++) {
        const struct doctor_driver *driver = &api_of(c)->drivers[i];
        if (driver->variable && is_broken(driver)) {
            char remedy[128];
            snprintf(remedy, sizeof remedy, "unset %s, or correct it", driver->variable);
            doctor_bad(c, remedy, "%s names %s, which %s%s", driver->variable, driver->file,
                       state_texts[driver->state], driver->library);
        }
    }
}

static uint32_t usable_drivers(const struct check *c) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < api_of(c)->driver_count; i++) {
        count += api_of(c)->drivers[i].state == DOCTOR_DRIVER_OK;
    }
    return count;
}

static void find_drivers(const struct check *c) {
    char names[384] = "";
    char remedy[256];
    uint32_t usable = usable_drivers(c);
    bool misnamed = false;
    for (uint32_t i = 0; i < api_of(c)->driver_count; i++) {
        const struct doctor_driver *driver = &api_of(c)->drivers[i];
        const char *slash = strrchr(driver->file, '/');
        misnamed = misnamed || (driver->variable && is_broken(driver));
        if (driver->state == DOCTOR_DRIVER_OK) {
            doctor_append(names, sizeof names, ", ", slash ? slash + 1 : driver->file);
        }
    }
    if (usable > 0) {
        doctor_good(c, "%u %s driver%s: %s", usable, words_of(c)->name, usable > 1 ? "s" : "",
                    names);
    } else if (!misnamed && !api_of(c)->nvidia[0]) {
        snprintf(remedy, sizeof remedy, "apt install %s", words_of(c)->packages);
        doctor_bad(c, remedy, "no %s driver: no %s that can be used in %s", words_of(c)->name,
                   words_of(c)->file, words_of(c)->places);
    }
}

static void find_broken(const struct check *c) {
    for (uint32_t i = 0; i < api_of(c)->driver_count; i++) {
        const struct doctor_driver *driver = &api_of(c)->drivers[i];
        if (!driver->variable && is_broken(driver)) {
            char remedy[2 * DOCTOR_PATH];
            snprintf(remedy, sizeof remedy,
                     "reinstall the package it belongs to (dpkg -S %s tells which), or remove it",
                     driver->file);
            doctor_bad(c, remedy, "%s %s%s", driver->file, state_texts[driver->state],
                       driver->library);
        }
    }
}

// NVIDIA's driver is installed but nothing tells the loader. gpurt then tells it, unless the user
// has chosen the drivers.
static void find_nvidia_file(const struct check *c) {
    const char *chosen_by = NULL;
    for (uint32_t i = 0; i < api_of(c)->driver_count; i++) {
        const struct doctor_driver *driver = &api_of(c)->drivers[i];
        chosen_by = driver->variable ? driver->variable : chosen_by;
        if (driver->state == DOCTOR_DRIVER_OK && strstr(driver->library, "nvidia")) {
            return;
        }
    }
    if (api_of(c)->nvidia[0]) {
        const char *note = report_of(c)->note;
        char remedy[128];
        char own[128] = "gpurt makes its own when no other GPU is listed";
        if (chosen_by) {
            snprintf(own, sizeof own, "as %s is set, gpurt makes none", chosen_by);
        }
        snprintf(remedy, sizeof remedy,
                 chosen_by ? "unset %s, or add it there" : "for other programs too: apt install %s",
                 chosen_by ? chosen_by : words_of(c)->nvidia_package);
        doctor_bad(c, remedy, "NVIDIA's %s has no %s %s; %s", api_of(c)->nvidia, words_of(c)->name,
                   words_of(c)->file, note[0] ? note : own);
    }
}

static void find_nvidia_library(const struct check *c) {
    bool explained = c->row->api == GRT_BACKEND_VULKAN && doctor_graphics_withheld(c->facts);
    if (c->facts->nvidia_version[0] && !api_of(c)->nvidia[0] && !explained) {
        char remedy[128];
        snprintf(remedy, sizeof remedy, "apt install %s", words_of(c)->nvidia_package);
        doctor_bad(c, c->facts->container ? DOCTOR_NVIDIA_CONTAINER : remedy,
                   "NVIDIA's kernel driver %s is loaded, but its %s library is not here",
                   c->facts->nvidia_version, words_of(c)->name);
    }
}

// The probe says in these words that a driver crashed, hung or ended the process.
static bool failed_at_listing(const struct check *c) {
    return strstr(report_of(c)->problem, "while listing its devices") != NULL;
}

static void find_driver_failed(const struct check *c) {
    if (failed_at_listing(c)) {
        char files[384] = "";
        char remedy[512];
        for (uint32_t i = 0; i < api_of(c)->driver_count; i++) {
            if (api_of(c)->drivers[i].state == DOCTOR_DRIVER_OK) {
                doctor_append(files, sizeof files, " ", api_of(c)->drivers[i].file);
            }
        }
        snprintf(
            remedy, sizeof remedy,
            "find the culprit, one driver at a time: for f in %s; do %s=$f gpurt devices; done",
            files, words_of(c)->variable);
        doctor_bad(c, remedy, "%s: %s", words_of(c)->name, report_of(c)->problem);
    }
}

// Without a loader or a driver the problem is that, and said above.
static void find_other_problem(const struct check *c) {
    bool explained = !api_of(c)->loader[0] || (usable_drivers(c) == 0 && !api_of(c)->nvidia[0]);
    if (report_of(c)->problem[0] && !explained && !failed_at_listing(c)) {
        doctor_bad(c, "", "%s: %s", words_of(c)->name, report_of(c)->problem);
    }
}

// A driver without a device of its kind is no fault. PoCL's device is the CPU, but it has none where it
// cannot write its cache (seen with 3.1).
static void find_no_devices(const struct check *c) {
    if (doctor_was_listed(c->facts) && api_of(c)->loader[0] && usable_drivers(c) > 0 &&
        report_of(c)->device_count == 0 && !report_of(c)->problem[0]) {
        bool pocl = false;
        for (uint32_t i = 0; i < api_of(c)->driver_count; i++) {
            pocl = pocl || strstr(api_of(c)->drivers[i].library, "pocl");
        }
        doctor_bad(c, pocl ? "for PoCL: " CACHE_REMEDY " (it also keeps a cache)" : "",
                   "no %s device, although there are drivers", words_of(c)->name);
    }
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
        doctor_bad(c, CACHE_REMEDY, "no cache: neither XDG_CACHE_HOME nor HOME names a folder; %s",
                   cost);
    } else if (c->facts->cache_problem[0]) {
        doctor_bad(c, CACHE_REMEDY, "no cache: %s cannot be written (%s); %s", c->facts->cache_dir,
                   c->facts->cache_problem, cost);
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

// Rows of Vulkan and OpenCL: id, level, function.
#define API_ROWS(X)                                                                                \
    X("loader", WARNING, find_loader)                                                              \
    X("named-driver", ERROR, find_named)                                                           \
    X("drivers", WARNING, find_drivers)                                                            \
    X("broken-driver", WARNING, find_broken)                                                       \
    X("nvidia-file", NOTE, find_nvidia_file)                                                       \
    X("nvidia-library", WARNING, find_nvidia_library)                                              \
    X("driver-failed", ERROR, find_driver_failed)                                                  \
    X("problem", WARNING, find_other_problem)                                                      \
    X("no-devices", NOTE, find_no_devices)

static const struct row rows[] = {
#define X(id, level, find) {"vulkan-" id, "Vulkan", DOCTOR_##level, GRT_BACKEND_VULKAN, find},
    API_ROWS(X)
#undef X
#define X(id, level, find) {"opencl-" id, "OpenCL", DOCTOR_##level, GRT_BACKEND_OPENCL, find},
        API_ROWS(X)
#undef X
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
