// SPDX-License-Identifier: Apache-2.0
// Inside runtime/run: a network that is declared for its names and shapes alone, as who writes and
// reads ONNX files needs it; nothing is allocated on a device.
#ifndef GRT_RUN_ONNX_PARTS_H
#define GRT_RUN_ONNX_PARTS_H

#include "gpurt/device.h"
#include "gpurt/onnx.h"
#include "task_parts.h"

struct onnx_declared {
    struct grt_dev *dev;
    struct grt_plan *plan;
    struct grt_params params;
    struct grt_net net;
    struct grt_module *module;
};

// Takes the module, also where it fails; false with the sentence.
bool onnx_declare(struct onnx_declared *declared, struct grt_module *module, const char *prefix,
                  const struct grt_shape *in);
void onnx_undo(struct onnx_declared *declared);

#endif
