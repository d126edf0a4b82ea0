// SPDX-License-Identifier: Apache-2.0
// A look as lines for a screen: devices with the course of their values, processes, warnings.
#ifndef APPS_MONITOR_VIEW_H
#define APPS_MONITOR_VIEW_H

#include "look.h"
#include "screen.h"

// Lines as screen_show() takes them, freed by the caller; NULL: out of memory. Where not all fits,
// a device has a line of a table in place of a block.
char *view_text(const struct look *look, struct screen_size size, double interval);

// A line of bars, the newest value last, each of `columns` at most; with `unicode` eighths of a
// block, else plain characters. Values are shares; those that are not known are blank.
void view_course(const struct look_past *past, size_t columns, bool unicode, char *text,
                 size_t size);

#endif
