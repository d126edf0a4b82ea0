// SPDX-License-Identifier: Apache-2.0
// See optim_kit.h.
#include "optim_kit.h"

#include <stdlib.h>
#include <string.h>

#include "gpurt/loss.h"

static struct grt_tensor *tensor(struct rig *r, const char *label, enum grt_dtype dtype,
                                 uint64_t count) {
    struct grt_tensor *t =
        grt_plan_tensor(r->plan, grt_tensor_desc(.label = label, .dtype = dtype, .shape = {count}));
    assert_non_null(t);
    return t;
}

void rig_write_all(const struct grt_tensor *t, const void *data) {
    assert_true(grt_buf_write(t->range.buf, t->range.offset, data, grt_tensor_bytes(t)));
}

void rig_read_all(const struct grt_tensor *t, void *data) {
    assert_true(grt_buf_read(t->range.buf, t->range.offset, data, grt_tensor_bytes(t)));
}

void rig_begin(struct rig *r, const struct grt_optim_desc *optim, enum grt_dtype type) {
    memset(r, 0, sizeof *r);
    r->optim = *optim;
    r->plan = grt_plan_create(test.dev);
    assert_non_null(r->plan);
    grt_params_init(&r->params, test.dev, type);
    const uint64_t a[GRT_MAX_RANK] = {COUNT_A}, b[GRT_MAX_RANK] = {COUNT_B / 7, 7};
    assert_non_null(grt_params_add(&r->params, "", "a", a, GRT_INIT_UNIFORM, 1.0f));
    assert_non_null(grt_params_add(&r->params, "", "b", b, GRT_INIT_UNIFORM, 0.5f));
    grt_params_declare(&r->params, r->plan, true);
    r->kept = tensor(r, "kept", GRT_F32, 2 * r->params.elements);
    r->state = tensor(r, "state", GRT_U32, GRT_LEARN_STATE_WORDS);
    r->history = tensor(r, "history", GRT_F32, 8 * GRT_HISTORY);
    r->norm_parts = tensor(r, "norm parts", GRT_F32, GRT_NORM_PARTS);
    r->loss_parts = tensor(r, "loss parts", GRT_F32, GRT_LOSS_PARTS);
    uint64_t words = grt_optim_rate_words(optim, &r->params);
    r->rates = words > 0 ? tensor(r, "rates", GRT_U32, words) : NULL;
    r->average = optim->ema > 0 ? tensor(r, "average", GRT_F32, r->params.elements) : NULL;
    uint64_t lengths = grt_optim_lengths(optim, &r->params);
    r->lengths = lengths > 0 ? tensor(r, "lengths", GRT_F32, lengths) : NULL;
    assert_true(grt_plan_alloc(r->plan));
    if (r->rates) {
        uint32_t *rates = test_alloc(words * sizeof *rates);
        memset(rates, 0, words * sizeof *rates);
        assert_true(grt_optim_rates(optim, &r->params, rates));
        rig_write_all(r->rates, rates);
        free(rates);
    }
    grt_params_place(&r->params);
    assert_true(grt_params_draw(&r->params, 7));
    float *zeros = test_alloc(grt_tensor_bytes(r->kept));
    memset(zeros, 0, grt_tensor_bytes(r->kept));
    rig_write_all(r->kept, zeros);
    free(zeros);
    float parts[GRT_LOSS_PARTS];
    for (int i = 0; i < GRT_LOSS_PARTS; i++) {
        parts[i] = (float)i / 64.0f;
    }
    rig_write_all(r->loss_parts, parts);
    r->graph = grt_graph_create(test.dev, "update");
    grt_op_update(r->graph,
                  grt_update_desc(.optim = &r->optim, .params = &r->params, .kept = r->kept,
                                  .state = r->state, .history = r->history,
                                  .loss_parts = r->loss_parts->range,
                                  .loss_part_count = GRT_LOSS_PARTS, .norm_parts = r->norm_parts,
                                  .cursor_step = 5, .scaling = type == GRT_F16, .rates = r->rates,
                                  .average = r->average, .lengths = r->lengths));
    assert_true(grt_graph_bake(r->graph));
}

void rig_end(struct rig *r) {
    grt_graph_destroy(&r->graph);
    grt_plan_destroy(&r->plan);
    grt_params_finish(&r->params);
}

struct grt_learn_state rig_state(struct rig *r) {
    struct grt_learn_state s;
    rig_read_all(r->state, &s);
    return s;
}

void rig_set(struct rig *r, float scale) {
    const struct grt_learn_state s = {.loss_scale = scale, .lr_factor = 1.0f};
    rig_write_all(r->state, &s);
}

void rig_gather(struct rig *r, const struct grt_tensor *whole, uint64_t first, float *v) {
    struct grt_tensor a = grt_params_view(r->params.list[0], whole, first);
    struct grt_tensor b = grt_params_view(r->params.list[1], whole, first);
    rig_read_all(&a, v);
    rig_read_all(&b, v + COUNT_A);
}

void rig_set_grads(struct rig *r, const float *g) {
    rig_write_all(&r->params.list[0]->grad, g);
    rig_write_all(&r->params.list[1]->grad, g + COUNT_A);
}

void rig_step(struct rig *r) {
    assert_true(grt_graph_run(r->graph) && grt_dev_wait(test.dev));
}

struct grt_optim_desc rig_desc(enum grt_optim kind, double lr) {
    struct grt_optim_desc d = grt_optim_defaults(kind);
    d.lr = lr;
    return d;
}
