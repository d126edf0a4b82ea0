// SPDX-License-Identifier: Apache-2.0
// Which memory buffers get of the Vulkan backend, how much of it is free, and what goes through
// staging. The types and heaps are made up: a CPU driver has one of each.
#include "harness/harness.h"

#include <stdlib.h>
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

// ---- what is asked for ----

static VkDeviceSize wants;  // bytes that a buffer of the driver takes
static VkBufferCreateInfo buffer_made;
static struct {
    VkDeviceSize size;
    VkBuffer own;  // of a dedicated allocation
    VkMemoryAllocateFlags flags;
} memory_taken;
static int alive, calls_left;

static VkResult make(VkResult refusal) {
    if (calls_left-- == 0) {
        return refusal;
    }
    alive++;
    return VK_SUCCESS;
}
static VkResult VKAPI_CALL count_buffer(VkDevice device, const VkBufferCreateInfo *info,
                                        const VkAllocationCallbacks *by, VkBuffer *buffer) {
    (void)device, (void)by;
    buffer_made = *info;
    *buffer = (VkBuffer)(uintptr_t)8;
    return make(VK_ERROR_UNKNOWN);
}
static void VKAPI_CALL wants_of(VkDevice device, VkBuffer buffer, VkMemoryRequirements *needs) {
    (void)device, (void)buffer;
    *needs = (VkMemoryRequirements){wants, 256, 1};
}
static VkResult VKAPI_CALL count_memory(VkDevice device, const VkMemoryAllocateInfo *info,
                                        const VkAllocationCallbacks *by, VkDeviceMemory *memory) {
    (void)device, (void)by;
    memset(&memory_taken, 0, sizeof memory_taken);
    memory_taken.size = info->allocationSize;
    for (const VkBaseInStructure *s = info->pNext; s; s = s->pNext) {
        if (s->sType == VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO) {
            memory_taken.own = ((const VkMemoryDedicatedAllocateInfo *)s)->buffer;
        } else {
            assert_int_equal(s->sType, VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);
            memory_taken.flags = ((const VkMemoryAllocateFlagsInfo *)s)->flags;
        }
    }
    *memory = (VkDeviceMemory)(uintptr_t)16;
    return make(VK_ERROR_OUT_OF_DEVICE_MEMORY);
}
static VkResult VKAPI_CALL count_bind(VkDevice device, VkBuffer buffer, VkDeviceMemory memory,
                                      VkDeviceSize at) {
    (void)device, (void)buffer, (void)memory, (void)at;
    return calls_left-- == 0 ? VK_ERROR_UNKNOWN : VK_SUCCESS;
}
static VkResult VKAPI_CALL count_map(VkDevice device, VkDeviceMemory memory, VkDeviceSize at,
                                     VkDeviceSize size, VkMemoryMapFlags flags, void **place) {
    (void)device, (void)memory, (void)flags;
    static char bytes[8 << 20];
    assert_true(at == 0 && size == VK_WHOLE_SIZE);
    if (calls_left-- == 0) {
        return VK_ERROR_MEMORY_MAP_FAILED;
    }
    *place = bytes;
    return VK_SUCCESS;
}
static void VKAPI_CALL end_buffer(VkDevice device, VkBuffer buffer,
                                  const VkAllocationCallbacks *by) {
    (void)device, (void)by;
    alive -= buffer != VK_NULL_HANDLE;
}
static void VKAPI_CALL end_memory(VkDevice device, VkDeviceMemory memory,
                                  const VkAllocationCallbacks *by) {
    (void)device, (void)by;
    alive -= memory != VK_NULL_HANDLE;
}
static VkDeviceAddress VKAPI_CALL address_of(VkDevice device,
                                             const VkBufferDeviceAddressInfo *info) {
    (void)device;
    assert_int_equal((uintptr_t)info->buffer, 8);
    return 0x7000;
}

// One type of memory, which the host reaches if the device shares it.
static struct gvk_dev *counted(void) {
    static struct gvk_dev dev;
    dev = (struct gvk_dev){.base.info.name = "card",
                           .memory = {.memoryTypeCount = 1,
                                      .memoryTypes = {{VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT |
                                                           VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                                           VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                                                       0}}},
                           .families = {3, 5}};
    dev.vk.vkCreateBuffer = count_buffer;
    dev.vk.vkGetBufferMemoryRequirements = wants_of;
    dev.vk.vkAllocateMemory = count_memory;
    dev.vk.vkBindBufferMemory = count_bind;
    dev.vk.vkMapMemory = count_map;
    dev.vk.vkDestroyBuffer = end_buffer;
    dev.vk.vkFreeMemory = end_memory;
    dev.vk.vkGetBufferDeviceAddress = address_of;
    alive = 0;
    calls_left = -1;
    wants = 256;
    return &dev;
}

static void requests(void **state) {
    (void)state;
    const VkBufferUsageFlags usual =
        VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
        VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT;
    static const struct {
        uint64_t size, made;
        VkDeviceSize wants;
        bool imports, one, own;
    } rows[] = {
        {4, 16, 4096, false, false, false},          {16, 16, 4096, false, true, false},
        {17, 32, (2 << 20) - 1, false, true, false}, {1 << 20, 1 << 20, 2 << 20, false, true, true},
        {48, 48, 2 << 20, true, false, true},        {52, 64, (2 << 20) - 1, true, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gvk_dev *dev = counted();
        dev->imports = rows[i].imports;
        dev->families[1] = rows[i].one ? 3 : 5;
        wants = rows[i].wants;
        struct gvk_buf *buf =
            (struct gvk_buf *)gvk_buf_create(&dev->base, rows[i].size, GRT_BUF_DEVICE);
        assert_non_null(buf);
        assert_int_equal(buffer_made.size, rows[i].made);
        assert_int_equal(buffer_made.usage,
                         usual | (rows[i].imports ? VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT : 0));
        assert_int_equal(buffer_made.sharingMode,
                         rows[i].one ? VK_SHARING_MODE_EXCLUSIVE : VK_SHARING_MODE_CONCURRENT);
        assert_int_equal(buffer_made.queueFamilyIndexCount, rows[i].one ? 0 : 2);
        assert_int_equal(memory_taken.size, rows[i].wants);
        assert_int_equal((uintptr_t)memory_taken.own, rows[i].own ? 8 : 0);
        assert_int_equal(memory_taken.flags,
                         rows[i].imports ? VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT : 0);
        assert_int_equal(buf->address, rows[i].imports ? 0x7000 : 0);
        assert_true(!buf->map && !buf->base.host && buf->dev == dev);
        assert_int_equal(alive, 2);
        gvk_buf_destroy(&buf->base);
        assert_int_equal(alive, 0);
    }
    // The host reaches what it shares; a buffer of the device is all the same not the caller's.
    struct gvk_dev *dev = counted();
    dev->shared_memory = true;
    struct gvk_buf *buf = (struct gvk_buf *)gvk_buf_create(&dev->base, 64, GRT_BUF_DEVICE);
    assert_true(buf && buf->map && !buf->base.host);
    char got[4] = "";
    assert_true(gvk_buf_write(&buf->base, 5, "abc", 4) && gvk_buf_read(&buf->base, 5, got, 4));
    assert_string_equal(got, "abc");
    assert_string_equal((char *)buf->map + 5, "abc");
    gvk_buf_destroy(&buf->base);
}

// Whichever call is refused, nothing is left of it.
static void requests_refused(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum grt_status status;
    } rows[] = {
        {"vkCreateBuffer failed for 100 bytes: VK_ERROR_UNKNOWN", GRT_NO_MEMORY},
        {"card refused 100 bytes for a upload buffer (memory type 0): "
         "VK_ERROR_OUT_OF_DEVICE_MEMORY",
         GRT_NO_MEMORY},
        {"vkBindBufferMemory failed for 100 bytes", GRT_NO_MEMORY},
        {"vkMapMemory failed for 100 bytes", GRT_NO_MEMORY},
    };
    for (int i = 0; i < 4; i++) {
        struct gvk_dev *dev = counted();
        calls_left = i;
        TEST_REFUSED(gvk_buf_create(&dev->base, 100, GRT_BUF_UPLOAD), rows[i].status, rows[i].text);
        assert_int_equal(alive, 0);
    }
}

// ---- staging ----

static char device_memory[(17 << 20) + 64];
static VkBufferCopy copied[4];
static bool copied_out[4];
static uint32_t copies, waits;
static int refuse_submit;  // this copy's; below 0: none

static VkResult VKAPI_CALL make_cmds(VkDevice d, const VkCommandBufferAllocateInfo *info,
                                     VkCommandBuffer *cmds) {
    (void)d;
    assert_int_equal((uintptr_t)info->commandPool, 50);
    *cmds = (VkCommandBuffer)(uintptr_t)9;
    return make(VK_ERROR_UNKNOWN);
}
static void VKAPI_CALL free_cmds(VkDevice d, VkCommandPool pool, uint32_t count,
                                 const VkCommandBuffer *cmds) {
    (void)d, (void)cmds;
    assert_int_equal((uintptr_t)pool, 50);
    alive -= (int)count;
}
static VkResult VKAPI_CALL begin_list(VkCommandBuffer c, const VkCommandBufferBeginInfo *info) {
    (void)c;
    assert_int_equal(info->flags, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
    return VK_SUCCESS;
}
static VkResult VKAPI_CALL end_list(VkCommandBuffer c) {
    (void)c;
    return VK_SUCCESS;
}
static uint32_t barriers;
static void VKAPI_CALL see_barrier(VkCommandBuffer c, VkPipelineStageFlags from,
                                   VkPipelineStageFlags to, VkDependencyFlags flags, uint32_t count,
                                   const VkMemoryBarrier *memory, uint32_t buffers,
                                   const VkBufferMemoryBarrier *b, uint32_t images,
                                   const VkImageMemoryBarrier *i) {
    (void)c, (void)flags, (void)count, (void)buffers, (void)b, (void)images, (void)i;
    // All before the copy, then the copy before the host.
    bool first = barriers++ % 2 == 0;
    assert_int_equal(from,
                     first ? VK_PIPELINE_STAGE_ALL_COMMANDS_BIT : VK_PIPELINE_STAGE_TRANSFER_BIT);
    assert_int_equal(to, first ? VK_PIPELINE_STAGE_TRANSFER_BIT : VK_PIPELINE_STAGE_HOST_BIT);
    assert_int_equal(memory->srcAccessMask,
                     first ? VK_ACCESS_MEMORY_WRITE_BIT : VK_ACCESS_TRANSFER_WRITE_BIT);
    assert_int_equal(memory->dstAccessMask,
                     first ? VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT
                           : VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
}
static struct gvk_dev *staged;
static void VKAPI_CALL see_copy(VkCommandBuffer c, VkBuffer src, VkBuffer dst, uint32_t count,
                                const VkBufferCopy *region) {
    (void)c, (void)dst;
    assert_true(count == 1 && copies < 4);
    copied[copies] = *region;
    copied_out[copies] = (uintptr_t)src == 77;
    bool out = copied_out[copies++];
    char *there = device_memory + (out ? region->srcOffset : region->dstOffset);
    char *here = (char *)staged->staging->map + (out ? region->dstOffset : region->srcOffset);
    memcpy(out ? here : there, out ? there : here, region->size);
}
static VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo *info,
                                  VkFence fence) {
    (void)queue, (void)count, (void)info, (void)fence;
    return refuse_submit == (int)copies ? VK_ERROR_DEVICE_LOST : VK_SUCCESS;
}
static VkResult VKAPI_CALL wait_for(VkDevice d, const VkSemaphoreWaitInfo *info, uint64_t timeout) {
    (void)d, (void)info, (void)timeout;
    waits++;
    return VK_SUCCESS;
}

// Eight MiB at a time through one buffer, which stays; offsets and sizes may be any.
static void staging(void **state) {
    (void)state;
    enum { CHUNK = 8 << 20, SIZE = (17 << 20) + 5 };
    struct gvk_dev *dev = staged = counted();
    dev->vk.vkAllocateCommandBuffers = make_cmds;
    dev->vk.vkFreeCommandBuffers = free_cmds;
    dev->vk.vkBeginCommandBuffer = begin_list;
    dev->vk.vkEndCommandBuffer = end_list;
    dev->vk.vkCmdPipelineBarrier = see_barrier;
    dev->vk.vkCmdCopyBuffer = see_copy;
    dev->vk.vkQueueSubmit = submit;
    dev->vk.vkWaitSemaphores = wait_for;
    dev->lanes[0].pool = (VkCommandPool)(uintptr_t)50;
    dev->lanes[0].queue = (VkQueue)(uintptr_t)51;
    refuse_submit = -1;
    struct gvk_buf buf = {.dev = dev, .handle = (VkBuffer)(uintptr_t)77};
    char *data = test_alloc(SIZE), *got = test_alloc(SIZE);
    for (int i = 0; i < SIZE; i++) {
        data[i] = (char)(i / 4096 * 7 + i);
    }
    // Each call that is refused leaves nothing of the buffer that all goes through.
    for (int refused = 0; refused < 5; refused++) {
        calls_left = refused;
        TEST_REFUSED(gvk_buf_write(&buf.base, 3, data, 4), GRT_NO_MEMORY, "");
        assert_true(!dev->staging && !dev->staging_cmds);
        assert_int_equal(alive, 0);
    }
    calls_left = -1;
    assert_true(gvk_buf_write(&buf.base, 3, data, SIZE));
    assert_int_equal(buffer_made.size, CHUNK);
    assert_int_equal(alive, 3);
    assert_int_equal(copies, 3);
    assert_int_equal(waits, 3);
    assert_int_equal(barriers, 6);
    assert_memory_equal(device_memory + 3, data, SIZE);
    static const VkBufferCopy down[3] = {
        {0, 3, CHUNK}, {0, 3 + CHUNK, CHUNK}, {0, 3 + 2 * CHUNK, SIZE - 2 * CHUNK}};
    for (int i = 0; i < 3; i++) {
        assert_false(copied_out[i]);
        assert_memory_equal(&copied[i], &down[i], sizeof down[i]);
    }
    copies = 0;
    assert_true(gvk_buf_read(&buf.base, 7, got, CHUNK));
    assert_int_equal(copies, 1);
    assert_true(copied_out[0] && copied[0].srcOffset == 7 && copied[0].dstOffset == 0);
    assert_memory_equal(got, data + 4, CHUNK);
    copies = 0;
    assert_true(gvk_buf_read(&buf.base, 3, got, CHUNK + 1));
    assert_int_equal(copies, 2);
    assert_true(copied[1].srcOffset == 3 + CHUNK && copied[1].size == 1);
    assert_memory_equal(got, data, CHUNK + 1);
    assert_int_equal(alive, 3);
    // A lost device in the middle ends it.
    copies = 0;
    refuse_submit = 2;
    TEST_REFUSED(gvk_buf_write(&buf.base, 3, data, SIZE), GRT_LOST, "vkQueueSubmit failed");
    assert_int_equal(copies, 2);
    gvk_staging_destroy(dev);
    assert_int_equal(alive, 0);
    gvk_staging_destroy(dev);
    assert_int_equal(alive, 0);
    free(data);
    free(got);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(requests),     TEST_CASE(requests_refused), TEST_CASE(staging),
    TEST_CASE(memory_types), TEST_CASE(free_memory),
};
TEST_SUITE(vkmemory, false, cases);
