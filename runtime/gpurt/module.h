// SPDX-License-Identifier: Apache-2.0
// Modules: parts of a model with one interface. A module is declared into a net once, its
// parameters are drawn, and then forward and backward record themselves into any number of graphs,
// each for as many rows as its operands have.
//
//     declare   parameters into net->params, activations into net->plan (group "acts")
//     forward   y = f(x); keeps what backward needs
//     backward  gradients of the parameters, and dx
//
// Recording cannot fail: mistakes stick to the graph, and those of declare to the plan.
#ifndef GRT_NN_MODULE_H
#define GRT_NN_MODULE_H

#include "gemm.h"
#include "params.h"

#ifdef __cplusplus
extern "C" {
#endif

// What modules are declared into.
struct grt_net {
    struct grt_dev *dev;
    struct grt_plan *plan;
    struct grt_params *params;
    enum grt_dtype dtype;  // of activations, their gradients and the weights that products read
    uint64_t rows;         // the most that will be recorded at once
    bool recompute;        // keep fewer activations; compute them again in backward
    bool inference;        // forward only: nothing is kept
    // Bytes that some op needs for a moment; grows in declare. The owner of the net makes the
    // tensor before the plan is allocated, and every recorded op may use it.
    uint64_t scratch_bytes;
    struct grt_tensor *scratch;
};

// A tensor of the net's plan; NULL, and the parameters marked as failed, without host memory.
GRT_API struct grt_tensor *grt_net_tensor(struct grt_net *net, const struct grt_tensor_desc *desc);

struct grt_module;

struct grt_module_fns {
    const char *name;
    // Once, before the plan is allocated. Names of parameters begin with prefix ("" or "head.").
    void (*declare)(struct grt_module *module, struct grt_net *net, const char *prefix);
    // x [rows][...] and y [rows][...] apart; x in net->dtype, y in that or f32.
    void (*forward)(struct grt_module *module, struct grt_graph *graph, const struct grt_tensor *x,
                    const struct grt_tensor *y);
    // After forward with the same x: dy is the gradient of y in net->dtype. dx NULL: not wanted.
    // add: parameter gradients are added to what is there, else they replace it. dy is used up.
    void (*backward)(struct grt_module *module, struct grt_graph *graph, const struct grt_tensor *x,
                     const struct grt_tensor *dy, const struct grt_tensor *dx, bool add);
    void (*destroy)(struct grt_module *module);
};

// Modules begin with this.
struct grt_module {
    const struct grt_module_fns *fns;
    struct grt_net *net;  // since declare
};

struct grt_linear_desc {
    uint32_t inputs, outputs;
    bool no_bias;
};
#define grt_linear_desc(...) GRT_DESC(struct grt_linear_desc, __VA_ARGS__)
// "weight" [outputs][inputs], "bias" [outputs].
GRT_API struct grt_module *grt_linear_create(const struct grt_linear_desc *desc);

struct grt_mlp_desc {
    uint32_t inputs;
    uint32_t depth;    // hidden layers
    uint32_t hidden;   // their width
    uint32_t outputs;  // 0: no output layer, the last hidden layer is the output
    enum grt_act act;
    bool residual;    // h = x + act(..) from the second hidden layer on
    bool layer_norm;  // act(norm(linear(x)))
};
#define grt_mlp_desc(...) GRT_DESC(struct grt_mlp_desc, __VA_ARGS__)
// "layers.0.weight", "layers.0.bias", ..., "norms.0.weight", "norms.0.bias", ...
GRT_API struct grt_module *grt_mlp_create(const struct grt_mlp_desc *desc);

#define GRT_POOLS(X)                                                                               \
    X(MEAN, "mean")                                                                                \
    X(MAX, "max") /* the first of equals takes the gradient */

enum grt_pool {
#define X(name, text) GRT_POOL_##name,
    GRT_POOLS(X)
#undef X
        GRT_POOL_COUNT,
};
GRT_API const char *grt_pool_text(enum grt_pool pool);

struct grt_points_desc {
    uint32_t points;           // of a sample
    struct grt_mlp_desc each;  // over every point; outputs 0
    enum grt_pool pool;        // over the points of a sample
    struct grt_mlp_desc head;  // over what was pooled; inputs 0 means each.hidden
};
#define grt_points_desc(...) GRT_DESC(struct grt_points_desc, __VA_ARGS__)
// x [rows][points][features]. "point.layers.0.weight", ..., "head.layers.0.weight", ...
GRT_API struct grt_module *grt_points_create(const struct grt_points_desc *desc);

// Accepts NULL, clears it.
GRT_API void grt_module_destroy(struct grt_module **module);

#ifdef __cplusplus
}
#endif
#endif
