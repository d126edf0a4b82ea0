// SPDX-License-Identifier: Apache-2.0
// Inside runtime/nn: what several modules record into ONNX files.
#ifndef GRT_NN_ONNX_OPS_H
#define GRT_NN_ONNX_OPS_H

#include "gpurt/module.h"

struct grt_onnx_value grt_nn_onnx_act(struct grt_onnx *onnx, enum grt_act act,
                                      struct grt_onnx_value x);
// Over the last axis.
struct grt_onnx_value grt_nn_onnx_layer_norm(struct grt_onnx *onnx, const struct grt_param *weight,
                                             const struct grt_param *bias, struct grt_onnx_value x);
struct grt_onnx_value grt_nn_onnx_sum(struct grt_onnx *onnx, struct grt_onnx_value a,
                                      struct grt_onnx_value b);
// Features `first` to below `end` of the last axis.
struct grt_onnx_value grt_nn_onnx_columns(struct grt_onnx *onnx, struct grt_onnx_value x,
                                          uint64_t first, uint64_t end);
// The mean or the largest over all axes but the channels.
struct grt_onnx_value grt_nn_onnx_pool(struct grt_onnx *onnx, enum grt_pool pool,
                                       struct grt_onnx_value x);

#endif
