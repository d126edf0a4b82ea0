// SPDX-License-Identifier: Apache-2.0
#include "onnx_ops.h"

#define NORM_EPSILON 1e-5f

// x op y, of a constant or another value.
static struct grt_onnx_value pair(struct grt_onnx *onnx, const char *op, struct grt_onnx_value x,
                                  const char *y) {
    x.name = grt_onnx_add(onnx, grt_onnx_node(.op = op, .inputs = {x.name, y}));
    return x;
}

static struct grt_onnx_value scaled(struct grt_onnx *onnx, struct grt_onnx_value x, double factor) {
    return pair(onnx, "Mul", x, grt_onnx_real(onnx, (float)factor));
}

// 0.5 x (1 + t).
static struct grt_onnx_value half_of(struct grt_onnx *onnx, struct grt_onnx_value x,
                                     struct grt_onnx_value t) {
    struct grt_onnx_value sum = pair(onnx, "Add", t, grt_onnx_real(onnx, 1.0f));
    return pair(onnx, "Mul", scaled(onnx, x, 0.5), sum.name);
}

// tanh(sqrt(2 / pi) (x + 0.044715 x^3))
static struct grt_onnx_value gelu_tanh(struct grt_onnx *onnx, struct grt_onnx_value x) {
    struct grt_onnx_value square = pair(onnx, "Mul", x, x.name);
    struct grt_onnx_value cube = pair(onnx, "Mul", square, x.name);
    struct grt_onnx_value inner = pair(onnx, "Add", x, scaled(onnx, cube, 0.044715).name);
    return grt_onnx_map(onnx, "Tanh", scaled(onnx, inner, 0.7978845608028654));
}

struct grt_onnx_value grt_nn_onnx_act(struct grt_onnx *onnx, enum grt_act act,
                                      struct grt_onnx_value x) {
    switch (act) {
    case GRT_ACT_NONE:
        return x;
    case GRT_ACT_RELU:
        return grt_onnx_map(onnx, "Relu", x);
    case GRT_ACT_TANH:
        return grt_onnx_map(onnx, "Tanh", x);
    case GRT_ACT_SIGMOID:
        return grt_onnx_map(onnx, "Sigmoid", x);
    case GRT_ACT_SILU:
        return pair(onnx, "Mul", x, grt_onnx_map(onnx, "Sigmoid", x).name);
    case GRT_ACT_GELU:
        return half_of(onnx, x, gelu_tanh(onnx, x));
    case GRT_ACT_GELU_EXACT:
        return half_of(onnx, x, grt_onnx_map(onnx, "Erf", scaled(onnx, x, 0.7071067811865476)));
    default:
        return grt_onnx_refuse(onnx, "%s has no form in ONNX", grt_act_text(act));
    }
}

struct grt_onnx_value grt_nn_onnx_layer_norm(struct grt_onnx *onnx, const struct grt_param *weight,
                                             const struct grt_param *bias,
                                             struct grt_onnx_value x) {
    x = grt_onnx_rows(onnx, x);
    x.name = grt_onnx_add(
        onnx,
        grt_onnx_node(.op = "LayerNormalization",
                      .inputs = {x.name, grt_onnx_param(onnx, weight), grt_onnx_param(onnx, bias)},
                      .attributes = {
                          {.name = "axis", .whole = -1},
                          {.name = "epsilon", .type = GRT_ONNX_REAL, .real = NORM_EPSILON}}));
    return x;
}

struct grt_onnx_value grt_nn_onnx_sum(struct grt_onnx *onnx, struct grt_onnx_value a,
                                      struct grt_onnx_value b) {
    if (a.planes != b.planes) {
        a = grt_onnx_rows(onnx, a);
        b = grt_onnx_rows(onnx, b);
    }
    return pair(onnx, "Add", a, b.name);
}

struct grt_onnx_value grt_nn_onnx_columns(struct grt_onnx *onnx, struct grt_onnx_value x,
                                          uint64_t first, uint64_t end) {
    const int64_t from = (int64_t)first, to = (int64_t)end, axis = -1;
    x = grt_onnx_rows(onnx, x);
    x.name = grt_onnx_add(
        onnx, grt_onnx_node(.op = "Slice", .inputs = {x.name, grt_onnx_wholes(onnx, &from, 1),
                                                      grt_onnx_wholes(onnx, &to, 1),
                                                      grt_onnx_wholes(onnx, &axis, 1)}));
    return x;
}

struct grt_onnx_value grt_nn_onnx_pool(struct grt_onnx *onnx, enum grt_pool pool,
                                       struct grt_onnx_value x) {
    struct grt_onnx_node node = {
        .op = pool == GRT_POOL_MAX ? "ReduceMax" : "ReduceMean",
        .inputs = {x.name},
        .attributes = {{.name = "axes", .type = GRT_ONNX_WHOLES, .count = x.rank - 1},
                       {.name = "keepdims"}}};
    for (uint32_t i = 0; i + 1 < x.rank; i++) {
        node.attributes[0].wholes[i] = i + (x.planes ? 2 : 1);
    }
    return (struct grt_onnx_value){.name = grt_onnx_add(onnx, &node), .rank = 1};
}
