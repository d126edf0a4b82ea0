// SPDX-License-Identifier: Apache-2.0
// What a learner of PPO says of itself: its defaults, what it refuses at both sides of each limit,
// its sizes and first numbers, every tensor of its checkpoint and what each part of one is loaded
// of, and the sentences of what does not fit.
#include "kits/ref_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kits/ppo_kit.h"
#include "rl/ppo_parts.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

// ---- what a desc may have ----

static void defaults(void **state) {
    (void)state;
    struct grt_ppo_desc d = grt_ppo_defaults();
    assert_true(d.horizon == 128 && d.batch == 0 && d.epochs == 4);
    assert_true(d.gamma == 0.99 && d.lambda == 0.95 && d.clip == 0.2 && d.value_clip == 0);
    assert_true(d.value_weight == 0.5 && d.entropy_weight == 0.01 && d.target_kl == 0);
    assert_true(d.optim.kind == GRT_OPTIM_ADAM && d.optim.lr == 3e-4 && d.optim.eps == 1e-5 &&
                d.optim.max_norm == 0.5 && d.optim.ema == 0);
    assert_true(!d.normalise && !d.central && d.log_std == 0 && d.precision == GRT_F32);
    assert_true(!d.variant && d.parts == 0 && d.seed == 0 && !d.stop);
}

#define WEIGHTS "clip must be above 0, and value_clip, weights and target_kl not below 0"
#define SHARES "gamma and lambda must be from 0 to 1"
#define REFUSED(change, why)                                                                       \
    do {                                                                                           \
        struct grt_ppo_desc d = good;                                                              \
        change;                                                                                    \
        TEST_REFUSED(grt_ppo_create(test.dev, &d), GRT_CONFIG, "ppo: " why);                       \
    } while (0)
#define TAKEN(change)                                                                              \
    do {                                                                                           \
        struct grt_ppo_desc d = good;                                                              \
        change;                                                                                    \
        struct grt_ppo *ppo = grt_ppo_create(test.dev, &d);                                        \
        assert_non_null(ppo);                                                                      \
        grt_ppo_destroy(&ppo);                                                                     \
    } while (0)

static void limits_of_a_desc(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    struct ppo_made made = ppo_make(&m);
    struct grt_ppo_desc good = made.ppo->desc;
    good.actor.of = &made.actor;
    good.critic.of = &made.critic;
    good.horizon = 2;
    good.epochs = 1;
    grt_ppo_destroy(&made.ppo);
    REFUSED(d.worlds = NULL, "no worlds");
    REFUSED(d.actor.make = NULL, "no actor or no critic");
    REFUSED(d.critic.make = NULL, "no actor or no critic");
    REFUSED(d.horizon = 0, "horizon and epochs must be at least 1");
    REFUSED(d.epochs = 0, "horizon and epochs must be at least 1");
    REFUSED(d.gamma = -1e-9, SHARES);
    REFUSED(d.gamma = 1.000001, SHARES);
    REFUSED(d.gamma = (double)NAN, SHARES);
    REFUSED(d.lambda = -1e-9, SHARES);
    REFUSED(d.lambda = 1.000001, SHARES);
    REFUSED(d.lambda = (double)NAN, SHARES);
    REFUSED(d.clip = 0, WEIGHTS);
    REFUSED(d.clip = -0.2, WEIGHTS);
    REFUSED(d.value_clip = -1e-9, WEIGHTS);
    REFUSED(d.value_clip = (double)INFINITY, WEIGHTS);
    REFUSED(d.value_weight = -1e-9, WEIGHTS);
    REFUSED(d.entropy_weight = -1e-9, WEIGHTS);
    REFUSED(d.entropy_weight = (double)NAN, WEIGHTS);
    REFUSED(d.target_kl = -1e-9, WEIGHTS);
    REFUSED(d.log_std = -20.001, "log_std must be from -20 to 10");
    REFUSED(d.log_std = 10.001, "log_std must be from -20 to 10");
    REFUSED(d.log_std = (double)NAN, "log_std must be from -20 to 10");
    REFUSED(d.precision = GRT_U32, "precision must be f32, f16 or bf16");
    REFUSED(d.variant = "row", "variant must be NULL, \"layers\" or \"rows\"");
    REFUSED((d.part = 2, d.parts = 2), "part must be below parts");
    REFUSED(d.central = true,
            "the environment has no observation of the whole for a central critic");
    REFUSED(d.optim.lr = 0, "lr must be above 0");
    TAKEN(d.gamma = d.lambda = 0);
    TAKEN(d.gamma = d.lambda = 1);
    TAKEN(d.value_clip = d.value_weight = d.entropy_weight = d.target_kl = 0);
    TAKEN(d.clip = 1e-9);
    TAKEN(d.log_std = -20);
    TAKEN(d.log_std = 10);
    TAKEN(d.variant = "layers");
    TAKEN(d.variant = "rows");
    TAKEN((d.part = 1, d.parts = 2));
    TAKEN(d.horizon = 1);
    TEST_REFUSED(grt_ppo_create(NULL, &good), GRT_INVALID, "ppo: no device");
    TEST_REFUSED(grt_ppo_create(test.dev, NULL), GRT_INVALID, "ppo: no desc");
    // A network that gives something else.
    made.actor.outputs = 3;
    TEST_REFUSED(grt_ppo_create(test.dev, &good), GRT_CONFIG,
                 "the actor gives [3] for an observation; it must give [1]");
    made.actor.outputs = 1;
    made.critic.outputs = 2;
    TEST_REFUSED(grt_ppo_create(test.dev, &good), GRT_CONFIG,
                 "the critic gives [2] for an observation; it must give [1]");
    ppo_end(&made);
}

static void calls_without_what_they_need(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    struct ppo_made made = ppo_make(&m);
    struct grt_ppo *ppo = made.ppo;
    struct grt_ppo_report r;
    struct grt_ppo_times times;
    double seconds;
    TEST_REFUSED(grt_ppo_iterate(NULL, &r), GRT_INVALID, "grt_ppo_iterate: no PPO");
    TEST_REFUSED(grt_ppo_iterate(ppo, NULL), GRT_INVALID, "grt_ppo_iterate: no report");
    TEST_REFUSED(grt_ppo_iterate_by_host(ppo, &r, NULL), GRT_INVALID, "no PPO, report or times");
    TEST_REFUSED(grt_ppo_iterate_by_host(NULL, &r, &times), GRT_INVALID, "no PPO, report or times");
    TEST_REFUSED(grt_ppo_prepare(ppo, NULL), GRT_INVALID, "grt_ppo_prepare: no PPO or worlds");
    TEST_REFUSED(grt_ppo_prepare(NULL, made.worlds), GRT_INVALID, "no PPO or worlds");
    TEST_REFUSED(grt_ppo_evaluate(ppo, NULL, GRT_PPO_TRY_POLICY, 1, &r), GRT_INVALID,
                 "grt_ppo_evaluate: no PPO, worlds, trial or report");
    TEST_REFUSED(grt_ppo_evaluate(ppo, made.worlds, GRT_PPO_TRIAL_COUNT, 1, &r), GRT_INVALID,
                 "grt_ppo_evaluate: no");
    TEST_REFUSED(grt_ppo_watch(ppo, made.worlds, GRT_PPO_TRY_POLICY, 1, 0, NULL, NULL, &r),
                 GRT_INVALID, "grt_ppo_watch: no");
    TEST_REFUSED(grt_ppo_environment(NULL, &seconds), GRT_INVALID, "grt_ppo_environment: no PPO");
    TEST_REFUSED(grt_ppo_environment(ppo, NULL), GRT_INVALID,
                 "grt_ppo_environment: no place for the seconds");
    TEST_REFUSED(grt_ppo_save(NULL, NULL), GRT_INVALID, "grt_ppo_save: no PPO");
    TEST_REFUSED(grt_ppo_save(ppo, NULL), GRT_INVALID, "grt_ppo_save: no archive");
    TEST_REFUSED(grt_ppo_load(NULL, NULL, GRT_PPO_ALL), GRT_INVALID, "grt_ppo_load: no PPO");
    TEST_REFUSED(grt_ppo_load(ppo, NULL, GRT_PPO_ALL), GRT_INVALID, "grt_ppo_load: no archive");
    assert_null(grt_ppo_desc_of(NULL));
    assert_true(grt_ppo_size(NULL).parameters == 0 && grt_ppo_size(NULL).bytes == 0);
    struct grt_ppo *none = NULL;
    grt_ppo_destroy(&none);
    grt_ppo_destroy(NULL);
    static const char *const trials[] = {"the policy", "random actions"};
    static const char *const phases[] = {"environment", "action selection", "advantages", "update"};
    for (int i = 0; i < 4; i++) {
        assert_string_equal(grt_ppo_phase_text((enum grt_ppo_phase)i), phases[i]);
        assert_string_equal(grt_ppo_trial_text((enum grt_ppo_trial)i), i < 2 ? trials[i] : "");
    }
    ppo_end(&made);
}

// ---- sizes ----

static void sizes(void **state) {
    (void)state;
    static const struct {
        uint32_t batch, batches;
        uint64_t of_each;
    } rows[] = {{0, 1, 70},  {70, 1, 70}, {71, 1, 70}, {69, 2, 35}, {35, 2, 35},
                {34, 3, 24}, {32, 3, 24}, {1, 70, 1},  {23, 4, 18}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct ppo_maker m = ppo_pendulums();
        m.desc.batch = rows[i].batch;
        m.desc.epochs = 1;
        struct ppo_made made = ppo_make(&m);
        struct grt_ppo_size size = grt_ppo_size(made.ppo);
        // Two networks of two hidden layers of 6, and the deviation.
        assert_int_equal(size.parameters, 2 * (4 * 6 + 7 * 6 + 7 * 1) + 1);
        assert_int_equal(size.rows, 7 * 10);
        assert_int_equal(size.batches, rows[i].batches);
        assert_int_equal(made.ppo->batch, rows[i].of_each);
        assert_true(size.bytes > 4 * size.parameters);
        assert_int_equal(grt_ppo_desc_of(made.ppo)->horizon, 10);
        ppo_end(&made);
    }
    struct ppo_maker m = ppo_uavs();
    m.desc.epochs = 1;
    struct ppo_made made = ppo_make(&m);
    // 9 choices of what one of three UAVs sees, and a critic that sees the whole too.
    const uint64_t obs = 15 + 3 * 9, whole = 5 * 3 + 64;
    assert_int_equal(grt_ppo_size(made.ppo).parameters,
                     (obs + 1) * 6 + 7 * 6 + 7 * 9 + (obs + whole + 1) * 6 + 7 * 6 + 7);
    assert_int_equal(grt_ppo_size(made.ppo).rows, 5 * 3 * 12);
    ppo_end(&made);
}

// ---- the beginning ----

static bool same_params(const struct grt_ppo *a, const struct grt_ppo *b) {
    float *x = ppo_read(a->params.master), *y = ppo_read(b->params.master);
    bool same = memcmp(x, y, a->params.elements * sizeof *x) == 0;
    free(x);
    free(y);
    return same;
}

// The same seed begins alike; actions begin with the deviation that was given. Observations are
// left as they are until some were seen, and averages are the networks.
static void what_a_learner_begins_with(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    m.desc.normalise = true;
    m.desc.optim.ema = 0.5;
    m.desc.log_std = -1.25;
    m.desc.seed = 5;
    struct ppo_made one = ppo_make(&m), two = ppo_make(&m);
    m.desc.seed = 6;
    struct ppo_made other = ppo_make(&m);
    assert_true(same_params(one.ppo, two.ppo) && !same_params(one.ppo, other.ppo));
    double *params = ppo_widened(one.ppo->params.master);
    double *average = ppo_widened(one.ppo->average);
    assert_memory_equal(params, average, one.ppo->params.elements * sizeof *params);
    assert_true(params[one.ppo->log_std->first] == -1.25 && one.ppo->log_std->count == 1);
    float *norm = ppo_read(one.ppo->norm), *counts = ppo_read(one.ppo->counts);
    for (int i = 0; i < 3; i++) {
        assert_true(norm[i] == 0 && norm[3 + i] == 1 && norm[6 + i] == 0 && counts[i] == 0);
    }
    uint32_t *control = ppo_read(one.ppo->learning.control);
    assert_true(control[0] == 5 && control[1] == 0 && control[2] == 0 && control[3] == 0);
    assert_int_equal(one.ppo->done, 0);
    assert_int_equal(one.ppo->net.rows, 256);
    free(params);
    free(average);
    free(norm);
    free(counts);
    free(control);
    ppo_end(&one);
    ppo_end(&two);
    ppo_end(&other);
}

// Beyond 1024 numbers either way a matrix is what the network drew: its rows are not of one length.
static void large_matrices_are_not_made_orthogonal(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    m.desc.horizon = m.desc.epochs = 1;
    const struct grt_mlp_desc wide = {.depth = 2, .hidden = 1025, .outputs = 1},
                              narrow = {.depth = 1, .hidden = 4, .outputs = 1};
    struct ppo_made made = {.worlds = ppo_make_worlds(&m, 1, false)};
    m.desc.worlds = made.worlds;
    m.desc.actor = (struct grt_ppo_net){grt_mlp_make, &wide};
    m.desc.critic = (struct grt_ppo_net){grt_mlp_make, &narrow};
    made.ppo = grt_ppo_create(test.dev, &m.desc);
    assert_non_null(made.ppo);
    double *params = ppo_widened(made.ppo->params.master);
    for (int layer = 0; layer < 2; layer++) {
        const struct grt_param *p =
            ppo_param(made.ppo, layer ? "actor.layers.1.weight" : "actor.layers.0.weight");
        double least = 1e9, most = 0;
        uint64_t cols = layer ? p->shape[1] : 3, rows = layer ? p->shape[0] : 3;
        for (uint64_t i = 0; i < rows; i++) {
            double square = 0;
            // Of the first layer columns are as long as the gain.
            for (uint64_t k = 0; k < (layer ? cols : p->shape[0]); k++) {
                double w = params[p->first + (layer ? i * cols + k : k * cols + i)];
                square += w * w;
            }
            least = fmin(least, square);
            most = fmax(most, square);
        }
        assert_true(layer ? most > 1.05 * least && least > 0 : most < 2.001 && least > 1.999);
    }
    free(params);
    ppo_end(&made);
}

// ---- checkpoints ----

static void iterate(struct grt_ppo *ppo) {
    struct grt_ppo_report r;
    assert_true(grt_ppo_iterate(ppo, &r));
}

static struct ppo_maker kept_maker(void) {
    struct ppo_maker m = ppo_pendulums();
    m.desc.normalise = true;
    m.desc.optim.ema = 0.5;
    m.desc.seed = 31;
    m.desc.epochs = 1;
    m.desc.horizon = 4;
    return m;
}

static struct grt_archive *saved(const struct grt_ppo *ppo) {
    struct grt_archive *archive = grt_archive_create();
    assert_true(archive && grt_ppo_save(ppo, archive));
    return archive;
}

static const struct grt_archive_tensor *tensor_of(const struct grt_archive *archive,
                                                  const char *name) {
    const struct grt_archive_tensor *t = grt_archive_find(archive, name);
    if (!t) {
        fail_msg("no tensor '%s'", name);
    }
    return t;
}

static bool holds(const struct grt_archive *archive, const char *name, const struct grt_tensor *t) {
    const struct grt_archive_tensor *kept = tensor_of(archive, name);
    void *now = ppo_read(t);
    bool same = kept->bytes == grt_tensor_bytes(t) && memcmp(now, kept->data, kept->bytes) == 0;
    free(now);
    return same;
}

static void tensors_of_a_checkpoint(void **state) {
    (void)state;
    struct ppo_maker m = kept_maker();
    struct ppo_made made = ppo_make(&m);
    struct grt_ppo *ppo = made.ppo;
    iterate(ppo);
    iterate(ppo);
    struct grt_archive *archive = saved(ppo);
    uint32_t count = 0;
    for (int newest = 0; newest < 2; newest++) {
        for (uint32_t i = 0; i < ppo->params.count; i++) {
            const struct grt_param *p = ppo->params.list[i];
            const struct grt_tensor average = grt_params_view(p, ppo->average, 0);
            char name[160];
            snprintf(name, sizeof name, "%s%s", newest ? "optimizer/newest." : "model/", p->name);
            assert_true(holds(archive, name, newest ? &p->master : &average));
            assert_int_equal(tensor_of(archive, name)->dtype, GRT_F32);
            count++;
        }
    }
    static const char *const worlds[] = {"worlds/state", "worlds/book", "worlds/totals"};
    assert_true(holds(archive, "normalizer/mean_rstd_variance", ppo->norm));
    assert_true(holds(archive, "normalizer/counts", ppo->counts));
    assert_true(holds(archive, "optimizer/moments", ppo->kept));
    assert_true(holds(archive, "optimizer/state", ppo->state));
    assert_true(holds(archive, "optimizer/control", ppo->learning.control));
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(holds(archive, worlds[i], grt_plan_at(ppo->plan, "worlds", i)));
    }
    assert_int_equal(archive->tensor_count, count + 8);
    assert_string_equal(grt_archive_text(archive, "learner", ""), "ppo");
    assert_int_equal(grt_archive_whole(archive, "iteration", -1), 2);
    assert_int_equal(grt_archive_whole(archive, "seed", -1), 31);
    // Without an average and a normalizer the networks are what is learnt, and nothing else is
    // there.
    struct ppo_maker plain = ppo_pendulums();
    struct ppo_made other = ppo_make(&plain);
    struct grt_archive *few = saved(other.ppo);
    const struct grt_param *bias = ppo_param(other.ppo, "actor.layers.0.bias");
    assert_true(holds(few, "model/actor.layers.0.bias", &bias->master));
    assert_true(holds(few, "model/log_std", &other.ppo->log_std->master));
    assert_int_equal(few->tensor_count, count / 2 + 6);
    // It cannot go on as a run with these, nor the other way round.
    TEST_REFUSED(grt_ppo_load(ppo, few, GRT_PPO_ALL), GRT_BAD_DATA,
                 "the archive: tensor 'normalizer/mean_rstd_variance' is missing");
    grt_archive_destroy(&few);
    grt_archive_destroy(&archive);
    ppo_end(&other);
    ppo_end(&made);
}

// All of a run; its networks; or the actor alone: what is taken over, and what begins anew.
static void parts_of_a_checkpoint(void **state) {
    (void)state;
    struct ppo_maker m = kept_maker();
    struct ppo_made from = ppo_make(&m);
    for (int i = 0; i < 3; i++) {
        iterate(from.ppo);
    }
    struct grt_archive *archive = saved(from.ppo);
    m.desc.seed = 77;
    for (int part = GRT_PPO_ALL; part <= GRT_PPO_ACTOR; part++) {
        struct ppo_made to = ppo_make(&m);
        struct grt_ppo *ppo = to.ppo;
        bool all = part == GRT_PPO_ALL;
        double seconds;
        iterate(ppo);
        assert_true(grt_ppo_environment(ppo, &seconds));
        assert_true(grt_ppo_load(ppo, archive, (enum grt_ppo_part)part));
        // What was done here is no longer there to be done again.
        TEST_REFUSED(grt_ppo_environment(ppo, &seconds), GRT_INVALID,
                     "no iteration was done since the learner was made or loaded");
        for (uint32_t i = 0; i < ppo->params.count; i++) {
            const struct grt_param *p = ppo->params.list[i];
            const struct grt_tensor average = grt_params_view(p, ppo->average, 0);
            bool critic = strncmp(p->name, "critic.", 7) == 0;
            bool taken = part != GRT_PPO_ACTOR || !critic;
            char model[160], newest[160];
            snprintf(model, sizeof model, "model/%s", p->name);
            snprintf(newest, sizeof newest, "optimizer/newest.%s", p->name);
            assert_int_equal(holds(archive, model, &average), taken);
            assert_int_equal(holds(archive, all ? newest : model, &p->master), taken);
        }
        assert_true(holds(archive, "normalizer/counts", ppo->counts));
        assert_int_equal(holds(archive, "optimizer/moments", ppo->kept), all);
        assert_int_equal(holds(archive, "optimizer/control", ppo->learning.control), all);
        assert_int_equal(holds(archive, "worlds/state", grt_plan_at(ppo->plan, "worlds", 0)), all);
        struct grt_ppo_report r;
        assert_true(grt_ppo_iterate(ppo, &r));
        assert_int_equal(r.iteration, all ? 4 : 2);
        ppo_end(&to);
    }
    grt_archive_destroy(&archive);
    ppo_end(&from);
}

// One tensor that is missing, or of another size, and nothing has changed, whichever it is.
static void checkpoints_that_do_not_fit(void **state) {
    (void)state;
    struct ppo_maker m = kept_maker();
    struct ppo_made from = ppo_make(&m), to = ppo_make(&m);
    iterate(from.ppo);
    struct grt_archive *archive = saved(from.ppo), *before = saved(to.ppo);
    snprintf(archive->path, sizeof archive->path, "run/a.h5");
    static const struct {
        const char *name;
        bool of_networks, of_actor;
    } rows[] = {{"model/actor.layers.0.weight", true, true},
                {"model/log_std", true, true},
                {"model/critic.layers.2.bias", true, false},
                {"normalizer/counts", true, true},
                {"optimizer/newest.log_std", false, false},
                {"optimizer/moments", false, false},
                {"optimizer/state", false, false},
                {"worlds/state", false, false},
                {"worlds/totals", false, false}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct grt_archive_tensor *t = grt_archive_find(archive, rows[i].name);
        assert_non_null(t);
        for (int missing = 0; missing < 2; missing++) {
            char want[160];
            uint64_t *last = &t->shape[t->rank - 1];
            snprintf(want, sizeof want, "run/a.h5: tensor '%s' is %s", rows[i].name,
                     missing ? "missing" : grt_dtype_text(t->dtype));
            *last += missing ? 0 : 1;
            t->name[0] ^= missing ? 1 : 0;
            TEST_REFUSED(grt_ppo_load(to.ppo, archive, GRT_PPO_ALL), GRT_BAD_DATA, want);
            struct grt_archive *after = saved(to.ppo);
            for (uint32_t k = 0; k < before->tensor_count; k++) {
                assert_memory_equal(after->tensors[k].data, before->tensors[k].data,
                                    before->tensors[k].bytes);
            }
            grt_archive_destroy(&after);
            if (rows[i].of_networks) {
                TEST_REFUSED(grt_ppo_load(to.ppo, archive, GRT_PPO_NETWORKS), GRT_BAD_DATA, want);
            }
            if (rows[i].of_actor) {
                TEST_REFUSED(grt_ppo_load(to.ppo, archive, GRT_PPO_ACTOR), GRT_BAD_DATA, want);
            } else if (rows[i].of_networks) {
                struct ppo_made other = ppo_make(&m);
                assert_true(grt_ppo_load(other.ppo, archive, GRT_PPO_ACTOR));
                ppo_end(&other);
            }
            *last -= missing ? 0 : 1;
            t->name[0] ^= missing ? 1 : 0;
        }
    }
    assert_true(grt_ppo_load(to.ppo, archive, GRT_PPO_ALL));
    grt_archive_destroy(&archive);
    grt_archive_destroy(&before);
    ppo_end(&from);
    ppo_end(&to);
}

// ---- trials ----

// A trial is of the average: as one of a learner that begins with it.
static void trials_are_of_the_average(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    m.desc.optim.ema = 0.9;
    m.desc.optim.lr = 0.05;
    struct ppo_made of = ppo_make(&m), other = ppo_make(&m);
    struct grt_worlds *worlds = ppo_make_worlds(&m, 5, true), *again = ppo_make_worlds(&m, 5, true);
    struct grt_ppo_report want, got, newest;
    iterate(of.ppo);
    iterate(of.ppo);
    struct grt_archive *archive = saved(of.ppo);
    assert_true(grt_ppo_evaluate(of.ppo, worlds, GRT_PPO_TRY_POLICY, 4, &got));
    assert_int_equal(got.iteration, 2);
    assert_true(got.seconds > 0 && got.episodes == 5 && got.length == m.length);
    assert_true(grt_ppo_load(other.ppo, archive, GRT_PPO_NETWORKS));
    assert_true(grt_ppo_evaluate(other.ppo, again, GRT_PPO_TRY_POLICY, 4, &want));
    assert_true(got.mean_return == want.mean_return && want.iteration == 0);
    // With what is learnt as its average it is another.
    assert_true(grt_ppo_load(other.ppo, archive, GRT_PPO_ALL));
    struct grt_graph *graph = grt_graph_create(test.dev, "newest");
    grt_graph_copy(graph, other.ppo->average->range, other.ppo->params.master->range);
    assert_true(grt_graph_finish(graph));
    grt_graph_destroy(&graph);
    assert_true(grt_ppo_evaluate(other.ppo, again, GRT_PPO_TRY_POLICY, 4, &newest));
    assert_true(newest.mean_return != want.mean_return);
    grt_archive_destroy(&archive);
    ppo_end(&of);
    ppo_end(&other);
    grt_worlds_destroy(&worlds);
    grt_worlds_destroy(&again);
}

struct seen {
    uint32_t count, steps;
    float obs[256];
};

static bool see_first(void *self, const struct grt_ppo_moment *m) {
    struct seen *s = self;
    s->steps++;
    if (m->step == 1) {
        memcpy(s->obs, m->obs, s->count * sizeof *s->obs);
    }
    return m->step < 1;
}

// Networks in 16 bits are shown what they saw: the same, rounded. Who looks away sees no more.
static void what_is_watched_in_16_bits(void **state) {
    (void)state;
    struct ppo_maker m = ppo_uavs();
    static const enum grt_dtype types[] = {GRT_F32, GRT_F16, GRT_BF16};
    struct seen seen[3];
    for (int i = 0; i < 3; i++) {
        struct grt_ppo_report r;
        m.desc.precision = types[i];
        m.desc.horizon = 2;
        m.desc.epochs = 1;
        struct ppo_made made = ppo_make(&m);
        struct grt_worlds *worlds = ppo_make_worlds(&m, 3, true);
        seen[i] = (struct seen){.count = 3 * (15 + 27)};
        assert_true(
            grt_ppo_watch(made.ppo, worlds, GRT_PPO_TRY_POLICY, 6, 2, see_first, &seen[i], &r));
        assert_int_equal(seen[i].steps, 2);
        // The episode is not at its end.
        assert_true(r.episodes == 0 && r.mean_return == 0 && r.rows == 0 && r.seconds > 0);
        for (uint32_t k = 0; k < seen[i].count; k++) {
            double off = fabs((double)seen[i].obs[k] - (double)seen[0].obs[k]);
            assert_true(off <= (i == 0 ? 0 : i == 1 ? 0x1p-12 : 0x1p-9));
        }
        ppo_end(&made);
        grt_worlds_destroy(&worlds);
    }
    assert_memory_not_equal(seen[0].obs, seen[2].obs, seen[0].count * sizeof(float));
}

// ---- memory ----

static void memory_that_is_too_small(void **state) {
    (void)state;
    struct ppo_maker m = ppo_pendulums();
    m.desc.epochs = 1;
    struct ppo_made made = ppo_make(&m);
    uint64_t bytes = grt_ppo_size(made.ppo).bytes;
    double networks = (double)grt_plan_bytes(made.ppo->plan, "acts") / 1e6;
    uint32_t rows = (uint32_t)made.ppo->net.rows;
    ppo_end(&made);
    struct grt_dev *all = test.dev;
    struct grt_dev *few =
        grt_dev_create(grt_dev_desc(.device = "ref:0", .mem_limit = bytes - 4096));
    struct grt_dev *enough =
        grt_dev_create(grt_dev_desc(.device = "ref:0", .mem_limit = bytes + (1 << 17)));
    assert_true(few && enough);
    char want[300];
    snprintf(want, sizeof want,
             "ppo: 7 copies (num_envs) over 10 steps (rollout_steps) take %.1f MB, %.1f MB of them "
             "for networks on %u rows at once, and ref:0 has %.1f MB left: lower num_envs, "
             "rollout_steps or batch_size, or raise the memory limit or fraction",
             (double)bytes / 1e6, networks, rows, (double)grt_dev_mem_left(few) / 1e6);
    test.dev = few;
    struct grt_worlds *worlds = ppo_make_worlds(&m, m.copies, false);
    const struct grt_mlp_desc net = {
        .depth = PPO_DEPTH, .hidden = PPO_HIDDEN, .outputs = 1, .act = GRT_ACT_TANH};
    struct grt_ppo_desc d = m.desc;
    d.worlds = worlds;
    d.actor = d.critic = (struct grt_ppo_net){grt_mlp_make, &net};
    TEST_REFUSED(grt_ppo_create(test.dev, &d), GRT_NO_MEMORY, want);
    grt_worlds_destroy(&worlds);
    test.dev = enough;
    made = ppo_make(&m);
    worlds = ppo_make_worlds(&m, 50000, true);
    TEST_REFUSED(grt_ppo_prepare(made.ppo, worlds), GRT_NO_MEMORY,
                 "left: lower evaluate_envs, or raise the memory limit or fraction");
    assert_non_null(strstr(grt_last_error(), "ppo: 50000 copies (evaluate_envs) take "));
    grt_worlds_destroy(&worlds);
    // A smaller one behind it still fits.
    worlds = ppo_make_worlds(&m, 5, true);
    assert_true(grt_ppo_prepare(made.ppo, worlds));
    ppo_end(&made);
    grt_worlds_destroy(&worlds);
    test.dev = all;
    grt_dev_destroy(&few);
    grt_dev_destroy(&enough);
}

static const struct CMUnitTest cases[] = {
    REF_CASE(defaults),
    REF_CASE(limits_of_a_desc),
    REF_CASE(calls_without_what_they_need),
    REF_CASE(sizes),
    REF_CASE(what_a_learner_begins_with),
    REF_CASE(large_matrices_are_not_made_orthogonal),
    REF_CASE(tensors_of_a_checkpoint),
    REF_CASE(parts_of_a_checkpoint),
    REF_CASE(checkpoints_that_do_not_fit),
    REF_CASE(trials_are_of_the_average),
    REF_CASE(what_is_watched_in_16_bits),
    REF_CASE(memory_that_is_too_small),
};
TEST_SUITE(ppofacts, false, cases);
