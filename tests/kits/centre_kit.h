// SPDX-License-Identifier: Apache-2.0
// A module that centres its input: it keeps a running mean in training, as a buffer, and takes that
// off in evaluation. And learners with it.
#ifndef TEST_CENTRE_KIT_H
#define TEST_CENTRE_KIT_H

#include "network_kit.h"

#define CENTRE_WIDTH 128   // numbers of a row, so that rows begin where a binding may
#define CENTRE_SHARE 0.1f  // of a new mean in the running one

// linear 128, centre, linear; or without the first.
struct centre_shape {
    bool first;
    uint32_t outputs;
    bool more;  // layers behind it
};
struct grt_module *centre_make(const void *shape);

// Of two micro-batches of half of NETWORK_SAMPLES.
struct grt_learner_desc centre_learner(const struct centre_shape *shape);

#endif
