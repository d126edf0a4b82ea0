// SPDX-License-Identifier: Apache-2.0
// Whether a variant of the fused MLP computes right on a device (see ops/verdict.h): asked for each
// model and tile, because the kernels are made for these. It takes a few workgroups' rows, which
// are a few samples over and over, forward and back; gradients and loss are compared with those in
// double precision on the host. And a bias that is NaN must make the loss so: kernels take a number
// for negative by its sign bit, which a driver's NaN might have, and a compiler makes a maximum of
// a comparison, which loses it (NVIDIA's did with mlp_pass_coop, 580.159.04).
//
// None is taken for right but the C reading: behind the last row of the table is layer by layer.
// The kernels are those that training will use, so nothing is compiled for it: a start with 12
// layers of 128 took 830 ms where it took 750 to 820 without it (H200, Vulkan, 2026-11), and one
// with 3 of 16 no longer than without on PoCL and lavapipe.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/op_support.h"
#include "ops/verdict.h"
#include "mlp_case.h"
#include "mlp_reference.h"
#include "mlp_trial.h"
#include "gpurt/optim.h"

#define PERIOD 13u         // samples
#define MOST_ROWS 600u     // more than two workgroups of any tile have
#define LEAST_ROWS 101u    // several blocks of 16, and some left
#define GROUPS 2u          // of which one takes two blocks of rows
#define ORDER_FIRST 3u     // numbers of the order that are not asked for
#define ORDER_AHEAD 5u     // and that come next
#define LOSS_SCALE 512.0f  // such that halves of gradients are neither small nor large

struct trial {
    struct mlp_trial made;
    struct grt_mlp_fused_desc desc;
    struct grt_tensor *scratch, *parts, *state, *order;
    float *numbers;  // of the largest tensor
    float x[PERIOD * 128];
    union {
        float numbers[PERIOD * 16];
        uint32_t classes[PERIOD];
    } target;
    double y[PERIOD * 16];  // wanted
};

struct question {
    const struct mlp_case *c;
    const struct mlp_variant *variant;
};

// Rows of a workgroup, with the tiles of the case.
static uint32_t block_of(const struct question *q) {
    struct mlp_case one = *q->c;
    struct mlp_plan plan;
    one.rows = 1;
    q->variant->plan(&one, &plan);
    return plan.padded;
}

// ---- making it ----

static bool declare(struct trial *t, const struct question *q) {
    const struct mlp_case *c = q->c;
    const struct grt_mlp_desc *m = &c->desc->model;
    uint64_t rows = 2 * (uint64_t)block_of(q) + 5;
    rows = rows < LEAST_ROWS ? LEAST_ROWS : rows > MOST_ROWS ? MOST_ROWS : rows;
    bool classes = c->desc->loss == GRT_LOSS_CROSS_ENTROPY;
    if (!mlp_trial_begin(&t->made, c->dev, m, c->desc->dtype)) {
        return false;
    }
    struct mlp_trial *made = &t->made;
    t->desc = (struct grt_mlp_fused_desc){
        .model = *m,
        .loss = c->desc->loss,
        .delta = c->desc->delta,
        .dtype = c->desc->dtype,
        .rows = rows,
        .tiles_for = c->tiled,
        .groups = GROUPS,
        .variant = q->variant->name,
        .ordered = c->ordered,
        .params = &made->params,
        .x = mlp_trial_tensor(made, "x", GRT_F32, rows, m->inputs),
        .target = classes ? mlp_trial_tensor(made, "target", GRT_U32, rows, 0)
                          : mlp_trial_tensor(made, "target", GRT_F32, rows, m->outputs),
        .y = mlp_trial_tensor(made, "y", GRT_F32, rows, m->outputs),
    };
    uint64_t parts = c->judged ? grt_mlp_judge_numbers(rows) : GRT_LOSS_PARTS;
    t->parts = mlp_trial_tensor(made, "parts", GRT_F32, parts, 0);
    t->order = mlp_trial_tensor(made, "order", GRT_U32, ORDER_FIRST + rows + ORDER_AHEAD, 0);
    t->state = mlp_trial_tensor(made, "state", GRT_U32, GRT_LEARN_STATE_WORDS, 0);
    // Forward alone there is none, and a variant may serve for nothing else.
    uint64_t bytes = c->alone ? 0 : grt_mlp_fused_scratch(c->dev, &t->desc);
    t->scratch = bytes > 0 ? mlp_trial_tensor(made, "scratch", GRT_F32, (bytes + 3) / 4, 0) : NULL;
    return t->desc.x && t->desc.target && t->desc.y && t->parts && t->state && t->order &&
           (t->scratch || c->alone);
}

static void make_samples(struct trial *t) {
    const struct grt_mlp_desc *m = &t->desc.model;
    uint64_t seed = 5;
    for (uint32_t i = 0; i < PERIOD * m->inputs; i++) {
        t->x[i] = mlp_trial_next(&seed);
    }
    for (uint32_t i = 0; i < PERIOD * m->outputs; i++) {
        float v = mlp_trial_next(&seed);
        t->target.numbers[i] = t->desc.loss != GRT_LOSS_BCE ? v : v > 0.0f ? 1.0f : 0.0f;
    }
    for (uint32_t i = 0; t->desc.loss == GRT_LOSS_CROSS_ENTROPY && i < PERIOD; i++) {
        t->target.classes[i] = i % m->outputs;
    }
}

// Row i is to be sample i % PERIOD: by an order it is found elsewhere, the last row first.
static uint64_t place_of(const struct trial *t, uint64_t row) {
    return t->desc.ordered ? t->desc.rows - 1 - row : row;
}

static bool write_order(struct trial *t) {
    uint32_t *numbers = (uint32_t *)(void *)t->numbers;
    uint64_t end = ORDER_FIRST + t->desc.rows, count = end + ORDER_AHEAD;
    for (uint64_t i = 0; i < count; i++) {
        bool asked = i >= ORDER_FIRST && i < end;
        numbers[i] = asked ? (uint32_t)place_of(t, i - ORDER_FIRST) : 0;
    }
    return grt_buf_write(t->order->range.buf, t->order->range.offset, numbers, count * 4);
}

// The samples over and over.
static bool write_rows(struct trial *t, const struct grt_tensor *to, const void *samples) {
    uint64_t bytes = grt_tensor_bytes(to) / t->desc.rows;
    unsigned char *all = (unsigned char *)t->numbers;
    for (uint64_t i = 0; i < t->desc.rows; i++) {
        memcpy(all + place_of(t, i) * bytes, (const unsigned char *)samples + i % PERIOD * bytes,
               bytes);
    }
    return grt_buf_write(to->range.buf, to->range.offset, all, t->desc.rows * bytes);
}

static bool begin(struct trial *t, const struct question *q) {
    if (!declare(t, q)) {
        return false;
    }
    uint64_t wide = t->desc.model.hidden > 128 ? t->desc.model.hidden : 128;
    uint64_t most = (t->desc.rows > wide ? t->desc.rows : wide) * wide;
    t->numbers = malloc(most * sizeof *t->numbers);
    if (!t->numbers || !mlp_trial_alloc(&t->made)) {
        return false;
    }
    t->desc.scratch = t->scratch ? t->scratch->range : (struct grt_range){0};
    t->desc.parts = t->parts->range;
    t->desc.state = t->state->range;
    t->desc.order = t->order->range;
    t->desc.order_first = ORDER_FIRST;
    t->desc.order_ahead = ORDER_AHEAD;
    const struct grt_learn_state state = {.loss_scale = LOSS_SCALE};
    make_samples(t);
    return write_order(t) && write_rows(t, t->desc.x, t->x) &&
           write_rows(t, t->desc.target, &t->target) &&
           grt_buf_write(t->state->range.buf, t->state->range.offset, &state, sizeof state);
}

static void end(struct trial *t) {
    mlp_trial_end(&t->made);
    free(t->numbers);
}

// ---- looking at it ----

// Forward and back, or forward alone.
static bool compute(struct trial *t, const struct mlp_case *c) {
    struct grt_graph *graph = grt_graph_create(t->made.params.dev, "mlp check");
    bool good = graph != NULL;
    if (good) {
        grt_graph_fill(graph, t->made.params.grad->range, UINT32_MAX);
        grt_graph_fill(graph, t->parts->range, UINT32_MAX);
        grt_graph_fill(graph, t->desc.y->range, UINT32_MAX);
        if (c->judged) {
            // What the op does not fill counts nothing.
            grt_graph_fill(graph, t->parts->range, 0);
            grt_op_mlp_judge(graph, &t->desc);
        } else if (c->alone) {
            grt_op_mlp_forward(graph, &t->desc);
        } else {
            grt_op_mlp_fused(graph, &t->desc);
        }
        good = grt_graph_finish(graph);
    }
    grt_graph_destroy(&graph);
    return good;
}

static bool read_loss(struct trial *t, double *loss) {
    *loss = 0;
    bool good = mlp_trial_read(t->parts, t->numbers);
    for (uint64_t i = 0; good && i < grt_tensor_count(t->parts); i++) {
        *loss += (double)t->numbers[i];
    }
    return good;
}

// Of forward alone there are the outputs to look at: their mean square.
static bool read_square(struct trial *t, double *square) {
    uint64_t count = t->desc.rows * t->desc.model.outputs;
    *square = 0;
    bool good = mlp_trial_read(t->desc.y, t->numbers);
    for (uint64_t i = 0; good && i < count; i++) {
        *square += (double)t->numbers[i] * (double)t->numbers[i] / (double)count;
    }
    return good;
}

// What a tensor may be off by: the roundings of all layers. A unit at the edge of relu may fall to
// the other side by them, in a few of many.
static double allowed(const struct trial *t) {
    const struct grt_mlp_desc *m = &t->desc.model;
    double layers = m->depth + 1.0;
    return t->desc.dtype == GRT_F32 ? ((double)t->desc.rows + m->hidden * layers) * 0x1p-24
                                    : 4 * layers * (t->desc.dtype == GRT_F16 ? 0x1p-11 : 0x1p-8);
}

// `elements`: that the loss is a sum over; 1: it is the mean.
static bool loss_agrees(struct trial *t, const struct grt_mlp_reference *want, double elements) {
    double loss = 0;
    return read_loss(t, &loss) && fabs(loss / elements - want->mean) <= allowed(t) * want->mean;
}

static bool agrees(struct trial *t, const struct grt_mlp_reference *want, bool fault) {
    double bound = allowed(t);
    if (!loss_agrees(t, want, 1)) {
        return false;
    }
    return mlp_trial_agrees(&t->made, want->grads, bound, t->numbers, fault);
}

// `fault`: one of the outputs is taken for wrong.
static bool agrees_alone(struct trial *t, bool fault) {
    uint32_t outputs = t->desc.model.outputs;
    uint64_t count = t->desc.rows * outputs;
    double *want = malloc(count * sizeof *want);
    bool good = want && mlp_trial_read(t->desc.y, t->numbers);
    for (uint64_t i = 0; good && i < count; i++) {
        want[i] = t->y[i % (PERIOD * (uint64_t)outputs)];
    }
    if (good && fault) {
        t->numbers[count - 1] = NAN;
    }
    good = good && grt_mlp_reference_distance(t->numbers, want, count) <= allowed(t);
    free(want);
    return good;
}

// `fault`: the sum is taken for another.
static bool agrees_judged(struct trial *t, const struct grt_mlp_reference *want, bool fault) {
    bool classes = t->desc.loss == GRT_LOSS_CROSS_ENTROPY;
    double elements = (double)t->desc.rows * (classes ? 1 : t->desc.model.outputs);
    return loss_agrees(t, want, fault ? 2 * elements : elements);
}

// With either sign, as no one knows which the driver's own has.
static bool finds_nan(struct trial *t, const struct mlp_case *c) {
    static const uint32_t bits[] = {0x7fc00000u, 0xffc00000u};
    const struct grt_tensor *bias = &t->made.params.list[1]->master;
    for (uint32_t i = 0; i < 2; i++) {
        double number = 0;
        if (!grt_buf_write(bias->range.buf, bias->range.offset, &bits[i], 4) || !compute(t, c) ||
            !(c->alone && !c->judged ? read_square(t, &number) : read_loss(t, &number)) ||
            isfinite(number)) {
            return false;
        }
    }
    return true;
}

static enum grt_verdict run(const void *subject, bool fault) {
    const struct question *q = subject;
    struct trial *t = calloc(1, sizeof *t);
    enum grt_verdict verdict = GRT_VERDICT_UNKNOWN;
    if (t && begin(t, q)) {
        struct grt_mlp_reference want = {
            .model = t->desc.model,
            .loss = t->desc.loss,
            .delta = t->desc.delta > 0.0f ? (double)t->desc.delta : 1,
            .dtype = t->desc.dtype,
            .scale = (double)LOSS_SCALE,
            .params = t->made.values,
            .rows = t->desc.rows,
            .period = PERIOD,
            .x = t->x,
            .target = &t->target,
            .y = t->y,
        };
        if (grt_mlp_reference(&want)) {
            bool right = compute(t, q->c) &&
                         (q->c->judged  ? agrees_judged(t, &want, fault)
                          : q->c->alone ? agrees_alone(t, fault)
                                        : agrees(t, &want, fault)) &&
                         finds_nan(t, q->c);
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

bool mlp_trusted(const struct mlp_case *c, const struct mlp_variant *variant) {
    if (grt_dev_info(c->dev)->backend == GRT_BACKEND_REF) {
        return true;
    }
    const struct grt_mlp_desc *m = &c->desc->model;
    const struct question question = {c, variant};
    char what[160];
    snprintf(what, sizeof what,
             "%s, %u inputs, %u layers of %u, %s, %u outputs, %s, tiles of %u%s%s%s",
             grt_dtype_text(c->desc->dtype), m->inputs, m->depth, m->hidden, grt_act_text(m->act),
             m->outputs, grt_loss_text(c->desc->loss), block_of(&question),
             c->judged  ? ", losses alone"
             : c->alone ? ", forward alone"
                        : "",
             c->ordered ? ", rows by an order" : "", variant->kernels ? variant->kernels(c) : "");
    return grt_check_trusts(
        c->dev,
        &(struct grt_check){
            .op = "mlp", .variant = variant->name, .what = what, .run = run, .subject = &question});
}
