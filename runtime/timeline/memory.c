// SPDX-License-Identifier: Apache-2.0
// Allocations of a timeline, and the file of them.
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "file.h"
#include "timeline.h"

// With the lock held.
static void note_level(struct grt_timeline *t, double at, uint64_t bytes) {
    void *levels = t->levels;
    if (grt_timeline_grow(t, &levels, t->level_count, &t->level_room, sizeof *t->levels)) {
        t->levels = levels;
        t->levels[t->level_count++] = (struct grt_level){at, bytes};
    }
}

// Entered, if it wants to hear of memory; else NULL.
static struct grt_timeline *listener(void) {
    struct grt_timeline *t = grt_timeline_enter();
    if (t && !t->desc.memory && !t->desc.events) {
        grt_timeline_leave();
        t = NULL;
    }
    return t;
}

// By what an allocation is known: the timeline's number, then 1 + its own.
static uint64_t key_of(const struct grt_timeline *t, uint64_t count) {
    return t->id << 32 | count;
}

// 1 + its number, or 0: it is of another timeline.
static uint64_t number_of(const struct grt_timeline *t, uint64_t allocation) {
    uint64_t number = allocation & UINT32_MAX;
    return number <= t->allocation_count && allocation == key_of(t, number) ? number : 0;
}

uint64_t grt_timeline_alloc(const struct grt_dev *dev, const char *label, enum grt_buf_kind kind,
                            uint64_t size, uint64_t on_device) {
    struct grt_timeline *t = listener();
    uint64_t key = 0;
    if (!t) {
        return 0;
    }
    void *list = t->allocations;
    if (t->dev == dev && t->allocation_count < UINT32_MAX - 1 &&
        grt_timeline_grow(t, &list, t->allocation_count, &t->allocation_room,
                          sizeof *t->allocations)) {
        uint32_t name = grt_timeline_number(t, label);
        double now = grt_seconds();
        t->allocations = list;
        t->allocations[t->allocation_count++] = (struct grt_allocation){name, kind, size, now, NAN};
        key = key_of(t, t->allocation_count);
        if (kind == GRT_BUF_DEVICE) {
            note_level(t, now, on_device);
        }
    }
    grt_timeline_leave();
    return key;
}

void grt_timeline_free(uint64_t allocation, uint64_t on_device) {
    struct grt_timeline *t = allocation > 0 ? listener() : NULL;
    if (!t) {
        return;
    }
    uint64_t number = number_of(t, allocation);
    if (number > 0) {
        struct grt_allocation *a = &t->allocations[number - 1];
        a->end = grt_seconds();
        if (a->kind == GRT_BUF_DEVICE) {
            note_level(t, a->end, on_device);
        }
    }
    grt_timeline_leave();
}

void grt_timeline_part(uint64_t allocation, const char *label, uint64_t offset, uint64_t size) {
    struct grt_timeline *t = allocation > 0 ? listener() : NULL;
    if (!t) {
        return;
    }
    uint64_t number = number_of(t, allocation);
    void *parts = t->parts;
    if (t->desc.memory && number > 0 &&
        grt_timeline_grow(t, &parts, t->part_count, &t->part_room, sizeof *t->parts)) {
        t->parts = parts;
        t->parts[t->part_count++] = (struct grt_tensor_place){
            (uint32_t)number - 1, grt_timeline_number(t, label), offset, size};
    }
    grt_timeline_leave();
}

// ---- the file ----

static const char *kind_text(enum grt_buf_kind kind) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_BUF_KINDS(X)
#undef X
    };
    return texts[kind];
}

static void put_parts(struct timeline_file *file, const struct grt_timeline *t,
                      uint32_t allocation) {
    const char *between = "";
    for (uint64_t i = 0; i < t->part_count; i++) {
        const struct grt_tensor_place *part = &t->parts[i];
        if (part->allocation == allocation) {
            timeline_put(file, "%s\n   {\"label\": ", between);
            timeline_put_text(file, t->names[part->label].text);
            timeline_put(file, ", \"offset\": %llu, \"size\": %llu}",
                         (unsigned long long)part->offset, (unsigned long long)part->size);
            between = ",";
        }
    }
}

static void put_allocation(struct timeline_file *file, const struct grt_timeline *t, uint32_t i) {
    const struct grt_allocation *a = &t->allocations[i];
    timeline_put(file, "%s\n  {\"label\": ", i > 0 ? "," : "");
    timeline_put_text(file, t->names[a->label].text);
    timeline_put(file, ", \"kind\": \"%s\", \"size\": %llu, \"begin\": %.9f, \"end\": ",
                 kind_text(a->kind), (unsigned long long)a->size, a->begin - t->begin);
    if (isnan(a->end)) {
        timeline_put(file, "null");
    } else {
        timeline_put(file, "%.9f", a->end - t->begin);
    }
    timeline_put(file, ", \"tensors\": [");
    put_parts(file, t, i);
    timeline_put(file, "]}");
}

bool grt_timeline_write_memory(const struct grt_timeline *t, const char *path) {
    struct timeline_file *file = timeline_file_open(t, path, "grt_timeline_write_memory");
    if (!file) {
        return false;
    }
    uint64_t peak = 0;
    double when = 0.0;
    for (uint64_t i = 0; i < t->level_count; i++) {
        if (t->levels[i].bytes > peak) {
            peak = t->levels[i].bytes;
            when = t->levels[i].at - t->begin;
        }
    }
    timeline_put(file,
                 "{\"schema\": \"gpurt.memory/1\", \"gpurt\": \"%s\", \"device\": {\"name\": ",
                 GPURT_VERSION);
    timeline_put_text(file, t->name);
    timeline_put(file, ", \"backend\": \"%s\"}", t->backend);
    timeline_put(file,
                 ", \"seconds\": %.9f, \"peak\": %llu, \"peak_at\": %.9f,\n \"allocations\": [",
                 t->end - t->begin, (unsigned long long)peak, when);
    for (uint64_t i = 0; i < t->allocation_count; i++) {
        put_allocation(file, t, (uint32_t)i);
    }
    timeline_put(file, "]}\n");
    return timeline_file_close(file);
}
