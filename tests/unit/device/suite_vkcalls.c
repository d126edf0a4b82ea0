// SPDX-License-Identifier: Apache-2.0
// Every argument of the calls that the Vulkan backend makes of commands: which buffer,
// from where, how much, for which stage; and what it does with a driver's answers. The driver is
// made up. suite_vkrecord.c has the order of the calls.
#include "harness/harness.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backends/vulkan/vulkan.h"

#define HANDLE(type, number) ((type)(uintptr_t)(number))

// ---- the driver ----

static char said[2048];
static int alive;       // of what was made
static int calls_left;  // until one is refused; below 0: never
static VkResult refusal;
static VkQueryResultFlags flags_seen;
static VkResult answer;  // of queries
static uint64_t ticks[8];
static uint32_t resets_by_host, submits;

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
        return refusal;
    }
    alive++;
    return VK_SUCCESS;
}
#define NUMBER(handle) ((unsigned)(uintptr_t)(handle))

static VkResult VKAPI_CALL make_cmds(VkDevice d, const VkCommandBufferAllocateInfo *info,
                                     VkCommandBuffer *cmds) {
    (void)d;
    assert_int_equal(info->level, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
    assert_int_equal(info->commandBufferCount, 1);
    say(" cmds(pool %u)", NUMBER(info->commandPool));
    *cmds = HANDLE(VkCommandBuffer, 8);
    return make();
}
static void VKAPI_CALL free_cmds(VkDevice d, VkCommandPool pool, uint32_t count,
                                 const VkCommandBuffer *cmds) {
    (void)d;
    assert_int_equal(NUMBER(cmds[0]), 8);
    say(" -cmds(pool %u)", NUMBER(pool));
    alive -= (int)count;
}
static VkResult VKAPI_CALL make_pool(VkDevice d, const VkDescriptorPoolCreateInfo *info,
                                     const VkAllocationCallbacks *by, VkDescriptorPool *pool) {
    (void)d, (void)by;
    say(" sets(%u:", info->maxSets);
    for (uint32_t i = 0; i < info->poolSizeCount; i++) {
        say(" %u x %u", info->pPoolSizes[i].descriptorCount, info->pPoolSizes[i].type);
    }
    say(")");
    *pool = HANDLE(VkDescriptorPool, 16);
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
    assert_int_equal(info->queryType, VK_QUERY_TYPE_TIMESTAMP);
    say(" times(%u)", info->queryCount);
    *pool = HANDLE(VkQueryPool, info->queryCount < 3 ? 64 : 72);
    return make();
}
static void VKAPI_CALL end_queries(VkDevice d, VkQueryPool pool, const VkAllocationCallbacks *by) {
    (void)d, (void)by;
    alive -= pool != VK_NULL_HANDLE;
}
static VkResult VKAPI_CALL make_view(VkDevice d, const VkBufferViewCreateInfo *info,
                                     const VkAllocationCallbacks *by, VkBufferView *view) {
    (void)d, (void)by;
    assert_int_equal(info->format, VK_FORMAT_R32G32B32A32_SFLOAT);
    say(" view(%u+%u:%u)", NUMBER(info->buffer), (unsigned)info->offset, (unsigned)info->range);
    *view = HANDLE(VkBufferView, 24);
    return make();
}
static void VKAPI_CALL end_view(VkDevice d, VkBufferView view, const VkAllocationCallbacks *by) {
    (void)d, (void)by;
    assert_int_equal(NUMBER(view), 24);
    alive--;
}
static VkResult VKAPI_CALL make_set(VkDevice d, const VkDescriptorSetAllocateInfo *info,
                                    VkDescriptorSet *set) {
    (void)d;
    assert_int_equal(info->descriptorSetCount, 1);
    assert_int_equal(NUMBER(info->descriptorPool), 16);
    say(" set(layout %u)", NUMBER(info->pSetLayouts[0]));
    *set = HANDLE(VkDescriptorSet, 32);
    return VK_SUCCESS;
}
static void VKAPI_CALL write_sets(VkDevice d, uint32_t count, const VkWriteDescriptorSet *writes,
                                  uint32_t copies, const VkCopyDescriptorSet *from) {
    (void)d, (void)from;
    assert_int_equal(copies, 0);
    for (uint32_t i = 0; i < count; i++) {
        const VkWriteDescriptorSet *w = &writes[i];
        assert_true(NUMBER(w->dstSet) == 32 && w->descriptorCount == 1 && w->dstArrayElement == 0);
        if (w->descriptorType == VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER) {
            say(" %u=texels %u", w->dstBinding, NUMBER(w->pTexelBufferView[0]));
        } else {
            assert_int_equal(w->descriptorType, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER);
            say(" %u=%u+%u:%u", w->dstBinding, NUMBER(w->pBufferInfo->buffer),
                (unsigned)w->pBufferInfo->offset, (unsigned)w->pBufferInfo->range);
        }
    }
}
static VkResult VKAPI_CALL begin_list(VkCommandBuffer c, const VkCommandBufferBeginInfo *info) {
    say(" begin(%u, %u)", NUMBER(c), info->flags);
    return VK_SUCCESS;
}
static VkResult VKAPI_CALL end_list(VkCommandBuffer c) {
    (void)c;
    say(" end");
    return VK_SUCCESS;
}
static void VKAPI_CALL barrier(VkCommandBuffer c, VkPipelineStageFlags from,
                               VkPipelineStageFlags to, VkDependencyFlags flags, uint32_t count,
                               const VkMemoryBarrier *memory, uint32_t buffers,
                               const VkBufferMemoryBarrier *b, uint32_t images,
                               const VkImageMemoryBarrier *i) {
    (void)c, (void)b, (void)i;
    assert_true(count == 1 && flags == 0 && buffers == 0 && images == 0);
    say(" |%x.%x %x.%x", from, memory->srcAccessMask, to, memory->dstAccessMask);
}
static void VKAPI_CALL bind(VkCommandBuffer c, VkPipelineBindPoint point, VkPipeline pipeline) {
    (void)c;
    assert_int_equal(point, VK_PIPELINE_BIND_POINT_COMPUTE);
    say(" pipeline %u", NUMBER(pipeline));
}
static void VKAPI_CALL bind_sets(VkCommandBuffer c, VkPipelineBindPoint point,
                                 VkPipelineLayout layout, uint32_t first, uint32_t count,
                                 const VkDescriptorSet *sets, uint32_t offsets,
                                 const uint32_t *at) {
    (void)c, (void)at;
    assert_int_equal(point, VK_PIPELINE_BIND_POINT_COMPUTE);
    assert_true(first == 0 && count == 1 && offsets == 0 && NUMBER(sets[0]) == 32);
    say(" bound(%u)", NUMBER(layout));
}
static void VKAPI_CALL push(VkCommandBuffer c, VkPipelineLayout layout, VkShaderStageFlags stages,
                            uint32_t offset, uint32_t size, const void *values) {
    (void)c;
    assert_int_equal(stages, VK_SHADER_STAGE_COMPUTE_BIT);
    say(" push(%u, %u+%u:", NUMBER(layout), offset, size);
    for (uint32_t i = 0; i < size; i++) {
        say(" %u", ((const unsigned char *)values)[i]);
    }
    say(")");
}
static void VKAPI_CALL dispatch(VkCommandBuffer c, uint32_t x, uint32_t y, uint32_t z) {
    (void)c;
    say(" run(%u %u %u)", x, y, z);
}
static void VKAPI_CALL copy(VkCommandBuffer c, VkBuffer src, VkBuffer dst, uint32_t count,
                            const VkBufferCopy *region) {
    (void)c;
    assert_int_equal(count, 1);
    say(" copy(%u+%u > %u+%u: %u)", NUMBER(src), (unsigned)region->srcOffset, NUMBER(dst),
        (unsigned)region->dstOffset, (unsigned)region->size);
}
static void VKAPI_CALL fill(VkCommandBuffer c, VkBuffer dst, VkDeviceSize offset, VkDeviceSize size,
                            uint32_t value) {
    (void)c;
    say(" fill(%u+%u: %u, %x)", NUMBER(dst), (unsigned)offset, (unsigned)size, value);
}
static void VKAPI_CALL stamp(VkCommandBuffer c, VkPipelineStageFlagBits after, VkQueryPool pool,
                             uint32_t query) {
    (void)c;
    assert_int_equal(after, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT);
    say(" stamp(%u, %u)", NUMBER(pool), query);
}
static void VKAPI_CALL reset(VkCommandBuffer c, VkQueryPool pool, uint32_t first, uint32_t count) {
    (void)c;
    say(" reset(%u, %u+%u)", NUMBER(pool), first, count);
}
static void VKAPI_CALL reset_by_host(VkDevice d, VkQueryPool pool, uint32_t first, uint32_t count) {
    (void)d;
    resets_by_host++;
    say(" now(%u, %u+%u)", NUMBER(pool), first, count);
}
static VkResult VKAPI_CALL results(VkDevice d, VkQueryPool pool, uint32_t first, uint32_t count,
                                   size_t size, void *into, VkDeviceSize stride,
                                   VkQueryResultFlags flags) {
    (void)d, (void)pool;
    flags_seen = flags;
    assert_true(first == 0 && size == count * sizeof *ticks && stride == sizeof *ticks);
    memcpy(into, ticks, size);
    return answer;
}
static VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo *info,
                                  VkFence fence) {
    (void)queue, (void)count, (void)info, (void)fence;
    submits++;
    say(" submit");
    return VK_SUCCESS;
}
static VkResult VKAPI_CALL wait_for(VkDevice d, const VkSemaphoreWaitInfo *info, uint64_t timeout) {
    (void)d, (void)timeout;
    say(" wait(%u)", (unsigned)info->pValues[0]);
    return VK_SUCCESS;
}

static struct gvk_dev *made_up(void) {
    static struct gvk_dev dev;
    dev = (struct gvk_dev){.base = {.lanes = 2, .info = {.name = "card"}},
                           .tick = 0.5,
                           .tick_mask = 0xff,
                           .max_args = 4};
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
    dev.vk.vkResetQueryPool = reset_by_host;
    dev.vk.vkGetQueryPoolResults = results;
    dev.vk.vkQueueSubmit = submit;
    dev.vk.vkWaitSemaphores = wait_for;
    for (uintptr_t i = 0; i < 2; i++) {
        dev.lanes[i].queue = (VkQueue)(40 + i);
        dev.lanes[i].pool = HANDLE(VkCommandPool, 50 + i);
        dev.lanes[i].timeline = HANDLE(VkSemaphore, 60 + i);
    }
    said[0] = '\0';
    alive = 0;
    calls_left = -1;
    refusal = VK_ERROR_OUT_OF_HOST_MEMORY;
    answer = VK_SUCCESS;
    resets_by_host = submits = 0;
    return &dev;
}

static void expect_said(const char *want) {
    assert_string_equal(said, want);
    said[0] = '\0';
}

// ---- lists ----

static struct gvk_buf buffers[3] = {{.handle = HANDLE(VkBuffer, 1)},
                                    {.handle = HANDLE(VkBuffer, 2)},
                                    {.handle = HANDLE(VkBuffer, 3)}};
#define BUF(i, offset, size)                                                                       \
    { &buffers[i].base, offset, size }

#define HEAD " cmds(pool 50)"
#define BEFORE " |10000.10000 10000.18000"  // all that was written is seen by all
#define DISPATCHES_END " |800.40 4000.6000 end"
#define BOTH_END " |1800.1040 4000.6000 end"
#define COPIES_END " |1000.1000 4000.6000 end"

// Of each command all that it says; barriers are for what the list does, and no less.
static void arguments(void **state) {
    (void)state;
    static const struct grt_arg_info args[] = {
        {"x", "float", GRT_READ}, {"t", "texels", GRT_READ}, {"y", "u16", GRT_WRITE}};
    static const struct grt_kernel_info info = {
        .name = "k", .args = args, .arg_count = 3, .params_size = 8};
    struct gvk_kernel kernel = {.base = {.info = &info},
                                .handle = HANDLE(VkPipeline, 4),
                                .layout = HANDLE(VkPipelineLayout, 5),
                                .set_layout = HANDLE(VkDescriptorSetLayout, 6),
                                .params_size = 8};
    struct gvk_dev *dev = made_up();
    struct grt_cmd cmds[3] = {
        {.kind = GRT_CMD_DISPATCH,
         .sync = -1,
         .kernel = &kernel.base,
         .bindings = {BUF(0, 256, 100), BUF(1, 512, 33), BUF(2, 0, 40)},
         .groups = {3, 5, 7},
         .params_size = 8,
         .params = {1, 2, 3, 4, 5, 6, 7, 8}},
        {.kind = GRT_CMD_COPY, .sync = 0, .dst = BUF(1, 64, 20), .src = BUF(2, 128, 20)},
        {.kind = GRT_CMD_FILL, .sync = -1, .dst = BUF(0, 12, 8), .value = 0xabc},
    };
    void *list = gvk_cmds_create(&dev->base, cmds, 1, 0, GRT_LANE_MAIN, false);
#define LAUNCH                                                                                     \
    " pipeline 4 set(layout 6) view(2+512:48) 0=1+256:100 1=texels 24 2=3+0:40 bound(5)"           \
    " push(5, 0+8: 1 2 3 4 5 6 7 8) run(3 5 7)"
    expect_said(HEAD " sets(1: 2 x 7 1 x 4) begin(8, 4)" BEFORE LAUNCH DISPATCHES_END);
    assert_int_equal(alive, 3);
    gvk_cmds_destroy(&dev->base, list);
    expect_said(" -cmds(pool 50)");
    assert_int_equal(alive, 0);
    list = gvk_cmds_create(&dev->base, cmds, 3, 0, GRT_LANE_MAIN, false);
    expect_said(HEAD " sets(1: 2 x 7 1 x 4) begin(8, 4)" BEFORE LAUNCH
                     " |1800.1040 1800.1860 copy(3+128 > 2+64: 20) fill(1+12: 8, abc)" BOTH_END);
    gvk_cmds_destroy(&dev->base, list);
    said[0] = '\0';
    // Two dispatches of which the second waits.
    cmds[1] = cmds[0];
    cmds[1].sync = 0;
    list = gvk_cmds_create(&dev->base, cmds, 2, 0, GRT_LANE_MAIN, false);
    expect_said(HEAD " sets(2: 4 x 7 2 x 4) begin(8, 4)" BEFORE LAUNCH
                     " |800.40 800.60 run(3 5 7)" DISPATCHES_END);
    gvk_cmds_destroy(&dev->base, list);
    said[0] = '\0';
    // On the queue for uploads, of its own pool.
    const struct grt_cmd up[] = {
        {.kind = GRT_CMD_COPY, .sync = -1, .dst = BUF(1, 64, 20), .src = BUF(2, 128, 20)},
        {.kind = GRT_CMD_COPY, .sync = 0, .dst = BUF(1, 0, 4), .src = BUF(2, 0, 4)}};
    list = gvk_cmds_create(&dev->base, up, 2, 0, GRT_LANE_ASIDE, false);
    expect_said(" cmds(pool 51) begin(8, 4)" BEFORE " copy(3+128 > 2+64: 20)"
                " |1000.1000 1000.1800 copy(3+0 > 2+0: 4)" COPIES_END);
    gvk_cmds_destroy(&dev->base, list);
    expect_said(" -cmds(pool 51)");
    // Where there is one queue its lists go to the main one.
    dev->base.lanes = 1;
    list = gvk_cmds_create(&dev->base, up, 1, 0, GRT_LANE_ASIDE, false);
    expect_said(HEAD " begin(8, 4)" BEFORE " copy(3+128 > 2+64: 20)" BOTH_END);
    gvk_cmds_destroy(&dev->base, list);
    assert_int_equal(alive, 0);
    cmds[0].kernel = NULL;
    cmds[0].kind = (enum grt_cmd_kind)9;
    TEST_REFUSED(gvk_cmds_create(&dev->base, cmds, 1, 0, GRT_LANE_MAIN, false), GRT_INVALID,
                 "command 0 is of the unknown kind 9");
    assert_int_equal(alive, 0);
}

// Phases are asked for without waiting, commands are waited for; what the driver answers.
static void times(void **state) {
    (void)state;
    struct gvk_dev *dev = made_up();
    struct grt_dev *base = &dev->base;
    const struct grt_cmd cmds[] = {{.kind = GRT_CMD_PHASE, .sync = -1, .phase = 0},
                                   {.kind = GRT_CMD_FILL, .sync = -1, .dst = BUF(0, 0, 4)}};
    double begin[2] = {7, 7}, end[2] = {7, 7};
    struct grt_stamps stamps = {.begin = begin, .end = end};
    dev->host_reset = true;
    void *list = gvk_cmds_create(base, cmds, 2, 1, GRT_LANE_MAIN, true);
    expect_said(HEAD " times(2) times(3) begin(8, 4) reset(64, 0+2)" BEFORE
                     " stamp(72, 0) stamp(64, 0) stamp(72, 1) fill(1+0: 4, 0) stamp(72, 2)"
                     " |1800.1040 4000.6000 stamp(64, 1) end");
    // The host resets before each run, not when the list is made.
    for (uint32_t i = 1; i <= 2; i++) {
        assert_true(gvk_cmds_run(base, list));
        expect_said(" now(72, 0+3) submit");
        assert_int_equal(resets_by_host, i);
    }
    ticks[0] = 250, ticks[1] = 10, ticks[2] = 12;
    assert_true(gvk_cmds_times(base, list, begin, end));
    assert_int_equal(flags_seen, VK_QUERY_RESULT_64_BIT);
    assert_true(begin[0] == 0 && end[0] == 8);  // 16 ticks of half a second, over the end
    expect_said("");
    assert_true(gvk_cmds_stamps(base, list, &stamps));
    assert_int_equal(flags_seen, VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    expect_said(" wait(2)");
    assert_true(end[0] - begin[0] == 8 && end[1] - begin[1] == 1 && end[0] == begin[1]);
    answer = VK_NOT_READY;
    TEST_REFUSED(gvk_cmds_times(base, list, begin, end), GRT_INVALID, "has not run were asked for");
    assert_int_equal(base->status, GRT_OK);
    answer = VK_ERROR_UNKNOWN;
    TEST_REFUSED(gvk_cmds_times(base, list, begin, end), GRT_LOST,
                 "card: vkGetQueryPoolResults failed: VK_ERROR_UNKNOWN (-13)");
    TEST_REFUSED(gvk_cmds_stamps(base, list, &stamps), GRT_LOST, "card: vkGetQueryPoolResults");
    gvk_cmds_destroy(base, list);
    // Without a clock the times are of nothing: phases keep what they were, commands have none.
    dev->tick = 0;
    said[0] = '\0';
    list = gvk_cmds_create(base, cmds, 2, 1, GRT_LANE_MAIN, true);
    expect_said(HEAD " begin(8, 4)" BEFORE " fill(1+0: 4, 0)" BOTH_END);
    begin[0] = end[0] = 7;
    assert_true(gvk_cmds_run(base, list) && gvk_cmds_times(base, list, begin, end));
    assert_true(begin[0] == 7 && end[0] == 7);
    assert_true(gvk_cmds_stamps(base, list, &stamps));
    assert_true(isnan(begin[0]) && isnan(begin[1]) && !stamps.host);
    base->status = GRT_LOST;
    assert_false(gvk_cmds_stamps(base, list, &stamps));
    gvk_cmds_destroy(base, list);
    assert_int_equal(alive, 0);
}

// A lane without a queue is the host's: it copies when it is told to, and knows when it did.
static void copies_by_the_host(void **state) {
    (void)state;
    struct gvk_dev *dev = made_up();
    struct grt_dev *base = &dev->base;
    char from[8] = "abcdefg", to[8] = "-------";
    struct gvk_buf src = {.map = from}, dst = {.map = to}, none = {.map = NULL};
    struct grt_cmd cmds[2] = {
        {.kind = GRT_CMD_COPY, .dst = {&dst.base, 1, 3}, .src = {&src.base, 2, 3}},
        {.kind = GRT_CMD_COPY, .dst = {&dst.base, 5, 2}, .src = {&src.base, 0, 2}}};
    double begin[2] = {-1, -1}, end[2] = {-1, -1};
    struct grt_stamps stamps = {.begin = begin, .end = end};
    dev->lanes[GRT_LANE_ASIDE].queue = NULL;
    for (int timed = 0; timed < 2; timed++) {
        memcpy(to, "-------", 8);
        void *list = gvk_cmds_create(base, cmds, 2, 0, GRT_LANE_ASIDE, timed);
        assert_string_equal(to, "-------");
        double before = grt_seconds();
        assert_true(gvk_cmds_run(base, list));
        double after = grt_seconds();
        assert_string_equal(to, "-cde-ab");
        assert_true(gvk_cmds_stamps(base, list, &stamps) && stamps.host);
        if (timed) {
            assert_true(begin[0] >= before && end[0] >= begin[0] && begin[1] >= end[0] &&
                        end[1] >= begin[1] && end[1] <= after);
        } else {
            assert_true(begin[0] == 0 && end[1] == 0);
        }
        gvk_cmds_destroy(base, list);
    }
    expect_said("");  // the driver hears of nothing
    cmds[1].dst.buf = &none.base;
    TEST_REFUSED(gvk_cmds_create(base, cmds, 2, 0, GRT_LANE_ASIDE, false), GRT_UNSUPPORTED,
                 "the host cannot reach");
    cmds[1].dst.buf = &dst.base;
    cmds[1].src.buf = &none.base;
    TEST_REFUSED(gvk_cmds_create(base, cmds, 2, 0, GRT_LANE_ASIDE, false), GRT_UNSUPPORTED,
                 "the host cannot reach");
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(arguments),
    TEST_CASE(times),
    TEST_CASE(copies_by_the_host),
};
TEST_SUITE(vkcalls, false, cases);
