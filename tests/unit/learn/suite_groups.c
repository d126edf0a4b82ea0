// SPDX-License-Identifier: Apache-2.0
// Groups of parameters: each has its own learning rate and decay, all are clipped by one norm.
#include "kits/learn_kit.h"
#include "kits/optim_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/task.h"

#include "backends/backend.h"

// ---- the formulas ----

// What a parameter of the rig is to have: "a" is a vector, "b" a matrix.
struct rates {
    double lr, decay;
};

static double scheduled(const struct grt_optim_desc *d, double lr, size_t step) {
    if (lr == 0 || d->schedule == GRT_SCHEDULE_CONSTANT) {
        return lr;
    }
    return d->min_lr +
           (lr - d->min_lr) * (1 + cos(ORACLE_PI * fmin(1, (double)step / d->total))) / 2;
}

static void check(const char *name, const struct grt_optim_desc *d, struct rates a, struct rates b,
                  enum grt_dtype type) {
    struct rig r;
    rig_begin(&r, d, type);
    float scale = type == GRT_F16 ? 1024.0f : 1.0f;
    rig_set(&r, scale);
    struct oracle_optim o = {.kind = grt_optim_text(d->kind),
                             .momentum = d->momentum,
                             .dampening = d->dampening,
                             .nesterov = d->nesterov,
                             .beta1 = d->beta1,
                             .beta2 = d->beta2,
                             .eps = d->eps,
                             .trust = d->trust};
    // Vectors are stepped as by SGD.
    const char *flat = d->kind == GRT_OPTIM_LARS ? "sgd" : o.kind;
    float got[COUNT], start[COUNT], grads[COUNT];
    double want[COUNT], g[COUNT], first[COUNT] = {0}, second[COUNT] = {0};
    rig_gather(&r, r.params.master, 0, start);
    for (int i = 0; i < COUNT; i++) {
        want[i] = (double)start[i];
    }
    uint64_t seed = 5;
    struct test_compare compare = test_compare(test.dev, "%s, %s", name, grt_dtype_text(type));
    double most = fmax(fmax(a.lr, b.lr), d->min_lr);
    for (size_t t = 1; t <= 9; t++) {
        double squares = 0;
        for (int i = 0; i < COUNT; i++) {
            grads[i] = test_float(&seed, TEST_PLAIN);
            g[i] = (double)grads[i];
            squares += g[i] * g[i];
            grads[i] *= scale;
        }
        double clip = d->max_norm > 0 ? fmin(1, d->max_norm / (sqrt(squares) + 1e-6)) : 1;
        for (int i = 0; i < COUNT; i++) {
            g[i] *= clip;
        }
        rig_set_grads(&r, grads);
        rig_step(&r);
        o.lr = scheduled(d, a.lr, t - 1);
        o.weight_decay = a.decay;
        o.kind = flat;
        oracle_optim_step(&o, t, COUNT_A, g, want, first, second);
        o.kind = grt_optim_text(d->kind);
        o.lr = scheduled(d, b.lr, t - 1);
        o.weight_decay = b.decay;
        oracle_optim_step(&o, t, COUNT_B, g + COUNT_A, want + COUNT_A, first + COUNT_A,
                          second + COUNT_A);
        rig_gather(&r, r.params.master, 0, got);
        for (int i = 0; i < COUNT; i++) {
            double bound =
                (640 * most * (double)t + 2 * (double)t * (1 + fabs(want[i]))) * ORACLE_U;
            bool still = (i < COUNT_A ? a.lr : b.lr) == 0;
            test_compare_value(
                &compare, t * 10000 + (size_t)i, got[i],
                (struct oracle_value){still ? (double)start[i] : want[i], still ? 0 : bound});
        }
        // What is reported is the optimizer's own rate.
        test_compare_value(&compare, t, rig_state(&r).lr,
                           (struct oracle_value){scheduled(d, d->lr, t - 1), 32 * ORACLE_U * most});
    }
    // The padding stays zero; the copy is the masters rounded.
    float *all = test_alloc(r.params.elements * sizeof *all);
    rig_read_all(r.params.master, all);
    for (uint64_t i = COUNT_A; i < r.params.list[1]->first; i++) {
        assert_true(all[i] == 0.0f);
    }
    if (type != GRT_F32) {
        struct oracle_format format = type == GRT_F16 ? oracle_f16 : oracle_bf16;
        uint16_t *copy = test_alloc(r.params.elements * sizeof *copy);
        rig_read_all(r.params.copy, copy);
        for (uint64_t i = 0; i < r.params.elements; i++) {
            test_compare_bits(&compare, i, copy[i], oracle_narrow(format, (double)all[i]));
        }
        free(copy);
    }
    free(all);
    test_compare_end(&compare);
    rig_end(&r);
}

static struct grt_optim_desc with(enum grt_optim kind, double lr, double decay) {
    struct grt_optim_desc d = grt_optim_defaults(kind);
    d.lr = lr;
    d.weight_decay = decay;
    return d;
}

static struct grt_optim_group lr_group(const char *match, double lr) {
    struct grt_optim_group g = {.own_lr = true, .lr = lr};
    snprintf(g.match, sizeof g.match, "%s", match);
    return g;
}

static struct grt_optim_group decay_group(const char *match, double decay) {
    struct grt_optim_group g = {.own_decay = true, .weight_decay = decay};
    snprintf(g.match, sizeof g.match, "%s", match);
    return g;
}

static void formulas(void **state) {
    (void)state;
    for (uint32_t kind = 0; kind < GRT_OPTIM_COUNT; kind++) {
        struct grt_optim_desc d = with((enum grt_optim)kind, 0.02, 0.1);
        bool lars = kind == GRT_OPTIM_LARS;
        d.momentum = kind == GRT_OPTIM_SGD || lars ? 0.9 : 0;
        d.nesterov = lars;
        d.trust = 0.05;
        d.max_norm = 3;
        d.decay_matrices = true;
        check("matrices decay", &d, (struct rates){0.02, 0}, (struct rates){0.02, 0.1}, GRT_F16);
        d.decay_matrices = false;
        d.groups[d.group_count++] = lr_group("b", 0.003);
        check("a rate", &d, (struct rates){0.02, lars ? 0 : 0.1}, (struct rates){0.003, 0.1},
              GRT_F32);
        // The first that matches counts; what a group says of decay holds for vectors too.
        d.groups[d.group_count++] = decay_group("?", 0.3);
        d.decay_matrices = true;
        check("a decay", &d, (struct rates){0.02, 0.3}, (struct rates){0.003, 0.1}, GRT_BF16);
        d.group_count = 0;
        d.groups[d.group_count++] = lr_group("[ac]*", 0);
        d.schedule = GRT_SCHEDULE_COSINE;
        d.total = 12;
        d.min_lr = 0.001;
        check("frozen", &d, (struct rates){0, 0}, (struct rates){0.02, 0.1}, GRT_F32);
        d.groups[0] = lr_group("a", 0.08);
        check("scheduled", &d, (struct rates){0.08, 0}, (struct rates){0.02, 0.1}, GRT_F32);
    }
}

// With the reach of a binding lowered, the update runs in pieces, and each finds its rows of the
// table.
static void pieces(void **state) {
    (void)state;
    struct grt_caps *caps = &test.dev->info.caps;
    uint64_t reach = caps->max_binding;
    struct grt_optim_desc d = with(GRT_OPTIM_ADAMW, 0.02, 0.1);
    d.groups[d.group_count++] = lr_group("a", 0.005);
    d.decay_matrices = true;
    assert_true(COUNT * sizeof(float) > sizeof(struct grt_learn_row) * GRT_HISTORY);
    caps->max_binding = sizeof(struct grt_learn_row) * GRT_HISTORY;
    check("in pieces", &d, (struct rates){0.005, 0}, (struct rates){0.02, 0.1}, GRT_F16);
    caps->max_binding = reach;
}

// ---- learners ----

static float *trained(const struct learn_desc *desc, size_t *count) {
    struct learn l = learn_begin(desc, desc->batch);
    learn_train(&l, 6);
    float *p = learn_parameters(&l, count);
    learn_end(&l);
    return p;
}

// Groups that say what the optimizer says anyway change no bit, fused or not.
static void same_as_none(void **state) {
    (void)state;
    static const char *const variants[] = {"layers", NULL};
    for (int v = 0; v < 2; v++) {
        struct learn_desc d = learn_small(v ? GRT_F32 : GRT_F16);
        size_t count = 0, same = 0;
        d.variant = variants[v];
        d.optim.max_norm = 0.5;
        float *none = trained(&d, &count);
        d.optim.groups[0] = lr_group("layers.1.*", d.optim.lr);
        d.optim.groups[1] = decay_group("*", d.optim.weight_decay);
        d.optim.group_count = 2;
        float *groups = trained(&d, &same);
        assert_int_equal(count, same);
        test_same_floats(test.dev, "groups of the same rates", groups, none, (uint32_t)count);
        free(none);
        free(groups);
    }
}

// The last layer is what has the last tensor's name but for its end: not what lies within it, nor
// what only begins alike.
static void which_layer_is_last(void **state) {
    (void)state;
    static const struct {
        const char *name;
        bool last;
    } names[] = {{"body.weight", false},
                 {"head.inner.weight", false},
                 {"header.weight", false},
                 {"head.weight", true},
                 {"head.bias", true}};
    enum { NAMES = sizeof names / sizeof *names };
    struct grt_params params;
    struct grt_optim_desc d = with(GRT_OPTIM_SGD, 0.02, 0);
    d.groups[d.group_count++] = lr_group("*", 0);
    d.groups[0].but_last = true;
    grt_params_init(&params, test.dev, GRT_F32);
    for (int i = 0; i < NAMES; i++) {
        const uint64_t shape[GRT_MAX_RANK] = {3, 2};
        assert_non_null(grt_params_add(&params, "", names[i].name, shape, GRT_INIT_ZEROS, 0));
    }
    uint64_t rows = grt_optim_rate_rows(&d, &params), words = grt_optim_rate_words(&d, &params);
    uint32_t *table = test_alloc(words * sizeof *table);
    assert_true(grt_optim_rates(&d, &params, table));
    for (int i = 0; i < NAMES; i++) {
        uint32_t row = table[2 * rows + params.list[i]->first / params.unit];
        assert_true(test_as_f32(table[2 * row]) == (names[i].last ? 0.02f : 0.0f));
    }
    free(table);
    grt_params_finish(&params);
}

// All but the last layer stays: "b" is a layer by itself, and so is "a".
static void frozen_body(void **state) {
    (void)state;
    struct grt_optim_desc d = with(GRT_OPTIM_SGD, 0.02, 0.1);
    d.groups[d.group_count++] = lr_group("*", 0);
    d.groups[0].but_last = true;
    check("frozen body", &d, (struct rates){0, 0}, (struct rates){0.02, 0.1}, GRT_F32);
    struct learn_desc l = learn_small(GRT_F32);
    size_t count = 0, same = 0;
    struct learn before = learn_begin(&l, l.batch);
    float *first = learn_parameters(&before, &count);
    learn_end(&before);
    l.optim.groups[0] = d.groups[0];
    l.optim.group_count = 1;
    struct learn after = learn_begin(&l, l.batch);
    learn_train(&after, 3);
    float *last = learn_parameters(&after, &same);
    // The last layer is the last two tensors.
    const char *name = NULL;
    size_t still = 0, tensors = 0;
    while (grt_learner_tensor(after.learner, GRT_TENSOR_PARAM, (uint32_t)tensors, &name)) {
        tensors++;
    }
    for (size_t i = 0; i + 2 < tensors; i++) {
        still += grt_tensor_count(
            grt_learner_tensor(after.learner, GRT_TENSOR_PARAM, (uint32_t)i, &name));
    }
    learn_end(&after);
    assert_memory_equal(first, last, still * sizeof *first);
    size_t moved = 0;
    for (size_t i = still; i < count; i++) {
        moved += first[i] != last[i];
    }
    assert_true(still < count && moved > (count - still) / 2);
    free(first);
    free(last);
}

static void refusals(void **state) {
    (void)state;
    struct learn_desc d = learn_small(GRT_F32);
    d.optim.groups[0] = lr_group("layers.9.*", 0.1);
    d.optim.group_count = 1;
    TEST_REFUSED(learn_create(test.dev, &d), GRT_INVALID,
                 "groups: no parameter matches 'layers.9.*'; parameters are layers.0.weight, ");
    // All names that there are, or the first of many.
    const char *end = strstr(grt_last_error(), "layers.3.bias");
    assert_true(end && strcmp(end, "layers.3.bias") == 0);
    snprintf(d.optim.groups[0].where, sizeof d.optim.groups[0].where, "wings.yaml:7:5: ");
    TEST_REFUSED(learn_create(test.dev, &d), GRT_CONFIG, "wings.yaml:7:5: groups: no parameter");
    d.optim.groups[0] = lr_group("none", 0.1);
    d.model.depth = 12;
    TEST_REFUSED(learn_create(test.dev, &d), GRT_INVALID, "parameters are layers.0.weight, ");
    assert_non_null(strstr(grt_last_error(), ", ..."));
    d.model.depth = 3;
    d.optim.groups[0] = lr_group("*.bias", 0.1);
    d.optim.groups[1] = lr_group("layers.0.bias", 0.1);
    d.optim.group_count = 2;
    TEST_REFUSED(learn_create(test.dev, &d), GRT_INVALID,
                 "groups before it take all parameters of 'layers.0.bias'");
    d.optim.groups[1] = lr_group("", 0.1);
    TEST_REFUSED(learn_create(test.dev, &d), GRT_INVALID, "without a pattern");
    d.optim.groups[1] = lr_group("layers.0.*", NAN);
    TEST_REFUSED(learn_create(test.dev, &d), GRT_INVALID, "must not be below 0");
    d.optim.group_count = GRT_OPTIM_GROUPS + 1;
    TEST_REFUSED(learn_create(test.dev, &d), GRT_INVALID, "more than 16 groups");
    // The rate of a config follows the root of the batch where that is asked for.
    for (int root = 0; root < 2; root++) {
        struct grt_config config;
        struct grt_optim_desc read = {0};
        grt_config_init(&config);
        const char *const pairs[] = {"learning_rate=0.001", "batch_size=512", "accumulate=2",
                                     "base_batch_size=256", "lr_rule=sqrt"};
        for (int i = 0; i < 4 + root; i++) {
            assert_true(grt_config_override(&config, pairs[i]));
        }
        assert_true(grt_task_optimizer(&config, &read));
        assert_true(fabs(read.lr - (root ? 0.002 : 0.001)) < 1e-9);
    }
    // Rates are plain numbers.
    static const char *const odd[] = {"0x10", "inf", "nan", "-1", "1e", "0.1x", "1e9"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct grt_config config;
        struct grt_optim_desc read = {0};
        char text[64];
        snprintf(text, sizeof text, "groups=[{match: a, weight_decay: %s}]", odd[i]);
        grt_config_init(&config);
        assert_true(grt_config_override(&config, text));
        TEST_REFUSED(grt_task_optimizer(&config, &read), GRT_CONFIG,
                     "groups: weight_decay wants a number from 0 to");
    }
    // A config's list is as long at most.
    char text[1024] = "groups=[";
    for (uint32_t i = 0; i <= GRT_OPTIM_GROUPS; i++) {
        struct grt_config config;
        struct grt_optim_desc read = {0};
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s{match: p%u, lr: 0.1}]", i ? ", " : "", i);
        grt_config_init(&config);
        assert_true(grt_config_override(&config, text));
        text[strlen(text) - 1] = '\0';
        if (i < GRT_OPTIM_GROUPS) {
            assert_true(grt_task_optimizer(&config, &read));
            assert_int_equal(read.group_count, i + 1);
        } else {
            TEST_REFUSED(grt_task_optimizer(&config, &read), GRT_CONFIG, "at most 16 are taken");
        }
    }
    // An update without the table.
    struct grt_optim_desc plain = with(GRT_OPTIM_SGD, 0.1, 0);
    struct rig r;
    rig_begin(&r, &plain, GRT_F32);
    plain.decay_matrices = true;
    struct grt_graph *graph = grt_graph_create(test.dev, "no table");
    grt_op_update(graph, grt_update_desc(.optim = &plain, .params = &r.params, .kept = r.kept,
                                         .state = r.state, .history = r.history,
                                         .loss_parts = r.loss_parts->range, .loss_part_count = 1,
                                         .norm_parts = r.norm_parts));
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "words of rates");
    grt_graph_destroy(&graph);
    rig_end(&r);
}

static const struct CMUnitTest cases[] = {TEST_CASE(formulas),     TEST_CASE(pieces),
                                          TEST_CASE(same_as_none), TEST_CASE(which_layer_is_last),
                                          TEST_CASE(frozen_body),  TEST_CASE(refusals)};
TEST_SUITE(groups, true, cases);
