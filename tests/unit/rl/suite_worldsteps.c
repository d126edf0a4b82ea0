// SPDX-License-Identifier: Apache-2.0
// What worlds do when they are stepped: operands that are too small, random actions, copies that
// play once, and numbers that are none.
#include "kits/ref_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kits/worlds_kit.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

// ---- operands ----

enum op { RESET, OBSERVE, STEP, RANDOM, TOTALS, DRAW };

// Each of an op's operands a word short, in turn: what it has and what it needs.
static void operands_that_are_too_small(void **state) {
    (void)state;
    static const struct {
        enum op op;
        int which;
        const char *want;
    } rows[] = {
        {RESET, 0, "reset of environment 'uav': control has 12 bytes and needs 16"},
        {OBSERVE, 1, "observe of environment 'uav': obs has 10364 bytes and needs 10368"},
        {OBSERVE, 2, "observe of environment 'uav': mask has 60 bytes and needs 64"},
        {OBSERVE, 3, "observe of environment 'uav': global has 828 bytes and needs 832"},
        {STEP, 0, "step of environment 'uav': control has 12 bytes and needs 16"},
        {STEP, 4, "step of environment 'uav': actions has 60 bytes and needs 64"},
        {STEP, 5, "step of environment 'uav': rewards has 60 bytes and needs 64"},
        {STEP, 6, "step of environment 'uav': ends has 60 bytes and needs 64"},
        {RANDOM, 0, "random actions of environment 'uav': control has 12 bytes and needs 16"},
        {RANDOM, 2, "random actions of environment 'uav': mask has 60 bytes and needs 64"},
        {RANDOM, 4, "random actions of environment 'uav': actions has 60 bytes and needs 64"},
        {TOTALS, 7, "totals of environment 'uav': out has 20 bytes and needs 24"},
        {DRAW, 8, "draw of environment 'uav': out has 4100 bytes and needs 4104"},
    };
    // Two copies of 8 UAVs: 16 rows of 162 numbers, 104 of the whole, 57 shapes of 9 numbers.
    static const struct grt_env_value values[] = {{"num_uavs", 8}};
    struct grt_worlds *w =
        grt_worlds_create(test.dev, grt_worlds_desc(.env = grt_env_find("uav"), .copies = 2,
                                                    .settings = values, .setting_count = 1));
    struct grt_plan *plan = grt_plan_create(test.dev);
    grt_worlds_declare(w, plan);
    assert_true(grt_plan_alloc(plan));
    static const uint64_t sizes[] = {16, 10368, 64, 832, 64, 64, 64, 24, 4104};
    struct grt_buf *bufs[COUNT(sizes)];
    for (size_t i = 0; i < COUNT(sizes); i++) {
        bufs[i] = test_buf(test.dev, sizes[i], GRT_BUF_DEVICE);
    }
    for (size_t i = 0; i <= COUNT(rows); i++) {
        struct grt_range r[COUNT(sizes)];
        for (size_t k = 0; k < COUNT(sizes); k++) {
            bool low = i < COUNT(rows) && rows[i].which == (int)k;
            r[k] = (struct grt_range){bufs[k], 0, sizes[k] - (low ? 4 : 0)};
        }
        for (int op = RESET; op <= DRAW; op++) {
            if (i < COUNT(rows) && rows[i].op != (enum op)op) {
                continue;
            }
            struct grt_graph *graph = grt_graph_create(test.dev, "operands");
            switch (op) {
            case RESET:
                grt_op_worlds_reset(graph, w, r[0]);
                break;
            case OBSERVE:
                grt_op_worlds_observe(
                    graph, w,
                    &(struct grt_observe_desc){.obs = r[1], .mask = r[2], .global = r[3]});
                break;
            case STEP:
                grt_op_worlds_step(
                    graph, w,
                    &(struct grt_world_step_desc){
                        .control = r[0], .actions = r[4], .rewards = r[5], .ends = r[6]});
                break;
            case RANDOM:
                grt_op_worlds_random(graph, w,
                                     &(struct grt_world_random_desc){
                                         .control = r[0], .mask = r[2], .actions = r[4]});
                break;
            case TOTALS:
                grt_op_worlds_totals(graph, w, r[7]);
                break;
            default:
                grt_op_worlds_draw(graph, w, r[8]);
                break;
            }
            if (i < COUNT(rows)) {
                TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, rows[i].want);
            } else {
                assert_true(grt_graph_bake(graph));
            }
            grt_graph_destroy(&graph);
        }
    }
    for (size_t i = 0; i < COUNT(sizes); i++) {
        grt_buf_destroy(&bufs[i]);
    }
    grt_plan_destroy(&plan);
    grt_worlds_destroy(&w);
}

// ---- copies that act ----

static void random_actions_follow_from_their_step(void **state) {
    (void)state;
    struct worlds_case c;
    float drawn[4][8];
    worlds_begin(&c, test.dev, grt_worlds_desc(.env = grt_env_find("pendulum"), .copies = 8), 11);
    static const struct {
        uint32_t stream;
        bool advance;
    } rows[] = {{5, false}, {5, false}, {6, true}, {6, false}};
    for (int i = 0; i < 4; i++) {
        struct grt_graph *graph = grt_graph_create(test.dev, "random");
        grt_op_worlds_random(graph, c.worlds,
                             &(struct grt_world_random_desc){.control = c.control.tensor.range,
                                                             .actions = c.actions_at.tensor.range,
                                                             .stream = rows[i].stream,
                                                             .advance = rows[i].advance});
        assert_true(grt_graph_finish(graph));
        grt_graph_destroy(&graph);
        test_tensor_read(&c.actions_at, drawn[i]);
        uint32_t control[4];
        test_tensor_read(&c.control, control);
        assert_true(control[0] == 11 && control[2] == (i >= 2 ? 1 : 0));
        for (uint32_t k = 0; k < 8; k++) {
            const uint32_t counter[4] = {k, rows[i].stream, i == 3 ? 1 : 0, 0}, key[2] = {11, 0};
            uint32_t block[4];
            oracle_philox(counter, key, block);
            assert_true(fabs((double)drawn[i][k] - (2 * oracle_uniform(block[0]) - 1)) < 1e-6);
        }
    }
    worlds_end(&c);
}

// A copy that plays once stays as it ended, and is counted once; others go on. Those behind the
// first are those of as many copies before.
static void copies_that_play_once(void **state) {
    (void)state;
    struct worlds_case all, once, later;
    struct grt_worlds_desc desc = {.env = grt_env_find("pendulum"), .copies = 5, .length = 2};
    worlds_begin(&all, test.dev, &desc, 7);
    desc.copies = 2;
    desc.first = 3;
    worlds_begin(&later, test.dev, &desc, 7);
    desc.first = 0;
    desc.once = true;
    worlds_begin(&once, test.dev, &desc, 7);
    assert_memory_equal(later.obs, all.obs + 9, 6 * sizeof(float));
    assert_memory_equal(once.obs, all.obs, 6 * sizeof(float));
    float ended[6] = {0};
    for (int t = 0; t < 6; t++) {
        struct worlds_case *const cases[] = {&all, &later, &once};
        for (int i = 0; i < 3; i++) {
            for (uint32_t row = 0; row < cases[i]->rows; row++) {
                cases[i]->actions[row] = test_as_u32(0.5f);
            }
            worlds_step(cases[i]);
        }
        // Two steps, and one in which the next episode begins.
        uint32_t want = t % 3 == 2 ? GRT_ROW_IDLE : t % 3 == 1 ? GRT_ROW_LAST | GRT_ROW_CUT : 0;
        assert_memory_equal(later.obs, all.obs + 9, 6 * sizeof(float));
        assert_true(later.rewards[1] == all.rewards[4]);
        for (uint32_t row = 0; row < 2; row++) {
            assert_int_equal(all.ends[row], want);
            assert_int_equal(once.ends[row], t < 2 ? want : GRT_ROW_IDLE);
            assert_true(t < 2 ? once.rewards[row] == all.rewards[row] : once.rewards[row] == 0);
        }
        if (t == 1) {
            memcpy(ended, once.obs, sizeof ended);
        } else if (t > 1) {
            assert_memory_equal(once.obs, ended, sizeof ended);
        }
        assert_true((t % 3 == 2) == (all.rewards[0] == 0));
    }
    worlds_totals(&once);
    assert_true(once.sums[0] == 2 && once.sums[2] == 4);
    worlds_totals(&once);
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(once.sums[i] == 0);
    }
    worlds_totals(&all);
    assert_true(all.sums[0] == 10 && all.sums[2] == 20);
    // A reset forgets sums and episodes.
    for (uint32_t row = 0; row < 2; row++) {
        assert_true(grt_graph_finish(later.reset));
    }
    worlds_totals(&later);
    assert_true(later.sums[0] == 0 && later.sums[1] == 0);
    uint32_t *words = worlds_state(&later);
    assert_true(grt_graph_finish(all.reset));
    uint32_t *first = worlds_state(&all);
    for (uint32_t i = 0; i < later.sizes.words; i++) {
        assert_int_equal(words[2 * i], first[5 * i + 3]);
    }
    free(words);
    free(first);
    worlds_end(&all);
    worlds_end(&later);
    worlds_end(&once);
}

// Everything is what the word says: reward, what is seen, a term of the episode.
static const char paid[] =
    "#define ENV paid\n"
    "#define ENV_AGENTS 2\n#define ENV_OBS 1\n#define ENV_GLOBAL 1\n#define ENV_ACT 1\n"
    "#define ENV_WORDS 1\n#define ENV_LENGTH 3\n#define ENV_TERMS(F) F(pay) F(half)\n"
    "#include \"env/world.k\"\n"
    "FN void world_reset(env_world w, uint env, uint episode, uint phase, uint seed) {\n"
    "    KEEP_F(w, 0u, 1.0f);\n}\n"
    "FN void world_act(env_world w, uint agent, uint i, float value) {}\n"
    "FN void world_step(env_world w) {}\n"
    "FN float world_reward(env_world w, uint agent) { return agent == 0u ? LOOK_F(w, 0u) : 0.5f; "
    "}\n"
    "FN bool world_out(env_world w, uint agent) { return false; }\n"
    "FN bool world_done(env_world w) { return false; }\n"
    "FN float world_observe(env_world w, uint agent, uint i) { return LOOK_F(w, 0u); }\n"
    "FN float world_global(env_world w, uint i) { return LOOK_F(w, 0u); }\n"
    "FN float world_term(env_world w, uint i) { return i == 0u ? LOOK_F(w, 0u) : 0.5f; }\n";

// From 1e30 on a number is none: it ends the episode, and counts for nothing.
static void numbers_that_are_none(void **state) {
    (void)state;
    static const struct {
        float value;
        bool good;
    } rows[] = {{0.999e30f, true}, {-0.999e30f, true}, {1e30f, false}, {-1e30f, false},
                {INFINITY, false}, {-INFINITY, false}, {NAN, false},   {-2, true}};
    const struct grt_env_info *env = worlds_env("paid", paid);
    assert_non_null(env);
    struct worlds_case c;
    worlds_begin(&c, test.dev, grt_worlds_desc(.env = env, .copies = COUNT(rows), .length = 1), 1);
    struct grt_range words = grt_plan_at(c.plan, "worlds", 0)->range;
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_true(grt_buf_write(words.buf, words.offset + 4 * i, &rows[i].value, 4));
    }
    memset(c.actions, 0, c.rows * 4);
    worlds_step(&c);
    struct grt_range range = grt_plan_at(c.plan, "worlds", 2)->range;
    float totals[5][COUNT(rows)];
    assert_true(grt_buf_read(range.buf, range.offset, totals, sizeof totals));
    for (size_t i = 0; i < COUNT(rows); i++) {
        float want = rows[i].good ? rows[i].value : 0;
        uint32_t end = rows[i].good ? GRT_ROW_LAST | GRT_ROW_CUT : GRT_ROW_LAST;
        assert_true(c.rewards[2 * i] == want && c.rewards[2 * i + 1] == 0.5f);
        assert_true(c.obs[2 * i] == want && c.obs[2 * i + 1] == want && c.global[i] == want);
        assert_int_equal(c.ends[2 * i], end);
        assert_int_equal(c.ends[2 * i + 1], end);
        assert_true(totals[0][i] == 1 && totals[2][i] == 1);
        assert_true(fabsf(totals[1][i] - (want + 0.5f) / 2) <= 1e-6f * fabsf(want));
        assert_true(totals[3][i] == want && totals[4][i] == 0.5f);
    }
    worlds_end(&c);
    grt_env_close(&env);
}

static const struct CMUnitTest cases[] = {
    REF_CASE(operands_that_are_too_small),
    REF_CASE(random_actions_follow_from_their_step),
    REF_CASE(copies_that_play_once),
    REF_CASE(numbers_that_are_none),
};
TEST_SUITE(worldsteps, false, cases);
