// SPDX-License-Identifier: Apache-2.0
// A run step by step: what is due and how far that is, why there is nothing more to do, what an
// archive says of where it was; and files that earlier runs have left.
#include "harness/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "kits/toy_run.h"
#include "run/run_parts.h"
#include "run/run_ranks.h"

// ---- what is due ----

static void due_and_ahead(void **state) {
    (void)state;
    static const struct {
        uint64_t steps, evaluate, save;
    } rows[] = {{17, 5, 3}, {12, 4, 6}, {12, 0, 5}, {12, 5, 0}, {12, 0, 0}, {9, 20, 4}, {1, 1, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t e = rows[i].evaluate, s = rows[i].save;
        struct grt_run run = {
            .steps = rows[i].steps, .start = {.evaluate_every = e}, .desc = {.save_every = s}};
        for (uint64_t step = 0; step <= rows[i].steps; step++) {
            bool last = step == rows[i].steps;
            bool evaluates = last || (e && step % e == 0);
            bool saves = last || (s ? step % s == 0 : evaluates);
            assert_int_equal(grt_run_due(&run, step), (evaluates ? 1 : 0) + (saves ? 2 : 0));
            // To the next step of either kind, by looking at each.
            uint64_t next = step + 1;
            while (next < rows[i].steps && (!e || next % e) && (!s || next % s)) {
                next++;
            }
            assert_int_equal(grt_run_ahead(&run, step), last ? 0 : next - step);
        }
        assert_int_equal(grt_run_ahead(&run, rows[i].steps + 3), 0);
    }
    struct grt_run run = {.steps = 4};
    assert_false(grt_run_decides(&run));
    run.desc.limits.patience = 1;
    assert_true(grt_run_decides(&run));
    run.desc.limits.patience = 0;
    run.start.target_count = 1;
    assert_true(grt_run_decides(&run));
}

// Why there is nothing more to do. Of ten steps; the time that went is 100 s.
static void why_it_ends(void **state) {
    (void)state;
    static const struct {
        uint64_t step, evaluated, every;
        bool reached;
        uint64_t waited, patience;
        double most;
        enum grt_ending why;
    } rows[] = {
        {0, 0, 5, false, 0, 0, 0, GRT_ENDED_NONE},
        {5, 5, 5, false, 0, 0, 0, GRT_ENDED_NONE},
        {10, 10, 5, false, 0, 0, 0, GRT_ENDED_ITERATIONS},
        {11, 11, 5, false, 0, 0, 0, GRT_ENDED_ITERATIONS},
        {10, 5, 5, false, 0, 0, 0, GRT_ENDED_NONE},  // an evaluation is owed: it decides
        {10, 5, 5, false, 9, 3, 0, GRT_ENDED_NONE},
        {10, 5, 5, true, 9, 3, 0, GRT_ENDED_NONE},
        {10, 5, 5, false, 9, 3, 100, GRT_ENDED_MAX_TIME},
        {5, 0, 5, false, 3, 3, 0, GRT_ENDED_NONE},
        {5, 0, 4, false, 3, 3, 0, GRT_ENDED_PATIENCE},  // none is due there
        {5, 5, 5, false, 3, 3, 0, GRT_ENDED_PATIENCE},
        {5, 5, 5, false, 2, 3, 0, GRT_ENDED_NONE},
        {5, 5, 5, true, 3, 3, 0, GRT_ENDED_UNTIL},
        {10, 10, 5, true, 0, 0, 0, GRT_ENDED_UNTIL},
        {10, 10, 5, false, 3, 3, 0, GRT_ENDED_ITERATIONS},
        {5, 5, 5, false, 0, 0, 100, GRT_ENDED_MAX_TIME},
        {5, 5, 5, false, 0, 0, 100.1, GRT_ENDED_NONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_run run = {
            .steps = 10,
            .all = GRT_ENDED_ITERATIONS,
            .spent = 100,
            .start = {.evaluate_every = rows[i].every},
            .desc = {.limits = {.max_time = rows[i].most, .patience = rows[i].patience}},
            .place = {.step = rows[i].step,
                      .evaluated = rows[i].evaluated,
                      .reached = rows[i].reached,
                      .patience = {.waited = rows[i].waited}},
        };
        if (grt_run_info(&run).ended != rows[i].why) {
            fail_msg("row %zu: %s", i, grt_ending_word(grt_run_info(&run).ended));
        }
        run.ended = GRT_ENDED_SIGNAL;  // what it has ended by stands
        assert_int_equal(grt_run_info(&run).ended, GRT_ENDED_SIGNAL);
    }
    struct grt_run run = {.start_step = 3,
                          .steps = 12,
                          .place.step = 7,
                          .start = {.epoch = 4, .score = "loss", .trainer = &toy_trainer},
                          .desc = {.dir = "d", .file = "f", .keep = 5}};
    struct grt_run_info info = grt_run_info(&run);
    assert_true(info.start == 3 && info.step == 7 && info.steps == 12 && info.epoch == 4);
    assert_true(info.keep == 5 && info.seconds == 0 && info.trainer == &toy_trainer);
    assert_string_equal(info.where, "f");
    assert_string_equal(info.score, "loss");
    run.desc.file = NULL;
    run.began = grt_seconds() - 3;
    assert_string_equal(grt_run_info(&run).where, "d");
    assert_true(grt_run_info(&run).seconds >= 3 && grt_run_info(&run).seconds < 10);
    // Seconds of this process and of those before.
    run.spent = 40;
    assert_true(run_seconds(&run) >= 43 && run_seconds(&run) < 50);
    assert_true(grt_run_info(&run).seconds >= 3 && grt_run_info(&run).seconds < 10);
    run.began = 0;
    assert_true(run_seconds(&run) == 40);
}

// ---- rows ----

static const struct grt_run_row *newest;
static struct grt_run_report reported;

static void keep_row(void *context, const struct grt_run_report *r) {
    (void)context;
    reported = *r;
    newest = r->row;
}

static void fields_of_rows(void **state) {
    (void)state;
    struct grt_dev *dev = grt_dev_create(grt_dev_desc(.backend = "ref"));
    struct grt_buf *buf = grt_buf_create(dev, grt_buf_desc(.size = 4096));
    assert_true(dev && buf);
    struct grt_run run = {.steps = 20,
                          .place.step = 6,
                          .start_step = 6,
                          .start.dev = dev,
                          .desc = {.report = keep_row}};
    static const enum grt_run_event events[] = {GRT_RUN_START, GRT_RUN_TRAIN, GRT_RUN_EVALUATE};
    for (int began = 0; began < 2; began++) {
        run.began = began ? grt_seconds() - 5 : 0;
        for (int i = 0; i < 3; i++) {
            struct grt_run_row row = {.event = events[i]};
            grt_run_tell(&run, &row);
            assert_true(newest == &row && row.step == 6 && row.steps == 20 && row.eta == 0);
            assert_int_equal(reported.news, GRT_RUN_NEWS_ROW);
            assert_true(reported.step == 6 && reported.steps == 20 && reported.text == NULL);
            assert_int_equal(grt_run_row_has(&row, GRT_FIELD_SECONDS), i > 0);
            assert_int_equal(grt_run_row_has(&row, GRT_FIELD_MEMORY), i == 1);
            assert_true(i != 1 || row.numbers[GRT_FIELD_MEMORY] == 4096);
            double seconds = row.numbers[GRT_FIELD_SECONDS];
            assert_true(i == 0 || (began ? seconds >= 5 && seconds < 20 : seconds == 0));
        }
    }
    assert_false(run.announced);  // nothing was learnt
    struct grt_run_row row = {.event = GRT_RUN_TRAIN};
    grt_run_progress(&run, &row);
    assert_int_equal(reported.news, GRT_RUN_NEWS_PROGRESS);
    run.place.step = 7;
    grt_run_tell(&run, &row);
    assert_true(run.announced);
    grt_run_say(&run, GRT_RUN_NEWS_NOTE, "a word");
    assert_true(reported.news == GRT_RUN_NEWS_NOTE && reported.row == NULL && reported.step == 7);
    assert_string_equal(reported.text, "a word");
    // The last bit of what is known is that of the last field.
    row = (struct grt_run_row){0};
    enum grt_run_field last = (enum grt_run_field)(GRT_FIELD_COUNT - 1);
    grt_run_row_set(&row, last, 4);
    assert_true(grt_run_row_has(&row, last) && row.known == 1ull << last);
    grt_run_row_text(&row, GRT_FIELD_KIND, "k");
    assert_true(grt_run_row_has(&row, GRT_FIELD_KIND) && row.numbers[GRT_FIELD_KIND] == 0);
    // Words are apart from each other.
    for (uint32_t i = 0; i < GRT_FIELD_COUNT; i++) {
        for (uint32_t k = 0; k < i; k++) {
            assert_string_not_equal(grt_run_field_word((enum grt_run_field)i),
                                    grt_run_field_word((enum grt_run_field)k));
        }
    }
    assert_string_equal(grt_run_field_word(GRT_FIELD_COUNT), "");
    assert_string_equal(grt_run_event_word(GRT_RUN_EVENT_COUNT), "");
    assert_string_equal(grt_run_event_word(GRT_RUN_EVALUATE), "evaluate");
    assert_string_equal(grt_run_event_word(GRT_RUN_TRAIN), "train");
    assert_string_equal(grt_run_field_word(GRT_FIELD_TRAIN_LOSS), "train_loss");
    assert_string_equal(grt_run_field_word(GRT_FIELD_SECONDS), "seconds");
    static const char *const texts[][2] = {
        {"", "the run has not ended"},
        {"epochs", "all epochs are done"},
        {"max_steps", "all steps are done"},
        {"iterations", "all iterations are done"},
        {"max_time", "the time is up"},
        {"patience", "there was no improvement for too long"},
        {"until", "the target was reached"},
        {"signal", "it was interrupted"},
        {"nonfinite", "a number is not finite"},
        {"failed", "it failed"},
        {"", ""},
    };
    for (uint32_t i = 0; i <= GRT_ENDING_COUNT; i++) {
        assert_string_equal(grt_ending_word((enum grt_ending)i), texts[i][0]);
        assert_string_equal(grt_ending_text((enum grt_ending)i), texts[i][1]);
    }
    grt_buf_destroy(&buf);
    grt_dev_destroy(&dev);
}

// ---- where it was ----

static bool refuses;

static bool load_step(void *self, const struct grt_run *run, const struct grt_archive *archive,
                      struct grt_run_place *place) {
    (void)self, (void)run;
    place->step = (uint64_t)grt_archive_whole(archive, "step", 0);
    return !refuses;
}

static void where_it_was(void **state) {
    (void)state;
    const struct grt_trainer trainer = {.kind = "t", .load = load_step};
    static const struct {
        int64_t step, evaluated, judged;  // -1: it does not say
        uint64_t every, want;
    } rows[] = {
        {8, -1, 4, 4, 4},  // one that patience counts may be missing
        {8, -1, -1, 4, 8}, {8, -1, 4, 3, 8}, {8, -1, 4, 0, 8}, {8, 6, 4, 4, 6}, {8, 8, -1, 4, 8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_archive *a = grt_archive_create();
        struct grt_run run = {.start = {.trainer = &trainer, .evaluate_every = rows[i].every}};
        assert_true(
            grt_archive_set_whole(a, "step", rows[i].step) &&
            grt_archive_set_real(a, "seconds", 12.5) &&
            (rows[i].evaluated < 0 || grt_archive_set_whole(a, "evaluated", rows[i].evaluated)) &&
            (rows[i].judged < 0 || grt_archive_set_whole(a, "patience_judged", rows[i].judged)));
        assert_true(run_restore(&run, a));
        assert_int_equal(run.place.step, 8);
        assert_int_equal(run.place.evaluated, rows[i].want);
        assert_int_equal(run.place.judged, rows[i].judged < 0 ? 0 : 4);
        assert_true(run.spent == 12.5 && !run.place.any_best);
        // Going back gives no time back; what is refused changes nothing.
        run.began = 1;
        run.spent = 99;
        assert_true(grt_archive_set_real(a, "best_score", -0.5) &&
                    grt_archive_set_whole(a, "best_step", 3));
        assert_true(run_restore(&run, a) && run.spent == 99);
        assert_true(run.place.any_best && run.place.best_score == -0.5 && run.place.best_step == 3);
        refuses = true;
        run.place.step = 77;
        assert_false(run_restore(&run, a));
        assert_int_equal(run.place.step, 77);
        refuses = false;
        grt_archive_destroy(&a);
    }
}

// ---- whole runs ----

static int files_of(const char *pattern) {
    char command[192], answer[32] = "";
    snprintf(command, sizeof command, "ls -d %s/%s 2>/dev/null | wc -l", toy_folder, pattern);
    FILE *pipe = popen(command, "r");
    assert_true(pipe && fgets(answer, sizeof answer, pipe) && pclose(pipe) == 0);
    return atoi(answer);
}

static void ends_of_steps(void **state) {
    (void)state;
    toy_enter();
    static const struct {
        uint64_t steps, most;
        enum grt_ending why;
        uint64_t step;
    } rows[] = {{5, 5, GRT_ENDED_MAX_STEPS, 5},
                {5, 6, GRT_ENDED_ITERATIONS, 5},
                {5, 4, GRT_ENDED_MAX_STEPS, 4},
                {5, 0, GRT_ENDED_ITERATIONS, 5},
                {0, 0, GRT_ENDED_ITERATIONS, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[16];
        struct toy t = {0};
        snprintf(name, sizeof name, "end%zu.h5", i);
        struct grt_run_desc desc = {.file = toy_path(name)};
        const struct grt_run_start start = {.steps = rows[i].steps, .max_steps = rows[i].most};
        assert_int_equal(toy_go(&t, desc, start), rows[i].why);
        assert_true(t.step == rows[i].step && t.saved[rows[i].step] > 0);
        // Of no steps what there is before the first is kept, and once.
        assert_int_equal(toy_step_in(desc.file), rows[i].step);
        struct toy again = {0};
        desc.resume = true;
        assert_int_equal(toy_go(&again, desc, start), rows[i].why);
        assert_true(again.saved[rows[i].step] == 0 && again.rows[GRT_RUN_START] == 0);
    }
    TEST_REFUSED(grt_run_begin(NULL, NULL), GRT_INVALID, "grt_run_begin: no run, start or trainer");
    TEST_REFUSED(grt_run_create(NULL), GRT_INVALID, "a run wants a folder or a file");
    toy_leave();
}

// As many of the newest as are kept, and the best.
static void newest_that_are_kept(void **state) {
    (void)state;
    toy_enter();
    for (uint32_t keep = 0; keep < 4; keep++) {
        char name[16], pattern[32];
        struct toy t = {.scores = {[2] = 5}};
        snprintf(name, sizeof name, "keep%u", keep);
        snprintf(pattern, sizeof pattern, "%s/step-*.h5", name);
        assert_int_equal(
            toy_go(&t, (struct grt_run_desc){.dir = toy_path(name), .save_every = 1, .keep = keep},
                   (struct grt_run_start){.steps = 6, .evaluate_every = 2}),
            GRT_ENDED_ITERATIONS);
        assert_int_equal(files_of(pattern), keep ? keep : 6);
        snprintf(pattern, sizeof pattern, "%s/best.h5", name);
        assert_int_equal(toy_step_in(toy_path(pattern)), 2);
    }
    toy_leave();
}

// Each run moves what the one before has left to the next number, and says where.
static void what_was_left(void **state) {
    (void)state;
    toy_enter();
    const struct grt_run_start start = {.steps = 3, .evaluate_every = 1};
    static const char *const files[][4] = {
        {"plain", "plain-best", "plain-earlier-1", "plain-best-earlier-2"},
        {"a.b.h5", "a.b-best.h5", "a.b-earlier-1.h5", "a.b-best-earlier-2.h5"},
    };
    for (int i = 0; i < 2; i++) {
        for (int run = 0; run < 3; run++) {
            struct toy t = {0};
            char want[256];
            toy_rise(&t);
            assert_int_equal(
                toy_go(&t, (struct grt_run_desc){.file = toy_path(files[i][0])}, start),
                GRT_ENDED_ITERATIONS);
            int stem = (int)strlen(files[i][0]) - (i ? 3 : 0);
            // The file itself is moved behind its best.
            snprintf(want, sizeof want, "the earlier %s/%s is now %s/%.*s-earlier-%d%s", toy_folder,
                     files[i][0], toy_folder, stem, files[i][0], run, i ? ".h5" : "");
            assert_string_equal(t.text, run ? want : "");
        }
        for (int k = 0; k < 4; k++) {
            assert_int_equal(access(toy_path(files[i][k]), F_OK), 0);
        }
    }
    for (int run = 0; run < 3; run++) {
        struct toy t = {0};
        char want[256] = "";
        assert_int_equal(toy_go(&t, (struct grt_run_desc){.dir = toy_path("dir")}, start),
                         GRT_ENDED_ITERATIONS);
        if (run) {
            snprintf(want, sizeof want, "checkpoints of an earlier run were moved to %s/earlier-%d",
                     toy_path("dir"), run);
        }
        assert_string_equal(t.text, want);
    }
    // Resumed where there is nothing it begins anew, and says so.
    struct toy t = {0};
    char want[256];
    assert_int_equal(
        toy_go(&t, (struct grt_run_desc){.dir = toy_path("new"), .resume = true}, start),
        GRT_ENDED_ITERATIONS);
    snprintf(want, sizeof want, "no checkpoint in %s: the run begins anew", toy_path("new"));
    assert_string_equal(t.text, want);
    assert_int_equal(t.rows[GRT_RUN_TRAIN], 3);
    assert_int_equal(files_of("new/earlier-*"), 0);
    assert_int_equal(files_of("*/.lock") + files_of("*.lock"), 0);
    toy_leave();
}

// What is not finite is told with the place that is left as it was; a trainer that sees to it
// itself is not asked.
static void numbers_that_are_none(void **state) {
    (void)state;
    toy_enter();
    for (int i = 0; i < 3; i++) {
        struct grt_trainer own = toy_trainer;
        struct toy t = {.weight = NAN, .trainer = &own};
        char want[256];
        own.remedy = i < 2 ? "Take less" : NULL;
        const char *place = toy_path(i == 1 ? "dir" : "file.h5");
        const struct grt_run_desc desc = {
            .file = i == 1 ? NULL : place, .dir = i == 1 ? place : NULL, .save_every = 2};
        assert_int_equal(toy_go(&t, desc, (struct grt_run_start){.steps = 4}),
                         i < 2 ? GRT_ENDED_NONFINITE : GRT_ENDED_ITERATIONS);
        snprintf(want, sizeof want,
                 "step 2: model/weight is not finite, and %s is left as it was. Take less", place);
        assert_string_equal(t.text, i < 2 ? want : "");
        assert_int_equal(t.rows[GRT_RUN_NONFINITE], i < 2);
    }
    toy_leave();
}

// ---- evaluations ----

static uint32_t judged[TOY_MOST];
static uint64_t judge_fails_at;

static bool judge(void *self, struct grt_run *run, const struct grt_run_row *row) {
    (void)self, (void)row;
    judged[grt_run_place(run)->step]++;
    return grt_run_place(run)->step != judge_fails_at || grt_fail(GRT_IO, "no judgement");
}

static bool ask(void *self, struct grt_run *run, struct grt_run_turn *turn) {
    bool good = toy_advance(self, run, turn);
    turn->evaluate = grt_run_place(run)->step == 5;
    return good;
}

// Those that are due are judged, each once; the one that a trainer asks for and that of the end are
// not, and may be the best all the same.
static void what_is_judged(void **state) {
    (void)state;
    toy_enter();
    for (uint64_t fails = 0; fails < 4; fails += 3) {
        struct grt_trainer trainer = toy_trainer;
        trainer.judged = judge;
        trainer.advance = ask;
        judge_fails_at = fails;
        memset(judged, 0, sizeof judged);
        struct toy t = {.trainer = &trainer, .scores = {[3] = 1, [5] = 7, [6] = 2, [8] = 3}};
        test_log.quiet = true;
        enum grt_ending ended =
            toy_go(&t, (struct grt_run_desc){.dir = toy_path(fails ? "bad" : "good")},
                   (struct grt_run_start){.steps = 8, .evaluate_every = 3});
        test_log.quiet = false;
        assert_int_equal(ended, fails ? GRT_ENDED_FAILED : GRT_ENDED_ITERATIONS);
        test_log.expected += fails ? 1 : 0;
        for (uint64_t step = 0; step <= 8; step++) {
            assert_int_equal(judged[step], step == 3 || (step == 6 && !fails));
            bool evaluates = step == 3 || (!fails && (step == 5 || step == 6 || step == 8));
            assert_int_equal(t.evaluated[step], evaluates);
        }
        assert_int_equal(t.best_step, fails ? 0 : 5);
        assert_int_equal(t.rows[GRT_RUN_EVALUATE], fails ? 0 : 4);
    }
    judge_fails_at = 0;
    toy_leave();
}

// A trainer that is tried before its first step, and when it is resumed, which is in no row; what
// it finds before anything was learnt reaches nothing and is not the best.
static void tried_first(void **state) {
    (void)state;
    toy_enter();
    struct grt_trainer trainer = toy_trainer;
    trainer.tries_first = true;
    const struct grt_run_target target = {.field = GRT_FIELD_RETURN, .value = 8};
    struct grt_run_start start = {
        .steps = 6, .evaluate_every = 4, .targets = {target}, .target_count = 1};
    struct grt_run_desc desc = {.dir = toy_path("first")};
    struct toy t = {.trainer = &trainer, .scores = {[0] = 9, [4] = 1, [6] = 2}};
    assert_int_equal(toy_go(&t, desc, start), GRT_ENDED_ITERATIONS);
    assert_true(t.evaluated[0] == 1 && t.evaluated[4] == 1 && t.evaluated[6] == 1);
    assert_int_equal(t.rows[GRT_RUN_EVALUATE], 3);
    assert_int_equal(t.best_step, 6);
    struct toy rest = {.trainer = &trainer, .scores = {[6] = 7, [8] = 3}};
    start.steps = 9;
    desc.resume = true;
    assert_int_equal(toy_go(&rest, desc, start), GRT_ENDED_ITERATIONS);
    assert_int_equal(rest.evaluated[6], 1);
    assert_int_equal(rest.rows[GRT_RUN_EVALUATE], 2);  // of steps 8 and 9
    // What is reached already ends it.
    struct toy last = {.trainer = &trainer, .scores = {[9] = 8}};
    start.steps = 12;
    assert_int_equal(toy_go(&last, desc, start), GRT_ENDED_UNTIL);
    assert_true(last.evaluated[9] == 1 && last.rows[GRT_RUN_TRAIN] == 0);
    toy_leave();
}

// What a run owed is kept when it goes on, though no step follows.
static void owed_at_the_end(void **state) {
    (void)state;
    toy_enter();
    struct grt_run_desc desc = {.dir = toy_path("owed"), .limits = {.patience = 9}};
    const struct grt_run_start start = {.steps = 6, .evaluate_every = 3};
    struct toy first = {.stop_at = 6, .ahead = 1}, rest = {0}, last = {0};
    toy_rise(&first);
    toy_rise(&rest);
    assert_int_equal(toy_go(&first, desc, start), GRT_ENDED_SIGNAL);
    assert_true(first.evaluated[3] == 1 && first.evaluated[6] == 0);
    desc.resume = true;
    assert_int_equal(toy_go(&rest, desc, start), GRT_ENDED_ITERATIONS);
    assert_int_equal(rest.evaluated[6], 1);
    struct grt_archive *a = grt_checkpoint_newest(desc.dir);
    assert_non_null(a);
    assert_int_equal(grt_archive_whole(a, "best_step", 0), 6);
    assert_int_equal(grt_archive_whole(a, "evaluated", 0), 6);
    assert_int_equal(grt_archive_whole(a, "patience_judged", 0), 6);
    assert_true(grt_archive_real(a, "patience_score", 0) == 6);
    grt_archive_destroy(&a);
    assert_int_equal(toy_go(&last, desc, start), GRT_ENDED_ITERATIONS);
    assert_int_equal(last.evaluated[6], 0);
    toy_leave();
}

static bool save_but_4(void *self, const struct grt_run *run, struct grt_archive *archive) {
    return grt_run_info(run).step == 4 ? grt_fail(GRT_NO_MEMORY, "no memory at 4")
                                       : toy_trainer.save(self, run, archive);
}

// A best one that could not be made fails the run, unless a better one is made behind it.
static void best_that_is_missing(void **state) {
    (void)state;
    toy_enter();
    for (int better = 0; better < 2; better++) {
        struct grt_trainer trainer = toy_trainer;
        trainer.save = save_but_4;
        struct toy t = {.trainer = &trainer, .scores = {[2] = 1, [4] = 5, [6] = better ? 9 : 3}};
        test_log.quiet = true;
        test_log.expected++;
        assert_int_equal(
            toy_go(&t, (struct grt_run_desc){.dir = toy_path(better ? "b" : "a"), .save_every = 6},
                   (struct grt_run_start){.steps = 6, .evaluate_every = 2}),
            better ? GRT_ENDED_ITERATIONS : GRT_ENDED_FAILED);
        test_log.quiet = false;
        assert_int_equal(t.best_step, better ? 6 : 4);
    }
    toy_leave();
}

// The best of an earlier run is moved once, however many better ones come. What a
// process that is gone has left half written goes, what one that is there writes does not.
static void moved_once(void **state) {
    (void)state;
    toy_enter();
    const struct grt_run_start start = {.steps = 6, .evaluate_every = 1};
    char own[64];
    snprintf(own, sizeof own, "p.h5.%d.tmp", (int)getpid());
    const char *const halves[] = {"p.h5.1073741822.tmp", own, "q.h5.1073741822.tmp"};
    for (int i = 0; i < 3; i++) {
        FILE *file = fopen(toy_path(halves[i]), "w");
        assert_true(file && fclose(file) == 0);
    }
    for (int run = 0; run < 3; run++) {
        struct toy t = {0};
        toy_rise(&t);
        assert_int_equal(
            toy_go(&t, (struct grt_run_desc){.file = toy_path("p.h5"), .save_every = 1}, start),
            GRT_ENDED_ITERATIONS);
        assert_int_equal(files_of("p-best-earlier-*.h5"), run);
        assert_int_equal(files_of("p-earlier-*.h5"), run);
        assert_int_equal(toy_step_in(toy_path("p-best.h5")), 6);
        assert_int_equal(files_of(halves[0]), 0);
        assert_int_equal(files_of(halves[2]), 1);
    }
    toy_leave();
}

static void parts_of_ranks(void **state) {
    (void)state;
    static const struct {
        uint64_t parts;
        uint32_t ranks;
        bool good;
    } rows[] = {{1, 1, true},  {8, 1, true},  {8, 4, true},  {8, 8, true},  {6, 2, false},
                {4, 3, false}, {2, 4, false}, {3, 3, false}, {64, 32, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].good) {
            assert_true(grt_run_parts_good(rows[i].parts, rows[i].ranks));
        } else {
            char want[128];
            snprintf(want, sizeof want,
                     "micro_batches is %u: it has to be a power of two that the number of ranks, "
                     "%u, divides",
                     (unsigned)rows[i].parts, rows[i].ranks);
            TEST_REFUSED(grt_run_parts_good(rows[i].parts, rows[i].ranks), GRT_CONFIG, want);
        }
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(due_and_ahead),        TEST_CASE(why_it_ends),
    TEST_CASE(fields_of_rows),       TEST_CASE(where_it_was),
    TEST_CASE(ends_of_steps),        TEST_CASE(newest_that_are_kept),
    TEST_CASE(what_was_left),        TEST_CASE(numbers_that_are_none),
    TEST_CASE(what_is_judged),       TEST_CASE(tried_first),
    TEST_CASE(parts_of_ranks),       TEST_CASE(owed_at_the_end),
    TEST_CASE(best_that_is_missing), TEST_CASE(moved_once),
};
TEST_SUITE(due, false, cases);
