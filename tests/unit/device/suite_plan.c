// SPDX-License-Identifier: Apache-2.0
// Tensor plans: what they cost is known before, and is what they take.
#include "harness/harness.h"

#include <string.h>

#include "backends/backend.h"

static struct grt_plan *plan_create(struct grt_dev *dev) {
    struct grt_plan *plan = grt_plan_create(dev);
    assert_non_null(plan);
    return plan;
}

static struct grt_tensor *declare(struct grt_plan *plan, const struct grt_tensor_desc *desc) {
    struct grt_tensor *tensor = grt_plan_tensor(plan, desc);
    assert_non_null(tensor);
    return tensor;
}

static void shapes_and_sizes(void **state) {
    (void)state;
    static const struct {
        uint64_t shape[GRT_MAX_RANK];
        uint64_t count, bytes;
        enum grt_dtype dtype;
        uint32_t rank;
    } rows[] = {
        {{0}, 1, 4, GRT_F32, 0},
        {{7}, 7, 28, GRT_F32, 1},
        {{7}, 7, 14, GRT_F16, 1},
        {{3, 5}, 15, 30, GRT_BF16, 2},
        {{2, 3, 4}, 24, 96, GRT_U32, 3},
        {{2, 3, 4, 5}, 120, 120, GRT_I8, 4},
        {{1}, 1, 1, GRT_U8, 1},
        {{0}, 1, 2, GRT_F16, 0},
        {{1, 1, 1, 9}, 9, 36, GRT_I32, 4},
    };
    struct grt_plan *plan = plan_create(test.dev);
    struct grt_tensor *tensors[sizeof rows / sizeof rows[0]];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct grt_tensor_desc desc = {.label = "t", .dtype = rows[i].dtype};
        memcpy(desc.shape, rows[i].shape, sizeof desc.shape);
        tensors[i] = declare(plan, &desc);
        assert_null(tensors[i]->range.buf);
        assert_int_equal(tensors[i]->rank, rows[i].rank);
        assert_int_equal(grt_tensor_count(tensors[i]), rows[i].count);
        assert_int_equal(grt_tensor_bytes(tensors[i]), rows[i].bytes);
    }
    assert_true(grt_plan_alloc(plan));
    uint32_t align = grt_dev_info(test.dev)->caps.align;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct grt_range *range = &tensors[i]->range;
        assert_non_null(range->buf);
        assert_int_equal(range->offset % align, 0);
        assert_int_equal(range->size, rows[i].bytes);
        assert_in_range(range->offset + range->size, 1, grt_buf_size(range->buf));
        // Packed in the order of declaration, without overlap.
        if (i > 0) {
            const struct grt_range *last = &tensors[i - 1]->range;
            assert_in_range(range->offset, last->offset + last->size,
                            last->offset + last->size + (align > 16 ? align : 16));
        }
    }
    grt_plan_destroy(&plan);
    assert_null(plan);
}

static void bytes_before_are_bytes_after(void **state) {
    (void)state;
    struct grt_mem_use before = grt_dev_mem_use(test.dev, NULL);
    struct grt_plan *plan = plan_create(test.dev);
    for (uint64_t i = 1; i < 20; i++) {
        declare(plan, grt_tensor_desc(.label = "w", .group = "params", .shape = {i, 2 * i + 1}));
        declare(plan, grt_tensor_desc(.label = "x", .dtype = GRT_F16, .shape = {i * i}));
    }
    uint64_t params = grt_plan_bytes(plan, "params");
    uint64_t rest = grt_plan_bytes(plan, "tensors");
    assert_true(params > 0 && rest > 0);
    assert_int_equal(grt_plan_bytes(plan, NULL), params + rest);
    assert_int_equal(grt_plan_bytes(plan, "no such group"), 0);
    assert_int_equal(grt_dev_mem_use(test.dev, NULL).current, before.current);
    assert_true(grt_plan_alloc(plan));
    assert_int_equal(grt_dev_mem_use(test.dev, NULL).current, before.current + params + rest);
    assert_int_equal(grt_dev_mem_use(test.dev, "params").current, params);
    assert_int_equal(grt_dev_mem_use(test.dev, "tensors").current, rest);
    TEST_REFUSED(grt_plan_alloc(plan), GRT_INVALID, "twice");
    grt_plan_destroy(&plan);
    assert_int_equal(grt_dev_mem_use(test.dev, NULL).current, before.current);
}

// Element i of one group meets element i of the other: an optimizer is one kernel over two ranges.
static void groups_run_parallel(void **state) {
    (void)state;
    struct grt_plan *plan = plan_create(test.dev);
    enum { COUNT = 6 };
    struct grt_tensor *w[COUNT];
    struct grt_tensor *g[COUNT];
    for (uint64_t i = 0; i < COUNT; i++) {
        w[i] = declare(plan, grt_tensor_desc(.group = "params", .shape = {3 * i + 1, 5}));
        declare(plan, grt_tensor_desc(.group = "acts", .shape = {7 * i + 1}));
        g[i] = declare(plan, grt_tensor_desc(.group = "grads", .shape = {3 * i + 1, 5}));
    }
    assert_null(grt_plan_group(plan, "params").buf);
    assert_true(grt_plan_alloc(plan));
    struct grt_range params = grt_plan_group(plan, "params");
    struct grt_range grads = grt_plan_group(plan, "grads");
    assert_true(params.buf && grads.buf && params.buf != grads.buf);
    assert_int_equal(params.size, grads.size);
    assert_int_equal(params.size, grt_plan_bytes(plan, "params"));
    for (int i = 0; i < COUNT; i++) {
        assert_ptr_equal(w[i]->range.buf, params.buf);
        assert_ptr_equal(g[i]->range.buf, grads.buf);
        assert_int_equal(w[i]->range.offset - params.offset, g[i]->range.offset - grads.offset);
        assert_in_range(w[i]->range.offset + w[i]->range.size, 1, params.offset + params.size);
    }
    assert_null(grt_plan_group(plan, "no such group").buf);
    assert_null(grt_plan_group(plan, NULL).buf);
    grt_plan_destroy(&plan);
}

static void refused_with_numbers(void **state) {
    (void)state;
    struct grt_dev *dev = grt_dev_create(
        grt_dev_desc(.device = grt_dev_info(test.dev)->selector, .mem_limit = 8000000));
    assert_non_null(dev);
    struct grt_plan *plan = plan_create(dev);
    declare(plan, grt_tensor_desc(.group = "small", .shape = {1000000}));
    declare(plan, grt_tensor_desc(.group = "large", .shape = {2000000}));
    TEST_REFUSED(grt_plan_alloc(plan), GRT_NO_MEMORY, "12.0 MB");
    assert_non_null(strstr(grt_last_error(), "8.0 MB"));
    assert_int_equal(grt_dev_mem_use(dev, NULL).current, 0);
    assert_int_equal(grt_dev_mem_use(dev, NULL).peak, 0);
    grt_plan_destroy(&plan);
    // More bytes than there are numbers for.
    plan = plan_create(dev);
    for (int i = 0; i < 4; i++) {
        declare(plan, grt_tensor_desc(.dtype = GRT_U8, .shape = {(uint64_t)1 << 62}));
    }
    TEST_REFUSED(grt_plan_alloc(plan), GRT_NO_MEMORY, "MB");
    assert_int_equal(grt_dev_mem_use(dev, NULL).current, 0);
    grt_plan_destroy(&plan);
    // One tensor that no buffer of the device holds; two that only together are too large.
    dev->info.caps.max_buffer = 3 << 20;
    plan = plan_create(dev);
    declare(plan, grt_tensor_desc(.label = "left wing", .shape = {700000}));
    declare(plan, grt_tensor_desc(.label = "right wing", .shape = {700000}));
    assert_true(grt_plan_alloc(plan));
    grt_plan_destroy(&plan);
    plan = plan_create(dev);
    declare(plan, grt_tensor_desc(.label = "left wing", .shape = {700000}));
    declare(plan, grt_tensor_desc(.label = "fuselage", .shape = {800000}));
    TEST_REFUSED(grt_plan_alloc(plan), GRT_NO_MEMORY, "tensor 'fuselage' takes 3.2 MB, and ");
    assert_non_null(strstr(grt_last_error(), "at most 3.1 MB; use smaller batches or layers"));
    assert_int_equal(grt_dev_mem_use(dev, NULL).current, 0);
    grt_plan_destroy(&plan);
    test_usable(dev);
    grt_dev_destroy(&dev);
}

static void mistake(const struct grt_tensor_desc *desc, const char *part) {
    struct grt_plan *plan = plan_create(test.dev);
    declare(plan, grt_tensor_desc(.label = "good", .shape = {4}));
    struct grt_tensor *bad = declare(plan, desc);
    assert_int_equal(grt_tensor_count(bad), 0);
    declare(plan, grt_tensor_desc(.label = "another", .dtype = (enum grt_dtype)99));
    // The first mistake is the one told, and nothing is taken.
    struct grt_mem_use before = grt_dev_mem_use(test.dev, NULL);
    TEST_REFUSED(grt_plan_alloc(plan), GRT_INVALID, part);
    assert_int_equal(grt_dev_mem_use(test.dev, NULL).current, before.current);
    grt_plan_destroy(&plan);
}

static void mistakes_stick(void **state) {
    (void)state;
    mistake(grt_tensor_desc(.label = "hole", .shape = {4, 0, 4}), "hole");
    mistake(grt_tensor_desc(.label = "hole", .shape = {0, 4}), "hole");
    mistake(grt_tensor_desc(.label = "odd", .dtype = (enum grt_dtype)99, .shape = {4}), "odd");
    mistake(grt_tensor_desc(.label = "vast", .shape = {UINT64_MAX, 2}), "vast");
    mistake(grt_tensor_desc(.label = "vast", .shape = {1u << 31, 1u << 31, 1u << 31}), "vast");
    mistake(grt_tensor_desc(.label = "vast", .shape = {UINT64_MAX}), "vast");

    struct grt_plan *plan = plan_create(test.dev);
    declare(plan, grt_tensor_desc(.shape = {4}));
    assert_true(grt_plan_alloc(plan));
    struct grt_tensor *late = declare(plan, grt_tensor_desc(.label = "late", .shape = {4}));
    assert_int_equal(grt_tensor_count(late), 0);
    grt_plan_destroy(&plan);

    TEST_REFUSED(grt_plan_create(NULL), GRT_INVALID, "device");
    TEST_REFUSED(grt_plan_alloc(NULL), GRT_INVALID, "plan");
    TEST_REFUSED(grt_plan_tensor(NULL, grt_tensor_desc(.shape = {4})), GRT_INVALID, "plan");
    plan = plan_create(test.dev);
    TEST_REFUSED(grt_plan_tensor(plan, NULL), GRT_INVALID, "desc");
    grt_plan_destroy(&plan);
    grt_plan_destroy(&plan);
    grt_plan_destroy(NULL);
    assert_int_equal(grt_plan_bytes(NULL, NULL), 0);
    assert_int_equal(grt_tensor_count(NULL), 0);
    assert_int_equal(grt_tensor_bytes(NULL), 0);
}

// A plan without tensors is no mistake.
static void empty_plan(void **state) {
    (void)state;
    struct grt_plan *plan = plan_create(test.dev);
    assert_int_equal(grt_plan_bytes(plan, NULL), 0);
    assert_true(grt_plan_alloc(plan));
    grt_plan_destroy(&plan);
}

// Tensors of a plan serve as operands, and keep apart.
static void tensors_keep_apart(void **state) {
    (void)state;
    enum { COUNT = 9 };
    struct grt_plan *plan = plan_create(test.dev);
    struct grt_tensor *tensors[COUNT];
    for (uint64_t i = 0; i < COUNT; i++) {
        tensors[i] = declare(plan, grt_tensor_desc(.shape = {2 * i + 1}));
    }
    assert_true(grt_plan_alloc(plan));
    struct grt_graph *graph = grt_graph_create(test.dev, "plan");
    for (int i = COUNT - 1; i >= 0; i -= 1) {
        grt_op_fill(graph, tensors[i], (float)i + 1);
    }
    assert_true(grt_graph_finish(graph));
    assert_int_equal(grt_graph_stats(graph).barriers, 0);
    grt_graph_destroy(&graph);
    for (int i = 0; i < COUNT; i++) {
        float got[2 * COUNT];
        assert_true(grt_buf_read(tensors[i]->range.buf, tensors[i]->range.offset, got,
                                 tensors[i]->range.size));
        for (int k = 0; k < 2 * i + 1; k++) {
            assert_true(got[k] == (float)i + 1);
        }
    }
    grt_plan_destroy(&plan);
}

// Sets of tensors that lie in one place, a set in a set too; what is kept besides them does not.
static void shared(void **state) {
    (void)state;
    struct grt_plan *plan = grt_plan_create(test.dev);
    assert_non_null(plan);
    const struct grt_tensor *t[7];
#define TENSOR(i, group_, n)                                                                       \
    t[i] = grt_plan_tensor(plan, grt_tensor_desc(.label = "t", .group = group_, .shape = {n}))
    struct grt_plan_share outer = grt_plan_share_begin(plan, "wings");
    TENSOR(0, "wings", 1000);
    struct grt_plan_share inner = grt_plan_share_begin(plan, "wings");
    TENSOR(1, "wings", 300);
    grt_plan_share_next(plan, &inner);
    TENSOR(2, "wings", 700);
    grt_plan_share_end(plan, &inner);
    TENSOR(3, "wings", 10);
    grt_plan_share_next(plan, &outer);
    TENSOR(4, "wings", 500);
    TENSOR(5, "tail", 500);
    grt_plan_share_end(plan, &outer);
    TENSOR(6, "wings", 20);
#undef TENSOR
    struct grt_plan_share none = grt_plan_share_begin(plan, "nothing");
    grt_plan_share_next(plan, &none);
    grt_plan_share_end(plan, &none);
    assert_true(grt_plan_alloc(plan));
    for (uint32_t i = 0; i < 7; i++) {
        assert_true((t[i]->range.buf == t[0]->range.buf) == (i != 5));
    }
    assert_true(t[1]->range.offset >= 4000 && t[2]->range.offset == t[1]->range.offset);
    assert_true(t[3]->range.offset >= t[2]->range.offset + 2800);
    assert_true(t[0]->range.offset == 0 && t[4]->range.offset == 0);
    assert_true(t[6]->range.offset >= t[3]->range.offset + 40);
    assert_true(grt_plan_bytes(plan, "wings") == grt_plan_group(plan, "wings").size);
    assert_true(grt_plan_bytes(plan, "wings") >= t[6]->range.offset + 80 &&
                grt_plan_bytes(plan, "wings") < 4 * 2500);
    grt_plan_destroy(&plan);
}

// A group goes on in another buffer where the device makes none larger: what fits to the last byte
// stays together, and whoever asks for one range of it gets none.
static void split_groups(void **state) {
    (void)state;
    enum { COUNT = 5 };
    uint64_t align = grt_dev_align(test.dev), largest = test.dev->info.caps.max_buffer;
    // In units of what the device aligns to; a buffer has eight: 5 + 3, 8, 1 + 4.
    static const uint64_t units[COUNT] = {5, 3, 8, 1, 4};
    static const uint64_t offsets[COUNT] = {0, 5, 0, 0, 1};
    static const int slabs[COUNT] = {0, 0, 1, 2, 2};
    test.dev->info.caps.max_buffer = 8 * align;
    struct grt_plan *plan = plan_create(test.dev);
    struct grt_tensor *t[COUNT], *other[COUNT];
    for (int i = 0; i < COUNT; i++) {
        t[i] = declare(plan, grt_tensor_desc(.group = "wings", .shape = {units[i] * align / 4}));
        other[i] = declare(plan, grt_tensor_desc(.group = "tail", .shape = {1}));
    }
    assert_int_equal(grt_plan_bytes(plan, "wings"), 21 * align);
    assert_int_equal(grt_plan_bytes(plan, "tail"), 5 * align);
    assert_true(grt_plan_alloc(plan));
    assert_null(grt_plan_group(plan, "wings").buf);
    assert_ptr_equal(grt_plan_group(plan, "tail").buf, other[0]->range.buf);
    assert_int_equal(grt_plan_group(plan, "tail").size, 5 * align);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(t[i]->range.offset, offsets[i] * align);
        for (int k = 0; k < COUNT; k++) {
            assert_int_equal(t[i]->range.buf == t[k]->range.buf, slabs[i] == slabs[k]);
        }
        assert_ptr_equal(other[i]->range.buf, other[0]->range.buf);
    }
    grt_plan_destroy(&plan);
    // As many buffers as a plan keeps, and one more.
    for (uint64_t count = 64; count <= 65; count++) {
        plan = plan_create(test.dev);
        for (uint64_t i = 0; i < count; i++) {
            declare(plan, grt_tensor_desc(.label = "feather", .shape = {2 * align}));
        }
        if (count == 64) {
            assert_true(grt_plan_alloc(plan));
        } else {
            TEST_REFUSED(grt_plan_alloc(plan), GRT_NO_MEMORY, "'feather': more than 64 buffers");
        }
        grt_plan_destroy(&plan);
    }
    test.dev->info.caps.max_buffer = largest;
}

// A set that goes on in another buffer: those behind it do not begin anew in the first.
static void shared_and_split(void **state) {
    (void)state;
    uint64_t align = grt_dev_align(test.dev), largest = test.dev->info.caps.max_buffer;
    test.dev->info.caps.max_buffer = 8 * align;
    struct grt_plan *plan = plan_create(test.dev);
    const struct grt_tensor *t[4];
    struct grt_plan_share share = grt_plan_share_begin(plan, "wings");
    for (int i = 0; i < 4; i++) {
        t[i] = declare(plan, grt_tensor_desc(.group = "wings", .shape = {5 * align / 4}));
        grt_plan_share_next(plan, &share);
        if (i == 1) {
            declare(plan, grt_tensor_desc(.group = "wings", .shape = {6 * align / 4}));
        }
    }
    grt_plan_share_end(plan, &share);
    assert_true(grt_plan_alloc(plan));
    assert_ptr_equal(t[0]->range.buf, t[1]->range.buf);
    assert_int_equal(t[1]->range.offset, 0);
    assert_ptr_not_equal(t[2]->range.buf, t[1]->range.buf);
    assert_ptr_not_equal(t[3]->range.buf, t[2]->range.buf);
    grt_plan_destroy(&plan);
    test.dev->info.caps.max_buffer = largest;
}

// Over what was declared behind a place: as late as it fits, apart from another such tensor, and
// never before that place.
static void over(void **state) {
    (void)state;
    uint64_t a = grt_dev_align(test.dev), largest = test.dev->info.caps.max_buffer;
    test.dev->info.caps.max_buffer = 16 * a;
    struct grt_plan *plan = plan_create(test.dev);
#define DESC(n) grt_tensor_desc(.label = "t", .group = "wings", .dtype = GRT_U8, .shape = {(n)*a})
    struct grt_plan_place none = grt_plan_place(plan, "wings");
    assert_null(grt_plan_over(plan, DESC(1), none, NULL));
    TEST_REFUSED(grt_plan_over(NULL, DESC(1), none, NULL), GRT_INVALID, "no plan");
    TEST_REFUSED(grt_plan_over(plan, NULL, none, NULL), GRT_INVALID, "no desc");
    TEST_REFUSED(grt_plan_over(plan, grt_tensor_desc(.dtype = GRT_DTYPE_COUNT), none, NULL),
                 GRT_INVALID, "element type");
    declare(plan, DESC(3));
    struct grt_plan_place from = grt_plan_place(plan, "wings");
    assert_int_equal(from.offset, 3 * a);
    declare(plan, DESC(6));
    assert_null(grt_plan_over(plan, DESC(7), from, NULL));
    assert_null(grt_plan_over(plan, grt_tensor_desc(.group = "tail", .shape = {1}), from, NULL));
    const struct grt_tensor *first = grt_plan_over(plan, DESC(2), from, NULL);
    const struct grt_tensor *second = grt_plan_over(plan, DESC(4), from, first);
    assert_null(grt_plan_over(plan, DESC(5), from, first));
    // Behind the other one it may lie as well.
    const struct grt_tensor *third = grt_plan_over(plan, DESC(2), from, second);
    const struct grt_tensor *all = grt_plan_over(plan, DESC(6), from, NULL);
    assert_true(first && second && third && all);
    assert_int_equal(grt_plan_bytes(plan, NULL), 9 * a);
    // In another buffer all is behind the place.
    declare(plan, DESC(10));
    const struct grt_tensor *other = grt_plan_over(plan, DESC(9), from, second);
    assert_non_null(other);
#undef DESC
    assert_true(grt_plan_alloc(plan));
    assert_int_equal(first->range.offset, 7 * a);
    assert_int_equal(second->range.offset, 3 * a);
    assert_int_equal(third->range.offset, 7 * a);
    assert_int_equal(all->range.offset, 3 * a);
    assert_int_equal(all->range.size, 6 * a);
    assert_ptr_equal(all->range.buf, first->range.buf);
    assert_ptr_not_equal(other->range.buf, first->range.buf);
    assert_int_equal(other->range.offset, 1 * a);
    grt_plan_destroy(&plan);
    test.dev->info.caps.max_buffer = largest;
}

// ---- a driver that refuses a buffer ----

static struct {
    const struct grt_dev_fns *own;
    uint32_t left;  // buffers that it makes before it refuses
} refusing;

static struct grt_buf *refuse_buffer(struct grt_dev *dev, uint64_t size, enum grt_buf_kind kind) {
    if (refusing.left == 0) {
        grt_fail(GRT_NO_MEMORY, "no buffer of %llu bytes by request", (unsigned long long)size);
        return NULL;
    }
    refusing.left--;
    return refusing.own->buf_create(dev, size, kind);
}

// Whichever buffer is refused, those before it are given back, and the plan can be tried again.
static void refused_buffers(void **state) {
    (void)state;
    struct grt_dev_fns fns = *test.dev->fns;
    fns.buf_create = refuse_buffer;
    refusing.own = test.dev->fns;
    struct grt_plan *plan = plan_create(test.dev);
    const struct grt_tensor *t[3];
    static const char *const groups[3] = {"wings", "tail", "fuselage"};
    for (int i = 0; i < 3; i++) {
        t[i] = declare(plan, grt_tensor_desc(.group = groups[i], .shape = {1000}));
    }
    uint64_t before = grt_dev_mem_use(test.dev, NULL).current;
    uint32_t objects = test.dev->objects;
    for (uint32_t made = 0; made < 3; made++) {
        refusing.left = made;
        test.dev->fns = &fns;
        TEST_REFUSED(grt_plan_alloc(plan), GRT_NO_MEMORY, "by request");
        test.dev->fns = refusing.own;
        assert_int_equal(grt_dev_mem_use(test.dev, NULL).current, before);
        assert_int_equal(test.dev->objects, objects);
        assert_null(t[0]->range.buf);
    }
    assert_true(grt_plan_alloc(plan));
    assert_non_null(t[2]->range.buf);
    grt_plan_destroy(&plan);
    assert_int_equal(test.dev->objects, objects);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(split_groups),
    TEST_CASE(shared_and_split),
    TEST_CASE(over),
    TEST_CASE(refused_buffers),
    TEST_CASE(shared),
    TEST_CASE(shapes_and_sizes),
    TEST_CASE(bytes_before_are_bytes_after),
    TEST_CASE(groups_run_parallel),
    TEST_CASE(refused_with_numbers),
    TEST_CASE(mistakes_stick),
    TEST_CASE(empty_plan),
    TEST_CASE(tensors_keep_apart),
};
TEST_SUITE(plan, true, cases);
