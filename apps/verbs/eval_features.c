// SPDX-License-Identifier: Apache-2.0
// `gpurt eval knn` and `gpurt eval linear`: how well classes can be told by what a network makes of
// samples, and by the samples themselves.
#include "eval_features.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/command.h"
#include "cli/devices.h"
#include "cli/output/table.h"
#include "cli/talk.h"
#include "gpurt/features.h"
#include "train/train_config.h"

struct trial {
    struct train_config config;  // first: see train_config.h
    uint32_t k, epochs, no_baseline;
    double temperature, learning_rate;
};

#define AT(field) offsetof(struct trial, field)

static const struct option_row knn_options[] = {
    {.name = "k",
     .value = "N",
     .help = "neighbours that vote, at most as many as there are",
     .fallback = "200",
     .read = options_read_count,
     .at = AT(k)},
    {.name = "temperature",
     .value = "T",
     .help = "a vote weighs exp(cosine / T)",
     .fallback = "0.1",
     .read = options_read_positive,
     .at = AT(temperature)},
    {.name = "no-baseline", .help = "what was learned alone", .at = AT(no_baseline)},
};

static const struct option_row linear_options[] = {
    {.name = "epochs",
     .value = "N",
     .help = "passes over the samples with known classes",
     .fallback = "100",
     .read = options_read_count,
     .at = AT(epochs)},
    {.name = "learning-rate",
     .value = "R",
     .help = "of AdamW, along a cosine",
     .fallback = "0.003",
     .read = options_read_positive,
     .at = AT(learning_rate)},
    {.name = "no-baseline", .help = "what was learned alone", .at = AT(no_baseline)},
};

// X(name, key, heading, unit, type, precision, width)
#define TRIAL_COLUMNS(X)                                                                           \
    X(FEATURES, "features", "features", NULL, TEXT, 0, 10)                                         \
    X(WIDTH, "width", "width", NULL, COUNT, 0, 0)                                                  \
    X(BANK, "bank", "bank", NULL, COUNT, 0, 0)                                                     \
    X(QUERIES, "queries", "queries", NULL, COUNT, 0, 0)                                            \
    X(ACCURACY, "accuracy", "accuracy", NULL, SHARE, 2, 0)                                         \
    X(SECONDS, "seconds", "", "s", NUMBER, 2, 0)

enum trial_column {
#define X(name, key, heading, unit, type, precision, width) TRIAL_##name,
    TRIAL_COLUMNS(X)
#undef X
        TRIAL_COLUMN_COUNT,
};
static const struct table_column columns[] = {TRIAL_COLUMNS(TABLE_COLUMN)};
#define TRIALS 3  // rows: learned, untrained, raw pixels

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef bool trial_fn(const struct trial *t, struct grt_dev *dev, const struct grt_features *bank,
                      const struct grt_features *queries, double *accuracy);

static bool try_knn(const struct trial *t, struct grt_dev *dev, const struct grt_features *bank,
                    const struct grt_features *queries, double *accuracy) {
    return grt_knn(dev, bank, queries,
                   &(struct grt_knn_desc){.k = t->k, .temperature = t->temperature}, accuracy);
}

static bool try_linear(const struct trial *t, struct grt_dev *dev, const struct grt_features *bank,
                       const struct grt_features *queries, double *accuracy) {
    return grt_linear_probe(dev, bank, queries,
                            &(struct grt_linear_probe_desc){.epochs = t->epochs,
                                                            .learning_rate = t->learning_rate,
                                                            .seed = t->config.settings.seed},
                            accuracy);
}

static int print(const struct trial *t, struct grt_dev *dev,
                 struct table_cell rows[][TRIAL_COLUMN_COUNT], int count, int argc, char **argv) {
    struct output output;
    struct table table;
    int code = output_open(&output, t->config.common.output);
    if (code) {
        return code;
    }
    struct table_desc desc = {
        .output = &output,
        .format = t->config.common.format,
        .columns = columns,
        .column_count = TRIAL_COLUMN_COUNT,
        .schema = "gpurt.eval.features/1",
        .argc = argc,
        .argv = argv,
        .head = json_pack("{so}", "device", devices_json(grt_dev_info(dev))),
    };
    if (table_open(&table, &desc) &&
        table_section(&table, NULL, (1ull << TRIAL_COLUMN_COUNT) - 1, NULL, 0)) {
        for (int i = 0; i < count; i++) {
            table_row(&table, rows[i]);
        }
    }
    table_close(&table);
    return output_close(&output, true);
}

// A row of the table: of what features these are, and what they are worth.
static int judge(const struct trial *t, struct grt_dev *dev, const char *name,
                 const struct grt_features *bank, const struct grt_features *queries, trial_fn *fn,
                 struct table_cell row[TRIAL_COLUMN_COUNT]) {
    double share = 0, start = now();
    talk_progress(name);
    bool good = fn(t, dev, bank, queries, &share);
    talk_clear();
    row[TRIAL_FEATURES] = TABLE_CELL(.text = name);
    row[TRIAL_WIDTH] = TABLE_CELL(.count = bank->width);
    row[TRIAL_BANK] = TABLE_CELL(.count = bank->rows);
    row[TRIAL_QUERIES] = TABLE_CELL(.count = queries->rows);
    row[TRIAL_ACCURACY] = TABLE_CELL(.number = share);
    row[TRIAL_SECONDS] = TABLE_CELL(.number = now() - start);
    return good ? COMMAND_OK : command_exit_of(grt_last_status());
}

// What was learnt; then what the same network gives as it was drawn, and the samples themselves.
static int judge_all(const struct trial *t, struct grt_dev *dev, const struct grt_archive *model,
                     trial_fn *fn, int argc, char **argv) {
    struct table_cell rows[TRIALS][TRIAL_COLUMN_COUNT] = {0};
    int code = COMMAND_OK, count = 0;
    for (int drawn = 0; !code && drawn < (t->no_baseline ? 1 : 2); drawn++) {
        struct grt_features_of of = {0};
        const struct grt_features_desc desc = {.model = model,
                                               .config = &t->config.settings,
                                               .pixels = drawn != 0,
                                               .drawn = drawn != 0,
                                               .stop = talk_stopped};
        talk_progress("taking features");
        bool good = grt_features_take(dev, &desc, &of);
        talk_clear();
        code = good ? judge(t, dev, drawn ? "untrained" : "learned", &of.bank, &of.queries, fn,
                            rows[count++])
                    : command_exit_of(grt_last_status());
        if (!code && drawn) {
            code = judge(t, dev, "raw pixels", &of.bank_x, &of.queries_x, fn, rows[count++]);
        }
        grt_features_of_finish(&of);
    }
    return code ? code : print(t, dev, rows, count, argc, argv);
}

static int run(struct trial *t, trial_fn *fn, int argc, char **argv) {
    struct grt_archive *model = NULL;
    struct grt_dev *dev = NULL;
    int code = train_config_open(&t->config, t->config.common.output, &model, &dev);
    code = code ? code : judge_all(t, dev, model, fn, argc, argv);
    grt_archive_destroy(&model);
    grt_dev_destroy(&dev);
    return code;
}

static int run_knn(void *values, int argc, char **argv) {
    return run(values, try_knn, argc, argv);
}

static int run_linear(void *values, int argc, char **argv) {
    return run(values, try_linear, argc, argv);
}

#define SAMPLES                                                                                    \
    "Samples with known classes are x and y of the file. The others are test/x and test/y where "  \
    "the file\nhas them, else a fifth of x and y (validation_split=0.2), which the former then "   \
    "lack.\nThe rows below are the same for the network as it was drawn, and for the samples "     \
    "themselves.\n"

static int eval_knn(int argc, char **argv) {
    struct option_list lists[] = {
        OPTION_LIST("Options", train_checkpoint_options),
        OPTION_LIST("Data", train_config_options),
        OPTION_LIST("Neighbours", knn_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("General options", options_general),
    };
    const struct train_config_verb verb = {
        .options = {.verb = "eval knn",
                    .words = "[KEY=VALUE...]",
                    .about = "The share of samples whose class the nearest neighbours of their "
                             "features vote for, by cosine.\nFeatures are what a network gives "
                             "before its last layers.\n" SAMPLES,
                    .lists = lists,
                    .list_count = sizeof lists / sizeof *lists},
        .size = sizeof(struct trial),
        .run = run_knn,
    };
    return train_config_main(&verb, argc, argv);
}

static int eval_linear(int argc, char **argv) {
    struct option_list lists[] = {
        OPTION_LIST("Options", train_checkpoint_options),
        OPTION_LIST("Data", train_config_options),
        OPTION_LIST("Linear layer", linear_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("General options", options_general),
    };
    const struct train_config_verb verb = {
        .options = {.verb = "eval linear",
                    .words = "[KEY=VALUE...]",
                    .about = "The share of samples whose class a linear layer finds, trained on "
                             "the features of a network\nthat stays as it is. Features are what "
                             "it gives before its last layers.\n" SAMPLES,
                    .lists = lists,
                    .list_count = sizeof lists / sizeof *lists},
        .size = sizeof(struct trial),
        .run = run_linear,
    };
    return train_config_main(&verb, argc, argv);
}

static const struct {
    const char *word;
    int (*run)(int argc, char **argv);
} trials[] = {{"knn", eval_knn}, {"linear", eval_linear}};

bool eval_features_knows(const char *word) {
    return strcmp(word, "knn") == 0 || strcmp(word, "linear") == 0;
}

int eval_features(int argc, char **argv) {
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        if (strcmp(argv[1], trials[i].word) == 0) {
            return trials[i].run(argc - 1, argv + 1);
        }
    }
    return COMMAND_USAGE;
}
