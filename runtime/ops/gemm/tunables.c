// SPDX-License-Identifier: Apache-2.0
// The table of what can be tuned.
#include "tunables.h"

#include <string.h>

#include "base/log.h"
#include "device/internal.h"

static const struct grt_tunable *const tunables[] = {
    &gemm_tiled_f32_tunable, &gemm_tiled_16_tunable,  &gemm_plain_tunable,
    &gemm_panel_tunable,     &gemm_coop_tunable,      &gemm_mma_tunable,
    &gemm_wgmma_tunable,     &gemm_split_tunable,     &gemm_split_wgmma_tunable,
    &gemm_split_mma_tunable, &gemm_wgmma_48k_tunable,
};

const struct grt_tunable *grt_tunable(uint32_t i) {
    return i < sizeof tunables / sizeof tunables[0] ? tunables[i] : NULL;
}

const struct grt_profile_value *grt_tunable_in_use(struct grt_dev *dev, const char *op,
                                                   const char *variant, enum grt_dtype dtype,
                                                   uint64_t rows, uint64_t columns,
                                                   uint64_t batch) {
    if (!dev || !op || !variant || (unsigned)dtype >= 32) {
        grt_fail(GRT_INVALID, "grt_tunable_in_use: no %s",
                 !dev       ? "device"
                 : !op      ? "op"
                 : !variant ? "variant"
                            : "such type");
        return NULL;
    }
    for (uint32_t i = 0; i < sizeof tunables / sizeof tunables[0]; i++) {
        const struct grt_tunable *t = tunables[i];
        struct grt_pick pick;
        if (strcmp(t->op, op) == 0 && strcmp(t->variant, variant) == 0 && t->dtypes >> dtype & 1 &&
            grt_tunable_pick(t, &dev->info, dev->profile, rows, columns, batch, &pick)) {
            return grt_profile_get(dev->profile, (enum grt_profile_key)(t->key + pick.size));
        }
    }
    return NULL;
}
