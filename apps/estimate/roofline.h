// SPDX-License-Identifier: Apache-2.0
// The time of counted work on a card: what its published rates allow, times the share of them that
// was reached where it was measured.
//
//     compute = plain / (shares.plain * card.plain) + matrix / (shares.matrix * card.matrix)
//               over fill, the part of the units that have a workgroup
//     memory  = bytes / (shares.bytes * card.bandwidth)
//     through = the larger of the two + (1 - hidden) * the smaller
//     latency = chain * cycles / clock                  one lane's own steps, one after another
//     time    = launches * shares.launch * launch + serial * cycles / clock + max(through, latency)
//
// So few lanes take as long as one (latency), many as long as the rates say (through), and small
// work as long as its dispatches (launches).
#ifndef APPS_ESTIMATE_ROOFLINE_H
#define APPS_ESTIMATE_ROOFLINE_H

#include "card.h"

struct roof_work {
    double launches;  // dispatches, one after another
    double plain;     // operations in f32
    double matrix;    // operations of matrix units
    double bytes;     // from and to the card's memory
    double groups;    // workgroups that run beside one another; 0: as many as there are units
    double chain;     // dependent steps of one lane, hidden by other lanes' work
    double serial;    // dependent steps that nothing hides
};

// Numbers that were fitted to what was measured.
#define ROOF_SHARES(X)                                                                             \
    X(plain)  /* of the card's f32 rate */                                                         \
    X(matrix) /* of its matrix units' */                                                           \
    X(bytes)  /* of its bandwidth; above 1: caches serve some */                                   \
    X(hidden) /* of the shorter of compute and memory, behind the longer */                        \
    X(cycles) /* of a dependent step */                                                            \
    X(launch) /* of what an empty dispatch costs */

struct roof_shares {
#define X(name) double name;
    ROOF_SHARES(X)
#undef X
};

#define ROOF_BOUNDS(X)                                                                             \
    X(LAUNCH, "launches")                                                                          \
    X(LATENCY, "latency")                                                                          \
    X(COMPUTE, "compute")                                                                          \
    X(MEMORY, "bandwidth")

enum roof_bound {
#define X(name, text) ROOF_##name,
    ROOF_BOUNDS(X)
#undef X
};
const char *roof_bound_text(enum roof_bound bound);

struct roof_time {
    double seconds;
    double through;         // of it: compute and memory
    double fixed;           // of it: launches and steps that nothing hides
    double latency;         // the least that is not fixed
    enum roof_bound bound;  // the longest of the parts
};

// `launch` is the cost of a dispatch, in seconds. seconds is infinite where the card lacks what the
// work needs: matrix units.
struct roof_time roof_time(const struct card *card, double launch, const struct roof_work *work,
                           const struct roof_shares *shares);

// Between which times the work lies on `card`, whatever of compute and memory it was that bounded
// it on `measured`, where the shares are of: each part is scaled by the least and by the largest of
// the ratios of the two cards. The time by roof_time() lies within.
struct roof_range {
    double low, high;
};
struct roof_range roof_range(const struct card *card, const struct card *measured, double launch,
                             const struct roof_work *work, const struct roof_shares *shares);

#endif
