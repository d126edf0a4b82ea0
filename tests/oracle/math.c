// SPDX-License-Identifier: Apache-2.0
// Elementary functions by libm in double precision, and how far gpurt's may be from them.
//
// Bounds are what was found over every float of the range (tests/unit/ops/suite_math.c names the
// ranges): in units of the last place of the result, or as a difference where the result may cancel
// to 0. One alone has too many arguments for that, and its bound is counted: a quotient is the
// product with a reciprocal, whose error can be twice as many units of the quotient, and one
// rounding. Those of lib/quick.k have the bounds that it states, as shares of the result: GPUs have
// instructions of their own for two.
#include "oracle.h"

#include <math.h>
#include <string.h>

static double divide(double a, double b) {
    return a / b;
}
static double reciprocal(double a, double b) {
    (void)b;
    return 1.0 / a;
}
static double reciprocal_root(double a, double b) {
    (void)b;
    return 1.0 / sqrt(a);
}
static double sigmoid(double a, double b) {
    (void)b;
    return 1.0 / (1.0 + exp(-a));
}
static double sine_of_turns(double a, double b) {
    (void)b;
    return sin(2.0 * ORACLE_PI * fmod(a, 1.0));
}
static double cosine_of_turns(double a, double b) {
    (void)b;
    return cos(2.0 * ORACLE_PI * fmod(a, 1.0));
}
#define OF_ONE(name)                                                                               \
    static double name##_of(double a, double b) {                                                  \
        (void)b;                                                                                   \
        return name(a);                                                                            \
    }
OF_ONE(sqrt)
OF_ONE(exp)
OF_ONE(log)
OF_ONE(tanh)
OF_ONE(erf)
OF_ONE(sin)
OF_ONE(cos)
#undef OF_ONE

static const struct {
    const char *name;
    double (*of)(double a, double b);
    double units;  // of the last place
    double apart;  // absolute
    double share;  // of the result
} functions[] = {
    {"recip", reciprocal, 1.12, 0},
    {"div", divide, 2 * 1.12 + 0.5, 0},
    {"sqrt", sqrt_of, 0.5, 0},
    {"exp", exp_of, 0.96, 0},
    {"log", log_of, 0.83, 0},
    {"tanh", tanh_of, 1.57, 0},
    {"sigmoid", sigmoid, 2.87, 0},
    {"erf", erf_of, 3, 0},
    {"sin", sin_of, 0, 8e-8},
    {"cos", cos_of, 0, 8e-8},
    {"sin_turn", sine_of_turns, 0, 9.2e-8},
    {"cos_turn", cosine_of_turns, 0, 9.2e-8},
    {"quick_rcp", reciprocal, 0, 0, 3e-7},
    {"quick_rsqrt", reciprocal_root, 0, 0, 5e-6},
    {"quick_sin", sin_of, 0, 2.6e-7},
    {"quick_cos", cos_of, 0, 2.6e-7},
    {"quick_tanh", tanh_of, 0, 0, 8e-7},
};

struct oracle_value oracle_math(const char *function, double a, double b) {
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (strcmp(function, functions[i].name) == 0) {
            double value = functions[i].of(a, b);
            int exponent = 0;
            frexp(value, &exponent);
            double last_place = fabs(value) < ORACLE_TINY ? 0 : ldexp(1.0, exponent - 24);
            double bound = functions[i].units * last_place + functions[i].apart +
                           functions[i].share * fabs(value);
            return (struct oracle_value){value, bound};
        }
    }
    return (struct oracle_value){(double)NAN, (double)NAN};
}
