// SPDX-License-Identifier: Apache-2.0
// Matrix products to check: operands on the device with the numbers they hold there, and what the
// oracle says of the result.
#ifndef TEST_GEMM_KIT_H
#define TEST_GEMM_KIT_H

#include "harness/harness.h"

// Numbers on the device, and what they are there, after rounding to their type.
struct operand {
    struct test_tensor t;
    double *value;  // NULL: there is no such operand
    size_t count;
};

// Of shape [batch][rows][cols], or without the first axis when batch is 0; zeros on the host only.
struct operand operand(enum grt_dtype dtype, uint64_t batch, uint64_t rows, uint64_t cols);
// Numbers in [-2, 2], written.
struct operand random_operand(enum grt_dtype dtype, uint64_t batch, uint64_t rows, uint64_t cols,
                              uint64_t seed);
// Rounds the values and writes them to the device.
void operand_write(struct operand *o);
void operand_end(struct operand *o);
// Element i of an array read from the device.
float gemm_element(enum grt_dtype dtype, const void *bytes, size_t i);

// One product to check; zero means without.
struct product {
    uint64_t m, n, k;  // k 0: without a and b
    uint64_t batch;    // 0: matrices of rank 2
    bool a_shared, b_shared;
    bool a_transposed, b_transposed;
    enum grt_dtype in, out;
    float alpha, beta;
    bool bias, add;
    enum grt_act act, grad_act;
    bool half_sums;
};

struct made {
    const struct product *p;
    struct operand a, b, c, bias, add, saved;
    struct operand scratch;  // where the product wants some; filled with NaN before it runs
    struct grt_gemm_desc desc;
};

// The operands of a product, random.
void made_begin(struct made *x, const struct product *p);
void made_end(struct made *x);
// What c must be; allocated.
struct oracle_value *made_want(const struct made *x);
// The elements of c after the product by one variant (NULL: the device's choice), allocated.
// Without beta it runs over each pre-fill of c and must give the same bits.
void *made_run(struct made *x, const char *variant);
void made_compare(const struct made *x, const struct oracle_value *want, const char *variant,
                  const void *got);
// The i-th variant of the device for this product, or NULL.
const char *made_variant(struct made *x, uint32_t i);
// Whether this variant of the next product is left out, to save time.
bool variant_passed_over(uint32_t variant, const char *name);
// Every variant against the oracle, and that the device's own choice is the first of them.
void product_check(const struct product *p);

#endif
