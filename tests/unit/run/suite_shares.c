// SPDX-License-Identifier: Apache-2.0
// A rank of a supervised run, beside another that says whatever it says: which samples it
// evaluates, and how often it exchanges.
#include "kits/run_kit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gpurt/comm.h"
#include "run/run_ranks.h"

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
    double near;       // share that nearest neighbours find
    // Asked to stop, from so many questions on behind the last step; 0: never.
    uint32_t stop_at, asked;
    bool learnt;  // the last step was told of
    enum grt_ending ended;
};

static bool on_stop(void *context) {
    struct outcome *o = context;
    o->asked += o->learnt;
    return o->stop_at > 0 && o->asked >= o->stop_at;
}

static void on_report(void *context, const struct grt_run_report *r) {
    struct outcome *o = context;
    if (r->news == GRT_RUN_NEWS_ROW && r->row->event == GRT_RUN_EVALUATE) {
        o->rows++;
        o->loss = r->row->numbers[GRT_FIELD_LOSS];
        o->accuracy = r->row->numbers[GRT_FIELD_ACCURACY];
        o->near = grt_run_row_has(r->row, GRT_FIELD_KNN) ? r->row->numbers[GRT_FIELD_KNN] : -1;
    }
    if (r->news == GRT_RUN_NEWS_ROW && r->row->event == GRT_RUN_TRAIN) {
        o->learnt = r->row->step == r->row->steps;
    }
}

// rank 2: without ranks.
static struct outcome run_until(const struct grt_config *c, uint32_t rank, uint32_t stop_at,
                                bool resume) {
    struct echo echo = {.rank = rank};
    struct outcome o = {.stop_at = stop_at};
    const struct grt_transport table = {
        GRT_TRANSPORT_VERSION, "an echo", &echo, start, gather, spread, over, end};
    struct grt_comm *comm =
        rank < 2 ? grt_comm_start(grt_comm_desc(.device = "echo", .transport = &table)) : NULL;
    assert_true(comm || rank == 2);
    struct grt_supervised *run =
        grt_supervised_create(&(struct grt_supervised_desc){.dev = test.dev,
                                                            .config = c,
                                                            .comm = comm,
                                                            .resume = resume,
                                                            .stop = on_stop,
                                                            .report = on_report,
                                                            .context = &o});
    assert_non_null(run);
    o.ended = grt_run_go(grt_supervised_driver(run));
    o.sums = echo.sums;
    o.checked = grt_supervised_info(run).checked;
    grt_supervised_destroy(&run);
    grt_comm_end(&comm, true);
    return o;
}

static struct outcome run(const struct grt_config *c, uint32_t rank) {
    struct outcome o = run_until(c, rank, 0, false);
    assert_int_equal(o.ended, GRT_ENDED_EPOCHS);
    return o;
}

// ---- nearest neighbours ----

#define QUESTIONS 4  // behind the last step: before the evaluation, and in the middle of a trial

// Nothing is learnt. A rank has the samples of its own batches alone, and what the other says of
// its own: here the same, so that what they find differs from what one finds that has all.
static void neighbours_are_shared_out(void **state) {
    (void)state;
    run_kit_begin_with(GRT_MAKE_CLASSIFICATION, 96);
    struct grt_config c = run_kit_config("near", PAIRS("loss=nt_xent", "learning_rate=1e-12",
                                                       "epochs=1", "knn_every=1", "log_interval=1",
                                                       "validation_split=0", "drop_last=true"));
    struct outcome plain = run(&c, 2);
    assert_true(plain.near > 0 && plain.near < 1);
    assert_true(grt_config_override(&c, "micro_batches=2"));
    struct outcome alone = run(&c, 2), first = run(&c, 0), second = run(&c, 1);
    assert_true(alone.near == plain.near);
    assert_true(first.near >= 0 && first.near <= 1 && second.near >= 0 && second.near <= 1);
    assert_true(first.near != plain.near || second.near != plain.near);
    // A stop gives the trial up. It is owed, and is made when the run goes on.
    struct outcome o = run_until(&c, 0, QUESTIONS, false);
    assert_int_equal(o.ended, GRT_ENDED_SIGNAL);
    assert_int_equal(o.rows, 0);
    assert_true(o.asked >= QUESTIONS);
    o = run_until(&c, 0, 0, true);
    assert_int_equal(o.ended, GRT_ENDED_EPOCHS);
    assert_int_equal(o.rows, 1);
    assert_true(o.near == first.near);
    run_kit_end();
}

// ---- validation ----

#define JUDGED 30  // of 90 samples, 60 to train on

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
        {"micro_batches=2", "batch_size=60", 30},
    };
    run_kit_begin_with(GRT_MAKE_CLASSIFICATION, 90);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct grt_config c =
            run_kit_config("shares", PAIRS("learning_rate=1e-12", "loss=cross_entropy",
                                           cases[i].batch, "cache=ram", "validation_split=0.3334"));
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

// ---- waiting for data ----

struct shares_seen {
    uint32_t rows;
    bool idle;  // one says that no data were waited for
};

static void on_step(void *context, const struct grt_run_report *r) {
    struct shares_seen *s = context;
    // The next micro-batch is brought in each step but the last.
    if (r->news == GRT_RUN_NEWS_ROW && r->row->event == GRT_RUN_TRAIN && r->row->step >= 2 &&
        r->row->step <= 8) {
        s->rows++;
        s->idle = s->idle || !(r->row->numbers[GRT_FIELD_DATA_SHARE] > 0);
    }
}

// Batches that this thread makes itself are waited for, and each but the first ahead of its step.
// On `ref` the device is never busy meanwhile.
static void waiting_ahead_counts(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    struct grt_config c = run_kit_config("ahead", PAIRS("micro_batches=2", "num_workers=0",
                                                        "cache=none", "log_interval=1", "epochs=1",
                                                        "batch_size=30", "validation_split=0"));
    struct shares_seen seen = {0};
    struct grt_supervised *run = grt_supervised_create(&(struct grt_supervised_desc){
        .dev = test.dev, .config = &c, .report = on_step, .context = &seen});
    assert_non_null(run);
    assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_EPOCHS);
    grt_supervised_destroy(&run);
    assert_int_equal(seen.rows, 7);
    if (grt_dev_info(test.dev)->backend == GRT_BACKEND_REF) {
        assert_false(seen.idle);
    }
    run_kit_end();
}

// ---- by speed ----

// Each gets one at least, and what it takes behind that is never longer than it has to be.
static void dealt_by_speed(void **state) {
    (void)state;
    static const struct {
        uint32_t ranks, parts;
        double seconds[3];
        uint32_t counts[3];
    } dealt[] = {
        {2, 8, {1, 3}, {6, 2}},         {2, 8, {3, 1}, {2, 6}},
        {2, 8, {2, 1.2}, {3, 5}},       {2, 4, {1, 1000}, {3, 1}},
        {3, 8, {1, 1, 1}, {3, 3, 2}},   {3, 16, {1, 2, 4}, {10, 4, 2}},
        {3, 4, {5, 5, 0.1}, {1, 1, 2}}, {1, 8, {7}, {8}},
    };
    for (size_t i = 0; i < sizeof dealt / sizeof *dealt; i++) {
        uint32_t counts[3] = {0};
        grt_run_deal(dealt[i].seconds, dealt[i].ranks, dealt[i].parts, counts);
        assert_memory_equal(counts, dealt[i].counts, sizeof counts);
    }
    uint32_t equal[4];
    grt_run_deal(NULL, 4, 8, equal);
    assert_memory_equal(equal, ((uint32_t[]){2, 2, 2, 2}), sizeof equal);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(validation_is_shared_out),
    TEST_CASE(one_exchange_a_step),
    TEST_CASE(neighbours_are_shared_out),
    TEST_CASE(waiting_ahead_counts),
    TEST_CASE(dealt_by_speed),
};
TEST_SUITE(shares, true, cases);
