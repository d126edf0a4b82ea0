// SPDX-License-Identifier: Apache-2.0
// What can be tuned: the settings of a variant with the values worth trying, and what a device
// allows. `gpurt tune` searches these; the variants themselves ask the same predicates before they
// use a setting of a profile, so what is tuned is what runs.
#ifndef GRT_TUNABLE_H
#define GRT_TUNABLE_H

#include "profile.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_TUNABLE_WHY 256
#define GRT_KNOB_VALUES 8

// One number of a setting. Values stand in ascending order.
struct grt_knob {
    const char *name;                  // as in the key's list of numbers; NULL ends the knobs
    uint32_t values[GRT_KNOB_VALUES];  // ends at the first 0
};

struct grt_tunable {
    const char *op;       // "gemm"
    const char *variant;  // "tiled"
    uint32_t dtypes;      // bit 1 << GRT_F32 and so on: operands it is for
    enum grt_profile_key key;
    uint32_t classes;  // 1, or 3: key is the large one, medium and small follow
    struct grt_knob knobs[GRT_PROFILE_NUMBERS];
    // Whether a device can run it; false with what is too much in `why`. No driver is asked.
    bool (*possible)(const struct grt_dev_info *info, const uint32_t *values,
                     char why[GRT_TUNABLE_WHY]);
    // Lanes of a workgroup, and registers of a lane, roughly: more than a GPU has would spill.
    uint32_t (*lanes)(const uint32_t *values);
    uint32_t (*registers)(const uint32_t *values);
};

// The i-th of all, or NULL past the last.
GRT_API const struct grt_tunable *grt_tunable(uint32_t i);
// Whether it is worth trying: possible, and without spilling where there are registers to spill.
GRT_API bool grt_tunable_sensible(const struct grt_tunable *tunable,
                                  const struct grt_dev_info *info, const uint32_t *values,
                                  char why[GRT_TUNABLE_WHY]);

#define GRT_SIZE_CLASSES(X)                                                                        \
    X(LARGE, "large")                                                                              \
    X(MEDIUM, "medium")                                                                            \
    X(SMALL, "small")

enum grt_size_class {
#define X(name, text) GRT_SIZE_##name,
    GRT_SIZE_CLASSES(X)
#undef X
        GRT_SIZE_COUNT,
};
GRT_API const char *grt_size_class_text(enum grt_size_class size);

// The setting of a profile for a product.
struct grt_pick {
    enum grt_size_class size;
    uint32_t values[GRT_PROFILE_NUMBERS];
};
// Large sizes where they fill the device, smaller ones where they would leave it idle; the first
// two knobs are the rows and columns of a workgroup. A setting that the device cannot run is passed
// over, said once. False, and zeros, when it can run none.
GRT_API bool grt_tunable_pick(const struct grt_tunable *tunable, const struct grt_dev_info *info,
                              struct grt_profile *profile, uint64_t rows, uint64_t columns,
                              uint64_t batch, struct grt_pick *pick);

// The setting that an open device uses for a product of this type, and the profile it stands in;
// NULL where the variant has no settings, or the device can run none of them.
GRT_API const struct grt_profile_value *grt_tunable_in_use(struct grt_dev *dev, const char *op,
                                                           const char *variant,
                                                           enum grt_dtype dtype, uint64_t rows,
                                                           uint64_t columns, uint64_t batch);

#ifdef __cplusplus
}
#endif
#endif
