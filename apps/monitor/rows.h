// SPDX-License-Identifier: Apache-2.0
// A look as rows of a table: devices, and the processes on them.
#ifndef APPS_MONITOR_ROWS_H
#define APPS_MONITOR_ROWS_H

#include "cli/output/table.h"
#include "look.h"

// X(NAME, key, heading, unit, type, precision, width, longest text in a line)
#define MONITOR_COLUMNS(X)                                                                         \
    X(KIND, "kind", "kind", NULL, TEXT, 0, 0, 0) /* device, process */                             \
    X(TIME, "time", "time", "s", COUNT, 0, 0, 0)                                                   \
    X(PID, "pid", "pid", NULL, COUNT, 0, 7, 0)                                                     \
    X(APP, "app", "app", NULL, TEXT, 0, 10, 18)                                                    \
    X(NAME, "name", "name", NULL, TEXT, 0, 0, 28)                                                  \
    X(SELECTOR, "device", "device", NULL, TEXT, 0, 8, 10)                                          \
    X(READER, "reader", "by", NULL, TEXT, 0, 0, 0)                                                 \
    X(PCI, "pci", "PCI address", NULL, TEXT, 0, 0, 0)                                              \
    X(UTILISATION, "utilisation", "busy", NULL, SHARE, 0, 5, 0)                                    \
    X(MEMORY_USED, "memory_used", "used", NULL, BYTES, 0, 9, 0)                                    \
    X(MEMORY_TOTAL, "memory_total", "of", NULL, BYTES, 0, 9, 0)                                    \
    X(POWER, "power", "power", "W", NUMBER, 0, 0, 0)                                               \
    X(POWER_LIMIT, "power_limit", "limit", "W", NUMBER, 0, 0, 0)                                   \
    X(TEMPERATURE, "temperature", "temp.", "C", NUMBER, 0, 0, 0)                                   \
    X(CLOCK, "clock", "clock", "MHz", NUMBER, 0, 0, 0)                                             \
    X(MEMORY_CLOCK, "memory_clock", "memory", "MHz", NUMBER, 0, 0, 0)                              \
    X(ENERGY, "energy", "energy", "J", NUMBER, 0, 0, 0)                                            \
    X(STEP_SHORT, NULL, "step", NULL, TEXT, 0, 9, 0)                                               \
    X(STEP, "step", "step", NULL, COUNT, 0, 0, 0)                                                  \
    X(STEPS, "steps", "steps", NULL, COUNT, 0, 0, 0)                                               \
    X(EPOCH, "epoch", "epoch", NULL, COUNT, 0, 0, 0)                                               \
    X(EPOCHS, "epochs", "epochs", NULL, COUNT, 0, 0, 0)                                            \
    X(RATE_SHORT, NULL, "rate", NULL, TEXT, 0, 0, 0)                                               \
    X(RATE, "rate", "rate", NULL, NUMBER, 0, 0, 0)                                                 \
    X(RATE_OF, "rate_of", "rate of", NULL, TEXT, 0, 0, 0)                                          \
    X(SCORE, "score", "score", NULL, NUMBER, 4, 8, 0)                                              \
    X(SCORE_OF, "score_of", "of", NULL, TEXT, 0, 0, 8)                                             \
    X(LEFT_SHORT, NULL, "left", NULL, TEXT, 0, 6, 0)                                               \
    X(LEFT, "left", "left", "s", NUMBER, 0, 0, 0)                                                  \
    X(CPUS, "cpus", "CPUs", NULL, NUMBER, 2, 0, 0)                                                 \
    X(MEMORY, "memory", "memory", NULL, BYTES, 0, 9, 0)

enum monitor_column {
#define X(name, key, heading, unit, type, precision, width, limit) MONITOR_##name,
    MONITOR_COLUMNS(X)
#undef X
        MONITOR_COLUMN_COUNT,
};
extern const struct table_column monitor_columns[MONITOR_COLUMN_COUNT];

// Opens its table with these columns; see table.h.
bool monitor_table_open(struct table *table, struct table_desc *desc);
// A section and its rows. Programs get null for what a driver does not tell.
bool monitor_print_devices(struct table *table, const struct look *look);
bool monitor_print_processes(struct table *table, const struct look *look);

#endif
