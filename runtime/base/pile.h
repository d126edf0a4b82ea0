// SPDX-License-Identifier: Apache-2.0
// Sums in one binary tree over leaves, a power of two, of which somebody has a run:
//
//     leaves   0 1 2 3 4 5 6 7      run 0 .. 4: (0 1 2 3) (4)     run 5 .. 7: (5) (6 7)
//
// Leaves come one behind the other. The pile has the largest whole subtrees of those that came, and
// what two neighbours of it come to is the sum that the tree has there, whoever has its leaves.
#ifndef GRT_PILE_H
#define GRT_PILE_H

#include <stdint.h>

#define GRT_PILE_MOST 64  // twice as many as a tree is high

struct grt_pile {
    uint32_t count;
    uint32_t first[GRT_PILE_MOST], size[GRT_PILE_MOST];  // of each subtree, in leaves
};

// A subtree behind all others: so many of those before it it becomes one with, one after another.
static inline uint32_t grt_pile_add(struct grt_pile *pile, uint32_t first, uint32_t size) {
    uint32_t joined = 0;
    while (pile->count > 0 && pile->size[pile->count - 1] == size &&
           pile->first[pile->count - 1] % (2 * size) == 0) {
        pile->count--;
        first = pile->first[pile->count];
        size *= 2;
        joined++;
    }
    pile->first[pile->count] = first;
    pile->size[pile->count] = size;
    pile->count++;
    return joined;
}

#endif
