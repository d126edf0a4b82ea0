// SPDX-License-Identifier: Apache-2.0
// PPO where it ends early or is large: the host's loop that is given up, numbers that are none,
// more rows than one round of workgroups, and times that add up.
#include "kits/ref_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/ppo_team.h"
#include "kits/ppo_kit.h"
#include "rl/ppo_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_words.k"

static int asks_left;

static bool stop_after(void) {
    return asks_left-- <= 0;
}

static bool same_tensor(const struct grt_tensor *a, const struct grt_tensor *b) {
    void *x = ppo_read(a), *y = ppo_read(b);
    bool same = memcmp(x, y, grt_tensor_bytes(a)) == 0;
    free(x);
    free(y);
    return same;
}

static bool same_learner(const struct grt_ppo *a, const struct grt_ppo *b) {
    bool same = a->done == b->done && same_tensor(a->params.master, b->params.master) &&
                same_tensor(a->kept, b->kept) && same_tensor(a->state, b->state) &&
                same_tensor(a->learning.control, b->learning.control);
    for (uint32_t i = 0; i < 3; i++) {
        same = same &&
               same_tensor(grt_plan_at(a->plan, "worlds", i), grt_plan_at(b->plan, "worlds", i));
    }
    return same;
}

// The loop of the host asks before every step of the copies, then before every epoch.
static void loops_of_the_host_that_are_given_up(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    m.copies = 2;
    m.desc.horizon = 4;
    m.desc.epochs = 2;
    struct ppo_made whole = ppo_make(&m);
    m.desc.stop = stop_after;
    struct ppo_made part = ppo_make(&m);
    struct grt_ppo_report r, want;
    struct grt_ppo_times times;
    uint32_t stops = 0;
    for (int asks = 0; asks < 40; asks++) {
        asks_left = asks;
        memset(&times, 7, sizeof times);
        assert_true(grt_ppo_iterate_by_host(part.ppo, &r, &times));
        if (!r.stopped) {
            break;
        }
        stops++;
        assert_true(r.iteration == 0 && r.rows == 0 && r.epochs == 0);
        assert_true(same_learner(part.ppo, whole.ppo));
    }
    assert_int_equal(stops, 4 + 2);
    assert_true(grt_ppo_iterate(whole.ppo, &want));
    assert_true(same_learner(part.ppo, whole.ppo));
    assert_true(r.iteration == 1 && r.epochs == 2 && r.rows == want.rows && r.kl == want.kl);
    // What it says of the device's time is that of its parts.
    double acting = times.busy[GRT_PPO_PHASE_ENVIRONMENT] + times.busy[GRT_PPO_PHASE_ACTIONS];
    assert_true(r.acting == acting && r.valuing == times.busy[GRT_PPO_PHASE_ADVANTAGES] &&
                r.update == times.busy[GRT_PPO_PHASE_UPDATE]);
    for (int i = 0; i < GRT_PPO_PHASE_COUNT; i++) {
        assert_true(times.busy[i] > 0 && times.busy[i] <= times.seconds[i] + 1e-3);
    }
    assert_true(want.acting > 0 && want.valuing > 0 && want.update > 0);
    assert_true(want.acting + want.valuing + want.update <= want.seconds + 1e-3);
    ppo_end(&whole);
    ppo_end(&part);
}

static void break_network(struct grt_ppo *ppo) {
    const float none = NAN;
    const struct grt_param *bias = ppo_param(ppo, "critic.layers.2.bias");
    assert_true(grt_buf_write(bias->master.range.buf, bias->master.range.offset, &none, 4));
}

// It says in which iteration, and which number to change.
static void losses_that_are_none(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    struct grt_ppo_report r;
    struct grt_ppo_times times;
    m.copies = 2;
    m.desc.horizon = 4;
    m.desc.epochs = 1;
    struct ppo_made made = ppo_make(&m), by_host = ppo_make(&m);
    assert_true(grt_ppo_iterate(made.ppo, &r));
    break_network(made.ppo);
    break_network(by_host.ppo);
    TEST_REFUSED(grt_ppo_iterate(made.ppo, &r), GRT_INVALID,
                 "ppo: iteration 2: a loss or gradient is not finite; try a lower learning rate");
    TEST_REFUSED(grt_ppo_iterate_by_host(by_host.ppo, &r, &times), GRT_INVALID,
                 "ppo: iteration 1: a loss or gradient is not finite; try a lower learning rate");
    assert_int_equal(made.ppo->done, 1);
    assert_int_equal(by_host.ppo->done, 0);
    double seconds;
    TEST_REFUSED(grt_ppo_environment(made.ppo, &seconds), GRT_INVALID, "no iteration was done");
    ppo_end(&made);
    ppo_end(&by_host);
}

// ---- many rows ----

enum { COPIES = 520, STEPS = 16 };  // 256 workgroups of 16 lanes have 4096 rows

static struct grt_ppo *part_of(struct ppo_maker *m, struct ppo_made *made, uint32_t part,
                               uint32_t parts) {
    made->worlds = grt_worlds_create(
        test.dev, grt_worlds_desc(.env = grt_env_find("pendulum"), .copies = COPIES / parts,
                                  .first = part * (COPIES / parts), .length = 6));
    made->actor =
        (struct grt_mlp_desc){.depth = PPO_DEPTH, .hidden = 2, .outputs = 1, .act = GRT_ACT_TANH};
    m->desc.worlds = made->worlds;
    m->desc.actor = m->desc.critic = (struct grt_ppo_net){grt_mlp_make, &made->actor};
    m->desc.part = part;
    m->desc.parts = parts > 1 ? parts : 0;
    made->ppo = grt_ppo_create(test.dev, &m->desc);
    assert_non_null(made->ppo);
    return made->ppo;
}

// Sums over so many rows that all workgroups have some: norms, moments and losses are those of all.
static void sums_over_many_rows(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    m.desc.horizon = STEPS;
    m.desc.epochs = 1;
    m.desc.normalise = true;
    struct ppo_made made[3] = {{0}};
    struct grt_ppo *halves[2] = {part_of(&m, &made[0], 0, 2), part_of(&m, &made[1], 1, 2)};
    struct grt_ppo *whole = part_of(&m, &made[2], 0, 1);
    struct grt_ppo_team *team =
        grt_ppo_team_create(grt_ppo_team_desc(.learners = halves, .count = 2));
    assert_non_null(team);
    struct grt_ppo_report got = {0}, want = {0};
    assert_true(grt_ppo_team_iterate(team, &got) && grt_ppo_iterate(whole, &want));
    const double pairs[][2] = {{got.rows, want.rows},
                               {got.episodes, want.episodes},
                               {got.mean_return, want.mean_return},
                               {got.explained, want.explained},
                               {got.value_loss, want.value_loss},
                               {got.entropy, want.entropy},
                               {got.grad_norm, want.grad_norm}};
    // Two of the steps began anew.
    assert_true(want.rows == COPIES * 14 && want.episodes == 2 * COPIES);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        ppo_near("number", i, pairs[i][0], pairs[i][1], 2e-5 * (1 + fabs(pairs[i][1])));
    }
    // Mean and deviation of the advantages; of the observations; how many there were.
    float *norms[2] = {ppo_read(halves[1]->norms), ppo_read(whole->norms)};
    ppo_near("mean", 0, (double)norms[0][PPO_MEAN], (double)norms[1][PPO_MEAN],
             1e-5 * (1 + fabs((double)norms[1][PPO_MEAN])));
    ppo_near("1 / deviation", 0, (double)norms[0][PPO_INVERSE], (double)norms[1][PPO_INVERSE],
             1e-5 * (double)norms[1][PPO_INVERSE]);
    float *seen[2] = {ppo_read(halves[0]->norm), ppo_read(whole->norm)};
    float *counts[2] = {ppo_read(halves[0]->counts), ppo_read(whole->counts)};
    for (size_t i = 0; i < 9; i++) {
        ppo_near("moment", i, (double)seen[0][i], (double)seen[1][i],
                 1e-5 * (1 + fabs((double)seen[1][i])));
    }
    assert_true(counts[0][0] == COPIES * 14 && counts[1][2] == COPIES * 14);
    for (int i = 0; i < 2; i++) {
        free(norms[i]);
        free(seen[i]);
        free(counts[i]);
    }
    grt_ppo_team_destroy(&team);
    for (int i = 0; i < 3; i++) {
        ppo_end(&made[i]);
    }
}

static const struct CMUnitTest cases[] = {
    REF_CASE(loops_of_the_host_that_are_given_up),
    REF_CASE(losses_that_are_none),
    REF_CASE(sums_over_many_rows),
};
TEST_SUITE(ppolimits, false, cases);
