// SPDX-License-Identifier: Apache-2.0
// The running average of the policies of evolution strategies. A policy is small and an iteration
// long: the host adds it up, in f32, so that every device and every number of ranks comes to the
// same bits.
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "es_parts.h"

bool grt_es_average_begin(struct grt_es *es) {
    uint64_t bytes = grt_tensor_bytes(es->theta);
    if (!(es->desc.ema > 0)) {
        return true;
    }
    es->average = es->average ? es->average : malloc(bytes);
    es->newest = es->newest ? es->newest : malloc(bytes);
    if (!es->average || !es->newest) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for an average of policies");
    }
    return grt_es_read(es->theta, es->average);
}

bool grt_es_average_add(struct grt_es *es) {
    if (!es->average) {
        return true;
    }
    float kept = (float)es->desc.ema, added = (float)(1.0 - es->desc.ema);
    if (!grt_es_read(es->theta, es->newest)) {
        return false;
    }
    // The first one stands alone, as PyTorch's AveragedModel has it.
    kept = es->done == 1 ? 0.0f : kept;
    added = es->done == 1 ? 1.0f : added;
    for (uint64_t i = 0; i < grt_tensor_count(es->theta); i++) {
        float old = kept * es->average[i];
        float more = added * es->newest[i];
        es->average[i] = old + more;
    }
    return true;
}

bool grt_es_average_in(struct grt_es *es, bool in) {
    return !es->average ||
           (in ? grt_es_read(es->theta, es->newest) && grt_es_write(es->theta, es->average)
               : grt_es_write(es->theta, es->newest));
}
