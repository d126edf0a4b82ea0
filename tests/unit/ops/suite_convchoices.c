// SPDX-License-Identifier: Apache-2.0
// Which kernel and which tile a convolution has, and what checks them: on an H200 as both APIs list
// it; no driver is asked.
#include "kits/profile_kit.h"

#include <stdio.h>
#include <string.h>

#include "ops/conv/case.h"

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
    struct grt_dev dev = kit_h200();
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
    struct grt_dev dev = kit_h200();
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

static const struct CMUnitTest cases[] = {
    TEST_CASE(convolutions),
    TEST_CASE(checks_of_convolutions),
};
TEST_SUITE(convchoices, false, cases);
