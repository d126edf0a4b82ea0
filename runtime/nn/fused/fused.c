// SPDX-License-Identifier: Apache-2.0
#include "fused.h"

#include "mlp_fused.h"
#include "mlp_rows.h"
#include "nn/layers/linear.h"
#include "nn/layers/mlp.h"
#include "nn/layers/pointwise.h"
#include "nn/layers/sequence.h"

// A sequence linear, act, linear, act, ..., linear of one width is an mlp by another name:
// parameters lie in the same order.
static bool mlp_of_sequence(const struct grt_sequence *s, struct grt_mlp_desc *mlp) {
    *mlp = (struct grt_mlp_desc){.depth = (s->count - 1) / 2};
    if (s->count < 3 || s->count % 2 == 0) {
        return false;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        enum grt_act act = GRT_ACT_NONE;
        const struct grt_linear_desc *linear = grt_linear_desc_of(s->parts[i]);
        bool is_act = grt_activation_of(s->parts[i], &act);
        if (i % 2 == 1) {
            if (!is_act || (i > 1 && act != mlp->act)) {
                return false;
            }
            mlp->act = act;
        } else if (!linear || linear->no_bias) {
            return false;
        } else if (i + 1 == s->count) {
            mlp->outputs = linear->outputs;
        } else if (i > 0 && linear->outputs != mlp->hidden) {
            return false;
        } else {
            mlp->hidden = linear->outputs;
        }
    }
    return true;
}

bool grt_mlp_of(const struct grt_module *module, const struct grt_shape *input,
                struct grt_mlp_desc *mlp) {
    const struct grt_sequence *sequence = grt_sequence_of(module);
    const struct grt_mlp_desc *own = grt_mlp_desc_of(module);
    if (own) {
        *mlp = *own;
    } else if (!sequence || !mlp_of_sequence(sequence, mlp)) {
        return false;
    }
    if (input->rank != 1 || input->dim[0] > UINT32_MAX ||
        (mlp->inputs > 0 && mlp->inputs != input->dim[0])) {
        return false;
    }
    mlp->inputs = (uint32_t)input->dim[0];
    return true;
}

// The one row of the table so far: networks that are mlps.
static bool as_mlp(const struct grt_fused_desc *d, struct grt_mlp_fused_desc *fused) {
    struct grt_mlp_desc mlp;
    if (!grt_mlp_of(d->module, &d->input, &mlp)) {
        return false;
    }
    *fused = (struct grt_mlp_fused_desc){.model = mlp,
                                         .loss = d->loss,
                                         .delta = d->delta,
                                         .dtype = d->dtype,
                                         .rows = d->rows,
                                         .ordered = d->ordered,
                                         .tiles_for = d->tiles_for,
                                         .params = d->params,
                                         .x = d->x,
                                         .target = d->target,
                                         .y = d->y,
                                         .add = d->add,
                                         .samples = d->samples,
                                         .parts = d->parts,
                                         .state = d->state,
                                         .scratch = d->scratch,
                                         .order = d->order,
                                         .order_first = d->order_first,
                                         .order_ahead = d->order_ahead,
                                         .phases = d->phases};
    return true;
}

bool grt_fused_usable(struct grt_dev *dev, const struct grt_fused_desc *desc, bool any) {
    struct grt_mlp_fused_desc mlp;
    return as_mlp(desc, &mlp) &&
           (any ? grt_mlp_fused_variant(dev, &mlp, 0) != NULL : grt_mlp_fused_usable(dev, &mlp));
}

const char *grt_fused_kernels(struct grt_dev *dev, const struct grt_fused_desc *desc) {
    struct grt_mlp_fused_desc mlp;
    return as_mlp(desc, &mlp) ? grt_mlp_fused_variant(dev, &mlp, 0) : NULL;
}

uint64_t grt_fused_scratch(struct grt_dev *dev, const struct grt_fused_desc *desc) {
    struct grt_mlp_fused_desc mlp;
    return as_mlp(desc, &mlp) ? grt_mlp_fused_scratch(dev, &mlp) : 0;
}

struct grt_range grt_fused_norms(struct grt_dev *dev, const struct grt_fused_desc *desc,
                                 uint32_t *count) {
    struct grt_mlp_fused_desc mlp;
    *count = 0;
    return as_mlp(desc, &mlp) ? grt_mlp_fused_norms(dev, &mlp, count) : (struct grt_range){0};
}

void grt_op_fused(struct grt_graph *graph, const struct grt_fused_desc *desc) {
    struct grt_mlp_fused_desc mlp;
    if (as_mlp(desc, &mlp)) {
        grt_op_mlp_fused(graph, &mlp);
    } else {
        grt_graph_reject(graph, GRT_UNSUPPORTED, "no fused op for this network");
    }
}

bool grt_fused_forward_usable(struct grt_dev *dev, const struct grt_fused_desc *desc, bool judged) {
    struct grt_mlp_fused_desc mlp;
    return as_mlp(desc, &mlp) && grt_mlp_forward_usable(dev, &mlp, judged);
}

void grt_op_fused_forward(struct grt_graph *graph, const struct grt_fused_desc *desc) {
    struct grt_mlp_fused_desc mlp;
    if (as_mlp(desc, &mlp)) {
        grt_op_mlp_forward(graph, &mlp);
    } else {
        grt_graph_reject(graph, GRT_UNSUPPORTED, "no fused op for this network");
    }
}

uint32_t grt_op_fused_judge(struct grt_graph *graph, const struct grt_fused_desc *desc) {
    struct grt_mlp_fused_desc mlp;
    if (as_mlp(desc, &mlp)) {
        return grt_op_mlp_judge(graph, &mlp);
    }
    grt_graph_reject(graph, GRT_UNSUPPORTED, "no fused op for this network");
    return 0;
}

uint32_t grt_fused_judge_blocks(struct grt_dev *dev, const struct grt_fused_desc *desc,
                                bool filled) {
    struct grt_mlp_fused_desc mlp;
    return as_mlp(desc, &mlp) ? grt_mlp_judge_blocks(dev, &mlp, filled) : 0;
}

uint64_t grt_fused_judge_numbers(uint64_t rows) {
    return grt_mlp_judge_numbers(rows);
}
