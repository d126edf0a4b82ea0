// SPDX-License-Identifier: Apache-2.0
// Worlds: a team whose every number is known in closed form, against plain C that shares no code
// with it; what is refused.
#include "harness/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/whole_file.h"
#include "gpurt/es.h"
#include "gpurt/rollout.h"
#include "kits/worlds_kit.h"

// Walkers on a line: 0 stays, 1 goes left, 2 right. Who reaches the last cell is out and gets
// `gain`; a step costs 1/8, and a step off the line, which is no step, 1.
static const char relay[] =
    "#define ENV relay\n"
    "#define ENV_AGENTS walkers\n"
    "#define ENV_OBS (2 + cells)\n"
    "#define ENV_GLOBAL (walkers + 1)\n"
    "#define ENV_CHOICES 3\n"
    "#define ENV_WORDS (2 * walkers + 2)\n"
    "#define ENV_SETTINGS(F) F(uint, cells, 6, 2, 100, \"cells of the line\") \\\n"
    "    F(uint, walkers, cells / 2, 1, 8, \"agents\") F(float, gain, 0.5, 0, 4, \"for the goal\") "
    "\\\n"
    "    F(uint, fault, 0, 0, 1000, \"step whose reward is none, and what is seen too\")\n"
    "#define ENV_RULES(F) F(cells > walkers, \"there are fewer cells than walkers\")\n"
    "#define ENV_TERMS(F) F(arrived) F(bumps)\n"
    "#define ENV_LENGTH 7\n"
    "#define ENV_PHASES 3\n"
    "#include \"env/world.k\"\n"
    "#define PLACE(a) (2u * (a))\n"
    "#define GO(a) (2u * (a) + 1u)\n"
    "#define TIME (2u * w.walkers)\n"
    "#define BUMPS (2u * w.walkers + 1u)\n"
    "FN void world_reset(env_world w, uint env, uint episode, uint phase, uint seed) {\n"
    "    for (uint a = 0u; a < w.agents; a += 1u) {\n"
    "        KEEP(w, PLACE(a), (env + 3u * episode + a + 5u * phase + seed) % (w.cells - 1u));\n"
    "        KEEP(w, GO(a), 0u);\n"
    "    }\n"
    "    KEEP(w, TIME, 0u);\n"
    "    KEEP(w, BUMPS, 0u);\n"
    "}\n"
    "FN void world_choose(env_world w, uint agent, uint choice) { KEEP(w, GO(agent), choice); }\n"
    "FN bool world_out(env_world w, uint agent) { return LOOK(w, PLACE(agent)) == w.cells - 1u; }\n"
    "FN void world_step(env_world w) {\n"
    "    for (uint a = 0u; a < w.agents; a += 1u) {\n"
    "        uint x = LOOK(w, PLACE(a));\n"
    "        uint go = LOOK(w, GO(a));\n"
    "        if (world_out(w, a)) {\n"
    "            go = 3u;\n"
    "        } else if (go == 1u && x == 0u) {\n"
    "            KEEP(w, BUMPS, LOOK(w, BUMPS) + 1u);\n"
    "            go = 4u;\n"
    "        } else {\n"
    "            KEEP(w, PLACE(a), go == 1u ? x - 1u : (go == 2u ? x + 1u : x));\n"
    "        }\n"
    "        KEEP(w, GO(a), go);\n"
    "    }\n"
    "    KEEP(w, TIME, LOOK(w, TIME) + 1u);\n"
    "}\n"
    "FN float relay_fault(env_world w) {\n"
    "    return w.fault != 0u && LOOK(w, TIME) == w.fault ? AS_F32(0x7fc00000u) : 0.0f;\n"
    "}\n"
    "FN float world_reward(env_world w, uint agent) {\n"
    "    float own = world_out(w, agent) ? w.gain : (LOOK(w, GO(agent)) == 4u ? -1.0f : -0.125f);\n"
    "    return own + relay_fault(w);\n"
    "}\n"
    "FN bool world_done(env_world w) {\n"
    "    bool all = true;\n"
    "    for (uint a = 0u; a < w.agents; a += 1u) { all = all && world_out(w, a); }\n"
    "    return all;\n"
    "}\n"
    "FN float world_observe(env_world w, uint agent, uint i) {\n"
    "    uint x = LOOK(w, PLACE(agent));\n"
    "    if (i == 0u) { return F32(x) + relay_fault(w); }\n"
    "    return i == 1u ? F32(LOOK(w, TIME)) : (i - 2u == x ? 1.0f : 0.0f);\n"
    "}\n"
    "FN float world_global(env_world w, uint i) {\n"
    "    return i < w.agents ? F32(LOOK(w, PLACE(i))) : F32(LOOK(w, BUMPS));\n"
    "}\n"
    "FN uint world_mask(env_world w, uint agent) { return LOOK(w, PLACE(agent)) == 0u ? 5u : 7u; "
    "}\n"
    "FN float world_term(env_world w, uint i) {\n"
    "    uint arrived = 0u;\n"
    "    for (uint a = 0u; a < w.agents; a += 1u) { arrived += world_out(w, a) ? 1u : 0u; }\n"
    "    return i == 0u ? F32(arrived) : F32(LOOK(w, BUMPS));\n"
    "}\n";

// ---- the same, from its description ----

#define MAX_WALKERS 8

struct line {
    uint32_t place[MAX_WALKERS], time, bumps, episode;
    bool ended;
    double sum;
};

struct rules {
    uint32_t cells, walkers, fault, phase, seed, length;
    double gain;
};

struct sums {
    double episodes, rewards, steps, arrived, bumps;
};

static void line_begin(struct line *l, const struct rules *r, uint32_t copy) {
    for (uint32_t a = 0; a < r->walkers; a++) {
        l->place[a] = (copy + 3 * l->episode + a + 5 * r->phase + r->seed) % (r->cells - 1);
    }
    l->time = 0;
    l->bumps = 0;
    l->sum = 0;
    l->ended = false;
}

// One step; rewards and ends of its rows are compared.
static void line_step(struct line *l, const struct rules *r, uint32_t copy, const uint32_t *actions,
                      double *rewards, uint32_t *ends, struct sums *sums) {
    uint32_t goal = r->cells - 1, arrived = 0;
    bool was_out[MAX_WALKERS], bumped[MAX_WALKERS] = {false};
    if (l->ended) {
        l->episode++;
        line_begin(l, r, copy);
        for (uint32_t a = 0; a < r->walkers; a++) {
            rewards[a] = 0;
            ends[a] = GRT_ROW_IDLE;
        }
        return;
    }
    l->time++;
    bool broken = r->fault > 0 && l->time == r->fault;
    for (uint32_t a = 0; a < r->walkers; a++) {
        was_out[a] = l->place[a] == goal;
        if (was_out[a]) {
            arrived++;
            continue;
        }
        bumped[a] = actions[a] == 1 && l->place[a] == 0;
        l->bumps += bumped[a];
        if (!bumped[a] && actions[a] == 1) {
            l->place[a]--;
        } else if (actions[a] == 2) {
            l->place[a]++;
        }
        arrived += l->place[a] == goal;
    }
    bool done = arrived == r->walkers || broken, cut = !done && l->time == r->length;
    for (uint32_t a = 0; a < r->walkers; a++) {
        bool out = l->place[a] == goal;
        rewards[a] = was_out[a] || broken ? 0 : out ? r->gain : bumped[a] ? -1 : -0.125;
        ends[a] = was_out[a]    ? GRT_ROW_IDLE
                  : out || done ? GRT_ROW_LAST
                  : cut         ? GRT_ROW_LAST | GRT_ROW_CUT
                                : 0;
        l->sum += rewards[a] / r->walkers;
    }
    l->ended = done || cut;
    if (l->ended) {
        sums->episodes++;
        sums->rewards += l->sum;
        sums->steps += l->time;
        sums->arrived += arrived;
        sums->bumps += l->bumps;
    }
}

static void check_seen(const struct worlds_case *c, const struct rules *r,
                       const struct line *lines) {
    uint32_t wide = r->cells + 2;
    for (uint32_t row = 0; row < c->rows; row++) {
        const struct line *l = &lines[row / r->walkers];
        uint32_t x = l->place[row % r->walkers];
        bool broken = r->fault > 0 && l->time == r->fault;
        for (uint32_t i = 0; i < wide; i++) {
            float want = i == 0 ? (broken ? 0.0f : (float)x) : i == 1 ? (float)l->time : i - 2 == x;
            assert_true(c->obs[(size_t)row * wide + i] == want);
        }
        assert_int_equal(c->mask[row], x == 0 ? 5 : 7);
    }
    for (uint32_t copy = 0; copy < c->copies; copy++) {
        for (uint32_t i = 0; i <= r->walkers; i++) {
            float want = (float)(i < r->walkers ? lines[copy].place[i] : lines[copy].bumps);
            assert_true(c->global[(size_t)copy * (r->walkers + 1) + i] == want);
        }
    }
}

// Checks and clears the totals of all copies.
static void check_totals(struct worlds_case *c, struct sums *sums) {
    worlds_totals(c);
    assert_true(c->sums[0] == (float)sums->episodes && c->sums[2] == (float)sums->steps);
    assert_true(fabs((double)c->sums[1] - sums->rewards) <= 1e-4 * (1 + fabs(sums->rewards)));
    assert_true(c->sums[3] == (float)sums->arrived && c->sums[4] == (float)sums->bumps);
    *sums = (struct sums){0};
}

static void walk(const struct grt_env_info *env, const struct grt_worlds_desc *given,
                 const struct rules *r, uint32_t steps) {
    struct worlds_case c;
    struct sums sums = {0};
    double rewards[MAX_WALKERS], ended = 0;
    uint32_t ends[MAX_WALKERS];
    uint64_t random = 77;
    struct grt_worlds_desc desc = *given;
    desc.env = env;
    worlds_begin(&c, test.dev, &desc, r->seed);
    assert_true(c.sizes.agents == r->walkers && c.sizes.obs == r->cells + 2 &&
                c.sizes.global == r->walkers + 1 && c.sizes.act == 0 && c.sizes.choices == 3 &&
                c.sizes.words == 2 * r->walkers + 2 && c.sizes.terms == 2);
    assert_string_equal(grt_worlds_term(c.worlds, 1), "bumps");
    assert_null(grt_worlds_term(c.worlds, 2));
    struct line *lines = test_alloc(c.copies * sizeof *lines);
    memset(lines, 0, c.copies * sizeof *lines);
    for (uint32_t copy = 0; copy < c.copies; copy++) {
        line_begin(&lines[copy], r, copy);
    }
    check_seen(&c, r, lines);
    for (uint32_t t = 0; t < steps; t++) {
        for (uint32_t row = 0; row < c.rows; row++) {
            // More to the right; past the last action counts as the first.
            uint32_t drawn = test_next(&random) >> 8;
            c.actions[row] = drawn % 64 == 0 ? 3 + drawn : drawn % 4 == 3 ? 2 : drawn % 4;
        }
        worlds_step(&c);
        for (uint32_t copy = 0; copy < c.copies; copy++) {
            line_step(&lines[copy], r, copy, &c.actions[copy * r->walkers], rewards, ends, &sums);
            for (uint32_t a = 0; a < r->walkers; a++) {
                uint32_t row = copy * r->walkers + a;
                assert_int_equal(c.ends[row], ends[a]);
                assert_true(c.rewards[row] == (float)rewards[a]);
            }
        }
        check_seen(&c, r, lines);
        ended += sums.episodes;
        if (t % 10 == 9) {
            check_totals(&c, &sums);
        }
    }
    check_totals(&c, &sums);
    assert_true(ended > 0);
    free(lines);
    worlds_end(&c);
}

static void team_follows_its_rules(void **state) {
    (void)state;
    static const uint32_t copies[] = {1, 3, 65, 1000};
    const struct grt_env_info *env = worlds_env("relay", relay);
    assert_non_null(env);
    assert_true(env->world && env->state == 0);
    for (size_t i = 0; i < (test.small ? 2 : sizeof copies / sizeof copies[0]); i++) {
        struct rules r = {
            .cells = 6, .walkers = 3, .phase = 1, .seed = 4, .length = 7, .gain = 0.5};
        walk(env, grt_worlds_desc(.copies = copies[i]), &r, copies[i] > 100 ? 25 : 60);
    }
    const struct grt_env_value values[] = {
        {"walkers", 2}, {"gain", 1.75}, {"cells", 9}, {"walkers", 5}, {"fault", 6}};
    struct rules r = {
        .cells = 9, .walkers = 5, .fault = 6, .phase = 3, .seed = 9, .length = 30, .gain = 1.75};
    struct grt_worlds_desc desc = {
        .copies = 17, .settings = values, .setting_count = 5, .phase = 3, .length = 30};
    walk(env, &desc, &r, 60);
    desc.setting_count = 4;
    r.fault = 0;
    walk(env, &desc, &r, 60);
    grt_env_close(&env);
}

// Another map size compiles nothing; the same settings give the same bits at once and again.
static void settings_have_values(void **state) {
    (void)state;
    const struct grt_env_info *env = worlds_env("relay", relay);
    const struct grt_env_value values[] = {{"cells", 11}, {"gain", 0.25}};
    struct grt_worlds *worlds = grt_worlds_create(
        test.dev, grt_worlds_desc(.env = env, .copies = 2, .settings = values, .setting_count = 2));
    assert_non_null(worlds);
    static const struct grt_env_value want[] = {
        {"cells", 11}, {"walkers", 5}, {"gain", 0.25}, {"fault", 0}};
    double value = -1;
    for (uint32_t i = 0; i < 4; i++) {
        assert_string_equal(grt_worlds_setting(worlds, i, &value), want[i].name);
        assert_true(value == want[i].value);
    }
    assert_null(grt_worlds_setting(worlds, 4, &value));
    grt_worlds_destroy(&worlds);
    grt_env_close(&env);
}

static struct grt_worlds *create(const struct grt_env_info *env, const char *name, double value) {
    const struct grt_env_value values[] = {{name, value}};
    return grt_worlds_create(
        test.dev, grt_worlds_desc(.env = env, .copies = 2, .settings = values, .setting_count = 1));
}

// A text with one thing replaced; to be freed.
static char *changed(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    assert_non_null(at);
    char *all = test_alloc(strlen(text) + strlen(to) + 1);
    sprintf(all, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return all;
}

static void refuses(void **state) {
    (void)state;
    const struct grt_env_info *env = worlds_env("relay", relay);
    const struct grt_env_info *cartpole = grt_env_find("cartpole");
    TEST_REFUSED(create(env, "cell", 5), GRT_CONFIG, "did you mean 'cells'?");
    TEST_REFUSED(create(env, "zzzzzz", 5), GRT_CONFIG, "no setting 'zzzzzz'");
    TEST_REFUSED(create(cartpole, "cells", 5), GRT_CONFIG, "'cartpole' has no settings");
    TEST_REFUSED(create(env, "cells", 1), GRT_CONFIG,
                 "cells is 1; it must be a whole number from 2 to 100");
    TEST_REFUSED(create(env, "cells", 101), GRT_CONFIG, "cells of the line");
    TEST_REFUSED(create(env, "cells", 6.5), GRT_CONFIG, "6.5");
    TEST_REFUSED(create(env, "gain", NAN), GRT_CONFIG, "gain");
    TEST_REFUSED(create(env, "walkers", 8), GRT_CONFIG, "there are fewer cells than walkers");
    TEST_REFUSED(grt_worlds_create(test.dev, grt_worlds_desc(.env = env)), GRT_CONFIG, "0 copies");
    TEST_REFUSED(grt_worlds_create(test.dev, grt_worlds_desc(.copies = 1)), GRT_INVALID,
                 "environment");
    TEST_REFUSED(grt_worlds_create(test.dev, grt_worlds_desc(.env = env, .copies = 1, .phase = 4)),
                 GRT_CONFIG, "phase 4");
    TEST_REFUSED(grt_worlds_create(test.dev, grt_worlds_desc(.env = env, .copies = 0xffffffffu)),
                 GRT_CONFIG, "use at most");
    TEST_REFUSED(grt_es_create(test.dev, &(struct grt_es_desc){.env = env}), GRT_INVALID,
                 "'relay' keeps its state in device memory, and training by evolution strategies");
    struct grt_graph *graph = grt_graph_create(test.dev, "rollout");
    grt_op_rollout(graph,
                   &(struct grt_rollout_desc){.env = env, .envs = 1, .sides = 1, .steps = 1});
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "not held in registers");
    grt_graph_destroy(&graph);
    grt_env_close(&env);

    // Mistakes of the file: those in its lists are found when it is opened, or when its sizes are
    // worked out.
    static const struct {
        const char *from, *to, *part;
    } opened[] = {
        {"FN uint world_mask(", "FN uint world_masks(", "world_mask()"},
        {"FN float world_term(", "FN float world_terms(", "world_term()"},
        {"FN float world_global(", "FN float world_globe(", "world_global()"},
        {"#define ENV_WORDS (2 * walkers + 2)\n", "", "ENV_WORDS"},
        {"F(uint, fault, 0, 0, 1000, ", "F(double, fault, 0, 0, 1000, ", "'double'"},
        {"F(uint, fault, 0, 0, 1000, ", "F(uint, fault, 0, 0, ", "ENV_SETTINGS"},
    };
    for (size_t i = 0; i < sizeof opened / sizeof opened[0]; i++) {
        char *text = changed(relay, opened[i].from, opened[i].to);
        TEST_REFUSED(worlds_env("relay", text), GRT_BAD_DATA, opened[i].part);
        free(text);
    }
    static const struct {
        const char *from, *to, *part;
    } sized[] = {
        {"ENV_OBS (2 + cells)", "ENV_OBS (cells - 6)", "ENV_OBS"},
        {"ENV_AGENTS walkers", "ENV_AGENTS (walkers - 3)", "ENV_AGENTS"},
        {"ENV_WORDS (2 * walkers + 2)", "ENV_WORDS (2 * runners)", "unknown name 'runners'"},
        {"ENV_CHOICES 3", "ENV_CHOICES (30 + walkers)", "ENV_CHOICES"},
        {"F(uint, cells, 6, 2, 100,", "F(uint, cells, 6, 7, 100,", "cells is 6"},
    };
    for (size_t i = 0; i < sizeof sized / sizeof sized[0]; i++) {
        char *text = changed(relay, sized[i].from, sized[i].to);
        env = worlds_env("relay", text);
        assert_non_null(env);
        TEST_REFUSED(grt_worlds_create(test.dev, grt_worlds_desc(.env = env, .copies = 1)),
                     GRT_BAD_DATA, sized[i].part);
        grt_env_close(&env);
        free(text);
    }
}

// A mistake in a function has its file and line, on every backend.
static void mistakes_have_lines(void **state) {
    (void)state;
    char *text =
        changed(relay, "uint x = LOOK(w, PLACE(agent));", "uint x = LOOK(w, PLACE(agnt));");
    uint32_t line = 1;
    for (const char *at = text; at < strstr(text, "agnt"); at++) {
        line += *at == '\n';
    }
    char part[64];
    snprintf(part, sizeof part, "relay.k:%u:", line);
    const struct grt_env_info *env = worlds_env("relay", text);
    assert_non_null(env);
    struct grt_worlds *worlds =
        grt_worlds_create(test.dev, grt_worlds_desc(.env = env, .copies = 3));
    struct grt_plan *plan = grt_plan_create(test.dev);
    struct test_tensor obs = test_tensor(test.dev, GRT_F32, 9, 8);
    struct test_tensor mask = test_tensor(test.dev, GRT_U32, 9, 0);
    grt_worlds_declare(worlds, plan);
    assert_true(grt_plan_alloc(plan));
    struct grt_graph *graph = grt_graph_create(test.dev, "mistake");
    grt_op_worlds_observe(
        graph, worlds,
        &(struct grt_observe_desc){.obs = obs.tensor.range, .mask = mask.tensor.range});
    TEST_REFUSED(grt_graph_bake(graph), GRT_BAD_DATA, part);
    grt_graph_destroy(&graph);
    test_tensor_end(&obs);
    test_tensor_end(&mask);
    grt_plan_destroy(&plan);
    grt_worlds_destroy(&worlds);
    grt_env_close(&env);
    free(text);
}

static void small_buffers_are_refused(void **state) {
    (void)state;
    struct worlds_case c;
    worlds_begin(&c, test.dev, grt_worlds_desc(.env = grt_env_find("pendulum"), .copies = 9), 1);
    struct grt_range small = c.rewards_at.tensor.range;
    small.size = 32;
    const struct grt_world_step_desc desc = {.control = c.control.tensor.range,
                                             .actions = c.actions_at.tensor.range,
                                             .rewards = small,
                                             .ends = c.ends_at.tensor.range};
    struct grt_graph *graph = grt_graph_create(test.dev, "small");
    grt_op_worlds_step(graph, c.worlds, &desc);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "rewards has 32 bytes and needs 36");
    grt_graph_destroy(&graph);
    graph = grt_graph_create(test.dev, "none");
    grt_op_worlds_step(graph, c.worlds, NULL);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "no desc");
    grt_graph_destroy(&graph);
    graph = grt_graph_create(test.dev, "nobody");
    grt_op_worlds_reset(graph, NULL, desc.control);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "no worlds");
    grt_graph_destroy(&graph);
    worlds_end(&c);
}

// Rows that do not hold what is seen: each reason by itself, and what the sentence says of it.
static void rows_of_observations(void **state) {
    (void)state;
    struct worlds_case c;
    worlds_begin(&c, test.dev, grt_worlds_desc(.env = grt_env_find("pendulum"), .copies = 2), 1);
    static const struct {
        enum grt_dtype dtype;
        uint32_t pitch;
        bool good;
    } rows[] = {{GRT_F32, 0, true},  {GRT_F32, 3, true},  {GRT_F32, 2, false}, {GRT_U32, 3, false},
                {GRT_F16, 4, true},  {GRT_F16, 3, false}, {GRT_F16, 5, false}, {GRT_F16, 2, false},
                {GRT_BF16, 0, true}, {GRT_BF16, 5, false}};
    struct grt_buf *buf = test_buf(test.dev, 1024, GRT_BUF_DEVICE);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char want[128];
        snprintf(want, sizeof want, "observe: rows of %u %s for 3 numbers, 0 for 0 of the whole;",
                 rows[i].pitch, grt_dtype_text(rows[i].dtype));
        struct grt_graph *graph = grt_graph_create(test.dev, "rows");
        grt_op_worlds_observe(graph, c.worlds,
                              &(struct grt_observe_desc){.obs = {buf, 0, 1024},
                                                         .dtype = rows[i].dtype,
                                                         .pitch = rows[i].pitch});
        if (rows[i].good) {
            assert_true(grt_graph_bake(graph));
        } else {
            TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, want);
        }
        grt_graph_destroy(&graph);
    }
    grt_buf_destroy(&buf);
    worlds_end(&c);
}

// The example of the README: it opens, walks and arrives.
static void readme_example(void **state) {
    (void)state;
    uint64_t size = 0;
    if (access(GPURT_SOURCE_DIR "/shaders/env/README.md", R_OK) != 0) {
        skip();  // the tests run elsewhere, without the tree
    }
    char *readme = grt_whole_file_read(GPURT_SOURCE_DIR "/shaders/env/README.md", 1 << 20, &size);
    assert_non_null(readme);
    char *text = strstr(readme, "```team\n"), *end = text ? strstr(text + 8, "```") : NULL;
    assert_non_null(end);
    *end = '\0';
    const struct grt_env_info *env = worlds_env("team", text + 8);
    assert_non_null(env);
    struct worlds_case c;
    const struct grt_env_value values[] = {{"cells", 5}};
    worlds_begin(&c, test.dev,
                 grt_worlds_desc(.env = env, .copies = 7, .settings = values, .setting_count = 1),
                 6);
    // Right to the end: at most four steps.
    float sum = 0;
    for (uint32_t row = 0; row < c.rows; row++) {
        c.actions[row] = 1;
        assert_true(c.obs[2 * row] + c.obs[2 * row + 1] == 4 && c.obs[2 * row] < 4);
        assert_int_equal(c.mask[row], c.obs[2 * row] == 0 ? 2 : 3);
        sum += 1.0f - 0.1f * (c.obs[2 * row + 1] - 1);
    }
    for (uint32_t t = 0; t < 4; t++) {
        worlds_step(&c);
        worlds_totals(&c);
        sum -= 3 * c.sums[1];
        assert_true(c.sums[3] == 3 * c.sums[0]);
    }
    assert_true(fabsf(sum) < 1e-4f);
    worlds_end(&c);
    grt_env_close(&env);
    free(readme);
}

// Random actions: only allowed ones, each as often; and new ones each time.
static void random_actions(void **state) {
    (void)state;
    const struct grt_env_info *env = worlds_env("relay", relay);
    struct worlds_case c;
    uint32_t counts[2][3] = {{0}};
    worlds_begin(&c, test.dev, grt_worlds_desc(.env = env, .copies = test.small ? 100 : 2000), 3);
    for (uint32_t t = 0; t < 10; t++) {
        worlds_draw(&c);
        for (uint32_t row = 0; row < c.rows; row++) {
            assert_true(c.actions[row] < 3 && ((c.mask[row] >> c.actions[row]) & 1) != 0);
            counts[c.mask[row] == 7][c.actions[row]]++;
        }
    }
    assert_int_equal(counts[0][1], 0);
    for (uint32_t k = 0; k < 2; k++) {
        // Five deviations of a binomial count.
        double n = (double)counts[k][0] + counts[k][1] + counts[k][2], share = k ? 1.0 / 3 : 0.5;
        double bound = 5 * sqrt(n * share * (1 - share));
        assert_true(fabs(counts[k][0] - n * share) < bound);
        assert_true(fabs(counts[k][2] - n * share) < bound);
    }
    worlds_end(&c);
    grt_env_close(&env);
    worlds_begin(&c, test.dev, grt_worlds_desc(.env = grt_env_find("standing"), .copies = 50), 3);
    worlds_draw(&c);
    uint32_t first = c.actions[0];
    double sum = 0;
    for (uint32_t i = 0; i < c.rows * c.sizes.act; i++) {
        float a = test_as_f32(c.actions[i]);
        assert_true(a >= -1 && a < 1);
        sum += (double)a;
    }
    assert_true(fabs(sum) < 5 * sqrt(c.rows * c.sizes.act / 3.0));
    worlds_draw(&c);
    assert_true(c.actions[0] != first);
    worlds_end(&c);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(team_follows_its_rules),
    TEST_CASE(settings_have_values),
    TEST_CASE(refuses),
    TEST_CASE(mistakes_have_lines),
    TEST_CASE(small_buffers_are_refused),
    TEST_CASE(rows_of_observations),
    TEST_CASE(random_actions),
    TEST_CASE(readme_example),
};
TEST_SUITE(worlds, true, cases);
