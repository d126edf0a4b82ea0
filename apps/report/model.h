// SPDX-License-Identifier: Apache-2.0
// What a report is about: a pure model that read.c fills from files and tests fill by hand, and
// that every form of the report is written from.
//
//     contender  a device by one API, or a peer beside it: what is compared
//     source     one command that measured: file, versions, date, device, as it was recorded
//     row        one case of a bench on one contender; its figure is in the unit of its bench
//     curve      one training run: points of step, seconds and the value that is followed
//
// Texts are copied and made visible. Memory that runs out is remembered: the model stays whole, and
// report_good() says it once, at the end.
#ifndef APPS_REPORT_MODEL_H
#define APPS_REPORT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPORT_TEXT 400          // bytes of one text; what is longer is cut
#define REPORT_MAX_CELLS 64      // of a row
#define REPORT_MAX_ROWS 100000   // of all files
#define REPORT_MAX_POINTS 20000  // of a curve
#define REPORT_MAX_CONTENDERS 500
#define REPORT_MAX_SOURCES 20000
#define REPORT_MAX_CURVES 2000
#define REPORT_MAX_MEMORIES 100
#define REPORT_MAX_BLOCKS 20000  // of a snapshot
#define REPORT_MAX_SWEEPS 100
#define REPORT_MAX_TRIALS 10000   // of a sweep
#define REPORT_MAX_PARAMETERS 32  // the same
#define REPORT_NONE UINT32_MAX

// How a figure came about.
#define REPORT_NATURES(X)                                                                          \
    X(MEASURED, "measured")                                                                        \
    X(STATIC, "static")       /* by a compiler, without the device */                              \
    X(PREDICTED, "predicted") /* by a model of the device */

enum report_nature {
#define X(name, text) REPORT_##name,
    REPORT_NATURES(X)
#undef X
        REPORT_NATURE_COUNT,
};
const char *report_nature_text(enum report_nature nature);

struct report_cell {
    const char *key;
    const char *text;  // NULL: a number
    double number;
};

// A key of a row as a part of the text that names its case: "batch 256". What is usual is left out.
struct report_part {
    const char *key;
    const char *before;
    const char *usual;  // or NULL
    bool bytes;         // "256 MiB"
};

#define REPORT_MAX_PARTS 10

// A kind of result; the list is in bench.c.
struct report_bench {
    const char *name;    // "gemm"
    const char *title;   // "Matrix products"
    const char *cases;   // "products": what several of them are called
    const char *schema;  // of its files
    const char *kind;    // of its rows; NULL: they have none
    const char *value;   // key of the figure
    double scale;        // from the file's unit to `unit`
    const char *unit;    // "FLOP/s"
    bool lower;          // less is better
    bool compared;       // figures of contenders are compared
    bool settings;       // settings on the command line are part of the case
    struct report_part parts[REPORT_MAX_PARTS];
};

struct report_contender {
    const char *name;     // "NVIDIA H200"
    const char *backend;  // "vulkan"; "" where it is not known
    const char *peer;     // "openblas"; NULL: gpurt
    bool predicted;       // its figures are a model's, and compete with no measured ones
    bool baseline;        // of the file that --baseline names
    const char *label;    // made of these: "NVIDIA H200 · vulkan"
    uint32_t color;       // its number among those that are drawn, most figures first
};

struct report_source {
    const char *file;
    const char *schema;
    const char *version;
    const char *command;
    const char *date;      // "2026-11-16T12:43:41Z", or ""
    const char *settings;  // of the command, those that are part of a case, or ""
    uint32_t contender;    // REPORT_NONE: its rows say
    bool partial;
    enum report_nature nature;
    struct report_cell *facts;  // the record of the machine
    size_t fact_count;
    size_t row_count;
};

struct report_row {
    const struct report_bench *bench;
    uint32_t source;
    uint32_t contender;
    enum report_nature nature;
    bool good;         // measured and right; false: `check` says why
    bool chosen;       // of several rows of this case and contender the one that counts
    double value;      // in the bench's unit; 0 unless good
    double spread;     // half the interquartile range or the interval, relative; 0: not known
    double low, high;  // between which the figure lies; itself where that is not known
    double of_best;    // of chosen rows: share of the best contender's of this case; else 0
    uint32_t rivals;   // contenders with a figure of this case, this one too; predictions apart
    const char *check;
    const char *subject;  // the case, the same text on every contender
    const char *date;     // of its source
    struct report_cell *cells;
    size_t cell_count;
};

struct report_point {
    double step;
    double seconds;
    double value;
};

struct report_curve {
    uint32_t source;
    uint32_t contender;
    const char *group;  // "ppo cartpole"
    const char *what;   // "return"
    const char *name;   // "seed 1"
    struct report_point *points;
    size_t count;
};

// An allocation on the device.
struct report_block {
    const char *label;
    double size;        // bytes
    double begin, end;  // seconds
    double at;          // bytes below it while it is there, as it is drawn
    uint32_t tensors;
};

// A snapshot of memory: read_memory.c.
struct report_memory {
    uint32_t source;
    uint32_t contender;
    double seconds, peak, peak_at;
    struct report_block *blocks;
    size_t count;
};

// A trial of a sweep. Values are of the sweep's parameters, in their order.
struct report_trial {
    uint32_t number;
    const char *state;
    double value;  // of the metric; NaN: none
    struct report_cell *values;
    double *places;  // of the values on their axes: numbers, or words by their first trials
};

struct report_parameter {
    const char *name;
    bool log;           // drawn by factors
    bool words;         // some value is no number
    double importance;  // from 0 to 1; NaN: not known. See sweep.c
};

// A sweep: read_sweep.c.
struct report_sweep {
    uint32_t source;
    const char *metric;
    bool maximize;
    struct report_parameter parameters[REPORT_MAX_PARAMETERS];
    size_t parameter_count;
    struct report_trial *trials;
    size_t count;
};

struct report {
    struct report_contender *contenders;
    struct report_source *sources;
    struct report_row *rows;
    struct report_curve *curves;
    struct report_memory *memories;
    struct report_sweep *sweeps;
    size_t contender_count, source_count, row_count, curve_count, memory_count, sweep_count;
    void *chunks;  // of texts and arrays
    bool no_memory;
    bool settled;
};

void report_init(struct report *report);
void report_finish(struct report *report);
// False when memory ran out since report_init().
bool report_good(const struct report *report);

// A copy that lives as long as the report, visible and cut at REPORT_TEXT; "" when memory is out.
const char *report_text(struct report *report, const char *text);
// Zeroed memory that lives as long as the report; NULL when memory is out.
void *report_alloc(struct report *report, size_t size);

// Each returns the number of what was added, or of the same one that is there; REPORT_NONE when
// there are too many or memory is out. Texts are copied; `label` is made.
uint32_t report_add_contender(struct report *report, const struct report_contender *contender);
uint32_t report_add_source(struct report *report, const struct report_source *source);

// Adds a row of a source. The cells are copied; case, figure and check are taken from them.
// False when there are too many, or memory is out.
bool report_add_row(struct report *report, uint32_t source, uint32_t contender,
                    const struct report_bench *bench, const struct report_cell *cells,
                    size_t count);
// Adds a curve without points. NULL when there are too many or memory is out.
struct report_curve *report_add_curve(struct report *report, const struct report_curve *curve);
void report_add_point(struct report *report, struct report_curve *curve, struct report_point point);

// To be called when all is added: sorts rows by bench, case and contender, and chooses of each the
// newest, of several of one command the best. Fills of_best, rivals and color. A log names a device
// without its API: its curves go to the one contender of that name, where there is one.
void report_settle(struct report *report);
// Of settled rows: where those of the same bench and case as row `first` end.
size_t report_case_end(const struct report *report, size_t first);

// The cell of a row, or NULL; and its number, or NaN.
const struct report_cell *report_cell(const struct report_row *row, const char *key);
double report_number(const struct report_row *row, const char *key);

// The text that names the case of a row, of all its keys or of `only` these, or `without` these
// (lists that end with NULL; NULL: no such list). `settings` of its source go with it unless "".
void report_case_text(const struct report_row *row, const char *settings, const char *const *only,
                      const char *const *without, char text[REPORT_TEXT]);

// How good `a` is as a share of `b`: above 1 it is better, by more or by less.
double report_share(const struct report_bench *bench, double a, double b);

// All benches, in the order of a report.
extern const struct report_bench report_benches[];
extern const size_t report_bench_count;
// The bench of a row of a file with this schema; `kind` NULL: the row has none. NULL: not known.
const struct report_bench *report_bench_of(const char *schema, const char *kind);
// Whether any bench has files of this schema, and of the same name with another number behind it.
bool report_knows_schema(const char *schema);
bool report_knows_name(const char *schema);

// Texts by their letters, numbers inside them by value: "batch 64" before "batch 256".
int report_order(const char *a, const char *b);

// Adds a snapshot without blocks, and a block to it. NULL or false when there are too many or
// memory is out.
struct report_memory *report_add_memory(struct report *report, const struct report_memory *memory);
bool report_add_block(struct report *report, struct report_memory *memory,
                      const struct report_block *block);

// ---- sweep.c ----

// Adds a sweep without trials, and a trial to it; names and values are copied. NULL or false when
// there are too many or memory is out.
struct report_sweep *report_add_sweep(struct report *report, const struct report_sweep *sweep);
bool report_add_trial(struct report *report, struct report_sweep *sweep,
                      const struct report_trial *trial);
// When all trials are there: which parameters are words, their places, and how important each is.
void report_sweep_settle(struct report_sweep *sweep);
// The best trial, or NULL.
const struct report_trial *report_sweep_best(const struct report_sweep *sweep);

#endif
