// SPDX-License-Identifier: Apache-2.0
// Learners of evolution strategies that are not the usual: blind, without a norm, with episodes
// that begin anew, in another phase, with bindings that reach too little, given up in the middle.
#include "kits/ref_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "gpurt/es.h"
#include "rl/es_parts.h"

#define ENVS 6
#define DIRS 7
#define LENGTH 40

static struct grt_es_desc poles(void) {
    return (struct grt_es_desc){.env = grt_env_find("cartpole"),
                                .policy = {.bias = true},
                                .num_envs = ENVS,
                                .num_dirs = DIRS,
                                .dir_chunk = 3,
                                .episode_length = LENGTH,
                                .step_size = 0.1f,
                                .noise_std = 1.0f,
                                .seed = 5};
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

// ---- norms ----

// Who sees nothing has a norm of its own kind, whatever was asked for; without a norm nothing of it
// changes, and with one it does.
static void norms_that_stay(void **state) {
    (void)state;
    static const struct {
        bool plain, blind, moves;
    } rows[] = {
        {false, false, true}, {true, false, false}, {false, true, false}, {true, true, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_es_desc desc = poles();
        struct grt_es_report r;
        desc.no_normalise = rows[i].plain;
        desc.blind = rows[i].blind;
        struct grt_es *es = made(&desc);
        assert_int_equal(grt_es_desc_of(es)->no_normalise, rows[i].plain && !rows[i].blind);
        float *norm = numbers_of(es->norm), *report = numbers_of(es->report);
        assert_true(grt_es_iterate(es, &r) && grt_es_iterate(es, &r));
        float *after = numbers_of(es->norm), *told = numbers_of(es->report);
        bool same = memcmp(norm, after, grt_tensor_bytes(es->norm)) == 0;
        assert_int_equal(!same, rows[i].moves);
        assert_int_equal(told[ES_COUNT] > report[ES_COUNT], rows[i].moves);
        // Powers of Adam's rates go on either way.
        assert_true(fabsf(told[ES_POWER1] - 0.81f) < 1e-6f);
        assert_true(fabsf(told[ES_POWER2] - 0.998001f) < 1e-6f);
        free(norm);
        free(after);
        free(report);
        free(told);
        grt_es_destroy(&es);
    }
}

// ---- episodes ----

// Poles that fall begin anew: every lane takes every step, and falls more than once now and then.
static void episodes_that_begin_anew(void **state) {
    (void)state;
    for (int restart = 0; restart < 2; restart++) {
        struct grt_es_desc desc = poles();
        struct grt_es_report r;
        desc.restart = restart;
        desc.noise_std = 20;
        struct grt_es *es = made(&desc);
        assert_true(grt_es_iterate(es, &r));
        float *results = numbers_of(es->results);
        double steps = 0, falls = 0;
        for (int k = 0; k < 2 * DIRS; k++) {
            steps += (double)results[3 * 2 * DIRS + k];
            falls += (double)results[2 * 2 * DIRS + k];
        }
        double all = 2.0 * DIRS * ENVS;
        assert_true(restart ? steps == all * LENGTH : steps < 0.8 * all * LENGTH);
        assert_true(restart ? falls > 1.5 * all : falls <= all && falls > 0.5 * all);
        assert_true(fabs(r.steps - steps) < 1e-3 * steps);
        assert_true(fabs((double)r.fall_rate - falls / all) < 1e-5);
        free(results);
        grt_es_destroy(&es);
    }
}

// Every lane begins in the phase that was asked for: the robot's last one has a commanded speed.
static void phases(void **state) {
    (void)state;
    enum { SPEED = 45, PUSH = 39 };
    for (uint32_t phase = 0; phase <= 4; phase++) {
        struct grt_es_desc desc = {.env = grt_env_find("standing"),
                                   .policy = {.bias = true},
                                   .phase = phase,
                                   .num_envs = 2,
                                   .num_dirs = 2,
                                   .dir_chunk = 2,
                                   .episode_length = 1};
        struct grt_es_report r;
        struct grt_es *es = made(&desc);
        assert_int_equal(grt_es_desc_of(es)->phase, phase ? phase : 1);
        for (int trial = 0; trial < 2; trial++) {
            assert_true(trial ? grt_es_evaluate(es, 3, &r) : grt_es_iterate(es, &r));
            float *states = numbers_of(es->state);
            // A trial has one side.
            for (int lane = 0; lane < (trial ? 2 : 8); lane++) {
                int lanes = trial ? 2 : 8;
                assert_true(states[SPEED * lanes + lane] == (phase == 4 ? 1.0f : 0.0f));
                assert_true(states[PUSH * lanes + lane] ==
                            (phase == 2 || phase == 3 ? 25.0f : 0.0f));
            }
            free(states);
        }
        grt_es_destroy(&es);
    }
}

// ---- what one binding reaches ----

static void bindings_that_reach_too_little(void **state) {
    (void)state;
    struct grt_caps *caps = &test.dev->info.caps;
    const uint64_t real = caps->max_binding;
    struct grt_es_desc desc = poles();
    desc.dir_chunk = DIRS;
    struct grt_es *es = made(&desc);
    // Of a lane the sums of the observations are most: 8 numbers.
    uint64_t bytes = grt_tensor_bytes(es->sums);
    assert_int_equal(bytes, 8ull * 4 * 2 * DIRS * ENVS);
    grt_es_destroy(&es);
    static const struct {
        uint64_t sevenths;
        uint32_t chunk;
        int off;
    } rows[] = {{7, 7, 0}, {7, 3, -1}, {3, 3, 0}, {3, 1, -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t warned = test_log.lines[GRT_LOG_WARN];
        caps->max_binding = (uint64_t)((int64_t)(bytes * rows[i].sevenths / 7) + rows[i].off);
        es = made(&desc);
        assert_int_equal(grt_es_desc_of(es)->dir_chunk, rows[i].chunk);
        assert_int_equal(test_log.lines[GRT_LOG_WARN] - warned, rows[i].chunk < DIRS);
        if (rows[i].chunk < DIRS) {
            char want[160];
            snprintf(
                want, sizeof want,
                "7 directions at once need %.1f MB and one binding reaches %.1f MB; running %u "
                "at once",
                (double)bytes / 1e6, (double)caps->max_binding / 1e6, rows[i].chunk);
            assert_non_null(strstr(test_log.newest, want));
        }
        caps->max_binding = real;
        grt_es_destroy(&es);
    }
}

// ---- given up ----

static int asks;

static bool stops(void) {
    asks++;
    return true;
}

// What is given up changes nothing, and the same iteration can be done behind it. Pieces are cut by
// what a step takes: a learner that thinks it takes long has several.
static void iterations_that_are_given_up(void **state) {
    (void)state;
    struct grt_es_desc desc = poles();
    struct grt_es_report r;
    desc.ema = 0.5;
    struct grt_es *whole = made(&desc);
    desc.stop = stops;
    struct grt_es *es = made(&desc);
    // As one piece it comes to its end, and nobody is asked.
    asks = 0;
    assert_true(grt_es_iterate(es, &r) && grt_es_iterate(whole, &r));
    assert_int_equal(asks, 0);
    assert_false(r.stopped);
    float *before = numbers_of(es->theta);
    struct es_work one = es->iteration, cut = {.dev = test.dev, .label = "cut"};
    struct grt_buf *buf = grt_buf_create(test.dev, grt_buf_desc(.size = 8));
    for (uint32_t i = 0; i < 2; i++) {
        grt_graph_fill(es_work_graph(&cut, 0.9), (struct grt_range){buf, 4 * i, 4}, 1);
    }
    assert_true(es_work_bake(&cut) && cut.count == 2);
    es->iteration = cut;
    memset(&r, 7, sizeof r);
    assert_true(grt_es_iterate(es, &r));
    assert_true(r.stopped && asks == 1 && r.iteration == 0);
    struct es_work tried = es->evaluation;
    es->evaluation = cut;
    assert_true(grt_es_evaluate(es, 3, &r));
    assert_true(r.stopped && asks == 2 && r.iteration == 1 && r.mean_return == 0);
    es->iteration = one;
    es->evaluation = tried;
    float *after = numbers_of(es->theta);
    assert_memory_equal(after, before, grt_tensor_bytes(es->theta));
    assert_memory_equal(es->average, whole->average, grt_tensor_bytes(es->theta));
    assert_true(grt_es_iterate(es, &r) && grt_es_iterate(whole, &r));
    assert_int_equal(r.iteration, 2);
    float *got = numbers_of(es->theta), *want = numbers_of(whole->theta);
    assert_memory_equal(got, want, grt_tensor_bytes(es->theta));
    free(before);
    free(after);
    free(got);
    free(want);
    es_work_destroy(&cut);
    assert_true(!cut.pieces && cut.count == 0);
    grt_buf_destroy(&buf);
    grt_es_destroy(&es);
    grt_es_destroy(&whole);
}

// Pieces have at most a second, by what each command is expected to take.
static void pieces_of_work(void **state) {
    (void)state;
    struct es_work work = {.dev = test.dev, .label = "pieces"};
    static const struct {
        double seconds;
        uint32_t count;
    } rows[] = {{0, 1}, {0.5, 1}, {0.5, 1}, {0.001, 2}, {0, 2}, {2, 3}, {0, 3}, {1, 4}, {1e-9, 5}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_graph *graph = es_work_graph(&work, rows[i].seconds);
        assert_int_equal(work.count, rows[i].count);
        assert_ptr_equal(graph, work.pieces[work.count - 1]);
    }
    struct es_work_time time = {.seconds = 9, .busy = 9, .stopped = true};
    assert_true(es_work_bake(&work));
    assert_true(es_work_run(&work, NULL, &time));
    assert_true(!time.stopped && time.seconds >= 0 && time.seconds < 9);
    es_work_destroy(&work);
}

static const struct CMUnitTest cases[] = {
    REF_CASE(norms_that_stay),
    REF_CASE(episodes_that_begin_anew),
    REF_CASE(phases),
    REF_CASE(bindings_that_reach_too_little),
    REF_CASE(iterations_that_are_given_up),
    REF_CASE(pieces_of_work),
};
TEST_SUITE(eslimits, false, cases);
