// SPDX-License-Identifier: Apache-2.0
// The parts of evolution strategies: noise, weights, update, normalisation; against the formulas in
// double precision.
#include "harness/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/es.h"
#include "gpurt/rollout.h"
#include "rl/es_parts.h"

#define SEED 77u
#define ITERATION 5u
#define WG 64

static const uint32_t control_words[4] = {SEED, 0, ITERATION, 0};

static void dispatch(struct grt_graph *graph, const struct grt_kernel_desc *kernel,
                     const void *params, uint32_t size, const struct test_tensor *const *tensors,
                     uint32_t count, uint32_t groups0, uint32_t groups1) {
    struct grt_dispatch d = {.kernel = grt_kernel_get(grt_graph_dev(graph), kernel),
                             .params = params,
                             .params_size = size,
                             .groups = {groups0, groups1, 1}};
    assert_non_null(d.kernel);
    for (uint32_t i = 0; i < count; i++) {
        d.bindings[i] = tensors[i]->tensor.range;
    }
    grt_graph_dispatch(graph, &d);
}

// ---- noise ----

struct perturb {
    struct test_tensor control, theta, y;
    uint32_t quads, sides, direction;
    float sigma;
};

static void record_perturb(struct grt_graph *graph, void *context) {
    struct perturb *p = context;
    const struct {
        uint32_t quads, direction;
        float sigma;
    } params = {p->quads, p->direction, p->sigma};
    const struct test_tensor *tensors[] = {&p->control, &p->theta, &p->y};
    dispatch(graph, grt_kernel_desc(.name = "es_perturb", .specs = {{"WG", WG}}), &params,
             sizeof params, tensors, 3, (p->quads + WG - 1) / WG, p->sides);
}

static struct perturb perturb_begin(uint32_t quads, uint32_t sides, float sigma) {
    struct perturb p = {.control = test_tensor(test.dev, GRT_U32, 4, 0),
                        .theta = test_tensor(test.dev, GRT_F32, (uint64_t)4 * quads, 0),
                        .y = test_tensor(test.dev, GRT_F32, sides, (uint64_t)4 * quads),
                        .quads = quads,
                        .sides = sides,
                        .sigma = sigma};
    test_tensor_write(&p.control, control_words);
    test_tensor_prefill(&p.theta, 0);
    return p;
}

static void perturb_end(struct perturb *p) {
    test_tensor_end(&p->control);
    test_tensor_end(&p->theta);
    test_tensor_end(&p->y);
}

static void sides_are_opposites(void **state) {
    (void)state;
    enum { QUADS = 67, DIRS = 5 };
    struct perturb p = perturb_begin(QUADS, 2 * DIRS, 0.25f);
    p.direction = 3;
    float *y = test_run_filled(&p.y, record_perturb, &p);
    struct test_compare c = test_compare(test.dev, "es_perturb");
    for (uint32_t d = 0; d < DIRS; d++) {
        for (uint32_t i = 0; i < 4 * QUADS; i++) {
            float plus = y[2 * d * 4 * QUADS + i], minus = y[(2 * d + 1) * 4 * QUADS + i];
            test_compare_bits(&c, i, test_as_u32(plus), test_as_u32(minus) ^ 0x80000000u);
            double noise = oracle_es_noise(SEED, ITERATION, 3 + d, i);
            test_compare_value(&c, i, plus,
                               (struct oracle_value){0.25 * noise, 0.25 * 100 * ORACLE_U});
        }
    }
    test_compare_end(&c);
    free(y);
    perturb_end(&p);
}

// Mean and variance of ten million draws, each within five deviations of its own.
static void moments_of_noise(void **state) {
    (void)state;
    uint32_t quads = test.small ? 250 : 12500;
    enum { DIRS = 20, ROUNDS = 10 };
    struct perturb p = perturb_begin(quads, 2 * DIRS, 1.0f);
    float *y = test_alloc(p.y.bytes);
    double sum = 0, square = 0, product = 0;
    double count = 0;
    for (uint32_t r = 0; r < ROUNDS; r++) {
        p.direction = r * DIRS;
        test_run(test.dev, record_perturb, &p);
        test_tensor_read(&p.y, y);
        for (uint32_t d = 0; d < DIRS; d++) {
            const float *noise = &y[(size_t)2 * d * 4 * quads];
            for (uint32_t i = 0; i < 4 * quads; i++) {
                double x = (double)noise[i];
                sum += x;
                square += x * x;
                product += x * (double)noise[i ^ 1u];
                count++;
            }
        }
    }
    print_message("# %.0f draws: mean %.2e, variance %.6f\n", count, sum / count, square / count);
    assert_true(fabs(sum / count) < 5 / sqrt(count));
    assert_true(fabs(square / count - 1) < 5 * sqrt(2 / count));
    assert_true(fabs(product / count) < 5 * sqrt(2 / count));  // each pair is counted twice
    free(y);
    perturb_end(&p);
}

// ---- weights, sums and the step ----

enum { DIRS = 19, TOP = 7, OBS = 3, ENVS = 8, QUADS = 21, ROWS = GRT_ROLLOUT_RESULTS + 2 * OBS };
enum { SIDES = 2 * DIRS, REPORT = 16, LENGTH = 30 };

struct update {
    struct test_tensor control, results, weight, used, norm, report, theta, moments;
    bool ranks;
};

static struct update update_begin(bool ranks) {
    return (struct update){.control = test_tensor(test.dev, GRT_U32, 4, 0),
                           .results = test_tensor(test.dev, GRT_F32, ROWS, SIDES),
                           .weight = test_tensor(test.dev, GRT_F32, DIRS, 0),
                           .used = test_tensor(test.dev, GRT_F32, DIRS, 0),
                           .norm = test_tensor(test.dev, GRT_F32, 3, OBS),
                           .report = test_tensor(test.dev, GRT_F32, REPORT, 0),
                           .theta = test_tensor(test.dev, GRT_F32, 4 * QUADS, 0),
                           .moments = test_tensor(test.dev, GRT_F32, 2 * 4 * QUADS, 0),
                           .ranks = ranks};
}

static void update_end(struct update *u) {
    struct test_tensor *all[] = {&u->control, &u->results, &u->weight,  &u->used, &u->norm,
                                 &u->report,  &u->theta,   &u->moments, NULL};
    for (size_t i = 0; all[i]; i++) {
        test_tensor_end(all[i]);
    }
}

static void record_update(struct grt_graph *graph, void *context) {
    struct update *u = context;
    const struct {
        uint32_t dirs, top;
        float per_env, per_rank;
    } rank = {DIRS, TOP, 1.0f / ENVS, 1.0f / (SIDES - 1)};
    const struct test_tensor *rank_tensors[] = {&u->results, &u->weight, &u->used};
    dispatch(graph, grt_kernel_desc(.name = "es_rank", .specs = {{"WG", WG}, {"RANKS", u->ranks}}),
             &rank, sizeof rank, rank_tensors, 3, (DIRS + WG - 1) / WG, 1);
    const struct {
        uint32_t dirs, obs;
        float step, per_env, per_episode, per_step, beta1, beta2;
    } sum = {DIRS, OBS,   0.05f, 1.0f / ENVS, 1.0f / (ENVS * SIDES), 1.0f / (ENVS * SIDES * LENGTH),
             0.9f, 0.999f};
    const struct test_tensor *sum_tensors[] = {&u->results, &u->used, &u->norm, &u->report};
    dispatch(
        graph,
        grt_kernel_desc(.name = "es_sum", .specs = {{"WG", 16}, {"RANKS", u->ranks}, {"NORM", 1}}),
        &sum, sizeof sum, sum_tensors, 4, 1, 1);
    const struct {
        uint32_t dirs, quads;
        float gain, beta1, beta2;
    } step = {DIRS, QUADS, 0.5f, 0.9f, 0.999f};
    const struct test_tensor *step_tensors[] = {&u->control, &u->weight, &u->report, &u->theta,
                                                &u->moments};
    dispatch(graph, grt_kernel_desc(.name = "es_step", .specs = {{"WG", WG}, {"ADAM", u->ranks}}),
             &step, sizeof step, step_tensors, 5, 1, 1);
}

// Observations before: COUNT of mean 2, deviation 1/2. Now SAMPLES normed ones.
#define COUNT 1000.0f

// Returns of either sign, none above 0, or some that are no number.
enum returns { RETURNS_OF_BOTH_SIGNS, RETURNS_BELOW_ZERO, RETURNS_BROKEN };
#define WORST -1e30  // of a broken one, to the oracle

static float returned(enum returns kind, int side, uint64_t *random) {
    // Whole numbers: ties happen.
    float whole = (float)((int)(test_unit(random) * 60) * ENVS);
    if (kind == RETURNS_BROKEN && (side == 4 || side == 11 || side == 12)) {
        return side == 4 ? NAN : side == 11 ? INFINITY : -INFINITY;
    }
    if (kind == RETURNS_BROKEN && (side == 5 || side == 10)) {
        return 39.0f * ENVS;  // the other side of a broken one is among the best
    }
    return whole - (float)(ENVS * (kind == RETURNS_BELOW_ZERO ? 70 : 20));
}

static void update_follows_the_formulas(bool ranks, enum returns kind) {
    struct update u = update_begin(ranks);
    uint64_t random = 9;
    float results[ROWS][SIDES], norm[3][OBS],
        report[REPORT] = {[9] = 0.9f, [10] = 0.999f, [11] = COUNT};
    float theta[4 * QUADS], moments[2 * 4 * QUADS];
    double returns[SIDES], samples = 0, good = 0, falls = 0, mean = 0, steps = 0, size_of_it = 0;
    double best = -INFINITY, most_good = 0;
    for (int i = 0; i < SIDES; i++) {
        results[0][i] = returned(kind, i, &random);
        results[1][i] = 40.0f + (float)(i * 5 % 7);
        results[2][i] = (float)(i % 3);
        results[3][i] = 80.0f + (float)i;
        results[4][i] = 12.0f;
        for (int k = 0; k < 2 * OBS; k++) {
            results[GRT_ROLLOUT_RESULTS + k][i] =
                12.0f *
                (k < OBS ? 0.5f * (float)test_unit(&random) : 1.5f + (float)test_unit(&random));
        }
        returns[i] = isfinite(results[0][i]) ? (double)results[0][i] / ENVS : WORST;
        samples += 12;
        mean += returns[i] / SIDES;
        size_of_it += fabs(returns[i]) / SIDES;
        best = fmax(best, returns[i]);
        good += (double)results[1][i];
        most_good = fmax(most_good, (double)results[1][i]);
        steps += (double)results[3][i] / (ENVS * SIDES);
        falls += (double)results[2][i] / (ENVS * SIDES);
    }
    for (int k = 0; k < OBS; k++) {
        norm[0][k] = 2.0f;
        norm[1][k] = 2.0f;
        norm[2][k] = 0.25f;
    }
    for (int i = 0; i < 4 * QUADS; i++) {
        theta[i] = test_float(&random, TEST_PLAIN);
        moments[i] = 0.1f * test_float(&random, TEST_PLAIN);
        moments[4 * QUADS + i] = 0.01f + (float)test_unit(&random);
    }
    test_tensor_write(&u.control, control_words);
    test_tensor_write(&u.results, results);
    test_tensor_write(&u.norm, norm);
    test_tensor_write(&u.report, report);
    test_tensor_write(&u.theta, theta);
    test_tensor_write(&u.moments, moments);
    test_run(test.dev, record_update, &u);

    float got_weight[DIRS], got_used[DIRS], got_norm[3][OBS], got_report[REPORT],
        got_theta[4 * QUADS];
    test_tensor_read(&u.weight, got_weight);
    test_tensor_read(&u.used, got_used);
    test_tensor_read(&u.norm, got_norm);
    test_tensor_read(&u.report, got_report);
    test_tensor_read(&u.theta, got_theta);
    double weight[DIRS];
    bool used[DIRS];
    oracle_ars_weights(returns, DIRS, TOP, weight, used);
    // A direction that has a side without a number stands in its place, and is not used.
    for (int d = 0; d < DIRS; d++) {
        if (returns[2 * d] == WORST || returns[2 * d + 1] == WORST) {
            assert_int_equal(used[d], d != 6);  // by its better side
            used[d] = false;
            weight[d] = 0;
        }
    }
    double scale = oracle_ars_scale(returns, used, DIRS, 0.05);
    if (ranks) {
        oracle_es_weights(returns, DIRS, weight);
    }
    struct test_compare c = test_compare(test.dev, "es update, %s", ranks ? "ranks" : "ars");
    for (int d = 0; d < DIRS; d++) {
        test_compare_value(&c, (uint64_t)d, got_weight[d],
                           (struct oracle_value){weight[d], 4 * ORACLE_U * (1 + fabs(weight[d]))});
        test_compare_exact(&c, (uint64_t)d, (double)got_used[d], ranks || used[d] ? 1 : 0);
    }
    const double bound = 64 * ORACLE_U;  // a few dozen additions of numbers of one sign
    // What has no number in it has no mean.
    if (kind != RETURNS_BROKEN) {
        test_compare_value(&c, 100, got_report[0], (struct oracle_value){mean, bound * size_of_it});
        test_compare_exact(&c, 101, (double)got_report[1], best);
    }
    if (!ranks) {
        // The deviation of the used returns, as the scale has it.
        double count = 0;
        for (int d = 0; d < DIRS; d++) {
            count += used[d];
        }
        double spread = 0.05 / (count * scale);
        test_compare_value(&c, 102, got_report[2], (struct oracle_value){spread, bound * spread});
    }
    test_compare_value(&c, 105, got_report[5], (struct oracle_value){steps, bound * steps});
    most_good /= ENVS * LENGTH;
    test_compare_value(&c, 106, got_report[6], (struct oracle_value){most_good, bound * most_good});
    test_compare_value(&c, 103, got_report[3],
                       (struct oracle_value){good / (ENVS * SIDES * LENGTH), bound});
    test_compare_value(&c, 104, got_report[4], (struct oracle_value){falls, bound});
    test_compare_value(&c, 108, got_report[8],
                       (struct oracle_value){ranks ? 0.05 : scale, bound * (ranks ? 0.05 : scale)});
    test_compare_value(&c, 111, got_report[11], (struct oracle_value){COUNT + samples, 0});
    for (int k = 0; k < OBS; k++) {
        // All observations together, as one long list would give them.
        double first = 0, second = 0;
        for (int i = 0; i < SIDES; i++) {
            first += (double)results[GRT_ROLLOUT_RESULTS + k][i];
            second += (double)results[GRT_ROLLOUT_RESULTS + OBS + k][i];
        }
        double all = (double)COUNT + samples;
        double sum = 2.0 * (double)COUNT + (2.0 * samples + 0.5 * first);
        double square =
            (0.25 + 4.0) * (double)COUNT + (4.0 * samples + 2 * 2.0 * 0.5 * first + 0.25 * second);
        double centre = sum / all;
        double variance = square / all - centre * centre;
        test_compare_value(&c, 200, got_norm[0][k], (struct oracle_value){centre, bound * 4});
        test_compare_value(&c, 201, got_norm[2][k], (struct oracle_value){variance, bound});
        test_compare_value(&c, 202, got_norm[1][k],
                           (struct oracle_value){1 / sqrt(variance), 4 * bound / sqrt(variance)});
    }
    for (uint32_t i = 0; i < 4 * QUADS; i++) {
        double g = 0, size = 0;
        for (uint32_t d = 0; d < DIRS; d++) {
            double term = weight[d] * oracle_es_noise(SEED, ITERATION, d, i);
            g += term;
            size += fabs(term);
        }
        double m = (double)moments[i], v = (double)moments[4 * QUADS + i];
        double want = ranks ? oracle_es_adam((double)theta[i], 0.5 * g, &m, &v, 0.05, 2)
                            : (double)theta[i] + scale * g;
        double error = ranks ? 0.05 * 200 * ORACLE_U * (1 + size) : scale * bound * size;
        test_compare_value(&c, 1000 + i, got_theta[i],
                           (struct oracle_value){want, error + 4 * ORACLE_U * fabs(want)});
    }
    test_compare_end(&c);
    update_end(&u);
}

static void ars_update(void **state) {
    (void)state;
    update_follows_the_formulas(false, RETURNS_OF_BOTH_SIGNS);
    update_follows_the_formulas(false, RETURNS_BELOW_ZERO);
    update_follows_the_formulas(false, RETURNS_BROKEN);
}

static void rank_update(void **state) {
    (void)state;
    update_follows_the_formulas(true, RETURNS_OF_BOTH_SIGNS);
    update_follows_the_formulas(true, RETURNS_BELOW_ZERO);
    update_follows_the_formulas(true, RETURNS_BROKEN);
}

// Observations that hardly move are only moved to their mean: below a variance of 1e-8 the factor
// is 1, above it that of any other.
static void what_hardly_moves(void **state) {
    (void)state;
    static const double variances[OBS] = {1e-10, 9e-9, 1.1e-8};
    struct update u = update_begin(false);
    float results[ROWS][SIDES] = {0}, norm[3][OBS] = {0}, got[3][OBS];
    float report[REPORT] = {[9] = 0.9f, [10] = 0.999f, [11] = COUNT}, none[2 * 4 * QUADS] = {0};
    for (int i = 0; i < SIDES; i++) {
        results[0][i] = (float)i;
        results[4][i] = 12.0f;
        for (int k = 0; k < OBS; k++) {
            results[GRT_ROLLOUT_RESULTS + OBS + k][i] = (float)(12 * variances[k]);
        }
    }
    for (int k = 0; k < OBS; k++) {
        norm[1][k] = 1.0f;
        norm[2][k] = (float)variances[k];
    }
    test_tensor_write(&u.control, control_words);
    test_tensor_write(&u.results, results);
    test_tensor_write(&u.norm, norm);
    test_tensor_write(&u.report, report);
    test_tensor_write(&u.theta, none);
    test_tensor_write(&u.moments, none);
    test_run(test.dev, record_update, &u);
    test_tensor_read(&u.norm, got);
    for (int k = 0; k < OBS; k++) {
        double want = variances[k] > 1e-8 ? 1 / sqrt(variances[k]) : 1;
        assert_true(got[0][k] == 0.0f);
        assert_true(fabs((double)got[2][k] - variances[k]) < 1e-5 * variances[k]);
        assert_true(fabs((double)got[1][k] - want) < 1e-5 * want);
    }
    update_end(&u);
}

// ---- whole iterations ----

static double *doubles_of(const struct grt_tensor *tensor) {
    uint64_t count = grt_tensor_count(tensor);
    float *numbers = test_alloc(count * sizeof *numbers);
    double *wide = test_alloc(count * sizeof *wide);
    assert_true(grt_es_read(tensor, numbers));
    for (uint64_t i = 0; i < count; i++) {
        wide[i] = (double)numbers[i];
    }
    free(numbers);
    return wide;
}

// Two iterations of a learner: policy and moments follow from the returns that it tells and the
// noise of its seed. Adam's step hides how long a gradient is; its moments do not.
static void iterations_follow_the_formulas(void **state) {
    (void)state;
    enum { FEW = 5, BEST = 2, STEPS = 20 };
    const double noise = 0.25, step = 0.05;
    for (int algo = 0; algo < GRT_ES_ALGO_COUNT; algo++) {
        struct grt_es *es =
            grt_es_create(test.dev, &(struct grt_es_desc){.env = grt_env_find("pendulum"),
                                                          .algo = (enum grt_es_algo)algo,
                                                          .policy = {.bias = true},
                                                          .num_envs = 3,
                                                          .num_dirs = FEW,
                                                          .dir_chunk = 2,
                                                          .top_dirs = BEST,
                                                          .episode_length = STEPS,
                                                          .noise_std = (float)noise,
                                                          .step_size = (float)step,
                                                          .seed = SEED});
        assert_non_null(es);
        bool ranks = algo == GRT_ES_RANKS;
        uint64_t count = grt_tensor_count(es->theta);
        struct test_compare c = test_compare(test.dev, "iterations, %s", ranks ? "ranks" : "ars");
        for (int iteration = 0; iteration < 2; iteration++) {
            double *theta = doubles_of(es->theta), *moments = doubles_of(es->moments);
            struct grt_es_report report;
            float told[2 * FEW] = {0};
            double returns[2 * FEW], weight[FEW];
            bool used[FEW];
            assert_true(grt_es_iterate(es, &report) && grt_es_returns(es, told));
            for (int i = 0; i < 2 * FEW; i++) {
                returns[i] = (double)told[i];
            }
            oracle_ars_weights(returns, FEW, BEST, weight, used);
            double scale = oracle_ars_scale(returns, used, FEW, step);
            if (ranks) {
                oracle_es_weights(returns, FEW, weight);
                scale = 1 / (2 * FEW * noise);
            }
            double *now = doubles_of(es->theta), *after = doubles_of(es->moments);
            for (uint32_t i = 0; i < count; i++) {
                double g = 0, size = 0, m = moments[i], v = moments[count + i];
                for (uint32_t d = 0; d < FEW; d++) {
                    double term = weight[d] * oracle_es_noise(SEED, (uint32_t)iteration, d, i);
                    g += scale * term;
                    size += scale * fabs(term);
                }
                double want =
                    ranks ? oracle_es_adam(theta[i], g, &m, &v, step, iteration + 1) : theta[i] + g;
                double off = 1e-5 * (ranks ? step * (1 + size / fabs(g)) : size);
                test_compare_value(&c, i, (float)now[i],
                                   (struct oracle_value){want, off + 1e-6 * fabs(want)});
                test_compare_value(&c, i, (float)after[i], (struct oracle_value){m, 1e-5 * size});
                test_compare_value(&c, i, (float)after[count + i],
                                   (struct oracle_value){v, 1e-5 * size * size});
            }
            free(theta);
            free(moments);
            free(now);
            free(after);
        }
        test_compare_end(&c);
        grt_es_destroy(&es);
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(sides_are_opposites), TEST_CASE(moments_of_noise),
    TEST_CASE(ars_update),          TEST_CASE(rank_update),
    TEST_CASE(what_hardly_moves),   TEST_CASE(iterations_follow_the_formulas),
};
TEST_SUITE(es, true, cases);
