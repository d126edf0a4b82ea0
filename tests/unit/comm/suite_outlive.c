// SPDX-License-Identifier: Apache-2.0
// Ranks that go on without those that are gone, as threads of this process over a network of the
// test's own: one that ends, also before the first step and behind the last exchange, one that is
// behind, one that ends while the others come together, and a network that ends with its first lost
// rank or while they do so.
#include "harness/harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/comm.h"

#define MOST 4
#define ROUNDS 8
#define GROUPS 8
#define NOBODY 99
#define AGREEMENTS 8  // of a group

// ---- a network that outlives its ranks ----

// Ranks that exchange; behind each loss there is a new one.
struct group {
    uint32_t seats[MOST], count;
    bool left;  // nothing more is exchanged in it
    uint32_t came;
    uint64_t turn;
    char *in[MOST];
    size_t each;
    bool said[MOST], word;  // of the agreement that is under way
    bool words[AGREEMENTS];
    uint32_t agreements;
};

struct room {
    pthread_mutex_t lock;
    bool gone[MOST];
    struct group groups[GROUPS];
    bool mortal;
};

struct seat {
    struct room *room;
    uint32_t met, group, rank;
    uint64_t turn;    // that it waits for
    bool *agrees;     // or where the word of an agreement goes
    uint32_t agreed;  // agreements of its group so far
    bool blind;       // sees its next exchange fail, though it is complete
    bool ends_in_regroup;
    bool fails_in_regroup;  // nothing can be agreed by those that are left
};

static struct group *group_of(const struct seat *s) {
    return &s->room->groups[s->group];
}

static bool start(void *self, uint32_t *rank, uint32_t *ranks, char why[GRT_TRANSPORT_WHY]) {
    struct seat *s = self;
    (void)why;
    *rank = s->rank;
    *ranks = group_of(s)->count;
    return true;
}

static bool gather(void *self, void *all, size_t each) {
    struct seat *s = self;
    struct group *g = group_of(s);
    pthread_mutex_lock(&s->room->lock);
    g->in[s->rank] = all;
    s->turn = g->turn + 1;
    if (!g->left && ++g->came == g->count) {
        for (uint32_t to = 0; to < g->count; to++) {
            for (uint32_t from = 0; from < g->count; from++) {
                memmove(g->in[to] + from * each, g->in[from] + from * each, each);
            }
        }
        g->came = 0;
        g->turn++;
    }
    pthread_mutex_unlock(&s->room->lock);
    return true;
}

static bool spread(void *self, const void *out, void *in, size_t each) {
    (void)self, (void)out, (void)in, (void)each;
    return false;
}

// Whether all that are left have said their word, which then is that of all.
static bool decided(struct seat *s) {
    struct group *g = group_of(s);
    bool all = true;
    for (uint32_t r = 0; r < g->count; r++) {
        all = all && (g->said[r] || s->room->gone[g->seats[r]]);
    }
    if (s->agreed < g->agreements) {
        return true;
    }
    if (!all) {
        return false;
    }
    memset(g->said, 0, sizeof g->said);
    g->words[g->agreements++ % AGREEMENTS] = g->word;
    return true;
}

static bool look(void *self, bool *over) {
    struct seat *s = self;
    struct group *g = group_of(s);
    bool good = true;
    pthread_mutex_lock(&s->room->lock);
    if (s->agrees) {
        *over = decided(s);
        if (*over) {
            *s->agrees = g->words[s->agreed++ % AGREEMENTS];
            s->agrees = NULL;
        }
    } else {
        *over = g->turn >= s->turn && !s->blind;
        for (uint32_t r = 0; !*over && r < g->count; r++) {
            good = good && !s->room->gone[g->seats[r]];
        }
        good = good && (*over || !g->left);
        if (!good) {
            s->blind = false;
        }
    }
    pthread_mutex_unlock(&s->room->lock);
    return good;
}

static void end(void *self) {
    (void)self;
}

static bool leave(void *self) {
    struct seat *s = self;
    pthread_mutex_lock(&s->room->lock);
    group_of(s)->left = true;
    pthread_mutex_unlock(&s->room->lock);
    return !s->room->mortal;
}

static bool agree(void *self, bool *all) {
    struct seat *s = self;
    struct group *g = group_of(s);
    bool none = true;
    pthread_mutex_lock(&s->room->lock);
    if (s->room->gone[s->met] || s->room->mortal || (s->fails_in_regroup && s->group > 0)) {
        pthread_mutex_unlock(&s->room->lock);
        return false;
    }
    for (uint32_t r = 0; r < g->count; r++) {
        none = none && !g->said[r];
    }
    g->word = (none || g->word) && *all;
    g->said[s->rank] = true;
    s->agrees = all;
    pthread_mutex_unlock(&s->room->lock);
    return true;
}

static bool shrink(void *self, uint32_t *rank, uint32_t *ranks) {
    struct seat *s = self;
    struct group *old = group_of(s), *g = old + 1;
    pthread_mutex_lock(&s->room->lock);
    bool fresh = g->count == 0;
    for (uint32_t r = 0; fresh && r < old->count; r++) {
        if (!s->room->gone[old->seats[r]]) {
            g->seats[g->count++] = old->seats[r];
        }
    }
    s->group++;
    s->agreed = 0;
    bool good = !s->ends_in_regroup;
    s->room->gone[s->met] = !good;
    for (uint32_t r = 0; r < g->count; r++) {
        s->rank = g->seats[r] == s->met ? r : s->rank;
    }
    *rank = s->rank;
    *ranks = g->count;
    pthread_mutex_unlock(&s->room->lock);
    return good;
}

// ---- what each rank does ----

struct player {
    struct seat seat;
    uint32_t ends_before;  // this exchange
    uint32_t blind_in;     // this exchange
    bool before_first;     // all of it is before the first step
    pthread_t thread;
    // Of each exchange: how many ranks it had; 0: it failed.
    uint32_t had[2 * ROUNDS], count;
    bool wrong;
    uint32_t losses, stop, rank, ranks;
    char lost[320], error[512];
};

static bool ends_here(const struct player *p) {
    if (p->count == p->ends_before) {
        pthread_mutex_lock(&p->seat.room->lock);
        p->seat.room->gone[p->seat.met] = true;
        pthread_mutex_unlock(&p->seat.room->lock);
    }
    return p->count == p->ends_before;
}

// Each rank says who it is and how many exchanges came through: all must have the same of all.
static void rounds(struct player *p, struct grt_comm *comm) {
    uint32_t all[MOST][2], done = 0;
    while (!ends_here(p) && done < ROUNDS && p->count < 2 * ROUNDS) {
        uint32_t ranks = grt_comm_ranks(comm), before = grt_comm_losses(comm);
        memset(all, 0xff, sizeof all);
        all[grt_comm_rank(comm)][0] = p->seat.met;
        all[grt_comm_rank(comm)][1] = done;
        p->seat.blind = p->count == p->blind_in;
        bool good = grt_comm_gather(comm, all, sizeof *all);
        for (uint32_t r = 0; good && r < ranks; r++) {
            p->wrong = p->wrong || all[r][1] != done || (r > 0 && all[r][0] <= all[r - 1][0]);
        }
        p->had[p->count++] = good ? ranks : 0;
        done += good;
        if (!good && grt_comm_losses(comm) == before) {
            return;
        }
    }
}

static void *run(void *context) {
    struct player *p = context;
    struct grt_transport table = {.version = GRT_TRANSPORT_VERSION,
                                  .name = "threads",
                                  .self = &p->seat,
                                  .start = start,
                                  .gather = gather,
                                  .spread = spread,
                                  .test = look,
                                  .end = end,
                                  .leave = leave,
                                  .agree = agree,
                                  .shrink = shrink};
    struct grt_comm *comm = grt_comm_start(
        grt_comm_desc(.device = "test", .transport = &table, .messages = true, .outlive = true));
    if (comm) {
        p->wrong = !p->before_first && !grt_comm_bear(comm);
        rounds(p, comm);
        p->rank = grt_comm_rank(comm);
        p->ranks = grt_comm_ranks(comm);
        p->losses = grt_comm_losses(comm);
        p->stop = grt_comm_stop(comm);
        snprintf(p->lost, sizeof p->lost, "%s", grt_comm_lost(comm));
    }
    snprintf(p->error, sizeof p->error, "%s", grt_last_error());
    grt_comm_end(&comm, true);
    return NULL;
}

static void play(struct player players[MOST], uint32_t ranks, bool mortal) {
    struct room *room = calloc(1, sizeof *room);
    assert_non_null(room);
    pthread_mutex_init(&room->lock, NULL);
    room->mortal = mortal;
    room->groups[0].count = ranks;
    for (uint32_t r = 0; r < ranks; r++) {
        room->groups[0].seats[r] = r;
        players[r].seat.room = room;
        players[r].seat.met = players[r].seat.rank = r;
        assert_int_equal(pthread_create(&players[r].thread, NULL, run, &players[r]), 0);
    }
    for (uint32_t r = 0; r < ranks; r++) {
        pthread_join(players[r].thread, NULL);
    }
    pthread_mutex_destroy(&room->lock);
    free(room);
}

static void nobody_ends(struct player players[MOST]) {
    memset(players, 0, MOST * sizeof *players);
    for (uint32_t r = 0; r < MOST; r++) {
        players[r].ends_before = players[r].blind_in = NOBODY;
    }
}

// Of a rank that is left: `before` exchanges of all, one that fails, and those of who is left.
static void check_left(const struct player *p, uint32_t before, uint32_t ranks, uint32_t left) {
    assert_false(p->wrong);
    assert_int_equal(p->losses, 1);
    assert_int_equal(p->stop, 0);
    assert_int_equal(p->count, ROUNDS + 1);
    for (uint32_t i = 0; i < p->count; i++) {
        assert_int_equal(p->had[i], i < before ? ranks : i == before ? 0 : left);
    }
}

static void one_ends(void **state) {
    struct player players[MOST];
    (void)state;
    // The first of all too: another is the first then.
    for (uint32_t gone = 0; gone < 4; gone++) {
        char name[64];
        nobody_ends(players);
        players[gone].ends_before = 2 + gone;
        play(players, 4, false);
        snprintf(name, sizeof name, "rank %u (test, process ", gone);
        for (uint32_t r = 0; r < 4; r++) {
            if (r != gone) {
                check_left(&players[r], 2 + gone, 4, 3);
                assert_true(strncmp(players[r].lost, name, strlen(name)) == 0);
                assert_true(strstr(players[r].lost, ") has ended") != NULL);
            }
        }
    }
}

static void one_is_left(void **state) {
    struct player players[MOST];
    (void)state;
    nobody_ends(players);
    players[0].ends_before = 3;
    play(players, 2, false);
    assert_int_equal(players[1].losses, 1);
    assert_false(players[1].wrong);
    assert_int_equal(players[1].had[3], 0);
    assert_int_equal(players[1].had[4], 1);
    assert_int_equal(players[1].count, ROUNDS + 1);
}

// It ends behind an exchange that one has come through and the other has not seen come through:
// that one gets what it came to, and the next fails on both.
static void one_is_behind(void **state) {
    struct player players[MOST];
    (void)state;
    for (uint32_t blind = 0; blind < 2; blind++) {
        nobody_ends(players);
        players[2].ends_before = 4;
        players[blind].blind_in = 3;
        play(players, 3, false);
        check_left(&players[0], 4, 3, 2);
        check_left(&players[1], 4, 3, 2);
    }
}

// The same behind the last exchange: who has come through it waits at the end, and comes together
// with the one that has not.
static void one_is_behind_at_the_end(void **state) {
    struct player players[MOST];
    (void)state;
    for (uint32_t blind = 0; blind < 3; blind += 2) {
        nobody_ends(players);
        players[1].ends_before = ROUNDS;
        players[blind].blind_in = ROUNDS - 1;
        play(players, 3, false);
        for (uint32_t r = 0; r < 3; r += 2) {
            assert_false(players[r].wrong);
            assert_int_equal(players[r].losses, 0);
            assert_int_equal(players[r].count, ROUNDS);
            assert_int_equal(players[r].had[ROUNDS - 1], 3);
        }
    }
}

// Nobody can begin again yet: the end, said once.
static void one_ends_before_the_first_step(void **state) {
    struct player players[MOST];
    (void)state;
    nobody_ends(players);
    players[0].before_first = players[1].before_first = true;
    players[1].ends_before = 2;
    test_log.expected += 1;
    play(players, 2, false);
    assert_int_equal(players[0].count, 3);
    assert_int_equal(players[0].had[2], 0);
    assert_int_equal(players[0].losses, 0);
    assert_int_equal(players[0].stop, GRT_STOP_LOST);
    assert_true(strncmp(players[0].error, "rank 1 (test, process ", 22) == 0);
    assert_true(strstr(players[0].error, ") has ended before the first step") != NULL);
}

// The numbers of those that are left came, and nothing else: they are as before.
static void coming_together_fails(void **state) {
    struct player players[MOST];
    (void)state;
    nobody_ends(players);
    players[0].seat.fails_in_regroup = true;
    players[1].ends_before = players[2].ends_before = 2;
    test_log.expected += 1;
    play(players, 3, false);
    assert_int_equal(players[0].had[2], 0);
    assert_int_equal(players[0].losses, 0);
    assert_int_equal(players[0].stop, GRT_STOP_LOST);
    assert_int_equal(players[0].rank, 0);
    assert_int_equal(players[0].ranks, 3);
}

// One ends, and another while the rest come together: both are gone by one failed exchange.
static void one_ends_in_regroup(void **state) {
    struct player players[MOST];
    (void)state;
    nobody_ends(players);
    players[1].ends_before = 2;
    test_log.expected += 1;
    players[0].seat.ends_in_regroup = true;  // the first: others would wait for it to save
    play(players, 4, false);
    check_left(&players[2], 2, 4, 2);
    check_left(&players[3], 2, 4, 2);
    assert_true(strncmp(players[2].lost, "rank 0 (", 8) == 0);
    assert_true(strstr(players[2].lost, ") has ended, and 1 more") != NULL);
    assert_int_equal(players[0].losses, 0);
}

// Losses one after the other.
static void two_end(void **state) {
    struct player players[MOST];
    (void)state;
    nobody_ends(players);
    players[3].ends_before = 2;
    players[0].ends_before = 5;
    play(players, 4, false);
    static const uint32_t had[] = {4, 4, 0, 3, 3, 0, 2, 2, 2, 2};
    for (uint32_t r = 1; r < 3; r++) {
        assert_false(players[r].wrong);
        assert_int_equal(players[r].losses, 2);
        assert_int_equal(players[r].count, sizeof had / sizeof *had);
        assert_memory_equal(players[r].had, had, sizeof had);
        assert_true(strncmp(players[r].lost, "rank 0 (", 8) == 0);
    }
}

static void network_ends(void **state) {
    struct player players[MOST];
    (void)state;
    nobody_ends(players);
    players[1].ends_before = 2;
    test_log.expected += 1;
    play(players, 2, true);
    assert_int_equal(players[0].count, 3);
    assert_int_equal(players[0].had[2], 0);
    assert_int_equal(players[0].losses, 0);
    assert_int_equal(players[0].stop, GRT_STOP_LOST);
    assert_true(strstr(players[0].error, "one of them is gone") != NULL);
    assert_false(grt_comm_bear(NULL));
    assert_int_equal(grt_comm_losses(NULL), 0);
    assert_string_equal(grt_comm_lost(NULL), "");
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(one_ends),
    TEST_CASE(one_is_left),
    TEST_CASE(one_is_behind),
    TEST_CASE(one_is_behind_at_the_end),
    TEST_CASE(one_ends_before_the_first_step),
    TEST_CASE(coming_together_fails),
    TEST_CASE(one_ends_in_regroup),
    TEST_CASE(two_end),
    TEST_CASE(network_ends),
};
TEST_SUITE(outlive, false, cases);
