// SPDX-License-Identifier: Apache-2.0
// What a sweep is to try, as its YAML says. Two forms, told apart by `parameters`:
//
//     method: random                     the keys of Weights & Biases
//     parameters: {lr: {min: 1e-4, max: 1e-2, distribution: log_uniform_values}}
//
//     lr: [0.0001, 0.001, 0.01]          a training config: a list on a key that takes one value
//     batch_size: [64, 128]              makes a grid; `device: [0, 1]` are the slots it runs on
//
// The values of trial i follow from the seed, i and the name of the parameter alone (sample.c).
#ifndef APPS_SWEEP_PLAN_H
#define APPS_SWEEP_PLAN_H

#include "gpurt/config.h"
#include "gpurt/run.h"

#define SWEEP_MAX_TRIALS 10000
#define SWEEP_MAX_PARAMETERS 32
#define SWEEP_MAX_VALUES 1000
#define SWEEP_NAME 64
#define SWEEP_VALUE 256  // bytes of a value's text
#define SWEEP_RUNGS 32
#define SWEEP_DEVICES 64  // slots

// X(name, scope, folder): the kinds of `gpurt train`, and whether checkpoints are a folder or one
// file.
#define SWEEP_KINDS(X)                                                                             \
    X(supervised, SUPERVISED, true)                                                                \
    X(classify, CLASSIFY, true)                                                                    \
    X(simclr, SUPERVISED, true)                                                                    \
    X(es, ES, false)                                                                               \
    X(standing, ES, false)                                                                         \
    X(ppo, PPO, false)                                                                             \
    X(uav, PPO, false)

struct sweep_kind {
    const char *name;
    enum grt_config_scope scope;
    bool folder;
};

// X(NAME, "word", numbers): `numbers`: 0 values, 1 min and max, 2 mu and sigma.
#define SWEEP_DISTRIBUTIONS(X)                                                                     \
    X(CONSTANT, "constant", 0)                                                                     \
    X(CATEGORICAL, "categorical", 0)                                                               \
    X(CATEGORICAL_SHARES, "categorical_w_probabilities", 0)                                        \
    X(INT_UNIFORM, "int_uniform", 1)                                                               \
    X(UNIFORM, "uniform", 1)                                                                       \
    X(Q_UNIFORM, "q_uniform", 1)                                                                   \
    X(LOG_UNIFORM, "log_uniform", 1) /* min and max are exponents of e */                          \
    X(Q_LOG_UNIFORM, "q_log_uniform", 1)                                                           \
    X(LOG_UNIFORM_VALUES, "log_uniform_values", 1)                                                 \
    X(Q_LOG_UNIFORM_VALUES, "q_log_uniform_values", 1)                                             \
    X(NORMAL, "normal", 2)                                                                         \
    X(Q_NORMAL, "q_normal", 2)                                                                     \
    X(LOG_NORMAL, "log_normal", 2)                                                                 \
    X(Q_LOG_NORMAL, "q_log_normal", 2)

enum sweep_distribution {
#define X(name, word, numbers) SWEEP_##name,
    SWEEP_DISTRIBUTIONS(X)
#undef X
        SWEEP_DISTRIBUTION_COUNT,
};
const char *sweep_distribution_word(enum sweep_distribution distribution);

struct sweep_value {
    char *text;             // as YAML writes it in one line
    uint32_t line, column;  // where it stands, from 1
    double share;           // of categorical_w_probabilities
};

struct sweep_parameter {
    char name[SWEEP_NAME];  // "lr", "optimizer.lr"
    uint32_t line, column;
    enum sweep_distribution distribution;
    struct sweep_value *values;
    uint32_t count;
    double min, max, q, mu, sigma;
};

struct sweep_metric {
    char name[SWEEP_NAME];  // as the file says
    uint32_t line, column;  // 0: it is the default of the kind
    bool maximize;
    enum grt_run_event event;  // of the rows of a log that have it
    char field[SWEEP_NAME];
};

// Asynchronous successive halving: epochs, of es and ppo steps, at which a trial goes on only if it
// is among the best 1/eta of those that came so far. No rungs: no trial ends early.
struct sweep_halving {
    uint32_t count;
    double eta;
    uint64_t rungs[SWEEP_RUNGS];
};

enum sweep_method { SWEEP_GRID, SWEEP_RANDOM };

struct sweep_plan {
    char path[GRT_CONFIG_TEXT_SIZE];  // of the file, for messages
    const struct sweep_kind *kind;
    enum sweep_method method;
    uint64_t seed;
    uint32_t run_cap;  // 0: all of a grid
    uint32_t retries;
    uint32_t trials;  // how many there are
    char config[GRT_CONFIG_TEXT_SIZE];
    struct sweep_metric metric;
    struct sweep_halving halving;
    struct sweep_parameter parameters[SWEEP_MAX_PARAMETERS];
    uint32_t parameter_count;
    char devices[SWEEP_DEVICES][SWEEP_NAME];  // of the second form
    uint32_t device_count;
    struct grt_config base;     // what all trials have in common
    struct grt_config scratch;  // what values are tried on
};

// Reads the text of a file, and the config that it names. False with "path:line:column: what is
// wrong" said. sweep_plan_finish() frees, also then.
bool sweep_plan_read(struct sweep_plan *plan, const char *path, const char *text);
void sweep_plan_finish(struct sweep_plan *plan);

const struct sweep_kind *sweep_kind_named(const char *name);

// ---- sample.c ----

// A number in [0, 1) of 53 bits: the n-th of trial `trial` for the parameter of this name.
double sweep_random(uint64_t seed, uint32_t trial, const char *name, uint32_t n);
// The value of a parameter in a trial.
void sweep_sample(const struct sweep_plan *plan, uint32_t parameter, uint32_t trial,
                  char text[SWEEP_VALUE]);
// The shortest decimal that reads back as this number.
void sweep_number_text(double number, char text[SWEEP_VALUE]);

// ---- settings.c ----

// The config of a trial. False with the sentence, with file and line.
bool sweep_settings(struct sweep_plan *plan, uint32_t trial, struct grt_config *config);
// Whether the config takes a parameter's value, which stands at that place of the file.
bool sweep_takes(struct sweep_plan *plan, const struct sweep_parameter *parameter,
                 const char *value, uint32_t line, uint32_t column);
// Gives a key of a config a value, by its name "key" or "section.key", as if a file had both at
// these places.
struct sweep_leaf {
    const char *name, *value;
    uint32_t line, column, value_line, value_column;
};
bool sweep_config_leaf(struct grt_config *config, const char *path, const struct sweep_leaf *leaf);

// ---- halving.c ----

// A value that a trial has at a rung, and when, in seconds.
struct sweep_rung_value {
    double value, time;
};
// Whether `own` goes on: of the `count` values at its rung, its own among them, those count that
// came no later.
bool sweep_goes_on(const struct sweep_rung_value *all, uint32_t count, struct sweep_rung_value own,
                   double eta, bool maximize);

#endif
