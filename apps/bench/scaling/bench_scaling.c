// SPDX-License-Identifier: Apache-2.0
// `gpurt bench scaling`: whole steps of a training by one rank and by several, beside what a model
// of the exchange foresees, and whether several devices pay for it.
//
// Measured are trainings as users start them. The model's parts are measured alone, by ranks with a
// buffer in place of gradients, of a quarter and of half the bytes. Check: every rank has the sum.
#include "bench_scaling.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/talk.h"
#include "gpurt/comm.h"

#define FEATURES 64
#define VALIDATION 0.1  // of synthetic rows, as training has it
#define PAYS 1.2        // times as fast as one
#define DOUBTED 1.2     // an efficiency above it is a mistake of the measurement

// X(name, key, heading, unit, type, precision, width)
#define COLUMNS(X)                                                                                 \
    X(KIND, "kind", "kind", NULL, TEXT, 0, 0)                                                      \
    X(TRAIN, "train", "train", NULL, TEXT, 0, 10)                                                  \
    X(PARAMETERS, "parameters", "parameters", NULL, COUNT, 0, 0)                                   \
    X(BATCH, "batch", "batch", NULL, COUNT, 0, 6)                                                  \
    X(RANKS, "ranks", "ranks", NULL, COUNT, 0, 5)                                                  \
    X(STEP, "step_ms", "step", "ms", NUMBER, 3, 9)                                                 \
    X(PREDICTED, "predicted_ms", "predicted", "ms", NUMBER, 3, 9)                                  \
    X(EFFICIENCY, "efficiency", "efficiency", NULL, SHARE, 0, 0)                                   \
    X(RATE, "samples_per_s", "", "samples/s", NUMBER, 0, 10)                                       \
    X(ALONE, "alone_ms", "alone", "ms", NUMBER, 3, 9)                                              \
    X(EXCHANGE, "exchange_ms", "exchange", "ms", NUMBER, 3, 9)                                     \
    X(FORESEEN, "predicted_exchange_ms", "predicted", "ms", NUMBER, 3, 9)                          \
    X(WAIT, "wait_ms", "wait", "ms", NUMBER, 3, 9)                                                 \
    X(READBACK, "readback_ms", "readback", "ms", NUMBER, 3, 9)                                     \
    X(HOST, "host_ms", "host", "ms", NUMBER, 3, 9)                                                 \
    X(NETWORK, "network_ms", "network", "ms", NUMBER, 3, 9)                                        \
    X(UPLOAD, "upload_ms", "upload", "ms", NUMBER, 3, 9)                                           \
    X(OVERLAP, "overlap", "overlap", NULL, SHARE, 0, 0)                                            \
    X(HIDDEN, "hidden_ms", "hidden", "ms", NUMBER, 3, 9)                                           \
    X(FITTED, "fitted_overlap", "fitted overlap", NULL, SHARE, 0, 0)                               \
    X(BYTES, "exchange_bytes", "bytes", NULL, BYTES, 0, 9)                                         \
    X(SPREAD, "spread", "spread", NULL, SHARE, 1, 6)                                               \
    X(SAMPLES, "samples", "samples", NULL, COUNT, 0, 0)                                            \
    X(CHECK, "check", "check", NULL, TEXT, 0, 0)

enum column {
    COLUMNS(TABLE_ENTRY) COLUMN_COUNT,
};
static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

// ---- options ----

static bool read_ranks(const char *text, void *into, char why[RANGES_WHY]) {
    ranges_destroy(into);
    return ranges_parse(text, &(struct ranges_rule){.min = 1, .max = SCALING_RANKS}, into, why);
}

static bool read_train(const char *text, void *into, char why[RANGES_WHY]) {
    const struct scaling_kind *kind = scaling_kind_of(text);
    if (!kind) {
        snprintf(why, RANGES_WHY, "known are supervised, classify, es and ppo");
        return false;
    }
    *(const struct scaling_kind **)into = kind;
    return true;
}

static bool read_whole(const char *text, uint64_t min, uint64_t max, void *into,
                       char why[RANGES_WHY]) {
    uint64_t value = 0;
    bool good = options_whole(text, min, max, &value, why);
    *(uint32_t *)into = (uint32_t)value;
    return good;
}

static bool read_batch(const char *text, void *into, char why[RANGES_WHY]) {
    return read_whole(text, 1, 1u << 24, into, why);
}

static bool read_steps(const char *text, void *into, char why[RANGES_WHY]) {
    return read_whole(text, SCALING_EPOCH, 100000, into, why);
}

static bool read_rounds(const char *text, void *into, char why[RANGES_WHY]) {
    return read_whole(text, 1, SCALING_ROUNDS, into, why);
}

static bool read_probe(const char *text, void *into, char why[RANGES_WHY]) {
    uint64_t bytes = 0;
    if (!ranges_parse_size(text, &bytes, why)) {
        return false;
    }
    if (bytes < 4 || bytes > 1ull << 33) {
        snprintf(why, RANGES_WHY, "from 4 bytes to 8 GiB are wanted");
        return false;
    }
    *(uint64_t *)into = bytes;
    return true;
}

#define AT(field) offsetof(struct scaling_bench, field)

static const struct option_row own_options[] = {
    {.name = "ranks",
     .letter = "n",
     .value = "LIST",
     .help = "numbers of ranks, each measured",
     .fallback = "1,2",
     .read = read_ranks,
     .at = AT(ranks)},
    {.name = "train",
     .value = "supervised|classify|es|ppo",
     .help = "what is trained",
     .fallback = "supervised",
     .read = read_train,
     .at = AT(kind)},
    {.name = "env",
     .value = "NAME|FILE.k",
     .help = "environment of es and ppo",
     .fallback = "cartpole",
     .read = options_read_text,
     .at = AT(env)},
    {.name = "batch-size",
     .value = "N",
     .help = "samples of a step of all ranks together; of es directions, of ppo copies of the "
             "environment (default: 1024, of es and ppo 64)",
     .read = read_batch,
     .at = AT(batch)},
    {.name = "steps",
     .value = "N",
     .help = "steps of each training",
     .fallback = "48",
     .read = read_steps,
     .at = AT(steps)},
    {.name = "rounds",
     .value = "N",
     .help = "times that each is trained, with and without an exchange in turns",
     .fallback = "3",
     .read = read_rounds,
     .at = AT(rounds)},
    {.name = "probe",
     .value = "BYTES",
     .help = "under mpirun: the parts of an exchange of so many bytes alone, and nothing else",
     .read = read_probe,
     .at = AT(probe)},
    {.name = "data",
     .value = "FILE",
     .help = "HDF5 file to read (default: synthetic data)",
     .read = options_read_text,
     .at = AT(source.path)},
};

// ---- rows ----

static bool print_row(struct scaling_bench *b, const struct scaling_row *r, double one) {
    bool several = r->ranks > 1;
    double foreseen = r->wait + scaling_sum(&r->parts) - r->hidden;
    struct table_cell cells[COLUMN_COUNT] = {
        [COLUMN_KIND] = TABLE_CELL(.text = "step"),
        [COLUMN_TRAIN] = TABLE_CELL(.text = b->kind->name),
        [COLUMN_PARAMETERS] = TABLE_CELL(.count = (uint64_t)r->parameters),
        [COLUMN_BATCH] = TABLE_CELL(.count = b->batch),
        [COLUMN_RANKS] = TABLE_CELL(.count = r->ranks),
        [COLUMN_STEP] = TABLE_CELL(.number = 1e3 * r->seconds),
        [COLUMN_RATE] = TABLE_CELL(.number = b->batch / r->seconds),
        [COLUMN_SPREAD] = TABLE_CELL(.number = r->spread),
        [COLUMN_SAMPLES] = TABLE_CELL(.count = r->samples),
        [COLUMN_CHECK] = TABLE_CELL(.text = "ok"),
        [COLUMN_EFFICIENCY] = {.known = one > 0,
                               .number = scaling_efficiency(one, r->seconds, r->ranks)},
        [COLUMN_PREDICTED] = {.known = several, .number = 1e3 * r->predicted},
        [COLUMN_ALONE] = {.known = several, .number = 1e3 * r->alone},
        [COLUMN_EXCHANGE] = {.known = several, .number = 1e3 * r->exchange},
        [COLUMN_FORESEEN] = {.known = several, .number = 1e3 * foreseen},
        [COLUMN_WAIT] = {.known = several, .number = 1e3 * r->wait},
        [COLUMN_READBACK] = {.known = several, .number = 1e3 * r->parts.readback},
        [COLUMN_HOST] = {.known = several, .number = 1e3 * r->parts.host},
        [COLUMN_NETWORK] = {.known = several, .number = 1e3 * r->parts.network},
        [COLUMN_UPLOAD] = {.known = several, .number = 1e3 * r->parts.upload},
        [COLUMN_OVERLAP] = {.known = several, .number = r->overlap},
        [COLUMN_HIDDEN] = {.known = several, .number = 1e3 * r->hidden},
        [COLUMN_FITTED] = {.known = several, .number = r->fitted_overlap},
        [COLUMN_BYTES] = {.known = several, .count = (uint64_t)r->bytes},
    };
    b->progress.done++;
    return table_row(&b->table, cells);
}

// Whether several pay, in one sentence.
static bool print_verdict(struct scaling_bench *b, const struct scaling_row *rows, size_t count) {
    const struct scaling_row *one = NULL, *best = NULL, *odd = NULL;
    char text[TABLE_TEXT_SIZE];
    for (size_t i = 0; i < count; i++) {
        one = rows[i].ranks == 1 ? &rows[i] : one;
        best = rows[i].ranks > 1 && (!best || rows[i].seconds < best->seconds) ? &rows[i] : best;
    }
    if (!one || !best) {
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        double share = scaling_efficiency(one->seconds, rows[i].seconds, rows[i].ranks);
        odd = share > DOUBTED ? &rows[i] : odd;
    }
    double faster = one->seconds / best->seconds;
    const char *what = b->kind->iterates ? "an iteration" : "a step";
    if (odd) {
        snprintf(text, sizeof text,
                 "not judged: %u ranks cannot be %.2f times as fast as one, so the times are not "
                 "to be trusted; try more --steps on a machine without other work",
                 odd->ranks, one->seconds / odd->seconds);
    } else if (faster >= PAYS) {
        snprintf(text, sizeof text,
                 "several devices pay for this model: %u ranks are %.2f times as fast as one, %s "
                 "in %.3g ms",
                 best->ranks, faster, what, 1e3 * best->seconds);
    } else {
        snprintf(text, sizeof text,
                 "several devices do not pay for this model: %s of %u ranks takes %.3g ms, and of "
                 "one %.3g; use the devices as slots: gpurt sweep FILE --devices 0,1",
                 what, best->ranks, 1e3 * best->seconds, 1e3 * one->seconds);
    }
    return table_note(&b->table, "verdict", table_json_text(text)) &&
           table_section(&b->table, text, 0, NULL, 0);
}

static bool divides(const struct scaling_bench *b) {
    for (size_t i = 0; i < b->ranks.count; i++) {
        uint64_t n = b->ranks.values[i];
        bool sums = b->kind->exchange != SCALING_RESULTS;
        if (b->batch % n != 0 || (sums && (n & (n - 1)) != 0)) {
            talk_error("%u %s are not shared out over %llu ranks equally%s", b->batch,
                       b->kind->parts, (unsigned long long)n,
                       sums ? ", whose number is a power of two" : "");
            return false;
        }
    }
    return true;
}

static bool run_rows(struct scaling_bench *b, struct scaling_row *rows, size_t *count) {
    const uint64_t shown = ((1ull << COLUMN_COUNT) - 1) & ~(1ull << COLUMN_KIND);
    double one = 0;
    bool good = table_section(
        &b->table,
        "predicted = alone + wait + readback + host + network + upload - hidden; alone: of a "
        "rank's part, as many processes at once and no exchange; wait: of their steps, for the "
        "slowest of each; hidden: of host and network, behind backward, by the measured overlap; "
        "fitted overlap: of the measured steps, in no prediction",
        shown, NULL, 0);
    for (size_t i = 0; good && i < b->ranks.count; i++) {
        struct scaling_row *r = &rows[i];
        *r = (struct scaling_row){.ranks = (uint32_t)b->ranks.values[i]};
        bench_progress_row(&b->progress, "scaling: %u rank%s", r->ranks, r->ranks > 1 ? "s" : "");
        good = scaling_train(b, r);
        one = good && r->ranks == 1 ? r->seconds : one;
        good = good && print_row(b, r, one);
        *count += good;
    }
    return good;
}

// ---- the folder of the trainings ----

// Logs and folders of checkpoints: files within folders within it, and no further.
static void empty_folder(const char *path, bool deeper) {
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        char inner[1024];
        const char *name = entry->d_name;
        snprintf(inner, sizeof inner, "%s/%s", path, name);
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && unlink(inner) != 0 && deeper) {
            empty_folder(inner, false);
            rmdir(inner);
        }
    }
    if (folder) {
        closedir(folder);
    }
}

void scaling_empty(const struct scaling_bench *b) {
    empty_folder(b->folder, true);
}

static bool folder_make(struct scaling_bench *b) {
    const char *above = getenv("TMPDIR");
    snprintf(b->folder, sizeof b->folder, "%.400s/gpurt-scaling-XXXXXX",
             above && *above ? above : "/tmp");
    if (!mkdtemp(b->folder)) {
        b->folder[0] = '\0';
        return grt_fail(GRT_NO_OUTPUT, "no folder for the trainings can be made");
    }
    ssize_t length = readlink("/proc/self/exe", b->self, sizeof b->self - 1);
    b->self[length > 0 ? length : 0] = '\0';
    return length > 0 || grt_fail(GRT_IO, "where this command lies is not known");
}

static int measure(struct scaling_bench *b, int argc, char **argv) {
    struct scaling_row *rows = calloc(b->ranks.count, sizeof *rows);
    struct output output;
    size_t count = 0;
    int code = rows ? output_open(&output, b->common.output) : COMMAND_INTERNAL;
    if (code) {
        free(rows);
        return code;
    }
    uint64_t samples = (uint64_t)(SCALING_EPOCH * (double)b->batch / (1 - VALIDATION)) + 1;
    bool good =
        folder_make(b) && (b->kind->iterates || bench_source_make(&b->source, samples, FEATURES));
    if (good) {
        struct table_desc desc = {.output = &output,
                                  .format = b->common.format,
                                  .columns = columns,
                                  .column_count = COLUMN_COUNT,
                                  .schema = SCALING_SCHEMA,
                                  .verb = "bench scaling",
                                  .argc = argc,
                                  .argv = argv};
        bench_progress_plan(&b->progress, b->ranks.count, 5);
        good = table_open(&b->table, &desc) && run_rows(b, rows, &count) &&
               print_verdict(b, rows, count);
        code = good || talk_stopped() ? COMMAND_OK : command_exit_of(grt_last_status());
        code = bench_progress_end(&b->progress, &b->table, code);
        table_close(&b->table);
    } else {
        code = command_exit_of(grt_last_status());
    }
    talk_clear();
    if (b->folder[0]) {
        scaling_empty(b);
        rmdir(b->folder);
    }
    bench_source_end(&b->source);
    free(rows);
    return output_end(&output, good || code == COMMAND_RESUMABLE, code);
}

static const char about[] =
    "Whole steps of a training by one rank and by several, what a model of the exchange foresees, "
    "and\n"
    "whether several devices pay for this network. It starts the ranks itself, by mpirun; each "
    "takes the\n"
    "next GPU, or the next of --device A,B. KEY=VALUE is for the training: hidden=512 depth=4.\n"
    "Times are those of the quickest sample: other work of a machine only adds. Every second "
    "sample of\nseveral ranks is what the overlap is fitted to; the others are the step.\n";

int bench_scaling(int argc, char **argv) {
    struct scaling_bench *b = calloc(1, sizeof *b);
    const char **words = calloc((size_t)argc + 1, sizeof *words);
    struct option_list lists[] = {
        OPTION_LIST("Options of scaling", own_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("General options", options_general),
    };
    struct options_desc desc = {.verb = "bench scaling",
                                .words = "[KEY=VALUE...]",
                                .about = about,
                                .lists = lists,
                                .list_count = sizeof lists / sizeof *lists};
    int code = COMMAND_INTERNAL;
    if (!b || !words) {
        talk_error("out of memory");
    } else {
        code = options_parse(&desc, argc, argv, &b->common, words, &b->word_count);
        b->words = words;
        if (code < 0 && !b->batch) {
            b->batch = b->kind->batch;
        }
        if (code < 0 && !b->probe && grt_comm_launched(NULL)) {
            talk_error("gpurt bench scaling starts its ranks itself: leave mpirun out, or give "
                       "--probe");
            code = COMMAND_USAGE;
        }
        if (code < 0 && !b->probe && strcmp(b->kind->name, "classify") == 0 && !b->source.path) {
            talk_error("--train classify wants --data FILE");
            code = COMMAND_USAGE;
        }
        if (code < 0 && !b->probe && !divides(b)) {
            code = COMMAND_USAGE;
        }
        if (code < 0) {
            code = b->probe ? scaling_probe(b, argc, argv) : measure(b, argc, argv);
        }
        ranges_destroy(&b->ranks);
    }
    free(words);
    free(b);
    return code;
}
