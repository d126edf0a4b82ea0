// SPDX-License-Identifier: Apache-2.0
// A feed: brings batches of a loader to a learner and runs its steps, a window of them at once.
//
//     batches of the loader   slot -> upload -> a place on the device         -> a step
//     rows on the device      steps gather them, by an order of the epoch     -> many steps
//
// Uploads run beside the steps where the device has two lanes: batches go to two places in turn, so
// that batch k + 1 arrives while step k reads its own.
//
//     aside   up 0 | up 1 | up 2        | up 3           up k waits for step k - 2, the last reader
//     main         | step 0    | step 1    | step 2      step k waits for up k
//
// A batch of several micro-batches is sent one by one: the device holds the inputs of one, or of as
// many as it has lanes. One graph a place trains on every batch: the loader has a small one that
// copies for each of its slots. (A training graph for each slot saves a submit, but took lavapipe a
// third of a second each to begin with.) The device works through a window while the loader's
// workers read on; then the window is waited for and its slots go back. The batch behind a window
// is fetched and sent before that wait, so the device finds it when the next window begins.
//
// Rows on the device need none of this: a table of what the orders of the next epochs follow from
// lies beside them, the state of the learner says where in it a step begins, and the host queues as
// far ahead as it likes. Graphs have a power of two of steps, so that a few serve every run of
// them.
#ifndef GRT_FEED_H
#define GRT_FEED_H

#include "loader.h"
#include "learner.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_FEED_WINDOW 8                     // batches queued before the host waits
#define GRT_FEED_HELD (GRT_FEED_WINDOW + 1u)  // batches that a feed holds of its loader

struct grt_feed_desc {
    struct grt_dev *dev;
    struct grt_learner *learner;
    struct grt_loader *loader;  // its `held` is GRT_FEED_HELD, its turns grt_dev_lanes()
    uint32_t batch;
    bool evaluate;    // evaluations instead of training steps
    uint64_t part;    // of an evaluation: batches behind which its sums begin anew; 0: an epoch
    bool on_device;   // the loader's cache is the device
    uint64_t epochs;  // rows on the device: that will be asked for; 0: not known
    bool apart;       // rows on the device: an epoch's last step often comes in a run of its own
    // Rows on the device: seconds that the steps of one call may take. Above 0 a GPU tries the
    // first step, whose numbers its learner then has: grt_learner_reset() is due.
    double room;
};
#define grt_feed_desc(...) GRT_DESC(struct grt_feed_desc, __VA_ARGS__)

struct grt_feed;

GRT_API struct grt_feed *grt_feed_create(const struct grt_feed_desc *desc);
GRT_API void grt_feed_destroy(struct grt_feed **feed);
GRT_API struct grt_loader_position grt_feed_position(const struct grt_feed *feed);
// Where the next step begins. The place where it is keeps what is on its way.
GRT_API bool grt_feed_seek(struct grt_feed *feed, struct grt_loader_position position);

// Rows on the device: tells it where the next step begins, which the first run does otherwise, and
// waits for what is queued; call it while nothing is. Does nothing where the device knows.
GRT_API bool grt_feed_place(struct grt_feed *feed);

// Where the samples of the newest step, or of its last micro-batch, lie on the device, cut to their
// rows; of rows on the device, what the learner's own tensors hold.
GRT_API void grt_feed_newest(const struct grt_feed *feed, struct grt_tensor *x,
                             struct grt_tensor *y);

// Runs the step at a position again, one that changes nothing, for who looks at its samples; of a
// batch of several micro-batches it only brings one of them to the device. False when there is no
// such part.
GRT_API bool grt_feed_part(struct grt_feed *feed, struct grt_loader_position position,
                           uint32_t part, struct grt_tensor *x, struct grt_tensor *y);

// What a step takes, as far as is known: graphs that are new are cut by this instead of being tried
// and waited for.
GRT_API void grt_feed_expect(struct grt_feed *feed, double step_seconds);

// What a step takes as far as is known, or 0.
GRT_API double grt_feed_seconds(const struct grt_feed *feed);

struct grt_feed_done {
    uint32_t steps;
    uint64_t samples;
    uint32_t last_rows;  // of the last step; all others are full
    double waited;       // seconds that the host took to get data
    double stalled;      // of these, at most, the device had nothing to do
    bool epoch_ended;
};
// Graphs that there are so far: those that are expected are recorded with the feed, others when
// they are first wanted.
GRT_API uint32_t grt_feed_graphs(const struct grt_feed *feed);
// Runs up to `most` steps, not beyond the end of the epoch. Batches: no more than a window, and
// waits for them; `more`: another call follows, so its first batch is fetched meanwhile. Rows on
// the device: queues them and returns. When it fails, `done` still says what was run and the
// position is behind that. An evaluation that begins an epoch, or a part of it, clears the eval_
// sums of the state; it does not run beyond the end of a part.
GRT_API bool grt_feed_run(struct grt_feed *feed, uint32_t most, bool more,
                          struct grt_feed_done *done);

// Device bytes a sample of a batch that a feed takes besides the learner, whose micro-batches are
// one or several.
GRT_API uint64_t grt_feed_row_bytes(const struct grt_dev *dev, uint64_t row_bytes, bool several);
// And at most so many besides, where tensors begin at multiples of a device's own number.
GRT_API uint64_t grt_feed_padding(const struct grt_dev *dev);
// Device bytes that a feed of rows on the device takes besides them at most, where a step has so
// many of x and y, and so many samples, and is cut into micro-batches or not.
GRT_API uint64_t grt_feed_rows_bytes(const struct grt_dev *dev, uint64_t x_bytes, uint64_t y_bytes,
                                     uint32_t batch, bool cut);

#ifdef __cplusplus
}
#endif
#endif
