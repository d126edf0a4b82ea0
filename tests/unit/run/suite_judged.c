// SPDX-License-Identifier: Apache-2.0
// Trained networks: what one got wrong, the worst first, and what cannot be judged.
#include "kits/data_kit.h"
#include "kits/ref_kit.h"
#include "kits/run_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/checkpoint.h"
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
                                            "batch_size=16"};
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
            assert_true(grt_config_override(&c, pairs[i]));
        }
        assert_true(grt_config_override(&c, normal ? "normalize=true" : "normalize=false"));
        struct run_kit_watch w = {0};
        assert_int_equal(run_kit_watched(&c, false, &w), GRT_ENDED_EPOCHS);
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

static const struct CMUnitTest cases[] = {REF_CASE(mistakes), REF_CASE(no_judgement)};
TEST_SUITE(judged, false, cases);
