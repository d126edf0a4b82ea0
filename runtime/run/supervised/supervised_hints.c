// SPDX-License-Identifier: Apache-2.0
// Data that can be trained on, and were hardly meant as they are: said before the first step.
#include <string.h>

#include "gpurt/comm.h"
#include "supervised_parts.h"

// [N][3][H][W], as PyTorch has images. A plain mlp takes all numbers alike.
static void hint_images(const struct grt_task *task) {
    const struct grt_config *c = &task->config;
    bool by_pixel = grt_config_given(c, GRT_CONFIG_NETWORK) || c->transform.text[0];
    for (uint32_t i = 0; by_pixel && i < task->info.input_count; i++) {
        const struct grt_dataset_input *in = &task->info.inputs[i];
        uint32_t first = in->height, second = first > 0 ? in->points / first : 0;
        bool channels = first == 1 || first == 3 || first == 4;
        if (channels && second > 4 && in->features > 4) {
            grt_log(GRT_LOG_WARN,
                    "%s: '%s' looks like [N][C][H][W], images of %u x %u pixels and %u channel%s; "
                    "gpurt reads [N][H][W][C], %u x %u pixels and %u channels: turn it, in h5py "
                    "f['%s'][:].transpose(0, 2, 3, 1)",
                    c->data, in->name, second, in->features, first, first == 1 ? "" : "s", first,
                    second, in->features, in->name);
        }
    }
}

static void hint_classes(const struct grt_task *task) {
    const struct grt_config *c = &task->config;
    uint32_t classes = task->info.classes, least = task->info.least_class;
    const char *name = c->targets.count > 0   ? c->targets.values[0]
                       : task->source.columns ? "the last column"
                                              : "y";
    if (classes > 0 && least + 1 == classes) {
        grt_log(GRT_LOG_WARN,
                "%s: all samples of '%s' are of class %u: there is nothing to tell apart, and an "
                "accuracy of 100 %% says nothing; targets=NAME names other classes",
                c->data, name, least);
    } else if (classes > 0 && least > 0) {
        grt_log(GRT_LOG_WARN,
                "%s: no sample is of class 0: '%s' holds %u to %u, and classes are numbered from "
                "0; unless that is meant, subtract %u",
                c->data, name, least, classes - 1, least);
    }
}

void supervised_hint(const struct grt_supervised *s) {
    if (grt_comm_rank(s->desc.comm) == 0) {
        hint_images(&s->task);
        hint_classes(&s->task);
    }
}
