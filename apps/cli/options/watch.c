// SPDX-License-Identifier: Apache-2.0
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/whole_file.h"
#include "cli/command.h"
#include "cli/talk.h"
#include "publish/publish.h"

#define AT(field) offsetof(struct options, field)
#define MOST_OVERHEAD 0.005  // of the device's time: what timing may cost

const struct option_row watch_options[WATCH_OPTIONS_COUNT] = {
    {.name = "kernels",
     .help = "at the end: calls, time and rate of each kernel, and what holds the work up",
     .at = AT(kernels)},
    {.name = "trace",
     .value = "FILE",
     .help = "the same, and write a trace of host and device, which Perfetto opens",
     .read = options_read_text,
     .at = AT(trace)},
    {.name = "every-command",
     .help = "time every command, also where that takes more than 0.5 % of the time",
     .at = AT(every_command)},
    {.name = "memory-snapshot",
     .value = "FILE",
     .help = "write every allocation, which `gpurt report` draws",
     .read = options_read_text,
     .at = AT(memory_snapshot)},
    {.name = "monitor",
     .help = "sample the sensors of the device, energy too, for the log and the results",
     .at = AT(monitor)},
    {.name = "metrics",
     .value = "FILE",
     .help = "keep a text file for Prometheus up to date",
     .read = options_read_text,
     .at = AT(metrics)},
};

// There is one at a time.
static struct grt_timeline *timeline;

// ---- begin ----

bool watch_check(const struct options *o) {
    const struct {
        const char *name, *path;
    } files[] = {{"--trace", o->trace},
                 {"--memory-snapshot", o->memory_snapshot},
                 {"--metrics", o->metrics}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        int obstacle = files[i].path ? grt_whole_file_obstacle(files[i].path) : 0;
        if (obstacle) {
            return grt_fail(GRT_NO_OUTPUT, "%s: %s cannot be written: %s", files[i].name,
                            files[i].path, strerror(obstacle));
        }
    }
    return true;
}

bool watch_begin(const struct options *o, struct grt_dev *dev) {
    publish_begin(&(struct publish_desc){.app = o->verb,
                                         .device = grt_dev_info(dev),
                                         .sample = o->monitor != 0,
                                         .metrics = o->metrics});
    if (!o->kernels && !o->trace && !o->memory_snapshot) {
        return true;
    }
    timeline = grt_timeline_begin(
        dev, grt_timeline_desc(.events = o->trace != NULL, .memory = o->memory_snapshot != NULL,
                               .overhead = o->every_command ? 0.0 : MOST_OVERHEAD));
    return timeline != NULL;
}

// ---- the table ----

static void print_timed(const struct grt_timeline_totals *t) {
    uint64_t all = t->dispatches + t->copies;
    if (t->stamp > 0.0 && t->timed < all) {
        talk_line("%llu of %llu commands were timed, and stand for the others: timing one takes "
                  "%.2g us here",
                  (unsigned long long)t->timed, (unsigned long long)all, 1e6 * t->stamp);
    }
}

static void print_transforms(const struct grt_timeline_kernel *rows, uint32_t count) {
    char advice[WATCH_ADVICE_SIZE];
    for (uint32_t i = 0; i < count; i++) {
        if (watch_slow_transform(&rows[i], advice)) {
            talk_line("transform: %s", advice);
        }
    }
}

static void print_kernels(const struct watch_peaks *peaks) {
    struct grt_timeline_totals totals = grt_timeline_totals(timeline);
    struct grt_timeline_kernel row;
    char text[WATCH_ADVICE_SIZE];
    uint32_t count = 0;
    while (grt_timeline_kernel(timeline, count, &row)) {
        count++;
    }
    struct grt_timeline_kernel *rows = calloc(count + 1, sizeof *rows);
    if (!rows) {
        talk_error("out of memory");
        return;
    }
    talk_line("%s", "");
    talk_line("%-24s %8s %9s %9s %6s %12s %5s", "kernel", "calls", "total ms", "mean us", "share",
              "rate", "peak");
    for (uint32_t i = 0; i < count; i++) {
        grt_timeline_kernel(timeline, i, &rows[i]);
        watch_row(&rows[i], totals.compute + totals.upload, peaks, text);
        talk_line("%s", text);
    }
    talk_line("the device worked %.3f s of %.3f s from its first command to its last; %llu "
              "dispatches, %llu copies and fills, %llu submits",
              totals.compute, totals.active, (unsigned long long)totals.dispatches,
              (unsigned long long)totals.copies, (unsigned long long)totals.submits);
    print_timed(&totals);
    if (watch_stages(&totals, text)) {
        talk_line("%s", text);
    }
    print_transforms(rows, count);
    watch_advice(&totals, rows, count, peaks, text);
    talk_line("bottleneck: %s", text);
    free(rows);
}

// ---- end ----

static int write_files(const struct options *o) {
    struct grt_timeline_totals totals = grt_timeline_totals(timeline);
    bool good = !o->trace || grt_timeline_write_trace(timeline, o->trace);
    int code = good ? 0 : command_exit_of(grt_last_status());
    if (good && o->trace && totals.left_out > 0) {
        talk_line("the trace has the first %llu events; %llu later ones are left out",
                  (unsigned long long)totals.events, (unsigned long long)totals.left_out);
    }
    if (o->memory_snapshot && !grt_timeline_write_memory(timeline, o->memory_snapshot)) {
        code = code ? code : command_exit_of(grt_last_status());
    }
    return code;
}

int watch_close(const struct options *o, struct grt_dev **dev, watch_peaks_fn *peaks, int code) {
    bool usable = timeline && *dev && grt_dev_status(*dev) == GRT_OK;
    if (usable && !grt_timeline_end(timeline)) {
        code = code ? code : command_exit_of(grt_last_status());
    } else if (usable) {
        // A verb that failed before its device did anything has nothing to show.
        struct grt_timeline_totals totals = grt_timeline_totals(timeline);
        bool shows = code == 0 || totals.dispatches + totals.copies > 0;
        if (shows && (o->kernels || o->trace) && !o->quiet) {
            struct watch_peaks most = peaks ? peaks(*dev) : (struct watch_peaks){0};
            talk_clear();
            print_kernels(&most);
        }
        int written = shows ? write_files(o) : 0;
        code = code ? code : written;
    }
    grt_timeline_destroy(&timeline);
    grt_dev_destroy(dev);
    return code;
}
