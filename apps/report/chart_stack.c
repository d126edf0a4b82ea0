// SPDX-License-Identifier: Apache-2.0
// Where time goes: a bar for each contender and case, its parts as shares of the whole, the whole
// in words at its end. Parts are keys of one row, or rows of the bench `phase`.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "svg.h"
#include "text.h"
#include "cli/output/markup.h"

#define LEFT 10
#define RIGHT (SVG_WIDTH - 10)
#define TOP 6
#define STEP 38
#define BAR 14
#define MAX_BARS 200

struct bar {
    const struct report_row *row;
    char label[2 * REPORT_TEXT];
    double parts[CHART_KEYS];  // seconds
    double whole;
};

static size_t part_count(const struct report_chart *chart) {
    size_t count = 0;
    while (count < CHART_KEYS && chart->stack[count]) {
        count++;
    }
    return count;
}

// "forward_ms" is "forward".
static void part_name(const struct report_chart *chart, size_t part, char text[64]) {
    snprintf(text, 64, "%.*s", (int)strcspn(chart->stack[part], "_"), chart->stack[part]);
}

// What tells bars of a panel apart; of several settings besides, the best is shown.
static void label_of(const struct chart_panel *panel, struct bar *bar) {
    static const char *const only[] = {"batch", "num_envs", "loop", NULL};
    char text[REPORT_TEXT];
    report_case_text(bar->row, "", only, NULL, text);
    snprintf(bar->label, sizeof bar->label, "%s · %s", text,
             panel->report->contenders[bar->row->contender].label);
}

// The bar of this label, a new one if there is none; NULL when there are too many.
static struct bar *bar_of(const struct chart_panel *panel, struct bar *bars, size_t *count,
                          const struct report_row *row) {
    struct bar bar = {.row = row};
    size_t i = 0;
    label_of(panel, &bar);
    while (i < *count && strcmp(bars[i].label, bar.label) != 0) {
        i++;
    }
    if (i == *count && i < MAX_BARS) {
        bars[(*count)++] = bar;
    }
    return i < MAX_BARS ? &bars[i] : NULL;
}

static size_t bars_of_keys(const struct chart_panel *panel, struct bar *bars) {
    size_t count = 0, parts = part_count(panel->chart);
    for (size_t i = 0; i < panel->count; i++) {
        const struct report_row *row = panel->rows[i];
        struct bar *bar = bar_of(panel, bars, &count, row);
        if (!bar || report_share(row->bench, row->value, bar->row->value) < 1) {
            continue;
        }
        bar->row = row;
        bar->whole = 0;
        for (size_t k = 0; k < parts; k++) {
            double part = report_number(row, panel->chart->stack[k]);
            bar->parts[k] = part > 0 && isfinite(part) ? part * panel->chart->stack_scale : 0;
            bar->whole += bar->parts[k];
        }
    }
    return count;
}

static size_t bars_of_rows(const struct chart_panel *panel, struct bar *bars) {
    size_t count = 0, parts = part_count(panel->chart);
    for (size_t i = 0; i < panel->count; i++) {
        const struct report_row *row = panel->rows[i];
        const struct report_cell *phase = report_cell(row, "phase");
        size_t k = 0;
        while (k < parts &&
               (!phase || !phase->text || strcmp(panel->chart->stack[k], phase->text) != 0)) {
            k++;
        }
        struct bar *bar = k < parts ? bar_of(panel, bars, &count, row) : NULL;
        // Rows of other settings have a bar with the same label: the first of them is kept.
        if (bar && bar->parts[k] == 0 && bar->row->source == row->source) {
            bar->parts[k] = row->value * panel->chart->stack_scale;
            bar->whole += bar->parts[k];
        }
    }
    return count;
}

// Bars without any part are taken out.
static size_t keep_whole(struct bar *bars, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (bars[i].whole > 0) {
            bars[kept++] = bars[i];
        }
    }
    return kept;
}

static void draw_bar(FILE *file, const struct report_chart *chart, const struct bar *bar,
                     double y) {
    double x = LEFT, width = RIGHT - LEFT;
    char whole[REPORT_QUANTITY], part[REPORT_QUANTITY];
    report_quantity(bar->whole, "s", whole);
    svg_text(file, "label", LEFT, y + 11, 's', width - svg_text_width(whole) - 14, bar->label);
    svg_text(file, "value", RIGHT, y + 11, 'e', 0, whole);
    for (size_t k = 0; k < part_count(chart); k++) {
        char name[64];
        double share = bar->parts[k] / bar->whole;
        if (share <= 0) {
            continue;
        }
        report_quantity(bar->parts[k], "s", part);
        fprintf(file,
                "<rect class=\"part p%zu\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\">", k,
                x, y + 16, share * width, BAR);
        fputs("<title>", file);
        part_name(chart, k, name);
        markup_text(file, name);
        fprintf(file, ": %s, %.1f %%</title></rect>\n", part, 100 * share);
        // The share in words where it has room.
        snprintf(part, sizeof part, "%.0f %%", 100 * share);
        if (share * width > svg_text_width(part) + 8) {
            svg_text(file, "inside", x + share * width / 2, y + 27, 'm', 0, part);
        }
        x += share * width;
    }
}

static void legend(FILE *file, const struct report_chart *chart, const struct bar *bars,
                   size_t count) {
    for (size_t k = 0; k < part_count(chart); k++) {
        char class[32], name[64];
        bool any = false;
        for (size_t i = 0; i < count; i++) {
            any = any || bars[i].parts[k] > 0;
        }
        snprintf(class, sizeof class, "p%zu", k);
        part_name(chart, k, name);
        if (any) {
            chart_legend_item(file, class, name);
        }
    }
    fputs("</ul>\n", file);
}

bool chart_stack(FILE *file, const struct chart_panel *panel) {
    struct bar *bars = calloc(MAX_BARS, sizeof *bars);
    char title[2 * REPORT_TEXT];
    size_t count = 0;
    if (bars) {
        count = panel->chart->stack_rows ? bars_of_rows(panel, bars) : bars_of_keys(panel, bars);
        count = keep_whole(bars, count);
    }
    size_t left_out = count > CHART_MAX_ROWS ? count - CHART_MAX_ROWS : 0;
    if (count) {
        count -= left_out;
        chart_begin(file, panel);
        legend(file, panel->chart, bars, count);
        snprintf(title, sizeof title, "%s, %s", panel->chart->title, panel->title);
        svg_begin(file, panel->id, TOP + (double)count * STEP + 4, title, bars[0].label);
        svg_plot(file, LEFT, TOP, RIGHT - LEFT, (double)count * STEP);
        for (size_t i = 0; i < count; i++) {
            draw_bar(file, panel->chart, &bars[i], TOP + (double)i * STEP);
        }
        svg_end(file);
        chart_end(file, left_out);
    }
    free(bars);
    return count > 0;
}
