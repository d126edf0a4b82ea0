// SPDX-License-Identifier: Apache-2.0
// Inside the findings half of gpurt doctor: what its files share.
#ifndef APPS_DOCTOR_FINDINGS_H
#define APPS_DOCTOR_FINDINGS_H

#include "doctor.h"

struct check;

struct row {
    const char *id;
    const char *group;
    enum doctor_level level;  // of what doctor_bad() says
    enum grt_backend_id api;  // rows of Vulkan and OpenCL only
    // Called once. Says as many findings as there are, none where the row does not apply.
    void (*find)(const struct check *c);
};

// A row at work.
struct check {
    const struct doctor_facts *facts;
    const struct row *row;
    struct doctor_findings *out;
};

void doctor_good(const struct check *c, const char *format, ...) GRT_PRINTF(2, 3);
void doctor_bad(const struct check *c, const char *remedy, const char *format, ...)
    GRT_PRINTF(3, 4);
// Adds an item to a list in words; what does not fit is cut off.
void doctor_append(char *text, size_t capacity, const char *separator, const char *item);

struct api_words {
    const char *name;
    const char *loader;
    const char *loader_package;
    const char *file;      // what tells the loader about a driver
    const char *places;    // where those files lie
    const char *packages;  // Debian's drivers
    const char *nvidia_package;
    const char *try_one;  // shell: lists the devices of the driver file $f alone
};
extern const struct api_words doctor_api_words[DOCTOR_API_COUNT];

#define DOCTOR_NVIDIA_CONTAINER                                                                    \
    "start the container with --gpus all -e NVIDIA_DRIVER_CAPABILITIES=all"

// Whether devices were listed at all; they are not for a system under another root.
bool doctor_was_listed(const struct doctor_facts *facts);
// Whether the container engine kept NVIDIA's graphics libraries, Vulkan among them, outside.
bool doctor_graphics_withheld(const struct doctor_facts *facts);

#define DOCTOR_CACHE_REMEDY "set XDG_CACHE_HOME to a folder that can be written"

// ---- rows: id, level, function ----

// doctor_apis.c, once for Vulkan and once for OpenCL
#define DOCTOR_API_ROWS(X)                                                                         \
    X("loader", WARNING, doctor_find_loader)                                                       \
    X("named-driver", ERROR, doctor_find_named)                                                    \
    X("drivers", WARNING, doctor_find_drivers)                                                     \
    X("broken-driver", WARNING, doctor_find_broken)                                                \
    X("nvidia-file", NOTE, doctor_find_nvidia_file)                                                \
    X("nvidia-library", WARNING, doctor_find_nvidia_library)                                       \
    X("driver-failed", ERROR, doctor_find_driver_failed)                                           \
    X("problem", WARNING, doctor_find_other_problem)                                               \
    X("no-devices", NOTE, doctor_find_no_devices)

// doctor_gpus.c

#define DOCTOR_GPU_ROWS(X)                                                                         \
    X("gpu-unused", ERROR, doctor_find_gpu_unused)                                                 \
    X("gpu-idle", WARNING, doctor_find_gpu_idle)                                                   \
    X("gpu-apis", NOTE, doctor_find_gpu_apis)                                                      \
    X("node-denied", ERROR, doctor_find_node_denied)                                               \
    X("node-missing", ERROR, doctor_find_node_missing)                                             \
    X("software-only", NOTE, doctor_find_software_only)

#define DOCTOR_SYSTEM_ROWS(X)                                                                      \
    X("container-graphics", WARNING, doctor_find_container_graphics)                               \
    X("container-nodes", WARNING, doctor_find_container_nodes)                                     \
    X("wsl-gpu", WARNING, doctor_find_wsl_gpu)                                                     \
    X("wsl-vulkan", WARNING, doctor_find_wsl_vulkan)                                               \
    X("wsl-opencl", NOTE, doctor_find_wsl_opencl)

#define X(id, level, find) void find(const struct check *c);
DOCTOR_API_ROWS(X)
DOCTOR_GPU_ROWS(X)
DOCTOR_SYSTEM_ROWS(X)
#undef X
void doctor_find_filenames(const struct check *c);  // OpenCL only

#endif
