// SPDX-License-Identifier: Apache-2.0
// Optimizers at their limits: both sides of each bound, tables of rates word by word, operands of
// an update, sums of squares in pieces, weighted means, and what the state says behind each step.
#include "kits/learn_kit.h"
#include "kits/optim_kit.h"
#include "kits/ref_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "gpurt/loss.h"

// ---- bounds ----

#define MISTAKE(of, change, sentence)                                                              \
    do {                                                                                           \
        struct grt_optim_desc d = grt_optim_defaults(of);                                          \
        change;                                                                                    \
        assert_non_null(grt_optim_mistake(&d));                                                    \
        assert_string_equal(grt_optim_mistake(&d), sentence);                                      \
    } while (0)
#define FINE(of, change)                                                                           \
    do {                                                                                           \
        struct grt_optim_desc d = grt_optim_defaults(of);                                          \
        change;                                                                                    \
        assert_null(grt_optim_mistake(&d));                                                        \
    } while (0)

static void numbers_that_are_none(void **state) {
    (void)state;
    const double nan = (double)NAN;
    static const char *const below = "weight_decay, max_norm and min_lr must not be below 0";
    MISTAKE(GRT_OPTIM_SGD, d.weight_decay = nan, below);
    MISTAKE(GRT_OPTIM_SGD, d.max_norm = nan, below);
    MISTAKE(GRT_OPTIM_SGD, d.min_lr = nan, below);
    FINE(GRT_OPTIM_SGD, d.weight_decay = d.max_norm = d.min_lr = 0);
    MISTAKE(GRT_OPTIM_SGD, d.momentum = nan,
            "momentum must not be below 0, and Nesterov's wants momentum and no dampening");
    FINE(GRT_OPTIM_SGD, d.momentum = 1.5);
    MISTAKE(GRT_OPTIM_LARS, d.trust = nan, "the trust coefficient of lars must be above 0");
    MISTAKE(GRT_OPTIM_LARS, d.trust = -1, "the trust coefficient of lars must be above 0");
    FINE(GRT_OPTIM_LARS, d.trust = 1e-9);
    MISTAKE(GRT_OPTIM_SGD, d.ema = nan, "ema must lie in [0, 1)");
    FINE(GRT_OPTIM_SGD, d.ema = 0.999999);
    static const char *const betas = "beta1 and beta2 must lie in [0, 1), eps must not be below 0";
    MISTAKE(GRT_OPTIM_ADAM, d.beta1 = nan, betas);
    MISTAKE(GRT_OPTIM_ADAM, d.beta2 = nan, betas);
    MISTAKE(GRT_OPTIM_ADAM, d.eps = nan, betas);
    FINE(GRT_OPTIM_LARS, d.eps = -1);
    MISTAKE(GRT_OPTIM_SGD, (d.schedule = GRT_SCHEDULE_STEP, d.period = 1, d.gamma = nan),
            "step wants a period of at least 1 and gamma above 0");
    static const char *const cycle =
        "one_cycle wants steps that rise and steps that fall, and divisors of at least 1";
    MISTAKE(GRT_OPTIM_SGD,
            (d.schedule = GRT_SCHEDULE_ONE_CYCLE, d.warmup = 1, d.total = 2, d.div = nan), cycle);
    MISTAKE(GRT_OPTIM_SGD,
            (d.schedule = GRT_SCHEDULE_ONE_CYCLE, d.warmup = 1, d.total = 2, d.final_div = nan),
            cycle);
    static const char *const scale =
        "the loss scale must be above 0, growth at least 1, back-off in (0, 1), the interval at "
        "least 1";
    MISTAKE(GRT_OPTIM_SGD, d.scale = nan, scale);
    MISTAKE(GRT_OPTIM_SGD, d.growth = nan, scale);
    MISTAKE(GRT_OPTIM_SGD, d.backoff = nan, scale);
    FINE(GRT_OPTIM_SGD, d.backoff = 0.999);
    static const char *const group = "lr and weight_decay of a group must not be below 0";
#define GROUPS(n, ...)                                                                             \
    d.group_count = (n);                                                                           \
    for (uint32_t i = 0; i < (n) && i < GRT_OPTIM_GROUPS; i++) {                                   \
        d.groups[i] = (struct grt_optim_group){.match = "*"};                                      \
    }                                                                                              \
    __VA_ARGS__
    FINE(GRT_OPTIM_SGD, GROUPS(16, ));
    MISTAKE(GRT_OPTIM_SGD,
            GROUPS(16, d.groups[15].own_decay = true; d.groups[15].weight_decay = nan), group);
    MISTAKE(GRT_OPTIM_SGD, GROUPS(16, d.groups[15].own_lr = true; d.groups[15].lr = nan), group);
    MISTAKE(GRT_OPTIM_SGD, GROUPS(16, d.groups[15].match[0] = '\0'),
            "a group of parameters without a pattern of names");
    // What is wrong first is said.
    MISTAKE(GRT_OPTIM_SGD, (d.lr = 0, d.max_norm = -1), "lr must be above 0");
    MISTAKE(GRT_OPTIM_SGD, d.lr = -1e-9, "lr must be above 0");
    static const char *const names[] = {"sgd", "adam", "adamw", "lars"};
    static const char *const schedules[] = {"constant", "cosine", "step", "one_cycle", "linear"};
    for (uint32_t i = 0; i < GRT_OPTIM_COUNT; i++) {
        assert_string_equal(grt_optim_text((enum grt_optim)i), names[i]);
    }
    for (uint32_t i = 0; i < GRT_SCHEDULE_COUNT; i++) {
        assert_string_equal(grt_schedule_text((enum grt_schedule)i), schedules[i]);
    }
    static const char *const losses[] = {"mse", "huber", "cross_entropy", "bce", "l1", "nt_xent"};
    for (uint32_t i = 0; i < GRT_LOSS_COUNT; i++) {
        assert_string_equal(grt_loss_text((enum grt_loss)i), losses[i]);
        assert_int_equal(grt_loss_has_targets((enum grt_loss)i), i != GRT_LOSS_NT_XENT);
    }
}

// ---- tables of rates ----

struct named {
    const char *name;
    uint64_t shape[2];
};

static void add_all(struct grt_params *params, const struct named *list, uint32_t count) {
    grt_params_init(params, test.dev, GRT_F32);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t shape[GRT_MAX_RANK] = {list[i].shape[0], list[i].shape[1]};
        assert_non_null(grt_params_add(params, "", list[i].name, shape, GRT_INIT_ZEROS, 0));
    }
}

static struct grt_optim_group group_of(const char *match, double lr, double decay) {
    struct grt_optim_group g = {.own_lr = lr >= 0, .own_decay = decay >= 0, .lr = lr};
    g.weight_decay = decay;
    snprintf(g.match, sizeof g.match, "%s", match);
    return g;
}

static const struct named layers[] = {
    {"0.weight", {40, 9}}, {"0.bias", {40, 0}}, {"1.weight", {3, 40}}, {"1.bias", {3, 0}}};

static void words_of_rates(void **state) {
    (void)state;
    struct grt_params params;
    add_all(&params, layers, 4);
    uint64_t units = params.elements / params.unit;
    struct grt_optim_desc d = grt_optim_defaults(GRT_OPTIM_SGD);
    d.lr = 0.5;
    d.weight_decay = 0.25;
    assert_int_equal(grt_optim_rate_rows(&d, &params), 0);
    assert_int_equal(grt_optim_rate_words(&d, &params), 0);
    assert_int_equal(grt_optim_lengths(&d, &params), 0);
    assert_true(grt_optim_rates(&d, &params, NULL));
    // Of each parameter: rate and decay.
    const struct {
        bool matrices;
        uint32_t groups;
        struct grt_optim_group group[2];
        double want[4][2];
    } rows[] = {
        {true, 0, {{{0}}}, {{0.5, 0.25}, {0.5, 0}, {0.5, 0.25}, {0.5, 0}}},
        {false,
         1,
         {group_of("*.bias", 0.125, -1)},
         {{0.5, 0.25}, {0.125, 0.25}, {0.5, 0.25}, {0.125, 0.25}}},
        {true,
         1,
         {group_of("*.bias", 0.125, -1)},
         {{0.5, 0.25}, {0.125, 0}, {0.5, 0.25}, {0.125, 0}}},
        {true,
         2,
         {group_of("1.*", -1, 2), group_of("?.bias", 0, 4)},
         {{0.5, 0.25}, {0, 4}, {0.5, 2}, {0.5, 2}}},
        {false,
         2,
         {group_of("0.bias", 1, 0), group_of("0.*", 2, 8)},
         {{2, 8}, {1, 0}, {0.5, 0.25}, {0.5, 0.25}}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        d.decay_matrices = rows[i].matrices;
        d.group_count = rows[i].groups;
        memcpy(d.groups, rows[i].group, sizeof rows[i].group);
        uint64_t count = grt_optim_rate_rows(&d, &params);
        assert_int_equal(count, 2 * (rows[i].groups + 1));
        assert_int_equal(grt_optim_rate_words(&d, &params), 2 * count + units);
        uint32_t *words = test_alloc((2 * count + units) * sizeof *words);
        assert_true(grt_optim_rates(&d, &params, words));
        for (uint32_t k = 0; k < 4; k++) {
            const struct grt_param *p = params.list[k];
            uint64_t first = p->first / params.unit;
            for (uint64_t u = first; u < first + (p->count + params.unit - 1) / params.unit; u++) {
                uint32_t row = words[2 * count + u];
                assert_true(row < count);
                assert_true((double)test_as_f32(words[2 * row]) == rows[i].want[k][0]);
                assert_true((double)test_as_f32(words[2 * row + 1]) == rows[i].want[k][1]);
            }
        }
        free(words);
    }
    grt_params_finish(&params);
}

// LARS: a row and a place for each parameter; what is no matrix has no length and no decay of the
// optimizer's.
static void words_of_lars(void **state) {
    (void)state;
    struct grt_params params;
    add_all(&params, layers, 4);
    uint64_t units = params.elements / params.unit;
    struct grt_optim_desc d = grt_optim_defaults(GRT_OPTIM_LARS);
    d.lr = 0.5;
    d.weight_decay = 0.25;
    d.groups[d.group_count++] = group_of("1.*", 0.125, 2);
    assert_int_equal(grt_optim_rate_rows(&d, &params), 4);
    assert_int_equal(grt_optim_rate_words(&d, &params), 2 * 4 * 2 + units);
    assert_int_equal(grt_optim_lengths(&d, &params) % (4 * 2), 0);
    assert_true(grt_optim_lengths(&d, &params) > 0);
    uint32_t *words = test_alloc((16 + units) * sizeof *words);
    assert_true(grt_optim_rates(&d, &params, words));
    static const float rates[4][2] = {{0.5f, 0.25f}, {0.5f, 0}, {0.125f, 2}, {0.125f, 2}};
    for (uint32_t k = 0; k < 4; k++) {
        assert_true(test_as_f32(words[2 * k]) == rates[k][0]);
        assert_true(test_as_f32(words[2 * k + 1]) == rates[k][1]);
        assert_int_equal(words[8 + params.list[k]->first / params.unit], k);
        assert_int_equal(words[8 + units + 2 * k], params.list[k]->first);
        assert_int_equal(words[8 + units + 2 * k + 1], k % 2 ? 0 : params.list[k]->count);
    }
    free(words);
    grt_params_finish(&params);
    // 1024 tensors, and one more.
    grt_params_init(&params, test.dev, GRT_F32);
    d.group_count = 0;
    for (uint32_t i = 0; i < 1025; i++) {
        char name[16];
        const uint64_t shape[GRT_MAX_RANK] = {2};
        if (i == 1024) {
            assert_true(grt_optim_rates(&d, &params, NULL));
        }
        snprintf(name, sizeof name, "%u", i);
        grt_params_add(&params, "", name, shape, GRT_INIT_ZEROS, 0);
    }
    TEST_REFUSED(grt_optim_rates(&d, &params, NULL), GRT_UNSUPPORTED,
                 "lars takes at most 1024 tensors of parameters; here are 1025");
    d.kind = GRT_OPTIM_SGD;
    d.decay_matrices = true;
    assert_true(grt_optim_rates(&d, &params, NULL));
    grt_params_finish(&params);
}

// The last layer without a dot is its tensor alone; long names are cut where they are listed.
static void names_of_groups(void **state) {
    (void)state;
    static const struct named flat[] = {
        {"scale", {2, 2}},
        {"shift", {2, 2}},
        {"a_name_of_forty_letters_and_a_few_more_than_that", {2, 0}},
        {"scaler", {2, 2}}};
    struct grt_params params;
    add_all(&params, flat, 4);
    struct grt_optim_desc d = grt_optim_defaults(GRT_OPTIM_SGD);
    d.lr = 0.5;
    d.groups[d.group_count++] = group_of("*", 0.125, -1);
    d.groups[0].but_last = true;
    uint32_t *words = test_alloc(grt_optim_rate_words(&d, &params) * sizeof *words);
    uint64_t rows = grt_optim_rate_rows(&d, &params);
    assert_true(grt_optim_rates(&d, &params, words));
    for (uint32_t k = 0; k < 4; k++) {
        uint32_t row = words[2 * rows + params.list[k]->first / params.unit];
        assert_true(test_as_f32(words[2 * row]) == (k == 3 ? 0.5f : 0.125f));
    }
    free(words);
    d.groups[d.group_count++] = group_of("scale", 1, -1);
    TEST_REFUSED(grt_optim_rates(&d, &params, NULL), GRT_INVALID,
                 "groups: groups before it take all parameters of 'scale'; parameters are scale, "
                 "shift, a_name_of_forty_letters_and_a_few_mo, scaler");
    // A group before it that leaves out the last layer leaves this one.
    d.groups[1] = group_of("scaler", 1, -1);
    assert_true(grt_optim_rates(&d, &params, NULL));
    d.groups[1] = group_of("scal", 1, -1);
    TEST_REFUSED(grt_optim_rates(&d, &params, NULL), GRT_INVALID,
                 "groups: no parameter matches 'scal'");
    d.groups[1] = group_of("*", 1, -1);
    d.groups[1].but_last = true;
    TEST_REFUSED(grt_optim_rates(&d, &params, NULL), GRT_INVALID,
                 "groups: groups before it take all parameters of '*'");
    grt_params_finish(&params);
}

// ---- operands ----

static void operands(void **state) {
    (void)state;
    struct grt_optim_desc plain = rig_desc(GRT_OPTIM_SGD, 0.1), ema = plain, lars = plain;
    ema.ema = 0.5;
    lars.kind = GRT_OPTIM_LARS;
    struct rig r;
    rig_begin(&r, &lars, GRT_F32);
    struct grt_tensor history = *r.history, average = *r.params.master, lengths = *r.lengths;
    struct grt_tensor rates = *r.rates;
    history.shape[0] -= 1;
    average.shape[0] -= 1;
    lengths.shape[0] -= 1;
    rates.shape[0] -= 1;
    const struct grt_update_desc good = {.optim = &plain,
                                         .params = &r.params,
                                         .kept = r.kept,
                                         .state = r.state,
                                         .history = r.history,
                                         .loss_parts = r.loss_parts->range,
                                         .loss_part_count = GRT_LOSS_PARTS,
                                         .norm_parts = r.norm_parts};
    static const char *const wants_average = "update: ema wants an average of all parameters";
    static const char *const wants_lengths =
        "update: lars wants room for lengths, and a binding that reaches all parameters";
    for (int i = 0; i < 10; i++) {
        struct grt_update_desc u = good;
        const char *why = NULL;
        enum grt_status status = GRT_INVALID;
        if (i == 0) {
            u.history = &history, why = "update: the history wants 256 rows of 8 numbers";
        } else if (i == 1) {
            u.optim = &ema, why = wants_average;
        } else if (i == 2) {
            u.optim = &ema, u.average = &average, why = wants_average;
        } else if (i == 3) {
            u.average = r.params.master, why = wants_average;  // and nobody asked for one
        } else if (i == 4) {
            u.optim = &lars, u.lengths = r.lengths, why = "groups of parameters want ";
        } else if (i == 5) {
            u.optim = &lars, u.lengths = r.lengths, u.rates = &rates;
            why = "groups of parameters want ";
        } else if (i == 6) {
            u.optim = &lars, u.rates = r.rates, why = wants_lengths, status = GRT_UNSUPPORTED;
        } else if (i == 7) {
            u.optim = &lars, u.rates = r.rates, u.lengths = &lengths;
            why = wants_lengths, status = GRT_UNSUPPORTED;
        } else if (i == 8) {
            u.optim = &lars, u.rates = r.rates, u.lengths = r.lengths;
        }
        struct grt_graph *graph = grt_graph_create(test.dev, "update");
        grt_op_update(graph, &u);
        if (why) {
            TEST_REFUSED(grt_graph_bake(graph), status, why);
        } else {
            assert_true(grt_graph_bake(graph));
        }
        grt_graph_destroy(&graph);
    }
    rig_end(&r);
}

// ---- squares ----

// Parts from `first` on, as many as are said, and the others stay; in one piece and in several.
static void squares_in_pieces(void **state) {
    (void)state;
    enum { N = 5003 };
    struct grt_caps *caps = &test.dev->info.caps;
    const uint64_t reach = caps->max_binding;
    struct test_tensor grads = test_tensor(test.dev, GRT_F32, N, 0);
    struct test_tensor own = test_tensor(test.dev, GRT_U32, GRT_LEARN_STATE_WORDS, 0);
    struct test_tensor parts = test_tensor(test.dev, GRT_F32, GRT_NORM_PARTS, 0);
    float *g = test_floats(3, TEST_INTEGER, N), got[GRT_NORM_PARTS];
    double want = 0;
    for (int i = 0; i < N; i++) {
        want += (double)g[i] * (double)g[i];
        g[i] *= 8;
    }
    test_tensor_write(&grads, g);
    for (int i = 0; i < 6; i++) {
        uint32_t first = i % 2 ? 7 : 0, most = i / 2 == 0 ? 200 : i / 2 == 1 ? 3 : 1;
        bool cut = i / 2 == 1;
        const struct grt_learn_state s = {
            .steps = 5, .updates = 4, .halted = 3, .loss_scale = 8, .lr_factor = 0.5f};
        test_tensor_write(&own, &s);
        test_tensor_prefill(&parts, 0xffffffff);
        caps->max_binding = cut ? 8192 : reach;
        struct grt_graph *graph = grt_graph_create(test.dev, "squares");
        uint32_t count = grt_op_squares(graph, &(struct grt_squares_desc){.grads = &grads.tensor,
                                                                          .state = &own.tensor,
                                                                          .parts = &parts.tensor,
                                                                          .first = first,
                                                                          .most = most});
        assert_true(grt_graph_finish(graph));
        grt_graph_destroy(&graph);
        caps->max_binding = reach;
        test_tensor_read(&parts, got);
        assert_true(count >= 1 && count <= most && (!cut || count == 3));
        double sum = 0;
        for (uint32_t k = 0; k < GRT_NORM_PARTS; k++) {
            bool mine = k >= first && k < first + count;
            assert_int_equal(isnan(got[k]), !mine);
            sum += mine ? (double)got[k] : 0;
        }
        assert_true(sum == want);
        // The first of all parts leaves what the update is to find.
        struct grt_learn_state found;
        test_tensor_read(&own, &found);
        assert_int_equal(found.found_steps, first == 0 ? 5 : 0);
        assert_int_equal(found.found_updates, first == 0 ? 4 : 0);
        assert_int_equal(found.found_halted, first == 0 ? 3 : 0);
        assert_true(found.found_loss_scale == (first == 0 ? 8.0f : 0));
        assert_true(found.found_lr_factor == (first == 0 ? 0.5f : 0));
    }
    // More pieces than parts.
    caps->max_binding = 8192;
    struct grt_graph *graph = grt_graph_create(test.dev, "squares");
    assert_int_equal(grt_op_squares(graph, &(struct grt_squares_desc){.grads = &grads.tensor,
                                                                      .state = &own.tensor,
                                                                      .parts = &parts.tensor,
                                                                      .most = 2}),
                     0);
    TEST_REFUSED(grt_graph_bake(graph), GRT_UNSUPPORTED, "too many gradients for ref:0: 3 pieces");
    grt_graph_destroy(&graph);
    caps->max_binding = reach;
    free(g);
    test_tensor_end(&grads);
    test_tensor_end(&own);
    test_tensor_end(&parts);
}

// ---- weighted means ----

static void weighted_means(void **state) {
    (void)state;
    enum { N = 3001, PARTS = 5 };
    struct grt_caps *caps = &test.dev->info.caps;
    const uint64_t reach = caps->max_binding;
    struct test_tensor grads = test_tensor(test.dev, GRT_F32, N, 0);
    struct test_tensor whole = test_tensor(test.dev, GRT_U32, N, 0);
    struct test_tensor own = test_tensor(test.dev, GRT_U32, GRT_LEARN_STATE_WORDS, 0);
    struct test_tensor less = test_tensor(test.dev, GRT_U32, GRT_LEARN_STATE_WORDS - 1, 0);
    struct test_tensor losses = test_tensor(test.dev, GRT_F32, PARTS + 1, 0);
    struct test_tensor weights = test_tensor(test.dev, GRT_F32, PARTS + 1, 0);
    float g[N], l[PARTS + 1];
    for (int way = 0; way < 4; way++) {
        bool none = way % 2 == 1;
        // They add up to 4; the one behind them is not theirs.
        const float heavy[] = {0.5f, 0, 2, 1.25f, 0.25f, 100}, zeros[PARTS + 1] = {[PARTS] = 100};
        struct grt_learn_state s = {.loss_scale = 1, .idle = 7};
        for (int i = 0; i < N; i++) {
            g[i] = (float)i;
        }
        for (int i = 0; i < PARTS + 1; i++) {
            l[i] = (float)(i + 1);
        }
        test_tensor_write(&grads, g);
        test_tensor_write(&losses, l);
        test_tensor_write(&weights, none ? zeros : heavy);
        test_tensor_write(&own, &s);
        caps->max_binding = way / 2 ? 4096 : reach;
        struct grt_graph *graph = grt_graph_create(test.dev, "weighted mean");
        grt_op_weighted_mean(graph, &grads.tensor, &own.tensor, losses.tensor.range,
                             weights.tensor.range, PARTS);
        assert_true(grt_graph_finish(graph));
        grt_graph_destroy(&graph);
        caps->max_binding = reach;
        test_tensor_read(&grads, g);
        test_tensor_read(&losses, l);
        test_tensor_read(&own, &s);
        for (int i = 0; i < N; i++) {
            assert_true(g[i] == (none ? 0 : (float)i / 4));
        }
        for (int i = 0; i < PARTS + 1; i++) {
            assert_true(l[i] == (i == PARTS ? PARTS + 1 : none ? 0 : (float)(i + 1) / 4));
        }
        assert_int_equal(s.idle, none);
    }
    const struct {
        const struct grt_tensor *grads, *own;
        struct grt_range losses, weights;
        uint32_t count;
    } bad[] = {
        {&whole.tensor, &own.tensor, losses.tensor.range, weights.tensor.range, PARTS},
        {&grads.tensor, &less.tensor, losses.tensor.range, weights.tensor.range, PARTS},
        {&grads.tensor, &own.tensor, {0}, weights.tensor.range, PARTS},
        {&grads.tensor, &own.tensor, losses.tensor.range, {0}, PARTS},
        {&grads.tensor, &own.tensor, losses.tensor.range, weights.tensor.range, 0},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct grt_graph *graph = grt_graph_create(test.dev, "weighted mean");
        grt_op_weighted_mean(graph, bad[i].grads, bad[i].own, bad[i].losses, bad[i].weights,
                             bad[i].count);
        TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID,
                     "weighted mean: f32 gradients, parts and a whole state are wanted");
        grt_graph_destroy(&graph);
    }
    struct test_tensor *all[] = {&grads, &whole, &own, &less, &losses, &weights};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        test_tensor_end(all[i]);
    }
}

// ---- the state behind steps ----

// An average stays where a step was skipped, the factor of the rate is of all rates, a norm is what
// it was before clipping, and the row of a step is in its place of the ring.
static void state_behind_steps(void **state) {
    (void)state;
    struct grt_optim_desc d = rig_desc(GRT_OPTIM_SGD, 0.5);
    d.ema = 0.75;
    d.max_norm = 2;
    d.nonfinite = GRT_NONFINITE_SKIP;
    d.groups[d.group_count++] = group_of("a", 0.25, -1);
    struct rig r;
    rig_begin(&r, &d, GRT_F32);
    struct grt_learn_state s = {.steps = 3 * GRT_HISTORY - 1, .loss_scale = 1, .lr_factor = 0.5f};
    rig_write_all(r.state, &s);
    float grads[COUNT] = {0}, was[COUNT], is[COUNT], kept[COUNT], average[COUNT];
    for (uint32_t step = 0; step < 3; step++) {
        // A norm of 8, of which a quarter is left: of both parameters alike.
        grads[0] = step == 1 ? INFINITY : sqrtf(32);
        grads[COUNT_A] = sqrtf(32);
        rig_gather(&r, r.params.master, 0, was);
        rig_gather(&r, r.average, 0, kept);
        rig_set_grads(&r, grads);
        rig_step(&r);
        rig_gather(&r, r.params.master, 0, is);
        rig_gather(&r, r.average, 0, average);
        s = rig_state(&r);
        struct grt_learn_row rows[GRT_HISTORY];
        rig_read_all(r.history, rows);
        const struct grt_learn_row *row = &rows[(3 * GRT_HISTORY - 1 + step) % GRT_HISTORY];
        assert_int_equal(s.steps, 3 * GRT_HISTORY + step);
        assert_int_equal(s.updates, step == 0 ? 1 : step);
        assert_int_equal(s.skipped, step > 0);
        assert_int_equal(s.finite, step != 1);
        assert_true(fabsf(row->lr - 0.25f) < 1e-7f && fabsf(s.lr - 0.25f) < 1e-7f);
        assert_true(row->loss_scale == (step == 1 ? -1.0f : 1.0f));
        assert_true(step == 1 ? isinf(row->grad_norm) : fabsf(row->grad_norm - 8) < 1e-5f);
        assert_true(step == 1 ? isinf(s.grad_norm) : fabsf(s.grad_norm - 8) < 1e-5f);
        if (step == 1) {
            assert_memory_equal(was, is, sizeof is);
            assert_memory_equal(kept, average, sizeof kept);
            continue;
        }
        float slope = sqrtf(32) / 4;
        assert_true(fabsf(was[0] - is[0] - 0.125f * slope) < 1e-6f);
        assert_true(fabsf(was[COUNT_A] - is[COUNT_A] - 0.25f * slope) < 1e-6f);
        assert_true(was[1] == is[1] && was[COUNT - 1] == is[COUNT - 1]);
        for (int i = 0; i < COUNT; i++) {
            float want = step == 0 ? is[i] : 0.75f * kept[i] + 0.25f * is[i];
            assert_true(fabsf(average[i] - want) < 1e-6f);
        }
    }
    rig_end(&r);
}

// The cursor of rows on the device: at the end of an epoch, before it, and behind it.
static void cursors_of_epochs(void **state) {
    (void)state;
    struct grt_optim_desc d = rig_desc(GRT_OPTIM_SGD, 0.5);
    struct rig r;
    rig_begin(&r, &d, GRT_F32);
    static const struct {
        uint32_t cursor, step, end, want, epochs;
    } rows[] = {{0, 5, 0, 5, 0},  {90, 5, 0, 95, 0}, {4, 5, 10, 9, 0},
                {5, 5, 10, 0, 1}, {6, 5, 10, 0, 1},  {9, 0, 10, 9, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_learn_state s = {
            .loss_scale = 1, .lr_factor = 1, .cursor = rows[i].cursor, .epoch = 6};
        rig_write_all(r.state, &s);
        struct grt_graph *graph = grt_graph_create(test.dev, "update");
        grt_op_update(graph,
                      grt_update_desc(.optim = &d, .params = &r.params, .kept = r.kept,
                                      .state = r.state, .history = r.history,
                                      .loss_parts = r.loss_parts->range, .loss_part_count = 3,
                                      .norm_parts = r.norm_parts, .cursor_step = rows[i].step,
                                      .cursor_end = rows[i].end));
        assert_true(grt_graph_finish(graph));
        grt_graph_destroy(&graph);
        s = rig_state(&r);
        assert_int_equal(s.cursor, rows[i].want);
        assert_int_equal(s.epoch, 6 + rows[i].epochs);
        // Of as many parts of the loss as it was told: 0, 1/64 and 2/64.
        assert_true(s.loss == 3 / 64.0f);
    }
    rig_end(&r);
}

static const struct CMUnitTest cases[] = {
    REF_CASE(numbers_that_are_none), REF_CASE(words_of_rates),     REF_CASE(words_of_lars),
    REF_CASE(names_of_groups),       REF_CASE(operands),           REF_CASE(squares_in_pieces),
    REF_CASE(weighted_means),        REF_CASE(state_behind_steps), REF_CASE(cursors_of_epochs),
};
TEST_SUITE(optimlimits, false, cases);
