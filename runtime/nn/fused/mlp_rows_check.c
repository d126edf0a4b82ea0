// SPDX-License-Identifier: Apache-2.0
// Whether the kernels of an MLP over rows compute right on a device (see ops/verdict.h), asked for
// each model: a few samples that lie apart, taken over and over in a mixed order, as many rows as
// give every workgroup several pieces. Squared errors of what comes out are sent back; gradients
// are compared with those in double precision on the host, and outputs of rows in their order with
// those of the mixed one.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "gpurt/optim.h"
#include "mlp_case.h"
#include "mlp_reference.h"
#include "mlp_rows_parts.h"
#include "mlp_trial.h"
#include "ops/op_support.h"
#include "ops/verdict.h"

#define SAMPLES 14u
#define SHARE 2u              // rows that share the far part
#define PERIOD (2 * SAMPLES)  // rows of a step
#define STEPS 4u
#define PLACES (STEPS * PERIOD)
#define PIECES_A_UNIT 7u
#define SCALE_OF_ROW 0.25f  // such that halves of gradients are neither small nor large

struct trial {
    struct mlp_trial made;
    struct grt_mlp_rows_desc desc;
    struct grt_tensor *near, *far, *order, *y, *ordered_y, *dy, *hidden, *scratch, *state;
    uint64_t rows;
    float *x, *target, *out;
    uint16_t *halves;
};

static uint64_t pitch_of(uint32_t numbers) {
    return (numbers + 7) / 8 * 8;
}

static bool declare(struct trial *t, struct grt_dev *dev, const struct grt_mlp_rows_desc *of) {
    const struct grt_mlp_desc *m = &of->model;
    const struct grt_row_places *at = &of->places;
    uint64_t near = pitch_of(at->near.numbers), far = pitch_of(at->far.numbers);
    t->rows = 16ull * PIECES_A_UNIT * mlp_units(dev) + 5;
    if (!mlp_trial_begin(&t->made, dev, m, of->dtype)) {
        return false;
    }
    struct mlp_trial *made = &t->made;
    t->desc = (struct grt_mlp_rows_desc){
        .model = *m, .dtype = of->dtype, .params = &made->params, .rows = t->rows};
    t->near = mlp_trial_tensor(made, "near", of->dtype, PLACES, near);
    t->far = far > 0 ? mlp_trial_tensor(made, "far", of->dtype, PLACES / SHARE, far) : NULL;
    t->order = mlp_trial_tensor(made, "order", GRT_U32, t->rows, 0);
    t->y = mlp_trial_tensor(made, "y", GRT_F32, t->rows, m->outputs);
    t->ordered_y = mlp_trial_tensor(made, "ordered y", GRT_F32, PLACES, m->outputs);
    t->dy = mlp_trial_tensor(made, "dy", of->dtype, t->rows, m->outputs);
    t->hidden = mlp_trial_tensor(made, "hidden", GRT_U32, grt_mlp_rows_hidden(&t->desc) / 4, 0);
    t->scratch = mlp_trial_tensor(made, "scratch", GRT_U32,
                                  (grt_mlp_rows_scratch(dev, &t->desc) + 3) / 4, 0);
    t->state = mlp_trial_tensor(made, "state", GRT_U32, GRT_LEARN_STATE_WORDS, 0);
    t->desc.places = (struct grt_row_places){
        .near = {.numbers = at->near.numbers, .pitch = near, .step = PERIOD * near},
        .far = {.numbers = at->far.numbers, .pitch = far, .step = PERIOD / SHARE * far},
        .period = PERIOD,
        .share = SHARE};
    return t->near && (far == 0 || t->far) && t->order && t->y && t->ordered_y && t->dy &&
           t->hidden && t->scratch && t->state;
}

// ---- numbers ----

static uint16_t short_of(const struct trial *t, float v) {
    return grt_16_of_f32(t->desc.dtype, v);
}

// A part of all places; place i has sample i % SAMPLES, of which two neighbours have the same far
// part.
static bool write_part(struct trial *t, const struct grt_tensor *to, uint32_t first,
                       uint32_t numbers, uint32_t share) {
    uint64_t pitch = pitch_of(numbers);
    memset(t->halves, 0, grt_tensor_bytes(to));
    for (uint32_t i = 0; i < PLACES / share; i++) {
        const float *x = t->x + (size_t)(i * share % SAMPLES) * t->desc.model.inputs + first;
        for (uint32_t j = 0; j < numbers; j++) {
            t->halves[i * pitch + j] = short_of(t, x[j]);
        }
    }
    return mlp_trial_write(to, t->halves);
}

static bool write_inputs(struct trial *t) {
    const struct grt_mlp_desc *m = &t->desc.model;
    uint32_t near = t->desc.places.near.numbers, far = t->desc.places.far.numbers;
    uint64_t seed = 5;
    for (uint32_t i = 0; i < SAMPLES * m->inputs; i++) {
        t->x[i] = mlp_trial_next(&seed);
    }
    for (uint32_t s = 0; s < SAMPLES; s += SHARE) {
        memcpy(t->x + (size_t)(s + 1) * m->inputs + near, t->x + (size_t)s * m->inputs + near,
               far * sizeof *t->x);
    }
    for (uint32_t i = 0; i < SAMPLES * m->outputs; i++) {
        t->target[i] = mlp_trial_next(&seed);
    }
    uint32_t *order = (uint32_t *)t->halves;
    for (uint64_t i = 0; i < t->rows; i++) {
        order[i] = (uint32_t)(i * 5 % (PLACES / SAMPLES) * SAMPLES + i % SAMPLES);
    }
    return mlp_trial_write(t->order, order) && write_part(t, t->near, 0, near, 1) &&
           (far == 0 || write_part(t, t->far, near, far, SHARE));
}

static bool begin(struct trial *t, struct grt_dev *dev, const struct grt_mlp_rows_desc *of) {
    if (!declare(t, dev, of)) {
        return false;
    }
    const struct grt_mlp_desc *m = &of->model;
    uint64_t elements = grt_mlp_reference_at(m, m->depth + 1);
    uint64_t most = t->rows * m->outputs > elements ? t->rows * m->outputs : elements;
    most = most > PLACES * 1024ull ? most : PLACES * 1024ull;
    t->x = calloc(SAMPLES * (size_t)m->inputs, sizeof *t->x);
    t->target = calloc(SAMPLES * (size_t)m->outputs, sizeof *t->target);
    t->out = calloc(most, sizeof *t->out);
    t->halves = calloc(most, 2 * sizeof *t->halves);
    if (!t->x || !t->target || !t->out || !t->halves || !mlp_trial_alloc(&t->made)) {
        return false;
    }
    t->desc.places.near.range = t->near->range;
    t->desc.places.far.range = t->far ? t->far->range : (struct grt_range){0};
    t->desc.scratch = t->scratch->range;
    t->desc.state = t->state->range;
    t->desc.dy = t->dy;
    const struct grt_learn_state state = {.loss_scale = SCALE_OF_ROW * (float)t->rows};
    return write_inputs(t) &&
           grt_buf_write(t->state->range.buf, t->state->range.offset, &state, sizeof state);
}

static void end(struct trial *t) {
    mlp_trial_end(&t->made);
    free(t->x);
    free(t->target);
    free(t->out);
    free(t->halves);
}

// ---- looking at it ----

// Outputs of all rows, and of the places in their order.
static bool go_forward(struct trial *t) {
    struct grt_graph *graph = grt_graph_create(t->made.params.dev, "mlp rows check");
    if (graph) {
        struct grt_mlp_rows_desc ordered = t->desc, plain = t->desc;
        ordered.places.order = t->order->range;
        ordered.hidden = t->hidden->range;
        ordered.y = t->y;
        plain.rows = PLACES;
        plain.y = t->ordered_y;
        grt_op_mlp_rows_forward(graph, &ordered);
        grt_op_mlp_rows_forward(graph, &plain);
    }
    bool good = graph && grt_graph_finish(graph);
    grt_graph_destroy(&graph);
    return good;
}

static bool go_back(struct trial *t) {
    struct grt_graph *graph = grt_graph_create(t->made.params.dev, "mlp rows check");
    if (graph) {
        struct grt_mlp_rows_desc back = t->desc;
        back.places.order = t->order->range;
        back.hidden = t->hidden->range;
        grt_graph_fill(graph, t->made.params.grad->range, UINT32_MAX);
        grt_op_mlp_rows_backward(graph, &back);
    }
    bool good = graph && grt_graph_finish(graph);
    grt_graph_destroy(&graph);
    return good;
}

// Whether every row has the output of its place; then t->out has those of all rows.
static bool same_outputs(struct trial *t) {
    uint32_t outputs = t->desc.model.outputs;
    float *places = malloc(grt_tensor_bytes(t->ordered_y));
    bool good = places && mlp_trial_read(t->ordered_y, places) && mlp_trial_read(t->y, t->out);
    for (uint64_t i = 0; good && i < t->rows; i++) {
        uint64_t place = i * 5 % (PLACES / SAMPLES) * SAMPLES + i % SAMPLES;
        good = memcmp(places + place * outputs, t->out + i * outputs, outputs * 4) == 0;
    }
    free(places);
    return good;
}

// The gradients of the mean of squared errors.
static bool write_slopes(struct trial *t) {
    uint32_t outputs = t->desc.model.outputs;
    for (uint64_t i = 0; i < t->rows * outputs; i++) {
        float wanted = t->target[i / outputs % SAMPLES * outputs + i % outputs];
        t->halves[i] = short_of(t, 2 * (t->out[i] - wanted) * SCALE_OF_ROW / (float)outputs);
    }
    return mlp_trial_write(t->dy, t->halves);
}

static bool agrees(struct trial *t, const double *want, bool fault) {
    double bound = 4 * (t->desc.model.depth + 1.0) * (t->desc.dtype == GRT_F16 ? 0x1p-11 : 0x1p-8);
    return mlp_trial_agrees(&t->made, want, bound, t->out, fault);
}

struct question {
    struct grt_dev *dev;
    const struct grt_mlp_rows_desc *desc;
    const struct grt_mlp_rows_learner *learner;  // NULL: the two kernels
};

// Squared errors whose slopes are those of a learner's loss: outputs are known when this is asked.
static void aim(struct trial *t, const struct grt_mlp_rows_learner *learner) {
    uint32_t outputs = t->desc.model.outputs;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        double slopes[MLP_ROWS_OUTPUTS] = {0};
        const float *y = t->out + (size_t)i * outputs;
        learner->slopes(learner, i, outputs, y, t->made.values, slopes);
        for (uint32_t j = 0; j < outputs; j++) {
            t->target[i * outputs + j] = (float)((double)y[j] - slopes[j] * outputs / 2);
        }
    }
}

static bool go_learn(struct trial *t, const struct grt_mlp_rows_learner *learner) {
    struct grt_mlp_rows_desc d = t->desc;
    d.places.order = t->order->range;
    return learner->learn(learner, t->made.params.dev, &d,
                          &(struct grt_mlp_rows_samples){.count = SAMPLES,
                                                         .positions = PLACES,
                                                         .scale = (double)SCALE_OF_ROW,
                                                         .y = t->out,
                                                         .params = t->made.values});
}

static enum grt_verdict run(const void *subject, bool fault) {
    const struct question *q = subject;
    struct trial *t = calloc(1, sizeof *t);
    enum grt_verdict verdict = GRT_VERDICT_UNKNOWN;
    if (t && begin(t, q->dev, q->desc)) {
        bool right = go_forward(t) && same_outputs(t);
        if (right && q->learner) {
            aim(t, q->learner);
        }
        struct grt_mlp_reference want = {.model = t->desc.model,
                                         .loss = GRT_LOSS_MSE,
                                         .dtype = t->desc.dtype,
                                         .scale = (double)SCALE_OF_ROW * (double)t->rows,
                                         .params = t->made.values,
                                         .rows = t->rows,
                                         .period = SAMPLES,
                                         .x = t->x,
                                         .target = t->target};
        if (grt_mlp_reference(&want)) {
            right = right &&
                    (q->learner ? go_learn(t, q->learner) : write_slopes(t) && go_back(t)) &&
                    agrees(t, want.grads, fault);
            verdict = right ? GRT_VERDICT_RIGHT : GRT_VERDICT_WRONG;
        }
        free(want.grads);
    }
    if (t) {
        end(t);
    }
    free(t);
    return verdict;
}

static bool trusted(struct grt_dev *dev, const struct grt_mlp_rows_desc *d,
                    const struct grt_mlp_rows_learner *learner) {
    const struct grt_mlp_desc *m = &d->model;
    const struct question question = {dev, d, learner};
    char what[128];
    snprintf(what, sizeof what, "%s, %u and %u inputs, %u layers of %u, %s, %u outputs",
             grt_dtype_text(d->dtype), d->places.near.numbers, d->places.far.numbers, m->depth,
             m->hidden, grt_act_text(m->act), m->outputs);
    return grt_check_trusts(dev, &(struct grt_check){.op = learner ? learner->op : "mlp",
                                                     .variant = learner ? learner->variant : "rows",
                                                     .what = what,
                                                     .run = run,
                                                     .subject = &question});
}

bool mlp_rows_trusted(struct grt_dev *dev, const struct grt_mlp_rows_desc *d) {
    return trusted(dev, d, NULL);
}

bool mlp_rows_learner_trusted(struct grt_dev *dev, const struct grt_mlp_rows_desc *d,
                              const struct grt_mlp_rows_learner *learner) {
    return trusted(dev, d, learner);
}
