// SPDX-License-Identifier: Apache-2.0
// Teams of PPO in one process: parts learn as one learner with all copies does, whatever each part
// has of rows that count; what they save and load; what is refused.
#include "kits/ref_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/ppo_team.h"
#include "kits/ppo_kit.h"
#include "rl/ppo_parts.h"

#define MOST 4

struct parts {
    uint32_t count;
    struct grt_worlds *worlds[MOST];
    struct grt_mlp_desc actor, critic;
    struct grt_ppo *learners[MOST];
    struct grt_ppo_team *team;
};

// The copies of one learner, cut into parts.
static struct parts *make_parts(const struct ppo_maker *m, uint32_t count) {
    struct parts *p = test_alloc(sizeof *p);
    *p = (struct parts){.count = count};
    for (uint32_t k = 0; k < count; k++) {
        p->worlds[k] = grt_worlds_create(
            test.dev, grt_worlds_desc(.env = grt_env_find(m->env), .settings = m->settings,
                                      .setting_count = m->setting_count, .length = m->length,
                                      .copies = m->copies / count, .first = k * m->copies / count));
        assert_non_null(p->worlds[k]);
        const struct grt_worlds_sizes *sizes = grt_worlds_sizes(p->worlds[k]);
        p->actor = (struct grt_mlp_desc){.depth = PPO_DEPTH,
                                         .hidden = PPO_HIDDEN,
                                         .outputs = sizes->choices ? sizes->choices : sizes->act,
                                         .act = GRT_ACT_TANH};
        p->critic = p->actor;
        p->critic.outputs = 1;
        struct grt_ppo_desc d = m->desc;
        d.worlds = p->worlds[k];
        d.actor = (struct grt_ppo_net){grt_mlp_make, &p->actor};
        d.critic = (struct grt_ppo_net){grt_mlp_make, &p->critic};
        d.part = k;
        d.parts = count;
        d.batch = m->desc.batch / count;
        p->learners[k] = grt_ppo_create(test.dev, &d);
        assert_non_null(p->learners[k]);
    }
    p->team = grt_ppo_team_create(grt_ppo_team_desc(.learners = p->learners, .count = count));
    assert_non_null(p->team);
    return p;
}

static void end_parts(struct parts **parts) {
    struct parts *p = *parts;
    grt_ppo_team_destroy(&p->team);
    assert_null(p->team);
    for (uint32_t k = 0; k < p->count; k++) {
        grt_ppo_destroy(&p->learners[k]);
        grt_worlds_destroy(&p->worlds[k]);
    }
    free(p);
    *parts = NULL;
}

static void same_numbers(const struct grt_ppo_report *got, const struct grt_ppo_report *want) {
    assert_true(got->episodes == want->episodes && got->rows == want->rows);
    assert_int_equal(got->iteration, want->iteration);
    assert_int_equal(got->epochs, want->epochs);
    const double pairs[][2] = {{got->mean_return, want->mean_return},
                               {got->length, want->length},
                               {got->terms[0], want->terms[0]},
                               {got->terms[1], want->terms[1]},
                               {got->terms[2], want->terms[2]},
                               {got->policy_loss, want->policy_loss},
                               {got->value_loss, want->value_loss},
                               {got->entropy, want->entropy},
                               {got->kl, want->kl},
                               {got->clip_rate, want->clip_rate},
                               {got->explained, want->explained},
                               {got->grad_norm, want->grad_norm},
                               {got->lr, want->lr}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        ppo_near("number", i, pairs[i][0], pairs[i][1], 2e-5 * (1 + fabs(pairs[i][1])));
    }
}

static void near_tensors(const char *what, const struct grt_tensor *a, const struct grt_tensor *b,
                         double bound) {
    float *got = ppo_read(a), *want = ppo_read(b);
    for (size_t i = 0; i < grt_tensor_count(b); i++) {
        ppo_near(what, i, (double)got[i], (double)want[i], bound * (1 + fabs((double)want[i])));
    }
    free(got);
    free(want);
}

// All rows in one minibatch: gradients, norms and moments of the parts are those of the whole.
static void learn_as_one(struct ppo_maker m, uint32_t count) {
    m.desc.optim = grt_optim_defaults(GRT_OPTIM_SGD);
    m.desc.optim.lr = 0.1;
    m.desc.epochs = 2;
    m.desc.clip = 0.02;
    m.desc.entropy_weight = 0.05;
    struct parts *p = make_parts(&m, count);
    struct ppo_made one = ppo_make(&m);
    struct grt_ppo_report got, want;
    double seconds = -1;
    TEST_REFUSED(grt_ppo_team_environment(p->team, &seconds), GRT_INVALID, "no iteration was done");
    for (int i = 0; i < 2; i++) {
        assert_true(grt_ppo_team_iterate(p->team, &got));
        assert_true(grt_ppo_iterate(one.ppo, &want));
        same_numbers(&got, &want);
        assert_true(got.seconds > 0 && !got.stopped);
        for (uint32_t k = 0; k < count; k++) {
            struct grt_ppo *ppo = p->learners[k];
            near_tensors("a parameter", ppo->params.master, one.ppo->params.master, 2e-5);
            if (one.ppo->norm) {
                near_tensors("a moment", ppo->norm, one.ppo->norm, 1e-5);
                near_tensors("a count", ppo->counts, one.ppo->counts, 0);
            }
            float *first = ppo_read(p->learners[0]->params.master);
            float *own = ppo_read(ppo->params.master);
            assert_memory_equal(own, first, ppo->params.elements * sizeof *own);
            free(first);
            free(own);
        }
        assert_true(grt_ppo_team_environment(p->team, &seconds));
        bool clock = grt_dev_info(test.dev)->caps.timestamps != 0;
        assert_true(clock ? seconds > 0 : seconds == 0);
    }
    ppo_end(&one);
    end_parts(&p);
}

static void parts_learn_as_one_learner(void **state) {
    (void)state;
    struct ppo_maker discrete = ppo_uavs(), continuous = ppo_pendulums();
    discrete.copies = 4;
    discrete.length = 5;
    discrete.desc.horizon = 7;
    continuous.copies = 4;
    continuous.length = 3;
    continuous.desc.horizon = 5;
    continuous.desc.normalise = true;
    learn_as_one(discrete, 4);
    learn_as_one(continuous, 2);
    learn_as_one(continuous, 1);
}

// Epochs end by what all parts have moved, and behind the first at the soonest.
static void epochs_of_a_team(void **state) {
    (void)state;
    static const struct {
        double target;
        uint32_t epochs;
    } rows[] = {{0, 3}, {1e9, 3}, {1e-12, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ppo_maker m = ppo_pendulums();
        struct grt_ppo_report r;
        m.copies = 2;
        m.desc.horizon = 4;
        m.desc.epochs = 3;
        m.desc.target_kl = rows[i].target;
        struct parts *p = make_parts(&m, 2);
        assert_true(grt_ppo_team_iterate(p->team, &r));
        assert_int_equal(r.epochs, rows[i].epochs);
        assert_true(r.kl > 0 || rows[i].epochs < 2);
        end_parts(&p);
    }
}

// ---- checkpoints ----

static void checkpoints_of_a_team(void **state) {
    (void)state;
    struct ppo_maker m = ppo_uavs();
    struct grt_ppo_report r;
    m.copies = 2;
    m.length = 4;
    m.desc.horizon = 6;
    m.desc.batch = 18;
    m.desc.epochs = 1;
    struct parts *whole = make_parts(&m, 2), *rest = make_parts(&m, 2);
    struct ppo_made one = ppo_make(&m);
    assert_true(grt_ppo_iterate(one.ppo, &r));
    assert_true(grt_ppo_team_iterate(whole->team, &r));
    struct grt_archive *of_team = grt_archive_create(), *of_one = grt_archive_create();
    assert_true(grt_ppo_team_save(whole->team, of_team) && grt_ppo_save(one.ppo, of_one));
    // As one learner with all copies has it, which took the same steps.
    assert_int_equal(of_team->tensor_count, of_one->tensor_count);
    static const char *const worlds[] = {"worlds/state", "worlds/book", "worlds/totals"};
    for (int i = 0; i < 3; i++) {
        const struct grt_archive_tensor *a = grt_archive_find(of_team, worlds[i]);
        const struct grt_archive_tensor *b = grt_archive_find(of_one, worlds[i]);
        assert_true(a && b && a->bytes == b->bytes && a->shape[0] == b->shape[0] &&
                    a->shape[1] == b->shape[1] && a->dtype == b->dtype);
        assert_memory_equal(a->data, b->data, b->bytes);
    }
    // A team goes on with the same bits, also with what one learner has left.
    assert_true(grt_ppo_team_load(rest->team, of_team, GRT_PPO_ALL));
    assert_true(grt_ppo_team_iterate(rest->team, &r));
    assert_int_equal(r.iteration, 2);
    assert_true(grt_ppo_team_iterate(whole->team, &r));
    for (uint32_t k = 0; k < 2; k++) {
        near_tensors("resumed", rest->learners[k]->params.master, whole->learners[k]->params.master,
                     0);
        near_tensors("worlds", grt_plan_at(rest->learners[k]->plan, "worlds", 2),
                     grt_plan_at(whole->learners[k]->plan, "worlds", 2), 0);
    }
    assert_true(grt_ppo_team_load(rest->team, of_one, GRT_PPO_ALL));
    assert_true(grt_ppo_load(one.ppo, of_team, GRT_PPO_ALL));
    // Networks alone leave the copies where they are.
    void *before = ppo_read(grt_plan_at(rest->learners[1]->plan, "worlds", 0));
    assert_true(grt_ppo_team_iterate(rest->team, &r));
    void *there = ppo_read(grt_plan_at(rest->learners[1]->plan, "worlds", 0));
    assert_true(grt_ppo_team_load(rest->team, of_team, GRT_PPO_NETWORKS));
    void *after = ppo_read(grt_plan_at(rest->learners[1]->plan, "worlds", 0));
    uint64_t bytes = grt_tensor_bytes(grt_plan_at(rest->learners[1]->plan, "worlds", 0));
    assert_memory_equal(after, there, bytes);
    assert_memory_not_equal(after, before, bytes);
    free(before);
    free(there);
    free(after);
    // Copies that are fewer, or none.
    struct grt_archive_tensor *t = grt_archive_find(of_team, "worlds/book");
    t->shape[1]--;
    TEST_REFUSED(grt_ppo_team_load(rest->team, of_team, GRT_PPO_ALL), GRT_BAD_DATA,
                 "the archive: tensor 'worlds/book' is u32 [");
    t->shape[1]++;
    t->name[0] = 'W';
    TEST_REFUSED(grt_ppo_team_load(rest->team, of_team, GRT_PPO_ALL), GRT_BAD_DATA,
                 "the archive: tensor 'worlds/book' is missing");
    assert_true(grt_ppo_team_load(rest->team, of_team, GRT_PPO_ACTOR));
    grt_archive_destroy(&of_team);
    grt_archive_destroy(&of_one);
    ppo_end(&one);
    end_parts(&whole);
    end_parts(&rest);
}

// ---- stops ----

static int asks_left;

static bool stop_after(void) {
    return asks_left-- <= 0;
}

// An iteration that is given up is taken back by all parts.
static void a_team_that_is_stopped(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    struct grt_ppo_report r;
    m.copies = 2;
    m.desc.horizon = 4;
    m.desc.epochs = 2;
    m.desc.stop = stop_after;
    struct parts *p = make_parts(&m, 2), *other = make_parts(&m, 2);
    uint32_t stops = 0;
    for (int asks = 0; asks < 60; asks++) {
        asks_left = asks;
        assert_true(grt_ppo_team_iterate(p->team, &r));
        if (!r.stopped) {
            break;
        }
        assert_true(r.iteration == 0 && r.rows == 0);
        stops++;
        for (uint32_t k = 0; k < 2; k++) {
            near_tensors("taken back", p->learners[k]->params.master,
                         other->learners[k]->params.master, 0);
            near_tensors("taken back", p->learners[k]->learning.control,
                         other->learners[k]->learning.control, 0);
            assert_int_equal(p->learners[k]->done, 0);
        }
    }
    assert_true(stops > 2);
    asks_left = 1 << 20;
    assert_true(grt_ppo_team_iterate(other->team, &r));
    for (uint32_t k = 0; k < 2; k++) {
        near_tensors("at its end", p->learners[k]->params.master, other->learners[k]->params.master,
                     0);
    }
    end_parts(&p);
    end_parts(&other);
}

// ---- refusals ----

static void teams_that_are_none(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    struct grt_ppo_report r;
    double seconds;
    m.copies = 4;
    m.desc.epochs = 1;
    struct parts *p = make_parts(&m, 2);
    struct ppo_made alone = ppo_make(&m);
    TEST_REFUSED(grt_ppo_team_create(NULL), GRT_INVALID, "team of PPO: no desc");
    TEST_REFUSED(grt_ppo_team_create(grt_ppo_team_desc(.count = 2)), GRT_INVALID,
                 "team of PPO: no learners");
    TEST_REFUSED(grt_ppo_team_create(grt_ppo_team_desc(.learners = p->learners)), GRT_INVALID,
                 "team of PPO: no learners");
    TEST_REFUSED(grt_ppo_team_create(grt_ppo_team_desc(.learners = p->learners, .count = 1)),
                 GRT_INVALID, "team of PPO: learner 0 is not part 0 of 1, a power of two");
    struct grt_ppo *turned[] = {p->learners[1], p->learners[0]};
    TEST_REFUSED(grt_ppo_team_create(grt_ppo_team_desc(.learners = turned, .count = 2)),
                 GRT_INVALID, "learner 0 is not part 0 of 2");
    struct grt_ppo *twice[] = {p->learners[0], p->learners[0]};
    TEST_REFUSED(grt_ppo_team_create(grt_ppo_team_desc(.learners = twice, .count = 2)), GRT_INVALID,
                 "learner 1 is not part 1 of 2");
    struct grt_ppo *less[] = {p->learners[0], NULL};
    TEST_REFUSED(grt_ppo_team_create(grt_ppo_team_desc(.learners = less, .count = 2)), GRT_INVALID,
                 "learner 1 is not part 1 of 2");
    TEST_REFUSED(grt_ppo_team_create(grt_ppo_team_desc(.learners = &alone.ppo, .count = 1)),
                 GRT_INVALID, "learner 0 is not part 0 of 1");
    p->learners[0]->desc.parts = p->learners[1]->desc.parts = 3;
    struct grt_ppo *three[] = {p->learners[0], p->learners[1], p->learners[1]};
    TEST_REFUSED(grt_ppo_team_create(grt_ppo_team_desc(.learners = three, .count = 3)), GRT_INVALID,
                 "learner 0 is not part 0 of 3, a power of two");
    p->learners[0]->desc.parts = p->learners[1]->desc.parts = 2;
    TEST_REFUSED(grt_ppo_iterate(p->learners[0], &r), GRT_INVALID,
                 "grt_ppo_iterate: a learner of a team learns with it");
    struct grt_archive *archive = grt_archive_create();
    TEST_REFUSED(grt_ppo_team_iterate(NULL, &r), GRT_INVALID, "grt_ppo_team_iterate: no team");
    TEST_REFUSED(grt_ppo_team_iterate(p->team, NULL), GRT_INVALID,
                 "grt_ppo_team_iterate: no report");
    TEST_REFUSED(grt_ppo_team_environment(NULL, &seconds), GRT_INVALID,
                 "grt_ppo_team_environment: no team");
    TEST_REFUSED(grt_ppo_team_environment(p->team, NULL), GRT_INVALID,
                 "grt_ppo_team_environment: no place");
    TEST_REFUSED(grt_ppo_team_save(NULL, archive), GRT_INVALID, "grt_ppo_team_save: no team");
    TEST_REFUSED(grt_ppo_team_save(p->team, NULL), GRT_INVALID, "grt_ppo_team_save: no archive");
    TEST_REFUSED(grt_ppo_team_load(NULL, archive, GRT_PPO_ALL), GRT_INVALID,
                 "grt_ppo_team_load: no team");
    TEST_REFUSED(grt_ppo_team_load(p->team, NULL, GRT_PPO_ALL), GRT_INVALID,
                 "grt_ppo_team_load: no archive");
    struct grt_ppo_team *none = NULL;
    grt_ppo_team_destroy(&none);
    grt_ppo_team_destroy(NULL);
    grt_archive_destroy(&archive);
    ppo_end(&alone);
    end_parts(&p);
}

static const struct CMUnitTest cases[] = {
    REF_CASE(parts_learn_as_one_learner), REF_CASE(epochs_of_a_team),
    REF_CASE(checkpoints_of_a_team),      REF_CASE(a_team_that_is_stopped),
    REF_CASE(teams_that_are_none),
};
TEST_SUITE(ppoteams, false, cases);
