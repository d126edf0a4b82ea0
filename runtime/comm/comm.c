// SPDX-License-Identifier: Apache-2.0
// Ranks over a transport: waits that look after the other processes, votes and agreements.
#include "comm_parts.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "launch.h"
#include "team.h"

// A wait that is short, or whose bytes still move, is not slept through: MPI moves them, a few at a
// time, in the calls that ask. 46.8 MB of two ranks, best of 8 on two shared cores: 123 ms, and 200
// with naps from 0.02 s on (2026-11).
#define BUSY_SECONDS 0.02
#define BUSY_BYTES 1e8  // a second
#define NAP_NANOSECONDS 100000
// After a signal to stop the others still come to the vote, unless one of them is gone on another
// machine.
#define STOP_SECONDS 3.0
// For the first rank to save, where this one may be the only one that ends.
#define FAIL_SECONDS 1.0
// For it to save where all end, at least.
#define SAVE_SECONDS 60.0

uint32_t grt_comm_rank(const struct grt_comm *comm) {
    return comm ? comm->now.rank : 0;
}

uint32_t grt_comm_ranks(const struct grt_comm *comm) {
    return comm ? comm->now.ranks : 1;
}

const char *grt_comm_who(const struct grt_comm *comm, uint32_t rank) {
    return comm && rank < comm->now.ranks ? comm->texts[comm->now.at[rank]] : NULL;
}

void grt_comm_want(struct grt_comm *comm, uint32_t bits) {
    if (comm) {
        comm->wanted |= bits;
    }
}

uint32_t grt_comm_stop(const struct grt_comm *comm) {
    return comm ? comm->stop : 0;
}

bool comm_scratch(struct grt_comm *comm, uint64_t bytes) {
    if (bytes <= comm->scratch_bytes) {
        return true;
    }
    void *more = realloc(comm->scratch, bytes);
    if (!more) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for an exchange of %llu bytes",
                        (unsigned long long)bytes);
    }
    comm->scratch = more;
    comm->scratch_bytes = bytes;
    return true;
}

// ---- waiting ----

static bool lose(struct grt_comm *comm, const char *why) {
    comm->lost = true;
    atomic_store(&comm->gone, true);
    comm->stop |= GRT_STOP_LOST;
    snprintf(comm->why, sizeof comm->why, "%s", why);
    return comm->outlive && comm->outlive->bears ? false : grt_fail(GRT_LOST, "%s", why);
}

static const struct peer *peer_of(const struct grt_comm *comm, uint32_t rank) {
    return &comm->peers[comm->now.at[rank]];
}

static bool here(const struct grt_comm *comm, uint32_t rank) {
    return strcmp(peer_of(comm, rank)->machine, peer_of(comm, comm->now.rank)->machine) == 0;
}

// False: one of them is gone, or stopped for long enough.
static bool look_at_peers(struct grt_comm *comm) {
    char why[sizeof comm->why];
    if (comm->outlive && comm->outlive->regroups) {
        comm_outlive_look(comm);
        return true;
    }
    // The first rank last: it ends when another is gone, and not before.
    for (uint32_t k = 0; k < comm->now.ranks; k++) {
        uint32_t r = (k + 1) % comm->now.ranks;
        uint32_t met = comm->now.at[r];
        enum peer_state state =
            r == comm->now.rank || !here(comm, r) ? PEER_RUNS : peer_look(&comm->peers[met]);
        peer_count_stopped(state, &comm->stopped[met]);
        if (state == PEER_GONE || comm->stopped[met] >= PEER_STOPPED_LOOKS) {
            snprintf(why, sizeof why, "rank %u (%s) %s", met, comm->texts[met],
                     state == PEER_GONE ? "has ended" : "is stopped and does not answer");
            return lose(comm, why);
        }
    }
    return true;
}

// Whether what was begun is over. False: it failed.
static bool test(struct grt_comm *comm, bool *over) {
    if (comm->window) {
        *over = comm->joins ? team_rests(comm->team) : window_all_came(comm->window, comm->lane);
        return *over || !window_left(comm->window);
    }
    return comm->transport.test(comm->transport.self, over);
}

// Of an exchange of so many bytes of each rank.
bool comm_wait(struct grt_comm *comm, uint64_t each) {
    const struct timespec nap = {.tv_nsec = NAP_NANOSECONDS};
    double begun = grt_seconds(), looked = begun, asked = 0;
    double busy = BUSY_SECONDS + (double)each * comm->now.ranks / BUSY_BYTES;
    for (;;) {
        bool over = false;
        if (!test(comm, &over)) {
            return lose(comm, "an exchange between ranks failed: one of them is gone");
        }
        if (over) {
            return true;
        }
        double now = grt_seconds();
        if (!comm->window && now - begun < busy) {
            sched_yield();
        } else if (!comm->window) {
            nanosleep(&nap, NULL);
        }
        if (now - looked < PEER_LOOK_SECONDS) {
            continue;
        }
        looked = now;
        if (!look_at_peers(comm)) {
            return false;
        }
        asked = asked == 0 && comm->stop_asked && comm->stop_asked() ? now : asked;
        if (asked > 0 && now - asked > STOP_SECONDS) {
            return lose(comm, "a rank did not come to the stop that was asked for");
        }
        if (now - begun > comm->silent) {
            char why[96];
            snprintf(why, sizeof why, "a rank has not answered for %g s", comm->silent);
            return lose(comm, why);
        }
    }
}

bool comm_come(struct grt_comm *comm, uint32_t lane) {
    comm->lane = lane;
    window_come(comm->window, lane);
    return comm_wait(comm, 0);
}

bool comm_join(struct grt_comm *comm) {
    bool good = true;
    comm->joins = true;
    // Whoever is gone, the team comes to an end: it is told so.
    while (!team_rests(comm->team)) {
        good = (comm->lost || comm_wait(comm, 0)) && good;
    }
    comm->joins = false;
    return good && !comm->lost;
}

static bool gather_boxes(struct grt_comm *comm, char *all, uint64_t each) {
    uint64_t room = window_room(comm->window);
    for (uint64_t at = 0; at < each; at += room) {
        size_t bytes = each - at < room ? each - at : room;
        memcpy(window_own(comm->window, 0), all + comm->now.rank * each + at, bytes);
        if (!comm_come(comm, 0)) {
            return false;
        }
        for (uint32_t r = 0; r < comm->now.ranks; r++) {
            if (r != comm->now.rank) {
                memcpy(all + r * each + at, window_box(comm->window, 0, r), bytes);
            }
        }
        window_turn(comm->window, 0);
    }
    return true;
}

bool comm_gather(struct grt_comm *comm, void *all, uint64_t each) {
    if (comm->lost) {
        return false;
    }
    if (comm->window) {
        return gather_boxes(comm, all, each);
    }
    return comm->transport.gather(comm->transport.self, all, each)
               ? comm_wait(comm, each)
               : lose(comm, "an exchange between ranks could not be begun");
}

bool grt_comm_gather(struct grt_comm *comm, void *all, uint64_t each) {
    if (!all && each > 0) {
        return grt_fail(GRT_INVALID, "grt_comm_gather: no memory");
    }
    if (!comm || comm->now.ranks == 1) {
        return true;
    }
    if (!comm->outlive) {
        return comm_gather(comm, all, each);
    }
    if (comm->lost || comm_outlive_due(comm)) {
        return false;
    }
    uint64_t bytes = comm->now.ranks * each;
    comm->outlive->bears = true;
    bool good = comm_gather(comm, all, each);
    comm->outlive->bears = false;
    return good ? comm_outlive_keep(comm, all, bytes) : comm_outlive_go_on(comm, all, bytes);
}

bool comm_spread(struct grt_comm *comm, const void *out, void *in, uint64_t each) {
    if (comm->lost) {
        return false;
    }
    return comm->transport.spread(comm->transport.self, out, in, each)
               ? comm_wait(comm, each)
               : lose(comm, "an exchange between ranks could not be begun");
}

// ---- exchanges ----

bool grt_comm_vote(struct grt_comm *comm) {
    uint32_t *bits;
    if (!comm) {
        return true;
    }
    if (comm->now.ranks == 1) {
        comm->stop |= comm->wanted;
        return true;
    }
    if (!comm_scratch(comm, comm->now.ranks * sizeof *bits)) {
        return false;
    }
    bits = comm->scratch;
    bits[comm->now.rank] = comm->wanted;
    if (!grt_comm_gather(comm, bits, sizeof *bits)) {
        return false;
    }
    for (uint32_t r = 0; r < comm->now.ranks; r++) {
        comm->stop |= bits[r];
    }
    return true;
}

bool grt_comm_lead(struct grt_comm *comm, void *data, uint64_t bytes) {
    if (!data) {
        return grt_fail(GRT_INVALID, "grt_comm_lead: no data");
    }
    if (!comm || comm->now.ranks == 1) {
        return true;
    }
    if (!comm_scratch(comm, comm->now.ranks * bytes)) {
        return false;
    }
    memcpy((char *)comm->scratch + comm->now.rank * bytes, data, bytes);
    if (!grt_comm_gather(comm, comm->scratch, bytes)) {
        return false;
    }
    memcpy(data, comm->scratch, bytes);
    return true;
}

bool grt_comm_all(struct grt_comm *comm, const char *what, bool good) {
    if (!comm || comm->now.ranks == 1) {
        return good;
    }
    if (!comm_scratch(comm, comm->now.ranks)) {
        return false;
    }
    char *words = comm->scratch;
    words[comm->now.rank] = (char)good;
    if (!grt_comm_gather(comm, words, 1)) {
        return false;
    }
    for (uint32_t r = 0; r < comm->now.ranks; r++) {
        if (!words[r]) {
            return r != comm->now.rank && good
                       ? grt_fail(GRT_CONFIG, "rank %u (%s) %s", r, grt_comm_who(comm, r), what)
                       : false;
        }
    }
    return true;
}

// FNV-1a over words of 8 bytes, then over what is left.
static uint64_t digest_of(const void *data, uint64_t bytes) {
    const unsigned char *at = data;
    uint64_t digest = 0xcbf29ce484222325u, word;
    for (; bytes >= sizeof word; bytes -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        digest = (digest ^ word) * 0x100000001b3u;
        digest ^= digest >> 29;
    }
    for (; bytes > 0; bytes--, at++) {
        digest = (digest ^ *at) * 0x100000001b3u;
    }
    return digest;
}

bool grt_comm_agree(struct grt_comm *comm, const char *what, const char *text) {
    // The text is for the sentence: all of it is compared, however long.
    struct said {
        uint64_t length, digest;
        char text[240];
    };
    if (!comm || comm->now.ranks == 1) {
        return true;
    }
    if (!comm_scratch(comm, comm->now.ranks * sizeof(struct said))) {
        return false;
    }
    struct said *all = comm->scratch, *own = &all[comm->now.rank];
    memset(own, 0, sizeof *own);
    own->length = strlen(text);
    own->digest = digest_of(text, own->length);
    snprintf(own->text, sizeof own->text, "%s", text);
    if (!grt_comm_gather(comm, all, sizeof *all)) {
        return false;
    }
    for (uint32_t r = 1; r < comm->now.ranks; r++) {
        if (memcmp(&all[r], &all[0], sizeof *all) != 0) {
            bool behind = strcmp(all[r].text, all[0].text) == 0;
            return grt_fail(GRT_CONFIG, "rank %u (%s) differs in its %s from rank 0%s: '%s'%s%s%s",
                            r, grt_comm_who(comm, r), what,
                            behind ? ", further on than is shown" : "", all[r].text,
                            behind ? "" : " and not '", behind ? "" : all[0].text,
                            behind ? "" : "'");
        }
    }
    return true;
}

bool grt_comm_same(struct grt_comm *comm, const char *what, uint64_t step, const void *data,
                   uint64_t bytes) {
    if (!comm || comm->now.ranks == 1) {
        return true;
    }
    uint64_t *digests;
    if (!comm_scratch(comm, comm->now.ranks * sizeof *digests)) {
        return false;
    }
    digests = comm->scratch;
    digests[comm->now.rank] = digest_of(data, bytes);
    if (!grt_comm_gather(comm, digests, sizeof *digests)) {
        return false;
    }
    for (uint32_t r = 1; r < comm->now.ranks; r++) {
        if (digests[r] != digests[0]) {
            return grt_fail(
                GRT_IO,
                "step %llu: rank %u (%s) has other %s than rank 0 (%s): they began with "
                "others, or one of these devices computes the update in another way",
                (unsigned long long)step, r, grt_comm_who(comm, r), what, grt_comm_who(comm, 0));
        }
    }
    return true;
}

// ---- begin and end ----

static void forget(struct grt_comm **comm) {
    struct grt_comm *c = *comm;
    comm_outlive_destroy(c);
    free(c->now.at);
    free(c->peers);
    free(c->stopped);
    free(c->texts);
    free(c->scratch);
    comm_plan_end(c);
    team_destroy(&c->team);
    window_destroy(&c->window);
    free(c);
    *comm = NULL;
}

// Shared memory where all ranks are on one machine, and every one of them sees that of all.
bool comm_look_out(struct grt_comm *comm) {
    bool good = comm->now.ranks > 1 && !comm->messages;
    uint32_t lanes = comm->threads > 0 ? comm->threads : team_size(comm->now.ranks);
    lanes = lanes < WINDOW_LANES ? lanes : WINDOW_LANES;
    for (uint32_t r = 0; r < comm->now.ranks; r++) {
        good = good && here(comm, r);
    }
    struct window *window = good ? window_create(comm->now.rank, comm->now.ranks) : NULL;
    struct window_key *keys = calloc(comm->now.ranks + 1u, sizeof *keys);
    char *seen = calloc(comm->now.ranks + 1u, sizeof *seen);
    bool met = keys && seen;
    if (met) {
        keys[comm->now.rank] = window_key(window);
        met = comm_gather(comm, keys, sizeof *keys);
        seen[comm->now.rank] = (char)(met && window_open(window, keys) ? lanes : 0);
        met = met && comm_gather(comm, seen, sizeof *seen);
    } else {
        grt_fail(GRT_NO_MEMORY, "no host memory for %u ranks", comm->now.ranks);
    }
    for (uint32_t r = 0; met && r < comm->now.ranks; r++) {
        good = good && seen[r];
        lanes = (uint32_t)seen[r] < lanes ? (uint32_t)seen[r] : lanes;
    }
    free(keys);
    free(seen);
    if (met && good) {
        comm->window = window;
        window_cut(window, lanes);
        // Threads that cannot be had are not missed: who has none does their lanes one by one.
        comm->team = lanes > 1 ? team_create(lanes - 1) : NULL;
    } else {
        window_destroy(&window);
    }
    return met;
}

// Builds whose exchanges differ do not begin.
static bool greet(struct grt_comm *comm) {
    struct peer_hello *all = calloc(comm->now.ranks, sizeof *all);
    if (!all) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for %u ranks", comm->now.ranks);
    }
    peer_greet(&all[comm->now.rank]);
    bool good = comm->now.ranks == 1 || comm_gather(comm, all, sizeof *all);
    for (uint32_t r = 1; good && r < comm->now.ranks; r++) {
        const struct peer_hello *one = &all[r];
        if (memcmp(one->magic, all->magic, sizeof one->magic) != 0 ||
            one->protocol != all->protocol) {
            good = grt_fail(
                GRT_CONFIG,
                "rank %u (on %.95s) has another build of gpurt than rank 0 (on %.95s): its "
                "ranks exchange by version %u (gpurt %.19s), those of rank 0 by version %u "
                "(gpurt %.19s); start the same build everywhere",
                r, one->host, all->host, one->protocol, one->version, all->protocol, all->version);
        }
    }
    free(all);
    return good;
}

static bool meet(struct grt_comm *comm, const struct grt_comm_desc *desc) {
    char why[GRT_TRANSPORT_WHY] = "";
    if (!desc->alone &&
        !comm->transport.start(comm->transport.self, &comm->now.rank, &comm->now.ranks, why)) {
        return grt_fail(GRT_UNSUPPORTED, "%s: %s", comm->transport.name, why);
    }
    if (comm->now.ranks > GRT_MAX_RANKS) {
        return grt_fail(GRT_UNSUPPORTED, "%u ranks are more than the %u that are tried",
                        comm->now.ranks, GRT_MAX_RANKS);
    }
    comm->met = comm->now.ranks;
    comm->self = comm->now.rank;
    comm->now.at = calloc(comm->met, sizeof *comm->now.at);
    comm->peers = calloc(comm->now.ranks, sizeof *comm->peers);
    comm->stopped = calloc(comm->now.ranks, sizeof *comm->stopped);
    comm->texts = calloc(comm->now.ranks, sizeof *comm->texts);
    if (!comm->now.at || !comm->peers || !comm->stopped || !comm->texts) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for %u ranks", comm->now.ranks);
    }
    peer_describe(&comm->peers[comm->now.rank], desc->device);
    // Nobody is known yet: a rank that does not come is the launcher's to find.
    struct peer own = comm->peers[comm->now.rank];
    for (uint32_t r = 0; r < comm->now.ranks; r++) {
        comm->peers[r] = own;
        comm->now.at[r] = r;
    }
    if (!greet(comm) || (comm->met > 1 && !comm_gather(comm, comm->peers, sizeof *comm->peers))) {
        return false;
    }
    for (uint32_t r = 0; r < comm->now.ranks; r++) {
        const struct peer *p = &comm->peers[r];
        snprintf(comm->texts[r], sizeof *comm->texts, "%.95s, process %d on %.63s", p->device,
                 (int)p->pid, p->host);
    }
    // A rank that is lost while they meet is the end.
    return grt_comm_agree(comm, "version of gpurt", own.version) &&
           (comm->met == 1 || comm_look_out(comm)) &&
           (!desc->outlive || comm->met == 1 || comm_outlive_create(comm));
}

struct grt_comm *grt_comm_start(const struct grt_comm_desc *desc) {
    if (!desc) {
        grt_fail(GRT_INVALID, "grt_comm_start: no desc");
        return NULL;
    }
    if (!(desc->silent >= 0 && isfinite(desc->silent))) {
        grt_fail(GRT_INVALID, "grt_comm_start: silent is %g seconds", desc->silent);
        return NULL;
    }
    const struct grt_transport *transport =
        desc->alone || desc->transport ? desc->transport : launch_transport();
    if (!transport && !desc->alone) {
        return NULL;
    }
    struct grt_comm *comm = calloc(1, sizeof *comm);
    if (!comm) {
        grt_fail(GRT_NO_MEMORY, "no host memory for ranks");
        return NULL;
    }
    comm->now.ranks = 1;
    comm->messages = desc->messages;
    comm->threads = desc->threads;
    comm->stop_asked = desc->stop;
    comm->silent = desc->silent > 0 ? desc->silent : GRT_COMM_SILENT_SECONDS;
    if (transport) {
        comm->transport = *transport;
    }
    if (!meet(comm, desc)) {
        forget(&comm);
    }
    return comm;
}

// The first rank still saves; the launcher ends all once one has ended. Unless the others go on:
// they wait for this one, and are to see that it is gone.
static void wait_for_first(const struct grt_comm *comm) {
    const struct timespec nap = {.tv_nsec = 20000000};
    double begun = grt_seconds(), save = fmax(SAVE_SECONDS, comm->silent / 10);
    double most = comm->stop != 0 ? save : FAIL_SECONDS;
    while (comm->now.rank > 0 && here(comm, 0) && peer_look(peer_of(comm, 0)) == PEER_RUNS &&
           grt_seconds() - begun < most) {
        nanosleep(&nap, NULL);
    }
}

void grt_comm_end(struct grt_comm **comm, bool good) {
    if (!comm || !*comm) {
        return;
    }
    if ((*comm)->met > 1) {
        if (good && !(*comm)->lost) {
            comm_outlive_part(*comm);
            (*comm)->transport.end((*comm)->transport.self);
        } else {
            wait_for_first(*comm);
        }
    }
    forget(comm);
}
