// SPDX-License-Identifier: Apache-2.0
// One product of `gpurt bench gemm`: its operands on the device and on the host, the graph that
// repeats it, the check of a result, and the peer that does the same on the CPU.
#ifndef APPS_BENCH_GEMM_CASE_H
#define APPS_BENCH_GEMM_CASE_H

#include "bench/bench.h"

struct bench_gemm_case {
    struct bench *bench;
    struct bench_gemm_shape shape;
    uint32_t batch;
    enum grt_dtype in, out;
    bool a_transposed, b_transposed;
    // What bench_gemm_case_begin() makes.
    struct grt_plan *plan;
    struct grt_tensor a, b, c;       // [batch][rows][cols] as stored
    struct grt_range scratch;        // where the product wants some
    void *host_a, *host_b, *host_c;  // the same on the host; c: room for a result
};

// Allocates and fills the operands with numbers from -1 to 1. Ends the case itself when it fails.
enum bench_outcome bench_gemm_case_begin(struct bench_gemm_case *g);
void bench_gemm_case_end(struct bench_gemm_case *g);

// Fills x with numbers of its own stream from -1 to 1, by way of f32.
bool bench_fill_random(struct bench *bench, const struct grt_tensor *x, uint32_t stream);

struct grt_gemm_desc bench_gemm_case_desc(const struct bench_gemm_case *g, const char *variant);
double bench_gemm_case_flops(const struct bench_gemm_case *g);

// Poisons c, runs the graph, and looks at c as bench_gemm_check() does.
enum bench_outcome bench_gemm_run_checked(struct bench_gemm_case *g, struct grt_graph *graph,
                                          const char *variant, double *error);
void bench_gemm_poison(struct bench_gemm_case *g);
// Compares host_c with sums in double precision at some places, a small product everywhere; `error`
// is the largest difference in units of what is allowed.
enum bench_outcome bench_gemm_check(const struct bench_gemm_case *g, const char *variant,
                                    double *error);

// ---- OpenBLAS (bench_gemm_peer.c) ----

typedef void bench_sgemm_fn(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                            const float *a, int lda, const float *b, int ldb, float beta, float *c,
                            int ldc);

struct bench_gemm_peer {
    void *library;
    bench_sgemm_fn *sgemm;
    int cpus;  // that this process may use, and threads it was given
};

// Loads it with as many threads as this process may use CPUs; false with the sentence said.
bool bench_gemm_peer_open(struct bench_gemm_peer *peer);
void bench_gemm_peer_close(struct bench_gemm_peer *peer);
// The whole batch into host_c, `count` times; returns the seconds it took.
double bench_gemm_peer_run(const struct bench_gemm_peer *peer, struct bench_gemm_case *g,
                           uint32_t count);

#endif
