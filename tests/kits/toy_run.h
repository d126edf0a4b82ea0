// SPDX-License-Identifier: Apache-2.0
// Runs of a trainer that learns nothing, in a folder of their own.
#ifndef TEST_TOY_RUN_H
#define TEST_TOY_RUN_H

#include "gpurt/checkpoint.h"
#include "gpurt/run.h"
#include "harness/harness.h"

#define TOY_MOST 64
#define TOY_MANY 600u

// Two steps at a time at most; up to `ahead` of them are begun before the first is settled.
struct toy {
    uint64_t begun, ahead;
    double scores[TOY_MOST];  // by step
    float weight;             // what is saved
    float many;               // the one of many numbers that is not 0,
    uint32_t many_at;         // and where it is, below TOY_MANY
    uint64_t stop_at;         // the run is stopped from this step on; 0: never
    uint64_t step;
    uint32_t evaluated[TOY_MOST], saved[TOY_MOST], rows[GRT_RUN_EVENT_COUNT], announced;
    enum grt_run_event last;
    char text[512];
    double eta;
    double seconds;                     // of the newest row; they never go back
    double trained, trained_at;         // of the first row of a step, and of the newest
    void (*after)(struct toy *toy);     // each step; may be NULL
    uint32_t written;                   // checkpoints that were told of and were there
    uint64_t best_step;                 // as the run says at its end
    const struct grt_trainer *trainer;  // NULL: toy_trainer
};
extern const struct grt_trainer toy_trainer;
bool toy_advance(void *self, struct grt_run *run, struct grt_run_turn *turn);

extern char toy_folder[64];
void toy_enter(void);
void toy_leave(void);
// A path in the folder; the newest 16 stay.
const char *toy_path(const char *name);

// Runs to `steps`; what is not given in `desc` is filled in.
enum grt_ending toy_go(struct toy *t, struct grt_run_desc desc, struct grt_run_start start);
// Scores that rise with every step.
void toy_rise(struct toy *t);
// The step of a checkpoint, which must be whole.
uint64_t toy_step_in(const char *path);

#endif
