// SPDX-License-Identifier: Apache-2.0
// CIFAR's batches and pickles, made byte by byte: what is taken, and what is said of what is not.
// Files as programs write them: tests/cli/data/import_sources.py.
#include "kits/data_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/import.h"

static const char *put(const char *name, const void *bytes, size_t size) {
    const char *path = data_kit_path(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
    return path;
}

static uint64_t told[2];
static int times;

static void tell(uint64_t done, uint64_t of) {
    told[0] = done;
    told[1] = of;
    times++;
}

static bool stop(void) {
    return true;
}

// Records of one label, 32 x 32 pixels, plane by plane.
static void batches(void **state) {
    (void)state;
    enum { RECORD = 3073 };
    static unsigned char bytes[3 * RECORD];
    struct grt_import_result result;
    char folder[256], into[256];
    snprintf(folder, sizeof folder, "%s", data_kit_path("c10"));
    snprintf(into, sizeof into, "%s", data_kit_path("i.h5"));
    assert_int_equal(mkdir(folder, 0700), 0);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)(i % RECORD == 0 ? i / RECORD * 4 : i % 251);
    }
    put("c10/data_batch_1.bin", bytes, 2 * RECORD);
    put("c10/test_batch.bin", bytes, 3 * RECORD);
    const struct grt_import_desc desc = {.source = folder, .path = into, .progress = tell};
    assert_true(grt_data_import(&desc, &result));
    assert_string_equal(result.kind, "CIFAR-10, binary");
    assert_true(result.rows == 5 && result.classes == 10 && result.left_out == 0);
    assert_true(told[0] == 5 && told[1] == 5 && times == 2);
    float *x = data_kit_read(desc.path, "x"), *y = data_kit_read(desc.path, "test/y");
    assert_true(x[0] == 1 && x[1] == 1025 % 251 && x[2] == 2049 % 251 && x[3] == 2);
    assert_true(y[0] == 0 && y[1] == 4 && y[2] == 8);
    free(x);
    free(y);
    // Names, blank lines aside, are as many as there are classes.
    put("c10/batches.meta.txt", "a\r\n\nb\nc", 7);
    TEST_REFUSED(grt_data_import(&desc, &result), GRT_BAD_DATA,
                 "c10/batches.meta.txt: 3 names, and there are 10 classes");
    put("c10/batches.meta.txt", "a\r\n\nb\nc\nd\ne\nf\ng\nh\ni\nj", 21);
    assert_true(grt_data_import(&desc, &result));
    struct grt_file_info *info = grt_file_info_create(desc.path);
    assert_non_null(info);
    assert_string_equal(info->made_by, "CIFAR-10, binary");
    assert_int_equal(info->class_name_count, 10);
    assert_string_equal(info->class_names[0], "a");
    assert_string_equal(info->class_names[9], "j");
    grt_file_info_destroy(&info);
    bytes[RECORD] = 9;
    put("c10/data_batch_1.bin", bytes, 2 * RECORD);
    assert_true(grt_data_import(&desc, &result));
    bytes[RECORD] = 10;
    put("c10/data_batch_1.bin", bytes, 2 * RECORD);
    TEST_REFUSED(grt_data_import(&desc, &result), GRT_BAD_DATA,
                 "data_batch_1.bin: record 1: its label is of no class");
    put("c10/data_batch_1.bin", bytes, RECORD - 1);
    TEST_REFUSED(grt_data_import(&desc, &result), GRT_BAD_DATA,
                 "data_batch_1.bin: 3072 bytes are no whole number of records of 3073");
    put("c10/data_batch_1.bin", bytes, 0);
    TEST_REFUSED(grt_data_import(&desc, &result), GRT_BAD_DATA, "0 bytes are no whole number");
    put("c10/data_batch_1.bin", bytes, RECORD);
    struct grt_import_desc other = desc;
    other.stop = stop;
    other.path = data_kit_path("never.h5");
    TEST_REFUSED(grt_data_import(&other, &result), GRT_IO, "never.h5: not written: interrupted");
    assert_int_equal(access(other.path, F_OK), -1);
    other = desc;
    other.size = IMPORT_MOST_SIDE + 1;
    TEST_REFUSED(grt_data_import(&other, &result), GRT_INVALID, "a size of at most 16384");
    other.size = IMPORT_MOST_SIDE;
    assert_true(grt_data_import(&other, &result));
    other.source = data_kit_path("gone");
    TEST_REFUSED(grt_data_import(&other, &result), GRT_NO_INPUT, "gone: No such file");
    other.source = put("text", "x", 1);
    TEST_REFUSED(grt_data_import(&other, &result), GRT_BAD_DATA, "text: none of CIFAR-10");
    // What begins as HDF5 does; a file of a byte less is none.
    other.source = put("like.h5", "\x89HDF\r\n\x1a\n", 8);
    TEST_REFUSED(grt_data_import(&other, &result), GRT_BAD_DATA,
                 "like.h5: an HDF5 file is used as it is, nothing is to be imported: --data ");
    other.source = put("like.h5", "\x89HDF\r\n\x1a\n", 7);
    TEST_REFUSED(grt_data_import(&other, &result), GRT_BAD_DATA, "like.h5: none of CIFAR-10");
}

// ---- pickles ----

#define GOOD "U\4dataU\3abcU\6labels"

static void pickles(void **state) {
    (void)state;
    // Ways to say the dictionary of "data": abc and "labels": 1, 258.
    static const struct {
        const char *bytes;
        size_t size;
        uint64_t at;
    } good[] = {
#define P(text, at) {text, sizeof text - 1, at}
        P("\x80\2}(" GOOD "](K\1M\2\1eu.", 12),
        P("}(" GOOD "](J\1\0\0\0J\2\1\0\0eu.", 10),
        P("(" GOOD "(K\1\x8a\2\2\1ld.", 9),
        P("}"
          "U\4dataU\3abcsU\6labels]K\1aM\2\1as.",
          9),
        P("}(X\4\0\0\0data"
          "C\3abc"
          "\x8c\6labels"
          "K\1M\2\1\x86"
          "u.",
          13),
        P("}q\1(" GOOD "(K\1M\2\1tq\2u.", 12),
        P("}\x94(U\4data\x94T\3\0\0\0abc\x94U\6labels](K\1M\2\1eu.", 15),
        P("}(U\4data(U\1xU\3abcK\7tU\6labels](K\1M\2\1eU\5otherNu.", 14),
        P("}(U\4data"
          "B\3\0\0\0abc"
          "U\6labels(K\1M\2\1tU\1z\x88u.",
          13),
        P("}(U\4datacos\nsystem\nU\3abc\x85RU\6labels](K\1M\2\1eu.", 21),
    };
    struct import_pickle p;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (!import_read_pickle(put("p", good[i].bytes, good[i].size), "labels", &p)) {
            fail_msg("pickle %zu: %s", i, grt_last_error());
        }
        assert_int_equal(p.label_count, 2);
        assert_int_equal(p.labels[0], 1);
        assert_int_equal(p.labels[1], 258);
        if (i != 9) {  // there the longest text is a name of a function
            assert_int_equal(p.bytes, 3);
            assert_int_equal(p.at, good[i].at);
            assert_memory_equal(good[i].bytes + p.at, "abc", 3);
        }
        free(p.labels);
    }
    static const struct {
        const char *bytes;
        size_t size;
        const char *says;
    } bad[] = {
#undef P
#define P(text, says) {text, sizeof text - 1, says}
        P("", "p: no pickle that is understood: it ends at byte 0"),
        P("}", "it ends at byte 1"),
        P("U\5abc.", "it ends at byte 2"),
        P("X\1\0", "it ends at byte 1"),
        P("cos", "it ends at byte 1"),
        P("V", "an operation that is not known at byte 1"),
        P("]a.", "no list to append to"),
        P("a", "nothing on the stack"),
        P("K\1K\2a", "no list to append to"),
        P("s", "nothing on the stack"),
        P("]K\1s", "nothing on the stack"),
        P("K\1\x86", "nothing on the stack"),
        P("K\1t", "no mark"),
        P("]e", "no mark"),
        P("(K\1e", "no list before the mark"),
        P("K\1(K\2e", "no list to append to"),
        P("q\1", "a memo of nothing"),
        P("]r\0\0\x40\0", "a memo of nothing"),
        P("h\1", "a memo that was never made"),
        P("]q\1h\2", "a memo that was never made"),
        P(".", "no dictionary"),
        P("K\1.", "no dictionary"),
        P("]].", "no dictionary"),
        P("}.", "p: a pickle without data and labels"),
        P("}(U\4dataU\3abcu.", "p: a pickle without data and labels"),
        P("}(U\4dataNU\6labels](K\1eu.", "p: a pickle without data and labels"),
        P("}(" GOOD "K\1u.", "p: a pickle without data and labels"),
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        TEST_REFUSED(import_read_pickle(put("p", bad[i].bytes, bad[i].size), "labels", &p),
                     GRT_BAD_DATA, bad[i].says);
    }
    // Whole numbers of up to eight bytes, of either sign.
    static const char wide[] = "}(" GOOD "](J\xff\xff\xff\xff\x8a\0\x8a\x8"
                               "\2\1\0\0\0\0\0\0K\xff\x8a\1\xfe"
                               "eu.";
    static const char wider[] = "}(" GOOD "](\x8a\x9"
                                "\2\1\0\0\0\0\0\0\0eu.";
    assert_true(import_read_pickle(put("p", wide, sizeof wide - 1), "labels", &p));
    assert_true(p.label_count == 5 && p.labels[0] == -1 && p.labels[1] == 0);
    assert_true(p.labels[2] == 258 && p.labels[3] == 255 && p.labels[4] == -2);
    free(p.labels);
    TEST_REFUSED(import_read_pickle(put("p", wider, sizeof wider - 1), "labels", &p), GRT_BAD_DATA,
                 "p: no pickle that is understood: a number of more than 8 bytes at byte ");
    // Names of classes.
    struct import import = {0};
    static const char names[] = "}(U\5names](U\3oneX\3\0\0\0twoeU\3oddK\1U\4list](K\1eu.";
    const char *path = put("p", names, sizeof names - 1);
    assert_true(import_read_pickled_names(&import, path, "names"));
    assert_int_equal(import.classes, 2);
    assert_string_equal(import.names[0], "one");
    assert_string_equal(import.names[1], "two");
    TEST_REFUSED(import_read_pickled_names(&import, path, "none"), GRT_BAD_DATA,
                 "p: a pickle without none");
    TEST_REFUSED(import_read_pickled_names(&import, path, "odd"), GRT_BAD_DATA,
                 "p: a pickle without odd");
    TEST_REFUSED(import_read_pickled_names(&import, path, "list"), GRT_BAD_DATA,
                 "p: a name that is no text");
    free(import.names[0]);
    free(import.names[1]);
    free(import.names);
}

static const struct CMUnitTest cases[] = {
    DATA_CASE(batches),
    DATA_CASE(pickles),
};
TEST_SUITE(pickles, false, cases);
