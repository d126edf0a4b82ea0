// SPDX-License-Identifier: Apache-2.0
// What the files of a feed share. feed.c has the public calls and the graphs, feed_batches.c the
// batches of a loader, feed_rows.c rows that lie on the device.
#ifndef GPURT_FEED_PARTS_H
#define GPURT_FEED_PARTS_H

#include "gpurt/feed.h"

#define FEED_PLACES GRT_LANE_COUNT  // that batches go to in turn

struct feed_recorded {
    uint32_t rows, steps, rest, part, place;
    bool expected;  // the time that it takes is told
    struct grt_graph *graph;
};

// A batch that is there or on its way.
struct feed_sent {
    struct grt_batch batch;
    uint64_t mark;  // of the upload queue: it has arrived
};

struct grt_feed {
    struct grt_feed_desc desc;
    struct grt_loader_info info;
    struct grt_loader_position next;
    struct feed_recorded *recorded;
    uint32_t recorded_count, recorded_most;
    uint32_t place_count;
    uint32_t part_count;                  // micro-batches of a batch: each is sent by itself
    struct grt_plan *plans[FEED_PLACES];  // staging, a buffer of its own each
    struct grt_tensor *x[FEED_PLACES], *y[FEED_PLACES];  // of the plans; NULL: the learner's input
    uint64_t read[FEED_PLACES];  // main lane: the newest step that used the place
    uint64_t newest;             // main lane: the newest step
    uint32_t newest_place, newest_rows;
    struct feed_sent held[GRT_FEED_HELD];
    uint32_t held_count;
    bool ahead;               // the last of `held` has not been used yet
    struct grt_graph *clear;  // the sums of an evaluation

    struct grt_step_rows rows;  // on the device
    struct grt_plan *stage;
    struct grt_tensor *stage_x, *stage_y, *drawn;
    uint32_t newest_staged;
    // An evaluation has the same rows each time. Where there is room for the numbers of all they
    // are drawn once: `known` is `rows` with that said, and `knows`: they are there.
    struct grt_step_rows known;
    bool knows;
    uint32_t *words;                    // the table of records
    uint64_t table_first, table_count;  // epochs in it
    double step_seconds;                // expected; 0: not known
    bool placed;                        // the state and the table know where `next` is
};

// ---- feed.c ----

// A graph of steps as the feed takes them: of learning or of an evaluation.
struct grt_graph *feed_record(struct grt_feed *f, const struct grt_step_desc *desc);
// The graph for a number of rows and steps, made when it is first asked for.
struct grt_graph *feed_graph(struct grt_feed *f, const struct grt_step_desc *desc, uint32_t place);
void feed_advance(struct grt_feed *f, uint32_t steps, struct grt_feed_done *done);

// ---- feed_batches.c ----

bool feed_prepare_batches(struct grt_feed *f);
bool feed_run_batches(struct grt_feed *f, uint32_t most, bool more, struct grt_feed_done *done);
// Rows of a micro-batch.
uint32_t feed_micro(const struct grt_feed *f);
// The graph of a part of a batch that has so many rows.
struct grt_graph *feed_batch_graph(struct grt_feed *f, uint32_t place, uint32_t rows,
                                   uint32_t part);
// Fetches the next batch and sends the first part of it. If the device is idle afterwards, the wait
// counts as stall.
bool feed_send_next(struct grt_feed *f, struct grt_feed_done *done);
// Sends a part of a batch to its place. Without pinned memory it is only written when the device is
// idle.
bool feed_send_part(struct grt_feed *f, struct feed_sent *sent, uint32_t part,
                    struct grt_feed_done *done);
// Gives back all but the batch that is ahead.
void feed_release(struct grt_feed *f);

// ---- feed_rows.c ----

bool feed_prepare_rows(struct grt_feed *f);
// Tells the device where the next step begins, unless it knows; waits for what is queued where it
// does not.
bool feed_place(struct grt_feed *f);
// Makes the graphs of an epoch.
bool feed_bake_rows(struct grt_feed *f);
bool feed_run_rows(struct grt_feed *f, uint32_t most, struct grt_feed_done *done);
// A step whose samples are brought to where they can be looked at.
bool feed_gather_one(struct grt_feed *f, struct grt_tensor *x, struct grt_tensor *y);

#endif
