// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gpurt/device.h"
#include "gpurt/ops.h"
#include "share_parts.h"

#define BUCKET_BYTES (4u << 20)
#define MOST_BUCKETS 24  // OpenCL knows the newest 32 marks of a lane
#define MOST_LEAVES 4096

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
    *b = (struct bucket){.at = s->alone ? 0 : at, .count = grt_share_rest(s->learner)};
    s->kept = grt_share_kept(s->learner);
    s->tell = (struct grt_graph_tell){s->ranges, s->bucket_count, told, s};
    return true;
}

static struct grt_buf *make_buf(const struct grt_share *s, uint64_t bytes, enum grt_buf_kind kind) {
    return grt_buf_create(s->dev, grt_buf_desc(.size = bytes, .kind = kind, .label = "gradients"));
}

// Bytes of one sum: of the rest, and with it of the gradients, which lie behind `*at`.
static uint64_t level_bytes(const struct grt_learner *l, bool grads, uint64_t *at) {
    *at = grt_dev_align_up(l->dev, grt_share_wide(l) * 4);
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
    uint64_t count = grt_share_wide(s->learner), elements = s->learner->params.elements;
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
    uint64_t bytes = (rest->at + grt_share_wide(s->learner)) * sizeof(float);
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
    uint32_t joined = grt_share_pile(s, s->leaves - 1, &before);
    s->subtrees = before.count + 1 - joined;
    s->alone = d->others == 0;
    s->beside = !s->alone && (d->beside || copies_beside(s->dev));
    uint64_t least = s->learner->params.elements * sizeof(float) / MOST_BUCKETS;
    uint64_t full = least > BUCKET_BYTES ? least : BUCKET_BYTES;
    if (!make_buckets(s, d->bucket > 0 ? d->bucket : full) || !make_memory(s) ||
        !grt_share_graphs(s)) {
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
            grt_share_pack(s->learner, piece->down + k * grt_share_wide(s->learner),
                           s->taken + k * b->count);
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
        grt_share_spread(s->learner, s->rest, (float *)grt_buf_host(s->up) + b->at);
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
