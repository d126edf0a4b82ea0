// SPDX-License-Identifier: Apache-2.0
// Figures over a number: one line for each contender. Of several rows at one place the best is
// shown, whatever its other settings.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "svg.h"
#include "text.h"
#include "cli/output/markup.h"

#define LEFT 52
#define RIGHT (SVG_WIDTH - 10)
#define TOP 22
#define BOTTOM 222
#define HEIGHT 262

struct place {
    uint32_t contender;
    double x, y;
    double low, high;  // of y; the same where nothing is known
    const struct report_row *row;
};

// By contender and place, the best figure of a place first.
static int by_value(const void *left, const void *right) {
    const struct place *a = left, *b = right;
    int order = (a->contender > b->contender) - (a->contender < b->contender);
    order = order ? order : (a->x > b->x) - (a->x < b->x);
    if (!order && a->row->value != b->row->value) {
        order = report_share(a->row->bench, a->row->value, b->row->value) > 1 ? -1 : 1;
    }
    return order;
}

static size_t collect(const struct chart_panel *panel, struct place *places) {
    const struct report_chart *chart = panel->chart;
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < panel->count; i++) {
        const struct report_row *row = panel->rows[i];
        double x = report_number(row, chart->x);
        double y = chart->y ? report_number(row, chart->y) : row->value;
        if (isfinite(x) && isfinite(y) && y > 0 && x >= 0 && (x > 0 || !chart->log_x)) {
            places[count++] = (struct place){
                row->contender, x, y, chart->y ? y : row->low, chart->y ? y : row->high, row};
        }
    }
    if (count) {
        qsort(places, count, sizeof *places, by_value);
    }
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || places[i].contender != places[kept - 1].contender ||
            places[i].x != places[kept - 1].x) {
            places[kept++] = places[i];
        }
    }
    return kept;
}

#define MAX_PLACES 40

// Labels at the places themselves, as many as have room; of many places, at round numbers.
static void axis_x(FILE *file, const struct svg_axis *axis, const struct place *places,
                   size_t count, const char *title) {
    double last = -1e9, value = -1;
    for (int places_left = MAX_PLACES; places_left > 0; places_left--) {
        double next = INFINITY;
        for (size_t i = 0; i < count; i++) {
            next = places[i].x > value && places[i].x < next ? places[i].x : next;
        }
        if (!isfinite(next)) {
            break;
        }
        char text[32];
        double x = svg_at(axis, next);
        snprintf(text, sizeof text, "%.10g", next);
        if (next >= 1e6) {
            svg_tick_text(next, text, sizeof text);
        }
        svg_line(file, "grid", x, TOP, x, BOTTOM);
        double half = svg_text_width(text) / 2;
        if (x - half > last + 6) {
            double at = x + half > SVG_WIDTH - 2 ? SVG_WIDTH - 2 - half : x;
            if (at - half > last + 6) {
                svg_text(file, "tick", at, BOTTOM + 17, 'm', 0, text);
                last = at + half;
            }
        }
        value = next;
    }
    svg_text(file, "axis", (LEFT + RIGHT) / 2.0, BOTTOM + 33, 'm', SVG_WIDTH - 20, title);
}

static void line_of(FILE *file, const struct chart_panel *panel, const struct place *places,
                    size_t count, const struct svg_axis axes[2]) {
    uint32_t contender = places[0].contender;
    uint32_t color = panel->report->contenders[contender].color;
    fprintf(file, "<polyline class=\"line c%u\" points=\"", color % SVG_COLORS);
    for (size_t i = 0; i < count; i++) {
        fprintf(file, "%s%.1f,%.1f", i ? " " : "", svg_at(&axes[0], places[i].x),
                svg_at(&axes[1], places[i].y));
    }
    fputs("\"/>\n", file);
    for (size_t i = 0; i < count; i++) {
        char title[3 * REPORT_TEXT], class[32];
        double x = svg_at(&axes[0], places[i].x), y = places[i].y;
        chart_mark_title(panel, places[i].row, title);
        if (panel->chart->y) {
            char quantity[REPORT_QUANTITY];
            report_quantity(y, panel->chart->y_unit, quantity);
            snprintf(title, sizeof title, "%s, %s: %s", panel->report->contenders[contender].label,
                     places[i].row->subject, quantity);
        }
        snprintf(class, sizeof class, "spread c%u", color % SVG_COLORS);
        if (places[i].high > 1.01 * y) {
            svg_line(file, class, x, svg_at(&axes[1], places[i].low), x,
                     svg_at(&axes[1], places[i].high));
        }
        svg_mark(file, color, x, svg_at(&axes[1], y), title);
    }
}

// How many times as good the best is as the least of those at one place; there is one.
static double apart(const struct place *places, size_t count, double x, const struct place **best,
                    const struct place **least) {
    *best = *least = &places[0];
    for (size_t i = 0; i < count; i++) {
        if (places[i].x == x) {
            *best = (*best)->x != x || places[i].y > (*best)->y ? &places[i] : *best;
            *least = (*least)->x != x || places[i].y < (*least)->y ? &places[i] : *least;
        }
    }
    return (*best)->y / (*least)->y;
}

// What the chart says of its question: how far apart the contenders are at its two ends.
static void write_note(FILE *file, const struct chart_panel *panel, const struct place *places,
                       size_t count) {
    const struct place *best, *least;
    double ends[2] = {places[0].x, places[0].x};
    for (size_t i = 0; i < count; i++) {
        ends[0] = fmin(ends[0], places[i].x);
        ends[1] = fmax(ends[1], places[i].x);
    }
    fputs("<p class=\"note\">", file);
    for (int k = 0; k < 2; k++) {
        double times = apart(places, count, ends[k], &best, &least);
        fprintf(file, "At %.10g %s ", ends[k], panel->chart->x_title);
        markup_text(file, panel->report->contenders[best->contender].label);
        fprintf(file, " is %.1f times ", times);
        markup_text(file, panel->report->contenders[least->contender].label);
        fputs(". ", file);
    }
    markup_text(file, panel->chart->note);
    fputs("</p>", file);
}

static void draw(FILE *file, const struct chart_panel *panel, const struct place *places,
                 size_t count, bool *shown) {
    struct svg_axis axes[2] = {{.log = panel->chart->log_x, .from = LEFT + 8, .to = RIGHT - 8},
                               {.from = BOTTOM, .to = TOP}};
    const char *unit = panel->chart->y ? panel->chart->y_unit : panel->rows[0]->bench->unit;
    double lo[2] = {INFINITY, INFINITY}, hi[2] = {-INFINITY, -INFINITY};
    size_t best = 0;
    char about[3 * REPORT_TEXT], title[2 * REPORT_TEXT];
    for (size_t i = 0; i < count; i++) {
        lo[0] = fmin(lo[0], places[i].x);
        hi[0] = fmax(hi[0], places[i].x);
        lo[1] = fmin(lo[1], places[i].low);
        hi[1] = fmax(hi[1], places[i].high);
        best = report_share(places[i].row->bench, places[i].y, places[best].y) > 1 ? i : best;
        shown[places[i].contender] = true;
    }
    // Across the axis ends at the places; upwards it is logarithmic where figures are far apart.
    axes[0].min = lo[0];
    axes[0].max = hi[0];
    axes[1].log = hi[1] / lo[1] > 20;
    svg_axis_fit(&axes[1], lo[1], hi[1]);
    chart_begin(file, panel);
    chart_legend(file, panel, shown);
    chart_mark_title(panel, places[best].row, about);
    snprintf(title, sizeof title, "%s, %s", panel->chart->title, panel->title);
    svg_begin(file, panel->id, HEIGHT, title, about);
    svg_plot(file, LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP);
    char text[128];
    snprintf(text, sizeof text, "%s%s", unit, axes[1].log ? ", logarithmic" : "");
    svg_axis_y(file, &axes[1], LEFT, RIGHT, text);
    axis_x(file, &axes[0], places, count, panel->chart->x_title);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && places[end].contender == places[i].contender; end++) {
        }
        line_of(file, panel, places + i, end - i, axes);
    }
    svg_end(file);
    if (panel->chart->note) {
        write_note(file, panel, places, count);
    }
    chart_end(file, 0);
}

bool chart_lines(FILE *file, const struct chart_panel *panel) {
    struct place *places = calloc(panel->count, sizeof *places);
    bool *shown = calloc(panel->report->contender_count, sizeof *shown);
    size_t count = places && shown ? collect(panel, places) : 0;
    bool several = false;
    for (size_t i = 1; i < count; i++) {
        several = several || places[i].x != places[0].x;
    }
    if (several) {
        draw(file, panel, places, count, shown);
    }
    free(places);
    free(shown);
    return several;
}

// ---- learning curves ----

bool chart_curves(FILE *file, const struct chart_panel *panel) {
    struct svg_axis axes[2] = {{.from = LEFT, .to = RIGHT}, {.from = BOTTOM, .to = TOP}};
    double lo[2] = {INFINITY, INFINITY}, hi[2] = {-INFINITY, -INFINITY};
    bool *shown = calloc(panel->report->contender_count, sizeof *shown);
    char title[2 * REPORT_TEXT], about[128];
    if (!shown) {
        return false;
    }
    for (size_t c = 0; c < panel->curve_count; c++) {
        const struct report_curve *curve = panel->curves[c];
        shown[curve->contender] = true;
        for (size_t i = 0; i < curve->count; i++) {
            const double values[2] = {curve->points[i].seconds, curve->points[i].value};
            for (int k = 0; k < 2; k++) {
                lo[k] = values[k] < lo[k] ? values[k] : lo[k];
                hi[k] = values[k] > hi[k] ? values[k] : hi[k];
            }
        }
    }
    // A loss falls over decades, a return does not.
    axes[1].log = lo[1] > 0 && hi[1] / lo[1] > 50 && strstr(panel->curves[0]->what, "loss");
    svg_axis_fit(&axes[0], lo[0], hi[0]);
    svg_axis_fit(&axes[1], lo[1], hi[1]);
    chart_begin(file, panel);
    chart_legend(file, panel, shown);
    snprintf(title, sizeof title, "%s, %s", panel->chart->title, panel->title);
    snprintf(about, sizeof about, "%zu runs, from %.4g to %.4g, over %.4g seconds",
             panel->curve_count, lo[1], hi[1], hi[0]);
    svg_begin(file, panel->id, HEIGHT, title, about);
    svg_plot(file, LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP);
    svg_axis_y(file, &axes[1], LEFT, RIGHT, panel->curves[0]->what);
    svg_axis_x(file, &axes[0], TOP, BOTTOM, "seconds of training");
    for (size_t c = 0; c < panel->curve_count; c++) {
        const struct report_curve *curve = panel->curves[c];
        // A thousand points are more than pixels show.
        size_t step = curve->count / 500 + 1;
        fprintf(file, "<polyline class=\"line run c%u\" points=\"",
                panel->report->contenders[curve->contender].color % SVG_COLORS);
        for (size_t i = 0; i < curve->count; i += step) {
            fprintf(file, "%.1f,%.1f ", svg_at(&axes[0], curve->points[i].seconds),
                    svg_at(&axes[1], curve->points[i].value));
        }
        fputs("\"><title>", file);
        markup_text(file, panel->report->contenders[curve->contender].label);
        fputs(", ", file);
        markup_text(file, curve->name);
        fputs("</title></polyline>\n", file);
    }
    svg_end(file);
    chart_end(file, 0);
    free(shown);
    return true;
}
