// SPDX-License-Identifier: Apache-2.0
// A sweep: parallel coordinates, where a line is a trial from axis to axis; the metric over trials
// with the best so far; and the importance of each parameter.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "cli/output/markup.h"
#include "svg.h"
#include "text.h"

#define LEFT 52
#define RIGHT (SVG_WIDTH - 12)
#define TOP 26
#define BOTTOM 222
#define HEIGHT 256
#define MOST_AXES 6      // of parameters, the most important
#define MOST_LINES 1500  // that are drawn, the best
#define QUARTERS 4       // colours of trials, by rank

struct sheet {
    FILE *file;
    const struct report *report;
    const struct report_sweep *sweep;
    size_t number;
    uint32_t *order;  // trials with a value, the worst first
    size_t count;
};

static const struct report_sweep *sorted;

static int by_value(const void *left, const void *right) {
    double a = sorted->trials[*(const uint32_t *)left].value;
    double b = sorted->trials[*(const uint32_t *)right].value;
    int order = (a > b) - (a < b);
    return sorted->maximize ? order : -order;
}

static void begin(const struct sheet *s, const char *id, const char *title,
                  struct report_chart *chart, struct chart_panel *panel) {
    *chart = (struct report_chart){.id = id, .title = title};
    *panel = (struct chart_panel){.report = s->report, .chart = chart};
    snprintf(panel->id, sizeof panel->id, "%s-%zu", id, s->number + 1);
    snprintf(panel->title, sizeof panel->title, "%.300s",
             s->report->sources[s->sweep->source].file);
    chart_begin(s->file, panel);
}

static void text_of(const struct report_sweep *s, const struct report_trial *t,
                    char text[REPORT_TEXT]) {
    size_t used =
        (size_t)snprintf(text, REPORT_TEXT, "trial %u: %.60s %.6g", t->number, s->metric, t->value);
    for (size_t i = 0; i < s->parameter_count && used < REPORT_TEXT; i++) {
        const struct report_cell *v = &t->values[i];
        const char *name = s->parameters[i].name;
        used +=
            v->text
                ? (size_t)snprintf(text + used, REPORT_TEXT - used, ", %s=%s", name, v->text)
                : (size_t)snprintf(text + used, REPORT_TEXT - used, ", %s=%.6g", name, v->number);
    }
}

// ---- parallel coordinates ----

struct axis {
    size_t parameter;  // its number; parameter_count: the metric
    double x;
    struct svg_axis scale;
};

static double place_of(const struct report_sweep *s, const struct axis *axis,
                       const struct report_trial *t) {
    return axis->parameter < s->parameter_count ? t->places[axis->parameter] : t->value;
}

static void fit(const struct sheet *s, struct axis *axis) {
    double lo = INFINITY, hi = -INFINITY;
    bool metric = axis->parameter == s->sweep->parameter_count;
    for (size_t i = 0; i < s->count; i++) {
        double place = place_of(s->sweep, axis, &s->sweep->trials[s->order[i]]);
        lo = place < lo ? place : lo;
        hi = place > hi ? place : hi;
    }
    bool words = !metric && s->sweep->parameters[axis->parameter].words;
    axis->scale = (struct svg_axis){.from = BOTTOM, .to = TOP};
    axis->scale.log = metric
                          ? lo > 0 && hi / lo > 50
                          : s->sweep->parameters[axis->parameter].log || (lo > 0 && hi / lo > 50);
    if (words) {
        axis->scale.min = lo - 0.5;
        axis->scale.max = hi + 0.5;
    } else {
        svg_axis_fit(&axis->scale, lo, hi);
    }
}

static void draw_axis(const struct sheet *s, const struct axis *axis, bool last) {
    const struct report_sweep *sweep = s->sweep;
    bool metric = axis->parameter == sweep->parameter_count;
    double ticks[SVG_MAX_TICKS];
    svg_line(s->file, "grid", axis->x, TOP, axis->x, BOTTOM);
    svg_text(s->file, "label", axis->x, TOP - 12,
             axis->x < LEFT + 20 ? 's'
             : last              ? 'e'
                                 : 'm',
             90, metric ? sweep->metric : sweep->parameters[axis->parameter].name);
    if (!metric && sweep->parameters[axis->parameter].words) {
        double shown = -1;
        for (size_t i = 0; i < sweep->count && shown < 12; i++) {
            double place = sweep->trials[i].places[axis->parameter];
            const struct report_cell *v = &sweep->trials[i].values[axis->parameter];
            char number[32];
            snprintf(number, sizeof number, "%.6g", v->number);
            if (place > shown) {
                svg_text(s->file, "tick", axis->x + (last ? -4 : 4),
                         svg_at(&axis->scale, place) + 4, last ? 'e' : 's', 56,
                         v->text ? v->text : number);
                shown = place;
            }
        }
        return;
    }
    size_t count = svg_ticks(&axis->scale, 26, ticks);
    for (size_t i = 0; i < count; i++) {
        char text[32];
        svg_tick_text(ticks[i], text, sizeof text);
        svg_text(s->file, "tick", axis->x + (last ? -4 : 4), svg_at(&axis->scale, ticks[i]) + 4,
                 last ? 'e' : 's', 56, text);
    }
}

// The most important parameters, in the order of the sweep, and the metric at the right.
static size_t choose_axes(const struct sheet *s, struct axis axes[MOST_AXES + 1]) {
    const struct report_sweep *sweep = s->sweep;
    size_t count = 0;
    for (size_t p = 0; p < sweep->parameter_count; p++) {
        size_t ahead = 0;
        for (size_t k = 0; k < sweep->parameter_count; k++) {
            double own = sweep->parameters[p].importance, other = sweep->parameters[k].importance;
            own = isnan(own) ? -1 : own;
            other = isnan(other) ? -1 : other;
            ahead += other > own || (other == own && k < p);
        }
        if (ahead < MOST_AXES) {
            axes[count++].parameter = p;
        }
    }
    axes[count++].parameter = sweep->parameter_count;
    for (size_t i = 0; i < count; i++) {
        axes[i].x = 16 + (RIGHT - 16) * (double)i / (double)(count - 1);
        fit(s, &axes[i]);
    }
    return count;
}

static void draw_parallel(const struct sheet *s) {
    static const char *const quarters[QUARTERS] = {"best quarter", "second", "third", "last"};
    static const char *const classes[QUARTERS] = {"c0", "p2", "p1", "p0"};
    struct report_chart chart;
    struct chart_panel panel;
    struct axis axes[MOST_AXES + 1] = {0};
    char about[128], text[REPORT_TEXT];
    size_t count = choose_axes(s, axes);
    begin(s, "sweep", "Trials of a sweep", &chart, &panel);
    for (int q = 0; q < QUARTERS; q++) {
        chart_legend_item(s->file, classes[q], quarters[q]);
    }
    fputs("</ul>\n", s->file);
    snprintf(about, sizeof about, "%zu trials over %zu parameters", s->count, count - 1);
    svg_begin(s->file, panel.id, HEIGHT - 20, chart.title, about);
    for (size_t i = s->count > MOST_LINES ? s->count - MOST_LINES : 0; i < s->count; i++) {
        const struct report_trial *t = &s->sweep->trials[s->order[i]];
        size_t quarter = (s->count - 1 - i) * QUARTERS / s->count;
        fprintf(s->file, "<polyline class=\"line %s\" points=\"", classes[quarter]);
        for (size_t k = 0; k < count; k++) {
            fprintf(s->file, "%s%.1f,%.1f", k ? " " : "", axes[k].x,
                    svg_at(&axes[k].scale, place_of(s->sweep, &axes[k], t)));
        }
        fputs("\"><title>", s->file);
        text_of(s->sweep, t, text);
        markup_text(s->file, text);
        fputs("</title></polyline>\n", s->file);
    }
    for (size_t i = 0; i < count; i++) {
        draw_axis(s, &axes[i], i + 1 == count);
    }
    svg_end(s->file);
    if (count - 1 < s->sweep->parameter_count) {
        fprintf(s->file, "<p class=\"more\">The %zu most important of %zu parameters.</p>",
                count - 1, s->sweep->parameter_count);
    }
    chart_end(s->file, 0);
}

// ---- the metric over trials ----

static void draw_metric(const struct sheet *s) {
    const struct report_sweep *sweep = s->sweep;
    struct report_chart chart;
    struct chart_panel panel;
    struct svg_axis axes[] = {{.from = LEFT, .to = RIGHT}, {.from = BOTTOM, .to = TOP}};
    double lo = INFINITY, hi = -INFINITY, best = NAN, last = 0;
    char text[REPORT_TEXT], about[128];
    for (size_t i = 0; i < sweep->count; i++) {
        const struct report_trial *t = &sweep->trials[i];
        if (!isnan(t->value)) {
            lo = t->value < lo ? t->value : lo;
            hi = t->value > hi ? t->value : hi;
            last = t->number > last ? t->number : last;
        }
    }
    axes[1].log = lo > 0 && hi / lo > 50;
    svg_axis_fit(&axes[0], 0, last > 0 ? last : 1);
    svg_axis_fit(&axes[1], lo, hi);
    begin(s, "sweep-metric", "The metric over trials", &chart, &panel);
    chart_legend_item(s->file, "c0 s0", "a trial");
    chart_legend_item(s->file, "p1", "the best so far");
    fputs("</ul>\n", s->file);
    snprintf(about, sizeof about, "%zu trials, from %.4g to %.4g", s->count, lo, hi);
    svg_begin(s->file, panel.id, HEIGHT, chart.title, about);
    svg_plot(s->file, LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP);
    svg_axis_y(s->file, &axes[1], LEFT, RIGHT, sweep->metric);
    svg_axis_x(s->file, &axes[0], TOP, BOTTOM, "trial");
    fputs("<polyline class=\"line p1\" points=\"", s->file);
    for (size_t i = 0; i < sweep->count; i++) {
        const struct report_trial *t = &sweep->trials[i];
        if (isnan(t->value)) {
            continue;
        }
        bool better = isnan(best) || (sweep->maximize ? t->value > best : t->value < best);
        double x = svg_at(&axes[0], t->number);
        if (better && !isnan(best)) {
            fprintf(s->file, "%.1f,%.1f ", x, svg_at(&axes[1], best));
        }
        best = better ? t->value : best;
        fprintf(s->file, "%.1f,%.1f ", x, svg_at(&axes[1], best));
    }
    fputs("\"/>\n", s->file);
    for (size_t i = 0; i < s->count; i++) {
        const struct report_trial *t = &sweep->trials[s->order[i]];
        text_of(sweep, t, text);
        svg_mark(s->file, 0, svg_at(&axes[0], t->number), svg_at(&axes[1], t->value), text);
    }
    svg_end(s->file);
    chart_end(s->file, 0);
}

// ---- importance ----

static void draw_importance(const struct sheet *s) {
    const struct report_sweep *sweep = s->sweep;
    struct report_chart chart;
    struct chart_panel panel;
    struct svg_axis axis = {.min = 0, .max = 1, .from = 10, .to = SVG_WIDTH - 10};
    size_t known = 0;
    for (size_t i = 0; i < sweep->parameter_count; i++) {
        known += !isnan(sweep->parameters[i].importance);
    }
    if (known == 0) {
        return;
    }
    begin(s, "sweep-importance", "Importance of the parameters", &chart, &panel);
    fputs("</ul>\n", s->file);
    svg_begin(s->file, panel.id, 36 * (double)known + 10, chart.title,
              "share of the variance of the ranks that each parameter explains alone");
    double y = 0;
    for (size_t i = 0; i < sweep->parameter_count; i++) {
        const struct report_parameter *p = &sweep->parameters[i];
        char text[32];
        if (isnan(p->importance)) {
            continue;
        }
        snprintf(text, sizeof text, "%.2f", p->importance);
        svg_text(s->file, "label", axis.from, y + 14, 's', SVG_WIDTH - 80, p->name);
        svg_text(s->file, "value", axis.to, y + 14, 'e', 0, text);
        svg_line(s->file, "track", axis.from, y + 24, axis.to, y + 24);
        svg_line(s->file, "bar c0", axis.from, y + 24, svg_at(&axis, p->importance), y + 24);
        y += 36;
    }
    svg_end(s->file);
    fputs("<p class=\"more\">The share of the variance of the trials' ranks that a parameter "
          "explains alone: the squared rank correlation (Spearman), of words and of at most five "
          "values the correlation ratio. With few trials a part of it is chance.</p>",
          s->file);
    chart_end(s->file, 0);
}

void chart_sweeps(FILE *file, const struct report *report) {
    for (size_t i = 0; i < report->sweep_count; i++) {
        struct sheet s = {.file = file, .report = report, .sweep = &report->sweeps[i], .number = i};
        s.order = calloc(s.sweep->count + 1, sizeof *s.order);
        for (size_t k = 0; s.order && k < s.sweep->count; k++) {
            if (!isnan(s.sweep->trials[k].value)) {
                s.order[s.count++] = (uint32_t)k;
            }
        }
        if (s.count > 0) {
            sorted = s.sweep;
            qsort(s.order, s.count, sizeof *s.order, by_value);
            draw_parallel(&s);
            draw_metric(&s);
            draw_importance(&s);
        }
        free(s.order);
    }
}
