// SPDX-License-Identifier: Apache-2.0
// The limits that hold for all that can be tuned, and the setting that suits a product.
#include "gpurt/tunable.h"

#include <stdio.h>

#include "base/log.h"
#include "profile_file.h"

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

// One setting of the profile, as whole numbers; false when the device cannot run it.
static bool take(const struct grt_tunable *tunable, uint32_t size, const struct grt_dev_info *info,
                 struct grt_profile *profile, struct grt_pick *pick) {
    enum grt_profile_key key = (enum grt_profile_key)(tunable->key + size);
    const struct grt_profile_value *value = grt_profile_get(profile, key);
    char why[GRT_TUNABLE_WHY];
    *pick = (struct grt_pick){.size = (enum grt_size_class)size};
    for (uint32_t i = 0; i < value->count; i++) {
        pick->values[i] = (uint32_t)value->numbers[i];
    }
    if (tunable->possible(info, pick->values, why)) {
        return true;
    }
    if (grt_profile_first_time(profile, key)) {
        grt_log(GRT_LOG_WARN, "%s of profile %s is passed over on %s: %s",
                grt_profile_key_info(key)->key, value->profile, info->selector, why);
    }
    return false;
}

bool grt_tunable_pick(const struct grt_tunable *tunable, const struct grt_dev_info *info,
                      struct grt_profile *profile, uint64_t rows, uint64_t columns, uint64_t batch,
                      struct grt_pick *pick) {
    struct grt_pick kept[GRT_SIZE_COUNT] = {{0}};
    uint64_t units = info->caps.compute_units ? info->caps.compute_units : 16;
    uint32_t count = 0;
    for (uint32_t size = 0; size < tunable->classes; size++) {
        count += take(tunable, size, info, profile, &kept[count]);
    }
    // The smallest there is serves whatever the larger do not suit.
    uint32_t i = 0;
    for (; i + 1 < count; i++) {
        const uint32_t *v = kept[i].values;
        uint64_t groups = (rows + v[0] - 1) / v[0] * ((columns + v[1] - 1) / v[1]) * batch;
        if (groups >= units && rows > kept[i + 1].values[0] && columns > kept[i + 1].values[1]) {
            break;
        }
    }
    *pick = count > 0 ? kept[i] : (struct grt_pick){0};
    return count > 0;
}
