// SPDX-License-Identifier: Apache-2.0
// Kernels by name and specialization values, kept by their device.
#include "gpurt/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import.h"
#include "internal.h"
#include "base/log.h"
#include "source/source.h"

#define MAX_WHY 256

static const struct grt_kernel_info *find_own(const char *name) {
    for (uint32_t i = 0; grt_kernel_table[i]; i++) {
        if (strcmp(grt_kernel_table[i]->name, name) == 0) {
            return grt_kernel_table[i];
        }
    }
    return NULL;
}

static const struct grt_kernel_info *find_info(const struct grt_kernel_desc *desc) {
    return desc->source ? grt_source_find(desc->source, desc->name) : find_own(desc->name);
}

const char *grt_kernel_name(uint32_t i) {
    for (uint32_t k = 0; grt_kernel_table[k]; k++) {
        if (k == i) {
            return grt_kernel_table[k]->name;
        }
    }
    return NULL;
}

// The kernel's defaults with the desc's values in their places.
static bool fill_specs(const struct grt_kernel_info *info, const struct grt_kernel_desc *desc,
                       uint32_t *values) {
    for (uint32_t i = 0; i < info->spec_count; i++) {
        values[i] = info->specs[i].value;
    }
    for (uint32_t d = 0; d < GRT_MAX_SPECS && desc->specs[d].name; d++) {
        uint32_t i = 0;
        while (i < info->spec_count && strcmp(info->specs[i].name, desc->specs[d].name) != 0) {
            i++;
        }
        if (i == info->spec_count) {
            return grt_fail(GRT_INVALID, "kernel '%s' has no constant '%s'", info->name,
                            desc->specs[d].name);
        }
        values[i] = desc->specs[d].value;
    }
    return true;
}

// Whether it reaches the device as PTX.
static bool is_import(const struct grt_dev_info *dev, const struct grt_kernel_info *info) {
    return dev->backend == GRT_BACKEND_VULKAN && dev->caps.imports && info->imports;
}

static bool has_reading(const struct grt_dev_info *dev, const struct grt_kernel_info *info) {
    if (info->vendor && !strstr(dev->vendor, info->vendor)) {
        return false;
    }
    if (info->source) {
        return dev->backend == GRT_BACKEND_OPENCL || !info->opencl_only;
    }
    switch (dev->backend) {
    case GRT_BACKEND_VULKAN:
        // Kernels in plain GLSL are there for the matrix unit.
        return is_import(dev, info) ||
               (info->spirv != NULL && (info->lane || dev->caps.matrix_shape_count > 0));
    case GRT_BACKEND_OPENCL:
        return info->opencl != NULL;
    default:
        return info->lane != NULL;
    }
}

bool grt_kernel_exists(const struct grt_dev *dev, const char *name) {
    return dev && name && grt_kernel_known(dev, grt_kernel_desc(.name = name));
}

bool grt_kernel_known(const struct grt_dev *dev, const struct grt_kernel_desc *desc) {
    const struct grt_kernel_info *info = find_info(desc);
    return info && has_reading(&dev->info, info);
}

static bool fits(const struct grt_dev_info *dev, const struct grt_kernel_info *info,
                 const uint32_t *values, char *why) {
    const struct grt_caps *caps = &dev->caps;
    if (!has_reading(dev, info)) {
        snprintf(why, MAX_WHY, "kernel '%s' does not run on %s", info->name, dev->selector);
        return false;
    }
    if (values[0] == 0 || values[0] > caps->max_wg) {
        snprintf(why, MAX_WHY, "kernel '%s': a workgroup of %u, %s allows 1 to %u", info->name,
                 values[0], dev->selector, caps->max_wg);
        return false;
    }
    uint32_t shmem = info->shmem(info, values);
    if (shmem > caps->shmem) {
        snprintf(why, MAX_WHY, "kernel '%s' needs %u bytes of shared memory, %s has %u", info->name,
                 shmem, dev->selector, caps->shmem);
        return false;
    }
    for (uint32_t i = 0; i < info->arg_count; i++) {
        if (strcmp(info->args[i].type, "u16") == 0 && !caps->f16_storage) {
            snprintf(why, MAX_WHY, "kernel '%s' needs 16-bit storage, %s has none", info->name,
                     dev->selector);
            return false;
        }
        if (strcmp(info->args[i].type, "texels") == 0 && caps->max_texels == 0) {
            snprintf(why, MAX_WHY, "kernel '%s' needs texel buffers, %s has none", info->name,
                     dev->selector);
            return false;
        }
    }
    return true;
}

bool grt_kernel_fits(const struct grt_dev_info *info, const struct grt_kernel_desc *desc,
                     char *why) {
    const struct grt_kernel_info *kernel = find_info(desc);
    uint32_t values[GRT_MAX_SPECS] = {0};
    return kernel && fill_specs(kernel, desc, values) && fits(info, kernel, values, why);
}

// The entry of a desc and its constants; NULL with the sentence.
static const struct grt_kernel_info *resolve(const struct grt_dev *dev,
                                             const struct grt_kernel_desc *desc,
                                             uint32_t values[GRT_MAX_SPECS]) {
    if (!dev || !desc || !desc->name) {
        grt_fail(GRT_INVALID, "grt_kernel_get: no %s", !dev ? "device" : "kernel name");
        return NULL;
    }
    const struct grt_kernel_info *info = find_info(desc);
    if (!info) {
        grt_fail(GRT_INVALID, "no kernel '%s'%s%s", desc->name, desc->source ? " in " : "",
                 desc->source ? grt_source_file(desc->source) : "");
        return NULL;
    }
    memset(values, 0, GRT_MAX_SPECS * sizeof *values);
    return fill_specs(info, desc, values) ? info : NULL;
}

static struct grt_kernel *find(struct grt_kernel *list, const struct grt_kernel_info *info,
                               const uint32_t values[GRT_MAX_SPECS]) {
    while (list && (list->info != info ||
                    memcmp(list->spec_values, values, sizeof list->spec_values) != 0)) {
        list = list->next;
    }
    return list;
}

static bool can_build(struct grt_dev *dev, const struct grt_kernel_info *info,
                      const uint32_t values[GRT_MAX_SPECS]) {
    char why[MAX_WHY];
    return grt_dev_usable(dev) &&
           (fits(&dev->info, info, values, why) || grt_fail(GRT_UNSUPPORTED, "%s", why));
}

static void enter(struct grt_kernel **list, struct grt_kernel *kernel, struct grt_dev *dev,
                  const struct grt_kernel_info *info, const uint32_t values[GRT_MAX_SPECS]) {
    kernel->dev = dev;
    kernel->info = info;
    memcpy(kernel->spec_values, values, sizeof kernel->spec_values);
    kernel->next = *list;
    *list = kernel;
    if (info->source) {
        grt_source_ref(info->source);
    }
}

static struct grt_kernel *build(struct grt_dev *dev, const struct grt_kernel_info *info,
                                const uint32_t values[GRT_MAX_SPECS]) {
    if (info->source && !grt_source_compile(info, dev->info.backend)) {
        return NULL;
    }
    struct grt_kernel *kernel = is_import(&dev->info, info)
                                    ? grt_import_kernel(dev, info, values)
                                    : dev->fns->kernel_create(dev, info, values);
    if (kernel) {
        enter(&dev->kernels, kernel, dev, info, values);
    }
    return kernel;
}

const struct grt_kernel *grt_kernel_get(struct grt_dev *dev, const struct grt_kernel_desc *desc) {
    uint32_t values[GRT_MAX_SPECS];
    const struct grt_kernel_info *info = resolve(dev, desc, values);
    struct grt_kernel *kernel = info ? find(dev->kernels, info, values) : NULL;
    return kernel || !info || !can_build(dev, info, values) ? kernel : build(dev, info, values);
}

// ---- promises ----

struct promise {
    struct grt_kernel base;
    struct grt_kernel *kept;
    bool counted;
};

static grt_kernel_watch_fn *watch;
static void *watch_context;

void grt_kernel_watch(grt_kernel_watch_fn *fn, void *context) {
    watch = fn;
    watch_context = context;
}

const struct grt_kernel *grt_kernel_promise(struct grt_dev *dev,
                                            const struct grt_kernel_desc *desc) {
    uint32_t values[GRT_MAX_SPECS];
    const struct grt_kernel_info *info = resolve(dev, desc, values);
    struct grt_kernel *kernel = info ? find(dev->kernels, info, values) : NULL;
    kernel = kernel || !info ? kernel : find(dev->promises, info, values);
    if (kernel || !info || !can_build(dev, info, values)) {
        return kernel;
    }
    struct promise *promise = calloc(1, sizeof *promise);
    if (!promise) {
        grt_fail(GRT_NO_MEMORY, "no host memory for kernel '%s'", info->name);
        return NULL;
    }
    promise->base.promised = true;
    enter(&dev->promises, &promise->base, dev, info, values);
    return &promise->base;
}

static struct promise *promise_of(struct grt_cmd *cmd) {
    return cmd->kind == GRT_CMD_DISPATCH && cmd->kernel->promised ? (struct promise *)cmd->kernel
                                                                  : NULL;
}

bool grt_kernels_keep_promises(struct grt_dev *dev, struct grt_cmd *cmds, uint32_t count) {
    uint32_t wanted = 0, built = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct promise *p = promise_of(&cmds[i]);
        if (p && !p->counted && !p->kept) {
            // Another graph, or grt_kernel_get(), may have been faster.
            p->kept = find(dev->kernels, p->base.info, p->base.spec_values);
            p->counted = true;
            wanted += !p->kept;
        }
    }
    bool good = true;
    for (uint32_t i = 0; i < count; i++) {
        struct promise *p = promise_of(&cmds[i]);
        if (p && good && !p->kept) {
            if (watch && dev->info.backend != GRT_BACKEND_REF) {
                watch(watch_context, p->base.info->name, ++built, wanted);
            }
            p->kept = build(dev, p->base.info, p->base.spec_values);
            good = p->kept != NULL;
        }
        if (p) {
            p->counted = false;
        }
        if (p && good) {
            cmds[i].kernel = p->kept;
        }
    }
    return good;
}

// Takes the first kernel out of a list; its source may go with it.
static struct grt_kernel *leave(struct grt_kernel **list, struct grt_source **source) {
    struct grt_kernel *kernel = *list;
    *list = kernel->next;
    *source = kernel->info->source;
    return kernel;
}

void grt_kernels_destroy(struct grt_dev *dev) {
    struct grt_source *source = NULL;
    while (dev->kernels) {
        dev->fns->kernel_destroy(leave(&dev->kernels, &source));
        grt_source_unref(source);
    }
    while (dev->promises) {
        free(leave(&dev->promises, &source));
        grt_source_unref(source);
    }
}

bool grt_kernel_builds(struct grt_dev *dev, const char *name) {
    const struct grt_kernel_info *info = find_own(name);
    // What is asked for are instructions of GPUs. The compiler of a CPU driver would refuse them,
    // in the user's terminal.
    if (!info || !has_reading(&dev->info, info) || dev->info.caps.software) {
        return false;
    }
    for (uint32_t i = 0; i < dev->refused_count; i++) {
        if (dev->refused[i] == info) {
            return false;
        }
    }
    bool before = grt_quiet(true);
    const struct grt_kernel *kernel = grt_kernel_get(dev, grt_kernel_desc(.name = name));
    grt_quiet(before);
    if (!kernel && dev->refused_count < sizeof dev->refused / sizeof dev->refused[0]) {
        dev->refused[dev->refused_count++] = info;
    }
    return kernel != NULL;
}

bool grt_kernels_roomy(struct grt_dev *dev) {
    uint32_t imports = dev->info.caps.imports;
    return imports != 1 && grt_kernel_builds(dev, imports ? "probe_wgmma_48k" : "probe_wgmma");
}
