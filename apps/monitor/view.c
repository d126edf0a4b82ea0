// SPDX-License-Identifier: Apache-2.0
#include "view.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/visible.h"
#include "rows.h"

#define LINE 1024
#define LABEL 40  // columns before the course of a value

// Whether the terminal shows Unicode, as the locale's variables say.
static bool shows_unicode(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *value = NULL;
    for (size_t i = 0; i < 3 && !(value && *value); i++) {
        value = getenv(names[i]);
    }
    const char *set = value ? strchr(value, '.') : NULL;
    return set && (strncasecmp(set, ".utf-8", 6) == 0 || strncasecmp(set, ".utf8", 5) == 0);
}

void view_course(const struct look_past *past, size_t columns, bool unicode, char *text,
                 size_t size) {
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const plain[] = {"_", ".", ":", "-", "=", "+", "*", "#"};
    size_t count = past->count < columns ? past->count : columns, used = 0;
    text[0] = '\0';
    for (size_t i = past->count - count; i < past->count && used + 4 < size; i++) {
        double value = past->values[i];
        double level = isnan(value) ? 0 : value < 0 ? 0 : value > 1 ? 1 : value;
        const char *bar = (unicode ? bars : plain)[(size_t)(7 * level + 0.5)];
        used += (size_t)snprintf(text + used, size - used, "%s", isnan(value) ? " " : bar);
    }
}

// ---- a device ----

static void put_share(FILE *file, const char *label, const struct look_past *past, double share,
                      const char *more, int columns) {
    char course[LINE], left[LINE], percent[32] = "not available";
    if (!isnan(share)) {
        snprintf(percent, sizeof percent, "%3.0f %%", 100 * share);
    }
    snprintf(left, sizeof left, "  %-7s %s%s", label, percent, more);
    view_course(past, columns > LABEL ? (size_t)(columns - LABEL) : 0, shows_unicode(), course,
                sizeof course);
    fprintf(file, SCREEN_PLAIN "%-*s%s\n", LABEL, left, course);
}

// "power 512 of 700 W, temperature 61 C, clock 1980 MHz; not available: memory clock"
static void put_others(FILE *file, const struct sensor_device *device) {
    static const struct {
        enum sensor_quantity quantity;
        const char *label, *unit;
    } shown[] = {
        {SENSOR_POWER, "power", "W"},
        {SENSOR_TEMPERATURE, "temperature", "C"},
        {SENSOR_CLOCK, "clock", "MHz"},
        {SENSOR_MEMORY_CLOCK, "memory clock", "MHz"},
    };
    const char *between = "";
    fputs(SCREEN_PLAIN "  ", file);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        double value = device->values[shown[i].quantity];
        double limit = device->values[SENSOR_POWER_LIMIT];
        if (isnan(value)) {
            continue;
        }
        fprintf(file, "%s%s %.0f ", between, shown[i].label, value);
        if (shown[i].quantity == SENSOR_POWER && !isnan(limit)) {
            fprintf(file, "of %.0f ", limit);
        }
        fputs(shown[i].unit, file);
        between = ", ";
    }
    const char *before = *between ? "; not available: " : "not available: ";
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        if (isnan(device->values[shown[i].quantity])) {
            fprintf(file, "%s%s", before, shown[i].label);
            before = ", ";
        }
    }
    fputs("\n", file);
}

static void put_device(FILE *file, const struct look *look, size_t i, int columns) {
    const struct sensor_device *device = &look->sample.devices[i];
    char name[2 * SENSOR_NAME], memory[LINE] = "", used[TABLE_TEXT_SIZE], total[TABLE_TEXT_SIZE];
    grt_visible(device->name, name, sizeof name);
    fprintf(file, SCREEN_BOLD "%s  (%s%s%s)\n", name, device->reader, *device->pci ? " " : "",
            device->pci);
    put_share(file, "busy", &look->busy[i], device->values[SENSOR_UTILISATION], "", columns);
    if (device->values[SENSOR_MEMORY_USED] >= 0) {
        table_bytes_text((uint64_t)device->values[SENSOR_MEMORY_USED], used);
        snprintf(memory, sizeof memory, "  %.12s", used);
    }
    if (device->values[SENSOR_MEMORY_TOTAL] > 0 && memory[0]) {
        table_bytes_text((uint64_t)device->values[SENSOR_MEMORY_TOTAL], total);
        snprintf(memory, sizeof memory, "  %.12s of %.12s", used, total);
    }
    put_share(file, "memory", &look->filled[i], look_filled(device), memory, columns);
    put_others(file, device);
}

// ---- tables ----

// Rows of a table as lines; the first is its headings.
static void put_table(FILE *file, const struct look *look, int columns,
                      bool (*print)(struct table *table, const struct look *look)) {
    char *text = NULL;
    size_t size = 0;
    struct output output = {.file = open_memstream(&text, &size)};
    struct table table;
    struct table_desc desc = {.output = &output, .format = TABLE_PLAIN, .fit = columns};
    if (!output.file) {
        return;
    }
    if (monitor_table_open(&table, &desc)) {
        print(&table, look);
        table_close(&table);
    }
    fclose(output.file);
    screen_lines(file, text);
    free(text);
}

// ---- warnings ----

// A sentence in lines of so many columns, broken between words.
static void put_folded(FILE *file, const char *text, int columns) {
    size_t room = columns > 12 ? (size_t)columns - 2 : 10;
    const char *indent = "! ";
    while (*text) {
        size_t length = grt_visible_fit(text, room, NULL), cut = length;
        while (text[length] && cut > 0 && text[cut] != ' ') {
            cut--;
        }
        length = text[length] && cut > 0 ? cut : length;
        fprintf(file, SCREEN_WARNING "%s%.*s\n", indent, (int)length, text);
        text += length;
        text += strspn(text, " ");
        indent = "  ";
    }
}

static void put_warnings(FILE *file, const struct look *look, int columns) {
    for (size_t i = 0; i < look->sample.count; i++) {
        char warnings[LOOK_WARNINGS][LOOK_WARNING], name[2 * SENSOR_NAME], text[LINE];
        size_t count = look_warnings(look, i, warnings);
        grt_visible(look->sample.devices[i].name, name, sizeof name);
        for (size_t k = 0; k < count; k++) {
            snprintf(text, sizeof text, "%s: %s", name, warnings[k]);
            put_folded(file, text, columns);
        }
    }
}

// ---- the whole ----

static char *lines_of(const struct look *look, int columns, double interval, bool compact) {
    char *text = NULL, clock[32] = "";
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    time_t now = time(NULL);
    struct tm local;
    if (!file) {
        return NULL;
    }
    if (localtime_r(&now, &local)) {
        strftime(clock, sizeof clock, "%H:%M:%S", &local);
    }
    fprintf(file, SCREEN_BOLD "gpurt monitor  %s  every %g s, q ends\n\n", clock, interval);
    for (size_t i = 0; i < look->sample.count && !compact; i++) {
        put_device(file, look, i, columns);
    }
    if (compact) {
        put_table(file, look, columns, monitor_print_devices);
    }
    fputs("\n", file);
    if (look->process_count > 0) {
        put_table(file, look, columns, monitor_print_processes);
        fputs("\n", file);
        put_warnings(file, look, columns);
    } else {
        fputs(SCREEN_PLAIN "No gpurt process of this user is running.\n", file);
    }
    if (fclose(file) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

char *view_text(const struct look *look, struct screen_size size, double interval) {
    char *text = lines_of(look, size.columns, interval, false);
    int lines = 0;
    for (const char *at = text; at && *at; at++) {
        lines += *at == '\n';
    }
    if (text && lines > size.rows) {
        free(text);
        text = lines_of(look, size.columns, interval, true);
    }
    return text;
}
