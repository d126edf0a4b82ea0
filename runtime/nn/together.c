// SPDX-License-Identifier: Apache-2.0
// Exchanges within a step: what every rank has goes to all of them.
//
//     device   own -> |                              | -> all
//     host            | down, gather over ranks, up  |
//
// The one turn of the host that there is: what is to become of the numbers, a sum in the order of
// ranks for example, the device computes, as it does everything else.
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gpurt/module.h"

void grt_net_exchanges(struct grt_net *net, uint64_t bytes) {
    net->exchanged = bytes > net->exchanged ? bytes : net->exchanged;
}

bool grt_net_meet(struct grt_net *net) {
    uint64_t all = net->exchanged * net->together.ranks;
    if (all == 0 || net->together.ranks <= 1) {
        return true;
    }
    net->down = grt_buf_create(
        net->dev, grt_buf_desc(.size = net->exchanged, .kind = GRT_BUF_READBACK, .label = "own"));
    net->up = net->down ? grt_buf_create(net->dev, grt_buf_desc(.size = all, .kind = GRT_BUF_UPLOAD,
                                                                .label = "of all ranks"))
                        : NULL;
    net->all = calloc(1, all);
    return net->up && (net->all || grt_fail(GRT_NO_MEMORY, "no host memory for an exchange"));
}

static bool turn(void *context, uint64_t each) {
    struct grt_net *net = context;
    const struct grt_together *t = &net->together;
    memcpy((char *)net->all + t->rank * each, grt_buf_host(net->down), each);
    if (!t->gather(t->context, net->all, each)) {
        return false;
    }
    memcpy(grt_buf_host(net->up), net->all, t->ranks * each);
    return true;
}

void grt_net_gather(struct grt_net *net, struct grt_graph *graph, struct grt_range own,
                    struct grt_range all) {
    uint64_t each = own.size, ranks = net->together.ranks;
    if (ranks <= 1) {
        if (own.buf != all.buf || own.offset != all.offset) {
            grt_graph_copy(graph, all, own);
        }
        return;
    }
    if (!net->up || each > net->exchanged || all.size != ranks * each) {
        grt_graph_reject(graph, GRT_INVALID, "an exchange that nobody declared");
        return;
    }
    grt_graph_copy(graph, (struct grt_range){net->down, 0, each}, own);
    grt_graph_host(graph, turn, net, each);
    grt_graph_copy(graph, all, (struct grt_range){net->up, 0, all.size});
}
