// SPDX-License-Identifier: Apache-2.0
// Several losses: `losses` has one for each data set of `targets`, NAME or NAME(N) for N outputs.
// Of classes N is wanted; of numbers it is the width of the data set, which a checkpoint keeps.
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "task_parts.h"

TASK_WORD_FN(loss_of, GRT_LOSSES)

static bool read_one(const char *text, struct grt_loss_share *share) {
    char name[32];
    size_t length = strcspn(text, "(");
    const char *rest = text + length;
    char *end = NULL;
    unsigned long cols = rest[0] == '(' ? strtoul(rest + 1, &end, 10) : 0;
    snprintf(name, sizeof name, "%.*s", length < sizeof name ? (int)length : 0, text);
    share->loss = (enum grt_loss)loss_of(name);
    if (strcmp(name, grt_loss_text(share->loss)) != 0 || !grt_loss_has_targets(share->loss)) {
        return grt_fail(GRT_CONFIG,
                        "losses: '%s' is none of mse, huber, l1, bce and cross_entropy(CLASSES)",
                        text);
    }
    if (rest[0] && (!end || strcmp(end, ")") != 0 || cols == 0 || cols > 65536)) {
        return grt_fail(GRT_CONFIG, "losses: '%s' wants a number from 1 to 65536 in parentheses",
                        text);
    }
    if (share->loss == GRT_LOSS_CROSS_ENTROPY && cols < 2) {
        return grt_fail(GRT_CONFIG,
                        "losses: '%s' wants the number of classes: cross_entropy(5), for example",
                        text);
    }
    share->cols = (uint32_t)cols;
    return true;
}

bool task_one_way(const struct grt_config *c) {
    bool both =
        c->losses.count > 0 && strcmp(c->loss, "auto") != 0 && grt_config_given(c, GRT_CONFIG_LOSS);
    if (both && strcmp(c->loss, grt_loss_text(GRT_LOSS_NT_XENT)) == 0) {
        return grt_fail(GRT_CONFIG,
                        "losses has no effect with nt_xent, the loss of simclr: leave it out");
    }
    return !both || grt_fail(GRT_CONFIG, "losses and loss %s: give one of them", c->loss);
}

bool task_read_losses(struct grt_task *task) {
    struct grt_config *c = &task->config;
    uint32_t count = c->losses.count;
    task->loss_count = 0;
    if (count == 0 || task->features) {
        return true;
    }
    if (c->targets.count == 0) {
        return grt_fail(GRT_CONFIG, "losses wants targets, a data set for each: targets=A,B");
    }
    if (count == 1) {
        const char *one = c->losses.values[0];
        return grt_fail(GRT_CONFIG, "losses has 1: for one loss of all targets, give loss=%.*s",
                        (int)strcspn(one, "("), one);
    }
    if (count > GRT_LOSS_MOST || count != c->targets.count) {
        return grt_fail(GRT_CONFIG,
                        "losses has %u, and targets has %u data sets: 2 to %d of each are wanted",
                        count, c->targets.count, GRT_LOSS_MOST);
    }
    if (c->loss_weights.count > 0 && c->loss_weights.count != count) {
        return grt_fail(GRT_CONFIG, "loss_weights has %u numbers, and losses has %u",
                        c->loss_weights.count, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct grt_loss_share *share = &task->losses[i];
        double scale = c->loss_weights.count > 0 ? c->loss_weights.values[i] : 1;
        share->scale = (float)scale;
        if (!read_one(c->losses.values[i], share)) {
            return false;
        }
        if (!(share->scale > 0.0f)) {
            return grt_fail(GRT_CONFIG,
                            "loss_weights: %g is not above 0: leave that target and its loss out",
                            scale);
        }
    }
    task->loss_count = count;
    // What is asked of one loss is then answered as for numbers. It was not given, and stays so.
    snprintf(c->loss, sizeof c->loss, "%s", grt_loss_text(GRT_LOSS_MSE));
    return true;
}

void task_loss_kinds(const struct grt_task *task, struct grt_dataset_target *kinds) {
    for (uint32_t i = 0; i < task->loss_count; i++) {
        const struct grt_loss_share *share = &task->losses[i];
        kinds[i] = (struct grt_dataset_target){
            .classes = share->loss == GRT_LOSS_CROSS_ENTROPY ? share->cols : 0,
            .shares = share->loss == GRT_LOSS_BCE};
    }
}

bool task_loss_widths(struct grt_task *task) {
    char text[GRT_LOSS_MOST * 32] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < task->loss_count; i++) {
        struct grt_loss_share *share = &task->losses[i];
        const char *name = task->config.targets.values[i];
        uint32_t width = task->info.target_widths[i];
        if (share->loss != GRT_LOSS_CROSS_ENTROPY && width > 0) {
            if (share->cols > 0 && share->cols != width) {
                return grt_fail(GRT_CONFIG, "losses: %s is of %u numbers, and '%s' of %s has %u",
                                grt_loss_text(share->loss), share->cols, name, task->config.data,
                                width);
            }
            share->cols = width;
        }
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s(%u)", i > 0 ? "," : "",
                               grt_loss_text(share->loss), share->cols);
    }
    return task->loss_count == 0 || grt_config_set(&task->config, GRT_CONFIG_LOSSES, text);
}
