// SPDX-License-Identifier: Apache-2.0
// Inside runtime/nn: a sequence of modules.
#ifndef GRT_NN_SEQUENCE_H
#define GRT_NN_SEQUENCE_H

#include "gpurt/module.h"

struct grt_sequence {
    struct grt_module base;
    struct grt_module **parts;
    uint32_t count;
    char prefix[GRT_PARAM_NAME];
    struct grt_tensor **h;  // outputs that are kept; NULL: the last, views, what nobody reads again
    uint32_t *segment;      // of each part; all 0: nothing is computed again
    // Of each output: its gradient's memory over activations that are not read any more. NULL: of
    // every second one in turn.
    struct grt_tensor **over;
    struct grt_plan_place *behind;  // each part: from here on its backward reads nothing
    struct grt_tensor *turns[2];    // gradients, and in inference outputs
};

// NULL: it is none.
const struct grt_sequence *grt_sequence_of(const struct grt_module *module);

#endif
