// SPDX-License-Identifier: Apache-2.0
// What is read is what is drawn: allocations on the device, each in the lowest place that is free
// for its life.
#include "read_memory.h"

#include <math.h>
#include <string.h>

#define MOST_BYTES 1e18
#define MOST_SECONDS 1e12

// A number from 0 to `most`; NaN when it is none.
static double number(const json_t *object, const char *key, double most) {
    const json_t *value = json_object_get(object, key);
    double n = json_is_number(value) ? json_number_value(value) : NAN;
    return n >= 0 && n <= most ? n : NAN;
}

// The lowest place that no block of the same time has. `order` has the blocks so far from the
// lowest up, and gets this one.
static double place(const struct report_memory *m, const struct report_block *block,
                    uint32_t *order) {
    double at = 0;
    for (size_t i = 0; i < m->count; i++) {
        const struct report_block *b = &m->blocks[order[i]];
        if (b->begin < block->end && block->begin < b->end) {
            if (b->at >= at + block->size) {
                break;
            }
            at = b->at + b->size > at ? b->at + b->size : at;
        }
    }
    size_t i = m->count;
    for (; i > 0 && m->blocks[order[i - 1]].at > at; i--) {
        order[i] = order[i - 1];
    }
    order[i] = (uint32_t)m->count;
    return at;
}

static const char *read_block(struct report *r, struct report_memory *m, const json_t *row,
                              uint32_t *order) {
    const char *label = json_string_value(json_object_get(row, "label"));
    const char *kind = json_string_value(json_object_get(row, "kind"));
    const json_t *end = json_object_get(row, "end");
    struct report_block block = {
        .label = label,
        .size = number(row, "size", MOST_BYTES),
        .begin = number(row, "begin", MOST_SECONDS),
        .end = json_is_null(end) ? m->seconds : number(row, "end", MOST_SECONDS),
        .tensors = (uint32_t)json_array_size(json_object_get(row, "tensors")),
    };
    if (!label || !kind || isnan(block.size) || isnan(block.begin) || isnan(block.end)) {
        return "an allocation lacks its label, kind, size or times";
    }
    if (block.end < block.begin) {
        return "an allocation ends before it begins";
    }
    if (strcmp(kind, "device") != 0 || block.size == 0) {
        return NULL;
    }
    if (m->count == REPORT_MAX_BLOCKS) {
        return "too many allocations";
    }
    block.at = place(m, &block, order);
    report_add_block(r, m, &block);
    return NULL;
}

const char *report_read_memory(struct report *r, uint32_t source, const json_t *snapshot) {
    const json_t *list = json_object_get(snapshot, "allocations");
    const struct report_memory head = {
        .source = source,
        .contender = r->sources[source].contender,
        .seconds = number(snapshot, "seconds", MOST_SECONDS),
        .peak = number(snapshot, "peak", MOST_BYTES),
        .peak_at = number(snapshot, "peak_at", MOST_SECONDS),
    };
    if (isnan(head.seconds) || isnan(head.peak) || isnan(head.peak_at) || !json_is_array(list)) {
        return "a snapshot of memory lacks seconds, peak, peak_at or allocations";
    }
    struct report_memory *m = report_add_memory(r, &head);
    if (!m) {
        return report_good(r) ? "too many snapshots of memory" : NULL;
    }
    const char *why = NULL;
    size_t count = json_array_size(list);
    uint32_t *order = report_alloc(r, (REPORT_MAX_BLOCKS + 1) * sizeof *order);
    for (size_t i = 0; i < count && !why && order && report_good(r); i++) {
        why = read_block(r, m, json_array_get(list, i), order);
    }
    return why;
}
