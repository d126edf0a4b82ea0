// SPDX-License-Identifier: Apache-2.0
// Ranks: the processes of one training, each with a device of its own.
//
//     start      after the device is open (listing devices forks); meets the other ranks
//     agree      before the first step: all have the same settings and data, or none begins
//     exchange   vote, gather, lead, sum: every rank makes the same calls in the same order
//     end
//
// Sums are made in a tree by rank, each slice by one rank, so all get the same bits, and 1, 2 and 4
// ranks get the same ones where each has summed its own part of that tree:
//
//     ((0 + 1) + (2 + 3))     two ranks: (0 + 1) | (2 + 3)     four: 0 | 1 | 2 | 3
//
// A rank that ends, is killed or is stopped is found out by the others on its machine while they
// wait for it, within 3 seconds. Then the exchange fails, every later one fails at once, and
// grt_comm_stop() has GRT_STOP_LOST: what was learnt before is saved, and the run can be resumed.
//
// Where the transport outlives ranks (transport.h) and the desc asks for it, those that are left go
// on: one exchange fails, the same one on all of them, and behind it they have numbers anew. Who
// calls sees by grt_comm_losses() that it has to begin again what it was about to exchange. It says
// by grt_comm_bear() from where on it can.
#ifndef GRT_COMM_H
#define GRT_COMM_H

#include "status.h"
#include "transport.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_MAX_RANKS 4096
// Ten minutes, as PyTorch has it: a rank may compile kernels, read data or save all that time.
#define GRT_COMM_SILENT_SECONDS 600.0

// What the launcher (mpirun, srun) has put into the environment.
struct grt_comm_place {
    uint32_t rank, ranks;
    uint32_t local;  // number of the rank on its machine
    // What is wrong with how it was started, for people: a launcher whose processes cannot meet, or
    // may not. NULL: nothing, or another process says it.
    const char *note;
};
// False: this process was started alone.
GRT_API bool grt_comm_launched(struct grt_comm_place *place);

struct grt_comm_desc {
    const char *device;                     // of this rank, for messages
    const struct grt_transport *transport;  // NULL: that of the plugin libgpurt-mpi.so
    bool alone;                             // one rank, no transport
    bool (*stop)(void);  // asked while it waits: a wait ends some seconds after it; may be NULL
    // Without an answer for so many seconds a rank counts as lost, and a tenth of it is what the
    // others give the first to save. 0: GRT_COMM_SILENT_SECONDS.
    double silent;
    // Threads that sum beside each other where all ranks are on one machine; 0: as many as there
    // are cores for. The bits are the same.
    uint32_t threads;
    // A rank that is lost is no end: see above. Every rank says the same.
    bool outlive;
    // By the transport, also where all ranks are on one machine: without it they exchange through
    // memory that they share there. Every rank says the same; the bits are the same.
    bool messages;
};
#define grt_comm_desc(...) GRT_DESC(struct grt_comm_desc, __VA_ARGS__)

struct grt_comm;

// NULL with the sentence, such as which package is missing.
GRT_API struct grt_comm *grt_comm_start(const struct grt_comm_desc *desc);
// `good`: every rank comes to its end, and they wait for each other. Else the process is to end
// soon: ranks but the first wait until that has saved what it has.
GRT_API void grt_comm_end(struct grt_comm **comm, bool good);

// Of NULL: rank 0 of 1.
GRT_API uint32_t grt_comm_rank(const struct grt_comm *comm);
GRT_API uint32_t grt_comm_ranks(const struct grt_comm *comm);
// "vulkan:0, process 4711 on node3"; NULL past the last.
GRT_API const char *grt_comm_who(const struct grt_comm *comm, uint32_t rank);

// How often ranks went on without others, and whom they lost the last time: "rank 1 (...) has
// ended". The first changes with the exchange that fails, on all ranks alike. Of NULL: 0 and "".
GRT_API uint32_t grt_comm_losses(const struct grt_comm *comm);
GRT_API const char *grt_comm_lost(const struct grt_comm *comm);
// Before the first step, behind the same exchange on all ranks: from here on who calls can begin
// again. A rank that is lost before it is the end, with the sentence and GRT_STOP_LOST. False: so
// is one that is lost later.
GRT_API bool grt_comm_bear(struct grt_comm *comm);

// All must have the same text, or all fail with the sentence that says who differs in `what`.
GRT_API bool grt_comm_agree(struct grt_comm *comm, const char *what, const char *text);
// All must be good, or all fail. The rank that is not has said why; the others say which it is, and
// `what` of it: "cannot begin: its memory is too small".
GRT_API bool grt_comm_all(struct grt_comm *comm, const char *what, bool good);

enum grt_comm_stop {
    GRT_STOP_SIGNAL = 1,  // somebody asked a rank to stop
    GRT_STOP_TIME = 2,    // the time is over
    GRT_STOP_LOST = 4,    // a rank is gone
};
// Bits that this rank wants; they are told with its next vote.
GRT_API void grt_comm_want(struct grt_comm *comm, uint32_t bits);
// Once a step: all get the bits of all. False: the step cannot be taken by all.
GRT_API bool grt_comm_vote(struct grt_comm *comm);
// Bits of the votes so far: the same on all ranks behind the same vote.
GRT_API uint32_t grt_comm_stop(const struct grt_comm *comm);

// As in transport.h, until it is over.
GRT_API bool grt_comm_gather(struct grt_comm *comm, void *all, uint64_t each);
// All get what the first rank has.
GRT_API bool grt_comm_lead(struct grt_comm *comm, void *data, uint64_t bytes);
// The sum over all ranks, whose number is a power of two; `sum` may be `numbers`.
GRT_API bool grt_comm_sum(struct grt_comm *comm, const float *numbers, float *sum, uint64_t count);
// The same where each rank has summed a run of the tree's leaves, whose number is a power of two:
// `leaves[r]` of rank r behind those of the ranks before it, at least one each. `numbers` has the
// sums of the largest whole subtrees of its run, `count` numbers each, from left to right:
//
//     3, 1     (0 + 1) and 2 | 3          5, 3     ((0 + 1) + (2 + 3)) and 4 | 5 and (6 + 7)
//
// So the bits are the same, whoever has which leaves. `sum` may be `numbers`.
GRT_API bool grt_comm_sum_runs(struct grt_comm *comm, const uint32_t *leaves, const float *numbers,
                               float *sum, uint64_t count);
// How many such subtrees a run has.
GRT_API uint32_t grt_comm_subtrees(uint32_t first, uint32_t leaves);
// Whether all have the same bytes; else the sentence says at which step who differs in what.
GRT_API bool grt_comm_same(struct grt_comm *comm, const char *what, uint64_t step, const void *data,
                           uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
