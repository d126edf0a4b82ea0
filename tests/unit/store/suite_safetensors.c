// SPDX-License-Identifier: Apache-2.0
// Safetensors: a file as the format's own documentation has it, round trips, and files that lie.
// And graphs of ONNX that cannot be recorded.
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpurt/onnx.h"
#include "gpurt/safetensors.h"

// A file of this header, and `size` bytes 0, 1, 2, ... behind it; freed by the caller.
static unsigned char *file_of(const char *header, size_t size, size_t *total) {
    size_t length = strlen(header);
    unsigned char *bytes = test_alloc(8 + length + 1 + size);
    for (uint32_t i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)((uint64_t)length >> 8 * i);
    }
    memcpy(bytes + 8, header, length + 1);
    for (size_t i = 0; i < size; i++) {
        bytes[8 + length + i] = (unsigned char)i;
    }
    *total = 8 + length + size;
    return bytes;
}

static struct grt_archive *parse(const char *header, size_t size) {
    size_t total = 0;
    unsigned char *bytes = file_of(header, size, &total);
    struct grt_archive *archive = grt_safetensors_parse("f.safetensors", bytes, total);
    free(bytes);
    return archive;
}

static void forms(void **state) {
    (void)state;
    struct grt_archive *a =
        parse("{\"__metadata__\":{\"format\":\"pt\",\"step\":\"12\"},"
              "\"b\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[8,20]},"
              "\"a.weight\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
              "\"s\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[20,21]},"
              "\"none\":{\"dtype\":\"BF16\",\"shape\":[0,4],\"data_offsets\":[20,20]}}   ",
              21);
    assert_non_null(a);
    assert_int_equal(a->tensor_count, 4);
    const struct grt_archive_tensor *b = grt_archive_find(a, "b");
    assert_true(b && b->dtype == GRT_F16 && b->rank == 2 && b->shape[1] == 3 && b->bytes == 12);
    assert_int_equal(((unsigned char *)b->data)[0], 8);
    assert_int_equal(((unsigned char *)grt_archive_find(a, "s")->data)[0], 20);
    assert_int_equal(grt_archive_find(a, "none")->bytes, 0);
    assert_string_equal(grt_archive_text(a, "format", ""), "pt");
    assert_int_equal(grt_archive_whole(a, "step", 0), 12);
    grt_archive_destroy(&a);
    a = parse("{}", 0);
    assert_true(a && a->tensor_count == 0);
    grt_archive_destroy(&a);
}

#define REFUSE(header, size, part) TEST_REFUSED(parse(header, size), GRT_BAD_DATA, part)
#define ENTRY(type, shape, offsets)                                                                \
    "{\"a\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void lies(void **state) {
    (void)state;
    TEST_REFUSED(grt_safetensors_parse("f", "1234567", 7), GRT_BAD_DATA, "too short");
    TEST_REFUSED(grt_safetensors_parse("f", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10), GRT_BAD_DATA,
                 "a header of 18446744073709551615 bytes");
    TEST_REFUSED(grt_safetensors_parse("f", "\x03\0\0\0\0\0\0\0{}", 10), GRT_BAD_DATA,
                 "a header of 3 bytes");
    REFUSE("", 0, "no JSON");
    REFUSE("{", 0, "no JSON");
    REFUSE("[]", 0, "must be an object");
    REFUSE("{\"a\":3}", 0, "a: dtype, shape and data_offsets are wanted");
    REFUSE("{\"a\":{}}", 0, "a: dtype, shape and data_offsets are wanted");
    REFUSE("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"more\":1}}", 4,
           "are wanted");
    REFUSE("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
           "duplicate");
    REFUSE(ENTRY("F64", "[1]", "[0,8]"), 8, "type F64 are not taken");
    REFUSE(ENTRY("F32", "[1]", "[0,8]"), 8, "its shape has 4 bytes, its offsets 8");
    REFUSE(ENTRY("F32", "[1]", "[0,4]"), 3, "two numbers within the file");
    REFUSE(ENTRY("F32", "[1]", "[4,0]"), 4, "two numbers within the file");
    REFUSE(ENTRY("F32", "[1]", "[-4,0]"), 4, "two numbers within the file");
    REFUSE(ENTRY("F32", "[1]", "[0,4,8]"), 4, "two numbers within the file");
    REFUSE(ENTRY("F32", "[1]", "3"), 4, "two numbers within the file");
    REFUSE(ENTRY("F32", "[1]", "[0,18446744073709551615]"), 4, "no JSON");
    REFUSE(ENTRY("F32", "[-1]", "[0,4]"), 4, "whole numbers from 0 on");
    REFUSE(ENTRY("F32", "[1.0]", "[0,4]"), 4, "whole numbers from 0 on");
    REFUSE(ENTRY("F32", "3", "[0,4]"), 4, "a shape of up to 5 numbers");
    REFUSE(ENTRY("F32", "[1,1,1,1,1,1]", "[0,4]"), 4, "a shape of up to 5 numbers");
    REFUSE(ENTRY("F32", "[4611686018427387904,4]", "[0,4]"), 4, "larger than the file");
    REFUSE(ENTRY("F32", "[65536,65536,65536,65536]", "[0,4]"), 4, "larger than the file");
    REFUSE(ENTRY("F32", "[1]", "[0,4]"), 5, "tensors end at 4 of 5 bytes");
    REFUSE(ENTRY("F32", "[1]", "[4,8]"), 8, "begins at 4, the tensor before ends at 0");
    REFUSE("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
           "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
           8, "begins at 0, the tensor before ends at 4");
    REFUSE("{\"__metadata__\":{\"a\":3}}", 0, "texts only");
    REFUSE("{\"__metadata__\":[]}", 0, "must be an object");
    REFUSE("{\"../a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
           "is no name for a tensor");
    TEST_REFUSED(grt_safetensors_load("/nowhere/at/all"), GRT_NO_INPUT, "/nowhere/at/all");
}

static void round_trip(void **state) {
    (void)state;
    char path[] = "/tmp/gpurt-safetensors-XXXXXX";
    close(mkstemp(path));
    struct grt_archive *a = grt_archive_create();
    const uint64_t shape[2] = {3, 5};
    // Bytes before words: written the other way round, so that words lie at multiples of four.
    for (uint32_t i = 0; i < 15; i++) {
        static const enum grt_dtype order[] = {GRT_U8, GRT_F16, GRT_F32};
        char name[32];
        snprintf(name, sizeof name, "layers.%u.weight", i);
        struct grt_archive_tensor *t = grt_archive_add(a, name, order[i % 3], 2, shape, NULL);
        memset(t->data, (int)i + 1, t->bytes);
    }
    assert_true(grt_archive_set_whole(a, "step", -5) && grt_archive_set_real(a, "loss", 0.1));
    assert_true(grt_archive_set_real(a, "close", 1 + 0x1p-52));
    assert_true(grt_safetensors_save(a, path));
    struct grt_archive *b = grt_safetensors_load(path);
    assert_non_null(b);
    assert_int_equal(b->tensor_count, a->tensor_count);
    for (uint32_t i = 0; i < a->tensor_count; i++) {
        const struct grt_archive_tensor *x = &a->tensors[i];
        const struct grt_archive_tensor *y = grt_archive_find(b, x->name);
        assert_true(y && y->dtype == x->dtype && y->rank == 2 && y->shape[1] == 5);
        assert_memory_equal(x->data, y->data, x->bytes);
    }
    assert_int_equal(grt_archive_whole(b, "step", 0), -5);
    assert_true(grt_archive_real(b, "loss", 0) == 0.1);
    assert_true(grt_archive_real(b, "close", 0) == 1 + 0x1p-52);
    assert_int_equal(grt_dtype_size(b->tensors[0].dtype), 4);
    assert_int_equal(grt_dtype_size(b->tensors[14].dtype), 1);
    grt_archive_destroy(&b);
    // Damaged anywhere: refused, or loaded as something whole, but never a crash.
    FILE *file = fopen(path, "rb");
    unsigned char bytes[8192];
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(size > 100 && size < sizeof bytes);
    // Words behind the header lie at multiples of eight, whatever the names.
    assert_int_equal(bytes[0] % 8, 0);
    test_log.quiet = true;
    uint64_t seed = 5;
    uint32_t refused = 0;
    for (uint32_t i = 0; i < 3000; i++) {
        size_t at = test_next(&seed) % size;
        unsigned char before = bytes[at];
        bytes[at] = (unsigned char)test_next(&seed);
        uint32_t errors = test_log.lines[GRT_LOG_ERROR];
        b = grt_safetensors_parse("damaged", bytes, i % 3 ? size : test_next(&seed) % size);
        test_log.expected += test_log.lines[GRT_LOG_ERROR] - errors;
        refused += b == NULL;
        grt_archive_destroy(&b);
        bytes[at] = before;
    }
    assert_true(refused > 1000);
    test_log.quiet = false;
    grt_archive_destroy(&a);
    unlink(path);
}

// Numbers that came as texts, which is all that another format has: what is no number, or too large
// for one, is none.
static void numbers_of_texts(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t whole;
        double real;
    } texts[] = {
        {"12", 12, 12},
        {"-9223372036854775808", INT64_MIN, -0x1p63},
        {"9223372036854775807", INT64_MAX, 0x1p63},
        {"9223372036854775808", 5, 0x1p63},
        {"-9223372036854775809", 5, -0x1p63},
        {"0.1", 5, 0.1},
        {"1e300", 5, 1e300},
        {"12x", 5, 5},
        {"", 5, 5},
    };
    struct grt_archive *archive = grt_archive_create();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_true(grt_archive_set_text(archive, "v", texts[i].text));
        assert_int_equal(grt_archive_whole(archive, "v", 5), texts[i].whole);
        assert_true(grt_archive_real(archive, "v", 5) == texts[i].real);
        assert_string_equal(grt_archive_text(archive, "v", "none"), texts[i].text);
    }
    // A whole number is a real one too, the other way round it is none.
    assert_true(grt_archive_set_whole(archive, "v", -3));
    assert_true(grt_archive_whole(archive, "v", 5) == -3 &&
                grt_archive_real(archive, "v", 5) == -3);
    assert_true(grt_archive_set_real(archive, "v", -3));
    assert_true(grt_archive_whole(archive, "v", 5) == 5 && grt_archive_real(archive, "v", 5) == -3);
    assert_string_equal(grt_archive_text(archive, "v", "none"), "none");
    assert_true(grt_archive_whole(archive, "w", 5) == 5 && grt_archive_real(archive, "w", 5) == 5);
    assert_int_equal(archive->value_count, 1);
    grt_archive_destroy(&archive);
}

// ---- ONNX ----

// Of several mistakes of a recording the first is said, and no file is there.
static void the_first_mistake_sticks(void **state) {
    (void)state;
    char path[64];
    struct grt_archive *a = grt_archive_create();
    struct grt_onnx *o = grt_onnx_create();
    assert_true(a && o);
    snprintf(path, sizeof path, "/tmp/gpurt-test-%ld.onnx", (long)getpid());
    struct grt_onnx_value x = grt_onnx_refuse(o, "no layer %d here", 1);
    assert_true(x.name[0] == '\0' && x.rank == 1 && !x.planes);
    x = grt_onnx_input(o, "x", 1, (const uint64_t[]){3});
    assert_string_equal(x.name, "x");
    grt_onnx_refuse(o, "nor %d", 2);
    grt_onnx_output(o, "y", grt_onnx_map(o, "Relu", x), 1, (const uint64_t[]){3});
    TEST_REFUSED(grt_onnx_save(o, a, path), GRT_UNSUPPORTED, "no layer 1 here");
    assert_null(strstr(grt_last_error(), "nor 2"));
    assert_int_equal(access(path, F_OK), -1);
    grt_onnx_destroy(&o);
    assert_null(o);
    // The same without a mistake is a file.
    o = grt_onnx_create();
    x = grt_onnx_input(o, "x", 1, (const uint64_t[]){3});
    grt_onnx_output(o, "y", grt_onnx_map(o, "Relu", x), 1, (const uint64_t[]){3});
    assert_true(grt_onnx_save(o, a, path));
    assert_int_equal(unlink(path), 0);
    grt_onnx_destroy(&o);
    grt_archive_destroy(&a);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(forms),
    TEST_CASE(lies),
    TEST_CASE(round_trip),
    TEST_CASE(numbers_of_texts),
    TEST_CASE(the_first_mistake_sticks),
};
TEST_SUITE(safetensors, false, cases);
