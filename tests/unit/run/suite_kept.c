// SPDX-License-Identifier: Apache-2.0
// Tasks in archives: what a run keeps of its task and reads again, what is refused of archives that
// others wrote, and tensors that a network begins with.
#include "kits/data_kit.h"
#include "kits/learn_kit.h"
#include "kits/ref_kit.h"
#include "kits/run_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpurt/onnx.h"
#include "run/task/task_parts.h"

static struct grt_task task;  // too large for the stack

// ---- without data ----

#define NETWORK "model: mlp\nhidden: 8\ndepth: 1\nloss: mse\n"

static struct grt_archive *archive_of(const char *config, int64_t features, int64_t points,
                                      int64_t height, int64_t classes, int64_t outputs) {
    struct grt_archive *a = grt_archive_create();
    assert_non_null(a);
    snprintf(a->path, sizeof a->path, "a.h5");
    assert_true((!config || grt_archive_set_text(a, "config", config)) &&
                grt_archive_set_whole(a, "features", features) &&
                grt_archive_set_whole(a, "points", points) &&
                grt_archive_set_whole(a, "height", height) &&
                grt_archive_set_whole(a, "classes", classes) &&
                grt_archive_set_whole(a, "outputs", outputs));
    return a;
}

static void without_data(void **state) {
    (void)state;
    const int64_t most = 1 << 30;
    const struct {
        const char *config;
        int64_t features, points, height, classes, outputs;
        const char *text;  // NULL: it is taken
        uint32_t x_width;
    } rows[] = {
        {NETWORK, 3, 0, 0, 0, 2, NULL, 3},
        {NETWORK, 3, 5, 0, 0, 2, NULL, 15},
        {NETWORK, 3, 12, 4, 0, 2, NULL, 36},
        {NETWORK, most, 0, 0, 0, 1, NULL, 1u << 30},
        {NETWORK, most, 3, 0, 0, 1, NULL, 3u << 30},
        {NULL, 3, 0, 0, 0, 2,
         "a.h5 holds no network that gpurt train supervised made: it has no config", 0},
        {NETWORK, most + 1, 0, 0, 0, 1, "a.h5: its features are 1073741825", 0},
        {NETWORK, -1, 0, 0, 0, 1, "a.h5: its features are -1", 0},
        {NETWORK, 3, -2, 0, 0, 1, "a.h5: its points are -2", 0},
        {NETWORK, 3, 0, -3, 0, 1, "a.h5: its height are -3", 0},
        {NETWORK, 3, 0, 0, -4, 1, "a.h5: its classes are -4", 0},
        {NETWORK, 3, 0, 0, 0, -5, "a.h5: its outputs are -5", 0},
        {NETWORK, 0, 5, 0, 0, 1, "a.h5: samples of 0 features, 5 points and a height of 0", 0},
        {NETWORK, most, 4, 0, 0, 1,
         "a.h5: samples of 1073741824 features, 4 points and a height of 0", 0},
        {NETWORK, 3, 13, 4, 0, 1, "a.h5: samples of 3 features, 13 points and a height of 4", 0},
        {"inputs: [a, b]\n" NETWORK, 3, 0, 0, 0, 1,
         "a.h5: no shapes of its 2 inputs, which older checkpoints lack: --resume the run for an "
         "epoch, and take the new one",
         0},
        {"inputs: [a]\n" NETWORK, 3, 0, 0, 0, 1, NULL, 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_archive *a = archive_of(rows[i].config, rows[i].features, rows[i].points,
                                           rows[i].height, rows[i].classes, rows[i].outputs);
        if (rows[i].text) {
            TEST_REFUSED(grt_task_open_kept(&task, a, false), GRT_BAD_DATA, rows[i].text);
        } else {
            assert_true(grt_task_open_kept(&task, a, false));
            assert_int_equal(task.info.x_width, rows[i].x_width);
            assert_int_equal(task.learner.outputs, rows[i].outputs);
            assert_int_equal(task.info.input_count, 1);
            assert_true(task.learner.inference);
            // Without the last layers it has as many outputs as it comes to.
            assert_true(grt_task_open_kept(&task, a, true));
            assert_true(task.learner.outputs == 0 && task.features);
        }
        grt_archive_destroy(&a);
    }
    // Several inputs, each with its own numbers.
    struct grt_archive *a = archive_of("inputs: [a, /g/b]\n" NETWORK, 9, 0, 0, 0, 1);
    assert_true(grt_archive_set_text(a, "input_shapes", "0 0 3 0\n2 6 1 3\n"));
    assert_true(grt_task_open_kept(&task, a, false));
    const struct grt_dataset_input *in = task.info.inputs;
    assert_int_equal(task.info.input_count, 2);
    assert_string_equal(in[0].name, "a");
    assert_string_equal(in[1].name, "/g/b");
    assert_true(in[0].height == 0 && in[0].points == 0 && in[0].features == 3 && in[0].first == 0);
    assert_true(in[1].height == 2 && in[1].points == 6 && in[1].features == 1 && in[1].first == 3);
    assert_true(grt_archive_set_text(a, "input_shapes", "0 0 3 0\n2 6 1\n"));
    TEST_REFUSED(grt_task_open_kept(&task, a, false), GRT_BAD_DATA, "no shapes of its 2 inputs");
    grt_archive_destroy(&a);
}

// ---- means ----

// A double comes back from three numbers of f32; what lacks one of its shapes is none.
static void means(void **state) {
    (void)state;
    static const float mean[] = {1, -2, 16777216}, rest[] = {0.5f, 0, 1, 0.0625f, 0, 0.25f},
                       deviation[] = {2, 3, 4};
    const uint64_t three[1] = {3}, two[2] = {2, 3};
    for (int all = 0; all < 2; all++) {
        struct grt_archive *a = archive_of(NETWORK, 3, 0, 0, 0, 1);
        assert_true(grt_archive_add(a, "data/mean", GRT_F32, 1, three, mean) &&
                    grt_archive_add(a, "data/std", GRT_F32, 1, three, deviation) &&
                    (!all || grt_archive_add(a, "data/mean_rest", GRT_F32, 2, two, rest)));
        double *n = task_feature_numbers(a);
        assert_non_null(n);
        for (int i = 0; i < 3; i++) {
            double more = all ? (double)rest[i] + (double)rest[3 + i] : 0;
            assert_true(n[i] == (double)mean[i] + more && n[3 + i] == (double)deviation[i]);
        }
        free(n);
        assert_true(grt_archive_set_whole(a, "features", 4));
        assert_null(task_feature_numbers(a));
        grt_archive_destroy(&a);
    }
    struct grt_archive *a = archive_of(NETWORK, 3, 0, 0, 0, 1);
    assert_null(task_feature_numbers(a));
    assert_true(grt_archive_add(a, "data/mean", GRT_F32, 1, three, mean));
    assert_null(task_feature_numbers(a));
    assert_true(grt_archive_add(a, "data/std", GRT_F32, 2, (const uint64_t[]){1, 3}, deviation));
    assert_null(task_feature_numbers(a));
    grt_archive_destroy(&a);
    // And from a run: large numbers keep what f32 loses of them.
    run_kit_begin(GRT_MAKE_REGRESSION);
    static double x[2 * 40], y[40];
    double want = 0;
    for (int i = 0; i < 40; i++) {
        x[2 * i] = 1e9 + i * 3;
        x[2 * i + 1] = i % 2;
        y[i] = i;
        want += x[2 * i] / 40;
    }
    data_kit_write(
        run_kit_data, true,
        &(struct data_kit_set){.name = "x", .type = H5T_IEEE_F64LE, .shape = {40, 2}, .data = x});
    data_kit_write(run_kit_data, false,
                   &(struct data_kit_set){.name = "y", .shape = {40}, .data = y});
    struct grt_config c =
        run_kit_config("run", PAIRS("normalize=true", "validation_split=0", "hidden=4"));
    static struct grt_task other;
    assert_true(grt_task_open(&task, &c, grt_dev_profile(test.dev), NULL));
    a = grt_archive_create();
    assert_true(grt_task_describe(&task, a));
    double *n = task_feature_numbers(a);
    assert_non_null(n);
    assert_true(n[0] == task.info.mean[0] && fabs(n[0] - want) < 1e-4);
    assert_true(n[1] == task.info.mean[1] && n[1] == 0.5);
    assert_true(fabs(n[3] - 0.5) < 1e-7 && fabs(n[2] - task.info.std[0]) < 1e-5 * n[2]);
    assert_non_null(grt_archive_find(a, "data/mean_rest"));
    free(n);
    // The same numbers are what a trained network is given.
    struct grt_config use;
    grt_config_init(&use);
    assert_true(grt_config_set(&use, GRT_CONFIG_DATA, run_kit_data));
    assert_true(grt_task_open_trained(&other, a, &use, grt_dev_profile(test.dev), true));
    assert_true(other.config.normalize && other.info.mean[0] == task.info.mean[0]);
    grt_task_close(&other);
    grt_task_close(&task);
    grt_archive_destroy(&a);
    run_kit_end();
}

// ---- another shape ----

static void other_shapes(void **state) {
    (void)state;
    static const struct {
        int64_t features, points, height;
        const char *text;
    } rows[] = {
        {3, 24, 4, NULL},
        {3, 24, 6,
         ": samples have 4x6 pixels of 3 features; the model of a.h5 wants 6x4 pixels of 3 "
         "features"},
        {1, 24, 4,
         ": samples have 4x6 pixels of 3 features; the model of a.h5 wants 4x6 pixels of 1 "
         "features"},
        {3, 28, 4,
         ": samples have 4x6 pixels of 3 features; the model of a.h5 wants 4x7 pixels of 3 "
         "features"},
        {72, 0, 0, ": samples have 4x6 pixels of 3 features; the model of a.h5 wants 72 features"},
        {3, 24, 0,
         ": samples have 4x6 pixels of 3 features; the model of a.h5 wants 24 points of 3 "
         "features"},
    };
    run_kit_begin(GRT_MAKE_REGRESSION);
    data_kit_write(run_kit_data, true, &(struct data_kit_set){.name = "x", .shape = {20, 4, 6, 3}});
    data_kit_write(run_kit_data, false, &(struct data_kit_set){.name = "y", .shape = {20}});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_archive *a =
            archive_of(NETWORK, rows[i].features, rows[i].points, rows[i].height, 0, 1);
        struct grt_config use;
        grt_config_init(&use);
        assert_true(grt_config_set(&use, GRT_CONFIG_DATA, run_kit_data));
        if (rows[i].text) {
            TEST_REFUSED(grt_task_open_trained(&task, a, &use, grt_dev_profile(test.dev), true),
                         GRT_BAD_DATA, rows[i].text);
            assert_null(task.data);
        } else {
            assert_true(grt_task_open_trained(&task, a, &use, grt_dev_profile(test.dev), true));
            assert_true(task.learner.inference && task.learner.outputs == 1);
            grt_task_close(&task);
        }
        grt_archive_destroy(&a);
    }
    run_kit_end();
}

// How data are read is the caller's, what the network is is the archive's.
static void whose_keys(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    struct grt_archive *a =
        archive_of("hidden: 12\ndepth: 1\nloss: huber\nseed: 9\nbatch_size: 5\nnum_workers: 3\n"
                   "precision: bf16\nvalidation_split: 0.25\n",
                   4, 0, 0, 0, 1);
    struct grt_config use;
    grt_config_init(&use);
    static const char *const pairs[] = {"batch_size=7", "num_workers=1", "hidden=99", "loss=l1",
                                        "seed=4",       "on_nan=drop",   "cache=ram"};
    assert_true(grt_config_set(&use, GRT_CONFIG_DATA, run_kit_data));
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_true(grt_config_override(&use, pairs[i]));
    }
    assert_true(grt_task_open_trained(&task, a, &use, grt_dev_profile(test.dev), true));
    const struct grt_config *c = &task.config;
    assert_true(c->batch_size == 7 && c->num_workers == 1 && c->hidden.values[0] == 12);
    assert_true(c->seed == 9 && c->validation_split == 0.25 && !c->normalize);
    assert_string_equal(c->loss, "huber");
    assert_string_equal(c->on_nan, "drop");
    assert_string_equal(c->cache, "ram");
    assert_string_equal(c->precision, "bf16");
    assert_int_equal(task.learner.precision, GRT_BF16);
    grt_task_close(&task);
    // What it is not given is the archive's too.
    grt_config_init(&use);
    assert_true(grt_config_set(&use, GRT_CONFIG_DATA, run_kit_data));
    assert_true(grt_config_override(&use, "precision=f32"));
    assert_true(grt_task_open_trained(&task, a, &use, grt_dev_profile(test.dev), false));
    assert_true(c->batch_size == 5 && c->num_workers == 3 && task.info.y_width == 0);
    assert_int_equal(task.learner.precision, GRT_F32);
    grt_task_close(&task);
    // Without numbers to normalise by nothing is.
    struct grt_archive *plain = archive_of("normalize: true\n" NETWORK, 4, 0, 0, 0, 1);
    assert_true(grt_task_open_trained(&task, plain, &use, grt_dev_profile(test.dev), true));
    assert_true(!c->normalize && !task.info.mean);
    grt_task_close(&task);
    grt_archive_destroy(&plain);
    // Half a normaliser is damaged, and no config is no network.
    const float one[4] = {1, 1, 1, 1};
    assert_true(grt_archive_add(a, "data/mean", GRT_F32, 1, (const uint64_t[]){4}, one));
    TEST_REFUSED(grt_task_open_trained(&task, a, &use, grt_dev_profile(test.dev), true),
                 GRT_BAD_DATA,
                 "a.h5 holds no model that gpurt train supervised made; of weights alone, `model` "
                 "says the network");
    grt_archive_destroy(&a);
    a = archive_of(NULL, 4, 0, 0, 0, 1);
    TEST_REFUSED(grt_task_open_trained(&task, a, &use, grt_dev_profile(test.dev), true),
                 GRT_BAD_DATA, "a.h5 holds no model");
    // Of weights alone the config has it.
    assert_true(grt_config_override(&use, "model=mlp") && grt_config_override(&use, "hidden=6"));
    assert_true(grt_task_open_trained(&task, a, &use, grt_dev_profile(test.dev), true));
    assert_true(task.learner.inference && task.config.hidden.values[0] == 6);
    grt_task_close(&task);
    grt_archive_destroy(&a);
    // Weights of the samples of training are not those of others.
    a = archive_of("sample_weights: w.npy\n" NETWORK, 4, 0, 0, 0, 1);
    grt_config_init(&use);
    assert_true(grt_config_set(&use, GRT_CONFIG_DATA, run_kit_data));
    char want[256];
    snprintf(want, sizeof want,
             "w.npy holds the weights of the samples of training: `sample_weights=FILE.npy` names "
             "those of %s, `sample_weights=none` leaves weights out",
             run_kit_data);
    TEST_REFUSED(grt_task_open_trained(&task, a, &use, grt_dev_profile(test.dev), true), GRT_CONFIG,
                 want);
    assert_true(grt_task_open_trained(&task, a, &use, grt_dev_profile(test.dev), false));
    grt_task_close(&task);
    assert_true(grt_config_override(&use, "sample_weights=none"));
    assert_true(grt_task_open_trained(&task, a, &use, grt_dev_profile(test.dev), true));
    grt_task_close(&task);
    grt_archive_destroy(&a);
    run_kit_end();
}

// A table whose classes are words, and a network that knows them by their names, or by numbers.
static void words_as_classes(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    char path[96], want[256];
    snprintf(path, sizeof path, "%s/t.csv", run_kit_folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "a,kind\n1,dove\n2,gull\n3,dove\n4,crow\n");
    fclose(file);
    for (int named = 0; named < 2; named++) {
        struct grt_archive *a =
            archive_of("hidden: 8\ndepth: 1\nloss: cross_entropy\n", 1, 0, 0, 3, 3);
        struct grt_config use;
        grt_config_init(&use);
        assert_true(grt_config_set(&use, GRT_CONFIG_DATA, path));
        assert_true(grt_archive_set_text(a, "columns", "a") &&
                    grt_archive_set_text(a, "target_columns", "kind") &&
                    (!named || grt_archive_set_text(a, "class_names", "crow\ndove\ngull")));
        if (named) {
            assert_true(grt_task_open_trained(&task, a, &use, grt_dev_profile(test.dev), true));
            assert_int_equal(task.info.classes, 3);
            grt_task_close(&task);
        } else {
            snprintf(want, sizeof want,
                     "%s: its classes are words, and the network knows classes by numbers alone: "
                     "write those into the table",
                     path);
            TEST_REFUSED(grt_task_open_trained(&task, a, &use, grt_dev_profile(test.dev), true),
                         GRT_BAD_DATA, want);
        }
        grt_archive_destroy(&a);
    }
    run_kit_end();
}

// ---- going on ----

static void goes_on(void **state) {
    (void)state;
    static const struct {
        const char *theirs;
        const char *ours[3];
        const char *text;  // NULL: it is the same run
    } rows[] = {
        {"seed: 3\nhidden: 8\n", {"seed=3", "hidden=8"}, NULL},
        {"seed: 3\nhidden: 8\n",
         {"seed=4", "hidden=8"},
         "a.h5 was made with seed=3; here it is 4, which is another run: use the same, or another "
         "checkpoint_dir"},
        {"seed: 3\n", {"seed=3", "hidden=9"}, NULL},  // an older version, which did not say
        {"precision: f16\nseed: 3\n", {"seed=3", "precision=f32"}, NULL},
        {"seed: 3\n", {"seed=3", "losses=mse,l1"}, "a.h5 was made with losses=[]; here it is "},
        {"losses: [mse, l1]\n",
         {"seed=0"},
         "was made with losses=[\"mse\", \"l1\"]; here it is []"},
        {"loss_weights: [1, 2]\n", {"seed=0"}, "was made with loss_weights=[1, 2]; here it is []"},
        {"network: [{linear: out}]\ndepth: 3\n", {"model=[{linear: out}]"}, NULL},
        {"network: [{linear: out}]\n",
         {"model=[relu, {linear: out}]"},
         "was made with network=[{linear: out}]; here it is [relu, {linear: out}]"},
        {"ema: 0.5\n", {"seed=0"}, "was made with ema=0.5; here it is 0, which is another run"},
        {"shuffle: false\n", {"seed=0"}, "was made with shuffle=false; here it is true"},
        {"temperature: 0.25\n", {"seed=0"}, "was made with temperature=0.25; here it is 0.5"},
        {"validation_split: 0.2\n", {"seed=0"}, "was made with validation_split=0.2; here it is"},
        {"learning_rate: 5\n", {"seed=0"}, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_archive *a = archive_of(rows[i].theirs, 3, 0, 0, 0, 1);
        grt_config_init(&task.config);
        for (int k = 0; k < 3 && rows[i].ours[k]; k++) {
            assert_true(grt_config_override(&task.config, rows[i].ours[k]));
        }
        if (rows[i].text) {
            TEST_REFUSED(grt_task_continues(&task, a), GRT_CONFIG, rows[i].text);
        } else if (!grt_task_continues(&task, a)) {
            fail_msg("row %zu: %s", i, grt_last_error());
        }
        grt_archive_destroy(&a);
    }
}

// A config without a network gets that of an archive; one with any part of it keeps its own.
static void networks_taken(void **state) {
    (void)state;
    static const struct {
        const char *theirs, *ours;
        bool taken, list;
        uint64_t depth, hidden;
    } rows[] = {
        {"model: mlp\ndepth: 4\nhidden: 9\n", NULL, true, false, 4, 9},
        {"model: mlp\ndepth: 4\nhidden: 9\n", "seed=3", true, false, 4, 9},
        {"model: mlp\ndepth: 4\nhidden: 9\n", "hidden=7", false, false, 0, 7},
        {"model: mlp\ndepth: 4\nhidden: 9\n", "model=small", false, false, 0, 0},
        {"model: mlp\ndepth: 4\nhidden: 9\n", "activation=tanh", false, false, 0, 0},
        {"network: [{linear: 5}]\ndepth: 4\n", NULL, true, true, 0, 0},
        {NULL, NULL, false, false, 0, 0},
    };
    static struct grt_config c;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_archive *a = archive_of(rows[i].theirs, 3, 0, 0, 0, 1);
        grt_config_init(&c);
        uint64_t depth = c.depth, hidden = c.hidden.values[0];
        assert_true(!rows[i].ours || grt_config_override(&c, rows[i].ours));
        assert_int_equal(grt_task_take_network(&c, a), rows[i].taken);
        assert_int_equal(c.depth, rows[i].depth ? rows[i].depth : depth);
        assert_int_equal(c.hidden.values[0], rows[i].hidden ? rows[i].hidden : hidden);
        assert_int_equal(grt_config_given(&c, GRT_CONFIG_NETWORK), rows[i].list);
        // What is as it would be anyway is not given.
        assert_false(grt_config_given(&c, GRT_CONFIG_LAYER_NORM));
        grt_archive_destroy(&a);
    }
    assert_false(grt_task_take_network(NULL, NULL));
}

// ---- tensors to begin with ----

// One layer, [2][3] and [2].
static struct grt_learner *linear(void) {
    static struct learn_desc d;
    d = (struct learn_desc){.model = {.kind = LEARN_LINEAR, .inputs = 3, .outputs = 2},
                            .optim = grt_optim_defaults(GRT_OPTIM_SGD),
                            .batch = 4};
    struct grt_learner *l = learn_create(test.dev, &d);
    assert_true(l && grt_learner_alloc(l));
    return l;
}

static bool same_numbers(const float *got, const float *want, size_t count) {
    bool same = true;
    for (size_t i = 0; i < count; i++) {
        same = same && got[i] == want[i];
    }
    return same;
}

static void begins_with(void **state) {
    (void)state;
    static const float six[] = {1, 2, 3, 4, 5, 6}, two[] = {7, 8};
    static const uint16_t halves[] = {0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600};  // the same
    static const uint64_t shape[] = {2, 3}, turned[] = {3, 2};
    static const struct {
        const char *weight, *bias, *more;  // names; NULL: none
        int form;                          // of the weight: 1: f16, 2: turned
        uint32_t count, left, unused;
        const char *prefix, *first_left, *first_unused;
    } rows[] = {
        {"model/weight", "model/bias", NULL, 0, 2, 0, 0, "", "", ""},
        {"model/weight", "model/bias", "model/old", 0, 2, 0, 1, "", "", "old"},
        {"model/weight", "model/bias", "optimizer/old", 0, 2, 0, 0, "", "", ""},
        {"model/weight", "model/bias", NULL, 1, 2, 0, 0, "", "", ""},
        {"model/weight", "model/bias", NULL, 2, 1, 1, 0, "", "weight", ""},
        {"model/weight", NULL, NULL, 0, 1, 1, 0, "", "bias", ""},
        {"model/module.weight", "model/module.bias", NULL, 0, 2, 0, 0, "module.", "", ""},
        {"model/module.weight", "model/module.bias", "model/module.x", 0, 2, 0, 1, "module.", "",
         "module.x"},
        {"model/module.weight", "model/other.bias", NULL, 0, 0, 2, 2, "", "weight",
         "module.weight"},
        {"model/module.weight", "model/bias", NULL, 0, 1, 1, 1, "", "weight", "module.weight"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_archive *a = grt_archive_create();
        struct grt_task_taken t;
        snprintf(a->path, sizeof a->path, "w.h5");
        assert_true(grt_archive_add(a, rows[i].weight, rows[i].form == 1 ? GRT_F16 : GRT_F32, 2,
                                    rows[i].form == 2 ? turned : shape,
                                    rows[i].form == 1 ? (const void *)halves : six));
        assert_true(!rows[i].bias || grt_archive_add(a, rows[i].bias, GRT_F32, 1, shape, two));
        assert_true(!rows[i].more || grt_archive_add(a, rows[i].more, GRT_F32, 1, shape, two));
        struct grt_learner *l = linear();
        if (rows[i].count == 0) {
            TEST_REFUSED(grt_task_begin_with(l, a, &t), GRT_BAD_DATA,
                         "w.h5 has no tensor of this network: none is called 'weight' and has its "
                         "shape");
        } else {
            assert_true(grt_task_begin_with(l, a, &t));
        }
        assert_int_equal(t.count, rows[i].count);
        assert_int_equal(t.left, rows[i].left);
        assert_int_equal(t.unused, rows[i].unused);
        assert_string_equal(t.prefix, rows[i].prefix);
        assert_string_equal(t.first_left, rows[i].first_left);
        assert_string_equal(t.first_unused, rows[i].first_unused);
        float *weight = learn_read(grt_learner_tensor(l, GRT_TENSOR_PARAM, 0, NULL));
        float *bias = learn_read(grt_learner_tensor(l, GRT_TENSOR_PARAM, 1, NULL));
        bool has_weight = rows[i].count > 0 && strcmp(rows[i].first_left, "weight") != 0;
        bool has_bias = rows[i].count > 0 && strcmp(rows[i].first_left, "bias") != 0;
        assert_int_equal(same_numbers(weight, six, sizeof six / sizeof *six), has_weight);
        assert_int_equal(same_numbers(bias, two, sizeof two / sizeof *two), has_bias);
        free(weight);
        free(bias);
        // All of a network, and nothing else, is what a model is.
        if (rows[i].form == 0 && rows[i].count == 2 && !rows[i].prefix[0]) {
            assert_true(grt_task_load_model(l, a));
        } else {
            TEST_REFUSED(grt_task_load_model(l, a), GRT_BAD_DATA, "w.h5");
        }
        grt_learner_destroy(&l);
        grt_archive_destroy(&a);
    }
}

// ---- other forms ----

// What cannot be written as ONNX, and why.
static void not_exported(void **state) {
    (void)state;
    static const struct {
        const char *config, *policy, *learner;
        bool probabilities, embeddings;
        const char *text;
    } rows[] = {
        {NETWORK, NULL, NULL, true, true, "embeddings have no probabilities: ask for one of them"},
        {NETWORK, NULL, NULL, true, false,
         "a.h5: its outputs are no logits, its loss being mse: leave out --probabilities"},
        {NULL, NULL, NULL, false, false, "a.h5 holds no network that gpurt train supervised made"},
        {NULL, "linear", NULL, false, true,
         "a.h5 is a policy: --embeddings is for networks over data"},
        {NULL, NULL, "ppo", false, true,
         "a.h5 is a policy: --embeddings is for networks over data"},
        {NULL, "linear", NULL, true, false,
         "a.h5: its actions are numbers, which have no probabilities: leave out --probabilities"},
        {NULL, "linear", NULL, false, false, "a.h5: tensors of its policy are missing"},
        {NULL, NULL, "ppo", false, false, "a.h5: tensors of its actor are missing"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_archive *a = archive_of(rows[i].config, 3, 0, 0, 0, 2);
        const struct grt_onnx_export as = {.probabilities = rows[i].probabilities,
                                           .embeddings = rows[i].embeddings};
        assert_true((!rows[i].policy || grt_archive_set_text(a, "policy", rows[i].policy)) &&
                    (!rows[i].learner || grt_archive_set_text(a, "learner", rows[i].learner)));
        uint32_t errors = test_log.lines[GRT_LOG_ERROR];
        test_log.quiet = true;
        assert_false(grt_onnx_write(a, &as, "/tmp/gpurt-never.onnx"));
        test_log.quiet = false;
        test_log.expected += test_log.lines[GRT_LOG_ERROR] - errors;
        if (!strstr(grt_last_error(), rows[i].text)) {
            fail_msg("row %zu: %s", i, grt_last_error());
        }
        assert_int_equal(access("/tmp/gpurt-never.onnx", F_OK), -1);
        grt_archive_destroy(&a);
    }
    TEST_REFUSED(grt_onnx_write(NULL, NULL, "a.onnx"), GRT_INVALID,
                 "a model and a path are wanted");
    TEST_REFUSED(grt_onnx_load(NULL), GRT_INVALID, "a path is wanted");
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(without_data), REF_CASE(means),         REF_CASE(other_shapes),
    REF_CASE(whose_keys),    TEST_CASE(goes_on),      TEST_CASE(networks_taken),
    REF_CASE(begins_with),   TEST_CASE(not_exported), REF_CASE(words_as_classes),
};
TEST_SUITE(kept, false, cases);
