// SPDX-License-Identifier: Apache-2.0
// --kernels, --trace and --memory-snapshot: a timeline (gpurt/timeline.h) around what a verb does
// with its device, and what is printed and written of it at the end. --monitor and --metrics: its
// sensors meanwhile (publish/publish.h).
//
//     options_open_device()  ->  watch_begin()     the verb works     watch_close()
#ifndef APPS_WATCH_H
#define APPS_WATCH_H

#include "gpurt/timeline.h"
#include "options.h"

#define WATCH_OPTIONS_COUNT 6
extern const struct option_row watch_options[WATCH_OPTIONS_COUNT];

// Before the device is opened: whether what is to be written can be, as far as one can see; false
// with the sentence.
bool watch_check(const struct options *options);
// On a device that was just opened; nothing when the options ask for nothing.
bool watch_begin(const struct options *options, struct grt_dev *dev);

// The most that the device does: operations and bytes a second; 0: not known.
struct watch_peaks {
    double operations, bytes;
};
typedef struct watch_peaks watch_peaks_fn(struct grt_dev *dev);

// Ends what watch_begin() began, prints and writes it, and closes the device (NULL is fine), when
// everything else made on it is gone. Returns `code`, or if that is 0 what writing came to.
// `peaks` may be NULL.
int watch_close(const struct options *options, struct grt_dev **dev, watch_peaks_fn *peaks,
                int code);

// ---- watch_advice.c ----

#define WATCH_ADVICE_SIZE 512
// What held the work up, and what to do about it, in a sentence or two. `rows` are the kernels, the
// largest first.
void watch_advice(const struct grt_timeline_totals *totals, const struct grt_timeline_kernel *rows,
                  uint32_t count, const struct watch_peaks *peaks, char text[WATCH_ADVICE_SIZE]);
// Share of the peak that a row comes to, or 0 where that is not known: matrix units do more than
// the arithmetic that was measured.
double watch_of_peak(const struct grt_timeline_kernel *row, const struct watch_peaks *peaks);
// Whether a transform takes long for one sample, and what helps.
bool watch_slow_transform(const struct grt_timeline_kernel *row, char text[WATCH_ADVICE_SIZE]);
// The stage that took the most time; GRT_STAGE_COUNT when none took any.
enum grt_stage watch_slowest(const struct grt_timeline_totals *totals);
// A row of the table of kernels; `all`: seconds of all of them together.
void watch_row(const struct grt_timeline_kernel *row, double all, const struct watch_peaks *peaks,
               char text[WATCH_ADVICE_SIZE]);
// What making the batches took, by stage; false: there were none.
bool watch_stages(const struct grt_timeline_totals *totals, char text[WATCH_ADVICE_SIZE]);

#endif
