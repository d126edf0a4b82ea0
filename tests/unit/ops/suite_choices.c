// SPDX-License-Identifier: Apache-2.0
// Which tile of its own a variant takes for a product: what the profiles say that tiles cost
// decides. Which operands are copied to aligned rows first, and for whom. Which kernels
// convolutions have, and what checks them; and where memory decides about perceptrons. On an H200
// as both APIs list it; no driver is asked.
#include "kits/profile_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/fused/mlp_case.h"
#include "ops/conv/case.h"
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

// Products of random sizes, with the tiles of before the costs became settings; six have others
// since parts of k meet sooner.
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
                               "gemm.split_wgmma.ends = 0 900000 900000 900000\n"
                               "gemm.wgmma.ends = 0 900 900 900 900 900 900\n"
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

// ---- copies of operands whose rows begin anywhere ----

// A step of each tile of mma takes 1 us, ten times as long with rows of odd elements; one of wgmma
// a hundredth. Memory moves 1000 bytes in a microsecond times `memory`. k is never cut.
static void write_costs(const struct grt_dev_info *info, const char *memory) {
    char text[1024];
    snprintf(text, sizeof text,
             "gpurt-profile 1\nlevel = user\nfrom = default\n"
             "gemm.mma.fit = 1 1 1 1 1 1 1 1\ngemm.mma.step = 1 1 1 1 1 1 1 1\n"
             "gemm.mma.alone = 1 1 1 1 1 1 1 1\ngemm.mma.ends = 0 0 0 0 0 0 0 0\n"
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
    struct grt_dev plain = h200();
    write_costs(&plain.info, "1000");
    struct grt_dev quick = h200();
    write_costs(&plain.info, "30");
    struct grt_dev slower = h200();
    write_costs(&plain.info, "1");
    struct grt_dev slow = h200();
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
    struct grt_dev dev = h200();
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
    struct grt_dev dev = h200();
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
// numbers, or 2^21 where rows of a or b begin anywhere or k is long, which it is sooner in f32.
static void worth_importing(void **state) {
    (void)state;
    static const struct {
        uint32_t m, n, k;
        enum grt_dtype type;
        bool worth;
    } known[] = {
        {256, 256, 256, GRT_F16, true},  {255, 256, 256, GRT_F16, false},
        {129, 129, 127, GRT_F16, true},  {127, 129, 127, GRT_F16, false},
        {8, 512, 512, GRT_BF16, true},   {7, 512, 512, GRT_BF16, false},
        {64, 512, 504, GRT_BF16, false}, {500, 258, 127, GRT_F32, false},
        {512, 259, 127, GRT_F32, true},  {128, 128, 128, GRT_F32, true},
        {127, 128, 128, GRT_F32, false},
    };
    const struct grt_gemm_desc nn = {.a = &nothing, .b = &nothing};
    struct grt_dev dev = h200();
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
    struct grt_dev dev = h200();
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
        {&gemm_variant_plain, 64, 64, 64, ""},
    };
    kit_enter_home();
    struct grt_dev dev = h200();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct gemm_case g = straight(&dev, &nn, known[i].m, known[i].n, known[i].k);
        char text[128];
        gemm_check_kernel(&g, known[i].by, text, sizeof text);
        assert_string_equal(text, known[i].words);
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

// A convolution of `rows` square images, of as many outputs as channels.
static struct conv_case convolution(struct grt_dev *dev, const struct grt_conv2d_desc *desc,
                                    uint32_t size, uint32_t rows, uint32_t side,
                                    uint32_t channels) {
    struct conv_case c = {.dev = dev,
                          .desc = desc,
                          .window = {.size = size,
                                     .stride = desc->stride,
                                     .padding = desc->padding,
                                     .height = side,
                                     .width = side,
                                     .channels = channels},
                          .rows = rows,
                          .outputs = channels,
                          .type = GRT_F16,
                          .out = desc->pass == GRT_CONV_WEIGHT ? GRT_F32 : GRT_F16};
    c.window.out_height = c.window.out_width = (side + 2 * desc->padding - size) / desc->stride + 1;
    return c;
}

// The first kernel of a convolution 3x3 that pays, of those that Hopper has, with its tile.
static void convolve(struct grt_dev *dev, enum grt_conv_pass pass, uint32_t side, uint32_t channels,
                     char text[128]) {
    enum { HOPPERS = 5 };
    static const struct conv_variant *const all[HOPPERS] = {
        &conv_variant_wgmma_w_registers, &conv_variant_wgmma_columns,
        &conv_variant_wgmma_x_registers, &conv_variant_wgmma_48k, &conv_variant_wgmma};
    const struct grt_conv2d_desc desc = {.pass = pass, .stride = 1, .padding = 1};
    const struct conv_case c = convolution(dev, &desc, 3, 1024, side, channels);
    bool weight = pass == GRT_CONV_WEIGHT;
    for (uint32_t i = 0; i < HOPPERS; i++) {
        bool columns = all[i] == &conv_variant_wgmma_columns;
        if ((i > 2 || columns == weight) && all[i]->pays(&c)) {
            char tile[CONV_TILE_TEXT];
            all[i]->tile(&c, tile);
            snprintf(text, 128, "%s, %s", all[i]->name, tile);
            return;
        }
    }
    snprintf(text, 128, "none");
}

// Vulkan has OpenCL's kernels where imported ones have all of a processor's shared memory, and
// kernels within 48 KiB where they have not. Tiles differ in words: each is checked by itself.
static void convolutions(void **state) {
    (void)state;
    kit_enter_home();
    struct grt_dev dev = h200();
    static const struct {
        enum grt_conv_pass pass;
        uint32_t side, channels;
        const char *all, *lean, *vulkan;  // the last: NULL where it is as on OpenCL
    } cases[] = {
        {GRT_CONV_FORWARD, 32, 64, "wgmma_w_registers, 8x16 pixels, 2 stages",
         "wgmma_w_registers, 8x16 pixels, 1 stages"},
        {GRT_CONV_FORWARD, 16, 128, "wgmma, 256x128 by 64, 4 stages",
         "wgmma_w_registers, 8x16 pixels, 1 stages"},
        {GRT_CONV_FORWARD, 32, 160, "wgmma, 128x160 by 64, 5 stages",
         "wgmma_x_registers, 256x160 by 32, 7 stages, cut",
         "wgmma_x_registers, 256x160 by 32, 7 stages, cut"},
        {GRT_CONV_DATA, 8, 256, "wgmma, 128x256 by 64, 4 stages",
         "wgmma_x_registers, 128x256 by 32, 5 stages"},
        {GRT_CONV_FORWARD, 4, 512, "wgmma, 128x256 by 64, 4 stages",
         "wgmma_x_registers, 128x256 by 32, 5 stages"},
        {GRT_CONV_WEIGHT, 16, 128, "wgmma_columns, 8x8 pixels joined, 8 stages",
         "wgmma_columns, 8x2 pixels joined, 6 stages"},
        {GRT_CONV_WEIGHT, 3, 512, "wgmma, 128x128 by 64, 5 stages, of one tap, cut",
         "wgmma_48k, 128x128 by 32, 2 stages, of one tap"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[3][128];
        for (uint32_t imports = 0; imports < 3; imports++) {
            dev.info.caps.imports = imports;
            convolve(&dev, cases[i].pass, cases[i].side, cases[i].channels, text[imports]);
        }
        assert_string_equal(text[0], cases[i].all);
        assert_string_equal(text[1], cases[i].lean);
        assert_string_equal(text[2], cases[i].vulkan ? cases[i].vulkan : cases[i].all);
    }
    grt_profile_destroy(&dev.profile);
    kit_leave_home();
}

// What checks a convolution has its kernel, whose tile, cut and taps are said in words; and is
// small.
static void checks_of_convolutions(void **state) {
    (void)state;
    kit_enter_home();
    struct grt_dev dev = h200();
    static const struct conv_variant *const all[] = {&conv_variant_wgmma, &conv_variant_wgmma_48k,
                                                     &conv_variant_wgmma_x_registers};
    static const uint32_t rows[] = {1, 16, 1024}, sides[] = {1, 2, 4, 7, 16, 56};
    static const uint32_t channels[] = {16, 64, 96, 152, 192, 256, 320, 512};
    uint32_t cut = 0, single = 0, several = 0;
    for (uint32_t i = 0; i < 3 * 3 * 3 * 6 * 8 * 4; i++) {
        const struct conv_variant *by = all[i % 3];
        uint32_t size = i / 1296 % 2 ? 3 : 1;
        const struct grt_conv2d_desc desc = {
            .pass = (enum grt_conv_pass)(i / 3 % 3), .stride = 1 + i / 2592, .padding = size / 2};
        const struct conv_case c = convolution(&dev, &desc, size, rows[i / 9 % 3],
                                               sides[i / 27 % 6], channels[i / 162 % 8]);
        bool weight = desc.pass == GRT_CONV_WEIGHT;
        if (c.window.height < desc.stride || (weight && i % 3 == 2)) {
            continue;  // not usable
        }
        struct conv_extents e = conv_check_extents(&c, by);
        struct conv_case check = convolution(&dev, &desc, size, e.rows, e.height, e.channels);
        check.window.width = e.width;
        check.window.out_width = (e.width + 2 * desc.padding - size) / desc.stride + 1;
        check.outputs = e.outputs;
        check.stands_for = &c;
        char text[2][CONV_TILE_TEXT];
        by->tile(&c, text[0]);
        by->tile(&check, text[1]);
        if (strcmp(text[0], text[1]) != 0) {
            fail_msg("%s, pass %d, %u of %ux%u, size %u by %u: '%s' by '%s'", by->name,
                     (int)desc.pass, c.rows, c.window.height, c.window.channels, size, desc.stride,
                     text[0], text[1]);
        }
        assert_true(e.rows <= c.rows && e.height <= c.window.height && e.width <= c.window.width &&
                    e.channels <= c.window.channels && e.outputs <= c.outputs);
        // The host adds all of it up.
        uint64_t pixels = (uint64_t)e.rows * check.window.out_height * check.window.out_width;
        assert_true(pixels * e.channels * e.outputs * size * size < 1u << 26);
        cut += strstr(text[0], ", cut") != NULL;
        single += strstr(text[0], ", of one tap") != NULL;
        several += weight && !strstr(text[0], ", of one tap");
    }
    assert_true(cut > 1000 && single > 300 && several > 300);
    // In words, each by itself.
    const struct grt_conv2d_desc weight = {.pass = GRT_CONV_WEIGHT, .stride = 1, .padding = 1};
    static const struct {
        uint32_t rows, side, channels;
        const char *text;
    } known[] = {
        {1024, 56, 512, "128x128 by 64, 5 stages, of one tap, cut"},
        {16, 4, 512, "128x256 by 64, 4 stages, of one tap"},
        {1024, 56, 320, "128x256 by 64, 4 stages, cut"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct conv_case c =
            convolution(&dev, &weight, 3, known[i].rows, known[i].side, known[i].channels);
        char text[CONV_TILE_TEXT];
        conv_variant_wgmma.tile(&c, text);
        assert_string_equal(text, known[i].text);
    }
    grt_profile_destroy(&dev.profile);
    kit_leave_home();
}

// ---- perceptrons ----

// By hand: 4096 rows of 8 layers of 256 leave (64 + 2 * 8 * 256 + 64) * 2 * 4096 bytes for the
// gradients, and may take a quarter of what the run may take.
static void memory_of_perceptrons(void **state) {
    (void)state;
    const uint64_t units = 34603008;
    struct grt_dev dev = h200();
    const struct grt_mlp_fused_desc desc = {.model = {.act = GRT_ACT_RELU}, .dtype = GRT_F16};
    struct mlp_case c = {.dev = &dev,
                         .desc = &desc,
                         .rows = 4096,
                         .tiled = 4096,
                         .inputs = 64,
                         .depth = 8,
                         .width = 256,
                         .outputs = 8};
    const struct {
        uint64_t memory, limit;
        double fraction;
        bool better;
    } rows[] = {
        {4 * units, 0, 1.0, true},          {4 * units - 4, 0, 1.0, false},
        {8 * units, 0, 0.5, true},          {8 * units, 0, 0.49, false},
        {8 * units, 4 * units, 1.0, true},  {8 * units, 4 * units - 4, 1.0, false},
        {2 * units, 8 * units, 1.0, false}, {0, 0, 1.0, true},
        {0, 2 * units, 1.0, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dev.info.caps.memory = rows[i].memory;
        dev.desc.mem_limit = rows[i].limit;
        dev.desc.mem_fraction = rows[i].fraction;
        assert_int_equal(mlp_variant_wgmma.better(&c), rows[i].better);
    }
    // A check within 48 KiB is none of the kernels that take more.
    dev.info.caps.imports = 1;
    assert_string_equal(mlp_variant_wgmma.kernels(&c), ", in 48 KiB");
    grt_profile_destroy(&dev.profile);
}

// The last batch of an epoch has fewer rows and the same scratch, also where they are cut into more
// parts: 4672 rows of 6 layers of 64 into 37 by "chain", 4800 into 26.
static void scratch_of_fewer_rows(void **state) {
    (void)state;
    const struct mlp_variant *variants[] = {&mlp_variant_step, &mlp_variant_chain,
                                            &mlp_variant_coop, &mlp_variant_mma};
    const uint32_t layers[][2] = {{3, 16}, {6, 64}, {3, 64}}, units[] = {132, 114, 78};
    struct grt_dev dev = h200();
    const struct grt_params params = {.elements = 30000};
    const struct grt_mlp_fused_desc desc = {
        .model = {.act = GRT_ACT_RELU}, .dtype = GRT_F16, .params = &params};
    for (uint32_t i = 0; i < 4 * 3 * 3; i++) {
        dev.info.caps.compute_units = units[i / 4 % 3];
        struct mlp_case c = {.dev = &dev,
                             .desc = &desc,
                             .inputs = 64,
                             .depth = layers[i / 12][0],
                             .width = layers[i / 12][1],
                             .outputs = 1};
        uint64_t before = 0;
        for (c.rows = 32; c.rows <= 16384; c.rows += 32) {
            c.tiled = c.rows;
            struct mlp_plan plan;
            variants[i % 4]->plan(&c, &plan);
            assert_true(plan.parts <= plan.most_parts);
            uint64_t bytes = mlp_scratch_bytes(&c, variants[i % 4]);
            assert_true(bytes >= before);
            before = bytes;
        }
    }
    grt_profile_destroy(&dev.profile);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(scratch_of_fewer_rows),
    TEST_CASE(memory_of_perceptrons),
    TEST_CASE(checks_of_convolutions),
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
    TEST_CASE(convolutions),
};
TEST_SUITE(choices, false, cases);
