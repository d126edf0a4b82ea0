// SPDX-License-Identifier: Apache-2.0
#include "share.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gpurt/device.h"
#include "learner_parts.h"

// Counts of numbers: gradients, losses, what modules keep, and weights of targets, which are one
// number of all and parts of it on the device. Tensors are one behind the other, as
// they are named: how they lie on a device is that device's own.
struct grt_share {
    struct grt_learner *learner;
    uint64_t grads, losses, kept, count;
    bool weighted;  // by weights of classes or samples
    struct grt_buf *down, *up, *back;
    struct grt_graph *take, *give, *restore;
    float *before;  // what modules kept before the step; or NULL
};

uint64_t grt_share_count(const struct grt_share *share) {
    return share->count;
}

static uint64_t count_of(const struct grt_learner *l, enum grt_tensor_role role) {
    const struct grt_tensor *t;
    uint64_t count = 0;
    for (uint32_t i = 0; (t = grt_learner_tensor(l, role, i, NULL)) != NULL; i++) {
        count += grt_tensor_count(t);
    }
    return count;
}

uint64_t grt_share_copy(struct grt_graph *graph, const struct grt_tensor *t, struct grt_buf *host,
                        uint64_t at, bool down) {
    struct grt_range there = {host, at, grt_tensor_bytes(t)}, here = t->range;
    here.size = there.size;
    grt_graph_copy(graph, down ? there : here, down ? here : there);
    return there.size;
}

static uint64_t copy_role(struct grt_graph *graph, const struct grt_learner *l,
                          enum grt_tensor_role role, struct grt_buf *host, uint64_t at, bool down) {
    const struct grt_tensor *t;
    for (uint32_t i = 0; (t = grt_learner_tensor(l, role, i, NULL)) != NULL; i++) {
        at += grt_share_copy(graph, t, host, at, down);
    }
    return at;
}

// To or from the host: all, or what modules keep alone.
static struct grt_graph *make_graph(struct grt_share *s, struct grt_buf *host, bool down,
                                    bool all) {
    struct grt_learner *l = s->learner;
    struct grt_graph *graph = grt_graph_create(l->dev, down ? "share" : "shared");
    uint64_t at = 0;
    if (graph && all) {
        at = copy_role(graph, l, GRT_TENSOR_GRAD, host, at, down);
        at += grt_share_copy(graph, l->loss_parts, host, at, down);
    }
    if (graph) {
        at = copy_role(graph, l, GRT_TENSOR_BUFFER, host, at, down);
    }
    if (graph && down && s->weighted) {
        grt_share_copy(graph, l->mass, host, at, down);
    }
    if (graph && !grt_graph_bake(graph)) {
        grt_graph_destroy(&graph);
    }
    return graph;
}

static struct grt_buf *make_buf(struct grt_learner *l, uint64_t count, enum grt_buf_kind kind) {
    return grt_buf_create(l->dev,
                          grt_buf_desc(.size = count * 4, .kind = kind, .label = "gradients"));
}

struct grt_share *grt_share_create(struct grt_learner *l) {
    struct grt_share *s = calloc(1, sizeof *s);
    if (!s) {
        grt_fail(GRT_NO_MEMORY, "no host memory for gradients");
        return NULL;
    }
    s->learner = l;
    s->grads = count_of(l, GRT_TENSOR_GRAD);
    s->losses = grt_tensor_count(l->loss_parts);
    s->kept = count_of(l, GRT_TENSOR_BUFFER);
    s->weighted = l->mass != NULL;
    s->count = s->grads + s->losses + s->kept + 1 + s->weighted;
    s->down = make_buf(l, s->count + grt_tensor_count(l->hits), GRT_BUF_READBACK);
    s->up = make_buf(l, s->count, GRT_BUF_UPLOAD);
    s->take = s->down && s->up ? make_graph(s, s->down, true, true) : NULL;
    s->give = s->take ? make_graph(s, s->up, false, true) : NULL;
    bool good = s->give != NULL;
    if (good && s->kept > 0) {
        s->before = malloc(s->kept * sizeof *s->before);
        s->back = make_buf(l, s->kept, GRT_BUF_UPLOAD);
        s->restore = s->back ? make_graph(s, s->back, false, false) : NULL;
        good = s->restore && (s->before || grt_fail(GRT_NO_MEMORY, "no host memory for a share"));
    }
    if (!good) {
        grt_share_destroy(&s);
    }
    return s;
}

void grt_share_destroy(struct grt_share **share) {
    if (!share || !*share) {
        return;
    }
    struct grt_share *s = *share;
    grt_graph_destroy(&s->take);
    grt_graph_destroy(&s->give);
    grt_graph_destroy(&s->restore);
    grt_buf_destroy(&s->down);
    grt_buf_destroy(&s->up);
    grt_buf_destroy(&s->back);
    free(s->before);
    free(s);
    *share = NULL;
}

bool grt_share_begin(struct grt_share *s) {
    const struct grt_tensor *t;
    float *to = s->before;
    for (uint32_t i = 0;
         to && (t = grt_learner_tensor(s->learner, GRT_TENSOR_BUFFER, i, NULL)) != NULL; i++) {
        if (!grt_buf_read(t->range.buf, t->range.offset, to, grt_tensor_bytes(t))) {
            return false;
        }
        to += grt_tensor_count(t);
    }
    return true;
}

bool grt_share_undo(struct grt_share *s) {
    if (!s->before) {
        return true;
    }
    memcpy(grt_buf_host(s->back), s->before, s->kept * sizeof *s->before);
    return grt_graph_run(s->restore);
}

// What the targets of so many rows weigh together, of parts of their mean.
static float weight_of(const float *parts, uint64_t count, uint32_t rows) {
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        sum += (double)parts[i];
    }
    return (float)(sum * rows);
}

static double squares_of(const float *numbers, uint64_t count) {
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        sum += (double)numbers[i] * (double)numbers[i];
    }
    return sum;
}

void grt_share_lengths(const struct grt_share *s, const float *numbers, double *each,
                       double *whole) {
    *each = (double)numbers[s->grads + s->losses + s->kept];
    *whole = squares_of(numbers, s->grads);
}

bool grt_share_take(struct grt_share *s, uint32_t rows, uint32_t all, float *numbers) {
    if (!grt_graph_finish(s->take)) {
        return false;
    }
    const float *down = grt_buf_host(s->down);
    uint64_t micro = s->learner->micro, means = s->grads + s->losses;
    // Parts of micro-batches that were not there are those of another step.
    uint64_t parts = (rows + micro - 1) / micro * GRT_LOSS_PARTS, there = s->grads + parts;
    float weight = (float)rows / (float)all;
    if (s->weighted) {
        weight = numbers[s->count - 1] = weight_of(down + means + s->kept, parts, rows);
    }
    for (uint64_t i = 0; i < there; i++) {
        numbers[i] = down[i] * weight;
    }
    memset(numbers + there, 0, (means - there) * sizeof *numbers);
    numbers[means + s->kept] = (float)squares_of(down, s->grads);
    if (s->before) {
        memcpy(numbers + means, down + means, s->kept * sizeof *numbers);
    }
    return grt_share_undo(s);
}

bool grt_share_give(struct grt_share *s, uint32_t count, const float *numbers) {
    float *up = grt_buf_host(s->up);
    uint64_t means = s->grads + s->losses;
    float weight = s->weighted ? numbers[s->count - 1] : 1.0f;
    for (uint64_t i = 0; i < means; i++) {
        up[i] = !s->weighted ? numbers[i] : weight > 0.0f ? numbers[i] / weight : 0.0f;
    }
    for (uint64_t i = means; i < means + s->kept; i++) {
        up[i] = numbers[i] / (float)count;
    }
    return grt_graph_run(s->give);
}
