// SPDX-License-Identifier: Apache-2.0
// Inside runtime/data: element types of files, and their conversion to f32 and to class numbers.
#ifndef GRT_ELEMENT_H
#define GRT_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// X(name, text, bytes, is a float)
#define GRT_ELEMENTS(X)                                                                            \
    X(F16, "f16", 2, 1)                                                                            \
    X(F32, "f32", 4, 1)                                                                            \
    X(F64, "f64", 8, 1)                                                                            \
    X(U8, "u8", 1, 0)                                                                              \
    X(I32, "i32", 4, 0)                                                                            \
    X(I64, "i64", 8, 0)                                                                            \
    X(I8, "i8", 1, 0)                                                                              \
    X(I16, "i16", 2, 0)                                                                            \
    X(U16, "u16", 2, 0)                                                                            \
    X(U32, "u32", 4, 0)                                                                            \
    X(BOOL, "bool", 1, 0) /* as h5py has it: an enum of FALSE and TRUE */

enum grt_element_type {
#define X(name, text, size, is_float) GRT_ELEMENT_##name,
    GRT_ELEMENTS(X)
#undef X
        GRT_ELEMENT_COUNT,
};

struct grt_element {
    enum grt_element_type type;
    bool swapped;  // the other byte order than this machine's
};

const char *grt_element_text(enum grt_element_type type);
uint32_t grt_element_size(enum grt_element_type type);
bool grt_element_is_float(enum grt_element_type type);

// Whether f32 has not every number of the type.
bool grt_element_is_wide(enum grt_element_type type);

// Features as the model gets them: (x - mean) / std. Wide types are brought to it in double, the
// others in f32, as a device can do it too.
struct grt_norm {
    const double *mean;  // [features]; NULL: values stay as they are
    double *scale;
    float *mean_f32, *scale_f32;
};

// Reverses the bytes of each element in place.
void grt_element_swap(void *data, uint32_t size, size_t count);
// `in` is in this machine's byte order and need not be aligned.
void grt_element_to_f32(enum grt_element_type type, float *out, const void *in, size_t count);
void grt_element_to_f64(enum grt_element_type type, double *out, const void *in, size_t count);
// The same less mean, times scale, for features first .. first + count - 1. What f32 does not hold
// as it is in the file stays infinite.
void grt_element_normalise(enum grt_element_type type, float *out, const void *in, size_t count,
                           const struct grt_norm *norm, size_t first);
#define GRT_MOST_CLASSES (1u << 24)
// Integer types. Returns how many there were before the first that is negative or not below
// `classes`, which is left in *bad; count when all are good.
size_t grt_element_to_class(enum grt_element_type type, uint32_t *out, const void *in, size_t count,
                            uint32_t classes, int64_t *bad);
// Copies numbers that need not be aligned; whether all of them are finite. Whole lines may go past
// the processor's caches: others see them behind grt_copies_seen().
bool grt_copy_finite(void *out, const void *in, size_t count);
void grt_copies_seen(void);
// Index of the first number that is NaN or infinite, or count.
size_t grt_not_finite(const float *x, size_t count);

#endif
