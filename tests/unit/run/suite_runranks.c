// SPDX-License-Identifier: Apache-2.0
// Runs of a trainer that learns nothing, as one rank of several: a rank that is gone, one that
// cannot save, and who writes.
#include "harness/harness.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "comm/comm_parts.h"
#include "kits/toy_run.h"

// A rank goes in the last step, and what only it knew with it: the run is not over, and is resumed
// from the checkpoint before.
static struct grt_comm *losing;
static void lose_at_5(struct toy *t) {
    losing->stop |= t->step == 5 ? GRT_STOP_LOST : 0u;
}

static void lost_in_the_last_step(void **state) {
    (void)state;
    toy_enter();
    struct grt_trainer together = toy_trainer;
    together.saves_together = true;
    for (uint64_t every = 3; every <= 5; every += 2) {
        losing = grt_comm_start(grt_comm_desc(.alone = true));
        assert_non_null(losing);
        struct toy t = {.after = lose_at_5, .trainer = &together};
        const char *file = toy_path(every == 3 ? "before.h5" : "never.h5");
        enum grt_ending ended =
            toy_go(&t, (struct grt_run_desc){.file = file, .save_every = every, .comm = losing},
                   (struct grt_run_start){.steps = 5});
        assert_int_equal(ended, GRT_ENDED_SIGNAL);
        if (every == 3) {
            assert_int_equal(toy_step_in(file), 3);
            assert_string_equal(t.text, "step 5 went with the rank that is gone: the checkpoint is "
                                        "that of step 3");
        }
        grt_comm_end(&losing, true);
    }
    toy_leave();
}

// A run that is resumed where it was, with an evaluation to make up for, and loses a rank before it
// has saved anything: what is left is what it began with, and it says so.
static void lost_behind_what_was_owed(void **state) {
    (void)state;
    toy_enter();
    struct grt_trainer together = toy_trainer;
    together.saves_together = true;
    const struct grt_run_start start = {.steps = 20, .evaluate_every = 3};
    struct grt_run_desc desc = {
        .dir = toy_path("owed"), .save_every = 10, .limits = {.patience = 9}};
    struct toy first = {.stop_at = 3, .trainer = &together};
    assert_int_equal(toy_go(&first, desc, start), GRT_ENDED_SIGNAL);
    assert_int_equal(first.evaluated[3], 0);
    losing = grt_comm_start(grt_comm_desc(.alone = true));
    assert_non_null(losing);
    struct toy rest = {.after = lose_at_5, .stop_at = 5, .trainer = &together};
    desc.resume = true;
    desc.comm = losing;
    assert_int_equal(toy_go(&rest, desc, start), GRT_ENDED_SIGNAL);
    assert_int_equal(rest.evaluated[3], 1);
    assert_string_equal(rest.text, "step 5 went with the rank that is gone: the checkpoint is that "
                                   "of step 3");
    char path[160];
    snprintf(path, sizeof path, "%s/step-000000000003.h5", desc.dir);
    assert_int_equal(toy_step_in(path), 3);
    grt_comm_end(&losing, true);
    toy_leave();
}

// ---- another rank that cannot save ----

static bool other_cannot;
static uint32_t own_rank;

static bool two(void *self, uint32_t *rank, uint32_t *ranks, char why[GRT_TRANSPORT_WHY]) {
    (void)self, (void)why;
    *rank = own_rank;
    *ranks = 2;
    return true;
}

// It says what this one says, but for that.
static bool echo(void *self, void *all, size_t each) {
    (void)self;
    memcpy((char *)all + (1 - own_rank) * each, (char *)all + own_rank * each, each);
    if (each == 1 && other_cannot) {
        ((char *)all)[1] = 0;
    }
    return true;
}

static bool no_spread(void *self, const void *out, void *in, size_t each) {
    (void)self, (void)out, (void)in, (void)each;
    return false;
}

static bool over(void *self, bool *is) {
    (void)self;
    return *is = true;
}

static void left(void *self) {
    (void)self;
}

static void cannot_at_3(struct toy *t) {
    other_cannot = t->step == 3;
}

// A rank without memory for its archive does not come to the gathering of a checkpoint: the others
// do not wait for it there.
static void one_that_cannot_save(void **state) {
    (void)state;
    toy_enter();
    const struct grt_transport table = {
        GRT_TRANSPORT_VERSION, "an echo", NULL, two, echo, no_spread, over, left};
    struct grt_comm *comm = grt_comm_start(grt_comm_desc(.device = "echo", .transport = &table));
    assert_non_null(comm);
    struct grt_trainer together = toy_trainer;
    together.saves_together = true;
    struct toy t = {.after = cannot_at_3, .trainer = &together};
    const char *file = toy_path("some.h5");
    test_log.expected += 1;
    enum grt_ending ended =
        toy_go(&t, (struct grt_run_desc){.file = file, .save_every = 3, .comm = comm},
               (struct grt_run_start){.steps = 5});
    other_cannot = false;
    assert_int_equal(ended, GRT_ENDED_ITERATIONS);
    assert_int_equal(t.saved[3], 0);
    assert_int_equal(t.saved[5] > 0, 1);
    assert_int_equal(toy_step_in(file), 5);
    grt_comm_end(&comm, true);
    toy_leave();
}

// A rank that writes nothing makes no archive, and is at the same step as the one that does; unless
// it has to see whether all is finite.
static void who_makes_archives(void **state) {
    (void)state;
    toy_enter();
    const struct grt_transport table = {
        GRT_TRANSPORT_VERSION, "an echo", NULL, two, echo, no_spread, over, left};
    struct grt_trainer plain = toy_trainer;
    plain.remedy = NULL;
    for (uint32_t way = 0; way < 3; way++) {
        own_rank = way > 0;
        struct grt_comm *comm =
            grt_comm_start(grt_comm_desc(.device = "echo", .transport = &table));
        assert_non_null(comm);
        struct toy t = {.trainer = way < 2 ? &plain : NULL};
        toy_rise(&t);
        const char *file = toy_path(way == 0 ? "first.h5" : "second.h5");
        assert_int_equal(toy_go(&t,
                                (struct grt_run_desc){.file = file, .save_every = 2, .comm = comm},
                                (struct grt_run_start){.steps = 5, .evaluate_every = 1}),
                         GRT_ENDED_ITERATIONS);
        for (uint64_t step = 1; step <= 5; step++) {
            assert_int_equal(t.evaluated[step], 1);
            assert_int_equal(t.saved[step] > 0, way != 1);
        }
        assert_int_equal(t.best_step, 5);
        assert_int_equal(access(file, F_OK) == 0, way == 0);
        grt_comm_end(&comm, true);
    }
    own_rank = 0;
    toy_leave();
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(who_makes_archives),
    TEST_CASE(lost_in_the_last_step),
    TEST_CASE(lost_behind_what_was_owed),
    TEST_CASE(one_that_cannot_save),
};
TEST_SUITE(runranks, false, cases);
