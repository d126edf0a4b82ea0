// SPDX-License-Identifier: Apache-2.0
// Asks a backend for its devices in a child process: a driver that crashes, hangs or ends the
// process while it is loaded (all seen) then costs one line of the list. Loaders load all drivers
// of an API at once; where one can be left out, each is asked alone to find which, and the others
// are kept.
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "base/library.h"
#include "internal.h"

#define MAX_DRIVERS 32
#define FAILED (-2)  // no answer

struct probe {
    enum grt_backend_id id;
    uint32_t keep;  // drivers, one bit each; 0: all
    struct grt_dev_info *infos;
    uint32_t capacity;
};

struct answer {
    int32_t count;
    char problem[256];
};

static int list_devices(struct grt_child *parent, void *context) {
    const struct probe *probe = context;
    struct answer answer = {0};
    if (probe->keep != 0 && !grt_backends[probe->id]->keep_drivers(probe->keep)) {
        return 1;
    }
    answer.count = grt_backends[probe->id]->list(probe->infos, probe->capacity, answer.problem);
    if (answer.count > (int32_t)probe->capacity) {
        answer.count = (int32_t)probe->capacity;
    }
    size_t size = answer.count > 0 ? (size_t)answer.count * sizeof *probe->infos : 0;
    bool sent = grt_child_send(parent, &answer, sizeof answer) &&
                grt_child_send(parent, probe->infos, size);
    return sent ? 0 : 1;
}

static enum grt_child_news hear(const struct grt_child *child, const struct probe *probe,
                                struct answer *answer) {
    double limit = grt_probe_seconds();
    enum grt_child_news news = grt_child_receive(child, answer, sizeof *answer, limit, NULL);
    if (news == GRT_CHILD_ANSWERED && answer->count > (int32_t)probe->capacity) {
        return GRT_CHILD_ENDED;
    }
    if (news == GRT_CHILD_ANSWERED && answer->count > 0) {
        news = grt_child_receive(child, probe->infos, (size_t)answer->count * sizeof *probe->infos,
                                 limit, NULL);
    }
    return news;
}

static int32_t ask(struct probe *probe, char *problem) {
    struct grt_child child = GRT_NO_CHILD;
    struct answer answer = {.count = -1};
    char how[160];
    problem[0] = '\0';
    if (!grt_child_start(&child, list_devices, probe, problem)) {
        return -1;
    }
    enum grt_child_news news = hear(&child, probe, &answer);
    // A child that answered may still hang in its exit; it is not waited for longer than it takes.
    grt_child_end(&child, how);
    if (news == GRT_CHILD_ANSWERED) {
        answer.problem[sizeof answer.problem - 1] = '\0';
        memcpy(problem, answer.problem, sizeof answer.problem);
        return answer.count;
    }
    if (news == GRT_CHILD_LATE) {
        snprintf(problem, 256, "the driver did not answer within %g s while listing its devices",
                 grt_probe_seconds());
    } else {
        snprintf(problem, 256, "the driver %s while listing its devices", how);
    }
    return FAILED;
}

// Asks each driver alone, then those that answered together. FAILED, with `problem` as it was, when
// that helps nothing.
static int32_t leave_out_culprits(struct probe *probe, char *problem) {
    const struct grt_backend *backend = grt_backends[probe->id];
    char file[256], why[256], culprits[256] = "";
    size_t used = 0;
    uint32_t good = 0;
    if (!backend->driver(1, file)) {
        return FAILED;  // it is the only one
    }
    for (uint32_t i = 0; i < MAX_DRIVERS && backend->driver(i, file); i++) {
        probe->keep = (uint32_t)1 << i;
        if (ask(probe, why) != FAILED) {
            good |= probe->keep;
        } else if (used < sizeof culprits) {
            used += (size_t)snprintf(culprits + used, sizeof culprits - used, "%s%.120s: %s",
                                     used ? "; " : "left out ", file, why);
        }
    }
    probe->keep = 0;
    if (good == 0 || used == 0 || !backend->keep_drivers(good)) {
        return FAILED;
    }
    int32_t count = ask(probe, why);
    if (count >= 0) {
        memcpy(problem, culprits, sizeof culprits);
    }
    return count;
}

int32_t grt_probe(enum grt_backend_id id, struct grt_dev_info *infos, uint32_t capacity,
                  char *problem) {
    struct probe probe = {.id = id, .infos = infos, .capacity = capacity};
    int32_t count = ask(&probe, problem);
    if (count == FAILED && grt_backends[id]->driver) {
        count = leave_out_culprits(&probe, problem);
    }
    return count < 0 ? -1 : count;
}
