// SPDX-License-Identifier: Apache-2.0
#include "trial.h"

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "gpurt/buffer.h"

static uint32_t narrow(enum grt_dtype dtype, float value) {
    return dtype == GRT_F32 ? grt_bits_of_f32(value) : grt_16_of_f32(dtype, value);
}

double grt_trial_number(enum grt_dtype dtype, const unsigned char *bytes) {
    uint32_t bits = 0;
    memcpy(&bits, bytes, grt_dtype_size(dtype));
    return (double)(dtype == GRT_F32 ? grt_f32_of_bits(bits)
                                     : grt_f32_of_16(dtype, (uint16_t)bits));
}

static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 40;  // 24 bits
}

bool grt_trial_fill(const struct grt_tensor *tensor, uint64_t seed, double *values,
                    unsigned char *bytes) {
    uint32_t size = grt_dtype_size(tensor->dtype);
    uint64_t count = grt_tensor_count(tensor);
    for (uint64_t i = 0; i < count; i++) {
        double unit = (double)next(&seed) * 0x1p-24;
        values[i] = tensor->dtype == GRT_F32 ? 2 * unit - 1 : floor(64 * unit) / 16 - 2;
        uint32_t bits = narrow(tensor->dtype, (float)values[i]);
        memcpy(bytes + i * size, &bits, size);
    }
    return grt_buf_write(tensor->range.buf, tensor->range.offset, bytes, count * size);
}
