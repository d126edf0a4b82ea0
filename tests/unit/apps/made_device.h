// SPDX-License-Identifier: Apache-2.0
// A device that is not there, for the test_bench_*.c programs: in place of the library's, so that
// `gpurt bench` runs on it. What it is told is done on the host; how long that takes, by the wall
// and by its own clock, and what fails, is said in `made`. Nobody waits: the clock is `made` too.
//
//     wall of one run     made.submit + the sum of its work
//     device's clock      made.share of that sum
#ifndef TESTS_MADE_DEVICE_H
#define TESTS_MADE_DEVICE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/half.h"
#include "gpurt/gpurt.h"
#include "gpurt/tunable.h"
#include "shaders/host.h"
#include "shaders/lib/op_params.k"

#define MADE_TENSORS 16
#define MADE_KERNELS 64
#define MADE_RUNS 65536

struct grt_dev {
    int opened;
};

struct grt_buf {
    uint64_t size;
    enum grt_buf_kind kind;
    unsigned char *bytes;
    bool written;  // by the host, since a product was last put there
};

struct grt_kernel {
    struct grt_kernel_desc desc;
    char name[64];
};

struct made_work {
    void (*run)(const struct made_work *work);
    double seconds;
    struct grt_tensor a, b, y;
    struct grt_range at;
    uint32_t n;
    float value, alpha, beta;
    bool a_transposed, b_transposed;
};

struct grt_graph {
    struct grt_dev *dev;
    struct made_work *work;
    size_t count, room;
    char phase[64];
    double took;
    struct grt_phase_time times[GRT_MAX_PHASES];  // of a step of training
    uint32_t time_count;
};

struct grt_plan {
    struct grt_tensor tensors[MADE_TENSORS];
    char groups[MADE_TENSORS][32];
    uint32_t count;
};

static struct {
    struct grt_dev_info info;
    struct grt_dev dev;
    double now, submit, share;
    double copy_rate[2];  // B/s of the driver's copies and of a kernel's: [0], [1]
    double dispatch;      // seconds of one that fills
    double product_rate, arithmetic_rate, matrix_rate;
    double slower[8];          // one run after the other takes so many times as long; 0: the end
    uint64_t memory;           // that is left
    size_t finishes, fail_at;  // the run that fails, from 1 on; 0: none
    enum grt_status failure;
    bool clock_stands;  // the device's clock tells nothing
    int wrong;          // results: 1 a number is off, 2 one is not written
    bool blank;         // operands are zeros
    uint64_t largest;   // of the buffers that were made
    uint64_t used;      // that the account says
    double runs[MADE_RUNS];
    char kernels[2048];  // names of those that were asked for
    const struct grt_profile_value *in_use;
    struct grt_profile *profile;
    bool closed;
} made;

// ---- the library's ----

double grt_seconds(void) {
    return made.now;
}

struct grt_dev *grt_dev_create(const struct grt_dev_desc *desc) {
    (void)desc;
    made.closed = false;
    return &made.dev;
}

void grt_dev_destroy(struct grt_dev **dev) {
    made.closed = made.closed || *dev;
    *dev = NULL;
}

const struct grt_dev_info *grt_dev_info(const struct grt_dev *dev) {
    (void)dev;
    return &made.info;
}

const struct grt_profile *grt_dev_profile(const struct grt_dev *dev) {
    (void)dev;
    return made.profile;
}

bool grt_dev_wait(struct grt_dev *dev) {
    (void)dev;
    return true;
}

uint64_t grt_dev_mem_left(struct grt_dev *dev) {
    (void)dev;
    return made.memory;
}

struct grt_mem_use grt_dev_mem_use(const struct grt_dev *dev, const char *label) {
    (void)dev;
    (void)label;
    return (struct grt_mem_use){.current = made.used};
}

struct grt_buf *grt_buf_create(struct grt_dev *dev, const struct grt_buf_desc *desc) {
    (void)dev;
    if (desc->size > made.memory) {
        grt_fail(GRT_NO_MEMORY, "made up: %llu bytes", (unsigned long long)desc->size);
        return NULL;
    }
    made.largest = desc->size > made.largest ? desc->size : made.largest;
    struct grt_buf *buf = calloc(1, sizeof *buf);
    *buf = (struct grt_buf){desc->size, desc->kind, calloc(1, desc->size), true};
    return buf;
}

void grt_buf_destroy(struct grt_buf **buf) {
    if (*buf) {
        free((*buf)->bytes);
        free(*buf);
    }
    *buf = NULL;
}

bool grt_buf_write(struct grt_buf *buf, uint64_t offset, const void *data, uint64_t size) {
    assert_true(offset + size <= buf->size);
    memcpy(buf->bytes + offset, data, size);
    buf->written = true;
    return true;
}

bool grt_buf_read(struct grt_buf *buf, uint64_t offset, void *data, uint64_t size) {
    assert_true(offset + size <= buf->size);
    memcpy(data, buf->bytes + offset, size);
    return true;
}

const struct grt_kernel *grt_kernel_get(struct grt_dev *dev, const struct grt_kernel_desc *desc) {
    static struct grt_kernel kernels[MADE_KERNELS];
    static uint32_t count;
    struct grt_kernel *kernel = &kernels[count++ % MADE_KERNELS];
    size_t used = strlen(made.kernels);
    (void)dev;
    kernel->desc = *desc;
    snprintf(kernel->name, sizeof kernel->name, "%s", desc->name);
    snprintf(made.kernels + used, sizeof made.kernels - used, "%s ", desc->name);
    return kernel;
}

bool grt_kernel_exists(const struct grt_dev *dev, const char *name) {
    (void)dev;
    return strcmp(name, "peak_wgmma") != 0 || made.info.backend == GRT_BACKEND_OPENCL;
}

struct grt_graph *grt_graph_create(struct grt_dev *dev, const char *label) {
    struct grt_graph *graph = calloc(1, sizeof *graph);
    (void)label;
    graph->dev = dev;
    return graph;
}

void grt_graph_destroy(struct grt_graph **graph) {
    if (*graph) {
        free((*graph)->work);
        free(*graph);
    }
    *graph = NULL;
}

struct grt_dev *grt_graph_dev(const struct grt_graph *graph) {
    return graph->dev;
}

void grt_graph_phase(struct grt_graph *graph, const char *name) {
    snprintf(graph->phase, sizeof graph->phase, "%s", name);
}

bool grt_graph_bake(struct grt_graph *graph) {
    (void)graph;
    return true;
}

static inline void made_add(struct grt_graph *graph, const struct made_work *work) {
    if (graph->count == graph->room) {
        graph->room = graph->room ? 2 * graph->room : 16;
        graph->work = realloc(graph->work, graph->room * sizeof *graph->work);
        assert_non_null(graph->work);
    }
    graph->work[graph->count++] = *work;
}

bool grt_graph_finish(struct grt_graph *graph) {
    size_t turns = 0;
    double sum = 0;
    while (turns < 8 && made.slower[turns] > 0) {
        turns++;
    }
    double slower = turns ? made.slower[made.finishes % turns] : 1;
    for (size_t i = 0; i < graph->count; i++) {
        graph->work[i].run(&graph->work[i]);
        sum += graph->work[i].seconds;
    }
    graph->took = made.clock_stands ? 0 : made.share * sum * slower;
    made.now += made.submit + sum * slower;
    made.runs[made.finishes % MADE_RUNS] =
        graph->phase[0] && graph->took > 0 ? graph->took : made.submit + sum * slower;
    made.finishes++;
    return made.finishes != made.fail_at || grt_fail(made.failure, "made up: this run fails");
}

bool grt_graph_run(struct grt_graph *graph) {
    return grt_graph_finish(graph);
}

uint32_t grt_graph_times(struct grt_graph *graph, struct grt_phase_time *times, uint32_t capacity) {
    for (uint32_t i = 0; i < graph->time_count && i < capacity; i++) {
        times[i] = graph->times[i];
    }
    if (graph->time_count) {
        return graph->time_count;
    }
    bool known = graph->phase[0] && capacity > 0 && graph->took > 0;
    if (known) {
        times[0] = (struct grt_phase_time){graph->phase, graph->took};
    }
    return known;
}

// ---- work ----

static inline unsigned char *made_at(const struct grt_range *range) {
    return range->buf->bytes + range->offset;
}

static inline void made_copy(const struct made_work *work) {
    memcpy(made_at(&work->y.range), made_at(&work->a.range), work->y.range.size);
    if (made.wrong) {
        made_at(&work->y.range)[work->y.range.size - 1] ^= 1;
    }
}

static inline void made_add_copy(struct grt_graph *graph, struct grt_range to,
                                 struct grt_range from, bool kernel) {
    assert_true(to.size == from.size && to.offset + to.size <= to.buf->size);
    made_add(graph, &(struct made_work){.run = made_copy,
                                        .seconds = (double)to.size / made.copy_rate[kernel],
                                        .a.range = from,
                                        .y.range = to});
}

void grt_graph_copy(struct grt_graph *graph, struct grt_range to, struct grt_range from) {
    made_add_copy(graph, to, from, false);
}

void grt_op_copy(struct grt_graph *graph, const struct grt_tensor *y, const struct grt_tensor *x) {
    made_add_copy(graph, y->range, x->range, true);
}

static inline void made_fill(const struct made_work *work) {
    for (uint32_t i = 0; i < work->n; i++) {
        memcpy(made_at(&work->at) + 4 * i, &work->value, 4);
    }
    if (made.wrong && work->n) {
        memset(made_at(&work->at), 0, 4);
    }
}

static inline uint32_t made_spec(const struct grt_kernel *kernel, const char *name) {
    for (int i = 0; i < GRT_MAX_SPECS && kernel->desc.specs[i].name; i++) {
        if (strcmp(kernel->desc.specs[i].name, name) == 0) {
            return kernel->desc.specs[i].value;
        }
    }
    return 0;
}

// What each lane of a kernel of bench_peak.c leaves, and operations of a workgroup in a step.
static inline double made_peak(const struct grt_kernel *kernel, const struct peak_params *p,
                               double *operations) {
    double chains = made_spec(kernel, "CHAINS"), lanes = made_spec(kernel, "WG");
    if (strcmp(kernel->name, "peak") == 0) {
        *operations = 2.0 * 4 * 4 * chains * lanes;
        return 8 * chains;
    }
    if (strcmp(kernel->name, "peak_panel") == 0) {
        double wide = made_spec(kernel, "VW");
        *operations = 2.0 * 4 * wide * chains;
        return wide * chains / 2 * (1 + 4 * (double)p->a * p->steps);
    }
    if (strcmp(kernel->name, "peak_mma") == 0) {  // of a warp: 16 x 8 x 16
        *operations = 2.0 * 16 * 8 * 16 * chains * lanes / 32;
        return chains * 16.0 / 1024 * p->steps;
    }
    if (strcmp(kernel->name, "peak_wgmma") == 0) {  // of both groups: 64 x 256 x 64
        *operations = 2.0 * 64 * 256 * 64 * 2;
        return 64.0 / 1024 * p->steps;
    }
    assert_true(strncmp(kernel->name, "peak_coop_", 10) == 0);
    *operations = 2.0 * 16 * 16 * 16 * chains * lanes / made.info.caps.subgroup;
    return chains * 16.0 / 1024 * p->steps * (256.0 / made.info.caps.subgroup);
}

void grt_graph_dispatch(struct grt_graph *graph, const struct grt_dispatch *d) {
    if (strcmp(d->kernel->name, "fill") == 0) {
        const struct fill_params *p = d->params;
        assert_true(d->bindings[0].offset + d->bindings[0].size <= d->bindings[0].buf->size);
        made_add(graph, &(struct made_work){.run = made_fill,
                                            .seconds = made.dispatch,
                                            .at = d->bindings[0],
                                            .n = p->n,
                                            .value = p->value});
        return;
    }
    const struct peak_params *p = d->params;
    double operations = 0, value = made_peak(d->kernel, p, &operations);
    // Matrix units by mma, wgmma at twice and coop at three times its rate.
    double rate = made.matrix_rate * (strstr(d->kernel->name, "wgmma")  ? 2
                                      : strstr(d->kernel->name, "coop") ? 3
                                                                        : 1);
    if (strcmp(d->kernel->name, "peak") == 0 || strstr(d->kernel->name, "panel")) {
        rate = made.arithmetic_rate;
    }
    uint32_t groups = d->groups[0], lanes = made_spec(d->kernel, "WG");
    made_add(graph, &(struct made_work){.run = made_fill,
                                        .seconds = operations * p->steps * groups / rate,
                                        .at = {d->bindings[0].buf, 0, 0},
                                        .n = groups * lanes,
                                        .value = (float)value});
}

// ---- plans, products ----

struct grt_plan *grt_plan_create(struct grt_dev *dev) {
    (void)dev;
    return calloc(1, sizeof(struct grt_plan));
}

void grt_plan_destroy(struct grt_plan **plan) {
    for (uint32_t i = 0; *plan && i < (*plan)->count; i++) {
        grt_buf_destroy(&(*plan)->tensors[i].range.buf);
    }
    free(*plan);
    *plan = NULL;
}

struct grt_tensor *grt_plan_tensor(struct grt_plan *plan, const struct grt_tensor_desc *desc) {
    assert_true(plan->count < MADE_TENSORS);
    struct grt_tensor *t = &plan->tensors[plan->count];
    snprintf(plan->groups[plan->count++], 32, "%s", desc->group ? desc->group : "tensors");
    *t = (struct grt_tensor){.dtype = desc->dtype};
    snprintf(t->label, sizeof t->label, "%s", desc->label);
    while (t->rank < GRT_MAX_RANK && desc->shape[t->rank]) {
        t->shape[t->rank] = desc->shape[t->rank];
        t->rank++;
    }
    return t;
}

uint64_t grt_plan_bytes(const struct grt_plan *plan, const char *group) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < plan->count; i++) {
        bytes +=
            !group || strcmp(plan->groups[i], group) == 0 ? grt_tensor_bytes(&plan->tensors[i]) : 0;
    }
    return bytes;
}

bool grt_plan_alloc(struct grt_plan *plan) {
    for (uint32_t i = 0; i < plan->count; i++) {
        struct grt_tensor *t = &plan->tensors[i];
        uint64_t bytes = grt_tensor_bytes(t);
        struct grt_buf *buf = grt_buf_create(&made.dev, grt_buf_desc(.size = bytes ? bytes : 4));
        if (!buf) {
            return false;
        }
        t->range = (struct grt_range){buf, 0, bytes};
    }
    return true;
}

const struct grt_tensor *grt_plan_at(const struct grt_plan *plan, const char *group, uint32_t i) {
    for (uint32_t k = 0; k < plan->count; k++) {
        if (strcmp(plan->groups[k], group) == 0 && i-- == 0) {
            return &plan->tensors[k];
        }
    }
    return NULL;
}

static inline double made_get(const struct grt_tensor *t, uint64_t i) {
    const unsigned char *at = made_at(&t->range);
    uint16_t narrow;
    float wide;
    if (t->dtype == GRT_F32) {
        memcpy(&wide, at + 4 * i, 4);
        return (double)wide;
    }
    memcpy(&narrow, at + 2 * i, 2);
    return (double)grt_f32_of_16(t->dtype, narrow);
}

static inline void made_put(const struct grt_tensor *t, uint64_t i, double value) {
    unsigned char *at = made_at(&t->range);
    float wide = (float)value;
    uint16_t narrow = t->dtype == GRT_F32 ? 0 : grt_16_of_f32(t->dtype, wide);
    memcpy(at + grt_dtype_size(t->dtype) * i, t->dtype == GRT_F32 ? (void *)&wide : &narrow,
           grt_dtype_size(t->dtype));
}

static inline void made_random(const struct made_work *work) {
    uint32_t state = 1 + work->n;
    for (uint64_t i = 0; !made.blank && i < grt_tensor_count(&work->y); i++) {
        state = state * 1664525u + 1013904223u;
        made_put(&work->y, i, (double)(state >> 16) / 65536);
    }
}

void grt_op_random(struct grt_graph *graph, const struct grt_random_desc *desc) {
    made_add(graph, &(struct made_work){.run = made_random, .y = *desc->y, .n = desc->stream});
}

static inline void made_map(const struct made_work *work) {
    for (uint64_t i = 0; !made.blank && i < grt_tensor_count(&work->y); i++) {
        made_put(&work->y, i, (double)work->alpha * made_get(&work->a, i) + (double)work->beta);
    }
}

void grt_op_map(struct grt_graph *graph, const struct grt_map_desc *d) {
    assert_int_equal(d->map, GRT_MAP_SCALE);
    made_add(graph,
             &(struct made_work){
                 .run = made_map, .y = *d->y, .a = *d->a, .alpha = d->alpha, .beta = d->beta});
}

void grt_op_convert(struct grt_graph *graph, const struct grt_tensor *y,
                    const struct grt_tensor *x) {
    made_add(graph,
             &(struct made_work){.run = made_map, .y = *y, .a = *x, .alpha = 1.0f, .beta = 0.0f});
}

static inline void made_multiply(const struct made_work *w) {
    uint32_t first = w->y.rank == 3;
    uint64_t batch = first ? w->y.shape[0] : 1, m = w->y.shape[first], n = w->y.shape[first + 1];
    uint64_t k = w->a.shape[first + !w->a_transposed];
    if (!w->y.range.buf->written) {
        return;  // it is there
    }
    w->y.range.buf->written = false;
    assert_true(m * n * k * batch < 1u << 23);
    for (uint64_t i = 0; i < batch * m * n; i++) {
        uint64_t z = i / (m * n), r = i / n % m, c = i % n;
        double sum = 0;
        for (uint64_t l = 0; l < k; l++) {
            sum += made_get(&w->a, z * m * k + (w->a_transposed ? l * m + r : r * k + l)) *
                   made_get(&w->b, z * k * n + (w->b_transposed ? c * k + l : l * n + c));
        }
        made_put(&w->y, i, sum + (made.wrong == 1 && i == 3));
    }
    if (made.wrong == 2) {
        memset(made_at(&w->y.range), 0xff, 4);
    }
}

void grt_op_gemm(struct grt_graph *graph, const struct grt_gemm_desc *d) {
    uint32_t first = d->c->rank == 3;
    double work =
        2.0 * (double)grt_tensor_count(d->c) * (double)d->a->shape[first + !d->a_transposed];
    double rate = made.product_rate * (strcmp(d->variant, "plain") == 0 ? 0.5 : 1);
    made_add(graph, &(struct made_work){.run = made_multiply,
                                        .seconds = work / rate,
                                        .a = *d->a,
                                        .b = *d->b,
                                        .y = *d->c,
                                        .a_transposed = d->a_transposed,
                                        .b_transposed = d->b_transposed});
}

uint64_t grt_op_gemm_scratch(struct grt_dev *dev, const struct grt_gemm_desc *desc) {
    (void)dev;
    (void)desc;
    return 0;
}

// f32 has tiled and plain, the others wgmma, mma, coop and tiled before them.
const char *grt_gemm_variant(struct grt_dev *dev, const struct grt_gemm_desc *desc, uint32_t i) {
    static const char *const names[] = {"wgmma", "mma", "coop", "tiled", "plain"};
    (void)dev;
    for (uint32_t k = desc->a->dtype == GRT_F32 ? 3 : 0; k < 5; k++) {
        if ((!desc->variant || strcmp(desc->variant, names[k]) == 0) && i-- == 0) {
            return names[k];
        }
    }
    return NULL;
}

const struct grt_profile_value *grt_tunable_in_use(struct grt_dev *dev, const char *op,
                                                   const char *variant, enum grt_dtype dtype,
                                                   uint64_t rows, uint64_t columns,
                                                   uint64_t batch) {
    (void)dev;
    (void)op;
    (void)dtype;
    (void)rows;
    (void)columns;
    (void)batch;
    return strcmp(variant, "tiled") == 0 ? made.in_use : NULL;
}

// ---- the tests' ----

// A GPU of ten units with a clock of its own: copies at 1 GB/s by its driver and 2 by a kernel,
// products at 1 TFLOP/s, 2 TFLOP/s of arithmetic and 8 of its matrix units.
static inline int made_begin(void **state) {
    (void)state;
    grt_profile_destroy(&made.profile);
    memset(&made, 0, sizeof made);
    made.info = (struct grt_dev_info){.backend = GRT_BACKEND_OPENCL,
                                      .name = "Made-up 9000",
                                      .selector = "opencl:0",
                                      .driver = "none",
                                      .driver_version = "0.1"};
    made.info.caps = (struct grt_caps){.timestamps = 1,
                                       .compute_units = 10,
                                       .subgroup = 32,
                                       .align = 16,
                                       .memory = 1ull << 30,
                                       .max_wg = 1024};
    made.submit = 1e-5;
    made.share = 0.5;
    made.copy_rate[0] = 1e9;
    made.copy_rate[1] = 2e9;
    made.dispatch = 1e-6;
    made.product_rate = 1e12;
    made.arithmetic_rate = 2e12;
    made.matrix_rate = 8e12;
    made.memory = 1ull << 20;
    made.failure = GRT_LOST;
    setenv("XDG_CONFIG_HOME", "/nowhere", 1);
    unsetenv("GPURT_PROFILE");
    unsetenv("GPURT_DEVICE");
    made.profile = grt_profile_create(&made.info);
    return made.profile ? 0 : -1;
}

// The same as a CPU's driver, which has no clock.
static inline void made_software(void) {
    made.info.caps.software = 1;
    made.info.caps.timestamps = 0;
}

#include "unit/apps/made_run.h"

#endif
