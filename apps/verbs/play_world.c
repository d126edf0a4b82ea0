// SPDX-License-Identifier: Apache-2.0
// The picture of an episode in shapes (shaders/env/world.k). Shapes stand in the picture with the
// environment's own coordinates; an attribute that changes has its values at the steps where it
// changes, by SVG's own animation, so that any browser plays it without a script.
//
//     title
//     +---------+
//     |  shapes |      y upwards
//     +---------+
//     ====|-----       the time, with a mark where a goal is reached       step 17 of 57
#include "play_world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 560
#define MARGIN 20
#define TOP 36
#define BELOW 44         // for the time
#define MOST_HEIGHT 900  // of the panel
#define SLOWEST 0.2      // seconds of a step on the screen
#define HOLD 1.5         // seconds that the end is shown
#define DIGIT 14         // pixels of a digit's line

struct picture {
    FILE *file;
    const struct play_world *world;
    uint32_t frames;
    double step, total;  // seconds of a step and of all
    int decimals;        // of a coordinate: a ten-thousandth of the picture
    double x0, y0, x1, y1;
    double *series;  // [frames], of the attribute at hand
};

static const struct grt_drawn_shape *shape_at(const struct picture *p, uint32_t frame, uint32_t i) {
    return &p->world->drawn[(size_t)frame * p->world->shapes + i];
}

// ---- numbers ----

// As short as it can be: "3.5", ".125", "-2".
static void put(FILE *file, double v, int decimals) {
    char text[64];
    snprintf(text, sizeof text, "%.*f", decimals, v);
    size_t length = strlen(text);
    if (strchr(text, '.')) {
        while (text[length - 1] == '0') {
            text[--length] = '\0';
        }
        if (text[length - 1] == '.') {
            text[--length] = '\0';
        }
    }
    bool minus = text[0] == '-';
    const char *digits = text + minus;
    if (digits[0] == '0' && digits[1] == '.') {
        digits++;
    }
    bool zero = strcmp(digits, "0") == 0;
    fprintf(file, "%s%s", minus && !zero ? "-" : "", digits);
}

static bool changes(const struct picture *p) {
    for (uint32_t f = 1; f < p->frames; f++) {
        if (p->series[f] != p->series[0]) {
            return true;
        }
    }
    return false;
}

// Whether a frame's value must be said: it differs from one beside it.
static bool is_said(const struct picture *p, uint32_t f, bool jumps) {
    const double *v = p->series;
    bool before = f == 0 || v[f] != v[f - 1];
    bool after = f + 1 == p->frames || v[f] != v[f + 1];
    return before || (after && !jumps);
}

// The series as an animation of an attribute, or of a shift downwards. Between steps the value
// glides, or jumps.
static void animate(const struct picture *p, const char *attribute, int decimals, bool jumps) {
    bool shift = !attribute;
    fprintf(p->file,
            shift ? "<animateTransform attributeName=\"transform\" type=\"translate\""
                  : "<animate attributeName=\"%s\"",
            attribute);
    fprintf(p->file, " dur=\"%.2fs\" repeatCount=\"indefinite\"%s values=\"", p->total,
            jumps ? " calcMode=\"discrete\"" : "");
    for (uint32_t f = 0; f < p->frames; f++) {
        if (!is_said(p, f, jumps)) {
            continue;
        }
        fputs(f ? shift ? ";0 " : ";" : shift ? "0 " : "", p->file);
        put(p->file, p->series[f], decimals);
    }
    if (!jumps) {
        fputc(';', p->file);
        put(p->file, p->series[p->frames - 1], decimals);
    }
    fputs("\" keyTimes=\"", p->file);
    for (uint32_t f = 0; f < p->frames; f++) {
        if (!is_said(p, f, jumps)) {
            continue;
        }
        fputs(f ? ";" : "", p->file);
        put(p->file, f * p->step / p->total, 5);
    }
    fputs(jumps ? "\"/>" : ";1\"/>", p->file);
}

// ---- shapes ----

static double low_x(const struct grt_drawn_shape *s) {
    return fmin((double)s->x0, (double)s->x1);
}
static double low_y(const struct grt_drawn_shape *s) {
    return fmin((double)s->y0, (double)s->y1);
}
static double width(const struct grt_drawn_shape *s) {
    return fabs((double)s->x1 - (double)s->x0);
}
static double height(const struct grt_drawn_shape *s) {
    return fabs((double)s->y1 - (double)s->y0);
}
static double first_x(const struct grt_drawn_shape *s) {
    return (double)s->x0;
}
static double first_y(const struct grt_drawn_shape *s) {
    return (double)s->y0;
}
static double last_x(const struct grt_drawn_shape *s) {
    return (double)s->x1;
}
static double last_y(const struct grt_drawn_shape *s) {
    return (double)s->y1;
}
static double size(const struct grt_drawn_shape *s) {
    return (double)s->size;
}

struct attribute {
    const char *name;
    double (*of)(const struct grt_drawn_shape *s);
};

static const struct look {
    const char *element;
    struct attribute attributes[6];  // without a name: no more
} looks[] = {
    [GRT_DRAWN_NONE] = {NULL, {{NULL, NULL}}},
    [GRT_DRAWN_LINE] = {"line",
                        {{"x1", first_x},
                         {"y1", first_y},
                         {"x2", last_x},
                         {"y2", last_y},
                         {"stroke-width", size}}},
    [GRT_DRAWN_CIRCLE] = {"circle", {{"cx", first_x}, {"cy", first_y}, {"r", size}}},
    [GRT_DRAWN_BOX] = {"rect", {{"x", low_x}, {"y", low_y}, {"width", width}, {"height", height}}},
};
#define LOOKS (sizeof looks / sizeof looks[0])

static const char *const classes[] = {[GRT_DRAWN_AREA] = "area",
                                      [GRT_DRAWN_BLOCK] = "block",
                                      [GRT_DRAWN_GOAL] = "goal",
                                      [GRT_DRAWN_AGENT] = "agent"};
#define CLASSES (sizeof classes / sizeof classes[0])

static uint32_t number(float from, size_t count) {
    return from >= 0 && from < (float)count ? (uint32_t)from : 0;
}

// The first frame that shows a shape; the number of frames where none does.
static uint32_t first_shown(const struct picture *p, uint32_t i) {
    uint32_t f = 0;
    while (f < p->frames && number(shape_at(p, f, i)->kind, LOOKS) == GRT_DRAWN_NONE) {
        f++;
    }
    return f;
}

// The frame in which a shape is done first; the number of frames where it never is.
static uint32_t first_done(const struct picture *p, uint32_t i) {
    uint32_t f = 0;
    while (f < p->frames && shape_at(p, f, i)->done == 0) {
        f++;
    }
    return f;
}

// Hues far apart, one after the other.
static void put_colour(FILE *file, float of) {
    if (of >= 0) {
        fprintf(file, " color=\"hsl(%d,70%%,42%%)\"", (int)fmod(137.508 * (double)of, 360));
    }
}

static void fill_series(const struct picture *p, uint32_t i, const struct attribute *a) {
    for (uint32_t f = 0; f < p->frames; f++) {
        const struct grt_drawn_shape *s = shape_at(p, f, i);
        bool none = number(s->kind, LOOKS) == GRT_DRAWN_NONE;
        p->series[f] = a->of(none ? shape_at(p, first_shown(p, i), i) : s);
    }
}

// A goal that is reached is filled; an agent that is done fades; what is not there in a frame
// cannot be seen.
static void write_opacity(const struct picture *p, uint32_t i, uint32_t role) {
    for (uint32_t f = 0; f < p->frames; f++) {
        const struct grt_drawn_shape *s = shape_at(p, f, i);
        bool none = number(s->kind, LOOKS) == GRT_DRAWN_NONE;
        p->series[f] = none ? 0 : role == GRT_DRAWN_AGENT && s->done != 0 ? 0.3 : 1;
    }
    if (changes(p)) {
        animate(p, "opacity", 1, true);
    }
    for (uint32_t f = 0; f < p->frames; f++) {
        p->series[f] = role == GRT_DRAWN_GOAL && shape_at(p, f, i)->done != 0 ? 0.45 : 0;
    }
    if (changes(p)) {
        animate(p, "fill-opacity", 2, true);
    }
}

static void write_shape(const struct picture *p, uint32_t i) {
    const struct grt_drawn_shape *s = shape_at(p, first_shown(p, i), i);
    const struct look *look = &looks[number(s->kind, LOOKS)];
    uint32_t role = number(s->role, CLASSES), done = first_done(p, i);
    fprintf(p->file, "<%s class=\"%s\"", look->element, classes[role]);
    put_colour(p->file, s->of);
    for (const struct attribute *a = look->attributes; a->name; a++) {
        fprintf(p->file, " %s=\"", a->name);
        put(p->file, a->of(s), p->decimals);
        fputc('"', p->file);
    }
    fputc('>', p->file);
    if (role == GRT_DRAWN_GOAL && done < p->frames) {
        fprintf(p->file, "<title>agent %g: reached in step %u</title>", (double)s->of, done);
    } else if (s->of >= 0) {
        fprintf(p->file, "<title>agent %g</title>", (double)s->of);
    }
    for (const struct attribute *a = look->attributes; a->name; a++) {
        fill_series(p, i, a);
        if (changes(p)) {
            animate(p, a->name, p->decimals, false);
        }
    }
    write_opacity(p, i, role);
    fprintf(p->file, "</%s>\n", look->element);
}

// Agents, or all that is behind their tracks.
static void write_shapes(const struct picture *p, bool agents) {
    for (uint32_t i = 0; i < p->world->shapes; i++) {
        uint32_t first = first_shown(p, i);
        if (first < p->frames &&
            (number(shape_at(p, first, i)->role, CLASSES) == GRT_DRAWN_AGENT) == agents) {
            write_shape(p, i);
        }
    }
}

// The way of a shape, that appears behind it.
static void write_track(const struct picture *p, uint32_t i) {
    double length = 0;
    uint32_t first = first_shown(p, i);
    const struct grt_drawn_shape *before = first < p->frames ? shape_at(p, first, i) : NULL;
    if (!before || number(before->role, CLASSES) != GRT_DRAWN_AGENT) {
        return;
    }
    for (uint32_t f = 0; f < p->frames; f++) {
        const struct grt_drawn_shape *s = shape_at(p, f < first ? first : f, i);
        length += hypot((double)s->x0 - (double)before->x0, (double)s->y0 - (double)before->y0);
        p->series[f] = -length;
        before = s;
    }
    if (length == 0) {
        return;
    }
    for (uint32_t f = 0; f < p->frames; f++) {
        p->series[f] += length;
    }
    fputs("<polyline class=\"track\"", p->file);
    put_colour(p->file, before->of);
    fputs(" points=\"", p->file);
    for (uint32_t f = first; f < p->frames; f++) {
        const struct grt_drawn_shape *s = shape_at(p, f, i);
        if (f > first && !is_said(p, f, false)) {
            continue;
        }
        fputs(f > first ? " " : "", p->file);
        put(p->file, (double)s->x0, p->decimals);
        fputc(',', p->file);
        put(p->file, (double)s->y0, p->decimals);
    }
    fputs("\" pathLength=\"", p->file);
    put(p->file, length, p->decimals);
    fputs("\" stroke-dasharray=\"", p->file);
    put(p->file, length, p->decimals);
    fputs("\">", p->file);
    animate(p, "stroke-dashoffset", p->decimals, false);
    fputs("</polyline>\n", p->file);
}

// ---- the time ----

static void write_digit(const struct picture *p, uint32_t power, double x, double y) {
    fprintf(p->file, "<svg x=\"%.0f\" y=\"%.0f\" width=\"9\" height=\"%d\"><text class=\"digit\">",
            x, y, DIGIT);
    for (int d = 0; d < 10; d++) {
        fprintf(p->file, "<tspan x=\"0\" y=\"%d\">%d</tspan>", DIGIT * d + 11, d);
    }
    for (uint32_t f = 0; f < p->frames; f++) {
        p->series[f] = -DIGIT * (double)(f / power % 10);
    }
    if (changes(p)) {
        animate(p, NULL, 0, true);
    }
    fputs("</text></svg>\n", p->file);
}

static void write_time(const struct picture *p, int top) {
    int long_ = WIDTH - 2 * MARGIN, x = MARGIN;
    double end = (p->frames - 1) * p->step / p->total;
    fprintf(p->file, "<rect class=\"bar\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"6\"/>\n", MARGIN,
            top, long_);
    fprintf(p->file,
            "<rect class=\"past\" x=\"%d\" y=\"%d\" width=\"0\" height=\"6\"><animate "
            "attributeName=\"width\" dur=\"%.2fs\" repeatCount=\"indefinite\" values=\"0;%d;%d\" "
            "keyTimes=\"0;%.5f;1\"/></rect>\n",
            MARGIN, top, p->total, long_, long_, end);
    for (uint32_t i = 0; i < p->world->shapes; i++) {
        const struct grt_drawn_shape *s = shape_at(p, 0, i);
        uint32_t done = first_done(p, i);
        if (number(s->role, CLASSES) != GRT_DRAWN_GOAL || done == p->frames || done == 0) {
            continue;
        }
        fputs("<rect class=\"arrival\"", p->file);
        put_colour(p->file, s->of);
        fprintf(p->file, " x=\"%.1f\" y=\"%d\" width=\"2\" height=\"12\"/>\n",
                MARGIN - 1 + (double)long_ * done / (p->frames - 1), top - 3);
    }
    fprintf(p->file, "<text x=\"%d\" y=\"%d\">step</text>\n", x, top + 26);
    x += 30;
    uint32_t power = 1;
    while ((p->frames - 1) / power >= 10) {
        power *= 10;
    }
    for (; power > 0; power /= 10, x += 9) {
        write_digit(p, power, x, top + 15);
    }
    fprintf(p->file, "<text x=\"%d\" y=\"%d\">of %u</text>\n", x + 6, top + 26, p->frames - 1);
}

// ---- the whole ----

static void widen(struct picture *p, const struct grt_drawn_shape *s) {
    uint32_t kind = number(s->kind, LOOKS);
    double around = kind == GRT_DRAWN_CIRCLE ? (double)s->size
                    : kind == GRT_DRAWN_LINE ? (double)s->size / 2
                                             : 0;
    if (kind == GRT_DRAWN_NONE) {
        return;
    }
    p->x0 = fmin(p->x0, low_x(s) - around);
    p->y0 = fmin(p->y0, low_y(s) - around);
    p->x1 = fmax(p->x1, fmax((double)s->x0, (double)s->x1) + around);
    p->y1 = fmax(p->y1, fmax((double)s->y0, (double)s->y1) + around);
}

// All that is ever drawn is in the picture.
static void frame_all(struct picture *p) {
    p->x0 = p->y0 = INFINITY;
    p->x1 = p->y1 = -INFINITY;
    for (size_t i = 0; i < (size_t)p->frames * p->world->shapes; i++) {
        widen(p, &p->world->drawn[i]);
    }
    if (!(p->x1 >= p->x0)) {
        p->x0 = p->y0 = 0, p->x1 = p->y1 = 1;
    }
    double side = fmax(p->x1 - p->x0, p->y1 - p->y0), room = side > 0 ? 0.01 * side : 0.5;
    // A picture that is flat has some height.
    double tall = fmax(0, 0.15 * side - (p->y1 - p->y0)) / 2;
    p->x0 -= room;
    p->x1 += room;
    p->y0 -= room + tall;
    p->y1 += room + tall;
    int digits = (int)floor(log10(p->x1 - p->x0));
    p->decimals = digits >= 4 ? 0 : digits < -8 ? 12 : 4 - digits;
}

static void write_all(const struct picture *p) {
    double across = p->x1 - p->x0, tall = p->y1 - p->y0;
    double wide = WIDTH - 2 * MARGIN, high = fmin(MOST_HEIGHT, wide * tall / across);
    int all = (int)(TOP + high + BELOW);
    fprintf(p->file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<style>.area{fill:#f6f6f3;stroke:#999}.block{fill:#6b705c;stroke:#6b705c}.goal{fill:"
            "currentColor;fill-opacity:0;stroke:currentColor}.agent{fill:currentColor;stroke:"
            "currentColor}.track{fill:none;stroke:currentColor;stroke-opacity:.5;stroke-linecap:"
            "round;stroke-linejoin:round}rect,circle,polyline{stroke-width:",
            WIDTH, all, WIDTH, all);
    put(p->file, across / 260, p->decimals);
    fputs("}rect.block,circle.block,rect.agent,circle.agent,.bar,.past,.arrival{stroke-width:0}"
          ".bar{fill:#ddd}.past{fill:#888}.arrival{fill:currentColor}.digit{font-family:monospace;"
          "font-size:13px}"
          "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\" "
          "stroke-width=\"0\"/>\n",
          p->file);
    fprintf(p->file, "<text x=\"%d\" y=\"22\">%s</text>\n", MARGIN, p->world->title);
    fprintf(p->file, "<svg x=\"%d\" y=\"%d\" width=\"%.0f\" height=\"%.1f\" viewBox=\"", MARGIN,
            TOP, wide, high);
    const double box[] = {p->x0, -p->y1, across, tall};
    for (int i = 0; i < 4; i++) {
        fputs(i ? " " : "", p->file);
        put(p->file, box[i], p->decimals);
    }
    fputs("\">\n<g transform=\"scale(1,-1)\">\n", p->file);
    write_shapes(p, false);
    for (uint32_t i = 0; i < p->world->shapes; i++) {
        write_track(p, i);
    }
    write_shapes(p, true);
    fputs("</g>\n</svg>\n", p->file);
    write_time(p, (int)(TOP + high) + 10);
    fputs("</svg>\n", p->file);
}

bool play_world_svg(FILE *file, const struct play_world *world) {
    struct picture p = {.file = file,
                        .world = world,
                        .frames = world->steps + 1,
                        .step = world->dt < SLOWEST ? world->dt : SLOWEST};
    p.total = world->steps * p.step + HOLD;
    p.series = calloc(p.frames, sizeof *p.series);
    if (!p.series) {
        return false;
    }
    frame_all(&p);
    write_all(&p);
    free(p.series);
    return true;
}
