// SPDX-License-Identifier: Apache-2.0
#include "eights.h"

#include <stdio.h>

#include "device/kernels.h"
#include "gpurt/device.h"
#include "ops/op_support.h"

#define VECTOR 8u
#define VECTOR_BYTES 16u
#define LANES 256u          // of a workgroup
#define LANES_SOFTWARE 64u  // on a CPU, at most: all of them columns, for no barrier is free there
#define GROUPS_EACH 8u      // workgroups of a compute unit, so that all have work to the end
#define UNITS 64u           // of a device that tells no number
#define LEAST 4u            // rows of a lane, which pay for what it makes of its columns first
#define MOST 64u

static bool suit(const struct grt_tensor *const *operands, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const struct grt_tensor *t = operands[i];
        bool good =
            !t || ((t->dtype == GRT_F16 || t->dtype == GRT_BF16) &&
                   t->shape[t->rank - 1] % VECTOR == 0 && t->range.offset % VECTOR_BYTES == 0);
        if (!good) {
            return false;
        }
    }
    return true;
}

// Those that serve for a stem, the best first.
static enum grt_eights_by by_of(struct grt_dev *dev, const char *stem, enum grt_dtype type) {
    enum grt_eights_by asked = grt_eights_asked(dev);
    if (asked != GRT_EIGHTS_TRUSTED) {
        return asked;
    }
    if (grt_kernel_builds(dev, "add_to8_ptx_16") &&
        grt_eights_trusted(dev, stem, GRT_EIGHTS_PTX, type)) {
        return GRT_EIGHTS_PTX;
    }
    bool plain = grt_eights_trusted(dev, stem, GRT_EIGHTS_VECTORS, type);
    return plain ? GRT_EIGHTS_VECTORS : GRT_EIGHTS_NONE;
}

bool grt_eights_serve(struct grt_dev *dev, const char *stem,
                      const struct grt_tensor *const *operands, uint32_t count) {
    return suit(operands, count) && by_of(dev, stem, operands[0]->dtype) != GRT_EIGHTS_NONE;
}

struct grt_eights grt_eights_of(const struct grt_dev *dev, uint64_t rows, uint64_t cols,
                                uint64_t chunk) {
    const struct grt_caps *caps = &grt_dev_info(dev)->caps;
    uint64_t vectors = cols / VECTOR, lanes = caps->software ? LANES_SOFTWARE : LANES;
    lanes = lanes < caps->max_wg ? lanes : caps->max_wg;
    struct grt_eights e = {.across = (uint32_t)(vectors < lanes ? vectors : lanes)};
    e.wg = caps->software ? e.across : (uint32_t)lanes;
    uint64_t slices = e.wg / e.across, tiles = (vectors + e.across - 1) / e.across;
    if (chunk == 0) {
        uint64_t units = caps->compute_units > 0 ? caps->compute_units : UNITS;
        uint64_t wanted = units * GROUPS_EACH / tiles + 1;
        uint64_t each = rows / (wanted * slices);
        each = each < LEAST ? LEAST : each > MOST ? MOST : each;
        chunk = each * slices;
        // A grid has an end on some devices.
        uint64_t least = (rows + caps->max_groups[1] - 1) / caps->max_groups[1];
        chunk = chunk > least ? chunk : least;
    }
    e.chunk = (uint32_t)chunk;
    e.groups[0] = (uint32_t)tiles;
    e.groups[1] = (uint32_t)((rows + chunk - 1) / chunk);
    e.groups[2] = 1;
    return e;
}

const char *grt_eights_kernel(struct grt_dev *dev, char name[GRT_NN_KERNEL], const char *stem,
                              enum grt_dtype type) {
    bool ptx = by_of(dev, stem, type) == GRT_EIGHTS_PTX;
    snprintf(name, GRT_NN_KERNEL, "%s_%s16", stem, ptx ? "ptx_" : "");
    return name;
}
