// SPDX-License-Identifier: Apache-2.0
// Where iterations of PPO spend their time, from clocks that are given: phases, what is left to the
// host, the whole, and clocks that disagree.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "train/train_ppo_time.h"

static void near_to(double got, double want) {
    if (!(fabs(got - want) <= 1e-12)) {
        fail_msg("%.15g, wanted %.15g", got, want);
    }
}

enum { HOST = GRT_PPO_PHASE_COUNT, WHOLE };

static void test_parts(void **state) {
    (void)state;
    struct ppo_part parts[PPO_PARTS];
    const struct grt_ppo_times times = {
        .seconds = {[GRT_PPO_PHASE_ENVIRONMENT] = 2, [GRT_PPO_PHASE_UPDATE] = 4},
        .busy = {[GRT_PPO_PHASE_ENVIRONMENT] = 1, [GRT_PPO_PHASE_UPDATE] = 5}};
    ppo_parts(&times, 10, parts);
    assert_string_equal(parts[GRT_PPO_PHASE_UPDATE].name, "update");
    assert_string_equal(parts[HOST].name, "host");
    assert_string_equal(parts[WHOLE].name, "whole");
    near_to(parts[GRT_PPO_PHASE_ENVIRONMENT].seconds, 2);
    near_to(parts[GRT_PPO_PHASE_ENVIRONMENT].share, 0.2);
    near_to(parts[GRT_PPO_PHASE_ENVIRONMENT].busy, 0.5);
    near_to(parts[GRT_PPO_PHASE_ACTIONS].busy, 0);
    near_to(parts[GRT_PPO_PHASE_UPDATE].share, 0.4);
    near_to(parts[GRT_PPO_PHASE_UPDATE].busy, 1);  // the device's clock is a little fast
    near_to(parts[HOST].seconds, 4);
    near_to(parts[HOST].share, 0.4);
    near_to(parts[HOST].busy, 0);
    near_to(parts[WHOLE].seconds, 10);
    near_to(parts[WHOLE].share, 1);
    near_to(parts[WHOLE].busy, 0.6);
    // Phases that take longer than the whole are the whole, and nothing is left to the host.
    ppo_parts(&times, 5, parts);
    near_to(parts[WHOLE].seconds, 6);
    near_to(parts[HOST].seconds, 0);
    near_to(parts[GRT_PPO_PHASE_UPDATE].share, 4.0 / 6);
    near_to(parts[WHOLE].busy, 1);
    // Nothing has no shares.
    ppo_parts(&(struct grt_ppo_times){{0}}, 0, parts);
    for (int i = 0; i < PPO_PARTS; i++) {
        assert_true(parts[i].seconds == 0 && parts[i].share == 0 && parts[i].busy == 0);
    }
}

// The environment's part of acting, which cannot be more than all of it.
static void test_times(void **state) {
    (void)state;
    const struct grt_ppo_report report = {.acting = 3, .valuing = 0.5f, .update = 2};
    static const struct {
        double given, environment, actions;
    } rows[] = {{1, 1, 2}, {0, 0, 3}, {3, 3, 0}, {4, 3, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_ppo_times times = ppo_times(&report, rows[i].given);
        const double want[] = {[GRT_PPO_PHASE_ENVIRONMENT] = rows[i].environment,
                               [GRT_PPO_PHASE_ACTIONS] = rows[i].actions,
                               [GRT_PPO_PHASE_ADVANTAGES] = 0.5,
                               [GRT_PPO_PHASE_UPDATE] = 2};
        for (int k = 0; k < GRT_PPO_PHASE_COUNT; k++) {
            near_to(times.seconds[k], want[k]);
            near_to(times.busy[k], want[k]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
