// SPDX-License-Identifier: Apache-2.0
// What the Vulkan backend tells a driver of kernels, and what it does with the answers: pipelines
// and their layouts, and pipelines on disk. The driver is made up.
#include "harness/harness.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/vulkan/vulkan.h"
#include "base/cache.h"
#include "kits/cache_kit.h"

#define HANDLE(type, number) ((type)(uintptr_t)(number))
#define NUMBER(handle) ((unsigned)(uintptr_t)(handle))

static char said[1024];
static int alive;       // of what was made
static int calls_left;  // until one is refused; below 0: never
static VkResult refusal;
static VkResult answer;  // of the cache

static void say(const char *format, ...) GRT_PRINTF(1, 2);
static void say(const char *format, ...) {
    size_t used = strlen(said);
    va_list list;
    va_start(list, format);
    vsnprintf(said + used, sizeof said - used, format, list);
    va_end(list);
}
static void expect_said(const char *want) {
    assert_string_equal(said, want);
    said[0] = '\0';
}

static VkResult make(void) {
    if (calls_left-- == 0) {
        return refusal;
    }
    alive++;
    return VK_SUCCESS;
}

static struct gvk_dev *made_up(void) {
    static struct gvk_dev dev;
    dev = (struct gvk_dev){.base = {.info = {.name = "card"}}, .max_args = 4};
    said[0] = '\0';
    alive = 0;
    calls_left = -1;
    refusal = VK_ERROR_OUT_OF_HOST_MEMORY;
    answer = VK_SUCCESS;
    return &dev;
}

// ---- kernels ----

static VkResult VKAPI_CALL make_set_layout(VkDevice d, const VkDescriptorSetLayoutCreateInfo *info,
                                           const VkAllocationCallbacks *by,
                                           VkDescriptorSetLayout *layout) {
    (void)d, (void)by;
    say(" set layout(");
    for (uint32_t i = 0; i < info->bindingCount; i++) {
        const VkDescriptorSetLayoutBinding *b = &info->pBindings[i];
        assert_true(b->descriptorCount == 1 && b->stageFlags == VK_SHADER_STAGE_COMPUTE_BIT);
        say("%s%u: %u", i ? ", " : "", b->binding, b->descriptorType);
    }
    say(")");
    VkResult result = make();
    *layout = result == VK_SUCCESS ? HANDLE(VkDescriptorSetLayout, 81) : VK_NULL_HANDLE;
    return result;
}
static VkResult VKAPI_CALL make_layout(VkDevice d, const VkPipelineLayoutCreateInfo *info,
                                       const VkAllocationCallbacks *by, VkPipelineLayout *layout) {
    (void)d, (void)by;
    say(" layout(%u sets", info->setLayoutCount);
    assert_true(info->setLayoutCount == 0 || NUMBER(info->pSetLayouts[0]) == 81);
    for (uint32_t i = 0; i < info->pushConstantRangeCount; i++) {
        assert_int_equal(info->pPushConstantRanges[i].stageFlags, VK_SHADER_STAGE_COMPUTE_BIT);
        say(", %u+%u", info->pPushConstantRanges[i].offset, info->pPushConstantRanges[i].size);
    }
    say(")");
    VkResult result = make();
    *layout = result == VK_SUCCESS ? HANDLE(VkPipelineLayout, 82) : VK_NULL_HANDLE;
    return result;
}
static VkResult VKAPI_CALL make_module(VkDevice d, const VkShaderModuleCreateInfo *info,
                                       const VkAllocationCallbacks *by, VkShaderModule *module) {
    (void)d, (void)by;
    say(" module(%u: %x)", (unsigned)info->codeSize, info->pCode[0]);
    *module = HANDLE(VkShaderModule, 83);
    return make();
}
static VkResult VKAPI_CALL make_pipeline(VkDevice d, VkPipelineCache cache, uint32_t count,
                                         const VkComputePipelineCreateInfo *info,
                                         const VkAllocationCallbacks *by, VkPipeline *pipeline) {
    (void)d, (void)by;
    const VkSpecializationInfo *specs = info->stage.pSpecializationInfo;
    assert_true(count == 1 && NUMBER(info->stage.module) == 83 && NUMBER(info->layout) == 82);
    assert_int_equal(info->stage.stage, VK_SHADER_STAGE_COMPUTE_BIT);
    assert_int_equal(specs->dataSize, 4 * specs->mapEntryCount);
    say(" pipeline(%s, cache %u", info->stage.pName, NUMBER(cache));
    for (uint32_t i = 0; i < specs->mapEntryCount; i++) {
        uint32_t value = 0;
        assert_int_equal(specs->pMapEntries[i].size, 4);
        memcpy(&value, (const char *)specs->pData + specs->pMapEntries[i].offset, 4);
        say(", %u=%u", specs->pMapEntries[i].constantID, value);
    }
    say(")");
    *pipeline = HANDLE(VkPipeline, 84);
    return make();
}
static void VKAPI_CALL end_set_layout(VkDevice d, VkDescriptorSetLayout layout,
                                      const VkAllocationCallbacks *by) {
    (void)d, (void)by;
    alive -= layout != VK_NULL_HANDLE;
}
static void VKAPI_CALL end_layout(VkDevice d, VkPipelineLayout layout,
                                  const VkAllocationCallbacks *by) {
    (void)d, (void)by;
    alive -= layout != VK_NULL_HANDLE;
}
static void VKAPI_CALL end_module(VkDevice d, VkShaderModule module,
                                  const VkAllocationCallbacks *by) {
    (void)d, (void)by;
    assert_int_equal(NUMBER(module), 83);
    alive--;
}
static void VKAPI_CALL end_pipeline(VkDevice d, VkPipeline pipeline,
                                    const VkAllocationCallbacks *by) {
    (void)d, (void)by;
    alive -= pipeline != VK_NULL_HANDLE;
}
static VkResult VKAPI_CALL name_it(VkDevice d, const VkDebugUtilsObjectNameInfoEXT *info) {
    (void)d;
    assert_int_equal(info->objectType, VK_OBJECT_TYPE_PIPELINE);
    say(" name(%u, %s)", (unsigned)info->objectHandle, info->pObjectName);
    return VK_SUCCESS;
}

static struct gvk_dev *compiles(void) {
    struct gvk_dev *dev = made_up();
    dev->vk.vkCreateDescriptorSetLayout = make_set_layout;
    dev->vk.vkCreatePipelineLayout = make_layout;
    dev->vk.vkCreateShaderModule = make_module;
    dev->vk.vkCreateComputePipelines = make_pipeline;
    dev->vk.vkDestroyDescriptorSetLayout = end_set_layout;
    dev->vk.vkDestroyPipelineLayout = end_layout;
    dev->vk.vkDestroyShaderModule = end_module;
    dev->vk.vkDestroyPipeline = end_pipeline;
    dev->cache = HANDLE(VkPipelineCache, 48);
    return dev;
}

// A pipeline has its kernel's bindings, parameters up to whole words, constants in their order and
// behind them the dialect's own.
static void kernels(void **state) {
    (void)state;
    static const struct grt_arg_info args[] = {
        {"x", "float", GRT_READ}, {"t", "texels", GRT_READ}, {"y", "u16", GRT_WRITE}};
    static const struct grt_spec_info specs[] = {{"WG", 64}, {"BN", 128}};
    static const uint32_t code[] = {0x07230203, 1};
    struct grt_kernel_info info = {.name = "made_up",
                                   .args = args,
                                   .arg_count = 3,
                                   .params_size = 9,
                                   .specs = specs,
                                   .spec_count = 2,
                                   .spirv = code,
                                   .spirv_size = 8};
    const uint32_t values[] = {96, 7};
    struct gvk_dev *dev = compiles();
    dev->software = 1;
    struct grt_kernel *kernel = gvk_kernel_create(&dev->base, &info, values);
    assert_non_null(kernel);
    expect_said(" set layout(0: 7, 1: 4, 2: 7) layout(1 sets, 0+12) module(8: 7230203)"
                " pipeline(main, cache 48, 0=96, 1=7, 100=1)");
    assert_int_equal(((struct gvk_kernel *)kernel)->params_size, 12);
    assert_int_equal(alive, 3);  // the module is not kept
    gvk_kernel_destroy(kernel);
    assert_int_equal(alive, 0);
    // Without buffers and parameters, on a GPU; and with a name for who asks.
    info.arg_count = info.params_size = 0;
    info.spec_count = 1;
    dev->software = 0;
    dev->instance.SetDebugUtilsObjectNameEXT = name_it;
    kernel = gvk_kernel_create(&dev->base, &info, values);
    assert_non_null(kernel);
    expect_said(" layout(0 sets) module(8: 7230203) pipeline(main, cache 48, 0=96, 100=0)"
                " name(84, made_up)");
    gvk_kernel_destroy(kernel);
    assert_int_equal(alive, 0);
    // As many arguments as a stage takes, and one more.
    info.arg_count = 3;
    dev->max_args = 3;
    kernel = gvk_kernel_create(&dev->base, &info, values);
    assert_non_null(kernel);
    gvk_kernel_destroy(kernel);
    dev->max_args = 2;
    TEST_REFUSED(gvk_kernel_create(&dev->base, &info, values), GRT_UNSUPPORTED,
                 "kernel made_up has 3 arguments and card takes at most 2");
    info.spirv = NULL;
    TEST_REFUSED(gvk_kernel_create(&dev->base, &info, values), GRT_UNSUPPORTED,
                 "kernel made_up has no Vulkan reading");
}

// Whichever call is refused, nothing is left; a driver that cannot compile is no lack of memory.
static void kernels_refused(void **state) {
    (void)state;
    static const struct grt_arg_info args[] = {{"x", "float", GRT_UPDATE}};
    static const struct grt_spec_info specs[] = {{"WG", 64}};
    static const uint32_t code[] = {0x07230203};
    static const struct grt_kernel_info info = {.name = "made_up",
                                                .args = args,
                                                .arg_count = 1,
                                                .specs = specs,
                                                .spec_count = 1,
                                                .spirv = code,
                                                .spirv_size = 4};
    static const char *const words[] = {
        "kernel made_up: vkCreateDescriptorSetLayout failed",
        "kernel made_up: vkCreatePipelineLayout failed",
        "kernel made_up: vkCreateShaderModule failed",
        "card did not compile the kernel made_up (WG 96)",
    };
    const uint32_t values[] = {96};
    for (int refused = 0; refused < 4; refused++) {
        struct gvk_dev *dev = compiles();
        calls_left = refused;
        TEST_REFUSED(gvk_kernel_create(&dev->base, &info, values), GRT_NO_MEMORY, words[refused]);
        assert_int_equal(alive, 0);
        calls_left = refused;
        refusal = VK_ERROR_INITIALIZATION_FAILED;
        TEST_REFUSED(gvk_kernel_create(&dev->base, &info, values), GRT_COMPILE, words[refused]);
        assert_int_equal(alive, 0);
        assert_int_equal(dev->base.status, GRT_OK);
    }
}

// ---- pipelines on disk ----

static size_t cache_bytes;
static int cache_asked;
static VkResult VKAPI_CALL tell_cache(VkDevice d, VkPipelineCache cache, size_t *size, void *data) {
    (void)d;
    assert_int_equal(NUMBER(cache), 48);
    cache_asked++;
    if (data) {
        assert_int_equal(*size, cache_bytes);
        memset(data, 0x5a, cache_bytes);
    }
    *size = cache_bytes;
    return answer;
}

// Pipelines go to disk when there are more of them than it has, and never of a lost device.
static void pipelines_are_kept(void **state) {
    (void)state;
    const size_t head = sizeof(VkPipelineCacheHeaderVersionOne);
    struct gvk_dev *dev = made_up();
    const struct {
        size_t has, bytes;
        VkResult answer;
        enum grt_status status;
        bool stored;
    } rows[] = {
        {0, head + 8, VK_SUCCESS, GRT_OK, true},
        {head + 8, head + 8, VK_SUCCESS, GRT_OK, false},
        {head + 8, head + 9, VK_SUCCESS, GRT_OK, true},
        {0, head, VK_SUCCESS, GRT_OK, false},
        {0, head + 1, VK_SUCCESS, GRT_OK, true},
        {0, head + 8, VK_SUCCESS, GRT_LOST, false},
        {0, head + 8, VK_ERROR_OUT_OF_HOST_MEMORY, GRT_OK, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dev = made_up();
        dev->vk.vkGetPipelineCacheData = tell_cache;
        dev->cache = HANDLE(VkPipelineCache, 48);
        dev->cache_size = rows[i].has;
        dev->base.status = rows[i].status;
        snprintf(dev->cache_key, sizeof dev->cache_key, "row %zu", i);
        cache_bytes = rows[i].bytes;
        answer = rows[i].answer;
        gvk_cache_store(dev);
        size_t size = 0;
        void *data = grt_cache_load(dev->cache_key, &size);
        assert_int_equal(data != NULL, rows[i].stored);
        assert_int_equal(size, rows[i].stored ? rows[i].bytes : 0);
        assert_int_equal(dev->cache_size, rows[i].stored ? rows[i].bytes : rows[i].has);
        free(data);
    }
    cache_asked = 0;
    dev->cache = VK_NULL_HANDLE;
    gvk_cache_store(dev);
    assert_int_equal(cache_asked, 0);
}

static int caches_refused;
static VkResult VKAPI_CALL refuse_cache(VkDevice d, const VkPipelineCacheCreateInfo *info,
                                        const VkAllocationCallbacks *by, VkPipelineCache *cache) {
    (void)d, (void)by;
    say(" cache(%u%s)", (unsigned)info->initialDataSize, info->pInitialData ? ", data" : "");
    *cache = HANDLE(VkPipelineCache, 48);
    return caches_refused-- > 0 ? VK_ERROR_UNKNOWN : VK_SUCCESS;
}
static void VKAPI_CALL tell_card(VkPhysicalDevice card, VkPhysicalDeviceProperties *p) {
    (void)card;
    *p = (VkPhysicalDeviceProperties){.vendorID = 7, .deviceID = 9};
}

// A driver that refuses its own pipelines gets none; one that refuses those too is not opened.
static void pipelines_that_are_refused(void **state) {
    (void)state;
    const struct grt_dev_info info = {.name = "card", .driver_version = "1"};
    const VkPipelineCacheHeaderVersionOne head = {.headerSize = sizeof head,
                                                  .headerVersion =
                                                      VK_PIPELINE_CACHE_HEADER_VERSION_ONE,
                                                  .vendorID = 7,
                                                  .deviceID = 9};
    struct gvk_dev *dev = made_up();
    dev->instance.GetPhysicalDeviceProperties = tell_card;
    dev->vk.vkCreatePipelineCache = refuse_cache;
    assert_true(gvk_cache_open(dev, &info));  // makes the key
    expect_said(" cache(0)");
    assert_true(grt_cache_store(dev->cache_key, &head, sizeof head));
    caches_refused = 0;
    assert_true(gvk_cache_open(dev, &info));
    expect_said(" cache(32, data)");
    assert_int_equal(dev->cache_size, sizeof head);
    caches_refused = 1;
    assert_true(gvk_cache_open(dev, &info));
    expect_said(" cache(32, data) cache(0)");
    assert_int_equal(dev->cache_size, 0);
    caches_refused = 2;
    TEST_REFUSED(gvk_cache_open(dev, &info), GRT_NO_DEVICE, "vkCreatePipelineCache failed");
    assert_true(dev->cache == VK_NULL_HANDLE);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(kernels),
    TEST_CASE(kernels_refused),
    CACHE_CASE(pipelines_are_kept),
    CACHE_CASE(pipelines_that_are_refused),
};
TEST_SUITE(vkkernels, false, cases);
