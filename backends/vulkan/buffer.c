// SPDX-License-Identifier: Apache-2.0
// Memory: one allocation per buffer. The runtime makes few and large ones (arenas), so there is
// nothing to sub-allocate, and a buffer's end is its allocation's end.
//
//     kind       discrete GPU                          shared memory (CPU driver, integrated GPU)
//     device     device-local, not mapped              device-local, mapped: transfers are memcpy
//     upload     system memory, write-combined         any that is not cached
//     readback   system memory, cached                 any that is cached
//
// Everything mapped is coherent, so no flush or invalidation is ever needed. Blocking transfers
// of unmapped buffers go through a staging buffer of 8 MiB, chunk by chunk: they are for set-up and
// tests, and at 8 MiB a chunk's fixed cost is already small beside its copy.
#include "vulkan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STAGING_SIZE ((uint64_t)8 << 20)

#define LOCAL VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
#define MAPPED (VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)
#define CACHED VK_MEMORY_PROPERTY_HOST_CACHED_BIT

// What a kind of buffer wants, best first; the first row that some memory type satisfies is taken.
// Vulkan promises that a MAPPED type exists, and a LOCAL one.
struct wish {
    VkMemoryPropertyFlags with;
    VkMemoryPropertyFlags without;
};

#define WISHES 4
static const struct wish discrete_wishes[GRT_BUF_KIND_COUNT][WISHES] = {
    [GRT_BUF_DEVICE] = {{LOCAL, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT}, {LOCAL, 0}, {0, 0}, {0, 0}},
    [GRT_BUF_UPLOAD] = {{MAPPED, LOCAL | CACHED}, {MAPPED, LOCAL}, {MAPPED, 0}, {MAPPED, 0}},
    [GRT_BUF_READBACK] = {{MAPPED | CACHED, LOCAL},
                          {MAPPED | CACHED, 0},
                          {MAPPED, LOCAL},
                          {MAPPED, 0}},
};
static const struct wish shared_wishes[GRT_BUF_KIND_COUNT][WISHES] = {
    [GRT_BUF_DEVICE] = {{LOCAL | MAPPED | CACHED, 0}, {LOCAL | MAPPED, 0}, {LOCAL, 0}, {0, 0}},
    [GRT_BUF_UPLOAD] = {{MAPPED, CACHED}, {MAPPED, 0}, {MAPPED, 0}, {MAPPED, 0}},
    [GRT_BUF_READBACK] = {{MAPPED | CACHED, 0}, {MAPPED, 0}, {MAPPED, 0}, {MAPPED, 0}},
};

static const char *const kind_texts[] = {
#define X(name, text) text,
    GRT_BUF_KINDS(X)
#undef X
};

// Index of a memory type among those `allowed`, or UINT32_MAX.
static uint32_t choose_type(const struct gvk_dev *dev, uint32_t allowed, enum grt_buf_kind kind) {
    const struct wish *wishes = dev->shared_memory ? shared_wishes[kind] : discrete_wishes[kind];
    for (uint32_t w = 0; w < WISHES; w++) {
        for (uint32_t i = 0; i < dev->memory.memoryTypeCount; i++) {
            VkMemoryPropertyFlags flags = dev->memory.memoryTypes[i].propertyFlags;
            // Any further property (protected, lazily allocated, a vendor's) is a special purpose.
            bool is_plain = (flags & ~(VkMemoryPropertyFlags)(LOCAL | MAPPED | CACHED)) == 0;
            if ((allowed >> i & 1) && is_plain && (flags & wishes[w].with) == wishes[w].with &&
                (flags & wishes[w].without) == 0) {
                return i;
            }
        }
    }
    return UINT32_MAX;
}

#define LARGE_PAGE (2u << 20)

static bool allocate(struct gvk_buf *buf, uint64_t size, enum grt_buf_kind kind) {
    struct gvk_dev *dev = buf->dev;
    VkMemoryRequirements needs;
    dev->vk.vkGetBufferMemoryRequirements(dev->handle, buf->handle, &needs);
    uint32_t type = choose_type(dev, needs.memoryTypeBits, kind);
    if (type == UINT32_MAX) {
        return grt_fail(GRT_UNSUPPORTED, "%s has no memory type for %s buffers",
                        dev->base.info.name, kind_texts[kind]);
    }
    const VkMemoryAllocateFlagsInfo addressed = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
        .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT,
    };
    // NVIDIA's driver gives memory of one buffer large pages. 768x456x104272 nt in f16, whose rows
    // lie 200 KB apart, took 212 us without this, 132 with it and 134 on OpenCL (H200, 2026-11-18).
    // A buffer smaller than such a page gains nothing, and might take all of one.
    const VkMemoryDedicatedAllocateInfo own = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO,
        .pNext = dev->imports ? &addressed : NULL,
        .buffer = buf->handle,
    };
    const VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .pNext = needs.size >= LARGE_PAGE ? &own : own.pNext,
        .allocationSize = needs.size,
        .memoryTypeIndex = type,
    };
    VkResult result = dev->vk.vkAllocateMemory(dev->handle, &info, NULL, &buf->memory);
    if (result != VK_SUCCESS) {
        buf->memory = VK_NULL_HANDLE;
        return gvk_fail(dev, GRT_NO_MEMORY, result,
                        "%s refused %" PRIu64 " bytes for a %s buffer (memory type %" PRIu32 ")",
                        dev->base.info.name, size, kind_texts[kind], type);
    }
    result = dev->vk.vkBindBufferMemory(dev->handle, buf->handle, buf->memory, 0);
    if (result != VK_SUCCESS) {
        return gvk_fail(dev, GRT_NO_MEMORY, result,
                        "vkBindBufferMemory failed for %" PRIu64 " bytes", size);
    }
    if (dev->imports) {
        const VkBufferDeviceAddressInfo address = {
            .sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .buffer = buf->handle};
        buf->address = dev->vk.vkGetBufferDeviceAddress(dev->handle, &address);
    }
    bool can_map = (dev->memory.memoryTypes[type].propertyFlags & MAPPED) == MAPPED;
    if (can_map && (dev->shared_memory || kind != GRT_BUF_DEVICE)) {
        result = dev->vk.vkMapMemory(dev->handle, buf->memory, 0, VK_WHOLE_SIZE, 0, &buf->map);
        if (result != VK_SUCCESS) {
            return gvk_fail(dev, GRT_NO_MEMORY, result, "vkMapMemory failed for %" PRIu64 " bytes",
                            size);
        }
    }
    return true;
}

static struct gvk_buf *create(struct gvk_dev *dev, uint64_t size, enum grt_buf_kind kind) {
    struct gvk_buf *buf = calloc(1, sizeof *buf);
    if (buf == NULL) {
        grt_fail(GRT_NO_MEMORY, "no memory for the record of a buffer");
        return NULL;
    }
    buf->dev = dev;
    bool one = dev->families[GRT_LANE_MAIN] == dev->families[GRT_LANE_ASIDE];
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = (size + 15) / 16 * 16,  // the last texel is whole
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT |
                 (dev->imports ? VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT : 0),
        .sharingMode = one ? VK_SHARING_MODE_EXCLUSIVE : VK_SHARING_MODE_CONCURRENT,
        .queueFamilyIndexCount = one ? 0 : GRT_LANE_COUNT,
        .pQueueFamilyIndices = dev->families,
    };
    VkResult result = dev->vk.vkCreateBuffer(dev->handle, &info, NULL, &buf->handle);
    if (result != VK_SUCCESS) {
        gvk_fail(dev, GRT_NO_MEMORY, result, "vkCreateBuffer failed for %" PRIu64 " bytes", size);
        goto undo_record;
    }
    if (!allocate(buf, size, kind)) {
        goto undo_buffer;
    }
    return buf;

undo_buffer:
    dev->vk.vkDestroyBuffer(dev->handle, buf->handle, NULL);
    dev->vk.vkFreeMemory(dev->handle, buf->memory, NULL);
undo_record:
    free(buf);
    return NULL;
}

struct grt_buf *gvk_buf_create(struct grt_dev *base, uint64_t size, enum grt_buf_kind kind) {
    struct gvk_buf *buf = create((struct gvk_dev *)base, size, kind);
    if (buf == NULL) {
        return NULL;
    }
    buf->base.host = kind == GRT_BUF_DEVICE ? NULL : buf->map;
    return &buf->base;
}

void gvk_buf_destroy(struct grt_buf *base) {
    struct gvk_buf *buf = (struct gvk_buf *)base;
    struct gvk_dev *dev = buf->dev;
    dev->vk.vkDestroyBuffer(dev->handle, buf->handle, NULL);
    dev->vk.vkFreeMemory(dev->handle, buf->memory, NULL);  // unmaps
    free(buf);
}

// ---- blocking transfers ----

static bool staging_create(struct gvk_dev *dev) {
    if (dev->staging) {
        return true;
    }
    const VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = dev->lanes[GRT_LANE_MAIN].pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    VkResult result = dev->vk.vkAllocateCommandBuffers(dev->handle, &info, &dev->staging_cmds);
    if (result != VK_SUCCESS) {
        dev->staging_cmds = VK_NULL_HANDLE;
        return gvk_fail(dev, GRT_NO_MEMORY, result, "vkAllocateCommandBuffers failed");
    }
    // One buffer serves both ways. Cached, because reading uncached memory is the slower sin.
    dev->staging = create(dev, STAGING_SIZE, GRT_BUF_READBACK);
    if (dev->staging == NULL) {
        dev->vk.vkFreeCommandBuffers(dev->handle, dev->lanes[GRT_LANE_MAIN].pool, 1,
                                     &dev->staging_cmds);
        dev->staging_cmds = VK_NULL_HANDLE;
    }
    return dev->staging != NULL;
}

void gvk_staging_destroy(struct gvk_dev *dev) {
    if (dev->staging) {
        gvk_buf_destroy(&dev->staging->base);
        dev->vk.vkFreeCommandBuffers(dev->handle, dev->lanes[GRT_LANE_MAIN].pool, 1,
                                     &dev->staging_cmds);
        dev->staging = NULL;
    }
}

// One copy on the queue, and the wait for it.
static bool copy_and_wait(struct gvk_dev *dev, VkBuffer dst, uint64_t dst_offset, VkBuffer src,
                          uint64_t src_offset, uint64_t size) {
    VkCommandBuffer cmds = dev->staging_cmds;
    const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    VkResult result = dev->vk.vkBeginCommandBuffer(cmds, &begin);
    if (result != VK_SUCCESS) {
        return gvk_fail(dev, GRT_NO_MEMORY, result, "vkBeginCommandBuffer failed");
    }
    gvk_barrier(dev, cmds, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_ACCESS_MEMORY_WRITE_BIT,
                VK_PIPELINE_STAGE_TRANSFER_BIT,
                VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
    const VkBufferCopy region = {.srcOffset = src_offset, .dstOffset = dst_offset, .size = size};
    dev->vk.vkCmdCopyBuffer(cmds, src, dst, 1, &region);
    gvk_barrier(dev, cmds, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
                VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
    result = dev->vk.vkEndCommandBuffer(cmds);
    if (result != VK_SUCCESS) {
        return gvk_fail(dev, GRT_NO_MEMORY, result, "vkEndCommandBuffer failed");
    }
    return gvk_submit(dev, GRT_LANE_MAIN, cmds) && gvk_wait(&dev->base);
}

bool gvk_buf_write(struct grt_buf *base, uint64_t offset, const void *data, uint64_t size) {
    struct gvk_buf *buf = (struct gvk_buf *)base;
    if (buf->map) {
        memcpy((char *)buf->map + offset, data, size);
        return true;
    }
    struct gvk_dev *dev = buf->dev;
    if (!staging_create(dev)) {
        return false;
    }
    for (uint64_t done = 0; done < size;) {
        uint64_t part = size - done < STAGING_SIZE ? size - done : STAGING_SIZE;
        memcpy(dev->staging->map, (const char *)data + done, part);
        if (!copy_and_wait(dev, buf->handle, offset + done, dev->staging->handle, 0, part)) {
            return false;
        }
        done += part;
    }
    return true;
}

bool gvk_buf_read(struct grt_buf *base, uint64_t offset, void *data, uint64_t size) {
    struct gvk_buf *buf = (struct gvk_buf *)base;
    if (buf->map) {
        memcpy(data, (const char *)buf->map + offset, size);
        return true;
    }
    struct gvk_dev *dev = buf->dev;
    if (!staging_create(dev)) {
        return false;
    }
    for (uint64_t done = 0; done < size;) {
        uint64_t part = size - done < STAGING_SIZE ? size - done : STAGING_SIZE;
        if (!copy_and_wait(dev, dev->staging->handle, 0, buf->handle, offset + done, part)) {
            return false;
        }
        memcpy((char *)data + done, dev->staging->map, part);
        done += part;
    }
    return true;
}

uint64_t gvk_mem_free(struct grt_dev *base) {
    struct gvk_dev *dev = (struct gvk_dev *)base;
    if (!dev->budget) {
        return 0;  // unknown
    }
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 memory = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
        .pNext = &budget,
    };
    dev->instance.GetPhysicalDeviceMemoryProperties2(dev->physical, &memory);
    uint64_t limit = budget.heapBudget[dev->heap];
    uint64_t usage = budget.heapUsage[dev->heap];
    return limit > usage ? limit - usage : 1;  // full is not unknown
}
