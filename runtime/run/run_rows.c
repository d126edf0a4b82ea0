// SPDX-License-Identifier: Apache-2.0
// What a run tells: rows of the log, and reports to the hook.
#include "base/clock.h"
#include "run_parts.h"

static const char *const events[] = {
#define X(name, word) word,
    GRT_RUN_EVENTS(X)
#undef X
};
static const char *const fields[] = {
#define X(name, word) word,
    GRT_RUN_FIELDS(X)
#undef X
};
_Static_assert(GRT_FIELD_COUNT <= 64, "fields are bits of grt_run_row.known");

const char *grt_run_event_word(enum grt_run_event event) {
    return (unsigned)event < GRT_RUN_EVENT_COUNT ? events[event] : "";
}

const char *grt_run_field_word(enum grt_run_field field) {
    return (unsigned)field < GRT_FIELD_COUNT ? fields[field] : "";
}

void grt_run_row_set(struct grt_run_row *row, enum grt_run_field field, double number) {
    row->known |= 1ull << field;
    row->numbers[field] = number;
}

void grt_run_row_text(struct grt_run_row *row, enum grt_run_field field, const char *text) {
    row->known |= 1ull << field;
    row->texts[field] = text;
}

bool grt_run_row_has(const struct grt_run_row *row, enum grt_run_field field) {
    return (row->known >> field & 1) != 0;
}

// The environment names its own.
static const char *word_of(const struct grt_run *run, enum grt_run_field field) {
    bool term = field >= GRT_FIELD_TERM_1 && field <= GRT_FIELD_TERM_4;
    const char *own = term ? run->start.terms[field - GRT_FIELD_TERM_1] : NULL;
    return own ? own : fields[field];
}

static void report(struct grt_run *run, const struct grt_run_report *report) {
    if (run->desc.report) {
        run->desc.report(run->desc.context, report);
    }
}

void grt_run_say(struct grt_run *run, enum grt_run_news news, const char *text) {
    report(run, &(struct grt_run_report){
                    .news = news, .step = run->place.step, .steps = run->steps, .text = text});
}

static void complete(const struct grt_run *run, struct grt_run_row *row) {
    double now = grt_seconds();
    row->step = run->place.step;
    row->steps = run->steps;
    if (run->begun && row->step > run->begun_step) {
        row->eta = (now - run->begun_at) / (double)(row->step - run->begun_step) *
                   (double)(run->steps - row->step);
    }
    if (row->event != GRT_RUN_START) {
        grt_run_row_set(row, GRT_FIELD_SECONDS, run->began > 0 ? now - run->began : 0);
    }
    if (row->event == GRT_RUN_TRAIN) {
        grt_run_row_set(row, GRT_FIELD_MEMORY,
                        (double)grt_dev_mem_use(run->start.dev, NULL).current);
    }
}

static void hand_over(struct grt_run *run, enum grt_run_news news, const struct grt_run_row *row) {
    report(run, &(struct grt_run_report){
                    .news = news, .step = row->step, .steps = row->steps, .row = row});
}

void grt_run_progress(struct grt_run *run, struct grt_run_row *row) {
    complete(run, row);
    hand_over(run, GRT_RUN_NEWS_PROGRESS, row);
}

void run_announce(struct grt_run *run) {
    if (!run->announced) {
        run->announced = true;
        grt_run_say(run, GRT_RUN_NEWS_BEGUN, NULL);
    }
}

void grt_run_tell(struct grt_run *run, struct grt_run_row *row) {
    struct grt_runlog_field told[GRT_FIELD_COUNT];
    size_t count = 0;
    run_thin(run);
    // A signal that comes right behind the row of the first step finds a run that keeps it.
    if (run->place.step != run->start_step) {
        run_announce(run);
    }
    complete(run, row);
    for (uint32_t i = 0; i < GRT_FIELD_COUNT; i++) {
        if (grt_run_row_has(row, (enum grt_run_field)i)) {
            told[count++] = (struct grt_runlog_field){word_of(run, (enum grt_run_field)i),
                                                      row->numbers[i], row->texts[i]};
        }
    }
    grt_runlog_row(run->log, events[row->event], row->step, told, count);
    hand_over(run, GRT_RUN_NEWS_ROW, row);
}
