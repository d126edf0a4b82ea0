// SPDX-License-Identifier: Apache-2.0
// Graphs of ONNX as layers, operator by operator: what is written of each on both sides of what
// there is a layer for. Whole networks against other programs: tests/cli/convert/from_onnx.py.
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/whole_file.h"
#include "onnx/network.h"
#include "onnx/proto.h"
#include "onnx/wire.h"

// Tensors by name, of numbers 1, 2, 3, ... or these whole ones.
static const struct {
    const char *name;
    uint32_t rank;
    uint64_t dims[4];
    int64_t whole[2];  // of floats, 1, 2 .. and so on: what is taken off
    bool wholes;
} tensors[] = {
    {"w53", 2, {5, 3}, {0}, false},
    {"w35", 2, {3, 5}, {0}, false},
    {"w33", 2, {3, 3}, {0}, false},
    {"b3", 1, {3}, {0}, false},
    {"b5", 1, {5}, {0}, false},
    {"b33", 2, {3, 3}, {0}, false},
    {"zero5", 1, {5}, {1}, false},
    {"minus5", 1, {5}, {2}, false},
    {"k3", 4, {2, 3, 3, 3}, {0}, false},
    {"k1", 4, {2, 3, 1, 1}, {0}, false},
    {"k31", 4, {2, 3, 3, 1}, {0}, false},
    {"k23", 4, {2, 2, 3, 3}, {0}, false},
    {"b2", 1, {2}, {0}, false},
    {"w23", 2, {2, 3}, {0}, false},
    {"i0", 1, {1}, {0}, true},
    {"i1", 1, {1}, {1}, true},
    {"i2", 1, {1}, {2}, true},
    {"i3", 1, {1}, {3}, true},
    {"i9", 1, {1}, {9}, true},
    {"m1", 1, {1}, {-1}, true},
    {"m2", 1, {1}, {-2}, true},
    {"flat", 1, {2}, {0, -1}, true},
    {"flat5", 1, {2}, {1, 5}, true},
    {"flat6", 1, {2}, {1, 6}, true},
    {"rows2", 1, {2}, {2, -1}, true},
    {"hw", 1, {2}, {2, 3}, true},
    {"mhw", 1, {2}, {-1, -2}, true},
    {"w90", 2, {90, 3}, {0}, false},
    {"w24", 2, {24, 3}, {0}, false},
    {"c1", 1, {1}, {0}, false},
};

// Writes one whose name stands in the text of nodes.
static void put_tensors(struct wire *w, const char *nodes) {
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        char inside[32], alone[32];
        snprintf(inside, sizeof inside, ",%s", tensors[i].name);
        snprintf(alone, sizeof alone, " %s ", tensors[i].name);
        const char *at = strstr(nodes, inside);
        at = at ? at : strstr(nodes, alone);
        if (!at) {
            continue;
        }
        size_t begun = wire_begin(w, GRAPH_INITIALIZER);
        uint64_t count = 1;
        for (uint32_t k = 0; k < tensors[i].rank; k++) {
            wire_whole(w, TENSOR_DIMS, (int64_t)tensors[i].dims[k]);
            count *= tensors[i].dims[k];
        }
        wire_whole(w, TENSOR_TYPE, tensors[i].wholes ? ELEMENT_INT64 : ELEMENT_FLOAT);
        wire_text(w, TENSOR_NAME, tensors[i].name);
        for (uint64_t k = 0; k < count; k++) {
            if (tensors[i].wholes) {
                wire_whole(w, TENSOR_INT64S, tensors[i].whole[k]);
            } else {
                wire_real(w, TENSOR_FLOATS, (float)k + 1 - (float)tensors[i].whole[0]);
            }
        }
        wire_end(w, begun);
    }
}

// "axis=1", "pads=1,1,1,1", "epsilon~0.1" or "auto_pad:VALID".
static void put_attribute(struct wire *w, char *text) {
    size_t length = strcspn(text, "=~:"), begun = wire_begin(w, NODE_ATTRIBUTE);
    char kind = text[length];
    text[length] = '\0';
    wire_text(w, ATTRIBUTE_NAME, text);
    char *value = text + length + 1;
    if (kind == '~') {
        wire_real(w, ATTRIBUTE_F, strtof(value, NULL));
    } else if (kind == ':') {
        wire_text(w, ATTRIBUTE_S, value);
    } else if (!strchr(value, ',')) {
        wire_whole(w, ATTRIBUTE_I, strtoll(value, NULL, 10));
    } else {
        for (; value; value = strchr(value, ',') ? strchr(value, ',') + 1 : NULL) {
            wire_whole(w, ATTRIBUTE_INTS, strtoll(value, NULL, 10));
        }
    }
    wire_end(w, begun);
}

// "Gemm x,w53,b3 a transB=1": an operator, what it takes, gives, and its attributes.
static void put_node(struct wire *w, char *text) {
    char *rest = NULL, *words[3] = {NULL};
    size_t begun = wire_begin(w, GRAPH_NODE);
    for (int i = 0; i < 3; i++) {
        words[i] = strtok_r(i == 0 ? text : NULL, " ", &rest);
    }
    char *inputs = NULL;
    for (char *in = strtok_r(words[1], ",", &inputs); in; in = strtok_r(NULL, ",", &inputs)) {
        wire_text(w, NODE_INPUT, strcmp(in, "-") == 0 ? "" : in);
    }
    wire_text(w, NODE_OUTPUT, words[2]);
    wire_text(w, NODE_OP, words[0]);
    for (char *a = strtok_r(NULL, " ", &rest); a; a = strtok_r(NULL, " ", &rest)) {
        put_attribute(w, a);
    }
    wire_end(w, begun);
}

static void put_edge(struct wire *w, uint32_t field, const char *name, const uint32_t *shape) {
    size_t edge = wire_begin(w, field);
    wire_text(w, VALUE_NAME, name);
    size_t type = wire_begin(w, VALUE_TYPE), tensor = wire_begin(w, TYPE_TENSOR);
    wire_whole(w, TENSOR_TYPE_ELEMENT, ELEMENT_FLOAT);
    size_t axes = wire_begin(w, TENSOR_TYPE_SHAPE), batch = wire_begin(w, SHAPE_DIM);
    wire_text(w, DIM_NAME, "n");
    wire_end(w, batch);
    for (; *shape; shape++) {
        size_t dim = wire_begin(w, SHAPE_DIM);
        wire_whole(w, DIM_VALUE, *shape);
        wire_end(w, dim);
    }
    wire_end(w, axes);
    wire_end(w, tensor);
    wire_end(w, type);
    wire_end(w, edge);
}

static char path[64];

static void write_model(const char *nodes, const uint32_t *shape, int64_t opset) {
    struct wire w = {0};
    char text[1024], *rest = NULL;
    size_t set = wire_begin(&w, MODEL_OPSET);
    wire_whole(&w, OPSET_VERSION, opset);
    wire_end(&w, set);
    size_t graph = wire_begin(&w, MODEL_GRAPH);
    put_tensors(&w, nodes);
    put_edge(&w, GRAPH_INPUT, "x", shape);
    snprintf(text, sizeof text, "%s", nodes);
    for (char *node = strtok_r(text, ";", &rest); node; node = strtok_r(NULL, ";", &rest)) {
        put_node(&w, node);
    }
    put_edge(&w, GRAPH_OUTPUT, "y", (const uint32_t[]){3, 0});
    wire_end(&w, graph);
    assert_false(w.failed);
    snprintf(path, sizeof path, "/tmp/gpurt-onnx-%ld.onnx", (long)getpid());
    assert_true(grt_whole_file_save(path, w.bytes, w.size));
    free(w.bytes);
}

#define LAST "; MatMul a,w53 y"
#define PIXELS "; GlobalAveragePool a p; Flatten p f; MatMul f,w23 y"
#define IMAGE "; GlobalAveragePool a p; Flatten p f; MatMul f,w33 y"
static const uint32_t five[] = {5, 0}, image[] = {3, 6, 5, 0}, set_of[] = {3, 5, 0};

static const struct {
    const uint32_t *shape;
    const char *nodes;
    bool good;
    const char *says;  // the layers, or a part of the sentence
} rows[] = {
    // Products.
    {five, "MatMul x,w53 y", true, "[{linear: {outputs: out, bias: false}}]"},
    {five, "Gemm x,w53 y", true, "[{linear: {outputs: out, bias: false}}]"},
    {five, "Gemm x,w35 y transB=1", true, "[{linear: {outputs: out, bias: false}}]"},
    {five, "Gemm x,w53,b3 y", true, "[{linear: out}]"},
    {five, "MatMul x,w53 a; Add a,b3 y", true, "[{linear: out}]"},
    {five, "Gemm x,w53,b3 a; Relu a b; Gemm b,w35,b5 c; Tanh c d; MatMul d,w53 y", true,
     "[{linear: 3}, relu, {linear: 5}, tanh, {linear: {outputs: out, bias: false}}]"},
    {five, "Gemm x,w53 y alpha~1 beta~1 transA=0", true, "[{linear: {outputs: out, bias: false}}]"},
    {five, "Gemm x,w53 y alpha~2", false, "node 'y': Gemm with alpha, beta or transA has no layer"},
    {five, "Gemm x,w53 y beta~0.5", false, "node 'y': Gemm with alpha, beta or transA"},
    {five, "Gemm x,w53 y transA=1", false, "node 'y': Gemm with alpha, beta or transA"},
    {five, "Gemm x,w35 y", false,
     "node 'y': Gemm takes 3 features, and 5 come, or not as the last axis"},
    {five, "Gemm x,w53,b5 y", false,
     "node 'y': Gemm adds something else than one number for each of 3 outputs"},
    {five, "Gemm x,w53,b33 y", false, "node 'y': Gemm has 9 numbers where 3 are wanted"},
    {image, "MatMul x,w33 y", false, "node 'y': MatMul takes 3 features, and 3 come, or not as"},
    // What stays as it is.
    {five, "Identity x b; Dropout b a" LAST, true, "[{linear: {outputs: out, bias: false}}]"},
    {five, "MatMul x,w53 a; Sigmoid a y", true, "[{linear: {outputs: 3, bias: false}}, sigmoid]"},
    {five, "MatMul x,w53 a; Softmax a y", true, "[{linear: {outputs: out, bias: false}}]"},
    {five, "MatMul x,w53 a; Softmax a y axis=1", true, "[{linear: {outputs: out, bias: false}}]"},
    {five, "MatMul x,w53 a; Softmax a y axis=2", false,
     "node 'y': Softmax is over the classes of one axis alone here, and not over axis 2"},
    {five, "MatMul x,w53 a; Softmax a b; MatMul b,w33 y", false,
     "node 'b': Softmax has no layer here, but at the end"},
    {five, "MatMul x,w53 a; Mul a,b3 y", false,
     "node 'y': Mul by constants has no layer here, but at the beginning"},
    {five, "MatMul x,w53 a; MatMul x,w53 b; Mul a,b y", false, "of two values has no layer here"},
    {five, "MatMul x,w53 a; Sub a y", false, "node 'y': Sub wants two inputs"},
    {five, "MatMul x,w53 a; Add a,x y", false, "node 'y': Add has inputs of two shapes"},
    {five, "MatMul x,w53 a; Softplus a y", false, "node 'y': Softplus has no layer"},
    // Activations by what they compute.
    {five, "MatMul x,w53 a; Gelu a y", true, "[{linear: {outputs: 3, bias: false}}, gelu_exact]"},
    {five, "MatMul x,w53 a; Gelu a y approximate:tanh", true,
     "[{linear: {outputs: 3, bias: false}}, gelu]"},
    {five, "MatMul x,w53 a; Gelu a y approximate:none", true,
     "[{linear: {outputs: 3, bias: false}}, gelu_exact]"},
    {five, "MatMul x,w53 a; Sigmoid a s; Mul a,s y", true,
     "[{linear: {outputs: 3, bias: false}}, silu]"},
    {five, "MatMul x,w53 a; Sigmoid a s; Mul s,a y", true,
     "[{linear: {outputs: 3, bias: false}}, silu]"},
    {five, "Relu x u; Neg u v; Neg v w; MatMul w,w53 y", true,
     "[relu, {linear: {outputs: out, bias: false}}]"},
    {five, "MatMul x,w53 a; Exp a y", false, "node 'y': Exp by itself has no layer here"},
    {five, "MatMul x,w53 a; Relu a b; Sigmoid b y", true,
     "[{linear: {outputs: 3, bias: false}}, relu, sigmoid]"},
    {five, "MatMul x,w53 a; Relu a b; Relu b y", true,
     "[{linear: {outputs: 3, bias: false}}, relu, relu]"},
    // Branches that meet again.
    {five, "MatMul x,w53 a; MatMul a,w33 b; Add a,b y", true,
     "[{linear: {outputs: 3, bias: false}}, {residual: [{linear: {outputs: 3, bias: false}}]}]"},
    {five, "MatMul x,w53 a; Relu a b; MatMul b,w33 c; Add c,a d; Relu d y", true,
     "[{linear: {outputs: 3, bias: false}}, {residual: [relu, {linear: {outputs: 3, bias: "
     "false}}]}, relu]"},
    {five, "MatMul x,w53 a; Relu a b; Tanh a c; Concat b,c y axis=1", true,
     "[{linear: {outputs: 3, bias: false}}, {branches: {merge: concat, of: [[relu], [tanh]]}}]"},
    {five, "MatMul x,w53 a; Relu a b; Tanh a c; Concat c,b,a y axis=-1", true,
     "[{linear: {outputs: 3, bias: false}}, {branches: {merge: concat, of: [[tanh], [relu], "
     "[{columns: {first: 0, count: 3}}]]}}]"},
    {five, "MatMul x,w53 a; Add a,a y", false,
     "node 'y': Add of a value and itself has no layer here"},
    // Constants that are copied or turned.
    {five, "Transpose w35 t perm=1,0; MatMul x,t y", true,
     "[{linear: {outputs: out, bias: false}}]"},
    {five, "Identity w53 t; MatMul x,t y", true, "[{linear: {outputs: out, bias: false}}]"},
    {five, "Identity w35 t; MatMul x,t y", false, "MatMul takes 3 features, and 5 come"},
    // A normaliser at the beginning.
    {five, "Sub x,b5 a; Div a,b5 b; MatMul b,w53 y", true,
     "[{linear: {outputs: out, bias: false}}]"},
    {five, "Sub x,b3 a; MatMul a,w53 y", false,
     "node 'a': Sub by these constants is no normaliser of channels"},
    {five, "Mul x,zero5 a" LAST, false, "scales a channel by 0, which no normaliser does"},
    {five, "Mul x,minus5 a" LAST, false, "scales a channel by -1, which no normaliser does"},
    // Windows over images.
    {image, "Conv x,k3 a" PIXELS, true,
     "[{conv: {outputs: 2, size: 3, padding: 0, bias: false}}, {pool: mean}, {linear: {outputs: "
     "out, bias: false}}]"},
    {image, "Conv x,k3,b2 a pads=1,1,1,1 strides=2,2" PIXELS, true,
     "[{conv: {outputs: 2, size: 3, stride: 2}}, {pool: mean}, {linear: {outputs: out, bias: "
     "false}}]"},
    {image, "Conv x,k1 a kernel_shape=1,1 auto_pad:VALID group=1 dilations=1,1" PIXELS, true,
     "[{conv: {outputs: 2, size: 1, bias: false}}, {pool: mean}, {linear: {outputs: out, bias: "
     "false}}]"},
    {image, "Conv x,k3 a pads=2,2,2,2" PIXELS, true,
     "[{conv: {outputs: 2, size: 3, padding: 2, bias: false}}, {pool: mean}, {linear: {outputs: "
     "out, bias: false}}]"},
    {image, "Conv x,k3 a pads=3,3,3,3" PIXELS, false,
     "node 'a': Conv has a padding as wide as its window"},
    {image, "Conv x,k3 a pads=1,1,1,0" PIXELS, false,
     "node 'a': Conv has a window here of one size, stride and padding on all sides"},
    {image, "Conv x,k3 a strides=1,2" PIXELS, false, "Conv has a window here of one size"},
    {image, "Conv x,k3 a strides=0,0" PIXELS, false, "Conv has a window here of one size"},
    {image, "Conv x,k3 a strides=1025,1025" PIXELS, false, "Conv has a window here of one size"},
    {image, "Conv x,k3 a auto_pad:SAME_UPPER" PIXELS, false, "no auto_pad"},
    {image, "Conv x,k3 a dilations=2,2" PIXELS, false, "Conv with dilations or ceil_mode has no"},
    {image, "Conv x,k3 a group=3" PIXELS, false, "with square constant weights and one group"},
    {image, "Conv x,k31 a" PIXELS, false, "with square constant weights and one group"},
    {image, "Conv x,k23 a" PIXELS, false, "Conv has weights for 2 channels, and 3 come"},
    {image, "Conv x,k3 a kernel_shape=5,5" PIXELS, false,
     "node 'a': Conv has weights of another size than its kernel_shape"},
    {five, "Conv x,k3 a" PIXELS, false, "Conv takes images [N][channels][height][width] alone"},
    {image, "MaxPool x a kernel_shape=5,5" IMAGE, true,
     "[{max_pool: {size: 5, stride: 1, padding: 0}}, {pool: mean}, {linear: {outputs: out, bias: "
     "false}}]"},
    {image, "MaxPool x a kernel_shape=6,6" IMAGE, false, "has a window larger than the image"},
    {image, "MaxPool x a kernel_shape=3,3 pads=1,1,1,1 strides=2,2" IMAGE, true,
     "[{max_pool: {size: 3, stride: 2, padding: 1}}, {pool: mean}, {linear: {outputs: out, bias: "
     "false}}]"},
    {image, "MaxPool x a kernel_shape=3,3 pads=2,2,2,2" IMAGE, false,
     "node 'a': MaxPool has a padding over half its window"},
    {image, "MaxPool x a kernel_shape=2,2 ceil_mode=1" IMAGE, false, "with dilations or ceil_mode"},
    {image, "MaxPool x a" IMAGE, false, "has a window here of one size"},
    {image, "AveragePool x a kernel_shape=2,2" IMAGE, true,
     "[{avg_pool: {size: 2, stride: 1, padding: 0}}, {pool: mean}, {linear: {outputs: out, bias: "
     "false}}]"},
    {image, "AveragePool x a kernel_shape=2,2 pads=1,1,1,1" IMAGE, false,
     "node 'a': AveragePool that leaves the padding out of its mean has no layer here"},
    {image, "AveragePool x a kernel_shape=2,2 pads=1,1,1,1 count_include_pad=1" IMAGE, true,
     "[{avg_pool: {size: 2, stride: 1, padding: 1}}, {pool: mean}, {linear: {outputs: out, bias: "
     "false}}]"},
    {image, "AveragePool x a kernel_shape=2,2 pads=2,2,2,2 count_include_pad=1" IMAGE, false,
     "node 'a': AveragePool has a padding over half its window"},
    // Pools over all places.
    {image, "GlobalMaxPool x a; Flatten a b; MatMul b,w33 y", true,
     "[{pool: max}, {linear: {outputs: out, bias: false}}]"},
    {image, "ReduceMean x a axes=2,3; MatMul a,w33 y", true,
     "[{pool: mean}, {linear: {outputs: out, bias: false}}]"},
    {image, "ReduceMax x a axes=-1,-2; MatMul a,w33 y", true,
     "[{pool: max}, {linear: {outputs: out, bias: false}}]"},
    {image, "ReduceMean x,hw a; MatMul a,w33 y", true,
     "[{pool: mean}, {linear: {outputs: out, bias: false}}]"},
    {image, "ReduceMean x,mhw a; MatMul a,w33 y", true,
     "[{pool: mean}, {linear: {outputs: out, bias: false}}]"},
    {image, "ReduceMean x a axes=1,2; MatMul a,w33 y", false,
     "node 'a': ReduceMean has a layer here over all places of a sample alone"},
    {image, "ReduceMean x,i2 a; MatMul a,w33 y", false, "over all places of a sample alone"},
    {image, "ReduceMean x a; MatMul a,w33 y", false, "over all places of a sample alone"},
    {five, "GlobalMaxPool x a" LAST, false, "over all places of a sample alone"},
    // Norms.
    {five, "LayerNormalization x,b5,b5 a" LAST, true,
     "[{norm: layer}, {linear: {outputs: out, bias: false}}]"},
    {five, "LayerNormalization x,b5 a axis=1 epsilon~0.00001" LAST, true,
     "[{norm: layer}, {linear: {outputs: out, bias: false}}]"},
    {five, "LayerNormalization x,b5 a axis=0" LAST, false, "is over the last axis alone here"},
    {five, "LayerNormalization x,b3 a" LAST, false, "has 3 numbers where 5 are wanted"},
    {five, "LayerNormalization x,b5 a epsilon~0.001" LAST, false,
     "LayerNormalization has an epsilon of 0.001; here it is 1e-05"},
    {five, "LayerNormalization x a" LAST, false, "where operand 1 is a constant"},
    {five, "BatchNormalization x,b5,b5,b5,b5 a" LAST, true,
     "[{norm: batch}, {linear: {outputs: out, bias: false}}]"},
    {five, "BatchNormalization x,b5,b5,b5 a" LAST, false, "where operand 4 is a constant"},
    {five, "BatchNormalization x,b5,b5,b3,b5 a" LAST, false, "has 3 numbers where 5 are wanted"},
    // Axes.
    {image, "Flatten x a; MatMul a,w90 y", true,
     "[flatten, {linear: {outputs: out, bias: false}}]"},
    {image, "Reshape x,flat a; MatMul a,w90 y", true,
     "[flatten, {linear: {outputs: out, bias: false}}]"},
    {image, "Reshape x,rows2 a; MatMul a,w90 y", false,
     "node 'a': Reshape has a layer here where it makes one axis of a sample"},
    {five, "Reshape x,flat5 a" LAST, true, "[{linear: {outputs: out, bias: false}}]"},
    {five, "Reshape x,flat6 a" LAST, false, "where it makes one axis of a sample"},
    {image, "Flatten x a axis=2; MatMul a,w90 y", false,
     "node 'a': Flatten keeps the batch, and makes one axis of the rest, here"},
    {image, "Flatten x a; Relu a b; Flatten b c; MatMul c,w90 y", true,
     "[flatten, relu, {linear: {outputs: out, bias: false}}]"},
    {five, "Slice x,i0,i3,i1 a; MatMul a,w33 y", true,
     "[{columns: {first: 0, count: 3}}, {linear: {outputs: out, bias: false}}]"},
    {five, "Slice x,i2,i9,m1,i1 a; MatMul a,w33 y", true,
     "[{columns: {first: 2, count: 3}}, {linear: {outputs: out, bias: false}}]"},
    {five, "Slice x,i1,m1,i1 a; MatMul a,w33 y", true,
     "[{columns: {first: 1, count: 3}}, {linear: {outputs: out, bias: false}}]"},
    {five, "Slice x,i2,i2,i1 a; MatMul a,w33 y", false,
     "node 'a': Slice has a layer here over some channels, one behind the other"},
    {five, "Slice x,i0,i3,i1,i2 a; MatMul a,w33 y", false, "over some channels, one behind"},
    {five, "Slice x,i0,i3,i0 a; MatMul a,w33 y", false, "over some channels, one behind"},
    {five, "Slice x,i0,i3 a; MatMul a,w33 y", false, "of one axis and constant places"},
    {five, "Slice x,i0,hw,i1 a; MatMul a,w33 y", false, "of one axis and constant places"},
    {image, "Transpose x a perm=0,2,3,1; MatMul a,w33 b; ReduceMean b y axes=1,2", true,
     "[{linear: {outputs: 3, bias: false}}, {pool: mean}]"},
    {image, "Transpose x a perm=0,3,2,1; MatMul a,w33 b; ReduceMean b y axes=1,2", false,
     "node 'a': Transpose moves channels to the front or to the end alone here"},
    {image, "Transpose x a perm=1,2,3,0; MatMul a,w33 b; ReduceMean b y axes=1,2", false,
     "moves channels to the front or to the end alone here"},
    {five, "MatMul x,w53 a; Relu a b; Concat a,b y axis=0", false,
     "node 'y': Concat puts channels one behind the other alone here"},
    // What an output is.
    {set_of, "MatMul x,w53 y", false,
     "node 'y': MatMul gives the output with 2 axes of a sample; here it has one: flatten it"},
    {image, "Conv x,k1 a; Flatten a y", false, "it ends with the numbers of images as one axis"},
    {five, "Relu x y", false, "it has no layer with numbers to learn"},
};

static void operators(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_model(rows[i].nodes, rows[i].shape, 17);
        if (!rows[i].good) {
            TEST_REFUSED(onnx_network_load(path) != NULL, GRT_BAD_DATA, rows[i].says);
            continue;
        }
        struct onnx_network *net = onnx_network_load(path);
        if (!net || strcmp(net->text, rows[i].says) != 0) {
            fail_msg("%s: %s", rows[i].nodes, net ? net->text : grt_last_error());
            return;
        }
        onnx_network_destroy(&net);
        assert_null(net);
    }
    // Opsets from 7 to 100; before 13 a softmax is over the first axis, which is the only one.
    static const struct {
        int64_t opset;
        const char *says;
    } sets[] = {{6, "opset 6; known are those from 7 on"},
                {7, NULL},
                {12, NULL},
                {100, NULL},
                {101, "opset 101; known are those from 7 on"}};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        write_model("MatMul x,w53 a; Softmax a y", five, sets[i].opset);
        if (sets[i].says) {
            TEST_REFUSED(onnx_network_load(path) != NULL, GRT_BAD_DATA, sets[i].says);
            continue;
        }
        struct onnx_network *net = onnx_network_load(path);
        assert_true(net && net->softmax);
        onnx_network_destroy(&net);
    }
    unlink(path);
}

// Weights in our order, whichever way they stand in the file: outputs first.
static void weights(void **state) {
    (void)state;
    write_model("Gemm x,w53,b3 a; Relu a b; Gemm b,w23 y transB=1", five, 17);
    struct onnx_network *net = onnx_network_load(path);
    assert_non_null(net);
    assert_int_equal(net->piece_count, 3);
    assert_int_equal(net->outputs, 2);
    assert_false(net->softmax);
    assert_true(net->pieces[0].rank == 2 && net->pieces[0].shape[0] == 3 &&
                net->pieces[0].shape[1] == 5 && !net->pieces[0].buffer);
    for (int o = 0; o < 3; o++) {
        for (int i = 0; i < 5; i++) {
            assert_true(net->pieces[0].numbers[o * 5 + i] == (float)(i * 3 + o + 1));
        }
        assert_true(net->pieces[1].numbers[o] == (float)(o + 1));
    }
    for (int i = 0; i < 6; i++) {
        assert_true(net->pieces[2].numbers[i] == (float)(i + 1));
    }
    onnx_network_destroy(&net);
    assert_true(!net || !net->mean);
    static const struct {
        const char *nodes;
        float mean[5], std[5];
    } normalisers[] = {
        {"Sub x,b5 a; Div a,b5 b; MatMul b,w53 y", {1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}},
        {"Mul x,b5 a; Add a,b5 b; MatMul b,w53 y",
         {-1, -1, -1, -1, -1},
         {1, 1 / 2.0f, 1 / 3.0f, 1 / 4.0f, 1 / 5.0f}},
        {"Add x,b5 a; MatMul a,w53 y", {-1, -2, -3, -4, -5}, {1, 1, 1, 1, 1}},
        {"Sub x,c1 a; MatMul a,w53 y", {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}},
    };
    for (size_t k = 0; k < sizeof normalisers / sizeof *normalisers; k++) {
        write_model(normalisers[k].nodes, five, 17);
        net = onnx_network_load(path);
        assert_true(net && net->mean && net->std);
        for (int i = 0; i < 5; i++) {
            assert_true(net->mean[i] == normalisers[k].mean[i]);
            assert_true(net->std[i] == normalisers[k].std[i]);
        }
        onnx_network_destroy(&net);
    }
    // Of images as one axis, and of a convolution: channels last here.
    write_model("Conv x,k3 a; Flatten a b; MatMul b,w24 y", image, 17);
    net = onnx_network_load(path);
    assert_non_null(net);
    assert_string_equal(net->text, "[{conv: {outputs: 2, size: 3, padding: 0, bias: false}}, "
                                   "flatten, {linear: {outputs: out, bias: false}}]");
    for (int i = 0; i < 2 * 9 * 3; i++) {
        int c = i % 3, pixel = i / 3 % 9, o = i / 27;
        assert_true(net->pieces[0].numbers[i] == (float)((o * 3 + c) * 9 + pixel + 1));
    }
    for (int i = 0; i < 24; i++) {
        int place = i % 2 * 12 + i / 2;
        assert_true(net->pieces[1].numbers[i] == (float)(place * 3 + 1));
    }
    onnx_network_destroy(&net);
    unlink(path);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(operators),
    TEST_CASE(weights),
};
TEST_SUITE(onnx, false, cases);
