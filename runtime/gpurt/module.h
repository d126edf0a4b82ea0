// SPDX-License-Identifier: Apache-2.0
// Modules: parts of a network with one interface. A module is declared into a net once, its
// parameters are drawn, and then forward and backward record themselves into any number of graphs,
// each for as many samples as its operands have.
//
//     declare   shape of a sample in, shape of a sample out; parameters and buffers (params.h) into
//               net->params, activations into net->plan (group "acts")
//     forward   y = f(x); keeps what backward needs
//     backward  gradients of the parameters, and dx
//
// Compositions (sequence, residual, branches, concat, points) are modules too; they own their
// parts. Recording cannot fail: mistakes stick to the graph, and those of declare to the plan.
// Shapes that do not fit are refused by declare, with a sentence that names both.
//
// Write your own: fill a struct grt_module_fns, begin your struct with struct grt_module, and give
// it to grt_learner_create(), alone or as a part of a composition. Call other modules through
// grt_module_declare(), grt_module_forward() and grt_module_backward().
#ifndef GRT_NN_MODULE_H
#define GRT_NN_MODULE_H

#include "gemm.h"
#include "onnx.h"
#include "params.h"

#ifdef __cplusplus
extern "C" {
#endif

// Of a sample: a batch of them is a tensor of one more axis, in front.
#define GRT_SHAPE_RANK (GRT_MAX_RANK - 1)
struct grt_shape {
    uint32_t rank;  // 0: no shape
    uint64_t dim[GRT_SHAPE_RANK];
};
// Numbers of a sample; 0 without a shape.
GRT_API uint64_t grt_shape_count(const struct grt_shape *shape);
GRT_API bool grt_shape_equal(const struct grt_shape *a, const struct grt_shape *b);
// "[16][64]" into `text`, which it returns.
#define GRT_SHAPE_TEXT 64
GRT_API const char *grt_shape_text(const struct grt_shape *shape, char text[GRT_SHAPE_TEXT]);

// A module that was declared, for those who print or count: compositions stand before their parts.
struct grt_net_layer {
    char name[GRT_PARAM_NAME];  // "", "0", "3.body.0"
    const char *kind;           // "linear"
    uint32_t depth;             // compositions around it
    bool parts;                 // is a composition
    struct grt_shape in, out;
    uint64_t parameters;   // elements, those of its parts included
    uint64_t activations;  // bytes for net->rows samples, the same
    double operations;     // of one sample, forward, the same
};

// What modules are declared into.
// Processes that compute one step together, each with a network of its own; all of them record and
// run the same exchanges in the same order.
struct grt_together {
    uint32_t rank, ranks;  // 0 ranks: it is alone
    // `all` has `each` bytes of every rank, one behind the other; this rank's are filled in, and
    // the others' come. False, with the sentence: one is gone.
    bool (*gather)(void *context, void *all, uint64_t each);
    void *context;
};

struct grt_net {
    struct grt_dev *dev;
    struct grt_plan *plan;
    struct grt_params *params;
    enum grt_dtype dtype;  // of activations, their gradients and the weights that products read
    uint64_t rows;         // samples, the most that will be recorded at once
    bool recompute;        // keep fewer activations; compute them again in backward
    bool inference;        // forward only: nothing is kept
    uint64_t seed;         // of modules that draw numbers
    uint32_t streams;      // of such modules so far, each has its own
    // Where a module mixes the samples of a micro-batch in training (transform): f32, the first
    // number is the share of each sample itself, the rest is of the one before it; else NULL.
    const struct grt_tensor *mix;
    // Bytes that some op needs for a moment; grows in declare. The owner of the net makes the
    // tensor before the plan is allocated, and every recorded op may use it.
    uint64_t scratch_bytes;
    struct grt_tensor *scratch;
    struct grt_net_layer *layers;  // in the order of declaration
    uint32_t layer_count, depth;
    struct grt_together together;
    bool sync_norms;  // batch norms are over the rows of all ranks, each of which has as many
    bool syncs;       // there is such a norm; set in declare
    // Bytes of one rank that are exchanged at once, at most; grows in declare. And the host's
    // memory for them, of all ranks.
    uint64_t exchanged;
    struct grt_buf *down, *up;
    void *all;
};

// A tensor of the net's plan; NULL, and the parameters marked as failed, without host memory.
GRT_API struct grt_tensor *grt_net_tensor(struct grt_net *net, const struct grt_tensor_desc *desc);
// An activation of net->rows samples of this shape, in the net's type.
GRT_API struct grt_tensor *grt_net_activation(struct grt_net *net, const char *prefix,
                                              const char *name, const struct grt_shape *shape);
// The same for what is written and read within one forward or backward of a module: the parts of a
// sequence have such tensors in the same memory.
GRT_API struct grt_tensor *grt_net_turn(struct grt_net *net, const char *prefix, const char *name,
                                        const struct grt_shape *shape);
// Numbers from one row of inputs to the next where a module has `wide_rows`: so many that rows are
// whole multiples of the profile's nn.row_bytes, which matrix units read faster, and of 4. Behind a
// row's own numbers are zeros.
GRT_API uint64_t grt_net_pitch(const struct grt_net *net, uint64_t inputs);
// Scratch of at least so many bytes.
GRT_API void grt_net_scratch(struct grt_net *net, uint64_t bytes);
// In declare: so many bytes of each rank are going to be exchanged at once.
GRT_API void grt_net_exchanges(struct grt_net *net, uint64_t bytes);
// Behind the last declare: makes room for exchanges on the host.
GRT_API bool grt_net_meet(struct grt_net *net);
// Records that `all` gets what every rank has in `own`, in the order of ranks. `own` may be a part
// of it. Alone: all is own.
GRT_API void grt_net_gather(struct grt_net *net, struct grt_graph *graph, struct grt_range own,
                            struct grt_range all);
// Frees the list of layers and the room for exchanges.
GRT_API void grt_net_finish(struct grt_net *net);

// One way through a net.
struct grt_pass {
    struct grt_graph *graph;
    bool training;   // else evaluation: nothing is dropped, no statistics are taken
    bool again;      // another forward of the same rows is the one that keeps statistics
    bool add_grads;  // parameter gradients are added to what is there, else they replace it
    // Training with random numbers: a struct grt_learn_state, whose count of steps makes each
    // step's own, and the number of the micro-batch within the step.
    struct grt_range state;
    uint32_t micro;
    // Told of each activation when it is recorded, with its name; NULL: nobody.
    void (*saw)(void *context, struct grt_graph *graph, const struct grt_tensor *tensor,
                const char *name);
    void *context;
};

struct grt_module;

struct grt_module_fns {
    const char *kind;
    // Once, before the plan is allocated. Names of parameters begin with prefix ("" or "head.").
    // Returns the shape of a sample that forward gives; rank 0: refused, see grt_module_refuse().
    struct grt_shape (*declare)(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in);
    // x [rows][...] in net->dtype and y [rows][...] apart from it, in net->dtype, or f32 where
    // `f32_output`.
    void (*forward)(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y);
    // After forward with the same x: dy is the gradient of y in net->dtype, and stays as it is,
    // unless `owns_dy`. dx NULL: not wanted.
    // add_dx: dx += ..., asked for where `adds_dx` only.
    void (*backward)(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx);
    void (*destroy)(struct grt_module *module);
    // Records what forward computes in evaluation (onnx.h), after declare. NULL: such a network has
    // no ONNX file.
    struct grt_onnx_value (*onnx)(const struct grt_module *module, struct grt_onnx *onnx,
                                  struct grt_onnx_value x);
};

// Modules begin with this; whoever makes one sets fns and the flags, the rest is set by
// grt_module_declare().
struct grt_module {
    const struct grt_module_fns *fns;
    bool f32_output;  // forward takes a y in f32 too
    bool adds_dx;     // backward takes add_dx
    bool wide_rows;   // x may have rows of grt_net_pitch() numbers; of samples of rank 1
    bool is_view;     // y has the numbers of x in their order: compositions give it the same memory
    bool has_parts;   // is a composition
    bool dx_on_dy;    // backward takes a dx that has the memory of dy
    bool forgets_x;   // backward does not read x, which may be gone by then; of a view too
    bool forgets_y;   // backward does not read what forward gave: the same
    bool owns_dy;     // set by a composition: backward may write over dy, which nobody reads again
    char where[112];  // "net.yaml:7:5: " for messages, or ""
    // In the names of parameters, in place of what a composition calls its part: "conv1"; "": that
    // word, its number mostly. `nameless`: none, "0.weight" is "weight".
    char name[24];
    bool nameless;
    struct grt_net *net;
    struct grt_shape in, out;
    double operations;  // of a sample, forward; declare sets it, compositions get their parts'
    struct grt_tensor *lone;  // dx by itself, where it is to be added and backward cannot
};

// Declares a module, with its row in net->layers. Rank 0, with the sentence said: refused.
GRT_API struct grt_shape grt_module_declare(struct grt_module *module, struct grt_net *net,
                                            const char *prefix, const struct grt_shape *in);
// Says why a shape does not fit, with the module's place; returns no shape.
GRT_API struct grt_shape grt_module_refuse(const struct grt_module *module, const char *format, ...)
    GRT_PRINTF(2, 3);
GRT_API void grt_module_forward(struct grt_module *module, const struct grt_pass *pass,
                                const struct grt_tensor *x, const struct grt_tensor *y);
GRT_API void grt_module_backward(struct grt_module *module, const struct grt_pass *pass,
                                 const struct grt_tensor *x, const struct grt_tensor *dy,
                                 const struct grt_tensor *dx, bool add_dx);
GRT_API struct grt_onnx_value grt_module_onnx(const struct grt_module *module,
                                              struct grt_onnx *onnx, struct grt_onnx_value x);
// For compositions: the prefix of a part, which they call `own`.
GRT_API void grt_module_prefix(const struct grt_module *part, const char *prefix, const char *own,
                               char name[GRT_PARAM_NAME]);
// For compositions, in declare: the module will be asked to add to dx.
GRT_API void grt_module_meets(struct grt_module *module, const char *prefix);
// Tells pass->saw, where there is one.
GRT_API void grt_pass_saw(const struct grt_pass *pass, const struct grt_tensor *tensor,
                          const char *format, ...) GRT_PRINTF(3, 4);
// Accepts NULL, clears it.
GRT_API void grt_module_destroy(struct grt_module **module);

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

// ---- layers: a create call each; NULL with the sentence ----

// Over the last axis, whatever stands before it.
struct grt_linear_desc {
    uint32_t inputs;  // 0: as many as there are
    uint32_t outputs;
    bool no_bias;
};
#define grt_linear_desc(...) GRT_DESC(struct grt_linear_desc, __VA_ARGS__)
// "weight" [outputs][inputs], "bias" [outputs].
GRT_API struct grt_module *grt_linear_create(const struct grt_linear_desc *desc);

// y = act((x - mean) / sqrt(variance + 1e-5) weight + bias) over the last axis. "weight", "bias".
GRT_API struct grt_module *grt_layer_norm_create(void);
// y = act(x).
GRT_API struct grt_module *grt_activation_create(enum grt_act act);
// In training each number is 0 with probability p, else divided by 1 - p. The mask is a function of
// the net's seed, the step and the place: backward makes it again, and a run that is resumed has
// the same.
GRT_API struct grt_module *grt_dropout_create(double p);
// y = a gelu(b), a and b being the halves of the last axis.
GRT_API struct grt_module *grt_geglu_create(void);
// [a][b][c] becomes [a b c].
GRT_API struct grt_module *grt_flatten_create(void);

// Over images [height][width][channels], as PyTorch's Conv2d, whose weights are
// [outputs][channels][size][size].
struct grt_conv_desc {
    uint32_t inputs;  // channels; 0: as many as there are
    uint32_t outputs;
    uint32_t size;     // of the window, both ways
    uint32_t stride;   // 0: 1
    uint32_t padding;  // with zeros, on all sides; below the size
    bool no_bias;
    // The weights are drawn as torchvision draws those of its networks: normal, of deviation
    // sqrt(2 / (outputs size size)). Else uniform, as PyTorch's Conv2d.
    bool kaiming;
};
#define grt_conv_desc(...) GRT_DESC(struct grt_conv_desc, __VA_ARGS__)
// "weight" [outputs][size][size][channels], "bias" [outputs].
GRT_API struct grt_module *grt_conv_create(const struct grt_conv_desc *desc);
// y = (x - mean) / sqrt(variance + 1e-5) weight + bias of each feature, the last axis, over all
// samples and places; in evaluation with the running mean and variance, which training moves by a
// tenth a step. "weight", "bias"; buffers "running_mean", "running_var", "num_batches_tracked".
struct grt_batch_norm_desc {
    bool zero;  // the weights begin as 0, not 1: what the norm ends adds nothing at first
};
#define grt_batch_norm_desc(...) GRT_DESC(struct grt_batch_norm_desc, __VA_ARGS__)
// NULL: all defaults.
GRT_API struct grt_module *grt_batch_norm_create(const struct grt_batch_norm_desc *desc);
// The mean, padding being zeros, or the largest of each window of an image.
struct grt_window_pool_desc {
    enum grt_pool pool;
    uint32_t size;
    uint32_t stride;   // 0: the size
    uint32_t padding;  // at most half the size
};
#define grt_window_pool_desc(...) GRT_DESC(struct grt_window_pool_desc, __VA_ARGS__)
GRT_API struct grt_module *grt_window_pool_create(const struct grt_window_pool_desc *desc);

// `count` numbers of the last axis, from `first` on.
GRT_API struct grt_module *grt_columns_create(uint32_t first, uint32_t count);
// One of several inputs that a sample is made of.
struct grt_input {
    const char *name;
    uint32_t first;  // of the sample's last axis
    struct grt_shape
        shape;  // of samples of one axis, all of it lies there; of others its last axis
};
GRT_API struct grt_module *grt_input_create(const struct grt_input *input);

// The mean or the largest over all axes but the last: [points][features] becomes [features], and
// [height][width][channels] becomes [channels].
GRT_API struct grt_module *grt_pool_create(enum grt_pool pool);

// The parts in turn; they belong to the sequence, also when it cannot be made. "0.weight",
// "1.bias", ...
GRT_API struct grt_module *grt_sequence_create(struct grt_module **parts, uint32_t count);
// y = act(body(x) + shortcut(x)); no shortcut: x itself. "body.0.weight", "shortcut.weight".
GRT_API struct grt_module *grt_residual_create(struct grt_module *body, struct grt_module *shortcut,
                                               enum grt_act act);
// y = the sum of what the parts give for x. "0.weight", ...
GRT_API struct grt_module *grt_branches_create(struct grt_module **parts, uint32_t count);
// y = what the parts give for x, one behind the other along the last axis. "0.weight", ...
GRT_API struct grt_module *grt_concat_create(struct grt_module **parts, uint32_t count);

// Residual networks over images, with torchvision's parameters, names and first values:
// "conv1.weight", "layer1.0.bn2.running_mean", "fc.bias".
#define GRT_STEMS(X)                                                                               \
    X(AUTO, "auto")      /* by the images: small up to 64x64 */                                    \
    X(SMALL, "cifar")    /* 3x3 */                                                                 \
    X(LARGE, "imagenet") /* 7x7 with stride 2, then the largest of 3x3 with stride 2 */

enum grt_stem {
#define X(name, text) GRT_STEM_##name,
    GRT_STEMS(X)
#undef X
        GRT_STEM_COUNT,
};
struct grt_resnet_desc {
    uint32_t depth;    // 18, 34, 50, 101 or 152
    uint32_t outputs;  // 0: no linear layer behind the mean over the pixels
    enum grt_stem stem;
    bool zero_init;  // the last norm of each block begins with weights of 0
};
#define grt_resnet_desc(...) GRT_DESC(struct grt_resnet_desc, __VA_ARGS__)
GRT_API struct grt_module *grt_resnet_create(const struct grt_resnet_desc *desc);
// WRN-depth-width (Zagoruyko and Komodakis): norms and activations stand before convolutions.
// "conv1.weight", "block1.layer.0.bn1.weight", "bn1.weight", "fc.weight".
struct grt_wideresnet_desc {
    uint32_t depth;    // 6 n + 4; 0: 28
    uint32_t width;    // times 16, 32 and 64 channels; 0: 10
    uint32_t outputs;  // 0: no linear layer behind the mean over the pixels
    double dropout;    // between the convolutions of a block
};
#define grt_wideresnet_desc(...) GRT_DESC(struct grt_wideresnet_desc, __VA_ARGS__)
GRT_API struct grt_module *grt_wideresnet_create(const struct grt_wideresnet_desc *desc);

// "layers.0.weight", "layers.0.bias", ..., "norms.0.weight", "norms.0.bias", ... Over the last
// axis.
#define GRT_MLP_WIDTHS 32
struct grt_mlp_desc {
    uint32_t inputs;   // 0: as many as there are
    uint32_t depth;    // hidden layers
    uint32_t hidden;   // their width
    uint32_t outputs;  // 0: no output layer, the last hidden layer is the output
    enum grt_act act;
    bool residual;    // h = x + act(..) from the second hidden layer on
    bool layer_norm;  // act(norm(linear(x)))
    // Widths of the hidden layers where they differ; all 0: `hidden` everywhere. No residual then.
    uint32_t widths[GRT_MLP_WIDTHS];
};
#define grt_mlp_desc(...) GRT_DESC(struct grt_mlp_desc, __VA_ARGS__)
GRT_API struct grt_module *grt_mlp_create(const struct grt_mlp_desc *desc);
// The same for a learner's desc.
GRT_API struct grt_module *grt_mlp_make(const void *desc);

struct grt_points_desc {
    uint32_t points;           // of a sample; 0: as many as there are
    struct grt_mlp_desc each;  // over every point; outputs 0
    enum grt_pool pool;        // over the points of a sample
    struct grt_mlp_desc head;  // over what was pooled; inputs 0: as wide as each's last layer
};
#define grt_points_desc(...) GRT_DESC(struct grt_points_desc, __VA_ARGS__)
// x [rows][points][features]. "point.layers.0.weight", ..., "head.layers.0.weight", ...
GRT_API struct grt_module *grt_points_create(const struct grt_points_desc *desc);

#ifdef __cplusplus
}
#endif
#endif
