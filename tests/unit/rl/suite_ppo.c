// SPDX-License-Identifier: Apache-2.0
// Proximal policy optimization: what an iteration collects, its advantages, its loss and gradients against the formulas in double
// precision; the order of rows, the distribution of actions, and the same bits after a resume.
#include "harness/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/ppo.h"
#include "oracle/ppo.h"
#include "rl/ppo_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_words.k"

#define DEPTH 2
#define HIDDEN 6

// ---- a learner of small networks ----

struct maker {
    const char *env;
    struct grt_env_value settings[4];
    uint32_t setting_count, copies, length;
    struct grt_ppo_desc desc;
};

struct made {
    struct grt_worlds *worlds;
    struct grt_mlp_desc actor, critic;
    struct grt_ppo *ppo;
};

static struct maker uavs(void) {
    struct maker m = {.env = "uav",
                      .settings = {{"map", 6}, {"num_uavs", 3}, {"window", 3}},
                      .setting_count = 3,
                      .copies = 5,
                      .length = 9,
                      .desc = grt_ppo_defaults()};
    m.desc.central = true;
    m.desc.horizon = 12;
    return m;
}

static struct maker pendulums(void) {
    struct maker m = {.env = "pendulum", .copies = 7, .length = 8, .desc = grt_ppo_defaults()};
    m.desc.horizon = 10;
    m.desc.log_std = -0.5;
    return m;
}

static struct grt_worlds *make_worlds(const struct maker *m, uint32_t copies, bool once) {
    const struct grt_env_info *env = grt_env_find(m->env);
    assert_non_null(env);
    struct grt_worlds *worlds = grt_worlds_create(
        test.dev,
        grt_worlds_desc(.env = env, .settings = m->settings, .setting_count = m->setting_count,
                        .copies = copies, .length = m->length, .once = once));
    assert_non_null(worlds);
    return worlds;
}

static struct made make(const struct maker *m) {
    struct made made = {.worlds = make_worlds(m, m->copies, false)};
    const struct grt_worlds_sizes *sizes = grt_worlds_sizes(made.worlds);
    made.actor = (struct grt_mlp_desc){.depth = DEPTH,
                                       .hidden = HIDDEN,
                                       .outputs = sizes->choices ? sizes->choices : sizes->act,
                                       .act = GRT_ACT_TANH};
    made.critic = made.actor;
    made.critic.outputs = 1;
    struct grt_ppo_desc desc = m->desc;
    desc.worlds = made.worlds;
    desc.actor = (struct grt_ppo_net){grt_mlp_make, &made.actor};
    desc.critic = (struct grt_ppo_net){grt_mlp_make, &made.critic};
    made.ppo = grt_ppo_create(test.dev, &desc);
    assert_non_null(made.ppo);
    return made;
}

static void end(struct made *made) {
    grt_ppo_destroy(&made->ppo);
    grt_worlds_destroy(&made->worlds);
}

// ---- what lies on the device ----

static void *read(const struct grt_tensor *t) {
    void *data = test_alloc(grt_tensor_bytes(t));
    assert_true(grt_buf_read(t->range.buf, t->range.offset, data, grt_tensor_bytes(t)));
    return data;
}

// Everything that an iteration collected, by row and step without padding.
struct collected {
    size_t rows, steps, count, width, obs, seen_width;
    double *own, *seen;  // [count + rows][...]: one step more
    uint32_t *mask, *action, *end;
    double *acts, *logp, *value, *reward, *advantage, *returns;
    bool *counts;
};

static struct collected collect(const struct grt_ppo *ppo) {
    const struct ppo_actors *a = &ppo->learning;
    const struct grt_worlds_sizes *sizes = ppo->sizes;
    struct collected c = {.rows = a->rows,
                          .steps = ppo->desc.horizon,
                          .width = ppo->width,
                          .obs = sizes->obs,
                          .seen_width = sizes->obs + (ppo->desc.central ? sizes->global : 0)};
    c.count = c.rows * c.steps;
    size_t more = c.count + c.rows;
    c.own = test_alloc(more * c.obs * sizeof(double));
    c.seen = test_alloc(more * c.seen_width * sizeof(double));
    uint32_t **words[] = {&c.mask, &c.action, &c.end};
    double **numbers[] = {&c.logp, &c.value, &c.reward, &c.advantage, &c.returns};
    static const uint32_t word_sections[] = {PPO_MASK, PPO_ACTION, PPO_END};
    static const uint32_t sections[] = {PPO_LOGP, PPO_VALUE, PPO_REWARD, PPO_ADVANTAGE, PPO_RETURN};
    uint32_t *traj = read(a->traj);
    for (size_t k = 0; k < 3; k++) {
        *words[k] = test_alloc(more * sizeof(uint32_t));
    }
    for (size_t k = 0; k < 5; k++) {
        *numbers[k] = test_alloc(more * sizeof(double));
    }
    c.acts = test_alloc(more * c.width * sizeof(double));
    c.counts = test_alloc(more * sizeof(bool));
    float *obs = read(a->obs), *whole = a->whole ? read(a->whole) : NULL;
    float *acts = a->acts ? read(a->acts) : NULL;
    size_t section = (size_t)grt_ppo_section(a);
    for (size_t i = 0; i < more; i++) {
        size_t t = i / c.rows, row = i % c.rows, at = t * a->stride + row;
        for (size_t k = 0; k < 3; k++) {
            (*words[k])[i] = traj[word_sections[k] * section + at];
        }
        for (size_t k = 0; k < 5; k++) {
            (*numbers[k])[i] = (double)test_as_f32(traj[sections[k] * section + at]);
        }
        c.counts[i] = (c.end[i] & GRT_ROW_IDLE) == 0;
        for (size_t k = 0; k < c.obs; k++) {
            double v = (double)obs[t * a->obs_stride + row * c.obs + k];
            c.own[i * c.obs + k] = c.seen[i * c.seen_width + k] = v;
        }
        for (size_t k = c.obs; k < c.seen_width; k++) {
            c.seen[i * c.seen_width + k] = (double)
                whole[t * a->whole_stride + row / sizes->agents * sizes->global + k - c.obs];
        }
        for (size_t k = 0; acts && t < c.steps && k < c.width; k++) {
            c.acts[i * c.width + k] = (double)acts[t * a->acts_stride + row * c.width + k];
        }
    }
    free(traj);
    free(obs);
    free(whole);
    free(acts);
    return c;
}

static void collected_end(struct collected *c) {
    void *all[] = {c->own,  c->seen,  c->mask,   c->action,    c->end,     c->acts,
                   c->logp, c->value, c->reward, c->advantage, c->returns, c->counts};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]);
    }
}

// A group of the parameters in double precision, at the places of the whole range.
static double *widened(const struct grt_tensor *t) {
    float *from = read(t);
    size_t count = grt_tensor_count(t);
    double *to = test_alloc(count * sizeof *to);
    for (size_t i = 0; i < count; i++) {
        to[i] = (double)from[i];
    }
    free(from);
    return to;
}

static const struct grt_param *param(const struct grt_ppo *ppo, const char *name) {
    for (uint32_t i = 0; i < ppo->params.count; i++) {
        if (strcmp(ppo->params.list[i]->name, name) == 0) {
            return ppo->params.list[i];
        }
    }
    fail_msg("no parameter %s", name);
    return NULL;
}

static struct oracle_ppo_net net_of(const struct grt_ppo *ppo, const char *name, double *params,
                                    size_t inputs, size_t outputs) {
    struct oracle_ppo_net n = {
        .depth = DEPTH, .inputs = inputs, .hidden = HIDDEN, .outputs = outputs};
    for (int layer = 0; layer <= DEPTH; layer++) {
        char text[64];
        snprintf(text, sizeof text, "%s.layers.%d.weight", name, layer);
        n.weight[layer] = params + param(ppo, text)->first;
        snprintf(text, sizeof text, "%s.layers.%d.bias", name, layer);
        n.bias[layer] = params + param(ppo, text)->first;
    }
    return n;
}

static struct oracle_ppo batch_of(const struct grt_ppo *ppo, const struct collected *c,
                                  double *params) {
    const struct grt_ppo_desc *d = &ppo->desc;
    return (struct oracle_ppo){.rows = c->count,
                               .width = c->width,
                               .own = c->own,
                               .seen = c->seen,
                               .mask = c->mask,
                               .action = ppo->sizes->choices > 0 ? c->action : NULL,
                               .acts = c->acts,
                               .log_std = ppo->log_std ? params + ppo->log_std->first : NULL,
                               .logp = c->logp,
                               .advantage = c->advantage,
                               .returns = c->returns,
                               .value = c->value,
                               .counts = c->counts,
                               .clip = d->clip,
                               .value_clip = d->value_clip,
                               .value_weight = d->value_weight,
                               .entropy_weight = d->entropy_weight,
                               .actor = net_of(ppo, "actor", params, c->obs, c->width),
                               .critic = net_of(ppo, "critic", params, c->seen_width, 1)};
}

static void near(const char *what, size_t i, double got, double want, double bound) {
    if (!(fabs(got - want) <= bound)) {
        fail_msg("%s[%zu]: %.9g, wanted %.9g within %.3g", what, i, got, want, bound);
    }
}

// ---- what is collected ----

static void check_collected(const struct grt_ppo *ppo, const struct collected *c, double *params) {
    struct oracle_ppo b = batch_of(ppo, c, params);
    size_t idle = 0, last = 0, cut = 0;
    for (size_t i = 0; i < c->count + c->rows; i++) {
        double v, given[64];
        oracle_ppo_net(&b.critic, c->seen + i * c->seen_width, &v);
        near("value", i, c->value[i], v, 1e-4 * (1 + fabs(v)));
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
        near("log p", i, c->logp[i], logp, 1e-4 * (1 + fabs(logp)));
        idle += !c->counts[i];
        last += (c->end[i] & GRT_ROW_LAST) != 0;
        cut += (c->end[i] & GRT_ROW_CUT) != 0;
    }
    // The case has what it is to test.
    assert_true(idle > 0 && last > 0 && cut > 0 && idle < c->count);
}

static void check_advantages(const struct grt_ppo *ppo, const struct collected *c) {
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
                near("advantage", i, c->advantage[i], want, 1e-5 * (1 + fabs(want)));
                near("return", i, c->returns[i], want + value[t], 1e-5 * (1 + fabs(want)));
            }
        }
    }
}

static void collects(const struct maker *m) {
    struct made made = make(m);
    for (int iteration = 0; iteration < 2; iteration++) {
        double *params = widened(made.ppo->params.master);
        assert_true(grt_graph_run(made.ppo->collect));
        struct collected c = collect(made.ppo);
        check_collected(made.ppo, &c, params);
        check_advantages(made.ppo, &c);
        collected_end(&c);
        free(params);
    }
    end(&made);
}

static void discrete_steps_are_as_the_networks_say(void **state) {
    (void)state;
    struct maker m = uavs();
    collects(&m);
    m.desc.central = false;
    collects(&m);
}

static void continuous_steps_are_as_the_networks_say(void **state) {
    (void)state;
    struct maker m = pendulums();
    collects(&m);
}

// ---- the loss ----

// Gradients of epoch 1 and 2: in the second one the policy has moved, so ratios are clipped.
static void gradients(struct maker *m) {
    m->desc.optim = grt_optim_defaults(GRT_OPTIM_SGD);
    m->desc.optim.lr = 0.3;
    m->desc.optim.max_norm = 0;
    m->desc.clip = 0.02;
    m->desc.value_clip = 0.01;
    m->desc.entropy_weight = 0.05;
    m->desc.value_weight = 0.7;
    m->desc.epochs = 2;
    struct made made = make(m);
    struct grt_ppo *ppo = made.ppo;
    assert_true(grt_graph_run(ppo->collect));
    struct collected c = collect(ppo);
    double clipped = 0;
    for (uint32_t epoch = 0; epoch < 2; epoch++) {
        double *params = widened(ppo->params.master);
        assert_true(grt_graph_run(ppo->epochs[epoch]));
        double *got = widened(ppo->params.grad), *after = widened(ppo->params.master);
        struct oracle_ppo b = batch_of(ppo, &c, params);
        struct oracle_ppo_result at = oracle_ppo(&b);
        struct grt_learn_state learnt;
        assert_true(
            grt_buf_read(ppo->state->range.buf, ppo->state->range.offset, &learnt, sizeof learnt));
        near("loss", epoch, (double)learnt.loss, at.loss, 1e-4 * (1 + fabs(at.loss)));
        clipped += at.clipped;
        double largest = 0;
        for (uint64_t i = 0; i < ppo->params.elements; i++) {
            largest = fmax(largest, fabs(got[i]));
        }
        assert_true(largest > 1e-4);
        // Every parameter of the last layers, and every seventh of the others: each costs two losses of the batch.
        for (uint32_t k = 0; k < ppo->params.count; k++) {
            const struct grt_param *p = ppo->params.list[k];
            uint64_t every = p->count > 40 ? 7 : 1;
            for (uint64_t i = p->first; i < p->first + p->count; i += every) {
                const double step = 1e-5, before = params[i];
                params[i] = before + step;
                double up = oracle_ppo(&b).loss;
                params[i] = before - step;
                double down = oracle_ppo(&b).loss;
                params[i] = before;
                near(p->name, (size_t)(i - p->first), got[i], (up - down) / (2 * step),
                     2e-3 * largest);
                near("parameter", (size_t)i, after[i], params[i] - 0.3 * got[i], 1e-5);
            }
        }
        free(params);
        free(after);
        free(got);
    }
    assert_true(clipped > 0);
    collected_end(&c);
    end(&made);
}

static void discrete_gradients_are_those_of_the_loss(void **state) {
    (void)state;
    struct maker m = uavs();
    m.copies = 3;
    gradients(&m);
}

static void continuous_gradients_are_those_of_the_loss(void **state) {
    (void)state;
    struct maker m = pendulums();
    gradients(&m);
}

// ---- the order of rows ----

static void check_order(const struct grt_ppo *ppo, uint32_t *order) {
    uint32_t *got = read(ppo->order);
    bool *seen = test_alloc(ppo->count * sizeof *seen);
    memset(seen, 0, ppo->count * sizeof *seen);
    for (uint64_t i = 0; i < ppo->count; i++) {
        assert_true(got[i] < ppo->count && !seen[got[i]]);
        seen[got[i]] = true;
    }
    memcpy(order, got, ppo->count * sizeof *got);
    free(got);
    free(seen);
}

static void each_epoch_takes_every_row_once(void **state) {
    (void)state;
    struct maker m = pendulums();
    m.desc.epochs = 2;
    m.desc.batch = 32;
    struct made made = make(&m);
    struct grt_ppo *ppo = made.ppo;
    assert_int_equal(grt_ppo_size(ppo).batches, 3);
    uint32_t *orders[4];
    for (int k = 0; k < 4; k++) {
        orders[k] = test_alloc(ppo->count * sizeof **orders);
        assert_true(k % 2 > 0 || grt_graph_run(ppo->collect));
        assert_true(grt_graph_run(ppo->epochs[k % 2]));
        check_order(ppo, orders[k]);
        for (int j = 0; j < k; j++) {
            assert_memory_not_equal(orders[j], orders[k], ppo->count * sizeof **orders);
        }
    }
    for (int k = 0; k < 4; k++) {
        free(orders[k]);
    }
    end(&made);
}

// ---- actions ----

// How often each action is taken, against the sum of its probabilities: five deviations are allowed.
static void actions_come_by_their_probabilities(void **state) {
    (void)state;
    struct maker m = uavs();
    m.copies = test.small ? 20 : 400;
    m.length = 30;
    m.desc.horizon = 20;
    struct made made = make(&m);
    struct grt_ppo *ppo = made.ppo;
    // The actor's last biases make actions unequal.
    const struct grt_param *bias = param(ppo, "actor.layers.2.bias");
    float numbers[9] = {0.0f, 1.5f, -1.0f, 0.5f, -2.0f, 0.0f, 2.0f, -0.5f, 0.25f};
    assert_int_equal(bias->count, 9);
    assert_true(
        grt_buf_write(bias->master.range.buf, bias->master.range.offset, numbers, sizeof numbers));
    double *params = widened(ppo->params.master);
    assert_true(grt_graph_run(ppo->collect));
    struct collected c = collect(ppo);
    struct oracle_ppo b = batch_of(ppo, &c, params);
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
        near("taken", j, taken[j], expected[j], 5 * sqrt(variance[j]) + 1);
    }
    free(params);
    collected_end(&c);
    end(&made);
}

// ---- the same bits ----

static void iterate(struct grt_ppo *ppo, int times) {
    struct grt_ppo_report report;
    for (int i = 0; i < times; i++) {
        assert_true(grt_ppo_iterate(ppo, &report));
    }
}

static void resumes(const struct maker *m) {
    struct made whole = make(m), part = make(m);
    iterate(whole.ppo, 2);
    struct grt_archive *archive = grt_archive_create();
    assert_true(grt_ppo_save(whole.ppo, archive));
    iterate(whole.ppo, 2);
    iterate(part.ppo, 1);
    assert_true(grt_ppo_load(part.ppo, archive, false));
    iterate(part.ppo, 2);
    float *want = read(whole.ppo->params.master), *got = read(part.ppo->params.master);
    test_same(test.dev, "parameters after a resume", got, want, 4, whole.ppo->params.elements);
    free(want);
    free(got);
    grt_archive_destroy(&archive);
    end(&whole);
    end(&part);
}

static void a_resumed_run_has_the_same_bits(void **state) {
    (void)state;
    struct maker discrete = uavs(), continuous = pendulums();
    discrete.desc.batch = 50;
    discrete.desc.precision = GRT_F16;
    resumes(&discrete);
    resumes(&continuous);
}

// ---- mistakes ----

static void what_makes_no_sense_is_refused(void **state) {
    (void)state;
    struct maker m = pendulums();
    struct made made = make(&m);
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
    end(&made);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(discrete_steps_are_as_the_networks_say),
    TEST_CASE(continuous_steps_are_as_the_networks_say),
    TEST_CASE(discrete_gradients_are_those_of_the_loss),
    TEST_CASE(continuous_gradients_are_those_of_the_loss),
    TEST_CASE(each_epoch_takes_every_row_once),
    TEST_CASE(actions_come_by_their_probabilities),
    TEST_CASE(a_resumed_run_has_the_same_bits),
    TEST_CASE(what_makes_no_sense_is_refused),
};
TEST_SUITE(ppo, true, cases);
