// SPDX-License-Identifier: Apache-2.0
// Inside runtime/onnx: a file as it was read. Nodes stand in an order in which each takes what was
// there before; so there are no circles.
#ifndef GRT_ONNX_MODEL_H
#define GRT_ONNX_MODEL_H

#include "gpurt/onnx.h"

#define ONNX_NAME 192
#define ONNX_MOST_NODES 16384
#define ONNX_NODE_INPUTS 8
#define ONNX_NODE_ATTRIBUTES 12
#define ONNX_RANK 6
#define ONNX_MOST_NUMBERS (1ull << 31)  // of a tensor, and of a value of one sample
#define ONNX_NONE UINT32_MAX

// Of an initializer, or of a node Constant.
struct onnx_tensor {
    uint32_t rank;
    uint64_t dims[ONNX_RANK];
    uint64_t count;
    float *reals;     // or
    int64_t *wholes;  // allocated, `count` of them
};

struct onnx_value {
    char name[ONNX_NAME];
    struct onnx_tensor *constant;  // or NULL
    uint32_t producer;             // the node, or ONNX_NONE
};

struct onnx_attribute {
    char name[32];
    int64_t whole;
    float real;
    char text[32];
    int64_t wholes[8];
    uint32_t count;  // of wholes
    struct onnx_tensor *tensor;
};

struct onnx_node {
    char op[40], name[ONNX_NAME];
    uint32_t inputs[ONNX_NODE_INPUTS];  // values; ONNX_NONE: left out
    uint32_t input_count;
    uint32_t output;  // the first
    struct onnx_attribute attributes[ONNX_NODE_ATTRIBUTES];
    uint32_t attribute_count;
};

struct onnx_model {
    const char *path;
    char producer[32];
    int64_t opset;
    struct onnx_value *values;
    uint32_t value_count, value_room;
    uint32_t *table, table_size;  // of names: a value each, or ONNX_NONE
    struct onnx_node *nodes;
    uint32_t node_count;
    uint32_t input, output;  // values
    uint32_t input_rank;     // axes of a sample
    uint64_t input_dims[ONNX_RANK];
};

// NULL with path and reason (GRT_NO_INPUT, GRT_BAD_DATA).
struct onnx_model *onnx_model_load(const char *path);
void onnx_model_destroy(struct onnx_model **model);
const struct onnx_attribute *onnx_attribute(const struct onnx_node *node, const char *name);
int64_t onnx_whole(const struct onnx_node *node, const char *name, int64_t otherwise);

#endif
