// SPDX-License-Identifier: Apache-2.0
// Supervised runs where memory is short: what is refused, in which words, and what fits instead.
#include "kits/run_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/supervised.h"
#include "gpurt/task.h"

// The device under test with so many bytes.
static struct grt_dev *with_limit(uint64_t bytes) {
    struct grt_dev *dev = grt_dev_create(
        grt_dev_desc(.device = test.selector, .mem_limit = bytes, .as_gpu = test.as_gpu));
    assert_non_null(dev);
    return dev;
}

// A device with room for a part of the activations.
static void short_memory(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    struct run_kit_watch w = {0};
    struct grt_config c = run_kit_config("all", PAIRS("batch_size=256", "hidden=64", "epochs=1"));
    struct grt_supervised *run = run_kit_create(&c, false, &w);
    assert_non_null(run);
    uint64_t bytes = grt_supervised_info(run).bytes;
    assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_EPOCHS);
    grt_supervised_destroy(&run);
    double loss = w.last_loss;
    const uint64_t limit = bytes / 4 * 3;
    struct grt_dev *usual = test.dev;
    test.dev = with_limit(limit);
    c = run_kit_config("short", PAIRS("batch_size=256", "hidden=64", "epochs=1"));
    char text[96];
    snprintf(text, sizeof text, "a step of 256 samples needs %.1f MB, %.1f MB may be taken",
             (double)bytes / 1e6, (double)limit / 1e6);
    TEST_REFUSED(run_kit_create(&c, false, &w), GRT_NO_MEMORY, text);
    // What is said to fit does, with the accumulation that was asked for, and a little more does
    // not.
    c = run_kit_config("short", PAIRS("batch_size=128", "accumulate=2", "hidden=64", "epochs=1"));
    struct grt_supervised *larger = grt_supervised_create(&(struct grt_supervised_desc){
        .dev = usual, .config = &c, .report = run_kit_report, .context = &w});
    assert_non_null(larger);
    uint64_t halves = grt_supervised_info(larger).bytes;
    grt_supervised_destroy(&larger);
    grt_dev_destroy(&test.dev);
    test.dev = with_limit(halves / 4 * 3);
    TEST_REFUSED(run_kit_create(&c, false, &w), GRT_NO_MEMORY, "batch_size=");
    uint32_t fits = (uint32_t)atoi(strstr(grt_last_error(), "batch_size=") + 11);
    assert_true(fits > 64 && fits < 128);
    for (uint32_t more = 0; more <= 16; more += 16) {
        char pair[32];
        snprintf(pair, sizeof pair, "batch_size=%u", fits + more);
        assert_true(grt_config_override(&c, pair));
        if (more) {
            TEST_REFUSED(run_kit_create(&c, false, &w), GRT_NO_MEMORY, "batch_size=");
            continue;
        }
        run = run_kit_create(&c, false, &w);
        assert_non_null(run);
        grt_supervised_destroy(&run);
    }
    grt_dev_destroy(&test.dev);
    test.dev = with_limit(bytes / 4 * 3);
    c = run_kit_config("short", PAIRS("batch_size=256", "hidden=64", "epochs=1"));
    w = (struct run_kit_watch){0};
    assert_true(grt_config_override(&c, "auto_accumulate=true"));
    assert_int_equal(run_kit_watched(&c, false, &w), GRT_ENDED_EPOCHS);
    assert_int_equal(w.news[GRT_RUN_NEWS_NOTE], 1);
    assert_non_null(strstr(w.text, "micro-batches"));
    // The same sums in another order.
    assert_true(fabs(w.last_loss - loss) < 1e-5 * loss);
    grt_dev_destroy(&test.dev);
    test.dev = with_limit(1000);
    TEST_REFUSED(run_kit_create(&c, false, &w), GRT_NO_MEMORY, "even one sample");
    grt_dev_destroy(&test.dev);
    test.dev = usual;
    run_kit_end();
}

static struct grt_module *make_linear(const void *of) {
    return grt_linear_create(of);
}

// What is asked for besides a learner: samples of the largest piece, and what is taken already. The
// largest batch that is said to fit is the largest one, by the plans of all.
static void besides_a_learner(void **state) {
    (void)state;
    const struct grt_linear_desc linear = {.outputs = 2};
    struct grt_learner_desc desc = {.make = make_linear,
                                    .of = &linear,
                                    .input = {1, {300}},
                                    .outputs = 2,
                                    .optim = grt_optim_defaults(GRT_OPTIM_ADAM),
                                    .batch = 10};
    static const struct {
        uint32_t accumulate, largest;
    } pieces[] = {{0, 10}, {1, 10}, {3, 4}, {4, 3}, {10, 1}};
    struct grt_fit fit, plain;
    // What is free on a GPU changes from one question to the next.
    struct grt_dev *dev = with_limit(1u << 20);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        desc.accumulate = pieces[i].accumulate;
        assert_true(grt_task_fit(dev, &desc, &(struct grt_fit_besides){0}, &plain));
        assert_true(
            grt_task_fit(dev, &desc, &(struct grt_fit_besides){.row = 1000, .bytes = 77}, &fit));
        assert_int_equal(fit.needed - plain.needed, 1000 * pieces[i].largest);
        assert_int_equal(plain.left - fit.left, 77);
        assert_true(fit.fits && fit.batch == 10);
        assert_int_equal(fit.accumulate, pieces[i].accumulate ? pieces[i].accumulate : 1);
    }
    assert_true(grt_task_fit(dev, &desc, &(struct grt_fit_besides){.bytes = UINT64_MAX}, &fit));
    assert_true(!fit.fits && fit.left == 0 && fit.batch == 0 && fit.accumulate == 0);
    uint64_t needed[11];
    const struct grt_fit_besides besides = {.row = 1000};
    desc.accumulate = 0;
    for (uint32_t batch = 1; batch <= 10; batch++) {
        desc.batch = batch;
        assert_true(grt_task_fit(dev, &desc, &besides, &fit));
        needed[batch] = fit.needed;
        assert_true(batch == 1 || needed[batch] > needed[batch - 1]);
    }
    grt_dev_destroy(&dev);
    for (uint32_t batch = 1; batch < 10; batch++) {
        for (int less = 0; less < 2; less++) {
            struct grt_dev *tight = with_limit(needed[batch] - (uint64_t)less);
            assert_true(grt_task_fit(tight, &desc, &besides, &fit));
            assert_true(!fit.fits && fit.needed == needed[10]);
            assert_int_equal(fit.batch, batch - (uint32_t)less);
            grt_dev_destroy(&tight);
        }
    }
}

// Sums of micro-batches are part of what fits: what is planned can be allocated.
static void short_memory_of_sums(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    struct run_kit_watch w = {0};
    struct grt_config c =
        run_kit_config("sums", PAIRS("batch_size=128", "hidden=64", "epochs=1", "micro_batches=8"));
    struct grt_supervised *run = run_kit_create(&c, false, &w);
    assert_non_null(run);
    uint64_t bytes = grt_supervised_info(run).bytes;
    // Eight need three sums of all gradients, 4 * 64 + 64 * 64 ... numbers each.
    assert_true(grt_dev_mem_use(test.dev, "gradients").current > 3 * 64 * 64 * sizeof(float));
    grt_supervised_destroy(&run);
    struct grt_dev *usual = test.dev;
    // From too little to a little more than enough: what is refused is refused by the plan, in its
    // words, and not by an allocation.
    uint32_t refused = 0, made = 0;
    for (uint64_t limit = bytes / 2; limit < bytes + bytes / 4; limit += bytes / 32) {
        test.dev = with_limit(limit);
        run = run_kit_create(&c, false, &w);
        if (!run) {
            const char *said = grt_last_error();
            test_log.expected++;
            assert_true(strstr(said, "a micro-batch of 16 samples needs") != NULL ||
                        strstr(said, "even one sample at a time") != NULL);
        }
        *(run ? &made : &refused) += 1;
        grt_supervised_destroy(&run);
        grt_dev_destroy(&test.dev);
    }
    assert_true(refused > 0 && made > 0);
    test.dev = usual;
    run_kit_end();
}

// Rows stay on the device when they fit there once, the learner beside them; else in memory, with a
// line that says so, and the same bits.
static void caches_that_do_not_fit(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    struct run_kit_watch w = {0};
    struct grt_config c = run_kit_config("usual", PAIRS("epochs=1", "cache=device"));
    struct grt_supervised *run = run_kit_create(&c, false, &w);
    assert_non_null(run);
    uint64_t bytes = grt_supervised_info(run).bytes, rows = 300 * (4 + 1) * 4;
    assert_int_equal(grt_dev_mem_use(test.dev, "data").current, rows);  // once, for both parts
    assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_EPOCHS);
    grt_supervised_destroy(&run);
    assert_int_equal(w.news[GRT_RUN_NEWS_NOTE], 0);
    struct grt_dev *usual = test.dev;
    const struct {
        uint64_t limit;
        const char *cache, *text;
    } trials[] = {{bytes + bytes / 4, "device", NULL},
                  {bytes - rows / 2, "ram", "a step "},
                  {rows - 4, "", " MB, and "}};
    for (int i = 0; i < 3; i++) {
        char dir[16], same[64];
        test.dev = with_limit(trials[i].limit);
        snprintf(dir, sizeof dir, "limit%d", i);
        c = run_kit_config(dir, PAIRS("epochs=1", "cache=device"));
        w = (struct run_kit_watch){0};
        if (trials[i].cache[0]) {
            run = run_kit_create(&c, false, &w);
            assert_non_null(run);
            assert_string_equal(grt_supervised_info(run).config->cache, trials[i].cache);
            assert_int_equal(grt_run_go(grt_supervised_driver(run)), GRT_ENDED_EPOCHS);
            grt_supervised_destroy(&run);
            snprintf(same, sizeof same, "%s/step-000000000017.h5", dir);
            run_kit_equal("usual/step-000000000017.h5", same);
            // `auto` comes to the same place, which is no news.
            struct run_kit_watch v = {0};
            c = run_kit_config("auto", PAIRS("epochs=1", "cache=auto"));
            run = run_kit_create(&c, false, &v);
            assert_non_null(run);
            assert_string_equal(grt_supervised_info(run).config->cache, trials[i].cache);
            assert_non_null(strstr(grt_supervised_info(run).cache_why, "may be taken"));
            assert_int_equal(v.news[GRT_RUN_NEWS_NOTE], 0);
            grt_supervised_destroy(&run);
        } else {
            TEST_REFUSED(run_kit_create(&c, false, &w), GRT_NO_MEMORY, "may be taken");
        }
        assert_int_equal(w.news[GRT_RUN_NEWS_NOTE], trials[i].text != NULL);
        assert_true(!trials[i].text ||
                    (strstr(w.text, trials[i].text) && strstr(w.text, "(cache: ram)")));
        grt_dev_destroy(&test.dev);
    }
    test.dev = usual;
    run_kit_end();
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(besides_a_learner),
    TEST_CASE(short_memory),
    TEST_CASE(short_memory_of_sums),
    TEST_CASE(caches_that_do_not_fit),
};
TEST_SUITE(tight, true, cases);
