// SPDX-License-Identifier: Apache-2.0
// A trajectory of `gpurt play`, and the picture made from it.
#ifndef APPS_PLAY_H
#define APPS_PLAY_H

#include <stdio.h>

#include "gpurt/gpurt.h"

struct play_trip {
    const struct grt_env_info *env;
    uint32_t phase, frames;
    const float *states;  // [frames][env->state]
    double total;         // return
    double good;          // share of the steps
    uint32_t falls;
};

// The number of a state's float, or the first when there is none of that name.
uint32_t play_member(const struct grt_env_info *env, const char *name);

// An animated SVG: the environment from the side and, where it has one, from the front; below a number of the state over
// time. Writes only; the caller looks after errors of the file.
void play_svg(FILE *file, const struct play_trip *trip);

#endif
