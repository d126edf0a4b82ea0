// SPDX-License-Identifier: Apache-2.0
// `gpurt train es` and `gpurt train standing`: a policy by evolution strategies, all of it on the device.
//
// Each iteration prints a row; every few the policy without noise is tried too. A checkpoint is written every few
// iterations and at the end, also after Ctrl-C and the like. What is resumed goes on with the same bits, in the same file; a
// run that begins anew moves an earlier one's checkpoint aside. A phase after the first begins with the policy of the one
// before.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/devices.h"
#include "cli/files.h"
#include "cli/model_file.h"
#include "cli/stats.h"
#include "cli/talk.h"
#include "train.h"
#include "train_config.h"
#include "train_es.h"
#include "train_es_baselines.h"
#include "gpurt/checkpoint.h"

#define EVALUATION_SEED 0x7e57u  // starts that training never sees

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
    X(SECONDS, "seconds", "", "s", NUMBER, 2, 8)                                                   \
    X(NAME, "policy", "policy", NULL, TEXT, 0, 24)

enum train_column {
#define X(name, key, heading, unit, type, precision, width) TRAIN_##name,
    TRAIN_COLUMNS(X)
#undef X
        TRAIN_COLUMN_COUNT,
};

static const struct table_column columns[] = {TRAIN_COLUMNS(TABLE_COLUMN)};

// An iteration, a trial of the policy without noise, or both.
static void print_row(struct train_es *t, const struct grt_es_report *r,
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
    train_rows_add(&t->rows, cells);
}

// ---- where it begins ----

static void phase_path(char path[TRAIN_ES_PATH], const char *env, uint32_t phase) {
    snprintf(path, TRAIN_ES_PATH, "%s-phase%u.h5", env, phase);
}

// Settings that were not given come from the checkpoint that is resumed: then the bits are the same.
static void settings_of(struct train_es *t, const struct grt_archive *a) {
    struct {
        uint32_t *value;
        const char *name;
    } counts[] = {
        {&t->phase, "phase"},       {&t->num_envs, "num_envs"},
        {&t->num_dirs, "num_dirs"}, {&t->top_dirs, "top_dirs"},
        {&t->seed, "seed"},         {&t->episode_length, "episode_length"},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (!*counts[i].value && !(counts[i].value == &t->seed && t->seed_given))
            *counts[i].value = (uint32_t)grt_archive_whole(a, counts[i].name, 0);
    }
    t->no_normalise = t->no_normalise || !grt_archive_whole(a, "normalise", 1);
    t->step_size = t->step_size > 0 ? t->step_size : grt_archive_real(a, "step_size", 0);
    t->noise_std = t->noise_std > 0 ? t->noise_std : grt_archive_real(a, "noise_std", 0);
    t->env = t->env ? t->env : grt_archive_text(a, "env", NULL);
    t->algo = t->algo ? t->algo : grt_archive_text(a, "algo", NULL);
}

// Once it is known. Returns the exit code, the mistake said.
static int open_env(struct train_es *t) {
    if (t->env && !t->info) {
        t->info = grt_env_open(t->env);
        if (!t->info)
            return command_exit_of_input(grt_last_status());
    }
    return COMMAND_OK;
}

// The archive to begin with, if any. Returns the exit code, the mistake said.
static int open_start(struct train_es *t, struct grt_archive **archive) {
    char before[TRAIN_ES_PATH];
    const char *path = t->resume ? t->resume : t->from;
    *archive = NULL;
    const struct grt_env_info *env = t->info;
    // A phase that the environment lacks has none before it: grt_es_create() says which there are.
    if (!path && env && t->phase > 1 && t->phase <= env->phases) {
        phase_path(before, env->name, t->phase - 1);
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

static bool describe(const struct train_es *t, struct grt_es_desc *desc) {
    const char *policy = t->policy ? t->policy : "affine";
    *desc = (struct grt_es_desc){
        .env = t->info,
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
        .stop = talk_stopped,
    };
    return desc->env && grt_policy_parse(policy, &desc->policy);
}

static void open_table(struct train_es *t, int argc, char **argv) {
    const struct grt_es_desc *d = grt_es_desc_of(t->es);
    const struct grt_dev_info *info = grt_dev_info(t->dev);
    char policy[GRT_POLICY_TEXT], title[TABLE_TEXT_SIZE];
    grt_policy_text(&d->policy, policy);
    struct table_desc desc = {
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
    train_rows_begin(&t->rows, &desc, title, (1ull << TRAIN_NAME) - 1);
}

double train_es_seconds(const struct train_es *t) {
    return t->spent + (t->start > 0 ? grt_seconds() - t->start : 0);
}

// Whether patience counts the trial after so many iterations. Those at the end of a run and close to a target come on
// top of it, and a resumed run would not have them.
static bool counts(const struct train_es *t, uint32_t iteration) {
    return iteration % t->evaluate_every == 0 && iteration > t->judged;
}

static void judge(struct train_es *t, const struct grt_es_report *trial) {
    const struct grt_config *c = &t->settings;
    if (counts(t, trial->iteration)) {
        grt_patience_add(&t->patience, &t->limits, (double)trial->mean_return);
        t->judged = trial->iteration;
    }
    t->reached = (t->until > 0 && (double)trial->good_rate >= t->until) ||
                 (grt_config_given(c, GRT_CONFIG_TARGET_RETURN) &&
                  (double)trial->mean_return >= c->target_return);
}

// Why there is nothing more to do, or NONE.
static enum grt_ending ending_of(const struct train_es *t) {
    enum grt_ending limit = grt_limits_reached(&t->limits, &t->patience, train_es_seconds(t));
    return t->reached                 ? GRT_ENDED_UNTIL
           : t->done >= t->iterations ? GRT_ENDED_ITERATIONS
           : limit != GRT_ENDED_NONE  ? limit
           : talk_stopped()           ? GRT_ENDED_SIGNAL
                                      : GRT_ENDED_NONE;
}

// What there is before the first update: nothing, or the policy of the phase before in this one. A resumed run may
// lack a trial that patience counts: it was stopped before it.
static bool print_start(struct train_es *t, int *code) {
    struct grt_es_report trial;
    if (!grt_es_evaluate(t->es, EVALUATION_SEED, &trial))
        return false;
    if (trial.stopped)
        return true;
    if (trial.iteration == 0)
        print_row(t, NULL, &trial, grt_seconds() - t->start);
    if (t->resume) {
        judge(t, &trial);
        t->ended = ending_of(t);
        if (t->ended == GRT_ENDED_PATIENCE)
            *code = train_es_save(t, t->done);
    }
    return true;
}

// One iteration with what follows from it. t->ended says when there is nothing more to do; *code, how it went.
static void iterate(struct train_es *t, int *code) {
    struct grt_es_report report, trial = {.stopped = true};
    bool ok = grt_es_iterate(t->es, &report);
    talk_stop_by(TALK_STOP_AFTER_STEP);  // before it there was nothing to lose
    if (ok && report.stopped) {
        // The iteration was given up: what is kept is of the one before.
        t->ended = GRT_ENDED_SIGNAL;
        *code = train_es_save(t, t->done);
        return;
    }
    bool last = ok && report.iteration >= t->iterations;
    if (ok && !talk_stopped() &&
        (last || report.iteration % t->evaluate_every == 0 ||
         (t->until > 0 && (double)report.good_rate >= 0.9 * t->until)))
        ok = grt_es_evaluate(t->es, EVALUATION_SEED, &trial);
    if (!ok) {
        *code = command_exit_of(grt_last_status());
        return;
    }
    t->done = report.iteration;
    if (!trial.stopped)
        judge(t, &trial);
    t->ended = ending_of(t);
    talk_clear();
    print_row(t, &report, trial.stopped ? NULL : &trial, grt_seconds() - t->start);
    if (t->ended != GRT_ENDED_NONE || report.iteration % t->checkpoint_every == 0)
        *code = train_es_save(t, report.iteration);
}

static void print_end(struct train_es *t, int code) {
    if (code && t->ended != GRT_ENDED_NONFINITE)
        t->ended = GRT_ENDED_FAILED;
    GRT_RUNLOG_ROW(t->runlog, "end", t->done, {"ended", 0, grt_ending_word(t->ended)},
                   {"seconds", grt_seconds() - t->start, NULL});
    if (!code && t->ended != GRT_ENDED_SIGNAL)
        talk_line("ended by %s: %s", grt_ending_word(t->ended), grt_ending_text(t->ended));
}

// What the policy is worth: beside it, actions that never change.
static bool print_baselines(struct train_es *t) {
    const uint64_t shown = 1ull << TRAIN_NAME | 1ull << TRAIN_POLICY_RETURN |
                           1ull << TRAIN_POLICY_GOOD | 1ull << TRAIN_FALLS;
    struct grt_archive *archive = grt_archive_create();
    struct train_baseline rows[TRAIN_BASELINES] = {{.name = "the policy"}};
    talk_progress("searching the best constant action");
    bool ok = archive && grt_es_evaluate(t->es, EVALUATION_SEED, &rows[0].report) &&
              grt_es_save(t->es, archive) &&
              train_baselines(t->dev, grt_es_desc_of(t->es), archive, t->iterations,
                              EVALUATION_SEED, rows + 1);
    grt_archive_destroy(&archive);
    talk_clear();
    if (!ok || talk_stopped())
        return ok;
    train_rows_section(&t->rows, "beside actions that never change", shown);
    for (int i = 0; i < TRAIN_BASELINES; i++) {
        const struct grt_es_report *r = &rows[i].report;
        const struct table_cell cells[TRAIN_COLUMN_COUNT] = {
            [TRAIN_NAME] = TABLE_CELL(.text = rows[i].name),
            [TRAIN_POLICY_RETURN] = TABLE_CELL(.number = (double)r->mean_return),
            [TRAIN_POLICY_GOOD] = TABLE_CELL(.number = (double)r->good_rate),
            [TRAIN_FALLS] = TABLE_CELL(.number = (double)r->fall_rate),
        };
        train_rows_add(&t->rows, cells);
        GRT_RUNLOG_ROW(
            t->runlog, "baseline", t->done, {"policy", 0, rows[i].name},
            {"return", (double)r->mean_return, NULL}, {"good_rate", (double)r->good_rate, NULL},
            {"falls", (double)r->fall_rate, NULL}, {"seconds", grt_seconds() - t->start, NULL});
    }
    return true;
}

static int run(struct train_es *t, const struct grt_archive *archive, int argc, char **argv) {
    struct grt_es_desc desc;
    bool ok = describe(t, &desc);
    if (!ok)
        return COMMAND_USAGE;
    t->es = grt_es_create(t->dev, &desc);
    ok = t->es && (!archive || grt_es_load(t->es, archive, t->resume == NULL));
    if (!ok)
        return grt_last_status() == GRT_INVALID ? (t->es ? COMMAND_DATA : COMMAND_USAGE)
                                                : command_exit_of(grt_last_status());
    t->runlog = grt_runlog_create(grt_runlog_desc(.jsonl = t->log, .tensorboard = t->tensorboard));
    if (!t->runlog)
        return command_exit_of(grt_last_status());
    if (!t->evaluate_every)
        t->evaluate_every = t->iterations < 20 ? 1 : t->iterations / 10;
    int code = COMMAND_OK;
    if (t->resume) {
        t->done = (uint32_t)grt_archive_whole(archive, "iteration", 0);
        t->judged = (uint32_t)grt_archive_whole(archive, TRAIN_ES_JUDGED, 0);
        grt_limits_load(archive, &t->patience, &t->spent);
    }
    open_table(t, argc, argv);
    enum grt_ending before = ending_of(t);
    t->start = grt_seconds();
    if (before == GRT_ENDED_ITERATIONS) {
        talk_line("nothing to do: %s has %u iterations already; --iterations N for more", t->resume,
                  t->done);
    } else if (before != GRT_ENDED_NONE && before != GRT_ENDED_SIGNAL) {
        talk_line("nothing to do after %u iterations of %s: %s (%s)", t->done, t->resume,
                  grt_ending_text(before), grt_ending_word(before));
    } else {
        if (!print_start(t, &code))
            code = command_exit_of(grt_last_status());
        while (!code && t->ended == GRT_ENDED_NONE)
            iterate(t, &code);
        print_end(t, code);
    }
    if (!code && t->baselines && !talk_stopped() && !print_baselines(t))
        code = command_exit_of(grt_last_status());
    bool stopped = talk_stopped();
    talk_resume();
    if (!code && stopped) {
        talk_error("interrupted; `gpurt %s --resume %s` goes on", t->verb, t->path);
        code = COMMAND_RESUMABLE;
    }
    return code || !grt_runlog_failed(t->runlog) ? code : COMMAND_IO;
}

static int train(struct train_es *t, int argc, char **argv) {
    struct grt_archive *archive = NULL;
    int code = open_start(t, &archive);
    if (code)
        return code;
    if (archive && t->resume)
        settings_of(t, archive);
    code = open_env(t);
    if (code) {
        grt_archive_destroy(&archive);
        return code;
    }
    if (archive && !t->policy)
        t->policy = grt_archive_text(archive, "policy", NULL);
    char path[TRAIN_ES_PATH];
    phase_path(path, t->info->name, t->phase ? t->phase : 1);
    const char *file = t->checkpoint ? t->checkpoint : t->resume ? t->resume : path;
    code =
        FILES_APART({FILE_READ, "--config", t->config},
                    {FILE_READ, t->resume ? "--resume" : "--from", archive ? archive->path : NULL},
                    {FILE_KEPT, "--checkpoint", file}, {FILE_WRITTEN, "--log", t->log},
                    {FILE_WRITTEN, "--output", t->common.output});
    if (!code)
        code = train_es_claim(t, file);
    if (!code)
        code = train_rows_open(&t->rows, t->common.output);
    if (!code) {
        talk_progress("opening the device");
        t->dev = options_open_device(&t->common);
        code = t->dev ? run(t, archive, argc, argv) : command_exit_of(grt_last_status());
        talk_clear();
        grt_runlog_destroy(&t->runlog);
        grt_es_destroy(&t->es);
        grt_dev_destroy(&t->dev);
        code = train_rows_close(&t->rows, code);
    }
    grt_lock_release(&t->lock);
    grt_archive_destroy(&archive);
    return code;
}

static int parse_and_train(struct train_es *t, const char *about, struct option_list *lists,
                           size_t list_count, int argc, char **argv) {
    struct options_desc desc = {.verb = t->verb,
                                .words = "[KEY=VALUE...]",
                                .about = about,
                                .lists = lists,
                                .list_count = list_count,
                                .keys = GRT_CONFIG_OF_ES};
    const char **words = calloc((size_t)argc + 1, sizeof *words);
    size_t word_count = 0;
    if (!words) {
        talk_error("out of memory");
        return COMMAND_INTERNAL;
    }
    int code = options_parse(&desc, argc, argv, &t->common, words, &word_count);
    if (code < 0 && t->keys)
        code = train_print_keys(&t->common, t->verb, GRT_CONFIG_OF_ES, argc, argv);
    if (code < 0) {
        code = train_es_settings(t, words, word_count);
        code = code ? code : -1;
    }
    free(words);
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
    code = open_env(t);
    if (!code) {
        talk_stop_by(TALK_STOP_AT_ONCE);
        code = train(t, argc, argv);
    }
    grt_env_close(&t->info);
    return code;
}

#define STOPPING                                                                                   \
    "Settings are options, or KEY=VALUE and --config with the keys that --keys lists; options "    \
    "win.\n"                                                                                       \
    "Ctrl-C, SIGTERM, SIGHUP or SIGUSR1 ends with a checkpoint and exit code 75;\n"                \
    "--resume goes on and reaches the same bits.\n"

int train_es(int argc, char **argv) {
    struct train_es t = {.verb = "train es"};
    struct option_list lists[] = {
        OPTION_LIST("Environment", train_es_env_options),
        OPTION_LIST("Learning", train_es_options),
        OPTION_LIST("Run", train_es_run_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("General options", options_general),
    };
    return parse_and_train(
        &t,
        "Trains a policy by evolution strategies; whole episodes run inside one kernel.\n"
        "Environments: cartpole, pendulum, standing, and your own: a file such as ./slider.k, "
        "compiled\nat run time (shaders/env/README.md).\n" STOPPING,
        lists, sizeof lists / sizeof *lists, argc, argv);
}

int train_standing(int argc, char **argv) {
    struct train_es t = {.verb = "train standing", .env = "standing", .one_env = true};
    struct option_list lists[] = {
        OPTION_LIST("Learning", train_es_options),
        OPTION_LIST("Run", train_es_run_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("General options", options_general),
    };
    return parse_and_train(
        &t,
        "Trains the four-legged robot. Phases: 1 stand up from a crouch to a commanded height,\n"
        "2 hold it under pushes, 3 with randomised mass, friction, motors and latency, 4 "
        "walk.\n" STOPPING,
        lists, sizeof lists / sizeof *lists, argc, argv);
}
