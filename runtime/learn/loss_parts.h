// SPDX-License-Identifier: Apache-2.0
// Inside runtime/learn: losses with files of their own, for grt_op_loss().
#ifndef GRT_LOSS_PARTS_H
#define GRT_LOSS_PARTS_H

#include "gpurt/loss.h"

// Refuses the loss, unless `why` is NULL.
bool loss_accept(struct grt_graph *graph, const struct grt_loss_desc *desc, const char *why);

// Outputs, gradient, parts and state have been looked at.
void loss_nt_xent(struct grt_graph *graph, const struct grt_loss_desc *desc);

#endif
