// SPDX-License-Identifier: Apache-2.0
// Keys that have an effect only where another key has some value: given anywhere else they would be
// a mistake that nobody notices.
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "config_parts.h"

static const struct {
    enum grt_config_key key, of;
    const char *words[4];  // of `of`; none: any but 0, false and no text
    bool each;             // of several losses, where one of them is such a word
} rows[] = {
    {GRT_CONFIG_LOSS_WEIGHTS, GRT_CONFIG_LOSSES, {NULL}},
    {GRT_CONFIG_HUBER_DELTA, GRT_CONFIG_LOSS, {"huber"}, true},
    {GRT_CONFIG_LABEL_SMOOTHING, GRT_CONFIG_LOSS, {"cross_entropy"}, true},
    {GRT_CONFIG_CLASS_WEIGHTS, GRT_CONFIG_LOSS, {"cross_entropy"}},
    {GRT_CONFIG_TEMPERATURE, GRT_CONFIG_LOSS, {"nt_xent"}},
    {GRT_CONFIG_PROJECTION, GRT_CONFIG_LOSS, {"nt_xent"}},
    {GRT_CONFIG_ACCUMULATE_EXACT, GRT_CONFIG_LOSS, {"nt_xent"}},
    {GRT_CONFIG_KNN_EVERY, GRT_CONFIG_LOSS, {"nt_xent"}},
    {GRT_CONFIG_POOLING, GRT_CONFIG_MODEL, {"points"}},
    {GRT_CONFIG_HEAD_DEPTH, GRT_CONFIG_MODEL, {"points"}},
    {GRT_CONFIG_MOMENTUM, GRT_CONFIG_OPTIMIZER, {"sgd", "lars"}},
    {GRT_CONFIG_NESTEROV, GRT_CONFIG_OPTIMIZER, {"sgd", "lars"}},
    {GRT_CONFIG_TRUST_COEFFICIENT, GRT_CONFIG_OPTIMIZER, {"lars"}},
    {GRT_CONFIG_DIV_FACTOR, GRT_CONFIG_SCHEDULE, {"one_cycle"}},
    {GRT_CONFIG_FINAL_DIV_FACTOR, GRT_CONFIG_SCHEDULE, {"one_cycle"}},
    {GRT_CONFIG_BETAS, GRT_CONFIG_OPTIMIZER, {"adamw", "adam"}},
    {GRT_CONFIG_EPS, GRT_CONFIG_OPTIMIZER, {"adamw", "adam"}},
    {GRT_CONFIG_DECAY_OF, GRT_CONFIG_WEIGHT_DECAY, {NULL}},
    {GRT_CONFIG_BASE_BATCH_SIZE, GRT_CONFIG_LR_RULE, {"sqrt"}},
    {GRT_CONFIG_MIN_LEARNING_RATE, GRT_CONFIG_SCHEDULE, {"cosine", "linear", "plateau"}},
    {GRT_CONFIG_PLATEAU_FACTOR, GRT_CONFIG_SCHEDULE, {"plateau"}},
    {GRT_CONFIG_PLATEAU_PATIENCE, GRT_CONFIG_SCHEDULE, {"plateau"}},
    {GRT_CONFIG_PLATEAU_THRESHOLD, GRT_CONFIG_SCHEDULE, {"plateau"}},
    {GRT_CONFIG_PLATEAU_COOLDOWN, GRT_CONFIG_SCHEDULE, {"plateau"}},
    {GRT_CONFIG_LR_STEP, GRT_CONFIG_SCHEDULE, {"step"}},
    {GRT_CONFIG_GAMMA, GRT_CONFIG_SCHEDULE, {"step"}},
    {GRT_CONFIG_LOSS_SCALE, GRT_CONFIG_PRECISION, {"f16"}},
    {GRT_CONFIG_GROWTH_INTERVAL, GRT_CONFIG_PRECISION, {"f16"}},
    {GRT_CONFIG_MIN_DELTA, GRT_CONFIG_PATIENCE, {NULL}},
    {GRT_CONFIG_VALIDATION_TARGETS, GRT_CONFIG_VALIDATION_DATA, {NULL}},
    {GRT_CONFIG_AUTOTUNE_SECONDS, GRT_CONFIG_AUTOTUNE, {NULL}},
    {GRT_CONFIG_HISTOGRAMS, GRT_CONFIG_TENSORBOARD, {NULL}},
};

void grt_config_where(const struct grt_config *config, enum grt_config_key key,
                      char where[GRT_CONFIG_WHERE]) {
    where[0] = '\0';
    if (config && (unsigned)key < GRT_CONFIG_KEY_COUNT && config->places[key].file) {
        const struct grt_config_place *place = &config->places[key];
        snprintf(where, GRT_CONFIG_WHERE, "%s:%u:%u: ", config->path, place->line, place->column);
    }
}

// Whether a value switches what it is of off. AdamW's weight decay is on unless it is given as 0.
static bool is_off(const struct grt_config *c, enum grt_config_key key, char *text, size_t size) {
    grt_config_value_text(c, key, text, size);
    if (key == GRT_CONFIG_WEIGHT_DECAY && !grt_config_given(c, key) &&
        strcmp(c->optimizer, "adamw") == 0) {
        return false;
    }
    return strcmp(text, "0") == 0 || strcmp(text, "false") == 0 || strcmp(text, "\"\"") == 0 ||
           strcmp(text, "[]") == 0;
}

// Whether one of several losses is that, NAME or NAME(N).
static bool among_losses(const struct grt_config *c, const char *word) {
    bool found = false;
    for (uint32_t i = 0; i < c->losses.count; i++) {
        size_t length = strcspn(c->losses.values[i], "(");
        found =
            found || (length == strlen(word) && strncmp(c->losses.values[i], word, length) == 0);
    }
    return found;
}

bool grt_config_effective(const struct grt_config *config) {
    if (!config) {
        return grt_fail(GRT_INVALID, "grt_config_effective: no config");
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char own[GRT_CONFIG_TEXT_SIZE], other[GRT_CONFIG_TEXT_SIZE];
        const char *const *words = rows[i].words;
        if (!grt_config_given(config, rows[i].key) ||
            is_off(config, rows[i].key, own, sizeof own)) {
            continue;
        }
        bool several = rows[i].of == GRT_CONFIG_LOSS && config->losses.count > 0;
        enum grt_config_key key = several ? GRT_CONFIG_LOSSES : rows[i].of;
        bool off = is_off(config, key, other, sizeof other);
        bool effective =
            words[0] ? several && rows[i].each && among_losses(config, words[0]) : !off;
        for (size_t w = 0; words[w] && !several; w++) {
            effective = effective || strcmp(words[w], other) == 0;
        }
        if (!effective) {
            char where[GRT_CONFIG_WHERE];
            const char *name = config->places[rows[i].key].name;
            const char *of = config_keys[rows[i].of].info.name;
            grt_config_where(config, rows[i].key, where);
            if (several) {
                return grt_fail(GRT_CONFIG, "%s%s has no effect with losses %s: leave it out",
                                where, name[0] ? name : config_keys[rows[i].key].info.name, other);
            }
            return grt_fail(GRT_CONFIG,
                            "%s%s has no effect with %s %s: leave it out, or give %s %s", where,
                            name[0] ? name : config_keys[rows[i].key].info.name, of, other, of,
                            words[0] ? words[0] : "too");
        }
    }
    return true;
}
