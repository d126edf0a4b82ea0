// SPDX-License-Identifier: Apache-2.0
// When a run ends before its last step: its time is up, it has stopped improving, or it has reached
// a target.
//
// Every kind of training has the same limits, and names the reason for its end by the same word: in
// the row "end" of its log ("ended": "patience"), and in the last line for people.
#ifndef GRT_LIMITS_H
#define GRT_LIMITS_H

#include "archive.h"

#ifdef __cplusplus
extern "C" {
#endif

// X(name, word, text)
#define GRT_ENDINGS(X)                                                                             \
    X(NONE, "", "the run has not ended")                                                           \
    X(EPOCHS, "epochs", "all epochs are done")                                                     \
    X(MAX_STEPS, "max_steps", "all steps are done")                                                \
    X(ITERATIONS, "iterations", "all iterations are done")                                         \
    X(MAX_TIME, "max_time", "the time is up")                                                      \
    X(PATIENCE, "patience", "there was no improvement for too long")                               \
    X(UNTIL, "until", "the target was reached")                                                    \
    X(SIGNAL, "signal", "it was interrupted")                                                      \
    X(NONFINITE, "nonfinite", "a number is not finite")                                            \
    X(FAILED, "failed", "it failed")

enum grt_ending {
#define X(name, word, text) GRT_ENDED_##name,
    GRT_ENDINGS(X)
#undef X
        GRT_ENDING_COUNT,
};
// "patience", and the reason as a clause.
GRT_API const char *grt_ending_word(enum grt_ending ending);
GRT_API const char *grt_ending_text(enum grt_ending ending);

struct grt_limits {
    double max_time;    // seconds of training, those of resumed runs together; 0: none
    uint64_t patience;  // evaluations in a row without improvement that end the run; 0: never
    double min_delta;   // a score must grow by more than this to count as an improvement
};

// How far a run is in its patience. Zero begins. It is a part of the run's state: a checkpoint has
// it.
struct grt_patience {
    uint64_t waited;  // evaluations since the last improvement
    double score;     // of that improvement
    bool any;         // there was one
};

// Takes the score of an evaluation, of which more is better: a return, or a loss negated. A score
// that is not finite is no improvement.
GRT_API void grt_patience_add(struct grt_patience *patience, const struct grt_limits *limits,
                              double score);
// PATIENCE or MAX_TIME, when one of them is exhausted, or NONE. `seconds` is the time that was
// spent.
GRT_API enum grt_ending grt_limits_reached(const struct grt_limits *limits,
                                           const struct grt_patience *patience, double seconds);

// To and from a checkpoint. What is not limited is not kept: without max_time, runs that computed
// the same have the same bytes. What an archive lacks is zero.
GRT_API bool grt_limits_save(const struct grt_limits *limits, const struct grt_patience *patience,
                             double seconds, struct grt_archive *archive);
GRT_API void grt_limits_load(const struct grt_archive *archive, struct grt_patience *patience,
                             double *seconds);

#ifdef __cplusplus
}
#endif
#endif
