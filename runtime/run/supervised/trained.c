// SPDX-License-Identifier: Apache-2.0
// Trained models at work: evaluation and prediction.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "run/pass.h"
#include "supervised_parts.h"

static bool begin(struct pass *p, struct grt_dev *dev, const struct grt_archive *model,
                  const struct grt_config *config, enum grt_part part, bool targets) {
    *p = (struct pass){0};
    return grt_task_open_trained(&p->task, model, config, grt_dev_profile(dev), targets) &&
           pass_begin(p, dev, model, part);
}

bool supervised_weighs(const struct grt_task *task, double weight) {
    return weight > 0 || !task->info.weighted ||
           grt_fail(GRT_BAD_DATA,
                    "%s: the weights of these samples (sample_weights=%s) are all 0: "
                    "`sample_weights=none` leaves weights out",
                    task->config.data, task->config.sample_weights);
}

bool grt_evaluate(struct grt_dev *dev, const struct grt_archive *model,
                  const struct grt_config *config, enum grt_part part, bool (*stop)(void),
                  struct grt_evaluation *evaluation) {
    struct pass p;
    struct grt_feed_done done = {0};
    if (!dev || !model || !config || !evaluation || (unsigned)part >= GRT_PART_COUNT) {
        return grt_fail(GRT_INVALID, "a device, a model and a config are wanted");
    }
    if (!begin(&p, dev, model, config, part, true)) {
        return false;
    }
    if (!grt_loss_has_targets(p.task.learner.loss)) {
        pass_end(&p);
        return grt_fail(GRT_CONFIG, "a network that was trained without targets has no loss on "
                                    "samples: `gpurt eval knn` and `gpurt eval linear` try it");
    }
    double start = grt_seconds();
    struct grt_feed *feed = grt_feed_create(&(struct grt_feed_desc){.dev = dev,
                                                                    .learner = p.learner,
                                                                    .loader = p.loader,
                                                                    .batch = p.task.learner.batch,
                                                                    .evaluate = true});
    bool good = feed != NULL;
    while (good && !done.epoch_ended) {
        good = !(stop && stop()) && grt_feed_run(feed, GRT_FEED_WINDOW, true, &done);
    }
    struct grt_learn_state state;
    good = good && grt_learner_state(p.learner, &state) &&
           supervised_weighs(&p.task, (double)state.eval_samples);
    if (good) {
        supervised_tally(p.learner, &state, evaluation);
        evaluation->samples = p.rows;
    }
    evaluation->seconds = grt_seconds() - start;
    grt_feed_destroy(&feed);
    pass_end(&p);
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

#define NO_CLASS UINT32_MAX  // of a row that was left out

// By `count` of the outputs from `first` on.
static bool add_classes(struct grt_archive *archive, const char *name, uint64_t rows,
                        uint64_t outputs, uint64_t first, uint64_t count) {
    struct grt_archive_tensor *classes = grt_archive_add(archive, name, GRT_U32, 1, &rows, NULL);
    const float *y = grt_archive_find(archive, "y")->data;
    for (uint64_t i = 0; classes && i < rows; i++) {
        const float *row = y + i * outputs + first;
        ((uint32_t *)classes->data)[i] = isnan(*row) ? NO_CLASS : largest(row, count);
    }
    return classes != NULL;
}

// Of several losses: class_2 by the logits of the second, for example.
static bool add_several(struct grt_archive *archive, uint64_t rows,
                        const struct grt_learner_desc *d) {
    bool good = true;
    uint64_t first = 0;
    for (uint32_t i = 0; good && i < d->loss_count; i++) {
        const struct grt_loss_share *share = &d->losses[i];
        char name[24];
        snprintf(name, sizeof name, "class_%u", i + 1);
        good = share->loss != GRT_LOSS_CROSS_ENTROPY ||
               add_classes(archive, name, rows, d->outputs, first, share->cols);
        first += share->cols;
    }
    return good;
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

static void append(void *context, const struct pass *p, const struct grt_batch *batch,
                   const float *y) {
    float **at = context;
    uint64_t numbers = batch->rows * (uint64_t)p->task.learner.outputs;
    memcpy(*at, y, numbers * sizeof *y);
    *at += numbers;
}

// Rows that were left out get their places back, and NaN for every number. False with the sentence.
static bool spread(const struct pass *p, float *y, uint64_t outputs) {
    uint64_t row = p->task.info.file_rows, left = grt_loader_dropped(p->loader, NULL);
    uint32_t *dropped = malloc((left + 1) * sizeof *dropped);
    if (!dropped) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for rows that are left out");
    }
    grt_loader_dropped(p->loader, dropped);
    while (left > 0) {  // the rows before the first that was left out stay where they are
        bool out = dropped[left - 1] == --row;
        for (uint64_t i = 0; i < outputs; i++) {
            y[row * outputs + i] = out ? NAN : y[(row - left) * outputs + i];
        }
        left -= out;
    }
    free(dropped);
    return true;
}

struct grt_archive *grt_predict(struct grt_dev *dev, const struct grt_archive *model,
                                const struct grt_config *config, bool (*stop)(void)) {
    struct pass p;
    if (!dev || !model || !config) {
        grt_fail(GRT_INVALID, "a device, a model and a config are wanted");
        return NULL;
    }
    if (!begin(&p, dev, model, config, GRT_PART_ALL, false)) {
        return NULL;
    }
    const struct grt_dataset_info *info = &p.task.info;
    uint64_t shape[2] = {info->file_rows, p.task.learner.outputs};
    struct grt_archive *archive = grt_archive_create();
    struct grt_archive_tensor *y =
        archive ? grt_archive_add(archive, "y", GRT_F32, 2, shape, NULL) : NULL;
    bool classes = p.task.learner.loss == GRT_LOSS_CROSS_ENTROPY;
    bool logits = classes || p.task.learner.loss == GRT_LOSS_BCE;
    float *at = y ? y->data : NULL;
    if (!y || !pass_run(&p, dev, stop, append, &at) || !spread(&p, y->data, shape[1]) ||
        (info->rows < info->file_rows &&
         !grt_archive_set_whole(archive, "rows_left_out",
                                (int64_t)(info->file_rows - info->rows))) ||
        !grt_archive_set_text(archive, "y_is",
                              p.task.learner.loss_count > 0 ? "mixed"
                              : logits                      ? "logits"
                                                            : "values") ||
        (logits && !add_probabilities(archive, shape[0], shape[1], classes)) ||
        (classes && !add_classes(archive, "class", shape[0], shape[1], 0, shape[1])) ||
        !add_several(archive, shape[0], &p.task.learner)) {
        grt_archive_destroy(&archive);
    }
    pass_end(&p);
    return archive;
}

// ---- classes ----

// An image as it was in the file.
static float *image_of(const struct pass *p, const float *x) {
    const struct grt_dataset_info *info = &p->task.info;
    float *image = info->height > 0 ? malloc(info->x_width * sizeof *image) : NULL;
    for (uint32_t i = 0; image && i < info->x_width; i++) {
        uint32_t c = i % info->features;
        image[i] = info->mean ? (float)((double)x[i] * info->std[c] + info->mean[c]) : x[i];
    }
    return image;
}

// Into the list of the worst, whose last one goes when it is full.
static void keep_mistake(struct grt_classified *c, const struct pass *p, struct grt_mistake m,
                         const float *x) {
    bool full = c->mistake_count == GRT_MISTAKES;
    if (full && c->mistakes[GRT_MISTAKES - 1].loss >= m.loss) {
        return;
    }
    uint32_t at = full ? GRT_MISTAKES - 1 : c->mistake_count++;
    free(c->mistakes[at].image);
    m.image = image_of(p, x);
    for (; at > 0 && c->mistakes[at - 1].loss < m.loss; at--) {
        c->mistakes[at] = c->mistakes[at - 1];
    }
    c->mistakes[at] = m;
}

static void judge_row(struct grt_classified *c, const struct pass *p, const float *x,
                      const float *y, uint32_t truth, double weight) {
    uint32_t guess = largest(y, c->classes), above = 0;
    double others = 0;  // beside the largest, which is 1
    for (uint32_t k = 0; k < c->classes; k++) {
        others += k == guess ? 0 : exp((double)y[k] - (double)y[guess]);
        above += y[k] > y[truth] || (k < truth && y[k] == y[truth]);
    }
    double loss = log1p(others) + (double)y[guess] - (double)y[truth];
    c->evaluation.samples++;
    c->evaluation.loss += loss * weight;
    c->evaluation.accuracy += guess == truth ? weight : 0;
    c->evaluation.top5 += above < 5 ? weight : 0;
    c->weight += weight;
    c->class_weights[truth] += weight;
    c->confusion[(uint64_t)truth * c->classes + guess]++;
    if (guess != truth) {
        keep_mistake(c, p,
                     (struct grt_mistake){.truth = truth,
                                          .guess = guess,
                                          .truth_share = exp(-loss),
                                          .guess_share = 1 / (1 + others),
                                          .loss = loss},
                     x);
    }
}

static void judge(void *context, const struct pass *p, const struct grt_batch *batch,
                  const float *y) {
    struct grt_classified *c = context;
    for (uint32_t i = 0; i < batch->rows; i++) {
        judge_row(c, p, batch->x + (uint64_t)i * p->task.info.x_width, y + (uint64_t)i * c->classes,
                  *(const uint32_t *)pass_target(p, batch, i), pass_weight(p, batch, i));
    }
}

static void sum_up(struct grt_classified *c) {
    c->evaluation.loss /= c->weight;
    c->evaluation.accuracy /= c->weight;
    c->evaluation.top5 = c->classes > 5 ? c->evaluation.top5 / c->weight : -1;
    for (uint32_t k = 0; k < c->classes; k++) {
        c->baseline = fmax(c->baseline, c->class_weights[k] / c->weight);
    }
}

struct grt_classified *grt_classified_create(struct grt_dev *dev, const struct grt_archive *model,
                                             const struct grt_config *config, enum grt_part part,
                                             bool (*stop)(void)) {
    struct pass p;
    if (!dev || !model || !config || (unsigned)part >= GRT_PART_COUNT) {
        grt_fail(GRT_INVALID, "a device, a model and a config are wanted");
        return NULL;
    }
    if (!begin(&p, dev, model, config, part, true)) {
        return NULL;
    }
    double start = grt_seconds();
    const struct grt_dataset_info *info = &p.task.info;
    struct grt_classified *c = calloc(1, sizeof *c);
    uint64_t classes = p.task.learner.outputs;
    bool good = (p.task.learner.loss == GRT_LOSS_CROSS_ENTROPY && info->classes <= classes) ||
                grt_fail(GRT_CONFIG, "the targets of %s are no classes", p.task.config.data);
    if (good && c) {
        c->classes = (uint32_t)classes;
        c->height = info->height;
        c->width = info->height > 0 ? info->points / info->height : 0;
        c->channels = info->features;
        c->confusion = calloc(classes * classes, sizeof *c->confusion);
        c->class_weights = calloc(classes, sizeof *c->class_weights);
    }
    bool room = c && c->confusion && c->class_weights;
    if (good && !room) {
        grt_fail(GRT_NO_MEMORY, "no host memory for classes");
    }
    if (room && good && pass_run(&p, dev, stop, judge, c) &&
        supervised_weighs(&p.task, c->weight)) {
        sum_up(c);
        c->evaluation.seconds = grt_seconds() - start;
    } else {
        grt_classified_destroy(&c);
    }
    pass_end(&p);
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
    free((*classified)->class_weights);
    free(*classified);
    *classified = NULL;
}
