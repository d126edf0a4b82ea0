// SPDX-License-Identifier: Apache-2.0
// The device's clock beside the host's, so that a timeline can show both.
//
// Measured: a submit that writes one timestamp and is waited for. The timestamp lies between the
// host's times before and after; of several tries the one with the least between counts, and its
// middle is taken. Where the driver tells both clocks at once (VK_KHR_calibrated_timestamps, or the
// extension of the same calls that it was made from) its answer is taken, if it lies within what
// was measured.
#include "vulkan.h"

#define TRIES 5

// Counts on where the bits of a tick run over: after an hour on some devices. A tick may lie before
// the newest one.
double gvk_clock_seconds(struct gvk_dev *dev, uint64_t tick) {
    uint64_t ahead = (tick - dev->newest) & dev->tick_mask;
    bool before = ahead > dev->tick_mask / 2;
    uint64_t whole = dev->newest + ahead - (before ? dev->tick_mask + 1 : 0);
    dev->newest = before ? dev->newest : whole;
    return (double)(int64_t)(whole - dev->origin) * dev->tick;
}

// Whether both clocks are among those that can be read.
static bool has_both(const struct gvk_dev *dev, const char *name) {
    VkTimeDomainEXT domains[8];
    uint32_t count = sizeof domains / sizeof domains[0];
    bool device = false, host = false;
    PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsEXT list =
        (PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsEXT)vkGetInstanceProcAddr(
            dev->instance.handle, name);
    if (!list || list(dev->physical, &count, domains) < 0) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        device = device || domains[i] == VK_TIME_DOMAIN_DEVICE_EXT;
        host = host || domains[i] == VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT;
    }
    return device && host;
}

PFN_vkGetCalibratedTimestampsEXT gvk_clock_reader(const struct gvk_dev *dev,
                                                  const struct gvk_physical *physical) {
    // Types of the newer one are those of the older; its header may be missing where this is built.
    static const struct {
        enum gvk_ext ext;
        const char *domains, *read;
    } ways[] = {{GVK_EXT_CALIBRATED_TIMESTAMPS, "vkGetPhysicalDeviceCalibrateableTimeDomainsKHR",
                 "vkGetCalibratedTimestampsKHR"},
                {GVK_EXT_CALIBRATED_TIMESTAMPS_EXT,
                 "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT", "vkGetCalibratedTimestampsEXT"}};
    PFN_vkGetCalibratedTimestampsEXT reader = NULL;
    for (size_t i = 0; !reader && i < sizeof ways / sizeof *ways; i++) {
        if (physical->ext[ways[i].ext] && has_both(dev, ways[i].domains)) {
            reader = (PFN_vkGetCalibratedTimestampsEXT)dev->instance.GetDeviceProcAddr(
                dev->handle, ways[i].read);
        }
    }
    return reader;
}

// What a measurement knows: the host's clock read `before` and `after` the device's had `tick`.
struct bracket {
    uint64_t tick;
    double before, after;
};

static bool stamp(struct gvk_dev *dev, VkCommandBuffer cmds, VkQueryPool pool,
                  struct bracket *bracket) {
    bracket->before = grt_seconds();
    if (!gvk_submit(dev, GRT_LANE_MAIN, cmds) || !gvk_wait(&dev->base)) {
        return false;
    }
    bracket->after = grt_seconds();
    VkResult result =
        dev->vk.vkGetQueryPoolResults(dev->handle, pool, 0, 1, sizeof bracket->tick, &bracket->tick,
                                      sizeof bracket->tick, VK_QUERY_RESULT_64_BIT);
    return result == VK_SUCCESS ||
           gvk_fail(dev, GRT_LOST, result, "vkGetQueryPoolResults failed for a clock");
}

static bool record(struct gvk_dev *dev, VkCommandBuffer cmds, VkQueryPool pool) {
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    VkResult result = dev->vk.vkBeginCommandBuffer(cmds, &begin);
    if (result == VK_SUCCESS) {
        dev->vk.vkCmdResetQueryPool(cmds, pool, 0, 1);
        dev->vk.vkCmdWriteTimestamp(cmds, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool, 0);
        result = dev->vk.vkEndCommandBuffer(cmds);
    }
    return result == VK_SUCCESS || gvk_fail(dev, GRT_NO_MEMORY, result, "no commands for a clock");
}

static bool measure(struct gvk_dev *dev, struct bracket *best) {
    const VkQueryPoolCreateInfo pool_info = {
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
        .queryType = VK_QUERY_TYPE_TIMESTAMP,
        .queryCount = 1,
    };
    const VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = dev->lanes[GRT_LANE_MAIN].pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    VkQueryPool pool = VK_NULL_HANDLE;
    VkCommandBuffer cmds = VK_NULL_HANDLE;
    VkResult result = dev->vk.vkCreateQueryPool(dev->handle, &pool_info, NULL, &pool);
    if (result != VK_SUCCESS) {
        return gvk_fail(dev, GRT_NO_MEMORY, result, "vkCreateQueryPool failed for a clock");
    }
    result = dev->vk.vkAllocateCommandBuffers(dev->handle, &info, &cmds);
    bool good = result == VK_SUCCESS
                    ? record(dev, cmds, pool)
                    : gvk_fail(dev, GRT_NO_MEMORY, result, "vkAllocateCommandBuffers failed");
    for (int i = 0; good && i < TRIES; i++) {
        struct bracket bracket = {0};
        good = stamp(dev, cmds, pool, &bracket);
        if (i == 0 || bracket.after - bracket.before < best->after - best->before) {
            *best = bracket;
        }
    }
    if (cmds) {
        dev->vk.vkFreeCommandBuffers(dev->handle, dev->lanes[GRT_LANE_MAIN].pool, 1, &cmds);
    }
    dev->vk.vkDestroyQueryPool(dev->handle, pool, NULL);
    return good;
}

// The driver's own pair; false when it has none.
static bool ask(struct gvk_dev *dev, uint64_t *tick, double *host) {
    const VkCalibratedTimestampInfoEXT clocks[] = {
        {.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT,
         .timeDomain = VK_TIME_DOMAIN_DEVICE_EXT},
        {.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT,
         .timeDomain = VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT},
    };
    uint64_t values[2] = {0}, deviation = 0;
    if (!dev->read_clocks ||
        dev->read_clocks(dev->handle, 2, clocks, values, &deviation) != VK_SUCCESS) {
        return false;
    }
    *tick = values[0];
    *host = 1e-9 * (double)values[1];
    return true;
}

bool gvk_clocks(struct grt_dev *base, double *device, double *host) {
    struct gvk_dev *dev = (struct gvk_dev *)base;
    struct bracket bracket = {0};
    uint64_t tick = 0;
    double when = 0.0;
    if (!measure(dev, &bracket)) {
        return false;
    }
    if (!dev->origin_known) {
        dev->origin = dev->newest = bracket.tick;
        dev->origin_known = true;
    }
    *device = gvk_clock_seconds(dev, bracket.tick);
    *host = 0.5 * (bracket.before + bracket.after);
    if (ask(dev, &tick, &when)) {
        // Where the measured tick lies on the host's clock, by the driver's pair.
        double there = when - (gvk_clock_seconds(dev, tick) - *device);
        if (there >= bracket.before && there <= bracket.after) {
            *host = there;
            grt_log(GRT_LOG_DEBUG, "%s: clocks by its calibrated timestamps", base->info.selector);
        } else {
            grt_log(GRT_LOG_DEBUG, "%s: its calibrated timestamps are off by %.3g s, and not used",
                    base->info.selector, there - *host);
        }
    }
    return true;
}
