// SPDX-License-Identifier: Apache-2.0
// Lanes: queues with a timeline semaphore each that counts its submits. A mark is a value of that
// count, so waiting, asking and ordering are all about one number, and no fence or event is ever
// made.
//
//     main    step 0 | step 1 | step 2        the compute queue
//                  ^ 1      ^ 2               a submit waits for the other lane's count where it
//                                             was told
//     aside   up 1 | up 2 | up 3              one of three, the first that there is:
//
//     a queue of a family that only copies (a DMA engine), or a second one of the main family
//     the calling thread, on a CPU driver: it waits for the mark, then memcpy() between mapped
//     buffers, while the driver's threads work on the main lane
//     the main lane
#include <string.h>

#include "vulkan.h"

// The lane that lists of a lane really go to.
static struct gvk_lane *lane_of(struct gvk_dev *dev, enum grt_lane lane) {
    return &dev->lanes[dev->base.lanes > 1 ? lane : GRT_LANE_MAIN];
}

static bool create_lane(struct gvk_dev *dev, struct gvk_lane *lane, uint32_t family,
                        uint32_t index) {
    const VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = family,
    };
    const VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    const VkSemaphoreCreateInfo timeline = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
        .pNext = &type,
    };
    dev->vk.vkGetDeviceQueue(dev->handle, family, index, &lane->queue);
    VkResult result = dev->vk.vkCreateCommandPool(dev->handle, &pool, NULL, &lane->pool);
    if (result != VK_SUCCESS) {
        lane->pool = VK_NULL_HANDLE;
        return gvk_fail(dev, GRT_NO_DEVICE, result, "vkCreateCommandPool failed");
    }
    result = dev->vk.vkCreateSemaphore(dev->handle, &timeline, NULL, &lane->timeline);
    if (result != VK_SUCCESS) {
        lane->timeline = VK_NULL_HANDLE;
        return gvk_fail(dev, GRT_NO_DEVICE, result, "vkCreateSemaphore failed");
    }
    return true;
}

bool gvk_lanes_create(struct gvk_dev *dev, const struct gvk_physical *physical) {
    dev->families[GRT_LANE_MAIN] = physical->family;
    dev->families[GRT_LANE_ASIDE] = physical->has_aside ? physical->aside : physical->family;
    dev->base.lanes = physical->has_aside || dev->software ? 2 : 1;
    return create_lane(dev, &dev->lanes[GRT_LANE_MAIN], physical->family, 0) &&
           (!physical->has_aside ||
            create_lane(dev, &dev->lanes[GRT_LANE_ASIDE], physical->aside, physical->aside_index));
}

void gvk_lanes_destroy(struct gvk_dev *dev) {
    for (int i = 0; i < GRT_LANE_COUNT; i++) {
        dev->vk.vkDestroySemaphore(dev->handle, dev->lanes[i].timeline, NULL);
        dev->vk.vkDestroyCommandPool(dev->handle, dev->lanes[i].pool, NULL);
    }
}

// The lane reaches `value` when the lists have finished.
static bool submit(struct gvk_dev *dev, struct gvk_lane *lane, const VkCommandBuffer *cmds,
                   uint32_t list_count, uint64_t value) {
    const struct gvk_lane *other = &dev->lanes[lane == dev->lanes ? GRT_LANE_ASIDE : GRT_LANE_MAIN];
    const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    const uint32_t waits = lane->after > 0 && other->timeline ? 1 : 0;
    const VkTimelineSemaphoreSubmitInfo count = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = waits,
        .pWaitSemaphoreValues = &lane->after,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &value,
    };
    const VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &count,
        .waitSemaphoreCount = waits,
        .pWaitSemaphores = &other->timeline,
        .pWaitDstStageMask = &stages,
        .commandBufferCount = list_count,
        .pCommandBuffers = cmds,
        .signalSemaphoreCount = 1,
        .pSignalSemaphores = &lane->timeline,
    };
    VkResult result = dev->vk.vkQueueSubmit(lane->queue, 1, &submit, VK_NULL_HANDLE);
    if (result != VK_SUCCESS) {
        return gvk_fail(dev, GRT_LOST, result, "%s: vkQueueSubmit failed", dev->base.info.name);
    }
    lane->submitted = value;
    lane->after = 0;  // later submits of the lane come behind this one
    return true;
}

// Submits what is held. Whoever queued it was told that it will run and may have marks of it, so a
// driver that refuses it closes the device.
static bool flush(struct gvk_dev *dev, struct gvk_lane *lane) {
    uint32_t count = lane->held_count;
    lane->held_count = 0;
    if (count == 0 || submit(dev, lane, lane->held, count, lane->submitted)) {
        return true;
    }
    lane->submitted--;  // no wait is for what never comes
    dev->base.status = GRT_LOST;
    return false;
}

bool gvk_submit(struct gvk_dev *dev, enum grt_lane which, VkCommandBuffer cmds) {
    struct gvk_lane *lane = lane_of(dev, which);
    // What waits for the other lane goes out by itself.
    if (!lane->holds || lane->after > 0) {
        uint64_t after = lane->after;
        lane->after = 0;
        bool good = flush(dev, lane);
        lane->after = after;
        return good && submit(dev, lane, &cmds, 1, lane->submitted + 1);
    }
    lane->submitted += lane->held_count == 0;
    lane->held[lane->held_count++] = cmds;
    return lane->held_count < GVK_HELD || flush(dev, lane);
}

bool gvk_hold(struct grt_dev *base, bool on) {
    struct gvk_dev *dev = (struct gvk_dev *)base;
    struct gvk_lane *lane = &dev->lanes[GRT_LANE_MAIN];
    lane->holds = on;
    return flush(dev, lane);
}

bool gvk_lane_wait(struct grt_dev *base, enum grt_lane which, uint64_t mark) {
    struct gvk_dev *dev = (struct gvk_dev *)base;
    struct gvk_lane *lane = lane_of(dev, which);
    if (!flush(dev, lane)) {
        return false;
    }
    const VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &lane->timeline,
        .pValues = &mark,
    };
    VkResult result = dev->vk.vkWaitSemaphores(dev->handle, &info, UINT64_MAX);
    if (result != VK_SUCCESS) {
        return gvk_fail(dev, GRT_LOST, result, "%s: vkWaitSemaphores failed", dev->base.info.name);
    }
    return true;
}

bool gvk_wait(struct grt_dev *base) {
    struct gvk_dev *dev = (struct gvk_dev *)base;
    const struct gvk_lane *aside = &dev->lanes[GRT_LANE_ASIDE];
    return gvk_lane_wait(base, GRT_LANE_MAIN, dev->lanes[GRT_LANE_MAIN].submitted) &&
           (!aside->timeline || gvk_lane_wait(base, GRT_LANE_ASIDE, aside->submitted));
}

uint64_t gvk_lane_mark(struct grt_dev *base, enum grt_lane lane) {
    return lane_of((struct gvk_dev *)base, lane)->submitted;
}

bool gvk_lane_after(struct grt_dev *base, enum grt_lane lane, uint64_t mark) {
    struct gvk_dev *dev = (struct gvk_dev *)base;
    if (!dev->lanes[lane].queue) {
        return gvk_lane_wait(base, GRT_LANE_MAIN, mark);  // the host is the lane
    }
    if (!flush(dev, &dev->lanes[GRT_LANE_MAIN])) {
        return false;
    }
    dev->lanes[lane].after = mark > dev->lanes[lane].after ? mark : dev->lanes[lane].after;
    return true;
}

bool gvk_lane_passed(struct grt_dev *base, enum grt_lane which, uint64_t mark) {
    struct gvk_dev *dev = (struct gvk_dev *)base;
    struct gvk_lane *lane = lane_of(dev, which);
    uint64_t value = 0;
    if (!flush(dev, lane)) {
        return false;
    }
    VkResult result = dev->vk.vkGetSemaphoreCounterValue(dev->handle, lane->timeline, &value);
    return result == VK_SUCCESS && value >= mark;
}
