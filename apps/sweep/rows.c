// SPDX-License-Identifier: Apache-2.0
// Trials as rows of a table. Programs get each parameter in a column of its own, people all of them
// in the last one.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/talk.h"
#include "sweep.h"

enum { SWEEP_COLUMNS(TABLE_ENTRY) COLUMN_COUNT };
static const struct table_column fixed[] = {SWEEP_COLUMNS(TABLE_COLUMN)};

#define SHOWN                                                                                      \
    (1ull << COLUMN_TRIAL | 1ull << COLUMN_STATE | 1ull << COLUMN_VALUE |                          \
     1ull << COLUMN_AT_SHORT | 1ull << COLUMN_DEVICE | 1ull << COLUMN_LEFT_SHORT |                 \
     1ull << COLUMN_PARAMETERS)

// Of a range in which each factor counts the same: a chart draws it so.
static bool by_factors(const struct sweep_parameter *p) {
    return strstr(sweep_distribution_word(p->distribution), "log") != NULL;
}

static json_t *head(const struct sweep *s) {
    json_t *names = json_array();
    for (uint32_t i = 0; i < s->plan.parameter_count; i++) {
        const struct sweep_parameter *p = &s->plan.parameters[i];
        json_array_append_new(names,
                              json_pack("{ss sb}", "name", p->name, "log", (int)by_factors(p)));
    }
    return json_pack("{s{ss ss ss ss so}}", "sweep", "dir", strrchr(s->dir, '/') ? s->dir : "-",
                     "kind", s->plan.kind->name, "metric", s->plan.metric.name, "goal",
                     s->plan.metric.maximize ? "maximize" : "minimize", "parameters", names);
}

bool sweep_table_open(struct sweep_table *t, const struct sweep *s, const struct table_desc *desc) {
    struct table_desc own = *desc;
    memcpy(t->columns, fixed, sizeof fixed);
    t->columns[COLUMN_VALUE].heading = s->plan.metric.name;
    if (!(s->plan.kind->scope & GRT_CONFIG_OF_SUPERVISED)) {
        t->columns[COLUMN_AT_SHORT].heading = "step";
    }
    t->count = COLUMN_COUNT;
    for (uint32_t i = 0; i < s->plan.parameter_count; i++) {
        t->columns[t->count++] = (struct table_column){.key = s->plan.parameters[i].name,
                                                       .heading = s->plan.parameters[i].name,
                                                       .type = TABLE_TEXT};
    }
    own.columns = t->columns;
    own.column_count = t->count;
    own.schema = "gpurt.sweep/1";
    own.verb = "sweep";
    own.head = head(s);
    return table_open(&t->table, &own) && table_section(&t->table, NULL, SHOWN, NULL, 0);
}

// A number where it is one: programs need not read texts.
static struct table_cell value_cell(const char *text, json_t **json) {
    char *end = NULL;
    double number = strtod(text, &end);
    bool plain = *text && !*end && isfinite(number) && !strpbrk(text, "xX");
    bool whole = plain && number == floor(number) && fabs(number) < 9e15;
    *json = whole ? json_integer((json_int_t)number) : plain ? json_real(number) : NULL;
    return (struct table_cell){.known = true, .text = text, .json = *json};
}

bool sweep_table_row(struct sweep_table *table, const struct sweep *s,
                     const struct sweep_trial *t) {
    struct table_cell cells[TABLE_MAX_COLUMNS] = {0};
    char at[48] = "", left[TABLE_SHORT_SIZE] = "", parameters[TABLE_TEXT_SIZE];
    char values[SWEEP_MAX_PARAMETERS][SWEEP_VALUE];
    json_t *numbers[SWEEP_MAX_PARAMETERS];
    const struct sweep_progress *p = &t->progress;
    double seconds = sweep_progress_left(p);
    bool running = t->state == SWEEP_RUNNING;
    snprintf(at, sizeof at, p->whole ? "%llu/%llu" : "%llu", (unsigned long long)p->at,
             (unsigned long long)p->whole);
    table_time_text(seconds, left);
    sweep_trial_text(s, t, parameters, sizeof parameters);
    cells[COLUMN_TRIAL] = TABLE_CELL(.count = t->number);
    cells[COLUMN_STATE] = TABLE_CELL(.text = sweep_state_word(t->state));
    cells[COLUMN_VALUE] =
        (struct table_cell){.known = p->any && isfinite(p->best), .number = p->best};
    cells[COLUMN_AT_SHORT] = (struct table_cell){.known = p->at > 0, .text = at};
    cells[COLUMN_AT] = (struct table_cell){.known = p->at > 0, .count = p->at};
    cells[COLUMN_WHOLE] = (struct table_cell){.known = p->whole > 0, .count = p->whole};
    cells[COLUMN_BEST_AT] = (struct table_cell){.known = p->any, .count = p->best_at};
    cells[COLUMN_DEVICE] = (struct table_cell){.known = t->device[0] != '\0', .text = t->device};
    cells[COLUMN_LEFT_SHORT] = (struct table_cell){.known = running && *left, .text = left};
    cells[COLUMN_LEFT] = (struct table_cell){.known = running && seconds >= 0, .number = seconds};
    cells[COLUMN_SECONDS] =
        (struct table_cell){.known = p->rows > 0, .number = p->spent + p->seconds};
    cells[COLUMN_CRASHES] = TABLE_CELL(.count = t->crashes);
    cells[COLUMN_PARAMETERS] = TABLE_CELL(.text = parameters);
    cells[COLUMN_WHY] = (struct table_cell){.known = t->why[0] != '\0', .text = t->why};
    for (uint32_t i = 0; i < s->plan.parameter_count; i++) {
        sweep_sample(&s->plan, i, t->number, values[i]);
        cells[COLUMN_COUNT + i] = value_cell(values[i], &numbers[i]);
    }
    bool good = table_row(&table->table, cells);
    for (uint32_t i = 0; i < s->plan.parameter_count; i++) {
        json_decref(numbers[i]);
    }
    return good;
}

bool sweep_table_close(struct sweep_table *table) {
    return table_close(&table->table);
}

char *sweep_report_text(const char *dir, int *code) {
    static char verb[] = "sweep";
    char *argv[] = {verb, NULL}, *text = NULL;
    size_t size = 0;
    struct sweep *s = calloc(1, sizeof *s);
    struct sweep_table table;
    struct output output = {.file = open_memstream(&text, &size)};
    char *here = getcwd(NULL, 0);
    *code = s && output.file && here ? sweep_folder_open(s, dir, false) : COMMAND_INTERNAL;
    bool good =
        *code == COMMAND_OK &&
        sweep_table_open(
            &table, s,
            &(struct table_desc){.output = &output, .format = TABLE_JSON, .argc = 1, .argv = argv});
    for (uint32_t i = 0; good && i < s->plan.trials; i++) {
        good = sweep_table_row(&table, s, &s->trials[i]);
    }
    good = good && sweep_table_close(&table);
    if (s) {
        sweep_close(s);
    }
    free(s);
    if (output.file) {
        fclose(output.file);
    }
    // Other files of the same command line are named from here.
    if (here && chdir(here) != 0) {
        good = false;
    }
    free(here);
    if (!good) {
        free(text);
        text = NULL;
        *code = *code ? *code : COMMAND_INTERNAL;
    }
    return text;
}
