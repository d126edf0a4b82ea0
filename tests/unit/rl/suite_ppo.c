// SPDX-License-Identifier: Apache-2.0
// Proximal policy optimization: what an iteration collects, its advantages, its loss and gradients
// against the formulas in double precision; the distribution of actions, and the same bits after a
// resume.
#include "kits/ppo_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "rl/ppo_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_words.k"

// ---- what is collected ----

static void check_collected(const struct grt_ppo *ppo, const struct ppo_collected *c,
                            double *params) {
    struct oracle_ppo b = ppo_batch_of(ppo, c, params);
    size_t idle = 0, last = 0, cut = 0;
    for (size_t i = 0; i < c->count + c->rows; i++) {
        double v, given[64];
        oracle_ppo_net(&b.critic, c->seen + i * c->seen_width, &v);
        ppo_near("value", i, c->value[i], v, 1e-4 * (1 + fabs(v)));
        if (i >= c->count) {
            continue;
        }
        oracle_ppo_net(&b.actor, c->own + i * c->obs, given);
        double logp = 0;
        for (size_t j = 0; !b.action && j < c->width; j++) {
            double s = b.log_std[j], z = (c->acts[i * c->width + j] - given[j]) / exp(s);
            logp += -z * z / 2 - s - log(2 * ORACLE_PI) / 2;
        }
        if (b.action) {
            assert_true(c->action[i] < c->width && (c->mask[i] >> c->action[i] & 1) != 0);
            logp = log(oracle_ppo_probability(given, c->width, c->mask[i], c->action[i]));
        }
        ppo_near("log p", i, c->logp[i], logp, 1e-4 * (1 + fabs(logp)));
        idle += !c->counts[i];
        last += (c->end[i] & GRT_ROW_LAST) != 0;
        cut += (c->end[i] & GRT_ROW_CUT) != 0;
    }
    // The case has what it is to test.
    assert_true(idle > 0 && last > 0 && cut > 0 && idle < c->count);
}

static void check_advantages(const struct grt_ppo *ppo, const struct ppo_collected *c) {
    double reward[64], value[65];
    bool last[64], cut[64];
    assert_true(c->steps <= 64);
    for (size_t row = 0; row < c->rows; row++) {
        for (size_t t = 0; t <= c->steps; t++) {
            size_t i = t * c->rows + row;
            value[t] = c->value[i];
            if (t < c->steps) {
                reward[t] = c->reward[i];
                last[t] = (c->end[i] & GRT_ROW_LAST) != 0;
                cut[t] = (c->end[i] & GRT_ROW_CUT) != 0;
            }
        }
        const struct oracle_ppo_path path = {.steps = c->steps,
                                             .reward = reward,
                                             .value = value,
                                             .last = last,
                                             .cut = cut,
                                             .gamma = ppo->desc.gamma,
                                             .lambda = ppo->desc.lambda};
        for (size_t t = 0; t < c->steps; t++) {
            size_t i = t * c->rows + row;
            if (c->counts[i]) {
                double want = oracle_ppo_advantage(&path, t);
                ppo_near("advantage", i, c->advantage[i], want, 1e-5 * (1 + fabs(want)));
                ppo_near("return", i, c->returns[i], want + value[t], 1e-5 * (1 + fabs(want)));
            }
        }
    }
}

static void collects(const struct ppo_maker *m) {
    struct ppo_made made = ppo_make(m);
    for (int iteration = 0; iteration < 2; iteration++) {
        double *params = ppo_widened(made.ppo->params.master);
        assert_true(grt_graph_run(made.ppo->collect));
        struct ppo_collected c = ppo_collect(made.ppo);
        check_collected(made.ppo, &c, params);
        check_advantages(made.ppo, &c);
        ppo_collected_end(&c);
        free(params);
    }
    ppo_end(&made);
}

static void discrete_steps_are_as_the_networks_say(void **state) {
    (void)state;
    struct ppo_maker m = ppo_uavs();
    collects(&m);
    m.desc.central = false;
    collects(&m);
}

static void continuous_steps_are_as_the_networks_say(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    collects(&m);
}

// ---- the loss ----

// Gradients of epoch 1 and 2: in the second one the policy has moved, so ratios are clipped.
static void gradients(struct ppo_maker *m) {
    m->desc.optim = grt_optim_defaults(GRT_OPTIM_SGD);
    m->desc.optim.lr = 0.3;
    m->desc.optim.max_norm = 0;
    m->desc.clip = 0.02;
    m->desc.value_clip = 0.01;
    m->desc.entropy_weight = 0.05;
    m->desc.value_weight = 0.7;
    m->desc.epochs = 2;
    struct ppo_made made = ppo_make(m);
    struct grt_ppo *ppo = made.ppo;
    assert_true(grt_graph_run(ppo->collect));
    struct ppo_collected c = ppo_collect(ppo);
    double clipped = 0;
    for (uint32_t epoch = 0; epoch < 2; epoch++) {
        double *params = ppo_widened(ppo->params.master);
        ppo_run_epoch(ppo, epoch);
        double *got = ppo_widened(ppo->params.grad), *after = ppo_widened(ppo->params.master);
        struct oracle_ppo b = ppo_batch_of(ppo, &c, params);
        struct oracle_ppo_result at = oracle_ppo(&b);
        struct grt_learn_state learnt;
        assert_true(
            grt_buf_read(ppo->state->range.buf, ppo->state->range.offset, &learnt, sizeof learnt));
        ppo_near("loss", epoch, (double)learnt.loss, at.loss, 1e-4 * (1 + fabs(at.loss)));
        clipped += at.clipped;
        double largest = 0;
        for (uint64_t i = 0; i < ppo->params.elements; i++) {
            largest = fmax(largest, fabs(got[i]));
        }
        assert_true(largest > 1e-4);
        // Every parameter of the last layers, and every seventh of the others: each costs two
        // losses of the batch.
        for (uint32_t k = 0; k < ppo->params.count; k++) {
            const struct grt_param *p = ppo->params.list[k];
            uint64_t every = p->count > 40 ? 7 : 1;
            for (uint64_t i = p->first; i < p->first + p->count; i += every) {
                ppo_near(p->name, (size_t)(i - p->first), got[i], ppo_slope(&b, params, i),
                         2e-3 * largest);
                ppo_near("parameter", (size_t)i, after[i], params[i] - 0.3 * got[i], 1e-5);
            }
        }
        free(params);
        free(after);
        free(got);
    }
    assert_true(clipped > 0);
    ppo_collected_end(&c);
    ppo_end(&made);
}

static void discrete_gradients_are_those_of_the_loss(void **state) {
    (void)state;
    struct ppo_maker m = ppo_uavs();
    m.copies = 3;
    gradients(&m);
}

static void continuous_gradients_are_those_of_the_loss(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    gradients(&m);
}

// ---- actions ----

// How often each action is taken, against the sum of its probabilities: five deviations are
// allowed.
static void actions_come_by_their_probabilities(void **state) {
    (void)state;
    struct ppo_maker m = ppo_uavs();
    m.copies = test.small ? 20 : 400;
    m.length = 30;
    m.desc.horizon = 20;
    struct ppo_made made = ppo_make(&m);
    struct grt_ppo *ppo = made.ppo;
    // The actor's last biases make actions unequal.
    const struct grt_param *bias = ppo_param(ppo, "actor.layers.2.bias");
    float numbers[9] = {0.0f, 1.5f, -1.0f, 0.5f, -2.0f, 0.0f, 2.0f, -0.5f, 0.25f};
    assert_int_equal(bias->count, 9);
    assert_true(
        grt_buf_write(bias->master.range.buf, bias->master.range.offset, numbers, sizeof numbers));
    double *params = ppo_widened(ppo->params.master);
    assert_true(grt_graph_run(ppo->collect));
    struct ppo_collected c = ppo_collect(ppo);
    struct oracle_ppo b = ppo_batch_of(ppo, &c, params);
    double taken[9] = {0}, expected[9] = {0}, variance[9] = {0}, masked = 0;
    for (size_t i = 0; i < c.count; i++) {
        double given[9];
        oracle_ppo_net(&b.actor, c.own + i * c.obs, given);
        taken[c.action[i]]++;
        for (size_t j = 0; j < 9; j++) {
            double p = oracle_ppo_probability(given, 9, c.mask[i], j);
            expected[j] += p;
            variance[j] += p * (1 - p);
            masked += (c.mask[i] >> j & 1) == 0;
        }
    }
    assert_true(masked > 0);
    for (size_t j = 0; j < 9; j++) {
        ppo_near("taken", j, taken[j], expected[j], 5 * sqrt(variance[j]) + 1);
    }
    free(params);
    ppo_collected_end(&c);
    ppo_end(&made);
}

// ---- the same bits ----

static void iterate(struct grt_ppo *ppo, int times) {
    struct grt_ppo_report report;
    for (int i = 0; i < times; i++) {
        assert_true(grt_ppo_iterate(ppo, &report));
    }
}

static void resumes(const struct ppo_maker *m) {
    struct ppo_made whole = ppo_make(m), part = ppo_make(m);
    iterate(whole.ppo, 2);
    struct grt_archive *archive = grt_archive_create();
    assert_true(grt_ppo_save(whole.ppo, archive));
    iterate(whole.ppo, 2);
    iterate(part.ppo, 1);
    assert_true(grt_ppo_load(part.ppo, archive, GRT_PPO_ALL));
    iterate(part.ppo, 2);
    if (m->desc.batch > 0) {
        ppo_was_smaller(part.ppo);
    }
    float *want = ppo_read(whole.ppo->params.master), *got = ppo_read(part.ppo->params.master);
    test_same(test.dev, "parameters after a resume", got, want, 4, whole.ppo->params.elements);
    free(want);
    free(got);
    grt_archive_destroy(&archive);
    ppo_end(&whole);
    ppo_end(&part);
}

static void a_resumed_run_has_the_same_bits(void **state) {
    (void)state;
    struct ppo_maker discrete = ppo_uavs(), continuous = ppo_pendulums();
    discrete.copies = 40;
    discrete.desc.batch = 720;
    discrete.desc.precision = GRT_F16;
    resumes(&discrete);
    resumes(&continuous);
}

// ---- rows in memory ----

// Rows of 16-bit inputs have zeros behind them where they would end inside a word (3 numbers here,
// 121 of the critic's there); a network that cannot read those gets a copy. Both compute the same.
static void zeros_behind_rows_change_nothing(void **state) {
    (void)state;
    struct ppo_maker makers[] = {ppo_uavs(), ppo_pendulums()};
    for (size_t k = 0; k < sizeof makers / sizeof makers[0]; k++) {
        makers[k].desc.precision = GRT_F16;
        struct ppo_made wide = ppo_make(&makers[k]);
        makers[k].tight = true;
        struct ppo_made tight = ppo_make(&makers[k]);
        assert_true(!wide.ppo->actor.tight && !wide.ppo->critic.tight);
        assert_true(tight.ppo->actor.tight || tight.ppo->critic.tight);
        iterate(wide.ppo, 2);
        iterate(tight.ppo, 2);
        float *want = ppo_read(tight.ppo->params.master), *got = ppo_read(wide.ppo->params.master);
        for (size_t i = 0; i < wide.ppo->params.elements; i++) {
            ppo_near("a parameter", i, (double)got[i], (double)want[i], 2e-4);
        }
        free(want);
        free(got);
        ppo_end(&wide);
        ppo_end(&tight);
    }
}

// ---- evaluation ----

static void plays_once(const struct ppo_maker *m, uint32_t copies) {
    struct ppo_made made = ppo_make(m);
    struct grt_worlds *worlds = ppo_make_worlds(m, copies, true);
    for (int trial = 0; trial < GRT_PPO_TRIAL_COUNT; trial++) {
        struct grt_ppo_report first, again, other;
        enum grt_ppo_trial by = (enum grt_ppo_trial)trial;
        assert_true(grt_ppo_evaluate(made.ppo, worlds, by, 3, &first));
        assert_true(grt_ppo_evaluate(made.ppo, worlds, by, 4, &other));
        assert_true(grt_ppo_evaluate(made.ppo, worlds, by, 3, &again));
        assert_true(first.episodes == copies && other.episodes == copies);
        assert_true(first.length > 0 && first.length <= m->length);
        assert_true(first.mean_return == again.mean_return && first.length == again.length);
        assert_true(first.mean_return != other.mean_return);
    }
    ppo_end(&made);
    grt_worlds_destroy(&worlds);
}

// More copies than the networks take at once, too.
static void each_copy_plays_one_episode(void **state) {
    (void)state;
    struct ppo_maker discrete = ppo_uavs(), continuous = ppo_pendulums();
    plays_once(&discrete, 300);
    plays_once(&continuous, 11);
}

// Trials of one learner in several worlds are those of a learner that knows one of them only.
static void worlds_of_trials_change(void **state) {
    (void)state;
    struct ppo_maker m = ppo_uavs();
    struct ppo_made one = ppo_make(&m), other = ppo_make(&m);
    struct grt_worlds *worlds[] = {ppo_make_worlds(&m, 5, true), ppo_make_worlds(&m, 7, true)};
    static const uint32_t copies[] = {5, 7};
    for (int i = 0; i < 3; i++) {
        struct grt_ppo_report report, want;
        assert_true(grt_ppo_evaluate(one.ppo, worlds[i % 2], GRT_PPO_TRY_POLICY, 3, &report));
        assert_true(report.episodes == copies[i % 2]);
        assert_true(report.rows ==
                    report.episodes * report.length * grt_worlds_sizes(worlds[i % 2])->agents);
        if (i == 1) {
            assert_true(grt_ppo_evaluate(other.ppo, worlds[1], GRT_PPO_TRY_POLICY, 3, &want));
            assert_true(report.mean_return == want.mean_return && report.length == want.length);
        }
    }
    ppo_end(&one);
    ppo_end(&other);
    grt_worlds_destroy(&worlds[0]);
    grt_worlds_destroy(&worlds[1]);
}

// With an average, whose trials are of it, learning goes on as if nobody had looked.
static void trials_of_an_average_leave_no_trace(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    m.desc.optim.ema = 0.5;
    struct ppo_made looked = ppo_make(&m), alone = ppo_make(&m);
    struct grt_worlds *worlds = ppo_make_worlds(&m, 5, true);
    for (int i = 0; i < 2; i++) {
        struct grt_ppo_report report;
        iterate(looked.ppo, 1);
        iterate(alone.ppo, 1);
        assert_true(grt_ppo_evaluate(looked.ppo, worlds, GRT_PPO_TRY_POLICY, 3, &report));
        const struct grt_tensor *got[] = {looked.ppo->params.master, looked.ppo->average};
        const struct grt_tensor *want[] = {alone.ppo->params.master, alone.ppo->average};
        for (int k = 0; k < 2; k++) {
            float *a = ppo_read(got[k]), *b = ppo_read(want[k]);
            assert_memory_equal(a, b, alone.ppo->params.elements * sizeof *a);
            free(a);
            free(b);
        }
    }
    ppo_end(&looked);
    ppo_end(&alone);
    grt_worlds_destroy(&worlds);
}

// A robot of several motors: each row has all of its actions. One backend is enough for sizes, and
// its kernels take others long to build.
static void rows_of_several_actions(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    if (grt_dev_info(test.dev)->backend != GRT_BACKEND_REF) {
        return;
    }
    m.env = "standing";
    m.copies = 40;
    struct ppo_made made = ppo_make(&m);
    const struct ppo_actors *a = &made.ppo->learning;
    uint64_t act = grt_worlds_sizes(made.worlds)->act;
    assert_true(act > 1 && a->rows == 40);
    assert_in_range(a->acts_stride, 40 * act, 40 * act + 255);
    assert_int_equal(grt_tensor_count(a->acts), m.desc.horizon * a->acts_stride);
    iterate(made.ppo, 1);
    ppo_end(&made);
}

// ---- the end of an iteration ----

static void epochs_end_when_the_policy_has_moved(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    struct grt_ppo_report report;
    for (int k = 0; k < 2; k++) {
        m.desc.target_kl = k ? 1e-12 : 1e9;
        struct ppo_made made = ppo_make(&m);
        assert_true(grt_ppo_iterate(made.ppo, &report));
        // In the first epoch the policy is still that which acted; the second sees that it has
        // moved.
        assert_int_equal(report.epochs, k ? 2 : m.desc.epochs);
        ppo_end(&made);
    }
}

// ---- what does not fit ----

// The number behind `key` in the newest sentence.
static uint32_t said(const char *key) {
    const char *at = strstr(grt_last_error(), key);
    if (!at) {
        fail_msg("no '%s' in: %s", key, grt_last_error());
    }
    return at ? (uint32_t)strtoul(at + strlen(key), NULL, 10) : 0;
}

static void fits(const struct grt_ppo_desc *d) {
    struct grt_ppo *ppo = grt_ppo_create(test.dev, d);
    assert_non_null(ppo);
    grt_ppo_destroy(&ppo);
}

static void fits_copies(const struct ppo_maker *m, struct grt_ppo_desc d, uint32_t copies) {
    d.worlds = ppo_make_worlds(m, copies, false);
    fits(&d);
    grt_worlds_destroy(&d.worlds);
    d.worlds = ppo_make_worlds(m, copies + 1, false);
    TEST_REFUSED(grt_ppo_create(test.dev, &d), GRT_CONFIG, "copies (num_envs)");
    grt_worlds_destroy(&d.worlds);
}

static bool looks_away(void *self, const struct grt_ppo_moment *moment) {
    (void)self;
    (void)moment;
    return false;
}

// A device with smaller buffers: the sentence has the most copies and the most steps that fit, and
// it is so.
static void what_does_not_fit_says_what_does(void **state) {
    (void)state;
    struct grt_caps *caps = &test.dev->info.caps;
    const uint64_t real = caps->max_buffer;
    if (!caps->software) {
        skip();  // networks are made for more rows there than such a buffer has
    }
    const struct ppo_maker makers[] = {ppo_uavs(), ppo_pendulums()};
    for (size_t k = 0; k < sizeof makers / sizeof makers[0]; k++) {
        struct ppo_maker m = makers[k];
        m.desc.horizon = 30;
        m.desc.batch = 64;
        m.copies = 150;
        struct ppo_made made = ppo_make(&m);
        struct grt_ppo_desc d = made.ppo->desc;
        d.actor.of = &made.actor;  // where they are by now
        d.critic.of = &made.critic;
        const struct ppo_actors *a = &made.ppo->learning;
        uint64_t traj = grt_tensor_bytes(a->traj), obs = grt_tensor_bytes(a->obs);
        grt_ppo_destroy(&made.ppo);
        caps->max_buffer = (traj > obs ? traj : obs) / 2;
        TEST_REFUSED(grt_ppo_create(test.dev, &d), GRT_CONFIG, "copies (num_envs) over 30 steps");
        uint32_t copies = said(": num_envs="), steps = said(" or rollout_steps=");
        assert_in_range(copies, 1, m.copies - 1);
        assert_in_range(steps, 1, d.horizon - 1);
        fits_copies(&m, d, copies);
        d.horizon = steps;
        fits(&d);
        d.horizon = steps + 1;
        TEST_REFUSED(grt_ppo_create(test.dev, &d), GRT_CONFIG, "rollout_steps");
        // Trials are asked for before a run begins.
        d.horizon = 2;
        d.optim.ema = 0.5;
        d.epochs = 1;
        made.ppo = grt_ppo_create(test.dev, &d);
        iterate(made.ppo, 2);
        struct grt_worlds *trials = ppo_make_worlds(&m, 100 * m.copies, true);
        TEST_REFUSED(grt_ppo_prepare(made.ppo, trials), GRT_CONFIG, ": evaluate_envs=");
        copies = said(": evaluate_envs=");
        // One that fails leaves the networks their own parameters, not the average.
        struct grt_ppo_report report;
        float *own = ppo_read(made.ppo->params.master), *average = ppo_read(made.ppo->average);
        assert_memory_not_equal(own, average, made.ppo->params.elements * sizeof *own);
        for (int watched = 0; watched < 2; watched++) {
            TEST_REFUSED(watched
                             ? grt_ppo_watch(made.ppo, trials, GRT_PPO_TRY_POLICY, 1, 0, looks_away,
                                             NULL, &report)
                             : grt_ppo_evaluate(made.ppo, trials, GRT_PPO_TRY_POLICY, 1, &report),
                         GRT_CONFIG, ": evaluate_envs=");
            float *left = ppo_read(made.ppo->params.master);
            assert_memory_equal(left, own, made.ppo->params.elements * sizeof *own);
            free(left);
        }
        free(own);
        free(average);
        grt_worlds_destroy(&trials);
        trials = ppo_make_worlds(&m, copies, true);
        assert_true(grt_ppo_prepare(made.ppo, trials));
        ppo_end(&made);
        grt_worlds_destroy(&trials);
        caps->max_buffer = real;
    }
}

// ---- beginnings ----

// A run that begins with the networks of another one begins its average with them, and knows
// nothing else of it.
static void a_beginning_is_its_average(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    m.desc.optim.ema = 0.5;
    struct ppo_made from = ppo_make(&m);
    m.desc.seed += 1;
    struct ppo_made to = ppo_make(&m);
    iterate(from.ppo, 2);
    struct grt_archive *archive = grt_archive_create();
    assert_true(grt_ppo_save(from.ppo, archive));
    assert_true(grt_ppo_load(to.ppo, archive, GRT_PPO_NETWORKS));
    for (uint32_t i = 0; i < to.ppo->params.count; i++) {
        const struct grt_param *p = to.ppo->params.list[i];
        const struct grt_tensor average = grt_params_view(p, to.ppo->average, 0);
        const struct grt_tensor wanted = grt_params_view(p, from.ppo->average, 0);
        float *own = ppo_read(&p->master), *mean = ppo_read(&average), *want = ppo_read(&wanted);
        assert_memory_equal(own, want, p->count * sizeof *own);
        assert_memory_equal(mean, want, p->count * sizeof *mean);
        free(own);
        free(mean);
        free(want);
    }
    assert_int_equal(to.ppo->done, 0);
    grt_archive_destroy(&archive);
    ppo_end(&from);
    ppo_end(&to);
}

// ---- mistakes ----

static void what_makes_no_sense_is_refused(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    struct ppo_made made = ppo_make(&m);
    struct grt_ppo_desc good = made.ppo->desc;
    grt_ppo_destroy(&made.ppo);
    struct grt_ppo_desc d = good;
    d.horizon = 0;
    TEST_REFUSED(grt_ppo_create(test.dev, &d), GRT_CONFIG, "horizon");
    d = good;
    d.gamma = 1.5;
    TEST_REFUSED(grt_ppo_create(test.dev, &d), GRT_CONFIG, "gamma");
    d = good;
    d.central = true;
    TEST_REFUSED(grt_ppo_create(test.dev, &d), GRT_CONFIG, "no observation of the whole");
    d = good;
    d.clip = NAN;
    TEST_REFUSED(grt_ppo_create(test.dev, &d), GRT_CONFIG, "clip");
    d = good;
    d.worlds = NULL;
    TEST_REFUSED(grt_ppo_create(test.dev, &d), GRT_CONFIG, "no worlds");
    ppo_end(&made);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(discrete_steps_are_as_the_networks_say),
    TEST_CASE(continuous_steps_are_as_the_networks_say),
    TEST_CASE(discrete_gradients_are_those_of_the_loss),
    TEST_CASE(continuous_gradients_are_those_of_the_loss),
    TEST_CASE(actions_come_by_their_probabilities),
    TEST_CASE(a_resumed_run_has_the_same_bits),
    TEST_CASE(zeros_behind_rows_change_nothing),
    TEST_CASE(each_copy_plays_one_episode),
    TEST_CASE(worlds_of_trials_change),
    TEST_CASE(rows_of_several_actions),
    TEST_CASE(trials_of_an_average_leave_no_trace),
    TEST_CASE(epochs_end_when_the_policy_has_moved),
    TEST_CASE(what_does_not_fit_says_what_does),
    TEST_CASE(a_beginning_is_its_average),
    TEST_CASE(what_makes_no_sense_is_refused),
};
TEST_SUITE(ppo, true, cases);
