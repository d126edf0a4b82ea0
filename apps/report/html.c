// SPDX-License-Identifier: Apache-2.0
// The page: summary, changes, charts, every figure, and the record of each machine, in one file
// that loads nothing. All that comes from files goes through markup_text().
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "page.h"
#include "svg.h"
#include "text.h"
#include "write.h"
#include "cli/output/markup.h"

#define MAX_TABLE 5000  // rows of the table; a browser sorts that many at once

struct page {
    FILE *file;
    const struct report_view *view;
    const struct report *r;
};

static void text(const struct page *p, const char *value) {
    markup_text(p->file, value);
}

static const char *label_of(const struct page *p, uint32_t contender) {
    return p->r->contenders[contender].label;
}

static void head(const struct page *p) {
    const char *first = NULL, *last = NULL;
    for (size_t i = 0; i < p->r->source_count; i++) {
        const char *date = p->r->sources[i].date;
        if (*date) {
            first = !first || strcmp(date, first) < 0 ? date : first;
            last = !last || strcmp(date, last) > 0 ? date : last;
        }
    }
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
          p->file);
    text(p, p->view->title);
    fprintf(p->file, "</title>\n<style>\n%s</style></head>\n<body>\n<header><h1>", report_page_css);
    text(p, p->view->title);
    fprintf(p->file,
            "</h1>\n<p class=\"soft\">%zu figures and %zu learning curves from %zu commands",
            p->r->row_count, p->r->curve_count, p->r->source_count);
    if (first) {
        fputs(", measured ", p->file);
        text(p, first);
        if (strcmp(first, last) != 0) {
            fputs(" to ", p->file);
            text(p, last);
        }
    }
    fputs(".</p>\n<nav aria-label=\"Sections\"><a href=\"#summary\">Summary</a>", p->file);
    fputs(p->view->changes ? "<a href=\"#changes\">Baseline</a>" : "", p->file);
    fputs("<a href=\"#charts\">Charts</a><a href=\"#table\">Figures</a>"
          "<a href=\"#machines\">Machines</a></nav></header>\n<main>\n",
          p->file);
}

// ---- the summary ----

static void standing(const struct page *p, const struct report_standing *s) {
    fputs("<b>", p->file);
    text(p, label_of(p, s->contender));
    if (s->cases) {
        int digits = s->relative < 0.01 ? 2 : s->relative < 0.1 ? 1 : 0;
        fprintf(p->file, "</b><span>leads in %zu of %zu, at %.*f %% of the best</span>", s->leads,
                s->cases, digits, 100 * s->relative);
        fprintf(p->file, "<div><i class=\"c%u\" style=\"width:%.1f%%\"></i></div>\n",
                p->r->contenders[s->contender].color % SVG_COLORS, 100 * s->relative);
    } else {
        fprintf(p->file, "</b><span>%zu cases of its own</span><div></div>\n", s->alone);
    }
}

static void summary(const struct page *p) {
    const struct report_summary *s = p->view->summary;
    fputs(
        "<section id=\"summary\"><h2>Summary</h2>\n<p class=\"soft\">Only cases that several "
        "contenders have are compared. Bars are the geometric mean of a contender's shares of the "
        "best.</p>\n<div class=\"columns\">\n",
        p->file);
    for (size_t i = 0; i < s->count; i++) {
        char sentence[REPORT_SENTENCE];
        const struct report_lead *lead = &s->leads[i];
        report_lead_text(p->r, lead, sentence);
        fprintf(p->file, "<article class=\"card\"><h3>%s</h3><p>", lead->bench->title);
        text(p, sentence);
        fputs("</p><div class=\"standing\">\n", p->file);
        for (size_t k = 0; k < lead->count && k < 12; k++) {
            standing(p, &lead->standings[k]);
        }
        fputs("</div></article>\n", p->file);
    }
    fputs("</div></section>\n", p->file);
}

// ---- against the baseline ----

static void figure_cell(const struct page *p, const struct report_row *row) {
    char figure[REPORT_QUANTITY];
    if (row->good) {
        report_quantity(row->value, row->bench->unit, figure);
        fprintf(p->file, "<td class=\"n\" data-v=\"%.9g\">%s</td>", row->value, figure);
    } else {
        fputs("<td class=\"n\" data-v=\"\">", p->file);
        text(p, row->check);
        fputs("</td>", p->file);
    }
}

static void change_row(const struct page *p, const struct report_change *c) {
    static const char *const classes[REPORT_VERDICT_COUNT] = {[REPORT_FASTER] = "better",
                                                              [REPORT_MENDED] = "better",
                                                              [REPORT_SLOWER] = "worse",
                                                              [REPORT_BROKEN] = "worse",
                                                              [REPORT_SAME] = "soft"};
    fprintf(p->file, "<tr><td>%s</td><td class=\"case\">", c->after->bench->name);
    text(p, c->after->subject);
    fputs("</td><td>", p->file);
    text(p, label_of(p, c->after->contender));
    fputs("</td>", p->file);
    figure_cell(p, c->before);
    figure_cell(p, c->after);
    if (c->share > 0) {
        fprintf(p->file, "<td class=\"n\">%.3f</td><td class=\"n\">%.3f to %.3f</td>", c->share,
                c->low, c->high);
    } else {
        fputs("<td class=\"n\">-</td><td class=\"n\">-</td>", p->file);
    }
    fprintf(p->file, "<td class=\"%s\">%s%s</td></tr>\n", c->below ? "below" : classes[c->verdict],
            report_verdict_text(c->verdict), c->below ? ", below" : "");
}

static void changes(const struct page *p) {
    const struct report_changes *c = p->view->changes;
    fprintf(
        p->file,
        "<section id=\"changes\"><h2>Against the baseline</h2>\n<p>%zu figures: %zu better, %zu "
        "worse, %zu the same within their spread, %zu broken, %zu mended. %zu of the baseline "
        "are missing, %zu are new.</p>\n",
        c->count, c->verdicts[REPORT_FASTER], c->verdicts[REPORT_SLOWER], c->verdicts[REPORT_SAME],
        c->verdicts[REPORT_BROKEN], c->verdicts[REPORT_MENDED], c->missing, c->added);
    if (p->view->fail_under > 0) {
        fprintf(p->file, "<p class=\"%s\">%zu below %g of the baseline.</p>\n",
                c->below ? "below" : "better", c->below, p->view->fail_under);
    }
    fputs("<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th>bench</th><th>case</th>"
          "<th>device</th><th class=\"n\">before</th><th class=\"n\">after</th>"
          "<th class=\"n\">share</th><th class=\"n\">within</th><th>verdict</th></tr></thead>"
          "<tbody>\n",
          p->file);
    for (size_t i = 0; i < c->count && i < MAX_TABLE; i++) {
        change_row(p, &c->list[i]);
    }
    fputs("</tbody></table></div></section>\n", p->file);
}

// ---- charts ----

static void charts(const struct page *p) {
    fputs(
        "<section id=\"charts\"><h2>Charts</h2>\n<p class=\"soft\">Point at a mark for its figure, "
        "spread and kind. Of several settings at one place the best is shown.</p>\n"
        "<div class=\"columns\">\n",
        p->file);
    for (size_t i = 0; i < report_chart_count; i++) {
        report_chart_write(p->file, p->r, &report_charts[i]);
    }
    chart_memories(p->file, p->r);
    chart_sweeps(p->file, p->r);
    fputs("</div></section>\n", p->file);
}

// ---- every figure ----

static void choices(const struct page *p) {
    fputs("<div class=\"tools\"><input id=\"find\" type=\"search\" placeholder=\"Filter: words of "
          "any column\" aria-label=\"Filter by words\"><select id=\"bench\" aria-label=\"Bench\">"
          "<option value=\"\">all benches</option>",
          p->file);
    for (size_t i = 0; i < report_bench_count; i++) {
        for (size_t k = 0; k < p->r->row_count; k++) {
            if (p->r->rows[k].bench == &report_benches[i]) {
                fprintf(p->file, "<option>%s</option>", report_benches[i].name);
                break;
            }
        }
    }
    fputs("</select><select id=\"device\" aria-label=\"Device\"><option value=\"\">all "
          "devices</option>",
          p->file);
    for (uint32_t i = 0; i < p->r->contender_count; i++) {
        fputs("<option>", p->file);
        text(p, label_of(p, i));
        fputs("</option>", p->file);
    }
    fputs("</select><span id=\"count\" class=\"soft\" role=\"status\"></span></div>\n", p->file);
}

static void figure_row(const struct page *p, const struct report_row *row) {
    bool ranked =
        row->bench->compared && row->rivals > 1 && row->good && row->nature == REPORT_MEASURED;
    double peak = report_number(row, "of_peak");
    fprintf(p->file, "<tr%s><td>%s</td><td class=\"case\">",
            ranked && row->of_best == 1 ? " class=\"lead\"" : "", row->bench->name);
    text(p, row->subject);
    fputs("</td><td class=\"device\">", p->file);
    text(p, label_of(p, row->contender));
    fputs("</td>", p->file);
    figure_cell(p, row);
    if (ranked) {
        fprintf(p->file, "<td class=\"n share\" data-v=\"%.6g\">%.1f %%</td>", row->of_best,
                100 * row->of_best);
    } else {
        fputs("<td class=\"n share\" data-v=\"\"></td>", p->file);
    }
    if (peak > 0) {
        fprintf(p->file, "<td class=\"n\" data-v=\"%.6g\">%.1f %%</td>", peak, 100 * peak);
    } else {
        fputs("<td class=\"n\" data-v=\"\"></td>", p->file);
    }
    if (row->spread > 0) {
        fprintf(p->file, "<td class=\"n\" data-v=\"%.6g\">%.1f %%</td>", row->spread,
                100 * row->spread);
    } else {
        fputs("<td class=\"n\" data-v=\"\"></td>", p->file);
    }
    fprintf(p->file, "<td>%s</td><td class=\"date\">", report_nature_text(row->nature));
    text(p, row->date);
    fputs("</td></tr>\n", p->file);
}

static void table(const struct page *p) {
    static const struct {
        const char *text;
        bool number;
    } columns[] = {{"bench", false}, {"case", false},   {"device", false},
                   {"figure", true}, {"of best", true}, {"of peak", true},
                   {"spread", true}, {"kind", false},   {"date", false}};
    size_t shown = 0, left = 0;
    fputs("<section id=\"table\"><h2>Figures</h2>\n", p->file);
    choices(p);
    fputs("<div class=\"scroll\" tabindex=\"0\"><table id=\"figures\"><caption>Every case on every "
          "device, the newest result of each.</caption><thead><tr>",
          p->file);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        fprintf(p->file, "<th scope=\"col\"%s><button type=\"button\">%s</button></th>",
                columns[i].number ? " class=\"n\"" : "", columns[i].text);
    }
    fputs("</tr></thead><tbody>\n", p->file);
    for (size_t i = 0; i < p->r->row_count; i++) {
        const struct report_row *row = &p->r->rows[i];
        if (row->chosen && shown < MAX_TABLE) {
            figure_row(p, row);
            shown++;
        } else {
            left += row->chosen;
        }
    }
    fputs("</tbody></table></div>\n", p->file);
    if (left) {
        fprintf(p->file, "<p class=\"more\">%zu more figures are in the CSV.</p>\n", left);
    }
    fputs("</section>\n", p->file);
}

// ---- machines ----

static bool is_size(const char *key) {
    static const char *const keys[] = {"memory", "max_buffer", "max_binding", "shared_memory"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(keys[i], key) == 0) {
            return true;
        }
    }
    return false;
}

static void facts(const struct page *p, const struct report_source *s) {
    fputs("<dl>", p->file);
    for (size_t i = 0; i < s->fact_count; i++) {
        fputs("<dt>", p->file);
        text(p, s->facts[i].key);
        fputs("</dt><dd>", p->file);
        if (s->facts[i].text) {
            text(p, s->facts[i].text);
        } else {
            fprintf(p->file, "%.15g", s->facts[i].number);
        }
        if (!s->facts[i].text && is_size(s->facts[i].key)) {
            char size[REPORT_QUANTITY];
            report_quantity(s->facts[i].number, "B", size);
            fprintf(p->file, " <span class=\"soft\">%s</span>", size);
        }
        fputs("</dd>", p->file);
    }
    fputs("</dl>\n", p->file);
}

static void commands(const struct page *p, uint32_t contender) {
    fputs("<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th>date</th><th>gpurt</th>"
          "<th>rows</th><th>kind</th><th>command</th><th>file</th></tr></thead><tbody>\n",
          p->file);
    for (size_t i = 0; i < p->r->source_count; i++) {
        const struct report_source *s = &p->r->sources[i];
        if (s->contender != contender) {
            continue;
        }
        fputs("<tr><td class=\"date\">", p->file);
        text(p, s->date);
        fputs("</td><td>", p->file);
        text(p, s->version);
        fprintf(p->file, "</td><td class=\"n\">%zu%s</td><td>%s</td><td><code>", s->row_count,
                s->partial ? ", partial" : "", report_nature_text(s->nature));
        text(p, *s->command ? s->command : s->schema);
        fputs("</code></td><td><code>", p->file);
        text(p, s->file);
        fputs("</code></td></tr>\n", p->file);
    }
    fputs("</tbody></table></div>\n", p->file);
}

static void machines(const struct page *p) {
    fputs("<section id=\"machines\"><h2>Machines</h2>\n<p class=\"soft\">The newest record of each "
          "device, and every command that measured it.</p>\n",
          p->file);
    // One more than there are: sources whose rows name the device themselves.
    for (uint32_t c = 0; c <= p->r->contender_count; c++) {
        uint32_t contender = c < p->r->contender_count ? c : REPORT_NONE;
        const struct report_source *newest = NULL;
        size_t count = 0;
        for (size_t i = 0; i < p->r->source_count; i++) {
            const struct report_source *s = &p->r->sources[i];
            if (s->contender == contender) {
                newest = !newest || strcmp(s->date, newest->date) >= 0 ? s : newest;
                count++;
            }
        }
        if (!newest) {
            continue;
        }
        fputs("<details><summary>", p->file);
        const char *nobody =
            newest->nature == REPORT_STATIC ? "Devices that are not here" : "Sweeps";
        text(p, contender == REPORT_NONE ? nobody : label_of(p, contender));
        fprintf(p->file, " <span class=\"soft\">%zu command%s</span></summary>\n", count,
                count == 1 ? "" : "s");
        facts(p, newest);
        commands(p, contender);
        fputs("</details>\n", p->file);
    }
    fputs("</section>\n", p->file);
}

void report_write_html(FILE *file, const struct report_view *view) {
    struct page p = {.file = file, .view = view, .r = view->report};
    head(&p);
    summary(&p);
    if (view->changes) {
        changes(&p);
    }
    charts(&p);
    table(&p);
    report_write_static(file, p.r);
    machines(&p);
    fprintf(file,
            "</main>\n<footer>Written by <code>gpurt report</code>, version %s. Kinds of figures: "
            "measured on the device; static, by a compiler without the device; predicted, by a "
            "model of it. Spread is half the interquartile range.</footer>\n"
            "<script>\n%s</script>\n</body></html>\n",
            GPURT_VERSION, report_page_js);
}
