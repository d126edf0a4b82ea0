// SPDX-License-Identifier: Apache-2.0
// Inside runtime/nn: how kernels of shaders/lib/eights.k are launched, which read 16-bit
// activations in vectors of eight.
#ifndef GRT_NN_EIGHTS_H
#define GRT_NN_EIGHTS_H

#include "layer_ops.h"

// Which kernels are recorded on a device, as its `eights` says: those that are trusted, or in a
// check none, those of the dialect, or those with PTX.
enum grt_eights_by {
    GRT_EIGHTS_TRUSTED,
    GRT_EIGHTS_NONE,
    GRT_EIGHTS_VECTORS,
    GRT_EIGHTS_PTX,
};
enum grt_eights_by grt_eights_asked(const struct grt_dev *dev);
// Whether kernels of this stem compute right on this device (eights_check.c).
bool grt_eights_trusted(struct grt_dev *dev, const char *stem, enum grt_eights_by by,
                        enum grt_dtype type);

// Whether a kernel of this stem can read these operands, NULLs but for the first passed over: 16
// bits, rows of whole vectors, and places of such; and there is one that computes right.
bool grt_eights_serve(struct grt_dev *dev, const char *stem,
                      const struct grt_tensor *const *operands, uint32_t count);

// A launch over rows of `cols` numbers, each workgroup `chunk` rows; 0: as many as keep the device
// busy.
struct grt_eights {
    uint32_t wg, across, chunk;
    uint32_t groups[3];
};
struct grt_eights grt_eights_of(const struct grt_dev *dev, uint64_t rows, uint64_t cols,
                                uint64_t chunk);

// The kernel of a stem for this type: "block8_16", or "block8_ptx_16" on devices that run PTX.
const char *grt_eights_kernel(struct grt_dev *dev, char name[GRT_NN_KERNEL], const char *stem,
                              enum grt_dtype type);

#endif
