// SPDX-License-Identifier: Apache-2.0
// Pictures of episodes in shapes, from shapes that are given: how large the picture is, what moves
// and at which times it is said, goals that are reached, agents that are done, tracks, the bar of
// the time and its counter.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "verbs/play_world.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

typedef struct grt_drawn_shape shape;

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

static char *drawn(const shape *shapes, uint32_t count, uint32_t steps, double dt) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    assert_true(play_world_svg(
        file, &(struct play_world){
                  .title = "a title", .steps = steps, .dt = dt, .shapes = count, .drawn = shapes}));
    assert_int_equal(fclose(file), 0);
    return text;
}

static shape box(int role, float x0, float y0, float x1, float y1) {
    return (shape){GRT_DRAWN_BOX, (float)role, -1, 0, x0, y0, x1, y1, 0};
}

static shape circle(int role, float of, bool done, float x, float y, float size) {
    return (shape){GRT_DRAWN_CIRCLE, (float)role, of, done, x, y, x, y, size};
}

// A field of 10, a goal that is reached in step 2 by an agent that goes there in one leap, and
// something that appears in step 2.
#define STEPS 3
static void make_episode(shape frames[STEPS + 1][4]) {
    for (int f = 0; f <= STEPS; f++) {
        bool done = f >= 2;
        frames[f][0] = box(GRT_DRAWN_AREA, 0, 0, 10, 10);
        frames[f][1] = circle(GRT_DRAWN_GOAL, 3, done, 3, 5, 0.5f);
        frames[f][2] = circle(GRT_DRAWN_AGENT, 3, done, done ? 3 : 1, 5, 0.375f);
        frames[f][3] = done ? box(GRT_DRAWN_BLOCK, 8, 7, 7, 9) : (shape){GRT_DRAWN_NONE};
    }
}

static void an_episode(void **state) {
    (void)state;
    shape frames[STEPS + 1][4];
    make_episode(frames);
    char *text = drawn(frames[0], 4, STEPS, 0.5);
    has(text, ">a title</text>");
    // A hundredth around the field; 520 pixels of 560.
    has(text, "width=\"520\" height=\"520.0\" viewBox=\"-.1 -10.1 10.2 10.2\"");
    has(text, "viewBox=\"0 0 560 600\" width=\"560\" height=\"600\"");
    has(text, "stroke-width:.039}");
    has(text, "<rect class=\"area\" x=\"0\" y=\"0\" width=\"10\" height=\"10\"></rect>");
    // A step takes a fifth of a second at most, and the end stands for 1.5.
    has(text, "<circle class=\"goal\" color=\"hsl(52,70%,42%)\" cx=\"3\" cy=\"5\" r=\".5\">"
              "<title>agent 3: reached in step 2</title><animate attributeName=\"fill-opacity\" "
              "dur=\"2.10s\" repeatCount=\"indefinite\" calcMode=\"discrete\" values=\"0;.45\" "
              "keyTimes=\"0;.19048\"/></circle>");
    // It glides from where it was; what it was at before is said too.
    has(text, "<circle class=\"agent\" color=\"hsl(52,70%,42%)\" cx=\"1\" cy=\"5\" r=\".375\">"
              "<title>agent 3</title><animate attributeName=\"cx\" dur=\"2.10s\" "
              "repeatCount=\"indefinite\" values=\"1;1;3;3;3\" "
              "keyTimes=\"0;.09524;.19048;.28571;1\"/><animate attributeName=\"opacity\" "
              "dur=\"2.10s\" repeatCount=\"indefinite\" calcMode=\"discrete\" values=\"1;.3\" "
              "keyTimes=\"0;.19048\"/></circle>");
    // What is not there yet cannot be seen, and stands where it will be.
    has(text, "<rect class=\"block\" x=\"7\" y=\"7\" width=\"1\" height=\"2\"><animate "
              "attributeName=\"opacity\" dur=\"2.10s\" repeatCount=\"indefinite\" "
              "calcMode=\"discrete\" values=\"0;1\" keyTimes=\"0;.19048\"/></rect>");
    has(text, "<polyline class=\"track\" color=\"hsl(52,70%,42%)\" points=\"1,5 1,5 3,5 3,5\" "
              "pathLength=\"2\" stroke-dasharray=\"2\"><animate "
              "attributeName=\"stroke-dashoffset\" dur=\"2.10s\" repeatCount=\"indefinite\" "
              "values=\"2;2;0;0;0\" keyTimes=\"0;.09524;.19048;.28571;1\"/></polyline>");
    assert_int_equal(times(text, "<polyline"), 1);
    // Agents stand above their tracks, tracks above all else.
    assert_true(strstr(text, "class=\"block\"") < strstr(text, "class=\"track\""));
    assert_true(strstr(text, "class=\"track\"") < strstr(text, "class=\"agent\""));
    has(text, "<rect class=\"past\" x=\"20\" y=\"566\" width=\"0\" height=\"6\"><animate "
              "attributeName=\"width\" dur=\"2.10s\" repeatCount=\"indefinite\" "
              "values=\"0;520;520\" keyTimes=\"0;0.28571;1\"/></rect>");
    has(text, "<rect class=\"arrival\" color=\"hsl(52,70%,42%)\" x=\"365.7\" y=\"563\" "
              "width=\"2\" height=\"12\"/>");
    assert_int_equal(times(text, "class=\"arrival\""), 1);
    has(text, ">of 3</text>");
    assert_int_equal(times(text, "class=\"digit\""), 1);
    has(text, "type=\"translate\" dur=\"2.10s\" repeatCount=\"indefinite\" "
              "calcMode=\"discrete\" values=\"0 0;0 -14;0 -28;0 -42\" "
              "keyTimes=\"0;.09524;.19048;.28571\"/>");
    free(text);
    // Shorter steps as they are.
    text = drawn(frames[0], 4, STEPS, 0.1);
    has(text, "dur=\"1.80s\"");
    lacks(text, "dur=\"2.10s\"");
    free(text);
}

// What is done from the start was reached in step 0 and has no mark; what nobody has, no colour and
// no name.
static void what_is_done_before(void **state) {
    (void)state;
    shape frames[2][3];
    for (int f = 0; f < 2; f++) {
        frames[f][0] = circle(GRT_DRAWN_GOAL, 0, true, 1, 1, 1);
        frames[f][1] = circle(GRT_DRAWN_AGENT, -1, false, 4, 1, 1);
        frames[f][2] = (shape){GRT_DRAWN_NONE};
    }
    char *text = drawn(frames[0], 3, 1, 1);
    has(text, "<circle class=\"goal\" color=\"hsl(0,70%,42%)\" cx=\"1\" cy=\"1\" r=\"1\"><title>"
              "agent 0: reached in step 0</title></circle>");
    lacks(text, "class=\"arrival\"");
    has(text, "<circle class=\"agent\" cx=\"4\" cy=\"1\" r=\"1\"></circle>");
    // Who stays has no track, and what never is there nothing at all.
    lacks(text, "<polyline");
    assert_int_equal(times(text, "<circle"), 2);
    free(text);
}

// Of lines every end moves by itself; a role or kind that there is not is an area, or nothing.
static void lines_and_strangers(void **state) {
    (void)state;
    shape frames[2][3];
    for (int f = 0; f < 2; f++) {
        frames[f][0] = (shape){GRT_DRAWN_LINE, GRT_DRAWN_BLOCK, -1, 0, 0, 1, f ? 2 : 3, -1, 0.5f};
        frames[f][1] = (shape){GRT_DRAWN_BOX, 9, -1, 0, 0, 0, 1, 1, 0};
        frames[f][2] = (shape){7, GRT_DRAWN_BLOCK, -1, 0, 50, 50, 60, 60, 9};
    }
    char *text = drawn(frames[0], 3, 1, 1);
    has(text, "<line class=\"block\" x1=\"0\" y1=\"1\" x2=\"3\" y2=\"-1\" stroke-width=\".5\">"
              "<animate attributeName=\"x2\" dur=\"1.70s\" repeatCount=\"indefinite\" "
              "values=\"3;2;2\" keyTimes=\"0;.11765;1\"/></line>");
    has(text, "<rect class=\"area\" x=\"0\" y=\"0\" width=\"1\" height=\"1\"></rect>");
    // Half of its width is around a line: 3.5 across, 2.5 high, and 0.035 beside it.
    has(text, "viewBox=\"-.285 -1.285 3.57 2.57\"");
    free(text);
}

static void sizes_of_pictures(void **state) {
    (void)state;
    static const struct {
        float x0, y0, x1, y1;
        const char *view;
    } rows[] = {
        // Flat ones have some height; nothing at all is a unit around the place.
        {0, 0, 10, 0, "width=\"520\" height=\"86.7\" viewBox=\"-.1 -.85 10.2 1.7\""},
        {2, 3, 2, 3, "width=\"520\" height=\"520.0\" viewBox=\"1.5 -3.5 1 1\""},
        {0, 0, 1000000, 1000000, "viewBox=\"-10000 -1010000 1020000 1020000\""},
        {0, 0, 1, 10, "width=\"520\" height=\"900.0\" viewBox=\"-.1 -10.1 1.2 10.2\""},
        {0, 0, 0.5f, 0.5f, "viewBox=\"-.005 -.505 .51 .51\""},
        {-3, -2, -1, 0, "viewBox=\"-3.02 -.02 2.04 2.04\""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        shape frames[2];
        for (int f = 0; f < 2; f++) {
            frames[f] = box(GRT_DRAWN_AREA, rows[i].x0, rows[i].y0, rows[i].x1, rows[i].y1);
        }
        char *text = drawn(frames, 1, 1, 1);
        has(text, rows[i].view);
        free(text);
    }
    // All that is ever drawn is in the picture, also what is there later.
    shape later[2] = {circle(GRT_DRAWN_AGENT, 0, false, 0, 0, 1),
                      circle(GRT_DRAWN_AGENT, 0, false, 8, 0, 1)};
    char *text = drawn(later, 1, 1, 1);
    has(text, "viewBox=\"-1.1 -1.1 10.2 2.2\"");
    free(text);
    const shape none[2] = {{GRT_DRAWN_NONE}, {GRT_DRAWN_NONE}};
    text = drawn(none, 1, 1, 1);
    has(text, "viewBox=\"-.01 -1.01 1.02 1.02\"");
    free(text);
}

// One digit more with each ten; each counts at its own time.
static void counters(void **state) {
    (void)state;
    static const struct {
        uint32_t steps, digits;
    } rows[] = {{1, 1}, {9, 1}, {10, 2}, {99, 2}, {100, 3}};
    shape *frames = calloc(101, sizeof *frames);
    for (int f = 0; f <= 100; f++) {
        frames[f] = box(GRT_DRAWN_AREA, 0, 0, 1, 1);
    }
    for (size_t i = 0; i < COUNT(rows); i++) {
        char *text = drawn(frames, 1, rows[i].steps, 1), want[64];
        assert_int_equal(times(text, "class=\"digit\""), rows[i].digits);
        snprintf(want, sizeof want, ">of %u</text>", rows[i].steps);
        has(text, want);
        free(text);
    }
    char *text = drawn(frames, 1, 12, 0.2);
    has(text, "values=\"0 0;0 -14\" keyTimes=\"0;.51282\"/>");
    has(text, "0 -126;0 0;0 -14;0 -28\"");
    has(text, "<tspan x=\"0\" y=\"11\">0</tspan><tspan x=\"0\" y=\"25\">1</tspan>");
    has(text, "y=\"137\">9</tspan>");
    free(text);
    free(frames);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_episode),
        cmocka_unit_test(what_is_done_before),
        cmocka_unit_test(lines_and_strangers),
        cmocka_unit_test(sizes_of_pictures),
        cmocka_unit_test(counters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
