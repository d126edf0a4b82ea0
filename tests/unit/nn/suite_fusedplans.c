// SPDX-License-Identifier: Apache-2.0
// How fused perceptrons are cut for GPUs, in numbers by hand: blocks of rows, parts of gradients
// and memory, on both sides of where another cut begins. No GPU is wanted for that.
#include "kits/profile_kit.h"
#include "kits/ref_kit.h"

#include <string.h>

#include "backends/backend.h"
#include "nn/fused/mlp_case.h"

#define UNITS 10

struct cut {
    const struct mlp_variant *variant;
    uint32_t rows, tiled, inputs, depth, width;
    enum grt_act act;
    bool alone;
    uint32_t groups;
    struct mlp_plan want;
};

static struct mlp_case case_of(const struct cut *c, struct grt_mlp_fused_desc *desc) {
    *desc = (struct grt_mlp_fused_desc){.model = {.act = c->act}, .groups = c->groups};
    return (struct mlp_case){.dev = test.dev,
                             .desc = desc,
                             .rows = c->rows,
                             .inputs = c->inputs,
                             .depth = c->depth,
                             .width = c->width,
                             .outputs = 3,
                             .tiled = c->tiled ? c->tiled : c->rows,
                             .alone = c->alone};
}

static void plans(void **state) {
    (void)state;
    static const struct mlp_variant *const step = &mlp_variant_step, *const mma = &mlp_variant_mma,
                                           *const wgmma = &mlp_variant_wgmma,
                                           *const coop = &mlp_variant_coop,
                                           *const chain = &mlp_variant_chain;
    const enum grt_act relu = GRT_ACT_RELU, tanh = GRT_ACT_TANH;
    // Padded rows, blocks, parts, most parts, rows of a part, bytes of units and most of them.
    const struct cut rows[] = {
        {step, 1000, 0, 6, 2, 64, relu, false, 0, {1024, 8, 8, 10, 128, 0, 0}},
        {step, 1000, 0, 6, 2, 16, relu, false, 0, {1024, 8, 8, 20, 128, 0, 0}},
        {step, 5120, 0, 6, 2, 64, relu, false, 0, {5120, 10, 10, 10, 128, 0, 0}},
        {step, 5500, 0, 6, 2, 32, relu, false, 0, {5504, 9, 9, 10, 128, 0, 0}},
        {step, 1000, 0, 6, 2, 64, relu, false, 3, {1024, 3, 3, 10, 128, 0, 0}},
        {mma, 1280, 0, 20, 3, 128, relu, false, 0, {1280, 10, 5, 5, 256, 2088960, 2088960}},
        {mma, 1280, 1279, 20, 3, 128, relu, false, 0, {1280, 20, 5, 5, 256, 2088960, 2088960}},
        {mma, 640, 0, 16, 1, 64, relu, false, 0, {640, 10, 5, 10, 128, 204800, 204800}},
        {mma, 639, 0, 17, 1, 64, relu, false, 0, {640, 20, 5, 10, 128, 225280, 225280}},
        {mma, 100, 0, 100, 1, 16, tanh, false, 0, {128, 4, 1, 6, 128, 49152, 49152}},
        {wgmma, 1280, 0, 64, 2, 256, relu, false, 0, {1280, 80, 2, 2, 640, 2949120, 2949120}},
        {wgmma, 1000, 0, 64, 2, 256, relu, false, 0, {1024, 64, 2, 2, 512, 2359296, 2359296}},
        {wgmma, 1000, 1280, 64, 2, 256, relu, false, 0, {1024, 64, 2, 2, 512, 2359296, 2359296}},
        {wgmma, 60, 0, 65, 2, 256, tanh, false, 0, {64, 4, 1, 2, 64, 221184, 442368}},
        {coop, 640, 0, 33, 2, 64, relu, false, 0, {640, 10, 5, 6, 128, 430080, 516096}},
        {coop, 639, 0, 33, 2, 64, relu, false, 0, {640, 20, 5, 6, 128, 430080, 516096}},
        {coop, 1280, 0, 8, 2, 64, relu, true, 0, {1280, 10, 5, 6, 256, 778240, 860160}},
        {coop, 1279, 0, 8, 2, 64, relu, true, 0, {1280, 20, 5, 6, 256, 778240, 860160}},
        {coop, 1280, 0, 16, 1, 16, relu, false, 0, {1280, 10, 10, 15, 128, 163840, 286720}},
        {coop, 1279, 0, 16, 1, 16, relu, false, 0, {1280, 40, 10, 15, 128, 163840, 286720}},
        {coop, 640, 0, 32, 1, 32, relu, false, 0, {640, 10, 5, 15, 128, 143360, 221184}},
        {coop, 1280, 0, 32, 1, 128, relu, false, 0, {1280, 10, 10, 10, 128, 778240, 860160}},
        {coop, 1279, 0, 33, 1, 128, relu, false, 0, {1280, 40, 10, 10, 128, 860160, 860160}},
        {chain, 300, 0, 17, 3, 16, tanh, false, 0, {384, 3, 3, 6, 128, 147456, 229376}},
        {chain, 300, 0, 17, 3, 16, relu, false, 0, {384, 3, 3, 6, 128, 110592, 180224}},
        {chain, 2560, 0, 16, 1, 128, relu, false, 0, {2560, 10, 10, 10, 256, 1474560, 1720320}},
        {chain, 2560, 2559, 16, 1, 128, relu, false, 0, {2560, 20, 10, 10, 256, 1474560, 1720320}},
    };
    uint32_t wrong = 0;
    test.dev->info.caps.compute_units = UNITS;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_mlp_fused_desc desc;
        const struct mlp_case c = case_of(&rows[i], &desc);
        struct mlp_plan got = {0};
        const struct mlp_plan *want = &rows[i].want;
        rows[i].variant->plan(&c, &got);
        if (got.padded != want->padded || got.blocks != want->blocks || got.parts != want->parts ||
            got.most_parts != want->most_parts || got.chunk != want->chunk ||
            got.units_bytes != want->units_bytes || got.most_units != want->most_units) {
            print_error(
                "row %zu, %s: %u padded, %u blocks, %u parts of %u, %u rows each, %llu bytes "
                "of %llu\n",
                i, rows[i].variant->name, got.padded, got.blocks, got.parts, got.most_parts,
                got.chunk, (unsigned long long)got.units_bytes, (unsigned long long)got.most_units);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

// Whether a variant is the better choice, and what it asks of a device first.
static void choices(void **state) {
    (void)state;
    struct grt_caps *caps = &test.dev->info.caps;
    const struct {
        const struct mlp_variant *variant;
        uint32_t rows, width;
        enum grt_act act;
        bool alone, better;
    } rows[] = {
        {&mlp_variant_chain, 1280, 16, GRT_ACT_RELU, false, true},
        {&mlp_variant_chain, 1279, 16, GRT_ACT_RELU, false, false},
        {&mlp_variant_chain, 1, 16, GRT_ACT_TANH, false, true},
        {&mlp_variant_chain, 2560, 128, GRT_ACT_RELU, false, true},
        {&mlp_variant_chain, 2559, 128, GRT_ACT_RELU, false, true},
        {&mlp_variant_chain, 1279, 128, GRT_ACT_RELU, false, false},
        {&mlp_variant_coop, 1, 64, GRT_ACT_RELU, false, true},
        {&mlp_variant_mma, 1, 64, GRT_ACT_RELU, false, true},
        {&mlp_variant_step, 1, 64, GRT_ACT_RELU, false, true},
        {&mlp_variant_wgmma, 512, 512, GRT_ACT_RELU, false, true},
        {&mlp_variant_wgmma, 511, 512, GRT_ACT_RELU, false, false},
        {&mlp_variant_wgmma, 511, 512, GRT_ACT_RELU, true, true},
        {&mlp_variant_wgmma, 1, 256, GRT_ACT_RELU, false, true},
        {&mlp_variant_plain, 1, 32, GRT_ACT_RELU, false, true},
        {&mlp_variant_plain, 1, 64, GRT_ACT_RELU, false, false},
    };
    caps->compute_units = UNITS;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct cut cut = {.rows = rows[i].rows,
                                .inputs = 8,
                                .depth = 2,
                                .width = rows[i].width,
                                .act = rows[i].act,
                                .alone = rows[i].alone};
        struct grt_mlp_fused_desc desc;
        const struct mlp_case c = case_of(&cut, &desc);
        assert_int_equal(rows[i].variant->better(&c), rows[i].better);
    }
    // None of those for GPUs serves a CPU, whatever it is asked.
    static const struct mlp_variant *const all[] = {&mlp_variant_step, &mlp_variant_mma,
                                                    &mlp_variant_wgmma, &mlp_variant_coop,
                                                    &mlp_variant_chain};
    for (int i = 0; i < 5; i++) {
        const struct cut cut = {
            .rows = 64, .inputs = 8, .depth = 2, .width = all[i]->narrowest, .act = GRT_ACT_RELU};
        struct grt_mlp_fused_desc desc;
        const struct mlp_case c = case_of(&cut, &desc);
        for (int half = 0; half < 2; half++) {
            desc.dtype = half ? GRT_F16 : GRT_F32;
            assert_false(all[i]->usable(&c));
        }
    }
    static const struct {
        const struct mlp_variant *variant;
        const char *name;
        uint32_t narrowest, widest;
    } widths[] = {{&mlp_variant_step, "step", 16, 64},     {&mlp_variant_chain, "chain", 16, 128},
                  {&mlp_variant_coop, "coop", 16, 128},    {&mlp_variant_mma, "mma", 16, 128},
                  {&mlp_variant_wgmma, "wgmma", 256, 512}, {&mlp_variant_plain, "plain", 16, 128}};
    for (int i = 0; i < 6; i++) {
        assert_string_equal(widths[i].variant->name, widths[i].name);
        assert_int_equal(widths[i].variant->narrowest, widths[i].narrowest);
        assert_int_equal(widths[i].variant->widest, widths[i].widest);
    }
}

// Work of all products, and what the last launch leaves of the norm: lanes share long sums of
// parts, and workgroups end somewhere.
static void work_and_norms(void **state) {
    (void)state;
    struct grt_caps *caps = &test.dev->info.caps;
    const struct {
        uint32_t software, units, inputs, depth, width, parts, want;
    } rows[] = {
        {0, 10, 10, 2, 64, 1, 51},    {0, 10, 10, 2, 64, 16, 51},  {0, 10, 10, 2, 64, 17, 99},
        {0, 10, 10, 2, 64, 32, 99},   {0, 10, 10, 2, 64, 33, 195}, {0, 10, 10, 2, 64, 65, 390},
        {0, 10, 10, 2, 64, 999, 390}, {0, 10, 100, 2, 64, 1, 78},  {0, 10, 10, 1, 64, 1, 6},
        {0, 10, 10, 2, 512, 1, 768},  {1, 10, 10, 2, 64, 999, 60}, {1, 200, 10, 2, 64, 1, 780},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        caps->software = rows[i].software;
        caps->compute_units = rows[i].units;
        const struct cut cut = {
            .rows = 7, .inputs = rows[i].inputs, .depth = rows[i].depth, .width = rows[i].width};
        struct grt_mlp_fused_desc desc;
        const struct mlp_case c = case_of(&cut, &desc);
        assert_int_equal(mlp_norm_count(&c, rows[i].parts), rows[i].want);
        double back = 2.0 * 7 * c.width * ((c.depth - 1.0) * c.width + 3);
        assert_true(mlp_back_operations(&c) == back);
        assert_true(mlp_operations(&c) == back + 2.0 * 7 * c.inputs * c.width);
    }
    caps->software = 1;
    caps->compute_units = 0;
    assert_int_equal(mlp_units(test.dev), 16);
    caps->compute_units = 5;
    assert_int_equal(mlp_units(test.dev), 5);
}

// ---- on an H200 as both APIs list it ----

// By hand: 4096 rows of 8 layers of 256 leave (64 + 2 * 8 * 256 + 64) * 2 * 4096 bytes for the
// gradients, and may take a quarter of what the run may take.
static void memory_of_perceptrons(void **state) {
    (void)state;
    const uint64_t units = 34603008;
    struct grt_dev dev = kit_h200();
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
    struct grt_dev dev = kit_h200();
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
    REF_CASE(plans),
    REF_CASE(choices),
    REF_CASE(work_and_norms),
    TEST_CASE(memory_of_perceptrons),
    TEST_CASE(scratch_of_fewer_rows),
};
TEST_SUITE(fusedplans, false, cases);
