// SPDX-License-Identifier: Apache-2.0
// The picture of a trajectory: each line of the drawing is one polyline whose points change from
// frame to frame, by SVG's own animation, so that any browser plays it without a script.
//
//     +--------+--------+
//     |  side  |  front |      metres, the ground at the bottom
//     +--------+--------+
//     |   charts        |      numbers of the state over time, with a mark that moves
//     +-----------------+
//
// How an environment looks is one row of `looks`: its charts, and a function from a state to lines.
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "play.h"

#define MAX_LINES 8
#define MAX_POINTS 4
#define PANEL_W 360
#define PANEL_H 260
#define CHART_H 120
#define MARGIN 32

struct line {
    uint32_t count;
    double at[MAX_POINTS][3];  // metres: x, y, z up
    double width;              // metres
};

#define MAX_CHARTS 4
#define MAX_CURVES 4

// Numbers of the state over time. What is good lies between low and high, or within `within` of the
// member `target`.
struct chart {
    const char *label;                // what it is, with its unit
    const char *members[MAX_CURVES];  // of the state; NULL at the end
    const char *target;
    double within;
    double low, high;       // equal: none
    bool size;              // without the sign
    const char *pushes[2];  // members that are not 0 while the environment is disturbed
};

struct look {
    const char *env;
    struct chart charts[MAX_CHARTS];  // without a label: no more
    double scale;                     // pixels a metre
    double ground;                    // where the ground lies, metres below the middle
    uint32_t views;                   // 1: side, 2: front too
    uint32_t (*lines)(const struct grt_env_info *env, const float *state, struct line *lines);
};

uint32_t play_member(const struct grt_env_info *env, const char *name) {
    for (uint32_t i = 0; i < env->state; i++) {
        if (name && strcmp(env->state_names[i], name) == 0) {
            return i;
        }
    }
    return 0;
}

// ---- the robot: MuJoCo's Ant ----

// v turned by the quaternion q = (w, x, y, z).
static void turn(const double q[4], const double v[3], double r[3]) {
    double t[3] = {2 * (q[2] * v[2] - q[3] * v[1]), 2 * (q[3] * v[0] - q[1] * v[2]),
                   2 * (q[1] * v[1] - q[2] * v[0])};
    r[0] = v[0] + q[0] * t[0] + q[2] * t[2] - q[3] * t[1];
    r[1] = v[1] + q[0] * t[1] + q[3] * t[0] - q[1] * t[2];
    r[2] = v[2] + q[0] * t[2] + q[1] * t[1] - q[2] * t[0];
}

// The view goes along with the torso. Hips at the corners of a square, shins bent down at the ankle
// by an angle whose sign is that of the model's axis.
static uint32_t standing_lines(const struct grt_env_info *env, const float *state,
                               struct line *lines) {
    static const double corner[4][2] = {{1, 1}, {-1, 1}, {-1, -1}, {1, -1}};
    static const double bend[4] = {1, -1, -1, 1};
    static const char *const hips[] = {"hip_1", "hip_2", "hip_3", "hip_4"};
    static const char *const ankles[] = {"ankle_1", "ankle_2", "ankle_3", "ankle_4"};
    double height = (double)state[play_member(env, "z")];
    const float *qf = &state[play_member(env, "qw")];
    const double q[4] = {(double)qf[0], (double)qf[1], (double)qf[2], (double)qf[3]};
    for (int i = 0; i < 4; i++) {
        double hip = (double)state[play_member(env, hips[i])];
        double ankle = bend[i] * (double)state[play_member(env, ankles[i])];
        double c = cos(hip), s = sin(hip), u = 0.2 * corner[i][0], v = 0.2 * corner[i][1];
        double out[2] = {c * u - s * v, s * u + c * v};
        double down = -0.4 * sqrt(2) * sin(ankle), along = 2 * cos(ankle);
        const double body[4][3] = {{0, 0, 0},
                                   {u, v, 0},
                                   {u + out[0], v + out[1], 0},
                                   {u + out[0] * (1 + along), v + out[1] * (1 + along), down}};
        lines[i] = (struct line){.count = 4, .width = 0.16};
        for (int k = 0; k < 4; k++) {
            turn(q, body[k], lines[i].at[k]);
            lines[i].at[k][2] += height;
        }
    }
    // The torso, a ball: a line without length and with round ends.
    lines[4] = (struct line){.count = 2, .width = 0.5};
    lines[4].at[0][2] = lines[4].at[1][2] = height;
    return 5;
}

// ---- the small ones ----

static uint32_t cartpole_lines(const struct grt_env_info *env, const float *state,
                               struct line *lines) {
    double x = (double)state[play_member(env, "x")], a = (double)state[play_member(env, "a")];
    lines[0] =
        (struct line){.count = 2, .width = 0.2, .at = {{x - 0.25, 0, 0.1}, {x + 0.25, 0, 0.1}}};
    lines[1] = (struct line){
        .count = 2, .width = 0.06, .at = {{x, 0, 0.2}, {x + sin(a), 0, 0.2 + cos(a)}}};
    return 2;
}

static uint32_t pendulum_lines(const struct grt_env_info *env, const float *state,
                               struct line *lines) {
    double a = (double)state[play_member(env, "a")];
    lines[0] =
        (struct line){.count = 2, .width = 0.1, .at = {{0, 0, 1.2}, {sin(a), 0, 1.2 + cos(a)}}};
    return 1;
}

static const struct look looks[] = {
    {"standing",
     {{.label = "torso height, m; band: commanded; grey: pushes",
       .members = {"z"},
       .target = "height",
       .within = 0.03,
       .pushes = {"push_x", "push_y"}},
      {.label = "ankles, rad; band: between the stops",
       .members = {"ankle_1", "ankle_2", "ankle_3", "ankle_4"},
       .low = 0.5236,
       .high = 1.2217,
       .size = true},
      {.label = "hips, rad; band: between the stops",
       .members = {"hip_1", "hip_2", "hip_3", "hip_4"},
       .low = -0.5236,
       .high = 0.5236},
      {.label = "speed along x, m/s; band: commanded",
       .members = {"vx"},
       .target = "speed",
       .within = 0.2,
       .pushes = {"push_x", "push_y"}}},
     130,
     0.7,
     2,
     standing_lines},
    {"cartpole",
     {{.label = "angle, rad", .members = {"a"}, .low = -0.2094, .high = 0.2094}},
     70,
     0.7,
     1,
     cartpole_lines},
    {"pendulum",
     {{.label = "angle, rad", .members = {"a"}, .low = -0.2, .high = 0.2}},
     90,
     1.2,
     1,
     pendulum_lines},
    {NULL, {{0}}, 100, 1, 0, NULL},  // any other: see play_any.c
};

// ---- writing ----

static void write_points(FILE *file, const struct look *look, const struct line *line,
                         uint32_t view) {
    for (uint32_t k = 0; k < line->count; k++) {
        double x = PANEL_W / 2.0 + look->scale * line->at[k][view];
        double z = PANEL_H / 2.0 + look->scale * (look->ground - line->at[k][2]);
        fprintf(file, "%s%.1f,%.1f", k ? " " : "", x, z);
    }
}

// One line in one view, with its points in every frame.
static void write_line(FILE *file, const struct play_trip *trip, const struct look *look,
                       uint32_t index, uint32_t view, double seconds) {
    struct line lines[MAX_LINES] = {{0}};
    look->lines(trip->env, trip->states, lines);
    fprintf(file, "<polyline class=\"l%u\" stroke-width=\"%.1f\" points=\"", index % 5,
            lines[index].width * look->scale);
    write_points(file, look, &lines[index], view);
    fprintf(file,
            "\"><animate attributeName=\"points\" dur=\"%.3fs\" repeatCount=\"indefinite\" "
            "calcMode=\"discrete\" values=\"",
            seconds);
    for (uint32_t f = 0; f < trip->frames; f++) {
        look->lines(trip->env, trip->states + (size_t)f * trip->env->state, lines);
        fputs(f ? ";" : "", file);
        write_points(file, look, &lines[index], view);
    }
    fputs("\"/></polyline>\n", file);
}

static void write_view(FILE *file, const struct play_trip *trip, const struct look *look,
                       uint32_t view, double seconds) {
    struct line lines[MAX_LINES] = {{0}};
    uint32_t count = look->lines(trip->env, trip->states, lines);
    double ground = PANEL_H / 2.0 + look->scale * look->ground;
    fprintf(file, "<svg x=\"%u\" y=\"%d\" width=\"%d\" height=\"%d\">\n", view * PANEL_W, MARGIN,
            PANEL_W, PANEL_H);
    fprintf(file, "<line class=\"ground\" x1=\"0\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", PANEL_W,
            ground, ground);
    fprintf(file, "<text x=\"8\" y=\"16\">%s</text>\n", view ? "from the front" : "from the side");
    for (uint32_t i = 0; i < count; i++) {
        write_line(file, trip, look, i, view, seconds);
    }
    fputs("</svg>\n", file);
}

static double value(const struct play_trip *trip, const char *member, uint32_t frame, bool size) {
    double v =
        (double)trip->states[(size_t)frame * trip->env->state + play_member(trip->env, member)];
    return size ? fabs(v) : v;
}

// Where a chart's numbers lie on the page.
struct axes {
    double low, high, scale, step;  // pixels a unit, pixels a frame
    int width;
};

static double across(const struct axes *a, double frame) {
    return MARGIN + a->step * frame;
}

static double down(const struct axes *a, double v) {
    return MARGIN + a->scale * (a->high - v);
}

static struct axes axes_of(const struct play_trip *trip, const struct chart *chart, int width) {
    struct axes a = {.low = INFINITY, .high = -INFINITY, .width = width};
    for (uint32_t f = 0; f < trip->frames; f++) {
        for (uint32_t i = 0; i < MAX_CURVES && (i == 0 || chart->members[i]); i++) {
            // With fmin() and fmax() GCC 12 ends with an internal error at -O3 (aarch64).
            double v = value(trip, chart->members[i], f, chart->size);
            a.low = v < a.low ? v : a.low;
            a.high = v > a.high ? v : a.high;
        }
        double aim = chart->target ? value(trip, chart->target, f, false) : 0;
        double low = chart->target ? aim - chart->within : chart->low;
        double high = chart->target ? aim + chart->within : chart->high;
        if (high > low) {
            a.low = low < a.low ? low : a.low;
            a.high = high > a.high ? high : a.high;
        }
    }
    double room = a.high > a.low ? 0.08 * (a.high - a.low) : 0.5;
    a.low -= room;
    a.high += room;
    a.scale = (CHART_H - 2 * MARGIN) / (a.high - a.low);
    a.step = (width - 2.0 * MARGIN) / (double)trip->frames;
    return a;
}

static void write_edge(FILE *file, const struct axes *a, double v) {
    fprintf(file, "<text class=\"edge\" x=\"%d\" y=\"%.1f\">%.2f</text>\n", MARGIN - 2,
            down(a, v) + 3, v);
}

// The band of what is good, and what disturbs.
static void write_ground(FILE *file, const struct play_trip *trip, const struct chart *chart,
                         const struct axes *a) {
    for (uint32_t f = 0; chart->pushes[0] && f < trip->frames; f++) {
        double size =
            hypot(value(trip, chart->pushes[0], f, false), value(trip, chart->pushes[1], f, false));
        if (size > 0) {
            fprintf(
                file,
                "<rect class=\"push\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>%.1f "
                "N</title></rect>\n",
                across(a, f), MARGIN, a->step, CHART_H - 2 * MARGIN, size);
        }
    }
    if (chart->target) {
        fputs("<polygon class=\"band\" points=\"", file);
        for (uint32_t i = 0; i < 2 * trip->frames; i++) {
            uint32_t f = i < trip->frames ? i : 2 * trip->frames - 1 - i;
            double v = value(trip, chart->target, f, false);
            fprintf(file, "%.1f,%.1f ", across(a, f),
                    down(a, v + (i < trip->frames ? chart->within : -chart->within)));
        }
        fputs("\"/>\n", file);
        write_edge(file, a, a->low);
        write_edge(file, a, a->high);
    } else if (chart->high > chart->low) {
        fprintf(file, "<rect class=\"band\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/>\n",
                MARGIN, down(a, chart->high), a->width - 2 * MARGIN,
                a->scale * (chart->high - chart->low));
        write_edge(file, a, chart->low);
        write_edge(file, a, chart->high);
    }
}

static void write_chart(FILE *file, const struct play_trip *trip, const struct chart *chart,
                        int width, int top, double seconds) {
    struct axes a = axes_of(trip, chart, width);
    double tick = seconds > 40 ? 10 : seconds > 8 ? 5 : 1;
    fprintf(file, "<svg x=\"0\" y=\"%d\" width=\"%d\" height=\"%d\">\n", top, width, CHART_H);
    write_ground(file, trip, chart, &a);
    for (int i = 0; i * tick <= seconds; i++) {
        fprintf(file, "<text class=\"tick\" x=\"%.1f\" y=\"%d\">%g s</text>\n",
                MARGIN + i * tick / seconds * (width - 2.0 * MARGIN), CHART_H - MARGIN + 12,
                i * tick);
    }
    fprintf(file, "<text x=\"8\" y=\"16\">%s</text>\n", chart->label);
    for (uint32_t i = 0; i < MAX_CURVES && (i == 0 || chart->members[i]); i++) {
        fprintf(file, "<polyline class=\"chart l%u\" points=\"", i);
        for (uint32_t f = 0; f < trip->frames; f++) {
            fprintf(file, "%s%.1f,%.1f", f ? " " : "", across(&a, f),
                    down(&a, value(trip, chart->members[i], f, chart->size)));
        }
        fputs("\"/>\n", file);
    }
    fprintf(file,
            "<line class=\"now\" y1=\"%d\" y2=\"%d\" x1=\"0\" x2=\"0\" "
            "transform=\"translate(%d 0)\"><animateTransform "
            "attributeName=\"transform\" type=\"translate\" from=\"%d\" to=\"%d\" dur=\"%.3fs\" "
            "repeatCount=\"indefinite\"/></line>\n</svg>\n",
            MARGIN, CHART_H - MARGIN, MARGIN, MARGIN, width - MARGIN, seconds);
}

void play_svg(FILE *file, const struct play_trip *trip) {
    const struct look *look = looks;
    // A file of the user's is not ours, whatever its name.
    while (look->env && (trip->env->source || strcmp(look->env, trip->env->name) != 0)) {
        look++;
    }
    int charts = 0;
    while (charts < MAX_CHARTS && look->charts[charts].label) {
        charts++;
    }
    int width = 2 * PANEL_W,
        height = MARGIN + (look->env ? PANEL_H + charts * CHART_H : play_any_height(trip));
    double seconds = trip->frames * (double)trip->env->dt;
    fprintf(
        file,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
        "height=\"%d\" "
        "font-family=\"sans-serif\" "
        "font-size=\"12\">\n<style>polyline{fill:none;stroke-linecap:round;"
        "stroke-linejoin:round}.l0{stroke:#2a6f97}.l1{stroke:#468faf}.l2{stroke:#89c2d9}"
        ".l3{stroke:#61a5c2}.l4{stroke:#e07a5f}.chart{stroke-width:1.5}.push{fill:#bbb}.ground{"
        "stroke:#555;stroke-"
        "width:2}"
        ".band{fill:#d8f3dc}.now{stroke:#e07a5f}.edge{font-size:9px;text-anchor:end}.tick{font-"
        "size:"
        "9px;text-anchor:middle}</style>\n<rect width=\"100%%\" height=\"100%%\" "
        "fill=\"#fff\"/>\n<text x=\"8\" y=\"16\">%s, phase %u: return %.1f, %.0f%% of the steps "
        "good, %u "
        "falls</text>\n",
        width, height, width, height, trip->env->name, trip->phase, trip->total, 100 * trip->good,
        trip->falls);
    if (!look->env) {
        play_any(file, trip, width, MARGIN, seconds);
    }
    for (uint32_t view = 0; view < look->views; view++) {
        write_view(file, trip, look, view, seconds);
    }
    for (int i = 0; i < charts; i++) {
        write_chart(file, trip, &look->charts[i], width, MARGIN + PANEL_H + i * CHART_H, seconds);
    }
    fputs("</svg>\n", file);
}
