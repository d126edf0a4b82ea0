// SPDX-License-Identifier: Apache-2.0
// Operators of ONNX as layers: one row each. A row is the first input's, but for products and
// convolutions, whose weights are constants.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "reading.h"

#define EPSILON 1e-5

// ---- what all share ----

bool onnx_lacks(const struct reading *r, const struct onnx_node *n, const char *format, ...) {
    char why[256];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    grt_fail(GRT_BAD_DATA, "%s: node '%s': %s %s", r->model->path,
             n->name[0] ? n->name : r->model->values[n->output].name, n->op, why);
    return false;
}

void onnx_write(struct reading *r, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t more = length > 0 && (size_t)length < sizeof text ? (size_t)length : 0;
    if (r->size + more + 1 > r->room) {
        size_t room = 2 * (r->size + more) + 256;
        char *chars = realloc(r->text, room);
        if (!chars) {
            r->failed = true;
            return;
        }
        r->text = chars;
        r->room = room;
    }
    memcpy(r->text + r->size, text, more);
    r->size += more;
    r->text[r->size] = '\0';
}

float *onnx_add_piece(struct reading *r, bool buffer, uint32_t rank, const uint64_t *shape) {
    struct onnx_network *net = r->network;
    struct onnx_piece piece = {.buffer = buffer, .rank = rank};
    uint64_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        piece.shape[i] = shape[i];
        count *= shape[i];
    }
    piece.numbers = calloc(count + 1, sizeof *piece.numbers);
    struct onnx_piece *pieces =
        piece.numbers ? realloc(net->pieces, (net->piece_count + 1) * sizeof *pieces) : NULL;
    if (!pieces) {
        free(piece.numbers);
        r->failed = true;
        return NULL;
    }
    net->pieces = pieces;
    net->pieces[net->piece_count++] = piece;
    return piece.numbers;
}

const struct onnx_tensor *onnx_constant(const struct reading *r, const struct onnx_node *n,
                                        uint32_t input) {
    bool given = input < n->input_count && n->inputs[input] != ONNX_NONE;
    return given ? r->model->values[n->inputs[input]].constant : NULL;
}

// Operands behind the first: so many must be given, and up to the last all that are be constants.
static bool of_constants(const struct reading *r, const struct onnx_node *n, uint32_t wanted,
                         uint32_t last) {
    for (uint32_t i = 1; i <= last; i++) {
        bool given = i < n->input_count && n->inputs[i] != ONNX_NONE;
        if ((given || i <= wanted) && !onnx_constant(r, n, i)) {
            return onnx_lacks(r, n, "has a layer here where operand %u is a constant", i);
        }
    }
    return true;
}

static const struct known *first_of(const struct reading *r, const struct onnx_node *n) {
    return &r->known[n->inputs[0]];
}

// A vector of the file, or `otherwise` everywhere, as a piece.
static bool add_vector(struct reading *r, const struct onnx_node *n, const struct onnx_tensor *t,
                       uint64_t count, float otherwise, bool buffer) {
    if (t && (!t->reals || t->count != count)) {
        return onnx_lacks(r, n, "has %llu numbers where %llu are wanted",
                          (unsigned long long)t->count, (unsigned long long)count);
    }
    float *to = onnx_add_piece(r, buffer, 1, &count);
    for (uint64_t i = 0; to && i < count; i++) {
        to[i] = t ? t->reals[i] : otherwise;
    }
    return to != NULL;
}

// ---- shapes that stay ----

static bool infer_same(struct reading *r, const struct onnx_node *n, struct known *out) {
    *out = *first_of(r, n);
    return true;
}

static bool same_known(const struct known *a, const struct known *b) {
    bool same = a->rank == b->rank && a->layout == b->layout;
    for (uint32_t i = 0; same && i < a->rank; i++) {
        same = a->dim[i] == b->dim[i];
    }
    return same;
}

static bool infer_pair(struct reading *r, const struct onnx_node *n, struct known *out) {
    const struct known *a = first_of(r, n);
    if (n->input_count != 2 || n->inputs[1] == ONNX_NONE) {
        return onnx_lacks(r, n, "wants two inputs");
    }
    const struct known *b = &r->known[n->inputs[1]];
    if (onnx_constant(r, n, 0) || onnx_constant(r, n, 1)) {
        *out = onnx_constant(r, n, 0) ? *b : *a;
        return true;
    }
    *out = *a;
    return same_known(a, b) || onnx_lacks(r, n, "has inputs of two shapes");
}

// ---- linear ----

// The weights, and which of their axes is that of the outputs.
static const struct onnx_tensor *weights_of(const struct reading *r, const struct onnx_node *n,
                                            uint32_t *outputs_axis) {
    const struct onnx_tensor *w = onnx_constant(r, n, 1);
    *outputs_axis = strcmp(n->op, "Gemm") == 0 && onnx_whole(n, "transB", 0) ? 0 : 1;
    return w && w->rank == 2 && w->reals && w->count > 0 ? w : NULL;
}

static bool infer_linear(struct reading *r, const struct onnx_node *n, struct known *out) {
    const struct known *x = first_of(r, n);
    uint32_t axis = 0;
    const struct onnx_tensor *w = weights_of(r, n, &axis);
    const struct onnx_attribute *alpha = onnx_attribute(n, "alpha"),
                                *beta = onnx_attribute(n, "beta");
    if (!w) {
        return onnx_lacks(r, n, "by something else than a constant matrix has no layer here");
    }
    if ((alpha && alpha->real != 1.0f) || (beta && beta->real != 1.0f) ||
        onnx_whole(n, "transA", 0)) {
        return onnx_lacks(r, n, "with alpha, beta or transA has no layer here");
    }
    if (x->layout == LAYOUT_PLANES || x->dim[x->rank - 1] != w->dims[1 - axis]) {
        return onnx_lacks(r, n, "takes %llu features, and %llu come, or not as the last axis",
                          (unsigned long long)w->dims[1 - axis],
                          (unsigned long long)x->dim[x->rank - 1]);
    }
    const struct onnx_tensor *c = onnx_constant(r, n, 2);
    if (c && w->dims[axis] > 1 && (c->rank == 0 || c->dims[c->rank - 1] != w->dims[axis])) {
        return onnx_lacks(r, n, "adds something else than one number for each of %llu outputs",
                          (unsigned long long)w->dims[axis]);
    }
    *out = *x;
    out->layout = LAYOUT_ROWS;
    out->dim[out->rank - 1] = w->dims[axis];
    return of_constants(r, n, 1, 2);
}

// Where feature i of ours stands in the file.
static uint64_t sorted(const struct known *x, uint64_t i) {
    if (x->layout != LAYOUT_MIXED) {
        return i;
    }
    uint64_t channel = i % x->plane[0], pixel = i / x->plane[0];
    return channel * x->plane[1] * x->plane[2] + pixel;
}

bool onnx_emit_linear(struct reading *r, const struct onnx_node *n, const struct onnx_tensor *added,
                      bool last) {
    const struct known *x = first_of(r, n);
    const struct onnx_tensor *bias = added ? added : onnx_constant(r, n, 2);
    uint32_t axis = 0;
    const struct onnx_tensor *w = weights_of(r, n, &axis);
    uint64_t outputs = w->dims[axis], inputs = w->dims[1 - axis];
    const uint64_t shape[2] = {outputs, inputs};
    char width[24] = "out";
    if (!last) {
        snprintf(width, sizeof width, "%llu", (unsigned long long)outputs);
    }
    onnx_write(r, bias ? "{linear: %s}" : "{linear: {outputs: %s, bias: false}}", width);
    float *to = onnx_add_piece(r, false, 2, shape);
    for (uint64_t o = 0; to && o < outputs; o++) {
        for (uint64_t i = 0; i < inputs; i++) {
            uint64_t from = sorted(x, i);
            to[o * inputs + i] = w->reals[axis == 0 ? o * inputs + from : from * outputs + o];
        }
    }
    return to && (!bias || add_vector(r, n, bias, outputs, 0.0f, false));
}

static bool emit_linear(struct reading *r, const struct onnx_node *n) {
    return onnx_emit_linear(r, n, NULL, false);
}

// ---- windows over images ----

struct window {
    uint64_t size, stride, padding;
};

// All of an attribute alike, or `otherwise`; -1: they differ.
static int64_t alike(const struct onnx_node *n, const char *name, uint32_t count,
                     int64_t otherwise) {
    const struct onnx_attribute *a = onnx_attribute(n, name);
    if (!a || a->count == 0) {
        return otherwise;
    }
    bool same = a->count == count && a->wholes[0] >= 0 && a->wholes[0] <= 1024;
    for (uint32_t i = 1; i < a->count; i++) {
        same = same && a->wholes[i] == a->wholes[0];
    }
    return same ? a->wholes[0] : -1;
}

static bool window_of(const struct reading *r, const struct onnx_node *n, int64_t size,
                      struct window *w) {
    const struct onnx_attribute *pad = onnx_attribute(n, "auto_pad");
    bool fixed = !pad || strcmp(pad->text, "NOTSET") == 0 || strcmp(pad->text, "VALID") == 0;
    size = alike(n, "kernel_shape", 2, size);
    int64_t stride = alike(n, "strides", 2, 1), padding = alike(n, "pads", 4, 0);
    if (size < 1 || stride < 1 || padding < 0 || !fixed) {
        onnx_lacks(r, n,
                   "has a window here of one size, stride and padding on all sides, up to 1024; "
                   "no auto_pad");
        return false;
    }
    if (alike(n, "dilations", 2, 1) != 1 || onnx_whole(n, "ceil_mode", 0) != 0) {
        onnx_lacks(r, n, "with dilations or ceil_mode has no layer here");
        return false;
    }
    *w = (struct window){(uint64_t)size, (uint64_t)stride, (uint64_t)padding};
    return true;
}

static bool infer_window(struct reading *r, const struct onnx_node *n, int64_t size,
                         struct known *out) {
    const struct known *x = first_of(r, n);
    struct window w = {0};
    if (x->rank != 3 || x->layout != LAYOUT_PLANES) {
        return onnx_lacks(r, n, "takes images [N][channels][height][width] alone");
    }
    if (!window_of(r, n, size, &w)) {
        return false;
    }
    *out = *x;
    for (uint32_t i = 0; i < 2; i++) {
        if (x->dim[i] + 2 * w.padding < w.size) {
            return onnx_lacks(r, n, "has a window larger than the image");
        }
        out->dim[i] = (x->dim[i] + 2 * w.padding - w.size) / w.stride + 1;
    }
    return true;
}

static const struct onnx_tensor *kernel_of(const struct reading *r, const struct onnx_node *n) {
    const struct onnx_tensor *w = onnx_constant(r, n, 1);
    return w && w->rank == 4 && w->reals && w->dims[2] == w->dims[3] && w->count > 0 ? w : NULL;
}

static bool infer_conv(struct reading *r, const struct onnx_node *n, struct known *out) {
    const struct onnx_tensor *w = kernel_of(r, n);
    if (!w || onnx_whole(n, "group", 1) != 1) {
        return onnx_lacks(r, n, "has a layer here with square constant weights and one group");
    }
    if (!infer_window(r, n, (int64_t)w->dims[2], out)) {
        return false;
    }
    if (alike(n, "kernel_shape", 2, (int64_t)w->dims[2]) != (int64_t)w->dims[2]) {
        return onnx_lacks(r, n, "has weights of another size than its kernel_shape");
    }
    if (out->dim[2] != w->dims[1]) {
        return onnx_lacks(r, n, "has weights for %llu channels, and %llu come",
                          (unsigned long long)w->dims[1], (unsigned long long)out->dim[2]);
    }
    out->dim[2] = w->dims[0];
    return of_constants(r, n, 1, 2);
}

static bool emit_conv(struct reading *r, const struct onnx_node *n) {
    const struct onnx_tensor *w = kernel_of(r, n), *bias = onnx_constant(r, n, 2);
    uint64_t outputs = w->dims[0], channels = w->dims[1], size = w->dims[2], pixels = size * size;
    const uint64_t shape[4] = {outputs, size, size, channels};
    struct window window = {0};
    if (!window_of(r, n, (int64_t)size, &window)) {
        return false;
    }
    if (window.padding >= size) {
        return onnx_lacks(r, n, "has a padding as wide as its window");
    }
    // What is as it would be anyway is left out: a config has room for so much.
    onnx_write(r, "{conv: {outputs: %llu, size: %llu", (unsigned long long)outputs,
               (unsigned long long)size);
    if (window.stride != 1) {
        onnx_write(r, ", stride: %llu", (unsigned long long)window.stride);
    }
    if (window.padding != (size - 1) / 2) {
        onnx_write(r, ", padding: %llu", (unsigned long long)window.padding);
    }
    onnx_write(r, bias ? "}}" : ", bias: false}}");
    float *to = onnx_add_piece(r, false, 4, shape);
    for (uint64_t i = 0; to && i < w->count; i++) {
        uint64_t channel = i % channels, pixel = i / channels % pixels, o = i / channels / pixels;
        to[i] = w->reals[(o * channels + channel) * pixels + pixel];
    }
    return to && (!bias || add_vector(r, n, bias, outputs, 0.0f, false));
}

static bool infer_window_pool(struct reading *r, const struct onnx_node *n, struct known *out) {
    return infer_window(r, n, -1, out);
}

static bool emit_window_pool(struct reading *r, const struct onnx_node *n) {
    struct window w = {0};
    bool mean = strcmp(n->op, "AveragePool") == 0;
    if (!window_of(r, n, -1, &w)) {
        return false;
    }
    bool without = mean && w.padding > 0 && !onnx_whole(n, "count_include_pad", 0);
    if (without || w.padding > w.size / 2) {
        return onnx_lacks(r, n,
                          without ? "that leaves the padding out of its mean has no layer here"
                                  : "has a padding over half its window");
    }
    onnx_write(r, "{%s: {size: %llu, stride: %llu, padding: %llu}}", mean ? "avg_pool" : "max_pool",
               (unsigned long long)w.size, (unsigned long long)w.stride,
               (unsigned long long)w.padding);
    return true;
}

// ---- pools over all places ----

// The axes of ReduceMean and its like, of the attribute or of a constant.
static bool reduces_places(const struct reading *r, const struct onnx_node *n,
                           const struct known *x) {
    const struct onnx_attribute *a = onnx_attribute(n, "axes");
    const struct onnx_tensor *t = onnx_constant(r, n, 1);
    const int64_t *axes = t ? t->wholes : a ? a->wholes : NULL;
    uint64_t count = t ? t->count : a ? a->count : 0;
    uint32_t seen = 0, wanted = 0;
    for (uint64_t i = 0; axes && i < count && i < READING_RANK; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + x->rank + 1 : axes[i];
        seen |= axis >= 0 && axis <= READING_RANK ? 1u << axis : 1u << 31;
    }
    for (uint32_t i = 0; i + 1 < x->rank; i++) {
        wanted |= 1u << (i + (x->layout == LAYOUT_PLANES ? 2 : 1));
    }
    return axes && count < READING_RANK && seen == wanted;
}

static bool infer_pool(struct reading *r, const struct onnx_node *n, struct known *out) {
    const struct known *x = first_of(r, n);
    bool global = strncmp(n->op, "Global", 6) == 0;
    bool good = x->rank > 1 && (global ? x->layout == LAYOUT_PLANES : reduces_places(r, n, x));
    *out = (struct known){.rank = 1, .dim = {x->dim[x->rank > 0 ? x->rank - 1 : 0]}};
    return good || onnx_lacks(r, n, "has a layer here over all places of a sample alone");
}

static bool emit_pool(struct reading *r, const struct onnx_node *n) {
    bool most = strcmp(n->op, "GlobalMaxPool") == 0 || strcmp(n->op, "ReduceMax") == 0;
    onnx_write(r, "{pool: %s}", most ? "max" : "mean");
    return true;
}

// ---- norms ----

static bool right_epsilon(const struct reading *r, const struct onnx_node *n) {
    const struct onnx_attribute *a = onnx_attribute(n, "epsilon");
    double epsilon = a ? (double)a->real : EPSILON;
    return fabs(epsilon - EPSILON) < 1e-8 ||
           onnx_lacks(r, n, "has an epsilon of %g; here it is %g", epsilon, EPSILON);
}

static bool infer_norm(struct reading *r, const struct onnx_node *n, struct known *out) {
    bool batch = strcmp(n->op, "BatchNormalization") == 0;
    *out = *first_of(r, n);
    return right_epsilon(r, n) && of_constants(r, n, batch ? 4 : 1, batch ? 4 : 2);
}

static bool emit_batch_norm(struct reading *r, const struct onnx_node *n) {
    const struct known *x = first_of(r, n);
    uint64_t count = x->dim[x->rank - 1];
    if (x->rank > 1 && x->layout != LAYOUT_PLANES) {
        return onnx_lacks(r, n, "is not over the last axis here");
    }
    onnx_write(r, "{norm: batch}");
    return add_vector(r, n, onnx_constant(r, n, 1), count, 1.0f, false) &&
           add_vector(r, n, onnx_constant(r, n, 2), count, 0.0f, false) &&
           add_vector(r, n, onnx_constant(r, n, 3), count, 0.0f, true) &&
           add_vector(r, n, onnx_constant(r, n, 4), count, 1.0f, true) &&
           add_vector(r, n, NULL, 1, 0.0f, true);
}

static bool emit_layer_norm(struct reading *r, const struct onnx_node *n) {
    const struct known *x = first_of(r, n);
    int64_t axis = onnx_whole(n, "axis", -1);
    if ((axis != -1 && axis != x->rank) || (x->layout == LAYOUT_PLANES && x->rank > 1)) {
        return onnx_lacks(r, n, "is over the last axis alone here");
    }
    onnx_write(r, "{norm: layer}");
    return add_vector(r, n, onnx_constant(r, n, 1), x->dim[x->rank - 1], 1.0f, false) &&
           add_vector(r, n, onnx_constant(r, n, 2), x->dim[x->rank - 1], 0.0f, false);
}

// ---- axes ----

static bool infer_flatten(struct reading *r, const struct onnx_node *n, struct known *out) {
    const struct known *x = first_of(r, n);
    const struct onnx_tensor *shape = onnx_constant(r, n, 1);
    uint64_t count = 1;
    for (uint32_t i = 0; i < x->rank; i++) {
        count *= x->dim[i];
    }
    if (strcmp(n->op, "Reshape") == 0) {
        bool plain = shape && shape->wholes && shape->count == 2 && shape->wholes[0] <= 1 &&
                     (shape->wholes[1] == -1 || (uint64_t)shape->wholes[1] == count);
        if (!plain) {
            return onnx_lacks(r, n, "has a layer here where it makes one axis of a sample");
        }
    } else if (onnx_whole(n, "axis", 1) != 1 || (strcmp(n->op, "Squeeze") == 0 && x->rank > 1)) {
        return onnx_lacks(r, n, "keeps the batch, and makes one axis of the rest, here");
    }
    *out = (struct known){.rank = 1, .dim = {count}, .layout = x->layout};
    if (x->layout == LAYOUT_PLANES) {
        bool points = x->rank == 2;
        const uint64_t plane[READING_RANK] = {x->dim[x->rank - 1], x->dim[0],
                                              points ? 1 : x->dim[1]};
        memcpy(out->plane, plane, sizeof plane);
        out->layout = plane[0] > 1 && plane[1] * plane[2] > 1 ? LAYOUT_MIXED : LAYOUT_ROWS;
    } else if (x->layout == LAYOUT_MIXED) {
        *out = *x;
    }
    return true;
}

static bool emit_flatten(struct reading *r, const struct onnx_node *n) {
    (void)n;
    onnx_write(r, "flatten");
    return true;
}

// Channels to the front, or to the end.
static bool infer_transpose(struct reading *r, const struct onnx_node *n, struct known *out) {
    const struct known *x = first_of(r, n);
    const struct onnx_attribute *perm = onnx_attribute(n, "perm");
    bool front = perm && perm->count == x->rank + 1 && perm->wholes[0] == 0, end = front;
    for (uint32_t i = 1; perm && i <= x->rank; i++) {
        front = front && perm->wholes[i] == (i == 1 ? (int64_t)x->rank : (int64_t)i - 1);
        end = end && perm->wholes[i] == (i == x->rank ? 1 : (int64_t)i + 1);
    }
    bool to_front = front && x->layout == LAYOUT_ROWS, to_end = end && x->layout == LAYOUT_PLANES;
    *out = *x;
    out->layout = to_front ? LAYOUT_PLANES : LAYOUT_ROWS;
    return (x->rank > 1 && (to_front || to_end)) ||
           onnx_lacks(r, n, "moves channels to the front or to the end alone here");
}

// Whether an axis of the file is that of the channels.
static bool of_channels(const struct known *x, int64_t axis) {
    axis = axis < 0 ? axis + x->rank + 1 : axis;
    return axis == (x->layout == LAYOUT_PLANES ? 1 : (int64_t)x->rank);
}

static bool slice_of(const struct reading *r, const struct onnx_node *n, const struct known *x,
                     uint64_t *first, uint64_t *count) {
    const struct onnx_tensor *t[4];
    for (uint32_t i = 0; i < 4; i++) {
        t[i] = onnx_constant(r, n, i + 1);
        bool absent = i == 3 && n->input_count < 5;
        if (!absent && (!t[i] || !t[i]->wholes || t[i]->count != 1)) {
            return onnx_lacks(r, n, "has a layer here of one axis and constant places");
        }
    }
    int64_t width = (int64_t)x->dim[x->rank - 1], from = t[0]->wholes[0], to = t[1]->wholes[0];
    from = from < 0 ? from + width : from;
    to = to < 0 ? to + width : to > width ? width : to;
    if (!of_channels(x, t[2]->wholes[0]) || (t[3] && t[3]->wholes[0] != 1) || from < 0 ||
        to <= from || x->layout == LAYOUT_MIXED) {
        return onnx_lacks(r, n, "has a layer here over some channels, one behind the other");
    }
    *first = (uint64_t)from;
    *count = (uint64_t)(to - from);
    return true;
}

static bool infer_slice(struct reading *r, const struct onnx_node *n, struct known *out) {
    uint64_t first = 0;
    *out = *first_of(r, n);
    return slice_of(r, n, first_of(r, n), &first, &out->dim[out->rank - 1]);
}

static bool emit_slice(struct reading *r, const struct onnx_node *n) {
    uint64_t first = 0, count = 0;
    if (!slice_of(r, n, first_of(r, n), &first, &count)) {
        return false;
    }
    onnx_write(r, "{columns: {first: %llu, count: %llu}}", (unsigned long long)first,
               (unsigned long long)count);
    return true;
}

static bool infer_concat(struct reading *r, const struct onnx_node *n, struct known *out) {
    const struct known x = *first_of(r, n);
    uint64_t width = 0;
    for (uint32_t i = 0; i < n->input_count; i++) {
        struct known other = {0};
        if (n->inputs[i] != ONNX_NONE) {
            other = r->known[n->inputs[i]];
        }
        width += other.known ? other.dim[other.rank - 1] : 0;
        other.dim[x.rank - 1] = x.dim[x.rank - 1];
        if (!other.known || !same_known(&x, &other) || x.layout == LAYOUT_MIXED ||
            !of_channels(&x, onnx_whole(n, "axis", 0))) {
            return onnx_lacks(r, n, "puts channels one behind the other alone here");
        }
    }
    *out = x;
    out->dim[out->rank - 1] = width;
    return true;
}

// Before opset 13 the axis is the first otherwise, from then on the last.
static bool infer_softmax(struct reading *r, const struct onnx_node *n, struct known *out) {
    int64_t axis = onnx_whole(n, "axis", r->model->opset < 13 ? 1 : -1);
    *out = *first_of(r, n);
    return (out->rank == 1 && of_channels(out, axis)) ||
           onnx_lacks(r, n, "is over the classes of one axis alone here, and not over axis %lld",
                      (long long)axis);
}

static const struct onnx_op operators[] = {
    {"Add", infer_pair, NULL},
    {"Sub", infer_pair, NULL},
    {"Mul", infer_pair, NULL},
    {"Div", infer_pair, NULL},
    {"Pow", infer_pair, NULL},
    {"Relu", infer_same, NULL},
    {"Tanh", infer_same, NULL},
    {"Sigmoid", infer_same, NULL},
    {"Erf", infer_same, NULL},
    {"Sqrt", infer_same, NULL},
    {"Exp", infer_same, NULL},
    {"Neg", infer_same, NULL},
    {"Gelu", infer_same, NULL},
    {"Identity", infer_same, NULL},
    {"Dropout", infer_same, NULL},
    {"Softmax", infer_softmax, NULL},
    {"LogSoftmax", infer_softmax, NULL},
    {"Transpose", infer_transpose, NULL},
    {"Concat", infer_concat, NULL},
    {"Gemm", infer_linear, emit_linear},
    {"MatMul", infer_linear, emit_linear},
    {"Conv", infer_conv, emit_conv},
    {"MaxPool", infer_window_pool, emit_window_pool},
    {"AveragePool", infer_window_pool, emit_window_pool},
    {"GlobalAveragePool", infer_pool, emit_pool},
    {"GlobalMaxPool", infer_pool, emit_pool},
    {"ReduceMean", infer_pool, emit_pool},
    {"ReduceMax", infer_pool, emit_pool},
    {"BatchNormalization", infer_norm, emit_batch_norm},
    {"LayerNormalization", infer_norm, emit_layer_norm},
    {"Flatten", infer_flatten, emit_flatten},
    {"Reshape", infer_flatten, emit_flatten},
    {"Squeeze", infer_flatten, emit_flatten},
    {"Slice", infer_slice, emit_slice},
};

const struct onnx_op *onnx_operator(const char *op) {
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (strcmp(operators[i].op, op) == 0) {
            return &operators[i];
        }
    }
    return NULL;
}
