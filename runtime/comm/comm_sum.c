// SPDX-License-Identifier: Apache-2.0
// Sums over ranks, by messages or through shared memory, in one order.
#include <stdatomic.h>
#include <string.h>

#include "base/log.h"
#include "comm_parts.h"

// The sum of all ranks' numbers, over those of the first: pairs, then pairs of pairs, so that every
// way to sum has the same bits. Numbers of a rank lie `pitch` behind those of the one before.
static void sum_tree(float *all, uint32_t ranks, uint64_t pitch, uint64_t count) {
    for (uint32_t width = 1; width < ranks; width *= 2) {
        for (uint32_t r = 0; r + width < ranks; r += 2 * width) {
            float *restrict to = all + r * pitch;
            const float *restrict from = all + (r + width) * pitch;
            for (uint64_t i = 0; i < count; i++) {
                to[i] += from[i];
            }
        }
    }
}

// By messages: each rank gets one slice of all, sums it, and all get the sums.
static bool sum_slices(struct grt_comm *comm, const float *numbers, float *sum, uint64_t count) {
    uint32_t ranks = comm->ranks;
    uint64_t slice = (count + ranks - 1) / ranks, room = slice * ranks;
    if (!comm_scratch(comm, 3 * room * sizeof(float))) {
        return false;
    }
    float *theirs = comm->scratch, *all = theirs + room, *own = all + room;
    if (room > count) {
        // Slices are of one length: behind the numbers there are zeros.
        memcpy(own, numbers, count * sizeof *own);
        memset(own + count, 0, (room - count) * sizeof *own);
        numbers = own;
    }
    if (!comm_spread(comm, numbers, theirs, slice * sizeof(float))) {
        return false;
    }
    sum_tree(theirs, ranks, slice, slice);
    memcpy(all + comm->rank * slice, theirs, slice * sizeof(float));
    if (!grt_comm_gather(comm, all, slice * sizeof(float))) {
        return false;
    }
    memcpy(sum, all, count * sizeof *sum);
    return true;
}

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
    float *sum;
    uint64_t count;
    float *blocks;  // a block of each rank
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

// Numbers of all ranks, block by block: from `at` on in the boxes. The sum may lie in the own box.
static void sum_ranks(const struct run *run, uint64_t at, float *sum, uint64_t count) {
    const struct grt_comm *comm = run->comm;
    float *blocks = run->blocks;
    for (uint64_t first = 0; first < count; first += BLOCK) {
        uint64_t n = count - first < BLOCK ? count - first : BLOCK;
        for (uint32_t r = 0; r < comm->ranks; r++) {
            const float *box = window_box(comm->window, run->lane, r);
            memcpy(blocks + (uint64_t)r * BLOCK, box + at + first, n * sizeof *blocks);
        }
        sum_tree(blocks, comm->ranks, BLOCK, n);
        memcpy(sum + first, blocks, n * sizeof *sum);
    }
}

// Through the boxes, one after another. Two ranks add all for themselves: that reads as much as a
// half, its sum, and the other half's, and they come once. More share the work, in slices.
static bool sum_run(const struct run *run) {
    const struct grt_comm *comm = run->comm;
    struct window *window = comm->window;
    const uint64_t most = window_room(window) / sizeof(float);
    const uint64_t ranks = comm->ranks > 1 ? comm->ranks : 1;
    for (uint64_t at = 0; at < run->count; at += most) {
        uint64_t n = run->count - at < most ? run->count - at : most;
        uint64_t slice = (n + ranks - 1) / ranks, first = comm->rank * slice;
        uint64_t end = first + slice < n ? first + slice : n;
        float *own = window_own(window, run->lane), *sum = run->sum + at;
        memcpy(own, run->numbers + at, n * sizeof *own);
        if (!come(run)) {
            return false;
        }
        if (comm->ranks == 2) {
            add_two(sum, window_box(window, run->lane, 0), window_box(window, run->lane, 1), n);
        } else {
            if (first < end) {
                sum_ranks(run, first, own + first, end - first);
            }
            if (!come(run)) {
                return false;
            }
            for (uint32_t r = 0; r < comm->ranks && r * slice < n; r++) {
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
    if (!comm_scratch(comm, (uint64_t)lanes * comm->ranks * BLOCK * sizeof(float))) {
        return false;
    }
    for (uint32_t i = 0; i < lanes; i++) {
        uint64_t first = count * i / lanes, end = count * (i + 1) / lanes;
        runs[i] = (struct run){comm,
                               i,
                               i > 0 && comm->team,
                               numbers + first,
                               sum + first,
                               end - first,
                               (float *)comm->scratch + (uint64_t)i * comm->ranks * BLOCK};
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

bool grt_comm_sum(struct grt_comm *comm, const float *numbers, float *sum, uint64_t count) {
    uint32_t ranks = grt_comm_ranks(comm);
    if (count > 0 && (!numbers || !sum)) {
        return grt_fail(GRT_INVALID, "grt_comm_sum: no %s", numbers ? "sum" : "numbers");
    }
    if (ranks == 1) {
        memmove(sum, numbers, count * sizeof *sum);
        return true;
    }
    if ((ranks & (ranks - 1)) != 0) {
        return grt_fail(GRT_INVALID, "grt_comm_sum: %u ranks are no power of two", ranks);
    }
    if (comm->lost) {
        return false;
    }
    return comm->window ? sum_boxes(comm, numbers, sum, count)
                        : sum_slices(comm, numbers, sum, count);
}
