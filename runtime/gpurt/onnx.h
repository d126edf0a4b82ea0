// SPDX-License-Identifier: Apache-2.0
// ONNX files: a network as a graph that other programs run, such as ONNX Runtime.
//
//     record   modules add nodes (struct grt_module_fns, `onnx`) and name their parameters
//     save     parameters get their numbers of an archive; the file is ONNX's ModelProto
//
// Samples of images and points have their channels last here and behind the batch in ONNX: a value
// says which. Recording cannot fail: the first mistake sticks, and grt_onnx_save() reports it.
#ifndef GRT_ONNX_H
#define GRT_ONNX_H

#include "archive.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_ONNX_OPSET 17  // the first with LayerNormalization
#define GRT_ONNX_INPUTS 8  // of a node
#define GRT_ONNX_ATTRIBUTES 6

struct grt_onnx;
struct grt_param;

// What a node gives, or an input.
struct grt_onnx_value {
    const char *name;  // belongs to the graph
    uint32_t rank;     // axes of a sample
    bool planes;       // channels come before the other axes; of rank 1 never
};

struct grt_onnx_attribute {
    const char *name;
    enum { GRT_ONNX_WHOLE, GRT_ONNX_WHOLES, GRT_ONNX_REAL } type;
    int64_t whole;
    int64_t wholes[8];
    uint32_t count;  // of wholes
    float real;
};
struct grt_onnx_node {
    const char *op;                                             // "Gemm"
    const char *inputs[GRT_ONNX_INPUTS];                        // names, ended by NULL
    struct grt_onnx_attribute attributes[GRT_ONNX_ATTRIBUTES];  // ended by one without a name
};
#define grt_onnx_node(...) GRT_DESC(struct grt_onnx_node, __VA_ARGS__)

GRT_API struct grt_onnx *grt_onnx_create(void);
GRT_API void grt_onnx_destroy(struct grt_onnx **onnx);
// An input of samples of this shape, as many as there are, under its name.
GRT_API struct grt_onnx_value grt_onnx_input(struct grt_onnx *onnx, const char *name, uint32_t rank,
                                             const uint64_t *shape);
// Adds a node; the name of what it gives.
GRT_API const char *grt_onnx_add(struct grt_onnx *onnx, const struct grt_onnx_node *node);
// The same of a value alone, which keeps its rank and axes.
GRT_API struct grt_onnx_value grt_onnx_map(struct grt_onnx *onnx, const char *op,
                                           struct grt_onnx_value x);
// A parameter or buffer, by its name; one of four axes, of a convolution, as PyTorch has it.
GRT_API const char *grt_onnx_param(struct grt_onnx *onnx, const struct grt_param *param);
// Constants.
GRT_API const char *grt_onnx_reals(struct grt_onnx *onnx, uint32_t rank, const uint64_t *shape,
                                   const float *numbers);
GRT_API const char *grt_onnx_real(struct grt_onnx *onnx, float number);
GRT_API const char *grt_onnx_wholes(struct grt_onnx *onnx, const int64_t *numbers, uint32_t count);
// The value with its channels last, or before the other axes.
GRT_API struct grt_onnx_value grt_onnx_rows(struct grt_onnx *onnx, struct grt_onnx_value x);
GRT_API struct grt_onnx_value grt_onnx_planes(struct grt_onnx *onnx, struct grt_onnx_value x);
// All axes of a sample as one, the channels last before that.
GRT_API struct grt_onnx_value grt_onnx_flat(struct grt_onnx *onnx, struct grt_onnx_value x);
// The value is what the graph gives, under this name.
GRT_API void grt_onnx_output(struct grt_onnx *onnx, const char *name, struct grt_onnx_value y,
                             uint32_t rank, const uint64_t *shape);
// For who cannot record something: the sentence that grt_onnx_save() says.
GRT_API struct grt_onnx_value grt_onnx_refuse(struct grt_onnx *onnx, const char *format, ...)
    GRT_PRINTF(2, 3);

// Writes the file; the numbers of parameters are tensors "model/NAME" of the archive, of their
// shapes. False with the sentence.
GRT_API bool grt_onnx_save(struct grt_onnx *onnx, const struct grt_archive *archive,
                           const char *path);

// ---- trained models ----

struct grt_onnx_export {
    bool probabilities;  // softmax or sigmoid behind the outputs
    bool embeddings;     // what the network gives before its last layers
};
// A trained network or policy: normaliser, network, and what follows it. Inputs have the names of
// the data sets, or `observation`; outputs are `y`, `probability`, `embedding`, `logits` or
// `action`. False with the sentence.
GRT_API bool grt_onnx_write(const struct grt_archive *model, const struct grt_onnx_export *as,
                            const char *path);

// A network of any program, with the layers that there are, as the checkpoint of a run that has not
// begun: config, shapes of samples and tensors "model/0.weight". Images have their channels last
// here. A normaliser at the beginning becomes data/mean and data/std; a softmax at the end is left
// out, and the loss is cross_entropy. NULL with file, node and what is lacking or damaged
// (GRT_BAD_DATA).
GRT_API struct grt_archive *grt_onnx_load(const char *path);

#ifdef __cplusplus
}
#endif
#endif
