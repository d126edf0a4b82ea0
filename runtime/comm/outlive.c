// SPDX-License-Identifier: Apache-2.0
// Ranks that go on without those that are gone, over a transport that outlives them:
//
//     leave    all come to know that one is gone
//     agree    all that are left have come
//     shrink   they have numbers anew
//     gather   what each had last; who was behind gets it
//     agree    all of this went well, or all begin again: another one may be gone meanwhile
//
// Behind the last exchange they agree that all have come to the end: who is there says yes, who
// comes together with others says no.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "comm_parts.h"

bool comm_outlive_create(struct grt_comm *comm) {
    struct comm_outlive *o = calloc(1, sizeof *o);
    uint32_t *at = calloc(comm->met, sizeof *at);
    if (!o || !at) {
        free(o);
        free(at);
        return grt_fail(GRT_NO_MEMORY, "no host memory for %u ranks", comm->met);
    }
    o->coming.at = at;
    comm->outlive = o;
    return true;
}

void comm_outlive_destroy(struct grt_comm *comm) {
    if (comm->outlive) {
        free(comm->outlive->coming.at);
        free(comm->outlive->newest);
        free(comm->outlive);
    }
    comm->outlive = NULL;
}

uint32_t grt_comm_losses(const struct grt_comm *comm) {
    return comm && comm->outlive ? comm->outlive->losses : 0;
}

const char *grt_comm_lost(const struct grt_comm *comm) {
    return comm && comm->outlive ? comm->outlive->lost : "";
}

bool comm_outlive_keep(struct grt_comm *comm, const void *all, uint64_t bytes) {
    struct comm_outlive *o = comm->outlive;
    if (bytes > o->room) {
        void *more = realloc(o->newest, bytes);
        if (!more) {
            return grt_fail(GRT_NO_MEMORY, "no host memory for an exchange of %llu bytes",
                            (unsigned long long)bytes);
        }
        o->newest = more;
        o->room = bytes;
    }
    memcpy(o->newest, all, bytes);
    o->bytes = bytes;
    o->done++;
    return true;
}

void comm_outlive_look(struct grt_comm *comm) {
    const struct peer *own = &comm->peers[comm->self];
    const struct comm_numbers *before = &comm->outlive->coming;
    for (uint32_t r = 0; r < before->ranks; r++) {
        uint32_t met = before->at[r];
        const struct peer *p = &comm->peers[met];
        bool other = p != own && strcmp(p->machine, own->machine) == 0;
        enum peer_state state = other ? peer_look(p) : PEER_RUNS;
        peer_count_stopped(state, &comm->stopped[met]);
        if (state == PEER_STOPPED && comm->stopped[met] >= PEER_STOPPED_LOOKS &&
            peer_end_stopped(p)) {
            comm->outlive->ended = met + 1;
        }
    }
}

static void swap_numbers(struct grt_comm *comm) {
    struct comm_numbers now = comm->now;
    comm->now = comm->outlive->coming;
    comm->outlive->coming = now;
}

bool grt_comm_bear(struct grt_comm *comm) {
    if (!comm || !comm->outlive) {
        return false;
    }
    comm->outlive->begun = true;
    return true;
}

// The exchange that fails on all that are left.
static void tell_loss(struct grt_comm *comm) {
    struct comm_outlive *o = comm->outlive;
    if (o->begun) {
        o->losses++;
        return;
    }
    comm->lost = true;
    comm->stop |= GRT_STOP_LOST;
    grt_fail(GRT_LOST, "%s before the first step: the same command begins again", o->lost);
}

bool comm_outlive_due(struct grt_comm *comm) {
    struct comm_outlive *o = comm->outlive;
    bool due = o->due;
    if (due) {
        swap_numbers(comm);
        o->due = false;
        tell_loss(comm);
    }
    return due;
}

// ---- coming together ----

struct member {
    uint64_t done, bytes;  // of its newest exchange
    uint32_t met;          // its number when all met
    uint32_t ended;        // as in struct comm_outlive: only who has done so knows
};

static void remember(struct grt_comm *comm) {
    struct comm_numbers *before = &comm->outlive->coming;
    memcpy(before->at, comm->now.at, comm->met * sizeof *comm->now.at);
    before->rank = comm->now.rank;
    before->ranks = comm->now.ranks;
}

// What this rank says, of all that are left. False: they cannot agree any more.
static bool agree(struct grt_comm *comm, bool *all) {
    const struct grt_transport *t = &comm->transport;
    return t->agree(t->self, all) && comm_wait(comm, 0);
}

static bool shrink(struct grt_comm *comm) {
    const struct grt_transport *t = &comm->transport;
    return t->shrink(t->self, &comm->now.rank, &comm->now.ranks) && comm->now.ranks > 0 &&
           comm->now.ranks <= comm->met && comm->now.rank < comm->now.ranks;
}

// What the exchange came to for which rank `of` has it, on all ranks.
static void *fetch(struct grt_comm *comm, uint32_t of, uint64_t bytes) {
    const struct comm_outlive *o = comm->outlive;
    char *all = calloc(comm->now.ranks, bytes);
    if (all && comm->now.rank == of) {
        memcpy(all + of * bytes, o->newest, bytes);
    }
    if (!all || !comm_gather(comm, all, bytes)) {
        free(all);
        return NULL;
    }
    memmove(all, all + of * bytes, bytes);
    return all;
}

// Who is left, with what; *missed, to be freed: what this rank's exchange came to on another.
static bool compare(struct grt_comm *comm, uint64_t bytes, void **missed) {
    struct comm_outlive *o = comm->outlive;
    struct member *all = calloc(comm->now.ranks, sizeof *all);
    if (!all) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for %u ranks", comm->now.ranks);
    }
    all[comm->now.rank] =
        (struct member){.done = o->done, .bytes = o->bytes, .met = comm->self, .ended = o->ended};
    bool good = comm->now.ranks == 1 || comm_gather(comm, all, sizeof *all), behind = false;
    uint32_t newest = 0;
    for (uint32_t r = 0; good && r < comm->now.ranks; r++) {
        comm->now.at[r] = all[r].met;
        good = all[r].met < comm->met && all[r].ended <= comm->met;
        if (good && all[r].ended > 0) {
            comm->stopped[all[r].ended - 1] = PEER_ENDED;
        }
        behind = behind || all[r].done != all[0].done;
        newest = all[r].done > all[newest].done ? r : newest;
    }
    bool misses = o->done < all[newest].done;
    if (good && behind) {
        void *came = fetch(comm, newest, all[newest].bytes);
        // One is all that a rank can be behind.
        good = came && (!misses || (o->done + 1 == all[newest].done && all[newest].bytes == bytes));
        *missed = misses ? came : NULL;
        if (!misses) {
            free(came);
        }
    }
    free(all);
    return good;
}

// What is of the present ranks and holds for no others.
static void drop(struct grt_comm *comm) {
    if (comm->window) {
        window_leave(comm->window);
    }
    team_destroy(&comm->team);
    window_destroy(&comm->window);
    comm_plan_end(comm);
}

// Nothing more is exchanged by those that were; all that are left have come.
static bool leave(struct grt_comm *comm) {
    const struct grt_transport *t = &comm->transport;
    bool parts = false;
    drop(comm);
    return t->leave(t->self) && agree(comm, &parts);
}

// One try of all that are left, behind leave(). False with *again: another one is gone; else it is
// the end.
static bool regroup(struct grt_comm *comm, uint64_t bytes, void **missed, bool *again) {
    const struct grt_transport *t = &comm->transport;
    bool good = true;
    *again = false;
    drop(comm);
    comm->lost = false;
    if (!shrink(comm)) {
        return false;
    }
    good = compare(comm, bytes, missed) && (comm->now.ranks == 1 || comm_look_out(comm));
    if (!good) {
        t->leave(t->self);  // or others would wait in what this one gave up
        comm->lost = false;
    }
    // By the network: the memory in common is for what comes behind it.
    struct window *window = comm->window;
    comm->window = NULL;
    bool agreed = agree(comm, &good);
    comm->window = window;
    *again = agreed && !good;
    return agreed && good;
}

// Those of `before` that are not among the present ranks.
static void name_lost(struct grt_comm *comm, const struct comm_numbers *before) {
    struct comm_outlive *o = comm->outlive;
    uint32_t count = 0;
    for (uint32_t r = 0; r < before->ranks; r++) {
        uint32_t met = before->at[r];
        bool left = false;
        for (uint32_t k = 0; k < comm->now.ranks; k++) {
            left = left || comm->now.at[k] == met;
        }
        if (!left && count++ == 0) {
            snprintf(o->lost, sizeof o->lost, "rank %u (%s) %s", met, comm->texts[met],
                     comm->stopped[met] == PEER_ENDED
                         ? "was stopped and did not answer, and was ended"
                         : "has ended");
        }
    }
    if (count == 0) {
        snprintf(o->lost, sizeof o->lost, "a rank did not answer, and came back");
    }
    size_t length = strlen(o->lost);
    if (count > 1) {
        snprintf(o->lost + length, sizeof o->lost - length, ", and %u more", count - 1);
    }
}

// Tries until all that are left have numbers anew, *missed as in compare(). False: they cannot, and
// have those of before. `came`: they have come already.
static bool regroup_all(struct grt_comm *comm, uint64_t bytes, void **missed, bool came) {
    struct comm_outlive *o = comm->outlive;
    uint32_t tries = 0;
    bool again = true, good = false;
    remember(comm);
    o->bears = o->regroups = true;
    // Each try may lose a rank; what fails without that would fail for ever.
    while (again && tries++ <= comm->met) {
        free(*missed);
        *missed = NULL;
        comm->lost = false;
        again = came || leave(comm);
        came = false;
        good = again && regroup(comm, bytes, missed, &again);
    }
    o->bears = o->regroups = false;
    if (!good) {
        free(*missed);
        *missed = NULL;
        swap_numbers(comm);
        comm->lost = true;
        return false;
    }
    name_lost(comm, &o->coming);
    comm->lost = false;
    atomic_store(&comm->gone, false);
    comm->stop &= ~(uint32_t)GRT_STOP_LOST;
    return true;
}

bool comm_outlive_go_on(struct grt_comm *comm, void *all, uint64_t bytes) {
    struct comm_outlive *o = comm->outlive;
    void *missed = NULL;
    if (!comm->transport.leave || !regroup_all(comm, bytes, &missed, false)) {
        comm->lost = true;
        return grt_fail(GRT_LOST, "%s", comm->why);
    }
    if (!missed) {
        tell_loss(comm);
        return false;
    }
    memcpy(all, missed, bytes);
    free(missed);
    // Who was behind has the numbers before until the exchange that fails.
    swap_numbers(comm);
    o->due = true;
    return comm_outlive_keep(comm, all, bytes);
}

void comm_outlive_part(struct grt_comm *comm) {
    struct comm_outlive *o = comm->outlive;
    void *missed = NULL;
    if (!o || !comm->transport.agree) {
        return;
    }
    if (o->due) {
        swap_numbers(comm);
        o->due = false;
    }
    bool parted = comm->now.ranks == 1;
    while (!parted) {
        bool all = true;
        struct window *window = comm->window;
        remember(comm);
        comm->window = NULL;
        o->bears = o->regroups = true;
        bool agreed = agree(comm, &all);
        o->bears = o->regroups = false;
        comm->window = window;
        parted = !agreed || all || !regroup_all(comm, 0, &missed, true);
        free(missed);
        missed = NULL;
    }
}
