// SPDX-License-Identifier: Apache-2.0
// Inside runtime/nn: one fused MLP with all that was checked and derived, and the table of
// variants.
#ifndef GRT_NN_MLP_CASE_H
#define GRT_NN_MLP_CASE_H

#include "device/kernels.h"
#include "mlp_fused.h"
#include "shaders/host.h"
#include "shaders/mlp/lib/mlp_params.k"

#define MLP_MOST_ROWS (1u << 22)

struct mlp_case {
    struct grt_dev *dev;
    const struct grt_mlp_fused_desc *desc;
    uint32_t rows, inputs, depth, width, outputs;
    uint32_t tiled;  // rows that tiles are chosen for
    bool alone;      // forward only,
    bool judged;     // and the losses in place of y
    bool ordered;    // rows by their numbers
};

// How a variant cuts the work.
struct mlp_plan {
    uint32_t padded;       // rows of the scratch, at least as many as there are
    uint32_t blocks;       // numbers that the pass leaves of the loss
    uint32_t parts;        // that the rows are cut into for the gradients
    uint32_t most_parts;   // that any number of rows is cut into, up to these
    uint32_t chunk;        // rows of one
    uint64_t units_bytes;  // what the pass leaves for the gradients
    uint64_t most_units;   // that any number of rows leaves, up to these
};

// What the launches are recorded with.
struct mlp_call {
    const struct mlp_case *c;
    struct mlp_plan plan;
    struct mlp_params params;
    struct grt_range x, target, y, state, order;
    struct grt_range weights, masters, grads;
    struct grt_range units, sums, losses, norms;  // scratch
};

// Rows stand in order of preference; those that are not the better choice for a case come after
// those that are.
struct mlp_variant {
    const char *name;
    uint32_t narrowest, widest;  // units of a layer; nothing else is asked about others
    bool (*usable)(const struct mlp_case *c);
    // Whether it is faster than layer by layer, and than the rows behind it, where it is usable.
    bool (*better)(const struct mlp_case *c);
    void (*plan)(const struct mlp_case *c, struct mlp_plan *plan);
    // One launch each; a failure is rejected to the graph. Without record_grads the pass leaves the
    // sums of gradients itself.
    void (*record_pass)(struct grt_graph *graph, const struct mlp_call *call);
    void (*record_grads)(struct grt_graph *graph, const struct mlp_call *call);
    // Which of its kernels serve on this device, as words behind a comma; NULL: they are the same
    // on all.
    const char *(*kernels)(const struct mlp_case *c);
};

extern const struct mlp_variant mlp_variant_chain;
extern const struct mlp_variant mlp_variant_coop;
extern const struct mlp_variant mlp_variant_mma;
extern const struct mlp_variant mlp_variant_plain;
extern const struct mlp_variant mlp_variant_step;
extern const struct mlp_variant mlp_variant_wgmma;

// KEEP of a pass: see shaders/mlp/lib/mlp.k.
static inline uint32_t mlp_keep(const struct mlp_case *c) {
    return c->alone ? (c->judged ? 3 : 2) : c->desc->y != NULL;
}

// Whether a variant computes right here (mlp_check.c); warns once when it does not.
bool mlp_trusted(const struct mlp_case *c, const struct mlp_variant *variant);

// Scratch that a variant wants, for as many rows and for any fewer.
uint64_t mlp_scratch_bytes(const struct mlp_case *c, const struct mlp_variant *variant);

uint32_t mlp_ceil_div(uint32_t a, uint32_t b);
uint32_t mlp_units(const struct grt_dev *dev);
// Floating-point operations of the products forward, as many as those of the weights' gradients,
// and of the products that lead back to the first layer.
double mlp_operations(const struct mlp_case *c);
double mlp_back_operations(const struct mlp_case *c);
// Cuts the padded rows into about `wanted` parts, each several pieces of `piece` rows.
void mlp_cut(struct mlp_plan *plan, uint32_t wanted, uint32_t piece);
// Where the layers lie; false when they are not those of the model, or hidden ones not equally far
// apart.
bool mlp_find_layers(const struct mlp_case *c, struct mlp_params *out);
// Numbers that the last launch leaves of the gradients' sum of squares where it adds so many parts.
uint32_t mlp_norm_count(const struct mlp_case *c, uint32_t parts);
// The last launch: `layers` rows of its grid, of which one behind the last layer adds up losses.
void mlp_record_reduce(struct grt_graph *graph, const struct mlp_call *call,
                       struct grt_range loss_parts, uint32_t layers);
// Records a kernel with the constants that all have (shaders/mlp/lib/mlp.k) and `own` ones.
void mlp_launch(struct grt_graph *graph, const struct mlp_call *call, const char *kernel,
                const struct grt_spec *own, uint32_t own_count, const struct grt_range *ranges,
                uint32_t range_count, const uint32_t groups[3]);

#endif
