// SPDX-License-Identifier: Apache-2.0
// Asks a backend for its devices in a child process: a driver that crashes, hangs or ends the
// process while it is loaded (all seen) then costs one line of the list.
#include "probe.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "internal.h"

#define PROBE_SECONDS 10.0

struct probe {
    enum grt_backend_id id;
    struct grt_dev_info *infos;
    uint32_t capacity;
};

struct answer {
    int32_t count;
    char problem[256];
};

static double time_limit(void) {
    const char *text = getenv("GPURT_PROBE_SECONDS");
    double seconds = text ? strtod(text, NULL) : 0.0;
    return seconds > 0.0 ? seconds : PROBE_SECONDS;
}

static int list_devices(struct grt_child *parent, void *context) {
    const struct probe *probe = context;
    struct answer answer = {0};
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
    double limit = time_limit();
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

int32_t grt_probe(enum grt_backend_id id, struct grt_dev_info *infos, uint32_t capacity,
                  char *problem) {
    struct probe probe = {id, infos, capacity};
    struct grt_child child = GRT_NO_CHILD;
    struct answer answer = {.count = -1};
    char how[160];
    problem[0] = '\0';
    if (!grt_child_start(&child, list_devices, &probe, problem)) {
        return -1;
    }
    enum grt_child_news news = hear(&child, &probe, &answer);
    // A child that answered may still hang in its exit; it is not waited for longer than it takes.
    grt_child_end(&child, how);
    if (news == GRT_CHILD_ANSWERED) {
        answer.problem[sizeof answer.problem - 1] = '\0';
        memcpy(problem, answer.problem, sizeof answer.problem);
        return answer.count;
    }
    if (news == GRT_CHILD_LATE) {
        snprintf(problem, 256, "the driver did not answer within %g s while listing its devices",
                 time_limit());
    } else {
        snprintf(problem, 256, "the driver %s while listing its devices", how);
    }
    return -1;
}

static void open_library(void *context) {
    dlopen(context, RTLD_LAZY | RTLD_LOCAL);
}

bool grt_probe_library(const char *library, char *problem) {
    char how[160], name[4200];
    snprintf(name, sizeof name, "%s", library);
    if (grt_child_survives(open_library, name, time_limit(), how)) {
        return true;
    }
    snprintf(problem, 256, "the library %.80s %.100s when it was opened; it is left out", library,
             how);
    return false;
}
