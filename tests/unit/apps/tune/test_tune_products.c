// SPDX-License-Identifier: Apache-2.0
// Which products a training run has, from its config: widths of an MLP, layers of a list.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpurt/make.h"
#include "tune/tune.h"

static struct grt_profile *profile;
static char folder[] = "/tmp/gpurt-products-XXXXXX";
static char path[64];

static int begin(void **state) {
    (void)state;
    profile = grt_profile_create(&(struct grt_dev_info){.name = "made up"});
    if (!profile || !mkdtemp(folder)) {
        return -1;
    }
    snprintf(path, sizeof path, "%s/d.h5", folder);
    return grt_data_make(grt_make_desc(.path = path, .make = GRT_MAKE_SHAPES, .samples = 20,
                                       .features = 1, .classes = 4, .pixels = 8))
               ? 0
               : -1;
}

static int end(void **state) {
    (void)state;
    grt_profile_destroy(&profile);
    unlink(path);
    return rmdir(folder);
}

// m, n, k of the forward product, and those of the weights' gradient; the place of its type among
// those of `bench gemm`.
static void expect_in(const char *precision, uint32_t place, const char *model, const char *batch,
                      uint64_t m, uint64_t n, uint64_t k) {
    struct grt_config config;
    struct bench_gemm_options o = {0};
    char data[96];
    grt_config_init(&config);
    snprintf(data, sizeof data, "data=%s", path);
    assert_true(grt_config_override(&config, data));
    assert_true(grt_config_override(&config, "loss=cross_entropy"));
    assert_true(grt_config_override(&config, model));
    assert_true(grt_config_override(&config, batch));
    assert_true(grt_config_override(&config, precision));
    assert_int_equal(tune_products(&config, profile, &o), 0);
    assert_int_equal(o.shapes.count, 2);
    const struct bench_gemm_shape *s = o.shapes.values;
    assert_int_equal(s[0].m, m);
    assert_int_equal(s[0].n, n);
    assert_int_equal(s[0].k, k);
    assert_int_equal(s[0].trans, 0);
    assert_int_equal(s[1].m, n);
    assert_int_equal(s[1].n, k);
    assert_int_equal(s[1].k, m);
    assert_int_equal(s[1].trans, 2);
    assert_int_equal(o.precisions, 1 << place);
    free(o.shapes.values);
}

static void expect(const char *model, const char *batch, uint64_t m, uint64_t n, uint64_t k) {
    expect_in("precision=f32", 0, model, batch, m, n, k);
}

// Images of 8x8x3 are 192 inputs of 64 pixels; what has parts is no layer, and a norm no product.
static void of_layers(void **state) {
    (void)state;
    expect(
        "model=[{conv: {outputs: 8, size: 3, padding: 1}}, {norm: batch}, relu, {conv: {outputs: "
        "4, size: 3, stride: 2, padding: 1}}, flatten, {linear: out}]",
        "batch_size=4", UINT64_C(4) * 64, 8, 27);
    expect("model=[{conv: {outputs: 2, size: 1}}, {residual: [{conv: {outputs: 2, size: 1}}]}, "
           "flatten, {linear: 50}, {linear: out}]",
           "batch_size=2", 2, 50, 128);
    // Long ones are cut.
    expect("model=[flatten, {linear: 600}, {linear: out}]", "batch_size=16384", 8192, 600, 192);
}

// f32, f16 and bf16, in the order of --precision.
static void of_types(void **state) {
    (void)state;
    expect_in("precision=f16", 1, "model=[flatten, {linear: 50}, {linear: out}]", "batch_size=8", 8,
              50, 192);
    expect_in("precision=bf16", 2, "model=[flatten, {linear: 50}, {linear: out}]", "batch_size=8",
              8, 50, 192);
}

int main(void) {
    const struct CMUnitTest cases[] = {cmocka_unit_test(of_layers), cmocka_unit_test(of_types)};
    return cmocka_run_group_tests(cases, begin, end);
}
