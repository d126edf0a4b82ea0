// SPDX-License-Identifier: Apache-2.0
// The simplest answer to a classification: always the class that is the most frequent one.
#include <stdlib.h>

#include "base/log.h"
#include "task_parts.h"

#define AT_ONCE 65536

// The class of each row of the file: the targets, opened as if they were inputs, which no other
// array is read for.
static uint32_t *read_classes(const struct grt_task *task) {
    const struct grt_config_names *names = &task->config.targets;
    const char *name = names->count > 0 && !task->source.columns ? names->values[0] : "y";
    uint64_t rows = task->info.file_rows, done = 0;
    uint32_t *classes = malloc(rows * sizeof *classes);
    if (!classes) {
        grt_fail(GRT_NO_MEMORY, "no host memory for the classes of %llu rows",
                 (unsigned long long)rows);
        return NULL;
    }
    struct grt_dataset *data = grt_dataset_open(
        grt_dataset_desc(.path = task->source.path, .shown = task->config.data, .inputs = &name,
                         .input_count = 1, .no_targets = true, .check_late = true));
    struct grt_loader *loader =
        data ? grt_loader_create(
                   grt_loader_desc(.data = data, .part = GRT_PART_ALL,
                                   .batch = (uint32_t)(rows < AT_ONCE ? rows : AT_ONCE)))
             : NULL;
    bool good = loader != NULL;
    while (good && done < rows) {
        struct grt_batch batch;
        good = grt_loader_next(loader, &batch);
        for (uint32_t i = 0; good && i < batch.rows && done < rows; i++) {
            classes[done++] = (uint32_t)batch.x[i];
        }
        if (good) {
            grt_loader_release(loader, &batch);
        }
    }
    grt_loader_destroy(&loader);
    grt_dataset_close(&data);
    if (!good) {
        free(classes);
        classes = NULL;
    }
    return classes;
}

// Adds up the classes of a loader's rows.
static bool count(const struct grt_loader *loader, const uint32_t *classes, uint32_t class_count,
                  uint64_t *counts) {
    uint64_t rows = grt_loader_info(loader).rows;
    uint32_t *order = malloc(AT_ONCE * sizeof *order);
    bool good = order != NULL;
    if (!order) {
        grt_fail(GRT_NO_MEMORY, "no host memory for an order of rows");
    }
    for (uint64_t first = 0; good && first < rows; first += AT_ONCE) {
        uint64_t some = rows - first < AT_ONCE ? rows - first : AT_ONCE;
        good = grt_loader_order(loader, 0, first, some, order);
        for (uint64_t i = 0; good && i < some; i++) {
            counts[classes[order[i]] < class_count ? classes[order[i]] : class_count]++;
        }
    }
    free(order);
    return good;
}

bool grt_task_frequent(const struct grt_task *task, const struct grt_loader *train,
                       const struct grt_loader *check, double *share) {
    if (!task || !train || !check || !share || task->info.classes == 0) {
        return grt_fail(GRT_INVALID, "grt_task_frequent: classes and loaders are wanted");
    }
    uint32_t class_count = task->info.classes, most = 0;
    uint64_t *counts = calloc(2 * (class_count + 1ull), sizeof *counts);
    uint64_t *checked = counts ? counts + class_count + 1 : NULL;
    uint32_t *classes = counts ? read_classes(task) : NULL;
    bool good = (counts || grt_fail(GRT_NO_MEMORY, "no host memory to count classes")) && classes &&
                count(train, classes, class_count, counts) &&
                count(check, classes, class_count, checked);
    for (uint32_t c = 1; good && c < class_count; c++) {
        most = counts[c] > counts[most] ? c : most;
    }
    if (good) {
        *share = (double)checked[most] / (double)grt_loader_info(check).rows;
    }
    free(classes);
    free(counts);
    return good;
}
