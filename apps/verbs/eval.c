// SPDX-License-Identifier: Apache-2.0
// `gpurt eval`: the loss of a trained network over a file, as one row.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/devices.h"
#include "cli/output/files.h"
#include "cli/output/sheet.h"
#include "cli/output/table.h"
#include "cli/talk.h"
#include "eval_features.h"
#include "gpurt/scores.h"
#include "mistakes.h"
#include "train/eval_policy.h"
#include "train/train_config.h"

struct eval {
    struct train_config config;  // first: see train_config.h
    enum grt_part part;
    const char *mistakes;
    uint32_t scores;
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
    {.name = "scores",
     .help = "also MAE and R2, or of classes F1 and AUC, as scikit-learn has them: a second pass",
     .at = offsetof(struct eval, scores)},
    {.name = "mistakes",
     .value = "FILE",
     .help = "of classes of images: draw the worst mistakes, .svg or .png",
     .read = options_read_text,
     .at = offsetof(struct eval, mistakes)},
};

// X(name, key, heading, unit, type, precision, width)
#define EVAL_COLUMNS(X)                                                                            \
    X(SAMPLES, "samples", "samples", NULL, COUNT, 0, 0)                                            \
    X(LOSS, "loss", "loss", NULL, NUMBER, 6, 10)                                                   \
    X(LOSS_1, "loss_1", "loss 1", NULL, NUMBER, 6, 10)                                             \
    X(LOSS_2, "loss_2", "loss 2", NULL, NUMBER, 6, 10)                                             \
    X(LOSS_3, "loss_3", "loss 3", NULL, NUMBER, 6, 10)                                             \
    X(LOSS_4, "loss_4", "loss 4", NULL, NUMBER, 6, 10)                                             \
    X(ACCURACY, "accuracy", "accuracy", NULL, SHARE, 2, 0)                                         \
    X(RATE, "samples_per_s", "", "samples/s", NUMBER, 0, 0)                                        \
    X(TOP5, "top5", "top-5", NULL, SHARE, 2, 0)                                                    \
    X(FREQUENT, "most_frequent", "most frequent here", NULL, SHARE, 2, 0)                          \
    X(MAE, "mae", "MAE", NULL, NUMBER, 6, 10)                                                      \
    X(R2, "r2", "R2", NULL, NUMBER, 6, 10)                                                         \
    X(F1, "f1", "F1", NULL, NUMBER, 6, 10)                                                         \
    X(AUC, "auc", "AUC", NULL, NUMBER, 6, 10)

enum eval_column {
#define X(name, key, heading, unit, type, precision, width) EVAL_##name,
    EVAL_COLUMNS(X)
#undef X
        EVAL_COLUMN_COUNT,
};

static const struct table_column columns[] = {EVAL_COLUMNS(TABLE_COLUMN)};

#define MOST_SHOWN 20  // classes of a matrix that people can read

// Rows are what samples are, columns what they were taken for.
static void print_confusion(FILE *file, const struct grt_classified *c,
                            const struct grt_file_info *names) {
    int width = 5;
    char text[40];
    for (uint32_t k = 0; k < c->classes; k++) {
        mistakes_name(names, k, text);
        width = (int)strlen(text) > width && c->classes <= MOST_SHOWN ? (int)strlen(text) : width;
    }
    output_line(file, "%s", "");
    if (c->classes > MOST_SHOWN) {
        output_line(file, "%u classes: --format json has what was taken for what", c->classes);
        return;
    }
    output_line(file, "what samples are, and what they were taken for:");
    for (uint32_t r = 0; r <= c->classes; r++) {
        char line[MOST_SHOWN * 34 + 64] = "";
        size_t used = 0;
        mistakes_name(names, r - 1, text);
        used += (size_t)snprintf(line, sizeof line, "%-*.32s", width, r > 0 ? text : "");
        for (uint32_t k = 0; k < c->classes; k++) {
            mistakes_name(names, k, text);
            if (r > 0) {
                snprintf(text, sizeof text, "%llu",
                         (unsigned long long)c->confusion[(uint64_t)(r - 1) * c->classes + k]);
            }
            used += (size_t)snprintf(line + used, sizeof line - used, " %*.32s", width, text);
        }
        output_line(file, "%s", line);
    }
}

static void note_confusion(struct table *table, const struct grt_classified *c,
                           const struct grt_file_info *names) {
    json_t *rows = json_array(), *words = json_array();
    for (uint32_t r = 0; r < c->classes; r++) {
        char text[40];
        json_t *row = json_array();
        for (uint32_t k = 0; k < c->classes; k++) {
            json_array_append_new(
                row, json_integer((json_int_t)c->confusion[(uint64_t)r * c->classes + k]));
        }
        json_array_append_new(rows, row);
        mistakes_name(names, r, text);
        json_array_append_new(words, table_json_text(text));
    }
    table_note(table, "class_names", words);
    table_note(table, "confusion", rows);
}

// Columns of scores, and which of them are shown; all others are in no form of output.
static void set_scores(const struct grt_scores *scores, struct table_cell *cells, uint64_t *shown) {
    const struct {
        enum eval_column column;
        bool known;
        double number;
    } rows[] = {{EVAL_MAE, scores && scores->classes == 0, scores ? scores->mae : 0},
                {EVAL_R2, scores && scores->classes == 0, scores ? scores->r2 : 0},
                {EVAL_F1, scores && scores->classes > 0, scores ? scores->f1 : 0},
                {EVAL_AUC, scores && scores->classes > 0, scores ? scores->auc : 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].known) {
            cells[rows[i].column] =
                (struct table_cell){.known = !isnan(rows[i].number), .number = rows[i].number};
        } else {
            *shown &= ~(1ull << rows[i].column);
        }
    }
}

static int print(struct eval *e, struct grt_dev *dev, const struct grt_evaluation *result,
                 const struct grt_classified *classified, const struct grt_scores *scores,
                 const struct grt_file_info *names, int argc, char **argv) {
    struct output output;
    struct table table;
    struct table_column own[EVAL_COLUMN_COUNT];
    int code = output_open(&output, e->config.common.output);
    if (code) {
        return code;
    }
    struct table_desc desc = {
        .output = &output,
        .format = e->config.common.format,
        .columns = own,
        .column_count = scores ? EVAL_COLUMN_COUNT : EVAL_MAE,
        .schema = "gpurt.eval/1",
        .argc = argc,
        .argv = argv,
        .head = json_pack("{so}", "device", devices_json(grt_dev_info(dev))),
    };
    struct table_cell cells[EVAL_COLUMN_COUNT] = {
        [EVAL_SAMPLES] = TABLE_CELL(.count = result->samples),
        [EVAL_LOSS] = TABLE_CELL(.number = result->loss),
    };
    uint64_t shown = (1ull << desc.column_count) - 1;
    if (result->accuracy >= 0) {
        cells[EVAL_ACCURACY] = TABLE_CELL(.number = result->accuracy);
    } else {
        shown &= ~(1ull << EVAL_ACCURACY);
    }
    if (result->top5 >= 0) {
        cells[EVAL_TOP5] = TABLE_CELL(.number = result->top5);
    } else {
        shown &= ~(1ull << EVAL_TOP5);
    }
    memcpy(own, columns, sizeof own);
    for (uint32_t i = 0; i < GRT_LOSS_MOST; i++) {
        if (i < result->loss_count) {
            cells[EVAL_LOSS_1 + i] = TABLE_CELL(.number = result->losses[i]);
        } else {
            own[EVAL_LOSS_1 + i].key = NULL;  // in no form of output
            shown &= ~(1ull << (EVAL_LOSS_1 + i));
        }
    }
    if (classified) {
        cells[EVAL_FREQUENT] = TABLE_CELL(.number = classified->baseline);
    } else {
        shown &= ~(1ull << EVAL_FREQUENT);
    }
    set_scores(scores, cells, &shown);
    if (result->seconds > 0) {
        cells[EVAL_RATE] = TABLE_CELL(.number = (double)result->samples / result->seconds);
    }
    if (table_open(&table, &desc) && table_section(&table, NULL, shown, NULL, 0)) {
        table_row(&table, cells);
    }
    if (classified && e->config.common.format != TABLE_PLAIN) {
        note_confusion(&table, classified, names);
    }
    table_close(&table);
    if (classified && e->config.common.format == TABLE_PLAIN) {
        print_confusion(output.file, classified, names);
    }
    return output_close(&output, true);
}

// The names of classes: those that the network was trained with, where it has them, or the file's.
static struct grt_file_info *names_of(const struct grt_archive *model, const char *data) {
    const char *at = grt_archive_text(model, "class_names", NULL);
    const char *path = at ? NULL : grt_direct_path(data);
    struct grt_file_info *names = at     ? calloc(1, sizeof *names)
                                  : path ? grt_file_info_create(path)
                                         : NULL;
    for (uint32_t i = 0; names && at && *at && i < GRT_FILE_NAMES; i++) {
        size_t length = strcspn(at, "\n");
        snprintf(names->class_names[i], GRT_FILE_NAME, "%.*s", (int)length, at);
        names->class_name_count = i + 1;
        at += length + (at[length] == '\n');
    }
    return names;
}

// Classes: what is taken for what, and a picture of the worst where one is wanted.
static int run_classes(struct eval *e, struct grt_dev *dev, const struct grt_archive *model,
                       int argc, char **argv) {
    struct grt_classified *classified =
        grt_classified_create(dev, model, &e->config.settings, e->part, talk_stopped);
    if (!classified) {
        return command_exit_of(grt_last_status());
    }
    struct grt_scores scores;
    if (e->scores && !grt_score(dev, model, &e->config.settings, e->part, talk_stopped, &scores)) {
        grt_classified_destroy(&classified);
        return command_exit_of(grt_last_status());
    }
    struct grt_file_info *names = names_of(model, e->config.settings.data);
    int code = print(e, dev, &classified->evaluation, classified, e->scores ? &scores : NULL, names,
                     argc, argv);
    if (!code && e->mistakes) {
        code = mistakes_draw(classified, names, e->mistakes);
    }
    grt_file_info_destroy(&names);
    grt_classified_destroy(&classified);
    return code;
}

static int run_numbers(struct eval *e, struct grt_dev *dev, const struct grt_archive *model,
                       int argc, char **argv) {
    struct grt_evaluation result;
    struct grt_scores scores;
    if (!grt_evaluate(dev, model, &e->config.settings, e->part, talk_stopped, &result) ||
        (e->scores &&
         !grt_score(dev, model, &e->config.settings, e->part, talk_stopped, &scores))) {
        return command_exit_of(grt_last_status());
    }
    if (e->mistakes) {
        talk_line("--mistakes: targets are no classes, so there is no picture");
    }
    return print(e, dev, &result, NULL, e->scores ? &scores : NULL, NULL, argc, argv);
}

static int run(void *values, int argc, char **argv) {
    struct eval *e = values;
    struct grt_archive *model = NULL;
    struct grt_dev *dev = NULL;
    int code = e->mistakes && !sheet_named("--mistakes", e->mistakes) ? COMMAND_USAGE : COMMAND_OK;
    if (!code && e->mistakes) {
        code = FILES_APART({FILE_READ, "--data", e->config.settings.data},
                           {FILE_READ, "--config", e->config.config},
                           {FILE_READ, "--checkpoint", e->config.checkpoint},
                           {FILE_WRITTEN, "--output", e->config.common.output},
                           {FILE_WRITTEN, "--mistakes", e->mistakes});
    }
    if (!code) {
        code = train_config_open(&e->config, e->config.common.output, &model, &dev);
    }
    if (!code) {
        bool classes = grt_archive_whole(model, "classes", 0) > 0;
        code = (classes ? run_classes : run_numbers)(e, dev, model, argc, argv);
    }
    grt_archive_destroy(&model);
    grt_dev_destroy(&dev);
    return code;
}

const struct command_word cmd_eval_words[] = {
    {"knn", "classes by nearest neighbours of what the network gives", NULL},
    {"linear", "classes by a linear layer on it", NULL},
    {NULL, NULL, NULL},
};

int cmd_eval(int argc, char **argv) {
    if (argc > 1 && eval_features_knows(argv[1])) {
        return eval_features(argc, argv);
    }
    // A word that is neither an option nor KEY=VALUE is an environment, or the file of one.
    if (argc > 1 && argv[1][0] != '-' && !strchr(argv[1], '=')) {
        size_t length = strlen(argv[1]);
        bool of_env = length > 2 && strcmp(argv[1] + length - 2, ".k") == 0;
        if (!of_env && access(argv[1], F_OK) == 0) {
            talk_error("eval: '%s' is no environment; the trained network is named with "
                       "--checkpoint PATH, the samples with --data FILE",
                       argv[1]);
            return COMMAND_USAGE;
        }
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
                 "a file.\nOf classes also the accuracy, what was taken for what, and as a picture "
                 "the worst mistakes.\nKEY=VALUE says how they are read: batch_size=4096 "
                 "num_workers=4 test_flips=true.\n"
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
