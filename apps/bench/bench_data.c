// SPDX-License-Identifier: Apache-2.0
// `gpurt bench data`: how fast batches come out of a file, without a device. Beside each row stands
// what pread() alone reaches with as many threads over the same rows, and memcpy() over as many
// bytes, measured in turns with it.
//
// Check: the first batches with workers are those without.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_more.h"
#include "bench_progress.h"
#include "cli/command.h"
#include "gpurt/loader.h"
#include "cli/output/files.h"
#include "cli/stats.h"
#include "cli/talk.h"
#include "cli/options/watch.h"

#define CHECKED_BATCHES 3
#define SLICE 0.1  // seconds of the loader, and as many batches raw

#define COLUMNS(X)                                                                                 \
    X(BATCH, "batch", "batch", NULL, COUNT, 0)                                                     \
    X(WORKERS, "workers", "workers", NULL, COUNT, 0)                                               \
    X(CACHE, "cache", "cache", NULL, TEXT, 0)                                                      \
    X(ORDER, "order", "order", NULL, TEXT, 0)                                                      \
    X(RATE, "samples_per_s", "", "samples/s", NUMBER, 0)                                           \
    X(MB, "mb_per_s", "", "MB/s", NUMBER, 1)                                                       \
    X(RAW, "raw_mb_per_s", "raw", "MB/s", NUMBER, 1)                                               \
    X(SHARE, "of_raw", "of raw", NULL, NUMBER, 2)                                                  \
    X(COPY, "memcpy_mb_per_s", "memcpy", "MB/s", NUMBER, 1)                                        \
    X(COPY_SHARE, "of_memcpy", "of memcpy", NULL, NUMBER, 2)                                       \
    X(STAGE, "slowest_stage", "slowest", NULL, TEXT, 0)                                            \
    X(STAGE_SHARE, "slowest_share", "its share", NULL, SHARE, 0)                                   \
    X(SPREAD, "spread", "spread", NULL, SHARE, 1)                                                  \
    X(SAMPLES, "samples", "slices", NULL, COUNT, 0)                                                \
    X(SYNTHETIC, "synthetic", "synthetic", NULL, FLAG, 0)                                          \
    X(CHECK, "check", "check", NULL, TEXT, 0)

enum column {
#define X(name, key, heading, unit, type, precision) COLUMN_##name,
    COLUMNS(X)
#undef X
        COLUMN_COUNT,
};

static const struct table_column columns[] = {
#define X(name, key, heading, unit, type, precision)                                               \
    {key, heading, unit, TABLE_##type, precision, COLUMN_##name == COLUMN_ORDER ? 10 : 8, 0},
    COLUMNS(X)
#undef X
};

struct data_bench {
    struct options common;  // first: see options.h
    struct bench_source source;
    struct ranges batches, workers;
    enum grt_cache cache;
    bool sequential;
    double seconds;
    struct grt_dataset *data;
    struct table table;
    struct bench_progress progress;
    bool wrong;
};

static bool read_order(const char *text, void *into, char why[RANGES_WHY]) {
    bool shuffled = strcmp(text, "shuffled") == 0;
    *(bool *)into = !shuffled;
    if (shuffled || strcmp(text, "sequential") == 0) {
        return true;
    }
    snprintf(why, RANGES_WHY, "known are shuffled and sequential");
    return false;
}

#define AT(field) offsetof(struct data_bench, field)

static const struct option_row own_options[] = {
    BENCH_SOURCE_ROWS(struct data_bench, source),
    {.name = "batch-sizes",
     .value = "LIST",
     .help = "rows of a batch",
     .fallback = "256,4096",
     .read = bench_read_batches,
     .at = AT(batches)},
    {.name = "num-workers",
     .value = "LIST",
     .help = "threads that read; 0: the caller's own",
     .fallback = "0,2",
     .read = bench_read_workers,
     .at = AT(workers)},
    {.name = "cache",
     .value = "none|ram",
     .help = "read from the file, or from a copy in memory",
     .fallback = "none",
     .read = bench_read_cache,
     .at = AT(cache)},
    {.name = "order",
     .value = "shuffled|sequential",
     .help = "order of the rows",
     .fallback = "shuffled",
     .read = read_order,
     .at = AT(sequential)},
    {.name = "time",
     .value = "SECONDS",
     .help = "time for each row",
     .fallback = "1",
     .read = options_read_positive,
     .at = AT(seconds)},
};

static struct grt_loader *create(const struct data_bench *bench, uint64_t batch, uint64_t workers) {
    return grt_loader_create(grt_loader_desc(.data = bench->data, .part = GRT_PART_ALL,
                                             .batch = (uint32_t)batch, .workers = (uint32_t)workers,
                                             .shuffle = !bench->sequential, .cache = bench->cache));
}

// Whether both give the same first batches; `same` says it, false is a failed call.
static bool check(struct grt_loader *a, struct grt_loader *b, const struct grt_dataset_info *info,
                  bool *same) {
    *same = true;
    for (int i = 0; *same && i < CHECKED_BATCHES; i++) {
        struct grt_batch x, y;
        if (!grt_loader_next(a, &x)) {
            return false;
        }
        if (!grt_loader_next(b, &y)) {
            grt_loader_release(a, &x);
            return false;
        }
        *same = x.rows == y.rows && memcmp(x.x, y.x, (size_t)x.rows * info->x_width * 4) == 0 &&
                (!x.y || memcmp(x.y, y.y, (size_t)x.rows * info->y_width * 4) == 0);
        grt_loader_release(a, &x);
        grt_loader_release(b, &y);
    }
    return true;
}

// Batches from the loader, until both so many and so long: rows a second.
static bool slice(struct grt_loader *loader, uint64_t batches, double seconds, double *rate) {
    uint64_t rows = 0;
    double begun = grt_seconds(), passed = 0;
    for (uint64_t i = 0; i < batches || passed < seconds; i++) {
        struct grt_batch batch;
        if (talk_stopped() || !grt_loader_next(loader, &batch)) {
            return false;
        }
        rows += batch.rows;
        grt_loader_release(loader, &batch);
        passed = grt_seconds() - begun;
    }
    *rate = (double)rows / passed;
    return true;
}

// Rows a second: of the loader, of pread() alone, of memcpy() alone.
struct rates {
    double loader, raw, copy;
};

static bool peer_slices(struct grt_loader *loader, struct grt_copier *copier, uint32_t threads,
                        uint64_t batches, struct rates *rates) {
    struct grt_loader_raw raw, copy;
    // A call for each row may be a hundred times slower: fewer of them say as much.
    uint64_t fewer = batches / 8 > threads ? batches / 8 : threads;
    if (!grt_loader_raw(loader, threads, fewer, &raw) ||
        !grt_copier_run(copier, threads, batches, &copy)) {
        return false;
    }
    rates->raw = (double)raw.rows / raw.seconds;
    rates->copy = (double)copy.rows / copy.seconds;
    return true;
}

// The stage of making batches that takes the longest, and its share of all of them.
struct slowest {
    enum grt_stage stage;
    double share;
};

// A slice of its own: taking the times of stages costs a little.
static bool find_slowest(struct grt_loader *loader, uint64_t batches, struct slowest *slowest) {
    double rate;
    struct grt_timeline *timeline = grt_timeline_begin(NULL, NULL);
    bool good = timeline && slice(loader, batches, SLICE, &rate);
    good = timeline && grt_timeline_end(timeline) && good;
    struct grt_timeline_totals totals = grt_timeline_totals(timeline);
    grt_timeline_destroy(&timeline);
    double sum = 0.0;
    for (int i = 0; i < GRT_STAGE_WAIT; i++) {
        sum += totals.stages[i];
    }
    slowest->stage = watch_slowest(&totals);
    slowest->share = sum > 0.0 ? totals.stages[slowest->stage] / sum : 0.0;
    return good;
}

// Loader and peers in turns, now one first and now the others; each rate is the median of its
// slices.
static bool measure(struct data_bench *bench, struct grt_loader *loader, struct grt_copier *copier,
                    uint64_t batch, uint64_t workers, struct stats *rate, struct rates *peers) {
    double rates[STATS_MAX_SAMPLES], raws[STATS_MAX_SAMPLES], copies[STATS_MAX_SAMPLES], first = 0;
    uint32_t threads = workers > 0 ? (uint32_t)workers : 1;
    size_t count = 0;
    double begun = grt_seconds();
    // Warms up caches, of chunks too, and the map of the file. Batches that workers made meanwhile
    // come at once: a short epoch alone would say nothing of the rate.
    if (!slice(loader, grt_loader_info(loader).batches_per_epoch, SLICE, &first)) {
        return false;
    }
    uint64_t batches = (uint64_t)(first * SLICE / (double)batch) + threads;
    while (count < 5 || (grt_seconds() - begun < bench->seconds && count < STATS_MAX_SAMPLES)) {
        bool peers_first = count % 2 == 1;
        struct rates now;
        if (talk_stopped() ||
            (peers_first && !peer_slices(loader, copier, threads, batches, &now)) ||
            !slice(loader, threads, SLICE, &rates[count]) ||
            (!peers_first && !peer_slices(loader, copier, threads, batches, &now))) {
            return false;
        }
        raws[count] = now.raw;
        copies[count++] = now.copy;
    }
    *rate = stats_of(rates, count);
    peers->raw = stats_of(raws, count).median;
    peers->copy = stats_of(copies, count).median;
    return true;
}

static bool run_row(struct data_bench *bench, uint64_t batch, uint64_t workers) {
    struct grt_dataset_info info = grt_dataset_info(bench->data);
    struct grt_loader *loader = create(bench, batch, workers), *plain = create(bench, batch, 0);
    struct grt_copier *copier = loader ? grt_copier_create(loader) : NULL;
    struct stats rate = {0};
    struct rates peers = {0};
    struct slowest slowest = {GRT_STAGE_COUNT, 0.0};
    bool same = false;
    bool good = copier && plain && check(loader, plain, &info, &same);
    grt_loader_destroy(&plain);
    if (good && same) {
        good = measure(bench, loader, copier, batch, workers, &rate, &peers) &&
               find_slowest(loader, workers + 1, &slowest);
    }
    grt_loader_destroy(&loader);
    grt_copier_destroy(&copier);
    if (!good) {
        return false;
    }
    bench->wrong = bench->wrong || !same;
    bool staged = same && slowest.stage != GRT_STAGE_COUNT;
    double bytes = (double)info.row_bytes / 1e6;
    double given = ((double)info.x_width + info.y_width) * 4 / 1e6;
    struct table_cell cells[COLUMN_COUNT] = {
        [COLUMN_BATCH] = TABLE_CELL(.count = batch),
        [COLUMN_WORKERS] = TABLE_CELL(.count = workers),
        [COLUMN_CACHE] = TABLE_CELL(.text = grt_cache_text(bench->cache)),
        [COLUMN_ORDER] = TABLE_CELL(.text = bench->sequential ? "sequential" : "shuffled"),
        [COLUMN_RATE] = {.known = same, .number = rate.median},
        [COLUMN_MB] = {.known = same, .number = rate.median * bytes},
        [COLUMN_RAW] = {.known = same, .number = peers.raw * bytes},
        [COLUMN_SHARE] = {.known = same, .number = rate.median / peers.raw},
        [COLUMN_COPY] = {.known = same, .number = peers.copy * given},
        [COLUMN_COPY_SHARE] = {.known = same, .number = rate.median / peers.copy},
        [COLUMN_STAGE] = {.known = staged, .text = grt_stage_text(slowest.stage)},
        [COLUMN_STAGE_SHARE] = {.known = staged, .number = slowest.share},
        [COLUMN_SPREAD] = {.known = same, .number = rate.spread},
        [COLUMN_SAMPLES] = {.known = same, .count = rate.count},
        [COLUMN_SYNTHETIC] = TABLE_CELL(.count = bench->source.synthetic),
        [COLUMN_CHECK] = TABLE_CELL(.text = same ? "ok" : "FAILED"),
    };
    return table_row(&bench->table, cells);
}

// Reads the file once, so that loader and raw reading find the same of it in memory; what a disk
// adds is not theirs. Files beyond this stay where they are.
#define WARM_BYTES (8ull << 30)
static void warm_up(const char *path) {
    FILE *file = fopen(path, "rb");
    static char into[1 << 16];
    uint64_t total = 0;
    size_t got;
    talk_progress("reading %s once", path);
    while (file && total < WARM_BYTES && !talk_stopped() &&
           (got = fread(into, 1, sizeof into, file)) > 0) {
        total += got;
    }
    if (file) {
        fclose(file);
    }
}

static bool run_rows(struct data_bench *bench) {
    char title[TABLE_TEXT_SIZE], row[TABLE_TEXT_SIZE];
    struct grt_dataset_info info = grt_dataset_info(bench->data);
    table_bytes_text(info.row_bytes, row);
    snprintf(title, sizeof title, "data: %.400s, %llu rows of %.20s%s",
             bench->source.synthetic ? "synthetic" : bench->source.path,
             (unsigned long long)info.rows, row, info.filtered ? ", compressed" : "");
    uint64_t shown = (1u << COLUMN_COUNT) - 1;
    shown &= ~(1ull << COLUMN_SAMPLES | 1ull << COLUMN_SYNTHETIC);
    if (!table_section(&bench->table, title, shown, NULL, 0)) {
        return false;
    }
    warm_up(bench->source.path);
    bench_progress_plan(&bench->progress, bench->batches.count * bench->workers.count,
                        bench->seconds);
    for (size_t b = 0; b < bench->batches.count; b++) {
        for (size_t w = 0; w < bench->workers.count; w++) {
            bench_progress_row(&bench->progress, "data: batch %llu, %llu workers",
                               (unsigned long long)bench->batches.values[b],
                               (unsigned long long)bench->workers.values[w]);
            if (!run_row(bench, bench->batches.values[b], bench->workers.values[w])) {
                return false;
            }
            bench->progress.done++;
        }
    }
    return true;
}

static int run(struct data_bench *bench, int argc, char **argv) {
    struct output output;
    int code = FILES_APART({FILE_READ, "--data", bench->source.path},
                           {FILE_WRITTEN, "--output", bench->common.output});
    if (code) {
        return code;
    }
    code = output_open(&output, bench->common.output);
    if (code) {
        return code;
    }
    if (bench_source_make(&bench->source, 200000, 32)) {
        bench->data = bench_source_open(&bench->source);
    }
    if (bench->data) {
        struct table_desc desc = {
            .output = &output,
            .format = bench->common.format,
            .columns = columns,
            .column_count = COLUMN_COUNT,
            .schema = "gpurt.bench.data/1",
            .verb = "bench data",
            .argc = argc,
            .argv = argv,
            .head = bench_source_json(&bench->source, bench->data),
        };
        bool good = table_open(&bench->table, &desc) && run_rows(bench);
        code = good ? COMMAND_OK : command_exit_of(grt_last_status());
        code = bench_progress_end(&bench->progress, &bench->table, code);
        table_close(&bench->table);
    } else {
        code = command_exit_of(grt_last_status());
    }
    talk_clear();
    if (bench->wrong) {
        talk_error("batches differ with the number of workers");
        code = COMMAND_INTERNAL;
    }
    grt_dataset_close(&bench->data);
    bench_source_end(&bench->source);
    return output_end(&output, !code || code == COMMAND_RESUMABLE, code);
}

static const char about[] =
    "How fast batches come out of an HDF5 file. Raw is what pread() alone reaches over the same\n"
    "rows, one call each, with as many threads, measured in turns, and memcpy what memory gives\n"
    "them over as many numbers of 4 bytes; MB are bytes as stored before compression. Slowest is\n"
    "the stage of making a batch that takes the most time of all workers: read, inflate, decode "
    "or\n"
    "convert. Without --data a file is made and removed again.\n";

int bench_data(int argc, char **argv) {
    struct data_bench bench = {0};
    struct option_list lists[] = {
        OPTION_LIST("Options of data", own_options),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("General options", options_general),
    };
    struct options_desc desc = {
        .verb = "bench data", .about = about, .lists = lists, .list_count = 3};
    size_t word_count = 0;
    int code = options_parse(&desc, argc, argv, &bench.common, NULL, &word_count);
    if (code < 0) {
        code = run(&bench, argc, argv);
    }
    ranges_destroy(&bench.batches);
    ranges_destroy(&bench.workers);
    return code;
}
