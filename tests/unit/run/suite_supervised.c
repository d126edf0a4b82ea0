// SPDX-License-Identifier: Apache-2.0
// Supervised runs through the library: stopped and resumed to the same bits, the same bits for
// every way that data come, steps that are not finite, and trained models.
#include "kits/data_kit.h"
#include "kits/run_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "gpurt/make.h"
#include "gpurt/checkpoint.h"
#include "gpurt/supervised.h"
#include "run/run_parts.h"
#include "run/supervised/supervised_parts.h"

// 300 samples, 270 of them to train on: 17 steps an epoch, the last of 14 samples.
#define LAST "step-000000000034.h5"

static void resumed(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    const char *const precisions[] = {"precision=f32", "precision=f16", "precision=bf16"};
    for (uint32_t p = 0; p < (test.small ? 1 : 3); p++) {
        char whole_dir[16], part_dir[16];
        snprintf(whole_dir, sizeof whole_dir, "whole%u", p);
        snprintf(part_dir, sizeof part_dir, "part%u", p);
        struct run_kit_watch w = {0};
        struct grt_config c = run_kit_config(whole_dir, PAIRS(precisions[p]));
        assert_int_equal(run_kit_watched(&c, false, &w), GRT_ENDED_EPOCHS);
        assert_true(w.rows[GRT_RUN_EVALUATE] == 2 && w.step == 34);
        assert_true(w.last_loss < w.first_loss && w.accuracy < 0);
        // Stopped in the first epoch, then in the second, at places that are multiples of nothing,
        // and in the validation of each.
        struct grt_config part = run_kit_config(part_dir, PAIRS(precisions[p]));
        const uint64_t stops[] = {7, 17, 23, 34, 0};
        uint32_t first = p > 0 ? 2 : 0;
        for (uint32_t i = first; i < 5; i++) {
            struct run_kit_watch v = {.stop_at = stops[i]};
            enum grt_ending end = run_kit_watched(&part, i > first, &v);
            assert_int_equal(end, i < 4 ? GRT_ENDED_SIGNAL : GRT_ENDED_EPOCHS);
            assert_int_equal(v.rows[GRT_RUN_EVALUATE], first == 0 && i < 2 ? 0 : i == 3 ? 0 : 1);
            assert_int_equal(v.news[GRT_RUN_NEWS_RESUMED], i > first);
        }
        char a[64], b[64];
        snprintf(a, sizeof a, "%s/" LAST, whole_dir);
        snprintf(b, sizeof b, "%s/" LAST, part_dir);
        run_kit_equal(a, b);
        snprintf(a, sizeof a, "%s/best.h5", whole_dir);
        snprintf(b, sizeof b, "%s/best.h5", part_dir);
        run_kit_equal(a, b);
    }
    // All is done: nothing happens.
    struct run_kit_watch v = {0};
    struct grt_config c = run_kit_config("whole0", NULL);
    assert_int_equal(run_kit_watched(&c, true, &v), GRT_ENDED_EPOCHS);
    assert_int_equal(v.rows[GRT_RUN_TRAIN], 0);
    // Another run's settings are refused; more epochs, another rate and other types are not.
    const char *const others[] = {"seed=1",         "activation=tanh", "loss=huber",
                                  "normalize=true", "hidden=16",       "optimizer=sgd",
                                  "residual=true",  "shuffle=false",   "depth=1"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char key[32];
        snprintf(key, sizeof key, "%.*s=", (int)strcspn(others[i], "="), others[i]);
        c = run_kit_config("whole0", PAIRS(others[i]));
        TEST_REFUSED(run_kit_create(&c, true, &v), GRT_CONFIG, key);
    }
    c = run_kit_config("whole0", PAIRS("epochs=3", "learning_rate=0.01", "precision=f16"));
    assert_int_equal(run_kit_watched(&c, true, &v), GRT_ENDED_EPOCHS);
    run_kit_end();
}

static void ways_of_data(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    // Windows of other lengths, too: the batch behind each is on its way before it is over.
    const char *const ways[][3] = {
        {"cache=none", "num_workers=2", "log_interval=5"},
        {"cache=none", "num_workers=0", "log_interval=5"},
        {"pin_memory=false", "num_workers=1", "log_interval=5"},
        {"pin_memory=false", "num_workers=0", "log_interval=1"},
        {"persistent_workers=false", "num_workers=2", "log_interval=1"},
        {"cache=ram", "num_workers=0", "log_interval=100"},
        {"cache=device", "num_workers=0", "log_interval=5"},
        {"cache=auto", "num_workers=2", "log_interval=100"},
        {"cache=device", "checkpoint_interval=7", "log_interval=3"},
    };
    for (uint32_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char dir[16], file[64];
        struct run_kit_watch w = {0};
        snprintf(dir, sizeof dir, "way%u", i);
        struct grt_config c = run_kit_config(dir, PAIRS(ways[i][0], ways[i][1], ways[i][2]));
        assert_int_equal(run_kit_watched(&c, false, &w), GRT_ENDED_EPOCHS);
        snprintf(file, sizeof file, "%s/" LAST, dir);
        run_kit_equal("way0/" LAST, file);
        // Who makes each batch where it is wanted waits for it.
        assert_true(w.data_share <= 1 && (i != 1 || w.data_share > 0));
    }
    // Stopped with the rows on the device, resumed without.
    struct run_kit_watch w = {.stop_at = 20};
    struct grt_config c = run_kit_config("mixed", PAIRS("cache=device"));
    assert_int_equal(run_kit_watched(&c, false, &w), GRT_ENDED_SIGNAL);
    c = run_kit_config("mixed", PAIRS("cache=none"));
    w.stop_at = 0;
    assert_int_equal(run_kit_watched(&c, true, &w), GRT_ENDED_EPOCHS);
    run_kit_equal("way0/" LAST, "mixed/" LAST);
    run_kit_end();
}

// Batches of several micro-batches, which do not divide them or the epoch, arrive one by one: the
// same bits as from rows that are all there, and the device holds no more inputs than for one of
// them.
static void batches_in_pieces(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    const char *const ways[][3] = {
        {"cache=device", "num_workers=0", "precision=f32"},
        {"cache=none", "num_workers=2", "precision=f32"},
        {"pin_memory=false", "num_workers=1", "precision=f32"},
        {"cache=ram", "num_workers=0", "precision=f32"},
        {"cache=device", "num_workers=0", "precision=f16"},
        {"cache=none", "num_workers=2", "precision=f16"},
    };
    char first[64] = "";
    for (uint32_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char dir[16], file[64];
        struct run_kit_watch w = {0};
        snprintf(dir, sizeof dir, "piece%u", i);
        struct grt_config c = run_kit_config(
            dir, PAIRS("batch_size=23", "accumulate=3", ways[i][0], ways[i][1], ways[i][2]));
        assert_int_equal(run_kit_watched(&c, false, &w), GRT_ENDED_EPOCHS);
        snprintf(file, sizeof file, "%s/step-000000000008.h5", dir);
        if (strcmp(ways[i][0], "cache=device") == 0) {
            snprintf(first, sizeof first, "%s", file);
        }
        run_kit_equal(first, file);
    }
    uint64_t held[2];
    for (int k = 0; k < 2; k++) {
        struct run_kit_watch w = {0};
        struct grt_config c =
            run_kit_config("held", PAIRS("batch_size=60", k ? "accumulate=4" : "accumulate=1",
                                         "pin_memory=false"));
        struct grt_supervised *run = run_kit_create(&c, false, &w);
        assert_non_null(run);
        held[k] = grt_dev_mem_use(test.dev, "batches").current;
        grt_supervised_destroy(&run);
    }
    assert_int_equal(held[1], held[0]);
    assert_true(held[0] > 0 || grt_dev_lanes(test.dev) == 1);
    run_kit_end();
}

// Workers live as long as the run, through every validation, or are started anew for each epoch.
static void lives_of_workers(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    for (int persistent = 0; persistent < 2; persistent++) {
        struct run_kit_watch w = {0};
        struct grt_config c = run_kit_config(
            persistent ? "long" : "short",
            PAIRS(persistent ? "persistent_workers=true" : "persistent_workers=false",
                  "num_workers=2", "epochs=3"));
        struct grt_supervised *run = run_kit_create(&c, false, &w);
        assert_non_null(run);
        assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_EPOCHS);
        assert_int_equal(grt_loader_info(run->train_loader).threads_started, persistent ? 2 : 6);
        assert_int_equal(grt_loader_info(run->check_loader).threads_started, persistent ? 2 : 6);
        grt_supervised_destroy(&run);
    }
    run_kit_end();
}

static void nonfinite(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    const char *const wild[] = {"optimizer=sgd", "momentum=0.9", "learning_rate=1000",
                                "on_nan_loss=stop", NULL};
    struct run_kit_watch w = {0};
    struct grt_config c = run_kit_config("stop", wild);
    assert_int_equal(run_kit_watched(&c, false, &w), GRT_ENDED_NONFINITE);
    assert_int_equal(w.rows[GRT_RUN_NONFINITE], 1);
    assert_non_null(strstr(w.text, " is not finite"));
    uint32_t step = 0;
    assert_int_equal(sscanf(w.text, "step %u (epoch 1, batch ", &step), 1);
    assert_true(step >= 2 && step < 17);
    // Nothing was written that is not finite.
    assert_false(grt_checkpoint_any(c.checkpoint_dir));
    // Rolled back, with a smaller rate each time, then given up.
    c = run_kit_config("back", wild);
    assert_true(grt_config_override(&c, "on_nan_loss=rollback"));
    w = (struct run_kit_watch){0};
    assert_int_equal(run_kit_watched(&c, false, &w), GRT_ENDED_NONFINITE);
    assert_int_equal(w.rows[GRT_RUN_ROLLBACK], 3);
    assert_int_equal(w.rows[GRT_RUN_NONFINITE], 4);
    struct run_kit_epochs e = {0};
    c = run_kit_config("factors", wild);
    assert_true(grt_config_override(&c, "on_nan_loss=rollback"));
    assert_int_equal(run_kit_train(&c, false, &e), GRT_ENDED_NONFINITE);
    assert_true(e.factors[0] == 0.5 && e.factors[1] == 0.25 && e.factors[2] == 0.125);
    // Left out: it goes on to the end, with parameters that are finite.
    c = run_kit_config("skip", wild);
    assert_true(grt_config_override(&c, "on_nan_loss=skip"));
    assert_true(grt_config_override(&c, "validation_split=0"));
    struct grt_supervised *run =
        grt_supervised_create(&(struct grt_supervised_desc){.dev = test.dev, .config = &c});
    assert_non_null(run);
    assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_EPOCHS);
    grt_supervised_destroy(&run);
    struct grt_archive *archive = grt_checkpoint_newest(c.checkpoint_dir);
    assert_non_null(archive);
    const struct grt_archive_tensor *t = grt_archive_find(archive, "model/layers.0.weight");
    for (uint32_t i = 0; i < t->bytes / 4; i++) {
        assert_true(isfinite(((const float *)t->data)[i]));
    }
    grt_archive_destroy(&archive);
    run_kit_end();
}

static bool at_once(void) {
    return true;
}

// Loss and hits of predictions, from the targets as the HDF5 library reads them.
static void check_by_hand(const struct grt_archive *predicted, double loss, double accuracy) {
    float *targets = data_kit_read(run_kit_data, "y");
    const struct grt_archive_tensor *y = grt_archive_find(predicted, "y");
    const struct grt_archive_tensor *classes = grt_archive_find(predicted, "class");
    uint64_t outputs = y->shape[1];
    double sum = 0, hits = 0;
    for (uint64_t i = 0; i < 300; i++) {
        const float *row = (const float *)y->data + i * outputs;
        double total = 0;
        for (uint64_t k = 0; k < outputs; k++) {
            total += classes ? exp((double)row[k]) : pow((double)row[k] - targets[i], 2);
        }
        sum += classes ? log(total) - (double)row[(uint32_t)targets[i]] : total;
        hits += classes && ((const uint32_t *)classes->data)[i] == (uint32_t)targets[i];
    }
    assert_true(fabs(sum / 300 - loss) < 2e-3 * loss);  // activations are f16
    assert_true(!classes || fabs(hits / 300 - accuracy) < 1e-6);
    free(targets);
}

static void models(void **state) {
    (void)state;
    const enum grt_make makes[] = {GRT_MAKE_CLASSIFICATION, GRT_MAKE_POINTS};
    for (uint32_t i = 0; i < 2; i++) {
        run_kit_begin(makes[i]);
        struct run_kit_watch w = {0};
        struct grt_config c =
            run_kit_config("run", PAIRS("normalize=true", "learning_rate=0.01", "precision=f16"));
        assert_int_equal(run_kit_watched(&c, false, &w), GRT_ENDED_EPOCHS);
        assert_true(w.last_loss < w.first_loss);
        assert_true(i == 0 ? w.accuracy > 0.4 : w.accuracy < 0);
        struct grt_archive *model = grt_checkpoint_newest(c.checkpoint_dir);
        assert_non_null(model);
        // Of a set of points each goes through the layers by itself: no weight sees all 5 of them.
        for (uint32_t k = 0; i == 1 && k < model->tensor_count; k++) {
            const struct grt_archive_tensor *t = &model->tensors[k];
            assert_true(strncmp(t->name, "model/", 6) != 0 || t->rank < 2 || t->shape[1] < 5 * 4);
        }
        struct grt_config use;
        grt_config_init(&use);
        assert_true(grt_config_set(&use, GRT_CONFIG_DATA, run_kit_data));
        struct grt_evaluation e;
        struct grt_evaluation parts[2];
        assert_true(grt_evaluate(test.dev, model, &use, GRT_PART_ALL, NULL, &e));
        assert_true(grt_evaluate(test.dev, model, &use, GRT_PART_TRAIN, NULL, &parts[0]));
        assert_true(grt_evaluate(test.dev, model, &use, GRT_PART_VALIDATION, NULL, &parts[1]));
        assert_int_equal(e.samples, 300);
        assert_int_equal(parts[0].samples + parts[1].samples, 300);
        double sum =
            parts[0].loss * (double)parts[0].samples + parts[1].loss * (double)parts[1].samples;
        assert_true(fabs(sum / 300 - e.loss) < 1e-4 * e.loss);
        // Stopped: no result, and no complaint.
        assert_false(grt_evaluate(test.dev, model, &use, GRT_PART_ALL, at_once, &e));
        assert_null(grt_predict(test.dev, model, &use, at_once));
        // Predictions, evaluated by hand, are what the evaluation says.
        struct grt_archive *y = grt_predict(test.dev, model, &use, NULL);
        assert_non_null(y);
        assert_true(y->tensors[0].rank == 2 && y->tensors[0].shape[0] == 300);
        assert_int_equal(grt_archive_find(y, "class") != NULL, i == 0);
        check_by_hand(y, e.loss, e.accuracy);
        grt_archive_destroy(&y);
        // Data of another shape.
        grt_archive_set_whole(model, "features", 5);
        TEST_REFUSED(grt_evaluate(test.dev, model, &use, GRT_PART_ALL, NULL, &e), GRT_BAD_DATA,
                     "features");
        grt_archive_destroy(&model);
        run_kit_end();
    }
}

struct slow {
    double begun, seconds, rate;  // of the first epoch, behind its first step
};

// Two seconds in which a driver might compile.
static void slow_begin(void *context, const struct grt_run_report *r) {
    struct slow *slow = context;
    if (r->news == GRT_RUN_NEWS_BEGUN) {
        sleep(2);
        slow->begun = grt_seconds();
    }
    if (r->news == GRT_RUN_NEWS_ROW && r->row->event == GRT_RUN_EVALUATE && slow->rate == 0) {
        slow->rate = r->row->numbers[GRT_FIELD_SAMPLES_PER_S];
        slow->seconds = grt_seconds() - slow->begun;
    }
}

// The first step is no part of an epoch's rate, and is neither where a run ends with it.
static void first_step_apart(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    struct slow slow = {0};
    struct grt_config c = run_kit_config("slow", PAIRS("log_interval=1000", "cache=ram"));
    struct grt_supervised *run = grt_supervised_create(&(struct grt_supervised_desc){
        .dev = test.dev, .config = &c, .report = slow_begin, .context = &slow});
    assert_non_null(run);
    assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_EPOCHS);
    grt_supervised_destroy(&run);
    // Of 270 samples most come behind the first step. However slow they are: the rate is theirs
    // alone.
    if (!(slow.rate * slow.seconds > 270 / 2.0)) {
        print_error("270 samples in an epoch, %g a second for %g s\n", slow.rate, slow.seconds);
        fail();
    }
    run_kit_end();
}

// A list of layers, which has neither depth nor hidden.
static struct grt_config config_of_layers(const char *dir) {
    struct grt_config c = run_kit_bare(dir);
    const char *const pairs[] = {"model=[{linear: 8}, {norm: batch}, relu, {linear: out}]",
                                 "ema=0.9",
                                 "optimizer=sgd",
                                 "momentum=0.9",
                                 "batch_size=16",
                                 "epochs=2"};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_true(grt_config_override(&c, pairs[i]));
    }
    return c;
}

// A GPU tries the first step of rows on the device before the run, and nothing of that is left:
// neither in parameters nor in running statistics, the optimizer, the average or the place. Batches
// of a loader are not tried, nor is anything on a CPU.
static void tried_with(const char *batch, const char *last) {
    run_kit_begin(GRT_MAKE_REGRESSION);
    struct grt_dev *usual = test.dev;
    bool cpu = grt_dev_info(usual)->caps.software;
    const struct {
        const char *dir, *cache;
        bool as_gpu, tried;
    } runs[] = {{"tried", "cache=device", true, true},
                {"untried", "cache=ram", true, false},
                {"usual", "cache=device", false, !cpu}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct grt_learn_state before;
        if (runs[i].as_gpu) {
            test.dev = grt_dev_create(grt_dev_desc(.device = test.selector, .as_gpu = true));
            assert_non_null(test.dev);
        }
        struct grt_config c = config_of_layers(runs[i].dir);
        assert_true(grt_config_override(&c, runs[i].cache) && grt_config_override(&c, batch));
        struct grt_supervised *run =
            grt_supervised_create(&(struct grt_supervised_desc){.dev = test.dev, .config = &c});
        assert_non_null(run);
        assert_int_equal(grt_feed_seconds(run->train) > 0, runs[i].tried);
        assert_true(grt_learner_state(run->learner, &before));
        assert_true(before.steps == 0 && before.updates == 0);
        assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_EPOCHS);
        grt_supervised_destroy(&run);
        if (runs[i].as_gpu) {
            grt_dev_destroy(&test.dev);
            test.dev = usual;
        }
    }
    char files[2][64];
    snprintf(files[0], sizeof files[0], "tried/%s", last);
    snprintf(files[1], sizeof files[1], "untried/%s", last);
    run_kit_equal(files[0], files[1]);
    run_kit_end();
}

// Of 270 samples: 17 batches an epoch; one, and there is no second to try; one and a shorter one.
static void tried_before(void **state) {
    (void)state;
    tried_with("batch_size=16", LAST);
    tried_with("batch_size=270", "step-000000000002.h5");
    tried_with("batch_size=200", "step-000000000004.h5");
}

struct ahead {
    const struct grt_supervised *run;
    uint32_t epochs, behind;  // told; of which nothing of the next one was queued yet
};

static void look_ahead(void *context, const struct grt_run_report *r) {
    struct ahead *a = context;
    if (r->news == GRT_RUN_NEWS_ROW && r->row->event == GRT_RUN_EVALUATE) {
        a->epochs++;
        a->behind += r->step < a->run->steps && a->run->loop.queued <= r->step;
    }
}

// Whether all graphs of a run with rows on the device were recorded before its first step.
static bool recorded_before(const char *batch) {
    struct ahead ahead = {0};
    struct grt_config c = run_kit_config("ahead", PAIRS("cache=device", "epochs=6", batch));
    struct grt_supervised *run = grt_supervised_create(&(struct grt_supervised_desc){
        .dev = test.dev, .config = &c, .report = look_ahead, .context = &ahead});
    assert_non_null(run);
    ahead.run = run;
    uint32_t steps = grt_feed_graphs(run->train), checks = grt_feed_graphs(run->check);
    assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_EPOCHS);
    bool before = grt_feed_graphs(run->train) == steps && grt_feed_graphs(run->check) == checks;
    assert_int_equal(ahead.epochs, 6);
    // On a CPU driver the first validation has nothing behind it (suite_epochs.c).
    assert_int_equal(ahead.behind, grt_dev_info(test.dev)->caps.software);
    grt_supervised_destroy(&run);
    return before;
}

// Rows on the device: graphs are recorded before the first step and not in the loop, and when a
// validation has been read, steps of the next epoch are queued already, so the device goes on
// meanwhile. An epoch that takes longer than a stop may wait is cut, by graphs of its own: with
// other work beside it that happens now and then, but not every time.
static void work_ahead(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    static const char *const batches[] = {"batch_size=64", "batch_size=40", "batch_size=90"};
    bool slow = grt_dev_info(test.dev)->backend == GRT_BACKEND_REF;
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        bool before = false;
        for (int tries = 0; tries < (slow ? 1 : 20) && !before; tries++) {
            before = recorded_before(batches[i]);
        }
        assert_true(slow || before);
    }
    run_kit_end();
}

// Every number of a checkpoint is there again; those that a best score and patience are counted by
// only where they are of the same metric.
static void numbers_come_back(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    struct run_kit_watch w = {.stop_at = 20};
    static const char *const lines[] = {"patience=9", "epochs=3", "schedule=plateau"};
    struct grt_config c = run_kit_config("run", PAIRS(lines[0], lines[1], lines[2]));
    assert_int_equal(run_kit_watched(&c, false, &w), GRT_ENDED_SIGNAL);
    struct grt_archive *archive = grt_checkpoint_newest(c.checkpoint_dir);
    assert_non_null(archive);
    assert_true(grt_archive_set_real(archive, "epoch_loss", 12.5) &&
                grt_archive_set_whole(archive, "epoch_samples", 48) &&
                grt_archive_set_whole(archive, "epoch_idle", 16) &&
                grt_archive_set_real(archive, "best_accuracy", 0.75) &&
                grt_archive_set_whole(archive, "patience_waited", 3) &&
                grt_archive_set_real(archive, "patience_score", -0.5) &&
                grt_archive_set_real(archive, "best_score", -0.25) &&
                grt_archive_set_whole(archive, "best_step", 17) &&
                grt_archive_set_real(archive, "plateau_factor", 0.125) &&
                grt_archive_set_whole(archive, "plateau_bad", 2));
    for (int other = 0; other < 2; other++) {
        assert_true(!other || grt_archive_set_text(archive, "best_metric", "accuracy"));
        struct run_kit_watch v = {0};
        struct grt_supervised *run = run_kit_create(&c, false, &v);
        struct grt_run_place place;
        double spent = 0;
        assert_non_null(run);
        run_keep_place(archive, &place, &spent);
        assert_true(supervised_load(run, grt_supervised_driver(run), archive, &place));
        const struct supervised_place *p = &run->place;
        assert_true(p->position.epoch == 1 && p->position.batch == 3 && place.step == 20);
        assert_true(p->epoch_loss == 12.5 && p->epoch_samples == 48 && p->epoch_idle == 16);
        assert_true(p->best_accuracy == 0.75);
        assert_true(p->plateau.factor == 0.125 && p->plateau.bad == 2);
        assert_int_equal(place.any_best, !other);
        assert_true(other || (place.best_score == -0.25 && place.best_step == 17));
        assert_true(place.patience.any == !other && place.patience.waited == (other ? 0 : 3));
        assert_true(place.patience.score == (other ? 0 : -0.5));
        grt_supervised_destroy(&run);
    }
    grt_archive_destroy(&archive);
    run_kit_end();
}

static struct grt_module *make_linear(const void *of) {
    return grt_linear_create(of);
}

// Sums of an evaluation become means; among the five likeliest is something to tell only of more
// than five classes.
static void means_of_an_evaluation(void **state) {
    (void)state;
    for (uint32_t classes = 4; classes <= 7; classes++) {
        struct grt_linear_desc linear = {.outputs = classes};
        struct grt_learner *l = grt_learner_create(
            test.dev, grt_learner_desc(.make = make_linear, .of = &linear, .input = {1, {3}},
                                       .outputs = classes, .loss = GRT_LOSS_CROSS_ENTROPY,
                                       .optim = grt_optim_defaults(GRT_OPTIM_SGD), .batch = 4));
        assert_non_null(l);
        struct grt_learn_state s = {
            .eval_samples = 8, .eval_loss = 4, .eval_hits = 2, .eval_near = 6};
        struct grt_evaluation e = {0};
        supervised_tally(l, &s, &e);
        assert_true(e.samples == 8 && e.loss == 0.5 && e.accuracy == 0.25);
        assert_true(e.top5 == (classes > 5 ? 0.75 : -1));
        s = (struct grt_learn_state){0};
        supervised_tally(l, &s, &e);
        assert_true(e.samples == 0 && isnan(e.loss) && e.accuracy == -1 && e.top5 == -1);
        grt_learner_destroy(&l);
    }
}

// A rate that a rollback has halved twice falls from there where scores do not improve, and a
// second time from what that left.
static void plateaus_behind_a_rollback(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    struct run_kit_watch w = {0};
    struct grt_config c = run_kit_config(
        "run", PAIRS("schedule=plateau", "plateau_patience=0", "plateau_factor=0.5"));
    struct grt_supervised *run = run_kit_create(&c, false, &w);
    struct grt_learn_state s;
    assert_non_null(run);
    assert_true(grt_learner_state(run->learner, &s));
    assert_true(s.lr_factor == 1.0f);
    s.lr_factor = 0.25f;
    assert_true(grt_learner_set_state(run->learner, &s));
    static const float factors[] = {0.25f, 0.125f, 0.0625f};
    for (int i = 0; i < 3; i++) {
        const struct grt_run_row row = {.event = GRT_RUN_EVALUATE, .score = -1};
        assert_true(supervised_judged(run, grt_supervised_driver(run), &row));
        assert_true(grt_learner_state(run->learner, &s));
        assert_true(s.lr_factor == factors[i]);
        assert_int_equal(w.news[GRT_RUN_NEWS_NOTE], i);
    }
    assert_true(run->lr_factor == 0.0625f);
    grt_supervised_destroy(&run);
    run_kit_end();
}

// What a checkpoint says of a run beside its tensors: the rate as an evaluation left it, and the
// best accuracy, which tells whether a target was reached.
static void places_in_checkpoints(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_CLASSIFICATION);
    struct run_kit_watch w = {0};
    struct grt_config c = run_kit_config("run", PAIRS("target_accuracy=0.75", "epochs=1"));
    struct grt_supervised *run = run_kit_create(&c, false, &w);
    assert_non_null(run);
    static const struct {
        double best;
        bool reached;
    } bests[] = {{0.5, false}, {0.75, true}, {0.875, true}};
    for (int i = 0; i < 3; i++) {
        struct grt_archive *a = grt_archive_create();
        struct grt_learn_state s;
        run->lr_factor = 0.125f;
        run->place.best_accuracy = bests[i].best;
        assert_true(supervised_save(run, grt_supervised_driver(run), a));
        memcpy(&s, grt_archive_find(a, "state/state")->data, sizeof s);
        assert_true(s.lr_factor == 0.125f);
        assert_true(grt_archive_real(a, "best_accuracy", -1) == bests[i].best);
        struct grt_run_place place = {0};
        run->lr_factor = 1;
        run->place.best_accuracy = 0;
        assert_true(supervised_load(run, grt_supervised_driver(run), a, &place));
        assert_true(run->lr_factor == 0.125f && run->place.best_accuracy == bests[i].best);
        assert_int_equal(place.reached, bests[i].reached);
        grt_archive_destroy(&a);
    }
    // A worse evaluation is not the best.
    run->place.best_accuracy = 2;
    assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_EPOCHS);
    assert_true(w.accuracy >= 0 && w.accuracy <= 1 && run->place.best_accuracy == 2);
    grt_supervised_destroy(&run);
    run_kit_end();
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(first_step_apart),
    TEST_CASE(tried_before),
    TEST_CASE(resumed),
    TEST_CASE(ways_of_data),
    TEST_CASE(batches_in_pieces),
    TEST_CASE(lives_of_workers),
    TEST_CASE(nonfinite),
    TEST_CASE(models),
    TEST_CASE(work_ahead),
    TEST_CASE(numbers_come_back),
    TEST_CASE(plateaus_behind_a_rollback),
    TEST_CASE(means_of_an_evaluation),
    TEST_CASE(places_in_checkpoints),
};
TEST_SUITE(supervised, true, cases);
