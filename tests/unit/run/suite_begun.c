// SPDX-License-Identifier: Apache-2.0
// Supervised runs as they begin: what is refused, on both sides of each limit; how many steps there
// are and what follows from that; what ranks share out.
#include "kits/ref_kit.h"
#include "kits/run_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/comm.h"
#include "run/supervised/supervised_ranks.h"

// 300 samples, in classes or with a number each.
static void make(uint32_t classes) {
    assert_true(grt_data_make(
        grt_make_desc(.path = run_kit_data,
                      .make = classes ? GRT_MAKE_CLASSIFICATION : GRT_MAKE_REGRESSION,
                      .samples = 300, .features = 4, .classes = classes, .noise = -1, .seed = 1)));
}

#define LESS_SPLIT "validation_split=0"

// Of two epochs of 17 steps. A text that is NULL: it is taken.
static void refused(void **state) {
    (void)state;
    static const struct {
        uint32_t classes;
        const char *pairs[4], *text;
    } rows[] = {
        {0,
         {"schedule=cosine", "warmup_steps=34"},
         "schedule cosine begins after the warm-up: warmup_steps is 34, and there are 34 steps"},
        {0, {"schedule=cosine", "warmup_steps=33"}, NULL},
        {0, {"schedule=linear", "warmup_steps=34"}, "schedule linear begins after the warm-up"},
        {0, {"schedule=linear", "warmup_steps=33"}, NULL},
        {0, {"schedule=one_cycle", "warmup_steps=35"}, "warmup_steps is 35, and there are 34"},
        {0, {"schedule=one_cycle", "warmup_steps=33"}, NULL},
        {0, {"schedule=one_cycle", "max_steps=1"}, "warmup_steps is 1, and there are 1 steps"},
        {0, {"schedule=constant", "warmup_steps=40"}, NULL},
        {0, {"schedule=step", "warmup_steps=34"}, NULL},
        {0,
         {"warmup_steps=1", "warmup_ratio=0.1"},
         "warmup_steps and warmup_ratio say the same: give one of them"},
        {0, {"warmup_steps=0", "warmup_ratio=0.1"}, NULL},
        {0,
         {"target_accuracy=0.5"},
         "target_accuracy: there is no accuracy without classes as targets; use target_loss"},
        {3,
         {"target_accuracy=0.5", LESS_SPLIT},
         "target_accuracy: there is no accuracy without a validation_split; use target_loss"},
        {3, {"target_accuracy=0.5"}, NULL},
        {0,
         {"metric_for_best=accuracy"},
         "metric_for_best: there is no accuracy without classes as targets"},
        {3,
         {"metric_for_best=accuracy", LESS_SPLIT},
         "metric_for_best: there is no accuracy without a validation_split"},
        {3, {"metric_for_best=accuracy"}, NULL},
        {5,
         {"metric_for_best=top5"},
         "metric_for_best: there is no top5 without more than 5 classes as targets"},
        {6,
         {"metric_for_best=top5", LESS_SPLIT},
         "metric_for_best: there is no top5 without a validation_split"},
        {6, {"metric_for_best=top5"}, NULL},
        {0,
         {"overfit_batches=1", "limit_train_batches=2"},
         "overfit_batches says which samples are learnt from and validated on: leave out "
         "validation_data and limit_train_batches"},
        {0, {"overfit_batches=1", "validation_data=d.h5"}, "leave out validation_data and"},
        {0, {"overfit_batches=1", "validation_split=0.2"}, NULL},
        {0,
         {"validation_data=d.h5", "validation_split=0.1"},
         "validation_data and validation_split: the samples of the validation are in a file, or a "
         "share of the data; give one"},
        {0,
         {"validation_data=v.npy", LESS_SPLIT},
         "validation_data v.npy is one array, its inputs: validation_targets=FILE.npy names its "
         "targets"},
        {0, {"optimizer=sgd", "nesterov=true"}, "nesterov: true wants a momentum above 0, such as"},
        {0, {"optimizer=sgd", "nesterov=true", "momentum=0.001"}, NULL},
        {0, {"losses=mse,l1", "targets=y,y", "micro_batches=2"}, "losses want one process"},
        {0, {"rank_shares=5,3"}, "rank_shares is 5,3, for 2 ranks: there is 1"},
        {0, {"rank_shares=8,"}, "rank_shares is '8,': equal, speed or micro-batches of each rank"},
        {0, {"rank_shares=,8"}, "rank_shares is ',8': equal, speed"},
        {0, {"rank_shares=8,,8"}, "rank_shares is '8,,8': equal, speed"},
        {0, {"rank_shares=0"}, "rank_shares is '0': equal, speed"},
        {0, {"rank_shares=-4"}, "rank_shares is '-4': equal, speed"},
        {0, {"rank_shares=8 "}, "rank_shares is '8 ': equal, speed"},
        {0, {"rank_shares=4097"}, "rank_shares is '4097': equal, speed"},
        {0, {"rank_shares=4096"}, "a step of 16 samples is not cut into 4096 equal micro-batches"},
        {0,
         {"rank_shares=6"},
         "rank_shares is 6, of 6 micro-batches: they have to be a power of two, and at least one "
         "for each of 1 ranks"},
        {0,
         {"rank_shares=8", "micro_batches=4"},
         "rank_shares is 8, 8 micro-batches: a step has 4"},
        {0, {"rank_shares=8", "micro_batches=8"}, NULL},
        {0,
         {"micro_batches=6"},
         "micro_batches is 6: it has to be a power of two that the number of ranks, 1, divides"},
        {0,
         {"micro_batches=32"},
         "a step of 16 samples is not cut into 32 equal micro-batches: give a batch_size"},
        {0, {"micro_batches=16"}, NULL},
        {3,
         {"loss=nt_xent", "batch_size=6", "accumulate=5", "micro_batches=2"},
         "a micro-batch of 15 samples and a batch of 6, which are told apart, do not divide each "
         "other: accumulate_exact=true, or other micro_batches"},
        {3, {"loss=nt_xent", "rank_shares=4"}, "samples that are told apart want as many samples"},
    };
    run_kit_begin(GRT_MAKE_REGRESSION);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run_kit_watch w = {0};
        const char *pairs[5] = {NULL};
        memcpy(pairs, rows[i].pairs, sizeof rows[i].pairs);
        make(rows[i].classes);
        struct grt_config c = run_kit_config("run", pairs);
        if (rows[i].text) {
            TEST_REFUSED(run_kit_create(&c, false, &w), GRT_CONFIG, rows[i].text);
            continue;
        }
        struct grt_supervised *run = run_kit_create(&c, false, &w);
        if (!run) {
            fail_msg("%s %s: %s", pairs[0], pairs[1] ? pairs[1] : "", grt_last_error());
        }
        grt_supervised_destroy(&run);
    }
    struct grt_config c = run_kit_config("run", NULL);
    TEST_REFUSED(grt_supervised_create(NULL), GRT_INVALID, "a device and a config are wanted");
    TEST_REFUSED(grt_supervised_create(&(struct grt_supervised_desc){.config = &c}), GRT_INVALID,
                 "a device and a config are wanted");
    TEST_REFUSED(grt_supervised_create(&(struct grt_supervised_desc){.dev = test.dev}), GRT_INVALID,
                 "a device and a config are wanted");
    run_kit_end();
}

// 17 steps an epoch, the last one short.
static void steps(void **state) {
    (void)state;
    static const struct {
        const char *pairs[4];
        uint64_t steps, check;
        uint32_t warmup, period;
        enum grt_schedule schedule;
    } rows[] = {
        {{"schedule=constant"}, 34, 17, 0, 17, GRT_SCHEDULE_CONSTANT},
        {{"epochs=3"}, 51, 17, 0, 17, GRT_SCHEDULE_COSINE},
        {{"epochs=4", "schedule=step"}, 68, 17, 0, 34, GRT_SCHEDULE_STEP},
        {{"lr_step=5", "schedule=step"}, 34, 17, 0, 85, GRT_SCHEDULE_STEP},
        {{"max_steps=33"}, 33, 17, 0, 17, GRT_SCHEDULE_COSINE},
        {{"max_steps=34"}, 34, 17, 0, 17, GRT_SCHEDULE_COSINE},
        {{"max_steps=35"}, 34, 17, 0, 17, GRT_SCHEDULE_COSINE},
        // Shares of all steps, to the nearest: 3.4, 8.5; of one cycle 10.2, and one at least.
        {{"warmup_ratio=0.1"}, 34, 17, 3, 17, GRT_SCHEDULE_COSINE},
        {{"warmup_ratio=0.25", "schedule=linear"}, 34, 17, 9, 17, GRT_SCHEDULE_LINEAR},
        {{"warmup_steps=7", "schedule=linear"}, 34, 17, 7, 17, GRT_SCHEDULE_LINEAR},
        {{"schedule=one_cycle"}, 34, 17, 10, 17, GRT_SCHEDULE_ONE_CYCLE},
        {{"schedule=one_cycle", "warmup_ratio=0.5"}, 34, 17, 17, 17, GRT_SCHEDULE_ONE_CYCLE},
        {{"schedule=one_cycle", "warmup_ratio=0.01"}, 34, 17, 1, 17, GRT_SCHEDULE_ONE_CYCLE},
        {{"schedule=one_cycle", "warmup_steps=5"}, 34, 17, 5, 17, GRT_SCHEDULE_ONE_CYCLE},
        // Half an epoch is 8.5 steps, a hundredth none.
        {{"val_check_interval=0.5"}, 34, 8, 0, 17, GRT_SCHEDULE_COSINE},
        {{"val_check_interval=0.01"}, 34, 1, 0, 17, GRT_SCHEDULE_COSINE},
        {{"val_check_interval=1"}, 34, 1, 0, 17, GRT_SCHEDULE_COSINE},
        {{"val_check_interval=1.0"}, 34, 17, 0, 17, GRT_SCHEDULE_COSINE},
        {{"val_check_interval=20"}, 34, 20, 0, 17, GRT_SCHEDULE_COSINE},
        {{"epochs=0", "warmup_steps=5"}, 0, 17, 0, 0, GRT_SCHEDULE_CONSTANT},
        {{"drop_last=true"}, 32, 16, 0, 16, GRT_SCHEDULE_COSINE},
        {{"limit_train_batches=3"}, 6, 3, 0, 3, GRT_SCHEDULE_COSINE},
    };
    run_kit_begin(GRT_MAKE_REGRESSION);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run_kit_watch w = {0};
        const char *pairs[5] = {NULL};
        memcpy(pairs, rows[i].pairs, sizeof rows[i].pairs);
        struct grt_config c = run_kit_config("run", pairs);
        struct grt_supervised *run = run_kit_create(&c, false, &w);
        assert_non_null(run);
        struct grt_supervised_info info = grt_supervised_info(run);
        const struct grt_optim_desc *o = &info.learner.optim;
        if (info.steps != rows[i].steps || o->total != rows[i].steps ||
            info.check_every != rows[i].check || o->warmup != rows[i].warmup ||
            o->period != rows[i].period || o->schedule != rows[i].schedule) {
            fail_msg("row %zu: %u steps, check %u, warm-up %u, period %u, schedule %u", i,
                     (unsigned)info.steps, (unsigned)info.check_every, o->warmup, o->period,
                     o->schedule);
        }
        grt_supervised_destroy(&run);
    }
    // Steps alone make as many epochs as they take, and no more.
    static const struct {
        const char *most;
        uint64_t epochs;
    } alone[] = {{"max_steps=34", 2}, {"max_steps=35", 3}, {"max_steps=1", 1}};
    for (int i = 0; i < 3; i++) {
        struct run_kit_watch w = {0};
        struct grt_config c = run_kit_bare("run");
        assert_true(grt_config_override(&c, "batch_size=16") &&
                    grt_config_override(&c, "hidden=4") && grt_config_override(&c, alone[i].most));
        struct grt_supervised *run = run_kit_create(&c, false, &w);
        assert_non_null(run);
        assert_int_equal(grt_supervised_info(run).config->epochs, alone[i].epochs);
        grt_supervised_destroy(&run);
    }
    run_kit_end();
}

// The head of a report. Two layers of 4 * 8 + 8 and 8 + 1 numbers.
static void heads(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    struct run_kit_watch w = {0};
    struct grt_config c = run_kit_bare("run");
    static const char *const pairs[] = {"model=[{linear: 8}, relu, {linear: out}]", "epochs=3",
                                        "batch_size=8", "accumulate=2", "micro_batches=4"};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_true(grt_config_override(&c, pairs[i]));
    }
    struct grt_supervised *run = run_kit_create(&c, false, &w);
    assert_non_null(run);
    struct grt_supervised_info info = grt_supervised_info(run);
    assert_int_equal(info.layers, 3);
    assert_int_equal(info.parameters, 49);
    assert_int_equal(info.step_rows, 16);
    assert_int_equal(info.epoch_rows, 270);
    assert_int_equal(info.micro_batches, 4);
    assert_int_equal(info.steps_per_epoch, 17);
    assert_int_equal(info.steps, 51);
    assert_int_equal(info.checked, 0);
    assert_int_equal(info.knn_every, 0);
    assert_true(info.baseline < 0);
    assert_string_equal(info.config->cache, "ram");  // of micro-batches
    assert_int_equal(info.learner.batch, 4);
    assert_int_equal(info.bytes, grt_dev_mem_use(test.dev, NULL).current);
    assert_true(info.data_seconds >= 0 && info.cache_seconds >= 0 && info.learner_seconds > 0);
    grt_supervised_destroy(&run);
    grt_supervised_destroy(&run);
    grt_supervised_destroy(NULL);
    // A norm over ranks is nothing of one.
    c = run_kit_config("run", PAIRS("sync_batch_norm=true"));
    w = (struct run_kit_watch){0};
    run = run_kit_create(&c, false, &w);
    assert_non_null(run);
    assert_int_equal(w.news[GRT_RUN_NEWS_NOTE], 1);
    assert_string_equal(w.text, "sync_batch_norm has no effect: there is one rank, and its norms "
                                "are over a micro-batch");
    assert_int_equal(grt_supervised_info(run).micro_batches, 0);
    grt_supervised_destroy(&run);
    c = run_kit_config("run", PAIRS("sync_batch_norm=true", "micro_batches=2"));
    run = run_kit_create(&c, false, &w);
    assert_true(run && !grt_supervised_info(run).learner.sync_norms);
    grt_supervised_destroy(&run);
    // Samples that are told apart from those of a batch, or of all of a step, in micro-batches.
    for (int exact = 0; exact < 2; exact++) {
        c = run_kit_config("run",
                           PAIRS("loss=nt_xent", "batch_size=8", "accumulate=2", "micro_batches=4",
                                 exact ? "accumulate_exact=true" : "seed=0"));
        run = run_kit_create(&c, false, &w);
        assert_non_null(run);
        info = grt_supervised_info(run);
        const struct grt_whole *all = &info.learner.whole;
        assert_true(all->samples == 16 && all->batch == (exact ? 16 : 8));
        assert_true(all->first == 0 && all->own == 16 && !info.learner.exact);
        grt_supervised_destroy(&run);
    }
    // By speed one rank has four.
    c = run_kit_config("run", PAIRS("rank_shares=speed"));
    run = run_kit_create(&c, false, &w);
    assert_non_null(run);
    assert_int_equal(grt_supervised_info(run).micro_batches, 4);
    grt_supervised_destroy(&run);
    run_kit_end();
}

// Trials by nearest neighbours: a tenth of the epochs, one at least, where there are classes and
// nothing is learnt of them.
static void trials(void **state) {
    (void)state;
    static const struct {
        uint32_t classes;
        const char *pairs[3];
        uint64_t every;
    } rows[] = {
        {3, {"loss=nt_xent", "epochs=5"}, 1},
        {3, {"loss=nt_xent", "epochs=19"}, 1},
        {3, {"loss=nt_xent", "epochs=20"}, 2},
        {3, {"loss=nt_xent", "epochs=20", "knn_every=7"}, 7},
        {3, {"loss=nt_xent", "epochs=20", "knn_every=0"}, 0},
        {3, {"loss=cross_entropy", "epochs=20"}, 0},
        {0, {"loss=nt_xent", "epochs=20"}, 0},
    };
    run_kit_begin(GRT_MAKE_REGRESSION);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run_kit_watch w = {0};
        const char *pairs[4] = {NULL};
        memcpy(pairs, rows[i].pairs, sizeof rows[i].pairs);
        make(rows[i].classes);
        struct grt_config c = run_kit_config("run", pairs);
        struct grt_supervised *run = run_kit_create(&c, false, &w);
        assert_non_null(run);
        assert_int_equal(grt_supervised_info(run).knn_every, rows[i].every);
        grt_supervised_destroy(&run);
    }
    run_kit_end();
}

// ---- of a run that is not made ----

static struct grt_supervised whole;  // too large for the stack

static void what_is_owed(void **state) {
    (void)state;
    static const struct {
        uint64_t step, samples, every, steps;
        bool owes;
    } rows[] = {{0, 5, 4, 8, false}, {4, 5, 4, 8, true}, {4, 0, 4, 8, false}, {5, 5, 4, 8, false},
                {8, 1, 3, 8, true},  {9, 1, 4, 8, true}, {7, 1, 3, 8, false}, {8, 0, 4, 8, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        whole = (struct grt_supervised){.steps = rows[i].steps,
                                        .check_every = rows[i].every,
                                        .place.epoch_samples = rows[i].samples};
        assert_int_equal(supervised_owes(&whole, rows[i].step), rows[i].owes);
    }
    static const struct {
        uint64_t every, step;
        bool due;
    } tries[] = {{2, 20, true}, {2, 10, false}, {2, 21, false}, {2, 35, true}, {2, 34, false},
                 {2, 36, true}, {0, 20, false}, {0, 35, false}, {1, 10, true}};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        whole = (struct grt_supervised){
            .steps = 35, .steps_per_epoch = 10, .knn_every = tries[i].every};
        assert_int_equal(supervised_knn_due(&whole, tries[i].step), tries[i].due);
    }
}

static void shares(void **state) {
    (void)state;
    uint32_t counts[] = {3, 1, 4};
    struct supervised_ranks r = {.all = 8, .counts = counts, .first = 3, .count = 1};
    static const uint32_t firsts[] = {0, 3, 4};
    whole = (struct grt_supervised){.ranks = &r};
    for (uint32_t i = 0; i < 3; i++) {
        struct grt_loader_share s = supervised_share_of(&whole, i);
        assert_true(s.first == firsts[i] && s.count == counts[i] && s.of == 8);
    }
    uint32_t first, count;
    supervised_share_planned(&whole, &first, &count);
    assert_true(first == 3 && count == 1);
    // As long as it is open which they are, all but the first; of two or so those that it has.
    r.by_speed = true;
    supervised_share_planned(&whole, &first, &count);
    assert_true(first == 1 && count == 7);
    r.all = 4;
    supervised_share_planned(&whole, &first, &count);
    assert_true(first == 1 && count == 3);
    r.all = 2;
    supervised_share_planned(&whole, &first, &count);
    assert_true(first == 3 && count == 1);
    whole.ranks = NULL;
    supervised_share_planned(&whole, &first, &count);
    assert_true(first == 0 && count == 0);
    struct grt_loader_share none = supervised_share_of(&whole, 2);
    assert_true(none.first == 0 && none.count == 0 && none.of == 0);
    assert_int_equal(supervised_micro_batches(&whole), 0);
}

// Four micro-batches, squares of 2 in all: each alone has 8, the step 1.5 * 1.5.
static void noise(void **state) {
    (void)state;
    static struct supervised_ranks r;
    r = (struct supervised_ranks){.all = 4, .step = 8};
    r.squares[3] = 2;
    r.squares[4] = INFINITY;
    whole = (struct grt_supervised){.ranks = &r};
    for (uint64_t step = 3; step < 600; step += GRT_HISTORY) {
        struct supervised_noise n = supervised_noise_of(&whole, step, 1.5);
        assert_true(fabs(n.trace - (8 - 2.25) * 8 / 3) < 1e-12);
        assert_true(fabs(n.square - (4 * 2.25 - 8) / 3) < 1e-12);
    }
    const struct {
        uint64_t step;
        double norm;
    } none[] = {{2, 1.5}, {4, 1.5}, {3, NAN}, {3, INFINITY}};
    for (int i = 0; i < 4; i++) {
        struct supervised_noise n = supervised_noise_of(&whole, none[i].step, none[i].norm);
        assert_true(n.trace == 0 && n.square == 0);
    }
    whole.ranks = NULL;
    assert_true(supervised_noise_of(&whole, 3, 1.5).trace == 0);
}

// ---- validations in parts ----

static void parts_of_a_check(void **state) {
    (void)state;
    static const struct {
        uint64_t rows, batches;
        uint32_t counts[2], of;
    } rows[] = {{30, 2, {1, 1}, 2}, {30, 1, {3, 5}, 8}, {64, 1, {3, 5}, 8},
                {65, 2, {3, 5}, 8}, {1, 1, {2, 2}, 4},  {128, 2, {5, 3}, 8}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t counts[2] = {rows[i].counts[0], rows[i].counts[1]};
        struct supervised_ranks r = {.all = rows[i].of, .counts = counts};
        struct grt_loader_share share = {9, 9, 9};
        whole = (struct grt_supervised){.ranks = &r, .task.learner.batch = 8};
        assert_true(supervised_check_share(&whole, rows[i].rows, &share));
        assert_int_equal(whole.parts.batches, rows[i].batches);
        assert_int_equal(share.first, 0);
        assert_int_equal(share.count, counts[0] * rows[i].batches);
        assert_int_equal(share.of, rows[i].of * rows[i].batches);
        for (uint32_t k = 0; k < counts[0]; k++) {
            assert_true(whole.parts.sums[k].near == 0 && whole.parts.sums[k].loss == 0);
        }
        supervised_check_close(&whole);
        assert_null(whole.parts.sums);
    }
    struct grt_loader_share share = {9, 9, 9};
    whole = (struct grt_supervised){.task.learner.batch = 8};
    assert_true(supervised_check_share(&whole, 30, &share));
    assert_true(share.of == 0 && whole.parts.batches == 0 && whole.parts.sums == NULL);
}

// Three parts of two batches, of which segments may end anywhere.
static void sums_of_a_check(void **state) {
    (void)state;
    uint32_t counts[] = {3};
    struct supervised_ranks r = {.all = 3, .counts = counts};
    struct supervised_sums sums[3] = {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}};
    whole = (struct grt_supervised){.ranks = &r, .parts = {.batches = 2, .sums = sums, .rows = 5}};
    static const struct {
        uint64_t batch;
        uint32_t steps, samples, part;
    } queued[] = {{0, 2, 16, 1}, {2, 1, 8, 0}, {3, 1, 8, 2}, {4, 0, 0, 0}, {4, 2, 11, 3}};
    uint64_t rows = 5;
    for (size_t i = 0; i < sizeof queued / sizeof *queued; i++) {
        const struct grt_feed_done done = {.steps = queued[i].steps, .samples = queued[i].samples};
        rows += done.samples;
        assert_int_equal(supervised_check_queued(&whole, queued[i].batch, &done), queued[i].part);
        assert_int_equal(whole.parts.rows, rows);
        assert_true(i > 0 || (sums[0].loss == 0 && sums[1].samples == 0 && sums[2].near == 0));
        // Of a part that is not whole nothing is kept; and a second one comes on top.
        const struct grt_learn_state state_of = {.eval_loss = 1.5f * (float)(i + 1),
                                                 .eval_samples = (float)done.samples,
                                                 .eval_hits = (float)i,
                                                 .eval_near = 2.0f * (float)i};
        supervised_check_keep(&whole, queued[i].part, &state_of);
    }
    assert_true(sums[0].loss == 1.5f && sums[0].samples == 16 && sums[0].near == 0);
    assert_true(sums[1].loss == 4.5f && sums[1].samples == 8 && sums[1].hits == 2);
    assert_true(sums[1].near == 4 && sums[2].near == 8 && sums[2].samples == 11);
    const struct grt_learn_state more = {.eval_loss = 1, .eval_samples = 2, .eval_near = 3};
    supervised_check_keep(&whole, 2, &more);
    assert_true(sums[1].loss == 5.5f && sums[1].samples == 10 && sums[1].hits == 2);
    assert_true(sums[1].near == 7);
    // A validation that begins anew has nothing of the one before.
    const struct grt_feed_done first = {.steps = 1, .samples = 8};
    assert_int_equal(supervised_check_queued(&whole, 0, &first), 0);
    assert_true(sums[1].near == 0 && sums[2].samples == 0);
}

// ---- what ranks tell each other ----

struct other {
    uint32_t rank;
    bool whole;  // it has all of its parts
    bool met;
};

static bool start(void *self, uint32_t *rank, uint32_t *ranks, char why[GRT_TRANSPORT_WHY]) {
    const struct other *o = self;
    (void)why;
    *rank = o->rank;
    *ranks = 2;
    return true;
}

// The other has half of what this one has in each number; of the last four, which tell whether
// there is all, what the case says.
static bool gather(void *self, void *all, size_t each) {
    const struct other *o = self;
    char *theirs = (char *)all + (1 - o->rank) * each;
    memcpy(theirs, (char *)all + o->rank * each, each);
    if (o->met && each % sizeof(struct supervised_sums) == 0 &&
        each > sizeof(struct supervised_sums)) {
        struct supervised_sums *s = (void *)theirs;
        size_t count = each / sizeof *s;
        for (size_t i = 0; i + 1 < count; i++) {
            s[i] = (struct supervised_sums){s[i].loss / 2, s[i].samples / 2, s[i].hits / 2,
                                            s[i].near / 2};
        }
        s[count - 1].samples = o->whole;
    }
    return true;
}

static bool spread(void *self, const void *out, void *in, size_t each) {
    (void)self, (void)out, (void)in, (void)each;
    return false;
}

static bool over(void *self, bool *is) {
    (void)self;
    return *is = true;
}

static void end(void *self) {
    (void)self;
}

static void all_parts_meet(void **state) {
    (void)state;
    static const struct {
        bool stopped, whole, after;
    } rows[] = {{false, true, false}, {false, false, true}, {true, true, true}};
    for (uint32_t rank = 0; rank < 2; rank++) {
        for (size_t i = 0; i < 3; i++) {
            struct other o = {.rank = rank, .whole = rows[i].whole};
            const struct grt_transport table = {
                GRT_TRANSPORT_VERSION, "another", &o, start, gather, spread, over, end};
            struct grt_comm *comm = grt_comm_start(
                grt_comm_desc(.device = "test", .transport = &table, .messages = true));
            assert_non_null(comm);
            o.met = true;
            uint32_t counts[] = {2, 2};
            struct supervised_ranks r = {.all = 4, .counts = counts};
            struct supervised_sums sums[2] = {{2, 4, 6, 8}, {20, 40, 60, 80}};
            whole = (struct grt_supervised){
                .ranks = &r, .parts = {.batches = 2, .sums = sums}, .desc.comm = comm};
            bool stopped = rows[i].stopped;
            assert_true(supervised_check_meet(&whole, &stopped));
            assert_int_equal(stopped, rows[i].after);
            assert_true(whole.state.eval_loss == 33 && whole.state.eval_samples == 66);
            assert_true(whole.state.eval_hits == 99 && whole.state.eval_near == 132);
            grt_comm_end(&comm, true);
        }
    }
    // One alone, of three parts.
    uint32_t counts[] = {3};
    struct supervised_ranks r = {.all = 3, .counts = counts};
    struct supervised_sums sums[3] = {{1, 2, 3, 4}, {10, 20, 30, 40}, {100, 200, 300, 400}};
    whole = (struct grt_supervised){.ranks = &r, .parts = {.batches = 1, .sums = sums}};
    bool stopped = false;
    assert_true(supervised_check_meet(&whole, &stopped) && !stopped);
    assert_true(whole.state.eval_loss == 111 && whole.state.eval_samples == 222);
    assert_true(whole.state.eval_hits == 333 && whole.state.eval_near == 444);
}

static const struct CMUnitTest cases[] = {
    REF_CASE(refused),
    REF_CASE(steps),
    REF_CASE(heads),
    REF_CASE(trials),
    TEST_CASE(what_is_owed),
    TEST_CASE(shares),
    TEST_CASE(noise),
    TEST_CASE(parts_of_a_check),
    TEST_CASE(sums_of_a_check),
    TEST_CASE(all_parts_meet),
};
TEST_SUITE(begun, false, cases);
