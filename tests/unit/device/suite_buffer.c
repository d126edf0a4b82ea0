// SPDX-License-Identifier: Apache-2.0
// Buffers and the account of memory.
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"

static void sizes_and_kinds(void **state) {
    (void)state;
    static const uint64_t sizes[] = {1, 3, 4, 5, 63, 64, 65, 4096, 1000003};
    for (int kind = 0; kind < GRT_BUF_KIND_COUNT; kind++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            struct grt_buf *buf = test_buf(test.dev, sizes[i], (enum grt_buf_kind)kind);
            assert_int_equal(grt_buf_size(buf), (sizes[i] + 3) / 4 * 4);
            assert_true((grt_buf_host(buf) != NULL) == (kind != GRT_BUF_DEVICE));
            grt_buf_destroy(&buf);
            assert_null(buf);
        }
    }
}

// Writes and reads at every kind of offset and size; the neighbours keep their bytes.
static void odd_offsets_and_sizes(void **state) {
    (void)state;
    enum { SIZE = 512 };
    static const uint64_t offsets[] = {0, 1, 2, 3, 4, 5, 63, 127, 255, 509};
    static const uint64_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 64, 129, 257};
    for (int kind = 0; kind < GRT_BUF_KIND_COUNT; kind++) {
        struct grt_buf *buf = test_buf(test.dev, SIZE, (enum grt_buf_kind)kind);
        unsigned char model[SIZE];
        unsigned char got[SIZE];
        memset(model, 0x5a, sizeof model);
        assert_true(grt_buf_write(buf, 0, model, SIZE));
        uint64_t seed = 7;
        for (size_t o = 0; o < sizeof offsets / sizeof offsets[0]; o++) {
            for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
                uint64_t offset = offsets[o];
                uint64_t size = offset + sizes[s] <= SIZE ? sizes[s] : SIZE - offset;
                for (uint64_t i = 0; i < size; i++) {
                    model[offset + i] = (unsigned char)test_next(&seed);
                }
                assert_true(grt_buf_write(buf, offset, model + offset, size));
                assert_true(grt_buf_read(buf, 0, got, SIZE));
                assert_memory_equal(got, model, SIZE);
                memset(got, 0, sizeof got);
                assert_true(grt_buf_read(buf, offset, got, size));
                assert_memory_equal(got, model + offset, size);
            }
        }
        grt_buf_destroy(&buf);
    }
}

static void large_transfers(void **state) {
    (void)state;
    size_t size = test.small ? 100003 : 40000003;  // beyond any staging buffer
    uint32_t *data = test_alloc(size + 4);
    uint64_t seed = 3;
    for (size_t i = 0; i < size / 4; i++) {
        data[i] = test_next(&seed);
    }
    unsigned char *got = test_alloc(size);
    struct grt_buf *buf = test_buf(test.dev, size + 8, GRT_BUF_DEVICE);
    assert_true(grt_buf_write(buf, 5, data, size));
    assert_true(grt_buf_read(buf, 5, got, size));
    assert_true(memcmp(got, data, size) == 0);
    grt_buf_destroy(&buf);
    free(got);
    free(data);
}

static void account(void **state) {
    (void)state;
    struct grt_mem_use before = grt_dev_mem_use(test.dev, NULL);
    struct grt_buf *a = grt_buf_create(test.dev, grt_buf_desc(.size = 1000, .label = "apples"));
    struct grt_buf *b = grt_buf_create(test.dev, grt_buf_desc(.size = 501, .label = "apples"));
    struct grt_buf *c = grt_buf_create(test.dev, grt_buf_desc(.size = 64));
    struct grt_buf *up = grt_buf_create(
        test.dev, grt_buf_desc(.size = 128, .kind = GRT_BUF_UPLOAD, .label = "stage"));
    assert_true(a && b && c && up);
    struct grt_mem_use apples = grt_dev_mem_use(test.dev, "apples");
    assert_string_equal(apples.label, "apples");
    assert_int_equal(apples.current, 1504);
    assert_int_equal(apples.peak, 1504);
    assert_int_equal(apples.buffers, 2);
    assert_int_equal(grt_dev_mem_use(test.dev, "unnamed").current, 64);
    assert_int_equal(grt_dev_mem_use(test.dev, "stage").current, 128);
    assert_int_equal(grt_dev_mem_use(test.dev, "pears").current, 0);
    struct grt_mem_use total = grt_dev_mem_use(test.dev, NULL);
    assert_int_equal(total.current - before.current, 1504 + 64);  // staging lies on the host

    grt_buf_destroy(&a);
    apples = grt_dev_mem_use(test.dev, "apples");
    assert_int_equal(apples.current, 504);
    assert_int_equal(apples.peak, 1504);
    assert_int_equal(apples.buffers, 1);
    // The labels can be walked, and together give the total of device and staging memory.
    struct grt_mem_use use;
    uint64_t sum = 0;
    uint32_t labels = 0;
    for (; grt_dev_mem_label(test.dev, labels, &use); labels++) {
        assert_true(use.label[0] && use.peak >= use.current);
        sum += use.current;
    }
    assert_in_range(labels, 3, 64);
    assert_int_equal(sum, grt_dev_mem_use(test.dev, NULL).current + 128);
    grt_buf_destroy(&b);
    grt_buf_destroy(&c);
    grt_buf_destroy(&up);
    assert_int_equal(grt_dev_mem_use(test.dev, NULL).current, before.current);
    assert_int_equal(grt_dev_mem_use(test.dev, "apples").current, 0);
}

// More labels than the account has rows, and labels longer than a row: bytes are never lost.
static void many_labels(void **state) {
    (void)state;
    enum { COUNT = 80 };
    struct grt_dev *dev = grt_dev_create(grt_dev_desc(.device = "ref:0"));
    assert_non_null(dev);
    struct grt_buf *bufs[COUNT];
    for (int i = 0; i < COUNT; i++) {
        char label[64];
        snprintf(label, sizeof label, "label %d", i);
        bufs[i] = grt_buf_create(dev, grt_buf_desc(.size = 16, .label = label));
        assert_non_null(bufs[i]);
    }
    assert_int_equal(grt_dev_mem_use(dev, NULL).current, COUNT * 16);
    for (int i = 0; i < COUNT; i++) {
        grt_buf_destroy(&bufs[i]);
    }
    struct grt_mem_use use;
    for (uint32_t i = 0; grt_dev_mem_label(dev, i, &use); i++) {
        assert_int_equal(use.current, 0);
    }
    grt_dev_destroy(&dev);

    dev = grt_dev_create(grt_dev_desc(.device = "ref:0"));
    assert_non_null(dev);
    static const char long_label[] =
        "a label that is a good deal longer than the forty-seven letters of a row";
    struct grt_buf *buf = grt_buf_create(dev, grt_buf_desc(.size = 16, .label = long_label));
    assert_non_null(buf);
    assert_int_equal(grt_dev_mem_use(dev, long_label).current, 16);
    grt_buf_destroy(&buf);
    grt_dev_destroy(&dev);
}

static void memory_limit(void **state) {
    (void)state;
    struct grt_dev *dev = grt_dev_create(
        grt_dev_desc(.device = grt_dev_info(test.dev)->selector, .mem_limit = 10000000));
    assert_non_null(dev);
    assert_in_range(grt_dev_mem_left(dev), 1, 10000000);
    assert_int_equal(grt_dev_mem_most(dev), 10000000);
    struct grt_buf *half = test_buf(dev, 5000000, GRT_BUF_DEVICE);
    assert_int_equal(grt_dev_mem_most(dev), 10000000);  // whatever is taken
    assert_in_range(grt_dev_mem_left(dev), 1, 5000000);
    // The sentence has the wanted, the left and the taken megabytes.
    TEST_REFUSED(grt_buf_create(dev, grt_buf_desc(.size = 6000000, .label = "sixth")),
                 GRT_NO_MEMORY, "6.0 MB");
    assert_non_null(strstr(grt_last_error(), "'sixth'"));
    assert_non_null(strstr(grt_last_error(), "5.0 MB"));
    assert_int_equal(grt_dev_mem_use(dev, NULL).current, 5000000);
    assert_int_equal(grt_dev_mem_use(dev, "sixth").current, 0);
    test_usable(dev);
    // Staging memory is the host's; freed memory can be taken again.
    struct grt_buf *stage = test_buf(dev, 20000000, GRT_BUF_UPLOAD);
    grt_buf_destroy(&stage);
    grt_buf_destroy(&half);
    half = test_buf(dev, 9000000, GRT_BUF_DEVICE);
    grt_buf_destroy(&half);
    TEST_REFUSED(grt_buf_create(dev, grt_buf_desc(.size = UINT64_MAX)), GRT_NO_MEMORY, "MB");
    TEST_REFUSED(grt_buf_create(dev, grt_buf_desc(.size = UINT64_MAX - 2)), GRT_NO_MEMORY, "MB");
    TEST_REFUSED(grt_buf_create(dev, grt_buf_desc(.size = (uint64_t)1 << 50)), GRT_NO_MEMORY, "MB");
    test_usable(dev);
    grt_dev_destroy(&dev);
}

static void bad_descs(void **state) {
    (void)state;
    TEST_REFUSED(grt_buf_create(NULL, grt_buf_desc(.size = 4)), GRT_INVALID, "device");
    TEST_REFUSED(grt_buf_create(test.dev, NULL), GRT_INVALID, "desc");
    TEST_REFUSED(grt_buf_create(test.dev, grt_buf_desc(.size = 0)), GRT_INVALID, "size");
    TEST_REFUSED(grt_buf_create(test.dev, grt_buf_desc(.size = 4, .kind = (enum grt_buf_kind)9)),
                 GRT_INVALID, "kind");
    struct grt_buf *buf = test_buf(test.dev, 16, GRT_BUF_DEVICE);
    char bytes[32] = {0};
    TEST_REFUSED(grt_buf_write(NULL, 0, bytes, 4), GRT_INVALID, "buffer");
    TEST_REFUSED(grt_buf_write(buf, 0, NULL, 4), GRT_INVALID, "data");
    TEST_REFUSED(grt_buf_write(buf, 0, bytes, 17), GRT_INVALID, "16");
    TEST_REFUSED(grt_buf_write(buf, 17, bytes, 0), GRT_INVALID, "16");
    TEST_REFUSED(grt_buf_read(NULL, 0, bytes, 4), GRT_INVALID, "buffer");
    TEST_REFUSED(grt_buf_read(buf, 0, NULL, 4), GRT_INVALID, "data");
    TEST_REFUSED(grt_buf_read(buf, 12, bytes, 5), GRT_INVALID, "16");
    TEST_REFUSED(grt_buf_read(buf, UINT64_MAX, bytes, 4), GRT_INVALID, "16");
    TEST_REFUSED(grt_buf_read(buf, 4, bytes, UINT64_MAX), GRT_INVALID, "16");
    assert_true(grt_buf_read(buf, 16, bytes, 0));
    grt_buf_destroy(&buf);
    grt_buf_destroy(&buf);
    grt_buf_destroy(NULL);
    assert_int_equal(grt_buf_size(NULL), 0);
    assert_null(grt_buf_host(NULL));
    assert_int_equal(grt_dev_mem_use(NULL, NULL).current, 0);
    assert_int_equal(grt_dev_mem_left(NULL), 0);
    assert_int_equal(grt_dev_mem_most(NULL), 0);
    test_usable(test.dev);
}

// Freed under a device that is closed too early: the device stays open, and says so.
static void device_closed_too_early(void **state) {
    (void)state;
    struct grt_dev *dev = grt_dev_create(grt_dev_desc(.device = "ref:0"));
    assert_non_null(dev);
    struct grt_dev *kept = dev;
    struct grt_buf *buf = test_buf(dev, 16, GRT_BUF_DEVICE);
    test_log.quiet = true;
    grt_dev_destroy(&dev);
    test_log.quiet = false;
    assert_null(dev);
    assert_int_equal(test_log.lines[GRT_LOG_ERROR], 1);
    test_log.expected++;
    uint32_t word = 0;
    assert_true(grt_buf_write(buf, 0, &word, 4));
    grt_buf_destroy(&buf);
    grt_dev_destroy(&kept);
}

// Once a device is lost every call says so, and what was made can still be destroyed.
static void lost_device(void **state) {
    (void)state;
    struct grt_dev *dev = grt_dev_create(grt_dev_desc(.device = grt_dev_info(test.dev)->selector));
    assert_non_null(dev);
    struct grt_buf *buf = test_buf(dev, 64, GRT_BUF_DEVICE);
    struct grt_graph *baked = grt_graph_create(dev, "baked");
    struct grt_graph *fresh = grt_graph_create(dev, "fresh");
    grt_graph_fill(baked, (struct grt_range){buf}, 1);
    grt_graph_fill(fresh, (struct grt_range){buf}, 1);
    assert_true(grt_graph_bake(baked));
    dev->status = GRT_LOST;
    assert_int_equal(grt_dev_status(dev), GRT_LOST);
    uint32_t word = 0;
    TEST_REFUSED(grt_dev_wait(dev), GRT_LOST, dev->info.selector);
    TEST_REFUSED(grt_buf_create(dev, grt_buf_desc(.size = 4)), GRT_LOST, dev->info.selector);
    TEST_REFUSED(grt_buf_read(buf, 0, &word, 4), GRT_LOST, dev->info.selector);
    TEST_REFUSED(grt_buf_write(buf, 0, &word, 4), GRT_LOST, dev->info.selector);
    TEST_REFUSED(grt_graph_run(baked), GRT_LOST, dev->info.selector);
    TEST_REFUSED(grt_graph_bake(fresh), GRT_LOST, dev->info.selector);
    TEST_REFUSED(grt_kernel_get(dev, grt_kernel_desc(.name = "copy")), GRT_LOST,
                 dev->info.selector);
    grt_graph_destroy(&baked);
    grt_graph_destroy(&fresh);
    grt_buf_destroy(&buf);
    grt_dev_destroy(&dev);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(sizes_and_kinds), TEST_CASE(odd_offsets_and_sizes),
    TEST_CASE(large_transfers), TEST_CASE(account),
    TEST_CASE(many_labels),     TEST_CASE(memory_limit),
    TEST_CASE(bad_descs),       TEST_CASE(device_closed_too_early),
    TEST_CASE(lost_device),
};
TEST_SUITE(buffer, true, cases);
