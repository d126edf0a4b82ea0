// SPDX-License-Identifier: Apache-2.0
// What a config says of networks and optimizers, whatever is trained.
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "task_parts.h"

TASK_WORD_FN(optim_of, GRT_OPTIMS)
TASK_WORD_FN(act_of, GRT_ACTS)
TASK_WORD_FN(precision_of, GRT_DTYPES)

enum grt_dtype grt_task_precision(const struct grt_config *c) {
    return (enum grt_dtype)precision_of(c->precision);
}

static bool one_width(const struct grt_config *c) {
    uint32_t i = 1;
    while (i < c->hidden.count && c->hidden.values[i] == c->hidden.values[0]) {
        i++;
    }
    return i == c->hidden.count;
}

bool grt_task_widths(struct grt_config *c) {
    uint32_t count = c->hidden.count;
    if (count == 1 || grt_config_given(c, GRT_CONFIG_NETWORK)) {
        return true;
    }
    if (count > GRT_MLP_WIDTHS) {
        return grt_fail(GRT_CONFIG, "hidden has %u widths; at most %d are taken", count,
                        GRT_MLP_WIDTHS);
    }
    if (grt_config_given(c, GRT_CONFIG_DEPTH) && c->depth != count) {
        return grt_fail(
            GRT_CONFIG,
            "hidden has %u widths and depth is %llu: leave depth out, or give one width", count,
            (unsigned long long)c->depth);
    }
    if (c->residual && !one_width(c)) {
        return grt_fail(GRT_CONFIG, "residual: true adds hidden layers of one width, and hidden "
                                    "has several: give one, or a list of layers with shortcuts");
    }
    char depth[16];
    snprintf(depth, sizeof depth, "%u", count);
    return grt_config_set(c, GRT_CONFIG_DEPTH, depth);
}

static double lr_of(const struct grt_config *c, double lr) {
    return strcmp(c->lr_rule, "sqrt") == 0
               ? grt_lr_for_batch(lr, c->batch_size * c->accumulate, c->base_batch_size)
               : lr;
}

bool grt_task_optimizer(const struct grt_config *c, struct grt_optim_desc *desc) {
    struct grt_optim_desc o = grt_optim_defaults((enum grt_optim)optim_of(c->optimizer));
    o.lr = lr_of(c, c->learning_rate);
    if (grt_config_given(c, GRT_CONFIG_WEIGHT_DECAY) || c->weight_decay > 0) {
        o.weight_decay = c->weight_decay;
    }
    o.momentum = c->momentum;
    o.nesterov = c->nesterov && (o.kind == GRT_OPTIM_SGD || o.kind == GRT_OPTIM_LARS);
    o.trust = c->trust_coefficient;
    o.div = c->div_factor;
    o.final_div = c->final_div_factor;
    o.ema = c->ema;
    o.beta1 = c->betas.values[0];
    o.beta2 = c->betas.values[1];
    o.eps = c->eps;
    o.max_norm = c->max_grad_norm;
    o.min_lr = c->min_learning_rate;
    if (o.min_lr > o.lr) {
        char where[GRT_CONFIG_WHERE];
        grt_config_where(c, GRT_CONFIG_MIN_LEARNING_RATE, where);
        return grt_fail(GRT_CONFIG, "%smin_learning_rate %g is above the learning rate, %g", where,
                        o.min_lr, o.lr);
    }
    o.gamma = c->gamma;
    o.warmup = (uint32_t)c->warmup_steps;
    o.nonfinite = strcmp(c->on_nan_loss, "skip") == 0 ? GRT_NONFINITE_SKIP : GRT_NONFINITE_HALT;
    o.scale = c->loss_scale;
    o.growth_interval = (uint32_t)c->growth_interval;
    o.decay_matrices = strcmp(c->decay_of, "matrices") == 0;
    if (!(c->scope & GRT_CONFIG_OF_SUPERVISED) && o.kind == GRT_OPTIM_LARS) {
        return grt_fail(GRT_CONFIG, "optimizer lars is for supervised training");
    }
    if (!task_freeze(c, &o) || !task_groups(c, &o)) {
        return false;
    }
    for (uint32_t i = 0; i < o.group_count; i++) {
        o.groups[i].lr = lr_of(c, o.groups[i].lr);
    }
    *desc = o;
    return true;
}

struct grt_mlp_desc grt_task_mlp(const struct grt_config *c, uint32_t outputs) {
    struct grt_mlp_desc mlp = {.depth = (uint32_t)c->depth,
                               .hidden = (uint32_t)c->hidden.values[0],
                               .outputs = outputs,
                               .act = (enum grt_act)act_of(c->activation),
                               .residual = c->residual,
                               .layer_norm = c->layer_norm};
    for (uint32_t i = 0; !one_width(c) && i < c->hidden.count; i++) {
        mlp.widths[i] = (uint32_t)c->hidden.values[i];
    }
    return mlp;
}
