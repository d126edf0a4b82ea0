// SPDX-License-Identifier: Apache-2.0
// Options of `gpurt bench gemm`, a part of struct bench.
#ifndef APPS_BENCH_GEMM_H
#define APPS_BENCH_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/options/ranges.h"

struct bench_gemm_shape {
    uint64_t m, n, k;
    uint64_t trans;  // of `gpurt tune`: a place in BENCH_GEMM_TRANS, 2 for a and 1 for b transposed
};

struct bench_gemm_shapes {
    struct bench_gemm_shape *values;
    size_t count;
};

// Zero for what depends on the device: see bench_gemm_defaults().
struct bench_gemm_options {
    struct bench_gemm_shapes shapes;
    struct ranges batches;
    uint32_t precisions;   // bits, of BENCH_GEMM_PRECISIONS
    uint32_t trans;        // bits, of BENCH_GEMM_TRANS
    uint32_t out;          // bits: 1 the type of the operands, 2 f32
    uint32_t peer;         // bits: 1 openblas
    const char *variants;  // "auto", "all" or names with commas between
};

#define BENCH_GEMM_PRECISIONS(X) X(F32, "f32") X(F16, "f16") X(BF16, "bf16")
#define BENCH_GEMM_TRANS(X) X(NN, "nn") X(NT, "nt") X(TN, "tn") X(TT, "tt")

// Frees what the options hold.
void bench_gemm_options_end(struct bench_gemm_options *options);
// Fills in shapes and precisions that were not given; false with the sentence said.
bool bench_gemm_defaults(struct bench_gemm_options *options, bool software, bool quick);

#endif
