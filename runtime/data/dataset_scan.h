// SPDX-License-Identifier: Apache-2.0
// Inside runtime/data: one look at every row of a data set.
#ifndef GRT_DATASET_SCAN_H
#define GRT_DATASET_SCAN_H

#include "dataset_parts.h"

struct grt_scan_desc {
    bool x, y;         // what is read of a row
    bool values;       // numbers that are not finite are refused,
    bool drop;         // or their rows listed;
    bool shares;       // targets outside 0 to 1 are refused
    bool weights;      // so are sample weights that are negative or not finite
    bool classes;      // the largest and the smallest class number are wanted
    bool moments;      // mean and deviation of the features of rows that are trained on
    uint32_t threads;  // 0: one for each processor, at most 16
    grt_dataset_watch_fn *watch;
    void *context;
};

struct grt_findings {
    uint64_t *dropped;  // rows, ascending
    uint64_t dropped_count, capacity;
    uint32_t most_class, least_class;
    float most_weight;
    double *mean, *square;  // [features]; square: sum of squares about the mean
    uint64_t points;        // that these are of
};

// False with the sentence; then nothing is left to finish.
bool grt_scan(struct grt_dataset *data, const struct grt_scan_desc *desc,
              struct grt_findings *found);
void grt_findings_finish(struct grt_findings *found);

#endif
