// SPDX-License-Identifier: Apache-2.0
// The vendor's own counter of how busy a GPU is: NVIDIA's management library, or the file that
// AMD's kernel driver has for it.
#ifndef APPS_BENCH_COUNTER_H
#define APPS_BENCH_COUNTER_H

#include "gpurt/gpurt.h"

struct bench_counter {
    void *library;  // of NVIDIA
    void *device;
    int (*read)(void *device, unsigned *busy_and_memory);
    int (*end)(void);
    char path[128];  // of AMD
};

// Finds the counter of a device by its PCI address; one that has none reads as unknown.
void bench_counter_open(struct bench_counter *counter, const struct grt_dev_info *info);
void bench_counter_close(struct bench_counter *counter);
// Share of the last sampling period (NVIDIA: 1/6 s to 1 s) in which the GPU was busy; negative:
// unknown.
double bench_counter_read(const struct bench_counter *counter);

#endif
