// SPDX-License-Identifier: Apache-2.0
#include "transform_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/learner.h"
#include "learn_kit.h"

struct transform_kit transform_begin(enum grt_dtype dtype, const char *text, const char *evaluated,
                                     const struct grt_shape *in, uint64_t rows) {
    struct transform_kit k = {.in = *in, .rows = rows, .training = true};
    struct grt_tensor_desc x = {.label = "x", .dtype = dtype, .shape = {rows}};
    struct grt_tensor_desc y = {.label = "y", .dtype = dtype, .shape = {rows}};
    k.module = grt_transform_create(grt_network_desc(.text = text));
    assert_non_null(k.module);
    assert_true(!evaluated ||
                grt_transform_evaluate(k.module, grt_network_desc(.text = evaluated)));
    k.params = test_alloc(sizeof *k.params);
    grt_params_init(k.params, test.dev, dtype);
    k.plan = grt_plan_create(test.dev);
    k.net = test_alloc(sizeof *k.net);
    *k.net = (struct grt_net){.dev = test.dev,
                              .plan = k.plan,
                              .params = k.params,
                              .dtype = dtype,
                              .rows = rows,
                              .seed = 77};
    k.out = grt_module_declare(k.module, k.net, "", in);
    assert_true(k.out.rank == 3);
    memcpy(x.shape + 1, in->dim, sizeof in->dim);
    memcpy(y.shape + 1, k.out.dim, sizeof k.out.dim);
    k.x = grt_plan_tensor(k.plan, &x);
    k.y = grt_plan_tensor(k.plan, &y);
    if (k.net->scratch_bytes > 0) {
        k.net->scratch =
            grt_plan_tensor(k.plan, grt_tensor_desc(.label = "scratch", .dtype = GRT_U32,
                                                    .shape = {(k.net->scratch_bytes + 3) / 4}));
    }
    assert_true(grt_plan_alloc(k.plan));
    k.state = test_buf(test.dev, sizeof(struct grt_learn_state), GRT_BUF_DEVICE);
    uint64_t count = grt_tensor_count(k.x);
    k.images = test_alloc(count * sizeof *k.images);
    uint16_t *small = test_alloc(count * sizeof *small);
    for (uint64_t i = 0; i < count; i++) {
        k.images[i] = (float)(learn_hash(5, (uint32_t)i) % 256);
        small[i] = (uint16_t)oracle_narrow(oracle_f16, (double)k.images[i]);
    }
    assert_true(grt_buf_write(k.x->range.buf, k.x->range.offset,
                              dtype == GRT_F32 ? (void *)k.images : (void *)small,
                              count * grt_dtype_size(dtype)));
    free(small);
    return k;
}

float *transform_result(const struct transform_kit *k) {
    uint64_t count = grt_tensor_count(k->y);
    if (k->y->dtype == GRT_F32) {
        return learn_read(k->y);
    }
    uint16_t *small = test_alloc(count * sizeof *small);
    float *wide = test_alloc(count * sizeof *wide);
    assert_true(grt_buf_read(k->y->range.buf, k->y->range.offset, small, count * sizeof *small));
    for (uint64_t i = 0; i < count; i++) {
        wide[i] = (float)oracle_widen(oracle_f16, small[i]);
    }
    free(small);
    return wide;
}

void transform_end(struct transform_kit *k) {
    grt_module_destroy(&k->module);
    grt_net_finish(k->net);
    grt_params_finish(k->params);
    free(k->net);
    free(k->params);
    grt_plan_destroy(&k->plan);
    grt_buf_destroy(&k->state);
    free(k->images);
}

static void record(struct grt_graph *graph, void *context) {
    const struct transform_kit *k = context;
    const struct grt_pass pass = {.graph = graph,
                                  .training = k->training,
                                  .micro = k->micro,
                                  .state = {k->state, 0, sizeof(struct grt_learn_state)}};
    grt_module_forward(k->module, &pass, k->x, k->y);
}

void transform_run(struct transform_kit *k, uint32_t step) {
    const struct grt_learn_state state = {.steps = step};
    assert_true(grt_buf_write(k->state, 0, &state, sizeof state));
    test_run(test.dev, record, k);
}

int32_t *transform_boxes(const struct transform_kit *k, uint32_t pass) {
    const struct grt_tensor *boxes = grt_transform_boxes(k->module, pass);
    assert_non_null(boxes);
    int32_t *words = test_alloc(k->rows * BOX_SIZE * sizeof *words);
    assert_true(grt_buf_read(boxes->range.buf, boxes->range.offset, words, k->rows * BOX_SIZE * 4));
    return words;
}

uint32_t *transform_colours(const struct transform_kit *k, uint32_t pass) {
    const struct grt_tensor *colours = grt_transform_colours(k->module, pass);
    assert_non_null(colours);
    uint64_t bytes = k->rows * COLOUR_SIZE * 4;
    uint32_t *words = test_alloc(bytes);
    assert_true(grt_buf_read(colours->range.buf, colours->range.offset, words, bytes));
    return words;
}

double transform_uniform(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) * 0x1p-53;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void transform_alike(const char *what, double *a, size_t n, double *b, size_t m) {
    double worst = 0, bound = 1.95 * sqrt((double)(n + m) / ((double)n * (double)m));
    qsort(a, n, sizeof *a, by_size);
    qsort(b, m, sizeof *b, by_size);
    // On both sides of each step: what lies at one end alone differs only before it.
    for (size_t i = 0, j = 0, end; i < n; i = end) {
        for (end = i; end < n && a[end] == a[i]; end++) {
        }
        while (j < m && b[j] < a[i]) {
            j++;
        }
        worst = fmax(worst, fabs((double)i / (double)n - (double)j / (double)m));
        while (j < m && b[j] == a[i]) {
            j++;
        }
        worst = fmax(worst, fabs((double)end / (double)n - (double)j / (double)m));
    }
    if (worst > bound) {
        fail_msg("%s: drawn otherwise than torchvision draws it, by %g of %g", what, worst, bound);
    }
}

void transform_refuse(const char *text, const char *evaluated, const struct grt_shape *in,
                      const char *why) {
    struct grt_params params;
    struct grt_module *module = grt_transform_create(grt_network_desc(.text = text));
    assert_non_null(module);
    assert_true(!evaluated || grt_transform_evaluate(module, grt_network_desc(.text = evaluated)));
    grt_params_init(&params, test.dev, GRT_F32);
    struct grt_plan *plan = grt_plan_create(test.dev);
    struct grt_net net = {
        .dev = test.dev, .plan = plan, .params = &params, .dtype = GRT_F32, .rows = 2};
    TEST_REFUSED(grt_module_declare(module, &net, "", in).rank > 0, GRT_CONFIG, why);
    grt_module_destroy(&module);
    grt_net_finish(&net);
    grt_params_finish(&params);
    grt_plan_destroy(&plan);
}
