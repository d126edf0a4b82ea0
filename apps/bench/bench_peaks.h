// SPDX-License-Identifier: Apache-2.0
// What a device does at most, for whoever has a device and no bench.
#ifndef APPS_BENCH_PEAKS_H
#define APPS_BENCH_PEAKS_H

#include "cli/options/watch.h"

// Measured, in well under a second: f32 operations in registers, and bytes read and written by a
// copy that no cache holds.
watch_peaks_fn bench_peaks;

#endif
