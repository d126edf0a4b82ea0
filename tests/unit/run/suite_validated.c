// SPDX-License-Identifier: Apache-2.0
// Runs that are validated on a file of their own, samples that weigh nothing, and what several
// losses of an evaluation come to.
#include "kits/data_kit.h"
#include "kits/ref_kit.h"
#include "kits/run_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/checkpoint.h"
#include "gpurt/comm.h"
#include "run/supervised/supervised_ranks.h"

static char other[96];

static void write_numbers(const char *path, uint64_t rows, uint64_t width, uint64_t from) {
    double *x = test_alloc(rows * width * sizeof *x), *y = test_alloc(rows * sizeof *y);
    for (uint64_t i = 0; i < rows * width; i++) {
        x[i] = data_kit_value(i + from) / 251;
    }
    for (uint64_t i = 0; i < rows; i++) {
        y[i] = data_kit_value(i + from + 7) / 251;
    }
    data_kit_write(path, true,
                   &(struct data_kit_set){.name = "x", .shape = {rows, width}, .data = x});
    data_kit_write(path, false, &(struct data_kit_set){.name = "y", .shape = {rows}, .data = y});
    data_kit_write(path, false, &(struct data_kit_set){.name = "z", .shape = {rows}, .data = y});
    free(x);
    free(y);
}

static struct grt_supervised *run_of(const char *const *pairs, const char *data,
                                     const char *judged) {
    struct grt_config c = run_kit_config("run", pairs);
    assert_true(grt_config_set(&c, GRT_CONFIG_DATA, data));
    assert_true(!judged || grt_config_set(&c, GRT_CONFIG_VALIDATION_DATA, judged));
    return grt_supervised_create(&(struct grt_supervised_desc){.dev = test.dev, .config = &c});
}

static void begin(void) {
    run_kit_begin(GRT_MAKE_REGRESSION);
    snprintf(other, sizeof other, "%s/v.h5", run_kit_folder);
}

// What a run takes its data for is of both files, each in its place.
static void both_files(void **state) {
    (void)state;
    begin();
    char third[96];
    snprintf(third, sizeof third, "%s/w.h5", run_kit_folder);
    write_numbers(run_kit_data, 40, 3, 0);
    write_numbers(other, 24, 3, 500);
    write_numbers(third, 24, 3, 900);
    const struct {
        const char *data, *judged;
    } rows[] = {{run_kit_data, NULL},         {run_kit_data, other}, {run_kit_data, third},
                {run_kit_data, run_kit_data}, {other, run_kit_data}, {run_kit_data, other}};
    uint64_t digests[6];
    for (int i = 0; i < 6; i++) {
        struct grt_supervised *run = run_of(PAIRS("normalize=true"), rows[i].data, rows[i].judged);
        assert_non_null(run);
        digests[i] = run->data_digest;
        struct grt_supervised_info info = grt_supervised_info(run);
        uint64_t judged = !rows[i].judged ? 4 : rows[i].judged == run_kit_data ? 40 : 24;
        assert_int_equal(info.data.part_rows[GRT_PART_VALIDATION], judged);
        assert_int_equal(grt_loader_info(run->check_loader).rows, judged);
        // Both are seen alike.
        if (rows[i].judged) {
            for (int k = 0; k < 3; k++) {
                assert_true(run->apart.info.mean[k] == run->task.info.mean[k]);
                assert_true(run->apart.info.std[k] == run->task.info.std[k]);
            }
            assert_int_equal(info.epoch_rows, rows[i].data == other ? 24 : 40);
        }
        grt_supervised_destroy(&run);
        for (int k = 0; k < i; k++) {
            assert_int_equal(digests[k] == digests[i], i == 5 && k == 1);
        }
    }
    // Targets of another name are named.
    struct grt_supervised *run =
        run_of(PAIRS("targets=z", "validation_targets=y"), run_kit_data, other);
    assert_non_null(run);
    assert_string_equal(run->apart.config.targets.values[0], "y");
    assert_string_equal(run->task.config.targets.values[0], "z");
    grt_supervised_destroy(&run);
    TEST_REFUSED(run_of(PAIRS("validation_targets=none"), run_kit_data, other), GRT_BAD_DATA,
                 "none");
    run_kit_end();
}

// Images on their side are others, though they have as many pixels. Of classes in two files nobody
// says which is the most frequent one.
static void images_of_two_files(void **state) {
    (void)state;
    begin();
    static double y[24];
    for (int i = 0; i < 24; i++) {
        y[i] = i % 3;
    }
    static const uint64_t sides[][3] = {{4, 6, 3}, {6, 4, 3}, {4, 5, 3}, {4, 6, 1}, {4, 6, 3}};
    for (int i = 0; i < 5; i++) {
        const char *path = i == 0 ? run_kit_data : other;
        data_kit_write(path, true,
                       &(struct data_kit_set){
                           .name = "x", .shape = {24, sides[i][0], sides[i][1], sides[i][2]}});
        data_kit_write(
            path, false,
            &(struct data_kit_set){.name = "y", .type = H5T_STD_I32LE, .shape = {24}, .data = y});
        if (i == 0) {
            continue;
        }
        if (i < 4) {
            char want[320];
            snprintf(want, sizeof want,
                     "%s: its samples have %u numbers and 1 targets, and those of %s 72 and 1",
                     other, (unsigned)(sides[i][0] * sides[i][1] * sides[i][2]), run_kit_data);
            TEST_REFUSED(run_of(NULL, run_kit_data, other), GRT_BAD_DATA, want);
            continue;
        }
        struct grt_supervised *run = run_of(NULL, run_kit_data, other);
        assert_non_null(run);
        assert_true(grt_supervised_info(run).baseline < 0);
        grt_supervised_destroy(&run);
        run = run_of(NULL, run_kit_data, NULL);
        assert_non_null(run);
        assert_true(grt_supervised_info(run).baseline >= 0);
        grt_supervised_destroy(&run);
    }
    run_kit_end();
}

// Rows for the validation are on the device too, and are planned for.
static void memory_of_two_files(void **state) {
    (void)state;
    begin();
    write_numbers(run_kit_data, 40, 9, 0);
    write_numbers(other, 40000, 9, 500);
    struct grt_dev *usual = test.dev;
    test.dev = grt_dev_create(grt_dev_desc(.device = "ref:0", .mem_limit = 1000000));
    assert_non_null(test.dev);
    TEST_REFUSED(run_of(PAIRS("cache=device"), run_kit_data, other), GRT_NO_MEMORY,
                 "the model does not fit: even one sample at a time needs more than the 0.0 MB "
                 "that may be taken");
    struct grt_supervised *run = run_of(PAIRS("cache=ram"), run_kit_data, other);
    assert_non_null(run);
    assert_string_equal(run->apart.config.cache, "ram");
    grt_supervised_destroy(&run);
    grt_dev_destroy(&test.dev);
    test.dev = usual;
    run_kit_end();
}

// ---- samples that weigh nothing ----

struct losses {
    double step[40], trained[40];
    uint64_t stop_at, at;
};

static void keep(void *context, const struct grt_run_report *r) {
    struct losses *l = context;
    l->at = r->step;
    if (r->news == GRT_RUN_NEWS_ROW && r->row->event == GRT_RUN_TRAIN) {
        l->step[r->step] = r->row->numbers[GRT_FIELD_LOSS];
        assert_true((r->row->numbers[GRT_FIELD_GRAD_NORM] == 0) == (r->step % 5 == 1));
    }
    if (r->news == GRT_RUN_NEWS_ROW && r->row->event == GRT_RUN_EVALUATE) {
        l->trained[r->step] = r->row->numbers[GRT_FIELD_TRAIN_LOSS];
    }
}

static bool stops(void *context) {
    const struct losses *l = context;
    return l->stop_at > 0 && l->at >= l->stop_at;
}

static struct losses learn(const char *dir, const char *log, bool resume, uint64_t stop_at) {
    struct losses l = {.stop_at = stop_at};
    struct grt_config c = run_kit_config(
        dir, PAIRS("sample_weights=w", "shuffle=false", log, "batch_size=8", "validation_split=0"));
    struct grt_supervised *run =
        grt_supervised_create(&(struct grt_supervised_desc){.dev = test.dev,
                                                            .config = &c,
                                                            .resume = resume,
                                                            .lockstep = true,
                                                            .stop = stops,
                                                            .report = keep,
                                                            .context = &l});
    assert_non_null(run);
    assert_int_equal(grt_run_go(grt_supervised_driver(run)),
                     stop_at ? GRT_ENDED_SIGNAL : GRT_ENDED_EPOCHS);
    grt_supervised_destroy(&run);
    return l;
}

static double mean(const double *step, int first, int last) {
    double sum = 0;
    for (int i = first; i <= last; i++) {
        sum += step[i] / (last - first + 1);
    }
    return sum;
}

// The first of five steps of an epoch has samples without weight: it is no part of any mean, of
// this epoch or of the next, also where the run was stopped behind it.
static void steps_without_weight(void **state) {
    (void)state;
    begin();
    enum { ROWS = 40 };
    static double w[ROWS];
    write_numbers(run_kit_data, ROWS, 3, 0);
    for (int i = 0; i < ROWS; i++) {
        w[i] = i < 8 ? 0 : 1;
    }
    data_kit_write(run_kit_data, false,
                   &(struct data_kit_set){.name = "w", .shape = {ROWS}, .data = w});
    struct losses each = learn("each", "log_interval=1", false, 0);
    for (int step = 1; step <= 10; step++) {
        assert_true((each.step[step] == 0) == (step % 5 == 1));
    }
    struct losses three = learn("three", "log_interval=3", false, 0);
    assert_true(fabs(three.step[3] - mean(each.step, 2, 3)) < 1e-6);
    assert_true(fabs(three.step[5] - mean(each.step, 4, 5)) < 1e-6);
    assert_true(three.step[6] == 0);  // it alone
    assert_true(fabs(three.step[9] - mean(each.step, 7, 9)) < 1e-6);
    const struct losses *all[] = {&each, &three};
    for (int i = 0; i < 2; i++) {
        assert_true(fabs(all[i]->trained[5] - mean(each.step, 2, 5)) < 1e-6);
        assert_true(fabs(all[i]->trained[10] - mean(each.step, 7, 10)) < 1e-6);
    }
    for (uint64_t stop = 1; stop <= 6; stop += 5) {
        char dir[16];
        snprintf(dir, sizeof dir, "part%u", (unsigned)stop);
        struct losses part = learn(dir, "log_interval=1", false, stop);
        part = learn(dir, "log_interval=1", true, 0);
        int end = stop == 1 ? 5 : 10;
        assert_true(fabs(part.trained[end] - mean(each.step, end - 3, end)) < 1e-6);
    }
    run_kit_end();
}

// ---- several losses ----

static struct grt_module *make_linear(const void *of) {
    return grt_linear_create(of);
}

// Each is told without its weight.
static void parts_of_an_evaluation(void **state) {
    (void)state;
    struct grt_linear_desc linear = {.outputs = 3};
    struct grt_learner_desc desc = {.make = make_linear,
                                    .of = &linear,
                                    .input = {1, {3}},
                                    .outputs = 3,
                                    .losses = {{GRT_LOSS_MSE, 1, 0.5f}, {GRT_LOSS_L1, 2, 4}},
                                    .loss_count = 2,
                                    .optim = grt_optim_defaults(GRT_OPTIM_SGD),
                                    .batch = 4};
    struct grt_learner *l = grt_learner_create(test.dev, &desc);
    assert_non_null(l);
    const struct grt_learn_state s = {
        .eval_samples = 8, .eval_loss = 4, .eval_hits = 2, .eval_parts = {3, 16}};
    struct grt_evaluation e = {0};
    supervised_tally(l, &s, &e);
    assert_true(e.loss_count == 2 && e.loss == 0.5);
    assert_true(e.losses[0] == 3 / 0.5 / 8 && e.losses[1] == 16.0 / 4 / 8);
    assert_true(e.accuracy == -1 && e.top5 == -1);
    supervised_tally(l, &(struct grt_learn_state){0}, &e);
    assert_true(isnan(e.loss) && isnan(e.losses[0]) && isnan(e.losses[1]));
    grt_learner_destroy(&l);
}

// ---- and besides ----

struct between {
    double step[40], newest[40];  // of the log, and between its rows; 0: none
    uint32_t notes;
    char note[160];
};

static void keep_between(void *context, const struct grt_run_report *r) {
    struct between *b = context;
    bool told = r->news == GRT_RUN_NEWS_ROW && r->row->event == GRT_RUN_TRAIN;
    if (told || r->news == GRT_RUN_NEWS_PROGRESS) {
        (told ? b->step : b->newest)[r->step] = r->row->numbers[GRT_FIELD_LOSS];
    }
    if (r->news == GRT_RUN_NEWS_NOTE) {
        b->notes++;
        snprintf(b->note, sizeof b->note, "%.159s", r->text);
    }
}

// Between the rows of the log progress has the loss of the newest step, and no mean.
static void progress_between_rows(void **state) {
    (void)state;
    begin();
    struct between of[2] = {{{0}}};
    for (int i = 0; i < 2; i++) {
        struct grt_config c =
            run_kit_config(i ? "rare" : "each", PAIRS(i ? "log_interval=6" : "log_interval=1",
                                                      "keep=2", "checkpoint_interval=2"));
        struct grt_supervised *run =
            grt_supervised_create(&(struct grt_supervised_desc){.dev = test.dev,
                                                                .config = &c,
                                                                .lockstep = true,
                                                                .report = keep_between,
                                                                .context = &of[i]});
        assert_non_null(run);
        assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_EPOCHS);
        grt_supervised_destroy(&run);
    }
    uint32_t found = 0;
    for (int step = 1; step <= 34; step++) {
        bool told = of[1].newest[step] != 0;
        found += told;
        assert_true(!told || of[1].newest[step] == of[0].step[step]);
        assert_true(!told || (step % 6 != 0 && step % 17 != 0));
        assert_true(of[0].newest[step] == 0);
    }
    assert_true(found >= 8);
    // What validations left is no part of a checkpoint.
    char dir[96];
    snprintf(dir, sizeof dir, "%s/each", run_kit_folder);
    struct grt_archive *a = grt_checkpoint_newest(dir);
    assert_non_null(a);
    struct grt_learn_state left;
    memcpy(&left, grt_archive_find(a, "state/state")->data, sizeof left);
    assert_true(left.eval_loss == 0 && left.eval_samples == 0 && left.eval_hits == 0);
    assert_true(left.eval_near == 0 && left.cursor == 0 && left.epoch == 0 && left.steps == 34);
    // From a file that is named, and not from the newest of the folder, nor with a word of it.
    for (int full = 0; full < 2; full++) {
        struct between b = {.notes = 0};
        struct grt_config c = run_kit_config(full ? "rare" : "empty", PAIRS("epochs=3"));
        assert_true(grt_archive_set_whole(a, "step", 17) && grt_archive_set_whole(a, "epoch", 1));
        struct grt_supervised *run =
            grt_supervised_create(&(struct grt_supervised_desc){.dev = test.dev,
                                                                .config = &c,
                                                                .resume = true,
                                                                .resume_from = a,
                                                                .report = keep_between,
                                                                .context = &b});
        assert_non_null(run);
        assert_int_equal(grt_run_info(grt_supervised_driver(run)).step, 17);
        assert_int_equal(b.notes, 0);
        grt_supervised_destroy(&run);
    }
    grt_archive_destroy(&a);
    run_kit_end();
}

// Of one rank that shares nothing steps are those of ranks: its one micro-batch is cut as
// `accumulate` says. Where samples weigh there is no noise to tell of.
static void one_rank(void **state) {
    (void)state;
    begin();
    write_numbers(run_kit_data, 40, 3, 0);
    static double w[40];
    for (int i = 0; i < 40; i++) {
        w[i] = 1 + i % 2;
    }
    data_kit_write(run_kit_data, false,
                   &(struct data_kit_set){.name = "w", .shape = {40}, .data = w});
    struct grt_comm *single = grt_comm_start(grt_comm_desc(.alone = true));
    assert_non_null(single);
    static const struct {
        const char *pairs[4];
        uint32_t parts, leaf, accumulate;
        bool weighted;
    } rows[] = {
        {{"batch_size=8", "accumulate=2"}, 1, 16, 2, false},
        {{"batch_size=8", "accumulate=2", "micro_batches=2"}, 2, 8, 1, false},
        {{"batch_size=8", "accumulate=2", "micro_batches=8"}, 8, 2, 1, false},
        {{"batch_size=3", "accumulate=4", "micro_batches=2"}, 2, 6, 2, false},
        {{"batch_size=4", "accumulate=3", "micro_batches=2"}, 2, 6, 2, false},
        {{"batch_size=8", "sample_weights=w"}, 1, 8, 1, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *pairs[5] = {NULL};
        memcpy(pairs, rows[i].pairs, sizeof rows[i].pairs);
        struct grt_config c = run_kit_config("run", pairs);
        struct grt_supervised *run = grt_supervised_create(
            &(struct grt_supervised_desc){.dev = test.dev, .config = &c, .comm = single});
        assert_non_null(run);
        struct grt_supervised_info info = grt_supervised_info(run);
        assert_int_equal(info.micro_batches, rows[i].parts);
        assert_int_equal(info.learner.batch, rows[i].leaf);
        assert_int_equal(info.learner.accumulate, rows[i].accumulate);
        assert_int_equal(info.step_rows, rows[i].parts * rows[i].leaf);
        assert_int_equal(run->ranks->weighted, rows[i].weighted);
        grt_supervised_destroy(&run);
    }
    grt_comm_end(&single, true);
    run_kit_end();
}

static const struct CMUnitTest cases[] = {
    REF_CASE(both_files),
    REF_CASE(images_of_two_files),
    REF_CASE(memory_of_two_files),
    REF_CASE(steps_without_weight),
    REF_CASE(parts_of_an_evaluation),
    REF_CASE(progress_between_rows),
    REF_CASE(one_rank),
};
TEST_SUITE(validated, false, cases);
