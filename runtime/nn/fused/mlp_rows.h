// SPDX-License-Identifier: Apache-2.0
// An MLP forward, and back from the gradients of its outputs, for rows that lie apart: what a
// learner gathers for a minibatch goes from where it lies straight into the products. A launch for
// the way there, and two for the way back: gradients in parts, and their sum. Between the two
// stands whatever makes gradients of outputs.
//
// Layer by layer each product reads and writes all rows. Here a row's inputs are read twice, and
// its hidden units written once and read once.
//
// For 16-bit products on NVIDIA's matrix units, through OpenCL and through Vulkan, and for hidden
// layers of 64. The first time that it would serve a network on a device it is checked, and left
// out where it computes wrong (mlp_rows_check.c).
#ifndef GRT_NN_MLP_ROWS_H
#define GRT_NN_MLP_ROWS_H

#include "gpurt/kernel.h"
#include "gpurt/module.h"

// Inputs of rows, one behind the other: numbers of 16 bits, zeros behind a row's last up to the
// pitch. Lengths are in numbers, and multiples of 8; ranges begin at multiples of 16 bytes.
struct grt_row_part {
    struct grt_range range;
    uint32_t numbers;
    uint64_t pitch;  // from one row to the next
    uint64_t step;   // from the rows of one step to those of the next
};

// Position i is row i % period of step i / period.
struct grt_row_places {
    struct grt_row_part near;  // [step][row]
    struct grt_row_part far;   // [step][row / share]; numbers 0: there is none
    uint64_t period;
    uint32_t share;
    struct grt_range order;  // u32: positions of the rows; no buffer: they follow each other
    uint64_t first;          // position of the first row, or its place in the order
};

struct grt_mlp_rows_desc {
    struct grt_mlp_desc model;  // inputs: those of both parts
    enum grt_dtype dtype;
    const struct grt_params *params;  // list[first + 2 l] is the weight of layer l, then its bias
    uint32_t first;
    struct grt_row_places places;
    uint64_t rows;

    struct grt_range hidden;     // grt_mlp_rows_hidden() bytes; forward: no buffer: not wanted
    const struct grt_tensor *y;  // forward: out, f32 [rows][outputs]
    // backward: gradients, still times the loss scale, are written to those of the parameters
    const struct grt_tensor *dy;  // in dtype, [rows][outputs]
    struct grt_range state;       // a struct grt_learn_state
    struct grt_range scratch;     // grt_mlp_rows_scratch() bytes
};

// What a module is an MLP of; false: it is none.
bool grt_mlp_of(const struct grt_module *module, const struct grt_shape *input,
                struct grt_mlp_desc *mlp);
// Whether the ops can do this model, with such parts, on this device; ranges are not looked at.
bool grt_mlp_rows_usable(struct grt_dev *dev, const struct grt_mlp_rows_desc *desc);
uint64_t grt_mlp_rows_hidden(const struct grt_mlp_rows_desc *desc);
uint64_t grt_mlp_rows_scratch(struct grt_dev *dev, const struct grt_mlp_rows_desc *desc);
// A kernel of the caller's that goes there and back in one launch, the gradients of outputs being
// its own affair: for two hidden layers. It has the constants and bindings of
// mlp_rows_forward, sums [groups][elements of the parameters] in place of y, and then its own.
struct grt_mlp_rows_kernel {
    const char *name;
    struct grt_spec spec;
    const struct grt_range *ranges;
    uint32_t range_count;
    const void *params;  // behind those of rows
    uint32_t params_size;
};
struct grt_mlp_rows_samples {
    uint32_t count, positions;
    double scale;         // of the slopes of a row
    const float *y;       // [count][outputs]
    const float *params;  // as above
};
// And how it is checked, where it would serve for the first time: by a loss of the caller's, for a
// few samples that are taken over and over.
struct grt_mlp_rows_learner {
    const char *kernel, *op, *variant;  // see ops/verdict.h
    uint32_t head;                      // the caller's: which loss
    // The slopes of a sample's loss by its outputs y. `params` are numbers that the model has.
    void (*slopes)(const struct grt_mlp_rows_learner *of, uint32_t sample, uint32_t outputs,
                   const float *y, const float *params, double *slopes);
    // The gradients of the mean loss over the rows that desc has. Position i has sample i % count,
    // and row j sample j % count.
    bool (*learn)(const struct grt_mlp_rows_learner *of, struct grt_dev *dev,
                  const struct grt_mlp_rows_desc *desc, const struct grt_mlp_rows_samples *samples);
};
// Whether it can be had, for such a model; and its workgroups, for so many rows.
bool grt_mlp_rows_learns(struct grt_dev *dev, const struct grt_mlp_rows_desc *desc,
                         const struct grt_mlp_rows_learner *learner);
uint32_t grt_mlp_rows_groups(struct grt_dev *dev, const struct grt_mlp_rows_desc *desc);
void grt_op_mlp_rows_learn(struct grt_graph *graph, const struct grt_mlp_rows_desc *desc,
                           const struct grt_mlp_rows_kernel *kernel);
void grt_op_mlp_rows_forward(struct grt_graph *graph, const struct grt_mlp_rows_desc *desc);
void grt_op_mlp_rows_backward(struct grt_graph *graph, const struct grt_mlp_rows_desc *desc);

#endif
