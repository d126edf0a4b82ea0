// SPDX-License-Identifier: Apache-2.0
// Where a data set is kept: on the device, in the host's memory, or in its file. The bits of a run
// do not depend on it.
#include <stdio.h>

#include "gpurt/feed.h"
#include "gpurt/task.h"

struct grt_fit_besides grt_task_besides(struct grt_dev *dev, const struct grt_dataset_info *info,
                                        const struct grt_learner_desc *desc, enum grt_cache cache) {
    uint64_t x = 4ull * info->x_width, y = 4ull * info->y_width;
    uint64_t feeds = info->part_rows[GRT_PART_VALIDATION] > 0 ? 2 : 1;
    if (cache == GRT_CACHE_DEVICE) {
        uint64_t feed = grt_feed_rows_bytes(dev, desc->batch * x, desc->batch * y, desc->batch,
                                            desc->accumulate > 1);
        return (struct grt_fit_besides){.bytes = info->kept_bytes + feeds * feed};
    }
    return (struct grt_fit_besides){
        .bytes = feeds * grt_feed_padding(dev),
        .row = feeds * grt_feed_row_bytes(dev, x + y, false),
        .row_staged = feeds * grt_feed_row_bytes(dev, x + y, true),
    };
}

// Whether all rows fit on the device with the learner beside them; else what they take.
static bool fits_on_device(struct grt_dev *dev, const struct grt_task *task,
                           const struct grt_learner_desc *desc, bool *fits,
                           char why[GRT_CACHE_WHY]) {
    struct grt_fit_besides data = grt_task_besides(dev, &task->info, desc, GRT_CACHE_DEVICE);
    struct grt_fit fit = {.fits = false};
    bool alone = grt_cache_fits(task->data, dev, GRT_CACHE_DEVICE, why);
    if (alone && !grt_task_fit(dev, desc, &data, &fit)) {
        return false;
    }
    *fits = fit.fits;
    if (alone) {
        snprintf(why, GRT_CACHE_WHY, "%.1f MB, a step %.1f MB, and %.1f MB may be taken of %s",
                 (double)task->info.kept_bytes / 1e6, (double)fit.needed / 1e6,
                 (double)(fit.left + data.bytes) / 1e6, grt_dev_info(dev)->selector);
    }
    return true;
}

bool grt_task_choose_cache(struct grt_dev *dev, const struct grt_task *task,
                           const struct grt_learner_desc *desc, enum grt_cache wanted,
                           struct grt_cache_choice *choice) {
    char why[GRT_CACHE_WHY];
    size_t used = 0;
    *choice = (struct grt_cache_choice){.cache = wanted};
    if (wanted == GRT_CACHE_DEVICE) {
        bool fits = false;
        if (!fits_on_device(dev, task, desc, &fits, why)) {
            return false;
        }
        used = (size_t)snprintf(choice->why, sizeof choice->why, "%s", why);
        choice->cache = fits ? GRT_CACHE_DEVICE : GRT_CACHE_RAM;
    }
    if (choice->cache == GRT_CACHE_RAM && !grt_cache_fits(task->data, dev, GRT_CACHE_RAM, why)) {
        snprintf(choice->why + used, sizeof choice->why - used, "%s%s", used > 0 ? "; " : "", why);
        choice->cache = GRT_CACHE_NONE;
    }
    return true;
}
