// SPDX-License-Identifier: Apache-2.0
#include "gpurt/loss.h"

#include "gpurt/device.h"
#include "ops/op_support.h"
#include "gpurt/optim.h"
#include "loss_parts.h"
#include "shaders/host.h"
#include "shaders/loss/lib/loss_params.k"
#include "shaders/nn/lib/nn_words.k"

#define X(name, text) _Static_assert((unsigned)GRT_LOSS_##name == LOSS_##name, text);
GRT_LOSSES(X)
#undef X

bool grt_loss_has_targets(enum grt_loss loss) {
    return loss != GRT_LOSS_NT_XENT;
}

bool loss_accept(struct grt_graph *graph, const struct grt_loss_desc *d, const char *why) {
    if (why) {
        grt_graph_reject(graph, GRT_INVALID, "loss %s of '%s': %s", grt_loss_text(d->loss),
                         d->y->label, why);
    }
    return !why;
}

// What every loss wants.
static bool check_outputs(struct grt_graph *graph, const struct grt_loss_desc *d) {
    if (!grt_op_tensor(graph, "loss", "y", d->y) ||
        (d->dy && !grt_op_tensor(graph, "loss", "dy", d->dy))) {
        return false;
    }
    uint64_t count = grt_tensor_count(d->y);
    const char *why = NULL;
    if ((unsigned)d->loss >= GRT_LOSS_COUNT) {
        why = "no such loss";
    } else if (d->y->rank != 2 || d->y->dtype != GRT_F32 ||
               count > grt_op_reach(grt_graph_dev(graph))) {
        why = "what the model gave must be [rows][outputs] of f32 that a binding reaches";
    } else if (d->dy &&
               ((grt_tensor_count(d->dy) != count && d->own.count == 0) ||
                (d->dy->dtype != GRT_F32 && d->dy->dtype != GRT_F16 && d->dy->dtype != GRT_BF16))) {
        why = "the gradient must be f32, f16 or bf16, one for each output";
    } else if (!d->parts.buf || !d->state.buf) {
        why = "no room for the parts, or no state";
    }
    return loss_accept(graph, d, why);
}

static bool check_targets(struct grt_graph *graph, const struct grt_loss_desc *d) {
    if (!grt_op_tensor(graph, "loss", "target", d->target)) {
        return false;
    }
    bool classes = d->loss == GRT_LOSS_CROSS_ENTROPY, weighted = d->sampled || d->class_weights;
    uint64_t rows = d->y->shape[0], cols = d->cols > 0 ? d->cols : d->y->shape[1];
    uint64_t words = d->word_first + (classes ? 1 : cols) + d->sampled;
    const char *why = NULL;
    if (d->first + cols > d->y->shape[1]) {
        why = "it is of more numbers than the model gives";
    } else if (d->words > 0 ? d->words < words || grt_tensor_count(d->target) != rows * d->words
                            : d->sampled || d->word_first > 0) {
        why = "targets are fewer words than the loss wants";
    } else if (d->words > 0 && d->target->dtype != GRT_U32 && d->target->dtype != GRT_F32) {
        why = "targets beside others must be words, u32 or f32";
    } else if (weighted && !d->mass.buf) {
        why = "weights want room for the parts of their sum";
    } else if (d->words == 0 && (grt_tensor_count(d->target) != rows * words ||
                                 d->target->dtype != (classes ? GRT_U32 : GRT_F32))) {
        why =
            classes ? "targets must be one u32 a row" : "targets must be f32, one for each output";
    } else if (classes && !d->dy && !d->hits.buf) {
        why = "neither gradient nor hits are wanted";
    } else if (d->class_weights && (!classes || !d->dy || d->class_weights->dtype != GRT_F32 ||
                                    grt_tensor_count(d->class_weights) != cols)) {
        why = "class weights are f32, one for each output of a cross-entropy with gradient";
    } else if (d->mix && (weighted || d->words > 1)) {
        why = "samples that are mixed have neither weights nor other targets";
    } else if (d->near.buf && !classes) {
        why = "answers that are near are those of classes";
    } else if (!(d->delta >= 0.0f)) {
        why = "delta is below 0";
    }
    return loss_accept(graph, d, why);
}

// Lanes of a row of logits: as many as fill a tree's workgroup with a few columns each; one on a
// CPU.
static uint32_t logit_lanes(const struct grt_dev *dev, uint64_t cols) {
    return grt_dev_info(dev)->caps.software
               ? 1
               : grt_op_power_above((cols + 3) / 4, grt_op_tree_wg(dev));
}

void grt_op_loss(struct grt_graph *graph, const struct grt_loss_desc *d) {
    if (!graph || !d) {
        grt_graph_reject(graph, GRT_INVALID, "loss: no desc");
        return;
    }
    if (!check_outputs(graph, d)) {
        return;
    }
    if (d->loss == GRT_LOSS_NT_XENT) {
        loss_nt_xent(graph, d);
        return;
    }
    if (!check_targets(graph, d)) {
        return;
    }
    const struct grt_dev *dev = grt_graph_dev(graph);
    uint64_t rows = d->y->shape[0], cols = d->cols > 0 ? d->cols : d->y->shape[1];
    uint32_t pitch = (uint32_t)d->y->shape[1], words = d->words;
    float scale = d->scale != 0.0f ? d->scale : 1.0f;
    uint64_t samples = d->samples ? d->samples : rows;
    bool narrow = d->dy && d->dy->dtype != GRT_F32;
    uint32_t wg = grt_op_tree_wg(dev), kind = d->dy && d->dy->dtype == GRT_BF16;
    const uint32_t groups[3] = {GRT_LOSS_PARTS, 1, 1};
    struct grt_range parts = grt_op_part(d->parts, 0, GRT_LOSS_PARTS * 4);
    struct grt_range state = grt_op_part(d->state, 0, sizeof(struct grt_learn_state));
    // A gradient that is not wanted is bound to what is not looked at.
    struct grt_range dy = d->dy ? d->dy->range : grt_op_unused(graph);
    const struct grt_range mass =
        d->mass.buf ? grt_op_part(d->mass, 0, GRT_LOSS_PARTS * 4) : grt_op_unused_at(graph, 3);
    if (d->loss == GRT_LOSS_CROSS_ENTROPY) {
        const struct cross_entropy_params params = {.rows = (uint32_t)rows,
                                                    .cols = (uint32_t)cols,
                                                    .share = (float)(1.0 / (double)samples),
                                                    .shared_out = d->label_smoothing,
                                                    .each = d->label_smoothing / (float)cols,
                                                    .heavy = d->label_smoothing / (float)cols *
                                                             d->weight_sum,
                                                    .pitch = pitch,
                                                    .first = d->first,
                                                    .words = words > 0 ? words : 1,
                                                    .at = d->word_first,
                                                    .weight_at = words > 0 ? words - 1 : 0,
                                                    .scale = scale};
        bool weighted = d->class_weights != NULL;
        const struct grt_kernel_desc kernel = {narrow ? "cross_entropy_16" : "cross_entropy_f32",
                                               {{"WG", wg},
                                                {"LANES", logit_lanes(dev, cols)},
                                                {"KIND", kind},
                                                {"GRAD", d->dy != NULL},
                                                {"HITS", d->hits.buf != NULL},
                                                {"SMOOTH", d->label_smoothing > 0.0f},
                                                {"WEIGHTED", weighted},
                                                {"MIXED", d->mix != NULL},
                                                {"NEAR", d->near.buf != NULL},
                                                {"SAMPLED", d->sampled}}};
        const struct grt_range hits =
            d->hits.buf ? grt_op_part(d->hits, 0, GRT_LOSS_PARTS * 4) : grt_op_unused_at(graph, 1);
        const struct grt_range near =
            d->near.buf ? grt_op_part(d->near, 0, GRT_LOSS_PARTS * 4) : grt_op_unused_at(graph, 2);
        const struct grt_range ranges[] = {d->y->range,
                                           d->target->range,
                                           dy,
                                           parts,
                                           state,
                                           hits,
                                           weighted ? d->class_weights->range : d->y->range,
                                           d->mix ? d->mix->range : d->y->range,
                                           near,
                                           mass};
        grt_op_launch(graph, &kernel, &params, sizeof params, ranges, 10, groups);
        return;
    }
    float delta = d->delta > 0.0f ? d->delta : 1.0f;
    float share = (float)(1.0 / ((double)samples * (double)cols));
    if (words > 0 || cols < pitch || scale != 1.0f) {
        const struct loss_rows_params part = {.rows = (uint32_t)rows,
                                              .cols = (uint32_t)cols,
                                              .share = share,
                                              .delta = delta,
                                              .pitch = pitch,
                                              .first = d->first,
                                              .words = words > 0 ? words : (uint32_t)cols,
                                              .at = d->word_first,
                                              .weight_at = words > 0 ? words - 1 : 0,
                                              .scale = scale};
        const struct grt_kernel_desc kernel = {narrow ? "loss_rows_16" : "loss_rows_f32",
                                               {{"WG", wg},
                                                {"LOSS", (uint32_t)d->loss},
                                                {"KIND", kind},
                                                {"GRAD", d->dy != NULL},
                                                {"SAMPLED", d->sampled}}};
        const struct grt_range ranges[] = {d->y->range, d->target->range, dy, parts, state, mass};
        grt_op_launch(graph, &kernel, &part, sizeof part, ranges, 6, groups);
        return;
    }
    const struct loss_params params = {
        .n = (uint32_t)(rows * cols), .share = share, .delta = delta};
    const struct grt_kernel_desc kernel = {
        narrow ? "loss_16" : "loss_f32",
        {{"WG", wg}, {"LOSS", (uint32_t)d->loss}, {"KIND", kind}, {"GRAD", d->dy != NULL}}};
    const struct grt_range ranges[] = {d->y->range, d->target->range, dy, parts, state};
    grt_op_launch(graph, &kernel, &params, sizeof params, ranges, 5, groups);
}

void grt_op_weighted_mean(struct grt_graph *graph, const struct grt_tensor *grads,
                          const struct grt_tensor *state, struct grt_range losses,
                          struct grt_range weights, uint32_t count) {
    if (!graph || !grt_op_tensor(graph, "weighted mean", "grads", grads) ||
        !grt_op_tensor(graph, "weighted mean", "state", state)) {
        return;
    }
    if (grads->dtype != GRT_F32 || !losses.buf || !weights.buf || count == 0 ||
        grt_tensor_bytes(state) < sizeof(struct grt_learn_state)) {
        grt_graph_reject(graph, GRT_INVALID,
                         "weighted mean: f32 gradients, parts and a whole state are wanted");
        return;
    }
    const uint32_t wg = grt_op_tree_wg(grt_graph_dev(graph)), most = 256;
    struct grt_pieces pieces = grt_op_pieces(graph, grt_tensor_count(grads), 4);
    while (grt_op_next(&pieces)) {
        uint64_t wanted = (pieces.count + 4 * (uint64_t)wg - 1) / (4 * (uint64_t)wg);
        const uint32_t groups[3] = {(uint32_t)(wanted < most ? wanted : most), 1, 1};
        const struct weighted_mean_params params = {
            .n = (uint32_t)pieces.count, .parts = count, .leads = pieces.first == 0};
        const struct grt_range ranges[] = {
            grt_op_piece(grads, &pieces), grt_op_part(losses, 0, (uint64_t)count * 4),
            grt_op_part(weights, 0, (uint64_t)count * 4), state->range};
        grt_op_launch(graph, grt_kernel_desc(.name = "weighted_mean", .specs = {{"WG", wg}}),
                      &params, sizeof params, ranges, 4, groups);
    }
}
