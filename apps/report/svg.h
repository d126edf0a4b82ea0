// SPDX-License-Identifier: Apache-2.0
// The few shapes that charts are drawn with, and axes. Colours come from the page's style, by
// class: c0 to c7 of contenders, p0 to p7 of parts.
#ifndef APPS_REPORT_SVG_H
#define APPS_REPORT_SVG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SVG_WIDTH 420   // of every chart: a phone's page shows it nearly as it is
#define SVG_LETTER 6.4  // width of a letter of the page's 11 px font, at most on average
#define SVG_MAX_TICKS 12
#define SVG_COLORS 8

struct svg_axis {
    double min, max;  // of values
    bool log;
    double from, to;  // pixels of min and max
};

// Fits the axis around values from lo to hi, ends at round numbers.
void svg_axis_fit(struct svg_axis *axis, double lo, double hi);
// The pixel of a value; one outside is put on the end.
double svg_at(const struct svg_axis *axis, double value);
// Values at which the axis has labels, at least `apart` pixels from each other; how many.
size_t svg_ticks(const struct svg_axis *axis, double apart, double ticks[SVG_MAX_TICKS]);
// "10 k", "0.5"
void svg_tick_text(double value, char *text, size_t size);

// Begins and ends a chart of this height, with the text that a screen reader reads.
void svg_begin(FILE *file, const char *id, double height, const char *title, const char *about);
void svg_end(FILE *file);

// Text of a class ("tick", "label", "value"); anchor 's', 'm' or 'e'. What is wider than `room`
// pixels is cut and ends in "…"; room 0: it is not.
void svg_text(FILE *file, const char *class, double x, double y, char anchor, double room,
              const char *text);
void svg_line(FILE *file, const char *class, double x1, double y1, double x2, double y2);
// The frame that all marks of a chart lie in.
void svg_plot(FILE *file, double x, double y, double width, double height);
// Which of the four shapes goes with a number: what has the same colour has another shape.
uint32_t svg_shape(uint32_t number);
// The mark of a contender's colour, or any number: shape and colour by it; `title` is shown when
// it is pointed at.
void svg_mark(FILE *file, uint32_t number, double x, double y, const char *title);

// Both axes of a chart with their lines across and their titles: value axes.
void svg_axis_x(FILE *file, const struct svg_axis *axis, double top, double bottom,
                const char *title);
void svg_axis_y(FILE *file, const struct svg_axis *axis, double left, double right,
                const char *title);

double svg_text_width(const char *text);

#endif
