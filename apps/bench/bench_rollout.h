// SPDX-License-Identifier: Apache-2.0
// Options of `gpurt bench rollout`, a part of struct bench.
#ifndef APPS_BENCH_ROLLOUT_H
#define APPS_BENCH_ROLLOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options/ranges.h"
#include "gpurt/worlds.h"

struct bench;

// Empty for what was not given: the settings before and after tuning, see bench_rollout.c.
struct bench_rollout_options {
    const char *env;
    struct ranges envs, dirs, chunks;
    const char *policies;  // names with commas between
    uint32_t length;       // steps of an episode
    const char *set;       // settings of the environment, NAME=VALUE with commas between
};

// What --set says, in words.
#define BENCH_SETTING_NAME 48
struct bench_worlds_settings {
    char names[GRT_ENV_SETTINGS][BENCH_SETTING_NAME];
    struct grt_env_value values[GRT_ENV_SETTINGS];
    uint32_t count;
};
bool bench_worlds_settings(const char *text, struct bench_worlds_settings *settings);

// An exit code, with the sentence said, when environment or policies have names that do not exist,
// or options do not go together; else -1.
int bench_rollout_options_check(const struct bench_rollout_options *options);
void bench_rollout_options_end(struct bench_rollout_options *options);
// The rows of an environment whose state lies in memory.
bool bench_worlds(struct bench *bench, const struct grt_env_info *env);
// Of them, one with the policy that `gpurt train ppo` begins with.
bool bench_worlds_policy(struct bench *bench, const struct bench_worlds_settings *settings,
                         uint32_t copies);
// What chooses the actions there: bits, in the order of the rows of a size.
#define BENCH_WORLDS_RANDOM 1u
#define BENCH_WORLDS_ACTOR 2u
// 0: a name among them is unknown, and that is said.
uint32_t bench_worlds_policies(const char *names);

#endif
