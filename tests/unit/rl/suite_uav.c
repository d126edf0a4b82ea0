// SPDX-License-Identifier: Apache-2.0
// UAVs on a grid against plain C written from their rules (tests/oracle/uav.c): crafted encounters
// one by one, random flights on maps of several sizes, what a start promises, and the same bits on
// every device.
#include "harness/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kits/worlds_kit.h"
#include "oracle/uav.h"

struct flight {
    struct oracle_uav_rules rules;
    uint32_t obstacles, copies, length, steps;
};

static const struct oracle_uav_rules usual = {.map = 32,
                                              .uavs = 10,
                                              .window = 7,
                                              .masked = true,
                                              .progress = 0.1,
                                              .arrival = 1,
                                              .collision = 0.2,
                                              .time = 0.01,
                                              .team = 0.1};

static void begin(struct worlds_case *c, struct grt_dev *dev, const struct flight *f) {
    const struct oracle_uav_rules *r = &f->rules;
    const struct grt_env_value values[] = {
        {"map", r->map},         {"num_uavs", r->uavs},       {"num_obstacles", f->obstacles},
        {"window", r->window},   {"mask", r->masked},         {"progress", r->progress},
        {"arrival", r->arrival}, {"collision", r->collision}, {"time", r->time},
        {"team", r->team},
    };
    worlds_begin(c, dev,
                 grt_worlds_desc(.env = grt_env_find("uav"), .settings = values,
                                 .setting_count = sizeof values / sizeof values[0],
                                 .copies = f->copies, .length = f->length),
                 19);
    assert_int_equal(c->sizes.agents, r->uavs);
    assert_int_equal(c->sizes.obs, 15 + 3 * r->window * r->window);
    assert_int_equal(c->sizes.global, 5 * r->uavs + 64);
    assert_true(c->sizes.choices == 9 && c->sizes.act == 0 && c->sizes.terms == 3);
}

// ---- between a grid and the words of a copy ----

static uint32_t row_words(const struct oracle_uav_rules *r) {
    return ((uint32_t)r->map + 31) / 32;
}

static void read_grid(struct oracle_grid *g, const struct oracle_uav_rules *r,
                      const uint32_t *words, uint32_t copies, uint32_t copy) {
    uint32_t row = row_words(r), map = (uint32_t)r->map;
    *g = (struct oracle_grid){0};
    for (uint32_t y = 0; y < map; y++) {
        for (uint32_t x = 0; x < map; x++) {
            g->obstacle[y][x] = (words[(size_t)(y * row + x / 32) * copies + copy] >> (x % 32)) & 1;
        }
    }
    for (uint32_t a = 0; a < (uint32_t)r->uavs; a++) {
        const uint32_t *own = &words[(size_t)(2 * map * row + 4 * a) * copies + copy];
        g->uav[a] = (struct oracle_uav){.x = (int)(own[0] & 0xffff),
                                        .y = (int)(own[0] >> 16),
                                        .target_x = (int)(own[copies] & 0xffff),
                                        .target_y = (int)(own[copies] >> 16)};
    }
}

static void write_grid(const struct oracle_grid *g, const struct oracle_uav_rules *r,
                       uint32_t *words) {
    uint32_t row = row_words(r), map = (uint32_t)r->map, air = map * row;
    memset(words, 0, ((size_t)2 * air + 4 * (size_t)r->uavs + 3) * 4);
    for (uint32_t y = 0; y < map; y++) {
        for (uint32_t x = 0; x < map; x++) {
            words[y * row + x / 32] |= (uint32_t)g->obstacle[y][x] << (x % 32);
        }
    }
    for (uint32_t a = 0; a < (uint32_t)r->uavs; a++) {
        const struct oracle_uav *u = &g->uav[a];
        uint32_t x = (uint32_t)u->x, y = (uint32_t)u->y;
        words[air + y * row + x / 32] |= 1u << (x % 32);
        words[2 * air + 4 * a] = x + (y << 16);
        words[2 * air + 4 * a + 1] = (uint32_t)u->target_x + ((uint32_t)u->target_y << 16);
    }
}

// ---- comparisons ----

static void near_enough(const char *what, uint32_t row, uint32_t i, float got, double want) {
    if (!(fabs((double)got - want) <= 2e-6 * (1 + fabs(want)))) {
        print_error("%s %u of row %u is %.9g and not %.9g\n", what, i, row, (double)got, want);
        fail();
    }
}

static void check_seen(const struct worlds_case *c, const struct flight *f,
                       const struct oracle_grid *grids) {
    const struct oracle_uav_rules *r = &f->rules;
    double numbers[15 + 3 * 15 * 15], whole[5 * ORACLE_UAVS + 64];
    for (uint32_t row = 0; row < c->rows; row++) {
        const struct oracle_grid *g = &grids[row / (uint32_t)r->uavs];
        int uav = (int)(row % (uint32_t)r->uavs);
        assert_int_equal(c->mask[row], oracle_grid_mask(g, r, uav));
        oracle_grid_observe(g, r, uav, numbers);
        for (uint32_t i = 0; i < c->sizes.obs; i++) {
            near_enough("observation", row, i, c->obs[(size_t)row * c->sizes.obs + i], numbers[i]);
        }
    }
    for (uint32_t copy = 0; copy < c->copies; copy++) {
        oracle_grid_whole(&grids[copy], r, whole);
        for (uint32_t i = 0; i < c->sizes.global; i++) {
            near_enough("whole", copy, i, c->global[(size_t)copy * c->sizes.global + i], whole[i]);
        }
    }
}

// What a start promises.
static void check_start(const struct oracle_grid *g, const struct flight *f) {
    const struct oracle_uav_rules *r = &f->rules;
    static int taken[ORACLE_UAV_SIDE][ORACLE_UAV_SIDE];
    uint32_t obstacles = 0;
    memset(taken, 0, sizeof taken);
    for (int y = 0; y < r->map; y++) {
        for (int x = 0; x < r->map; x++) {
            obstacles += g->obstacle[y][x];
            taken[y][x] = g->obstacle[y][x];
        }
    }
    // None at all where they left too little room, time and again.
    assert_true(obstacles == f->obstacles || obstacles == 0);
    for (int a = 0; a < r->uavs; a++) {
        const struct oracle_uav *u = &g->uav[a];
        assert_true(u->x < r->map && u->y < r->map && u->target_x < r->map && u->target_y < r->map);
        assert_int_equal(taken[u->y][u->x]++, 0);
        assert_int_equal(taken[u->target_y][u->target_x]++, 0);
        assert_true(oracle_grid_reaches(g, r->map, u->x, u->y, u->target_x, u->target_y));
    }
}

// ---- flights ----

// Half the moves lead towards the target, the others anywhere.
static uint32_t some_move(const struct worlds_case *c, uint32_t row, uint64_t *random) {
    static const uint32_t towards[3][3] = {{6, 7, 8}, {5, 0, 1}, {4, 3, 2}};
    const float *obs = &c->obs[(size_t)row * c->sizes.obs];
    uint32_t drawn = test_next(random) >> 4;
    int x = (obs[2] > 0) - (obs[2] < 0), y = (obs[3] > 0) - (obs[3] < 0);
    return drawn & 1 ? towards[y + 1][x + 1] : (drawn >> 8) % 9;
}

struct tally {
    double episodes, sum, steps, arrived, collisions, all;
    uint32_t landed, refused, cut, idle;
};

static void fly(const struct flight *f, struct tally *tally) {
    const struct oracle_uav_rules *r = &f->rules;
    struct worlds_case c;
    uint32_t n = (uint32_t)r->uavs;
    uint64_t random = 5;
    begin(&c, test.dev, f);
    struct oracle_grid *grids = test_alloc(f->copies * sizeof *grids);
    uint32_t *time = calloc(f->copies, sizeof *time);
    double *sum = calloc(f->copies, sizeof *sum);
    bool *ended = calloc(f->copies, sizeof *ended);
    uint32_t *words = worlds_state(&c);
    *tally = (struct tally){0};
    for (uint32_t copy = 0; copy < f->copies; copy++) {
        read_grid(&grids[copy], r, words, f->copies, copy);
        check_start(&grids[copy], f);
    }
    free(words);
    check_seen(&c, f, grids);
    for (uint32_t t = 0; t < f->steps; t++) {
        for (uint32_t row = 0; row < c.rows; row++) {
            c.actions[row] = some_move(&c, row, &random);
        }
        worlds_step(&c);
        words = worlds_state(&c);
        for (uint32_t copy = 0; copy < f->copies; copy++) {
            struct oracle_grid *g = &grids[copy];
            double rewards[ORACLE_UAVS];
            bool flew[ORACLE_UAVS];
            if (ended[copy]) {
                // Another map: the step took no action.
                struct oracle_grid old = *g;
                read_grid(g, r, words, f->copies, copy);
                check_start(g, f);
                bool moved = false;
                for (uint32_t a = 0; a < n; a++) {
                    moved |= old.uav[a].x != g->uav[a].x || old.uav[a].y != g->uav[a].y ||
                             old.uav[a].target_x != g->uav[a].target_x;
                }
                assert_true(moved);
                ended[copy] = false;
                time[copy] = 0;
                sum[copy] = 0;
                for (uint32_t a = 0; a < n; a++) {
                    assert_int_equal(c.ends[copy * n + a], GRT_ROW_IDLE);
                    assert_true(c.rewards[copy * n + a] == 0);
                }
                continue;
            }
            int refused = g->refused;
            oracle_grid_step(g, r, &c.actions[copy * n], rewards, flew);
            tally->refused += (uint32_t)(g->refused - refused);
            uint32_t landed = 0;
            for (uint32_t a = 0; a < n; a++) {
                landed += g->uav[a].landed;
            }
            time[copy]++;
            bool cut = landed < n && time[copy] == f->length;
            for (uint32_t a = 0; a < n; a++) {
                uint32_t want = !flew[a]           ? GRT_ROW_IDLE
                                : g->uav[a].landed ? GRT_ROW_LAST
                                : cut              ? GRT_ROW_LAST | GRT_ROW_CUT
                                                   : 0;
                assert_int_equal(c.ends[copy * n + a], want);
                near_enough("reward", copy * n + a, t, c.rewards[copy * n + a], rewards[a]);
                sum[copy] += rewards[a] / n;
                tally->landed += want == GRT_ROW_LAST;
                tally->idle += want == GRT_ROW_IDLE;
            }
            ended[copy] = landed == n || cut;
            tally->cut += cut;
            if (ended[copy]) {
                tally->episodes++;
                tally->sum += sum[copy];
                tally->steps += time[copy];
                tally->arrived += (double)landed / n;
                tally->collisions += (double)g->refused / g->flown;
                tally->all += landed == n;
            }
        }
        free(words);
        check_seen(&c, f, grids);
    }
    worlds_totals(&c);
    const double want[] = {tally->episodes, tally->sum,        tally->steps,
                           tally->arrived,  tally->collisions, tally->all};
    for (uint32_t i = 0; i < 6; i++) {
        assert_true(fabs((double)c.sums[i] - want[i]) <= 1e-5 * (1 + fabs(want[i])));
    }
    print_message(
        "# map %d, %d UAVs, %u obstacles: %u landed, %u moves refused, %.0f episodes, %u cut\n",
        r->map, r->uavs, f->obstacles, tally->landed, tally->refused, tally->episodes, tally->cut);
    free(grids);
    free(time);
    free(sum);
    free(ended);
    worlds_end(&c);
}

static void random_flights(void **state) {
    (void)state;
    struct flight f = {.rules = usual, .obstacles = 40, .copies = 3, .length = 30, .steps = 70};
    struct tally tally;
    fly(&f, &tally);
    assert_true(tally.landed > 0 && tally.refused > 0 && tally.cut > 0 && tally.idle > 0);
    if (test.small) {
        return;
    }
    f = (struct flight){.rules = usual, .obstacles = 12, .copies = 9, .length = 60, .steps = 150};
    f.rules.map = 12;
    f.rules.uavs = 3;
    f.rules.window = 5;
    f.rules.progress = 0.75;
    f.rules.arrival = 3;
    f.rules.collision = 0.5;
    f.rules.time = 0.125;
    f.rules.team = 0.5;
    fly(&f, &tally);
    assert_true(tally.all > 0 && tally.refused > 0);
    // The smallest, without masks; and just over one word, over two and four words a row.
    f = (struct flight){.rules = usual, .obstacles = 1, .copies = 2, .length = 20, .steps = 60};
    f.rules.map = 4;
    f.rules.uavs = 7;
    f.rules.window = 3;
    f.rules.masked = false;
    fly(&f, &tally);
    f = (struct flight){.rules = usual, .obstacles = 200, .copies = 2, .length = 40, .steps = 45};
    f.rules.map = 33;
    f.rules.uavs = 20;
    f.rules.window = 9;
    fly(&f, &tally);
    f = (struct flight){.rules = usual, .obstacles = 600, .copies = 1, .length = 40, .steps = 20};
    f.rules.map = 65;
    f.rules.uavs = 1;
    f.rules.window = 1;
    fly(&f, &tally);
    f = (struct flight){.rules = usual, .obstacles = 640, .copies = 2, .length = 6, .steps = 10};
    f.rules.map = 128;
    f.rules.uavs = 64;
    f.rules.window = 15;
    fly(&f, &tally);
}

// ---- starts on crowded maps ----

static void every_target_is_reachable(void **state) {
    (void)state;
    static const struct {
        int map, uavs;
        uint32_t obstacles;
    } rows[] = {{16, 5, 120}, {16, 20, 90},   {40, 6, 640}, {6, 9, 18},
                {6, 18, 0},   {128, 8, 8192}, {40, 30, 0}};
    for (size_t i = 0; i < (test.small ? 1 : sizeof rows / sizeof rows[0]); i++) {
        struct flight f = {
            .rules = usual, .obstacles = rows[i].obstacles, .copies = 40, .length = 1};
        struct worlds_case c;
        uint32_t without = 0, both = 0;
        f.rules.map = rows[i].map;
        f.rules.uavs = rows[i].uavs;
        f.rules.window = 3;
        f.copies = rows[i].map > 100 ? 4 : 40;
        begin(&c, test.dev, &f);
        uint32_t *words = worlds_state(&c);
        for (uint32_t copy = 0; copy < f.copies; copy++) {
            struct oracle_grid g;
            read_grid(&g, &f.rules, words, f.copies, copy);
            check_start(&g, &f);
            bool any = false;
            for (int y = 0; y < f.rules.map; y++) {
                for (int x = 0; x < f.rules.map; x++) {
                    any = any || g.obstacle[y][x];
                }
            }
            without += f.obstacles > 0 && !any;
            bool west = false, east = false;
            for (int a = 0; a < f.rules.uavs; a++) {
                west = west || g.uav[a].x < 32;
                east = east || g.uav[a].x >= 32;
            }
            both += west && east;
        }
        print_message("# map %d, %u obstacles: %u of %u starts without\n", f.rules.map, f.obstacles,
                      without, f.copies);
        // What can be reached does not end with a word of bits.
        assert_true(f.rules.map <= 32 || both > 0);
        // Without obstacles all of it can be, from whichever cell: 30 UAVs are on both sides.
        assert_true(f.rules.map <= 32 || f.obstacles > 0 || both == f.copies);
        // All free cells must hang together there, which happens now and then.
        assert_true(f.rules.map != 6 || f.obstacles == 0 || (without > 0 && without < f.copies));
        free(words);
        worlds_end(&c);
    }
}

// ---- encounters ----

struct encounter {
    const char *name;
    int uavs;
    int at[4][5];  // x, y, target x, target y, move
    int obstacle[2];
    // What is wanted: where each is afterwards, and whether its move was refused, or it landed.
    int to[4][2];
    const char *fate;  // a letter each: . went or stayed, x refused, L landed, - had landed
};

enum { STAY, E, NE, N, NW, W, SW, S, SE };

static const struct encounter encounters[] = {
    {"edge", 2, {{0, 2, 3, 3, W}, {4, 4, 2, 2, NE}}, {1, 1}, {{0, 2}, {4, 4}}, "xx"},
    {"obstacle", 1, {{0, 0, 3, 3, NE}}, {1, 1}, {{0, 0}}, "x"},
    {"around it", 1, {{0, 0, 3, 3, N}}, {1, 1}, {{0, 1}}, "."},
    {"swap", 2, {{2, 2, 4, 4, E}, {3, 2, 0, 0, W}}, {1, 1}, {{2, 2}, {3, 2}}, "xx"},
    {"three into one",
     3,
     {{3, 3, 0, 0, S}, {2, 2, 4, 4, E}, {4, 2, 0, 4, W}},
     {1, 1},
     {{3, 2}, {2, 2}, {4, 2}},
     ".xx"},
    {"following", 2, {{2, 2, 4, 4, E}, {1, 2, 4, 0, E}}, {1, 1}, {{3, 2}, {1, 2}}, ".x"},
    {"following, lower behind",
     2,
     {{1, 2, 4, 0, E}, {2, 2, 4, 4, E}},
     {1, 1},
     {{1, 2}, {3, 2}},
     "x."},
    {"one that stays", 2, {{2, 2, 4, 4, STAY}, {1, 2, 4, 0, E}}, {1, 1}, {{2, 2}, {1, 2}}, ".x"},
    {"refused, and wanted by another",
     3,
     {{2, 2, 4, 4, N}, {2, 3, 0, 0, STAY}, {1, 3, 4, 0, E}},
     {1, 1},
     {{2, 2}, {2, 3}, {1, 3}},
     "x.x"},
    {"arrival", 1, {{3, 3, 4, 4, NE}}, {1, 1}, {{4, 4}}, "L"},
    {"arrival at a cell that two want",
     2,
     {{3, 3, 4, 4, NE}, {4, 3, 0, 4, N}},
     {1, 1},
     {{4, 4}, {4, 3}},
     "Lx"},
};

// Every encounter a few times in one launch, among copies; then once more, where who has landed is
// in nobody's way.
static void encounters_end_as_stated(void **state) {
    (void)state;
    static const int ways[9][2] = {{0, 0},  {1, 0},   {1, 1},  {0, 1}, {-1, 1},
                                   {-1, 0}, {-1, -1}, {0, -1}, {1, -1}};
    for (size_t i = 0; i < sizeof encounters / sizeof encounters[0]; i++) {
        const struct encounter *e = &encounters[i];
        struct flight f = {.rules = usual, .copies = 1, .length = 9};
        struct oracle_grid g = {0};
        struct worlds_case c;
        f.rules.map = 5;
        f.rules.window = 3;
        f.rules.uavs = e->uavs;
        begin(&c, test.dev, &f);
        uint32_t *words = worlds_state(&c);
        g.obstacle[e->obstacle[1]][e->obstacle[0]] = true;
        for (int a = 0; a < e->uavs; a++) {
            const int *at = e->at[a];
            g.uav[a] = (struct oracle_uav){at[0], at[1], at[2], at[3], 0, false};
            c.actions[a] = (uint32_t)at[4];
        }
        write_grid(&g, &f.rules, words);
        struct grt_range range = grt_plan_at(c.plan, "worlds", 0)->range;
        assert_true(grt_buf_write(range.buf, range.offset, words, (uint64_t)c.sizes.words * 4));
        free(words);
        worlds_step(&c);
        words = worlds_state(&c);
        struct oracle_grid after;
        read_grid(&after, &f.rules, words, 1, 0);
        double own[4], mean = 0;
        for (int a = 0; a < e->uavs; a++) {
            const int *at = e->at[a];
            int was =
                abs(at[0] - at[2]) > abs(at[1] - at[3]) ? abs(at[0] - at[2]) : abs(at[1] - at[3]);
            int dx = abs(e->to[a][0] - at[2]), dy = abs(e->to[a][1] - at[3]);
            own[a] = 0.1 * (was - (dx > dy ? dx : dy)) - 0.01;
            own[a] += e->fate[a] == 'L' ? 1 : e->fate[a] == 'x' ? -0.2 : 0;
            mean += own[a] / e->uavs;
            if (after.uav[a].x != e->to[a][0] || after.uav[a].y != e->to[a][1]) {
                print_error("%s: UAV %d went to %d, %d\n", e->name, a, after.uav[a].x,
                            after.uav[a].y);
                fail();
            }
            assert_int_equal(c.ends[a], e->fate[a] == 'L' ? GRT_ROW_LAST : 0);
            // Its last choice is seen.
            assert_true(c.obs[(size_t)a * c.sizes.obs + 6 + 27 + (uint32_t)at[4]] == 1);
            // Where somebody stands nobody may go, and where one has landed anybody.
            for (uint32_t m = 1; m < 9 && e->fate[a] != 'L'; m++) {
                int x = e->to[a][0] + ways[m][0], y = e->to[a][1] + ways[m][1];
                bool open = x >= 0 && y >= 0 && x < 5 && y < 5 && !g.obstacle[y][x];
                for (int b = 0; b < e->uavs; b++) {
                    open = open && (e->fate[b] == 'L' || e->to[b][0] != x || e->to[b][1] != y);
                }
                assert_int_equal((c.mask[a] >> m) & 1, open);
            }
        }
        for (int a = 0; a < e->uavs; a++) {
            near_enough(e->name, (uint32_t)a, 0, c.rewards[a], own[a] + 0.1 * mean);
        }
        free(words);
        worlds_end(&c);
    }
}

// ---- the same bits everywhere ----

static void same_bits_as_ref(void **state) {
    (void)state;
    if (test.on_ref) {
        skip();
    }
    struct flight f = {.rules = usual,
                       .obstacles = 14,
                       .copies = test.small ? 4 : 65,
                       .length = test.small ? 8 : 80};
    uint32_t steps = test.small ? 20 : 160;  // 65 copies: 10,400 steps
    struct worlds_case a, b;
    uint64_t random = 11;
    f.rules.map = 16;
    f.rules.uavs = 4;
    f.rules.window = 5;
    begin(&a, test.dev, &f);
    begin(&b, test.ref, &f);
    for (uint32_t t = 0; t < steps; t++) {
        test_same(test.dev, "uav obs", a.obs, b.obs, 4, (size_t)a.rows * a.sizes.obs);
        test_same(test.dev, "uav whole", a.global, b.global, 4, (size_t)a.copies * a.sizes.global);
        test_same(test.dev, "uav mask", a.mask, b.mask, 4, a.rows);
        for (uint32_t row = 0; row < a.rows; row++) {
            a.actions[row] = b.actions[row] = some_move(&b, row, &random);
        }
        worlds_step(&a);
        worlds_step(&b);
        test_same(test.dev, "uav rewards", a.rewards, b.rewards, 4, a.rows);
        test_same(test.dev, "uav ends", a.ends, b.ends, 4, a.rows);
    }
    uint32_t *got = worlds_state(&a), *want = worlds_state(&b);
    test_same(test.dev, "uav state", got, want, 4, (size_t)a.sizes.words * a.copies);
    worlds_totals(&a);
    worlds_totals(&b);
    test_same(test.dev, "uav totals", a.sums, b.sums, 4, 6);
    assert_true(b.sums[0] > (float)f.copies);
    free(got);
    free(want);
    worlds_end(&a);
    worlds_end(&b);
}

static void bad_settings_are_refused(void **state) {
    (void)state;
    static const struct {
        struct grt_env_value values[2];
        const char *part;
    } rows[] = {
        {{{"map", 8}, {"window", 9}}, "the window is larger than the map"},
        {{{"map", 8}, {"window", 6}}, "the window has no middle"},
        {{{"map", 7}, {"num_uavs", 25}}, "too few free cells"},
        {{{"map", 11}, {"num_uavs", 60}}, "too few free cells"},
        {{{"map", 16}, {"num_obstacles", 129}},
         "num_obstacles is 129; it must be a whole number from 0 to 128"},
        {{{"map", 129}, {"window", 7}}, "map is 129"},
        {{{"num_uavs", 0}, {"window", 7}}, "num_uavs is 0"},
        {{{"num_uavs", 65}, {"window", 7}}, "num_uavs is 65"},
        {{{"num_uav", 4}, {"window", 7}}, "did you mean 'num_uavs'?"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        TEST_REFUSED(grt_worlds_create(
                         test.dev, grt_worlds_desc(.env = grt_env_find("uav"), .copies = 1,
                                                   .settings = rows[i].values, .setting_count = 2)),
                     GRT_CONFIG, rows[i].part);
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(encounters_end_as_stated),  TEST_CASE(random_flights),
    TEST_CASE(every_target_is_reachable), TEST_CASE(same_bits_as_ref),
    TEST_CASE(bad_settings_are_refused),
};
TEST_SUITE(uav, true, cases);
