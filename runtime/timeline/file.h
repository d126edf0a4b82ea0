// SPDX-License-Identifier: Apache-2.0
// Inside runtime/timeline: JSON of any length, written in pieces to a file that appears when whole.
#ifndef GRT_TIMELINE_FILE_H
#define GRT_TIMELINE_FILE_H

#include "base/whole_file.h"
#include "timeline.h"

struct timeline_file {
    struct grt_whole_file file;
    bool good;  // until something cannot be written, which was said
    uint32_t used;
    char buffer[1 << 16];
};

// Of a timeline that has ended; else, and when the file cannot be created, NULL with the sentence.
struct timeline_file *timeline_file_open(const struct grt_timeline *t, const char *path,
                                         const char *call);
void timeline_put(struct timeline_file *file, const char *format, ...) GRT_PRINTF(2, 3);
// Between quotes, escaped; what is no UTF-8 becomes '?'.
void timeline_put_text(struct timeline_file *file, const char *text);
// Frees it too.
bool timeline_file_close(struct timeline_file *file);

#endif
