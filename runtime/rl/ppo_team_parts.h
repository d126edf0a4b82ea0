// SPDX-License-Identifier: Apache-2.0
// Inside runtime/rl: a team. ppo_team.c learns with it, ppo_team_worlds.c has the copies of all.
#ifndef GRT_RL_PPO_TEAM_PARTS_H
#define GRT_RL_PPO_TEAM_PARTS_H

#include "comm/tree.h"
#include "gpurt/ppo_team.h"
#include "ppo_parts.h"

struct grt_ppo_team {
    struct grt_comm *comm;
    struct grt_ppo **learners;
    uint32_t count, all, first;  // of this rank, of all ranks, the first one's number
    struct grt_comm_tree *tree;  // of gradients and losses
    // What the rows of each part came to, and its losses: [all].
    uint32_t words;  // of a block: rows that count | totals | sums | moments
    float *blocks;
    double *losses;        // [all][PPO_STATS]
    char *worlds;          // room for the states of the copies, [all]
    uint64_t world_bytes;  // of a part
    bool compared;         // the weights, before the first iteration
};

// Room for the states.
bool ppo_team_worlds_make(struct grt_ppo_team *team);

#endif
