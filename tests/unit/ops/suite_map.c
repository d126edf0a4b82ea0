// SPDX-License-Identifier: Apache-2.0
// Maps: every row of GRT_MAPS, over every size of the list, against the oracle and, bit for bit,
// against the C reading; in place, the result is the one of separate operands.
#include "harness/harness.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t sizes[] = {1, 2, 3, 63, 64, 65, 255, 256, 257, 1000003};
#define SIZE_COUNT (sizeof sizes / sizeof sizes[0])

// ---- operands ----

// Numbers the map is meant for. Everything else is in special_values.
static float operand(enum grt_map map, uint64_t *state) {
    uint32_t draw = test_next(state) % 4;
    switch (map) {
    case GRT_MAP_EXP:
        return (float)(test_unit(state) * 174.0 - 86.5);
    case GRT_MAP_LOG:  // near 1 the result is near 0
        return draw == 0 ? (float)(1.0 + (test_unit(state) - 0.5) * 0.01)
                         : fabsf(test_float(state, TEST_WIDE)) + 0x1p-70f;
    case GRT_MAP_SQRT:
        return fabsf(test_float(state, TEST_WIDE));
    case GRT_MAP_TANH:
    case GRT_MAP_SIGMOID:
    case GRT_MAP_GELU:
        return draw == 0   ? (float)(test_unit(state) * 40.0 - 20.0)
               : draw == 1 ? test_float(state, TEST_WIDE)
                           : 2.0f * test_float(state, TEST_PLAIN);
    default:
        return test_float(state, TEST_WIDE);
    }
}

static float *operands(enum grt_map map, uint64_t seed, size_t count) {
    float *data = test_alloc(count * sizeof *data);
    uint64_t state = seed * 0x9e3779b97f4a7c15 + 3;
    for (size_t i = 0; i < count; i++) {
        data[i] = operand(map, &state);
    }
    return data;
}

// ---- one case ----

struct map_case {
    enum grt_map map;
    float alpha, beta;
    size_t count;
    const float *a, *b;
};

struct recorded {
    const struct grt_map_desc *desc;
};

static void record(struct grt_graph *graph, void *context) {
    const struct recorded *r = context;
    grt_op_map(graph, r->desc);
}

static struct grt_map_desc desc_of(const struct map_case *c) {
    return (struct grt_map_desc){.map = c->map, .alpha = c->alpha, .beta = c->beta};
}

static float *run(struct grt_dev *dev, const struct map_case *c) {
    bool two = grt_map_arity(c->map) == 2;
    struct test_tensor a = test_tensor(dev, GRT_F32, c->count, 0);
    struct test_tensor b = test_tensor(dev, GRT_F32, two ? c->count : 1, 0);
    struct test_tensor y = test_tensor(dev, GRT_F32, c->count, 0);
    test_tensor_write(&a, c->a);
    if (two) {
        test_tensor_write(&b, c->b);
    }
    struct grt_map_desc desc = desc_of(c);
    desc.y = &y.tensor;
    desc.a = &a.tensor;
    desc.b = two ? &b.tensor : NULL;
    struct recorded r = {&desc};
    float *result = test_run_filled(&y, record, &r);
    float *after = test_alloc(a.bytes);
    test_tensor_read(&a, after);
    assert_true(memcmp(after, c->a, a.bytes) == 0);
    free(after);
    test_tensor_end(&a);
    test_tensor_end(&b);
    test_tensor_end(&y);
    return result;
}

// y is operand a (which 1), b (2) or both (3).
static float *run_in_place(struct grt_dev *dev, const struct map_case *c, int which) {
    struct test_tensor y = test_tensor(dev, GRT_F32, c->count, 0);
    struct test_tensor other = test_tensor(dev, GRT_F32, c->count, 0);
    test_tensor_write(&y, which == 2 ? c->b : c->a);
    if (grt_map_arity(c->map) == 2) {
        test_tensor_write(&other, which == 2 ? c->a : c->b);
    }
    struct grt_map_desc desc = desc_of(c);
    desc.y = &y.tensor;
    desc.a = which == 2 ? &other.tensor : &y.tensor;
    desc.b = which == 1 ? &other.tensor : &y.tensor;
    struct recorded r = {&desc};
    test_run(dev, record, &r);
    float *result = test_alloc(y.bytes);
    test_tensor_read(&y, result);
    test_tensor_end(&y);
    test_tensor_end(&other);
    return result;
}

static void check(const struct map_case *c) {
    const char *name = grt_map_text(c->map);
    bool defaults = c->alpha == 0 && c->beta == 0;
    double alpha = defaults && c->map != GRT_MAP_CLAMP ? 1 : (double)c->alpha;
    double beta = defaults ? (c->map == GRT_MAP_ADD ? 1 : 0) : (double)c->beta;
    float *got = run(test.dev, c);
    struct test_compare compare = test_compare(test.dev, "map %s of %zu", name, c->count);
    for (size_t i = 0; i < c->count; i++) {
        double b = c->b ? (double)c->b[i] : 0;
        struct oracle_value want = oracle_map(name, (double)c->a[i], b, alpha, beta);
        test_compare_value(&compare, i, got[i], want);
    }
    test_compare_end(&compare);
    if (!test.on_ref) {
        float *ref = run(test.ref, c);
        char what[64];
        snprintf(what, sizeof what, "map %s of %zu, ref", name, c->count);
        test_same_floats(test.dev, what, got, ref, c->count);
        free(ref);
    }
    for (int which = 1; c->count < 1000 && which <= (c->b ? 2 : 1); which++) {
        float *in_place = run_in_place(test.dev, c, which);
        test_same(test.dev, "map in place", in_place, got, 4, c->count);
        free(in_place);
    }
    free(got);
}

static void check_map(enum grt_map map, float alpha, float beta, size_t count) {
    float *a = operands(map, count, count);
    float *b = grt_map_arity(map) == 2 ? operands(map, count + 7, count) : NULL;
    struct map_case c = {map, alpha, beta, count, a, b};
    check(&c);
    free(a);
    free(b);
}

static void every_map(void **state) {
    (void)state;
    for (int map = 0; map < GRT_MAP_COUNT; map++) {
        for (size_t i = 0; i < SIZE_COUNT; i++) {
            if (!test.small || sizes[i] == 65) {
                check_map((enum grt_map)map, map == GRT_MAP_CLAMP ? -0.75f : 1.75f,
                          map == GRT_MAP_CLAMP ? 0.5f : -0.3f, sizes[i]);
            }
        }
    }
}

static void default_factors(void **state) {
    (void)state;
    check_map(GRT_MAP_SCALE, 0, 0, 65);
    check_map(GRT_MAP_ADD, 0, 0, 65);
    check_map(GRT_MAP_SCALE, 0, 2.5f, 65);
    check_map(GRT_MAP_ADD, 0, -1, 65);
    check_map(GRT_MAP_CLAMP, 0, 0, 65);
}

// ---- the ends of the range ----

// The smallest normal and the largest float, for all but division, which promises less there.
static void special_values(void **state) {
    (void)state;
    const float values[] = {0.0f,    -0.0f,    1.0f, -1.0f,   INFINITY,
                            FLT_MAX, -FLT_MAX, NAN,  FLT_MIN, -INFINITY};
    enum { COUNT = 10 };
    for (int map = 0; map < GRT_MAP_COUNT; map++) {
        float a[COUNT * COUNT];
        float b[COUNT * COUNT];
        size_t count = 0;
        bool two = grt_map_arity((enum grt_map)map) == 2;
        for (int i = 0; i < COUNT; i++) {
            for (int k = 0; k < (two ? COUNT : 1); k++) {
                bool ends = fabsf(values[i]) == FLT_MAX || fabsf(values[k]) == FLT_MAX ||
                            values[i] == FLT_MIN || values[k] == FLT_MIN;
                bool nan = isnan(values[i]) || isnan(values[k]);
                // What the smaller or larger of a number and NaN is, nobody promises.
                bool open = (map == GRT_MAP_DIV && ends) ||
                            ((map == GRT_MAP_MIN || map == GRT_MAP_MAX) && nan);
                a[count] = values[i];
                b[count] = values[k];
                count += open ? 0 : 1;
            }
        }
        bool clamp = map == GRT_MAP_CLAMP;
        struct map_case c = {(enum grt_map)map, clamp ? -2.0f : 1.0f, clamp ? 2.0f : 1.0f, count, a,
                             two ? b : NULL};
        check(&c);
    }
}

static void both_operands_in_place(void **state) {
    (void)state;
    float *a = operands(GRT_MAP_MUL, 3, 257);
    for (int map = 0; map < GRT_MAP_COUNT; map++) {
        if (grt_map_arity((enum grt_map)map) == 2) {
            struct map_case c = {(enum grt_map)map, 0.5f, 0.25f, 257, a, a};
            float *apart = run(test.dev, &c);
            float *in_place = run_in_place(test.dev, &c, 3);
            test_same(test.dev, "map y = f(y, y)", in_place, apart, 4, 257);
            free(apart);
            free(in_place);
        }
    }
    free(a);
}

static void refusals(void **state) {
    (void)state;
    struct test_tensor f = test_tensor(test.dev, GRT_F32, 1024, 0);
    struct test_tensor h = test_tensor(test.dev, GRT_F16, 1024, 0);
    struct test_tensor shorter = test_tensor(test.dev, GRT_F32, 1023, 0);
    struct grt_tensor empty = f.tensor;
    empty.shape[0] = 0;
    struct grt_tensor low = f.tensor;
    struct grt_tensor high = f.tensor;
    low.shape[0] = high.shape[0] = 768;
    low.range.size = high.range.size = 768 * 4;
    high.range.offset += 1024;  // half of it is half of the other
    const struct grt_map_desc rows[] = {
        {.map = GRT_MAP_ABS, .y = &f.tensor, .a = &h.tensor},
        {.map = GRT_MAP_ABS, .y = &f.tensor, .a = &shorter.tensor},
        {.map = GRT_MAP_ABS, .y = &f.tensor},
        {.map = GRT_MAP_ABS, .a = &f.tensor},
        {.map = GRT_MAP_ABS, .y = &empty, .a = &empty},
        {.map = GRT_MAP_ABS, .y = &low, .a = &high},
        {.map = GRT_MAP_ADD, .y = &f.tensor, .a = &f.tensor},
        {.map = GRT_MAP_ADD, .y = &f.tensor, .a = &f.tensor, .b = &shorter.tensor},
        {.map = (enum grt_map)99, .y = &f.tensor, .a = &f.tensor},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct grt_graph *graph = grt_graph_create(test.dev, "bad map");
        grt_op_map(graph, &rows[i]);
        TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "bad map");
        grt_graph_destroy(&graph);
    }
    struct grt_graph *graph = grt_graph_create(test.dev, "no desc");
    grt_op_map(graph, NULL);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "desc");
    grt_graph_destroy(&graph);
    test_tensor_end(&f);
    test_tensor_end(&h);
    test_tensor_end(&shorter);
    test_usable(test.dev);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(every_map),      TEST_CASE(default_factors),
    TEST_CASE(special_values), TEST_CASE(both_operands_in_place),
    TEST_CASE(refusals),
};
TEST_SUITE(map, true, cases);
