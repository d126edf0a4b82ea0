// SPDX-License-Identifier: Apache-2.0
// Inside runtime/comm: threads that wait for parts of one work after another.
#ifndef GRT_COMM_TEAM_H
#define GRT_COMM_TEAM_H

#include <stdbool.h>
#include <stdint.h>

struct team;

// Threads of a rank, its own among them, that so many ranks of this machine have cores for.
uint32_t team_size(uint32_t ranks);

// NULL where there is not even one; fewer where the system refuses more.
struct team *team_create(uint32_t threads);
// Behind the work that it has.
void team_destroy(struct team **team);

// Begins part(context, 1), part(context, 2) ... part(context, parts), in turns where there are
// fewer threads. One work at a time.
void team_begin(struct team *team, uint32_t parts, void (*part)(void *context, uint32_t number),
                void *context);
// Whether all parts are done; waits a little for one that is not.
bool team_rests(struct team *team);

#endif
