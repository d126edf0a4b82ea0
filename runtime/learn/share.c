// SPDX-License-Identifier: Apache-2.0
#include "share.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gpurt/device.h"
#include "learner_parts.h"

#define PARTS 3  // gradients, losses, what modules keep

struct grt_share {
    struct grt_learner *learner;
    const struct grt_tensor *parts[PARTS];  // NULL where there is none
    uint64_t counts[PARTS], count;
    struct grt_buf *down, *up;
    struct grt_graph *take, *give;
    float *kept;  // by modules, before the step; or NULL
};

uint64_t grt_share_count(const struct grt_share *share) {
    return share->count;
}

// All parts, one behind the other, to or from the host.
static struct grt_graph *make_graph(struct grt_share *s, struct grt_buf *host, bool down) {
    struct grt_graph *graph = grt_graph_create(s->learner->dev, down ? "share" : "shared");
    uint64_t at = 0;
    for (int i = 0; graph && i < PARTS; i++) {
        if (s->counts[i] == 0) {
            continue;
        }
        struct grt_range there = {host, at, s->counts[i] * 4}, here = s->parts[i]->range;
        here.size = there.size;
        grt_graph_copy(graph, down ? there : here, down ? here : there);
        at += there.size;
    }
    if (graph && !grt_graph_bake(graph)) {
        grt_graph_destroy(&graph);
    }
    return graph;
}

struct grt_share *grt_share_create(struct grt_learner *l) {
    struct grt_share *s = calloc(1, sizeof *s);
    if (!s) {
        grt_fail(GRT_NO_MEMORY, "no host memory for gradients");
        return NULL;
    }
    s->learner = l;
    s->parts[0] = l->params.grad;
    s->parts[1] = l->loss_parts;
    s->parts[2] = l->params.buffer;
    for (int i = 0; i < PARTS; i++) {
        s->counts[i] = s->parts[i] ? grt_tensor_bytes(s->parts[i]) / 4 : 0;
        s->count += s->counts[i];
    }
    s->down = grt_buf_create(l->dev, grt_buf_desc(.size = s->count * 4, .kind = GRT_BUF_READBACK,
                                                  .label = "gradients"));
    s->up = grt_buf_create(l->dev, grt_buf_desc(.size = s->count * 4, .kind = GRT_BUF_UPLOAD,
                                                .label = "gradients"));
    s->take = s->down && s->up ? make_graph(s, s->down, true) : NULL;
    s->give = s->take ? make_graph(s, s->up, false) : NULL;
    s->kept = s->counts[2] > 0 ? malloc(s->counts[2] * 4) : NULL;
    bool room = s->counts[2] == 0 || s->kept;
    if (!s->give || !room) {
        if (!room) {
            grt_fail(GRT_NO_MEMORY, "no host memory for running statistics");
        }
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
    grt_buf_destroy(&s->down);
    grt_buf_destroy(&s->up);
    free(s->kept);
    free(s);
    *share = NULL;
}

bool grt_share_begin(struct grt_share *s) {
    const struct grt_range *r = s->kept ? &s->parts[2]->range : NULL;
    return !r || grt_buf_read(r->buf, r->offset, s->kept, s->counts[2] * 4);
}

bool grt_share_take(struct grt_share *s, uint32_t rows, uint32_t all, float *numbers) {
    const struct grt_range *kept = s->kept ? &s->parts[2]->range : NULL;
    float weight = (float)rows / (float)all;
    if (!grt_graph_finish(s->take)) {
        return false;
    }
    const float *down = grt_buf_host(s->down);
    uint64_t micro = s->learner->micro, means = s->counts[0] + s->counts[1];
    // Parts of micro-batches that were not there are those of another step.
    uint64_t losses = (rows + micro - 1) / micro * GRT_LOSS_PARTS;
    for (uint64_t i = 0; i < means; i++) {
        numbers[i] = i < s->counts[0] + losses ? down[i] * weight : 0.0f;
    }
    memcpy(numbers + means, down + means, s->counts[2] * 4);
    return !kept || grt_buf_write(kept->buf, kept->offset, s->kept, s->counts[2] * 4);
}

bool grt_share_give(struct grt_share *s, uint32_t count, const float *numbers) {
    float *up = grt_buf_host(s->up);
    uint64_t means = s->counts[0] + s->counts[1];
    memcpy(up, numbers, means * 4);
    for (uint64_t i = means; i < s->count; i++) {
        up[i] = numbers[i] / (float)count;
    }
    return grt_graph_run(s->give);
}
