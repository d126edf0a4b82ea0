// SPDX-License-Identifier: Apache-2.0
// The loop around PPO: an iteration that is given up leaves no trace, the host's loop has the same
// bits as the recorded one, and the environment alone takes the same steps.
#include "kits/ppo_kit.h"

#include <stdlib.h>
#include <string.h>

#include "rl/ppo_parts.h"

// ---- a stop ----

static int asks_left;  // until the answer is yes

static bool stop_after(void) {
    return asks_left-- <= 0;
}

// Everything that a checkpoint has; allocated.
static char *whole_state(const struct grt_ppo *ppo, size_t *bytes) {
    struct grt_archive *archive = grt_archive_create();
    assert_true(grt_ppo_save(ppo, archive));
    *bytes = 0;
    for (uint32_t i = 0; i < archive->tensor_count; i++) {
        *bytes += archive->tensors[i].bytes;
    }
    char *all = test_alloc(*bytes);
    size_t at = 0;
    for (uint32_t i = 0; i < archive->tensor_count; i++) {
        memcpy(all + at, archive->tensors[i].data, archive->tensors[i].bytes);
        at += archive->tensors[i].bytes;
    }
    grt_archive_destroy(&archive);
    return all;
}

static void same_state(const char *what, const struct grt_ppo *a, const struct grt_ppo *b) {
    size_t bytes_a = 0, bytes_b = 0;
    char *of_a = whole_state(a, &bytes_a), *of_b = whole_state(b, &bytes_b);
    assert_int_equal(bytes_a, bytes_b);
    test_same(test.dev, what, of_a, of_b, 1, bytes_a);
    free(of_a);
    free(of_b);
}

static void gives_up(const struct ppo_maker *m) {
    struct ppo_maker stoppable = *m;
    stoppable.desc.stop = stop_after;
    struct ppo_made whole = ppo_make(m), part = ppo_make(&stoppable);
    struct grt_ppo_report report;
    uint32_t stops = 0;
    // Before the first submit, between two, and so on until the iteration comes to its end. The
    // learner takes no time, so that every graph is one submit.
    for (int asks = 0; asks < 100; asks++) {
        asks_left = asks;
        assert_true(grt_ppo_iterate(part.ppo, &report));
        if (!report.stopped) {
            break;
        }
        stops++;
        same_state("after an iteration that was given up", part.ppo, whole.ppo);
    }
    assert_true(stops >= 1 + m->desc.epochs);
    assert_true(grt_ppo_iterate(whole.ppo, &report));
    assert_int_equal(report.iteration, 1);
    if (m->desc.batch > 0) {
        ppo_was_smaller(part.ppo);
    }
    same_state("after one that came to its end", part.ppo, whole.ppo);
    ppo_end(&whole);
    ppo_end(&part);
}

static void an_iteration_that_is_given_up_leaves_no_trace(void **state) {
    (void)state;
    struct ppo_maker discrete = ppo_uavs(), continuous = ppo_pendulums();
    discrete.desc.precision = GRT_F16;
    discrete.copies = 40;
    discrete.desc.batch = 720;
    continuous.desc.normalise = true;
    continuous.desc.optim.ema = 0.5;
    gives_up(&discrete);
    gives_up(&continuous);
}

static void an_evaluation_is_given_up(void **state) {
    (void)state;
    struct ppo_maker m = ppo_uavs();
    m.desc.stop = stop_after;
    struct ppo_made made = ppo_make(&m);
    struct grt_worlds *worlds = ppo_make_worlds(&m, 4, true);
    struct grt_ppo_report first, report;
    asks_left = 1000;
    assert_true(grt_ppo_evaluate(made.ppo, worlds, GRT_PPO_TRY_POLICY, 3, &first));
    assert_true(!first.stopped && first.episodes == 4);
    asks_left = 0;
    assert_true(grt_ppo_evaluate(made.ppo, worlds, GRT_PPO_TRY_POLICY, 3, &report));
    assert_true(report.stopped);
    asks_left = 1000;
    assert_true(grt_ppo_evaluate(made.ppo, worlds, GRT_PPO_TRY_POLICY, 3, &report));
    assert_true(!report.stopped && report.mean_return == first.mean_return);
    ppo_end(&made);
    grt_worlds_destroy(&worlds);
}

// ---- the host's loop ----

static void goes_by_host(const struct ppo_maker *m) {
    struct ppo_made device = ppo_make(m), host = ppo_make(m);
    for (int i = 0; i < 2; i++) {
        struct grt_ppo_report by_device, by_host;
        struct grt_ppo_times times;
        assert_true(grt_ppo_iterate(device.ppo, &by_device));
        assert_true(grt_ppo_iterate_by_host(host.ppo, &by_host, &times));
        same_state("by the host's loop", host.ppo, device.ppo);
        assert_true(by_device.mean_return == by_host.mean_return &&
                    by_device.value_loss == by_host.value_loss && by_device.rows == by_host.rows &&
                    by_device.epochs == by_host.epochs);
        double sum = 0;
        for (int k = 0; k < GRT_PPO_PHASE_COUNT; k++) {
            assert_true(times.seconds[k] > 0);
            sum += times.seconds[k];
        }
        assert_true(sum <= by_host.seconds);
        if (m->desc.batch > 0) {
            ppo_was_smaller(host.ppo);
        }
    }
    ppo_end(&device);
    ppo_end(&host);
}

static void the_loop_of_the_host_has_the_same_bits(void **state) {
    (void)state;
    struct ppo_maker discrete = ppo_uavs(), continuous = ppo_pendulums();
    discrete.desc.precision = GRT_BF16;
    discrete.copies = 40;
    discrete.desc.batch = 720;
    goes_by_host(&discrete);
    goes_by_host(&continuous);
}

// ---- the environment alone ----

static void the_environment_alone_changes_nothing(void **state) {
    (void)state;
    struct ppo_maker m = ppo_uavs();
    struct ppo_made with = ppo_make(&m), without = ppo_make(&m);
    struct grt_ppo_report report;
    double seconds = -1;
    TEST_REFUSED(grt_ppo_environment(with.ppo, &seconds), GRT_INVALID, "no iteration");
    for (int i = 0; i < 3; i++) {
        assert_true(grt_ppo_iterate(without.ppo, &report) && grt_ppo_iterate(with.ppo, &report));
        assert_true(grt_ppo_environment(with.ppo, &seconds));
        bool clock = grt_dev_info(test.dev)->caps.timestamps != 0;
        assert_true(clock ? seconds > 0 && report.acting > 0 : seconds == 0);
        same_state("after the environment alone", with.ppo, without.ppo);
    }
    // Other actions lead elsewhere, and that is seen. They are those of the last step: no episode
    // begins behind it.
    uint32_t flip = 0, at = 0;
    const struct grt_range actions =
        grt_ppo_actions(with.ppo, &with.ppo->learning, m.desc.horizon - 1);
    for (; at < actions.size; at += 4) {
        assert_true(grt_buf_read(actions.buf, actions.offset + at, &flip, 4));
        flip = flip == 0 ? 1 : 0;
        assert_true(grt_buf_write(actions.buf, actions.offset + at, &flip, 4));
    }
    TEST_REFUSED(grt_ppo_environment(with.ppo, &seconds), GRT_INVALID, "does not end");
    ppo_end(&with);
    ppo_end(&without);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(an_iteration_that_is_given_up_leaves_no_trace),
    TEST_CASE(an_evaluation_is_given_up),
    TEST_CASE(the_loop_of_the_host_has_the_same_bits),
    TEST_CASE(the_environment_alone_changes_nothing),
};
TEST_SUITE(ppoloop, true, cases);
