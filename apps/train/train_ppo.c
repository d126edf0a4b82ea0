// SPDX-License-Identifier: Apache-2.0
// `gpurt train ppo` and `gpurt train uav`: a policy by proximal policy optimization, environment
// and learning on the device.
//
// A step is an iteration, and each has its row; every few the policy's most likely actions are
// tried on starts of their own. What is resumed goes on in the same file.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/talk.h"
#include "train.h"
#include "train_ppo.h"
#include "train_ppo_time.h"

// ---- the trainer ----

static void set_episodes(const struct train_ppo *t, struct grt_run_row *row,
                         const struct grt_ppo_report *r) {
    uint32_t terms = grt_worlds_sizes(t->task->worlds)->terms;
    if (r->episodes == 0) {
        return;
    }
    grt_run_row_set(row, GRT_FIELD_RETURN, r->mean_return);
    grt_run_row_set(row, GRT_FIELD_LENGTH, r->length);
    for (uint32_t i = 0; i < terms && i < GRT_RUN_TERMS; i++) {
        grt_run_row_set(row, (enum grt_run_field)(GRT_FIELD_TERM_1 + i), r->terms[i]);
    }
}

static bool advance(void *self, struct grt_run *run, struct grt_run_turn *turn) {
    struct train_ppo *t = self;
    struct grt_ppo_report r = {.stopped = true};
    if (turn->more && !grt_ppo_task_iterate(t->task, &r)) {
        return false;
    }
    // An iteration that was given up has changed nothing.
    turn->idle = r.stopped;
    if (r.stopped) {
        if (turn->more) {
            t->newest = (struct grt_ppo_report){0};
        }
        return true;
    }
    t->newest = r;
    // Drivers compile in the first: where there are others, it is left out.
    if (t->turns++ < 2) {
        t->sum = (struct grt_ppo_report){0};
    }
    t->sum.seconds += r.seconds;
    t->sum.acting += r.acting;
    t->sum.valuing += r.valuing;
    t->sum.update += r.update;
    struct grt_run_row row = {.event = GRT_RUN_TRAIN};
    double busy = r.acting + r.valuing + r.update;
    grt_run_row_set(&row, GRT_FIELD_EPISODES, r.episodes);
    set_episodes(t, &row, &r);
    grt_run_row_set(&row, GRT_FIELD_POLICY_LOSS, r.policy_loss);
    grt_run_row_set(&row, GRT_FIELD_VALUE_LOSS, r.value_loss);
    grt_run_row_set(&row, GRT_FIELD_ENTROPY, r.entropy);
    grt_run_row_set(&row, GRT_FIELD_KL, r.kl);
    grt_run_row_set(&row, GRT_FIELD_CLIP_RATE, r.clip_rate);
    grt_run_row_set(&row, GRT_FIELD_EXPLAINED, r.explained);
    grt_run_row_set(&row, GRT_FIELD_GRAD_NORM, r.grad_norm);
    grt_run_row_set(&row, GRT_FIELD_LR, r.lr);
    grt_run_row_set(&row, GRT_FIELD_STEPS_PER_S, r.rows / r.seconds);
    if (busy > 0) {  // where it has a clock
        grt_run_row_set(&row, GRT_FIELD_GPU, busy < r.seconds ? busy / r.seconds : 1);
    }
    grt_run_place(run)->step = r.iteration;
    grt_run_tell(run, &row);
    return true;
}

static bool evaluate(void *self, struct grt_run *run, bool more, struct grt_run_row *row,
                     bool *stopped) {
    struct train_ppo *t = self;
    struct grt_ppo_report r = {.stopped = true};
    (void)run;
    if (more && !grt_ppo_evaluate(t->task->ppo, t->task->trials, GRT_PPO_TRY_POLICY,
                                  TRAIN_PPO_TRIALS, &r)) {
        return false;
    }
    *stopped = r.stopped;
    set_episodes(t, row, &r);
    row->score = r.mean_return;
    return true;
}

static bool save(void *self, const struct grt_run *run, struct grt_archive *archive) {
    struct train_ppo *t = self;
    (void)run;
    return grt_ppo_task_save(t->task, t->env, archive);
}

static bool load(void *self, const struct grt_run *run, const struct grt_archive *archive,
                 struct grt_run_place *place) {
    struct train_ppo *t = self;
    (void)run;
    place->step = (uint64_t)grt_archive_whole(archive, "iteration", 0);
    return grt_ppo_task_load(t->task, archive, GRT_PPO_ALL);
}

static const struct grt_trainer trainer = {
    .kind = "ppo",
    .all = GRT_ENDED_ITERATIONS,
    .tries_first = true,
    .saves_together = true,
    .remedy = "A lower learning_rate may help",
    .advance = advance,
    .evaluate = evaluate,
    .save = save,
    .load = load,
};

// ---- where it begins ----

static int read_settings(struct train_ppo *t, const char *only, const char **words, size_t count) {
    const char *begins = t->file.resume ? t->file.resume : t->file.from;
    int code = train_file_check(&t->file);
    if (!code && begins) {
        code = train_file_load(&t->file, begins);
    }
    if (!code) {
        code = train_ppo_settings(t, only, words, count);
    }
    if (code) {
        return code;
    }
    char path[TRAIN_FILE_PATH];
    snprintf(path, sizeof path, "%s-ppo.h5", t->info->name);
    const struct grt_config *c = &t->trainer.config.settings;
    const char *given = t->trainer.config.checkpoint ? t->trainer.config.checkpoint
                        : grt_config_given(c, GRT_CONFIG_CHECKPOINT_FILE) ? c->checkpoint_file
                                                                          : NULL;
    return train_file_keep(&t->file, given, path);
}

static int read_ppo(void *self, const char **words, size_t count) {
    return read_settings(self, NULL, words, count);
}

static int read_uav(void *self, const char **words, size_t count) {
    return read_settings(self, "uav", words, count);
}

static int files(void *self) {
    const struct train_ppo *t = self;
    return train_file_apart(&t->trainer, &t->file);
}

// ---- the table ----

// X(name, event, field, key, heading, unit, type, precision, width)
#define TRAIN_COLUMNS(X)                                                                           \
    X(STEP, TRAIN, STEP, "step", "iteration", NULL, COUNT, 0, 0)                                   \
    X(RETURN, TRAIN, RETURN, "return", "return", NULL, NUMBER, 3, 9)                               \
    X(LENGTH, TRAIN, LENGTH, "length", "steps", NULL, NUMBER, 1, 7)                                \
    X(TERM_1, TRAIN, TERM_1, "term_1", "", NULL, NUMBER, 3, 9)                                     \
    X(TERM_2, TRAIN, TERM_2, "term_2", "", NULL, NUMBER, 4, 10)                                    \
    X(ENTROPY, TRAIN, ENTROPY, "entropy", "entropy", NULL, NUMBER, 3, 7)                           \
    X(KL, TRAIN, KL, "kl", "KL", NULL, NUMBER, 4, 7)                                               \
    X(CLIPPED, TRAIN, CLIP_RATE, "clip_rate", "clipped", NULL, SHARE, 0, 7)                        \
    X(EXPLAINED, TRAIN, EXPLAINED, "explained", "explained", NULL, NUMBER, 2, 9)                   \
    X(TRIAL, EVALUATE, RETURN, "evaluate_return", "policy's return", NULL, NUMBER, 3, 0)           \
    X(TRIAL_1, EVALUATE, TERM_1, "evaluate_term_1", "", NULL, NUMBER, 3, 9)                        \
    X(TRIAL_2, EVALUATE, TERM_2, "evaluate_term_2", "", NULL, NUMBER, 4, 10)                       \
    X(RATE, TRAIN, STEPS_PER_S, "steps_per_s", "", "steps/s", NUMBER, 0, 10)                       \
    X(GPU, TRAIN, GPU, "gpu", "GPU", NULL, SHARE, 0, 5)                                            \
    X(MEMORY, TRAIN, MEMORY, "memory", "memory", NULL, BYTES, 0, 9)                                \
    X(SECONDS, TRAIN, SECONDS, "seconds", "", "s", NUMBER, 2, 8)                                   \
    X(TRIAL_LENGTH, EVALUATE, LENGTH, "evaluate_length", "steps", NULL, NUMBER, 1, 7)              \
    X(NAME, BASELINE, BASELINE, "baseline", "policy", NULL, TEXT, 0, 16)                           \
    X(PART, TIMING, PART, "part", "phase", NULL, TEXT, 0, 16)                                      \
    X(PART_SECONDS, TIMING, PART_SECONDS, "part_seconds", "", "s", NUMBER, 3, 9)                   \
    X(SHARE, TIMING, SHARE, "share", "share", NULL, SHARE, 1, 6)                                   \
    X(BUSY, TIMING, GPU, "part_gpu", "device busy", NULL, SHARE, 0, 0)

enum train_column_name {
#define X(name, event, field, key, heading, unit, type, precision, width) TRAIN_##name,
    TRAIN_COLUMNS(X)
#undef X
        TRAIN_COLUMN_COUNT,
};
#define BIT(name) (1ull << TRAIN_##name)
#define TIMES (BIT(PART) | BIT(PART_SECONDS) | BIT(SHARE) | BIT(BUSY))

static struct train_column columns[] = {TRAIN_COLUMNS(TRAIN_COLUMN)};

// Columns of terms bear the names of the environment; those that it lacks are in no form of output.
static void name_columns(const struct train_ppo *t, uint64_t *shown) {
    static char keys[2][80];
    static const int training[] = {TRAIN_TERM_1, TRAIN_TERM_2},
                     trial[] = {TRAIN_TRIAL_1, TRAIN_TRIAL_2};
    for (uint32_t i = 0; i < 2; i++) {
        const char *name = grt_worlds_term(t->task->worlds, i);
        struct table_column *rollout = &columns[training[i]].column,
                            *policy = &columns[trial[i]].column;
        if (!name) {
            rollout->key = policy->key = NULL;
            *shown &= ~(1ull << training[i] | 1ull << trial[i]);
            continue;
        }
        snprintf(keys[i], sizeof keys[i], "evaluate_%.64s", name);
        rollout->key = name;
        policy->key = keys[i];
        rollout->heading = policy->heading = name;
    }
}

static void banner(void *self, char title[TABLE_TEXT_SIZE], uint64_t *shown) {
    const struct train_ppo *t = self;
    const struct grt_config *c = &t->trainer.config.settings;
    const struct grt_ppo_desc *d = grt_ppo_desc_of(t->task->ppo);
    const struct grt_worlds_sizes *sizes = grt_worlds_sizes(t->task->worlds);
    struct grt_ppo_size size = grt_ppo_size(t->task->ppo);
    const struct grt_dev_info *info = grt_dev_info(t->trainer.dev);
    char settings[256] = "";
    size_t used = 0;
    double value;
    const char *name;
    for (uint32_t i = 0;
         used < sizeof settings - 64 && (name = grt_worlds_setting(t->task->worlds, i, &value));
         i++) {
        used += (size_t)snprintf(settings + used, sizeof settings - used, "%s%s %g",
                                 i ? ", " : ": ", name, value);
    }
    snprintf(title, TABLE_TEXT_SIZE, "%s on %s: %s; copies %u, agents %u, steps of an iteration %u",
             t->info->name, info->selector, info->name, t->task->copies, sizes->agents,
             t->task->steps);
    *shown &= ~(BIT(TRIAL_LENGTH) | BIT(NAME) | TIMES);
    name_columns(t, shown);
    talk_line("environment %s%s", t->info->name, settings);
    talk_line("            copies %u, agents of each %u, observation [%u]%s, %s %u, steps of an "
              "episode %u",
              t->task->copies, sizes->agents, sizes->obs,
              d->central ? " and the whole for the critic" : "",
              sizes->choices ? "discrete actions" : "numbers of an action",
              sizes->choices ? sizes->choices : sizes->act, grt_worlds_length(t->task->worlds));
    talk_line("networks    %llu parameters, %s", (unsigned long long)size.parameters, c->precision);
    talk_line("iteration   %u steps of each copy: %llu rows; %u epochs of %u minibatches",
              t->task->steps, (unsigned long long)size.rows * t->task->parts, d->epochs,
              size.batches);
    if (t->task->parts > 1) {
        talk_line("            in %u parts, with copies of their own", t->task->parts);
    }
    talk_line("optimizer   %s, learning rate %g, %s", c->optimizer, c->learning_rate, c->schedule);
    talk_line("iterations  %llu; the policy is tried every %u, in %u episodes",
              (unsigned long long)c->iterations, t->file.evaluate_every,
              grt_worlds_copies(t->task->trials));
    talk_line("seed        %llu", (unsigned long long)c->seed);
}

// ---- the run ----

static int begin(struct train_ppo *t) {
    const struct grt_config *c = &t->trainer.config.settings;
    struct grt_run_row about = {0};
    grt_run_row_set(&about, GRT_FIELD_PARAMETERS, (double)grt_ppo_size(t->task->ppo).parameters);
    grt_run_row_set(&about, GRT_FIELD_SEED, (double)c->seed);
    grt_run_row_text(&about, GRT_FIELD_ENV, t->info->name);
    grt_run_row_text(&about, GRT_FIELD_PRECISION, c->precision);
    grt_run_row_set(&about, GRT_FIELD_NUM_ENVS, t->task->copies);
    grt_run_row_set(&about, GRT_FIELD_BATCH,
                    (double)grt_ppo_size(t->task->ppo).rows * t->task->parts);
    grt_run_row_set(&about, GRT_FIELD_EPISODE_LENGTH, grt_worlds_length(t->task->worlds));
    struct grt_run_start start = {
        .trainer = &trainer, .self = t, .steps = c->iterations, .about = &about};
    if (grt_config_given(c, GRT_CONFIG_TARGET_RETURN)) {
        start.targets[start.target_count++] =
            (struct grt_run_target){.field = GRT_FIELD_RETURN, .value = c->target_return};
    }
    if (c->until > 0) {
        start.targets[start.target_count++] =
            (struct grt_run_target){.field = GRT_FIELD_TERM_1, .value = c->until};
    }
    for (uint32_t i = 0; i < GRT_RUN_TERMS; i++) {
        start.terms[i] = grt_worlds_term(t->task->worlds, i);
    }
    uint64_t save_every = c->checkpoint_interval > 0 ? c->checkpoint_interval : 10;
    return train_file_begin(&t->trainer, &t->file, save_every, &start);
}

static int open_ppo(void *self) {
    struct train_ppo *t = self;
    const struct grt_config *c = &t->trainer.config.settings;
    // What comes from a checkpoint was taken when its run began.
    if (!t->file.archive && !grt_config_effective(c)) {
        return command_exit_of(grt_last_status());
    }
    int code = train_ppo_make(t);
    if (!grt_comm_all(t->trainer.comm, "cannot begin: see its own line", code == COMMAND_OK)) {
        return code ? code : command_exit_of(grt_last_status());
    }
    if (!t->file.archive && grt_config_given(c, GRT_CONFIG_LOG_STD) &&
        grt_worlds_sizes(t->task->worlds)->choices) {
        talk_error("log_std has no effect with the discrete actions of %s: leave it out", c->env);
        return COMMAND_CONFIG;
    }
    if (!grt_comm_all(t->trainer.comm, "cannot begin: see its own line",
                      grt_ppo_prepare(t->task->ppo, t->task->trials))) {
        return command_exit_of(grt_last_status());
    }
    if (t->file.archive && !t->file.resume &&
        !grt_ppo_task_load(t->task, t->file.archive, GRT_PPO_NETWORKS)) {
        return train_file_exit();
    }
    t->file.evaluate_every = train_file_turns(c->evaluate_every, c->iterations);
    return begin(t);
}

// Where the time of iterations went. The environment's part of their steps is as in the newest.
static int report_times(struct train_ppo *t) {
    struct ppo_part parts[PPO_PARTS];
    double environment = 0;
    if (!(t->newest.acting > 0)) {  // no iteration, the newest was taken back, or no clock
        return COMMAND_OK;
    }
    if (!grt_ppo_task_environment(t->task, &environment)) {
        return command_exit_of(grt_last_status());
    }
    struct grt_ppo_times times = ppo_times(&t->sum, environment / t->newest.acting * t->sum.acting);
    ppo_parts(&times, t->sum.seconds, parts);
    train_rows_section(&t->trainer.rows, "where the time of iterations went", TIMES);
    for (int i = 0; i < PPO_PARTS; i++) {
        struct grt_run_row row = {.event = GRT_RUN_TIMING};
        grt_run_row_text(&row, GRT_FIELD_PART, parts[i].name);
        grt_run_row_set(&row, GRT_FIELD_PART_SECONDS, parts[i].seconds);
        grt_run_row_set(&row, GRT_FIELD_SHARE, parts[i].share);
        grt_run_row_set(&row, GRT_FIELD_GPU, parts[i].busy);
        trainer_tell(&t->trainer, &row);
    }
    return COMMAND_OK;
}

// What the policy is worth: beside it, actions that need no learning.
static int report(void *self) {
    struct train_ppo *t = self;
    int code = report_times(t);
    if (code) {
        return code;
    }
    uint64_t shown = BIT(NAME) | BIT(TRIAL) | BIT(TRIAL_1) | BIT(TRIAL_2) | BIT(TRIAL_LENGTH);
    shown &= ~(grt_worlds_term(t->task->worlds, 0) ? 0 : BIT(TRIAL_1));
    shown &= ~(grt_worlds_term(t->task->worlds, 1) ? 0 : BIT(TRIAL_2));
    train_rows_section(&t->trainer.rows, "beside actions that need no learning", shown);
    for (int i = 0; i < GRT_PPO_TRIAL_COUNT; i++) {
        struct grt_ppo_report r;
        struct grt_run_row row = {.event = GRT_RUN_BASELINE};
        if (!grt_ppo_evaluate(t->task->ppo, t->task->trials, (enum grt_ppo_trial)i,
                              TRAIN_PPO_TRIALS, &r)) {
            return command_exit_of(grt_last_status());
        }
        if (r.stopped) {  // the run itself is over and kept
            return COMMAND_OK;
        }
        set_episodes(t, &row, &r);
        grt_run_row_text(&row, GRT_FIELD_BASELINE, grt_ppo_trial_text((enum grt_ppo_trial)i));
        trainer_tell(&t->trainer, &row);
    }
    return COMMAND_OK;
}

// ---- the verbs ----

#define AT(field) offsetof(struct train_ppo, field)

static const struct option_row env_options[] = {
    {.name = "env",
     .value = "NAME|FILE.k",
     .help = "environment, or a file of your own",
     .read = options_read_text,
     .at = AT(env)},
};

static const struct option_row run_options[] = {
    {.name = "config",
     .letter = "c",
     .value = "FILE",
     .help = "settings in YAML; options and KEY=VALUE stand above it",
     .read = options_read_text,
     .at = AT(trainer.config.config)},
    {.name = "checkpoint",
     .value = "FILE",
     .help = "where it is kept (default: that of --resume, or ENV-ppo.h5)",
     .read = options_read_text,
     .at = AT(trainer.config.checkpoint)},
    {.name = "resume",
     .value = "FILE",
     .help = "go on from this checkpoint",
     .read = options_read_text,
     .at = AT(file.resume)},
    {.name = "from",
     .value = "FILE",
     .help = "begin with its networks",
     .read = options_read_text,
     .at = AT(file.from)},
};

// Keys that people use most, as --help shows them; --keys has all.
#define KEYS                                                                                       \
    "\nEvery key that --keys lists, and every setting of the environment, is an option or "        \
    "KEY=VALUE:\n"                                                                                 \
    "      --num-envs N                       copies of the environment (default: 64 on a CPU, "   \
    "else 4096)\n"                                                                                 \
    "      --rollout-steps N                  steps of each in an iteration (default: 128)\n"      \
    "      --iterations N                     in all, those of a resumed run included (default: "  \
    "100)\n"                                                                                       \
    "      --learning-rate X                  (default: 0.0003)\n"                                 \
    "      --batch-size N                     rows of a minibatch (default: a quarter of the "     \
    "iteration's)\n"
#define UAV_KEYS                                                                                   \
    "      --num-uavs N                       UAVs of a map (default: 10)\n"                       \
    "      --map N                            cells along its side (default: 32)\n"                \
    "      --num-obstacles N                  blocked cells (default: by the map)\n"
#define STOPPING                                                                                   \
    "\nCtrl-C, SIGTERM, SIGHUP or SIGUSR1 ends with a checkpoint and exit code 75;\n"              \
    "--resume goes on and reaches the same bits.\n"                                                \
    "mpirun -n 4 gpurt train ... shares the copies out over four devices.\n"

#define KIND                                                                                       \
    .keys = GRT_CONFIG_OF_PPO, .columns = columns, .column_count = TRAIN_COLUMN_COUNT,             \
    .size = sizeof(struct train_ppo), .more = "--iterations N", .resume_file = true,               \
    .keys_are_options = true, .files = files, .open = open_ppo, .banner = banner,                  \
    .report = report, .close = train_ppo_close

int train_ppo(int argc, char **argv) {
    const struct option_list lists[] = {
        OPTION_LIST("Environment", env_options),
        OPTION_LIST("Run", run_options),
    };
    const struct train_kind kind = {
        KIND,
        .verb = "train ppo",
        .about = "Trains a policy by proximal policy optimization; environment and learning stay "
                 "on the device.\nEnvironments: cartpole, pendulum, standing, uav, and your own: a "
                 "file such as ./slider.k\n(shaders/env/README.md).\n" KEYS STOPPING,
        .lists = lists,
        .list_count = sizeof lists / sizeof *lists,
        .read = read_ppo,
    };
    return trainer_main(&kind, argc, argv);
}

int train_uav(int argc, char **argv) {
    const struct option_list lists[] = {
        OPTION_LIST("Run", run_options),
    };
    const struct train_kind kind = {
        KIND,
        .verb = "train uav",
        .about =
            "Trains UAVs that fly over a grid map to their targets: PPO, a policy that all "
            "share and that sees\nits surroundings, a critic that sees the whole.\n" KEYS UAV_KEYS
                STOPPING,
        .lists = lists,
        .list_count = sizeof lists / sizeof *lists,
        .read = read_uav,
    };
    return trainer_main(&kind, argc, argv);
}
