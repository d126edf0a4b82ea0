// SPDX-License-Identifier: Apache-2.0
// What all modules have in common: shapes, the list of layers, and sums of gradients where branches
// meet.
#include "gpurt/module.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gpurt/profile.h"
#include "layer_ops.h"

// ---- shapes ----

uint64_t grt_shape_count(const struct grt_shape *shape) {
    uint64_t count = shape && shape->rank > 0;
    for (uint32_t i = 0; shape && i < shape->rank; i++) {
        count *= shape->dim[i];
    }
    return count;
}

bool grt_shape_equal(const struct grt_shape *a, const struct grt_shape *b) {
    bool equal = a->rank == b->rank;
    for (uint32_t i = 0; equal && i < a->rank; i++) {
        equal = a->dim[i] == b->dim[i];
    }
    return equal;
}

const char *grt_shape_text(const struct grt_shape *shape, char text[GRT_SHAPE_TEXT]) {
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < shape->rank && used < GRT_SHAPE_TEXT; i++) {
        used += (size_t)snprintf(text + used, GRT_SHAPE_TEXT - used, "[%llu]",
                                 (unsigned long long)shape->dim[i]);
    }
    return text;
}

// ---- the net ----

struct grt_tensor *grt_net_tensor(struct grt_net *net, const struct grt_tensor_desc *desc) {
    struct grt_tensor *tensor = grt_plan_tensor(net->plan, desc);
    net->params->failed |= !tensor;
    return tensor;
}

static struct grt_tensor *samples(struct grt_net *net, const char *group, const char *prefix,
                                  const char *name, const struct grt_shape *shape) {
    char label[48];
    struct grt_tensor_desc desc = {
        .label = label, .group = group, .dtype = net->dtype, .shape = {net->rows}};
    snprintf(label, sizeof label, "%.36s%.11s", prefix, name);
    for (uint32_t i = 0; i < shape->rank; i++) {
        desc.shape[1 + i] = shape->dim[i];
    }
    return grt_net_tensor(net, &desc);
}

struct grt_tensor *grt_net_activation(struct grt_net *net, const char *prefix, const char *name,
                                      const struct grt_shape *shape) {
    return samples(net, "acts", prefix, name, shape);
}

struct grt_tensor *grt_net_turn(struct grt_net *net, const char *prefix, const char *name,
                                const struct grt_shape *shape) {
    return samples(net, "turns", prefix, name, shape);
}

uint64_t grt_net_pitch(const struct grt_net *net, uint64_t inputs) {
    uint64_t bytes = grt_profile_whole(grt_dev_profile(net->dev), GRT_KEY_ROW_BYTES);
    uint64_t multiple = (bytes > 4 ? bytes : 4) / grt_dtype_size(net->dtype);
    while ((multiple & (multiple - 1)) != 0) {
        multiple &= multiple - 1;  // a power of two
    }
    return (inputs + multiple - 1) / multiple * multiple;
}

void grt_net_scratch(struct grt_net *net, uint64_t bytes) {
    net->scratch_bytes = bytes > net->scratch_bytes ? bytes : net->scratch_bytes;
}

void grt_net_finish(struct grt_net *net) {
    grt_buf_destroy(&net->down);
    grt_buf_destroy(&net->up);
    free(net->all);
    free(net->layers);
    net->all = NULL;
    net->layers = NULL;
    net->layer_count = 0;
}

// A new row; its number, or UINT32_MAX without host memory.
static uint32_t add_layer(struct grt_net *net, const char *prefix) {
    struct grt_net_layer *layers =
        realloc(net->layers, (net->layer_count + 1) * sizeof *net->layers);
    if (!layers) {
        net->params->failed = true;
        return UINT32_MAX;
    }
    net->layers = layers;
    struct grt_net_layer *layer = &layers[net->layer_count];
    *layer = (struct grt_net_layer){.depth = net->depth};
    snprintf(layer->name, sizeof layer->name, "%s", prefix);
    size_t length = strlen(layer->name);
    if (length > 0 && layer->name[length - 1] == '.') {
        layer->name[length - 1] = '\0';
    }
    return net->layer_count++;
}

static uint64_t activation_bytes(const struct grt_net *net) {
    return grt_plan_bytes(net->plan, "acts") + grt_plan_bytes(net->plan, "checkpoints") +
           grt_plan_bytes(net->plan, "turns");
}

// ---- modules ----

struct grt_shape grt_module_refuse(const struct grt_module *module, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char kind[64];
    snprintf(kind, sizeof kind, "%s: ", module->fns->kind);
    bool said = strcmp(module->where, kind) == 0;  // by the name of its text
    grt_fail(module->where[0] ? GRT_CONFIG : GRT_INVALID, "%s%s%s", module->where, said ? "" : kind,
             text);
    return (struct grt_shape){0};
}

struct grt_shape grt_module_declare(struct grt_module *module, struct grt_net *net,
                                    const char *prefix, const struct grt_shape *in) {
    if (module->net) {
        return grt_module_refuse(module, "a module can be declared once");
    }
    uint32_t row = add_layer(net, prefix);
    uint64_t numbers = net->params->numbers, bytes = activation_bytes(net);
    module->net = net;
    module->in = *in;
    net->depth++;
    module->out = module->fns->declare(module, net, prefix, in);
    net->depth--;
    if (module->out.rank == 0 || row == UINT32_MAX) {
        return module->out;
    }
    for (uint32_t i = row + 1; i < net->layer_count; i++) {
        module->operations += net->layers[i].parts ? 0 : net->layers[i].operations;
    }
    struct grt_net_layer *layer = &net->layers[row];
    layer->kind = module->fns->kind;
    layer->parts = module->has_parts;
    layer->in = *in;
    layer->out = module->out;
    layer->parameters = net->params->numbers - numbers;
    layer->activations = activation_bytes(net) - bytes;
    layer->operations = module->operations;
    return module->out;
}

void grt_module_prefix(const struct grt_module *part, const char *prefix, const char *own,
                       char name[GRT_PARAM_NAME]) {
    bool nameless = part && part->nameless;
    const char *word = part && part->name[0] ? part->name : own;
    snprintf(name, GRT_PARAM_NAME, "%.70s%s%s", prefix, nameless ? "" : word, nameless ? "" : ".");
}

void grt_module_meets(struct grt_module *module, const char *prefix) {
    if (!module->adds_dx && !module->net->inference) {
        module->lone = grt_net_turn(module->net, prefix, "dx", &module->in);
    }
}

void grt_pass_saw(const struct grt_pass *pass, const struct grt_tensor *tensor, const char *format,
                  ...) {
    if (pass->saw) {
        char name[192];
        va_list args;
        va_start(args, format);
        vsnprintf(name, sizeof name, format, args);
        va_end(args);
        pass->saw(pass->context, pass->graph, tensor, name);
    }
}

void grt_module_forward(struct grt_module *module, const struct grt_pass *pass,
                        const struct grt_tensor *x, const struct grt_tensor *y) {
    module->fns->forward(module, pass, x, y);
}

void grt_module_backward(struct grt_module *module, const struct grt_pass *pass,
                         const struct grt_tensor *x, const struct grt_tensor *dy,
                         const struct grt_tensor *dx, bool add_dx) {
    if (!dx || !add_dx || module->adds_dx) {
        module->fns->backward(module, pass, x, dy, dx, dx && add_dx);
        return;
    }
    struct grt_tensor own = grt_nn_rows(module->lone, dx->shape[0]);
    module->fns->backward(module, pass, x, dy, &own, false);
    grt_nn_add(pass->graph, dx, &own, dx);
}

struct grt_onnx_value grt_module_onnx(const struct grt_module *module, struct grt_onnx *onnx,
                                      struct grt_onnx_value x) {
    return module->fns->onnx ? module->fns->onnx(module, onnx, x)
                             : grt_onnx_refuse(onnx, "%s%s: this layer has no form in ONNX",
                                               module->where, module->fns->kind);
}

void grt_module_destroy(struct grt_module **module) {
    if (module && *module) {
        (*module)->fns->destroy(*module);
        *module = NULL;
    }
}
