// SPDX-License-Identifier: Apache-2.0
// A network of an ONNX file as gpurt's own: a list of layers as text, and their numbers in the
// order in which the layers declare them.
#ifndef GRT_ONNX_NETWORK_H
#define GRT_ONNX_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

// Of a parameter or buffer, as gpurt has it.
struct onnx_piece {
    bool buffer;
    uint32_t rank;
    uint64_t shape[4];
    float *numbers;
};

struct onnx_network {
    char *text;     // "[{linear: 8}, relu, {linear: out}]"
    uint32_t rank;  // of a sample, channels last
    uint64_t dims[3];
    uint64_t outputs;
    bool softmax;       // stood behind it, and is left out
    float *mean, *std;  // of the last axis, or NULL
    struct onnx_piece *pieces;
    uint32_t piece_count;
};

// NULL with path, node and reason.
struct onnx_network *onnx_network_load(const char *path);
void onnx_network_destroy(struct onnx_network **network);

#endif
