// SPDX-License-Identifier: Apache-2.0
// Sums over ranks, by messages or through shared memory, in one order.
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

// Numbers of all ranks, block by block: from `at` on in the boxes. The sum may lie in the own box.
static void sum_ranks(struct grt_comm *comm, uint64_t at, float *sum, uint64_t count) {
    float *blocks = comm->scratch;
    for (uint64_t first = 0; first < count; first += BLOCK) {
        uint64_t n = count - first < BLOCK ? count - first : BLOCK;
        for (uint32_t r = 0; r < comm->ranks; r++) {
            const float *box = window_box(comm->window, r);
            memcpy(blocks + (uint64_t)r * BLOCK, box + at + first, n * sizeof *blocks);
        }
        sum_tree(blocks, comm->ranks, BLOCK, n);
        memcpy(sum + first, blocks, n * sizeof *sum);
    }
}

// Through the boxes, one after another. Two ranks add all for themselves: that reads as much as a
// half, its sum, and the other half's, and they come once. More share the work, in slices.
static bool sum_boxes(struct grt_comm *comm, const float *numbers, float *sum, uint64_t count) {
    const uint64_t most = WINDOW_BOX / sizeof(float), ranks = comm->ranks > 1 ? comm->ranks : 1;
    if (!comm_scratch(comm, ranks * BLOCK * sizeof(float))) {
        return false;
    }
    for (uint64_t at = 0; at < count; at += most) {
        uint64_t n = count - at < most ? count - at : most;
        uint64_t slice = (n + ranks - 1) / ranks, first = comm->rank * slice;
        uint64_t end = first + slice < n ? first + slice : n;
        float *own = window_own(comm->window);
        memcpy(own, numbers + at, n * sizeof *own);
        if (!comm_come(comm)) {
            return false;
        }
        if (comm->ranks == 2) {
            add_two(sum + at, window_box(comm->window, 0), window_box(comm->window, 1), n);
        } else {
            if (first < end) {
                sum_ranks(comm, first, own + first, end - first);
            }
            if (!comm_come(comm)) {
                return false;
            }
            for (uint32_t r = 0; r < comm->ranks && r * slice < n; r++) {
                const float *box = window_box(comm->window, r);
                uint64_t left = n - r * slice;
                memcpy(sum + at + r * slice, box + r * slice,
                       (left < slice ? left : slice) * sizeof *sum);
            }
        }
        window_turn(comm->window);
    }
    return true;
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
