// SPDX-License-Identifier: Apache-2.0
// What a sweep's file means: its trials, against formulas and against an implementation in Python;
// which trials go on, for values with known answers; and what is said of files that are wrong.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sweep/plan.h"

static struct sweep_plan *plan;

static int begin(void **state) {
    (void)state;
    plan = calloc(1, sizeof *plan);
    return plan ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    sweep_plan_finish(plan);
    free(plan);
    return 0;
}

static bool reads(const char *text) {
    sweep_plan_finish(plan);
    return sweep_plan_read(plan, "s.yaml", text);
}

static void silent(void *context, enum grt_log_level level, const char *text) {
    (void)context, (void)level, (void)text;
}

// ---- random numbers ----

// By Python 3.11 from the formula: splitmix64's finishing steps over seed, FNV-1a of the name,
// trial and number.
static void random_known_answers(void **state) {
    (void)state;
    assert_true(sweep_random(0, 0, "lr", 0) == 0.6469041690294987);
    assert_true(sweep_random(0, 1, "lr", 0) == 0.9232864258442489);
    assert_true(sweep_random(7, 9999, "batch_size", 1) == 0.16114569436823967);
    assert_true(sweep_random(9007199254740992, 3, "optimizer.lr", 0) == 0.9586053405012314);
}

#define DRAWS 4000

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Draws of the first parameter of a file; `more` is what follows run_cap.
static void draw(const char *more, double draws[DRAWS]) {
    char text[512], value[SWEEP_VALUE];
    snprintf(text, sizeof text, "method: random\nrun_cap: %d\nparameters:\n  lr: {%s}\n", DRAWS,
             more);
    assert_true(reads(text));
    for (uint32_t i = 0; i < DRAWS; i++) {
        sweep_sample(plan, 0, i, value);
        draws[i] = strtod(value, NULL);
    }
}

// The largest distance of the draws from a distribution (Kolmogorov-Smirnov), below what chance
// passes one time in a thousand.
static void follows(double draws[DRAWS], double (*share)(double x)) {
    double most = 0;
    qsort(draws, DRAWS, sizeof *draws, by_size);
    for (int i = 0; i < DRAWS; i++) {
        double f = share(draws[i]);
        most = fmax(most, fmax(fabs(f - (double)i / DRAWS), fabs(f - (i + 1.0) / DRAWS)));
    }
    assert_true(most < 1.95 / sqrt(DRAWS));
}

static double uniform_share(double x) {
    return (x - 0.5) / 2;
}
static double log_share(double x) {
    return log10(x / 1e-4) / 2;
}
static double normal_share(double x) {
    return 0.5 * erfc(-(x - 3) / 0.5 / sqrt(2));
}
static double log_normal_share(double x) {
    return 0.5 * erfc(-(log(x) + 5) / sqrt(2));
}

static void distributions(void **state) {
    double draws[DRAWS];
    (void)state;
    draw("min: 0.5, max: 2.5", draws);
    follows(draws, uniform_share);
    draw("distribution: log_uniform_values, min: 1e-4, max: 1e-2", draws);
    follows(draws, log_share);
    // ln 1e-4 and ln 1e-2
    draw("distribution: log_uniform, min: -9.210340371976182, max: -4.605170185988091", draws);
    follows(draws, log_share);
    draw("distribution: normal, mu: 3, sigma: 0.5", draws);
    follows(draws, normal_share);
    draw("distribution: log_normal, mu: -5", draws);
    follows(draws, log_normal_share);
}

// Whole numbers and values come as often as they should: chi-squared of k - 1 degrees, below what
// chance passes one time in a thousand.
static void choices(void **state) {
    static const double shares[] = {0.5, 0.2, 0.3};
    double draws[DRAWS], chi = 0;
    (void)state;
    draw("min: 3, max: 7", draws);
    for (int k = 3; k <= 7; k++) {
        double count = 0;
        for (int i = 0; i < DRAWS; i++) {
            count += draws[i] == k;
        }
        chi += pow(count - DRAWS / 5.0, 2) / (DRAWS / 5.0);
    }
    assert_true(chi < 18.5);
    draw("values: [0.1, 0.2, 0.3], probabilities: [0.5, 0.2, 0.3]", draws);
    chi = 0;
    for (int k = 0; k < 3; k++) {
        double count = 0;
        for (int i = 0; i < DRAWS; i++) {
            count += fabs(draws[i] - 0.1 * (k + 1)) < 1e-9;
        }
        chi += pow(count - DRAWS * shares[k], 2) / (DRAWS * shares[k]);
    }
    assert_true(chi < 13.8);
    draw("distribution: q_uniform, min: 0.1, max: 0.9, q: 0.1", draws);
    for (int i = 0; i < DRAWS; i++) {
        char text[32];
        snprintf(text, sizeof text, "%.1f", draws[i]);
        assert_true(strtod(text, NULL) == draws[i] && draws[i] >= 0.1 && draws[i] <= 0.9);
    }
}

// Every digit of a whole number, and no exponent.
static void wide(void **state) {
    char value[SWEEP_VALUE], wanted[SWEEP_VALUE];
    (void)state;
    assert_true(reads("method: random\nrun_cap: 8\nparameters: {seed: {min: 1000000000, max: "
                      "1999999999}}\n"));
    for (uint32_t i = 0; i < 8; i++) {
        snprintf(wanted, sizeof wanted, "%lld",
                 1000000000 + (long long)(1e9 * sweep_random(0, i, "seed", 0)));
        sweep_sample(plan, 0, i, value);
        assert_string_equal(value, wanted);
    }
    assert_true(reads("parameters: {seed: {min: 1000000, max: 1000001}}\n"));
    sweep_sample(plan, 0, 0, value);
    assert_string_equal(value, "1000000");
}

// A trial does not depend on how many there are, nor on what stands beside a parameter.
static void alone(void **state) {
    char first[SWEEP_VALUE], again[SWEEP_VALUE];
    (void)state;
    assert_true(reads("method: random\nrun_cap: 8\nparameters: {lr: {min: 0.1, max: 0.2}}\n"));
    sweep_sample(plan, 0, 5, first);
    assert_true(reads("method: random\nrun_cap: 900\nparameters: {momentum: {min: 0.1, max: 0.2}, "
                      "lr: {min: 0.1, max: 0.2}}\n"));
    sweep_sample(plan, 1, 5, again);
    assert_string_equal(first, again);
    sweep_sample(plan, 0, 5, again);
    assert_string_not_equal(first, again);
    assert_true(
        reads("method: random\nseed: 1\nrun_cap: 8\nparameters: {lr: {min: 0.1, max: 0.2}}\n"));
    sweep_sample(plan, 0, 5, again);
    assert_string_not_equal(first, again);
}

// ---- grids ----

static void grid_is(const char *const *rows, uint32_t count) {
    assert_int_equal(plan->trials, count);
    for (uint32_t i = 0; i < count; i++) {
        char row[4 * SWEEP_VALUE] = "", value[SWEEP_VALUE];
        for (uint32_t p = 0; p < plan->parameter_count; p++) {
            sweep_sample(plan, p, i, value);
            snprintf(row + strlen(row), sizeof row - strlen(row), "%s%s", p ? " " : "", value);
        }
        assert_string_equal(row, rows[i]);
    }
}

static void grids(void **state) {
    static const char *const rows[] = {"1e-4 64 relu",  "1e-4 64 tanh",  "1e-4 128 relu",
                                       "1e-4 128 tanh", "1e-3 64 relu",  "1e-3 64 tanh",
                                       "1e-3 128 relu", "1e-3 128 tanh", "0.01 64 relu",
                                       "0.01 64 tanh",  "0.01 128 relu", "0.01 128 tanh"};
    (void)state;
    assert_true(reads("parameters:\n  lr: {values: [1e-4, 1e-3, 0.01]}\n  batch_size:\n    "
                      "values: [64, 128]\n  activation: {values: [relu, tanh]}\n"));
    grid_is(rows, 12);
    // The guides' lists, and sections.
    assert_true(reads("lr: [1e-4, 1e-3, 0.01]\ndata:\n  batch_size: [64, 128]\nmodel: {activation: "
                      "[relu, tanh]}\nepochs: 3\nseed: 4\ndevice: [0, 1, 2]\n"));
    grid_is(rows, 12);
    assert_int_equal(plan->base.epochs, 3);
    assert_int_equal(plan->base.seed, 4);
    assert_int_equal(plan->device_count, 3);
    assert_string_equal(plan->devices[2], "2");
    assert_true(reads("run_cap: 5\nlr: [1e-4, 1e-3, 0.01]\nbatch_size: [64, 128]\nactivation: "
                      "[relu, tanh]\n"));
    grid_is(rows, 5);
    // A list on a key that takes one is its value; a list of lists makes a grid.
    static const char *const nested[] = {"[32, 16] 3", "[32, 16] 4", "64 3", "64 4"};
    assert_true(reads("parameters: {hidden: {values: [[32, 16], 64]}, depth: {min: 3, max: 4}}"));
    grid_is(nested, 4);
    assert_true(reads("hidden: [[32, 16], [8, 8]]\n"));
    assert_int_equal(plan->trials, 2);
    assert_true(reads("lr: [0.1, 0.2]\nhidden: [32, 16]\n"));
    assert_int_equal(plan->trials, 2);
    assert_int_equal(plan->base.hidden.count, 2);
}

static void settings(void **state) {
    static struct grt_config config;
    struct grt_config *c = &config;
    (void)state;
    assert_true(reads("parameters: {optimizer: {parameters: {lr: {values: [0.25, 0.5]}}}, model: "
                      "{values: [\"resnet(depth=2)\", small]}}\nmetric: {name: val_acc}\n"));
    assert_true(sweep_settings(plan, 3, c));
    assert_true(c->learning_rate == 0.5);
    assert_string_equal(c->model, "small");
    assert_true(plan->metric.maximize);
    assert_string_equal(plan->metric.field, "accuracy");
}

// ---- halving ----

static bool goes_on(const double *values, const double *times, uint32_t count, uint32_t own,
                    double eta, bool maximize) {
    struct sweep_rung_value all[16];
    for (uint32_t i = 0; i < count; i++) {
        all[i] = (struct sweep_rung_value){values[i], times[i]};
    }
    return sweep_goes_on(all, count, all[own], eta, maximize);
}

static void halving(void **state) {
    static const double values[] = {0.5, 0.4, 0.6, 0.3, 0.3, NAN, 0.45, 0.2, 0.9};
    static const double times[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    // Of 1, 2, 3, 4, 5 places 1, of 6 to 8 two, of 9 three: the first is alone; the second is the
    // best so far; the fourth too; the fifth ties with it and stays; NaN never does; of 7 the third
    // goes; the last of 9 is the worst.
    static const bool less[] = {true, true, false, true, true, false, false, true, false};
    // The most: 0.5 is alone; 0.4 is below it; 0.6 leads; of 7 0.45 is the third; 0.9 leads.
    static const bool more[] = {true, false, true, false, false, false, false, false, true};
    (void)state;
    for (uint32_t i = 0; i < 9; i++) {
        assert_int_equal(goes_on(values, times, 9, i, 3, false), less[i]);
        assert_int_equal(goes_on(values, times, 9, i, 3, true), more[i]);
    }
    // All at once: of 9 three places.
    static const double now[9] = {0};
    static const bool best[] = {false, false, false, true, true, false, false, true, false};
    for (uint32_t i = 0; i < 9; i++) {
        assert_int_equal(goes_on(values, now, 9, i, 3, false), best[i]);
    }
    assert_false(goes_on((double[]){NAN, NAN}, now, 2, 0, 3, false));
}

static void rungs(void **state) {
    (void)state;
    assert_true(reads("lr: [1, 2]\nearly_terminate: {type: hyperband, min_iter: 3, eta: 3}\n"));
    assert_int_equal(plan->halving.rungs[0], 3);
    assert_int_equal(plan->halving.rungs[1], 9);
    assert_int_equal(plan->halving.rungs[2], 27);
    assert_true(reads("lr: [1, 2]\nearly_terminate: {type: hyperband, max_iter: 27, s: 2}\n"));
    assert_int_equal(plan->halving.count, 2);
    assert_int_equal(plan->halving.rungs[0], 3);
    assert_int_equal(plan->halving.rungs[1], 9);
}

// ---- what is wrong ----

static void refused(void **state) {
    static const struct {
        const char *text, *place, *words;
    } rows[] = {
        {"parameters:\n  leraning_rate: {values: [1]}\n",
         "s.yaml:2:3: ", "did you mean 'learning_rate'?"},
        {"lr: [1]\nepochz: 3\n", "s.yaml:2:1: ", "did you mean 'epochs'?"},
        {"parametrs: {lr: {values: [1]}}\n", "s.yaml:1:1: ", "parametrs"},
        {"parameters: {lr: {values: [1]}}\nmethd: grid\n", "s.yaml:2:1: ", "'method'?"},
        {"parameters:\n  lr:\n    values: []\n", "s.yaml:3:5: ", "the list is empty"},
        {"lr: []\n", "s.yaml:1:1: ", "the list is empty"},
        {"parameters:\n  lr: {min: .nan, max: 1}\n", "s.yaml:2:13: ", "a finite number"},
        {"parameters:\n  lr: {min: 0.1, max: inf}\n", "s.yaml:2:23: ", "a finite number"},
        {"parameters:\n  lr: {min: 0.2, max: 0.1}\n", "s.yaml:2:18: ", "not above min"},
        {"parameters:\n  lr: {valeus: [1]}\n", "s.yaml:2:8: ", "did you mean 'values'?"},
        {"parameters:\n  lr: {min: 1e-9, max: 5000}\n", "s.yaml:2:24: ", "learning_rate"},
        {"parameters:\n  lr: {values: [0.1, fast]}\n", "s.yaml:2:22: ", "not 'fast'"},
        {"parameters:\n  lr: {values: [0.1, 0.1]}\n", "s.yaml:2:22: ", "twice"},
        {"parameters:\n  lr: {values: [1, 2], probabilities: [0.5, 0.4]}\n",
         "s.yaml:2:24: ", "2 numbers whose sum is 1"},
        {"parameters:\n  lr: {values: [1, 2], probabilities: [0.5, 0.6]}\n",
         "s.yaml:2:24: ", "2 numbers whose sum is 1"},
        {"parameters:\n  lr: {values: [1, 2], probabilities: [0.5, 0.3, 0.2]}\n",
         "s.yaml:2:24: ", "2 numbers whose sum is 1"},
        {"parameters:\n  lr: {values: [1, 2], probabilities: [1]}\n",
         "s.yaml:2:24: ", "2 numbers whose sum is 1"},
        {"parameters:\n  lr: {values: [1, 2], probabilities: [1.5, -0.5]}\n",
         "s.yaml:2:45: ", "at least 0"},
        {"parameters:\n  lr: {distribution: uniform, min: 0.1, max: 1, q: 0.1}\n",
         "s.yaml:2:49: ", "q goes with q_uniform"},
        {"parameters:\n  lr: {distribution: q_uniform, min: 0.1, max: 1, q: 0}\n",
         "s.yaml:2:51: ", "q is above 0"},
        {"parameters:\n  lr: {distribution: normal, mu: 1, sigma: 0}\n",
         "s.yaml:2:37: ", "sigma is above 0"},
        {"parameters:\n  lr: {distribution: uniform, min: 0.1}\n", "s.yaml:2:3: ", "min and max"},
        {"parameters:\n  lr: {distribution: log_uniform_values, min: 0, max: 1}\n",
         "s.yaml:2:42: ", "min above 0"},
        {"parameters:\n  lr: {distribution: log_uniform, min: 1, max: 1000}\n",
         "s.yaml:2:43: ", "exponents of e"},
        {"parameters:\n  batch_size: {distribution: int_uniform, min: 1.5, max: 9}\n",
         "s.yaml:2:43: ", "whole numbers"},
        {"parameters:\n  lr: {values: [1]}\n  learning_rate: {value: 2}\n",
         "s.yaml:3:3: ", "in line 2 already, as lr"},
        {"lr: [1, 2]\nlr: [3]\n", "s.yaml:2:1: ", "in line 1 already"},
        {"lr: [1]\nmetric: {name: val_lss}\n", "s.yaml:2:16: ", "did you mean 'loss'?"},
        {"lr: [1]\nmetric: {name: loss, goal: low}\n", "s.yaml:2:28: ", "minimize or maximize"},
        {"method: random\nparameters: {lr: {min: 0.1, max: 1}}\n", "s.yaml:1:1: ", "run_cap"},
        {"method: grid\nparameters: {lr: {min: 0.1, max: 1}}\n", "s.yaml:2:14: ", "values"},
        {"method: bayes\nparameters: {lr: {values: [1]}}\n", "s.yaml:1:9: ", "random"},
        {"lr: [1]\nearly_terminate: {type: envelope}\n", "s.yaml:2:25: ", "hyperband"},
        {"lr: [1]\nearly_terminate: {type: hyperband}\n", "s.yaml:2:1: ", "min_iter"},
        {"lr: [1]\nprogram: train.py\n", "s.yaml:2:1: ", "`gpurt train`"},
        {"parameters: {device: {values: [a]}}\n", "s.yaml:1:14: ", "--devices"},
        {"parameters: {batch_size: {min: 0, max: 30000}}\n", "s.yaml:1:32: ", "batch_size"},
        {"parameters: {batch_size: {min: 1, max: 300}, seed: {min: 0, max: 300}}\n",
         "s.yaml:1:1: ", "90300 trials"},
        {"epochs: 3\n", "s.yaml:1:1: ", "nothing to sweep"},
        {"kind: es\nlr: [1]\n", "s.yaml:2:1: ", "config of evolution strategies"},
        {"kind: enforced\nlr: [1]\n", "s.yaml:1:7: ", "supervised"},
    };
    uint32_t bad = 0;
    (void)state;
    grt_log_set(silent, NULL, GRT_LOG_ERROR);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool good = reads(rows[i].text);
        const char *said = grt_last_error();
        if (good || strncmp(said, rows[i].place, strlen(rows[i].place)) != 0 ||
            !strstr(said, rows[i].words)) {
            print_error("%s\n  gives: %s\n  wanted: %s ... %s\n", rows[i].text,
                        good ? "no mistake" : said, rows[i].place, rows[i].words);
            bad++;
        }
    }
    assert_int_equal(bad, 0);
    // Two keys that do not go together: the trial's place.
    assert_true(reads("lr: [1]\nhuber_delta: [1, 2]\nloss: mse\n"));
    static struct grt_config config;
    assert_false(sweep_settings(plan, 0, &config));
    assert_non_null(strstr(grt_last_error(), "s.yaml:2:1: "));
    grt_log_set(NULL, NULL, GRT_LOG_ERROR);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_known_answers),
        cmocka_unit_test_setup_teardown(distributions, begin, end),
        cmocka_unit_test_setup_teardown(choices, begin, end),
        cmocka_unit_test_setup_teardown(wide, begin, end),
        cmocka_unit_test_setup_teardown(alone, begin, end),
        cmocka_unit_test_setup_teardown(grids, begin, end),
        cmocka_unit_test_setup_teardown(settings, begin, end),
        cmocka_unit_test(halving),
        cmocka_unit_test_setup_teardown(rungs, begin, end),
        cmocka_unit_test_setup_teardown(refused, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
