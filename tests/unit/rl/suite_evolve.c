// SPDX-License-Identifier: Apache-2.0
// Evolution strategies as a whole: it learns, on several seeds, and does not with the sign of its
// update flipped; chunks, cuts and interruptions change no bit.
#include "harness/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/es.h"
#include "rl/es_parts.h"
#include "rl/es_work.h"
#include "gpurt/rollout.h"
#include "gpurt/checkpoint.h"

#define SEEDS 5
#define LITTLE_SHMEM                                                                               \
    576  // bytes, which es_sum needs; without the 64 of a sum 16 of the pendulum's 20 units fit

static struct grt_policy policy_named(const char *text) {
    struct grt_policy policy;
    assert_true(grt_policy_parse(text, &policy));
    return policy;
}

// All on ref, PoCL and GPUs. lavapipe takes nine times as long as PoCL: rollouts, policies and
// updates have suites of their own there, and one seed shows that together they learn.
static uint32_t seed_count(void) {
    const struct grt_dev_info *info = grt_dev_info(test.dev);
    return info->backend == GRT_BACKEND_VULKAN && info->caps.software ? 1 : SEEDS;
}

// Iterations until the policy without noise returns `goal`, or `most` when it never does.
static uint32_t learn(const struct grt_es_desc *desc, uint32_t most, float goal, float *best) {
    struct grt_es *es = grt_es_create(test.dev, desc);
    assert_non_null(es);
    uint32_t taken = most;
    *best = -INFINITY;
    for (uint32_t i = 1; i <= most; i++) {
        struct grt_es_report report, trial;
        assert_true(grt_es_iterate(es, &report));
        assert_int_equal(report.iteration, i);
        if (i % 5 == 0) {
            assert_true(grt_es_evaluate(es, 1000, &trial));
            *best = trial.mean_return > *best ? trial.mean_return : *best;
            if (trial.mean_return >= goal) {
                taken = i;
                break;
            }
        }
    }
    grt_es_destroy(&es);
    return taken;
}

// The most there is: a point a step.
static void cartpole_is_balanced(void **state) {
    (void)state;
    struct grt_es_desc desc = {.env = grt_env_find("cartpole"),
                               .policy = policy_named("linear"),
                               .num_envs = 8,
                               .num_dirs = 8,
                               .dir_chunk = 8,
                               .step_size = 0.1f,
                               .noise_std = 0.1f};
    uint32_t seeds = test.small ? 1 : seed_count();
    for (desc.seed = 1; desc.seed <= seeds; desc.seed++) {
        float best = 0;
        uint32_t taken = learn(&desc, 40, 500.0f, &best);
        print_message("# cart-pole, seed %u: %.1f after %u iterations\n", desc.seed, (double)best,
                      taken);
        assert_true(best >= 500.0f);
    }
    desc.seed = 1;
    desc.step_size = -desc.step_size;
    float best = 0;
    learn(&desc, 20, 500.0f, &best);
    print_message("# cart-pole, sign flipped: %.1f\n", (double)best);
    assert_true(best < 250.0f);
}

// Swing-up from anywhere, to within the best that is known: about -150, most of it in the first 60
// steps; a hanging pendulum has less than -900 after 100.
static void pendulum_swings_up(void **state) {
    (void)state;
    // Narrower policies and fewer directions stay hanging on one seed of ten.
    struct grt_es_desc desc = {.env = grt_env_find("pendulum"),
                               .policy = policy_named("mlp64"),
                               .num_envs = 8,
                               .num_dirs = 32,
                               .dir_chunk = 32,
                               .episode_length = 100,
                               .step_size = 0.2f,
                               .noise_std = 0.2f};
    uint32_t seeds = test.small ? 0 : seed_count();
    for (desc.seed = 1; desc.seed <= seeds; desc.seed++) {
        float best = 0;
        uint32_t taken = learn(&desc, 150, -200.0f, &best);
        print_message("# pendulum, seed %u: %.1f after %u iterations\n", desc.seed, (double)best,
                      taken);
        assert_true(best >= -200.0f);
    }
    desc.seed = 1;
    desc.step_size = -desc.step_size;
    float best = 0;
    learn(&desc, 30, -200.0f, &best);  // about as long as seeds take to learn
    print_message("# pendulum, sign flipped: %.1f\n", (double)best);
    assert_true(best < -450.0f);
}

static void ranks_learn_too(void **state) {
    (void)state;
    struct grt_es_desc desc = {.env = grt_env_find("cartpole"),
                               .policy = policy_named("affine"),
                               .algo = GRT_ES_RANKS,
                               .num_envs = 8,
                               .num_dirs = 8,
                               .dir_chunk = 8,
                               .step_size = 0.1f,
                               .noise_std = 0.1f,
                               .seed = 3};
    float best = 0;
    learn(&desc, 60, 500.0f, &best);
    assert_true(best >= 500.0f);
}

// ---- the same bits ----

static struct grt_archive *saved(struct grt_es *es) {
    struct grt_archive *archive = grt_archive_create();
    assert_true(archive && grt_es_save(es, archive));
    return archive;
}

static void same_archive(const struct grt_archive *got, const struct grt_archive *want) {
    assert_int_equal(got->tensor_count, want->tensor_count);
    for (uint32_t i = 0; i < want->tensor_count; i++) {
        assert_string_equal(got->tensors[i].name, want->tensors[i].name);
        assert_int_equal(got->tensors[i].bytes, want->tensors[i].bytes);
        test_same(test.dev, want->tensors[i].name, got->tensors[i].data, want->tensors[i].data, 4,
                  want->tensors[i].bytes / 4);
    }
    assert_int_equal(grt_archive_whole(got, "iteration", -1),
                     grt_archive_whole(want, "iteration", -2));
}

static struct grt_es *iterated(struct grt_dev *dev, const struct grt_es_desc *desc,
                               uint32_t iterations) {
    struct grt_es *es = grt_es_create(dev, desc);
    assert_non_null(es);
    for (uint32_t i = 0; i < iterations; i++) {
        struct grt_es_report report;
        assert_true(grt_es_iterate(es, &report));
    }
    return es;
}

static struct grt_es_desc small_desc(enum grt_es_algo algo) {
    return (struct grt_es_desc){.env = grt_env_find("pendulum"),
                                .policy = policy_named("mlp20"),
                                .algo = algo,
                                .num_envs = 11,
                                .num_dirs = 7,
                                .dir_chunk = 7,
                                .top_dirs = 4,
                                .episode_length = 37,
                                .seed = 12};
}

// A policy of 65 quads, one more than a workgroup of the step has lanes: all of them learn. The
// bytes, and the launches of an episode, are those that follow from the desc.
static void the_last_quad_learns(void **state) {
    (void)state;
    struct grt_es_desc desc = small_desc(GRT_ES_RANKS);
    desc.policy = policy_named("mlp32");
    assert_int_equal(grt_policy_quads(&desc.policy, desc.env), 65);
    desc.dir_chunk = 3;
    struct grt_es *es = iterated(test.dev, &desc, 1);
    struct grt_es_size size = grt_es_size(es);
    assert_int_equal(size.batch, 2 * 7 * 11);
    assert_int_equal(size.launches, 3 * ((37 + size.steps_at_once - 1) / size.steps_at_once));
    struct grt_archive *archive = saved(es);
    uint32_t parameters = 0;
    for (uint32_t i = 0; i < archive->tensor_count; i++) {
        const struct grt_archive_tensor *t = &archive->tensors[i];
        if (strstr(t->name, "layers.1.")) {  // began at 0
            for (uint64_t k = 0; k < t->bytes / 4; k++) {
                assert_true(((const float *)t->data)[k] != 0.0f);
                parameters++;
            }
        }
    }
    assert_in_range(parameters, 33, 3 * 33);
    grt_archive_destroy(&archive);
    grt_es_destroy(&es);
}

// Nor does shared memory that holds a part of a policy only: the other units have their place in
// the plan.
static void chunks_and_cuts_change_nothing(void **state) {
    (void)state;
    struct grt_es_desc desc = small_desc(GRT_ES_ARS);
    struct grt_es *whole = iterated(test.dev, &desc, 3);
    struct grt_archive *want = saved(whole);
    grt_es_destroy(&whole);
    struct grt_dev *little =
        grt_dev_create(grt_dev_desc(.device = test.selector, .shmem_limit = LITTLE_SHMEM));
    assert_non_null(little);
    static const struct {
        uint32_t chunk;
        double submit_ms;
        bool little;
    } rows[] = {{1, 500, false},  {3, 500, false}, {7, 0.02, false},
                {2, 0.02, false}, {7, 0.02, true}, {3, 500, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        desc.dir_chunk = rows[i].chunk;
        desc.max_submit_ms = rows[i].submit_ms;
        struct grt_es *es = iterated(rows[i].little ? little : test.dev, &desc, 3);
        struct grt_archive *got = saved(es);
        assert_int_equal(grt_es_size(es).batch, 2 * 7 * 11);
        assert_true(grt_es_size(es).launches >= (7 + rows[i].chunk - 1) / rows[i].chunk);
        same_archive(got, want);
        grt_archive_destroy(&got);
        grt_es_destroy(&es);
    }
    // Cuts that do not divide the episode, whose length is a prime: the last one is shorter. How
    // many steps a cut has is a matter of time, and a launch of one step takes longer than its
    // share of many, so limits are tried from one that is too short for two steps on.
    uint32_t at_once = 0;
    desc.dir_chunk = 7;
    desc.max_submit_ms = 500;
    struct grt_es *es = grt_es_create(test.dev, &desc);
    assert_non_null(es);
    double limit = 2e3 * es->step_seconds;
    grt_es_destroy(&es);
    for (uint32_t i = 0; i < 50 && (at_once < 2 || at_once >= desc.episode_length); i++) {
        limit *= at_once < desc.episode_length ? 1.3 : 0.6;
        desc.max_submit_ms = limit;
        es = iterated(test.dev, &desc, 3);
        at_once = grt_es_size(es).steps_at_once;
        struct grt_archive *got = saved(es);
        same_archive(got, want);
        grt_archive_destroy(&got);
        grt_es_destroy(&es);
    }
    assert_in_range(at_once, 2, desc.episode_length - 1);
    grt_archive_destroy(&want);
    grt_dev_destroy(&little);
}

// Memory between that of one direction at once and that of all: as many run as fit, and with less
// than one direction needs the plan refuses.
static void chunk_follows_the_memory_of(uint32_t shmem) {
    struct grt_es_desc desc = small_desc(GRT_ES_ARS);
    struct grt_dev_desc where = {.device = test.selector, .shmem_limit = shmem};
    struct grt_dev *dev = grt_dev_create(&where);
    assert_non_null(dev);
    struct grt_rollout_desc rollout = {.env = desc.env, .policy = &desc.policy, .sides = 2};
    uint64_t scratch = grt_op_rollout_scratch(dev, &rollout), bytes[2];
    for (int all = 0; all < 2; all++) {
        desc.dir_chunk = all ? 7 : 1;
        struct grt_es *es = grt_es_create(dev, &desc);
        assert_non_null(es);
        bytes[all] = grt_es_size(es).bytes;
        grt_es_destroy(&es);
    }
    assert_true(bytes[1] - bytes[0] >= 6 * scratch);
    rollout.narrow = true;  // vectors need no scratch
    assert_true((grt_op_rollout_scratch(dev, &rollout) > 0) == (shmem > 0));
    grt_dev_destroy(&dev);
    uint32_t before = 0;
    for (uint64_t i = 0; i <= 8; i += shmem ? 4 : 1) {
        where.mem_limit = bytes[0] + (bytes[1] - bytes[0]) * i / 8;
        dev = grt_dev_create(&where);
        assert_non_null(dev);
        struct grt_es *es = grt_es_create(dev, &desc);
        assert_non_null(es);
        assert_true(grt_es_size(es).bytes <= where.mem_limit);
        uint32_t chunk = grt_es_desc_of(es)->dir_chunk;
        assert_true(chunk >= before && (i > 0 || chunk == 1) && (i < 8 || chunk == 7));
        before = chunk;
        grt_es_destroy(&es);
        grt_dev_destroy(&dev);
    }
    where.mem_limit = bytes[0] - 1;
    dev = grt_dev_create(&where);
    TEST_REFUSED(grt_es_create(dev, &desc), GRT_NO_MEMORY, "the plan needs");
    grt_dev_destroy(&dev);
}

static void chunk_follows_the_memory(void **state) {
    (void)state;
    chunk_follows_the_memory_of(0);
    chunk_follows_the_memory_of(LITTLE_SHMEM);
}

static void resumed_to_the_same_bits(void **state) {
    (void)state;
    for (int algo = 0; algo < GRT_ES_ALGO_COUNT; algo++) {
        struct grt_es_desc desc = small_desc((enum grt_es_algo)algo);
        struct grt_es *whole = iterated(test.dev, &desc, 4);
        struct grt_es *half = iterated(test.dev, &desc, 2);
        struct grt_es *rest = iterated(test.dev, &desc, 1);  // what it had is replaced
        struct grt_archive *want = saved(whole), *middle = saved(half);
        char path[] = "/tmp/gpurt-evolve-XXXXXX";
        int file = mkstemp(path);
        assert_true(file >= 0 && grt_checkpoint_save(middle, path));
        struct grt_archive *loaded = grt_checkpoint_load(path);
        uint32_t warned = test_log.lines[GRT_LOG_WARN];
        assert_true(loaded && grt_es_load(rest, loaded, false));
        assert_int_equal(test_log.lines[GRT_LOG_WARN], warned);
        // Of another text of the environment it goes on too, and says so.
        assert_true(grt_archive_set_text(loaded, "env_digest", "0123"));
        assert_true(grt_es_load(rest, loaded, false));
        assert_int_equal(test_log.lines[GRT_LOG_WARN], warned + 1);
        for (int i = 0; i < 2; i++) {
            struct grt_es_report report;
            assert_true(grt_es_iterate(rest, &report));
            assert_int_equal(report.iteration, 3 + i);
        }
        struct grt_archive *got = saved(rest);
        same_archive(got, want);
        remove(path);
        grt_archive_destroy(&got);
        grt_archive_destroy(&loaded);
        grt_archive_destroy(&want);
        grt_archive_destroy(&middle);
        grt_es_destroy(&whole);
        grt_es_destroy(&half);
        grt_es_destroy(&rest);
    }
}

// What was not given is there.
static void defaults(void **state) {
    (void)state;
    struct grt_es *es = grt_es_create(
        test.dev,
        &(struct grt_es_desc){.env = grt_env_find("cartpole"), .num_envs = 2, .num_dirs = 5});
    assert_non_null(es);
    const struct grt_es_desc *d = grt_es_desc_of(es);
    assert_int_equal(d->phase, 1);
    assert_int_equal(d->top_dirs, 3);  // half of them, and the middle one
    assert_int_equal(d->episode_length, d->env->length);
    assert_true(d->dir_chunk >= 1 && d->dir_chunk <= 5);
    assert_true(d->step_size == (d->env->step_size > 0 ? d->env->step_size : 0.02f));
    assert_true(d->noise_std == (d->env->noise_std > 0 ? d->env->noise_std : 0.03f));
    assert_true(d->max_submit_ms == 500);
    struct grt_es_size size = grt_es_size(es);
    assert_int_equal(size.batch, 2 * 5 * 2);
    grt_es_destroy(&es);
}

// Every environment's own numbers, where it has some; phases of one may not be told apart here.
static void defaults_of_environments(void **state) {
    (void)state;
    static const struct {
        const char *env;
        float step, noise;
    } known[] = {
        {"cartpole", 0.02f, 0.03f}, {"pendulum", 0.02f, 0.03f}, {"standing", 0.02f, 0.03f}};
    uint32_t own = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct grt_env_info *env = grt_env_find(known[i].env);
        struct grt_es *es = grt_es_create(
            test.dev,
            &(struct grt_es_desc){.env = env, .num_envs = 1, .num_dirs = 1, .episode_length = 2});
        assert_non_null(es);
        const struct grt_es_desc *d = grt_es_desc_of(es);
        assert_true(d->step_size == (env->step_size > 0 ? env->step_size : known[i].step));
        assert_true(d->noise_std == (env->noise_std > 0 ? env->noise_std : known[i].noise));
        own += env->step_size > 0 && env->step_size != known[i].step;
        own += env->noise_std > 0 && env->noise_std != known[i].noise;
        grt_es_destroy(&es);
    }
    assert_true(own > 0);  // or the defaults alone were looked at
}

// A trial is of the policy itself: whatever the noise of a search is, it has the same return.
static void trials_have_no_noise(void **state) {
    (void)state;
    struct grt_es_desc desc = small_desc(GRT_ES_ARS);
    struct grt_es *learnt = iterated(test.dev, &desc, 2);
    struct grt_archive *archive = saved(learnt);
    struct grt_es_report want, got;
    assert_true(grt_es_evaluate(learnt, 3, &want));
    for (int k = 0; k < 2; k++) {
        desc.noise_std = k ? 1e-3f : 50.0f;
        struct grt_es *other = grt_es_create(test.dev, &desc);
        assert_true(other && grt_es_load(other, archive, false));
        assert_true(grt_es_evaluate(other, 3, &got));
        assert_true(got.mean_return == want.mean_return && got.good_rate == want.good_rate);
        grt_es_destroy(&other);
    }
    grt_archive_destroy(&archive);
    grt_es_destroy(&learnt);
}

static void refusals(void **state) {
    (void)state;
    struct grt_es_desc good = small_desc(GRT_ES_ARS);
    struct grt_es_desc bad = good;
    bad.env = NULL;
    TEST_REFUSED(grt_es_create(test.dev, &bad), GRT_INVALID, "environment");
    bad = good;
    bad.phase = 4;
    TEST_REFUSED(grt_es_create(test.dev, &bad), GRT_INVALID, "no phase 4");
    bad = good;
    bad.top_dirs = 8;
    TEST_REFUSED(grt_es_create(test.dev, &bad), GRT_INVALID, "from 1 to 7");
    bad = good;
    bad.num_dirs = 1000000;
    TEST_REFUSED(grt_es_create(test.dev, &bad), GRT_INVALID, "directions");
    bad = good;
    bad.policy.hidden = 18;
    TEST_REFUSED(grt_es_create(test.dev, &bad), GRT_INVALID, "use mlp16 or mlp20");
    bad = good;
    bad.noise_std = -1.0f;
    TEST_REFUSED(grt_es_create(test.dev, &bad), GRT_INVALID, "noise");

    // A chunk larger than the directions is made smaller; a policy of another shape leaves the
    // learner as it was.
    good.dir_chunk = 100;
    struct grt_es *es = iterated(test.dev, &good, 1);
    assert_int_equal(grt_es_desc_of(es)->dir_chunk, 7);
    struct grt_archive *before = saved(es);
    bad = good;
    bad.policy = policy_named("affine");
    struct grt_es *other = iterated(test.dev, &bad, 0);
    struct grt_archive *foreign = saved(other);
    TEST_REFUSED(grt_es_load(es, foreign, false), GRT_INVALID, "'affine' and not 'mlp20'");
    struct grt_archive *empty = grt_archive_create();
    TEST_REFUSED(grt_es_load(es, empty, false), GRT_INVALID, "env");
    struct grt_archive *after = saved(es);
    same_archive(after, before);
    grt_archive_destroy(&before);
    grt_archive_destroy(&after);
    grt_archive_destroy(&foreign);
    grt_archive_destroy(&empty);
    grt_es_destroy(&other);
    grt_es_destroy(&es);
}

static bool at_once(void) {
    return true;
}

// Work of more than a second is cut into pieces, and given up between them.
static void given_up_between_pieces(void **state) {
    (void)state;
    struct es_work work = {.dev = test.dev, .label = "pieces"};
    struct es_work_time time;
    uint32_t words[2] = {7, 7};
    struct grt_buf *buf = grt_buf_create(test.dev, grt_buf_desc(.size = sizeof words));
    assert_non_null(buf);
    assert_true(grt_buf_write(buf, 0, words, sizeof words));
    grt_graph_fill(es_work_graph(&work, 0.9), (struct grt_range){buf, 0, 4}, 1);
    assert_ptr_equal(es_work_graph(&work, 0.05), work.pieces[0]);
    grt_graph_fill(es_work_graph(&work, 0.9), (struct grt_range){buf, 4, 4}, 2);
    assert_ptr_equal(es_work_graph(&work, 0), work.pieces[1]);
    assert_int_equal(work.count, 2);
    assert_true(es_work_bake(&work));
    assert_true(es_work_run(&work, at_once, &time));
    assert_true(time.stopped);
    assert_true(grt_buf_read(buf, 0, words, sizeof words));
    assert_int_equal(words[0], 1);
    assert_int_equal(words[1], 7);
    assert_true(es_work_run(&work, NULL, &time));
    assert_false(time.stopped);
    assert_true(grt_buf_read(buf, 0, words, sizeof words));
    assert_int_equal(words[1], 2);
    // The device was busy with both.
    double busy = 0;
    for (uint32_t i = 0; i < work.count; i++) {
        struct grt_phase_time phase;
        busy += grt_graph_times(work.pieces[i], &phase, 1) ? phase.seconds : 0;
    }
    assert_true(busy > 0 || !grt_dev_info(test.dev)->caps.timestamps);
    assert_true(fabs(time.busy - busy) <= 1e-9 * busy);
    es_work_destroy(&work);
    grt_buf_destroy(&buf);
}

// Episodes that take far less than a second are one piece, also where chunks cut them.
static void short_episodes_are_one_piece(void **state) {
    (void)state;
    struct grt_es_desc desc = small_desc(GRT_ES_ARS);
    desc.dir_chunk = 2;
    struct grt_es *es = iterated(test.dev, &desc, 1);
    assert_true(es->step_seconds > 0);
    // Four chunks of 37 steps; a machine that is busy may be slow, and cuts by what it takes.
    bool brief = 4 * 37 * es->step_seconds < 0.9;
    assert_true(!brief || es->iteration.count == 1);
    assert_true(brief || es->iteration.count > 1);
    grt_es_destroy(&es);
}

// Who sees nothing acts by the biases alone: with other weights the same happens, to the bit; and
// who sees does better.
static void the_blind_act_by_biases(void **state) {
    (void)state;
    struct grt_es_desc desc = {.env = grt_env_find("cartpole"),
                               .policy = policy_named("affine"),
                               .num_envs = 16,
                               .num_dirs = 8,
                               .episode_length = 100,
                               .seed = 4};
    struct grt_es_report seeing = {0}, blind = {0}, changed = {0};
    struct grt_es *es = iterated(test.dev, &desc, 5);
    struct grt_archive *archive = grt_archive_create();
    assert_true(grt_es_evaluate(es, 1, &seeing) && grt_es_save(es, archive));
    grt_es_destroy(&es);
    desc.blind = true;
    es = grt_es_create(test.dev, &desc);
    assert_non_null(es);
    assert_true(grt_es_load(es, archive, true) && grt_es_evaluate(es, 1, &blind));
    const struct grt_archive_tensor *weights = grt_archive_find(archive, "model/weight");
    assert_non_null(weights);
    memset(weights->data, 0, weights->bytes);
    assert_true(grt_es_load(es, archive, true) && grt_es_evaluate(es, 1, &changed));
    assert_true(blind.mean_return == changed.mean_return);
    print_message("# return %.1f, without seeing %.1f\n", (double)seeing.mean_return,
                  (double)blind.mean_return);
    assert_true(blind.mean_return < 0.5f * seeing.mean_return);
    // What a search finds is the best of its sides, and no norm is learnt.
    struct grt_es_report found;
    assert_true(grt_es_iterate(es, &found));
    assert_true(found.best_good >= found.good_rate && found.best_good <= 1);
    grt_archive_destroy(&archive);
    grt_es_destroy(&es);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(given_up_between_pieces),
    TEST_CASE(short_episodes_are_one_piece),
    TEST_CASE(the_last_quad_learns),
    TEST_CASE(chunks_and_cuts_change_nothing),
    TEST_CASE(chunk_follows_the_memory),
    TEST_CASE(resumed_to_the_same_bits),
    TEST_CASE(refusals),
    TEST_CASE(defaults),
    TEST_CASE(defaults_of_environments),
    TEST_CASE(trials_have_no_noise),
    TEST_CASE(the_blind_act_by_biases),
    TEST_CASE(cartpole_is_balanced),
    TEST_CASE(ranks_learn_too),
    TEST_CASE(pendulum_swings_up),
};
TEST_SUITE(evolve, true, cases);
