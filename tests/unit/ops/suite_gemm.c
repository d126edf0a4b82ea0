// SPDX-License-Identifier: Apache-2.0
// Matrix products: every variant that the device lists for a product, against the oracle; exactly
// where a product only moves numbers; and to the same bits whatever the batch.
#include "kits/gemm_kit.h"

#include <stdlib.h>
#include <string.h>

// ---- against the oracle ----

static const struct {
    enum grt_dtype in, out;
} types[] = {{GRT_F32, GRT_F32},
             {GRT_F16, GRT_F16},
             {GRT_BF16, GRT_BF16},
             {GRT_F16, GRT_F32},
             {GRT_BF16, GRT_F32}};
#define TYPE_COUNT (sizeof types / sizeof types[0])

// Smallest, primes, vectors, and around the tiles that kernels have, those of CPUs too, which are
// larger.
static const uint64_t shapes[][3] = {{1, 1, 1},      {17, 31, 13},  {1, 64, 33},     {37, 1, 19},
                                     {8, 9, 1},      {16, 16, 16},  {65, 129, 33},   {257, 64, 16},
                                     {128, 128, 64}, {64, 32, 128}, {384, 256, 192}, {72, 40, 2048},
                                     {3, 401, 270},  {401, 3, 270}, {3, 7, 1031}};
#define SHAPE_COUNT (sizeof shapes / sizeof shapes[0])

// Slow checkers see every 31st combination: each kernel a few times, on products of a few lines.
static bool left_out(size_t i) {
    return test.small && i % 31 != 0;
}

// Each type and transposition is a kernel to compile, slowly on CPU drivers: there f32 and f16 see
// every transposition and the others, which differ in conversions alone, one each.
static bool thinned(const struct product *p) {
    static const int only[TYPE_COUNT] = {-1, -1, 1, 2, 0};
    int trans = (p->a_transposed ? 1 : 0) + (p->b_transposed ? 2 : 0);
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        if (p->in == types[i].in && p->out == types[i].out) {
            return grt_dev_info(test.dev)->caps.software && only[i] >= 0 && only[i] != trans;
        }
    }
    return false;
}

static bool too_large(const uint64_t shape[3]) {
    uint64_t work = shape[0] * shape[1] * shape[2];
    bool software = grt_dev_info(test.dev)->caps.software != 0;
    return (test.small && work > 10000) || (software && work > 2000000);
}

static void every_shape(void **state) {
    (void)state;
    for (size_t s = 0; s < SHAPE_COUNT; s++) {
        for (size_t v = 0; v < TYPE_COUNT * 4; v++) {
            struct product p = {
                .m = shapes[s][0],
                .n = shapes[s][1],
                .k = shapes[s][2],
                .a_transposed = (v & 1) != 0,
                .b_transposed = (v & 2) != 0,
                .in = types[v / 4].in,
                .out = types[v / 4].out,
            };
            if (!too_large(shapes[s]) && !left_out(s + v) && !thinned(&p)) {
                product_check(&p);
            }
        }
    }
}

// One to four rows: columns that are no whole workgroup, and k of many rounds and a rest.
static void few_rows(void **state) {
    (void)state;
    for (size_t i = 0; i < (test.small ? 1 : 16); i++) {
        const size_t v = i % 4;
        const struct product p = {.m = 1 + i / 4,
                                  .n = 75,
                                  .k = test.small ? 589 : 1301,
                                  .batch = v == 3 ? 3 : 0,
                                  .b_shared = v == 3,
                                  .a_transposed = v == 1 || v == 3,
                                  .b_transposed = v >= 2,
                                  .alpha = 0.5f,
                                  .beta = v == 1 ? 2.0f : 0.0f,
                                  .bias = v != 2,
                                  .add = v == 2,
                                  .act = v == 2 ? GRT_ACT_RELU : GRT_ACT_NONE,
                                  .in = GRT_F32,
                                  .out = GRT_F32};
        product_check(&p);
    }
}

static void batches(void **state) {
    (void)state;
    static const uint64_t sizes[][4] = {{3, 17, 31, 13}, {1, 33, 16, 40}, {5, 64, 64, 32}};
    for (size_t v = 0; v < TYPE_COUNT * 3 * 4; v++) {
        const uint64_t *size = sizes[v / 4 % 3];
        struct product p = {
            .batch = size[0],
            .m = size[1],
            .n = size[2],
            .k = size[3],
            .a_shared = (v & 1) != 0,
            .b_shared = (v & 2) != 0,
            .a_transposed = v % 3 == 1,
            .b_transposed = v % 3 == 2,
            .in = types[v / 12].in,
            .out = types[v / 12].out,
        };
        if (!too_large(size + 1) && !left_out(v) && !thinned(&p)) {
            product_check(&p);
        }
    }
}

// More tiles than a GPU has places for, so that workgroups that stay take several, across matrices
// of a batch too: b of their own, of one tile of 64 x 64 or of many, and one b for all.
static void many_tiles(void **state) {
    (void)state;
    static const struct product rows[] = {
        {.m = 33000, .n = 72, .k = 136},
        {.m = 20000, .n = 256, .k = 32, .a_transposed = true, .b_transposed = true},
        {.batch = 300, .m = 100, .n = 72, .k = 40},
        {.batch = 150, .m = 70, .n = 200, .k = 208, .b_transposed = true},
        {.batch = 150, .m = 200, .n = 40, .k = 72, .b_shared = true, .bias = true},
        {.m = 4300, .n = 256, .k = 256},
        {.m = 70001, .n = 40, .k = 32},
    };
    bool few = test.small || grt_dev_info(test.dev)->caps.software;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct product p = rows[i];
        p.in = i % 2 ? GRT_BF16 : GRT_F16;
        p.out = i == 3 ? GRT_F32 : p.in;
        if (few) {
            p.m = test.small ? 5 : 70;
            p.k = test.small && p.k > 40 ? 40 : p.k;
            p.batch = p.batch ? 3 : 0;
        }
        if (!few || (i % 2 == 0 && !left_out(31 * i))) {
            product_check(&p);
        }
    }
}

// More rows, and more matrices, than Vulkan has workgroups on an axis: variants that would need
// them are not listed, and plain takes several to a workgroup.
static void beyond_the_grid(void **state) {
    (void)state;
    static const struct product rows[] = {
        {.m = 65541, .n = 3, .k = 2, .in = GRT_F32, .out = GRT_F32},
        {.batch = 65539, .m = 2, .n = 3, .k = 2, .in = GRT_F32, .out = GRT_F32},
    };
    for (size_t i = 0; !test.small && i < sizeof rows / sizeof rows[0]; i++) {
        product_check(&rows[i]);
    }
}

static void epilogues(void **state) {
    (void)state;
    static const struct product rows[] = {
        {.alpha = -0.5f},
        {.beta = 1.0f},
        {.alpha = 2.0f, .beta = -0.75f},
        {.bias = true},
        {.act = GRT_ACT_RELU},
        {.bias = true, .act = GRT_ACT_GELU},
        {.act = GRT_ACT_TANH, .alpha = 0.125f},
        {.add = true},
        {.grad_act = GRT_ACT_RELU},
        {.grad_act = GRT_ACT_GELU},
        {.grad_act = GRT_ACT_TANH},
        {.alpha = 0.25f,
         .beta = 0.5f,
         .bias = true,
         .act = GRT_ACT_GELU,
         .add = true,
         .grad_act = GRT_ACT_TANH},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] * TYPE_COUNT; i++) {
        struct product p = rows[i / TYPE_COUNT];
        p.in = types[i % TYPE_COUNT].in;
        p.out = types[i % TYPE_COUNT].out;
        p.m = 19;
        p.n = 37;
        p.k = 16;
        p.batch = i % 2 ? 2 : 0;
        // They differ in conversions alone: f32 sees every row, f16 some, the others the last.
        size_t every = p.in == GRT_F32 ? 1 : p.in == p.out && p.in == GRT_F16 ? 3 : 12;
        if ((i / TYPE_COUNT + 1) % every == 0 && !left_out(i)) {
            product_check(&p);
            // Rows of whole vectors, and more than one tile, for the kernels that want that.
            p.m = 70;
            p.n = 136;
            p.k = 64;
            if (p.in != GRT_F32 && !test.small) {
                product_check(&p);
            }
        }
    }
}

// k = 0: what follows the product is all there is.
static void without_product(void **state) {
    (void)state;
    static const struct product rows[] = {
        {.m = 7, .n = 5},
        {.m = 33, .n = 70, .beta = -0.5f, .bias = true, .act = GRT_ACT_RELU},
        {.m = 9, .n = 16, .batch = 3, .bias = true, .add = true, .grad_act = GRT_ACT_TANH},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] * 3; i++) {
        struct product p = rows[i / 3];
        p.in = p.out = types[i % 3].in;
        product_check(&p);
    }
}

// Sums that may be kept in half: where they are not, the result is only better.
static void sums_in_half(void **state) {
    (void)state;
    static const uint64_t sizes[][3] = {{17, 31, 13}, {64, 64, 64}, {136, 72, 96}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct product p = {
            .m = sizes[i][0], .n = sizes[i][1], .k = sizes[i][2], .half_sums = true};
        p.in = p.out = GRT_F16;
        p.bias = i == 2;
        if (!too_large(sizes[i])) {
            product_check(&p);
        }
    }
    // Of no meaning for the others.
    struct product p = {.m = 17, .n = 31, .k = 13, .in = GRT_F32, .out = GRT_F32};
    struct made x;
    made_begin(&x, &p);
    x.desc.half_sums = true;
    struct oracle_value *want = made_want(&x);
    void *got = made_run(&x, NULL);
    made_compare(&x, want, "any", got);
    free(got);
    free(want);
    made_end(&x);
}

// ---- exactly ----

// A matrix with a single 1 in each row and column: row i has it at i * step mod n. Multiplied with
// it, rows and columns change places and no number changes, whatever the order of the sums.
static void permutation(struct operand *o, uint64_t n, uint64_t step) {
    memset(o->value, 0, o->count * sizeof *o->value);
    for (uint64_t i = 0; i < o->count / n; i++) {
        o->value[i * n + i * step % n] = 1.0;
    }
    operand_write(o);
}

static void check_permutation(size_t type, uint64_t n, uint64_t step, bool first, bool transposed) {
    struct product p = {.m = n, .n = n, .k = n, .in = types[type].in, .out = GRT_F32};
    p.a_transposed = first && transposed;
    p.b_transposed = !first && transposed;
    if (thinned(&p)) {
        return;
    }
    struct made x;
    made_begin(&x, &p);
    permutation(first ? &x.a : &x.b, n, step);
    const double *other = first ? x.b.value : x.a.value;
    for (uint32_t v = 0; made_variant(&x, v); v++) {
        const char *name = made_variant(&x, v);
        if (variant_passed_over(v, name)) {
            continue;
        }
        float *got = made_run(&x, name);
        struct test_compare c =
            test_compare(test.dev, "gemm %s %s permutes %s of %llu by %llu%s", name,
                         grt_dtype_text(p.in), first ? "rows" : "columns", (unsigned long long)n,
                         (unsigned long long)step, transposed ? ", transposed" : "");
        for (uint64_t i = 0; i < n; i++) {
            uint64_t to = i * step % n;
            for (uint64_t j = 0; j < n; j++) {
                // Row i of P b is row `to` of b, and column `to` of a P is column i of a; with a
                // transposition the other way round.
                uint64_t here = transposed == first ? to : i;
                uint64_t there = transposed == first ? i : to;
                uint64_t at = first ? here * n + j : j * n + here;
                uint64_t want = first ? there * n + j : j * n + there;
                test_compare_exact(&c, at, (double)got[at], other[want]);
            }
        }
        test_compare_end(&c);
        free(got);
    }
    made_end(&x);
}

static void permutations(void **state) {
    (void)state;
    static const uint64_t sizes[][2] = {{16, 1}, {37, 5}, {67, 3}};  // the first is the identity
    for (size_t i = 0; i < 3 * 3 * 4; i++) {
        const uint64_t *size = sizes[i / 4 % 3];
        if (!left_out(i) && (!test.small || size[0] < 64)) {
            check_permutation(i / 12, size[0], size[1], (i & 1) != 0, (i & 2) != 0);
        }
    }
}

// ---- tiny products ----

static bool has_variant(uint64_t batch, uint64_t m, uint64_t n, const char *variant) {
    struct grt_tensor a = {.dtype = GRT_F32, .rank = 3, .shape = {batch, m, 8}};
    struct grt_tensor b = {.dtype = GRT_F32, .rank = 3, .shape = {batch, 8, n}};
    struct grt_tensor c = {.dtype = GRT_F32, .rank = 3, .shape = {batch, m, n}};
    const struct grt_gemm_desc desc = {.a = &a, .b = &b, .c = &c, .variant = variant};
    return grt_gemm_variant(test.dev, &desc, 0) != NULL;
}

// Several to a workgroup, for every batch of matrices up to 64 x 64.
static void tiny_products(void **state) {
    (void)state;
    uint32_t lanes = grt_dev_info(test.dev)->caps.max_wg;
    assert_true(lanes < 128 || has_variant(5, 16, 16, "tiny"));
    assert_true(lanes < 128 || has_variant(2, 64, 64, "tiny"));
    assert_false(has_variant(1, 16, 16, "tiny"));
    assert_false(has_variant(5, 65, 16, "tiny"));
    assert_false(has_variant(5, 16, 65, "tiny"));
}

// ---- kernels that Vulkan imports ----

// Whether OpenCL knows the device under test, too, so that there is a compiler for PTX.
static bool has_twin(const struct grt_dev_info *info) {
    struct grt_dev_list *list = grt_dev_list_create();
    bool found = false;
    assert_non_null(list);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct grt_dev_info *other = &list->devices[i];
        found =
            found || (other->backend == GRT_BACKEND_OPENCL && strcmp(other->name, info->name) == 0);
    }
    grt_dev_list_destroy(&list);
    return found;
}

static bool is_best(enum grt_dtype type, uint64_t m, uint64_t n, uint64_t k, const char *variant) {
    struct grt_tensor a = {.dtype = type, .rank = 2, .shape = {m, k}};
    struct grt_tensor b = {.dtype = type, .rank = 2, .shape = {k, n}};
    struct grt_tensor c = {.dtype = type, .rank = 2, .shape = {m, n}};
    const struct grt_gemm_desc desc = {.a = &a, .b = &b, .c = &c};
    const char *best = grt_gemm_variant(test.dev, &desc, 0);
    assert_non_null(best);
    return strcmp(best, variant) == 0;
}

// Large and tall products are theirs on a Hopper that Vulkan and OpenCL have, and nowhere else.
// A simulator of OpenCL takes 15 to 20 s to try all variants of a product.
static bool simulated(void) {
    return test.small && grt_dev_info(test.dev)->backend == GRT_BACKEND_OPENCL;
}

static void imported_products(void **state) {
    (void)state;
    const struct grt_dev_info *info = grt_dev_info(test.dev);
    if (simulated()) {
        return;
    }
    bool hopper = strstr(info->name, "H100") || strstr(info->name, "H200");
    bool imports = info->caps.imports && hopper && has_twin(info);
    assert_true(!info->caps.imports || info->backend == GRT_BACKEND_VULKAN);
    if (info->caps.bf16 || imports) {
        assert_int_equal(is_best(GRT_BF16, 4096, 4096, 4096, "wgmma"), imports);
        assert_int_equal(is_best(GRT_BF16, 65536, 256, 256, "wgmma_b_shared"), imports);
    }
    // The same kernel on both APIs, for small products too.
    bool split = imports || (hopper && info->backend == GRT_BACKEND_OPENCL);
    assert_int_equal(is_best(GRT_F32, 4096, 4096, 4096, "split_wgmma"), split);
    assert_int_equal(is_best(GRT_F32, 512, 512, 512, "split_wgmma"), split);
    assert_false(!info->caps.imports && info->backend == GRT_BACKEND_VULKAN &&
                 has_variant(2, 64, 64, "wgmma_48k"));
}

// ---- batches do not matter ----

// A part of an operand of a batch, as an operand of its own.
static struct operand part_of(const struct operand *o, uint64_t z) {
    const uint64_t *shape = o->t.tensor.shape;
    struct operand part = operand(o->t.tensor.dtype, 0, shape[1], shape[2]);
    memcpy(part.value, o->value + z * part.count, part.count * sizeof *part.value);
    operand_write(&part);
    return part;
}

static void check_split(const struct product *p) {
    struct made x;
    made_begin(&x, p);
    struct product single = *p;
    single.batch = 0;
    for (uint32_t v = 0; made_variant(&x, v); v++) {
        const char *name = made_variant(&x, v);
        unsigned char *whole = made_run(&x, name);
        for (uint64_t z = 0; z < p->batch; z++) {
            struct made y = {.p = &single, .desc = x.desc};
            y.a = part_of(&x.a, z);
            y.b = part_of(&x.b, z);
            y.c = part_of(&x.c, z);
            y.desc.a = &y.a.t.tensor;
            y.desc.b = &y.b.t.tensor;
            y.desc.c = &y.c.t.tensor;
            y.desc.variant = name;
            // A variant may be for batches alone.
            if (grt_gemm_variant(test.dev, &y.desc, 0)) {
                void *alone = made_run(&y, name);
                test_same(test.dev, "gemm of a batch and alone", whole + z * y.c.t.bytes, alone,
                          grt_dtype_size(p->out), y.c.count);
                free(alone);
            }
            made_end(&y);
        }
        free(whole);
    }
    made_end(&x);
}

static void batch_split(void **state) {
    (void)state;
    for (size_t type = 0; type < (test.small ? 1 : TYPE_COUNT); type++) {
        struct product p = {.batch = 6, .m = 33, .n = 20, .k = 47};
        if (test.small) {
            p = (struct product){.batch = 2, .m = 9, .n = 5, .k = 7};
        }
        p.in = types[type].in;
        p.out = types[type].out;
        p.a_transposed = type == 2;
        p.b_transposed = type == 3;
        check_split(&p);
    }
}

// ---- what must be refused ----

static void refuse(const struct grt_gemm_desc *desc, enum grt_status status, const char *part) {
    struct grt_graph *graph = grt_graph_create(test.dev, "bad gemm");
    assert_non_null(graph);
    grt_op_gemm(graph, desc);
    TEST_REFUSED(grt_graph_bake(graph), status, part);
    grt_graph_destroy(&graph);
}

static void refusals(void **state) {
    (void)state;
    struct product p = {
        .m = 4, .n = 6, .k = 8, .bias = true, .add = true, .grad_act = GRT_ACT_RELU};
    struct made x;
    made_begin(&x, &p);
    struct operand half = random_operand(GRT_F16, 0, 8, 6, 1);
    struct operand wide = random_operand(GRT_F32, 0, 8, 7, 1);
    struct operand three = random_operand(GRT_F32, 3, 8, 6, 1);
    struct operand four = random_operand(GRT_F32, 4, 4, 6, 1);
    struct test_tensor flat = test_tensor(test.dev, GRT_F32, 24, 0);
    struct test_tensor whole = test_tensor(test.dev, GRT_U32, 4, 6);
    struct grt_tensor nowhere = x.b.t.tensor;
    nowhere.range.buf = NULL;
    struct grt_tensor tight = x.b.t.tensor;
    tight.range.size = grt_tensor_bytes(&tight) - 4;
    struct grt_tensor empty = x.b.t.tensor;
    empty.shape[0] = 0;
    const struct {
        size_t field;
        const struct grt_tensor *tensor;
        const char *part;
    } rows[] = {
#define WITH(field, tensor, part) {offsetof(struct grt_gemm_desc, field), tensor, part}
        WITH(b, &wide.t.tensor, "shapes do not fit"),
        WITH(c, &wide.t.tensor, "shapes do not fit"),
        WITH(b, &half.t.tensor, "both be f32, f16 or bf16"),
        WITH(c, &whole.tensor, "type of a and b, or be f32"),
        WITH(a, &flat.tensor, "two axes"),
        WITH(c, &flat.tensor, "two axes"),
        WITH(b, &three.t.tensor, "batches differ"),
        WITH(bias, &flat.tensor, "bias must be n numbers"),
        WITH(bias, &half.t.tensor, "bias must be n numbers"),
        WITH(add, &four.t.tensor, "type and shape of c"),
        WITH(add, &half.t.tensor, "type and shape of c"),
        WITH(saved, &wide.t.tensor, "type and shape of c"),
        WITH(saved, NULL, "go together"),
        WITH(a, NULL, "no tensor a"),
        WITH(b, &nowhere, "not allocated"),
        WITH(b, &empty, "no elements"),
        WITH(b, &tight, "has 192 bytes, its range 188"),
        WITH(a, &x.c.t.tensor, "shapes do not fit"),
#undef WITH
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct grt_gemm_desc desc = x.desc;
        *(const struct grt_tensor **)((char *)&desc + rows[i].field) = rows[i].tensor;
        refuse(&desc, GRT_INVALID, rows[i].part);
    }
    // c where another operand lies.
    struct grt_tensor onto = x.c.t.tensor;
    onto.range = x.b.t.tensor.range;
    struct grt_gemm_desc desc = x.desc;
    desc.c = &onto;
    refuse(&desc, GRT_INVALID, "overlaps binding");
    desc = x.desc;
    desc.grad_act = GRT_ACT_NONE;
    refuse(&desc, GRT_INVALID, "go together");
    assert_null(grt_gemm_variant(test.dev, &desc, 0));
    assert_null(grt_gemm_variant(test.dev, NULL, 0));
    assert_null(grt_gemm_variant(NULL, &x.desc, 0));
    desc = x.desc;
    desc.act = (enum grt_act)99;
    refuse(&desc, GRT_INVALID, "no such activation");
    desc = x.desc;
    desc.variant = "turbo";
    refuse(&desc, GRT_UNSUPPORTED, "no variant 'turbo'");
    refuse(NULL, GRT_INVALID, "no desc");
    assert_string_equal(grt_act_text((enum grt_act)99), "unknown activation");
    operand_end(&half);
    operand_end(&wide);
    operand_end(&three);
    operand_end(&four);
    test_tensor_end(&flat);
    test_tensor_end(&whole);
    made_end(&x);
    test_usable(test.dev);
}

// What no device has memory for can be asked about all the same, whichever sizes wrap around.
static void endless_products(void **state) {
    (void)state;
    for (uint64_t less = 0; less < 64 && !simulated(); less += 21) {
        struct grt_tensor a = {.dtype = GRT_F32, .rank = 2, .shape = {4, 192}};
        struct grt_tensor b = {.dtype = GRT_F32, .rank = 2, .shape = {192, UINT32_MAX - less}};
        struct grt_tensor c = {.dtype = GRT_F32, .rank = 2, .shape = {4, UINT32_MAX - less}};
        struct grt_gemm_desc desc = {.a = &a, .b = &b, .c = &c, .alpha = 1.0f};
        bool any = false;
        for (uint32_t i = 0; grt_gemm_variant(test.dev, &desc, i); i++) {
            any = true;
        }
        assert_true(any);
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(every_shape),       TEST_CASE(few_rows),         TEST_CASE(batches),
    TEST_CASE(many_tiles),        TEST_CASE(beyond_the_grid),  TEST_CASE(epilogues),
    TEST_CASE(without_product),   TEST_CASE(sums_in_half),     TEST_CASE(permutations),
    TEST_CASE(batch_split),       TEST_CASE(refusals),         TEST_CASE(tiny_products),
    TEST_CASE(imported_products), TEST_CASE(endless_products),
};
TEST_SUITE(gemm, true, cases);
