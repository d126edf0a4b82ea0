// SPDX-License-Identifier: Apache-2.0
// The results of `gpurt sweep`; called by read.c.
#ifndef APPS_REPORT_READ_SWEEP_H
#define APPS_REPORT_READ_SWEEP_H

#include <jansson.h>

#include "model.h"

#define REPORT_SWEEP_SCHEMA "gpurt.sweep/1"

// The head adds a sweep of this source to the report, a row a trial to the newest one. NULL, or
// what is wrong.
const char *report_read_sweep(struct report *report, uint32_t source, const json_t *head);
const char *report_read_trial(struct report *report, const json_t *row);

#endif
