// SPDX-License-Identifier: Apache-2.0
// Inside runtime/run: messages of an event file, for the rows of a log (runlog.c) and for what
// TensorBoard has besides (runlog_board.c).
#ifndef GRT_RUNLOG_PARTS_H
#define GRT_RUNLOG_PARTS_H

#include <stdio.h>

#include "gpurt/runlog.h"

struct grt_runlog {
    FILE *jsonl;
    FILE *events;
    char *jsonl_path;
    char *events_path;
    bool failed;
};

struct message {
    unsigned char bytes[16384];
    size_t size;
    bool full;
};
void message_put(struct message *m, const void *data, size_t size);
void message_put_varint(struct message *m, uint64_t value);
void message_put_little(struct message *m, uint64_t bits, uint32_t size);
void message_put_double(struct message *m, uint32_t field, double value);
void message_put_float(struct message *m, uint32_t field, float value);
void message_put_bytes(struct message *m, uint32_t field, const void *data, size_t size);

double runlog_now(void);  // seconds since 1970
void runlog_give_up(struct grt_runlog *log, FILE **file, const char *path);
// An event with this summary, where events are written.
void runlog_summary(struct grt_runlog *log, double time, uint64_t step,
                    const struct message *summary);

#endif
