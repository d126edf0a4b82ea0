// SPDX-License-Identifier: Apache-2.0
// Which tile of its own a variant takes for a product: what the profiles say that tiles cost
// decides. Which operands are copied to aligned rows first, and for whom. On an H200 as both APIs
// list it; no driver is asked.
#include "kits/profile_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/gemm/case.h"
#include "ops/gemm/check.h"

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

// Products of random sizes, with the tiles of before the costs became settings; six have others
// since parts of k meet sooner.
static void as_recorded(void **state) {
    (void)state;
    kit_enter_home();
    struct grt_dev dev = kit_h200();
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
                               "gemm.split_wgmma.ends = 0 900000 900000 900000\n"
                               "gemm.wgmma.ends = 0 900 900 900 900 900 900\n"
                               "gemm.wgmma_48k.ends = 0 900 900\nend\n";
    static const char *const wanted[VARIANTS] = {"128 256 32 64 64 2", "64 128 16 32 64",
                                                 "128 128 32", "128 256 4", "128 256 5 3"};
    const struct row product = {.m = 200, .n = 200, .k = 64, .batch = 1};
    kit_enter_home();
    struct grt_dev before = kit_h200();
    kit_write_user_file(&before.info, text);
    struct grt_dev after = kit_h200();
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

// ---- copies of operands whose rows begin anywhere ----

// A step of each tile of mma takes 1 us, ten times as long with rows of odd elements; one of wgmma
// a hundredth. Memory moves 1000 bytes in a microsecond times `memory`. k is never cut.
static void write_costs(const struct grt_dev_info *info, const char *memory) {
    char text[1024];
    snprintf(text, sizeof text,
             "gpurt-profile 1\nlevel = user\nfrom = default\n"
             "gemm.mma.fit = 1 1 1 1 1 1 1 1 1 1\ngemm.mma.step = 1 1 1 1 1 1 1 1 1 1\n"
             "gemm.mma.alone = 1 1 1 1 1 1 1 1 1 1\ngemm.mma.ends = 0 0 0 0 0 0 0 0 0 0\n"
             "gemm.mma.ragged = 2 4 10\n"
             "gemm.wgmma.fit = 1 1 1 1 1 1 1\n"
             "gemm.wgmma.step = 0.01 0.01 0.01 0.01 0.01 0.01 0.01\n"
             "gemm.wgmma.ends = 0 0 0 0 0 0 0\n"
             "gemm.schedule = %s000 1000000000 0.1 0.1 1000000\nend\n",
             memory);
    kit_write_user_file(info, text);
}

static bool as_on_opencl(const struct gemm_variant *v, const struct gemm_case *g) {
    return v == &gemm_variant_mma || (v == &gemm_variant_wgmma && gemm_in_chunks(g));
}
static bool mma_alone(const struct gemm_variant *v, const struct gemm_case *g) {
    (void)g;
    return v == &gemm_variant_mma;
}

static const struct grt_tensor nothing;

static struct gemm_case straight(struct grt_dev *dev, const struct grt_gemm_desc *desc, uint32_t m,
                                 uint32_t n, uint32_t k) {
    struct gemm_case g = {.dev = dev, .desc = desc, .m = m, .n = n, .k = k, .batch = 1};
    g.in = g.out = GRT_F16;
    g.params.lda = desc->a_transposed ? m : k;
    g.params.ldb = desc->b_transposed ? k : n;
    g.params.ldc = n;
    return g;
}

static void expect_padding(const struct gemm_case *g, gemm_asked *can,
                           const struct gemm_variant *by, bool a, bool b) {
    struct gemm_padding padding = gemm_padding_of(g, gemm_mma_time(g), can);
    assert_ptr_equal(padding.by, by);
    assert_int_equal(padding.a, a);
    assert_int_equal(padding.b, b);
}

static void copies_pay(void **state) {
    (void)state;
    const struct grt_gemm_desc nn = {.a = &nothing, .b = &nothing};
    kit_enter_home();
    struct grt_dev plain = kit_h200();
    write_costs(&plain.info, "1000");
    struct grt_dev quick = kit_h200();
    write_costs(&plain.info, "30");
    struct grt_dev slower = kit_h200();
    write_costs(&plain.info, "1");
    struct grt_dev slow = kit_h200();
    kit_remove_user_file(&plain.info);

    // Both, one, or none have rows of odd elements.
    struct gemm_case both = straight(&quick, &nn, 4096, 1001, 1023);
    struct gemm_case of_b = straight(&quick, &nn, 4096, 1001, 1024);
    struct gemm_case of_a = straight(&quick, &nn, 4096, 1000, 1023);
    struct gemm_case neither = straight(&quick, &nn, 4096, 1000, 1024);
    expect_padding(&both, as_on_opencl, &gemm_variant_wgmma, true, true);
    expect_padding(&of_b, as_on_opencl, &gemm_variant_wgmma, false, true);
    expect_padding(&of_a, as_on_opencl, &gemm_variant_wgmma, true, false);
    expect_padding(&neither, as_on_opencl, NULL, false, false);

    // What is expected is the product and the copy: 1024 rows of 1008 elements of 2 bytes, read and
    // written, and 2 us for its launch.
    struct gemm_padding one = gemm_padding_of(&of_b, INFINITY, as_on_opencl);
    double copy = 2.0 * 1024 * 1008 * 2 / 1e6 + 2;
    assert_true(fabs(one.time - gemm_wgmma_time(&of_b) - copy) < 1e-9);

    // mma multiplies when nobody else can. Where memory is slower the copy of a small b pays still,
    // that of a long a does not; where it is slow none does.
    struct gemm_case tall = straight(&quick, &nn, 1u << 20, 33, 33);
    expect_padding(&both, mma_alone, &gemm_variant_mma, true, true);
    expect_padding(&tall, mma_alone, &gemm_variant_mma, true, true);
    tall.dev = &slower;
    expect_padding(&tall, mma_alone, &gemm_variant_mma, false, true);
    both.dev = of_b.dev = &slow;
    expect_padding(&both, as_on_opencl, NULL, false, false);
    expect_padding(&of_b, as_on_opencl, NULL, false, false);
    grt_profile_destroy(&quick.profile);
    grt_profile_destroy(&slower.profile);
    grt_profile_destroy(&slow.profile);
    grt_profile_destroy(&plain.profile);
    kit_leave_home();
}

// As shipped. Products that were seen 40 times and more slower than by mma, 2026-11-17: what
// multiplied their copies was slower than what the copies were made for.
static void copies_as_measured(void **state) {
    (void)state;
    const struct grt_gemm_desc nn = {.a = &nothing, .b = &nothing};
    const struct grt_gemm_desc tn = {.a = &nothing, .b = &nothing, .a_transposed = true};
    struct grt_dev dev = kit_h200();
    const struct gemm_case slower[] = {straight(&dev, &nn, 64, 64, 115030),
                                       straight(&dev, &tn, 64, 52, 21056),
                                       straight(&dev, &nn, 63, 170, 13784)};
    for (size_t i = 0; i < sizeof slower / sizeof slower[0]; i++) {
        expect_padding(&slower[i], as_on_opencl, NULL, false, false);
    }
    struct gemm_case square = straight(&dev, &nn, 4327, 4327, 4327);
    struct gemm_case wide = straight(&dev, &nn, 18440, 664, 442);
    expect_padding(&square, as_on_opencl, &gemm_variant_wgmma, true, true);
    expect_padding(&wide, as_on_opencl, &gemm_variant_wgmma, true, false);
    grt_profile_destroy(&dev.profile);
}

// ---- tiles of mma ----

static void expect_mma(const struct gemm_case *g, uint32_t bm, uint32_t bn, uint32_t stages) {
    uint32_t v[GRT_PROFILE_NUMBERS] = {0};
    gemm_mma_tile(g, v);
    if (v[0] != bm || v[1] != bn || v[5] != stages) {
        fail_msg("%u x %u x %u: tile of %u x %u with %u stages", g->m, g->n, g->k, v[0], v[1],
                 v[5]);
    }
}

static void expect_depth(const struct gemm_case *g, uint32_t bk) {
    uint32_t v[GRT_PROFILE_NUMBERS] = {0};
    gemm_mma_tile(g, v);
    assert_int_equal(v[2], bk);
}

// Few rows have a tile of 16 or 32, and a short k has no more stages than steps of 32. Steps of 64
// are for rows of whole chunks.
static void tiles_of_mma(void **state) {
    (void)state;
    const struct grt_gemm_desc nn = {.a = &nothing, .b = &nothing};
    struct grt_dev dev = kit_h200();
    struct gemm_case few = straight(&dev, &nn, 8, 7104, 2816);
    expect_mma(&few, 16, 128, 5);
    few = straight(&dev, &nn, 32, 6464, 3200);
    expect_mma(&few, 32, 64, 4);
    expect_depth(&few, 64);
    few.m = 33;
    expect_mma(&few, 64, 64, 3);
    expect_depth(&few, 64);
    struct gemm_case odd = straight(&dev, &nn, 192, 128, 12991);
    expect_mma(&odd, 64, 64, 3);
    expect_depth(&odd, 32);
    odd = straight(&dev, &nn, 192, 128, 12992);
    expect_depth(&odd, 64);
    odd = straight(&dev, &nn, 24, 191, 55168);
    expect_depth(&odd, 32);
    // Narrow matrices have no use for a wide tile; on Vulkan the smallest is for no larger ones.
    struct gemm_case narrow = straight(&dev, &nn, 12087, 32, 344);
    struct gemm_case small = straight(&dev, &nn, 16, 16, 39);
    small.batch = 1024;
    expect_mma(&narrow, 32, 32, 3);
    expect_mma(&small, 32, 32, 2);
    dev.info.caps.imports = 2;
    expect_mma(&narrow, 64, 64, 3);
    expect_depth(&narrow, 32);
    expect_mma(&small, 32, 32, 2);
    dev.info.caps.imports = 0;
    static const uint32_t stages[][2] = {{1, 1},  {27, 1}, {32, 1}, {33, 2},
                                         {64, 2}, {65, 3}, {96, 3}, {1000, 3}};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        struct gemm_case g = straight(&dev, &nn, 321, 321, stages[i][0]);
        uint32_t v[GRT_PROFILE_NUMBERS] = {0};
        gemm_mma_tile(&g, v);
        assert_int_equal(v[2], 32);
        assert_int_equal(v[5], stages[i][1]);
    }
    grt_profile_destroy(&dev.profile);
}

// On Vulkan a kernel that is compiled at every start is for more work than 2^24 products of
// numbers, or 2^21 where rows of a or b begin anywhere or k is long, which it is sooner in f32;
// then fewer than 16 rows or columns count as 16.
static void worth_importing(void **state) {
    (void)state;
    static const struct {
        uint32_t m, n, k;
        enum grt_dtype type;
        bool worth;
    } known[] = {
        {256, 256, 256, GRT_F16, true},  {255, 256, 256, GRT_F16, false},
        {129, 129, 127, GRT_F16, true},  {127, 129, 127, GRT_F16, false},
        {8, 512, 512, GRT_BF16, true},   {1, 256, 512, GRT_BF16, true},
        {1, 255, 512, GRT_BF16, false},  {256, 1, 512, GRT_F16, true},
        {255, 1, 512, GRT_F16, false},   {17, 240, 512, GRT_F16, false},
        {2, 999, 649, GRT_F16, true},    {2, 999, 649, GRT_F32, true},
        {1, 1023, 128, GRT_F32, false},  {1, 1024, 128, GRT_F32, true},
        {8, 4096, 504, GRT_F16, false},  {1, 4096, 127, GRT_F32, false},
        {64, 512, 504, GRT_BF16, false}, {500, 258, 127, GRT_F32, false},
        {512, 259, 127, GRT_F32, true},  {128, 128, 128, GRT_F32, true},
        {127, 128, 128, GRT_F32, false},
    };
    const struct grt_gemm_desc nn = {.a = &nothing, .b = &nothing};
    struct grt_dev dev = kit_h200();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct gemm_case g = straight(&dev, &nn, known[i].m, known[i].n, known[i].k);
        g.in = g.out = known[i].type;
        if (gemm_worth_importing(&g) != known[i].worth) {
            fail_msg("%u x %u x %u: not %d", g.m, g.n, g.k, known[i].worth);
        }
    }
    grt_profile_destroy(&dev.profile);
}

// ---- checks of products that are cut ----

// What checks a product whose k is cut has a cut k too: two parts of its last tile.
static void checks_are_cut(void **state) {
    (void)state;
    const struct grt_gemm_desc nn = {.a = &nothing, .b = &nothing};
    struct grt_dev dev = kit_h200();
    struct gemm_case g = straight(&dev, &nn, 300, 300, 130);
    const struct gemm_tile stays = {128, 256, 1, 0.5, 0.3, false, 0};
    const struct gemm_schedule cut = {.parts = 7}, whole = {.parts = 1};
    struct gemm_schedule s = gemm_schedule_of_check(&g, &stays, 3, &cut);
    assert_int_equal(s.whole, 5);
    assert_int_equal(s.parts, 2);
    assert_int_equal(s.groups, 7);
    s = gemm_schedule_of_check(&g, &stays, 3, &whole);
    assert_int_equal(s.whole, 6);
    assert_int_equal(s.parts, 1);
    assert_int_equal(s.groups, 6);
    // A k of one step has no parts.
    assert_int_equal(gemm_schedule_of_check(&g, &stays, 1, &cut).parts, 1);
    grt_profile_destroy(&dev.profile);
}

// The product of a check leaves the rests of the product that it stands for: along k of 64, by
// which kernels step.
static void checks_leave_rests(void **state) {
    (void)state;
    const struct grt_gemm_desc nn = {.a = &nothing, .b = &nothing};
    static const uint32_t known[][6] = {
        {100, 100, 191, 100, 100, 191}, {100, 100, 192, 100, 100, 128},
        {40, 159, 1000, 40, 159, 168},  {160, 30, 4069, 128, 30, 165},
        {287, 161, 64, 159, 129, 64},   {1000, 300, 8191, 296, 300, 191},
        {319, 5000, 33, 319, 296, 33},  {320, 320, 8160, 288, 288, 160},
        {5, 100, 8191, 5, 100, 191},    {4, 100, 8191, 4, 100, 3071},
        {4, 100, 3071, 4, 100, 3071},   {1, 100, 3072, 1, 100, 2048},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct gemm_case g = straight(NULL, &nn, known[i][0], known[i][1], known[i][2]);
        uint32_t mnk[3];
        gemm_check_extents(&g, mnk);
        if (memcmp(mnk, known[i] + 3, sizeof mnk) != 0) {
            fail_msg("row %zu: %u x %u x %u", i, mnk[0], mnk[1], mnk[2]);
        }
    }
}

// A verdict is one kernel's: products that have other ones have other words.
static void checks_name_kernels(void **state) {
    (void)state;
    const struct grt_gemm_desc nn = {.a = &nothing, .b = &nothing};
    static const struct {
        const struct gemm_variant *by;
        uint32_t m, n, k;
        const char *words;
    } known[] = {
        {&gemm_variant_split_mma, 4096, 4096, 512, ", tile 128 x 64 x 16 x 64 x 32"},
        // 132 tiles for 132 compute units, and 121.
        {&gemm_variant_split_mma, 1408, 768, 512, ", tile 128 x 64 x 16 x 64 x 32"},
        {&gemm_variant_split_mma, 1408, 704, 512, ", tile 64 x 64 x 16 x 32 x 32"},
        {&gemm_variant_split_mma, 4096, 4096, 64, ", tile 64 x 64 x 16 x 32 x 32"},
        {&gemm_variant_split_mma, 100, 100, 512, ", tile 32 x 32 x 16 x 16 x 32"},
        {&gemm_variant_wgmma_b_shared, 65536, 200, 100, ", tile 256 x 2 x 16 x 1 x 2 x 1"},
        {&gemm_variant_wgmma_b_shared, 65536, 192, 256, ", tile 192 x 4 x 10 x 1 x 3 x 2"},
        {&gemm_variant_wgmma_b_shared, 65536, 64, 64, ", tile 64 x 1 x 16 x 1 x 4 x 1"},
        {&gemm_variant_wgmma_b_registers, 65536, 64, 64, ", tile 64 x 4 x 1"},
        {&gemm_variant_wgmma_b_registers, 65536, 65, 250, ", tile 128 x 16 x 1"},
        {&gemm_variant_wgmma_b_registers, 65536, 129, 256, ", tile 256 x 16 x 2"},
        {&gemm_variant_wgmma, 4096, 4096, 4096, ", tile 128 x 256 x 4"},
        {&gemm_variant_wgmma, 64, 64, 65536, ", tile 64 x 64 x 4, k cut"},
        {&gemm_variant_wgmma_b_shared, 65536, 24, 616, ", tile 64 x 10 x 10 x 1 x 4 x 2"},
        {&gemm_variant_few_rows, 1, 4096, 4096, ", tile 1 x 16"},
        {&gemm_variant_few_rows, 4, 4224, 64, ", tile 4 x 32"},
        {&gemm_variant_few_rows, 3, 264, 64, ", tile 3 x 8"},
        {&gemm_variant_plain, 64, 64, 64, ""},
    };
    kit_enter_home();
    struct grt_dev dev = kit_h200();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct gemm_case g = straight(&dev, &nn, known[i].m, known[i].n, known[i].k);
        char text[128];
        gemm_check_kernel(&g, known[i].by, text, sizeof text);
        assert_string_equal(text, known[i].words);
    }
    // Lanes side by side along k: as many columns as leave each two rounds of it.
    static const uint32_t columns[][3] = {
        {GRT_BACKEND_VULKAN, 2048, 8},  {GRT_BACKEND_VULKAN, 2047, 16},
        {GRT_BACKEND_VULKAN, 300, 32},  {GRT_BACKEND_OPENCL, 1024, 8},
        {GRT_BACKEND_OPENCL, 1023, 16}, {GRT_BACKEND_OPENCL, 255, 32},
    };
    const struct grt_gemm_desc nt = {.a = &nothing, .b = &nothing, .b_transposed = true};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        uint32_t v[GRT_PROFILE_NUMBERS] = {0};
        dev.info.backend = (enum grt_backend_id)columns[i][0];
        struct gemm_case g = straight(&dev, &nt, 3, 4096, columns[i][1]);
        gemm_variant_few_rows.tile(&g, v);
        assert_int_equal(v[0], 3);
        assert_int_equal(v[1], columns[i][2]);
    }
    grt_profile_destroy(&dev.profile);
    kit_leave_home();
}

// ---- products that are cut along k ----

// By hand: tiles of 64 x 64, one for a core or four for a unit of a GPU, parts of 256s.
static void cuts(void **state) {
    (void)state;
    static const struct {
        uint32_t units;
        bool software;
        uint32_t m, n, k, parts, each;
    } known[] = {
        {132, false, 64, 64, 115030, 225, 512},  {132, false, 64, 64, 1024, 4, 256},
        {132, false, 64, 64, 1023, 1, 1023},     {132, false, 66 * 64, 64, 4096, 8, 512},
        {132, false, 64, 66 * 64, 4096, 8, 512}, {132, false, 67 * 64, 64, 4096, 1, 4096},
        {132, false, 3, 3, 1u << 20, 256, 4096}, {4, true, 64, 64, 4096, 4, 1024},
        {4, true, 65, 64, 4096, 2, 2048},        {4, true, 64, 129, 4096, 1, 4096},
        {0, false, 64, 64, 4096, 16, 256},       {1, true, 64, 64, 4096, 1, 4096},
        {2, true, 64, 64, 4096, 2, 2048},        {3, true, 64, 64, 1100, 3, 512},
    };
    struct grt_dev dev = {.info = kit_gpu("Made up", "Nobody", 8)};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct grt_gemm_desc desc = {0};
        dev.info.caps.compute_units = known[i].units;
        dev.info.caps.software = known[i].software;
        struct gemm_case g = straight(&dev, &desc, known[i].m, known[i].n, known[i].k);
        struct gemm_cut cut = gemm_cut_of(&g);
        if (cut.parts != known[i].parts || cut.each != known[i].each) {
            fail_msg("row %zu: %u parts of %u", i, cut.parts, cut.each);
        }
        // Sums of parts begin where a binding may.
        uint64_t words = ((uint64_t)known[i].m * known[i].n + 127) / 128 * 128;
        assert_int_equal(gemm_cut_bytes(&g, &cut), cut.parts > 1 ? 4 * words * cut.parts : 0);
        // Of many products, or with sums of 16 bits, none is cut.
        g.batch = 2;
        assert_int_equal(gemm_cut_of(&g).parts, 1);
        g.batch = 1;
        desc.half_sums = true;
        assert_int_equal(gemm_cut_of(&g).parts, 1);
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(cuts),
    TEST_CASE(as_recorded),
    TEST_CASE(settings_decide),
    TEST_CASE(copies_pay),
    TEST_CASE(copies_as_measured),
    TEST_CASE(tiles_of_mma),
    TEST_CASE(worth_importing),
    TEST_CASE(checks_are_cut),
    TEST_CASE(checks_leave_rests),
    TEST_CASE(checks_name_kernels),
};
TEST_SUITE(choices, false, cases);
