// SPDX-License-Identifier: Apache-2.0
// Which tensor was the first to hold a number that is not finite.
//
// What a step leaves behind need not have the answer: fused kernels keep activations in registers, others
// share memory among layers. So a second learner with the same parameters, made for this question
// alone, keeps the activations of every layer, and the samples go through it forward.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/device.h"
#include "base/log.h"
#include "learner_parts.h"

static bool is_finite(const void *numbers, enum grt_dtype dtype, uint64_t i) {
    if (dtype == GRT_F32) {
        return isfinite(((const float *)numbers)[i]);
    }
    // Infinities and NaN have every bit of the exponent.
    uint16_t mask = dtype == GRT_F16 ? 0x7c00 : 0x7f80;
    return (((const uint16_t *)numbers)[i] & mask) != mask;
}

// Whether one of the first `count` numbers of a tensor is not finite. What cannot be read is taken for
// finite: this is about naming, the run has ended already.
static bool has_nonfinite(const struct grt_tensor *t, uint64_t count) {
    if (t->dtype != GRT_F32 && t->dtype != GRT_F16 && t->dtype != GRT_BF16) {
        return false;
    }
    uint64_t bytes = count * (t->dtype == GRT_F32 ? 4 : 2);
    void *numbers = malloc(bytes > 0 ? bytes : 1);
    bool found = false;
    if (numbers && grt_buf_read(t->range.buf, t->range.offset, numbers, bytes)) {
        for (uint64_t i = 0; i < count && !found; i++) {
            found = !is_finite(numbers, t->dtype, i);
        }
    }
    free(numbers);
    return found;
}

static bool named(const struct grt_learner *l, enum grt_tensor_role role, const char *word,
                  char *name, size_t capacity) {
    const struct grt_tensor *t;
    const char *text;
    for (uint32_t i = 0; (t = grt_learner_tensor(l, role, i, &text)) != NULL; i++) {
        if (has_nonfinite(t, grt_tensor_count(t))) {
            snprintf(name, capacity, "%s %s", word, text);
            return true;
        }
    }
    return false;
}

// ---- activations ----

// A learner with the same parameters that keeps every activation; NULL when there is no room for it.
static struct grt_learner *create_probe(struct grt_learner *l) {
    struct grt_learner_desc desc = l->desc;
    desc.batch = (uint32_t)l->micro;
    desc.accumulate = 1;
    desc.variant = "layers";
    desc.recompute = false;
    desc.inference = false;
    struct grt_learner *probe = grt_learner_create(l->dev, &desc);
    bool good = probe && grt_learner_bytes(probe, NULL) <= grt_dev_mem_left(l->dev) &&
                grt_learner_alloc(probe);
    for (uint32_t i = 0; good && i < l->params.count; i++) {
        const struct grt_tensor *from = &l->params.list[i]->master;
        const struct grt_tensor *to = &probe->params.list[i]->master;
        uint64_t bytes = grt_tensor_bytes(from);
        void *numbers = malloc(bytes);
        good = numbers && grt_buf_read(from->range.buf, from->range.offset, numbers, bytes) &&
               grt_buf_write(to->range.buf, to->range.offset, numbers, bytes);
        free(numbers);
    }
    if (!good || !grt_learner_sync(probe)) {
        grt_learner_destroy(&probe);
    }
    return probe;
}

// "point.h.2" and "point.z.2" are about point.layers.2; others have names that say what they are.
static bool name_activation(const char *label, char *name, size_t capacity) {
    const char *dot = strrchr(label, '.');
    size_t stem = dot ? (size_t)(dot - label) : 0;
    bool hidden = stem > 0 && (label[stem - 1] == 'h' || label[stem - 1] == 'z') &&
                  (stem == 1 || label[stem - 2] == '.');
    if (hidden) {
        snprintf(name, capacity, "activations of %.*slayers%s", (int)(stem - 1), label, dot);
    } else {
        snprintf(name, capacity, "%s", label);
    }
    return hidden || !strcmp(label, "features") || !strcmp(label, "pooled") ||
           !strcmp(label, "output");
}

// Order of declaration is that of computation but for the output, which stands first.
static bool scan_activations(const struct grt_learner *probe, uint64_t rows, char *name,
                             size_t capacity) {
    const struct grt_tensor *t;
    for (int output = 0; output < 2; output++) {
        for (uint32_t i = 0; (t = grt_plan_at(probe->plan, "acts", i)) != NULL; i++) {
            uint64_t count = grt_tensor_count(t) / probe->micro * rows;
            if ((t == probe->y) == (output == 1) && name_activation(t->label, name, capacity) &&
                has_nonfinite(t, count)) {
                return true;
            }
        }
    }
    return false;
}

static bool find_activation(struct grt_learner *l, const struct grt_tensor *x,
                            const struct grt_tensor *y, char *name, size_t capacity) {
    struct grt_learner *probe = create_probe(l);
    bool found = false;
    uint64_t x_bytes = grt_learner_x_bytes(l), y_bytes = grt_learner_y_bytes(l);
    for (uint64_t first = 0; probe && !found && first < x->shape[0]; first += l->micro) {
        uint64_t left = x->shape[0] - first, rows = left < l->micro ? left : l->micro;
        struct grt_step_desc desc = {
            .rows = (uint32_t)rows,
            .x = {x->range.buf, x->range.offset + first * x_bytes, rows * x_bytes},
            .y = {y->range.buf, y->range.offset + first * y_bytes, rows * y_bytes},
        };
        struct grt_graph *graph = grt_learner_evaluate(probe, &desc);
        found = graph && grt_graph_finish(graph) && scan_activations(probe, rows, name, capacity);
        grt_graph_destroy(&graph);
    }
    grt_learner_destroy(&probe);
    return found;
}

bool grt_learner_find_nonfinite(struct grt_learner *l, const struct grt_tensor *x,
                                const struct grt_tensor *y, char *name, size_t capacity) {
    if (!l || !l->allocated || !name || (x && !y)) {
        return grt_fail(GRT_INVALID, "grt_learner_find_nonfinite: %s",
                        l && l->allocated ? "no name, or x without y"
                                          : "the learner is not allocated");
    }
    x = x ? x : l->x;
    y = y ? y : l->target;
    if (named(l, GRT_TENSOR_PARAM, "parameter", name, capacity)) {
        return true;
    }
    const struct grt_tensor *given[] = {x, y};
    static const char *const words[] = {"input", "target"};
    for (int i = 0; i < 2; i++) {
        if (has_nonfinite(given[i], grt_tensor_count(given[i]))) {
            snprintf(name, capacity, "%s", words[i]);
            return true;
        }
    }
    return find_activation(l, x, y, name, capacity) ||
           named(l, GRT_TENSOR_GRAD, "gradient", name, capacity);
}
