// SPDX-License-Identifier: Apache-2.0
// Making a learner: checks the desc, declares every tensor into one plan, allocates, draws.
#include "gpurt/learner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/device.h"
#include "ops/op_support.h"
#include "base/log.h"
#include "learner_parts.h"
#include "nn/fused/fused.h"

static const char *mistake(const struct grt_learner_desc *d) {
    if (!d) {
        return "no desc";
    }
    if (!d->make || (unsigned)d->loss >= GRT_LOSS_COUNT) {
        return d->make ? "no such loss" : "no network";
    }
    if (grt_shape_count(&d->input) == 0 || d->input.rank > GRT_SHAPE_RANK || d->batch == 0) {
        return "samples and batch must be at least 1";
    }
    if (d->precision != GRT_F32 && d->precision != GRT_F16 && d->precision != GRT_BF16) {
        return "precision must be f32, f16 or bf16";
    }
    if (d->accumulate > d->batch) {
        return "more micro-batches than samples";
    }
    bool apart = d->exact || d->whole.samples > 0;
    if (d->loss == GRT_LOSS_NT_XENT ? !d->inference && d->views != 2 : d->views > 1 || apart) {
        return "nt_xent wants two views of each sample, and no other loss does";
    }
    const struct grt_whole *w = &d->whole;
    if (w->samples > 0 && (w->own < d->batch || w->own > w->samples || w->batch == 0 ||
                           w->first > w->samples - w->own)) {
        return "the samples of a step of all are fewer than those of one, or told apart from none";
    }
    if (d->together.ranks > 0 && (!d->together.gather || d->together.rank >= d->together.ranks)) {
        return "other processes cannot be reached";
    }
    if (d->temperature != 0.0f && !(d->temperature >= (float)GRT_LEAST_TEMPERATURE)) {
        return "the temperature is below 0.025";
    }
    if (!(d->huber_delta >= 0.0f)) {
        return "huber_delta must not be below 0";
    }
    if (!(d->label_smoothing >= 0.0f && d->label_smoothing < 1.0f)) {
        return "label_smoothing must be from 0 to below 1";
    }
    if (d->class_weights && d->loss != GRT_LOSS_CROSS_ENTROPY) {
        return "class_weights are for cross_entropy";
    }
    if (d->loss_count == 1 || d->loss_count > GRT_LOSS_MOST) {
        return "loss_count is 2 to 4; for one loss leave it 0";
    }
    if (d->loss_count > 0 && (d->loss != GRT_LOSS_MSE || d->views > 1)) {
        return "with several losses `loss` stays MSE, and views 1";
    }
    for (uint32_t i = 0; i < d->loss_count; i++) {
        const struct grt_loss_share *s = &d->losses[i];
        if ((unsigned)s->loss >= GRT_LOSS_COUNT || !grt_loss_has_targets(s->loss) || s->cols == 0 ||
            !(s->scale > 0.0f) || !isfinite(s->scale)) {
            return "each of several losses has targets, outputs and a scale above 0";
        }
    }
    if (d->sample_weights && !grt_loss_has_targets(d->loss)) {
        return "sample_weights are for losses with targets";
    }
    if (d->variant && strcmp(d->variant, "layers") != 0 && strcmp(d->variant, "fused") != 0) {
        return "variant must be layers or fused";
    }
    return d->inference ? NULL : grt_optim_mistake(&d->optim);
}

// ---- declaring ----

static struct grt_tensor *declare(struct grt_learner *l, const char *label, const char *group,
                                  enum grt_dtype dtype, uint64_t a, uint64_t b, uint64_t c,
                                  uint64_t d) {
    return grt_net_tensor(&l->net, grt_tensor_desc(.label = label, .group = group, .dtype = dtype,
                                                   .shape = {a, b, c, d}));
}

// What comes before the network, and what it gives.
static struct grt_tensor *declare_samples(struct grt_learner *l, const char *label,
                                          const char *group, enum grt_dtype dtype, uint64_t rows,
                                          const struct grt_shape *shape) {
    struct grt_tensor_desc desc = {.label = label, .group = group, .dtype = dtype, .shape = {rows}};
    memcpy(desc.shape + 1, shape->dim, shape->rank * sizeof *shape->dim);
    return grt_net_tensor(&l->net, &desc);
}

static void declare_input(struct grt_learner *l) {
    l->x = declare_samples(l, "input", "io", GRT_F32, l->micro, &l->desc.input);
    if (l->net.dtype != GRT_F32 || l->views > 1) {
        l->x16 = declare_samples(l, l->views > 1 ? "views" : "input16", "acts", l->net.dtype,
                                 l->views * l->micro, &l->desc.input);
    }
}

static void declare_output(struct grt_learner *l) {
    const struct grt_shape *out = &l->module->out;
    bool words = l->desc.loss == GRT_LOSS_CROSS_ENTROPY || !grt_loss_has_targets(l->desc.loss);
    uint64_t weights = l->desc.sample_weights, several = 0;
    for (uint32_t i = 0; i < l->desc.loss_count; i++) {
        const struct grt_loss_share *s = &l->desc.losses[i];
        several += s->loss == GRT_LOSS_CROSS_ENTROPY ? 1 : s->cols;
    }
    l->target = words ? declare(l, "target", "io", GRT_U32, l->micro, 2 * weights, 0, 0)
                      : declare(l, "target", "io", GRT_F32, l->micro,
                                (several > 0 ? several : l->outputs) + weights, 0, 0);
    l->y = declare_samples(l, "output", "acts", GRT_F32, l->views * l->micro, out);
    if (l->net.dtype != GRT_F32 && !l->module->f32_output) {
        l->y16 = declare_samples(l, "output16", "acts", l->net.dtype, l->views * l->micro, out);
    }
}

static void declare_state(struct grt_learner *l) {
    uint32_t parts = l->desc.accumulate;
    l->state = declare(l, "state", "state", GRT_U32, GRT_LEARN_STATE_WORDS, 0, 0, 0);
    l->history = declare(l, "history", "state", GRT_F32, GRT_HISTORY, 8, 0, 0);
    l->norm_parts = declare(l, "norm parts", "state", GRT_F32, GRT_NORM_PARTS, 0, 0, 0);
    l->loss_parts =
        declare(l, "loss parts", "state", GRT_F32, l->losses * parts, GRT_LOSS_PARTS, 0, 0);
    l->hits = declare(l, "hits", "state", GRT_F32, parts, GRT_LOSS_PARTS, 0, 0);
    l->near = declare(l, "near", "state", GRT_F32, parts, GRT_LOSS_PARTS, 0, 0);
    if (l->class_weights || l->desc.sample_weights) {
        l->mass = declare(l, "weights", "state", GRT_F32, l->losses * parts, GRT_LOSS_PARTS, 0, 0);
    }
    if (grt_learner_judges(l, l->micro, false)) {
        uint64_t numbers = grt_fused_judge_numbers(l->micro);
        l->judged = declare(l, "losses", "state", GRT_F32, numbers, 0, 0, 0);
    }
}

struct grt_fused_desc grt_learner_fused(const struct grt_learner *l, uint64_t rows) {
    return (struct grt_fused_desc){.module = l->module,
                                   .input = l->desc.input,
                                   .loss = grt_loss_has_targets(l->desc.loss) ? l->desc.loss
                                                                              : GRT_LOSS_MSE,
                                   .delta = l->desc.huber_delta,
                                   .dtype = l->desc.precision,
                                   .rows = rows,
                                   .params = &l->params};
}

struct grt_fused_desc grt_learner_judging(const struct grt_learner *l, uint64_t rows) {
    struct grt_fused_desc desc = grt_learner_fused(l, rows);
    desc.tiles_for = l->desc.batch;
    return desc;
}

bool grt_learner_judges(const struct grt_learner *l, uint64_t rows, bool ordered) {
    struct grt_fused_desc fused = grt_learner_judging(l, rows);
    bool layers = l->desc.variant && strcmp(l->desc.variant, "layers") == 0;
    fused.ordered = ordered;
    return !layers && l->losses == 1 && l->desc.loss != GRT_LOSS_CROSS_ENTROPY &&
           !l->desc.sample_weights && grt_loss_has_targets(l->desc.loss) &&
           grt_fused_forward_usable(l->dev, &fused, true);
}

// Whether forward and backward are one op; false with the sentence said where that was asked for
// and cannot be.
static bool choose_fused(struct grt_learner *l) {
    const struct grt_learner_desc *d = &l->desc;
    struct grt_fused_desc fused = grt_learner_fused(l, l->micro);
    bool asked = d->variant && strcmp(d->variant, "fused") == 0;
    l->fused = !d->inference && !d->recompute && grt_loss_has_targets(d->loss) &&
               d->label_smoothing == 0.0f && !d->class_weights && !d->sample_weights &&
               l->losses == 1 && (asked || !d->variant) && grt_fused_usable(l->dev, &fused, asked);
    return !asked || l->fused ||
           grt_fail(GRT_UNSUPPORTED, "learner: no fused kernels for such a model in %s on %s",
                    grt_dtype_text(d->precision), grt_dev_info(l->dev)->selector);
}

// A copy of the class weights, now that the number of classes is known.
static bool declare_weights(struct grt_learner *l) {
    const float *given = l->desc.class_weights;
    l->desc.class_weights = NULL;
    if (!given || l->desc.inference) {
        return true;
    }
    l->weight_numbers = malloc(l->outputs * sizeof *l->weight_numbers);
    if (!l->weight_numbers) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for a learner");
    }
    memcpy(l->weight_numbers, given, l->outputs * sizeof *given);
    l->desc.class_weights = l->weight_numbers;
    double sum = 0;
    for (uint64_t i = 0; i < l->outputs; i++) {
        if (!(given[i] >= 0.0f) || !isfinite(given[i])) {
            return grt_fail(GRT_INVALID, "learner: a class weight of %g", (double)given[i]);
        }
        sum += (double)given[i];
    }
    l->weight_sum = (float)sum;
    l->class_weights = declare(l, "class weights", "state", GRT_F32, l->outputs, 0, 0, 0);
    return sum > 0 || grt_fail(GRT_INVALID, "learner: every class weight is 0");
}

// False with the sentence.
static bool declare_network(struct grt_learner *l) {
    const struct grt_learner_desc *d = &l->desc;
    declare_input(l);
    char text[GRT_SHAPE_TEXT];
    struct grt_shape out = grt_module_declare(l->module, &l->net, "", &d->input);
    l->outputs = grt_shape_count(&out);
    if (out.rank == 0) {
        return false;
    }
    if (d->outputs > 0 && l->outputs != d->outputs) {
        return grt_fail(GRT_CONFIG,
                        "%sthe network gives %s for a sample, and the targets want [%u]",
                        l->module->where, grt_shape_text(&out, text), d->outputs);
    }
    if (d->loss == GRT_LOSS_CROSS_ENTROPY && out.rank != 1) {
        return grt_fail(GRT_CONFIG, "%scross_entropy wants one number for each class, not %s",
                        l->module->where, grt_shape_text(&out, text));
    }
    uint64_t several = 0;
    for (uint32_t i = 0; i < d->loss_count; i++) {
        several += d->losses[i].cols;
    }
    if (several > 0 && (out.rank != 1 || several != l->outputs)) {
        return grt_fail(GRT_CONFIG, "%sthe losses want %llu numbers for a sample, not %s",
                        l->module->where, (unsigned long long)several, grt_shape_text(&out, text));
    }
    if (l->net.mix &&
        (d->loss != GRT_LOSS_CROSS_ENTROPY || d->class_weights || d->sample_weights)) {
        return grt_fail(GRT_CONFIG,
                        "%smixup and cutmix are for cross_entropy without class_weights and "
                        "sample_weights",
                        l->module->where);
    }
    if (!d->inference && l->params.numbers == 0) {
        return grt_fail(GRT_CONFIG, "%sthe network has no parameters: there is nothing to learn",
                        l->module->where);
    }
    declare_output(l);
    return declare_weights(l);
}

// What a loss over rows needs besides.
static void declare_contrast(struct grt_learner *l) {
    const struct grt_learner_desc *d = &l->desc;
    uint64_t views = l->views, samples = l->exact ? l->whole.batch : 0;
    samples = samples > l->micro ? samples : l->micro;  // of an evaluation
    uint64_t bytes = d->inference ? 0 : grt_loss_scratch(d->loss, views * samples, l->outputs);
    if (bytes > 0) {
        l->loss_scratch = declare(l, "loss", "acts", GRT_F32, bytes / 4, 0, 0, 0);
    }
    if (l->twice) {
        l->all_x = declare_samples(l, "all inputs", "acts", GRT_F32, l->whole.own, &d->input);
    }
    if (l->exact) {
        l->all_y =
            declare(l, "all outputs", "acts", GRT_F32, views * l->whole.samples, l->outputs, 0, 0);
        l->all_dy = declare(l, "all output gradients", "acts", l->net.dtype, views * d->batch,
                            l->outputs, 0, 0);
        grt_net_exchanges(&l->net, views * l->whole.own * l->outputs * 4);
    }
}

static bool declare_rest(struct grt_learner *l) {
    const struct grt_learner_desc *d = &l->desc;
    grt_params_declare(&l->params, l->plan, !d->inference);
    declare_state(l);
    if (!d->inference) {
        l->dy = declare_samples(l, "output gradient", "acts", l->net.dtype, l->views * l->micro,
                                &l->module->out);
        if (l->fused) {
            struct grt_fused_desc fused = grt_learner_fused(l, l->micro);
            uint64_t bytes = grt_fused_scratch(l->dev, &fused);
            l->fused_scratch = declare(l, "fused", "acts", GRT_F32, (bytes + 3) / 4, 0, 0, 0);
        }
        uint64_t kept = grt_optim_tensors(&d->optim) * l->params.elements;
        if (kept > 0) {
            l->kept = declare(l, "optimizer", "optim", GRT_F32, kept, 0, 0, 0);
        }
        if (d->optim.ema > 0.0) {
            l->average = declare(l, "average", "optim", GRT_F32, l->params.elements, 0, 0, 0);
        }
        uint64_t lengths = grt_optim_lengths(&d->optim, &l->params);
        if (lengths > 0) {
            l->lengths = declare(l, "lengths", "state", GRT_F32, lengths, 0, 0, 0);
        }
        uint64_t words = grt_optim_rate_words(&d->optim, &l->params);
        if (words > 0) {
            l->rates = declare(l, "rates", "state", GRT_U32, words, 0, 0, 0);
        }
        if (!grt_optim_rates(&d->optim, &l->params, NULL)) {
            return false;
        }
    }
    declare_contrast(l);
    if (l->net.scratch_bytes > 0) {
        l->net.scratch =
            declare(l, "scratch", "scratch", GRT_F32, (l->net.scratch_bytes + 3) / 4, 0, 0, 0);
    }
    return !l->params.failed || grt_fail(GRT_NO_MEMORY, "no host memory for a learner");
}

static bool declare_all(struct grt_learner *l) {
    const struct grt_learner_desc *d = &l->desc;
    l->net = (struct grt_net){.dev = l->dev,
                              .plan = l->plan,
                              .params = &l->params,
                              .dtype = d->precision,
                              .rows = l->views * l->micro,
                              .recompute = d->recompute,
                              .inference = d->inference || l->fused,
                              .together = d->together,
                              .sync_norms = d->sync_norms && !d->inference,
                              .seed = d->seed};
    grt_params_init(&l->params, l->dev, d->precision);
    return declare_network(l) && declare_rest(l);
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
    l->losses = desc->loss_count > 0 ? desc->loss_count : 1;
    l->desc.accumulate = desc->accumulate > 0 ? desc->accumulate : 1;
    snprintf(l->variant, sizeof l->variant, "%s", desc->variant ? desc->variant : "");
    l->desc.variant = desc->variant ? l->variant : NULL;
    l->micro = (desc->batch + l->desc.accumulate - 1) / l->desc.accumulate;
    l->views = desc->views > 1 && !desc->inference ? desc->views : 1;
    l->shared = desc->whole.samples > 0 && !desc->inference;
    l->exact = l->shared || (desc->exact && !desc->inference && l->desc.accumulate > 1);
    l->whole =
        l->shared ? desc->whole : (struct grt_whole){desc->batch, desc->batch, 0, desc->batch};
    l->whole.batch = l->whole.batch < l->whole.samples ? l->whole.batch : l->whole.samples;
    l->twice = l->exact && l->whole.own > l->micro;
    l->module = desc->make(desc->of);
    l->plan = l->module && choose_fused(l) ? grt_plan_create(dev) : NULL;
    if (!l->plan || !declare_all(l)) {
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
    grt_graph_destroy(&l->swap[0]);
    grt_graph_destroy(&l->swap[1]);
    grt_plan_destroy(&l->plan);
    grt_params_finish(&l->params);
    grt_net_finish(&l->net);
    free(l->kept_views);
    free(l->average_views);
    free(l->kept_names);
    free(l->weight_numbers);
    free(l);
}

// ---- allocating ----

static bool view_average(struct grt_learner *l) {
    l->average_views = l->average ? calloc(l->params.count + 1u, sizeof *l->average_views) : NULL;
    for (uint32_t i = 0; l->average_views && i < l->params.count; i++) {
        l->average_views[i] = grt_params_view(l->params.list[i], l->average, 0);
    }
    return !l->average || l->average_views ||
           grt_fail(GRT_NO_MEMORY, "no host memory for a learner");
}

// The optimizer's tensors under their names: those of parameter i at i, of its second part behind
// all.
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

static bool write_weights(struct grt_learner *l) {
    const struct grt_tensor *t = l->class_weights;
    return !t ||
           grt_buf_write(t->range.buf, t->range.offset, l->weight_numbers, grt_tensor_bytes(t));
}

static bool write_rates(struct grt_learner *l) {
    if (!l->rates) {
        return true;
    }
    uint64_t bytes = grt_tensor_bytes(l->rates);
    uint32_t *words = malloc(bytes);
    bool ok = words ? grt_optim_rates(&l->desc.optim, &l->params, words)
                    : grt_fail(GRT_NO_MEMORY, "no host memory for a learner");
    ok = ok && grt_buf_write(l->rates->range.buf, l->rates->range.offset, words, bytes);
    free(words);
    return ok;
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
    struct grt_tensor *const clear[] = {l->history, l->kept, l->x, l->target, l->y, l->mass};
    for (uint32_t i = 0; i < sizeof clear / sizeof clear[0]; i++) {
        if (clear[i]) {
            grt_graph_fill(graph, clear[i]->range, 0);
        }
    }
    if (l->average) {
        grt_graph_copy(graph, l->average->range, l->params.master->range);
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
    return grt_net_meet(&l->net) && name_kept(l) && view_average(l) && write_rates(l) &&
           write_weights(l) && grt_learner_reset(l, l->desc.seed);
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
