// SPDX-License-Identifier: Apache-2.0
// What fits into a device's memory: the plan of a learner is asked, nothing is allocated.
#include "gpurt/task.h"

#include "learn/share.h"

// What ops bind where a kernel has operands that they do not: one buffer of a device, made by the
// first op that wants it.
#define DUMMY_BYTES 1024

static bool bytes_of(struct grt_dev *dev, const struct grt_learner_desc *desc,
                     const struct grt_fit_besides *besides, uint64_t *bytes) {
    struct grt_learner *learner = grt_learner_create(dev, desc);
    if (!learner) {
        return false;
    }
    uint64_t pieces = desc->accumulate > 0 ? desc->accumulate : 1;
    *bytes = DUMMY_BYTES + grt_learner_bytes(learner, NULL) +
             (desc->batch + pieces - 1) / pieces * besides->row +
             (besides->shared > 0 ? grt_share_bytes(learner, besides->first, besides->shared) : 0);
    grt_learner_destroy(&learner);
    return true;
}

bool grt_task_fit(struct grt_dev *dev, const struct grt_learner_desc *desc,
                  const struct grt_fit_besides *besides, struct grt_fit *fit) {
    struct grt_learner_desc d = *desc;
    uint64_t left = grt_dev_mem_left(dev);
    uint64_t bytes = 0;
    *fit = (struct grt_fit){.left = left > besides->bytes ? left - besides->bytes : 0};
    if (!bytes_of(dev, &d, besides, &fit->needed)) {
        return false;
    }
    fit->fits = fit->needed <= fit->left;
    if (fit->fits) {
        fit->accumulate = desc->accumulate ? desc->accumulate : 1;
        fit->batch = desc->batch;
        return true;
    }
    // More micro-batches of the same batch, doubling, then one sample each.
    uint64_t count = desc->accumulate ? desc->accumulate : 1;
    while (!fit->accumulate && count < desc->batch) {
        count = 2 * count < desc->batch ? 2 * count : desc->batch;
        d.accumulate = (uint32_t)count;
        if (!bytes_of(dev, &d, besides, &bytes)) {
            return false;
        }
        fit->accumulate = bytes <= fit->left ? d.accumulate : 0;
    }
    // The largest batch in as many pieces, by halves: the plan grows with the batch.
    d.accumulate = desc->accumulate ? desc->accumulate : 1;
    uint32_t low = 0;  // samples of a piece
    uint32_t high = desc->batch / d.accumulate + 1;
    while (high - low > 1) {
        uint32_t piece = low + (high - low) / 2;
        d.batch = piece * d.accumulate;
        if (!bytes_of(dev, &d, besides, &bytes)) {
            return false;
        }
        *(bytes <= fit->left ? &low : &high) = piece;
    }
    fit->batch = low * d.accumulate;
    return true;
}
