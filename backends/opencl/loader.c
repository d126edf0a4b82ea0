// SPDX-License-Identifier: Apache-2.0
// Getting at OpenCL.
//
// libOpenCL.so.1 is only a loader: it reads the files *.icd, each with the name of a driver's
// library in it, from a folder. It is opened at run time, from the system or else from the folder
// fallback/ beside gpurt itself, where a bundle keeps a copy.
//
// A loader loads all drivers into the process, and one that crashes takes the others along. What
// the probe found to do so is left out by a folder of links to the others' files.
//
// Containers often have the driver but not its .icd file. gcl_add_drivers() then makes a folder of
// its own that holds such a file beside links to the system's, and names it in OCL_ICD_VENDORS.
// Both loaders in use understand that; OCL_ICD_FILENAMES, the shorter way, is unknown to ocl-icd
// 2.3.1 of Debian 12. A loader reads its environment once, at the first call into it, so nothing
// here or in device.c may open the library before gcl_add_drivers() had its chance: list() runs in
// a child.
#include "opencl.h"

#include <dirent.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/library.h"
#include "base/log.h"
#include "base/whole_file.h"

#define SYSTEM_VENDORS "/etc/OpenCL/vendors"
#define OWN_VENDORS "/opencl-vendors"  // of the cache

// ---- the library ----

struct gcl_api gcl;

static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static char load_problem[256];

// PoCL 3.1 has no devices where it cannot write its cache (a read-only HOME, say): it gets a folder
// to write to, for this process. Who names one himself keeps it.
static void give_pocl_a_cache(void) {
    char folder[512], path[520];
    if (!getenv("POCL_CACHE_DIR") && !grt_cache_dir(NULL) &&
        grt_cache_temp_dir(folder, sizeof folder)) {
        snprintf(path, sizeof path, "%s/pocl", folder);
        setenv("POCL_CACHE_DIR", path, 0);
    }
}

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
    give_pocl_a_cache();
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
    void *timer = dlsym(library, "clGetDeviceAndHostTimer");
    memcpy(&gcl.clGetDeviceAndHostTimer, &timer, sizeof timer);
}

bool gcl_load(char *problem) {
    pthread_once(&load_once, load);
    if (load_problem[0] != '\0') {
        snprintf(problem, 256, "%s", load_problem);
        return false;
    }
    return true;
}

// ---- drivers that are left out ----

static bool is_icd(const char *name) {
    size_t length = strlen(name);
    return length > 4 && strcmp(name + length - 4, ".icd") == 0;
}

// Only folders: what else ocl-icd understands by OCL_ICD_VENDORS names one driver, and there is
// nothing to choose from.
bool gcl_driver(uint32_t i, char *file) {
    const char *chosen = getenv("OCL_ICD_VENDORS");
    const char *path = chosen && chosen[0] ? chosen : SYSTEM_VENDORS;
    const char *slash = path[strlen(path) - 1] == '/' ? "" : "/";
    DIR *folder = opendir(path);
    bool found = false;
    for (struct dirent *e = NULL; folder && !found && (e = readdir(folder)) != NULL;) {
        if (is_icd(e->d_name)) {
            found = i == 0;
            i -= found ? 0 : 1;
        }
        if (found) {
            found = snprintf(file, 256, "%s%s%s", path, slash, e->d_name) < 256;
        }
    }
    if (folder) {
        closedir(folder);
    }
    return found;
}

// A folder of links to the vendor files that stay, named after them: two processes that keep the
// same ones make the same folder.
bool gcl_keep_drivers(uint32_t keep) {
    char base[480], folder[512], file[256], link[800];
    const char *cache = grt_cache_dir(NULL);
    uint64_t name = 0;
    if (cache && strlen(cache) < sizeof base) {
        memcpy(base, cache, strlen(cache) + 1);
    } else if (!grt_cache_temp_dir(base, sizeof base)) {
        return false;
    }
    for (uint32_t i = 0; i < 32 && gcl_driver(i, file); i++) {
        name = keep >> i & 1 ? grt_digest(file, strlen(file) + 1, name) : name;
    }
    int length = snprintf(folder, sizeof folder, "%s/opencl-kept-%016" PRIx64 "/", base, name);
    if (length < 0 || (size_t)length >= sizeof folder) {
        return false;
    }
    mkdir(folder, 0700);  // where it fails, so do the links
    for (uint32_t i = 0; i < 32 && gcl_driver(i, file); i++) {
        char *whole = keep >> i & 1 ? realpath(file, NULL) : NULL;
        if (whole) {
            snprintf(link, sizeof link, "%s%s", folder, strrchr(file, '/') + 1);
            bool linked = symlink(whole, link) == 0 || access(link, R_OK) == 0;
            free(whole);
            if (!linked) {
                return false;
            }
        }
    }
    return setenv("OCL_ICD_VENDORS", folder, 1) == 0;
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

// Writes folder/gpurt-VENDOR.icd.
static bool write_icd(const char *folder, const char *vendor, const char *library, bool *anew) {
    char path[512], text[512];
    int length = snprintf(path, sizeof path, "%s/gpurt-%s.icd", folder, vendor);
    int text_length = snprintf(text, sizeof text, "%s\n", library);
    if ((size_t)length >= sizeof path || (size_t)text_length >= sizeof text) {
        return false;
    }
    *anew = *anew || access(path, F_OK) != 0;
    mkdir(folder, 0700);            // where it fails, so does the writing
    bool before = grt_quiet(true);  // there are other places to try
    bool saved = grt_whole_file_save(path, text, (uint64_t)text_length);
    grt_quiet(before);
    return saved;
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

// Who set one of these chose the drivers; we do not add to his choice. Our own folder is no choice:
// a process that gpurt started has it from there.
static bool is_chosen(void) {
    const char *folder = getenv("OCL_ICD_VENDORS");
    size_t length = folder ? strlen(folder) : 0, own = strlen(OWN_VENDORS "/");
    bool ours = length >= own && strcmp(folder + length - own, OWN_VENDORS "/") == 0;
    return (folder && !ours) || getenv("OCL_ICD_FILENAMES");
}

bool gcl_add_drivers(char *note, bool *anew) {
    if (is_chosen()) {
        return false;
    }
    bool written = false;
    const char *cache = grt_cache_dir(NULL);
    char folder[480] = "", added[160] = "";
    if (cache) {
        int length = snprintf(folder, sizeof folder, "%s" OWN_VENDORS, cache);
        if (length >= (int)sizeof folder) {
            folder[0] = '\0';
        }
    }
    size_t used = 0;
    for (size_t i = 0; i < sizeof known_drivers / sizeof known_drivers[0]; i++) {
        const char *library = known_drivers[i].path;
        if (strstr(added, known_drivers[i].stem) || is_registered(known_drivers[i].stem)) {
            continue;
        }
        // Left open: the loader opens it again, and drivers do not like to be unloaded.
        if (!grt_probe_library(library, note) || !dlopen(library, RTLD_LAZY | RTLD_LOCAL)) {
            continue;
        }
        if (folder[0] != '\0' && !write_icd(folder, known_drivers[i].vendor, library, &written)) {
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
        *anew = written;
        // With a slash: the loader of CUDA 13 puts folder and file name together as they are.
        char with_slash[sizeof folder + 1];
        snprintf(with_slash, sizeof with_slash, "%s/", folder);
        ok = setenv("OCL_ICD_VENDORS", with_slash, 1) == 0;
    } else {
        // Nowhere to write: at least the Khronos loader can be told.
        ok = setenv("OCL_ICD_FILENAMES", added, 1) == 0;
    }
    snprintf(note, 256, "made the OpenCL driver %s known to this process; no file in %s names it",
             added, SYSTEM_VENDORS);
    return ok;
}
