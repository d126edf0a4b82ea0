// SPDX-License-Identifier: Apache-2.0
// Reading of files from within: numbers of every type, many at a time, faults, filters, bytes by
// their place, maps and attributes.
#include "kits/data_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/half.h"
#include "data/file/filter.h"
#include "data/file/hdf5_put.h"
#include "data/file/map.h"
#include "data/file/tiles.h"

static void types(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t size;
        bool is_float, wide;
    } rows[GRT_ELEMENT_COUNT] = {
        [GRT_ELEMENT_F16] = {"f16", 2, true, false},
        [GRT_ELEMENT_F32] = {"f32", 4, true, false},
        [GRT_ELEMENT_F64] = {"f64", 8, true, true},
        [GRT_ELEMENT_U8] = {"u8", 1, false, false},
        [GRT_ELEMENT_I32] = {"i32", 4, false, true},
        [GRT_ELEMENT_I64] = {"i64", 8, false, true},
        [GRT_ELEMENT_I8] = {"i8", 1, false, false},
        [GRT_ELEMENT_I16] = {"i16", 2, false, false},
        [GRT_ELEMENT_U16] = {"u16", 2, false, false},
        [GRT_ELEMENT_U32] = {"u32", 4, false, true},
        [GRT_ELEMENT_BOOL] = {"bool", 1, false, false},
    };
    for (int i = 0; i < GRT_ELEMENT_COUNT; i++) {
        enum grt_element_type type = (enum grt_element_type)i;
        assert_string_equal(grt_element_text(type), rows[i].text);
        assert_int_equal(grt_element_size(type), rows[i].size);
        assert_int_equal(grt_element_is_float(type), rows[i].is_float);
        assert_int_equal(grt_element_is_wide(type), rows[i].wide);
    }
}

// The i-th number of a type, as it lies in a file of this machine's byte order, and what it is.
static double put(enum grt_element_type type, uint32_t i, void *at) {
    union {
        uint8_t u8;
        int8_t i8;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        float f32;
        double f64;
    } v;
    double is = 0;
    memset(&v, 0, sizeof v);
    switch (type) {
    case GRT_ELEMENT_F16:
        is = ((double)i - 150) * 0.5;
        v.u16 = grt_f16_of_f32((float)is);
        break;
    case GRT_ELEMENT_F32:
        v.f32 = (float)i * 1.1f - 99;
        is = (double)v.f32;
        break;
    case GRT_ELEMENT_F64:
        is = v.f64 = 1e6 + i * 0.1;
        break;
    case GRT_ELEMENT_U8:
        is = v.u8 = (uint8_t)(i * 7);
        break;
    case GRT_ELEMENT_I8:
        is = v.i8 = (int8_t)(i * 7);
        break;
    case GRT_ELEMENT_I16:
        is = v.i16 = (int16_t)(i * 217);
        break;
    case GRT_ELEMENT_U16:
        is = v.u16 = (uint16_t)(i * 217);
        break;
    case GRT_ELEMENT_I32:
        is = v.i32 = (int32_t)(i * 14316557);
        break;
    case GRT_ELEMENT_U32:
        is = v.u32 = i * 14316557;
        break;
    case GRT_ELEMENT_I64:
        v.i64 = ((int64_t)i - 150) * 20000000001;
        is = (double)v.i64;
        break;
    case GRT_ELEMENT_BOOL:
        v.u8 = (uint8_t)(i % 3 == 1 ? 255 : i % 3);
        is = v.u8 != 0;
        break;
    case GRT_ELEMENT_COUNT:
        break;
    }
    memcpy(at, &v, grt_element_size(type));
    return is;
}

// More than are converted at once, from where they are not aligned; each normalised by its own mean
// and scale, which begin at some feature.
static void numbers_of_every_type(void **state) {
    (void)state;
    enum { COUNT = 600, FIRST = 5 };
    static double want[COUNT], wide[COUNT], mean[COUNT + FIRST], scale[COUNT + FIRST];
    static float narrow[COUNT + 1], mean_f32[COUNT + FIRST], scale_f32[COUNT + FIRST];
    static unsigned char bytes[8 * COUNT + 1];
    for (uint32_t k = 0; k < COUNT + FIRST; k++) {
        mean[k] = 3.0 * k;
        scale[k] = 1.0 / (k + 1);
        mean_f32[k] = (float)mean[k];
        scale_f32[k] = (float)scale[k];
    }
    const struct grt_norm norm = {mean, scale, mean_f32, scale_f32};
    for (int t = 0; t < GRT_ELEMENT_COUNT; t++) {
        enum grt_element_type type = (enum grt_element_type)t;
        for (uint32_t i = 0; i < COUNT; i++) {
            want[i] = put(type, i, bytes + 1 + i * grt_element_size(type));
        }
        for (uint32_t count = COUNT - 90; count <= COUNT; count += 45) {
            narrow[count] = 77;
            grt_element_to_f32(type, narrow, bytes + 1, count);
            grt_element_to_f64(type, wide, bytes + 1, count);
            for (uint32_t i = 0; i < count; i++) {
                assert_true(narrow[i] == (float)want[i]);
                assert_true(wide[i] == want[i]);
            }
            grt_element_normalise(type, narrow, bytes + 1, count, &norm, FIRST);
            for (uint32_t i = 0; i < count; i++) {
                double is = (want[i] - mean[i + FIRST]) * scale[i + FIRST];
                assert_true(fabs((double)narrow[i] - is) <= 1e-5 * (1 + fabs(is)));
            }
            assert_true(narrow[count] == 77);
        }
    }
    // What f32 does not hold stays infinite, however near it is brought.
    static const double far[] = {1e300, -1e300, (double)NAN, 1e38};
    const double none[4] = {0};
    double small[4] = {1e-300, 1e-300, 1e-300, 1e-38};
    const struct grt_norm nearer = {.mean = none, .scale = small};
    grt_element_normalise(GRT_ELEMENT_F64, narrow, far, 4, &nearer, 0);
    assert_true(isinf(narrow[0]) && narrow[0] > 0 && isinf(narrow[1]) && narrow[1] < 0);
    assert_true(isnan(narrow[2]) && fabsf(narrow[3] - 1) < 1e-6f);
}

// Where the last digits of 64 bits lie behind what a double holds.
static void whole_numbers_near_a_mean(void **state) {
    (void)state;
    static const int64_t from[] = {INT64_MAX - 40, INT64_MIN, 1ll << 60, -(1ll << 60) - 20, -20};
    for (size_t k = 0; k < sizeof from / sizeof *from; k++) {
        int64_t numbers[40];
        double mean[40], one[40];
        float got[40];
        for (int i = 0; i < 40; i++) {
            numbers[i] = from[k] + i;
            mean[i] = (double)from[k];
            one[i] = 1;
        }
        const struct grt_norm norm = {.mean = mean, .scale = one};
        grt_element_normalise(GRT_ELEMENT_I64, got, numbers, 40, &norm, 0);
        for (int i = 1; i < 40; i++) {
            assert_true(got[i] - got[i - 1] == 1);
        }
    }
}

// Numbers that are classes, and the first that is none with its value.
static void classes_of_numbers(void **state) {
    (void)state;
    static const struct {
        enum grt_element_type type;
        int64_t third;
        uint32_t classes;
        bool good;
        int64_t bad;
    } rows[] = {
        {GRT_ELEMENT_U8, 9, 10, true, 0},
        {GRT_ELEMENT_U8, 10, 10, false, 10},
        {GRT_ELEMENT_U8, 255, 256, true, 0},
        {GRT_ELEMENT_I8, 127, 128, true, 0},
        {GRT_ELEMENT_I8, -1, 128, false, -1},
        {GRT_ELEMENT_I8, -128, 300, false, -128},
        {GRT_ELEMENT_I16, -32768, 65536, false, -32768},
        {GRT_ELEMENT_I16, 32767, 32768, true, 0},
        {GRT_ELEMENT_U16, 65535, 65536, true, 0},
        {GRT_ELEMENT_U16, 65535, 65535, false, 65535},
        {GRT_ELEMENT_I32, -2147483648, 16777216, false, -2147483648},
        {GRT_ELEMENT_U32, 4294967295, 16777216, false, 4294967295},
        {GRT_ELEMENT_I64, 4294967296, 16777216, false, 4294967296},
        {GRT_ELEMENT_I64, INT64_MIN, 16777216, false, INT64_MIN},
        {GRT_ELEMENT_BOOL, 2, 2, true, 0},
        {GRT_ELEMENT_BOOL, 1, 1, false, 1},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        uint32_t size = grt_element_size(rows[k].type), out[4] = {9, 9, 9, 9};
        unsigned char in[1 + 4 * 8] = {0};
        int64_t bad = 77;
        // Little-endian: the low bytes of a number are a shorter one.
        memcpy(in + 1 + 2 * (size_t)size, &rows[k].third, size);
        size_t got = grt_element_to_class(rows[k].type, out, in + 1, 4, rows[k].classes, &bad);
        assert_int_equal(got, rows[k].good ? 4 : 2);
        assert_true(bad == (rows[k].good ? 77 : rows[k].bad));
        assert_int_equal(out[1], 0);
        if (rows[k].good) {
            assert_int_equal(out[2], rows[k].type == GRT_ELEMENT_BOOL ? 1 : rows[k].third);
        } else {
            assert_int_equal(out[2], 9);
        }
    }
    // Floats are none at all.
    int64_t bad = 0;
    uint32_t out;
    assert_int_equal(grt_element_to_class(GRT_ELEMENT_F32, &out, &(float){0}, 1, 10, &bad), 0);
    assert_true(bad == -1);
}

static void bytes_turned(void **state) {
    (void)state;
    static const char *const turned[] = {"abcdefghijkl#", "badcfehgjilk#", "dcbahgfelkji#",
                                         "hgfedcbaijkl#"};
    for (uint32_t k = 0; k < 4; k++) {
        char bytes[] = "abcdefghijkl#";
        grt_element_swap(bytes, 1u << k, k == 3 ? 1 : 12u >> k);
        assert_string_equal(bytes, turned[k]);
    }
}

static void the_first_that_is_not_finite(void **state) {
    (void)state;
    enum { COUNT = 600 };
    static float x[COUNT];
    static const size_t places[] = {0, 1, 254, 255, 256, 257, 511, 512, 598, 599};
    assert_int_equal(grt_not_finite(x, COUNT), COUNT);
    assert_int_equal(grt_not_finite(x, 0), 0);
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        x[places[k]] = k % 3 == 0 ? NAN : k % 3 == 1 ? INFINITY : -INFINITY;
        x[COUNT - 1] = NAN;
        assert_int_equal(grt_not_finite(x, COUNT), places[k]);
        assert_int_equal(grt_not_finite(x, places[k]), places[k]);  // it lies behind these
        x[places[k]] = x[COUNT - 1] = 3.4028234e38f;
    }
}

static void the_first_fault_stays(void **state) {
    (void)state;
    struct grt_fault fault = {0};
    char many[2000];
    assert_false(grt_fault(&fault, GRT_IO, "%d of %s", 1, "two"));
    assert_false(grt_fault(&fault, GRT_BAD_DATA, "later"));
    assert_int_equal(fault.status, GRT_IO);
    assert_string_equal(fault.text, "1 of two");
    fault = (struct grt_fault){0};
    memset(many, 'm', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    assert_false(grt_fault(&fault, GRT_IO, "%s", many));
    assert_int_equal(strlen(fault.text), sizeof fault.text - 1);
    fault = (struct grt_fault){0};
    assert_false(grt_fault_truncated(&fault, 10, 6));
    assert_int_equal(fault.status, GRT_BAD_DATA);
    assert_string_equal(fault.text, "the file ends at byte 10, 6 bytes before the end of its data: "
                                    "it was truncated while it was being read");
}

static int file_of(const char *name, const void *bytes, size_t size) {
    int fd = open(data_kit_path(name), O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    return fd;
}

static void bytes_by_their_place(void **state) {
    (void)state;
    static const struct {
        uint64_t size, offset;
        const char *wrong;
    } rows[] = {
        {4, 3, NULL},
        {10, 0, NULL},
        {4, 6, NULL},
        {0, 100, NULL},
        {4, 7, "the file ends at byte 10, 1 bytes before"},
        {11, 0, "the file ends at byte 10, 1 bytes before"},
        {4, 10, "the file ends at byte 10, 4 bytes before"},
        {3, 20, "the file ends at byte 10, 13 bytes before"},
    };
    int fd = file_of("digits", "0123456789", 10);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_fault fault = {0};
        char into[16] = "################", *end = into + rows[i].size;
        bool good = grt_read_bytes(fd, into, rows[i].size, rows[i].offset, &fault);
        assert_int_equal(good, rows[i].wrong == NULL);
        assert_int_equal(*end, '#');
        if (rows[i].wrong) {
            assert_int_equal(fault.status, GRT_BAD_DATA);
            assert_non_null(strstr(fault.text, rows[i].wrong));
        } else if (rows[i].size > 0) {
            assert_memory_equal(into, "0123456789" + rows[i].offset, rows[i].size);
        }
    }
    close(fd);
    struct grt_fault fault = {0};
    char byte[4];
    assert_false(grt_read_bytes(fd, byte, 4, 7, &fault));
    assert_int_equal(fault.status, GRT_IO);
    assert_string_equal(fault.text, "reading 4 bytes at 7 failed: Bad file descriptor");
}

// ---- filters ----

enum { SIZE = 4 };
#define S GRT_FILTER_SHUFFLE
#define D GRT_FILTER_DEFLATE

static size_t shuffle(unsigned char *bytes, size_t size) {
    unsigned char out[64];
    size_t n = size / SIZE;
    memcpy(out, bytes, size);
    for (size_t i = 0; i < n * SIZE; i++) {
        out[i % SIZE * n + i / SIZE] = bytes[i];
    }
    memcpy(bytes, out, size);
    return size;
}

static size_t deflated(unsigned char *bytes, size_t size) {
    unsigned char out[256];
    uLongf length = sizeof out;
    assert_int_equal(compress(out, &length, bytes, (uLong)size), Z_OK);
    memcpy(bytes, out, length);
    return length;
}

// Every list of filters with every choice of those that were left out of a chunk: the bytes come
// back, none is written behind them, and those stored stay. Some bytes fill no element.
static void filters_undone(void **state) {
    (void)state;
    static const struct {
        uint32_t count;
        enum grt_filter filters[GRT_MAX_FILTERS];
    } lists[] = {{0, {0}}, {1, {S}}, {1, {D}}, {2, {S, D}}, {3, {S, S, D}}, {4, {S, S, S, D}}};
    for (uint32_t bytes = 12; bytes <= 14; bytes += 2) {
        for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
            struct grt_array array = {.name = "x",
                                      .element = {.type = GRT_ELEMENT_F32},
                                      .tile_bytes = bytes,
                                      .filter_count = lists[k].count};
            memcpy(array.filters, lists[k].filters, sizeof array.filters);
            for (uint32_t skipped = 0; skipped < 1u << lists[k].count; skipped++) {
                unsigned char stored[256] = "ABCDEFGHIJKLmn", before[256], out[20], spare[20];
                size_t size = bytes;
                for (uint32_t i = 0; i < lists[k].count; i++) {
                    bool skip = skipped >> i & 1;
                    size = skip                       ? size
                           : lists[k].filters[i] == S ? shuffle(stored, size)
                                                      : deflated(stored, size);
                }
                memcpy(before, stored, sizeof before);
                memset(out, 0xee, sizeof out);
                memset(spare, 0xee, sizeof spare);
                const struct grt_tile tile = {.stored = (uint32_t)size, .skipped = skipped};
                struct grt_fault fault = {0};
                assert_true(grt_filter_undo(&array, &tile, stored, out, spare, &fault));
                assert_memory_equal(out, "ABCDEFGHIJKLmn", bytes);
                assert_memory_equal(stored, before, sizeof before);
                for (uint32_t i = bytes; i < sizeof out; i++) {
                    assert_true(out[i] == 0xee && spare[i] == 0xee);
                }
            }
        }
    }
}

// Bytes that are no chunk of that size, and how it is said.
static void filters_of_other_sizes(void **state) {
    (void)state;
    static const struct {
        uint32_t count;
        enum grt_filter filters[2];
        uint32_t bytes;  // before filters, of 12
        const char *wrong;
    } rows[] = {
        {0, {0}, 11, "a chunk of 'x' has 11 bytes in place of 12"},
        {0, {0}, 13, "a chunk of 'x' has 13 bytes in place of 12"},
        {1, {S}, 8, "a chunk of 'x' has 8 bytes in place of 12"},
        {1, {S}, 16, "a chunk of 'x' has 16 bytes in place of 12"},
        {1, {D}, 11, "a chunk of 'x' is damaged: 11 of 12 bytes could be inflated"},
        {1, {D}, 13, "a chunk of 'x' is damaged: 12 of 12 bytes could be inflated"},
        {2, {S, D}, 8, "a chunk of 'x' is damaged: 8 of 12 bytes could be inflated"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_array array = {.name = "x",
                                  .element = {.type = GRT_ELEMENT_F32},
                                  .tile_bytes = 12,
                                  .filter_count = rows[i].count};
        memcpy(array.filters, rows[i].filters, sizeof rows[i].filters);
        unsigned char stored[256] = "ABCDEFGHIJKLmnop", out[16], spare[12];
        bool packed = rows[i].count > 0 && rows[i].filters[rows[i].count - 1] == D;
        memset(out, 0xee, sizeof out);
        const struct grt_tile tile = {.stored = packed ? (uint32_t)deflated(stored, rows[i].bytes)
                                                       : rows[i].bytes};
        struct grt_fault fault = {0};
        assert_false(grt_filter_undo(&array, &tile, stored, out, spare, &fault));
        assert_int_equal(fault.status, GRT_BAD_DATA);
        assert_string_equal(fault.text, rows[i].wrong);
        assert_true(out[12] == 0xee && out[15] == 0xee);
    }
    // How many times its bytes a chunk may have, by its last filter.
    static const uint64_t most[] = {1, 1032, 88, 65536};
    for (uint32_t f = 0; f < 4; f++) {
        struct grt_array array = {.filter_count = 2, .filters = {S, (enum grt_filter)f}};
        assert_int_equal(grt_filter_most(&array), most[f]);
        array.filter_count = 0;
        assert_int_equal(grt_filter_most(&array), 1);
    }
}

// ---- maps ----

static struct grt_file_map *map_of(const char *name, int *fd) {
    static const unsigned char zeros[8192];
    *fd = file_of(name, zeros, sizeof zeros);
    struct grt_file_map *map = grt_map_create(*fd, sizeof zeros);
    assert_non_null(map);
    return map;
}

// One that is closed leaves the others theirs; a file that lost its end and has it back is one that
// the disk did not give; and the next file in that place is whole.
static void faults_of_several_maps(void **state) {
    (void)state;
    int fds[3];
    struct grt_fault fault = {0};
    struct grt_file_map *a = map_of("a", &fds[0]), *b = map_of("b", &fds[1]);
    assert_true(grt_map_check(a, &fault) && grt_map_check(b, &fault));
    grt_map_destroy(&a);
    assert_null(a);
    grt_map_destroy(&a);
    assert_int_equal(ftruncate(fds[1], 100), 0);
    assert_int_equal(((const volatile unsigned char *)grt_map_bytes(b))[5000], 0);
    assert_false(grt_map_check(b, &fault));
    assert_int_equal(fault.status, GRT_BAD_DATA);
    assert_non_null(strstr(fault.text, "the file ends at byte 100, 8092 bytes before"));
    assert_int_equal(ftruncate(fds[1], 8192), 0);
    fault = (struct grt_fault){0};
    assert_false(grt_map_check(b, &fault));
    assert_int_equal(fault.status, GRT_IO);
    assert_non_null(strstr(fault.text, "the disk does not give a part of the file"));
    grt_map_destroy(&b);
    struct grt_file_map *c = map_of("c", &fds[2]);
    fault = (struct grt_fault){0};
    assert_true(grt_map_check(c, &fault));
    grt_map_destroy(&c);
    assert_null(grt_map_create(fds[2], 0));
    for (int i = 0; i < 3; i++) {
        close(fds[i]);
    }
}

// There is room for 64: a data set beyond them is read as well, and a place is used again.
static void maps_of_many_files(void **state) {
    (void)state;
    enum { MOST = 64, ROWS = 50 };
    struct grt_file_map *maps[MOST + 1] = {NULL};
    int fd;
    maps[0] = map_of("many", &fd);
    for (int i = 1; i < MOST; i++) {
        maps[i] = grt_map_create(fd, 8192);
        assert_non_null(maps[i]);
    }
    assert_null(grt_map_create(fd, 8192));
    const char *path = data_kit_path("x.h5");
    data_kit_write(path, true, &(struct data_kit_set){.name = "x", .shape = {ROWS, 3}});
    for (int i = 0; i < 2; i++) {
        struct grt_dataset *data = data_kit_open_x(path);
        assert_non_null(data);
        struct grt_loader *loader =
            grt_loader_create(grt_loader_desc(.data = data, .part = GRT_PART_ALL, .batch = ROWS,
                                              .shuffle = true, .seed = 3));
        struct grt_batch batch = {0};
        uint32_t rows[ROWS];
        assert_true(loader && grt_loader_next(loader, &batch));
        assert_true(grt_loader_order(loader, 0, 0, ROWS, rows));
        for (uint32_t k = 0; k < ROWS * 3; k++) {
            assert_true((double)batch.x[k] == data_kit_value(rows[k / 3] * 3 + k % 3));
        }
        grt_loader_destroy(&loader);
        grt_dataset_close(&data);
        grt_map_destroy(&maps[7]);
    }
    for (int i = 0; i < MOST; i++) {
        grt_map_destroy(&maps[i]);
    }
    close(fd);
}

// ---- attributes ----

// Texts of an attribute are as long as the longest, and fit where they have 60000 bytes together.
static void texts_of_attributes(void **state) {
    (void)state;
    static const struct {
        uint32_t count;
        size_t length;
        bool fits;
    } rows[] = {{1000, 59, true}, {1000, 60, false}, {1, 59999, true}, {1, 60000, false}};
    char *text = test_alloc(60001);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hid_t file = H5Fcreate(data_kit_path("texts.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        const char *texts[1000];
        memset(text, 't', rows[i].length);
        text[rows[i].length] = '\0';
        for (uint32_t k = 0; k < rows[i].count; k++) {
            texts[k] = k == 0 ? text : "short";
        }
        bool fits = !rows[i].fits;
        assert_true(grt_attribute_put_texts(file, "names", texts, rows[i].count, &fits));
        assert_int_equal(fits, rows[i].fits);
        assert_int_equal(H5Aexists(file, "names") > 0, rows[i].fits);
        assert_true(rows[i].fits || grt_attribute_put_texts(file, "names", texts, 1000, NULL));
        if (rows[i].fits) {
            hid_t id = H5Aopen(file, "names", H5P_DEFAULT), type = H5Aget_type(id);
            assert_int_equal(H5Tget_size(type), rows[i].length + 1);
            char *all = test_alloc(60000);
            assert_true(H5Aread(id, type, all) >= 0);
            assert_string_equal(all, text);
            if (rows[i].count > 1) {
                assert_string_equal(all + 999 * (rows[i].length + 1), "short");
            }
            free(all);
            H5Tclose(type);
            H5Aclose(id);
        }
        H5Fclose(file);
    }
    free(text);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(types),
    TEST_CASE(numbers_of_every_type),
    TEST_CASE(whole_numbers_near_a_mean),
    TEST_CASE(classes_of_numbers),
    TEST_CASE(bytes_turned),
    TEST_CASE(the_first_that_is_not_finite),
    TEST_CASE(the_first_fault_stays),
    DATA_CASE(bytes_by_their_place),
    TEST_CASE(filters_undone),
    TEST_CASE(filters_of_other_sizes),
    DATA_CASE(faults_of_several_maps),
    DATA_CASE(maps_of_many_files),
    DATA_CASE(texts_of_attributes),
};
TEST_SUITE(element, false, cases);
