// SPDX-License-Identifier: Apache-2.0
// Layers of images against the formulas: one module, forward and backward, over shapes at the edge
// (one pixel, a window larger than the image, stride 2 over odd sizes, 1, 3 and 17 channels).
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "gpurt/module.h"
#include "harness/harness.h"
#include "kits/learn_kit.h"
#include "nn/eights.h"
#include "ops/verdict.h"
#include "oracle/image.h"

// A module by itself, over images of `rows` samples.
struct layer {
    struct grt_module *module;
    struct grt_params params;
    struct grt_plan *plan;
    struct grt_net net;
    enum grt_dtype dtype;
    struct grt_shape in, out;
    struct test_tensor x, y, dy, dx;
    double *x_values, *dy_values, *dx_before;
    double *param[2];  // weight and bias, as the kernels see them; NULL: none
};

static double rounded(enum grt_dtype dtype, double v) {
    return dtype == GRT_F32
               ? v
               : oracle_widen(test_format(dtype), oracle_narrow(test_format(dtype), v));
}

// One rounding to the type of the activations, relative.
static double unit(enum grt_dtype dtype) {
    return dtype == GRT_F32 ? 0x1p-24 : dtype == GRT_F16 ? 0x1p-11 : 0x1p-8;
}

static float *read(struct test_tensor *t, enum grt_dtype dtype, size_t count) {
    void *numbers = test_alloc(count * grt_dtype_size(dtype));
    float *wide = test_alloc(count * sizeof *wide);
    test_tensor_read(t, numbers);
    for (size_t i = 0; i < count; i++) {
        wide[i] = (float)test_number(dtype, numbers, i);
    }
    free(numbers);
    return wide;
}

// A tensor of samples, of numbers of its own stream that the type holds.
static double *drawn(struct test_tensor *t, enum grt_dtype dtype, uint64_t rows,
                     const struct grt_shape *shape, uint32_t stream) {
    uint64_t axes[GRT_MAX_RANK] = {rows};
    memcpy(axes + 1, shape->dim, sizeof shape->dim);
    size_t count = (size_t)(rows * grt_shape_count(shape));
    double *values = test_alloc(count * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        values[i] = rounded(dtype, (double)learn_number(stream, (uint32_t)i));
    }
    *t = test_tensor_shape(test.dev, dtype, shape->rank + 1, axes);
    test_tensor_put(t, values, count);
    return values;
}

static void layer_begin(struct layer *l, struct grt_module *module, const struct grt_shape *in,
                        uint64_t rows, enum grt_dtype dtype) {
    assert_non_null(module);
    *l = (struct layer){.module = module, .dtype = dtype, .in = *in};
    grt_params_init(&l->params, test.dev, dtype);
    l->plan = grt_plan_create(test.dev);
    l->net = (struct grt_net){
        .dev = test.dev, .plan = l->plan, .params = &l->params, .dtype = dtype, .rows = rows};
    l->out = grt_module_declare(module, &l->net, "", in);
    assert_true(l->out.rank > 0);
    l->net.scratch =
        grt_plan_tensor(l->plan, grt_tensor_desc(.label = "scratch", .group = "scratch",
                                                 .shape = {l->net.scratch_bytes / 4 + 1}));
    if (l->params.count > 0) {
        grt_params_declare(&l->params, l->plan, true);
    }
    assert_true(grt_plan_alloc(l->plan));
    if (l->params.count > 0) {
        grt_params_place(&l->params);
        assert_true(grt_params_draw(&l->params, 1));
    }
    for (uint32_t k = 0; k < l->params.count; k++) {
        const struct grt_param *p = l->params.list[k];
        float *v = test_alloc(p->count * sizeof *v);
        l->param[k] = test_alloc(p->count * sizeof **l->param);
        for (size_t i = 0; i < p->count; i++) {
            v[i] = learn_number(40 + k, (uint32_t)i) + (p->rank == 1 && k == 0 ? 1.5f : 0.0f);
            // Products read weights in the net's type.
            l->param[k][i] = p->rank > 1 ? rounded(dtype, (double)v[i]) : (double)v[i];
        }
        assert_true(
            grt_buf_write(p->master.range.buf, p->master.range.offset, v, p->count * sizeof *v));
        free(v);
    }
    assert_true(grt_params_sync(&l->params));
    l->x_values = drawn(&l->x, dtype, rows, in, 1);
    l->dy_values = drawn(&l->dy, dtype, rows, &l->out, 2);
    l->dx_before = drawn(&l->dx, dtype, rows, in, 3);
    free(drawn(&l->y, dtype, rows, &l->out, 4));
}

static void layer_end(struct layer *l) {
    grt_module_destroy(&l->module);
    grt_net_finish(&l->net);
    grt_params_finish(&l->params);
    grt_plan_destroy(&l->plan);
    test_tensor_end(&l->x);
    test_tensor_end(&l->y);
    test_tensor_end(&l->dx);
    test_tensor_end(&l->dy);
    free(l->x_values);
    free(l->dy_values);
    free(l->dx_before);
    free(l->param[0]);
    free(l->param[1]);
}

// How a layer is run.
struct way {
    struct layer *l;
    uint64_t rows;
    bool evaluation, backward, add_dx, add_grads, no_dx, again;
};

static struct grt_tensor rows_of(const struct test_tensor *t, uint64_t rows) {
    struct grt_tensor view = t->tensor;
    view.range.size = view.range.size / view.shape[0] * rows;
    view.shape[0] = rows;
    return view;
}

static void record(struct grt_graph *graph, void *context) {
    const struct way *w = context;
    const struct grt_pass pass = {
        .graph = graph, .training = !w->evaluation, .add_grads = w->add_grads, .again = w->again};
    struct grt_tensor x = rows_of(&w->l->x, w->rows), y = rows_of(&w->l->y, w->rows);
    struct grt_tensor dx = rows_of(&w->l->dx, w->rows), dy = rows_of(&w->l->dy, w->rows);
    grt_module_forward(w->l->module, &pass, &x, &y);
    if (w->backward) {
        grt_module_backward(w->l->module, &pass, &x, &dy, w->no_dx ? NULL : &dx, w->add_dx);
    }
}

static float *gradient(const struct layer *l, uint32_t k) {
    const struct grt_param *p = l->params.list[k];
    float *v = test_alloc(p->count * sizeof *v);
    assert_true(grt_buf_read(p->grad.range.buf, p->grad.range.offset, v, p->count * sizeof *v));
    return v;
}

// got against want, both of `count` numbers. Each may be off by so many roundings of its magnitude
// to the type that it is stored in, and to f32 on the way.
static void compare(const char *what, const struct layer *l, const float *got, const double *want,
                    const double *magnitude, size_t count, double stored, double depth) {
    struct test_compare c = test_compare(test.dev, "%s, %s", what, grt_dtype_text(l->dtype));
    for (size_t i = 0; i < count; i++) {
        double size = magnitude ? magnitude[i] : fabs(want[i]);
        test_compare_value(
            &c, i, got[i],
            (struct oracle_value){want[i], stored * fabs(want[i]) +
                                               (depth * 0x1p-24 + stored * 0x1p-3) * size +
                                               (l->dtype == GRT_F16 ? 0x1p-24 : 1e-12)});
    }
    test_compare_end(&c);
}

// ---- convolution ----

struct conv_case {
    uint32_t rows, height, width, channels, outputs, size, stride, padding;
    bool driver;
};

static void check_conv(const struct conv_case *t, enum grt_dtype dtype, bool bias, bool add) {
    const struct oracle_window w = {t->rows, t->height, t->width,  t->channels,
                                    t->size, t->stride, t->padding};
    struct layer l;
    layer_begin(
        &l,
        grt_conv_create(grt_conv_desc(.outputs = t->outputs, .size = t->size, .stride = t->stride,
                                      .padding = t->padding, .no_bias = !bias)),
        &(struct grt_shape){3, {t->height, t->width, t->channels}}, t->rows, dtype);
    size_t depth = (size_t)t->size * t->size * t->channels;
    size_t outs = (size_t)(t->rows * grt_shape_count(&l.out));
    size_t places = outs / t->outputs;
    size_t ins = (size_t)(t->rows * grt_shape_count(&l.in)), weights = t->outputs * depth;
    assert_int_equal(l.out.dim[0], oracle_window_out(t->height, &w));
    assert_int_equal(l.out.dim[1], oracle_window_out(t->width, &w));
    double *y = test_alloc(2 * outs * sizeof *y), *dx = test_alloc(2 * ins * sizeof *dx);
    double *dw = test_alloc(2 * weights * sizeof *dw),
           *db = test_alloc(2 * t->outputs * sizeof *db);
    oracle_conv(&w, t->outputs, l.x_values, l.param[0], bias ? l.param[1] : NULL, y, y + outs);
    oracle_conv_backward(
        &w, t->outputs, l.x_values, l.param[0], l.dy_values,
        &(struct oracle_conv_grads){dx, dw, db, dx + ins, dw + weights, db + t->outputs});
    struct way way = {.l = &l, .rows = t->rows, .backward = true, .add_dx = add};
    test_run(test.dev, record, &way);
    if (add) {
        way.add_grads = way.no_dx = true;
        test_run(test.dev, record, &way);  // twice the gradients
    }
    for (size_t i = 0; add && i < ins; i++) {
        dx[i] += l.dx_before[i];
        dx[ins + i] += fabs(l.dx_before[i]);
    }
    for (size_t i = 0; add && i < 2 * weights; i++) {
        dw[i] *= 2;
    }
    for (size_t i = 0; add && i < 2 * t->outputs; i++) {
        db[i] *= 2;
    }
    float *got = read(&l.y, dtype, outs);
    compare("conv", &l, got, y, y + outs, outs, unit(dtype), (double)depth + 2);
    free(got);
    // The patches' gradients are rounded one by one, then their sum.
    got = read(&l.dx, dtype, ins);
    compare("conv dx", &l, got, dx, dx + ins, ins, unit(dtype) * 8, t->outputs + (double)depth);
    free(got);
    got = gradient(&l, 0);
    compare("conv dweight", &l, got, dw, dw + weights, weights, 0x1p-23, (double)places);
    free(got);
    if (bias) {
        got = gradient(&l, 1);
        compare("conv dbias", &l, got, db, db + t->outputs, t->outputs, 0x1p-23, (double)places);
        free(got);
    }
    free(y);
    free(dx);
    free(dw);
    free(db);
    layer_end(&l);
}

static void conv(void **state) {
    (void)state;
    static const struct conv_case cases[] = {
        {2, 1, 1, 1, 1, 1, 1, 0, false},  {3, 1, 1, 3, 5, 3, 1, 1, false},
        {2, 5, 7, 3, 4, 3, 1, 1, true},   {5, 7, 5, 17, 6, 3, 2, 1, true},
        {2, 6, 6, 4, 8, 3, 2, 0, false},  {3, 8, 8, 16, 8, 1, 1, 0, true},
        {2, 9, 7, 8, 3, 1, 2, 0, false},  {2, 3, 3, 2, 3, 7, 2, 3, false},
        {1, 11, 13, 3, 4, 7, 2, 3, true}, {4, 4, 4, 2, 2, 4, 1, 0, false},
        {2, 2, 9, 1, 1, 2, 3, 1, false},  {2, 4, 4, 512, 3, 3, 1, 1, false},
        {9, 6, 5, 3, 2, 3, 1, 1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (test.on_ref) {
            check_conv(&cases[i], GRT_F32, i % 2 == 0, i % 3 == 0);
            check_conv(&cases[i], GRT_F16, i % 2 == 1, i % 3 == 1);
            check_conv(&cases[i], GRT_BF16, i % 2 == 0, i % 3 == 2);
        } else if (cases[i].driver) {
            check_conv(&cases[i], GRT_F32, i % 2 == 0, i % 3 == 0);
            check_conv(&cases[i], i % 2 ? GRT_BF16 : GRT_F16, true, i % 3 == 1);
        }
    }
}

// ---- pooling ----

static void check_pool(const struct conv_case *t, bool largest, enum grt_dtype dtype, bool add) {
    const struct oracle_window w = {t->rows, t->height, t->width,  t->channels,
                                    t->size, t->stride, t->padding};
    struct layer l;
    layer_begin(
        &l,
        grt_window_pool_create(grt_window_pool_desc(.pool = largest ? GRT_POOL_MAX : GRT_POOL_MEAN,
                                                    .size = t->size, .stride = t->stride,
                                                    .padding = t->padding)),
        &(struct grt_shape){3, {t->height, t->width, t->channels}}, t->rows, dtype);
    size_t outs = (size_t)(t->rows * grt_shape_count(&l.out));
    size_t ins = (size_t)(t->rows * grt_shape_count(&l.in));
    // Few values, so that some are equal, and all below zero: padding is never the largest.
    for (size_t i = 0; i < ins; i++) {
        l.x_values[i] = -1.0 - floor(8 * (l.x_values[i] + 1)) / 8;
    }
    test_tensor_put(&l.x, l.x_values, ins);
    double *y = test_alloc(outs * sizeof *y), *dx = test_alloc(2 * ins * sizeof *dx);
    oracle_window_pool(&w, largest, l.x_values, y);
    oracle_window_pool_backward(&w, largest, l.x_values, l.dy_values, dx);
    test_run(test.dev, record,
             &(struct way){.l = &l, .rows = t->rows, .backward = true, .add_dx = add});
    for (size_t i = 0; i < ins; i++) {
        dx[i] += add ? l.dx_before[i] : 0;
        dx[ins + i] = (double)t->size * t->size + 1;
    }
    float *got = read(&l.y, dtype, outs);
    if (largest) {
        struct test_compare c = test_compare(test.dev, "max pool, %s", grt_dtype_text(dtype));
        for (size_t i = 0; i < outs; i++) {
            test_compare_exact(&c, i, (double)got[i], y[i]);
        }
        test_compare_end(&c);
    } else {
        compare("avg pool", &l, got, y, NULL, outs, unit(dtype) * 2, t->size * t->size);
    }
    free(got);
    got = read(&l.dx, dtype, ins);
    compare("pool dx", &l, got, dx, dx + ins, ins, unit(dtype), t->size * t->size);
    free(got);
    free(y);
    free(dx);
    layer_end(&l);
}

static void pools(void **state) {
    (void)state;
    static const struct conv_case cases[] = {
        {2, 6, 6, 3, 0, 2, 2, 0, true},   {3, 7, 5, 5, 0, 3, 2, 1, true},
        {1, 1, 1, 1, 0, 1, 1, 0, false},  {2, 4, 9, 17, 0, 3, 1, 1, false},
        {2, 8, 8, 2, 0, 2, 3, 1, false},  {2, 5, 5, 4, 0, 5, 5, 0, false},
        {3, 7, 5, 16, 0, 3, 2, 1, true},  {1, 9, 6, 8, 0, 3, 1, 1, true},
        {2, 5, 5, 24, 0, 2, 3, 1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int largest = 0; largest < 2; largest++) {
            if (test.on_ref || cases[i].driver) {
                check_pool(&cases[i], largest == 1, GRT_F32, i % 2 == 0);
                check_pool(&cases[i], largest == 1, i % 2 ? GRT_F16 : GRT_BF16, i % 2 == 1);
            }
        }
    }
}

// A NaN is larger than anything, wherever it stands in the window.
static void nan_is_largest(void **state) {
    (void)state;
    for (int at = 0; at < 4; at++) {
        struct layer l;
        layer_begin(&l,
                    grt_window_pool_create(grt_window_pool_desc(.pool = GRT_POOL_MAX, .size = 2)),
                    &(struct grt_shape){3, {2, 2, 1}}, 1, GRT_F32);
        float x[4] = {1, 2, 3, 4}, y, dx[4], dy = 5;
        x[at] = NAN;
        test_tensor_write(&l.x, x);
        test_tensor_write(&l.dy, &dy);
        test_run(test.dev, record, &(struct way){.l = &l, .rows = 1, .backward = true});
        test_tensor_read(&l.y, &y);
        test_tensor_read(&l.dx, dx);
        assert_true(isnan(y));
        for (int i = 0; i < 4; i++) {
            assert_true(dx[i] == (i == at ? 5.0f : 0.0f));
        }
        layer_end(&l);
    }
}

// ---- batch norm ----

static float *buffer(const struct layer *l, uint32_t k) {
    const struct grt_param *b = l->params.buffers[k];
    float *v = test_alloc(b->count * sizeof *v);
    assert_true(grt_buf_read(b->master.range.buf, b->master.range.offset, v, b->count * sizeof *v));
    return v;
}

static void check_norm(uint64_t rows, const struct grt_shape *in, enum grt_dtype dtype, bool add) {
    struct layer l;
    layer_begin(&l, grt_batch_norm_create(NULL), in, rows, dtype);
    size_t cols = (size_t)in->dim[in->rank - 1], all = (size_t)(rows * grt_shape_count(in));
    size_t lines = all / cols;
    // Far from 0 by many deviations: sums of squares would lose the variance.
    for (size_t i = 0; i < all; i++) {
        double far = dtype == GRT_F32 ? 30.0 : 2.0;
        l.x_values[i] = rounded(dtype, (double)(float)(far + 0.5 * l.x_values[i]));
    }
    test_tensor_put(&l.x, l.x_values, all);
    double *y = test_alloc(all * sizeof *y), *dx = test_alloc(2 * all * sizeof *dx);
    double *of_cols = test_alloc(4 * cols * sizeof *of_cols);
    double *mean = of_cols, *variance = of_cols + cols, *dw = of_cols + 2 * cols,
           *db = of_cols + 3 * cols;
    oracle_batch_norm(lines, cols, l.x_values, l.param[0], l.param[1], y, mean, variance);
    oracle_batch_norm_backward(lines, cols, l.x_values, l.param[0], l.dy_values, dx, dw, db);
    struct way way = {.l = &l, .rows = rows, .backward = true};
    test_run(test.dev, record, &way);
    float *got = read(&l.y, dtype, all);
    double *size = test_alloc((all + cols) * sizeof *size);
    for (size_t i = 0; i < all + cols; i++) {
        // The distance from the mean is what 30 leaves of it in f32.
        size[i] = 8 + 2 * 30 / sqrt(variance[i % cols]);
        if (i < all) {
            dx[all + i] = size[i] * 3;
        }
    }
    compare("batch norm", &l, got, y, size, all, unit(dtype), 12);
    free(got);
    got = read(&l.dx, dtype, all);
    compare("batch norm dx", &l, got, dx, dx + all, all, unit(dtype) * 2, 40);
    free(got);
    for (uint32_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < cols; i++) {
            size[i] = (double)lines * (8 + 2 * 30 / sqrt(variance[i]));
        }
        got = gradient(&l, k);
        compare(k ? "batch norm dbias" : "batch norm dweight", &l, got, k ? db : dw, size, cols,
                0x1p-23, 4);
        free(got);
    }
    if (add) {
        way.add_grads = true;
        test_run(test.dev, record, &way);
        got = read(&l.dx, dtype, all);
        compare("batch norm dx, gradients added", &l, got, dx, dx + all, all, unit(dtype) * 2, 40);
        free(got);
        for (uint32_t k = 0; k < 2; k++) {
            for (size_t i = 0; i < cols; i++) {
                (k ? db : dw)[i] *= 2;
            }
            got = gradient(&l, k);
            compare("batch norm, gradients added", &l, got, k ? db : dw, size, cols, 0x1p-22, 8);
            free(got);
        }
    }
    free(size);
    free(y);
    free(dx);
    free(of_cols);
    layer_end(&l);
}

static void batch_norm(void **state) {
    (void)state;
    check_norm(7, &(struct grt_shape){1, {5}}, GRT_F32, true);
    check_norm(6, &(struct grt_shape){3, {5, 3, 9}}, GRT_F16, false);
    check_norm(2, &(struct grt_shape){2, {3, 40}}, GRT_BF16, true);  // rows of whole vectors
    check_norm(33, &(struct grt_shape){3, {4, 3, 8}}, GRT_F16, test.on_ref);
    check_norm(3, &(struct grt_shape){1, {2072}}, GRT_F16, false);  // columns of two workgroups
    check_norm(33, &(struct grt_shape){3, {4, 3, 3}}, GRT_F32, test.on_ref);  // several chunks
    if (test.on_ref) {
        check_norm(5, &(struct grt_shape){3, {1, 1, 1}}, GRT_F32, false);
    }
}

// Norm, shortcut and relu, which are one pass over memory, and what goes back through them.
static void check_residual(uint64_t rows, uint64_t cols, enum grt_dtype dtype) {
    struct layer l;
    layer_begin(&l, grt_residual_create(grt_batch_norm_create(NULL), NULL, GRT_ACT_RELU),
                &(struct grt_shape){1, {cols}}, rows, dtype);
    size_t all = (size_t)(rows * cols);
    double *y = test_alloc(all * sizeof *y), *dx = test_alloc(all * sizeof *dx);
    double *size = test_alloc(all * sizeof *size), *of_cols = test_alloc(4 * cols * sizeof(double));
    oracle_batch_norm(rows, (size_t)cols, l.x_values, l.param[0], l.param[1], y, of_cols,
                      of_cols + cols);
    for (size_t i = 0; i < all; i++) {
        y[i] += l.x_values[i];
        // What is as near to 0 as a rounding could be on either side.
        double near = fabs(y[i]) < 0.02 ? 0 : 1;
        l.dy_values[i] *= near;
        size[i] = 16;
    }
    test_tensor_put(&l.dy, l.dy_values, all);
    for (size_t i = 0; i < all; i++) {
        l.dy_values[i] *= y[i] > 0;
        y[i] = y[i] > 0 ? y[i] : 0;
    }
    oracle_batch_norm_backward(rows, (size_t)cols, l.x_values, l.param[0], l.dy_values, dx,
                               of_cols + 2 * cols, of_cols + 3 * cols);
    for (size_t i = 0; i < all; i++) {
        dx[i] += l.dy_values[i];
    }
    test_run(test.dev, record, &(struct way){.l = &l, .rows = rows, .backward = true});
    float *got = read(&l.y, dtype, all);
    compare("residual", &l, got, y, size, all, unit(dtype), 40);
    free(got);
    got = read(&l.dx, dtype, all);
    compare("residual dx", &l, got, dx, size, all, unit(dtype) * 4, 40);
    free(got);
    free(y);
    free(dx);
    free(size);
    free(of_cols);
    layer_end(&l);
}

static void residual(void **state) {
    (void)state;
    check_residual(9, 5, GRT_F32);
    check_residual(13, 12, GRT_BF16);
    check_residual(13, 16, GRT_F16);
    check_residual(70, 24, GRT_BF16);
}

// Twenty steps of running statistics, as PyTorch's documentation has them; a repeated pass takes
// none; evaluation uses them, also for one sample.
static void running(void **state) {
    (void)state;
    enum { ROWS = 6, COLS = 3, STEPS = 20 };
    struct layer l;
    layer_begin(&l, grt_batch_norm_create(NULL), &(struct grt_shape){1, {COLS}}, ROWS, GRT_F32);
    assert_string_equal(l.params.buffers[0]->name, "running_mean");
    assert_string_equal(l.params.buffers[1]->name, "running_var");
    assert_string_equal(l.params.buffers[2]->name, "num_batches_tracked");
    double mean[COLS] = {0}, variance[COLS] = {1, 1, 1}, want[COLS], size[COLS] = {8, 8, 8};
    for (uint32_t step = 0; step < STEPS; step++) {
        double y[ROWS * COLS], of_batch[2 * COLS], x[ROWS * COLS];
        for (uint32_t i = 0; i < ROWS * COLS; i++) {
            x[i] = (double)(learn_number(60 + step, i) + (float)(i % COLS));
        }
        test_tensor_put(&l.x, x, ROWS * COLS);
        oracle_batch_norm(ROWS, COLS, x, l.param[0], l.param[1], y, of_batch, of_batch + COLS);
        for (int c = 0; c < COLS; c++) {
            mean[c] = 0.9 * mean[c] + 0.1 * of_batch[c];
            variance[c] = 0.9 * variance[c] + 0.1 * of_batch[COLS + c] * ROWS / (ROWS - 1.0);
        }
        test_run(test.dev, record, &(struct way){.l = &l, .rows = ROWS, .backward = true});
        if (step % 3 == 0) {
            test_run(test.dev, record, &(struct way){.l = &l, .rows = ROWS, .again = true});
        }
        float *got[3] = {buffer(&l, 0), buffer(&l, 1), buffer(&l, 2)};
        compare("running mean", &l, got[0], mean, size, COLS, 0, 4 * STEPS);
        compare("running variance", &l, got[1], variance, size, COLS, 0, 4 * STEPS);
        assert_true(got[2][0] == (float)(step + 1));
        for (int k = 0; k < 3; k++) {
            free(got[k]);
        }
    }
    test_run(test.dev, record, &(struct way){.l = &l, .rows = 1, .evaluation = true});
    float y[ROWS * COLS];
    float *x = read(&l.x, GRT_F32, ROWS * COLS);
    test_tensor_read(&l.y, y);
    for (int c = 0; c < COLS; c++) {
        want[c] =
            ((double)x[c] - mean[c]) / sqrt(variance[c] + 1e-5) * l.param[0][c] + l.param[1][c];
    }
    compare("evaluated", &l, y, want, size, COLS, 0x1p-22, 4 * STEPS);
    float *batches = buffer(&l, 2);
    assert_true(batches[0] == STEPS);
    free(batches);
    free(x);
    layer_end(&l);
}

// ---- refusals ----

static void refused(void **state) {
    (void)state;
    TEST_REFUSED(grt_conv_create(NULL), GRT_INVALID, "conv: no desc");
    TEST_REFUSED(grt_conv_create(grt_conv_desc(.size = 3)), GRT_INVALID, "outputs");
    TEST_REFUSED(grt_conv_create(grt_conv_desc(.outputs = 3)), GRT_INVALID, "size");
    TEST_REFUSED(grt_conv_create(grt_conv_desc(.outputs = 3, .size = 3, .padding = 3)), GRT_INVALID,
                 "padding must be below the size");
    TEST_REFUSED(grt_window_pool_create(NULL), GRT_INVALID, "window pool: no desc");
    TEST_REFUSED(grt_window_pool_create(grt_window_pool_desc(.size = 0)), GRT_INVALID, "size");
    TEST_REFUSED(grt_window_pool_create(grt_window_pool_desc(.size = 3, .padding = 2)), GRT_INVALID,
                 "more than half");
    TEST_REFUSED(grt_window_pool_create(grt_window_pool_desc(.size = 3, .pool = GRT_POOL_COUNT)),
                 GRT_INVALID, "no such pooling");
}

// Kernels of vectors whose check sees a wrong number are left out, with one warning for each way
// they are there, and the others stay.
static void eights_are_checked(void **state) {
    (void)state;
    static const char *const stems[] = {"block8",      "block_grad8", "block_sums8", "add_to8",
                                        "batch_sums8", "window8",     "window_grad8"};
    const struct grt_tensor x = {.dtype = GRT_F16, .rank = 2, .shape = {4, 16}};
    const struct grt_tensor odd = {.dtype = GRT_F16, .rank = 2, .shape = {4, 17}};
    const struct grt_tensor *one = &x, *other = &odd;
    struct grt_dev *dev = grt_dev_create(grt_dev_desc(.device = grt_dev_info(test.dev)->selector));
    assert_non_null(dev);
    uint64_t place = (uint64_t)(uintptr_t)dev;  // another in each run
    snprintf(dev->info.driver_version, sizeof dev->info.driver_version, "wrong eights %llu",
             (unsigned long long)grt_digest(&place, sizeof place, 1));
    bool ptx = grt_kernel_builds(dev, "add_to8_ptx_16");
    uint32_t before = test_log.lines[GRT_LOG_WARN];
    test_log.quiet = true;
    for (size_t i = 0; i < sizeof stems / sizeof *stems; i++) {
        bool wrong = i == 1 || i == 4;
        grt_check_fault(dev, stems[i], wrong ? "*" : NULL);
        assert_int_equal(grt_eights_serve(dev, stems[i], &one, 1), !wrong);
        assert_false(grt_eights_serve(dev, stems[i], &other, 1));
    }
    test_log.quiet = false;
    assert_int_equal(test_log.lines[GRT_LOG_WARN] - before, ptx ? 4 : 2);
    grt_dev_destroy(&dev);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(conv),     TEST_CASE(pools),   TEST_CASE(nan_is_largest),     TEST_CASE(batch_norm),
    TEST_CASE(residual), TEST_CASE(running), TEST_CASE(eights_are_checked), TEST_CASE(refused)};
TEST_SUITE(images, true, cases);
