// SPDX-License-Identifier: Apache-2.0
// The actions that PPO draws, in large numbers: no masked one, each as often as its probability
// says, independent of one another. Greedy ones are the most likely.
#include "harness/harness.h"

#include <math.h>
#include <stdlib.h>

#include "gpurt/device.h"
#include "oracle/ppo.h"
#include "ops/op_support.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_words.k"
#include "shaders/ppo/lib/ppo_params.k"

#define WIDTH 9
#define STEPS 2  // of an iteration
#define KINDS 16
#define LANES 64

// Row r is of kind r % KINDS: logits and a mask.
struct kind {
    float logits[WIDTH];
    uint32_t mask;
};

// A masked action has the largest logit, or none at all; allowed ones have any probability down
// to 0.
static struct kind kind_of(uint32_t k) {
    static const float masked[] = {60.0f, 3.0e38f, INFINITY, NAN};
    struct kind kind = {.mask = (k * 37 + 21) % 511 + 1};
    for (uint32_t j = 0; j < WIDTH; j++) {
        kind.logits[j] = (float)sin(1.7 * k + 2.3 * j) * (float)(k % 5);
        if ((kind.mask >> j & 1) == 0) {
            kind.logits[j] = masked[(k + j) % 4];
        }
    }
    uint32_t last = kind.mask & 1 ? 0 : 8;
    if (k % 4 == 1 && (kind.mask >> last & 1) != 0) {
        kind.logits[last] = -150.0f;
    }
    return kind;
}

struct draws {
    uint32_t rows, iterations;
    struct test_tensor given, log_std, control, traj, acts;
    struct grt_graph *graph[STEPS];
    uint32_t *chosen;  // [rows]
    float *logp;
};

static void begin(struct draws *d, bool discrete, uint32_t width, bool greedy) {
    struct grt_dev *dev = test.dev;
    d->given = test_tensor(dev, GRT_F32, d->rows, width);
    d->log_std = test_tensor(dev, GRT_F32, width, 0);
    d->control = test_tensor(dev, GRT_U32, 4, 0);
    d->traj = test_tensor(dev, GRT_U32, PPO_SECTIONS * STEPS, d->rows);
    d->acts = test_tensor(dev, GRT_F32, STEPS * d->rows, width);
    d->chosen = test_alloc(d->rows * sizeof *d->chosen);
    d->logp = test_alloc(d->rows * sizeof *d->logp);
    for (uint32_t step = 0; step < STEPS; step++) {
        const struct ppo_act_params params = {
            .shape = {.rows = d->rows, .stride = d->rows, .section = STEPS * d->rows},
            .step = step,
            .count = d->rows,
            .width = width,
            .acts = step * d->rows * width,
            .greedy = greedy};
        const struct grt_range ranges[] = {d->given.tensor.range, d->log_std.tensor.range,
                                           d->control.tensor.range, d->traj.tensor.range,
                                           d->acts.tensor.range};
        const uint32_t groups[3] = {(d->rows + LANES - 1) / LANES, 1, 1};
        d->graph[step] = grt_graph_create(dev, "draws");
        assert_non_null(d->graph[step]);
        grt_op_launch(
            d->graph[step],
            grt_kernel_desc(.name = "ppo_act", .specs = {{"WG", LANES}, {"DISCRETE", discrete}}),
            &params, sizeof params, ranges, 5, groups);
        assert_true(grt_graph_bake(d->graph[step]));
    }
}

static void end(struct draws *d) {
    for (uint32_t step = 0; step < STEPS; step++) {
        grt_graph_destroy(&d->graph[step]);
    }
    struct test_tensor *all[] = {&d->given, &d->log_std, &d->control, &d->traj, &d->acts};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        test_tensor_end(all[i]);
    }
    free(d->chosen);
    free(d->logp);
}

static void write(const struct test_tensor *t, uint64_t word, const void *data, uint64_t words) {
    struct grt_range r = t->tensor.range;
    assert_true(grt_buf_write(r.buf, r.offset + 4 * word, data, 4 * words));
}

static void read(const struct test_tensor *t, uint64_t word, void *data, uint64_t words) {
    struct grt_range r = t->tensor.range;
    assert_true(grt_buf_read(r.buf, r.offset + 4 * word, data, 4 * words));
}

// One step of all rows.
static void draw(struct draws *d, uint32_t iteration, uint32_t step) {
    const struct grt_rng_state control = {.seed = {77, 0}, .step = {iteration, 0}};
    write(&d->control, 0, &control, sizeof control / 4);
    assert_true(grt_graph_run(d->graph[step]));
}

static void draw_choices(struct draws *d, uint32_t iteration, uint32_t step) {
    draw(d, iteration, step);
    read(&d->traj, (PPO_ACTION * STEPS + step) * d->rows, d->chosen, d->rows);
    read(&d->traj, (PPO_LOGP * STEPS + step) * d->rows, d->logp, d->rows);
}

static void write_kinds(struct draws *d) {
    float *logits = test_alloc((size_t)d->rows * WIDTH * sizeof *logits);
    uint32_t *masks = test_alloc(d->rows * sizeof *masks);
    for (uint32_t row = 0; row < d->rows; row++) {
        struct kind kind = kind_of(row % KINDS);
        masks[row] = kind.mask;
        for (uint32_t j = 0; j < WIDTH; j++) {
            logits[row * WIDTH + j] = kind.logits[j];
        }
    }
    write(&d->given, 0, logits, (uint64_t)d->rows * WIDTH);
    for (uint32_t step = 0; step < STEPS; step++) {
        write(&d->traj, (PPO_MASK * STEPS + step) * d->rows, masks, d->rows);
    }
    free(logits);
    free(masks);
}

// ---- chi-square ----

// Counts against what is expected. Cells that expect few are taken together. The bound is that of
// five deviations (Wilson and Hilferty 1931).
static void chi_square(const char *what, uint32_t of, const double *counts, const double *expected,
                       size_t cells) {
    double sum = 0, rest = 0, rest_expected = 0;
    int degrees = -1;
    for (size_t i = 0; i < cells; i++) {
        if (expected[i] < 10) {
            rest += counts[i];
            rest_expected += expected[i];
        } else {
            sum += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
            degrees++;
        }
    }
    if (rest_expected >= 10) {
        sum += (rest - rest_expected) * (rest - rest_expected) / rest_expected;
        degrees++;
    } else if (rest > rest_expected + 30) {
        fail_msg("%s of %u: %g where %g are expected", what, of, rest, rest_expected);
    }
    if (degrees > 0) {
        double part = 2 / (9.0 * degrees), bound = degrees * pow(1 - part + 5 * sqrt(part), 3);
        if (!(sum < bound)) {
            fail_msg("%s of %u: chi-square %g of %d degrees, at most %g", what, of, sum, degrees,
                     bound);
        }
    }
}

struct table {
    double counts[WIDTH * WIDTH], expected[WIDTH * WIDTH];
};

// Ten million draws; fewer where one takes long.
static void actions_follow_masks_and_probabilities(void **state) {
    (void)state;
    bool few = test.on_ref || test.small;
    struct draws d = {.rows = few ? 20000 : 250000, .iterations = few ? 4 : 20};
    begin(&d, true, WIDTH, false);
    write_kinds(&d);
    double p[KINDS][WIDTH] = {{0}}, counts[KINDS][WIDTH] = {{0}}, all = 0;
    static struct table in_time[KINDS], beside[KINDS];
    uint32_t *before = test_alloc(d.rows * sizeof *before);
    for (uint32_t k = 0; k < KINDS; k++) {
        struct kind kind = kind_of(k);
        double given[WIDTH];
        in_time[k] = beside[k] = (struct table){0};
        for (uint32_t j = 0; j < WIDTH; j++) {
            given[j] = (kind.mask >> j & 1) != 0 ? (double)kind.logits[j] : 0;
        }
        for (uint32_t j = 0; j < WIDTH; j++) {
            p[k][j] = oracle_ppo_probability(given, WIDTH, kind.mask, j);
        }
    }
    for (uint32_t t = 0; t < d.iterations * STEPS; t++) {
        draw_choices(&d, t / STEPS, t % STEPS);
        for (uint32_t row = 0; row < d.rows; row++) {
            uint32_t k = row % KINDS, chosen = d.chosen[row];
            if (chosen >= WIDTH || (kind_of(k).mask >> chosen & 1) == 0) {
                fail_msg("row %u of step %u: action %u is masked", row, t, chosen);
            }
            double want = log(p[k][chosen]);
            assert_true(fabs((double)d.logp[row] - want) < 1e-4 * (1 + fabs(want)));
            counts[k][chosen]++;
            all++;
            if (t > 0) {
                in_time[k].counts[before[row] * WIDTH + chosen]++;
            }
            if (row >= KINDS) {
                beside[k].counts[d.chosen[row - KINDS] * WIDTH + chosen]++;
            }
        }
        for (uint32_t row = 0; row < d.rows; row++) {
            before[row] = d.chosen[row];
        }
    }
    assert_true(few || all >= 1e7);
    for (uint32_t k = 0; k < KINDS; k++) {
        double n = 0, expected[WIDTH];
        for (uint32_t j = 0; j < WIDTH; j++) {
            n += counts[k][j];
        }
        for (uint32_t j = 0; j < WIDTH; j++) {
            expected[j] = n * p[k][j];
        }
        chi_square("actions", k, counts[k], expected, WIDTH);
        struct table *tables[] = {&in_time[k], &beside[k]};
        for (size_t i = 0; i < 2; i++) {
            double pairs = 0;
            for (uint32_t j = 0; j < WIDTH * WIDTH; j++) {
                pairs += tables[i]->counts[j];
            }
            for (uint32_t j = 0; j < WIDTH * WIDTH; j++) {
                tables[i]->expected[j] = pairs * p[k][j / WIDTH] * p[k][j % WIDTH];
            }
            chi_square(i ? "actions of neighbours" : "actions of steps", k, tables[i]->counts,
                       tables[i]->expected, (size_t)WIDTH * WIDTH);
        }
    }
    free(before);
    end(&d);
}

static void greedy_actions_are_the_most_likely(void **state) {
    (void)state;
    struct draws d = {.rows = KINDS};
    begin(&d, true, WIDTH, true);
    write_kinds(&d);
    draw_choices(&d, 5, 1);
    for (uint32_t k = 0; k < KINDS; k++) {
        struct kind kind = kind_of(k);
        uint32_t best = WIDTH;
        for (uint32_t j = 0; j < WIDTH; j++) {
            bool allowed = (kind.mask >> j & 1) != 0;
            if (allowed && (best == WIDTH || kind.logits[j] > kind.logits[best])) {
                best = j;
            }
        }
        assert_int_equal(d.chosen[k], best);
    }
    end(&d);
}

// What was drawn, less its mean and in deviations, is normal: 32 parts of the same probability.
static void continuous_actions_are_normal(void **state) {
    (void)state;
    enum { NUMBERS = 3, PARTS = 32 };
    struct draws d = {.rows = test.on_ref || test.small ? 20000 : 400000};
    begin(&d, false, NUMBERS, false);
    const float log_std[NUMBERS] = {-1.5f, 0.0f, 0.75f};
    float *means = test_alloc((size_t)d.rows * NUMBERS * sizeof *means);
    float *acts = test_alloc((size_t)d.rows * NUMBERS * sizeof *acts);
    for (uint32_t i = 0; i < d.rows * NUMBERS; i++) {
        means[i] = 0.01f * (float)(i % 101);
    }
    write(&d.given, 0, means, (uint64_t)d.rows * NUMBERS);
    write(&d.log_std, 0, log_std, NUMBERS);
    draw(&d, 3, 1);
    read(&d.acts, (uint64_t)d.rows * NUMBERS, acts, (uint64_t)d.rows * NUMBERS);
    double counts[NUMBERS][PARTS] = {{0}}, expected[PARTS], products = 0;
    for (uint32_t row = 0; row < d.rows; row++) {
        double z[NUMBERS];
        for (uint32_t j = 0; j < NUMBERS; j++) {
            uint32_t i = row * NUMBERS + j;
            z[j] = ((double)acts[i] - (double)means[i]) / exp((double)log_std[j]);
            double share = 0.5 * erfc(-z[j] / sqrt(2));
            counts[j][share < 1 ? (uint32_t)(share * PARTS) : PARTS - 1]++;
        }
        products += z[0] * z[1];
    }
    for (uint32_t i = 0; i < PARTS; i++) {
        expected[i] = (double)d.rows / PARTS;
    }
    for (uint32_t j = 0; j < NUMBERS; j++) {
        chi_square("numbers", j, counts[j], expected, PARTS);
    }
    assert_true(fabs(products) < 5 * sqrt((double)d.rows));
    free(means);
    free(acts);
    end(&d);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(actions_follow_masks_and_probabilities),
    TEST_CASE(greedy_actions_are_the_most_likely),
    TEST_CASE(continuous_actions_are_normal),
};
TEST_SUITE(draws, true, cases);
