// SPDX-License-Identifier: Apache-2.0
// The table of what can be tuned, and the limits that hold for all of it.
#include "tunable.h"

#include <stdio.h>

#include "gemm_case.h"

static const struct grt_tunable *const tunables[] = {
    &gemm_tiled_f32_tunable,
    &gemm_tiled_16_tunable,
    &gemm_plain_tunable,
};

const struct grt_tunable *grt_tunable(uint32_t i) {
    return i < sizeof tunables / sizeof tunables[0] ? tunables[i] : NULL;
}

const char *grt_size_class_text(enum grt_size_class size) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_SIZE_CLASSES(X)
#undef X
    };
    return (unsigned)size < GRT_SIZE_COUNT ? texts[size] : "unknown size";
}

// What every GPU of today has at least: 255 registers a lane can be given, 65536 of a whole unit.
#define LANE_REGISTERS 255u
#define UNIT_REGISTERS 65536u

bool grt_tunable_sensible(const struct grt_tunable *tunable, const struct grt_dev_info *info,
                          const uint32_t *values, char why[GRT_TUNABLE_WHY]) {
    if (!tunable->possible(info, values, why)) {
        return false;
    }
    uint32_t lanes = tunable->lanes(values), registers = tunable->registers(values);
    if (!info->caps.software &&
        (registers > LANE_REGISTERS || (uint64_t)registers * lanes > UNIT_REGISTERS)) {
        snprintf(why, GRT_TUNABLE_WHY, "about %u registers a lane with %u lanes would spill",
                 registers, lanes);
        return false;
    }
    return true;
}
