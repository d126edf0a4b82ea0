// SPDX-License-Identifier: Apache-2.0
// The update that ends a step, by itself: gradients are written
// by the host, parameters and what the optimizer keeps are compared with the formulas after every
// step; clipping, loss scale and what is skipped.
#include "kits/kernel_kit.h"
#include "kits/optim_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "gpurt/loss.h"

// ---- the formulas ----

struct optim_case {
    struct grt_optim_desc optim;
    const char *name;
};

static void check(const char *name, const struct grt_optim_desc *d, enum grt_dtype type) {
    struct rig r;
    rig_begin(&r, d, type);
    float scale = type == GRT_F16 ? 1024.0f : 1.0f;
    rig_set(&r, scale);
    const struct oracle_optim o = {.kind = grt_optim_text(d->kind),
                                   .lr = d->lr,
                                   .weight_decay = d->weight_decay,
                                   .momentum = d->momentum,
                                   .dampening = d->dampening,
                                   .nesterov = d->nesterov,
                                   .beta1 = d->beta1,
                                   .beta2 = d->beta2,
                                   .eps = d->eps,
                                   .max_norm = d->max_norm};
    float got[COUNT], grads[COUNT];
    double want[COUNT], g[COUNT], first[COUNT] = {0}, second[COUNT] = {0};
    rig_gather(&r, r.params.master, 0, got);
    for (int i = 0; i < COUNT; i++) {
        assert_true(fabsf(got[i]) <= (i < COUNT_A ? 1.0f : 0.5f));
        want[i] = (double)got[i];
    }
    uint64_t seed = 11;
    struct test_compare compare = test_compare(test.dev, "%s, %s", name, grt_dtype_text(type));
    for (size_t t = 1; t <= 12; t++) {
        double squares = 0;
        for (int i = 0; i < COUNT; i++) {
            grads[i] = test_float(&seed, TEST_PLAIN) * (i % 5 == 0 ? 0.001f : 1.0f);
            g[i] = (double)grads[i];
            squares += g[i] * g[i];
            grads[i] *= scale;
        }
        rig_set_grads(&r, grads);
        rig_step(&r);
        oracle_optim_step(&o, t, COUNT, g, want, first, second);
        rig_gather(&r, r.params.master, 0, got);
        for (int i = 0; i < COUNT; i++) {
            // Each step moves a number by a few lr with some 40 roundings on the way, most of them
            // in the corrections of Adam's averages.
            double moved = d->lr * 10 * (double)t;
            double bound = 64 * ORACLE_U * moved + 2 * (double)t * ORACLE_U * (1 + fabs(want[i]));
            test_compare_value(&compare, t * 10000 + (size_t)i, got[i],
                               (struct oracle_value){want[i], bound});
        }
        struct grt_learn_state s = rig_state(&r);
        test_compare_value(&compare, t, s.grad_norm,
                           (struct oracle_value){sqrt(squares), 64 * ORACLE_U * sqrt(squares)});
        test_compare_value(&compare, t, s.loss,
                           (struct oracle_value){GRT_LOSS_PARTS * (GRT_LOSS_PARTS - 1) / 128.0,
                                                 GRT_LOSS_PARTS * ORACLE_U * 128});
        assert_int_equal(s.steps, t);
        assert_int_equal(s.updates, t);
        assert_int_equal(s.skipped, 0);
        assert_int_equal(s.cursor, 5 * t);
    }
    // What lies between the parameters is still zero, and the copy is the masters rounded.
    float *all = test_alloc(r.params.elements * sizeof *all);
    rig_read_all(r.params.master, all);
    for (uint64_t i = COUNT_A; i < r.params.list[1]->first; i++) {
        assert_true(all[i] == 0.0f);
    }
    if (type != GRT_F32) {
        struct oracle_format format = type == GRT_F16 ? oracle_f16 : oracle_bf16;
        uint16_t *copy = test_alloc(r.params.elements * sizeof *copy);
        rig_read_all(r.params.copy, copy);
        for (uint64_t i = 0; i < r.params.elements; i++) {
            test_compare_bits(&compare, i, copy[i], oracle_narrow(format, (double)all[i]));
        }
        free(copy);
    }
    free(all);
    test_compare_end(&compare);
    rig_end(&r);
}

static void optimizers(void **state) {
    (void)state;
    struct grt_optim_desc d = rig_desc(GRT_OPTIM_SGD, 0.1);
    check("sgd", &d, GRT_F32);
    d.momentum = 0.9;
    check("sgd, momentum", &d, GRT_F32);
    d.nesterov = true;
    d.weight_decay = 0.05;
    check("sgd, nesterov, decay", &d, GRT_BF16);
    d.nesterov = false;
    d.dampening = 0.25;
    check("sgd, dampening", &d, GRT_F16);
    d.max_norm = 1.5;
    check("sgd, clipped", &d, GRT_F32);
    d = rig_desc(GRT_OPTIM_ADAM, 0.01);
    check("adam", &d, GRT_F32);
    d.weight_decay = 0.1;
    d.max_norm = 2.0;
    check("adam, decay, clipped", &d, GRT_F16);
    d = rig_desc(GRT_OPTIM_ADAMW, 0.01);
    check("adamw", &d, GRT_F32);
    d.beta1 = 0.5;
    d.beta2 = 0.9;
    d.eps = 1e-3;
    d.max_norm = 1e6;
    check("adamw, other constants", &d, GRT_BF16);
}

// Whether products below the smallest normal number are kept.
static bool keeps_subnormals(void) {
    struct test_tensor t = test_tensor(test.dev, GRT_F32, 1, 0);
    float x = 1e-20f;
    test_tensor_write(&t, &x);
    struct grt_graph *graph = grt_graph_create(test.dev, "square");
    grt_op_map(graph, grt_map_desc(.map = GRT_MAP_SQUARE, .y = &t.tensor, .a = &t.tensor));
    assert_true(grt_graph_finish(graph));
    grt_graph_destroy(&graph);
    test_tensor_read(&t, &x);
    test_tensor_end(&t);
    return x > 0.0f;
}

// Without eps a gradient of any size moves a parameter by about lr, also where its square is
// subnormal. On a device that flushes such a square, Adam divides by 0 there.
static void tiny_moments(void **state) {
    (void)state;
    if (!keeps_subnormals()) {
        print_message("# the device flushes subnormal numbers\n");
        return;
    }
    struct grt_optim_desc d = rig_desc(GRT_OPTIM_ADAM, 0.01);
    d.eps = 0;
    const struct oracle_optim o = {
        .kind = "adam", .lr = d.lr, .beta1 = d.beta1, .beta2 = d.beta2, .eps = 0};
    struct rig r;
    rig_begin(&r, &d, GRT_F32);
    rig_set(&r, 1.0f);
    float got[COUNT], grads[COUNT];
    double want[COUNT], g[COUNT], first[COUNT] = {0}, second[COUNT] = {0};
    rig_gather(&r, r.params.master, 0, got);
    for (int i = 0; i < COUNT; i++) {
        want[i] = (double)got[i];
        grads[i] = (i % 2 ? -1.0f : 1.0f) * ldexpf(1.0f + (float)i / COUNT, -64 + i % 9 - 2);
        g[i] = (double)grads[i];
    }
    struct test_compare compare = test_compare(test.dev, "adam, eps 0, tiny gradients");
    for (size_t t = 1; t <= 3; t++) {
        rig_set_grads(&r, grads);
        rig_step(&r);
        oracle_optim_step(&o, t, COUNT, g, want, first, second);
        rig_gather(&r, r.params.master, 0, got);
        for (int i = 0; i < COUNT; i++) {
            // Three subnormal roundings a step, each half of 2^-149, in a number under a root.
            double off = 3 * (double)t * 0x1p-150 / second[i];
            double bound = (double)t * (d.lr * (off + 64 * ORACLE_U) + 2 * ORACLE_U);
            test_compare_value(&compare, t * 10000 + (size_t)i, got[i],
                               (struct oracle_value){want[i], bound});
        }
    }
    test_compare_end(&compare);
    rig_end(&r);
}

// With the reach of a binding lowered, norm and update run in pieces.
static void small_windows(void **state) {
    (void)state;
    struct grt_caps *caps = &test.dev->info.caps;
    uint64_t reach = caps->max_binding;
    struct grt_optim_desc d = rig_desc(GRT_OPTIM_ADAMW, 0.01);
    d.max_norm = 2.0;
    assert_true(COUNT * sizeof(float) > sizeof(struct grt_learn_row) * GRT_HISTORY);
    caps->max_binding = sizeof(struct grt_learn_row) * GRT_HISTORY;
    check("adamw in pieces", &d, GRT_F16);
    caps->max_binding = reach;
}

// ---- clipping ----

// One plain step: where the norm is as small as what is added to it, both count.
static void tiny_norms_are_clipped(void **state) {
    (void)state;
    struct grt_optim_desc d = rig_desc(GRT_OPTIM_SGD, 1e5);
    d.max_norm = 1e-6;
    for (int times = 1; times <= 100; times *= 10) {
        struct rig r;
        rig_begin(&r, &d, GRT_F32);
        rig_set(&r, 1.0f);
        float before[COUNT], after[COUNT], grads[COUNT];
        rig_gather(&r, r.params.master, 0, before);
        double norm = 1e-7 * times, squares = 0;
        for (int i = 0; i < COUNT; i++) {
            grads[i] = (float)(norm / sqrt(COUNT) * (i % 3 ? 1.1 : -0.7));
            squares += (double)grads[i] * (double)grads[i];
        }
        double clip = fmin(1, 1e-6 / (sqrt(squares) + 1e-6));
        rig_set_grads(&r, grads);
        rig_step(&r);
        rig_gather(&r, r.params.master, 0, after);
        struct test_compare compare = test_compare(test.dev, "clipped, norm %g", norm);
        for (int i = 0; i < COUNT; i++) {
            double want = (double)before[i] - 1e5 * clip * (double)grads[i];
            test_compare_value(&compare, (size_t)i, after[i],
                               (struct oracle_value){want, 4 * ORACLE_U});
        }
        test_compare_end(&compare);
        rig_end(&r);
    }
}

// ---- loss scale ----

static void same_parameters(struct rig *r, const float *before, bool same) {
    float now[COUNT];
    rig_gather(r, r->params.master, 0, now);
    bool equal = true;
    for (int i = 0; i < COUNT; i++) {
        equal = equal && test_as_u32(now[i]) == test_as_u32(before[i]);
    }
    assert_true(equal == same);
}

static void loss_scale(void **state) {
    (void)state;
    struct grt_optim_desc d = rig_desc(GRT_OPTIM_ADAM, 0.01);
    d.growth_interval = 3;
    struct rig r;
    rig_begin(&r, &d, GRT_F16);
    rig_set(&r, 1024.0f);
    float grads[COUNT], before[COUNT];
    for (int i = 0; i < COUNT; i++) {
        grads[i] = 1.0f;
    }
    const float bad[] = {INFINITY, -INFINITY, NAN};
    rig_gather(&r, r.params.master, 0, before);
    for (int i = 0; i < 3; i++) {
        grads[i * 100] = bad[i];
        rig_set_grads(&r, grads);
        grads[i * 100] = 1.0f;
        rig_step(&r);
        struct grt_learn_state s = rig_state(&r);
        assert_true(s.loss_scale == ldexpf(512.0f, -i));
        assert_int_equal(s.skipped, i + 1);
        assert_int_equal(s.updates, 0);
        assert_int_equal(s.finite, 0);
        assert_int_equal(s.halted, 0);
        same_parameters(&r, before, true);
    }
    rig_set_grads(&r, grads);
    for (uint32_t i = 0; i < 7; i++) {
        rig_step(&r);
        struct grt_learn_state s = rig_state(&r);
        assert_true(s.loss_scale == ldexpf(128.0f, (int)((i + 1) / 3)));
        assert_int_equal(s.updates, i + 1);
        assert_int_equal(s.good, (i + 1) % 3);
    }
    same_parameters(&r, before, false);
    // In the history a skipped step shows by the sign of its scale.
    struct grt_learn_row rows[GRT_HISTORY];
    rig_read_all(r.history, rows);
    assert_true(rows[0].loss_scale == -1024.0f && rows[2].loss_scale == -256.0f);
    assert_true(rows[3].loss_scale == 128.0f && rows[3].grad_norm > 0.0f);
    assert_true(isinf(rows[0].grad_norm) || isnan(rows[0].grad_norm));
    // Twice the largest power of two is no number: the scale stays.
    struct grt_learn_state s = rig_state(&r);
    s.loss_scale = 0x1p127f;
    s.good = 2;
    rig_write_all(r.state, &s);
    rig_step(&r);
    assert_true(rig_state(&r).loss_scale == 0x1p127f);
    assert_true(rig_state(&r).good == 0 && rig_state(&r).halted == 0);
    // A scale that can fall no further ends the run.
    s = rig_state(&r);
    s.loss_scale = 0x1p-14f;
    rig_write_all(r.state, &s);
    grads[0] = NAN;
    rig_set_grads(&r, grads);
    rig_step(&r);
    assert_int_equal(rig_state(&r).halted, 12);
    rig_end(&r);
}

static void halt_and_skip(void **state) {
    (void)state;
    for (int skip = 0; skip < 2; skip++) {
        struct grt_optim_desc d = rig_desc(GRT_OPTIM_SGD, 0.01);
        d.nonfinite = skip ? GRT_NONFINITE_SKIP : GRT_NONFINITE_HALT;
        struct rig r;
        rig_begin(&r, &d, GRT_F32);
        rig_set(&r, 1.0f);
        float grads[COUNT], before[COUNT];
        for (int i = 0; i < COUNT; i++) {
            grads[i] = 1.0f;
        }
        rig_set_grads(&r, grads);
        rig_step(&r);
        rig_gather(&r, r.params.master, 0, before);
        float parts[GRT_LOSS_PARTS] = {0};
        parts[13] = NAN;
        rig_write_all(r.loss_parts, parts);
        rig_step(&r);
        same_parameters(&r, before, true);
        parts[13] = 1.0f;
        rig_write_all(r.loss_parts, parts);
        rig_step(&r);
        struct grt_learn_state s = rig_state(&r);
        assert_int_equal(s.halted, skip ? 0 : 2);
        assert_int_equal(s.skipped, skip ? 1 : 2);
        assert_int_equal(s.steps, 3);
        assert_true(s.loss_scale == 1.0f);
        same_parameters(&r, before, !skip);
        // Cleared by the host it goes on.
        s.halted = 0;
        rig_write_all(r.state, &s);
        rig_step(&r);
        same_parameters(&r, before, false);
        rig_end(&r);
    }
}

// ---- the same bits as the C reading ----

static void same_bits_as_ref(void **state) {
    (void)state;
    enum { ROWS = 53, COLS = 7, N = ROWS * COLS };
    union {
        struct grt_learn_state state;
        float words[GRT_LEARN_STATE_WORDS];
    } s = {.state = {.loss_scale = 8.0f,
                     .lr_factor = 1.0f,
                     .found_steps = 11,
                     .found_updates = 3,
                     .found_loss_scale = 8.0f,
                     .found_lr_factor = 1.0f}};
    float *y = test_floats(1, TEST_PLAIN, N);
    float *t = test_floats(2, TEST_PLAIN, N);
    const struct {
        uint32_t n;
        float share, delta;
    } loss = {N, 1.0f / N, 0.5f};
    static const uint32_t losses[] = {GRT_LOSS_MSE, GRT_LOSS_HUBER, GRT_LOSS_BCE};
    for (int i = 0; i < 3; i++) {
        const struct kernel_case c = {
            .desc = {"loss_f32", {{"WG", 16}, {"LOSS", losses[i]}}},
            .params = &loss,
            .params_size = sizeof loss,
            .groups = 5,
            .buffers = {{y, N}, {t, N}, {NULL, N}, {NULL, 5}, {s.words, GRT_LEARN_STATE_WORDS}}};
        kernel_same_as_ref(&c);
    }
    // A part of the numbers of a row, with and without weights of the samples.
    const struct {
        uint32_t rows, cols;
        float share, delta;
        uint32_t pitch, first, words, at, weight_at;
        float scale;
    } rowed = {ROWS, 3, 1.0f / ROWS / 3, 0.5f, COLS, 2, 5, 1, 4, 0.75f};
    for (uint32_t i = 0; i < 6; i++) {
        const struct kernel_case c = {
            .desc = {"loss_rows_f32", {{"WG", 16}, {"LOSS", losses[i / 2]}, {"SAMPLED", i % 2}}},
            .params = &rowed,
            .params_size = sizeof rowed,
            .groups = 5,
            .buffers = {
                {y, N}, {t, N}, {NULL, N}, {NULL, 5}, {s.words, GRT_LEARN_STATE_WORDS}, {NULL, 5}}};
        kernel_same_as_ref(&c);
    }
    float classes[2 * ROWS];
    for (uint32_t i = 0; i < ROWS; i++) {
        classes[2 * i] = test_as_f32(i * 5 % COLS);
        classes[2 * i + 1] = 0.25f * (float)(i % 5);
    }
    const struct {
        uint32_t rows, cols;
        float share, shared_out, each, heavy;
        uint32_t pitch, first, words, at, weight_at;
        float scale;
    } entropy = {ROWS, COLS, 1.0f / ROWS, 0.25f, 0.25f / COLS, 0.25f / COLS * 9.0f, COLS,
                 0,    2,    0,           1,     0.5f};
    const float weights[COLS] = {1, 0.5f, 2, 0, 3, 1.5f, 1};
    // With and without label smoothing, hits, and weights of classes and samples.
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t smooth = i % 2, weighted = i / 2 % 2, sampled = i / 4;
        const struct kernel_case cross = {.desc = {"cross_entropy_f32",
                                                   {{"WG", 16},
                                                    {"LANES", 4},
                                                    {"HITS", !weighted},
                                                    {"SMOOTH", smooth},
                                                    {"WEIGHTED", weighted},
                                                    {"NEAR", !weighted},
                                                    {"SAMPLED", sampled}}},
                                          .params = &entropy,
                                          .params_size = sizeof entropy,
                                          .groups = 3,
                                          .buffers = {{y, N},
                                                      {classes, 2 * ROWS},
                                                      {NULL, N},
                                                      {NULL, 3},
                                                      {s.words, GRT_LEARN_STATE_WORDS},
                                                      {NULL, 3},
                                                      {weights, COLS},
                                                      {y, N},
                                                      {NULL, 3},
                                                      {NULL, 3}}};
        kernel_same_as_ref(&cross);
    }
    const uint32_t mean[3] = {N, ROWS, 1};
    const struct kernel_case divided = {.desc = {"weighted_mean", {{"WG", 16}}},
                                        .params = mean,
                                        .params_size = sizeof mean,
                                        .groups = 3,
                                        .buffers = {{y, N}, {t, ROWS}, {t, ROWS}, {t, ROWS}}};
    kernel_same_as_ref(&divided);
    const uint32_t norm[2] = {N, 0};
    const struct kernel_case squares = {
        .desc = {"grad_norm", {{"WG", 16}}},
        .params = norm,
        .params_size = sizeof norm,
        .groups = 4,
        .buffers = {{y, N}, {s.words, GRT_LEARN_STATE_WORDS}, {NULL, 4}}};
    kernel_same_as_ref(&squares);
    // Clipped, and in the middle of a schedule.
    const struct {
        uint32_t n, run, leads;
        float numbers[8];
        uint32_t first, unit;
        float ema;
        uint32_t norm_parts, loss_parts, samples, epoch;
        float lr, min_lr;
        uint32_t warmup;
        float per_warmup;
        uint32_t span;
        float per_span, turn, log_beta1, log_beta2, weight_decay, max_norm, growth, backoff;
        uint32_t interval;
    } update = {N,
                144,
                1,
                {0.01f, 0.9f, 1.0f, 0.9f, 0.999f, 0.1f, 0.001f, 1e-8f},
                7,
                64,
                0.9f,
                37,
                GRT_LOSS_PARTS,
                5,
                5,
                0.01f,
                0.001f,
                4,
                0.25f,
                3,
                1.0f / 3.0f,
                -0.7f,
                -0.10536052f,
                -0.0010005003f,
                0.01f,
                1.5f,
                2.0f,
                0.5f,
                100};
    float *parts = test_floats(3, TEST_PLAIN, GRT_LOSS_PARTS);
    for (int i = 0; i < GRT_LOSS_PARTS; i++) {
        parts[i] = fabsf(parts[i]);
    }
    // Three rows of rates, the second of a rate that stays 0; then the row of each unit of 64
    // elements from the 7th on.
    const union {
        float rates[12];
        uint32_t rows[12];
    } table = {
        .rows = {0x3c23d70au, 0x3dcccccdu, 0, 0x3f000000u, 0x3b03126fu, 0, 2, 0, 1, 1, 0, 2}};
    _Static_assert((int)GRT_OPTIM_COUNT == 4 && (int)GRT_SCHEDULE_COUNT == 5, "each with each");
    for (uint32_t kind = 0; kind < 20; kind++) {
        const struct kernel_case c = {.desc = {"optim",
                                               {{"WG", 16},
                                                {"OPTIM", kind % 4},
                                                {"MOMENTUM", 1},
                                                {"COPY", 1},
                                                {"SCHEDULE", kind / 4},
                                                {"SCALING", 1},
                                                {"ADDERS", kind % 2 ? 8 : 1},
                                                {"RATES", (kind + kind / 4) % 2 ? 3 : 0},
                                                {"EMA", kind / 8}}},
                                      .params = &update,
                                      .params_size = sizeof update,
                                      .groups = 3,
                                      .buffers = {{NULL, N},
                                                  {y, N},
                                                  {NULL, N},
                                                  {NULL, N},
                                                  {NULL, N / 2 + 1},
                                                  {s.words, GRT_LEARN_STATE_WORDS},
                                                  {parts, GRT_LOSS_PARTS},
                                                  {parts, GRT_LOSS_PARTS},
                                                  {NULL, 8 * GRT_HISTORY},
                                                  {table.rates, 12},
                                                  {NULL, N},
                                                  {parts, GRT_LOSS_PARTS}}};
        kernel_same_as_ref(&c);
        // However many lanes add them, all parts are in the sums.
        float *outs[GRT_MAX_BINDINGS] = {NULL};
        double loss_sum = 0, squares_sum = 0;
        for (int i = 0; i < GRT_LOSS_PARTS; i++) {
            loss_sum += (double)parts[i];
            squares_sum += i < 37 ? (double)parts[i] : 0;
        }
        kernel_run(test.dev, &c, outs);
        const struct grt_learn_row *row = (const struct grt_learn_row *)outs[8] + 11;
        assert_true(fabs((double)row->loss - loss_sum) < 1e-5 * loss_sum);
        assert_true(fabs((double)row->grad_norm - sqrt(squares_sum)) < 1e-5 * sqrt(squares_sum));
        for (uint32_t i = 0; i < GRT_MAX_BINDINGS; i++) {
            free(outs[i]);
        }
    }
    free(parts);
    free(y);
    free(t);
}

static void refusals(void **state) {
    (void)state;
    struct grt_optim_desc rows[10];
    for (int i = 0; i < 10; i++) {
        rows[i] = grt_optim_defaults(GRT_OPTIM_ADAMW);
        assert_null(grt_optim_mistake(&rows[i]));
    }
    rows[0].lr = 0;
    rows[1].lr = NAN;
    rows[2].beta1 = 1;
    rows[3].eps = -1;
    rows[4].schedule = GRT_SCHEDULE_COSINE;
    rows[5].schedule = GRT_SCHEDULE_STEP;
    rows[6].max_norm = -1;
    rows[7].nesterov = true;
    rows[8].backoff = 1;
    rows[9].kind = GRT_OPTIM_COUNT;
    for (int i = 0; i < 10; i++) {
        assert_non_null(grt_optim_mistake(&rows[i]));
    }
    struct grt_graph *graph = grt_graph_create(test.dev, "bad update");
    grt_op_update(graph, NULL);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "no desc");
    grt_graph_destroy(&graph);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(optimizers),       TEST_CASE(tiny_moments),
    TEST_CASE(small_windows),    TEST_CASE(tiny_norms_are_clipped),
    TEST_CASE(loss_scale),       TEST_CASE(halt_and_skip),
    TEST_CASE(same_bits_as_ref), TEST_CASE(refusals),
};
TEST_SUITE(optim, true, cases);
