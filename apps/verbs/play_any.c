// SPDX-License-Identifier: Apache-2.0
// The picture of an environment that nobody has drawn by hand: the shapes it gives (ENV_DRAW), then
// a chart for each number of its state, and charts of four numbers each for observations and
// actions, and one for the reward.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "play.h"

#define PANEL_H 260
#define CHART_H 96
#define TOP 24     // of a chart, for its label
#define BOTTOM 20  // for its ticks
#define LEFT 64    // for numbers
#define RIGHT 24
#define TOGETHER 4  // curves of a chart
#define MAX_ALONE 16

struct curves {
    char label[96];
    const float *first;  // [frames][stride]
    uint32_t stride, count;
};

// The i-th chart; false past the last.
static bool chart_at(const struct play_trip *trip, uint32_t i, struct curves *c) {
    const struct grt_env_info *env = trip->env;
    uint32_t each = env->state <= MAX_ALONE ? 1 : TOGETHER;
    const struct {
        const char *what;
        const float *data;
        uint32_t width, each;
    } groups[] = {{"state", trip->states, env->state, each},
                  {"observation", trip->seen, env->obs, TOGETHER},
                  {"action, -1 to 1:", trip->actions, env->act, TOGETHER},
                  {"reward of a step", trip->rewards, 1, 1}};
    for (uint32_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
        uint32_t charts = (groups[g].width + groups[g].each - 1) / groups[g].each;
        if (i >= charts) {
            i -= charts;
            continue;
        }
        uint32_t from = i * groups[g].each, left = groups[g].width - from;
        uint32_t count = left < groups[g].each ? left : groups[g].each;
        *c = (struct curves){
            .first = groups[g].data + from, .stride = groups[g].width, .count = count};
        int used = snprintf(c->label, sizeof c->label, "%s", groups[g].what);
        for (uint32_t k = 0; g < 3 && k < count && used < (int)sizeof c->label; k++) {
            used += g == 0 ? snprintf(c->label + used, sizeof c->label - (size_t)used, "%s %s",
                                      k ? "," : "", env->state_names[from + k])
                           : snprintf(c->label + used, sizeof c->label - (size_t)used, "%s %u",
                                      k ? "," : "", from + k);
        }
        return true;
    }
    return false;
}

int play_any_height(const struct play_trip *trip) {
    struct curves c;
    int charts = 0;
    while (chart_at(trip, (uint32_t)charts, &c)) {
        charts++;
    }
    return (trip->env->shapes ? PANEL_H : 0) + charts * CHART_H;
}

struct range {
    double low, high;
};

static void widen(struct range *r, double v) {
    if (v - v == 0) {
        r->low = v < r->low ? v : r->low;
        r->high = v > r->high ? v : r->high;
    }
}

static struct range with_room(struct range r) {
    if (!(r.high >= r.low)) {
        return (struct range){-1, 1};
    }
    double room = r.high > r.low ? 0.08 * (r.high - r.low) : 0.5;
    return (struct range){r.low - room, r.high + room};
}

static void write_chart(FILE *file, const struct play_trip *trip, const struct curves *c, int width,
                        int top, double seconds) {
    struct range r = {INFINITY, -INFINITY};
    for (uint32_t f = 0; f < trip->frames; f++) {
        for (uint32_t k = 0; k < c->count; k++) {
            widen(&r, (double)c->first[(size_t)f * c->stride + k]);
        }
    }
    struct range seen = r.high >= r.low ? r : (struct range){0, 0};
    r = with_room(r);
    double tick = seconds > 40 ? 10 : seconds > 8 ? 5 : seconds > 2 ? 1 : 0.2;
    double scale = (CHART_H - TOP - BOTTOM) / (r.high - r.low);
    double step = (width - LEFT - RIGHT) / (double)trip->frames;
    fprintf(file, "<svg x=\"0\" y=\"%d\" width=\"%d\" height=\"%d\">\n", top, width, CHART_H);
    fprintf(file, "<text x=\"8\" y=\"16\">%s</text>\n", c->label);
    fprintf(file,
            "<path fill=\"none\" stroke=\"#999\" d=\"M%d %d V%d H%d\"/>\n"
            "<text class=\"edge\" x=\"%d\" y=\"%.1f\">%.3g</text>\n",
            LEFT, TOP, CHART_H - BOTTOM, width - RIGHT, LEFT - 4,
            TOP + scale * (r.high - seen.high) + 3, seen.high);
    if (seen.high > seen.low) {
        fprintf(file, "<text class=\"edge\" x=\"%d\" y=\"%.1f\">%.3g</text>\n", LEFT - 4,
                TOP + scale * (r.high - seen.low) + 3, seen.low);
    }
    for (int i = 0; i * tick <= seconds; i++) {
        fprintf(file, "<text class=\"tick\" x=\"%.1f\" y=\"%d\">%g s</text>\n",
                LEFT + i * tick / seconds * (width - LEFT - RIGHT), CHART_H - BOTTOM + 12,
                i * tick);
    }
    for (uint32_t k = 0; k < c->count; k++) {
        fprintf(file, "<polyline class=\"chart l%u\" points=\"", k == 3 ? 4 : k);
        for (uint32_t f = 0; f < trip->frames; f++) {
            double v = (double)c->first[(size_t)f * c->stride + k];
            if (v - v == 0) {
                fprintf(file, "%.1f,%.1f ", LEFT + step * f, TOP + scale * (r.high - v));
            }
        }
        fputs("\"/>\n", file);
    }
    fprintf(file,
            "<line class=\"now\" y1=\"%d\" y2=\"%d\" x1=\"0\" x2=\"0\"><animateTransform "
            "attributeName=\"transform\" type=\"translate\" from=\"%d\" to=\"%d\" dur=\"%.3fs\" "
            "repeatCount=\"indefinite\"/></line>\n</svg>\n",
            TOP, CHART_H - BOTTOM, LEFT, width - RIGHT, seconds);
}

// ---- shapes ----

static const float *shape_at(const struct play_trip *trip, uint32_t frame, uint32_t i) {
    return trip->shapes + ((size_t)frame * trip->env->shapes + i) * GRT_TRACE_SHAPE;
}

static void write_values(FILE *file, const struct play_trip *trip, uint32_t i, uint32_t word,
                         const char *attribute, double scale, double offset, double seconds) {
    fprintf(file,
            "<animate attributeName=\"%s\" dur=\"%.3fs\" repeatCount=\"indefinite\" "
            "calcMode=\"discrete\" values=\"",
            attribute, seconds);
    for (uint32_t f = 0; f < trip->frames; f++) {
        double v = offset + scale * (double)shape_at(trip, f, i)[word];
        fprintf(file, "%s%.1f", f ? ";" : "", v - v == 0 ? v : 0);
    }
    fputs("\"/>", file);
}

// One scale for both axes; all that is ever drawn is on the panel.
static void write_shapes(FILE *file, const struct play_trip *trip, int width, int top,
                         double seconds) {
    struct range x = {INFINITY, -INFINITY}, y = x;
    for (uint32_t f = 0; f < trip->frames; f++) {
        for (uint32_t i = 0; i < trip->env->shapes; i++) {
            const float *s = shape_at(trip, f, i);
            double around = (double)s[5] * (s[0] > 0 ? 1 : 0.5);
            for (uint32_t k = 1; k <= 3; k += 2) {
                widen(&x, (double)s[k] - around);
                widen(&x, (double)s[k] + around);
                widen(&y, (double)s[k + 1] - around);
                widen(&y, (double)s[k + 1] + around);
            }
        }
    }
    x = with_room(x);
    y = with_room(y);
    double across = width / (x.high - x.low), down = PANEL_H / (y.high - y.low);
    double scale = across < down ? across : down;
    double left = width / 2.0 - scale * (x.low + x.high) / 2;
    double middle = PANEL_H / 2.0 + scale * (y.low + y.high) / 2;
    fprintf(file, "<svg x=\"0\" y=\"%d\" width=\"%d\" height=\"%d\">\n", top, width, PANEL_H);
    for (uint32_t i = 0; i < trip->env->shapes; i++) {
        const float *s = shape_at(trip, 0, i);
        bool line = s[0] < 0.5f;
        if (line) {
            fprintf(file, "<line class=\"l%u\" stroke-linecap=\"round\" stroke-width=\"%.1f\">",
                    i % 5, fmax(1, scale * (double)s[5]));
            write_values(file, trip, i, 3, "x2", scale, left, seconds);
            write_values(file, trip, i, 4, "y2", -scale, middle, seconds);
        } else {
            fprintf(file, "<circle class=\"l%u\" fill=\"none\" stroke-width=\"2\" r=\"%.1f\">",
                    i % 5, fmax(2, scale * (double)s[5]));
        }
        write_values(file, trip, i, 1, line ? "x1" : "cx", scale, left, seconds);
        write_values(file, trip, i, 2, line ? "y1" : "cy", -scale, middle, seconds);
        fputs(line ? "</line>\n" : "</circle>\n", file);
    }
    fputs("</svg>\n", file);
}

void play_any(FILE *file, const struct play_trip *trip, int width, int top, double seconds) {
    struct curves c;
    if (trip->env->shapes) {
        write_shapes(file, trip, width, top, seconds);
        top += PANEL_H;
    }
    for (uint32_t i = 0; chart_at(trip, i, &c); i++) {
        write_chart(file, trip, &c, width, top + (int)i * CHART_H, seconds);
    }
}

// ---- actions ----

float *play_actions(const struct grt_policy *policy, const struct grt_env_info *env,
                    const struct grt_archive *archive, const float *seen, uint32_t frames) {
    const struct grt_archive_tensor *norm =
        grt_archive_find(archive, "normalizer/mean_rstd_variance");
    uint32_t widest = env->obs > env->act ? env->obs : env->act;
    widest = policy->hidden > widest ? policy->hidden : widest;
    float *actions = calloc((size_t)frames * env->act, sizeof *actions);
    double *x = calloc(widest, sizeof *x), *y = calloc(widest, sizeof *y);
    for (uint32_t f = 0; actions && x && y && norm && f < frames; f++) {
        const float *shift = norm->data;
        struct grt_policy_tensor t;
        uint32_t layer = 0;
        for (uint32_t i = 0; i < env->obs; i++) {
            x[i] = ((double)seen[(size_t)f * env->obs + i] - (double)shift[i]) *
                   (double)shift[env->obs + i];
        }
        for (uint32_t k = 0; grt_policy_tensor(policy, env, k, &t); k++) {
            char name[GRT_ARCHIVE_NAME];
            snprintf(name, sizeof name, "model/%s", t.name);
            const float *w = grt_archive_find(archive, name)->data;
            struct grt_policy_tensor next = {0};
            bool bias = grt_policy_tensor(policy, env, k + 1, &next) && next.rank == 1;
            const float *b = NULL;
            if (bias) {
                snprintf(name, sizeof name, "model/%s", next.name);
                b = grt_archive_find(archive, name)->data;
                k++;
            }
            bool last = layer++ == (policy->hidden ? 1u : 0u);
            for (uint32_t o = 0; o < t.shape[0]; o++) {
                double sum = b ? (double)b[o] : 0;
                for (uint32_t i = 0; i < t.shape[1]; i++) {
                    sum += (double)w[(size_t)o * t.shape[1] + i] * x[i];
                }
                bool curved = policy->hidden && (last || policy->tanh);
                double clamped = sum > 1 ? 1 : sum < -1 ? -1 : sum;
                y[o] = curved ? tanh(sum) : last ? clamped : sum > 0 ? sum : 0;
            }
            memcpy(x, y, t.shape[0] * sizeof *x);
        }
        for (uint32_t i = 0; i < env->act; i++) {
            actions[(size_t)f * env->act + i] = (float)x[i];
        }
    }
    if (!x || !y) {
        free(actions);
        actions = NULL;
    }
    free(x);
    free(y);
    return actions;
}
