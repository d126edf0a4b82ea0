// SPDX-License-Identifier: Apache-2.0
// Recording a graph, and its file.
#include "gpurt/onnx.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/whole_file.h"
#include "gpurt/device.h"
#include "gpurt/params.h"
#include "proto.h"
#include "wire.h"

#define NAME 128

// A list of pointers that grows; what they point to stays where it is.
struct list {
    void **items;
    uint32_t count;
};

struct node {
    struct grt_onnx_node desc;
    char op[32], name[NAME];  // of the node, and of what it gives
    char inputs[GRT_ONNX_INPUTS][NAME];
};

struct constant {
    char name[NAME];
    uint32_t rank;
    uint64_t shape[GRT_MAX_RANK];
    int64_t *wholes;  // or
    float *reals;     // or a parameter of the archive
};

struct edge {  // of the graph
    char name[NAME];
    uint32_t rank;
    uint64_t shape[GRT_MAX_RANK];
};

struct grt_onnx {
    struct list nodes, constants, inputs, outputs;
    enum grt_status status;  // of the first mistake
    char why[512];
};

struct grt_onnx *grt_onnx_create(void) {
    struct grt_onnx *onnx = calloc(1, sizeof *onnx);
    if (!onnx) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a graph");
    }
    return onnx;
}

static void empty(struct list *list) {
    for (uint32_t i = 0; i < list->count; i++) {
        free(list->items[i]);
    }
    free(list->items);
}

void grt_onnx_destroy(struct grt_onnx **onnx) {
    struct grt_onnx *o = onnx ? *onnx : NULL;
    if (!o) {
        return;
    }
    *onnx = NULL;
    for (uint32_t i = 0; i < o->constants.count; i++) {
        const struct constant *c = o->constants.items[i];
        free(c->wholes);
        free(c->reals);
    }
    empty(&o->nodes);
    empty(&o->constants);
    empty(&o->inputs);
    empty(&o->outputs);
    free(o);
}

static void stick(struct grt_onnx *o, enum grt_status status, const char *why) {
    if (o->status == GRT_OK) {
        o->status = status;
        snprintf(o->why, sizeof o->why, "%s", why);
    }
}

struct grt_onnx_value grt_onnx_refuse(struct grt_onnx *o, const char *format, ...) {
    char why[sizeof o->why];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    stick(o, GRT_UNSUPPORTED, why);
    return (struct grt_onnx_value){.name = "", .rank = 1};
}

// A new item of `size` bytes, zero; NULL, which sticks, without host memory.
static void *add(struct grt_onnx *o, struct list *list, size_t size) {
    void *item = calloc(1, size);
    void **items = item ? realloc(list->items, (list->count + 1) * sizeof *items) : NULL;
    if (!items) {
        free(item);
        stick(o, GRT_NO_MEMORY, "no host memory for a graph");
        return NULL;
    }
    list->items = items;
    list->items[list->count++] = item;
    return item;
}

// ---- recording ----

static struct edge *add_edge(struct grt_onnx *o, struct list *list, const char *name, uint32_t rank,
                             const uint64_t *shape) {
    struct edge *e = add(o, list, sizeof *e);
    if (e) {
        snprintf(e->name, sizeof e->name, "%s", name);
        e->rank = rank < GRT_MAX_RANK ? rank : GRT_MAX_RANK;
        memcpy(e->shape, shape, e->rank * sizeof *shape);
    }
    return e;
}

struct grt_onnx_value grt_onnx_input(struct grt_onnx *o, const char *name, uint32_t rank,
                                     const uint64_t *shape) {
    const struct edge *e = add_edge(o, &o->inputs, name, rank, shape);
    return (struct grt_onnx_value){.name = e ? e->name : "", .rank = rank};
}

const char *grt_onnx_add(struct grt_onnx *o, const struct grt_onnx_node *desc) {
    struct node *n = add(o, &o->nodes, sizeof *n);
    if (!n) {
        return "";
    }
    n->desc = *desc;
    snprintf(n->op, sizeof n->op, "%s", desc->op);
    snprintf(n->name, sizeof n->name, "%s_%u", n->op, o->nodes.count);
    for (uint32_t i = 0; i < GRT_ONNX_INPUTS && desc->inputs[i]; i++) {
        snprintf(n->inputs[i], NAME, "%s", desc->inputs[i]);
    }
    return n->name;
}

struct grt_onnx_value grt_onnx_map(struct grt_onnx *o, const char *op, struct grt_onnx_value x) {
    x.name = grt_onnx_add(o, grt_onnx_node(.op = op, .inputs = {x.name}));
    return x;
}

static struct constant *add_constant(struct grt_onnx *o, const char *name, uint32_t rank,
                                     const uint64_t *shape) {
    struct constant *c = add(o, &o->constants, sizeof *c);
    if (c) {
        c->rank = rank;
        memcpy(c->shape, shape, rank * sizeof *shape);
        if (name) {
            snprintf(c->name, sizeof c->name, "%s", name);
        } else {
            snprintf(c->name, sizeof c->name, "constant_%u", o->constants.count);
        }
    }
    return c;
}

static uint64_t numbers_of(const struct constant *c) {
    uint64_t count = 1;
    for (uint32_t i = 0; i < c->rank; i++) {
        count *= c->shape[i];
    }
    return count;
}

const char *grt_onnx_param(struct grt_onnx *o, const struct grt_param *param) {
    uint64_t s[GRT_MAX_RANK];
    memcpy(s, param->shape, sizeof s);
    for (uint32_t i = 0; i < o->constants.count; i++) {
        const struct constant *c = o->constants.items[i];
        if (strcmp(c->name, param->name) == 0) {
            return c->name;
        }
    }
    if (param->rank == 4) {
        uint64_t planes[4] = {s[0], s[3], s[1], s[2]};
        memcpy(s, planes, sizeof planes);
    }
    const struct constant *c = add_constant(o, param->name, param->rank, s);
    return c ? c->name : "";
}

const char *grt_onnx_reals(struct grt_onnx *o, uint32_t rank, const uint64_t *shape,
                           const float *numbers) {
    struct constant *c = add_constant(o, NULL, rank, shape);
    if (!c) {
        return "";
    }
    uint64_t bytes = numbers_of(c) * sizeof *numbers;
    c->reals = malloc(bytes);
    if (!c->reals) {
        stick(o, GRT_NO_MEMORY, "no host memory for a graph");
        return "";
    }
    memcpy(c->reals, numbers, bytes);
    return c->name;
}

const char *grt_onnx_real(struct grt_onnx *o, float number) {
    return grt_onnx_reals(o, 0, (const uint64_t[1]){0}, &number);
}

const char *grt_onnx_wholes(struct grt_onnx *o, const int64_t *numbers, uint32_t count) {
    const uint64_t shape[1] = {count};
    struct constant *c = add_constant(o, NULL, 1, shape);
    if (!c) {
        return "";
    }
    c->wholes = malloc((count + 1) * sizeof *numbers);
    if (!c->wholes) {
        stick(o, GRT_NO_MEMORY, "no host memory for a graph");
        return "";
    }
    memcpy(c->wholes, numbers, count * sizeof *numbers);
    return c->name;
}

// ---- axes ----

struct grt_onnx_value grt_onnx_rows(struct grt_onnx *o, struct grt_onnx_value x) {
    if (!x.planes) {
        return x;
    }
    struct grt_onnx_node node = {
        .op = "Transpose",
        .inputs = {x.name},
        .attributes = {{.name = "perm", .type = GRT_ONNX_WHOLES, .count = x.rank + 1}}};
    for (uint32_t i = 1; i < x.rank; i++) {
        node.attributes[0].wholes[i] = i + 1;
    }
    node.attributes[0].wholes[x.rank] = 1;
    return (struct grt_onnx_value){.name = grt_onnx_add(o, &node), .rank = x.rank};
}

struct grt_onnx_value grt_onnx_planes(struct grt_onnx *o, struct grt_onnx_value x) {
    if (x.planes || x.rank < 2) {
        return x;
    }
    struct grt_onnx_node node = {
        .op = "Transpose",
        .inputs = {x.name},
        .attributes = {{.name = "perm", .type = GRT_ONNX_WHOLES, .count = x.rank + 1}}};
    node.attributes[0].wholes[1] = x.rank;
    for (uint32_t i = 2; i <= x.rank; i++) {
        node.attributes[0].wholes[i] = i - 1;
    }
    return (struct grt_onnx_value){.name = grt_onnx_add(o, &node), .rank = x.rank, .planes = true};
}

struct grt_onnx_value grt_onnx_flat(struct grt_onnx *o, struct grt_onnx_value x) {
    x = grt_onnx_rows(o, x);
    if (x.rank < 2) {
        return x;
    }
    return (struct grt_onnx_value){
        .name = grt_onnx_add(o, grt_onnx_node(.op = "Flatten", .inputs = {x.name},
                                              .attributes = {{.name = "axis", .whole = 1}})),
        .rank = 1};
}

void grt_onnx_output(struct grt_onnx *o, const char *name, struct grt_onnx_value y, uint32_t rank,
                     const uint64_t *shape) {
    y = grt_onnx_rows(o, y);
    struct node *last = o->nodes.count > 0 ? o->nodes.items[o->nodes.count - 1] : NULL;
    if (!last || strcmp(last->name, y.name) != 0) {
        grt_onnx_map(o, "Identity", y);
        last = o->nodes.count > 0 ? o->nodes.items[o->nodes.count - 1] : NULL;
    }
    if (last) {
        snprintf(last->name, sizeof last->name, "%s", name);
    }
    add_edge(o, &o->outputs, name, rank, shape);
}

// ---- the file ----

static void write_edge(struct wire *w, uint32_t field, const struct edge *e) {
    size_t value = wire_begin(w, field);
    wire_text(w, VALUE_NAME, e->name);
    size_t type = wire_begin(w, VALUE_TYPE);
    size_t tensor = wire_begin(w, TYPE_TENSOR);
    wire_whole(w, TENSOR_TYPE_ELEMENT, ELEMENT_FLOAT);
    size_t shape = wire_begin(w, TENSOR_TYPE_SHAPE);
    size_t batch = wire_begin(w, SHAPE_DIM);
    wire_text(w, DIM_NAME, "batch");
    wire_end(w, batch);
    for (uint32_t i = 0; i < e->rank; i++) {
        size_t dim = wire_begin(w, SHAPE_DIM);
        wire_whole(w, DIM_VALUE, (int64_t)e->shape[i]);
        wire_end(w, dim);
    }
    wire_end(w, shape);
    wire_end(w, tensor);
    wire_end(w, type);
    wire_end(w, value);
}

static void write_attribute(struct wire *w, const struct grt_onnx_attribute *a) {
    size_t at = wire_begin(w, NODE_ATTRIBUTE);
    wire_text(w, ATTRIBUTE_NAME, a->name);
    if (a->type == GRT_ONNX_REAL) {
        wire_real(w, ATTRIBUTE_F, a->real);
    } else if (a->type == GRT_ONNX_WHOLE) {
        wire_whole(w, ATTRIBUTE_I, a->whole);
    }
    for (uint32_t i = 0; a->type == GRT_ONNX_WHOLES && i < a->count; i++) {
        wire_whole(w, ATTRIBUTE_INTS, a->wholes[i]);
    }
    wire_whole(w, ATTRIBUTE_TYPE,
               a->type == GRT_ONNX_REAL    ? ATTRIBUTE_IS_FLOAT
               : a->type == GRT_ONNX_WHOLE ? ATTRIBUTE_IS_INT
                                           : ATTRIBUTE_IS_INTS);
    wire_end(w, at);
}

static void write_node(struct wire *w, const struct node *n) {
    size_t at = wire_begin(w, GRAPH_NODE);
    for (uint32_t i = 0; i < GRT_ONNX_INPUTS && n->desc.inputs[i]; i++) {
        wire_text(w, NODE_INPUT, n->inputs[i]);
    }
    wire_text(w, NODE_OUTPUT, n->name);
    wire_text(w, NODE_NAME, n->name);
    wire_text(w, NODE_OP, n->op);
    for (uint32_t i = 0; i < GRT_ONNX_ATTRIBUTES && n->desc.attributes[i].name; i++) {
        write_attribute(w, &n->desc.attributes[i]);
    }
    wire_end(w, at);
}

// The numbers of a parameter, of four axes with the channels before the window; to be freed. NULL
// with the sentence.
static float *param_numbers(const struct constant *c, const struct grt_archive *archive) {
    char name[GRT_ARCHIVE_NAME];
    snprintf(name, sizeof name, "model/%s", c->name);
    const struct grt_archive_tensor *t = grt_archive_find(archive, name);
    uint64_t own[GRT_MAX_RANK];
    memcpy(own, c->shape, sizeof own);
    if (c->rank == 4) {
        uint64_t last[4] = {own[0], own[2], own[3], own[1]};
        memcpy(own, last, sizeof last);
    }
    bool same = t && t->dtype == GRT_F32 && t->rank == c->rank;
    for (uint32_t i = 0; same && i < c->rank; i++) {
        same = t->shape[i] == own[i];
    }
    if (!same) {
        grt_fail(GRT_BAD_DATA, "%s: tensor '%s' %s", archive->path, name,
                 t ? "has another type or shape than the network's" : "is missing");
        return NULL;
    }
    float *numbers = malloc(t->bytes + sizeof *numbers);
    if (!numbers) {
        grt_fail(GRT_NO_MEMORY, "no host memory for '%s'", name);
        return NULL;
    }
    if (c->rank != 4) {
        memcpy(numbers, t->data, t->bytes);
        return numbers;
    }
    uint64_t pixels = c->shape[2] * c->shape[3], channels = c->shape[1];
    for (uint64_t i = 0; i < numbers_of(c); i++) {
        uint64_t pixel = i % pixels, channel = i / pixels % channels, at = i / pixels / channels;
        numbers[i] = ((const float *)t->data)[(at * pixels + pixel) * channels + channel];
    }
    return numbers;
}

static bool write_constant(struct wire *w, const struct constant *c,
                           const struct grt_archive *archive) {
    float *numbers = c->wholes || c->reals ? NULL : param_numbers(c, archive);
    if (!c->wholes && !c->reals && !numbers) {
        return false;
    }
    const void *data = c->wholes ? (const void *)c->wholes : c->reals ? c->reals : numbers;
    size_t at = wire_begin(w, GRAPH_INITIALIZER);
    for (uint32_t i = 0; i < c->rank; i++) {
        wire_whole(w, TENSOR_DIMS, (int64_t)c->shape[i]);
    }
    wire_whole(w, TENSOR_TYPE, c->wholes ? ELEMENT_INT64 : ELEMENT_FLOAT);
    wire_text(w, TENSOR_NAME, c->name);
    wire_bytes(w, TENSOR_RAW, data,
               numbers_of(c) * (c->wholes ? sizeof *c->wholes : sizeof *c->reals));
    wire_end(w, at);
    free(numbers);
    return true;
}

static bool write_graph(struct wire *w, const struct grt_onnx *o,
                        const struct grt_archive *archive) {
    bool good = true;
    size_t at = wire_begin(w, MODEL_GRAPH);
    for (uint32_t i = 0; i < o->nodes.count; i++) {
        write_node(w, o->nodes.items[i]);
    }
    wire_text(w, GRAPH_NAME, "gpurt");
    for (uint32_t i = 0; good && i < o->constants.count; i++) {
        good = write_constant(w, o->constants.items[i], archive);
    }
    for (uint32_t i = 0; i < o->inputs.count; i++) {
        write_edge(w, GRAPH_INPUT, o->inputs.items[i]);
    }
    for (uint32_t i = 0; i < o->outputs.count; i++) {
        write_edge(w, GRAPH_OUTPUT, o->outputs.items[i]);
    }
    wire_end(w, at);
    return good;
}

bool grt_onnx_save(struct grt_onnx *o, const struct grt_archive *archive, const char *path) {
    struct wire w = {0};
    if (!o || !archive || !path) {
        return grt_fail(GRT_INVALID, "a graph, an archive and a path are wanted");
    }
    if (o->status != GRT_OK) {
        return grt_fail(o->status, "%s", o->why);
    }
    wire_whole(&w, MODEL_IR_VERSION, ONNX_IR_VERSION);
    wire_text(&w, MODEL_PRODUCER, "gpurt");
    wire_text(&w, MODEL_PRODUCER_VERSION, GPURT_VERSION);
    bool good = write_graph(&w, o, archive);
    size_t opset = wire_begin(&w, MODEL_OPSET);
    wire_text(&w, OPSET_DOMAIN, "");
    wire_whole(&w, OPSET_VERSION, GRT_ONNX_OPSET);
    wire_end(&w, opset);
    if (good && w.failed) {
        good = grt_fail(GRT_NO_MEMORY, "no host memory for %s", path);
    }
    if (good && w.size > ONNX_MOST_BYTES) {
        good = grt_fail(GRT_UNSUPPORTED,
                        "%s: %zu bytes, and readers of ONNX take 2 GiB: use safetensors", path,
                        w.size);
    }
    good = good && grt_whole_file_save(path, w.bytes, w.size);
    free(w.bytes);
    return good;
}
