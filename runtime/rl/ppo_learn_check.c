// SPDX-License-Identifier: Apache-2.0
// Whether ppo_learn computes right on a device, for each of its heads (see nn/fused/mlp_rows.h):
// losses of a few samples, and their slopes in double precision.
#include <math.h>
#include <stdlib.h>

#include "ops/op_support.h"
#include "ppo_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_params.k"
#include "shaders/ppo/lib/ppo_words.k"

#define MOST_OUTPUTS 16
#define CLIP 0.2
#define VALUE_WEIGHT 0.7
#define ENTROPY_WEIGHT 0.05
#define MEAN 0.25    // of advantages
#define INVERSE 2.0  // of their deviation

// A row, and the slopes of its loss.
struct sample {
    uint32_t action, mask;
    double logp, value, advantage, wanted;
    double acts[MOST_OUTPUTS];
    double slopes[MOST_OUTPUTS], spreads[MOST_OUTPUTS];  // of outputs, and of log_std
};

// Some rows are within what is clipped, some beyond it on either side.
static double advantage_of(uint32_t number) {
    static const double of[] = {-1.5, -0.5, 0.75, 1.25, 0.5};
    return of[number % 5];
}

static double shift_of(uint32_t number) {
    static const double of[] = {0.05, -0.5, 0.5};
    return of[number % 3];
}

// The slope of the policy's loss by log p, which has moved by `shift`.
static double policy_slope(double advantage, double shift) {
    double ratio = exp(shift), loose = -advantage * ratio;
    double held = -advantage * fmin(fmax(ratio, 1 - CLIP), 1 + CLIP);
    return loose >= held ? loose : 0;
}

static void fill_value(struct sample *s, uint32_t number, const float *y) {
    double moved = shift_of(number), miss = 0.4 * (number % 5) - 0.6;
    double held = miss - moved + fmin(fmax(moved, -CLIP), CLIP);
    bool hold = fabs(moved) > CLIP && held * held > miss * miss;
    s->value = (double)y[0] - moved;
    s->wanted = (double)y[0] - miss;
    s->slopes[0] = hold ? 0 : VALUE_WEIGHT * miss;
}

static void fill_choice(struct sample *s, uint32_t number, uint32_t outputs, const float *y) {
    double logs[MOST_OUTPUTS] = {0}, sum = 0, entropy = 0;
    s->action = number % outputs;
    s->mask = (1u << outputs) - 1;
    if (outputs > 2) {
        s->mask &= ~(1u << (number + 1) % outputs);
    }
    for (uint32_t j = 0; j < outputs; j++) {
        sum += s->mask >> j & 1 ? exp((double)y[j]) : 0;
    }
    for (uint32_t j = 0; j < outputs; j++) {
        logs[j] = (double)y[j] - log(sum);
        entropy -= s->mask >> j & 1 ? exp(logs[j]) * logs[j] : 0;
    }
    double shift = shift_of(number), slope = policy_slope(advantage_of(number), shift);
    s->logp = logs[s->action] - shift;
    for (uint32_t j = 0; j < outputs; j++) {
        double p = exp(logs[j]);
        s->slopes[j] = s->mask >> j & 1 ? slope * ((j == s->action ? 1 : 0) - p) +
                                              ENTROPY_WEIGHT * p * (logs[j] + entropy)
                                        : 0;
    }
}

static void fill_normal(struct sample *s, uint32_t number, uint32_t outputs, const float *y,
                        const float *log_std) {
    double shift = shift_of(number), slope = policy_slope(advantage_of(number), shift);
    s->logp = -shift;
    for (uint32_t j = 0; j < outputs; j++) {
        double z = 0.4 * ((number * 7 + j * 3) % 5) - 0.9, deviation = exp((double)log_std[j]);
        s->acts[j] = (double)y[j] + z * deviation;
        s->logp += -z * z / 2 - (double)log_std[j] - 0.91893853320467274;
        s->slopes[j] = slope * z / deviation;
        s->spreads[j] = slope * (z * z - 1) - ENTROPY_WEIGHT;
    }
}

// Numbers of the model serve as log_std.
static struct sample sample_of(uint32_t head, uint32_t number, uint32_t outputs, const float *y,
                               const float *params) {
    struct sample s = {.advantage = MEAN + advantage_of(number) / INVERSE};
    if (head == PPO_LEARN_VALUE) {
        fill_value(&s, number, y);
    } else if (head == PPO_LEARN_CHOICE) {
        fill_choice(&s, number, outputs, y);
    } else {
        fill_normal(&s, number, outputs, y, params);
    }
    return s;
}

static void slopes(const struct grt_mlp_rows_learner *of, uint32_t number, uint32_t outputs,
                   const float *y, const float *params, double *into) {
    struct sample s = sample_of(of->head, number, outputs, y, params);
    for (uint32_t j = 0; j < outputs; j++) {
        into[j] = s.slopes[j];
    }
}

// ---- on the device ----

struct trial {
    struct grt_plan *plan;
    struct grt_tensor *records, *acts, *norms, *stats, *spread;
    uint32_t groups, outputs;
};

static struct grt_tensor *declare(struct trial *t, const char *label, uint64_t rows,
                                  uint64_t cols) {
    return grt_plan_tensor(
        t->plan, grt_tensor_desc(.label = label, .dtype = GRT_F32, .shape = {rows, cols}));
}

static bool begin(struct trial *t, struct grt_dev *dev, const struct grt_mlp_rows_desc *d,
                  const struct grt_mlp_rows_samples *of) {
    t->plan = grt_plan_create(dev);
    t->groups = grt_mlp_rows_groups(dev, d);
    t->outputs = d->model.outputs;
    if (!t->plan) {
        return false;
    }
    t->records = declare(t, "records", of->positions, PPO_SECTIONS);
    t->acts = declare(t, "actions", of->positions, t->outputs);
    t->norms = declare(t, "norms", 1, PPO_NORMS);
    t->stats = declare(t, "stats", t->groups, PPO_STATS + 1);
    t->spread = declare(t, "slopes of log_std", t->groups, t->outputs);
    return t->records && t->acts && t->norms && t->stats && t->spread && grt_plan_alloc(t->plan);
}

static bool put(const struct grt_tensor *to, const void *from) {
    return grt_buf_write(to->range.buf, to->range.offset, from, grt_tensor_bytes(to));
}

union word {
    uint32_t whole;
    float real;
};

static bool write_rows(const struct trial *t, const struct grt_mlp_rows_learner *learner,
                       const struct grt_mlp_rows_samples *of, uint64_t rows) {
    const union word norms[PPO_NORMS] = {[PPO_MEAN].real = (float)MEAN,
                                         [PPO_INVERSE].real = (float)INVERSE,
                                         [PPO_COUNT].whole = (uint32_t)rows};
    union word *records = calloc(of->positions, PPO_SECTIONS * sizeof *records);
    float *acts = calloc(of->positions, t->outputs * sizeof *acts);
    for (uint32_t i = 0; records && acts && i < of->positions; i++) {
        uint32_t number = i % of->count;
        struct sample s = sample_of(learner->head, number, t->outputs,
                                    of->y + (size_t)number * t->outputs, of->params);
        union word *r = records + (size_t)i * PPO_SECTIONS;
        r[PPO_ACTION].whole = s.action;
        r[PPO_MASK].whole = s.mask;
        r[PPO_LOGP].real = (float)s.logp;
        r[PPO_VALUE].real = (float)s.value;
        r[PPO_ADVANTAGE].real = (float)s.advantage;
        r[PPO_RETURN].real = (float)s.wanted;
        for (uint32_t j = 0; j < t->outputs; j++) {
            acts[(size_t)i * t->outputs + j] = (float)s.acts[j];
        }
    }
    bool good =
        records && acts && put(t->records, records) && put(t->acts, acts) && put(t->norms, norms);
    free(records);
    free(acts);
    return good;
}

static bool spreads_agree(const struct trial *t, const struct grt_mlp_rows_samples *of,
                          const struct grt_mlp_rows_desc *d) {
    double want[MOST_OUTPUTS] = {0}, sizes[MOST_OUTPUTS] = {0};
    for (uint32_t i = 0; i < of->count; i++) {
        uint64_t rows = (d->rows + of->count - 1 - i) / of->count;
        double weight = (double)rows * of->scale;
        struct sample s =
            sample_of(PPO_LEARN_NORMAL, i, t->outputs, of->y + (size_t)i * t->outputs, of->params);
        for (uint32_t j = 0; j < t->outputs; j++) {
            want[j] += weight * s.spreads[j];
            sizes[j] += weight * fabs(s.spreads[j]);
        }
    }
    float *got = malloc(grt_tensor_bytes(t->spread));
    bool good = got && grt_buf_read(t->spread->range.buf, t->spread->range.offset, got,
                                    grt_tensor_bytes(t->spread));
    for (uint32_t j = 0; good && j < t->outputs; j++) {
        double sum = 0;
        for (uint32_t i = 0; i < t->groups; i++) {
            sum += (double)got[(size_t)i * t->outputs + j];
        }
        good = fabs(sum - want[j]) <= 0.01 * sizes[j];
    }
    free(got);
    return good;
}

static bool learn(const struct grt_mlp_rows_learner *of, struct grt_dev *dev,
                  const struct grt_mlp_rows_desc *d, const struct grt_mlp_rows_samples *samples) {
    struct trial t = {0};
    struct grt_graph *graph = grt_graph_create(dev, "ppo check");
    bool good = graph && begin(&t, dev, d, samples) && write_rows(&t, of, samples, d->rows);
    if (good) {
        const struct ppo_learn_head head = {
            .groups = t.groups,
            .batches = 1,
            .acts_stride = (uint32_t)d->places.period * t.outputs,
            .log_std = (uint32_t)d->params->list[0]->first,
            .clip = (float)CLIP,
            .weight = (float)(of->head == PPO_LEARN_VALUE ? VALUE_WEIGHT : ENTROPY_WEIGHT)};
        const struct grt_range ranges[] = {t.records->range, t.acts->range,  t.norms->range,
                                           d->state,         t.stats->range, t.spread->range};
        grt_graph_fill(graph, d->params->grad->range, UINT32_MAX);
        grt_op_mlp_rows_learn(
            graph, d,
            &(struct grt_mlp_rows_kernel){.name = of->kernel,
                                          .spec = {"HEAD", of->head},
                                          .ranges = ranges,
                                          .range_count = sizeof ranges / sizeof ranges[0],
                                          .params = &head,
                                          .params_size = sizeof head});
        good = grt_graph_finish(graph) &&
               (of->head != PPO_LEARN_NORMAL || spreads_agree(&t, samples, d));
    }
    grt_graph_destroy(&graph);
    grt_plan_destroy(&t.plan);
    return good;
}

#define LEARNER(number, name)                                                                      \
    [number] = {.kernel = "ppo_learn",                                                             \
                .op = "ppo",                                                                       \
                .variant = name,                                                                   \
                .head = number,                                                                    \
                .slopes = slopes,                                                                  \
                .learn = learn}

const struct grt_mlp_rows_learner grt_ppo_learners[] = {LEARNER(PPO_LEARN_VALUE, "learn_value"),
                                                        LEARNER(PPO_LEARN_CHOICE, "learn_choice"),
                                                        LEARNER(PPO_LEARN_NORMAL, "learn_normal")};
