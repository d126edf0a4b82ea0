// SPDX-License-Identifier: Apache-2.0
// Inside the learner: work that is recorded once and replayed, in pieces of about a second. On a
// GPU an iteration is one piece, one submit; on a slow device it is several, and can be given up
// between them.
#ifndef GRT_ES_WORK_H
#define GRT_ES_WORK_H

#include "gpurt/ops.h"

struct es_work {
    struct grt_dev *dev;
    const char *label;
    struct grt_graph **pieces;
    uint32_t count;
    double seconds;  // that the newest piece is expected to take
};

struct es_work_time {
    double seconds;  // on the wall
    double busy;     // of the device; 0: it has no clock
    bool stopped;    // given up before the last piece
};

// The graph that the next command, of about so many seconds, is recorded into: the newest, or a new
// one. NULL with the sentence, which commands of no length never get once there is one.
struct grt_graph *es_work_graph(struct es_work *work, double seconds);
bool es_work_bake(struct es_work *work);
// Runs and waits. `stop` (may be NULL) is asked before each piece but the first and ends it. False
// with the sentence.
bool es_work_run(struct es_work *work, bool (*stop)(void), struct es_work_time *time);
void es_work_destroy(struct es_work *work);

#endif
