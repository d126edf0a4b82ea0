// SPDX-License-Identifier: Apache-2.0
// Networks as text: a list of layers in YAML, as `model:` of a config takes it.
//
//     - linear: 256                  also {outputs: 256, bias: false}
//     - norm: layer
//     - gelu                         relu, gelu_exact, silu, tanh, sigmoid
//     - dropout: 0.1
//     - residual: [{linear: 256}, relu, {linear: 256}]
//     - residual: {of: [...], shortcut: [{linear: 256}], activation: relu}
//     - repeat: {times: 3, of: [{linear: 128}, relu]}
//     - branches: [[{linear: 8}], [{linear: 8}, tanh]]       their sum
//     - branches: {of: [[...], [...]], merge: concat}        one behind the other
//     - columns: {first: 0, count: 3}                        of the last axis
//     - input: wind                  one of the inputs of a sample, or [wind, lift]; at the
//                                    beginning
//     - flatten
//     - pool: max                    over the points of a sample
//     - linear: out                  as wide as the targets
//
// Shapes are found from the samples. What does not fit is refused with line, column and both
// shapes.
#ifndef GRT_NETWORK_H
#define GRT_NETWORK_H

#include "module.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_NETWORK_INPUTS 16

struct grt_network_desc {
    const char *text;
    const char *path;       // of the file that the text is from, for messages; NULL: of none
    const char *name;       // what it is called where it is of no file; NULL: "network"
    uint32_t line, column;  // where it begins in the file, from 1; 0 means 1
    bool whole;             // it was written in other words there: only its beginning is known
    uint32_t outputs;       // what `out` stands for; 0: `out` is refused
    bool features;          // networks by name end before the layer that gives `out`
    const struct grt_input *inputs;  // that a sample is made of, by name; NULL: `input` is refused
    uint32_t input_count;            // GRT_NETWORK_INPUTS at most
};
#define grt_network_desc(...) GRT_DESC(struct grt_network_desc, __VA_ARGS__)
// NULL with "path:line:column: what is wrong", or "network at character 5: what is wrong".
GRT_API struct grt_module *grt_network_create(const struct grt_network_desc *desc);
// The same for a learner's desc.
GRT_API struct grt_module *grt_network_make(const void *desc);

// Transforms of images before a network, as a list of steps:
//
//     [{random_crop: {padding: 4}}, random_horizontal_flip, {normalize: {mean: 0.5, std: 0.25}}]
//
// What is random is drawn anew for each sample and step of training, and left out elsewhere.
// Numbers mean what they mean in torchvision. `outputs` and `inputs` of the desc are not used.
GRT_API struct grt_module *grt_transform_create(const struct grt_network_desc *desc);
// What a pass of it took of each sample at last: u32 [rows][8] of top, left, height, width, and 1
// where it was flipped; NULL: it has no such pass.
GRT_API const struct grt_tensor *grt_transform_boxes(const struct grt_module *module,
                                                     uint32_t pass);
// What it did to the colours of each sample at last: u32 [rows][12], words as COLOUR_* of
// shaders/image/lib/transform_params.k say; NULL: it has no such pass, or that changes no colours.
GRT_API const struct grt_tensor *grt_transform_colours(const struct grt_module *module,
                                                       uint32_t pass);
// For pictures, before the module is declared: `normalize` leaves numbers as they are.
GRT_API void grt_transform_plain(struct grt_module *module);
// Other steps for evaluations, before the module is declared; they give the same shape.
GRT_API bool grt_transform_evaluate(struct grt_module *module, const struct grt_network_desc *desc);

#ifdef __cplusplus
}
#endif
#endif
