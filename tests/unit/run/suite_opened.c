// SPDX-License-Identifier: Apache-2.0
// Tasks as they are opened: what a config leaves open and how that is chosen, and what is refused,
// in which words.
#include "kits/data_kit.h"
#include "kits/ref_kit.h"
#include "kits/run_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/feed.h"
#include "run/task/task_parts.h"

static void config_of(struct grt_config *c, const char *const *pairs) {
    grt_config_init(c);
    assert_true(grt_config_set(c, GRT_CONFIG_DATA, run_kit_data));
    for (; *pairs; pairs++) {
        if (!grt_config_override(c, *pairs)) {
            fail_msg("%s is refused", *pairs);
        }
    }
}

static struct grt_task task;  // too large for the stack

static bool opens(const char *const *pairs) {
    static struct grt_config c;
    config_of(&c, pairs);
    return grt_task_open(&task, &c, grt_dev_profile(test.dev), NULL);
}

// Samples with pixels of `channels` colours, 4 by 6, and a class each.
static void write_images(uint32_t channels) {
    data_kit_write(run_kit_data, true,
                   &(struct data_kit_set){.name = "x", .shape = {20, 4, 6, channels}});
    static double y[20];
    for (int i = 0; i < 20; i++) {
        y[i] = i % 3;
    }
    data_kit_write(
        run_kit_data, false,
        &(struct data_kit_set){.name = "y", .type = H5T_STD_I32LE, .shape = {20}, .data = y});
}

// ---- choices ----

static void models(void **state) {
    (void)state;
    static const struct {
        bool points;
        const char *pairs[4];
        const char *model;
        uint64_t depth, hidden;
    } rows[] = {
        {false, {"model=small"}, "mlp", 3, 16},
        {false, {"model=medium"}, "mlp", 6, 64},
        {false, {"model=large"}, "mlp", 12, 128},
        {false, {"model=small", "depth=5"}, "mlp", 5, 16},
        {false, {"model=large", "hidden=7"}, "mlp", 12, 7},
        {true, {"hidden=9"}, "points", 0, 9},
        {true, {"model=mlp", "hidden=9"}, "mlp", 0, 9},
        {true, {"model=medium"}, "mlp", 6, 64},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *pairs[5] = {NULL};
        memcpy(pairs, rows[i].pairs, sizeof rows[i].pairs);
        run_kit_begin(rows[i].points ? GRT_MAKE_POINTS : GRT_MAKE_REGRESSION);
        assert_true(opens(pairs));
        assert_string_equal(task.config.model, rows[i].model);
        assert_true(rows[i].depth == 0 || task.config.depth == rows[i].depth);
        assert_int_equal(task.config.hidden.values[0], rows[i].hidden);
        grt_task_close(&task);
        assert_null(task.data);
        run_kit_end();
    }
    run_kit_begin(GRT_MAKE_REGRESSION);
    assert_true(opens(PAIRS("model=resnet18")));
    assert_true(grt_config_given(&task.config, GRT_CONFIG_NETWORK));
    assert_string_equal(task.config.network.text, "[resnet18]");
    grt_task_close(&task);
    run_kit_end();
}

// Classes where the targets are whole numbers, whichever name they have.
static void losses_by_targets(void **state) {
    (void)state;
    static double numbers[40];
    run_kit_begin(GRT_MAKE_REGRESSION);
    static const struct {
        const char *name;
        int type;
    } sets[] = {{"x", 0}, {"y", 0}, {"z", 1}, {"u", 2}};
    for (int i = 0; i < 40; i++) {
        numbers[i] = i % 4;
    }
    for (int i = 0; i < 4; i++) {
        struct data_kit_set set = {.name = sets[i].name, .shape = {40}, .data = numbers};
        set.type = sets[i].type == 1 ? H5T_STD_U8LE : sets[i].type == 2 ? H5T_STD_I64LE : 0;
        data_kit_write(run_kit_data, i == 0, &set);
    }
    static const struct {
        const char *pairs[3], *loss;
        uint32_t classes;
    } rows[] = {{{"inputs=x"}, "mse", 0},
                {{"targets=z"}, "cross_entropy", 4},
                {{"targets=/z"}, "cross_entropy", 4},
                {{"targets=u"}, "cross_entropy", 4},
                {{"targets=z", "loss=l1"}, "l1", 0},
                {{"targets=y", "loss=huber"}, "huber", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *pairs[4] = {NULL};
        memcpy(pairs, rows[i].pairs, sizeof rows[i].pairs);
        assert_true(opens(pairs));
        assert_string_equal(task.config.loss, rows[i].loss);
        assert_int_equal(task.info.classes, rows[i].classes);
        assert_int_equal(task.learner.outputs, rows[i].classes ? rows[i].classes : 1);
        grt_task_close(&task);
    }
    run_kit_end();
}

// Batch, workers and accumulation by the weights of the hidden layers, 4096 and 65536 being the
// last of a size.
static void batches(void **state) {
    (void)state;
    static const enum grt_profile_key keys[3][3] = {
        {GRT_KEY_SMALL_BATCH, GRT_KEY_SMALL_WORKERS, GRT_KEY_SMALL_ACCUMULATE},
        {GRT_KEY_MEDIUM_BATCH, GRT_KEY_MEDIUM_WORKERS, GRT_KEY_MEDIUM_ACCUMULATE},
        {GRT_KEY_LARGE_BATCH, GRT_KEY_LARGE_WORKERS, GRT_KEY_LARGE_ACCUMULATE},
    };
    static const struct {
        const char *pairs[4];
        int size;
        uint64_t batch, accumulate, workers;  // 0: the profile's
    } rows[] = {
        {{"depth=4", "hidden=32"}, 0, 0, 0, 0},
        {{"depth=1", "hidden=65"}, 1, 0, 0, 0},
        {{"hidden=[64, 1]"}, 1, 0, 0, 0},
        {{"hidden=[63, 1]"}, 0, 0, 0, 0},
        {{"depth=4", "hidden=128"}, 1, 0, 0, 0},
        {{"depth=1", "hidden=257"}, 2, 0, 0, 0},
        {{"depth=1", "hidden=257", "batch_size=7"}, 2, 7, 1, 0},
        {{"depth=1", "hidden=257", "accumulate=3"}, 2, 0, 3, 0},
        {{"depth=1", "hidden=65", "num_workers=5"}, 1, 0, 0, 5},
    };
    const struct grt_profile *p = grt_dev_profile(test.dev);
    run_kit_begin(GRT_MAKE_REGRESSION);
    assert_true(
        grt_data_make(grt_make_desc(.path = run_kit_data, .samples = 40000, .features = 1)));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *pairs[5] = {NULL};
        const enum grt_profile_key *key = keys[rows[i].size];
        memcpy(pairs, rows[i].pairs, sizeof rows[i].pairs);
        assert_true(opens(pairs));
        const struct grt_config *c = &task.config;
        uint64_t accumulate =
            rows[i].accumulate ? rows[i].accumulate : grt_profile_whole(p, key[2]);
        uint64_t batch = rows[i].batch ? rows[i].batch : grt_profile_whole(p, key[0]);
        assert_true(batch * accumulate <= 36000);
        assert_int_equal(c->batch_size, batch);
        assert_int_equal(c->accumulate, accumulate);
        assert_int_equal(c->num_workers,
                         rows[i].workers ? rows[i].workers : grt_profile_whole(p, key[1]));
        assert_int_equal(task.learner.batch, batch * accumulate);
        assert_int_equal(task.learner.accumulate, accumulate);
        grt_task_close(&task);
    }
    // Samples that are told apart: 256, or what there is.
    static const struct {
        uint64_t samples;
        const char *accumulate;
        uint64_t batch;
    } pairs[] = {{300, "accumulate=1", 256}, {300, "accumulate=2", 150}, {256, "accumulate=1", 256},
                 {255, "accumulate=1", 255}, {4, "accumulate=4", 1},     {3, "accumulate=4", 1}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_true(grt_data_make(
            grt_make_desc(.path = run_kit_data, .samples = pairs[i].samples, .features = 2)));
        assert_true(opens(PAIRS("loss=nt_xent", "validation_split=0", pairs[i].accumulate)));
        assert_int_equal(task.config.batch_size, pairs[i].batch);
        assert_int_equal(task.config.num_workers, 2);
        assert_int_equal(task.learner.views, 2);
        assert_int_equal(task.learner.outputs, 128);
        assert_true(task.learner.temperature == 0.5f && !task.learner.exact);
        grt_task_close(&task);
    }
    assert_true(opens(PAIRS("loss=nt_xent", "temperature=0.25", "accumulate_exact=true", "seed=7",
                            "projection=9,5")));
    assert_true(task.learner.temperature == 0.25f && task.learner.exact);
    assert_true(task.learner.seed == 7 && task.learner.outputs == 5);
    grt_task_close(&task);
    run_kit_end();
}

// Two views of an image have to differ; what is given stays.
static void transforms(void **state) {
    (void)state;
    static const struct {
        uint32_t channels;
        const char *more, *has, *lacks;
    } rows[] = {
        {3, "seed=1", "random_resized_crop: {size: [4, 6]}", "none"},
        {3, "seed=1", "color_jitter: {\"0\": 0.4, \"1\": 0.4, \"2\": 0.4, \"3\": 0.1, p: 0.8}",
         "-"},
        {3, "seed=1", "{random_grayscale: {p: 0.2}}, normalize]", "-"},
        {1, "seed=1", "random_horizontal_flip, normalize]", "color_jitter"},
        {3, "transform=random_horizontal_flip", "[random_horizontal_flip]", "normalize"},
        {3, "normalize=true", "", "r"},
    };
    run_kit_begin(GRT_MAKE_REGRESSION);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_images(rows[i].channels);
        assert_true(opens(PAIRS("loss=nt_xent", "model=[flatten, {linear: 4}]", rows[i].more)));
        if (!strstr(task.config.transform.text, rows[i].has) ||
            strstr(task.config.transform.text, rows[i].lacks)) {
            fail_msg("row %zu: %s", i, task.config.transform.text);
        }
        assert_int_equal(task.learner.input.rank, 3);
        grt_task_close(&task);
    }
    // Of classes none is chosen.
    assert_true(opens(PAIRS("model=[flatten, {linear: out}]")));
    assert_string_equal(task.config.transform.text, "");
    grt_task_close(&task);
    run_kit_end();
}

// How rows are read arrives: batches ahead, and which rows an epoch has.
static void ways_of_reading(void **state) {
    (void)state;
    static double x[60 * 3], y[60];
    run_kit_begin(GRT_MAKE_REGRESSION);
    for (int i = 0; i < 60; i++) {
        x[3 * i] = y[i] = i;
    }
    data_kit_write(run_kit_data, true,
                   &(struct data_kit_set){.name = "x", .shape = {60, 3}, .data = x});
    data_kit_write(run_kit_data, false,
                   &(struct data_kit_set){.name = "y", .shape = {60}, .data = y});
    static const struct {
        const char *pairs[4];
        uint64_t rows, batches, more;  // slots besides those of the first row
    } rows[] = {
        {{"num_workers=2", "prefetch_factor=2"}, 54, 14, 0},
        {{"num_workers=2", "prefetch_factor=5"}, 54, 14, 6},
        {{"num_workers=3", "prefetch_factor=2"}, 54, 14, 2},
        {{"num_workers=2", "prefetch_factor=2", "drop_last=true"}, 52, 13, 0},
        {{"num_workers=2", "prefetch_factor=2", "limit_train_batches=3"}, 12, 3, 0},
        {{"num_workers=2", "prefetch_factor=2", "overfit_batches=2"}, 8, 2, 0},
    };
    uint32_t slots = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *pairs[7] = {"batch_size=4", "validation_split=0.1", "cache=none"};
        memcpy(pairs + 3, rows[i].pairs, 3 * sizeof *pairs);
        assert_true(opens(pairs));
        struct grt_loader *l = grt_task_loader(&task, test.dev, GRT_PART_TRAIN, 2, NULL);
        assert_non_null(l);
        struct grt_loader_info info = grt_loader_info(l);
        slots = i == 0 ? info.slots : slots;
        assert_int_equal(info.rows, rows[i].rows);
        assert_int_equal(info.batches_per_epoch, rows[i].batches);
        if (info.slots != slots + rows[i].more) {
            fail_msg("row %zu: %u places, %u in the first", i, info.slots, slots);
        }
        grt_loader_destroy(&l);
        // Of a validation all rows, whatever an epoch has.
        l = grt_task_loader(&task, test.dev, GRT_PART_VALIDATION, 2, NULL);
        assert_non_null(l);
        assert_int_equal(grt_loader_info(l).rows, 6);
        assert_int_equal(grt_loader_info(l).batches_per_epoch, 2);
        grt_loader_destroy(&l);
        grt_task_close(&task);
    }
    run_kit_end();
}

// ---- refusals ----

enum { NUMBERS, CLASSES, IMAGES };

static void refused(void **state) {
    (void)state;
    static const struct {
        int data;
        const char *pairs[4], *text;  // NULL: it is taken
    } rows[] = {
        {NUMBERS, {"data="}, NULL},
        {NUMBERS, {"betas=0.9"}, "betas has 1 numbers; two are wanted"},
        {NUMBERS, {"betas=0.9,0.99,0.999"}, "betas has 3 numbers; two are wanted"},
        {NUMBERS,
         {"sample_weights=y", "loss=nt_xent"},
         "sample_weights has no effect with loss nt_xent: leave it out"},
        {NUMBERS, {"sample_weights=none", "loss=nt_xent"}, NULL},
        {NUMBERS, {"model=points"}, "model points wants inputs of one shape [N][P][D]; "},
        {NUMBERS, {"batch_size=1048576", "accumulate=1024"}, NULL},
        {NUMBERS,
         {"batch_size=1048576", "accumulate=1025"},
         "batch_size times accumulate is over 2^30"},
        {NUMBERS,
         {"model=[{linear: out}]", "depth=3"},
         "depth describes an mlp, and `model` is a list of layers, which has its own: leave depth "
         "out, or the list"},
        {NUMBERS, {"model=[{linear: out}]", "layer_norm=true"}, "layer_norm describes an mlp"},
        {NUMBERS, {"model=resnet18", "hidden=4"}, "hidden describes an mlp, and `model` is a"},
        {NUMBERS, {"transform=[normalize]"}, "are no images [N][H][W][C]"},
        {NUMBERS,
         {"eval_transform=[normalize]"},
         "eval_transform: there is no `transform` of training"},
        {IMAGES, {"transform=[normalize]", "model=[flatten, {linear: out}]"}, NULL},
        {IMAGES,
         {"transform=[normalize]", "normalize=true"},
         "transform: `normalize: true` comes before it: leave that out, and write `| normalize` "
         "at the end"},
        {CLASSES, {"class_weights=1,2"}, "class_weights has 2 numbers, and the targets of "},
        {CLASSES, {"class_weights=1,2,3,4"}, " are 3 classes"},
        {CLASSES, {"class_weights=0,0,0"}, "class_weights are all 0: nothing would be learned"},
        {CLASSES, {"class_weights=0,0,0.5"}, NULL},
        {NUMBERS, {"losses=mse,l1", "loss=mse"}, "losses and loss mse: give one of them"},
        {NUMBERS,
         {"losses=mse,l1", "loss=nt_xent"},
         "losses has no effect with nt_xent, the loss of simclr: leave it out"},
        {NUMBERS, {"losses=mse,l1", "loss=auto", "targets=y,y"}, NULL},
        {NUMBERS,
         {"losses=mse,l1,mse,l1,mse", "targets=y,y,y,y,y"},
         "losses has 5, and targets has 5 data sets: 2 to 4 of each are wanted"},
        {NUMBERS, {"losses=mse,l1,mse,l1", "targets=y,y,y,y"}, NULL},
        {NUMBERS,
         {"losses=mse,l1", "targets=y,y,y"},
         "losses has 2, and targets has 3 data sets: 2 to 4 of each are wanted"},
        {NUMBERS,
         {"losses=mse,l1", "targets=y,y", "loss_weights=1,2,3"},
         "loss_weights has 3 numbers, and losses has 2"},
        {NUMBERS,
         {"losses=mse,l1", "targets=y,y", "loss_weights=1,0"},
         "loss_weights: 0 is not above 0: leave that target and its loss out"},
        {NUMBERS, {"losses=mse(1),l1", "targets=y,y"}, NULL},
        {NUMBERS, {"losses=mse(2),l1", "targets=y,y"}, "losses: mse is of 2 numbers, and 'y' of "},
        {NUMBERS, {"losses=mse", "targets=y"}, "losses has 1: for one loss of all targets, give "},
        {NUMBERS, {"losses=mse,l1"}, "losses wants targets, a data set for each: targets=A,B"},
        {NUMBERS, {"fill=mean"}, "fill is for .csv and .tsv, and the data are in "},
    };
    run_kit_begin(GRT_MAKE_REGRESSION);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *pairs[5] = {NULL};
        memcpy(pairs, rows[i].pairs, sizeof rows[i].pairs);
        if (rows[i].data == IMAGES) {
            write_images(3);
        } else {
            assert_true(grt_data_make(
                grt_make_desc(.path = run_kit_data,
                              .make = rows[i].data ? GRT_MAKE_CLASSIFICATION : GRT_MAKE_REGRESSION,
                              .samples = 60, .features = 4, .classes = 3)));
        }
        if (strcmp(pairs[0], "data=") == 0) {
            static struct grt_config c;
            grt_config_init(&c);
            TEST_REFUSED(grt_task_open(&task, &c, grt_dev_profile(test.dev), NULL), GRT_CONFIG,
                         "no data: name a file with --data FILE or `data: FILE`");
        } else if (rows[i].text) {
            TEST_REFUSED(opens(pairs), GRT_CONFIG, rows[i].text);
            assert_null(task.data);
        } else if (!opens(pairs)) {
            fail_msg("%s: %s", pairs[0], grt_last_error());
        } else {
            assert_true(!task.learner.class_weights || task.learner.class_weights[2] == 0.5f);
            grt_task_close(&task);
        }
    }
    run_kit_end();
}

// What several losses are in the desc: their order, weights and widths; and in the config.
static void several_losses(void **state) {
    (void)state;
    static double numbers[3 * 40], kinds[40];
    run_kit_begin(GRT_MAKE_REGRESSION);
    for (int i = 0; i < 40; i++) {
        kinds[i] = i % 5;
        numbers[3 * i] = numbers[3 * i + 1] = numbers[3 * i + 2] = i % 2;
    }
    data_kit_write(run_kit_data, true,
                   &(struct data_kit_set){.name = "x", .shape = {40, 3}, .data = numbers});
    data_kit_write(run_kit_data, false,
                   &(struct data_kit_set){.name = "a", .shape = {40, 3}, .data = numbers});
    data_kit_write(run_kit_data, false,
                   &(struct data_kit_set){.name = "b", .shape = {40, 2}, .data = numbers});
    data_kit_write(
        run_kit_data, false,
        &(struct data_kit_set){.name = "k", .type = H5T_STD_I32LE, .shape = {40}, .data = kinds});
    assert_true(opens(
        PAIRS("targets=a,k,b", "losses=bce,cross_entropy(7),l1(2)", "loss_weights=0.5,2,0.25")));
    const struct grt_learner_desc *l = &task.learner;
    assert_int_equal(l->loss_count, 3);
    static const struct {
        enum grt_loss loss;
        uint32_t cols;
        float scale;
    } want[] = {{GRT_LOSS_BCE, 3, 0.5f}, {GRT_LOSS_CROSS_ENTROPY, 7, 2}, {GRT_LOSS_L1, 2, 0.25f}};
    struct grt_dataset_target of[GRT_LOSS_MOST] = {{0}};
    task_loss_kinds(&task, of);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(l->losses[i].loss, want[i].loss);
        assert_int_equal(l->losses[i].cols, want[i].cols);
        assert_true(l->losses[i].scale == want[i].scale);
        assert_int_equal(of[i].classes, i == 1 ? 7 : 0);
        assert_int_equal(of[i].shares, i == 0);
    }
    assert_int_equal(l->outputs, 12);
    char text[128];
    grt_config_value_text(&task.config, GRT_CONFIG_LOSSES, text, sizeof text);
    assert_string_equal(text, "[\"bce(3)\", \"cross_entropy(7)\", \"l1(2)\"]");
    assert_string_equal(task.config.loss, "mse");
    grt_task_close(&task);
    // Without weights each counts once.
    assert_true(opens(PAIRS("targets=a,b", "losses=mse,l1")));
    assert_true(task.learner.losses[0].scale == 1 && task.learner.losses[1].scale == 1);
    grt_task_close(&task);
    run_kit_end();
}

static const struct CMUnitTest cases[] = {
    REF_CASE(models),  REF_CASE(losses_by_targets), REF_CASE(batches),         REF_CASE(transforms),
    REF_CASE(refused), REF_CASE(several_losses),    REF_CASE(ways_of_reading),
};
TEST_SUITE(opened, false, cases);
