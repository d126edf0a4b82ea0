// SPDX-License-Identifier: Apache-2.0
#include "text.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

static void three_digits(double value, char *text, size_t size) {
    double size_of = fabs(value);
    int digits = size_of >= 99.95 ? 0 : size_of >= 9.995 ? 1 : 2;
    snprintf(text, size, "%.*f", digits, value);
}

void report_quantity(double value, const char *unit, char text[REPORT_QUANTITY]) {
    static const char *const large[] = {"", "k", "M", "G", "T", "P", "E"};
    static const char *const binary[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    static const char *const small[] = {"", "m", "µ", "n", "p"};
    bool bytes = strcmp(unit, "B") == 0;
    double base = bytes ? 1024 : 1000, scaled = value;
    size_t up = 0, down = 0;
    char number[32];
    while (fabs(scaled) >= base * 0.9995 && up < 6) {
        scaled /= base;
        up++;
    }
    // Only times are told in parts of their unit; a share or a loss is not.
    bool parts = strcmp(unit, "s") == 0;
    while (parts && scaled != 0 && fabs(scaled) < 0.9995 && down < 4) {
        scaled *= 1000;
        down++;
    }
    if (!up && !down && scaled == floor(scaled) && fabs(scaled) < 1000) {
        snprintf(number, sizeof number, "%.0f", scaled);
    } else if (!up && !down && fabs(scaled) < 1) {
        snprintf(number, sizeof number, "%.3g", scaled);
    } else {
        three_digits(scaled, number, sizeof number);
    }
    const char *prefix = up ? (bytes ? binary[up] : large[up]) : small[down];
    // A prefix belongs to a symbol; before a word it stands alone: "8.5 M samples/s".
    bool word = unit[0] >= 'a' && unit[0] <= 'z' && unit[1];
    snprintf(text, REPORT_QUANTITY, "%s%s%s%s%s", number, *prefix || *unit ? " " : "", prefix,
             *prefix && word ? " " : "", unit);
}

void report_times(double times, char text[REPORT_QUANTITY]) {
    three_digits(times, text, REPORT_QUANTITY);
}

void report_markdown(FILE *file, const char *text) {
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        // What begins a tag or an entity is an entity itself: some readers of Markdown take a
        // backslash before it for text. A name with @ would notify someone.
        if (c == '<' || c == '>' || c == '&' || c == '@') {
            fprintf(file, "&#%d;", c);
            continue;
        }
        if (strchr("\\`*_[]|~$#!", c)) {
            fputc('\\', file);
        }
        // An address by itself would become a link.
        fputs(c == ':' && text[1] == '/' ? "&#58;" : (const char[]){(char)c, '\0'}, file);
    }
}

void report_csv_text(FILE *file, const char *text) {
    // A space before the sign does not stop every spreadsheet.
    const char *first = text + strspn(text, " ");
    bool formula = *first && strchr("=+-@", *first);
    bool quoted = formula || strpbrk(text, ",\"\r\n;\t") || isspace((unsigned char)*text);
    fputs(quoted ? "\"" : "", file);
    fputs(formula ? "'" : "", file);
    for (; *text; text++) {
        if (*text == '"') {
            fputc('"', file);
        }
        fputc(*text, file);
    }
    fputs(quoted ? "\"" : "", file);
}
