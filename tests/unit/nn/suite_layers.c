// SPDX-License-Identifier: Apache-2.0
// Lists of layers besides their gradients: an mlp by another name, dropout against its random
// words, shapes that do not fit, and a module of a user's own.
#include "kits/network_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/ops.h"

#define L(...) ((const struct oracle_layer[]){__VA_ARGS__, {0}})

// ---- an mlp by another name ----

static float *trained(const struct grt_learner_desc *desc, const struct network_samples *s,
                      uint32_t steps, size_t *count) {
    struct grt_learner *learner = grt_learner_create(test.dev, desc);
    assert_non_null(learner);
    assert_true(grt_learner_alloc(learner));
    size_t tensors = 0;
    double **params = network_set_parameters(learner, GRT_F32, &tensors);
    network_free_parameters(params, tensors);
    struct grt_graph *graph = grt_learner_step(learner, grt_step_desc(.x = {s->bx}, .y = {s->by}));
    assert_non_null(graph);
    learn_run(graph, steps);
    struct learn l = {.learner = learner};
    float *all = learn_parameters(&l, count);
    grt_graph_destroy(&graph);
    grt_learner_destroy(&learner);
    return all;
}

// Layer by layer, and in evaluations, a list does what the mlp does; fused kernels take both.
static void as_an_mlp(void **state) {
    (void)state;
    const struct network_case c = {"[{linear: 16}, relu, {linear: 16}, relu, {linear: out}]",
                                   {NULL, 1, 6, "mse", 0},
                                   3,
                                   0,
                                   true};
    const struct grt_network_desc network = {.text = c.text, .outputs = 3};
    const struct grt_mlp_desc mlp = {.depth = 2, .hidden = 16, .outputs = 3, .act = GRT_ACT_RELU};
    struct network_samples s = network_samples_make(&c, GRT_F32);
    static const char *const variants[] = {"layers", NULL};
    for (int v = 0; v < 2; v++) {
        struct grt_learner_desc desc = {.make = grt_network_make,
                                        .of = &network,
                                        .input = {1, {6}},
                                        .optim = grt_optim_defaults(GRT_OPTIM_ADAMW),
                                        .batch = NETWORK_SAMPLES,
                                        .variant = variants[v]};
        size_t count = 0, same = 0;
        float *list = trained(&desc, &s, 5, &count);
        desc.make = grt_mlp_make;
        desc.of = &mlp;
        float *own = trained(&desc, &s, 5, &same);
        assert_int_equal(count, same);
        test_same_floats(test.dev, "a list and an mlp", list, own, (uint32_t)count);
        free(list);
        free(own);
    }
    network_samples_end(&s);
}

// Hidden layers of different widths share tensors; computed again, they still do.
static void widths(void **state) {
    (void)state;
    const struct network_case c = {"[{linear: 9}, relu, {linear: 4}, relu, {linear: 7}, relu, "
                                   "{linear: 2}, relu, {linear: out}]",
                                   {NULL, 1, 6, "mse", 0},
                                   3,
                                   0,
                                   true};
    const struct grt_network_desc network = {.text = c.text, .outputs = 3};
    const struct grt_mlp_desc mlp = {
        .depth = 4, .outputs = 3, .act = GRT_ACT_RELU, .widths = {9, 4, 7, 2}};
    struct network_samples s = network_samples_make(&c, GRT_F32);
    struct grt_learner_desc desc = {.make = grt_network_make,
                                    .of = &network,
                                    .input = {1, {6}},
                                    .optim = grt_optim_defaults(GRT_OPTIM_ADAMW),
                                    .batch = NETWORK_SAMPLES};
    size_t count = 0, same = 0;
    float *list = trained(&desc, &s, 5, &count);
    desc.make = grt_mlp_make;
    desc.of = &mlp;
    for (int again = 0; again < 2; again++) {
        desc.recompute = again == 1;
        float *own = trained(&desc, &s, 5, &same);
        assert_int_equal(count, same);
        test_same_floats(test.dev, "a list and an mlp", list, own, (uint32_t)count);
        free(own);
    }
    free(list);
    network_samples_end(&s);
    TEST_REFUSED(grt_mlp_create(grt_mlp_desc(.depth = 3, .outputs = 1, .widths = {4, 5})),
                 GRT_INVALID, "a list of widths");
}

// Segments of a list share memory and are computed again: less of it, and the same bits, with
// dropout, views, lists in lists, and in micro-batches.
static void computed_again(void **state) {
    (void)state;
    char deep[2048] = "[", *end = deep + 1;
    for (int i = 0; i < 25; i++) {
        end += sprintf(end, "{linear: 90}, {norm: layer}, {residual: [tanh]}, ");
    }
    sprintf(end, "{linear: out}]");
    const char *const texts[] = {
        "[{linear: 40}, {norm: layer}, gelu, {residual: [{linear: 40}, relu, {dropout: 0.25}, "
        "{norm: layer}, {linear: 40}]}, silu, {dropout: 0.5}, {repeat: {times: 5, of: [{linear: "
        "40}, tanh]}}, {branches: {of: [[{linear: 9}], [{norm: layer}, {linear: 8}]], merge: "
        "concat}}, flatten, relu, {linear: out}]",
        "[flatten, {linear: 30}, flatten, relu, flatten, {linear: 30}, flatten, {linear: out}, "
        "flatten]",
        "[{linear: 12}, relu, {linear: out}]",
        "[{linear: 30}, tanh, {linear: 30}, {linear: out}]",
        deep,
    };
    const struct network_case c = {"", {NULL, 1, 6, "mse", 0}, 3, 0, true};
    struct network_samples s = network_samples_make(&c, GRT_F32);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const struct grt_network_desc network = {.text = texts[i], .outputs = 3};
        struct grt_learner_desc desc = {.make = grt_network_make,
                                        .of = &network,
                                        .input = {1, {6}},
                                        .optim = grt_optim_defaults(GRT_OPTIM_ADAMW),
                                        .precision = i == 1 ? GRT_F16 : GRT_F32,
                                        .batch = NETWORK_SAMPLES,
                                        .accumulate = 3,
                                        .seed = 8,
                                        .variant = "layers"};
        float *all[2];
        uint64_t bytes[2];
        size_t count = 0;
        for (int again = 0; again < 2; again++) {
            desc.recompute = again == 1;
            struct grt_learner *learner = grt_learner_create(test.dev, &desc);
            assert_non_null(learner);
            bytes[again] =
                grt_learner_bytes(learner, "acts") + grt_learner_bytes(learner, "checkpoints");
            grt_learner_destroy(&learner);
            all[again] = trained(&desc, &s, 5, &count);
        }
        test_same_floats(test.dev, texts[i], all[1], all[0], (uint32_t)count);
        // Of 76 layers a segment of 9 is there, and what 8 of them end with.
        assert_true(i == 2 || bytes[1] < bytes[0]);
        assert_true(texts[i] != deep || bytes[1] < bytes[0] / 3);
        free(all[0]);
        free(all[1]);
    }
    network_samples_end(&s);
}

// ---- gradients over activations ----

static uint64_t bytes_of(const char *text, const char *group) {
    const struct grt_network_desc network = {.text = text, .outputs = 3};
    struct grt_learner *learner = grt_learner_create(
        test.dev,
        grt_learner_desc(.make = grt_network_make, .of = &network, .input = {3, {8, 8, 3}},
                         .batch = NETWORK_SAMPLES, .optim = grt_optim_defaults(GRT_OPTIM_SGD)));
    assert_non_null(learner);
    uint64_t bytes = grt_learner_bytes(learner, group);
    grt_learner_destroy(&learner);
    return bytes;
}

// Memory of `count` numbers of each sample.
static uint64_t room(uint64_t count) {
    uint64_t align = grt_dev_align(test.dev);
    return (NETWORK_SAMPLES * count * 4 + align - 1) / align * align;
}

#define STEM "[{conv: 8}, {norm: batch}, relu, {max_pool: 2}, "
#define FOUR STEM "{conv: 16}, {conv: 16}, {conv: 16}, {conv: 16}, flatten, {linear: out}]"

// What no backward reads is not kept, and gradients lie over activations that are done with: the
// memory by hand, and the same bits as where all is computed again, in other memory.
static void over_activations(void **state) {
    (void)state;
    uint64_t align = grt_dev_align(test.dev);
    // Of the norm: what it takes, and its statistics.
    assert_int_equal(bytes_of(STEM "flatten, {linear: out}]", "acts") -
                         bytes_of("[{conv: 8}, {max_pool: 2}, flatten, {linear: out}]", "acts"),
                     room(8 * 8 * 8) + (2 * 8 * 4 + align - 1) / align * align);
    // The last gradient has memory of its own, and no other.
    assert_int_equal(bytes_of(FOUR, "turns"), room(4 * 4 * 16));
    static const char *const texts[] = {
        FOUR,
        STEM "{residual: {of: [{conv: 8}, {norm: batch}], activation: relu}}, "
             "{residual: {of: [{conv: 8}, {norm: batch}, relu, {conv: 8}], activation: relu}}, "
             "{residual: {of: [{conv: 8}, {norm: batch}], shortcut: [{conv: 8}], "
             "activation: relu}}, {pool: mean}, {linear: out}]",
        "[{conv: 8}, {avg_pool: 2}, {conv: 8}, {dropout: 0.3}, tanh, {conv: 8}, "
        "{max_pool: {size: 3, stride: 1, padding: 1}}, flatten, {linear: 9}, relu, "
        "{linear: out}, flatten]"};
    const struct network_case c = {"", {NULL, 8 * 8, 3, "mse", 0}, 3, 0, true};
    struct network_samples s = network_samples_make(&c, GRT_F32);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const struct grt_network_desc network = {.text = texts[i], .outputs = 3};
        struct grt_learner_desc desc = {.make = grt_network_make,
                                        .of = &network,
                                        .input = {3, {8, 8, 3}},
                                        .optim = grt_optim_defaults(GRT_OPTIM_ADAMW),
                                        .batch = NETWORK_SAMPLES,
                                        .seed = 8};
        float *all[2];
        size_t count = 0;
        for (int again = 0; again < 2; again++) {
            desc.recompute = again == 1;
            all[again] = trained(&desc, &s, 3, &count);
        }
        test_same_floats(test.dev, texts[i], all[0], all[1], (uint32_t)count);
        free(all[0]);
        free(all[1]);
    }
    network_samples_end(&s);
}

// ---- dropout ----

// The identity, then dropout: what comes out says what was dropped.
static void dropped(void **state) {
    (void)state;
    enum { WIDTH = 37, SEED = 77, STEPS = 3 };
    const struct network_case c = {
        "[{linear: out}, {dropout: 0.25}]", {NULL, 1, WIDTH, "mse", 0}, WIDTH, 0, true};
    const struct grt_network_desc network = {.text = c.text, .outputs = WIDTH};
    struct grt_optim_desc still = grt_optim_defaults(GRT_OPTIM_SGD);
    still.lr = 1e-30;
    float one[WIDTH * WIDTH] = {0}, none[WIDTH] = {0};
    for (uint32_t i = 0; i < WIDTH; i++) {
        one[i * WIDTH + i] = 1;
    }
    // In two types, and the second of two micro-batches, which drops others than the first.
    for (int way = 0; way < 3; way++) {
        bool narrow = way == 1, cut = way == 2;
        enum grt_dtype dtype = narrow ? GRT_F16 : GRT_F32;
        const uint32_t rows = NETWORK_SAMPLES / (1 + cut), count = rows * WIDTH;
        struct grt_learner *learner = grt_learner_create(
            test.dev,
            grt_learner_desc(.make = grt_network_make, .of = &network, .input = {1, {WIDTH}},
                             .optim = still, .precision = dtype, .batch = NETWORK_SAMPLES,
                             .accumulate = 1 + cut, .seed = SEED));
        assert_non_null(learner);
        assert_true(grt_learner_alloc(learner));
        for (uint32_t k = 0; k < 2; k++) {
            const struct grt_tensor *t = grt_learner_tensor(learner, GRT_TENSOR_PARAM, k, NULL);
            assert_true(grt_buf_write(t->range.buf, t->range.offset, k == 0 ? one : none,
                                      grt_tensor_bytes(t)));
        }
        assert_true(grt_learner_sync(learner));
        struct network_samples s = network_samples_make(&c, dtype);
        struct grt_graph *graph =
            grt_learner_step(learner, grt_step_desc(.x = {s.bx}, .y = {s.by}));
        struct grt_graph *look =
            grt_learner_evaluate(learner, grt_step_desc(.x = {s.bx}, .y = {s.by}));
        assert_true(graph && look);
        uint32_t kept = 0;
        for (uint32_t step = 0; step < STEPS; step++) {
            learn_run(graph, 1);
            float *y = learn_read(grt_learner_output(learner));
            for (uint32_t i = 0; i < count; i++) {
                uint32_t words[4];
                oracle_philox((const uint32_t[4]){i / 4, 0, step, cut},
                              (const uint32_t[2]){SEED, 0}, words);
                bool drops = oracle_uniform(words[i % 4]) < 0.25;
                double want = drops ? 0 : s.x[cut * count + i] / 0.75;
                if (!(fabs((double)y[i] - want) <= fabs(want) * (narrow ? 0x1p-10 : 0x1p-22))) {
                    print_error("step %u, number %u: %g, not %g\n", step, i, (double)y[i], want);
                }
                assert_true(fabs((double)y[i] - want) <= fabs(want) * (narrow ? 0x1p-10 : 0x1p-22));
                kept += !drops;
            }
            free(y);
        }
        // A quarter of 1110 or 555, five deviations either way.
        assert_true(cut ? kept > 365 && kept < 467 : kept > 760 && kept < 905);
        learn_run(look, 1);
        float *y = learn_read(grt_learner_output(learner));
        for (uint32_t i = 0; i < count; i++) {
            assert_true((double)y[i] == s.x[cut * count + i]);
        }
        free(y);
        network_samples_end(&s);
        grt_graph_destroy(&graph);
        grt_graph_destroy(&look);
        grt_learner_destroy(&learner);
    }
}

// Behind a dropout only what was kept has a gradient.
static void dropped_backward(void **state) {
    (void)state;
    const struct network_case c = {
        "[{linear: 16}, {dropout: 0.5}, {linear: out}]", {NULL, 1, 3, "mse", 0}, 2, 0, true};
    struct grt_learner *learner = network_create(&c, GRT_F32, 1, NULL);
    assert_non_null(learner);
    assert_true(grt_learner_alloc(learner));
    size_t tensors = 0;
    double **params = network_set_parameters(learner, GRT_F32, &tensors);
    struct network_samples s = network_samples_make(&c, GRT_F32);
    struct grt_graph *graph =
        grt_learner_step(learner, grt_step_desc(.rows = 1, .x = {s.bx}, .y = {s.by}));
    assert_non_null(graph);
    learn_run(graph, 1);
    float *grads = learn_read(grt_learner_tensor(learner, GRT_TENSOR_GRAD, 1, NULL));
    uint32_t dropped_units = 0;
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t words[4];
        oracle_philox((const uint32_t[4]){i / 4, 0, 0, 0}, (const uint32_t[2]){0, 0}, words);
        bool drops = oracle_uniform(words[i % 4]) < 0.5;
        assert_true((grads[i] == 0.0f) == drops);
        dropped_units += drops;
    }
    assert_true(dropped_units > 0 && dropped_units < 16);
    free(grads);
    network_free_parameters(params, tensors);
    network_samples_end(&s);
    grt_graph_destroy(&graph);
    grt_learner_destroy(&learner);
}

// ---- refusals ----

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"[{linear: 5}, {residual: [{linear: 4}]}, {linear: out}]",
         "net.yaml:3:17: residual: body gives [4], the input has [5]"},
        {"- linear: 5\n  - residual: {of: [{linear: 4}], shortcut: [{linear: 3}]}\n",
         "net.yaml:4:5: residual: body gives [4], shortcut [3]"},
        {"[{linear: 5}, {branches: [[{linear: 4}], [{linear: 3}]]}]",
         "net.yaml:3:17: branches: the first branch gives [4], another [3]"},
        {"[{branches: {of: [[{linear: 4}], [{linear: 3}]]}}]",
         "net.yaml:3:4: branches: the first branch gives [4], another [3]"},
        {"[{branches: {of: [[{linear: 4}], [{linear: 3}]], merge: mix}}]",
         "net.yaml:3:59: merge: mix is none of sum, concat"},
        {"[{branches: {merge: concat}}]", "net.yaml:3:15: branches wants at least two lists"},
        {"[{branches: {of: [[relu], [relu]], join: sum}}]", "branches has no key 'join'"},
        {"[{columns: {first: 4, count: 3}}]", "net.yaml:3:4: columns: 3 from 4 on are not in [6]"},
        {"[{columns: 3}]", "net.yaml:3:14: columns wants {first: 0, count: 3}"},
        {"[{columns: {count: 0}}]", "net.yaml:3:22: count wants a whole number from 1"},
        {"[{linear: 5}, relu]",
         "net.yaml:3:17: the network gives [5] for a sample, and the targets want [2]"},
        {"[{pool: max}]", "net.yaml:3:4: pool: takes samples of [points][features], not [6]"},
        {"[{linear: 5}, geglu]", "net.yaml:3:17: geglu: takes an even number of features, not [5]"},
        {"[{linaer: 5}]", "net.yaml:3:4: no layer 'linaer'; did you mean 'linear'?"},
        {"[reul]", "net.yaml:3:4: no layer 'reul'; did you mean 'relu'?"},
        {"[rellu]", "net.yaml:3:4: no layer 'rellu'; did you mean 'relu'?"},
        {"[gellu]", "net.yaml:3:4: no layer 'gellu'; did you mean 'gelu'?"},
        {"[gegluu]", "net.yaml:3:4: no layer 'gegluu'; did you mean 'geglu'?"},
        {"[resnet35]", "net.yaml:3:4: no layer 'resnet35'; did you mean 'resnet34'?"},
        {"[resid]", "net.yaml:3:4: no layer 'resid'; did you mean 'residual'?"},
        {"[res]", "net.yaml:3:4: no layer 'res'; did you mean 'residual'?"},
        {"[relu, {attention: 3}]",
         "net.yaml:3:10: no layer 'attention'; layers are linear, conv, norm, dropout, flatten, "
         "geglu, pool, max_pool, avg_pool, residual, repeat, branches, columns, input, relu, gelu, "
         "tanh, gelu_exact, silu, sigmoid"},
        {"[{conv: 3}]", "net.yaml:3:4: conv: takes images of [height][width][channels], not [6]"},
        {"[{max_pool: 2}]",
         "net.yaml:3:4: max_pool: takes images of [height][width][channels], not [6]"},
        {"[{conv: {size: 3}}]", "conv wants outputs"},
        {"[{conv: {outputs: 3, sise: 3}}]", "conv has no key 'sise'"},
        {"[{conv: {outputs: 3, size: 0}}]", "size wants a whole number from 1 to 1024, not 0"},
        {"[{conv: {outputs: 3, padding: 3}}]", "net.yaml:3:33: padding must be below the size, 3"},
        {"[{conv: {outputs: 3, bias: maybe}}]", "bias wants true or false, not 'maybe'"},
        {"[{avg_pool: {stride: 2}}]", "avg_pool wants a size"},
        {"[{avg_pool: {size: 2, padding: 2}}]", "padding is at most half the size, 2"},
        {"[{linear: {outputs: 2, bias: maybe}}]",
         "net.yaml:3:32: bias wants true or false, not 'maybe'"},
        {"[{linear: 0}]", "net.yaml:3:13: linear wants a whole number from 1 to 1048576, not 0"},
        {"[{linear: many}]", "net.yaml:3:13: linear wants a whole number"},
        {"[linear]", "net.yaml:3:4: linear wants a value: 256, out"},
        {"[{relu: 3}]", "net.yaml:3:11: relu takes no value"},
        {"[{dropout: 1}]", "net.yaml:3:14: dropout wants a probability"},
        {"[{linear: {outputs: 3, baias: true}}]", "net.yaml:3:26: linear has no key 'baias'"},
        {"[{linear: {bias: true}}]", "linear wants outputs"},
        {"[{norm: group}]", "net.yaml:3:11: norm: group is none of layer, batch"},
        {"[{repeat: {times: 3}}]", "repeat wants `times` and `of`"},
        {"[{repeat: {times: 9999, of: [relu]}}]", "times wants a whole number from 1 to 4096"},
        {"[{repeat: {times: 4000, of: [relu, tanh]}}]", "more than 4096 layers"},
        {"[{residual: []}]", "residual wants a list of layers"},
        {"[[relu]]", "a layer is one word, or one word with its value"},
        {"[{linear: 3, relu: 1}]", "a layer is one word, or one word with its value"},
        {"[{branches: [[relu]]}]", "branches wants at least two lists"},
        {"[relu]", "net.yaml:3:4: the network gives [6]"},
        {"[{linear: 2}, {residual: [relu, {linear: {outputs: 2, bias: No}}]},\n {linear: 4}]",
         "net.yaml:4:2: the network gives [4] for a sample, and the targets want [2]"},
        {"[]", "the network wants a list of layers"},
        {"{linear: 3}", "the network wants a list of layers"},
        {"[{linear: 3}", "net.yaml:"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct grt_network_desc network = {
            .text = rows[i].text, .path = "net.yaml", .line = 3, .column = 3, .outputs = 2};
        TEST_REFUSED(grt_learner_create(test.dev,
                                        grt_learner_desc(.make = grt_network_make, .of = &network,
                                                         .input = {1, {6}}, .outputs = 2,
                                                         .optim = grt_optim_defaults(GRT_OPTIM_SGD),
                                                         .batch = 4)),
                     GRT_CONFIG, rows[i].why);
    }
    const struct grt_network_desc nothing = {.text = "[relu, tanh]"};
    TEST_REFUSED(
        grt_learner_create(
            test.dev, grt_learner_desc(.make = grt_network_make, .of = &nothing, .input = {1, {6}},
                                       .optim = grt_optim_defaults(GRT_OPTIM_SGD), .batch = 4)),
        GRT_CONFIG, "nothing to learn");
    TEST_REFUSED(grt_network_create(NULL), GRT_INVALID, "network: no desc");
    TEST_REFUSED(grt_network_create(grt_network_desc(.text = "[{linear: out}]")), GRT_CONFIG,
                 "nobody says how many `out` are");
}

// Both sides of what a number may be: the last one that is taken, and the first that is not.
static void limits_of_numbers(void **state) {
    (void)state;
    static const struct {
        const char *taken, *refused, *why;
    } rows[] = {
        {"[{linear: 1048576}]", "[{linear: 1048577}]", "from 1 to 1048576, not 1048577"},
        {"[{conv: {outputs: 1, size: 1024}}]", "[{conv: {outputs: 1, size: 1025}}]",
         "size wants a whole number from 1 to 1024, not 1025"},
        {"[{conv: {outputs: 1, size: 1, padding: 0}}]",
         "[{conv: {outputs: 1, size: 1, padding: -1}}]", "padding wants a whole number"},
        {"[{max_pool: 1024}]", "[{max_pool: 1025}]", "from 1 to 1024, not 1025"},
        {"[{dropout: 0}]", "[{dropout: -0.001}]", "from 0 to below 1, not '-0.001'"},
        {"[{dropout: 0.999}]", "[{dropout: 1.0}]", "from 0 to below 1, not '1.0'"},
        {"[{columns: {first: 0, count: 1048576}}]", "[{columns: {first: 0, count: 1048577}}]",
         "count wants a whole number from 1 to 1048576, not 1048577"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_module *module = grt_network_create(grt_network_desc(.text = rows[i].taken));
        assert_non_null(module);
        grt_module_destroy(&module);
        TEST_REFUSED(grt_network_create(grt_network_desc(.text = rows[i].refused)), GRT_CONFIG,
                     rows[i].why);
    }
    for (uint32_t padding = 0; padding < 4; padding++) {
        const struct grt_window_pool_desc desc = {
            .pool = GRT_POOL_MAX, .size = 3, .padding = padding};
        if (padding < 2) {
            struct grt_module *module = grt_window_pool_create(&desc);
            assert_non_null(module);
            grt_module_destroy(&module);
        } else {
            TEST_REFUSED(grt_window_pool_create(&desc), GRT_INVALID,
                         "window pool: padding is more than half the size");
        }
    }
}

// ---- a user's own module ----

// y = 3 x, which no layer of gpurt is.
static struct grt_shape triple_declare(struct grt_module *module, struct grt_net *net,
                                       const char *prefix, const struct grt_shape *in) {
    (void)module;
    (void)net;
    (void)prefix;
    return *in;
}

static void triple(const struct grt_pass *pass, const struct grt_tensor *x,
                   const struct grt_tensor *y) {
    grt_op_map(pass->graph,
               grt_map_desc(.map = GRT_MAP_SCALE, .y = y, .a = x, .alpha = 3.0f, .beta = 0.0f));
}

static void triple_forward(struct grt_module *module, const struct grt_pass *pass,
                           const struct grt_tensor *x, const struct grt_tensor *y) {
    (void)module;
    triple(pass, x, y);
}

static void triple_backward(struct grt_module *module, const struct grt_pass *pass,
                            const struct grt_tensor *x, const struct grt_tensor *dy,
                            const struct grt_tensor *dx, bool add_dx) {
    (void)module;
    (void)x;
    assert_false(add_dx);
    if (dx) {
        triple(pass, dy, dx);
    }
}

static void triple_destroy(struct grt_module *module) {
    free(module);
}

static const struct grt_module_fns triple_fns = {"triple", triple_declare, triple_forward,
                                                 triple_backward, triple_destroy};

static struct grt_module *make_own(const void *of) {
    (void)of;
    struct grt_module *own = calloc(1, sizeof *own);
    own->fns = &triple_fns;
    struct grt_module *parts[] = {grt_linear_create(grt_linear_desc(.outputs = 4)),
                                  grt_residual_create(own, NULL, GRT_ACT_NONE),
                                  grt_linear_create(grt_linear_desc(.outputs = 2))};
    return grt_sequence_create(parts, 3);
}

// 3 x + x is 4 x: the same as a network whose first layer is four times as large.
static void own_module(void **state) {
    (void)state;
    const struct network_case c = {"", {NULL, 1, 3, "mse", 0}, 2, 0, true};
    struct grt_learner *learner =
        grt_learner_create(test.dev, grt_learner_desc(.make = make_own, .input = {1, {3}},
                                                      .optim = grt_optim_defaults(GRT_OPTIM_SGD),
                                                      .batch = NETWORK_SAMPLES));
    assert_non_null(learner);
    assert_true(grt_learner_alloc(learner));
    assert_string_equal(grt_learner_layer(learner, 0)->kind, "sequence");
    assert_string_equal(grt_learner_layer(learner, 3)->kind, "triple");
    assert_string_equal(grt_learner_layer(learner, 3)->name, "1.body");
    size_t tensors = 0;
    double **params = network_set_parameters(learner, GRT_F32, &tensors);
    struct network_samples s = network_samples_make(&c, GRT_F32);
    struct grt_graph *graph = grt_learner_step(learner, grt_step_desc(.x = {s.bx}, .y = {s.by}));
    assert_non_null(graph);
    learn_run(graph, 1);
    float *bias = learn_read(grt_learner_tensor(learner, GRT_TENSOR_GRAD, 1, NULL));
    const struct oracle_network oracle = {L({"linear", 4}, {"linear", 2}), 1, 3, "mse", 0};
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < (k == 0 ? 12u : 4u); i++) {
            params[k][i] *= 4;
        }
    }
    for (uint32_t i = 0; i < 4; i++) {
        double want = 4 * oracle_network_slope(&oracle, params, 1, i, s.x, s.y, NETWORK_SAMPLES);
        assert_true(fabs((double)bias[i] - want) < 1e-4 * (1 + fabs(want)));
    }
    free(bias);
    network_free_parameters(params, tensors);
    network_samples_end(&s);
    grt_graph_destroy(&graph);
    grt_learner_destroy(&learner);
}

// Parameters and operations of one sample, from the formulas: a product has two operations for each
// weight and row, a norm eight for each number; a composition has those of its parts.
static void work_is_counted(void **state) {
    (void)state;
    const struct grt_network_desc network = {
        .text = "[{conv: {outputs: 5, size: 3, stride: 2, padding: 1}}, {norm: batch}, relu, "
                "{max_pool: 2}, {residual: [{conv: {outputs: 5, size: 1, bias: false}}]}, "
                "flatten, {linear: 7}, {norm: layer}, {dropout: 0.5}, {linear: out}]",
        .outputs = 2};
    static const struct {
        const char *kind;
        uint64_t parameters;
        double operations;
    } want[] = {
        {"conv", 27 * 5 + 5, 2.0 * (4 * 6) * 27 * 5},
        {"batch_norm", 10, 8.0 * 4 * 6 * 5},
        {"relu", 0, 4 * 6 * 5},
        {"max_pool", 0, 2.0 * 3 * 5 * 4},
        {"conv", 25, 2.0 * (2 * 3) * 5 * 5},
        {"flatten", 0, 0},
        {"linear", 30 * 7 + 7, 2.0 * 30 * 7},
        {"layer_norm", 14, 8.0 * 7},
        {"dropout", 0, 7},
        {"linear", 7 * 2 + 2, 2.0 * 7 * 2},
    };
    struct grt_learner *learner = grt_learner_create(
        test.dev,
        grt_learner_desc(.make = grt_network_make, .of = &network, .input = {3, {8, 12, 3}},
                         .optim = grt_optim_defaults(GRT_OPTIM_SGD), .batch = 4));
    assert_non_null(learner);
    const struct grt_net_layer *layer;
    size_t seen = 0;
    uint64_t parameters = 0;
    double operations = 0;
    for (uint32_t i = 0; (layer = grt_learner_layer(learner, i)) != NULL; i++) {
        if (!layer->parts) {
            assert_true(seen < sizeof want / sizeof *want);
            assert_string_equal(layer->kind, want[seen].kind);
            assert_int_equal(layer->parameters, want[seen].parameters);
            assert_true(layer->operations == want[seen].operations);
            parameters += layer->parameters;
            operations += layer->operations;
            seen++;
        }
    }
    assert_int_equal(seen, sizeof want / sizeof *want);
    assert_int_equal(grt_learner_layer(learner, 0)->parameters, parameters);
    assert_true(grt_learner_layer(learner, 0)->operations == operations);
    assert_int_equal(grt_learner_parameters(learner), parameters);
    grt_learner_destroy(&learner);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(computed_again),    TEST_CASE(as_an_mlp),        TEST_CASE(widths),
    TEST_CASE(dropped),           TEST_CASE(dropped_backward), TEST_CASE(refused),
    TEST_CASE(limits_of_numbers), TEST_CASE(own_module),       TEST_CASE(work_is_counted),
    TEST_CASE(over_activations),
};
TEST_SUITE(layers, true, cases);
