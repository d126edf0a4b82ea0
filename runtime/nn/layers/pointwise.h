// SPDX-License-Identifier: Apache-2.0
// Inside runtime/nn: which activation a module is.
#ifndef GRT_NN_POINTWISE_H
#define GRT_NN_POINTWISE_H

#include "gpurt/module.h"

// False: it is none.
bool grt_activation_of(const struct grt_module *module, enum grt_act *act);

#endif
