// SPDX-License-Identifier: Apache-2.0
// Ranks beside others that say what the test says: who differs in what, in which words; what one
// alone is asked; processes that run, are others, or are gone.
#include "harness/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/comm_parts.h"
#include "comm/tree.h"

// ---- two others, each of which has what this one has but where the test puts something else ----

enum { RANKS = 3 };

struct others {
    uint32_t rank;
    uint32_t odd;    // the rank that says something else; RANKS: none
    size_t each;     // in exchanges of so many bytes; 0: of any
    char says[512];  // that instead
    size_t says_bytes;
    uint32_t exchanges;
    uint64_t own;  // the first word that this one has told
    bool fails;    // exchanges cannot be begun
};

static bool start(void *self, uint32_t *rank, uint32_t *ranks, char why[GRT_TRANSPORT_WHY]) {
    const struct others *o = self;
    (void)why;
    *rank = o->rank;
    *ranks = RANKS;
    return true;
}

static bool gather(void *self, void *all, size_t each) {
    struct others *o = self;
    o->exchanges++;
    memcpy(&o->own, (const char *)all + o->rank * each, each < 8 ? each : 8);
    for (uint32_t r = 0; r < RANKS; r++) {
        if (r != o->rank) {
            memcpy((char *)all + r * each, (char *)all + o->rank * each, each);
        }
        if (r == o->odd && o->says_bytes > 0 && (o->each == 0 || o->each == each)) {
            memcpy((char *)all + r * each, o->says, o->says_bytes < each ? o->says_bytes : each);
        }
    }
    return !o->fails;
}

static bool spread(void *self, const void *out, void *in, size_t each) {
    (void)self, (void)out, (void)in, (void)each;
    return false;
}

static bool over(void *self, bool *is) {
    (void)self;
    return *is = true;
}

static void end(void *self) {
    (void)self;
}

static struct grt_comm *meet(struct others *o) {
    static struct grt_transport table;
    table = (struct grt_transport){
        GRT_TRANSPORT_VERSION, "others", o, start, gather, spread, over, end};
    struct grt_comm *comm =
        grt_comm_start(grt_comm_desc(.device = "a device", .transport = &table, .messages = true));
    assert_non_null(comm);
    o->exchanges = 0;
    return comm;
}

static void say(struct others *o, uint32_t rank, const void *bytes, size_t count) {
    o->odd = rank;
    memcpy(o->says, bytes, count);
    o->says_bytes = count;
}

// What a rank tells of a text.
struct said {
    uint64_t length, digest;
    char text[240];
};

// The sentence names the rank, its device, what it differs in and both words; a rank that differs
// is told by all alike, also by itself.
static void words_of_agreements(void **state) {
    (void)state;
    char want[512];
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        struct others o = {.rank = rank, .odd = RANKS};
        struct grt_comm *comm = meet(&o);
        assert_true(grt_comm_agree(comm, "batch_size", "16"));
        assert_int_equal(o.exchanges, 1);
        if (rank != 2) {
            const struct said other = {.length = 2, .digest = 5, .text = "32"};
            say(&o, 2, &other, sizeof other);
            snprintf(want, sizeof want, "rank 2 (a device, process %d on ", (int)getpid());
            TEST_REFUSED(grt_comm_agree(comm, "batch_size", "16"), GRT_CONFIG, want);
            assert_non_null(strstr(grt_last_error(),
                                   ") differs in its batch_size from rank 0: '32' and not '16'"));
            // Alike as far as is shown, and longer.
            struct said longer = {.length = 300, .digest = 5};
            char text[301];
            memset(text, 'x', 300);
            text[300] = '\0';
            memset(longer.text, 'x', 239);
            say(&o, 2, &longer, sizeof longer);
            TEST_REFUSED(grt_comm_agree(comm, "network", text), GRT_CONFIG,
                         "differs in its network from rank 0, further on than is shown: 'xxx");
        }
        o.odd = RANKS;
        // Numbers that have to be the same, and are not.
        static const float numbers[3] = {1, 2, 3};
        assert_true(grt_comm_same(comm, "weights", 20, numbers, sizeof numbers));
        const uint64_t digest = 7;
        if (rank != 1) {
            say(&o, 1, &digest, sizeof digest);
            snprintf(want, sizeof want, "step 20: rank 1 (a device, process %d", (int)getpid());
            TEST_REFUSED(grt_comm_same(comm, "weights", 20, numbers, sizeof numbers), GRT_IO, want);
            assert_non_null(strstr(grt_last_error(), ") has other weights than rank 0 (a device"));
        }
        grt_comm_end(&comm, true);
        assert_null(comm);
    }
}

// Numbers are told by one: any difference is another, also of signs that would cancel out, of the
// last bytes and of the length.
static void digests(void **state) {
    (void)state;
    static const float rows[][5] = {{1, 2, 3, 4, 5},   {1, -2, 3, 4, 5},  {1, -2, 3, -4, 5},
                                    {-1, 2, -3, 4, 5}, {2, 1, 3, 4, 5},   {3, 4, 1, 2, 5},
                                    {1, 2, 3, 4, -5},  {1, -2, 3, 4, -5}, {1, 2, 3, 5, 4}};
    enum { COUNT = sizeof rows / sizeof *rows };
    uint64_t told[COUNT + 2];
    struct others o = {.rank = 0, .odd = RANKS};
    struct grt_comm *comm = meet(&o);
    for (size_t i = 0; i < COUNT + 2; i++) {
        size_t bytes = i < COUNT ? sizeof rows[0] : sizeof rows[0] - 1 - (i - COUNT) * 7;
        assert_true(grt_comm_same(comm, "weights", 1, rows[i < COUNT ? i : 0], bytes));
        told[i] = o.own;
        assert_true(grt_comm_same(comm, "weights", 1, rows[i < COUNT ? i : 0], bytes));
        assert_true(told[i] == o.own);
        for (size_t k = 0; k < i; k++) {
            assert_true(told[k] != told[i]);
        }
    }
    grt_comm_end(&comm, true);
}

// All must be good: who is not has said why itself.
static void all_must(void **state) {
    (void)state;
    struct others o = {.rank = 1, .odd = RANKS};
    struct grt_comm *comm = meet(&o);
    const char bad = 0;
    assert_true(grt_comm_all(comm, "cannot begin", true));
    uint32_t errors = test_log.lines[GRT_LOG_ERROR];
    say(&o, 2, &bad, 1);
    TEST_REFUSED(grt_comm_all(comm, "cannot begin", true), GRT_CONFIG, "rank 2 (a device, process");
    assert_non_null(strstr(grt_last_error(), ") cannot begin"));
    errors = test_log.lines[GRT_LOG_ERROR];
    o.odd = RANKS;
    assert_false(grt_comm_all(comm, "cannot begin", false));
    assert_int_equal(test_log.lines[GRT_LOG_ERROR], errors);
    // The first rank decides what all do; the votes of all count, and stay.
    uint64_t mine = 5;
    const uint64_t first = 9;
    say(&o, 0, &first, sizeof first);
    assert_true(grt_comm_lead(comm, &mine, sizeof mine) && mine == 9);
    o.odd = RANKS;
    assert_true(grt_comm_vote(comm));
    assert_int_equal(grt_comm_stop(comm), 0);
    const uint32_t bits = GRT_STOP_TIME;
    say(&o, 2, &bits, sizeof bits);
    grt_comm_want(comm, GRT_STOP_SIGNAL);
    assert_int_equal(grt_comm_stop(comm), 0);  // nobody has voted yet
    assert_true(grt_comm_vote(comm));
    assert_int_equal(grt_comm_stop(comm), GRT_STOP_TIME | GRT_STOP_SIGNAL);
    o.odd = RANKS;
    assert_true(grt_comm_vote(comm));
    assert_int_equal(grt_comm_stop(comm), GRT_STOP_TIME | GRT_STOP_SIGNAL);
    TEST_REFUSED(grt_comm_gather(comm, NULL, 4), GRT_INVALID, "grt_comm_gather: no memory");
    TEST_REFUSED(grt_comm_lead(comm, NULL, 4), GRT_INVALID, "grt_comm_lead: no data");
    // Behind an exchange that fails there is none.
    o.fails = true;
    TEST_REFUSED(grt_comm_vote(comm), GRT_LOST, "an exchange between ranks could not be begun");
    assert_true((grt_comm_stop(comm) & GRT_STOP_LOST) != 0);
    o.fails = false;
    uint32_t before = o.exchanges;
    assert_false(grt_comm_vote(comm));
    assert_false(grt_comm_agree(comm, "a", "b"));
    assert_int_equal(o.exchanges, before);
    comm->met = 1;  // nobody is waited for
    grt_comm_end(&comm, false);
}

// One alone, and none: there is nobody to differ from.
static void nobody_else(void **state) {
    (void)state;
    struct grt_comm *single = grt_comm_start(grt_comm_desc(.device = "d", .alone = true));
    assert_non_null(single);
    struct grt_comm *comms[] = {NULL, single};
    for (int i = 0; i < 2; i++) {
        struct grt_comm *c = comms[i];
        uint32_t word = 3;
        float numbers[2] = {1, 2}, sum[2] = {0};
        assert_true(grt_comm_rank(c) == 0 && grt_comm_ranks(c) == 1);
        assert_true(grt_comm_agree(c, "a", "b") && grt_comm_same(c, "a", 1, &word, 4));
        assert_true(grt_comm_lead(c, &word, 4) && grt_comm_gather(c, &word, 4) && word == 3);
        assert_true(grt_comm_all(c, "a", true) && !grt_comm_all(c, "a", false));
        assert_true(grt_comm_sum(c, numbers, sum, 2) && sum[0] == 1 && sum[1] == 2);
        assert_true(grt_comm_gather(c, NULL, 0));
        grt_comm_want(c, GRT_STOP_SIGNAL);
        assert_true(grt_comm_vote(c));
        assert_int_equal(grt_comm_stop(c), c ? GRT_STOP_SIGNAL : 0);
        assert_int_equal(grt_comm_losses(c), 0);
        assert_string_equal(grt_comm_lost(c), "");
        assert_null(grt_comm_who(c, 1));
    }
    assert_null(grt_comm_who(NULL, 0));
    char want[64];
    snprintf(want, sizeof want, "d, process %d on ", (int)getpid());
    assert_int_equal(strncmp(grt_comm_who(single, 0), want, strlen(want)), 0);
    TEST_REFUSED(grt_comm_sum(single, NULL, &(float){0}, 1), GRT_INVALID,
                 "grt_comm_sum: no numbers");
    TEST_REFUSED(grt_comm_sum(single, &(float){0}, NULL, 1), GRT_INVALID, "grt_comm_sum: no sum");
    grt_comm_end(&single, true);
    grt_comm_end(&single, true);
    grt_comm_end(NULL, true);
    static const double silent[] = {-1, (double)NAN, (double)INFINITY};
    for (int i = 0; i < 3; i++) {
        TEST_REFUSED(grt_comm_start(grt_comm_desc(.alone = true, .silent = silent[i])), GRT_INVALID,
                     "grt_comm_start: silent is ");
    }
    TEST_REFUSED(grt_comm_start(NULL), GRT_INVALID, "grt_comm_start: no desc");
}

// ---- sums of leaves ----

static void leaves(void **state) {
    (void)state;
    for (uint32_t count = 1; count <= 16; count *= 2) {
        struct grt_comm_tree *tree = grt_comm_tree_create(NULL, count, 3);
        assert_non_null(tree);
        for (int again = 0; again < 2; again++) {
            // One that was given up is forgotten.
            grt_comm_tree_leaf(tree)[0] = 1e9f;
            grt_comm_tree_add(tree);
            grt_comm_tree_begin(tree);
            double all = 0;
            for (uint32_t i = 0; i < count; i++) {
                float *leaf = grt_comm_tree_leaf(tree);
                leaf[0] = (float)(i + 1);
                leaf[1] = -2.5f * (float)i;
                leaf[2] = (float)again;
                all += i + 1.0;
                grt_comm_tree_add(tree);
            }
            const float *sum = grt_comm_tree_sum(tree);
            assert_non_null(sum);
            assert_true((double)sum[0] == all && (double)sum[1] == -2.5 * (all - count));
            assert_true(sum[2] == (float)(again * count));
        }
        grt_comm_tree_destroy(&tree);
        assert_null(tree);
    }
    struct grt_comm_tree *most = grt_comm_tree_create(NULL, 1024, 1);
    assert_non_null(most);
    for (int i = 0; i < 1024; i++) {
        grt_comm_tree_leaf(most)[0] = 1;
        grt_comm_tree_add(most);
    }
    assert_true(grt_comm_tree_sum(most)[0] == 1024);
    grt_comm_tree_destroy(&most);
    TEST_REFUSED(grt_comm_tree_create(NULL, 1025, 7), GRT_NO_MEMORY,
                 "no host memory for sums of 7 numbers");
    TEST_REFUSED(grt_comm_tree_create(NULL, 0, 7), GRT_NO_MEMORY, "no host memory for sums");
    grt_comm_tree_destroy(NULL);
}

// ---- processes ----

static void processes(void **state) {
    (void)state;
    struct peer own, other;
    peer_describe(&own, "a device");
    assert_string_equal(own.device, "a device");
    assert_int_equal(own.pid, getpid());
    assert_true(own.began > 0 && own.host[0]);
    assert_int_equal(peer_look(&own), PEER_RUNS);
    assert_false(peer_end_stopped(&own));  // it is not stopped, and goes on
    // Another process has that number now; of which it is not known when it began it is the same.
    other = own;
    other.began++;
    assert_int_equal(peer_look(&other), PEER_GONE);
    other.began = 0;
    assert_int_equal(peer_look(&other), PEER_RUNS);
    other.pid = 0x3ffffffe;  // above the largest that Linux gives
    assert_int_equal(peer_look(&other), PEER_GONE);
    peer_describe(&other, NULL);
    assert_string_equal(other.device, "");
    // Looks in a row, which any other state ends; one that was ended stays so.
    static const struct {
        enum peer_state state;
        uint32_t before, after;
    } rows[] = {{PEER_STOPPED, 0, 1},
                {PEER_STOPPED, 7, 8},
                {PEER_RUNS, 7, 0},
                {PEER_GONE, 7, 0},
                {PEER_STOPPED, PEER_ENDED, PEER_ENDED},
                {PEER_RUNS, PEER_ENDED, PEER_ENDED}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t looks = rows[i].before;
        peer_count_stopped(rows[i].state, &looks);
        assert_int_equal(looks, rows[i].after);
    }
    struct peer_hello hello;
    peer_greet(&hello);
    assert_string_equal(hello.magic, "gpurt");
    assert_int_equal(hello.protocol, PEER_PROTOCOL);
    assert_string_equal(hello.version, grt_version());
    assert_string_equal(hello.host, own.host);
}

static void seen(void *context, uint32_t number) {
    ((uint32_t *)context)[number]++;
}

// Every part of a work is done once, be there more of them than threads or fewer, again and again.
static void teams(void **state) {
    (void)state;
    struct team *team = team_create(3);
    assert_non_null(team);
    for (uint32_t parts = 0; parts <= 9; parts++) {
        uint32_t done[12] = {0};
        team_begin(team, parts, seen, done);
        while (!team_rests(team)) {
        }
        for (uint32_t i = 0; i < 12; i++) {
            assert_int_equal(done[i], i >= 1 && i <= parts);
        }
    }
    team_destroy(&team);
    assert_null(team);
    team_destroy(NULL);
    assert_null(team_create(0));
    // Half of the cores, one at least, shared by ranks.
    assert_int_equal(team_size(100000), 1);
    assert_in_range(team_size(1), 1, 8);
    assert_true(team_size(0) == team_size(1) && team_size(2) <= team_size(1));
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(words_of_agreements),
    TEST_CASE(all_must),
    TEST_CASE(digests),
    TEST_CASE(nobody_else),
    TEST_CASE(leaves),
    TEST_CASE(processes),
    TEST_CASE(teams),
};
TEST_SUITE(alone, false, cases);
