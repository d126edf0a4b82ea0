// SPDX-License-Identifier: Apache-2.0
// The parameters of a model: a list of names and shapes, and
// one range of elements that is laid out the same in every group of the plan.
//
//     element     0            e1       e2            e3
//     "params"    | w0 ......  | b0 ..  | w1 .......  | b1 ..  |    f32 masters
//     "params16"  | w0 ......  | b0 ..  | w1 .......  | b1 ..  |    16-bit copy of them
//     "grads"     | w0 ......  | b0 ..  | w1 .......  | b1 ..  |    f32
//     "optim"     | ............ once or twice the same, one behind the other .......... |    f32
//
// Each parameter begins at a multiple of `unit` elements, so that it can be bound in either width.
// Equal layers follow each other at equal distances. The elements between parameters are zero in
// every group and must stay zero: then a kernel may run over the whole range.
//
// Buffers are beside them, in a range "buffers" of their own: numbers that a module keeps in
// training and reads in evaluation, such as running statistics. They are saved and loaded with the
// parameters, and no optimizer sees them.
#ifndef GRT_NN_PARAMS_H
#define GRT_NN_PARAMS_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_INITS(X)                                                                               \
    X(UNIFORM, "uniform") /* in [-bound, bound) */                                                 \
    X(ONES, "ones")                                                                                \
    X(ZEROS, "zeros")                                                                              \
    X(VALUE, "value")   /* bound everywhere */                                                     \
    X(NORMAL, "normal") /* of mean 0 and deviation bound */

enum grt_init {
#define X(name, text) GRT_INIT_##name,
    GRT_INITS(X)
#undef X
};

#define GRT_PARAM_NAME 96
struct grt_param {
    char name[GRT_PARAM_NAME];  // as in PyTorch's state_dict: "layers.0.weight"
    uint64_t first;             // element of the range
    uint64_t count;
    uint32_t rank;
    uint64_t shape[GRT_MAX_RANK];
    enum grt_init init;
    float bound;
    // Views of the groups, with memory after grt_params_place(). A buffer has its master alone,
    // f32.
    struct grt_tensor master, copy, grad;
};

struct grt_params {
    struct grt_dev *dev;
    uint64_t unit;            // elements; every `first` is a multiple of it
    uint64_t elements;        // of the whole range, padding included; a multiple of unit
    uint32_t count;           // parameters
    uint64_t numbers;         // elements of all parameters, without padding
    enum grt_dtype type;      // of the 16-bit copy, or f32: there is none
    struct grt_param **list;  // each stays where it is
    struct grt_param **buffers;
    uint32_t buffer_count;
    uint64_t buffer_elements;                 // of their range
    bool failed;                              // no host memory, or a name that is too long
    struct grt_tensor *master, *copy, *grad;  // [elements]: whole groups; copy NULL with f32
    struct grt_tensor *buffer;                // [buffer_elements], or NULL
};

GRT_API void grt_params_init(struct grt_params *params, struct grt_dev *dev, enum grt_dtype type);
GRT_API void grt_params_finish(struct grt_params *params);
// A parameter behind the others, named prefix + name; shape ends at the first 0. NULL, and `failed`
// set, when there is no host memory.
GRT_API struct grt_param *grt_params_add(struct grt_params *params, const char *prefix,
                                         const char *name, const uint64_t *shape,
                                         enum grt_init init, float bound);
// A buffer, which begins with `value` everywhere. The module writes it in passes of training that
// are no repetition (struct grt_pass) and reads buffer->master.
GRT_API struct grt_param *grt_params_add_buffer(struct grt_params *params, const char *prefix,
                                                const char *name, const uint64_t *shape,
                                                float value);
// Declares the groups "params", "params16", "buffers" and, where wanted, "grads" in the plan.
GRT_API void grt_params_declare(struct grt_params *params, struct grt_plan *plan, bool grads);
// After grt_plan_alloc(): gives the views their buffers.
GRT_API void grt_params_place(struct grt_params *params);
// A view of parameter i in any f32 range laid out like the masters, whose first element is `first`
// of `whole`: a part of an optimizer's tensor.
GRT_API struct grt_tensor grt_params_view(const struct grt_param *param,
                                          const struct grt_tensor *whole, uint64_t first);
// Draws every parameter from the counter-based generator by seed, zeroes padding and gradients,
// writes the 16-bit copy and the buffers' first values, and waits. The same bits on every device.
GRT_API bool grt_params_draw(struct grt_params *params, uint64_t seed);
// Writes the 16-bit copy from the masters, after these were loaded; waits.
GRT_API bool grt_params_sync(struct grt_params *params);

#ifdef __cplusplus
}
#endif
#endif
