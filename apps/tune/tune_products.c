// SPDX-License-Identifier: Apache-2.0
// The products of a training run, from its config.
#include "tune.h"

#include <stdlib.h>

#include "cli/command.h"
#include "cli/talk.h"
#include "gpurt/task.h"

enum { TRANS_NN = 0, TRANS_TN = 2 };  // see bench_gemm_shape

// The largest product of a network: rows for a sample, inputs and outputs. The reference device is
// asked for its layers; nothing is allocated.
struct product {
    uint64_t rows, inputs, outputs;
};

static bool largest_product(const struct grt_task *task, struct product *p) {
    const struct grt_config *c = &task->config;
    if (!grt_config_given(c, GRT_CONFIG_NETWORK)) {
        uint64_t inputs = task->learner.input.dim[task->learner.input.rank - 1], widest = 0;
        for (uint32_t i = 0; i < c->hidden.count; i++) {
            widest = c->hidden.values[i] > widest ? c->hidden.values[i] : widest;
        }
        *p = (struct product){task->learner.input.rank > 1 ? task->learner.input.dim[0] : 1,
                              inputs > widest ? inputs : widest, widest};
        return true;
    }
    struct grt_dev *dev = grt_dev_create(grt_dev_desc(.backend = "ref"));
    struct grt_learner *learner = dev ? grt_learner_create(dev, &task->learner) : NULL;
    const struct grt_net_layer *layer;
    double most = 0;
    for (uint32_t i = 0; learner && (layer = grt_learner_layer(learner, i)) != NULL; i++) {
        if (!layer->parts && layer->parameters > 0 && layer->operations > most) {
            // A convolution's rows are the pixels that it gives, its inputs a whole patch.
            uint64_t outputs = layer->out.dim[layer->out.rank - 1];
            uint64_t rows = grt_shape_count(&layer->out) / outputs;
            most = layer->operations;
            *p = (struct product){rows, (uint64_t)(most / (2.0 * (double)rows * (double)outputs)),
                                  outputs};
        }
    }
    grt_learner_destroy(&learner);
    grt_dev_destroy(&dev);
    return most > 0;
}

// Its largest layer forward, and that layer's gradient of weights. Long ones are cut to what leaves
// time for many candidates.
int tune_products(const struct grt_config *settings, const struct grt_profile *profile,
                  struct bench_gemm_options *o) {
    struct grt_task task;
    struct grt_config config = *settings;
    // Shapes alone are wanted: the data are not read through for them.
    if (!grt_config_set(&config, GRT_CONFIG_NORMALIZE, "false") ||
        !grt_config_set(&config, GRT_CONFIG_ON_NAN, "error") ||
        !grt_task_open(&task, &config, profile, &(struct grt_task_look){.late = true})) {
        return command_exit_of(grt_last_status());
    }
    struct product p = {0};
    if (!largest_product(&task, &p)) {
        grt_task_close(&task);
        return command_exit_of(grt_last_status());
    }
    uint64_t rows = task.config.batch_size * p.rows;
    while (rows > 1024 && rows * p.outputs * p.inputs > 1u << 30) {
        rows /= 2;
    }
    o->precisions = task.learner.precision == GRT_F32   ? 1
                    : task.learner.precision == GRT_F16 ? 2
                                                        : 4;
    o->shapes.values = calloc(2, sizeof *o->shapes.values);
    if (o->shapes.values) {
        o->shapes.values[o->shapes.count++] =
            (struct bench_gemm_shape){rows, p.outputs, p.inputs, TRANS_NN};
        o->shapes.values[o->shapes.count++] =
            (struct bench_gemm_shape){p.outputs, p.inputs, rows, TRANS_TN};
        talk_line("autotune: products of %llux%llux%llu and %llux%llux%llu in %s",
                  (unsigned long long)rows, (unsigned long long)p.outputs,
                  (unsigned long long)p.inputs, (unsigned long long)p.outputs,
                  (unsigned long long)p.inputs, (unsigned long long)rows, task.config.precision);
    }
    grt_task_close(&task);
    if (!o->shapes.values) {
        talk_error("out of memory");
        return COMMAND_INTERNAL;
    }
    return COMMAND_OK;
}
