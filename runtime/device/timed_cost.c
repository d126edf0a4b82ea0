// SPDX-License-Identifier: Apache-2.0
// What the time of a command costs: a list of fills that wait for each other is run with times and
// without. The fastest of several runs of each count, in turn, so that a loaded machine does not
// make a timestamp dear that is not.
#include "base/clock.h"
#include "graph_parts.h"

#define FILLS 64
#define TRIES 7

static bool run(struct grt_dev *dev, void *list, double *least) {
    double begun = grt_seconds();
    bool good = dev->fns->cmds_run(dev, list) && dev->fns->wait(dev);
    double seconds = grt_seconds() - begun;
    *least = seconds < *least ? seconds : *least;
    return good;
}

static bool measure(struct grt_dev *dev, struct grt_buf *buf, double least[2]) {
    struct grt_cmd fills[FILLS];
    void *lists[2] = {NULL, NULL};
    for (int i = 0; i < FILLS; i++) {
        fills[i] = (struct grt_cmd){
            .kind = GRT_CMD_FILL, .sync = i - 1, .dst = {buf, 0, buf->size}, .value = 1};
    }
    bool good = true;
    for (int timed = 0; good && timed < 2; timed++) {
        lists[timed] = dev->fns->cmds_create(dev, fills, FILLS, 0, GRT_LANE_MAIN, timed == 1);
        good = lists[timed] != NULL;
    }
    for (int i = 0; good && i < TRIES; i++) {
        good = run(dev, lists[0], &least[0]) && run(dev, lists[1], &least[1]);
    }
    for (int timed = 0; timed < 2; timed++) {
        if (lists[timed]) {
            dev->fns->cmds_destroy(dev, lists[timed]);
        }
    }
    return good;
}

bool grt_timed_cost(struct grt_dev *dev, double *seconds) {
    double least[2] = {1e9, 1e9};
    *seconds = 0.0;
    if (!dev->fns->cmds_stamps) {
        return true;
    }
    struct grt_buf *buf =
        grt_buf_create(dev, grt_buf_desc(.size = 64, .label = "cost of a timestamp"));
    bool good = buf && measure(dev, buf, least);
    grt_buf_destroy(&buf);
    *seconds = good && least[1] > least[0] ? (least[1] - least[0]) / FILLS : 0.0;
    return good;
}
