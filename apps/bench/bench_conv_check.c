// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "bench_conv.h"
#include "cli/talk.h"

#define PLACES 64
#define POISON 0xff  // of every byte: NaN in every type

static double element(const struct bench_conv_run *r, uint32_t which, uint64_t i) {
    enum grt_dtype dtype = r->tensors[which].dtype;
    return dtype == GRT_F32 ? (double)((const float *)r->host[which])[i]
                            : (double)grt_f32_of_16(dtype, ((const uint16_t *)r->host[which])[i]);
}

struct sum {
    double value, squares, terms;
};

static void add(struct sum *sum, double term) {
    sum->value += term;
    sum->squares += term * term;
    sum->terms += 1;
}

// The pixel of x that tap (ky, kx) of pixel (oy, ox) of y reads, or -1.
static int64_t pixel_at(const struct bench_conv_run *r, uint64_t image, uint64_t oy, uint64_t ox,
                        uint64_t ky, uint64_t kx) {
    const struct bench_conv_shape *s = &r->s;
    int64_t y = (int64_t)(oy * s->stride + ky) - s->padding;
    int64_t x = (int64_t)(ox * s->stride + kx) - s->padding;
    if (y < 0 || x < 0 || y >= s->height || x >= s->width) {
        return -1;
    }
    return ((int64_t)image * s->height + y) * s->width + x;
}

static struct sum sum_forward(const struct bench_conv_run *r, uint64_t at) {
    const struct bench_conv_shape *s = &r->s;
    const uint64_t *y = r->tensors[BENCH_CONV_Y].shape;
    uint64_t o = at % y[3], ox = at / y[3] % y[2], oy = at / y[3] / y[2] % y[1];
    struct sum sum = {0};
    for (uint64_t tap = 0; tap < (uint64_t)s->size * s->size; tap++) {
        int64_t pixel = pixel_at(r, at / y[3] / y[2] / y[1], oy, ox, tap / s->size, tap % s->size);
        for (uint64_t c = 0; pixel >= 0 && c < s->channels; c++) {
            add(&sum,
                element(r, BENCH_CONV_X, (uint64_t)pixel * s->channels + c) *
                    element(r, BENCH_CONV_W, (o * s->size * s->size + tap) * s->channels + c));
        }
    }
    return sum;
}

static struct sum sum_data(const struct bench_conv_run *r, uint64_t at) {
    const struct bench_conv_shape *s = &r->s;
    const uint64_t *y = r->tensors[BENCH_CONV_Y].shape;
    uint64_t c = at % s->channels, left = at / s->channels % s->width;
    uint64_t top = at / s->channels / s->width % s->height;
    uint64_t image = at / s->channels / s->width / s->height;
    struct sum sum = {0};
    for (uint64_t tap = 0; tap < (uint64_t)s->size * s->size; tap++) {
        int64_t down = (int64_t)(top + s->padding) - (int64_t)(tap / s->size);
        int64_t across = (int64_t)(left + s->padding) - (int64_t)(tap % s->size);
        if (down < 0 || across < 0 || down % s->stride != 0 || across % s->stride != 0 ||
            (uint64_t)down / s->stride >= y[1] || (uint64_t)across / s->stride >= y[2]) {
            continue;
        }
        uint64_t pixel =
            (image * y[1] + (uint64_t)down / s->stride) * y[2] + (uint64_t)across / s->stride;
        for (uint64_t o = 0; o < s->outputs; o++) {
            add(&sum,
                element(r, BENCH_CONV_Y, pixel * s->outputs + o) *
                    element(r, BENCH_CONV_W, (o * s->size * s->size + tap) * s->channels + c));
        }
    }
    return sum;
}

static struct sum sum_weight(const struct bench_conv_run *r, uint64_t at) {
    const struct bench_conv_shape *s = &r->s;
    const uint64_t *y = r->tensors[BENCH_CONV_Y].shape;
    uint64_t c = at % s->channels, tap = at / s->channels % ((uint64_t)s->size * s->size);
    uint64_t o = at / s->channels / ((uint64_t)s->size * s->size);
    struct sum sum = {0};
    for (uint64_t i = 0; i < y[0] * y[1] * y[2]; i++) {
        int64_t pixel =
            pixel_at(r, i / y[2] / y[1], i / y[2] % y[1], i % y[2], tap / s->size, tap % s->size);
        if (pixel >= 0) {
            add(&sum, element(r, BENCH_CONV_Y, i * s->outputs + o) *
                          element(r, BENCH_CONV_X, (uint64_t)pixel * s->channels + c));
        }
    }
    return sum;
}

// In units of what is allowed, as bench_gemm_check() allows it. On the way back by patches each
// product of a tap is rounded before they are added, and so may be each here.
static double error_at(const struct bench_conv_run *r, uint64_t at) {
    struct sum sum = r->written == BENCH_CONV_Y   ? sum_forward(r, at)
                     : r->written == BENCH_CONV_X ? sum_data(r, at)
                                                  : sum_weight(r, at);
    enum grt_dtype out = r->tensors[r->written].dtype;
    double allowed =
        (r->type == GRT_F32 ? 4 : 32) * 0x1p-24 * sqrt(sum.terms + 1) * sqrt(sum.squares) +
        0x1p-126;
    double unit = out == GRT_F16 ? 0x1p-11 : out == GRT_BF16 ? 0x1p-8 : 0;
    bool rounded = r->pass == GRT_CONV_DATA && strcmp(r->variant, "patches") == 0;
    allowed += unit * fabs(sum.value) + (unit > 0 ? 0x1p-25 : 0) +
               (rounded ? 2 * unit * sqrt(sum.squares) : 0);
    return fabs(element(r, r->written, at) - sum.value) / allowed;
}

// The first number that was never written, or their count.
static uint64_t untouched(const struct grt_tensor *t, const void *numbers) {
    const uint32_t *wide = numbers;
    const uint16_t *narrow = numbers;
    uint64_t count = grt_tensor_count(t), i = 0;
    if (grt_dtype_size(t->dtype) == 4) {
        while (i < count && wide[i] != UINT32_MAX) {
            i++;
        }
        return i;
    }
    while (i < count && narrow[i] != UINT16_MAX) {
        i++;
    }
    return i;
}

enum bench_outcome bench_conv_check(struct bench_conv_run *r) {
    const struct grt_tensor *t = &r->tensors[r->written];
    memset(r->host[r->written], POISON, grt_tensor_bytes(t));
    if (!grt_buf_write(t->range.buf, t->range.offset, r->host[r->written], grt_tensor_bytes(t)) ||
        !grt_graph_finish(r->timing.graph) ||
        !grt_buf_read(t->range.buf, t->range.offset, r->host[r->written], grt_tensor_bytes(t))) {
        return BENCH_BROKEN;
    }
    return bench_conv_compare(r);
}

enum bench_outcome bench_conv_compare(struct bench_conv_run *r) {
    const struct grt_tensor *t = &r->tensors[r->written];
    uint64_t count = grt_tensor_count(t), random = 88172645463325252u;
    uint64_t hole = untouched(t, r->host[r->written]);
    if (hole < count) {
        talk_error("conv %s: number %llu was not written", r->variant, (unsigned long long)hole);
        return BENCH_WRONG;
    }
    // Sums over all pixels are long.
    uint32_t places = r->pass == GRT_CONV_WEIGHT ? PLACES / 8 : PLACES;
    r->error = 0;
    for (uint32_t place = 0; place < places; place++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        uint64_t at = place == 0 || count < 2 ? 0 : place == 1 ? count - 1 : random % count;
        double here = error_at(r, at);
        r->error = here <= r->error ? r->error : here;  // a NaN is taken, and stays
        if (!(here <= 1)) {
            talk_error("conv %s: number %llu is %g, off by %.3g times what is allowed", r->variant,
                       (unsigned long long)at, element(r, r->written, at), here);
            return BENCH_WRONG;
        }
    }
    return BENCH_GOOD;
}
