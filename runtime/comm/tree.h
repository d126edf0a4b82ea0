// SPDX-License-Identifier: Apache-2.0
// A sum over leaves that ranks share out, in one tree whoever has them:
//
//     leaves of a rank       a   b   c   d      each is filled in, then added: neighbours first
//     levels                (a + b) + (c + d)   of subtrees that are not yet whole
//     ranks                  comm.h goes on with the tree
//
// So 1, 2 and 4 ranks come to the same bits. The number of all leaves is a power of two.
#ifndef GRT_COMM_TREE_H
#define GRT_COMM_TREE_H

#include "gpurt/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct grt_comm_tree;

// For `leaves` of this rank with `count` numbers each. NULL with the sentence.
struct grt_comm_tree *grt_comm_tree_create(struct grt_comm *comm, uint32_t leaves, uint64_t count);
void grt_comm_tree_destroy(struct grt_comm_tree **tree);

// Forgets leaves of a sum that was given up.
void grt_comm_tree_begin(struct grt_comm_tree *tree);
// Numbers to be filled in for the next leaf; then it is added to those before.
float *grt_comm_tree_leaf(struct grt_comm_tree *tree);
void grt_comm_tree_add(struct grt_comm_tree *tree);
// Behind the last leaf: the sum over all ranks, until the next leaf is asked for. NULL where an
// exchange failed.
float *grt_comm_tree_sum(struct grt_comm_tree *tree);

#ifdef __cplusplus
}
#endif
#endif
