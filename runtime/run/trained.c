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

// One batch after the other through an upload buffer and a readback buffer.
static bool predict_rows(struct work *w, struct grt_dev *dev, float *y, bool (*stop)(void)) {
    uint64_t batch = w->task.learner.batch;
    uint64_t outputs = w->task.learner.outputs;
    uint64_t x_bytes = grt_learner_x_bytes(w->learner);
    uint64_t rows = grt_loader_info(w->loader).rows;
    struct grt_buf *in = grt_buf_create(
        dev, grt_buf_desc(.size = batch * x_bytes, .kind = GRT_BUF_UPLOAD, .label = "batches"));
    struct grt_buf *out =
        grt_buf_create(dev, grt_buf_desc(.size = batch * outputs * 4, .kind = GRT_BUF_READBACK,
                                         .label = "predictions"));
    struct grt_graph *graph = NULL;
    uint32_t recorded = 0;
    bool good = in && out;
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
            memcpy(y + done * outputs, grt_buf_host(out), b.rows * outputs * 4);
            done += b.rows;
        }
        grt_loader_release(w->loader, &b);
    }
    grt_graph_destroy(&graph);
    grt_buf_destroy(&in);
    grt_buf_destroy(&out);
    return good;
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
    if (!y || !predict_rows(&w, dev, y->data, stop) ||
        !grt_archive_set_text(archive, "y_is", logits ? "logits" : "values") ||
        (logits && !add_probabilities(archive, shape[0], shape[1], classes)) ||
        (classes && !add_classes(archive, shape[0], shape[1]))) {
        grt_archive_destroy(&archive);
    }
    finish(&w);
    return archive;
}
