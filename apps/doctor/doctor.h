// SPDX-License-Identifier: Apache-2.0
// `gpurt doctor`: what is there, what is missing, and what to do about it. Two halves:
//
//     system under a root folder, environment, user, device list
//         -> facts      doctor_facts.c, doctor_drivers.c: look and decide nothing
//         -> findings   doctor_findings.c, doctor_apis.c, doctor_gpus.c: decide, look at facts only
//
// so a test fakes a cause with files in a temporary folder and reads the sentence it leads to.
#ifndef APPS_DOCTOR_H
#define APPS_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpurt/gpurt.h"

#define DOCTOR_PATH 512
#define DOCTOR_MAX_DRIVERS 32
#define DOCTOR_MAX_GPUS 16
#define DOCTOR_MAX_NODES 32
#define DOCTOR_MAX_GROUPS 64
#define DOCTOR_MAX_FINDINGS 96

// ---- what the facts are gathered from ----

// The environment variables that are looked at; unset and empty are both NULL.
#define DOCTOR_ENV(X)                                                                              \
    X(driver_files, "VK_DRIVER_FILES")                                                             \
    X(icd_filenames, "VK_ICD_FILENAMES")                                                           \
    X(add_driver_files, "VK_ADD_DRIVER_FILES")                                                     \
    X(ocl_vendors, "OCL_ICD_VENDORS")                                                              \
    X(ocl_filenames, "OCL_ICD_FILENAMES")                                                          \
    X(ocl_vendor_path, "OPENCL_VENDOR_PATH")                                                       \
    X(ld_library_path, "LD_LIBRARY_PATH")                                                          \
    X(home, "HOME")                                                                                \
    X(cache_home, "XDG_CACHE_HOME")                                                                \
    X(config_home, "XDG_CONFIG_HOME")                                                              \
    X(config_dirs, "XDG_CONFIG_DIRS")                                                              \
    X(data_home, "XDG_DATA_HOME")                                                                  \
    X(data_dirs, "XDG_DATA_DIRS")                                                                  \
    X(nvidia_devices, "NVIDIA_VISIBLE_DEVICES")                                                    \
    X(nvidia_capabilities, "NVIDIA_DRIVER_CAPABILITIES")                                           \
    X(device, "GPURT_DEVICE")

struct doctor_env {
#define X(field, name) const char *field;
    DOCTOR_ENV(X)
#undef X
};

struct doctor_user {
    uid_t uid;
    gid_t gids[DOCTOR_MAX_GROUPS];
    uint32_t gid_count;
};

struct doctor_source {
    const char *root;    // before every absolute path; "" is this system
    const char *prefix;  // where gpurt is installed, its libraries in lib/; may be NULL
    struct doctor_env env;
    struct doctor_user user;
    const struct grt_dev_list *list;  // may be NULL
    bool coopmat;                     // grt_built_with_coopmat()
};

// ---- facts ----

#define DOCTOR_DRIVER_STATES(X)                                                                    \
    X(OK, "")                                                                                      \
    X(FOREIGN, "") /* for another processor: the loader passes over it */                          \
    X(NO_FILE, "does not exist")                                                                   \
    X(BAD_FILE, "names no library")                                                                \
    X(NO_LIBRARY, "names a library that is not there: ")

enum doctor_driver_state {
#define X(name, text) DOCTOR_DRIVER_##name,
    DOCTOR_DRIVER_STATES(X)
#undef X
};

// One driver as its loader finds it: a Vulkan manifest, an OpenCL vendor file, or a bare library.
struct doctor_driver {
    char file[DOCTOR_PATH];
    char library[DOCTOR_PATH];  // as the file names it
    const char *variable;       // the environment variable that names it, or NULL
    enum doctor_driver_state state;
};

// Vulkan or OpenCL.
struct doctor_api {
    char loader[DOCTOR_PATH];  // "" when not found
    char nvidia[DOCTOR_PATH];  // NVIDIA's library for this API, "" when not found
    bool knows_filenames;      // OpenCL: the loader heeds OCL_ICD_FILENAMES
    struct doctor_driver drivers[DOCTOR_MAX_DRIVERS];
    uint32_t driver_count;
};
#define DOCTOR_API_COUNT (GRT_BACKEND_OPENCL + 1)

// A GPU on the PCI bus.
struct doctor_gpu {
    char pci[16];
    uint32_t vendor;
    char kernel_driver[32];  // "" when none is bound
    char node[64];           // the device node it is opened by
};

// A device node and whether the user may open it.
struct doctor_node {
    char path[64];
    char group[32];  // "" when its number has no name here
    gid_t gid;
    bool group_may;  // the group may read and write
    bool denied;
};

struct doctor_facts {
    struct doctor_env env;
    const struct grt_dev_list *list;
    const struct grt_dev_info *chosen;  // what GPURT_DEVICE means, or NULL
    bool coopmat;
    struct doctor_api apis[DOCTOR_API_COUNT];
    struct doctor_gpu gpus[DOCTOR_MAX_GPUS];
    uint32_t gpu_count;
    struct doctor_node nodes[DOCTOR_MAX_NODES];
    uint32_t node_count;
    char nvidia_version[32];  // of the loaded kernel driver, or ""
    const char *container;    // what tells that this is a container, or NULL
    bool wsl;
    char cache_dir[DOCTOR_PATH];  // "" when no variable names one
    char cache_problem[128];      // why it cannot be written, or ""
};

void doctor_facts_gather(struct doctor_facts *facts, const struct doctor_source *source);
// The part of it that is Vulkan's and OpenCL's; `apis` is zero.
void doctor_drivers_gather(struct doctor_api *apis, const struct doctor_source *source);
// The node of that path, or NULL.
const struct doctor_node *doctor_facts_node(const struct doctor_facts *facts, const char *path);

// ---- findings ----

#define DOCTOR_LEVELS(X)                                                                           \
    X(OK, "ok")                                                                                    \
    X(NOTE, "note")                                                                                \
    X(WARNING, "warning")                                                                          \
    X(ERROR, "error")

enum doctor_level {
#define X(name, text) DOCTOR_##name,
    DOCTOR_LEVELS(X)
#undef X
        DOCTOR_LEVEL_COUNT,
};

struct doctor_finding {
    const char *id;
    const char *group;
    enum doctor_level level;
    char sentence[512];
    char remedy[512];  // "" when there is nothing to do
};

struct doctor_findings {
    uint32_t count;
    uint32_t counts[DOCTOR_LEVEL_COUNT];
    struct doctor_finding items[DOCTOR_MAX_FINDINGS];
};

// Findings of one group stand together.
void doctor_findings_make(struct doctor_findings *findings, const struct doctor_facts *facts);
const char *doctor_level_text(enum doctor_level level);

#endif
