// SPDX-License-Identifier: Apache-2.0
// Inside runtime/run: a learning rate that falls when validations do not improve, as PyTorch's
// ReduceLROnPlateau with its thresholds as shares. The host decides; the device multiplies its rate
// by the state's lr_factor.
#ifndef GRT_PLATEAU_H
#define GRT_PLATEAU_H

#include "gpurt/archive.h"

struct plateau_desc {
    double factor, threshold;
    uint64_t patience, cooldown;  // validations
    double lr, min_lr;            // that it begins with, and never falls below
    bool loss;                    // scores are losses with their sign turned
};

// All of it is in a checkpoint. Begins with {0}.
struct plateau {
    double factor;  // of the learning rate; 0 means 1
    double best;
    bool any;  // there is a best
    uint64_t bad, cooling;
};

static inline double plateau_factor(const struct plateau *plateau) {
    return plateau->factor > 0 ? plateau->factor : 1;
}
// Counts a validation; true: the factor has changed.
bool plateau_add(struct plateau *plateau, const struct plateau_desc *desc, double score);
bool plateau_save(const struct plateau *plateau, struct grt_archive *archive);
void plateau_load(struct plateau *plateau, const struct grt_archive *archive);

#endif
