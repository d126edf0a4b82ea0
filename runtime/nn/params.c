// SPDX-License-Identifier: Apache-2.0
#include "gpurt/params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/device.h"
#include "gpurt/ops.h"
#include "base/log.h"

void grt_params_init(struct grt_params *params, struct grt_dev *dev, enum grt_dtype type) {
    // In 16 bits an element takes half the bytes, so this many are aligned in both widths.
    *params = (struct grt_params){.dev = dev, .type = type, .unit = grt_dev_align(dev) / 2};
}

static void free_list(struct grt_param **list, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        free(list[i]);
    }
    free(list);
}

void grt_params_finish(struct grt_params *params) {
    free_list(params->list, params->count);
    free_list(params->buffers, params->buffer_count);
    *params = (struct grt_params){0};
}

// A new entry of a list, behind `elements` others.
static struct grt_param *add(struct grt_params *params, struct grt_param ***list, uint32_t *count,
                             uint64_t *elements, const char *prefix, const char *name,
                             const uint64_t *shape) {
    struct grt_param **longer = realloc(*list, (*count + 1) * sizeof(struct grt_param *));
    if (longer) {
        *list = longer;
    }
    struct grt_param *param = longer ? calloc(1, sizeof *param) : NULL;
    if (!param) {
        params->failed = true;
        return NULL;
    }
    int length = snprintf(param->name, sizeof param->name, "%s%s", prefix, name);
    params->failed |= length < 0 || (size_t)length >= sizeof param->name;
    param->first = *elements;
    param->count = 1;
    while (param->rank < GRT_MAX_RANK && shape[param->rank] > 0) {
        param->shape[param->rank] = shape[param->rank];
        param->count *= shape[param->rank];
        param->rank++;
    }
    (*list)[(*count)++] = param;
    *elements += (param->count + params->unit - 1) / params->unit * params->unit;
    return param;
}

struct grt_param *grt_params_add(struct grt_params *params, const char *prefix, const char *name,
                                 const uint64_t *shape, enum grt_init init, float bound) {
    struct grt_param *param =
        add(params, &params->list, &params->count, &params->elements, prefix, name, shape);
    if (param) {
        param->init = init;
        param->bound = bound;
        params->numbers += param->count;
    }
    return param;
}

struct grt_param *grt_params_add_buffer(struct grt_params *params, const char *prefix,
                                        const char *name, const uint64_t *shape, float value) {
    struct grt_param *buffer = add(params, &params->buffers, &params->buffer_count,
                                   &params->buffer_elements, prefix, name, shape);
    if (buffer) {
        buffer->init = GRT_INIT_VALUE;
        buffer->bound = value;
    }
    return buffer;
}

static struct grt_tensor *group_tensor(struct grt_params *params, struct grt_plan *plan,
                                       const char *name, enum grt_dtype dtype, uint64_t elements) {
    struct grt_tensor *tensor = grt_plan_tensor(
        plan, grt_tensor_desc(.label = name, .group = name, .dtype = dtype, .shape = {elements}));
    params->failed |= !tensor;
    return tensor;
}

void grt_params_declare(struct grt_params *params, struct grt_plan *plan, bool grads) {
    params->master = group_tensor(params, plan, "params", GRT_F32, params->elements);
    if (params->type != GRT_F32) {
        params->copy = group_tensor(params, plan, "params16", params->type, params->elements);
    }
    if (grads) {
        params->grad = group_tensor(params, plan, "grads", GRT_F32, params->elements);
    }
    if (params->buffer_count > 0) {
        params->buffer = group_tensor(params, plan, "buffers", GRT_F32, params->buffer_elements);
    }
}

struct grt_tensor grt_params_view(const struct grt_param *param, const struct grt_tensor *whole,
                                  uint64_t first) {
    uint64_t size = grt_dtype_size(whole->dtype);
    struct grt_tensor view = {.dtype = whole->dtype, .rank = param->rank};
    memcpy(view.shape, param->shape, sizeof view.shape);
    view.range = (struct grt_range){
        whole->range.buf, whole->range.offset + (first + param->first) * size, param->count * size};
    snprintf(view.label, sizeof view.label, "%.47s", param->name);
    return view;
}

void grt_params_place(struct grt_params *params) {
    for (uint32_t i = 0; i < params->count; i++) {
        struct grt_param *param = params->list[i];
        param->master = grt_params_view(param, params->master, 0);
        if (params->grad) {
            param->grad = grt_params_view(param, params->grad, 0);
        }
        if (params->copy) {
            param->copy = grt_params_view(param, params->copy, 0);
        }
    }
    for (uint32_t i = 0; i < params->buffer_count; i++) {
        params->buffers[i]->master = grt_params_view(params->buffers[i], params->buffer, 0);
    }
}

// Numbers of [-1, 1) come from words of [0, 1) exactly, so the bound's product is the only
// rounding.
static void record_draw(struct grt_graph *graph, const struct grt_param *param,
                        struct grt_range rng, uint32_t stream) {
    const struct grt_tensor *w = &param->master;
    if (param->init == GRT_INIT_NORMAL) {
        grt_op_random(graph, grt_random_desc(.dist = GRT_DIST_NORMAL, .y = w, .state = rng,
                                             .stream = stream));
        grt_op_map(graph,
                   grt_map_desc(.map = GRT_MAP_SCALE, .y = w, .a = w, .alpha = param->bound));
        return;
    }
    if (param->init != GRT_INIT_UNIFORM) {
        float value = param->init == GRT_INIT_VALUE ? param->bound : 0.0f;
        grt_op_fill(graph, w, param->init == GRT_INIT_ONES ? 1.0f : value);
        return;
    }
    grt_op_random(
        graph, grt_random_desc(.dist = GRT_DIST_UNIFORM, .y = w, .state = rng, .stream = stream));
    grt_op_map(graph,
               grt_map_desc(.map = GRT_MAP_SCALE, .y = w, .a = w, .alpha = 2.0f, .beta = -1.0f));
    grt_op_map(graph, grt_map_desc(.map = GRT_MAP_SCALE, .y = w, .a = w, .alpha = param->bound));
}

bool grt_params_draw(struct grt_params *params, uint64_t seed) {
    const struct grt_rng_state state = {{(uint32_t)seed, (uint32_t)(seed >> 32)}, {0, 0}};
    struct grt_buf *rng =
        grt_buf_create(params->dev, grt_buf_desc(.size = sizeof state, .label = "init"));
    struct grt_graph *graph = rng ? grt_graph_create(params->dev, "init") : NULL;
    bool ok = graph && grt_buf_write(rng, 0, &state, sizeof state);
    if (ok) {
        grt_op_fill(graph, params->master, 0.0f);
        if (params->grad) {
            grt_op_fill(graph, params->grad, 0.0f);
        }
        for (uint32_t i = 0; i < params->count; i++) {
            record_draw(graph, params->list[i], (struct grt_range){rng, 0, sizeof state}, i);
        }
        for (uint32_t i = 0; i < params->buffer_count; i++) {
            record_draw(graph, params->buffers[i], (struct grt_range){rng, 0, sizeof state}, 0);
        }
        if (params->copy) {
            grt_op_convert(graph, params->copy, params->master);
        }
        ok = grt_graph_finish(graph);
    }
    grt_graph_destroy(&graph);
    grt_buf_destroy(&rng);
    return ok;
}

bool grt_params_sync(struct grt_params *params) {
    if (!params->copy) {
        return true;
    }
    struct grt_graph *graph = grt_graph_create(params->dev, "16-bit copy of the parameters");
    if (graph) {
        grt_op_convert(graph, params->copy, params->master);
    }
    bool ok = graph && grt_graph_finish(graph);
    grt_graph_destroy(&graph);
    return ok;
}
