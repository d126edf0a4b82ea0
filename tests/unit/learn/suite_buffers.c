// SPDX-License-Identifier: Apache-2.0
// Buffers of modules: a module that centres its input keeps a running mean in training and takes it
// off in evaluation. It is saved and restored with the parameters, and no optimizer touches it.
#include "kits/centre_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/checkpoint.h"
#include "gpurt/make.h"
#include "gpurt/supervised.h"
#include "learn/learner_parts.h"
#include "learn/snapshot.h"

static const struct centre_shape alone = {false, 2}, behind = {true, 2}, of_run = {true, 1};

static double evaluated(struct grt_learner *learner, const struct network_samples *s) {
    struct grt_graph *graph =
        grt_learner_evaluate(learner, grt_step_desc(.x = {s->bx}, .y = {s->by}));
    assert_non_null(graph);
    struct grt_learn_state state;
    assert_true(grt_learner_state(learner, &state));
    state.eval_loss = state.eval_samples = 0;
    assert_true(grt_learner_set_state(learner, &state));
    learn_run(graph, 1);
    grt_graph_destroy(&graph);
    assert_true(grt_learner_state(learner, &state));
    return (double)state.eval_loss / NETWORK_SAMPLES;
}

// The mean of a micro-batch of 5 samples, twice a step, moves the buffer; evaluations read it and
// leave it.
static void running(void **state) {
    (void)state;
    const struct network_case c = {"", {NULL, 1, CENTRE_WIDTH, "mse", 0}, 2, 0, true};
    struct network_samples s = network_samples_make(&c, GRT_F32);
    struct grt_learner_desc desc = centre_learner(&alone);
    struct grt_learner *learner = grt_learner_create(test.dev, &desc);
    assert_non_null(learner);
    assert_true(grt_learner_bytes(learner, "buffers") >= CENTRE_WIDTH * 4);
    assert_true(grt_learner_alloc(learner));
    const char *name = NULL;
    const struct grt_tensor *buffer = grt_learner_tensor(learner, GRT_TENSOR_BUFFER, 0, &name);
    assert_string_equal(name, "0.running_mean");
    assert_true(buffer->rank == 1 && buffer->shape[0] == CENTRE_WIDTH);
    assert_null(grt_learner_tensor(learner, GRT_TENSOR_BUFFER, 1, NULL));
    assert_int_equal(grt_learner_parameters(learner), 2 * CENTRE_WIDTH + 2);
    double want[CENTRE_WIDTH];
    struct test_compare compare = test_compare(test.dev, "a running mean");
    struct grt_graph *graph = grt_learner_step(learner, grt_step_desc(.x = {s.bx}, .y = {s.by}));
    assert_non_null(graph);
    for (uint32_t k = 0; k < CENTRE_WIDTH; k++) {
        want[k] = 0.25;
    }
    for (uint32_t step = 0; step < 4; step++) {
        float *got = learn_read(buffer);
        for (uint32_t k = 0; k < CENTRE_WIDTH; k++) {
            test_compare_value(&compare, step * CENTRE_WIDTH + k, got[k],
                               (struct oracle_value){want[k], 128 * ORACLE_U});
            for (uint32_t micro = 0; micro < 2; micro++) {
                double mean = 0;
                for (uint32_t i = 0; i < 5; i++) {
                    mean += s.x[(5 * micro + i) * CENTRE_WIDTH + k] / 5;
                }
                want[k] += 0.1 * (mean - want[k]);
            }
        }
        free(got);
        learn_run(graph, 1);
    }
    // y = (x - running mean) W + b, in evaluation.
    float *w = learn_read(grt_learner_tensor(learner, GRT_TENSOR_PARAM, 0, NULL));
    float *b = learn_read(grt_learner_tensor(learner, GRT_TENSOR_PARAM, 1, NULL));
    double loss = 0;
    for (uint32_t i = 0; i < NETWORK_SAMPLES; i++) {
        for (uint32_t o = 0; o < 2; o++) {
            double y = (double)b[o];
            for (uint32_t k = 0; k < CENTRE_WIDTH; k++) {
                y += (s.x[i * CENTRE_WIDTH + k] - want[k]) * (double)w[o * CENTRE_WIDTH + k];
            }
            loss += pow(y - s.y[2 * i + o], 2) / (2 * NETWORK_SAMPLES);
        }
    }
    test_compare_value(&compare, 99999, (float)evaluated(learner, &s),
                       (struct oracle_value){loss, 1e-5 * loss});
    float *after = learn_read(buffer);
    for (uint32_t k = 0; k < CENTRE_WIDTH; k++) {
        test_compare_value(&compare, k, after[k], (struct oracle_value){want[k], 128 * ORACLE_U});
    }
    test_compare_end(&compare);
    // Of what is not finite it is named; a reset gives the first value back.
    float bad = NAN;
    char text[128];
    assert_true(grt_buf_write(buffer->range.buf, buffer->range.offset + 12, &bad, 4));
    assert_true(grt_learner_find_nonfinite(learner, NULL, NULL, text, sizeof text));
    assert_string_equal(text, "buffer 0.running_mean");
    assert_true(grt_learner_reset(learner, 1));
    free(after);
    after = learn_read(buffer);
    for (uint32_t k = 0; k < CENTRE_WIDTH; k++) {
        assert_true(after[k] == 0.25f);
    }
    free(after);
    free(w);
    free(b);
    grt_graph_destroy(&graph);
    grt_learner_destroy(&learner);
    network_samples_end(&s);
}

// A snapshot has it, and a learner for inference that loads the archive evaluates the same.
static void archive_of(bool beside) {
    const struct network_case c = {"", {NULL, 1, CENTRE_WIDTH, "mse", 0}, 2, 0, true};
    struct network_samples s = network_samples_make(&c, GRT_F32);
    struct grt_learner_desc desc = centre_learner(&behind);
    struct grt_learner *learner = grt_learner_create(test.dev, &desc);
    assert_non_null(learner);
    assert_true(grt_learner_alloc(learner));
    struct grt_graph *graph = grt_learner_step(learner, grt_step_desc(.x = {s.bx}, .y = {s.by}));
    assert_non_null(graph);
    learn_run(graph, 5);
    struct grt_snapshot *snapshot = grt_snapshot_create(learner, beside);
    assert_non_null(snapshot);
    assert_true(grt_snapshot_take(snapshot, 0, true) && grt_snapshot_wait(snapshot, 0));
    double loss = evaluated(learner, &s);
    learn_run(graph, 1);  // the snapshot is of before
    struct grt_archive *archive = grt_archive_create();
    static const enum grt_tensor_role roles[] = {GRT_TENSOR_PARAM, GRT_TENSOR_BUFFER};
    const struct grt_tensor *t;
    const char *name;
    char full[GRT_ARCHIVE_NAME];
    for (uint32_t r = 0; r < 2; r++) {
        for (uint32_t i = 0; (t = grt_learner_tensor(learner, roles[r], i, &name)); i++) {
            snprintf(full, sizeof full, "model/%s", name);
            assert_non_null(grt_archive_add(archive, full, t->dtype, t->rank, t->shape,
                                            grt_snapshot_tensor(snapshot, t)));
        }
    }
    desc.inference = true;
    struct grt_learner *other = grt_learner_create(test.dev, &desc);
    assert_non_null(other);
    assert_true(grt_learner_alloc(other));
    assert_true(grt_task_load_model(other, archive));
    assert_true(evaluated(other, &s) == loss);
    // Without the buffer the model is not whole.
    struct grt_archive_tensor *kept = grt_archive_find(archive, "model/1.running_mean");
    assert_non_null(kept);
    snprintf(kept->name, sizeof kept->name, "model/1.walking_mean");
    TEST_REFUSED(grt_task_load_model(other, archive), GRT_BAD_DATA, "1.running_mean");
    grt_archive_destroy(&archive);
    grt_snapshot_destroy(&snapshot);
    grt_graph_destroy(&graph);
    grt_learner_destroy(&learner);
    grt_learner_destroy(&other);
    network_samples_end(&s);
}

// Where activations are computed twice, statistics are taken once.
static void computed_again(void **state) {
    (void)state;
    static const struct centre_shape deep = {true, 2, true};
    const struct network_case c = {"", {NULL, 1, CENTRE_WIDTH, "mse", 0}, 2, 0, true};
    struct network_samples s = network_samples_make(&c, GRT_F32);
    float *mean[2], *parameters[2];
    size_t count = 0;
    for (int again = 0; again < 2; again++) {
        struct grt_learner_desc desc = centre_learner(&deep);
        desc.recompute = again == 1;
        struct learn l = {.learner = grt_learner_create(test.dev, &desc)};
        assert_non_null(l.learner);
        assert_true(grt_learner_alloc(l.learner));
        struct grt_graph *graph =
            grt_learner_step(l.learner, grt_step_desc(.x = {s.bx}, .y = {s.by}));
        assert_non_null(graph);
        learn_run(graph, 4);
        mean[again] = learn_read(grt_learner_tensor(l.learner, GRT_TENSOR_BUFFER, 0, NULL));
        parameters[again] = learn_parameters(&l, &count);
        grt_graph_destroy(&graph);
        grt_learner_destroy(&l.learner);
    }
    test_same_floats(test.dev, "a running mean, computed again", mean[1], mean[0], CENTRE_WIDTH);
    test_same_floats(test.dev, "parameters, computed again", parameters[1], parameters[0],
                     (uint32_t)count);
    for (int again = 0; again < 2; again++) {
        free(mean[again]);
        free(parameters[again]);
    }
    network_samples_end(&s);
}

// ---- runs ----

struct stop {
    uint64_t at, step;
};

static void on_report(void *context, const struct grt_run_report *r) {
    ((struct stop *)context)->step = r->step;
}

static bool on_stop(void *context) {
    const struct stop *s = context;
    return s->at > 0 && s->step >= s->at;
}

static void train(const char *folder, const char *dir, bool resume, uint64_t stop_at) {
    static struct grt_config c;
    char path[160];
    struct stop stop = {.at = stop_at};
    grt_config_init(&c);
    snprintf(path, sizeof path, "%s/airs.h5", folder);
    assert_true(grt_config_set(&c, GRT_CONFIG_DATA, path));
    snprintf(path, sizeof path, "%s/%s", folder, dir);
    assert_true(grt_config_set(&c, GRT_CONFIG_CHECKPOINT_DIR, path));
    static const char *const pairs[] = {"batch_size=16", "epochs=2", "num_workers=0", "cache=none"};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_true(grt_config_override(&c, pairs[i]));
    }
    struct grt_supervised *run =
        grt_supervised_create(&(struct grt_supervised_desc){.dev = test.dev,
                                                            .config = &c,
                                                            .make = centre_make,
                                                            .of = &of_run,
                                                            .resume = resume,
                                                            .lockstep = stop_at > 0,
                                                            .stop = on_stop,
                                                            .report = on_report,
                                                            .context = &stop});
    assert_non_null(run);
    assert_int_equal(grt_run_go(grt_supervised_driver(run)),
                     stop_at > 0 ? GRT_ENDED_SIGNAL : GRT_ENDED_EPOCHS);
    grt_supervised_destroy(&run);
}

// A run with a network of the caller's: stopped and resumed, it has the same bits, the buffer's
// too.
static void resumed(void **state) {
    (void)state;
    char folder[] = "/tmp/gpurt-buffers-XXXXXX", path[160], command[512];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/airs.h5", folder);
    assert_true(
        grt_data_make(grt_make_desc(.path = path, .make = GRT_MAKE_REGRESSION, .samples = 120,
                                    .features = 9, .noise = -1, .seed = 4)));
    train(folder, "whole", false, 0);
    train(folder, "part", false, 5);
    train(folder, "part", true, 0);
    snprintf(command, sizeof command,
             "cmp '%s'/whole/step-000000000014.h5 '%s'/part/step-000000000014.h5", folder, folder);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof path, "%s/part/step-000000000014.h5", folder);
    struct grt_archive *archive = grt_checkpoint_load(path);
    assert_non_null(archive);
    const struct grt_archive_tensor *kept = grt_archive_find(archive, "model/1.running_mean");
    assert_non_null(kept);
    assert_true(((const float *)kept->data)[0] != 0.25f);
    assert_null(grt_archive_find(archive, "optimizer/exp_avg.1.running_mean"));
    grt_archive_destroy(&archive);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}
static void archived(void **state) {
    (void)state;
    archive_of(false);
    archive_of(true);
}

// A whole snapshot that is lent stays as it is while others are taken. There is always a place for
// the next: what cannot be lent then is copied, until one comes back.
static void lend_of(bool beside) {
    enum { LENT = 2 };
    const struct network_case c = {"", {NULL, 1, CENTRE_WIDTH, "mse", 0}, 2, 0, true};
    struct network_samples s = network_samples_make(&c, GRT_F32);
    struct grt_learner_desc desc = centre_learner(&behind);
    struct grt_learner *learner = grt_learner_create(test.dev, &desc);
    assert_true(learner && grt_learner_alloc(learner));
    struct grt_graph *graph = grt_learner_step(learner, grt_step_desc(.x = {s.bx}, .y = {s.by}));
    struct grt_snapshot *snapshot = grt_snapshot_create(learner, beside);
    assert_true(graph && snapshot);
    const struct grt_tensor *t = grt_learner_tensor(learner, GRT_TENSOR_PARAM, 0, NULL);
    uint64_t bytes = grt_tensor_bytes(t);
    float *were[LENT + 1] = {0}, *now = test_alloc(bytes);
    void *loans[LENT] = {0}, *numbers[LENT] = {0};
    void (*give_back)(void *) = NULL;
    for (uint32_t i = 0; i < LENT + 1; i++) {
        learn_run(graph, 1);
        were[i] = test_alloc(bytes);
        assert_true(grt_buf_read(t->range.buf, t->range.offset, were[i], bytes));
        assert_true(i == 0 || memcmp(were[i], were[i - 1], bytes) != 0);
        assert_true(grt_snapshot_take(snapshot, i, true) && grt_snapshot_wait(snapshot, i));
        assert_memory_equal(grt_snapshot_tensor(snapshot, t), were[i], bytes);
        if (i < LENT) {
            numbers[i] = grt_snapshot_tensor(snapshot, t);
            loans[i] = grt_snapshot_lend(snapshot, &give_back);
            assert_non_null(loans[i]);
        }
    }
    assert_null(grt_snapshot_lend(snapshot, &give_back));
    // The next goes where the one that could not be lent is.
    learn_run(graph, 1);
    assert_true(grt_snapshot_take(snapshot, 0, true) && grt_snapshot_wait(snapshot, 0));
    assert_true(grt_buf_read(t->range.buf, t->range.offset, now, bytes));
    assert_memory_equal(grt_snapshot_tensor(snapshot, t), now, bytes);
    for (uint32_t i = 0; i < LENT; i++) {
        assert_memory_equal(numbers[i], were[i], bytes);
    }
    // One that was lent twice is free when it was given back twice.
    give_back(loans[1]);
    void *third = grt_snapshot_lend(snapshot, &give_back), *kept = grt_snapshot_tensor(snapshot, t);
    assert_non_null(third);
    assert_ptr_equal(grt_snapshot_lend(snapshot, &give_back), third);
    give_back(third);
    learn_run(graph, 1);
    assert_true(grt_snapshot_take(snapshot, 1, true) && grt_snapshot_wait(snapshot, 1));
    assert_ptr_equal(grt_snapshot_tensor(snapshot, t), numbers[1]);
    assert_memory_equal(kept, now, bytes);
    assert_memory_equal(numbers[0], were[0], bytes);
    give_back(third);
    give_back(loans[0]);
    for (uint32_t i = 0; i < LENT + 1; i++) {
        free(were[i]);
    }
    free(now);
    grt_snapshot_destroy(&snapshot);
    grt_graph_destroy(&graph);
    grt_learner_destroy(&learner);
    network_samples_end(&s);
}

static void lent(void **state) {
    (void)state;
    lend_of(false);
    lend_of(true);
}

static const struct CMUnitTest cases[] = {TEST_CASE(running), TEST_CASE(archived), TEST_CASE(lent),
                                          TEST_CASE(computed_again), TEST_CASE(resumed)};
TEST_SUITE(buffers, true, cases);
