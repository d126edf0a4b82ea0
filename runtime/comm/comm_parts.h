// SPDX-License-Identifier: Apache-2.0
// Inside runtime/comm: what waits, agreements and sums of ranks share.
#ifndef GRT_COMM_PARTS_H
#define GRT_COMM_PARTS_H

#include <stdatomic.h>

#include "gpurt/comm.h"
#include "peers.h"
#include "team.h"
#include "window.h"

// Which sums make one of those that ranks have. A rank may have several: subtrees of the tree over
// all leaves.
struct comm_plan {
    uint32_t *leaves;  // of each rank; NULL: not made yet
    uint32_t *each;    // subtrees of each rank,
    uint32_t most;     // and of the one that has most
    struct comm_add {
        uint32_t to, from;  // rank * most + number of the subtree
    } * adds;
    uint32_t add_count;
};

struct grt_comm {
    struct grt_transport transport;
    bool (*stop_asked)(void);
    double silent;  // seconds without an answer: of other machines nothing else is known
    uint32_t rank, ranks;
    bool lost;
    uint32_t wanted, stop;
    struct peer *peers;
    uint32_t *stopped;   // looks at which a rank was stopped
    char (*texts)[240];  // for grt_comm_who()
    void *scratch;
    uint64_t scratch_bytes;
    struct window *window;  // where all ranks are on this machine; else NULL
    struct team *team;      // of threads for its lanes but the first, or NULL
    _Atomic bool gone;      // as `lost`, for the team
    struct comm_plan plan;  // of the newest sum
    bool joins;             // what is waited for is the team,
    uint32_t lane;          // or that all come in this lane
};

// At least so many bytes of comm->scratch; false with the sentence.
bool comm_scratch(struct grt_comm *comm, uint64_t bytes);
// All ranks have filled their boxes of a lane. False: one of them is gone.
bool comm_come(struct grt_comm *comm, uint32_t lane);
// The team has done its work. False: a rank is gone.
bool comm_join(struct grt_comm *comm);
void comm_plan_end(struct grt_comm *comm);
// By messages: `each` bytes of `out` go to every rank, and `in` has what came from each.
bool comm_spread(struct grt_comm *comm, const void *out, void *in, uint64_t each);

#endif
