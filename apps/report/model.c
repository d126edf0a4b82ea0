// SPDX-License-Identifier: Apache-2.0
// The model's memory is a list of chunks, freed together; its arrays grow by doubling.
#include "model.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "base/visible.h"

struct chunk {
    struct chunk *next;
    max_align_t data[];
};

const char *report_nature_text(enum report_nature nature) {
    static const char *const texts[] = {
#define X(name, text) text,
        REPORT_NATURES(X)
#undef X
    };
    return texts[nature];
}

void report_init(struct report *report) {
    *report = (struct report){0};
}

void report_finish(struct report *report) {
    struct chunk *chunk = report->chunks;
    while (chunk) {
        struct chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    for (size_t i = 0; i < report->curve_count; i++) {
        free(report->curves[i].points);
    }
    for (size_t i = 0; i < report->memory_count; i++) {
        free(report->memories[i].blocks);
    }
    free(report->memories);
    for (size_t i = 0; i < report->sweep_count; i++) {
        free(report->sweeps[i].trials);
    }
    free(report->sweeps);
    free(report->contenders);
    free(report->sources);
    free(report->rows);
    free(report->curves);
    *report = (struct report){0};
}

bool report_good(const struct report *report) {
    return !report->no_memory;
}

void *report_alloc(struct report *report, size_t size) {
    struct chunk *chunk = calloc(1, sizeof *chunk + size);
    if (!chunk) {
        report->no_memory = true;
        return NULL;
    }
    chunk->next = report->chunks;
    report->chunks = chunk;
    return chunk->data;
}

const char *report_text(struct report *report, const char *text) {
    char visible[REPORT_TEXT];
    size_t length = text ? grt_visible(text, visible, sizeof visible) : 0;
    char *copy = length ? report_alloc(report, length + 1) : NULL;
    if (!copy) {
        return "";
    }
    memcpy(copy, visible, length);
    return copy;
}

// Room for one more of `size` bytes; false when memory is out.
static bool grow(struct report *report, void *array, size_t count, size_t size) {
    void **items = array;
    if (count & (count - 1) || report->no_memory) {
        return !report->no_memory;
    }
    void *more = realloc(*items, (count ? 2 * count : 1) * size);
    report->no_memory = !more;
    if (more) {
        *items = more;
    }
    return more != NULL;
}

static bool same_text(const char *a, const char *b) {
    return strcmp(a ? a : "", b ? b : "") == 0;
}

uint32_t report_add_contender(struct report *report, const struct report_contender *contender) {
    struct report *r = report;
    char name[REPORT_TEXT], backend[REPORT_TEXT], label[3 * REPORT_TEXT];
    grt_visible(contender->name ? contender->name : "", name, sizeof name);
    grt_visible(contender->backend ? contender->backend : "", backend, sizeof backend);
    for (uint32_t i = 0; i < r->contender_count; i++) {
        const struct report_contender *c = &r->contenders[i];
        if (same_text(c->name, name) && same_text(c->backend, backend) &&
            same_text(c->peer, contender->peer) && c->baseline == contender->baseline &&
            c->predicted == contender->predicted) {
            return i;
        }
    }
    if (r->contender_count == REPORT_MAX_CONTENDERS ||
        !grow(r, &r->contenders, r->contender_count, sizeof *r->contenders)) {
        return REPORT_NONE;
    }
    const char *api = contender->peer ? contender->peer : backend;
    snprintf(label, sizeof label, "%s%s%s%s%s", name, *api ? " · " : "", api,
             contender->predicted ? " (predicted)" : "", contender->baseline ? " (baseline)" : "");
    r->contenders[r->contender_count] = (struct report_contender){
        .name = report_text(r, name),
        .backend = report_text(r, backend),
        .peer = contender->peer ? report_text(r, contender->peer) : NULL,
        .baseline = contender->baseline,
        .predicted = contender->predicted,
        .label = report_text(r, label),
    };
    return (uint32_t)r->contender_count++;
}

// A copy of cells and their texts; NULL with a count above 0 when memory is out.
static struct report_cell *copy_cells(struct report *r, const struct report_cell *cells,
                                      size_t count) {
    struct report_cell *copy = count ? report_alloc(r, count * sizeof *copy) : NULL;
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = (struct report_cell){.key = report_text(r, cells[i].key),
                                       .text = cells[i].text ? report_text(r, cells[i].text) : NULL,
                                       .number = cells[i].number};
    }
    return copy;
}

uint32_t report_add_source(struct report *report, const struct report_source *source) {
    struct report *r = report;
    if (r->source_count == REPORT_MAX_SOURCES ||
        !grow(r, &r->sources, r->source_count, sizeof *r->sources)) {
        return REPORT_NONE;
    }
    struct report_source *s = &r->sources[r->source_count];
    *s = *source;
    s->file = report_text(r, source->file);
    s->schema = report_text(r, source->schema);
    s->version = report_text(r, source->version);
    s->command = report_text(r, source->command);
    s->date = report_text(r, source->date);
    s->settings = report_text(r, source->settings);
    s->facts = copy_cells(r, source->facts, source->fact_count);
    s->fact_count = s->facts ? source->fact_count : 0;
    s->row_count = 0;
    return (uint32_t)r->source_count++;
}

const struct report_cell *report_cell(const struct report_row *row, const char *key) {
    for (size_t i = 0; i < row->cell_count; i++) {
        if (strcmp(row->cells[i].key, key) == 0) {
            return &row->cells[i];
        }
    }
    return NULL;
}

double report_number(const struct report_row *row, const char *key) {
    const struct report_cell *cell = report_cell(row, key);
    return cell && !cell->text ? cell->number : NAN;
}

double report_share(const struct report_bench *bench, double a, double b) {
    return bench->lower ? b / a : a / b;
}

static bool is_among(const char *key, const char *const *keys) {
    for (; keys && *keys; keys++) {
        if (strcmp(*keys, key) == 0) {
            return true;
        }
    }
    return false;
}

void report_case_text(const struct report_row *row, const char *settings, const char *const *only,
                      const char *const *without, char text[REPORT_TEXT]) {
    size_t used = 0;
    text[0] = '\0';
    for (const struct report_part *p = row->bench->parts; p->key; p++) {
        const struct report_cell *cell = report_cell(row, p->key);
        char number[REPORT_QUANTITY];
        if (!cell || used >= REPORT_TEXT || (only && !is_among(p->key, only)) ||
            is_among(p->key, without)) {
            continue;
        }
        if (!cell->text && p->bytes) {
            report_quantity(cell->number, "B", number);
        } else if (!cell->text) {
            snprintf(number, sizeof number, "%.10g", cell->number);
        }
        const char *value = cell->text ? cell->text : number;
        const char *before = p->before ? p->before : "";
        before += used ? 0 : strspn(before, " ");
        if (!p->usual || strcmp(value, p->usual) != 0) {
            used += (size_t)snprintf(text + used, REPORT_TEXT - used, "%s%s", before, value);
        }
    }
    if (row->bench->settings && *settings && used < REPORT_TEXT) {
        snprintf(text + used, REPORT_TEXT - used, " %s", settings);
    }
}

// A prediction says between which figures it lies; what was measured has a spread, of which 90 %
// and more says nothing.
static void judge_interval(struct report_row *row) {
    double low = report_number(row, "low") * row->bench->scale;
    double high = report_number(row, "high") * row->bench->scale;
    if (row->good && row->nature == REPORT_PREDICTED && low > 0 && low <= row->value &&
        high >= row->value && isfinite(high)) {
        row->low = low;
        row->high = high;
        row->spread = (high - low) / 2 / row->value;
        return;
    }
    double spread = row->spread < 0.9 ? row->spread : 0.9;
    row->low = row->value * (1 - spread);
    row->high = row->value * (1 + spread);
}

// How the row came out, and its figure.
static void judge(struct report_row *row) {
    const struct report_cell *check = report_cell(row, "check");
    const struct report_cell *spread = report_cell(row, "spread");
    double value = report_number(row, row->bench->value);
    check = check ? check : report_cell(row, "status");
    row->check = check && check->text ? check->text : "ok";
    bool right = strcmp(row->check, "ok") == 0;
    // A rate of 0 is none, and a time of 0 none either.
    row->good = right && isfinite(value) && value > 0;
    if (right && !row->good) {
        row->check = "no figure";
    }
    row->value = row->good ? value * row->bench->scale : 0;
    if (row->good && spread && !spread->text && spread->number > 0 && isfinite(spread->number)) {
        row->spread = spread->number;
    }
    judge_interval(row);
}

bool report_add_row(struct report *report, uint32_t source, uint32_t contender,
                    const struct report_bench *bench, const struct report_cell *cells,
                    size_t count) {
    struct report *r = report;
    char subject[REPORT_TEXT];
    if (source >= r->source_count || contender >= r->contender_count ||
        r->row_count >= REPORT_MAX_ROWS || count > REPORT_MAX_CELLS ||
        !grow(r, &r->rows, r->row_count, sizeof *r->rows)) {
        return false;
    }
    struct report_source *s = &r->sources[source];
    struct report_row *row = &r->rows[r->row_count];
    *row = (struct report_row){
        .bench = bench, .source = source, .contender = contender, .nature = s->nature};
    row->cells = copy_cells(r, cells, count);
    row->cell_count = row->cells ? count : 0;
    row->date = s->date;
    judge(row);
    report_case_text(row, s->settings, NULL, NULL, subject);
    row->subject = report_text(r, subject);
    r->row_count++;
    s->row_count++;
    r->settled = false;
    return !r->no_memory;
}

struct report_curve *report_add_curve(struct report *report, const struct report_curve *curve) {
    struct report *r = report;
    if (r->curve_count == REPORT_MAX_CURVES ||
        !grow(r, &r->curves, r->curve_count, sizeof *r->curves)) {
        return NULL;
    }
    struct report_curve *c = &r->curves[r->curve_count++];
    *c = (struct report_curve){.source = curve->source,
                               .contender = curve->contender,
                               .group = report_text(r, curve->group),
                               .what = report_text(r, curve->what),
                               .name = report_text(r, curve->name)};
    return c;
}

void report_add_point(struct report *report, struct report_curve *curve,
                      struct report_point point) {
    if (isfinite(point.step) && isfinite(point.seconds) && isfinite(point.value) &&
        curve->count < REPORT_MAX_POINTS &&
        grow(report, &curve->points, curve->count, sizeof *curve->points)) {
        curve->points[curve->count++] = point;
    }
}

struct report_memory *report_add_memory(struct report *report, const struct report_memory *memory) {
    if (report->memory_count == REPORT_MAX_MEMORIES ||
        !grow(report, &report->memories, report->memory_count, sizeof *report->memories)) {
        return NULL;
    }
    struct report_memory *m = &report->memories[report->memory_count++];
    *m = *memory;
    m->blocks = NULL;
    m->count = 0;
    return m;
}

bool report_add_block(struct report *report, struct report_memory *memory,
                      const struct report_block *block) {
    if (memory->count == REPORT_MAX_BLOCKS ||
        !grow(report, &memory->blocks, memory->count, sizeof *memory->blocks)) {
        return false;
    }
    memory->blocks[memory->count] = *block;
    memory->blocks[memory->count++].label = report_text(report, block->label);
    return true;
}

struct report_sweep *report_add_sweep(struct report *report, const struct report_sweep *sweep) {
    if (report->sweep_count == REPORT_MAX_SWEEPS ||
        !grow(report, &report->sweeps, report->sweep_count, sizeof *report->sweeps)) {
        return NULL;
    }
    struct report_sweep *s = &report->sweeps[report->sweep_count++];
    *s = *sweep;
    s->metric = report_text(report, sweep->metric);
    for (size_t i = 0; i < s->parameter_count; i++) {
        s->parameters[i].name = report_text(report, sweep->parameters[i].name);
    }
    s->trials = NULL;
    s->count = 0;
    return s;
}

bool report_add_trial(struct report *report, struct report_sweep *sweep,
                      const struct report_trial *trial) {
    struct report_cell *values = report_alloc(report, sweep->parameter_count * sizeof *values);
    double *places = report_alloc(report, sweep->parameter_count * sizeof *places);
    if (sweep->count == REPORT_MAX_TRIALS || !values || !places ||
        !grow(report, &sweep->trials, sweep->count, sizeof *sweep->trials)) {
        return false;
    }
    struct report_trial *t = &sweep->trials[sweep->count++];
    *t = *trial;
    t->state = report_text(report, trial->state);
    t->values = values;
    t->places = places;
    for (size_t i = 0; i < sweep->parameter_count; i++) {
        values[i] = trial->values[i];
        values[i].key = sweep->parameters[i].name;
        values[i].text = trial->values[i].text ? report_text(report, trial->values[i].text) : NULL;
    }
    return true;
}

int report_order(const char *a, const char *b) {
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            size_t zeros_a = strspn(a, "0"), zeros_b = strspn(b, "0");
            size_t length_a = strspn(a + zeros_a, "0123456789");
            size_t length_b = strspn(b + zeros_b, "0123456789");
            int order = length_a == length_b  ? strncmp(a + zeros_a, b + zeros_b, length_a)
                        : length_a < length_b ? -1
                                              : 1;
            if (order) {
                return order;
            }
            a += zeros_a + length_a;
            b += zeros_b + length_b;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++;
            b++;
        }
    }
    return *a ? 1 : *b ? -1 : 0;
}

// By bench, case and contender; of the same, what is chosen comes first.
static int by_case(const void *left, const void *right) {
    const struct report_row *a = left, *b = right;
    int order = a->bench < b->bench ? -1 : a->bench > b->bench;
    order = order ? order : report_order(a->subject, b->subject);
    order = order ? order : strcmp(a->subject, b->subject);
    order = order ? order : (a->contender > b->contender) - (a->contender < b->contender);
    order = order ? order : -strcmp(a->date, b->date);
    order = order ? order : (a->good < b->good) - (a->good > b->good);
    if (!order && a->good && a->value != b->value) {
        order = (a->value > b->value) == a->bench->lower ? 1 : -1;
    }
    return order ? order : (a->source > b->source) - (a->source < b->source);
}

// Rows of one case, [first, last), predicted ones or the others: shares of the best of those that
// are chosen.
static void rank(struct report_row *first, const struct report_row *last, bool predicted) {
    const struct report_row *best = NULL;
    uint32_t rivals = 0;
    for (const struct report_row *row = first; row < last; row++) {
        if (row->chosen && row->good && (row->nature == REPORT_PREDICTED) == predicted) {
            best = !best || report_share(row->bench, row->value, best->value) > 1 ? row : best;
            rivals++;
        }
    }
    for (struct report_row *row = first; row < last; row++) {
        bool counts = row->chosen && row->good;
        if ((row->nature == REPORT_PREDICTED) != predicted) {
            continue;
        }
        row->of_best = counts ? report_share(row->bench, row->value, best->value) : 0;
        row->rivals = rivals;
    }
}

// Curves of a contender without API go to the only one of that name that has one.
static void join_logs(struct report *r) {
    for (size_t k = 0; k < r->curve_count; k++) {
        const struct report_contender *mine = &r->contenders[r->curves[k].contender];
        uint32_t found = REPORT_NONE, count = 0;
        for (uint32_t i = 0; !*mine->backend && i < r->contender_count; i++) {
            const struct report_contender *c = &r->contenders[i];
            if (*c->backend && !c->peer && c->baseline == mine->baseline &&
                strcmp(c->name, mine->name) == 0) {
                found = i;
                count++;
            }
        }
        if (count == 1) {
            r->curves[k].contender = found;
        }
    }
}

// Numbers for colours, those with the most figures and curves first.
static void paint(struct report *r) {
    size_t *weights = calloc(r->contender_count + 1, sizeof *weights);
    if (!weights) {
        r->no_memory = true;
        return;
    }
    for (size_t i = 0; i < r->row_count; i++) {
        weights[r->rows[i].contender] += r->rows[i].chosen && r->rows[i].bench->compared;
    }
    for (size_t i = 0; i < r->curve_count; i++) {
        weights[r->curves[i].contender]++;
    }
    for (uint32_t i = 0; i < r->contender_count; i++) {
        uint32_t before = 0;
        for (uint32_t k = 0; k < r->contender_count; k++) {
            before += weights[k] > weights[i] || (k < i && weights[k] == weights[i]);
        }
        r->contenders[i].color = before;
    }
    free(weights);
}

size_t report_case_end(const struct report *report, size_t first) {
    const struct report_row *row = &report->rows[first];
    size_t last = first + 1;
    while (last < report->row_count && report->rows[last].bench == row->bench &&
           strcmp(report->rows[last].subject, row->subject) == 0) {
        last++;
    }
    return last;
}

void report_settle(struct report *report) {
    for (size_t i = 0; i < report->sweep_count; i++) {
        report_sweep_settle(&report->sweeps[i]);
    }
    struct report *r = report;
    if (r->row_count > 0) {
        qsort(r->rows, r->row_count, sizeof *r->rows, by_case);
    }
    for (size_t i = 0; i < r->row_count; i++) {
        struct report_row *row = &r->rows[i];
        row->chosen = i == 0 || row->bench != row[-1].bench ||
                      row->contender != row[-1].contender ||
                      strcmp(row->subject, row[-1].subject) != 0;
    }
    for (size_t first = 0, last; first < r->row_count; first = last) {
        last = report_case_end(r, first);
        rank(&r->rows[first], &r->rows[last], false);
        rank(&r->rows[first], &r->rows[last], true);
    }
    join_logs(r);
    paint(r);
    r->settled = true;
}
