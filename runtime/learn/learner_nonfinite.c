// SPDX-License-Identifier: Apache-2.0
// Which tensor was the first to hold a number that is not finite.
//
// What a step leaves behind need not have the answer: fused kernels keep activations in registers,
// others share memory among layers. So the samples go through the network forward once more for
// each activation, which is copied as soon as it is there.
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

// Whether one of the first `count` numbers of a tensor is not finite. What cannot be read is taken
// for
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

struct watch {
    struct grt_learner *learner;
    uint32_t wanted, seen;
    struct grt_buf *copy;
    struct grt_tensor tensor;  // the one that is wanted, in the copy; rank 0: there is none
    char name[192];
};

static void saw(void *context, struct grt_graph *graph, const struct grt_tensor *tensor,
                const char *name) {
    struct watch *w = context;
    if (w->seen++ != w->wanted) {
        return;
    }
    uint64_t bytes = grt_tensor_bytes(tensor);
    if (!w->copy || grt_buf_size(w->copy) < bytes) {
        grt_buf_destroy(&w->copy);
        w->copy = grt_buf_create(w->learner->dev, grt_buf_desc(.size = bytes, .label = "activation",
                                                               .kind = GRT_BUF_READBACK));
    }
    if (w->copy) {
        w->tensor = *tensor;
        w->tensor.range = (struct grt_range){w->copy, 0, bytes};
        snprintf(w->name, sizeof w->name, "%s", name);
        grt_graph_copy(graph, w->tensor.range, tensor->range);
    }
}

// The first activation of these samples that is not finite.
static bool find_in(struct watch *w, const struct grt_step_desc *desc, char *name,
                    size_t capacity) {
    bool found = false, more = true;
    for (w->wanted = 0; more && !found; w->wanted++) {
        w->seen = 0;
        w->tensor.rank = 0;
        struct grt_graph *graph = grt_learner_watched(w->learner, desc, saw, w);
        more = graph && w->tensor.rank > 0 && grt_graph_finish(graph);
        found = more && has_nonfinite(&w->tensor, grt_tensor_count(&w->tensor));
        grt_graph_destroy(&graph);
    }
    if (found) {
        snprintf(name, capacity, "%s", w->name);
    }
    return found;
}

static bool find_activation(struct grt_learner *l, const struct grt_tensor *x,
                            const struct grt_tensor *y, char *name, size_t capacity) {
    struct watch w = {.learner = l};
    bool found = false;
    uint64_t x_bytes = grt_learner_x_bytes(l), y_bytes = grt_learner_y_bytes(l);
    for (uint64_t first = 0; !found && first < x->shape[0]; first += l->micro) {
        uint64_t left = x->shape[0] - first, rows = left < l->micro ? left : l->micro;
        struct grt_step_desc desc = {
            .rows = (uint32_t)rows,
            .x = {x->range.buf, x->range.offset + first * x_bytes, rows * x_bytes},
            .y = {y->range.buf, y->range.offset + first * y_bytes, rows * y_bytes},
        };
        found = find_in(&w, &desc, name, capacity);
    }
    grt_buf_destroy(&w.copy);
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
    if (named(l, GRT_TENSOR_PARAM, "parameter", name, capacity) ||
        named(l, GRT_TENSOR_BUFFER, "buffer", name, capacity)) {
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
