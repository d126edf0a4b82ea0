// SPDX-License-Identifier: Apache-2.0
// What goes on beside the work of a command that has a device: a thread that
//
//     publishes   what is worked on, where, and how far it is, for `gpurt monitor` (state.h)
//     samples     the sensors of the device, with --monitor: means for the log and the report
//     keeps       a file of metrics for Prometheus up to date, with --metrics (metrics.h)
//
// once every half second. The work itself only leaves its numbers here, which are copied. There is
// one device to a process, and so one of these.
#ifndef APPS_PUBLISH_H
#define APPS_PUBLISH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "gpurt/device.h"
#include "state.h"

#define PUBLISH_SECONDS 0.5

struct publish_desc {
    const char *app;  // "train supervised"
    const struct grt_dev_info *device;
    bool sample;          // --monitor
    const char *metrics;  // --metrics, or NULL
};

// A second call changes nothing. Where there can be no thread there is nobody to publish.
void publish_begin(const struct publish_desc *desc);
// The numbers of a state, and the words for its rate and score; what it says of the device is left
// out.
void publish_tell(const struct state *state);
// Ends it and takes what was published away. A sensor that does not answer is left behind.
void publish_end(void);

// What the sensors told since the last call, or the beginning; NaN: not available.
struct publish_means {
    double seconds;
    uint32_t samples;
    double utilisation, power, clock;  // means
    double temperature, memory_used;   // the highest
    double memory_total;
    double energy;       // joules in that time: by the device's counter, else from its power
    const char *reader;  // who told; "": nobody
};
// From here on: what was before, such as compiling kernels, is not counted.
void publish_restart(void);
// False: without --monitor there are none.
bool publish_take(struct publish_means *means);
// The same since the beginning, without beginning anew.
bool publish_whole(struct publish_means *means);

// ---- means.c ----

#define PUBLISH_TEXT 256
// "busy 93 %, memory 72 of 80 GiB, ..., energy 1234 J in 12.3 s", with what is not available.
void publish_means_text(const struct publish_means *means, char text[PUBLISH_TEXT]);
// The same for programs: null for what is not available.
json_t *publish_means_json(const struct publish_means *means);

#endif
