// SPDX-License-Identifier: Apache-2.0
// Trained networks and policies as ONNX files.
//
//     supervised   inputs, side by side -> (x - mean) / std -> network -> y, or probability
//     es           observation -> (x - mean) rstd -> layers -> clip or tanh -> action
//     ppo          observation -> (x - mean) rstd -> actor -> clip -> action, or logits of choices
#include "gpurt/onnx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gpurt/network.h"
#include "gpurt/policy.h"
#include "gpurt/ppo.h"
#include "onnx_parts.h"

// ---- normalisers ----

// x op numbers of the last axis.
static struct grt_onnx_value by_feature(struct grt_onnx *onnx, struct grt_onnx_value x,
                                        const char *op, const float *numbers, uint64_t count) {
    const char *constant = grt_onnx_reals(onnx, 1, &count, numbers);
    x.name = grt_onnx_add(onnx, grt_onnx_node(.op = op, .inputs = {x.name, constant}));
    return x;
}

// The mean is taken away in two numbers: what f32 loses of a large one comes second.
static struct grt_onnx_value normalise(struct grt_onnx *onnx, struct grt_onnx_value x,
                                       const double *numbers, uint32_t features) {
    float *part = calloc(features, sizeof *part);
    bool more = false;
    if (!part) {
        return grt_onnx_refuse(onnx, "no host memory for a normaliser");
    }
    for (uint32_t i = 0; i < features; i++) {
        part[i] = (float)numbers[i];
    }
    x = by_feature(onnx, x, "Sub", part, features);
    for (uint32_t i = 0; i < features; i++) {
        part[i] = (float)(numbers[i] - (double)part[i]);
        more = more || part[i] != 0.0f;
    }
    if (more) {
        x = by_feature(onnx, x, "Sub", part, features);
    }
    for (uint32_t i = 0; i < features; i++) {
        part[i] = (float)numbers[features + i];
    }
    x = by_feature(onnx, x, "Div", part, features);
    free(part);
    return x;
}

// ---- supervised networks ----

// The inputs as one value, in the shape of a sample.
static struct grt_onnx_value side_by_side(struct grt_onnx *onnx,
                                          const struct grt_dataset_info *info) {
    struct grt_onnx_value all = {0};
    for (uint32_t i = 0; i < info->input_count; i++) {
        const struct grt_dataset_input *in = &info->inputs[i];
        struct grt_shape shape = task_shape(in->height, in->points, in->features);
        struct grt_onnx_value x =
            grt_onnx_input(onnx, in->name + (in->name[0] == '/'), shape.rank, shape.dim);
        if (info->input_count > 1 && info->points == 0) {
            x = grt_onnx_flat(onnx, x);
        }
        if (i > 0) {
            x.name =
                grt_onnx_add(onnx, grt_onnx_node(.op = "Concat", .inputs = {all.name, x.name},
                                                 .attributes = {{.name = "axis", .whole = -1}}));
        }
        all = x;
    }
    return all;
}

static bool record_task(struct grt_onnx *onnx, struct onnx_declared *d,
                        const struct grt_archive *model, const struct grt_onnx_export *as,
                        struct grt_task *task) {
    if (!grt_task_open_kept(task, model, as->embeddings)) {
        return false;
    }
    const struct grt_learner_desc *l = &task->learner;
    bool classes = l->loss == GRT_LOSS_CROSS_ENTROPY;
    if (as->probabilities && !classes && l->loss != GRT_LOSS_BCE) {
        return grt_fail(GRT_CONFIG,
                        "%s: its outputs are no logits, its loss being %s: leave out "
                        "--probabilities",
                        model->path, l->loss_count > 0 ? "one of several" : task->config.loss);
    }
    if (!onnx_declare(d, l->make(l->of), "", &l->input)) {
        return false;
    }
    struct grt_onnx_value x = side_by_side(onnx, &task->info);
    double *numbers = task_feature_numbers(model);
    if (numbers) {
        x = normalise(onnx, x, numbers, task->info.features);
    }
    free(numbers);
    x = l->input.rank < x.rank ? grt_onnx_flat(onnx, x) : x;
    x = grt_onnx_rows(onnx, grt_module_onnx(d->module, onnx, x));
    if (as->probabilities) {
        x.name = grt_onnx_add(onnx,
                              classes ? grt_onnx_node(.op = "Softmax", .inputs = {x.name},
                                                      .attributes = {{.name = "axis", .whole = -1}})
                                      : grt_onnx_node(.op = "Sigmoid", .inputs = {x.name}));
    }
    grt_onnx_output(onnx,
                    as->embeddings      ? "embedding"
                    : as->probabilities ? "probability"
                                        : "y",
                    x, d->module->out.rank, d->module->out.dim);
    return true;
}

// ---- policies ----

static const struct grt_archive_tensor *matrix_of(const struct grt_archive *model,
                                                  const char *name) {
    const struct grt_archive_tensor *t = grt_archive_find(model, name);
    return t && t->rank == 2 && t->dtype == GRT_F32 ? t : NULL;
}

// An observation behind its normaliser, where there is one.
static struct grt_onnx_value observe(struct grt_onnx *onnx, const struct grt_archive *model,
                                     bool normal, uint64_t count) {
    struct grt_onnx_value x = grt_onnx_input(onnx, "observation", 1, &count);
    const struct grt_archive_tensor *norm = matrix_of(model, GRT_PPO_NORMALIZER);
    if (!normal || !norm) {
        return x;
    }
    if (norm->shape[0] != 3 || norm->shape[1] != count) {
        return grt_onnx_refuse(onnx, "%s: its normaliser is not of %llu observations", model->path,
                               (unsigned long long)count);
    }
    const float *numbers = norm->data;
    x = by_feature(onnx, x, "Sub", numbers, count);
    return by_feature(onnx, x, "Mul", numbers + count, count);
}

static struct grt_onnx_value clip(struct grt_onnx *onnx, struct grt_onnx_value x) {
    x.name = grt_onnx_add(onnx,
                          grt_onnx_node(.op = "Clip", .inputs = {x.name, grt_onnx_real(onnx, -1.0f),
                                                                 grt_onnx_real(onnx, 1.0f)}));
    return x;
}

static bool record_es(struct grt_onnx *onnx, struct onnx_declared *d,
                      const struct grt_archive *model) {
    struct grt_policy policy;
    if (!grt_policy_parse(grt_archive_text(model, "policy", ""), &policy)) {
        return false;
    }
    bool deep = policy.hidden > 0;
    const struct grt_archive_tensor *first = matrix_of(model, deep ? "model/layers.0.weight"
                                                                   : "model/weight"),
                                    *last =
                                        deep ? matrix_of(model, "model/layers.1.weight") : first;
    if (!first || !last) {
        return grt_fail(GRT_BAD_DATA, "%s: tensors of its policy are missing", model->path);
    }
    uint64_t observations = first->shape[1], actions = last->shape[0];
    const struct grt_shape in = {1, {observations}};
    struct grt_mlp_desc mlp = {.depth = 1,
                               .hidden = policy.hidden,
                               .outputs = (uint32_t)actions,
                               .act = policy.tanh ? GRT_ACT_TANH : GRT_ACT_RELU};
    struct grt_module *module =
        deep ? grt_mlp_create(&mlp)
             : grt_linear_create(
                   grt_linear_desc(.outputs = (uint32_t)actions, .no_bias = !policy.bias));
    if (!onnx_declare(d, module, "", &in)) {
        return false;
    }
    bool normal = grt_archive_whole(model, "normalise", 1) != 0;
    struct grt_onnx_value x = observe(onnx, model, normal, observations);
    x = grt_module_onnx(module, onnx, x);
    x = deep ? grt_onnx_map(onnx, "Tanh", x) : clip(onnx, x);
    grt_onnx_output(onnx, "action", x, 1, &actions);
    return true;
}

// What describes the actor, as the checkpoint has it.
static bool read_actor(struct grt_config *config, const struct grt_archive *model) {
    static const enum grt_config_key keys[] = {GRT_CONFIG_DEPTH,      GRT_CONFIG_HIDDEN,
                                               GRT_CONFIG_ACTIVATION, GRT_CONFIG_RESIDUAL,
                                               GRT_CONFIG_LAYER_NORM, GRT_CONFIG_ACTOR};
    bool good = true;
    grt_config_init_for(config, GRT_CONFIG_OF_PPO);
    for (size_t i = 0; good && i < sizeof keys / sizeof *keys; i++) {
        char name[GRT_ARCHIVE_VALUE_NAME];
        snprintf(name, sizeof name, "config_%.48s", grt_config_key_info(keys[i])->name);
        const char *text = grt_archive_text(model, name, NULL);
        good = !text || grt_config_set(config, keys[i], text);
    }
    return good && grt_task_widths(config);
}

// Numbers of an action: as many as have a deviation, else as the actor's last layer gives, the
// last tensor of a list of layers.
static uint64_t count_actions(const struct grt_archive *model, const struct grt_config *config,
                              const struct grt_archive_tensor *last) {
    char name[GRT_ARCHIVE_NAME];
    snprintf(name, sizeof name, "model/actor.layers.%u.weight", (uint32_t)config->depth);
    const struct grt_archive_tensor *deviation = grt_archive_find(model, "model/log_std");
    const struct grt_archive_tensor *output = matrix_of(model, name);
    bool list = config->actor.text[0] != '\0';
    return deviation && deviation->rank > 0 ? deviation->shape[0]
           : output && !list                ? output->shape[0]
                                            : last->shape[0];
}

static bool record_ppo(struct grt_onnx *onnx, struct onnx_declared *d,
                       const struct grt_archive *model, const struct grt_onnx_export *as,
                       struct grt_config *config) {
    const struct grt_archive_tensor *first = NULL, *last = NULL;
    for (uint32_t i = 0; i < model->tensor_count; i++) {
        const struct grt_archive_tensor *t = &model->tensors[i];
        bool actor = strncmp(t->name, "model/actor.", strlen("model/actor.")) == 0;
        first = actor && !first && t->rank == 2 ? t : first;
        last = actor && t->rank > 0 ? t : last;
    }
    if (!first || !last) {
        return grt_fail(GRT_BAD_DATA, "%s: tensors of its actor are missing", model->path);
    }
    if (!read_actor(config, model)) {
        return false;
    }
    const struct grt_archive_tensor *norm = matrix_of(model, GRT_PPO_NORMALIZER);
    uint64_t observations = norm ? norm->shape[1] : first->shape[1];
    uint64_t actions = count_actions(model, config, last);
    struct grt_mlp_desc mlp = grt_task_mlp(config, (uint32_t)actions);
    struct grt_network_desc list = {
        .text = config->actor.text, .path = model->path, .outputs = (uint32_t)actions};
    struct grt_module *module =
        config->actor.text[0] ? grt_network_create(&list) : grt_mlp_create(&mlp);
    if (!onnx_declare(d, module, "actor.", &(struct grt_shape){1, {observations}})) {
        return false;
    }
    bool numbers = grt_archive_find(model, "model/log_std") != NULL;
    if (numbers && as->probabilities) {
        return grt_fail(GRT_CONFIG,
                        "%s: its actions are numbers, which have no probabilities: leave out "
                        "--probabilities",
                        model->path);
    }
    struct grt_onnx_value x = observe(onnx, model, true, observations);
    x = grt_module_onnx(module, onnx, x);
    if (numbers) {
        x = clip(onnx, x);
    } else if (as->probabilities) {
        x.name = grt_onnx_add(onnx, grt_onnx_node(.op = "Softmax", .inputs = {x.name},
                                                  .attributes = {{.name = "axis", .whole = -1}}));
    }
    grt_onnx_output(onnx,
                    numbers             ? "action"
                    : as->probabilities ? "probability"
                                        : "logits",
                    x, 1, &actions);
    return true;
}

// ---- any ----

static bool record(struct grt_onnx *onnx, struct onnx_declared *d, const struct grt_archive *model,
                   const struct grt_onnx_export *as, struct grt_task *task) {
    bool ppo = strcmp(grt_archive_text(model, "learner", ""), "ppo") == 0;
    bool es = !ppo && grt_archive_text(model, "policy", NULL);
    if ((ppo || es) && as->embeddings) {
        return grt_fail(GRT_CONFIG, "%s is a policy: --embeddings is for networks over data",
                        model->path);
    }
    if (es && as->probabilities) {
        return grt_fail(GRT_CONFIG,
                        "%s: its actions are numbers, which have no probabilities: leave out "
                        "--probabilities",
                        model->path);
    }
    return ppo  ? record_ppo(onnx, d, model, as, &task->config)
           : es ? record_es(onnx, d, model)
                : record_task(onnx, d, model, as, task);
}

bool grt_onnx_write(const struct grt_archive *model, const struct grt_onnx_export *as,
                    const char *path) {
    const struct grt_onnx_export plain = {0};
    struct onnx_declared d = {0};
    if (!model || !path || (as && as->probabilities && as->embeddings)) {
        return grt_fail(GRT_INVALID, model && path
                                         ? "embeddings have no probabilities: ask for one of them"
                                         : "a model and a path are wanted");
    }
    struct grt_onnx *onnx = grt_onnx_create();
    struct grt_task *task = calloc(1, sizeof *task);  // too large for the stack
    bool good = onnx && task && record(onnx, &d, model, as ? as : &plain, task) &&
                grt_onnx_save(onnx, model, path);
    onnx_undo(&d);
    free(task);
    grt_onnx_destroy(&onnx);
    return good;
}
