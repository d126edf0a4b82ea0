// SPDX-License-Identifier: Apache-2.0
// Which configuration of `gpurt bench train` to take, and the training config that asks for it.
#include <stdarg.h>
#include <stdio.h>

#include "bench_train.h"

#define NEAR_BEST 0.95    // recommended: at least this share of the highest throughput,
#define STABLE_COSTS 0.8  // and steady, unless what is steady has less than this share of it
#define BASE_BATCH 256    // learning rates of configs are for this

uint64_t train_memory(const struct train_bench *bench) {
    uint64_t memory = grt_dev_info(bench->dev)->caps.memory;
    uint64_t limit = bench->common.mem_limit;
    return limit > 0 && (limit < memory || memory == 0) ? limit : memory;
}

// ---- summary ----

double train_efficiency(const struct train_row *row) {
    return row->rate / ((double)row->memory / 1e9 + 1e-9);
}

static bool fits(const struct train_bench *bench, const struct train_row *row) {
    uint64_t memory = train_memory(bench);
    return row->status == TRAIN_OK &&
           (memory == 0 || (double)row->memory <= TRAIN_SAFE_MEMORY * (double)memory);
}

// Of two that are fast enough: less memory, then fewer workers.
static bool better(const struct train_row *a, const struct train_row *b) {
    if (a->memory != b->memory) {
        return a->memory < b->memory;
    }
    return a->workers != b->workers ? a->workers < b->workers : a->rate > b->rate;
}

struct train_summary train_summarise(const struct train_bench *bench) {
    struct train_summary s = {0};
    double best = 0, best_stable = 0;
    for (size_t i = 0; i < bench->count; i++) {
        const struct train_row *row = &bench->rows[i];
        if (row->status != TRAIN_OK) {
            continue;
        }
        s.fastest = !s.fastest || row->rate > s.fastest->rate ? row : s.fastest;
        s.efficient = !s.efficient || train_efficiency(row) > train_efficiency(s.efficient)
                          ? row
                          : s.efficient;
        bool stable = row->spread < TRAIN_STABLE;
        best = fits(bench, row) && row->rate > best ? row->rate : best;
        best_stable =
            fits(bench, row) && stable && row->rate > best_stable ? row->rate : best_stable;
    }
    // On a busy machine every row is unsteady; then the numbers are the best there are.
    bool only_stable = best_stable >= STABLE_COSTS * best;
    double least = NEAR_BEST * (only_stable ? best_stable : best);
    for (size_t i = 0; i < bench->count; i++) {
        const struct train_row *row = &bench->rows[i];
        if (fits(bench, row) && row->rate >= least &&
            (!only_stable || row->spread < TRAIN_STABLE) &&
            (!s.recommended || better(row, s.recommended))) {
            s.recommended = row;
        }
    }
    return s;
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
    char hidden[512];
    grt_config_value_text(&bench->task.config, GRT_CONFIG_HIDDEN, hidden, sizeof hidden);
    return (!path || set(&config, GRT_CONFIG_DATA, "%s", path)) &&
           set(&config, GRT_CONFIG_BATCH_SIZE, "%u", row->batch) &&
           set(&config, GRT_CONFIG_NUM_WORKERS, "%u", row->workers) &&
           set(&config, GRT_CONFIG_PIN_MEMORY, "%s", row->pin ? "true" : "false") &&
           (bench->cache == TRAIN_CACHE_AUTO ||
            set(&config, GRT_CONFIG_CACHE, "%s", grt_cache_text(bench->cache))) &&
           set(&config, GRT_CONFIG_PRECISION, "%s", grt_dtype_text(row->precision)) &&
           set(&config, GRT_CONFIG_ACCUMULATE, "%llu", (unsigned long long)pieces) &&
           set(&config, GRT_CONFIG_LEARNING_RATE, "%.6g", rate) &&
           (!inputs || set(&config, GRT_CONFIG_INPUTS, "%s", inputs)) &&
           (!targets || set(&config, GRT_CONFIG_TARGETS, "%s", targets)) &&
           // The network of a bench without data is nobody's.
           (!bench->named || (set(&config, GRT_CONFIG_MODEL, "%s", bench->task.config.model) &&
                              set(&config, GRT_CONFIG_DEPTH, "%u", bench->model.depth) &&
                              set(&config, GRT_CONFIG_HIDDEN, "%s", hidden))) &&
           grt_config_write(&config, bench->apply, head);
}
