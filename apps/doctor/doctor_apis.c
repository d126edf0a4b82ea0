// SPDX-License-Identifier: Apache-2.0
// Findings about loaders and drivers. Vulkan and OpenCL are alike in this: a loader, small files
// that name drivers, variables that choose among them. So each function serves both, and the words
// that differ are in a table.
#include "doctor_findings.h"

#include <stdio.h>
#include <string.h>

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
            .try_one = "VK_ICD_FILENAMES=$f gpurt devices",
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
            .try_one = "d=$(mktemp -d); cp $f $d; OCL_ICD_VENDORS=$d/ gpurt devices",
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
void doctor_find_loader(const struct check *c) {
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
void doctor_find_named(const struct check *c) {
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

void doctor_find_drivers(const struct check *c) {
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

#define REINSTALL "reinstall the package it belongs to (dpkg -S %s tells which), or remove it"

void doctor_find_broken(const struct check *c) {
    for (uint32_t i = 0; i < api_of(c)->driver_count; i++) {
        const struct doctor_driver *driver = &api_of(c)->drivers[i];
        if (!driver->variable && is_broken(driver)) {
            char remedy[2 * DOCTOR_PATH];
            snprintf(remedy, sizeof remedy, REINSTALL, driver->file);
            doctor_bad(c, remedy, "%s %s%s", driver->file, state_texts[driver->state],
                       driver->library);
        }
    }
}

// NVIDIA's driver is installed but nothing tells the loader. gpurt then tells it, unless the user
// has chosen the drivers.
void doctor_find_nvidia_file(const struct check *c) {
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

void doctor_find_nvidia_library(const struct check *c) {
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

// It names the file of a driver that it could leave out: "left out /v/x.icd: the driver ...".
static bool is_named(const char *problem, const char *file) {
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash : file;
    const char *at = strstr(problem, name);
    return at && at[strlen(name)] == ':';
}

void doctor_find_driver_failed(const struct check *c) {
    if (failed_at_listing(c)) {
        char files[384] = "", culprits[384] = "";
        char remedy[512];
        for (uint32_t i = 0; i < api_of(c)->driver_count; i++) {
            const struct doctor_driver *driver = &api_of(c)->drivers[i];
            if (driver->state == DOCTOR_DRIVER_OK) {
                doctor_append(files, sizeof files, " ", driver->file);
            }
            if (is_named(report_of(c)->problem, driver->file)) {
                doctor_append(culprits, sizeof culprits, " ", driver->file);
            }
        }
        if (culprits[0]) {
            snprintf(remedy, sizeof remedy, REINSTALL, culprits);
        } else {
            snprintf(remedy, sizeof remedy,
                     "find the culprit, one driver at a time: for f in %s; do %s; done", files,
                     words_of(c)->try_one);
        }
        doctor_bad(c, remedy, "%s: %s", words_of(c)->name, report_of(c)->problem);
    }
}

// Without a loader or a driver the problem is that, and said above. The Khronos loader joins the
// folder and a file's name without a slash between them (seen with the one of CUDA 13.0).
void doctor_find_other_problem(const struct check *c) {
    const char *folder = c->row->api == GRT_BACKEND_OPENCL ? c->facts->env.ocl_vendors : NULL;
    bool slash = !folder || folder[strlen(folder) - 1] == '/';
    bool explained = !api_of(c)->loader[0] || (usable_drivers(c) == 0 && !api_of(c)->nvidia[0]);
    if (report_of(c)->problem[0] && !explained && !failed_at_listing(c)) {
        doctor_bad(c, slash ? "" : "end OCL_ICD_VENDORS with a slash: some loaders need it",
                   "%s: %s", words_of(c)->name, report_of(c)->problem);
    }
}

// A driver without a device of its kind is no fault. PoCL's device is the CPU, but it has none
// where it cannot write its cache (seen with 3.1).
void doctor_find_no_devices(const struct check *c) {
    if (doctor_was_listed(c->facts) && api_of(c)->loader[0] && usable_drivers(c) > 0 &&
        report_of(c)->device_count == 0 && !report_of(c)->problem[0]) {
        bool pocl = false;
        for (uint32_t i = 0; i < api_of(c)->driver_count; i++) {
            pocl = pocl || strstr(api_of(c)->drivers[i].library, "pocl");
        }
        doctor_bad(c, pocl ? "for PoCL: " DOCTOR_CACHE_REMEDY " (it also keeps a cache)" : "",
                   "no %s device, although there are drivers", words_of(c)->name);
    }
}

// Khronos' loader knows the variable, ocl-icd does not; and gpurt adds no drivers where it is set.
void doctor_find_filenames(const struct check *c) {
    if (c->facts->env.ocl_filenames && api_of(c)->loader[0] && !api_of(c)->knows_filenames) {
        doctor_bad(c, "unset it: gpurt then finds the drivers itself",
                   "OCL_ICD_FILENAMES is set, but %s does not know it", api_of(c)->loader);
    }
}
