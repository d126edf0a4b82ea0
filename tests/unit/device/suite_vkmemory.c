// SPDX-License-Identifier: Apache-2.0
// Which memory buffers get of the Vulkan backend, and how much of it is free. The types and heaps
// are made up: a CPU driver has one of each.
#include "harness/harness.h"

#include <string.h>

#include "backends/vulkan/vulkan.h"

// ---- memory types ----

static uint32_t taken;  // the type of the newest allocation
static uint32_t allowed;
static bool mapped;

static VkResult VKAPI_CALL make_buffer(VkDevice device, const VkBufferCreateInfo *info,
                                       const VkAllocationCallbacks *callbacks, VkBuffer *buffer) {
    (void)device, (void)info, (void)callbacks;
    *buffer = (VkBuffer)(uintptr_t)8;
    return VK_SUCCESS;
}

static void VKAPI_CALL needs_of(VkDevice device, VkBuffer buffer, VkMemoryRequirements *needs) {
    (void)device, (void)buffer;
    *needs = (VkMemoryRequirements){256, 256, allowed};
}

static VkResult VKAPI_CALL take_memory(VkDevice device, const VkMemoryAllocateInfo *info,
                                       const VkAllocationCallbacks *callbacks,
                                       VkDeviceMemory *memory) {
    (void)device, (void)callbacks;
    assert_int_equal(info->allocationSize, 256);
    taken = info->memoryTypeIndex;
    mapped = false;
    *memory = (VkDeviceMemory)(uintptr_t)16;
    return VK_SUCCESS;
}

static VkResult VKAPI_CALL bind(VkDevice device, VkBuffer buffer, VkDeviceMemory memory,
                                VkDeviceSize at) {
    (void)device, (void)buffer, (void)memory;
    return at == 0 ? VK_SUCCESS : VK_ERROR_UNKNOWN;
}

static VkResult VKAPI_CALL map(VkDevice device, VkDeviceMemory memory, VkDeviceSize at,
                               VkDeviceSize size, VkMemoryMapFlags flags, void **place) {
    (void)device, (void)memory, (void)at, (void)size, (void)flags;
    static char bytes[256];
    *place = bytes;
    mapped = true;
    return VK_SUCCESS;
}

static void VKAPI_CALL unmake_buffer(VkDevice device, VkBuffer buffer,
                                     const VkAllocationCallbacks *callbacks) {
    (void)device, (void)buffer, (void)callbacks;
}

static void VKAPI_CALL give_memory(VkDevice device, VkDeviceMemory memory,
                                   const VkAllocationCallbacks *callbacks) {
    (void)device, (void)memory, (void)callbacks;
}

// Which of the types a kind of buffer gets, of those that are allowed, and whether it is mapped.
static void memory_types(void **state) {
    (void)state;
    static struct gvk_dev dev;
    enum {
        LOCAL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
        MAPS = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
        CACHED = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
    };
    dev = (struct gvk_dev){.memory = {.memoryTypeCount = 6,
                                      .memoryTypes = {{LOCAL | MAPS, 0},
                                                      {LOCAL | VK_MEMORY_PROPERTY_PROTECTED_BIT, 0},
                                                      {MAPS | CACHED, 0},
                                                      {MAPS, 0},
                                                      {LOCAL, 0},
                                                      {LOCAL | MAPS | CACHED, 0}}}};
    dev.vk.vkCreateBuffer = make_buffer;
    dev.vk.vkGetBufferMemoryRequirements = needs_of;
    dev.vk.vkAllocateMemory = take_memory;
    dev.vk.vkBindBufferMemory = bind;
    dev.vk.vkMapMemory = map;
    dev.vk.vkDestroyBuffer = unmake_buffer;
    dev.vk.vkFreeMemory = give_memory;
    static const struct {
        bool shared;
        enum grt_buf_kind kind;
        uint32_t allowed, type;
        bool mapped;
    } rows[] = {
        {false, GRT_BUF_DEVICE, 0x3f, 4, false},   // neither mapped nor protected
        {false, GRT_BUF_DEVICE, 0x2f, 0, false},   // what is mapped, where there is no other
        {false, GRT_BUF_UPLOAD, 0x3f, 3, true},    // of the system, not cached
        {false, GRT_BUF_UPLOAD, 0x37, 2, true},    // of the system, cached
        {false, GRT_BUF_UPLOAD, 0x31, 0, true},    // any
        {false, GRT_BUF_READBACK, 0x3f, 2, true},  // of the system, cached
        {false, GRT_BUF_READBACK, 0x3b, 5, true},  // cached
        {false, GRT_BUF_READBACK, 0x1b, 3, true},  // of the system
        {true, GRT_BUF_DEVICE, 0x3f, 5, true},     // all that can be
        {true, GRT_BUF_DEVICE, 0x1f, 0, true},    {true, GRT_BUF_DEVICE, 0x1e, 4, false},
        {true, GRT_BUF_UPLOAD, 0x3e, 3, true},    {true, GRT_BUF_READBACK, 0x3e, 2, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dev.shared_memory = rows[i].shared;
        allowed = rows[i].allowed;
        struct grt_buf *buf = gvk_buf_create(&dev.base, 256, rows[i].kind);
        assert_non_null(buf);
        assert_int_equal(taken, rows[i].type);
        assert_int_equal(mapped, rows[i].mapped);
        gvk_buf_destroy(buf);
    }
    allowed = 0x2;
    TEST_REFUSED(gvk_buf_create(&dev.base, 256, GRT_BUF_UPLOAD), GRT_UNSUPPORTED,
                 "no memory type for upload buffers");
}

// ---- memory that is free ----

static VkDeviceSize budget_of[2], usage_of[2];

static void VKAPI_CALL tell_memory(VkPhysicalDevice device,
                                   VkPhysicalDeviceMemoryProperties2 *memory) {
    (void)device;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget = memory->pNext;
    memcpy(budget->heapBudget, budget_of, sizeof budget_of);
    memcpy(budget->heapUsage, usage_of, sizeof usage_of);
}

// Of the heap that buffers lie in; 0 stands for what is not known, so a full one has a byte.
static void free_memory(void **state) {
    (void)state;
    static struct gvk_dev dev;
    dev = (struct gvk_dev){.budget = true, .heap = 1};
    dev.instance.GetPhysicalDeviceMemoryProperties2 = tell_memory;
    static const VkDeviceSize rows[][3] = {
        {100, 30, 70}, {100, 99, 1}, {100, 100, 1}, {90, 100, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        budget_of[0] = 7000;
        budget_of[1] = rows[i][0];
        usage_of[1] = rows[i][1];
        assert_int_equal(gvk_mem_free(&dev.base), rows[i][2]);
    }
    dev.budget = false;
    assert_int_equal(gvk_mem_free(&dev.base), 0);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(memory_types),
    TEST_CASE(free_memory),
};
TEST_SUITE(vkmemory, false, cases);
