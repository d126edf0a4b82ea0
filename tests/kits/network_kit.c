// SPDX-License-Identifier: Apache-2.0
#include "network_kit.h"

#include <stdlib.h>
#include <string.h>

static struct grt_shape shape_of(const struct network_case *c) {
    return c->oracle.rows > 1 ? (struct grt_shape){2, {c->oracle.rows, c->oracle.cols}}
                              : (struct grt_shape){1, {c->oracle.cols}};
}

static enum grt_loss loss_of(const char *name) {
    return strcmp(name, "mse") == 0  ? GRT_LOSS_MSE
           : strcmp(name, "l1") == 0 ? GRT_LOSS_L1
                                     : GRT_LOSS_CROSS_ENTROPY;
}

struct grt_learner *network_create(const struct network_case *c, enum grt_dtype dtype,
                                   uint32_t accumulate, const char *variant) {
    const struct grt_network_desc network = {.text = c->text, .outputs = c->outputs};
    float weights[64];
    for (uint32_t i = 0; c->oracle.weights && i < c->outputs; i++) {
        weights[i] = (float)c->oracle.weights[i];
    }
    return grt_learner_create(
        test.dev,
        grt_learner_desc(.make = grt_network_make, .of = &network, .input = shape_of(c),
                         .outputs = c->outputs, .loss = loss_of(c->oracle.loss),
                         .label_smoothing = (float)c->oracle.smoothing,
                         .class_weights = c->oracle.weights ? weights : NULL,
                         .optim = grt_optim_defaults(GRT_OPTIM_SGD), .precision = dtype,
                         .batch = NETWORK_SAMPLES, .accumulate = accumulate, .variant = variant));
}

static double rounded(enum grt_dtype dtype, double v) {
    struct oracle_format format = dtype == GRT_F16 ? oracle_f16 : oracle_bf16;
    return dtype == GRT_F32 ? v : oracle_widen(format, oracle_narrow(format, v));
}

struct network_samples network_samples_make(const struct network_case *c, enum grt_dtype dtype) {
    bool classes = strcmp(c->oracle.loss, "cross_entropy") == 0;
    size_t width = c->oracle.rows * c->oracle.cols, outputs = classes ? 1 : c->outputs;
    struct network_samples s = {
        .x = test_alloc(NETWORK_SAMPLES * width * sizeof(double)),
        .y = test_alloc(NETWORK_SAMPLES * outputs * sizeof(double)),
        .bx = test_buf(test.dev, NETWORK_SAMPLES * width * 4, GRT_BUF_UPLOAD),
        .by = test_buf(test.dev, NETWORK_SAMPLES * outputs * 4, GRT_BUF_UPLOAD)};
    for (uint32_t i = 0; i < NETWORK_SAMPLES * width; i++) {
        float v = learn_number(1, i);
        ((float *)grt_buf_host(s.bx))[i] = v;
        s.x[i] = rounded(dtype, (double)v);
    }
    for (uint32_t i = 0; i < NETWORK_SAMPLES * outputs; i++) {
        uint32_t class = learn_hash(2, i) % c->outputs;
        float v = learn_number(2, i);
        s.y[i] = classes ? class : (double)v;
        if (classes) {
            ((uint32_t *)grt_buf_host(s.by))[i] = class;
        } else {
            ((float *)grt_buf_host(s.by))[i] = v;
        }
    }
    return s;
}

void network_samples_end(struct network_samples *s) {
    free(s->x);
    free(s->y);
    grt_buf_destroy(&s->bx);
    grt_buf_destroy(&s->by);
}

double **network_set_parameters(struct grt_learner *learner, enum grt_dtype dtype, size_t *count) {
    const struct grt_tensor *t;
    const char *name;
    for (*count = 0; grt_learner_tensor(learner, GRT_TENSOR_PARAM, (uint32_t)*count, NULL);) {
        ++*count;
    }
    double **params = test_alloc(*count * sizeof *params);
    for (uint32_t k = 0; k < *count; k++) {
        t = grt_learner_tensor(learner, GRT_TENSOR_PARAM, k, &name);
        bool weight = strstr(name, "weight") != NULL, norm = weight && t->rank == 1;
        size_t numbers = (size_t)grt_tensor_count(t);
        float *v = test_alloc(numbers * sizeof *v);
        params[k] = test_alloc(numbers * sizeof **params);
        for (uint32_t i = 0; i < numbers; i++) {
            float n = learn_number(100 + k, i);
            v[i] = norm ? 1.0f + 0.25f * n : n * (t->rank == 2 ? 0.7f : 0.3f);
            params[k][i] = t->rank == 2 ? rounded(dtype, (double)v[i]) : (double)v[i];
        }
        assert_true(grt_buf_write(t->range.buf, t->range.offset, v, numbers * sizeof *v));
        free(v);
    }
    assert_true(grt_learner_sync(learner));
    return params;
}

void network_free_parameters(double **params, size_t count) {
    for (size_t k = 0; k < count; k++) {
        free(params[k]);
    }
    free(params);
}
