// SPDX-License-Identifier: Apache-2.0
// Inside runtime/comm: the other ranks of this machine, as processes.
#ifndef GRT_COMM_PEERS_H
#define GRT_COMM_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#define PEER_LOOK_SECONDS 0.25  // between looks at the others
#define PEER_STOPPED_LOOKS 8    // so often stopped is lost

// Of all that ranks tell each other: another number wherever that changes in size or order.
#define PEER_PROTOCOL 5u
// The first words of each rank. Their size and order never change, so that ranks of other builds
// can be told apart before anything is exchanged whose size they do not share.
struct peer_hello {
    char magic[8];  // "gpurt"
    uint32_t protocol;
    char version[20];
    char host[96];
};
_Static_assert(sizeof(struct peer_hello) == 128, "the size of the first words never changes");

void peer_greet(struct peer_hello *hello);

// What each rank tells the others when they meet.
struct peer {
    char machine[144];  // the same text: process numbers mean the same
    char host[64];
    char device[96];
    char version[16];
    // When the process began, as /proc tells it: another one may get its number. 0: not known.
    uint64_t began;
    int32_t pid;
    uint32_t pad;
};

void peer_describe(struct peer *peer, const char *device);

enum peer_state { PEER_RUNS, PEER_STOPPED, PEER_GONE };
// Of a process of this machine.
enum peer_state peer_look(const struct peer *peer);
#define PEER_ENDED UINT32_MAX  // in place of looks: one that was stopped, and a rank has ended it
// Looks in a row at which it was stopped.
void peer_count_stopped(enum peer_state state, uint32_t *looks);
// Ends one that is stopped still: nobody waits for it any more. False: it is not, or not ours.
bool peer_end_stopped(const struct peer *peer);

#endif
