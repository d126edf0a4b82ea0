// SPDX-License-Identifier: Apache-2.0
#include "peers.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpurt/gpurt.h"

void peer_describe(struct peer *peer, const char *device) {
    char space[32] = "";
    *peer = (struct peer){.pid = (int32_t)getpid()};
    if (gethostname(peer->host, sizeof peer->host - 1) != 0) {
        snprintf(peer->host, sizeof peer->host, "?");
    }
    // Two containers of one host may have the same name and other numbers.
    ssize_t length = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    space[length > 0 ? length : 0] = '\0';
    snprintf(peer->machine, sizeof peer->machine, "%.60s %s", peer->host, space);
    snprintf(peer->device, sizeof peer->device, "%.95s", device ? device : "");
    snprintf(peer->version, sizeof peer->version, "%s", grt_version());
}

enum peer_state peer_look(int32_t pid) {
    char path[32], text[512];
    if (kill(pid, 0) != 0 && errno == ESRCH) {
        return PEER_GONE;
    }
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file) {
        return PEER_RUNS;  // no such folder here: kill() has found it
    }
    size_t count = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[count] = '\0';
    // "4711 (name) S ...": a name may hold anything, also brackets.
    const char *end = strrchr(text, ')');
    char state = '?';
    if (end && end[1] == ' ') {
        state = end[2];
    }
    return state == 'Z' || state == 'X'   ? PEER_GONE
           : state == 'T' || state == 't' ? PEER_STOPPED
                                          : PEER_RUNS;
}
