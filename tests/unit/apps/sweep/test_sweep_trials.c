// SPDX-License-Identifier: Apache-2.0
// What a sweep makes of its trials: logs, ends, the best, the time that is left and rungs, for
// made-up logs with known answers.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/command.h"
#include "cli/talk.h"
#include "cli/spawn.h"
#include "sweep/sweep.h"

#define TRIALS 5

static char root[64];
static struct sweep *sweep;
static uint32_t stops;
static uint32_t stopped[TRIALS];

// An executor that starts nothing.
static void stop(struct sweep *s, struct sweep_trial *t) {
    (void)s;
    stopped[stops++] = t->number;
}
static const struct sweep_executor nobody = {.name = "nobody", .stop = stop};

static void silent(void *context, enum grt_log_level level, const char *text) {
    (void)context, (void)level, (void)text;
}

static void begin_with(const char *more) {
    char text[256];
    snprintf(root, sizeof root, "/tmp/gpurt_test_sweep.XXXXXX");
    assert_non_null(mkdtemp(root));
    sweep = calloc(1, sizeof *sweep);
    assert_non_null(sweep);
    snprintf(text, sizeof text, "lr: [1, 2, 3, 4, 5]\n%s", more);
    assert_true(sweep_plan_read(&sweep->plan, "s.yaml", text));
    assert_int_equal(sweep->plan.trials, TRIALS);
    sweep->plan.retries = 2;
    sweep->executor = &nobody;
    sweep->slots = 2;
    snprintf(sweep->dir, sizeof sweep->dir, "%s", root);
    sweep->trials = calloc(TRIALS, sizeof *sweep->trials);
    assert_non_null(sweep->trials);
    for (uint32_t i = 0; i < TRIALS; i++) {
        char path[SWEEP_PATH];
        sweep->trials[i].number = i;
        snprintf(path, sizeof path, "%s/%04u", root, i);
        assert_int_equal(mkdir(path, 0777), 0);
    }
    stops = 0;
}

static int begin(void **state) {
    (void)state;
    begin_with("metric: {name: val_loss, goal: minimize}\n");
    return 0;
}

static int end(void **state) {
    char command[128];
    (void)state;
    for (uint32_t i = 0; i < TRIALS; i++) {
        sweep_progress_finish(&sweep->trials[i].progress);
    }
    free(sweep->trials);
    sweep_plan_finish(&sweep->plan);
    free(sweep);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static void put(uint32_t trial, const char *name, const char *text, const char *mode) {
    char path[SWEEP_PATH];
    sweep_trial_path(sweep, &sweep->trials[trial], name, path);
    FILE *file = fopen(path, mode);
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static struct sweep_progress *reads(uint32_t trial, const char *log) {
    struct sweep_progress *p = &sweep->trials[trial].progress;
    char path[SWEEP_PATH];
    put(trial, "log.jsonl", log, "a");
    sweep_trial_path(sweep, &sweep->trials[trial], "log.jsonl", path);
    assert_true(sweep_progress_read(p, path, &sweep->plan.metric));
    return p;
}

// ---- logs ----

#define START "{\"event\": \"start\", \"step\": 0, \"steps\": 100}\n"
#define ROW(event, epoch, step, seconds, loss)                                                     \
    "{\"event\": \"" event "\", \"epoch\": " #epoch ", \"step\": " #step                           \
    ", \"seconds\": " #seconds ", \"time\": " #seconds ", \"loss\": " #loss "}\n"

// The loss rises, is no number, falls below the first, and rises again.
static void best_and_time(void **state) {
    (void)state;
    struct sweep_progress *p = reads(0, START ROW("evaluate", 1, 10, 2, "nan"));
    assert_true(p->any);
    assert_true(isnan(p->best));
    p = reads(0, ROW("evaluate", 2, 20, 4, 0.5) ROW("evaluate", 3, 30, 6, 0.7)
                     ROW("evaluate", 4, 40, 8, 0.25) ROW("evaluate", 5, 50, 10, "nan"));
    assert_true(p->best == 0.25);
    assert_int_equal(p->best_at, 4);
    assert_int_equal(p->count, 5);
    assert_int_equal(p->at, 5);
    assert_int_equal(p->whole, 10);  // 100 steps, 10 an epoch
    assert_int_equal(p->rows, 6);
    assert_true(sweep_progress_left(p) == 10);  // 50 steps more, 5 a second
    assert_string_equal(p->ended, "");
    p = reads(0, "{\"event\": \"end\", \"seconds\": 11, \"ended\": \"epochs\"}\n");
    assert_string_equal(p->ended, "epochs");
    assert_true(p->seconds == 11 && p->spent == 0);
    // A row that tells less of the time, or of steps, takes nothing back.
    p = reads(0, ROW("train", 5, 45, 7, 0.1));
    assert_true(p->seconds == 11 && p->step == 50);
}

// What is better is larger: also where all are negative, and an infinite one is the worst.
static void larger_is_better(void **state) {
    (void)state;
    sweep->plan.metric.maximize = true;
    struct sweep_progress *p =
        reads(0, START ROW("evaluate", 1, 10, 2, "-inf") ROW("evaluate", 2, 20, 4, -3)
                     ROW("evaluate", 3, 30, 6, -2) ROW("evaluate", 4, 40, 8, -4));
    assert_true(p->best == -2);
    assert_int_equal(p->best_at, 3);
    assert_true(p->points[0].value == -INFINITY);
    p = reads(0, ROW("evaluate", 5, 50, 10, "inf"));
    assert_true(p->best == INFINITY);
}

// A process that was killed: half a line, and the next one repeats epochs behind the checkpoint. An
// epoch counts once, and time adds up.
static void gone_on_with(void **state) {
    (void)state;
    struct sweep_progress *p = reads(0, START ROW("evaluate", 1, 10, 3, 0.5)
                                            ROW("evaluate", 2, 20, 6, 0.4) "{\"event\": ");
    assert_int_equal(p->rows, 3);
    p = reads(0, "\n{\"event\": \"start\", \"step\": 10, \"steps\": 100}\n" ROW(
                     "evaluate", 2, 20, 4, 0.1) ROW("evaluate", 3, 30, 8, 0.3));
    assert_true(p->best == 0.3);
    assert_int_equal(p->best_at, 3);
    assert_int_equal(p->count, 3);
    assert_true(p->spent == 6 && p->seconds == 8);
    assert_int_equal(p->first, 10);
    assert_true(sweep_progress_left(p) == 28);  // 70 steps, 2.5 a second
    p = reads(0, "{\"event\": \"end\", \"ended\": \"signal\"}\n" START);
    assert_string_equal(p->ended, "");
    assert_true(p->spent == 14 && p->seconds == 0);
    assert_true(sweep_progress_left(p) < 0);
}

// Rows that are not the metric's: other events, no such field, no event, the policy before its
// training, words that are no rows, a line longer than what is read at once.
static void other_rows(void **state) {
    (void)state;
    char *line = calloc(1, 70002);
    assert_non_null(line);
    memset(line, 'x', 70000);
    line[70000] = '\n';
    struct sweep_progress *p =
        reads(0, START ROW("train", 1, 5, 1, 0.01) ROW("baseline", 1, 5, 1, 0.02)
                     ROW("evaluate", 0, 0, 1, 0.03) "{\"step\": 3, \"loss\": 0.04}\n" ROW(
                         "evaluate", 1, 10, 2, "much") "[1]\nnothing\n");
    assert_false(p->any);
    assert_string_equal(p->had, "loss");
    assert_int_equal(p->rows, 5);
    p = reads(0, line);
    p = reads(0, ROW("evaluate", 2, 20, 4, 0.5));
    free(line);
    assert_true(p->any && p->best == 0.5);
    // Of es and ppo, which have no epochs, steps are told.
    p = reads(1, START "{\"event\": \"evaluate\", \"step\": 40, \"loss\": 3}\n");
    assert_int_equal(p->at, 40);
    assert_int_equal(p->whole, 100);
    assert_int_equal(p->best_at, 40);
}

// ---- ends ----

static const char *const bare = START ROW("evaluate", 1, 10, 2, 0.5);

static void ends(void **state) {
    static const struct {
        const char *ended;  // of the log; NULL: it has no such row
        struct sweep_end end;
        uint32_t crashes;  // before, of 2 retries
        enum sweep_ask asked;
        enum sweep_state is;
        uint32_t counted;
        const char *why;  // a part of it
    } rows[] = {
        {"epochs", {true, COMMAND_OK, NULL}, 0, 0, SWEEP_DONE, 0, ""},
        {"patience", {false, 0, NULL}, 1, 0, SWEEP_DONE, 1, ""},
        {"until", {false, 0, NULL}, 0, 0, SWEEP_DONE, 0, ""},
        {"max_time", {false, 0, NULL}, 0, 0, SWEEP_DONE, 0, ""},
        {"max_steps", {false, 0, NULL}, 0, 0, SWEEP_DONE, 0, ""},
        {"iterations", {false, 0, NULL}, 0, 0, SWEEP_DONE, 0, ""},
        {"signal", {false, 0, NULL}, 0, 0, SWEEP_WAITING, 0, ""},
        {NULL, {false, 0, NULL}, 0, 0, SWEEP_WAITING, 0, ""},
        {"signal", {true, COMMAND_RESUMABLE, NULL}, 0, 0, SWEEP_WAITING, 0, ""},
        {"signal", {true, COMMAND_RESUMABLE, NULL}, 0, SWEEP_ASK_HALT, SWEEP_WAITING, 0, ""},
        {"signal", {true, COMMAND_RESUMABLE, NULL}, 0, SWEEP_ASK_HALVE, SWEEP_HALVED, 0, "at 3"},
        {"signal", {false, 0, NULL}, 0, SWEEP_ASK_HALVE, SWEEP_HALVED, 0, "at 3"},
        {"epochs", {true, COMMAND_OK, NULL}, 0, SWEEP_ASK_HALVE, SWEEP_DONE, 0, ""},
        {"nonfinite", {true, COMMAND_INTERNAL, NULL}, 0, 0, SWEEP_NAN, 0, "the last words"},
        {NULL, {true, COMMAND_NO_MEMORY, NULL}, 0, 0, SWEEP_MEMORY, 0, "the last words"},
        {NULL, {true, COMMAND_USAGE, NULL}, 0, 0, SWEEP_FAILED, 0, "the last words"},
        {NULL, {true, COMMAND_DATA, NULL}, 0, 0, SWEEP_FAILED, 0, "the last words"},
        {NULL, {true, COMMAND_NO_INPUT, NULL}, 0, 0, SWEEP_FAILED, 0, "the last words"},
        {NULL, {true, COMMAND_CANNOT_CREATE, NULL}, 0, 0, SWEEP_FAILED, 0, "the last words"},
        {NULL, {true, COMMAND_CONFIG, NULL}, 0, 0, SWEEP_FAILED, 0, "the last words"},
        {NULL, {true, COMMAND_IO, NULL}, 0, 0, SWEEP_WAITING, 1, "the last words"},
        {NULL, {true, COMMAND_INTERNAL, NULL}, 1, 0, SWEEP_WAITING, 2, "the last words"},
        {NULL, {true, COMMAND_INTERNAL, NULL}, 2, 0, SWEEP_FAILED, 3, "the last words"},
        {NULL, {true, -9, NULL}, 0, 0, SWEEP_WAITING, 1, "signal 9"},
        {NULL, {true, -9, "its node"}, 2, 0, SWEEP_FAILED, 3, "its node"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sweep_trial *t = &sweep->trials[0];
        char log[512];
        snprintf(log, sizeof log, "%s%s%s%s", bare,
                 rows[i].ended ? "{\"event\": \"end\", \"ended\": \"" : "",
                 rows[i].ended ? rows[i].ended : "", rows[i].ended ? "\"}\n" : "");
        sweep_progress_finish(&t->progress);
        *t = (struct sweep_trial){.state = SWEEP_RUNNING,
                                  .pid = 4711,
                                  .crashes = rows[i].crashes,
                                  .asked = rows[i].asked,
                                  .rungs = 1};
        sweep->plan.halving = (struct sweep_halving){.count = 2, .rungs = {3, 9}};
        put(0, "log.jsonl", log, "w");
        put(0, "output.txt", "gpurt: no word\nother\ngpurt: the last words\nbehind\n", "w");
        put(0, "exit.json", "{}", "w");
        assert_true(sweep_ended(sweep, t, rows[i].end));
        assert_int_equal(t->state, rows[i].is);
        assert_int_equal(t->crashes, rows[i].counted);
        assert_non_null(strstr(t->why, rows[i].why));
        assert_int_equal(t->why[0] == '\0', rows[i].why[0] == '\0');
        assert_int_equal(t->pid, 0);
        assert_int_equal(t->asked, SWEEP_ASK_NOTHING);
        // What the files say is the same.
        struct sweep_trial again = {.number = 0};
        assert_true(sweep_trial_load(sweep, &again));
        assert_int_equal(again.state, t->state);
        assert_int_equal(again.crashes, t->crashes);
        assert_string_equal(again.why, t->why);
        sweep_progress_finish(&again.progress);
        // What a queue was told counts once: a run that is to follow has nothing of it.
        char path[SWEEP_PATH];
        sweep_trial_path(sweep, t, "exit.json", path);
        assert_int_equal(access(path, F_OK) == 0, sweep_state_final(t->state));
        sweep_trial_path(sweep, t, "result.json", path);
        assert_int_equal(unlink(path) == 0, sweep_state_final(t->state));
    }
    assert_false(sweep->fatal || sweep->broken);
}

// One that crashed, was tried again and came to its end has no reason any more, nor has its file.
static void tried_again(void **state) {
    struct sweep_trial *t = &sweep->trials[0];
    (void)state;
    assert_true(sweep_ended(sweep, t, (struct sweep_end){true, -9, NULL}));
    assert_non_null(strstr(t->why, "signal 9"));
    put(0, "log.jsonl", START ROW("evaluate", 1, 10, 2, 0.5), "w");
    assert_true(sweep_ended(sweep, t, (struct sweep_end){true, COMMAND_OK, NULL}));
    assert_int_equal(t->state, SWEEP_DONE);
    assert_int_equal(t->crashes, 1);
    assert_string_equal(t->why, "");
    struct sweep_trial again = {.number = 0};
    assert_true(sweep_trial_load(sweep, &again));
    assert_string_equal(again.why, "");
    assert_int_equal(again.crashes, 1);
    sweep_progress_finish(&again.progress);
}

// Ten runs in a row that did nothing; one that did something begins the count anew, and so does one
// that was asked to stop.
static void idle_runs(void **state) {
    const struct sweep_end again = {true, COMMAND_RESUMABLE, NULL};
    struct sweep_trial *t = &sweep->trials[0];
    (void)state;
    for (int i = 0; i < 29; i++) {
        t->rows_before = t->progress.rows;
        t->asked = i == 9 ? SWEEP_ASK_HALT : SWEEP_ASK_NOTHING;
        if (i == 18) {
            put(0, "log.jsonl", bare, "a");
        }
        assert_true(sweep_ended(sweep, t, again));
        assert_int_equal(t->state, i < 28 ? SWEEP_WAITING : SWEEP_FAILED);
    }
    assert_int_equal(t->crashes, 0);
}

// No row has the metric: no trial of the sweep can succeed.
static void no_metric(void **state) {
    struct sweep_trial *t = &sweep->trials[0];
    (void)state;
    put(0, "log.jsonl", START ROW("train", 1, 10, 2, 0.5), "w");
    assert_true(sweep_ended(sweep, t, (struct sweep_end){true, COMMAND_OK, NULL}));
    assert_int_equal(t->state, SWEEP_FAILED);
    assert_true(sweep->fatal);
    sweep->fatal = false;
    assert_true(sweep_ended(sweep, t, (struct sweep_end){true, SPAWN_NO_PROGRAM, NULL}));
    assert_int_equal(t->state, SWEEP_WAITING);
    assert_true(sweep->broken);
    assert_false(sweep->fatal);
}

// ---- all of them ----

// Values of the trials, NaN: none; the number of the best, -1: none.
static int best_of(const double *values, const enum sweep_state *states, bool maximize) {
    sweep->plan.metric.maximize = maximize;
    for (uint32_t i = 0; i < TRIALS; i++) {
        sweep->trials[i].state = states[i];
        sweep->trials[i].progress.best = values[i];
        sweep->trials[i].progress.any = values[i] != 99;
    }
    const struct sweep_trial *best = sweep_best(sweep);
    return best ? (int)best->number : -1;
}

static void the_best(void **state) {
    static const enum sweep_state done[] = {SWEEP_DONE, SWEEP_DONE, SWEEP_HALVED, SWEEP_DONE,
                                            SWEEP_DONE};
    static const enum sweep_state mixed[] = {SWEEP_RUNNING, SWEEP_FAILED, SWEEP_DONE, SWEEP_NAN,
                                             SWEEP_HALVED};
    static const double values[] = {0.3, 0.2, 0.1, 0.4, 0.2}, nans[] = {99, NAN, NAN, 5, 5};
    (void)state;
    assert_int_equal(best_of(values, done, false), 2);
    assert_int_equal(best_of(values, done, true), 3);
    assert_int_equal(best_of(nans, done, false), 3);  // of equals the first
    assert_int_equal(best_of(nans, done, true), 3);
    assert_int_equal(best_of(values, mixed, false), 2);
    assert_int_equal(best_of(values, mixed, true), 4);
    assert_int_equal(best_of((double[]){99, NAN, NAN, NAN, 99}, done, false), -1);
    assert_int_equal(sweep_count(sweep, SWEEP_DONE), 4);
    assert_int_equal(sweep_count(sweep, SWEEP_HALVED), 1);
    // One without a number is worse than any, and not better than another such.
    assert_true(sweep_better(sweep, &sweep->trials[2], &sweep->trials[1]) == false);
}

// Trials at their end took 10 and 30 s with what went before, one runs and has 5 s left, two wait:
// 5 + 20 + 20 on two slots.
static void time_left(void **state) {
    static const enum sweep_state states[] = {SWEEP_DONE, SWEEP_FAILED, SWEEP_RUNNING,
                                              SWEEP_WAITING, SWEEP_WAITING};
    (void)state;
    for (uint32_t i = 0; i < TRIALS; i++) {
        sweep->trials[i].state = i < 2 ? SWEEP_WAITING : states[i];
    }
    struct sweep_progress *p = &sweep->trials[2].progress;
    *p = (struct sweep_progress){.first = 50, .step = 75, .steps = 100, .seconds = 5};
    assert_true(sweep_progress_left(p) == 5);
    assert_true(sweep_left(sweep) < 0);  // nobody knows what a trial takes
    for (uint32_t i = 0; i < 2; i++) {
        sweep->trials[i].state = states[i];
    }
    sweep->trials[0].progress = (struct sweep_progress){.spent = 4, .seconds = 6};
    sweep->trials[1].progress = (struct sweep_progress){.spent = 30};
    assert_true(sweep_left(sweep) == 22.5);
    sweep->slots = 8;  // more than there are trials to run
    assert_true(sweep_left(sweep) == 15);
    sweep->slots = 0;  // of a queue: all at once
    assert_true(sweep_left(sweep) == 15);
    for (uint32_t i = 2; i < TRIALS; i++) {
        sweep->trials[i].state = SWEEP_HALVED;
    }
    assert_true(sweep_left(sweep) == 0);
}

// At epoch 3 of eta 2. Values of the rungs are the best so far: trial 1 was better at epoch 2 than
// at 3, and leads; trial 2 is worse; trial 3 has not come to it, trial 4 is at its end.
static void rungs(void **state) {
    (void)state;
    sweep->plan.halving = (struct sweep_halving){.count = 2, .eta = 2, .rungs = {3, 6}};
    for (uint32_t i = 0; i < TRIALS; i++) {
        sweep->trials[i].state = SWEEP_RUNNING;
    }
    reads(0, START ROW("evaluate", 2, 20, 2, 0.6) ROW("evaluate", 3, 30, 3, 0.5));
    sweep_judge_rungs(sweep);
    assert_int_equal(stops, 0);  // the only one
    reads(1, START ROW("evaluate", 2, 20, 4, 0.4) ROW("evaluate", 3, 30, 5, 0.7));
    reads(2, START ROW("evaluate", 1, 10, 5, "nan") ROW("evaluate", 4, 40, 6, 0.55));
    reads(3, START ROW("evaluate", 2, 20, 7, 0.9));
    reads(4, START ROW("evaluate", 3, 30, 8, 0.9) "{\"event\": \"end\", \"ended\": \"epochs\"}\n");
    sweep_judge_rungs(sweep);
    assert_int_equal(stops, 1);
    assert_int_equal(stopped[0], 2);
    assert_int_equal(sweep->trials[2].asked, SWEEP_ASK_HALVE);
    assert_int_equal(sweep->trials[1].rungs, 1);
    assert_int_equal(sweep->trials[3].rungs, 0);
    assert_int_equal(sweep->trials[4].rungs, 1);
    sweep_judge_rungs(sweep);  // asked once
    assert_int_equal(stops, 1);
    // Late at the rung, and the worst; the next rung has places of its own.
    reads(3, ROW("evaluate", 3, 30, 9, 0.8));
    reads(0, ROW("evaluate", 6, 60, 9, 0.45));
    sweep_judge_rungs(sweep);
    assert_int_equal(stops, 2);
    assert_int_equal(stopped[1], 3);
    assert_int_equal(sweep->trials[0].rungs, 2);
    assert_int_equal(sweep->trials[0].asked, SWEEP_ASK_NOTHING);
}

// ---- rows ----

static const json_t *cell(const json_t *row, const char *key) {
    return json_object_get(row, key);
}

// A sweep of values that are texts, numbers and whole numbers, as programs get it.
static void rows_for_programs(void **state) {
    static char verb[] = "sweep";
    char *argv[] = {verb, NULL}, *text = NULL;
    size_t size = 0;
    struct sweep_table *table = calloc(1, sizeof *table);
    struct output output = {.file = open_memstream(&text, &size)};
    (void)state;
    assert_non_null(table);
    reads(0, START ROW("evaluate", 1, 10, 2, 0.5) ROW("evaluate", 2, 20, 4, 0.75));
    sweep->trials[0].state = SWEEP_RUNNING;
    sweep->trials[0].progress.spent = 3;
    sweep->trials[0].crashes = 1;
    snprintf(sweep->trials[0].device, sizeof sweep->trials[0].device, "vulkan:1");
    reads(1, START ROW("evaluate", 1, 10, 2, "nan"));
    sweep->trials[1].state = SWEEP_NAN;
    snprintf(sweep->trials[1].why, sizeof sweep->trials[1].why, "step 3");
    assert_true(sweep_table_open(
        table, sweep,
        &(struct table_desc){.output = &output, .format = TABLE_JSON, .argc = 1, .argv = argv}));
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(sweep_table_row(table, sweep, &sweep->trials[i]));
    }
    assert_true(sweep_table_close(table));
    fclose(output.file);
    json_t *all = json_loads(text, 0, NULL);
    const json_t *rows = json_object_get(all, "rows");
    const json_t *one = json_array_get(rows, 0), *two = json_array_get(rows, 1);
    const json_t *three = json_array_get(rows, 2);
    assert_non_null(three);
    assert_int_equal(json_integer_value(cell(one, "trial")), 0);
    assert_string_equal(json_string_value(cell(one, "state")), "running");
    assert_true(json_real_value(cell(one, "value")) == 0.5);
    assert_int_equal(json_integer_value(cell(one, "at")), 2);
    assert_int_equal(json_integer_value(cell(one, "of")), 10);
    assert_int_equal(json_integer_value(cell(one, "best_at")), 1);
    assert_string_equal(json_string_value(cell(one, "device")), "vulkan:1");
    assert_true(json_number_value(cell(one, "left")) == 16);
    assert_true(json_number_value(cell(one, "seconds")) == 7);
    assert_int_equal(json_integer_value(cell(one, "crashes")), 1);
    assert_int_equal(json_integer_value(cell(one, "lr")), 1);
    // What is not known is not told.
    assert_null(cell(one, "why"));
    assert_string_equal(json_string_value(cell(two, "why")), "step 3");
    assert_null(cell(two, "value"));
    assert_null(cell(two, "left"));
    assert_null(cell(two, "device"));
    assert_int_equal(json_integer_value(cell(two, "lr")), 2);
    assert_null(cell(three, "value"));
    assert_null(cell(three, "at"));
    assert_null(cell(three, "seconds"));
    json_decref(all);
    free(text);
    free(table);
}

// Running ones first, then those at their end, the best first, then those that wait.
static void rows_for_people(void **state) {
    (void)state;
    snprintf(sweep->dir, sizeof sweep->dir, "/sweeps/rates");
    sweep->trials[0].state = SWEEP_DONE;
    sweep->trials[0].progress = (struct sweep_progress){
        .any = true, .best = 0.5, .at = 4, .whole = 4, .rows = 4, .spent = 30, .seconds = 10};
    sweep->trials[2].state = SWEEP_DONE;
    sweep->trials[2].progress = sweep->trials[0].progress;
    sweep->trials[2].progress.best = 0.125;
    sweep->trials[3].state = SWEEP_FAILED;
    sweep->trials[4].state = SWEEP_RUNNING;
    sweep->trials[4].progress = (struct sweep_progress){
        .any = true, .best = 0.25, .at = 3, .rows = 3, .step = 25, .steps = 100, .seconds = 30};
    snprintf(sweep->trials[4].device, sizeof sweep->trials[4].device, "vulkan:1");
    char *text = sweep_live_text(sweep, 50, 100);
    assert_string_equal(text, "bgpurt sweep /sweeps/rates\n"
                              " 3 of 5 ended, 1 running, 0:58 left; Ctrl-C stops, resume goes on\n"
                              "\n"
                              " best val_loss 0.125 of trial 2\n"
                              "btrial  state     val_loss  epoch    device    left   parameters\n"
                              "     4  running   0.250000  3        vulkan:1  1:30   lr=5\n"
                              "     2  done      0.125000  4/4      -         -      lr=3\n"
                              "     0  done      0.500000  4/4      -         -      lr=1\n"
                              "     3  failed           -  -        -         -      lr=4\n"
                              "     1  waiting          -  -        -         -      lr=2\n");
    free(text);
    text = sweep_live_text(sweep, 2, 100);
    assert_non_null(strstr(text, "lr=5"));
    assert_non_null(strstr(text, "lr=3"));
    assert_null(strstr(text, "lr=1"));
    free(text);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(best_and_time),
        CASE(larger_is_better),
        CASE(gone_on_with),
        CASE(other_rows),
        CASE(ends),
        CASE(tried_again),
        CASE(idle_runs),
        CASE(no_metric),
        CASE(the_best),
        CASE(time_left),
        CASE(rungs),
        CASE(rows_for_programs),
        CASE(rows_for_people),
    };
    grt_log_set(silent, NULL, GRT_LOG_ERROR);
    talk_set_level(-1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
