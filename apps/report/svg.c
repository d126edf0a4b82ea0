// SPDX-License-Identifier: Apache-2.0
#include "svg.h"

#include <math.h>
#include <string.h>

#include "cli/output/markup.h"
#include "base/visible.h"

// The next of 1, 2, 5 times a power of ten, at or above (or below) a value above 0.
static double round_number(double value, bool up) {
    double power = pow(10, floor(log10(value) + 1e-9)), part = value / power;
    static const double steps[] = {1, 2, 5, 10};
    if (up) {
        for (int i = 0; i < 4; i++) {
            if (part <= steps[i] * (1 + 1e-9)) {
                return steps[i] * power;
            }
        }
    }
    for (int i = 3; i >= 0; i--) {
        if (part >= steps[i] * (1 - 1e-9)) {
            return steps[i] * power;
        }
    }
    return power;
}

void svg_axis_fit(struct svg_axis *axis, double lo, double hi) {
    if (axis->log) {
        axis->min = round_number(lo / 1.15, false);
        axis->max = round_number(hi * 1.15, true);
        return;
    }
    double room = hi > lo ? (hi - lo) : fabs(hi) > 0 ? fabs(hi) : 1;
    double step = round_number(room / 5, true);
    axis->min = lo >= 0 && lo < 0.6 * hi ? 0 : floor(lo / step) * step;
    axis->max = ceil(hi / step + 1e-9) * step;
    if (axis->max <= axis->min) {
        axis->max = axis->min + step;
    }
}

double svg_at(const struct svg_axis *axis, double value) {
    double share = axis->log ? log(value / axis->min) / log(axis->max / axis->min)
                             : (value - axis->min) / (axis->max - axis->min);
    share = !(share > 0) ? 0 : share > 1 ? 1 : share;
    return axis->from + share * (axis->to - axis->from);
}

static size_t log_ticks(const struct svg_axis *axis, double apart, double ticks[SVG_MAX_TICKS]) {
    double length = fabs(axis->to - axis->from);
    double decades = log10(axis->max / axis->min);
    size_t count = 0;
    // 1, 2, 5 where they have room, else powers of ten, else every so many of them.
    if (0.3 * length / decades >= apart && decades < 3.5) {
        for (double t = axis->min; t <= axis->max * 1.001 && count < SVG_MAX_TICKS;
             t = round_number(t * 1.5, true)) {
            ticks[count++] = t;
        }
        return count;
    }
    int step = (int)ceil(apart * decades / length);
    step = step < 1 ? 1 : step;
    for (double e = ceil(log10(axis->min) - 1e-9);
         e <= log10(axis->max) + 1e-9 && count < SVG_MAX_TICKS; e += step) {
        ticks[count++] = pow(10, e);
    }
    return count;
}

size_t svg_ticks(const struct svg_axis *axis, double apart, double ticks[SVG_MAX_TICKS]) {
    size_t count = 0;
    if (axis->log) {
        return log_ticks(axis, apart, ticks);
    }
    double room = fabs(axis->to - axis->from) / apart;
    double step = round_number((axis->max - axis->min) / (room < 5 ? room : 5), true);
    for (double t = ceil(axis->min / step - 1e-9) * step;
         t <= axis->max + 1e-9 * step && count < SVG_MAX_TICKS; t += step) {
        ticks[count++] = fabs(t) < 1e-9 * step ? 0 : t;
    }
    return count;
}

void svg_tick_text(double value, char *text, size_t size) {
    static const char *const prefixes[] = {"p", "n", "µ", "m", "", "k", "M", "G", "T", "P"};
    int place = 4;
    double scaled = value;
    while (fabs(scaled) >= 9999.5 || (place > 4 && fabs(scaled) >= 999.5)) {
        if (place == 9) {
            break;
        }
        scaled /= 1000;
        place++;
    }
    bool tiny = fabs(value) < 0.0009995;
    while (tiny && scaled != 0 && fabs(scaled) < 0.9995 && place > 0) {
        scaled *= 1000;
        place--;
    }
    snprintf(text, size, "%.4g%s%s", scaled, place == 4 ? "" : " ", prefixes[place]);
}

double svg_text_width(const char *text) {
    return SVG_LETTER * (double)grt_visible_width(text);
}

void svg_begin(FILE *file, const char *id, double height, const char *title, const char *about) {
    fprintf(file, "<svg viewBox=\"0 0 %d %g\" role=\"img\" aria-labelledby=\"%s-t %s-d\">",
            SVG_WIDTH, height, id, id);
    fprintf(file, "<title id=\"%s-t\">", id);
    markup_text(file, title);
    fprintf(file, "</title><desc id=\"%s-d\">", id);
    markup_text(file, about);
    fputs("</desc>\n", file);
}

void svg_end(FILE *file) {
    fputs("</svg>\n", file);
}

void svg_text(FILE *file, const char *class, double x, double y, char anchor, double room,
              const char *text) {
    static const char *const anchors[] = {"start", "middle", "end"};
    const char *word = anchors[anchor == 'm' ? 1 : anchor == 'e' ? 2 : 0];
    fprintf(file, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", class, x, y,
            word);
    if (room > 0 && svg_text_width(text) > room) {
        char cut[512];
        size_t keep = (size_t)(room / SVG_LETTER), letters = grt_visible_width(text);
        // The end tells cases apart as often as the beginning: both stay.
        size_t tail = keep > 24 ? 10 : 0;
        keep = keep > 1 + tail ? keep - 1 - tail : 1;
        size_t at = grt_visible_fit(text, keep, NULL);
        size_t rest = grt_visible_fit(text, letters - tail, NULL);
        snprintf(cut, sizeof cut, "%.*s…%s", (int)at, text, text + rest);
        markup_text(file, cut);
        fputs("<title>", file);
        markup_text(file, text);
        fputs("</title>", file);
    } else {
        markup_text(file, text);
    }
    fputs("</text>\n", file);
}

void svg_line(FILE *file, const char *class, double x1, double y1, double x2, double y2) {
    fprintf(file, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class,
            x1, y1, x2, y2);
}

void svg_plot(FILE *file, double x, double y, double width, double height) {
    fprintf(file, "<rect class=\"plot\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
            x, y, width, height);
}

uint32_t svg_shape(uint32_t number) {
    return (number + number / SVG_COLORS) % 4;
}

void svg_mark(FILE *file, uint32_t number, double x, double y, const char *title) {
    fprintf(file, "<g class=\"mark c%u\"><title>", number % SVG_COLORS);
    markup_text(file, title);
    fputs("</title>", file);
    switch (svg_shape(number)) {
    case 0:
        fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>", x, y);
        break;
    case 1:
        fprintf(file, "<path d=\"M%.1f %.1fh7v7h-7z\"/>", x - 3.5, y - 3.5);
        break;
    case 2:
        fprintf(file, "<path d=\"M%.1f %.1fl4.5 4.5l-4.5 4.5l-4.5 -4.5z\"/>", x, y - 4.5);
        break;
    default:
        fprintf(file, "<path d=\"M%.1f %.1fl4.5 7.5h-9z\"/>", x, y - 4.5);
    }
    fputs("</g>\n", file);
}

void svg_axis_x(FILE *file, const struct svg_axis *axis, double top, double bottom,
                const char *title) {
    double ticks[SVG_MAX_TICKS];
    size_t count = svg_ticks(axis, 44, ticks);
    for (size_t i = 0; i < count; i++) {
        char text[32];
        double x = svg_at(axis, ticks[i]);
        svg_tick_text(ticks[i], text, sizeof text);
        svg_line(file, "grid", x, top, x, bottom);
        // Labels at the ends stay inside.
        double half = svg_text_width(text) / 2;
        x = x + half > SVG_WIDTH - 2 ? SVG_WIDTH - 2 - half : x - half < 2 ? 2 + half : x;
        svg_text(file, "tick", x, bottom + 17, 'm', 0, text);
    }
    svg_text(file, "axis", (axis->from + axis->to) / 2, bottom + 33, 'm', SVG_WIDTH - 20, title);
}

void svg_axis_y(FILE *file, const struct svg_axis *axis, double left, double right,
                const char *title) {
    double ticks[SVG_MAX_TICKS];
    size_t count = svg_ticks(axis, 22, ticks);
    for (size_t i = 0; i < count; i++) {
        char text[32];
        double y = svg_at(axis, ticks[i]);
        svg_tick_text(ticks[i], text, sizeof text);
        svg_line(file, "grid", left, y, right, y);
        svg_text(file, "tick", left - 5, y + 4, 'e', 0, text);
    }
    svg_text(file, "axis", 2, 12, 's', SVG_WIDTH - 20, title);
}
