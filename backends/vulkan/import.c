// SPDX-License-Identifier: Apache-2.0
// Kernels in PTX (VK_NVX_binary_import): a module and its function in place of a pipeline, buffers
// by their addresses in place of descriptors. Where the text comes from: runtime/device/import.c.
//
// The extension has no specification. What is relied on here was seen on an H200, driver
// 580.159.04, 2026-11: PTX of sm_90a and variables of a module in device memory are taken;
// arguments go in one block, laid out as the kernel declares them and copied while recording;
// barriers between compute shaders hold for launches too. A workgroup may have all shared memory of
// the processor as an array of its text, on a queue without graphics; on one with graphics a launch
// with more than 48 KiB never ends.
#include <stdlib.h>
#include <string.h>

#include "vulkan.h"

// Names of what stands in the list of launch options, as cuLaunchKernel() has them.
#define LAUNCH_BUFFER ((const void *)1)
#define LAUNCH_BUFFER_SIZE ((const void *)2)

#define DRIVER_SEEN 580u

bool gvk_takes_ptx(const struct gvk_physical *physical) {
    return physical->ext[GVK_EXT_BINARY_IMPORT] && physical->f12.bufferDeviceAddress;
}

uint32_t gvk_imports(const struct gvk_physical *physical, uint32_t driver) {
    bool roomy = !physical->graphics && driver >> 22 >= DRIVER_SEEN;
    return !gvk_takes_ptx(physical) ? 0 : roomy ? 2 : 1;
}

struct grt_kernel *gvk_kernel_import(struct grt_dev *base, const struct grt_kernel_info *info,
                                     const uint32_t *spec_values, const char *ptx) {
    (void)spec_values;  // they stand in the text
    struct gvk_dev *dev = (struct gvk_dev *)base;
    struct gvk_kernel *kernel = calloc(1, sizeof *kernel);
    if (kernel == NULL) {
        grt_fail(GRT_NO_MEMORY, "no memory for the record of kernel %s", info->name);
        return NULL;
    }
    kernel->dev = dev;
    const VkCuModuleCreateInfoNVX module = {
        .sType = VK_STRUCTURE_TYPE_CU_MODULE_CREATE_INFO_NVX,
        .dataSize = strlen(ptx) + 1,
        .pData = ptx,
    };
    VkResult result = dev->vk.vkCreateCuModuleNVX(dev->handle, &module, NULL, &kernel->module);
    if (result != VK_SUCCESS) {
        gvk_fail(dev, GRT_COMPILE, result, "%s does not take the PTX of kernel %s",
                 dev->base.info.name, info->name);
        goto undo_kernel;
    }
    const VkCuFunctionCreateInfoNVX function = {
        .sType = VK_STRUCTURE_TYPE_CU_FUNCTION_CREATE_INFO_NVX,
        .module = kernel->module,
        .pName = info->name,
    };
    result = dev->vk.vkCreateCuFunctionNVX(dev->handle, &function, NULL, &kernel->function);
    if (result != VK_SUCCESS) {
        gvk_fail(dev, GRT_COMPILE, result, "no kernel named %s in its PTX", info->name);
        goto undo_module;
    }
    return &kernel->base;

undo_module:
    dev->vk.vkDestroyCuModuleNVX(dev->handle, kernel->module, NULL);
undo_kernel:
    free(kernel);
    return NULL;
}

void gvk_import_destroy(struct gvk_kernel *kernel) {
    struct gvk_dev *dev = kernel->dev;
    dev->vk.vkDestroyCuFunctionNVX(dev->handle, kernel->function, NULL);
    dev->vk.vkDestroyCuModuleNVX(dev->handle, kernel->module, NULL);
    free(kernel);
}

void gvk_import_launch(struct gvk_dev *dev, VkCommandBuffer cmds, const struct grt_cmd *cmd) {
    const struct gvk_kernel *kernel = (const struct gvk_kernel *)cmd->kernel;
    const struct grt_kernel_info *info = cmd->kernel->info;
    // Where bindings begin, parameters: as cl/dialect.h declares them with GRT_ADDRESSES.
    struct {
        uint64_t places[GRT_MAX_BINDINGS];
        unsigned char params[GRT_MAX_PARAMS];
    } block = {0};
    for (uint32_t i = 0; i < info->arg_count; i++) {
        block.places[i] =
            ((const struct gvk_buf *)cmd->bindings[i].buf)->address + cmd->bindings[i].offset;
    }
    size_t size = sizeof block.places;
    memcpy((char *)&block + size, cmd->params, info->params_size);
    size += info->params_size;
    const void *options[] = {LAUNCH_BUFFER, &block, LAUNCH_BUFFER_SIZE, &size, NULL};
    const VkCuLaunchInfoNVX launch = {
        .sType = VK_STRUCTURE_TYPE_CU_LAUNCH_INFO_NVX,
        .function = kernel->function,
        .gridDimX = cmd->groups[0],
        .gridDimY = cmd->groups[1],
        .gridDimZ = cmd->groups[2],
        .blockDimX = cmd->kernel->spec_values[0],
        .blockDimY = 1,
        .blockDimZ = 1,
        .extraCount = 1,
        .pExtras = options,
    };
    dev->vk.vkCmdCuLaunchKernelNVX(cmds, &launch);
}
