// SPDX-License-Identifier: Apache-2.0
// An MLP over rows that lie apart: outputs and gradients against sums in double precision, row by
// row from the formulas, where the device has kernels for it; the same bits on every run; and what
// is refused on every device.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/optim.h"
#include "harness/harness.h"
#include "nn/fused/mlp_rows.h"
#include "oracle/oracle.h"

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
    enum grt_dtype dtype;
    uint32_t period, inputs;
    struct grt_params params;
    struct grt_param param[2 * (MOST_DEPTH + 1)], *list[2 * (MOST_DEPTH + 1)];
    struct test_tensor master, copy, grad, near, far, order, y, dy, hidden, scratch, state;
    double *value[2 * (MOST_DEPTH + 1)];  // of parameters, as products see them
    double *x, *slopes;                   // by rows
};

static struct oracle_format format_of(enum grt_dtype dtype) {
    return dtype == GRT_F16 ? oracle_f16 : oracle_bf16;
}

static double rounded(enum grt_dtype dtype, double v) {
    return oracle_widen(format_of(dtype), oracle_narrow(format_of(dtype), v));
}

static uint64_t pitch_of(uint32_t numbers) {
    return (numbers + 7) / 8 * 8 + 8;  // more than needed
}

// ---- making it ----

static void add_param(struct model *m, uint64_t rows, uint64_t cols) {
    struct grt_param *p = &m->param[m->params.count];
    *p = (struct grt_param){.first = m->params.elements,
                            .count = rows * (cols ? cols : 1),
                            .rank = cols ? 2 : 1,
                            .shape = {rows, cols}};
    m->list[m->params.count++] = p;
    uint64_t unit = m->params.unit;
    m->params.elements += (p->count + unit - 1) / unit * unit;
}

static void draw(struct model *m, uint64_t seed) {
    float *all = test_alloc(m->params.elements * sizeof *all);
    uint16_t *small = test_alloc(m->params.elements * sizeof *small);
    for (uint64_t i = 0; i < m->params.elements; i++) {
        all[i] = NAN;  // nothing may look between parameters
        small[i] = 0x7fff;
    }
    for (uint32_t k = 0; k < m->params.count; k++) {
        const struct grt_param *p = m->list[k];
        bool bias = p->rank == 1;
        double bound = bias ? 0.5 : 1.6 / sqrt((double)p->shape[1]);
        m->value[k] = test_alloc(p->count * sizeof(double));
        for (uint64_t i = 0; i < p->count; i++) {
            float v = (float)(bound * (2.0 * test_unit(&seed) - 1.0));
            all[p->first + i] = v;
            small[p->first + i] = (uint16_t)oracle_narrow(format_of(m->dtype), (double)v);
            m->value[k][i] = bias ? (double)v : rounded(m->dtype, (double)v);
        }
    }
    test_tensor_write(&m->master, all);
    test_tensor_write(&m->copy, small);
    free(all);
    free(small);
}

// Draws [count][pitch], zeros behind `numbers` of a row; the numbers as doubles too.
static double *draw_part(struct model *m, struct test_tensor *t, uint64_t count, uint32_t numbers,
                         uint64_t pitch, uint64_t seed) {
    uint16_t *small = test_alloc(count * pitch * sizeof *small);
    double *wide = test_alloc(count * (numbers ? numbers : 1) * sizeof *wide);
    memset(small, 0, count * pitch * sizeof *small);
    for (uint64_t i = 0; i < count * numbers; i++) {
        double v = rounded(m->dtype, 2.0 * test_unit(&seed) - 1.0);
        wide[i] = v;
        small[i / numbers * pitch + i % numbers] = (uint16_t)oracle_narrow(format_of(m->dtype), v);
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
        .dtype = m->dtype,
        .params = &m->params,
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
    *m = (struct model){.s = *s, .dtype = dtype, .inputs = s->near + s->far};
    m->period = (s->rows / STEPS + SHARE) / SHARE * SHARE;
    grt_params_init(&m->params, test.dev, dtype);
    m->params.list = m->list;
    for (uint32_t l = 0; l <= s->depth; l++) {
        uint32_t to = l == s->depth ? s->outputs : HIDDEN;
        add_param(m, to, l == 0 ? m->inputs : HIDDEN);
        add_param(m, to, 0);
    }
    uint64_t all = m->params.elements;
    m->master = test_tensor(test.dev, GRT_F32, all, 0);
    m->copy = test_tensor(test.dev, dtype, all, 0);
    m->grad = test_tensor(test.dev, GRT_F32, all, 0);
    m->params.master = &m->master.tensor;
    m->params.copy = &m->copy.tensor;
    m->params.grad = &m->grad.tensor;
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
    uint32_t words[GRT_LEARN_STATE_WORDS] = {0};
    memcpy(words, &state, sizeof state < sizeof words ? sizeof state : sizeof words);
    test_tensor_write(&m->state, words);
    draw(m, 7 + s->rows);
    draw_rows(m, 11 + s->rows);
}

static void end(struct model *m) {
    struct test_tensor *const tensors[] = {&m->master, &m->copy,    &m->grad, &m->near,
                                           &m->far,    &m->order,   &m->y,    &m->dy,
                                           &m->hidden, &m->scratch, &m->state};
    for (uint32_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        test_tensor_end(tensors[i]);
    }
    for (uint32_t k = 0; k < m->params.count; k++) {
        free(m->value[k]);
    }
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
            double z = m->value[2 * l + 1][j];
            for (uint32_t i = 0; i < from; i++) {
                z += m->value[2 * l][(uint64_t)j * from + i] * u[l][i];
            }
            u[l + 1][j] = l == m->s.depth ? z : rounded(m->dtype, act_of(m->s.act, z));
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
                below[i] += d[j] * m->value[2 * l][(uint64_t)j * from + i];
            }
        }
        for (uint32_t i = 0; l > 0 && i < HIDDEN; i++) {
            d[i] = rounded(m->dtype, below[i] * slope_of(m->s.act, u[l][i]));
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
    float *got_y = test_alloc(m->y.bytes), *got = test_alloc(m->grad.bytes);
    float *again = test_alloc(m->grad.bytes);
    for (uint32_t k = 0; k < m->params.count; k++) {
        grads[k] = test_alloc(m->param[k].count * sizeof(double));
        memset(grads[k], 0, m->param[k].count * sizeof(double));
    }
    for (uint32_t i = 0; i < m->s.rows; i++) {
        memcpy(u[0], m->x + (uint64_t)i * m->inputs, m->inputs * sizeof(double));
        go_forward(m, u);
        memcpy(y + (uint64_t)i * m->s.outputs, u[m->s.depth + 1], m->s.outputs * sizeof(double));
        go_back(m, u, m->slopes + (uint64_t)i * m->s.outputs, grads);
    }
    test_run(test.dev, record, &d);
    test_tensor_read(&m->y, got_y);
    test_tensor_read(&m->grad, got);
    test_run(test.dev, record, &d);
    test_tensor_read(&m->grad, again);
    double bound = 4 * (m->s.depth + 1.0) * (m->dtype == GRT_F16 ? 0x1p-11 : 0x1p-8);
    assert_true(distance(got_y, y, (uint64_t)m->s.rows * m->s.outputs) <= bound);
    for (uint32_t k = 0; k < m->params.count; k++) {
        const struct grt_param *p = m->list[k];
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
    // All or none: none but on NVIDIA's matrix units, where no check may have failed.
    assert_true(ran == 0 || ran == 2 * all);
    assert_true(!grt_dev_info(test.dev)->caps.software || ran == 0);
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
    other[6].model.inputs += 1;
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
    end(&m);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(results),
    TEST_CASE(no_kernels),
    TEST_CASE(refusals),
};

TEST_SUITE(mlprows, true, cases);
