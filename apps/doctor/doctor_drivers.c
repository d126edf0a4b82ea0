// SPDX-License-Identifier: Apache-2.0
// Loaders and drivers of Vulkan and OpenCL, found as their loaders find them: through environment
// variables first, then in a fixed list of folders, each driver being a small file that names a
// library. No driver is loaded: listing the devices has done that, in a child process.
#include "doctor.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "doctor_files.h"

struct gather {
    struct doctor_api *apis;
    const struct doctor_env *env;
    struct doctor_search search;
};

// The new entry, or NULL when there is nothing to add.
static struct doctor_driver *add_driver(struct doctor_api *api, const char *file,
                                        const char *variable) {
    // A folder may be listed twice; the loaders take its files once.
    for (uint32_t i = 0; i < api->driver_count; i++) {
        if (strcmp(api->drivers[i].file, file) == 0) {
            return NULL;
        }
    }
    if (api->driver_count == DOCTOR_MAX_DRIVERS) {
        return NULL;
    }
    struct doctor_driver *driver = &api->drivers[api->driver_count++];
    snprintf(driver->file, sizeof driver->file, "%s", file);
    driver->variable = variable;
    return driver;
}

// Fills the library a driver file names and what became of it.
static void add_library(struct gather *g, struct doctor_driver *driver, const char *name) {
    static const enum doctor_driver_state states[] = {
        [DOCTOR_LIBRARY_MISSING] = DOCTOR_DRIVER_NO_LIBRARY,
        [DOCTOR_LIBRARY_FOREIGN] = DOCTOR_DRIVER_FOREIGN,
        [DOCTOR_LIBRARY_FOUND] = DOCTOR_DRIVER_OK,
    };
    char path[DOCTOR_PATH];
    snprintf(driver->library, sizeof driver->library, "%.511s", name);
    driver->state = states[doctor_search_library(&g->search, name, path)];
}

// A reader of one driver file. The file exists.
typedef void read_driver_fn(struct gather *g, struct doctor_driver *driver);

static void read_manifest(struct gather *g, struct doctor_driver *driver) {
    char full[DOCTOR_PATH];
    doctor_full_path(full, g->search.root, driver->file);
    json_t *manifest = json_load_file(full, 0, NULL);
    const char *name =
        json_string_value(json_object_get(json_object_get(manifest, "ICD"), "library_path"));
    driver->state = DOCTOR_DRIVER_BAD_FILE;
    if (name && strchr(name, '/') && name[0] != '/') {
        // Relative to the manifest's folder.
        const char *slash = strrchr(driver->file, '/');
        int folder = slash ? (int)(slash - driver->file) + 1 : 0;
        char path[2 * DOCTOR_PATH];
        snprintf(path, sizeof path, "%.*s%.511s", folder, driver->file, name);
        add_library(g, driver, path);
    } else if (name && name[0]) {
        add_library(g, driver, name);
    }
    json_decref(manifest);
}

static void read_vendor_file(struct gather *g, struct doctor_driver *driver) {
    char name[DOCTOR_PATH];
    driver->state = DOCTOR_DRIVER_BAD_FILE;
    if (doctor_read_text(g->search.root, driver->file, name, sizeof name)) {
        name[strcspn(name, "\r\n")] = '\0';
        add_library(g, driver, name);
    }
}

static void read_bare_library(struct gather *g, struct doctor_driver *driver) {
    add_library(g, driver, driver->file);
    if (driver->state == DOCTOR_DRIVER_NO_LIBRARY) {
        driver->state = DOCTOR_DRIVER_NO_FILE;
        driver->library[0] = '\0';
    }
}

// Every driver file of a folder; a folder that is not there has none.
static void add_folder(struct gather *g, struct doctor_api *api, const char *folder,
                       const char *ending, read_driver_fn *read, const char *variable) {
    char pattern[DOCTOR_PATH + 80];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*%s", folder, ending);
    size_t count = doctor_matches(g->search.root, pattern, &found);
    for (size_t i = 0; i < count; i++) {
        struct doctor_driver *driver =
            add_driver(api, doctor_match(g->search.root, &found, i), variable);
        if (driver) {
            read(g, driver);
        }
    }
    globfree(&found);
}

// The driver files and folders that a variable lists.
static void add_named(struct gather *g, struct doctor_api *api, const char *list,
                      const char *ending, read_driver_fn *read, const char *variable) {
    char item[DOCTOR_PATH];
    while (doctor_next_part(&list, item)) {
        if (doctor_is_folder(g->search.root, item)) {
            add_folder(g, api, item, ending, read, variable);
            continue;
        }
        struct doctor_driver *driver = add_driver(api, item, variable);
        if (driver && (read == read_bare_library || doctor_exists(g->search.root, item))) {
            read(g, driver);
        } else if (driver) {
            driver->state = DOCTOR_DRIVER_NO_FILE;
        }
    }
}

static void add_manifest_folders(struct gather *g, const char *list, const char *home_part) {
    char base[DOCTOR_PATH];
    while (doctor_next_part(&list, base)) {
        char folder[DOCTOR_PATH + 64];
        snprintf(folder, sizeof folder, "%s%s/vulkan/icd.d", base, home_part);
        add_folder(g, &g->apis[GRT_BACKEND_VULKAN], folder, ".json", read_manifest, NULL);
    }
}

// In the order of the Vulkan loader; a variable that names drivers replaces every folder.
static void gather_manifests(struct gather *g) {
    const struct doctor_env *env = g->env;
    struct doctor_api *api = &g->apis[GRT_BACKEND_VULKAN];
    add_named(g, api, env->add_driver_files, ".json", read_manifest, "VK_ADD_DRIVER_FILES");
    if (env->driver_files) {
        add_named(g, api, env->driver_files, ".json", read_manifest, "VK_DRIVER_FILES");
    } else if (env->icd_filenames) {
        add_named(g, api, env->icd_filenames, ".json", read_manifest, "VK_ICD_FILENAMES");
    } else {
        add_manifest_folders(g, env->config_home ? env->config_home : env->home,
                             env->config_home ? "" : "/.config");
        add_manifest_folders(g, env->config_dirs ? env->config_dirs : "/etc/xdg", "");
        add_manifest_folders(g, "/etc", "");
        add_manifest_folders(g, env->data_home ? env->data_home : env->home,
                             env->data_home ? "" : "/.local/share");
        add_manifest_folders(g, env->data_dirs ? env->data_dirs : "/usr/local/share:/usr/share",
                             "");
    }
}

// OCL_ICD_VENDORS is a folder, a vendor file or a library; a vendor file without a slash lies in
// the usual folder.
static void gather_vendors(struct gather *g) {
    const struct doctor_env *env = g->env;
    struct doctor_api *api = &g->apis[GRT_BACKEND_OPENCL];
    const char *folder = env->ocl_vendor_path ? env->ocl_vendor_path : "/etc/OpenCL/vendors";
    const char *named = env->ocl_vendors;
    size_t length = named ? strlen(named) : 0;
    if (!named) {
        add_folder(g, api, folder, ".icd", read_vendor_file, NULL);
    } else if (length > 4 && strcmp(named + length - 4, ".icd") == 0) {
        char path[2 * DOCTOR_PATH];
        bool bare = !strchr(named, '/');
        snprintf(path, sizeof path, "%.500s%s%.500s", bare ? folder : "", bare ? "/" : "", named);
        add_named(g, api, path, ".icd", read_vendor_file, "OCL_ICD_VENDORS");
    } else {
        bool is_folder = doctor_is_folder(g->search.root, named);
        add_named(g, api, named, ".icd", is_folder ? read_vendor_file : read_bare_library,
                  "OCL_ICD_VENDORS");
    }
    api->knows_filenames = doctor_contains(g->search.root, api->loader, "OCL_ICD_FILENAMES");
    if (api->knows_filenames) {
        add_named(g, api, env->ocl_filenames, "", read_bare_library, "OCL_ICD_FILENAMES");
    }
}

static void gather_libraries(struct gather *g) {
    struct doctor_api *apis = g->apis;
    struct {
        const char *name;
        char *path;
    } wanted[] = {
        {"libvulkan.so.1", apis[GRT_BACKEND_VULKAN].loader},
        {"libEGL_nvidia.so.0", apis[GRT_BACKEND_VULKAN].nvidia},
        {"libGLX_nvidia.so.0", apis[GRT_BACKEND_VULKAN].nvidia},
        {"libOpenCL.so.1", apis[GRT_BACKEND_OPENCL].loader},
        {"libnvidia-opencl.so.1", apis[GRT_BACKEND_OPENCL].nvidia},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        if (!wanted[i].path[0]) {
            doctor_search_library(&g->search, wanted[i].name, wanted[i].path);
        }
    }
}

void doctor_drivers_gather(struct doctor_api *apis, const struct doctor_source *source) {
    struct gather g = {.apis = apis, .env = &source->env};
    doctor_search_init(&g.search, source);
    gather_libraries(&g);
    gather_manifests(&g);
    gather_vendors(&g);
}
