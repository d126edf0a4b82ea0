// SPDX-License-Identifier: Apache-2.0
// `gpurt train es` and `gpurt train standing`: a policy by evolution strategies, all of it on the
// device.
//
// A step is an iteration, and each has its row; every few the policy without noise is tried too.
// What is resumed goes on in the same file. A phase after the first begins with the policy of the
// one before.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/talk.h"
#include "train.h"
#include "train_es.h"
#include "train_es_baselines.h"

#define EVALUATION_SEED 0x7e57u  // starts that training never sees

// ---- the trainer ----

// By the first rank, which another may become.
static bool open_directions(struct train_es *t) {
    const char *path = t->trainer.config.settings.directions;
    bool wanted = path[0] && !t->directions.path && trainer_first(&t->trainer);
    return !wanted || es_directions_open(&t->directions, path);
}

static bool advance(void *self, struct grt_run *run, struct grt_run_turn *turn) {
    struct train_es *t = self;
    struct grt_es_report r = {.stopped = true};
    if (turn->more && !grt_es_iterate(t->es, &r)) {
        return false;
    }
    // An iteration that was given up has changed nothing.
    turn->idle = r.stopped;
    if (r.stopped) {
        return true;
    }
    struct grt_run_row row = {.event = GRT_RUN_TRAIN};
    grt_run_row_set(&row, GRT_FIELD_RETURN, (double)r.mean_return);
    grt_run_row_set(&row, GRT_FIELD_BEST_RETURN, (double)r.best_return);
    grt_run_row_set(&row, GRT_FIELD_GOOD_RATE, (double)r.good_rate);
    grt_run_row_set(&row, GRT_FIELD_FALLS, (double)r.fall_rate);
    grt_run_row_set(&row, GRT_FIELD_STEPS_PER_S, r.steps / r.seconds);
    if (r.busy > 0) {  // where it has a clock
        grt_run_row_set(&row, GRT_FIELD_GPU, r.busy < r.seconds ? r.busy / r.seconds : 1);
    }
    if (!open_directions(t) || !es_directions_add(&t->directions, t->es, r.iteration)) {
        return false;
    }
    grt_run_place(run)->step = r.iteration;
    grt_run_tell(run, &row);
    turn->evaluate = t->until > 0 && (double)r.good_rate >= 0.9 * t->until;
    return true;
}

static void set_trial(struct grt_run_row *row, const struct grt_es_report *r) {
    grt_run_row_set(row, GRT_FIELD_RETURN, (double)r->mean_return);
    grt_run_row_set(row, GRT_FIELD_GOOD_RATE, (double)r->good_rate);
    grt_run_row_set(row, GRT_FIELD_FALLS, (double)r->fall_rate);
    row->score = (double)r->mean_return;
}

static bool evaluate(void *self, struct grt_run *run, bool more, struct grt_run_row *row,
                     bool *stopped) {
    struct train_es *t = self;
    struct grt_es_report trial = {.stopped = true};
    (void)run;
    if (more && !grt_es_evaluate(t->es, EVALUATION_SEED, &trial)) {
        return false;
    }
    *stopped = trial.stopped;
    set_trial(row, &trial);
    return true;
}

static bool save(void *self, const struct grt_run *run, struct grt_archive *archive) {
    struct train_es *t = self;
    (void)run;
    return grt_es_save(t->es, archive);
}

static bool load(void *self, const struct grt_run *run, const struct grt_archive *archive,
                 struct grt_run_place *place) {
    struct train_es *t = self;
    (void)run;
    place->step = (uint64_t)grt_archive_whole(archive, "iteration", 0);
    return grt_es_load(t->es, archive, false);
}

static const struct grt_trainer trainer = {
    .kind = "es",
    .all = GRT_ENDED_ITERATIONS,
    .tries_first = true,
    .remedy = "A smaller --step-size or another --noise-std may help",
    .advance = advance,
    .evaluate = evaluate,
    .save = save,
    .load = load,
};

// ---- where it begins ----

static void phase_path(char path[TRAIN_FILE_PATH], const char *env, uint32_t phase) {
    snprintf(path, TRAIN_FILE_PATH, "%s-phase%u.h5", env, phase);
}

// Settings that were not given come from the checkpoint that is resumed: then the bits are the
// same.
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
        if (!*counts[i].value && !(counts[i].value == &t->seed && t->seed_given)) {
            *counts[i].value = (uint32_t)grt_archive_whole(a, counts[i].name, 0);
        }
    }
    t->no_normalise = t->no_normalise || !grt_archive_whole(a, "normalise", 1);
    t->step_size = t->step_size > 0 ? t->step_size : grt_archive_real(a, "step_size", 0);
    t->noise_std = t->noise_std > 0 ? t->noise_std : grt_archive_real(a, "noise_std", 0);
    if (!grt_config_given(&t->trainer.config.settings, GRT_CONFIG_EMA)) {
        t->ema = grt_archive_real(a, "ema", 0);
    }
    t->env = t->env ? t->env : grt_archive_text(a, "env", NULL);
    t->algo = t->algo ? t->algo : grt_archive_text(a, "algo", NULL);
}

// Once it is known. Returns the exit code, the mistake said.
static int open_env(struct train_es *t) {
    if (t->env && !t->info) {
        t->info = grt_env_open(t->env);
        if (!t->info) {
            return command_exit_of_input(grt_last_status());
        }
    }
    return COMMAND_OK;
}

// The archive to begin with, if any. Returns the exit code, the mistake said.
static int open_start(struct train_es *t) {
    char before[TRAIN_FILE_PATH];
    const char *path = t->file.resume ? t->file.resume : t->file.from;
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
    if (!path || strcmp(path, "none") == 0) {
        return COMMAND_OK;
    }
    return train_file_load(&t->file, path);
}

// What the run begins with, and where it is kept.
static int find_files(struct train_es *t) {
    char path[TRAIN_FILE_PATH];
    int code = open_env(t);
    if (!code) {
        code = open_start(t);
    }
    if (code) {
        return code;
    }
    if (t->file.archive && t->file.resume) {
        settings_of(t, t->file.archive);
    }
    code = open_env(t);
    if (code) {
        return code;
    }
    if (t->file.archive && !t->policy) {
        t->policy = grt_archive_text(t->file.archive, "policy", NULL);
    }
    phase_path(path, t->info->name, t->phase ? t->phase : 1);
    return train_file_keep(&t->file, t->trainer.config.checkpoint, path);
}

static int read_settings(struct train_es *t, const char *only, const char **words, size_t count) {
    int code = train_es_settings(t, only, words, count);
    if (!code) {
        code = train_file_check(&t->file);
    }
    if (code) {
        return code;
    }
    if (t->top_dirs && t->algo && strcmp(t->algo, "es") == 0) {
        talk_error("top_dirs has no effect with algo es, which ranks all: leave it out");
        return COMMAND_CONFIG;
    }
    if (!t->env && !t->file.resume) {
        talk_error("which environment? --env NAME; see `gpurt %s --help`", t->trainer.kind->verb);
        return COMMAND_USAGE;
    }
    return find_files(t);
}

static int read_es(void *self, const char **words, size_t count) {
    return read_settings(self, NULL, words, count);
}

static int read_standing(void *self, const char **words, size_t count) {
    return read_settings(self, "standing", words, count);
}

static int files(void *self) {
    const struct train_es *t = self;
    return train_file_apart(&t->trainer, &t->file);
}

// ---- the run ----

static bool describe(const struct train_es *t, struct grt_es_desc *desc) {
    const char *policy = t->policy ? t->policy : "affine";
    *desc = (struct grt_es_desc){
        .env = t->info,
        .algo = t->algo && strcmp(t->algo, "es") == 0 ? GRT_ES_RANKS : GRT_ES_ARS,
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
        .max_submit_ms = t->trainer.config.common.max_submit_ms,
        .stop = talk_stopped,
        .comm = t->trainer.comm,
        .ema = t->ema,
    };
    return desc->env && grt_policy_parse(policy, &desc->policy);
}

static void add_targets(const struct train_es *t, struct grt_run_start *start) {
    const struct grt_config *c = &t->trainer.config.settings;
    if (t->until > 0) {
        start->targets[start->target_count++] =
            (struct grt_run_target){.field = GRT_FIELD_GOOD_RATE, .value = t->until};
    }
    if (grt_config_given(c, GRT_CONFIG_TARGET_RETURN)) {
        start->targets[start->target_count++] =
            (struct grt_run_target){.field = GRT_FIELD_RETURN, .value = c->target_return};
    }
}

static int begin(struct train_es *t) {
    const struct grt_es_desc *d = grt_es_desc_of(t->es);
    struct grt_run_row about = {0};
    grt_policy_text(&d->policy, t->policy_text);
    grt_run_row_set(&about, GRT_FIELD_PARAMETERS, grt_policy_params(&d->policy, d->env));
    grt_run_row_set(&about, GRT_FIELD_SEED, d->seed);
    grt_run_row_text(&about, GRT_FIELD_ENV, d->env->name);
    grt_run_row_text(&about, GRT_FIELD_POLICY, t->policy_text);
    grt_run_row_text(&about, GRT_FIELD_ALGO, grt_es_algo_text(d->algo));
    grt_run_row_set(&about, GRT_FIELD_PHASE, d->phase);
    grt_run_row_set(&about, GRT_FIELD_NUM_ENVS, d->num_envs);
    grt_run_row_set(&about, GRT_FIELD_NUM_DIRS, d->num_dirs);
    grt_run_row_set(&about, GRT_FIELD_EPISODE_LENGTH, d->episode_length);
    struct grt_run_start start = {.trainer = &trainer,
                                  .self = t,
                                  .steps = t->iterations,
                                  .max_steps = t->trainer.config.settings.max_steps,
                                  .about = &about};
    add_targets(t, &start);
    return train_file_begin(&t->trainer, &t->file, t->checkpoint_every, &start);
}

// What every rank has to have alike; sizes that nobody gave are those of the first.
static bool agree(const struct train_es *t, const struct grt_es_desc *d) {
    char text[256], digest[GRT_ENV_DIGEST], policy[GRT_POLICY_TEXT];
    grt_env_digest(d->env, digest);
    grt_policy_text(&d->policy, policy);
    snprintf(text, sizeof text,
             "%.40s %.20s %s %s phase=%u envs=%u dirs=%u top=%u steps=%u "
             "step=%g noise=%g seed=%u norm=%d iterations=%u every=%u/%u",
             d->env->name, digest, policy, grt_es_algo_text(d->algo), d->phase, d->num_envs,
             d->num_dirs, d->top_dirs, d->episode_length, (double)d->step_size,
             (double)d->noise_std, d->seed, !d->no_normalise, t->iterations, t->file.evaluate_every,
             t->checkpoint_every);
    return grt_comm_agree(t->trainer.comm, "settings", text);
}

static int open_es(void *self) {
    struct train_es *t = self;
    struct grt_es_desc desc;
    if (!describe(t, &desc)) {
        return COMMAND_USAGE;
    }
    if (!agree(t, &desc)) {
        return command_exit_of(grt_last_status());
    }
    t->es = grt_es_create(t->trainer.dev, &desc);
    if (!grt_comm_all(t->trainer.comm, "cannot begin: see its own line", t->es != NULL)) {
        return command_exit_of_input(grt_last_status());
    }
    if (t->file.archive && !t->file.resume && !grt_es_load(t->es, t->file.archive, true)) {
        return train_file_exit();
    }
    t->file.evaluate_every = train_file_turns(t->file.evaluate_every, t->iterations);
    if (!open_directions(t)) {
        return command_exit_of(grt_last_status());
    }
    return begin(t);
}

// ---- the table ----

// X(name, event, field, key, heading, unit, type, precision, width)
#define TRAIN_COLUMNS(X)                                                                           \
    X(STEP, TRAIN, STEP, "step", "iteration", NULL, COUNT, 0, 0)                                   \
    X(RETURN, TRAIN, RETURN, "return", "mean return", NULL, NUMBER, 2, 0)                          \
    X(BEST, TRAIN, BEST_RETURN, "best_return", "best", NULL, NUMBER, 2, 9)                         \
    X(GOOD, TRAIN, GOOD_RATE, "good_rate", "good", NULL, SHARE, 1, 6)                              \
    X(FALLS, TRAIN, FALLS, "falls", "falls", NULL, NUMBER, 3, 6)                                   \
    X(TRIAL, EVALUATE, RETURN, "evaluate_return", "policy's return", NULL, NUMBER, 2, 0)           \
    X(TRIAL_GOOD, EVALUATE, GOOD_RATE, "evaluate_good_rate", "good", NULL, SHARE, 1, 6)            \
    X(RATE, TRAIN, STEPS_PER_S, "steps_per_s", "", "steps/s", NUMBER, 0, 10)                       \
    X(GPU, TRAIN, GPU, "gpu", "GPU", NULL, SHARE, 0, 5)                                            \
    X(MEMORY, TRAIN, MEMORY, "memory", "memory", NULL, BYTES, 0, 9)                                \
    X(SECONDS, TRAIN, SECONDS, "seconds", "", "s", NUMBER, 2, 8)                                   \
    X(TRIAL_FALLS, EVALUATE, FALLS, "evaluate_falls", "falls", NULL, NUMBER, 3, 6)                 \
    X(NAME, BASELINE, BASELINE, "baseline", "policy", NULL, TEXT, 0, 24)

enum train_column_name {
#define X(name, event, field, key, heading, unit, type, precision, width) TRAIN_##name,
    TRAIN_COLUMNS(X)
#undef X
        TRAIN_COLUMN_COUNT,
};
#define BIT(name) (1ull << TRAIN_##name)

static const struct train_column columns[] = {TRAIN_COLUMNS(TRAIN_COLUMN)};

static void banner(void *self, char title[TABLE_TEXT_SIZE], uint64_t *shown) {
    const struct train_es *t = self;
    const struct grt_es_desc *d = grt_es_desc_of(t->es);
    const struct grt_dev_info *info = grt_dev_info(t->trainer.dev);
    snprintf(
        title, TABLE_TEXT_SIZE,
        "%s, phase %u, on %s: %s, %s; %s, %u directions of %u environments, %u at once, %u steps",
        d->env->name, d->phase, info->selector, info->name, t->policy_text,
        grt_es_algo_text(d->algo), d->num_dirs, d->num_envs, d->dir_chunk, d->episode_length);
    *shown &= ~(BIT(TRIAL_FALLS) | BIT(NAME));
    talk_line("policy      %s: %u parameters, %s", t->policy_text,
              grt_policy_params(&d->policy, d->env), grt_es_algo_text(d->algo));
    talk_line("environment %s, phase %u: %u directions of %u environments, %u at once, %u steps",
              d->env->name, d->phase, d->num_dirs, d->num_envs, d->dir_chunk, d->episode_length);
    talk_line("iterations  %u, step size %g, noise %g; the policy is tried every %u", t->iterations,
              (double)d->step_size, (double)d->noise_std, t->file.evaluate_every);
    talk_line("seed        %u", d->seed);
}

// What the policy is worth: beside it, actions that never change.
static int report(void *self) {
    struct train_es *t = self;
    struct grt_archive *archive = grt_archive_create();
    struct train_baseline rows[TRAIN_BASELINES] = {{.name = "the policy"}};
    if (!t->baselines) {
        grt_archive_destroy(&archive);
        return t->directions.failed ? COMMAND_IO : COMMAND_OK;
    }
    talk_progress("searching the best constant action");
    bool ok = archive && grt_es_evaluate(t->es, EVALUATION_SEED, &rows[0].report) &&
              grt_es_save(t->es, archive) &&
              train_baselines(t->trainer.dev, grt_es_desc_of(t->es), archive, t->iterations,
                              EVALUATION_SEED, rows + 1);
    grt_archive_destroy(&archive);
    talk_clear();
    if (!ok) {
        return command_exit_of(grt_last_status());
    }
    if (talk_stopped()) {
        return COMMAND_OK;
    }
    train_rows_section(&t->trainer.rows, "beside actions that never change",
                       BIT(NAME) | BIT(TRIAL) | BIT(TRIAL_GOOD) | BIT(TRIAL_FALLS));
    for (int i = 0; i < TRAIN_BASELINES; i++) {
        struct grt_run_row row = {.event = GRT_RUN_BASELINE};
        set_trial(&row, &rows[i].report);
        grt_run_row_text(&row, GRT_FIELD_BASELINE, rows[i].name);
        trainer_tell(&t->trainer, &row);
    }
    return COMMAND_OK;
}

static void close_es(void *self) {
    struct train_es *t = self;
    es_directions_close(&t->directions);
    grt_es_destroy(&t->es);
    grt_archive_destroy(&t->file.archive);
    grt_env_close(&t->info);
}

// ---- the verbs ----

#define STOPPING                                                                                   \
    "Settings are options, or KEY=VALUE and --config with the keys that --keys lists; options "    \
    "win.\n"                                                                                       \
    "Ctrl-C, SIGTERM, SIGHUP or SIGUSR1 ends with a checkpoint and exit code 75;\n"                \
    "--resume goes on and reaches the same bits.\n"                                                \
    "mpirun -n 4 gpurt train ... shares the directions out over four devices, to the same bits.\n"

#define KIND                                                                                       \
    .keys = GRT_CONFIG_OF_ES, .columns = columns, .column_count = TRAIN_COLUMN_COUNT,              \
    .size = sizeof(struct train_es), .more = "--iterations N", .resume_file = true,                \
    .outlives = true, .files = files, .open = open_es, .banner = banner, .report = report,         \
    .close = close_es

int train_es(int argc, char **argv) {
    const struct option_list lists[] = {
        OPTION_LIST("Environment", train_es_env_options),
        OPTION_LIST("Learning", train_es_options),
        OPTION_LIST("Run", train_es_run_options),
    };
    const struct train_kind kind = {
        KIND,
        .verb = "train es",
        .about =
            "Trains a policy by evolution strategies; whole episodes run inside one kernel.\n"
            "Environments: cartpole, pendulum, standing, and your own: a file such as ./slider.k, "
            "compiled\nat run time (shaders/env/README.md).\n" STOPPING,
        .lists = lists,
        .list_count = sizeof lists / sizeof *lists,
        .read = read_es,
    };
    return trainer_main(&kind, argc, argv);
}

int train_standing(int argc, char **argv) {
    const struct option_list lists[] = {
        OPTION_LIST("Learning", train_es_options),
        OPTION_LIST("Run", train_es_run_options),
    };
    const struct train_kind kind = {
        KIND,
        .verb = "train standing",
        .about = "Trains the four-legged robot. Phases: 1 stand up from a crouch to a commanded "
                 "height,\n2 hold it under pushes, 3 with randomised mass, friction, motors and "
                 "latency, "
                 "4 walk.\n" STOPPING,
        .lists = lists,
        .list_count = sizeof lists / sizeof *lists,
        .read = read_standing,
    };
    return trainer_main(&kind, argc, argv);
}
