// SPDX-License-Identifier: Apache-2.0
// The loop of a sweep over an executor that runs nothing: what is started when, what ends it, what
// is said then and its exit code; and what the files of trials and folders hold.
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/apps/caught.h"
#include "cli/command.h"
#include "cli/spawn.h"
#include "cli/talk.h"
#include "sweep/sweep.h"

#define TRIALS 5
#define STAYS 1000  // a run that goes on until it is asked to stop

static char root[64];
static struct sweep *sweep;

// How the runs of each trial end, one after the other; what happened, in the order in which it did.
static int codes[TRIALS][4];
static uint32_t runs[TRIALS], closed, looks, stop_at_look;
static bool adopts[TRIALS];
static int refuses = -1;  // this trial is not started
static char events[512];

static void silent(void *context, enum grt_log_level level, const char *text) {
    (void)context, (void)level, (void)text;
}

static void note(char what, const struct sweep_trial *t) {
    size_t used = strlen(events);
    snprintf(events + used, sizeof events - used, "%s%c%u", used ? " " : "", what, t->number);
}

static void put(const char *name, const char *text) {
    char path[SWEEP_PATH];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static bool there(const char *name) {
    char path[SWEEP_PATH];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return access(path, F_OK) == 0;
}

static uint32_t room(const struct sweep *s) {
    return s->slots - sweep_count(s, SWEEP_RUNNING);
}

static bool start(struct sweep *s, struct sweep_trial *t) {
    (void)s;
    if (refuses == (int)t->number) {
        return grt_fail(GRT_IO, "no more of them");
    }
    note('s', t);
    snprintf(t->device, sizeof t->device, "slot");
    return true;
}

static void ends(struct sweep *s, struct sweep_trial *t, int code) {
    char name[32], text[256];
    snprintf(name, sizeof name, "%04u/log.jsonl", t->number);
    snprintf(text, sizeof text,
             "{\"event\": \"evaluate\", \"epoch\": 1, \"step\": 1, \"loss\": %u}\n", t->number + 1);
    if (code == COMMAND_OK) {
        put(name, text);
    }
    note('e', t);
    sweep_ended(s, t, (struct sweep_end){true, code, NULL});
}

static void look(struct sweep *s) {
    looks++;
    if (looks == stop_at_look) {
        put("stop", "\n");
    }
    for (uint32_t i = 0; i < TRIALS; i++) {
        struct sweep_trial *t = &s->trials[i];
        int code = codes[i][runs[i]];
        if (t->state == SWEEP_RUNNING && (code != STAYS || t->asked)) {
            runs[i] += code != STAYS;
            ends(s, t, code == STAYS ? COMMAND_RESUMABLE : code);
        }
    }
    raise(SIGCHLD);  // held back: it ends the rest of the loop
}

static void stop(struct sweep *s, struct sweep_trial *t) {
    (void)s;
    note('x', t);
}

static bool adopt(struct sweep *s, struct sweep_trial *t) {
    (void)s;
    note('a', t);
    return adopts[t->number];
}

static void close_it(struct sweep *s) {
    (void)s;
    closed++;
}

static const struct sweep_executor made_up = {.name = "made up",
                                              .room = room,
                                              .start = start,
                                              .look = look,
                                              .stop = stop,
                                              .adopt = adopt,
                                              .close = close_it};

static int begin(void **state) {
    (void)state;
    snprintf(root, sizeof root, "/tmp/gpurt_test_drive.XXXXXX");
    assert_non_null(mkdtemp(root));
    setenv("GPURT_SWEEP_COMMAND", "/nowhere/trainer", 1);
    sweep = calloc(1, sizeof *sweep);
    assert_non_null(sweep);
    assert_true(
        sweep_plan_read(&sweep->plan, "s.yaml", "lr: [1, 2, 3, 4, 5]\nmetric: {name: val_loss}\n"));
    sweep->executor = &made_up;
    sweep->slots = 2;
    snprintf(sweep->dir, sizeof sweep->dir, "%s", root);
    sweep->trials = calloc(TRIALS, sizeof *sweep->trials);
    assert_non_null(sweep->trials);
    for (uint32_t i = 0; i < TRIALS; i++) {
        sweep->trials[i].number = i;
    }
    memset(codes, 0, sizeof codes);
    memset(runs, 0, sizeof runs);
    memset(adopts, 0, sizeof adopts);
    closed = looks = stop_at_look = 0;
    refuses = -1;
    events[0] = '\0';
    return 0;
}

static int end(void **state) {
    char command[128];
    (void)state;
    sweep_close(sweep);
    free(sweep);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

// Runs it; what was said is in `caught`.
static int drives(void) {
    events[0] = '\0';
    closed = 0;
    catch_begin();
    int code = sweep_drive(sweep, NULL);
    catch_end();
    assert_int_equal(closed, 1);
    return code;
}

// ---- the loop ----

static char told[512];
static void tell(struct sweep *s, struct sweep_trial *t) {
    size_t used = strlen(told);
    (void)s;
    snprintf(told + used, sizeof told - used, "%s%u:%s", used ? " " : "", t->number,
             sweep_state_word(t->state));
}

static void all_of_them(void **state) {
    (void)state;
    told[0] = '\0';
    sweep->tell = tell;
    put("stop", "\n");  // of an earlier process: it asks nothing of this one
    assert_int_equal(drives(), COMMAND_OK);
    assert_string_equal(events, "s0 s1 e0 e1 s2 s3 e2 e3 s4 e4");
    assert_string_equal(told, "0:running 1:running 0:done 1:done 2:running 3:running 2:done 3:done "
                              "4:running 4:done");
    assert_string_equal(caught, "");
    assert_false(there("stop"));
    assert_string_equal(sweep->self, "/nowhere/trainer");
    for (uint32_t i = 0; i < TRIALS; i++) {
        char name[32];
        snprintf(name, sizeof name, "%04u/result.json", i);
        assert_true(there(name));
        assert_true(sweep->trials[i].progress.best == i + 1);
    }
    assert_int_equal(sweep_best(sweep)->number, 0);
    // Nothing is left: nothing is begun, looked for or said.
    assert_int_equal(drives(), COMMAND_OK);
    assert_string_equal(events, "");
}

// One that crashed is tried again before those that have not begun; the exit code is 1 when a trial
// failed, and each such trial is named.
static void tried_again(void **state) {
    char want[1024];
    (void)state;
    codes[0][0] = codes[0][1] = COMMAND_INTERNAL;
    codes[1][0] = COMMAND_CONFIG;
    codes[3][0] = COMMAND_NO_MEMORY;
    codes[4][0] = codes[4][1] = codes[4][2] = -11;
    mkdir(strcat(strcpy(want, root), "/0001"), 0777);
    put("0001/output.txt", "gpurt: error: refused\n");
    talk_set_level(0);
    assert_int_equal(drives(), COMMAND_BELOW);
    assert_string_equal(events, "s0 s1 e0 e1 s0 s2 e0 e2 s0 s3 e0 e3 s4 e4 s4 e4 s4 e4");
    snprintf(want, sizeof want,
             "trial 0 is tried again, 1 of 2: exit code 70\n"
             "trial 0 is tried again, 2 of 2: exit code 70\n"
             "trial 4 is tried again, 1 of 2: ended by signal 11, Segmentation fault\n"
             "trial 4 is tried again, 2 of 2: ended by signal 11, Segmentation fault\n"
             "gpurt: trial 1 failed: error: refused; more in %s/0001/output.txt\n"
             "gpurt: trial 4 failed: ended by signal 11, Segmentation fault\n",
             root);
    assert_string_equal(caught, want);
    talk_set_level(-1);
    assert_int_equal(sweep->trials[0].state, SWEEP_DONE);
    assert_int_equal(sweep->trials[0].crashes, 2);
    assert_int_equal(sweep->trials[3].state, SWEEP_MEMORY);
    assert_int_equal(sweep->trials[4].crashes, 3);
    // One that failed suffices.
    sweep->trials[4].state = SWEEP_DONE;
    assert_int_equal(drives(), COMMAND_BELOW);
    assert_non_null(strstr(caught, "gpurt: trial 1 failed"));
    assert_null(strstr(caught, "trial 4"));
    sweep->trials[1].state = SWEEP_NAN;
    assert_int_equal(drives(), COMMAND_OK);
}

// Asked to stop, by its file, while two run: both are asked once, nothing else is begun.
static void stopped_by_file(void **state) {
    char want[256];
    (void)state;
    codes[1][0] = codes[2][0] = STAYS;
    stop_at_look = 2;
    assert_int_equal(drives(), COMMAND_RESUMABLE);
    assert_string_equal(events, "s0 s1 e0 s2 x1 x2 e1 e2");
    snprintf(want, sizeof want,
             "gpurt: interrupted with 4 of 5 trials left: `gpurt sweep resume %s` goes on\n", root);
    assert_string_equal(caught, want);
    assert_false(there("stop"));
    // What is left is done by the next process of it.
    codes[1][0] = codes[2][0] = COMMAND_OK;
    stop_at_look = 0;
    assert_int_equal(drives(), COMMAND_OK);
    assert_string_equal(events, "s1 s2 e1 e2 s3 s4 e3 e4");
}

// Asked to stop when the last ones are at their end: there is nothing to go on with.
static void stopped_at_its_end(void **state) {
    (void)state;
    sweep->slots = TRIALS;
    stop_at_look = 1;
    assert_int_equal(drives(), COMMAND_OK);
    assert_string_equal(caught, "");
}

static uint32_t waits;
static bool wait_twice(struct sweep *s, double seconds) {
    (void)s;
    assert_true(seconds == 0);
    return ++waits < 2;
}

// Who looks at it says that it is enough.
static void stopped_by_who_waits(void **state) {
    (void)state;
    waits = 0;
    sweep->slots = 1;
    catch_begin();
    int code = sweep_drive(sweep, wait_twice);
    catch_end();
    assert_int_equal(code, COMMAND_RESUMABLE);
    assert_string_equal(events, "s0 e0 s1 e1");
    assert_non_null(strstr(caught, "interrupted with 3 of 5 trials left"));
}

// No trial can succeed, or there is no program: those that run are asked to stop, no other begins,
// and the exit code says which.
static void all_in_vain(void **state) {
    (void)state;
    codes[1][0] = STAYS;
    sweep->trials[0].progress.ended[0] = '\0';
    snprintf(sweep->plan.metric.field, sizeof sweep->plan.metric.field, "accuracy");
    snprintf(sweep->plan.metric.name, sizeof sweep->plan.metric.name, "val_acc");
    assert_int_equal(drives(), COMMAND_CONFIG);
    assert_string_equal(events, "s0 s1 e0 x1 e1");
    assert_string_equal(
        caught, "gpurt: s.yaml:2:16: metric 'val_acc' never appeared in the log of trial 0; "
                "its rows `evaluate` have loss: name one of them\n");
    assert_true(sweep->fatal);
}

static void no_program(void **state) {
    (void)state;
    codes[0][0] = SPAWN_NO_PROGRAM;
    codes[1][0] = STAYS;
    assert_int_equal(drives(), COMMAND_NO_INPUT);
    assert_string_equal(events, "s0 s1 e0 x1 e1");
    assert_non_null(strstr(grt_last_error(), "/nowhere/trainer cannot be started"));
    assert_int_equal(sweep->trials[0].crashes, 0);
}

static void not_started(void **state) {
    (void)state;
    refuses = 2;
    codes[0][0] = codes[1][0] = STAYS;
    sweep->slots = 3;
    assert_int_equal(drives(), COMMAND_IO);
    assert_string_equal(events, "s0 s1 x0 x1 e0 e1");
    assert_int_equal(sweep->trials[2].state, SWEEP_WAITING);
}

// Trials of an earlier process: one goes on, one ended while nobody looked, one waits in a queue
// that knows it; what has an end and what never began is left alone.
static void adopted(void **state) {
    static const char begun[] =
        "{\"event\": \"start\", \"step\": 0, \"steps\": 4}\n"
        "{\"event\": \"evaluate\", \"epoch\": 1, \"step\": 1, \"loss\": 7}\n";
    (void)state;
    for (uint32_t i = 0; i < TRIALS; i++) {
        char path[SWEEP_PATH], log[32];
        snprintf(path, sizeof path, "%s/%04u", root, i);
        mkdir(path, 0777);
        snprintf(log, sizeof log, "%04u/log.jsonl", i);
        if (i < 3) {
            put(log, begun);
        }
    }
    put("0000/result.json", "{\"state\": \"done\", \"crashes\": 1}");
    put("0002/exit.json", "{\"code\": 0}");
    put("0003/state.json", "{\"crashes\": 2, \"job\": 17, \"device\": \"job 17\", \"why\": \"x\"}");
    for (uint32_t i = 0; i < TRIALS; i++) {
        assert_true(sweep_trial_load(sweep, &sweep->trials[i]));
    }
    assert_int_equal(sweep->trials[0].state, SWEEP_DONE);
    assert_int_equal(sweep->trials[3].job, 17);
    assert_int_equal(sweep->trials[3].crashes, 2);
    assert_string_equal(sweep->trials[3].device, "job 17");
    assert_string_equal(sweep->trials[3].why, "x");
    adopts[1] = adopts[3] = true;
    sweep->slots = 3;
    assert_int_equal(drives(), COMMAND_OK);
    assert_string_equal(events, "a1 a2 a3 s4 e1 e3 e4");
    assert_int_equal(sweep->trials[2].state, SWEEP_DONE);
    assert_true(sweep->trials[2].progress.best == 7);
}

// While all slots are busy the next trials' folders are made, as many as there are slots.
static void prepared_ahead(void **state) {
    (void)state;
    codes[0][0] = codes[1][0] = STAYS;
    stop_at_look = 5;
    assert_int_equal(drives(), COMMAND_RESUMABLE);
    assert_true(there("0003/config.yaml"));
    assert_false(there("0004"));
    assert_true(sweep->trials[2].prepared && sweep->trials[3].prepared);
    assert_int_equal(sweep->trials[3].state, SWEEP_WAITING);
}

// ---- files of a trial ----

static json_t *load(const char *name) {
    char path[SWEEP_PATH];
    snprintf(path, sizeof path, "%s/%s", root, name);
    json_t *json = json_load_file(path, 0, NULL);
    assert_non_null(json);
    return json;
}

static const char *word(const json_t *json, const char *key) {
    return json_string_value(json_object_get(json, key));
}
static json_int_t whole(const json_t *json, const char *key) {
    return json_integer_value(json_object_get(json, key));
}

static void files_of_a_trial(void **state) {
    struct sweep_trial *t = &sweep->trials[3];
    char text[64];
    (void)state;
    assert_true(sweep_trial_prepare(sweep, t));
    *t = (struct sweep_trial){.number = 3, .crashes = 2, .job = 4711, .state = SWEEP_RUNNING};
    snprintf(t->device, sizeof t->device, "vulkan:1");
    snprintf(t->why, sizeof t->why, "its node \"n3\"");
    assert_true(sweep_trial_save(sweep, t));
    json_t *json = load("0003/state.json");
    assert_string_equal(word(json, "schema"), "gpurt.trial.state/1");
    assert_int_equal(whole(json, "crashes"), 2);
    assert_int_equal(whole(json, "job"), 4711);
    assert_string_equal(word(json, "device"), "vulkan:1");
    assert_string_equal(word(json, "why"), "its node \"n3\"");
    json_decref(json);
    assert_false(there("0003/result.json"));
    t->state = SWEEP_HALVED;
    t->progress = (struct sweep_progress){.any = true,
                                          .best = 0.1,
                                          .best_at = 5,
                                          .at = 6,
                                          .whole = 9,
                                          .spent = 30,
                                          .seconds = 12.5,
                                          .ended = "signal"};
    assert_true(sweep_trial_save(sweep, t));
    json = load("0003/result.json");
    assert_string_equal(word(json, "schema"), "gpurt.trial/1");
    assert_int_equal(whole(json, "trial"), 3);
    assert_string_equal(word(json, "state"), "halved");
    assert_string_equal(word(json_object_get(json, "parameters"), "lr"), "4");
    assert_string_equal(word(json, "metric"), "val_loss");
    assert_true(json_real_value(json_object_get(json, "value")) == 0.1);
    assert_int_equal(whole(json, "best_at"), 5);
    assert_int_equal(whole(json, "at"), 6);
    assert_int_equal(whole(json, "of"), 9);
    assert_true(json_real_value(json_object_get(json, "seconds")) == 42.5);
    assert_int_equal(whole(json, "crashes"), 2);
    assert_string_equal(word(json, "ended"), "signal");
    assert_string_equal(word(json, "device"), "vulkan:1");
    json_decref(json);
    // No number, or none that JSON has.
    for (int i = 0; i < 2; i++) {
        t->progress.best = i ? INFINITY : 3;
        t->progress.any = i;
        assert_true(sweep_trial_save(sweep, t));
        json = load("0003/result.json");
        assert_true(json_is_null(json_object_get(json, "value")));
        json_decref(json);
    }
    // The config of the trial, which is not written again.
    FILE *file = fopen(strcat(strcpy(text, root), "/0003/config.yaml"), "r");
    assert_non_null(file);
    size_t got = fread(caught, 1, sizeof caught - 1, file);
    caught[got] = '\0';
    fclose(file);
    snprintf(text, sizeof text, "# trial 3 of %.40s\n", strrchr(root, '/') + 1);
    assert_non_null(strstr(caught, text));
    assert_non_null(strstr(caught, "learning_rate: 4\n"));
    put("0003/config.yaml", "mine\n");
    assert_true(sweep_trial_prepare(sweep, t));
    file = fopen(strcat(strcpy(text, root), "/0003/config.yaml"), "r");
    assert_non_null(fgets(caught, sizeof caught, file));
    fclose(file);
    assert_string_equal(caught, "mine\n");
    // Texts that are shorter than what they are to hold.
    sweep_trial_text(sweep, t, text, sizeof text);
    assert_string_equal(text, "lr=4");
    sweep_trial_text(sweep, t, text, 3);
    assert_string_equal(text, "lr");
}

// Files that say nothing of use: as if they were not there.
static void odd_files(void **state) {
    static const struct {
        const char *result, *state;
        enum sweep_state is;
        uint32_t crashes;
    } rows[] = {
        {"{\"state\": \"nan\", \"crashes\": 3}", "{\"crashes\": 1}", SWEEP_NAN, 3},
        {"{\"state\": \"memory\"}", "{\"crashes\": 1}", SWEEP_MEMORY, 0},
        {"{\"state\": \"failed\"}", NULL, SWEEP_FAILED, 0},
        {"{\"state\": \"halved\"}", NULL, SWEEP_HALVED, 0},
        {"{\"state\": \"running\"}", NULL, SWEEP_WAITING, 0},
        {"{\"state\": \"over\"}", NULL, SWEEP_WAITING, 0},
        {"{\"state\"", "{\"crashes\": 2}", SWEEP_WAITING, 2},
        {NULL, "{\"crashes\": 2}", SWEEP_WAITING, 2},
        {NULL, "[", SWEEP_WAITING, 0},
    };
    static const struct {
        const char *exit;
        bool known;
        int code;
    } exits[] = {{"{\"code\": 3}", true, 3},      {"{\"code\": -9}", true, -9},
                 {"{\"code\": \"3\"}", false, 0}, {"{}", false, 0},
                 {"{\"code\": 3", false, 0},      {NULL, false, 0}};
    struct sweep_trial *t = &sweep->trials[0];
    char path[SWEEP_PATH];
    (void)state;
    assert_true(sweep_trial_prepare(sweep, t));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sweep_trial_path(sweep, t, "result.json", path);
        unlink(path);
        sweep_trial_path(sweep, t, "state.json", path);
        unlink(path);
        if (rows[i].result) {
            put("0000/result.json", rows[i].result);
        }
        if (rows[i].state) {
            put("0000/state.json", rows[i].state);
        }
        assert_true(sweep_trial_load(sweep, t));
        assert_int_equal(t->state, rows[i].is);
        assert_int_equal(t->crashes, rows[i].crashes);
    }
    for (size_t i = 0; i < sizeof exits / sizeof *exits; i++) {
        sweep_queue_clear(sweep, t);
        if (exits[i].exit) {
            put("0000/exit.json", exits[i].exit);
        }
        struct sweep_end is = sweep_exit_read(sweep, t);
        assert_int_equal(is.known, exits[i].known);
        assert_true(!is.known || is.code == exits[i].code);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(all_of_them),        CASE(tried_again),          CASE(stopped_by_file),
        CASE(stopped_at_its_end), CASE(stopped_by_who_waits), CASE(all_in_vain),
        CASE(no_program),         CASE(not_started),          CASE(adopted),
        CASE(prepared_ahead),     CASE(files_of_a_trial),     CASE(odd_files),
    };
    grt_log_set(silent, NULL, GRT_LOG_ERROR);
    talk_set_level(-1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
