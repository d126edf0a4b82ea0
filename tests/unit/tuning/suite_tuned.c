// SPDX-License-Identifier: Apache-2.0
// Kernels heed the profile of their device: its sizes are the constants they are compiled with, and
// sizes that a device cannot run are passed over, said once.
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "kits/profile_kit.h"
#include "tuning/profile_file.h"
#include "gpurt/tunable.h"

struct product {
    struct grt_plan *plan;
    struct grt_tensor *a, *b, *c;
    const char *variant;
};

static struct product product(struct grt_dev *dev, uint64_t n, const char *variant) {
    struct product p = {.plan = grt_plan_create(dev), .variant = variant};
    p.a = grt_plan_tensor(p.plan, grt_tensor_desc(.label = "a", .shape = {n, n}));
    p.b = grt_plan_tensor(p.plan, grt_tensor_desc(.label = "b", .shape = {n, n}));
    p.c = grt_plan_tensor(p.plan, grt_tensor_desc(.label = "c", .shape = {n, n}));
    assert_true(grt_plan_alloc(p.plan));
    return p;
}

static void record(struct grt_graph *graph, void *context) {
    const struct product *p = context;
    grt_op_gemm(graph, grt_gemm_desc(.a = p->a, .b = p->b, .c = p->c, .variant = p->variant));
}

static void record_only(struct grt_dev *dev, uint64_t n, const char *variant) {
    struct product p = product(dev, n, variant);
    struct grt_graph *graph = grt_graph_create(dev, "tuned");
    assert_non_null(graph);
    record(graph, &p);
    assert_true(grt_graph_bake(graph));
    grt_graph_destroy(&graph);
    grt_plan_destroy(&p.plan);
}

// The value of a constant of the newest kernel of that name; 0 when there is none.
static uint32_t spec_of(const struct grt_dev *dev, const char *kernel, const char *constant) {
    for (const struct grt_kernel *k = dev->kernels; k; k = k->next) {
        for (uint32_t i = 0; strcmp(k->info->name, kernel) == 0 && i < k->info->spec_count; i++) {
            if (strcmp(k->info->specs[i].name, constant) == 0) {
                return k->spec_values[i];
            }
        }
    }
    return 0;
}

static struct grt_dev *open_with(const char *text) {
    kit_write_user_file(grt_dev_info(test.dev), text);
    struct grt_dev *dev = grt_dev_create(grt_dev_desc(.device = test.selector));
    kit_remove_user_file(grt_dev_info(test.dev));
    assert_non_null(dev);
    return dev;
}

#define HEAD "gpurt-profile 1\nlevel = user\nfrom = default\n"

static void sizes_reach_the_kernel(void **state) {
    (void)state;
    kit_enter_home();
    struct grt_dev *dev = open_with(HEAD "gemm.plain = 4\ngemm.tiled.large = 16 32 4 4 8\n"
                                         "gemm.tiled.medium = 16 16 4 4 4\n"
                                         "gemm.tiled.small = 16 16 8 4 4\nend\n");
    record_only(dev, 64, "plain");
    assert_int_equal(spec_of(dev, "gemm_plain_f32", "WG"), 4);
    // Large where it fills the device, small where nothing does.
    uint32_t units = grt_dev_info(dev)->caps.compute_units;
    record_only(dev, units > 64 ? 1024 : 256, "tiled");
    assert_int_equal(spec_of(dev, "gemm_tiled_f32", "BN"), 32);
    assert_int_equal(spec_of(dev, "gemm_tiled_f32", "TN"), 8);
    assert_int_equal(spec_of(dev, "gemm_tiled_f32", "WG"), 16);
    record_only(dev, 8, "tiled");
    assert_int_equal(spec_of(dev, "gemm_tiled_f32", "BK"), 8);
    // And the place of each is known.
    const struct grt_profile_value *used =
        grt_tunable_in_use(dev, "gemm", "tiled", GRT_F32, 8, 8, 1);
    assert_non_null(used);
    assert_int_equal(used->numbers[2], 8);
    assert_non_null(strstr(used->profile, ".profile:7"));
    assert_null(grt_tunable_in_use(dev, "gemm", "lanes", GRT_F32, 8, 8, 1));
    TEST_REFUSED(grt_tunable_in_use(NULL, "gemm", "tiled", GRT_F32, 8, 8, 1), GRT_INVALID,
                 "no device");
    grt_dev_destroy(&dev);
    kit_leave_home();
}

static void settings_can_be_replaced(void **state) {
    (void)state;
    kit_enter_home();
    struct grt_dev *dev = open_with(HEAD "end\n");
    struct grt_profile_value value = {.count = 1, .numbers = {2}, .from = "default"};
    assert_true(grt_dev_profile_set(dev, GRT_KEY_GEMM_PLAIN, &value));
    record_only(dev, 32, "plain");
    assert_int_equal(spec_of(dev, "gemm_plain_f32", "WG"), 2);
    value.count = 3;
    TEST_REFUSED(grt_dev_profile_set(dev, GRT_KEY_GEMM_PLAIN, &value), GRT_INVALID, "numbers");
    grt_dev_destroy(&dev);
    kit_leave_home();
}

// 128 x 128 lanes are more than any device has in a workgroup; and rows that the lanes cannot share
// out evenly run nowhere. Shared memory would not do: PoCL has as much as the processor has cache.
static void impossible_sizes(void **state) {
    (void)state;
    kit_enter_home();
    struct grt_dev *dev = open_with(HEAD "gemm.tiled.large = 512 512 128 4 4\n"
                                         "gemm.tiled.medium = 30 30 7 5 5\n"
                                         "gemm.tiled.small = 16 16 8 4 4\nend\n");
    uint32_t warnings = test_log.lines[GRT_LOG_WARN];
    test_log.quiet = true;
    record_only(dev, 256, "tiled");
    record_only(dev, 128, "tiled");
    test_log.quiet = false;
    assert_int_equal(spec_of(dev, "gemm_tiled_f32", "BM"), 16);
    assert_int_equal(test_log.lines[GRT_LOG_WARN] - warnings, 2);
    grt_dev_destroy(&dev);
    // None left: the variant is not there, the product is.
    dev = open_with(HEAD "gemm.tiled.large = 30 30 7 5 5\ngemm.tiled.medium = 30 30 7 5 5\n"
                         "gemm.tiled.small = 30 30 7 5 5\nend\n");
    struct grt_tensor x = {.dtype = GRT_F32, .rank = 2, .shape = {64, 64}};
    test_log.quiet = true;
    assert_null(
        grt_gemm_variant(dev, grt_gemm_desc(.a = &x, .b = &x, .c = &x, .variant = "tiled"), 0));
    test_log.quiet = false;
    assert_non_null(grt_gemm_variant(dev, grt_gemm_desc(.a = &x, .b = &x, .c = &x), 0));
    grt_dev_destroy(&dev);
    kit_leave_home();
}

// Cooperative matrices of a CPU driver are no matrix unit: they serve when they are named. Shapes
// as lavapipe lists them from Mesa 26 on, here on any Vulkan driver.
static void matrices_of_software(void **state) {
    (void)state;
    struct grt_dev *dev = grt_dev_create(grt_dev_desc(.device = test.selector));
    assert_non_null(dev);
    if (dev->info.backend != GRT_BACKEND_VULKAN) {
        grt_dev_destroy(&dev);
        return;
    }
    struct grt_caps *caps = &dev->info.caps;
    caps->software = 1;
    caps->subgroup = 8;
    caps->matrix_shape_count = 1;
    caps->matrix_shapes[0] =
        (struct grt_matrix_shape){.m = 8, .n = 8, .k = 8, .in = GRT_F16, .out = GRT_F32};
    struct grt_tensor x = {.dtype = GRT_F16, .rank = 2, .shape = {64, 64}};
    struct grt_gemm_desc desc = {.a = &x, .b = &x, .c = &x};
    uint32_t warnings = test_log.lines[GRT_LOG_WARN];
    const char *chosen = grt_gemm_variant(dev, &desc, 0);
    assert_non_null(chosen);
    assert_null(strstr(chosen, "coop"));
    // Nor was one tried: its first use is checked, and compiled for that.
    assert_int_equal(test_log.lines[GRT_LOG_WARN], warnings);
    if (grt_kernel_exists(dev, "gemm_coop_f16_16")) {
        desc.variant = "coop";
        assert_non_null(grt_gemm_variant(dev, &desc, 0));
    }
    grt_dev_destroy(&dev);
}

// A file of the user's that is wrong: the device is not opened, and the sentence names the line.
static void wrong_file(void **state) {
    (void)state;
    kit_enter_home();
    kit_write_user_file(grt_dev_info(test.dev), HEAD "gemm.plain = many\nend\n");
    TEST_REFUSED(grt_dev_create(grt_dev_desc(.device = test.selector)), GRT_CONFIG, ".profile:4:");
    kit_remove_user_file(grt_dev_info(test.dev));
    kit_leave_home();
}

// Every candidate that the tables call sensible computes the same: integers, so that the order of
// the additions does not matter.
static void candidates_compute(void **state) {
    (void)state;
    kit_enter_home();
    struct grt_dev *dev = open_with(HEAD "end\n");
    const uint64_t n = 45;
    struct product p = product(dev, n, "plain");
    float *numbers = test_floats(5, TEST_INTEGER, n * n);
    float *want = test_alloc(n * n * sizeof *want);
    float *got = test_alloc(n * n * sizeof *got);
    assert_true(grt_buf_write(p.a->range.buf, p.a->range.offset, numbers, n * n * 4));
    assert_true(grt_buf_write(p.b->range.buf, p.b->range.offset, numbers, n * n * 4));
    test_run(dev, record, &p);
    assert_true(grt_buf_read(p.c->range.buf, p.c->range.offset, want, n * n * 4));
    const uint32_t tiles[][5] = {
        {16, 16, 4, 4, 4}, {16, 64, 16, 4, 4}, {32, 16, 4, 8, 4}, {64, 32, 16, 8, 8}};
    for (size_t i = 0; i < (test.small ? 1 : sizeof tiles / sizeof tiles[0]); i++) {
        struct grt_profile_value value = {.count = 5, .from = "default"};
        char why[GRT_TUNABLE_WHY] = "";
        for (uint32_t k = 0; k < 5; k++) {
            value.numbers[k] = tiles[i][k];
        }
        assert_true(grt_tunable_sensible(grt_tunable(0), grt_dev_info(dev), tiles[i], why));
        for (uint32_t size = 0; size < GRT_SIZE_COUNT; size++) {
            assert_true(grt_dev_profile_set(
                dev, (enum grt_profile_key)(GRT_KEY_GEMM_TILED_LARGE + size), &value));
        }
        p.variant = "tiled";
        test_run(dev, record, &p);
        assert_true(grt_buf_read(p.c->range.buf, p.c->range.offset, got, n * n * 4));
        test_same(dev, "tile", got, want, 4, n * n);
    }
    free(numbers);
    free(want);
    free(got);
    grt_plan_destroy(&p.plan);
    grt_dev_destroy(&dev);
    kit_leave_home();
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(sizes_reach_the_kernel), TEST_CASE(settings_can_be_replaced),
    TEST_CASE(impossible_sizes),       TEST_CASE(wrong_file),
    TEST_CASE(candidates_compute),     TEST_CASE(matrices_of_software),
};
TEST_SUITE(tuned, true, cases);
