// SPDX-License-Identifier: Apache-2.0
#include "bench_progress.h"

#include <stdarg.h>

#include "cli/command.h"
#include "cli/stats.h"
#include "cli/talk.h"
#include "publish/publish.h"

#define LONG_SECONDS 20.0  // a line says how long it takes
#define OVERHEAD 1.5       // of a row, for set-up and check: at least

// "40 s", "3 min", "2.1 h"
static void time_text(double seconds, char text[32]) {
    if (seconds < 100) {
        snprintf(text, 32, "%.0f s", seconds);
    } else if (seconds < 6000) {
        snprintf(text, 32, "%.0f min", seconds / 60);
    } else {
        snprintf(text, 32, "%.1f h", seconds / 3600);
    }
}

void bench_progress_plan(struct bench_progress *progress, size_t rows, double seconds) {
    double total = (double)rows * seconds * OVERHEAD;
    char text[32];
    if (progress->begun == 0) {
        progress->begun = grt_seconds();
    }
    progress->planned += rows;
    time_text(total, text);
    if (total >= LONG_SECONDS) {
        talk_line("%zu rows of %g s each and more: about %s; Ctrl-C prints what was measured", rows,
                  seconds, text);
    }
}

void bench_progress_row(const struct bench_progress *progress, const char *format, ...) {
    char what[256], left[40] = "", text[32];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (progress->done > 0 && progress->planned > progress->done) {
        double each = (grt_seconds() - progress->begun) / (double)progress->done;
        time_text(each * (double)(progress->planned - progress->done), text);
        snprintf(left, sizeof left, ", %s left", text);
    }
    struct state state;
    state_init(&state);
    state.step = (double)progress->done;
    state.steps = (double)progress->planned;
    publish_tell(&state);
    talk_progress("%zu of %zu%s: %s", progress->done + 1, progress->planned, left, what);
}

// What sensors told in all, with --monitor: behind the rows, and as "monitor" for programs.
static void tell_sensors(struct table *table, bool people) {
    struct publish_means means;
    char text[PUBLISH_TEXT];
    if (!publish_whole(&means)) {
        return;
    }
    publish_means_text(&means, text);
    talk_clear();
    if (people) {
        fprintf(table->desc.output->file, "\nsensors: %s\n", text);
    }
    table_note(table, "monitor", publish_means_json(&means));
}

int bench_progress_end(const struct bench_progress *progress, struct table *table, int code) {
    enum table_format format = table->desc.format;
    bool people = format == TABLE_PLAIN || format == TABLE_MD;
    tell_sensors(table, people);
    if (!talk_stopped()) {
        return code;
    }
    char text[80];
    snprintf(text, sizeof text, "partial: %zu of %zu rows", progress->done, progress->planned);
    if (people) {
        fprintf(table->desc.output->file, "\n%s\n", text);
    }
    table_note(table, "partial", json_true());
    talk_error("interrupted, %s", text);
    talk_resume();
    return COMMAND_RESUMABLE;
}
