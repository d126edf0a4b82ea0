// SPDX-License-Identifier: Apache-2.0
// Events of a training log as curves; called by read.c.
#ifndef APPS_REPORT_READ_LOG_H
#define APPS_REPORT_READ_LOG_H

#include <jansson.h>

#include "model.h"

// Where the log stands. Zero at the start of a file.
struct report_log {
    bool begun;
    uint32_t source;
    uint32_t contender;
    char group[REPORT_TEXT];
    char name[REPORT_TEXT];
    // By enum of read_log.c, one more than the number of the curve; 0: none yet.
    size_t curves[5];
    double step[5];
};

// Always true: what an event lacks is left out of the curves.
bool report_log_event(struct report_log *log, struct report *report, const char *file,
                      bool baseline, json_t *event);

#endif
