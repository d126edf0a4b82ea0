// SPDX-License-Identifier: Apache-2.0
// The report for a job summary: what leads, what changed, the figures, the machines. Figures come
// last, so that those of a large report are what is left out.
#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "write.h"

struct markdown {
    FILE *file;
    const struct report_view *view;
    const struct report *r;
};

static void cell(const struct markdown *m, const char *text) {
    fputs(" ", m->file);
    report_markdown(m->file, text);
    fputs(" |", m->file);
}

static const char *label_of(const struct markdown *m, const struct report_row *row) {
    return m->r->contenders[row->contender].label;
}

static void summary(const struct markdown *m) {
    const struct report_summary *s = m->view->summary;
    char text[REPORT_SENTENCE];
    fputs("\n## Summary\n\n", m->file);
    for (size_t i = 0; i < s->count; i++) {
        report_lead_text(m->r, &s->leads[i], text);
        fprintf(m->file, "- **%s:** ", s->leads[i].bench->title);
        report_markdown(m->file, text);
        fputs("\n", m->file);
    }
    if (s->count == 0) {
        fputs("There is no figure to compare.\n", m->file);
    }
}

// "64.5 TFLOP/s", or why there is none.
static void figure_text(const struct report_row *row, char text[REPORT_QUANTITY]) {
    if (row->good) {
        report_quantity(row->value, row->bench->unit, text);
    } else {
        snprintf(text, REPORT_QUANTITY, "%.40s", row->check);
    }
}

static void change_row(const struct markdown *m, const struct report_change *c) {
    char before[REPORT_QUANTITY], after[REPORT_QUANTITY], share[REPORT_QUANTITY] = "-";
    figure_text(c->before, before);
    figure_text(c->after, after);
    if (c->share > 0) {
        snprintf(share, sizeof share, "%.3f (%.3f to %.3f)", c->share, c->low, c->high);
    }
    fputs("|", m->file);
    cell(m, c->after->bench->name);
    cell(m, c->after->subject);
    cell(m, label_of(m, c->after));
    cell(m, before);
    cell(m, after);
    cell(m, share);
    fprintf(m->file, " %s%s |\n", report_verdict_text(c->verdict), c->below ? ", **below**" : "");
}

// What is below first, then what is not the same.
static void changes(const struct markdown *m) {
    const struct report_changes *c = m->view->changes;
    size_t different = c->count - c->verdicts[REPORT_SAME];
    fputs("\n## Against the baseline\n\n", m->file);
    fprintf(m->file, "%zu figures: %zu better, %zu worse, %zu the same within their spread",
            c->count, c->verdicts[REPORT_FASTER], c->verdicts[REPORT_SLOWER],
            c->verdicts[REPORT_SAME]);
    fprintf(m->file, ", %zu broken, %zu mended. %zu of the baseline are missing, %zu are new.\n",
            c->verdicts[REPORT_BROKEN], c->verdicts[REPORT_MENDED], c->missing, c->added);
    if (m->view->fail_under > 0) {
        fprintf(m->file, "\n**%zu below %g of the baseline.**\n", c->below, m->view->fail_under);
    }
    if (!different) {
        return;
    }
    fputs("\n| bench | case | device | before | after | share (within) | |\n"
          "|---|---|---|--:|--:|--:|---|\n",
          m->file);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < c->count && ftell(m->file) < REPORT_MARKDOWN_MOST / 4; i++) {
            const struct report_change *change = &c->list[i];
            if (change->below == (pass == 0) && change->verdict != REPORT_SAME) {
                change_row(m, change);
            }
        }
    }
}

static void machines(const struct markdown *m) {
    fputs("\n## Machines\n\n| device | driver | gpurt | date | command | file |\n"
          "|---|---|---|---|---|---|\n",
          m->file);
    for (size_t i = 0; i < m->r->source_count && ftell(m->file) < REPORT_MARKDOWN_MOST / 2; i++) {
        const struct report_source *s = &m->r->sources[i];
        bool known = s->contender != REPORT_NONE;
        const char *driver = "";
        for (size_t k = 0; k < s->fact_count; k++) {
            if (strcmp(s->facts[k].key, "driver_version") == 0 && s->facts[k].text) {
                driver = s->facts[k].text;
            }
        }
        fputs("|", m->file);
        cell(m, known ? m->r->contenders[s->contender].label : report_nature_text(s->nature));
        cell(m, driver);
        cell(m, s->version);
        cell(m, s->date);
        cell(m, s->command);
        fputs(" ", m->file);
        report_markdown(m->file, s->file);
        fputs(s->partial ? ", partial |\n" : " |\n", m->file);  // a cell too many is not shown
    }
}

static void figure_row(const struct markdown *m, const struct report_row *row) {
    char figure[REPORT_QUANTITY], best[16] = "", spread[16] = "";
    figure_text(row, figure);
    if (row->bench->compared && row->rivals > 1 && row->good) {
        snprintf(best, sizeof best, "%.0f %%", 100 * row->of_best);
    }
    if (row->spread > 0) {
        snprintf(spread, sizeof spread, "%.1f %%", 100 * row->spread);
    }
    fputs("|", m->file);
    cell(m, row->subject);
    cell(m, label_of(m, row));
    cell(m, figure);
    cell(m, best);
    cell(m, spread);
    cell(m, report_nature_text(row->nature));
    fputs("\n", m->file);
}

static void figures(const struct markdown *m) {
    const struct report_bench *bench = NULL;
    size_t left = 0;
    for (size_t i = 0; i < m->r->row_count; i++) {
        const struct report_row *row = &m->r->rows[i];
        if (!row->chosen) {
            continue;
        }
        // A row takes less than what is kept free here: eight texts, each byte up to five.
        if (ftell(m->file) > REPORT_MARKDOWN_MOST - 5 * 8 * REPORT_TEXT) {
            left++;
            continue;
        }
        if (!bench || row->bench != bench) {
            fprintf(m->file, "\n## %s\n\n| case | device | %s | of best | spread | kind |\n",
                    row->bench->title, row->bench->unit);
            fputs("|---|---|--:|--:|--:|---|\n", m->file);
            bench = row->bench;
        }
        figure_row(m, row);
    }
    if (left) {
        fprintf(m->file, "\n%zu more figures do not fit here; the HTML and CSV have them.\n", left);
    }
}

static void write_all(FILE *file, const struct report_view *view) {
    struct markdown m = {.file = file, .view = view, .r = view->report};
    fputs("# ", file);
    report_markdown(file, view->title);
    fputs("\n", file);
    summary(&m);
    if (view->changes) {
        changes(&m);
    }
    machines(&m);
    figures(&m);
}

// How much is written is asked of the stream, which a pipe does not tell: memory comes first.
void report_write_markdown(FILE *file, const struct report_view *view) {
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory) {
        return;
    }
    write_all(memory, view);
    if (fclose(memory) == 0) {
        fwrite(text, 1, size, file);
    }
    free(text);
}
