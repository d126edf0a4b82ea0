// SPDX-License-Identifier: Apache-2.0
// What only the values of a data set tell, found before anything is made for a run. Answers are
// kept beside compiled kernels, under a key that names the file, its size and when it was changed,
// for files large enough that it matters; what is not known yet takes one pass over the rows, and a
// second one only where rows are left out and features normalised.
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "base/log.h"
#include "dataset_scan.h"

#define KEEP_FROM (1u << 20)  // bytes of a file: smaller ones are looked through in no time

// ---- answers kept ----

#define KEY_SIZE 9216

// `what` is of the file alone, or, with `parted`, of the rows that are trained on.
static void make_key(const struct grt_dataset *data, const char *what, bool parted,
                     char key[KEY_SIZE]) {
    const struct grt_file *file = &data->file;
    int n = snprintf(key, KEY_SIZE, "gpurt scan 3 %s\n%llu %llu %llu %lld.%09lld\n", what,
                     (unsigned long long)file->device, (unsigned long long)file->inode,
                     (unsigned long long)file->bytes, (long long)file->changed,
                     (long long)file->changed_ns);
    if (parted) {
        n += snprintf(key + n, KEY_SIZE - (size_t)n, "%llu %llu %llu\n",
                      (unsigned long long)data->order.units,
                      (unsigned long long)data->order.validation_units,
                      (unsigned long long)data->order.split.keys[0]);
    }
    for (uint32_t i = 0; i < data->input_count + data->target_count && n < KEY_SIZE; i++) {
        n += snprintf(key + n, KEY_SIZE - (size_t)n, "%s\n", data->arrays[i].name);
    }
}

static void *recall(const struct grt_dataset *data, const char *what, bool parted, size_t *size) {
    char key[KEY_SIZE];
    *size = 0;
    if (data->file.bytes < KEEP_FROM) {
        return NULL;
    }
    make_key(data, what, parted, key);
    return grt_cache_load(key, size);
}

static void keep(const struct grt_dataset *data, const char *what, bool parted, const void *answer,
                 size_t size) {
    char key[KEY_SIZE];
    if (data->file.bytes < KEEP_FROM) {
        return;
    }
    make_key(data, what, parted, key);
    grt_cache_store(key, answer, size);
}

// Rows that are not finite; the first number is how many follow, so that no answer is empty.
static bool recall_dropped(struct grt_dataset *data, bool drop) {
    size_t size;
    uint64_t *known = recall(data, "not finite", false, &size);
    bool good = known && size >= sizeof *known && size == (known[0] + 1) * sizeof *known &&
                (drop || known[0] == 0);
    if (good && drop) {
        data->order.dropped_count = known[0];
        memmove(known, known + 1, size - sizeof *known);
        data->dropped = known;
        data->order.dropped = known;
        return true;
    }
    free(known);
    return good;
}

static void keep_dropped(const struct grt_dataset *data, const struct grt_findings *found) {
    uint64_t count = found->dropped_count;
    uint64_t *answer = malloc((count + 1) * sizeof *answer);
    if (!answer) {
        return;
    }
    answer[0] = count;
    if (count > 0) {
        memcpy(answer + 1, found->dropped, count * sizeof *answer);
    }
    keep(data, "not finite", false, answer, (count + 1) * sizeof *answer);
    free(answer);
}

// Whether it is known that targets are what they are to be.
static bool recall_good(const struct grt_dataset *data, const char *what) {
    size_t size;
    void *known = recall(data, what, false, &size);
    free(known);
    return known != NULL;
}

// The largest class number and the smallest.
static bool recall_classes(struct grt_dataset *data, uint32_t *classes) {
    size_t size;
    uint32_t *known = recall(data, "classes", false, &size);
    bool good = known && size == 2 * sizeof *known && (*classes == 0 || *known < *classes);
    if (good) {
        *classes = *classes > 0 ? *classes : known[0] + 1;
        data->info.least_class = known[1];
    }
    free(known);
    return good;
}

static bool recall_weights(struct grt_dataset *data) {
    size_t size;
    float *known = recall(data, "most weight", false, &size);
    bool good = known && size == sizeof *known;
    if (good) {
        frexpf(*known, &data->weight_exponent);
    }
    free(known);
    return good;
}

static bool recall_moments(struct grt_dataset *data) {
    uint32_t features = data->info.features;
    size_t size, bytes = 2 * (size_t)features * sizeof(double);
    double *known = recall(data, "moments", true, &size);
    bool good = known && size == bytes;
    if (good) {
        memcpy(data->mean, known, bytes);  // std lies behind it
    }
    free(known);
    return good;
}

// ---- looking ----

static void take_moments(struct grt_dataset *data, const struct grt_findings *found) {
    uint32_t features = data->info.features;
    for (uint32_t k = 0; k < features; k++) {
        double variance = found->points > 0 ? found->square[k] / (double)found->points : 0;
        // A feature that never changes, or by less than f32 has, stays what it is, less its mean.
        double deviation = sqrt(variance > 0 ? variance : 0);
        data->mean[k] = (float)found->mean[k];
        data->std[k] = deviation >= FLT_MIN ? (float)deviation : 1;
    }
    // f32 is fine enough for all but the means of what is not.
    for (uint32_t i = 0; i < data->input_count; i++) {
        const struct grt_array *array = &data->arrays[i];
        uint32_t first = data->feature_at[i];
        uint64_t count = array->shape[2] * (data->flat ? array->shape[1] : 1);
        if (grt_element_is_wide(array->element.type)) {
            memcpy(data->mean + first, found->mean + first, count * sizeof *data->mean);
        }
    }
    keep(data, "moments", true, data->mean, 2 * (size_t)features * sizeof(double));
}

static void take(struct grt_dataset *data, const struct grt_scan_desc *scan, bool all_values,
                 struct grt_findings *found, uint32_t *classes) {
    if (all_values) {
        keep_dropped(data, found);
    }
    if (scan->drop) {
        data->dropped = found->dropped;
        data->order.dropped = found->dropped;
        data->order.dropped_count = found->dropped_count;
        found->dropped = NULL;
    }
    if (scan->shares) {
        keep(data, "shares", false, "1", 1);
    }
    if (scan->weights) {
        keep(data, "most weight", false, &found->most_weight, sizeof found->most_weight);
        frexpf(found->most_weight, &data->weight_exponent);
    }
    if (scan->classes) {
        const uint32_t both[2] = {found->most_class, found->least_class};
        keep(data, "classes", false, both, sizeof both);
        data->info.least_class = found->least_class;
        *classes = *classes > 0 ? *classes : found->most_class + 1;
    }
    if (scan->moments) {
        take_moments(data, found);
    }
}

static bool any_floats(const struct grt_dataset *data, uint32_t first, uint32_t count) {
    bool any = false;
    for (uint32_t i = first; i < first + count; i++) {
        any = any || grt_element_is_float(data->arrays[i].element.type);
    }
    return any;
}

bool grt_look_values(struct grt_dataset *data, const struct grt_dataset_desc *desc) {
    bool drop = desc->on_nan == GRT_NAN_DROP, late = desc->check_late;
    uint32_t classes = desc->classes;
    // Whole numbers are always finite.
    bool x = any_floats(data, 0, data->input_count);
    bool y = !desc->class_targets &&
             any_floats(data, data->input_count, data->target_count - data->info.weighted);
    struct grt_scan_desc scan = {
        .values = (drop || !late) && (x || y) && !recall_dropped(data, drop),
        .shares = desc->share_targets && !desc->no_targets && !late && !recall_good(data, "shares"),
        .weights = desc->weights && !recall_weights(data),  // late too: batches are scaled by it
        .classes =
            desc->class_targets && (classes == 0 || !late) && !recall_classes(data, &classes),
        .moments = desc->normalise && !desc->mean && !drop && !recall_moments(data),
        .threads = desc->threads,
        .watch = desc->watch,
        .context = desc->context,
    };
    scan.drop = scan.values && drop;
    scan.x = (scan.values && x) || scan.moments;
    scan.y = (scan.values && y) || scan.shares || scan.classes || scan.weights;
    bool all_values = scan.values;
    scan.values = scan.values || (scan.moments && x);  // a sum of what is not finite says nothing
    if (!scan.x && !scan.y) {
        data->info.classes = classes;
        return true;
    }
    struct grt_findings found;
    // Any number that could be a class passes where it is not said how many there are.
    data->info.classes = desc->class_targets ? (classes > 0 ? classes : GRT_MOST_CLASSES) : 0;
    bool good = grt_scan(data, &scan, &found);
    if (good && scan.weights && !(found.most_weight > 0.0f)) {
        grt_findings_finish(&found);
        good = grt_fail(GRT_BAD_DATA,
                        "%s: the sample weights are all 0, so no sample counts: "
                        "`sample_weights=none` leaves weights out",
                        data->path);
    }
    if (good) {
        take(data, &scan, all_values, &found, &classes);
        grt_findings_finish(&found);
    }
    data->info.classes = classes;
    return good;
}

bool grt_look_moments(struct grt_dataset *data, const struct grt_dataset_desc *desc) {
    if (data->std[0] > 0 || recall_moments(data)) {
        return true;
    }
    struct grt_scan_desc scan = {.x = true,
                                 .moments = true,
                                 .threads = desc->threads,
                                 .watch = desc->watch,
                                 .context = desc->context};
    struct grt_findings found;
    if (!grt_scan(data, &scan, &found)) {
        return false;
    }
    take_moments(data, &found);
    grt_findings_finish(&found);
    return true;
}
