// SPDX-License-Identifier: Apache-2.0
// Policies and rollouts from known numbers: where each number of a policy lies for the kernel and
// in an archive, the names that there are and their limits, workgroups, and what is refused.
#include "kits/ref_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "gpurt/archive.h"
#include "gpurt/rollout.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

// ---- where numbers lie ----

enum { OBS = 3, ACT = 5, ACT_QUADS = 2 };
static const struct grt_env_info made_up = {.name = "made up", .obs = OBS, .act = ACT};

// In fours: [OBS, bias][actions / 4], or [units / 4][OBS, bias] and [units, bias][actions / 4].
static uint32_t place(uint32_t hidden, uint32_t layer, bool bias, uint32_t row, uint32_t col) {
    uint32_t first = hidden / 4 * (OBS + 1);
    if (hidden > 0 && layer == 0) {
        return 4 * (row / 4 * (OBS + 1) + (bias ? OBS : col)) + row % 4;
    }
    uint32_t in = hidden > 0 ? hidden : OBS;
    return 4 * (first + (bias ? in : col) * ACT_QUADS + row / 4) + row % 4;
}

static void numbers_of_policies(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t hidden, tensors, quads;
        struct {
            const char *name;
            uint32_t rank, rows, cols;
        } want[4];
    } rows[] = {{"linear", 0, 1, 8, {{"weight", 2, ACT, OBS}}},
                {"affine", 0, 2, 8, {{"weight", 2, ACT, OBS}, {"bias", 1, ACT, 1}}},
                {"mlp16",
                 16,
                 4,
                 16 + 34,
                 {{"layers.0.weight", 2, 16, OBS},
                  {"layers.0.bias", 1, 16, 1},
                  {"layers.1.weight", 2, ACT, 16},
                  {"layers.1.bias", 1, ACT, 1}}},
                {"mlp20-tanh",
                 20,
                 4,
                 20 + 42,
                 {{"layers.0.weight", 2, 20, OBS},
                  {"layers.0.bias", 1, 20, 1},
                  {"layers.1.weight", 2, ACT, 20},
                  {"layers.1.bias", 1, ACT, 1}}}};
    assert_int_equal(grt_policy_quads_of_four(&made_up), OBS + 1 + 4 * ACT_QUADS);
    for (size_t p = 0; p < COUNT(rows); p++) {
        struct grt_policy policy;
        struct grt_policy_tensor t;
        assert_true(grt_policy_parse(rows[p].text, &policy));
        assert_int_equal(grt_policy_quads(&policy, &made_up), rows[p].quads);
        float *numbers = test_alloc(sizeof(float[4]) * rows[p].quads);
        bool taken[4 * 64] = {false};
        uint32_t parameters = 0;
        for (uint32_t i = 0; i < 4 * rows[p].quads; i++) {
            numbers[i] = (float)(1000 + i);
        }
        struct grt_archive *archive = grt_archive_create();
        assert_true(archive && grt_policy_save(&policy, &made_up, numbers, archive));
        assert_int_equal(archive->tensor_count, rows[p].tensors);
        for (uint32_t i = 0; i < rows[p].tensors; i++) {
            uint32_t cols = rows[p].want[i].cols;
            assert_true(grt_policy_tensor(&policy, &made_up, i, &t));
            assert_string_equal(t.name, rows[p].want[i].name);
            assert_true(t.rank == rows[p].want[i].rank && t.shape[0] == rows[p].want[i].rows &&
                        t.shape[1] == cols);
            char name[64];
            snprintf(name, sizeof name, "model/%s", t.name);
            const struct grt_archive_tensor *kept = grt_archive_find(archive, name);
            assert_true(kept && kept->dtype == GRT_F32 && kept->rank == t.rank &&
                        kept->shape[0] == t.shape[0] && kept->bytes == 4ull * t.shape[0] * cols);
            for (uint32_t row = 0; row < t.shape[0]; row++) {
                for (uint32_t col = 0; col < cols; col++) {
                    uint32_t at = place(rows[p].hidden, i / 2, i % 2 == 1, row, col);
                    assert_int_equal(grt_policy_index(&policy, &made_up, i, row, col), at);
                    assert_true(at < 4 * rows[p].quads && !taken[at]);
                    taken[at] = true;
                    assert_true(((const float *)kept->data)[row * cols + col] == numbers[at]);
                    parameters++;
                }
            }
        }
        assert_false(grt_policy_tensor(&policy, &made_up, rows[p].tensors, &t));
        assert_int_equal(grt_policy_params(&policy, &made_up), parameters);
        // Back again; what is no parameter is 0.
        float *again = grt_policy_load(&policy, &made_up, archive);
        assert_non_null(again);
        for (uint32_t i = 0; i < 4 * rows[p].quads; i++) {
            assert_true(again[i] == (taken[i] ? numbers[i] : 0.0f));
        }
        free(again);
        // Of another type it is another tensor.
        archive->tensors[0].dtype = GRT_U32;
        TEST_REFUSED(grt_policy_load(&policy, &made_up, archive), GRT_BAD_DATA, "' is u32 [");
        archive->tensors[0].dtype = GRT_F32;
        snprintf(archive->path, sizeof archive->path, "p.h5");
        archive->tensors[rows[p].tensors - 1].name[7]++;
        TEST_REFUSED(grt_policy_load(&policy, &made_up, archive), GRT_BAD_DATA, "' is missing");
        assert_int_equal(strncmp(grt_last_error(), "p.h5: tensor 'model/", 20), 0);
        TEST_REFUSED(grt_policy_normalizer(&made_up, archive), GRT_INVALID,
                     "p.h5: no checkpoint of a policy for 'made up'");
        grt_archive_destroy(&archive);
        free(numbers);
    }
}

static void normalizers(void **state) {
    (void)state;
    struct grt_archive *archive = grt_archive_create();
    static const uint64_t shape[2] = {3, OBS};
    struct grt_archive_tensor *t =
        grt_archive_add(archive, "normalizer/mean_rstd_variance", GRT_F32, 2, shape, NULL);
    assert_non_null(t);
    assert_ptr_equal(grt_policy_normalizer(&made_up, archive), t->data);
    t->bytes += 4;
    TEST_REFUSED(grt_policy_normalizer(&made_up, archive), GRT_INVALID,
                 "checkpoint: no checkpoint of a policy for 'made up'");
    grt_archive_destroy(&archive);
}

// ---- names ----

static void names_at_their_limits(void **state) {
    (void)state;
#define THERE                                                                                      \
    "there are linear, affine and mlpN or mlpN-tanh with N hidden units, a multiple of 4 from 16 " \
    "to 256"
    static const struct {
        const char *text, *sentence;
    } wrong[] = {
        {"mlp12", "a policy of 12 hidden units: there are 16 to 256; use mlp16"},
        {"mlp4", "a policy of 4 hidden units: there are 16 to 256; use mlp16"},
        {"mlp257", "a policy of 257 hidden units: there are 16 to 256; use mlp256"},
        {"mlp260-tanh", "a policy of 260 hidden units: there are 16 to 256; use mlp256"},
        {"mlp17", "a policy of 17 hidden units: they are computed in fours; use mlp16 or mlp20"},
        {"mlp254",
         "a policy of 254 hidden units: they are computed in fours; use mlp252 or mlp256"},
        {"mlp16-", "no policy 'mlp16-'; " THERE},
        {"mlp16-tanhh", "no policy 'mlp16-tanhh'; " THERE},
        {"mlp16 ", "no policy 'mlp16 '; " THERE},
        {"mlp-16", "no policy 'mlp-16'; " THERE},
        {"mlp0-tanh", "no policy 'mlp0-tanh'; " THERE},
        {"linear2", "no policy 'linear2'; " THERE},
        {"Affine", "no policy 'Affine'; " THERE}};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct grt_policy kept = {.hidden = 44, .tanh = true};
        TEST_REFUSED(grt_policy_parse(wrong[i].text, &kept), GRT_INVALID, wrong[i].sentence);
        assert_true(kept.hidden == 44 && kept.tanh && !kept.bias);
    }
    static const struct {
        const char *text;
        struct grt_policy want;
    } good[] = {{"linear", {0}},
                {"affine", {.bias = true}},
                {"mlp16", {.hidden = 16, .bias = true}},
                {"mlp256", {.hidden = 256, .bias = true}},
                {"mlp256-tanh", {.hidden = 256, .bias = true, .tanh = true}},
                {"mlp20-relu", {.hidden = 20, .bias = true}}};
    for (size_t i = 0; i < COUNT(good); i++) {
        struct grt_policy got = {.hidden = 44, .tanh = true};
        assert_true(grt_policy_parse(good[i].text, &got) && grt_policy_check(&got));
        assert_true(got.hidden == good[i].want.hidden && got.bias == good[i].want.bias &&
                    got.tanh == good[i].want.tanh);
    }
    struct grt_policy policy;
    TEST_REFUSED(grt_policy_parse(NULL, &policy), GRT_INVALID, "grt_policy_parse: no text");
    TEST_REFUSED(grt_policy_parse("linear", NULL), GRT_INVALID, "grt_policy_parse: no policy");
    TEST_REFUSED(grt_policy_check(NULL), GRT_INVALID, "grt_policy_check: no policy");
}

// ---- rollouts ----

// As few lanes as there are environments, by halves of the profile's, down to 8.
static void workgroups(void **state) {
    (void)state;
    struct grt_caps *caps = &test.dev->info.caps;
    const uint32_t real = caps->max_wg;
    uint32_t most = grt_profile_whole(grt_dev_profile(test.dev), GRT_KEY_ROLLOUT_WG);
    assert_true(most >= 64 && (most & (most - 1)) == 0);
    static const struct {
        uint32_t max_wg, envs, want;  // 0: the profile's
    } rows[] = {{1024, 1, 8},   {1024, 8, 8},   {1024, 9, 16},   {1024, 16, 16}, {1024, 17, 32},
                {1024, 32, 32}, {1024, 33, 64}, {1024, 5000, 0}, {32, 5000, 32}, {32, 16, 16},
                {32, 17, 32},   {20, 1, 10},    {20, 10, 10},    {20, 11, 20},   {12, 1, 12}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        caps->max_wg = rows[i].max_wg;
        uint32_t got = grt_rollout_wg(test.dev, rows[i].envs);
        caps->max_wg = real;
        assert_int_equal(got, rows[i].want ? rows[i].want : most);
    }
}

static void rollout_refused(const struct grt_rollout_desc *desc, const char *sentence) {
    struct grt_graph *graph = grt_graph_create(test.dev, "rollout");
    grt_op_rollout(graph, desc);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, sentence);
    grt_graph_destroy(&graph);
}

static void trace_refused(const struct grt_trace_desc *desc, const char *sentence) {
    struct grt_graph *graph = grt_graph_create(test.dev, "trace");
    grt_op_trace(graph, desc);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, sentence);
    grt_graph_destroy(&graph);
}

static void what_is_refused(void **state) {
    (void)state;
    const struct grt_env_info *pole = grt_env_find("cartpole"), *uav = grt_env_find("uav");
    const struct grt_policy odd = {.hidden = 18, .bias = true};
    const struct grt_rollout_desc good = {.env = pole, .envs = 3, .sides = 2, .steps = 4};
    struct grt_rollout_desc d;
    rollout_refused(NULL, "rollout: no desc");
    d = good;
    d.env = NULL;
    rollout_refused(&d, "rollout: no environment");
    d = good;
    d.env = uav;
    rollout_refused(&d, "rollout of 'uav': its state is not held in registers");
    d = good;
    d.envs = 0;
    rollout_refused(&d, "rollout of 'cartpole': 0 environments, 2 sides and 4 steps; each must be "
                        "at least 1");
    d = good;
    d.sides = 0;
    rollout_refused(&d, "rollout of 'cartpole': 3 environments, 0 sides and 4 steps");
    d = good;
    d.steps = 0;
    rollout_refused(&d, "rollout of 'cartpole': 3 environments, 2 sides and 0 steps");
    d = good;
    d.policy = &odd;
    test_log.expected++;  // what is wrong with the policy is said by itself too
    rollout_refused(&d, "a policy of 18 hidden units: they are computed in fours");
    d = good;
    d.envs = 1 << 20;
    d.sides = 512;
    rollout_refused(&d,
                    "rollout of 'cartpole': 1048576 environments for each of 512 sides are more "
                    "than one launch can count; use fewer directions at once");
    trace_refused(NULL, "trace: no environment");
    trace_refused(&(struct grt_trace_desc){.frames = 3}, "trace: no environment");
    trace_refused(&(struct grt_trace_desc){.env = pole}, "trace: no frames");
    trace_refused(&(struct grt_trace_desc){.env = uav, .frames = 3},
                  "trace of 'uav': its state is not held in registers");
}

static const struct CMUnitTest cases[] = {
    REF_CASE(numbers_of_policies), REF_CASE(normalizers),     REF_CASE(names_at_their_limits),
    REF_CASE(workgroups),          REF_CASE(what_is_refused),
};
TEST_SUITE(rollfacts, false, cases);
