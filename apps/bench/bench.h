// SPDX-License-Identifier: Apache-2.0
// What the kinds of `gpurt bench` share: options, columns, and the way a graph is timed.
//
// A kind is one file bench_KIND.c with its options and a function that measures and prints its
// rows, and one row of BENCH_KINDS. A result that fails its check is never timed.
#ifndef APPS_BENCH_H
#define APPS_BENCH_H

#include "bench_progress.h"
#include "bench/gemm/bench_gemm.h"
#include "bench_rollout.h"
#include "gpurt/gpurt.h"
#include "cli/options/options.h"
#include "cli/stats.h"
#include "cli/output/table.h"

// X(name, number of its own options, help), in the order they run.
#define BENCH_KINDS(X)                                                                             \
    X(memory, 1, "bandwidth of copies, uploads and readbacks; a copy counts read and written")     \
    X(launch, 1, "cost of a dispatch: independent, each after the former, and a whole replay")     \
    X(gemm, 7, "matrix products, checked against sums in double precision")                        \
    X(rollout, 7, "iterations of evolution strategies, whole episodes in one kernel")

// X(name, key, heading, unit, type, precision, width): all that any kind reports.
#define BENCH_COLUMNS(X)                                                                           \
    X(KIND, "kind", "kind", NULL, TEXT, 0, 6)                                                      \
    X(TEST, "test", "test", NULL, TEXT, 0, 12)                                                     \
    X(SIZE, "size", "size", NULL, BYTES, 0, 9)                                                     \
    X(SET, "working_set", "rotating over", NULL, BYTES, 0, 0)                                      \
    X(COUNT, "dispatches", "dispatches", NULL, COUNT, 0, 0)                                        \
    X(SHAPE, "shape", "m x n x k", NULL, TEXT, 0, 15)                                              \
    X(CONV, "images", "n x h x w x c x k", NULL, TEXT, 0, 18)                                      \
    X(WINDOW, "window", "window", NULL, TEXT, 0, 7)                                                \
    X(BATCH, "batch", "batch", NULL, COUNT, 0, 0)                                                  \
    X(PRECISION, "precision", "types", NULL, TEXT, 0, 8)                                           \
    X(TRANS, "trans", "trans", NULL, TEXT, 0, 0)                                                   \
    X(VARIANT, "variant", "variant", NULL, TEXT, 0, 10)                                            \
    X(PROFILE, "profile", "profile", NULL, TEXT, 0, 10)                                            \
    X(POLICY, "policy", "policy", NULL, TEXT, 0, 7)                                                \
    X(ENVS, "num_envs", "envs", NULL, COUNT, 0, 0)                                                 \
    X(DIRS, "num_dirs", "dirs", NULL, COUNT, 0, 0)                                                 \
    X(CHUNK, "dir_chunk", "chunk", NULL, COUNT, 0, 0)                                              \
    X(TOTAL, "total_batch", "batch", NULL, COUNT, 0, 8)                                            \
    X(STEPS, "steps_per_s", "", "steps/s", NUMBER, 0, 10)                                          \
    X(SUBSTEPS, "substeps_per_s", "", "substeps/s", NUMBER, 0, 11)                                 \
    X(SPEEDUP, "speedup", "speed-up", NULL, NUMBER, 1, 0)                                          \
    X(GPU, "gpu", "GPU", NULL, SHARE, 0, 5)                                                        \
    X(MEMORY, "memory", "memory", NULL, BYTES, 0, 9)                                               \
    X(MS, "ms", "", "ms", NUMBER, 4, 9)                                                            \
    X(GFLOPS, "gflop_per_s", "", "GFLOP/s", NUMBER, 2, 8)                                          \
    X(TFLOPS, NULL, "", "TFLOP/s", NUMBER, 2, 8)                                                   \
    X(PEAK, "of_peak", "of peak", NULL, SHARE, 1, 0)                                               \
    X(RATIO, "ratio", "ratio", NULL, NUMBER, 2, 0)                                                 \
    X(CPUS, "cpus", "CPUs", NULL, NUMBER, 2, 0)                                                    \
    X(GB_PER_S, "gb_per_s", "", "GB/s", NUMBER, 2, 9)                                              \
    X(US, "us", "", "us/dispatch", NUMBER, 3, 0)                                                   \
    X(SPREAD, "spread", "spread", NULL, SHARE, 1, 6)                                               \
    X(SAMPLES, "samples", "samples", NULL, COUNT, 0, 0)                                            \
    X(ERROR, "error", "error", NULL, NUMBER, 4, 7)                                                 \
    X(TIMER, "timer", "timer", NULL, TEXT, 0, 6)                                                   \
    X(CHECK, "check", "check", NULL, TEXT, 0, 0)

enum bench_column {
#define X(name, key, heading, unit, type, precision, width) BENCH_##name,
    BENCH_COLUMNS(X)
#undef X
        BENCH_COLUMN_COUNT,
};
#define BENCH_BIT(name) (1ull << BENCH_##name)
// What only a row that was timed has.
#define BENCH_MEASURED                                                                             \
    (BENCH_BIT(GB_PER_S) | BENCH_BIT(US) | BENCH_BIT(MS) | BENCH_BIT(GFLOPS) | BENCH_BIT(TFLOPS) | \
     BENCH_BIT(PEAK) | BENCH_BIT(RATIO) | BENCH_BIT(CPUS) | BENCH_BIT(STEPS) |                     \
     BENCH_BIT(SUBSTEPS) | BENCH_BIT(SPEEDUP) | BENCH_BIT(GPU))

// How a row came out; its word stands in the column "check".
#define BENCH_OUTCOMES(X)                                                                          \
    X(GOOD, "ok")                                                                                  \
    X(WRONG, "FAILED")        /* the result was not what it must be */                             \
    X(TOO_LARGE, "no memory") /* not measured; the sentence was said */                            \
    X(UNSUITED, "unsuited")   /* the device cannot do this; the sentence was said */               \
    X(BROKEN, "")             /* a call failed or Ctrl-C: stop, there is no row */

enum bench_outcome {
#define X(name, text) BENCH_##name,
    BENCH_OUTCOMES(X)
#undef X
};

struct bench {
    struct options common;  // first: see options.h
    struct ranges sizes;    // --size; empty: by device
    struct ranges counts;   // --count
    struct bench_gemm_options gemm;
    struct bench_rollout_options rollout;
    double seconds;          // --time, of each row
    uint32_t samples;        // --samples, at least, of each row
    const char *contribute;  // --contribute: the file; NULL: not asked for
    bool quick;              // no kind was named: a short look at everything
    struct grt_dev *dev;
    struct table table;
    struct bench_progress progress;
    double peaks[7];  // f32 arithmetic; f16 and bf16 by each matrix instruction
    bool missing;     // something asked for is not on this machine; the sentence was said
    bool unfit;       // what was asked for cannot be; the sentence was said
    uint32_t outcomes[BENCH_BROKEN + 1];
};

// A kind with a command line of its own whose rows are those of this table.
struct bench_alone {
    const char *verb;   // "bench conv"
    const char *about;  // for --help, lines ended
    struct option_list list;
    bool (*run)(struct bench *bench);  // false when the bench must stop
};
// Reads the command line into the struct that begins with `bench`, and runs it; returns the exit
// code.
int bench_alone(struct bench *bench, const struct bench_alone *alone, int argc, char **argv);

// Measures and prints; false when the bench must stop.
#define X(name, options, help)                                                                     \
    bool bench_##name(struct bench *bench);                                                        \
    extern const struct option_row bench_##name##_options[options];
BENCH_KINDS(X)
#undef X

// Begins a kind: its title names the device.
bool bench_section(struct bench *bench, const char *title, uint64_t shown);
// Fills the columns that every kind has, prints the row and counts the outcome. `stats` matter with
// BENCH_GOOD only. False when the bench must stop.
bool bench_row(struct bench *bench, struct table_cell *cells, enum bench_outcome outcome,
               const struct stats *stats, bool device_timer);

// What a failed allocation or call means for its row.
enum bench_outcome bench_failure(void);

// Times a baked graph: seconds of one replay, by the device's clock over its phases or by the clock
// on the wall around run and wait.
struct bench_timing {
    struct grt_graph *graph;
    uint32_t replays;    // of one sample
    bool device_timer;   // where there are timestamps and phases
    double run_seconds;  // for bench_fill_run(): of one run, at least; 0: BENCH_RUN_SECONDS
};
bool bench_time(struct bench *bench, struct bench_timing *timing, struct stats *stats);
// One sample of it.
bool bench_sample(void *timing, double *seconds);

#define BENCH_RUN_SECONDS 0.02  // of one run, at least: long enough for every clock

// A baked graph with `count` pieces of work, or NULL when a call failed.
typedef struct grt_graph *bench_record_fn(void *context, uint32_t count);
// Records as many pieces of work, up to `most`, as make one run long enough; the graph is left in
// timing->graph and the number returned, 0 when a call failed or Ctrl-C was pressed.
uint32_t bench_fill_run(struct bench_timing *timing, uint32_t most, bench_record_fn *record,
                        void *context);

// Operations a second (a multiply-add is two) that the device does in registers alone, of the kind
// that this variant of a product does: products of its matrix instruction, or multiply-adds in f32.
// Measured once and kept. 0 with the sentence said when a call failed.
double bench_peak(struct bench *bench, const char *variant, enum grt_dtype dtype);

#endif
