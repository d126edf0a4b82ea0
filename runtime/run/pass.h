// SPDX-License-Identifier: Apache-2.0
// Inside runtime/run: a pass of samples through a trained network.
#ifndef GRT_PASS_H
#define GRT_PASS_H

#include "gpurt/comm.h"
#include "gpurt/feed.h"
#include "gpurt/supervised.h"

struct pass {
    struct grt_task task;
    struct grt_learner *learner;
    struct grt_loader *loader;
    uint64_t rows;
    // Where several ranks share the batches out, in turns: rank r has batch r of each turn, which
    // may have no rows. Set before pass_begin().
    struct grt_comm *comm;
    // Asked in each turn before it is told of, and before the first: whether all go on, behind what
    // this rank says of itself. NULL: it goes on where this rank can.
    bool (*meet)(void *context, bool good);
    void *meets;
};

// Told of each batch, with what the network gave for it.
typedef void pass_fn(void *context, const struct pass *pass, const struct grt_batch *batch,
                     const float *y);

// The task is open, and is closed where this fails. Without a model the network is as it was drawn.
bool pass_begin(struct pass *pass, struct grt_dev *dev, const struct grt_archive *model,
                enum grt_part part);

// With test_flips an image and its mirror image: what the network gives is the mean of both.
bool pass_run(struct pass *pass, struct grt_dev *dev, bool (*stop)(void), pass_fn *told,
              void *context);

void pass_end(struct pass *pass);
// The words of a row's target, floats or a class, and what the row weighs, 1 where rows have no
// weights.
const void *pass_target(const struct pass *p, const struct grt_batch *batch, uint32_t row);
double pass_weight(const struct pass *p, const struct grt_batch *batch, uint32_t row);

#endif
