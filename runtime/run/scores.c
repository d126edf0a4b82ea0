// SPDX-License-Identifier: Apache-2.0
// Scores of what a network says, as scikit-learn defines them, in double precision.
#include "gpurt/scores.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "pass.h"

// ---- numbers ----

// Sums over the samples of one output. Targets are taken less the first, so that squares of large
// ones do not cancel.
struct column {
    double first, sum, squares, residues, off;
};

// Means of samples that weigh nothing are of nothing.
static bool weighs(double weight) {
    return weight > 0 || grt_fail(GRT_BAD_DATA, "scores: the weights of the samples are all 0");
}

struct numbers {
    struct column *columns;
    uint32_t width;
    bool logits;  // what the network says becomes a probability
    uint64_t samples;
    double weight;  // of all of them
};

// One sample.
static void add_numbers(struct numbers *n, const float *y, const float *targets, double weight) {
    for (uint32_t k = 0; k < n->width; k++) {
        struct column *c = &n->columns[k];
        double target = (double)targets[k], said = (double)y[k];
        said = n->logits ? 1 / (1 + exp(-said)) : said;
        c->first = n->samples == 0 ? target : c->first;
        c->sum += weight * (target - c->first);
        c->squares += weight * (target - c->first) * (target - c->first);
        c->residues += weight * (target - said) * (target - said);
        c->off += weight * fabs(target - said);
    }
    n->samples++;
    n->weight += weight;
}

static bool sum_numbers(const struct numbers *n, struct grt_scores *scores) {
    double samples = n->weight;
    if (!weighs(samples)) {
        return false;
    }
    *scores = (struct grt_scores){.samples = n->samples};
    for (uint32_t k = 0; k < n->width; k++) {
        const struct column *c = &n->columns[k];
        double spread = c->squares - c->sum * c->sum / samples;
        // Targets that are all alike: all of nothing is explained, or nothing.
        double share = spread > 0 ? 1 - c->residues / spread : c->residues > 0 ? 0 : 1;
        scores->mae += c->off / samples / n->width;
        scores->mse += c->residues / samples / n->width;
        scores->r2 += share / n->width;
    }
    return true;
}

bool grt_scores_numbers(const float *y, const float *targets, const float *weights, uint64_t rows,
                        uint32_t width, struct grt_scores *scores) {
    if (!y || !targets || !scores || rows == 0 || width == 0) {
        return grt_fail(GRT_INVALID, "scores want numbers, targets and samples");
    }
    struct numbers n = {.columns = calloc(width, sizeof *n.columns), .width = width};
    if (!n.columns) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for scores");
    }
    for (uint64_t i = 0; i < rows; i++) {
        add_numbers(&n, y + i * width, targets + i * width, weights ? (double)weights[i] : 1);
    }
    bool good = sum_numbers(&n, scores);
    free(n.columns);
    return good;
}

// ---- classes ----

// Shares of the softmax that differ by no more are alike: that much comes of rounding, in another
// order of the same logits.
#define TIE 1e-12

struct ranked {
    double score, weight;
    bool own;  // of the class
};

static int by_score(const void *a, const void *b) {
    double x = ((const struct ranked *)a)->score, y = ((const struct ranked *)b)->score;
    return (x > y) - (x < y);
}

// The share of pairs of a sample of the class and one of another in which the first has the larger
// score, ties half; a pair weighs the product of its weights. NAN where one side has none.
static double area(struct ranked *rows, uint64_t count) {
    double own = 0, others = 0, pairs = 0;
    qsort(rows, count, sizeof *rows, by_score);
    for (uint64_t i = 0; i < count;) {
        double alike[2] = {0, 0};
        uint64_t end = i;
        for (; end < count && rows[end].score - rows[i].score <= TIE * rows[i].score; end++) {
            alike[rows[end].own] += rows[end].weight;
        }
        pairs += alike[1] * (others + alike[0] / 2);
        others += alike[0];
        own += alike[1];
        i = end;
    }
    return own > 0 && others > 0 ? pairs / (own * others) : NAN;
}

// Of the softmax, which is what scores of samples are compared by.
static double share_of(const float *logits, uint32_t classes, uint32_t of) {
    double largest = (double)logits[0], sum = 0;
    for (uint32_t k = 1; k < classes; k++) {
        largest = fmax(largest, (double)logits[k]);
    }
    for (uint32_t k = 0; k < classes; k++) {
        sum += exp((double)logits[k] - largest);
    }
    return exp((double)logits[of] - largest) / sum;
}

static double mean_area(const float *logits, const uint32_t *truth, const float *weights,
                        uint64_t rows, uint32_t classes, struct ranked *room) {
    double sum = 0, counted = 0;
    // Of two classes the second is what is looked for.
    for (uint32_t k = classes == 2 ? 1 : 0; k < classes; k++) {
        for (uint64_t i = 0; i < rows; i++) {
            room[i] = (struct ranked){share_of(logits + i * classes, classes, k),
                                      weights ? (double)weights[i] : 1, truth[i] == k};
            if (!isfinite(room[i].score)) {
                return NAN;  // no order
            }
        }
        double one = area(room, rows);
        sum += isnan(one) ? 0 : one;
        counted += !isnan(one);
    }
    return counted > 0 ? sum / counted : NAN;
}

// What samples weigh together that are said to be of a class and are, are of it, are said to be;
// whether there are any.
struct counted {
    double right, is, said;
    bool known;
};

static double mean_f1(const struct counted *counts, uint32_t classes) {
    double sum = 0, known = 0;
    for (uint32_t k = 0; k < classes; k++) {
        double both = counts[k].is + counts[k].said;
        sum += both > 0 ? 2 * counts[k].right / both : 0;
        known += counts[k].known;
    }
    return sum / known;
}

bool grt_scores_classes(const float *logits, const uint32_t *truth, const float *weights,
                        uint64_t rows, uint32_t classes, struct grt_scores *scores) {
    if (!logits || !truth || !scores || rows == 0 || classes == 0) {
        return grt_fail(GRT_INVALID, "scores want numbers, classes and samples");
    }
    struct counted *counts = calloc(classes, sizeof *counts);
    struct ranked *room = malloc(rows * sizeof *room);
    if (!counts || !room) {
        free(counts);
        free(room);
        return grt_fail(GRT_NO_MEMORY, "no host memory for scores");
    }
    bool ok = true;
    double right = 0, all = 0;
    for (uint64_t i = 0; ok && i < rows; i++) {
        uint32_t guess = 0;
        for (uint32_t k = 1; k < classes; k++) {
            guess = logits[i * classes + k] > logits[i * classes + guess] ? k : guess;
        }
        if (truth[i] >= classes) {
            ok = grt_fail(GRT_INVALID, "scores: class %u of %u", truth[i], classes);
            break;
        }
        double weight = weights ? (double)weights[i] : 1, met = guess == truth[i] ? weight : 0;
        right += met;
        all += weight;
        counts[truth[i]].right += met;
        counts[truth[i]].is += weight;
        counts[guess].said += weight;
        counts[truth[i]].known = counts[guess].known = true;
    }
    ok = ok && weighs(all);
    if (ok) {
        *scores =
            (struct grt_scores){.samples = rows,
                                .classes = classes,
                                .accuracy = right / all,
                                .f1 = mean_f1(counts, classes),
                                .auc = mean_area(logits, truth, weights, rows, classes, room)};
    }
    free(counts);
    free(room);
    return ok;
}

// ---- of a trained model ----

struct gathered {
    struct numbers numbers;
    float *logits;  // [rows][classes]
    uint32_t *truth;
    float *weights;  // [rows], or NULL
    uint64_t rows;
};

static void gather(void *context, const struct pass *p, const struct grt_batch *batch,
                   const float *y) {
    struct gathered *g = context;
    uint64_t width = p->task.learner.outputs;
    for (uint32_t i = 0; i < batch->rows; i++, y += width) {
        double weight = pass_weight(p, batch, i);
        if (!g->logits) {
            add_numbers(&g->numbers, y, pass_target(p, batch, i), weight);
            continue;
        }
        memcpy(g->logits + g->rows * width, y, width * sizeof *y);
        g->weights[g->rows] = (float)weight;
        g->truth[g->rows++] = *(const uint32_t *)pass_target(p, batch, i);
    }
}

bool grt_score(struct grt_dev *dev, const struct grt_archive *model,
               const struct grt_config *config, enum grt_part part, bool (*stop)(void),
               struct grt_scores *scores) {
    struct pass p = {0};
    if (!dev || !model || !config || !scores || (unsigned)part >= GRT_PART_COUNT) {
        return grt_fail(GRT_INVALID, "a device, a model and a config are wanted");
    }
    if (!grt_task_open_trained(&p.task, model, config, grt_dev_profile(dev), true) ||
        !pass_begin(&p, dev, model, part)) {
        return false;
    }
    struct gathered g = {.numbers = {.width = p.task.learner.outputs,
                                     .logits = p.task.learner.loss == GRT_LOSS_BCE}};
    bool classes = p.task.learner.loss == GRT_LOSS_CROSS_ENTROPY, ok = true;
    uint64_t rows = p.task.info.part_rows[part];
    if (p.task.learner.loss_count > 0) {
        ok = grt_fail(GRT_CONFIG, "scores are of one loss; of several, `gpurt eval` has each");
    } else if (!grt_loss_has_targets(p.task.learner.loss)) {
        ok = grt_fail(GRT_CONFIG, "a network that was trained without targets has no scores");
    } else if (classes) {
        g.logits = malloc((rows + 1) * g.numbers.width * sizeof *g.logits);
        g.truth = malloc((rows + 1) * sizeof *g.truth);
        g.weights = malloc((rows + 1) * sizeof *g.weights);
    } else {
        g.numbers.columns = calloc(g.numbers.width, sizeof *g.numbers.columns);
    }
    if (ok && (classes ? !g.logits || !g.truth || !g.weights : !g.numbers.columns)) {
        ok = grt_fail(GRT_NO_MEMORY, "no host memory for the scores of %llu samples",
                      (unsigned long long)rows);
    }
    ok = ok && pass_run(&p, dev, stop, gather, &g);
    if (ok && classes) {
        ok = grt_scores_classes(g.logits, g.truth, g.weights, g.rows, g.numbers.width, scores);
    } else if (ok) {
        ok = sum_numbers(&g.numbers, scores);
    }
    free(g.logits);
    free(g.truth);
    free(g.weights);
    free(g.numbers.columns);
    pass_end(&p);
    return ok;
}
