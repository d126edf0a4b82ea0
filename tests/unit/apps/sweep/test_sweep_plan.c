// SPDX-License-Identifier: Apache-2.0
// What a sweep's file says, one fact a row: numbers at their limits, devices, how a parameter
// without a word is drawn, how many trials there are, and where a mistake stands.
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

// A file with these lines, which is read (said NULL) or refused with these words in the sentence.
struct row {
    const char *text, *said;
};

static void rows_are(const struct row *rows, size_t count) {
    uint32_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        bool good = reads(rows[i].text);
        const char *said = good ? "no mistake" : grt_last_error();
        if (rows[i].said ? good || !strstr(said, rows[i].said) : !good) {
            print_error("%s\n  gives: %s\n  wanted: %s\n", rows[i].text, said,
                        rows[i].said ? rows[i].said : "no mistake");
            bad++;
        }
    }
    assert_int_equal(bad, 0);
}
#define ROWS_ARE(rows) rows_are(rows, sizeof(rows) / sizeof *(rows))

// ---- numbers ----

#define P "parameters: {lr: {min: 0.1, max: 1}}\n"
#define R "method: random\nrun_cap: 2\n" P

static void limits(void **state) {
    static const struct row rows[] = {
        {"method: random\nrun_cap: 1\n" P, NULL},
        {"method: random\nrun_cap: 10000\n" P, NULL},
        {"method: random\nrun_cap: 0\n" P, "run_cap wants a whole number from 1 to 10000"},
        {"method: random\nrun_cap: 10001\n" P, "run_cap wants a whole number from 1 to 10000"},
        {"method: random\nrun_cap: 2.5\n" P, "run_cap wants a whole number from 1 to 10000"},
        {"method: random\nrun_cap: 0x10\n" P, "run_cap wants a finite number, not '0x10'"},
        {"method: random\nrun_cap: 3 4\n" P, "run_cap wants a finite number, not '3 4'"},
        {"method: random\nrun_cap: \"\"\n" P, "run_cap wants a finite number, not ''"},
        {"method: random\nrun_cap: [3]\n" P, "s.yaml:2:10: run_cap wants one value"},
        {R "retries: 0\n", NULL},
        {R "retries: 1000\n", NULL},
        {R "retries: 1001\n", "retries wants a whole number from 0 to 1000"},
        {R "retries: -1\n", "retries wants a whole number from 0 to 1000"},
        {R "seed: 0\n", NULL},
        {R "seed: 9007199254740992\n", NULL},
        {R "seed: 9007199254740994\n", "seed wants a whole number from 0 to 9007199254740992"},
        {R "early_terminate: {type: hyperband, min_iter: 1}\n", NULL},
        {R "early_terminate: {type: hyperband, min_iter: 1000000000}\n", NULL},
        {R "early_terminate: {type: hyperband, min_iter: 0}\n", "min_iter wants a whole number "
                                                                "from 1 to 1000000000"},
        {R "early_terminate: {type: hyperband, max_iter: 0, s: 1}\n", "max_iter wants a whole "
                                                                      "number from 1 to 1000"},
        {R "early_terminate: {type: hyperband, max_iter: 9, s: 32}\n", NULL},
        {R "early_terminate: {type: hyperband, max_iter: 9, s: 33}\n", "s wants a whole number "
                                                                       "from 1 to 32"},
        {R "early_terminate: {type: hyperband, max_iter: 9, s: 0}\n", "from 1 to 32"},
        {R "early_terminate: {type: hyperband, min_iter: 1, eta: 1000}\n", NULL},
        {R "early_terminate: {type: hyperband, min_iter: 1, eta: 1.001}\n", NULL},
        {R "early_terminate: {type: hyperband, min_iter: 1, eta: 1}\n", "s.yaml:4:54: eta is above "
                                                                        "1: one of eta trials"},
        {R "early_terminate: {type: hyperband, min_iter: 1, eta: 1001}\n", "eta is above 1"},
        {R "early_terminate: {type: hyperband, min_iter: 1, strict: false}\n", NULL},
        {R "early_terminate: {type: hyperband, min_iter: 1, strict: maybe}\n",
         "strict is true or false"},
        {R "early_terminate: {type: hyperband, min_iter: 1, max_iter: 9}\n",
         "min_iter, the epochs"},
        {R "early_terminate: {type: hyperband, min_iter: 1, s: 2}\n", "or max_iter and s"},
        {R "early_terminate: {min_iter: 1}\n", "early_terminate wants type: hyperband"},
        {R "early_terminate: {type: envelope, min_iter: 1}\n", "no type 'envelope'; there is "
                                                               "hyperband"},
        {R "early_terminate: {type: hyperband, minimum: 1}\n", "no 'minimum'; there are type, "
                                                               "min_iter, max_iter, s, eta"},
        {R "early_terminate: hyperband\n", "early_terminate wants {type: hyperband, min_iter: 3, "},
    };
    (void)state;
    ROWS_ARE(rows);
    assert_true(reads(R));
    assert_int_equal(plan->retries, 2);
    assert_int_equal(plan->seed, 0);
    assert_int_equal(plan->trials, 2);
    assert_true(reads(R "retries: 1000\nseed: 9007199254740992\n"));
    assert_int_equal(plan->retries, 1000);
    assert_true(plan->seed == 9007199254740992u);
    // Nothing of the file before is left.
    assert_true(reads("lr: [1]\n"));
    assert_int_equal(plan->retries, 2);
    assert_int_equal(plan->run_cap, 0);
    assert_int_equal(plan->method, SWEEP_GRID);
    assert_int_equal(plan->halving.count, 0);
}

// ---- what keys there are, and what they take ----

static void words(void **state) {
    static const struct row rows[] = {
        {"method: annealing\n" P, "s.yaml:1:9: method is grid or random, not 'annealing'"},
        {"method: [grid]\n" P, "s.yaml:1:9: method wants one value"},
        {"method: grid\nparameters: {lr: {values: [1]}}\n", NULL},
        {"name: a\ndescription: b\nproject: c\nentity: d\n" R, NULL},
        {R "command: [a]\n", "command is not taken: trials are `gpurt train`"},
        {R "epochs: 3\n", "no key 'epochs' of a sweep; of a training it stands below `parameters`"},
        {R "retrys: 3\n", "no key 'retrys' of a sweep; did you mean 'retries'?"},
        {"parameters: {}\n", "parameters wants names, such as lr: {values: [0.1, 0.01]}"},
        {"parameters: [lr]\n", "parameters wants names, such as lr"},
        {"parameters: {lr: [1, 2]}\n",
         "lr wants a map below `parameters`, such as {values: [1, 2]"},
        {"[a]\n", "keys with values are wanted, as in 'method: grid'"},
        {"lr: [1]\nmethod: random\nrun_cap: 3\n", "s.yaml:2:1: lists on keys make a grid; method "
                                                  "random wants them below `parameters`"},
        {"lr: [1]\nseed: 3\n", NULL},
        {"lr: [1]\nkind: [es]\n", "kind wants one value"},
        {"lr: [1]\nconfig: [a]\n", "config wants one value"},
        {"lr: [1]\nconfig: nowhere.yaml\n", "nowhere.yaml"},
        {"kind: fish\nlr: [1]\n", "no kind of training 'fish'; there are supervised classify simclr"
                                  " es standing ppo uav"},
        {"lr: [1]\nmetric: {name: loss, gaol: 3}\n", "metric: no 'gaol'; there are name and goal"},
        {"lr: [1]\nmetric: {name: loss, target: 3}\n", "metric: 'target' is not taken: leave it "
                                                       "out; target_loss of the config ends"},
        {"lr: [1]\nmetric: {name: loss, impute: 3}\n", "metric: 'impute' is not taken: leave it "
                                                       "out"},
        {"lr: [1]\nmetric: {goal: minimize}\n", "metric wants a name, such as val_loss"},
        {"lr: [1]\nmetric: [loss]\n", "metric wants {name: val_loss, goal: minimize}"},
        {"lr: [1]\nmetric: \"\"\n", "metric: a name of 1 to 63 characters is wanted"},
        {"lr: [1]\nmetric: {name: [a]}\n", "name wants one value"},
        {"lr: [1]\nmetric: {name: loss, goal: [a]}\n", "goal wants one value"},
        {"lr: [1]\nmetric: 0123456789012345678901234567890123456789012345678901234567890123\n",
         "metric: a name of 1 to 63 characters"},
        {"lr: [1]\nmetric: 012345678901234567890123456789012345678901234567890123456789012\n",
         "no metric '0123"},
        {"kind: ppo\nseed: [1]\nmetric: shots\n", NULL},  // environments have fields of their own
        {"kind: es\nseed: [1]\nmetric: shots\n", "no metric 'shots'"},
        {"lr: [1]\nmetric: lss\n", "no metric 'lss'; did you mean 'loss'?: logs have val_loss"},
    };
    (void)state;
    ROWS_ARE(rows);
    assert_null(sweep_kind_named("fish"));
    assert_true(sweep_kind_named("simclr")->folder);
    assert_false(sweep_kind_named("uav")->folder);
}

static void parameters(void **state) {
    static const struct row rows[] = {
        {"parameters: {lr: {value: 1, values: [1]}}\n", NULL},
        {"parameters: {lr: {values: 3}}\n", "lr: values wants a list, as in values: [1, 2]"},
        {"parameters: {lr: {min: 1}}\n", "lr: value, values, or min and max are wanted"},
        {"parameters: {lr: {max: 1}}\n", "lr: value, values, or min and max are wanted"},
        {"parameters: {lr: {}}\n", "lr: value, values, or min and max are wanted"},
        {"parameters: {lr: {min: 1, min: 2}}\n", "min was given in line 1 already"},
        {"parameters: {lr: {min: 1, max: 1}}\n", "lr: max 1 is not above min 1"},
        {"parameters: {lr: {minn: 1}}\n", "lr: no 'minn' of a parameter; did you mean 'min'? there "
                                          "are value, values, min, max, q, mu, sigma, distribution "
                                          "and probabilities"},
        {"parameters: {lr: {distribution: beta}}\n",
         "lr: no distribution 'beta'; there are constant categorical categorical_w_probabilities "
         "int_uniform uniform q_uniform log_uniform q_log_uniform log_uniform_values "
         "q_log_uniform_values normal q_normal log_normal q_log_normal"},
        {"parameters: {lr: {distribution: [normal]}}\n", "distribution wants one value"},
        {"parameters: {lr: {distribution: normal, values: [1]}}\n", "lr: values does not go with "
                                                                    "normal"},
        {"parameters: {lr: {distribution: uniform, value: 1}}\n", "lr: value does not go with "
                                                                  "uniform"},
        {"parameters: {lr: {distribution: uniform, min: 0.1, max: 1, probabilities: [1]}}\n",
         "lr: probabilities does not go with uniform"},
        {"parameters: {lr: {distribution: constant, values: [1]}}\n", "lr: constant wants value"},
        {"parameters: {lr: {distribution: categorical, value: 1}}\n", "lr: categorical wants "
                                                                      "values"},
        {"parameters: {lr: {values: [1], min: 3}}\n", "s.yaml:1:32: lr: categorical wants values, "
                                                      "not min"},
        {"parameters: {lr: {values: [1], max: 3}}\n", "lr: categorical wants values, not max"},
        {"parameters: {lr: {value: 1, mu: 3}}\n", "lr: constant wants value, not mu"},
        {"parameters: {lr: {value: 1, sigma: 3}}\n", "lr: constant wants value, not sigma"},
        {"parameters: {lr: {distribution: categorical_w_probabilities, values: [1]}}\n",
         "lr: categorical_w_probabilities wants probabilities"},
        {"method: random\nrun_cap: 2\nparameters: {lr: {distribution: log_uniform_values, min: "
         "-1, max: 1}}\n",
         "lr: log_uniform_values wants min above 0; uniform takes 0"},
        {"method: random\nrun_cap: 2\nparameters: {lr: {distribution: q_log_uniform_values, min: "
         "0, max: 1}}\n",
         "lr: q_log_uniform_values wants min above 0"},
        {"method: random\nrun_cap: 2\nparameters: {lr: {distribution: q_log_uniform, min: -701, "
         "max: 0}}\n",
         "lr: of q_log_uniform min and max are exponents of e; log_uniform_values"},
        {"method: random\nrun_cap: 2\nparameters: {lr: {distribution: log_uniform, min: -9, max: "
         "0}}\n",
         NULL},
        // The bounds are what they stand for: e^9 is above the largest rate.
        {"method: random\nrun_cap: 2\nparameters: {lr: {distribution: log_uniform, min: -9, max: "
         "9}}\n",
         "learning_rate"},
        {"method: random\nrun_cap: 2\nparameters: {seed: {min: 0, max: 1000000000}}\n", NULL},
        {"method: random\nrun_cap: 2\nparameters: {seed: {min: 0, max: 1000000001}}\n",
         "seed: int_uniform wants whole numbers, at most 1e9 apart"},
        {"parameters: {batch_size: {distribution: int_uniform, min: 1, max: 9.5}}\n",
         "batch_size: int_uniform wants whole numbers"},
        {"method: random\nrun_cap: 2\nparameters: {lr: {mu: 0.1, sigma: -1}}\n", "sigma is above "
                                                                                 "0"},
        {"method: random\nrun_cap: 2\nparameters: {lr: {distribution: q_uniform, min: 0.1, max: 1, "
         "q: -1}}\n",
         "lr: q is above 0"},
        {"parameters: {lr: {values: [1], q: 1}}\n", "lr: q goes with q_categorical"},
        {"parameters: {lr: {values: [1, 2], probabilities: [0, 1]}}\n", NULL},
        {"parameters: {log: {values: [a]}}\n", "log is no parameter: each trial has a folder"},
        {"parameters: {tensorboard: {values: [a]}}\n", "tensorboard is no parameter: each trial"},
        {"parameters: {checkpoint_dir: {values: [a]}}\n", "checkpoint_dir is no parameter: each"},
        {"parameters: {lr: {values: [1]}, learning_rate: {values: [1]}}\n",
         "learning_rate was given in line 1 already, as lr"},
        {"parameters: {lr: {values: [1]}, optimizer: {parameters: {lr: {values: [1]}}}}\n",
         "optimizer.lr was given in line 1 already, as lr"},
        {"parameters: {012345678901234567890123456789012345678901234567890123456789012: {value: 1}"
         "}\n",
         "no key '0123"},
        {"parameters: {0123456789012345678901234567890123456789012345678901234567890123: {value: 1}"
         "}\n",
         "a name of more than 63 characters"},
    };
    (void)state;
    ROWS_ARE(rows);
}

// How a parameter is drawn that names no distribution.
static void without_a_word(void **state) {
    static const struct {
        const char *given;
        enum sweep_distribution is;
    } rows[] = {
        {"value: 3", SWEEP_CONSTANT},
        {"value: 3, values: [1]", SWEEP_CONSTANT},
        {"values: [1, 2]", SWEEP_CATEGORICAL},
        {"values: [1, 2], probabilities: [0.5, 0.5]", SWEEP_CATEGORICAL_SHARES},
        {"min: 1, max: 4", SWEEP_INT_UNIFORM},
        {"min: 1, max: 4.5", SWEEP_UNIFORM},
        {"min: 0.5, max: 4", SWEEP_UNIFORM},
        {"mu: 0.5", SWEEP_NORMAL},
        {"mu: 0.5, sigma: 0.25", SWEEP_NORMAL},
        {"distribution: log_normal, mu: 0.5", SWEEP_LOG_NORMAL},
        {"distribution: q_log_normal", SWEEP_Q_LOG_NORMAL},
    };
    char text[256];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(text, sizeof text, "method: random\nrun_cap: 3\nparameters: {lr: {%s}}\n",
                 rows[i].given);
        assert_true(reads(text));
        assert_int_equal(plan->parameters[0].distribution, rows[i].is);
        assert_true(plan->parameters[0].q == 1);
    }
    assert_true(plan->parameters[0].sigma == 1 && plan->parameters[0].mu == 0);
    assert_string_equal(sweep_distribution_word(SWEEP_Q_LOG_UNIFORM), "q_log_uniform");
}

// ---- how many ----

// A list of `count` numbers from `first` on.
static char *list_of(const char *key, uint32_t count, uint32_t first) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    fprintf(file, "%s: [", key);
    for (uint32_t i = 0; i < count; i++) {
        fprintf(file, "%s%u", i ? ", " : "", first + i);
    }
    fputs("]\n", file);
    fclose(file);
    return text;
}

static void most_values(void **state) {
    static const struct {
        const char *key;
        uint32_t count;
        const char *said;
    } rows[] = {{"seed", 1000, NULL},
                {"seed", 1001, "seed: more than 1000 values"},
                {"lr: [1]\ndevice", 64, NULL},
                {"lr: [1]\ndevice", 65, "device: a list of at most 64 devices is wanted"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = list_of(rows[i].key, rows[i].count, 1);
        assert_int_equal(reads(text), rows[i].said == NULL);
        if (rows[i].said) {
            assert_non_null(strstr(grt_last_error(), rows[i].said));
        }
        free(text);
    }
    static const struct row devices[] = {
        {"lr: [1]\ndevice: []\n", "device: the list is empty"},
        {"lr: [1]\ndevice: [[a]]\n", "device: a list of at most 64 devices"},
        {"lr: [1]\ndevice: [\"\"]\n", "device: a list of at most 64 devices"},
        {"lr: [1]\ndevice: [012345678901234567890123456789012345678901234567890123456789012]\n",
         NULL},
        {"lr: [1]\ndevice: [0123456789012345678901234567890123456789012345678901234567890123]\n",
         "device: a list of at most 64 devices"},
        {"lr: [1]\ndevice: ref:0\n", NULL},
    };
    ROWS_ARE(devices);
    assert_string_equal(plan->base.device, "ref:0");
    assert_int_equal(plan->device_count, 0);
    // A value has 255 characters.
    char text[600], value[300];
    for (size_t length = 255; length <= 256; length++) {
        memset(value, 'a', sizeof value);
        value[length] = '\0';
        snprintf(text, sizeof text, "data: [%s]\n", value);
        assert_int_equal(reads(text), length == 255);
    }
    assert_non_null(strstr(grt_last_error(), "data: a value of more than 255 characters"));
}

// A grid has up to 10000 trials, and more where a cap is named.
static void most_trials(void **state) {
    static const struct {
        const char *text;
        uint32_t trials;  // 0: refused
    } rows[] = {
        {"parameters: {batch_size: {min: 1, max: 100}, seed: {min: 0, max: 99}}\n", 10000},
        {"parameters: {batch_size: {min: 1, max: 101}, seed: {min: 0, max: 99}}\n", 0},
        {"parameters: {seed: {min: 1, max: 10000}}\n", 10000},
        {"parameters: {seed: {min: 0, max: 10000}}\n", 0},
        {"run_cap: 7\nparameters: {batch_size: {min: 1, max: 1000}, seed: {min: 0, max: 99}}\n", 7},
        {"run_cap: 7\nparameters: {seed: {min: 1, max: 6}}\n", 6},
        {"run_cap: 7\nparameters: {seed: {min: 1, max: 7}}\n", 7},
        {"run_cap: 7\nparameters: {seed: {min: 1, max: 20000}}\n", 0},
        {"method: random\nrun_cap: 7\nparameters: {seed: {values: [1, 2]}}\n", 7},
        {"parameters: {seed: {value: 5}, lr: {values: [1, 2]}}\n", 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(reads(rows[i].text), rows[i].trials > 0);
        if (rows[i].trials) {
            assert_int_equal(plan->trials, rows[i].trials);
        }
    }
    static const struct row said[] = {
        {"parameters: {batch_size: {min: 1, max: 101}, seed: {min: 0, max: 99}}\n",
         "the grid has 10100 trials; 10000 are the most: fewer values, or method: random"},
        {"parameters: {lr: {distribution: log_uniform_values, min: 0.1, max: 1}}\n",
         "s.yaml:1:14: lr: method grid wants values or whole bounds; method: random takes "
         "log_uniform_values"},
        {"method: random\n" P, "s.yaml:1:1: method random wants run_cap: N, how many trials"},
    };
    ROWS_ARE(said);
    // The last of a grid of two ranges is that of both ends.
    char value[SWEEP_VALUE];
    assert_true(reads("parameters: {batch_size: {min: 3, max: 5}, seed: {min: 7, max: 8}}\n"));
    static const char *const batches[] = {"3", "3", "4", "4", "5", "5"};
    static const char *const seeds[] = {"7", "8", "7", "8", "7", "8"};
    for (uint32_t i = 0; i < 6; i++) {
        sweep_sample(plan, 0, i, value);
        assert_string_equal(value, batches[i]);
        sweep_sample(plan, 1, i, value);
        assert_string_equal(value, seeds[i]);
    }
}

// ---- settings ----

// What stands wrong is named where it stands: a value in another line than its key, in a section,
// words with blanks, quotes and backslashes, lists.
static void places(void **state) {
    static const struct row rows[] = {
        {"parameters:\n  lr:\n    values:\n      - 0.1\n      - fast\n", "s.yaml:5:9: "},
        {"parameters:\n  optimizer:\n    parameters:\n      lr: {values: [0.1, fast]}\n",
         "s.yaml:4:26: "},
        {"parameters: {optimizer: {parameters: {lr: {values: [0.1, fast]}}}}\n", "s.yaml:1:"},
        {"optimizer:\n  lr: [0.1, fast]\n", "s.yaml:2:13: "},
        {"lr: [0.1]\nbatch_size: many\n", "s.yaml:2:13: "},
        {"lr: [0.1]\ntraining:\n  epochs: many\n", "s.yaml:3:11: "},
        {"lr: [0.1]\ntraining: {epochz: 3}\n", "'epochs'?"},
    };
    static struct grt_config config;
    (void)state;
    ROWS_ARE(rows);
    assert_true(reads("data: ['a b', 'it\"s', 'c\\d', '-x', '#', '-']\n"));
    static const char *const names[] = {"a b", "it\"s", "c\\d", "-x", "#", "-"};
    for (uint32_t i = 0; i < 6; i++) {
        assert_true(sweep_settings(plan, i, &config));
        assert_string_equal(config.data, names[i]);
        assert_string_equal(config.path, "s.yaml");
        assert_true(config.places[GRT_CONFIG_DATA].file);
        assert_int_equal(config.places[GRT_CONFIG_DATA].line, 1);
    }
    // What trials have in common stays, and one trial's values are no other's.
    assert_true(reads("epochs: 7\nlr: [0.5, 0.25]\nhidden: [[32, 16], [8]]\n"));
    assert_true(sweep_settings(plan, 0, &config));
    assert_int_equal(config.hidden.count, 2);
    assert_true(sweep_settings(plan, 3, &config));
    assert_int_equal(config.epochs, 7);
    assert_true(config.learning_rate == 0.25);
    assert_int_equal(config.hidden.count, 1);
    assert_int_equal(config.places[GRT_CONFIG_LEARNING_RATE].line, 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(limits),      CASE(words),       CASE(parameters), CASE(without_a_word),
        CASE(most_values), CASE(most_trials), CASE(places),
    };
    grt_log_set(silent, NULL, GRT_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
