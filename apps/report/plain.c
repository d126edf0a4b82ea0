// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "text.h"
#include "write.h"

// Words of a text in lines of at most 80 columns, the later ones indented.
static void wrapped(FILE *file, const char *text) {
    size_t column = 0;
    while (*text) {
        size_t length = strcspn(text, " ");
        if (column > 0 && column + 1 + length > 80) {
            fputs("\n    ", file);
            column = 4;
        } else if (column > 0) {
            fputc(' ', file);
            column++;
        }
        fprintf(file, "%.*s", (int)length, text);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', file);
}

void report_write_plain(FILE *file, const struct report_view *view) {
    char text[REPORT_SENTENCE], line[REPORT_SENTENCE + 128];
    if (view->summary->count + view->report->sweep_count + view->report->memory_count == 0) {
        wrapped(file, "There is no figure to compare. --html FILE shows what the files have.");
    }
    for (size_t i = 0; i < view->summary->count; i++) {
        const struct report_lead *lead = &view->summary->leads[i];
        report_lead_text(view->report, lead, text);
        snprintf(line, sizeof line, "%s: %s", lead->bench->title, text);
        wrapped(file, line);
    }
    for (size_t i = 0; i < view->report->sweep_count; i++) {
        char sweep[REPORT_SENTENCE];
        report_sweep_text(view->report, &view->report->sweeps[i], sweep);
        wrapped(file, sweep);
    }
    for (size_t i = 0; i < view->report->memory_count; i++) {
        const struct report_memory *m = &view->report->memories[i];
        char peak[REPORT_QUANTITY];
        report_quantity(m->peak, "B", peak);
        snprintf(line, sizeof line,
                 "Device memory of %s: at most %s, after %.3g s; %zu allocations (%s)",
                 view->report->contenders[m->contender].label, peak, m->peak_at, m->count,
                 view->report->sources[m->source].file);
        wrapped(file, line);
    }
}
