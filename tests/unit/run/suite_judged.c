// SPDX-License-Identifier: Apache-2.0
// Trained networks: what one got wrong, the worst first, what cannot be judged, and which samples
// features are of.
#include "kits/data_kit.h"
#include "kits/ref_kit.h"
#include "kits/run_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/checkpoint.h"
#include "gpurt/features.h"
#include "run/supervised/supervised_parts.h"

enum { ROWS = 60, KINDS = 3, PIXELS = 4 };

struct mistake {
    int row;
    uint32_t truth, guess;
    double loss, z;
};

static int worse(const void *a, const void *b) {
    const struct mistake *x = a, *y = b;
    return x->loss != y->loss ? (x->loss < y->loss) - (x->loss > y->loss) : x->row - y->row;
}

// One logit is the first pixel, the others are 0: all of what a network got wrong is known. Of
// those that are as bad the first of the file come first.
static void mistakes(void **state) {
    (void)state;
    static double x[ROWS * PIXELS], y[ROWS];
    run_kit_begin(GRT_MAKE_REGRESSION);
    double mean = 0, square = 0;
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < PIXELS; k++) {
            x[i * PIXELS + k] = k == 0 ? i * 7 % 30 : i + k;
            mean += x[i * PIXELS + k] / (ROWS * PIXELS);
        }
        y[i] = i % KINDS;
    }
    for (int i = 0; i < ROWS * PIXELS; i++) {
        square += (x[i] - mean) * (x[i] - mean) / (ROWS * PIXELS);
    }
    data_kit_write(run_kit_data, true,
                   &(struct data_kit_set){.name = "x", .shape = {ROWS, 2, 2, 1}, .data = x});
    data_kit_write(
        run_kit_data, false,
        &(struct data_kit_set){.name = "y", .type = H5T_STD_I32LE, .shape = {ROWS}, .data = y});
    for (int normal = 0; normal < 2; normal++) {
        struct grt_config c = run_kit_bare(normal ? "normal" : "plain"), use;
        static const char *const pairs[] = {"model=[flatten, {linear: out}]", "epochs=1",
                                            "batch_size=16", "validation_split=0"};
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
            assert_true(grt_config_override(&c, pairs[i]));
        }
        assert_true(grt_config_override(&c, normal ? "normalize=true" : "normalize=false"));
        struct grt_supervised *run =
            grt_supervised_create(&(struct grt_supervised_desc){.dev = test.dev, .config = &c});
        assert_non_null(run);
        assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_EPOCHS);
        grt_supervised_destroy(&run);
        struct grt_archive *model = grt_checkpoint_newest(c.checkpoint_dir);
        assert_non_null(model);
        for (uint32_t i = 0; i < model->tensor_count; i++) {
            struct grt_archive_tensor *t = &model->tensors[i];
            if (strncmp(t->name, "model/", 6) == 0) {
                memset(t->data, 0, t->bytes);
                if (t->rank == 2) {
                    assert_true(t->shape[0] == KINDS && t->shape[1] == PIXELS);
                    ((float *)t->data)[PIXELS] = 1;
                }
            }
        }
        grt_config_init(&use);
        assert_true(grt_config_set(&use, GRT_CONFIG_DATA, run_kit_data));
        struct grt_classified *got =
            grt_classified_create(test.dev, model, &use, GRT_PART_ALL, NULL);
        assert_non_null(got);
        struct mistake all[ROWS];
        uint32_t count = 0;
        double sum = 0;
        uint64_t confusion[KINDS * KINDS] = {0};
        for (int i = 0; i < ROWS; i++) {
            double z = normal ? (x[i * PIXELS] - mean) / sqrt(square) : x[i * PIXELS];
            uint32_t truth = (uint32_t)y[i], guess = z > 0 ? 1 : 0;
            double loss = log(2 + exp(z)) - (truth == 1 ? z : 0);
            sum += loss;
            confusion[truth * KINDS + guess]++;
            if (truth != guess) {
                all[count++] = (struct mistake){i, truth, guess, loss, z};
            }
        }
        qsort(all, count, sizeof *all, worse);
        assert_true(count > GRT_MISTAKES);
        assert_int_equal(got->mistake_count, GRT_MISTAKES);
        assert_memory_equal(got->confusion, confusion, sizeof confusion);
        assert_true(got->height == 2 && got->width == 2 && got->channels == 1);
        assert_true(got->classes == KINDS && got->weight == ROWS);
        assert_true(fabs(got->baseline - 1.0 / 3) < 1e-12 && got->class_weights[2] == 20);
        assert_true(fabs(got->evaluation.loss - sum / ROWS) < 1e-4 * sum / ROWS);
        assert_true(fabs(got->evaluation.accuracy - 1 + (double)count / ROWS) < 1e-9);
        assert_true(got->evaluation.top5 == -1 && got->evaluation.samples == ROWS);
        for (int i = 0; i < GRT_MISTAKES; i++) {
            const struct grt_mistake *m = &got->mistakes[i];
            double whole = 2 + exp(all[i].z);
            double most = all[i].guess == 1 ? exp(all[i].z) : 1;
            assert_true(m->truth == all[i].truth && m->guess == all[i].guess);
            assert_true(fabs(m->loss - all[i].loss) < 1e-4 * fmax(1, all[i].loss));
            assert_true(fabs(m->truth_share - exp(-all[i].loss)) < 1e-4);
            assert_true(fabs(m->guess_share - most / whole) < 1e-4);
            for (int k = 0; k < PIXELS; k++) {
                assert_true(fabs((double)m->image[k] - x[all[i].row * PIXELS + k]) < 1e-3);
            }
        }
        grt_classified_destroy(&got);
        assert_null(got);
        // Predictions, also of an image and its mirror image: the first pixel and the second.
        for (int flips = 0; flips < 2; flips++) {
            assert_true(grt_config_override(&use, flips ? "test_flips=true" : "batch_size=7"));
            struct grt_archive *said = grt_predict(test.dev, model, &use, NULL);
            assert_non_null(said);
            assert_string_equal(grt_archive_text(said, "y_is", ""), "logits");
            const float *out = grt_archive_find(said, "y")->data;
            const float *shares = grt_archive_find(said, "probability")->data;
            const uint32_t *kinds = grt_archive_find(said, "class")->data;
            for (int i = 0; i < ROWS; i++) {
                double z[2];
                for (int k = 0; k < 2; k++) {
                    z[k] = x[i * PIXELS + k];
                    z[k] = normal ? (z[k] - mean) / sqrt(square) : z[k];
                }
                double logit = flips ? (z[0] + z[1]) / 2 : z[0];
                assert_true(fabs((double)out[3 * i + 1] - logit) < 1e-4 && out[3 * i] == 0);
                assert_int_equal(kinds[i], out[3 * i + 1] > 0);
                assert_true(fabs((double)shares[3 * i + 1] - exp(logit) / (2 + exp(logit))) < 1e-4);
            }
            grt_archive_destroy(&said);
        }
        grt_archive_destroy(&model);
    }
    run_kit_end();
}

// What predictions are called, and what they have beside the numbers.
static void forms_of_predictions(void **state) {
    (void)state;
    static double x[3 * ROWS], two[2 * ROWS], kinds[ROWS];
    static const struct {
        const char *pairs[4], *is;
        uint64_t outputs;
        bool shares;
        const char *class_of;  // a tensor, or NULL
        uint64_t first, count;
    } rows[] = {
        {{"targets=b"}, "values", 2, false, NULL, 0, 0},
        {{"targets=b", "loss=bce"}, "logits", 2, true, NULL, 0, 0},
        {{"targets=k"}, "logits", 3, true, "class", 0, 3},
        {{"targets=b,k", "losses=mse,cross_entropy(3)"}, "mixed", 5, false, "class_2", 2, 3},
        {{"targets=k,b", "losses=cross_entropy(3),l1"}, "mixed", 5, false, "class_1", 0, 3},
    };
    run_kit_begin(GRT_MAKE_REGRESSION);
    for (int i = 0; i < ROWS; i++) {
        x[3 * i] = x[3 * i + 1] = (i % 11 - 5) / 5.0;
        x[3 * i + 2] = i % 4 - 1.5;
        two[2 * i] = i % 2;
        two[2 * i + 1] = i % 3 == 0;
        kinds[i] = i % KINDS;
    }
    data_kit_write(run_kit_data, true,
                   &(struct data_kit_set){.name = "x", .shape = {ROWS, 3}, .data = x});
    data_kit_write(run_kit_data, false,
                   &(struct data_kit_set){.name = "b", .shape = {ROWS, 2}, .data = two});
    data_kit_write(
        run_kit_data, false,
        &(struct data_kit_set){.name = "k", .type = H5T_STD_I32LE, .shape = {ROWS}, .data = kinds});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *pairs[5] = {"epochs=1"};
        struct run_kit_watch w = {0};
        struct grt_config use;
        char dir[16];
        memcpy(pairs + 1, rows[i].pairs, 3 * sizeof *pairs);
        snprintf(dir, sizeof dir, "run%zu", i);
        struct grt_config c = run_kit_config(dir, pairs);
        assert_int_equal(run_kit_watched(&c, false, &w), GRT_ENDED_EPOCHS);
        struct grt_archive *model = grt_checkpoint_newest(c.checkpoint_dir);
        grt_config_init(&use);
        assert_true(model && grt_config_set(&use, GRT_CONFIG_DATA, run_kit_data));
        struct grt_archive *said = grt_predict(test.dev, model, &use, NULL);
        assert_non_null(said);
        uint64_t n = rows[i].outputs;
        assert_string_equal(grt_archive_text(said, "y_is", ""), rows[i].is);
        const struct grt_archive_tensor *y = grt_archive_find(said, "y");
        assert_true(y && y->shape[0] == ROWS && y->shape[1] == n);
        const struct grt_archive_tensor *p = grt_archive_find(said, "probability");
        assert_int_equal(p != NULL, rows[i].shares);
        assert_int_equal(said->tensor_count, 1 + rows[i].shares + (rows[i].class_of != NULL));
        for (uint64_t r = 0; r < ROWS; r++) {
            const float *out = (const float *)y->data + r * n;
            double sum = 0;
            for (uint64_t k = 0; k < n; k++) {
                sum += exp((double)out[k]);
            }
            for (uint64_t k = 0; p && k < n; k++) {
                double share =
                    exp((double)out[k]) / (rows[i].class_of ? sum : 1 + exp((double)out[k]));
                assert_true(fabs((double)((const float *)p->data)[r * n + k] - share) < 1e-6);
            }
            if (rows[i].class_of) {
                uint32_t best = 0;
                for (uint32_t k = 1; k < rows[i].count; k++) {
                    best = out[rows[i].first + k] > out[rows[i].first + best] ? k : best;
                }
                const struct grt_archive_tensor *t = grt_archive_find(said, rows[i].class_of);
                assert_true(t && t->dtype == GRT_U32 && t->rank == 1);
                assert_int_equal(((const uint32_t *)t->data)[r], best);
            }
        }
        grt_archive_destroy(&said);
        grt_archive_destroy(&model);
    }
    run_kit_end();
}

// What cannot be judged, and why.
static void no_judgement(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    struct grt_config c = run_kit_config("run", PAIRS("epochs=1", "validation_split=0")), use;
    struct grt_supervised *run =
        grt_supervised_create(&(struct grt_supervised_desc){.dev = test.dev, .config = &c});
    assert_non_null(run);
    assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_EPOCHS);
    grt_supervised_destroy(&run);
    struct grt_archive *model = grt_checkpoint_newest(c.checkpoint_dir);
    assert_non_null(model);
    grt_config_init(&use);
    assert_true(grt_config_set(&use, GRT_CONFIG_DATA, run_kit_data));
    struct grt_evaluation e;
    char text[256];
    const char *wanted = "a device, a model and a config are wanted";
    TEST_REFUSED(grt_evaluate(NULL, model, &use, GRT_PART_ALL, NULL, &e), GRT_INVALID, wanted);
    TEST_REFUSED(grt_evaluate(test.dev, model, &use, GRT_PART_COUNT, NULL, &e), GRT_INVALID,
                 wanted);
    TEST_REFUSED(grt_evaluate(test.dev, model, &use, GRT_PART_ALL, NULL, NULL), GRT_INVALID,
                 wanted);
    TEST_REFUSED(grt_predict(test.dev, NULL, &use, NULL), GRT_INVALID, wanted);
    TEST_REFUSED(grt_classified_create(test.dev, model, &use, GRT_PART_COUNT, NULL), GRT_INVALID,
                 wanted);
    snprintf(text, sizeof text, "the targets of %s are no classes", run_kit_data);
    TEST_REFUSED(grt_classified_create(test.dev, model, &use, GRT_PART_ALL, NULL), GRT_CONFIG,
                 text);
    snprintf(text, sizeof text, "%s has no samples for that", run_kit_data);
    TEST_REFUSED(grt_evaluate(test.dev, model, &use, GRT_PART_VALIDATION, NULL, &e), GRT_BAD_DATA,
                 text);
    snprintf(text, sizeof text, "test_flips: samples of %s are no images", run_kit_data);
    assert_true(grt_config_override(&use, "test_flips=true"));
    TEST_REFUSED(grt_predict(test.dev, model, &use, NULL), GRT_CONFIG, text);
    grt_archive_destroy(&model);
    // Weights that are all 0 have no mean; where there are none it is of nothing else.
    static struct grt_task task;
    snprintf(task.config.data, sizeof task.config.data, "a.h5");
    snprintf(task.config.sample_weights, sizeof task.config.sample_weights, "heavy");
    assert_true(supervised_weighs(&task, 0));
    task.info.weighted = 1;
    assert_true(supervised_weighs(&task, 1e-30));
    TEST_REFUSED(supervised_weighs(&task, 0), GRT_BAD_DATA,
                 "a.h5: the weights of these samples (sample_weights=heavy) are all 0: "
                 "`sample_weights=none` leaves weights out");
    TEST_REFUSED(supervised_weighs(&task, NAN), GRT_BAD_DATA, "are all 0");
    run_kit_end();
}

// ---- features ----

static void write_sets(bool tests) {
    static double x[3 * ROWS], y[ROWS];
    for (int i = 0; i < ROWS; i++) {
        x[3 * i] = i;
        x[3 * i + 1] = i % 7;
        x[3 * i + 2] = i % KINDS;
        y[i] = i % KINDS;
    }
    static const char *const names[] = {"x", "y", "test/x", "test/y", "z"};
    for (int k = 0; k < 5; k++) {
        struct data_kit_set set = {
            .name = names[k], .shape = {k > 1 && k < 4 ? 20 : ROWS}, .data = y};
        if (k == 0 || k == 2) {
            set.shape[1] = 3;
            set.data = x;
        } else if (k < 4) {
            set.type = H5T_STD_I32LE;
        }
        if (k == 2 && tests) {
            hid_t file = H5Fopen(run_kit_data, H5F_ACC_RDWR, H5P_DEFAULT);
            hid_t group = H5Gcreate2(file, "test", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
            assert_true(file >= 0 && group >= 0 && H5Gclose(group) >= 0 && H5Fclose(file) >= 0);
        }
        if (tests || k < 2 || k == 4) {
            data_kit_write(run_kit_data, k == 0, &set);
        }
    }
}

// Which samples are the bank, and which are asked about.
static void which_samples(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    static const struct {
        bool tests;
        const char *pairs[3], *why;  // NULL: they are taken
        uint64_t bank, queries;
    } rows[] = {
        {false, {"seed=0"}, NULL, 48, 12},  // a fifth
        {false, {"validation_split=0.5"}, NULL, 30, 30},
        {false, {"validation_split=0"}, NULL, 48, 12},
        {true, {"seed=0"}, NULL, ROWS, 20},
        {true, {"targets=y"}, NULL, 48, 12},
        {true, {"inputs=x"}, NULL, 48, 12},
        {false, {"targets=z"}, " has no classes 'z'; `targets` names others", 0, 0},
        {false, {"targets=none"}, " has no classes 'none'; `targets` names others", 0, 0},
    };
    write_sets(false);
    struct grt_config c = run_kit_config("run", PAIRS("epochs=1", "hidden=8", "depth=2")), use;
    struct run_kit_watch w = {0};
    assert_int_equal(run_kit_watched(&c, false, &w), GRT_ENDED_EPOCHS);
    struct grt_archive *model = grt_checkpoint_newest(c.checkpoint_dir);
    assert_non_null(model);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_features_of of;
        write_sets(rows[i].tests);
        grt_config_init(&use);
        assert_true(grt_config_set(&use, GRT_CONFIG_DATA, run_kit_data));
        assert_true(grt_config_override(&use, rows[i].pairs[0]));
        assert_int_equal(grt_features_labelled(&use), !rows[i].why);
        const struct grt_features_desc desc = {.model = model, .config = &use, .pixels = true};
        if (rows[i].why) {
            TEST_REFUSED(grt_features_take(test.dev, &desc, &of), GRT_BAD_DATA, rows[i].why);
            continue;
        }
        assert_true(grt_features_take(test.dev, &desc, &of));
        assert_true(of.bank.rows == rows[i].bank && of.queries.rows == rows[i].queries);
        assert_true(of.bank_x.rows == rows[i].bank && of.queries_x.rows == rows[i].queries);
        assert_true(of.bank.width == 8 && of.queries.width == 8 && of.bank_x.width == 3);
        // Samples lie beside their classes, each once.
        uint32_t seen[ROWS] = {0};
        for (uint64_t k = 0; k < of.bank.rows; k++) {
            seen[(uint32_t)of.bank_x.x[3 * k]]++;
            assert_int_equal(of.bank.classes[k], (uint32_t)of.bank_x.x[3 * k + 2]);
            assert_int_equal(of.bank_x.classes[k], of.bank.classes[k]);
        }
        for (uint64_t k = 0; k < of.queries.rows; k++) {
            seen[(uint32_t)of.queries_x.x[3 * k]]++;
            assert_int_equal(of.queries.classes[k], (uint32_t)of.queries_x.x[3 * k + 2]);
        }
        for (uint32_t k = 0; k < ROWS; k++) {
            assert_int_equal(seen[k], rows[i].bank == ROWS && k < 20 ? 2 : 1);
        }
        grt_features_of_finish(&of);
        assert_true(of.bank.x == NULL && of.queries_x.rows == 0);
    }
    // All samples as numbers, with classes where there are some.
    for (int classes = 0; classes < 2; classes++) {
        grt_config_init(&use);
        assert_true(grt_config_set(&use, GRT_CONFIG_DATA, run_kit_data));
        assert_true(classes || grt_config_override(&use, "targets=z"));
        struct grt_archive *a = grt_features_archive(test.dev, model, &use, NULL);
        assert_non_null(a);
        const struct grt_archive_tensor *t = grt_archive_find(a, "embedding");
        assert_true(t && t->rank == 2 && t->shape[0] == ROWS && t->shape[1] == 8);
        t = grt_archive_find(a, "class");
        assert_int_equal(t != NULL, classes);
        for (uint32_t k = 0; t && k < ROWS; k++) {
            assert_int_equal(((const uint32_t *)t->data)[k], k % KINDS);
        }
        grt_archive_destroy(&a);
    }
    grt_config_init(&use);
    assert_true(grt_config_set(&use, GRT_CONFIG_DATA, "a.csv"));
    assert_false(grt_features_labelled(&use) || grt_features_labelled(NULL));
    struct grt_features_of of;
    TEST_REFUSED(grt_features_take(
                     test.dev, &(struct grt_features_desc){.model = model, .config = &use}, &of),
                 GRT_BAD_DATA,
                 "a.csv: its classes have no name here: `gpurt data import` makes HDF5 of it, and "
                 "a .npz has x and y");
    TEST_REFUSED(grt_features_take(test.dev, &(struct grt_features_desc){.config = &use}, &of),
                 GRT_INVALID, "a device, a model and a config are wanted");
    TEST_REFUSED(grt_features_archive(test.dev, NULL, &use, NULL), GRT_INVALID, "are wanted");
    grt_archive_destroy(&model);
    run_kit_end();
}

static const struct CMUnitTest cases[] = {REF_CASE(mistakes), REF_CASE(no_judgement),
                                          REF_CASE(forms_of_predictions), REF_CASE(which_samples)};
TEST_SUITE(judged, false, cases);
