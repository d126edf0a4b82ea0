// SPDX-License-Identifier: Apache-2.0
#include "share.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/pile.h"
#include "gpurt/device.h"
#include "gpurt/ops.h"
#include "learner_parts.h"

#define BUCKET_BYTES (4u << 20)
#define MOST_BUCKETS 24  // OpenCL knows the newest 32 marks of a lane
#define MOST_LEAVES 4096

// A piece: parameters that lie side by side, or, behind all buckets, the rest.
struct bucket {
    uint32_t first, end;      // parameters
    struct grt_tensor range;  // of their gradients, with what is between
    uint64_t at, count;       // numbers in the host's memory: how they lie on a device is its own
    struct grt_graph *take, *give;
    struct grt_graph *fetch;  // beside compute, from `out`; NULL: `take` brings it to `down`
    struct grt_buf *out;      // beside compute: what it reads
    uint64_t mark;            // behind which it is taken
    uint64_t fetched;         // beside compute: behind which `down` has it; 0: not begun
};

// Sums of micro-batches that wait for their neighbours: gradients as the parameters lie, and rests.
struct level {
    struct grt_buf *buf;
    struct grt_tensor grads, rest;
};

struct grt_share {
    struct grt_learner *learner;
    struct grt_dev *dev;
    uint32_t first, leaves;  // of the tree of all learners
    uint32_t subtrees;       // of them, the last of which has the last micro-batch
    bool alone, beside;      // beside: copies run so
    uint64_t kept;           // numbers of the rest that modules keep: its last ones
    uint32_t bucket_count;
    struct bucket *buckets;    // and behind them the rest
    struct grt_range *ranges;  // of the buckets' gradients
    struct grt_graph_tell tell;
    struct grt_buf *down, *up, *before;
    // Where copies run beside compute: what they write, as the gradients lie, since two queues may
    // not have one buffer at a time (OpenCL); what they read is a buffer of each bucket. NULL:
    // copies are between steps of compute.
    struct grt_buf *in;
    struct grt_graph *settle;            // from `in` to the gradients
    uint64_t given;                      // beside compute: behind which `in` has all
    float *rest;                         // what is given of it: uploads are slow to read
    float *taken;                        // what is taken of it, packed
    struct level own;                    // the rest of the micro-batch that is on its way
    struct level levels[GRT_PILE_MOST];  // of the pile of those before, as many as it is high
    uint32_t height;
    struct grt_graph *undo;              // or NULL
    struct grt_graph *begin, *empty[2];  // of a micro-batch before the last, and of that
    struct grt_graph **keep;             // of each micro-batch before the last
};

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

static uint64_t count_kept(const struct grt_learner *l) {
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

// As learners exchange it: how it lies on a device is that device's own.
static uint64_t count_rest(const struct grt_learner *l) {
    return count_head(l) + count_kept(l);
}

// As it lies on the device.
static uint64_t wide_rest(const struct grt_learner *l) {
    return count_head(l) + (l->params.buffer ? l->params.buffer_elements : 0);
}

// Between both, on the host.
static void pack_rest(const struct grt_learner *l, const float *wide, float *packed) {
    uint64_t head = count_head(l), at = head;
    memcpy(packed, wide, head * sizeof *packed);
    for (uint32_t i = 0; i < l->params.buffer_count; i++) {
        const struct grt_param *kept = l->params.buffers[i];
        memcpy(packed + at, wide + head + kept->first, kept->count * sizeof *packed);
        at += kept->count;
    }
}

static void spread_rest(const struct grt_learner *l, const float *packed, float *wide) {
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

// The pile of the micro-batches before this one, and how many of its sums this one is added to.
static uint32_t pile_before(const struct grt_share *s, uint32_t leaf, struct grt_pile *pile) {
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
    uint32_t joined = pile_before(s, leaf, &before);
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
    uint32_t joined = pile_before(s, leaf, &before);
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
    uint32_t joined = pile_before(s, s->leaves - 1, &before);
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

// ---- making ----

static bool told(void *context, uint32_t bucket) {
    struct grt_share *s = context;
    struct bucket *b = &s->buckets[bucket];
    if (!grt_graph_run(b->take)) {
        return false;
    }
    b->mark = grt_dev_mark(s->dev, GRT_LANE_MAIN);
    b->fetched = 0;
    return true;
}

// From the last parameter to the first: backward comes to the last layer first.
static bool make_buckets(struct grt_share *s, uint64_t full) {
    const struct grt_params *p = &s->learner->params;
    s->buckets = calloc(p->count + 1u, sizeof *s->buckets);
    s->ranges = calloc(p->count + 1u, sizeof *s->ranges);
    if (!s->buckets || !s->ranges) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for buckets of gradients");
    }
    uint64_t at = 0, end = p->elements;
    struct bucket *b = s->buckets;
    b->end = p->count;
    for (uint32_t i = p->count; i-- > 0;) {
        b->count += p->list[i]->count;
        b->first = i;
        bool last = i == 0 || s->bucket_count + 1 == GRT_NORM_PARTS;
        if (i > 0 && (last || b->count * sizeof(float) < full)) {
            continue;
        }
        uint64_t first = p->list[i]->first;
        b->range = (struct grt_tensor){.dtype = GRT_F32, .rank = 1, .shape = {end - first}};
        b->range.range = (struct grt_range){p->grad->range.buf, p->grad->range.offset + first * 4,
                                            (end - first) * 4};
        s->ranges[s->bucket_count] = b->range.range;
        b->at = at;
        at += b->count;
        end = first;
        s->bucket_count++;
        b[1].end = i;
        b++;
    }
    *b = (struct bucket){.at = s->alone ? 0 : at, .count = count_rest(s->learner)};
    s->kept = count_kept(s->learner);
    s->tell = (struct grt_graph_tell){s->ranges, s->bucket_count, told, s};
    return true;
}

static struct grt_buf *make_buf(const struct grt_share *s, uint64_t bytes, enum grt_buf_kind kind) {
    return grt_buf_create(s->dev, grt_buf_desc(.size = bytes, .kind = kind, .label = "gradients"));
}

// Bytes of one sum: of the rest, and with it of the gradients, which lie behind `*at`.
static uint64_t level_bytes(const struct grt_learner *l, bool grads, uint64_t *at) {
    *at = grt_dev_align_up(l->dev, wide_rest(l) * 4);
    return *at + (grads ? l->params.elements * 4 : 0);
}

// A device with engines that copy: on a processor they would be one more pass over the memory. Not
// by OpenCL: two ranks on an H200 saw their first bucket after 16 ms by a second queue, when all
// were there, and after 9 by the first (2026-11).
static bool copies_beside(const struct grt_dev *dev) {
    const struct grt_dev_info *info = grt_dev_info(dev);
    return grt_dev_lanes(dev) > 1 && !info->caps.software && info->backend == GRT_BACKEND_VULKAN;
}

// Sums that wait at once: of the pile before each micro-batch.
static uint32_t height_of(uint32_t first, uint32_t leaves) {
    struct grt_pile pile = {0};
    uint32_t most = 0;
    for (uint32_t i = 0; i + 1 < leaves; i++) {
        grt_pile_add(&pile, first + i, 1);
        most = pile.count > most ? pile.count : most;
    }
    return most;
}

uint64_t grt_share_bytes(const struct grt_learner *l, uint32_t first, uint32_t leaves) {
    uint64_t at, bytes = level_bytes(l, false, &at);
    bytes += l->params.buffer ? l->params.buffer->range.size : 0;
    bytes += copies_beside(l->dev) ? 2 * l->params.elements * 4 : 0;
    return bytes + height_of(first, leaves) * level_bytes(l, true, &at);
}

static bool make_level(const struct grt_share *s, struct level *level, bool grads) {
    uint64_t count = wide_rest(s->learner), elements = s->learner->params.elements;
    uint64_t at, bytes = level_bytes(s->learner, grads, &at);
    level->buf = make_buf(s, bytes, GRT_BUF_DEVICE);
    level->rest = (struct grt_tensor){
        .dtype = GRT_F32, .rank = 1, .shape = {count}, .range = {level->buf, 0, count * 4}};
    if (grads) {
        level->grads = (struct grt_tensor){.dtype = GRT_F32,
                                           .rank = 1,
                                           .shape = {elements},
                                           .range = {level->buf, at, elements * 4}};
    }
    return level->buf != NULL;
}

static bool make_memory(struct grt_share *s) {
    const struct bucket *rest = &s->buckets[s->bucket_count];
    uint64_t bytes = (rest->at + wide_rest(s->learner)) * sizeof(float);
    uint32_t height = height_of(s->first, s->leaves);
    const struct grt_tensor *kept = s->learner->params.buffer;
    s->rest = calloc(rest->count + 1, sizeof *s->rest);
    s->taken = calloc(rest->count * s->subtrees + 1, sizeof *s->taken);
    if (!s->rest || !s->taken) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for gradients");
    }
    s->down = make_buf(s, s->subtrees * bytes, GRT_BUF_READBACK);
    s->up = s->down ? make_buf(s, bytes, GRT_BUF_UPLOAD) : NULL;
    bool good = s->up && make_level(s, &s->own, false);
    if (good && kept) {
        s->before = make_buf(s, kept->range.size, GRT_BUF_DEVICE);
        good = s->before != NULL;
    }
    for (; good && s->height < height; s->height += good) {
        good = make_level(s, &s->levels[s->height], true);
    }
    if (good && s->beside) {
        s->in = make_buf(s, s->learner->params.elements * 4, GRT_BUF_DEVICE);
        good = s->in != NULL;
    }
    for (uint32_t i = 0; good && s->beside && i < s->bucket_count; i++) {
        struct bucket *b = &s->buckets[i];
        b->out = make_buf(s, b->range.range.size, GRT_BUF_DEVICE);
        good = b->out != NULL;
    }
    return good;
}

static bool make_graphs(struct grt_share *s) {
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

struct grt_share *grt_share_create(const struct grt_share_desc *d) {
    struct grt_pile before;
    if (!d || !d->learner || d->leaves == 0 || d->leaves > MOST_LEAVES || d->first > MOST_LEAVES ||
        (d->others == 0 && (d->leaves & (d->leaves - 1)) != 0)) {
        grt_fail(GRT_INVALID,
                 "a share wants a learner and micro-batches, alone a power of two of them");
        return NULL;
    }
    struct grt_share *s = calloc(1, sizeof *s);
    if (!s) {
        grt_fail(GRT_NO_MEMORY, "no host memory for gradients");
        return NULL;
    }
    s->learner = d->learner;
    s->dev = d->learner->dev;
    s->first = d->first;
    s->leaves = d->leaves;
    uint32_t joined = pile_before(s, s->leaves - 1, &before);
    s->subtrees = before.count + 1 - joined;
    s->alone = d->others == 0;
    s->beside = !s->alone && (d->beside || copies_beside(s->dev));
    uint64_t least = s->learner->params.elements * sizeof(float) / MOST_BUCKETS;
    uint64_t full = least > BUCKET_BYTES ? least : BUCKET_BYTES;
    if (!make_buckets(s, d->bucket > 0 ? d->bucket : full) || !make_memory(s) || !make_graphs(s)) {
        grt_share_destroy(&s);
    }
    return s;
}

void grt_share_destroy(struct grt_share **share) {
    if (!share || !*share) {
        return;
    }
    struct grt_share *s = *share;
    for (uint32_t i = 0; s->buckets && i <= s->bucket_count; i++) {
        grt_graph_destroy(&s->buckets[i].take);
        grt_graph_destroy(&s->buckets[i].fetch);
        grt_graph_destroy(&s->buckets[i].give);
        grt_buf_destroy(&s->buckets[i].out);
    }
    for (uint32_t i = 0; s->keep && i < s->leaves; i++) {
        grt_graph_destroy(&s->keep[i]);
    }
    for (uint32_t i = 0; i < GRT_PILE_MOST; i++) {
        grt_buf_destroy(&s->levels[i].buf);
    }
    grt_graph_destroy(&s->settle);
    grt_graph_destroy(&s->undo);
    grt_graph_destroy(&s->begin);
    grt_graph_destroy(&s->empty[0]);
    grt_graph_destroy(&s->empty[1]);
    grt_buf_destroy(&s->own.buf);
    grt_buf_destroy(&s->before);
    grt_buf_destroy(&s->down);
    grt_buf_destroy(&s->up);
    grt_buf_destroy(&s->in);
    free(s->buckets);
    free(s->ranges);
    free(s->rest);
    free(s->taken);
    free(s->keep);
    free(s);
    *share = NULL;
}

// ---- a step ----

bool grt_share_begin(struct grt_share *s) {
    return grt_graph_run(s->begin);
}

bool grt_share_undo(struct grt_share *s) {
    return !s->undo || grt_graph_run(s->undo);
}

const struct grt_graph_tell *grt_share_tell(const struct grt_share *s, uint32_t leaf) {
    return leaf + 1 == s->leaves ? &s->tell : NULL;
}

bool grt_share_leaf(struct grt_share *s, uint32_t leaf, struct grt_graph *graph) {
    bool last = leaf + 1 == s->leaves;
    if (!grt_graph_run(graph ? graph : s->empty[last])) {
        return false;
    }
    return last ? told(s, s->bucket_count) : grt_graph_run(s->keep[leaf]);
}

uint32_t grt_share_pieces(const struct grt_share *s) {
    return s->alone ? 1 : s->bucket_count + 1;
}

static struct bucket *piece_of(const struct grt_share *s, uint32_t i) {
    return &s->buckets[s->alone ? s->bucket_count : i];
}

// Begins to bring a bucket that is taken to the host, unless that was begun before.
static bool fetch(struct grt_share *s, struct bucket *b) {
    if (b->fetched > 0) {
        return true;
    }
    if (!grt_graph_run(b->fetch)) {
        return false;
    }
    b->fetched = grt_dev_mark(s->dev, GRT_LANE_ASIDE);
    return true;
}

bool grt_share_take(struct grt_share *s, uint32_t i, struct grt_share_piece *piece) {
    const struct bucket *b = piece_of(s, i);
    bool last = b == &s->buckets[s->bucket_count];
    const float *down = grt_buf_host(s->down);
    *piece = (struct grt_share_piece){.down = down + b->at * s->subtrees,
                                      .up = last ? s->rest : (float *)grt_buf_host(s->up) + b->at,
                                      .count = b->count};
    if (last) {
        if (!grt_dev_wait_for(s->dev, GRT_LANE_MAIN, b->mark)) {
            return false;
        }
        for (uint32_t k = 0; k < s->subtrees; k++) {
            pack_rest(s->learner, piece->down + k * wide_rest(s->learner), s->taken + k * b->count);
        }
        piece->down = s->taken;
        return true;
    }
    if (!b->fetch) {
        return grt_dev_wait_for(s->dev, GRT_LANE_MAIN, b->mark);
    }
    if (!grt_dev_wait_for(s->dev, GRT_LANE_MAIN, b->mark) || !fetch(s, &s->buckets[i]) ||
        !grt_dev_wait_for(s->dev, GRT_LANE_ASIDE, b->fetched)) {
        return false;
    }
    // The next comes while this one is summed, where it is taken by now: one that is waited for
    // beside compute would keep the sums behind it from going up.
    struct bucket *next = &s->buckets[i + 1];
    return !next->fetch || !grt_dev_passed(s->dev, GRT_LANE_MAIN, next->mark) || fetch(s, next);
}

static uint64_t last_mark(const struct grt_share *s) {
    uint64_t last = 0;
    for (uint32_t i = 0; i < s->bucket_count; i++) {
        last = s->buckets[i].mark > last ? s->buckets[i].mark : last;
    }
    return last;
}

bool grt_share_passed(const struct grt_share *s) {
    return grt_dev_passed(s->dev, GRT_LANE_MAIN, last_mark(s));
}

bool grt_share_wait(struct grt_share *s) {
    return grt_dev_wait_for(s->dev, GRT_LANE_MAIN, last_mark(s));
}

bool grt_share_give(struct grt_share *s, uint32_t i) {
    const struct bucket *b = piece_of(s, i);
    if (b == &s->buckets[s->bucket_count]) {
        spread_rest(s->learner, s->rest, (float *)grt_buf_host(s->up) + b->at);
        return (!s->settle ||
                (grt_dev_after(s->dev, GRT_LANE_MAIN, s->given) && grt_graph_run(s->settle))) &&
               grt_graph_run(b->give);
    }
    if (!grt_graph_run(b->give)) {
        return false;
    }
    s->given = s->in ? grt_dev_mark(s->dev, GRT_LANE_ASIDE) : 0;
    return true;
}

double grt_share_settle(struct grt_share *s, uint32_t leaves) {
    const struct bucket *rest = &s->buckets[s->bucket_count];
    double squares = 0;
    for (uint64_t i = rest->count - s->kept; i < rest->count; i++) {
        s->rest[i] /= (float)leaves;
    }
    for (uint64_t i = 0; i < GRT_NORM_PARTS; i++) {
        squares += (double)s->rest[i];
    }
    return squares;
}
