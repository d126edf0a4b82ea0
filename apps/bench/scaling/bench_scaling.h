// SPDX-License-Identifier: Apache-2.0
// `gpurt bench scaling` from within.
//
//     bench_scaling.c        options, rows, the sentence at the end
//     bench_scaling_runs.c   trainings by mpirun, and what their logs say
//     bench_scaling_probe.c  the parts of an exchange alone, by ranks
#ifndef APPS_BENCH_SCALING_H
#define APPS_BENCH_SCALING_H

#include "bench/bench_more.h"
#include "bench/bench_progress.h"
#include "cli/output/table.h"
#include "cli/stats.h"
#include "estimate/scaling.h"

#define SCALING_SCHEMA "gpurt.bench.scaling/1"
#define SCALING_RANKS 256
#define SCALING_EPOCH 16  // steps of an epoch of synthetic data,
#define SCALING_CHUNK 4   // and of a sample: rows of the log stand so far apart
#define SCALING_ROUNDS 16

// How a training is shared out, and what its ranks exchange.
enum scaling_exchange {
    SCALING_GRADIENTS,   // of a step, in buckets, behind backward
    SCALING_RESULTS,     // of directions: gathered
    SCALING_MINIBATCHES  // gradients of each of an iteration
};
struct scaling_kind {
    const char *name;  // "supervised"
    enum scaling_exchange exchange;
    bool iterates;      // a step is an iteration, in an environment, with no data
    uint32_t batch;     // unless --batch-size says otherwise
    const char *parts;  // that are shared out: "samples"
};
const struct scaling_kind *scaling_kind_of(const char *name);

struct scaling_bench {
    struct options common;  // first: see options.h
    struct ranges ranks;
    const struct scaling_kind *kind;  // of the training
    const char *env;                  // of es and ppo
    struct bench_source source;
    uint32_t batch, steps, rounds;
    uint64_t probe;      // bytes; 0: no probe
    const char **words;  // KEY=VALUE of the training
    size_t word_count;
    char folder[512];  // for logs and checkpoints, removed at the end
    char self[4096];   // this command
    struct table table;
    struct bench_progress progress;
    uint32_t wrong;
};

// One number of ranks, or one process.
struct scaling_row {
    uint32_t ranks;
    double parameters;
    double bytes;      // of the exchanges of a step, of each rank
    double exchanges;  // in a step
    double seconds;    // of a step, all together
    double alone;      // of a step of a rank's part, as many processes at once without an exchange
    double wait;       // predicted: for the slowest of each step
    double exchange;   // what a step takes longer than alone
    struct scaling_parts parts;  // predicted
    double overlap;              // of sums and work of the device, measured by the probe
    double hidden;               // predicted of host and network, behind backward
    double predicted;            // of a step: alone and the parts, less what is hidden
    double fitted_overlap;       // what the steps say was hidden; in no prediction
    double spread;
    uint32_t samples;
};

// Trains, in rounds, and fills seconds, spread, samples, parameters and bytes; of several ranks
// what they take alone, the exchange and its prediction too. False with the sentence.
bool scaling_train(struct scaling_bench *bench, struct scaling_row *row);
// The parts of an exchange of row->bytes, predicted from two smaller ones.
bool scaling_predict(struct scaling_bench *bench, struct scaling_row *row);
// Makes room for the next round's logs and checkpoints.
void scaling_empty(const struct scaling_bench *bench);
// As a rank: measures them of so many bytes, and the first prints them. Returns the exit code.
int scaling_probe(struct scaling_bench *bench, int argc, char **argv);

#endif
