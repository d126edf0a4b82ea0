// SPDX-License-Identifier: Apache-2.0
#include "chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "svg.h"
#include "text.h"
#include "cli/output/markup.h"

const struct report_chart report_charts[] = {
    {.id = "train-batch",
     .title = "Training throughput over batch size",
     .bench = "train",
     .panel = {"depth", "hidden", "precision"},
     .x = "batch",
     .x_title = "batch size",
     .log_x = true,
     .draw = chart_lines},
    {.id = "train-workers",
     .title = "Training throughput over data workers",
     .bench = "train",
     .panel = {"depth", "hidden", "precision"},
     .x = "workers",
     .x_title = "workers",
     .draw = chart_lines},
    {.id = "mlp-batch",
     .title = "Training step over batch size",
     .bench = "mlp",
     .panel = {"depth", "hidden", "precision"},
     .x = "batch",
     .x_title = "batch size",
     .log_x = true,
     .draw = chart_lines},
    {.id = "images-batch",
     .title = "Networks of images over batch size",
     .bench = "images",
     .panel = {"model", "resolution", "precision"},
     .x = "batch",
     .x_title = "batch size",
     .log_x = true,
     .draw = chart_lines},
    {.id = "gemm",
     .title = "Matrix products and the peak",
     .bench = "gemm",
     .panel = {"precision"},
     .draw = chart_dots},
    {.id = "conv",
     .title = "Convolutions and the peak",
     .bench = "conv",
     .panel = {"precision", "test"},
     .draw = chart_dots},
    {.id = "roofline", .title = "Roofline", .bench = "gemm", .panel = {"*"}, .draw = chart_roof},
    {.id = "rollout-envs",
     .title = "Rollouts over environments",
     .bench = "rollout",
     .panel = {"test", "policy"},
     .x = "num_envs",
     .x_title = "environments",
     .log_x = true,
     .draw = chart_lines},
    {.id = "ppo-envs",
     .title = "PPO over environments",
     .bench = "ppo",
     .panel = {"env", "agents", "rollout_steps", "precision"},
     .x = "num_envs",
     .x_title = "environments",
     .log_x = true,
     .draw = chart_lines},
    {.id = "train-phases",
     .title = "Where a training step spends its time",
     .bench = "train",
     .panel = {"depth", "hidden", "precision"},
     .stack = {"io_ms", "upload_ms", "input_ms", "forward_ms", "backward_ms", "optimizer_ms"},
     .stack_scale = 1e-3,
     .draw = chart_stack},
    {.id = "mlp-phases",
     .title = "Where the step of an MLP spends its time",
     .bench = "mlp",
     .panel = {"depth", "hidden", "precision"},
     .stack = {"io_ms", "upload_ms", "input_ms", "forward_ms", "backward_ms", "optimizer_ms"},
     .stack_scale = 1e-3,
     .draw = chart_stack},
    {.id = "images-phases",
     .title = "Where the step of a network of images spends its time",
     .bench = "images",
     .panel = {"model", "resolution", "precision"},
     .stack = {"io_ms", "upload_ms", "input_ms", "forward_ms", "backward_ms", "optimizer_ms"},
     .stack_scale = 1e-3,
     .draw = chart_stack},
    {.id = "ppo-phases",
     .title = "Where an iteration of PPO spends its time",
     .bench = "phase",
     .panel = {"env", "agents", "rollout_steps", "precision"},
     .stack = {"environment", "action selection", "advantages", "update", "host"},
     .stack_rows = true,
     .stack_scale = 1,
     .draw = chart_stack},
    {.id = "memory", .title = "Memory bandwidth", .bench = "memory", .draw = chart_dots},
    {.id = "launch", .title = "Cost of a dispatch", .bench = "launch", .draw = chart_dots},
    {.id = "data-workers",
     .title = "Data loader over workers",
     .bench = "data",
     .panel = {"batch", "cache", "order"},
     .x = "workers",
     .x_title = "workers",
     .draw = chart_lines},
    {.id = "train-memory",
     .title = "Device memory over batch size",
     .bench = "train",
     .panel = {"depth", "hidden", "precision"},
     .x = "batch",
     .x_title = "batch size",
     .y = "memory_bytes",
     .y_unit = "B",
     .log_x = true,
     .draw = chart_lines},
    {.id = "ppo-memory",
     .title = "Device memory of PPO over environments",
     .bench = "ppo",
     .panel = {"env", "agents", "rollout_steps", "precision"},
     .x = "num_envs",
     .x_title = "environments",
     .y = "memory",
     .y_unit = "B",
     .log_x = true,
     .draw = chart_lines},
    {.id = "predicted-rollout",
     .title = "Predicted: rollouts over environments",
     .bench = "rollout",
     .panel = {"test", "policy", "num_dirs", "dir_chunk"},
     .x = "num_envs",
     .x_title = "environments",
     .log_x = true,
     .predicted = true,
     .note = "Few environments take as long as one, whose steps follow one another: by the clock, "
             "which differs least between cards. Where a line bends, all units have work, and the "
             "card's rate counts. Directions in small chunks move that place to the right.",
     .draw = chart_lines},
    {.id = "predicted-mlp",
     .title = "Predicted: training step over batch size",
     .bench = "mlp",
     .panel = {"depth", "hidden", "precision"},
     .x = "batch",
     .x_title = "batch size",
     .log_x = true,
     .predicted = true,
     .note = "A small batch takes as long as its dispatches, on any card.",
     .draw = chart_lines},
    {.id = "predicted-train",
     .title = "Predicted: training throughput over batch size",
     .bench = "train",
     .panel = {"depth", "hidden", "precision"},
     .x = "batch",
     .x_title = "batch size",
     .log_x = true,
     .predicted = true,
     .draw = chart_lines},
    {.id = "predicted-images",
     .title = "Predicted: networks of images over batch size",
     .bench = "images",
     .panel = {"model", "resolution", "precision"},
     .x = "batch",
     .x_title = "batch size",
     .log_x = true,
     .predicted = true,
     .draw = chart_lines},
    {.id = "predicted-gemm",
     .title = "Predicted: matrix products",
     .bench = "gemm",
     .panel = {"precision"},
     .predicted = true,
     .draw = chart_dots},
    {.id = "predicted-conv",
     .title = "Predicted: convolutions",
     .bench = "conv",
     .panel = {"test", "precision"},
     .predicted = true,
     .draw = chart_dots},
    {.id = "learning", .title = "Learning curves", .draw = chart_curves},
};
const size_t report_chart_count = sizeof report_charts / sizeof *report_charts;

// ---- what the drawing functions share ----

void chart_begin(FILE *file, const struct chart_panel *panel) {
    fprintf(file, "<figure class=\"chart\" id=\"%s\"><figcaption><h3>", panel->id);
    markup_text(file, panel->chart->title);
    fputs("</h3>", file);
    if (panel->title[0]) {
        fputs("<p class=\"panel\">", file);
        markup_text(file, panel->title);
        fputs("</p>", file);
    }
    fputs("</figcaption>\n<ul class=\"legend\">", file);
}

void chart_legend_item(FILE *file, const char *class, const char *text) {
    fprintf(file, "<li><i class=\"key %s\"></i>", class);
    markup_text(file, text);
    fputs("</li>", file);
}

void chart_legend(FILE *file, const struct chart_panel *panel, const bool *shown) {
    for (uint32_t i = 0; i < panel->report->contender_count; i++) {
        if (shown[i]) {
            char class[32];
            uint32_t color = panel->report->contenders[i].color;
            snprintf(class, sizeof class, "c%u s%u", color % SVG_COLORS, svg_shape(color));
            chart_legend_item(file, class, panel->report->contenders[i].label);
        }
    }
    fputs("</ul>\n", file);
}

void chart_end(FILE *file, size_t left_out) {
    if (left_out) {
        fprintf(file, "<p class=\"more\">%zu more in the table.</p>", left_out);
    }
    fputs("</figure>\n", file);
}

void chart_mark_title(const struct chart_panel *panel, const struct report_row *row,
                      char text[3 * REPORT_TEXT]) {
    char figure[REPORT_QUANTITY], spread[3 * REPORT_QUANTITY] = "";
    report_quantity(row->value, row->bench->unit, figure);
    if (row->nature == REPORT_PREDICTED && row->high > row->low) {
        char low[REPORT_QUANTITY], high[REPORT_QUANTITY];
        report_quantity(row->low, "", low);
        report_quantity(row->high, "", high);
        snprintf(spread, sizeof spread, ", between %s and %s", low, high);
    } else if (row->spread > 0) {
        snprintf(spread, sizeof spread, " ± %.1f %%", 100 * row->spread);
    }
    snprintf(text, 3 * REPORT_TEXT, "%s, %s: %s%s (%s)",
             panel->report->contenders[row->contender].label, row->subject, figure, spread,
             report_nature_text(row->nature));
}

// ---- panels ----

// The text of a row's panel keys; "*" is its contender.
static void panel_text(const struct report *r, const struct report_chart *chart,
                       const struct report_row *row, char text[REPORT_TEXT]) {
    text[0] = '\0';
    if (chart->panel[0] && strcmp(chart->panel[0], "*") == 0) {
        snprintf(text, REPORT_TEXT, "%s", r->contenders[row->contender].label);
    } else if (chart->panel[0]) {
        report_case_text(row, "", chart->panel, NULL, text);
    }
}

static size_t draw_panel(FILE *file, struct chart_panel *panel, size_t number) {
    snprintf(panel->id, sizeof panel->id, "%s-%zu", panel->chart->id, number + 1);
    return panel->chart->draw(file, panel);
}

static size_t write_rows(FILE *file, const struct report *r, const struct report_chart *chart) {
    const struct report_row **rows = calloc(r->row_count + 1, sizeof(void *));
    bool *done = calloc(r->row_count + 1, sizeof *done);
    size_t drawn = 0, tries = 0;
    for (size_t i = 0; rows && done && i < r->row_count && drawn < CHART_MAX_PANELS; i++) {
        struct chart_panel panel = {.report = r, .chart = chart, .rows = rows};
        const struct report_row *first = &r->rows[i];
        char text[REPORT_TEXT];
        if (done[i] || strcmp(first->bench->name, chart->bench) != 0) {
            continue;
        }
        if (++tries > CHART_MAX_TRIES) {
            break;
        }
        panel_text(r, chart, first, panel.title);
        for (size_t k = i; k < r->row_count && r->rows[k].bench == first->bench; k++) {
            panel_text(r, chart, &r->rows[k], text);
            if (done[k] || strcmp(text, panel.title) != 0) {
                continue;
            }
            done[k] = true;
            if (r->rows[k].chosen && r->rows[k].good &&
                (r->rows[k].nature == REPORT_PREDICTED) == chart->predicted) {
                rows[panel.count++] = &r->rows[k];
            }
        }
        if (panel.count) {
            drawn += draw_panel(file, &panel, drawn);
        }
    }
    free(rows);
    free(done);
    return drawn;
}

static bool same_group(const struct report_curve *a, const struct report_curve *b) {
    return strcmp(a->group, b->group) == 0 && strcmp(a->what, b->what) == 0;
}

static size_t write_curves(FILE *file, const struct report *r, const struct report_chart *chart) {
    const struct report_curve **curves = calloc(r->curve_count + 1, sizeof(void *));
    size_t drawn = 0;
    for (size_t i = 0; curves && i < r->curve_count && drawn < CHART_MAX_PANELS; i++) {
        struct chart_panel panel = {.report = r, .chart = chart, .curves = curves};
        size_t before = 0;
        while (before < i && !same_group(&r->curves[before], &r->curves[i])) {
            before++;
        }
        if (before < i) {
            continue;
        }
        snprintf(panel.title, sizeof panel.title, "%.190s: %.190s", r->curves[i].group,
                 r->curves[i].what);
        for (size_t k = i; k < r->curve_count; k++) {
            if (same_group(&r->curves[k], &r->curves[i]) && r->curves[k].count > 1) {
                curves[panel.curve_count++] = &r->curves[k];
            }
        }
        if (panel.curve_count) {
            drawn += draw_panel(file, &panel, drawn);
        }
    }
    free(curves);
    return drawn;
}

size_t report_chart_write(FILE *file, const struct report *report,
                          const struct report_chart *chart) {
    return chart->bench ? write_rows(file, report, chart) : write_curves(file, report, chart);
}
