// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gpurt/device.h"
#include "gpurt/ops.h"
#include "share_parts.h"

uint64_t grt_share_copy(struct grt_graph *graph, const struct grt_tensor *t, struct grt_buf *host,
                        uint64_t at, bool down) {
    struct grt_range there = {host, at, grt_tensor_bytes(t)}, here = t->range;
    here.size = there.size;
    grt_graph_copy(graph, down ? there : here, down ? here : there);
    return there.size;
}

// Tensors one behind the other in a host buffer, to which they are copied, or from it. Those that
// lie side by side on the device too are one copy.
struct copies {
    struct grt_graph *graph;
    struct grt_buf *host;
    uint64_t at;  // of the next tensor
    bool down;
    struct grt_range run;  // not recorded yet; of size 0: none
};

static void copies_end(struct copies *c) {
    if (c->run.size > 0) {
        struct grt_range there = {c->host, c->at - c->run.size, c->run.size};
        grt_graph_copy(c->graph, c->down ? there : c->run, c->down ? c->run : there);
    }
    c->run.size = 0;
}

static void copies_add(struct copies *c, struct grt_range range) {
    if (c->run.buf != range.buf || c->run.offset + c->run.size != range.offset) {
        copies_end(c);
        c->run = (struct grt_range){range.buf, range.offset, 0};
    }
    c->run.size += range.size;
    c->at += range.size;
}

// ---- the rest ----

//     squares | parts of the loss | parts of the weights | what modules keep
//
// What they keep is copied as it lies on the device, with what is between: a ResNet-18 has 40
// running statistics, and one by one their copies took most of a millisecond behind backward.
static void copy_rest(const struct grt_share *s, struct grt_graph *graph, struct grt_buf *buf,
                      uint64_t at, bool down) {
    const struct grt_learner *l = s->learner;
    at += GRT_NORM_PARTS * sizeof(float);
    at += grt_share_copy(graph, l->loss_parts, buf, at, down);
    at += l->mass ? grt_share_copy(graph, l->mass, buf, at, down) : 0;
    if (l->params.buffer) {
        grt_share_copy(graph, l->params.buffer, buf, at, down);
    }
}

uint64_t grt_share_kept(const struct grt_learner *l) {
    const struct grt_tensor *t;
    uint64_t kept = 0;
    for (uint32_t i = 0; (t = grt_learner_tensor(l, GRT_TENSOR_BUFFER, i, NULL)) != NULL; i++) {
        kept += grt_tensor_count(t);
    }
    return kept;
}

// Numbers before what modules keep.
static uint64_t count_head(const struct grt_learner *l) {
    return GRT_NORM_PARTS + (l->mass ? 2 : 1) * grt_tensor_count(l->loss_parts);
}

uint64_t grt_share_rest(const struct grt_learner *l) {
    return count_head(l) + grt_share_kept(l);
}

uint64_t grt_share_wide(const struct grt_learner *l) {
    return count_head(l) + (l->params.buffer ? l->params.buffer_elements : 0);
}

void grt_share_pack(const struct grt_learner *l, const float *wide, float *packed) {
    uint64_t head = count_head(l), at = head;
    memcpy(packed, wide, head * sizeof *packed);
    for (uint32_t i = 0; i < l->params.buffer_count; i++) {
        const struct grt_param *kept = l->params.buffers[i];
        memcpy(packed + at, wide + head + kept->first, kept->count * sizeof *packed);
        at += kept->count;
    }
}

void grt_share_spread(const struct grt_learner *l, const float *packed, float *wide) {
    uint64_t head = count_head(l), at = head;
    memcpy(wide, packed, head * sizeof *wide);
    for (uint32_t i = 0; i < l->params.buffer_count; i++) {
        const struct grt_param *kept = l->params.buffers[i];
        memcpy(wide + head + kept->first, packed + at, kept->count * sizeof *wide);
        at += kept->count;
    }
}

// What every micro-batch begins with: parts that none leaves are those of another step.
static void record_fresh(const struct grt_share *s, struct grt_graph *graph) {
    const struct grt_learner *l = s->learner;
    grt_graph_fill(graph, l->loss_parts->range, 0);
    if (l->mass) {
        grt_graph_fill(graph, l->mass->range, 0);
    }
}

// ---- graphs ----

static struct grt_graph *baked(struct grt_graph *graph) {
    if (graph && !grt_graph_bake(graph)) {
        grt_graph_destroy(&graph);
    }
    return graph;
}

static void record_squares(const struct grt_share *s, struct grt_graph *graph, uint32_t bucket) {
    uint32_t most = GRT_NORM_PARTS / s->bucket_count;
    grt_op_squares(graph, &(struct grt_squares_desc){.grads = &s->buckets[bucket].range,
                                                     .state = s->learner->state,
                                                     .parts = &s->own.rest,
                                                     .first = bucket * most,
                                                     .most = most});
}

static void record_add(struct grt_graph *graph, const struct grt_tensor *to,
                       const struct grt_tensor *from) {
    grt_op_map(graph, grt_map_desc(.map = GRT_MAP_ADD, .y = to, .a = from, .b = to));
}

// The part of a level that has a bucket's gradients.
static struct grt_tensor part_of(const struct grt_share *s, const struct level *level,
                                 const struct bucket *b) {
    struct grt_tensor part = b->range;
    part.range.buf = level->buf;
    part.range.offset =
        level->grads.range.offset + b->range.range.offset - s->learner->params.grad->range.offset;
    return part;
}

uint32_t grt_share_pile(const struct grt_share *s, uint32_t leaf, struct grt_pile *pile) {
    *pile = (struct grt_pile){0};
    for (uint32_t i = 0; i < leaf; i++) {
        grt_pile_add(pile, s->first + i, 1);
    }
    struct grt_pile with = *pile;
    return grt_pile_add(&with, s->first + leaf, 1);
}

// The rest of a micro-batch is taken out, and what modules keep is as before the step again.
static void record_rest(const struct grt_share *s, struct grt_graph *graph, uint32_t leaf) {
    struct grt_pile before;
    uint32_t joined = grt_share_pile(s, leaf, &before);
    copy_rest(s, graph, s->own.buf, 0, true);
    for (uint32_t i = 0; i < joined; i++) {
        record_add(graph, &s->own.rest, &s->levels[before.count - 1 - i].rest);
    }
    if (s->before) {
        grt_graph_copy(graph, s->learner->params.buffer->range, (struct grt_range){s->before});
    }
}

// A micro-batch before the last: added to its neighbours, and kept for the next.
static struct grt_graph *make_keep(const struct grt_share *s, uint32_t leaf) {
    struct grt_graph *graph = grt_graph_create(s->dev, "sum of micro-batches");
    struct grt_pile before;
    uint32_t joined = grt_share_pile(s, leaf, &before);
    const struct level *to = &s->levels[before.count - joined];
    if (!graph) {
        return NULL;
    }
    const struct grt_tensor *grad = s->learner->params.grad;
    for (uint32_t b = 0; b < s->bucket_count; b++) {
        record_squares(s, graph, b);
    }
    for (uint32_t i = 0; i < joined; i++) {
        record_add(graph, grad, &s->levels[before.count - 1 - i].grads);
    }
    grt_graph_copy(graph, to->grads.range, grad->range);
    record_rest(s, graph, leaf);
    grt_graph_copy(graph, to->rest.range, s->own.rest.range);
    record_fresh(s, graph);
    return baked(graph);
}

// Where a part of the gradients is in a buffer that lies as they do.
static struct grt_range beside(const struct grt_share *s, struct grt_buf *buf,
                               struct grt_range part) {
    part.offset -= s->learner->params.grad->range.offset;
    part.buf = buf;
    return part;
}

// Every parameter of a bucket, to the host or back; `device`: of what lies as the gradients do. To
// the host also the sums of other subtrees, which nothing changes before the next step.
static void copy_bucket(const struct grt_share *s, struct grt_graph *graph, const struct bucket *b,
                        struct grt_buf *device, bool down) {
    struct copies c = {.graph = graph,
                       .host = down ? s->down : s->up,
                       .at = b->at * sizeof(float) * (down ? s->subtrees : 1),
                       .down = down};
    for (uint32_t k = down ? 0 : s->subtrees - 1; k < s->subtrees; k++) {
        const struct level *level = k + 1 < s->subtrees ? &s->levels[k] : NULL;
        for (uint32_t i = b->first; i < b->end; i++) {
            struct grt_tensor grad = s->learner->params.list[i]->grad;
            if (level) {
                grad.range = beside(s, level->buf, grad.range);
                grad.range.offset += level->grads.range.offset;
            } else if (device) {
                grad.range = beside(s, device, grad.range);
                grad.range.offset -= device == b->out ? beside(s, NULL, b->range.range).offset : 0;
            }
            copies_add(&c, grad.range);
        }
    }
    copies_end(&c);
}

// A bucket of the last micro-batch, added to its neighbours before it.
static struct grt_graph *make_take(const struct grt_share *s, uint32_t bucket) {
    const struct bucket *b = &s->buckets[bucket];
    struct grt_graph *graph = grt_graph_create(s->dev, "bucket");
    if (!graph) {
        return NULL;
    }
    struct grt_pile before;
    uint32_t joined = grt_share_pile(s, s->leaves - 1, &before);
    record_squares(s, graph, bucket);
    for (uint32_t i = 0; i < joined; i++) {
        struct grt_tensor part = part_of(s, &s->levels[before.count - 1 - i], b);
        record_add(graph, &b->range, &part);
    }
    if (b->out) {
        grt_graph_copy(graph, (struct grt_range){b->out, 0, b->range.range.size}, b->range.range);
    } else if (!s->alone) {
        copy_bucket(s, graph, b, NULL, true);
    }
    return baked(graph);
}

// Between the host and the gradients, or what lies as they do: on the main lane, behind backward,
// which uses other parts of the same buffer, or beside it.
static struct grt_graph *make_copies(const struct grt_share *s, const struct bucket *b,
                                     struct grt_buf *device, bool down) {
    struct grt_graph *graph =
        grt_graph_create(s->dev, down ? "gradients of a rank" : "sum of ranks");
    if (graph) {
        copy_bucket(s, graph, b, device, down);
        if (device) {
            grt_graph_aside(graph);
        }
    }
    return baked(graph);
}

// What lies between parameters is 0, and stays so.
static bool make_settle(struct grt_share *s) {
    struct grt_range grads = s->learner->params.grad->range, sums = beside(s, s->in, grads);
    struct grt_graph *clear = grt_graph_create(s->dev, "no sums");
    if (clear) {
        grt_graph_fill(clear, sums, 0);
    }
    clear = baked(clear);
    bool good = clear && grt_graph_finish(clear);
    grt_graph_destroy(&clear);
    struct grt_graph *graph = good ? grt_graph_create(s->dev, "sums of ranks") : NULL;
    if (graph) {
        grt_graph_copy(graph, grads, sums);
    }
    s->settle = baked(graph);
    return s->settle != NULL;
}

// The rest comes behind the last micro-batch, and goes back before the update.
static bool make_rest(struct grt_share *s) {
    struct bucket *rest = &s->buckets[s->bucket_count];
    struct grt_graph *take = grt_graph_create(s->dev, "rest");
    if (take) {
        record_rest(s, take, s->leaves - 1);
        for (uint32_t k = 0; k < s->subtrees; k++) {
            const struct level *level = k + 1 < s->subtrees ? &s->levels[k] : &s->own;
            uint64_t wide = level->rest.range.size, at = rest->at * s->subtrees * 4 + k * wide;
            grt_graph_copy(take, (struct grt_range){s->down, at, wide}, level->rest.range);
        }
    }
    rest->take = baked(take);
    struct grt_graph *give = rest->take ? grt_graph_create(s->dev, "rest of ranks") : NULL;
    if (give) {
        copy_rest(s, give, s->up, rest->at * 4, false);
    }
    rest->give = baked(give);
    return rest->give != NULL;
}

static bool make_begin(struct grt_share *s) {
    struct grt_learner *l = s->learner;
    struct grt_graph *graph;
    if (s->before) {
        graph = grt_graph_create(s->dev, "step given up");
        if (graph) {
            grt_graph_copy(graph, l->params.buffer->range, (struct grt_range){s->before});
        }
        s->undo = baked(graph);
        if (!s->undo) {
            return false;
        }
    }
    graph = grt_graph_create(s->dev, "begin of a step");
    if (graph) {
        record_fresh(s, graph);
        grt_graph_fill(graph, s->own.rest.range, 0);
        if (s->before) {
            grt_graph_copy(graph, (struct grt_range){s->before}, l->params.buffer->range);
        }
    }
    s->begin = baked(graph);
    for (uint32_t i = 0; s->begin && i < 2; i++) {
        graph = grt_graph_create(s->dev, "no samples");
        if (graph) {
            grt_graph_fill(graph, l->params.grad->range, 0);
            if (s->before) {
                grt_graph_fill(graph, l->params.buffer->range, 0);
            }
            if (i == 1) {
                grt_graph_tell(graph, &s->tell);
            }
        }
        s->empty[i] = baked(graph);
    }
    return s->begin && s->empty[0] && s->empty[1];
}

bool grt_share_graphs(struct grt_share *s) {
    s->keep = calloc(s->leaves, sizeof(struct grt_graph *));
    if (!s->keep) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for sums of gradients");
    }
    bool good = true;
    for (uint32_t i = 0; good && i + 1 < s->leaves; i++) {
        s->keep[i] = make_keep(s, i);
        good = s->keep[i] != NULL;
    }
    for (uint32_t i = 0; good && i < s->bucket_count; i++) {
        struct bucket *b = &s->buckets[i];
        b->take = make_take(s, i);
        b->fetch = b->take && b->out ? make_copies(s, b, b->out, true) : NULL;
        b->give = b->take && !s->alone ? make_copies(s, b, s->in, false) : NULL;
        good = b->take && (s->alone || b->give) && (!b->out || b->fetch);
    }
    return good && (!s->in || make_settle(s)) && make_rest(s) && make_begin(s);
}
