// SPDX-License-Identifier: Apache-2.0
// Shapes of a matrix unit in words; see matrix_text.h.
#include "matrix_text.h"

#include <stdio.h>

void matrix_text(const struct grt_caps *caps, char *brief, size_t brief_size, char *whole,
                 size_t whole_size) {
    size_t used = 0;
    uint32_t count = caps->matrix_shape_count;
    brief[0] = '\0';
    whole[0] = '\0';
    for (uint32_t i = 0; i < count; i++) {
        const struct grt_matrix_shape *s = &caps->matrix_shapes[i];
        char one[48];
        snprintf(one, sizeof one, "%s %ux%ux%u>%s", grt_dtype_text(s->in), s->m, s->n, s->k,
                 grt_dtype_text(s->out));
        if (i == 0 && count == 1) {
            snprintf(brief, brief_size, "%s", one);
        } else if (i == 0) {
            snprintf(brief, brief_size, "%s +%u", one, count - 1);
        }
        if (used < whole_size) {
            used += (size_t)snprintf(whole + used, whole_size - used, "%s%s", i ? ", " : "", one);
        }
    }
}
