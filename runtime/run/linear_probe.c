// SPDX-License-Identifier: Apache-2.0
// A linear layer on frozen features, trained by the same learner as any network.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gpurt/buffer.h"
#include "gpurt/device.h"
#include "gpurt/features.h"

#define EPOCHS 100
#define RATE 0.003
#define BATCH 256u

struct probe {
    struct grt_learner *learner;
    struct grt_buf *x, *y;
    uint64_t width, *order;
    uint32_t classes, batch;
    double *mean, *over;  // 1 / deviation
    uint64_t draws;
};

static struct grt_module *make(const void *of) {
    return grt_linear_create(of);
}

// Each number over the bank; one that never changes becomes 0.
static void measure(struct probe *p, const struct grt_features *f) {
    for (uint64_t k = 0; k < f->width; k++) {
        double sum = 0, squares = 0;
        for (uint64_t i = 0; i < f->rows; i++) {
            sum += (double)f->x[i * f->width + k];
        }
        p->mean[k] = sum / (double)f->rows;
        for (uint64_t i = 0; i < f->rows; i++) {
            double d = (double)f->x[i * f->width + k] - p->mean[k];
            squares += d * d;
        }
        double deviation = sqrt(squares / (double)f->rows);
        p->over[k] = deviation > 1e-12 * fabs(p->mean[k]) && deviation > 0 ? 1 / deviation : 0;
    }
}

// A number below `count`, by splitmix64.
static uint64_t draw(struct probe *p, uint64_t count) {
    uint64_t z = (p->draws += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (z ^ (z >> 31)) % count;
}

static void shuffle(struct probe *p, uint64_t rows) {
    for (uint64_t i = rows; i > 1; i--) {
        uint64_t other = draw(p, i), was = p->order[i - 1];
        p->order[i - 1] = p->order[other];
        p->order[other] = was;
    }
}

static bool train(struct probe *p, const struct grt_features *f, uint32_t epochs) {
    struct grt_graph *graph = grt_learner_step(
        p->learner, grt_step_desc(.rows = p->batch, .x = {p->x, 0, 0}, .y = {p->y, 0, 0}));
    bool good = graph != NULL;
    for (uint32_t e = 0; good && e < epochs; e++) {
        shuffle(p, f->rows);
        for (uint64_t first = 0; good && first + p->batch <= f->rows; first += p->batch) {
            float *x = grt_buf_host(p->x);
            uint32_t *y = grt_buf_host(p->y);
            for (uint32_t i = 0; i < p->batch; i++) {
                uint64_t row = p->order[first + i];
                for (uint64_t k = 0; k < p->width; k++) {
                    double v = (double)f->x[row * p->width + k] - p->mean[k];
                    x[i * p->width + k] = (float)(v * p->over[k]);
                }
                y[i] = f->classes[row];
            }
            good = grt_graph_finish(graph);
        }
    }
    grt_graph_destroy(&graph);
    return good;
}

// The weights of the layer, [classes][width] and [classes].
static float *read(const struct probe *p, uint32_t i) {
    const struct grt_tensor *t = grt_learner_tensor(p->learner, GRT_TENSOR_PARAM, i, NULL);
    float *numbers = t ? malloc(grt_tensor_bytes(t)) : NULL;
    if (numbers && !grt_buf_read(t->range.buf, t->range.offset, numbers, grt_tensor_bytes(t))) {
        free(numbers);
        numbers = NULL;
    }
    return numbers;
}

static bool judge(const struct probe *p, const struct grt_features *f, double *accuracy) {
    float *weights = read(p, 0), *bias = read(p, 1);
    uint64_t right = 0;
    for (uint64_t i = 0; weights && bias && i < f->rows; i++) {
        uint32_t best = 0;
        double most = 0;
        for (uint32_t c = 0; c < p->classes; c++) {
            double sum = (double)bias[c];
            for (uint64_t k = 0; k < p->width; k++) {
                double v = ((double)f->x[i * p->width + k] - p->mean[k]) * p->over[k];
                sum += (double)weights[c * p->width + k] * v;
            }
            best = c == 0 || sum > most ? c : best;
            most = best == c ? sum : most;
        }
        right += best == f->classes[i];
    }
    *accuracy = (double)right / (double)f->rows;
    bool good = weights && bias;
    free(weights);
    free(bias);
    return good;
}

static bool begin(struct probe *p, struct grt_dev *dev, const struct grt_features *bank,
                  const struct grt_linear_probe_desc *d, uint32_t epochs) {
    struct grt_optim_desc optim = grt_optim_defaults(GRT_OPTIM_ADAMW);
    struct grt_linear_desc linear = {.outputs = p->classes};
    optim.lr = d && d->learning_rate > 0 ? d->learning_rate : RATE;
    optim.schedule = GRT_SCHEDULE_COSINE;
    optim.total = (uint32_t)(epochs * (bank->rows / p->batch));
    p->learner = grt_learner_create(
        dev, grt_learner_desc(.make = make, .of = &linear, .input = {1, {bank->width}},
                              .outputs = p->classes, .loss = GRT_LOSS_CROSS_ENTROPY, .optim = optim,
                              .batch = p->batch, .seed = d ? d->seed : 0));
    p->x = grt_buf_create(dev, grt_buf_desc(.size = p->batch * p->width * 4, .kind = GRT_BUF_UPLOAD,
                                            .label = "features"));
    p->y = grt_buf_create(
        dev, grt_buf_desc(.size = p->batch * 4, .kind = GRT_BUF_UPLOAD, .label = "classes"));
    return p->learner && p->x && p->y && grt_learner_alloc(p->learner);
}

bool grt_linear_probe(struct grt_dev *dev, const struct grt_features *bank,
                      const struct grt_features *queries, const struct grt_linear_probe_desc *d,
                      double *accuracy) {
    if (!dev || !bank || !queries || !accuracy || !bank->classes || !queries->classes ||
        bank->rows == 0 || queries->rows == 0 || bank->width != queries->width) {
        return grt_fail(GRT_INVALID,
                        "linear probe: a bank and queries of one width are wanted, and "
                        "their classes");
    }
    uint32_t epochs = d && d->epochs > 0 ? d->epochs : EPOCHS;
    struct probe p = {.width = bank->width, .draws = d ? d->seed : 0};
    // Eight steps an epoch at least, of small banks too.
    p.batch = bank->rows < 8 * BATCH ? (uint32_t)((bank->rows + 7) / 8) : BATCH;
    for (uint64_t i = 0; i < bank->rows; i++) {
        p.classes = bank->classes[i] >= p.classes ? bank->classes[i] + 1 : p.classes;
    }
    p.mean = malloc(p.width * sizeof *p.mean);
    p.over = malloc(p.width * sizeof *p.over);
    p.order = malloc(bank->rows * sizeof *p.order);
    bool good = p.mean && p.over && p.order;
    if (!good) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a probe");
    } else {
        for (uint64_t i = 0; i < bank->rows; i++) {
            p.order[i] = i;
        }
        measure(&p, bank);
        good = begin(&p, dev, bank, d, epochs) && train(&p, bank, epochs) &&
               judge(&p, queries, accuracy);
    }
    grt_learner_destroy(&p.learner);
    grt_buf_destroy(&p.x);
    grt_buf_destroy(&p.y);
    free(p.mean);
    free(p.over);
    free(p.order);
    return good;
}
