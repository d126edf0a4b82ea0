// SPDX-License-Identifier: Apache-2.0
// Inside runtime/train: brings batches of a loader to a learner and runs its steps, a window of them at
// once.
//
//     batches of the loader   slot -> upload -> the learner's input, or staging  -> a step
//     rows on the device      the order of an epoch -> the device, steps gather  -> many steps
//
// One graph trains on every batch: the loader has a small one that copies for each of its slots. (A
// training graph for each slot saves a submit, but took lavapipe a third of a second each to begin with.)
// The device works through a window while the loader's workers read on; then the window is waited for and
// its slots go back.
#ifndef GRT_FEED_H
#define GRT_FEED_H

#include "../data/loader.h"
#include "../nn/learner.h"

#define FEED_WINDOW 8  // steps queued before the host waits

struct feed_desc {
    struct grt_dev *dev;
    struct grt_learner *learner;
    struct grt_loader *loader;  // its `held` is at least FEED_WINDOW
    uint32_t batch;
    bool evaluate;   // evaluations instead of training steps
    bool on_device;  // the loader's cache is the device
};

struct feed;

struct feed *feed_create(const struct feed_desc *desc);
void feed_destroy(struct feed **feed);
struct grt_loader_position feed_position(const struct feed *feed);
// Where the next step begins.
bool feed_seek(struct feed *feed, struct grt_loader_position position);

struct feed_done {
    uint32_t steps;
    uint64_t samples;
    uint32_t last_rows;  // of the last step; all others are full
    double waited;       // seconds for data
    bool epoch_ended;
};
// Runs up to `most` steps (and no more than a window), not beyond the end of the epoch, and waits for
// them. When it fails, `done` still says what was run and the position is behind that.
bool feed_run(struct feed *feed, uint32_t most, struct feed_done *done);

#endif
