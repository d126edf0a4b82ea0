// SPDX-License-Identifier: Apache-2.0
// Kernels with NVIDIA's instructions on a Vulkan device. Vulkan has no words for them, but NVIDIA's
// driver takes PTX ready-made (VK_NVX_binary_import), and its OpenCL compiler, part of the same
// driver, makes it:
//
//     text in OpenCL C --> the same device by OpenCL --> PTX --> disk cache --> kernel_import()
//
// The OpenCL device is opened for the first kernel that the disk cache does not have, and closed
// with the Vulkan device. Without one these kernels do not build, and what is written in GLSL
// serves.
//
// A workgroup of Hopper has more shared memory than Vulkan says, all that the processor has, as an
// array of the text (H200, driver 580.159.04, 2026-11). The text is read for it beforehand: a
// launch with more than there is loses the device.
#include "import.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "internal.h"
#include "base/log.h"

uint64_t grt_ptx_shared(const char *ptx) {
    static const char words[] = ".shared .align ";
    uint64_t bytes = 0;
    for (const char *at = strstr(ptx, words); at; at = strstr(at, words)) {
        at += strlen(words);
        uint64_t align = strtoull(at, NULL, 10);
        align = align > 0 ? align : 1;
        size_t line = strcspn(at, ";\n");
        const char *open = memchr(at, '[', line);
        uint64_t size = open ? strtoull(open + 1, NULL, 10) : 8;
        bytes = (bytes + align - 1) / align * align + size;
    }
    return bytes;
}

static void make_key(const struct grt_dev *dev, const struct grt_kernel_info *info,
                     const uint32_t *values, char *key, size_t capacity) {
    size_t used = (size_t)snprintf(key, capacity, "ptx by address\n%s\n%s\n%016" PRIx64,
                                   dev->info.name, dev->info.driver_version,
                                   grt_digest(info->opencl, strlen(info->opencl), 0));
    for (uint32_t i = 0; i < info->spec_count && used < capacity; i++) {
        used += (size_t)snprintf(key + used, capacity - used, " %" PRIu32, values[i]);
    }
}

static bool find_compiler(struct grt_dev *dev) {
    if (!dev->compiler && !dev->no_compiler) {
        const char *same = dev->info.pci[0] ? dev->info.pci : dev->info.name;
        dev->compiler =
            grt_dev_create(grt_dev_desc(.backend = "opencl", .device = same, .require_gpu = true));
        dev->no_compiler = !dev->compiler || !dev->compiler->fns->kernel_ptx;
    }
    return !dev->no_compiler;
}

static char *make_ptx(struct grt_dev *dev, const struct grt_kernel_info *info,
                      const uint32_t *values) {
    char key[1024];
    size_t size = 0;
    make_key(dev, info, values, key, sizeof key);
    char *ptx = grt_cache_load(key, &size);
    if (ptx && size > 1 && ptx[size - 1] == '\0') {
        return ptx;
    }
    free(ptx);
    ptx = NULL;
    if (size == 1) {
        grt_fail(GRT_UNSUPPORTED, "kernel %s is not for %s", info->name, dev->info.name);
        return NULL;
    }
    if (!find_compiler(dev)) {
        grt_fail(
            GRT_UNSUPPORTED,
            "kernel %s reaches %s as PTX, which NVIDIA's OpenCL driver makes, and that does not "
            "know '%s' here",
            info->name, dev->info.selector, dev->info.name);
        return NULL;
    }
    enum grt_status status = dev->compiler->fns->kernel_ptx(dev->compiler, info, values, &ptx);
    // That a device is of another kind is kept too: to ask means to open its OpenCL driver.
    if (status == GRT_OK || status == GRT_UNSUPPORTED) {
        grt_cache_store(key, ptx ? ptx : "", ptx ? strlen(ptx) + 1 : 1);
    }
    return ptx;
}

#define HOPPER_SHARED (227u << 10)

struct grt_kernel *grt_import_kernel(struct grt_dev *dev, const struct grt_kernel_info *info,
                                     const uint32_t *values) {
    char *ptx = make_ptx(dev, info, values);
    if (!ptx) {
        return NULL;
    }
    struct grt_kernel *kernel = NULL;
    uint64_t shared = grt_ptx_shared(ptx);
    uint64_t most = dev->info.caps.imports == 2 && strstr(ptx, ".target sm_90")
                        ? HOPPER_SHARED
                        : dev->info.caps.shmem;
    if (shared > most) {
        grt_fail(GRT_UNSUPPORTED,
                 "kernel %s has %" PRIu64 " bytes of shared memory, %s has %" PRIu64, info->name,
                 shared, dev->info.selector, most);
    } else {
        kernel = dev->fns->kernel_import(dev, info, values, ptx);
    }
    free(ptx);
    return kernel;
}
