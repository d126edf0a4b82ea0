// SPDX-License-Identifier: Apache-2.0
// Counts the floating point operations of a step of an environment: its own file, read with a
// number type that counts. What an environment states (ENV_OPERATIONS) must be what is counted.
// C++, for the sake of its operators alone.
//
// Sums, products, 1/x and 1/sqrt(x) count one each; comparisons, choices, signs and what is known
// when compiling count nothing. Usage: env_operations; exit code 1 when a statement is wrong.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

typedef uint32_t uint;

static long operations;

struct counted {
    float value;
    bool known;  // when compiling

    counted() : value(0), known(false) {}
    counted(float x) : value(x), known(true) {}
    explicit operator uint32_t() const { return static_cast<uint32_t>(value); }
    explicit operator int32_t() const { return static_cast<int32_t>(value); }
};

static counted result(float value, bool known) {
    counted r(value);
    r.known = known;
    operations += !known;
    return r;
}

static counted operator+(counted a, counted b) {
    return result(a.value + b.value, a.known && b.known);
}
static counted operator-(counted a, counted b) {
    return result(a.value - b.value, a.known && b.known);
}
static counted operator*(counted a, counted b) {
    return result(a.value * b.value, a.known && b.known);
}
static counted operator/(counted a, counted b) {
    return result(a.value / b.value, a.known && b.known);
}
static counted operator-(counted a) {
    a.value = -a.value;
    return a;
}
static counted &operator+=(counted &a, counted b) {
    return a = a + b;
}
static counted &operator-=(counted &a, counted b) {
    return a = a - b;
}
static bool operator>(counted a, counted b) {
    return a.value > b.value;
}
static bool operator<(counted a, counted b) {
    return a.value < b.value;
}
static bool operator>=(counted a, counted b) {
    return a.value >= b.value;
}
static bool operator==(counted a, counted b) {
    return a.value == b.value;
}

static counted as_float(uint32_t bits) {
    counted r;
    memcpy(&r.value, &bits, sizeof bits);
    return r;
}

static uint32_t as_uint(counted x) {
    uint32_t bits;
    memcpy(&bits, &x.value, sizeof bits);
    return bits;
}

static counted from_whole(double x) {
    counted r(static_cast<float>(x));
    r.known = false;
    return r;
}

// ---- the dialect ----

#define float counted
#define STRUCT(name) struct name
#define FN static inline
#define EXACT
#define COUNTER uint
#define F32(x) from_whole(x)
#define I32(x) static_cast<int32_t>(x)
#define ISNAN(x) std::isnan((x).value)
#define U32(x) static_cast<uint32_t>(x)
#define AS_F32(x) as_float(x)
#define AS_U32(x) as_uint(x)
#define MULHI(a, b) static_cast<uint32_t>((static_cast<uint64_t>(a) * (b)) >> 32)
#define CONTRACT(state)
#define SOME(x) (x)
#define NATIVE_RCP(a, otherwise) result(1 / (a).value, (a).known)
#define NATIVE_RSQRT(a, otherwise) result(1 / std::sqrt((a).value), (a).known)
#define UNROLL

#ifndef STATED_TOO_MUCH
#define STATED_TOO_MUCH 0
#endif

// The last of some steps without torque, in which things settle: the robot rests on its feet.
#define COUNT_STEPS                                                                                \
    static long count(uint seed) {                                                                 \
        env_state s = env_reset(seed, 0u, 1u, seed);                                               \
        env_action a;                                                                              \
        long before = 0;                                                                           \
        for (int step = 0; step < 60; step++) {                                                    \
            before = operations;                                                                   \
            env_observation o = env_observe(s);                                                    \
            for (int i = 0; i < ENV_ACT; i++) {                                                    \
                a.v[i] = o.v[0];                                                                   \
                a.v[i].value = 0;                                                                  \
                a.v[i].known = false;                                                              \
            }                                                                                      \
            env_state after = env_step(s, a);                                                      \
            env_reward(s, a, after);                                                               \
            s = after;                                                                             \
            env_good(s);                                                                           \
            env_done(s);                                                                           \
        }                                                                                          \
        return operations - before;                                                                \
    }                                                                                              \
    static long stated() {                                                                         \
        return ENV_OPERATIONS + STATED_TOO_MUCH;                                                   \
    }

namespace standing {
#include "env/standing.k"
COUNT_STEPS
}  // namespace standing

int main() {
    long wrong = 0;
    for (uint seed = 1; seed <= 8; seed++) {
        operations = 0;
        long counted_ = standing::count(seed);
        printf("standing, start %u: %ld operations a step, %ld stated\n", seed, counted_,
               standing::stated());
        wrong += counted_ != standing::stated();
    }
    return wrong ? 1 : 0;
}
