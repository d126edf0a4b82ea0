// SPDX-License-Identifier: Apache-2.0
#include "peers.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpurt/gpurt.h"

// Of this boot of the machine; "": the system has none.
static void read_boot(char id[40]) {
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    id[0] = '\0';
    if (file) {
        if (fscanf(file, "%39s", id) != 1) {
            id[0] = '\0';
        }
        fclose(file);
    }
}

void peer_greet(struct peer_hello *hello) {
    *hello = (struct peer_hello){.magic = "gpurt", .protocol = PEER_PROTOCOL};
    snprintf(hello->version, sizeof hello->version, "%s", grt_version());
    if (gethostname(hello->host, sizeof hello->host - 1) != 0) {
        snprintf(hello->host, sizeof hello->host, "?");
    }
}

void peer_describe(struct peer *peer, const char *device) {
    char space[32] = "", boot[40];
    *peer = (struct peer){.pid = (int32_t)getpid()};
    if (gethostname(peer->host, sizeof peer->host - 1) != 0) {
        snprintf(peer->host, sizeof peer->host, "?");
    }
    // Two hosts, and two containers of one, may have the same name and other processes.
    ssize_t length = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    space[length > 0 ? length : 0] = '\0';
    read_boot(boot);
    snprintf(peer->machine, sizeof peer->machine, "%.60s %s %s", peer->host, space, boot);
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
