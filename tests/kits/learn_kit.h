// SPDX-License-Identifier: Apache-2.0
// Learners to check: parameters, samples and targets that are
// plain formulas of their index, so that an independent program can make the same
// (tests/peers/torch_losses.py), and steps over them.
#ifndef TEST_LEARN_KIT_H
#define TEST_LEARN_KIT_H

#include "harness/harness.h"
#include "gpurt/learner.h"

// A network of the tests: an mlp, a linear layer, or a set of points.
enum learn_kind { LEARN_MLP, LEARN_LINEAR, LEARN_POINTS };
struct learn_model {
    enum learn_kind kind;
    uint32_t inputs;         // features of a sample, or of a point
    uint32_t points;         // points only: of a sample
    uint32_t depth, hidden;  // hidden layers and their width; not for linear
    uint32_t outputs;
    enum grt_act act;
    bool residual, layer_norm;
    enum grt_pool pool;
    uint32_t head_depth;
};
const char *learn_model_text(enum learn_kind kind);
// Makes it, for a learner's desc; `of` is a struct learn_model.
struct grt_module *learn_make(const void *of);

// A learner's desc with such a network in it.
struct learn_desc {
    struct learn_model model;
    enum grt_loss loss;
    float huber_delta;
    const float *class_weights;
    struct grt_optim_desc optim;
    enum grt_dtype precision;
    uint32_t batch, accumulate;
    bool recompute, inference;
    uint64_t seed;
    const char *variant;
};
#define learn_desc(...) (&(struct learn_desc){__VA_ARGS__})
struct grt_learner *learn_create(struct grt_dev *dev, const struct learn_desc *desc);

// A number in [-1, 1) of 24 bits, exact in f32, from an index and a stream.
float learn_number(uint32_t stream, uint32_t i);
uint32_t learn_hash(uint32_t stream, uint32_t i);

struct learn_data {
    size_t samples, x_size, y_size;  // numbers of a sample and of a target
    float *x;
    float *y;           // NULL with classes
    uint32_t *classes;  // NULL without
};

struct learn {
    struct grt_learner *learner;
    struct learn_data data;
    struct grt_buf *x, *y;  // upload buffers with all of the data
};

#define LEARN_BATCH 24
// A small model that most cases share, so that its kernels are compiled once.
struct learn_desc learn_small(enum grt_dtype precision);

// Allocated, parameters set by formula, data for `samples` samples.
struct learn learn_begin(const struct learn_desc *desc, size_t samples);
void learn_end(struct learn *l);
// Parameters by formula: [-1, 1) / sqrt(inputs), those of norms around 1 and 0.
void learn_set_parameters(struct grt_learner *learner);
// A baked step over `steps` batches of the data from the beginning on.
struct grt_graph *learn_step(struct learn *l, uint32_t rows, uint32_t steps);
// Runs a graph `times` times.
void learn_run(struct grt_graph *graph, uint32_t times);
// As many steps over the first batch of the data.
void learn_train(struct learn *l, uint32_t steps);
struct grt_learn_state learn_state(const struct learn *l);
// All parameters one behind the other, allocated; *count of them.
float *learn_parameters(const struct learn *l, size_t *count);
// A tensor's numbers, allocated.
float *learn_read(const struct grt_tensor *tensor);

#endif
