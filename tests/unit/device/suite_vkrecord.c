// SPDX-License-Identifier: Apache-2.0
// What the Vulkan backend records: lists of commands beside the calls that a driver sees, a word
// for each. The driver is made up, so that also queues and clocks are tried that no CPU driver has.
//
//     |dh      a barrier from dispatches to the host; *: all, c: copies, b: dispatches and copies
//     p2 s k8  pipeline 2 is bound, buffers are, parameters of 8 bytes are set
//     d3 y16 f16        a dispatch of 3 groups, a copy and a fill of 16 bytes
//     r2 t0    two queries of phases are reset, the first gets its time; R and T: of commands
#include "harness/harness.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backends/vulkan/vulkan.h"
#include "base/cache.h"
#include "kits/cache_kit.h"

// ---- the driver ----

static char said[1024];
static int alive;       // of what was made
static int calls_left;  // until one is refused; below 0: never
static VkDescriptorPoolCreateInfo pool_made;
static VkDescriptorPoolSize sizes_made[2];
static VkBufferViewCreateInfo view_made;
static uint64_t ticks[8];
#define PHASES ((VkQueryPool)(uintptr_t)64)    // of two queries or three
#define COMMANDS ((VkQueryPool)(uintptr_t)72)  // of four

static void say(const char *format, ...) GRT_PRINTF(1, 2);
static void say(const char *format, ...) {
    size_t used = strlen(said);
    va_list list;
    va_start(list, format);
    vsnprintf(said + used, sizeof said - used, format, list);
    va_end(list);
}

static VkResult make(void) {
    if (calls_left-- == 0) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    alive++;
    return VK_SUCCESS;
}

static VkResult VKAPI_CALL make_cmds(VkDevice d, const VkCommandBufferAllocateInfo *info,
                                     VkCommandBuffer *cmds) {
    (void)d, (void)info;
    *cmds = (VkCommandBuffer)(uintptr_t)8;
    return make();
}
static void VKAPI_CALL free_cmds(VkDevice d, VkCommandPool pool, uint32_t count,
                                 const VkCommandBuffer *cmds) {
    (void)d, (void)pool, (void)cmds;
    alive -= (int)count;
}
static VkResult VKAPI_CALL make_pool(VkDevice d, const VkDescriptorPoolCreateInfo *info,
                                     const VkAllocationCallbacks *by, VkDescriptorPool *pool) {
    (void)d, (void)by;
    pool_made = *info;
    memcpy(sizes_made, info->pPoolSizes, info->poolSizeCount * sizeof *sizes_made);
    *pool = (VkDescriptorPool)(uintptr_t)16;
    return make();
}
static void VKAPI_CALL end_pool(VkDevice d, VkDescriptorPool pool,
                                const VkAllocationCallbacks *by) {
    (void)d, (void)by;
    alive -= pool != VK_NULL_HANDLE;
}
static VkResult VKAPI_CALL make_queries(VkDevice d, const VkQueryPoolCreateInfo *info,
                                        const VkAllocationCallbacks *by, VkQueryPool *pool) {
    (void)d, (void)by;
    *pool = info->queryCount < 4 ? PHASES : COMMANDS;
    return make();
}
static void VKAPI_CALL end_queries(VkDevice d, VkQueryPool pool, const VkAllocationCallbacks *by) {
    (void)d, (void)by;
    alive -= pool != VK_NULL_HANDLE;
}
static VkResult VKAPI_CALL make_view(VkDevice d, const VkBufferViewCreateInfo *info,
                                     const VkAllocationCallbacks *by, VkBufferView *view) {
    (void)d, (void)by;
    view_made = *info;
    *view = (VkBufferView)(uintptr_t)24;
    return make();
}
static void VKAPI_CALL end_view(VkDevice d, VkBufferView view, const VkAllocationCallbacks *by) {
    (void)d, (void)view, (void)by;
    alive--;
}
// Sets go with their pool.
static VkResult VKAPI_CALL make_set(VkDevice d, const VkDescriptorSetAllocateInfo *info,
                                    VkDescriptorSet *set) {
    (void)d, (void)info;
    *set = (VkDescriptorSet)(uintptr_t)32;
    return calls_left-- == 0 ? VK_ERROR_OUT_OF_POOL_MEMORY : VK_SUCCESS;
}
static void VKAPI_CALL write_sets(VkDevice d, uint32_t count, const VkWriteDescriptorSet *writes,
                                  uint32_t copies, const VkCopyDescriptorSet *from) {
    (void)d, (void)count, (void)writes, (void)copies, (void)from;
}
static VkResult VKAPI_CALL begin_list(VkCommandBuffer c, const VkCommandBufferBeginInfo *info) {
    (void)c, (void)info;
    return calls_left-- == 0 ? VK_ERROR_OUT_OF_HOST_MEMORY : VK_SUCCESS;
}
static VkResult VKAPI_CALL end_list(VkCommandBuffer c) {
    (void)c;
    return calls_left-- == 0 ? VK_ERROR_OUT_OF_HOST_MEMORY : VK_SUCCESS;
}

static char stage(VkPipelineStageFlags stages) {
    bool dispatch = stages & VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    bool copy = stages & VK_PIPELINE_STAGE_TRANSFER_BIT;
    return stages & VK_PIPELINE_STAGE_ALL_COMMANDS_BIT ? '*'
           : stages & VK_PIPELINE_STAGE_HOST_BIT       ? 'h'
           : dispatch && copy                          ? 'b'
           : dispatch                                  ? 'd'
           : copy                                      ? 'c'
                                                       : '?';
}
static void VKAPI_CALL barrier(VkCommandBuffer c, VkPipelineStageFlags from,
                               VkPipelineStageFlags to, VkDependencyFlags flags, uint32_t count,
                               const VkMemoryBarrier *memory, uint32_t buffers,
                               const VkBufferMemoryBarrier *b, uint32_t images,
                               const VkImageMemoryBarrier *i) {
    (void)c, (void)flags, (void)buffers, (void)b, (void)images, (void)i;
    assert_int_equal(count, 1);
    // What was written is seen by reads and by writes.
    assert_true(memory->srcAccessMask != 0);
    bool reads = memory->dstAccessMask & (VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                                          VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_HOST_READ_BIT);
    bool writes =
        memory->dstAccessMask & (VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_HOST_WRITE_BIT |
                                 VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_MEMORY_WRITE_BIT);
    assert_true(reads && writes);
    say(" |%c%c", stage(from), stage(to));
}
static void VKAPI_CALL bind(VkCommandBuffer c, VkPipelineBindPoint point, VkPipeline pipeline) {
    (void)c, (void)point;
    say(" p%u", (unsigned)(uintptr_t)pipeline);
}
static void VKAPI_CALL bind_sets(VkCommandBuffer c, VkPipelineBindPoint point,
                                 VkPipelineLayout layout, uint32_t first, uint32_t count,
                                 const VkDescriptorSet *sets, uint32_t offsets,
                                 const uint32_t *at) {
    (void)c, (void)point, (void)layout, (void)first, (void)count, (void)sets, (void)offsets;
    (void)at;
    say(" s");
}
static void VKAPI_CALL push(VkCommandBuffer c, VkPipelineLayout layout, VkShaderStageFlags stages,
                            uint32_t offset, uint32_t size, const void *values) {
    (void)c, (void)layout, (void)stages, (void)offset, (void)values;
    say(" k%u", size);
}
static void VKAPI_CALL dispatch(VkCommandBuffer c, uint32_t x, uint32_t y, uint32_t z) {
    (void)c;
    say(" d%u", x * y * z);
}
static void VKAPI_CALL copy(VkCommandBuffer c, VkBuffer src, VkBuffer dst, uint32_t count,
                            const VkBufferCopy *region) {
    (void)c, (void)src, (void)dst, (void)count;
    say(" y%u", (unsigned)region->size);
}
static void VKAPI_CALL fill(VkCommandBuffer c, VkBuffer dst, VkDeviceSize at, VkDeviceSize size,
                            uint32_t value) {
    (void)c, (void)dst, (void)at, (void)value;
    say(" f%u", (unsigned)size);
}
static void VKAPI_CALL stamp(VkCommandBuffer c, VkPipelineStageFlagBits after, VkQueryPool pool,
                             uint32_t query) {
    (void)c, (void)after;
    say(" %c%u", pool == PHASES ? 't' : 'T', query);
}
static void VKAPI_CALL reset(VkCommandBuffer c, VkQueryPool pool, uint32_t first, uint32_t count) {
    (void)c;
    say(" %c%u", pool == PHASES ? 'r' : 'R', first + count);
}
static VkResult VKAPI_CALL results(VkDevice d, VkQueryPool pool, uint32_t first, uint32_t count,
                                   size_t size, void *into, VkDeviceSize stride,
                                   VkQueryResultFlags flags) {
    (void)d, (void)pool, (void)first, (void)stride, (void)flags;
    assert_int_equal(size, count * sizeof *ticks);
    memcpy(into, ticks, size);
    return VK_SUCCESS;
}

static VkResult VKAPI_CALL wait_for(VkDevice d, const VkSemaphoreWaitInfo *info, uint64_t timeout) {
    (void)d, (void)info, (void)timeout;
    return VK_SUCCESS;
}

static struct gvk_dev *made_up(void) {
    static struct gvk_dev dev;
    dev = (struct gvk_dev){.base = {.lanes = 2}, .tick = 1, .tick_mask = 0xff};
    dev.vk.vkAllocateCommandBuffers = make_cmds;
    dev.vk.vkFreeCommandBuffers = free_cmds;
    dev.vk.vkCreateDescriptorPool = make_pool;
    dev.vk.vkDestroyDescriptorPool = end_pool;
    dev.vk.vkCreateQueryPool = make_queries;
    dev.vk.vkDestroyQueryPool = end_queries;
    dev.vk.vkCreateBufferView = make_view;
    dev.vk.vkDestroyBufferView = end_view;
    dev.vk.vkAllocateDescriptorSets = make_set;
    dev.vk.vkUpdateDescriptorSets = write_sets;
    dev.vk.vkBeginCommandBuffer = begin_list;
    dev.vk.vkEndCommandBuffer = end_list;
    dev.vk.vkCmdPipelineBarrier = barrier;
    dev.vk.vkCmdBindPipeline = bind;
    dev.vk.vkCmdBindDescriptorSets = bind_sets;
    dev.vk.vkCmdPushConstants = push;
    dev.vk.vkCmdDispatch = dispatch;
    dev.vk.vkCmdCopyBuffer = copy;
    dev.vk.vkCmdFillBuffer = fill;
    dev.vk.vkCmdWriteTimestamp = stamp;
    dev.vk.vkCmdResetQueryPool = reset;
    dev.vk.vkGetQueryPoolResults = results;
    dev.vk.vkWaitSemaphores = wait_for;
    for (int i = 0; i < 2; i++) {
        dev.lanes[i].queue = (VkQueue)(uintptr_t)40;
    }
    said[0] = '\0';
    alive = 0;
    calls_left = -1;
    return &dev;
}

// ---- commands ----

static const struct grt_arg_info floats[] = {{"x", "float", GRT_UPDATE}},
                                 texels[] = {{"x", "texels", GRT_READ}};
static const struct grt_kernel_info infos[] = {
    {.name = "a", .args = floats, .arg_count = 1, .params_size = 8},
    {.name = "b", .args = floats, .arg_count = 1, .params_size = 4},
    {.name = "c", .args = texels, .arg_count = 1},
    {.name = "d"},
};
static struct gvk_buf buffers[2];

static struct grt_cmd on(int kernel, int buffer, uint64_t offset, unsigned char param,
                         int32_t sync) {
    static struct gvk_kernel kernels[4];
    struct gvk_kernel *k = &kernels[kernel];
    k->base.info = &infos[kernel];
    k->handle = (VkPipeline)(uintptr_t)kernel;
    k->params_size = infos[kernel].params_size;
    struct grt_cmd cmd = {.kind = GRT_CMD_DISPATCH,
                          .sync = sync,
                          .kernel = &k->base,
                          .groups = {3, 1, 1},
                          .params_size = k->params_size,
                          .params = {param}};
    if (infos[kernel].arg_count > 0) {
        cmd.bindings[0] = (struct grt_range){&buffers[buffer].base, offset, 20};
    }
    return cmd;
}

static struct grt_cmd of(enum grt_cmd_kind kind, uint32_t phase, int32_t sync) {
    return (struct grt_cmd){.kind = kind,
                            .sync = sync,
                            .phase = phase,
                            .dst = {&buffers[0].base, 0, 16},
                            .src = {&buffers[1].base, 0, 16}};
}

// The list, with what was said of it.
static void *records(struct gvk_dev *dev, const struct grt_cmd *cmds, uint32_t count,
                     enum grt_lane lane, bool timed, const char *want) {
    said[0] = '\0';
    void *list = gvk_cmds_create(&dev->base, cmds, count, 2, lane, timed);
    assert_non_null(list);
    assert_string_equal(said, want);
    return list;
}

static void expect(const struct grt_cmd *cmds, uint32_t count, const char *want) {
    struct gvk_dev *dev = made_up();
    void *list = records(dev, cmds, count, GRT_LANE_MAIN, false, want);
    gvk_cmds_destroy(&dev->base, list);
    assert_int_equal(alive, 0);
}
#define EXPECT(want, ...)                                                                          \
    expect((struct grt_cmd[]){__VA_ARGS__},                                                        \
           sizeof(struct grt_cmd[]){__VA_ARGS__} / sizeof(struct grt_cmd), want)

// ---- cases ----

// A command waits where what it waits for is behind the last barrier.
static void barriers(void **state) {
    (void)state;
    EXPECT(" |** |dh");
    EXPECT(" |** p3 d3 d3 |dh", on(3, 0, 0, 0, -1), on(3, 0, 0, 0, -1));
    EXPECT(" |** p3 d3 |dd d3 d3 d3 |dd d3 |dh", on(3, 0, 0, 0, -1), on(3, 0, 0, 0, 0),
           on(3, 0, 0, 0, 0), on(3, 0, 0, 0, -1), on(3, 0, 0, 0, 1));
    // One copy or fill, wherever it stands, and barriers are for both kinds.
    EXPECT(" |** p3 d3 |bb d3 y16 |bh", on(3, 0, 0, 0, -1), on(3, 0, 0, 0, 0),
           of(GRT_CMD_COPY, 0, -1));
    EXPECT(" |** f16 |bb p3 d3 |bh", of(GRT_CMD_FILL, 0, -1), on(3, 0, 0, 0, 0));
    struct gvk_dev *dev = made_up();
    const struct grt_cmd up[] = {of(GRT_CMD_COPY, 0, -1), of(GRT_CMD_COPY, 0, 0)};
    gvk_cmds_destroy(&dev->base,
                     records(dev, up, 2, GRT_LANE_ASIDE, false, " |** y16 |cc y16 |ch"));
    assert_int_equal(alive, 0);
}

// What is bound and set already is not again; another kernel's is not this one's.
static void bindings(void **state) {
    (void)state;
    EXPECT(" |** p0 s k8 d3 d3 |dh", on(0, 0, 0, 7, -1), on(0, 0, 0, 7, -1));
    EXPECT(" |** p0 s k8 d3 k8 d3 |dh", on(0, 0, 0, 7, -1), on(0, 0, 0, 8, -1));
    EXPECT(" |** p0 s k8 d3 s d3 s d3 |dh", on(0, 0, 0, 7, -1), on(0, 1, 0, 7, -1),
           on(0, 1, 16, 7, -1));
    EXPECT(" |** p0 s k8 d3 p1 s k4 d3 p0 s k8 d3 |dh", on(0, 0, 0, 7, -1), on(1, 0, 0, 7, -1),
           on(0, 0, 0, 7, -1));
    // A kernel without buffers and parameters leaves them as they are.
    EXPECT(" |** p0 s k8 d3 p3 d3 p0 d3 |dh", on(0, 0, 0, 7, -1), on(3, 0, 0, 0, -1),
           on(0, 0, 0, 7, -1));
    assert_int_equal(pool_made.maxSets, 2);
    assert_int_equal(pool_made.poolSizeCount, 1);
    assert_int_equal(sizes_made[0].descriptorCount, 2);
    EXPECT(" |** p0 s k8 d3 p2 s d3 |dh", on(0, 0, 0, 7, -1), on(2, 0, 32, 0, -1));
    assert_int_equal(pool_made.maxSets, 2);
    assert_int_equal(pool_made.poolSizeCount, 2);
    assert_int_equal(sizes_made[0].descriptorCount, 1);
    assert_int_equal(sizes_made[1].descriptorCount, 1);
    // The last texel is whole.
    assert_int_equal(view_made.offset, 32);
    assert_int_equal(view_made.range, 32);
}

// Phases in any order; the head of a list needs no barrier. The clock runs over between them.
static void phases(void **state) {
    (void)state;
    struct gvk_dev *dev = made_up();
    const struct grt_cmd cmds[] = {of(GRT_CMD_PHASE, 1, -1), on(3, 0, 0, 0, -1),
                                   of(GRT_CMD_PHASE, 0, -1), on(3, 0, 0, 0, 1)};
    double begin[2], end[2];
    void *list = records(dev, cmds, 4, GRT_LANE_MAIN, false, " r3 |** t0 p3 d3 |dd t1 d3 |dh t2");
    memcpy(ticks, (uint64_t[]){250, 4, 14}, 3 * sizeof *ticks);
    assert_true(gvk_cmds_times(&dev->base, list, begin, end));
    assert_true(begin[1] == 0 && end[1] == 10 && begin[0] == 10 && end[0] == 20);
    gvk_cmds_destroy(&dev->base, list);
    dev->tick = 0;  // no clock
    gvk_cmds_destroy(&dev->base,
                     records(dev, cmds, 4, GRT_LANE_MAIN, false, " |** p3 d3 |dd d3 |dh"));
    assert_int_equal(alive, 0);
}

// A time before the first command and one behind each. Queues that only copy have times where they
// tell them and the host resets them.
static void stamps(void **state) {
    (void)state;
    const struct grt_cmd cmds[] = {on(3, 0, 0, 0, -1), on(3, 0, 0, 0, 0), on(3, 0, 0, 0, -1)};
    const struct grt_cmd up[] = {of(GRT_CMD_COPY, 0, -1), of(GRT_CMD_COPY, 0, -1),
                                 of(GRT_CMD_COPY, 0, -1)};
    static const char *const aside[] = {" |** y16 y16 y16 |ch", " |** T0 y16 T1 y16 T2 y16 T3 |ch"};
    struct gvk_dev *dev = made_up();
    double begin[3], end[3];
    struct grt_stamps times = {.begin = begin, .end = end};
    void *list =
        records(dev, cmds, 3, GRT_LANE_MAIN, true, " R4 |** T0 p3 d3 T1 |dd d3 T2 d3 T3 |dh");
    memcpy(ticks, (uint64_t[]){10, 20, 40, 80}, 4 * sizeof *ticks);
    assert_true(gvk_cmds_stamps(&dev->base, list, &times));
    assert_false(times.host);
    for (int i = 0; i < 3; i++) {
        assert_true(begin[i] == (double)ticks[i] && end[i] == (double)ticks[i + 1]);
    }
    gvk_cmds_destroy(&dev->base, list);
    dev->host_reset = true;
    gvk_cmds_destroy(&dev->base, records(dev, cmds, 3, GRT_LANE_MAIN, true,
                                         " |** T0 p3 d3 T1 |dd d3 T2 d3 T3 |dh"));
    for (int told = 0; told < 2; told++) {
        dev->aside_stamps = told;
        gvk_cmds_destroy(&dev->base, records(dev, up, 3, GRT_LANE_ASIDE, true, aside[told]));
    }
    assert_int_equal(alive, 0);
}

static void clocks_of_two_queues(void **state) {
    (void)state;
    static const struct {
        uint32_t reset, main, aside;
        bool told;
    } rows[] = {{1, 64, 64, true},  {1, 36, 36, true}, {1, 64, 36, false},
                {1, 36, 64, false}, {1, 64, 0, false}, {0, 64, 64, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gvk_physical physical = {.timestamp_bits = rows[i].main,
                                        .aside_bits = rows[i].aside};
        physical.f12.hostQueryReset = rows[i].reset;
        assert_int_equal(gvk_aside_stamps(&physical), rows[i].told);
    }
}

// Whichever call the driver refuses, the list is not made, and nothing of it is left.
static void refusals(void **state) {
    (void)state;
    const struct grt_cmd cmds[] = {of(GRT_CMD_PHASE, 0, -1), on(0, 0, 0, 7, -1),
                                   on(2, 0, 0, 0, -1)};
    // Commands, a pool of sets, two of queries, begin, two sets, a view, end.
    for (int refused = 0; refused < 9; refused++) {
        struct gvk_dev *dev = made_up();
        calls_left = refused;
        TEST_REFUSED(gvk_cmds_create(&dev->base, cmds, 3, 1, GRT_LANE_MAIN, true), GRT_NO_MEMORY,
                     "failed");
        assert_int_equal(alive, 0);
    }
    struct gvk_dev *dev = made_up();
    calls_left = 9;
    void *list = gvk_cmds_create(&dev->base, cmds, 3, 1, GRT_LANE_MAIN, true);
    assert_non_null(list);
    assert_int_equal(calls_left, 0);
    assert_int_equal(alive, 5);
    gvk_cmds_destroy(&dev->base, list);
    assert_int_equal(alive, 0);
}

// ---- pipelines on disk ----

static size_t taken;  // bytes that the driver got
static VkResult VKAPI_CALL take_cache(VkDevice d, const VkPipelineCacheCreateInfo *info,
                                      const VkAllocationCallbacks *by, VkPipelineCache *cache) {
    (void)d, (void)by;
    taken = info->initialDataSize;
    *cache = (VkPipelineCache)(uintptr_t)48;
    return VK_SUCCESS;
}
static void VKAPI_CALL tell_card(VkPhysicalDevice card, VkPhysicalDeviceProperties *p) {
    (void)card;
    *p = (VkPhysicalDeviceProperties){.vendorID = 7, .deviceID = 9};
    p->pipelineCacheUUID[0] = 1;
    p->pipelineCacheUUID[VK_UUID_SIZE - 1] = 2;
}

// Of what is on disk the driver gets what is its own: each field of the head is looked at.
static void pipelines_of_others(void **state) {
    const VkPipelineCacheHeaderVersionOne good = {.headerSize = sizeof good,
                                                  .headerVersion =
                                                      VK_PIPELINE_CACHE_HEADER_VERSION_ONE,
                                                  .vendorID = 7,
                                                  .deviceID = 9,
                                                  .pipelineCacheUUID = {1, [VK_UUID_SIZE - 1] = 2}};
    const struct grt_dev_info info = {.name = "card", .driver_version = "1"};
    struct gvk_dev *dev = made_up();
    (void)state;
    dev->instance.GetPhysicalDeviceProperties = tell_card;
    dev->vk.vkCreatePipelineCache = take_cache;
    assert_true(gvk_cache_open(dev, &info));  // makes the key
    assert_int_equal(taken, 0);
    assert_string_equal(dev->cache_key, "vulkan\ncard\n1\n01000000000000000000000000000002\n");
    for (int i = 0; i < 8; i++) {
        struct {
            VkPipelineCacheHeaderVersionOne head;
            char rest[8];
        } blob = {.head = good};
        uint32_t *const numbers[] = {&blob.head.headerSize, &blob.head.vendorID,
                                     &blob.head.deviceID};
        if (i < 3) {
            ++*numbers[i];
        } else if (i == 3) {
            blob.head.headerVersion = (VkPipelineCacheHeaderVersion)2;
        } else if (i == 4) {
            blob.head.pipelineCacheUUID[0] = 0;
        } else if (i == 5) {
            blob.head.pipelineCacheUUID[VK_UUID_SIZE - 1] = 0;
        }
        size_t size = i == 6 ? sizeof blob.head - 1 : sizeof blob;
        assert_true(grt_cache_store(dev->cache_key, &blob, size));
        assert_true(gvk_cache_open(dev, &info));
        assert_int_equal(taken, i == 7 ? sizeof blob : 0);
        assert_int_equal(dev->cache_size, taken);
    }
}

// ---- devices that come and go ----

// What was listed is opened, or nothing: another card of the same name is another one.
static void another_card(void **state) {
    (void)state;
    struct grt_dev_list *list = grt_dev_list_create();
    assert_non_null(list);
    struct grt_dev_info info = {0};
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->devices[i].backend == GRT_BACKEND_VULKAN) {
            info = list->devices[i];
        }
    }
    grt_dev_list_destroy(&list);
    if (!info.name[0]) {
        skip();
    }
    const struct grt_dev_desc desc = {0};
    struct grt_dev_info other = info;
    snprintf(other.pci, sizeof other.pci, "ffff:ff:1f.7");
    TEST_REFUSED(grt_backend_vulkan.open(&other, &desc), GRT_NO_DEVICE, "list again");
    other = info;
    snprintf(other.name, sizeof other.name, "another");
    TEST_REFUSED(grt_backend_vulkan.open(&other, &desc), GRT_NO_DEVICE, "list again");
    other = info;
    other.index = 99;
    TEST_REFUSED(grt_backend_vulkan.open(&other, &desc), GRT_NO_DEVICE, "is gone now");
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(clocks_of_two_queues),
    TEST_CASE(another_card),
    TEST_CASE(barriers),
    TEST_CASE(bindings),
    TEST_CASE(phases),
    TEST_CASE(stamps),
    TEST_CASE(refusals),
    CACHE_CASE(pipelines_of_others),
};
TEST_SUITE(vkrecord, false, cases);
