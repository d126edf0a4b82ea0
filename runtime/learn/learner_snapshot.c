// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "device/kernels.h"
#include "base/log.h"
#include "learner_parts.h"
#include "snapshot.h"

struct slot {
    struct grt_buf *buf;  // state, then history
    struct grt_graph *graph;
    uint64_t mark;
};

#define WHOLE 4            // tensors of a whole snapshot
#define SMALL (16u << 20)  // bytes of a whole snapshot
#define LARGE (256u << 20)
#define SLOWEST 1e9  // bytes a second of a copy to the host over a slow link

// Of a run: one that is written, one that waits for it, one that was just taken, and the next.
#define PLACES 4
#define OFTEN 3  // that are wanted where epochs are short

struct place {
    struct grt_buf *buf;  // masters, buffers, what the optimizer keeps, the average
    struct grt_graph *graphs[GRT_SNAPSHOT_SLOTS];  // with what a slot holds, in one submit
    uint32_t lent;                                 // times
};

struct grt_snapshot {
    struct grt_learner *learner;
    struct slot slots[GRT_SNAPSHOT_SLOTS];
    struct place places[PLACES];  // made when they are wanted
    uint32_t newest;              // place
};

static struct grt_buf *make_buf(struct grt_learner *l, uint64_t bytes) {
    return grt_buf_create(
        l->dev, grt_buf_desc(.size = bytes, .kind = GRT_BUF_READBACK, .label = "snapshots"));
}

// NULL where there is none.
static void whole_of(const struct grt_learner *l, const struct grt_tensor *from[WHOLE]) {
    from[0] = l->params.master;
    from[1] = l->params.buffer;
    from[2] = l->kept;
    from[3] = l->average;
}

// Copies one range behind the other.
static void copy_all(struct grt_graph *graph, struct grt_buf *into,
                     const struct grt_tensor *const *from, int count) {
    uint64_t at = 0;
    for (int i = 0; i < count; i++) {
        if (from[i]) {
            uint64_t bytes = grt_tensor_bytes(from[i]);
            grt_graph_copy(graph, (struct grt_range){into, at, bytes},
                           (struct grt_range){from[i]->range.buf, from[i]->range.offset, bytes});
            at += bytes;
        }
    }
}

// Of a slot, and of the whole where there is a place for it.
static struct grt_graph *make_graph(struct grt_learner *l, struct grt_buf *slot,
                                    struct grt_buf *whole) {
    struct grt_graph *graph = grt_graph_create(l->dev, "snapshot");
    const struct grt_tensor *first[2] = {l->state, l->history}, *rest[WHOLE];
    whole_of(l, rest);
    if (graph) {
        copy_all(graph, slot, first, 2);
    }
    if (graph && whole) {
        copy_all(graph, whole, rest, WHOLE);
    }
    // A first run would be waited for. What it takes at most is told instead.
    uint64_t bytes = grt_buf_size(slot) + (whole ? grt_buf_size(whole) : 0);
    if (graph && !(grt_graph_bake(graph) && grt_graph_expect(graph, (double)bytes / SLOWEST))) {
        grt_graph_destroy(&graph);
    }
    return graph;
}

static void destroy_place(struct place *place) {
    for (uint32_t i = 0; i < GRT_SNAPSHOT_SLOTS; i++) {
        grt_graph_destroy(&place->graphs[i]);
    }
    grt_buf_destroy(&place->buf);
}

static bool make_place(struct grt_snapshot *s, struct place *place) {
    const struct grt_tensor *from[WHOLE];
    uint64_t bytes = 0;
    whole_of(s->learner, from);
    for (int i = 0; i < WHOLE; i++) {
        bytes += grt_tensor_bytes(from[i]);
    }
    place->buf = make_buf(s->learner, bytes);
    bool good = place->buf != NULL;
    for (uint32_t i = 0; good && i < GRT_SNAPSHOT_SLOTS; i++) {
        place->graphs[i] = make_graph(s->learner, s->slots[i].buf, place->buf);
        good = place->graphs[i] != NULL;
    }
    if (!good) {
        destroy_place(place);
    }
    return good;
}

// One that is not lent, made where all are; PLACES with the sentence: there is none.
static uint32_t free_place(struct grt_snapshot *s) {
    uint32_t i = 0;
    while (i < PLACES && s->places[i].buf && s->places[i].lent > 0) {
        i++;
    }
    if (i == PLACES) {
        grt_fail(GRT_INVALID, "all places of whole snapshots are lent");
        return PLACES;
    }
    return s->places[i].buf || make_place(s, &s->places[i]) ? i : PLACES;
}

struct grt_snapshot *grt_snapshot_create(struct grt_learner *l) {
    struct grt_snapshot *s = calloc(1, sizeof *s);
    if (!s) {
        grt_fail(GRT_NO_MEMORY, "no host memory for snapshots");
        return NULL;
    }
    s->learner = l;
    bool good = true;
    for (uint32_t i = 0; good && i < GRT_SNAPSHOT_SLOTS; i++) {
        struct slot *slot = &s->slots[i];
        slot->buf = make_buf(l, grt_tensor_bytes(l->state) + grt_tensor_bytes(l->history));
        slot->graph = slot->buf ? make_graph(l, slot->buf, NULL) : NULL;
        good = slot->graph != NULL;
    }
    good = good && make_place(s, &s->places[0]);
    // Small ones are made before anybody looks at the clock, large ones when they are wanted.
    // OpenCL waits for its queue where it makes a buffer: of 90 MB that took 34 ms of a device that
    // had nothing to do, three times in a run (H200, 2026-11).
    uint64_t bytes = good ? grt_buf_size(s->places[0].buf) : 0;
    uint32_t ready = bytes <= SMALL ? PLACES : bytes <= LARGE ? OFTEN : 1;
    for (uint32_t i = 1; good && i < ready; i++) {
        if (!make_place(s, &s->places[i])) {
            break;  // one is enough to go on
        }
    }
    if (!good) {
        grt_snapshot_destroy(&s);
    }
    return s;
}

void grt_snapshot_destroy(struct grt_snapshot **snapshot) {
    if (!snapshot || !*snapshot) {
        return;
    }
    struct grt_snapshot *s = *snapshot;
    *snapshot = NULL;
    for (uint32_t i = 0; i < GRT_SNAPSHOT_SLOTS; i++) {
        grt_graph_destroy(&s->slots[i].graph);
        grt_buf_destroy(&s->slots[i].buf);
    }
    for (uint32_t i = 0; i < PLACES; i++) {
        destroy_place(&s->places[i]);
    }
    free(s);
}

bool grt_snapshot_take(struct grt_snapshot *s, uint32_t slot, bool whole) {
    uint32_t place = whole ? free_place(s) : 0;
    if (place == PLACES) {
        return false;
    }
    s->newest = whole ? place : s->newest;
    if (!grt_graph_run(whole ? s->places[place].graphs[slot] : s->slots[slot].graph)) {
        return false;
    }
    s->slots[slot].mark = grt_dev_mark(s->learner->dev, GRT_LANE_MAIN);
    return grt_dev_usable(s->learner->dev);
}

bool grt_snapshot_wait(struct grt_snapshot *s, uint32_t slot) {
    return grt_dev_wait_for(s->learner->dev, GRT_LANE_MAIN, s->slots[slot].mark);
}

bool grt_snapshot_passed(const struct grt_snapshot *s, uint32_t slot) {
    return grt_dev_passed(s->learner->dev, GRT_LANE_MAIN, s->slots[slot].mark);
}

const struct grt_learn_state *grt_snapshot_state(const struct grt_snapshot *s, uint32_t slot) {
    return grt_buf_host(s->slots[slot].buf);
}

struct grt_learn_row grt_snapshot_row(const struct grt_snapshot *s, uint32_t slot, uint32_t step) {
    const struct grt_learn_state *state = grt_snapshot_state(s, slot);
    return ((const struct grt_learn_row *)(const void *)(state + 1))[step % GRT_HISTORY];
}

void *grt_snapshot_tensor(const struct grt_snapshot *s, const struct grt_tensor *t) {
    const struct grt_tensor *from[WHOLE];
    char *host = grt_buf_host(s->places[s->newest].buf);
    whole_of(s->learner, from);
    for (int i = 0; i < WHOLE; i++) {
        uint64_t bytes = grt_tensor_bytes(from[i]);
        const struct grt_range *range = from[i] ? &from[i]->range : NULL;
        if (range && t->range.buf == range->buf && t->range.offset >= range->offset &&
            t->range.offset - range->offset < bytes) {
            return host + (t->range.offset - range->offset);
        }
        host += bytes;
    }
    return NULL;
}

static void take_back(void *lent) {
    ((struct place *)lent)->lent--;
}

void *grt_snapshot_lend(struct grt_snapshot *s, void (**give_back)(void *lent)) {
    struct place *place = &s->places[s->newest];
    bool before = grt_quiet(true);
    place->lent++;
    bool room = free_place(s) < PLACES;
    grt_quiet(before);
    if (!room) {
        place->lent--;
        return NULL;
    }
    *give_back = take_back;
    return place;
}
