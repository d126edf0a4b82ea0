// SPDX-License-Identifier: Apache-2.0
// Kernels by name and specialization values, kept by their device.
#include "kernel.h"

#include <stdio.h>
#include <string.h>

#include "import.h"
#include "internal.h"
#include "report.h"

#define MAX_WHY 256

static const struct grt_kernel_info *find_info(const char *name) {
    for (uint32_t i = 0; grt_kernel_table[i]; i++) {
        if (strcmp(grt_kernel_table[i]->name, name) == 0) {
            return grt_kernel_table[i];
        }
    }
    return NULL;
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
    const struct grt_kernel_info *info = dev && name ? find_info(name) : NULL;
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
    uint32_t shmem = info->shmem(values);
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
    const struct grt_kernel_info *kernel = find_info(desc->name);
    uint32_t values[GRT_MAX_SPECS] = {0};
    return kernel && fill_specs(kernel, desc, values) && fits(info, kernel, values, why);
}

const struct grt_kernel *grt_kernel_get(struct grt_dev *dev, const struct grt_kernel_desc *desc) {
    if (!dev || !desc || !desc->name) {
        grt_fail(GRT_INVALID, "grt_kernel_get: no %s", !dev ? "device" : "kernel name");
        return NULL;
    }
    const struct grt_kernel_info *info = find_info(desc->name);
    if (!info) {
        grt_fail(GRT_INVALID, "no kernel '%s'", desc->name);
        return NULL;
    }
    uint32_t values[GRT_MAX_SPECS] = {0};
    if (!fill_specs(info, desc, values)) {
        return NULL;
    }
    for (struct grt_kernel *k = dev->kernels; k; k = k->next) {
        if (k->info == info && memcmp(k->spec_values, values, sizeof values) == 0) {
            return k;
        }
    }
    char why[MAX_WHY];
    if (!grt_dev_usable(dev)) {
        return NULL;
    }
    if (!fits(&dev->info, info, values, why)) {
        grt_fail(GRT_UNSUPPORTED, "%s", why);
        return NULL;
    }
    struct grt_kernel *kernel = is_import(&dev->info, info)
                                    ? grt_import_kernel(dev, info, values)
                                    : dev->fns->kernel_create(dev, info, values);
    if (!kernel) {
        return NULL;
    }
    kernel->dev = dev;
    kernel->info = info;
    memcpy(kernel->spec_values, values, sizeof values);
    kernel->next = dev->kernels;
    dev->kernels = kernel;
    return kernel;
}

bool grt_kernel_builds(struct grt_dev *dev, const char *name) {
    const struct grt_kernel_info *info = find_info(name);
    if (!info || !has_reading(&dev->info, info)) {
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
