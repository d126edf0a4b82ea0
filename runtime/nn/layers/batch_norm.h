// SPDX-License-Identifier: Apache-2.0
// Inside runtime/nn: what a batch norm computes besides, in the same pass over memory.
#ifndef GRT_NN_BATCH_NORM_H
#define GRT_NN_BATCH_NORM_H

#include "gpurt/module.h"

// From now on the norm gives act(norm(x)), and its backward takes the gradient of that. False: it
// is no batch norm, or has an activation.
bool grt_batch_norm_takes(struct grt_module *module, enum grt_act act);
// The batch norm without an activation that a module is or, being a sequence, ends with; or NULL.
struct grt_module *grt_batch_norm_last(struct grt_module *module);
// The next forward of a batch norm gives act(norm(x) + shortcut). Its backward stays that of the
// norm.
void grt_batch_norm_adds(struct grt_module *norm, const struct grt_tensor *shortcut,
                         enum grt_act act);

#endif
