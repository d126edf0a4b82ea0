// SPDX-License-Identifier: Apache-2.0
// Which tile of its own a variant takes for a product: what the profiles say that tiles cost
// decides. On an H200 as both APIs list it; no driver is asked.
#include "harness/profile_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/gemm/case.h"

enum { COOP, SPLIT, SPLIT_WGMMA, WGMMA, WGMMA_48K, VARIANTS };
static const char *const names[VARIANTS] = {"coop", "split", "split_wgmma", "wgmma", "wgmma_48k"};

typedef void tile_fn(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]);
static tile_fn *const tile_of[VARIANTS] = {gemm_coop_tile, gemm_split_tile, gemm_split_wgmma_tile,
                                           gemm_wgmma_tile, gemm_wgmma_48k_tile};

// A product, and the tiles that were chosen for it.
struct row {
    uint32_t m, n, k, batch;
    uint32_t transposed;  // bit 0: a, bit 1: b
    const char *tiles[VARIANTS];
};

static const struct row rows[] = {
#include "golden/gemm_choices.inc"
};
#define ROW_COUNT (sizeof rows / sizeof rows[0])

static struct grt_dev h200(void) {
    struct grt_dev dev = {.info = kit_gpu("NVIDIA H200", "NVIDIA", 139.8)};
    struct grt_caps *caps = &dev.info.caps;
    caps->compute_units = 132;
    caps->subgroup = 32;
    for (uint32_t d = 0; d < 3; d++) {
        caps->max_groups[d] = d ? 65535 : INT32_MAX;
    }
    caps->matrix_shapes[0] = (struct grt_matrix_shape){16, 16, 16, GRT_F16, GRT_F32};
    caps->matrix_shapes[1] = (struct grt_matrix_shape){16, 16, 16, GRT_BF16, GRT_F32};
    caps->matrix_shape_count = 2;
    dev.profile = grt_profile_create(&dev.info);
    assert_non_null(dev.profile);
    return dev;
}

static void choose(struct grt_dev *dev, const struct row *r, uint32_t variant, char text[64]) {
    bool split = variant == SPLIT || variant == SPLIT_WGMMA;
    const struct grt_gemm_desc desc = {.a_transposed = r->transposed & 1,
                                       .b_transposed = r->transposed >> 1};
    struct gemm_case g = {.dev = dev,
                          .desc = &desc,
                          .m = r->m,
                          .n = r->n,
                          .k = r->k,
                          .batch = r->batch,
                          .in = split ? GRT_F32 : GRT_F16};
    g.out = g.in;
    g.params.lda = desc.a_transposed ? r->m : r->k;
    g.params.ldb = desc.b_transposed ? r->k : r->n;
    g.params.ldc = r->n;
    uint32_t v[GRT_PROFILE_NUMBERS] = {0};
    size_t used = 0;
    tile_of[variant](&g, v);
    for (uint32_t i = 0; i < GRT_PROFILE_NUMBERS && v[i]; i++) {
        used += (size_t)snprintf(text + used, 64 - used, "%s%u", i ? " " : "", v[i]);
    }
}

// Products of random sizes, with the tiles of before the costs became settings.
static void as_recorded(void **state) {
    (void)state;
    kit_enter_home();
    struct grt_dev dev = h200();
    uint32_t wrong = 0;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const struct row *r = &rows[i];
        for (uint32_t variant = 0; variant < VARIANTS; variant++) {
            char text[64] = "";
            choose(&dev, r, variant, text);
            if (strcmp(text, r->tiles[variant]) != 0) {
                print_error("%u x %u x %u, %u of them, by %s: %s, wanted %s\n", r->m, r->n, r->k,
                            r->batch, names[variant], text, r->tiles[variant]);
                wrong++;
            }
        }
    }
    assert_true(ROW_COUNT >= 300);
    assert_int_equal(wrong, 0);
    grt_profile_destroy(&dev.profile);
    kit_leave_home();
}

// Where a user's profile says that the first tile of each costs next to nothing, it is taken.
static void settings_decide(void **state) {
    (void)state;
    static const char text[] = "gpurt-profile 1\nlevel = user\nfrom = default\n"
                               "gemm.coop.ends = 0 900000 900000 900000 900000 900000 900000\n"
                               "gemm.split.ends = 0 900000 900000\n"
                               "gemm.split_wgmma.ends = 0 900000 900000\n"
                               "gemm.wgmma.ends = 0 900 900 900 900 900\n"
                               "gemm.wgmma_48k.ends = 0 900 900\nend\n";
    static const char *const wanted[VARIANTS] = {"128 256 32 64 64 2", "64 128 16 32 64",
                                                 "128 128 32", "128 256 4", "128 256 5 3"};
    const struct row product = {.m = 200, .n = 200, .k = 64, .batch = 1};
    kit_enter_home();
    struct grt_dev before = h200();
    kit_write_user_file(&before.info, text);
    struct grt_dev after = h200();
    for (uint32_t variant = 0; variant < VARIANTS; variant++) {
        char tile[64] = "";
        choose(&before, &product, variant, tile);
        assert_string_not_equal(tile, wanted[variant]);
        choose(&after, &product, variant, tile);
        assert_string_equal(tile, wanted[variant]);
    }
    kit_remove_user_file(&before.info);
    grt_profile_destroy(&before.profile);
    grt_profile_destroy(&after.profile);
    kit_leave_home();
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(as_recorded),
    TEST_CASE(settings_decide),
};
TEST_SUITE(choices, false, cases);
