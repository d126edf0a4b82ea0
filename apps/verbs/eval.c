// SPDX-License-Identifier: Apache-2.0
// `gpurt eval`: the loss of a trained network over a file, as one row.
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/devices.h"
#include "cli/table.h"
#include "cli/talk.h"
#include "eval_features.h"
#include "gpurt/supervised.h"
#include "train/eval_policy.h"
#include "train/train_config.h"

struct eval {
    struct train_config config;  // first: see train_config.h
    enum grt_part part;
};

static bool read_part(const char *text, void *into, char why[RANGES_WHY]) {
#define X(name, word)                                                                              \
    if (strcmp(text, word) == 0) {                                                                 \
        *(enum grt_part *)into = GRT_PART_##name;                                                  \
        return true;                                                                               \
    }
    GRT_PARTS(X)
#undef X
#define X(name, word) " " word
    snprintf(why, RANGES_WHY, "known are" GRT_PARTS(X));
#undef X
    return false;
}

static const struct option_row eval_options[] = {
    {.name = "part",
     .value = "all|train|validation",
     .help = "samples of the file, divided as in training",
     .fallback = "all",
     .read = read_part,
     .at = offsetof(struct eval, part)},
};

// X(name, key, heading, unit, type, precision, width)
#define EVAL_COLUMNS(X)                                                                            \
    X(SAMPLES, "samples", "samples", NULL, COUNT, 0, 0)                                            \
    X(LOSS, "loss", "loss", NULL, NUMBER, 6, 10)                                                   \
    X(ACCURACY, "accuracy", "accuracy", NULL, SHARE, 2, 0)                                         \
    X(RATE, "samples_per_s", "", "samples/s", NUMBER, 0, 0)

enum eval_column {
#define X(name, key, heading, unit, type, precision, width) EVAL_##name,
    EVAL_COLUMNS(X)
#undef X
        EVAL_COLUMN_COUNT,
};

static const struct table_column columns[] = {EVAL_COLUMNS(TABLE_COLUMN)};

static int print(struct eval *e, struct grt_dev *dev, const struct grt_evaluation *result, int argc,
                 char **argv) {
    struct output output;
    struct table table;
    int code = output_open(&output, e->config.common.output);
    if (code) {
        return code;
    }
    struct table_desc desc = {
        .output = &output,
        .format = e->config.common.format,
        .columns = columns,
        .column_count = EVAL_COLUMN_COUNT,
        .schema = "gpurt.eval/1",
        .argc = argc,
        .argv = argv,
        .head = json_pack("{so}", "device", devices_json(grt_dev_info(dev))),
    };
    struct table_cell cells[EVAL_COLUMN_COUNT] = {
        [EVAL_SAMPLES] = TABLE_CELL(.count = result->samples),
        [EVAL_LOSS] = TABLE_CELL(.number = result->loss),
    };
    uint64_t shown = (1ull << EVAL_COLUMN_COUNT) - 1;
    if (result->accuracy >= 0) {
        cells[EVAL_ACCURACY] = TABLE_CELL(.number = result->accuracy);
    } else {
        shown &= ~(1ull << EVAL_ACCURACY);
    }
    if (result->seconds > 0) {
        cells[EVAL_RATE] = TABLE_CELL(.number = (double)result->samples / result->seconds);
    }
    if (table_open(&table, &desc) && table_section(&table, NULL, shown, NULL, 0)) {
        table_row(&table, cells);
    }
    table_close(&table);
    return output_close(&output, true);
}

static int run(void *values, int argc, char **argv) {
    struct eval *e = values;
    struct grt_evaluation result;
    struct grt_archive *model = NULL;
    struct grt_dev *dev = NULL;
    int code = train_config_open(&e->config, e->config.common.output, &model, &dev);
    if (!code && !grt_evaluate(dev, model, &e->config.settings, e->part, talk_stopped, &result)) {
        code = command_exit_of(grt_last_status());
    } else if (!code) {
        code = print(e, dev, &result, argc, argv);
    }
    grt_archive_destroy(&model);
    grt_dev_destroy(&dev);
    return code;
}

int cmd_eval(int argc, char **argv) {
    if (argc > 1 && eval_features_knows(argv[1])) {
        return eval_features(argc, argv);
    }
    // A word that is neither an option nor KEY=VALUE is an environment.
    if (argc > 1 && argv[1][0] != '-' && !strchr(argv[1], '=')) {
        return eval_policy(argc, argv);
    }
    struct option_list lists[] = {
        OPTION_LIST("Options", train_checkpoint_options),
        OPTION_LIST("Data", train_config_options),
        OPTION_LIST("Part", eval_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("General options", options_general),
    };
    const struct train_config_verb verb = {
        .options =
            {.verb = "eval",
             .words = "[KEY=VALUE...]",
             .about =
                 "The loss of a network that `gpurt train supervised` trained, over the samples of "
                 "a file.\nKEY=VALUE says how they are read: batch_size=4096 num_workers=4.\n"
                 "`gpurt eval knn` and `gpurt eval linear` try what it makes of samples before its "
                 "last layers.\n`gpurt eval ENV --checkpoint FILE` tries a policy instead; see "
                 "`gpurt eval uav --help`.\n",
             .lists = lists,
             .list_count = sizeof lists / sizeof *lists},
        .size = sizeof(struct eval),
        .run = run,
    };
    return train_config_main(&verb, argc, argv);
}
