// SPDX-License-Identifier: Apache-2.0
// What carries bytes between the ranks of a run. comm.h is for who trains; this is for who brings
// another network.
//
// A transport is a table of calls. libgpurt-mpi.so has the one of Open MPI: its function
// grt_transport() gives the table. One thread calls them, one exchange is under way at a time, and
// none of the calls waits for other ranks except start, end, shrink, which all that are left call
// together, and leave, for a second at most.
#ifndef GRT_TRANSPORT_H
#define GRT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_TRANSPORT_VERSION 2
#define GRT_TRANSPORT_WHY 256

struct grt_transport {
    uint32_t version;  // GRT_TRANSPORT_VERSION
    const char *name;  // "Open MPI"
    void *self;        // handed to every call

    // Once, first: meets the other ranks. False with why.
    bool (*start)(void *self, uint32_t *rank, uint32_t *ranks, char why[GRT_TRANSPORT_WHY]);
    // Begins: every rank gets the blocks of all, in the order of the ranks. The own one, of `each`
    // bytes, is in its place already.
    bool (*gather)(void *self, void *all, size_t each);
    // Begins: block r of `out` goes to rank r, and block r of `in` comes from rank r.
    bool (*spread)(void *self, const void *out, void *in, size_t each);
    // Whether what was begun is over. False: it failed.
    bool (*test)(void *self, bool *over);
    // Once, last, and not where a rank was lost with which the network ended.
    void (*end)(void *self);

    // Of a network that outlives its ranks; else NULL, all three.
    //
    // Behind an exchange that failed: what is under way fails on all ranks, so that all come to
    // know. False: this one does not outlive a rank after all.
    bool (*leave)(void *self);
    // Begins: *all, which first is what this rank says, becomes whether all that are left say so,
    // the same on each of them, whoever ends meanwhile. test() never fails for it because of a
    // rank that is gone. False: this one does not outlive a rank after all.
    bool (*agree)(void *self, bool *all);
    // Behind such an agreement, by all that are left: they are the ranks from now on, numbered from
    // 0 on in their old order.
    bool (*shrink)(void *self, uint32_t *rank, uint32_t *ranks);
};

// What a plugin exports under this name.
typedef const struct grt_transport *grt_transport_fn(void);
#define GRT_TRANSPORT_SYMBOL "grt_transport"

#ifdef __cplusplus
}
#endif
#endif
