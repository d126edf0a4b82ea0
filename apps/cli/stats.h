// SPDX-License-Identifier: Apache-2.0
// What a handful of times says: the median for the number, the quartiles for its doubt. Means are
// not offered: one interrupted run would move them.
#ifndef APPS_STATS_H
#define APPS_STATS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

#define STATS_MAX_SAMPLES 1000

struct stats {
    size_t count;
    double min;
    double lower;  // quartiles, interpolated between the two nearest samples
    double median;
    double upper;
    double spread;  // (upper - lower) / 2 / median: half the interquartile range, relative
};

// Sorts the samples. All zero for none.
struct stats stats_of(double *samples, size_t count);

// Of two works that were timed in turns, round by round: whether the second took less time than the
// first in at least three rounds of four. Both samples of a round see the same machine, so a load
// that makes each spread as wide as the time itself hides no difference that is larger. Not to be
// called after stats_of().
bool stats_wins(const double *first, const double *second, size_t count);

// Runs the work once and says how many seconds it took; false when it failed or should stop.
typedef bool stats_run_fn(void *context, double *seconds);

struct stats_desc {
    double warm_up;      // seconds of runs that are not counted; at least one is
    double budget;       // seconds of counted runs, after which no more are begun ...
    size_t min_samples;  // ... unless there are fewer than these; 0: 7
};

// Warm-up, then samples until both the budget and the least number are reached. False as soon as a
// run returns false.
bool stats_measure(const struct stats_desc *desc, stats_run_fn *run, void *context,
                   struct stats *stats);

// Seconds that all threads of this process have computed, on any CPU.
double stats_cpu(void);

#endif
