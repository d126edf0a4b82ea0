// SPDX-License-Identifier: Apache-2.0
// Metrics of a sweep by their names, rungs and who goes on there, and the values of trials against
// Python.
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

// ---- metrics ----

static void metrics(void **state) {
    static const struct {
        const char *kind, *metric;  // metric NULL: none is named
        enum grt_run_event event;
        const char *field;
        bool maximize;
    } rows[] = {
        {"supervised", NULL, GRT_RUN_EVALUATE, "loss", false},
        {"classify", NULL, GRT_RUN_EVALUATE, "loss", false},
        {"simclr", NULL, GRT_RUN_EVALUATE, "train_loss", false},
        {"es", NULL, GRT_RUN_EVALUATE, "return", true},
        {"ppo", NULL, GRT_RUN_EVALUATE, "return", true},
        {"supervised", "loss", GRT_RUN_EVALUATE, "loss", false},
        {"supervised", "val/loss", GRT_RUN_EVALUATE, "loss", false},
        {"supervised", "valid.loss", GRT_RUN_EVALUATE, "loss", false},
        {"supervised", "validation_loss", GRT_RUN_EVALUATE, "loss", false},
        {"supervised", "evaluate_loss", GRT_RUN_EVALUATE, "loss", false},
        {"supervised", "eval_loss", GRT_RUN_EVALUATE, "loss", false},
        {"supervised", "test_loss", GRT_RUN_EVALUATE, "loss", false},
        {"supervised", "train_loss", GRT_RUN_EVALUATE, "train_loss", false},
        {"supervised", "train/loss", GRT_RUN_EVALUATE, "train_loss", false},
        {"supervised", "train_grad_norm", GRT_RUN_TRAIN, "grad_norm", false},
        {"supervised", "val_acc", GRT_RUN_EVALUATE, "accuracy", true},
        {"supervised", "acc", GRT_RUN_EVALUATE, "accuracy", true},
        {"supervised", "train_accuracy", GRT_RUN_TRAIN, "accuracy", true},
        {"supervised", "knn", GRT_RUN_EVALUATE, "knn", true},
        {"supervised", "top5", GRT_RUN_EVALUATE, "top5", true},
        {"supervised", "grad_norm", GRT_RUN_EVALUATE, "grad_norm", false},
        {"supervised", "seconds", GRT_RUN_EVALUATE, "seconds", false},
        {"supervised", "samples_per_s", GRT_RUN_EVALUATE, "samples_per_s", true},
        {"supervised", "{name: accuracy, goal: minimize}", GRT_RUN_EVALUATE, "accuracy", false},
        {"supervised", "{name: loss, goal: maximize}", GRT_RUN_EVALUATE, "loss", true},
        {"ppo", "train_return", GRT_RUN_TRAIN, "return", true},
        {"ppo", "best_return", GRT_RUN_EVALUATE, "best_return", true},
        {"ppo", "good_rate", GRT_RUN_EVALUATE, "good_rate", true},
        {"ppo", "explained", GRT_RUN_EVALUATE, "explained", true},
        {"ppo", "entropy", GRT_RUN_EVALUATE, "entropy", true},
        {"ppo", "length", GRT_RUN_EVALUATE, "length", true},
        {"ppo", "episodes", GRT_RUN_EVALUATE, "episodes", true},
        {"ppo", "steps_per_s", GRT_RUN_EVALUATE, "steps_per_s", true},
        {"ppo", "falls", GRT_RUN_EVALUATE, "falls", false},
        {"ppo", "kl", GRT_RUN_EVALUATE, "kl", false},
        {"ppo", "shots", GRT_RUN_EVALUATE, "shots", false},
    };
    uint32_t bad = 0;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct sweep_metric *m = &plan->metric;
        char text[256];
        snprintf(text, sizeof text, "kind: %s\nseed: [1]\n%s%s\n", rows[i].kind,
                 rows[i].metric ? "metric: " : "", rows[i].metric ? rows[i].metric : "");
        assert_true(reads(text));
        if (m->event != rows[i].event || strcmp(m->field, rows[i].field) != 0 ||
            m->maximize != rows[i].maximize || m->line != (rows[i].metric ? 3 : 0)) {
            print_error("%s: event %d, field %s, maximize %d, line %u\n", text, (int)m->event,
                        m->field, m->maximize, m->line);
            bad++;
        }
    }
    assert_int_equal(bad, 0);
}

// ---- rungs ----

static void rungs(void **state) {
    static const struct {
        const char *given;
        uint32_t count;
        uint64_t first[5], last;
    } rows[] = {
        // Each a third more than the one before, rounded; equal ones once.
        {"min_iter: 2, eta: 2", 32, {2, 4, 8, 16, 32}, 1ull << 32},
        {"min_iter: 1, eta: 1.5", 32, {1, 2, 3, 5, 8}, 0},
        {"min_iter: 1000000000, eta: 1000", 2, {1000000000, 1000000000000}, 1000000000000},
        {"max_iter: 81, s: 3, eta: 3", 3, {3, 9, 27}, 27},
        {"max_iter: 81, eta: 3", 1, {27}, 27},
        {"max_iter: 100, s: 2", 2, {11, 33}, 33},
        {"max_iter: 9, s: 4, eta: 3", 2, {1, 3}, 3},  // below a half there is none
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct sweep_halving *h = &plan->halving;
        char text[256];
        snprintf(text, sizeof text, "lr: [1]\nearly_terminate: {type: hyperband, %s}\n",
                 rows[i].given);
        assert_true(reads(text));
        assert_in_range(h->count, rows[i].last ? rows[i].count : 20, rows[i].count);
        for (uint32_t k = 0; k < 5 && rows[i].first[k]; k++) {
            assert_int_equal(h->rungs[k], rows[i].first[k]);
        }
        for (uint32_t k = 1; k < h->count; k++) {
            assert_true(h->rungs[k] > h->rungs[k - 1]);
        }
        if (rows[i].last) {
            assert_true(h->rungs[h->count - 1] == rows[i].last);
        }
    }
    assert_true(reads("lr: [1]\nearly_terminate: {type: hyperband, min_iter: 4}\n"));
    assert_true(plan->halving.eta == 3);
}

// Of 5 that came by then and eta 2 two go on; those that came at the same moment count; of equals
// all go on.
static void who_goes_on(void **state) {
    struct sweep_rung_value all[] = {{5, 1}, {4, 1}, {3, 2}, {2, 2}, {1, 3}};
    static const bool at_two[] = {false, false, true, true};
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        // At time 2 there are four.
        struct sweep_rung_value own = {all[i].value, 2};
        all[i].time = 2;
        assert_int_equal(sweep_goes_on(all, 5, own, 2, false), at_two[i]);
    }
    struct sweep_rung_value same[] = {{1, 1}, {1, 2}, {1, 3}};
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(sweep_goes_on(same, 3, same[i], 3, false));
        assert_true(sweep_goes_on(same, 3, same[i], 3, true));
    }
    struct sweep_rung_value far[] = {{-INFINITY, 1}, {INFINITY, 2}, {NAN, 3}, {-2, 4}};
    assert_true(sweep_goes_on(far, 4, far[1], 2, true));
    assert_false(sweep_goes_on(far, 4, far[1], 2, false));
    assert_false(sweep_goes_on(far, 4, far[2], 1.01, true));
    assert_true(sweep_goes_on(far, 4, far[3], 2, true));
    assert_true(sweep_goes_on(far, 4, far[3], 2, false));
}

// ---- values ----

// By Python 3.11 from the formulas, of seed 7 and the name lr: trials 0, 1 and 3.
static void known_values(void **state) {
    static const struct {
        struct sweep_parameter of;
        const char *are[3];
    } rows[] = {
        {{.distribution = SWEEP_INT_UNIFORM, .min = 3, .max = 7}, {"5", "6", "7"}},
        {{.distribution = SWEEP_INT_UNIFORM, .min = -9, .max = -5}, {"-7", "-6", "-5"}},
        {{.distribution = SWEEP_UNIFORM, .min = 0.5, .max = 2.5},
         {"1.55162", "1.97411", "2.298321"}},
        {{.distribution = SWEEP_Q_UNIFORM, .min = 0.5, .max = 2.5, .q = 0.3},
         {"1.5", "2.1", "2.4"}},
        {{.distribution = SWEEP_LOG_UNIFORM, .min = -3, .max = 1},
         {"0.4078887", "0.9495386", "1.816012"}},
        {{.distribution = SWEEP_Q_LOG_UNIFORM, .min = -3, .max = 1, .q = 0.05},
         {"0.4", "0.95", "1.8"}},
        {{.distribution = SWEEP_LOG_UNIFORM_VALUES, .min = 1e-3, .max = 10},
         {"0.126835", "0.8876073", "3.950415"}},
        {{.distribution = SWEEP_Q_LOG_UNIFORM_VALUES, .min = 1e-3, .max = 10, .q = 0.05},
         {"0.15", "0.9", "3.95"}},
        {{.distribution = SWEEP_NORMAL, .mu = 3, .sigma = 0.5}, {"3.55336", "3.81589", "2.182938"}},
        {{.distribution = SWEEP_Q_NORMAL, .mu = 3, .sigma = 0.5, .q = 0.25},
         {"3.5", "3.75", "2.25"}},
        {{.distribution = SWEEP_LOG_NORMAL, .mu = -1, .sigma = 0.5},
         {"0.6397743", "0.8318446", "0.1625025"}},
        {{.distribution = SWEEP_Q_LOG_NORMAL, .mu = -1, .sigma = 0.5, .q = 0.1},
         {"0.6", "0.8", "0.2"}},
    };
    static const uint32_t trials[] = {0, 1, 3};
    uint32_t bad = 0;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        plan->parameters[0] = rows[i].of;
        snprintf(plan->parameters[0].name, SWEEP_NAME, "lr");
        plan->method = SWEEP_RANDOM;
        plan->seed = 7;
        for (int k = 0; k < 3; k++) {
            char value[SWEEP_VALUE];
            sweep_sample(plan, 0, trials[k], value);
            if (strcmp(value, rows[i].are[k]) != 0) {
                print_error("%s, trial %u: %s, not %s\n",
                            sweep_distribution_word(rows[i].of.distribution), trials[k], value,
                            rows[i].are[k]);
                bad++;
            }
        }
    }
    assert_int_equal(bad, 0);
    // Of three values by u = 0.526, 0.737, 0.899; of shares by their sums.
    static char a[] = "a", b[] = "b", c[] = "c";
    static const struct {
        double shares[3];
        const char *are;
    } shares[] = {{{-1}, "bcc"},          {{0.6, 0.2, 0.2}, "abc"}, {{0.52, 0.3, 0.18}, "bbc"},
                  {{0.9, 0, 0.1}, "aaa"}, {{0, 0.9, 0.1}, "bbb"},   {{0, 0, 1}, "ccc"},
                  {{0.5, 0.5, 0}, "bbb"}};
    struct sweep_value values[3] = {{.text = a}, {.text = b}, {.text = c}};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        bool even = shares[i].shares[0] < 0;
        for (int k = 0; k < 3; k++) {
            values[k].share = shares[i].shares[k];
        }
        plan->parameters[0].distribution = even ? SWEEP_CATEGORICAL : SWEEP_CATEGORICAL_SHARES;
        plan->parameters[0].values = values;
        plan->parameters[0].count = 3;
        for (int k = 0; k < 3; k++) {
            char value[SWEEP_VALUE];
            sweep_sample(plan, 0, trials[k], value);
            assert_int_equal(value[0], shares[i].are[k]);
        }
    }
    plan->parameters[0] = (struct sweep_parameter){.count = 0};
}

static void numbers_as_text(void **state) {
    static const struct {
        double number;
        const char *text;
    } rows[] = {
        {0, "0"},        {0.1, "0.1"},       {1.0 / 3, "0.3333333333333333"},    {-2.5, "-2.5"},
        {1e22, "1e+22"}, {123456, "123456"}, {0.1 + 0.2, "0.30000000000000004"}, {1e-7, "1e-07"}};
    char text[SWEEP_VALUE];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sweep_number_text(rows[i].number, text);
        assert_true(strtod(text, NULL) == rows[i].number);
        assert_true(strlen(text) <= strlen(rows[i].text) + 2);
    }
    sweep_number_text(1.0 / 3, text);
    assert_string_equal(text, "0.3333333333333333");
    sweep_number_text(0.25, text);
    assert_string_equal(text, "0.25");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(metrics),      CASE(rungs),           cmocka_unit_test(who_goes_on),
        CASE(known_values), CASE(numbers_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
