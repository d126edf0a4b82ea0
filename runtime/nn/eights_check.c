// SPDX-License-Identifier: Apache-2.0
// Whether kernels that read activations in vectors of eight compute right on a device
// (ops/verdict.h): each does a small case of its op, and the kernels that take numbers one by one
// do the same.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "eights.h"
#include "image_ops.h"
#include "ops/trial.h"
#include "ops/verdict.h"

#define IMAGES 3u
#define HEIGHT 6u
#define WIDTH 5u
#define COLS 24u  // three vectors
#define ROWS (IMAGES * HEIGHT * WIDTH)
#define WINDOW 3u
#define PLACES 9u  // of an image, by windows of three with a stride of two

// Tensors of a case. All are filled before a run, since some are added to.
enum { Z, X, H, DH, DZ, IN, OUT, WHICH, WEIGHT, BIAS, DWEIGHT, DBIAS, STATS, SCRATCH, COUNT };

struct trial {
    struct grt_dev *dev;
    struct grt_plan *plan;
    struct grt_tensor tensors[COUNT];
    struct grt_param weight, bias;
    double *values;
    unsigned char *bytes;
};

static const struct grt_window window = {.size = WINDOW,
                                         .stride = 2,
                                         .padding = 1,
                                         .height = HEIGHT,
                                         .width = WIDTH,
                                         .channels = COLS,
                                         .out_height = 3,
                                         .out_width = 3};

static struct grt_block block_of(const struct trial *t) {
    const struct grt_tensor *of = t->tensors;
    return (struct grt_block){.z = &of[Z],
                              .h = &of[H],
                              .x = &of[X],
                              .act = GRT_ACT_RELU,
                              .weight = &t->weight,
                              .bias = &t->bias,
                              .stats = &of[STATS],
                              .by_column = true,
                              .act_last = true,
                              .scratch = &of[SCRATCH]};
}

static void record_block(struct grt_graph *graph, const struct trial *t) {
    const struct grt_block b = block_of(t);
    grt_op_block(graph, &b);
}

static void record_gradient(struct grt_graph *graph, const struct trial *t) {
    struct grt_block b = block_of(t);
    b.x = NULL;
    b.act_last = false;
    b.dh = &t->tensors[DH];
    b.dz = &t->tensors[DZ];
    grt_op_block_backward(graph, &b);
}

static void record_add(struct grt_graph *graph, const struct trial *t) {
    grt_nn_add(graph, &t->tensors[H], &t->tensors[H], &t->tensors[X]);
}

// The weight and the bias stand for the running statistics, and a gradient for the count.
static void record_stats(struct grt_graph *graph, const struct trial *t) {
    const struct grt_param batches = {.master = t->tensors[DBIAS]};
    grt_op_batch_stats(graph, &(struct grt_batch_stats){.x = &t->tensors[Z],
                                                        .stats = &t->tensors[STATS],
                                                        .running_mean = &t->weight,
                                                        .running_var = &t->bias,
                                                        .batches = &batches,
                                                        .from = GRT_STATS_OF_BATCH,
                                                        .scratch = &t->tensors[SCRATCH]});
}

static void record_window(struct grt_graph *graph, const struct trial *t) {
    grt_op_window(graph, &window, GRT_POOL_MAX, &t->tensors[IN], &t->tensors[OUT],
                  &t->tensors[WHICH]);
}

static void record_window_gradient(struct grt_graph *graph, const struct trial *t) {
    record_window(graph, t);
    grt_op_window_backward(graph, &window, GRT_POOL_MAX, &t->tensors[OUT], &t->tensors[WHICH],
                           &t->tensors[IN], false);
}

// What a kernel's op is, and what it writes, as bits.
static const struct {
    const char *stem;
    void (*record)(struct grt_graph *graph, const struct trial *trial);
    uint32_t written;
} ops[] = {
    {"block8", record_block, 1u << H},
    {"block_grad8", record_gradient, 1u << DZ},
    {"block_sums8", record_gradient, 1u << DWEIGHT | 1u << DBIAS},
    {"add_to8", record_add, 1u << H},
    {"batch_sums8", record_stats, 1u << STATS},
    {"window8", record_window, 1u << OUT},
    {"window_grad8", record_window_gradient, 1u << IN},
};
#define OPS (sizeof ops / sizeof *ops)

static bool begin(struct trial *t, enum grt_dtype type) {
    const struct grt_tensor_desc images = {.dtype = type, .shape = {IMAGES, HEIGHT, WIDTH, COLS}};
    const struct grt_tensor_desc rows = {.dtype = type, .shape = {ROWS, COLS}};
    const struct grt_tensor_desc row = {.shape = {COLS}};
    struct grt_tensor_desc descs[COUNT] = {
        [Z] = rows,
        [X] = rows,
        [H] = rows,
        [DH] = rows,
        [DZ] = rows,
        [IN] = images,
        [OUT] = images,
        [WHICH] = images,
        [WEIGHT] = row,
        [BIAS] = row,
        [DWEIGHT] = row,
        [DBIAS] = row,
        [STATS] = {.shape = {2, COLS}},
        [SCRATCH] = {.shape = {grt_block_scratch(ROWS, COLS) / 4}},
    };
    descs[OUT].shape[1] = descs[OUT].shape[2] = WINDOW;
    descs[WHICH] = descs[OUT];
    descs[WHICH].dtype = GRT_U32;
    const struct grt_tensor *planned[COUNT];
    uint64_t most = 0;
    t->plan = grt_plan_create(t->dev);
    for (uint32_t i = 0; t->plan && i < COUNT; i++) {
        descs[i].label = "eights check";
        planned[i] = grt_plan_tensor(t->plan, &descs[i]);
        if (!planned[i]) {
            return false;
        }
        most = grt_tensor_count(planned[i]) > most ? grt_tensor_count(planned[i]) : most;
    }
    if (!t->plan || !grt_plan_alloc(t->plan)) {
        return false;
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        t->tensors[i] = *planned[i];
    }
    t->weight.master = t->tensors[WEIGHT];
    t->weight.grad = t->tensors[DWEIGHT];
    t->bias.master = t->tensors[BIAS];
    t->bias.grad = t->tensors[DBIAS];
    t->values = malloc((size_t)most * sizeof *t->values);
    t->bytes = malloc((size_t)most * 4);
    return t->values && t->bytes;
}

static void end(struct trial *t) {
    grt_plan_destroy(&t->plan);
    free(t->values);
    free(t->bytes);
}

// What the op `number` writes by these kernels, one tensor behind the other; to be freed.
static double *written_by(struct trial *t, uint32_t number, enum grt_eights_by by) {
    uint64_t room = 0, used = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        if (i != WHICH && !grt_trial_fill(&t->tensors[i], i + 1, t->values, t->bytes)) {
            return NULL;
        }
        room += grt_tensor_count(&t->tensors[i]);
    }
    double *numbers = malloc((size_t)room * sizeof *numbers);
    struct grt_graph *graph = numbers ? grt_graph_create(t->dev, "eights check") : NULL;
    bool good = graph != NULL;
    if (graph) {
        t->dev->eights = by;
        ops[number].record(graph, t);
        t->dev->eights = GRT_EIGHTS_TRUSTED;
        good = grt_graph_finish(graph);
    }
    for (uint32_t i = 0; good && i < COUNT; i++) {
        const struct grt_tensor *out = &t->tensors[i];
        uint64_t count = grt_tensor_count(out);
        uint32_t size = grt_dtype_size(out->dtype);
        if (!(ops[number].written >> i & 1)) {
            continue;
        }
        good = grt_buf_read(out->range.buf, out->range.offset, t->bytes, count * size);
        for (uint64_t k = 0; good && k < count; k++) {
            numbers[used++] = grt_trial_number(out->dtype, t->bytes + k * size);
        }
    }
    grt_graph_destroy(&graph);
    if (good) {
        numbers[used] = NAN;  // an end; there are tensors that are not written
        return numbers;
    }
    free(numbers);
    return NULL;
}

struct question {
    struct grt_dev *dev;
    uint32_t number;
    enum grt_dtype type;
    enum grt_eights_by by;
};

// Both round once to the type, from sums whose order differs.
static bool agree(const struct question *q, const double *want, const double *got, bool fault) {
    double unit = q->type == GRT_F16 ? 0x1p-10 : 0x1p-7;
    uint64_t i = 0;
    for (; !isnan(want[i]); i++) {
        double is = got[i] + (fault && i == COLS ? 1000 : 0);
        if (!(fabs(is - want[i]) <= 1.5 * unit * fabs(want[i]) + 1e-4)) {
            grt_log(GRT_LOG_DEBUG, "%s: number %llu of the check is %g and not %g",
                    ops[q->number].stem, (unsigned long long)i, is, want[i]);
            return false;
        }
    }
    return isnan(got[i]);
}

static enum grt_verdict run(const void *subject, bool fault) {
    const struct question *q = subject;
    struct trial t = {.dev = q->dev};
    enum grt_verdict verdict = GRT_VERDICT_UNKNOWN;
    double *want = NULL, *got = NULL;
    if (begin(&t, q->type)) {
        want = written_by(&t, q->number, GRT_EIGHTS_NONE);
        got = want ? written_by(&t, q->number, q->by) : NULL;
        if (want) {
            bool right = got && agree(q, want, got, fault);
            verdict = right ? GRT_VERDICT_RIGHT : GRT_VERDICT_WRONG;
        }
    }
    free(want);
    free(got);
    end(&t);
    return verdict;
}

enum grt_eights_by grt_eights_asked(const struct grt_dev *dev) {
    return dev->eights;
}

bool grt_eights_trusted(struct grt_dev *dev, const char *stem, enum grt_eights_by by,
                        enum grt_dtype type) {
    uint32_t number = 0;
    while (number < OPS && strcmp(ops[number].stem, stem) != 0) {
        number++;
    }
    const struct question question = {dev, number, type, by};
    return number == OPS ||
           grt_check_trusts(dev,
                            &(struct grt_check){.op = stem,
                                                .variant = by == GRT_EIGHTS_PTX ? "ptx" : "vectors",
                                                .what = grt_dtype_text(type),
                                                .run = run,
                                                .subject = &question});
}
