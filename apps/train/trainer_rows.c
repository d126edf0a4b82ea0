// SPDX-License-Identifier: Apache-2.0
// What a training shows: a table whose rows come from those of the log, and progress in between.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/talk.h"
#include "trainer.h"

// ---- the table ----

static struct table_cell cell_of(const struct train_column *column, const struct grt_run_row *row) {
    if (column->field == GRT_FIELD_STEP) {
        return TABLE_CELL(.count = row->step);
    }
    double number = row->numbers[column->field];
    const char *text = row->texts[column->field];
    // NaN is omitted: JSON cannot hold it.
    if (!grt_run_row_has(row, column->field) || (!text && !isfinite(number))) {
        return (struct table_cell){0};
    }
    switch (column->column.type) {
    case TABLE_TEXT:
        return TABLE_CELL(.text = text ? text : number != 0 ? "*" : "");
    case TABLE_NUMBER:
    case TABLE_SHARE:
        return TABLE_CELL(.number = number);
    default:
        return TABLE_CELL(.count = (uint64_t)number);
    }
}

static bool has_column_of(const struct train_kind *kind, enum grt_run_event event) {
    for (size_t i = 0; i < kind->column_count; i++) {
        if (kind->columns[i].event == event) {
            return true;
        }
    }
    return false;
}

// A row of the table may have what several rows of the log say of a step. Step and time alone make
// none. A baseline has the columns of an evaluation where another column names it, else no row.
static void take_cells(struct trainer *t, const struct grt_run_row *row) {
    bool baseline = row->event == GRT_RUN_BASELINE && has_column_of(t->kind, GRT_RUN_BASELINE);
    for (size_t i = 0; i < t->kind->column_count; i++) {
        const struct train_column *column = &t->kind->columns[i];
        bool always = column->field == GRT_FIELD_STEP || column->field == GRT_FIELD_SECONDS;
        bool evaluation = baseline && column->event == GRT_RUN_EVALUATE;
        if (!always && column->event != row->event && !evaluation) {
            continue;
        }
        t->cells[i] = cell_of(column, row);
        t->pending = t->pending || !always;
    }
}

static void print_row(struct trainer *t) {
    if (t->pending) {
        talk_clear();
        train_rows_add(&t->rows, t->cells);
        if (t->progress[0]) {
            talk_progress("%s", t->progress);
        }
    }
    memset(t->cells, 0, sizeof t->cells);
    t->pending = false;
}

void trainer_tell(struct trainer *t, struct grt_run_row *row) {
    grt_run_tell(t->run, row);
    print_row(t);
}

// ---- progress ----

struct text {
    char *at;
    size_t room;
};

static void add(struct text *text, const char *format, ...) GRT_PRINTF(2, 3);
static void add(struct text *text, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int length = vsnprintf(text->at, text->room, format, list);
    va_end(list);
    size_t used = length < 0 ? 0 : (size_t)length < text->room ? (size_t)length : text->room - 1;
    text->at += used;
    text->room -= used;
}

static void add_place(struct text *text, const struct grt_run_row *row, const char *between) {
    if (row->epochs > 0) {
        add(text, "epoch %.0f/%llu%s", row->numbers[GRT_FIELD_EPOCH],
            (unsigned long long)row->epochs, between);
    }
    add(text, "step %llu/%llu", (unsigned long long)row->step, (unsigned long long)row->steps);
}

// What is judged: a loss, or a return.
enum grt_run_field trainer_score_of(const struct grt_run_row *row) {
    return grt_run_row_has(row, GRT_FIELD_LOSS) ? GRT_FIELD_LOSS : GRT_FIELD_RETURN;
}

enum grt_run_field trainer_rate_of(const struct grt_run_row *row) {
    return grt_run_row_has(row, GRT_FIELD_SAMPLES_PER_S) ? GRT_FIELD_SAMPLES_PER_S
                                                         : GRT_FIELD_STEPS_PER_S;
}

static bool scaled(const struct trainer *t, const struct grt_run_row *row) {
    return grt_run_row_has(row, GRT_FIELD_LOSS_SCALE) &&
           strcmp(t->config.settings.precision, "f16") == 0;
}

// One line that changes: all of it within the 80 columns of a terminal, the time that is left too.
static void show_progress(struct trainer *t, const struct grt_run_row *row, const char *eta) {
    struct text text = {t->progress, sizeof t->progress};
    char rate[TABLE_SHORT_SIZE];
    add_place(&text, row, " ");
    add(&text, " %s %.4g", grt_run_field_word(trainer_score_of(row)),
        row->numbers[trainer_score_of(row)]);
    table_rate_text(row->numbers[trainer_rate_of(row)], rate);
    add(&text, " %s", rate);
    if (grt_run_row_has(row, GRT_FIELD_DATA_SHARE)) {
        add(&text, " data %.0f%%", 100 * row->numbers[GRT_FIELD_DATA_SHARE]);
    }
    if (scaled(t, row)) {
        add(&text, " scale %g", row->numbers[GRT_FIELD_LOSS_SCALE]);
    }
    add(&text, " %s left", eta);
    talk_progress("%s", t->progress);
}

static void print_line(const struct trainer *t, const struct grt_run_row *row, const char *eta) {
    char line[256];
    struct text text = {line, sizeof line};
    double share = row->numbers[GRT_FIELD_DATA_SHARE];
    const char *rate = grt_run_field_word(trainer_rate_of(row));
    add_place(&text, row, ", ");
    add(&text, ": %s %.5g, %.0f %.*s/s", grt_run_field_word(trainer_score_of(row)),
        row->numbers[trainer_score_of(row)], row->numbers[trainer_rate_of(row)],
        (int)strcspn(rate, "_"), rate);
    if (grt_run_row_has(row, GRT_FIELD_DATA_SHARE)) {
        add(&text, ", data %.0f%% compute %.0f%%", 100 * share, 100 * (1 - share));
    }
    if (scaled(t, row)) {
        add(&text, ", scale %g, %.0f skipped", row->numbers[GRT_FIELD_LOSS_SCALE],
            row->numbers[GRT_FIELD_SKIPPED]);
    }
    talk_line("%s, %s left", line, eta);
}

// Whether the table has a row for each row `train` of the log.
static bool tabled(const struct trainer *t) {
    for (size_t i = 0; i < t->kind->column_count; i++) {
        const struct train_column *c = &t->kind->columns[i];
        if (c->event == GRT_RUN_TRAIN && c->field != GRT_FIELD_STEP &&
            c->field != GRT_FIELD_SECONDS) {
            return true;
        }
    }
    return false;
}

// On a terminal one line that changes, else a line for each row of the log that the table lacks.
static void print_progress(struct trainer *t, const struct grt_run_row *row, bool logged) {
    char eta[TABLE_SHORT_SIZE];
    table_time_text(row->eta, eta);
    if (talk_shows_progress()) {
        show_progress(t, row, eta);
    } else if (logged && !tabled(t)) {
        print_line(t, row, eta);
    }
}

// ---- the hook ----

void trainer_report(void *context, const struct grt_run_report *r) {
    struct trainer *t = context;
    trainer_ranks_speak(t);
    switch (r->news) {
    case GRT_RUN_NEWS_WORK:
        talk_progress("%s", r->text);
        break;
    case GRT_RUN_NEWS_RESUMED:
        talk_line("resumed from %s: step %llu", r->text, (unsigned long long)r->step);
        break;
    case GRT_RUN_NEWS_BEGUN:
        talk_stop_by(TALK_STOP_AFTER_STEP);
        break;
    case GRT_RUN_NEWS_PROGRESS:
        print_progress(t, r->row, false);
        break;
    case GRT_RUN_NEWS_ROW:
        if (r->row->event == GRT_RUN_TRAIN) {
            print_progress(t, r->row, true);
        }
        if (r->row->event == GRT_RUN_TRAIN && t->pending) {
            print_row(t);
        }
        // A baseline that is known before the table begins stands above it.
        if (t->rows.begun) {
            take_cells(t, r->row);
        }
        break;
    case GRT_RUN_NEWS_TURN:
        print_row(t);
        break;
    case GRT_RUN_NEWS_FAULT:
        talk_error("%s", r->text);
        break;
    case GRT_RUN_NEWS_NOTE:
        talk_line("%s", r->text);
        break;
    case GRT_RUN_NEWS_CHECKPOINT:
    case GRT_RUN_NEWS_COUNT:
        break;
    }
    trainer_monitor_report(t, r);
}
