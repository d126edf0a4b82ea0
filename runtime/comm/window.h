// SPDX-License-Identifier: Apache-2.0
// Inside runtime/comm: memory that all ranks of one machine see, in place of messages.
//
//     file of rank 0   | head | box 0 | box 1 |      each rank writes into its own file alone,
//     file of rank 1   | head | box 0 | box 1 |      and reads those of all
//
// An exchange is: fill the own box, come, and once all have come read the boxes of all. The next
// one has the other box, so that nobody waits for the readers: who fills a box for the second time
// knows by the exchange between that all have come to that, and have read.
//
// Where there are more cores than ranks, each box is cut into lanes, in which threads exchange
// beside each other: what is said of a box holds for each lane of it.
//
// The files have no name, so nothing of them is left, whichever way a rank ends.
#ifndef GRT_COMM_WINDOW_H
#define GRT_COMM_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

// Bytes of a box: what two ranks have in it stays in the caches from writing to reading.
#define WINDOW_BOX (1u << 20)
#define WINDOW_LANES 8  // at most

struct window;

// What the others need to know of a rank to see its file. Numbers of processes and names of
// machines are not unique where there are containers: the token tells this file from another job's.
struct window_key {
    int32_t pid, file;  // file below 0: it has none
    uint64_t token;     // drawn by the system, and in the file too
};

// The own file; NULL where the system has no such files. Says nothing: there are messages.
struct window *window_create(uint32_t rank, uint32_t ranks);
void window_destroy(struct window **window);

struct window_key window_key(const struct window *window);
// Opens those of all ranks. False: one cannot be seen from here, or what is there is another file.
bool window_open(struct window *window, const struct window_key *keys);

// Before the first exchange, on all ranks alike; one where nobody says so.
void window_cut(struct window *window, uint32_t lanes);
uint32_t window_lanes(const struct window *window);
// Bytes of a lane's box.
uint64_t window_room(const struct window *window);

// This rank's box of the exchange that comes, and those of all in the one that is under way.
void *window_own(struct window *window, uint32_t lane);
const void *window_box(const struct window *window, uint32_t lane, uint32_t rank);
// What is in the own box is whole.
void window_come(struct window *window, uint32_t lane);
// Whether all have come as often; waits a little for one that has not.
bool window_all_came(struct window *window, uint32_t lane);
// This rank comes no more: others wait in vain.
void window_leave(struct window *window);
bool window_left(const struct window *window);
// Behind the last time that all came for an exchange: the next one has the other box.
void window_turn(struct window *window, uint32_t lane);

#endif
