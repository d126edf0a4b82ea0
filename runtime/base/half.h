// SPDX-License-Identifier: Apache-2.0
// Inside gpurt: 16-bit floats, IEEE's half (f16) and bfloat16, and f32. Rounded to nearest, ties to
// even. In a header, so that loops over arrays become vector code. Kernels have shaders/lib/half.k.
#ifndef GRT_HALF_H
#define GRT_HALF_H

#include <math.h>
#include <string.h>

#include "gpurt/device.h"

static inline uint32_t grt_bits_of_f32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float grt_f32_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// The multiplication moves the exponent by 112. It is exact for normal and subnormal numbers alike.
// Infinities and NaN come out as 2^16 and more and get the exponent of f32 back.
static inline float grt_f32_of_f16(uint16_t half) {
    float scaled = grt_f32_of_bits((uint32_t)(half & 0x7fffu) << 13) * 0x1p112f;
    uint32_t bits = grt_bits_of_f32(scaled) | (scaled >= 65536.0f ? 0x7f800000u : 0u);
    return grt_f32_of_bits(bits | (uint32_t)(half & 0x8000u) << 16);
}

static inline float grt_f32_of_bf16(uint16_t bits) {
    return grt_f32_of_bits((uint32_t)bits << 16);
}

// Every NaN becomes the same one, without its sign.
static inline uint16_t grt_f16_of_f32(float value) {
    uint32_t bits = grt_bits_of_f32(value);
    uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return 0x7e00u;
    }
    if (magnitude >=
        0x477ff000u) {  // 65520: half way between the largest number and the next power of two
        return (uint16_t)(sign | 0x7c00u);
    }
    if (magnitude < 0x38800000u) {  // 2^-14: subnormal, a multiple of 2^-24
        return (uint16_t)(sign | (uint32_t)lrintf(grt_f32_of_bits(magnitude) * 0x1p24f));
    }
    return (uint16_t)(sign | ((magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13));
}

static inline uint16_t grt_bf16_of_f32(float value) {
    uint32_t bits = grt_bits_of_f32(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return 0x7fc0u;
    }
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// Of either type.
static inline float grt_f32_of_16(enum grt_dtype type, uint16_t bits) {
    return type == GRT_BF16 ? grt_f32_of_bf16(bits) : grt_f32_of_f16(bits);
}

static inline uint16_t grt_16_of_f32(enum grt_dtype type, float value) {
    return type == GRT_BF16 ? grt_bf16_of_f32(value) : grt_f16_of_f32(value);
}

#endif
