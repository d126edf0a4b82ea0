// SPDX-License-Identifier: Apache-2.0
// Networks by name: parameters under torchvision's names, first values, and one training step
// beside PyTorch's.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden/resnet_torch.h"
#include "gpurt/network.h"
#include "kits/learn_kit.h"

struct named_case {
    const char *text;
    uint32_t side, images;  // stream of the images
    double loss;
    const struct resnet_row *rows;
    size_t count;
};
#define RATE 0.5
#define ROWS(name) name##_rows, sizeof name##_rows / sizeof name##_rows[0]

static struct grt_learner *create(const char *text, uint32_t side, uint32_t outputs,
                                  uint32_t batch) {
    const struct grt_network_desc network = {.text = text, .outputs = outputs};
    struct grt_learner_desc desc = {.make = grt_network_make,
                                    .of = &network,
                                    .input = {3, {side, side, 3}},
                                    .outputs = outputs,
                                    .loss = GRT_LOSS_CROSS_ENTROPY,
                                    .optim = grt_optim_defaults(GRT_OPTIM_SGD),
                                    .batch = batch};
    desc.optim.lr = RATE;
    struct grt_learner *learner = grt_learner_create(test.dev, &desc);
    assert_non_null(learner);
    return learner;
}

static uint32_t row_of(const struct named_case *c, const char *name) {
    uint32_t k = 0;
    while (k < c->count && strcmp(c->rows[k].name, name) != 0) {
        k++;
    }
    if (k == c->count) {
        fail_msg("%s: PyTorch has no tensor '%s'", c->text, name);
    }
    return k;
}

// Number e of a parameter, row k of the case.
static float first_number(const struct grt_tensor *t, const char *name, uint32_t k, uint32_t e) {
    double n = (double)learn_number(100 + k, e);
    double inputs = (double)grt_tensor_count(t) / (double)t->shape[0];
    bool weight = strcmp(name + strlen(name) - 6, "weight") == 0;
    return (float)(t->rank == 1   ? 0.125 * n + (weight ? 1.0 : 0.0)
                   : t->rank == 2 ? n / sqrt(inputs)
                                  : n * sqrt(6.0 / inputs));
}

static void set_parameters(const struct named_case *c, struct grt_learner *learner) {
    const struct grt_tensor *t;
    const char *name = NULL;
    for (uint32_t i = 0; (t = grt_learner_tensor(learner, GRT_TENSOR_PARAM, i, &name)); i++) {
        uint32_t k = row_of(c, name);
        uint64_t count = grt_tensor_count(t);
        float *v = malloc(count * sizeof *v);
        assert_non_null(v);
        for (uint32_t e = 0; e < count; e++) {
            v[e] = first_number(t, name, k, e);
        }
        assert_true(grt_buf_write(t->range.buf, t->range.offset, v, count * sizeof *v));
        free(v);
    }
}

// Every parameter, of many millions, has made its step.
static void check_updates(const struct named_case *c, const struct grt_learner *learner) {
    const struct grt_tensor *t;
    const char *name = NULL;
    for (uint32_t i = 0; (t = grt_learner_tensor(learner, GRT_TENSOR_PARAM, i, &name)); i++) {
        uint32_t k = row_of(c, name), wrong = 0;
        float *now = learn_read(t);
        float *grad = learn_read(grt_learner_tensor(learner, GRT_TENSOR_GRAD, i, NULL));
        for (uint32_t e = 0; e < grt_tensor_count(t); e++) {
            double want = (double)first_number(t, name, k, e) - RATE * (double)grad[e];
            wrong += fabs((double)now[e] - want) > 1e-6 * (1 + fabs(want));
        }
        if (wrong > 0) {
            fail_msg("%s: %u numbers of %s are not those of a step", c->text, wrong, name);
        }
        free(now);
        free(grad);
    }
}

// Length and product of every tensor of a role; the number of tensors.
static size_t compare_role(const struct named_case *c, const struct grt_learner *learner,
                           enum grt_tensor_role role, enum grt_tensor_role names,
                           struct test_compare *compare) {
    const struct grt_tensor *t;
    const char *name = NULL;
    size_t compared = 0;
    for (uint32_t i = 0; (t = grt_learner_tensor(learner, names, i, &name)); i++) {
        if (strstr(name, "num_batches_tracked")) {
            continue;
        }
        t = grt_learner_tensor(learner, role, i, NULL);
        uint32_t k = row_of(c, name);
        float *got = learn_read(t);
        double squares = 0, product = 0, length = c->rows[k].length;
        for (uint32_t e = 0; e < grt_tensor_count(t); e++) {
            squares += (double)got[e] * (double)got[e];
            product += (double)got[e] * (double)learn_number(1000 + k, e);
        }
        test_compare_value(compare, 2 * k, (float)sqrt(squares),
                           (struct oracle_value){length, 1e-4 * length});
        test_compare_value(compare, 2 * k + 1, (float)product,
                           (struct oracle_value){c->rows[k].product, 1e-4 * length});
        free(got);
        compared++;
    }
    return compared;
}

struct samples {
    struct grt_buf *x, *y;
};

// A learner with its parameters, and a batch.
static struct grt_learner *begin(const struct named_case *c, struct samples *s) {
    struct grt_learner *learner = create(c->text, c->side, RESNET_CLASSES, RESNET_BATCH);
    assert_true(grt_learner_alloc(learner));
    set_parameters(c, learner);
    uint32_t numbers = RESNET_BATCH * c->side * c->side * 3;
    s->x = test_buf(test.dev, numbers * 4, GRT_BUF_UPLOAD);
    s->y = test_buf(test.dev, RESNET_BATCH * 4, GRT_BUF_UPLOAD);
    for (uint32_t i = 0; i < numbers; i++) {
        ((float *)grt_buf_host(s->x))[i] = learn_number(c->images, i);
    }
    for (uint32_t i = 0; i < RESNET_BATCH; i++) {
        ((uint32_t *)grt_buf_host(s->y))[i] = learn_hash(2, i) % RESNET_CLASSES;
    }
    return learner;
}

static void end(struct samples *s, struct grt_graph *graph, struct grt_learner *learner) {
    grt_graph_destroy(&graph);
    grt_buf_destroy(&s->x);
    grt_buf_destroy(&s->y);
    grt_learner_destroy(&learner);
}

static void check_step(const struct named_case *c) {
    struct samples s;
    struct grt_learner *learner = begin(c, &s);
    struct grt_graph *graph = grt_learner_step(learner, grt_step_desc(.x = {s.x}, .y = {s.y}));
    assert_non_null(graph);
    learn_run(graph, 1);
    struct grt_learn_state state;
    assert_true(grt_learner_state(learner, &state));
    struct test_compare compare = test_compare(test.dev, "a step of %s", c->text);
    test_compare_value(&compare, 2 * c->count, state.loss,
                       (struct oracle_value){c->loss, 1e-5 * c->loss});
    size_t compared = compare_role(c, learner, GRT_TENSOR_GRAD, GRT_TENSOR_PARAM, &compare) +
                      compare_role(c, learner, GRT_TENSOR_BUFFER, GRT_TENSOR_BUFFER, &compare);
    test_compare_end(&compare);
    assert_int_equal(compared, c->count);
    check_updates(c, learner);
    end(&s, graph, learner);
}

// On ref, and under a slow checker, the smallest network is enough.
static void skip_small(void) {
    if (test.small || test.on_ref) {
        skip();
    }
}

static void step_of_resnet18(void **state) {
    (void)state;
    skip_small();
    check_step(&(struct named_case){"[{resnet18: {stem: imagenet}}]", 32, RESNET18_IMAGES,
                                    RESNET18_LOSS, ROWS(resnet18)});
}

static void step_of_small_images(void **state) {
    (void)state;
    skip_small();
    check_step(&(struct named_case){"[resnet18]", 8, RESNET18_CIFAR_IMAGES, RESNET18_CIFAR_LOSS,
                                    ROWS(resnet18_cifar)});
}

// In evaluation, where no rectifier near its edge changes much.
static void loss_of_bottlenecks(void **state) {
    (void)state;
    skip_small();
    struct resnet_row rows[sizeof resnet50_names / sizeof *resnet50_names];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rows[i] = (struct resnet_row){.name = resnet50_names[i]};
    }
    const struct named_case c = {"[{resnet50: {stem: imagenet}}]", 32, 300, RESNET50_LOSS, rows,
                                 sizeof rows / sizeof *rows};
    struct samples s;
    struct grt_learner *learner = begin(&c, &s);
    struct grt_graph *graph = grt_learner_evaluate(learner, grt_step_desc(.x = {s.x}, .y = {s.y}));
    assert_non_null(graph);
    learn_run(graph, 1);
    struct grt_learn_state state_now;
    assert_true(grt_learner_state(learner, &state_now));
    struct test_compare compare = test_compare(test.dev, "evaluation of %s", c.text);
    test_compare_value(&compare, 0, state_now.eval_loss / RESNET_BATCH,
                       (struct oracle_value){c.loss, 1e-4 * c.loss});
    test_compare_end(&compare);
    end(&s, graph, learner);
}

static void step_of_wideresnet(void **state) {
    (void)state;
    check_step(&(struct named_case){"[{wideresnet: {depth: 16, width: 2}}]", 12, WIDERESNET_IMAGES,
                                    WIDERESNET_LOSS, ROWS(wideresnet)});
}

// As torchvision and the papers have them.
static void sizes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t side, outputs;
        uint64_t parameters;
    } rows[] = {
        {"[resnet18]", 224, 1000, 11689512},
        {"[resnet34]", 224, 1000, 21797672},
        {"[resnet50]", 224, 1000, 25557032},
        {"[resnet101]", 224, 1000, 44549160},
        {"[resnet152]", 224, 1000, 60192808},
        {"[resnet18]", 32, 10, 11173962},
        {"[wideresnet]", 32, 10, 36479194},
        {"[{wideresnet: {depth: 28, width: 2}}]", 32, 10, 1467610},
        // In a list it is a part, and its outputs are what is said.
        {"[{resnet18: {outputs: none}}, {linear: 128}, relu, {linear: out}]", 96, 10,
         11176512 + 512 * 128 + 128 + 1290},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_learner *learner = create(rows[i].text, rows[i].side, rows[i].outputs, 1);
        assert_int_equal(grt_learner_parameters(learner), rows[i].parameters);
        grt_learner_destroy(&learner);
    }
    // What backward hands from layer to layer has the same memory in every block: more blocks take
    // more for what they keep, and nothing for that.
    struct grt_learner *few = create("[{wideresnet: {depth: 10, width: 1}}]", 16, 10, 3);
    struct grt_learner *many = create("[{wideresnet: {depth: 22, width: 1}}]", 16, 10, 3);
    assert_true(grt_learner_bytes(few, "turns") > 0);
    assert_in_range(grt_learner_bytes(many, "turns"), 1, grt_learner_bytes(few, "turns"));
    assert_true(grt_learner_bytes(few, "acts") < grt_learner_bytes(many, "acts"));
    grt_learner_destroy(&few);
    grt_learner_destroy(&many);
    struct grt_learner *learner = create(rows[8].text, 96, 10, 1);
    // The largest gradient, of what the stem's norm gives, lies over activations.
    assert_in_range(grt_learner_bytes(learner, "turns"), 1, 48 * 48 * 64 * 4 - 1);
    const char *name = NULL;
    assert_true(grt_learner_alloc(learner));
    assert_non_null(grt_learner_tensor(learner, GRT_TENSOR_PARAM, 0, &name));
    assert_string_equal(name, "0.conv1.weight");
    grt_learner_destroy(&learner);
}

// Weights of convolutions are normal, of torchvision's deviation; the last norms are 0 on demand.
static void first_values(void **state) {
    (void)state;
    struct grt_learner *learner = create("[{resnet18: {zero_init: true}}]", 8, 10, 1);
    const struct grt_tensor *t;
    const char *name = NULL;
    uint32_t zeros = 0, convolutions = 0;
    assert_true(grt_learner_alloc(learner));
    for (uint32_t i = 0; (t = grt_learner_tensor(learner, GRT_TENSOR_PARAM, i, &name)); i++) {
        float *v = learn_read(t);
        double count = (double)grt_tensor_count(t), sum = 0, squares = 0, fourth = 0;
        for (uint64_t e = 0; e < grt_tensor_count(t); e++) {
            double n = (double)v[e];
            sum += n;
            squares += n * n;
            fourth += n * n * n * n;
        }
        if (t->rank == 4) {
            double variance = 2.0 / (double)(t->shape[0] * t->shape[1] * t->shape[2]);
            assert_true(fabs(sum / count) < 5 * sqrt(variance / count));
            assert_true(fabs(squares / count / variance - 1) < 5 * sqrt(2 / count));
            assert_true(fabs(fourth / count / (3 * variance * variance) - 1) <
                        5 * sqrt(32.0 / 3 / count));
            convolutions++;
        } else if (strstr(name, "bn2.weight")) {
            assert_true(squares == 0);
            zeros++;
        } else if (strstr(name, "bn1.weight")) {
            assert_true(sum == count);
        }
        free(v);
    }
    assert_int_equal(zeros, 8);
    assert_int_equal(convolutions, 20);
    grt_learner_destroy(&learner);
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"[resnet17]", "at character 2: no layer 'resnet17'; did you mean 'resnet1"},
        {"[{resnet18: 3}]", "at character 13: resnet18 takes keys"},
        {"[{resnet18: {stem: big}}]",
         "at character 20: stem: big is none of auto, cifar, imagenet"},
        {"[{resnet18: {depth: 3}}]", "resnet18 has no key 'depth'"},
        {"[{wideresnet: {depth: 27}}]", "at character 23: wideresnet: depth is 6 n + 4"},
        {"[{wideresnet: {dropout: 1}}]", "dropout wants a probability"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct grt_network_desc desc = {.text = rows[i].text, .outputs = 10};
        TEST_REFUSED(grt_network_create(&desc), GRT_CONFIG, rows[i].why);
    }
    TEST_REFUSED(grt_resnet_create(NULL), GRT_INVALID, "resnet: no desc");
    TEST_REFUSED(grt_resnet_create(grt_resnet_desc(.depth = 19)), GRT_INVALID, "18, 34, 50");
    TEST_REFUSED(grt_wideresnet_create(grt_wideresnet_desc(.depth = 27)), GRT_INVALID, "depth is");
    const struct grt_network_desc rows_only = {.text = "[resnet18]", .outputs = 2};
    struct grt_learner_desc learner = {.make = grt_network_make,
                                       .of = &rows_only,
                                       .input = {1, {12}},
                                       .outputs = 2,
                                       .optim = grt_optim_defaults(GRT_OPTIM_SGD),
                                       .batch = 2};
    TEST_REFUSED(grt_learner_create(test.dev, &learner), GRT_CONFIG, "takes images of");
}

static const struct CMUnitTest cases[] = {TEST_CASE(step_of_resnet18),
                                          TEST_CASE(step_of_small_images),
                                          TEST_CASE(loss_of_bottlenecks),
                                          TEST_CASE(step_of_wideresnet),
                                          TEST_CASE(sizes),
                                          TEST_CASE(first_values),
                                          TEST_CASE(refused)};
TEST_SUITE(resnet, true, cases);
