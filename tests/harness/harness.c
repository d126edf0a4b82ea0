// SPDX-License-Identifier: Apache-2.0
// The life of a case, the log, test tensors and the running of graphs. See harness.h.
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// NaN finds what was never written; zero, what adds to the old contents; a number, what happens to
// be right over NaN or zero alone.
const uint32_t test_prefills[TEST_PREFILLS] = {0xffffffff, 0x00000000, 0x4b189680};

#define CANARY_BYTES 256

// ---- the log ----

struct test_log test_log;

static void log_line(void *context, enum grt_log_level level, const char *line) {
    (void)context;
    test_log.lines[level]++;
    snprintf(test_log.newest, sizeof test_log.newest, "%s", line);
    if (!test_log.quiet && level <= GRT_LOG_WARN) {
        print_error("# gpurt %s: %s\n", grt_log_level_text(level), line);
    }
}

void test_log_install(void) {
    grt_log_set(log_line, NULL, GRT_LOG_INFO);
}

void test_refusal_begin(void) {
    test_log.quiet = true;
}

void test_check_refused(bool failed, enum grt_status status, const char *part, uint32_t errors,
                        const char *file, int line) {
    uint32_t logged = test_log.lines[GRT_LOG_ERROR] - errors;
    test_log.quiet = false;
    test_log.expected += logged;
    if (!failed) {
        print_error("not refused; wanted %s\n", grt_status_text(status));
    } else if (grt_last_status() != status) {
        print_error("refused with '%s', wanted '%s'; it said: %s\n",
                    grt_status_text(grt_last_status()), grt_status_text(status), grt_last_error());
    } else if (!strstr(grt_last_error(), part)) {
        print_error("the sentence lacks '%s': %s\n", part, grt_last_error());
    } else if (logged != 1) {
        print_error("%u error lines, wanted 1; the newest: %s\n", logged, test_log.newest);
    } else {
        return;
    }
    _fail(file, line);
}

// ---- cases ----

// Memory of the device under test, but for what stands where an op has no operand: made once.
static struct grt_mem_use taken(void) {
    struct grt_mem_use all = grt_dev_mem_use(test.dev, NULL);
    struct grt_mem_use once = grt_dev_mem_use(test.dev, "unused");
    all.buffers -= once.buffers;
    all.current -= once.current;
    return all;
}

static struct grt_mem_use before;  // the case

int test_case_begin(void **state) {
    (void)state;
    memset(&test_log, 0, sizeof test_log);
    before = taken();
    return 0;
}

// Returns -1, which cmocka counts as an error of the case.
int test_case_end(void **state) {
    (void)state;
    int rc = 0;
    test_log.quiet = false;
    if (test_log.lines[GRT_LOG_ERROR] != test_log.expected) {
        print_error("%u error lines in the log, %u expected; the newest: %s\n",
                    test_log.lines[GRT_LOG_ERROR], test_log.expected, test_log.newest);
        rc = -1;
    }
    if (!test.dev) {
        return rc;
    }
    if (grt_dev_complaints(test.dev) != 0) {
        print_error("%u messages of the validation layer\n", grt_dev_complaints(test.dev));
        rc = -1;
    }
    if (grt_dev_status(test.dev) != GRT_OK || !grt_dev_wait(test.dev)) {
        print_error("the device is left unusable: %s\n", grt_status_text(grt_dev_status(test.dev)));
        rc = -1;
    }
    struct grt_mem_use after = taken();
    if (after.buffers != before.buffers || after.current != before.current) {
        print_error("%u buffers of %llu bytes before the case, %u of %llu after it\n",
                    before.buffers, (unsigned long long)before.current, after.buffers,
                    (unsigned long long)after.current);
        rc = -1;
    }
    return rc;
}

void test_usable(struct grt_dev *dev) {
    struct grt_buf *buf = test_buf(dev, 64, GRT_BUF_DEVICE);
    struct grt_graph *graph = grt_graph_create(dev, "usable");
    assert_non_null(graph);
    grt_graph_fill(graph, (struct grt_range){buf}, 0x12345678);
    assert_true(grt_graph_finish(graph));
    uint32_t words[16] = {0};
    assert_true(grt_buf_read(buf, 0, words, sizeof words));
    assert_int_equal(words[0], 0x12345678);
    assert_int_equal(words[15], 0x12345678);
    grt_graph_destroy(&graph);
    grt_buf_destroy(&buf);
}

// ---- inputs ----

// xorshift64*, Vigna 2016: its own generator, so that no input depends on the generator under test.
uint32_t test_next(uint64_t *state) {
    uint64_t x = *state ? *state : 0x9e3779b97f4a7c15;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return (uint32_t)((x * 0x2545f4914f6cdd1d) >> 32);
}

double test_unit(uint64_t *state) {
    return test_next(state) * 0x1p-32;
}

static float signed_power(uint64_t *state, int range, bool positive) {
    double value = 1.0 + test_unit(state);
    int exponent = (int)(test_next(state) % (2u * (unsigned)range + 1)) - range;
    for (; exponent > 0; exponent -= 1) {
        value *= 2;
    }
    for (; exponent < 0; exponent++) {
        value /= 2;
    }
    return (float)(!positive && test_next(state) % 2 ? -value : value);
}

float test_float(uint64_t *state, enum test_input input) {
    uint32_t draw = test_next(state);
    float zero = draw % 16 == 0 ? -0.0f : 0.0f;
    switch (input) {
    case TEST_WIDE:
        return draw % 32 < 4 ? zero : signed_power(state, 60, false);
    case TEST_POSITIVE:
        return signed_power(state, 20, true);
    case TEST_INTEGER:
        return (float)(draw % 9) - 4.0f;
    case TEST_BITS:
        return test_as_f32(draw);
    case TEST_PLAIN:
        break;
    }
    return draw % 8 == 0 ? zero : (float)(4.0 * test_unit(state) - 2.0);
}

void *test_alloc(size_t bytes) {
    void *data = calloc(bytes > 0 ? bytes : 1, 1);
    assert_non_null(data);
    return data;
}

void test_in_child(const char *name, bool (*check)(void), bool as_nobody) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        bool ready = !as_nobody || geteuid() != 0 || setuid(65534) == 0;
        _exit(ready && check() ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status != 0) {
        print_error("%s: the child did not find what it should (status %d)\n", name, status);
    }
    assert_int_equal(status, 0);
}

float *test_floats(uint64_t seed, enum test_input input, size_t count) {
    float *data = test_alloc(count * sizeof *data);
    uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
    for (size_t i = 0; i < count; i++) {
        data[i] = test_float(&state, input);
    }
    return data;
}

// ---- tensors ----

struct grt_buf *test_buf(struct grt_dev *dev, uint64_t size, enum grt_buf_kind kind) {
    struct grt_buf *buf =
        grt_buf_create(dev, grt_buf_desc(.size = size, .kind = kind, .label = "test"));
    assert_non_null(buf);
    return buf;
}

static unsigned char canary(uint64_t i) {
    return (unsigned char)(0xc5 ^ (i * 7));
}

// The byte of the fences behind byte i, and of -1 the first: the tensor itself is passed over.
static uint64_t fence_next(const struct test_tensor *t, uint64_t i) {
    return i + 1 == t->tensor.range.offset ? i + 1 + t->bytes : i + 1;
}

struct test_tensor test_tensor_shape(struct grt_dev *dev, enum grt_dtype dtype, uint32_t rank,
                                     const uint64_t *shape) {
    struct test_tensor t = {.dev = dev, .tensor = {.dtype = dtype, .rank = rank, .label = "test"}};
    uint64_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        t.tensor.shape[i] = shape[i];
        count *= shape[i];
    }
    uint64_t align = grt_dev_info(dev)->caps.align;
    align = align > 0 ? align : 4;
    uint64_t offset = (CANARY_BYTES + align - 1) / align * align;
    t.bytes = count * grt_dtype_size(dtype);
    t.total = (offset + t.bytes + CANARY_BYTES + 3) / 4 * 4;
    t.tensor.range = (struct grt_range){test_buf(dev, t.total, GRT_BUF_DEVICE), offset, t.bytes};
    test_tensor_prefill(&t, test_prefills[0]);
    return t;
}

struct test_tensor test_tensor(struct grt_dev *dev, enum grt_dtype dtype, uint64_t rows,
                               uint64_t cols) {
    uint64_t shape[2] = {rows, cols};
    return test_tensor_shape(dev, dtype, cols > 0 ? 2 : 1, shape);
}

// The whole buffer, canaries anew, elements from `data` or else from the pattern.
static void tensor_set(struct test_tensor *t, const unsigned char *data, uint32_t pattern) {
    unsigned char *bytes = test_alloc(t->total);
    for (uint64_t i = fence_next(t, UINT64_MAX); i < t->total; i = fence_next(t, i)) {
        bytes[i] = canary(i);
    }
    unsigned char *inside = bytes + t->tensor.range.offset;
    if (data) {
        memcpy(inside, data, t->bytes);
    }
    for (uint64_t i = 0; !data && i < t->bytes; i++) {
        inside[i] = (unsigned char)(pattern >> (8 * (i % 4)));
    }
    bool written = grt_buf_write(t->tensor.range.buf, 0, bytes, t->total);
    free(bytes);
    assert_true(written);
}

void test_tensor_prefill(struct test_tensor *t, uint32_t pattern) {
    tensor_set(t, NULL, pattern);
}

void test_tensor_write(struct test_tensor *t, const void *data) {
    tensor_set(t, data, 0);
}

struct oracle_format test_format(enum grt_dtype dtype) {
    return dtype == GRT_F16 ? oracle_f16 : dtype == GRT_BF16 ? oracle_bf16 : oracle_f32;
}

double test_number(enum grt_dtype dtype, const void *numbers, size_t i) {
    return dtype == GRT_F32 ? (double)((const float *)numbers)[i]
                            : oracle_widen(test_format(dtype), ((const uint16_t *)numbers)[i]);
}

void test_tensor_put(struct test_tensor *t, const double *values, size_t count) {
    uint32_t size = grt_dtype_size(t->tensor.dtype);
    unsigned char *bytes = test_alloc(count * size);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = oracle_narrow(test_format(t->tensor.dtype), values[i]);
        memcpy(bytes + i * size, &bits, size);
    }
    test_tensor_write(t, bytes);
    free(bytes);
}

void test_tensor_read(struct test_tensor *t, void *data) {
    unsigned char *bytes = test_alloc(t->total);
    bool read = grt_buf_read(t->tensor.range.buf, 0, bytes, t->total);
    bool whole = true;
    for (uint64_t i = fence_next(t, UINT64_MAX); read && whole && i < t->total;
         i = fence_next(t, i)) {
        if (bytes[i] != canary(i)) {
            int64_t where = (int64_t)i - (int64_t)t->tensor.range.offset;
            print_error("%s: byte %lld of a tensor of %llu bytes was written: %02x\n",
                        grt_dev_info(t->dev)->selector, (long long)where,
                        (unsigned long long)t->bytes, bytes[i]);
            whole = false;
        }
    }
    memcpy(data, bytes + t->tensor.range.offset, t->bytes);
    free(bytes);
    assert_true(read);
    assert_true(whole);
}

void test_tensor_end(struct test_tensor *t) {
    grt_buf_destroy(&t->tensor.range.buf);
}

// ---- running ----

void test_run(struct grt_dev *dev, test_record_fn *record, void *context) {
    struct grt_graph *graph = grt_graph_create(dev, "test");
    assert_non_null(graph);
    record(graph, context);
    bool finished = grt_graph_finish(graph);
    grt_graph_destroy(&graph);
    assert_true(finished);
}

void *test_run_filled(struct test_tensor *out, test_record_fn *record, void *context) {
    unsigned char *first = test_alloc(out->bytes);
    unsigned char *again = test_alloc(out->bytes);
    size_t element = grt_dtype_size(out->tensor.dtype);
    for (int i = 0; i < TEST_PREFILLS; i++) {
        test_tensor_prefill(out, test_prefills[i]);
        test_run(out->dev, record, context);
        test_tensor_read(out, i == 0 ? first : again);
        if (i > 0) {
            test_same(out->dev, "another pre-fill", again, first, element, out->bytes / element);
        }
    }
    free(again);
    return first;
}
