// SPDX-License-Identifier: Apache-2.0
// `gpurt bench train` from within: one row for each configuration, then what follows from the rows.
#ifndef APPS_BENCH_TRAIN_H
#define APPS_BENCH_TRAIN_H

#include "bench_counter.h"
#include "bench/bench_more.h"
#include "bench/bench_progress.h"
#include "cli/output/table.h"
#include "gpurt/task.h"

#define TRAIN_PRECISIONS(X)                                                                        \
    X(F32, "f32")                                                                                  \
    X(F16, "f16")                                                                                  \
    X(BF16, "bf16")

#define TRAIN_STATUSES(X)                                                                          \
    X(OK, "ok")                                                                                    \
    X(OOM, "OOM")           /* does not fit: by the plan, or when it was tried */                  \
    X(FEW_ROWS, "few rows") /* the data set does not fill one batch */                             \
    X(UNSUITED, "unsuited") /* the device cannot do this */                                        \
    X(NOT_FINITE, "NaN")    /* it ran, and the loss was no number */                               \
    X(BROKEN, "")           /* a call failed, or Ctrl-C: there is no row */

enum train_status {
#define X(name, text) TRAIN_##name,
    TRAIN_STATUSES(X)
#undef X
};

struct train_row {
    uint32_t batch, workers;
    enum grt_dtype precision;
    bool pin;
    enum grt_cache cache;  // where the rows were
    enum train_status status;
    bool planned;  // OOM by the plan, before anything was tried
    // Seconds of one step: medians.
    double io, upload, input, forward, backward, optimizer, total;
    double rate;     // samples a second
    double stall;    // share of a step that the device waited for its data, at most
    double spread;   // of total
    double busy;     // the device's time over that on the wall
    double counter;  // the vendor's word on that; negative: it has none
    bool phases;     // device times of the phases are known
    uint32_t samples;
    uint64_t memory;  // bytes on the device
    const char *variant;
};

#define TRAIN_MAX_ROWS 4096
#define TRAIN_LEAST_SECONDS 0.3  // of the timed part of a row

// Options that the command line had, for the command that comes next: 0 or false where it had none.
struct train_given {
    bool workers, model;
    uint32_t precisions, pins;
    uint64_t steps;
    double seconds, mem_fraction;
};
#define TRAIN_CACHE_AUTO GRT_CACHE_COUNT  // as training does: the first place where the rows fit

struct train_bench {
    struct options common;  // first: see options.h
    struct bench_source source;
    const char *config_path, *apply;
    struct ranges batches, workers;
    uint32_t precisions;   // bits of TRAIN_PRECISIONS; 0: not given
    uint32_t pins;         // bit 0: on, bit 1: off
    enum grt_cache cache;  // or TRAIN_CACHE_AUTO
    bool workers_given;
    struct grt_loader *kept;  // of the rows on the device, which are put there once
    uint64_t steps;
    double seconds;  // of a row at least; 0: TRAIN_LEAST_SECONDS
    struct bench_model model;
    bool named;  // the model is that of a training: of data, the command line or the config
    struct grt_config config;  // as it was given
    struct grt_task task;      // what it makes with the data
    struct grt_dev *dev;
    struct bench_counter counter;
    struct table table;
    struct train_row *rows;
    size_t count;
    struct bench_progress progress;
    struct train_given given;
};

// Measures one configuration: fills all but what row says already.
void train_measure(struct train_bench *bench, struct train_row *row);

// ---- bench_train_choice.c ----

#define TRAIN_SAFE_MEMORY 0.8  // recommended: at most this share of the memory,
#define TRAIN_STABLE 0.5       // and a spread below this

struct train_summary {
    const struct train_row *fastest, *efficient, *recommended;  // NULL when no row is good
};
struct train_summary train_summarise(const struct train_bench *bench);
// Samples a second for each GB on the device.
double train_efficiency(const struct train_row *row);
// Writes the recommended settings as a training config; false with the sentence.
bool train_apply(const struct train_bench *bench, const struct train_row *row);
// Device memory that a configuration may take.
uint64_t train_memory(const struct train_bench *bench);

// ---- bench_train_advice.c ----

#define TRAIN_MOST_ADVICE 8

struct train_advice {
    char texts[TRAIN_MOST_ADVICE][512];
    size_t count;
    char next[2048];  // command
};
void train_advise(const struct train_bench *bench, const struct train_summary *summary,
                  struct train_advice *advice);

// ---- bench_train_report.c ----

// Prints summary and advice for people, or as members of the JSON report.
bool train_report(struct train_bench *bench, const struct train_summary *summary);

#endif
