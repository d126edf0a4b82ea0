// SPDX-License-Identifier: Apache-2.0
// Shapes of a matrix unit in words: none, one, several, and more than there is room for.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/output/matrix_text.h"

static void shapes_in_words(void **state) {
    (void)state;
    struct grt_caps caps = {.matrix_shapes = {{16, 8, 32, GRT_F16, GRT_F32},
                                              {8, 16, 64, GRT_I8, GRT_I32},
                                              {4, 5, 6, GRT_BF16, GRT_BF16}}};
    static const char *const want[][2] = {
        {"", ""},
        {"f16 16x8x32>f32", "f16 16x8x32>f32"},
        {"f16 16x8x32>f32 +1", "f16 16x8x32>f32, i8 8x16x64>i32"},
        {"f16 16x8x32>f32 +2", "f16 16x8x32>f32, i8 8x16x64>i32, bf16 4x5x6>bf16"},
    };
    for (uint32_t i = 0; i < 4; i++) {
        char brief[64] = "before", whole[128] = "before";
        caps.matrix_shape_count = i;
        matrix_text(&caps, brief, sizeof brief, whole, sizeof whole);
        assert_string_equal(brief, want[i][0]);
        assert_string_equal(whole, want[i][1]);
    }
    // The third begins behind the end.
    struct {
        char brief[8], whole[20], behind[64];
    } text;
    memset(&text, '?', sizeof text);
    matrix_text(&caps, text.brief, sizeof text.brief, text.whole, sizeof text.whole);
    assert_string_equal(text.brief, "f16 16x");
    assert_string_equal(text.whole, "f16 16x8x32>f32, i8");
    for (size_t i = 0; i < sizeof text.behind; i++) {
        assert_int_equal(text.behind[i], '?');
    }
}

int main(void) {
    const struct CMUnitTest cases[] = {cmocka_unit_test(shapes_in_words)};
    return cmocka_run_group_tests_name("matrix_text", cases, NULL, NULL);
}
