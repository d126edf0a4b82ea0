// SPDX-License-Identifier: Apache-2.0
// What the rows of `gpurt bench train` mean: what holds the best one back, and the command to give next.
// Every sentence follows from a threshold on measured numbers, listed here or in bench_train.h.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bench_train.h"
#include "talk.h"

#define IO_BOUND 0.2       // share of a step that waits for data
#define UNDER_USED 0.7     // device busy for less
#define COMPUTE_BOUND 0.9  // device busy for more
#define STILL_GROWS 1.1    // throughput of the largest batch over that of the one before
#define MUCH_FASTER 1.1    // f16 over f32

static void say(struct train_advice *advice, const char *format, ...) GRT_PRINTF(2, 3);
static void say(struct train_advice *advice, const char *format, ...) {
    va_list args;
    if (advice->count == TRAIN_MOST_ADVICE)
        return;
    va_start(args, format);
    vsnprintf(advice->texts[advice->count++], sizeof advice->texts[0], format, args);
    va_end(args);
}

static void add(char *text, size_t size, const char *format, ...) GRT_PRINTF(3, 4);
static void add(char *text, size_t size, const char *format, ...) {
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, size - used, format, args);
    va_end(args);
}

// " --name value" where there is a value, as a shell reads it: in quotes unless all of it is plain, and
// a quote inside leaves them for itself.
static void add_option(char *text, size_t size, const char *name, const char *value) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./:,=+@%";
    if (!value || !*value)
        return;
    bool quoted = value[strspn(value, plain)] != '\0';
    add(text, size, " --%s %s", name, quoted ? "'" : "");
    for (const char *c = value; *c; c++)
        add(text, size, *c == '\'' ? "'\\''" : "%c", *c);
    add(text, size, "%s", quoted ? "'" : "");
}

// The device as it was asked for on the command line, and how much of its memory.
static void add_device(const struct train_bench *bench, char *text, size_t size) {
    const struct options *o = &bench->common;
    char limit[32] = "";
    if (o->mem_limit > 0)
        snprintf(limit, sizeof limit, "%llu%s",
                 (unsigned long long)o->mem_limit / (o->mem_limit % 1000000 ? 1 : 1000000),
                 o->mem_limit % 1000000 ? "B" : "MB");
    add_option(text, size, "backend", strcmp(o->backend, "auto") != 0 ? o->backend : NULL);
    add_option(text, size, "device", o->device);
    add_option(text, size, "mem-limit", limit);
}

// The command so far, with the device, the data and the model: what was measured and nothing else.
static void command_text(const struct train_bench *bench, char *text, size_t size) {
    const struct bench_source *source = &bench->source;
    snprintf(text, size, "gpurt bench");
    add_option(text, size, "config", bench->config_path);
    add_device(bench, text, size);
    add_option(text, size, "data", source->synthetic ? NULL : source->path);
    add_option(text, size, "inputs", source->inputs);
    add_option(text, size, "targets", source->targets);
    if (bench->model_given)
        add(text, size, " --model depth=%u,hidden=%u", bench->model.depth, bench->model.hidden);
    add_option(text, size, "cache",
               bench->cache != GRT_CACHE_NONE ? grt_cache_text(bench->cache) : NULL);
}

// The types of a row, where they are not everybody's.
static const char *precision_option(const struct train_row *row) {
    return row->precision == GRT_F16    ? " --precision f16"
           : row->precision == GRT_BF16 ? " --precision bf16"
                                        : "";
}

static void next_command(const struct train_bench *bench, struct train_advice *advice,
                         const char *format, ...) GRT_PRINTF(3, 4);
static void next_command(const struct train_bench *bench, struct train_advice *advice,
                         const char *format, ...) {
    if (advice->next[0])
        return;  // the first finding is the most pressing
    command_text(bench, advice->next, sizeof advice->next);
    size_t n = strlen(advice->next);
    va_list args;
    va_start(args, format);
    vsnprintf(advice->next + n, sizeof advice->next - n, format, args);
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
                        struct train_advice *advice) {
    // On the device only the order of the rows is waited for, once an epoch.
    if (!waits_for_data(row) || bench->cache == GRT_CACHE_DEVICE)
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
        next_command(bench, advice, " --batch-sizes %u --num-workers %u%s --cache ram", row->batch,
                     row->workers, precision_option(row));
        return;
    }
    say(advice,
        "Data loading is the bottleneck: the device waits for it %.0f%% of a step. Use more "
        "workers, keep the data %s%.20s%s.",
        share,
        bench->cache == GRT_CACHE_RAM ? "on the device (cache: device, "
                                      : "in memory (cache: ram, ",
        size, bench->cache == GRT_CACHE_RAM ? ")" : ", or cache: device), or a faster disk");
    next_command(bench, advice, " --batch-sizes %u --num-workers %u,%u%s", row->batch,
                 most > 0 ? most : 1, most > 0 ? 2 * most : 2, precision_option(row));
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
                         struct train_advice *advice) {
    const struct train_row *last;
    double ratio = growth(bench, row, &last);
    uint32_t oom = smallest_oom(bench);
    // One batch size says nothing of larger ones; of several, the largest two say whether they help.
    bool untried = last == row && ratio <= 0 && oom == 0;
    bool helps = last && oom == 0 && (untried || ratio >= STILL_GROWS);
    bool room = last && (bench->source.synthetic || 4ull * last->batch <= bench->task.info.rows);
    bool under_used = row->busy < UNDER_USED && !waits_for_data(row);
    if (under_used)
        say(advice, "The device is under-used: busy for %.0f%% of a step. %s.", 100 * row->busy,
            helps ? "A larger batch gives it more to do at once"
            : oom ? "A larger batch does not fit; a larger model gives it more to do at once"
                  : "Larger batches gain little: a larger model, or cache: device, whose steps go "
                    "many to a submit, gives it more to do at once");
    if (helps && !untried)
        say(advice,
            "Throughput still grows at the largest batch, %u: %.2f times that of the one before.",
            last->batch, ratio);
    if (helps && room && (under_used || !untried))
        next_command(bench, advice, " --batch-sizes %u-%u*2%s", last->batch, last->batch * 4,
                     precision_option(row));
}

static void advise_compute(const struct train_bench *bench, const struct train_row *row,
                           struct train_advice *advice) {
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
                          struct train_advice *advice) {
    uint64_t memory = train_memory(bench);
    uint32_t oom = smallest_oom(bench);
    if (oom > 0)
        say(advice,
            "Memory-bound: batches from %u on do not fit. A larger one can be made of several with "
            "accumulate (gradient_accumulation_steps), to the same result%s.",
            oom, bench->precisions == 1 ? "; f16 halves activations" : "");
    else if (s->fastest && memory > 0 &&
             (double)s->fastest->memory > TRAIN_SAFE_MEMORY * (double)memory)
        say(advice, "Memory-bound: the fastest configuration takes %.0f%% of the memory.",
            100 * (double)s->fastest->memory / (double)memory);
}

void train_advise(const struct train_bench *bench, const struct train_summary *s,
                  struct train_advice *advice) {
    *advice = (struct train_advice){.count = 0};
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
            100 * TRAIN_SAFE_MEMORY);
    else if (row->spread >= TRAIN_STABLE)
        say(advice,
            "The numbers are unsteady (spread %.0f%%): measure again on an idle machine, or with "
            "more --steps.",
            100 * row->spread);
    const struct train_row *last;
    if (advice->count == 0)
        say(advice,
            "Nothing holds it back: the device is busy for %.0f%% of a step, data wait for it, "
            "and larger batches %s.",
            100 * row->busy, growth(bench, row, &last) > 0 ? "gain little" : "were not tried");
    if (bench->apply && s->recommended && !talk_stopped()) {
        snprintf(advice->next, sizeof advice->next, "gpurt train supervised");
        add_option(advice->next, sizeof advice->next, "config", bench->apply);
        add_device(bench, advice->next, sizeof advice->next);
        add_option(advice->next, sizeof advice->next, "data",
                   bench->source.synthetic ? "FILE" : bench->source.path);
    }
    next_command(bench, advice,
                 " --batch-sizes %u --num-workers %u --precision %s%s --apply best.yaml",
                 row->batch, row->workers, grt_dtype_text(row->precision),
                 row->pin ? "" : " --pin-memory off");
}
