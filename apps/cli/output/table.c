// SPDX-License-Identifier: Apache-2.0
// Tables for people (plain, md, blocks) and CSV. One function turns a cell into text for people and
// one for CSV; the layouts differ only in what they put between texts. JSON is in table_json.c.
#include "table.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "table_json.h"
#include "cli/talk.h"
#include "base/visible.h"

void table_bytes_text(uint64_t bytes, char text[TABLE_TEXT_SIZE]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++) {
        value /= 1024;
    }
    snprintf(text, TABLE_TEXT_SIZE, "%.4g %s", value, units[unit]);
}

void table_time_text(double seconds, char text[TABLE_SHORT_SIZE]) {
    unsigned long s = seconds >= 0 && seconds < 1e8 ? (unsigned long)(seconds + 0.5) : 99999999ul;
    text[0] = '\0';
    if (seconds >= 0 && s >= 3600) {  // rounded: 3599.6 s are no 60 minutes
        snprintf(text, TABLE_SHORT_SIZE, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    } else if (seconds >= 0) {
        snprintf(text, TABLE_SHORT_SIZE, "%lu:%02lu", s / 60, s % 60);
    }
}

void table_rate_text(double rate, char text[TABLE_SHORT_SIZE]) {
    text[0] = '\0';
    if (rate >= 1e6) {
        snprintf(text, TABLE_SHORT_SIZE, "%.4gM/s", rate / 1e6);
    } else if (rate >= 1e3) {
        snprintf(text, TABLE_SHORT_SIZE, "%.4gk/s", rate / 1e3);
    } else if (rate >= 0) {
        snprintf(text, TABLE_SHORT_SIZE, "%.4g/s", rate);
    }
}

// Fixed digits after the point, so that columns line up; more of them where only zeros would show.
static void number_text(double number, int precision, char text[TABLE_TEXT_SIZE]) {
    bool small = number != 0 && fabs(number) < pow(10, -precision);
    snprintf(text, TABLE_TEXT_SIZE, small ? "%.*g" : "%.*f", precision, number);
}

void table_cell_text(const struct table_column *column, const struct table_cell *cell,
                     char text[TABLE_TEXT_SIZE]) {
    text[0] = '\0';
    if (!cell->known) {
        snprintf(text, TABLE_TEXT_SIZE, "-");
        return;
    }
    switch (column->type) {
    case TABLE_TEXT:
        grt_visible(cell->text, text, TABLE_TEXT_SIZE);
        break;
    case TABLE_FLAG:
        snprintf(text, TABLE_TEXT_SIZE, "%s", cell->count ? "yes" : "no");
        break;
    case TABLE_COUNT:
        snprintf(text, TABLE_TEXT_SIZE, "%" PRIu64, cell->count);
        break;
    case TABLE_BYTES:
        table_bytes_text(cell->count, text);
        break;
    case TABLE_NUMBER:
        number_text(cell->number, column->precision, text);
        break;
    case TABLE_SHARE:
        snprintf(text, TABLE_TEXT_SIZE, "%.*f%%", column->precision, 100 * cell->number);
        break;
    }
}

// Exact, for programs: sizes in bytes, numbers in full.
static void csv_text(const struct table_column *column, const struct table_cell *cell,
                     char text[TABLE_TEXT_SIZE]) {
    text[0] = '\0';
    if (!cell->known) {
        return;
    }
    switch (column->type) {
    case TABLE_TEXT:
        grt_visible(cell->text, text, TABLE_TEXT_SIZE);
        break;
    case TABLE_FLAG:
    case TABLE_COUNT:
    case TABLE_BYTES:
        snprintf(text, TABLE_TEXT_SIZE, "%" PRIu64, cell->count);
        break;
    case TABLE_NUMBER:
    case TABLE_SHARE:
        snprintf(text, TABLE_TEXT_SIZE, "%.8g", cell->number);
        break;
    }
}

static void heading_text(const struct table_column *column, char text[TABLE_TEXT_SIZE]) {
    bool both = column->heading[0] && column->unit;
    snprintf(text, TABLE_TEXT_SIZE, "%s%s%s", column->heading, both ? " " : "",
             column->unit ? column->unit : "");
}

static bool shows(const struct table *t, size_t i) {
    return (t->shown >> i & 1) != 0;
}

static bool right_aligned(const struct table_column *column) {
    return column->type != TABLE_TEXT && column->type != TABLE_FLAG;
}

// The longest text of a column that is not cut, or 0.
static int limit_of(const struct table *t, size_t i) {
    int limit = t->desc.format == TABLE_PLAIN ? t->desc.columns[i].limit : 0;
    bool narrow = t->last_limit && i == t->last && (!limit || t->last_limit < limit);
    return narrow ? t->last_limit : limit;
}

static void widen(int *width, int limit, const char *text) {
    int length = (int)grt_visible_width(text);
    if (limit && length > limit) {
        length = limit;
    }
    if (length > *width) {
        *width = length;
    }
}

// Text padded to the column. What is longer than the column's limit is cut, and shows that it was.
static void print_padded(struct table *t, size_t i, const char *text, bool last) {
    const struct table_column *column = &t->desc.columns[i];
    FILE *file = t->desc.output->file;
    int length = (int)grt_visible_width(text);
    int limit = limit_of(t, i);
    bool cut = limit && length > limit;
    size_t used = 0;
    int keep = cut ? (int)grt_visible_fit(text, (size_t)limit - 2, &used) : (int)strlen(text);
    int pad = t->width[i] - (cut ? (int)used + 2 : length);
    if (right_aligned(column)) {
        fprintf(file, "%*s%.*s%s", pad > 0 ? pad : 0, "", keep, text, cut ? ".." : "");
    } else {
        fprintf(file, "%.*s%s%*s", keep, text, cut ? ".." : "", pad > 0 && !last ? pad : 0, "");
    }
}

// In Markdown a bar inside a cell would end it.
static void escape_bars(char text[TABLE_TEXT_SIZE]) {
    size_t length = strlen(text);
    for (char *bar = text; (bar = strchr(bar, '|')) != NULL && length + 1 < TABLE_TEXT_SIZE;
         bar += 2) {
        memmove(bar + 1, bar, strlen(bar) + 1);
        *bar = '\\';
        length++;
    }
}

// A cell, or with `cell` NULL the heading, as a plain or Markdown table shows it.
static void shown_text(const struct table *t, size_t i, const struct table_cell *cell,
                       char text[TABLE_TEXT_SIZE]) {
    if (cell) {
        table_cell_text(&t->desc.columns[i], cell, text);
    } else {
        heading_text(&t->desc.columns[i], text);
    }
    if (t->desc.format == TABLE_MD) {
        escape_bars(text);
    }
}

// One line of a plain or Markdown table; `cells` NULL is the line of headings.
static void print_line(struct table *t, const struct table_cell *cells) {
    FILE *file = t->desc.output->file;
    bool md = t->desc.format == TABLE_MD;
    size_t last = 0;
    bool first = true;
    for (size_t i = 0; i < t->desc.column_count; i++) {
        last = shows(t, i) ? i : last;
    }
    for (size_t i = 0; i <= last; i++) {
        char text[TABLE_TEXT_SIZE];
        if (!shows(t, i)) {
            continue;
        }
        shown_text(t, i, cells ? &cells[i] : NULL, text);
        fputs(md ? "| " : first ? "" : "  ", file);
        print_padded(t, i, text, i == last && !md);
        fputs(md ? " " : "", file);
        first = false;
    }
    fputs(md ? "|\n" : "\n", file);
}

static void print_rule(struct table *t) {
    FILE *file = t->desc.output->file;
    for (size_t i = 0; i < t->desc.column_count; i++) {
        if (!shows(t, i)) {
            continue;
        }
        bool right = right_aligned(&t->desc.columns[i]);
        fputs(right ? "|-" : "|:", file);
        for (int k = 0; k < t->width[i]; k++) {
            fputc('-', file);
        }
        fputs(right ? ":" : "-", file);
    }
    fputs("|\n", file);
}

// Quoted where RFC 4180 asks for it.
static void print_csv_field(FILE *file, const char *text) {
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"') {
            fputc('"', file);
        }
        fputc(*text, file);
    }
    fputc('"', file);
}

static void print_csv_line(struct table *t, const struct table_cell *cells) {
    FILE *file = t->desc.output->file;
    bool first = true;
    for (size_t i = 0; i < t->desc.column_count; i++) {
        const struct table_column *column = &t->desc.columns[i];
        char text[TABLE_TEXT_SIZE];
        if (!column->key) {
            continue;
        }
        if (cells) {
            csv_text(column, &cells[i], text);
        }
        fputs(first ? "" : ",", file);
        print_csv_field(file, cells ? text : column->key);
        first = false;
    }
    fputc('\n', file);
}

// Every column with a key, one line each, under the row's first cell.
static void print_block(struct table *t, const struct table_cell *cells) {
    FILE *file = t->desc.output->file;
    int width = 0;
    bool first = true;
    for (size_t i = 0; i < t->desc.column_count; i++) {
        if (t->desc.columns[i].key) {
            widen(&width, 0, t->desc.columns[i].heading);
        }
    }
    if (t->begun) {
        fputc('\n', file);
    }
    for (size_t i = 0; i < t->desc.column_count; i++) {
        const struct table_column *column = &t->desc.columns[i];
        char text[TABLE_TEXT_SIZE];
        if (!column->key) {
            continue;
        }
        table_cell_text(column, &cells[i], text);
        if (first) {
            fprintf(file, "%s\n", text);
        } else {
            fprintf(file, "    %-*s  %s%s%s\n", width, column->heading, text,
                    column->unit && cells[i].known ? " " : "",
                    column->unit && cells[i].known ? column->unit : "");
        }
        first = false;
    }
}

static void measure(struct table *t, const struct table_cell *rows, size_t row_count) {
    for (size_t i = 0; i < t->desc.column_count; i++) {
        const struct table_column *column = &t->desc.columns[i];
        char text[TABLE_TEXT_SIZE];
        shown_text(t, i, NULL, text);
        t->width[i] = column->width;
        widen(&t->width[i], limit_of(t, i), text);
        for (size_t r = 0; r < row_count; r++) {
            shown_text(t, i, &rows[r * t->desc.column_count + i], text);
            widen(&t->width[i], limit_of(t, i), text);
        }
    }
}

// Columns that a terminal too narrow for all is spared, by key or heading, the least important
// first. What names a case and its figure is not here.
// clang-format off
static const char *const spared[] = {
    "pci", "memory_clock", "reader", "power_limit", "clock", "score_of", "samples", "timer",
    "steps_per_run", "profile", "error", "pin_memory", "working_set",
    "numbers", "substeps_per_s", "total_batch", "cpus", "loss_scale", "skipped", "clip_rate",
    "explained", "kl", "best_ms", "cpu_ms", "dispatches", "evaluate_falls", "evaluate_good",
    "evaluate_collisions", "evaluate_arrived", "evaluate_good_rate", "memcpy_mb_per_s", "raw_mb_per_s", "io_ms",
    "optimizer_ms", "forward_ms", "backward_ms", "trans", "lr", "gpu", "matrix", "type", "driver",
    "fp16", "best_return", "falls", "entropy", "length", "tflop_per_s", "spread", "speedup",
    "memory", "env_steps_per_s", "device_busy", "of_memcpy", "data_share", "depth", "hidden", "ms",
    "of_peak", "predicted_exchange_ms", "wait_ms", "readback_ms", "host_ms", "network_ms", "upload_ms",
    "fitted_overlap", "exchange_bytes", "alone_ms", "train", "machines", "order", "mb_per_s",
    "exchange_ms", "in", "parameters",
};
// clang-format on

static int table_width(const struct table *t) {
    int width = 0;
    for (size_t i = 0; i < t->desc.column_count; i++) {
        width += shows(t, i) ? t->width[i] + (width ? 2 : 0) : 0;
    }
    return width;
}

static bool is_called(const struct table_column *column, const char *name) {
    return strcmp(column->key ? column->key : column->heading, name) == 0;
}

// Of the terminal that the table is printed on; 0: none.
static int terminal_columns(const struct table *t) {
    struct winsize size = {0};
    int fd = fileno(t->desc.output->file);
    if (t->desc.fit == 0 && isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0) {
        return size.ws_col;
    }
    return t->desc.fit;
}

// Leaves out columns until the others fit into the terminal; what is no terminal gets all.
static void fold(struct table *t) {
    int columns = terminal_columns(t);
    t->last_limit = 0;
    if (t->desc.format != TABLE_PLAIN || columns == 0) {
        return;
    }
    for (size_t k = 0; k < sizeof spared / sizeof *spared && table_width(t) > columns; k++) {
        for (size_t i = 0; i < t->desc.column_count; i++) {
            if (shows(t, i) && is_called(&t->desc.columns[i], spared[k])) {
                t->shown &= ~(1ull << i);
            }
        }
    }
    for (size_t i = 0; i < t->desc.column_count; i++) {
        t->last = shows(t, i) ? i : t->last;
    }
    // A text at the end of the line is cut at the terminal's edge.
    int rest = columns - (table_width(t) - t->width[t->last]);
    t->last_limit = t->desc.columns[t->last].type == TABLE_TEXT && rest >= 8 ? rest : 0;
}

bool table_section(struct table *table, const char *title, uint64_t shown,
                   const struct table_cell *rows, size_t row_count) {
    struct table *t = table;
    FILE *file = t->desc.output->file;
    bool bold = t->desc.format == TABLE_PLAIN && talk_styled(file);
    bool people = t->desc.format == TABLE_PLAIN || t->desc.format == TABLE_MD;
    t->shown = shown;
    talk_clear();
    if (people && !t->desc.blocks) {
        measure(t, rows, rows ? row_count : 0);
        fold(t);
        fputs(t->begun ? "\n" : "", file);
        if (title) {
            output_line(file, "%s%s", t->desc.format == TABLE_MD ? "### " : "", title);
            fputs(t->desc.format == TABLE_MD ? "\n" : "", file);
        }
        // A section without columns is its title.
        fputs(bold && shown ? "\033[1m" : "", file);
        if (shown) {
            print_line(t, NULL);
        }
        fputs(bold && shown ? "\033[0m" : "", file);
        if (t->desc.format == TABLE_MD && shown) {
            print_rule(t);
        }
        t->begun = true;
    } else if (t->desc.format == TABLE_CSV && !t->begun) {
        print_csv_line(t, NULL);
        t->begun = true;
    }
    return output_flush(t->desc.output);
}

// What did not reach the stream for lack of memory is an error of the output like any other.
static bool done(struct table *table, bool good) {
    struct output *output = table->desc.output;
    if (output_flush(output) && !good) {
        output->error = ENOMEM;
    }
    return !output->error;
}

bool table_row(struct table *table, const struct table_cell *cells) {
    bool good = true;
    talk_clear();
    switch (table->desc.format) {
    case TABLE_PLAIN:
    case TABLE_MD:
        if (table->desc.blocks) {
            print_block(table, cells);
        } else {
            print_line(table, cells);
        }
        break;
    case TABLE_CSV:
        print_csv_line(table, cells);
        break;
    case TABLE_JSON:
    case TABLE_JSONL:
        good = table_json_row(table, cells);
        break;
    }
    table->begun = true;
    return done(table, good);
}

bool table_open(struct table *table, const struct table_desc *desc) {
    *table = (struct table){.desc = *desc};
    return done(table, table_json_open(table));
}

bool table_close(struct table *table) {
    talk_clear();
    return done(table, table_json_close(table));
}
