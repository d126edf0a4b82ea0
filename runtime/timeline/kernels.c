// SPDX-License-Identifier: Apache-2.0
// Rows of a timeline that has ended: what the calls of each kernel came to.
#include "timeline.h"

bool grt_timeline_kernel(const struct grt_timeline *t, uint32_t i,
                         struct grt_timeline_kernel *row) {
    if (!t || !row || !t->ended || !t->order || i >= t->row_count) {
        return false;
    }
    const struct grt_name *name = &t->names[t->order[i]];
    *row = (struct grt_timeline_kernel){
        .name = name->text,
        .calls = name->calls,
        .timed = name->timed,
        .seconds = name->seconds,
        .operations = name->operations,
        .bytes = name->bytes,
        .samples = name->samples,
        .is_kernel = name->is_kernel,
        .of_operations = name->timed > 0 && name->told == name->timed,
    };
    return true;
}
