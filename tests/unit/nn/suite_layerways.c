// SPDX-License-Identifier: Apache-2.0
// Layers one by one, on numbers by hand: ties, numbers that are none, what is left as it is, what
// is written beside; and norms over the rows of several processes.
#include "kits/learn_kit.h"
#include "kits/ref_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/profile.h"
#include "oracle/image.h"

// A module by itself, with memory for samples and their gradients.
struct one {
    struct grt_module *module;
    struct grt_params params;
    struct grt_plan *plan;
    struct grt_net net;
    struct grt_tensor *x, *y, *dx, *dy;
    struct grt_buf *own;
    struct grt_graph *graph;
    bool training, add;
};

static struct grt_tensor *samples(struct one *o, uint64_t rows, const struct grt_shape *shape) {
    struct grt_tensor_desc desc = {.label = "samples", .shape = {rows}};
    memcpy(desc.shape + 1, shape->dim, shape->rank * sizeof *shape->dim);
    return grt_plan_tensor(o->plan, &desc);
}

static void one_begin(struct one *o, struct grt_module *module, uint64_t rows,
                      const struct grt_shape *in, const struct grt_together *together) {
    *o = (struct one){.module = module, .plan = grt_plan_create(test.dev), .training = true};
    assert_non_null(module);
    grt_params_init(&o->params, test.dev, GRT_F32);
    o->net = (struct grt_net){
        .dev = test.dev, .plan = o->plan, .params = &o->params, .rows = rows, .seed = 5};
    if (together) {
        o->net.together = *together;
        o->net.sync_norms = true;
    }
    struct grt_shape out = grt_module_declare(module, &o->net, "", in);
    assert_true(out.rank > 0);
    o->x = samples(o, rows, in);
    o->dx = samples(o, rows, in);
    o->y = samples(o, rows, &out);
    o->dy = samples(o, rows, &out);
    if (o->net.scratch_bytes > 0) {
        o->net.scratch =
            grt_plan_tensor(o->plan, grt_tensor_desc(.label = "scratch",
                                                     .shape = {(o->net.scratch_bytes + 3) / 4}));
    }
    if (o->params.count > 0) {
        grt_params_declare(&o->params, o->plan, true);
    }
    assert_true(grt_plan_alloc(o->plan) && grt_net_meet(&o->net));
    if (o->params.count > 0) {
        grt_params_place(&o->params);
        assert_true(grt_params_draw(&o->params, 1));
    }
    o->own = test_buf(test.dev, 128, GRT_BUF_DEVICE);
    const uint32_t none[32] = {0};
    assert_true(grt_buf_write(o->own, 0, none, sizeof none));
}

static void one_end(struct one *o) {
    grt_graph_destroy(&o->graph);
    grt_module_destroy(&o->module);
    grt_net_finish(&o->net);
    grt_params_finish(&o->params);
    grt_plan_destroy(&o->plan);
    grt_buf_destroy(&o->own);
}

static void put(const struct grt_tensor *t, const float *numbers) {
    assert_true(grt_buf_write(t->range.buf, t->range.offset, numbers, grt_tensor_bytes(t)));
}

// Forward and back; what y and dx held before is NaN.
static void one_run(struct one *o) {
    grt_graph_destroy(&o->graph);
    o->graph = grt_graph_create(test.dev, "one layer");
    const struct grt_pass pass = {
        .graph = o->graph, .training = o->training, .add_grads = o->add, .state = {o->own, 0, 128}};
    grt_graph_fill(o->graph, o->y->range, UINT32_MAX);
    grt_graph_fill(o->graph, o->dx->range, UINT32_MAX);
    grt_module_forward(o->module, &pass, o->x, o->y);
    if (o->training) {
        grt_module_backward(o->module, &pass, o->x, o->dy, o->dx, false);
    }
    assert_true(grt_graph_bake(o->graph) && grt_graph_run(o->graph) && grt_dev_wait(test.dev));
}

// Both of them against what is wanted, NaN where NaN is.
static void check(const struct grt_tensor *t, const float *want, float off) {
    float *got = learn_read(t);
    for (uint64_t i = 0; i < grt_tensor_count(t); i++) {
        if (isnan(want[i]) ? !isnan(got[i])
                           : !(got[i] == want[i] || fabsf(got[i] - want[i]) <= off)) {
            fail_msg("number %llu is %g, not %g", (unsigned long long)i, (double)got[i],
                     (double)want[i]);
        }
    }
    free(got);
}

// ---- pools ----

// Of equals the first takes the gradient, and a NaN is the largest, the first of two.
static void largest_of_points(void **state) {
    (void)state;
    static const float x[2][4][3] = {
        {{1, 5, NAN}, {3, 5, 9}, {3, 2, NAN}, {2, 5, 1}},
        {{-1, -INFINITY, -0.0f}, {-4, -INFINITY, 0.0f}, {-1, -INFINITY, -3}, {-2, -8, -5}}};
    static const float dy[2][3] = {{10, 20, 30}, {40, 50, 60}};
    static const float y[2][3] = {{3, 5, NAN}, {-1, -8, 0}};
    static const float dx[2][4][3] = {{{0, 20, 30}, {10, 0, 0}, {0, 0, 0}, {0, 0, 0}},
                                      {{40, 0, 60}, {0, 0, 0}, {0, 0, 0}, {0, 50, 0}}};
    static const float mean[2][3] = {{2.25f, 4.25f, NAN}, {-2, -INFINITY, -2}};
    for (int largest = 0; largest < 2; largest++) {
        struct one o;
        one_begin(&o, grt_pool_create(largest ? GRT_POOL_MAX : GRT_POOL_MEAN), 2,
                  &(struct grt_shape){2, {4, 3}}, NULL);
        put(o.x, &x[0][0][0]);
        put(o.dy, &dy[0][0]);
        one_run(&o);
        check(o.y, largest ? &y[0][0] : &mean[0][0], 0);
        float each[24];
        for (int i = 0; i < 24; i++) {
            each[i] = dy[i / 12][i % 3] / 4;
        }
        check(o.dx, largest ? &dx[0][0][0] : each, 0);
        one_end(&o);
    }
}

// ---- what only moves ----

static void numbers_that_move(void **state) {
    (void)state;
    float x[2][6], dy[12];
    for (int i = 0; i < 12; i++) {
        x[i / 6][i % 6] = (float)(i + 1);
        dy[i] = (float)(100 + i);
    }
    // Columns 2 to 4 of 6, and 0 beside them on the way back.
    struct one o;
    one_begin(&o, grt_columns_create(2, 3), 2, &(struct grt_shape){1, {6}}, NULL);
    put(o.x, &x[0][0]);
    put(o.dy, dy);
    one_run(&o);
    check(o.y, (const float[]){3, 4, 5, 9, 10, 11}, 0);
    check(o.dx, (const float[]){0, 0, 100, 101, 102, 0, 0, 0, 103, 104, 105, 0}, 0);
    one_end(&o);
    // The same as an input of two axes.
    one_begin(&o, grt_input_create(&(struct grt_input){"a", 1, {2, {2, 2}}}), 2,
              &(struct grt_shape){1, {6}}, NULL);
    put(o.x, &x[0][0]);
    put(o.dy, dy);
    one_run(&o);
    assert_true(o.y->rank == 3 && o.y->shape[1] == 2);
    check(o.y, (const float[]){2, 3, 4, 5, 8, 9, 10, 11}, 0);
    check(o.dx, (const float[]){0, 100, 101, 102, 103, 0, 0, 104, 105, 106, 107, 0}, 0);
    one_end(&o);
    // Dropout of nothing, and any in evaluation; flatten.
    for (int i = 0; i < 3; i++) {
        one_begin(&o, i == 2 ? grt_flatten_create() : grt_dropout_create(i == 0 ? 0 : 0.9), 2,
                  &(struct grt_shape){2, {2, 3}}, NULL);
        o.training = i != 1;
        put(o.x, &x[0][0]);
        put(o.dy, dy);
        one_run(&o);
        check(o.y, &x[0][0], 0);
        if (o.training) {
            check(o.dx, dy, 0);
        }
        one_end(&o);
    }
}

// ---- rows with zeros behind them ----

// A linear layer of 5 numbers whose rows are 8 apart: once, and again to the gradients there are.
static void wide_rows(void **state) {
    (void)state;
    enum { ROWS = 3, INPUTS = 5, PITCH = 8, OUTPUTS = 2 };
    struct one o;
    assert_true(grt_dev_profile_set(test.dev, GRT_KEY_ROW_BYTES,
                                    &(struct grt_profile_value){.count = 1, .numbers = {16}}));
    one_begin(&o, grt_linear_create(grt_linear_desc(.outputs = OUTPUTS)), ROWS,
              &(struct grt_shape){1, {INPUTS}}, NULL);
    assert_int_equal(grt_net_pitch(&o.net, INPUTS), PITCH);
    float x[ROWS][PITCH] = {{0}}, weight[OUTPUTS][INPUTS], dy[ROWS][OUTPUTS], y[ROWS][OUTPUTS];
    float dx[ROWS][INPUTS] = {{0}}, dw[OUTPUTS][INPUTS] = {{0}}, db[OUTPUTS] = {0};
    static const float bias[OUTPUTS] = {10, 20};
    for (int r = 0; r < ROWS; r++) {
        for (int k = 0; k < OUTPUTS; k++) {
            dy[r][k] = (float)(r - 2 * k + 1);
            y[r][k] = bias[k];
            db[k] += dy[r][k];
            for (int i = 0; i < INPUTS; i++) {
                x[r][i] = (float)(r * INPUTS + i - 4);
                weight[k][i] = (float)(2 * i - 3 * k + 1);
                y[r][k] += x[r][i] * weight[k][i];
                dx[r][i] += dy[r][k] * weight[k][i];
                dw[k][i] += dy[r][k] * x[r][i];
            }
        }
    }
    struct test_tensor wide = test_tensor(test.dev, GRT_F32, ROWS, PITCH);
    test_tensor_write(&wide, x);
    put(&o.params.list[0]->master, &weight[0][0]);
    put(&o.params.list[1]->master, bias);
    put(o.dy, &dy[0][0]);
    o.x = &wide.tensor;
    for (int again = 0; again < 2; again++) {
        o.add = again == 1;
        one_run(&o);
        check(o.y, &y[0][0], 0);
        check(o.dx, &dx[0][0], 0);
        check(&o.params.list[0]->grad, &dw[0][0], 0);
        check(&o.params.list[1]->grad, db, 0);
        for (int k = 0; k < OUTPUTS; k++) {
            db[k] *= 2;
            for (int i = 0; i < INPUTS; i++) {
                dw[k][i] *= 2;
            }
        }
    }
    test_tensor_end(&wide);
    one_end(&o);
}

// ---- activations ----

// At 0, far out, and at what is no number.
static void activations_far_out(void **state) {
    (void)state;
    enum { N = 7 };
    static const float x[N] = {0, -0.0f, 1e30f, -1e30f, INFINITY, 200, NAN};
    static const struct {
        enum grt_act act;
        float y[N], slope[N];
    } rows[] = {
        {GRT_ACT_RELU, {0, 0, 1e30f, 0, INFINITY, 200, NAN}, {0, 0, 1, 0, 1, 1, 0}},
        {GRT_ACT_TANH, {0, 0, 1, -1, 1, 1, NAN}, {1, 1, 0, 0, 0, 0, NAN}},
        {GRT_ACT_SIGMOID, {0.5f, 0.5f, 1, 0, 1, 1, NAN}, {0.25f, 0.25f, 0, 0, 0, 0, NAN}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct one o;
        static const float two[N] = {2, 2, 2, 2, 2, 2, 2};
        float want[N];
        one_begin(&o, grt_activation_create(rows[i].act), 1, &(struct grt_shape){1, {N}}, NULL);
        put(o.x, x);
        put(o.dy, two);
        one_run(&o);
        check(o.y, rows[i].y, 1e-6f);
        for (int k = 0; k < N; k++) {
            want[k] = 2 * rows[i].slope[k];
        }
        // Whether a NaN goes back is the loss's affair: it is seen there.
        float *got = learn_read(o.dx);
        for (int k = 0; k + 1 < N; k++) {
            assert_true(fabsf(got[k] - want[k]) <= 1e-6f);
        }
        free(got);
        one_end(&o);
    }
}

// ---- norms over several processes ----

enum { RANKS = 3, COLS = 5 };

struct rank {
    struct one of;
    uint32_t calls;
    float said[2][RANKS][2 * COLS];  // of the exchange forward, and of that back
};

static struct rank *meeting;  // all of them
static uint32_t asking;       // which of them runs

// What others said when they were asked last; the way there and the way back take turns.
static bool hear_others(void *context, void *all, uint64_t each) {
    (void)context;
    struct rank *self = &meeting[asking];
    uint32_t way = self->calls++ % 2;
    assert_int_equal(each, sizeof self->said[0][0]);
    memcpy(self->said[way][asking], (char *)all + asking * each, each);
    for (uint32_t r = 0; r < RANKS; r++) {
        memcpy((char *)all + r * each, meeting[r].said[way][r], each);
    }
    return true;
}

// Three processes with as many rows each: numbers and gradients are those of one batch of all rows,
// but for the gradients of weight and bias, which are each one's share. Rows of one chunk, of two.
static void norms_of_ranks(void **state) {
    (void)state;
    static const uint32_t each[] = {4, 70};
    for (int size = 0; size < 2; size++) {
        const uint32_t rows = each[size], numbers = rows * COLS, all = RANKS * numbers;
        struct rank *ranks = calloc(RANKS, sizeof *ranks);
        float *x = test_alloc(all * sizeof *x), *dy = test_alloc(all * sizeof *dy);
        double *wide = test_alloc(4 * all * sizeof *wide), *of_cols = test_alloc(4 * COLS * 8);
        double *y = wide + 2 * all, *dx = wide + 3 * all, weight[COLS], bias[COLS];
        float narrow[2 * COLS];
        assert_non_null(ranks);
        meeting = ranks;
        for (uint32_t i = 0; i < all; i++) {
            // Each process has a mean of its own.
            x[i] = learn_number(1, i) + 3 * floorf((float)i / (float)numbers);
            dy[i] = learn_number(2, i);
            wide[i] = (double)x[i];
            wide[all + i] = (double)dy[i];
        }
        for (uint32_t c = 0; c < COLS; c++) {
            weight[c] = (double)(narrow[c] = 1.5f + learn_number(3, c));
            bias[c] = (double)(narrow[COLS + c] = learn_number(4, c));
        }
        oracle_batch_norm(RANKS * rows, COLS, wide, weight, bias, y, of_cols, of_cols + COLS);
        oracle_batch_norm_backward(RANKS * rows, COLS, wide, weight, wide + all, dx,
                                   of_cols + 2 * COLS, of_cols + 3 * COLS);
        for (uint32_t r = 0; r < RANKS; r++) {
            struct one *o = &ranks[r].of;
            const struct grt_together together = {r, RANKS, hear_others, ranks};
            one_begin(o, grt_batch_norm_create(NULL), rows, &(struct grt_shape){1, {COLS}},
                      &together);
            assert_true(o->net.syncs);
            put(&o->params.list[0]->master, narrow);
            put(&o->params.list[1]->master, narrow + COLS);
            put(o->x, x + r * numbers);
            put(o->dy, dy + r * numbers);
        }
        // They hear of each other when they ask again: forward is known to all behind the first
        // turn, what goes back behind the second.
        for (uint32_t turn = 0; turn < 4; turn++) {
            for (asking = 0; asking < RANKS; asking++) {
                struct one *o = &ranks[asking].of;
                if (turn == 3) {
                    assert_true(grt_params_draw(&o->params, 1));  // statistics begin anew
                    put(&o->params.list[0]->master, narrow);
                    put(&o->params.list[1]->master, narrow + COLS);
                }
                one_run(o);
            }
        }
        for (uint32_t r = 0; r < RANKS; r++) {
            struct one *o = &ranks[r].of;
            float *got = test_alloc(2 * numbers * sizeof *got);
            double slopes[2][COLS] = {{0}};
            for (uint32_t i = 0; i < numbers; i++) {
                uint32_t at = r * numbers + i, c = i % COLS;
                got[i] = (float)y[at];
                got[numbers + i] = (float)dx[at];
                slopes[0][c] +=
                    wide[all + at] * (wide[at] - of_cols[c]) / sqrt(of_cols[COLS + c] + 1e-5);
                slopes[1][c] += wide[all + at];
            }
            check(o->y, got, 2e-5f);
            check(o->dx, got + numbers, 2e-5f);
            free(got);
            float want[COLS];
            for (int k = 0; k < 2; k++) {
                for (uint32_t c = 0; c < COLS; c++) {
                    want[c] = (float)slopes[k][c];
                }
                check(&o->params.list[k]->grad, want, 2e-4f);
            }
            double n = RANKS * rows;
            for (uint32_t c = 0; c < COLS; c++) {
                want[c] = (float)(0.1 * of_cols[c]);
            }
            check(&o->params.buffers[0]->master, want, 1e-5f);
            for (uint32_t c = 0; c < COLS; c++) {
                want[c] = (float)(0.9 + 0.1 * of_cols[COLS + c] * n / (n - 1));
            }
            check(&o->params.buffers[1]->master, want, 1e-5f);
            check(&o->params.buffers[2]->master, (const float[]){1}, 0);
            // Once more, to the gradients that there are; and nobody is asked in evaluation.
            o->add = true;
            asking = r;
            one_run(o);
            for (int k = 0; k < 2; k++) {
                for (uint32_t c = 0; c < COLS; c++) {
                    want[c] = (float)(2 * slopes[k][c]);
                }
                check(&o->params.list[k]->grad, want, 4e-4f);
            }
            uint32_t calls = ranks[r].calls;
            assert_int_equal(calls, 10);
            o->training = false;
            one_run(o);
            assert_int_equal(ranks[r].calls, calls);
        }
        for (uint32_t r = 0; r < RANKS; r++) {
            one_end(&ranks[r].of);
        }
        free(ranks);
        free(x);
        free(dy);
        free(wide);
        free(of_cols);
    }
}

// Alone, or where nobody asked for it, a norm is of its own rows and wants no exchange.
static void norms_alone(void **state) {
    (void)state;
    for (uint32_t ranks = 0; ranks < 2; ranks++) {
        const struct grt_together together = {0, ranks, hear_others, NULL};
        struct one o;
        one_begin(&o, grt_batch_norm_create(NULL), 2, &(struct grt_shape){1, {1}}, &together);
        assert_false(o.net.syncs);
        assert_int_equal(o.net.exchanged, 0);
        put(o.x, (const float[]){1, 3});
        put(o.dy, (const float[]){0, 0});
        one_run(&o);
        check(o.y, (const float[]){-1, 1}, 1e-4f);
        check(&o.params.buffers[1]->master, (const float[]){0.9f + 0.1f * 2}, 1e-6f);
        one_end(&o);
    }
}

// One row has no variance: it is 0, and 0 is what goes into the running one.
static void norm_of_one_row(void **state) {
    (void)state;
    struct one o;
    one_begin(&o, grt_batch_norm_create(grt_batch_norm_desc(.zero = true)), 1,
              &(struct grt_shape){1, {2}}, NULL);
    put(o.x, (const float[]){5, -7});
    put(o.dy, (const float[]){1, 2});
    one_run(&o);
    check(o.y, (const float[]){0, 0}, 0);
    check(o.dx, (const float[]){0, 0}, 0);
    check(&o.params.list[0]->master, (const float[]){0, 0}, 0);
    check(&o.params.list[1]->grad, (const float[]){1, 2}, 0);
    check(&o.params.buffers[0]->master, (const float[]){0.5f, -0.7f}, 1e-6f);
    check(&o.params.buffers[1]->master, (const float[]){0.9f, 0.9f}, 1e-6f);
    one_end(&o);
}

static const struct CMUnitTest cases[] = {
    REF_CASE(largest_of_points),   REF_CASE(numbers_that_move), REF_CASE(wide_rows),
    REF_CASE(activations_far_out), REF_CASE(norms_of_ranks),    REF_CASE(norms_alone),
    REF_CASE(norm_of_one_row),
};
TEST_SUITE(layerways, false, cases);
