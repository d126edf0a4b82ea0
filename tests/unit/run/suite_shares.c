// SPDX-License-Identifier: Apache-2.0
// A rank of a supervised run, beside another that says whatever it says: which samples it
// evaluates, and how often it exchanges.
#include "harness/run_kit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gpurt/comm.h"

// ---- another rank that has what this one has ----

struct echo {
    uint32_t rank;
    uint32_t sums;  // over ranks
};

static bool start(void *self, uint32_t *rank, uint32_t *ranks, char why[GRT_TRANSPORT_WHY]) {
    const struct echo *e = self;
    (void)why;
    *rank = e->rank;
    *ranks = 2;
    return true;
}

static bool gather(void *self, void *all, size_t each) {
    const struct echo *e = self;
    memcpy((char *)all + (1 - e->rank) * each, (char *)all + e->rank * each, each);
    return true;
}

static bool spread(void *self, const void *out, void *in, size_t each) {
    struct echo *e = self;
    e->sums++;
    for (uint32_t r = 0; r < 2; r++) {
        memcpy((char *)in + r * each, (const char *)out + e->rank * each, each);
    }
    return true;
}

static bool over(void *self, bool *is) {
    (void)self;
    *is = true;
    return true;
}

static void end(void *self) {
    (void)self;
}

// What a run came to.
struct outcome {
    uint32_t rows;     // that tell of evaluations
    double loss;       // of the newest
    double accuracy;   // the same
    uint64_t checked;  // samples that this rank evaluated
    uint32_t sums;     // over ranks
};

static void on_report(void *context, const struct grt_run_report *r) {
    struct outcome *o = context;
    if (r->news == GRT_RUN_NEWS_ROW && r->row->event == GRT_RUN_EVALUATE) {
        o->rows++;
        o->loss = r->row->numbers[GRT_FIELD_LOSS];
        o->accuracy = r->row->numbers[GRT_FIELD_ACCURACY];
    }
}

// rank 2: without ranks.
static struct outcome run(const struct grt_config *c, uint32_t rank) {
    struct echo echo = {.rank = rank};
    struct outcome o = {0};
    const struct grt_transport table = {
        GRT_TRANSPORT_VERSION, "an echo", &echo, start, gather, spread, over, end};
    struct grt_comm *comm =
        rank < 2 ? grt_comm_start(grt_comm_desc(.device = "echo", .transport = &table)) : NULL;
    assert_true(comm || rank == 2);
    struct grt_supervised *run = grt_supervised_create(&(struct grt_supervised_desc){
        .dev = test.dev, .config = c, .comm = comm, .report = on_report, .context = &o});
    assert_non_null(run);
    assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_EPOCHS);
    o.sums = echo.sums;
    o.checked = grt_supervised_info(run).checked;
    grt_supervised_destroy(&run);
    grt_comm_end(&comm, true);
    return o;
}

// ---- validation ----

#define JUDGED 30  // of 300 samples, 270 to train on

// Nothing is learnt, so every run judges the same network: what two ranks find in their shares is
// together what one finds in all.
static void validation_is_shared_out(void **state) {
    (void)state;
    static const struct {
        const char *cut, *batch;
        uint32_t first;  // samples of rank 0
    } cases[] = {
        // Batches of 8, 8 | 8, 6; of 4, 4, 4, 4 | 4, 4, 4, 2; and of 1: 15 parts of 2, and an
        // empty one.
        {"micro_batches=2", "batch_size=16", 16},
        {"micro_batches=4", "batch_size=16", 16},
        {"micro_batches=16", "batch_size=16", 16},
        // One batch, of rank 0 alone, and none.
        {"micro_batches=2", "batch_size=120", 30},
    };
    run_kit_begin(GRT_MAKE_CLASSIFICATION);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct grt_config c =
            run_kit_config("shares", PAIRS("learning_rate=1e-12", "loss=cross_entropy",
                                           cases[i].batch, "cache=ram"));
        struct outcome plain = run(&c, 2);
        assert_int_equal(plain.checked, 2 * JUDGED);
        assert_true(grt_config_override(&c, cases[i].cut));
        struct outcome alone = run(&c, 2), first = run(&c, 0), second = run(&c, 1);
        uint32_t ours = cases[i].first, theirs = JUDGED - ours;
        assert_int_equal(alone.rows, 2);
        assert_int_equal(alone.checked, 2 * JUDGED);
        assert_int_equal(first.checked, 2 * ours);
        assert_int_equal(second.checked, 2 * theirs);
        assert_true(plain.accuracy > 0 && plain.accuracy < 1);
        assert_true(alone.accuracy == plain.accuracy);
        assert_true(fabs(alone.loss - plain.loss) < 1e-6 * plain.loss);
        if (theirs == 0) {
            assert_true(first.loss == alone.loss && first.accuracy == alone.accuracy);
            continue;
        }
        double hits = first.accuracy * ours + second.accuracy * theirs;
        assert_true(fabs(hits - plain.accuracy * JUDGED) < 1e-4);
        assert_true(first.loss != second.loss);
        assert_true(fabs(first.loss * ours + second.loss * theirs - plain.loss * JUDGED) <
                    1e-6 * plain.loss * JUDGED);
    }
    run_kit_end();
}

// ---- exchanges ----

// A step of four batches is summed over ranks as often as one of a single batch: its one bucket of
// gradients, and the rest.
static void one_exchange_a_step(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    for (uint32_t i = 0; i < 2; i++) {
        struct grt_config c = run_kit_config(
            "exchanges", PAIRS(i ? "accumulate=4" : "accumulate=1", "epochs=1",
                               i ? "batch_size=16" : "batch_size=64", "validation_split=0"));
        assert_int_equal(run(&c, 0).sums, 2 * 5);  // 300 samples: 5 steps
    }
    run_kit_end();
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(validation_is_shared_out),
    TEST_CASE(one_exchange_a_step),
};
TEST_SUITE(shares, true, cases);
