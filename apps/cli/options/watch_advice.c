// SPDX-License-Identifier: Apache-2.0
// What held the work up. The first that is true of these, and its remedy:
//
//     the device was idle for 30 % or more of the time from its first command to its last
//         because the host waited for batches      the slowest stage of making them
//         because the host was handing work over   larger batches
//         for another reason                       what the host does between steps
//     copies take the most time                    keep the data on the device
//     one kernel takes the most time               near its limit, or not
//
// Above it the table of kernels, a row each, and what making the batches took.
#include <stdio.h>
#include <string.h>

#include "watch.h"

#define IDLE 0.3          // of the time: worth to be named first
#define MOST_OF 0.5       // of the idle time: its reason
#define NEAR_PEAK 0.6     // nothing to gain without other arithmetic
#define SLOW_COPY 0.2     // of the bandwidth: below, it is not what limits a kernel
#define SHORT_CALL 2e-5   // seconds: launching takes a good part of it
#define SLOW_SAMPLE 0.01  // seconds: a transform that takes longer for one is worth to be named

enum grt_stage watch_slowest(const struct grt_timeline_totals *totals) {
    enum grt_stage slowest = GRT_STAGE_COUNT;
    double most = 0.0;
    for (int i = 0; i < GRT_STAGE_WAIT; i++) {
        if (totals->stages[i] > most) {
            most = totals->stages[i];
            slowest = (enum grt_stage)i;
        }
    }
    return slowest;
}

double watch_of_peak(const struct grt_timeline_kernel *row, const struct watch_peaks *peaks) {
    static const char *const matrix_units[] = {"mma",   "coop",     "xmx",      "stream",
                                               "chain", "mlp_rows", "ppo_learn"};
    double peak = row->of_operations ? peaks->operations : peaks->bytes;
    double work = row->of_operations ? row->operations : row->bytes;
    for (size_t i = 0; row->of_operations && i < sizeof matrix_units / sizeof *matrix_units; i++) {
        if (strstr(row->name, matrix_units[i])) {
            return 0.0;
        }
    }
    double part = peak > 0.0 && row->seconds > 0.0 ? work / row->seconds / peak : 0.0;
    // Above it the ranges that are bound are not read in full, or lie in a cache.
    return row->of_operations || part <= 1.0 ? part : 0.0;
}

bool watch_slow_transform(const struct grt_timeline_kernel *row, char text[WATCH_ADVICE_SIZE]) {
    double each = row->samples > 0.0 ? row->seconds / row->samples : 0.0;
    if (each > SLOW_SAMPLE) {
        snprintf(text, WATCH_ADVICE_SIZE,
                 "%s takes %.1f ms a sample: smaller images, or a cheaper transform, help",
                 row->name, 1e3 * each);
    }
    return each > SLOW_SAMPLE;
}

static const char *remedy_of(enum grt_stage stage) {
    switch (stage) {
    case GRT_STAGE_READ:
        return "cache: ram or device reads the file once; a faster disk, or larger chunks in the "
               "file, help too";
    case GRT_STAGE_INFLATE:
        return "more workers, cache: ram or device, or a file without compression";
    case GRT_STAGE_DECODE:
        return "more workers, or `gpurt data import` once, which keeps decoded images";
    default:
        return "more workers, or cache: ram or device";
    }
}

static void say_idle(const struct grt_timeline_totals *t, double idle, bool uploads, char *text) {
    int n = snprintf(text, WATCH_ADVICE_SIZE, "the device was idle for %.0f %% of the time, ",
                     100.0 * idle / t->active);
    double waited = t->stages[GRT_STAGE_WAIT];
    struct grt_timeline_totals of_workers = *t;
    of_workers.stages[GRT_STAGE_TRANSFORM] = 0.0;  // what the device does keeps it busy
    enum grt_stage slowest = watch_slowest(&of_workers);
    size_t left = (size_t)(WATCH_ADVICE_SIZE - n);
    if (waited >= MOST_OF * idle && slowest != GRT_STAGE_COUNT) {
        snprintf(text + n, left, "most of it waiting for batches, whose slowest stage is %s: %s",
                 grt_stage_text(slowest), remedy_of(slowest));
    } else if (waited >= MOST_OF * idle) {
        snprintf(text + n, left, "most of it waiting for batches: %s", remedy_of(GRT_STAGE_COUNT));
    } else if (t->submitting >= MOST_OF * idle) {
        snprintf(text + n, left,
                 "most of it while the host handed work to the driver (%.0f us a submit): larger "
                 "batches%s need fewer submits",
                 t->submits > 0 ? 1e6 * t->submitting / (double)t->submits : 0.0,
                 uploads ? ", or data on the device (cache: device)," : "");
    } else {
        snprintf(text + n, left,
                 "while the host did something else: evaluate, log and save less often; a trace "
                 "(--trace) shows what");
    }
}

static void say_kernel(const struct grt_timeline_totals *t, const struct grt_timeline_kernel *top,
                       const struct watch_peaks *peaks, char *text) {
    double of_peak = watch_of_peak(top, peaks);
    double mean = top->calls > 0 ? top->seconds / (double)top->calls : 0.0;
    int n = snprintf(text, WATCH_ADVICE_SIZE, "%s takes %.0f %% of the device's time", top->name,
                     100.0 * top->seconds / (t->compute + t->upload));
    // A kernel that computes moves few bytes, which says nothing of it.
    if (of_peak >= (top->of_operations ? 0.0 : SLOW_COPY) && of_peak > 0.0) {
        n += snprintf(text + n, (size_t)(WATCH_ADVICE_SIZE - n), ", at %.0f %% of its %s",
                      100.0 * of_peak, top->of_operations ? "peak" : "bandwidth");
    }
    snprintf(text + n, (size_t)(WATCH_ADVICE_SIZE - n), ": %s",
             !top->is_kernel ? "data that stays on the device (cache: device) is not copied"
             : of_peak >= NEAR_PEAK
                 ? "it is near the device's limit, which a lower precision (f16, "
                   "bf16) or less work moves"
             : mean < SHORT_CALL ? "its calls are short, and larger batches make them longer"
                                 : "`gpurt tune` may find faster settings for its shapes, and "
                                   "larger batches or a lower precision help most often");
}

void watch_advice(const struct grt_timeline_totals *totals, const struct grt_timeline_kernel *rows,
                  uint32_t count, const struct watch_peaks *peaks, char text[WATCH_ADVICE_SIZE]) {
    double idle = totals->active - totals->compute;
    if (count == 0 || !(totals->active > 0.0) || !(totals->compute + totals->upload > 0.0)) {
        snprintf(text, WATCH_ADVICE_SIZE, "the device did nothing that has a time");
    } else if (idle >= IDLE * totals->active) {
        bool uploads = false;  // else the data are on the device
        for (uint32_t i = 0; i < count; i++) {
            uploads = uploads || strcmp(rows[i].name, "(upload)") == 0;
        }
        say_idle(totals, idle, uploads, text);
    } else {
        say_kernel(totals, &rows[0], peaks, text);
    }
}

// ---- the table ----

// "12.3 GFLOP/s"
static void rate_text(const struct grt_timeline_kernel *row, char text[32]) {
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    double rate =
        (row->of_operations ? row->operations : row->bytes) / (row->seconds > 0 ? row->seconds : 1);
    size_t p = 0;
    while (rate >= 999.5 && p + 1 < sizeof prefixes / sizeof *prefixes) {  // 1000 in three digits
        rate /= 1000.0;
        p++;
    }
    snprintf(text, 32, "%.3g %s%s", rate, prefixes[p], row->of_operations ? "FLOP/s" : "B/s");
}

void watch_row(const struct grt_timeline_kernel *row, double all, const struct watch_peaks *peaks,
               char text[WATCH_ADVICE_SIZE]) {
    char rate[32] = "-", share[16] = "-", of_peak[16] = "-", total[24] = "-", mean[24] = "-";
    if (row->timed > 0) {
        rate_text(row, rate);
        snprintf(total, sizeof total, "%.3f", 1e3 * row->seconds);
        snprintf(mean, sizeof mean, "%.1f", 1e6 * row->seconds / (double)row->calls);
        snprintf(share, sizeof share, "%.1f%%", all > 0.0 ? 100.0 * row->seconds / all : 0.0);
        double part = watch_of_peak(row, peaks);
        if (part > 0.0) {
            snprintf(of_peak, sizeof of_peak, "%.0f%%", 100.0 * part);
        }
    }
    snprintf(text, WATCH_ADVICE_SIZE, "%-24.24s %8llu %9s %9s %6s %12s %5s", row->name,
             (unsigned long long)row->calls, total, mean, share, rate, of_peak);
}

bool watch_stages(const struct grt_timeline_totals *t, char text[WATCH_ADVICE_SIZE]) {
    double sum = 0.0;
    char parts[256] = "";
    size_t n = 0;
    for (int i = 0; i < GRT_STAGE_WAIT; i++) {
        sum += t->stages[i];
    }
    for (int i = 0; i < GRT_STAGE_WAIT && sum > 0.0 && n < sizeof parts; i++) {
        if (t->stages[i] > 0.0) {
            n += (size_t)snprintf(parts + n, sizeof parts - n, "%s%s %.0f%%", n ? ", " : "",
                                  grt_stage_text((enum grt_stage)i), 100.0 * t->stages[i] / sum);
        }
    }
    if (sum > 0.0) {
        snprintf(text, WATCH_ADVICE_SIZE,
                 "data: the slowest stage is %s (%s of %.3f s in all); the host waited %.3f s for "
                 "batches",
                 grt_stage_text(watch_slowest(t)), parts, sum, t->stages[GRT_STAGE_WAIT]);
    }
    return sum > 0.0;
}
