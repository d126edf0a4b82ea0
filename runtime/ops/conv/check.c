// SPDX-License-Identifier: Apache-2.0
// Whether a variant computes right on a device (ops/verdict.h): it is asked for each pass, type,
// stride, alignment of channels and tile. It does a convolution of few small images, with the
// kernel of the one that it stands for, and that is compared with sums in double precision on the
// host.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "case.h"
#include "ops/trial.h"
#include "ops/verdict.h"

#define SIDE 7u
#define IMAGES 3u
#define CHANNELS 64u

// An extent that leaves the same rest of a block, so that the same paths are taken.
static uint32_t shrink(uint32_t extent) {
    return extent < 2 * CHANNELS ? extent : CHANNELS + extent % CHANNELS;
}
static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

struct conv_extents conv_check_extents(const struct conv_case *c,
                                       const struct conv_variant *variant) {
    const struct grt_window *w = &c->window;
    uint32_t room = w->size > 2 * w->padding ? w->size - 2 * w->padding : 1;
    uint32_t side = room > SIDE ? room : SIDE;
    struct conv_extents e = {.rows = least(c->rows, IMAGES),
                             .height = least(w->height, side + w->height % 2),
                             .width = least(w->width, side + w->width % 2),
                             .channels = shrink(w->channels),
                             .outputs = shrink(c->outputs)};
    if (variant->extents) {
        variant->extents(c, &e);
    }
    return e;
}

enum { X, W, Y, COUNT };

struct trial {
    struct grt_conv2d_desc desc;
    struct conv_case conv;
    struct grt_tensor tensors[COUNT];
    struct grt_plan *plan;
    double *values[COUNT];  // of what is read
    unsigned char *bytes;   // room for the largest of the three
    uint32_t written;       // which of the three
};

static bool begin(struct trial *t, const struct conv_case *c, const struct conv_variant *variant) {
    const struct grt_conv2d_desc *d = c->desc;
    const struct grt_window *w = &c->window;
    struct conv_extents e = conv_check_extents(c, variant);
    uint64_t down = grt_window_places(w, e.height), across = grt_window_places(w, e.width);
    const struct grt_tensor_desc descs[COUNT] = {
        {.label = "x", .dtype = c->type, .shape = {e.rows, e.height, e.width, e.channels}},
        {.label = "w",
         .dtype = d->pass == GRT_CONV_WEIGHT ? GRT_F32 : c->type,
         .shape = {e.outputs, w->size, w->size, e.channels}},
        {.label = "y",
         .dtype = d->pass == GRT_CONV_FORWARD ? c->out : c->type,
         .shape = {e.rows, down, across, e.outputs}},
    };
    t->written = d->pass == GRT_CONV_FORWARD ? Y : d->pass == GRT_CONV_DATA ? X : W;
    t->desc = (struct grt_conv2d_desc){
        .pass = d->pass, .stride = w->stride, .padding = w->padding, .variant = variant->name};
    t->desc.x = &t->tensors[X];
    t->desc.w = &t->tensors[W];
    t->desc.y = &t->tensors[Y];
    t->plan = grt_plan_create(c->dev);
    const struct grt_tensor *planned[COUNT] = {NULL};
    uint64_t most = 0;
    for (uint32_t i = 0; t->plan && i < COUNT; i++) {
        planned[i] = grt_plan_tensor(t->plan, &descs[i]);
        if (!planned[i]) {
            return false;
        }
        most = grt_tensor_count(planned[i]) > most ? grt_tensor_count(planned[i]) : most;
        t->tensors[i] = *planned[i];
    }
    if (!t->plan) {
        return false;
    }
    conv_fill_case(&t->conv, c->dev, &t->desc);
    t->conv.stands_for = c;
    uint64_t bytes = variant->scratch && variant->usable(&t->conv) ? variant->scratch(&t->conv) : 0;
    const struct grt_tensor *scratch =
        bytes ? grt_plan_tensor(t->plan, grt_tensor_desc(.label = "scratch", .shape = {bytes / 4}))
              : NULL;
    if ((bytes && !scratch) || !grt_plan_alloc(t->plan)) {
        return false;
    }
    if (scratch) {
        t->desc.scratch = scratch->range;
    }
    t->bytes = malloc((size_t)most * 4 + 4);
    for (uint32_t i = 0; t->bytes && i < COUNT; i++) {
        t->tensors[i] = *planned[i];
        t->values[i] = malloc((size_t)grt_tensor_count(planned[i]) * sizeof **t->values);
        if (!t->values[i] ||
            (i != t->written && !grt_trial_fill(&t->tensors[i], i + 1, t->values[i], t->bytes))) {
            return false;
        }
    }
    return t->bytes != NULL;
}

static void end(struct trial *t) {
    grt_plan_destroy(&t->plan);
    for (uint32_t i = 0; i < COUNT; i++) {
        free(t->values[i]);
    }
    free(t->bytes);
}

// What is to be there: sums, and the sums of their terms' magnitudes.
static void sums_of(const struct trial *t, double *sum, double *absolute) {
    const struct grt_window *w = &t->conv.window;
    uint64_t taps = (uint64_t)w->size * w->size, channels = w->channels, outputs = t->conv.outputs;
    uint64_t pixels = conv_pixels(&t->conv);
    for (uint64_t place = 0; place < t->conv.rows * pixels * taps; place++) {
        uint64_t tap = place % taps, pixel = place / taps;
        uint64_t top = pixel % pixels / w->out_width * w->stride + tap / w->size;
        uint64_t left = pixel % w->out_width * w->stride + tap % w->size;
        if (top < w->padding || left < w->padding || top >= w->padding + w->height ||
            left >= w->padding + w->width) {
            continue;
        }
        uint64_t at =
            (pixel / pixels * w->height + top - w->padding) * w->width + left - w->padding;
        for (uint64_t o = 0; o < outputs; o++) {
            for (uint64_t c = 0; c < channels; c++) {
                uint64_t i[COUNT] = {at * channels + c, (o * taps + tap) * channels + c,
                                     pixel * outputs + o};
                double term = t->written == Y   ? t->values[X][i[X]] * t->values[W][i[W]]
                              : t->written == X ? t->values[Y][i[Y]] * t->values[W][i[W]]
                                                : t->values[X][i[X]] * t->values[Y][i[Y]];
                sum[i[t->written]] += term;
                absolute[i[t->written]] += fabs(term);
            }
        }
    }
}

// Each addition may be off by two units of f32's last place, as in matrix units that cut off, and
// then there is the rounding to the type.
static bool agrees(const struct trial *t, double sum, double absolute, double got) {
    const struct grt_window *w = &t->conv.window;
    double terms = t->written == W ? (double)(t->conv.rows * conv_pixels(&t->conv))
                                   : (double)w->size * w->size *
                                         (t->written == Y ? w->channels : t->conv.outputs);
    double bound = (2 * terms + 8) * 0x1p-24 * absolute;
    enum grt_dtype out = t->tensors[t->written].dtype;
    bound += out == GRT_F16 ? fabs(sum) * 0x1p-11 : out == GRT_BF16 ? fabs(sum) * 0x1p-8 : 0;
    return fabs(got - sum) <= bound;  // false for NaN
}

static bool right(const struct trial *t, bool fault) {
    const struct grt_tensor *out = &t->tensors[t->written];
    uint32_t size = grt_dtype_size(out->dtype);
    uint64_t count = grt_tensor_count(out);
    double *want = calloc((size_t)count * 2, sizeof *want);
    bool good = want && grt_buf_read(out->range.buf, out->range.offset, t->bytes, count * size);
    if (good) {
        sums_of(t, want, want + count);
    }
    for (uint64_t i = 0; good && i < count; i++) {
        double got = grt_trial_number(out->dtype, t->bytes + i * size);
        got += fault && i == count / 2 ? 1000.0 : 0.0;
        good = agrees(t, want[i], want[count + i], got);
        if (!good) {
            grt_log(GRT_LOG_DEBUG, "conv %s: number %llu of the check is %g and not %g",
                    t->desc.variant, (unsigned long long)i, got, want[i]);
        }
    }
    free(want);
    return good;
}

struct question {
    const struct conv_case *conv;
    const struct conv_variant *variant;
};

static enum grt_verdict run(const void *subject, bool fault) {
    const struct question *q = subject;
    struct trial t = {.plan = NULL};
    enum grt_verdict verdict = GRT_VERDICT_UNKNOWN;
    struct grt_graph *graph = NULL;
    if (begin(&t, q->conv, q->variant) && q->variant->usable(&t.conv)) {
        graph = grt_graph_create(q->conv->dev, "conv check");
    }
    if (graph) {
        const struct grt_tensor *out = &t.tensors[t.written];
        memset(t.bytes, 0xff, grt_tensor_bytes(out));
        verdict = GRT_VERDICT_WRONG;
        q->variant->record(graph, &t.conv);
        if (grt_buf_write(out->range.buf, out->range.offset, t.bytes, grt_tensor_bytes(out)) &&
            grt_graph_finish(graph) && right(&t, fault)) {
            verdict = GRT_VERDICT_RIGHT;
        }
    }
    grt_graph_destroy(&graph);
    end(&t);
    return verdict;
}

bool conv_trusted(const struct conv_case *c, const struct conv_variant *variant) {
    if (variant->trusted) {
        return true;
    }
    // Kernels differ by how many channels they read at once.
    uint32_t from = c->desc->pass == GRT_CONV_DATA ? c->outputs : c->window.channels;
    char what[96 + CONV_TILE_TEXT], tile[CONV_TILE_TEXT] = "";
    if (variant->tile) {
        variant->tile(c, tile);
    }
    snprintf(what, sizeof what, "%s, %s > %s, %ux%u by %u, %s, %s channels%s%s",
             grt_conv_pass_text(c->desc->pass), grt_dtype_text(c->type), grt_dtype_text(c->out),
             c->window.size, c->window.size, c->window.stride,
             (c->window.channels | c->outputs) % 64 == 0 ? "whole blocks" : "ragged",
             from > 64 ? "many" : "few", tile[0] ? ", " : "", tile);
    const struct question question = {c, variant};
    return grt_check_trusts(c->dev, &(struct grt_check){.op = "conv",
                                                        .variant = variant->name,
                                                        .what = what,
                                                        .run = run,
                                                        .subject = &question});
}
