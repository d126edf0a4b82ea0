// SPDX-License-Identifier: Apache-2.0
// `gpurt train supervised`, and `classify` and `simclr`, which have other defaults: a row for each
// epoch, progress in between. The training itself is the library's, runtime/gpurt/supervised.h.
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/output/files.h"
#include "cli/output/table.h"
#include "gpurt/checkpoint.h"
#include "gpurt/model_file.h"
#include "cli/talk.h"
#include "train.h"
#include "gpurt/supervised.h"
#include "gpurt/task.h"
#include "trainer.h"
#include "tune/tune.h"

struct train {
    struct trainer trainer;  // first: see trainer.h
    const char *epochs, *seed, *from;
    uint32_t resume, force, dry_run;
    char scratch[32];                  // folder of a dry run, or ""
    char meant[GRT_CONFIG_TEXT_SIZE];  // and the one that the settings name
    struct grt_archive *first;         // of --from
    const char *resume_path;  // of --resume FILE, a checkpoint or a folder of them; or NULL
    struct grt_archive *resumed;
    bool theirs;  // its network too
    struct grt_supervised *run;
};

#define AT(field) offsetof(struct train, field)

static const struct option_row run_options[] = {
    {.name = "epochs",
     .value = "N",
     .help = "passes over the data (default: 10)",
     .read = options_read_text,
     .at = AT(epochs)},
    {.name = "from",
     .value = "FILE",
     .help =
         "weights, and a network unless the config has one: a checkpoint, .safetensors or .onnx",
     .read = options_read_text,
     .at = AT(from)},
    {.name = "resume",
     .help = "go on from the newest whole checkpoint; --resume FILE: from that one",
     .at = AT(resume)},
    {.name = "dry-run",
     .help = "plan, memory, and from a second of steps the time of an epoch; nothing is kept",
     .at = AT(dry_run)},
    {.name = "force", .help = "with --resume: go on though the data have changed", .at = AT(force)},
    {.name = "seed",
     .value = "N",
     .help = "of the first parameters and the order of the data (default: 0)",
     .read = options_read_text,
     .at = AT(seed)},
};

// X(name, event, field, key, heading, unit, type, precision, width)
#define TRAIN_COLUMNS(X)                                                                           \
    X(EPOCH, EVALUATE, EPOCH, "epoch", "epoch", NULL, COUNT, 0, 0)                                 \
    X(STEP, EVALUATE, STEP, "step", "step", NULL, COUNT, 0, 7)                                     \
    X(LOSS, EVALUATE, TRAIN_LOSS, "loss", "loss", NULL, NUMBER, 6, 10)                             \
    X(CHECK, EVALUATE, LOSS, "evaluate_loss", "validation", NULL, NUMBER, 6, 10)                   \
    X(CHECK_1, EVALUATE, TERM_1, "evaluate_loss_1", "loss 1", NULL, NUMBER, 6, 10)                 \
    X(CHECK_2, EVALUATE, TERM_2, "evaluate_loss_2", "loss 2", NULL, NUMBER, 6, 10)                 \
    X(CHECK_3, EVALUATE, TERM_3, "evaluate_loss_3", "loss 3", NULL, NUMBER, 6, 10)                 \
    X(CHECK_4, EVALUATE, TERM_4, "evaluate_loss_4", "loss 4", NULL, NUMBER, 6, 10)                 \
    X(ACCURACY, EVALUATE, ACCURACY, "evaluate_accuracy", "accuracy", NULL, SHARE, 2, 8)            \
    X(KNN, EVALUATE, KNN, "evaluate_knn", "kNN", NULL, SHARE, 2, 8)                                \
    X(TOP5, EVALUATE, TOP5, "evaluate_top5", "top-5", NULL, SHARE, 2, 7)                           \
    X(BEST, EVALUATE, BEST, "best", "best", NULL, TEXT, 0, 4)                                      \
    X(LR, EVALUATE, LR, "lr", "lr", NULL, NUMBER, 7, 9)                                            \
    X(SCALE, EVALUATE, LOSS_SCALE, "loss_scale", "loss scale", NULL, NUMBER, 0, 0)                 \
    X(SKIPPED, EVALUATE, SKIPPED, "skipped", "skipped", NULL, COUNT, 0, 0)                         \
    X(RATE, EVALUATE, SAMPLES_PER_S, "samples_per_s", "", "samples/s", NUMBER, 0, 9)               \
    X(DATA, EVALUATE, DATA_SHARE, "data_share", "data", NULL, SHARE, 0, 5)                         \
    X(SECONDS, EVALUATE, SECONDS, "seconds", "", "s", NUMBER, 2, 8)

enum train_column_name {
#define X(name, event, field, key, heading, unit, type, precision, width) TRAIN_##name,
    TRAIN_COLUMNS(X)
#undef X
        TRAIN_COLUMN_COUNT,
};
#define BIT(name) (1ull << TRAIN_##name)

static const struct train_column columns[] = {TRAIN_COLUMNS(TRAIN_COLUMN)};

// ---- the banner ----

// Settings that other tools need and this one does not.
static void explain(const struct grt_config *c) {
    if (c->empty_cache_freq) {
        talk_line("empty_cache_freq: memory is planned before the start and does not fragment; "
                  "there is nothing to empty");
    }
    if (grt_config_given(c, GRT_CONFIG_COMPILE) && !c->compile) {
        talk_line("compile: a step is always recorded once and replayed");
    }
}

// What samples are told apart from.
static void explain_pairs(const struct grt_supervised_info *info) {
    const struct grt_learner_desc *l = &info->learner;
    uint32_t micro = (l->batch + l->accumulate - 1) / l->accumulate;
    const char *norms = l->sync_norms ? "the same micro-batch of every rank" : "a micro-batch";
    if (l->views < 2) {
        return;
    }
    if (l->whole.samples > 0) {
        talk_line("views       2 a sample, each told apart from the %u others of its batch, in all "
                  "micro-batches of all ranks; norms over a batch are over %s",
                  2 * l->whole.batch - 1, norms);
    } else if (l->accumulate > 1 && !l->exact) {
        talk_line("views       2 a sample, each told apart from the %u others of its micro-batch: "
                  "%u micro-batches are no batch of %u here. accumulate_exact=true tells it apart "
                  "from all %u, in about a third more time",
                  2 * micro - 1, l->accumulate, l->batch, 2 * l->batch - 1);
    } else if (l->accumulate > 1) {
        talk_line("views       2 a sample, each told apart from the %u others of all %u "
                  "micro-batches; norms over a batch are over %s",
                  2 * l->batch - 1, l->accumulate, norms);
    } else {
        talk_line("views       2 a sample, each told apart from the %u others of its batch",
                  2 * micro - 1);
    }
    if (!info->config->transform.text[0]) {
        talk_line("views       no transform: they differ by what the network drops, or not at all");
    }
}

// Of an epoch that is less than all samples, and of validations that come at other times.
static void explain_limits(const struct grt_supervised_info *info) {
    const struct grt_config *c = info->config;
    unsigned long long rows = info->epoch_rows;
    if (c->overfit_batches > 0) {
        talk_line("overfit     the same %llu samples each epoch, which are validated on too", rows);
    } else if (c->limit_train_batches > 0) {
        talk_line("limit       %llu samples an epoch, the first of its order", rows);
    }
    if (c->val_check_interval > 0) {
        talk_line("validation  each %llu steps", (unsigned long long)info->check_every);
    }
}

static void banner(void *self, char title[TABLE_TEXT_SIZE], uint64_t *shown) {
    const struct train *t = self;
    struct grt_supervised_info info = grt_supervised_info(t->run);
    const struct grt_config *c = info.config;
    char model[384], losses[GRT_CONFIG_TEXT_SIZE];
    char hidden[256];
    char sample[GRT_SAMPLE_TEXT];
    title[0] = '\0';
    if (strcmp(c->precision, "f16") != 0) {
        *shown &= ~BIT(SCALE);
        if (strcmp(c->on_nan_loss, "skip") != 0) {
            *shown &= ~BIT(SKIPPED);
        }
    }
    if (info.data.classes == 0) {
        *shown &= ~BIT(ACCURACY);
    }
    if (info.knn_every == 0) {
        *shown &= ~BIT(KNN);
    }
    if (info.learner.views > 1) {
        *shown &= ~BIT(CHECK);
    }
    if (info.data.classes <= 5) {
        *shown &= ~BIT(TOP5);
    }
    for (uint32_t i = info.learner.loss_count; i < GRT_LOSS_MOST; i++) {
        *shown &= ~(BIT(CHECK_1) << i);
    }
    grt_sample_text(info.data.height, info.data.points, info.data.features, sample);
    talk_line("data        %s: %llu samples of %s; %llu to train on, %llu to validate", c->data,
              (unsigned long long)info.data.rows, sample,
              (unsigned long long)info.data.part_rows[GRT_PART_TRAIN],
              (unsigned long long)info.data.part_rows[GRT_PART_VALIDATION]);
    if (info.data.rows < info.data.file_rows) {
        talk_line("left out    %llu of %llu samples have NaN or Inf (on_nan=drop)",
                  (unsigned long long)(info.data.file_rows - info.data.rows),
                  (unsigned long long)info.data.file_rows);
    }
    explain_limits(&info);
    if (grt_config_given(c, GRT_CONFIG_NETWORK)) {
        snprintf(model, sizeof model, "%u layers", info.layers);
    } else {
        grt_config_value_text(c, GRT_CONFIG_HIDDEN, hidden, sizeof hidden);
        snprintf(model, sizeof model, "%s, depth %llu, hidden %s, %s", c->model,
                 (unsigned long long)c->depth, hidden, c->activation);
    }
    if (c->losses.count > 0) {
        grt_config_value_text(c, GRT_CONFIG_LOSSES, losses, sizeof losses);
    }
    talk_line("model       %s, %u outputs, loss %s: %llu parameters, %s", model,
              info.learner.outputs, c->losses.count > 0 ? losses : c->loss,
              (unsigned long long)info.parameters, info.variant);
    if (info.baseline >= 0) {
        talk_line("baseline    always the most frequent class: accuracy %.2f%%",
                  100 * info.baseline);
    }
    if (t->from) {
        char left[GRT_PARAM_NAME + 48] = "";
        if (info.taken.left > 0) {
            snprintf(left, sizeof left, "; %s%s drawn anew: %u", info.taken.first_left,
                     info.taken.left > 1 ? " and others" : "", info.taken.left);
        }
        talk_line("from        %s: %s%u tensors%s%s%s", t->from, t->theirs ? "its network, " : "",
                  info.taken.count, info.taken.prefix[0] ? ", named without " : "",
                  info.taken.prefix, left);
        if (info.taken.unused > 0) {
            talk_line("from        no part of this network: %s%s, left out: %u%s",
                      info.taken.first_unused, info.taken.unused > 1 ? " and others" : "",
                      info.taken.unused, info.taken.unused > 1 ? "; -v lists them" : "");
        }
    }
    talk_line("precision   %s", c->precision);
    uint32_t micro = info.learner.accumulate * (info.micro_batches ? info.micro_batches : 1);
    talk_line(
        "batch       %llu x %llu: effective %u, in %u micro-batch%s; %llu steps an epoch, %llu "
        "in all",
        (unsigned long long)c->batch_size, (unsigned long long)c->accumulate, info.step_rows, micro,
        micro == 1 ? "" : "es", (unsigned long long)info.steps_per_epoch,
        (unsigned long long)info.steps);
    if (info.step_rows > info.epoch_rows) {
        bool scaled = strcmp(c->lr_rule, "none") != 0;
        talk_line("batch       a step has %llu samples, as there are no more to train on; memory%s "
                  "planned for %u",
                  (unsigned long long)info.epoch_rows, scaled ? " and learning rate are" : " is",
                  info.step_rows);
    }
    explain_pairs(&info);
    char groups[48] = "";
    if (info.learner.optim.group_count > 0) {
        snprintf(groups, sizeof groups, "; %u group%s of parameters",
                 info.learner.optim.group_count, info.learner.optim.group_count == 1 ? "" : "s");
    }
    char average[48] = "";
    if (info.learner.optim.ema > 0) {
        snprintf(average, sizeof average, "; weights averaged by %g", info.learner.optim.ema);
    }
    talk_line("optimizer   %s, learning rate %g, %s%s%s", c->optimizer, info.learner.optim.lr,
              c->schedule, groups, average);
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
              t->trainer.device_seconds, info.data_seconds, info.cache_seconds,
              info.learner_seconds);
    if (info.cache_why[0]) {
        talk_line("cache       %s (auto): %s", c->cache, info.cache_why);
    }
    talk_line("autotune    %s", c->autotune ? "on" : "off");
    talk_line("seed        %llu", (unsigned long long)c->seed);
    explain(c);
}

// ---- the run ----

// Defaults of SimCLR. What goes with another optimizer, or with a learning rate of one's own, is
// left as it is.
bool train_simclr_settings(struct grt_config *c) {
    static const struct {
        enum grt_config_key key;
        const char *text;
        enum grt_config_key unless;  // this one is given
    } defaults[] = {
        {GRT_CONFIG_MODEL, "resnet18", GRT_CONFIG_NETWORK},
        {GRT_CONFIG_LOSS, "nt_xent", GRT_CONFIG_LOSS},
        {GRT_CONFIG_VALIDATION_SPLIT, "0", GRT_CONFIG_VALIDATION_SPLIT},
        {GRT_CONFIG_DROP_LAST, "true", GRT_CONFIG_DROP_LAST},
        {GRT_CONFIG_EPOCHS, "100", GRT_CONFIG_MAX_STEPS},
        {GRT_CONFIG_WEIGHT_DECAY, "0.0001", GRT_CONFIG_OPTIMIZER},
        {GRT_CONFIG_DECAY_OF, "matrices", GRT_CONFIG_WEIGHT_DECAY},
        {GRT_CONFIG_SCHEDULE, "cosine", GRT_CONFIG_SCHEDULE},
        {GRT_CONFIG_LR_RULE, "sqrt", GRT_CONFIG_LEARNING_RATE},
        {GRT_CONFIG_LEARNING_RATE, "0.001", GRT_CONFIG_OPTIMIZER},
    };
    bool given[GRT_CONFIG_KEY_COUNT], good = true;
    for (uint32_t i = 0; i < GRT_CONFIG_KEY_COUNT; i++) {
        given[i] = grt_config_given(c, (enum grt_config_key)i);
    }
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        if (!given[defaults[i].key] && !given[defaults[i].unless]) {
            good = good && grt_config_set(c, defaults[i].key, defaults[i].text);
        }
    }
    return good;
}

#define DRY_SECONDS 1.0

// A dry run has a folder that goes with it, no log, and ends after a second.
static int begin_dry(struct train *t) {
    struct grt_config *c = &t->trainer.config.settings;
    if (t->resume) {
        talk_error("--dry-run begins anew: leave out --resume");
        return COMMAND_USAGE;
    }
    snprintf(t->scratch, sizeof t->scratch, "/tmp/gpurt-dry-XXXXXX");
    if (!mkdtemp(t->scratch)) {
        t->scratch[0] = '\0';
        talk_error("no folder for a dry run can be made in /tmp");
        return COMMAND_CANNOT_CREATE;
    }
    snprintf(t->meant, sizeof t->meant, "%s", c->checkpoint_dir);
    t->trainer.dry_where = t->meant;
    snprintf(c->checkpoint_dir, sizeof c->checkpoint_dir, "%s", t->scratch);
    c->log[0] = c->tensorboard[0] = '\0';
    c->histograms = false;
    t->trainer.log = t->trainer.tensorboard = NULL;
    c->max_time = DRY_SECONDS;
    return COMMAND_OK;
}

static void end_dry(const struct train *t) {
    char path[sizeof t->scratch + NAME_MAX + 2];
    DIR *folder = t->scratch[0] ? opendir(t->scratch) : NULL;
    const struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        snprintf(path, sizeof path, "%s/%s", t->scratch, entry->d_name);
        unlink(path);
    }
    if (folder) {
        closedir(folder);
        rmdir(t->scratch);
    }
}

// Seconds, or minutes and hours where there would be many.
static void time_text(double seconds, char text[TABLE_SHORT_SIZE]) {
    if (seconds < 99.5) {
        snprintf(text, TABLE_SHORT_SIZE, "%.3g s", seconds);
    } else {
        table_time_text(seconds, text);
    }
}

static int report_dry(void *self) {
    const struct train *t = self;
    if (!t->scratch[0]) {
        return COMMAND_OK;
    }
    struct grt_supervised_info info = grt_supervised_info(t->run);
    struct grt_run_info run = grt_run_info(t->trainer.run);
    double each = run.step > 0 ? run.seconds / (double)run.step : 0;
    char epoch[TABLE_SHORT_SIZE], all[TABLE_SHORT_SIZE];
    time_text(each * (double)info.steps_per_epoch, epoch);
    time_text(each * (double)info.steps, all);
    talk_line("dry run     %llu steps in %.2f s, the first use of kernels included: an epoch of "
              "%llu takes %s, all %llu take %s",
              (unsigned long long)run.step, run.seconds, (unsigned long long)info.steps_per_epoch,
              epoch, (unsigned long long)info.steps, all);
    return COMMAND_OK;
}

// With --resume a word that is there, or is no KEY=VALUE, is the checkpoint or a folder of them.
static void find_resumed(struct train *t, const char **words, size_t *count) {
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        if (t->resume && !t->resume_path &&
            (!strchr(words[i], '=') || access(words[i], F_OK) == 0)) {
            t->resume_path = words[i];
        } else {
            words[kept++] = words[i];
        }
    }
    *count = kept;
}

static int read_settings(void *self, const char **words, size_t count) {
    struct train *t = self;
    struct grt_config *c = &t->trainer.config.settings;
    find_resumed(t, words, &count);
    int code = train_config_read(&t->trainer.config, t->trainer.kind->keys, words, count);
    if (!code && strcmp(t->trainer.kind->verb, "train simclr") == 0 && !train_simclr_settings(c)) {
        code = command_exit_of(grt_last_status());
    }
    if (!code && ((t->epochs && !grt_config_set(c, GRT_CONFIG_EPOCHS, t->epochs)) ||
                  (t->seed && !grt_config_set(c, GRT_CONFIG_SEED, t->seed)))) {
        code = command_exit_of(grt_last_status());
    }
    if (!code && c->autotune) {
        code = tune_for_training(&(struct tune_training){
            .common = &t->trainer.config.common, .seconds = c->autotune_seconds, .config = c});
    }
    return !code && t->dry_run ? begin_dry(t) : code;
}

static int files(void *self) {
    const struct train *t = self;
    const struct grt_config *c = &t->trainer.config.settings;
    return FILES_APART(
        {FILE_READ, "--config", t->trainer.config.config}, {FILE_READ, "--data", c->data},
        {FILE_READ, "validation_data", c->validation_data[0] ? c->validation_data : NULL},
        {FILE_READ, "--from", t->from}, {FILE_READ, "--resume", t->resume_path},
        {FILE_FOLDER, "checkpoint_dir", c->checkpoint_dir}, {FILE_WRITTEN, "--log", c->log},
        {FILE_WRITTEN, "--metrics", t->trainer.config.common.metrics},
        {FILE_WRITTEN, "--output", t->trainer.config.common.output},
        FILES_WATCHED(&t->trainer.config.common));
}

static int open_run(void *self) {
    struct train *t = self;
    t->first = t->from ? grt_model_load(t->from) : NULL;
    if (t->from && !t->first) {
        return command_exit_of(grt_last_status());
    }
    if (t->resume_path) {
        struct stat info;
        bool folder = stat(t->resume_path, &info) == 0 && S_ISDIR(info.st_mode);
        t->resumed =
            folder ? grt_checkpoint_newest(t->resume_path) : grt_checkpoint_load(t->resume_path);
        if (!t->resumed) {
            return command_exit_of(grt_last_status());
        }
    }
    t->theirs = t->first && grt_task_take_network(&t->trainer.config.settings, t->first);
    t->run =
        grt_supervised_create(&(struct grt_supervised_desc){.dev = t->trainer.dev,
                                                            .config = &t->trainer.config.settings,
                                                            .from = t->first,
                                                            .comm = t->trainer.comm,
                                                            .resume = t->resume != 0,
                                                            .resume_from = t->resumed,
                                                            .force = t->force != 0,
                                                            .stop = trainer_stop,
                                                            .report = trainer_report,
                                                            .context = t});
    if (!t->run) {
        return command_exit_of(grt_last_status());
    }
    t->trainer.run = grt_supervised_driver(t->run);
    return COMMAND_OK;
}

static void close_run(void *self) {
    struct train *t = self;
    grt_supervised_destroy(&t->run);
    end_dry(t);
    grt_archive_destroy(&t->first);
    grt_archive_destroy(&t->resumed);
    t->trainer.run = NULL;  // it was a part of that
}

static int train(const char *verb, const char *about, enum grt_config_scope keys, int argc,
                 char **argv) {
    const struct option_list lists[] = {
        OPTION_LIST("Options", train_config_options),
        OPTION_LIST("Run", run_options),
    };
    const struct train_kind kind = {
        .verb = verb,
        .about = about,
        .keys = keys,
        .lists = lists,
        .list_count = sizeof lists / sizeof *lists,
        .columns = columns,
        .column_count = TRAIN_COLUMN_COUNT,
        .size = sizeof(struct train),
        .more = "--epochs N or max_steps=N",
        .advice =
            "A smaller learning_rate, max_grad_norm, or on_nan_loss: skip or rollback may help",
        .keys_are_options = true,
        .read = read_settings,
        .files = files,
        .open = open_run,
        .banner = banner,
        .report = report_dry,
        .close = close_run,
    };
    return trainer_main(&kind, argc, argv);
}

#define ROWS                                                                                       \
    "A row for each epoch goes to standard output. Ctrl-C, SIGTERM, SIGHUP or SIGUSR1 ends "       \
    "after\nthe step with a checkpoint and exit code 75; --resume goes on and reaches the same "   \
    "bits.\nmpirun -n 4 gpurt train ... shares each batch out over four devices.\n"

int train_supervised(int argc, char **argv) {
    return train("train supervised",
                 "Trains a network on a data file. Settings come from the config, and KEY=VALUE or "
                 "--KEY\nVALUE changes them: batch_size=4096 precision=f16 optimizer=adam "
                 "--learning-rate 3e-4.\n" ROWS,
                 GRT_CONFIG_OF_SUPERVISED, argc, argv);
}

int train_simclr(int argc, char **argv) {
    return train(
        "train simclr",
        "Trains a network on samples alone: of two random views of each it learns which belong "
        "together\n(NT-Xent). The keys are those of `gpurt train supervised`, with other defaults: "
        "model=resnet18,\nepochs=100, schedule=cosine, and crops and flips of images as transform. "
        "Also\nas KEY=VALUE or --KEY VALUE: temperature=0.5 projection=512,128 accumulate=4 "
        "accumulate_exact=true "
        "knn_every=10.\nWhere the file has classes y, nearest neighbours are tried now and then; "
        "`gpurt eval knn` and\n`gpurt eval linear` try the end.\n" ROWS,
        GRT_CONFIG_OF_SUPERVISED, argc, argv);
}

int train_classify(int argc, char **argv) {
    return train("train classify",
                 "Trains a network to tell classes of images apart, by the keys of `gpurt train "
                 "supervised` with\ndefaults for it: resnet18, cross_entropy, sgd with Nesterov's "
                 "momentum, warm-up and cosine.\nKEY=VALUE and --KEY VALUE change them: --model "
                 "resnet50 --label-smoothing 0.1 --ema 0.999.\n" ROWS,
                 GRT_CONFIG_OF_CLASSIFY, argc, argv);
}
