// SPDX-License-Identifier: Apache-2.0
// What compilers said of kernels for GPUs that are not here: a table of its own, since it has more
// than one figure a row.
#include <math.h>
#include <string.h>

#include "write.h"
#include "cli/output/markup.h"

#define MAX_ROWS 4000

static const struct {
    const char *key, *heading;
} numbers[] = {
    {"registers", "registers"}, {"spilled", "spilled"},           {"shared_bytes", "shared B"},
    {"occupancy", "occupancy"}, {"instructions", "instructions"},
};
#define NUMBERS (sizeof numbers / sizeof *numbers)

static bool is_static(const struct report_row *row) {
    return strcmp(row->bench->name, "static") == 0 && row->chosen;
}

static void write_row(FILE *file, const struct report *r, const struct report_row *row) {
    fputs("<tr><td class=\"device\">", file);
    markup_text(file, r->contenders[row->contender].name);
    fputs("</td><td class=\"case\">", file);
    markup_text(file, row->subject);
    fputs("</td>", file);
    for (size_t i = 0; i < NUMBERS; i++) {
        double value = report_number(row, numbers[i].key);
        if (isfinite(value)) {
            fprintf(file, "<td class=\"n\">%.6g</td>", value);
        } else {
            fputs("<td class=\"n\"></td>", file);
        }
    }
    fputs("<td>", file);
    // A compiler that does not count registers has no figure, and yet nothing is wrong.
    const struct report_cell *check = report_cell(row, "check");
    markup_text(file, check && check->text ? check->text : row->check);
    fputs("</td></tr>\n", file);
}

void report_write_static(FILE *file, const struct report *report) {
    size_t count = 0, shown = 0;
    for (size_t i = 0; i < report->row_count; i++) {
        count += is_static(&report->rows[i]);
    }
    if (count == 0) {
        return;
    }
    fputs("<section id=\"static\"><h2>Kernels compiled for GPUs that are not here</h2>\n"
          "<p class=\"soft\">By compilers that are not the drivers' own: indications. Occupancy is "
          "the share of a unit's warps or waves that can run at once.</p>\n"
          "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th>device</th><th>kernel</th>",
          file);
    for (size_t i = 0; i < NUMBERS; i++) {
        fprintf(file, "<th class=\"n\">%s</th>", numbers[i].heading);
    }
    fputs("<th>check</th></tr></thead><tbody>\n", file);
    for (size_t i = 0; i < report->row_count && shown < MAX_ROWS; i++) {
        if (is_static(&report->rows[i])) {
            write_row(file, report, &report->rows[i]);
            shown++;
        }
    }
    fputs("</tbody></table></div>", file);
    if (shown < count) {
        fprintf(file, "<p class=\"more\">%zu more in the table above.</p>", count - shown);
    }
    fputs("</section>\n", file);
}
