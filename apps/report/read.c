// SPDX-License-Identifier: Apache-2.0
// A file is one JSON object after another: a head with its rows inside (json), a head with its rows
// behind it (jsonl, several such in one file), or events of training (read_log.c).
//
// jansson reads them, as it does everywhere in gpurt: it refuses duplicate keys, numbers that
// overflow and a depth above 2048.
#include "read.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read_log.h"
#include "read_memory.h"
#include "read_sweep.h"
#include "cli/command.h"
#include "cli/talk.h"
#include "base/whole_file.h"

struct reader {
    struct report *report;
    const char *name;
    bool baseline;
    char *why;
    json_t *head;  // of the rows that follow; NULL: none
    uint32_t source;
    bool any;
    struct report_log log;
};

static bool wrong(struct reader *r, const char *format, ...) GRT_PRINTF(2, 3);
static bool wrong(struct reader *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(r->why, REPORT_WHY, format, args);
    va_end(args);
    return false;
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

// ---- the head ----

// Words of the command line with spaces between.
static void command_text(const json_t *command, char text[REPORT_TEXT]) {
    size_t used = 0, i;
    json_t *word;
    text[0] = '\0';
    json_array_foreach(command, i, word) {
        const char *value = json_string_value(word);
        if (value && used < REPORT_TEXT) {
            const char *quote = strchr(value, ' ') ? "'" : "";
            used += (size_t)snprintf(text + used, REPORT_TEXT - used, "%s%s%s%s", i ? " " : "",
                                     quote, value, quote);
        }
    }
}

// Options that say where and how something is measured, or that rows repeat: no part of a case.
// Those with a value first.
static const char *const neutral[] = {
    "backend", "device",     "mem-fraction", "mem-limit",       "max-submit-ms", "format",
    "output",  "o",          "time",         "samples",         "num-envs",      "num-dirs",
    "env",     "policy",     "dir-chunk",    "rollout-steps",   "precision",     "loop",
    "seed",    "iterations", "num-uavs",     "shape",           "count",         "size",
    "variant", "trans",      "trace",        "memory-snapshot", "metrics",
};
static const char *const neutral_flags[] = {"require-gpu", "kernels", "every-command", "monitor",
                                            "verbose",     "v",       "quiet",         "q"};

static bool among(const char *word, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(word, list[i]) == 0) {
            return true;
        }
    }
    return false;
}

// The rest of the command line: "map=32 epochs=2".
static void settings_text(const json_t *command, char text[REPORT_TEXT]) {
    size_t used = 0, count = json_array_size(command);
    text[0] = '\0';
    for (size_t i = 1; i < count && used < REPORT_TEXT; i++) {
        const char *word = json_string_value(json_array_get(command, i));
        const char *space = used ? " " : "";
        if (!word || (word[0] != '-' && !strchr(word, '='))) {
            continue;
        }
        const char *key = word + strspn(word, "-");
        char bare[64];
        snprintf(bare, sizeof bare, "%.*s", (int)strcspn(key, "="), key);
        bool joined = strchr(word, '=') != NULL;
        if (among(bare, neutral_flags, sizeof neutral_flags / sizeof *neutral_flags)) {
            continue;
        }
        const char *value =
            joined || i + 1 == count ? "" : json_string_value(json_array_get(command, ++i));
        if (among(bare, neutral, sizeof neutral / sizeof *neutral)) {
            continue;
        }
        used += (size_t)snprintf(text + used, REPORT_TEXT - used, "%s%s%s%s", space, key,
                                 joined ? "" : "=", value ? value : "");
    }
}

// Scalars of an object as cells, behind those that are there; keys that are there stay.
static size_t add_cells(const json_t *object, struct report_cell *cells, size_t count,
                        size_t capacity) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        size_t i = 0;
        while (i < count && strcmp(cells[i].key, key) != 0) {
            i++;
        }
        if (i < count || count == capacity) {
            continue;
        }
        if (json_is_string(value)) {
            cells[count++] = (struct report_cell){.key = key, .text = json_string_value(value)};
        } else if (json_is_number(value)) {
            cells[count++] = (struct report_cell){.key = key, .number = json_number_value(value)};
        } else if (json_is_boolean(value)) {
            cells[count++] = (struct report_cell){.key = key, .number = json_is_true(value)};
        }
    }
    return count;
}

static void profile_text(const json_t *device, char text[REPORT_TEXT]) {
    size_t used = 0, i;
    json_t *profile;
    text[0] = '\0';
    json_array_foreach(json_object_get(device, "profiles"), i, profile) {
        if (used < REPORT_TEXT) {
            used += (size_t)snprintf(text + used, REPORT_TEXT - used, "%s%s", used ? ", " : "",
                                     text_of(profile, "name"));
        }
    }
}

static bool read_nature(struct reader *r, const json_t *head, enum report_nature *nature) {
    const char *text = text_of(head, "nature");
    *nature =
        strcmp(text_of(head, "schema"), "gpurt.static/1") == 0 ? REPORT_STATIC : REPORT_MEASURED;
    if (!*text) {
        return true;
    }
    for (int i = 0; i < REPORT_NATURE_COUNT; i++) {
        if (strcmp(text, report_nature_text((enum report_nature)i)) == 0) {
            *nature = (enum report_nature)i;
            return true;
        }
    }
    return wrong(r, "nature '%.40s' is not known; known are measured, static, predicted", text);
}

static bool read_schema(struct reader *r, const json_t *head) {
    const char *schema = json_string_value(json_object_get(head, "schema"));
    if (!schema) {
        return wrong(r, "no schema: not what `gpurt bench --format json` or jsonl writes");
    }
    if (report_knows_schema(schema) || strcmp(schema, REPORT_MEMORY_SCHEMA) == 0 ||
        strcmp(schema, REPORT_SWEEP_SCHEMA) == 0) {
        return true;
    }
    if (report_knows_name(schema) || strncmp(schema, "gpurt.memory/", 13) == 0 ||
        strncmp(schema, "gpurt.sweep/", 12) == 0) {
        return wrong(r,
                     "its form is %.60s, of another version of gpurt; this one, %s, cannot read it",
                     schema, GPURT_VERSION);
    }
    return wrong(r, "'%.60s' is no form of results that a report can have", schema);
}

static bool is_sweep(const json_t *head) {
    return strcmp(text_of(head, "schema"), REPORT_SWEEP_SCHEMA) == 0;
}

static bool read_head(struct reader *r, json_t *head) {
    struct report_cell facts[REPORT_MAX_CELLS];
    char command[REPORT_TEXT], settings[REPORT_TEXT], profiles[REPORT_TEXT];
    json_t *device = json_object_get(head, "device");
    struct report_source source = {.file = r->name, .facts = facts};
    if (!read_schema(r, head) || !read_nature(r, head, &source.nature)) {
        return false;
    }
    if (device && !json_is_object(device)) {
        return wrong(r, "device is no object");
    }
    command_text(json_object_get(head, "command"), command);
    settings[0] = '\0';
    if (source.nature == REPORT_MEASURED) {
        settings_text(json_object_get(head, "command"), settings);
    }
    profile_text(device, profiles);
    source.schema = text_of(head, "schema");
    source.version = text_of(head, "gpurt");
    source.date = text_of(head, "date");
    source.command = command;
    source.settings = settings;
    source.partial = json_is_true(json_object_get(head, "partial"));
    source.fact_count = add_cells(device, facts, 0, REPORT_MAX_CELLS - 1);
    for (size_t i = 0; i < source.fact_count; i++) {
        const json_t *value = json_object_get(device, facts[i].key);
        if (json_is_boolean(value)) {
            facts[i].text = json_is_true(value) ? "yes" : "no";
        }
    }
    if (*profiles) {
        facts[source.fact_count++] = (struct report_cell){.key = "profiles", .text = profiles};
    }
    struct report_contender contender = {
        .name = device ? text_of(device, "name") : "host",
        .backend = device ? text_of(device, "backend") : "",
        .baseline = r->baseline,
        .predicted = source.nature == REPORT_PREDICTED,
    };
    // Rows of these name their devices, where there are any.
    bool several = !device && (source.nature == REPORT_STATIC || is_sweep(head));
    source.contender = several ? REPORT_NONE : report_add_contender(r->report, &contender);
    r->source = report_add_source(r->report, &source);
    json_decref(r->head);
    r->head = json_incref(head);
    bool room = r->source != REPORT_NONE && (source.contender != REPORT_NONE || several);
    return room || wrong(r, "more than %d devices or %d commands in all", REPORT_MAX_CONTENDERS,
                         REPORT_MAX_SOURCES);
}

// ---- rows ----

// Programs that `gpurt bench` measures beside itself, by the variant of their rows.
static const char *const peers[] = {"openblas"};

static uint32_t contender_of(struct reader *r, const json_t *row) {
    const struct report_source *s = &r->report->sources[r->source];
    const char *variant = text_of(row, "variant");
    if (s->contender == REPORT_NONE) {
        return report_add_contender(r->report,
                                    &(struct report_contender){.name = text_of(row, "device"),
                                                               .backend = text_of(row, "target"),
                                                               .baseline = r->baseline});
    }
    if (among(variant, peers, sizeof peers / sizeof *peers)) {
        struct report_contender peer = r->report->contenders[s->contender];
        peer.peer = variant;
        return report_add_contender(r->report, &peer);
    }
    return s->contender;
}

static bool read_row(struct reader *r, const json_t *row) {
    struct report_cell cells[REPORT_MAX_CELLS];
    if (!json_is_object(row)) {
        return wrong(r, "a row is no object");
    }
    if (is_sweep(r->head)) {
        const char *why = report_read_trial(r->report, row);
        return !why || wrong(r, "%s", why);
    }
    const char *kind = json_string_value(json_object_get(row, "kind"));
    const struct report_bench *bench = report_bench_of(text_of(r->head, "schema"), kind);
    if (!bench) {
        return wrong(r, "rows of kind '%.40s' are not known to gpurt %s", kind ? kind : "",
                     GPURT_VERSION);
    }
    if (json_object_size(row) > REPORT_MAX_CELLS) {
        return wrong(r, "a row has %zu values; %d are allowed", json_object_size(row),
                     REPORT_MAX_CELLS);
    }
    if (json_is_string(json_object_get(row, bench->value))) {
        return wrong(r, "%s is no number", bench->value);
    }
    // What holds for all rows of a command is in its head: the network, the data.
    size_t count = add_cells(row, cells, 0, REPORT_MAX_CELLS);
    count = add_cells(json_object_get(r->head, "model"), cells, count, REPORT_MAX_CELLS);
    count = add_cells(json_object_get(r->head, "data"), cells, count, REPORT_MAX_CELLS);
    uint32_t contender = contender_of(r, row);
    if (contender == REPORT_NONE) {
        return wrong(r, "more than %d devices in all", REPORT_MAX_CONTENDERS);
    }
    if (!report_add_row(r->report, r->source, contender, bench, cells, count) &&
        report_good(r->report)) {
        return wrong(r, "more than %d rows in all", REPORT_MAX_ROWS);
    }
    return true;
}

static bool read_document(struct reader *r, json_t *object) {
    json_t *rows = json_object_get(object, "rows"), *row;
    size_t i;
    if (!read_head(r, object)) {
        return false;
    }
    if (strcmp(text_of(object, "schema"), REPORT_MEMORY_SCHEMA) == 0) {
        const char *why = report_read_memory(r->report, r->source, object);
        return !why || wrong(r, "%s", why);
    }
    if (is_sweep(object)) {
        const char *why = report_read_sweep(r->report, r->source, object);
        if (why) {
            return wrong(r, "%s", why);
        }
    }
    if (rows && !json_is_array(rows)) {
        return wrong(r, "rows is no list");
    }
    json_array_foreach(rows, i, row) {
        char inner[REPORT_WHY];
        if (!read_row(r, row)) {
            snprintf(inner, sizeof inner, "%s", r->why);
            return wrong(r, "row %zu: %.500s", i + 1, inner);
        }
    }
    return true;
}

static bool read_object(struct reader *r, json_t *object) {
    if (!json_is_object(object)) {
        return wrong(r, "an object is wanted, as `gpurt bench --format json` writes it");
    }
    r->any = true;
    if (json_object_get(object, "schema") || json_object_get(object, "rows")) {
        return read_document(r, object);
    }
    if (json_object_get(object, "event")) {
        return report_log_event(&r->log, r->report, r->name, r->baseline, object);
    }
    if (!r->head) {
        return wrong(r, "a row before its head, {\"schema\": ...}");
    }
    // A note beside the rows has one member.
    if (json_object_size(object) == 1) {
        if (json_is_true(json_object_get(object, "partial")) && r->source != REPORT_NONE) {
            r->report->sources[r->source].partial = true;
        }
        return true;
    }
    return read_row(r, object);
}

static int lines_before(const char *text, size_t size) {
    int lines = 0;
    for (size_t i = 0; i < size; i++) {
        lines += text[i] == '\n';
    }
    return lines;
}

bool report_read_text(struct report *report, const char *name, const char *text, size_t size,
                      bool baseline, char why[REPORT_WHY]) {
    struct reader r = {.report = report, .name = name, .baseline = baseline, .why = why};
    bool good = true;
    size_t at = 0;
    int line = 1;
    while (good) {
        char inner[REPORT_WHY];
        size_t space = strspn(text + at, " \t\r\n");
        line += lines_before(text + at, space);
        at += space;
        if (at >= size || !report_good(report)) {
            break;
        }
        json_error_t error;
        json_t *object = json_loadb(text + at, size - at,
                                    JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &error);
        if (!object) {
            good = wrong(&r, "line %d: %.200s; results are wanted, as --format json writes them",
                         line + error.line - 1, error.text);
            break;
        }
        good = read_object(&r, object);
        if (!good) {
            snprintf(inner, sizeof inner, "%s", why);
            wrong(&r, "line %d: %.550s", line, inner);
        }
        line += lines_before(text + at, (size_t)error.position);
        at += (size_t)error.position;
        json_decref(object);
    }
    if (good && !r.any) {
        good = wrong(&r, "is empty");
    }
    json_decref(r.head);
    return good;
}

int report_read(struct report *report, const char *path, bool baseline) {
    char why[REPORT_WHY];
    uint64_t size = 0;
    char *text = grt_whole_file_read_any(path, REPORT_MAX_FILE, &size);
    if (!text) {
        return command_exit_of(grt_last_status());
    }
    bool good = report_read_text(report, path, text, (size_t)size, baseline, why);
    free(text);
    if (!report_good(report)) {
        talk_error("out of memory");
        return COMMAND_INTERNAL;
    }
    if (!good) {
        talk_error("'%s': %s", path, why);
        return COMMAND_DATA;
    }
    return COMMAND_OK;
}
