// SPDX-License-Identifier: Apache-2.0
// The fused MLP: every usable variant against the oracle's gradients, loss and outputs, at the
// edges of its tiles, forward alone and to the losses alone too, and rows by their numbers; the
// same bits on every run; gradients added; and what is refused.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/kernels.h"
#include "kits/mlp_kit.h"
#include "nn/fused/mlp_fused.h"
#include "gpurt/optim.h"

struct shape {
    uint32_t rows, inputs, depth, hidden, outputs;
    enum grt_act act;
    enum grt_loss loss;
    float scale;
};

// One model on the device and in the oracle's numbers.
struct model {
    struct shape s;
    struct mlp_kit kit;
    struct test_tensor x, target, y, parts, state, scratch;
    double *xs, *targets;
    uint32_t *classes;  // in place of targets, for cross-entropy
    struct oracle_mlp_result want;
};

static double *numbers(struct test_tensor *t, size_t count, uint64_t seed) {
    float *v = test_floats(seed, TEST_PLAIN, count);
    double *wide = test_alloc(count * sizeof *wide);
    for (size_t i = 0; i < count; i++) {
        wide[i] = (double)v[i];
    }
    test_tensor_write(t, v);
    free(v);
    return wide;
}

static void ask_oracle(struct model *m) {
    const struct shape *s = &m->s;
    struct oracle_mlp o = {.rows = s->rows,
                           .inputs = s->inputs,
                           .depth = s->depth,
                           .hidden = s->hidden,
                           .outputs = s->outputs,
                           .samples = s->rows,
                           .act = grt_act_text(s->act),
                           .loss = grt_loss_text(s->loss),
                           .scale = (double)s->scale,
                           .x = m->xs,
                           .target = m->targets,
                           .classes = m->classes,
                           .rounded = m->kit.dtype != GRT_F32,
                           .format = mlp_kit_format(m->kit.dtype)};
    m->want.y = test_alloc((size_t)s->rows * s->outputs * sizeof(double));
    for (uint32_t l = 0; l <= s->depth; l++) {
        o.weight[l] = m->kit.value[2 * l];
        o.bias[l] = m->kit.value[2 * l + 1];
        m->want.weight[l] = test_alloc(m->kit.param[2 * l].count * sizeof(double));
        m->want.bias[l] = test_alloc(m->kit.param[2 * l + 1].count * sizeof(double));
    }
    oracle_mlp(&o, &m->want);
}

static void begin(struct model *m, const struct shape *s, enum grt_dtype dtype) {
    *m = (struct model){.s = *s};
    mlp_kit_begin(&m->kit, dtype,
                  grt_mlp_desc(.inputs = s->inputs, .depth = s->depth, .hidden = s->hidden,
                               .outputs = s->outputs),
                  7 + s->hidden + s->rows);
    m->x = test_tensor(test.dev, GRT_F32, s->rows, s->inputs);
    m->y = test_tensor(test.dev, GRT_F32, s->rows, s->outputs);
    m->parts = test_tensor(test.dev, GRT_F32, GRT_LOSS_PARTS, 0);
    m->state = test_tensor(test.dev, GRT_U32, GRT_LEARN_STATE_WORDS, 0);
    struct grt_learn_state state = {.loss_scale = s->scale};
    test_tensor_write(&m->state, &state);
    m->xs = numbers(&m->x, (size_t)s->rows * s->inputs, 11);
    if (s->loss == GRT_LOSS_CROSS_ENTROPY) {
        m->target = test_tensor(test.dev, GRT_U32, s->rows, 0);
        m->classes = test_alloc(s->rows * sizeof *m->classes);
        for (uint32_t i = 0; i < s->rows; i++) {
            m->classes[i] = i * 7 % s->outputs;
        }
        test_tensor_write(&m->target, m->classes);
    } else {
        m->target = test_tensor(test.dev, GRT_F32, s->rows, s->outputs);
        m->targets = numbers(&m->target, (size_t)s->rows * s->outputs, 12);
    }
    ask_oracle(m);
}

static void end(struct model *m) {
    struct test_tensor *all[] = {&m->x, &m->target, &m->y, &m->parts, &m->state, &m->scratch};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        test_tensor_end(all[i]);
    }
    for (uint32_t l = 0; l <= m->s.depth; l++) {
        free(m->want.weight[l]);
        free(m->want.bias[l]);
    }
    mlp_kit_end(&m->kit);
    free(m->want.y);
    free(m->xs);
    free(m->targets);
    free(m->classes);
}

static struct grt_mlp_fused_desc desc_of(struct model *m, const char *variant) {
    const struct shape *s = &m->s;
    return (struct grt_mlp_fused_desc){
        .model = {s->inputs, s->depth, s->hidden, s->outputs, s->act, false, false},
        .loss = s->loss,
        .dtype = m->kit.dtype,
        .rows = s->rows,
        .variant = variant,
        .params = &m->kit.params,
        .x = &m->x.tensor,
        .target = &m->target.tensor,
        .y = &m->y.tensor,
        .parts = m->parts.tensor.range,
        .state = m->state.tensor.range,
    };
}

static void record(struct grt_graph *graph, void *context) {
    grt_op_mlp_fused(graph, context);
}

// The gaps between parameters must hold what they held.
static void check_gaps(const struct model *m, const float *got, uint32_t pattern) {
    for (uint32_t k = 0; k < m->kit.params.count; k++) {
        uint64_t next =
            k + 1 < m->kit.params.count ? m->kit.param[k + 1].first : m->kit.params.elements;
        for (uint64_t i = m->kit.param[k].first + m->kit.param[k].count; i < next; i++) {
            assert_int_equal(test_as_u32(got[i]), pattern);
        }
    }
}

// The gradients, allocated: the same bits over each pre-fill of all that is written.
static float *run(struct model *m, struct grt_mlp_fused_desc *desc) {
    uint64_t bytes = grt_mlp_fused_scratch(test.dev, desc);
    assert_true(bytes > 0);
    test_tensor_end(&m->scratch);
    m->scratch = test_tensor(test.dev, GRT_F32, (bytes + 3) / 4, 0);
    desc->scratch = m->scratch.tensor.range;
    struct test_tensor *written[] = {&m->kit.grad, &m->y, &m->parts, &m->scratch};
    float *first = test_alloc(m->kit.grad.bytes), *got = test_alloc(m->kit.grad.bytes);
    for (uint32_t f = 0; f < TEST_PREFILLS; f++) {
        for (size_t i = 0; i < sizeof written / sizeof written[0]; i++) {
            test_tensor_prefill(written[i], test_prefills[f]);
        }
        test_run(test.dev, record, desc);
        test_tensor_read(&m->kit.grad, f == 0 ? first : got);
        check_gaps(m, f == 0 ? first : got, test_prefills[f]);
        for (uint32_t k = 0; f > 0 && k < m->kit.params.count; k++) {
            test_same(test.dev, "another pre-fill", got + m->kit.param[k].first,
                      first + m->kit.param[k].first, 4, m->kit.param[k].count);
        }
    }
    void *used = test_alloc(m->scratch.bytes);
    test_tensor_read(&m->scratch, used);
    free(used);
    free(got);
    return first;
}

// Half a gap of the type that is multiplied: what one rounding costs.
static double unit_of(const struct model *m) {
    return m->kit.dtype == GRT_F16 ? 0x1p-11 : m->kit.dtype == GRT_BF16 ? 0x1p-8 : 0x1p-24;
}

// All of a tensor at once, by the norm of the difference: where a unit lies at the edge of relu, or
// a sum between two 16-bit numbers, the last bit of another order of additions decides, and single
// elements may differ more, the more layers the more.
static void near(const struct model *m, const char *what, uint32_t l, const float *got,
                 const double *want, size_t count) {
    double difference = 0.0, norm = 0.0;
    for (size_t i = 0; i < count; i++) {
        double e = (double)got[i] - want[i];
        difference += e * e;
        norm += want[i] * want[i];
    }
    const struct shape *s = &m->s;
    double terms =
        m->kit.dtype == GRT_F32 ? s->rows + s->hidden * (s->depth + 1.0) : 4.0 * (s->depth + 1.0);
    double allowed = terms * unit_of(m) * sqrt(norm) + 1e-30;
    if (!(sqrt(difference) <= allowed)) {
        print_error("%s of layer %u, %u rows %u-%ux%u-%u: off by %g of %g, %g allowed\n", what, l,
                    s->rows, s->inputs, s->depth, s->hidden, s->outputs, sqrt(difference),
                    sqrt(norm), allowed);
        fail();
    }
}

static void check(struct model *m, const float *got) {
    const struct shape *s = &m->s;
    for (uint32_t l = 0; l <= s->depth; l++) {
        near(m, "weight gradient", l, got + m->kit.param[2 * l].first, m->want.weight[l],
             m->kit.param[2 * l].count);
        near(m, "bias gradient", l, got + m->kit.param[2 * l + 1].first, m->want.bias[l],
             m->kit.param[2 * l + 1].count);
    }
    size_t outputs = (size_t)s->rows * s->outputs;
    float *y = test_alloc(outputs * sizeof *y);
    float parts[GRT_LOSS_PARTS];
    double loss = 0.0;
    test_tensor_read(&m->y, y);
    test_tensor_read(&m->parts, parts);
    near(m, "output", s->depth, y, m->want.y, outputs);
    for (uint32_t i = 0; i < GRT_LOSS_PARTS; i++) {
        loss += (double)parts[i];
    }
    const float single = (float)loss;
    near(m, "loss", s->depth, &single, &m->want.loss, 1);
    free(y);
}

static void record_forward(struct grt_graph *graph, void *context) {
    grt_op_mlp_forward(graph, context);
}

// The outputs of forward alone, allocated: without targets or scratch, the same bits over each
// pre-fill.
static float *run_forward(struct model *m, struct grt_mlp_fused_desc one) {
    size_t outputs = (size_t)m->s.rows * m->s.outputs;
    float *first = test_alloc(m->y.bytes), *got = test_alloc(m->y.bytes);
    one.target = NULL;
    one.scratch = one.parts = (struct grt_range){0};
    for (uint32_t f = 0; f < TEST_PREFILLS; f++) {
        test_tensor_prefill(&m->y, test_prefills[f]);
        test_run(test.dev, record_forward, &one);
        test_tensor_read(&m->y, f == 0 ? first : got);
        if (f > 0) {
            test_same(test.dev, "another pre-fill", got, first, 4, outputs);
        }
    }
    free(got);
    return first;
}

// There are kernels for forward alone up to 256 units. "step" leaves that to others.
static bool goes_alone(const struct model *m, const char *variant) {
    return m->s.hidden <= 256 && strcmp(variant, "step") != 0;
}

static void check_forward(struct model *m, const struct grt_mlp_fused_desc *one) {
    if (!goes_alone(m, one->variant)) {
        return;
    }
    float *y = run_forward(m, *one);
    near(m, "output of forward alone", m->s.depth, y, m->want.y, (size_t)m->s.rows * m->s.outputs);
    free(y);
}

static void record_judged(struct grt_graph *graph, void *context) {
    grt_op_mlp_judge(graph, context);
}

// The losses alone: numbers that add up to the oracle's mean, times what it is over. What the op
// does not write counts as nothing. "chain" has no such kernel.
static void check_judged(struct model *m, const struct grt_mlp_fused_desc *desc) {
    if (strcmp(desc->variant, "chain") == 0 || !goes_alone(m, desc->variant)) {
        return;
    }
    const struct shape *s = &m->s;
    struct grt_mlp_fused_desc one = *desc;
    uint64_t count = grt_mlp_judge_numbers(s->rows);
    struct test_tensor losses = test_tensor(test.dev, GRT_F32, count, 0);
    float *numbers = test_alloc(count * sizeof *numbers);
    one.y = NULL;
    one.scratch = (struct grt_range){0};
    one.parts = losses.tensor.range;
    test_tensor_prefill(&losses, 0);
    test_run(test.dev, record_judged, &one);
    test_tensor_read(&losses, numbers);
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        sum += (double)numbers[i];
    }
    bool classes = s->loss == GRT_LOSS_CROSS_ENTROPY;
    const float mean = (float)(sum / ((double)s->rows * (classes ? 1 : s->outputs)));
    near(m, "loss alone", s->depth, &mean, &m->want.loss, 1);
    free(numbers);
    test_tensor_end(&losses);
}

// Rows of twice as many, in an order that is not theirs; `to` gets them.
static void scatter(struct test_tensor *to, struct test_tensor *from, const uint32_t *places,
                    uint32_t rows) {
    uint64_t width = grt_tensor_count(&from->tensor) / rows;
    uint32_t *near_ = test_alloc(from->bytes), *far_ = test_alloc(2 * from->bytes);
    *to = test_tensor(test.dev, from->tensor.dtype, 2 * rows,
                      from->tensor.rank > 1 ? from->tensor.shape[1] : 0);
    test_tensor_read(from, near_);
    memset(far_, 0xff, 2 * rows * width * 4);
    for (uint32_t i = 0; i < rows; i++) {
        memcpy(far_ + places[i] * width, near_ + i * width, width * 4);
    }
    test_tensor_write(to, far_);
    free(near_);
    free(far_);
}

// The same bits as with the rows one behind the other; rows that are not named are NaN.
static void check_ordered(struct model *m, const struct grt_mlp_fused_desc *desc,
                          const float *want) {
    enum { FIRST = 5 };
    uint32_t rows = m->s.rows, *order = test_alloc((FIRST + rows) * sizeof *order);
    struct test_tensor x, target, numbers = test_tensor(test.dev, GRT_U32, FIRST + rows, 0);
    for (uint32_t i = 0; i < FIRST + rows; i++) {
        order[i] = i < FIRST ? 0 : 2 * (rows - 1 - (i - FIRST)) + 1;
    }
    scatter(&x, &m->x, order + FIRST, rows);
    scatter(&target, &m->target, order + FIRST, rows);
    test_tensor_write(&numbers, order);
    struct grt_mlp_fused_desc one = *desc;
    one.ordered = true;
    one.x = &x.tensor;
    one.target = &target.tensor;
    one.order = numbers.tensor.range;
    one.order_first = FIRST;
    float *got = run(m, &one);
    for (uint32_t k = 0; k < m->kit.params.count; k++) {
        test_same(test.dev, "rows by their numbers", got + m->kit.param[k].first,
                  want + m->kit.param[k].first, 4, m->kit.param[k].count);
    }
    check(m, got);
    check_forward(m, &one);
    check_judged(m, &one);
    free(got);
    free(order);
    test_tensor_end(&x);
    test_tensor_end(&target);
    test_tensor_end(&numbers);
}

// The same bits where one workgroup takes all rows, a block after the other. Gradients of "step"
// are added in another order then.
static void check_few_groups(struct model *m, struct grt_mlp_fused_desc one, const float *want) {
    one.groups = 1;
    float *got = run(m, &one);
    check(m, got);
    for (uint32_t k = 0; strcmp(one.variant, "step") != 0 && k < m->kit.params.count; k++) {
        test_same(test.dev, "one workgroup", got + m->kit.param[k].first,
                  want + m->kit.param[k].first, 4, m->kit.param[k].count);
    }
    free(got);
}

// Beside the gradients.
enum way { ALONE = 1, ORDERED = 2, FEW_GROUPS = 4, ALL_WAYS = 7 };

// `tilings`: 2 for the tiles of many rows too.
static void check_variants(const struct shape *s, enum grt_dtype dtype, uint32_t tilings, int ways,
                           uint32_t *ran) {
    struct model m = {.s = *s, .kit = {.dtype = dtype}};
    struct grt_mlp_fused_desc desc = desc_of(&m, NULL);
    const char *variant;
    if (!grt_mlp_fused_variant(test.dev, &desc, 0)) {
        return;
    }
    begin(&m, s, dtype);
    for (uint32_t v = 0; (variant = grt_mlp_fused_variant(test.dev, &desc, v)); v++) {
        for (uint32_t t = 0; t < (strcmp(variant, "plain") != 0 ? tilings : 1); t++) {
            struct grt_mlp_fused_desc one = desc_of(&m, variant);
            one.tiles_for = t == 1 ? 1u << 22 : 0;
            float *got = run(&m, &one);
            check(&m, got);
            if (ways & ALONE) {
                check_forward(&m, &one);
                check_judged(&m, &one);
            }
            if (ways & ORDERED) {
                check_ordered(&m, &one, got);
            }
            if (ways & FEW_GROUPS) {
                check_few_groups(&m, one, got);
            }
            free(got);
            (*ran)++;
        }
    }
    end(&m);
}

// Rows around the tiles and far from them, one row, few and many inputs, one to 16 outputs, one to
// 12 layers.
static const struct shape shapes[] = {
    {1, 32, 3, 16, 1, GRT_ACT_RELU, GRT_LOSS_MSE, 1.0f},
    {1024, 32, 3, 16, 1, GRT_ACT_RELU, GRT_LOSS_MSE, 1024.0f},
    {77, 7, 1, 16, 3, GRT_ACT_RELU, GRT_LOSS_MSE, 1.0f},
    {130, 32, 2, 16, 1, GRT_ACT_TANH, GRT_LOSS_HUBER, 8.0f},
    {513, 128, 2, 16, 16, GRT_ACT_RELU, GRT_LOSS_MSE, 64.0f},
    {200, 33, 3, 32, 10, GRT_ACT_RELU, GRT_LOSS_HUBER, 64.0f},
    {63, 1, 12, 32, 2, GRT_ACT_RELU, GRT_LOSS_MSE, 1.0f},
    {260, 32, 6, 64, 1, GRT_ACT_RELU, GRT_LOSS_MSE, 64.0f},
    {17, 100, 1, 32, 5, GRT_ACT_TANH, GRT_LOSS_MSE, 1.0f},
    {129, 32, 3, 128, 1, GRT_ACT_RELU, GRT_LOSS_MSE, 64.0f},
    {32, 128, 12, 128, 10, GRT_ACT_RELU, GRT_LOSS_MSE, 4096.0f},
    {2500, 16, 2, 64, 1, GRT_ACT_RELU, GRT_LOSS_MSE, 2048.0f},
    {3000, 32, 2, 128, 4, GRT_ACT_RELU, GRT_LOSS_HUBER, 2048.0f},
    {100, 20, 3, 16, 2, GRT_ACT_GELU, GRT_LOSS_BCE, 16.0f},
    {150, 24, 2, 32, 10, GRT_ACT_GELU, GRT_LOSS_CROSS_ENTROPY, 64.0f},
    {70, 8, 2, 16, 16, GRT_ACT_TANH, GRT_LOSS_CROSS_ENTROPY, 64.0f},
    {520, 40, 2, 64, 9, GRT_ACT_RELU, GRT_LOSS_CROSS_ENTROPY, 256.0f},
    {260, 32, 4, 64, 3, GRT_ACT_TANH, GRT_LOSS_BCE, 64.0f},
    {270, 32, 3, 128, 10, GRT_ACT_GELU, GRT_LOSS_CROSS_ENTROPY, 256.0f},
};
#define SHAPE_COUNT (sizeof shapes / sizeof shapes[0])

static void gradients(void **state) {
    (void)state;
    static const enum grt_dtype dtypes[] = {GRT_F32, GRT_F16, GRT_BF16};
    const bool software = grt_dev_info(test.dev)->caps.software;
    const uint32_t most = test.small ? 5000 : software ? 60000 : UINT32_MAX;
    // All ways of a shape are six kernels, each of which lavapipe takes long to compile: one way.
    const bool slow = software && !test.on_ref;
    uint32_t ran = 0;
    for (size_t i = 0; i < SHAPE_COUNT * 3; i++) {
        const struct shape *s = &shapes[i / 3];
        enum grt_dtype dtype = dtypes[i % 3];
        if (s->rows * s->hidden * s->depth < most) {
            // Kernels for matrix units have tiles for few rows, as these are, and for many.
            int ways = slow ? 1 << i / 3 % 3 : ALL_WAYS;
            check_variants(s, dtype, dtype == GRT_F16 ? 2 : 1, ways, &ran);
        }
    }
    // Every CPU driver has at least one.
    assert_true(ran > 0 || !software);
}

// Layers of more than 128 units: no CPU driver has kernels for them, and a GPU's take seconds to
// compile, so each case has one type.
static void check_wide(struct shape s, enum grt_dtype dtype, uint32_t tilings) {
    uint32_t ran = 0;
    check_variants(&s, dtype, tilings, ALL_WAYS, &ran);
    // 512 units do not fit 48 KiB.
    assert_int_equal(ran > 0, s.hidden == 256 ? grt_kernel_builds(test.dev, "probe_wgmma_48k")
                                              : grt_kernels_roomy(test.dev));
}

static void wide_relu(void **state) {
    (void)state;
    check_wide((struct shape){300, 32, 6, 256, 1, GRT_ACT_RELU, GRT_LOSS_MSE, 64.0f}, GRT_F16, 1);
}

static void wide_tanh(void **state) {
    (void)state;
    check_wide((struct shape){65, 128, 3, 256, 16, GRT_ACT_TANH, GRT_LOSS_BCE, 16.0f}, GRT_F16, 1);
}

static void wide_gelu(void **state) {
    (void)state;
    check_wide((struct shape){130, 64, 4, 256, 10, GRT_ACT_GELU, GRT_LOSS_CROSS_ENTROPY, 256.0f},
               GRT_BF16, 1);
}

// More blocks of rows than an H200 has workgroups.
static void wide_many_rows(void **state) {
    (void)state;
    check_wide((struct shape){17500, 64, 2, 256, 4, GRT_ACT_RELU, GRT_LOSS_MSE, 4096.0f}, GRT_F16,
               1);
}

static void wider_relu(void **state) {
    (void)state;
    check_wide((struct shape){300, 32, 3, 512, 1, GRT_ACT_RELU, GRT_LOSS_MSE, 64.0f}, GRT_F16, 2);
}

static void wider_gelu(void **state) {
    (void)state;
    check_wide((struct shape){100, 128, 2, 512, 10, GRT_ACT_GELU, GRT_LOSS_CROSS_ENTROPY, 256.0f},
               GRT_BF16, 1);
}

// Twice without and with `add`: double the gradients.
static void adds(void **state) {
    (void)state;
    struct model m;
    begin(&m, &shapes[1], GRT_F32);
    struct grt_mlp_fused_desc desc = desc_of(&m, NULL);
    if (grt_mlp_fused_variant(test.dev, &desc, 0)) {
        float *once = run(&m, &desc);
        float *twice = test_alloc(m.kit.grad.bytes);
        desc.add = true;
        test_tensor_write(&m.kit.grad, once);
        test_run(test.dev, record, &desc);
        test_tensor_read(&m.kit.grad, twice);
        for (uint32_t k = 0; k < m.kit.params.count; k++) {
            for (uint64_t i = 0; i < m.kit.param[k].count; i++) {
                uint64_t at = m.kit.param[k].first + i;
                assert_true(twice[at] == 2.0f * once[at]);
            }
        }
        free(once);
        free(twice);
    }
    end(&m);
}

// A bias that is not a number, of either sign, must show in the loss: what a run halts by.
static void nan_is_found(void **state) {
    (void)state;
    static const enum grt_dtype dtypes[] = {GRT_F32, GRT_F16, GRT_BF16};
    static const uint32_t nans[] = {0x7fc00000u, 0xffc00000u};
    static const enum grt_act acts[] = {GRT_ACT_RELU, GRT_ACT_GELU, GRT_ACT_TANH};
    // The fewest rows of which oclgrind's one unit takes a second turn, with a last one not full.
    const uint32_t batch = test.small ? 38 : 70;
    for (uint32_t i = 0; i < 9; i++) {
        const struct shape s = {batch, 8, 2, 16, 2, acts[i % 3], GRT_LOSS_MSE, 1.0f};
        struct model m;
        begin(&m, &s, dtypes[i / 3]);
        struct grt_mlp_fused_desc desc = desc_of(&m, NULL);
        const char *variant;
        const struct grt_range *master = &m.kit.master.tensor.range;
        for (uint32_t v = 0; (variant = grt_mlp_fused_variant(test.dev, &desc, v)); v++) {
            struct grt_mlp_fused_desc one = desc_of(&m, variant);
            for (uint32_t n = 0; n < 2; n++) {
                uint64_t at = master->offset + 4 * m.kit.param[1].first;
                assert_true(grt_buf_write(master->buf, at, &nans[n], 4));
                free(run(&m, &one));
                float parts[GRT_LOSS_PARTS], loss = 0.0f;
                test_tensor_read(&m.parts, parts);
                for (uint32_t k = 0; k < GRT_LOSS_PARTS; k++) {
                    loss += parts[k];
                }
                assert_true(isnan(loss));
                if (goes_alone(&m, variant)) {
                    float *y = run_forward(&m, one);
                    assert_true(isnan(y[0]) || isnan(y[1]));
                    free(y);
                }
            }
        }
        end(&m);
    }
}

static bool finishes(struct grt_mlp_fused_desc *desc) {
    struct grt_graph *graph = grt_graph_create(test.dev, "refused");
    grt_op_mlp_fused(graph, desc);
    bool good = grt_graph_finish(graph);
    grt_graph_destroy(&graph);
    return good;
}

static bool finishes_forward(struct grt_mlp_fused_desc *desc) {
    struct grt_graph *graph = grt_graph_create(test.dev, "refused");
    grt_op_mlp_forward(graph, desc);
    bool good = grt_graph_finish(graph);
    grt_graph_destroy(&graph);
    return good;
}

static void refusals(void **state) {
    (void)state;
    struct model m;
    begin(&m, &shapes[2], GRT_F32);
    struct grt_mlp_fused_desc desc = desc_of(&m, NULL);
    const bool there = grt_mlp_fused_variant(test.dev, &desc, 0) != NULL;
    desc.variant = "no such";
    TEST_REFUSED(finishes(&desc), GRT_UNSUPPORTED, "no such");
    desc.variant = NULL;
    desc.model.residual = true;
    assert_null(grt_mlp_fused_variant(test.dev, &desc, 0));
    assert_false(grt_mlp_fused_usable(test.dev, &desc));
    assert_true(grt_mlp_fused_scratch(test.dev, &desc) == 0);
    TEST_REFUSED(finishes(&desc), GRT_UNSUPPORTED, "hidden layers of 16");
    desc.model.residual = false;
    if (there) {
        TEST_REFUSED(finishes(&desc), GRT_INVALID, "bytes of scratch");
        desc.x = &m.y.tensor;
        TEST_REFUSED(finishes(&desc), GRT_INVALID, "[rows][inputs]");
        desc.x = &m.x.tensor;
        desc.ordered = true;
        desc.order = m.x.tensor.range;
        desc.order_first = (uint32_t)(m.x.tensor.range.size / 4);
        TEST_REFUSED(finishes(&desc), GRT_INVALID, "a number for each row");
        desc.ordered = false;
        desc.first = 1;
        TEST_REFUSED(finishes(&desc), GRT_INVALID, "not those of the model");
    }
    desc.x = NULL;
    TEST_REFUSED(finishes(&desc), GRT_INVALID, "no tensor x");
    desc.x = &m.x.tensor;
    desc.first = 0;
    desc.y = NULL;
    TEST_REFUSED(finishes_forward(&desc), GRT_INVALID, "no tensor y");
    if (there) {
        desc.y = &m.x.tensor;
        TEST_REFUSED(finishes_forward(&desc), GRT_INVALID, "[rows][outputs]");
    }
    test_usable(test.dev);
    end(&m);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(gradients),      TEST_CASE(wide_relu),  TEST_CASE(wide_tanh),  TEST_CASE(wide_gelu),
    TEST_CASE(wide_many_rows), TEST_CASE(wider_relu), TEST_CASE(wider_gelu), TEST_CASE(adds),
    TEST_CASE(nan_is_found),   TEST_CASE(refusals),
};

TEST_SUITE(fused, true, cases);
