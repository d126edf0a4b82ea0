// SPDX-License-Identifier: Apache-2.0
// Trained models at work: evaluation and prediction.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "supervised_parts.h"

// A model, its data and the way from one to the other.
struct work {
    struct grt_task task;
    struct grt_learner *learner;
    struct grt_loader *loader;
};

static void finish(struct work *w) {
    grt_learner_destroy(&w->learner);
    grt_loader_destroy(&w->loader);
    grt_task_close(&w->task);
}

static bool begin(struct work *w, struct grt_dev *dev, const struct grt_archive *model,
                  const struct grt_config *config, enum grt_part part, bool targets) {
    *w = (struct work){0};
    if (!grt_task_open_trained(&w->task, model, config, grt_dev_profile(dev), targets)) {
        return false;
    }
    uint64_t rows = w->task.info.part_rows[part];
    if (rows == 0) {
        grt_fail(GRT_BAD_DATA, "%s has no samples for that", w->task.config.data);
        goto undo;
    }
    if (rows < w->task.learner.batch) {
        w->task.learner.batch = (uint32_t)rows;
    }
    // Each row is read once: nothing to keep.
    grt_config_set(&w->task.config, GRT_CONFIG_CACHE, "none");
    w->learner = grt_learner_create(dev, &w->task.learner);
    if (!w->learner || !grt_learner_alloc(w->learner) || !grt_task_load_model(w->learner, model)) {
        goto undo;
    }
    w->loader = grt_task_loader(&w->task, dev, part, GRT_FEED_HELD);
    if (w->loader) {
        return true;
    }
undo:
    finish(w);
    return false;
}

bool grt_evaluate(struct grt_dev *dev, const struct grt_archive *model,
                  const struct grt_config *config, enum grt_part part, bool (*stop)(void),
                  struct grt_evaluation *evaluation) {
    struct work w;
    struct grt_feed_done done = {0};
    if (!dev || !model || !config || !evaluation || (unsigned)part >= GRT_PART_COUNT) {
        return grt_fail(GRT_INVALID, "a device, a model and a config are wanted");
    }
    if (!begin(&w, dev, model, config, part, true)) {
        return false;
    }
    if (!grt_loss_has_targets(w.task.learner.loss)) {
        finish(&w);
        return grt_fail(GRT_CONFIG, "a network that was trained without targets has no loss on "
                                    "samples: `gpurt eval knn` and `gpurt eval linear` try it");
    }
    double start = grt_seconds();
    struct grt_feed *feed = grt_feed_create(&(struct grt_feed_desc){.dev = dev,
                                                                    .learner = w.learner,
                                                                    .loader = w.loader,
                                                                    .batch = w.task.learner.batch,
                                                                    .evaluate = true});
    bool good = feed != NULL;
    while (good && !done.epoch_ended) {
        good = !(stop && stop()) && grt_feed_run(feed, GRT_FEED_WINDOW, true, &done);
    }
    struct grt_learn_state state;
    good = good && grt_learner_state(w.learner, &state);
    if (good) {
        supervised_tally(w.learner, &state, evaluation);
    }
    evaluation->seconds = grt_seconds() - start;
    grt_feed_destroy(&feed);
    finish(&w);
    return good;
}

// ---- prediction ----

// The place of the largest of some numbers, the first of equals.
static uint32_t largest(const float *numbers, uint64_t count) {
    uint32_t at = 0;
    for (uint32_t i = 1; i < count; i++) {
        at = numbers[i] > numbers[at] ? i : at;
    }
    return at;
}

static bool add_classes(struct grt_archive *archive, uint64_t rows, uint64_t outputs) {
    struct grt_archive_tensor *classes = grt_archive_add(archive, "class", GRT_U32, 1, &rows, NULL);
    const float *y = grt_archive_find(archive, "y")->data;
    for (uint64_t i = 0; classes && i < rows; i++) {
        ((uint32_t *)classes->data)[i] = largest(y + i * outputs, outputs);
    }
    return classes != NULL;
}

// What the outputs say of each class: softmax over a row of classes, else a sigmoid for each.
static bool add_probabilities(struct grt_archive *archive, uint64_t rows, uint64_t outputs,
                              bool classes) {
    const uint64_t shape[2] = {rows, outputs};
    struct grt_archive_tensor *added =
        grt_archive_add(archive, "probability", GRT_F32, 2, shape, NULL);
    const float *y = grt_archive_find(archive, "y")->data;
    float *p = added ? added->data : NULL;
    for (uint64_t i = 0; p && i < rows; i++, y += outputs, p += outputs) {
        double most = classes ? (double)y[largest(y, outputs)] : 0;
        double sum = 0;
        for (uint64_t k = 0; classes && k < outputs; k++) {
            sum += exp((double)y[k] - most);
        }
        for (uint64_t k = 0; k < outputs; k++) {
            p[k] = (float)(classes ? exp((double)y[k] - most) / sum : 1 / (1 + exp(-(double)y[k])));
        }
    }
    return added != NULL;
}

// Told of each batch, with what the model gave for it.
typedef void batch_fn(void *context, const struct work *w, const struct grt_batch *batch,
                      const float *y);

// Images of a batch, from right to left.
static void mirror(const struct work *w, uint64_t rows, float *x) {
    const struct grt_dataset_info *info = &w->task.info;
    uint64_t width = info->points / info->height, channels = info->features;
    for (uint64_t line = 0; line < rows * info->height; line++, x += width * channels) {
        for (uint64_t i = 0; i < width / 2; i++) {
            for (uint64_t c = 0; c < channels; c++) {
                float *left = &x[i * channels + c], *right = &x[(width - 1 - i) * channels + c];
                float kept = *left;
                *left = *right;
                *right = kept;
            }
        }
    }
}

// One batch after the other through an upload buffer and a readback buffer.
static bool predict_rows(struct work *w, struct grt_dev *dev, bool (*stop)(void), batch_fn *told,
                         void *context) {
    uint64_t batch = w->task.learner.batch;
    uint64_t outputs = w->task.learner.outputs;
    uint64_t x_bytes = grt_learner_x_bytes(w->learner);
    uint64_t rows = grt_loader_info(w->loader).rows;
    bool flips = w->task.config.test_flips;
    if (flips && w->task.info.height == 0) {
        return grt_fail(GRT_CONFIG, "test_flips: samples of %s are no images", w->task.config.data);
    }
    struct grt_buf *in = grt_buf_create(
        dev, grt_buf_desc(.size = batch * x_bytes, .kind = GRT_BUF_UPLOAD, .label = "batches"));
    struct grt_buf *out =
        grt_buf_create(dev, grt_buf_desc(.size = batch * outputs * 4, .kind = GRT_BUF_READBACK,
                                         .label = "predictions"));
    float *y = malloc(batch * outputs * sizeof *y);
    struct grt_graph *graph = NULL;
    uint32_t recorded = 0;
    bool good = in && out && y;
    if (!y) {
        grt_fail(GRT_NO_MEMORY, "no host memory for predictions");
    }
    for (uint64_t done = 0; good && done < rows;) {
        struct grt_batch b;
        good = !(stop && stop()) && grt_loader_next(w->loader, &b);
        if (!good) {
            break;
        }
        memcpy(grt_buf_host(in), b.x, b.rows * x_bytes);
        if (b.rows != recorded) {
            grt_graph_destroy(&graph);
            graph = grt_learner_predict(
                w->learner, grt_step_desc(.rows = b.rows, .x = {in, 0, b.rows * x_bytes}),
                (struct grt_range){out, 0, b.rows * outputs * 4});
            recorded = b.rows;
        }
        good = graph && grt_graph_finish(graph);
        if (good) {
            memcpy(y, grt_buf_host(out), b.rows * outputs * 4);
        }
        if (good && flips) {
            mirror(w, b.rows, grt_buf_host(in));
            good = grt_graph_finish(graph);
            const float *other = grt_buf_host(out);
            for (uint64_t i = 0; good && i < b.rows * outputs; i++) {
                y[i] = 0.5f * (y[i] + other[i]);
            }
        }
        if (good) {
            told(context, w, &b, y);
            done += b.rows;
        }
        grt_loader_release(w->loader, &b);
    }
    free(y);
    grt_graph_destroy(&graph);
    grt_buf_destroy(&in);
    grt_buf_destroy(&out);
    return good;
}

static void append(void *context, const struct work *w, const struct grt_batch *batch,
                   const float *y) {
    float **at = context;
    uint64_t numbers = batch->rows * (uint64_t)w->task.learner.outputs;
    memcpy(*at, y, numbers * sizeof *y);
    *at += numbers;
}

struct grt_archive *grt_predict(struct grt_dev *dev, const struct grt_archive *model,
                                const struct grt_config *config, bool (*stop)(void)) {
    struct work w;
    if (!dev || !model || !config) {
        grt_fail(GRT_INVALID, "a device, a model and a config are wanted");
        return NULL;
    }
    if (!begin(&w, dev, model, config, GRT_PART_ALL, false)) {
        return NULL;
    }
    uint64_t shape[2] = {w.task.info.part_rows[GRT_PART_ALL], w.task.learner.outputs};
    struct grt_archive *archive = grt_archive_create();
    struct grt_archive_tensor *y =
        archive ? grt_archive_add(archive, "y", GRT_F32, 2, shape, NULL) : NULL;
    bool classes = w.task.learner.loss == GRT_LOSS_CROSS_ENTROPY;
    bool logits = classes || w.task.learner.loss == GRT_LOSS_BCE;
    float *at = y ? y->data : NULL;
    if (!y || !predict_rows(&w, dev, stop, append, &at) ||
        !grt_archive_set_text(archive, "y_is", logits ? "logits" : "values") ||
        (logits && !add_probabilities(archive, shape[0], shape[1], classes)) ||
        (classes && !add_classes(archive, shape[0], shape[1]))) {
        grt_archive_destroy(&archive);
    }
    finish(&w);
    return archive;
}

// ---- classes ----

// An image as it was in the file.
static float *image_of(const struct work *w, const float *x) {
    const struct grt_dataset_info *info = &w->task.info;
    float *image = info->height > 0 ? malloc(info->x_width * sizeof *image) : NULL;
    for (uint32_t i = 0; image && i < info->x_width; i++) {
        uint32_t c = i % info->features;
        image[i] = info->mean ? (float)((double)x[i] * info->std[c] + info->mean[c]) : x[i];
    }
    return image;
}

// Into the list of the worst, whose last one goes when it is full.
static void keep_mistake(struct grt_classified *c, const struct work *w, struct grt_mistake m,
                         const float *x) {
    bool full = c->mistake_count == GRT_MISTAKES;
    if (full && c->mistakes[GRT_MISTAKES - 1].loss >= m.loss) {
        return;
    }
    uint32_t at = full ? GRT_MISTAKES - 1 : c->mistake_count++;
    free(c->mistakes[at].image);
    m.image = image_of(w, x);
    for (; at > 0 && c->mistakes[at - 1].loss < m.loss; at--) {
        c->mistakes[at] = c->mistakes[at - 1];
    }
    c->mistakes[at] = m;
}

static void judge_row(struct grt_classified *c, const struct work *w, const float *x,
                      const float *y, uint32_t truth) {
    uint32_t guess = largest(y, c->classes), above = 0;
    double others = 0;  // beside the largest, which is 1
    for (uint32_t k = 0; k < c->classes; k++) {
        others += k == guess ? 0 : exp((double)y[k] - (double)y[guess]);
        above += y[k] > y[truth] || (k < truth && y[k] == y[truth]);
    }
    double loss = log1p(others) + (double)y[guess] - (double)y[truth];
    c->evaluation.samples++;
    c->evaluation.loss += loss;
    c->evaluation.accuracy += guess == truth;
    c->evaluation.top5 += above < 5;
    c->confusion[(uint64_t)truth * c->classes + guess]++;
    if (guess != truth) {
        keep_mistake(c, w,
                     (struct grt_mistake){.truth = truth,
                                          .guess = guess,
                                          .truth_share = exp(-loss),
                                          .guess_share = 1 / (1 + others),
                                          .loss = loss},
                     x);
    }
}

static void judge(void *context, const struct work *w, const struct grt_batch *batch,
                  const float *y) {
    struct grt_classified *c = context;
    const uint32_t *truth = batch->y;
    for (uint32_t i = 0; i < batch->rows; i++) {
        judge_row(c, w, batch->x + (uint64_t)i * w->task.info.x_width, y + (uint64_t)i * c->classes,
                  truth[i]);
    }
}

static void sum_up(struct grt_classified *c) {
    double samples = (double)c->evaluation.samples;
    c->evaluation.loss /= samples;
    c->evaluation.accuracy /= samples;
    c->evaluation.top5 = c->classes > 5 ? c->evaluation.top5 / samples : -1;
    for (uint32_t k = 0; k < c->classes; k++) {
        uint64_t count = 0;
        for (uint32_t g = 0; g < c->classes; g++) {
            count += c->confusion[(uint64_t)k * c->classes + g];
        }
        c->baseline = fmax(c->baseline, (double)count / samples);
    }
}

struct grt_classified *grt_classified_create(struct grt_dev *dev, const struct grt_archive *model,
                                             const struct grt_config *config, enum grt_part part,
                                             bool (*stop)(void)) {
    struct work w;
    if (!dev || !model || !config || (unsigned)part >= GRT_PART_COUNT) {
        grt_fail(GRT_INVALID, "a device, a model and a config are wanted");
        return NULL;
    }
    if (!begin(&w, dev, model, config, part, true)) {
        return NULL;
    }
    double start = grt_seconds();
    const struct grt_dataset_info *info = &w.task.info;
    struct grt_classified *c = calloc(1, sizeof *c);
    uint64_t classes = w.task.learner.outputs;
    bool good = (w.task.learner.loss == GRT_LOSS_CROSS_ENTROPY && info->classes <= classes) ||
                grt_fail(GRT_CONFIG, "the targets of %s are no classes", w.task.config.data);
    if (good && c) {
        c->classes = (uint32_t)classes;
        c->height = info->height;
        c->width = info->height > 0 ? info->points / info->height : 0;
        c->channels = info->features;
        c->confusion = calloc(classes * classes, sizeof *c->confusion);
    }
    bool room = c && c->confusion;
    if (good && !room) {
        grt_fail(GRT_NO_MEMORY, "no host memory for classes");
    }
    if (room && good && predict_rows(&w, dev, stop, judge, c)) {
        sum_up(c);
        c->evaluation.seconds = grt_seconds() - start;
    } else {
        grt_classified_destroy(&c);
    }
    finish(&w);
    return c;
}

void grt_classified_destroy(struct grt_classified **classified) {
    if (!classified || !*classified) {
        return;
    }
    for (uint32_t i = 0; i < GRT_MISTAKES; i++) {
        free((*classified)->mistakes[i].image);
    }
    free((*classified)->confusion);
    free(*classified);
    *classified = NULL;
}
