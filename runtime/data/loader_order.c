// SPDX-License-Identifier: Apache-2.0
// The order of a loader's rows, for kernels.
#include "loader_parts.h"

uint64_t grt_loader_record(const struct grt_loader *loader) {
    return grt_order_record(&loader->desc.data->order, &loader->draw);
}

void grt_loader_words(const struct grt_loader *loader, uint64_t epoch, uint32_t *words) {
    grt_order_words(&loader->desc.data->order, &loader->draw, epoch, words);
}

uint64_t grt_loader_dropped(const struct grt_loader *loader, uint32_t *rows) {
    const struct grt_order *order = &loader->desc.data->order;
    for (uint64_t i = 0; rows && i < order->dropped_count; i++) {
        rows[i] = (uint32_t)order->dropped[i];
    }
    return order->dropped_count;
}
