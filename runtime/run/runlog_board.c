// SPDX-License-Identifier: Apache-2.0
// What TensorBoard has besides scalars, by field number of its messages:
//
//     Value             1 tag   5 histo HistogramProto   9 metadata: 1 plugin: 1 name 2 content
//     HistogramProto    1 min   2 max   3 num   4 sum   5 sum_squares   6 limits   7 counts
//     HParamsPluginData 3 session_start_info   4 session_end_info
//     SessionStartInfo  1 map of name to Value: 2 number 3 text 4 bool   5 start_time_secs
//     SessionEndInfo    1 status: 1 success 2 failure   2 end_time_secs
#include <math.h>
#include <string.h>

#include "runlog_parts.h"

#define BINS 30

static void put_text(struct message *m, uint32_t field, const char *text) {
    message_put_bytes(m, field, text, strlen(text));
}

static void put_whole(struct message *m, uint32_t field, uint64_t whole) {
    message_put_varint(m, field << 3);
    message_put_varint(m, whole);
}

// A value of the plugin hparams.
static void tell_plugin(struct grt_runlog *log, const char *tag, const struct message *content) {
    struct message plugin = {0}, metadata = {0}, value = {0}, summary = {0};
    put_text(&plugin, 1, "hparams");
    message_put_bytes(&plugin, 2, content->bytes, content->size);
    message_put_bytes(&metadata, 1, plugin.bytes, plugin.size);
    put_text(&value, 1, tag);
    message_put_bytes(&value, 9, metadata.bytes, metadata.size);
    message_put_bytes(&summary, 1, value.bytes, value.size);
    summary.full = summary.full || content->full || value.full;
    runlog_summary(log, runlog_now(), 0, &summary);
}

static bool is_path(enum grt_config_key key) {
    return key == GRT_CONFIG_DATA || key == GRT_CONFIG_VALIDATION_DATA || key == GRT_CONFIG_LOG ||
           key == GRT_CONFIG_TENSORBOARD || key == GRT_CONFIG_CHECKPOINT_DIR ||
           key == GRT_CONFIG_CHECKPOINT_FILE || key == GRT_CONFIG_DIRECTIONS;
}

static void put_setting(struct message *start, const struct grt_config *config,
                        enum grt_config_key key) {
    const struct grt_config_key_info *info = grt_config_key_info(key);
    const void *field = grt_config_value(config, key);
    struct message value = {0}, entry = {0};
    char text[256];
    switch (info->type) {
    case GRT_CONFIG_IS_WHOLE:
        message_put_double(&value, 2, (double)*(const uint64_t *)field);
        break;
    case GRT_CONFIG_IS_REAL:
    case GRT_CONFIG_IS_TIME:
    case GRT_CONFIG_IS_AMOUNT:
        message_put_double(&value, 2, *(const double *)field);
        break;
    case GRT_CONFIG_IS_FLAG:
        put_whole(&value, 4, *(const bool *)field);
        break;
    case GRT_CONFIG_IS_WORD:
        put_text(&value, 3, field);
        break;
    default:
        grt_config_value_text(config, key, text, sizeof text);
        put_text(&value, 3, text);
    }
    put_text(&entry, 1, info->name);
    message_put_bytes(&entry, 2, value.bytes, value.size);
    message_put_bytes(start, 1, entry.bytes, entry.size);
}

void grt_runlog_settings(struct grt_runlog *log, const struct grt_config *config) {
    struct message start = {0}, data = {0};
    if (!log || !log->events || !config) {
        return;
    }
    for (uint32_t i = 0; i < GRT_CONFIG_KEY_COUNT; i++) {
        enum grt_config_key key = (enum grt_config_key)i;
        if (grt_config_given(config, key) && !is_path(key)) {
            put_setting(&start, config, key);
        }
    }
    message_put_double(&start, 5, runlog_now());
    message_put_bytes(&data, 3, start.bytes, start.size);
    data.full = data.full || start.full;
    tell_plugin(log, "_hparams_/session_start_info", &data);
}

void grt_runlog_ended(struct grt_runlog *log, bool good) {
    struct message end = {0}, data = {0};
    if (!log || !log->events) {
        return;
    }
    put_whole(&end, 1, good ? 1 : 2);
    message_put_double(&end, 2, runlog_now());
    message_put_bytes(&data, 4, end.bytes, end.size);
    tell_plugin(log, "_hparams_/session_end_info", &data);
}

void grt_runlog_histogram(struct grt_runlog *log, uint64_t step, const char *name,
                          const float *numbers, uint64_t count) {
    double least = INFINITY, most = -INFINITY, sum = 0, squares = 0, counts[BINS] = {0};
    uint64_t finite = 0;
    struct message histogram = {0}, value = {0}, summary = {0};
    if (!log || !log->events) {
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        double v = (double)numbers[i];
        if (isfinite(v)) {
            least = fmin(least, v);
            most = fmax(most, v);
            sum += v;
            squares += v * v;
            finite++;
        }
    }
    if (finite == 0) {
        return;
    }
    double width = most > least ? (most - least) / BINS : 1;
    for (uint64_t i = 0; i < count; i++) {
        double v = (double)numbers[i];
        if (isfinite(v)) {
            uint32_t bin = (uint32_t)((v - least) / width);
            counts[bin < BINS ? bin : BINS - 1]++;
        }
    }
    const double heads[] = {least, most, (double)finite, sum, squares};
    for (uint32_t i = 0; i < 5; i++) {
        message_put_double(&histogram, i + 1, heads[i]);
    }
    struct message limits = {0}, bins = {0};
    for (uint32_t i = 0; i < BINS; i++) {
        // The last one is exact; of numbers that are all alike the bins go on.
        double limit = i + 1 < BINS || most == least ? least + width * (i + 1) : most;
        uint64_t bits[2];
        memcpy(&bits[0], &limit, sizeof bits[0]);
        memcpy(&bits[1], &counts[i], sizeof bits[1]);
        message_put_little(&limits, bits[0], 8);
        message_put_little(&bins, bits[1], 8);
    }
    message_put_bytes(&histogram, 6, limits.bytes, limits.size);
    message_put_bytes(&histogram, 7, bins.bytes, bins.size);
    put_text(&value, 1, name);
    message_put_bytes(&value, 5, histogram.bytes, histogram.size);
    message_put_bytes(&summary, 1, value.bytes, value.size);
    runlog_summary(log, runlog_now(), step, &summary);
}
