// SPDX-License-Identifier: Apache-2.0
// What every suite uses: the device under test, tensors with fences, and comparisons that print
// both sides.
//
//     buffer of a test tensor:  | canary ... | elements | canary ... |
//                               0            offset     offset + bytes
//
// The elements begin at a multiple of the device's alignment and are filled before each run with a
// pattern that no correct kernel leaves behind, NaN first; the canaries are compared whenever the
// elements are read. A case that logs an error nobody asked for, that draws a message of the
// validation layer, or that leaves the device unusable has failed, whatever it computed.
#ifndef TEST_HARNESS_H
#define TEST_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

// cmocka 2 has a check for each kind of number in place of the one for all.
#ifdef assert_uint_in_range
#undef assert_in_range
#define assert_in_range assert_uint_in_range
#endif

#include "gpurt/gpurt.h"
#include "oracle/oracle.h"

// ---- suites ----

struct test_suite {
    const char *name;
    bool on_device;  // run once per device; false: once
    const struct CMUnitTest *cases;
    size_t case_count;
};

int test_case_begin(void **state);
int test_case_end(void **state);
#define TEST_CASE(function)                                                                        \
    { #function, function, test_case_begin, test_case_end, NULL }
#define TEST_SUITE(name_, on_device_, cases_)                                                      \
    extern const struct test_suite suite_##name_;                                                  \
    const struct test_suite suite_##name_ = {#name_, on_device_, cases_,                           \
                                             sizeof(cases_) / sizeof(cases_)[0]}

struct test_context {
    const char *selector;  // of --device
    struct grt_dev *dev;   // NULL in suites without a device
    struct grt_dev *ref;   // the C reading, beside it
    bool on_ref;           // the device is the C reading: nothing to compare with
    bool as_gpu;           // GPURT_TEST_AS_GPU=1: a CPU driver is taken for a GPU
    bool small;            // GPURT_TEST_SMALL=1: few and small cases, for slow checkers
    bool big;              // GPURT_TEST_BIG=1: cases that need tens of GiB
    char here[4096];       // folder of the running program: test data lies beside it
};
extern struct test_context test;

// ---- the log ----

struct test_log {
    uint32_t lines[GRT_LOG_LEVEL_COUNT];  // since the case began
    uint32_t expected;                    // errors that a case asked for
    bool quiet;                           // keep lines off stderr
    char newest[2048];
};
extern struct test_log test_log;
// Installs the log function of the tests, after a case had its own.
void test_log_install(void);

// `failed` is the outcome of a call that had to be refused; `errors` the error lines before it.
void test_check_refused(bool failed, enum grt_status status, const char *part, uint32_t errors,
                        const char *file, int line);
void test_refusal_begin(void);
// A call that must return false or NULL, set this status, and log one line that contains `part`.
#define TEST_REFUSED(call, status, part)                                                           \
    do {                                                                                           \
        uint32_t errors_ = test_log.lines[GRT_LOG_ERROR];                                          \
        test_refusal_begin();                                                                      \
        bool failed_ = !(call);                                                                    \
        test_check_refused(failed_, status, part, errors_, __FILE__, __LINE__);                    \
    } while (0)

// The device still computes: a fill and a read.
void test_usable(struct grt_dev *dev);

// ---- inputs ----

#define TEST_INPUTS(X)                                                                             \
    X(PLAIN)    /* [-2, 2], one in eight a zero, some of them -0 */                                \
    X(WIDE)     /* either sign, 2^-60 to 2^60, and zeros */                                        \
    X(POSITIVE) /* 2^-20 to 2^20 */                                                                \
    X(INTEGER)  /* whole numbers, -4 to 4: sums of up to 4 million of them are exact */            \
    X(BITS)     /* any 32 bits */

enum test_input {
#define X(name) TEST_##name,
    TEST_INPUTS(X)
#undef X
};

uint32_t test_next(uint64_t *state);
double test_unit(uint64_t *state);  // [0, 1)
float test_float(uint64_t *state, enum test_input input);
// How often gpurt and its tests have asked for memory so far; drivers are not counted.
uint64_t test_allocations(void);
// The one that comes so many allocations from now gets NULL; 0: none does.
void test_refuse_allocation(uint64_t from_now);
// gpurt's clock stands at this time until it is set anew; below 0: it runs.
void test_clock_set(double seconds);

// How files came to the disk since `done` was emptied: f a file, d a folder by fsync(), r a rename.
// With `fail` one of f and d, that fsync() fails: each, or the first `fails`. With `hold`, the next
// fsync() of a file waits for test_files_release(); `late`: nobody called it within half a minute.
struct test_files {
    char done[64];
    char fail;
    int error;  // of a failure; 0: EIO
    uint32_t fails;
    bool hold, held, late;  // held: one waits, or has waited
};
extern struct test_files test_files;
// From any thread.
void test_files_release(void);
bool test_files_held(void);
// Allocated; freed by the caller. Never NULL.
float *test_floats(uint64_t seed, enum test_input input, size_t count);
void *test_alloc(size_t bytes);

// Runs `check` in a child, so that environment and user can be changed; it is to say true. Root may
// read and write anywhere: the child can become nobody.
void test_in_child(const char *name, bool (*check)(void), bool as_nobody);
#define TEST_IN_CHILD(check, as_nobody) test_in_child(#check, check, as_nobody)

static inline uint32_t test_as_u32(float value) {
    union {
        float f;
        uint32_t u;
    } both = {.f = value};
    return both.u;
}

static inline float test_as_f32(uint32_t bits) {
    union {
        uint32_t u;
        float f;
    } both = {.u = bits};
    return both.f;
}

// ---- tensors with fences ----

#define TEST_PREFILLS 3
extern const uint32_t test_prefills[TEST_PREFILLS];

struct test_tensor {
    struct grt_tensor tensor;  // first, so that &t.tensor is what an op takes
    struct grt_dev *dev;
    uint64_t bytes;
    uint64_t total;  // bytes of the buffer, canaries included
};

// A tensor of rank 1 or 2 (cols 0: rank 1); elements hold the first pre-fill.
struct test_tensor test_tensor(struct grt_dev *dev, enum grt_dtype dtype, uint64_t rows,
                               uint64_t cols);
struct test_tensor test_tensor_shape(struct grt_dev *dev, enum grt_dtype dtype, uint32_t rank,
                                     const uint64_t *shape);
void test_tensor_prefill(struct test_tensor *t, uint32_t pattern);
void test_tensor_write(struct test_tensor *t, const void *data);
// Numbers, rounded to the tensor's type.
void test_tensor_put(struct test_tensor *t, const double *values, size_t count);
// Checks the canaries too.
void test_tensor_read(struct test_tensor *t, void *data);
void test_tensor_end(struct test_tensor *t);
struct oracle_format test_format(enum grt_dtype dtype);
// The i-th of numbers of a type.
double test_number(enum grt_dtype dtype, const void *numbers, size_t i);
struct grt_buf *test_buf(struct grt_dev *dev, uint64_t size, enum grt_buf_kind kind);

// ---- running ----

typedef void test_record_fn(struct grt_graph *graph, void *context);
// Records into a fresh graph, bakes, runs, waits, destroys; fails the case when any of it fails.
void test_run(struct grt_dev *dev, test_record_fn *record, void *context);
// Runs once under each pre-fill of `out`, requires the same bits each time, returns them
// (allocated).
void *test_run_filled(struct test_tensor *out, test_record_fn *record, void *context);

// ---- comparisons ----

struct test_compare {
    const struct grt_dev *dev;
    const char *what;  // kernel or op, with its case
    uint64_t bad;
};
struct test_compare test_compare(const struct grt_dev *dev, const char *format, ...)
    GRT_PRINTF(2, 3);
void test_compare_value(struct test_compare *c, uint64_t index, float got,
                        struct oracle_value want);
void test_compare_exact(struct test_compare *c, uint64_t index, double got, double want);
void test_compare_bits(struct test_compare *c, uint64_t index, uint32_t got, uint32_t want);
// Fails the case if any comparison failed; prints how many.
void test_compare_end(const struct test_compare *c);
// All of two arrays of floats, bit for bit but for what no device promises: which NaN, and whether
// a result below the smallest normal number is kept or flushed to zero.
void test_same_floats(const struct grt_dev *dev, const char *what, const float *got,
                      const float *want, size_t count);
// All of two arrays of 4-byte or 2-byte elements, bit for bit.
void test_same(const struct grt_dev *dev, const char *what, const void *got, const void *want,
               size_t element, size_t count);

#endif
