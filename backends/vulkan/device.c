// SPDX-License-Identifier: Apache-2.0
// Devices: listed with an instance that lives for the listing only, opened with one of their own.
//
// One device has one compute queue, and beside it one for uploads where the driver has another
// (lanes.c). Features are enabled one by one, those that our kernels use, so that a kernel that
// needs more fails at its creation.
#include "vulkan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool gvk_fail(struct gvk_dev *dev, enum grt_status otherwise, VkResult result, const char *format,
              ...) {
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const char *name = gvk_result_text(result);
    switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
        return grt_fail(GRT_NO_MEMORY, "%s: %s (%d)", what, name, (int)result);
    case VK_ERROR_DEVICE_LOST:
        dev->base.status = GRT_LOST;
        return grt_fail(GRT_LOST,
                        "%s: %s (%d); the driver gave the device up, after a fault in a kernel or "
                        "one that ran too long: the system's log (dmesg) says which, and "
                        "max_submit_ms keeps submits short",
                        what, name, (int)result);
    default:
        return grt_fail(otherwise, "%s: %s (%d)", what, name, (int)result);
    }
}

static int32_t list(struct grt_dev_info *infos, uint32_t capacity, char *problem) {
    struct gvk_instance instance;
    if (!gvk_instance_create(&instance, NULL, problem)) {
        return -1;
    }
    int32_t found = -1;
    uint32_t count = 0;
    struct gvk_physical *devices = gvk_physical_list(&instance, &count, problem);
    if (devices) {
        for (uint32_t i = 0; i < count && i < capacity; i++) {
            infos[i] = (struct grt_dev_info){0};
            gvk_physical_describe(&instance, &devices[i], &infos[i]);
        }
        found = (int32_t)count;
    }
    free(devices);
    gvk_instance_destroy(&instance);
    return found;
}

bool gvk_device_create(struct gvk_dev *dev, const struct gvk_physical *physical) {
    const float priorities[] = {1.0f, 1.0f};
    bool same = physical->has_aside && physical->aside == physical->family;
    const VkDeviceQueueCreateInfo queues[] = {
        {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
         .queueFamilyIndex = physical->family,
         .queueCount = same ? 2 : 1,
         .pQueuePriorities = priorities},
        {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
         .queueFamilyIndex = physical->aside,
         .queueCount = 1,
         .pQueuePriorities = priorities},
    };
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16 = physical->bfloat16;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix = {
        .sType = physical->matrix.sType,
        .cooperativeMatrix = physical->matrix.cooperativeMatrix,
    };
    VkPhysicalDeviceCooperativeMatrix2FeaturesNV matrix2 = {
        .sType = physical->matrix2.sType,
        .cooperativeMatrixConversions = physical->matrix2.cooperativeMatrixConversions,
    };
    VkPhysicalDeviceVulkan13Features f13 = {
        .sType = physical->f13.sType,
        .subgroupSizeControl = physical->f13.subgroupSizeControl,
        .computeFullSubgroups = physical->f13.computeFullSubgroups,
        .maintenance4 =
            physical->f13.maintenance4,  // SPIR-V 1.6 kernels name their size by constant
        .shaderIntegerDotProduct = physical->f13.shaderIntegerDotProduct,
    };
    VkPhysicalDeviceVulkan12Features f12 = {
        .sType = physical->f12.sType,
        .storageBuffer8BitAccess = physical->f12.storageBuffer8BitAccess,
        .shaderFloat16 = physical->f12.shaderFloat16,
        .shaderInt8 = physical->f12.shaderInt8,
        .hostQueryReset = physical->f12.hostQueryReset,
        .timelineSemaphore = VK_TRUE,
        .bufferDeviceAddress = gvk_takes_ptx(physical),
        .vulkanMemoryModel = physical->f12.vulkanMemoryModel,  // cooperative matrices want it
        .vulkanMemoryModelDeviceScope = physical->f12.vulkanMemoryModelDeviceScope,
    };
    VkPhysicalDeviceVulkan11Features f11 = {
        .sType = physical->f11.sType,
        .pNext = &f12,
        .storageBuffer16BitAccess = physical->f11.storageBuffer16BitAccess,
    };
    VkPhysicalDeviceFeatures2 features = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
        .pNext = &f11,
        .features.shaderInt16 = physical->features.shaderInt16,
        .features.shaderInt64 = physical->features.shaderInt64,
    };
    void **tail = &f12.pNext;
    if (physical->is_13) {
        *tail = &f13;
        tail = &f13.pNext;
    }
    if (physical->ext[GVK_EXT_COOPERATIVE_MATRIX]) {
        *tail = &matrix;
        tail = &matrix.pNext;
    }
    if (physical->ext[GVK_EXT_COOPERATIVE_MATRIX_2]) {
        *tail = &matrix2;
        tail = &matrix2.pNext;
    }
    bfloat16.pNext = NULL;
    if (physical->ext[GVK_EXT_BFLOAT16]) {
        *tail = &bfloat16;
    }
    const char *exts[GVK_EXT_COUNT];
    uint32_t ext_count = 0;
#define X(name, text, enable)                                                                      \
    if (enable && physical->ext[GVK_EXT_##name]) {                                                 \
        exts[ext_count++] = text;                                                                  \
    }
    GVK_EXTS(X)
#undef X
    const VkDeviceCreateInfo create = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &features,
        .queueCreateInfoCount = physical->has_aside && !same ? 2 : 1,
        .pQueueCreateInfos = queues,
        .enabledExtensionCount = ext_count,
        .ppEnabledExtensionNames = exts,
    };
    VkResult result = dev->instance.CreateDevice(physical->handle, &create, NULL, &dev->handle);
    if (result != VK_SUCCESS) {
        dev->handle = VK_NULL_HANDLE;
        return gvk_fail(dev, GRT_NO_DEVICE, result, "vkCreateDevice failed");
    }
    dev->physical = physical->handle;
    // volk reads a table through this global; the loader's entry is the same for every instance.
    vkGetDeviceProcAddr = dev->instance.GetDeviceProcAddr;
    volkLoadDeviceTable(&dev->vk, dev->handle);
    return true;
}

void gvk_limits_read(struct gvk_dev *dev, const struct gvk_physical *physical,
                     const struct grt_caps *caps) {
    VkPhysicalDeviceMemoryProperties2 memory = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    dev->instance.GetPhysicalDeviceMemoryProperties2(dev->physical, &memory);
    dev->memory = memory.memoryProperties;
    dev->heap = gvk_local_heap(&dev->memory);
    dev->shared_memory = caps->software || caps->integrated;
    dev->software = caps->software;
    dev->budget = physical->ext[GVK_EXT_MEMORY_BUDGET];
    dev->imports = gvk_takes_ptx(physical);
    dev->fns.kernel_import = dev->imports ? gvk_kernel_import : NULL;

    VkPhysicalDeviceProperties properties;
    dev->instance.GetPhysicalDeviceProperties(dev->physical, &properties);
    const VkPhysicalDeviceLimits *limits = &properties.limits;
    dev->max_args = limits->maxPerStageDescriptorStorageBuffers;
    if (caps->timestamps) {
        dev->tick = 1e-9 * (double)limits->timestampPeriod;
        dev->tick_mask = physical->timestamp_bits >= 64
                             ? UINT64_MAX
                             : ((uint64_t)1 << physical->timestamp_bits) - 1;
        dev->host_reset = physical->f12.hostQueryReset;
        dev->aside_stamps = gvk_aside_stamps(physical);
        dev->read_clocks = gvk_clock_reader(dev, physical);
    } else {
        dev->fns.cmds_times = NULL;
        dev->fns.cmds_stamps = NULL;
        dev->fns.clocks = NULL;
    }
}

static void destroy(struct grt_dev *base) {
    struct gvk_dev *dev = (struct gvk_dev *)base;
    if (dev->handle) {
        gvk_cache_store(dev);
        gvk_cache_close(dev);
        gvk_staging_destroy(dev);
        gvk_lanes_destroy(dev);
        dev->vk.vkDestroyDevice(dev->handle, NULL);
    }
    gvk_instance_destroy(&dev->instance);
    free(dev);
}

static const struct grt_dev_fns fns = {
    .destroy = destroy,
    .buf_create = gvk_buf_create,
    .buf_destroy = gvk_buf_destroy,
    .buf_write = gvk_buf_write,
    .buf_read = gvk_buf_read,
    .kernel_create = gvk_kernel_create,
    .kernel_destroy = gvk_kernel_destroy,
    .cmds_create = gvk_cmds_create,
    .cmds_destroy = gvk_cmds_destroy,
    .cmds_run = gvk_cmds_run,
    .cmds_times = gvk_cmds_times,
    .cmds_stamps = gvk_cmds_stamps,
    .clocks = gvk_clocks,
    .wait = gvk_wait,
    .hold = gvk_hold,
    .lane_mark = gvk_lane_mark,
    .lane_after = gvk_lane_after,
    .lane_passed = gvk_lane_passed,
    .lane_wait = gvk_lane_wait,
    .mem_free = gvk_mem_free,
};

static struct grt_dev *open_device(const struct grt_dev_info *info,
                                   const struct grt_dev_desc *desc) {
    struct gvk_dev *dev = calloc(1, sizeof *dev);
    if (dev == NULL) {
        grt_fail(GRT_NO_MEMORY, "no memory for the device %s", info->selector);
        return NULL;
    }
    dev->fns = fns;
    dev->base.fns = &dev->fns;
    char problem[GVK_PROBLEM_SIZE] = "";
    uint32_t count = 0;
    struct gvk_physical *devices = NULL;
    if (!gvk_instance_create(&dev->instance, desc->validate ? &dev->base : NULL, problem)) {
        grt_fail(GRT_NO_DEVICE, "%s cannot be opened: %s", info->selector, problem);
        goto undo_dev;
    }
    devices = gvk_physical_list(&dev->instance, &count, problem);
    if (devices == NULL) {
        grt_fail(GRT_NO_DEVICE, "%s cannot be opened: %s", info->selector, problem);
        goto undo_dev;
    }
    // A driver may have come or gone since the list was made.
    struct grt_dev_info now = {0};
    if (info->index < count) {
        gvk_physical_describe(&dev->instance, &devices[info->index], &now);
    }
    if (strcmp(now.name, info->name) != 0 || strcmp(now.pci, info->pci) != 0) {
        grt_fail(GRT_NO_DEVICE, "%s was %s when the devices were listed and is %s now: list again",
                 info->selector, info->name, now.name[0] ? now.name : "gone");
        goto undo_devices;
    }
    const struct gvk_physical *physical = &devices[info->index];
    if (!gvk_device_create(dev, physical)) {
        goto undo_devices;
    }
    gvk_limits_read(dev, physical, &info->caps);  // as the device is to be taken
    if (!gvk_lanes_create(dev, physical) || !gvk_cache_open(dev, info)) {
        goto undo_devices;
    }
    free(devices);
    return &dev->base;

undo_devices:
    free(devices);
undo_dev:
    destroy(&dev->base);
    return NULL;
}

const struct grt_backend grt_backend_vulkan = {
    .list = list,
    .add_drivers = gvk_add_drivers,
    .open = open_device,
};
