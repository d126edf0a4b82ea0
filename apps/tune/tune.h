// SPDX-License-Identifier: Apache-2.0
// `gpurt tune`: finds the settings of kernels that are fastest on a device and keeps them in the
// user's profile. Three parts:
//
//     tune.c          what is tuned in which time, the rows, the profile
//     tune_products.c which products a training run has
//     tune_search.c   which setting is tried next; knows no device
//     tune_worker.c   tries one in a child process, so that a crash or a hang costs that one only
//
// A job is one setting: a variant's sizes for one type of operands and one class of products. A
// candidate must compute right before it is timed. At the end of a job the best meets what was in
// use in turns, and replaces it when it is faster in three rounds of four.
#ifndef APPS_TUNE_H
#define APPS_TUNE_H

#include "bench/gemm/bench_gemm.h"
#include "base/child.h"
#include "gpurt/config.h"
#include "gpurt/gpurt.h"
#include "cli/options/options.h"
#include "gpurt/tunable.h"

// For a trainer with `autotune`: tunes what serves the products of a run, in `seconds`, and returns
// an exit code. To be called before the device is opened in this process, since it forks. Says
// nothing but progress and mistakes. `common` chooses the device.
struct tune_training {
    const struct options *common;
    double seconds;
    const struct grt_config *config;
};
int tune_for_training(const struct tune_training *training);

// Fills in shapes and precisions of the run that a config describes, from what the device's profile
// gives it. Returns an exit code; a mistake is said.
int tune_products(const struct grt_config *settings, const struct grt_profile *profile,
                  struct bench_gemm_options *o);

// ---- search ----

struct tune_candidate {
    uint32_t values[GRT_PROFILE_NUMBERS];
    bool tried;
};

struct tune_search {
    const struct grt_tunable *tunable;
    struct tune_candidate *all;
    size_t count;
    size_t best;
    uint64_t random;
};

// Every combination of the knobs' values that the device allows, and `start`, which is the first
// best. False when out of memory.
bool tune_search_begin(struct tune_search *search, const struct grt_tunable *tunable,
                       const struct grt_dev_info *info, const uint32_t *start, uint64_t seed);
void tune_search_end(struct tune_search *search);
// The next one to try, marked as tried: a neighbour of the best while there is one, then any. False
// when all were tried.
bool tune_search_next(struct tune_search *search, size_t *candidate);

// ---- worker ----

enum tune_task_kind {
    TUNE_VARIANTS,  // which tunables the device has for operands of this type
    TUNE_TRY,       // check and time one setting
    TUNE_DUEL,      // time two in turns
};

enum tune_fault { TUNE_NO_FAULT, TUNE_HANG, TUNE_CRASH };

struct tune_task {
    enum tune_task_kind kind;
    enum tune_fault fault;
    uint32_t tunable;
    enum grt_dtype in;
    struct bench_gemm_shape shape;
    uint32_t values[2][GRT_PROFILE_NUMBERS];
    double limit;     // seconds for all of it; a new child has three times as many
    double seconds;   // of timing
    double hopeless;  // slower than this is not worth timing longer; 0: nothing is
};

#define TUNE_MAX_TUNABLES 32

struct tune_time {
    double median;  // seconds of one product
    double spread;
    double fastest;  // what candidates are ranked by: other processes only ever add to it
};

struct tune_answer {
    bool good;
    char why[256];                         // what was wrong
    struct tune_time times[2];             // TRY, DUEL
    bool wins;                             // DUEL: the second is faster, see stats_wins()
    uint32_t tunables[TUNE_MAX_TUNABLES];  // VARIANTS: those of better variants first
    bool used[TUNE_MAX_TUNABLES];          // whether theirs is the variant that serves
    uint32_t count;
    char best[32];  // VARIANTS: the one that serves large products, with settings or without
};

// ---- decisions, by times alone ----

// A product of one more shape.
void tune_time_add(struct tune_time *sum, const struct tune_time *more);
// Whether a candidate that was timed goes before the best so far; a median of 0 is no time.
bool tune_time_leads(const struct tune_time *time, const struct tune_time *best);
// Whether the second of a duel is slower by more than the noise.
bool tune_duel_slower(const struct tune_answer *answer);

// What duels over so many shapes come to.
struct tune_verdict {
    uint32_t shapes;
    struct tune_time before, best;
    bool any;  // one was won
};
// False: a setting for several shapes makes this one slower, and is out.
bool tune_verdict_add(struct tune_verdict *verdict, const struct tune_answer *answer);
// Whether what was found takes the place of what was in use.
bool tune_verdict_wins(const struct tune_verdict *verdict);

struct tune_worker {
    struct grt_dev_desc device;
    struct grt_child child;
};

// What became of a task.
enum tune_news {
    TUNE_ANSWERED,
    TUNE_DIED,     // crashed or hung: answer.why says it, the next task has a new child
    TUNE_NOBODY,   // no child can open the device: the sentence was said
    TUNE_STOPPED,  // Ctrl-C
};
enum tune_news tune_worker_ask(struct tune_worker *worker, const struct tune_task *task,
                               struct tune_answer *answer);
void tune_worker_end(struct tune_worker *worker);

#endif
