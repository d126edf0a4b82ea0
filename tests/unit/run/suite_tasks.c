// SPDX-License-Identifier: Apache-2.0
// What a config says arrives: every key of an optimizer, a network and a learner is read back from
// the desc that it makes, and the steps of a run from its rows.
#include "kits/run_kit.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "gpurt/ppo_task.h"
#include "gpurt/task.h"

// ---- one key, one number ----

enum type { REAL, SINGLE, WHOLE, FLAG };

// A key with a value that no default has, and where it arrives.
struct arrival {
    const char *pair;
    enum type type;
    size_t at;
    double want;
};

static double number_at(const void *desc, const struct arrival *a) {
    const char *at = (const char *)desc + a->at;
    double real = 0;
    float single = 0;
    uint32_t whole = 0;
    bool flag = false;
    switch (a->type) {
    case REAL:
        memcpy(&real, at, sizeof real);
        return real;
    case SINGLE:
        memcpy(&single, at, sizeof single);
        return (double)single;
    case WHOLE:
        memcpy(&whole, at, sizeof whole);
        return whole;
    default:
        memcpy(&flag, at, sizeof flag);
        return flag;
    }
}

// With all keys given at once each number is where its key puts it, so that no two are mixed up.
static void arrives(const void *desc, const struct arrival *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        double got = number_at(desc, &list[i]);
        if (fabs(got - list[i].want) > 1e-7 * fabs(list[i].want)) {
            fail_msg("%s: %.9g arrives", list[i].pair, got);
        }
    }
}

static void give(struct grt_config *c, const struct arrival *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (list[i].pair && !grt_config_override(c, list[i].pair)) {
            fail_msg("%s is refused", list[i].pair);
        }
    }
}

#define OPTIM(field) offsetof(struct grt_optim_desc, field)

static const struct arrival of_optimizers[] = {
    {"learning_rate=0.011", REAL, OPTIM(lr), 0.011},
    {"weight_decay=0.012", REAL, OPTIM(weight_decay), 0.012},
    {"decay_of=matrices", FLAG, OPTIM(decay_matrices), 1},
    {"momentum=0.13", REAL, OPTIM(momentum), 0.13},
    {"nesterov=true", FLAG, OPTIM(nesterov), 1},
    {"trust_coefficient=0.14", REAL, OPTIM(trust), 0.14},
    {"betas=[0.15, 0.16]", REAL, OPTIM(beta1), 0.15},
    {"betas=[0.15, 0.16]", REAL, OPTIM(beta2), 0.16},
    {"eps=0.0017", REAL, OPTIM(eps), 0.0017},
    {"max_grad_norm=1.8", REAL, OPTIM(max_norm), 1.8},
    {"warmup_steps=19", WHOLE, OPTIM(warmup), 19},
    {"div_factor=20", REAL, OPTIM(div), 20},
    {"final_div_factor=21", REAL, OPTIM(final_div), 21},
    {"min_learning_rate=0.0022", REAL, OPTIM(min_lr), 0.0022},
    {"gamma=0.23", REAL, OPTIM(gamma), 0.23},
    {"loss_scale=24", REAL, OPTIM(scale), 24},
    {"growth_interval=25", WHOLE, OPTIM(growth_interval), 25},
    {"ema=0.26", REAL, OPTIM(ema), 0.26},
    {"on_nan_loss=skip", WHOLE, OPTIM(nonfinite), GRT_NONFINITE_SKIP},
    {"optimizer=sgd", WHOLE, OPTIM(kind), GRT_OPTIM_SGD},
};
#define COUNT(list) (sizeof(list) / sizeof *(list))

static void keys_of_optimizers(void **state) {
    (void)state;
    struct grt_config c;
    struct grt_optim_desc d;
    grt_config_init(&c);
    give(&c, of_optimizers, COUNT(of_optimizers));
    assert_true(grt_task_optimizer(&c, &d));
    arrives(&d, of_optimizers, COUNT(of_optimizers));
    // Momentum of Nesterov is for sgd and lars; decay has the optimizer's own default.
    const char *const kinds[] = {"optimizer=adam", "optimizer=adamw", "optimizer=sgd",
                                 "optimizer=lars"};
    const enum grt_optim names[] = {GRT_OPTIM_ADAM, GRT_OPTIM_ADAMW, GRT_OPTIM_SGD, GRT_OPTIM_LARS};
    for (int i = 0; i < 4; i++) {
        grt_config_init(&c);
        assert_true(grt_config_override(&c, kinds[i]));
        assert_true(grt_config_override(&c, "nesterov=true"));
        assert_true(grt_task_optimizer(&c, &d));
        assert_int_equal(d.kind, names[i]);
        assert_int_equal(d.nesterov, i >= 2);
        assert_true(d.weight_decay == grt_optim_defaults(names[i]).weight_decay);
        assert_true(grt_config_override(&c, "weight_decay=0"));
        assert_true(grt_task_optimizer(&c, &d));
        assert_true(d.weight_decay == 0);
    }
    assert_true(grt_optim_defaults(GRT_OPTIM_ADAMW).weight_decay > 0);
    // As low as the rate itself is low enough.
    grt_config_init(&c);
    assert_true(grt_config_override(&c, "learning_rate=0.01"));
    assert_true(grt_config_override(&c, "min_learning_rate=0.01"));
    assert_true(grt_task_optimizer(&c, &d));
    assert_true(grt_config_override(&c, "min_learning_rate=0.010001"));
    TEST_REFUSED(grt_task_optimizer(&c, &d), GRT_CONFIG, "is above the learning rate");
}

#define MLP(field) offsetof(struct grt_mlp_desc, field)

static const struct arrival of_networks[] = {
    {"depth=3", WHOLE, MLP(depth), 3},
    {"hidden=24", WHOLE, MLP(hidden), 24},
    {NULL, WHOLE, MLP(outputs), 5},
    {"activation=gelu", WHOLE, MLP(act), GRT_ACT_GELU},
    {"residual=true", FLAG, MLP(residual), 1},
    {"layer_norm=true", FLAG, MLP(layer_norm), 1},
};

static void keys_of_networks(void **state) {
    (void)state;
    struct grt_config c;
    grt_config_init(&c);
    give(&c, of_networks, COUNT(of_networks));
    assert_true(grt_task_widths(&c));
    struct grt_mlp_desc mlp = grt_task_mlp(&c, 5);
    arrives(&mlp, of_networks, COUNT(of_networks));
    assert_int_equal(mlp.widths[0], 0);
    // Widths of their own, the last one apart; and widths that are all the same.
    static const struct {
        const char *hidden;
        uint32_t widths[4], depth;
    } lists[] = {{"hidden=[8, 8, 9]", {8, 8, 9, 0}, 3},
                 {"hidden=[9, 8, 8]", {9, 8, 8, 0}, 3},
                 {"hidden=[8, 8]", {0, 0, 0, 0}, 2}};
    for (size_t i = 0; i < COUNT(lists); i++) {
        grt_config_init(&c);
        assert_true(grt_config_override(&c, lists[i].hidden));
        assert_true(grt_task_widths(&c));
        mlp = grt_task_mlp(&c, 1);
        assert_int_equal(mlp.depth, lists[i].depth);
        for (int k = 0; k < 4; k++) {
            assert_int_equal(mlp.widths[k], lists[i].widths[k]);
        }
    }
    assert_true(grt_config_override(&c, "depth=3"));
    TEST_REFUSED(grt_task_widths(&c), GRT_CONFIG, "hidden has 2 widths and depth is 3");
    grt_config_init(&c);
    assert_true(grt_config_override(&c, "hidden=[8, 9]"));
    assert_true(grt_config_override(&c, "residual=true"));
    TEST_REFUSED(grt_task_widths(&c), GRT_CONFIG, "layers of one width");
}

#define LEARNER(field) offsetof(struct grt_learner_desc, field)

static const struct arrival of_learners[] = {
    {"batch_size=7", WHOLE, LEARNER(batch), 21},
    {"accumulate=3", WHOLE, LEARNER(accumulate), 3},
    {"loss=huber", WHOLE, LEARNER(loss), GRT_LOSS_HUBER},
    {"huber_delta=0.75", SINGLE, LEARNER(huber_delta), 0.75},
    {"label_smoothing=0.125", SINGLE, LEARNER(label_smoothing), 0.125},
    {"precision=bf16", WHOLE, LEARNER(precision), GRT_BF16},
    {"activation_checkpointing=true", FLAG, LEARNER(recompute), 1},
    {NULL, WHOLE, LEARNER(outputs), 1},
};

static void keys_of_learners(void **state) {
    (void)state;
    run_kit_begin(GRT_MAKE_REGRESSION);
    struct grt_config c = run_kit_config("learner", PAIRS("seed=5000000000"));
    struct grt_task task;
    give(&c, of_learners, COUNT(of_learners));
    assert_true(grt_task_open(&task, &c, grt_dev_profile(test.dev), NULL));
    arrives(&task.learner, of_learners, COUNT(of_learners));
    assert_true(task.learner.seed == 5000000000);
    grt_task_close(&task);
    run_kit_end();
}

// ---- proximal policy optimization ----

#define PPO(field) offsetof(struct grt_ppo_desc, field)

static const struct arrival of_ppo[] = {
    {"rollout_steps=11", WHOLE, PPO(horizon), 11},
    {"update_epochs=3", WHOLE, PPO(epochs), 3},
    {"discount=0.81", REAL, PPO(gamma), 0.81},
    {"gae_lambda=0.82", REAL, PPO(lambda), 0.82},
    {"clip=0.13", REAL, PPO(clip), 0.13},
    {"value_clip=0.34", REAL, PPO(value_clip), 0.34},
    {"value_weight=0.65", REAL, PPO(value_weight), 0.65},
    {"entropy_weight=0.036", REAL, PPO(entropy_weight), 0.036},
    {"target_kl=0.47", REAL, PPO(target_kl), 0.47},
    {"log_std=-0.58", REAL, PPO(log_std), -0.58},
    {"normalize_observations=true", FLAG, PPO(normalise), 1},
    {"learning_rate=0.011", REAL, PPO(optim.lr), 0.011},
    {"eps=0.0017", REAL, PPO(optim.eps), 0.0017},
    {"betas=[0.15, 0.16]", REAL, PPO(optim.beta2), 0.16},
    {"max_grad_norm=1.8", REAL, PPO(optim.max_norm), 1.8},
    {"min_learning_rate=0.0022", REAL, PPO(optim.min_lr), 0.0022},
    {"schedule=linear", WHOLE, PPO(optim.schedule), GRT_SCHEDULE_LINEAR},
};

static struct grt_ppo_task *rank_task_of(struct grt_config *c, const char *const *pairs,
                                         struct grt_comm *comm) {
    grt_config_init_for(c, GRT_CONFIG_OF_PPO);
    for (; *pairs; pairs++) {
        assert_true(grt_config_override(c, *pairs));
    }
    return grt_ppo_task_create(grt_ppo_task_desc(.dev = test.dev, .config = c,
                                                 .env = grt_env_find("cartpole"), .comm = comm));
}

static struct grt_ppo_task *task_of(struct grt_config *c, const char *const *pairs) {
    return rank_task_of(c, pairs, NULL);
}

#define SMALL "hidden=4", "depth=1", "evaluate_envs=2"

static void keys_of_ppo(void **state) {
    (void)state;
    struct grt_config c;
    const char *pairs[COUNT(of_ppo) + 8] = {SMALL, "num_envs=6", "iterations=5", "seed=5000000000"};
    for (size_t i = 0; i < COUNT(of_ppo); i++) {
        pairs[6 + i] = of_ppo[i].pair;
    }
    struct grt_ppo_task *task = task_of(&c, pairs);
    assert_non_null(task);
    const struct grt_ppo_desc *d = grt_ppo_desc_of(task->ppo);
    arrives(d, of_ppo, COUNT(of_ppo));
    assert_true(d->seed == 5000000000);
    assert_int_equal(task->copies, 6);
    assert_int_equal(task->steps, 11);
    assert_int_equal(task->parts, 1);
    // A quarter of 66 rows, rounded up; 5 iterations of 3 epochs of 4 minibatches.
    assert_int_equal(d->batch, 17);
    assert_int_equal(d->optim.total, 5 * 3 * 4);
    grt_ppo_task_destroy(&task);
}

// Copies, steps, minibatches and updates that follow from keys.
static void sizes_of_ppo(void **state) {
    (void)state;
    static const struct {
        const char *pairs[4];
        uint32_t copies, steps, batch, total, parts;
    } cases[] = {
        // 64 rows: seven minibatches of 10, the last one short.
        {{"num_envs=8", "rollout_steps=8", "batch_size=10"}, 8, 8, 10, 2 * 4 * 7, 1},
        // Each of two parts has 32 rows, and half of a minibatch, rounded up: 6 of 6.
        {{"num_envs=8", "rollout_steps=8", "batch_size=11", "micro_batches=2"},
         8,
         8,
         6,
         2 * 4 * 6,
         2},
        {{"episodes_per_batch=4", "episode_limit=9"}, 4, 9, 9, 2 * 4 * 4, 1},
        {{"episodes_per_worker=3", "num_workers=2", "episode_limit=5"}, 6, 5, 8, 2 * 4 * 4, 1},
        {{"episodes_per_worker=3", "episode_limit=5", "rollout_steps=7"}, 3, 7, 6, 2 * 4 * 4, 1},
        {{"episodes_per_batch=4", "episode_limit=9", "num_envs=2"}, 2, 128, 64, 2 * 4 * 4, 1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *pairs[10] = {SMALL, "iterations=2", "schedule=cosine"};
        struct grt_config c;
        memcpy(&pairs[5], cases[i].pairs, sizeof cases[i].pairs);
        struct grt_ppo_task *task = task_of(&c, pairs);
        assert_non_null(task);
        const struct grt_ppo_desc *d = grt_ppo_desc_of(task->ppo);
        assert_int_equal(task->copies, cases[i].copies);
        assert_int_equal(task->steps, cases[i].steps);
        assert_int_equal(task->parts, cases[i].parts);
        assert_int_equal(d->horizon, cases[i].steps);
        assert_int_equal(d->batch, cases[i].batch);
        assert_int_equal(d->optim.total, cases[i].total);
        assert_int_equal(d->optim.schedule, GRT_SCHEDULE_COSINE);
        grt_ppo_task_destroy(&task);
    }
    struct grt_config c;
    TEST_REFUSED(task_of(&c, PAIRS(SMALL, "num_envs=6", "micro_batches=4")), GRT_CONFIG,
                 "6 copies are not cut into 4 equal parts");
    TEST_REFUSED(task_of(&c, PAIRS(SMALL, "num_envs=6", "micro_batches=3")), GRT_CONFIG,
                 "a power of two");
    TEST_REFUSED(task_of(&c, PAIRS(SMALL, "schedule=plateau")), GRT_CONFIG, "which PPO has not");
}

// What a checkpoint of PPO says is what a resumed run is given, where it is given nothing itself.
static void recalled_by_ppo(void **state) {
    (void)state;
    struct grt_config c, again;
    struct grt_ppo_task *task =
        task_of(&c, PAIRS(SMALL, "num_envs=4", "rollout_steps=3", "clip=0.13", "micro_batches=2",
                          "iterations=7", "max_time=1h"));
    struct grt_archive *a = grt_archive_create();
    assert_non_null(task);
    assert_true(grt_ppo_task_save(task, "cartpole", a));
    for (int resume = 0; resume < 2; resume++) {
        grt_config_init_for(&again, GRT_CONFIG_OF_PPO);
        assert_true(grt_config_override(&again, "rollout_steps=5"));
        assert_true(grt_ppo_task_recall(&again, a, resume));
        assert_true(again.clip == 0.13);
        assert_int_equal(again.num_envs, 4);
        assert_int_equal(again.rollout_steps, 5);
        assert_int_equal(again.iterations, 7);
        assert_int_equal(again.micro_batches, resume ? 2 : 0);
        assert_false(grt_config_given(&again, GRT_CONFIG_MAX_TIME));
    }
    // Of a file whose texts have become numbers too.
    assert_true(grt_archive_set_whole(a, "config_num_envs", 6) &&
                grt_archive_set_real(a, "config_clip", 0.3125));
    grt_config_init_for(&again, GRT_CONFIG_OF_PPO);
    assert_true(grt_ppo_task_recall(&again, a, false));
    assert_int_equal(again.num_envs, 6);
    assert_true(again.clip == 0.3125);
    grt_archive_destroy(&a);
    grt_ppo_task_destroy(&task);
    // What was not given is there under its name: what the device came to.
    task = task_of(&c, PAIRS(SMALL, "num_envs=4", "rollout_steps=3", "iterations=1"));
    a = grt_archive_create();
    assert_true(task && grt_ppo_task_save(task, "here/my.k", a));
    assert_string_equal(grt_archive_text(a, "config_micro_batches", ""), "1");
    assert_string_equal(grt_archive_text(a, "config_num_envs", ""), "4");
    assert_string_equal(grt_archive_text(a, "config_rollout_steps", ""), "3");
    assert_string_equal(grt_archive_text(a, "config_activation", ""), c.activation);
    assert_string_equal(grt_archive_text(a, "env", ""), "cartpole");
    assert_string_equal(grt_archive_text(a, "env_file", ""), "here/my.k");
    grt_archive_destroy(&a);
    grt_ppo_task_destroy(&task);
}

// Another shape: what the checkpoint was made with and this run is not.
static void misfits_of_ppo(void **state) {
    (void)state;
    static const struct {
        const char *pairs[2];
        enum grt_ppo_part part;
        const char *says;
    } cases[] = {
        {{"hidden=5"},
         GRT_PPO_NETWORKS,
         "a.h5: tensor 'model/actor.layers.0.weight' is f32 [4][4] there and f32 [5][4] here: it "
         "was made with hidden=4, here hidden=5; what is left out is as it was there"},
        {{"layer_norm=true", "num_envs=2"},
         GRT_PPO_ACTOR,
         "it was made with layer_norm=false, here layer_norm=true; what"},
        {{"num_envs=3"},
         GRT_PPO_ALL,
         " here: it was made with num_envs=4, here num_envs=3; what is left out"},
        {{"num_envs=3", "hidden=5"},
         GRT_PPO_ALL,
         ": it was made with hidden=4, num_envs=4, here hidden=5, num_envs=3; what"},
    };
    struct grt_config c;
    struct grt_ppo_task *task =
        task_of(&c, PAIRS(SMALL, "num_envs=4", "rollout_steps=3", "iterations=1"));
    struct grt_archive *a = grt_archive_create();
    assert_true(task && grt_ppo_task_save(task, "cartpole", a));
    snprintf(a->path, sizeof a->path, "a.h5");
    assert_true(grt_ppo_task_load(task, a, GRT_PPO_ALL));
    TEST_REFUSED(grt_ppo_task_load(NULL, a, GRT_PPO_ALL), GRT_INVALID, "no PPO");
    TEST_REFUSED(grt_ppo_task_load(task, NULL, GRT_PPO_ALL), GRT_INVALID, "no archive");
    grt_ppo_task_destroy(&task);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *pairs[10] = {SMALL, "num_envs=4", "rollout_steps=3", "iterations=1"};
        memcpy(&pairs[6], cases[i].pairs, sizeof cases[i].pairs);
        task = task_of(&c, pairs);
        assert_non_null(task);
        TEST_REFUSED(grt_ppo_task_load(task, a, cases[i].part), GRT_BAD_DATA, cases[i].says);
        grt_ppo_task_destroy(&task);
    }
    // Of another environment, of another kind of training, and of who knows whom.
    static const struct {
        const char *name, *text, *says;
    } others[] = {
        {"env", "pendulum",
         " here: it is of a policy for 'pendulum', and this is one for 'cartpole'"},
        {"learner", "", " here: it is of a policy for 'pendulum', and"},
        {"config", "x",
         "a.h5 holds a network of `gpurt train supervised`, and none of `gpurt train ppo`"},
        {"algo", "ars", "a.h5 holds a policy of `gpurt train es` for 'pendulum', and none of"},
    };
    task = task_of(&c, PAIRS(SMALL, "num_envs=3", "rollout_steps=3", "iterations=1"));
    assert_non_null(task);
    for (size_t i = 0; i < COUNT(others); i++) {
        assert_true(grt_archive_set_text(a, others[i].name, others[i].text));
        TEST_REFUSED(grt_ppo_task_load(task, a, GRT_PPO_ALL), GRT_BAD_DATA, others[i].says);
    }
    grt_archive_destroy(&a);
    grt_ppo_task_destroy(&task);
}

// Copies stand in a checkpoint one behind the other, in however many parts they are.
static void copies_of_parts(void **state) {
    (void)state;
    struct grt_archive *archives[2];
    for (int k = 0; k < 2; k++) {
        struct grt_config c;
        struct grt_ppo_task *task = task_of(
            &c, PAIRS(SMALL, "num_envs=8", "rollout_steps=3", k ? "micro_batches=4" : "seed=0"));
        archives[k] = grt_archive_create();
        assert_non_null(task);
        assert_true(grt_ppo_task_save(task, "cartpole", archives[k]));
        grt_ppo_task_destroy(&task);
    }
    uint32_t found = 0;
    for (uint32_t i = 0; i < archives[0]->tensor_count; i++) {
        const struct grt_archive_tensor *one = &archives[0]->tensors[i];
        if (strncmp(one->name, "worlds/", 7) == 0) {
            const struct grt_archive_tensor *parts = grt_archive_find(archives[1], one->name);
            assert_non_null(parts);
            test_same(test.dev, one->name, parts->data, one->data, 1, one->bytes);
            found++;
        }
    }
    assert_true(found > 0);
    grt_archive_destroy(&archives[0]);
    grt_archive_destroy(&archives[1]);
}

// ---- another rank that tells whatever this one does ----

struct mirror {
    uint32_t exchanges;
    uint64_t bytes;  // that this rank has told
};

static bool two_ranks(void *self, uint32_t *rank, uint32_t *ranks, char why[GRT_TRANSPORT_WHY]) {
    (void)self, (void)why;
    *rank = 0;
    *ranks = 2;
    return true;
}

static bool gather(void *self, void *all, size_t each) {
    struct mirror *m = self;
    m->exchanges++;
    m->bytes += each;
    memcpy((char *)all + each, all, each);
    return true;
}

static bool spread(void *self, const void *out, void *in, size_t each) {
    memcpy(in, out, each);
    return gather(self, in, each);
}

static bool over(void *self, bool *is_over) {
    (void)self;
    *is_over = true;
    return true;
}

static void end(void *self) {
    (void)self;
}

// An iteration tells sums and gradients, however many copies there are; their states are told where
// they are saved, once.
static void states_of_ranks(void **state) {
    (void)state;
    uint64_t told[2];
    for (int k = 0; k < 2; k++) {
        struct mirror m = {0};
        const struct grt_transport table = {
            GRT_TRANSPORT_VERSION, "a mirror", &m, two_ranks, gather, spread, over, end};
        struct grt_comm *comm =
            grt_comm_start(grt_comm_desc(.transport = &table, .messages = true));
        struct grt_config c;
        struct grt_ppo_report r;
        struct grt_ppo_task *task = rank_task_of(
            &c,
            PAIRS(SMALL, "rollout_steps=4", "update_epochs=1", k ? "num_envs=24" : "num_envs=8"),
            comm);
        // Before the first the weights are compared.
        assert_true(task && grt_ppo_task_iterate(task, &r));
        m.bytes = 0;
        assert_true(grt_ppo_task_iterate(task, &r) && !r.stopped && r.iteration == 2);
        told[k] = m.bytes;
        m = (struct mirror){0};
        struct grt_archive *archive = grt_archive_create();
        assert_true(grt_ppo_task_save(task, "cartpole", archive));
        uint64_t states = 0;
        for (uint32_t i = 0; i < archive->tensor_count; i++) {
            const struct grt_archive_tensor *t = &archive->tensors[i];
            states += strncmp(t->name, "worlds/", 7) == 0 ? t->bytes : 0;
        }
        // A word of a byte that all have theirs, and the states.
        assert_int_equal(m.exchanges, 2);
        assert_true(m.bytes > 1 && states == 2 * (m.bytes - 1));
        grt_archive_destroy(&archive);
        grt_ppo_task_destroy(&task);
        grt_comm_end(&comm, true);
    }
    assert_true(told[0] > 0);
    assert_int_equal(told[1], told[0]);
}

// ---- steps of a run ----

#define MOST_ROWS 64

struct heard {
    uint32_t trains, judges;
    uint64_t judged[MOST_ROWS];
    double epoch[MOST_ROWS], lr[MOST_ROWS];  // of steps, by their number
    double steps;                            // that the start says
    enum grt_ending ending;
};

static void hear(void *context, const struct grt_run_report *r) {
    struct heard *h = context;
    if (r->news != GRT_RUN_NEWS_ROW) {
        return;
    }
    if (r->row->event == GRT_RUN_START) {
        h->steps = r->row->numbers[GRT_FIELD_STEPS];
    } else if (r->row->event == GRT_RUN_TRAIN && r->step < MOST_ROWS) {
        h->lr[r->step] = r->row->numbers[GRT_FIELD_LR];
        h->epoch[r->step] = r->row->numbers[GRT_FIELD_EPOCH];
        h->trains++;
    } else if (r->row->event == GRT_RUN_EVALUATE && h->judges < MOST_ROWS) {
        h->judged[h->judges++] = r->step;
    }
}

static struct heard train(const char *dir, const char *const *pairs) {
    struct heard h = {0};
    struct grt_config c;
    char path[128];
    snprintf(path, sizeof path, "%s/%s", run_kit_folder, dir);
    grt_config_init(&c);
    assert_true(grt_config_set(&c, GRT_CONFIG_DATA, run_kit_data));
    assert_true(grt_config_set(&c, GRT_CONFIG_CHECKPOINT_DIR, path));
    const char *const fixed[] = {"hidden=4",      "depth=1",    "batch_size=25",
                                 "num_workers=0", "cache=none", "log_interval=1"};
    for (size_t i = 0; i < COUNT(fixed); i++) {
        assert_true(grt_config_override(&c, fixed[i]));
    }
    for (; *pairs; pairs++) {
        assert_true(grt_config_override(&c, *pairs));
    }
    struct grt_supervised *run = grt_supervised_create(&(struct grt_supervised_desc){
        .dev = test.dev, .config = &c, .report = hear, .context = &h});
    assert_non_null(run);
    h.ending = grt_run_go(grt_supervised_driver(run));
    grt_supervised_destroy(&run);
    return h;
}

// 270 rows to learn from are 11 steps of 25, the last one short.
static void validations_and_limits(void **state) {
    (void)state;
    static const struct {
        const char *pairs[3];
        uint32_t steps, judges;
        uint64_t judged[8];
        bool cut;
    } cases[] = {
        {{"epochs=2"}, 22, 2, {11, 22}},
        {{"epochs=2", "val_check_interval=0.4"}, 22, 6, {4, 8, 12, 16, 20, 22}},
        {{"epochs=1", "val_check_interval=0.05", "limit_train_batches=3"}, 3, 3, {1, 2, 3}},
        {{"epochs=1", "val_check_interval=5"}, 11, 3, {5, 10, 11}},
        {{"epochs=3", "val_check_interval=15"}, 33, 3, {15, 30, 33}},
        {{"epochs=2", "max_steps=14"}, 14, 2, {11, 14}, true},
        {{"epochs=2", "max_steps=23"}, 22, 2, {11, 22}},
        // Steps alone make as many epochs as they take.
        {{"max_steps=23"}, 23, 3, {11, 22, 23}, true},
        // Shares are of 11 steps: 6, and at least one.
        {{"epochs=2", "limit_train_batches=0.55"}, 12, 2, {6, 12}},
        {{"epochs=1", "limit_train_batches=0.01"}, 1, 1, {1}},
        {{"epochs=1", "limit_train_batches=11"}, 11, 1, {11}},
        {{"epochs=1", "drop_last=true"}, 10, 1, {10}},
    };
    run_kit_begin(GRT_MAKE_REGRESSION);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char dir[16];
        const char *pairs[4] = {NULL};
        snprintf(dir, sizeof dir, "run%zu", i);
        memcpy(pairs, cases[i].pairs, sizeof cases[i].pairs);
        struct heard h = train(dir, pairs);
        assert_int_equal(h.ending, cases[i].cut ? GRT_ENDED_MAX_STEPS : GRT_ENDED_EPOCHS);
        assert_int_equal(h.trains, cases[i].steps);
        assert_true(h.steps == cases[i].steps);
        assert_int_equal(h.judges, cases[i].judges);
        for (uint32_t k = 0; k < h.judges; k++) {
            assert_int_equal(h.judged[k], cases[i].judged[k]);
        }
    }
    run_kit_end();
}

// The rate of every step, and the epoch that its row names, where a schedule is cut by the steps
// that there are.
static void rates_of_runs(void **state) {
    (void)state;
    enum { EACH = 11, ALL = 44, WARM = 4 };
    static const struct {
        const char *pairs[3];
    } cases[] = {
        {{"schedule=step", "gamma=0.5"}},  // a third of the epochs, rounded up: 2 each
        {{"schedule=step", "gamma=0.5", "lr_step=1"}},
        {{"schedule=cosine", "warmup_ratio=0.1"}},
        {{"schedule=linear", "warmup_steps=4", "min_learning_rate=0.001"}},
        {{"schedule=constant", "warmup_ratio=0.1"}},
    };
    run_kit_begin(GRT_MAKE_REGRESSION);
    for (int i = 0; i < (int)COUNT(cases); i++) {
        char dir[16];
        const char *pairs[6] = {"epochs=4", "learning_rate=0.01"};
        snprintf(dir, sizeof dir, "rate%d", i);
        memcpy(&pairs[2], cases[i].pairs, sizeof cases[i].pairs);
        struct heard h = train(dir, pairs);
        assert_int_equal(h.ending, GRT_ENDED_EPOCHS);
        assert_int_equal(h.trains, ALL);
        for (int s = 0; s < ALL; s++) {
            double share = (double)(s - WARM) / (ALL - WARM), want = 0.01;
            int epoch = s / EACH + 1;
            if (i < 2) {
                int stair = s / (i == 0 ? 2 * EACH : EACH);
                want *= pow(0.5, stair);
            } else if (s < WARM) {
                want *= (s + 1.0) / WARM;
            } else if (i == 2) {
                want *= (1 + cos(ORACLE_PI * share)) / 2;
            } else if (i == 3) {
                want -= 0.009 * share;
            }
            if (fabs(h.lr[s + 1] - want) > 1e-6 * 0.01 || h.epoch[s + 1] != epoch) {
                fail_msg("schedule %d, step %d: rate %.9g, not %.9g, epoch %g", i, s + 1,
                         h.lr[s + 1], want, h.epoch[s + 1]);
            }
        }
    }
    run_kit_end();
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(keys_of_optimizers), TEST_CASE(keys_of_networks),       TEST_CASE(keys_of_learners),
    TEST_CASE(keys_of_ppo),        TEST_CASE(sizes_of_ppo),           TEST_CASE(recalled_by_ppo),
    TEST_CASE(misfits_of_ppo),     TEST_CASE(copies_of_parts),        TEST_CASE(states_of_ranks),
    TEST_CASE(rates_of_runs),      TEST_CASE(validations_and_limits),
};
TEST_SUITE(tasks, true, cases);
