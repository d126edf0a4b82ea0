// SPDX-License-Identifier: Apache-2.0
// One job of `gpurt tune`, and the rows it prints.
#ifndef APPS_TUNE_JOB_H
#define APPS_TUNE_JOB_H

#include "bench/bench.h"
#include "tune.h"

#define TUNE_LEVEL_0 1u  // --level is kept with 1 added: 0 is "not given"
#define TUNE_MAX_JOBS 64
#define TUNE_MAX_SHAPES 16

struct tune_job {
    uint32_t tunable;
    enum grt_dtype in;
    struct bench_gemm_shape shape;
    bool given;  // the shape is the user's
    // Others of the user's that have the same setting.
    struct bench_gemm_shape also[TUNE_MAX_SHAPES - 1];
    uint32_t also_count;
    uint32_t weight;       // its share of the time
    struct grt_pick pick;  // class of the shape, and what is in use
    bool measured;
};

struct tune {
    struct bench bench;  // first: see options.h; the options of `bench gemm` are read into it
    const char *op;
    const char *data;  // a training config whose products are tuned, or NULL
    double budget;     // seconds
    uint32_t level;
    struct grt_dev_info info;
    struct grt_profile *profile;
    struct tune_worker worker;
    struct tune_job jobs[TUNE_MAX_JOBS];
    size_t job_count;
    struct table *table;  // NULL: no rows
    double end;           // of all jobs
    double deadline;      // of the job that runs
    bool faulted;         // see GPURT_TUNE_FAULT in tune_job.c
    uint32_t stored;
};

// Gives the job the largest cube of this class up to `most` rows, or else a small one; false when
// there is none of this class.
bool tune_job_shape(struct tune *tune, struct tune_job *job, enum grt_size_class size, double most);
// Searches until the deadline and stores what is better. An exit code; 0 also when nothing is.
int tune_job_run(struct tune *tune, struct tune_job *job);

// `head` is left to the caller.
struct table_desc tune_table_desc(struct output *output, enum table_format format, int argc,
                                  char **argv);
bool tune_table_begin(struct tune *tune);

#endif
