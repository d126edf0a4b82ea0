// SPDX-License-Identifier: Apache-2.0
// What ci/static_check.sh asks of gpurt's kernels, without a device to run them.
//
//   kernel_stats list               every kernel: name, its readings, its vendor, its constants
//   kernel_stats vulkan < JOBS      pipelines of the first Vulkan device, which may be one that
//                                   only compiles: Mesa's RADV with RADV_FORCE_FAMILY
//
// A job is a line "KERNEL NAME=VALUE...", constants that are not named being as in the kernel. The
// answer is a line "KERNEL", tab, "statistic=number;...", or "error=TEXT".
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VK_NO_PROTOTYPES
#include <volk.h>

#include "backends/kernel_info.h"

#define MAX_SPECS 64
#define MAX_ARGS 32
#define SPEC_SOFTWARE 100  // id of SOFTWARE in shaders/dialect.h

static void list(void) {
    for (size_t i = 0; grt_kernel_table[i]; i++) {
        const struct grt_kernel_info *k = grt_kernel_table[i];
        printf("%s\t%s%s%s\t%s\t", k->name, k->opencl ? "opencl " : "", k->spirv ? "vulkan " : "",
               k->lane ? "c" : "", k->vendor ? k->vendor : "-");
        for (uint32_t s = 0; s < k->spec_count; s++) {
            printf("%s%s=%u", s ? " " : "", k->specs[s].name, k->specs[s].value);
        }
        putchar('\n');
    }
}

static const struct grt_kernel_info *find(const char *name) {
    for (size_t i = 0; grt_kernel_table[i]; i++) {
        if (strcmp(grt_kernel_table[i]->name, name) == 0) {
            return grt_kernel_table[i];
        }
    }
    return NULL;
}

// ---- the device ----

struct driver {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice dev;
};

// With every feature the driver has: what a kernel needs is what it is compiled with.
static const char *open_driver(struct driver *d) {
    const VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                   .apiVersion = VK_API_VERSION_1_3};
    const VkInstanceCreateInfo create = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                         .pApplicationInfo = &app};
    uint32_t count = 1, extensions = 0;
    VkExtensionProperties known[512];
    if (volkInitialize() != VK_SUCCESS ||
        vkCreateInstance(&create, NULL, &d->instance) != VK_SUCCESS) {
        return "no Vulkan";
    }
    volkLoadInstance(d->instance);
    if (vkEnumeratePhysicalDevices(d->instance, &count, &d->physical) < 0 || count == 0) {
        return "no Vulkan device";
    }
    extensions = sizeof known / sizeof *known;
    vkEnumerateDeviceExtensionProperties(d->physical, NULL, &extensions, known);
    const char *wanted = VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME;
    bool told = false;
    for (uint32_t i = 0; i < extensions; i++) {
        told = told || strcmp(known[i].extensionName, wanted) == 0;
    }
    if (!told) {
        return "a driver that says nothing of its pipelines";
    }
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executable = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
    VkPhysicalDeviceVulkan13Features f13 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES, .pNext = &executable};
    VkPhysicalDeviceVulkan12Features f12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = &f13};
    VkPhysicalDeviceVulkan11Features f11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, .pNext = &f12};
    VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                          .pNext = &f11};
    vkGetPhysicalDeviceFeatures2(d->physical, &features);
    features.features.robustBufferAccess = VK_FALSE;
    float priority = 1;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo device = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                       .pNext = &features,
                                       .queueCreateInfoCount = 1,
                                       .pQueueCreateInfos = &queue,
                                       .enabledExtensionCount = 1,
                                       .ppEnabledExtensionNames = &wanted};
    if (vkCreateDevice(d->physical, &device, NULL, &d->dev) != VK_SUCCESS) {
        return "vkCreateDevice failed";
    }
    volkLoadDevice(d->dev);
    return NULL;
}

// ---- pipelines ----

static void print_statistics(const struct driver *d, const char *name, VkPipeline pipeline) {
    const VkPipelineExecutableInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, .pipeline = pipeline};
    VkPipelineExecutableStatisticKHR statistics[64];
    uint32_t count = sizeof statistics / sizeof *statistics;
    for (uint32_t i = 0; i < count; i++) {
        statistics[i] = (VkPipelineExecutableStatisticKHR){
            .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR};
    }
    if (vkGetPipelineExecutableStatisticsKHR(d->dev, &info, &count, statistics) < 0) {
        count = 0;
    }
    printf("%s\t", name);
    for (uint32_t i = 0; i < count; i++) {
        const VkPipelineExecutableStatisticKHR *s = &statistics[i];
        if (s->format == VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR) {
            printf("%s=%llu;", s->name, (unsigned long long)s->value.u64);
        }
    }
    putchar('\n');
}

static VkPipelineLayout layout_of(const struct driver *d, const struct grt_kernel_info *k,
                                  VkDescriptorSetLayout *set) {
    VkDescriptorSetLayoutBinding bindings[MAX_ARGS];
    for (uint32_t i = 0; i < k->arg_count; i++) {
        bool texels = strcmp(k->args[i].type, "texels") == 0;
        bindings[i] = (VkDescriptorSetLayoutBinding){
            .binding = i,
            .descriptorType = texels ? VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER
                                     : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        };
    }
    const VkDescriptorSetLayoutCreateInfo create = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = k->arg_count,
        .pBindings = bindings};
    const VkPushConstantRange params = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                        .size = (k->params_size + 3) / 4 * 4};
    const VkPipelineLayoutCreateInfo layout = {.sType =
                                                   VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .setLayoutCount = 1,
                                               .pSetLayouts = set,
                                               .pushConstantRangeCount = params.size > 0,
                                               .pPushConstantRanges = &params};
    VkPipelineLayout made = VK_NULL_HANDLE;
    if (vkCreateDescriptorSetLayout(d->dev, &create, NULL, set) == VK_SUCCESS) {
        (void)vkCreatePipelineLayout(d->dev, &layout, NULL, &made);
    }
    return made;
}

static const char *build(const struct driver *d, const struct grt_kernel_info *k,
                         const uint32_t *specs) {
    VkSpecializationMapEntry entries[MAX_SPECS + 1];
    uint32_t values[MAX_SPECS + 1] = {0};
    for (uint32_t i = 0; i <= k->spec_count; i++) {
        values[i] = i < k->spec_count ? specs[i] : 0;
        entries[i] = (VkSpecializationMapEntry){.constantID = i < k->spec_count ? i : SPEC_SOFTWARE,
                                                .offset = i * (uint32_t)sizeof *values,
                                                .size = sizeof *values};
    }
    const VkSpecializationInfo info = {.mapEntryCount = k->spec_count + 1,
                                       .pMapEntries = entries,
                                       .dataSize = sizeof values,
                                       .pData = values};
    const VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                           .codeSize = k->spirv_size,
                                           .pCode = k->spirv};
    VkShaderModule module = VK_NULL_HANDLE;
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    VkPipelineLayout layout = layout_of(d, k, &set);
    VkPipeline pipeline = VK_NULL_HANDLE;
    const char *why = NULL;
    if (!layout || vkCreateShaderModule(d->dev, &code, NULL, &module) != VK_SUCCESS) {
        return "the driver refuses its code";
    }
    const VkComputePipelineCreateInfo create = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .flags = VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main",
                  .pSpecializationInfo = &info},
        .layout = layout};
    if (vkCreateComputePipelines(d->dev, VK_NULL_HANDLE, 1, &create, NULL, &pipeline) < 0) {
        why = "the driver refuses its pipeline";
    } else {
        print_statistics(d, k->name, pipeline);
        vkDestroyPipeline(d->dev, pipeline, NULL);
    }
    vkDestroyShaderModule(d->dev, module, NULL);
    vkDestroyPipelineLayout(d->dev, layout, NULL);
    vkDestroyDescriptorSetLayout(d->dev, set, NULL);
    return why;
}

// Matrices and bfloats, which a driver without them may crash on.
static bool cooperative(const struct grt_kernel_info *k) {
    for (size_t i = 5; i + 1 < k->spirv_size / 4 && (k->spirv[i] & 0xffff) == 17;
         i += k->spirv[i] >> 16) {
        uint32_t capability = k->spirv[i + 1];
        if (capability == 6022 || capability == 5357 ||
            (capability >= 5116 && capability <= 5118)) {
            return true;
        }
    }
    return false;
}

static const char *run(const struct driver *d, char *line) {
    uint32_t specs[MAX_SPECS];
    const struct grt_kernel_info *k = find(strtok(line, " \n"));
    if (!k || !k->spirv || k->spec_count > MAX_SPECS || k->arg_count > MAX_ARGS) {
        return "no such kernel";
    }
    if (cooperative(k)) {
        return "this driver has no cooperative matrices";
    }
    for (uint32_t i = 0; i < k->spec_count; i++) {
        specs[i] = k->specs[i].value;
    }
    for (char *word; (word = strtok(NULL, " \n")) != NULL;) {
        size_t length = strcspn(word, "=");
        for (uint32_t i = 0; i < k->spec_count; i++) {
            if (strlen(k->specs[i].name) == length &&
                strncmp(word, k->specs[i].name, length) == 0 && word[length]) {
                specs[i] = (uint32_t)strtoul(word + length + 1, NULL, 10);
            }
        }
    }
    return build(d, k, specs);
}

int main(int argc, char **argv) {
    struct driver driver = {0};
    char line[4096];
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        list();
        return 0;
    }
    if (argc != 2 || strcmp(argv[1], "vulkan") != 0) {
        fputs("usage: kernel_stats list | kernel_stats vulkan < JOBS\n", stderr);
        return 64;
    }
    const char *why = open_driver(&driver);
    if (why) {
        fprintf(stderr, "kernel_stats: %s\n", why);
        return 69;
    }
    while (fgets(line, sizeof line, stdin)) {
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(line, " \n"), line);
        why = *name ? run(&driver, line) : NULL;
        if (why) {
            printf("%s\terror=%s\n", name, why);
        }
        fflush(stdout);
    }
    return 0;
}
