// SPDX-License-Identifier: Apache-2.0
// Getting at OpenCL, and reading its errors.
//
// libOpenCL.so.1 is only a loader: it reads the files *.icd, each with the name of a driver's
// library in it, from a folder. It is opened at run time, from the system or else from the folder
// fallback/ beside gpurt itself, where a bundle keeps a copy.
//
// Containers often have the driver but not its .icd file. gcl_add_drivers() then makes a folder of
// its own that holds such a file beside links to the system's, and names it in OCL_ICD_VENDORS. Both
// loaders in use understand that; OCL_ICD_FILENAMES, the shorter way, is unknown to ocl-icd 2.3.1 of
// Debian 12. A loader reads its environment once, at the first call into it, so nothing here or in
// device.c may open the library before gcl_add_drivers() had its chance: list() runs in a child.
#include "opencl.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYSTEM_VENDORS "/etc/OpenCL/vendors"

// ---- the library ----

struct gcl_api gcl;

static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static char load_problem[256];

static void load(void) {
    // $ORIGIN is the folder of the library or program that this code is linked into.
    static const char *const paths[] = {"libOpenCL.so.1", "$ORIGIN/fallback/libOpenCL.so.1"};
    static const struct {
        const char *name;
        size_t offset;
    } functions[] = {
#define X(name) {#name, offsetof(struct gcl_api, name)},
        GCL_FUNCTIONS(X)
#undef X
    };
    void *library = NULL;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0] && !library; i++) {
        library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
    }
    if (!library) {
        snprintf(load_problem, sizeof load_problem,
                 "there is no OpenCL library libOpenCL.so.1; install one, such as the package "
                 "ocl-icd-libopencl1");
        return;
    }
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *symbol = dlsym(library, functions[i].name);
        if (!symbol) {
            snprintf(load_problem, sizeof load_problem,
                     "the OpenCL library has no function %s; gpurt needs OpenCL 1.2 or newer",
                     functions[i].name);
            dlclose(library);
            return;
        }
        memcpy((char *)&gcl + functions[i].offset, &symbol, sizeof symbol);
    }
}

bool gcl_load(char *problem) {
    pthread_once(&load_once, load);
    if (load_problem[0] != '\0') {
        snprintf(problem, 256, "%s", load_problem);
        return false;
    }
    return true;
}

// ---- drivers that the loader does not find ----

// Where drivers put their library. The vendor's file names it by a path or not, with a version or
// not: `stem` is what all spellings have in common.
static const struct {
    const char *vendor, *stem, *path;
} known_drivers[] = {
    {"nvidia", "libnvidia-opencl.so", "libnvidia-opencl.so.1"},
    {"amd", "libamdocl64.so", "libamdocl64.so"},
    {"amd", "libamdocl64.so", "/opt/rocm/lib/libamdocl64.so"},
    {"intel", "libigdrcl.so", "libigdrcl.so"},
    {"intel", "libigdrcl.so", "/usr/lib/x86_64-linux-gnu/intel-opencl/libigdrcl.so"},
};

static bool is_icd(const char *name) {
    size_t length = strlen(name);
    return length > 4 && strcmp(name + length - 4, ".icd") == 0;
}

// Does a vendor file of the system name this library?
static bool is_registered(const char *stem) {
    DIR *folder = opendir(SYSTEM_VENDORS);
    bool found = false;
    for (struct dirent *e = NULL; folder && !found && (e = readdir(folder)) != NULL;) {
        char path[512], text[512] = "";
        snprintf(path, sizeof path, "%s/%s", SYSTEM_VENDORS, e->d_name);
        FILE *file = is_icd(e->d_name) ? fopen(path, "r") : NULL;
        if (file) {
            found = fgets(text, sizeof text, file) && strstr(text, stem);
            fclose(file);
        }
    }
    if (folder) {
        closedir(folder);
    }
    return found;
}

// Writes folder/gpurt-VENDOR.icd. Renamed into place: another process may be reading it.
static bool write_icd(const char *folder, const char *vendor, const char *library) {
    char path[512], temporary[560];
    snprintf(path, sizeof path, "%s/gpurt-%s.icd", folder, vendor);
    snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    FILE *file = fopen(temporary, "w");
    if (!file) {
        return false;
    }
    bool ok = fprintf(file, "%s\n", library) > 0;
    ok = fclose(file) == 0 && ok;
    ok = ok && rename(temporary, path) == 0;
    if (!ok) {
        remove(temporary);
    }
    return ok;
}

// Links the system's vendor files into our folder, since OCL_ICD_VENDORS replaces theirs. A link
// that is there already, or whose target has gone since, does no harm: the loader skips it.
static void link_system_icds(const char *folder) {
    DIR *system = opendir(SYSTEM_VENDORS);
    for (struct dirent *e = NULL; system && (e = readdir(system)) != NULL;) {
        char from[512], to[1024];
        snprintf(from, sizeof from, "%s/%s", SYSTEM_VENDORS, e->d_name);
        snprintf(to, sizeof to, "%s/%s", folder, e->d_name);
        if (is_icd(e->d_name) && symlink(from, to) != 0) {
            continue;
        }
    }
    if (system) {
        closedir(system);
    }
}

bool gcl_add_drivers(char *note) {
    // Who set one of these chose the drivers; we do not add to his choice.
    if (getenv("OCL_ICD_VENDORS") || getenv("OCL_ICD_FILENAMES")) {
        return false;
    }
    const char *cache = grt_cache_dir(NULL);
    char folder[480] = "", added[160] = "";
    if (cache) {
        int length = snprintf(folder, sizeof folder, "%s/opencl-vendors", cache);
        if (length >= (int)sizeof folder) {
            folder[0] = '\0';
        } else {
            mkdir(folder, 0700);  // where it fails, so does write_icd()
        }
    }
    size_t used = 0;
    for (size_t i = 0; i < sizeof known_drivers / sizeof known_drivers[0]; i++) {
        const char *library = known_drivers[i].path;
        if (strstr(added, known_drivers[i].stem) || is_registered(known_drivers[i].stem)) {
            continue;
        }
        // Left open: the loader opens it again, and drivers do not like to be unloaded.
        if (!dlopen(library, RTLD_LAZY | RTLD_LOCAL)) {
            continue;
        }
        if (folder[0] != '\0' && !write_icd(folder, known_drivers[i].vendor, library)) {
            folder[0] = '\0';
        }
        used +=
            (size_t)snprintf(added + used, sizeof added - used, "%s%s", used ? ":" : "", library);
        if (used >= sizeof added) {
            return false;
        }
    }
    if (used == 0) {
        return false;
    }
    bool ok;
    if (folder[0] != '\0') {
        link_system_icds(folder);
        ok = setenv("OCL_ICD_VENDORS", folder, 1) == 0;
    } else {
        // Nowhere to write: at least the Khronos loader can be told.
        ok = setenv("OCL_ICD_FILENAMES", added, 1) == 0;
    }
    snprintf(note, 256, "made the OpenCL driver %s known to this process; no file in %s names it",
             added, SYSTEM_VENDORS);
    return ok;
}

// ---- errors ----

#define GCL_ERRORS(X)                                                                              \
    X(CL_SUCCESS)                                                                                  \
    X(CL_DEVICE_NOT_FOUND)                                                                         \
    X(CL_DEVICE_NOT_AVAILABLE)                                                                     \
    X(CL_COMPILER_NOT_AVAILABLE)                                                                   \
    X(CL_MEM_OBJECT_ALLOCATION_FAILURE)                                                            \
    X(CL_OUT_OF_RESOURCES)                                                                         \
    X(CL_OUT_OF_HOST_MEMORY)                                                                       \
    X(CL_PROFILING_INFO_NOT_AVAILABLE)                                                             \
    X(CL_MEM_COPY_OVERLAP)                                                                         \
    X(CL_BUILD_PROGRAM_FAILURE)                                                                    \
    X(CL_MAP_FAILURE)                                                                              \
    X(CL_MISALIGNED_SUB_BUFFER_OFFSET)                                                             \
    X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)                                                \
    X(CL_INVALID_VALUE)                                                                            \
    X(CL_INVALID_DEVICE_TYPE)                                                                      \
    X(CL_INVALID_PLATFORM)                                                                         \
    X(CL_INVALID_DEVICE)                                                                           \
    X(CL_INVALID_CONTEXT)                                                                          \
    X(CL_INVALID_QUEUE_PROPERTIES)                                                                 \
    X(CL_INVALID_COMMAND_QUEUE)                                                                    \
    X(CL_INVALID_HOST_PTR)                                                                         \
    X(CL_INVALID_MEM_OBJECT)                                                                       \
    X(CL_INVALID_BINARY)                                                                           \
    X(CL_INVALID_BUILD_OPTIONS)                                                                    \
    X(CL_INVALID_PROGRAM)                                                                          \
    X(CL_INVALID_PROGRAM_EXECUTABLE)                                                               \
    X(CL_INVALID_KERNEL_NAME)                                                                      \
    X(CL_INVALID_KERNEL_DEFINITION)                                                                \
    X(CL_INVALID_KERNEL)                                                                           \
    X(CL_INVALID_ARG_INDEX)                                                                        \
    X(CL_INVALID_ARG_VALUE)                                                                        \
    X(CL_INVALID_ARG_SIZE)                                                                         \
    X(CL_INVALID_KERNEL_ARGS)                                                                      \
    X(CL_INVALID_WORK_DIMENSION)                                                                   \
    X(CL_INVALID_WORK_GROUP_SIZE)                                                                  \
    X(CL_INVALID_WORK_ITEM_SIZE)                                                                   \
    X(CL_INVALID_EVENT)                                                                            \
    X(CL_INVALID_OPERATION)                                                                        \
    X(CL_INVALID_BUFFER_SIZE)                                                                      \
    X(CL_INVALID_GLOBAL_WORK_SIZE)                                                                 \
    X(CL_PLATFORM_NOT_FOUND_KHR)                                                                   \
    X(NVIDIA_ILLEGAL_READ_OR_WRITE)

// What NVIDIA's driver returns after a kernel left its buffers; it has no official name.
#define NVIDIA_ILLEGAL_READ_OR_WRITE (-9999)

const char *gcl_error_name(cl_int code) {
    switch (code) {
#define X(name)                                                                                    \
    case name:                                                                                     \
        return #name;
        GCL_ERRORS(X)
#undef X
    default:
        return "unknown OpenCL error";
    }
}

enum grt_status gcl_status(cl_int code, bool running) {
    switch (code) {
    case CL_SUCCESS:
        return GRT_OK;
    case CL_OUT_OF_RESOURCES:
        return running ? GRT_LOST : GRT_NO_MEMORY;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE:
    case CL_MAP_FAILURE:
        return GRT_NO_MEMORY;
    case CL_DEVICE_NOT_AVAILABLE:
    case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST:
    case CL_INVALID_COMMAND_QUEUE:
    case CL_INVALID_CONTEXT:
    case NVIDIA_ILLEGAL_READ_OR_WRITE:
        return GRT_LOST;
    case CL_DEVICE_NOT_FOUND:
    case CL_PLATFORM_NOT_FOUND_KHR:
        return GRT_NO_DEVICE;
    case CL_BUILD_PROGRAM_FAILURE:
    case CL_INVALID_BINARY:
    case CL_INVALID_BUILD_OPTIONS:
    case CL_INVALID_KERNEL_NAME:
        return GRT_COMPILE;
    default:
        return GRT_UNSUPPORTED;
    }
}

bool gcl_fail(struct gcl_dev *dev, enum grt_status status, cl_int code, const char *format, ...) {
    char sentence[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    if (dev && status == GRT_LOST && dev->base.status == GRT_OK) {
        dev->base.status = GRT_LOST;
    }
    return grt_fail(status, "%s: %s (%d)%s", sentence, gcl_error_name(code), (int)code,
                    status == GRT_LOST ? "; the device must be opened again" : "");
}

void gcl_check_release(cl_int code, const char *what) {
    if (code != CL_SUCCESS) {
        grt_log(GRT_LOG_DEBUG, "OpenCL did not release a %s: %s (%d)", what, gcl_error_name(code),
                (int)code);
    }
}
