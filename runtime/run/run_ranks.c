// SPDX-License-Identifier: Apache-2.0
#include "run_ranks.h"

#include <math.h>
#include <stdio.h>

#include "base/log.h"

// Keys that may differ from rank to rank: where things are, and how they are read.
static bool own_key(enum grt_config_key key) {
    static const enum grt_config_key own[] = {
        GRT_CONFIG_DATA,        GRT_CONFIG_CHECKPOINT_DIR, GRT_CONFIG_LOG,   GRT_CONFIG_DEVICE,
        GRT_CONFIG_BACKEND,     GRT_CONFIG_TENSORBOARD,    GRT_CONFIG_CACHE, GRT_CONFIG_FROM,
        GRT_CONFIG_NUM_WORKERS, GRT_CONFIG_CHECKPOINT_FILE};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (own[i] == key) {
            return true;
        }
    }
    return false;
}

bool grt_run_agree_keys(struct grt_comm *comm, const struct grt_config *config) {
    char text[2 * GRT_CONFIG_TREE_SIZE];
    for (uint32_t k = 0; k < GRT_CONFIG_KEY_COUNT; k++) {
        enum grt_config_key key = (enum grt_config_key)k;
        // PPO sizes its batches by num_workers where nothing else says it.
        if (own_key(key) && (key != GRT_CONFIG_NUM_WORKERS || config->scope != GRT_CONFIG_OF_PPO)) {
            continue;
        }
        grt_config_value_text(config, key, text, sizeof text);
        if (!grt_comm_agree(comm, grt_config_key_info(key)->name, text)) {
            return false;
        }
    }
    return true;
}

bool grt_run_parts_good(uint64_t parts, uint32_t ranks) {
    return ((parts & (parts - 1)) == 0 && parts % ranks == 0) ||
           grt_fail(GRT_CONFIG,
                    "micro_batches is %llu: it has to be a power of two that the number of ranks, "
                    "%u, divides",
                    (unsigned long long)parts, ranks);
}

void grt_run_deal(const double *seconds, uint32_t ranks, uint32_t parts, uint32_t *counts) {
    for (uint32_t r = 0; r < ranks; r++) {
        counts[r] = 1;
    }
    // Each goes to the rank that would be done with it first.
    for (uint32_t left = parts > ranks ? parts - ranks : 0; left > 0; left--) {
        uint32_t best = 0;
        double soonest = INFINITY;
        for (uint32_t r = 0; r < ranks; r++) {
            double done = (counts[r] + 1.0) * (seconds ? seconds[r] : 1);
            if (done < soonest) {
                soonest = done;
                best = r;
            }
        }
        counts[best]++;
    }
}
