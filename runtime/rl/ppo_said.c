// SPDX-License-Identifier: Apache-2.0
// What the host reads of an iteration. Graphs copy it to host memory when they have made it, so
// that the host waits for the graph alone: each read of a device buffer is a submit and a wait of
// its own.
#include "gpurt/buffer.h"
#include "gpurt/graph.h"
#include "ppo_parts.h"

#define SAID 4

// Where a tensor's numbers are; behind the last without one.
static uint64_t place(const struct grt_ppo *ppo, const struct grt_tensor *tensor) {
    const struct grt_tensor *const all[SAID] = {ppo->norms, ppo->learning.totals, ppo->stats,
                                                ppo->state};
    uint64_t at = 0;
    for (uint32_t i = 0; i < SAID && all[i] != tensor; i++) {
        at += grt_tensor_bytes(all[i]);
    }
    return at;
}

bool grt_ppo_said_make(struct grt_ppo *ppo) {
    ppo->said = grt_buf_create(
        ppo->dev, grt_buf_desc(.size = place(ppo, NULL), .kind = GRT_BUF_READBACK, .label = "ppo"));
    return ppo->said != NULL;
}

void grt_ppo_say(const struct grt_ppo *ppo, struct grt_graph *graph,
                 const struct grt_tensor *tensor) {
    grt_graph_copy(graph,
                   (struct grt_range){ppo->said, place(ppo, tensor), grt_tensor_bytes(tensor)},
                   tensor->range);
}

bool grt_ppo_hear(const struct grt_ppo *ppo, const struct grt_tensor *tensor, void *data) {
    return grt_buf_read(ppo->said, place(ppo, tensor), data, grt_tensor_bytes(tensor));
}
