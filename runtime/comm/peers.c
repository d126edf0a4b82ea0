// SPDX-License-Identifier: Apache-2.0
#include "peers.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

// What a process does and when it began, in ticks since the boot. False: there is no such file.
static bool read_stat(int32_t pid, char *state, uint64_t *began) {
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file) {
        return false;
    }
    size_t count = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[count] = '\0';
    // "4711 (name) S ...": a name may hold anything, also brackets.
    const char *at = strrchr(text, ')');
    if (at && at[1] == ' ') {
        *state = at[2];
    }
    // The state is the third word, the beginning the 22nd.
    for (int word = 2; at && word < 22; word++) {
        at = strchr(at + 1, ' ');
    }
    *began = at ? strtoull(at + 1, NULL, 10) : 0;
    return true;
}

void peer_greet(struct peer_hello *hello) {
    *hello = (struct peer_hello){.magic = "gpurt", .protocol = PEER_PROTOCOL};
    snprintf(hello->version, sizeof hello->version, "%s", grt_version());
    if (gethostname(hello->host, sizeof hello->host - 1) != 0) {
        snprintf(hello->host, sizeof hello->host, "?");
    }
}

void peer_describe(struct peer *peer, const char *device) {
    char space[32] = "", boot[40], state;
    *peer = (struct peer){.pid = (int32_t)getpid()};
    (void)read_stat(peer->pid, &state, &peer->began);
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

enum peer_state peer_look(const struct peer *peer) {
    if (kill(peer->pid, 0) != 0 && errno == ESRCH) {
        return PEER_GONE;
    }
    char state = '?';
    uint64_t began = 0;
    // Without such a folder kill() alone has found it.
    if (!read_stat(peer->pid, &state, &began)) {
        return PEER_RUNS;
    }
    bool another = peer->began != 0 && began != 0 && began != peer->began;
    return another || state == 'Z' || state == 'X' ? PEER_GONE
           : state == 'T' || state == 't'          ? PEER_STOPPED
                                                   : PEER_RUNS;
}

void peer_count_stopped(enum peer_state state, uint32_t *looks) {
    if (*looks != PEER_ENDED) {
        *looks = state == PEER_STOPPED ? *looks + 1 : 0;
    }
}

bool peer_end_stopped(const struct peer *peer) {
    return peer_look(peer) == PEER_STOPPED && kill(peer->pid, SIGKILL) == 0;
}
