// SPDX-License-Identifier: Apache-2.0
// What the rows of `gpurt bench train` mean: which configuration to take, what holds it back, and the
// command to give next. Every sentence follows from a threshold on measured numbers, listed here.
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "bench_train.h"
#include "talk.h"

#define NEAR_BEST 0.95     // recommended: at least this share of the highest throughput
#define SAFE_MEMORY 0.8    // and at most this share of the memory
#define STABLE 0.5         // and a spread below this,
#define STABLE_COSTS 0.8   // unless what is stable has less than this share of the throughput
#define IO_BOUND 0.2       // share of a step that waits for data
#define UNDER_USED 0.7     // device busy for less
#define COMPUTE_BOUND 0.9  // device busy for more
#define STILL_GROWS 1.1    // throughput of the largest batch over that of the one before
#define MUCH_FASTER 1.1    // f16 over f32
#define BASE_BATCH 256     // learning rates of configs are for this

const char *train_precision_text(enum grt_dtype precision) {
    return grt_dtype_text(precision);
}

uint64_t train_memory(const struct train_bench *bench) {
    uint64_t memory = grt_dev_info(bench->dev)->caps.memory;
    uint64_t limit = bench->common.mem_limit;
    return limit > 0 && (limit < memory || memory == 0) ? limit : memory;
}

// ---- summary ----

static double efficiency(const struct train_row *row) {
    return row->rate / ((double)row->memory / 1e9 + 1e-9);
}

static bool fits(const struct train_bench *bench, const struct train_row *row) {
    uint64_t memory = train_memory(bench);
    return row->status == TRAIN_OK &&
           (memory == 0 || (double)row->memory <= SAFE_MEMORY * (double)memory);
}

// Of two that are fast enough: less memory, then fewer workers.
static bool better(const struct train_row *a, const struct train_row *b) {
    if (a->memory != b->memory)
        return a->memory < b->memory;
    return a->workers != b->workers ? a->workers < b->workers : a->rate > b->rate;
}

struct train_summary train_summarise(const struct train_bench *bench) {
    struct train_summary s = {0};
    double best = 0, best_stable = 0;
    for (size_t i = 0; i < bench->count; i++) {
        const struct train_row *row = &bench->rows[i];
        if (row->status != TRAIN_OK)
            continue;
        s.fastest = !s.fastest || row->rate > s.fastest->rate ? row : s.fastest;
        s.efficient = !s.efficient || efficiency(row) > efficiency(s.efficient) ? row : s.efficient;
        bool stable = row->spread < STABLE;
        best = fits(bench, row) && row->rate > best ? row->rate : best;
        best_stable =
            fits(bench, row) && stable && row->rate > best_stable ? row->rate : best_stable;
    }
    // On a busy machine every row is unsteady; then the numbers are the best there are.
    bool only_stable = best_stable >= STABLE_COSTS * best;
    double least = NEAR_BEST * (only_stable ? best_stable : best);
    for (size_t i = 0; i < bench->count; i++) {
        const struct train_row *row = &bench->rows[i];
        if (fits(bench, row) && row->rate >= least && (!only_stable || row->spread < STABLE) &&
            (!s.recommended || better(row, s.recommended)))
            s.recommended = row;
    }
    return s;
}

// ---- advice ----

#define MOST_ADVICE 8

struct advice {
    char texts[MOST_ADVICE][512];
    size_t count;
    char next[512];
};

static void say(struct advice *advice, const char *format, ...) GRT_PRINTF(2, 3);
static void say(struct advice *advice, const char *format, ...) {
    va_list args;
    if (advice->count == MOST_ADVICE)
        return;
    va_start(args, format);
    vsnprintf(advice->texts[advice->count++], sizeof advice->texts[0], format, args);
    va_end(args);
}

// The command so far, with the data named.
static int command_text(const struct train_bench *bench, char *text, size_t size) {
    bool named = strcmp(bench->common.backend, "auto") != 0;
    return snprintf(text, size, "gpurt bench%s%s%s%.200s", named ? " --backend " : "",
                    named ? bench->common.backend : "", bench->source.synthetic ? "" : " --data ",
                    bench->source.synthetic ? "" : bench->source.path);
}

static void next_command(const struct train_bench *bench, struct advice *advice, const char *format,
                         ...) GRT_PRINTF(3, 4);
static void next_command(const struct train_bench *bench, struct advice *advice, const char *format,
                         ...) {
    if (advice->next[0])
        return;  // the first finding is the most pressing
    int n = command_text(bench, advice->next, sizeof advice->next);
    va_list args;
    va_start(args, format);
    vsnprintf(advice->next + n, sizeof advice->next - (size_t)n, format, args);
    va_end(args);
}

// The row like `like` but for what differs, or NULL.
static const struct train_row *find(const struct train_bench *bench, const struct train_row *like,
                                    uint32_t batch, uint32_t workers, enum grt_dtype precision) {
    for (size_t i = 0; i < bench->count; i++) {
        const struct train_row *row = &bench->rows[i];
        if (row->status == TRAIN_OK && row->pin == like->pin && row->batch == batch &&
            row->workers == workers && row->precision == precision)
            return row;
    }
    return NULL;
}

static bool waits_for_data(const struct train_row *row) {
    return row->stall >= IO_BOUND;
}

static void advise_data(const struct train_bench *bench, const struct train_row *row,
                        struct advice *advice) {
    if (!waits_for_data(row))
        return;
    uint32_t most = row->workers;
    const struct train_row *more = NULL;
    for (size_t i = 0; i < bench->workers.count; i++) {
        uint32_t workers = (uint32_t)bench->workers.values[i];
        most = workers > most ? workers : most;
        if (workers > row->workers && !more)
            more = find(bench, row, row->batch, workers, row->precision);
    }
    char size[TABLE_TEXT_SIZE];
    table_bytes_text(
        bench->task.info.rows * (bench->task.info.x_width + bench->task.info.y_width) * 4, size);
    double share = 100 * row->stall;
    // More workers were measured and the row is still the better one.
    if (more && bench->cache == GRT_CACHE_NONE) {
        say(advice,
            "Data loading is the bottleneck: the device waits for it %.0f%% of a step. More "
            "workers "
            "do not help "
            "(%u: %.2f times the throughput); keep the data in memory (cache: ram, %.20s, or "
            "cache: "
            "device).",
            share, more->workers, more->rate / row->rate, size);
        next_command(bench, advice, " --batch-sizes %u --num-workers %u --cache ram", row->batch,
                     row->workers);
        return;
    }
    say(advice,
        "Data loading is the bottleneck: the device waits for it %.0f%% of a step. Use more "
        "workers, "
        "keep the data in memory (cache: ram, %.20s, or cache: device), or a faster disk.",
        share, size);
    next_command(bench, advice, " --batch-sizes %u --num-workers %u,%u", row->batch,
                 most > 0 ? most : 1, most > 0 ? 2 * most : 2);
}

// Throughput from the second largest to the largest batch that was good, all else as in `row`.
static double growth(const struct train_bench *bench, const struct train_row *row,
                     const struct train_row **last) {
    const struct train_row *before = NULL;
    *last = NULL;
    for (size_t i = 0; i < bench->count; i++) {
        const struct train_row *other = &bench->rows[i];
        if (other->status != TRAIN_OK || other->workers != row->workers ||
            other->precision != row->precision || other->pin != row->pin)
            continue;
        if (!*last || other->batch > (*last)->batch) {
            before = *last;
            *last = other;
        }
    }
    return before ? (*last)->rate / before->rate : 0;
}

static uint32_t smallest_oom(const struct train_bench *bench) {
    uint32_t least = 0;
    for (size_t i = 0; i < bench->count; i++) {
        const struct train_row *row = &bench->rows[i];
        if (row->status == TRAIN_OOM && (least == 0 || row->batch < least))
            least = row->batch;
    }
    return least;
}

static void advise_batch(const struct train_bench *bench, const struct train_row *row,
                         struct advice *advice) {
    const struct train_row *last;
    double ratio = growth(bench, row, &last);
    uint32_t oom = smallest_oom(bench);
    if (row->busy < UNDER_USED && !waits_for_data(row))
        say(advice,
            "The device is under-used: busy for %.0f%% of a step. A larger batch gives it more to "
            "do "
            "at once.",
            100 * row->busy);
    if (!last || ratio < STILL_GROWS || oom > 0)
        return;
    say(advice,
        "Throughput still grows at the largest batch, %u: %.2f times that of the one before.",
        last->batch, ratio);
    if ((uint64_t)last->batch * 4 <= bench->task.info.rows || bench->source.synthetic)
        next_command(bench, advice, " --batch-sizes %u-%u*2", last->batch, last->batch * 4);
}

static void advise_compute(const struct train_bench *bench, const struct train_row *row,
                           struct advice *advice) {
    const struct train_row *half = find(bench, row, row->batch, row->workers, GRT_F16);
    const struct train_row *full = find(bench, row, row->batch, row->workers, GRT_F32);
    if (half && full) {
        double ratio = half->rate / full->rate;
        say(advice,
            ratio >= MUCH_FASTER ? "Mixed precision pays: f16 is %.2f times as fast as f32."
                                 : "Mixed precision does not pay here: f16 has %.2f times "
                                   "the throughput of f32.",
            ratio);
        return;
    }
    if (row->busy < COMPUTE_BOUND || row->precision != GRT_F32)
        return;
    bool software = grt_dev_info(bench->dev)->caps.software != 0;
    say(advice,
        software
            ? "Compute-bound: the device is busy for %.0f%% of a step. It is a CPU: a GPU, or a "
              "smaller model, is what helps."
            : "Compute-bound: the device is busy for %.0f%% of a step. Mixed precision may help.",
        100 * row->busy);
    if (!software)
        next_command(bench, advice, " --batch-sizes %u --num-workers %u --precision f32,f16",
                     row->batch, row->workers);
}

static void advise_memory(const struct train_bench *bench, const struct train_summary *s,
                          struct advice *advice) {
    uint64_t memory = train_memory(bench);
    uint32_t oom = smallest_oom(bench);
    if (oom > 0)
        say(advice,
            "Memory-bound: batches from %u on do not fit. A larger one can be made of several with "
            "accumulate (gradient_accumulation_steps), to the same result%s.",
            oom, bench->precisions == 1 ? "; f16 halves activations" : "");
    else if (s->fastest && memory > 0 && (double)s->fastest->memory > SAFE_MEMORY * (double)memory)
        say(advice, "Memory-bound: the fastest configuration takes %.0f%% of the memory.",
            100 * (double)s->fastest->memory / (double)memory);
}

static void advise(const struct train_bench *bench, const struct train_summary *s,
                   struct advice *advice) {
    const struct train_row *row = s->recommended ? s->recommended : s->fastest;
    if (!row && talk_stopped()) {
        say(advice, "Interrupted before the first row was measured.");
        next_command(bench, advice, "%s", "");
        return;
    }
    if (!row) {
        say(advice, "No configuration ran. Smaller batches or a smaller model need less memory.");
        next_command(bench, advice, " --batch-sizes 1-64*4 --model small");
        return;
    }
    advise_data(bench, row, advice);
    advise_memory(bench, s, advice);
    advise_batch(bench, row, advice);
    advise_compute(bench, row, advice);
    if (!s->recommended)
        say(advice, "Nothing is recommended: every row takes over %.0f%% of the memory.",
            100 * SAFE_MEMORY);
    else if (row->spread >= STABLE)
        say(advice,
            "The numbers are unsteady (spread %.0f%%): measure again on an idle machine, or with "
            "more --steps.",
            100 * row->spread);
    if (advice->count == 0)
        say(advice,
            "Nothing holds it back: the device is busy for %.0f%% of a step, data wait for "
            "it, and larger batches gain little.",
            100 * row->busy);
    if (bench->apply)
        snprintf(advice->next, sizeof advice->next,
                 "gpurt train supervised --config %.200s --data %.200s", bench->apply,
                 bench->source.synthetic ? "FILE" : bench->source.path);
    else
        next_command(bench, advice,
                     " --batch-sizes %u --num-workers %u --precision %s --apply best.yaml",
                     row->batch, row->workers, train_precision_text(row->precision));
}

// ---- printing ----

static void print_choice(FILE *file, const char *title, const struct train_row *row,
                         const char *more) {
    fprintf(file, "%s\n", title);
    if (!row) {
        fputs("  none\n", file);
        return;
    }
    fprintf(file, "  batch size       %u\n  workers          %u\n  precision        %s\n",
            row->batch, row->workers, train_precision_text(row->precision));
    fprintf(file, "  pin memory       %s\n", row->pin ? "on" : "off");
    fprintf(file, "  throughput       %.0f samples/s\n", row->rate);
    char size[TABLE_TEXT_SIZE];
    table_bytes_text(row->memory, size);
    fprintf(file, "  device memory    %.20s%s\n", size, more);
}

static void print_text(const struct train_bench *bench, const struct train_summary *s,
                       const struct advice *advice) {
    FILE *file = bench->table.desc.output->file;
    char more[64] = "";
    uint64_t memory = train_memory(bench);
    bool md = bench->common.format == TABLE_MD;
    const char *fence = md ? "```\n" : "";
    fprintf(file, "\n%s", fence);
    print_choice(file, "Highest throughput", s->fastest, "");
    if (s->efficient)
        snprintf(more, sizeof more, ", %.0f samples/s per GB", efficiency(s->efficient));
    print_choice(file, "Best efficiency", s->efficient, more);
    if (s->recommended && memory > 0)
        snprintf(more, sizeof more, " (%.1f%%)",
                 100 * (double)s->recommended->memory / (double)memory);
    print_choice(file, "Recommended for training", s->recommended, memory > 0 ? more : "");
    fprintf(file, "%s\n", fence);
    for (size_t i = 0; i < advice->count; i++)
        fprintf(file, "%s%s\n", md ? "- " : "* ", advice->texts[i]);
    fprintf(file, "\nNext: %s%s%s\n", md ? "`" : "", advice->next, md ? "`" : "");
    if (bench->source.synthetic)
        fputs("Data: synthetic; with --data FILE the numbers are those of your own.\n", file);
}

static json_t *choice_json(const struct train_row *row) {
    return row ? json_pack("{s:i, s:i, s:s, s:b, s:f, s:I, s:f}", "batch", (int)row->batch,
                           "workers", (int)row->workers, "precision",
                           train_precision_text(row->precision), "pin_memory", row->pin,
                           "samples_per_s", row->rate, "memory_bytes", (json_int_t)row->memory,
                           "samples_per_s_per_gb", efficiency(row))
               : json_null();
}

bool train_report(struct train_bench *bench, const struct train_summary *s) {
    struct advice advice = {.count = 0};
    advise(bench, s, &advice);
    json_t *texts = json_array();
    for (size_t i = 0; i < advice.count; i++)
        json_array_append_new(texts, json_string(advice.texts[i]));
    json_t *json =
        json_pack("{s:o, s:o, s:o, s:o, s:s, s:b, s:b}", "highest_throughput",
                  choice_json(s->fastest), "best_efficiency", choice_json(s->efficient),
                  "recommended", choice_json(s->recommended), "advice", texts, "next", advice.next,
                  "synthetic", bench->source.synthetic, "interrupted", talk_stopped());
    enum table_format format = bench->common.format;
    if (format == TABLE_PLAIN || format == TABLE_MD)
        print_text(bench, s, &advice);
    return table_note(&bench->table, "summary", json);
}

// ---- the config ----

static bool set(struct grt_config *config, enum grt_config_key key, const char *format, ...)
    GRT_PRINTF(3, 4);
static bool set(struct grt_config *config, enum grt_config_key key, const char *format, ...) {
    char text[GRT_CONFIG_TEXT_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return grt_config_set(config, key, text);
}

// The batch that the config asks for, in pieces that were found good; the rate follows the whole.
bool train_apply(const struct train_bench *bench, const struct train_row *row) {
    static struct grt_config config;  // 40 KB and more: not for the stack
    config = bench->config;
    const char *path = bench->source.synthetic ? NULL : bench->source.path;
    bool told = grt_config_given(&bench->config, GRT_CONFIG_BATCH_SIZE);
    uint64_t wanted = told ? bench->config.batch_size * bench->config.accumulate : row->batch;
    uint64_t pieces = wanted > row->batch ? (wanted + row->batch - 1) / row->batch : 1;
    uint64_t base = told ? wanted : bench->config.base_batch_size;
    double rate = grt_lr_for_batch(bench->config.learning_rate, row->batch * pieces,
                                   base > 0 ? base : BASE_BATCH);
    char head[1024];
    snprintf(head, sizeof head,
             "Settings that `gpurt bench` recommends: %.0f samples/s on %.100s, %s.\n"
             "The learning rate is %g for %llu samples, times the root of what a step has more.%s",
             row->rate, grt_dev_info(bench->dev)->name, grt_dev_info(bench->dev)->selector,
             bench->config.learning_rate, (unsigned long long)base,
             bench->source.synthetic ? "\nMeasured with synthetic data." : "");
    const char *inputs = bench->source.inputs, *targets = bench->source.targets;
    return (!path || set(&config, GRT_CONFIG_DATA, "%s", path)) &&
           set(&config, GRT_CONFIG_BATCH_SIZE, "%u", row->batch) &&
           set(&config, GRT_CONFIG_NUM_WORKERS, "%u", row->workers) &&
           set(&config, GRT_CONFIG_PIN_MEMORY, "%s", row->pin ? "true" : "false") &&
           (bench->cache == GRT_CACHE_NONE ||
            set(&config, GRT_CONFIG_CACHE, "%s", grt_cache_text(bench->cache))) &&
           set(&config, GRT_CONFIG_PRECISION, "%s", train_precision_text(row->precision)) &&
           set(&config, GRT_CONFIG_ACCUMULATE, "%llu", (unsigned long long)pieces) &&
           set(&config, GRT_CONFIG_LEARNING_RATE, "%.6g", rate) &&
           set(&config, GRT_CONFIG_MODEL, "%s", bench->task.config.model) &&
           (!inputs || set(&config, GRT_CONFIG_INPUTS, "%s", inputs)) &&
           (!targets || set(&config, GRT_CONFIG_TARGETS, "%s", targets)) &&
           set(&config, GRT_CONFIG_DEPTH, "%u", bench->model.depth) &&
           set(&config, GRT_CONFIG_HIDDEN, "%u", bench->model.hidden) &&
           grt_config_write(&config, bench->apply, head);
}
