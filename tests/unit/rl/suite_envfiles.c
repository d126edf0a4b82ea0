// SPDX-License-Identifier: Apache-2.0
// Environments by name and from files: what each of gpurt's own says of itself, every fact of a
// file at both sides of its limits, the lists of one in memory, functions that are missing, and
// what is said of names that there are not.
#include "harness/harness.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/env.h"
#include "kits/worlds_kit.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void append(char *text, const char *part) {
    sprintf(text + strlen(text), "%s", part);
}

// ---- by name ----

static void those_that_are_built_in(void **state) {
    (void)state;
    static const struct {
        const char *name;
        bool world;
        uint32_t obs, act, state, substeps, phases, length, operations, normalise, shapes;
        float dt, step_size, noise_std;
    } want[] = {
        {"cartpole", false, 4, 1, 4, 1, 1, 500, 0, 0, 0, 0.02f, 0, 0},
        {"pendulum", false, 3, 1, 2, 1, 1, 200, 0, 0, 0, 0.05f, 0, 0},
        {"standing", false, 30, 8, 49, 5, 4, 1000, 17896, 1, 0, 0.05f, 0.005f, 0.005f},
        {"uav", true, 0, 0, 0, 1, 1, 200, 0, 0, 0, 1, 0, 0},
        {"uav_flight", true, 0, 0, 0, 1, 1, 200, 0, 0, 0, 0.1f, 0, 0},
    };
    for (size_t i = 0; i < COUNT(want); i++) {
        const struct grt_env_info *e = grt_env_find(want[i].name);
        assert_non_null(e);
        assert_string_equal(e->name, want[i].name);
        assert_true((e->world != NULL) == want[i].world);
        const uint32_t got[] = {e->obs,    e->act,        e->state,     e->substeps, e->phases,
                                e->length, e->operations, e->normalise, e->shapes};
        assert_memory_equal(got, &want[i].obs, sizeof got);
        assert_true(e->dt == want[i].dt && e->step_size == want[i].step_size &&
                    e->noise_std == want[i].noise_std);
        assert_null(e->source);
        assert_null(e->state_names[e->state]);
        bool listed = false;
        for (uint32_t k = 0; grt_env_at(k); k++) {
            listed = listed || grt_env_at(k) == e;
        }
        assert_true(listed);
        assert_ptr_equal(grt_env_open(want[i].name), e);
        // It has no text of its own, and closing it changes nothing.
        char digest[GRT_ENV_DIGEST] = "left";
        grt_env_digest(e, digest);
        assert_string_equal(digest, "");
        const struct grt_env_info *closed = e;
        grt_env_close(&closed);
        assert_null(closed);
        assert_ptr_equal(grt_env_find(want[i].name), e);
    }
    uint32_t count = 0;
    while (grt_env_at(count)) {
        count++;
    }
    assert_int_equal(count, COUNT(want));
    assert_null(grt_env_at(count + 1));
    assert_null(grt_env_at(UINT32_MAX));
    grt_env_close(NULL);
    const struct grt_env_info *none = NULL;
    grt_env_close(&none);
    static const char *const names[] = {"x", "v", "a", "w"};
    for (int i = 0; i < 4; i++) {
        assert_string_equal(grt_env_find("cartpole")->state_names[i], names[i]);
    }
    assert_string_equal(grt_env_find("standing")->state_names[48], "push_y");
}

struct setting {
    const char *name;
    bool whole;
    const char *value, *least, *most;
};

static void has_settings(const char *name, const struct setting *want, size_t count) {
    const struct grt_env_world *w = grt_env_find(name)->world;
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(w->settings[i].name, want[i].name);
        assert_int_equal(w->settings[i].whole, want[i].whole);
        assert_string_equal(w->settings[i].value, want[i].value);
        assert_string_equal(w->settings[i].least, want[i].least);
        assert_string_equal(w->settings[i].most, want[i].most);
        assert_true(strlen(w->settings[i].text) > 5);
    }
    assert_null(w->settings[count].name);
    static const char *const terms[] = {"arrived", "collisions", "all_arrived"};
    for (int i = 0; i < 3; i++) {
        assert_string_equal(w->terms[i], terms[i]);
    }
    assert_null(w->terms[3]);
}

static void settings_of_the_uavs(void **state) {
    (void)state;
    static const struct setting uav[] = {
        {"map", true, "32", "4", "128"},
        {"num_uavs", true, "10", "1", "64"},
        {"num_obstacles", true, "map * map * 5 / 128", "0", "map * map / 2"},
        {"window", true, "7", "1", "15"},
        {"mask", true, "1", "0", "1"},
        {"progress", false, "0.1", "0", "1000"},
        {"arrival", false, "1", "0", "1000"},
        {"collision", false, "0.2", "0", "1000"},
        {"time", false, "0.01", "0", "1000"},
        {"team", false, "0.1", "0", "1000"}};
    static const struct setting flight[] = {
        {"num_uavs", true, "4", "1", "64"},       {"num_obstacles", true, "6", "0", "64"},
        {"sensors", true, "16", "4", "64"},       {"sight", false, "0.3", "0.01", "2"},
        {"size", false, "0.01", "0.001", "0.1"},  {"reach", false, "0.04", "0.001", "0.2"},
        {"accel", false, "0.4", "0.01", "10"},    {"speed", false, "0.3", "0.01", "2"},
        {"progress", false, "5", "0", "1000"},    {"arrival", false, "1", "0", "1000"},
        {"collision", false, "0.2", "0", "1000"}, {"time", false, "0.01", "0", "1000"},
        {"team", false, "0.1", "0", "1000"}};
    has_settings("uav", uav, COUNT(uav));
    has_settings("uav_flight", flight, COUNT(flight));
    const struct grt_env_world *w = grt_env_find("uav")->world;
    assert_string_equal(w->rules[0].otherwise, "the window has no middle");
    assert_null(w->rules[3].holds);
    assert_null(grt_env_find("uav_flight")->world->rules[0].holds);
}

static void names_that_there_are_not(void **state) {
    (void)state;
#define ALL "there are cartpole, pendulum, standing, uav, uav_flight, and files such as "
    static const struct {
        const char *name, *sentence;
    } rows[] = {{"cartpol", "no environment 'cartpol'; did you mean 'cartpole'?"},
                {"uav_fligth", "no environment 'uav_fligth'; did you mean 'uav_flight'?"},
                {"xyzzy", "no environment 'xyzzy'; " ALL "./xyzzy.k"},
                {"", "no environment ''; " ALL "./mine.k"},
                {NULL, "no environment ''; " ALL "./mine.k"},
                {".k", "no environment '.k'; " ALL "./.k.k"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        TEST_REFUSED(grt_env_find(rows[i].name), GRT_INVALID, rows[i].sentence);
        TEST_REFUSED(grt_env_open(rows[i].name), GRT_INVALID, rows[i].sentence);
    }
    // What has a folder or ends with .k is a file.
    TEST_REFUSED(grt_env_open("nothere.k"), GRT_NO_INPUT, "nothere.k");
    TEST_REFUSED(grt_env_open("./cartpole"), GRT_NO_INPUT, "./cartpole");
    TEST_REFUSED(grt_env_in_registers(grt_env_find("uav"), "this test"), GRT_INVALID,
                 "environment 'uav' keeps its state in device memory, and this test needs one that "
                 "holds it in registers (shaders/env/state.k)");
    assert_true(grt_env_in_registers(grt_env_find("cartpole"), "this test"));
}

// ---- facts of a file ----

// With words in front, and the function of that number left out.
static char *slider(const char *front, int without) {
    static const char *const functions[] = {
        "FN env_state env_reset(uint env, uint episode, uint phase, uint seed) {\n"
        "    env_state s;\n    s.x = 0.0f;\n    s.v = 1.0f;\n    return s;\n}\n",
        "FN env_state env_step(env_state s, env_action a) { return s; }\n",
        "FN env_observation env_observe(env_state s) {\n"
        "    env_observation o;\n    o.v[0] = s.x;\n    return o;\n}\n",
        "FN float env_reward(env_state before, env_action a, env_state s) { return 0.0f; }\n",
        "FN bool env_done(env_state s) { return false; }\n",
        "FN bool env_good(env_state s) { return true; }\n"};
    char *text = test_alloc(4096);
    sprintf(text, "#define ENV slider\n%s", front);
    const char *const rest[][2] = {{"ENV_OBS ", "#define ENV_OBS 3\n"},
                                   {"ENV_ACT ", "#define ENV_ACT 2\n"},
                                   {"ENV_STATE", "#define ENV_STATE(F) F(0, x) F(1, v)\n"}};
    for (int i = 0; i < 3; i++) {
        append(text, strstr(front, rest[i][0]) ? "" : rest[i][1]);
    }
    append(text, "#include \"env/state.k\"\n");
    for (int i = 0; i < 6; i++) {
        append(text, i == without ? "" : functions[i]);
    }
    return text;
}

static const struct grt_env_info *open_slider(const char *front) {
    char *text = slider(front, -1);
    const struct grt_env_info *env = worlds_env("slider", text);
    free(text);
    return env;
}

static double fact_of(const struct grt_env_info *e, const char *name) {
    const struct {
        const char *name;
        double value;
    } facts[] = {{"OBS", e->obs},
                 {"ACT", e->act},
                 {"SUBSTEPS", e->substeps},
                 {"PHASES", e->phases},
                 {"LENGTH", e->length},
                 {"DT", (double)e->dt},
                 {"OPERATIONS", e->operations},
                 {"STEP_SIZE", (double)e->step_size},
                 {"NOISE_STD", (double)e->noise_std},
                 {"NORMALISE", e->normalise}};
    for (size_t i = 0; i < COUNT(facts); i++) {
        if (strcmp(facts[i].name, name) == 0) {
            return facts[i].value;
        }
    }
    fail_msg("no fact %s", name);
    return 0;
}

// Each fact at its limits, and beyond them; those that are whole, between two.
static void facts_at_their_limits(void **state) {
    (void)state;
    static const struct {
        const char *name, *value;
        double good;       // the value; below 0: refused
        const char *said;  // in place of the value
        const char *range;
    } rows[] = {
        {"OBS", "1", 1, NULL, NULL},
        {"OBS", "1024", 1024, NULL, NULL},
        {"OBS", "0", -1, "0", " a whole number from 1 to 1024"},
        {"OBS", "1025", -1, "1025", " a whole number from 1 to 1024"},
        {"ACT", "1", 1, NULL, NULL},
        {"ACT", "1024", 1024, NULL, NULL},
        {"ACT", "0", -1, "0", " a whole number from 1 to 1024"},
        {"ACT", "1025", -1, "1025", " a whole number from 1 to 1024"},
        {"SUBSTEPS", "1", 1, NULL, NULL},
        {"SUBSTEPS", "1000000", 1000000, NULL, NULL},
        {"SUBSTEPS", "0", -1, "0", " a whole number from 1 to 1e+06"},
        {"SUBSTEPS", "1000001", -1, "1e+06", " a whole number from 1 to 1e+06"},
        {"PHASES", "1000000", 1000000, NULL, NULL},
        {"PHASES", "0", -1, "0", " a whole number from 1 to 1e+06"},
        {"PHASES", "1000001", -1, "1e+06", " a whole number from 1 to 1e+06"},
        {"LENGTH", "1", 1, NULL, NULL},
        {"LENGTH", "1000000", 1000000, NULL, NULL},
        {"LENGTH", "0", -1, "0", " a whole number from 1 to 1e+06"},
        {"LENGTH", "1000001", -1, "1e+06", " a whole number from 1 to 1e+06"},
        {"LENGTH", "2.5", -1, "2.5", " a whole number from 1 to 1e+06"},
        {"DT", "0.000001", 1e-6, NULL, NULL},
        {"DT", "1000000000", 1e9, NULL, NULL},
        {"DT", "0", -1, "0", " 1e-09 to 1e+09"},
        {"DT", "1000000064", -1, "1e+09", " 1e-09 to 1e+09"},
        {"OPERATIONS", "0", 0, NULL, NULL},
        {"OPERATIONS", "4000000000", 4e9, NULL, NULL},
        {"OPERATIONS", "4000000001", -1, "4e+09", " a whole number from 0 to 4e+09"},
        {"STEP_SIZE", "0", 0, NULL, NULL},
        {"STEP_SIZE", "0.25", 0.25, NULL, NULL},
        {"STEP_SIZE", "-0.25", -1, "-0.25", " 0 to 1e+09"},
        {"NOISE_STD", "0.5", 0.5, NULL, NULL},
        {"NOISE_STD", "-0.5", -1, "-0.5", " 0 to 1e+09"},
        {"NORMALISE", "0", 0, NULL, NULL},
        {"NORMALISE", "1", 1, NULL, NULL},
        {"NORMALISE", "2", -1, "2", " a whole number from 0 to 1"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char front[128], want[160], name[32];
        snprintf(front, sizeof front, "#define ENV_%s %s\n", rows[i].name, rows[i].value);
        if (rows[i].good >= 0) {
            const struct grt_env_info *env = open_slider(front);
            assert_non_null(env);
            assert_true((float)fact_of(env, rows[i].name) == (float)rows[i].good);
            grt_env_close(&env);
            continue;
        }
        for (size_t k = 0; k <= strlen(rows[i].name); k++) {
            name[k] = (char)tolower((unsigned char)rows[i].name[k]);
        }
        snprintf(want, sizeof want, "slider.k: %s of the environment is %s; it must be%s", name,
                 rows[i].said, rows[i].range);
        TEST_REFUSED(open_slider(front), GRT_BAD_DATA, want);
    }
}

// What a file does not say; names of its state; a digest of its text.
static void a_file_says_what_it_is(void **state) {
    (void)state;
    const struct grt_env_info *env = open_slider(""), *again = open_slider("");
    const struct grt_env_info *other = open_slider("#define ENV_LENGTH 499\n");
    assert_true(env && again && other);
    assert_string_equal(env->name, "slider");
    assert_true(env->obs == 3 && env->act == 2 && env->state == 2 && env->substeps == 1 &&
                env->phases == 1 && env->length == 500 && env->dt == 0.02f &&
                env->operations == 0 && env->step_size == 0 && env->noise_std == 0 &&
                env->normalise == 0 && env->shapes == 0);
    assert_true(env->source && !env->world);
    assert_string_equal(env->state_names[0], "x");
    assert_string_equal(env->state_names[1], "v");
    assert_null(env->state_names[2]);
    char digests[3][GRT_ENV_DIGEST];
    grt_env_digest(env, digests[0]);
    grt_env_digest(again, digests[1]);
    grt_env_digest(other, digests[2]);
    assert_int_equal(strspn(digests[0], "0123456789abcdef"), 16);
    assert_string_equal(digests[0], digests[1]);
    assert_string_not_equal(digests[0], digests[2]);
    grt_env_close(&env);
    grt_env_close(&again);
    grt_env_close(&other);
    assert_null(env);
    grt_env_close(&env);
    const struct grt_env_info *drawn =
        open_slider("#define ENV_DRAW(S, LINE, CIRCLE, POINT) LINE(0.0f, 0.0f, S.x, 1.0f, 0.1f) "
                    "CIRCLE(S.v, 0.0f, 1.0f) POINT(0.0f, S.x)\n");
    assert_non_null(drawn);
    assert_int_equal(drawn->shapes, 3);
    grt_env_close(&drawn);
}

static void functions_that_are_missing(void **state) {
    (void)state;
    static const char *const names[] = {"env_reset",  "env_step", "env_observe",
                                        "env_reward", "env_done", "env_good"};
    for (int i = 0; i < 6; i++) {
        char *text = slider("", i), want[80];
        snprintf(want, sizeof want, "slider.k: the environment has no function %s()", names[i]);
        TEST_REFUSED(worlds_env("slider", text), GRT_BAD_DATA, want);
        free(text);
    }
}

// ---- of one in memory ----

static const char *const world_functions[] = {
    "FN void world_reset(env_world w, uint env, uint episode, uint phase, uint seed) {}\n",
    "FN void world_step(env_world w) {}\n",
    "FN float world_reward(env_world w, uint agent) { return 0.0f; }\n",
    "FN bool world_out(env_world w, uint agent) { return false; }\n",
    "FN bool world_done(env_world w) { return false; }\n",
    "FN float world_observe(env_world w, uint agent, uint i) { return 0.0f; }\n",
    // From here on those that not every environment has.
    "FN void world_choose(env_world w, uint agent, uint choice) {}\n",
    "FN uint world_mask(env_world w, uint agent) { return 1u; }\n",
    "FN void world_act(env_world w, uint agent, uint i, float value) {}\n",
    "FN float world_global(env_world w, uint i) { return 0.0f; }\n",
    "FN uint world_bits(env_world w, uint agent, uint k) { return 0u; }\n",
    "FN env_shape world_draw(env_world w, uint i) { return draw_none(); }\n",
    "FN float world_term(env_world w, uint i) { return 0.0f; }\n"};
#define ALWAYS 6

static const struct grt_env_info *open_team(const char *sizes, uint32_t without) {
    char *text = test_alloc(16384);
    sprintf(text, "#define ENV team\n%s#include \"env/world.k\"\n", sizes);
    for (size_t i = 0; i < COUNT(world_functions); i++) {
        append(text, without >> i & 1 ? "" : world_functions[i]);
    }
    const struct grt_env_info *env = worlds_env("team", text);
    free(text);
    return env;
}

#define SIZES "#define ENV_AGENTS 2\n#define ENV_OBS 3\n#define ENV_WORDS 4\n"
#define CHOOSES SIZES "#define ENV_CHOICES 2\n"
#define ACTS SIZES "#define ENV_ACT 2\n"

// A function is wanted where what it is for is there, and only there.
static void functions_of_worlds(void **state) {
    (void)state;
    static const struct {
        const char *name, *with, *without;
    } rows[] = {{"world_reset", ACTS, NULL},
                {"world_step", ACTS, NULL},
                {"world_reward", ACTS, NULL},
                {"world_out", ACTS, NULL},
                {"world_done", ACTS, NULL},
                {"world_observe", ACTS, NULL},
                {"world_choose", CHOOSES, ACTS},
                {"world_mask", CHOOSES, ACTS},
                {"world_act", ACTS, CHOOSES},
                {"world_global", ACTS "#define ENV_GLOBAL 1\n", ACTS},
                {"world_bits", ACTS "#define ENV_BITS 1\n", ACTS},
                {"world_draw", ACTS "#define ENV_SHAPES 1\n", ACTS},
                {"world_term", ACTS "#define ENV_TERMS(F) F(one)\n", ACTS}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char want[96];
        snprintf(want, sizeof want, "team.k: the environment has no function %s()", rows[i].name);
        TEST_REFUSED(open_team(rows[i].with, 1u << i), GRT_BAD_DATA, want);
        if (rows[i].without) {
            const struct grt_env_info *env = open_team(rows[i].without, 1u << i);
            assert_non_null(env);
            grt_env_close(&env);
        }
    }
}

static void what_a_world_says(void **state) {
    (void)state;
    const struct grt_env_info *env = open_team(
        CHOOSES "#define ENV_SETTINGS(F) F(uint, cells, 6 + 1, 2, 100, \"of the line\") "
                "F(float, gain, 0.5, -1, cells / 2, \"for the goal\")\n"
                "#define ENV_RULES(F) F(cells > 3, \"too few\") F(gain < 2, \"too much\")\n"
                "#define ENV_TERMS(F) F(one) F(two)\n#define ENV_GLOBAL cells + 1\n"
                "#define ENV_DT 0.5f\n#define ENV_PHASES 3\n#define ENV_LENGTH 9\n",
        0);
    assert_non_null(env);
    const struct grt_env_world *w = env->world;
    assert_true(env->state == 0 && env->phases == 3 && env->length == 9 && env->dt == 0.5f);
    assert_true(w->settings[0].whole && !w->settings[1].whole);
    assert_string_equal(w->settings[0].name, "cells");
    assert_string_equal(w->settings[1].name, "gain");
    assert_string_equal(w->settings[0].text, "of the line");
    assert_null(w->settings[2].name);
    assert_string_equal(w->rules[1].otherwise, "too much");
    assert_null(w->rules[2].holds);
    assert_string_equal(w->terms[0], "one");
    assert_string_equal(w->terms[1], "two");
    assert_null(w->terms[2]);
    assert_string_equal(w->agents, "2");
    assert_string_equal(w->obs, "3");
    assert_string_equal(w->words, "4");
    assert_string_equal(w->choices, "2");
    assert_string_equal(w->act, "0");
    assert_string_equal(w->shapes, "0");
    assert_string_equal(w->bits, "0");
    grt_env_close(&env);
}

// A list of so many rows.
static const struct grt_env_info *open_list(const char *list, const char *row, uint32_t count) {
    char *sizes = test_alloc(8192);
    sprintf(sizes, ACTS "#define ENV_%s(F)", list);
    for (uint32_t i = 0; i < count; i++) {
        sprintf(sizes + strlen(sizes), row, i);
    }
    append(sizes, "\n");
    const struct grt_env_info *env = open_team(sizes, 0);
    free(sizes);
    return env;
}

static void lists_have_ends(void **state) {
    (void)state;
    static const struct {
        const char *list, *row, *said;
        uint32_t most;
    } rows[] = {{"SETTINGS", " F(uint, s%u, 1, 0, 2, \"one of many\")",
                 "more than 20 settings in ENV_SETTINGS", 20},
                {"RULES", " F(1, \"rule %u\")", "more than 32 rules in ENV_RULES", 32},
                {"TERMS", " F(t%u)", "more than 32 terms in ENV_TERMS", 32}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct grt_env_info *env = open_list(rows[i].list, rows[i].row, rows[i].most);
        assert_non_null(env);
        grt_env_close(&env);
        TEST_REFUSED(open_list(rows[i].list, rows[i].row, rows[i].most + 1), GRT_BAD_DATA,
                     rows[i].said);
    }
    static const struct {
        const char *sizes, *said;
    } wrong[] = {
        {"#define ENV_OBS 3\n#define ENV_WORDS 4\n#define ENV_ACT 1\n",
         "the environment defines neither ENV_STATE, for a state in registers, nor ENV_AGENTS, for "
         "one in memory"},
        {"#define ENV_AGENTS 1\n#define ENV_WORDS 4\n#define ENV_ACT 1\n",
         "nor ENV_OBS, for one in memory"},
        {"#define ENV_AGENTS 1\n#define ENV_OBS 4\n#define ENV_ACT 1\n",
         "nor ENV_WORDS, for one in memory"},
        {ACTS "#define ENV_SETTINGS(F) F(int, cells, 1, 0, 2, \"x\")\n",
         "setting cells is of 'int'; there are uint and float"},
        {ACTS "#define ENV_SETTINGS(F) F(uint, cells, 1, 0, 2)\n",
         "wrong number of arguments of 'ENV_SETTINGS_ROW'"},
        {ACTS "#define ENV_RULES(F) F(1)\n", "a row of ENV_RULES has 1 parts and not 2: 1"},
        {ACTS "#define ENV_TERMS(F) F(one, two)\n",
         "a row of ENV_TERMS has 2 parts and not 1: one"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        TEST_REFUSED(open_team(wrong[i].sizes, 0), GRT_BAD_DATA, wrong[i].said);
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(those_that_are_built_in),  TEST_CASE(settings_of_the_uavs),
    TEST_CASE(names_that_there_are_not), TEST_CASE(facts_at_their_limits),
    TEST_CASE(a_file_says_what_it_is),   TEST_CASE(functions_that_are_missing),
    TEST_CASE(functions_of_worlds),      TEST_CASE(what_a_world_says),
    TEST_CASE(lists_have_ends),
};
TEST_SUITE(envfiles, false, cases);
