// SPDX-License-Identifier: Apache-2.0
// Tables as text into HDF5: x f64 [N][inputs], y f64 [N][targets], or i32 [N] of classes.
//
// The file is read whole. A line is a row; fields stand between commas, semicolons or tabs, in
// double quotes where they hold one of those. The first line has names where none of its fields is
// a number. A class may be a word: classes are numbered in the order of their bytes.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/closest.h"
#include "base/log.h"
#include "base/whole_file.h"
#include "table.h"

#define MOST_BYTES (1ull << 33)
#define MOST_COLUMNS 16384
#define FIELD 128  // bytes of a field that is read; longer ones are no numbers

static bool no_memory(const struct table *t) {
    grt_fail(GRT_NO_MEMORY, "no host memory for %s", t->desc->source);
    return false;
}

// ---- fields ----

static const char *behind_blanks(const struct table *t, const char *c) {
    while (c < t->end && strchr(" \r\t", *c) && *c != '\0' && *c != t->separator) {
        c++;
    }
    return c;
}

// The field that begins at *at, which moves behind it and its separator; *last: the line ends. NULL
// in .at: a quote that nothing closes, or text behind the one that does.
static struct field next_field(const struct table *t, const char **at, bool *last) {
    const char *c = behind_blanks(t, *at);
    struct field f = {.at = c};
    if (c < t->end && *c == '"') {
        f.at = ++c;
        f.quoted = true;
        while (c < t->end && !(*c == '"' && (c + 1 == t->end || c[1] != '"'))) {
            c += *c == '"' ? 2 : 1;
        }
        if (c >= t->end) {
            return (struct field){0};
        }
        f.length = (size_t)(c - f.at);
        c = behind_blanks(t, c + 1);
        if (c < t->end && *c != t->separator && *c != '\n') {
            return (struct field){0};
        }
    }
    const char *begun = c;
    while (c < t->end && *c != t->separator && *c != '\n') {
        c++;
    }
    if (!f.quoted) {
        f.length = (size_t)(c - begun);
        while (f.length > 0 && strchr(" \r\t", f.at[f.length - 1])) {
            f.length--;
        }
        while (f.length > 0 && (*f.at == ' ' || *f.at == '\t')) {
            f.at++;
            f.length--;
        }
    }
    *last = c >= t->end || *c == '\n';
    *at = c < t->end ? c + 1 : c;
    return f;
}

static bool is_missing(const struct field *f) {
    static const char *const words[] = {"", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i]) == f->length && memcmp(words[i], f->at, f->length) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_number(const struct field *f, double *number) {
    char text[FIELD];
    char *end = NULL;
    if (f->length == 0 || f->length >= sizeof text) {
        return false;
    }
    memcpy(text, f->at, f->length);
    text[f->length] = '\0';
    if (strspn(text, "0123456789.eE+-") != f->length) {
        return false;
    }
    *number = strtod(text, &end);
    return *end == '\0' && end > text && isfinite(*number);
}

// A copy of a field as a text, of one line as names are kept; NULL without host memory.
static char *text_of(const struct field *f) {
    char *text = malloc(f->length + 1);
    size_t length = 0;
    for (size_t i = 0; text && i < f->length; i++) {
        text[length++] = f->at[i] == '\n' ? ' ' : f->at[i];
        i += f->quoted && f->at[i] == '"';  // two of them are one
    }
    if (text) {
        text[length] = '\0';
    }
    return text;
}

// ---- columns ----

// What stands between fields: a tab, or of commas and semicolons what the first line has more of.
static char separator_of(const struct table *t) {
    size_t length = strlen(t->desc->source), commas = 0, others = 0;
    for (const char *c = t->bytes; c < t->end && *c != '\n'; c++) {
        commas += *c == ',';
        others += *c == ';';
    }
    bool tabs = length > 4 && strcmp(t->desc->source + length - 4, ".tsv") == 0;
    return tabs ? '\t' : others > commas ? ';' : ',';
}

// The names of the columns, or their numbers from 1 on; *rows becomes where the rows begin.
static bool read_names(struct table *t, const char **rows) {
    const char *at = t->bytes;
    bool last = false, numbers = false;
    double unused;
    t->names = calloc(MOST_COLUMNS, sizeof(char *));
    if (!t->names) {
        return no_memory(t);
    }
    while (!last) {
        struct field f = next_field(t, &at, &last);
        if (!f.at || t->columns == MOST_COLUMNS) {
            grt_fail(GRT_BAD_DATA, "%s:1: %s", t->desc->source,
                     f.at ? "more than 16384 columns"
                          : "a quote that nothing closes, or text behind it");
            return false;
        }
        numbers = numbers || is_number(&f, &unused);
        t->names[t->columns] = text_of(&f);
        if (!t->names[t->columns++]) {
            return no_memory(t);
        }
    }
    for (uint32_t i = 0; numbers && i < t->columns; i++) {
        char number[16];
        snprintf(number, sizeof number, "%u", i + 1);
        free(t->names[i]);
        t->names[i] = text_of(&(struct field){.at = number, .length = strlen(number)});
        if (!t->names[i]) {
            return no_memory(t);
        }
    }
    *rows = numbers ? t->bytes : at;
    return true;
}

static int by_bytes(const void *a, const void *b) {
    const char *one = *(char *const *)a, *other = *(char *const *)b;
    return one && other ? strcmp(one, other) : 0;
}

// The column of a name, or of a number from 1 on; `remedy` ends the sentence where there is none.
static bool find_column(const struct table *t, const char *name, const char *remedy,
                        uint32_t *column) {
    char *end = NULL;
    for (uint32_t i = 0; i < t->columns; i++) {
        if (strcmp(t->names[i], name) == 0) {
            *column = i;
            return true;
        }
    }
    unsigned long number = strtoul(name, &end, 10);
    if (*name && !*end && number >= 1 && number <= t->columns) {
        *column = (uint32_t)number - 1;
        return true;
    }
    const char *closest = grt_closest(name, (const void *)t->names, t->columns, sizeof *t->names);
    return grt_fail(GRT_BAD_DATA, "%s: no column '%.60s'; %s%.60s%s%s", t->desc->source, name,
                    closest ? "did you mean '" : "the first is '", closest ? closest : t->names[0],
                    closest ? "'?" : "'", remedy);
}

// Names that are kept find the columns of other files: each that is taken has one of its own.
static bool check_names(const struct table *t) {
    char **sorted = malloc((t->columns + 1u) * sizeof *sorted);
    if (!sorted) {
        return no_memory(t);
    }
    memcpy(sorted, t->names, t->columns * sizeof *sorted);
    qsort(sorted, t->columns, sizeof *sorted, by_bytes);
    const char *twice = NULL;
    for (uint32_t i = 0; !twice && i < t->input_count + t->target_count; i++) {
        uint32_t column = i < t->input_count ? t->inputs[i] : t->targets[i - t->input_count];
        char **at = bsearch(&t->names[column], sorted, t->columns, sizeof *sorted, by_bytes);
        if (at && ((at > sorted && by_bytes(at, at - 1) == 0) ||
                   (at + 1 < sorted + t->columns && by_bytes(at, at + 1) == 0))) {
            twice = *at;
        }
    }
    free(sorted);
    return !twice || grt_fail(GRT_BAD_DATA,
                              "%s: several columns are called '%.60s': give each a name of its "
                              "own, or leave them out of `inputs` and `targets`",
                              t->desc->source, twice);
}

// Targets as named, or the last column; inputs as named, or all others.
static bool choose_columns(struct table *t) {
    const struct grt_table_desc *d = t->desc;
    t->inputs = calloc(t->columns + d->input_count + 1u, sizeof *t->inputs);
    t->targets = calloc(t->columns + d->target_count + 1u, sizeof *t->targets);
    bool *taken = calloc(t->columns + 1u, sizeof *taken);
    bool good = t->inputs && t->targets && taken;
    if (!good) {
        free(taken);
        return no_memory(t);
    }
    t->target_count = d->no_targets ? 0 : d->target_count > 0 ? d->target_count : 1;
    t->targets[0] = t->columns - 1;
    if (d->weights) {
        good =
            find_column(t, d->weights, "; `sample_weights=none` leaves weights out", &t->weights);
        if (good && t->weights == t->targets[0] && t->columns > 1) {
            t->targets[0]--;
        }
    }
    for (uint32_t i = 0; good && !d->no_targets && i < d->target_count; i++) {
        good = find_column(t, d->targets[i], "", &t->targets[i]);
    }
    for (uint32_t i = 0; good && i < t->target_count; i++) {
        taken[t->targets[i]] = true;
    }
    if (good && d->weights && taken[t->weights]) {
        good = grt_fail(GRT_BAD_DATA, "%s: column '%.60s' is target and weight", d->source,
                        t->names[t->weights]);
    }
    if (good && d->weights) {
        taken[t->weights] = true;
    }
    for (uint32_t i = 0; good && i < d->input_count; i++) {
        good = find_column(t, d->inputs[i], "", &t->inputs[i]);
        t->input_count = i + 1;
        if (good && taken[t->inputs[i]]) {
            good = grt_fail(GRT_BAD_DATA, "%s: column '%.60s' is input and target or weight",
                            d->source, t->names[t->inputs[i]]);
        }
    }
    for (uint32_t i = 0; good && d->input_count == 0 && i < t->columns; i++) {
        if (!taken[i]) {
            t->inputs[t->input_count++] = i;
        }
    }
    free(taken);
    if (good && t->input_count == 0) {
        good = grt_fail(GRT_BAD_DATA, "%s: one column; inputs and a target are wanted", d->source);
    }
    return good && check_names(t);
}

// ---- rows ----

static bool grow(void **list, uint64_t bytes) {
    void *grown = realloc(*list, bytes);
    if (!grown) {
        return false;
    }
    *list = grown;
    return true;
}

static bool make_room(struct table *t) {
    void *x = t->x, *y = t->y, *w = t->w, *words = t->words;
    if (t->rows < t->room) {
        return true;
    }
    t->room = 2 * t->room + 1024;
    bool good = grow(&x, t->room * t->input_count * sizeof *t->x);
    if (t->target_count > 0) {
        good = grow(&y, t->room * t->target_count * sizeof *t->y) && good;
        good = grow(&words, t->room * sizeof *t->words) && good;
    }
    if (t->desc->weights) {
        good = grow(&w, t->room * sizeof *t->w) && good;
    }
    t->x = x;
    t->y = y;
    t->w = w;
    t->words = words;
    return good || no_memory(t);
}

// A field as a number, or NaN; false with the sentence.
static bool take(const struct table *t, const struct field *f, uint32_t column, uint64_t line,
                 double *number) {
    if (is_number(f, number)) {
        return true;
    }
    *number = NAN;
    if (is_missing(f) && t->desc->fill) {
        return true;
    }
    return is_missing(f)
               ? grt_fail(GRT_BAD_DATA,
                          "%s:%llu: column '%.60s' has no value: fill 0 or fill mean puts one "
                          "there",
                          t->desc->source, (unsigned long long)line, t->names[column])
               : grt_fail(GRT_BAD_DATA,
                          "%s:%llu: column '%.60s': '%.*s' is no number: `inputs` names the "
                          "columns to take",
                          t->desc->source, (unsigned long long)line, t->names[column],
                          (int)(f->length < 40 ? f->length : 40), f->at);
}

static bool take_row(struct table *t, const struct field *fields, uint64_t line) {
    bool good = make_room(t);
    for (uint32_t i = 0; good && i < t->input_count; i++) {
        good =
            take(t, &fields[t->inputs[i]], t->inputs[i], line, &t->x[t->rows * t->input_count + i]);
    }
    for (uint32_t i = 0; good && i < t->target_count; i++) {
        const struct field *f = &fields[t->targets[i]];
        double *to = &t->y[t->rows * t->target_count + i];
        if (is_missing(f)) {
            return grt_fail(GRT_BAD_DATA,
                            "%s:%llu: the target '%.60s' has no value: targets are not filled, "
                            "take the line out",
                            t->desc->source, (unsigned long long)line, t->names[t->targets[i]]);
        }
        bool word = t->target_count == 1 && !is_number(f, to);
        if (t->target_count == 1) {
            t->words[t->rows] = *f;
        }
        t->wordy = t->wordy || word;
        good = word || take(t, f, t->targets[i], line, to);
    }
    const struct field *w = t->desc->weights && good ? &fields[t->weights] : NULL;
    if (w && !is_number(w, &t->w[t->rows])) {
        return grt_fail(
            GRT_BAD_DATA,
            "%s:%llu: the weight '%.60s' is no number: weights are not filled, take the "
            "line out",
            t->desc->source, (unsigned long long)line, t->names[t->weights]);
    }
    t->rows += good;
    return good;
}

static bool read_rows(struct table *t, const char *at) {
    struct field *fields = calloc(t->columns + 1u, sizeof *fields);
    uint64_t line = 1;
    bool good = fields != NULL || no_memory(t);
    for (const char *c = t->bytes; c < at; c++) {
        line += *c == '\n';
    }
    while (good && at < t->end) {
        const char *begun = at;
        uint32_t count = 0;
        bool last = false;
        struct field f = {0};
        while (!last) {
            f = next_field(t, &at, &last);
            if (!f.at) {
                break;
            }
            if (count < t->columns) {
                fields[count] = f;
            }
            count++;
        }
        bool blank = count == 1 && f.length == 0 && !f.quoted;
        if (!f.at || (count != t->columns && !blank)) {
            good = f.at ? grt_fail(GRT_BAD_DATA, "%s:%llu: %u fields, and the first line has %u",
                                   t->desc->source, (unsigned long long)line, count, t->columns)
                        : grt_fail(GRT_BAD_DATA,
                                   "%s:%llu: a quote that nothing closes, or text behind it",
                                   t->desc->source, (unsigned long long)line);
        } else if (!blank || t->columns == 1) {
            good = take_row(t, fields, line);
        }
        for (; good && begun < at; begun++) {
            line += *begun == '\n';
        }
    }
    free(fields);
    if (good && t->rows == 0) {
        good = grt_fail(GRT_BAD_DATA, "%s: no rows behind the names", t->desc->source);
    }
    return good;
}

// ---- what is missing ----

// Of the inputs; targets have none.
static bool fill(struct table *t) {
    double *numbers = t->x;
    const uint32_t *columns = t->inputs, count = t->input_count;
    char *end = NULL;
    double value = t->desc->fill ? strtod(t->desc->fill, &end) : 0;
    bool mean = t->desc->fill && strcmp(t->desc->fill, "mean") == 0;
    for (uint32_t k = 0; k < count; k++) {
        double sum = 0;
        uint64_t found = 0;
        for (uint64_t i = 0; i < t->rows; i++) {
            double v = numbers[i * count + k];
            sum += isnan(v) ? 0 : v;
            found += !isnan(v);
        }
        if (found == 0 && mean) {
            return grt_fail(GRT_BAD_DATA, "%s: column '%.60s' has no value at all", t->desc->source,
                            t->names[columns[k]]);
        }
        for (uint64_t i = 0; found < t->rows && i < t->rows; i++) {
            if (isnan(numbers[i * count + k])) {
                numbers[i * count + k] = mean ? sum / (double)found : value;
                t->filled++;
            }
        }
    }
    return true;
}

// ---- classes ----

// The names of classes that are given, in the order of their bytes.
static bool take_classes(struct table *t) {
    const struct grt_table_desc *d = t->desc;
    t->classes = calloc(d->class_count + 1u, sizeof(char *));
    for (uint32_t i = 0; t->classes && i < d->class_count; i++) {
        struct field name = {.at = d->class_names[i], .length = strlen(d->class_names[i])};
        t->classes[i] = text_of(&name);
        t->class_count += t->classes[i] != NULL;
        if (!t->classes[i]) {
            return false;
        }
    }
    return t->classes != NULL;
}

// Each different word, in that order.
static bool find_classes(struct table *t, char *const *sorted) {
    t->classes = calloc(t->rows + 1, sizeof(char *));
    bool good = t->classes != NULL;
    for (uint64_t i = 0; good && i < t->rows; i++) {
        if (i == 0 || strcmp(sorted[i], sorted[i - 1]) != 0) {
            struct field name = {.at = sorted[i], .length = strlen(sorted[i])};
            char *copy = text_of(&name);
            good = copy != NULL;
            t->classes[t->class_count] = copy;
            t->class_count += good;
        }
    }
    return good;
}

// Words of the target as numbers, in the order of their bytes.
static bool number_words(struct table *t) {
    char **all = calloc(t->rows + 1, sizeof(char *));
    bool good = all != NULL;
    for (uint64_t i = 0; good && i < t->rows; i++) {
        all[i] = text_of(&t->words[i]);
        good = all[i] != NULL;
    }
    char **sorted = good ? malloc((t->rows + 1) * sizeof(char *)) : NULL;
    good = sorted != NULL;
    if (good) {
        memcpy(sorted, all, t->rows * sizeof(char *));
        qsort(sorted, t->rows, sizeof(char *), by_bytes);
        good = t->desc->class_count > 0 ? take_classes(t) : find_classes(t, sorted);
    }
    bool many = t->class_count > IMPORT_MOST_CLASSES;
    bool known = true;
    for (uint64_t i = 0; good && known && i < t->rows; i++) {
        char **found = bsearch(&all[i], t->classes, t->class_count, sizeof(char *), by_bytes);
        t->y[i] = found ? (double)(found - t->classes) : 0;
        known = found || grt_fail(GRT_BAD_DATA,
                                  "%s: the class '%.60s' is none of the %u that the network knows",
                                  t->desc->source, all[i], t->class_count);
    }
    for (uint64_t i = 0; all && i < t->rows; i++) {
        free(all[i]);
    }
    free(sorted);
    free(all);
    if (!known) {
        return false;
    }
    if (many) {
        return grt_fail(GRT_BAD_DATA, "%s: the target '%.60s' has %u different words; up to %d",
                        t->desc->source, t->names[t->targets[0]], t->class_count,
                        IMPORT_MOST_CLASSES);
    }
    return good || no_memory(t);
}

// Whether one target has whole numbers from 0 on alone.
static bool has_classes(struct table *t) {
    bool whole = t->target_count == 1;
    double most = 0;
    for (uint64_t i = 0; whole && i < t->rows; i++) {
        whole = t->y[i] >= 0 && t->y[i] < IMPORT_MOST_CLASSES && t->y[i] == floor(t->y[i]);
        most = t->y[i] > most ? t->y[i] : most;
    }
    t->class_count = whole ? (uint32_t)most + 1 : 0;
    return whole;
}

static void finish(struct table *t) {
    for (uint32_t i = 0; t->names && i < t->columns; i++) {
        free(t->names[i]);
    }
    for (uint32_t i = 0; t->classes && i < t->class_count; i++) {
        free(t->classes[i]);
    }
    free(t->names);
    free(t->classes);
    free(t->inputs);
    free(t->targets);
    free(t->x);
    free(t->y);
    free(t->w);
    free(t->words);
    free(t->bytes);
}

bool grt_table_import(const struct grt_table_desc *desc, struct grt_table_result *result) {
    struct table t = {.desc = desc};
    uint64_t size = 0;
    const char *rows = NULL;
    char *end = NULL;
    if (!desc || !desc->source || !desc->path || !result) {
        return grt_fail(GRT_INVALID, "grt_table_import: a source, a path and a result are wanted");
    }
    if (desc->fill && strcmp(desc->fill, "mean") != 0 &&
        (!isfinite(strtod(desc->fill, &end)) || *end || !desc->fill[0])) {
        return grt_fail(GRT_CONFIG, "fill is a number or mean, not '%s'", desc->fill);
    }
    t.bytes = grt_whole_file_read(desc->source, MOST_BYTES, &size);
    if (!t.bytes) {
        return false;
    }
    t.end = t.bytes + size;
    if (size >= 3 && memcmp(t.bytes, "\xef\xbb\xbf", 3) == 0) {
        memset(t.bytes, ' ', 3);  // the mark of UTF-8, which spaces are as good as
    }
    t.separator = separator_of(&t);
    bool good = (size > 0 && !memchr(t.bytes, '\0', size)) ||
                grt_fail(GRT_BAD_DATA, "%s: %s", desc->source,
                         size > 0 ? "it is no text: it has bytes of 0" : "it is empty");
    good = good && read_names(&t, &rows) && choose_columns(&t) && read_rows(&t, rows) && fill(&t);
    t.wordy = t.wordy || (t.target_count == 1 && desc->class_count > 0);
    good = good && (!t.wordy || number_words(&t));
    if (good && !t.wordy) {
        has_classes(&t);
    }
    good = good && table_write(&t);
    *result = (struct grt_table_result){.rows = t.rows,
                                        .filled = t.filled,
                                        .inputs = t.input_count,
                                        .targets = t.target_count,
                                        .classes = t.class_count};
    if (good) {
        result->input_names = table_lines(t.names, t.inputs, t.input_count);
        result->target_names = table_lines(t.names, t.targets, t.target_count);
        result->class_names = t.classes ? table_lines(t.classes, NULL, t.class_count) : NULL;
    }
    finish(&t);
    return good;
}

void grt_table_result_finish(struct grt_table_result *result) {
    if (result) {
        free(result->input_names);
        free(result->target_names);
        free(result->class_names);
        *result = (struct grt_table_result){0};
    }
}
