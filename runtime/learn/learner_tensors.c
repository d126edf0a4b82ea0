// SPDX-License-Identifier: Apache-2.0
// A learner from outside: its desc, its tensors under their names, its state and history.
#include "gpurt/device.h"
#include "gpurt/ops.h"
#include "base/log.h"
#include "learner_parts.h"
#include "nn/fused/fused.h"

const struct grt_learner_desc *grt_learner_desc_of(const struct grt_learner *l) {
    return l ? &l->desc : NULL;
}

const char *grt_learner_variant(const struct grt_learner *l) {
    return l && l->fused ? "fused" : "layers";
}

const char *grt_learner_fused_kernels(const struct grt_learner *l) {
    if (!l || !l->fused) {
        return NULL;
    }
    struct grt_fused_desc fused = grt_learner_fused(l, l->micro);
    return grt_fused_kernels(l->dev, &fused);
}

uint64_t grt_learner_parameters(const struct grt_learner *l) {
    return l ? l->params.numbers : 0;
}

bool grt_learner_syncs(const struct grt_learner *l) {
    return l && l->net.syncs;
}

const struct grt_net_layer *grt_learner_layer(const struct grt_learner *l, uint32_t i) {
    return l && i < l->net.layer_count ? &l->net.layers[i] : NULL;
}

uint64_t grt_learner_outputs(const struct grt_learner *l) {
    return l ? l->outputs : 0;
}

static uint64_t row_bytes(const struct grt_tensor *t) {
    return grt_tensor_bytes(t) / t->shape[0];
}

uint64_t grt_learner_x_bytes(const struct grt_learner *l) {
    return l ? row_bytes(l->x) : 0;
}

uint64_t grt_learner_y_bytes(const struct grt_learner *l) {
    return l ? row_bytes(l->target) : 0;
}

const struct grt_tensor *grt_learner_input(const struct grt_learner *l) {
    return l ? l->x : NULL;
}

const struct grt_tensor *grt_learner_target(const struct grt_learner *l) {
    return l ? l->target : NULL;
}

const struct grt_tensor *grt_learner_output(const struct grt_learner *l) {
    return l ? l->y : NULL;
}

// ---- state and history ----

static bool ready(const struct grt_learner *l, const char *call) {
    return (l && l->allocated) || grt_fail(GRT_INVALID, "%s: the learner is not allocated", call);
}

bool grt_learner_state(struct grt_learner *l, struct grt_learn_state *state) {
    return ready(l, "grt_learner_state") &&
           grt_buf_read(l->state->range.buf, l->state->range.offset, state, sizeof *state);
}

bool grt_learner_set_state(struct grt_learner *l, const struct grt_learn_state *state) {
    return ready(l, "grt_learner_set_state") &&
           grt_buf_write(l->state->range.buf, l->state->range.offset, state, sizeof *state);
}

uint32_t grt_learner_history(struct grt_learner *l, uint32_t *first, struct grt_learn_row *rows,
                             uint32_t count) {
    struct grt_learn_state state;
    struct grt_learn_row all[GRT_HISTORY];
    if (!first || !rows || !grt_learner_state(l, &state) ||
        !grt_buf_read(l->history->range.buf, l->history->range.offset, all, sizeof all)) {
        return 0;
    }
    uint32_t oldest = state.steps > GRT_HISTORY ? state.steps - GRT_HISTORY : 0;
    *first = *first < oldest ? oldest : *first;
    uint32_t given = 0;
    while (given < count && *first + given < state.steps) {
        rows[given] = all[(*first + given) % GRT_HISTORY];
        given++;
    }
    return given;
}

// ---- tensors ----

const struct grt_tensor *grt_learner_tensor(const struct grt_learner *l, enum grt_tensor_role role,
                                            uint32_t i, const char **name) {
    if (!l || !l->allocated || (unsigned)role >= GRT_TENSOR_ROLE_COUNT) {
        return NULL;
    }
    const struct grt_params *p = &l->params;
    const struct grt_tensor *tensor = NULL;
    const char *text = NULL;
    if (role == GRT_TENSOR_OPTIM) {
        uint32_t count = l->kept ? grt_optim_tensors(&l->desc.optim) * p->count : 0;
        tensor = i < count ? &l->kept_views[i] : NULL;
        text = tensor ? l->kept_names[i] : NULL;
    } else if (role == GRT_TENSOR_STATE) {
        tensor = i == 0 ? l->state : NULL;
        text = "state";
    } else if (role == GRT_TENSOR_BUFFER) {
        tensor = i < p->buffer_count ? &p->buffers[i]->master : NULL;
        text = tensor ? p->buffers[i]->name : NULL;
    } else if (role == GRT_TENSOR_AVERAGE) {
        tensor = l->average && i < p->count ? &l->average_views[i] : NULL;
        text = tensor ? p->list[i]->name : NULL;
    } else if (i < p->count && (role == GRT_TENSOR_PARAM || p->grad)) {
        tensor = role == GRT_TENSOR_PARAM ? &p->list[i]->master : &p->list[i]->grad;
        text = p->list[i]->name;
    }
    if (tensor && name) {
        *name = text;
    }
    return tensor;
}

// Between steps the gradients' memory is free: it holds the parameters meanwhile.
bool grt_learner_average(struct grt_learner *l, bool in) {
    if (!ready(l, "grt_learner_average")) {
        return false;
    }
    if (!l->average) {
        return true;
    }
    struct grt_graph **graph = &l->swap[in ? 0 : 1];
    if (!*graph) {
        *graph = grt_graph_create(l->dev, in ? "averaged parameters" : "parameters again");
        if (*graph && in) {
            grt_graph_copy(*graph, l->params.grad->range, l->params.master->range);
        }
        if (*graph) {
            grt_graph_copy(*graph, l->params.master->range,
                           in ? l->average->range : l->params.grad->range);
        }
        if (*graph && !in) {
            grt_graph_fill(*graph, l->params.grad->range, 0);
        }
        if (*graph && l->params.copy) {
            grt_op_convert(*graph, l->params.copy, l->params.master);
        }
        if (*graph && !grt_graph_bake(*graph)) {
            grt_graph_destroy(graph);
        }
    }
    return *graph && grt_graph_run(*graph);
}

bool grt_learner_sync(struct grt_learner *l) {
    return ready(l, "grt_learner_sync") && grt_params_sync(&l->params);
}
