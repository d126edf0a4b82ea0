// SPDX-License-Identifier: Apache-2.0
// Options of `gpurt bench rollout`, a part of struct bench.
#ifndef APPS_BENCH_ROLLOUT_H
#define APPS_BENCH_ROLLOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/ranges.h"

// Empty for what was not given: the settings before and after tuning, see bench_rollout.c.
struct bench_rollout_options {
    const char *env;
    struct ranges envs, dirs, chunks;
    const char *policies;  // names with commas between
    uint32_t length;       // steps of an episode
};

// Whether environment and policies have names that exist; false with the sentence said.
bool bench_rollout_options_known(const struct bench_rollout_options *options);
void bench_rollout_options_end(struct bench_rollout_options *options);

#endif
