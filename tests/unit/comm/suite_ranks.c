// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of this process, over a transport of the test's own: sums to the bit, votes,
// agreements; and what launchers say.
#include "harness/harness.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/window.h"
#include "gpurt/comm.h"
#include "gpurt/gpurt.h"

#define MOST 4
#define COUNT 37                        // numbers of a leaf: no multiple of the ranks
#define MANY (2 * WINDOW_BOX / 4 + 37)  // of several boxes of shared memory, the last not full

// ---- a transport between threads: the last one to come moves all blocks ----

struct room {
    pthread_mutex_t lock;
    uint32_t ranks, came;
    uint64_t turn;
    const char *out[MOST];
    char *in[MOST];
    size_t each;
    bool spreads;
};

struct seat {
    struct room *room;
    uint32_t rank;
    uint64_t turn;  // that it waits for
    uint32_t exchanges;
};

static bool start(void *self, uint32_t *rank, uint32_t *ranks, char why[GRT_TRANSPORT_WHY]) {
    struct seat *seat = self;
    (void)why;
    *rank = seat->rank;
    *ranks = seat->room->ranks;
    return true;
}

static bool come(struct seat *seat, const void *out, void *in, size_t each, bool spreads) {
    struct room *room = seat->room;
    seat->exchanges++;
    pthread_mutex_lock(&room->lock);
    bool alike = room->came == 0 || (room->each == each && room->spreads == spreads);
    room->out[seat->rank] = out;
    room->in[seat->rank] = in;
    room->each = each;
    room->spreads = spreads;
    seat->turn = room->turn + 1;
    if (++room->came == room->ranks) {
        for (uint32_t to = 0; to < room->ranks; to++) {
            for (uint32_t from = 0; from < room->ranks; from++) {
                size_t at = (spreads ? to : from) * each;
                memmove(room->in[to] + from * each, room->out[from] + at, each);
            }
        }
        room->came = 0;
        room->turn++;
    }
    pthread_mutex_unlock(&room->lock);
    return alike;
}

static bool gather(void *self, void *all, size_t each) {
    return come(self, all, all, each, false);
}

static bool spread(void *self, const void *out, void *in, size_t each) {
    return come(self, out, in, each, true);
}

static bool look(void *self, bool *over) {
    struct seat *seat = self;
    pthread_mutex_lock(&seat->room->lock);
    *over = seat->room->turn >= seat->turn;
    pthread_mutex_unlock(&seat->room->lock);
    return true;
}

static void end(void *self) {
    (void)self;
}

// ---- what each rank does ----

struct player {
    struct seat seat;
    void (*play)(struct player *player, struct grt_comm *comm);
    bool good;
    char error[512];
    float numbers[COUNT];
    float *many;  // of MANY numbers, or NULL
    uint32_t stop;
    pthread_t thread;
};

static bool messages;     // ranks exchange by the transport, not through shared memory
static uint32_t threads;  // of a sum through shared memory

static void *run(void *context) {
    struct player *p = context;
    struct grt_transport table = {
        GRT_TRANSPORT_VERSION, "threads", &p->seat, start, gather, spread, look, end};
    char device[16];
    snprintf(device, sizeof device, "device %u", p->seat.rank);
    struct grt_comm *comm = grt_comm_start(grt_comm_desc(.device = device, .transport = &table,
                                                         .messages = messages, .threads = threads));
    p->seat.exchanges = 0;
    if (comm) {
        p->play(p, comm);
    }
    snprintf(p->error, sizeof p->error, "%s", grt_last_error());
    grt_comm_end(&comm, true);
    return NULL;
}

static void play(struct player players[MOST], uint32_t ranks,
                 void (*fn)(struct player *player, struct grt_comm *comm)) {
    struct room room = {.lock = PTHREAD_MUTEX_INITIALIZER, .ranks = ranks};
    for (uint32_t r = 0; r < ranks; r++) {
        players[r] = (struct player){.seat = {&room, r, 0, 0}, .play = fn};
        assert_int_equal(pthread_create(&players[r].thread, NULL, run, &players[r]), 0);
    }
    for (uint32_t r = 0; r < ranks; r++) {
        pthread_join(players[r].thread, NULL);
    }
}

// ---- sums ----

// Numbers whose sum depends on its order.
static float leaf(uint32_t number, uint32_t i) {
    return ((float)(number * 7919 + i * 104729) * 1e-3f + 1.0f / 3) *
           (number % 2 == 0 ? 1.0f : -0.37f);
}

// Each rank sums its leaves of MOST, neighbours first.
static void add_leaves(struct player *p, struct grt_comm *comm) {
    uint32_t ranks = grt_comm_ranks(comm), own = MOST / ranks, first = grt_comm_rank(comm) * own;
    float sums[MOST][COUNT];
    for (uint32_t k = 0; k < own; k++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            sums[k][i] = leaf(first + k, i);
        }
    }
    for (uint32_t width = 1; width < own; width *= 2) {
        for (uint32_t k = 0; k + width < own; k += 2 * width) {
            for (uint32_t i = 0; i < COUNT; i++) {
                sums[k][i] += sums[k + width][i];
            }
        }
    }
    memcpy(p->numbers, sums[0], sizeof sums[0]);
    p->good = grt_comm_sum(comm, p->numbers, p->numbers, COUNT);
}

// Without numbers, or without a place for their sum.
static void add_nothing(struct player *p, struct grt_comm *comm) {
    p->good = !grt_comm_sum(comm, NULL, p->numbers, COUNT) &&
              !grt_comm_sum(comm, p->numbers, NULL, COUNT) && grt_last_status() == GRT_INVALID;
}

static void sums(void **state) {
    struct player players[MOST];
    uint32_t differ = 0;
    (void)state;
    for (uint32_t way = 0; way < 6; way++) {
        uint32_t ranks = 1u << way / 2;
        messages = way % 2;
        play(players, ranks, add_leaves);
        for (uint32_t r = 0; r < ranks; r++) {
            assert_true(players[r].good);
            // Through shared memory nothing is left for the transport.
            assert_int_equal(players[r].seat.exchanges > 0, messages && ranks > 1);
            for (uint32_t i = 0; i < COUNT; i++) {
                float left = leaf(0, i) + leaf(1, i), right = leaf(2, i) + leaf(3, i);
                float in_turn = left + leaf(2, i) + leaf(3, i);
                assert_true(players[r].numbers[i] == left + right);
                differ += in_turn != left + right;
            }
        }
    }
    messages = false;
    assert_true(differ > 0);  // another order would be seen
    test_log.expected += 3;   // a line of each rank
    play(players, 3, add_leaves);
    assert_true(!players[0].good && strstr(players[0].error, "no power of two") != NULL);
    for (uint32_t ranks = 1; ranks <= 2; ranks++) {
        test_log.expected += 2 * ranks;
        play(players, ranks, add_nothing);
        assert_true(players[0].good && players[ranks - 1].good);
    }
}

// A sum, what all have, and their sum again, of more numbers than a box has.
static void add_many(struct player *p, struct grt_comm *comm) {
    uint32_t ranks = grt_comm_ranks(comm), rank = grt_comm_rank(comm);
    float *all = malloc(ranks * MANY * sizeof *all), *own = all + rank * (uint64_t)MANY;
    p->many = calloc(2 * (size_t)MANY, sizeof *p->many);
    p->good = all && p->many;
    for (uint32_t i = 0; p->good && i < MANY; i++) {
        own[i] = leaf(rank, i);
    }
    p->good = p->good && grt_comm_sum(comm, own, p->many, MANY) &&
              grt_comm_gather(comm, all, MANY * sizeof *all);
    for (uint32_t i = 0; p->good && i < ranks * MANY; i++) {
        p->good = all[i] == leaf(i / MANY, i % MANY);
    }
    p->good = p->good && grt_comm_sum(comm, own, own, MANY);
    if (p->good) {
        memcpy(p->many + MANY, own, MANY * sizeof *own);
    }
    free(all);
}

// By one thread of each rank or by several, and by messages.
static void many_sums(void **state) {
    static const uint32_t teams[] = {1, 3, WINDOW_LANES, 0};
    struct player players[MOST];
    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t ranks = 2u << i / 4;
        threads = teams[i % 4];
        messages = threads == 0;
        play(players, ranks, add_many);
        for (uint32_t r = 0; r < ranks; r++) {
            assert_true(players[r].good);
            for (uint32_t k = 0; k < MANY; k++) {
                float left = leaf(0, k) + leaf(1, k), right = leaf(2, k) + leaf(3, k);
                float wanted = ranks == 2 ? left : left + right;
                assert_true(players[r].many[k] == wanted && players[r].many[MANY + k] == wanted);
            }
            free(players[r].many);
        }
    }
    messages = false;
    threads = 0;
}

// ---- sums of runs ----

#define RUNS 8  // leaves

// The subtrees of every rank by first leaf and number of leaves, written down.
struct dealt {
    uint32_t ranks, leaves[MOST];
    struct {
        uint32_t count, first[4], size[4];
    } trees[MOST];
};
static const struct dealt dealt[] = {
    {2, {5, 3}, {{2, {0, 4}, {4, 1}}, {2, {5, 6}, {1, 2}}}},
    {2, {6, 2}, {{2, {0, 4}, {4, 2}}, {1, {6}, {2}}}},
    {2, {1, 7}, {{1, {0}, {1}}, {3, {1, 2, 4}, {1, 2, 4}}}},
    {3, {3, 2, 3}, {{2, {0, 2}, {2, 1}}, {2, {3, 4}, {1, 1}}, {2, {5, 6}, {1, 2}}}},
    {3, {1, 6, 1}, {{1, {0}, {1}}, {4, {1, 2, 4, 6}, {1, 2, 2, 1}}, {1, {7}, {1}}}},
    {4,
     {1, 2, 4, 1},
     {{1, {0}, {1}}, {2, {1, 2}, {1, 1}}, {3, {3, 4, 6}, {1, 2, 1}}, {1, {7}, {1}}}},
};
static const struct dealt *dealing;

static float tree(uint32_t first, uint32_t size, uint32_t i) {
    return size == 1 ? leaf(first, i)
                     : tree(first, size / 2, i) + tree(first + size / 2, size / 2, i);
}

static void add_runs(struct player *p, struct grt_comm *comm) {
    uint32_t rank = grt_comm_rank(comm), count = dealing->trees[rank].count, first = 0;
    float *own = malloc((size_t)count * MANY * sizeof *own);
    for (uint32_t r = 0; r < rank; r++) {
        first += dealing->leaves[r];
    }
    p->many = calloc(MANY, sizeof *p->many);
    p->good = own && p->many && grt_comm_subtrees(first, dealing->leaves[rank]) == count;
    for (uint32_t k = 0; p->good && k < count; k++) {
        for (uint32_t i = 0; i < MANY; i++) {
            own[(uint64_t)k * MANY + i] =
                tree(dealing->trees[rank].first[k], dealing->trees[rank].size[k], i);
        }
    }
    p->good = p->good && grt_comm_sum_runs(comm, dealing->leaves, own, p->many, MANY) &&
              grt_comm_sum_runs(comm, dealing->leaves, own, own, MANY);
    for (uint32_t i = 0; p->good && i < MANY; i++) {
        p->good = own[i] == p->many[i];
    }
    free(own);
}

// Whoever has which leaves, and however they exchange, the bits are those of the whole tree.
static void runs(void **state) {
    struct player players[MOST];
    (void)state;
    float *whole = malloc(MANY * sizeof *whole);
    assert_non_null(whole);
    for (uint32_t i = 0; i < MANY; i++) {
        whole[i] = tree(0, RUNS, i);
    }
    for (size_t d = 0; d < sizeof dealt / sizeof *dealt; d++) {
        dealing = &dealt[d];
        for (uint32_t way = 0; way < 3; way++) {
            threads = 1 + 2 * way;
            messages = way == 2;
            play(players, dealing->ranks, add_runs);
            for (uint32_t r = 0; r < dealing->ranks; r++) {
                assert_true(players[r].good);
                for (uint32_t i = 0; i < MANY; i++) {
                    assert_true(players[r].many[i] == whole[i]);
                }
                free(players[r].many);
            }
        }
    }
    free(whole);
    messages = false;
    threads = 0;
}

// Seven leaves, and a rank without any.
static void add_bad_runs(struct player *p, struct grt_comm *comm) {
    static const uint32_t seven[] = {5, 2}, none[] = {8, 0};
    float numbers[2 * COUNT] = {0};
    p->good = !grt_comm_sum_runs(comm, seven, numbers, numbers, COUNT) &&
              !grt_comm_sum_runs(comm, none, numbers, numbers, COUNT) &&
              grt_last_status() == GRT_INVALID &&
              strstr(grt_last_error(), "8 leaves are no power of two of which every rank has some");
}

static void bad_runs(void **state) {
    struct player players[MOST];
    (void)state;
    test_log.expected += 4;
    play(players, 2, add_bad_runs);
    assert_true(players[0].good && players[1].good);
}

// Subtrees whose numbers are how many leaves they have.
static bool sums_to(struct grt_comm *comm, const uint32_t *leaves, const float *sizes,
                    uint32_t count, float all) {
    float numbers[4 * COUNT], sum[COUNT];
    for (uint32_t i = 0; i < count * COUNT; i++) {
        numbers[i] = sizes[i / COUNT];
    }
    bool good = leaves ? grt_comm_sum_runs(comm, leaves, numbers, sum, COUNT)
                       : grt_comm_sum(comm, numbers, sum, COUNT);
    for (uint32_t i = 0; good && i < COUNT; i++) {
        good = sum[i] == all;
    }
    return good;
}

static void add_in_turn(struct player *p, struct grt_comm *comm) {
    static const uint32_t five[] = {5, 3}, six[] = {6, 2};
    bool first = grt_comm_rank(comm) == 0;
    p->good = true;
    for (int i = 0; i < 2; i++) {
        p->good = p->good && sums_to(comm, five, first ? (float[]){4, 1} : (float[]){1, 2}, 2, 8) &&
                  sums_to(comm, NULL, (float[]){1}, 1, 2) &&
                  sums_to(comm, six, first ? (float[]){4, 2} : (float[]){2}, first ? 2 : 1, 8);
    }
}

// One deal after another: each sum is of its own.
static void deals_in_turn(void **state) {
    struct player players[MOST];
    (void)state;
    for (int way = 0; way < 2; way++) {
        messages = way;
        play(players, 2, add_in_turn);
        assert_true(players[0].good && players[1].good);
    }
    messages = false;
}

// ---- shared memory ----

// Whether rank 0 of two opens what these keys name.
static bool opens(struct window_key own, struct window *first, struct window_key other) {
    return window_open(first, (struct window_key[]){own, other});
}

static void windows(void **state) {
    struct window *first = window_create(0, 2), *second = window_create(1, 2);
    struct window *alike = window_create(1, 2);  // as another job's second rank has it
    (void)state;
    if (!first) {  // no shared memory here: ranks send messages
        skip();
    }
    assert_true(second && alike);
    struct window_key own = window_key(first), right = window_key(second);
    struct window_key wrong = right, theirs = window_key(alike), none = window_key(NULL);
    assert_true(right.token != theirs.token && right.token != own.token);
    assert_int_equal(none.file, -1);
    wrong.token ^= 1;
    assert_false(opens(own, first, wrong));
    // The file of the other job under the numbers that were told.
    theirs.token = right.token;
    assert_false(opens(own, first, theirs));
    assert_false(opens(own, first, own));  // of rank 0
    assert_false(opens(own, first, none));
    assert_true(opens(own, first, right));
    memcpy(window_own(second, 0), "of the second", sizeof "of the second");
    assert_string_equal(window_box(first, 0, 1), "of the second");
    // Who leaves is seen to have left, by those that share its file.
    assert_false(window_left(first));
    window_leave(alike);
    assert_false(window_left(first));
    window_leave(second);
    assert_true(window_left(first));
    window_destroy(&first);
    window_destroy(&second);
    window_destroy(&alike);
}

// ---- words ----

static void differ_in_one(struct player *p, struct grt_comm *comm) {
    p->good = grt_comm_agree(comm, "seed", "7") &&
              grt_comm_agree(comm, "config", p->seat.rank == 2 ? "b" : "a");
}

// Two texts that differ in the last of many characters, which no sentence shows.
static void differ_far_on(struct player *p, struct grt_comm *comm) {
    char text[3000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    p->good = grt_comm_agree(comm, "network", text);
    text[sizeof text - 2] = p->seat.rank == 1 ? 'y' : 'x';
    p->good = p->good && !grt_comm_agree(comm, "network", text);
}

static void fail_in_one(struct player *p, struct grt_comm *comm) {
    p->good =
        grt_comm_all(comm, "no memory", true) && grt_comm_all(comm, "no memory", p->seat.rank != 1);
}

static uint32_t odd;  // the rank that has others

static void weights(struct player *p, struct grt_comm *comm) {
    char bytes[] = "nineteen bytes here";
    p->good = grt_comm_same(comm, "weights", 100, bytes, sizeof bytes);
    bytes[p->seat.rank == odd ? 17 : 18] ^= (char)(p->seat.rank == odd);
    p->good = p->good && !grt_comm_same(comm, "weights", 200, bytes, sizeof bytes);
}

static void agreements(void **state) {
    struct player players[MOST];
    (void)state;
    test_log.expected += MOST + MOST + (MOST - 1) + MOST * MOST;  // who fails has its own
    play(players, MOST, differ_in_one);
    for (uint32_t r = 0; r < MOST; r++) {
        assert_false(players[r].good);
        assert_true(strstr(players[r].error, "rank 2 (device 2, ") != NULL);
        assert_true(strstr(players[r].error, "its config") != NULL);
    }
    play(players, MOST, differ_far_on);
    for (uint32_t r = 0; r < MOST; r++) {
        assert_true(players[r].good);
        assert_true(strstr(players[r].error, "rank 1 (device 1, ") != NULL);
        assert_true(strstr(players[r].error, "further on") != NULL);
    }
    play(players, MOST, fail_in_one);
    for (uint32_t r = 0; r < MOST; r++) {
        assert_false(players[r].good);
        assert_true(r == 1 || strstr(players[r].error, "rank 1 (device 1, ") != NULL);
    }
    for (odd = 0; odd < MOST; odd++) {
        char said[32];
        snprintf(said, sizeof said, "step 200: rank %u", odd > 0 ? odd : 1);
        play(players, MOST, weights);
        for (uint32_t r = 0; r < MOST; r++) {
            assert_true(players[r].good);
            assert_true(strstr(players[r].error, said) != NULL);
        }
    }
}

static void vote(struct player *p, struct grt_comm *comm) {
    uint32_t number = 40 + p->seat.rank;
    p->good = grt_comm_vote(comm) && grt_comm_stop(comm) == 0;
    grt_comm_want(comm, p->seat.rank == 1 ? GRT_STOP_TIME : 0);
    p->good = p->good && grt_comm_stop(comm) == 0 && grt_comm_vote(comm) &&
              grt_comm_lead(comm, &number, sizeof number) && number == 40;
    p->stop = grt_comm_stop(comm);
}

static void votes(void **state) {
    struct player players[MOST];
    (void)state;
    play(players, 3, vote);
    for (uint32_t r = 0; r < 3; r++) {
        assert_true(players[r].good);
        assert_int_equal(players[r].stop, GRT_STOP_TIME);
    }
    // Nobody: rank 0 of 1, and everything is agreed.
    assert_int_equal(grt_comm_ranks(NULL), 1);
    assert_true(grt_comm_vote(NULL) && grt_comm_agree(NULL, "", "") && !grt_comm_stop(NULL));
    assert_false(grt_comm_all(NULL, "", false));
    struct grt_comm *single = grt_comm_start(grt_comm_desc(.device = "ref:0", .alone = true));
    assert_non_null(single);
    assert_true(strstr(grt_comm_who(single, 0), "ref:0, process ") != NULL);
    assert_null(grt_comm_who(single, 1));
    grt_comm_end(&single, true);
    assert_null(single);
}

// ---- a rank that does not come ----

static void silence(void **state) {
    struct room room = {.lock = PTHREAD_MUTEX_INITIALIZER, .ranks = 2};
    struct seat seat = {&room, 0, 0, 0};
    struct grt_transport table = {
        GRT_TRANSPORT_VERSION, "threads", &seat, start, gather, spread, look, end};
    (void)state;
    test_log.expected += 3;
    assert_null(grt_comm_start(grt_comm_desc(.transport = &table, .silent = 0.3)));
    assert_string_equal(grt_last_error(), "a rank has not answered for 0.3 s");
    assert_int_equal(grt_last_status(), GRT_LOST);
    assert_null(grt_comm_start(grt_comm_desc(.alone = true, .silent = -1)));
    assert_null(grt_comm_start(grt_comm_desc(.alone = true, .silent = NAN)));
    assert_int_equal(grt_last_status(), GRT_INVALID);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(sums),  TEST_CASE(many_sums), TEST_CASE(agreements),
    TEST_CASE(votes), TEST_CASE(windows),   TEST_CASE(silence),
    TEST_CASE(runs),  TEST_CASE(bad_runs),  TEST_CASE(deals_in_turn),
};
TEST_SUITE(ranks, false, cases);
