// SPDX-License-Identifier: Apache-2.0
// What epochs come to where data do not behave: validation that rises, short batches, rows left
// out.
#include "kits/data_kit.h"
#include "kits/run_kit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gpurt/checkpoint.h"
#include "gpurt/task.h"
#include "run/feed/feed_parts.h"
#include "run/supervised/supervised_parts.h"

static uint32_t least_of(const double *numbers, uint32_t count) {
    uint32_t least = 0;
    for (uint32_t i = 1; i < count; i++) {
        least = numbers[i] < numbers[least] ? i : least;
    }
    return least;
}

// Noise is learnt by heart: the training loss falls to the end, that of the validation rises from
// some epoch on. That epoch is the best, before a stop and after it.
static void the_best_is_not_the_last(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    assert_true(grt_data_make(
        grt_make_desc(.path = run_kit_data, .samples = 80, .features = 4, .noise = 1, .seed = 1)));
    const char *const pairs[] = {"epochs=10",           "hidden=32",
                                 "learning_rate=0.005", "validation_split=0.25",
                                 "schedule=constant",   NULL};
    const uint64_t per_epoch = 4;  // 60 rows, 16 at a time
    struct run_kit_epochs whole = {0};
    struct grt_config c = run_kit_config("heart", pairs);
    assert_int_equal(run_kit_train(&c, false, &whole), GRT_ENDED_EPOCHS);
    assert_int_equal(whole.count, 10);
    uint32_t best = least_of(whole.judged, 10);
    assert_int_equal(least_of(whole.trained, 10), 9);
    assert_in_range(best, 1, 6);
    struct run_kit_epochs part = {.stop_at = (best + 2) * per_epoch + 1};
    struct grt_config again = run_kit_config("again", pairs);
    assert_int_equal(run_kit_train(&again, false, &part), GRT_ENDED_SIGNAL);
    part = (struct run_kit_epochs){0};
    assert_int_equal(run_kit_train(&again, true, &part), GRT_ENDED_EPOCHS);
    const char *const dirs[] = {"heart", "again"};
    for (int k = 0; k < 2; k++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s/best.h5", run_kit_folder, dirs[k]);
        struct grt_archive *archive = grt_checkpoint_load(path);
        assert_non_null(archive);
        assert_int_equal(grt_archive_whole(archive, "step", 0), (best + 1) * per_epoch);
        grt_archive_destroy(&archive);
    }
    run_kit_end();
}

// With a rate of almost nothing every way to cut an epoch has the same mean over its rows, trained
// on and validated: a short last batch counts by its rows.
static void short_batches_count_by_their_rows(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    // 270 rows and 30: whole; 200 and 70; 256 and 14, of which the validation fills no batch; 27
    // and 3 of each.
    const char *const batches[] = {"batch_size=270", "batch_size=200", "batch_size=256",
                                   "batch_size=29"};
    const char *const ways[] = {"cache=none", "cache=device"};
    struct run_kit_epochs want = {0};
    for (int k = 0; k < 8; k++) {
        struct run_kit_epochs e = {0};
        char dir[16];
        snprintf(dir, sizeof dir, "short%d", k);
        struct grt_config c = run_kit_config(
            dir, PAIRS(batches[k / 2], ways[k % 2], "epochs=1", "learning_rate=1e-12"));
        assert_int_equal(run_kit_train(&c, false, &e), GRT_ENDED_EPOCHS);
        want = k == 0 ? e : want;
        assert_int_equal(e.count, 1);
        assert_true(fabs(e.trained[0] - want.trained[0]) < 1e-5 * want.trained[0]);
        assert_true(fabs(e.judged[0] - want.judged[0]) < 1e-5 * want.judged[0]);
    }
    run_kit_end();
}

// Rows that are left out are nobody's, be the others on the device or read one by one.
static void rows_left_out(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    enum { ROWS = 400 };
    static double x[3 * ROWS], y[ROWS];
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < 3; k++) {
            x[3 * i + k] = data_kit_value(3 * (uint64_t)i + (uint64_t)k) / 251;
        }
        y[i] = i % 3 == 1 ? NAN : x[3 * i] - x[3 * i + 2];
    }
    data_kit_write(run_kit_data, true,
                   &(struct data_kit_set){.name = "x", .shape = {ROWS, 3}, .data = x});
    data_kit_write(run_kit_data, false,
                   &(struct data_kit_set){.name = "y", .shape = {ROWS}, .data = y});
    struct run_kit_epochs none = {0}, device = {0};
    struct grt_config c = run_kit_config("none", PAIRS("on_nan=drop", "cache=none"));
    assert_int_equal(run_kit_train(&c, false, &none), GRT_ENDED_EPOCHS);
    c = run_kit_config("device", PAIRS("on_nan=drop", "cache=device"));
    assert_int_equal(run_kit_train(&c, false, &device), GRT_ENDED_EPOCHS);
    // 267 rows, 240 of them to train on: 15 steps an epoch.
    assert_int_equal(none.step, 30);
    assert_true(none.count == 2 && isfinite(none.judged[1]));
    run_kit_equal("none/step-000000000030.h5", "device/step-000000000030.h5");
    run_kit_end();
}

// Without a batch size it is the profile's, or what few rows make of it: as many equal parts as are
// accumulated.
static void batches_of_few_rows(void **state) {
    (void)state;
    static const struct {
        uint64_t rows;
        const char *accumulate;
        uint64_t batch;
    } cases[] = {{20, "accumulate=1", 20}, {20, "accumulate=3", 6}, {5, "accumulate=4", 1},
                 {4, "accumulate=4", 1},   {3, "accumulate=4", 1},  {9000, "accumulate=1", 0}};
    const struct grt_profile *profile = grt_dev_profile(test.dev);
    uint64_t usual = grt_profile_whole(profile, GRT_KEY_SMALL_BATCH);
    assert_in_range(usual, 21, 8999);
    run_kit_begin(GRT_MAKE_REGRESSION);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const pairs[] = {"hidden=8", "depth=2", "validation_split=0",
                                     cases[i].accumulate};
        struct grt_config c;
        struct grt_task task;
        assert_true(grt_data_make(
            grt_make_desc(.path = run_kit_data, .samples = cases[i].rows, .features = 3)));
        grt_config_init(&c);
        assert_true(grt_config_set(&c, GRT_CONFIG_DATA, run_kit_data));
        for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k++) {
            assert_true(grt_config_override(&c, pairs[k]));
        }
        assert_true(grt_task_open(&task, &c, profile, NULL));
        assert_int_equal(task.config.batch_size, cases[i].batch ? cases[i].batch : usual);
        grt_task_close(&task);
    }
    run_kit_end();
}

// ---- rows of steps ----

enum { STEPS = 34, FIELDS = 6 };
static const enum grt_run_field told_fields[FIELDS] = {GRT_FIELD_LOSS,       GRT_FIELD_GRAD_NORM,
                                                       GRT_FIELD_LR,         GRT_FIELD_EPOCH,
                                                       GRT_FIELD_LOSS_SCALE, GRT_FIELD_SKIPPED};

struct told {
    double numbers[STEPS + 1][FIELDS];
    uint32_t count;
};

static void on_step(void *context, const struct grt_run_report *r) {
    struct told *told = context;
    if (r->news == GRT_RUN_NEWS_ROW && r->row->event == GRT_RUN_TRAIN) {
        assert_true(r->step >= 1 && r->step <= STEPS);
        told->count++;
        for (int i = 0; i < FIELDS; i++) {
            assert_true(grt_run_row_has(r->row, told_fields[i]));
            told->numbers[r->step][i] = r->row->numbers[told_fields[i]];
        }
    }
}

// Steps are settled many at a time, or one by one: the row of each is the same. The scale of the
// loss falls with steps that are left out and rises behind good ones.
static void rows_of_steps_told_at_once(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    static struct told told[2];
    for (int one = 0; one < 2; one++) {
        struct grt_config c =
            run_kit_config(one ? "one" : "many", PAIRS("precision=f16", "loss_scale=67108864",
                                                       "growth_interval=3", "log_interval=1"));
        told[one] = (struct told){.count = 0};
        struct grt_supervised *run =
            grt_supervised_create(&(struct grt_supervised_desc){.dev = test.dev,
                                                                .config = &c,
                                                                .lockstep = one > 0,
                                                                .report = on_step,
                                                                .context = &told[one]});
        assert_non_null(run);
        assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_EPOCHS);
        grt_supervised_destroy(&run);
        assert_int_equal(told[one].count, STEPS);
    }
    uint32_t falls = 0, rises = 0;
    for (int step = 1; step <= STEPS; step++) {
        const double *many = told[0].numbers[step], *alone = told[1].numbers[step];
        for (int i = 0; i < FIELDS; i++) {
            // A step that is left out has no norm.
            if (many[i] != alone[i] && !(isnan(many[i]) && isnan(alone[i]))) {
                fail_msg("step %d, number %d: %g and, alone, %g", step, i, many[i], alone[i]);
            }
        }
        double before = step > 1 ? told[0].numbers[step - 1][4] : 67108864;
        double left_out = many[5] - (step > 1 ? told[0].numbers[step - 1][5] : 0);
        falls += many[4] == before / 2 && left_out == 1;
        rises += many[4] == 2 * before && left_out == 0;
        assert_true(many[4] == before || many[4] == before / 2 || many[4] == 2 * before);
    }
    assert_true(falls >= 3 && rises >= 2);
    run_kit_end();
}

// ---- back to the beginning ----

struct first_steps {
    double loss;  // of the first step, the first time
    uint32_t count, rollbacks;
};

static void on_first(void *context, const struct grt_run_report *r) {
    struct first_steps *f = context;
    if (r->news == GRT_RUN_NEWS_ROW && r->row->event == GRT_RUN_TRAIN && r->step == 1) {
        double loss = r->row->numbers[GRT_FIELD_LOSS];
        f->loss = f->count++ == 0 ? loss : f->loss;
        assert_true(loss == f->loss);
    }
    f->rollbacks += r->news == GRT_RUN_NEWS_ROW && r->row->event == GRT_RUN_ROLLBACK;
}

// A run that goes back before its first checkpoint begins with the model that it began with, or as
// it was drawn: its first step has the same loss each time.
static void back_to_the_beginning(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    struct run_kit_epochs e = {0};
    struct grt_config c = run_kit_config("model", PAIRS("learning_rate=0.01", "epochs=3"));
    assert_int_equal(run_kit_train(&c, false, &e), GRT_ENDED_EPOCHS);
    double losses[2];
    for (int from = 0; from < 2; from++) {
        char path[128];
        struct first_steps f = {0};
        snprintf(path, sizeof path, "%s/model/best.h5", run_kit_folder);
        struct grt_archive *model = from ? grt_checkpoint_load(path) : NULL;
        assert_true(model || !from);
        c = run_kit_config(from ? "from" : "drawn",
                           PAIRS("optimizer=sgd", "momentum=0.9", "learning_rate=1000",
                                 "on_nan_loss=rollback", "log_interval=1"));
        struct grt_supervised *run = grt_supervised_create(&(struct grt_supervised_desc){
            .dev = test.dev, .config = &c, .from = model, .report = on_first, .context = &f});
        assert_non_null(run);
        assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_NONFINITE);
        grt_supervised_destroy(&run);
        grt_archive_destroy(&model);
        assert_int_equal(f.rollbacks, 3);
        assert_int_equal(f.count, 4);
        losses[from] = f.loss;
    }
    assert_true(losses[1] < 0.5 * losses[0]);
    run_kit_end();
}

// What every evaluation said.
struct said {
    uint32_t count;
    double numbers[4][3];
};

static void on_row(void *context, const struct grt_run_report *r) {
    static const enum grt_run_field fields[] = {GRT_FIELD_LOSS, GRT_FIELD_ACCURACY, GRT_FIELD_TOP5};
    struct said *said = context;
    if (r->news == GRT_RUN_NEWS_ROW && r->row->event == GRT_RUN_EVALUATE && said->count < 4) {
        for (int k = 0; k < 3; k++) {
            assert_true(k > 0 || grt_run_row_has(r->row, fields[k]));
            said->numbers[said->count][k] = r->row->numbers[fields[k]];
        }
        said->count++;
    }
}

// A network that learns nothing is judged alike in every epoch: nothing of one evaluation is left
// for the next, however data come. Numbers are judged by rows that were drawn once, in whole
// batches and a rest.
static void judged_alike(enum grt_make make) {
    bool classes = make == GRT_MAKE_CLASSIFICATION;
    run_kit_begin(GRT_MAKE_REGRESSION);
    assert_true(grt_data_make(grt_make_desc(.path = run_kit_data, .make = make, .samples = 300,
                                            .features = 4, .classes = classes ? 9 : 0)));
    const char *const ways[] = {"cache=none", "cache=device"};
    struct said said[2] = {{0}};
    for (int k = 0; k < 2; k++) {
        struct grt_config c =
            run_kit_config(k ? "device" : "none",
                           PAIRS(ways[k], "epochs=3", "learning_rate=1e-12", "batch_size=32",
                                 "validation_split=0.25", classes ? "seed=1" : "hidden=16"));
        struct grt_supervised *run = grt_supervised_create(&(struct grt_supervised_desc){
            .dev = test.dev, .config = &c, .report = on_row, .context = &said[k]});
        assert_non_null(run);
        assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_EPOCHS);
        grt_supervised_destroy(&run);
        assert_int_equal(said[k].count, 3);
        for (int i = 0; i < 3; i++) {
            const double *now = said[k].numbers[i], *first = said[0].numbers[0];
            assert_true(fabs(now[0] - first[0]) < 1e-5 * first[0]);
            if (classes) {
                assert_true(now[1] == first[1] && now[2] == first[2]);
                assert_true(now[1] <= now[2] && now[2] < 1);
            }
        }
    }
    run_kit_end();
}

static void evaluations_begin_anew(void **state) {
    (void)state;
    judged_alike(GRT_MAKE_CLASSIFICATION);
    judged_alike(GRT_MAKE_REGRESSION);
}

// Steps that were queued behind each epoch when its last one was told.
struct behind {
    const struct grt_supervised *run;
    uint32_t count;
    uint64_t steps[8];
};

static void on_last(void *context, const struct grt_run_report *r) {
    struct behind *b = context;
    if (r->news == GRT_RUN_NEWS_ROW && r->row->event == GRT_RUN_TRAIN &&
        r->step % b->run->steps_per_epoch == 0) {
        assert_true(b->count < 8);
        b->steps[b->count++] = b->run->loop.queued - r->step;
    }
}

// Rows on the device and a checkpoint behind each epoch, with no validation: the device has the
// next epoch's steps before the last one's tensors are read. Epochs of whole batches, and with a
// rest.
static void next_epoch_is_on_its_way(void **state) {
    (void)state;
    static const char *const batches[] = {"batch_size=30", "batch_size=32", "batch_size=150"};
    run_kit_begin(GRT_MAKE_REGRESSION);
    for (int k = 0; k < 3; k++) {
        struct behind b = {0};
        struct grt_config c = run_kit_config(
            batches[k], PAIRS("validation_split=0", "cache=device", "epochs=5", batches[k]));
        struct grt_supervised *run = grt_supervised_create(&(struct grt_supervised_desc){
            .dev = test.dev, .config = &c, .report = on_last, .context = &b});
        assert_non_null(run);
        b.run = run;
        assert_int_equal(run->steps_per_epoch, k < 2 ? 10 : 2);
        // Two steps by themselves or in one graph: two whole snapshots may be on their way.
        if (k == 2) {
            assert_int_equal(grt_feed_graphs(run->train), 2);
        }
        assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_EPOCHS);
        grt_supervised_destroy(&run);
        assert_int_equal(b.count, 5);
        for (uint32_t i = 0; i < 4; i++) {
            assert_true(b.steps[i] > 0);
        }
        assert_int_equal(b.steps[4], 0);
    }
    // Of large ones one is: the last step is no part of another's graph, and both have the same.
    struct grt_config c =
        run_kit_config("large", PAIRS("validation_split=0", "cache=device", "epochs=2",
                                      "batch_size=150", "hidden=1024", "depth=3"));
    struct grt_supervised *run = grt_supervised_create(
        &(struct grt_supervised_desc){.dev = test.dev, .config = &c, .report = on_last});
    assert_non_null(run);
    assert_int_equal(grt_feed_graphs(run->train), 1);
    grt_supervised_destroy(&run);
    run_kit_end();
}

// An evaluation all at once, in steps, and all at once again comes to the same bits: the numbers of
// its rows are drawn anew where others were drawn in their place. Fused kernels in f32, which read
// rows by their numbers, are for CPUs.
static void evaluations_in_steps(void **state) {
    (void)state;
    bool software = grt_dev_info(test.dev)->caps.software;
    run_kit_begin(GRT_MAKE_REGRESSION);
    struct grt_config c =
        run_kit_config("steps", PAIRS("validation_split=0.25", "cache=device", "batch_size=16",
                                      "hidden=16", software ? "precision=f32" : "precision=f16"));
    struct grt_supervised *run =
        grt_supervised_create(&(struct grt_supervised_desc){.dev = test.dev, .config = &c});
    assert_non_null(run);
    uint64_t batches = grt_loader_info(run->check_loader).batches_per_epoch;
    assert_true(batches > 2 && (run->check->rows.drawn.buf || !software));
    static const uint32_t strides[] = {GRT_HISTORY, GRT_HISTORY, 1, GRT_HISTORY, 2, 3, GRT_HISTORY};
    float first = 0;
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++) {
        struct grt_feed_done done = {0};
        struct grt_learn_state s;
        while (!done.epoch_ended) {
            assert_true(grt_feed_run(run->check, strides[i], true, &done));
        }
        assert_true(grt_learner_state(run->learner, &s));
        first = i == 0 ? s.eval_loss : first;
        assert_true(s.eval_samples == 75 && s.eval_loss > 0);
        assert_memory_equal(&s.eval_loss, &first, sizeof first);
        // From the second batch on, and not to the end.
        struct grt_loader_position at = grt_feed_position(run->check);
        at.batch = 1;
        assert_true(i % 2 == 0 ||
                    (grt_feed_seek(run->check, at) && grt_feed_run(run->check, 2, true, &done)));
        at.batch = 0;
        assert_true(grt_feed_seek(run->check, at));
    }
    grt_supervised_destroy(&run);
    run_kit_end();
}

// Checkpoints between epochs, the best of each epoch and patience: snapshots are lent to who
// writes, and those that are queued meanwhile have places.
static void checkpoints_between_epochs(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    for (int k = 0; k < 3; k++) {
        static const char *const intervals[] = {"checkpoint_interval=4", "checkpoint_interval=5",
                                                "checkpoint_interval=7"};
        struct grt_config c =
            run_kit_config(intervals[k], PAIRS("validation_split=0.1", "cache=device", "epochs=30",
                                               "batch_size=30", "patience=29", intervals[k]));
        struct grt_supervised *run =
            grt_supervised_create(&(struct grt_supervised_desc){.dev = test.dev, .config = &c});
        assert_non_null(run);
        assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_EPOCHS);
        grt_supervised_destroy(&run);
    }
    run_kit_end();
}

// A CPU driver compiles when a kernel is launched first: the first validation has nothing behind
// it, which would be told a part of that time. Later ones have the next epoch.
static void first_validation_alone(void **state) {
    (void)state;
    struct behind b = {0};
    run_kit_begin(GRT_MAKE_REGRESSION);
    struct grt_config c =
        run_kit_config("run", PAIRS("validation_split=0.2", "cache=device", "epochs=4"));
    struct grt_supervised *run = grt_supervised_create(&(struct grt_supervised_desc){
        .dev = test.dev, .config = &c, .report = on_last, .context = &b});
    assert_non_null(run);
    b.run = run;
    assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_EPOCHS);
    grt_supervised_destroy(&run);
    assert_int_equal(b.count, 4);
    assert_int_equal(b.steps[0] == 0, grt_dev_info(test.dev)->caps.software);
    assert_true(b.steps[1] > 0 && b.steps[2] > 0 && b.steps[3] == 0);
    run_kit_end();
}

// A network that says the same of every sample, with samples that weigh: all there is to say of it
// follows from the classes and the weights. Of equal numbers the first is the largest.
static void judged_by_hand(void **state) {
    (void)state;
    enum { ROWS = 60, CLASSES = 9 };
    static double x[3 * ROWS], y[ROWS], w[ROWS];
    double all = 0, first = 0, near = 0, of[CLASSES] = {0}, most = 0;
    uint64_t counts[CLASSES] = {0};
    run_kit_begin(GRT_MAKE_REGRESSION);
    for (int i = 0; i < ROWS; i++) {
        int class = (3 * i + i / 7) % CLASSES;
        x[3 * i] = x[3 * i + 1] = x[3 * i + 2] = i;
        y[i] = class;
        w[i] = i % 4 * 0.5;
        all += w[i];
        first += class == 0 ? w[i] : 0;
        near += class < 5 ? w[i] : 0;
        of[class] += w[i];
        counts[class]++;
    }
    data_kit_write(run_kit_data, true,
                   &(struct data_kit_set){.name = "x", .shape = {ROWS, 3}, .data = x});
    data_kit_write(
        run_kit_data, false,
        &(struct data_kit_set){.name = "y", .type = H5T_STD_I32LE, .shape = {ROWS}, .data = y});
    data_kit_write(run_kit_data, false,
                   &(struct data_kit_set){.name = "w", .shape = {ROWS}, .data = w});
    struct run_kit_epochs e = {0};
    struct grt_config c = run_kit_config("run", PAIRS("sample_weights=w", "epochs=1")), use;
    assert_int_equal(run_kit_train(&c, false, &e), GRT_ENDED_EPOCHS);
    struct grt_archive *model = grt_checkpoint_newest(c.checkpoint_dir);
    assert_non_null(model);
    for (uint32_t i = 0; i < model->tensor_count; i++) {
        if (strncmp(model->tensors[i].name, "model/", 6) == 0) {
            memset(model->tensors[i].data, 0, model->tensors[i].bytes);
        }
    }
    grt_config_init(&use);
    assert_true(grt_config_set(&use, GRT_CONFIG_DATA, run_kit_data));
    struct grt_evaluation told;
    assert_true(grt_evaluate(test.dev, model, &use, GRT_PART_ALL, NULL, &told));
    assert_int_equal(told.samples, ROWS);
    assert_true(fabs(told.loss - log(CLASSES)) < 1e-6);
    struct grt_classified *judged =
        grt_classified_create(test.dev, model, &use, GRT_PART_ALL, NULL);
    assert_non_null(judged);
    assert_int_equal(judged->evaluation.samples, ROWS);
    assert_true(fabs(judged->evaluation.loss - log(CLASSES)) < 1e-6);
    assert_true(fabs(judged->evaluation.accuracy - first / all) < 1e-6);
    assert_true(fabs(judged->evaluation.top5 - near / all) < 1e-6);
    for (int k = 0; k < CLASSES; k++) {
        most = fmax(most, of[k]);
        assert_int_equal(judged->confusion[k * CLASSES], counts[k]);
        assert_int_equal(judged->confusion[k * CLASSES + 1], 0);
    }
    assert_true(fabs(judged->baseline - most / all) < 1e-6);
    grt_classified_destroy(&judged);
    grt_archive_destroy(&model);
    run_kit_end();
}

// A clock that goes on where the run asks whether to stop, by so many seconds in each epoch.
struct paced {
    double now, at[4], rates[4];
    uint32_t epochs;
};
static const double paces[] = {64, 1, 8, 8};

static bool go_on(void *context) {
    struct paced *p = context;
    p->now += paces[p->epochs];
    test_clock_set(p->now);
    return false;
}

static void note_rate(void *context, const struct grt_run_report *r) {
    struct paced *p = context;
    if (r->news == GRT_RUN_NEWS_ROW && r->row->event == GRT_RUN_EVALUATE && p->epochs < 3) {
        p->rates[p->epochs++] = r->row->numbers[GRT_FIELD_SAMPLES_PER_S];
        p->at[p->epochs] = p->now;
    }
}

// The rate of an epoch is its samples over its own time, whatever those before it took.
static void rates_of_epochs(void **state) {
    (void)state;
    const double samples = 300;
    struct paced p = {.now = 1000};
    run_kit_begin(GRT_MAKE_REGRESSION);
    struct grt_config c = run_kit_config("run", PAIRS("epochs=3", "validation_split=0"));
    test_clock_set(p.now);
    struct grt_supervised *run =
        grt_supervised_create(&(struct grt_supervised_desc){.dev = test.dev,
                                                            .config = &c,
                                                            .lockstep = true,
                                                            .stop = go_on,
                                                            .report = note_rate,
                                                            .context = &p});
    enum grt_ending end = run ? grt_run_go(grt_supervised_driver(run)) : GRT_ENDED_FAILED;
    grt_supervised_destroy(&run);
    test_clock_set(-1);
    assert_int_equal(end, GRT_ENDED_EPOCHS);
    assert_int_equal(p.epochs, 3);
    // It was asked once or twice around the end of an epoch.
    for (int i = 1; i < 3; i++) {
        double seconds = p.at[i + 1] - p.at[i];
        assert_true(seconds > 8 * paces[i]);
        assert_true(fabs(samples / p.rates[i] - seconds) <= 2 * fmax(paces[i - 1], paces[i]));
    }
    run_kit_end();
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(batches_of_few_rows),
    TEST_CASE(the_best_is_not_the_last),
    TEST_CASE(short_batches_count_by_their_rows),
    TEST_CASE(rows_left_out),
    TEST_CASE(back_to_the_beginning),
    TEST_CASE(rows_of_steps_told_at_once),
    TEST_CASE(evaluations_begin_anew),
    TEST_CASE(judged_by_hand),
    TEST_CASE(next_epoch_is_on_its_way),
    TEST_CASE(evaluations_in_steps),
    TEST_CASE(checkpoints_between_epochs),
    TEST_CASE(first_validation_alone),
    TEST_CASE(rates_of_epochs),
};
TEST_SUITE(epochs, true, cases);
