// SPDX-License-Identifier: Apache-2.0
// `gpurt bench`: the table of kinds, and what they share. Kinds of BENCH_KINDS run one after the
// other on one device and print into one table; those of BENCH_MORE are commands of their own, and
// the first of them is what `gpurt bench` means.
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include "bench_contribute.h"
#include "bench_more.h"
#include "bench_peaks.h"
#include "cli/command.h"
#include "cli/devices.h"
#include "cli/options/spread.h"
#include "cli/options/watch.h"
#include "cli/talk.h"

static const struct bench_kind {
    const char *name;
    bool (*run)(struct bench *bench);
} kinds[] = {
#define X(name, options, help) {#name, bench_##name},
    BENCH_KINDS(X)
#undef X
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)
#define ABOUT_SIZE 2048

#define ALL_HELP "a short look at each of the kinds below"
// Kinds that are commands of their own, and the word for a look at all others.
static const struct bench_more {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} more[] = {
#define X(name, help) {#name, bench_##name, help},
    BENCH_MORE(X)
#undef X
        {"all", NULL, ALL_HELP},
};
#define MORE_COUNT (sizeof more / sizeof *more)

const struct command_word cmd_bench_words[] = {
#define X(name, help) {#name, help, NULL},
    BENCH_MORE(X)
#undef X
        {"all", ALL_HELP, NULL},
#define X(name, options, help) {#name, help, NULL},
    BENCH_KINDS(X)
#undef X
        {NULL, NULL, NULL},
};

static const char *const kind_helps[] = {
#define X(name, options, help) help,
    BENCH_KINDS(X)
#undef X
};

size_t bench_kinds_text(char *text, size_t size) {
    size_t n = 0;
    for (size_t k = 0; k < MORE_COUNT + KIND_COUNT && n < size; k++) {
        n += (size_t)snprintf(text + n, size - n, "  %-8s %s\n",
                              k < MORE_COUNT ? more[k].name : kinds[k - MORE_COUNT].name,
                              k < MORE_COUNT ? more[k].help : kind_helps[k - MORE_COUNT]);
    }
    return n < size ? n : size - 1;
}

// The paragraph for --help, with a line for each kind, or for those that the command line names
// (bits).
static const char *about(char text[ABOUT_SIZE], uint64_t named) {
    size_t n =
        (size_t)snprintf(text, ABOUT_SIZE, "Measures a device%s\n\n", named ? ":" : ". Kinds:");
    for (size_t k = 0; k < KIND_COUNT && named; k++) {
        if (named >> k & 1) {
            n += (size_t)snprintf(text + n, ABOUT_SIZE - n, "  %-8s %s\n", kinds[k].name,
                                  kind_helps[k]);
        }
    }
    n += named ? 0 : bench_kinds_text(text + n, ABOUT_SIZE - n);
    snprintf(
        text + n, ABOUT_SIZE - n,
        "\nWhat an option names is measured and nothing else; a list that is not given has its "
        "default.\n"
        "Numbers are medians; spread is half the interquartile range. A LIST has numbers and "
        "ranges:\n"
        "32,64  1-4  1-8+1  32-1024*2  4KB-256MB*4.\n");
    return text;
}

static bool read_samples(const char *text, void *into, char why[RANGES_WHY]) {
    uint64_t value = 0;
    bool ok = options_whole(text, 1, STATS_MAX_SAMPLES, &value, why);
    *(uint32_t *)into = (uint32_t)value;
    return ok;
}

static const struct option_row measure_options[] = {
    {.name = "time",
     .value = "SECONDS",
     .help = "time for each row",
     .fallback = "0.2",
     .read = options_read_positive,
     .at = offsetof(struct bench, seconds)},
    {.name = "samples",
     .value = "N",
     .help = "samples of each row at least",
     .fallback = "7",
     .read = read_samples,
     .at = offsetof(struct bench, samples)},
};

static const struct table_column columns[] = {BENCH_COLUMNS(TABLE_COLUMN)};

static const char *const outcome_texts[] = {
#define X(name, text) text,
    BENCH_OUTCOMES(X)
#undef X
};

bool bench_section(struct bench *bench, const char *title, uint64_t shown) {
    const struct grt_dev_info *info = grt_dev_info(bench->dev);
    char text[TABLE_TEXT_SIZE];
    snprintf(text, sizeof text, "%s on %s: %s, %s %s", title, info->selector, info->name,
             info->driver, info->driver_version);
    return table_section(&bench->table, text, shown, NULL, 0);
}

bool bench_row(struct bench *bench, struct table_cell *cells, enum bench_outcome outcome,
               const struct stats *stats, bool device_timer) {
    bench->outcomes[outcome]++;
    if (outcome == BENCH_BROKEN) {
        return false;
    }
    cells[BENCH_CHECK] = TABLE_CELL(.text = outcome_texts[outcome]);
    if (bench->contribute) {
        bench_contribute_row(cells);
    }
    if (outcome == BENCH_GOOD) {
        cells[BENCH_SPREAD] = TABLE_CELL(.number = stats->spread);
        cells[BENCH_SAMPLES] = TABLE_CELL(.count = stats->count);
        cells[BENCH_TIMER] = TABLE_CELL(.text = device_timer ? "device" : "wall");
    }
    for (size_t i = 0; outcome != BENCH_GOOD && i < BENCH_COLUMN_COUNT; i++) {
        cells[i].known = cells[i].known && !(BENCH_MEASURED >> i & 1);
    }
    bench->progress.done++;
    return table_row(&bench->table, cells);
}

enum bench_outcome bench_failure(void) {
    return grt_last_status() == GRT_NO_MEMORY ? BENCH_TOO_LARGE : BENCH_BROKEN;
}

bool bench_sample(void *timing, double *seconds) {
    struct bench_timing *t = timing;
    double device = 0;
    double start = grt_seconds();
    if (talk_stopped()) {
        return false;
    }
    for (uint32_t i = 0; i < t->replays; i++) {
        if (!grt_graph_finish(t->graph)) {
            return false;
        }
        struct grt_phase_time times[GRT_MAX_PHASES];
        uint32_t count = t->device_timer ? grt_graph_times(t->graph, times, GRT_MAX_PHASES) : 0;
        for (uint32_t k = 0; k < count; k++) {
            device += times[k].seconds;
        }
    }
    // A device that has timestamps but gives none for this run is timed by the wall from here on.
    t->device_timer = t->device_timer && device > 0;
    *seconds = (t->device_timer ? device : grt_seconds() - start) / t->replays;
    return true;
}

bool bench_time(struct bench *bench, struct bench_timing *timing, struct stats *stats) {
    struct stats_desc desc = {
        .warm_up = 0.1 * bench->seconds, .budget = bench->seconds, .min_samples = bench->samples};
    return stats_measure(&desc, bench_sample, timing, stats);
}

// The first run of each graph warms up: it maps memory and compiles kernels, which would be taken
// for slow work.
uint32_t bench_fill_run(struct bench_timing *timing, uint32_t most, bench_record_fn *record,
                        void *context) {
    double run_seconds = timing->run_seconds > 0 ? timing->run_seconds : BENCH_RUN_SECONDS;
    for (uint32_t count = 1;;) {
        double seconds = 0;
        grt_graph_destroy(&timing->graph);
        timing->graph = record(context, count);
        if (!timing->graph || !bench_sample(timing, &seconds) || !bench_sample(timing, &seconds)) {
            return 0;
        }
        if (seconds >= run_seconds || count >= most) {
            return count;
        }
        // Short runs are mostly overhead, so the estimate is not trusted beyond a factor of 16.
        double factor = 1.25 * run_seconds / (seconds + 1e-6);
        double next = count * (factor < 2 ? 2 : factor > 16 ? 16 : factor);
        count = next < most ? (uint32_t)next : most;
    }
}

// Always 0.
static uint64_t say_unknown(const char *word) {
    const char *names[MORE_COUNT + KIND_COUNT];
    for (size_t i = 0; i < MORE_COUNT + KIND_COUNT; i++) {
        names[i] = i < MORE_COUNT ? more[i].name : kinds[i - MORE_COUNT].name;
    }
    struct command_unknown unknown = {"kind of bench", word, NULL, "gpurt bench --help"};
    command_unknown(&unknown, names, MORE_COUNT + KIND_COUNT, sizeof *names);
    return 0;
}

// Which kinds the words name, as bits; 0 with the mistake said.
static uint64_t chosen_kinds(const char **words, size_t count) {
    uint64_t chosen = 0;
    if (count == 1 && strcmp(words[0], "all") == 0) {
        return (1ull << KIND_COUNT) - 1;
    }
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < KIND_COUNT && strcmp(words[i], kinds[k].name) != 0) {
            k++;
        }
        if (k == KIND_COUNT) {
            return say_unknown(words[i]);
        }
        chosen |= 1ull << k;
    }
    return chosen;
}

// Kinds among the words of a command line that is not read yet, as bits.
static uint64_t named_kinds(int argc, char **argv) {
    uint64_t named = 0;
    for (int i = 1; i < argc; i++) {
        for (size_t k = 0; k < KIND_COUNT; k++) {
            named |= strcmp(argv[i], kinds[k].name) == 0 ? 1ull << k : 0;
        }
    }
    return named;
}

static int run_kinds(struct bench *bench, uint64_t chosen, const struct bench_alone *alone) {
    bool going = !alone || alone->run(bench);
    for (size_t k = 0; going && k < KIND_COUNT; k++) {
        going = !(chosen >> k & 1) || kinds[k].run(bench);
    }
    if (bench->outcomes[BENCH_BROKEN] && !talk_stopped()) {
        return command_exit_of(grt_last_status());
    }
    if (bench->outcomes[BENCH_WRONG]) {
        talk_error("rows that failed their check, not timed: %u", bench->outcomes[BENCH_WRONG]);
        return COMMAND_INTERNAL;
    }
    if (bench->unfit) {
        return COMMAND_USAGE;
    }
    if (bench->missing || (bench->outcomes[BENCH_UNSUITED] && !bench->outcomes[BENCH_GOOD])) {
        return COMMAND_NO_DEVICE;
    }
    // Sizes that do not fit are an answer, as long as something did.
    return bench->outcomes[BENCH_TOO_LARGE] && !bench->outcomes[BENCH_GOOD] ? COMMAND_NO_MEMORY
                                                                            : COMMAND_OK;
}

static int run_bench(struct bench *bench, uint64_t chosen, const struct bench_alone *alone,
                     int argc, char **argv) {
    struct output output;
    int code = output_open(&output, bench->common.output);
    if (code) {
        return code;
    }
    talk_progress("opening the device");
    bench->dev = options_open_device(&bench->common);
    if (bench->dev) {
        struct table_desc desc = {
            .output = &output,
            .format = bench->common.format,
            .columns = columns,
            .column_count = BENCH_COLUMN_COUNT,
            .schema = "gpurt.bench/1",
            .verb = alone ? alone->verb : NULL,
            .argc = argc,
            .argv = argv,
            .head = json_pack("{so}", "device", devices_json(grt_dev_info(bench->dev))),
        };
        if (bench->contribute) {
            bench_contribute_desc(bench, &desc);
        }
        if (table_open(&bench->table, &desc)) {
            code = run_kinds(bench, chosen, alone);
            code = bench_progress_end(&bench->progress, &bench->table, code);
        }
        table_close(&bench->table);
    } else {
        code = command_exit_of(grt_last_status());
    }
    talk_clear();
    code = watch_close(&bench->common, &bench->dev, bench_peaks, code);
    bool keep = code != COMMAND_NO_DEVICE;  // without a device there is nothing to keep
    int written = output_close(&output, keep);
    return code ? code : written;
}

// `gpurt bench memory launch ...`; argv[0] is the verb.
static int bench_kinds(int argc, char **argv) {
    struct bench bench = {0};
    char text[ABOUT_SIZE];
    struct option_list lists[] = {
#define X(name, options, help) {"Options of " #name, bench_##name##_options, options, NULL, false},
        BENCH_KINDS(X)  // first, so that kind k has list k
#undef X
        OPTION_LIST("Options of all kinds", measure_options),
        OPTION_LIST("Contributing", bench_contribute_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("Where time and memory go", watch_options),
        OPTION_LIST("General options", options_general),
    };
    // Of kinds that are named --help shows the options, and of no others.
    uint64_t named = named_kinds(argc, argv);
    for (size_t k = 0; k < KIND_COUNT; k++) {
        lists[k].hidden = named && !(named >> k & 1);
    }
    struct options_desc desc = {.verb = "bench",
                                .words = "[KIND...]",
                                .about = about(text, named),
                                .lists = lists,
                                .list_count = sizeof lists / sizeof *lists};
    const char **words = calloc((size_t)argc + 1, sizeof *words);
    size_t word_count = 0;
    int code = COMMAND_INTERNAL;
    if (!words) {
        talk_error("out of memory");
        return code;
    }
    code = options_parse(&desc, argc, argv, &bench.common, words, &word_count);
    uint64_t chosen = code < 0 ? chosen_kinds(words, word_count) : 0;
    bench.quick = word_count == 1 && strcmp(words[0], "all") == 0;
    if (code < 0 && !chosen) {
        code = COMMAND_USAGE;
    }
    for (size_t k = 0; code < 0 && k < KIND_COUNT; k++) {
        if (!(chosen >> k & 1) && lists[k].given) {
            talk_error("'--%s' is an option of `gpurt bench %s`", lists[k].given, kinds[k].name);
            code = COMMAND_USAGE;
        }
    }
    if (code < 0) {
        code = bench_contribute_begin(&bench, bench.quick);
    }
    if (code < 0) {
        code = bench_rollout_options_check(&bench.rollout);
    }
    if (code < 0) {
        code = run_bench(&bench, chosen, NULL, argc, argv);
        if (bench.contribute) {
            bench_contribute_end(&bench, code);
        }
    }
    ranges_destroy(&bench.sizes);
    ranges_destroy(&bench.counts);
    bench_gemm_options_end(&bench.gemm);
    bench_rollout_options_end(&bench.rollout);
    free(words);
    return code;
}

int bench_alone(struct bench *bench, const struct bench_alone *alone, int argc, char **argv) {
    struct option_list lists[] = {
        alone->list,
        OPTION_LIST("Options of all kinds", measure_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("Where time and memory go", watch_options),
        OPTION_LIST("General options", options_general),
    };
    const struct options_desc desc = {.verb = alone->verb,
                                      .about = alone->about,
                                      .lists = lists,
                                      .list_count = sizeof lists / sizeof *lists};
    size_t words = 0;
    int code = options_parse(&desc, argc, argv, &bench->common, NULL, &words);
    return code < 0 ? run_bench(bench, 0, alone, argc, argv) : code;
}

// Where on the command line the kind stands: first, or behind options; 0 when none is named. A word
// behind an option may be its value.
static int find_kind(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-' || (i > 1 && argv[i - 1][0] == '-')) {
            continue;
        }
        return i;
    }
    return 0;
}

static bool is_number(const char *word) {
    return word && word[0] >= '0' && word[0] <= '9';
}

// `--batch-sizes 64 128 256` is `--batch-sizes 64,128,256`: no kind begins with a digit.
static int join_lists(int argc, char **argv) {
    static char lists[4096];
    size_t used = 0, newest = 0;
    int kept = 0;
    for (int i = 0; i < argc; i++) {
        bool joins = kept > 1 && is_number(argv[i]) && is_number(argv[kept - 1]) &&
                     strncmp(argv[kept - 2], "--", 2) == 0 && !strchr(argv[kept - 2], '=');
        if (!joins) {
            argv[kept++] = argv[i];
            continue;
        }
        const char *list = argv[kept - 1];
        bool ours = used > 0 && list == lists + newest;
        size_t begins = ours ? newest : used;
        size_t wanted = strlen(list) + strlen(argv[i]) + 2;
        if (wanted > sizeof lists - begins) {
            argv[kept++] = argv[i];
            continue;
        }
        int length = ours ? (int)strlen(list) : snprintf(lists + begins, wanted, "%s", list);
        snprintf(lists + begins + length, wanted - (size_t)length, ",%s", argv[i]);
        argv[kept - 1] = lists + begins;
        newest = begins;
        used = begins + wanted;
    }
    argv[kept] = NULL;
    return kept;
}

int cmd_bench(int argc, char **argv) {
    argc = join_lists(argc, argv);
    int at = find_kind(argc, argv);
    size_t found = 0;
    while (at && found < MORE_COUNT && strcmp(argv[at], more[found].name) != 0) {
        found++;
    }
    // Ranks of `scaling` have their devices themselves, and the loader has none.
    bool alone =
        more[found % MORE_COUNT].run == bench_scaling || more[found % MORE_COUNT].run == bench_data;
    int code = at && found < MORE_COUNT && alone ? -1 : spread_devices("bench", argc, argv);
    if (code >= 0) {
        return code;
    }
    if (at && (found == MORE_COUNT || !more[found].run)) {
        return bench_kinds(argc, argv);
    }
    // The kind is taken out; argv[0] stands for both words.
    for (int i = at; at && i < argc; i++) {
        argv[i] = argv[i + 1];
    }
    return more[found].run(argc - (at != 0), argv);
}
