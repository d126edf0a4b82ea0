// SPDX-License-Identifier: Apache-2.0
// Operands and checks of `gpurt bench gemm`.
//
// The operands are made on the device: uniform in [-1, 1), then rounded to their type. A result is
// compared with sums in double precision over the same rounded numbers, at the corners and at
// random places; and no place of c may still hold what it was poisoned with.
#include "bench_gemm_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "cli/talk.h"

#define PLACES 64
#define EVERYWHERE (1u << 22)  // multiply-adds: a product of no more is looked at everywhere
#define POISON 0xff            // of every byte: NaN in every type

// ---- operands ----

static struct grt_tensor *declare(struct bench_gemm_case *g, const char *label,
                                  enum grt_dtype dtype, uint64_t rows, uint64_t cols) {
    // Of rank 3 only in a batch: some variants take single products only.
    const struct grt_tensor_desc single = {label, NULL, dtype, {rows, cols}};
    const struct grt_tensor_desc batched = {label, NULL, dtype, {g->batch, rows, cols}};
    return grt_plan_tensor(g->plan, g->batch > 1 ? &batched : &single);
}

bool bench_fill_random(struct bench *bench, const struct grt_tensor *x, uint32_t stream) {
    const struct grt_rng_state seed = {.seed = {20261101, 7}};
    struct grt_dev *dev = bench->dev;
    struct grt_tensor y = *x;
    struct grt_graph *graph = NULL;
    bool good = false;
    y.dtype = GRT_F32;
    struct grt_buf *state = grt_buf_create(dev, grt_buf_desc(.size = sizeof seed, .label = "rng"));
    struct grt_buf *wide = NULL;
    if (!state || !grt_buf_write(state, 0, &seed, sizeof seed)) {
        goto undo_state;
    }
    if (x->dtype != GRT_F32) {
        wide = grt_buf_create(
            dev, grt_buf_desc(.size = grt_tensor_bytes(&y), .label = "bench operands in f32"));
        if (!wide) {
            goto undo_state;
        }
        y.range = (struct grt_range){wide, 0, grt_tensor_bytes(&y)};
    }
    graph = grt_graph_create(dev, "bench operands");
    if (graph) {
        grt_op_random(graph, grt_random_desc(.dist = GRT_DIST_UNIFORM, .y = &y,
                                             .state = {state, 0, 0}, .stream = stream));
        grt_op_map(graph, grt_map_desc(.map = GRT_MAP_SCALE, .y = &y, .a = &y, .alpha = 2.0f,
                                       .beta = -1.0f));
        if (wide) {
            grt_op_convert(graph, x, &y);
        }
        good = grt_graph_finish(graph);
    }
    grt_graph_destroy(&graph);
    grt_buf_destroy(&wide);
undo_state:
    grt_buf_destroy(&state);
    return good;
}

static bool read_back(const struct grt_tensor *x, void *host) {
    return grt_buf_read(x->range.buf, x->range.offset, host, grt_tensor_bytes(x));
}

enum bench_outcome bench_gemm_case_begin(struct bench_gemm_case *g) {
    const struct bench_gemm_shape *s = &g->shape;
    enum bench_outcome outcome = BENCH_BROKEN;
    g->plan = grt_plan_create(g->bench->dev);
    if (!g->plan) {
        return bench_failure();
    }
    const struct grt_tensor *a =
        declare(g, "a", g->in, g->a_transposed ? s->k : s->m, g->a_transposed ? s->m : s->k);
    const struct grt_tensor *b =
        declare(g, "b", g->in, g->b_transposed ? s->n : s->k, g->b_transposed ? s->k : s->n);
    const struct grt_tensor *c = declare(g, "c", g->out, s->m, s->n);
    struct grt_gemm_desc desc = {
        .a = a, .b = b, .c = c, .a_transposed = g->a_transposed, .b_transposed = g->b_transposed};
    uint64_t scratch_bytes = grt_op_gemm_scratch(g->bench->dev, &desc);
    // This one does nothing without, and may be asked for where it does not pay.
    desc.variant = "padded";
    uint64_t for_copies = grt_op_gemm_scratch(g->bench->dev, &desc);
    scratch_bytes = for_copies > scratch_bytes ? for_copies : scratch_bytes;
    const struct grt_tensor *scratch =
        scratch_bytes ? grt_plan_tensor(g->plan, grt_tensor_desc(.label = "scratch",
                                                                 .shape = {scratch_bytes / 4}))
                      : NULL;
    if (!grt_plan_alloc(g->plan)) {
        outcome = bench_failure();
        goto undo;
    }
    g->a = *a;
    g->b = *b;
    g->c = *c;
    g->scratch = scratch ? scratch->range : (struct grt_range){0};
    g->host_a = malloc(grt_tensor_bytes(a));
    g->host_b = malloc(grt_tensor_bytes(b));
    g->host_c = malloc(grt_tensor_bytes(c));
    if (!g->host_a || !g->host_b || !g->host_c) {
        talk_error("gemm: no host memory for the operands");
        outcome = BENCH_TOO_LARGE;
        goto undo;
    }
    if (bench_fill_random(g->bench, &g->a, 1) && bench_fill_random(g->bench, &g->b, 2) &&
        read_back(&g->a, g->host_a) && read_back(&g->b, g->host_b)) {
        return BENCH_GOOD;
    }
    outcome = bench_failure();
undo:
    bench_gemm_case_end(g);
    return outcome;
}

void bench_gemm_case_end(struct bench_gemm_case *g) {
    free(g->host_a);
    free(g->host_b);
    free(g->host_c);
    g->host_a = g->host_b = g->host_c = NULL;
    grt_plan_destroy(&g->plan);
}

struct grt_gemm_desc bench_gemm_case_desc(const struct bench_gemm_case *g, const char *variant) {
    return (struct grt_gemm_desc){.a = &g->a,
                                  .b = &g->b,
                                  .c = &g->c,
                                  .a_transposed = g->a_transposed,
                                  .b_transposed = g->b_transposed,
                                  .scratch = g->scratch,
                                  .variant = variant};
}

double bench_gemm_case_flops(const struct bench_gemm_case *g) {
    return 2.0 * (double)g->shape.m * (double)g->shape.n * (double)g->shape.k * g->batch;
}

// ---- the check ----

// Element i of an array of this type.
static double element(enum grt_dtype dtype, const void *array, uint64_t i) {
    if (dtype == GRT_F32) {
        return (double)((const float *)array)[i];
    }
    return (double)grt_f32_of_16(dtype, ((const uint16_t *)array)[i]);
}

// How far c[z][i][j] is from the sum, in units of what is allowed. With random signs a sum of k
// products has the size `scale`, the root of the sum of their squares, and the errors of k
// roundings of partial sums, or of one order of them and another, are about u sqrt(k) scale. Four
// times that is allowed in f32. Matrix units cut partial sums off where they should round, so
// 16-bit operands, themselves known to 2^-11 at best, are allowed 32 times. A 16-bit result adds
// its own rounding.
static double error_at(const struct bench_gemm_case *g, uint64_t z, uint64_t i, uint64_t j) {
    const struct bench_gemm_shape *s = &g->shape;
    double sum = 0;
    double squares = 0;
    for (uint64_t l = 0; l < s->k; l++) {
        uint64_t at_a = z * s->m * s->k + (g->a_transposed ? l * s->m + i : i * s->k + l);
        uint64_t at_b = z * s->k * s->n + (g->b_transposed ? j * s->k + l : l * s->n + j);
        double product = element(g->in, g->host_a, at_a) * element(g->in, g->host_b, at_b);
        sum += product;
        squares += product * product;
    }
    double allowed =
        (g->in == GRT_F32 ? 4 : 32) * 0x1p-24 * sqrt((double)s->k) * sqrt(squares) + 0x1p-126;
    if (g->out != GRT_F32) {
        allowed += g->out == GRT_F16 ? 0x1p-11 * fabs(sum) + 0x1p-25 : 0x1p-8 * fabs(sum);
    }
    return fabs(element(g->out, g->host_c, (z * s->m + i) * s->n + j) - sum) / allowed;
}

// The first element that was never written, or `count`.
static uint64_t untouched(const struct bench_gemm_case *g, uint64_t count) {
    static const unsigned char poison[4] = {POISON, POISON, POISON, POISON};
    size_t size = grt_dtype_size(g->out);
    uint64_t i = 0;
    while (i < count && memcmp((const unsigned char *)g->host_c + i * size, poison, size) != 0) {
        i++;
    }
    return i;
}

enum bench_outcome bench_gemm_check(const struct bench_gemm_case *g, const char *variant,
                                    double *error) {
    const struct bench_gemm_shape *s = &g->shape;
    uint64_t count = g->batch * s->m * s->n;
    uint64_t random = 88172645463325252u;
    uint64_t hole = untouched(g, count);
    *error = 0;
    if (hole < count) {
        talk_error("gemm %s: element %llu of c was not written", variant, (unsigned long long)hole);
        return BENCH_WRONG;
    }
    bool all = count * s->k <= EVERYWHERE;
    for (uint64_t place = 0; place < (all ? count : PLACES); place++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // The first two are the ends.
        uint64_t at = all || place == 0 ? place : place == 1 ? count - 1 : random % count;
        uint64_t z = at / (s->m * s->n);
        uint64_t i = at / s->n % s->m;
        uint64_t j = at % s->n;
        double here = error_at(g, z, i, j);
        *error = here <= *error ? *error : here;  // a NaN is taken, and stays
        if (!(here <= 1)) {
            talk_error("gemm %s: c[%llu][%llu][%llu] is %g, off by %.3g times what is allowed",
                       variant, (unsigned long long)z, (unsigned long long)i, (unsigned long long)j,
                       element(g->out, g->host_c, at), here);
            return BENCH_WRONG;
        }
    }
    return BENCH_GOOD;
}

void bench_gemm_poison(struct bench_gemm_case *g) {
    memset(g->host_c, POISON, grt_tensor_bytes(&g->c));
}

enum bench_outcome bench_gemm_run_checked(struct bench_gemm_case *g, struct grt_graph *graph,
                                          const char *variant, double *error) {
    bench_gemm_poison(g);
    if (!grt_buf_write(g->c.range.buf, g->c.range.offset, g->host_c, grt_tensor_bytes(&g->c)) ||
        !grt_graph_finish(graph) || !read_back(&g->c, g->host_c)) {
        return BENCH_BROKEN;
    }
    return bench_gemm_check(g, variant, error);
}
