// SPDX-License-Identifier: Apache-2.0
// `gpurt train supervised`: a banner, a row for each epoch, progress in between. The run itself is the
// library's, runtime/gpurt/supervised.h.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/devices.h"
#include "cli/files.h"
#include "cli/stats.h"
#include "cli/table.h"
#include "cli/talk.h"
#include "train.h"
#include "gpurt/supervised.h"
#include "gpurt/task.h"
#include "train_config.h"
#include "train_rows.h"
#include "tune/tune.h"

struct train {
    struct train_config config;  // first: see train_config.h
    const char *epochs, *seed, *log, *tensorboard;
    uint32_t resume, force, keys;
    struct grt_dev *dev;
    struct grt_supervised *run;
    double device_seconds;  // that opening it took
    struct train_rows rows;
    double start;
};

#define AT(field) offsetof(struct train, field)

static const struct option_row run_options[] = {
    {.name = "epochs",
     .value = "N",
     .help = "passes over the data (default: 10)",
     .read = options_read_text,
     .at = AT(epochs)},
    {.name = "resume", .help = "go on from the newest whole checkpoint", .at = AT(resume)},
    {.name = "force", .help = "with --resume: go on though the data have changed", .at = AT(force)},
    {.name = "seed",
     .value = "N",
     .help = "of the first parameters and the order of the data (default: 0)",
     .read = options_read_text,
     .at = AT(seed)},
    {.name = "log",
     .value = "FILE",
     .help = "append the log, a JSON object a line",
     .read = options_read_text,
     .at = AT(log)},
    {.name = "tensorboard",
     .value = "DIR",
     .help = "event files for TensorBoard",
     .read = options_read_text,
     .at = AT(tensorboard)},
    {.name = "keys",
     .help = "list every key of a config with its names in other tools, and exit",
     .at = AT(keys)},
};

// ---- rows ----

// X(name, key, heading, unit, type, precision, width)
#define TRAIN_COLUMNS(X)                                                                           \
    X(EPOCH, "epoch", "epoch", NULL, COUNT, 0, 0)                                                  \
    X(STEP, "step", "step", NULL, COUNT, 0, 7)                                                     \
    X(LOSS, "loss", "loss", NULL, NUMBER, 6, 10)                                                   \
    X(CHECK, "validation_loss", "validation", NULL, NUMBER, 6, 10)                                 \
    X(ACCURACY, "accuracy", "accuracy", NULL, SHARE, 2, 8)                                         \
    X(BEST, "best", "best", NULL, TEXT, 0, 4)                                                      \
    X(LR, "lr", "lr", NULL, NUMBER, 7, 9)                                                          \
    X(SCALE, "loss_scale", "loss scale", NULL, NUMBER, 0, 0)                                       \
    X(SKIPPED, "skipped", "skipped", NULL, COUNT, 0, 0)                                            \
    X(RATE, "samples_per_s", "", "samples/s", NUMBER, 0, 9)                                        \
    X(DATA, "data_share", "data", NULL, SHARE, 0, 5)                                               \
    X(SECONDS, "seconds", "", "s", NUMBER, 2, 8)

enum train_column {
#define X(name, key, heading, unit, type, precision, width) TRAIN_##name,
    TRAIN_COLUMNS(X)
#undef X
        TRAIN_COLUMN_COUNT,
};

static const struct table_column columns[] = {TRAIN_COLUMNS(TABLE_COLUMN)};

static void print_epoch(struct train *t, const struct grt_supervised_report *r) {
    struct table_cell cells[TRAIN_COLUMN_COUNT] = {
        [TRAIN_EPOCH] = TABLE_CELL(.count = r->epoch),
        [TRAIN_STEP] = TABLE_CELL(.count = r->step),
        [TRAIN_BEST] = TABLE_CELL(.text = r->best ? "*" : ""),
        [TRAIN_LR] = TABLE_CELL(.number = r->lr),
        [TRAIN_SKIPPED] = TABLE_CELL(.count = r->skipped),
        [TRAIN_RATE] = TABLE_CELL(.number = r->samples_per_s),
        [TRAIN_DATA] = TABLE_CELL(.number = r->data_share),
        [TRAIN_SECONDS] = TABLE_CELL(.number = grt_seconds() - t->start),
    };
    // NaN is omitted: JSON cannot hold it.
    if (isfinite(r->loss))
        cells[TRAIN_LOSS] = TABLE_CELL(.number = r->loss);
    if (r->validated && isfinite(r->validation_loss))
        cells[TRAIN_CHECK] = TABLE_CELL(.number = r->validation_loss);
    if (r->accuracy >= 0)
        cells[TRAIN_ACCURACY] = TABLE_CELL(.number = r->accuracy);
    if (!strcmp(grt_supervised_info(t->run).config->precision, "f16"))
        cells[TRAIN_SCALE] = TABLE_CELL(.number = r->loss_scale);
    train_rows_add(&t->rows, cells);
}

// "1:05:07"
static void time_text(double seconds, char text[32]) {
    unsigned long s = seconds < 1e8 ? (unsigned long)(seconds + 0.5) : 99999999ul;
    if (s >= 3600)
        snprintf(text, 32, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, 32, "%lu:%02lu", s / 60, s % 60);
}

// One line that changes: all of it within the 80 columns of a terminal, the time that is left too.
static void show_progress(const struct train *t, const struct grt_supervised_report *r,
                          const char *eta) {
    double rate = r->samples_per_s;
    char scale[32] = "";
    if (!strcmp(t->config.settings.precision, "f16"))
        snprintf(scale, sizeof scale, " scale %g", r->loss_scale);
    talk_progress("epoch %llu/%llu step %llu/%llu loss %.4g %.4g%s/s data %.0f%%%s %s left",
                  (unsigned long long)r->epoch, (unsigned long long)r->epochs,
                  (unsigned long long)r->step, (unsigned long long)r->steps, r->loss,
                  rate >= 1e6   ? rate / 1e6
                  : rate >= 1e3 ? rate / 1e3
                                : rate,
                  rate >= 1e6   ? "M"
                  : rate >= 1e3 ? "k"
                                : "",
                  100 * r->data_share, scale, eta);
}

// On a terminal one line that changes, else a line for each log interval.
static void print_progress(const struct train *t, const struct grt_supervised_report *r) {
    char eta[32];
    char scale[48] = "";
    time_text(r->eta, eta);
    if (talk_shows_progress()) {
        show_progress(t, r, eta);
        return;
    }
    if (r->news != GRT_SUPERVISED_STEP)
        return;
    if (!strcmp(t->config.settings.precision, "f16"))
        snprintf(scale, sizeof scale, ", scale %g, %llu skipped", r->loss_scale,
                 (unsigned long long)r->skipped);
    talk_line("epoch %llu/%llu, step %llu/%llu: loss %.5g, %.0f samples/s, data %.0f%% compute "
              "%.0f%%%s, %s left",
              (unsigned long long)r->epoch, (unsigned long long)r->epochs,
              (unsigned long long)r->step, (unsigned long long)r->steps, r->loss, r->samples_per_s,
              100 * r->data_share, 100 * (1 - r->data_share), scale, eta);
}

static void on_report(void *context, const struct grt_supervised_report *r) {
    struct train *t = context;
    switch (r->news) {
    case GRT_SUPERVISED_BEGUN:
        talk_stop_by(TALK_STOP_AFTER_STEP);
        break;
    case GRT_SUPERVISED_LOOK:
        talk_progress("looking at every row of %s: %.0f%%", t->config.settings.data,
                      100 * r->share);
        break;
    case GRT_SUPERVISED_PROGRESS:
    case GRT_SUPERVISED_STEP:
        print_progress(t, r);
        break;
    case GRT_SUPERVISED_EPOCH:
        print_epoch(t, r);
        break;
    case GRT_SUPERVISED_CHECKPOINT:
        break;
    case GRT_SUPERVISED_RESUMED:
        talk_line("resumed from %s: step %llu", r->text, (unsigned long long)r->step);
        break;
    case GRT_SUPERVISED_NONFINITE:
        talk_error("%s", r->text);
        break;
    case GRT_SUPERVISED_ROLLBACK:
        talk_error("back to step %llu, with half the learning rate", (unsigned long long)r->step);
        break;
    case GRT_SUPERVISED_SPLIT:
    case GRT_SUPERVISED_NOTE:
        talk_line("%s", r->text);
        break;
    }
}

static bool on_stop(void *context) {
    (void)context;
    return talk_stopped();
}

// ---- the banner ----

static void profile_text(const struct grt_dev *dev, char text[256]) {
    struct grt_profile_part part;
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; used < 200 && grt_profile_part(grt_dev_profile(dev), i, &part); i++)
        used += (size_t)snprintf(text + used, 256 - used, "%s%.60s", i ? ", " : "", part.name);
}

static void print_banner(const struct train *t) {
    struct grt_supervised_info info = grt_supervised_info(t->run);
    const struct grt_config *c = info.config;
    const struct grt_dev_info *dev = grt_dev_info(t->dev);
    char model[384];
    char hidden[256];
    char memory[TABLE_TEXT_SIZE];
    char used[TABLE_TEXT_SIZE];
    char profile[256];
    char points[32] = "";
    table_bytes_text(dev->caps.memory, memory);
    table_bytes_text(info.bytes, used);
    profile_text(t->dev, profile);
    if (info.data.points)
        snprintf(points, sizeof points, "%u points of ", info.data.points);
    talk_line("device      %s: %s, %s %s, %s", dev->selector, dev->name, dev->driver,
              dev->driver_version, memory);
    talk_line("data        %s: %llu samples of %s%u features; %llu to train on, %llu to validate",
              c->data, (unsigned long long)info.data.rows, points, info.data.features,
              (unsigned long long)info.data.part_rows[GRT_PART_TRAIN],
              (unsigned long long)info.data.part_rows[GRT_PART_VALIDATION]);
    if (grt_config_given(c, GRT_CONFIG_NETWORK))
        snprintf(model, sizeof model, "%u layers", info.layers);
    else {
        grt_config_value_text(c, GRT_CONFIG_HIDDEN, hidden, sizeof hidden);
        snprintf(model, sizeof model, "%s, depth %llu, hidden %s, %s", c->model,
                 (unsigned long long)c->depth, hidden, c->activation);
    }
    talk_line("model       %s, %u outputs, loss %s: %llu parameters, %s", model,
              info.learner.outputs, c->loss, (unsigned long long)info.parameters, info.variant);
    talk_line("precision   %s", c->precision);
    talk_line(
        "batch       %llu x %llu: effective %u, in %u micro-batch%s; %llu steps an epoch, %llu "
        "in all",
        (unsigned long long)c->batch_size, (unsigned long long)c->accumulate, info.learner.batch,
        info.learner.accumulate, info.learner.accumulate == 1 ? "" : "es",
        (unsigned long long)info.steps_per_epoch, (unsigned long long)info.steps);
    char groups[48] = "";
    if (info.learner.optim.group_count > 0)
        snprintf(groups, sizeof groups, "; %u group%s of parameters",
                 info.learner.optim.group_count, info.learner.optim.group_count == 1 ? "" : "s");
    talk_line("optimizer   %s, learning rate %g, %s%s", c->optimizer, info.learner.optim.lr,
              c->schedule, groups);
    char order[64] = "in the order of the file";
    if (c->shuffle && info.data.window_rows > 0) {
        snprintf(order, sizeof order, "shuffled in windows of %llu samples",
                 (unsigned long long)info.data.window_rows);
    } else if (c->shuffle) {
        snprintf(order, sizeof order, "shuffled");
    }
    talk_line("loading     %llu workers, %s, cache %s, %s", (unsigned long long)c->num_workers,
              c->pin_memory ? "pinned" : "not pinned", c->cache, order);
    talk_line("start       device %.2f s, looking at the data %.2f s, reading them %.2f s, kernels "
              "%.2f s",
              t->device_seconds, info.data_seconds, info.cache_seconds, info.learner_seconds);
    if (info.cache_why[0]) {
        talk_line("cache       %s (auto): %s", c->cache, info.cache_why);
    }
    talk_line("memory      %s taken on the device", used);
    talk_line("profile     %s", profile);
    talk_line("autotune    %s", c->autotune ? "on" : "off");
    talk_line("seed        %llu", (unsigned long long)c->seed);
    talk_line("checkpoints %s, the newest %llu and the best", c->checkpoint_dir,
              (unsigned long long)c->keep);
    talk_line("%s", "");
}

// Settings that other tools need and this one does not.
static void explain(const struct grt_config *c) {
    if (c->empty_cache_freq)
        talk_line("empty_cache_freq: memory is planned before the start and does not fragment; "
                  "there is nothing to empty");
    if (grt_config_given(c, GRT_CONFIG_COMPILE) && !c->compile)
        talk_line("compile: a step is always recorded once and replayed");
}

// ---- the verb ----

static void open_table(struct train *t, int argc, char **argv) {
    struct grt_supervised_info info = grt_supervised_info(t->run);
    uint64_t shown = (1ull << TRAIN_COLUMN_COUNT) - 1;
    if (strcmp(info.config->precision, "f16") != 0) {
        shown &= ~(1ull << TRAIN_SCALE);
        if (strcmp(info.config->on_nan_loss, "skip") != 0)
            shown &= ~(1ull << TRAIN_SKIPPED);
    }
    if (info.data.classes == 0)
        shown &= ~(1ull << TRAIN_ACCURACY);
    struct table_desc desc = {
        .format = t->config.common.format,
        .columns = columns,
        .column_count = TRAIN_COLUMN_COUNT,
        .schema = "gpurt.train/1",
        .verb = "train supervised",
        .argc = argc,
        .argv = argv,
        .head = json_pack("{so}", "device", devices_json(grt_dev_info(t->dev))),
    };
    train_rows_begin(&t->rows, &desc, NULL, shown);
}

static int exit_of(enum grt_supervised_end end, const struct train *t) {
    const char *dir = t->config.settings.checkpoint_dir;
    switch (end) {
    case GRT_SUPERVISED_DONE:
        return COMMAND_OK;
    case GRT_SUPERVISED_STOPPED:
        talk_resume();
        talk_error("stopped; the checkpoint is in %s, `--resume` goes on from there", dir);
        return COMMAND_RESUMABLE;
    case GRT_SUPERVISED_HALTED:
        talk_error("the run ended there; checkpoints before it are in %s. A smaller learning_rate, "
                   "max_grad_norm, or on_nan_loss: skip or rollback may help",
                   dir);
        return COMMAND_INTERNAL;
    case GRT_SUPERVISED_FAILED:
        break;
    }
    talk_resume();
    return command_exit_of(grt_last_status());
}

static void print_end(const struct train *t) {
    struct grt_supervised_info info = grt_supervised_info(t->run);
    char best[64] = "";
    if (info.best_epoch > 0)
        snprintf(best, sizeof best, "; the best loss is %.6g, of epoch %llu", info.best_loss,
                 (unsigned long long)info.best_epoch);
    talk_line("ended by %s: %s%s", grt_ending_word(info.ended), grt_ending_text(info.ended), best);
}

static int run(struct train *t, int argc, char **argv) {
    const struct grt_config *c = &t->config.settings;
    int code = FILES_APART(
        {FILE_READ, "--config", t->config.config}, {FILE_READ, "--data", c->data},
        {FILE_FOLDER, "checkpoint_dir", c->checkpoint_dir}, {FILE_WRITTEN, "--log", c->log},
        {FILE_WRITTEN, "--output", t->config.common.output});
    if (code)
        return code;
    code = train_rows_open(&t->rows, t->config.common.output);
    if (code)
        return code;
    double begun = grt_seconds();
    t->dev = train_config_device(&t->config);
    t->device_seconds = grt_seconds() - begun;
    t->run =
        t->dev ? grt_supervised_create(&(struct grt_supervised_desc){.dev = t->dev,
                                                                     .config = &t->config.settings,
                                                                     .resume = t->resume != 0,
                                                                     .force = t->force != 0,
                                                                     .stop = on_stop,
                                                                     .report = on_report,
                                                                     .context = t})
               : NULL;
    if (t->run) {
        t->start = grt_seconds();
        print_banner(t);
        explain(&t->config.settings);
        struct grt_supervised_info info = grt_supervised_info(t->run);
        if (info.ended != GRT_ENDED_NONE)
            talk_line("nothing to do at step %llu of %llu: %s (%s)", (unsigned long long)info.start,
                      (unsigned long long)info.steps, grt_ending_text(info.ended),
                      grt_ending_word(info.ended));
        open_table(t, argc, argv);
        talk_progress("the first step, in which a driver finishes its kernels");
        code = exit_of(grt_supervised_run(t->run), t);
        talk_clear();
        if (!code && info.ended == GRT_ENDED_NONE)
            print_end(t);
    } else if (talk_stopped()) {
        talk_resume();
        talk_error("stopped before the first step; the same command begins again");
        code = COMMAND_RESUMABLE;
    } else {
        code = command_exit_of(grt_last_status());
    }
    bool logged = !t->run || !grt_supervised_info(t->run).log_failed;
    grt_supervised_destroy(&t->run);
    grt_dev_destroy(&t->dev);
    code = train_rows_close(&t->rows, code);
    return code || logged ? code : COMMAND_IO;
}

// The largest product of a network: rows for a sample, inputs and outputs. The reference device is asked for its
// layers; nothing is allocated.
struct product {
    uint64_t rows, inputs, outputs;
};

static bool largest_product(const struct grt_task *task, struct product *p) {
    const struct grt_config *c = &task->config;
    if (!grt_config_given(c, GRT_CONFIG_NETWORK)) {
        uint64_t inputs = task->learner.input.dim[task->learner.input.rank - 1], widest = 0;
        for (uint32_t i = 0; i < c->hidden.count; i++)
            widest = c->hidden.values[i] > widest ? c->hidden.values[i] : widest;
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
            uint64_t inputs = layer->in.dim[layer->in.rank - 1];
            most = layer->operations;
            *p = (struct product){grt_shape_count(&layer->in) / inputs, inputs,
                                  layer->out.dim[layer->out.rank - 1]};
        }
    }
    grt_learner_destroy(&learner);
    grt_dev_destroy(&dev);
    return most > 0;
}

// The products of a run: of its largest layer, forward and backward, and of its weights' gradient. Long ones are cut
// to what leaves time for many candidates.
static int products(const struct grt_profile *profile, struct bench_gemm_options *o,
                    void *context) {
    const struct train *t = context;
    struct grt_task task;
    struct grt_config config = t->config.settings;
    // Shapes alone are wanted: the data are not read through for them.
    if (!grt_config_set(&config, GRT_CONFIG_NORMALIZE, "false") ||
        !grt_config_set(&config, GRT_CONFIG_ON_NAN, "error") ||
        !grt_task_open(&task, &config, profile, &(struct grt_task_look){.late = true}))
        return command_exit_of(grt_last_status());
    struct product p = {0};
    if (!largest_product(&task, &p)) {
        grt_task_close(&task);
        return command_exit_of(grt_last_status());
    }
    uint64_t rows = task.config.batch_size * p.rows;
    while (rows > 1024 && rows * p.outputs * p.inputs > 1u << 30)
        rows /= 2;
    o->precisions = task.learner.precision == GRT_F32   ? 1
                    : task.learner.precision == GRT_F16 ? 2
                                                        : 4;
    o->shapes.values = calloc(2, sizeof *o->shapes.values);
    if (o->shapes.values) {
        o->shapes.values[o->shapes.count++] = (struct bench_gemm_shape){rows, p.outputs, p.inputs};
        o->shapes.values[o->shapes.count++] = (struct bench_gemm_shape){p.outputs, p.inputs, rows};
        talk_line("autotune: products of %llux%llux%llu and %llux%llux%llu in %s, %g seconds",
                  (unsigned long long)rows, (unsigned long long)p.outputs,
                  (unsigned long long)p.inputs, (unsigned long long)p.outputs,
                  (unsigned long long)p.inputs, (unsigned long long)rows, task.config.precision,
                  t->config.settings.autotune_seconds);
    }
    grt_task_close(&task);
    if (!o->shapes.values) {
        talk_error("out of memory");
        return COMMAND_INTERNAL;
    }
    return COMMAND_OK;
}

// Options that are keys by another name.
static bool set_keys(struct train *t) {
    const struct {
        const char *text;
        enum grt_config_key key;
    } rows[] = {{t->epochs, GRT_CONFIG_EPOCHS},
                {t->seed, GRT_CONFIG_SEED},
                {t->log, GRT_CONFIG_LOG},
                {t->tensorboard, GRT_CONFIG_TENSORBOARD}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].text && !grt_config_set(&t->config.settings, rows[i].key, rows[i].text))
            return false;
    }
    return true;
}

int train_supervised(int argc, char **argv) {
    struct train *t = calloc(1, sizeof *t);
    const char **words = calloc((size_t)argc + 1, sizeof *words);
    size_t word_count = 0;
    int code = COMMAND_INTERNAL;
    struct option_list lists[] = {
        OPTION_LIST("Options", train_config_options),
        OPTION_LIST("Run", run_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("General options", options_general),
    };
    struct options_desc desc = {
        .verb = "train supervised",
        .words = "[KEY=VALUE...]",
        .about = "Trains a network on an HDF5 file. Settings come from the config, and KEY=VALUE "
                 "changes\nthem: batch_size=4096 precision=f16 optimizer=adam learning_rate=3e-4.\n"
                 "A row for each epoch goes to standard output. Ctrl-C, SIGTERM, SIGHUP or SIGUSR1 "
                 "ends after\nthe step with a checkpoint and exit code 75; --resume goes on and "
                 "reaches the same bits.\n",
        .lists = lists,
        .list_count = sizeof lists / sizeof *lists};
    if (!t || !words) {
        talk_error("out of memory");
        goto undo_memory;
    }
    code = options_parse(&desc, argc, argv, &t->config.common, words, &word_count);
    if (code >= 0)
        goto undo_memory;
    if (t->keys) {
        code = train_print_keys(&t->config.common, "train supervised", GRT_CONFIG_OF_SUPERVISED,
                                argc, argv);
        goto undo_memory;
    }
    talk_stop_by(TALK_STOP_AT_ONCE);
    code = train_config_read(&t->config, words, word_count);
    if (!code && !set_keys(t))
        code = command_exit_of(grt_last_status());
    if (!code && t->config.settings.autotune)
        code = tune_for_training(
            &(struct tune_training){.common = &t->config.common,
                                    .seconds = t->config.settings.autotune_seconds,
                                    .products = products,
                                    .context = t});
    if (!code)
        code = run(t, argc, argv);
undo_memory:
    free(words);
    free(t);
    return code;
}
