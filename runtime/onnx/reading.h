// SPDX-License-Identifier: Apache-2.0
// Inside runtime/onnx: what turns nodes into layers shares. operators.c has a row for each
// operator: what shape it gives, and the layer that it is. network.c finds the layers' order.
#ifndef GRT_ONNX_READING_H
#define GRT_ONNX_READING_H

#include <stddef.h>

#include "model.h"
#include "network.h"

#define READING_RANK 3

// How the axes of a sample lie in the file; here the channels are last.
enum layout {
    LAYOUT_ROWS,    // as here
    LAYOUT_PLANES,  // channels first
    LAYOUT_MIXED,   // one axis, which was LAYOUT_PLANES: the next linear layer sorts it
};

struct known {
    bool known;
    uint32_t rank;
    uint64_t dim[READING_RANK];
    enum layout layout;
    uint64_t plane[READING_RANK];  // LAYOUT_MIXED: channels, height, width
    uint32_t above;                // value that every way from the input to this one goes through
    uint32_t depth;                // how many of them there are
};

struct reading {
    struct onnx_model *model;
    struct known *known;  // of each value
    struct onnx_network *network;
    char *text;
    size_t size, room;
    bool *written;    // of each node: its layer is, and has numbers
    uint64_t folded;  // numbers of constants that were copied
    bool failed;      // no host memory
};

struct onnx_op {
    const char *op;
    // What it gives for its first input; false with the sentence.
    bool (*infer)(struct reading *r, const struct onnx_node *node, struct known *out);
    // Writes the layer; NULL: it is none of its own.
    bool (*emit)(struct reading *r, const struct onnx_node *node);
};
const struct onnx_op *onnx_operator(const char *op);
// Writes a linear layer; `added` is a bias behind a MatMul, or NULL. `last`: as wide as the
// targets.
bool onnx_emit_linear(struct reading *r, const struct onnx_node *node,
                      const struct onnx_tensor *added, bool last);

const struct onnx_tensor *onnx_constant(const struct reading *r, const struct onnx_node *node,
                                        uint32_t input);
// Says what is lacking, with file and node; false.
bool onnx_lacks(const struct reading *r, const struct onnx_node *node, const char *format, ...)
    GRT_PRINTF(3, 4);
void onnx_write(struct reading *r, const char *format, ...) GRT_PRINTF(2, 3);
// Numbers of a parameter or buffer, to be filled; NULL without host memory.
float *onnx_add_piece(struct reading *r, bool buffer, uint32_t rank, const uint64_t *shape);

// The activation that leads to a value (activations.c): its word, and the value before it; NULL:
// none does.
const char *onnx_activation(const struct reading *r, uint32_t value, uint32_t *before);

#endif
