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
#include "gpurt/checkpoint.h"
#include "gpurt/run.h"

static char folder[64];

static void enter(void) {
    snprintf(folder, sizeof folder, "/tmp/gpurt-run-XXXXXX");
    assert_non_null(mkdtemp(folder));
}

static void leave(void) {
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

static const char *in_folder(const char *name) {
    static char paths[16][128];  // the newest are all that anybody holds
    static uint32_t next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

#define MOST 64

// Two steps at a time at most; up to `ahead` of them are begun before the first is settled.
struct toy {
    uint64_t begun, ahead;
    double scores[MOST];  // by step
    float weight;         // what is saved
    uint64_t stop_at;     // the run is stopped from this step on; 0: never
    uint64_t step;
    uint32_t evaluated[MOST], saved[MOST], rows[GRT_RUN_EVENT_COUNT], announced;
    enum grt_run_event last;
    char text[512];
    double eta;
    double seconds;              // of the newest row; they never go back
    double trained, trained_at;  // of the first row of a step, and of the newest
};

static bool advance(void *self, struct grt_run *run, struct grt_run_turn *turn) {
    struct toy *t = self;
    uint64_t *step = &grt_run_place(run)->step;
    // Nothing goes beyond an evaluation that may be the end.
    while (turn->more && t->begun < *step + t->ahead && grt_run_ahead(run, t->begun) > 0 &&
           !(t->begun > *step && grt_run_decides(run) &&
             (grt_run_due(run, t->begun) & GRT_DUE_EVALUATE))) {
        t->begun++;
    }
    turn->idle = t->begun == *step;
    for (int i = 0; i < 2 && t->begun > *step && !(i && grt_run_due(run, *step)); i++) {
        struct grt_run_row row = {.event = GRT_RUN_TRAIN};
        ++*step;
        grt_run_row_set(&row, GRT_FIELD_LOSS, 1.0 / (double)*step);
        grt_run_tell(run, &row);
        t->weight = t->weight * 1.5f + (float)*step;
    }
    t->step = *step;
    return true;
}

static bool evaluate(void *self, struct grt_run *run, bool more, struct grt_run_row *row,
                     bool *stopped) {
    struct toy *t = self;
    uint64_t step = grt_run_place(run)->step;
    // What was begun behind an evaluation has it done.
    *stopped = !more && t->begun == step;
    if (!*stopped) {
        t->evaluated[step]++;
        row->score = t->scores[step];
        grt_run_row_set(row, GRT_FIELD_RETURN, row->score);
    }
    return true;
}

static bool save(void *self, const struct grt_run *run, struct grt_archive *archive) {
    struct toy *t = self;
    uint64_t step = grt_run_info(run).step;
    const uint64_t shape[1] = {1};
    t->saved[step]++;
    return grt_archive_add(archive, "model/weight", GRT_F32, 1, shape, &t->weight) &&
           grt_archive_set_whole(archive, "step", (int64_t)step);
}

static bool load(void *self, const struct grt_run *run, const struct grt_archive *archive,
                 struct grt_run_place *place) {
    struct toy *t = self;
    (void)run;
    place->step = t->begun = t->step = (uint64_t)grt_archive_whole(archive, "step", 0);
    memcpy(&t->weight,
           grt_archive_find((struct grt_archive *)(uintptr_t)archive, "model/weight")->data,
           sizeof t->weight);
    return true;
}

static const struct grt_trainer toy_trainer = {.kind = "toy",
                                               .all = GRT_ENDED_ITERATIONS,
                                               .keeps_best = true,
                                               .remedy = "None is known",
                                               .advance = advance,
                                               .evaluate = evaluate,
                                               .save = save,
                                               .load = load};

static void on_report(void *context, const struct grt_run_report *r) {
    struct toy *t = context;
    t->announced += r->news == GRT_RUN_NEWS_BEGUN;
    if (r->news == GRT_RUN_NEWS_ROW) {
        // Whoever reads of a step may stop the run, and then the step is not lost.
        assert_true(t->announced == 1 || r->row->event != GRT_RUN_TRAIN);
        t->rows[r->row->event]++;
        t->last = r->row->event;
        t->eta = r->row->eta;
        if (grt_run_row_has(r->row, GRT_FIELD_SECONDS)) {
            double seconds = r->row->numbers[GRT_FIELD_SECONDS];
            assert_true(seconds >= t->seconds);
            t->seconds = seconds;
            if (r->row->event == GRT_RUN_TRAIN) {
                t->trained = t->rows[GRT_RUN_TRAIN] == 1 ? seconds : t->trained;
                t->trained_at = seconds;
            }
        }
        assert_true(r->row->event == GRT_RUN_START || grt_run_row_has(r->row, GRT_FIELD_SECONDS));
    }
    if (r->news == GRT_RUN_NEWS_FAULT || r->news == GRT_RUN_NEWS_NOTE) {
        snprintf(t->text, sizeof t->text, "%.511s", r->text);
    }
}

static bool on_stop(void *context) {
    const struct toy *t = context;
    return t->stop_at > 0 && t->step >= t->stop_at;
}

// Runs to `steps`; what is not given in `desc` is filled in.
static enum grt_ending go(struct toy *t, struct grt_run_desc desc, struct grt_run_start start) {
    struct grt_dev *dev = grt_dev_create(grt_dev_desc(.backend = "ref"));
    struct grt_archive *from = NULL;
    assert_non_null(dev);
    desc.stop = on_stop;
    desc.report = on_report;
    desc.context = t;
    start.trainer = &toy_trainer;
    start.self = t;
    start.dev = dev;
    t->ahead = t->ahead ? t->ahead : 1;
    t->announced = 0;
    if (desc.file && desc.resume) {
        from = grt_checkpoint_load(desc.file);
        assert_non_null(from);
        start.from = from;
    }
    struct grt_run *run = grt_run_create(&desc);
    assert_non_null(run);
    assert_true(grt_run_begin(run, &start));
    enum grt_ending ended = grt_run_go(run);
    assert_int_equal(grt_run_info(run).ended, ended);
    assert_in_range(t->announced, 0, 1);
    grt_run_destroy(&run);
    grt_archive_destroy(&from);
    grt_dev_destroy(&dev);
    return ended;
}

static void rise(struct toy *t) {
    for (int i = 0; i < MOST; i++) {
        t->scores[i] = i;
    }
}

// ---- cases ----

// Evaluations every 5 steps and at the end, checkpoints every 3 and at the end, however many steps
// are begun ahead.
static void what_is_due(void **state) {
    (void)state;
    enter();
    for (uint64_t ahead = 1; ahead < 12; ahead += 3) {
        struct toy t = {.ahead = ahead};
        rise(&t);
        assert_int_equal(go(&t, (struct grt_run_desc){.dir = in_folder("due"), .save_every = 3},
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
    assert_int_equal(go(&t, (struct grt_run_desc){.dir = in_folder("most")},
                        (struct grt_run_start){.steps = 17, .max_steps = 4, .evaluate_every = 5}),
                     GRT_ENDED_MAX_STEPS);
    assert_true(t.step == 4 && t.evaluated[4] == 1);
    leave();
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
    enter();
    const struct grt_run_start start = {.steps = 6, .evaluate_every = 3};
    struct grt_run_desc desc = {.dir = in_folder("time"), .limits = {.max_time = 1000}};
    struct toy t = {.stop_at = 3};
    double begun = grt_seconds();
    assert_int_equal(go(&t, desc, start), GRT_ENDED_SIGNAL);
    double first = grt_seconds() - begun, kept = kept_seconds(desc.dir);
    assert_true(0 < t.trained && t.trained < t.trained_at && t.trained_at <= t.seconds);
    assert_true(t.seconds <= first);
    assert_true(t.trained_at <= kept && kept <= first);
    struct toy rest = {0};
    desc.resume = true;
    begun = grt_seconds();
    assert_int_equal(go(&rest, desc, start), GRT_ENDED_ITERATIONS);
    double second = grt_seconds() - begun, both = kept_seconds(desc.dir);
    assert_true(0 < rest.trained && rest.seconds <= second);
    assert_true(kept + rest.trained_at <= both && both <= kept + second);
    leave();
}

// Stopped at each step in turn and resumed: the same file, and every evaluation once.
static void stopped_anywhere(void **state) {
    (void)state;
    enter();
    const struct grt_run_start start = {.steps = 17, .evaluate_every = 4};
    struct grt_run_desc desc = {.dir = in_folder("whole"), .limits = {.patience = 100}};
    struct toy whole = {.ahead = 3};
    rise(&whole);
    assert_int_equal(go(&whole, desc, start), GRT_ENDED_ITERATIONS);
    for (uint64_t stop = 1; stop < 17; stop++) {
        char name[16];
        char command[320];
        struct toy t = {.ahead = 3, .stop_at = stop};
        rise(&t);
        snprintf(name, sizeof name, "part%u", (unsigned)stop);
        desc.dir = in_folder(name);
        assert_int_equal(go(&t, desc, start), GRT_ENDED_SIGNAL);
        struct toy rest = {.ahead = 2};
        rise(&rest);
        desc.resume = true;
        assert_int_equal(go(&rest, desc, start), GRT_ENDED_ITERATIONS);
        desc.resume = false;
        for (uint64_t step = 0; step <= 17; step++) {
            assert_int_equal(t.evaluated[step] + rest.evaluated[step], whole.evaluated[step]);
        }
        snprintf(command, sizeof command,
                 "cmp '%s/whole/step-000000000017.h5' '%s/step-000000000017.h5'", folder, desc.dir);
        assert_int_equal(system(command), 0);
    }
    leave();
}

// Targets and patience end a run at the evaluation that they say, and a resumed run has nothing to
// do then.
static void ends(void **state) {
    (void)state;
    enter();
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
        for (int step = 0; step < MOST; step++) {
            t.scores[step] = trials[i].target > 0 ? step : step < 8 ? step : 8;
        }
        if (trials[i].target > 0) {
            start.targets[start.target_count++] =
                (struct grt_run_target){.field = GRT_FIELD_RETURN, .value = trials[i].target};
        }
        struct grt_run_desc desc = {.dir = in_folder(name), .limits = trials[i].limits};
        assert_int_equal(go(&t, desc, start), trials[i].ending);
        assert_int_equal(t.step, trials[i].step);
        if (trials[i].target == 0) {
            struct toy rest = {0};
            desc.resume = true;
            assert_int_equal(go(&rest, desc, start), trials[i].ending);
            assert_true(rest.rows[GRT_RUN_START] == 0 && rest.step == t.step);
        }
    }
    // The evaluation at the end of a run is not counted: one that goes on has its third without
    // improvement at step 20.
    struct toy more = {.ahead = 5};
    for (int step = 0; step < MOST; step++) {
        more.scores[step] = step < 8 ? step : 8;
    }
    assert_int_equal(go(&more,
                        (struct grt_run_desc){
                            .dir = in_folder("end1"), .limits = {.patience = 3}, .resume = true},
                        (struct grt_run_start){.steps = 30, .evaluate_every = 4}),
                     GRT_ENDED_PATIENCE);
    assert_int_equal(more.step, 20);
    leave();
}

static uint64_t step_in(const char *path) {
    struct grt_archive *archive = grt_checkpoint_load(path);
    assert_non_null(archive);
    uint64_t step = (uint64_t)grt_archive_whole(archive, "step", -1);
    grt_archive_destroy(&archive);
    return step;
}

// One file, and the best beside it; what an earlier run has left is moved aside.
static void one_file(void **state) {
    (void)state;
    enter();
    const struct grt_run_start start = {.steps = 9, .evaluate_every = 2};
    const struct grt_run_desc desc = {.file = in_folder("policy.h5"), .save_every = 4};
    struct toy t = {.scores = {[2] = 1, [4] = 7, [6] = 7, [8] = 3, [9] = 2}};
    assert_int_equal(go(&t, desc, start), GRT_ENDED_ITERATIONS);
    assert_int_equal(step_in(in_folder("policy.h5")), 9);
    assert_int_equal(step_in(in_folder("policy-best.h5")), 4);
    struct toy next = {.scores = {[6] = 5}, .stop_at = 6};
    assert_int_equal(go(&next, desc, start), GRT_ENDED_SIGNAL);
    assert_int_equal(step_in(in_folder("policy-earlier-1.h5")), 9);
    assert_int_equal(step_in(in_folder("policy-best-earlier-1.h5")), 4);
    // It goes on in the same file, and moves nothing.
    struct toy rest = {.scores = {[8] = 9}};
    struct grt_run_desc again = desc;
    again.resume = true;
    assert_int_equal(go(&rest, again, start), GRT_ENDED_ITERATIONS);
    assert_int_equal(step_in(desc.file), 9);
    assert_int_equal(step_in(in_folder("policy-best.h5")), 8);
    assert_int_equal(access(in_folder("policy-earlier-2.h5"), F_OK), -1);
    leave();
}

// Scores below zero that grow worse, and one that is no number: the best stays what it was, through
// a stop at every step, in one file and in a folder.
static void the_best_is_behind(void **state) {
    (void)state;
    enter();
    const struct grt_run_start start = {.steps = 9, .evaluate_every = 2};
    const struct toy scored = {.scores = {[2] = -5, [4] = -1, [6] = NAN, [8] = -4, [9] = -2}};
    for (uint64_t stop = 0; stop < 9; stop++) {
        for (int one = 0; one < 2; one++) {
            char name[16], best[32];
            snprintf(name, sizeof name, "b%u-%d%s", (unsigned)stop, one, one ? ".h5" : "");
            snprintf(best, sizeof best, one ? "b%u-%d-best.h5" : "b%u-%d/best.h5", (unsigned)stop,
                     one);
            struct grt_run_desc desc = {.dir = one ? NULL : in_folder(name),
                                        .file = one ? in_folder(name) : NULL};
            struct toy t = scored;
            t.stop_at = stop;
            assert_int_equal(go(&t, desc, start), stop ? GRT_ENDED_SIGNAL : GRT_ENDED_ITERATIONS);
            if (stop) {
                struct toy rest = scored;
                desc.resume = true;
                assert_int_equal(go(&rest, desc, start), GRT_ENDED_ITERATIONS);
            }
            assert_int_equal(step_in(in_folder(best)), 4);
        }
    }
    leave();
}

// A tensor that is not finite ends the run, and replaces nothing.
static void nonfinite(void **state) {
    (void)state;
    enter();
    const struct grt_run_start start = {.steps = 9, .evaluate_every = 3};
    const struct grt_run_desc desc = {.file = in_folder("a.h5"), .save_every = 3};
    struct toy t = {.weight = 0};
    rise(&t);
    assert_int_equal(go(&t, desc, start), GRT_ENDED_ITERATIONS);
    struct toy wild = {.weight = INFINITY};
    rise(&wild);
    assert_int_equal(go(&wild, desc, start), GRT_ENDED_NONFINITE);
    assert_true(wild.step == 3 && wild.rows[GRT_RUN_NONFINITE] > 0);
    assert_non_null(strstr(wild.text, "model/weight is not finite"));
    assert_non_null(strstr(wild.text, "None is known"));
    assert_int_equal(step_in(desc.file), 9);
    assert_int_equal(access(in_folder("a-earlier-1.h5"), F_OK), -1);
    leave();
}

// Two runs in one place, and places that cannot be written.
static void places(void **state) {
    (void)state;
    enter();
    struct grt_run *first = grt_run_create(&(struct grt_run_desc){.file = in_folder("a.h5")});
    assert_non_null(first);
    TEST_REFUSED(grt_run_create(&(struct grt_run_desc){.file = in_folder("a.h5")}), GRT_NO_OUTPUT,
                 "in use by process");
    grt_run_destroy(&first);
    TEST_REFUSED(grt_run_create(&(struct grt_run_desc){.file = in_folder("no/a.h5")}),
                 GRT_NO_OUTPUT, "no/a.h5");
    TEST_REFUSED(grt_run_create(&(struct grt_run_desc){.dir = folder, .log = in_folder("no/log")}),
                 GRT_NO_OUTPUT, "no/log");
    TEST_REFUSED(grt_run_create(&(struct grt_run_desc){0}), GRT_INVALID, "a folder or a file");
    leave();
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(what_is_due), TEST_CASE(seconds_add_up), TEST_CASE(stopped_anywhere),
    TEST_CASE(ends),        TEST_CASE(one_file),       TEST_CASE(the_best_is_behind),
    TEST_CASE(nonfinite),   TEST_CASE(places),
};
TEST_SUITE(run, false, cases);
