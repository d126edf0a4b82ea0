// SPDX-License-Identifier: Apache-2.0
// `gpurt bench train`, which is also `gpurt bench`: whole training steps over batch sizes, workers,
// precisions and pinned memory, one row each as it is measured, then what to use.
//
// Once a batch does not fit, larger batches of its precision are skipped.
#include "bench_train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/whole_file.h"
#include "bench/bench_peaks.h"
#include "cli/command.h"
#include "cli/devices.h"
#include "cli/options/watch.h"
#include "cli/output/files.h"
#include "cli/stats.h"
#include "cli/talk.h"

#define FEATURES 32  // of synthetic data

#define COLUMNS(X)                                                                                 \
    X(BATCH, "batch", "Batch", NULL, COUNT, 0, 6)                                                  \
    X(WORKERS, "workers", "Workers", NULL, COUNT, 0, 0)                                            \
    X(AMP, "precision", "AMP", NULL, TEXT, 0, 4)                                                   \
    X(PIN, "pin_memory", "Pin", NULL, FLAG, 0, 0)                                                  \
    X(CACHE, "cache", "Cache", NULL, TEXT, 0, 6)                                                   \
    X(IO, "io_ms", "I/O", "ms", NUMBER, 2, 8)                                                      \
    X(UPLOAD, "upload_ms", "Up", "ms", NUMBER, 2, 7)                                               \
    X(INPUT, "input_ms", "In", "ms", NUMBER, 2, 7)                                                 \
    X(FORWARD, "forward_ms", "Fwd", "ms", NUMBER, 2, 8)                                            \
    X(BACKWARD, "backward_ms", "Bwd", "ms", NUMBER, 2, 8)                                          \
    X(OPTIMIZER, "optimizer_ms", "Opt", "ms", NUMBER, 2, 8)                                        \
    X(TOTAL, "total_ms", "Total", "ms", NUMBER, 2, 8)                                              \
    X(SPREAD, "spread", "Spread", NULL, SHARE, 1, 6)                                               \
    X(RATE, "samples_per_s", "Samples/s", NULL, NUMBER, 0, 10)                                     \
    X(STALL, "input_stall", "Stall", NULL, SHARE, 1, 6)                                            \
    X(BUSY, "device_busy", "GPU %", NULL, SHARE, 1, 6)                                             \
    X(COUNTER, "driver_busy", "driver %", NULL, SHARE, 0, 0)                                       \
    X(MEMORY, "memory_bytes", "Mem", NULL, BYTES, 0, 9)                                            \
    X(SAMPLES, "samples", "samples", NULL, COUNT, 0, 0)                                            \
    X(VARIANT, "variant", "variant", NULL, TEXT, 0, 0)                                             \
    X(SYNTHETIC, "synthetic", "synthetic", NULL, FLAG, 0, 0)                                       \
    X(STATUS, "status", "Status", NULL, TEXT, 0, 8)                                                \
    X(FOUND, "oom_found_by", "found by", NULL, TEXT, 0, 0)

enum column {
    COLUMNS(TABLE_ENTRY) COLUMN_COUNT,
};

static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

static const char *const status_texts[] = {
#define X(name, text) text,
    TRAIN_STATUSES(X)
#undef X
};

static const enum grt_dtype precisions[] = {
#define X(name, text) GRT_##name,
    TRAIN_PRECISIONS(X)
#undef X
};
#define PRECISION_COUNT (sizeof precisions / sizeof *precisions)

// ---- options ----

static bool read_precisions(const char *text, void *into, char why[RANGES_WHY]) {
#define X(name, word) word,
    static const char *const names[] = {TRAIN_PRECISIONS(X)};
#undef X
    return options_bits(text, names, PRECISION_COUNT, into, why);
}

static bool read_pins(const char *text, void *into, char why[RANGES_WHY]) {
    static const char *const names[] = {"on", "off"};
    return options_bits(text, names, 2, into, why);
}

static bool read_steps(const char *text, void *into, char why[RANGES_WHY]) {
    return options_whole(text, 1, STATS_MAX_SAMPLES, into, why);
}

static bool read_model(const char *text, void *into, char why[RANGES_WHY]) {
    if (bench_model(&text, into) && !*text) {
        return true;
    }
    snprintf(why, RANGES_WHY, BENCH_MODEL_WANTED);
    return false;
}

static bool read_cache(const char *text, void *into, char why[RANGES_WHY]) {
    if (strcmp(text, "auto") == 0) {
        *(enum grt_cache *)into = TRAIN_CACHE_AUTO;
        return true;
    }
    if (bench_read_any_cache(text, into, why)) {
        return true;
    }
    snprintf(why, RANGES_WHY, "known are auto, none, ram and device");
    return false;
}

#define AT(field) offsetof(struct train_bench, field)

static const struct option_row own_options[] = {
    {.name = "config",
     .letter = "c",
     .value = "FILE",
     .help = "training config; its section benchmark says what is tried",
     .read = options_read_text,
     .at = AT(config_path)},
    BENCH_SOURCE_ROWS(struct train_bench, source),
    {.name = "batch-sizes",
     .value = "LIST",
     .help = "samples of a step (default: by device)",
     .read = bench_read_batches,
     .at = AT(batches)},
    {.name = "num-workers",
     .value = "LIST",
     .help = "threads that read data (default: 0,2; 0,4 on a GPU)",
     .read = bench_read_workers,
     .at = AT(workers)},
    {.name = "precision",
     .value = "f32,f16,bf16",
     .help = "types of activations (default: f32; f32,f16 on a GPU)",
     .read = read_precisions,
     .at = AT(precisions)},
    {.name = "pin-memory",
     .value = "on,off",
     .help = "batches in memory the device reads (default: on)",
     .read = read_pins,
     .at = AT(pins)},
    {.name = "cache",
     .value = "auto|none|ram|device",
     .help = "where the rows are: the file, memory, the device (default: auto, as in training)",
     .read = read_cache,
     .at = AT(cache)},
    {.name = "steps",
     .value = "N",
     .help = "steps of each row at least (default: 10)",
     .read = read_steps,
     .at = AT(steps)},
    {.name = "time",
     .value = "SECONDS",
     .help = "time for each row at least (default: 0.3)",
     .read = options_read_positive,
     .at = AT(seconds)},
    {.name = "model",
     .value = "small|medium|large|depth=D,hidden=H",
     .help = "3 x 16, 6 x 64, 12 x 128, or this (default: with data of your own the config's, 3 x "
             "64; else small, medium on a GPU)",
     .read = read_model,
     .at = AT(model)},
    {.name = "apply",
     .value = "FILE",
     .help = "write what is recommended as a training config",
     .read = options_read_text,
     .at = AT(apply)},
};

static bool take_list(struct ranges *list, const struct grt_config_wholes *from) {
    if (list->count > 0 || from->count == 0) {
        return true;
    }
    list->values = calloc(from->count, sizeof *list->values);
    if (!list->values) {
        talk_error("out of memory");
        return false;
    }
    memcpy(list->values, from->values, from->count * sizeof *list->values);
    list->count = from->count;
    return true;
}

// What the command line leaves open comes from the config.
static bool take_config(struct train_bench *bench) {
    struct grt_config *config = &bench->config;
    grt_config_init(config);
    bench->given = (struct train_given){.workers = bench->workers.count > 0,
                                        .model = bench->model.depth > 0,
                                        .precisions = bench->precisions,
                                        .pins = bench->pins,
                                        .steps = bench->steps,
                                        .seconds = bench->seconds,
                                        .mem_fraction = bench->common.mem_fraction};
    if (bench->config_path && !grt_config_read(config, bench->config_path)) {
        return false;
    }
    if (!bench->source.path && config->data[0]) {
        bench->source.path = config->data;
    }
    if (grt_config_given(config, GRT_CONFIG_BACKEND) &&
        strcmp(bench->common.backend, "auto") == 0) {
        bench->common.backend = config->backend;
    }
    if (!bench->common.device && config->device[0]) {
        bench->common.device = config->device;
    }
    if (bench->common.mem_fraction == 0) {
        bench->common.mem_fraction = config->mem_fraction;
    }
    char unknown[RANGES_WHY];
    if (bench->cache == TRAIN_CACHE_AUTO && grt_config_given(config, GRT_CONFIG_CACHE)) {
        read_cache(config->cache, &bench->cache, unknown);
    }
    if (bench->steps == 0) {
        bench->steps =
            config->steps_per_test < STATS_MAX_SAMPLES ? config->steps_per_test : STATS_MAX_SAMPLES;
    }
    if (bench->precisions == 0 && grt_config_given(config, GRT_CONFIG_TEST_MIXED_PRECISION)) {
        bench->precisions = config->test_mixed_precision ? 3 : 1;
    }
    if (bench->pins == 0) {
        bench->pins = config->test_pin_memory ? 3 : config->pin_memory ? 1 : 2;
    }
    char why[RANGES_WHY];
    if (bench->model.depth == 0 && grt_config_given(config, GRT_CONFIG_MODEL) &&
        !read_model(config->model, &bench->model, why)) {
        bench->model.depth = 0;  // mlp and points: their depth and width are keys of their own
    }
    bench->named =
        bench->source.path || bench->given.model || grt_config_given(config, GRT_CONFIG_MODEL) ||
        grt_config_given(config, GRT_CONFIG_DEPTH) || grt_config_given(config, GRT_CONFIG_HIDDEN);
    if (bench->model.depth == 0 && bench->named) {
        bool each = config->hidden.count > 1;
        bench->model.depth = each ? config->hidden.count : (uint32_t)config->depth;
        bench->model.hidden = (uint32_t)config->hidden.values[0];
    }
    return take_list(&bench->batches, &config->batch_sizes) &&
           take_list(&bench->workers, &config->num_workers_options);
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// What is left open now depends on the device.
static bool take_defaults(struct train_bench *bench) {
    bool software = grt_dev_info(bench->dev)->caps.software != 0;
    char why[RANGES_WHY];
    bench->workers_given = bench->workers.count > 0;
    if ((!bench->batches.count &&
         !bench_read_batches(software ? "64-4096*4" : "256-65536*4", &bench->batches, why)) ||
        (!bench->workers.count &&
         !bench_read_workers(software ? "0,2" : "0,4", &bench->workers, why)) ||
        (!bench->model.depth && !read_model(software ? "small" : "medium", &bench->model, why))) {
        talk_error("%s", why);
        return false;
    }
    if (!bench->precisions) {
        bench->precisions = software ? 1 : 3;
    }
    // Ascending, because larger batches are skipped once one does not fit.
    qsort(bench->batches.values, bench->batches.count, sizeof *bench->batches.values, ascending);
    return true;
}

// ---- rows ----

static bool print_row(struct train_bench *bench, const struct train_row *row) {
    bool ok = row->status == TRAIN_OK, phases = ok && row->phases;
    struct table_cell cells[COLUMN_COUNT] = {
        [COLUMN_BATCH] = TABLE_CELL(.count = row->batch),
        [COLUMN_WORKERS] = TABLE_CELL(.count = row->workers),
        [COLUMN_AMP] = TABLE_CELL(.text = grt_dtype_text(row->precision)),
        [COLUMN_PIN] = TABLE_CELL(.count = row->pin),
        [COLUMN_CACHE] = TABLE_CELL(.text = grt_cache_text(row->cache)),
        [COLUMN_IO] = {.known = ok, .number = round(1e5 * row->io) / 1e2},
        [COLUMN_UPLOAD] = {.known = ok && row->upload > 0, .number = 1e3 * row->upload},
        [COLUMN_INPUT] = {.known = phases, .number = 1e3 * row->input},
        [COLUMN_FORWARD] = {.known = phases, .number = 1e3 * row->forward},
        [COLUMN_BACKWARD] = {.known = phases, .number = 1e3 * row->backward},
        [COLUMN_OPTIMIZER] = {.known = phases, .number = 1e3 * row->optimizer},
        [COLUMN_TOTAL] = {.known = ok, .number = 1e3 * row->total},
        [COLUMN_SPREAD] = {.known = ok, .number = row->spread},
        [COLUMN_RATE] = {.known = ok, .number = row->rate},
        [COLUMN_STALL] = {.known = ok, .number = row->stall},
        [COLUMN_BUSY] = {.known = ok, .number = row->busy},
        [COLUMN_COUNTER] = {.known = ok && row->counter >= 0, .number = row->counter},
        [COLUMN_MEMORY] = {.known = row->memory > 0, .count = row->memory},
        [COLUMN_SAMPLES] = {.known = ok, .count = row->samples},
        [COLUMN_VARIANT] = {.known = row->variant != NULL, .text = row->variant},
        [COLUMN_SYNTHETIC] = TABLE_CELL(.count = bench->source.synthetic),
        [COLUMN_STATUS] = TABLE_CELL(.text = status_texts[row->status]),
        [COLUMN_FOUND] = {.known = row->status == TRAIN_OOM,
                          .text = row->planned ? "plan" : "allocation"},
    };
    return table_row(&bench->table, cells);
}

// One way up through the batch sizes; false when the bench must stop.
static bool sweep(struct train_bench *bench, struct train_row like) {
    for (size_t i = 0; i < bench->batches.count && bench->count < TRAIN_MAX_ROWS; i++) {
        struct train_row *row = &bench->rows[bench->count];
        *row = like;
        row->batch = (uint32_t)bench->batches.values[i];
        bench_progress_row(&bench->progress, "batch %u, %u workers, %s", row->batch, row->workers,
                           grt_dtype_text(row->precision));
        train_measure(bench, row);
        if (row->status == TRAIN_BROKEN) {
            return false;
        }
        bench->progress.done = ++bench->count;
        if (!print_row(bench, row)) {
            return false;
        }
        if (row->status != TRAIN_OK && row->status != TRAIN_NOT_FINITE) {
            bench->progress.planned -= bench->batches.count - i - 1;
            return true;
        }
    }
    return true;
}

static bool run_rows(struct train_bench *bench) {
    const struct grt_dev_info *info = grt_dev_info(bench->dev);
    char title[TABLE_TEXT_SIZE], hidden[256];
    grt_config_value_text(&bench->task.config, GRT_CONFIG_HIDDEN, hidden, sizeof hidden);
    snprintf(title, sizeof title,
             "training on %s: %.100s, %.60s; %u hidden layers of %.100s, %s%.300s, %llu samples",
             info->selector, info->name, info->driver, bench->model.depth, hidden,
             bench->source.synthetic ? "synthetic data" : "",
             bench->source.synthetic ? "" : bench->source.path,
             (unsigned long long)bench->task.info.rows);
    uint64_t unseen = 1ull << COLUMN_UPLOAD | 1ull << COLUMN_INPUT | 1ull << COLUMN_SAMPLES |
                      1ull << COLUMN_VARIANT | 1ull << COLUMN_SYNTHETIC | 1ull << COLUMN_FOUND;
    if (bench->pins != 3) {
        unseen |= 1ull << COLUMN_PIN;
    }
    if (bench_counter_read(&bench->counter) < 0) {
        unseen |= 1ull << COLUMN_COUNTER;
    }
    if (!table_section(&bench->table, title, ((1ull << COLUMN_COUNT) - 1) & ~unseen, NULL, 0)) {
        return false;
    }
    for (size_t p = 0; p < PRECISION_COUNT; p++) {
        for (uint32_t pin = 0; pin < 2; pin++) {
            for (size_t w = 0; w < bench->workers.count; w++) {
                struct train_row like = {.workers = (uint32_t)bench->workers.values[w],
                                         .precision = precisions[p],
                                         .pin = pin == 0};
                if ((bench->precisions >> p & 1) && (bench->pins >> pin & 1) &&
                    !sweep(bench, like)) {
                    return false;
                }
            }
        }
    }
    return true;
}

static uint32_t bits(uint32_t x) {
    return x == 0 ? 0 : (x & 1) + bits(x >> 1);
}

// ---- the whole ----

// The config with what the command line says, and the data; a model named there is one of depth and
// width. A bench reads a part of the rows: it does not look at all of them first.
static bool open_task(struct train_bench *bench) {
    static struct grt_config config;
    config = bench->config;
    char depth[16], hidden[16];
    snprintf(depth, sizeof depth, "%u", bench->model.depth);
    snprintf(hidden, sizeof hidden, "%u", bench->model.hidden);
    bool sized = grt_config_given(&config, GRT_CONFIG_MODEL) && strcmp(config.model, "points") != 0;
    bool widths = config.hidden.count > 1 && !bench->given.model;  // of the config: they stand
    const struct bench_source *source = &bench->source;
    struct grt_profile *profile = grt_profile_create(grt_dev_info(bench->dev));
    bool good =
        profile && grt_config_set(&config, GRT_CONFIG_DATA, source->path) &&
        (!source->inputs || grt_config_set(&config, GRT_CONFIG_INPUTS, source->inputs)) &&
        (!source->targets || grt_config_set(&config, GRT_CONFIG_TARGETS, source->targets)) &&
        (!sized || grt_config_set(&config, GRT_CONFIG_MODEL, "mlp")) &&
        (widths || (grt_config_set(&config, GRT_CONFIG_DEPTH, depth) &&
                    grt_config_set(&config, GRT_CONFIG_HIDDEN, hidden))) &&
        grt_task_open(&bench->task, &config, profile, &(struct grt_task_look){.late = true});
    grt_profile_destroy(&profile);
    return good;
}

// Enough synthetic rows that the share for training fills the largest batch.
static bool open_data(struct train_bench *bench) {
    uint64_t most = bench->batches.values[bench->batches.count - 1];
    uint64_t rows = 4 * most < 20000 ? 20000 : 4 * most > 262144 ? 262144 : 4 * most;
    rows = rows > 2 * most ? rows : 2 * most;
    return bench_source_make(&bench->source, rows, FEATURES) && open_task(bench);
}

// Rows of the device are put there once, and no number of workers changes anything from then on.
static bool keep_rows(struct train_bench *bench) {
    struct grt_learner_desc desc = bench->task.learner;
    desc.batch = (uint32_t)bench->batches.values[0];
    desc.accumulate = 1;
    struct grt_cache_choice choice;
    enum grt_cache wanted = bench->cache == TRAIN_CACHE_AUTO ? GRT_CACHE_DEVICE : bench->cache;
    if (!grt_task_choose_cache(bench->dev, &bench->task, &desc, wanted, &choice)) {
        return false;
    }
    if (choice.cache != GRT_CACHE_DEVICE) {
        return true;
    }
    talk_progress("putting the data on the device");
    bench->kept = grt_loader_create(grt_loader_desc(.data = bench->task.data, .dev = bench->dev,
                                                    .part = GRT_PART_TRAIN, .batch = desc.batch,
                                                    .workers = 16, .cache = GRT_CACHE_DEVICE));
    talk_clear();
    if (!bench->workers_given) {
        bench->workers.count = 1;
    }
    return bench->kept != NULL;
}

static int finish(struct train_bench *bench, bool good) {
    bool stopped = talk_stopped();
    talk_clear();
    if (!good && !stopped) {
        return command_exit_of(grt_last_status());
    }
    struct train_summary summary = train_summarise(bench);
    if (!train_report(bench, &summary)) {
        return COMMAND_OK;  // output_close() says what went wrong
    }
    if (bench->apply && !summary.recommended) {
        talk_error("%s is not written: %s", bench->apply,
                   stopped ? "no row that can be recommended was measured before the interruption"
                           : "nothing can be recommended");
        return COMMAND_INTERNAL;
    }
    if (bench->apply && !train_apply(bench, summary.recommended)) {
        return command_exit_of(grt_last_status());
    }
    // Batches that do not fit are an answer, as long as something did.
    bool too_large = false;
    for (size_t i = 0; i < bench->count; i++) {
        too_large = too_large || bench->rows[i].status == TRAIN_OOM;
    }
    return summary.fastest || stopped ? COMMAND_OK
           : too_large                ? COMMAND_NO_MEMORY
                                      : COMMAND_INTERNAL;
}

static json_t *head(const struct train_bench *bench) {
    json_t *json = bench_source_json(&bench->source, bench->task.data);
    json_object_set_new(json, "device", devices_json(grt_dev_info(bench->dev)));
    const struct grt_config_wholes *widths = &bench->task.config.hidden;
    json_t *hidden = widths->count > 1 ? json_array() : json_integer((json_int_t)widths->values[0]);
    for (uint32_t i = 0; widths->count > 1 && i < widths->count; i++) {
        json_array_append_new(hidden, json_integer((json_int_t)widths->values[i]));
    }
    json_object_set_new(
        json, "model", json_pack("{s:i, s:o}", "depth", (int)bench->model.depth, "hidden", hidden));
    return json;
}

static int run(struct train_bench *bench, int argc, char **argv) {
    struct output output;
    int code = FILES_APART(
        {FILE_READ, "--config", bench->config_path}, {FILE_READ, "--data", bench->source.path},
        {FILE_WRITTEN, "--apply", bench->apply}, {FILE_WRITTEN, "--output", bench->common.output},
        FILES_WATCHED(&bench->common));
    if (code) {
        return code;
    }
    int obstacle = bench->apply ? grt_whole_file_obstacle(bench->apply) : 0;
    if (obstacle) {
        grt_whole_file_refuse(bench->apply, obstacle);
        return command_exit_of(grt_last_status());
    }
    code = output_open(&output, bench->common.output);
    if (code) {
        return code;
    }
    talk_progress("opening the device");
    bench->dev = options_open_device(&bench->common);
    bench->rows = calloc(TRAIN_MAX_ROWS, sizeof *bench->rows);
    if (bench->dev && bench->rows && take_defaults(bench) && open_data(bench) && keep_rows(bench)) {
        struct table_desc desc = {
            .output = &output,
            .format = bench->common.format,
            .columns = columns,
            .column_count = COLUMN_COUNT,
            .schema = "gpurt.bench.train/1",
            .verb = "bench train",
            .argc = argc,
            .argv = argv,
            .head = head(bench),
        };
        bench_progress_plan(&bench->progress,
                            bench->batches.count * bench->workers.count * bits(bench->precisions) *
                                bits(bench->pins),
                            bench->seconds > 0 ? bench->seconds : TRAIN_LEAST_SECONDS);
        bench_counter_open(&bench->counter, grt_dev_info(bench->dev));
        if (table_open(&bench->table, &desc)) {
            code = finish(bench, run_rows(bench));
            code = bench_progress_end(&bench->progress, &bench->table, code);
        }
        table_close(&bench->table);
        bench_counter_close(&bench->counter);
    } else {
        code = command_exit_of(grt_last_status());
    }
    talk_clear();
    free(bench->rows);
    grt_loader_destroy(&bench->kept);
    grt_task_close(&bench->task);
    bench_source_end(&bench->source);
    code = watch_close(&bench->common, &bench->dev, bench_peaks, code);
    bool keep = code == COMMAND_OK || code == COMMAND_INTERNAL || code == COMMAND_NO_MEMORY ||
                code == COMMAND_RESUMABLE;
    return output_end(&output, keep, code);
}

int bench_train(int argc, char **argv) {
    static struct train_bench bench;  // its config is too large for the stack
    char text[4096];
    size_t n = (size_t)snprintf(
        text, sizeof text,
        "Finds the best settings for training on this device: whole steps, with their data.\n"
        "`gpurt bench KIND` measures something else:\n\n");
    n += bench_kinds_text(text + n, sizeof text - n);
    snprintf(
        text + n, sizeof text - n,
        "\nEach row is a median. Fwd, Bwd and Opt are device times, I/O is what the step waits "
        "for\n"
        "data, GPU %% the device's time over that on the wall. A LIST has numbers and ranges:\n"
        "32,64  1-4  1-8+1  32-1024*2.\n");
    struct option_list lists[] = {
        OPTION_LIST("Options of train", own_options),
        OPTION_LIST("Device options", options_device),
        OPTION_LIST("Output options", options_output),
        OPTION_LIST("Where time and memory go", watch_options),
        OPTION_LIST("General options", options_general),
    };
    struct options_desc desc = {.verb = "bench",
                                .words = "[KIND]",
                                .about = text,
                                .lists = lists,
                                .list_count = sizeof lists / sizeof *lists};
    const char **words = calloc((size_t)argc + 1, sizeof *words);
    size_t count = 0;
    if (!words) {
        talk_error("out of memory");
        return COMMAND_INTERNAL;
    }
    bench.cache = TRAIN_CACHE_AUTO;
    int code = options_parse(&desc, argc, argv, &bench.common, words, &count);
    if (code < 0 && count > 0) {
        talk_error("'%s': the kind comes first, as in `gpurt bench %s`", words[0], words[0]);
        code = COMMAND_USAGE;
    }
    if (code < 0) {
        code = take_config(&bench) ? run(&bench, argc, argv) : command_exit_of(grt_last_status());
    }
    ranges_destroy(&bench.batches);
    ranges_destroy(&bench.workers);
    free(words);
    return code;
}
