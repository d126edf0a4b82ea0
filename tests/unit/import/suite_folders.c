// SPDX-License-Identifier: Apache-2.0
// Folders of images: their classes and parts, what is left out and what is said of it, by one
// thread and by several. Pixels of JPEG and of other sizes: tests/cli/data/import_sources.py.
#include "kits/data_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "gpurt/import.h"

static char top[256];

static const char *in(const char *name) {
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", top, name);
    return path;
}

// Makes the folders of a path too.
static void put(const char *name, const void *bytes, size_t size) {
    char path[512];
    snprintf(path, sizeof path, "%s", in(name));
    for (char *slash = strchr(path + strlen(top) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static size_t chunk(unsigned char *to, const char *name, const void *body, uint32_t size) {
    for (int i = 0; i < 4; i++) {
        to[i] = (unsigned char)(size >> (24 - 8 * i));
    }
    memcpy(to + 4, name, 4);
    memcpy(to + 8, body, size);
    uint32_t sum = (uint32_t)crc32(0, to + 4, size + 4);
    for (int i = 0; i < 4; i++) {
        to[8 + size + (uint32_t)i] = (unsigned char)(sum >> (24 - 8 * i));
    }
    return size + 12;
}

enum { GRAY = 0, RGB = 2, GRAY_ALPHA = 4, RGB_ALPHA = 6 };

// A PNG of one colour, whose bytes are those given; of 8 bits, or of 16.
static size_t png(unsigned char *to, uint8_t width, uint8_t height, uint8_t kind, uint8_t bits,
                  const uint8_t *colour) {
    static const uint32_t channels[] = {1, 0, 3, 0, 2, 0, 4};
    unsigned char head[13] = {0, 0, 0, width, 0, 0, 0, height, bits, kind}, lines[8192];
    unsigned char packed[1024];
    uint32_t pixel = channels[kind] * bits / 8;
    size_t size = 0;
    for (uint32_t y = 0; y < height; y++) {
        lines[size++] = 0;
        for (uint32_t x = 0; x < width; x++, size += pixel) {
            for (uint32_t c = 0; c < pixel; c++) {
                lines[size + c] = colour[c * 8 / bits];
            }
        }
    }
    uLongf length = sizeof packed;
    assert_int_equal(compress(packed, &length, lines, (uLong)size), Z_OK);
    memcpy(to, "\x89PNG\r\n\x1a\n", 8);  // NOLINT(bugprone-not-null-terminated-result): bytes
    size_t at = 8 + chunk(to + 8, "IHDR", head, 13);
    at += chunk(to + at, "IDAT", packed, (uint32_t)length);
    return at + chunk(to + at, "IEND", "", 0);
}

static void picture(const char *name, uint8_t kind, uint8_t bits, uint8_t shade) {
    unsigned char bytes[2048];
    const uint8_t colour[4] = {shade, (uint8_t)(shade + 1), (uint8_t)(shade + 2), 9};
    const size_t size = png(bytes, 3, 2, kind, bits, colour);
    put(name, bytes, size);
}

static char notes[4096];
static int note_count;

static void hear(const char *text) {
    size_t used = strlen(notes);
    snprintf(notes + used, sizeof notes - used, "%s\n", text);
    note_count++;
}

static bool import(struct grt_import_desc desc, struct grt_import_result *result) {
    notes[0] = '\0';
    note_count = 0;
    desc.source = desc.source ? desc.source : top;
    desc.path = data_kit_path("out.h5");
    desc.note = hear;
    return grt_data_import(&desc, result);
}

static int begin(void **state) {
    if (data_kit_begin(state)) {
        return -1;
    }
    snprintf(top, sizeof top, "%s", data_kit_path("tree"));
    return mkdir(top, 0700);
}

// First bytes of the images of a data set, a letter of x for each, and its labels.
static void holds(const char *group, const char *shades, const char *labels) {
    char x_name[32], y_name[32];
    snprintf(x_name, sizeof x_name, "%sx", group);
    snprintf(y_name, sizeof y_name, "%sy", group);
    struct grt_file_info *info = grt_file_info_create(data_kit_path("out.h5"));
    size_t rows = 0, width = 0;
    assert_non_null(info);
    for (uint32_t i = 0; i < info->count; i++) {
        if (strcmp(info->arrays[i].name, x_name) == 0) {
            rows = info->arrays[i].shape[0];
            width = info->arrays[i].bytes / rows;
        }
    }
    grt_file_info_destroy(&info);
    assert_int_equal(rows, strlen(shades));
    float *x = data_kit_read(data_kit_path("out.h5"), x_name);
    float *y = data_kit_read(data_kit_path("out.h5"), y_name);
    for (size_t i = 0; i < rows; i++) {
        assert_int_equal(x[i * width], shades[i]);
        assert_int_equal(y[i], labels[i] - '0');
    }
    free(x);
    free(y);
}

// Classes and files by the order of their names, hidden ones and others left out; the same by one
// thread and by many.
static void classes_and_parts(void **state) {
    (void)state;
    struct grt_import_result result;
    picture("train/b/2.png", RGB, 8, 'B');
    picture("train/b/10.PNG", RGB, 8, 'C');
    picture("train/a/z.png", RGB, 8, 'A');
    picture("train/c/.hidden.png", RGB, 8, 'H');
    picture("train/c/x.png", RGB, 8, 'D');
    picture("train/.hidden/x.png", RGB, 8, 'H');
    picture("test/b/1.png", RGB, 8, 'T');
    picture("val/a/1.png", RGB, 8, 'V');
    picture("valid/a/1.png", RGB, 8, 'W');  // a fourth part
    picture("other/a/1.png", RGB, 8, 'O');
    put("train/a/notes.txt", "x", 1);
    put("train/notes.png", "x", 1);
    for (uint32_t threads = 1; threads <= 4; threads += 3) {
        assert_true(import((struct grt_import_desc){.threads = threads}, &result));
        assert_string_equal(result.kind, "folder of images");
        assert_true(result.rows == 6 && result.classes == 3 && result.left_out == 0);
        assert_true(result.height == 2 && result.width == 3 && result.channels == 3);
        assert_int_equal(note_count, 0);
        holds("", "ACBD", "0112");
        holds("test/", "T", "1");
        holds("validation/", "V", "0");
    }
    picture("test/d/1.png", RGB, 8, 'T');
    TEST_REFUSED(import((struct grt_import_desc){0}, &result), GRT_BAD_DATA,
                 "test/d: no class of that name among those to train");
}

// Every form of a picture, as three channels or one.
static void forms_of_pictures(void **state) {
    (void)state;
    struct grt_import_result result;
    picture("a/1.png", GRAY, 8, 'A');
    picture("a/2.png", GRAY_ALPHA, 8, 'B');
    picture("a/3.png", RGB, 8, 'C');
    picture("a/4.png", RGB_ALPHA, 8, 'D');
    picture("a/5.png", GRAY, 16, 'E');
    picture("a/6.png", RGB, 16, 'F');
    for (uint32_t threads = 1; threads <= 4; threads += 3) {
        assert_true(import((struct grt_import_desc){.threads = threads}, &result));
        holds("", "ABCDEF", "000000");
        // Of each that has more bits it is said, once.
        assert_int_equal(note_count, 2);
        assert_non_null(strstr(notes, "a/5.png: 16 bits a channel; 8 are kept\n"));
        assert_non_null(strstr(notes, "a/6.png: 16 bits a channel; 8 are kept\n"));
        float *x = data_kit_read(data_kit_path("out.h5"), "x");
        for (int i = 0; i < 6; i++) {
            bool gray = i == 0 || i == 1 || i == 4;
            assert_true(x[i * 18 + 1] == (float)('A' + i + !gray));
            assert_true(x[i * 18 + 17] == (float)('A' + i + 2 * !gray));
        }
        free(x);
        assert_true(import((struct grt_import_desc){.threads = threads, .gray = true}, &result));
        assert_int_equal(result.channels, 1);
        x = data_kit_read(data_kit_path("out.h5"), "x");
        for (int i = 0; i < 6; i++) {
            // The middle one of three neighbours, about.
            bool gray = i == 0 || i == 1 || i == 4;
            assert_in_range((int)x[i * 6], 'A' + i, 'A' + i + !gray);
        }
        free(x);
    }
}

// What cannot be read is left out and named, however many threads look; the rest moves up.
static void what_is_left_out(void **state) {
    (void)state;
    struct grt_import_result result;
    unsigned char bytes[2048];
    picture("a/1.png", RGB, 8, 'A');
    put("a/2.png", "", 0);
    put("a/3.png", "no picture", 10);
    picture("a/4.png", RGB, 8, 'B');
    size_t size = png(bytes, 3, 2, RGB, 8, (const uint8_t *)"Czz");
    put("b/1.png", bytes, size - 20);
    put("b/2.jpg", bytes, size);  // what it is its first bytes say
    put("b/3.jpeg", "\xff\xd8\xff", 3);
    for (uint32_t threads = 1; threads <= 4; threads += 3) {
        assert_true(import((struct grt_import_desc){.threads = threads}, &result));
        assert_true(result.rows == 3 && result.left_out == 4 && result.classes == 2);
        holds("", "ABC", "001");
        assert_int_equal(note_count, 4);
        assert_non_null(strstr(notes, "a/2.png: has no bytes; left out\n"));
        assert_non_null(strstr(notes, "a/3.png: neither PNG nor JPEG; left out\n"));
        assert_non_null(strstr(notes, "b/1.png: PNG: "));
        assert_non_null(strstr(notes, "b/3.jpeg: neither PNG nor JPEG; left out\n"));
    }
    put("b/2.jpg", "", 0);
    put("a/1.png", "", 0);
    put("a/4.png", "", 0);
    TEST_REFUSED(import((struct grt_import_desc){0}, &result), GRT_BAD_DATA,
                 "tree: no image of it can be read");
    assert_int_equal(access(data_kit_path("out.h5"), F_OK), 0);  // that of before
}

// Images of other sizes are refused by name, or brought to one.
static void images_of_two_sizes(void **state) {
    (void)state;
    struct grt_import_result result;
    unsigned char bytes[2048];
    put("a/none.txt", "x", 1);
    TEST_REFUSED(import((struct grt_import_desc){0}, &result), GRT_BAD_DATA,
                 "tree: its folders have no .png and no .jpg");
    picture("a/1.png", RGB, 8, 'A');
    const size_t size = png(bytes, 7, 4, RGB, 8, (const uint8_t *)"BBB");
    put("b/1.png", bytes, size);
    for (uint32_t threads = 1; threads <= 4; threads += 3) {
        TEST_REFUSED(import((struct grt_import_desc){.threads = threads}, &result), GRT_BAD_DATA,
                     "b/1.png: 4x7 pixels, and images before it are 2x3: --size N makes all alike");
        assert_true(import((struct grt_import_desc){.threads = threads, .size = 5}, &result));
        assert_true(result.height == 5 && result.width == 5 && result.rows == 2);
        holds("", "AB", "01");
        float *x = data_kit_read(data_kit_path("out.h5"), "x");
        for (int i = 0; i < 75; i++) {
            assert_true(x[i] == (float)('A' + i % 3) && x[75 + i] == 'B');
        }
        free(x);
    }
}

#define FOLDERS_CASE(function)                                                                     \
    { #function, function, begin, data_kit_end, NULL }

static const struct CMUnitTest cases[] = {
    FOLDERS_CASE(classes_and_parts),
    FOLDERS_CASE(forms_of_pictures),
    FOLDERS_CASE(what_is_left_out),
    FOLDERS_CASE(images_of_two_sizes),
};
TEST_SUITE(folders, false, cases);
