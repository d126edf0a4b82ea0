// SPDX-License-Identifier: Apache-2.0
// The charts of a report: one row of the table in chart.c each. A chart has a panel for every value
// of its panel keys, and a panel is what one SVG shows.
#ifndef APPS_REPORT_CHART_H
#define APPS_REPORT_CHART_H

#include <stdio.h>

#include "model.h"

#define CHART_MAX_PANELS 8   // of one chart; what is more is counted
#define CHART_MAX_TRIES 200  // values of its panel keys that are looked at
#define CHART_MAX_ROWS 14    // cases of one panel, the same
#define CHART_KEYS 8

struct chart_panel;

struct report_chart {
    const char *id;
    const char *title;
    const char *bench;              // whose rows it shows; NULL: curves
    const char *panel[CHART_KEYS];  // keys; ends with NULL
    const char *x;                  // lines: key of the axis across
    const char *x_title;
    const char *y;                  // lines: key of the value; NULL: the figure of the bench
    const char *y_unit;             // with y
    const char *stack[CHART_KEYS];  // stacks: keys of the parts, all of one unit, or with
    bool stack_rows;                // this the texts of their rows' key `phase`
    double stack_scale;             // to seconds
    bool log_x;
    bool predicted;    // shows predictions; others show what was measured
    const char *note;  // lines: what it says, behind how far apart its ends are; or NULL
    // Draws one panel: its rows, all chosen and good. False when they have nothing to show.
    bool (*draw)(FILE *file, const struct chart_panel *panel);
};

struct chart_panel {
    const struct report *report;
    const struct report_chart *chart;
    char id[64];
    char title[REPORT_TEXT];
    const struct report_row **rows;
    size_t count;
    const struct report_curve **curves;
    size_t curve_count;
};

extern const struct report_chart report_charts[];
extern const size_t report_chart_count;

// Draws a chart as one <figure> for each panel; how many there are.
size_t report_chart_write(FILE *file, const struct report *report,
                          const struct report_chart *chart);

// Of the drawing functions:
bool chart_lines(FILE *file, const struct chart_panel *panel);
bool chart_dots(FILE *file, const struct chart_panel *panel);
bool chart_stack(FILE *file, const struct chart_panel *panel);
bool chart_roof(FILE *file, const struct chart_panel *panel);
bool chart_curves(FILE *file, const struct chart_panel *panel);

// The snapshots of memory, a figure each.
void chart_memories(FILE *file, const struct report *report);

// The sweeps, three figures each: parallel coordinates, the metric over trials, importance.
void chart_sweeps(FILE *file, const struct report *report);

// The head of a figure, its legend of the contenders in `shown`, and its end.
void chart_begin(FILE *file, const struct chart_panel *panel);
void chart_legend(FILE *file, const struct chart_panel *panel, const bool *shown);
void chart_legend_item(FILE *file, const char *class, const char *text);
void chart_end(FILE *file, size_t left_out);
// What is shown when a mark is pointed at: contender, case, figure, spread, kind.
void chart_mark_title(const struct chart_panel *panel, const struct report_row *row,
                      char text[3 * REPORT_TEXT]);

#endif
