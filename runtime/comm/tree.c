// SPDX-License-Identifier: Apache-2.0
#include "tree.h"

#include <stdlib.h>

#include "base/log.h"

#define LEVELS 12  // of 1,024 leaves, and one

struct grt_comm_tree {
    struct grt_comm *comm;
    uint64_t count;
    uint32_t added, height;
    float *levels[LEVELS];
};

struct grt_comm_tree *grt_comm_tree_create(struct grt_comm *comm, uint32_t leaves, uint64_t count) {
    struct grt_comm_tree *tree = calloc(1, sizeof *tree);
    bool good = tree && leaves > 0 && leaves <= 1u << (LEVELS - 2);
    if (good) {
        tree->comm = comm;
        tree->count = count;
    }
    for (uint32_t i = 0; good && (i == 0 || 1u << (i - 1) < leaves); i++) {
        tree->levels[i] = calloc(count > 0 ? count : 1, sizeof(float));
        good = tree->levels[i] != NULL;
    }
    if (!good) {
        grt_fail(GRT_NO_MEMORY, "no host memory for sums of %llu numbers",
                 (unsigned long long)count);
        grt_comm_tree_destroy(&tree);
    }
    return tree;
}

void grt_comm_tree_destroy(struct grt_comm_tree **tree) {
    if (!tree || !*tree) {
        return;
    }
    for (uint32_t i = 0; i < LEVELS; i++) {
        free((*tree)->levels[i]);
    }
    free(*tree);
    *tree = NULL;
}

void grt_comm_tree_begin(struct grt_comm_tree *tree) {
    tree->added = tree->height = 0;
}

float *grt_comm_tree_leaf(struct grt_comm_tree *tree) {
    return tree->levels[tree->height];
}

void grt_comm_tree_add(struct grt_comm_tree *tree) {
    tree->height++;
    tree->added++;
    for (uint32_t pair = tree->added; pair % 2 == 0; pair /= 2) {
        float *restrict left = tree->levels[tree->height - 2];
        const float *restrict right = tree->levels[--tree->height];
        for (uint64_t i = 0; i < tree->count; i++) {
            left[i] += right[i];
        }
    }
}

float *grt_comm_tree_sum(struct grt_comm_tree *tree) {
    grt_comm_tree_begin(tree);
    return grt_comm_sum(tree->comm, tree->levels[0], tree->levels[0], tree->count) ? tree->levels[0]
                                                                                   : NULL;
}
