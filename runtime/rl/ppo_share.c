// SPDX-License-Identifier: Apache-2.0
// A learner among others of a team (ppo_team.c): the host is between the sums of its rows and what
// follows from those of all, and between gradients and updates.
//
//     down, up    gradients, parameter by parameter | parts of the loss
#include "gpurt/device.h"
#include "learn/share.h"
#include "ppo_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_words.k"

uint64_t grt_ppo_share_count(const struct grt_ppo *ppo) {
    return ppo->params.numbers + ppo->groups;
}

static void copy(const struct grt_ppo *ppo, struct grt_graph *graph, struct grt_buf *host,
                 bool down) {
    struct grt_tensor losses = {.dtype = GRT_F32, .rank = 1, .shape = {ppo->groups}};
    uint64_t at = 0;
    losses.range = grt_ppo_losses(ppo);
    for (uint32_t i = 0; i < ppo->params.count; i++) {
        at += grt_share_copy(graph, &ppo->params.list[i]->grad, host, at, down);
    }
    grt_share_copy(graph, &losses, host, at, down);
}

static struct grt_graph *bake(struct grt_graph *graph) {
    if (graph && !grt_graph_bake(graph)) {
        grt_graph_destroy(&graph);
    }
    return graph;
}

struct grt_graph *grt_ppo_make_batch(struct grt_ppo *ppo, const struct ppo_epoch *epoch,
                                     uint32_t batch) {
    struct grt_graph *graph = grt_graph_create(ppo->dev, "gradients");
    if (graph) {
        grt_graph_phase(graph, "update");
        grt_ppo_record_gradients(ppo, graph, epoch, batch);
        copy(ppo, graph, ppo->down, true);
        grt_ppo_say(ppo, graph, ppo->stats);
    }
    return bake(graph);
}

bool grt_ppo_share_make(struct grt_ppo *ppo) {
    if (ppo->desc.parts == 0) {
        return true;
    }
    uint64_t bytes = grt_ppo_share_count(ppo) * 4;
    ppo->down = grt_buf_create(
        ppo->dev, grt_buf_desc(.size = bytes, .kind = GRT_BUF_READBACK, .label = "gradients"));
    ppo->up = grt_buf_create(
        ppo->dev, grt_buf_desc(.size = bytes, .kind = GRT_BUF_UPLOAD, .label = "gradients"));
    struct grt_graph *settle = grt_graph_create(ppo->dev, "settle"),
                     *apply = grt_graph_create(ppo->dev, "update");
    if (settle) {
        grt_ppo_record_settle(ppo, settle, ppo->desc.parts, ppo->desc.parts);
    }
    if (apply && ppo->up) {
        copy(ppo, apply, ppo->up, false);
        grt_ppo_record_update(ppo, apply);
        grt_ppo_say(ppo, apply, ppo->state);
    }
    ppo->settle = bake(settle);
    ppo->apply = bake(apply);
    return ppo->down && ppo->up && ppo->settle && ppo->apply;
}

void grt_ppo_share_end(struct grt_ppo *ppo) {
    grt_graph_destroy(&ppo->settle);
    grt_graph_destroy(&ppo->apply);
    grt_buf_destroy(&ppo->down);
    grt_buf_destroy(&ppo->up);
}
