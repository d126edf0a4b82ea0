// SPDX-License-Identifier: Apache-2.0
// `gpurt estimate`: what a card that is not here would make of a suite, by its published numbers
// and the shares of them that measured GPUs reach. Programs get rows of the bench that they stand
// for, of nature "predicted", so that `gpurt report` shows them beside measured ones.
#include <stdlib.h>
#include <string.h>

#include "base/whole_file.h"
#include "cli/command.h"
#include "cli/options/options.h"
#include "cli/output/files.h"
#include "cli/talk.h"
#include "estimate_scaling.h"
#include "report/read.h"
#include "report/text.h"

#define MAX_FILES 64
#define MAX_WORDS 512

struct file_list {
    const char *names[MAX_FILES];
    size_t count;
};

struct estimate_options {
    struct options common;  // first: see options.h
    const char *card, *suite, *backend, *cards;
    struct file_list measured;
    struct ranges sizes;
    uint32_t list;
    struct estimate_scaling_options scaling;
    int argc;  // the command line, for the record
    char **argv;
};

static bool read_sizes(const char *text, void *into, char why[RANGES_WHY]) {
    return ranges_parse(text, &(struct ranges_rule){.min = 1, .max = 1u << 30}, into, why);
}

static bool read_file(const char *text, void *into, char why[RANGES_WHY]) {
    struct file_list *list = into;
    if (!*text || list->count == MAX_FILES) {
        snprintf(why, RANGES_WHY, "up to %d names of files are wanted", MAX_FILES);
        return false;
    }
    list->names[list->count++] = text;
    return true;
}

#define AT(field) offsetof(struct estimate_options, field)
static const struct option_row own_options[] = {
    {.name = "card",
     .value = "LIST",
     .help = "cards by their short names, commas between, or all (default: all)",
     .read = options_read_text,
     .at = AT(card)},
    {.name = "suite",
     .value = "LIST",
     .help = "of rollout, ppo, mlp, train, gemm, gemm-f32, conv, images, commas between, or all",
     .fallback = "all",
     .read = options_read_text,
     .at = AT(suite)},
    {.name = "api",
     .value = "vulkan|opencl|all",
     .help = "the API that would be used",
     .fallback = "all",
     .read = options_read_text,
     .at = AT(backend)},
    {.name = "batch-sizes",
     .value = "LIST",
     .help = "environments of rollouts, samples of a training step",
     .read = read_sizes,
     .at = AT(sizes)},
    {.name = "cards",
     .value = "FILE",
     .help = "more cards, in the form of apps/estimate/cards.json",
     .read = options_read_text,
     .at = AT(cards)},
    {.name = "measured",
     .value = "FILE",
     .help = "more results to learn from, of `gpurt bench --format json`; may be repeated",
     .read = read_file,
     .at = AT(measured),
     .each = true},
    {.name = "scaling",
     .help =
         "many GPUs: data parallel, evolution strategies and PPO over links (default card: h200)",
     .at = AT(scaling.wanted)},
    {.name = "gpus",
     .value = "LIST",
     .help = "with --scaling: how many, powers of two (default: 8-1024*2)",
     .read = estimate_read_gpus,
     .at = AT(scaling.gpus)},
    {.name = "link",
     .value = "LIST",
     .help = "with --scaling: links by their short names, commas between, or all "
             "(default: all)",
     .read = options_read_text,
     .at = AT(scaling.link)},
    {.name = "links",
     .value = "FILE",
     .help = "with --scaling: other links, in the form of apps/estimate/links.json",
     .read = options_read_text,
     .at = AT(scaling.links)},
    {.name = "overlap",
     .value = "SHARE",
     .help = "with --scaling: of the gradients' exchange hidden behind backward (default: none)",
     .read = options_read_fraction,
     .at = AT(scaling.overlap)},
    {.name = "list", .help = "the cards, their numbers and where those are from", .at = AT(list)},
};

// X(name, key, heading, unit, type, precision, width)
#define ESTIMATE_COLUMNS(X)                                                                        \
    X(CARD, "card", "card", NULL, TEXT, 0, 15)                                                     \
    X(BACKEND, "backend", "API", NULL, TEXT, 0, 6)                                                 \
    X(CASE, NULL, "case", NULL, TEXT, 0, 37)                                                       \
    X(KIND, "kind", "", NULL, TEXT, 0, 0)                                                          \
    X(TEST, "test", "", NULL, TEXT, 0, 0)                                                          \
    X(POLICY, "policy", "", NULL, TEXT, 0, 0)                                                      \
    X(ENVS, "num_envs", "", NULL, COUNT, 0, 0)                                                     \
    X(DIRS, "num_dirs", "", NULL, COUNT, 0, 0)                                                     \
    X(LOOP, "loop", "", NULL, TEXT, 0, 0)                                                          \
    X(ENV, "env", "", NULL, TEXT, 0, 0)                                                            \
    X(AGENTS, "agents", "", NULL, COUNT, 0, 0)                                                     \
    X(ROLLOUT, "rollout_steps", "", NULL, COUNT, 0, 0)                                             \
    X(CHUNK, "dir_chunk", "", NULL, COUNT, 0, 0)                                                   \
    X(MODEL, "model", "", NULL, TEXT, 0, 0)                                                        \
    X(DEPTH, "depth", "", NULL, COUNT, 0, 0)                                                       \
    X(HIDDEN, "hidden", "", NULL, COUNT, 0, 0)                                                     \
    X(SIDE, "resolution", "", NULL, COUNT, 0, 0)                                                   \
    X(SHAPE, "shape", "", NULL, TEXT, 0, 0)                                                        \
    X(PICTURES, "images", "", NULL, TEXT, 0, 0)                                                    \
    X(WINDOW, "window", "", NULL, TEXT, 0, 0)                                                      \
    X(BATCH, "batch", "", NULL, COUNT, 0, 0)                                                       \
    X(PRECISION, "precision", "", NULL, TEXT, 0, 0)                                                \
    X(WORKERS, "workers", "", NULL, COUNT, 0, 0)                                                   \
    X(CACHE, "cache", "", NULL, TEXT, 0, 0)                                                        \
    X(TRANS, "trans", "", NULL, TEXT, 0, 0)                                                        \
    X(STEPS, "steps_per_s", "", NULL, NUMBER, 0, 0)                                                \
    X(AGENT_STEPS, "agent_steps_per_s", "", NULL, NUMBER, 0, 0)                                    \
    X(SAMPLES, "msamples_per_s", "", NULL, NUMBER, 0, 0)                                           \
    X(TRAINED, "samples_per_s", "", NULL, NUMBER, 0, 0)                                            \
    X(GFLOPS, "gflop_per_s", "", NULL, NUMBER, 0, 0)                                               \
    X(IMAGES, "images_per_s", "", NULL, NUMBER, 0, 0)                                              \
    X(LOW, "low", "", NULL, NUMBER, 0, 0)                                                          \
    X(HIGH, "high", "", NULL, NUMBER, 0, 0)                                                        \
    X(FIGURE, NULL, "figure", NULL, TEXT, 0, 6)                                                    \
    X(FROM, NULL, "from", NULL, TEXT, 0, 6)                                                        \
    X(TO, NULL, "to", NULL, TEXT, 0, 6)                                                            \
    X(BOUND, "bound", "bound by", NULL, TEXT, 0, 9)                                                \
    X(ERROR, "error_factor", "off by", NULL, NUMBER, 2, 6)                                         \
    X(CHECK, "check", "", NULL, TEXT, 0, 0)

enum { ESTIMATE_COLUMNS(TABLE_ENTRY) COLUMN_COUNT };
static const struct table_column columns[] = {ESTIMATE_COLUMNS(TABLE_COLUMN)};
#define BIT(name) (1ull << COLUMN_##name)

struct run {
    const struct estimate_options *options;
    struct cards cards;
    struct report records;
    struct output output;
    struct table table;
    bool open;
    size_t rows;
    // What was chosen.
    bool card[CARD_MAX], suite[16], backend[ESTIMATE_BACKENDS];
};

// ---- what is read ----

static int read_cards(struct run *run, const char *path) {
    char why[CARD_WHY];
    uint64_t size = strlen(estimate_cards);
    char *text = path ? grt_whole_file_read_any(path, CARD_MAX_FILE, &size) : NULL;
    if (path && !text) {
        return command_exit_of(grt_last_status());
    }
    bool good = cards_read(&run->cards, text ? text : estimate_cards, (size_t)size, why);
    free(text);
    if (!good) {
        talk_error("'%s': %s", path ? path : "cards.json", why);
        return COMMAND_DATA;
    }
    return COMMAND_OK;
}

static int read_records(struct run *run) {
    char why[REPORT_WHY];
    for (const struct estimate_text *r = estimate_records; r->name; r++) {
        if (!report_read_text(&run->records, r->name, r->text, strlen(r->text), false, why)) {
            talk_error("record '%s': %s", r->name, why);
            return COMMAND_INTERNAL;
        }
    }
    int code = COMMAND_OK;
    size_t own = run->records.contender_count;
    for (size_t i = 0; i < run->options->measured.count && !code; i++) {
        code = report_read(&run->records, run->options->measured.names[i], false);
    }
    report_settle(&run->records);
    for (size_t i = own; !code && i < run->records.contender_count; i++) {
        const struct report_contender *c = &run->records.contenders[i];
        if (!c->peer && !cards_named(&run->cards, c->name)) {
            talk_line("results of '%s' are left out: no card has that name (--cards FILE adds one)",
                      c->name);
        }
    }
    if (!code && !report_good(&run->records)) {
        talk_error("out of memory");
        code = COMMAND_INTERNAL;
    }
    return code;
}

int estimate_choose(const char *text, struct command_unknown of, const void *names, size_t count,
                    size_t stride, bool *chosen) {
    bool all = strcmp(text, "all") == 0;
    for (size_t i = 0; i < count; i++) {
        chosen[i] = all;
    }
    while (!all && *text) {
        char word[MAX_WORDS];
        size_t length = strcspn(text, ","), i = 0;
        snprintf(word, sizeof word, "%.*s", (int)(length < 100 ? length : 100), text);
        while (i < count &&
               strcmp(word, *(const char *const *)((const char *)names + i * stride)) != 0) {
            i++;
        }
        if (i == count) {
            of.word = word;
            return command_unknown(&of, names, count, stride);
        }
        chosen[i] = true;
        text += length + (text[length] == ',');
    }
    return COMMAND_OK;
}

// ---- the list of cards ----

// X(name, key, heading, unit, type, precision, width)
#define CARD_COLUMNS(X)                                                                            \
    X(ID, "id", "card", NULL, TEXT, 0, 15)                                                         \
    X(NAME, "name", "name", NULL, TEXT, 0, 0)                                                      \
    X(UNITS, "units", "units", NULL, COUNT, 0, 5)                                                  \
    X(CLOCK, "clock_mhz", "clock", "MHz", COUNT, 0, 0)                                             \
    X(PLAIN, "fp32_tflops", "f32", "TF/s", NUMBER, 1, 0)                                           \
    X(MATRIX, "matrix_tflops", "matrix", "TF/s", NUMBER, 1, 0)                                     \
    X(BANDWIDTH, "bandwidth_gb_per_s", "memory", "GB/s", COUNT, 0, 0)                              \
    X(MEMORY, "memory", "size", NULL, BYTES, 0, 0)                                                 \
    X(SOURCE, "source", "source", NULL, TEXT, 0, 0)

#undef TABLE_ENTRY
#define TABLE_ENTRY(name, key, heading, unit, type, precision, width) LIST_##name,
enum { CARD_COLUMNS(TABLE_ENTRY) LIST_COUNT };
static const struct table_column list_columns[] = {CARD_COLUMNS(TABLE_COLUMN)};

static bool print_card(struct table *table, const struct card *card) {
    struct table_cell cells[LIST_COUNT] = {
        [LIST_ID] = TABLE_CELL(.text = card->id),
        [LIST_NAME] = TABLE_CELL(.text = card->name),
        [LIST_UNITS] = TABLE_CELL(.count = (uint64_t)card->units),
        [LIST_CLOCK] = TABLE_CELL(.count = (uint64_t)(card->clock / 1e6 + 0.5)),
        [LIST_PLAIN] = TABLE_CELL(.number = card->plain / 1e12),
        [LIST_MATRIX] = {.known = card->matrix > 0, .number = card->matrix / 1e12},
        [LIST_BANDWIDTH] = TABLE_CELL(.count = (uint64_t)(card->bandwidth / 1e9 + 0.5)),
        [LIST_MEMORY] = TABLE_CELL(.count = (uint64_t)card->memory),
        [LIST_SOURCE] = TABLE_CELL(.text = card->source),
    };
    return table_row(table, cells);
}

static void print_cards(struct run *run) {
    const struct estimate_options *o = run->options;
    uint64_t shown = ((1u << LIST_COUNT) - 1) & ~(1u << LIST_NAME);
    bool good = table_open(&run->table, &(struct table_desc){.output = &run->output,
                                                             .format = o->common.format,
                                                             .columns = list_columns,
                                                             .column_count = LIST_COUNT,
                                                             .schema = "gpurt.cards/1",
                                                             .argc = o->argc,
                                                             .argv = o->argv});
    shown &= o->common.verbose ? ~0ull : ~(1ull << LIST_SOURCE);
    shown |= o->common.verbose ? 1u << LIST_NAME : 0;
    good = good && table_section(&run->table, NULL, shown, NULL, 0);
    for (size_t i = 0; i < run->cards.count && good; i++) {
        good = !run->card[i] || print_card(&run->table, &run->cards.list[i]);
    }
    table_close(&run->table);
}

// ---- estimates ----

static bool programs(const struct run *run) {
    return run->options->common.format == TABLE_JSON || run->options->common.format == TABLE_JSONL;
}

static bool open_table(struct run *run, const char *schema, json_t *head) {
    const struct estimate_options *o = run->options;
    run->open = table_open(&run->table, &(struct table_desc){.output = &run->output,
                                                             .format = o->common.format,
                                                             .columns = columns,
                                                             .column_count = COLUMN_COUNT,
                                                             .schema = schema,
                                                             .argc = o->argc,
                                                             .argv = o->argv,
                                                             .head = head});
    return run->open;
}

// The cell of this key in a row that is estimated.
static void put_cell(struct table_cell *cells, const struct report_cell *cell) {
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (columns[i].key && strcmp(columns[i].key, cell->key) == 0) {
            cells[i] = (struct table_cell){.known = true,
                                           .text = cell->text,
                                           .count = cell->text ? 0 : (uint64_t)cell->number,
                                           .number = cell->number};
        }
    }
}

static bool print_row(struct run *run, const struct fit *fit, const struct card *card,
                      const struct report_row *row, const struct estimate *e) {
    // What is the same in every row of a suite.
    const char *bench = row->bench->name;
    const char *also = strcmp(bench, "rollout") == 0 ? "test"
                       : strcmp(bench, "conv") == 0  ? "precision"
                                                     : NULL;
    const char *const without[] = {"workers", "cache", also, NULL};
    char subject[REPORT_TEXT], figure[3][REPORT_QUANTITY];
    struct table_cell cells[COLUMN_COUNT] = {
        [COLUMN_CARD] = TABLE_CELL(.text = card->id),
        [COLUMN_BACKEND] = TABLE_CELL(.text = fit->backend),
        [COLUMN_CASE] = TABLE_CELL(.text = subject),
        [COLUMN_LOW] = TABLE_CELL(.number = e->low / row->bench->scale),
        [COLUMN_HIGH] = TABLE_CELL(.number = e->high / row->bench->scale),
        [COLUMN_FIGURE] = TABLE_CELL(.text = figure[0]),
        [COLUMN_FROM] = TABLE_CELL(.text = figure[1]),
        [COLUMN_TO] = TABLE_CELL(.text = figure[2]),
        [COLUMN_BOUND] = TABLE_CELL(.text = roof_bound_text(e->bound)),
        [COLUMN_ERROR] = TABLE_CELL(.number = e->factor),
        [COLUMN_CHECK] = TABLE_CELL(.text = "ok"),
    };
    report_case_text(row, "", NULL, without, subject);
    report_quantity(e->value, "", figure[0]);
    report_quantity(e->low, "", figure[1]);
    report_quantity(e->high, "", figure[2]);
    for (size_t i = 0; i < row->cell_count; i++) {
        put_cell(cells, &row->cells[i]);
    }
    put_cell(cells, &(struct report_cell){.key = row->bench->value,
                                          .number = e->value / row->bench->scale});
    run->rows++;
    return table_row(&run->table, cells);
}

static const struct report_bench *bench_named(const char *name) {
    size_t i = 0;
    while (strcmp(report_benches[i].name, name) != 0) {
        i++;
    }
    return &report_benches[i];
}

// All rows of a suite on a card.
static bool print_card_rows(struct run *run, const struct fit *fit, const struct suite *suite,
                            const struct card *card) {
    const struct ranges *sizes = &run->options->sizes;
    struct report_cell cells[SUITE_CELLS];
    struct report_row row = {.bench = bench_named(suite->bench), .cells = cells};
    bool own = suite->sizes == 0 || sizes->count == 0, good = true;
    for (size_t kind = 0; good; kind++) {
        size_t at = own ? kind : kind / sizes->count * suite->sizes;
        double size = own ? 0 : (double)sizes->values[kind % sizes->count];
        struct estimate e;
        row.cell_count = suite->row(at, size, cells);
        if (row.cell_count == 0) {
            break;
        }
        if (estimate_row(fit, suite, card, &row, &e)) {
            good = print_row(run, fit, card, &row, &e);
        }
    }
    return good;
}

static json_t *fit_json(const struct fit *fit) {
    return json_pack("{s:s, s:I, s:I, s:f, s:f, s:s, s:s}", "measured_on", fit->measured->name,
                     "cases", (json_int_t)fit->samples, "cards", (json_int_t)fit->cards,
                     "typical_factor", fit->typical, "worst_factor", fit->worst, "worst_case",
                     fit->worst_case, "left_out",
                     fit->left_out == fit->cards ? "each card"
                     : fit->left_out == 0        ? "each case"
                                                 : "cards and cases");
}

// Whether a suite says anything of a card.
static bool known(const struct fit *fit, const struct suite *suite, const struct card *card) {
    struct report_cell cells[SUITE_CELLS];
    struct report_row row = {.bench = bench_named(suite->bench), .cells = cells};
    struct estimate e;
    row.cell_count = suite->row(0, 0, cells);
    return estimate_row(fit, suite, card, &row, &e);
}

// What comes of a suite by one API: of each card a section for people, a document for programs.
static bool print_suite(struct run *run, const struct fit *fit, const struct suite *suite) {
    const uint64_t shown = BIT(CASE) | BIT(FIGURE) | BIT(FROM) | BIT(TO) | BIT(BOUND) | BIT(ERROR);
    const struct report_bench *bench = bench_named(suite->bench);
    bool good = true;
    for (size_t i = 0; i < run->cards.count && good; i++) {
        const struct card *card = &run->cards.list[i];
        char title[3 * CARD_WHY];
        if (!run->card[i] || !known(fit, suite, card)) {
            continue;
        }
        snprintf(title, sizeof title, "%s by %s: %s, %s", card->name, fit->backend, bench->title,
                 bench->unit);
        if (!programs(run)) {
            good = table_section(&run->table, title, shown, NULL, 0);
        } else {
            json_t *device =
                json_pack("{s:s, s:s, s:s, s:s}", "name", card->name, "backend", fit->backend,
                          "vendor", card->vendor, "source", card->source);
            good = open_table(run, bench->schema,
                              json_pack("{s:s, s:o, s:o}", "nature", "predicted", "device", device,
                                        "fit", fit_json(fit))) &&
                   table_section(&run->table, NULL, shown, NULL, 0);
        }
        good = good && print_card_rows(run, fit, suite, card);
        if (programs(run) && run->open) {
            good = table_close(&run->table) && good;
            run->open = false;
        }
    }
    return good;
}

static void say_error(const struct fit *fit, const struct suite *suite) {
    char left[200];
    if (fit->left_out == fit->cards) {
        snprintf(left, sizeof left, "%zu cases of %zu cards, each card by the others", fit->samples,
                 fit->cards);
    } else if (fit->cards > 1) {
        snprintf(left, sizeof left,
                 "%zu cases of %zu cards; %zu left out as a whole, of the others each case: too "
                 "few results are without them",
                 fit->samples, fit->cards, fit->left_out);
    } else {
        snprintf(left, sizeof left,
                 "%zu cases of one card, %s, each by the other %zu; no card left out", fit->samples,
                 fit->measured->name, fit->samples - 1);
    }
    talk_line("%s by %s: error on what was measured: %s: typically x%.2f, at most x%.2f (%s)",
              suite->name, fit->backend, left, fit->typical, fit->worst, fit->worst_case);
}

static int print_estimates(struct run *run) {
    bool good = programs(run) || open_table(run, "gpurt.estimate/1", NULL);
    for (size_t s = 0; s < suite_count && good; s++) {
        const struct suite *suite = &suites[s];
        for (size_t b = 0; b < ESTIMATE_BACKENDS && good && run->suite[s]; b++) {
            struct fit fit;
            if (!run->backend[b]) {
                continue;
            }
            if (!fit_suite(suite, estimate_backends[b], &run->records, &run->cards, &fit)) {
                talk_error("out of memory");
                return COMMAND_INTERNAL;
            }
            size_t before = run->rows;
            good = fit.samples < 2 || print_suite(run, &fit, suite);
            if (run->rows > before && !run->options->common.quiet) {
                say_error(&fit, suite);
            }
        }
    }
    if (run->open) {
        table_close(&run->table);
    }
    if (good && run->rows == 0) {
        talk_error("nothing is known of this suite on this card: no matrix units serve it there");
        return COMMAND_DATA;
    }
    return COMMAND_OK;
}

static int run_estimate(struct run *run) {
    const struct estimate_options *o = run->options;
    struct file_named files[MAX_FILES + 3];
    const char *card = o->card ? o->card : o->scaling.wanted ? "h200" : "all";
    for (size_t i = 0; i < o->measured.count; i++) {
        files[i] = (struct file_named){FILE_READ, "--measured", o->measured.names[i]};
    }
    files[o->measured.count] = (struct file_named){FILE_READ, "--cards", o->cards};
    files[o->measured.count + 1] = (struct file_named){FILE_WRITTEN, "--output", o->common.output};
    files[o->measured.count + 2] = (struct file_named){FILE_READ, "--links", o->scaling.links};
    struct command_unknown cards = {.what = "card", .help = "gpurt estimate --list"};
    struct command_unknown named = {.what = "suite", .help = "gpurt estimate --help"};
    struct command_unknown apis = {.what = "API", .help = "gpurt estimate --help"};
    int code = files_apart(files, o->measured.count + 3);
    code = code ? code : read_cards(run, NULL);
    code = code || !o->cards ? code : read_cards(run, o->cards);
    code = code ? code
                : estimate_choose(card, cards, run->cards.list, run->cards.count,
                                  sizeof *run->cards.list, run->card);
    code = code ? code
                : estimate_choose(o->suite, named, suites, suite_count, sizeof *suites, run->suite);
    code = code ? code
                : estimate_choose(o->backend, apis, estimate_backends, ESTIMATE_BACKENDS,
                                  sizeof *estimate_backends, run->backend);
    code = code || o->list ? code : read_records(run);
    code = code ? code : output_open(&run->output, o->common.output);
    if (code) {
        return code;
    }
    if (o->list) {
        print_cards(run);
    } else if (o->scaling.wanted) {
        code = estimate_scaling(&(struct estimate_scaling){.common = &o->common,
                                                           .options = &o->scaling,
                                                           .cards = &run->cards,
                                                           .card = run->card,
                                                           .backend = run->backend,
                                                           .records = &run->records,
                                                           .output = &run->output,
                                                           .argc = o->argc,
                                                           .argv = o->argv});
    } else {
        code = print_estimates(run);
    }
    int written = output_close(&run->output, !code && !talk_stopped());
    return code ? code : written;
}

static const char about[] =
    "What cards that are not here would make of a suite: a roofline of their published numbers\n"
    "and counted operations and bytes, fitted to results of GPUs that were measured. Figures lie\n"
    "between `from` and `to`: `off by`, the largest error on what was measured (for makers of "
    "which\n"
    "no card was measured twice that, a guess), and whatever it is that bounds the work. The "
    "error\n"
    "is said for each suite, with what was left out to find it.\n"
    "With --format json or jsonl rows are those of `gpurt bench`, for `gpurt report`. In json a\n"
    "card, suite and API is an object of its own, one behind the other; jsonl has them by lines.\n"
    "--scaling goes on to many GPUs: what they exchange, and how much of their time is left.\n";

int cmd_estimate(int argc, char **argv) {
    struct estimate_options options = {.argc = argc, .argv = argv};
    struct option_list lists[] = {
        OPTION_LIST("Estimate options", own_options),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("General options", options_general),
    };
    struct options_desc desc = {.verb = "estimate",
                                .about = about,
                                .lists = lists,
                                .list_count = sizeof lists / sizeof *lists};
    size_t word_count = 0;
    int code = options_parse(&desc, argc, argv, &options.common, NULL, &word_count);
    const struct estimate_scaling_options *s = &options.scaling;
    if (code < 0 && !s->wanted && (s->gpus.count > 0 || s->link || s->links || s->overlap > 0)) {
        talk_error("--gpus, --link, --links and --overlap are for --scaling, which is not given");
        code = COMMAND_USAGE;
    }
    if (code < 0) {
        struct run *run = calloc(1, sizeof *run);
        if (!run) {
            talk_error("out of memory");
            return COMMAND_INTERNAL;
        }
        run->options = &options;
        cards_init(&run->cards);
        report_init(&run->records);
        code = run_estimate(run);
        report_finish(&run->records);
        cards_finish(&run->cards);
        free(run);
    }
    ranges_destroy(&options.sizes);
    ranges_destroy(&options.scaling.gpus);
    return code;
}
