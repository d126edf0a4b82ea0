// SPDX-License-Identifier: Apache-2.0
// Inside runtime/: which commands of a list are timed in which of its runs, where times are dear.
//
// Commands of a list that do the same (one name, the same operations and bytes) are of one kind,
// and each kind has a window that moves on from run to run, so that every one is timed before any
// is timed again:
//
//     kind 0   a b c d e f g      run 0: a b,  run 1: c d,  run 2: e f,  run 3: g a
//     kind 1   x                  run 0: x,                              run 3: x
//
// A time stands for the calls of its kind since the run in which one was timed last. It knows no
// device: commands come with what is known of them, and times are told.
#ifndef GRT_TIMED_WINDOWS_H
#define GRT_TIMED_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "timeline/timeline.h"

#define GRT_WINDOWS_FIRST 64u   // a first run of a list times about so many
#define GRT_WINDOWS_PERIOD 64u  // one of each kind is timed in so many runs at least
#define GRT_NO_WINDOW UINT32_MAX

struct grt_window {
    uint32_t example;       // a command of this kind
    uint32_t members;       // commands of this kind
    uint32_t first, width;  // the window in the newest run, in members
    double earned;          // members that may be timed
    uint64_t owed;          // calls since the run in which one was timed last
    double newest;          // mean seconds of a member in the newest times; NAN: none yet
    double least;           // the least such mean
    double seconds;         // of those told in one run
    uint32_t told;
};

struct grt_windows {
    uint32_t count;          // commands
    uint32_t *kind_of;       // [count]: of each command its window; GRT_NO_WINDOW: never timed
    uint32_t *rank;          // [count]: how many of its kind come before it
    struct grt_window *all;  // [kinds]
    uint32_t kinds;
    uint32_t timed;  // commands that have a window
    bool apart;      // commands can be timed apart; else all of a run are, or none
    bool begun;      // a run was chosen since sums began
};

// `marks`: commands that take no time. False when out of memory, and then
// grt_windows_finish() frees what there is.
bool grt_windows_begin(struct grt_windows *w, const struct grt_command_time *commands,
                       const bool *marks, uint32_t count, bool apart);
void grt_windows_finish(struct grt_windows *w);

// Sums begin anew: the next run is a first one. Windows go on where they were.
void grt_windows_restart(struct grt_windows *w);
// Seconds of a run; NAN: of some kind no time is known yet.
double grt_windows_seconds(const struct grt_windows *w);
// Chooses for the next run: chosen[count], and stands[kinds], the calls that a time of each kind
// stands for. `share`: of all commands, what may be timed from run to run; from 1 on all are.
// Returns how many were chosen.
uint32_t grt_windows_choose(struct grt_windows *w, double share, bool *chosen, double *stands);
// Times of such a run: begin and end of each command, of which only those that were chosen count.
// One that has no time (begin NAN) is as if it had not been chosen.
void grt_windows_tell(struct grt_windows *w, const bool *chosen, const double *begin,
                      const double *end);

#endif
