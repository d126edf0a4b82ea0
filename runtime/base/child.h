// SPDX-License-Identifier: Apache-2.0
// A child process for work that may crash or hang inside a driver: it is asked and answers through
// pipes, in plain structs, and whatever happens to it costs one answer.
//
//     parent --send--> | pipe | --receive--> child     the same two calls on both sides; the child
//     parent <-receive- | pipe | <--send---- child     ends when its parent does
//
// The child has one thread, a copy of the one that forked: it must not use what other threads of
// the parent may be in the middle of. So it opens a driver only where none is open in the parent.
#ifndef GRT_CHILD_H
#define GRT_CHILD_H

#include <stddef.h>

#include "gpurt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// One end of the two pipes. pid is 0 in the child, and -1 where there is none.
struct grt_child {
    int pid;
    int from, to;
};
#define GRT_NO_CHILD                                                                               \
    (struct grt_child) {                                                                           \
        -1, -1, -1                                                                                 \
    }

// What the child does; its exit code. It has no stdout and no stderr of its own: a driver's words
// are nobody's data.
typedef int grt_child_fn(struct grt_child *parent, void *context);

// False when the system refuses; `why` (256 bytes) says it.
bool grt_child_start(struct grt_child *child, grt_child_fn *fn, void *context, char *why);

bool grt_child_send(const struct grt_child *child, const void *data, size_t size);

enum grt_child_news { GRT_CHILD_ANSWERED, GRT_CHILD_ENDED, GRT_CHILD_LATE, GRT_CHILD_STOPPED };
// Waits for `size` bytes, at most `seconds` (0: for ever), and no longer than `stop` (may be NULL)
// says false; it is asked whenever a signal arrives.
enum grt_child_news grt_child_receive(const struct grt_child *child, void *data, size_t size,
                                      double seconds, bool (*stop)(void));
// Ends it, if it still runs, and forgets it. `how` (160 bytes, may be NULL) says how it ended by
// itself: "crashed (signal 11, Segmentation fault)"; "" when it was still running.
void grt_child_end(struct grt_child *child, char *how);

// Whether a call comes back at all: `fn` is called in a child, and what it says is nobody's
// business. False with `how` (160 bytes) it ended instead: "crashed (signal 11, Segmentation
// fault)", "did not come back within 60 s".
bool grt_child_survives(void (*fn)(void *context), void *context, double seconds, char *how);

#ifdef __cplusplus
}
#endif
#endif
