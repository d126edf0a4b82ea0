// SPDX-License-Identifier: Apache-2.0
// How products are spread over workgroups that stay (runtime/ops/gemm/schedule.c): on a device made
// up here, every tile and every step along k is done once, and what a kernel has room for is
// enough. No driver is asked.
#include "harness/harness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cache.h"
#include "ops/gemm/case.h"

#define PLACES_SMALL 320u  // as cl/nvidia/lib/wgmma_limits.k has them
#define PLACES 160u

static const struct gemm_tile tiles[] = {
    {128, 256, 1, 0.57, 0.3, false, 0}, {128, 128, 1, 0.28, 0.3, false, 0},
    {64, 128, 3, 0.45, 0.5, false, 0},  {64, 64, 2, 0.15, 0.1, false, 0},
    {128, 64, 1, 0.2, 0.1, false, 0},
};

static struct gemm_case product(struct grt_dev *dev, uint32_t m, uint32_t n, uint32_t k,
                                uint32_t batch) {
    return (struct gemm_case){.dev = dev, .m = m, .n = n, .k = k, .batch = batch, .in = GRT_F16};
}

// With the shipped settings of a device that no profile names.
static struct grt_dev made_up(void) {
    struct grt_dev dev = {.info = {.name = "Umbra 132", .caps = {.compute_units = 132}}};
    dev.profile = grt_profile_create(&dev.info);
    assert_non_null(dev.profile);
    return dev;
}

static uint32_t ceil_div(uint32_t a, uint32_t b) {
    return a / b + (a % b != 0);
}

// As the kernel takes them apart.
static void expect_all_done(const struct gemm_schedule *s, uint32_t tile_count, uint32_t steps) {
    assert_true(s->whole <= tile_count);
    uint32_t cut = tile_count - s->whole;
    uint32_t each = ceil_div(steps, s->parts), done = 0;
    for (uint32_t part = 0; cut > 0 && part < s->parts; part++) {
        uint32_t first = part * each, end = first + each < steps ? first + each : steps;
        assert_true(first < end);
        done += end - first;
    }
    assert_int_equal(done, cut > 0 ? steps : 0);
}

static void every_step_once(void **state) {
    (void)state;
    struct grt_dev dev = made_up();
    uint32_t cut_ones = 0;
    uint64_t seed = 1;
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t size[4];
        for (uint32_t d = 0; d < 4; d++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            size[d] = (uint32_t)exp2((double)(seed >> 40) * 0x1p-24 *
                                     (d == 2   ? 17
                                      : d == 3 ? 4
                                               : 13));
        }
        struct gemm_case g = product(&dev, size[0], size[1], size[2], size[3]);
        const struct gemm_tile *t = &tiles[i % (sizeof tiles / sizeof tiles[0])];
        uint32_t steps = ceil_div(g.k, 64);
        uint32_t count = ceil_div(g.m, t->bm) * ceil_div(g.n, t->bn) * g.batch;
        struct gemm_schedule s = gemm_schedule_of(&g, t, steps, true);
        expect_all_done(&s, count, steps);
        uint32_t slots = 132 * t->at_once, units = s.whole + (count - s.whole) * s.parts;
        assert_true(s.groups >= 1 && s.groups <= slots && s.groups <= units);
        // Parts wait for each other, so that all must be on the device at once.
        uint32_t certain = 132 * (t->at_once < 2 ? t->at_once : 2);
        assert_true(s.parts == 1 || (count - s.whole) * s.parts <= certain);
        assert_true((count - s.whole) * s.parts <= (t->bm * t->bn <= 4096 ? PLACES_SMALL : PLACES));
        cut_ones += s.parts > 1;
        struct gemm_schedule uncut = gemm_schedule_of(&g, t, steps, false);
        assert_int_equal(uncut.parts, 1);
        assert_int_equal(uncut.whole, count);
        assert_true(s.time <= uncut.time);
    }
    assert_in_range(cut_ones, 2000, 18000);
    grt_profile_destroy(&dev.profile);
}

// A weight's gradient has few tiles and a long k; a square product whose last round is nearly full
// is left whole.
static void where_it_pays(void **state) {
    (void)state;
    struct grt_dev dev = made_up();
    struct gemm_case gradient = product(&dev, 512, 512, 65536, 1);
    struct gemm_schedule s = gemm_schedule_of(&gradient, &tiles[1], 1024, true);
    assert_int_equal(s.whole, 0);
    assert_in_range(s.parts, 5, 8);
    struct gemm_case full = product(&dev, 128 * 66, 128 * 2, 4096, 1);  // 132 tiles
    s = gemm_schedule_of(&full, &tiles[1], 64, true);
    assert_int_equal(s.parts, 1);
    assert_int_equal(s.groups, 132);
    struct gemm_case rest = product(&dev, 128 * 70, 128 * 2, 16384, 1);  // 140: 8 are left over
    s = gemm_schedule_of(&rest, &tiles[1], 256, true);
    assert_int_equal(s.whole, 132);
    assert_true(s.parts > 1);
    grt_profile_destroy(&dev.profile);
}

// What is chosen for `count` made-up products, as one number.
static uint64_t choices(struct grt_dev *dev, uint32_t count) {
    static const struct grt_gemm_desc plain = {.beta = 0};
    uint64_t seed = 7, digest = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size[4];
        for (uint32_t d = 0; d < 4; d++) {
            uint32_t most = d == 2 ? 1u << 17 : d == 3 ? 16 : 1u << 13;
            size[d] = 1 + (uint32_t)(test_unit(&seed) * test_unit(&seed) * (double)most);
        }
        struct gemm_case g = product(dev, size[0], size[1], size[2], size[3]);
        g.desc = &plain;
        g.out = GRT_F16;
        const struct gemm_tile *t = &tiles[i % (sizeof tiles / sizeof tiles[0])];
        struct gemm_schedule s = gemm_schedule_of(&g, t, ceil_div(g.k, 64), true);
        g.batch = 1;
        g.m = size[0] * 16;
        g.n = size[1] / 8 + 1;
        g.k = size[2] / 256 + 1;
        const uint32_t chosen[] = {s.whole, s.parts, s.groups, gemm_keeps_c(&g)};
        digest = grt_digest(chosen, sizeof chosen, digest);
    }
    return digest;
}

// With the default settings the choices are those that were measured, 2026-11-18, and each number
// counts.
static void settings_steer(void **state) {
    (void)state;
    struct grt_dev dev = made_up();
    assert_true(choices(&dev, 600) == 0x843732655f8865a8u);
    const enum grt_profile_key keys[] = {GRT_KEY_GEMM_CACHE, GRT_KEY_GEMM_SCHEDULE};
    for (size_t i = 0; i < 2; i++) {
        struct grt_profile_value before = *grt_profile_get(dev.profile, keys[i]), value = before;
        for (uint32_t n = 0; n < value.count; n++) {
            value.numbers[n] /= 8;
            assert_true(grt_dev_profile_set(&dev, keys[i], &value));
            assert_true(choices(&dev, 600) != 0x843732655f8865a8u);
            value = before;
        }
        assert_true(grt_dev_profile_set(&dev, keys[i], &before));
    }
    grt_profile_destroy(&dev.profile);
}

// Variants that depend on where a subgroup keeps a matrix ask what the device can do; its names do
// not count.
static void capability_and_not_name(void **state) {
    (void)state;
    if (!grt_built_with_coopmat()) {
        return;  // the kernels are not in this build
    }
    static const char *const vendors[] = {"NVIDIA", "Umbra Graphics"};
    const struct grt_gemm_desc plain = {.beta = 0};
    for (uint32_t layout = 0; layout < 2; layout++) {
        for (size_t v = 0; v < 2; v++) {
            struct grt_dev dev = {
                .info = {.backend = GRT_BACKEND_VULKAN,
                         .caps = {.subgroup = 32,
                                  .mma_layout = layout,
                                  .shmem = 49152,
                                  .max_groups = {65535, 65535, 65535},
                                  .matrix_shape_count = 2,
                                  .matrix_shapes = {{16, 16, 16, GRT_F16, GRT_F32},
                                                    {16, 16, 16, GRT_BF16, GRT_F32}}}}};
            snprintf(dev.info.vendor, sizeof dev.info.vendor, "%s", vendors[v]);
            struct gemm_case rows = product(&dev, 40000, 96, 64, 1);
            rows.desc = &plain;
            rows.params = (struct gemm_params){.lda = 64, .ldb = 96, .ldc = 96};
            assert_int_equal(gemm_variant_stream.usable(&rows), layout);
            struct gemm_case small = product(&dev, 48, 40, 56, 300);
            small.in = GRT_F32;
            assert_int_equal(gemm_variant_split_direct.usable(&small), layout);
        }
    }
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(every_step_once),
    cmocka_unit_test(where_it_pays),
    cmocka_unit_test(settings_steer),
    cmocka_unit_test(capability_and_not_name),
};
TEST_SUITE(parts, false, cases);
