// SPDX-License-Identifier: Apache-2.0
// What a learner of evolution strategies says of itself, all of it from known numbers: the tensors
// of its plan, what they begin with, each field of its reports, every value of its checkpoint, and
// the sentence of each refusal.
#include "harness/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/es.h"
#include "rl/es_parts.h"

#define OBS 3  // of the pendulum, which has one action
#define ENVS 11
#define DIRS 7
#define LENGTH 37

static struct grt_es_desc small_desc(void) {
    return (struct grt_es_desc){.env = grt_env_find("pendulum"),
                                .policy = {.hidden = 20, .bias = true},
                                .num_envs = ENVS,
                                .num_dirs = DIRS,
                                .dir_chunk = 3,
                                .top_dirs = 4,
                                .episode_length = LENGTH,
                                .seed = 12};
}

static struct grt_es *made(const struct grt_es_desc *desc) {
    struct grt_es *es = grt_es_create(test.dev, desc);
    assert_non_null(es);
    return es;
}

static float *numbers_of(const struct grt_tensor *tensor) {
    float *numbers = test_alloc(grt_tensor_bytes(tensor));
    assert_true(grt_es_read(tensor, numbers));
    return numbers;
}

// ---- the plan ----

static void tensors_of_the_plan(void **state) {
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        struct grt_es_desc desc = small_desc();
        desc.no_normalise = plain;
        struct grt_es *es = made(&desc);
        // 20 units of 3 observations and a bias in fours, then 21 rows of one quad of actions.
        const uint32_t quads = 5 * 4 + 21, lanes = 2 * 3 * ENVS;
        const struct {
            const struct grt_tensor *tensor;
            const char *label;
            enum grt_dtype dtype;
            uint64_t rows, cols;
        } want[] = {
            {es->control, "control", GRT_U32, 4, 0},
            {es->trial, "trial", GRT_U32, 4, 0},
            {es->theta, "theta", GRT_F32, quads, 4},
            {es->moments, "moments", GRT_F32, 2 * quads, 4},
            {es->norm, "norm", GRT_F32, 3, OBS},
            {es->report, "report", GRT_F32, ES_REPORT, 0},
            {es->results, "results", GRT_F32, GRT_ROLLOUT_RESULTS + 2 * OBS, 2 * DIRS},
            {es->weight, "weight", GRT_F32, DIRS, 0},
            {es->used, "used", GRT_F32, DIRS, 0},
            {es->state, "state", GRT_F32, desc.env->state, lanes},
            {es->score, "score", GRT_F32, GRT_ROLLOUT_SCORES, lanes},
            {es->sums, "sums", GRT_F32, plain ? 1 : 2 * OBS, plain ? 1 : lanes},
        };
        assert_int_equal(desc.env->obs, OBS);
        uint64_t bytes = 0;
        for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
            const struct grt_tensor *t = want[i].tensor;
            assert_string_equal(t->label, want[i].label);
            assert_int_equal(t->dtype, want[i].dtype);
            assert_int_equal(t->rank, want[i].cols ? 2 : 1);
            assert_int_equal(t->shape[0], want[i].rows);
            assert_int_equal(want[i].cols ? t->shape[1] : 0, want[i].cols);
            assert_int_equal(grt_tensor_bytes(t), t->range.size);
            bytes += t->range.size;
        }
        bytes += es->policies ? es->policies->range.size : 0;
        struct grt_es_size size = grt_es_size(es);
        assert_true(size.bytes >= bytes && size.bytes <= bytes + 13 * 4096);
        assert_int_equal(size.batch, 2 * DIRS * ENVS);
        assert_int_equal(es->first_dir, 0);
        assert_int_equal(es->dir_count, DIRS);
        assert_null(es->exchanged);
        assert_null(es->average);
        grt_es_destroy(&es);
    }
    struct grt_es *none = NULL;
    grt_es_destroy(&none);
    grt_es_destroy(NULL);
    assert_int_equal(grt_es_size(NULL).batch, 0);
    assert_null(grt_es_desc_of(NULL));
}

// Half of the time that a submit may take, by what a step took.
static void steps_of_a_launch(void **state) {
    (void)state;
    static const double limits[] = {0, 0.02, 1, 20};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct grt_es_desc desc = small_desc();
        desc.max_submit_ms = limits[i];
        struct grt_es *es = made(&desc);
        double fit = 0.5e-3 * (limits[i] > 0 ? limits[i] : 500) / es->step_seconds;
        double want = fit < 1 ? 1 : fit > LENGTH ? LENGTH : floor(fit);
        assert_true(es->step_seconds > 0);
        assert_true(fabs((double)es->at_once - want) <= 1);
        assert_in_range(es->at_once, 1, LENGTH);
        struct grt_es_size size = grt_es_size(es);
        assert_int_equal(size.steps_at_once, es->at_once);
        assert_int_equal(size.launches, 3 * ((LENGTH + es->at_once - 1) / es->at_once));
        grt_es_destroy(&es);
    }
}

// ---- the beginning ----

static void first_numbers(void **state) {
    (void)state;
    for (int blind = 0; blind < 2; blind++) {
        struct grt_es_desc desc = small_desc();
        desc.blind = blind;
        struct grt_es *es = made(&desc);
        uint32_t control[4];
        assert_true(grt_es_read(es->control, control));
        assert_int_equal(control[0], 12);
        assert_int_equal(control[1] | control[2] | control[3], 0);
        float *theta = numbers_of(es->theta), *norm = numbers_of(es->norm);
        float *moments = numbers_of(es->moments), *report = numbers_of(es->report);
        // Hidden weights and biases with deviation 1 / sqrt(3), then the output's zeros.
        double sum = 0, squares = 0;
        for (int i = 0; i < 41 * 4; i++) {
            assert_true((theta[i] != 0.0f) == (i < 80));
            assert_true(isfinite(theta[i]));
            sum += (double)theta[i];
            squares += (double)theta[i] * (double)theta[i];
        }
        double deviation = sqrt(squares / 80 - sum / 80 * sum / 80);
        assert_true(fabs(deviation * sqrt(3) - 1) < 0.3 && fabs(sum / 80) < 0.2);
        for (int i = 0; i < 2 * 41 * 4; i++) {
            assert_true(moments[i] == 0.0f);
        }
        for (int i = 0; i < OBS; i++) {
            assert_true(norm[i] == 0.0f && norm[OBS + i] == (blind ? 0.0f : 1.0f));
            assert_true(norm[2 * OBS + i] == 1.0f);
        }
        // As if four iterations had been seen, of each episode the 1st, 17th and 33rd step.
        for (uint32_t i = 0; i < ES_REPORT; i++) {
            float want = i == ES_POWER1 || i == ES_POWER2 ? 1.0f
                         : i == ES_COUNT                  ? 4.0f * 2 * DIRS * ENVS * 3
                                                          : 0.0f;
            assert_true(report[i] == want);
        }
        free(theta);
        free(norm);
        free(moments);
        free(report);
        grt_es_destroy(&es);
    }
    // Another seed begins elsewhere.
    struct grt_es_desc desc = small_desc();
    struct grt_es *one = made(&desc);
    desc.seed = 13;
    struct grt_es *two = made(&desc);
    float *a = numbers_of(one->theta), *b = numbers_of(two->theta);
    for (int i = 0; i < 80; i++) {
        assert_true(a[i] != b[i]);
    }
    free(a);
    free(b);
    grt_es_destroy(&one);
    grt_es_destroy(&two);
}

// ---- reports ----

static void reports(void **state) {
    (void)state;
    struct grt_es_desc desc = small_desc();
    struct grt_es *es = made(&desc);
    float returns[2 * DIRS];
    TEST_REFUSED(grt_es_returns(es, returns), GRT_INVALID, "grt_es_returns: no iteration yet");
    for (uint32_t i = 1; i <= 2; i++) {
        struct grt_es_report r = {.stopped = true};
        assert_true(grt_es_iterate(es, &r) && grt_es_returns(es, returns));
        double sum = 0, best = -INFINITY;
        for (int k = 0; k < 2 * DIRS; k++) {
            sum += (double)returns[k];
            best = fmax(best, (double)returns[k]);
            // A step of the pendulum costs at most pi^2 + 0.1 * 8^2 + 0.001 * 2^2.
            assert_true(returns[k] < 0 && returns[k] > -16.3f * LENGTH);
        }
        assert_int_equal(r.iteration, i);
        assert_false(r.stopped);
        assert_true(fabs((double)r.mean_return - sum / (2 * DIRS)) < 1e-4 * fabs(sum));
        assert_true(fabs((double)r.best_return - best) < 1e-5 * fabs(best));
        assert_true(r.spread > 0 && r.fall_rate == 0.0f);
        assert_true(r.good_rate >= 0 && r.best_good >= r.good_rate && r.best_good <= 1);
        assert_true(r.steps == 2.0 * DIRS * ENVS * LENGTH);  // a pendulum never falls
        assert_true(r.seconds > 0 && r.seconds < 600);
        assert_true(r.busy >= 0 && r.busy <= r.seconds);
    }
    struct grt_es_report trial = {.stopped = true, .spread = 7}, again;
    float *before = numbers_of(es->theta);
    assert_true(grt_es_evaluate(es, 5, &trial) && grt_es_evaluate(es, 6, &again));
    float *after = numbers_of(es->theta);
    assert_memory_equal(before, after, 41 * 16);
    assert_int_equal(trial.iteration, 2);
    // The same policy two iterations on is tried elsewhere, and there again.
    for (int i = 0; i < 2; i++) {
        struct grt_es_report same, later;
        es->done = 2;
        assert_true(grt_es_evaluate(es, 5, &same));
        es->done = 4;
        assert_true(grt_es_evaluate(es, 5, &later));
        assert_true(same.mean_return == trial.mean_return);
        assert_true(later.mean_return != trial.mean_return && later.iteration == 4);
    }
    es->done = 2;
    assert_false(trial.stopped);
    assert_true(trial.mean_return == trial.best_return && trial.mean_return < 0);
    assert_true(trial.mean_return > -16.3f * LENGTH && trial.mean_return != again.mean_return);
    assert_true(trial.good_rate >= 0 && trial.good_rate <= 1 && trial.fall_rate == 0.0f);
    assert_true(trial.spread == 0.0f && trial.steps == ENVS * LENGTH && trial.seconds > 0);
    free(before);
    free(after);
    grt_es_destroy(&es);
}

// Poles that fall: what a report says is what the sums of all sides come to, also where a lane of
// the sum has several of them, and the best is neither the first nor the last.
static void reports_of_falls(void **state) {
    (void)state;
    enum { SIDES = 40, COPIES = 3, STEPS = 60 };
    struct grt_es_desc desc = {.env = grt_env_find("cartpole"),
                               .policy = {.bias = true},
                               .num_envs = COPIES,
                               .num_dirs = SIDES / 2,
                               .dir_chunk = 7,
                               .episode_length = STEPS,
                               .step_size = 0.1f,
                               .noise_std = 2.0f,
                               .seed = 5};
    struct grt_es *es = made(&desc);
    // A trial has one side: its shares are of all steps that there could have been.
    struct grt_es_report trial;
    assert_true(grt_es_evaluate(es, 3, &trial));
    float *tried = numbers_of(es->results);
    assert_true(tried[1] > 0 && tried[2] > 0 && tried[3] < COPIES * STEPS);
    assert_true(fabs((double)trial.good_rate - (double)tried[1] / (COPIES * STEPS)) < 1e-6);
    assert_true(fabs((double)trial.fall_rate - (double)tried[2] / COPIES) < 1e-6);
    assert_true(trial.steps == (double)tried[3]);
    free(tried);
    for (int i = 0; i < 2; i++) {
        struct grt_es_report r;
        assert_true(grt_es_iterate(es, &r));
        float *results = numbers_of(es->results);  // rows: return, good steps, falls, steps
        double sums[4] = {0}, best = 0;
        for (int k = 0; k < SIDES; k++) {
            for (int row = 0; row < 4; row++) {
                sums[row] += (double)results[row * SIDES + k];
            }
            best = fmax(best, (double)results[SIDES + k]);
        }
        double episodes = SIDES * COPIES;
        assert_true(sums[1] > 0 && best > sums[1] / SIDES && sums[2] > 0);
        assert_true(fabs((double)r.mean_return - sums[0] / episodes) < 1e-3);
        assert_true(fabs((double)r.good_rate - sums[1] / episodes / STEPS) < 1e-6);
        assert_true(fabs((double)r.fall_rate - sums[2] / episodes) < 1e-6);
        assert_true(fabs(r.steps - sums[3]) < 1e-3 * sums[3]);
        assert_true(fabs((double)r.best_good - best / COPIES / STEPS) < 1e-6);
        free(results);
    }
    grt_es_destroy(&es);
}

// Of each episode the first observation counts and every sixteenth behind it, to the last step and
// no further.
static void observations_that_count(void **state) {
    (void)state;
    static const uint32_t lengths[] = {1, 15, 16, 17, 32, 33};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct grt_es_desc desc = small_desc();
        struct grt_es_report r;
        desc.episode_length = lengths[i];
        struct grt_es *es = made(&desc);
        float *before = numbers_of(es->report);
        assert_true(grt_es_iterate(es, &r));
        float *results = numbers_of(es->results), *after = numbers_of(es->report);
        uint32_t of_each = (lengths[i] + 15) / 16;
        float counted = (float)(of_each * ENVS);
        for (int k = 0; k < 2 * DIRS; k++) {
            assert_true(results[3 * 2 * DIRS + k] == (float)(lengths[i] * ENVS));
            assert_true(results[4 * 2 * DIRS + k] == counted);
        }
        assert_true(after[ES_COUNT] - before[ES_COUNT] == 2 * DIRS * counted);
        free(results);
        free(before);
        free(after);
        grt_es_destroy(&es);
    }
}

// A policy as a checkpoint has it: of the quads of its one action the first numbers.
static void same_policy(const float *got, const float *want) {
    for (int k = 0; k < 41 * 4; k++) {
        assert_true(got[k] == (k < 80 || k % 4 == 0 ? want[k] : 0.0f));
    }
}

// The first policy stands alone, then each moves the average by a quarter; trials and checkpoints
// are of it, and what is learnt goes on from the policy itself.
static void average_of_policies(void **state) {
    (void)state;
    struct grt_es_desc desc = small_desc();
    struct grt_es *plain = made(&desc);
    desc.ema = 0.75;
    struct grt_es *es = made(&desc);
    float want[41 * 4] = {0};
    for (int i = 0; i < 3; i++) {
        struct grt_es_report report;
        assert_true(grt_es_iterate(es, &report) && grt_es_iterate(plain, &report));
        float *own = numbers_of(es->theta), *other = numbers_of(plain->theta);
        assert_memory_equal(own, other, sizeof want);
        for (int k = 0; k < 41 * 4; k++) {
            float kept = 0.75f * want[k], more = 0.25f * own[k];
            want[k] = i == 0 ? own[k] : kept + more;
        }
        assert_memory_equal(es->average, want, sizeof want);
        free(own);
        free(other);
        // A trial begins and ends with what there was.
        assert_true(grt_es_evaluate(es, 1, &report));
    }
    struct grt_archive *archive = grt_archive_create();
    assert_true(archive && grt_es_save(es, archive));
    const struct grt_archive_tensor *weight = grt_archive_find(archive, "model/layers.1.weight");
    assert_non_null(weight);
    assert_int_equal(weight->bytes, 20 * 4);
    for (int k = 0; k < 20; k++) {
        assert_true(((const float *)weight->data)[k] == want[80 + 4 * k]);
    }
    const struct grt_archive_tensor *newest = grt_archive_find(archive, "optimizer/newest");
    float *own = numbers_of(es->theta);
    assert_non_null(newest);
    assert_memory_equal(newest->data, own, sizeof want);
    assert_true(grt_archive_real(archive, "ema", 0) == 0.75);
    TEST_REFUSED(grt_es_load(plain, archive, false), GRT_CONFIG,
                 "checkpoint was made with ema=0.75; here it is 0, which is another run");
    // Loaded, it has both again; as a beginning the average is the policy.
    struct grt_es *loaded = made(&desc);
    assert_true(grt_es_load(loaded, archive, false));
    float *now = numbers_of(loaded->theta);
    assert_memory_equal(now, own, sizeof want);
    same_policy(loaded->average, want);
    free(now);
    assert_true(grt_es_load(loaded, archive, true));
    now = numbers_of(loaded->theta);
    same_policy(now, want);
    same_policy(loaded->average, want);
    free(now);
    free(own);
    grt_archive_destroy(&archive);
    grt_es_destroy(&loaded);
    grt_es_destroy(&plain);
    grt_es_destroy(&es);
}

// ---- checkpoints ----

static void values_of_a_checkpoint(void **state) {
    (void)state;
    struct grt_es_desc desc = small_desc();
    desc.algo = GRT_ES_RANKS;
    desc.step_size = 0.25f;
    desc.noise_std = 0.125f;
    struct grt_es *es = made(&desc);
    struct grt_es_report report;
    assert_true(grt_es_iterate(es, &report) && grt_es_iterate(es, &report));
    struct grt_archive *archive = grt_archive_create();
    assert_true(archive && grt_es_save(es, archive));
    static const struct {
        const char *name;
        int64_t want;
    } wholes[] = {{"iteration", 2}, {"seed", 12},    {"phase", 1},           {"num_envs", ENVS},
                  {"num_dirs", 7},  {"top_dirs", 4}, {"episode_length", 37}, {"normalise", 1}};
    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++) {
        assert_int_equal(grt_archive_whole(archive, wholes[i].name, -1), wholes[i].want);
    }
    assert_true(grt_archive_real(archive, "step_size", 0) == 0.25);
    assert_true(grt_archive_real(archive, "noise_std", 0) == 0.125);
    assert_string_equal(grt_archive_text(archive, "env", ""), "pendulum");
    assert_string_equal(grt_archive_text(archive, "policy", ""), "mlp20");
    assert_string_equal(grt_archive_text(archive, "algo", ""), "es");
    assert_null(grt_archive_value(archive, "ema"));
    static const struct {
        const char *name;
        uint32_t rank;
        uint64_t shape[2];
    } tensors[] = {{"model/layers.0.weight", 2, {20, 3}},
                   {"model/layers.0.bias", 1, {20, 1}},
                   {"model/layers.1.weight", 2, {1, 20}},
                   {"model/layers.1.bias", 1, {1, 1}},
                   {"normalizer/mean_rstd_variance", 2, {3, 3}},
                   {"optimizer/report", 1, {ES_REPORT, 1}},
                   {"optimizer/moments", 2, {82, 4}}};
    assert_int_equal(archive->tensor_count, 7);
    for (size_t i = 0; i < 7; i++) {
        const struct grt_archive_tensor *t = grt_archive_find(archive, tensors[i].name);
        assert_non_null(t);
        assert_int_equal(t->rank, tensors[i].rank);
        assert_int_equal(t->shape[0], tensors[i].shape[0]);
        assert_int_equal(t->bytes, 4 * tensors[i].shape[0] * tensors[i].shape[1]);
    }
    // As a beginning it has the policy and the normalizer; Adam and the count begin anew.
    struct grt_es *next = made(&desc);
    assert_true(grt_es_load(next, archive, true));
    float *words = numbers_of(next->report), *moments = numbers_of(next->moments);
    assert_true(words[ES_POWER1] == 1.0f && words[ES_POWER2] == 1.0f);
    for (int i = 0; i < 82 * 4; i++) {
        assert_true(moments[i] == 0.0f);
    }
    assert_int_equal(next->done, 0);
    assert_true(grt_es_iterate(next, &report));
    assert_int_equal(report.iteration, 1);
    free(words);
    free(moments);
    grt_es_destroy(&next);
    // A converted policy has no report: it can be begun with, and not gone on with.
    snprintf(archive->path, sizeof archive->path, "run/a.h5");
    struct grt_archive_tensor *told = grt_archive_find(archive, "optimizer/report");
    uint64_t bytes = told->bytes;
    told->bytes -= 4;
    TEST_REFUSED(grt_es_load(es, archive, true), GRT_INVALID,
                 "run/a.h5: no checkpoint that can be resumed: tensor 'optimizer/report' has "
                 "another shape");
    told->bytes = bytes;
    told->name[0] = 'O';
    TEST_REFUSED(grt_es_load(es, archive, false), GRT_INVALID,
                 "tensor 'optimizer/report' is missing");
    assert_int_equal(es->done, 2);
    assert_true(grt_es_load(es, archive, true));
    struct grt_archive_tensor *bias = grt_archive_find(archive, "model/layers.1.bias");
    bias->rank = 2;
    TEST_REFUSED(grt_es_load(es, archive, true), GRT_BAD_DATA,
                 "run/a.h5: tensor 'model/layers.1.bias' is f32 [");
    bias->rank = 1;
    bias->name[0] = 'M';
    TEST_REFUSED(grt_es_load(es, archive, true), GRT_BAD_DATA,
                 "run/a.h5: tensor 'model/layers.1.bias' is missing");
    // As many numbers the other way round are another policy.
    struct grt_archive_tensor *weight = grt_archive_find(archive, "model/layers.0.weight");
    assert_true(weight->shape[0] == 20 && weight->shape[1] == OBS);
    weight->shape[0] = OBS;
    weight->shape[1] = 20;
    char says[160];
    snprintf(says, sizeof says,
             "run/a.h5: tensor 'model/layers.0.weight' is f32 [%d][20] there and f32 [20][%d] here",
             OBS, OBS);
    TEST_REFUSED(grt_es_load(es, archive, true), GRT_BAD_DATA, says);
    weight->shape[0] = 20;
    weight->shape[1] = OBS;
    struct grt_archive_tensor *norm = grt_archive_find(archive, "normalizer/mean_rstd_variance");
    norm->bytes -= 4;
    TEST_REFUSED(grt_es_load(es, archive, true), GRT_INVALID,
                 "run/a.h5: no checkpoint of a policy for 'pendulum'");
    assert_true(grt_archive_set_text(archive, "algo", "ars"));
    TEST_REFUSED(grt_es_load(es, archive, false), GRT_INVALID,
                 "run/a.h5: its algo is 'ars' and not 'es'");
    assert_true(grt_archive_set_text(archive, "env", "cartpole"));
    TEST_REFUSED(grt_es_load(es, archive, true), GRT_INVALID,
                 "run/a.h5: its env is 'cartpole' and not 'pendulum'");
    grt_archive_destroy(&archive);
    grt_es_destroy(&es);
}

// ---- limits ----

#define REFUSED(change, sentence)                                                                  \
    do {                                                                                           \
        struct grt_es_desc desc = small_desc();                                                    \
        change;                                                                                    \
        TEST_REFUSED(grt_es_create(test.dev, &desc), GRT_INVALID, sentence);                       \
    } while (0)

static void limits_and_sentences(void **state) {
    (void)state;
    REFUSED(desc.num_envs = (1u << 20) + 1,
            "the number of environments is 1048577; it must be from 1 to 1048576");
    REFUSED(desc.num_dirs = 16385, "the number of directions is 16385; it must be from 1 to 16384");
    REFUSED(desc.episode_length = (1u << 20) + 1,
            "the length of an episode is 1048577; it must be from 1 to 1048576");
    REFUSED(desc.top_dirs = 8, "the number of top directions is 8; it must be from 1 to 7");
    REFUSED(desc.phase = 2, "environment 'pendulum' has no phase 2; it has 1 to 1");
    REFUSED(desc.ema = 1, "es: ema 1 is not from 0 to below 1");
    REFUSED(desc.ema = -0.5, "es: ema -0.5 is not from 0 to below 1");
    REFUSED(desc.ema = (double)NAN, "es: ema nan is not");
    REFUSED((desc.step_size = INFINITY, desc.noise_std = 0.5f),
            "step size inf and noise 0.5 must be numbers, the noise above 0");
    REFUSED((desc.step_size = 2, desc.noise_std = INFINITY), "step size 2 and noise inf must be");
    REFUSED((desc.step_size = -2, desc.noise_std = -1), "step size -2 and noise -1 must be");
    REFUSED(desc.algo = GRT_ES_ALGO_COUNT, "grt_es_create: no such algorithm");
    REFUSED(desc.env = NULL, "grt_es_create: no environment");
    REFUSED(desc.policy.hidden = 18,
            "a policy of 18 hidden units: they are computed in fours; use mlp16 or mlp20");
    struct grt_es_desc good = small_desc();
    struct grt_es *es;
    struct grt_es_report report;
    TEST_REFUSED(grt_es_create(NULL, &good), GRT_INVALID, "grt_es_create: no device");
    TEST_REFUSED(grt_es_create(test.dev, NULL), GRT_INVALID, "grt_es_create: no desc");
    // At its edge each is allowed; a negative step goes down.
    good.num_dirs = 16384;
    good.num_envs = good.episode_length = 1;
    good.dir_chunk = 8191;
    good.top_dirs = 16384;
    good.step_size = -0.5f;
    es = made(&good);
    assert_int_equal(grt_es_size(es).launches, 3);
    grt_es_destroy(&es);
    good = small_desc();
    good.dir_chunk = 100;
    uint32_t warned = test_log.lines[GRT_LOG_WARN];
    es = made(&good);
    assert_int_equal(test_log.lines[GRT_LOG_WARN], warned + 1);
    assert_non_null(
        strstr(test_log.newest, "a chunk of 100 directions is more than there are; using 7"));
    TEST_REFUSED(grt_es_iterate(es, NULL), GRT_INVALID, "grt_es_iterate: no report");
    TEST_REFUSED(grt_es_iterate(NULL, &report), GRT_INVALID, "grt_es_iterate: no learner");
    TEST_REFUSED(grt_es_evaluate(es, 0, NULL), GRT_INVALID, "grt_es_evaluate: no report");
    TEST_REFUSED(grt_es_evaluate(NULL, 0, &report), GRT_INVALID, "grt_es_evaluate: no learner");
    TEST_REFUSED(grt_es_returns(NULL, NULL), GRT_INVALID, "grt_es_returns: no learner");
    TEST_REFUSED(grt_es_returns(es, NULL), GRT_INVALID, "grt_es_returns: no room for returns");
    TEST_REFUSED(grt_es_save(es, NULL), GRT_INVALID, "grt_es_save: no archive");
    TEST_REFUSED(grt_es_save(NULL, NULL), GRT_INVALID, "grt_es_save: no learner");
    TEST_REFUSED(grt_es_load(es, NULL, false), GRT_INVALID, "grt_es_load: no archive");
    TEST_REFUSED(grt_es_load(NULL, NULL, false), GRT_INVALID, "grt_es_load: no learner");
    grt_es_destroy(&es);
    // A chunk that was not given is as large as there are directions, without a note.
    good.dir_chunk = 0;
    good.num_dirs = good.top_dirs = 2;
    warned = test_log.lines[GRT_LOG_WARN];
    es = made(&good);
    assert_int_equal(test_log.lines[GRT_LOG_WARN], warned);
    assert_in_range(grt_es_desc_of(es)->dir_chunk, 1, 2);
    grt_es_destroy(&es);
}

// What does not fit is halved until it does, and the note has the numbers of the first try.
static void note_of_a_smaller_chunk(void **state) {
    (void)state;
    struct grt_es_desc desc = small_desc();
    desc.num_envs = 4096;
    uint64_t bytes[8];
    for (uint32_t chunk = 1; chunk <= 7; chunk += chunk == 1 ? 2 : 4) {
        desc.dir_chunk = chunk;
        struct grt_es *es = made(&desc);
        bytes[chunk] = grt_es_size(es).bytes;
        grt_es_destroy(&es);
    }
    for (uint32_t chunk = 1; chunk <= 3; chunk += 2) {
        struct grt_dev *dev =
            grt_dev_create(grt_dev_desc(.device = test.selector, .mem_limit = bytes[chunk] + 4096));
        assert_non_null(dev);
        char want[160];
        snprintf(want, sizeof want,
                 "7 directions at once need %.1f MB and %.1f MB are free; running %u at once",
                 (double)bytes[7] / 1e6, (double)grt_dev_mem_left(dev) / 1e6, chunk);
        uint32_t warned = test_log.lines[GRT_LOG_WARN];
        desc.dir_chunk = 7;
        struct grt_es *es = grt_es_create(dev, &desc);
        assert_non_null(es);
        assert_int_equal(test_log.lines[GRT_LOG_WARN], warned + 1);
        assert_non_null(strstr(test_log.newest, want));
        assert_int_equal(grt_es_desc_of(es)->dir_chunk, chunk);
        assert_int_equal(grt_es_size(es).bytes, bytes[chunk]);
        grt_es_destroy(&es);
        grt_dev_destroy(&dev);
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(tensors_of_the_plan),     TEST_CASE(steps_of_a_launch),
    TEST_CASE(first_numbers),           TEST_CASE(reports),
    TEST_CASE(reports_of_falls),        TEST_CASE(average_of_policies),
    TEST_CASE(values_of_a_checkpoint),  TEST_CASE(limits_and_sentences),
    TEST_CASE(note_of_a_smaller_chunk), TEST_CASE(observations_that_count),
};
TEST_SUITE(esfacts, true, cases);
