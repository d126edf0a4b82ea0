// SPDX-License-Identifier: Apache-2.0
// What the rows of `gpurt bench train` mean: what holds the best one back, and the command to give
// next. Every sentence follows from a threshold on measured numbers, listed here or in
// bench_train.h.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bench_train.h"
#include "cli/talk.h"

#define IO_BOUND 0.2       // share of a step that waits for data
#define UNDER_USED 0.7     // device busy for less
#define COMPUTE_BOUND 0.9  // device busy for more
#define STILL_GROWS 1.1    // throughput of the largest batch over that of the one before
#define MUCH_FASTER 1.1    // f16 over f32

static void say(struct train_advice *advice, const char *format, ...) GRT_PRINTF(2, 3);
static void say(struct train_advice *advice, const char *format, ...) {
    va_list args;
    if (advice->count == TRAIN_MOST_ADVICE) {
        return;
    }
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

// " --name value" where there is a value, as a shell reads it: in quotes unless all of it is plain,
// and a quote inside leaves them for itself.
static void add_option(char *text, size_t size, const char *name, const char *value) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./:,=+@%";
    if (!value || !*value) {
        return;
    }
    bool quoted = value[strspn(value, plain)] != '\0';
    add(text, size, " --%s %s", name, quoted ? "'" : "");
    for (const char *c = value; *c; c++) {
        add(text, size, *c == '\'' ? "'\\''" : "%c", *c);
    }
    add(text, size, "%s", quoted ? "'" : "");
}

static const char *number_text(char text[32], const char *format, double value) {
    if (value > 0) {
        snprintf(text, 32, format, value);
    } else {
        text[0] = '\0';
    }
    return text;
}

// The device as it was asked for on the command line, and how much of its memory.
static void add_device(const struct train_bench *bench, char *text, size_t size) {
    const struct options *o = &bench->common;
    char number[32] = "";
    if (o->mem_limit > 0) {
        snprintf(number, sizeof number, "%llu%s",
                 (unsigned long long)o->mem_limit / (o->mem_limit % 1000000 ? 1 : 1000000),
                 o->mem_limit % 1000000 ? "B" : "MB");
    }
    add_option(text, size, "backend", strcmp(o->backend, "auto") != 0 ? o->backend : NULL);
    add_option(text, size, "device", o->device);
    if (o->require_gpu) {
        add(text, size, " --require-gpu");
    }
    add_option(text, size, "mem-limit", number);
    add_option(text, size, "mem-fraction", number_text(number, "%g", bench->given.mem_fraction));
    bool split = o->max_submit_ms != OPTIONS_SUBMIT_MS;
    add_option(text, size, "max-submit-ms",
               number_text(number, "%g", split ? o->max_submit_ms : 0));
}

// "f32,bf16" for bits of a list of names.
static void add_bits(char *text, size_t size, const char *name, const char *const *names,
                     uint32_t count, uint32_t bits) {
    char value[32] = "";
    for (uint32_t i = 0; i < count; i++) {
        if (bits >> i & 1) {
            add(value, sizeof value, "%s%s", value[0] ? "," : "", names[i]);
        }
    }
    add_option(text, size, name, value);
}

// What the next command says anew; what is empty, NULL or 0 stays as it was given.
struct next {
    char batches[32], workers[32];
    uint32_t precisions, pins;  // bits, as of struct train_bench
    const char *cache, *model, *apply;
};

static uint32_t bit_of(enum grt_dtype precision) {
    return precision == GRT_F16 ? 2 : precision == GRT_BF16 ? 4 : 1;
}

// Every option that was given and every one of `next`, each once.
static void next_command(const struct train_bench *bench, struct train_advice *advice,
                         const struct next *next) {
    if (advice->next[0]) {
        return;  // the first finding is the most pressing
    }
#define X(name, word) word,
    static const char *const precisions[] = {TRAIN_PRECISIONS(X)};
#undef X
    static const char *const pins[] = {"on", "off"};
    char *text = advice->next;
    size_t size = sizeof advice->next;
    const struct bench_source *source = &bench->source;
    const struct train_given *given = &bench->given;
    char workers[512] = "", number[32];
    for (size_t i = 0; given->workers && i < bench->workers.count; i++) {
        add(workers, sizeof workers, "%s%llu", i ? "," : "",
            (unsigned long long)bench->workers.values[i]);
    }
    snprintf(text, size, "gpurt bench");
    add_option(text, size, "config", bench->config_path);
    add_device(bench, text, size);
    add_option(text, size, "data", source->synthetic ? NULL : source->path);
    add_option(text, size, "inputs", source->inputs);
    add_option(text, size, "targets", source->targets);
    if (next->model) {
        add_option(text, size, "model", next->model);
    } else if (given->model) {
        add(text, size, " --model depth=%u,hidden=%u", bench->model.depth, bench->model.hidden);
    }
    const char *cache = bench->cache != TRAIN_CACHE_AUTO ? grt_cache_text(bench->cache) : NULL;
    add_option(text, size, "cache", next->cache ? next->cache : cache);
    add_option(text, size, "batch-sizes", next->batches);
    add_option(text, size, "num-workers", next->workers[0] ? next->workers : workers);
    add_bits(text, size, "precision", precisions, 3,
             next->precisions ? next->precisions : given->precisions);
    add_bits(text, size, "pin-memory", pins, 2, next->pins ? next->pins : given->pins);
    add_option(text, size, "steps", number_text(number, "%.0f", (double)given->steps));
    add_option(text, size, "time", number_text(number, "%g", given->seconds));
    add_option(text, size, "apply", next->apply ? next->apply : bench->apply);
}

// One batch size, and one number of workers.
static struct next next_at(uint32_t batch, uint32_t workers) {
    struct next next = {0};
    snprintf(next.batches, sizeof next.batches, "%u", batch);
    snprintf(next.workers, sizeof next.workers, "%u", workers);
    return next;
}

// The row like `like` but for what differs, or NULL.
static const struct train_row *find(const struct train_bench *bench, const struct train_row *like,
                                    uint32_t batch, uint32_t workers, enum grt_dtype precision) {
    for (size_t i = 0; i < bench->count; i++) {
        const struct train_row *row = &bench->rows[i];
        if (row->status == TRAIN_OK && row->pin == like->pin && row->batch == batch &&
            row->workers == workers && row->precision == precision) {
            return row;
        }
    }
    return NULL;
}

static bool waits_for_data(const struct train_row *row) {
    return row->stall >= IO_BOUND;
}

static void advise_data(const struct train_bench *bench, const struct train_row *row,
                        struct train_advice *advice) {
    // On the device there is nothing to wait for.
    if (!waits_for_data(row) || row->cache == GRT_CACHE_DEVICE) {
        return;
    }
    uint32_t most = row->workers;
    const struct train_row *more = NULL;
    for (size_t i = 0; i < bench->workers.count; i++) {
        uint32_t workers = (uint32_t)bench->workers.values[i];
        most = workers > most ? workers : most;
        if (workers > row->workers && !more) {
            more = find(bench, row, row->batch, workers, row->precision);
        }
    }
    char size[TABLE_TEXT_SIZE];
    table_bytes_text(
        bench->task.info.rows * (bench->task.info.x_width + bench->task.info.y_width) * 4, size);
    double share = 100 * row->stall;
    // More workers were measured and the row is still the better one.
    if (more && row->cache == GRT_CACHE_NONE) {
        say(advice,
            "Data loading is the bottleneck: the device waits for it %.0f%% of a step. More "
            "workers "
            "do not help "
            "(%u: %.2f times the throughput); keep the data in memory (cache: ram, %.20s, or "
            "cache: "
            "device).",
            share, more->workers, more->rate / row->rate, size);
        struct next next = next_at(row->batch, row->workers);
        next.precisions = bit_of(row->precision);
        next.cache = "ram";
        next_command(bench, advice, &next);
        return;
    }
    say(advice,
        "Data loading is the bottleneck: the device waits for it %.0f%% of a step. Use more "
        "workers, keep the data %s%.20s%s.",
        share,
        row->cache == GRT_CACHE_RAM ? "on the device (cache: device, " : "in memory (cache: ram, ",
        size, row->cache == GRT_CACHE_RAM ? ")" : ", or cache: device), or a faster disk");
    struct next next = {.precisions = bit_of(row->precision)};
    snprintf(next.batches, sizeof next.batches, "%u", row->batch);
    snprintf(next.workers, sizeof next.workers, "%u,%u", most > 0 ? most : 1,
             most > 0 ? 2 * most : 2);
    next_command(bench, advice, &next);
}

// Throughput from the second largest to the largest batch that was good, all else as in `row`.
static double growth(const struct train_bench *bench, const struct train_row *row,
                     const struct train_row **last) {
    const struct train_row *before = NULL;
    *last = NULL;
    for (size_t i = 0; i < bench->count; i++) {
        const struct train_row *other = &bench->rows[i];
        if (other->status != TRAIN_OK || other->workers != row->workers ||
            other->precision != row->precision || other->pin != row->pin) {
            continue;
        }
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
        if (row->status == TRAIN_OOM && (least == 0 || row->batch < least)) {
            least = row->batch;
        }
    }
    return least;
}

static void advise_batch(const struct train_bench *bench, const struct train_row *row,
                         struct train_advice *advice) {
    const struct train_row *last;
    double ratio = growth(bench, row, &last);
    uint32_t oom = smallest_oom(bench);
    // One batch size says nothing of larger ones; of several, the largest two say whether they
    // help.
    bool untried = last == row && ratio <= 0 && oom == 0;
    bool helps = last && oom == 0 && (untried || ratio >= STILL_GROWS);
    bool room = last && (bench->source.synthetic || 4ull * last->batch <= bench->task.info.rows);
    bool under_used = row->busy < UNDER_USED && !waits_for_data(row);
    if (under_used) {
        say(advice, "The device is under-used: busy for %.0f%% of a step. %s.", 100 * row->busy,
            helps ? "A larger batch gives it more to do at once"
            : oom ? "A larger batch does not fit; a larger model gives it more to do at once"
            : row->cache == GRT_CACHE_DEVICE
                ? "Larger batches gain little; a larger model gives it more to do at once"
                : "Larger batches gain little: a larger model, or cache: device, whose steps go "
                  "many to a submit, gives it more to do at once");
    }
    if (helps && !untried) {
        say(advice,
            "Throughput still grows at the largest batch, %u: %.2f times that of the one before.",
            last->batch, ratio);
    }
    if (helps && room && (under_used || !untried)) {
        // f32 is what is measured anyway.
        struct next next = {.precisions = row->precision == GRT_F32 ? 0 : bit_of(row->precision)};
        snprintf(next.batches, sizeof next.batches, "%u-%u*2", last->batch, last->batch * 4);
        next_command(bench, advice, &next);
    }
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
    if (row->busy < COMPUTE_BOUND || row->precision != GRT_F32) {
        return;
    }
    bool software = grt_dev_info(bench->dev)->caps.software != 0;
    say(advice,
        software
            ? "Compute-bound: the device is busy for %.0f%% of a step. It is a CPU: a GPU, or a "
              "smaller model, is what helps."
            : "Compute-bound: the device is busy for %.0f%% of a step. Mixed precision may help.",
        100 * row->busy);
    if (!software) {
        struct next next = next_at(row->batch, row->workers);
        next.precisions = bit_of(GRT_F32) | bit_of(GRT_F16);
        next_command(bench, advice, &next);
    }
}

static void advise_memory(const struct train_bench *bench, const struct train_summary *s,
                          struct train_advice *advice) {
    uint64_t memory = train_memory(bench);
    uint32_t oom = smallest_oom(bench);
    if (oom > 0) {
        say(advice,
            "Memory-bound: batches from %u on do not fit. A larger one can be made of several with "
            "accumulate (gradient_accumulation_steps), to the same result%s.",
            oom, bench->precisions == 1 ? "; f16 halves activations" : "");
    } else if (s->fastest && memory > 0 &&
               (double)s->fastest->memory > TRAIN_SAFE_MEMORY * (double)memory) {
        say(advice, "Memory-bound: the fastest configuration takes %.0f%% of the memory.",
            100 * (double)s->fastest->memory / (double)memory);
    }
}

void train_advise(const struct train_bench *bench, const struct train_summary *s,
                  struct train_advice *advice) {
    *advice = (struct train_advice){.count = 0};
    const struct train_row *row = s->recommended ? s->recommended : s->fastest;
    if (!row && talk_stopped()) {
        say(advice, "Interrupted before the first row was measured.");
        next_command(bench, advice, &(struct next){.apply = bench->apply});
        return;
    }
    if (!row) {
        say(advice, "No configuration ran. Smaller batches or a smaller model need less memory.");
        next_command(bench, advice, &(struct next){.batches = "1-64*4", .model = "small"});
        return;
    }
    advise_data(bench, row, advice);
    advise_memory(bench, s, advice);
    advise_batch(bench, row, advice);
    advise_compute(bench, row, advice);
    if (!s->recommended) {
        say(advice, "Nothing is recommended: every row takes over %.0f%% of the memory.",
            100 * TRAIN_SAFE_MEMORY);
    } else if (row->spread >= TRAIN_STABLE) {
        say(advice,
            "The numbers are unsteady (spread %.0f%%): measure again on an idle machine, or with "
            "more --steps.",
            100 * row->spread);
    }
    const struct train_row *last;
    if (advice->count == 0) {
        say(advice,
            "Nothing holds it back: the device is busy for %.0f%% of a step, data wait for it, "
            "and larger batches %s.",
            100 * row->busy, growth(bench, row, &last) > 0 ? "gain little" : "were not tried");
    }
    if (bench->apply && s->recommended) {
        snprintf(advice->next, sizeof advice->next, "gpurt train supervised");
        add_option(advice->next, sizeof advice->next, "config", bench->apply);
        add_device(bench, advice->next, sizeof advice->next);
        add_option(advice->next, sizeof advice->next, "data",
                   bench->source.synthetic ? "FILE" : bench->source.path);
    }
    struct next next = next_at(row->batch, row->workers);
    next.precisions = bit_of(row->precision);
    next.pins = row->pin ? 0 : 2;
    next.apply = "best.yaml";
    next_command(bench, advice, &next);
}
