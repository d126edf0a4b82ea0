// SPDX-License-Identifier: Apache-2.0
// Buffers and the account of device memory.
//
// The account refuses before the driver is asked: CPU drivers hand out more than there is, and
// PoCL ends the process when it runs out. Staging buffers lie in host memory and are counted under
// their label, but not against the device's budget.
#include "gpurt/buffer.h"

#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "base/log.h"
#include "timeline/timeline.h"

static const char *const kind_texts[] = {
#define X(name, text) text,
    GRT_BUF_KINDS(X)
#undef X
};

// The row of a label, or account_count; labels are kept, and so compared, up to the row's length.
static uint32_t find_row(const struct grt_dev *dev, const char *label) {
    uint32_t i = 0;
    while (i < dev->account_count &&
           strncmp(dev->accounts[i].label, label, sizeof dev->accounts[i].label - 1) != 0) {
        i++;
    }
    return i;
}

static uint32_t account_row(struct grt_dev *dev, const char *label) {
    uint32_t found = find_row(dev, label);
    if (found < dev->account_count) {
        return found;
    }
    // The last row serves all labels past the table's end.
    if (dev->account_count == GRT_MAX_ACCOUNTS) {
        return GRT_MAX_ACCOUNTS - 1;
    }
    struct grt_mem_use *row = &dev->accounts[dev->account_count];
    strncpy(row->label, label, sizeof row->label - 1);
    return dev->account_count++;
}

static void account_add(struct grt_mem_use *use, uint64_t size) {
    use->current += size;
    use->buffers++;
    if (use->peak < use->current) {
        use->peak = use->current;
    }
}

static void account_drop(struct grt_mem_use *use, uint64_t size) {
    use->current -= size;
    use->buffers -= 1;
}

// The share of the device's memory that may be taken.
static uint64_t share_of(const struct grt_dev *dev) {
    return (uint64_t)((double)dev->info.caps.memory * dev->desc.mem_fraction);
}

uint64_t grt_dev_mem_most(const struct grt_dev *dev) {
    uint64_t share = dev ? share_of(dev) : 0, limit = dev ? dev->desc.mem_limit : 0;
    return limit > 0 && (share == 0 || limit < share) ? limit : share;
}

uint64_t grt_dev_mem_left(struct grt_dev *dev) {
    if (!dev) {
        return 0;
    }
    const struct grt_mem_use *total = &dev->total;
    uint64_t unused = dev->fns->mem_free ? dev->fns->mem_free(dev) : 0;
    uint64_t left;
    if (unused > 0) {
        left = (uint64_t)((double)unused * dev->desc.mem_fraction);
    } else {
        uint64_t budget = share_of(dev);
        left = budget > total->current ? budget - total->current : 0;
    }
    if (dev->desc.mem_limit > 0) {
        uint64_t limit = dev->desc.mem_limit;
        uint64_t allowed = limit > total->current ? limit - total->current : 0;
        left = allowed < left ? allowed : left;
    }
    return left;
}

struct grt_mem_use grt_dev_mem_use(const struct grt_dev *dev, const char *label) {
    struct grt_mem_use none = {0};
    if (!dev) {
        return none;
    }
    if (!label) {
        return dev->total;
    }
    uint32_t row = find_row(dev, label);
    return row < dev->account_count ? dev->accounts[row] : none;
}

bool grt_dev_mem_label(const struct grt_dev *dev, uint32_t i, struct grt_mem_use *use) {
    if (!dev || !use || i >= dev->account_count) {
        return false;
    }
    *use = dev->accounts[i];
    return true;
}

struct grt_buf *grt_buf_create(struct grt_dev *dev, const struct grt_buf_desc *desc) {
    if (!dev || !desc || desc->size == 0 || (unsigned)desc->kind >= GRT_BUF_KIND_COUNT) {
        grt_fail(GRT_INVALID, "grt_buf_create: %s",
                 !dev              ? "no device"
                 : !desc           ? "no desc"
                 : desc->size == 0 ? "size is 0, a buffer has at least 1 byte"
                                   : "unknown kind of buffer");
        return NULL;
    }
    const char *label = desc->label && desc->label[0] ? desc->label : "unnamed";
    if (!grt_dev_usable(dev)) {
        return NULL;
    }
    uint64_t size = desc->size <= UINT64_MAX - 3 ? (desc->size + 3) & ~(uint64_t)3 : UINT64_MAX;
    bool on_device = desc->kind == GRT_BUF_DEVICE;
    if (on_device && dev->info.caps.max_buffer > 0 && size > dev->info.caps.max_buffer) {
        grt_fail(GRT_NO_MEMORY, "buffer '%s' of %.1f MB: %s makes buffers of at most %.1f MB",
                 label, (double)size / 1e6, dev->info.selector,
                 (double)dev->info.caps.max_buffer / 1e6);
        return NULL;
    }
    uint64_t left = on_device ? grt_dev_mem_left(dev) : UINT64_MAX;
    if (size > left) {
        grt_fail(GRT_NO_MEMORY,
                 "buffer '%s' of %.1f MB does not fit: %s has %.1f MB left and %.1f MB taken; use "
                 "smaller sizes, or raise the memory limit or fraction",
                 label, (double)size / 1e6, dev->info.selector, (double)left / 1e6,
                 (double)dev->total.current / 1e6);
        return NULL;
    }
    struct grt_buf *buf = dev->fns->buf_create(dev, size, desc->kind);
    if (!buf) {
        return NULL;
    }
    buf->dev = dev;
    buf->size = size;
    buf->kind = desc->kind;
    buf->refs = 1;
    buf->account = account_row(dev, label);
    account_add(&dev->accounts[buf->account], size);
    if (on_device) {
        account_add(&dev->total, size);
    }
    buf->allocation = grt_timeline_alloc(dev, label, desc->kind, size, dev->total.current);
    dev->objects++;
    grt_log(GRT_LOG_DEBUG, "%s: %s buffer '%s', %llu bytes", dev->info.selector,
            kind_texts[desc->kind], label, (unsigned long long)size);
    return buf;
}

void grt_buf_ref(struct grt_buf *buf) {
    buf->refs++;
}

void grt_buf_unref(struct grt_buf *buf) {
    buf->refs -= 1;
    if (buf->refs > 0) {
        return;
    }
    struct grt_dev *dev = buf->dev;
    dev->fns->wait(dev);  // a queued run may still use it
    account_drop(&dev->accounts[buf->account], buf->size);
    if (buf->kind == GRT_BUF_DEVICE) {
        account_drop(&dev->total, buf->size);
    }
    grt_timeline_free(buf->allocation, dev->total.current);
    dev->fns->buf_destroy(buf);
    dev->objects -= 1;
}

void grt_buf_destroy(struct grt_buf **buf) {
    if (buf && *buf) {
        grt_buf_unref(*buf);
        *buf = NULL;
    }
}

enum grt_buf_kind grt_buf_kind(const struct grt_buf *buf) {
    return buf ? buf->kind : GRT_BUF_DEVICE;
}

uint64_t grt_buf_size(const struct grt_buf *buf) {
    return buf ? buf->size : 0;
}

void *grt_buf_host(const struct grt_buf *buf) {
    return buf && buf->kind != GRT_BUF_DEVICE ? buf->host : NULL;
}

// Checks a blocking transfer and waits for what is queued.
static bool transfer_begin(const char *call, struct grt_buf *buf, uint64_t offset, const void *data,
                           uint64_t size) {
    if (!buf || (!data && size > 0)) {
        return grt_fail(GRT_INVALID, "%s: no %s", call, buf ? "data" : "buffer");
    }
    if (offset > buf->size || size > buf->size - offset) {
        return grt_fail(GRT_INVALID, "%s: %llu bytes from %llu on of a buffer of %llu", call,
                        (unsigned long long)size, (unsigned long long)offset,
                        (unsigned long long)buf->size);
    }
    return grt_dev_wait(buf->dev);
}

bool grt_buf_write(struct grt_buf *buf, uint64_t offset, const void *data, uint64_t size) {
    if (!transfer_begin("grt_buf_write", buf, offset, data, size)) {
        return false;
    }
    if (buf->host && size > 0) {
        memcpy((char *)buf->host + offset, data, size);
        return true;
    }
    return size == 0 || buf->dev->fns->buf_write(buf, offset, data, size);
}

bool grt_buf_read(struct grt_buf *buf, uint64_t offset, void *data, uint64_t size) {
    if (!transfer_begin("grt_buf_read", buf, offset, data, size)) {
        return false;
    }
    if (buf->host && size > 0) {
        memcpy(data, (char *)buf->host + offset, size);
        return true;
    }
    return size == 0 || buf->dev->fns->buf_read(buf, offset, data, size);
}
