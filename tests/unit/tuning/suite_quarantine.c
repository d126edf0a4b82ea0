// SPDX-License-Identifier: Apache-2.0
// A variant of the matrix product or of the fused MLP that computes wrong on a device is found out
// at its first use and left out there, now and later, until the driver changes. The fault is put in
// by hand.
#include "kits/cache_kit.h"
#include "kits/learn_kit.h"
#include "kits/profile_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/learner.h"
#include "nn/fused/mlp_fused.h"
#include "base/log.h"
#include "ops/gemm/case.h"
#include "ops/verdict.h"

#define M 24u
#define N 40u
#define K 16u

// c = a b of ones: every element is K.
struct ones {
    struct grt_plan *plan;
    struct grt_gemm_desc desc;
};

static struct grt_tensor *tensor(struct grt_plan *plan, const char *label, uint64_t rows,
                                 uint64_t cols) {
    struct grt_tensor *t =
        grt_plan_tensor(plan, grt_tensor_desc(.label = label, .shape = {rows, cols}));
    assert_non_null(t);
    return t;
}

static struct ones begin_rows(struct grt_dev *dev, uint64_t rows) {
    struct ones x = {.plan = grt_plan_create(dev)};
    assert_non_null(x.plan);
    x.desc.a = tensor(x.plan, "a", rows, K);
    x.desc.b = tensor(x.plan, "b", K, N);
    x.desc.c = tensor(x.plan, "c", rows, N);
    assert_true(grt_plan_alloc(x.plan));
    return x;
}

static struct ones begin(struct grt_dev *dev) {
    return begin_rows(dev, M);
}

// Whatever serves must compute right.
static void run(struct grt_dev *dev, struct ones *x) {
    struct grt_graph *graph = grt_graph_create(dev, "ones");
    assert_non_null(graph);
    grt_op_fill(graph, (struct grt_tensor *)x->desc.a, 1.0f);
    grt_op_fill(graph, (struct grt_tensor *)x->desc.b, 1.0f);
    grt_op_gemm(graph, &x->desc);
    assert_true(grt_graph_finish(graph));
    float c[M * N];
    assert_true(grt_buf_read(x->desc.c->range.buf, x->desc.c->range.offset, c, sizeof c));
    for (size_t i = 0; i < M * N; i++) {
        assert_float_equal(c[i], (float)K, 0);
    }
    grt_graph_destroy(&graph);
}

static bool listed(struct grt_dev *dev, const struct ones *x, const char *variant) {
    const char *name = NULL;
    for (uint32_t i = 0; (name = grt_gemm_variant(dev, &x->desc, i)) != NULL; i++) {
        if (strcmp(name, variant) == 0) {
            return true;
        }
    }
    return false;
}

// Also has every variant looked at once: to build one another driver may be opened
// (runtime/device/import.c), which says so, and what is counted later are warnings of verdicts.
static struct grt_dev *open_again(void) {
    struct ones all = begin_rows(test.dev, M);
    assert_false(listed(test.dev, &all, "none of this name"));
    grt_plan_destroy(&all.plan);
    struct grt_dev *dev = grt_dev_create(grt_dev_desc(.device = grt_dev_info(test.dev)->selector));
    assert_non_null(dev);
    return dev;
}

// The same with another driver's version, and checks of a variant of an op that see a wrong number.
static struct grt_dev *open_with(const char *driver_version, const char *op, const char *fault) {
    struct grt_dev *dev = open_again();
    snprintf(dev->info.driver_version, sizeof dev->info.driver_version, "%s", driver_version);
    grt_check_fault(dev, op, fault);
    return dev;
}

// Opens the device, runs a product and closes it; whether the variant was listed. `warnings` lines
// are said whatever is asked how often.
static bool serves(const char *variant, const char *fault, const char *driver_version,
                   uint32_t warnings) {
    struct grt_dev *dev = open_with(driver_version, "gemm", fault);
    uint32_t before = test_log.lines[GRT_LOG_WARN];
    struct ones x = begin(dev);
    test_log.quiet = true;
    run(dev, &x);
    run(dev, &x);
    bool there = listed(dev, &x, variant);
    test_log.quiet = false;
    assert_int_equal(test_log.lines[GRT_LOG_WARN] - before, warnings);
    if (warnings > 0) {
        assert_non_null(strstr(test_log.newest, variant));
        assert_non_null(strstr(test_log.newest, "wrong"));
    }
    // Who names it gets it all the same.
    x.desc.variant = variant;
    run(dev, &x);
    grt_plan_destroy(&x.plan);
    grt_dev_destroy(&dev);
    return there;
}

// The variant that serves a product here.
static void first_variant(char variant[32]) {
    struct ones x = begin(test.dev);
    snprintf(variant, 32, "%s", grt_gemm_variant(test.dev, &x.desc, 0));
    grt_plan_destroy(&x.plan);
}

static void wrong_results(void **state) {
    (void)state;
    char variant[32];
    first_variant(variant);
    if (strcmp(variant, "plain") == 0) {
        return;  // nothing is left to fall back on, and nothing is checked
    }
    assert_true(serves(variant, NULL, "1.0", 0));
    assert_false(serves(variant, variant, "1.1", 1));
    // Remembered, and said again by the next process; another driver version begins anew.
    assert_false(serves(variant, NULL, "1.1", 1));
    assert_true(serves(variant, NULL, "1.0", 0));
    // Kernels that a CPU driver compiles in another way are others.
    const char *how = getenv("GALLIVM_PERF");
    bool software = grt_dev_info(test.dev)->caps.software;
    char kept[64];
    snprintf(kept, sizeof kept, "%s", how ? how : "");
    setenv("GALLIVM_PERF", "another", 1);
    assert_int_equal(serves(variant, NULL, "1.1", software ? 0 : 1), software);
    setenv("GALLIVM_PERF", kept, 1);
    assert_false(serves(variant, NULL, "1.1", 1));
    assert_true(serves(variant, NULL, "2.0", 0));
    assert_false(serves(variant, variant, "3.0", 1));
    // What is right is not asked again, so a fault that comes later is not seen.
    assert_true(serves(variant, variant, "2.0", 0));
    // Without the cache it is given another chance.
    char path[300];
    snprintf(path, sizeof path, "%s/gpurt", kit_cache);
    kit_remove_tree(path);
    assert_true(serves(variant, NULL, "1.1", 0));
}

// Whether a device in order lists the variant for a product of so many rows.
static bool offered(const char *variant, uint64_t rows) {
    struct grt_dev *dev = open_with("in order", "gemm", NULL);
    struct ones x = begin_rows(dev, rows);
    bool there = listed(dev, &x, variant);
    grt_plan_destroy(&x.plan);
    grt_dev_destroy(&dev);
    return there;
}

// Large products have tiles of their own: what is right for small ones is checked again, and the
// other way round.
static void large_apart_from_small(void **state) {
    (void)state;
    static const uint64_t rows[2] = {M, 1000};
    for (int first = 0; first < 2; first++) {
        struct grt_dev *dev = open_again();
        snprintf(dev->info.driver_version, sizeof dev->info.driver_version, "size %d", first);
        struct ones sizes[2] = {begin_rows(dev, rows[0]), begin_rows(dev, rows[1])};
        struct ones *right = &sizes[first], *wrong = &sizes[1 - first];
        char variant[32];
        snprintf(variant, sizeof variant, "%s", grt_gemm_variant(dev, &right->desc, 0));
        bool serves_both = strcmp(variant, "plain") != 0 && offered(variant, rows[1 - first]);
        uint32_t before = test_log.lines[GRT_LOG_WARN];
        test_log.quiet = true;
        grt_check_fault(dev, "gemm", variant);
        if (serves_both) {
            assert_true(listed(dev, right, variant));
            assert_false(listed(dev, wrong, variant));
            assert_int_equal(test_log.lines[GRT_LOG_WARN] - before, 1);
        }
        test_log.quiet = false;
        grt_plan_destroy(&sizes[0].plan);
        grt_plan_destroy(&sizes[1].plan);
        grt_dev_destroy(&dev);
    }
}

// Tiles of one variant are kernels of their own: one that is wrong leaves the others in use.
static void one_verdict_a_tile(void **state) {
    (void)state;
    static const uint64_t columns[2] = {300, 30};
    char path[300];
    snprintf(path, sizeof path, "%s/tiles.profile", kit_cache);
    kit_write(path, "gpurt-profile 1\nlevel = user\nfrom = default\n"
                    "gemm.tiled.large = 64 32 16 4 4\ngemm.tiled.medium = 32 32 16 4 4\nend\n");
    setenv("GPURT_PROFILE", path, 1);
    for (int first = 0; first < 2; first++) {
        struct grt_dev *dev = open_again();
        snprintf(dev->info.driver_version, sizeof dev->info.driver_version, "tile %d", first);
        struct grt_tensor a = {.dtype = GRT_F32, .rank = 2, .shape = {100000, K}};
        struct grt_tensor b[2] = {a, a}, c[2] = {a, a};
        struct ones sizes[2] = {{0}, {0}};
        uint32_t tiles[2][GRT_PROFILE_NUMBERS] = {{0}, {0}};
        for (int i = 0; i < 2; i++) {
            b[i].shape[0] = K;
            b[i].shape[1] = c[i].shape[1] = columns[i];
            sizes[i].desc = (struct grt_gemm_desc){.a = &a, .b = &b[i], .c = &c[i]};
            struct gemm_case g;
            gemm_fill_case(&g, dev, &sizes[i].desc);
            gemm_variant_tiled.tile(&g, tiles[i]);
        }
        assert_memory_not_equal(tiles[0], tiles[1], sizeof tiles[0]);
        const struct ones *right = &sizes[first], *wrong = &sizes[1 - first];
        assert_true(listed(dev, right, "tiled"));
        test_log.quiet = true;
        grt_check_fault(dev, "gemm", "tiled");
        assert_true(listed(dev, right, "tiled"));
        assert_false(listed(dev, wrong, "tiled"));
        test_log.quiet = false;
        grt_dev_destroy(&dev);
    }
    unsetenv("GPURT_PROFILE");
}

// The plain product serves when every other variant is wrong.
static void plain_is_left(void **state) {
    (void)state;
    struct grt_dev *dev = open_again();
    struct ones x = begin(dev);
    test_log.quiet = true;
    grt_check_fault(dev, "gemm", "*");
    run(dev, &x);
    assert_string_equal(grt_gemm_variant(dev, &x.desc, 0), "plain");
    assert_null(grt_gemm_variant(dev, &x.desc, 1));
    test_log.quiet = false;
    grt_plan_destroy(&x.plan);
    grt_dev_destroy(&dev);
}

// On a device whose drivers are in order nothing is left out, in any type.
static void nothing_is_wrong_here(void **state) {
    (void)state;
    static const enum grt_dtype types[] = {GRT_F32, GRT_F16, GRT_BF16};
    static const uint64_t rows[] = {128, 8192};
    for (size_t i = 0; i < sizeof types / sizeof types[0] * 2; i++) {
        enum grt_dtype type = types[i / 2];
        uint64_t m = rows[i % 2];
        struct grt_tensor a = {.dtype = type, .rank = 2, .shape = {m, 64}};
        struct grt_tensor b = {.dtype = type, .rank = 2, .shape = {64, 128}};
        struct grt_tensor c = {.dtype = type, .rank = 2, .shape = {m, 128}};
        struct grt_gemm_desc desc = {.a = &a, .b = &b, .c = &c};
        for (uint32_t v = 0; grt_gemm_variant(test.dev, &desc, v); v++) {
        }
    }
    assert_int_equal(grt_check_failures(test.dev), 0);
    assert_int_equal(test_log.lines[GRT_LOG_WARN], 0);
}

// ---- drivers that fail ----

// The device's own functions but for the kernels of one variant.
static struct {
    const struct grt_dev_fns *own;
    char kernels[48];  // how their names begin
    enum grt_status status;
} failing;

static struct grt_kernel *fail_to_build(struct grt_dev *dev, const struct grt_kernel_info *info,
                                        const uint32_t *spec_values) {
    if (strncmp(info->name, failing.kernels, strlen(failing.kernels)) != 0) {
        return failing.own->kernel_create(dev, info, spec_values);
    }
    if (failing.status == GRT_LOST) {
        dev->status = GRT_LOST;
    }
    grt_fail(failing.status, "kernel %s fails by request", info->name);
    return NULL;
}

// Whether the variant serves on a device that cannot build its kernels, with so many warnings; the
// product is right whatever serves, unless the device is lost.
static bool serves_failing(const char *variant, enum grt_status status, const char *driver_version,
                           uint32_t warnings) {
    static struct grt_dev_fns fns;
    struct grt_dev *dev = open_again();
    snprintf(dev->info.driver_version, sizeof dev->info.driver_version, "%s", driver_version);
    failing.own = dev->fns;
    failing.status = status;
    snprintf(failing.kernels, sizeof failing.kernels, "gemm_%s_", variant);
    fns = *dev->fns;
    fns.kernel_create = fail_to_build;
    uint32_t before = test_log.lines[GRT_LOG_WARN];
    struct ones x = begin(dev);
    dev->fns = &fns;
    test_log.quiet = true;
    bool there = listed(dev, &x, variant);
    if (status != GRT_LOST && !there) {
        run(dev, &x);
    }
    test_log.quiet = false;
    assert_int_equal(test_log.lines[GRT_LOG_WARN] - before, warnings);
    dev->fns = failing.own;
    dev->status = GRT_OK;
    grt_plan_destroy(&x.plan);
    grt_dev_destroy(&dev);
    return there;
}

static void failed_builds(void **state) {
    (void)state;
    char variant[32];
    first_variant(variant);
    if (strcmp(variant, "plain") == 0) {
        return;
    }
    assert_false(serves_failing(variant, GRT_COMPILE, "4.0", 1));
    assert_false(serves(variant, NULL, "4.0", 1));  // remembered
    assert_true(serves(variant, NULL, "4.1", 0));
    // Short of memory for once: no verdict, here or later.
    assert_true(serves_failing(variant, GRT_NO_MEMORY, "5.0", 0));
    assert_true(serves(variant, NULL, "5.0", 0));
    // What loses the device would lose it at every start.
    assert_false(serves_failing(variant, GRT_LOST, "6.0", 1));
    assert_non_null(strstr(test_log.newest, "lost the device"));
    assert_false(serves(variant, NULL, "6.0", 1));
}

// Wrong in many ways, said once, with how to have it checked again.
static void one_warning(void **state) {
    (void)state;
    struct grt_dev *dev = open_again();
    snprintf(dev->info.driver_version, sizeof dev->info.driver_version, "7.0");
    struct grt_tensor a = {.dtype = GRT_F32, .rank = 2, .shape = {M, M}};
    char variant[32];
    snprintf(variant, sizeof variant, "%s",
             grt_gemm_variant(test.dev, grt_gemm_desc(.a = &a, .b = &a, .c = &a), 0));
    uint32_t before = test_log.lines[GRT_LOG_WARN];
    grt_check_fault(dev, "gemm", variant);
    test_log.quiet = true;
    for (int i = 0; i < 8; i++) {
        a.dtype = i < 4 ? GRT_F32 : GRT_F16;
        grt_gemm_variant(dev,
                         grt_gemm_desc(.a = &a, .b = &a, .c = &a, .a_transposed = (i & 1) != 0,
                                       .b_transposed = (i & 2) != 0),
                         0);
    }
    test_log.quiet = false;
    if (strcmp(variant, "plain") != 0) {
        assert_int_equal(test_log.lines[GRT_LOG_WARN] - before, 1);
        assert_non_null(strstr(test_log.newest, "without the folder"));
        assert_non_null(strstr(test_log.newest, kit_cache));
    }
    grt_dev_destroy(&dev);
}

// Sums in half are other kernels: what is right without them is checked again.
static void half_sums_apart(void **state) {
    (void)state;
    struct grt_dev *dev = open_again();
    snprintf(dev->info.driver_version, sizeof dev->info.driver_version, "8.0");
    struct grt_tensor a = {.dtype = GRT_F16, .rank = 2, .shape = {64, 64}};
    struct grt_gemm_desc desc = {.a = &a, .b = &a, .c = &a};
    char variant[32];
    snprintf(variant, sizeof variant, "%s", grt_gemm_variant(dev, &desc, 0));
    desc.half_sums = true;
    assert_string_equal(grt_gemm_variant(test.dev, &desc, 0), variant);  // and it is right here
    grt_check_fault(dev, "gemm", variant);
    test_log.quiet = true;
    if (strcmp(variant, "plain") != 0) {
        assert_string_not_equal(grt_gemm_variant(dev, &desc, 0), variant);
        desc.half_sums = false;
        assert_string_equal(grt_gemm_variant(dev, &desc, 0), variant);
    }
    test_log.quiet = false;
    grt_dev_destroy(&dev);
}

// ---- the fused MLP ----

static const struct grt_mlp_fused_desc small_model = {
    .model = {.inputs = 12, .depth = 2, .hidden = 16, .outputs = 2, .act = GRT_ACT_RELU},
    .loss = GRT_LOSS_MSE,
    .rows = 64,
};

static bool fused_listed(struct grt_dev *dev, const struct grt_mlp_fused_desc *desc,
                         const char *variant) {
    const char *name = NULL;
    for (uint32_t i = 0; (name = grt_mlp_fused_variant(dev, desc, i)) != NULL; i++) {
        if (strcmp(name, variant) == 0) {
            return true;
        }
    }
    return false;
}

// How a learner of the model does it: "fused", or layer by layer.
static bool learns_fused(struct grt_dev *dev, const struct grt_mlp_fused_desc *desc) {
    const struct grt_mlp_desc *m = &desc->model;
    struct grt_learner *learner = learn_create(
        dev, learn_desc(.model = {.kind = LEARN_MLP,
                                  .inputs = m->inputs,
                                  .depth = m->depth,
                                  .hidden = m->hidden,
                                  .outputs = m->outputs,
                                  .act = m->act},
                        .loss = desc->loss, .optim = grt_optim_defaults(GRT_OPTIM_ADAMW),
                        .precision = desc->dtype, .batch = (uint32_t)desc->rows));
    assert_non_null(learner);
    bool fused = strcmp(grt_learner_variant(learner), "fused") == 0;
    grt_learner_destroy(&learner);
    return fused;
}

// As serves(), of the fused MLP. A variant that has tiles for more rows is asked about those too.
static bool fused_serves(const struct grt_mlp_fused_desc *desc, const char *variant,
                         const char *fault, const char *driver_version, bool warns) {
    struct grt_dev *dev = open_with(driver_version, "mlp", fault);
    uint32_t before = test_log.lines[GRT_LOG_WARN];
    test_log.quiet = true;
    bool there = fused_listed(dev, desc, variant);
    assert_int_equal(fused_listed(dev, desc, variant), there);
    assert_int_equal(learns_fused(dev, desc), grt_mlp_fused_usable(dev, desc));
    test_log.quiet = false;
    uint32_t warnings = test_log.lines[GRT_LOG_WARN] - before;
    assert_true(warns ? warnings == 1 || warnings == 2 : warnings == 0);
    if (warns) {
        assert_non_null(strstr(test_log.newest, variant));
        assert_non_null(strstr(test_log.newest, "wrong"));
    }
    struct grt_mlp_fused_desc named = *desc;
    named.variant = variant;
    assert_string_equal(grt_mlp_fused_variant(dev, &named, 0), variant);
    grt_dev_destroy(&dev);
    return there;
}

static void wrong_fused_results(void **state) {
    (void)state;
    struct grt_mlp_fused_desc desc = small_model;
    const char *first = NULL;
    for (enum grt_dtype type = GRT_F32; !first && type <= GRT_F16; type++) {
        desc.dtype = type;
        first = grt_mlp_fused_variant(test.dev, &desc, 0);
    }
    if (!first || grt_dev_info(test.dev)->backend == GRT_BACKEND_REF) {
        return;  // nothing is checked
    }
    char variant[32];
    snprintf(variant, sizeof variant, "%s", first);
    assert_true(fused_serves(&desc, variant, NULL, "1.0", false));
    assert_false(fused_serves(&desc, variant, variant, "1.1", true));
    assert_false(fused_serves(&desc, variant, NULL, "1.1", true));
    // The same of products is something else.
    struct grt_dev *dev = open_with("1.2", "gemm", "*");
    assert_true(fused_listed(dev, &desc, variant));
    grt_dev_destroy(&dev);
    // And where all are wrong, layers are done one by one.
    dev = open_with("1.3", "mlp", "*");
    test_log.quiet = true;
    assert_null(grt_mlp_fused_variant(dev, &desc, 0));
    assert_false(learns_fused(dev, &desc));
    assert_true(grt_check_failures(dev) > 0);
    test_log.quiet = false;
    grt_dev_destroy(&dev);
}

// In order they are all right: models at the edges of what the kernels do, each activation and
// loss.
static void no_fused_is_wrong_here(void **state) {
    (void)state;
    static const struct {
        uint32_t inputs, depth, hidden, outputs;
        enum grt_act act;
        enum grt_loss loss;
    } rows[] = {
        {3, 1, 16, 1, GRT_ACT_RELU, GRT_LOSS_MSE},
        {32, 3, 32, 4, GRT_ACT_TANH, GRT_LOSS_BCE},
        {20, 2, 16, 10, GRT_ACT_GELU, GRT_LOSS_CROSS_ENTROPY},
        {100, 12, 128, 16, GRT_ACT_RELU, GRT_LOSS_HUBER},
    };
    const bool software = grt_dev_info(test.dev)->caps.software;
    for (size_t i = 0; i < (software ? 9 : 12); i++) {
        struct grt_mlp_fused_desc desc = small_model;
        desc.model.inputs = rows[i / 3].inputs;
        desc.model.depth = rows[i / 3].depth;
        desc.model.hidden = rows[i / 3].hidden;
        desc.model.outputs = rows[i / 3].outputs;
        desc.model.act = rows[i / 3].act;
        desc.loss = rows[i / 3].loss;
        desc.dtype = (enum grt_dtype)(i % 3);
        uint32_t before = grt_check_failures(test.dev);
        for (uint32_t v = 0; grt_mlp_fused_variant(test.dev, &desc, v); v++) {
        }
        assert_int_equal(grt_check_failures(test.dev), before);
    }
    assert_int_equal(test_log.lines[GRT_LOG_WARN], 0);
}

static const struct CMUnitTest cases[] = {
    CACHE_CASE(wrong_results),       CACHE_CASE(large_apart_from_small),
    CACHE_CASE(one_verdict_a_tile),  CACHE_CASE(failed_builds),
    CACHE_CASE(one_warning),         CACHE_CASE(half_sums_apart),
    CACHE_CASE(plain_is_left),       TEST_CASE(nothing_is_wrong_here),
    CACHE_CASE(wrong_fused_results), CACHE_CASE(no_fused_is_wrong_here),
};
TEST_SUITE(quarantine, true, cases);
