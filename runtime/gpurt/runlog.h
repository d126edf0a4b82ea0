// SPDX-License-Identifier: Apache-2.0
// The log of a run: rows of numbers, each written as one JSON object on a line of a file and, the
// numbers of it, as scalars of a TensorBoard event file.
//
//     {"event": "train", "time": 1763182800.1, "step": 200, "loss": 0.0173, "samples_per_s": 512}
//     TensorBoard:  train/loss, train/samples_per_s at step 200
//
// Event files are records of TFRecord: length, its masked CRC-32C, an Event message, its CRC. Both
// files are appended to row by row, so what was logged survives a crash; a log that cannot be
// written any more is said once and does not end a run.
#ifndef GRT_RUNLOG_H
#define GRT_RUNLOG_H

#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct grt_runlog_desc {
    const char *jsonl;        // file, appended to; NULL or "": none
    const char *tensorboard;  // folder, made when missing; NULL or "": none
};
#define grt_runlog_desc(...) GRT_DESC(struct grt_runlog_desc, __VA_ARGS__)

struct grt_runlog;

// Whether the files can be made, as far as that is known without making them; else a sentence
// (GRT_NO_OUTPUT). For who wants to know before he touches anything.
GRT_API bool grt_runlog_check(const struct grt_runlog_desc *desc);
// NULL when a file cannot be made (GRT_NO_OUTPUT). Without either name a log that takes rows and
// forgets them.
GRT_API struct grt_runlog *grt_runlog_create(const struct grt_runlog_desc *desc);
GRT_API void grt_runlog_destroy(struct grt_runlog **log);
// Whether rows were lost: a file could not be written any more.
GRT_API bool grt_runlog_failed(const struct grt_runlog *log);

// One entry of a row: a number, or a text when text is not NULL (texts are for JSON only). NaN and
// infinities are texts in JSON, which has no such numbers.
struct grt_runlog_field {
    const char *name;
    double number;
    const char *text;
};
GRT_API void grt_runlog_row(struct grt_runlog *log, const char *event, uint64_t step,
                            const struct grt_runlog_field *fields, size_t count);
#define GRT_RUNLOG_ROW(log, event, step, ...)                                                      \
    grt_runlog_row(log, event, step, (const struct grt_runlog_field[]){__VA_ARGS__},               \
                   sizeof((const struct grt_runlog_field[]){__VA_ARGS__}) /                        \
                       sizeof(struct grt_runlog_field))

// For TensorBoard alone: the settings that were given, for its page of hyperparameters, and how the
// run ended; and how the finite ones of some numbers are spread, in 30 bins.
GRT_API void grt_runlog_settings(struct grt_runlog *log, const struct grt_config *config);
GRT_API void grt_runlog_ended(struct grt_runlog *log, bool good);
GRT_API void grt_runlog_histogram(struct grt_runlog *log, uint64_t step, const char *name,
                                  const float *numbers, uint64_t count);

// CRC-32C of some bytes (Castagnoli), continued from `crc` (0 begins), and TFRecord's masked form.
GRT_API uint32_t grt_crc32c(const void *data, size_t size, uint32_t crc);
GRT_API uint32_t grt_crc32c_masked(const void *data, size_t size);

#ifdef __cplusplus
}
#endif
#endif
