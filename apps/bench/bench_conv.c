// SPDX-License-Identifier: Apache-2.0
// `gpurt bench conv`: convolutions, forward and both ways back, by every variant asked for. Images
// and weights are made on the device, uniform in [-1, 1). A result is compared with sums in double
// precision over the same rounded numbers, at the ends and at random places; and no place may still
// hold what it was poisoned with. What fails its check is not timed.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench_conv.h"
#include "bench/gemm/bench_gemm_case.h"
#include "bench_more.h"
#include "cli/command.h"
#include "cli/talk.h"

#define MOST_RUNS 1024u
#define MAX_EXTENT (1u << 20)

// Layers of ResNet-18 at 32x32, with a stem of 3x3, and at 96x96; rows are filled in.
static const struct bench_conv_shape resnet18[] = {
    {0, 32, 32, 3, 64, 3, 1, 1},    {0, 32, 32, 64, 64, 3, 1, 1},   {0, 32, 32, 64, 128, 3, 2, 1},
    {0, 16, 16, 128, 128, 3, 1, 1}, {0, 16, 16, 128, 256, 3, 2, 1}, {0, 8, 8, 256, 256, 3, 1, 1},
    {0, 8, 8, 256, 512, 3, 2, 1},   {0, 4, 4, 512, 512, 3, 1, 1},   {0, 96, 96, 3, 64, 7, 2, 3},
    {0, 24, 24, 64, 64, 3, 1, 1},   {0, 24, 24, 64, 128, 3, 2, 1},  {0, 24, 24, 64, 128, 1, 2, 0},
    {0, 12, 12, 128, 128, 3, 1, 1}, {0, 6, 6, 256, 256, 3, 1, 1},   {0, 3, 3, 512, 512, 3, 1, 1},
};
#define LAYERS (sizeof resnet18 / sizeof *resnet18)

// ---- options ----

static bool read_extent(const char **at, uint32_t *value) {
    uint64_t number = 0;
    const char *digits = *at;
    while (isdigit((unsigned char)**at) && number <= MAX_EXTENT) {
        number = number * 10 + (uint64_t)(*(*at)++ - '0');
    }
    *value = (uint32_t)number;
    return *at > digits && number >= 1 && number <= MAX_EXTENT;
}

static bool read_shape(const char **at, struct bench_conv_shape *s) {
    uint32_t *const fields[] = {&s->rows, &s->height, &s->width, &s->channels, &s->outputs};
    *s = (struct bench_conv_shape){0};
    for (size_t i = 0; i < 5; i++) {
        if (i > 0 && *(*at)++ != 'x') {
            return false;
        }
        if (!read_extent(at, fields[i])) {
            return false;
        }
    }
    return true;
}

// Fills shapes and their count, which lie one behind the other.
static bool read_shapes(const char *text, void *into, char why[RANGES_WHY]) {
    struct bench_conv *b =
        (struct bench_conv *)((char *)into - offsetof(struct bench_conv, shapes));
    b->shape_count = 0;
    for (const char *at = text;; at++) {
        const char *begin = at;
        if (b->shape_count == BENCH_CONV_SHAPES || !read_shape(&at, &b->shapes[b->shape_count++]) ||
            (*at && *at != ',')) {
            snprintf(why, RANGES_WHY,
                     "at character %td: NxHxWxCxK is wanted, as in 256x24x24x64x64, each from 1 to "
                     "%u, and no more than %d of them",
                     begin - text + 1, MAX_EXTENT, BENCH_CONV_SHAPES);
            return false;
        }
        if (!*at) {
            return true;
        }
    }
}

static bool read_number(const char *text, void *into, char why[RANGES_WHY]) {
    uint64_t value = 0;
    bool ok = options_whole(text, 1, 65536, &value, why);
    *(uint32_t *)into = (uint32_t)value;
    return ok;
}

// One more than what is read, so that 0 stands for nothing given.
static bool read_padding(const char *text, void *into, char why[RANGES_WHY]) {
    uint64_t value = 0;
    bool ok = options_whole(text, 0, 65535, &value, why);
    *(uint32_t *)into = (uint32_t)value + 1;
    return ok;
}

#define X(name, text) GRT_##name,
static const enum grt_dtype precisions[] = {BENCH_GEMM_PRECISIONS(X)};
#undef X
#define PRECISIONS (sizeof precisions / sizeof *precisions)

static bool read_precisions(const char *text, void *into, char why[RANGES_WHY]) {
#define X(name, text) text,
    static const char *const names[] = {BENCH_GEMM_PRECISIONS(X)};
    return options_bits(text, names, PRECISIONS, into, why);
}

static bool read_passes(const char *text, void *into, char why[RANGES_WHY]) {
    static const char *const names[] = {GRT_CONV_PASSES(X)};
#undef X
    return options_bits(text, names, GRT_CONV_PASS_COUNT, into, why);
}

#define AT(field) offsetof(struct bench_conv, field)
static const struct option_row options[] = {
    {.name = "shape",
     .value = "NxHxWxCxK,...",
     .help = "images, height, width, channels, outputs (default: ResNet-18)",
     .read = read_shapes,
     .at = AT(shapes)},
    {.name = "kernel",
     .value = "SIZE",
     .help = "size of the windows of these shapes, both ways",
     .fallback = "3",
     .read = read_number,
     .at = AT(size)},
    {.name = "stride",
     .value = "STEP",
     .help = "pixels from a window to the next",
     .fallback = "1",
     .read = read_number,
     .at = AT(stride)},
    {.name = "padding",
     .value = "PIXELS",
     .help = "zeros around an image (default: half of the window)",
     .read = read_padding,
     .at = AT(padding)},
    {.name = "images",
     .value = "COUNT",
     .help = "images of ResNet-18's layers (default: 1024, on a CPU 4)",
     .read = read_number,
     .at = AT(rows)},
    {.name = "precision",
     .value = "f32,f16,bf16",
     .help = "types (default: f16, on a CPU f32)",
     .read = read_precisions,
     .at = AT(precisions)},
    {.name = "pass",
     .value = "forward,data,weight",
     .help = "forward, and the gradients of images and of weights",
     .fallback = "forward,data,weight",
     .read = read_passes,
     .at = AT(passes)},
    {.name = "variant",
     .value = "auto|all|NAME",
     .help = "the best kernel, every one, or this",
     .fallback = "auto",
     .read = options_read_text,
     .at = AT(variants)},
};

// ---- one convolution ----

static struct grt_conv2d_desc desc_of(const struct bench_conv_run *r, const char *variant) {
    return (struct grt_conv2d_desc){.pass = r->pass,
                                    .x = &r->tensors[BENCH_CONV_X],
                                    .w = &r->tensors[BENCH_CONV_W],
                                    .y = &r->tensors[BENCH_CONV_Y],
                                    .stride = r->s.stride,
                                    .padding = r->s.padding,
                                    .scratch =
                                        r->scratch ? r->scratch->range : (struct grt_range){0},
                                    .variant = variant};
}

static uint32_t places_of(const struct bench_conv_shape *s, uint32_t extent) {
    return (extent + 2 * s->padding - s->size) / s->stride + 1;
}

static void end(struct bench_conv_run *r) {
    grt_graph_destroy(&r->timing.graph);
    for (int i = 0; i < 3; i++) {
        free(r->host[i]);
        r->host[i] = NULL;
    }
    grt_plan_destroy(&r->plan);
}

// The tensors as they will be; their ranges follow.
static void shape_tensors(struct bench_conv_run *r) {
    const struct bench_conv_shape *s = &r->s;
    const uint64_t shapes[3][4] = {
        {s->rows, s->height, s->width, s->channels},
        {s->outputs, s->size, s->size, s->channels},
        {s->rows, places_of(s, s->height), places_of(s, s->width), s->outputs}};
    static const char *const labels[] = {"x", "w", "y"};
    r->written = r->pass == GRT_CONV_FORWARD ? BENCH_CONV_Y
                 : r->pass == GRT_CONV_DATA  ? BENCH_CONV_X
                                             : BENCH_CONV_W;
    for (int i = 0; i < 3; i++) {
        struct grt_tensor *t = &r->tensors[i];
        *t = (struct grt_tensor){.rank = 4, .dtype = r->type};
        snprintf(t->label, sizeof t->label, "%s", labels[i]);
        memcpy(t->shape, shapes[i], sizeof shapes[i]);
    }
    if (r->pass == GRT_CONV_WEIGHT) {
        r->tensors[BENCH_CONV_W].dtype = GRT_F32;
    }
}

static enum bench_outcome begin(struct bench_conv_run *r) {
    struct grt_dev *dev = r->b->bench.dev;
    struct grt_tensor *planned[3];
    enum bench_outcome outcome = BENCH_BROKEN;
    struct grt_conv2d_desc desc = desc_of(r, r->variant);
    uint64_t bytes = grt_op_conv2d_scratch(dev, &desc);
    r->plan = grt_plan_create(dev);
    if (!r->plan) {
        return bench_failure();
    }
    for (int i = 0; i < 3; i++) {
        struct grt_tensor_desc t = {.label = r->tensors[i].label, .dtype = r->tensors[i].dtype};
        memcpy(t.shape, r->tensors[i].shape, 4 * sizeof *t.shape);
        planned[i] = grt_plan_tensor(r->plan, &t);
    }
    r->scratch = bytes ? grt_plan_tensor(r->plan, grt_tensor_desc(.label = "scratch",
                                                                  .shape = {(bytes + 3) / 4}))
                       : NULL;
    if (!grt_plan_alloc(r->plan)) {
        outcome = bench_failure();
        goto undo;
    }
    for (uint32_t i = 0; i < 3; i++) {
        struct grt_tensor *t = &r->tensors[i];
        t->range = planned[i]->range;
        r->host[i] = malloc(grt_tensor_bytes(t));
        if (!r->host[i]) {
            talk_error("conv: no host memory for the operands");
            outcome = BENCH_TOO_LARGE;
            goto undo;
        }
        if (i != r->written &&
            (!bench_fill_random(&r->b->bench, t, i + 1) ||
             !grt_buf_read(t->range.buf, t->range.offset, r->host[i], grt_tensor_bytes(t)))) {
            outcome = bench_failure();
            goto undo;
        }
    }
    return BENCH_GOOD;
undo:
    end(r);
    return outcome;
}

static struct grt_graph *record(void *context, uint32_t count) {
    struct bench_conv_run *r = context;
    struct grt_conv2d_desc desc = desc_of(r, r->variant);
    struct grt_graph *graph = grt_graph_create(r->b->bench.dev, "bench conv");
    if (!graph) {
        return NULL;
    }
    if (r->timing.device_timer) {
        grt_graph_phase(graph, r->variant);
    }
    for (uint32_t i = 0; i < count; i++) {
        grt_op_conv2d(graph, &desc);
    }
    if (!grt_graph_bake(graph)) {
        grt_graph_destroy(&graph);
    }
    return graph;
}

// ---- rows ----

// The name of the best product of this type: its instruction is what the device has.
static const char *instruction(const struct bench_conv_run *r) {
    const struct grt_tensor t = {.dtype = r->type, .rank = 2, .shape = {4096, 4096}};
    const char *name =
        grt_gemm_variant(r->b->bench.dev, grt_gemm_desc(.a = &t, .b = &t, .c = &t), 0);
    return name ? name : "plain";
}

static bool print_one(struct bench_conv_run *r, enum bench_outcome outcome,
                      const struct stats *stats) {
    const struct bench_conv_shape *s = &r->s;
    struct bench *bench = &r->b->bench;
    const uint64_t *y = r->tensors[BENCH_CONV_Y].shape;
    double flops =
        2.0 * (double)(y[0] * y[1] * y[2]) * s->size * s->size * s->channels * s->outputs;
    double rate = stats->median > 0 ? flops / stats->median : 0;
    double peak = outcome == BENCH_GOOD ? bench_peak(bench, instruction(r), r->type) : 0;
    char text[64], window[32];
    snprintf(text, sizeof text, "%ux%ux%ux%ux%u", s->rows, s->height, s->width, s->channels,
             s->outputs);
    snprintf(window, sizeof window, "%ux%u/%u+%u", s->size, s->size, s->stride, s->padding);
    struct table_cell cells[BENCH_COLUMN_COUNT] = {
        [BENCH_KIND] = TABLE_CELL(.text = "conv"),
        [BENCH_CONV] = TABLE_CELL(.text = text),
        [BENCH_WINDOW] = TABLE_CELL(.text = window),
        [BENCH_TEST] = TABLE_CELL(.text = grt_conv_pass_text(r->pass)),
        [BENCH_PRECISION] = TABLE_CELL(.text = grt_dtype_text(r->type)),
        [BENCH_VARIANT] = TABLE_CELL(.text = r->variant),
        [BENCH_MS] = TABLE_CELL(.number = 1e3 * stats->median),
        [BENCH_GFLOPS] = TABLE_CELL(.number = rate / 1e9),
        [BENCH_TFLOPS] = TABLE_CELL(.number = rate / 1e12),
        [BENCH_PEAK] = {.known = peak > 0 && rate <= peak, .number = peak > 0 ? rate / peak : 0},
        [BENCH_ERROR] = {.known = outcome == BENCH_GOOD, .number = r->error},
    };
    return bench_row(bench, cells, outcome, stats, r->timing.device_timer);
}

static bool run_variant(struct bench_conv_run *r) {
    struct bench *bench = &r->b->bench;
    struct stats stats = {0};
    bench_progress_row(&bench->progress, "conv: %ux%ux%ux%ux%u %s by %s", r->s.rows, r->s.height,
                       r->s.width, r->s.channels, r->s.outputs, grt_conv_pass_text(r->pass),
                       r->variant);
    enum bench_outcome outcome = begin(r);
    if (outcome == BENCH_GOOD) {
        r->timing = (struct bench_timing){
            .replays = 1, .device_timer = grt_dev_info(bench->dev)->caps.timestamps != 0};
        r->timing.graph = record(r, 1);
        outcome = r->timing.graph ? bench_conv_check(r) : bench_failure();
        if (outcome == BENCH_GOOD) {
            r->count = bench_fill_run(&r->timing, MOST_RUNS, record, r);
            outcome = r->count && bench_time(bench, &r->timing, &stats) ? BENCH_GOOD : BENCH_BROKEN;
        }
        if (outcome == BENCH_GOOD) {
            stats.median /= r->count;
        }
    }
    bool good = print_one(r, outcome, &stats);
    end(r);
    return good;
}

// All variants asked for of one pass.
static bool run_pass(struct bench_conv_run *r) {
    struct bench *bench = &r->b->bench;
    const char *asked = r->b->variants;
    bool every = strcmp(asked, "all") == 0, any = false, good = true;
    shape_tensors(r);
    r->scratch = NULL;
    bool one = every || strcmp(asked, "auto") == 0;
    for (uint32_t i = 0; good && (every || i == 0); i++) {
        struct grt_conv2d_desc desc = desc_of(r, one ? NULL : asked);
        r->variant = grt_conv2d_variant(bench->dev, &desc, i);
        if (!r->variant) {
            break;
        }
        any = true;
        good = run_variant(r);
        shape_tensors(r);
        r->scratch = NULL;
    }
    if (!any) {
        talk_error("conv: no variant '%s' for this on %s", asked,
                   grt_dev_info(bench->dev)->selector);
        r->variant = asked;
        return print_one(r, BENCH_UNSUITED, &(struct stats){0});
    }
    return good;
}

static void default_shapes(struct bench_conv *b, bool software) {
    for (size_t i = 0; i < LAYERS && b->shape_count == i; i++) {
        b->shapes[b->shape_count] = resnet18[i];
        b->shapes[b->shape_count++].rows = b->rows ? b->rows : software ? 4 : 1024;
    }
}

static bool is_whole(const struct bench_conv_shape *s) {
    if (s->padding < s->size && s->size <= s->height + 2 * s->padding &&
        s->size <= s->width + 2 * s->padding) {
        return true;
    }
    talk_error("conv: a window of %ux%u with padding %u does not fit into %ux%u", s->size, s->size,
               s->padding, s->height, s->width);
    return false;
}

static bool walk(struct bench_conv *b) {
    bool software = grt_dev_info(b->bench.dev)->caps.software != 0;
    uint64_t shown = BENCH_BIT(CONV) | BENCH_BIT(WINDOW) | BENCH_BIT(TEST) | BENCH_BIT(PRECISION) |
                     BENCH_BIT(VARIANT) | BENCH_BIT(MS) | BENCH_BIT(PEAK) | BENCH_BIT(SPREAD) |
                     BENCH_BIT(SAMPLES) | BENCH_BIT(ERROR) | BENCH_BIT(TIMER) | BENCH_BIT(CHECK);
    shown |= software ? BENCH_BIT(GFLOPS) : BENCH_BIT(TFLOPS);
    if (b->shape_count == 0) {
        default_shapes(b, software);
    }
    b->precisions = b->precisions ? b->precisions : software ? 1 : 2;
    if (!bench_section(&b->bench, "conv", shown)) {
        return false;
    }
    bench_progress_plan(&b->bench.progress, b->shape_count * GRT_CONV_PASS_COUNT, b->bench.seconds);
    for (size_t i = 0; i < b->shape_count * PRECISIONS * GRT_CONV_PASS_COUNT; i++) {
        uint32_t pass = (uint32_t)(i % GRT_CONV_PASS_COUNT);
        uint32_t type = (uint32_t)(i / GRT_CONV_PASS_COUNT % PRECISIONS);
        struct bench_conv_run r = {.b = b,
                                   .s = b->shapes[i / GRT_CONV_PASS_COUNT / PRECISIONS],
                                   .pass = (enum grt_conv_pass)pass,
                                   .type = precisions[type]};
        if (!(b->passes >> pass & 1) || !(b->precisions >> type & 1)) {
            continue;
        }
        if (r.s.size == 0) {
            r.s.size = b->size;
            r.s.stride = b->stride;
            r.s.padding = b->padding ? b->padding - 1 : b->size / 2;
        }
        if (!is_whole(&r.s)) {
            b->bench.unfit = true;
            return false;
        }
        if (!run_pass(&r)) {
            return false;
        }
    }
    return true;
}

static bool run(struct bench *bench) {
    return walk((struct bench_conv *)bench);
}

int bench_conv(int argc, char **argv) {
    struct bench_conv b = {0};
    return bench_alone(&b.bench,
                       &(struct bench_alone){.verb = "bench conv",
                                             .about = "Measures convolutions, checked against sums "
                                                      "in double precision.\n",
                                             .list = OPTION_LIST("Options of conv", options),
                                             .run = run},
                       argc, argv);
}
