// SPDX-License-Identifier: Apache-2.0
// Kernels: one compute pipeline per kernel and set of specialization values. Arguments are storage
// buffers 0, 1, ... of set 0, parameters are push constants, specialization ids are 0, 1, ... in
// the order of the kernel's table; the C compiler wrote that table, so nothing is reflected here.
//
// Drivers keep what they compiled in a pipeline cache, one per device, which goes to disk when the
// device is destroyed and after any compilation slow enough that losing it to a crash would hurt.
// Its key names device, driver and the driver's own cache id; the blob's header is checked all the
// same, because some drivers trust what they are given.
#include "vulkan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "base/clock.h"

#define SPEC_SOFTWARE 100  // id of SOFTWARE in shaders/dialect.h

#define SLOW_BUILD 0.1  // seconds

// ---- the cache ----

static bool is_ours(const void *data, size_t size, const VkPhysicalDeviceProperties *properties) {
    VkPipelineCacheHeaderVersionOne header;
    if (size < sizeof header) {
        return false;
    }
    memcpy(&header, data, sizeof header);
    return header.headerSize == sizeof header &&
           header.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
           header.vendorID == properties->vendorID && header.deviceID == properties->deviceID &&
           memcmp(header.pipelineCacheUUID, properties->pipelineCacheUUID, VK_UUID_SIZE) == 0;
}

bool gvk_cache_open(struct gvk_dev *dev, const struct grt_dev_info *info) {
    VkPhysicalDeviceProperties properties;
    dev->instance.GetPhysicalDeviceProperties(dev->physical, &properties);
    int length = snprintf(dev->cache_key, sizeof dev->cache_key, "vulkan\n%s\n%s\n", info->name,
                          info->driver_version);
    for (size_t i = 0; i < VK_UUID_SIZE; i++) {
        length += snprintf(dev->cache_key + length, sizeof dev->cache_key - (size_t)length, "%02x",
                           properties.pipelineCacheUUID[i]);
    }
    snprintf(dev->cache_key + length, sizeof dev->cache_key - (size_t)length, "\n");

    size_t size = 0;
    void *data = grt_cache_load(dev->cache_key, &size);
    if (data && !is_ours(data, size, &properties)) {
        free(data);
        data = NULL;
        size = 0;
    }
    VkPipelineCacheCreateInfo create = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
        .initialDataSize = size,
        .pInitialData = data,
    };
    VkResult result = dev->vk.vkCreatePipelineCache(dev->handle, &create, NULL, &dev->cache);
    if (result != VK_SUCCESS && data) {
        grt_log(GRT_LOG_DEBUG, "%s refused its cached pipelines (%s): compiling anew", info->name,
                gvk_result_text(result));
        size = 0;
        create.initialDataSize = 0;
        create.pInitialData = NULL;
        result = dev->vk.vkCreatePipelineCache(dev->handle, &create, NULL, &dev->cache);
    }
    free(data);
    if (result != VK_SUCCESS) {
        dev->cache = VK_NULL_HANDLE;
        return gvk_fail(dev, GRT_NO_DEVICE, result, "vkCreatePipelineCache failed");
    }
    dev->cache_size = size;
    return true;
}

// What is lost here is only time: failures are not reported.
void gvk_cache_store(struct gvk_dev *dev) {
    size_t size = 0;
    if (!dev->cache || dev->base.status == GRT_LOST ||
        dev->vk.vkGetPipelineCacheData(dev->handle, dev->cache, &size, NULL) != VK_SUCCESS) {
        return;
    }
    // A cache only grows: the same size means that every pipeline came from it.
    if (size == dev->cache_size || size <= sizeof(VkPipelineCacheHeaderVersionOne)) {
        return;
    }
    void *data = malloc(size);
    if (data &&
        dev->vk.vkGetPipelineCacheData(dev->handle, dev->cache, &size, data) == VK_SUCCESS &&
        grt_cache_store(dev->cache_key, data, size)) {
        dev->cache_size = size;
    }
    free(data);
}

void gvk_cache_close(struct gvk_dev *dev) {
    dev->vk.vkDestroyPipelineCache(dev->handle, dev->cache, NULL);
    dev->cache = VK_NULL_HANDLE;
}

// ---- kernels ----

bool gvk_is_texels(const struct grt_arg_info *arg) {
    return strcmp(arg->type, "texels") == 0;
}

static bool create_layout(struct gvk_kernel *kernel, const struct grt_kernel_info *info) {
    struct gvk_dev *dev = kernel->dev;
    VkDescriptorSetLayoutBinding bindings[GRT_MAX_BINDINGS];
    for (uint32_t i = 0; i < info->arg_count; i++) {
        bindings[i] = (VkDescriptorSetLayoutBinding){
            .binding = i,
            .descriptorType = gvk_is_texels(&info->args[i])
                                  ? VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER
                                  : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        };
    }
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = info->arg_count,
        .pBindings = bindings,
    };
    if (info->arg_count > 0) {
        VkResult result =
            dev->vk.vkCreateDescriptorSetLayout(dev->handle, &set, NULL, &kernel->set_layout);
        if (result != VK_SUCCESS) {
            return gvk_fail(dev, GRT_COMPILE, result,
                            "kernel %s: vkCreateDescriptorSetLayout failed", info->name);
        }
    }
    kernel->params_size = (info->params_size + 3) / 4 * 4;
    const VkPushConstantRange params = {
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        .size = kernel->params_size,
    };
    const VkPipelineLayoutCreateInfo layout = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = info->arg_count > 0 ? 1 : 0,
        .pSetLayouts = &kernel->set_layout,
        .pushConstantRangeCount = kernel->params_size > 0 ? 1 : 0,
        .pPushConstantRanges = &params,
    };
    VkResult result = dev->vk.vkCreatePipelineLayout(dev->handle, &layout, NULL, &kernel->layout);
    if (result != VK_SUCCESS) {
        return gvk_fail(dev, GRT_COMPILE, result, "kernel %s: vkCreatePipelineLayout failed",
                        info->name);
    }
    return true;
}

static bool create_pipeline(struct gvk_kernel *kernel, const struct grt_kernel_info *info,
                            const uint32_t *spec_values) {
    struct gvk_dev *dev = kernel->dev;
    const VkShaderModuleCreateInfo code = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = info->spirv_size,
        .pCode = info->spirv,
    };
    VkShaderModule module = VK_NULL_HANDLE;
    VkResult result = dev->vk.vkCreateShaderModule(dev->handle, &code, NULL, &module);
    if (result != VK_SUCCESS) {
        return gvk_fail(dev, GRT_COMPILE, result, "kernel %s: vkCreateShaderModule failed",
                        info->name);
    }
    // The kernel's own constants, and behind them the one that the dialect adds.
    VkSpecializationMapEntry entries[GRT_MAX_SPECS + 1];
    uint32_t values[GRT_MAX_SPECS + 1];
    uint32_t count = info->spec_count;
    for (uint32_t i = 0; i <= count; i++) {
        values[i] = i < count ? spec_values[i] : dev->software;
        entries[i] = (VkSpecializationMapEntry){.constantID = i < count ? i : SPEC_SOFTWARE,
                                                .offset = i * sizeof values[0],
                                                .size = sizeof values[0]};
    }
    const VkSpecializationInfo specs = {
        .mapEntryCount = count + 1,
        .pMapEntries = entries,
        .dataSize = (count + 1) * sizeof values[0],
        .pData = values,
    };
    const VkComputePipelineCreateInfo create = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main",
                  .pSpecializationInfo = &specs},
        .layout = kernel->layout,
    };
    double start = grt_seconds();
    result = dev->vk.vkCreateComputePipelines(dev->handle, dev->cache, 1, &create, NULL,
                                              &kernel->handle);
    double seconds = grt_seconds() - start;
    dev->vk.vkDestroyShaderModule(dev->handle, module, NULL);
    if (result != VK_SUCCESS) {
        kernel->handle = VK_NULL_HANDLE;
        return gvk_fail(dev, GRT_COMPILE, result, "%s did not compile the kernel %s (WG %u)",
                        dev->base.info.name, info->name, spec_values[0]);
    }
    if (seconds > SLOW_BUILD) {
        gvk_cache_store(dev);
    }
    return true;
}

// So that the validation layer and profilers say "reduce" and not a number.
static void name_pipeline(struct gvk_kernel *kernel, const char *name) {
    struct gvk_dev *dev = kernel->dev;
    if (dev->instance.SetDebugUtilsObjectNameEXT) {
        const VkDebugUtilsObjectNameInfoEXT info = {
            .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
            .objectType = VK_OBJECT_TYPE_PIPELINE,
            .objectHandle = (uint64_t)kernel->handle,
            .pObjectName = name,
        };
        dev->instance.SetDebugUtilsObjectNameEXT(dev->handle, &info);
    }
}

struct grt_kernel *gvk_kernel_create(struct grt_dev *base, const struct grt_kernel_info *info,
                                     const uint32_t *spec_values) {
    struct gvk_dev *dev = (struct gvk_dev *)base;
    if (info->spirv == NULL) {
        grt_fail(GRT_UNSUPPORTED, "kernel %s has no Vulkan reading in this build", info->name);
        return NULL;
    }
    if (info->arg_count > dev->max_args) {
        grt_fail(GRT_UNSUPPORTED, "kernel %s has %u arguments and %s takes at most %u", info->name,
                 info->arg_count, dev->base.info.name, dev->max_args);
        return NULL;
    }
    struct gvk_kernel *kernel = calloc(1, sizeof *kernel);
    if (kernel == NULL) {
        grt_fail(GRT_NO_MEMORY, "no memory for the record of kernel %s", info->name);
        return NULL;
    }
    kernel->dev = dev;
    if (!create_layout(kernel, info) || !create_pipeline(kernel, info, spec_values)) {
        gvk_kernel_destroy(&kernel->base);
        return NULL;
    }
    name_pipeline(kernel, info->name);
    return &kernel->base;
}

void gvk_kernel_destroy(struct grt_kernel *base) {
    struct gvk_kernel *kernel = (struct gvk_kernel *)base;
    struct gvk_dev *dev = kernel->dev;
    if (kernel->module) {
        gvk_import_destroy(kernel);
        return;
    }
    dev->vk.vkDestroyPipeline(dev->handle, kernel->handle, NULL);
    dev->vk.vkDestroyPipelineLayout(dev->handle, kernel->layout, NULL);
    dev->vk.vkDestroyDescriptorSetLayout(dev->handle, kernel->set_layout, NULL);
    free(kernel);
}
