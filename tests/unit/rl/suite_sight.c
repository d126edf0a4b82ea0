// SPDX-License-Identifier: Apache-2.0
// Observations by bits (ENV_BITS), of an environment from a file whose every number is known in
// closed form; and every shape of a workgroup, a GPU's too, sees the same.
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kits/worlds_kit.h"

// Towers with panels of lamps. Lamp i of tower t is lit in every (2 + t)-th place of a pattern that
// moves on by one in each step that the tower was switched; what is above the last lamp of a word
// counts for nothing.
static const char towers[] =
    "#define ENV towers\n"
    "#define ENV_SETTINGS(F) F(uint, dials, 3, 0, 60, \"numbers that are no lamps\") \\\n"
    "    F(uint, lamps, 40, 0, 1000, \"of a tower\") F(uint, height, 2, 1, 9, \"towers\")\n"
    "#define ENV_AGENTS height\n"
    "#define ENV_OBS (dials + lamps)\n"
    "#define ENV_BITS lamps\n"
    "#define ENV_GLOBAL (height + 18)\n"
    "#define ENV_CHOICES 2\n"
    "#define ENV_WORDS (height + 1)\n"
    "#include \"env/world.k\"\n"
    "FN void world_reset(env_world w, uint env, uint episode, uint phase, uint seed) {\n"
    "    for (uint a = 0u; a < w.height; a += 1u) { KEEP(w, a, env + a); }\n"
    "    KEEP(w, w.height, 0u);\n"
    "}\n"
    "FN void world_choose(env_world w, uint agent, uint choice) {\n"
    "    KEEP(w, agent, LOOK(w, agent) + choice);\n"
    "}\n"
    "FN void world_step(env_world w) { KEEP(w, w.height, LOOK(w, w.height) + 1u); }\n"
    "FN float world_reward(env_world w, uint agent) { return 0.0f; }\n"
    "FN bool world_out(env_world w, uint agent) { return false; }\n"
    "FN bool world_done(env_world w) { return false; }\n"
    "FN uint world_mask(env_world w, uint agent) { return (LOOK(w, agent) & 1u) + 1u; }\n"
    "FN float world_observe(env_world w, uint agent, uint i) {\n"
    "    return F32(LOOK(w, agent) & 63u) + F32(i) * 0.5f;\n"
    "}\n"
    "FN uint world_bits(env_world w, uint agent, uint k) {\n"
    "    uint word = 0u;\n"
    "    for (uint i = 0u; i < 32u; i += 1u) {\n"
    "        uint lamp = 32u * k + i;\n"
    "        bool lit = lamp >= w.lamps || (lamp + LOOK(w, agent)) % (2u + agent) == 0u;\n"
    "        word |= lit ? 1u << i : 0u;\n"
    "    }\n"
    "    return word;\n"
    "}\n"
    "FN float world_global(env_world w, uint i) {\n"
    "    return i < w.height ? F32(LOOK(w, i)) : F32(i);\n"
    "}\n";

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

// A GPU's with many copies; with few, and lanes left over; more rows than lanes.
static const struct worlds_sight shapes[] = {{128, 32, 32, 32}, {64, 24, 16, 4}, {32, 64, 4, 33}};

static void check_towers(const struct worlds_case *c, const uint32_t *turned, uint32_t dials,
                         uint32_t lamps) {
    uint32_t height = c->sizes.agents, all = dials + lamps;
    for (uint32_t row = 0; row < c->rows; row++) {
        uint32_t at = row / height + row % height + turned[row];
        assert_int_equal(c->mask[row], (at & 1) + 1);
        for (uint32_t i = 0; i < all; i++) {
            bool lit = i >= dials && (i - dials + at) % (2 + row % height) == 0;
            float want = i < dials ? (float)(at & 63) + (float)i * 0.5f : lit;
            if (c->obs[(size_t)row * all + i] != want) {
                print_error("number %u of row %u is %g and not %g\n", i, row,
                            (double)c->obs[(size_t)row * all + i], (double)want);
                fail();
            }
        }
    }
    for (uint32_t copy = 0; copy < c->copies; copy++) {
        for (uint32_t i = 0; i < height + 18; i++) {
            uint32_t want = i < height ? copy + i + turned[copy * height + i] : i;
            assert_true(c->global[(size_t)copy * (height + 18) + i] == (float)want);
        }
    }
}

// Whole rows behind the numbers of a wide pitch are zeros.
static void check_pitch(const struct worlds_case *c, uint32_t pitch) {
    struct test_tensor obs = test_tensor(c->dev, GRT_F32, c->rows, pitch);
    struct grt_graph *graph = grt_graph_create(c->dev, "wide rows");
    float *got = test_alloc((size_t)c->rows * pitch * sizeof *got);
    test_tensor_prefill(&obs, test_prefills[0]);
    grt_op_worlds_observe(graph, c->worlds,
                          &(struct grt_observe_desc){.obs = obs.tensor.range,
                                                     .pitch = pitch,
                                                     .mask = c->mask_at.tensor.range});
    assert_true(grt_graph_finish(graph));
    test_tensor_read(&obs, got);
    for (uint32_t row = 0; row < c->rows; row++) {
        for (uint32_t i = 0; i < pitch; i++) {
            float want = i < c->sizes.obs ? c->obs[(size_t)row * c->sizes.obs + i] : 0.0f;
            assert_true(got[(size_t)row * pitch + i] == want);
        }
    }
    free(got);
    grt_graph_destroy(&graph);
    test_tensor_end(&obs);
}

// In f32, half and bfloat: the kit compares the two with the first.
static void numbers_are_bits(void **state) {
    (void)state;
    static const struct {
        uint32_t dials, lamps, height, copies;
    } sizes[] = {{3, 40, 2, 70}, {6, 156, 3, 33}, {0, 1, 1, 1},  {33, 0, 2, 5},
                 {1, 31, 9, 20}, {5, 620, 2, 6},  {0, 64, 1, 40}};
    const struct grt_env_info *env = worlds_env("towers", towers);
    assert_non_null(env);
    for (size_t k = 0; k < COUNT(sizes) * (1 + COUNT(shapes)); k++) {
        size_t size = k % COUNT(sizes), shape = k / COUNT(sizes);
        const struct grt_env_value values[] = {{"dials", sizes[size].dials},
                                               {"lamps", sizes[size].lamps},
                                               {"height", sizes[size].height}};
        if ((test.small && k % 5 != 0) || sizes[size].dials + sizes[size].lamps == 0) {
            continue;
        }
        struct worlds_case c;
        worlds_begin_shaped(&c, test.dev,
                            grt_worlds_desc(.env = env, .copies = sizes[size].copies,
                                            .settings = values, .setting_count = 3),
                            1, shape > 0 ? &shapes[shape - 1] : NULL);
        uint32_t *turned = test_alloc(c.rows * sizeof *turned);
        memset(turned, 0, c.rows * sizeof *turned);
        check_towers(&c, turned, sizes[size].dials, sizes[size].lamps);
        for (uint32_t t = 0; t < 2; t++) {
            for (uint32_t row = 0; row < c.rows; row++) {
                c.actions[row] = (row + t) % 3 == 0;
                turned[row] += c.actions[row];
            }
            worlds_step(&c);
            check_towers(&c, turned, sizes[size].dials, sizes[size].lamps);
        }
        check_pitch(&c, c.sizes.obs + 3);
        check_pitch(&c, 2 * c.sizes.obs + 70);
        free(turned);
        worlds_end(&c);
    }
    grt_env_close(&env);
}

static void refuses(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *part;
        bool opened;
    } rows[] = {
        {"FN uint world_bits(", "FN uint world_bit(", "world_bits()", false},
        {"ENV_BITS lamps", "ENV_BITS (lamps + 4)", "more than the 43 numbers of ENV_OBS", true},
        {"ENV_BITS lamps", "ENV_BITS lights", "unknown name 'lights'", true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *at = strstr(towers, rows[i].from);
        char *text = test_alloc(sizeof towers + 64);
        sprintf(text, "%.*s%s%s", (int)(at - towers), towers, rows[i].to,
                at + strlen(rows[i].from));
        if (rows[i].opened) {
            const struct grt_env_info *env = worlds_env("towers", text);
            assert_non_null(env);
            TEST_REFUSED(grt_worlds_create(test.dev, grt_worlds_desc(.env = env, .copies = 1)),
                         GRT_BAD_DATA, rows[i].part);
            grt_env_close(&env);
        } else {
            TEST_REFUSED(worlds_env("towers", text), GRT_BAD_DATA, rows[i].part);
        }
        free(text);
    }
}

// UAVs and an environment without bits: the same numbers, wholes and masks from a GPU's shape.
static void shapes_see_the_same(void **state) {
    (void)state;
    static const struct {
        const char *env;
        struct grt_env_value values[3];
        uint32_t count, copies;
    } rows[] = {{"uav", {{"map", 40}, {"window", 7}, {"num_uavs", 10}}, 3, 37},
                {"uav", {{"map", 33}, {"window", 15}, {"num_uavs", 3}}, 3, 9},
                {"uav_flight", {{NULL, 0}}, 0, 21}};
    for (size_t k = 0; k < COUNT(rows); k++) {
        struct worlds_case usual;
        const struct grt_worlds_desc desc = {.env = grt_env_find(rows[k].env),
                                             .copies = rows[k].copies,
                                             .settings = rows[k].values,
                                             .setting_count = rows[k].count};
        worlds_begin(&usual, test.dev, &desc, 5);
        struct worlds_case c;
        worlds_begin_shaped(&c, test.dev, &desc, 5, &shapes[0]);
        assert_memory_equal(c.obs, usual.obs, (size_t)c.rows * c.sizes.obs * 4);
        assert_memory_equal(c.global, usual.global, (size_t)c.copies * c.sizes.global * 4);
        if (c.sizes.choices > 0) {
            assert_memory_equal(c.mask, usual.mask, (size_t)c.rows * 4);
        }
        worlds_end(&c);
        worlds_end(&usual);
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(numbers_are_bits),
    TEST_CASE(refuses),
    TEST_CASE(shapes_see_the_same),
};
TEST_SUITE(sight, true, cases);
