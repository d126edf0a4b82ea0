// SPDX-License-Identifier: Apache-2.0
// How environments in memory are drawn: shapes against what is seen of the whole and the words of
// the state, on the way through episodes; and an evaluation that is watched.
#include "harness/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kits/ppo_kit.h"
#include "kits/worlds_kit.h"

static void is_shape(const struct grt_drawn_shape *s, int kind, int role, double x0, double y0,
                     double x1, double y1, double size) {
    assert_true(s->kind == (float)kind && s->role == (float)role);
    const double want[] = {x0, y0, x1, y1, size};
    const float got[] = {s->x0, s->y0, s->x1, s->y1, s->size};
    for (int i = 0; i < 5; i++) {
        assert_true(fabs((double)got[i] - want[i]) < 1e-6);
    }
}

static void is_of(const struct grt_drawn_shape *s, uint32_t agent, bool done) {
    assert_true(s->of == (float)agent && s->done == (done ? 1.0f : 0.0f));
}

// ---- UAVs on a grid ----

struct grid_size {
    uint32_t map, uavs, obstacles;
};

// Places by the observation of the whole: from -1 to 1 over the map.
static double cell(float seen, uint32_t map) {
    return round(((double)seen + 1) / 2 * (map - 1));
}

// How many UAVs have landed.
static uint32_t check_grid(const struct worlds_case *c, const struct grid_size *g, uint32_t copy,
                           const struct grt_drawn_shape *s) {
    uint32_t *words = worlds_state(c);
    uint32_t obstacles = 0, landed = 0, row = (g->map + 31) / 32;
    is_shape(s++, GRT_DRAWN_BOX, GRT_DRAWN_AREA, 0, 0, g->map, g->map, 0);
    for (uint32_t y = 0; y < g->map; y++) {
        for (uint32_t x = 0; x < g->map; x++) {
            if ((words[(size_t)(y * row + x / 32) * c->copies + copy] >> (x % 32)) & 1) {
                is_shape(&s[obstacles++], GRT_DRAWN_BOX, GRT_DRAWN_BLOCK, x, y, x + 1, y + 1, 0);
            }
        }
    }
    free(words);
    // Fewer are drawn where they left too little room.
    for (uint32_t i = obstacles; i < g->obstacles; i++) {
        assert_true(s[i].kind == GRT_DRAWN_NONE);
    }
    s += g->obstacles;
    const float *whole = &c->global[(size_t)copy * c->sizes.global];
    for (uint32_t a = 0; a < g->uavs; a++, whole += 5) {
        bool out = whole[4] != 0;
        double x = cell(whole[0], g->map) + 0.5, y = cell(whole[1], g->map) + 0.5;
        double tx = cell(whole[2], g->map) + 0.5, ty = cell(whole[3], g->map) + 0.5;
        is_shape(&s[a], GRT_DRAWN_CIRCLE, GRT_DRAWN_GOAL, tx, ty, tx, ty, 0.5);
        is_shape(&s[g->uavs + a], GRT_DRAWN_CIRCLE, GRT_DRAWN_AGENT, x, y, x, y, 0.375);
        is_of(&s[a], a, out);
        is_of(&s[g->uavs + a], a, out);
        landed += out;
    }
    return landed;
}

static void grids_look_as_they_are(void **state) {
    (void)state;
    static const struct grid_size sizes[] = {{9, 4, 14}, {33, 3, 200}, {4, 7, 2}, {70, 2, 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const struct grid_size *g = &sizes[i];
        const struct grt_env_value values[] = {
            {"map", g->map}, {"num_uavs", g->uavs}, {"num_obstacles", g->obstacles}, {"window", 3}};
        struct worlds_case c;
        uint32_t landed = 0;
        worlds_begin(&c, test.dev,
                     grt_worlds_desc(.env = grt_env_find("uav"), .settings = values,
                                     .setting_count = 4, .copies = 3, .length = 30),
                     7);
        assert_int_equal(c.sizes.shapes, 1 + g->obstacles + 2 * g->uavs);
        for (uint32_t t = 0; t < (test.small ? 3 : 40); t++) {
            struct grt_drawn_shape *shapes = worlds_shapes(&c);
            for (uint32_t copy = 0; copy < c.copies; copy++) {
                landed += check_grid(&c, g, copy, &shapes[copy * c.sizes.shapes]);
            }
            free(shapes);
            worlds_draw(&c);
            worlds_step(&c);
        }
        assert_true(test.small || g->map > 9 || landed > 0);
        worlds_end(&c);
    }
}

// ---- UAVs in flight ----

static void flights_look_as_they_are(void **state) {
    (void)state;
    const struct grt_env_value values[] = {
        {"num_uavs", 3}, {"num_obstacles", 40}, {"reach", 0.15}, {"size", 0.02}};
    struct worlds_case c;
    uint32_t none = 0;
    worlds_begin(&c, test.dev,
                 grt_worlds_desc(.env = grt_env_find("uav_flight"), .settings = values,
                                 .setting_count = 4, .copies = 4),
                 5);
    for (uint32_t t = 0; t < (test.small ? 3 : 60); t++) {
        struct grt_drawn_shape *shapes = worlds_shapes(&c);
        for (uint32_t copy = 0; copy < c.copies; copy++) {
            const struct grt_drawn_shape *s = &shapes[copy * c.sizes.shapes];
            const float *uav = c.global + (size_t)copy * c.sizes.global;
            const float *o = uav + 7 * 3;
            is_shape(s++, GRT_DRAWN_BOX, GRT_DRAWN_AREA, 0, 0, 1, 1, 0);
            for (uint32_t k = 0; k < 40; k++, o += 3, s++) {
                double x = (double)o[0], y = (double)o[1], r = (double)o[2];
                if (r > 0) {
                    is_shape(s, GRT_DRAWN_CIRCLE, GRT_DRAWN_BLOCK, x, y, x, y, r);
                } else {
                    assert_true(s->kind == GRT_DRAWN_NONE);
                    none++;
                }
            }
            for (uint32_t a = 0; a < 3; a++, uav += 7, s++) {
                double x = (double)uav[0], y = (double)uav[1];
                double tx = (double)uav[4], ty = (double)uav[5];
                is_shape(s, GRT_DRAWN_CIRCLE, GRT_DRAWN_GOAL, tx, ty, tx, ty, 0.15);
                is_shape(s + 3, GRT_DRAWN_CIRCLE, GRT_DRAWN_AGENT, x, y, x, y, 0.02);
                is_of(s, a, uav[6] != 0);
                is_of(s + 3, a, uav[6] != 0);
            }
        }
        free(shapes);
        worlds_draw(&c);
        worlds_step(&c);
    }
    // Forty do not find room: the picture must leave some out.
    assert_true(none > 0);
    worlds_end(&c);
}

// ---- a file of one's own ----

// A lamp that is switched: a line whose end is the state, a number that is none, and a shape that
// is there at times.
static const char *const lamp =
    "#define ENV lamp\n"
    "#define ENV_AGENTS 1\n"
    "#define ENV_OBS 1\n"
    "#define ENV_CHOICES 2\n"
    "#define ENV_WORDS 1\n"
    "#define ENV_SHAPES 3\n"
    "#include \"env/world.k\"\n"
    "FN void world_reset(env_world w, uint env, uint episode, uint phase, uint seed) { KEEP(w, 0u, "
    "env & 1u); }\n"
    "FN void world_choose(env_world w, uint agent, uint choice) { KEEP(w, 0u, choice); }\n"
    "FN void world_step(env_world w) {}\n"
    "FN float world_reward(env_world w, uint agent) { return F32(LOOK(w, 0u)); }\n"
    "FN bool world_out(env_world w, uint agent) { return false; }\n"
    "FN bool world_done(env_world w) { return false; }\n"
    "FN float world_observe(env_world w, uint agent, uint i) { return F32(LOOK(w, 0u)); }\n"
    "FN uint world_mask(env_world w, uint agent) { return 3u; }\n"
    "FN env_shape world_draw(env_world w, uint i) {\n"
    "    float on = F32(LOOK(w, 0u));\n"
    "    if (i == 0u) { return draw_line(SHAPE_BLOCK, -1.0f, 2.5f, on, AS_F32(0x7fc00000u), "
    "0.25f); }\n"
    "    if (i == 1u) { return LOOK(w, 0u) == 1u ? draw_circle(SHAPE_GOAL, 3.0f, 4.0f, 5.0f) : "
    "draw_none(); }\n"
    "    return draw_of(draw_box(SHAPE_AGENT, 1.0f, 2.0f, 3.0f, 4.0f), 6u, on > 0.0f);\n"
    "}\n";

static char *without(const char *text, const char *part) {
    const char *at = strstr(text, part);
    assert_non_null(at);
    char *rest = test_alloc(strlen(text) + 1);
    memcpy(rest, text, (size_t)(at - text));
    strcpy(rest + (at - text), at + strlen(part));
    return rest;
}

static void files_say_how_they_look(void **state) {
    (void)state;
    const struct grt_env_info *env = worlds_env("lamp", lamp);
    struct worlds_case c;
    assert_non_null(env);
    worlds_begin(&c, test.dev, grt_worlds_desc(.env = env, .copies = 2), 1);
    struct grt_drawn_shape *shapes = worlds_shapes(&c);
    for (uint32_t on = 0; on < 2; on++) {
        const struct grt_drawn_shape *s = &shapes[3 * on];
        is_shape(s, GRT_DRAWN_LINE, GRT_DRAWN_BLOCK, -1, 2.5, on, 0, 0.25);
        assert_true(s->of == -1 && s->done == 0);
        if (on) {
            is_shape(s + 1, GRT_DRAWN_CIRCLE, GRT_DRAWN_GOAL, 3, 4, 3, 4, 5);
        } else {
            assert_true(s[1].kind == GRT_DRAWN_NONE);
        }
        is_shape(s + 2, GRT_DRAWN_BOX, GRT_DRAWN_AGENT, 1, 2, 3, 4, 0);
        is_of(s + 2, 6, on);
    }
    free(shapes);
    worlds_end(&c);
    grt_env_close(&env);

    char *text = without(lamp, "FN env_shape world_draw(env_world w, uint i)");
    TEST_REFUSED(worlds_env("lamp", text), GRT_BAD_DATA, "world_draw()");
    free(text);
    // Without shapes it is an environment all the same, that nothing draws.
    text = without(lamp, "#define ENV_SHAPES 3\n");
    env = worlds_env("lamp", text);
    assert_non_null(env);
    worlds_begin(&c, test.dev, grt_worlds_desc(.env = env, .copies = 2), 1);
    assert_int_equal(c.sizes.shapes, 0);
    struct grt_graph *graph = grt_graph_create(test.dev, "draw");
    grt_op_worlds_draw(graph, c.worlds, c.obs_at.tensor.range);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "it has no shapes");
    grt_graph_destroy(&graph);
    worlds_end(&c);
    grt_env_close(&env);
    free(text);
}

// ---- watching ----

struct watched {
    const struct grt_worlds_sizes *sizes;
    uint32_t map, looks, steps;
    bool ended;
    double sum;
    struct grt_drawn_shape *before;  // shapes before the step
};

// What was seen before a step is where the shapes were.
static bool look(void *self, const struct grt_ppo_moment *m) {
    struct watched *w = self;
    uint32_t n = w->sizes->agents, first = w->sizes->shapes - n;
    assert_int_equal(m->step, w->looks++);
    for (uint32_t a = 0; m->step > 0 && a < n; a++) {
        const float *obs = &m->obs[a * w->sizes->obs];
        const struct grt_drawn_shape *s = &w->before[first + a];
        assert_true((double)s->x0 == cell(obs[0], w->map) + 0.5);
        assert_true((double)s->y0 == cell(obs[1], w->map) + 0.5);
        assert_true((m->mask[a] >> m->choices[a]) & 1);
        assert_int_equal((m->ends[a] & GRT_ROW_IDLE) != 0, w->ended || s->done != 0);
        w->sum += (double)m->rewards[a] / n;
    }
    bool last = m->step > 0;
    for (uint32_t a = 0; a < n; a++) {
        last = last && (m->ends[a] & (GRT_ROW_LAST | GRT_ROW_IDLE)) != 0;
    }
    w->steps += m->step > 0 && !w->ended;
    w->ended = w->ended || last;
    memcpy(w->before, m->shapes, w->sizes->shapes * sizeof *w->before);
    return true;
}

static void watched_copies_are_those_of_an_evaluation(void **state) {
    (void)state;
    struct ppo_maker m = ppo_uavs();
    struct ppo_made made = ppo_make(&m);
    struct grt_worlds *worlds = ppo_make_worlds(&m, 5, true);
    const struct grt_worlds_sizes *sizes = grt_worlds_sizes(worlds);
    for (int trial = 0; trial < GRT_PPO_TRIAL_COUNT; trial++) {
        struct grt_ppo_report all, one, sum = {0};
        enum grt_ppo_trial by = (enum grt_ppo_trial)trial;
        assert_true(grt_ppo_evaluate(made.ppo, worlds, by, 11, &all));
        for (uint32_t copy = 0; copy < 5; copy++) {
            struct watched w = {
                .sizes = sizes, .map = 6, .before = test_alloc(sizes->shapes * sizeof *w.before)};
            assert_true(grt_ppo_watch(made.ppo, worlds, by, 11, copy, look, &w, &one));
            assert_true(w.ended && one.episodes == 1 && one.length == w.steps);
            assert_int_equal(w.looks, m.length + 2);
            assert_true(fabs(one.mean_return - w.sum) < 1e-5);
            assert_true(sizes->agents > 1 && one.rows == one.length * sizes->agents);
            sum.mean_return += one.mean_return / 5;
            sum.length += one.length / 5;
            sum.terms[0] += one.terms[0] / 5;
            free(w.before);
        }
        assert_true(fabs(sum.mean_return - all.mean_return) < 1e-5);
        assert_true(fabs(sum.length - all.length) < 1e-5);
        assert_true(fabs(sum.terms[0] - all.terms[0]) < 1e-5);
    }
    struct grt_ppo_report report = {0};
    TEST_REFUSED(
        grt_ppo_watch(made.ppo, worlds, GRT_PPO_TRY_POLICY, 1, 5, look, &(int){0}, &report),
        GRT_INVALID, "copy");
    ppo_end(&made);
    grt_worlds_destroy(&worlds);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(grids_look_as_they_are),
    TEST_CASE(flights_look_as_they_are),
    TEST_CASE(files_say_how_they_look),
    TEST_CASE(watched_copies_are_those_of_an_evaluation),
};
TEST_SUITE(drawing, true, cases);
