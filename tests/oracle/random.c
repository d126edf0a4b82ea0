// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 as published: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011. A round multiplies words 0 and 2 of the counter by constants and mixes the
// high halves of the products with the key, which grows by the golden ratio and sqrt(3) - 1 each
// round.
#include "oracle.h"

#include <math.h>

void oracle_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t block[4]) {
    const uint64_t m0 = 0xD2511F53;
    const uint64_t m1 = 0xCD9E8D57;
    uint32_t c0 = counter[0];
    uint32_t c1 = counter[1];
    uint32_t c2 = counter[2];
    uint32_t c3 = counter[3];
    uint32_t k0 = key[0];
    uint32_t k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = m0 * c0;
        uint64_t p1 = m1 * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        uint32_t n1 = (uint32_t)p1;
        uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        uint32_t n3 = (uint32_t)p0;
        c0 = n0;
        c1 = n1;
        c2 = n2;
        c3 = n3;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    block[0] = c0;
    block[1] = c1;
    block[2] = c2;
    block[3] = c3;
}

uint32_t oracle_bits(const uint32_t seed[2], const uint32_t step[2], uint32_t stream, uint64_t i) {
    const uint32_t counter[4] = {(uint32_t)(i / 4), stream, step[0], step[1]};
    uint32_t block[4];
    oracle_philox(counter, seed, block);
    return block[i % 4];
}

double oracle_uniform(uint32_t word) {
    return (double)(word >> 8) * 0x1p-24;
}

struct oracle_value oracle_normal(uint32_t word0, uint32_t word1, bool second) {
    double u1 = ((double)(word0 >> 8) + 1.0) * 0x1p-24;  // (0, 1]: its logarithm exists
    double u2 = (double)(word1 >> 8) * 0x1p-24;
    double radius = sqrt(-2.0 * log(u1));
    double angle = 2.0 * ORACLE_PI * u2;
    // The radius: 2 units of the logarithm halved by the root, one unit of the root. The sine: a
    // rounded angle (of at most 2 pi, so 4 u) and two units of the polynomial, all absolute. 16 u.
    struct oracle_value v = {radius * (second ? sin(angle) : cos(angle)),
                             16 * ORACLE_U * radius + ORACLE_TINY};
    return v;
}
