// SPDX-License-Identifier: Apache-2.0
// Runs of a trainer that learns nothing: what it is asked for and when, what lies on the disk, and
// that a run which was stopped anywhere and resumed does all of it just once.
#include "harness/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "kits/toy_run.h"
#include "run/run_parts.h"

// ---- cases ----

// Evaluations every 5 steps and at the end, checkpoints every 3 and at the end, however many steps
// are begun ahead.
static void what_is_due(void **state) {
    (void)state;
    toy_enter();
    for (uint64_t ahead = 1; ahead < 12; ahead += 3) {
        struct toy t = {.ahead = ahead};
        toy_rise(&t);
        assert_int_equal(toy_go(&t, (struct grt_run_desc){.dir = toy_path("due"), .save_every = 3},
                                (struct grt_run_start){.steps = 17, .evaluate_every = 5}),
                         GRT_ENDED_ITERATIONS);
        for (uint64_t step = 0; step <= 17; step++) {
            bool evaluates = step > 0 && (step % 5 == 0 || step == 17);
            assert_int_equal(t.evaluated[step], evaluates);
            // Each evaluation is the best so far, and is kept as such; what both keep is asked for
            // once.
            bool saves = step > 0 && (step % 3 == 0 || step == 17);
            assert_int_equal(t.saved[step], saves || evaluates);
        }
        assert_int_equal(t.rows[GRT_RUN_START], 1);
        assert_int_equal(t.rows[GRT_RUN_TRAIN], 17);
        assert_int_equal(t.rows[GRT_RUN_EVALUATE], 4);
        assert_true(t.rows[GRT_RUN_END] == 1 && t.last == GRT_RUN_END);
    }
    // max_steps counts where it is the smaller one.
    struct toy t = {0};
    assert_int_equal(
        toy_go(&t, (struct grt_run_desc){.dir = toy_path("most")},
               (struct grt_run_start){.steps = 17, .max_steps = 4, .evaluate_every = 5}),
        GRT_ENDED_MAX_STEPS);
    assert_true(t.step == 4 && t.evaluated[4] == 1);
    toy_leave();
}

// Seconds that the newest checkpoint of a folder has.
static double kept_seconds(const char *dir) {
    struct grt_archive *archive = grt_checkpoint_newest(dir);
    double seconds = grt_archive_real(archive, "seconds", -1);
    assert_non_null(archive);
    grt_archive_destroy(&archive);
    return seconds;
}

// Rows tell the time since the process began to train, checkpoints that of all processes.
static void seconds_add_up(void **state) {
    (void)state;
    toy_enter();
    const struct grt_run_start start = {.steps = 6, .evaluate_every = 3};
    struct grt_run_desc desc = {.dir = toy_path("time"), .limits = {.max_time = 1000}};
    struct toy t = {.stop_at = 3};
    double begun = grt_seconds();
    assert_int_equal(toy_go(&t, desc, start), GRT_ENDED_SIGNAL);
    double first = grt_seconds() - begun, kept = kept_seconds(desc.dir);
    assert_true(0 < t.trained && t.trained < t.trained_at && t.trained_at <= t.seconds);
    assert_true(t.seconds <= first);
    assert_true(t.trained_at <= kept && kept <= first);
    struct toy rest = {0};
    desc.resume = true;
    begun = grt_seconds();
    assert_int_equal(toy_go(&rest, desc, start), GRT_ENDED_ITERATIONS);
    double second = grt_seconds() - begun, both = kept_seconds(desc.dir);
    assert_true(0 < rest.trained && rest.seconds <= second);
    assert_true(kept + rest.trained_at <= both && both <= kept + second);
    toy_leave();
}

static void take_eta(void *context, const struct grt_run_report *r) {
    *(double *)context = r->row->eta;
}

// 5 steps in 10 s, and 10 are left: the 100 of an earlier process tell nothing.
static void time_that_is_left(void **state) {
    (void)state;
    double eta = -1;
    struct grt_run run = {.desc = {.report = take_eta, .context = &eta},
                          .steps = 115,
                          .place = {.step = 105},
                          .begun = true,
                          .begun_at = grt_seconds() - 10,
                          .begun_step = 100};
    struct grt_run_row row = {.event = GRT_RUN_EVALUATE};
    grt_run_progress(&run, &row);
    assert_true(eta >= 20 && eta < 30);
    // Before a second step there is nothing to tell by.
    run.place.step = 100;
    row = (struct grt_run_row){.event = GRT_RUN_EVALUATE};
    grt_run_progress(&run, &row);
    assert_true(eta == 0);
}

static struct grt_run *of_toy;

static bool remember_run(void *self, struct grt_run *run, struct grt_run_turn *turn) {
    of_toy = run;
    return toy_advance(self, run, turn);
}

// Within a run, back to a checkpoint of 500 s: the time that passed is what the clock says.
static void go_back(struct toy *t) {
    struct grt_archive *archive = t->step == 4 ? grt_checkpoint_newest(toy_path("back")) : NULL;
    if (archive) {
        double before = run_seconds(of_toy);
        assert_true(grt_archive_set_real(archive, "seconds", 500));
        assert_true(before < 400 && run_restore(of_toy, archive));
        assert_true(run_seconds(of_toy) >= before && run_seconds(of_toy) < 400);
        grt_archive_destroy(&archive);
        t->after = NULL;
    }
}

static void going_back_changes_no_time(void **state) {
    (void)state;
    toy_enter();
    struct grt_trainer trainer = toy_trainer;
    trainer.advance = remember_run;
    struct toy t = {.stop_at = 3, .trainer = &trainer};
    struct grt_run_desc desc = {.dir = toy_path("back"), .limits = {.max_time = 1000}};
    const struct grt_run_start start = {.steps = 6, .evaluate_every = 3};
    assert_int_equal(toy_go(&t, desc, start), GRT_ENDED_SIGNAL);
    struct toy rest = {.trainer = &trainer, .after = go_back};
    desc.resume = true;
    assert_int_equal(toy_go(&rest, desc, start), GRT_ENDED_ITERATIONS);
    assert_null(rest.after);
    assert_true(kept_seconds(desc.dir) < 400);
    toy_leave();
}

// The time runs out between two turns, behind a step that is saved already.
static bool out_of_time(void *self, struct grt_run *run, struct grt_run_turn *turn) {
    if (turn->more && grt_run_place(run)->step == 6) {
        run->spent += 2000;
        turn->more = false;
    }
    return toy_advance(self, run, turn);
}

// What is left tells that the time is over, also where its step is the best one and both are one
// file: there is nothing to go on with.
static void time_ends_behind_a_checkpoint(void **state) {
    (void)state;
    toy_enter();
    struct grt_trainer trainer = toy_trainer;
    trainer.advance = out_of_time;
    for (int best = 0; best < 2; best++) {
        struct toy t = {.trainer = &trainer, .scores = {[3] = 1, [6] = best ? 2 : 0}};
        struct grt_run_desc desc = {.dir = toy_path(best ? "best" : "other"),
                                    .limits = {.max_time = 1000}};
        const struct grt_run_start start = {.steps = 30, .evaluate_every = 3};
        assert_int_equal(toy_go(&t, desc, start), GRT_ENDED_MAX_TIME);
        assert_int_equal(t.step, 6);
        assert_true(kept_seconds(desc.dir) >= 2000);
        struct toy rest = {0};
        desc.resume = true;
        assert_int_equal(toy_go(&rest, desc, start), GRT_ENDED_MAX_TIME);
        assert_int_equal(rest.step, 6);
    }
    toy_leave();
}

// Stopped at each step in turn and resumed: the same file, and every evaluation once.
static void stopped_anywhere(void **state) {
    (void)state;
    toy_enter();
    const struct grt_run_start start = {.steps = 17, .evaluate_every = 4};
    struct grt_run_desc desc = {.dir = toy_path("whole"), .limits = {.patience = 100}};
    struct toy whole = {.ahead = 3};
    toy_rise(&whole);
    assert_int_equal(toy_go(&whole, desc, start), GRT_ENDED_ITERATIONS);
    for (uint64_t stop = 1; stop < 17; stop++) {
        char name[16];
        char command[320];
        struct toy t = {.ahead = 3, .stop_at = stop};
        toy_rise(&t);
        snprintf(name, sizeof name, "part%u", (unsigned)stop);
        desc.dir = toy_path(name);
        assert_int_equal(toy_go(&t, desc, start), GRT_ENDED_SIGNAL);
        struct toy rest = {.ahead = 2};
        toy_rise(&rest);
        desc.resume = true;
        assert_int_equal(toy_go(&rest, desc, start), GRT_ENDED_ITERATIONS);
        desc.resume = false;
        for (uint64_t step = 0; step <= 17; step++) {
            assert_int_equal(t.evaluated[step] + rest.evaluated[step], whole.evaluated[step]);
        }
        snprintf(command, sizeof command,
                 "cmp '%s/whole/step-000000000017.h5' '%s/step-000000000017.h5'", toy_folder,
                 desc.dir);
        assert_int_equal(system(command), 0);
    }
    toy_leave();
}

// Targets and patience end a run at the evaluation that they say, and a resumed run has nothing to
// do then.
static void ends(void **state) {
    (void)state;
    toy_enter();
    const struct {
        struct grt_limits limits;
        double target;
        enum grt_ending ending;
        uint64_t step;
    } trials[] = {
        {{.patience = 2}, 0, GRT_ENDED_PATIENCE, 16},
        {{.patience = 3}, 0, GRT_ENDED_ITERATIONS, 18},  // the last evaluation is none that counts
        {{0}, 8, GRT_ENDED_UNTIL, 8},
        {{0}, 18, GRT_ENDED_UNTIL, 18},
    };
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        char name[16];
        struct toy t = {.ahead = 5};
        struct grt_run_start start = {.steps = 18, .evaluate_every = 4};
        snprintf(name, sizeof name, "end%u", (unsigned)i);
        for (int step = 0; step < TOY_MOST; step++) {
            t.scores[step] = trials[i].target > 0 ? step : step < 8 ? step : 8;
        }
        if (trials[i].target > 0) {
            start.targets[start.target_count++] =
                (struct grt_run_target){.field = GRT_FIELD_RETURN, .value = trials[i].target};
        }
        struct grt_run_desc desc = {.dir = toy_path(name), .limits = trials[i].limits};
        assert_int_equal(toy_go(&t, desc, start), trials[i].ending);
        assert_int_equal(t.step, trials[i].step);
        if (trials[i].target == 0) {
            struct toy rest = {0};
            desc.resume = true;
            assert_int_equal(toy_go(&rest, desc, start), trials[i].ending);
            assert_true(rest.rows[GRT_RUN_START] == 0 && rest.step == t.step);
        }
    }
    // The evaluation at the end of a run is not counted: one that goes on has its third without
    // improvement at step 20.
    struct toy more = {.ahead = 5};
    for (int step = 0; step < TOY_MOST; step++) {
        more.scores[step] = step < 8 ? step : 8;
    }
    assert_int_equal(toy_go(&more,
                            (struct grt_run_desc){
                                .dir = toy_path("end1"), .limits = {.patience = 3}, .resume = true},
                            (struct grt_run_start){.steps = 30, .evaluate_every = 4}),
                     GRT_ENDED_PATIENCE);
    assert_int_equal(more.step, 20);
    toy_leave();
}

// Any of several targets, on either side of its number and at it; one whose number an evaluation
// does not have is never reached.
static void targets(void **state) {
    (void)state;
    toy_enter();
    const struct {
        double sign;  // of scores, which are as large as the step
        struct grt_run_target targets[2];
        uint32_t count;
        uint64_t step;  // 0: never
    } trials[] = {
        {1, {{.field = GRT_FIELD_RETURN, .value = 7.5}}, 1, 8},
        {-1, {{.field = GRT_FIELD_RETURN, .value = -8, .below = true}}, 1, 8},
        {-1, {{.field = GRT_FIELD_RETURN, .value = -8.5, .below = true}}, 1, 12},
        {1, {{.field = GRT_FIELD_ACCURACY, .value = 0.5, .below = true}}, 1, 0},
        {1, {{.field = GRT_FIELD_ACCURACY, .value = -1}}, 1, 0},
        {1,
         {{.field = GRT_FIELD_ACCURACY, .value = -1}, {.field = GRT_FIELD_RETURN, .value = 12}},
         2,
         12},
        {1,
         {{.field = GRT_FIELD_RETURN, .value = 16}, {.field = GRT_FIELD_RETURN, .value = 4}},
         2,
         4},
    };
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        char name[16];
        struct toy t = {0};
        struct grt_run_start start = {
            .steps = 18, .evaluate_every = 4, .target_count = trials[i].count};
        memcpy(start.targets, trials[i].targets, sizeof trials[i].targets);
        snprintf(name, sizeof name, "target%u", (unsigned)i);
        for (int step = 0; step < TOY_MOST; step++) {
            t.scores[step] = trials[i].sign * step;
        }
        enum grt_ending ended = toy_go(&t, (struct grt_run_desc){.dir = toy_path(name)}, start);
        assert_int_equal(ended, trials[i].step ? GRT_ENDED_UNTIL : GRT_ENDED_ITERATIONS);
        assert_int_equal(t.step, trials[i].step ? trials[i].step : 18);
    }
    toy_leave();
}

// What another folder has as its best stays there: in a new one the first evaluation is the best,
// however much worse.
static void best_of_another_folder(void **state) {
    (void)state;
    toy_enter();
    struct toy t = {.scores = {[2] = 9, [4] = 8}};
    struct grt_run_start start = {.steps = 4, .evaluate_every = 2};
    assert_int_equal(toy_go(&t, (struct grt_run_desc){.dir = toy_path("old")}, start),
                     GRT_ENDED_ITERATIONS);
    struct grt_archive *newest = grt_checkpoint_newest(toy_path("old"));
    assert_non_null(newest);
    start.from = newest;
    start.steps = 10;
    struct toy rest = {.scores = {[6] = 3, [8] = 5, [10] = 4}};
    assert_int_equal(toy_go(&rest, (struct grt_run_desc){.dir = toy_path("new")}, start),
                     GRT_ENDED_ITERATIONS);
    assert_int_equal(rest.best_step, 8);
    assert_int_equal(toy_step_in(toy_path("new/best.h5")), 8);
    assert_int_equal(toy_step_in(toy_path("old/best.h5")), 2);
    grt_archive_destroy(&newest);
    toy_leave();
}

// One file, and the best beside it; what an earlier run has left is moved aside.
static void one_file(void **state) {
    (void)state;
    toy_enter();
    const struct grt_run_start start = {.steps = 9, .evaluate_every = 2};
    const struct grt_run_desc desc = {.file = toy_path("policy.h5"), .save_every = 4};
    struct toy t = {.scores = {[2] = 1, [4] = 7, [6] = 7, [8] = 3, [9] = 2}};
    assert_int_equal(toy_go(&t, desc, start), GRT_ENDED_ITERATIONS);
    assert_int_equal(toy_step_in(toy_path("policy.h5")), 9);
    assert_int_equal(toy_step_in(toy_path("policy-best.h5")), 4);
    struct toy next = {.scores = {[6] = 5}, .stop_at = 6};
    assert_int_equal(toy_go(&next, desc, start), GRT_ENDED_SIGNAL);
    assert_int_equal(toy_step_in(toy_path("policy-earlier-1.h5")), 9);
    assert_int_equal(toy_step_in(toy_path("policy-best-earlier-1.h5")), 4);
    // It goes on in the same file, and moves nothing.
    struct toy rest = {.scores = {[8] = 9}};
    struct grt_run_desc again = desc;
    again.resume = true;
    assert_int_equal(toy_go(&rest, again, start), GRT_ENDED_ITERATIONS);
    assert_int_equal(toy_step_in(desc.file), 9);
    assert_int_equal(toy_step_in(toy_path("policy-best.h5")), 8);
    assert_int_equal(access(toy_path("policy-earlier-2.h5"), F_OK), -1);
    toy_leave();
}

// Scores below zero that grow worse, and one that is no number: the best stays what it was, through
// a stop at every step, in one file and in a folder.
static void the_best_is_behind(void **state) {
    (void)state;
    toy_enter();
    const struct grt_run_start start = {.steps = 9, .evaluate_every = 2};
    const struct toy scored = {.scores = {[2] = -5, [4] = -1, [6] = NAN, [8] = -4, [9] = -2}};
    for (uint64_t stop = 0; stop < 9; stop++) {
        for (int one = 0; one < 2; one++) {
            char name[16], best[32];
            snprintf(name, sizeof name, "b%u-%d%s", (unsigned)stop, one, one ? ".h5" : "");
            snprintf(best, sizeof best, one ? "b%u-%d-best.h5" : "b%u-%d/best.h5", (unsigned)stop,
                     one);
            struct grt_run_desc desc = {.dir = one ? NULL : toy_path(name),
                                        .file = one ? toy_path(name) : NULL};
            struct toy t = scored;
            t.stop_at = stop;
            assert_int_equal(toy_go(&t, desc, start),
                             stop ? GRT_ENDED_SIGNAL : GRT_ENDED_ITERATIONS);
            if (stop) {
                struct toy rest = scored;
                desc.resume = true;
                assert_int_equal(toy_go(&rest, desc, start), GRT_ENDED_ITERATIONS);
                t.best_step = rest.best_step;
            }
            assert_int_equal(toy_step_in(toy_path(best)), 4);
            assert_int_equal(t.best_step, 4);
        }
    }
    toy_leave();
}

// A tensor that is not finite ends the run, and replaces nothing.
static void nonfinite(void **state) {
    (void)state;
    toy_enter();
    const struct grt_run_start start = {.steps = 9, .evaluate_every = 3};
    const struct grt_run_desc desc = {.file = toy_path("a.h5"), .save_every = 3};
    struct toy t = {.weight = 0};
    toy_rise(&t);
    assert_int_equal(toy_go(&t, desc, start), GRT_ENDED_ITERATIONS);
    struct toy wild = {.weight = INFINITY};
    toy_rise(&wild);
    assert_int_equal(toy_go(&wild, desc, start), GRT_ENDED_NONFINITE);
    assert_true(wild.step == 3 && wild.rows[GRT_RUN_NONFINITE] > 0);
    assert_non_null(strstr(wild.text, "model/weight is not finite"));
    assert_non_null(strstr(wild.text, "None is known"));
    assert_int_equal(toy_step_in(desc.file), 9);
    assert_int_equal(access(toy_path("a-earlier-1.h5"), F_OK), -1);
    // Wherever it is among many.
    static const uint32_t places[] = {0, 255, 300, 511, 512, TOY_MANY - 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct toy one = {.many = i % 2 ? NAN : -INFINITY, .many_at = places[i]};
        toy_rise(&one);
        assert_int_equal(toy_go(&one, desc, start), GRT_ENDED_NONFINITE);
        assert_non_null(strstr(one.text, "model/many is not finite"));
    }
    toy_leave();
}

// Two runs in one place, and places that cannot be written.
static void places(void **state) {
    (void)state;
    toy_enter();
    struct grt_run *first = grt_run_create(&(struct grt_run_desc){.file = toy_path("a.h5")});
    assert_non_null(first);
    TEST_REFUSED(grt_run_create(&(struct grt_run_desc){.file = toy_path("a.h5")}), GRT_NO_OUTPUT,
                 "in use by process");
    grt_run_destroy(&first);
    TEST_REFUSED(grt_run_create(&(struct grt_run_desc){.file = toy_path("no/a.h5")}), GRT_NO_OUTPUT,
                 "no/a.h5");
    TEST_REFUSED(
        grt_run_create(&(struct grt_run_desc){.dir = toy_folder, .log = toy_path("no/log")}),
        GRT_NO_OUTPUT, "no/log");
    TEST_REFUSED(grt_run_create(&(struct grt_run_desc){0}), GRT_INVALID, "a folder or a file");
    toy_leave();
}

// How often a text stands in the files of a folder.
static int times_in(const char *dir, const char *text) {
    char command[256], answer[32] = "";
    snprintf(command, sizeof command, "cat '%s'/* | grep -a -o '%s' | wc -l", dir, text);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_non_null(fgets(answer, sizeof answer, pipe));
    assert_int_equal(pclose(pipe), 0);
    return atoi(answer);
}

// Histograms are told once for a step that is saved, be it the best too or not; without being asked
// for, none is.
static void histograms_of_steps(void **state) {
    (void)state;
    toy_enter();
    for (int asked = 0; asked < 2; asked++) {
        for (int rises = 0; rises < 2; rises++) {
            struct grt_config c;
            struct toy t = {.ahead = 1};
            char board[32], dir[32];
            grt_config_init(&c);
            assert_true(grt_config_override(&c, asked ? "histograms=true" : "histograms=false"));
            snprintf(board, sizeof board, "board%d%d", asked, rises);
            snprintf(dir, sizeof dir, "kept%d%d", asked, rises);
            if (rises) {
                toy_rise(&t);
            }
            const struct grt_run_desc desc = {
                .dir = toy_path(dir), .tensorboard = toy_path(board), .save_every = 3};
            toy_go(&t, desc, (struct grt_run_start){.steps = 6, .evaluate_every = 3, .config = &c});
            assert_int_equal(times_in(toy_path(board), "model/many"), asked ? 2 : 0);
            assert_int_equal(times_in(toy_path(board), "model/weight"), asked ? 2 : 0);
        }
    }
    toy_leave();
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(what_is_due),
    TEST_CASE(seconds_add_up),
    TEST_CASE(stopped_anywhere),
    TEST_CASE(ends),
    TEST_CASE(targets),
    TEST_CASE(best_of_another_folder),
    TEST_CASE(one_file),
    TEST_CASE(the_best_is_behind),
    TEST_CASE(nonfinite),
    TEST_CASE(places),
    TEST_CASE(going_back_changes_no_time),
    TEST_CASE(time_that_is_left),
    TEST_CASE(time_ends_behind_a_checkpoint),
    TEST_CASE(histograms_of_steps),
};
TEST_SUITE(run, false, cases);
