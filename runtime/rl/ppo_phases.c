// SPDX-License-Identifier: Apache-2.0
// Where the time of an iteration goes. The phases of its graphs say it, but for what the
// environment takes of the steps: marks between every two kernels would slow each iteration. So its
// steps are run once more, alone.
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "ppo_parts.h"

const char *grt_ppo_phase_text(enum grt_ppo_phase phase) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_PPO_PHASES(X)
#undef X
    };
    return (unsigned)phase < GRT_PPO_PHASE_COUNT ? texts[phase] : "";
}

static struct grt_graph *make_alone(struct grt_ppo *ppo) {
    struct grt_graph *graph = grt_graph_create(ppo->dev, "environment");
    if (!graph) {
        return NULL;
    }
    grt_graph_phase(graph, "back");
    grt_ppo_undo_back(ppo, graph, grt_ppo_undo_worlds(ppo));
    grt_graph_phase(graph, "environment");
    for (uint64_t t = 0; t < ppo->desc.horizon; t++) {
        grt_ppo_record_world(ppo, &ppo->learning, graph, t);
    }
    grt_graph_phase(graph, "end");
    grt_op_worlds_totals(graph, ppo->desc.worlds, ppo->learning.totals->range);
    if (!grt_graph_bake(graph)) {
        grt_graph_destroy(&graph);
    }
    return graph;
}

// The state of all copies; allocated, NULL when that or a call failed.
static char *read_worlds(const struct grt_ppo *ppo, uint64_t *bytes) {
    *bytes = 0;
    for (uint32_t i = grt_ppo_undo_worlds(ppo); i < ppo->undo_count; i++) {
        *bytes += grt_tensor_bytes(ppo->undos[i].now);
    }
    char *state = malloc(*bytes ? *bytes : 1);
    uint64_t at = 0;
    bool ok = state || grt_fail(GRT_NO_MEMORY, "no host memory for the state of worlds");
    for (uint32_t i = grt_ppo_undo_worlds(ppo); ok && i < ppo->undo_count; i++) {
        const struct grt_tensor *t = ppo->undos[i].now;
        ok = grt_buf_read(t->range.buf, t->range.offset, state + at, grt_tensor_bytes(t));
        at += grt_tensor_bytes(t);
    }
    if (!ok) {
        free(state);
        state = NULL;
    }
    return state;
}

bool grt_ppo_environment(struct grt_ppo *ppo, double *seconds) {
    if (!ppo || !seconds || !ppo->fresh) {
        return grt_fail(GRT_INVALID, "grt_ppo_environment: no %s",
                        !ppo       ? "PPO"
                        : !seconds ? "place for the seconds"
                                   : "iteration was done since the learner was made or loaded");
    }
    double aside = 0;
    uint64_t bytes = 0;
    *seconds = 0;
    if (!ppo->alone) {
        ppo->alone = make_alone(ppo);
    }
    char *there = ppo->alone ? read_worlds(ppo, &bytes) : NULL;
    bool ok = there && grt_graph_run(ppo->alone);
    char *again = ok ? read_worlds(ppo, &bytes) : NULL;
    ok = again != NULL;
    if (ok && memcmp(there, again, bytes) != 0) {
        ok = grt_fail(GRT_INVALID,
                      "ppo: the environment alone does not end where the iteration did");
    }
    free(there);
    free(again);
    if (ok) {
        grt_ppo_add_times(ppo->alone, (double *const[]){&aside, seconds}, 2);
    }
    return ok;
}
