// SPDX-License-Identifier: Apache-2.0
#include "summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

static struct report_standing *standing_of(struct report_lead *lead, uint32_t contender) {
    size_t i = 0;
    while (i < lead->count && lead->standings[i].contender != contender) {
        i++;
    }
    if (i == lead->count) {
        lead->standings[lead->count++] = (struct report_standing){.contender = contender};
    }
    return &lead->standings[i];
}

// Rows of one case. Shares are summed as logarithms first.
static void count_case(const struct report *r, size_t first, size_t last,
                       struct report_lead *lead) {
    const struct report_row *measured = NULL;
    for (size_t i = first; i < last; i++) {
        const struct report_row *row = &r->rows[i];
        if (!row->chosen || !row->good || row->nature == REPORT_PREDICTED) {
            continue;
        }
        measured = row;
        struct report_standing *s = standing_of(lead, row->contender);
        bool best = !lead->best || report_share(row->bench, row->value, lead->best->value) > 1;
        lead->best = best ? row : lead->best;
        if (row->rivals < 2) {
            s->alone++;
            continue;
        }
        s->cases++;
        s->leads += row->of_best == 1;
        s->relative += log(row->of_best);
    }
    lead->shared += measured && measured->rivals > 1;
}

static int by_standing(const void *left, const void *right) {
    const struct report_standing *a = left, *b = right;
    int order = (a->leads < b->leads) - (a->leads > b->leads);
    order = order ? order : (a->relative < b->relative) - (a->relative > b->relative);
    return order ? order : (a->contender > b->contender) - (a->contender < b->contender);
}

// How far the leader is before the next, where it leads.
static void measure_lead(const struct report *r, size_t first, size_t last,
                         struct report_lead *lead, double *sum) {
    const struct report_row *mine = NULL;
    double next = 0;
    for (size_t i = first; i < last; i++) {
        const struct report_row *row = &r->rows[i];
        if (row->nature == REPORT_PREDICTED) {
            continue;
        }
        if (row->of_best == 1 && row->contender == lead->standings[0].contender) {
            mine = row;
        } else if (row->of_best > next) {
            next = row->of_best;
        }
    }
    if (mine && next > 0) {
        *sum += log(1 / next);
        if (1 / next > lead->most) {
            lead->most = 1 / next;
            lead->most_of = mine;
        }
    }
}

static void fill(const struct report *r, size_t first, size_t last, struct report_lead *lead) {
    double sum = 0;
    for (size_t i = first, end; i < last; i = end) {
        end = report_case_end(r, i);
        count_case(r, i, end, lead);
    }
    for (size_t i = 0; i < lead->count; i++) {
        struct report_standing *s = &lead->standings[i];
        s->relative = s->cases ? exp(s->relative / (double)s->cases) : 0;
    }
    if (lead->count > 0) {
        qsort(lead->standings, lead->count, sizeof *lead->standings, by_standing);
    }
    for (size_t i = first, end; lead->shared && i < last; i = end) {
        end = report_case_end(r, i);
        measure_lead(r, i, end, lead, &sum);
    }
    if (lead->shared && lead->standings[0].leads) {
        lead->times = exp(sum / (double)lead->standings[0].leads);
    }
}

bool report_summarize(struct report *report, struct report_summary *summary) {
    struct report *r = report;
    *summary = (struct report_summary){0};
    summary->leads = report_alloc(r, report_bench_count * sizeof *summary->leads);
    for (size_t i = 0, end; summary->leads && i < r->row_count; i = end) {
        const struct report_bench *bench = r->rows[i].bench;
        for (end = i; end < r->row_count && r->rows[end].bench == bench; end++) {
        }
        if (!bench->compared) {
            continue;
        }
        struct report_lead *lead = &summary->leads[summary->count];
        *lead = (struct report_lead){.bench = bench};
        lead->standings = report_alloc(r, r->contender_count * sizeof *lead->standings);
        if (!lead->standings) {
            return false;
        }
        fill(r, i, end, lead);
        summary->count += lead->count > 0;
    }
    return summary->leads != NULL;
}

void report_lead_text(const struct report *report, const struct report_lead *lead,
                      char text[REPORT_SENTENCE]) {
    const struct report_standing *first = &lead->standings[0];
    const char *label = report->contenders[first->contender].label;
    char best[REPORT_QUANTITY], times[REPORT_QUANTITY], most[REPORT_QUANTITY];
    report_quantity(lead->best->value, lead->bench->unit, best);
    report_times(lead->times, times);
    report_times(lead->most, most);
    if (!lead->shared) {
        snprintf(text, REPORT_SENTENCE,
                 "No two contenders have the same %s. The best figure is %s, of %s: %s.",
                 lead->bench->cases, best, report->contenders[lead->best->contender].label,
                 lead->best->subject);
    } else if (lead->shared == 1) {
        snprintf(text, REPORT_SENTENCE,
                 "%s leads in the one case that several have, by %s times: %s.", label, times,
                 lead->most_of ? lead->most_of->subject : "");
    } else {
        snprintf(text, REPORT_SENTENCE,
                 "%s leads in %zu of %zu %s, by %s times at the geometric mean, "
                 "at most by %s times: %s.",
                 label, first->leads, lead->shared, lead->bench->cases, times, most,
                 lead->most_of ? lead->most_of->subject : "");
    }
}
