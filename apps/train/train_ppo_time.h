// SPDX-License-Identifier: Apache-2.0
// The table of where iterations of PPO spend their time: a row for each phase, one for what is left
// to the host, one for the whole. The shares of all but the last add up to 1.
#ifndef APPS_TRAIN_PPO_TIME_H
#define APPS_TRAIN_PPO_TIME_H

#include "gpurt/ppo.h"

#define PPO_PARTS (GRT_PPO_PHASE_COUNT + 2)

struct ppo_part {
    const char *name;
    double seconds, share;
    double busy;  // share of its time that the device computed
};

// From phases by the clock on the wall and by the device's, and the seconds of the whole.
void ppo_parts(const struct grt_ppo_times *times, double seconds, struct ppo_part parts[PPO_PARTS]);
// Phases of a recorded iteration, or of several: what the environment alone takes is a part of
// `acting`. The device does one after the other without the host, so both clocks agree.
struct grt_ppo_times ppo_times(const struct grt_ppo_report *report, double environment);

#endif
