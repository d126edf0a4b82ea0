// SPDX-License-Identifier: Apache-2.0
// Order statistics of samples, and the loop that collects them. The budget counts the time that
// passes here, not what the runs report: a device clock may say less than the user waits.
#include "stats.h"

#include <stdlib.h>
#include <time.h>

static int compare(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

// The value that `share` of the sorted samples lie below.
static double quantile(const double *sorted, size_t count, double share) {
    double place = share * (double)(count - 1);
    size_t i = (size_t)place;
    double next = i + 1 < count ? sorted[i + 1] : sorted[i];
    return sorted[i] + (place - (double)i) * (next - sorted[i]);
}

struct stats stats_of(double *samples, size_t count) {
    struct stats s = {.count = count};
    if (count == 0) {
        return s;
    }
    qsort(samples, count, sizeof *samples, compare);
    s.min = samples[0];
    s.lower = quantile(samples, count, 0.25);
    s.median = quantile(samples, count, 0.5);
    s.upper = quantile(samples, count, 0.75);
    s.spread = s.median > 0 ? (s.upper - s.lower) / 2 / s.median : 0;
    return s;
}

bool stats_wins(const double *first, const double *second, size_t count) {
    size_t won = 0;
    for (size_t i = 0; i < count; i++) {
        won += second[i] < first[i];
    }
    return count > 0 && 4 * won >= 3 * count;
}

bool stats_measure(const struct stats_desc *desc, stats_run_fn *run, void *context,
                   struct stats *stats) {
    double samples[STATS_MAX_SAMPLES];
    size_t least = desc->min_samples ? desc->min_samples : 7;
    size_t count = 0;
    double seconds = 0;
    double start = grt_seconds();
    if (least > STATS_MAX_SAMPLES) {
        least = STATS_MAX_SAMPLES;
    }
    do {
        if (!run(context, &seconds)) {
            return false;
        }
    } while (grt_seconds() - start < desc->warm_up);
    start = grt_seconds();
    while (count < least || (count < STATS_MAX_SAMPLES && grt_seconds() - start < desc->budget)) {
        if (!run(context, &samples[count])) {
            return false;
        }
        count++;
    }
    *stats = stats_of(samples, count);
    return true;
}

double stats_cpu(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
