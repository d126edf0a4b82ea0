// SPDX-License-Identifier: Apache-2.0
// Tables as JSON. The head says what the rows are and how they came about:
//
//     {"schema": "gpurt.bench/1", "gpurt": "0.1.0", "command": ["gpurt", "bench"],
//      "date": "2026-11-15T01:12:29Z", "units": {"size": "B"}, "device": {...}, "rows": [...]}
//
// jsonl is the head without rows on one line, then each row on its own.
#include "table_json.h"

#include <math.h>
#include <string.h>
#include <time.h>

json_t *table_json_text(const char *text) {
    char plain[TABLE_TEXT_SIZE];
    json_t *json = json_string(text);
    if (json) {
        return json;
    }
    snprintf(plain, sizeof plain, "%s", text);
    for (char *at = plain; *at; at++) {
        *at = (unsigned char)*at < 0x80 ? *at : '?';
    }
    return json_string(plain);
}

static json_t *cell_json(const struct table_column *column, const struct table_cell *cell) {
    if (cell->json) {
        return json_incref(cell->json);
    }
    switch (column->type) {
    case TABLE_TEXT:
        return table_json_text(cell->text);
    case TABLE_FLAG:
        return json_boolean(cell->count);
    case TABLE_COUNT:
    case TABLE_BYTES:
        return json_integer((json_int_t)cell->count);
    case TABLE_NUMBER:
    case TABLE_SHARE:
        break;
    }
    return isfinite(cell->number) ? json_real(cell->number) : json_null();
}

json_t *table_object(const struct table_column *columns, size_t count,
                     const struct table_cell *cells) {
    json_t *object = json_object();
    for (size_t i = 0; object && i < count; i++) {
        if (!columns[i].key || !(cells[i].known || cells[i].json)) {
            continue;
        }
        if (json_object_set_new(object, columns[i].key, cell_json(&columns[i], &cells[i])) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static json_t *command_line(const struct table_desc *desc) {
    json_t *words = json_array();
    json_array_append_new(words, json_string("gpurt"));
    const char *verb = desc->verb ? desc->verb : "";
    while (*verb) {
        size_t length = strcspn(verb, " ");
        json_array_append_new(words, json_stringn(verb, length));
        verb += length + (verb[length] == ' ');
    }
    for (int i = desc->verb ? 1 : 0; i < desc->argc; i++) {
        json_array_append_new(words, table_json_text(desc->argv[i]));
    }
    return words;
}

static json_t *units(const struct table_desc *desc) {
    json_t *object = json_object();
    for (size_t i = 0; i < desc->column_count; i++) {
        const struct table_column *column = &desc->columns[i];
        if (column->key && column->type == TABLE_BYTES) {
            json_object_set_new(object, column->key, json_string("B"));
        } else if (column->key && column->unit) {
            json_object_set_new(object, column->key, json_string(column->unit));
        }
    }
    return object;
}

static bool dump(struct table *t, const json_t *json, size_t flags) {
    FILE *file = t->desc.output->file;
    bool good = json_dumpf(json, file, flags | JSON_REAL_PRECISION(8)) == 0;
    fputc('\n', file);
    return good;
}

bool table_json_open(struct table *table) {
    struct table *t = table;
    const struct table_desc *desc = &t->desc;
    json_t *extra = desc->head;
    t->desc.head = NULL;
    if (desc->format != TABLE_JSON && desc->format != TABLE_JSONL) {
        json_decref(extra);
        return true;
    }
    char date[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc)) {
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    }
    t->head = json_object();
    bool good = json_object_set_new(t->head, "schema", json_string(desc->schema)) == 0;
    good &= json_object_set_new(t->head, "gpurt", json_string(GPURT_VERSION)) == 0;
    good &= json_object_set_new(t->head, "command", command_line(desc)) == 0;
    good &= json_object_set_new(t->head, "date", json_string(date)) == 0;
    good &= json_object_set_new(t->head, "units", units(desc)) == 0;
    good &= !extra || json_object_update(t->head, extra) == 0;
    json_decref(extra);
    if (desc->format == TABLE_JSONL) {
        good = good && dump(t, t->head, JSON_COMPACT);
    } else {
        good = good && (t->rows = json_array()) != NULL;
    }
    return good;
}

bool table_json_row(struct table *table, const struct table_cell *cells) {
    json_t *row = table_object(table->desc.columns, table->desc.column_count, cells);
    if (table->rows) {
        return json_array_append_new(table->rows, row) == 0;
    }
    bool good = row && dump(table, row, JSON_COMPACT);
    json_decref(row);
    return good;
}

bool table_note(struct table *table, const char *key, json_t *value) {
    if (table->rows) {
        return json_object_set_new(table->head, key, value) == 0;
    }
    json_t *line = table->head ? json_pack("{s:o}", key, value) : NULL;
    if (!line) {
        if (!table->head) {
            json_decref(value);
        }
        return !table->head;
    }
    bool good = dump(table, line, JSON_COMPACT);
    json_decref(line);
    return good;
}

bool table_json_close(struct table *table) {
    struct table *t = table;
    bool good = true;
    if (t->rows) {
        good = json_object_set(t->head, "rows", t->rows) == 0;
        good = good && dump(t, t->head, JSON_INDENT(2));
    }
    json_decref(t->rows);
    json_decref(t->head);
    t->rows = t->head = NULL;
    return good;
}
