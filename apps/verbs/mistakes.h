// SPDX-License-Identifier: Apache-2.0
// The worst mistakes of a classification as a picture, for `gpurt eval --mistakes FILE`.
#ifndef APPS_MISTAKES_H
#define APPS_MISTAKES_H

#include "gpurt/dataset.h"
#include "gpurt/supervised.h"

// A line for each, in .svg with what it is and what it was taken for, by the names of the file (may
// be NULL). Returns an exit code, a failure said.
int mistakes_draw(const struct grt_classified *classified, const struct grt_file_info *names,
                  const char *path);
// The name of a class, or its number.
void mistakes_name(const struct grt_file_info *names, uint32_t class, char text[40]);

#endif
