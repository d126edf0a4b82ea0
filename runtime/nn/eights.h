// SPDX-License-Identifier: Apache-2.0
// Inside runtime/nn: how kernels of shaders/lib/eights.k are launched, which read 16-bit
// activations in vectors of eight.
#ifndef GRT_NN_EIGHTS_H
#define GRT_NN_EIGHTS_H

#include "layer_ops.h"

// Whether these operands, NULLs among them passed over, can be read so: 16 bits, rows of whole
// vectors, and places of such.
bool grt_eights_suit(const struct grt_tensor *const *operands, uint32_t count);

// A launch over rows of `cols` numbers, each workgroup `chunk` rows; 0: as many as keep the device
// busy.
struct grt_eights {
    uint32_t wg, across, chunk;
    uint32_t groups[3];
};
struct grt_eights grt_eights_of(const struct grt_dev *dev, uint64_t rows, uint64_t cols,
                                uint64_t chunk);

// The kernel of a stem: "block8_16", or "block8_ptx_16" on devices that run PTX.
const char *grt_eights_kernel(struct grt_dev *dev, char name[GRT_NN_KERNEL], const char *stem);

#endif
