// SPDX-License-Identifier: Apache-2.0
// `gpurt train es` and `gpurt train standing`: a policy by evolution strategies, all of it on the device.
//
// Each iteration prints a row; every few the policy without noise is tried too. A checkpoint is written every few
// iterations and at the end, also after Ctrl-C or SIGTERM. What is resumed goes on with the same bits, in the same file; a
// run that begins anew moves an earlier one's checkpoint aside. A phase after the first begins with the policy of the one
// before.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "devices.h"
#include "es/es.h"
#include "files.h"
#include "model_file.h"
#include "options.h"
#include "stats.h"
#include "table.h"
#include "talk.h"
#include "train.h"
#include "train/checkpoint.h"
#include "train/runlog.h"
#include "whole_file.h"

#define PATH_SIZE 1024
#define EVALUATION_SEED 0x7e57u  // starts that training never sees

struct train {
    struct options common;  // first: see options.h
    const char *env, *policy, *algo;
    uint32_t phase, num_envs, num_dirs, dir_chunk, top_dirs, episode_length;
    double step_size, noise_std;
    uint32_t iterations, seed, no_normalise;
    const char *checkpoint, *resume, *from;
    uint32_t checkpoint_every, evaluate_every;
    double until;
    const char *log, *tensorboard;

    const char *verb;      // "train es"
    char path[PATH_SIZE];  // of the checkpoint
    bool written;          // by this run
    struct grt_dev *dev;
    struct grt_es *es;
    struct grt_runlog *runlog;
    struct table table;
};

// ---- options ----

static bool read_seed(const char *text, void *into, char why[RANGES_WHY]) {
    uint64_t seed = 0;
    bool ok = options_whole(text, 0, UINT32_MAX, &seed, why);
    *(uint32_t *)into = (uint32_t)seed;
    return ok;
}

static bool read_algo(const char *text, void *into, char why[RANGES_WHY]) {
#define X(name, word)                                                                              \
    if (!strcmp(text, word))                                                                       \
        return options_read_text(word, into, why);
    GRT_ES_ALGOS(X)
#undef X
#define X(name, word) " " word
    snprintf(why, RANGES_WHY, "known are" GRT_ES_ALGOS(X));
#undef X
    return false;
}

#define AT(field) offsetof(struct train, field)

static const struct option_row env_options[] = {
    {.name = "env",
     .value = "NAME",
     .help = "environment",
     .read = options_read_text,
     .at = AT(env)},
};

static const struct option_row train_options[] = {
    {.name = "phase",
     .value = "N",
     .help =
         "phase of the environment; 2 and up begin with the policy of the one before (default: 1)",
     .read = options_read_count,
     .at = AT(phase)},
    {.name = "policy",
     .value = "linear|affine|mlpN|mlpN-tanh",
     .help = "N hidden units, 16 to 256 in steps of 4 (default: affine)",
     .read = options_read_text,
     .at = AT(policy)},
    {.name = "algo",
     .value = "ars|es",
     .help = "augmented random search, or ranks and Adam (default: ars)",
     .read = read_algo,
     .at = AT(algo)},
    {.name = "num-envs",
     .value = "N",
     .help = "environments for each side of a direction (default: by profile)",
     .read = options_read_count,
     .at = AT(num_envs)},
    {.name = "num-dirs",
     .value = "N",
     .help = "directions of an iteration (default: by profile)",
     .read = options_read_count,
     .at = AT(num_dirs)},
    {.name = "dir-chunk",
     .value = "N",
     .help = "directions run at once; bounds memory, changes no result (default: by profile)",
     .read = options_read_count,
     .at = AT(dir_chunk)},
    {.name = "top-dirs",
     .value = "N",
     .help = "best directions that ars uses (default: half)",
     .read = options_read_count,
     .at = AT(top_dirs)},
    {.name = "step-size",
     .value = "X",
     .help = "length of an update (default: 0.02)",
     .read = options_read_positive,
     .at = AT(step_size)},
    {.name = "noise-std",
     .value = "X",
     .help = "deviation of the noise (default: 0.03)",
     .read = options_read_positive,
     .at = AT(noise_std)},
    {.name = "episode-length",
     .value = "N",
     .help = "steps of an episode (default: the environment's)",
     .read = options_read_count,
     .at = AT(episode_length)},
    {.name = "no-normalise", .help = "leave observations as they are", .at = AT(no_normalise)},
    {.name = "seed",
     .value = "N",
     .help = "of everything random (default: 0)",
     .read = read_seed,
     .at = AT(seed)},
};

static const struct option_row run_options[] = {
    {.name = "iterations",
     .value = "N",
     .help = "updates in all, those of a resumed run included",
     .fallback = "100",
     .read = options_read_count,
     .at = AT(iterations)},
    {.name = "until",
     .value = "SHARE",
     .help = "end when the policy itself has this share of good steps",
     .read = options_read_fraction,
     .at = AT(until)},
    {.name = "evaluate-every",
     .value = "N",
     .help = "iterations between trials of the policy without noise (default: a tenth of all)",
     .read = options_read_count,
     .at = AT(evaluate_every)},
    {.name = "checkpoint",
     .value = "FILE",
     .help = "where it is kept (default: that of --resume, or ENV-phaseN.h5)",
     .read = options_read_text,
     .at = AT(checkpoint)},
    {.name = "checkpoint-every",
     .value = "N",
     .help = "iterations between checkpoints",
     .fallback = "10",
     .read = options_read_count,
     .at = AT(checkpoint_every)},
    {.name = "resume",
     .value = "FILE",
     .help = "go on from this checkpoint",
     .read = options_read_text,
     .at = AT(resume)},
    {.name = "from",
     .value = "FILE|none",
     .help = "begin with its policy (default: the checkpoint of the phase before)",
     .read = options_read_text,
     .at = AT(from)},
    {.name = "log",
     .value = "FILE",
     .help = "append a JSON line for each iteration",
     .read = options_read_text,
     .at = AT(log)},
    {.name = "tensorboard",
     .value = "DIR",
     .help = "event files for TensorBoard",
     .read = options_read_text,
     .at = AT(tensorboard)},
};

// ---- rows ----

// X(name, key, heading, unit, type, precision, width)
#define TRAIN_COLUMNS(X)                                                                           \
    X(ITERATION, "iteration", "iteration", NULL, COUNT, 0, 0)                                      \
    X(MEAN, "mean_return", "mean return", NULL, NUMBER, 2, 0)                                      \
    X(BEST, "best_return", "best", NULL, NUMBER, 2, 9)                                             \
    X(GOOD, "good_rate", "good", NULL, SHARE, 1, 6)                                                \
    X(FALLS, "falls", "falls", NULL, NUMBER, 3, 6)                                                 \
    X(POLICY_RETURN, "policy_return", "policy's return", NULL, NUMBER, 2, 0)                       \
    X(POLICY_GOOD, "policy_good_rate", "good", NULL, SHARE, 1, 6)                                  \
    X(STEPS, "steps_per_s", "", "steps/s", NUMBER, 0, 10)                                          \
    X(GPU, "gpu", "GPU", NULL, SHARE, 0, 5)                                                        \
    X(MEMORY, "memory", "memory", NULL, BYTES, 0, 9)                                               \
    X(SECONDS, "seconds", "", "s", NUMBER, 2, 8)

enum train_column {
#define X(name, key, heading, unit, type, precision, width) TRAIN_##name,
    TRAIN_COLUMNS(X)
#undef X
        TRAIN_COLUMN_COUNT,
};

static const struct table_column columns[] = {TRAIN_COLUMNS(TABLE_COLUMN)};

// An iteration, a trial of the policy without noise, or both.
static bool print_row(struct train *t, const struct grt_es_report *r,
                      const struct grt_es_report *trial, double seconds) {
    uint32_t iteration = r ? r->iteration : trial ? trial->iteration : 0;
    struct table_cell cells[TRAIN_COLUMN_COUNT] = {
        [TRAIN_ITERATION] = TABLE_CELL(.count = iteration),
        [TRAIN_MEMORY] = TABLE_CELL(.count = grt_dev_mem_use(t->dev, NULL).current),
        [TRAIN_SECONDS] = TABLE_CELL(.number = seconds),
    };
    if (trial) {
        cells[TRAIN_POLICY_RETURN] = TABLE_CELL(.number = (double)trial->mean_return);
        cells[TRAIN_POLICY_GOOD] = TABLE_CELL(.number = (double)trial->good_rate);
        GRT_RUNLOG_ROW(t->runlog, "evaluate", iteration,
                       {"return", (double)trial->mean_return, NULL},
                       {"good_rate", (double)trial->good_rate, NULL},
                       {"falls", (double)trial->fall_rate, NULL}, {"seconds", seconds, NULL});
    }
    if (r) {
        double rate = r->steps / r->seconds;
        cells[TRAIN_MEAN] = TABLE_CELL(.number = (double)r->mean_return);
        cells[TRAIN_BEST] = TABLE_CELL(.number = (double)r->best_return);
        cells[TRAIN_GOOD] = TABLE_CELL(.number = (double)r->good_rate);
        cells[TRAIN_FALLS] = TABLE_CELL(.number = (double)r->fall_rate);
        cells[TRAIN_STEPS] = TABLE_CELL(.number = rate);
        if (r->busy > 0)
            cells[TRAIN_GPU] =
                TABLE_CELL(.number = r->busy < r->seconds ? r->busy / r->seconds : 1);
        const struct grt_runlog_field fields[] = {
            {"mean_return", (double)r->mean_return, NULL},
            {"best_return", (double)r->best_return, NULL},
            {"good_rate", (double)r->good_rate, NULL},
            {"falls", (double)r->fall_rate, NULL},
            {"steps_per_s", rate, NULL},
            {"seconds", seconds, NULL},
            {"memory", (double)grt_es_size(t->es).bytes, NULL},
            {"gpu", r->busy < r->seconds ? r->busy / r->seconds : 1, NULL},  // where it has a clock
        };
        grt_runlog_row(t->runlog, "train", r->iteration, fields,
                       sizeof fields / sizeof *fields - (r->busy > 0 ? 0 : 1));
    }
    return table_row(&t->table, cells);
}

// ---- checkpoints ----

// What an earlier run has learnt makes way for the first checkpoint of this one: a.h5 becomes a-earlier-1.h5.
// Of a link it is the file behind it; devices and pipes stay where they are.
static bool set_aside(struct train *t) {
    char file[GRT_WHOLE_FILE_PATH], kept[GRT_WHOLE_FILE_PATH + 32];
    bool ours = t->written || (t->resume && grt_whole_file_same(t->path, t->resume));
    for (uint32_t i = 1; !ours && grt_whole_file_replaces(t->path, file); i++) {
        size_t length = strlen(file);
        size_t stem = length > 3 && !strcmp(file + length - 3, ".h5") ? length - 3 : length;
        snprintf(kept, sizeof kept, "%.*s-earlier-%u%s", (int)stem, file, i, file + stem);
        if (access(kept, F_OK) == 0)
            continue;
        if (rename(file, kept) != 0) {
            talk_error("cannot move %s to %s: %s", file, kept, strerror(errno));
            return false;
        }
        talk_line("the earlier %s is now %s", file, kept);
    }
    return true;
}

static bool save(struct train *t) {
    struct grt_archive *archive = grt_archive_create();
    bool ok = archive && grt_es_save(t->es, archive) && set_aside(t) &&
              grt_checkpoint_save(archive, t->path);
    t->written = t->written || ok;
    grt_archive_destroy(&archive);
    return ok;
}

// Asked before the work: a checkpoint that cannot be written would be found out after it.
static bool can_save(const char *path) {
    int error = grt_whole_file_obstacle(path);
    if (error)
        talk_error("cannot write the checkpoint %s: %s; --checkpoint FILE names another", path,
                   strerror(error));
    return error == 0;
}

static void phase_path(char path[PATH_SIZE], const char *env, uint32_t phase) {
    snprintf(path, PATH_SIZE, "%s-phase%u.h5", env, phase);
}

// Settings that were not given come from the checkpoint that is resumed: then the bits are the same.
static void settings_of(struct train *t, const struct grt_archive *a) {
    struct {
        uint32_t *value;
        const char *name;
    } counts[] = {
        {&t->phase, "phase"},       {&t->num_envs, "num_envs"},
        {&t->num_dirs, "num_dirs"}, {&t->top_dirs, "top_dirs"},
        {&t->seed, "seed"},         {&t->episode_length, "episode_length"},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (!*counts[i].value)
            *counts[i].value = (uint32_t)grt_archive_whole(a, counts[i].name, 0);
    }
    t->no_normalise = t->no_normalise || !grt_archive_whole(a, "normalise", 1);
    t->step_size = t->step_size > 0 ? t->step_size : grt_archive_real(a, "step_size", 0);
    t->noise_std = t->noise_std > 0 ? t->noise_std : grt_archive_real(a, "noise_std", 0);
    t->env = t->env ? t->env : grt_archive_text(a, "env", NULL);
    t->algo = t->algo ? t->algo : grt_archive_text(a, "algo", NULL);
}

// The archive to begin with, if any. Returns the exit code, the mistake said.
static int open_start(struct train *t, struct grt_archive **archive) {
    char before[PATH_SIZE];
    const char *path = t->resume ? t->resume : t->from;
    *archive = NULL;
    const struct grt_env_info *env = t->env ? grt_env_find(t->env) : NULL;
    // A phase that the environment lacks has none before it: grt_es_create() says which there are.
    if (!path && env && t->phase > 1 && t->phase <= env->phases) {
        phase_path(before, t->env, t->phase - 1);
        path = before;
        if (access(path, F_OK) != 0) {
            talk_error(
                "phase %u begins with the policy of phase %u, and %s is not here: train that "
                "first, or name a checkpoint with --from FILE (--from none begins with "
                "nothing)",
                t->phase, t->phase - 1, path);
            return COMMAND_NO_INPUT;
        }
    }
    if (!path || !strcmp(path, "none"))
        return COMMAND_OK;
    *archive = model_file_load(path);
    return *archive ? COMMAND_OK : command_exit_of(grt_last_status());
}

// ---- the run ----

static bool describe(const struct train *t, struct grt_es_desc *desc) {
    const char *policy = t->policy ? t->policy : "affine";
    *desc = (struct grt_es_desc){
        .env = grt_env_find(t->env),
        .algo = t->algo && !strcmp(t->algo, "es") ? GRT_ES_RANKS : GRT_ES_ARS,
        .phase = t->phase,
        .num_envs = t->num_envs,
        .num_dirs = t->num_dirs,
        .dir_chunk = t->dir_chunk,
        .top_dirs = t->top_dirs,
        .episode_length = t->episode_length,
        .step_size = (float)t->step_size,
        .noise_std = (float)t->noise_std,
        .seed = t->seed,
        .no_normalise = t->no_normalise != 0,
        .max_submit_ms = t->common.max_submit_ms,
    };
    return desc->env && grt_policy_parse(policy, &desc->policy);
}

static bool open_table(struct train *t, struct output *output, int argc, char **argv) {
    const struct grt_es_desc *d = grt_es_desc_of(t->es);
    const struct grt_dev_info *info = grt_dev_info(t->dev);
    char policy[GRT_POLICY_TEXT], title[TABLE_TEXT_SIZE];
    grt_policy_text(&d->policy, policy);
    struct table_desc desc = {
        .output = output,
        .format = t->common.format,
        .columns = columns,
        .column_count = TRAIN_COLUMN_COUNT,
        .schema = "gpurt.train/1",
        .verb = t->verb,
        .argc = argc,
        .argv = argv,
        .head = json_pack("{so}", "device", devices_json(info)),
    };
    snprintf(
        title, sizeof title,
        "%s, phase %u, on %s: %s, %s; %s, %u directions of %u environments, %u at once, %u steps",
        d->env->name, d->phase, info->selector, info->name, policy, grt_es_algo_text(d->algo),
        d->num_dirs, d->num_envs, d->dir_chunk, d->episode_length);
    return table_open(&t->table, &desc) &&
           table_section(&t->table, title, (1ull << TRAIN_COLUMN_COUNT) - 1, NULL, 0);
}

// What there is before the first update: nothing, or the policy of the phase before in this one.
static bool print_start(struct train *t, double start) {
    struct grt_es_report trial;
    return grt_es_evaluate(t->es, EVALUATION_SEED, &trial) &&
           (trial.iteration > 0 || print_row(t, NULL, &trial, stats_now() - start));
}

// True when there is nothing more to do.
static bool iterate(struct train *t, double start, bool *ok) {
    struct grt_es_report report, trial = {0};
    *ok = grt_es_iterate(t->es, &report);
    if (!*ok)
        return true;
    bool last = report.iteration >= t->iterations || talk_stopped();
    bool try_it = last || report.iteration % t->evaluate_every == 0 ||
                  (t->until > 0 && (double)report.good_rate >= 0.9 * t->until);
    if (try_it)
        *ok = grt_es_evaluate(t->es, EVALUATION_SEED, &trial);
    last = last || (*ok && try_it && t->until > 0 && (double)trial.good_rate >= t->until);
    talk_clear();
    *ok = *ok && print_row(t, &report, try_it ? &trial : NULL, stats_now() - start);
    if (*ok && (last || report.iteration % t->checkpoint_every == 0))
        *ok = save(t);
    return last || !*ok;
}

static int run(struct train *t, struct output *output, const struct grt_archive *archive, int argc,
               char **argv) {
    struct grt_es_desc desc;
    bool ok = describe(t, &desc);
    if (!ok)
        return COMMAND_USAGE;
    t->es = grt_es_create(t->dev, &desc);
    ok = t->es && (!archive || grt_es_load(t->es, archive, t->resume == NULL));
    if (!ok)
        return grt_last_status() == GRT_INVALID ? (t->es ? COMMAND_DATA : COMMAND_USAGE)
                                                : command_exit_of(grt_last_status());
    if (!can_save(t->path))
        return COMMAND_CANNOT_CREATE;
    t->runlog = grt_runlog_create(grt_runlog_desc(.jsonl = t->log, .tensorboard = t->tensorboard));
    if (!t->runlog)
        return command_exit_of(grt_last_status());
    if (!t->evaluate_every)
        t->evaluate_every = t->iterations < 20 ? 1 : t->iterations / 10;
    double start = stats_now();
    uint32_t done = t->resume ? (uint32_t)grt_archive_whole(archive, "iteration", 0) : 0;
    ok = open_table(t, output, argc, argv);
    if (ok && done >= t->iterations) {
        talk_line("nothing to do: %s has %u iterations already; --iterations N for more", t->resume,
                  done);
    } else if (ok && print_start(t, start)) {
        while (!iterate(t, start, &ok)) {
        }
    } else {
        ok = false;
    }
    table_close(&t->table);
    if (!ok)
        return command_exit_of(grt_last_status());
    if (talk_stopped()) {
        talk_resume();
        talk_error("interrupted; `gpurt %s --resume %s` goes on", t->verb, t->path);
        return COMMAND_RESUMABLE;
    }
    return COMMAND_OK;
}

static int train(struct train *t, int argc, char **argv) {
    struct output output;
    struct grt_archive *archive = NULL;
    int code = open_start(t, &archive);
    if (code)
        return code;
    if (archive && t->resume)
        settings_of(t, archive);
    if (archive && !t->policy)
        t->policy = grt_archive_text(archive, "policy", NULL);
    const char *named = t->checkpoint ? t->checkpoint : t->resume;
    if (named)
        snprintf(t->path, sizeof t->path, "%s", named);
    else
        phase_path(t->path, t->env, t->phase ? t->phase : 1);
    const char *start = archive ? archive->path : NULL;
    code = FILES_APART({FILE_READ, t->resume ? "--resume" : "--from", start},
                       {FILE_KEPT, "--checkpoint", t->path}, {FILE_WRITTEN, "--log", t->log},
                       {FILE_WRITTEN, "--output", t->common.output});
    code = code ? code : output_open(&output, t->common.output);
    if (!code) {
        talk_progress("opening the device");
        t->dev = options_open_device(&t->common);
        code = t->dev ? run(t, &output, archive, argc, argv) : command_exit_of(grt_last_status());
        talk_clear();
        grt_runlog_destroy(&t->runlog);
        grt_es_destroy(&t->es);
        grt_dev_destroy(&t->dev);
        int written = output_close(&output, code == COMMAND_OK || code == COMMAND_RESUMABLE);
        code = code ? code : written;
    }
    grt_archive_destroy(&archive);
    return code;
}

static int parse_and_train(struct train *t, const char *about, struct option_list *lists,
                           size_t list_count, int argc, char **argv) {
    struct options_desc desc = {
        .verb = t->verb, .about = about, .lists = lists, .list_count = list_count};
    size_t words = 0;
    int code = options_parse(&desc, argc, argv, &t->common, NULL, &words);
    if (code >= 0)
        return code;
    if (t->resume && t->from) {
        talk_error("--resume goes on with a run and --from begins one: give one of them");
        return COMMAND_USAGE;
    }
    if (!t->env && !t->resume) {
        talk_error("which environment? --env NAME; see `gpurt %s --help`", t->verb);
        return COMMAND_USAGE;
    }
    if (t->env && !grt_env_find(t->env))
        return COMMAND_USAGE;
    talk_stop_on_term();
    return train(t, argc, argv);
}

#define STOPPING                                                                                   \
    "Ctrl-C or SIGTERM ends after the iteration with a checkpoint and exit code 75;\n"             \
    "--resume goes on and reaches the same bits.\n"

int train_es(int argc, char **argv) {
    struct train t = {.verb = "train es"};
    struct option_list lists[] = {
        OPTION_LIST("Environment", env_options),
        OPTION_LIST("Learning", train_options),
        OPTION_LIST("Run", run_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("General options", options_general),
    };
    return parse_and_train(
        &t,
        "Trains a policy by evolution strategies; whole episodes run inside one kernel.\n"
        "Environments: cartpole, pendulum, standing, and your own "
        "(shaders/env/rollout.k).\n" STOPPING,
        lists, sizeof lists / sizeof *lists, argc, argv);
}

int train_standing(int argc, char **argv) {
    struct train t = {.verb = "train standing", .env = "standing"};
    struct option_list lists[] = {
        OPTION_LIST("Learning", train_options),
        OPTION_LIST("Run", run_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("General options", options_general),
    };
    return parse_and_train(
        &t,
        "Trains the four-legged robot. Phases: 1 stand up from a crouch and hold, 2 hold\n"
        "under pushes, 3 with randomised mass, friction, motors and latency.\n" STOPPING,
        lists, sizeof lists / sizeof *lists, argc, argv);
}
