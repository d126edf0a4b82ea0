// SPDX-License-Identifier: Apache-2.0
// Numbers and names as a report writes them, for each of the languages it is written in.
#ifndef APPS_REPORT_TEXT_H
#define APPS_REPORT_TEXT_H

#include <stdio.h>

#define REPORT_QUANTITY 64

// "64.5 TFLOP/s", "8.51 M samples/s", "203 ns": three digits and a prefix. `unit` "" gives
// "64.5 T"; "B" counts in 1024.
void report_quantity(double value, const char *unit, char text[REPORT_QUANTITY]);
// "1.12", "34", "3791": how many times.
void report_times(double times, char text[REPORT_QUANTITY]);

// Text from anywhere that never becomes markup of Markdown, also inside a table.
void report_markdown(FILE *file, const char *text);
// A field of CSV. What a spreadsheet would take for a formula gets a ' before it.
void report_csv_text(FILE *file, const char *text);

#endif
