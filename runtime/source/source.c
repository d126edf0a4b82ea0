// SPDX-License-Identifier: Apache-2.0
#include "source.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "base/log.h"
#include "base/whole_file.h"
#include "compile.h"
#include "describe.h"
#include "preprocess.h"
#include "shaders/embedded.h"

#define MAX_SOURCE ((uint64_t)4 << 20)
#define MAX_PATH 4096
#define SELF "gpurt:source"  // what the root of a unit calls the user's source

struct unit {
    struct grt_described described;  // first: an info of it is a unit
    struct grt_source_unit desc;
    char *opencl;
    uint32_t *spirv;
    void *object;
};

struct file_name {
    struct file_name *next;
    char text[];
};

struct grt_source {
    atomic_uint refs;
    pthread_mutex_t lock;  // over readings, which are made late
    char *file, *text;
    bool on_disk;
    struct file_name *names;  // of files that it includes
    struct unit *units;
    uint32_t count;
};

// ---- files ----

static bool is_embedded(const char *file) {
    uint32_t i = 0;
    while (grt_embedded[i].path && grt_embedded[i].path != file) {
        i++;
    }
    return grt_embedded[i].path != NULL;
}

static bool open_embedded(const char *folder, size_t length, const char *name,
                          struct grt_pp_file *file) {
    for (uint32_t i = 0; grt_embedded[i].path; i++) {
        const char *path = grt_embedded[i].path;
        if (strncmp(path, folder, length) == 0 && strcmp(path + length, name) == 0) {
            file->name = path;
            file->text = strdup(grt_embedded[i].text);
            return file->text != NULL;
        }
    }
    return false;
}

static bool open_beside(struct grt_source *source, const char *from, const char *name,
                        struct grt_pp_file *file) {
    const char *slash = strrchr(from, '/');
    size_t folder = slash && name[0] != '/' ? (size_t)(slash - from) + 1 : 0;
    struct file_name *path = malloc(sizeof *path + folder + strlen(name) + 1);
    if (!path) {
        return false;
    }
    memcpy(path->text, from, folder);
    memcpy(path->text + folder, name, strlen(name) + 1);
    bool before = grt_quiet(true);
    uint64_t size = 0;
    file->text = grt_whole_file_read(path->text, MAX_SOURCE, &size);
    grt_quiet(before);
    if (!file->text) {
        free(path);
        return false;
    }
    path->next = source->names;
    source->names = path;
    file->name = path->text;
    return true;
}

// Beside the file that includes it, then among gpurt's own.
static bool open_file(void *context, const char *from, const char *name, struct grt_pp_file *file) {
    struct grt_source *source = context;
    if (strcmp(name, SELF) == 0) {
        file->name = source->file;
        file->text = strdup(source->text);
        return file->text != NULL;
    }
    bool own = is_embedded(from);
    const char *slash = own ? strrchr(from, '/') : NULL;
    if (own && open_embedded(from, (size_t)(slash - from) + 1, name, file)) {
        return true;
    }
    if (!own && source->on_disk && strcmp(from, "gpurt") != 0 &&
        open_beside(source, from, name, file)) {
        return true;
    }
    return open_embedded("shaders/", 8, name, file) || open_embedded("cl/", 3, name, file) ||
           open_embedded("", 0, name, file);
}

// ---- readings ----

static char *read_as(struct grt_source *source, const char *prelude, const char *before,
                     const char *behind) {
    char root[1024];
    snprintf(root, sizeof root, "%s%s%s%s#include \"" SELF "\"\n%s%s%s", prelude,
             before ? "#include \"" : "", before ? before : "", before ? "\"\n" : "",
             behind ? "#include \"" : "", behind ? behind : "", behind ? "\"\n" : "");
    return grt_preprocess("gpurt", root, open_file, source);
}

char *grt_source_describe(struct grt_source *source, const char *behind) {
    return read_as(source, "#include \"shaders/describe.h\"\n", NULL, behind);
}

static bool describe(struct grt_source *source, struct unit *unit) {
    char *text =
        read_as(source, "#include \"shaders/describe.h\"\n", unit->desc.before, unit->desc.behind);
    bool ok = text && grt_describe_kernel(&unit->described, source->file, text);
    unit->described.info.source = source;
    unit->described.info.file = source->file;
    unit->described.info.opencl_only = unit->desc.opencl_only;
    free(text);
    return ok;
}

static bool compile_c(struct grt_source *source, struct unit *unit) {
    static const char prelude[] = "#define GRT_SPIRV NULL\n"
                                  "#define GRT_SPIRV_SIZE 0\n"
                                  "#define GRT_OPENCL NULL\n"
                                  "#define GRT_IMPORTS false\n"
                                  "#include \"backends/ref/dialect.h\"\n";
    struct grt_kernel_info *info = &unit->described.info;
    char symbol[256];
    char *text = read_as(source, prelude, unit->desc.before, unit->desc.behind);
    unit->object = text ? grt_compile_c(source->file, text) : NULL;
    free(text);
    if (!unit->object) {
        return false;
    }
    snprintf(symbol, sizeof symbol, "grt_kernel_%s", info->name);
    const struct grt_kernel_info *made = dlsym(unit->object, symbol);
    // The C compiler wrote the same lists.
    if (!made || made->spec_count != info->spec_count || made->arg_count != info->arg_count ||
        made->params_size != info->params_size) {
        return grt_fail(GRT_COMPILE, "%s: kernel %s is not what its lists say in C", source->file,
                        info->name);
    }
    info->lane = made->lane;
    return true;
}

static bool compile(struct grt_source *source, struct unit *unit, enum grt_backend_id backend) {
    struct grt_kernel_info *info = &unit->described.info;
    const struct grt_source_unit *desc = &unit->desc;
    if (backend == GRT_BACKEND_OPENCL && !info->opencl) {
        unit->opencl = read_as(source, "#include \"cl/dialect.h\"\n", desc->before, desc->behind);
        info->opencl = unit->opencl;
    } else if (backend == GRT_BACKEND_VULKAN && !info->spirv) {
        char *text =
            read_as(source, "#include \"shaders/dialect.h\"\n", desc->before, desc->behind);
        unit->spirv = text ? grt_compile_glsl(source->file, text, &info->spirv_size) : NULL;
        info->spirv = unit->spirv;
        free(text);
    } else if (backend == GRT_BACKEND_REF && !info->lane) {
        return compile_c(source, unit);
    }
    return backend == GRT_BACKEND_OPENCL ? info->opencl != NULL
           : backend == GRT_BACKEND_REF  ? info->lane != NULL
                                         : info->spirv != NULL;
}

bool grt_source_compile(const struct grt_kernel_info *info, enum grt_backend_id backend) {
    struct grt_source *source = info->source;
    struct unit *unit = source->units;
    while (&unit->described.info != info) {
        unit++;
    }
    pthread_mutex_lock(&source->lock);
    bool ok = compile(source, unit, backend);
    pthread_mutex_unlock(&source->lock);
    return ok;
}

// ---- a source ----

void grt_source_ref(struct grt_source *source) {
    atomic_fetch_add(&source->refs, 1);
}

void grt_source_unref(struct grt_source *source) {
    if (!source || atomic_fetch_sub(&source->refs, 1) > 1) {
        return;
    }
    for (uint32_t i = 0; i < source->count; i++) {
        struct unit *unit = &source->units[i];
        if (unit->object) {
            dlclose(unit->object);
        }
        free(unit->opencl);
        free(unit->spirv);
        grt_describe_finish(&unit->described);
    }
    while (source->names) {
        struct file_name *next = source->names->next;
        free(source->names);
        source->names = next;
    }
    pthread_mutex_destroy(&source->lock);
    free(source->units);
    free(source->file);
    free(source->text);
    free(source);
}

struct grt_source *grt_source_read(const char *file, const char *text) {
    uint64_t size = 0;
    char *own = text ? strdup(text) : grt_whole_file_read_any(file, MAX_SOURCE, &size);
    if (!own && !text) {
        return NULL;
    }
    if (own && !text && size != strlen(own)) {
        grt_fail(GRT_BAD_DATA, "%s: no text: byte %zu is 0", file, strlen(own));
        free(own);
        return NULL;
    }
    struct grt_source *source = own ? calloc(1, sizeof *source) : NULL;
    if (!source) {
        free(own);
        goto out_of_memory;
    }
    atomic_init(&source->refs, 1);
    pthread_mutex_init(&source->lock, NULL);
    source->text = own;
    source->on_disk = file != NULL;
    source->file = strdup(file ? file : "source");
    if (source->file) {
        return source;
    }
    grt_source_unref(source);
out_of_memory:
    grt_fail(GRT_NO_MEMORY, "no host memory for the source of a kernel");
    return NULL;
}

bool grt_source_set_units(struct grt_source *source, const struct grt_source_unit *units,
                          uint32_t count) {
    source->units = calloc(count, sizeof *source->units);
    if (!source->units) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for the kernels of %s", source->file);
    }
    source->count = count;
    for (uint32_t i = 0; i < count; i++) {
        source->units[i].desc = units[i];
        if (!describe(source, &source->units[i])) {
            return false;
        }
    }
    return true;
}

const struct grt_kernel_info *grt_source_find(const struct grt_source *source, const char *name) {
    for (uint32_t i = 0; i < source->count; i++) {
        if (strcmp(source->units[i].described.info.name, name) == 0) {
            return &source->units[i].described.info;
        }
    }
    return NULL;
}

uint64_t grt_source_digest(const struct grt_source *source) {
    return grt_digest(source->text, strlen(source->text), 0);
}

const char *grt_source_file(const struct grt_source *source) {
    return source->file;
}

struct grt_source *grt_source_create(const struct grt_source_desc *desc) {
    static const struct grt_source_unit alone = {NULL, NULL, false};
    if (!desc || (!desc->text && !desc->file)) {
        grt_fail(GRT_INVALID, "grt_source_create: no %s", desc ? "text and no file" : "desc");
        return NULL;
    }
    struct grt_source *source = grt_source_read(desc->file, desc->text);
    if (source && !grt_source_set_units(source, &alone, 1)) {
        grt_source_destroy(&source);
    }
    return source;
}

void grt_source_destroy(struct grt_source **source) {
    if (source) {
        grt_source_unref(*source);
        *source = NULL;
    }
}

const char *grt_source_kernel(const struct grt_source *source) {
    return source && source->count ? source->units[0].described.info.name : NULL;
}
