// SPDX-License-Identifier: Apache-2.0
// OpenBLAS, loaded when asked for: gpurt neither needs nor links it. It is measured in turns with
// gpurt on the same cores.
#define _GNU_SOURCE  // sched_getaffinity
#include "bench_gemm_case.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "cli/talk.h"

#define LIBRARY "libopenblas.so.0"
// cblas.h
#define ROW_MAJOR 101
#define NOT_TRANSPOSED 111
#define TRANSPOSED 112

static int usable_cpus(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

bool bench_gemm_peer_open(struct bench_gemm_peer *peer) {
    void (*set_threads)(int) = NULL;
    int (*get_threads)(void) = NULL;
    // Its threads would spin for a while after each product, on the cores of whoever is measured
    // next; 2^14 ticks still bridge the gap between two products of one sample.
    setenv("OPENBLAS_THREAD_TIMEOUT", "14", 0);
    peer->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!peer->library) {
        talk_error("--peer openblas: %s cannot be loaded (Debian: libopenblas0-pthread): %s",
                   LIBRARY, dlerror());
        return false;
    }
    *(void **)&peer->sgemm = dlsym(peer->library, "cblas_sgemm");
    *(void **)&set_threads = dlsym(peer->library, "openblas_set_num_threads");
    *(void **)&get_threads = dlsym(peer->library, "openblas_get_num_threads");
    if (!peer->sgemm || !set_threads || !get_threads) {
        talk_error("--peer openblas: %s lacks cblas_sgemm or a function to set its threads",
                   LIBRARY);
        bench_gemm_peer_close(peer);
        return false;
    }
    peer->cpus = usable_cpus();
    set_threads(peer->cpus);
    // A build without threads would lose by as many times as there are CPUs.
    if (get_threads() != peer->cpus) {
        talk_error("--peer openblas: %s takes %d threads and not %d (Debian: libopenblas0-pthread)",
                   LIBRARY, get_threads(), peer->cpus);
        bench_gemm_peer_close(peer);
        return false;
    }
    return true;
}

// The library stays loaded: its threads may still be on their way to sleep.
void bench_gemm_peer_close(struct bench_gemm_peer *peer) {
    *peer = (struct bench_gemm_peer){0};
}

double bench_gemm_peer_run(const struct bench_gemm_peer *peer, struct bench_gemm_case *g,
                           uint32_t count) {
    int m = (int)g->shape.m;
    int n = (int)g->shape.n;
    int k = (int)g->shape.k;
    const float *a = g->host_a;
    const float *b = g->host_b;
    float *c = g->host_c;
    double start = grt_seconds();
    for (uint32_t i = 0; i < count; i++) {
        for (size_t z = 0; z < g->batch; z++) {
            peer->sgemm(ROW_MAJOR, g->a_transposed ? TRANSPOSED : NOT_TRANSPOSED,
                        g->b_transposed ? TRANSPOSED : NOT_TRANSPOSED, m, n, k, 1.0f,
                        a + z * g->shape.m * g->shape.k, g->a_transposed ? m : k,
                        b + z * g->shape.k * g->shape.n, g->b_transposed ? k : n, 0.0f,
                        c + z * g->shape.m * g->shape.n, n);
        }
    }
    return grt_seconds() - start;
}
