// SPDX-License-Identifier: Apache-2.0
// An iteration that is given up is taken back: whatever it changes, and a later one depends on, is
// copied at its start.
#include "base/log.h"
#include "gpurt/device.h"
#include "ppo_parts.h"

static bool declare(struct grt_ppo *ppo, const struct grt_tensor *now) {
    if (!now) {
        return true;
    }
    if (ppo->undo_count == PPO_UNDOS) {
        return grt_fail(GRT_NO_MEMORY, "ppo: more than %d tensors to take back", PPO_UNDOS);
    }
    struct grt_tensor_desc desc = {.label = now->label, .group = "before", .dtype = now->dtype};
    for (uint32_t i = 0; i < now->rank; i++) {
        desc.shape[i] = now->shape[i];
    }
    struct grt_tensor *before = grt_plan_tensor(ppo->plan, &desc);
    ppo->undos[ppo->undo_count++] = (struct ppo_undo){now, before};
    return before != NULL;
}

bool grt_ppo_undo_declare(struct grt_ppo *ppo) {
    const struct grt_tensor *t;
    bool ok = declare(ppo, ppo->params.master) && declare(ppo, ppo->params.buffer) &&
              declare(ppo, ppo->kept) && declare(ppo, ppo->average) && declare(ppo, ppo->state) &&
              declare(ppo, ppo->norm) && declare(ppo, ppo->counts) &&
              declare(ppo, ppo->learning.control);
    for (uint32_t i = 0; ok && (t = grt_plan_at(ppo->plan, "worlds", i)); i++) {
        ok = declare(ppo, t);
    }
    return ok;
}

void grt_ppo_undo_record(const struct grt_ppo *ppo, struct grt_graph *graph) {
    for (uint32_t i = 0; i < ppo->undo_count; i++) {
        grt_graph_copy(graph, ppo->undos[i].before->range, ppo->undos[i].now->range);
    }
}

void grt_ppo_undo_back(const struct grt_ppo *ppo, struct grt_graph *graph, uint32_t first) {
    for (uint32_t i = first; i < ppo->undo_count; i++) {
        grt_graph_copy(graph, ppo->undos[i].now->range, ppo->undos[i].before->range);
    }
}

uint32_t grt_ppo_undo_worlds(const struct grt_ppo *ppo) {
    const struct grt_tensor *first = grt_plan_at(ppo->plan, "worlds", 0);
    uint32_t i = 0;
    while (i < ppo->undo_count && ppo->undos[i].now != first) {
        i++;
    }
    return i;
}

bool grt_ppo_undo(struct grt_ppo *ppo) {
    struct grt_graph *graph = grt_graph_create(ppo->dev, "undo");
    if (graph) {
        grt_ppo_undo_back(ppo, graph, 0);
    }
    ppo->fresh = false;
    bool ok = graph && grt_graph_finish(graph);
    grt_graph_destroy(&graph);
    return ok && grt_params_sync(&ppo->params);
}
