// SPDX-License-Identifier: Apache-2.0
// Pictures and trajectories of `gpurt play` from numbers that are given: where shapes stand, what
// moves and when it is said, ranges of charts, ticks, and what is no number.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "verbs/play.h"
#include "verbs/play_world.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void has(const char *text, const char *part) {
    if (!strstr(text, part)) {
        fail_msg("no '%s' in\n%.6000s", part, text);
    }
}

static void lacks(const char *text, const char *part) {
    if (strstr(text, part)) {
        fail_msg("'%s' in\n%.6000s", part, text);
    }
}

static uint32_t times(const char *text, const char *part) {
    uint32_t count = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part)) {
        count++;
    }
    return count;
}

// ---- trajectories ----

static const char *const two_names[] = {"place", "speed", NULL};

// Of any environment: nobody has drawn it.
static struct grt_env_info any_env(void) {
    return (struct grt_env_info){
        .name = "made up", .obs = 2, .act = 1, .state = 2, .state_names = two_names, .dt = 0.5f};
}

static char *drawn(const struct play_trip *trip, bool json) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    if (json) {
        assert_true(play_json(file, trip));
    } else {
        play_svg(file, trip);
    }
    assert_int_equal(fclose(file), 0);
    return text;
}

static void json_of_a_trip(void **state) {
    (void)state;
    const struct grt_env_info env = any_env();
    const float states[] = {1, 2, 3, NAN}, seen[] = {0.5f, -1, INFINITY, 4};
    const float actions[] = {-1, 0.25f}, rewards[] = {2, -INFINITY};
    const struct play_trip trip = {.env = &env,
                                   .phase = 3,
                                   .frames = 2,
                                   .states = states,
                                   .seen = seen,
                                   .actions = actions,
                                   .rewards = rewards,
                                   .total = 1.5,
                                   .good = 0.25,
                                   .falls = 7};
    char *text = drawn(&trip, true);
    assert_string_equal(text,
                        "{\"schema\":\"gpurt.play/1\",\"env\":\"made up\",\"phase\":3,\"dt\":0.5,"
                        "\"return\":1.5,\"good_rate\":0.25,\"falls\":7,"
                        "\"state\":[\"place\",\"speed\"],\"frames\":[[1.0,2.0],[3.0,null]],"
                        "\"observations\":[[0.5,-1.0],[null,4.0]],\"actions\":[[-1.0],[0.25]],"
                        "\"rewards\":[[2.0],[null]]}\n");
    free(text);
    json_t *rows = play_rows(states, 0, 2);
    assert_int_equal(json_array_size(rows), 0);
    json_decref(rows);
    assert_int_equal(play_member(&env, "speed"), 1);
    assert_int_equal(play_member(&env, "place"), 0);
    assert_int_equal(play_member(&env, "none"), 0);
    assert_int_equal(play_member(&env, NULL), 0);
}

// ---- those that are drawn by hand ----

static void poles_and_pendulums(void **state) {
    (void)state;
    const float pole[] = {0, 0, 0, 0, 1, 9, 1.5707963f, 9};
    struct play_trip trip = {.env = grt_env_find("cartpole"),
                             .phase = 1,
                             .frames = 2,
                             .states = pole,
                             .total = 12.34,
                             .good = 0.5,
                             .falls = 1};
    char *text = drawn(&trip, false);
    has(text, ">cartpole, phase 1: return 12.3, 50% of the steps good, 1 falls</text>");
    has(text, "viewBox=\"0 0 720 412\" width=\"720\" height=\"412\"");
    // The cart 0.5 m wide, the pole 1 m long on top of it, 70 pixels a metre.
    has(text, "<polyline class=\"l0\" stroke-width=\"14.0\" points=\"162.5,172.0 197.5,172.0\">"
              "<animate attributeName=\"points\" dur=\"0.040s\" repeatCount=\"indefinite\" "
              "calcMode=\"discrete\" values=\"162.5,172.0 197.5,172.0;232.5,172.0 267.5,172.0\"/>");
    has(text, "<polyline class=\"l1\" stroke-width=\"4.2\" points=\"180.0,165.0 180.0,95.0\">");
    has(text, "values=\"180.0,165.0 180.0,95.0;250.0,165.0 320.0,165.0\"/>");
    has(text, "x1=\"0\" x2=\"360\" y1=\"179.0\" y2=\"179.0\"/>");
    has(text, ">from the side</text>");
    lacks(text, "from the front");
    assert_int_equal(times(text, "class=\"chart l"), 1);
    has(text, ">angle, rad</text>");
    // The curve with a twelfth of room, and the band of 12 degrees.
    double low = -0.2094, high = (double)1.5707963f, room = 0.08 * (high - low);
    double scale = 56 / (high - low + 2 * room);
    char want[160];
    snprintf(want, sizeof want, "class=\"chart l0\" points=\"32.0,%.1f 360.0,%.1f\"",
             32 + scale * (high + room), 32 + scale * room);
    has(text, want);
    snprintf(want, sizeof want,
             "<rect class=\"band\" x=\"32\" y=\"%.1f\" width=\"656\" height=\"%.1f\"/>",
             32 + scale * (high + room - 0.2094), scale * 0.4188);
    has(text, want);
    has(text, ">-0.21</text>");
    has(text, ">0.21</text>");
    free(text);
    const float rod[] = {0, 0, 3.1415927f, 0};
    trip.env = grt_env_find("pendulum");
    trip.states = rod;
    text = drawn(&trip, false);
    has(text, "stroke-width=\"9.0\" points=\"180.0,130.0 180.0,40.0\">");
    has(text, "values=\"180.0,130.0 180.0,40.0;180.0,130.0 180.0,220.0\"/>");
    has(text, "dur=\"0.100s\"");
    free(text);
    // A file of that name is somebody else's.
    struct grt_env_info own = *grt_env_find("pendulum");
    const float seen[6] = {0}, zeros[2] = {0};
    own.source = (const struct grt_source *)(const void *)&own;
    trip.env = &own;
    trip.seen = seen;
    trip.actions = trip.rewards = zeros;
    text = drawn(&trip, false);
    lacks(text, "from the side");
    has(text, ">state a</text>");
    free(text);
}

// Two views, four charts; a push is a bar with its strength, and bands follow commands.
static void robots(void **state) {
    (void)state;
    const struct grt_env_info *env = grt_env_find("standing");
    float states[2][49] = {{0}};
    for (int f = 0; f < 2; f++) {
        states[f][play_member(env, "z")] = 0.5f;
        states[f][play_member(env, "height")] = f ? 0.55f : 0.45f;
        states[f][play_member(env, "qw")] = 1;
        states[f][play_member(env, "ankle_1")] = 0.9f;
        states[f][play_member(env, "ankle_2")] = -1.2f;
        states[f][play_member(env, "vx")] = 0.5f;
        states[f][play_member(env, "speed")] = 1;
    }
    states[1][play_member(env, "push_x")] = 3;
    states[1][play_member(env, "push_y")] = -4;
    const struct play_trip trip = {
        .env = env, .phase = 2, .frames = 2, .states = states[0], .good = 1};
    char *text = drawn(&trip, false);
    has(text, "width=\"720\" height=\"772\"");
    has(text, ">from the side</text>");
    has(text, ">from the front</text>");
    assert_int_equal(times(text, "<animate attributeName=\"points\""), 10);
    // In the charts of height and speed, over the second half.
    assert_int_equal(times(text, "<rect class=\"push\" x=\"360.0\" y=\"32\" width=\"328.0\" "
                                 "height=\"56\"><title>5.0 N</title></rect>"),
                     2);
    assert_int_equal(times(text, "class=\"push\""), 2);
    assert_int_equal(times(text, "<polygon class=\"band\""), 2);
    assert_int_equal(times(text, "<rect class=\"band\""), 2);
    // Height: 0.42 to 0.58 with room; the band is 3 cm to either side of the command.
    double room = 0.08 * 0.16, scale = 56 / (0.16 + 2 * room);
    char want[200];
    snprintf(want, sizeof want, "points=\"32.0,%.1f 360.0,%.1f 360.0,%.1f 32.0,%.1f \"",
             32 + scale * (0.58 + room - 0.48), 32 + scale * room,
             32 + scale * (0.58 + room - 0.52), 32 + scale * (0.58 + room - 0.42));
    has(text, want);
    snprintf(want, sizeof want, ">%.2f</text>", 0.42 - room);
    has(text, want);
    // Ankles are drawn by their size.
    room = 0.08 * 1.2217;
    scale = 56 / (1.2217 + 2 * room);
    snprintf(want, sizeof want, "class=\"chart l1\" points=\"32.0,%.1f 360.0,%.1f\"",
             32 + scale * (1.2217 + room - 1.2), 32 + scale * (1.2217 + room - 1.2));
    has(text, want);
    free(text);
}

// ---- any other ----

static const char *const many_names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i",
                                         "j", "k", "l", "m", "n", "o", "p", "q", NULL};

// A chart for each number of a state of up to 16, else for each four.
static void charts_of_any(void **state) {
    (void)state;
    static const struct {
        uint32_t state, obs, act, shapes;
        int charts;
        const char *labels[4], *not ;
    } rows[] = {
        {2,
         2,
         1,
         0,
         2 + 1 + 1 + 1,
         {">state a<", ">state b<", ">observation 0, 1<", ">action, -1 to 1: 0<"},
         "state a,"},
        {16,
         4,
         4,
         0,
         16 + 1 + 1 + 1,
         {">state p<", ">observation 0, 1, 2, 3<", ">action, -1 to 1: 0, 1, 2, 3<",
          ">reward of a step<"},
         "observation 4"},
        {17,
         5,
         9,
         0,
         5 + 2 + 3 + 1,
         {">state a, b, c, d<", ">state q<", ">observation 4<", ">action, -1 to 1: 8<"},
         ">state a<"},
    };
    static const float zeros[64] = {0};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct grt_env_info env = any_env();
        env.state = rows[i].state;
        env.obs = rows[i].obs;
        env.act = rows[i].act;
        env.state_names = many_names;
        const struct play_trip trip = {.env = &env,
                                       .frames = 1,
                                       .states = zeros,
                                       .seen = zeros,
                                       .actions = zeros,
                                       .rewards = zeros};
        assert_int_equal(play_any_height(&trip), 96 * rows[i].charts);
        char *text = drawn(&trip, false);
        char want[64];
        snprintf(want, sizeof want, "height=\"%d\" font", 32 + 96 * rows[i].charts);
        has(text, want);
        for (int k = 0; k < 4; k++) {
            has(text, rows[i].labels[k]);
        }
        lacks(text, rows[i].not );
        assert_int_equal(times(text, "<svg x="), (uint32_t)rows[i].charts);
        assert_int_equal(times(text, "class=\"chart l"),
                         rows[i].state + rows[i].obs + rows[i].act + 1);
        free(text);
    }
}

// What is no number is left out; what never changes has half a unit of room and one number beside
// it; where there is none at all, it is 0.
static void ranges_of_charts(void **state) {
    (void)state;
    struct grt_env_info env = any_env();
    env.obs = 4;
    const float states[] = {2, NAN, 2, NAN, 2, NAN, 2, NAN};
    const float seen[] = {0, 1, 2, -3, NAN, 1, 2, -3, 5, 1, 2, -3, 0, INFINITY, 2, -3};
    const float actions[] = {0, 0.5f, 1, -1}, rewards[] = {-1, -2, -3, -4};
    const struct play_trip trip = {.env = &env,
                                   .frames = 4,
                                   .states = states,
                                   .seen = seen,
                                   .actions = actions,
                                   .rewards = rewards};
    char *text = drawn(&trip, false), want[160];
    // 632 pixels for four frames, 52 for the range.
    has(text, "points=\"64.0,50.0 222.0,50.0 380.0,50.0 538.0,50.0 \"");
    has(text, "<text class=\"edge\" x=\"60\" y=\"53.0\">2</text>");
    has(text, "<polyline class=\"chart l0\" points=\"\"/>");
    has(text, "<text class=\"edge\" x=\"60\" y=\"53.0\">0</text>");
    double scale = 52 / (8 * 1.16), top = 5 + 0.64;
    snprintf(want, sizeof want, "l0\" points=\"64.0,%.1f 380.0,%.1f 538.0,%.1f \"",
             24 + scale * top, 24 + scale * (top - 5), 24 + scale * top);
    has(text, want);
    snprintf(want, sizeof want, "l1\" points=\"64.0,%.1f 222.0,%.1f 380.0,%.1f \"",
             24 + scale * (top - 1), 24 + scale * (top - 1), 24 + scale * (top - 1));
    has(text, want);
    has(text, "<polyline class=\"chart l4\"");
    lacks(text, "<polyline class=\"chart l3\"");
    snprintf(want, sizeof want, "y=\"%.1f\">5</text>", 24 + scale * 0.64 + 3);
    has(text, want);
    snprintf(want, sizeof want, "y=\"%.1f\">-3</text>", 24 + scale * 8.64 + 3);
    has(text, want);
    has(text, "from=\"64\" to=\"696\" dur=\"2.000s\"");
    free(text);
}

static void ticks(void **state) {
    (void)state;
    static const struct {
        float dt;
        uint32_t frames, count;
        const char *last, *not ;
    } rows[] = {{1, 1, 6, ">1 s<", ">1.2 s<"}, {1, 2, 11, ">1.8 s<", ">2.2 s<"},
                {1, 3, 4, ">3 s<", ">0.2 s<"}, {1, 8, 9, ">8 s<", ">9 s<"},
                {1, 9, 2, ">5 s<", ">10 s<"},  {1, 40, 9, ">40 s<", ">45 s<"},
                {1, 41, 5, ">40 s<", ">5 s<"}, {0.25f, 10, 3, ">2 s<", ">3 s<"}};
    static const float zeros[128] = {0};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct grt_env_info env = any_env();
        env.dt = rows[i].dt;
        const struct play_trip trip = {.env = &env,
                                       .frames = rows[i].frames,
                                       .states = zeros,
                                       .seen = zeros,
                                       .actions = zeros,
                                       .rewards = zeros};
        char *text = drawn(&trip, false);
        assert_int_equal(times(text, "class=\"tick\""), 5 * rows[i].count);
        has(text, rows[i].last);
        lacks(text, rows[i].not );
        free(text);
    }
    // Those that are drawn by hand have none below a second.
    static const struct {
        uint32_t frames, count;
    } hands[] = {{1, 1}, {20, 2}, {159, 8}, {161, 2}, {799, 8}, {801, 5}};
    float *states = calloc(801, 2 * sizeof *states);
    for (size_t i = 0; i < COUNT(hands); i++) {
        const struct play_trip trip = {
            .env = grt_env_find("pendulum"), .frames = hands[i].frames, .states = states};
        char *text = drawn(&trip, false);
        assert_int_equal(times(text, "class=\"tick\""), hands[i].count);
        free(text);
    }
    free(states);
}

// A line, a circle and a point on one scale; what is too thin is a pixel wide, a point two.
static void shapes_of_any(void **state) {
    (void)state;
    struct grt_env_info env = any_env();
    env.shapes = 3;
    static const float zeros[8] = {0};
    const float shapes[2][3][6] = {
        {{0, -1, 0, 1, 0, 0.001f}, {1, 0, 1, 0, 1, 0.5f}, {2, 0, 0, 0, 0, 0}},
        {{0, -1, 0, 1, 0.5f, 0.001f}, {1, 0.5f, 1, 0.5f, 1, 0.5f}, {2, 0, NAN, 0, NAN, 0}}};
    const struct play_trip trip = {.env = &env,
                                   .frames = 2,
                                   .states = zeros,
                                   .seen = zeros,
                                   .actions = zeros,
                                   .rewards = zeros,
                                   .shapes = shapes[0][0]};
    assert_int_equal(play_any_height(&trip), 260 + 96 * 5);
    char *text = drawn(&trip, false), want[200];
    // From 0 to 1.5 high, with a twelfth of room: 150 pixels for the 1.74.
    double low = -0.0005, high = 1.5, scale = 260 / (1.16 * (high - low));
    double left = 360, middle = 130 + scale * (low + high) / 2;
    has(text, "<line class=\"l0\" stroke-linecap=\"round\" stroke-width=\"1.0\">");
    snprintf(want, sizeof want,
             "<animate attributeName=\"x1\" dur=\"1.000s\" repeatCount=\"indefinite\" "
             "calcMode=\"discrete\" values=\"%.1f;%.1f\"/>",
             left - scale, left - scale);
    has(text, want);
    snprintf(want, sizeof want,
             "\"y2\" dur=\"1.000s\" repeatCount=\"indefinite\" "
             "calcMode=\"discrete\" values=\"%.1f;%.1f\"/>",
             middle, middle - 0.5 * scale);
    has(text, want);
    snprintf(want, sizeof want, "<circle class=\"l1\" fill=\"none\" stroke-width=\"2\" r=\"%.1f\">",
             0.5 * scale);
    has(text, want);
    snprintf(want, sizeof want,
             "\"cx\" dur=\"1.000s\" repeatCount=\"indefinite\" "
             "calcMode=\"discrete\" values=\"%.1f;%.1f\"/>",
             left, left + 0.5 * scale);
    has(text, want);
    has(text, "<circle class=\"l2\" fill=\"none\" stroke-width=\"2\" r=\"2.0\">");
    snprintf(want, sizeof want, "values=\"%.1f;0.0\"/></circle>", middle);
    has(text, want);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_of_a_trip),   cmocka_unit_test(poles_and_pendulums),
        cmocka_unit_test(robots),           cmocka_unit_test(charts_of_any),
        cmocka_unit_test(ranges_of_charts), cmocka_unit_test(ticks),
        cmocka_unit_test(shapes_of_any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
