// SPDX-License-Identifier: Apache-2.0
// Device memory over time: every allocation is a block from when it was made to when it was freed,
// as high as it is large, above those that were there before it. Labels have colours, the largest
// first; what has no colour of its own is grey.
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "svg.h"
#include "text.h"
#include "cli/output/markup.h"

#define LEFT 52
#define RIGHT (SVG_WIDTH - 8)
#define TOP 22
#define BOTTOM 222
#define HEIGHT 256
#define LABELS (SVG_COLORS - 1)  // the last colour is for all others
#define MOST_BLOCKS 1500         // that are drawn, of the largest

// Labels by the bytes that they have at the peak.
struct label {
    const char *text;
    double bytes;
};

static int by_bytes(const void *a, const void *b) {
    double x = ((const struct label *)a)->bytes, y = ((const struct label *)b)->bytes;
    return x < y ? 1 : x > y ? -1 : 0;
}

static size_t find_labels(const struct report_memory *m, struct label *labels) {
    size_t count = 0;
    for (size_t i = 0; i < m->count; i++) {
        const struct report_block *b = &m->blocks[i];
        size_t k = 0;
        while (k < count && strcmp(labels[k].text, b->label) != 0) {
            k++;
        }
        if (k == count) {
            labels[count++] = (struct label){b->label, 0};
        }
        bool at_peak = b->begin <= m->peak_at && m->peak_at < b->end;
        labels[k].bytes += at_peak ? b->size : 0;
    }
    qsort(labels, count, sizeof *labels, by_bytes);
    return count;
}

static size_t color_of(const struct label *labels, size_t count, const char *text) {
    size_t k = 0;
    while (k < count && k < LABELS && strcmp(labels[k].text, text) != 0) {
        k++;
    }
    return k < count ? k : LABELS;
}

static void legend(FILE *file, const struct label *labels, size_t count) {
    char class[32], text[REPORT_TEXT + REPORT_QUANTITY], size[REPORT_QUANTITY];
    for (size_t k = 0; k < count && k < LABELS; k++) {
        report_quantity(labels[k].bytes, "B", size);
        snprintf(class, sizeof class, "p%zu", k);
        snprintf(text, sizeof text, "%s, %s", labels[k].text, size);
        chart_legend_item(file, class, text);
    }
    if (count > LABELS) {
        double rest = 0;
        for (size_t k = LABELS; k < count; k++) {
            rest += labels[k].bytes;
        }
        report_quantity(rest, "B", size);
        snprintf(class, sizeof class, "p%d", LABELS);
        snprintf(text, sizeof text, "%zu others, %s", count - LABELS, size);
        chart_legend_item(file, class, text);
    }
    fputs("</ul>\n", file);
}

static void draw_block(FILE *file, const struct svg_axis *axes, const struct report_block *b,
                       size_t color) {
    char size[REPORT_QUANTITY];
    double x = svg_at(&axes[0], b->begin), right = svg_at(&axes[0], b->end);
    double y = svg_at(&axes[1], b->at + b->size), bottom = svg_at(&axes[1], b->at);
    fprintf(file,
            "<rect class=\"block p%zu\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\">",
            color, x, y, right - x, bottom - y);
    report_quantity(b->size, "B", size);
    fputs("<title>", file);
    markup_text(file, b->label);
    fprintf(file, ": %s, %u tensors, from %.3g s to %.3g s</title></rect>\n", size, b->tensors,
            b->begin, b->end);
}

// The size that the largest MOST_BLOCKS have at least.
static double least_drawn(const struct report_memory *m) {
    double least = 0;
    size_t count = m->count;
    while (count > MOST_BLOCKS) {
        least = least > 0 ? 2 * least : 1;
        count = 0;
        for (size_t i = 0; i < m->count; i++) {
            count += m->blocks[i].size >= least;
        }
    }
    return least;
}

static void draw(FILE *file, const struct report *r, size_t number, struct label *labels) {
    static const struct report_chart chart = {.id = "memory", .title = "Device memory over time"};
    const struct report_memory *m = &r->memories[number];
    struct chart_panel panel = {.report = r, .chart = &chart};
    char about[2 * REPORT_TEXT], title[2 * REPORT_TEXT], peak[REPORT_QUANTITY];
    struct svg_axis axes[] = {{.from = LEFT, .to = RIGHT}, {.from = BOTTOM, .to = TOP}};
    double top = m->peak, end = m->seconds, least = least_drawn(m);
    size_t count = find_labels(m, labels), left_out = 0;
    for (size_t i = 0; i < m->count; i++) {
        const struct report_block *b = &m->blocks[i];
        top = b->at + b->size > top ? b->at + b->size : top;
        end = b->end > end ? b->end : end;
    }
    report_quantity(m->peak, "B", peak);
    snprintf(panel.id, sizeof panel.id, "memory-%zu", number + 1);
    snprintf(panel.title, sizeof panel.title, "%.200s, %.160s", r->contenders[m->contender].label,
             r->sources[m->source].file);
    svg_axis_fit(&axes[0], 0, end > 0 ? end : 1);
    svg_axis_fit(&axes[1], 0, top > 0 ? top : 1);
    chart_begin(file, &panel);
    legend(file, labels, count);
    snprintf(title, sizeof title, "%s, %s", chart.title, panel.title);
    snprintf(about, sizeof about, "%zu allocations over %.3g seconds, at most %s at %.3g seconds",
             m->count, m->seconds, peak, m->peak_at);
    svg_begin(file, panel.id, HEIGHT, title, about);
    svg_plot(file, LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP);
    svg_axis_y(file, &axes[1], LEFT, RIGHT, "bytes");
    svg_axis_x(file, &axes[0], TOP, BOTTOM, "seconds");
    for (size_t i = 0; i < m->count; i++) {
        const struct report_block *b = &m->blocks[i];
        if (b->size >= least) {
            draw_block(file, axes, b, color_of(labels, count, b->label));
        } else {
            left_out++;
        }
    }
    svg_end(file);
    fprintf(file, "<p class=\"more\">At most %s, %.3g s after the beginning", peak, m->peak_at);
    if (left_out > 0) {
        fprintf(file, "; %zu small allocations are not drawn", left_out);
    }
    fputs(".</p>", file);
    chart_end(file, 0);
}

void chart_memories(FILE *file, const struct report *r) {
    for (size_t i = 0; i < r->memory_count; i++) {
        struct label *labels = calloc(r->memories[i].count + 1, sizeof *labels);
        if (labels && r->memories[i].count > 0) {
            draw(file, r, i, labels);
        }
        free(labels);
    }
}
