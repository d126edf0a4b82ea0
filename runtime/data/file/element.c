// SPDX-License-Identifier: Apache-2.0
// Conversion of elements. Loops are plain and without branches, so that the compiler makes vector
// code of them; sources are copied to aligned memory first where a row need not be aligned.
#include "element.h"

#include <string.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "base/half.h"

#define PIECE 256  // elements converted at once, on the stack

const char *grt_element_text(enum grt_element_type type) {
    static const char *const texts[] = {
#define X(name, text, size, is_float) text,
        GRT_ELEMENTS(X)
#undef X
    };
    return texts[type];
}

uint32_t grt_element_size(enum grt_element_type type) {
    static const uint32_t sizes[] = {
#define X(name, text, size, is_float) size,
        GRT_ELEMENTS(X)
#undef X
    };
    return sizes[type];
}

bool grt_element_is_float(enum grt_element_type type) {
    static const bool floats[] = {
#define X(name, text, size, is_float) is_float,
        GRT_ELEMENTS(X)
#undef X
    };
    return floats[type];
}

bool grt_element_is_wide(enum grt_element_type type) {
    return type == GRT_ELEMENT_F64 || type == GRT_ELEMENT_I32 || type == GRT_ELEMENT_I64 ||
           type == GRT_ELEMENT_U32;
}

void grt_element_swap(void *data, uint32_t size, size_t count) {
    unsigned char *bytes = data;
    for (size_t i = 0; i < count; i++, bytes += size) {
        for (uint32_t k = 0; k < size / 2; k++) {
            unsigned char byte = bytes[k];
            bytes[k] = bytes[size - 1 - k];
            bytes[size - 1 - k] = byte;
        }
    }
}

void grt_element_to_f32(enum grt_element_type type, float *out, const void *in, size_t count) {
    const unsigned char *bytes = in;
    if (type == GRT_ELEMENT_F32) {
        memcpy(out, in, count * sizeof *out);
        return;
    }
    uint32_t size = grt_element_size(type);
    for (size_t first = 0; first < count; first += PIECE) {
        size_t n = count - first < PIECE ? count - first : PIECE;
        float *to = out + first;
        union {
            uint16_t f16[PIECE];
            double f64[PIECE];
            uint8_t u8[PIECE];
            int32_t i32[PIECE];
            int64_t i64[PIECE];
            int8_t i8[PIECE];
            int16_t i16[PIECE];
            uint16_t u16[PIECE];
            uint32_t u32[PIECE];
        } from;
        memcpy(&from, bytes + first * size, n * size);
        switch (type) {
#define CASE(name, value)                                                                          \
    case GRT_ELEMENT_##name:                                                                       \
        for (size_t i = 0; i < n; i++) {                                                           \
            to[i] = value;                                                                         \
        }                                                                                          \
        break;
            CASE(F16, grt_f32_of_f16(from.f16[i]))
            CASE(F64, (float)from.f64[i])
            CASE(U8, (float)from.u8[i])
            CASE(I32, (float)from.i32[i])
            CASE(I64, (float)from.i64[i])
            CASE(I8, (float)from.i8[i])
            CASE(I16, (float)from.i16[i])
            CASE(U16, (float)from.u16[i])
            CASE(U32, (float)from.u32[i])
            CASE(BOOL, from.u8[i] != 0 ? 1.0f : 0.0f)
#undef CASE
        case GRT_ELEMENT_F32:
        case GRT_ELEMENT_COUNT:
            break;
        }
    }
}

void grt_element_to_f64(enum grt_element_type type, double *out, const void *in, size_t count) {
    const unsigned char *bytes = in;
    uint32_t size = grt_element_size(type);
    if (type == GRT_ELEMENT_F64) {
        memcpy(out, in, count * sizeof *out);
        return;
    }
    for (size_t first = 0; first < count; first += PIECE) {
        size_t n = count - first < PIECE ? count - first : PIECE;
        if (type == GRT_ELEMENT_I64) {
            int64_t from[PIECE];
            memcpy(from, bytes + first * size, n * size);
            for (size_t i = 0; i < n; i++) {
                out[first + i] = (double)from[i];
            }
        } else if (type == GRT_ELEMENT_I32) {
            int32_t from[PIECE];
            memcpy(from, bytes + first * size, n * size);
            for (size_t i = 0; i < n; i++) {
                out[first + i] = from[i];
            }
        } else if (type == GRT_ELEMENT_U32) {
            uint32_t from[PIECE];
            memcpy(from, bytes + first * size, n * size);
            for (size_t i = 0; i < n; i++) {
                out[first + i] = from[i];
            }
        } else {
            float from[PIECE];
            grt_element_to_f32(type, from, bytes + first * size, n);
            for (size_t i = 0; i < n; i++) {
                out[first + i] = from[i];
            }
        }
    }
}

// High and low halves apart: a double holds each, and their distance from a mean near by.
static double less(int64_t value, double mean) {
    double low = (double)((uint64_t)value & 0xffffffffu);
    return (double)(value >> 32) * 0x1p32 - mean + low;
}

static void normalise_wide(enum grt_element_type type, float *out, const unsigned char *in,
                           size_t count, const double *mean, const double *scale) {
    double from[PIECE];
    if (type == GRT_ELEMENT_I64) {
        int64_t whole;
        for (size_t i = 0; i < count; i++) {
            memcpy(&whole, in + i * sizeof whole, sizeof whole);
            out[i] = (float)(less(whole, mean[i]) * scale[i]);
        }
        return;
    }
    grt_element_to_f64(type, from, in, count);
    for (size_t i = 0; i < count; i++) {
        float plain = (float)from[i];
        float apart = (float)((from[i] - mean[i]) * scale[i]);
        out[i] = plain - plain == 0 ? apart : plain;
    }
}

void grt_element_normalise(enum grt_element_type type, float *out, const void *in, size_t count,
                           const struct grt_norm *norm, size_t first) {
    const unsigned char *bytes = in;
    if (!grt_element_is_wide(type)) {
        const float *mean = norm->mean_f32 + first, *scale = norm->scale_f32 + first;
        grt_element_to_f32(type, out, in, count);
        for (size_t i = 0; i < count; i++) {
            out[i] = (out[i] - mean[i]) * scale[i];
        }
        return;
    }
    for (size_t at = 0; at < count; at += PIECE) {
        normalise_wide(type, out + at, bytes + at * grt_element_size(type),
                       count - at < PIECE ? count - at : PIECE, norm->mean + first + at,
                       norm->scale + first + at);
    }
}

static int64_t integer_at(enum grt_element_type type, const unsigned char *at) {
    int64_t wide = 0;
    int32_t narrow = 0;
    int16_t half = 0;
    switch (type) {
    case GRT_ELEMENT_U8:
        return *at;
    case GRT_ELEMENT_I8:
        return (int8_t)*at;
    case GRT_ELEMENT_BOOL:
        return *at != 0;
    case GRT_ELEMENT_I16:
    case GRT_ELEMENT_U16:
        memcpy(&half, at, sizeof half);
        return type == GRT_ELEMENT_I16 ? half : (uint16_t)half;
    case GRT_ELEMENT_I32:
    case GRT_ELEMENT_U32:
        memcpy(&narrow, at, sizeof narrow);
        return type == GRT_ELEMENT_I32 ? narrow : (int64_t)(uint32_t)narrow;
    case GRT_ELEMENT_I64:
        memcpy(&wide, at, sizeof wide);
        return wide;
    default:
        return -1;  // no class
    }
}

size_t grt_element_to_class(enum grt_element_type type, uint32_t *out, const void *in, size_t count,
                            uint32_t classes, int64_t *bad) {
    const unsigned char *bytes = in;
    for (size_t i = 0; i < count; i++, bytes += grt_element_size(type)) {
        int64_t value = integer_at(type, bytes);
        if (value < 0 || value >= (int64_t)classes) {
            *bad = value;
            return i;
        }
        out[i] = (uint32_t)value;
    }
    return count;
}

// As many words as registers of every processor have.
typedef uint32_t words4 __attribute__((vector_size(16)));

#ifdef __x86_64__
// Lines of 64 bytes by one instruction each. The loader with 16 workers on 16 processors, shuffled
// rows of 132 bytes (Xeon, 2026-11): 60 GB/s where the way below gave 47.
__attribute__((target("avx512f"))) static bool copy_wide(void *out, const void *in, size_t count) {
    const __m512i exponent = _mm512_set1_epi32(0x7f800000);
    uint32_t odd = 0;
    for (size_t i = 0; i < count / 16; i++) {
        __m512i bits = _mm512_loadu_si512((const __m512i *)in + i);
        _mm512_storeu_si512((__m512i *)out + i, bits);
        odd |= _mm512_cmpeq_epi32_mask(_mm512_and_si512(bits, exponent), exponent);
    }
    return odd == 0;
}
#endif

#ifdef __SSE2__
// Lines of 64 bytes, past the caches: a store there would first read what it is about to replace.
// 16 workers on 16 processors: a tenth more (2026-11).
static bool copy_lines(void *out, const void *in, size_t count) {
    const __m128i exponent = _mm_set1_epi32(0x7f800000);
    __m128i *to = out, odd = _mm_setzero_si128();
    for (size_t i = 0; i < count / 4; i++) {
        __m128i bits = _mm_loadu_si128((const __m128i *)in + i);
        _mm_stream_si128(to + i, bits);
        odd = _mm_or_si128(odd, _mm_cmpeq_epi32(_mm_and_si128(bits, exponent), exponent));
    }
    return _mm_movemask_epi8(odd) == 0;
}
#endif

void grt_copies_seen(void) {
#ifdef __SSE2__
    _mm_sfence();
#endif
}

bool grt_copy_finite(void *out, const void *in, size_t count) {
#ifdef __x86_64__
    if (count > 0 && count % 16 == 0 && __builtin_cpu_supports("avx512f")) {
        return copy_wide(out, in, count);
    }
#endif
#ifdef __SSE2__
    if (count > 0 && count % 16 == 0 && (uintptr_t)out % 64 == 0) {
        return copy_lines(out, in, count);
    }
#endif
    unsigned char *to = out;
    const unsigned char *from = in;
    const words4 exponent = (words4){0} + 0x7f800000u;
    words4 odd = {0};
    uint32_t any = 0;
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        words4 bits;
        memcpy(&bits, from + 4 * i, sizeof bits);
        memcpy(to + 4 * i, &bits, sizeof bits);
        odd |= (words4)((bits & exponent) == exponent);
    }
    for (; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, from + 4 * i, 4);
        memcpy(to + 4 * i, &bits, 4);
        any |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    for (uint32_t k = 0; k < 4; k++) {
        any |= odd[k];
    }
    return any == 0;
}

size_t grt_not_finite(const float *x, size_t count) {
    for (size_t first = 0; first < count; first += PIECE) {
        size_t n = count - first < PIECE ? count - first : PIECE;
        uint32_t any = 0;
        for (size_t i = 0; i < n; i++) {
            uint32_t bits;
            memcpy(&bits, &x[first + i], sizeof bits);
            any |= (bits & 0x7f800000u) == 0x7f800000u;
        }
        for (size_t i = 0; any && i < n; i++) {
            uint32_t bits;
            memcpy(&bits, &x[first + i], sizeof bits);
            if ((bits & 0x7f800000u) == 0x7f800000u) {
                return first + i;
            }
        }
    }
    return count;
}
