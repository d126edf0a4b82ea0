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

// Ranks by their numbers, which change where some are gone.
struct comm_numbers {
    uint32_t rank, ranks;
    uint32_t *at;  // of each rank: its number when all met, by which `peers` has it
};

struct grt_comm {
    struct grt_transport transport;
    bool (*stop_asked)(void);
    double silent;  // seconds without an answer: of other machines nothing else is known
    struct comm_numbers now;
    uint32_t met, self;  // ranks when all met, and this one's number then
    bool lost;
    char why[320];  // the newest rank that is gone, for people
    uint32_t wanted, stop;
    struct peer *peers;  // of all that met, as `stopped` and `texts`
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
    bool messages;          // as in the desc, with `threads` of it
    uint32_t threads;
    struct comm_outlive *outlive;  // NULL: the first lost rank is the end
};

// Where ranks go on without those that are gone: outlive.c.
//
// An exchange must fail on all that are left or on none. A rank may have come through one that
// another saw fail: it goes on to the next, where that one is missing. So each keeps what its
// newest exchange came to, and who was behind gets it; then the exchange behind it fails on all.
struct comm_outlive {
    bool bears;     // a loss now is not the end yet
    bool regroups;  // ranks come together: those that are gone are not looked at
    bool begun;     // by grt_comm_bear(): before it a loss is the end, on all ranks alike
    bool due;       // the next exchange fails: it did so on the other ranks
    uint64_t done;  // exchanges
    void *newest;   // of the newest, what all had
    uint64_t bytes, room;
    uint32_t losses;
    char lost[320];
    // With `due`: what holds behind that. While ranks come together: what held before.
    struct comm_numbers coming;
    uint32_t ended;  // number when all met, and one, of the newest that this rank has ended; or 0
};
bool comm_outlive_create(struct grt_comm *comm);
void comm_outlive_destroy(struct grt_comm *comm);
// What an exchange came to. False: no memory for it.
bool comm_outlive_keep(struct grt_comm *comm, const void *all, uint64_t bytes);
// Behind an exchange that failed: goes on with the ranks that are left. True: another rank had come
// through it, and `all` is what it would have been.
bool comm_outlive_go_on(struct grt_comm *comm, void *all, uint64_t bytes);
// While ranks come together: one that is stopped is ended, as nobody can go on with it.
void comm_outlive_look(struct grt_comm *comm);
// Whether this exchange is the one that fails on all.
bool comm_outlive_due(struct grt_comm *comm);
// Behind the last exchange: until all that are left are there. One that has not seen that exchange
// come through gets what it came to.
void comm_outlive_part(struct grt_comm *comm);

// Until what was begun on the transport or the window is over. False: a rank is gone.
bool comm_wait(struct grt_comm *comm, uint64_t each);
// As grt_comm_gather(), where a loss is one.
bool comm_gather(struct grt_comm *comm, void *all, uint64_t each);
// Shared memory where all ranks are on one machine. False: they could not find out.
bool comm_look_out(struct grt_comm *comm);

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
