// SPDX-License-Identifier: Apache-2.0
// `gpurt play`: a trajectory, and the picture made from it.
#ifndef APPS_PLAY_H
#define APPS_PLAY_H

#include <jansson.h>
#include <stdio.h>

#include "cli/options/options.h"
#include "gpurt/archive.h"
#include "gpurt/gpurt.h"
#include "gpurt/rollout.h"

struct play_trip {
    const struct grt_env_info *env;
    uint32_t phase, frames;
    const float *states;   // [frames][env->state], each after a step
    const float *seen;     // [frames][env->obs], as env_observe() gives them
    const float *actions;  // [frames][env->act], that follow from these
    const float *rewards;  // [frames]
    const float *shapes;   // [frames][env->shapes][GRT_TRACE_SHAPE]
    double total;          // return
    double good;           // share of the steps
    uint32_t falls;
};

// The number of a state's float, or the first when there is none of that name.
uint32_t play_member(const struct grt_env_info *env, const char *name);

// The actions of a checkpoint's policy for some observations, in double precision by its formula;
// NULL without memory. The picture alone uses them: what the device did may differ in the last
// place.
float *play_actions(const struct grt_policy *policy, const struct grt_env_info *env,
                    const struct grt_archive *archive, const float *seen, uint32_t frames);

// Pixels that play_any() takes.
int play_any_height(const struct play_trip *trip);
// Any environment: its shapes, then charts of all states, observations, actions and rewards.
void play_any(FILE *file, const struct play_trip *trip, int width, int top, double seconds);

// The trajectory as JSON; false on errors.
bool play_json(FILE *file, const struct play_trip *trip);
// Rows of numbers, [frames][width], as JSON: what is no number is null.
json_t *play_rows(const float *rows, uint32_t frames, uint32_t width);

// A policy of `gpurt train ppo`, played. words[0] is the environment; the others are KEY=VALUE.
struct play_ppo_desc {
    const struct options *common;
    struct grt_archive *archive;  // becomes its own
    const char **words;
    size_t word_count;
    bool json;
    uint32_t phase, steps, start;  // 0: the checkpoint's, an episode, the first
    const uint64_t *seed;          // of the starts; NULL: that of `gpurt eval`
};
// Returns an exit code, the mistake said.
int play_ppo(const struct play_ppo_desc *desc);

// An animated SVG: the environment from the side and, where it has one, from the front; below a
// number of the state over time. Writes only; the caller looks after errors of the file.
void play_svg(FILE *file, const struct play_trip *trip);

#endif
