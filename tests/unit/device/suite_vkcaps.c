// SPDX-License-Identifier: Apache-2.0
// What the Vulkan backend reads out of a driver's answers, and how its lanes wait for each other.
// The cards are made up: a CPU driver has no PCI place, no matrix shapes, one heap and one queue.
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/vulkan/vulkan.h"

// ---- cards ----

struct card {
    VkPhysicalDeviceProperties properties;
    VkDriverId driver;
    const char *driver_info;
    const char *exts[8];
    VkQueueFamilyProperties families[5];
    uint32_t family_count;
    VkPhysicalDeviceMemoryProperties memory;
    bool no_timeline, matrices;
};

#define ALL_QUEUES (VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT)
static struct card cards[] = {
    {.properties = {.apiVersion = VK_MAKE_API_VERSION(0, 1, 1, 9), .deviceName = "old"}},
    {.properties = {.apiVersion = VK_API_VERSION_1_2, .deviceName = "of pictures"},
     .families = {{VK_QUEUE_GRAPHICS_BIT, 1, 64, {1, 1, 1}}},
     .family_count = 1},
    {.properties = {.apiVersion = VK_API_VERSION_1_2, .deviceName = "without time"},
     .families = {{ALL_QUEUES, 1, 64, {1, 1, 1}}},
     .family_count = 1,
     .no_timeline = true},
    {.properties = {.apiVersion = VK_MAKE_API_VERSION(0, 1, 4, 312),
                    .driverVersion = 580u << 22 | 159u << 14 | 4u << 6 | 1u,
                    .vendorID = 0x10de,
                    .deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
                    .deviceName = "Made Up H",
                    .limits = {.maxComputeWorkGroupInvocations = 1024,
                               .maxComputeWorkGroupSize = {2048, 1, 1},
                               .maxComputeWorkGroupCount = {70000, 80000, 90000},
                               .maxComputeSharedMemorySize = 49152,
                               .minStorageBufferOffsetAlignment = 4,
                               .minTexelBufferOffsetAlignment = 16,
                               .maxTexelBufferElements = 1u << 27,
                               .maxStorageBufferRange = 4294967295u,
                               .timestampPeriod = 1.0f}},
     .driver = VK_DRIVER_ID_NVIDIA_PROPRIETARY,
     .driver_info = "",
     .exts = {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME,
              VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME, VK_NVX_BINARY_IMPORT_EXTENSION_NAME},
     .families = {{VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_TRANSFER_BIT, 1, 12, {1, 1, 1}},
                  {ALL_QUEUES, 16, 64, {1, 1, 1}},
                  {VK_QUEUE_TRANSFER_BIT | VK_QUEUE_VIDEO_DECODE_BIT_KHR, 1, 32, {1, 1, 1}},
                  {VK_QUEUE_TRANSFER_BIT | VK_QUEUE_SPARSE_BINDING_BIT, 2, 48, {1, 1, 1}},
                  {VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT, 8, 40, {1, 1, 1}}},
     .family_count = 5,
     .memory = {.memoryHeapCount = 4,
                .memoryHeaps = {{100, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT},
                                {300, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT},
                                {900, 0},
                                {200, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT}}},
     .matrices = true},
    {.properties = {.apiVersion = VK_MAKE_API_VERSION(0, 1, 2, 7),
                    .driverVersion = VK_MAKE_API_VERSION(0, 2, 3, 4),
                    .vendorID = 0xbeef,
                    .deviceType = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
                    .deviceName = "Made Up I",
                    .limits = {.maxComputeWorkGroupInvocations = 512,
                               .maxComputeWorkGroupSize = {256, 1, 1},
                               .minStorageBufferOffsetAlignment = 64,
                               .minTexelBufferOffsetAlignment = 256,
                               .maxTexelBufferElements = 1u << 27,
                               .maxStorageBufferRange = 1000}},
     .driver_info = "",
     .exts = {VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME},
     .families = {{ALL_QUEUES, 2, 36, {1, 1, 1}}},
     .family_count = 1,
     .memory = {.memoryHeapCount = 1, .memoryHeaps = {{50, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT}}}},
};
#define CARDS (sizeof cards / sizeof cards[0])

static const struct card *card_of(VkPhysicalDevice handle) {
    return &cards[(uintptr_t)handle - 1];
}

static VkResult VKAPI_CALL list_cards(VkInstance instance, uint32_t *count,
                                      VkPhysicalDevice *list) {
    (void)instance;
    assert_true(*count >= CARDS);
    *count = CARDS;
    for (uintptr_t i = 0; i < CARDS; i++) {
        list[i] = (VkPhysicalDevice)(i + 1);
    }
    return VK_SUCCESS;
}

static VkResult VKAPI_CALL exts_of(VkPhysicalDevice handle, const char *layer, uint32_t *count,
                                   VkExtensionProperties *list) {
    const struct card *card = card_of(handle);
    (void)layer;
    uint32_t there = 0;
    for (; card->exts[there]; there++) {
        if (list) {
            snprintf(list[there].extensionName, sizeof list[there].extensionName, "%s",
                     card->exts[there]);
        }
    }
    *count = there;
    return VK_SUCCESS;
}

static void VKAPI_CALL properties_of(VkPhysicalDevice handle, VkPhysicalDeviceProperties *p) {
    *p = card_of(handle)->properties;
}

static void VKAPI_CALL families_of(VkPhysicalDevice handle, uint32_t *count,
                                   VkQueueFamilyProperties *list) {
    const struct card *card = card_of(handle);
    assert_true(*count >= card->family_count);
    *count = card->family_count;
    memcpy(list, card->families, sizeof card->families);
}

static void VKAPI_CALL features_of(VkPhysicalDevice handle, VkPhysicalDeviceFeatures2 *f) {
    f->features.shaderInt16 = VK_TRUE;
    for (VkBaseOutStructure *s = f->pNext; s; s = s->pNext) {
        if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES) {
            ((VkPhysicalDeviceVulkan12Features *)s)->timelineSemaphore =
                !card_of(handle)->no_timeline;
            ((VkPhysicalDeviceVulkan12Features *)s)->bufferDeviceAddress = VK_TRUE;
        } else if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR) {
            ((VkPhysicalDeviceCooperativeMatrixFeaturesKHR *)s)->cooperativeMatrix = VK_TRUE;
        }
    }
}

static void VKAPI_CALL more_properties_of(VkPhysicalDevice handle, VkPhysicalDeviceProperties2 *p) {
    const struct card *card = card_of(handle);
    p->properties = card->properties;
    for (VkBaseOutStructure *s = p->pNext; s; s = s->pNext) {
        if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES) {
            ((VkPhysicalDeviceVulkan11Properties *)s)->subgroupSize = 32;
            ((VkPhysicalDeviceVulkan11Properties *)s)->maxMemoryAllocationSize = 4099;
        } else if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES) {
            VkPhysicalDeviceDriverProperties *driver = (VkPhysicalDeviceDriverProperties *)s;
            driver->driverID = card->driver;
            snprintf(driver->driverName, sizeof driver->driverName, "made up");
            snprintf(driver->driverInfo, sizeof driver->driverInfo, "%s", card->driver_info);
        } else if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES) {
            ((VkPhysicalDeviceMaintenance4Properties *)s)->maxBufferSize = 2050;
        } else if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT) {
            VkPhysicalDevicePCIBusInfoPropertiesEXT *pci =
                (VkPhysicalDevicePCIBusInfoPropertiesEXT *)s;
            pci->pciDomain = 2;
            pci->pciBus = 0x65;
            pci->pciDevice = 5;
            pci->pciFunction = 3;
        } else if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV) {
            ((VkPhysicalDeviceShaderSMBuiltinsPropertiesNV *)s)->shaderSMCount = 132;
        } else if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD) {
            VkPhysicalDeviceShaderCorePropertiesAMD *core =
                (VkPhysicalDeviceShaderCorePropertiesAMD *)s;
            core->shaderEngineCount = 4;
            core->shaderArraysPerEngineCount = 2;
            core->computeUnitsPerShaderArray = 10;
        }
    }
}

static void VKAPI_CALL memory_of(VkPhysicalDevice handle, VkPhysicalDeviceMemoryProperties2 *m) {
    m->memoryProperties = card_of(handle)->memory;
}

#define SHAPE(m, n, k, a, b, c, d, scope)                                                          \
    {                                                                                              \
        VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR, NULL, m, n, k, a, b, c, d, VK_FALSE,  \
            scope                                                                                  \
    }
#define FLOAT16 VK_COMPONENT_TYPE_FLOAT16_KHR
#define FLOAT32 VK_COMPONENT_TYPE_FLOAT32_KHR
#define FLOAT64 ((VkComponentTypeKHR)2)
#define SINT8 VK_COMPONENT_TYPE_SINT8_KHR
#define SINT32 VK_COMPONENT_TYPE_SINT32_KHR
#define SUBGROUP VK_SCOPE_SUBGROUP_KHR
#define WORKGROUP ((VkScopeKHR)2)
static VkResult VKAPI_CALL shapes_of(VkPhysicalDevice handle, uint32_t *count,
                                     VkCooperativeMatrixPropertiesKHR *list) {
    static const VkCooperativeMatrixPropertiesKHR shapes[] = {
        SHAPE(16, 8, 32, FLOAT16, FLOAT16, FLOAT32, FLOAT32, SUBGROUP),
        SHAPE(16, 8, 32, FLOAT16, FLOAT16, FLOAT32, FLOAT32, SUBGROUP),  // again
        SHAPE(16, 8, 32, FLOAT16, FLOAT16, FLOAT16, FLOAT16, SUBGROUP),
        SHAPE(16, 8, 64, FLOAT16, FLOAT16, FLOAT32, FLOAT32, WORKGROUP),  // not ours
        SHAPE(16, 8, 128, FLOAT16, SINT8, FLOAT32, FLOAT32, SUBGROUP),    // two kinds
        SHAPE(16, 8, 256, FLOAT16, FLOAT16, FLOAT16, FLOAT32, SUBGROUP),  // two kinds of sums
        SHAPE(16, 8, 512, FLOAT64, FLOAT64, FLOAT64, FLOAT64, SUBGROUP),  // not ours either
        SHAPE(16, 16, 32, SINT8, SINT8, SINT32, SINT32, SUBGROUP),
    };
    assert_true(card_of(handle)->matrices && *count >= sizeof shapes / sizeof *shapes);
    *count = sizeof shapes / sizeof *shapes;
    memcpy(list, shapes, sizeof shapes);
    return VK_SUCCESS;
}

static const struct gvk_instance instance = {
    .EnumeratePhysicalDevices = list_cards,
    .EnumerateDeviceExtensionProperties = exts_of,
    .GetPhysicalDeviceProperties = properties_of,
    .GetPhysicalDeviceQueueFamilyProperties = families_of,
    .GetPhysicalDeviceFeatures2 = features_of,
    .GetPhysicalDeviceProperties2 = more_properties_of,
    .GetPhysicalDeviceMemoryProperties2 = memory_of,
    .GetPhysicalDeviceCooperativeMatrixPropertiesKHR = shapes_of,
};

static void cards_are_read(void **state) {
    (void)state;
    char problem[GVK_PROBLEM_SIZE] = "";
    uint32_t count = 0;
    struct gvk_physical *list = gvk_physical_list(&instance, &count, problem);
    assert_non_null(list);
    assert_int_equal(count, 2);
    struct grt_dev_info info = {0};
    const struct grt_caps *caps = &info.caps;

    // It imports kernels, so its work goes to the queues without graphics; its copies go to those
    // that do nothing else.
    assert_int_equal(list[0].family, 4);
    assert_int_equal(list[0].timestamp_bits, 40);
    assert_false(list[0].graphics);
    assert_true(list[0].has_aside && list[0].is_13);
    assert_int_equal(list[0].aside, 3);
    assert_int_equal(list[0].aside_index, 0);
    assert_int_equal(list[0].aside_bits, 48);
    gvk_physical_describe(&instance, &list[0], &info);
    assert_string_equal(info.name, "Made Up H");
    assert_string_equal(info.vendor, "NVIDIA");
    assert_string_equal(info.driver, "made up");
    assert_string_equal(info.driver_version, "580.159.4.1");
    assert_string_equal(info.api_version, "1.4.312");
    assert_string_equal(info.pci, "0002:65:05.3");
    assert_true(!caps->software && !caps->integrated && caps->timestamps && caps->i16_arith);
    assert_int_equal(caps->compute_units, 132);
    assert_int_equal(caps->subgroup, 32);
    assert_int_equal(caps->max_wg, 1024);
    assert_int_equal(caps->max_groups[0], 70000);
    assert_int_equal(caps->max_groups[2], 90000);
    assert_int_equal(caps->shmem, 49152);
    assert_int_equal(caps->align, 16);
    assert_true(caps->max_binding == 4294967280u && caps->max_texels == 1u << 27);
    assert_int_equal(caps->max_buffer, 2048);
    assert_int_equal(caps->memory, 300);
    assert_true(caps->mma_layout && caps->imports);
    static const struct grt_matrix_shape want[] = {{16, 8, 32, GRT_F16, GRT_F32},
                                                   {16, 8, 32, GRT_F16, GRT_F16},
                                                   {16, 16, 32, GRT_I8, GRT_I32}};
    assert_int_equal(caps->matrix_shape_count, 3);
    assert_memory_equal(caps->matrix_shapes, want, sizeof want);

    // Its copies go to the second queue of the one family.
    assert_int_equal(list[1].family, 0);
    assert_true(list[1].graphics);
    assert_true(list[1].has_aside && !list[1].is_13);
    assert_int_equal(list[1].aside, 0);
    assert_int_equal(list[1].aside_index, 1);
    assert_int_equal(list[1].aside_bits, 36);
    info = (struct grt_dev_info){0};
    gvk_physical_describe(&instance, &list[1], &info);
    assert_string_equal(info.vendor, "vendor 0xbeef");
    assert_string_equal(info.driver_version, "2.3.4");
    assert_string_equal(info.pci, "");
    assert_true(caps->integrated && !caps->timestamps && !caps->mma_layout && !caps->imports);
    assert_int_equal(caps->compute_units, 80);
    assert_int_equal(caps->max_wg, 256);
    assert_int_equal(caps->align, 64);
    assert_int_equal(caps->max_binding, 960);
    assert_int_equal(caps->max_texels, 0);
    assert_int_equal(caps->max_buffer, 4096);
    assert_int_equal(caps->memory, 50);
    assert_int_equal(caps->matrix_shape_count, 0);
    free(list);
}

// ---- lanes of Vulkan with queues of their own ----

static struct {
    VkQueue queue;
    uint32_t waits;
    VkSemaphore waited, signalled;
    uint64_t wait_value, value, reached;
    uint32_t submits, waited_count;
    uint64_t waited_for[4];
    uint32_t lists;
    VkResult answer;
} submitted;

static VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo *info,
                                  VkFence fence) {
    const VkTimelineSemaphoreSubmitInfo *values = info->pNext;
    assert_true(count == 1 && fence == VK_NULL_HANDLE);
    assert_int_equal(values->waitSemaphoreValueCount, info->waitSemaphoreCount);
    submitted.queue = queue;
    submitted.waits = info->waitSemaphoreCount;
    submitted.waited = info->pWaitSemaphores[0];
    submitted.wait_value = values->pWaitSemaphoreValues[0];
    submitted.signalled = info->pSignalSemaphores[0];
    submitted.value = values->pSignalSemaphoreValues[0];
    submitted.submits++;
    submitted.lists = info->commandBufferCount;
    return submitted.answer;
}

static VkResult VKAPI_CALL value_of(VkDevice device, VkSemaphore timeline, uint64_t *value) {
    (void)device, (void)timeline;
    *value = submitted.reached;
    return VK_SUCCESS;
}

static VkResult VKAPI_CALL wait_for(VkDevice device, const VkSemaphoreWaitInfo *info,
                                    uint64_t timeout) {
    (void)device;
    assert_true(info->semaphoreCount == 1 && timeout == UINT64_MAX);
    submitted.waited_for[submitted.waited_count++] = info->pValues[0];
    return VK_SUCCESS;
}

static const VkQueue queues[] = {(VkQueue)(uintptr_t)8, (VkQueue)(uintptr_t)16};
static const VkSemaphore times[] = {(VkSemaphore)(uintptr_t)24, (VkSemaphore)(uintptr_t)32};

static struct gvk_dev *two_lanes(void) {
    static const struct grt_dev_fns fns = {.hold = gvk_hold, .wait = gvk_wait};
    static struct gvk_dev dev;
    memset(&submitted, 0, sizeof submitted);
    dev = (struct gvk_dev){.base = {.lanes = 2, .fns = &fns}};
    for (int i = 0; i < 2; i++) {
        dev.lanes[i].queue = queues[i];
        dev.lanes[i].timeline = times[i];
    }
    dev.vk.vkQueueSubmit = submit;
    dev.vk.vkGetSemaphoreCounterValue = value_of;
    dev.vk.vkWaitSemaphores = wait_for;
    return &dev;
}

enum { HOW_OFF, HOW_WAIT, HOW_ASK, HOW_AFTER, HOW_FULL, HOW_COUNT };

// Each makes the driver see what is held.
static bool send_held(struct gvk_dev *dev, int how) {
    struct grt_dev *base = &dev->base;
    return how == HOW_OFF     ? grt_dev_hold(base, false)
           : how == HOW_WAIT  ? gvk_lane_wait(base, GRT_LANE_MAIN, 2)
           : how == HOW_ASK   ? gvk_lane_passed(base, GRT_LANE_MAIN, 2)
           : how == HOW_AFTER ? gvk_lane_after(base, GRT_LANE_ASIDE, 2)
                              : gvk_submit(dev, GRT_LANE_MAIN, VK_NULL_HANDLE);
}

// A driver that refuses what was held loses the device. Nobody waits for what never comes.
static void held_lists_that_are_refused(void **state) {
    (void)state;
    for (int how = 0; how < HOW_COUNT; how++) {
        struct gvk_dev *dev = two_lanes();
        struct grt_dev *base = &dev->base;
        assert_true(gvk_submit(dev, GRT_LANE_MAIN, VK_NULL_HANDLE));
        assert_true(grt_dev_hold(base, true));
        for (int i = 0; i < (how == HOW_FULL ? GVK_HELD - 1 : 3); i++) {
            assert_true(gvk_submit(dev, GRT_LANE_MAIN, VK_NULL_HANDLE));
        }
        assert_int_equal(submitted.submits, 1);
        assert_int_equal(gvk_lane_mark(base, GRT_LANE_MAIN), 2);
        submitted.answer = VK_ERROR_OUT_OF_DEVICE_MEMORY;
        TEST_REFUSED(send_held(dev, how), GRT_NO_MEMORY, "vkQueueSubmit failed");
        assert_int_equal(submitted.submits, 2);
        assert_int_equal(submitted.lists, how == HOW_FULL ? GVK_HELD : 3);
        assert_int_equal(grt_dev_status(base), GRT_LOST);
        // Off adds nothing to what was said; on is refused.
        assert_false(grt_dev_hold(base, false));
        assert_int_equal(grt_last_status(), GRT_NO_MEMORY);
        TEST_REFUSED(grt_dev_hold(base, true), GRT_LOST, "failed earlier");
        TEST_REFUSED(grt_dev_wait_for(base, GRT_LANE_MAIN, 2), GRT_LOST, "failed earlier");
        // Graphs that end wait for what was submitted, and no more.
        assert_true(gvk_wait(base));
        assert_int_equal(submitted.waited_for[0], 1);
        assert_int_equal(submitted.submits, 2);
    }
}

static void lanes_wait_for_each_other(void **state) {
    (void)state;
    struct gvk_dev *dev = two_lanes();
    struct grt_dev *base = &dev->base;
    // The main lane's first three wait for nothing.
    for (uint64_t i = 1; i <= 3; i++) {
        assert_true(gvk_submit(dev, GRT_LANE_MAIN, VK_NULL_HANDLE));
        assert_true(submitted.queue == queues[0] && submitted.signalled == times[0]);
        assert_int_equal(submitted.waits, 0);
        assert_int_equal(submitted.value, i);
        assert_int_equal(gvk_lane_mark(base, GRT_LANE_MAIN), i);
    }
    // Of two marks the later one is waited for, whichever was named first; and once.
    assert_true(gvk_lane_after(base, GRT_LANE_ASIDE, 3));
    assert_true(gvk_lane_after(base, GRT_LANE_ASIDE, 2));
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(gvk_submit(dev, GRT_LANE_ASIDE, VK_NULL_HANDLE));
        assert_true(submitted.queue == queues[1] && submitted.signalled == times[1]);
        assert_int_equal(submitted.waits, i == 0);
        assert_true(i > 0 || (submitted.waited == times[0] && submitted.wait_value == 3));
        assert_int_equal(submitted.value, i + 1);
    }
    assert_int_equal(gvk_lane_mark(base, GRT_LANE_ASIDE), 2);
    assert_int_equal(gvk_lane_mark(base, GRT_LANE_MAIN), 3);
    // The other way round.
    assert_true(gvk_lane_after(base, GRT_LANE_MAIN, 2));
    assert_true(gvk_submit(dev, GRT_LANE_MAIN, VK_NULL_HANDLE));
    assert_true(submitted.waits == 1 && submitted.waited == times[1] && submitted.wait_value == 2);
    submitted.reached = 3;
    assert_true(gvk_lane_passed(base, GRT_LANE_MAIN, 3));
    assert_false(gvk_lane_passed(base, GRT_LANE_MAIN, 4));
    assert_int_equal(submitted.submits, 6);
    // A wait for all is one for both.
    assert_true(gvk_wait(base));
    assert_int_equal(submitted.waited_count, 2);
    assert_int_equal(submitted.waited_for[0], 4);
    assert_int_equal(submitted.waited_for[1], 2);
}

// ---- the end of an instance ----

static uint32_t instances, messengers;

static void VKAPI_CALL end_instance(VkInstance handle, const VkAllocationCallbacks *by) {
    (void)handle, (void)by;
    assert_int_equal(messengers, 1);  // what belongs to it goes first
    instances++;
}

static void VKAPI_CALL end_messenger(VkInstance handle, VkDebugUtilsMessengerEXT messenger,
                                     const VkAllocationCallbacks *by) {
    (void)handle, (void)messenger, (void)by;
    messengers++;
}

// A device that could not be opened is closed after its instance is gone.
static void an_instance_ends_once(void **state) {
    (void)state;
    struct gvk_instance ends = {.handle = (VkInstance)(uintptr_t)1,
                                .messenger = (VkDebugUtilsMessengerEXT)(uintptr_t)2,
                                .DestroyInstance = end_instance,
                                .DestroyDebugUtilsMessengerEXT = end_messenger};
    gvk_instance_destroy(&ends);
    gvk_instance_destroy(&ends);
    assert_true(instances == 1 && messengers == 1);
}

// ---- the clock ----

// Ticks of eight bits, two seconds each: they run over twice. One that comes late is of before, and
// turns nothing back.
static void ticks_run_over(void **state) {
    static const struct {
        uint64_t tick;
        double seconds;
    } rows[] = {{250, 100}, {5, 122}, {250, 100}, {130, 372}, {6, 124}, {250, 612}, {4, 632}};
    struct gvk_dev *dev = test_alloc(sizeof *dev);
    (void)state;
    memset(dev, 0, sizeof *dev);
    dev->tick = 2;
    dev->tick_mask = 0xff;
    dev->origin = dev->newest = 200;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(gvk_clock_seconds(dev, rows[i].tick) == rows[i].seconds);
    }
    free(dev);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(ticks_run_over),
    TEST_CASE(an_instance_ends_once),
    TEST_CASE(cards_are_read),
    TEST_CASE(lanes_wait_for_each_other),
    TEST_CASE(held_lists_that_are_refused),
};
TEST_SUITE(vkcaps, false, cases);
