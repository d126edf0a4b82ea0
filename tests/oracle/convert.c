// SPDX-License-Identifier: Apache-2.0
// Floating point formats from their definition: the value of a bit pattern is a sum of powers of
// two, and rounding is to the nearest multiple of the format's spacing at that magnitude. A double
// holds every f32, f16 and bf16 exactly, and dividing by a power of two is exact, so the only
// rounding below is the one that is meant: rint() rounds ties to even.
#include "oracle.h"

#include <float.h>
#include <math.h>

const struct oracle_format oracle_f16 = {5, 10};
const struct oracle_format oracle_bf16 = {8, 7};
const struct oracle_format oracle_f32 = {8, 23};

static int bias(struct oracle_format f) {
    return (1 << (f.exponent_bits - 1)) - 1;
}

bool oracle_is_nan(struct oracle_format f, uint32_t bits) {
    uint32_t top = (1u << f.exponent_bits) - 1;
    uint32_t exponent = (bits >> f.mantissa_bits) & top;
    uint32_t mantissa = bits & ((1u << f.mantissa_bits) - 1);
    return exponent == top && mantissa != 0;
}

double oracle_widen(struct oracle_format f, uint32_t bits) {
    uint32_t top = (1u << f.exponent_bits) - 1;
    uint32_t exponent = (bits >> f.mantissa_bits) & top;
    uint32_t mantissa = bits & ((1u << f.mantissa_bits) - 1);
    uint32_t sign = (bits >> (f.exponent_bits + f.mantissa_bits)) & 1;
    double fraction = (double)mantissa / (double)(1u << f.mantissa_bits);
    double magnitude;
    if (exponent == top) {
        magnitude = mantissa != 0 ? (double)NAN : (double)INFINITY;
    } else if (exponent == 0) {
        magnitude = ldexp(fraction, 1 - bias(f));
    } else {
        magnitude = ldexp(1.0 + fraction, (int)exponent - bias(f));
    }
    return sign != 0 ? -magnitude : magnitude;
}

uint32_t oracle_narrow(struct oracle_format f, double value) {
    uint32_t sign = signbit(value) ? 1u << (f.exponent_bits + f.mantissa_bits) : 0;
    uint32_t infinite = ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
    if (isnan(value)) {
        return sign | infinite | (1u << (f.mantissa_bits - 1));
    }
    double magnitude = fabs(value);
    if (isinf(value)) {
        return sign | infinite;
    }
    int lowest = 1 - bias(f);  // exponent of the smallest normal number
    int exponent;
    (void)frexp(magnitude, &exponent);  // magnitude in [2^(exponent-1), 2^exponent)
    exponent -= 1;
    if (magnitude == 0.0 || exponent < lowest) {
        exponent = lowest;
    }
    double count = rint(ldexp(magnitude, f.mantissa_bits - exponent));  // in units of the spacing
    double whole = ldexp(1.0, f.mantissa_bits);
    if (count >= 2 * whole) {  // rounded up to the next power of two
        count /= 2;
        exponent++;
    }
    if (count < whole) {  // below the smallest normal number
        return sign | (uint32_t)count;
    }
    if (exponent > bias(f)) {
        return sign | infinite;
    }
    uint32_t field = (uint32_t)(exponent + bias(f));
    return sign | field << f.mantissa_bits | (uint32_t)(count - whole);
}

bool oracle_agrees(float got, struct oracle_value want) {
    if (isnan(want.value) || isnan(got)) {
        return isnan(want.value) && isnan(got);
    }
    if (isinf(want.value)) {
        return (double)got == want.value;
    }
    if (isinf(got)) {
        double reach = (want.value < 0) == (got < 0) ? fabs(want.value) + want.bound : 0;
        return reach > (double)FLT_MAX;
    }
    return fabs((double)got - want.value) <= want.bound;
}
