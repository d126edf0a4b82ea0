// SPDX-License-Identifier: Apache-2.0
// The state of a process and what sensors tell, as the text that Prometheus reads: for the folder
// of node_exporter's collector "textfile", which wants files that appear whole.
#ifndef APPS_PUBLISH_METRICS_H
#define APPS_PUBLISH_METRICS_H

#include <stdbool.h>

#include "sensors/sensors.h"
#include "state.h"

// False with the sentence when it cannot be written.
bool metrics_write(const char *path, const struct state *state, const struct sensor_sample *sample,
                   bool running);

#endif
