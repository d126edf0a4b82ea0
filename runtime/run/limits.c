// SPDX-License-Identifier: Apache-2.0
#include "gpurt/limits.h"

#include <math.h>

#define WAITED "patience_waited"
#define SCORE "patience_score"
#define SECONDS "seconds"

static const struct {
    const char *word, *text;
} endings[GRT_ENDING_COUNT] = {
#define X(name, word, text) {word, text},
    GRT_ENDINGS(X)
#undef X
};

const char *grt_ending_word(enum grt_ending ending) {
    return (unsigned)ending < GRT_ENDING_COUNT ? endings[ending].word : "";
}

const char *grt_ending_text(enum grt_ending ending) {
    return (unsigned)ending < GRT_ENDING_COUNT ? endings[ending].text : "";
}

void grt_patience_add(struct grt_patience *patience, const struct grt_limits *limits,
                      double score) {
    if (isfinite(score) && (!patience->any || score - patience->score > limits->min_delta)) {
        *patience = (struct grt_patience){.score = score, .any = true};
    } else {
        patience->waited++;
    }
}

enum grt_ending grt_limits_reached(const struct grt_limits *limits,
                                   const struct grt_patience *patience, double seconds) {
    if (limits->patience > 0 && patience->waited >= limits->patience) {
        return GRT_ENDED_PATIENCE;
    }
    return limits->max_time > 0 && seconds >= limits->max_time ? GRT_ENDED_MAX_TIME
                                                               : GRT_ENDED_NONE;
}

bool grt_limits_save(const struct grt_limits *limits, const struct grt_patience *patience,
                     double seconds, struct grt_archive *archive) {
    bool waits = limits->patience > 0;
    return (!waits || grt_archive_set_whole(archive, WAITED, (int64_t)patience->waited)) &&
           (!waits || !patience->any || grt_archive_set_real(archive, SCORE, patience->score)) &&
           (limits->max_time <= 0 || grt_archive_set_real(archive, SECONDS, seconds));
}

void grt_limits_load(const struct grt_archive *archive, struct grt_patience *patience,
                     double *seconds) {
    double score = grt_archive_real(archive, SCORE, NAN);
    *patience = (struct grt_patience){.waited = (uint64_t)grt_archive_whole(archive, WAITED, 0),
                                      .score = isfinite(score) ? score : 0,
                                      .any = isfinite(score)};
    *seconds = grt_archive_real(archive, SECONDS, 0);
}
