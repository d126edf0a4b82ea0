// SPDX-License-Identifier: Apache-2.0
// Inside runtime/run/supervised: steps that ranks share out. supervised_deal.c says who has what,
// supervised_ranks.c takes the steps.
#ifndef GRT_SUPERVISED_RANKS_H
#define GRT_SUPERVISED_RANKS_H

#include "learn/share.h"
#include "supervised_parts.h"

#define PLACES 2  // for micro-batches on their way to the device

struct recorded {
    uint32_t rows, all;
    struct grt_graph *graph;
};

struct place {
    struct grt_buf *buf;  // x and y of a micro-batch
    uint64_t read;        // mark behind which it is
    bool filled;          // with the next micro-batch, while the one before was on its way
    uint32_t rows;        // of it
};

struct supervised_ranks {
    uint32_t all, count;  // micro-batches of a step, and of this rank
    uint32_t first;       // of this rank
    uint32_t *counts;     // of each rank
    bool by_speed;        // they are dealt out anew, once it is known how long each takes
    uint32_t leaf, step;  // samples of a micro-batch and of a step
    uint64_t epoch;       // samples
    bool compared;        // the weights of all, before the first step
    bool weighted;        // by weights of classes or samples
    struct grt_share *share;
    struct place places[PLACES];  // that micro-batches have in turn
    uint32_t turn;                // the place that is next
    uint64_t y_at;
    // Two for each micro-batch and each place that it may have: of a full step, and of an epoch's
    // last.
    struct recorded *graphs;
    struct recorded *embeds;  // the same, where samples are told apart from those of all; or NULL
    struct grt_graph *meet;   // behind those
    struct grt_graph *update;
    float *weights;                   // to be compared
    struct grt_loader_position next;  // counts steps
    double exposed;                   // seconds of exchanges behind the end of backward,
    uint32_t exposed_steps;           // of so many steps since the last evaluation
    uint64_t exchanges;               // so far
    double squares[GRT_HISTORY];      // of the micro-batches' gradients, of the newest full steps
};

#endif
