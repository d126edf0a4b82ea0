// SPDX-License-Identifier: Apache-2.0
// The roofline of a contender: products by the operations they do for each byte that must move, the
// bandwidth that copies reach, and the peak of each type. Only where the record has all three.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "svg.h"

#define LEFT 52
#define RIGHT (SVG_WIDTH - 12)
#define TOP 22
#define BOTTOM 242
#define HEIGHT 282

static const char *const types[] = {"f32", "f16", "bf16"};
#define TYPES (sizeof types / sizeof *types)

struct roof {
    double bandwidth;  // B/s
    double peaks[TYPES];
    double lo[2], hi[2];
};

static size_t type_of(const struct report_row *row) {
    const struct report_cell *cell = report_cell(row, "precision");
    size_t i = 0;
    while (i < TYPES && (!cell || !cell->text || strcmp(cell->text, types[i]) != 0)) {
        i++;
    }
    return i;
}

// Operations of a product for each byte of its operands and result; 0: not known.
static double intensity_of(const struct report_row *row) {
    const struct report_cell *cell = report_cell(row, "shape");
    size_t type = type_of(row);
    double m = 0, n = 0, k = 0;
    char *end = NULL;
    if (!cell || !cell->text || type == TYPES) {
        return 0;
    }
    m = strtod(cell->text, &end);
    n = *end == 'x' ? strtod(end + 1, &end) : 0;
    k = *end == 'x' ? strtod(end + 1, &end) : 0;
    double bytes = (m * k + k * n + m * n) * (type == 0 ? 4 : 2);
    double intensity = m > 0 && n > 0 && k > 0 ? 2 * m * n * k / bytes : 0;
    return isfinite(intensity) ? intensity : 0;
}

// A copy counts read and written, as products do.
static double bandwidth_of(const struct report *r, uint32_t contender) {
    double best = 0;
    for (size_t i = 0; i < r->row_count; i++) {
        const struct report_row *row = &r->rows[i];
        const struct report_cell *test = report_cell(row, "test");
        if (row->contender == contender && row->chosen && row->good &&
            strcmp(row->bench->name, "memory") == 0 && test && test->text &&
            strcmp(test->text, "device copy") == 0 && row->value > best) {
            best = row->value;
        }
    }
    return best;
}

static bool measure(const struct chart_panel *panel, struct roof *roof) {
    *roof = (struct roof){.lo = {INFINITY, INFINITY}};
    bool peak = false;
    for (size_t i = 0; i < panel->count; i++) {
        const struct report_row *row = panel->rows[i];
        size_t type = type_of(row);
        double x = intensity_of(row), share = report_number(row, "of_peak");
        if (x <= 0) {
            continue;
        }
        if (share > 0 && row->value / share > roof->peaks[type]) {
            roof->peaks[type] = row->value / share;
            peak = true;
        }
        double values[2] = {x, row->value};
        for (int k = 0; k < 2; k++) {
            roof->lo[k] = values[k] < roof->lo[k] ? values[k] : roof->lo[k];
            roof->hi[k] = values[k] > roof->hi[k] ? values[k] : roof->hi[k];
        }
    }
    roof->bandwidth = bandwidth_of(panel->report, panel->rows[0]->contender);
    for (size_t t = 0; t < TYPES; t++) {
        roof->hi[1] = roof->peaks[t] > roof->hi[1] ? roof->peaks[t] : roof->hi[1];
    }
    return peak && roof->bandwidth > 0;
}

// Bandwidth up to the highest peak, then each peak from where the bandwidth meets it.
static void draw_roof(FILE *file, const struct roof *roof, const struct svg_axis axes[2]) {
    double top = 0;
    for (size_t t = 0; t < TYPES; t++) {
        top = roof->peaks[t] > top ? roof->peaks[t] : top;
    }
    double begin = axes[0].min, end = top / roof->bandwidth;
    begin = begin * roof->bandwidth < axes[1].min ? axes[1].min / roof->bandwidth : begin;
    end = end > axes[0].max ? axes[0].max : end;
    if (end > begin) {
        svg_line(file, "roof", svg_at(&axes[0], begin), svg_at(&axes[1], begin * roof->bandwidth),
                 svg_at(&axes[0], end), svg_at(&axes[1], end * roof->bandwidth));
    }
    for (size_t t = 0; t < TYPES; t++) {
        char class[32];
        double from = roof->peaks[t] / roof->bandwidth;
        from = from < axes[0].min ? axes[0].min : from;
        snprintf(class, sizeof class, "roof c%zu", t);
        if (roof->peaks[t] > 0 && from < axes[0].max) {
            svg_line(file, class, svg_at(&axes[0], from), svg_at(&axes[1], roof->peaks[t]),
                     axes[0].to, svg_at(&axes[1], roof->peaks[t]));
        }
    }
}

bool chart_roof(FILE *file, const struct chart_panel *panel) {
    struct roof roof;
    struct svg_axis axes[2] = {{.log = true, .from = LEFT, .to = RIGHT},
                               {.log = true, .from = BOTTOM, .to = TOP}};
    char title[2 * REPORT_TEXT], about[160];
    bool shown[TYPES] = {false};
    if (!measure(panel, &roof)) {
        return false;
    }
    svg_axis_fit(&axes[0], roof.lo[0], roof.hi[0]);
    svg_axis_fit(&axes[1], roof.lo[1], roof.hi[1]);
    for (size_t i = 0; i < panel->count; i++) {
        size_t type = type_of(panel->rows[i]);
        shown[type < TYPES ? type : 0] |= type < TYPES;
    }
    chart_begin(file, panel);
    for (size_t t = 0; t < TYPES; t++) {
        char class[32];
        snprintf(class, sizeof class, "c%zu s%zu", t, t);
        if (shown[t]) {
            chart_legend_item(file, class, types[t]);
        }
    }
    chart_legend_item(file, "stroke", "roof: bandwidth of copies, peak of each type");
    fputs("</ul>\n", file);
    snprintf(title, sizeof title, "%s, %s", panel->chart->title, panel->title);
    snprintf(about, sizeof about, "%zu products, bandwidth %.4g GB/s, highest peak %.4g GFLOP/s",
             panel->count, roof.bandwidth / 1e9, roof.hi[1] / 1e9);
    svg_begin(file, panel->id, HEIGHT, title, about);
    svg_plot(file, LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP);
    svg_axis_y(file, &axes[1], LEFT, RIGHT, "FLOP/s, logarithmic");
    svg_axis_x(file, &axes[0], TOP, BOTTOM, "FLOP for each byte that must move, logarithmic");
    draw_roof(file, &roof, axes);
    for (size_t i = 0; i < panel->count; i++) {
        double x = intensity_of(panel->rows[i]);
        if (x > 0) {
            char text[3 * REPORT_TEXT];
            chart_mark_title(panel, panel->rows[i], text);
            svg_mark(file, (uint32_t)type_of(panel->rows[i]), svg_at(&axes[0], x),
                     svg_at(&axes[1], panel->rows[i]->value), text);
        }
    }
    svg_end(file);
    chart_end(file, 0);
    return true;
}
