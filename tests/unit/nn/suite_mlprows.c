// SPDX-License-Identifier: Apache-2.0
// An MLP over rows that lie apart: outputs and gradients against sums in double precision, row by
// row from the formulas, where the device has kernels for it; the same bits on every run; and what
// is refused on every device.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/kernels.h"
#include "gpurt/optim.h"
#include "kits/mlp_kit.h"
#include "nn/fused/mlp_rows.h"

#define HIDDEN 64u
#define MOST_DEPTH 3u
#define STEPS 3u
#define SHARE 5u

struct shape {
    uint32_t near, far, depth, outputs, rows;
    enum grt_act act;
    bool ordered;
};

struct model {
    struct shape s;
    uint32_t period, inputs;
    struct mlp_kit kit;
    struct test_tensor near, far, order, y, dy, hidden, scratch, state;
    double *x, *slopes;  // by rows
};

static uint64_t pitch_of(uint32_t numbers) {
    return (numbers + 7) / 8 * 8 + 8;  // more than needed
}

// ---- making it ----

// Draws [count][pitch], zeros behind `numbers` of a row; the numbers as doubles too.
static double *draw_part(struct model *m, struct test_tensor *t, uint64_t count, uint32_t numbers,
                         uint64_t pitch, uint64_t seed) {
    uint16_t *small = test_alloc(count * pitch * sizeof *small);
    double *wide = test_alloc(count * (numbers ? numbers : 1) * sizeof *wide);
    memset(small, 0, count * pitch * sizeof *small);
    for (uint64_t i = 0; i < count * numbers; i++) {
        double v = mlp_kit_rounded(m->kit.dtype, 2.0 * test_unit(&seed) - 1.0);
        wide[i] = v;
        small[i / numbers * pitch + i % numbers] =
            (uint16_t)oracle_narrow(mlp_kit_format(m->kit.dtype), v);
    }
    test_tensor_write(t, small);
    free(small);
    return wide;
}

static void draw_rows(struct model *m, uint64_t seed) {
    const struct shape *s = &m->s;
    uint32_t places = STEPS * m->period, groups = STEPS * (m->period / SHARE);
    double *near = draw_part(m, &m->near, places, s->near, pitch_of(s->near), seed);
    double *far = draw_part(m, &m->far, groups, s->far, pitch_of(s->far), seed + 1);
    uint32_t *order = test_alloc(s->rows * sizeof *order);
    m->x = test_alloc((uint64_t)s->rows * m->inputs * sizeof *m->x);
    for (uint32_t i = 0; i < s->rows; i++) {
        order[i] = (uint32_t)(test_unit(&seed) * places);
        uint32_t at = s->ordered ? order[i] : i, step = at / m->period, row = at % m->period;
        uint32_t group = step * (m->period / SHARE) + row / SHARE;
        memcpy(m->x + (uint64_t)i * m->inputs, near + (uint64_t)at * s->near,
               s->near * sizeof(double));
        memcpy(m->x + (uint64_t)i * m->inputs + s->near, far + (uint64_t)group * s->far,
               s->far * sizeof(double));
    }
    test_tensor_write(&m->order, order);
    m->slopes = draw_part(m, &m->dy, s->rows, s->outputs, s->outputs, seed + 2);
    free(near);
    free(far);
    free(order);
}

static struct grt_mlp_rows_desc desc_of(const struct model *m) {
    const struct shape *s = &m->s;
    struct grt_mlp_rows_desc d = {
        .model = {.inputs = m->inputs,
                  .depth = s->depth,
                  .hidden = HIDDEN,
                  .outputs = s->outputs,
                  .act = s->act},
        .dtype = m->kit.dtype,
        .params = &m->kit.params,
        .rows = s->rows,
        .places = {.near = {m->near.tensor.range, s->near, pitch_of(s->near),
                            m->period * pitch_of(s->near)},
                   .far = {m->far.tensor.range, s->far, pitch_of(s->far),
                           m->period / SHARE * pitch_of(s->far)},
                   .period = m->period,
                   .share = SHARE},
        .hidden = m->hidden.tensor.range,
        .y = &m->y.tensor,
        .dy = &m->dy.tensor,
        .state = m->state.tensor.range,
        .scratch = m->scratch.tensor.range};
    if (s->ordered) {
        d.places.order = m->order.tensor.range;
    }
    return d;
}

static void begin(struct model *m, const struct shape *s, enum grt_dtype dtype) {
    *m = (struct model){.s = *s, .inputs = s->near + s->far};
    m->period = (s->rows / STEPS + SHARE) / SHARE * SHARE;
    mlp_kit_begin(&m->kit, dtype,
                  grt_mlp_desc(.inputs = m->inputs, .depth = s->depth, .hidden = HIDDEN,
                               .outputs = s->outputs),
                  7 + s->rows);
    m->near = test_tensor(test.dev, dtype, STEPS * m->period, pitch_of(s->near));
    m->far = test_tensor(test.dev, dtype, STEPS * (m->period / SHARE), pitch_of(s->far));
    m->order = test_tensor(test.dev, GRT_U32, s->rows, 0);
    m->y = test_tensor(test.dev, GRT_F32, s->rows, s->outputs);
    m->dy = test_tensor(test.dev, dtype, s->rows, s->outputs);
    m->state = test_tensor(test.dev, GRT_U32, GRT_LEARN_STATE_WORDS, 0);
    struct grt_mlp_rows_desc d = desc_of(m);
    m->hidden = test_tensor(test.dev, GRT_U32, grt_mlp_rows_hidden(&d) / 4, 0);
    m->scratch = test_tensor(test.dev, GRT_U32, (grt_mlp_rows_scratch(test.dev, &d) + 3) / 4, 0);
    struct grt_learn_state state = {.loss_scale = 1.0f};
    test_tensor_write(&m->state, &state);
    draw_rows(m, 11 + s->rows);
}

static void end(struct model *m) {
    struct test_tensor *const tensors[] = {&m->near, &m->far,    &m->order,   &m->y,
                                           &m->dy,   &m->hidden, &m->scratch, &m->state};
    for (uint32_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        test_tensor_end(tensors[i]);
    }
    mlp_kit_end(&m->kit);
    free(m->x);
    free(m->slopes);
}

// ---- the same in double precision ----

static double act_of(enum grt_act act, double z) {
    return act == GRT_ACT_TANH ? tanh(z) : z > 0 ? z : 0;
}

static double slope_of(enum grt_act act, double h) {
    return act == GRT_ACT_TANH ? 1 - h * h : h > 0 ? 1 : 0;
}

// Units of all layers from the inputs; u[0] are these.
static void go_forward(const struct model *m, double u[MOST_DEPTH + 2][512]) {
    for (uint32_t l = 0; l <= m->s.depth; l++) {
        uint32_t from = l == 0 ? m->inputs : HIDDEN, to = l == m->s.depth ? m->s.outputs : HIDDEN;
        for (uint32_t j = 0; j < to; j++) {
            double z = m->kit.value[2 * l + 1][j];
            for (uint32_t i = 0; i < from; i++) {
                z += m->kit.value[2 * l][(uint64_t)j * from + i] * u[l][i];
            }
            u[l + 1][j] = l == m->s.depth ? z : mlp_kit_rounded(m->kit.dtype, act_of(m->s.act, z));
        }
    }
}

static void go_back(const struct model *m, double u[MOST_DEPTH + 2][512], const double *dy,
                    double **grads) {
    double d[512], below[512];
    memcpy(d, dy, m->s.outputs * sizeof *d);
    for (uint32_t l = m->s.depth + 1; l-- > 0;) {
        uint32_t from = l == 0 ? m->inputs : HIDDEN, to = l == m->s.depth ? m->s.outputs : HIDDEN;
        memset(below, 0, sizeof below);
        for (uint32_t j = 0; j < to; j++) {
            grads[2 * l + 1][j] += d[j];
            for (uint32_t i = 0; i < from; i++) {
                grads[2 * l][(uint64_t)j * from + i] += d[j] * u[l][i];
                below[i] += d[j] * m->kit.value[2 * l][(uint64_t)j * from + i];
            }
        }
        for (uint32_t i = 0; l > 0 && i < HIDDEN; i++) {
            d[i] = mlp_kit_rounded(m->kit.dtype, below[i] * slope_of(m->s.act, u[l][i]));
        }
    }
}

static double distance(const float *got, const double *want, uint64_t count) {
    double off = 0, norm = 0;
    for (uint64_t i = 0; i < count; i++) {
        off += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        norm += want[i] * want[i];
    }
    return sqrt(off) / (sqrt(norm) + 1e-30);
}

// ---- cases ----

static void record(struct grt_graph *graph, void *context) {
    const struct grt_mlp_rows_desc *d = context;
    grt_op_mlp_rows_forward(graph, d);
    grt_op_mlp_rows_backward(graph, d);
}

static void check(struct model *m) {
    struct grt_mlp_rows_desc d = desc_of(m);
    double *grads[2 * (MOST_DEPTH + 1)], u[MOST_DEPTH + 2][512];
    double *y = test_alloc((uint64_t)m->s.rows * m->s.outputs * sizeof *y);
    float *got_y = test_alloc(m->y.bytes), *got = test_alloc(m->kit.grad.bytes);
    float *again = test_alloc(m->kit.grad.bytes);
    for (uint32_t k = 0; k < m->kit.params.count; k++) {
        grads[k] = test_alloc(m->kit.param[k].count * sizeof(double));
        memset(grads[k], 0, m->kit.param[k].count * sizeof(double));
    }
    for (uint32_t i = 0; i < m->s.rows; i++) {
        memcpy(u[0], m->x + (uint64_t)i * m->inputs, m->inputs * sizeof(double));
        go_forward(m, u);
        memcpy(y + (uint64_t)i * m->s.outputs, u[m->s.depth + 1], m->s.outputs * sizeof(double));
        go_back(m, u, m->slopes + (uint64_t)i * m->s.outputs, grads);
    }
    test_run(test.dev, record, &d);
    test_tensor_read(&m->y, got_y);
    test_tensor_read(&m->kit.grad, got);
    test_run(test.dev, record, &d);
    test_tensor_read(&m->kit.grad, again);
    double bound = 4 * (m->s.depth + 1.0) * (m->kit.dtype == GRT_F16 ? 0x1p-11 : 0x1p-8);
    assert_true(distance(got_y, y, (uint64_t)m->s.rows * m->s.outputs) <= bound);
    for (uint32_t k = 0; k < m->kit.params.count; k++) {
        const struct grt_param *p = m->kit.list[k];
        assert_true(distance(got + p->first, grads[k], p->count) <= bound);
        assert_memory_equal(got + p->first, again + p->first, p->count * 4);
        free(grads[k]);
    }
    free(y);
    free(got_y);
    free(got);
    free(again);
}

static const struct shape shapes[] = {
    {162, 114, 2, 1, 5003, GRT_ACT_TANH, true},  // the critic and the actor of UAVs
    {162, 0, 2, 9, 5003, GRT_ACT_TANH, true},   {8, 0, 1, 16, 31, GRT_ACT_RELU, false},
    {1, 1, 1, 1, 1, GRT_ACT_TANH, true},        {33, 7, 3, 4, 300, GRT_ACT_RELU, true},
    {64, 64, 2, 2, 9001, GRT_ACT_RELU, false},
};

static void results(void **state) {
    (void)state;
    uint32_t ran = 0, all = sizeof shapes / sizeof shapes[0];
    for (uint32_t i = 0; i < 2 * all; i++) {
        struct model m;
        begin(&m, &shapes[i / 2], i % 2 == 0 ? GRT_F16 : GRT_BF16);
        struct grt_mlp_rows_desc d = desc_of(&m);
        if (grt_mlp_rows_usable(test.dev, &d)) {
            check(&m);
            ran++;
        }
        end(&m);
    }
    // On NVIDIA's matrix units all, and no check may have failed; elsewhere none.
    bool there =
        grt_kernel_builds(test.dev, "probe_mma") || grt_kernel_builds(test.dev, "probe_wgmma_48k");
    assert_int_equal(ran, there ? 2 * all : 0);
}

static void no_kernels(void **state) {
    (void)state;
    struct model m;
    begin(&m, &shapes[0], GRT_F16);
    const struct grt_mlp_rows_desc good = desc_of(&m);
    struct grt_mlp_rows_desc other[] = {good, good, good, good, good, good, good};
    other[0].dtype = GRT_F32;
    other[1].model.hidden = 32;
    other[2].model.act = GRT_ACT_GELU;
    other[3].model.depth = 4;
    other[4].model.outputs = 17;
    other[5].model.residual = true;
    other[6].model.inputs++;
    for (uint32_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        assert_false(grt_mlp_rows_usable(test.dev, &other[i]));
    }
    end(&m);
}

static bool finishes(const struct grt_mlp_rows_desc *d) {
    struct grt_graph *graph = grt_graph_create(test.dev, "refused");
    grt_op_mlp_rows_forward(graph, d);
    bool good = grt_graph_finish(graph);
    grt_graph_destroy(&graph);
    return good;
}

static void refusals(void **state) {
    (void)state;
    struct model m;
    begin(&m, &shapes[0], GRT_F16);
    const struct grt_mlp_rows_desc good = desc_of(&m);
    struct grt_mlp_rows_desc bad = good;
    bad.model.hidden = 32;
    TEST_REFUSED(finishes(&bad), GRT_INVALID, "no kernels for this model");
    bad = good;
    bad.first = 2;
    TEST_REFUSED(finishes(&bad), GRT_INVALID, "not those of the model");
    bad = good;
    bad.rows = 0;
    TEST_REFUSED(finishes(&bad), GRT_INVALID, "no rows");
    bad = good;
    bad.places.near.pitch -= 1;
    TEST_REFUSED(finishes(&bad), GRT_INVALID, "runs of 16 bytes");
    bad = good;
    bad.places.far.step += 4;
    TEST_REFUSED(finishes(&bad), GRT_INVALID, "runs of 16 bytes");
    bad = good;
    bad.places.share = 0;
    TEST_REFUSED(finishes(&bad), GRT_INVALID, "runs of 16 bytes");
    bad = good;
    bad.y = &m.dy.tensor;
    TEST_REFUSED(finishes(&bad), GRT_INVALID, "y must be f32");
    end(&m);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(results),
    TEST_CASE(no_kernels),
    TEST_CASE(refusals),
};

TEST_SUITE(mlprows, true, cases);
