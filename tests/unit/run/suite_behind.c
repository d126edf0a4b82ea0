// SPDX-License-Identifier: Apache-2.0
// Checkpoints that are written while the run goes on: the order of what happens, with a disk that
// the test holds up, and one that fails.
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "kits/toy_run.h"

static bool has_step(const char *dir, uint64_t step) {
    char path[160];
    assert_true(grt_checkpoint_path(dir, step, path, sizeof path));
    return access(path, F_OK) == 0;
}

// The disk takes no more until step 5. Were the run to wait for it, nobody would come that far.
static void release_at_5(struct toy *t) {
    for (int i = 0; t->step == 4 && i < 30000 && !test_files_held(); i++) {
        usleep(1000);
    }
    if (t->step == 5) {
        assert_true(test_files_held());
        test_files_release();
    }
}

// Checkpoints at fixed steps: the run goes on while one is written, and each is written whole
// before the next is begun.
static void disk_is_slow(void **state) {
    (void)state;
    toy_enter();
    const struct grt_run_start start = {.steps = 9};
    const struct grt_run_desc desc = {.dir = toy_path("slow"), .save_every = 3};
    struct toy t = {.after = release_at_5};
    test_files = (struct test_files){.hold = true};
    assert_int_equal(toy_go(&t, desc, start), GRT_ENDED_ITERATIONS);
    assert_false(test_files.late);
    // The best one of the end is a second name of its file, and one fsync() of the folder serves
    // both.
    assert_string_equal(test_files.done, "frdfrdfrrd");
    assert_int_equal(t.written, 3);
    for (uint64_t step = 1; step <= 9; step++) {
        assert_int_equal(has_step(desc.dir, step), step % 3 == 0);
    }
    test_files = (struct test_files){0};
    toy_leave();
}

// A second after the run began checkpoints are written after evaluations: that of step 2 here.
static void release_at_7(struct toy *t) {
    if (t->step == 1) {
        usleep(1100000);
    }
    for (int i = 0; t->step == 3 && i < 30000 && !test_files_held(); i++) {
        usleep(1000);
    }
    assert_true(t->step != 3 || test_files_held());  // a second after the run began, not later
    if (t->step == 7) {
        test_files_release();
    }
}

// Those of steps 4 and 6 are due while that of step 2 is written: the newest takes their place.
static void newer_take_the_place(void **state) {
    (void)state;
    toy_enter();
    const struct grt_run_start start = {.steps = 7, .evaluate_every = 2};
    const struct grt_run_desc desc = {.dir = toy_path("newer")};
    struct toy t = {.after = release_at_7, .scores = {[2] = 1, [4] = 3, [6] = 2, [7] = 0}};
    test_files = (struct test_files){.hold = true};
    assert_int_equal(toy_go(&t, desc, start), GRT_ENDED_ITERATIONS);
    assert_false(test_files.late);
    assert_true(t.saved[2] == 1 && t.saved[4] == 1 && t.saved[6] == 1 && t.saved[7] == 1);
    assert_true(has_step(desc.dir, 2) && has_step(desc.dir, 7));
    assert_false(has_step(desc.dir, 4) || has_step(desc.dir, 6));
    assert_int_equal(toy_step_in(toy_path("newer/best.h5")), 4);
    assert_int_equal(t.written, 2);
    test_files = (struct test_files){0};
    toy_leave();
}

static void take_a_moment(struct toy *t) {
    usleep(t->step == 1 ? 1100000 : 20000);
}

// A checkpoint of every step is due, and one a second is written: that of step 2, and the last.
static void one_a_second(void **state) {
    (void)state;
    toy_enter();
    const struct grt_run_start start = {.steps = 12, .evaluate_every = 1};
    struct toy t = {.after = take_a_moment};
    double begun = grt_seconds();
    toy_rise(&t);
    assert_int_equal(toy_go(&t, (struct grt_run_desc){.dir = toy_path("paced"), .keep = 12}, start),
                     GRT_ENDED_ITERATIONS);
    uint32_t seconds = (uint32_t)(grt_seconds() - begun);  // a machine that is busy takes longer
    assert_true(t.written >= 2 && t.written <= 1 + seconds);
    assert_true(has_step(toy_path("paced"), 12));
    toy_leave();
}

// Once the writer has made what it makes in the folder.
static void put_file_in_place(struct toy *t) {
    char command[256];
    for (int i = 0; t->step == 4 && i < 30000 && !has_step(toy_path("gone"), 3); i++) {
        usleep(1000);
    }
    if (t->step == 4) {
        snprintf(command, sizeof command, "cd '%s' && mv gone was && touch gone", toy_folder);
        assert_int_equal(system(command), 0);
    }
}

// A write that fails is said once, with its status, in the run's own thread. The run goes on; it
// has failed where that was its last checkpoint.
static void disk_fails(void **state) {
    (void)state;
    toy_enter();
    const struct grt_run_start start = {.steps = 9};
    struct grt_run_desc desc = {.dir = toy_path("some"), .save_every = 3};
    for (uint32_t all = 0; all < 2; all++) {
        struct toy t = {0};
        uint32_t errors = test_log.lines[GRT_LOG_ERROR];
        test_files = (struct test_files){.fail = 'f', .fails = all ? 0 : 1};
        assert_int_equal(toy_go(&t, desc, start), all ? GRT_ENDED_FAILED : GRT_ENDED_ITERATIONS);
        test_files = (struct test_files){0};
        assert_int_equal(t.step, 9);
        // Of the end the best one cannot be written either.
        assert_int_equal(test_log.lines[GRT_LOG_ERROR] - errors, all ? 4 : 1);
        test_log.expected += all ? 4 : 1;
        assert_int_equal(grt_last_status(), GRT_IO);
        assert_non_null(strstr(grt_last_error(), desc.dir));
        assert_int_equal(t.written, all ? 0 : 2);
        assert_false(has_step(desc.dir, 3));
        assert_int_equal(has_step(desc.dir, 9), !all);
        desc.dir = toy_path("none");
    }
    // Of a folder that became something else.
    struct toy t = {.after = put_file_in_place};
    desc.dir = toy_path("gone");
    assert_int_equal(toy_go(&t, desc, start), GRT_ENDED_FAILED);
    assert_int_equal(grt_last_status(), GRT_NO_OUTPUT);
    assert_true(t.step == 9 && t.written <= 1);
    test_log.expected = test_log.lines[GRT_LOG_ERROR];
    toy_leave();
}

// The newest checkpoint is gone back to also while it is on its way to the disk.
static bool go_back(void *self, struct grt_run *run, struct grt_run_turn *turn) {
    struct toy *t = self;
    bool none = true;
    if (grt_run_place(run)->step == 4 && t->stop_at == 0) {
        t->stop_at = TOY_MOST;
        test_files_release();
        assert_true(grt_run_back(run, &none) && !none);
        assert_int_equal(grt_run_place(run)->step, 3);
    }
    return toy_advance(self, run, turn);
}

// ---- of two ranks the second, beside a first that says the same, or what the test says ----

static const uint64_t *first_says;  // or NULL

static bool echo_start(void *self, uint32_t *rank, uint32_t *ranks, char why[GRT_TRANSPORT_WHY]) {
    (void)self, (void)why;
    *rank = 1;
    *ranks = 2;
    return true;
}

static bool echo_gather(void *self, void *all, size_t each) {
    (void)self;
    bool said = first_says && each == sizeof *first_says;
    memcpy(all, said ? (const void *)first_says : (const char *)all + each, each);
    return true;
}

static bool echo_spread(void *self, const void *out, void *in, size_t each) {
    (void)self, (void)out, (void)in, (void)each;
    return false;
}

static bool echo_test(void *self, bool *over) {
    (void)self;
    *over = true;
    return true;
}

static void echo_end(void *self) {
    (void)self;
}

// The first rank had no memory for the checkpoint of step 3, which this one takes for made: there
// is none, as the first says, and this rank does not wait for it to be written.
static bool go_back_to_none(void *self, struct grt_run *run, struct grt_run_turn *turn) {
    struct toy *t = self;
    const uint64_t unsaved = UINT64_MAX;
    bool none = false;
    if (grt_run_place(run)->step == 4 && t->stop_at == 0) {
        t->stop_at = TOY_MOST;
        first_says = &unsaved;
        assert_true(grt_run_back(run, &none) && none);
        first_says = NULL;
        assert_int_equal(grt_run_place(run)->step, 4);
    }
    return toy_advance(self, run, turn);
}

static void first_rank_decides(void **state) {
    static const struct grt_transport echo = {
        GRT_TRANSPORT_VERSION, "echo",      NULL,      echo_start,
        echo_gather,           echo_spread, echo_test, echo_end};
    (void)state;
    toy_enter();
    struct grt_comm *comm =
        grt_comm_start(grt_comm_desc(.device = "test", .transport = &echo, .messages = true));
    assert_non_null(comm);
    struct grt_trainer back = toy_trainer;
    back.advance = go_back_to_none;
    struct toy t = {.trainer = &back};
    const struct grt_run_start start = {.steps = 6};
    const struct grt_run_desc desc = {.dir = toy_path("second"), .save_every = 3, .comm = comm};
    assert_int_equal(toy_go(&t, desc, start), GRT_ENDED_ITERATIONS);
    assert_int_equal(t.stop_at, TOY_MOST);
    assert_int_equal(t.written, 0);
    grt_comm_end(&comm, true);
    toy_leave();
}

// What runs ask of HDF5 in two threads: hooks read a checkpoint while another is written.
static void read_another(struct toy *t) {
    if (t->step > 1) {
        assert_int_equal(toy_step_in(toy_path("other.h5")), 2);
    }
}

static void goes_back_and_reads(void **state) {
    (void)state;
    toy_enter();
    const struct grt_run_start start = {.steps = 6};
    struct grt_trainer back = toy_trainer;
    back.advance = go_back;
    struct toy t = {.trainer = &back};
    struct grt_run_desc desc = {.dir = toy_path("back"), .save_every = 3};
    test_files = (struct test_files){.hold = true};
    assert_int_equal(toy_go(&t, desc, start), GRT_ENDED_ITERATIONS);
    assert_true(t.saved[3] == 1 && t.saved[6] == 1 && t.rows[GRT_RUN_TRAIN] == 7);
    test_files = (struct test_files){0};
    struct toy other = {0};
    desc = (struct grt_run_desc){.file = toy_path("other.h5")};
    assert_int_equal(toy_go(&other, desc, (struct grt_run_start){.steps = 2}),
                     GRT_ENDED_ITERATIONS);
    struct toy reader = {.after = read_another};
    desc = (struct grt_run_desc){.dir = toy_path("reads"), .save_every = 1};
    assert_int_equal(toy_go(&reader, desc, (struct grt_run_start){.steps = 12}),
                     GRT_ENDED_ITERATIONS);
    assert_int_equal(reader.written, 12);
    toy_leave();
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(disk_is_slow), TEST_CASE(newer_take_the_place), TEST_CASE(one_a_second),
    TEST_CASE(disk_fails),   TEST_CASE(goes_back_and_reads),  TEST_CASE(first_rank_decides),
};
TEST_SUITE(behind, false, cases);
