// SPDX-License-Identifier: Apache-2.0
#include "gpurt/plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "base/log.h"
#include "timeline/timeline.h"

#define MAX_GROUPS 16
#define MAX_SLABS 64

struct node {
    struct grt_tensor tensor;  // first: a tensor's address is its node's
    uint32_t group;
    uint32_t slab;
    struct node *next;  // in order of declaration
};

// One buffer of a group; a second begins where the device cannot make the first larger.
struct slab {
    uint32_t group;
    uint64_t size;
    struct grt_buf *buf;
};

struct grt_plan {
    struct grt_dev *dev;
    struct node *first, **last;
    char groups[MAX_GROUPS][48];
    uint32_t group_count;
    struct slab slabs[MAX_SLABS];
    uint32_t slab_count;
    bool allocated;
    enum grt_status mistake;
    char mistake_text[256];
};

uint64_t grt_tensor_count(const struct grt_tensor *tensor) {
    uint64_t count = tensor ? 1 : 0;
    for (uint32_t i = 0; tensor && i < tensor->rank; i++) {
        count *= tensor->shape[i];
    }
    return count;
}

uint64_t grt_tensor_bytes(const struct grt_tensor *tensor) {
    return tensor ? grt_tensor_count(tensor) * grt_dtype_size(tensor->dtype) : 0;
}

struct grt_plan *grt_plan_create(struct grt_dev *dev) {
    struct grt_plan *plan = dev ? calloc(1, sizeof *plan) : NULL;
    if (!plan) {
        grt_fail(dev ? GRT_NO_MEMORY : GRT_INVALID, "grt_plan_create: no %s",
                 dev ? "host memory" : "device");
        return NULL;
    }
    plan->dev = dev;
    plan->last = &plan->first;
    return plan;
}

void grt_plan_destroy(struct grt_plan **plan) {
    if (!plan || !*plan) {
        return;
    }
    struct grt_plan *p = *plan;
    *plan = NULL;
    for (uint32_t i = 0; i < p->slab_count; i++) {
        grt_buf_destroy(&p->slabs[i].buf);
    }
    while (p->first) {
        struct node *next = p->first->next;
        free(p->first);
        p->first = next;
    }
    free(p);
}

static void reject(struct grt_plan *plan, enum grt_status status, const char *format, ...) {
    if (plan->mistake != GRT_OK) {
        return;
    }
    plan->mistake = status;
    va_list args;
    va_start(args, format);
    vsnprintf(plan->mistake_text, sizeof plan->mistake_text, format, args);
    va_end(args);
}

static uint32_t find_group(const struct grt_plan *plan, const char *name) {
    uint32_t i = 0;
    while (i < plan->group_count &&
           strncmp(plan->groups[i], name, sizeof plan->groups[i] - 1) != 0) {
        i++;
    }
    return i;
}

// The group that find_group() found no name for gets it.
static void add_group(struct grt_plan *plan, uint32_t group, const char *name) {
    if (group == plan->group_count) {
        snprintf(plan->groups[plan->group_count++], sizeof plan->groups[0], "%s", name);
    }
}

// Bytes of the tensor, or 0 when the shape makes no sense or overflows.
static uint64_t set_shape(struct grt_tensor *tensor, const uint64_t *shape) {
    uint64_t bytes = grt_dtype_size(tensor->dtype);
    while (tensor->rank < GRT_MAX_RANK && shape[tensor->rank] > 0) {
        uint64_t extent = shape[tensor->rank];
        if (bytes > (UINT64_MAX >> 1) / extent) {
            return 0;
        }
        bytes *= extent;
        tensor->shape[tensor->rank++] = extent;
    }
    for (uint32_t i = tensor->rank; i < GRT_MAX_RANK; i++) {
        if (shape[i] != 0) {
            return 0;  // a 0 between other extents
        }
    }
    return bytes;
}

// 1 + the number of the group's newest slab; 0: it has none.
static uint32_t newest_slab(const struct grt_plan *plan, uint32_t group) {
    uint32_t s = plan->slab_count;
    while (s > 0 && plan->slabs[s - 1].group != group) {
        s--;
    }
    return s;
}

// Puts the tensor behind the others of its group.
static void place(struct grt_plan *plan, struct node *node, uint64_t bytes) {
    uint64_t size = grt_dev_align_up(plan->dev, bytes);
    uint64_t largest = plan->dev->info.caps.max_buffer;
    uint32_t s = newest_slab(plan, node->group);
    if (s == 0 || (largest > 0 && plan->slabs[s - 1].size + size > largest)) {
        if (plan->slab_count == MAX_SLABS) {
            reject(plan, GRT_NO_MEMORY,
                   "tensor '%s': more than %u buffers of the device's largest size",
                   node->tensor.label, MAX_SLABS);
            return;
        }
        s = ++plan->slab_count;
        plan->slabs[s - 1] = (struct slab){.group = node->group};
    }
    node->slab = s - 1;
    node->tensor.range.offset = plan->slabs[s - 1].size;
    node->tensor.range.size = bytes;
    plan->slabs[s - 1].size += size;
}

static const char *group_of(const struct grt_tensor_desc *desc) {
    return desc->group && desc->group[0] ? desc->group : "tensors";
}

// At a place, or behind the others of its group.
static struct grt_tensor *declare(struct grt_plan *plan, const struct grt_tensor_desc *desc,
                                  const struct grt_plan_place *at) {
    struct node *node = plan && desc ? calloc(1, sizeof *node) : NULL;
    if (!node) {
        grt_fail(plan && desc ? GRT_NO_MEMORY : GRT_INVALID, "grt_plan_tensor: no %s",
                 !plan   ? "plan"
                 : !desc ? "desc"
                         : "host memory");
        if (plan) {
            // Who does not look at what comes back is refused the memory.
            reject(plan, desc ? GRT_NO_MEMORY : GRT_INVALID, "%s",
                   desc ? "no host memory for a tensor" : "a tensor without a desc");
        }
        return NULL;
    }
    *plan->last = node;
    plan->last = &node->next;
    struct grt_tensor *tensor = &node->tensor;
    tensor->dtype = desc->dtype;
    snprintf(tensor->label, sizeof tensor->label, "%s", desc->label ? desc->label : "unnamed");
    const char *group = group_of(desc);
    node->group = find_group(plan, group);
    if (plan->allocated) {
        reject(plan, GRT_INVALID, "tensor '%s' declared after the allocation", tensor->label);
    } else if ((unsigned)desc->dtype >= GRT_DTYPE_COUNT) {
        reject(plan, GRT_INVALID, "tensor '%s' has no known element type", tensor->label);
    } else if (node->group == MAX_GROUPS) {
        reject(plan, GRT_INVALID, "tensor '%s': more than %u groups", tensor->label, MAX_GROUPS);
    } else {
        add_group(plan, node->group, group);
        uint64_t bytes = set_shape(tensor, desc->shape);
        if (bytes > 0 && at) {
            node->slab = at->slab;
            tensor->range = (struct grt_range){NULL, at->offset, bytes};
        } else if (bytes > 0) {
            place(plan, node, bytes);
        } else {
            reject(plan, GRT_INVALID,
                   "tensor '%s': a shape with an extent of 0 or too many elements", tensor->label);
        }
    }
    if (plan->mistake != GRT_OK) {
        tensor->rank = 1;
        tensor->shape[0] = 0;
    }
    return tensor;
}

struct grt_tensor *grt_plan_tensor(struct grt_plan *plan, const struct grt_tensor_desc *desc) {
    return declare(plan, desc, NULL);
}

// ---- shared memory ----

#define NO_SLAB UINT32_MAX

struct grt_plan_share grt_plan_share_begin(struct grt_plan *plan, const char *group) {
    uint32_t g = plan && group ? find_group(plan, group) : MAX_GROUPS;
    uint32_t s = g < MAX_GROUPS ? newest_slab(plan, g) : 0;
    if (s == 0 && g < MAX_GROUPS && plan->slab_count < MAX_SLABS) {
        add_group(plan, g, group);
        s = ++plan->slab_count;
        plan->slabs[s - 1] = (struct slab){.group = g};
    }
    uint64_t base = s > 0 ? plan->slabs[s - 1].size : 0;
    return (struct grt_plan_share){s > 0 ? s - 1 : NO_SLAB, base, base};
}

// Once a set went on in another slab, those behind it are put there, one behind the other.
void grt_plan_share_next(struct grt_plan *plan, struct grt_plan_share *share) {
    if (share->slab == NO_SLAB) {
        return;
    }
    struct slab *slab = &plan->slabs[share->slab];
    share->high = slab->size > share->high ? slab->size : share->high;
    if (newest_slab(plan, slab->group) == share->slab + 1) {
        slab->size = share->base;
    }
}

void grt_plan_share_end(struct grt_plan *plan, struct grt_plan_share *share) {
    if (share->slab != NO_SLAB) {
        grt_plan_share_next(plan, share);
        plan->slabs[share->slab].size = share->high;
    }
}

struct grt_plan_place grt_plan_place(const struct grt_plan *plan, const char *group) {
    uint32_t g = plan && group ? find_group(plan, group) : MAX_GROUPS;
    uint32_t s = g < MAX_GROUPS ? newest_slab(plan, g) : 0;
    return s > 0 ? (struct grt_plan_place){s - 1, plan->slabs[s - 1].size}
                 : (struct grt_plan_place){NO_SLAB, 0};
}

struct grt_tensor *grt_plan_over(struct grt_plan *plan, const struct grt_tensor_desc *desc,
                                 struct grt_plan_place from, const struct grt_tensor *beside) {
    if (!plan || !desc || (unsigned)desc->dtype >= GRT_DTYPE_COUNT) {
        grt_fail(GRT_INVALID, "grt_plan_over: no %s",
                 !plan   ? "plan"
                 : !desc ? "desc"
                         : "known element type");
        return NULL;
    }
    struct grt_tensor tensor = {.dtype = desc->dtype};
    const struct grt_plan_place end = grt_plan_place(plan, group_of(desc));
    if (end.slab == NO_SLAB) {
        return NULL;
    }
    uint64_t bytes = set_shape(&tensor, desc->shape);
    uint64_t size = grt_dev_align_up(plan->dev, bytes), top = end.offset;
    // Once the group went on in another slab, all of that is behind.
    uint64_t begin = from.slab == end.slab ? from.offset : 0;
    const struct node *other = (const struct node *)beside;
    if (other && other->slab == end.slab && other->tensor.range.offset < top &&
        other->tensor.range.offset + other->tensor.range.size + size > top) {
        top = other->tensor.range.offset;
    }
    if (bytes == 0 || size > top || top - size < begin) {
        return NULL;
    }
    return declare(plan, desc, &(struct grt_plan_place){end.slab, top - size});
}

uint64_t grt_plan_bytes(const struct grt_plan *plan, const char *group) {
    uint64_t bytes = 0;
    uint32_t wanted = plan && group ? find_group(plan, group) : MAX_GROUPS;
    for (uint32_t i = 0; plan && i < plan->slab_count; i++) {
        bytes += !group || plan->slabs[i].group == wanted ? plan->slabs[i].size : 0;
    }
    return bytes;
}

const struct grt_tensor *grt_plan_at(const struct grt_plan *plan, const char *group, uint32_t i) {
    uint32_t wanted = plan && group ? find_group(plan, group) : MAX_GROUPS;
    for (const struct node *node = plan && group ? plan->first : NULL; node; node = node->next) {
        if (node->group == wanted && i-- == 0) {
            return &node->tensor;
        }
    }
    return NULL;
}

bool grt_plan_alloc(struct grt_plan *plan) {
    if (!plan) {
        return grt_fail(GRT_INVALID, "grt_plan_alloc: no plan");
    }
    if (plan->mistake != GRT_OK) {
        return grt_fail(plan->mistake, "plan: %s", plan->mistake_text);
    }
    if (plan->allocated) {
        return grt_fail(GRT_INVALID, "grt_plan_alloc: called twice");
    }
    uint64_t needed = grt_plan_bytes(plan, NULL);
    uint64_t left = grt_dev_mem_left(plan->dev);
    if (needed > left) {
        return grt_fail(
            GRT_NO_MEMORY,
            "the plan needs %.1f MB and %s has %.1f MB left (%.1f MB taken); use smaller "
            "sizes, or raise the memory limit or fraction",
            (double)needed / 1e6, plan->dev->info.selector, (double)left / 1e6,
            (double)plan->dev->total.current / 1e6);
    }
    uint64_t largest = plan->dev->info.caps.max_buffer;
    for (const struct node *node = largest > 0 ? plan->first : NULL; node; node = node->next) {
        if (node->tensor.range.size > largest) {
            return grt_fail(GRT_NO_MEMORY,
                            "tensor '%s' takes %.1f MB, and %s makes buffers of at most %.1f MB; "
                            "use smaller batches or layers",
                            node->tensor.label, (double)node->tensor.range.size / 1e6,
                            plan->dev->info.selector, (double)largest / 1e6);
        }
    }
    for (uint32_t i = 0; i < plan->slab_count; i++) {
        struct slab *slab = &plan->slabs[i];
        if (slab->size == 0) {
            continue;  // begun to be shared by nothing
        }
        slab->buf = grt_buf_create(
            plan->dev, grt_buf_desc(.size = slab->size, .label = plan->groups[slab->group]));
        if (!slab->buf) {
            while (i > 0) {
                grt_buf_destroy(&plan->slabs[--i].buf);
            }
            return false;
        }
    }
    for (struct node *node = plan->first; node; node = node->next) {
        struct grt_buf *buf = plan->slabs[node->slab].buf;
        node->tensor.range.buf = buf;
        grt_timeline_part(buf->allocation, node->tensor.label, node->tensor.range.offset,
                          node->tensor.range.size);
    }
    plan->allocated = true;
    return true;
}

struct grt_range grt_plan_group(const struct grt_plan *plan, const char *group) {
    struct grt_range range = {0};
    uint32_t wanted = plan && group ? find_group(plan, group) : MAX_GROUPS;
    for (uint32_t i = 0; plan && group && i < plan->slab_count; i++) {
        if (plan->slabs[i].group == wanted) {
            if (range.buf) {
                return (struct grt_range){0};  // split: no one range
            }
            range = (struct grt_range){plan->slabs[i].buf, 0, plan->slabs[i].size};
        }
    }
    return range;
}
