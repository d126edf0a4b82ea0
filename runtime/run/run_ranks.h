// SPDX-License-Identifier: Apache-2.0
// Inside runtime/run: what every kind of training asks of its ranks.
#ifndef GRT_RUN_RANKS_H
#define GRT_RUN_RANKS_H

#include "gpurt/comm.h"
#include "gpurt/config.h"
#include "gpurt/run.h"

// Whether all ranks have the same keys of the config's kind, but for those that say where things
// are.
bool grt_run_agree_keys(struct grt_comm *comm, const struct grt_config *config);
// The checkpoint that a run is to go on with, which the run owns; NULL where it begins anew. False
// with the sentence where none of those that are there can be read.
bool grt_run_newest(struct grt_run *run, const struct grt_archive **newest);
// Whether so many parts, `micro_batches`, can be shared out; false with the sentence.
bool grt_run_parts_good(uint64_t parts, uint32_t ranks);
// How many of `parts` each rank gets, one at least, so that the last is done as early as can be:
// rank r takes seconds[r] for one. NULL: all take as long.
void grt_run_deal(const double *seconds, uint32_t ranks, uint32_t parts, uint32_t *counts);

#endif
