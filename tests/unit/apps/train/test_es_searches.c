// SPDX-License-Identifier: Apache-2.0
// What `gpurt train es` compares a policy with, and its file of directions, with a learner that
// says what it is told to: which constants are searched for and how long, which of them is the
// best, and every line of the file.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/talk.h"
#include "train/train_es_baselines.h"
#include "train/train_es_directions.h"

// ---- the learner ----

#define MOST 32

static struct {
    struct grt_es_desc descs[MOST];
    uint32_t made, ended, iterated, tried, loaded, error_lines;
    uint32_t iterations[MOST];  // of each learner
    uint32_t fails_at;          // the learner that is not made, from 1; 0: none
    uint32_t stops_at;          // iterations before a stop; 0: never
    bool policy_only;
    struct grt_es_report tries[MOST], trials[MOST];  // by number
    float returns[4];
} said;

// One for all: the newest.
struct grt_es *grt_es_create(struct grt_dev *dev, const struct grt_es_desc *desc) {
    (void)dev;
    assert_true(said.made < MOST);
    said.descs[said.made++] = *desc;
    return said.made == said.fails_at ? NULL : (struct grt_es *)(void *)&said;
}

void grt_es_destroy(struct grt_es **es) {
    said.ended += *es != NULL;
    *es = NULL;
}

const struct grt_es_desc *grt_es_desc_of(const struct grt_es *es) {
    (void)es;
    return &said.descs[said.made - 1];
}

bool grt_es_iterate(struct grt_es *es, struct grt_es_report *report) {
    assert_non_null(es);
    said.iterations[said.made - 1]++;
    *report = said.tries[said.iterated++];
    return true;
}

bool grt_es_evaluate(struct grt_es *es, uint32_t seed, struct grt_es_report *report) {
    assert_non_null(es);
    assert_int_equal(seed, 11);
    *report = said.trials[said.tried++];
    return true;
}

bool grt_es_load(struct grt_es *es, const struct grt_archive *archive, bool model_only) {
    (void)archive;
    assert_non_null(es);
    assert_true(said.tried == 1 && model_only);
    said.loaded++;
    return true;
}

bool grt_es_returns(const struct grt_es *es, float *returns) {
    (void)es;
    memcpy(returns, said.returns, sizeof said.returns);
    return true;
}

bool talk_stopped(void) {
    return said.stops_at > 0 && said.iterated >= said.stops_at;
}

void talk_error(const char *format, ...) {
    (void)format;
    said.error_lines++;
}

static int begin(void **state) {
    (void)state;
    memset(&said, 0, sizeof said);
    return 0;
}

// ---- baselines ----

static const struct grt_es_desc learnt = {.noise_std = 0.25f, .step_size = 0.5f, .num_dirs = 2};

// A third of the iterations, rounded up, for each of three noises, by learners that see nothing.
static void test_searches(void **state) {
    (void)state;
    static const struct {
        uint32_t iterations, each;
    } rows[] = {{1, 1}, {2, 1}, {3, 1}, {4, 2}, {7, 3}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct train_baseline found[TRAIN_BASELINES - 1];
        begin(NULL);
        assert_true(train_baselines(NULL, &learnt, NULL, rows[i].iterations, 11, found));
        assert_true(said.made == 4 && said.ended == 4 && said.loaded == 1);
        assert_int_equal(said.iterations[0], 0);
        const float noises[] = {0.25f, 0.25f, 0.1f * 0.25f, 1.0f};
        const float steps[] = {0.5f, 0.5f, 0.1f * 0.25f, 1.0f};
        for (int k = 0; k < 4; k++) {
            assert_true(said.descs[k].blind && said.descs[k].num_dirs == 2);
            assert_true(said.descs[k].noise_std == noises[k]);
            assert_true(said.descs[k].step_size == steps[k]);
            assert_int_equal(said.iterations[k], k > 0 ? rows[i].each : 0);
        }
        // Each iteration is followed by a trial of what it has come to.
        assert_int_equal(said.tried, 2 + 3 * rows[i].each);
    }
}

// The most good steps of any constant that was tried, with its own return; a trial that is better;
// and what did nothing, where nothing is better than it.
static void test_best(void **state) {
    (void)state;
    struct train_baseline found[TRAIN_BASELINES - 1];
    begin(NULL);
    said.trials[0] = (struct grt_es_report){.good_rate = 0.3f, .mean_return = -3};
    said.trials[1] = (struct grt_es_report){.good_rate = 0.2f, .mean_return = -2};
    for (int i = 0; i < 6; i++) {
        said.tries[i] = (struct grt_es_report){.iteration = (uint32_t)i + 1,
                                               .best_good = i == 1 ? 0.6f : 0.1f,
                                               .good_rate = 0.9f,
                                               .best_return = 10.0f * (float)i,
                                               .mean_return = -77,
                                               .fall_rate = 0.5f};
        said.trials[2 + i] = (struct grt_es_report){.good_rate = 0.4f, .mean_return = -4};
    }
    assert_true(train_baselines(NULL, &learnt, NULL, 6, 11, found));
    static const char *const names[] = {"no action", "its biases alone", "best constant action"};
    for (int i = 0; i < 3; i++) {
        assert_string_equal(found[i].name, names[i]);
    }
    assert_true(found[0].report.good_rate == 0.3f && found[0].report.mean_return == -3.0f);
    assert_true(found[1].report.good_rate == 0.2f && found[1].report.mean_return == -2.0f);
    assert_true(found[2].report.good_rate == 0.6f && found[2].report.mean_return == 10.0f);
    assert_true(found[2].report.iteration == 2 && found[2].report.fall_rate == 0.5f);
    begin(NULL);
    said.trials[0].good_rate = 0.3f;
    said.trials[4] = (struct grt_es_report){.good_rate = 0.7f, .mean_return = 5};
    said.tries[4] = (struct grt_es_report){.best_good = 0.65f, .best_return = 9};
    assert_true(train_baselines(NULL, &learnt, NULL, 6, 11, found));
    assert_true(found[2].report.good_rate == 0.7f && found[2].report.mean_return == 5.0f);
    begin(NULL);
    said.trials[0] = (struct grt_es_report){.good_rate = 0.3f, .mean_return = -3};
    said.tries[2].best_good = said.trials[3].good_rate = 0.3f;
    assert_true(train_baselines(NULL, &learnt, NULL, 6, 11, found));
    assert_true(found[2].report.good_rate == 0.3f && found[2].report.mean_return == -3.0f);
}

// A stop ends the search with what there is; a learner that cannot be made ends all.
static void test_ends(void **state) {
    (void)state;
    struct train_baseline found[TRAIN_BASELINES - 1];
    begin(NULL);
    said.stops_at = 2;
    said.tries[1].best_good = 0.5f;
    assert_true(train_baselines(NULL, &learnt, NULL, 9, 11, found));
    assert_true(said.iterated == 2 && said.made == said.ended);
    assert_true(found[2].report.good_rate == 0.5f);
    for (uint32_t fails = 1; fails <= 4; fails++) {
        begin(NULL);
        said.fails_at = fails;
        assert_false(train_baselines(NULL, &learnt, NULL, 3, 11, found));
        assert_int_equal(said.made, fails);
        assert_int_equal(said.ended, fails - 1);
    }
}

// ---- directions ----

static void holds(const char *path, const char *wanted) {
    char text[512] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text, wanted);
}

// The head once, however often the file is gone on with; numbers that come back bit by bit.
static void test_directions(void **state) {
    (void)state;
    char path[] = "/tmp/gpurt-directions-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    begin(NULL);
    struct grt_es *es =
        grt_es_create(NULL, &(struct grt_es_desc){.num_dirs = 2, .seed = 4294967295});
    struct es_directions d = {0};
    assert_true(es_directions_add(&d, es, 1));  // nobody asked for a file
    memcpy(said.returns, (const float[]){1, -0.1f, 16777217e10f, 0}, sizeof said.returns);
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(es_directions_open(&d, path));
        assert_true(es_directions_add(&d, es, 7 + i));
        es_directions_close(&d);
        assert_null(d.file);
    }
    holds(path, "iteration,direction,seed,return_plus,return_minus\n"
                "7,0,4294967295,1,-0.100000001\n"
                "7,1,4294967295,1.67772177e+17,0\n"
                "8,0,4294967295,1,-0.100000001\n"
                "8,1,4294967295,1.67772177e+17,0\n");
    assert_true(!d.failed && said.error_lines == 0);
    remove(path);
    assert_false(es_directions_open(&d, "/nowhere/file"));
    assert_int_equal(grt_last_status(), GRT_NO_OUTPUT);
    assert_string_equal(grt_last_error(), "cannot create /nowhere/file: No such file or directory");
    // What cannot be written is said once, and training goes on.
    if (access("/dev/full", W_OK) == 0 && es_directions_open(&d, "/dev/full")) {
        assert_true(es_directions_add(&d, es, 1) && es_directions_add(&d, es, 2));
        assert_true(d.failed && !d.file && said.error_lines == 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_searches),
        cmocka_unit_test(test_best),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_directions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
