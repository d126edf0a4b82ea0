// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "gpurt/device.h"
#include "device/kernels.h"
#include "ops/op_support.h"
#include "base/log.h"
#include "learner_parts.h"
#include "shaders/host.h"
#include "shaders/optim/lib/optim_params.k"
#include "snapshot.h"

#define WHOLE 4            // tensors of a whole snapshot
#define BESIDE (4u << 20)  // bytes of one that has a second place on the device
#define SMALL (16u << 20)
#define LARGE (256u << 20)
#define SLOWEST 1e9  // bytes a second of a copy to the host over a slow link

// Of a run: one that is written, one that waits for it, and two that are on their way.
#define PLACES 4
#define OFTEN 3  // that are wanted where epochs are short

// How a snapshot is taken: `take` in the queue of the steps, `send` beside it; NULL where `take`
// copies to the host itself.
struct taking {
    struct grt_graph *take, *send;
};

// On the host, and on the device until that is sent; `near` is NULL where nothing is.
struct kept {
    struct grt_buf *host, *near;
};

struct slot {
    struct kept kept;  // state, then history
    struct taking by;
    uint64_t mark;
    uint32_t place;  // of the whole that nobody has waited for; PLACES: there is none
};

struct place {
    struct kept kept;                      // masters, buffers, the optimizer's, the average
    struct taking by[GRT_SNAPSHOT_SLOTS];  // with what a slot holds, in one submit
    uint32_t lent;                         // times
    bool out;                              // on its way
};

struct grt_snapshot {
    struct grt_learner *learner;
    bool beside;  // copies to the host run beside the steps
    struct slot slots[GRT_SNAPSHOT_SLOTS];
    struct place places[PLACES];  // made when they are wanted
    uint32_t newest;              // place
    uint32_t most;                // that may be on their way
};

static void destroy_kept(struct kept *k) {
    grt_buf_destroy(&k->host);
    grt_buf_destroy(&k->near);
}

static bool make_kept(const struct grt_snapshot *s, uint64_t bytes, struct kept *k) {
    struct grt_dev *dev = s->learner->dev;
    k->host = grt_buf_create(
        dev, grt_buf_desc(.size = bytes, .kind = GRT_BUF_READBACK, .label = "snapshots"));
    k->near = k->host && s->beside
                  ? grt_buf_create(dev, grt_buf_desc(.size = bytes, .label = "snapshots"))
                  : NULL;
    if (k->host && (k->near || !s->beside)) {
        return true;
    }
    destroy_kept(k);
    return false;
}

// NULL where there is none.
static void whole_of(const struct grt_learner *l, const struct grt_tensor *from[WHOLE]) {
    from[0] = l->params.master;
    from[1] = l->params.buffer;
    from[2] = l->kept;
    from[3] = l->average;
}

static uint64_t bytes_of(const struct grt_tensor *t) {
    return t ? grt_tensor_bytes(t) : 0;
}

static uint64_t slot_bytes(const struct grt_learner *l) {
    return bytes_of(l->state) + bytes_of(l->history);
}

static uint64_t whole_bytes(const struct grt_learner *l) {
    const struct grt_tensor *from[WHOLE];
    uint64_t bytes = 0;
    whole_of(l, from);
    for (int i = 0; i < WHOLE; i++) {
        bytes += bytes_of(from[i]);
    }
    return bytes;
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

static void copy_to_host(struct grt_graph *graph, const struct grt_learner *l,
                         const struct kept *slot, const struct kept *whole) {
    const struct grt_tensor *first[2] = {l->state, l->history}, *rest[WHOLE];
    whole_of(l, rest);
    copy_all(graph, slot->host, first, 2);
    if (whole) {
        copy_all(graph, whole->host, rest, WHOLE);
    }
}

// One kernel: between two copies, and between copies and kernels, a GPU has nothing to do.
static void keep_near(struct grt_graph *graph, const struct grt_learner *l, const struct kept *slot,
                      const struct kept *whole) {
    enum { WG = 256, MOST_GROUPS = 256 };
    const struct grt_tensor *from[2 + WHOLE] = {l->state, l->history};
    struct grt_range ranges[4 + WHOLE];
    uint32_t words[2 + WHOLE] = {0};
    uint64_t all = 0;
    if (whole) {
        whole_of(l, from + 2);
    }
    for (uint32_t i = 0; i < 2 + WHOLE; i++) {
        words[i] = (uint32_t)(bytes_of(from[i]) / 4);
        ranges[i] = from[i] ? from[i]->range : grt_op_unused(graph);
        all += words[i];
    }
    ranges[2 + WHOLE] = (struct grt_range){slot->near, 0, grt_buf_size(slot->near)};
    ranges[3 + WHOLE] = whole ? (struct grt_range){whole->near, 0, grt_buf_size(whole->near)}
                              : grt_op_unused_at(graph, 1);
    const struct snapshot_params params = {.state = words[0],
                                           .history = words[1],
                                           .master = words[2],
                                           .buffers = words[3],
                                           .kept = words[4],
                                           .average = words[5]};
    uint64_t groups = (all + WG - 1) / WG;
    grt_op_launch(graph, grt_kernel_desc(.name = "snapshot", .specs = {{"WG", WG}}), &params,
                  sizeof params, ranges, 4 + WHOLE,
                  (const uint32_t[3]){groups < MOST_GROUPS ? (uint32_t)groups : MOST_GROUPS, 1, 1});
}

static void send_kept(struct grt_graph *graph, const struct kept *k) {
    uint64_t bytes = grt_buf_size(k->host);
    grt_graph_copy(graph, (struct grt_range){k->host, 0, bytes},
                   (struct grt_range){k->near, 0, bytes});
}

static void destroy_taking(struct taking *t) {
    grt_graph_destroy(&t->take);
    grt_graph_destroy(&t->send);
}

// A first run would be waited for. What it takes at most is told instead.
static bool bake(struct grt_graph *graph, uint64_t bytes) {
    return graph && grt_graph_bake(graph) && grt_graph_expect(graph, (double)bytes / SLOWEST);
}

// Of a slot, and of the whole where there is a place for it.
static bool make_taking(const struct grt_snapshot *s, const struct kept *slot,
                        const struct kept *whole, struct taking *t) {
    struct grt_learner *l = s->learner;
    uint64_t bytes = slot_bytes(l) + (whole ? whole_bytes(l) : 0);
    t->take = grt_graph_create(l->dev, "snapshot");
    t->send = t->take && s->beside ? grt_graph_create(l->dev, "snapshot to the host") : NULL;
    if (t->take) {
        (s->beside ? keep_near : copy_to_host)(t->take, l, slot, whole);
    }
    if (t->send) {
        grt_graph_aside(t->send);
        send_kept(t->send, slot);
        if (whole) {
            send_kept(t->send, whole);
        }
    }
    if (bake(t->take, bytes) && (!s->beside || bake(t->send, bytes))) {
        return true;
    }
    destroy_taking(t);
    return false;
}

static void destroy_place(struct place *place) {
    for (uint32_t i = 0; i < GRT_SNAPSHOT_SLOTS; i++) {
        destroy_taking(&place->by[i]);
    }
    destroy_kept(&place->kept);
}

static bool make_place(struct grt_snapshot *s, struct place *place) {
    bool good = make_kept(s, whole_bytes(s->learner), &place->kept);
    for (uint32_t i = 0; good && i < GRT_SNAPSHOT_SLOTS; i++) {
        good = make_taking(s, &s->slots[i].kept, &place->kept, &place->by[i]);
    }
    if (!good) {
        destroy_place(place);
    }
    return good;
}

// One that is neither lent nor on its way, made where all are; PLACES with the sentence: there is
// none.
static uint32_t free_place(struct grt_snapshot *s) {
    uint32_t i = 0;
    while (i < PLACES && s->places[i].kept.host && (s->places[i].lent > 0 || s->places[i].out)) {
        i++;
    }
    if (i == PLACES) {
        grt_fail(GRT_INVALID, "all places of whole snapshots are lent");
        return PLACES;
    }
    return s->places[i].kept.host || make_place(s, &s->places[i]) ? i : PLACES;
}

struct grt_snapshot *grt_snapshot_create(struct grt_learner *l, bool beside) {
    struct grt_snapshot *s = calloc(1, sizeof *s);
    if (!s) {
        grt_fail(GRT_NO_MEMORY, "no host memory for snapshots");
        return NULL;
    }
    uint64_t bytes = whole_bytes(l);
    s->learner = l;
    s->beside = beside && bytes <= BESIDE && grt_dev_lanes(l->dev) > 1;
    bool good = true;
    for (uint32_t i = 0; good && i < GRT_SNAPSHOT_SLOTS; i++) {
        struct slot *slot = &s->slots[i];
        slot->place = PLACES;
        good = make_kept(s, slot_bytes(l), &slot->kept) &&
               make_taking(s, &slot->kept, NULL, &slot->by);
    }
    good = good && make_place(s, &s->places[0]);
    // Small ones are made before anybody looks at the clock, large ones when they are wanted.
    // OpenCL waits for its queue where it makes a buffer: of 90 MB that took 34 ms of a device that
    // had nothing to do, three times in a run (H200, 2026-11).
    uint32_t ready = bytes <= SMALL ? PLACES : bytes <= LARGE ? OFTEN : 1, made = good;
    while (made > 0 && made < ready && make_place(s, &s->places[made])) {
        made++;
    }
    s->most = made == PLACES ? 2 : 1;  // one place is enough to go on
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
        destroy_taking(&s->slots[i].by);
        destroy_kept(&s->slots[i].kept);
    }
    for (uint32_t i = 0; i < PLACES; i++) {
        destroy_place(&s->places[i]);
    }
    free(s);
}

uint32_t grt_snapshot_most(const struct grt_snapshot *s) {
    return s->most;
}

static enum grt_lane lane_of(const struct grt_snapshot *s) {
    return s->beside ? GRT_LANE_ASIDE : GRT_LANE_MAIN;
}

// What is on its way to the slot's place is nobody's any more.
static void forget(struct grt_snapshot *s, struct slot *slot) {
    if (slot->place < PLACES) {
        s->places[slot->place].out = false;
        slot->place = PLACES;
    }
}

void grt_snapshot_forget(struct grt_snapshot *s) {
    for (uint32_t i = 0; i < GRT_SNAPSHOT_SLOTS; i++) {
        forget(s, &s->slots[i]);
    }
}

bool grt_snapshot_take(struct grt_snapshot *s, uint32_t slot_number, bool whole) {
    struct grt_dev *dev = s->learner->dev;
    struct slot *slot = &s->slots[slot_number];
    forget(s, slot);
    uint32_t place = whole ? free_place(s) : PLACES;
    if (whole && place == PLACES) {
        return false;
    }
    const struct taking *by = whole ? &s->places[place].by[slot_number] : &slot->by;
    if (!grt_graph_run(by->take) ||
        (by->send && (!grt_dev_after(dev, GRT_LANE_ASIDE, grt_dev_mark(dev, GRT_LANE_MAIN)) ||
                      !grt_graph_run(by->send)))) {
        return false;
    }
    slot->mark = grt_dev_mark(dev, lane_of(s));
    slot->place = place;
    if (whole) {
        s->places[place].out = true;
    }
    return grt_dev_usable(dev);
}

bool grt_snapshot_wait(struct grt_snapshot *s, uint32_t slot_number) {
    struct slot *slot = &s->slots[slot_number];
    if (!grt_dev_wait_for(s->learner->dev, lane_of(s), slot->mark)) {
        return false;
    }
    s->newest = slot->place < PLACES ? slot->place : s->newest;
    forget(s, slot);
    return true;
}

bool grt_snapshot_passed(const struct grt_snapshot *s, uint32_t slot) {
    return grt_dev_passed(s->learner->dev, lane_of(s), s->slots[slot].mark);
}

const struct grt_learn_state *grt_snapshot_state(const struct grt_snapshot *s, uint32_t slot) {
    return grt_buf_host(s->slots[slot].kept.host);
}

struct grt_learn_row grt_snapshot_row(const struct grt_snapshot *s, uint32_t slot, uint32_t step) {
    const struct grt_learn_state *state = grt_snapshot_state(s, slot);
    return ((const struct grt_learn_row *)(const void *)(state + 1))[step % GRT_HISTORY];
}

void *grt_snapshot_tensor(const struct grt_snapshot *s, const struct grt_tensor *t) {
    const struct grt_tensor *from[WHOLE];
    char *host = grt_buf_host(s->places[s->newest].kept.host);
    whole_of(s->learner, from);
    for (int i = 0; i < WHOLE; i++) {
        uint64_t bytes = bytes_of(from[i]);
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
    uint32_t lent = 0;
    for (uint32_t i = 0; i < PLACES; i++) {
        lent += s->places[i].lent > 0;
    }
    // Those that are on their way before this one comes back have places too.
    bool room = lent + s->most <= PLACES && free_place(s) < PLACES;
    grt_quiet(before);
    if (!room) {
        place->lent--;
        return NULL;
    }
    *give_back = take_back;
    return place;
}
