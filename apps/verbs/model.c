// SPDX-License-Identifier: Apache-2.0
// `gpurt model`: the network of a config or of a file, layer by layer, and the largest batch of it
// that a device takes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/devices.h"
#include "cli/output/table.h"
#include "cli/talk.h"
#include "gpurt/task.h"
#include "train/train_config.h"

struct model {
    struct train_config config;  // first: see train_config.h
    uint32_t batch;
};

static bool read_batch(const char *text, void *into, char why[RANGES_WHY]) {
    char *end = NULL;
    unsigned long value = strspn(text, "0123456789") ? strtoul(text, &end, 10) : 0;
    if (!end || *end || value == 0 || value > 1u << 30) {
        snprintf(why, RANGES_WHY, "wants a whole number from 1 to %u", 1u << 30);
        return false;
    }
    *(uint32_t *)into = (uint32_t)value;
    return true;
}

static const struct option_row model_options[] = {
    {.name = "batch",
     .value = "N",
     .help = "samples of a step; default: as in training",
     .read = read_batch,
     .at = offsetof(struct model, batch)},
};

// X(name, key, heading, unit, type, precision, width)
#define MODEL_COLUMNS(X)                                                                           \
    X(NAME, "name", "layer", NULL, TEXT, 0, 16)                                                    \
    X(KIND, "kind", "kind", NULL, TEXT, 0, 10)                                                     \
    X(IN, "in", "takes", NULL, TEXT, 0, 8)                                                         \
    X(OUT, "out", "gives", NULL, TEXT, 0, 8)                                                       \
    X(PARAMETERS, "parameters", "parameters", NULL, COUNT, 0, 0)                                   \
    X(OPERATIONS, "operations", "operations", NULL, COUNT, 0, 0)                                   \
    X(MEMORY, "activation_bytes", "activations", NULL, BYTES, 0, 0)                                \
    X(DEPTH, "depth", "depth", NULL, COUNT, 0, 0)

enum model_column {
#define X(name, key, heading, unit, type, precision, width) MODEL_##name,
    MODEL_COLUMNS(X)
#undef X
        MODEL_COLUMN_COUNT,
};

static const struct table_column columns[] = {MODEL_COLUMNS(TABLE_COLUMN)};

static bool print_layer(struct table *table, const struct grt_net_layer *layer, uint64_t rows,
                        bool people) {
    char in[GRT_SHAPE_TEXT], out[GRT_SHAPE_TEXT], name[GRT_PARAM_NAME + 64];
    int indent = people ? 2 * (int)layer->depth : 0;
    snprintf(name, sizeof name, "%*s%s", indent < 60 ? indent : 60, "",
             layer->name[0] ? layer->name
             : people       ? "all"
                            : "");
    struct table_cell cells[MODEL_COLUMN_COUNT] = {
        [MODEL_NAME] = TABLE_CELL(.text = name),
        [MODEL_KIND] = TABLE_CELL(.text = layer->kind),
        [MODEL_IN] = TABLE_CELL(.text = grt_shape_text(&layer->in, in)),
        [MODEL_OUT] = TABLE_CELL(.text = grt_shape_text(&layer->out, out)),
        [MODEL_PARAMETERS] = TABLE_CELL(.count = layer->parameters),
        [MODEL_OPERATIONS] = TABLE_CELL(.count = (uint64_t)layer->operations),
        [MODEL_MEMORY] = TABLE_CELL(.count = (layer->activations + rows - 1) / rows),
        [MODEL_DEPTH] = TABLE_CELL(.count = layer->depth),
    };
    return table_row(table, cells);
}

static int print(struct model *m, const struct grt_learner *learner, uint64_t rows, int argc,
                 char **argv) {
    struct output output;
    struct table table;
    int code = output_open(&output, m->config.common.output);
    if (code) {
        return code;
    }
    struct table_desc desc = {
        .output = &output,
        .format = m->config.common.format,
        .columns = columns,
        .column_count = MODEL_COLUMN_COUNT,
        .schema = "gpurt.model/1",
        .argc = argc,
        .argv = argv,
    };
    bool people = m->config.common.format == TABLE_PLAIN || m->config.common.format == TABLE_MD;
    uint64_t shown = ((1ull << MODEL_COLUMN_COUNT) - 1) & ~(1ull << MODEL_DEPTH);
    const struct grt_net_layer *layer;
    bool good = table_open(&table, &desc) && table_section(&table, NULL, shown, NULL, 0);
    for (uint32_t i = 0; good && (layer = grt_learner_layer(learner, i)) != NULL; i++) {
        good = print_layer(&table, layer, rows, people);
    }
    table_close(&table);
    return output_close(&output, true);
}

// The plan is asked; nothing is allocated.
static bool print_fit(struct grt_dev *dev, const struct grt_task *task,
                      const struct grt_learner_desc *desc) {
    struct grt_learner_desc most = *desc;
    struct grt_fit fit;
    most.batch = 1u << 30;
    most.accumulate = 1;
    struct grt_fit_besides besides = grt_task_besides(dev, &task->info, &most, GRT_CACHE_NONE);
    besides.bytes = 0;  // the staging of so large a batch is not its own
    uint64_t parts = task->config.micro_batches > 1 ? task->config.micro_batches : 1;
    besides.shared = parts > 1 ? (uint32_t)parts : 0;
    if (!grt_task_fit(dev, &most, &besides, &fit)) {
        return false;
    }
    char left[TABLE_TEXT_SIZE];
    table_bytes_text(fit.left, left);
    talk_line("largest batch on %s: %llu, in %s of free memory", grt_dev_info(dev)->selector,
              (unsigned long long)fit.batch * parts, left);
    return true;
}

// The network of a file as it would be trained, or that of the config.
static bool open_task(struct grt_task *task, const struct model *m, const struct grt_archive *model,
                      const struct grt_dev *dev) {
    if (!model) {
        return grt_task_open(task, &m->config.settings, grt_dev_profile(dev),
                             &(struct grt_task_look){.late = true});
    }
    bool open = grt_task_open_kept(task, model, false);
    task->learner.inference = false;
    return open;
}

static int run(void *values, int argc, char **argv) {
    struct model *m = values;
    int code = train_config_apart(&m->config, m->config.common.output);
    if (code) {
        return code;
    }
    struct grt_archive *model = m->config.checkpoint ? train_config_model(&m->config) : NULL;
    bool there = model || !m->config.checkpoint;
    struct grt_dev *dev = there ? train_config_device(&m->config) : NULL;
    struct grt_task *task = calloc(1, sizeof *task);
    struct grt_learner *learner = NULL;
    bool open = dev && task && open_task(task, m, model, dev);
    if (open) {
        struct grt_learner_desc desc = task->learner;
        desc.batch = m->batch ? m->batch : desc.batch;
        desc.accumulate = m->batch ? 1 : desc.accumulate;
        desc.variant = "layers";
        learner = grt_learner_create(dev, &desc);
        uint64_t rows = learner ? grt_learner_input(learner)->shape[0] : 1;
        if (learner) {
            code = print(m, learner, rows, argc, argv);
        }
        if (learner && !code && !print_fit(dev, task, &desc)) {
            code = command_exit_of(grt_last_status());
        }
    }
    if (!learner) {
        code = command_exit_of(grt_last_status());
    }
    grt_learner_destroy(&learner);
    if (open) {
        grt_task_close(task);
    }
    free(task);
    grt_archive_destroy(&model);
    grt_dev_destroy(&dev);
    return code;
}

int cmd_model(int argc, char **argv) {
    struct option_list lists[] = {
        OPTION_LIST("Options", model_options),
        OPTION_LIST("Data", train_config_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("General options", options_general),
    };
    const struct train_config_verb verb = {
        .options =
            {.verb = "model",
             .words = "[CONFIG|FILE|DIR] [KEY=VALUE...]",
             .about =
                 "The network of a config, of a file .h5, .safetensors or .onnx, or of a folder of "
                 "checkpoints,\nlayer by layer: shapes, parameters, operations of a forward pass "
                 "and bytes of activations for\none sample; and the largest batch that fits the "
                 "device.\n",
             .lists = lists,
             .list_count = sizeof lists / sizeof *lists},
        .size = sizeof(struct model),
        .config_word = true,
        .run = run,
    };
    return train_config_main(&verb, argc, argv);
}
