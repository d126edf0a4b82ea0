// SPDX-License-Identifier: Apache-2.0
// An episode of an environment whose state lies in device memory, and the picture made from it.
#ifndef APPS_PLAY_WORLD_H
#define APPS_PLAY_WORLD_H

#include <stdio.h>

#include "gpurt/worlds.h"

struct play_world {
    const char *title;
    uint32_t steps;                       // that were taken; frames are one more, with the start
    double dt;                            // seconds of a step
    uint32_t shapes;                      // of a frame
    const struct grt_drawn_shape *drawn;  // [frames][shapes]
};

// An animated SVG: the shapes in the environment's own coordinates, tracks of agents behind them,
// goals that are filled when they are reached; below, a bar of the time with a mark for each of
// these, and a counter of steps. False without memory; errors of the file are the caller's.
bool play_world_svg(FILE *file, const struct play_world *world);

#endif
