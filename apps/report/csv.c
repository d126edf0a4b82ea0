// SPDX-License-Identifier: Apache-2.0
#include "text.h"
#include "write.h"

static void number(FILE *file, double value, int known) {
    fputc(',', file);
    if (known) {
        fprintf(file, "%.8g", value);
    }
}

static void text(FILE *file, const char *value) {
    fputc(',', file);
    report_csv_text(file, value);
}

void report_write_csv(FILE *file, const struct report_view *view) {
    const struct report *r = view->report;
    fputs("bench,case,device,api,value,unit,spread,of_best,counts,kind,check,of_baseline,verdict,"
          "date,gpurt,file\n",
          file);
    size_t next = 0;  // changes come in the order of their rows
    for (size_t i = 0; i < r->row_count; i++) {
        const struct report_row *row = &r->rows[i];
        const struct report_source *s = &r->sources[row->source];
        const struct report_contender *c = &r->contenders[row->contender];
        const struct report_change *change = NULL;
        if (view->changes && next < view->changes->count &&
            view->changes->list[next].after == row) {
            change = &view->changes->list[next++];
        }
        report_csv_text(file, row->bench->name);
        text(file, row->subject);
        text(file, c->name);
        text(file, c->peer ? c->peer : c->backend);
        number(file, row->value, row->good);
        text(file, row->bench->unit);
        number(file, row->spread, row->spread > 0);
        number(file, row->of_best, row->of_best > 0 && row->bench->compared);
        fprintf(file, ",%d", row->chosen);
        text(file, report_nature_text(row->nature));
        text(file, row->check);
        number(file, change ? change->share : 0, change && change->share > 0);
        text(file, change ? report_verdict_text(change->verdict) : "");
        text(file, s->date);
        text(file, s->version);
        text(file, s->file);
        fputc('\n', file);
    }
}
