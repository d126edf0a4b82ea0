// SPDX-License-Identifier: Apache-2.0
// The file of --directions.
#ifndef APPS_TRAIN_ES_DIRECTIONS_H
#define APPS_TRAIN_ES_DIRECTIONS_H

#include <stdio.h>

#include "gpurt/es.h"

// Begins with {0}: nothing is written.
struct es_directions {
    const char *path;
    FILE *file;
    bool failed;  // lines were lost, and it was said
};
// Appends; false with the sentence.
bool es_directions_open(struct es_directions *directions, const char *path);
// The lines of the newest iteration. What cannot be written is said and given up; false where the
// device failed.
bool es_directions_add(struct es_directions *directions, const struct grt_es *es,
                       uint32_t iteration);
void es_directions_close(struct es_directions *directions);

#endif
