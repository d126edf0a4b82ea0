// SPDX-License-Identifier: Apache-2.0
// Sums over ranks, by messages or through shared memory, in one order.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/pile.h"
#include "comm_parts.h"

// ---- which sums ----

static void forget(struct comm_plan *p) {
    free(p->leaves);
    free(p->each);
    free(p->adds);
    *p = (struct comm_plan){0};
}

void comm_plan_end(struct grt_comm *comm) {
    forget(&comm->plan);
}

static uint32_t leaves_of(const uint32_t *leaves, uint32_t rank) {
    return leaves ? leaves[rank] : 1;
}

// Subtrees of a run of leaves, one behind the other.
static struct grt_pile pile_of(uint32_t first, uint32_t count) {
    struct grt_pile pile = {0};
    for (uint32_t i = 0; i < count; i++) {
        grt_pile_add(&pile, first + i, 1);
    }
    return pile;
}

uint32_t grt_comm_subtrees(uint32_t first, uint32_t leaves) {
    return pile_of(first, leaves).count;
}

// Adds of all subtrees, in an order in which every sum has its parts: by it all ways to sum have
// the same bits.
static void list_adds(struct comm_plan *p, uint32_t ranks) {
    struct grt_pile pile = {0};
    uint32_t places[GRT_PILE_MOST], first = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        struct grt_pile own = pile_of(first, p->leaves[r]);
        for (uint32_t k = 0; k < own.count; k++) {
            uint32_t from = r * p->most + k;
            uint32_t joined = grt_pile_add(&pile, own.first[k], own.size[k]);
            for (uint32_t i = 0; i < joined; i++) {
                uint32_t to = places[pile.count - 1 + joined - 1 - i];
                p->adds[p->add_count++] = (struct comm_add){to, from};
                from = to;
            }
            places[pile.count - 1] = from;
        }
        first += p->leaves[r];
    }
}

static bool plan_made_for(const struct comm_plan *p, const uint32_t *leaves, uint32_t ranks) {
    bool same = p->leaves != NULL;
    for (uint32_t r = 0; same && r < ranks; r++) {
        same = p->leaves[r] == leaves_of(leaves, r);
    }
    return same;
}

// `leaves` of each rank; NULL: one.
static bool make_plan(struct grt_comm *comm, const uint32_t *leaves) {
    struct comm_plan *p = &comm->plan;
    uint32_t ranks = comm->now.ranks, first = 0, blocks = 0;
    if (plan_made_for(p, leaves, ranks)) {
        return true;
    }
    forget(p);
    uint64_t all = 0;
    bool some = true;
    for (uint32_t r = 0; r < ranks; r++) {
        all += leaves_of(leaves, r);
        some = some && leaves_of(leaves, r) > 0;
    }
    if ((all & (all - 1)) != 0 || all > GRT_MAX_RANKS || !some) {
        return leaves
                   ? grt_fail(GRT_INVALID,
                              "grt_comm_sum_runs: %llu leaves are no power of two of which every "
                              "rank has some",
                              (unsigned long long)all)
                   : grt_fail(GRT_INVALID, "grt_comm_sum: %u ranks are no power of two", ranks);
    }
    p->leaves = malloc((ranks + 1u) * sizeof *p->leaves);
    p->each = malloc((ranks + 1u) * sizeof *p->each);
    for (uint32_t r = 0; p->leaves && p->each && r < ranks; r++) {
        p->leaves[r] = leaves_of(leaves, r);
        p->each[r] = grt_comm_subtrees(first, p->leaves[r]);
        p->most = p->each[r] > p->most ? p->each[r] : p->most;
        first += p->leaves[r];
        blocks += p->each[r];
    }
    p->adds = malloc((blocks + 1u) * sizeof *p->adds);
    if (!p->leaves || !p->each || !p->adds) {
        forget(p);
        return grt_fail(GRT_NO_MEMORY, "no host memory for sums of %u ranks", ranks);
    }
    list_adds(p, ranks);
    return true;
}

// The sum of all subtrees, over the first of them: those of a rank lie `most` times `pitch` behind
// those of the rank before.
static void sum_tree(const struct comm_plan *plan, float *all, uint64_t pitch, uint64_t count) {
    for (uint32_t k = 0; k < plan->add_count; k++) {
        float *restrict to = all + plan->adds[k].to * pitch;
        const float *restrict from = all + plan->adds[k].from * pitch;
        for (uint64_t i = 0; i < count; i++) {
            to[i] += from[i];
        }
    }
}

// ---- by messages ----

// Slices of one length, of every rank's subtrees: behind the numbers there are zeros.
static void fill_slices(const struct grt_comm *comm, const float *numbers, uint64_t count,
                        uint64_t slice, float *out) {
    const struct comm_plan *p = &comm->plan;
    memset(out, 0, comm->now.ranks * p->most * slice * sizeof *out);
    for (uint32_t r = 0; r < comm->now.ranks && r * slice < count; r++) {
        uint64_t left = count - r * slice, n = left < slice ? left : slice;
        for (uint32_t k = 0; k < p->each[comm->now.rank]; k++) {
            memcpy(out + (r * p->most + k) * slice, numbers + k * count + r * slice,
                   n * sizeof *out);
        }
    }
}

// Each rank gets one slice of all, sums it, and all get the sums.
static bool sum_slices(struct grt_comm *comm, const float *numbers, float *sum, uint64_t count) {
    const struct comm_plan *p = &comm->plan;
    uint32_t ranks = comm->now.ranks;
    uint64_t slice = (count + ranks - 1) / ranks, room = slice * ranks;
    if (!comm_scratch(comm, (2 * p->most + 1) * room * sizeof(float))) {
        return false;
    }
    float *theirs = comm->scratch, *own = theirs + p->most * room, *all = own + p->most * room;
    if (room > count || p->most > 1) {
        fill_slices(comm, numbers, count, slice, own);
        numbers = own;
    }
    if (!comm_spread(comm, numbers, theirs, p->most * slice * sizeof(float))) {
        return false;
    }
    sum_tree(p, theirs, slice, slice);
    memcpy(all + comm->now.rank * slice, theirs, slice * sizeof(float));
    if (!grt_comm_gather(comm, all, slice * sizeof(float))) {
        return false;
    }
    memcpy(sum, all, count * sizeof *sum);
    return true;
}

// ---- through shared memory ----

// What two ranks have, element by element. The sum may be what one of them has.
static void add_two(float *sum, const float *left, const float *right, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        sum[i] = left[i] + right[i];
    }
}

#define BLOCK 512  // numbers that are summed over all ranks at a time

// The numbers of a lane: a run of all, which ranks exchange in the lane's boxes.
struct run {
    struct grt_comm *comm;
    uint32_t lane;
    bool beside;  // on a thread of the team
    const float *numbers;
    uint64_t pitch;  // from those of a subtree to those of the next
    float *sum;
    uint64_t count;
    float *blocks;  // a block of each subtree
};

// All ranks have filled their boxes of the lane.
static bool come(const struct run *run) {
    struct grt_comm *comm = run->comm;
    if (!run->beside) {
        return comm_come(comm, run->lane);
    }
    // The rank's own thread looks after the others.
    window_come(comm->window, run->lane);
    bool came = false;
    while (!came && !atomic_load(&comm->gone)) {
        came = window_all_came(comm->window, run->lane);
    }
    return came;
}

// Numbers of a subtree that fit a box at a time.
static uint64_t box_room(const struct grt_comm *comm) {
    return window_room(comm->window) / sizeof(float) / comm->plan.most;
}

// Numbers of all ranks, block by block: from `at` on in the boxes. The sum may lie in the own box.
static void sum_ranks(const struct run *run, uint64_t at, float *sum, uint64_t count) {
    const struct grt_comm *comm = run->comm;
    const struct comm_plan *plan = &comm->plan;
    const uint64_t room = box_room(comm);
    float *blocks = run->blocks;
    for (uint64_t first = 0; first < count; first += BLOCK) {
        uint64_t n = count - first < BLOCK ? count - first : BLOCK;
        for (uint32_t r = 0; r < comm->now.ranks; r++) {
            const float *box = window_box(comm->window, run->lane, r);
            for (uint32_t k = 0; k < plan->each[r]; k++) {
                memcpy(blocks + ((uint64_t)r * plan->most + k) * BLOCK, box + k * room + at + first,
                       n * sizeof *blocks);
            }
        }
        sum_tree(plan, blocks, BLOCK, n);
        memcpy(sum + first, blocks, n * sizeof *sum);
    }
}

// Through the boxes, one after another. Two ranks add all for themselves: that reads as much as a
// half, its sum, and the other half's, and they come once. More share the work, in slices.
static bool sum_run(const struct run *run) {
    const struct grt_comm *comm = run->comm;
    struct window *window = comm->window;
    const uint64_t most = box_room(comm);
    const uint64_t ranks = comm->now.ranks > 1 ? comm->now.ranks : 1;
    for (uint64_t at = 0; at < run->count; at += most) {
        uint64_t n = run->count - at < most ? run->count - at : most;
        uint64_t slice = (n + ranks - 1) / ranks, first = comm->now.rank * slice;
        uint64_t end = first + slice < n ? first + slice : n;
        float *own = window_own(window, run->lane), *sum = run->sum + at;
        for (uint32_t k = 0; k < comm->plan.each[comm->now.rank]; k++) {
            memcpy(own + k * most, run->numbers + k * run->pitch + at, n * sizeof *own);
        }
        if (!come(run)) {
            return false;
        }
        if (comm->now.ranks == 2 && comm->plan.most == 1) {
            add_two(sum, window_box(window, run->lane, 0), window_box(window, run->lane, 1), n);
        } else if (comm->now.ranks == 2) {
            sum_ranks(run, 0, sum, n);
        } else {
            if (first < end) {
                sum_ranks(run, first, own + first, end - first);
            }
            if (!come(run)) {
                return false;
            }
            for (uint32_t r = 0; r < comm->now.ranks && r * slice < n; r++) {
                const float *box = window_box(window, run->lane, r);
                uint64_t left = n - r * slice;
                memcpy(sum + r * slice, box + r * slice,
                       (left < slice ? left : slice) * sizeof *sum);
            }
        }
        window_turn(window, run->lane);
    }
    return true;
}

static void sum_beside(void *context, uint32_t lane) {
    const struct run *runs = context;
    sum_run(&runs[lane]);  // fails where the rank's own thread has found why
}

#define LANE_LEAST 16384  // numbers that are worth a thread

// In as many lanes as all ranks have, each with its part of the numbers.
static bool sum_boxes(struct grt_comm *comm, const float *numbers, float *sum, uint64_t count) {
    struct run runs[WINDOW_LANES];
    uint32_t lanes = window_lanes(comm->window);
    lanes = count / LANE_LEAST < lanes ? 1 : lanes;
    uint64_t blocks = (uint64_t)comm->now.ranks * comm->plan.most * BLOCK;
    if (!comm_scratch(comm, lanes * blocks * sizeof(float))) {
        return false;
    }
    for (uint32_t i = 0; i < lanes; i++) {
        uint64_t first = count * i / lanes, end = count * (i + 1) / lanes;
        runs[i] = (struct run){
            comm,  i,           i > 0 && comm->team, numbers + first,
            count, sum + first, end - first,         (float *)comm->scratch + i * blocks};
    }
    bool beside = lanes > 1 && comm->team, good = true;
    if (beside) {
        team_begin(comm->team, lanes - 1, sum_beside, runs);
    }
    for (uint32_t i = 0; good && i < (beside ? 1 : lanes); i++) {
        good = sum_run(&runs[i]);
    }
    // Also where a rank is gone: the threads have what is on this stack.
    return beside ? comm_join(comm) && good : good;
}

bool grt_comm_sum_runs(struct grt_comm *comm, const uint32_t *leaves, const float *numbers,
                       float *sum, uint64_t count) {
    uint32_t ranks = grt_comm_ranks(comm);
    if (count > 0 && (!numbers || !sum)) {
        return grt_fail(GRT_INVALID, "grt_comm_sum: no %s", numbers ? "sum" : "numbers");
    }
    if (ranks == 1) {
        memmove(sum, numbers, count * sizeof *sum);
        return true;
    }
    if (comm->lost || !make_plan(comm, leaves)) {
        return false;
    }
    return comm->window ? sum_boxes(comm, numbers, sum, count)
                        : sum_slices(comm, numbers, sum, count);
}

bool grt_comm_sum(struct grt_comm *comm, const float *numbers, float *sum, uint64_t count) {
    return grt_comm_sum_runs(comm, NULL, numbers, sum, count);
}
