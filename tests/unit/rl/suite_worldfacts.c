// SPDX-License-Identifier: Apache-2.0
// What worlds say of themselves and refuse: settings and sizes at both sides of their limits, how
// many copies fit, and how a GPU's workgroups are cut.
#include "kits/ref_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "kits/worlds_kit.h"
#include "ops/op_support.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static struct grt_worlds *with(const struct grt_env_info *env, const struct grt_env_value *values,
                               uint32_t count) {
    return grt_worlds_create(test.dev, grt_worlds_desc(.env = env, .copies = 1, .settings = values,
                                                       .setting_count = count));
}

// ---- settings ----

// Beside the setting itself those that let it have its least and its most.
static void settings_at_their_limits(void **state) {
    (void)state;
    static const struct {
        const char *env, *name;
        bool whole;
        double least, most;
    } rows[] = {
        {"uav", "map", true, 4, 128},
        {"uav", "num_uavs", true, 1, 64},
        {"uav", "num_obstacles", true, 0, 50},
        {"uav", "window", true, 1, 15},
        {"uav", "mask", true, 0, 1},
        {"uav", "progress", false, 0, 1000},
        {"uav", "arrival", false, 0, 1000},
        {"uav", "collision", false, 0, 1000},
        {"uav", "time", false, 0, 1000},
        {"uav", "team", false, 0, 1000},
        {"uav_flight", "num_uavs", true, 1, 64},
        {"uav_flight", "num_obstacles", true, 0, 64},
        {"uav_flight", "sensors", true, 4, 64},
        {"uav_flight", "sight", false, 0.01, 2},
        {"uav_flight", "size", false, 0.001, 0.1},
        {"uav_flight", "reach", false, 0.001, 0.2},
        {"uav_flight", "accel", false, 0.01, 10},
        {"uav_flight", "speed", false, 0.01, 2},
        {"uav_flight", "progress", false, 0, 1000},
        {"uav_flight", "arrival", false, 0, 1000},
        {"uav_flight", "collision", false, 0, 1000},
        {"uav_flight", "time", false, 0, 1000},
        {"uav_flight", "team", false, 0, 1000},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct grt_env_info *env = grt_env_find(rows[i].env);
        struct grt_env_value values[4] = {{"window", 3}, {"num_uavs", 2}, {"map", 10}};
        bool grid = strcmp(rows[i].env, "uav") == 0;
        uint32_t count = grid ? 3 : 0;
        if (grid && rows[i].most == 64) {
            values[2].value = 20;
        } else if (grid && rows[i].most == 15) {
            values[2].value = 15;
        }
        values[count++].name = rows[i].name;  // the last word counts
        for (int high = 0; high < 2; high++) {
            double value = 0, step = rows[i].whole ? 1 : 0.0005;
            values[count - 1].value = high ? rows[i].most : rows[i].least;
            struct grt_worlds *worlds = with(env, values, count);
            assert_non_null(worlds);
            for (uint32_t k = 0; grt_worlds_setting(worlds, k, &value); k++) {
                if (strcmp(env->world->settings[k].name, rows[i].name) == 0) {
                    assert_true(value == values[count - 1].value);
                }
            }
            grt_worlds_destroy(&worlds);
            char want[160];
            values[count - 1].value += high ? step : -step;
            snprintf(want, sizeof want, "environment '%s': %s is %g; it must be%s %g to %g (",
                     rows[i].env, rows[i].name, values[count - 1].value,
                     rows[i].whole ? " a whole number from" : "", rows[i].least, rows[i].most);
            TEST_REFUSED(with(env, values, count), GRT_CONFIG, want);
        }
        if (rows[i].whole) {
            values[count - 1].value = rows[i].least + 0.5;
            TEST_REFUSED(with(env, values, count), GRT_CONFIG, "it must be a whole number from");
        }
    }
}

// Those of the file where nothing is set, which follow from others that are.
static void settings_that_are_not_given(void **state) {
    (void)state;
    static const double grid[] = {32, 10, 40, 7, 1, 0.1, 1, 0.2, 0.01, 0.1};
    static const double wide[] = {48, 10, 90, 7, 1, 0.1, 1, 0.2, 0.01, 0.1};
    static const double flight[] = {4, 6, 16, 0.3, 0.01, 0.04, 0.4, 0.3, 5, 1, 0.2, 0.01, 0.1};
    static const struct grt_env_value map[] = {{"map", 48}};
    const struct {
        const char *env;
        const struct grt_env_value *values;
        const double *want;
        uint32_t count;
    } rows[] = {{"uav", NULL, grid, COUNT(grid)},
                {"uav", map, wide, COUNT(wide)},
                {"uav_flight", NULL, flight, COUNT(flight)}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct grt_env_info *env = grt_env_find(rows[i].env);
        struct grt_worlds *worlds = with(env, rows[i].values, rows[i].values ? 1 : 0);
        double value = -1;
        for (uint32_t k = 0; k < rows[i].count; k++) {
            assert_string_equal(grt_worlds_setting(worlds, k, &value),
                                env->world->settings[k].name);
            assert_true(value == rows[i].want[k]);
        }
        assert_null(grt_worlds_setting(worlds, rows[i].count, &value));
        grt_worlds_destroy(&worlds);
    }
    // A rule that does not hold is said with its reason.
    static const struct grt_env_value narrow[] = {{"map", 6}, {"window", 7}};
    TEST_REFUSED(with(grt_env_find("uav"), narrow, 2), GRT_CONFIG,
                 "environment 'uav': the window is larger than the map: window <= map does not "
                 "hold");
    static const struct grt_env_value nameless[] = {{NULL, 6}};
    TEST_REFUSED(with(grt_env_find("uav"), nameless, 1), GRT_CONFIG,
                 "environment 'uav' has no setting ''; its first is 'map'");
    static const struct grt_env_value off[] = {{"num_uavz", 6}};
    TEST_REFUSED(with(grt_env_find("uav"), off, 1), GRT_CONFIG,
                 "environment 'uav' has no setting 'num_uavz'; did you mean 'num_uavs'?");
    TEST_REFUSED(with(grt_env_find("pendulum"), off, 1), GRT_CONFIG,
                 "environment 'pendulum' has no settings; 'num_uavz' cannot be set");
    TEST_REFUSED(with(grt_env_find("uav"), NULL, 1), GRT_INVALID, "worlds: no settings");
    TEST_REFUSED(with(NULL, NULL, 0), GRT_INVALID, "worlds: no environment");
    TEST_REFUSED(grt_worlds_create(test.dev, NULL), GRT_INVALID, "worlds: no environment");
    TEST_REFUSED(grt_worlds_create(NULL, grt_worlds_desc(.copies = 1)), GRT_INVALID,
                 "worlds: no device");
}

// ---- sizes ----

static const char sized[] =
    "#define ENV sized\n"
    "#define ENV_SETTINGS(F) F(float, a, 1, -1, 4000000000, \"agents\") \\\n"
    "    F(float, o, 1, -1, 4000000000, \"numbers seen\") \\\n"
    "    F(float, g, 0, -1, 4000000000, \"of the whole\") \\\n"
    "    F(float, v, 0, -1, 4000000000, \"of an action\") \\\n"
    "    F(float, k, 2, -1, 4000000000, \"choices\") \\\n"
    "    F(float, q, 1, -1, 4000000000, \"words\") \\\n"
    "    F(float, h, 0, -1, 4000000000, \"shapes\") F(float, b, 0, -1, 4000000000, \"bits\")\n"
    "#define ENV_AGENTS a\n#define ENV_OBS o\n#define ENV_GLOBAL g\n#define ENV_ACT v\n"
    "#define ENV_CHOICES k\n#define ENV_WORDS q\n#define ENV_SHAPES h\n#define ENV_BITS b\n"
    "#include \"env/world.k\"\n"
    "FN void world_reset(env_world w, uint env, uint episode, uint phase, uint seed) {}\n"
    "FN void world_choose(env_world w, uint agent, uint choice) {}\n"
    "FN uint world_mask(env_world w, uint agent) { return 1u; }\n"
    "FN void world_step(env_world w) {}\n"
    "FN float world_reward(env_world w, uint agent) { return 0.0f; }\n"
    "FN bool world_out(env_world w, uint agent) { return false; }\n"
    "FN bool world_done(env_world w) { return false; }\n"
    "FN float world_observe(env_world w, uint agent, uint i) { return 0.0f; }\n"
    "FN float world_global(env_world w, uint i) { return 0.0f; }\n"
    "FN uint world_bits(env_world w, uint agent, uint k) { return 0u; }\n"
    "FN env_shape world_draw(env_world w, uint i) { return draw_none(); }\n";

static void sizes_at_their_limits(void **state) {
    (void)state;
    static const struct {
        const char *name, *of;
        double least, most;
        struct grt_env_value beside;  // for the most
    } rows[] = {
        {"a", "ENV_AGENTS", 1, 65536, {"g", 0}},   {"o", "ENV_OBS", 1, 1048576, {"g", 0}},
        {"g", "ENV_GLOBAL", 0, 1048576, {"h", 0}}, {"v", "ENV_ACT", 0, 1048576, {"k", 0}},
        {"k", "ENV_CHOICES", 0, 32, {"g", 0}},     {"q", "ENV_WORDS", 1, 67108864, {"g", 0}},
        {"h", "ENV_SHAPES", 0, 1048576, {"g", 0}}, {"b", "ENV_BITS", 0, 1048576, {"o", 1048576}}};
    const struct grt_env_info *env = worlds_env("sized", sized);
    assert_non_null(env);
    for (size_t i = 0; i < COUNT(rows); i++) {
        // The least, with the other kind of action where it is 0.
        const struct grt_env_value low[] = {{"v", strcmp(rows[i].name, "k") == 0},
                                            {rows[i].name, rows[i].least}};
        const struct grt_env_value high[] = {rows[i].beside, {rows[i].name, rows[i].most}};
        struct grt_worlds *worlds = with(env, low, 2);
        assert_non_null(worlds);
        grt_worlds_destroy(&worlds);
        worlds = with(env, high, 2);
        assert_non_null(worlds);
        const struct grt_worlds_sizes *s = grt_worlds_sizes(worlds);
        const uint32_t got[] = {s->agents,  s->obs,   s->global, s->act,
                                s->choices, s->words, s->shapes, worlds->bits};
        assert_int_equal(got[i], (uint32_t)rows[i].most);
        assert_int_equal(s->terms, 0);
        grt_worlds_destroy(&worlds);
        const double wrong[] = {rows[i].least - 1, rows[i].most + 1, rows[i].least + 0.5};
        for (int k = 0; k < 3; k++) {
            char want[160];
            snprintf(want, sizeof want,
                     "environment 'sized': %s, %s, is %g; it must be a whole number from %g to %g",
                     rows[i].of, rows[i].name, wrong[k], rows[i].least, rows[i].most);
            const struct grt_env_value value[] = {rows[i].beside, {rows[i].name, wrong[k]}};
            TEST_REFUSED(with(env, value, 2), GRT_BAD_DATA, want);
        }
    }
    const struct grt_env_value none[] = {{"k", 0}}, both[] = {{"v", 3}}, bits[] = {{"b", 2}};
    TEST_REFUSED(with(env, none, 1), GRT_BAD_DATA, "ENV_ACT is 0 and ENV_CHOICES 0; one of them");
    TEST_REFUSED(with(env, both, 1), GRT_BAD_DATA, "ENV_ACT is 3 and ENV_CHOICES 2; one of them");
    TEST_REFUSED(with(env, bits, 1), GRT_BAD_DATA,
                 "ENV_BITS is 2, more than the 1 numbers of ENV_OBS");
    grt_env_close(&env);
}

// ---- copies ----

static void copies_that_fit(void **state) {
    (void)state;
    const uint64_t reach = grt_op_reach(test.dev);
    static const struct {
        const char *env;
        uint64_t of_copy;  // numbers of the largest thing that a copy has
    } rows[] = {{"pendulum", 2 + 1 + 3},
                {"standing", 49 + 8 + 3},
                {"uav", 10 * (15 + 3 * 49)},
                {"uav_flight", 4 * 22}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (int once = 0; once < 2; once++) {
            struct grt_worlds_desc desc = {.env = grt_env_find(rows[i].env), .once = once != 0};
            char want[200];
            uint64_t most = reach / rows[i].of_copy;
            assert_true(most < UINT32_MAX);
            desc.copies = (uint32_t)most;
            struct grt_worlds *worlds = grt_worlds_create(test.dev, &desc);
            assert_non_null(worlds);
            grt_worlds_destroy(&worlds);
            desc.copies++;
            snprintf(want, sizeof want,
                     "%u copies of environment '%s' (%s) are more than ref:0 reaches in one "
                     "buffer; use at most %llu",
                     desc.copies, rows[i].env, once ? "evaluate_envs" : "num_envs",
                     (unsigned long long)most);
            TEST_REFUSED(grt_worlds_create(test.dev, &desc), GRT_CONFIG, want);
        }
    }
}

static void what_worlds_tell(void **state) {
    (void)state;
    const struct grt_env_info *env = grt_env_find("standing");
    struct grt_worlds_desc desc = {.env = env, .copies = 7, .first = 5, .phase = 4, .length = 33};
    struct grt_worlds *w = grt_worlds_create(test.dev, &desc);
    assert_non_null(w);
    assert_int_equal(grt_worlds_copies(w), 7);
    assert_int_equal(grt_worlds_first(w), 5);
    assert_int_equal(grt_worlds_length(w), 33);
    assert_int_equal(w->phase, 4);
    const struct grt_worlds_sizes *s = grt_worlds_sizes(w);
    assert_true(s->agents == 1 && s->obs == 30 && s->act == 8 && s->global == 0 &&
                s->choices == 0 && s->words == 49 + 8 + 3 && s->terms == 1 && s->shapes == 0);
    assert_string_equal(grt_worlds_term(w, 0), "good");
    assert_null(grt_worlds_term(w, 1));
    double value = 4;
    assert_null(grt_worlds_setting(w, 0, &value));
    assert_true(value == 4);
    struct grt_plan *plan = grt_plan_create(test.dev);
    grt_worlds_declare(w, plan);
    static const struct {
        const char *label;
        enum grt_dtype dtype;
        uint64_t rows;
    } tensors[] = {{"state", GRT_U32, 60}, {"book", GRT_U32, 4}, {"totals", GRT_F32, 3 + 1}};
    for (uint32_t i = 0; i < 3; i++) {
        const struct grt_tensor *t = grt_plan_at(plan, "worlds", i);
        assert_string_equal(t->label, tensors[i].label);
        assert_int_equal(t->dtype, tensors[i].dtype);
        assert_true(t->shape[0] == tensors[i].rows && t->shape[1] == 7);
    }
    assert_null(grt_plan_at(plan, "worlds", 3));
    grt_plan_destroy(&plan);
    grt_worlds_destroy(&w);
    // What is not said is the environment's; phases have an end.
    desc.length = desc.phase = 0;
    w = grt_worlds_create(test.dev, &desc);
    assert_true(grt_worlds_length(w) == 1000 && w->phase == 1);
    grt_worlds_destroy(&w);
    assert_null(w);
    desc.phase = 5;
    TEST_REFUSED(grt_worlds_create(test.dev, &desc), GRT_CONFIG,
                 "environment 'standing' has no phase 5; it has 1 to 4");
    desc.phase = 4;
    desc.copies = 0;
    TEST_REFUSED(grt_worlds_create(test.dev, &desc), GRT_CONFIG,
                 "0 copies of environment 'standing'; there must be at least 1");
    assert_true(grt_worlds_copies(NULL) == 0 && grt_worlds_first(NULL) == 0);
    assert_true(grt_worlds_length(NULL) == 0 && !grt_worlds_sizes(NULL));
    assert_null(grt_worlds_term(NULL, 0));
    assert_null(grt_worlds_setting(NULL, 0, &value));
    grt_worlds_destroy(NULL);
    grt_worlds_destroy(&w);
    w = with(grt_env_find("uav"), NULL, 0);
    assert_string_equal(grt_worlds_term(w, 2), "all_arrived");
    assert_null(grt_worlds_term(w, 3));
    assert_int_equal(grt_worlds_sizes(w)->shapes, 1 + 40 + 20);
    assert_int_equal(w->bits, 9 + 3 * 49);
    grt_worlds_destroy(&w);
}

// Rows of a GPU's workgroup are halved until there are four groups for each of its units, and
// wholes are shared by many lanes where there are not two.
static void workgroups_of_gpus(void **state) {
    (void)state;
    static const struct {
        const char *env;
        bool software;
        uint32_t units, most, uavs, copies;
        struct worlds_sight want;  // lanes, rows, lanes of a row, wholes
    } rows[] = {{"uav", true, 132, 1024, 10, 65536, {64, 64, 1, 64}},
                {"pendulum", false, 132, 1024, 0, 65536, {64, 64, 1, 64}},
                {"uav", false, 132, 1024, 10, 65536, {128, 32, 32, 32}},
                {"uav", false, 132, 1024, 10, 64, {128, 8, 32, 4}},
                {"uav", false, 1, 1024, 1, 128, {128, 32, 32, 32}},
                {"uav", false, 1, 1024, 1, 127, {128, 16, 32, 32}},
                {"uav", false, 1, 1024, 1, 64, {128, 16, 32, 32}},
                {"uav", false, 1, 1024, 1, 63, {128, 8, 32, 4}},
                {"uav", false, 1, 1024, 2, 63, {128, 16, 32, 4}},
                {"uav", false, 0, 1024, 2, 1024, {128, 32, 32, 32}},
                {"uav", false, 0, 1024, 2, 1023, {128, 16, 32, 4}},
                {"uav", false, 132, 128, 10, 65536, {128, 32, 32, 32}},
                {"uav", false, 132, 127, 10, 65536, {64, 32, 32, 32}},
                {"uav", false, 132, 40, 10, 65536, {32, 32, 32, 32}}};
    struct grt_caps *caps = &test.dev->info.caps;
    const struct grt_caps real = *caps;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct grt_env_value uavs[] = {{"num_uavs", rows[i].uavs}};
        caps->software = rows[i].software;
        caps->compute_units = rows[i].units;
        caps->max_wg = rows[i].most;
        struct grt_worlds *w = grt_worlds_create(
            test.dev, grt_worlds_desc(.env = grt_env_find(rows[i].env), .copies = rows[i].copies,
                                      .settings = uavs, .setting_count = rows[i].uavs > 0));
        *caps = real;
        assert_non_null(w);
        if (memcmp(&w->sight, &rows[i].want, sizeof w->sight) != 0) {
            fail_msg("row %zu: %u lanes, %u rows, %u, %u wholes", i, w->sight.wg, w->sight.rows,
                     w->sight.lanes, w->sight.wholes);
        }
        grt_worlds_destroy(&w);
    }
}

static const struct CMUnitTest cases[] = {
    REF_CASE(settings_at_their_limits), REF_CASE(settings_that_are_not_given),
    REF_CASE(sizes_at_their_limits),    REF_CASE(copies_that_fit),
    REF_CASE(what_worlds_tell),         REF_CASE(workgroups_of_gpus),
};
TEST_SUITE(worldfacts, false, cases);
