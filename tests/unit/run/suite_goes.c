// SPDX-License-Identifier: Apache-2.0
// Supervised runs as they go: what they say of rates, baselines and losses that are not finite, by
// which number the best is found, and what another run's checkpoint is worth.
#include "kits/data_kit.h"
#include "kits/ref_kit.h"
#include "kits/run_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/checkpoint.h"
#include "run/run_parts.h"
#include "run/supervised/supervised_parts.h"

// ---- rates ----

static void rates_that_fall(void **state) {
    (void)state;
    static const char *const told[] = {NULL, "learning rate 0.01 -> 0.005: loss did not improve",
                                       "learning rate 0.005 -> 0.0025: loss did not improve"};
    run_kit_begin(GRT_MAKE_REGRESSION);
    for (int falls = 0; falls < 2; falls++) {
        struct run_kit_watch w = {0};
        struct grt_config c = run_kit_config("run", PAIRS("learning_rate=0.01"));
        assert_true(!falls || (grt_config_override(&c, "schedule=plateau") &&
                               grt_config_override(&c, "plateau_patience=0") &&
                               grt_config_override(&c, "plateau_factor=0.5")));
        struct grt_supervised *run = run_kit_create(&c, false, &w);
        assert_non_null(run);
        for (uint32_t i = 0; i < 3; i++) {
            const struct grt_run_row row = {.event = GRT_RUN_EVALUATE, .score = -1};
            assert_true(supervised_judged(run, grt_supervised_driver(run), &row));
            assert_int_equal(w.news[GRT_RUN_NEWS_NOTE], falls ? i : 0);
            assert_string_equal(w.text, falls && told[i] ? told[i] : "");
        }
        assert_true(run->lr_factor == (falls ? 0.25f : 1));
        grt_supervised_destroy(&run);
    }
    run_kit_end();
}

// ---- what is best, and a baseline ----

struct heard {
    uint32_t judged, baselines;
    double score[4], numbers[4][GRT_FIELD_COUNT];
    uint64_t known[4];
    double baseline;
};

static void hear(void *context, const struct grt_run_report *r) {
    struct heard *h = context;
    if (r->news != GRT_RUN_NEWS_ROW) {
        return;
    }
    if (r->row->event == GRT_RUN_BASELINE) {
        h->baselines++;
        h->baseline = r->row->numbers[GRT_FIELD_ACCURACY];
        assert_string_equal(r->row->texts[GRT_FIELD_BASELINE], "frequent");
        assert_int_equal(h->judged, 0);
    }
    if (r->row->event == GRT_RUN_EVALUATE && h->judged < 4) {
        h->score[h->judged] = r->row->score;
        h->known[h->judged] = r->row->known;
        memcpy(h->numbers[h->judged], r->row->numbers, sizeof h->numbers[0]);
        h->judged++;
    }
}

static bool knows(const struct heard *h, uint32_t i, enum grt_run_field field) {
    return (h->known[i] >> field & 1) != 0;
}

static void what_is_best(void **state) {
    (void)state;
    static const struct {
        uint32_t classes;
        const char *pairs[3];
        enum grt_run_field by;
        double sign;
    } rows[] = {{7, {"metric_for_best=accuracy"}, GRT_FIELD_ACCURACY, 1},
                {7, {"metric_for_best=top5"}, GRT_FIELD_TOP5, 1},
                {7, {"metric_for_best=loss"}, GRT_FIELD_LOSS, -1},
                {5, {"metric_for_best=accuracy"}, GRT_FIELD_ACCURACY, 1},
                {0, {"seed=1"}, GRT_FIELD_LOSS, -1},
                {0, {"validation_split=0"}, GRT_FIELD_TRAIN_LOSS, -1}};
    run_kit_begin(GRT_MAKE_REGRESSION);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t classes = rows[i].classes;
        assert_true(grt_data_make(
            grt_make_desc(.path = run_kit_data,
                          .make = classes ? GRT_MAKE_CLASSIFICATION : GRT_MAKE_REGRESSION,
                          .samples = 300, .features = 4, .classes = classes, .noise = -1,
                          .seed = 1)));
        struct heard h = {0};
        struct grt_config c = run_kit_config("run", rows[i].pairs);
        struct grt_supervised *run = grt_supervised_create(&(struct grt_supervised_desc){
            .dev = test.dev, .config = &c, .report = hear, .context = &h});
        assert_non_null(run);
        double baseline = grt_supervised_info(run).baseline;
        assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_EPOCHS);
        struct grt_run_info info = grt_run_info(grt_supervised_driver(run));
        assert_string_equal(info.score, c.metric_for_best);
        assert_string_equal(info.trainer->kind, "supervised");
        assert_true(info.trainer->keeps_best && info.keep == 2);
        assert_int_equal(info.epoch, rows[i].by == GRT_FIELD_TRAIN_LOSS ? 19 : 17);
        grt_supervised_destroy(&run);
        assert_int_equal(h.judged, 2);
        for (uint32_t k = 0; k < 2; k++) {
            assert_true(h.score[k] == rows[i].sign * h.numbers[k][rows[i].by]);
            assert_true(h.numbers[k][GRT_FIELD_EPOCH] == k + 1);
            assert_int_equal(knows(&h, k, GRT_FIELD_ACCURACY), classes > 0);
            assert_int_equal(knows(&h, k, GRT_FIELD_TOP5), classes > 5);
            assert_int_equal(knows(&h, k, GRT_FIELD_LOSS), rows[i].by != GRT_FIELD_TRAIN_LOSS);
            assert_false(knows(&h, k, GRT_FIELD_KNN) || knows(&h, k, GRT_FIELD_EXPOSED));
            assert_false(knows(&h, k, GRT_FIELD_TERM_1));
        }
        assert_true(h.numbers[1][GRT_FIELD_BEST] == (h.score[1] > h.score[0]));
        assert_true(h.numbers[0][GRT_FIELD_BEST] == 1);
        assert_int_equal(h.baselines, classes > 0);
        assert_true(classes ? h.baseline == baseline && baseline > 0 && baseline < 1
                            : baseline < 0);
    }
    run_kit_end();
}

// A target is met by the validation, or by training without one; a loss from above.
static void targets(void **state) {
    (void)state;
    static const struct {
        uint32_t classes;
        const char *pairs[3];
        bool met;
    } rows[] = {{0, {"target_loss=1000"}, true},
                {0, {"target_loss=1e-9"}, false},
                {0, {"target_loss=1000", "validation_split=0"}, true},
                {0, {"target_loss=1e-9", "validation_split=0"}, false},
                {3, {"target_accuracy=0.01"}, true},
                {3, {"target_accuracy=1", "learning_rate=1e-12"}, false}};
    run_kit_begin(GRT_MAKE_REGRESSION);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t classes = rows[i].classes;
        assert_true(grt_data_make(
            grt_make_desc(.path = run_kit_data,
                          .make = classes ? GRT_MAKE_CLASSIFICATION : GRT_MAKE_REGRESSION,
                          .samples = 300, .features = 4, .classes = classes, .noise = -1,
                          .seed = 1)));
        struct heard h = {0};
        struct grt_config c = run_kit_config("run", rows[i].pairs);
        struct grt_supervised *run = grt_supervised_create(&(struct grt_supervised_desc){
            .dev = test.dev, .config = &c, .report = hear, .context = &h});
        assert_non_null(run);
        assert_int_equal(grt_run_go(grt_supervised_driver(run)),
                         rows[i].met ? GRT_ENDED_UNTIL : GRT_ENDED_EPOCHS);
        assert_int_equal(h.judged, rows[i].met ? 1 : 2);
        grt_supervised_destroy(&run);
    }
    run_kit_end();
}

// ---- means over steps ----

enum { STEPS = 34 };

struct means {
    double loss[STEPS + 1], norm[STEPS + 1], trained[STEPS + 1];  // NAN: no row
    uint64_t stop_at, step;
    uint32_t progress, wrong;
};

static void keep_means(void *context, const struct grt_run_report *r) {
    struct means *m = context;
    m->step = r->step;
    m->progress += r->news == GRT_RUN_NEWS_PROGRESS;
    if (r->news != GRT_RUN_NEWS_ROW) {
        return;
    }
    const double *n = r->row->numbers;
    if (r->row->event == GRT_RUN_TRAIN) {
        m->loss[r->step] = n[GRT_FIELD_LOSS];
        m->norm[r->step] = n[GRT_FIELD_GRAD_NORM];
        m->wrong += n[GRT_FIELD_EPOCH] != (r->step <= 17 ? 1 : 2);
    } else if (r->row->event == GRT_RUN_EVALUATE) {
        m->trained[r->step] = n[GRT_FIELD_TRAIN_LOSS];
        m->wrong += n[GRT_FIELD_EPOCH] != (r->step <= 17 ? 1 : 2);
    }
    if (r->row->event == GRT_RUN_TRAIN || r->row->event == GRT_RUN_EVALUATE) {
        m->wrong += !(n[GRT_FIELD_DATA_SHARE] >= 0 && n[GRT_FIELD_DATA_SHARE] <= 1);
        m->wrong += !(n[GRT_FIELD_SAMPLES_PER_S] >= 0);
    }
}

static bool stop_means(void *context) {
    const struct means *m = context;
    return m->stop_at > 0 && m->step >= m->stop_at;
}

static struct means means_of(const char *dir, const char *const *pairs, bool resume,
                             uint64_t stop_at) {
    struct means m = {.stop_at = stop_at};
    for (int i = 0; i <= STEPS; i++) {
        m.loss[i] = m.norm[i] = m.trained[i] = NAN;
    }
    struct grt_config c = run_kit_config(dir, pairs);
    struct grt_supervised *run =
        grt_supervised_create(&(struct grt_supervised_desc){.dev = test.dev,
                                                            .config = &c,
                                                            .resume = resume,
                                                            .lockstep = stop_at > 0,
                                                            .stop = stop_means,
                                                            .report = keep_means,
                                                            .context = &m});
    assert_non_null(run);
    assert_int_equal(grt_run_go(grt_supervised_driver(run)),
                     stop_at ? GRT_ENDED_SIGNAL : GRT_ENDED_EPOCHS);
    grt_supervised_destroy(&run);
    assert_int_equal(m.wrong, 0);
    return m;
}

// Over the samples of the steps from one to another; the last of an epoch has 14, not 16.
static double mean_of(const double *loss, int first, int last) {
    double sum = 0, samples = 0;
    for (int i = first; i <= last; i++) {
        double rows = i % 17 == 0 ? 14 : 16;
        sum += loss[i] * rows;
        samples += rows;
    }
    return sum / samples;
}

static void expect_near(double got, double want) {
    if (!(fabs(got - want) <= 1e-6 * fabs(want))) {
        fail_msg("%.9g, wanted %.9g", got, want);
    }
}

// Rows of the log have the mean since the row before, those of evaluations since the one before;
// also where the run was stopped between.
static void means_over_steps(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    static const char *const caches[] = {"cache=none", "cache=device"};
    struct means each = means_of("each", PAIRS("log_interval=1"), false, 0);
    for (int k = 0; k < 2; k++) {
        struct means five = means_of(k ? "k1" : "k0", PAIRS("log_interval=5", caches[k]), false, 0);
        for (int step = 1, before = 0; step <= STEPS; step++) {
            assert_false(isnan(each.loss[step]));
            bool row = step % 5 == 0 || step % 17 == 0;
            assert_int_equal(!isnan(five.loss[step]), row);
            if (row) {
                expect_near(five.loss[step], mean_of(each.loss, before + 1, step));
                assert_true(five.norm[step] == each.norm[step]);  // of that step alone
                before = step;
            }
            assert_int_equal(!isnan(five.trained[step]), step % 17 == 0);
        }
        expect_near(five.trained[17], mean_of(each.loss, 1, 17));
        expect_near(five.trained[34], mean_of(each.loss, 18, 34));
    }
    // Evaluations that are no ends of epochs.
    struct means eight = means_of("eight", PAIRS("val_check_interval=8"), false, 0);
    static const int at[] = {0, 8, 16, 24, 32, 34};
    for (int i = 1; i < 6; i++) {
        expect_near(eight.trained[at[i]], mean_of(each.loss, at[i - 1] + 1, at[i]));
    }
    assert_true(isnan(eight.trained[17]));
    struct means part = means_of("part", PAIRS("log_interval=5"), false, 12);
    assert_true(isnan(part.trained[17]));
    part = means_of("part", PAIRS("log_interval=5"), true, 0);
    expect_near(part.trained[17], mean_of(each.loss, 1, 17));
    run_kit_end();
}

// ---- a loss that is not finite, in the second epoch ----

struct spoiler {
    struct grt_supervised *run;
    uint64_t at;  // the step behind which a weight is spoilt; 0: none
    uint32_t trained, nonfinite, rollbacks, faults;
    char tensor[128], faults_of[2][160];
    double factor, lr[64];
};

static void spoil(void *context, const struct grt_run_report *r) {
    struct spoiler *s = context;
    if (r->news == GRT_RUN_NEWS_FAULT && s->faults < 2) {
        snprintf(s->faults_of[s->faults++], sizeof s->faults_of[0], "%s", r->text);
    }
    if (r->news != GRT_RUN_NEWS_ROW) {
        return;
    }
    if (r->row->event == GRT_RUN_NONFINITE) {
        s->nonfinite++;
        snprintf(s->tensor, sizeof s->tensor, "%s", r->row->texts[GRT_FIELD_TENSOR]);
    } else if (r->row->event == GRT_RUN_ROLLBACK) {
        s->rollbacks++;
        s->factor = r->row->numbers[GRT_FIELD_LR_FACTOR];
    } else if (r->row->event == GRT_RUN_TRAIN && r->step < 64) {
        s->trained++;
        s->lr[r->step] = r->row->numbers[GRT_FIELD_LR];
        if (r->step == s->at) {
            const struct grt_tensor *t =
                grt_learner_tensor(s->run->learner, GRT_TENSOR_PARAM, 0, NULL);
            const float none = NAN;
            s->at = 0;
            assert_true(grt_buf_write(t->range.buf, t->range.offset, &none, sizeof none));
        }
    }
}

static void back_to_an_epoch(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    static const char *const ways[] = {"on_nan_loss=stop", "on_nan_loss=rollback"};
    for (int back = 0; back < 2; back++) {
        struct spoiler s = {.at = 20};
        struct grt_config c = run_kit_config(
            "run", PAIRS(ways[back], "log_interval=1", "schedule=constant", "learning_rate=0.001"));
        struct grt_supervised *run = grt_supervised_create(&(struct grt_supervised_desc){
            .dev = test.dev, .config = &c, .lockstep = true, .report = spoil, .context = &s});
        assert_non_null(run);
        s.run = run;
        assert_int_equal(grt_run_go(grt_supervised_driver(run)),
                         back ? GRT_ENDED_EPOCHS : GRT_ENDED_NONFINITE);
        grt_supervised_destroy(&run);
        char said[192];
        snprintf(said, sizeof said, "step 21 (epoch 2, batch 4): %s is not finite", s.tensor);
        assert_string_equal(s.faults_of[0], said);
        assert_true(s.nonfinite == 1 && s.tensor[0]);
        if (!back) {
            assert_true(s.trained == 20 && s.rollbacks == 0 && s.faults == 1);
            continue;
        }
        assert_string_equal(s.faults_of[1], "back to step 17, with half the learning rate");
        assert_true(s.rollbacks == 1 && s.factor == 0.5 && s.faults == 2);
        assert_int_equal(s.trained, 20 + 17);
        for (int step = 1; step <= 34; step++) {
            assert_true(fabs(s.lr[step] - (step <= 17 ? 0.001 : 0.0005)) < 1e-9);
        }
        // The half is still a half when the run is resumed.
        assert_true(grt_config_override(&c, "epochs=3"));
        s = (struct spoiler){0};
        run = grt_supervised_create(&(struct grt_supervised_desc){
            .dev = test.dev, .config = &c, .resume = true, .report = spoil, .context = &s});
        assert_non_null(run);
        assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_EPOCHS);
        grt_supervised_destroy(&run);
        assert_true(s.trained == 17 && fabs(s.lr[35] - 0.0005) < 1e-9);
    }
    run_kit_end();
}

// ---- another run's checkpoint ----

static void forget(struct grt_archive *a, const char *name) {
    for (uint32_t i = 0; i < a->value_count; i++) {
        if (strcmp(a->values[i].name, name) == 0) {
            snprintf(a->values[i].name, sizeof a->values[i].name, "forgotten");
        }
    }
}

static struct grt_supervised *saved_run(const struct grt_config *c, bool force,
                                        struct grt_archive **a) {
    struct grt_supervised *run = grt_supervised_create(
        &(struct grt_supervised_desc){.dev = test.dev, .config = c, .force = force});
    assert_non_null(run);
    *a = grt_archive_create();
    assert_true(supervised_save(run, grt_supervised_driver(run), *a));
    snprintf((*a)->path, sizeof(*a)->path, "some.h5");
    return run;
}

static void other_checkpoints(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    struct grt_run_place place;
    struct grt_archive *a = NULL;
    char want[512];
    for (int force = 0; force < 2; force++) {
        struct grt_config c = run_kit_config("run", PAIRS("target_loss=0.25"));
        struct grt_supervised *run = saved_run(&c, force, &a);
        struct grt_run *driver = grt_supervised_driver(run);
        // Another batch, another epoch: both numbers of both are told.
        for (int k = 0; k < 2; k++) {
            grt_archive_set_whole(a, "batch_size", k ? 16 : 15);
            grt_archive_set_whole(a, "steps_per_epoch", k ? 18 : 17);
            snprintf(want, sizeof want,
                     "some.h5 was made with %d samples a step, %d steps an epoch; here they are 16 "
                     "and 17, so its place in the data means nothing: use the same data and batch",
                     k ? 16 : 15, k ? 18 : 17);
            place = (struct grt_run_place){0};
            TEST_REFUSED(supervised_load(run, driver, a, &place), GRT_CONFIG, want);
        }
        grt_archive_set_whole(a, "steps_per_epoch", 17);
        // Other data, unless that is meant, or nobody knows.
        assert_true(grt_archive_set_text(a, "data_digest", "0123456789abcdef"));
        place = (struct grt_run_place){0};
        if (force) {
            // Other rows, but no other shapes.
            static const struct {
                const char *name, *says;
            } shapes[] = {
                {"features", ": samples have 4 features; the model of some.h5 wants 5 features: "
                             "use data of the same shapes, or another checkpoint_dir"},
                {"outputs", ": targets want 1 outputs; the model of some.h5 has 2: use data of the "
                            "same shapes, or another checkpoint_dir"}};
            for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
                int64_t was = grt_archive_whole(a, shapes[i].name, 0);
                assert_true(grt_archive_set_whole(a, shapes[i].name, was + 1));
                TEST_REFUSED(supervised_load(run, driver, a, &place), GRT_BAD_DATA, shapes[i].says);
                assert_true(grt_archive_set_whole(a, shapes[i].name, was));
            }
            assert_true(supervised_load(run, driver, a, &place));
        } else {
            snprintf(want, sizeof want,
                     "the data in %s are not those that some.h5 was trained on: names, types, "
                     "shapes or rows differ. Use those, or another checkpoint_dir; --force goes on",
                     run_kit_data);
            TEST_REFUSED(supervised_load(run, driver, a, &place), GRT_BAD_DATA, want);
            forget(a, "data_digest");
            assert_true(supervised_load(run, driver, a, &place));
        }
        // The best of an older version has an epoch and a loss; that of today comes before it.
        static const struct {
            int64_t step, epoch;
            bool any;
            double score;
            uint64_t best;
        } olds[] = {{60, 3, false, -0.5, 51},
                    {40, 3, false, -0.5, 40},
                    {51, 3, false, -0.5, 51},
                    {60, 3, true, -0.125, 9},
                    {60, 0, false, 0, 0}};
        for (size_t i = 0; i < sizeof olds / sizeof *olds; i++) {
            place = (struct grt_run_place){.any_best = olds[i].any,
                                           .best_score = olds[i].any ? -0.125 : 0,
                                           .best_step = olds[i].any ? 9 : 0};
            assert_true(grt_archive_set_whole(a, "step", olds[i].step) &&
                        grt_archive_set_whole(a, "best_epoch", olds[i].epoch) &&
                        grt_archive_set_real(a, "best_loss", 0.5));
            assert_true(supervised_load(run, driver, a, &place));
            assert_int_equal(place.any_best, olds[i].any || olds[i].epoch > 0);
            assert_true(place.best_score == olds[i].score && place.best_step == olds[i].best);
            assert_int_equal(place.step, olds[i].step);
            // A target of the loss was reached by the best one, also where it is just that.
            assert_int_equal(place.reached, olds[i].any);
        }
        assert_true(grt_archive_set_whole(a, "best_epoch", 0));
        static const struct {
            double score;
            bool reached;
        } bests[] = {{-0.25, true}, {-0.2500001, false}, {-0.2, true}};
        for (size_t i = 0; i < 3; i++) {
            place = (struct grt_run_place){.any_best = true, .best_score = bests[i].score};
            assert_true(supervised_load(run, driver, a, &place));
            assert_int_equal(place.reached, bests[i].reached);
        }
        // Samples of an epoch that has begun, at its last step: the validation is owed.
        assert_true(grt_archive_set_whole(a, "step", 17) &&
                    grt_archive_set_whole(a, "epoch_samples", 270));
        place = (struct grt_run_place){0};
        assert_true(supervised_load(run, driver, a, &place));
        assert_true(place.step == 17 && place.evaluated == 16 && run->loop.checking);
        assert_true(grt_archive_set_whole(a, "epoch_samples", 0));
        assert_true(supervised_load(run, driver, a, &place));
        assert_true(place.evaluated == 17 && !run->loop.checking && run->loop.queued == 17);
        grt_archive_destroy(&a);
        grt_supervised_destroy(&run);
    }
    // The best by something else is none, nor is what was waited for it.
    for (int same = 0; same < 2; same++) {
        struct grt_config by = run_kit_config("run", NULL);
        struct grt_supervised *r = saved_run(&by, false, &a);
        assert_true(grt_archive_set_text(a, "best_metric", same ? "loss" : "accuracy"));
        place = (struct grt_run_place){.any_best = true,
                                       .best_score = -1,
                                       .patience = {.waited = 3, .score = -1, .any = true}};
        assert_true(supervised_load(r, grt_supervised_driver(r), a, &place));
        assert_true(place.any_best == same && place.patience.any == same);
        assert_int_equal(place.patience.waited, same ? 3 : 0);
        grt_archive_destroy(&a);
        grt_supervised_destroy(&r);
    }
    // Without the schedule a plateau is forgotten, and what roll-backs left is kept.
    struct grt_config c = run_kit_config("run", PAIRS("schedule=constant"));
    struct grt_supervised *run = saved_run(&c, false, &a);
    struct grt_learn_state *s = grt_archive_find(a, "state/state")->data;
    s->lr_factor = 0.25f * 0.3f;
    assert_true(grt_archive_set_real(a, "plateau_factor", 0.3));
    place = (struct grt_run_place){0};
    assert_true(supervised_load(run, grt_supervised_driver(run), a, &place));
    assert_true(run->lr_factor == 0.25f && plateau_factor(&run->place.plateau) == 1);
    // To the first step, with nothing of what was.
    run->place.epoch_loss = 5;
    run->place.best_accuracy = 5;
    grt_run_place(grt_supervised_driver(run))->step = 9;
    assert_true(supervised_restart(run));
    assert_true(run->lr_factor == 1 && run->place.epoch_loss == 0 && run->place.best_accuracy == 0);
    assert_int_equal(grt_run_place(grt_supervised_driver(run))->step, 0);
    grt_archive_destroy(&a);
    grt_supervised_destroy(&run);
    run_kit_end();
}

// What ranks make is of as many micro-batches in the next run too.
static void micro_batches_of_a_checkpoint(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    struct run_kit_watch w = {.stop_at = 3};
    struct grt_config c = run_kit_config("run", PAIRS("micro_batches=8"));
    assert_int_equal(run_kit_watched(&c, false, &w), GRT_ENDED_SIGNAL);
    struct grt_archive *a = grt_checkpoint_newest(c.checkpoint_dir);
    assert_non_null(a);
    assert_int_equal(grt_archive_whole(a, "micro_batches", 0), 8);
    uint64_t step = (uint64_t)grt_archive_whole(a, "step", 0);
    assert_true(step >= 3);
    static const struct {
        bool resume, from;
        uint32_t parts;
    } rows[] = {{true, false, 8}, {false, true, 8}, {false, false, 0}};
    for (int i = 0; i < 3; i++) {
        c = run_kit_config(rows[i].resume ? "run" : "other", NULL);
        struct grt_supervised *run = grt_supervised_create(
            &(struct grt_supervised_desc){.dev = test.dev,
                                          .config = &c,
                                          .resume = rows[i].resume,
                                          .resume_from = rows[i].from ? a : NULL});
        assert_non_null(run);
        assert_int_equal(grt_supervised_info(run).micro_batches, rows[i].parts);
        assert_int_equal(grt_run_info(grt_supervised_driver(run)).step, rows[i].parts ? step : 0);
        grt_supervised_destroy(&run);
    }
    grt_archive_destroy(&a);
    run_kit_end();
}

// ---- rows of a batch that can be looked at ----

static void parts_of_batches(void **state) {
    (void)state;
    static const struct {
        const char *pairs[4];
        uint64_t batch;
        uint32_t rows[3];  // 0: there is no such part
    } rows[] = {
        {{"cache=none"}, 3, {16, 0, 0}},
        {{"cache=none"}, 16, {14, 0, 0}},
        {{"cache=device"}, 3, {16, 0, 0}},
        {{"cache=device"}, 16, {14, 0, 0}},
        {{"cache=none", "batch_size=8", "accumulate=2"}, 3, {8, 8, 0}},
        {{"cache=none", "batch_size=8", "accumulate=2"}, 16, {8, 6, 0}},
    };
    run_kit_begin(GRT_MAKE_REGRESSION);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run_kit_watch w = {0};
        const char *pairs[5] = {NULL};
        memcpy(pairs, rows[i].pairs, sizeof rows[i].pairs);
        struct grt_config c = run_kit_config("run", pairs);
        struct grt_supervised *run = run_kit_create(&c, false, &w);
        assert_non_null(run);
        for (uint32_t part = 0; part < 3; part++) {
            struct grt_tensor x, y;
            const struct grt_loader_position at = {.epoch = 1, .batch = rows[i].batch};
            bool there = grt_feed_part(run->train, at, part, &x, &y);
            if (there != (rows[i].rows[part] > 0) ||
                (there && (x.shape[0] != rows[i].rows[part] || y.shape[0] != x.shape[0]))) {
                fail_msg("row %zu, part %u: %u rows", i, part, there ? (uint32_t)x.shape[0] : 0);
            }
        }
        grt_supervised_destroy(&run);
    }
    TEST_REFUSED(grt_feed_place(NULL), GRT_INVALID, "grt_feed_place: no feed");
    TEST_REFUSED(grt_feed_create(NULL), GRT_INVALID, "no desc, loader or learner");
    run_kit_end();
}

static const struct CMUnitTest cases[] = {
    REF_CASE(rates_that_fall),   REF_CASE(what_is_best),
    REF_CASE(targets),           REF_CASE(back_to_an_epoch),
    REF_CASE(other_checkpoints), REF_CASE(micro_batches_of_a_checkpoint),
    REF_CASE(parts_of_batches),  REF_CASE(means_over_steps),
};
TEST_SUITE(goes, false, cases);
