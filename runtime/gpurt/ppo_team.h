// SPDX-License-Identifier: Apache-2.0
// Learners of PPO that make one, over the ranks of a training. Each has its own share of the
// copies, and all hold the same weights:
//
//     copies of all          | part 0 | part 1 | part 2 | part 3 |
//     two ranks              | rank 0          | rank 1          |
//     a minibatch            a quarter of each part's; gradients (a + b) + (c + d)
//
// Parts collect by themselves. Advantages are normalised, and observations, by the statistics of
// all; a minibatch has the same share of every part, and its gradient is the mean over the rows of
// all, summed in one tree by the number of the part. So the bits follow from the number of parts,
// not of ranks. The states of copies stay with their rank until something is saved.
#ifndef GRT_PPO_TEAM_H
#define GRT_PPO_TEAM_H

#include "comm.h"
#include "ppo.h"

#ifdef __cplusplus
extern "C" {
#endif

struct grt_ppo_team_desc {
    struct grt_comm *comm;      // may be NULL: one rank
    struct grt_ppo **learners;  // of this rank, which the caller keeps as long
    uint32_t count;             // of all ranks alike; together a power of two
};
#define grt_ppo_team_desc(...) GRT_DESC(struct grt_ppo_team_desc, __VA_ARGS__)

struct grt_ppo_team;

// The learners were made with part and parts, in the order of ranks. NULL with a sentence.
GRT_API struct grt_ppo_team *grt_ppo_team_create(const struct grt_ppo_team_desc *desc);
GRT_API void grt_ppo_team_destroy(struct grt_ppo_team **team);

// As those of one learner. An iteration that a rank wants to give up, or in which one is lost, is
// taken back by all.
GRT_API bool grt_ppo_team_iterate(struct grt_ppo_team *team, struct grt_ppo_report *report);
GRT_API bool grt_ppo_team_environment(struct grt_ppo_team *team, double *seconds);
// By all ranks: they tell each other the states of their copies. An archive does not tell how many
// parts it was made by: tensors are those of all copies.
GRT_API bool grt_ppo_team_save(struct grt_ppo_team *team, struct grt_archive *archive);
GRT_API bool grt_ppo_team_load(struct grt_ppo_team *team, const struct grt_archive *archive,
                               enum grt_ppo_part part);

#ifdef __cplusplus
}
#endif
#endif
