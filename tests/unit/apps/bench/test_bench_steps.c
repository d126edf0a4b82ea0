// SPDX-License-Identifier: Apache-2.0
// `gpurt bench mlp` and `images` with a made-up learner: figures of a row by what its steps take,
// gradients that are off by a little more or less than is allowed, models, defaults and exit codes.
#include "unit/apps/made_device.h"

#include "bench/bench_mlp_check.h"
#include "bench/bench_more.h"
#include "cli/command.h"
#include "gpurt/learner.h"

// ---- in place of the library's ----

struct grt_learner {
    struct grt_learner_desc desc;
    struct grt_tensor x, y;
    struct grt_buf *x_buf, *y_buf;
    struct grt_learn_state state;
};

static struct {
    double sample, step;  // seconds of a sample, and of a step besides
    uint32_t most;        // samples of a step that fit
    bool no_bf16, no_clock, fails;
    double error;        // of gradients, as the check of an MLP finds it
    double scale;        // of the loss, as it is told
    double off, curved;  // a loss falls by so much more than its gradient says
    float loss;
    uint32_t resets, made, steps;
    float factors[16];
    const char *kernels;
    struct grt_learner_desc seen;
} l;

struct grt_learner *grt_learner_create(struct grt_dev *dev, const struct grt_learner_desc *desc) {
    (void)dev;
    l.made++;
    l.seen = *desc;
    if (desc->batch > l.most || (l.no_bf16 && desc->precision == GRT_BF16) || l.fails) {
        grt_fail(l.fails                ? GRT_LOST
                 : desc->batch > l.most ? GRT_NO_MEMORY
                                        : GRT_UNSUPPORTED,
                 "made up: no learner");
        return NULL;
    }
    struct grt_learner *learner = calloc(1, sizeof *learner);
    uint64_t width = grt_shape_count(&desc->input);
    learner->desc = *desc;
    learner->x = (struct grt_tensor){.rank = 2, .shape = {desc->batch, width}};
    learner->y = (struct grt_tensor){.rank = 2, .shape = {desc->batch, 1}};
    learner->x_buf = grt_buf_create(dev, grt_buf_desc(.size = desc->batch * width * 4));
    learner->y_buf = grt_buf_create(dev, grt_buf_desc(.size = (uint64_t)desc->batch * 4));
    learner->x.range.buf = learner->x_buf;
    learner->y.range.buf = learner->y_buf;
    return learner;
}

void grt_learner_destroy(struct grt_learner **learner) {
    if (*learner) {
        grt_buf_destroy(&(*learner)->x_buf);
        grt_buf_destroy(&(*learner)->y_buf);
    }
    free(*learner);
    *learner = NULL;
}

uint64_t grt_learner_bytes(const struct grt_learner *learner, const char *group) {
    assert_null(group);
    return 1000 + learner->desc.batch;
}

bool grt_learner_alloc(struct grt_learner *learner) {
    return learner != NULL;
}

const char *grt_learner_variant(const struct grt_learner *learner) {
    return learner->desc.variant ? learner->desc.variant : "fused";
}

const char *grt_learner_fused_kernels(const struct grt_learner *learner) {
    return strcmp(grt_learner_variant(learner), "fused") == 0 ? l.kernels : NULL;
}

uint64_t grt_learner_parameters(const struct grt_learner *learner) {
    (void)learner;
    return 1;
}

const struct grt_tensor *grt_learner_input(const struct grt_learner *learner) {
    return &learner->x;
}

const struct grt_tensor *grt_learner_target(const struct grt_learner *learner) {
    return &learner->y;
}

const struct grt_tensor *grt_learner_tensor(const struct grt_learner *learner,
                                            enum grt_tensor_role role, uint32_t i,
                                            const char **name) {
    (void)learner;
    (void)role;
    (void)i;
    (void)name;
    return NULL;
}

const struct grt_net_layer *grt_learner_layer(const struct grt_learner *learner, uint32_t i) {
    static const struct grt_net_layer all = {.operations = 1e6};
    (void)learner;
    return i == 0 ? &all : NULL;
}

static struct grt_learner *stepped;

static void do_steps(const struct made_work *work) {
    (void)work;
    l.steps++;
    // Along the gradient of norm 3: behind the first step the loss has fallen.
    struct grt_learn_state *s = &stepped->state;
    double square = 9, fall = 1e-3 * (double)s->lr_factor * square;
    s->lr = 1e-3f * s->lr_factor;
    s->grad_norm = 3;
    double by = fall * (1 + l.off + l.curved * (double)s->lr_factor);
    s->loss = s->steps++ == 0 ? l.loss : (float)((double)l.loss - by);
}

struct grt_graph *grt_learner_step(struct grt_learner *learner, const struct grt_step_desc *desc) {
    struct grt_graph *graph = grt_graph_create(&made.dev, desc->label);
    uint32_t steps = desc->steps ? desc->steps : 1;
    stepped = learner;
    made_add(graph,
             &(struct made_work){.run = do_steps,
                                 .seconds = steps * (l.step + l.sample * learner->desc.batch)});
    if (desc->phases && !l.no_clock) {
        static const struct grt_phase_time times[] = {{"forward", 0.006},
                                                      {"backward", 0.012},
                                                      {"other", 0.1},
                                                      {"backward", 0.006},
                                                      {"optimizer", 0.003}};
        memcpy(graph->times, times, sizeof times);
        graph->time_count = 5;
    }
    return graph;
}

struct grt_graph_stats grt_graph_stats(const struct grt_graph *graph) {
    (void)graph;
    return (struct grt_graph_stats){.dispatches = 77};
}

bool grt_learner_reset(struct grt_learner *learner, uint64_t seed) {
    (void)seed;
    l.resets++;
    learner->state = (struct grt_learn_state){.lr_factor = 1};
    return true;
}

bool grt_learner_state(struct grt_learner *learner, struct grt_learn_state *state) {
    *state = learner->state;
    return true;
}

bool grt_learner_set_state(struct grt_learner *learner, const struct grt_learn_state *state) {
    l.factors[(l.resets - 1) % 16] = state->lr_factor;
    learner->state = *state;
    return true;
}

double mlp_check(struct grt_learner *learner, const struct grt_mlp_desc *model, const float *before,
                 const struct mlp_samples *samples, double scale) {
    assert_non_null(before);
    assert_int_equal(model->inputs, 32);
    assert_int_equal(model->outputs, 1);
    assert_int_equal(samples->period, 256);
    assert_true(learner->desc.optim.scale == scale);
    l.scale = scale;
    return l.error;
}

static int begin(void **state) {
    memset(&l, 0, sizeof l);
    l.sample = 1e-8;
    l.most = 1 << 20;
    l.loss = 2;
    l.kernels = "coop";
    int code = made_begin(state);
    made.submit = 0;
    made.memory = 1 << 28;
    return code;
}

// ---- perceptrons ----

static void perceptrons(void **state) {
    (void)state;
    static const struct {
        const char *model;
        double depth, hidden;
    } models[] = {{"small", 3, 16}, {"medium", 6, 64}, {"large", 12, 128}};
    assert_int_equal(made_run(bench_mlp, "mlp --time 0.01"), 0);
    assert_int_equal(made_count(), 6);
    for (size_t i = 0; i < 6; i++) {
        double batch = i % 2 ? 65536 : 4096, h = models[i / 2].hidden, depth = models[i / 2].depth;
        double seconds = batch * 1e-8;
        TEXT(i, "model", models[i / 2].model);
        NUMBER(i, "depth", depth);
        NUMBER(i, "hidden", h);
        NUMBER(i, "batch", batch);
        TEXT(i, "precision", "f16");
        TEXT(i, "variant", "fused coop");
        NUMBER(i, "ms", 1e3 * seconds);
        NUMBER(i, "msamples_per_s", 100);
        // A sixth of each, since six steps are told; the gradient has two phases.
        NUMBER(i, "forward_ms", 1);
        NUMBER(i, "backward_ms", 3);
        NUMBER(i, "optimizer_ms", 0.5);
        double weights = 32 * h + (depth - 1) * h * h + h;
        NUMBER(i, "tflop_per_s", 2e-12 * batch * (3 * weights - 32 * h) / seconds);
        NUMBER(i, "dispatches", 77);
        NUMBER(i, "memory", 1000 + batch);
        NUMBER(i, "error", 0);
        TEXT(i, "check", "ok");
    }
    assert_true(made.closed);
    made_software();
    l.no_clock = true;
    assert_int_equal(made_run(bench_mlp, "mlp --time 0.01 --model large"), 0);
    assert_int_equal(made_count(), 1);
    NUMBER(0, "batch", 1024);
    TEXT(0, "precision", "f32");
    assert_false(made_known(0, "forward_ms"));
    assert_false(made_known(0, "backward_ms"));
    assert_false(made_known(0, "optimizer_ms"));
}

// As many steps in a run as take 20 ms, and a thousand at most.
static void steps_of_a_run(void **state) {
    (void)state;
    static const struct {
        double step, least, most;
    } rows[] = {{1e-6, 1000, 1000}, {1e-2, 2, 3}, {2.1e-2, 1, 1}, {1e-4, 200, 260}};
    l.sample = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        l.step = rows[i].step;
        assert_int_equal(made_run(bench_mlp, "mlp --time 0.01 --model small --batch-sizes 8"), 0);
        double steps = json_number_value(made_cell(0, "steps_per_run"));
        assert_true(steps >= rows[i].least && steps <= rows[i].most);
        NUMBER(0, "ms", 1e3 * rows[i].step);
        assert_true(json_number_value(made_cell(0, "samples")) >= 7);
    }
}

static void middle_of_seven(void **state) {
    (void)state;
    static const double slower[] = {1, 2, 3, 4, 5, 6, 7};
    memcpy(made.slower, slower, sizeof slower);
    l.sample = 0;
    l.step = 0.03;
    assert_int_equal(made_run(bench_mlp, "mlp --time 1e-9 --model small --batch-sizes 8"), 0);
    NUMBER(0, "samples", 7);
    NUMBER(0, "ms", 4 * 30);
    NUMBER(0, "spread", (5.5 - 2.5) / 2 / 4);
    NUMBER(0, "msamples_per_s", 8e-6 / 0.12);
}

static void ways(void **state) {
    (void)state;
    static const char *const names[] = {"fused coop", "layers", "fused coop"};
    assert_int_equal(made_run(bench_mlp,
                              "mlp --time 0.01 --model depth=2,hidden=8 --batch-sizes 8,9 "
                              "--precision bf16,f32 --variant fused,layers,best"),
                     0);
    assert_int_equal(made_count(), 2 * 2 * 3);
    for (size_t i = 0; i < 12; i++) {
        TEXT(i, "model", "own");
        NUMBER(i, "batch", i < 6 ? 8 : 9);
        TEXT(i, "precision", i / 3 % 2 ? "bf16" : "f32");
        TEXT(i, "variant", names[i % 3]);
    }
    l.kernels = NULL;
    assert_int_equal(made_run(bench_mlp, "mlp --time 0.01 --model small --batch-sizes 8"), 0);
    TEXT(0, "variant", "fused");
}

// The scale of a loss in f16: the power of two that is 16 times the batch or more; what gradients
// may be off by, worked out again.
static void what_is_allowed(void **state) {
    (void)state;
    static const struct {
        const char *precision;
        int batch;
        double scale, digit;
    } rows[] = {
        {"f32", 4096, 1, 0},     {"f16", 4096, 65536, 0x1p-11}, {"f16", 4097, 131072, 0x1p-11},
        {"f16", 1, 16, 0x1p-11}, {"f16", 3, 64, 0x1p-11},       {"bf16", 300, 1, 0x1p-8}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        // Six layers of 64: of seven, sums of 64 numbers.
        double off = sqrt(0x1p-22 * 8 / rows[i].digit) * rows[i].digit;
        double allowed = sqrt(0.4 * off * 2 / 3 * 7 * sqrt(7));
        allowed += rows[i].digit == 0x1p-11 ? 0x1p-25 * rows[i].batch * 8 / rows[i].scale : 0;
        allowed = rows[i].digit > 0 ? allowed : 1e-4;
        char line[200];
        snprintf(line, sizeof line,
                 "mlp --time 0.01 --model medium --batch-sizes %d --precision %s", rows[i].batch,
                 rows[i].precision);
        l.error = 0.9999 * allowed;
        assert_int_equal(made_run(bench_mlp, line), 0);
        assert_true(l.scale == rows[i].scale);
        NUMBER(0, "error", l.error);
        l.error = 1.0001 * allowed;
        assert_int_equal(made_run(bench_mlp, line), COMMAND_INTERNAL);
        TEXT(0, "check", "FAILED");
        assert_false(made_known(0, "ms"));
        assert_false(made_known(0, "spread"));
        assert_true(made_known(0, "error"));
        SAID("gradients are off by ");
        SAID("not timed: 1");
    }
    l.error = NAN;
    assert_int_equal(made_run(bench_mlp, "mlp --time 0.01 --model small --batch-sizes 8"), 70);
    l.error = -1;
    assert_int_not_equal(made_run(bench_mlp, "mlp --time 0.01 --model small --batch-sizes 8"), 0);
    assert_int_equal(made_count(), 0);
}

static void what_cannot_be(void **state) {
    (void)state;
    static const char *const kinds[] = {"mlp --model small", "images"};
    static int (*const runs[])(int, char **) = {bench_mlp, bench_images};
    static const char *const full[] = {"no memory", "OOM"};
    for (int k = 0; k < 2; k++) {
        char line[200];
        l.most = 16;
        snprintf(line, sizeof line, "%s --time 0.01 --batch-sizes 16,17 --precision f32", kinds[k]);
        assert_int_equal(made_run(runs[k], line), 0);
        assert_int_equal(made_count(), 2);
        TEXT(0, "check", "ok");
        TEXT(1, "check", full[k]);
        assert_false(made_known(1, "ms"));
        assert_false(made_known(1, "memory"));
        assert_false(made_known(1, "error"));
        assert_false(made_known(1, "dispatches"));
        snprintf(line, sizeof line, "%s --time 0.01 --batch-sizes 17", kinds[k]);
        assert_int_equal(made_run(runs[k], line), COMMAND_NO_MEMORY);
        l.no_bf16 = true;
        snprintf(line, sizeof line, "%s --time 0.01 --batch-sizes 8 --precision bf16", kinds[k]);
        assert_int_equal(made_run(runs[k], line), COMMAND_NO_DEVICE);
        snprintf(line, sizeof line, "%s --time 0.01 --batch-sizes 8 --precision bf16,f32",
                 kinds[k]);
        assert_int_equal(made_run(runs[k], line), 0);
        TEXT(0, "precision", "f32");
        TEXT(1, "check", "unsuited");
        l.fails = true;
        assert_int_equal(made_run(runs[k], line), COMMAND_INTERNAL);
        assert_int_equal(made_count(), 0);
        assert_true(made.closed);
        l.fails = false;
        made.finishes = 0;
        made.fail_at = 12;
        made.failure = GRT_IO;
        assert_int_equal(made_run(runs[k], line), COMMAND_IO);
        made.fail_at = 0;
    }
}

static void models(void **state) {
    (void)state;
    static const struct {
        const char *line, *said;
        int (*run)(int, char **);
    } rows[] = {
        {"mlp --model tiny", "small, medium, large, or as in depth=6,hidden=64", bench_mlp},
        {"mlp --model depth=257,hidden=8", "is wanted", bench_mlp},
        {"mlp --model depth=0,hidden=8", "is wanted", bench_mlp},
        {"mlp --model depth=1,hidden=65537", "is wanted", bench_mlp},
        {"mlp --model depth=1,hidden=0", "is wanted", bench_mlp},
        {"mlp --model depth=1", "is wanted", bench_mlp},
        {"mlp --model small,", "is wanted", bench_mlp},
        {"mlp --model smaller", "is wanted", bench_mlp},
        {"mlp --model "
         "small,small,small,small,small,small,small,small,small,small,small,small,small,"
         "small,small,small,small",
         "is wanted", bench_mlp},
        {"mlp --batch-sizes 16777217", "1 to 16777216", bench_mlp},
        {"mlp --batch-sizes 0", "1 to 16777216", bench_mlp},
        {"mlp --variant none", "best", bench_mlp},
        {"mlp --time 0", "above 0", bench_mlp},
        {"images --model resnet19", "resnet18, 34, 50, 101 or 152", bench_images},
        {"images --model resnet", "is wanted", bench_images},
        {"images --model simclr-", "is wanted", bench_images},
        {"images --model wideresnet-27-10", "is wanted", bench_images},
        {"images --model wideresnet-4-2", "is wanted", bench_images},
        {"images --model wideresnet-28", "is wanted", bench_images},
        {"images --model wideresnet-28-0", "is wanted", bench_images},
        {"images --model wideresnet-28-1025", "is wanted", bench_images},
        {"images --model resnet18x", "is wanted", bench_images},
        {"images --resolution 4097", "1 to 4096", bench_images},
        {"images --resolution 0", "1 to 4096", bench_images},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int code = made_run(rows[i].run, rows[i].line);
        if (code != COMMAND_USAGE || !strstr(made_said, rows[i].said)) {
            fail_msg("%s: exit code %d, said: %s", rows[i].line, code, made_said);
        }
    }
    assert_int_equal(l.made, 0);
    assert_int_equal(made_run(bench_mlp, "mlp --time 0.01 --batch-sizes 8 --model "
                                         "depth=256,hidden=65536,hidden=1,depth=1,large"),
                     0);
    assert_int_equal(made_count(), 3);
    NUMBER(0, "depth", 256);
    NUMBER(0, "hidden", 65536);
    NUMBER(1, "depth", 1);
    NUMBER(1, "hidden", 1);
    TEXT(2, "model", "large");
}

// ---- images ----

static void images(void **state) {
    (void)state;
    l.sample = 1e-3;
    assert_int_equal(made_run(bench_images, "images --time 0.01 --resolution 4,5 --batch-sizes 8,9 "
                                            "--model resnet34,simclr-wideresnet-10-1024"),
                     0);
    assert_int_equal(made_count(), 8);
    for (size_t i = 0; i < 8; i++) {
        double batch = 8 + i % 2;
        TEXT(i, "model", i / 4 ? "simclr-wideresnet-10-1024" : "resnet34");
        NUMBER(i, "resolution", i / 2 % 2 ? 5 : 4);
        NUMBER(i, "batch", batch);
        TEXT(i, "precision", "f16");
        NUMBER(i, "ms", batch);
        NUMBER(i, "best_ms", batch);
        NUMBER(i, "images_per_s", 1000);
        NUMBER(i, "forward_ms", 6);
        NUMBER(i, "backward_ms", 18);
        NUMBER(i, "optimizer_ms", 3);
        // Three times forward, and of pairs of both images.
        NUMBER(i, "tflop_per_s", (i / 4 ? 6 : 3) * 1e-12 * 1e6 * 1000);
        NUMBER(i, "dispatches", 77);
        NUMBER(i, "memory", 1000 + batch);
        TEXT(i, "check", "ok");
    }
    assert_int_equal(l.seen.loss, GRT_LOSS_NT_XENT);
    assert_int_equal(l.seen.views, 2);
    assert_int_equal(l.seen.outputs, 128);
    assert_true(l.seen.optim.scale == 1024);
    assert_true(l.seen.optim.momentum == 0.9);
    assert_int_equal(made_run(bench_images, "images --time 0.01 --resolution 4 --batch-sizes 8 "
                                            "--precision f32,bf16"),
                     0);
    TEXT(0, "model", "resnet18");
    TEXT(1, "precision", "bf16");
    assert_int_equal(l.seen.loss, GRT_LOSS_CROSS_ENTROPY);
    assert_int_equal(l.seen.views, 0);
    assert_true(l.seen.optim.scale == 1);
    // The least of all runs, and the one in the middle.
    made.slower[0] = 1.5;
    made.slower[1] = 1;
    made.slower[2] = 1.2;
    assert_int_equal(made_run(bench_images, "images --time 0.001 --resolution 4 --batch-sizes 10"),
                     0);
    NUMBER(0, "best_ms", 10);
    NUMBER(0, "ms", 12);
    NUMBER(0, "samples", 3);
    made_software();
    assert_int_equal(made_run(bench_images, "images --time 0.001 --resolution 4"), 0);
    assert_int_equal(made_count(), 1);
    NUMBER(0, "batch", 32);
    TEXT(0, "precision", "f32");
}

// A step that takes a fiftieth of the loss, and smaller ones while the fall is another.
static void falls(void **state) {
    (void)state;
    static const char line[] = "images --time 0.01 --resolution 4 --batch-sizes 8 --precision f32";
    static const struct {
        double off, curved, error;
        uint32_t resets;
        bool good;
    } rows[] = {
        {0, 0, 0, 2, true},
        {0.09, 0, 0.09, 2, true},
        {-0.09, 0, 0.09, 2, true},
        {0.2, 0, 0.2, 5, true},
        {0.345, 0, 0.345, 5, true},
        {0.355, 0, 0.355, 5, false},
        {-0.355, 0, 0.355, 5, false},
        {-1, 0, 1, 5, false},
        // Curvature, which is a fourth with a step of a fourth.
        {0, 0.3 / (0.02 * 2 / 9e-3), 0.3 / 4, 3, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        l.off = rows[i].off;
        l.curved = rows[i].curved;
        l.resets = 0;
        assert_int_equal(made_run(bench_images, line), rows[i].good ? 0 : COMMAND_INTERNAL);
        assert_int_equal(l.resets, rows[i].resets);
        assert_true(l.factors[0] == 1);
        assert_true(fabs((double)l.factors[1] / (0.02 * 2 / 9e-3) - 1) < 1e-5);
        if (rows[i].resets > 2) {
            assert_true(fabs((double)l.factors[2] / (0.005 * 2 / 9e-3) - 1) < 1e-5);
        }
        double error = json_number_value(made_cell(0, "error"));
        assert_true(fabs(error - rows[i].error) < 1e-3);
        TEXT(0, "check", rows[i].good ? "ok" : "FAILED");
        assert_int_equal(made_known(0, "ms"), rows[i].good);
        if (!rows[i].good) {
            SAID("images: the loss of resnet18, batch 8, f32 falls by other than its gradient");
        }
    }
    l.off = l.curved = 0;
    l.loss = NAN;
    assert_int_equal(made_run(bench_images, line), COMMAND_INTERNAL);
    TEXT(0, "check", "FAILED");
    assert_false(made_known(0, "error"));
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest cases[] = {
        CASE(perceptrons), CASE(steps_of_a_run),  CASE(middle_of_seven),
        CASE(ways),        CASE(what_is_allowed), CASE(what_cannot_be),
        CASE(models),      CASE(images),          CASE(falls),
    };
#undef CASE
    return cmocka_run_group_tests(cases, NULL, NULL);
}
