// SPDX-License-Identifier: Apache-2.0
// Supervised runs of a few steps in a folder of their own.
#ifndef TEST_RUN_KIT_H
#define TEST_RUN_KIT_H

#include "gpurt/make.h"
#include "gpurt/supervised.h"
#include "harness/harness.h"

extern char run_kit_folder[64];
extern char run_kit_data[96];  // the data file in it

// The folder with 300 made samples in it, or as many as are asked for; and its end.
void run_kit_begin(enum grt_make make);
void run_kit_begin_with(enum grt_make make, uint64_t samples);
void run_kit_end(void);

// The data, and checkpoints in run_kit_folder/dir; no network yet.
struct grt_config run_kit_bare(const char *dir);

// A small network on the data, its checkpoints in run_kit_folder/dir; `pairs`: KEY=VALUE, then
// NULL.
struct grt_config run_kit_config(const char *dir, const char *const *pairs);
#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})

#define RUN_KIT_EPOCHS 16

// What each epoch came to.
struct run_kit_epochs {
    uint32_t count;
    double trained[RUN_KIT_EPOCHS], judged[RUN_KIT_EPOCHS];
    uint64_t stop_at, step;
    uint32_t rollbacks;
    double factors[4];
};
enum grt_ending run_kit_train(const struct grt_config *c, bool resume, struct run_kit_epochs *e);

// What a run said, and when it is to be stopped.
struct run_kit_watch {
    uint64_t stop_at;
    uint64_t step;
    uint32_t news[GRT_RUN_NEWS_COUNT];
    uint32_t rows[GRT_RUN_EVENT_COUNT];
    double first_loss, last_loss, accuracy, data_share;
    char text[256];
};
void run_kit_report(void *watch, const struct grt_run_report *r);

// A run on the test's device that is watched; and one from its beginning to its end.
struct grt_supervised *run_kit_create(const struct grt_config *c, bool resume,
                                      struct run_kit_watch *w);
enum grt_ending run_kit_watched(const struct grt_config *c, bool resume, struct run_kit_watch *w);

// Two files of the folder have the same bytes.
void run_kit_equal(const char *a, const char *b);

#endif
