// SPDX-License-Identifier: Apache-2.0
#include "learn_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint32_t learn_hash(uint32_t stream, uint32_t i) {
    uint32_t v = (i + stream * 7919u + 1u) * 2654435761u;
    v ^= v >> 16;
    v *= 2246822519u;
    return v ^ v >> 13;
}

float learn_number(uint32_t stream, uint32_t i) {
    return (float)(learn_hash(stream, i) >> 8) * 0x1p-23f - 1.0f;
}

// ---- data ----

static struct learn_data make_data(const struct learn_desc *d, size_t samples) {
    const struct learn_model *m = &d->model;
    struct learn_data data = {.samples = samples, .x_size = m->inputs, .y_size = m->outputs};
    if (m->kind == LEARN_POINTS) {
        data.x_size *= m->points;
    }
    data.x = test_alloc(samples * data.x_size * sizeof *data.x);
    for (size_t i = 0; i < samples * data.x_size; i++) {
        data.x[i] = learn_number(1, (uint32_t)i);
    }
    if (d->loss == GRT_LOSS_CROSS_ENTROPY) {
        data.y_size = 1;
        data.classes = test_alloc(samples * sizeof *data.classes);
        for (size_t i = 0; i < samples; i++) {
            data.classes[i] = learn_hash(2, (uint32_t)i) % m->outputs;
        }
        return data;
    }
    data.y = test_alloc(samples * data.y_size * sizeof *data.y);
    for (size_t i = 0; i < samples * data.y_size; i++) {
        float v = learn_number(2, (uint32_t)i);
        data.y[i] = d->loss == GRT_LOSS_BCE ? (v > 0 ? 1.0f : 0.0f) : v;
    }
    return data;
}

// ---- a learner ----

const char *learn_model_text(enum learn_kind kind) {
    static const char *const texts[] = {"mlp", "linear", "points"};
    return texts[kind];
}

static struct grt_mlp_desc mlp_desc(const struct learn_model *m, uint32_t inputs, uint32_t depth,
                                    uint32_t outputs) {
    return (struct grt_mlp_desc){.inputs = inputs,
                                 .depth = depth,
                                 .hidden = m->hidden,
                                 .outputs = outputs,
                                 .act = m->act,
                                 .residual = m->residual,
                                 .layer_norm = m->layer_norm};
}

struct grt_module *learn_make(const void *of) {
    const struct learn_model *m = of;
    struct grt_mlp_desc mlp = mlp_desc(m, m->inputs, m->depth, m->outputs);
    if (m->kind == LEARN_LINEAR) {
        return grt_linear_create(grt_linear_desc(.inputs = m->inputs, .outputs = m->outputs));
    }
    if (m->kind == LEARN_POINTS) {
        return grt_points_create(
            grt_points_desc(.points = m->points, .pool = m->pool,
                            .each = mlp_desc(m, m->inputs, m->depth, 0),
                            .head = mlp_desc(m, m->hidden, m->head_depth, m->outputs)));
    }
    return grt_mlp_create(&mlp);
}

struct grt_learner *learn_create(struct grt_dev *dev, const struct learn_desc *d) {
    bool points = d && d->model.kind == LEARN_POINTS;
    return d ? grt_learner_create(
                   dev, grt_learner_desc(.make = learn_make, .of = &d->model,
                                         .input = {points ? 2 : 1,
                                                   {points ? d->model.points : d->model.inputs,
                                                    points ? d->model.inputs : 0}},
                                         .loss = d->loss, .huber_delta = d->huber_delta,
                                         .class_weights = d->class_weights, .optim = d->optim,
                                         .precision = d->precision, .batch = d->batch,
                                         .accumulate = d->accumulate, .recompute = d->recompute,
                                         .inference = d->inference, .seed = d->seed,
                                         .variant = d->variant))
             : grt_learner_create(dev, NULL);
}

void learn_set_parameters(struct grt_learner *learner) {
    const struct grt_tensor *t;
    const char *name;
    double bound = 1;
    bool norm = false;  // a weight of one axis, and the bias behind it
    for (uint32_t k = 0; (t = grt_learner_tensor(learner, GRT_TENSOR_PARAM, k, &name)); k++) {
        size_t count = (size_t)grt_tensor_count(t);
        float *v = test_alloc(count * sizeof *v);
        bool weight = strstr(name, "weight") != NULL;
        if (t->rank == 2) {
            bound = 1 / sqrt((double)t->shape[1]);
        }
        norm = weight ? t->rank == 1 : norm;
        for (size_t i = 0; i < count; i++) {
            double n = (double)learn_number(100 + k, (uint32_t)i);
            v[i] = (float)(norm ? weight + 0.125 * n : n * bound);
        }
        assert_true(grt_buf_write(t->range.buf, t->range.offset, v, count * sizeof *v));
        free(v);
    }
    assert_true(grt_learner_sync(learner));
}

static struct grt_buf *upload(const void *data, size_t bytes) {
    struct grt_buf *buf = test_buf(test.dev, bytes, GRT_BUF_UPLOAD);
    if (data) {
        memcpy(grt_buf_host(buf), data, bytes);
    }
    return buf;
}

struct learn learn_begin(const struct learn_desc *desc, size_t samples) {
    struct learn l = {.learner = learn_create(test.dev, desc)};
    assert_non_null(l.learner);
    assert_true(grt_learner_alloc(l.learner));
    learn_set_parameters(l.learner);
    l.data = make_data(desc, samples);
    l.x = upload(l.data.x, samples * l.data.x_size * 4);
    const void *targets = l.data.y ? (const void *)l.data.y : l.data.classes;
    l.y = upload(targets, samples * l.data.y_size * 4);
    return l;
}

void learn_end(struct learn *l) {
    grt_learner_destroy(&l->learner);
    grt_buf_destroy(&l->x);
    grt_buf_destroy(&l->y);
    free(l->data.x);
    free(l->data.y);
    free(l->data.classes);
}

// ---- running ----

struct grt_graph *learn_step(struct learn *l, uint32_t rows, uint32_t steps) {
    struct grt_graph *graph = grt_learner_step(
        l->learner, grt_step_desc(.rows = rows, .steps = steps, .x = {l->x}, .y = {l->y}));
    assert_non_null(graph);
    return graph;
}

void learn_run(struct grt_graph *graph, uint32_t times) {
    for (uint32_t i = 0; i < times; i++) {
        assert_true(grt_graph_run(graph));
    }
    assert_true(grt_dev_wait(grt_graph_dev(graph)));
}

struct grt_learn_state learn_state(const struct learn *l) {
    struct grt_learn_state state;
    assert_true(grt_learner_state(l->learner, &state));
    return state;
}

float *learn_read(const struct grt_tensor *t) {
    float *v = test_alloc((size_t)grt_tensor_bytes(t));
    assert_true(grt_buf_read(t->range.buf, t->range.offset, v, grt_tensor_bytes(t)));
    return v;
}

float *learn_parameters(const struct learn *l, size_t *count) {
    *count = (size_t)grt_learner_parameters(l->learner);
    float *all = test_alloc(*count * sizeof *all);
    const struct grt_tensor *t;
    size_t at = 0;
    for (uint32_t k = 0; (t = grt_learner_tensor(l->learner, GRT_TENSOR_PARAM, k, NULL)); k++) {
        float *v = learn_read(t);
        memcpy(all + at, v, (size_t)grt_tensor_bytes(t));
        at += (size_t)grt_tensor_count(t);
        free(v);
    }
    assert_int_equal(at, *count);
    return all;
}

struct learn_desc learn_small(enum grt_dtype precision) {
    struct learn_desc d = {
        .model = {.inputs = 8, .depth = 3, .hidden = 16, .outputs = 2, .act = GRT_ACT_RELU},
        .optim = grt_optim_defaults(GRT_OPTIM_ADAMW),
        .precision = precision,
        .batch = LEARN_BATCH,
        .seed = 3,
        .variant = "layers",
    };
    d.optim.lr = 3e-3;
    return d;
}

void learn_train(struct learn *l, uint32_t steps) {
    struct grt_graph *graph = learn_step(l, 0, 1);
    learn_run(graph, steps);
    grt_graph_destroy(&graph);
}
