// SPDX-License-Identifier: Apache-2.0
// Buffers of modules: a module that centres its input keeps a running mean in training and takes it
// off in evaluation. It is saved and restored with the parameters, and no optimizer touches it.
#include "harness/network_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpurt/checkpoint.h"
#include "gpurt/make.h"
#include "gpurt/ops.h"
#include "gpurt/supervised.h"
#include "learn/learner_parts.h"
#include "learn/share.h"
#include "learn/snapshot.h"

// ---- the module ----

#define WIDTH 128  // numbers of a row, so that rows begin where a binding may
#define SHARE 0.1f

struct centre {
    struct grt_module base;
    struct grt_param *running;
    struct grt_tensor *mean;
};

static struct grt_shape declare(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in) {
    struct centre *c = (struct centre *)module;
    const uint64_t shape[GRT_MAX_RANK] = {in->dim[0]};
    const struct grt_tensor x = {.rank = 2, .shape = {net->rows, in->dim[0]}};
    c->running = grt_params_add_buffer(net->params, prefix, "running_mean", shape, 0.25f);
    c->mean = grt_net_tensor(
        net, grt_tensor_desc(.label = "mean", .group = "acts", .shape = {in->dim[0]}));
    grt_net_scratch(net, grt_op_colsum_scratch(net->dev, grt_colsum_desc(.x = &x)));
    return *in;
}

static struct grt_tensor row(const struct grt_tensor *t, uint64_t i) {
    struct grt_tensor r = {.rank = 1, .shape = {t->shape[1]}};
    uint64_t bytes = t->shape[1] * 4;
    r.range = (struct grt_range){t->range.buf, t->range.offset + i * bytes, bytes};
    return r;
}

static void less(const struct grt_pass *pass, const struct grt_tensor *x,
                 const struct grt_tensor *mean, const struct grt_tensor *y) {
    for (uint64_t i = 0; i < x->shape[0]; i++) {
        struct grt_tensor from = row(x, i), to = row(y, i);
        grt_op_map(pass->graph, grt_map_desc(.map = GRT_MAP_ADD, .y = &to, .a = &from, .b = mean,
                                             .alpha = 1.0f, .beta = -1.0f));
    }
}

static void take_mean(const struct centre *c, const struct grt_pass *pass,
                      const struct grt_tensor *x) {
    const struct grt_tensor *scratch = c->base.net->scratch;
    grt_op_colsum(pass->graph,
                  grt_colsum_desc(.y = c->mean, .x = x,
                                  .scratch = scratch ? scratch->range : (struct grt_range){0}));
    grt_op_map(pass->graph, grt_map_desc(.map = GRT_MAP_SCALE, .y = c->mean, .a = c->mean,
                                         .alpha = 1.0f / (float)x->shape[0]));
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    const struct centre *c = (struct centre *)module;
    if (pass->training) {
        take_mean(c, pass, x);
    }
    if (pass->training && !pass->again) {
        grt_op_map(pass->graph, grt_map_desc(.map = GRT_MAP_ADD, .y = &c->running->master,
                                             .a = &c->running->master, .b = c->mean,
                                             .alpha = 1.0f - SHARE, .beta = SHARE));
    }
    less(pass, x, pass->training ? c->mean : &c->running->master, y);
}

static void backward(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx) {
    const struct centre *c = (struct centre *)module;
    (void)x;
    assert_false(add_dx);
    if (dx) {
        take_mean(c, pass, dy);
        less(pass, dy, c->mean, dx);
    }
}

static void destroy(struct grt_module *module) {
    free(module);
}

static const struct grt_module_fns centre_fns = {"centre", declare, forward, backward, destroy};

// linear 128, centre, linear; or without the first.
struct shape {
    bool first;
    uint32_t outputs;
    bool more;  // layers behind it
};

static struct grt_module *make(const void *of) {
    const struct shape *shape = of;
    struct centre *c = calloc(1, sizeof *c);
    c->base.fns = &centre_fns;
    struct grt_module *parts[] = {grt_linear_create(grt_linear_desc(.outputs = WIDTH)), &c->base,
                                  grt_linear_create(grt_linear_desc(.outputs = shape->outputs))};
    if (!shape->first) {
        grt_module_destroy(&parts[0]);
    }
    if (shape->more) {
        struct grt_module *list[7] = {parts[0], parts[1]};
        for (uint32_t i = 2; i < 6; i++) {
            list[i] = i % 2 == 1 ? grt_activation_create(GRT_ACT_TANH)
                                 : grt_linear_create(grt_linear_desc(.outputs = WIDTH));
        }
        list[6] = parts[2];
        return grt_sequence_create(list, 7);
    }
    return grt_sequence_create(parts + !shape->first, shape->first ? 3 : 2);
}

// ---- learners ----

static const struct shape alone = {false, 2}, behind = {true, 2}, of_run = {true, 1};

static struct grt_learner_desc desc_of(const struct shape *shape) {
    return (struct grt_learner_desc){.make = make,
                                     .of = shape,
                                     .input = {1, {WIDTH}},
                                     .optim = grt_optim_defaults(GRT_OPTIM_ADAMW),
                                     .batch = NETWORK_SAMPLES,
                                     .accumulate = 2};
}

static double evaluated(struct grt_learner *learner, const struct network_samples *s) {
    struct grt_graph *graph =
        grt_learner_evaluate(learner, grt_step_desc(.x = {s->bx}, .y = {s->by}));
    assert_non_null(graph);
    struct grt_learn_state state;
    assert_true(grt_learner_state(learner, &state));
    state.eval_loss = state.eval_samples = 0;
    assert_true(grt_learner_set_state(learner, &state));
    learn_run(graph, 1);
    grt_graph_destroy(&graph);
    assert_true(grt_learner_state(learner, &state));
    return (double)state.eval_loss / NETWORK_SAMPLES;
}

// The mean of a micro-batch of 5 samples, twice a step, moves the buffer; evaluations read it and
// leave it.
static void running(void **state) {
    (void)state;
    const struct network_case c = {"", {NULL, 1, WIDTH, "mse", 0}, 2, 0, true};
    struct network_samples s = network_samples_make(&c, GRT_F32);
    struct grt_learner_desc desc = desc_of(&alone);
    struct grt_learner *learner = grt_learner_create(test.dev, &desc);
    assert_non_null(learner);
    assert_true(grt_learner_bytes(learner, "buffers") >= WIDTH * 4);
    assert_true(grt_learner_alloc(learner));
    const char *name = NULL;
    const struct grt_tensor *buffer = grt_learner_tensor(learner, GRT_TENSOR_BUFFER, 0, &name);
    assert_string_equal(name, "0.running_mean");
    assert_true(buffer->rank == 1 && buffer->shape[0] == WIDTH);
    assert_null(grt_learner_tensor(learner, GRT_TENSOR_BUFFER, 1, NULL));
    assert_int_equal(grt_learner_parameters(learner), 2 * WIDTH + 2);
    double want[WIDTH];
    struct test_compare compare = test_compare(test.dev, "a running mean");
    struct grt_graph *graph = grt_learner_step(learner, grt_step_desc(.x = {s.bx}, .y = {s.by}));
    assert_non_null(graph);
    for (uint32_t k = 0; k < WIDTH; k++) {
        want[k] = 0.25;
    }
    for (uint32_t step = 0; step < 4; step++) {
        float *got = learn_read(buffer);
        for (uint32_t k = 0; k < WIDTH; k++) {
            test_compare_value(&compare, step * WIDTH + k, got[k],
                               (struct oracle_value){want[k], 128 * ORACLE_U});
            for (uint32_t micro = 0; micro < 2; micro++) {
                double mean = 0;
                for (uint32_t i = 0; i < 5; i++) {
                    mean += s.x[(5 * micro + i) * WIDTH + k] / 5;
                }
                want[k] += 0.1 * (mean - want[k]);
            }
        }
        free(got);
        learn_run(graph, 1);
    }
    // y = (x - running mean) W + b, in evaluation.
    float *w = learn_read(grt_learner_tensor(learner, GRT_TENSOR_PARAM, 0, NULL));
    float *b = learn_read(grt_learner_tensor(learner, GRT_TENSOR_PARAM, 1, NULL));
    double loss = 0;
    for (uint32_t i = 0; i < NETWORK_SAMPLES; i++) {
        for (uint32_t o = 0; o < 2; o++) {
            double y = (double)b[o];
            for (uint32_t k = 0; k < WIDTH; k++) {
                y += (s.x[i * WIDTH + k] - want[k]) * (double)w[o * WIDTH + k];
            }
            loss += pow(y - s.y[2 * i + o], 2) / (2 * NETWORK_SAMPLES);
        }
    }
    test_compare_value(&compare, 99999, (float)evaluated(learner, &s),
                       (struct oracle_value){loss, 1e-5 * loss});
    float *after = learn_read(buffer);
    for (uint32_t k = 0; k < WIDTH; k++) {
        test_compare_value(&compare, k, after[k], (struct oracle_value){want[k], 128 * ORACLE_U});
    }
    test_compare_end(&compare);
    // Of what is not finite it is named; a reset gives the first value back.
    float bad = NAN;
    char text[128];
    assert_true(grt_buf_write(buffer->range.buf, buffer->range.offset + 12, &bad, 4));
    assert_true(grt_learner_find_nonfinite(learner, NULL, NULL, text, sizeof text));
    assert_string_equal(text, "buffer 0.running_mean");
    assert_true(grt_learner_reset(learner, 1));
    free(after);
    after = learn_read(buffer);
    for (uint32_t k = 0; k < WIDTH; k++) {
        assert_true(after[k] == 0.25f);
    }
    free(after);
    free(w);
    free(b);
    grt_graph_destroy(&graph);
    grt_learner_destroy(&learner);
    network_samples_end(&s);
}

// A snapshot has it, and a learner for inference that loads the archive evaluates the same.
static void archived(void **state) {
    (void)state;
    const struct network_case c = {"", {NULL, 1, WIDTH, "mse", 0}, 2, 0, true};
    struct network_samples s = network_samples_make(&c, GRT_F32);
    struct grt_learner_desc desc = desc_of(&behind);
    struct grt_learner *learner = grt_learner_create(test.dev, &desc);
    assert_non_null(learner);
    assert_true(grt_learner_alloc(learner));
    struct grt_graph *graph = grt_learner_step(learner, grt_step_desc(.x = {s.bx}, .y = {s.by}));
    assert_non_null(graph);
    learn_run(graph, 5);
    struct grt_snapshot *snapshot = grt_snapshot_create(learner);
    assert_non_null(snapshot);
    assert_true(grt_snapshot_take(snapshot, 0, true) && grt_snapshot_wait(snapshot, 0));
    double loss = evaluated(learner, &s);
    learn_run(graph, 1);  // the snapshot is of before
    struct grt_archive *archive = grt_archive_create();
    static const enum grt_tensor_role roles[] = {GRT_TENSOR_PARAM, GRT_TENSOR_BUFFER};
    const struct grt_tensor *t;
    const char *name;
    char full[GRT_ARCHIVE_NAME];
    for (uint32_t r = 0; r < 2; r++) {
        for (uint32_t i = 0; (t = grt_learner_tensor(learner, roles[r], i, &name)); i++) {
            snprintf(full, sizeof full, "model/%s", name);
            assert_non_null(grt_archive_add(archive, full, t->dtype, t->rank, t->shape,
                                            grt_snapshot_tensor(snapshot, t)));
        }
    }
    desc.inference = true;
    struct grt_learner *other = grt_learner_create(test.dev, &desc);
    assert_non_null(other);
    assert_true(grt_learner_alloc(other));
    assert_true(grt_task_load_model(other, archive));
    assert_true(evaluated(other, &s) == loss);
    // Without the buffer the model is not whole.
    struct grt_archive_tensor *kept = grt_archive_find(archive, "model/1.running_mean");
    assert_non_null(kept);
    snprintf(kept->name, sizeof kept->name, "model/1.walking_mean");
    TEST_REFUSED(grt_task_load_model(other, archive), GRT_INVALID, "1.running_mean");
    grt_archive_destroy(&archive);
    grt_snapshot_destroy(&snapshot);
    grt_graph_destroy(&graph);
    grt_learner_destroy(&learner);
    grt_learner_destroy(&other);
    network_samples_end(&s);
}

// Where activations are computed twice, statistics are taken once.
static void computed_again(void **state) {
    (void)state;
    static const struct shape deep = {true, 2, true};
    const struct network_case c = {"", {NULL, 1, WIDTH, "mse", 0}, 2, 0, true};
    struct network_samples s = network_samples_make(&c, GRT_F32);
    float *mean[2], *parameters[2];
    size_t count = 0;
    for (int again = 0; again < 2; again++) {
        struct grt_learner_desc desc = desc_of(&deep);
        desc.recompute = again == 1;
        struct learn l = {.learner = grt_learner_create(test.dev, &desc)};
        assert_non_null(l.learner);
        assert_true(grt_learner_alloc(l.learner));
        struct grt_graph *graph =
            grt_learner_step(l.learner, grt_step_desc(.x = {s.bx}, .y = {s.by}));
        assert_non_null(graph);
        learn_run(graph, 4);
        mean[again] = learn_read(grt_learner_tensor(l.learner, GRT_TENSOR_BUFFER, 0, NULL));
        parameters[again] = learn_parameters(&l, &count);
        grt_graph_destroy(&graph);
        grt_learner_destroy(&l.learner);
    }
    test_same_floats(test.dev, "a running mean, computed again", mean[1], mean[0], WIDTH);
    test_same_floats(test.dev, "parameters, computed again", parameters[1], parameters[0],
                     (uint32_t)count);
    for (int again = 0; again < 2; again++) {
        free(mean[again]);
        free(parameters[again]);
    }
    network_samples_end(&s);
}

// ---- runs ----

struct stop {
    uint64_t at, step;
};

static void on_report(void *context, const struct grt_run_report *r) {
    ((struct stop *)context)->step = r->step;
}

static bool on_stop(void *context) {
    const struct stop *s = context;
    return s->at > 0 && s->step >= s->at;
}

static void train(const char *folder, const char *dir, bool resume, uint64_t stop_at) {
    static struct grt_config c;
    char path[160];
    struct stop stop = {.at = stop_at};
    grt_config_init(&c);
    snprintf(path, sizeof path, "%s/airs.h5", folder);
    assert_true(grt_config_set(&c, GRT_CONFIG_DATA, path));
    snprintf(path, sizeof path, "%s/%s", folder, dir);
    assert_true(grt_config_set(&c, GRT_CONFIG_CHECKPOINT_DIR, path));
    static const char *const pairs[] = {"batch_size=16", "epochs=2", "num_workers=0", "cache=none"};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_true(grt_config_override(&c, pairs[i]));
    }
    struct grt_supervised *run =
        grt_supervised_create(&(struct grt_supervised_desc){.dev = test.dev,
                                                            .config = &c,
                                                            .make = make,
                                                            .of = &of_run,
                                                            .resume = resume,
                                                            .lockstep = stop_at > 0,
                                                            .stop = on_stop,
                                                            .report = on_report,
                                                            .context = &stop});
    assert_non_null(run);
    assert_int_equal(grt_run_go(grt_supervised_driver(run)),
                     stop_at > 0 ? GRT_ENDED_SIGNAL : GRT_ENDED_EPOCHS);
    grt_supervised_destroy(&run);
}

// A run with a network of the caller's: stopped and resumed, it has the same bits, the buffer's
// too.
static void resumed(void **state) {
    (void)state;
    char folder[] = "/tmp/gpurt-buffers-XXXXXX", path[160], command[512];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/airs.h5", folder);
    assert_true(
        grt_data_make(grt_make_desc(.path = path, .make = GRT_MAKE_REGRESSION, .samples = 120,
                                    .features = 9, .noise = -1, .seed = 4)));
    train(folder, "whole", false, 0);
    train(folder, "part", false, 5);
    train(folder, "part", true, 0);
    snprintf(command, sizeof command,
             "cmp '%s'/whole/step-000000000014.h5 '%s'/part/step-000000000014.h5", folder, folder);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof path, "%s/part/step-000000000014.h5", folder);
    struct grt_archive *archive = grt_checkpoint_load(path);
    assert_non_null(archive);
    const struct grt_archive_tensor *kept = grt_archive_find(archive, "model/1.running_mean");
    assert_non_null(kept);
    assert_true(((const float *)kept->data)[0] != 0.25f);
    assert_null(grt_archive_find(archive, "optimizer/exp_avg.1.running_mean"));
    grt_archive_destroy(&archive);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

// ---- what several learners share ----

#define GRADS (2 * WIDTH + 2)
#define LOSSES (2 * GRT_LOSS_PARTS)  // of two micro-batches of 5 samples
#define SHARED (GRADS + LOSSES + WIDTH)
#define REST (GRT_NORM_PARTS + LOSSES + WIDTH)
#define LEAVES 4

// The tensors of the learner one behind the other.
static void listed(struct grt_learner *l, const struct grt_tensor *tensors[4]) {
    tensors[0] = grt_learner_tensor(l, GRT_TENSOR_GRAD, 0, NULL);
    tensors[1] = grt_learner_tensor(l, GRT_TENSOR_GRAD, 1, NULL);
    tensors[2] = l->loss_parts;
    tensors[3] = grt_learner_tensor(l, GRT_TENSOR_BUFFER, 0, NULL);
}

// To them, or from them.
static void move(struct grt_learner *l, float *numbers, bool to) {
    const struct grt_tensor *tensors[4];
    listed(l, tensors);
    assert_true(grt_dev_wait(test.dev));
    for (size_t i = 0; i < 4; i++) {
        const struct grt_range *r = &tensors[i]->range;
        uint64_t bytes = grt_tensor_bytes(tensors[i]);
        assert_true(to ? grt_buf_write(r->buf, r->offset, numbers, bytes)
                       : grt_buf_read(r->buf, r->offset, numbers, bytes));
        numbers += bytes / 4;
    }
}

// A graph that leaves made-up numbers as a micro-batch would; `parts` of the loss alone.
static struct grt_graph *made_up(struct grt_learner *l, struct grt_buf *from, uint32_t parts,
                                 const struct grt_graph_tell *tell) {
    struct grt_graph *graph = grt_graph_create(test.dev, "made up");
    const struct grt_tensor *tensors[4];
    uint64_t at = 0;
    listed(l, tensors);
    for (size_t i = 0; i < 4; i++) {
        struct grt_range to = tensors[i]->range;
        uint64_t bytes = grt_tensor_bytes(tensors[i]);
        to.size = i == 2 ? parts * 4 : bytes;
        grt_graph_copy(graph, to, (struct grt_range){from, at, to.size});
        at += bytes;
    }
    if (tell) {
        grt_graph_tell(graph, tell);
    }
    assert_true(grt_graph_bake(graph));
    return graph;
}

// Made-up numbers of three micro-batches and of one without samples, of which the tree is known to
// the bit; the second has one part of two of the loss. What modules keep is as before the step when
// the sums are there, and the mean of what three micro-batches made of it when they were given.
struct made {
    float before[SHARED], leaf[LEAVES][SHARED], sum[SHARED];
    double squares;
};

static struct made *make_up(void) {
    struct made *m = calloc(1, sizeof *m);
    assert_non_null(m);
    for (uint32_t i = 0; i < SHARED; i++) {
        m->before[i] = learn_number(1, i);
        for (uint32_t k = 0; k < LEAVES - 1; k++) {
            bool there = k != 1 || i < GRADS + GRT_LOSS_PARTS || i >= GRADS + LOSSES;
            m->leaf[k][i] = there ? learn_number(2 + k, i) : 0;
            m->squares += i < GRADS ? (double)m->leaf[k][i] * (double)m->leaf[k][i] : 0;
        }
        float left = m->leaf[0][i] + m->leaf[1][i], right = m->leaf[2][i] + m->leaf[3][i];
        m->sum[i] = left + right;
    }
    return m;
}

// One step of four micro-batches, the last of which is empty, up to where the host has the pieces.
static void run_leaves(struct grt_learner *l, struct grt_share *share, struct made *m) {
    struct grt_buf *from =
        grt_buf_create(test.dev, grt_buf_desc(.size = sizeof m->leaf[0], .kind = GRT_BUF_UPLOAD));
    assert_non_null(from);
    move(l, m->before, true);
    assert_true(grt_share_begin(share));
    for (uint32_t k = 0; k < LEAVES; k++) {
        struct grt_graph *graph = NULL;
        if (k < LEAVES - 1) {
            graph = made_up(l, from, k == 1 ? GRT_LOSS_PARTS : LOSSES, grt_share_tell(share, k));
            memcpy(grt_buf_host(from), m->leaf[k], sizeof m->leaf[k]);
        }
        assert_true(grt_share_leaf(share, k, graph));
        assert_true(grt_dev_wait(test.dev));
        grt_graph_destroy(&graph);
    }
    grt_buf_destroy(&from);
}

static void shared(void **state) {
    (void)state;
    struct grt_learner_desc desc = desc_of(&alone);
    struct grt_learner *learner = grt_learner_create(test.dev, &desc);
    assert_non_null(learner);
    assert_true(grt_learner_alloc(learner));
    struct made *m = make_up();
    // Buckets of one tensor each: the last tensor is the first piece. And a learner by itself.
    for (uint32_t others = 0; others < 2; others++) {
        struct grt_share *share =
            grt_share_create(&(struct grt_share_desc){learner, LEAVES, others, 4});
        assert_non_null(share);
        const uint32_t counts[] = {2, 2 * WIDTH, REST}, first[] = {2 * WIDTH, 0, 0};
        uint32_t pieces = grt_share_pieces(share), skipped = others ? 0 : 2;
        assert_int_equal(pieces, 3 - skipped);
        for (int again = 0; again < 2; again++) {
            float found[SHARED];
            run_leaves(learner, share, m);
            move(learner, found, false);
            assert_memory_equal(found + GRADS + LOSSES, m->before + GRADS + LOSSES, WIDTH * 4);
            for (uint32_t i = 0; i < pieces && i + skipped < 3; i++) {
                struct grt_share_piece piece = {0};
                bool rest = i + 1 == pieces;
                assert_true(grt_share_take(share, i, &piece));
                assert_int_equal(piece.count, counts[i + skipped]);
                const float *want = rest ? m->sum + GRADS : m->sum + first[i];
                const float *got = rest ? piece.down + GRT_NORM_PARTS : piece.down;
                uint64_t count = rest ? LOSSES + WIDTH : piece.count;
                assert_memory_equal(got, want, count * 4);
                for (uint64_t k = 0; k < piece.count; k++) {
                    piece.up[k] = 3 * piece.down[k];  // what ranks together would come to
                }
                if (rest) {
                    double squares = grt_share_settle(share, 3);
                    assert_true(fabs(squares - 3 * m->squares) < 1e-5 * m->squares);
                }
                assert_true(grt_share_give(share, i));
            }
            move(learner, found, false);
            for (uint32_t i = 0; i < SHARED; i++) {
                bool kept = i >= GRADS + LOSSES, given = others || i >= GRADS;
                float want = given ? 3 * m->sum[i] : m->sum[i];
                assert_true(found[i] == (kept ? want / 3 : want));
            }
        }
        grt_share_destroy(&share);
        assert_null(share);
    }
    TEST_REFUSED(grt_share_create(&(struct grt_share_desc){learner, 3, 0, 0}), GRT_INVALID,
                 "power of two");
    free(m);
    grt_learner_destroy(&learner);
}

// linear, batch norm, relu, linear.
static struct grt_module *make_normed(const void *of) {
    (void)of;
    struct grt_module *parts[] = {grt_linear_create(grt_linear_desc(.outputs = WIDTH)),
                                  grt_batch_norm_create(NULL), grt_activation_create(GRT_ACT_RELU),
                                  grt_linear_create(grt_linear_desc(.outputs = 2))};
    return grt_sequence_create(parts, 4);
}

// What other learners have is three times what this one has, so that sums are exact.
static void exchange_with_like(struct grt_share *share) {
    uint32_t pieces = grt_share_pieces(share);
    for (uint32_t i = 0; i < pieces; i++) {
        struct grt_share_piece piece;
        assert_true(grt_share_take(share, i, &piece));
        for (uint64_t n = 0; n < piece.count; n++) {
            piece.up[n] = 4 * piece.down[n];
        }
        if (i + 1 == pieces) {
            grt_share_settle(share, 8);
        }
        assert_true(grt_share_give(share, i));
    }
}

// Backward of a batch norm reads the gradients of its weight and bias: the bucket that has them is
// added up behind that. So two micro-batches of the same samples come to twice the gradients of
// one, to the bit; and to eight times, of four such learners.
static void share_with_norm(const struct grt_share_desc *others) {
    const struct network_case c = {"", {NULL, 1, WIDTH, "mse", 0}, 2, 0, true};
    struct network_samples s = network_samples_make(&c, GRT_F32);
    struct grt_learner_desc desc = desc_of(&behind);
    desc.make = make_normed;
    desc.accumulate = 1;
    struct grt_learner *learner = grt_learner_create(test.dev, &desc);
    assert_true(learner && grt_learner_alloc(learner));
    struct grt_share_desc with = *others;
    with.learner = learner;
    with.leaves = 2;
    with.bucket = 4;  // of a parameter each
    struct grt_share *share = grt_share_create(&with);
    assert_non_null(share);
    assert_int_equal(grt_share_pieces(share), with.others > 0 ? 7 : 1);
    float times = with.others > 0 ? 8 : 2;
    struct grt_graph *leaves[2];
    for (uint32_t k = 0; k < 2; k++) {
        leaves[k] = grt_learner_gradients(learner, grt_step_desc(.x = {s.bx}, .y = {s.by},
                                                                 .rows = NETWORK_SAMPLES,
                                                                 .samples = 2 * NETWORK_SAMPLES,
                                                                 .tell = grt_share_tell(share, k)));
        assert_non_null(leaves[k]);
    }
    enum { TENSORS = 6 };
    const struct grt_tensor *grad;
    float *once[TENSORS];
    learn_run(leaves[0], 1);
    for (uint32_t i = 0; i < TENSORS; i++) {
        grad = grt_learner_tensor(learner, GRT_TENSOR_GRAD, i, NULL);
        assert_non_null(grad);
        once[i] = learn_read(grad);
    }
    assert_null(grt_learner_tensor(learner, GRT_TENSOR_GRAD, TENSORS, NULL));
    for (uint32_t again = 0; again < 2; again++) {
        assert_true(grt_share_begin(share));
        for (uint32_t k = 0; k < 2; k++) {
            assert_true(grt_share_leaf(share, k, leaves[k]));
        }
        if (with.others > 0) {
            exchange_with_like(share);
        }
        for (uint32_t i = 0; i < TENSORS; i++) {
            grad = grt_learner_tensor(learner, GRT_TENSOR_GRAD, i, NULL);
            float *sum = learn_read(grad);
            bool any = false;
            for (uint64_t n = 0; n < grt_tensor_count(grad); n++) {
                assert_true(sum[n] == times * once[i][n]);
                any |= sum[n] != 0;
            }
            assert_true(any);
            free(sum);
        }
    }
    for (uint32_t i = 0; i < TENSORS; i++) {
        free(once[i]);
    }
    for (uint32_t k = 0; k < 2; k++) {
        grt_graph_destroy(&leaves[k]);
    }
    grt_share_destroy(&share);
    grt_learner_destroy(&learner);
    network_samples_end(&s);
}

static void shared_with_norm(void **state) {
    (void)state;
    share_with_norm(&(struct grt_share_desc){.others = 0});
    share_with_norm(&(struct grt_share_desc){.others = 3});
}

// A whole snapshot that is lent stays as it is while others are taken. There is always a place for
// the next: what cannot be lent then is copied, until one comes back.
static void lent(void **state) {
    (void)state;
    enum { LENT = 3 };
    const struct network_case c = {"", {NULL, 1, WIDTH, "mse", 0}, 2, 0, true};
    struct network_samples s = network_samples_make(&c, GRT_F32);
    struct grt_learner_desc desc = desc_of(&behind);
    struct grt_learner *learner = grt_learner_create(test.dev, &desc);
    assert_true(learner && grt_learner_alloc(learner));
    struct grt_graph *graph = grt_learner_step(learner, grt_step_desc(.x = {s.bx}, .y = {s.by}));
    struct grt_snapshot *snapshot = grt_snapshot_create(learner);
    assert_true(graph && snapshot);
    const struct grt_tensor *t = grt_learner_tensor(learner, GRT_TENSOR_PARAM, 0, NULL);
    uint64_t bytes = grt_tensor_bytes(t);
    float *were[LENT + 1] = {0}, *now = test_alloc(bytes);
    void *loans[LENT] = {0}, *numbers[LENT] = {0};
    void (*give_back)(void *) = NULL;
    for (uint32_t i = 0; i < LENT + 1; i++) {
        learn_run(graph, 1);
        were[i] = test_alloc(bytes);
        assert_true(grt_buf_read(t->range.buf, t->range.offset, were[i], bytes));
        assert_true(i == 0 || memcmp(were[i], were[i - 1], bytes) != 0);
        assert_true(grt_snapshot_take(snapshot, i, true) && grt_snapshot_wait(snapshot, i));
        assert_memory_equal(grt_snapshot_tensor(snapshot, t), were[i], bytes);
        if (i < LENT) {
            numbers[i] = grt_snapshot_tensor(snapshot, t);
            loans[i] = grt_snapshot_lend(snapshot, &give_back);
            assert_non_null(loans[i]);
        }
    }
    assert_null(grt_snapshot_lend(snapshot, &give_back));
    // The next goes where the one that could not be lent is.
    learn_run(graph, 1);
    assert_true(grt_snapshot_take(snapshot, 0, true) && grt_snapshot_wait(snapshot, 0));
    assert_true(grt_buf_read(t->range.buf, t->range.offset, now, bytes));
    assert_memory_equal(grt_snapshot_tensor(snapshot, t), now, bytes);
    for (uint32_t i = 0; i < LENT; i++) {
        assert_memory_equal(numbers[i], were[i], bytes);
    }
    // One that was lent twice is free when it was given back twice.
    give_back(loans[1]);
    void *fourth = grt_snapshot_lend(snapshot, &give_back),
         *kept = grt_snapshot_tensor(snapshot, t);
    assert_non_null(fourth);
    assert_ptr_equal(grt_snapshot_lend(snapshot, &give_back), fourth);
    give_back(fourth);
    learn_run(graph, 1);
    assert_true(grt_snapshot_take(snapshot, 1, true) && grt_snapshot_wait(snapshot, 1));
    assert_ptr_equal(grt_snapshot_tensor(snapshot, t), numbers[1]);
    assert_memory_equal(kept, now, bytes);
    assert_memory_equal(numbers[2], were[2], bytes);
    give_back(fourth);
    give_back(loans[0]);
    give_back(loans[2]);
    for (uint32_t i = 0; i < LENT + 1; i++) {
        free(were[i]);
    }
    free(now);
    grt_snapshot_destroy(&snapshot);
    grt_graph_destroy(&graph);
    grt_learner_destroy(&learner);
    network_samples_end(&s);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(running),         TEST_CASE(archived), TEST_CASE(lent),
    TEST_CASE(computed_again),  TEST_CASE(resumed),  TEST_CASE(shared),
    TEST_CASE(shared_with_norm)};
TEST_SUITE(buffers, true, cases);
