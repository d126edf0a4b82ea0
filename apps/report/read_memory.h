// SPDX-License-Identifier: Apache-2.0
// Snapshots of memory, which --memory-snapshot writes; called by read.c.
#ifndef APPS_REPORT_READ_MEMORY_H
#define APPS_REPORT_READ_MEMORY_H

#include <jansson.h>

#include "model.h"

#define REPORT_MEMORY_SCHEMA "gpurt.memory/1"

// NULL, or what is wrong with it.
const char *report_read_memory(struct report *report, uint32_t source, const json_t *snapshot);

#endif
