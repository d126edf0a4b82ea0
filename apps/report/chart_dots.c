// SPDX-License-Identifier: Apache-2.0
// Figures by case: a line for each case, a mark on it for each contender, and a thin stroke in the
// contender's colour for its peak, where the record knows that.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "svg.h"
#include "text.h"

#define LEFT 10
#define RIGHT (SVG_WIDTH - 10)
#define TOP 6
#define STEP 36
#define LABEL 12  // from the top of a line to the foot of its text
#define MARKS 24  // and to its marks

// What the device could do at most; 0: not known.
static double peak_of(const struct report_row *row) {
    double share = report_number(row, "of_peak");
    return share > 0 && isfinite(share) ? row->value / share : 0;
}

struct line {
    size_t first, last;  // rows of the panel, [first, last)
    uint32_t rivals;
    size_t number;
};

// Cases that several contenders have come first where not all can be shown.
static int by_rivals(const void *left, const void *right) {
    const struct line *a = left, *b = right;
    int order = (a->rivals < b->rivals) - (a->rivals > b->rivals);
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

static int by_number(const void *left, const void *right) {
    const struct line *a = left, *b = right;
    return (a->number > b->number) - (a->number < b->number);
}

static size_t lines_of(const struct chart_panel *panel, struct line *lines) {
    size_t count = 0;
    for (size_t i = 0, end; i < panel->count; i = end) {
        for (end = i;
             end < panel->count && strcmp(panel->rows[end]->subject, panel->rows[i]->subject) == 0;
             end++) {
        }
        lines[count] = (struct line){i, end, panel->rows[i]->rivals, count};
        count++;
    }
    return count;
}

static void draw_line(FILE *file, const struct chart_panel *panel, const struct line *line,
                      const struct svg_axis *axis, double y) {
    char text[REPORT_TEXT], best_text[REPORT_QUANTITY];
    const struct report_row *best = panel->rows[line->first];
    for (size_t i = line->first; i < line->last; i++) {
        best = panel->rows[i]->of_best > best->of_best ? panel->rows[i] : best;
    }
    report_case_text(best, "", NULL, panel->chart->panel, text);
    report_quantity(best->value, best->bench->unit, best_text);
    double room = RIGHT - LEFT - svg_text_width(best_text) - 14;
    svg_text(file, "label", LEFT, y + LABEL, 's', room, text);
    svg_text(file, "value", RIGHT, y + LABEL, 'e', 0, best_text);
    svg_line(file, "track", axis->from, y + MARKS, axis->to, y + MARKS);
    for (size_t i = line->first; i < line->last; i++) {
        const struct report_row *row = panel->rows[i];
        uint32_t color = panel->report->contenders[row->contender].color % SVG_COLORS;
        char class[32];
        double peak = peak_of(row);
        snprintf(class, sizeof class, "peak c%u", color);
        if (peak > 0) {
            double x = svg_at(axis, peak);
            svg_line(file, class, x, y + MARKS - 7, x, y + MARKS + 7);
        }
        snprintf(class, sizeof class, "spread c%u", color);
        if (row->high > 1.01 * row->value) {
            svg_line(file, class, svg_at(axis, row->low), y + MARKS, svg_at(axis, row->high),
                     y + MARKS);
        }
    }
    double middle = (double)(line->last - line->first - 1) / 2;
    for (size_t i = line->first; i < line->last; i++) {
        char title[3 * REPORT_TEXT];
        // Marks of the same figure are both seen, one a little above the other.
        double shift = ((double)(i - line->first) - middle) * (middle > 0 ? 2.5 / middle : 0);
        chart_mark_title(panel, panel->rows[i], title);
        svg_mark(file, panel->report->contenders[panel->rows[i]->contender].color,
                 svg_at(axis, panel->rows[i]->value), y + MARKS + shift, title);
    }
}

static void draw(FILE *file, const struct chart_panel *panel, struct line *lines, size_t count,
                 bool *shown) {
    struct svg_axis axis = {.from = LEFT + 6, .to = RIGHT - 6};
    const struct report_bench *bench = panel->rows[0]->bench;
    double lo = INFINITY, hi = 0;
    bool peaks = false;
    size_t left_out = count > CHART_MAX_ROWS ? count - CHART_MAX_ROWS : 0;
    char text[128], title[2 * REPORT_TEXT], about[3 * REPORT_TEXT];
    qsort(lines, count, sizeof *lines, by_rivals);
    count -= left_out;
    qsort(lines, count, sizeof *lines, by_number);
    for (size_t n = 0; n < count; n++) {
        for (size_t i = lines[n].first; i < lines[n].last; i++) {
            double peak = peak_of(panel->rows[i]);
            lo = fmin(lo, panel->rows[i]->low);
            hi = fmax(hi, panel->rows[i]->high);
            hi = peak > hi ? peak : hi;
            peaks = peaks || peak > 0;
            shown[panel->rows[i]->contender] = true;
        }
    }
    axis.log = hi / lo > 8;
    svg_axis_fit(&axis, axis.log ? lo : 0, hi);
    double bottom = TOP + (double)count * STEP;
    chart_begin(file, panel);
    if (peaks) {
        chart_legend_item(file, "stroke", "peak of the device");
    }
    chart_legend(file, panel, shown);
    snprintf(title, sizeof title, "%s%s%s", panel->chart->title, panel->title[0] ? ", " : "",
             panel->title);
    chart_mark_title(panel, panel->rows[lines[0].first], about);
    svg_begin(file, panel->id, bottom + 41, title, about);
    svg_plot(file, LEFT, TOP, RIGHT - LEFT, bottom - TOP);
    snprintf(text, sizeof text, "%s%s%s", bench->unit, axis.log ? ", logarithmic" : "",
             bench->lower ? ", less is better" : "");
    svg_axis_x(file, &axis, TOP, bottom, text);
    for (size_t n = 0; n < count; n++) {
        draw_line(file, panel, &lines[n], &axis, TOP + (double)n * STEP);
    }
    svg_end(file);
    chart_end(file, left_out);
}

bool chart_dots(FILE *file, const struct chart_panel *panel) {
    struct line *lines = calloc(panel->count, sizeof *lines);
    bool *shown = calloc(panel->report->contender_count, sizeof *shown);
    bool good = lines && shown;
    if (good) {
        draw(file, panel, lines, lines_of(panel, lines), shown);
    }
    free(lines);
    free(shown);
    return good;
}
