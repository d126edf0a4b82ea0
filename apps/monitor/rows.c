// SPDX-License-Identifier: Apache-2.0
#include "rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const struct table_column monitor_columns[MONITOR_COLUMN_COUNT] = {
#define X(name, key, heading, unit, type, precision, width, limit)                                 \
    {key, heading, unit, TABLE_##type, precision, width, limit},
    MONITOR_COLUMNS(X)
#undef X
};

#define BIT(name) (1ull << MONITOR_##name)
static const uint64_t device_columns =
    BIT(NAME) | BIT(READER) | BIT(PCI) | BIT(UTILISATION) | BIT(MEMORY_USED) | BIT(MEMORY_TOTAL) |
    BIT(POWER) | BIT(POWER_LIMIT) | BIT(TEMPERATURE) | BIT(CLOCK) | BIT(MEMORY_CLOCK);
static const uint64_t process_columns = BIT(PID) | BIT(APP) | BIT(SELECTOR) | BIT(STEP_SHORT) |
                                        BIT(RATE_SHORT) | BIT(SCORE) | BIT(SCORE_OF) |
                                        BIT(LEFT_SHORT) | BIT(CPUS) | BIT(MEMORY);
#undef BIT

// Quantities in the order of their list, and the columns that show them.
static const enum monitor_column quantity_columns[SENSOR_COUNT] = {
#define X(name, key, unit, text) MONITOR_##name,
    SENSOR_QUANTITIES(X)
#undef X
};

bool monitor_table_open(struct table *table, struct table_desc *desc) {
    desc->columns = monitor_columns;
    desc->column_count = MONITOR_COLUMN_COUNT;
    desc->schema = "gpurt.monitor/1";
    return table_open(table, desc);
}

// ---- cells ----

static void set_number(struct table_cell *cells, enum monitor_column column, double number) {
    enum table_type type = monitor_columns[column].type;
    if (!isfinite(number)) {
        cells[column].json = json_null();  // one for all, which nobody frees
    } else if (type == TABLE_COUNT || type == TABLE_BYTES) {
        cells[column] = TABLE_CELL(.count = number > 0 && number < 9e18 ? (uint64_t)number : 0);
    } else {
        cells[column] = TABLE_CELL(.number = number);
    }
}

static void set_text(struct table_cell *cells, enum monitor_column column, const char *text) {
    if (text[0]) {
        cells[column] = TABLE_CELL(.text = text);
    } else {
        cells[column].json = monitor_columns[column].key ? json_null() : NULL;
    }
}

static void describe_device(const struct sensor_device *device, struct table_cell *cells) {
    memset(cells, 0, MONITOR_COLUMN_COUNT * sizeof *cells);
    set_text(cells, MONITOR_KIND, "device");
    set_number(cells, MONITOR_TIME, (double)time(NULL));
    set_text(cells, MONITOR_NAME, device->name);
    set_text(cells, MONITOR_READER, device->reader);
    set_text(cells, MONITOR_PCI, device->pci);
    for (size_t i = 0; i < SENSOR_COUNT; i++) {
        set_number(cells, quantity_columns[i], device->values[i]);
    }
}

struct process_text {
    char step[48], rate[TABLE_SHORT_SIZE], left[TABLE_SHORT_SIZE];
};

static void describe_process(const struct look_process *process, struct process_text *text,
                             struct table_cell *cells) {
    const struct state *s = &process->state;
    memset(cells, 0, MONITOR_COLUMN_COUNT * sizeof *cells);
    *text = (struct process_text){0};
    if (s->steps > 0) {
        snprintf(text->step, sizeof text->step, "%.0f/%.0f", s->step, s->steps);
    } else if (s->step >= 0) {
        snprintf(text->step, sizeof text->step, "%.0f", s->step);
    }
    table_rate_text(s->rate, text->rate);
    table_time_text(s->left, text->left);
    set_text(cells, MONITOR_KIND, "process");
    set_number(cells, MONITOR_TIME, (double)time(NULL));
    set_number(cells, MONITOR_PID, s->pid);
    set_text(cells, MONITOR_APP, s->app);
    set_text(cells, MONITOR_NAME, s->name);
    set_text(cells, MONITOR_SELECTOR, s->device);
    set_text(cells, MONITOR_PCI, s->pci);
    set_text(cells, MONITOR_STEP_SHORT, text->step);
    set_number(cells, MONITOR_STEP, s->step);
    set_number(cells, MONITOR_STEPS, s->steps);
    set_number(cells, MONITOR_EPOCH, s->epoch);
    set_number(cells, MONITOR_EPOCHS, s->epochs);
    set_text(cells, MONITOR_RATE_SHORT, text->rate);
    set_number(cells, MONITOR_RATE, s->rate);
    set_text(cells, MONITOR_RATE_OF, s->rate_of);
    set_number(cells, MONITOR_SCORE, s->score);
    set_text(cells, MONITOR_SCORE_OF, s->score_of);
    set_text(cells, MONITOR_LEFT_SHORT, text->left);
    set_number(cells, MONITOR_LEFT, s->left);
    set_number(cells, MONITOR_CPUS, process->cpus);
    set_number(cells, MONITOR_MEMORY, s->memory);
}

// ---- sections ----

static bool print_section(struct table *table, uint64_t shown,
                          const struct table_cell (*cells)[MONITOR_COLUMN_COUNT], size_t count) {
    bool good = table_section(table, NULL, shown, cells[0], count);
    for (size_t i = 0; good && i < count; i++) {
        good = table_row(table, cells[i]);
    }
    return good;
}

bool monitor_print_devices(struct table *table, const struct look *look) {
    struct table_cell cells[SENSOR_DEVICES][MONITOR_COLUMN_COUNT] = {0};
    for (size_t i = 0; i < look->sample.count; i++) {
        describe_device(&look->sample.devices[i], cells[i]);
    }
    return print_section(table, device_columns, cells, look->sample.count);
}

bool monitor_print_processes(struct table *table, const struct look *look) {
    struct table_cell cells[STATE_MOST][MONITOR_COLUMN_COUNT] = {0};
    struct process_text texts[STATE_MOST];
    for (size_t i = 0; i < look->process_count; i++) {
        describe_process(&look->processes[i], &texts[i], cells[i]);
    }
    return look->process_count == 0 ||
           print_section(table, process_columns, cells, look->process_count);
}
