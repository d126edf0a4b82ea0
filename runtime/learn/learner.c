// SPDX-License-Identifier: Apache-2.0
// Making a learner: checks the desc, declares every tensor into one plan, allocates, draws.
#include "gpurt/learner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/device.h"
#include "ops/op_support.h"
#include "base/log.h"
#include "learner_parts.h"
#include "nn/fused/mlp_fused.h"

const char *grt_model_text(enum grt_model model) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_MODELS(X)
#undef X
    };
    return (unsigned)model < GRT_MODEL_COUNT ? texts[model] : "unknown model";
}

// ---- the model ----

static struct grt_mlp_desc mlp_desc(const struct grt_model_desc *m, uint32_t inputs, uint32_t depth,
                                    uint32_t outputs) {
    return (struct grt_mlp_desc){
        .inputs = inputs,
        .depth = depth,
        .hidden = m->hidden,
        .outputs = outputs,
        .act = m->act,
        .residual = m->residual,
        .layer_norm = m->layer_norm,
    };
}

static struct grt_module *make_module(const struct grt_model_desc *m) {
    struct grt_mlp_desc mlp = mlp_desc(m, m->inputs, m->depth, m->outputs);
    if (m->kind == GRT_MODEL_LINEAR) {
        return grt_linear_create(grt_linear_desc(.inputs = m->inputs, .outputs = m->outputs));
    }
    if (m->kind == GRT_MODEL_POINTS) {
        return grt_points_create(
            grt_points_desc(.points = m->points, .pool = m->pool,
                            .each = mlp_desc(m, m->inputs, m->depth, 0),
                            .head = mlp_desc(m, m->hidden, m->head_depth, m->outputs)));
    }
    return grt_mlp_create(&mlp);
}

static const char *mistake(const struct grt_learner_desc *d) {
    if (!d) {
        return "no desc";
    }
    if ((unsigned)d->model.kind >= GRT_MODEL_COUNT || (unsigned)d->loss >= GRT_LOSS_COUNT) {
        return "no such model or loss";
    }
    if (d->model.outputs == 0 || d->batch == 0) {
        return "outputs and batch must be at least 1";
    }
    if (d->precision != GRT_F32 && d->precision != GRT_F16 && d->precision != GRT_BF16) {
        return "precision must be f32, f16 or bf16";
    }
    if (d->accumulate > d->batch) {
        return "more micro-batches than samples";
    }
    if (!(d->huber_delta >= 0.0f)) {
        return "huber_delta must not be below 0";
    }
    if (d->variant && strcmp(d->variant, "layers") != 0 && strcmp(d->variant, "fused") != 0) {
        return "variant must be layers or fused";
    }
    return d->inference ? NULL : grt_optim_mistake(&d->optim);
}

// ---- declaring ----

static struct grt_tensor *declare(struct grt_learner *l, const char *label, const char *group,
                                  enum grt_dtype dtype, uint64_t a, uint64_t b, uint64_t c) {
    return grt_net_tensor(&l->net, grt_tensor_desc(.label = label, .group = group, .dtype = dtype,
                                                   .shape = {a, b, c}));
}

static void declare_io(struct grt_learner *l) {
    const struct grt_model_desc *m = &l->desc.model;
    bool points = m->kind == GRT_MODEL_POINTS;
    uint64_t features = points ? m->points : m->inputs, last = points ? m->inputs : 0;
    l->x = declare(l, "input", "io", GRT_F32, l->micro, features, last);
    if (l->net.dtype != GRT_F32) {
        l->x16 = declare(l, "input16", "acts", l->net.dtype, l->micro, features, last);
    }
    l->target = l->desc.loss == GRT_LOSS_CROSS_ENTROPY
                    ? declare(l, "target", "io", GRT_U32, l->micro, 0, 0)
                    : declare(l, "target", "io", GRT_F32, l->micro, m->outputs, 0);
    l->y = declare(l, "output", "acts", GRT_F32, l->micro, m->outputs, 0);
}

static void declare_state(struct grt_learner *l) {
    uint32_t parts = l->desc.accumulate;
    l->state = declare(l, "state", "state", GRT_U32, GRT_LEARN_STATE_WORDS, 0, 0);
    l->history = declare(l, "history", "state", GRT_F32, GRT_HISTORY, 4, 0);
    l->norm_parts = declare(l, "norm parts", "state", GRT_F32, GRT_NORM_PARTS, 0, 0);
    l->loss_parts = declare(l, "loss parts", "state", GRT_F32, parts, GRT_LOSS_PARTS, 0);
    l->hits = declare(l, "hits", "state", GRT_F32, parts, GRT_LOSS_PARTS, 0);
}

struct grt_mlp_fused_desc grt_learner_fused(const struct grt_learner *l, uint64_t rows) {
    const struct grt_model_desc *m = &l->desc.model;
    return (struct grt_mlp_fused_desc){.model = mlp_desc(m, m->inputs, m->depth, m->outputs),
                                       .loss = l->desc.loss,
                                       .delta = l->desc.huber_delta,
                                       .dtype = l->desc.precision,
                                       .rows = rows,
                                       .params = &l->params};
}

// Whether forward and backward are one op; false with the sentence said where that was asked for and
// cannot be.
static bool choose_fused(struct grt_learner *l) {
    const struct grt_learner_desc *d = &l->desc;
    struct grt_mlp_fused_desc fused = grt_learner_fused(l, l->micro);
    bool fits = d->model.kind == GRT_MODEL_MLP && !d->inference && !d->recompute;
    bool asked = d->variant && strcmp(d->variant, "fused") == 0;
    l->fused = fits && (asked ? grt_mlp_fused_variant(l->dev, &fused, 0) != NULL
                              : !d->variant && grt_mlp_fused_usable(l->dev, &fused));
    return !asked || l->fused ||
           grt_fail(GRT_UNSUPPORTED, "learner: no fused kernels for such a model in %s on %s",
                    grt_dtype_text(d->precision), grt_dev_info(l->dev)->selector);
}

static bool declare_all(struct grt_learner *l) {
    const struct grt_learner_desc *d = &l->desc;
    l->net = (struct grt_net){.dev = l->dev,
                              .plan = l->plan,
                              .params = &l->params,
                              .dtype = d->precision,
                              .rows = l->micro,
                              .recompute = d->recompute,
                              .inference = d->inference || l->fused};
    grt_params_init(&l->params, l->dev, d->precision);
    declare_io(l);
    l->module->fns->declare(l->module, &l->net, "");
    if (l->params.failed) {
        return false;
    }
    grt_params_declare(&l->params, l->plan, !d->inference);
    declare_state(l);
    if (!d->inference) {
        l->dy = declare(l, "output gradient", "acts", l->net.dtype, l->micro, d->model.outputs, 0);
        if (l->fused) {
            struct grt_mlp_fused_desc fused = grt_learner_fused(l, l->micro);
            uint64_t bytes = grt_mlp_fused_scratch(l->dev, &fused);
            l->fused_scratch = declare(l, "fused", "acts", GRT_F32, (bytes + 3) / 4, 0, 0);
        }
        uint64_t kept = grt_optim_tensors(&d->optim) * l->params.elements;
        if (kept > 0) {
            l->kept = declare(l, "optimizer", "optim", GRT_F32, kept, 0, 0);
        }
    }
    if (l->net.scratch_bytes > 0) {
        l->net.scratch =
            declare(l, "scratch", "scratch", GRT_F32, (l->net.scratch_bytes + 3) / 4, 0, 0);
    }
    return !l->params.failed;
}

struct grt_learner *grt_learner_create(struct grt_dev *dev, const struct grt_learner_desc *desc) {
    const char *why = dev ? mistake(desc) : "no device";
    if (why) {
        grt_fail(GRT_INVALID, "learner: %s", why);
        return NULL;
    }
    struct grt_learner *l = calloc(1, sizeof *l);
    if (!l) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a learner");
        return NULL;
    }
    l->dev = dev;
    l->desc = *desc;
    l->desc.accumulate = desc->accumulate > 0 ? desc->accumulate : 1;
    snprintf(l->variant, sizeof l->variant, "%s", desc->variant ? desc->variant : "");
    l->desc.variant = desc->variant ? l->variant : NULL;
    l->micro = (desc->batch + l->desc.accumulate - 1) / l->desc.accumulate;
    l->module = make_module(&desc->model);
    l->plan = l->module && choose_fused(l) ? grt_plan_create(dev) : NULL;
    if (!l->plan) {
        grt_learner_destroy(&l);
        return NULL;
    }
    if (!declare_all(l)) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a learner");
        grt_learner_destroy(&l);
    }
    return l;
}

void grt_learner_destroy(struct grt_learner **learner) {
    if (!learner || !*learner) {
        return;
    }
    struct grt_learner *l = *learner;
    *learner = NULL;
    grt_module_destroy(&l->module);
    grt_plan_destroy(&l->plan);
    grt_params_finish(&l->params);
    free(l->kept_views);
    free(l->kept_names);
    free(l);
}

// ---- allocating ----

// The optimizer's tensors under their names: those of parameter i at i, of its second part behind all.
static bool name_kept(struct grt_learner *l) {
    uint32_t parts = l->kept ? grt_optim_tensors(&l->desc.optim) : 0;
    if (parts == 0) {
        return true;
    }
    l->kept_views = calloc((size_t)parts * l->params.count, sizeof *l->kept_views);
    l->kept_names = calloc((size_t)parts * l->params.count, sizeof *l->kept_names);
    if (!l->kept_views || !l->kept_names) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for a learner");
    }
    for (uint32_t part = 0; part < parts; part++) {
        for (uint32_t i = 0; i < l->params.count; i++) {
            uint32_t at = part * l->params.count + i;
            l->kept_views[at] =
                grt_params_view(l->params.list[i], l->kept, part * l->params.elements);
            snprintf(l->kept_names[at], sizeof l->kept_names[at], "%s.%s",
                     grt_optim_tensor_name(&l->desc.optim, part), l->params.list[i]->name);
        }
    }
    return true;
}

bool grt_learner_begin(struct grt_learner *l) {
    bool scaling = l->desc.precision == GRT_F16 && !l->desc.inference;
    const struct grt_learn_state state = {
        .loss_scale = scaling ? (float)l->desc.optim.scale : 1.0f,
        .lr_factor = 1.0f,
    };
    struct grt_graph *graph = grt_graph_create(l->dev, "begin");
    if (!graph) {
        return false;
    }
    struct grt_tensor *const clear[] = {l->history, l->kept, l->x, l->target, l->y};
    for (uint32_t i = 0; i < sizeof clear / sizeof clear[0]; i++) {
        if (clear[i]) {
            grt_graph_fill(graph, clear[i]->range, 0);
        }
    }
    bool ok = grt_graph_finish(graph);
    grt_graph_destroy(&graph);
    return ok && grt_buf_write(l->state->range.buf, l->state->range.offset, &state, sizeof state);
}

bool grt_learner_alloc(struct grt_learner *l) {
    if (!l || l->allocated) {
        return grt_fail(GRT_INVALID, "grt_learner_alloc: %s", l ? "called twice" : "no learner");
    }
    if (!grt_plan_alloc(l->plan)) {
        return false;
    }
    l->allocated = true;
    grt_params_place(&l->params);
    return name_kept(l) && grt_learner_reset(l, l->desc.seed);
}

bool grt_learner_reset(struct grt_learner *l, uint64_t seed) {
    if (!l || !l->allocated) {
        return grt_fail(GRT_INVALID, "grt_learner_reset: the learner is not allocated");
    }
    return grt_params_draw(&l->params, seed) && grt_learner_begin(l);
}

uint64_t grt_learner_bytes(const struct grt_learner *l, const char *group) {
    return l ? grt_plan_bytes(l->plan, group) : 0;
}
