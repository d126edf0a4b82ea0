// SPDX-License-Identifier: Apache-2.0
// A look at the machine, again and again: sensors, the gpurt processes that run, which of them is
// on which device, and what was seen before.
#ifndef APPS_MONITOR_LOOK_H
#define APPS_MONITOR_LOOK_H

#include "sensors/sensors.h"
#include "publish/state.h"

#define LOOK_PAST 256

// The newest last.
struct look_past {
    size_t count;
    double values[LOOK_PAST];
};

struct look_process {
    struct state state;
    int device;      // of the sample; -1: none of them
    double cpus;     // that it kept busy since the look before
    double seconds;  // of CPUs, in all
};

struct look {
    struct sensors *sensors;
    const char *root;
    struct sensor_sample sample;
    struct look_past busy[SENSOR_DEVICES];    // utilisation
    struct look_past filled[SENSOR_DEVICES];  // share of the memory
    struct look_process processes[STATE_MOST];
    size_t process_count;
};

// Takes a first look. NULL: out of memory.
struct look *look_open(const struct sensors_desc *desc);
void look_again(struct look *look);
void look_close(struct look **look);

// Share of the memory in use; NaN: not told.
double look_filled(const struct sensor_device *device);
// The mean of the newest `most` values that are known; NaN: there are none.
double look_mean(const struct look_past *past, size_t most);

// ---- aims ----

// Ranges that training should be in, by the guides: a GPU that works less than 70 % of the time
// waits, 90 % and more is best; memory filled by less than 60 % has room for larger batches, above
// 80 % it may run out.
#define LOOK_BUSY_LEAST 0.70
#define LOOK_FILLED_LEAST 0.60
#define LOOK_FILLED_MOST 0.80
#define LOOK_AIM_SAMPLES 20  // a mean over so many is judged

#define LOOK_WARNINGS 2
#define LOOK_WARNING 256
// What is out of range on a device on which a gpurt process works, and the remedy; how many.
size_t look_warnings(const struct look *look, size_t device,
                     char warnings[LOOK_WARNINGS][LOOK_WARNING]);

#endif
