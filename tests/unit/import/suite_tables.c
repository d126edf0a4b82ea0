// SPDX-License-Identifier: Apache-2.0
// Tables of text: fields, numbers, columns and classes, what is missing, and what is wrong by its
// line. The forms of files as programs write them: tests/cli/data/tables.py.
#include "kits/data_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpurt/direct.h"
#include "gpurt/import.h"

static const char *write_text(const char *name, const char *text, size_t size) {
    const char *path = data_kit_path(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    fclose(file);
    return path;
}

// "x 2: 1 2|3 4", rows of a data set with its number of columns, or "" where there is none.
static void show(const char *path, const char *name, char text[256]) {
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    text[0] = '\0';
    if (H5Lexists(file, name, H5P_DEFAULT) > 0) {
        hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(set);
        hid_t type = H5Dget_type(set);
        hsize_t shape[2] = {0, 1};
        double numbers[256];
        int used = 0;
        H5Sget_simple_extent_dims(space, shape, NULL);
        assert_true(shape[0] * shape[1] <= 256);
        H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
        used = snprintf(text, 256, "%s%d", H5Tget_class(type) == H5T_FLOAT ? "f" : "i",
                        H5Sget_simple_extent_ndims(space));
        for (hsize_t i = 0; i < shape[0] * shape[1]; i++) {
            used += snprintf(text + used, 256 - (size_t)used, "%s%.10g",
                             i % shape[1] == 0 ? "|" : " ", numbers[i]);
        }
        H5Tclose(type);
        H5Sclose(space);
        H5Dclose(set);
    }
    H5Fclose(file);
}

// The names in an attribute of the file, a line each.
static void show_names(const char *path, const char *attribute, char text[256]) {
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t names = H5Aopen(file, attribute, H5P_DEFAULT), type = H5Aget_type(names);
    hid_t space = H5Aget_space(names);
    size_t size = H5Tget_size(type);
    hssize_t count = H5Sget_simple_extent_npoints(space);
    char all[256];
    int used = 0;
    assert_true(size * (size_t)count <= sizeof all);
    H5Aread(names, type, all);
    text[0] = '\0';
    for (hssize_t i = 0; i < count; i++) {
        used +=
            snprintf(text + used, 256 - (size_t)used, "%.*s\n", (int)size, all + (size_t)i * size);
    }
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(names);
    H5Fclose(file);
}

struct trial {
    const char *text;
    struct grt_table_desc desc;
    const char *x, *y, *w;                // as show() has them
    const char *inputs, *aims, *classes;  // names
    uint32_t class_count;
    uint64_t filled;
};

static const char *const a[] = {"a"}, *const b[] = {"b"}, *const ba[] = {"b", "a"};
static const char *const first[] = {"1"}, *const three_one[] = {"3", "1"};
static const char *const known[] = {"no", "yes"};

static const struct trial trials[] = {
    {"a,b,c\n1,2,0.5\n", {0}, "f2|1 2", "f2|0.5", "", "a\nb\n", "c\n", NULL, 0, 0},
    {"1,2,0.5\n3,4,1.5", {0}, "f2|1 2|3 4", "f2|0.5|1.5", "", "1\n2\n", "3\n", NULL, 0, 0},
    // Blanks, blank lines, quotes, and signs of numbers.
    {" a , b,\"c,d\" \r\n\n  +1 ,\"-.5\" ,\t1e3\r\n \n2.,3E-2,7.5\n\n",
     {0},
     "f2|1 -0.5|2 0.03",
     "f2|1000|7.5",
     "",
     "a\nb\n",
     "c,d\n",
     NULL,
     0,
     0},
    {"\"a \"\"b\"\"\",\"c\nd\"\n1,2.5\n",
     {0},
     "f2|1",
     "f2|2.5",
     "",
     "a \"b\"\n",
     "c d\n",
     NULL,
     0,
     0},
    {"a;b,c;d\n1;2;0.5\n", {0}, "f2|1 2", "f2|0.5", "", "a\nb,c\n", "d\n", NULL, 0, 0},
    {"\xef\xbb\xbf"
     "a,b\n1,0.5\n",
     {0},
     "f2|1",
     "f2|0.5",
     "",
     "a\n",
     "b\n",
     NULL,
     0,
     0},
    // Columns by name, by number, in the order asked for.
    {"a,b,c\n1,2,0.5\n",
     {.targets = a, .target_count = 1},
     "f2|2 0.5",
     "i1|1",
     "",
     "b\nc\n",
     "a\n",
     NULL,
     2,
     0},
    {"a,b,c\n1,2,0.5\n",
     {.targets = first, .target_count = 1},
     "f2|2 0.5",
     "i1|1",
     "",
     "b\nc\n",
     "a\n",
     NULL,
     2,
     0},
    {"a,b,c\n1,2,0.5\n",
     {.inputs = ba, .input_count = 2},
     "f2|2 1",
     "f2|0.5",
     "",
     "b\na\n",
     "c\n",
     NULL,
     0,
     0},
    {"a,b,c\n1,2,0.5\n",
     {.targets = ba, .target_count = 2},
     "f2|0.5",
     "f2|2 1",
     "",
     "c\n",
     "b\na\n",
     NULL,
     0,
     0},
    {"a,b,c\n1,2,0.5\n",
     {.targets = b, .target_count = 1, .inputs = three_one, .input_count = 2},
     "f2|0.5 1",
     "i1|2",
     "",
     "c\na\n",
     "b\n",
     NULL,
     3,
     0},
    {"a,b\n1,2\n", {.no_targets = true}, "f2|1 2", "", "", "a\nb\n", "", NULL, 0, 0},
    {"a\n1\n\n2\n", {.no_targets = true, .fill = "9"}, "f2|1|9|2", "", "", "a\n", "", NULL, 0, 1},
    // A column called as another's number is that column.
    {"2,b\nx,0.5\n1,1.5\n",
     {.no_targets = true, .inputs = b, .input_count = 1},
     NULL,
     NULL,
     NULL,
     NULL,
     NULL,
     NULL,
     0,
     0},
    // Weights: the last column is no target then.
    {"a,b,w\n1,2.5,3\n", {.weights = "w"}, "f2|1", "f2|2.5", "f1|3", "a\n", "b\n", NULL, 0, 0},
    {"w,a,b\n3,1,2.5\n", {.weights = "w"}, "f2|1", "f2|2.5", "f1|3", "a\n", "b\n", NULL, 0, 0},
    {"a,w,b\n1,3,2.5\n", {.weights = "2"}, "f2|1", "f2|2.5", "f1|3", "a\n", "b\n", NULL, 0, 0},
    // What is missing, in every word for it.
    {"a,b\n,0.5\nNA,1.5\nN/A,0.5\nNaN,1.5\nnan,0.5\nnull,1.5\nNULL,0.5\n?,1.5\n\"\",1.5\n4,0.5\n",
     {.fill = "-7.5"},
     "f2|-7.5|-7.5|-7.5|-7.5|-7.5|-7.5|-7.5|-7.5|-7.5|4",
     "f2|0.5|1.5|0.5|1.5|0.5|1.5|0.5|1.5|1.5|0.5",
     "",
     "a\n",
     "b\n",
     NULL,
     0,
     9},
    {"a,b,c\n1,,0.5\n,4,1.5\n3,8,0.5\n",
     {.fill = "mean"},
     "f2|1 6|2 4|3 8",
     "f2|0.5|1.5|0.5",
     "",
     "a\nb\n",
     "c\n",
     NULL,
     0,
     2},
    {"a,b\n,0.5\n,1.5\n", {.fill = "0"}, "f2|0|0", "f2|0.5|1.5", "", "a\n", "b\n", NULL, 0, 2},
    // Classes: whole numbers from 0 to one below 2^20 of one target, else numbers.
    {"a,b\n1,0\n1,2\n", {0}, "f2|1|1", "i1|0|2", "", "a\n", "b\n", NULL, 3, 0},
    {"a,b\n1,1048575\n", {0}, "f2|1", "i1|1048575", "", "a\n", "b\n", NULL, 1048576, 0},
    {"a,b\n1,1048576\n", {0}, "f2|1", "f2|1048576", "", "a\n", "b\n", NULL, 0, 0},
    {"a,b\n1,-1\n1,2\n", {0}, "f2|1|1", "f2|-1|2", "", "a\n", "b\n", NULL, 0, 0},
    {"a,b\n1,-0\n1,2\n", {0}, "f2|1|1", "i1|0|2", "", "a\n", "b\n", NULL, 3, 0},
    // Words, in the order of their bytes, numbers among them.
    {"a,b\n1,no\n2,yes\n3,No\n4,no\n",
     {0},
     "f2|1|2|3|4",
     "i1|1|2|0|1",
     "",
     "a\n",
     "b\n",
     "No\nno\nyes\n",
     3,
     0},
    {"a,b\n1,10\n2,x\n3,9\n", {0}, "f2|1|2|3", "i1|0|2|1", "", "a\n", "b\n", "10\n9\nx\n", 3, 0},
    {"a,b\n1,\"x \"\"y\"\"\"\n2,\"p\nq\"\n",
     {0},
     "f2|1|2",
     "i1|1|0",
     "",
     "a\n",
     "b\n",
     "p q\nx \"y\"\n",
     2,
     0},
    {"a,b\n1,yes\n2,yes\n",
     {.class_names = known, .class_count = 2},
     "f2|1|2",
     "i1|1|1",
     "",
     "a\n",
     "b\n",
     "no\nyes\n",
     2,
     0},
};

static void tables(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        const struct trial *t = &trials[i];
        struct grt_table_desc desc = t->desc;
        struct grt_table_result result;
        const char *path = data_kit_path("t.h5");
        desc.source = write_text("t.csv", t->text, strlen(t->text));
        desc.path = path;
        if (!t->x) {
            continue;
        }
        if (!grt_table_import(&desc, &result)) {
            fail_msg("table %zu: %s", i, grt_last_error());
        }
        char x[256], y[256], w[256];
        show(path, "x", x);
        show(path, "y", y);
        show(path, "w", w);
        if (strcmp(x, t->x) != 0 || strcmp(y, t->y) != 0 || strcmp(w, t->w) != 0) {
            fail_msg("table %zu: x %s, y %s, w %s", i, x, y, w);
        }
        char names[256];
        show_names(path, "columns", names);
        assert_string_equal(names, t->inputs);
        assert_string_equal(result.input_names, t->inputs);
        assert_string_equal(result.target_names, t->aims);
        assert_string_equal(result.class_names ? result.class_names : "none",
                            t->classes ? t->classes : "none");
        assert_int_equal(result.classes, t->class_count);
        assert_int_equal(result.filled, t->filled);
        uint32_t columns = 0, aims = 0;
        for (const char *c = t->inputs; *c; c++) {
            columns += *c == '\n';
        }
        for (const char *c = t->aims; *c; c++) {
            aims += *c == '\n';
        }
        assert_int_equal(result.inputs, columns);
        assert_int_equal(result.targets, aims);
        struct grt_file_info *info = grt_file_info_create(path);
        assert_non_null(info);
        assert_string_equal(info->made_by, "a table");
        assert_int_equal(info->classes, t->class_count);
        assert_int_equal(info->class_name_count, t->classes ? t->class_count : 0);
        assert_int_equal(info->arrays[info->count - 1].shape[0], result.rows);
        grt_file_info_destroy(&info);
        grt_table_result_finish(&result);
        assert_true(!result.input_names && !result.target_names && !result.class_names &&
                    result.rows == 0);
        grt_table_result_finish(&result);
    }
    grt_table_result_finish(NULL);
}

static void wrong_tables(void **state) {
    (void)state;
    static const char *const c[] = {"c"}, *const zero[] = {"0"}, *const late[] = {"latte"};
    static const char *const four[] = {"4"}, *const twice[] = {"a", "a"};
    static const struct {
        const char *text;
        struct grt_table_desc desc;
        const char *says;
    } rows[] = {
        {"a,b\n1,2\n3\n", {0}, "t.csv:3: 1 fields, and the first line has 2"},
        {"a,b\n\n\n1,2,3\n", {0}, "t.csv:4: 3 fields, and the first line has 2"},
        {"\"a\nb\",c\n1,\"x\ny\"\n2\n", {0}, "t.csv:5: 1 fields, and the first line has 2"},
        {"a,b\n1,\"2\n", {0}, "t.csv:2: a quote that nothing closes, or text behind it"},
        {"a,b\n1,\"2\"3\n", {0}, "t.csv:2: a quote that nothing closes, or text behind it"},
        {"a,\"b\n1,2\n", {0}, "t.csv:1: a quote that nothing closes, or text behind it"},
        {"a,b\n1,2\nna,4\n", {.fill = "0"}, "t.csv:3: column 'a': 'na' is no number: `inputs`"},
        {"a,b\n--1,2\n", {0}, "t.csv:2: column 'a': '--1' is no number"},
        {"a,b\n.,2\n", {0}, "t.csv:2: column 'a': '.' is no number"},
        {"a,b\n1 2,2\n", {0}, "t.csv:2: column 'a': '1 2' is no number"},
        {"a,b,c\n1,2,3\n4,,6\n", {0}, "t.csv:3: column 'b' has no value: fill 0 or fill mean puts"},
        {"a,b\n1,2\n,4\n",
         {.targets = ba, .target_count = 1, .fill = NULL},
         "t.csv:3: column 'a' has no value"},
        {"a,b\n1,2\n3,NA\n",
         {.fill = "0"},
         "t.csv:3: the target 'b' has no value: targets are not filled, take the line out"},
        {"a,b,c\n1,2,3\n4,?,6\n",
         {.targets = ba, .target_count = 2, .fill = "0"},
         "t.csv:3: the target 'b' has no value"},
        {"a,b,c\n1,2,3\n4,x,6\n",
         {.targets = ba, .target_count = 2},
         "t.csv:3: column 'b': 'x' is no number"},
        {"a,b,w\n1,2,3\n4,5,x\n",
         {.weights = "w", .fill = "0"},
         "t.csv:3: the weight 'w' is no number: weights are not filled, take the line out"},
        {"a,b,w\n1,2,\n", {.weights = "w", .fill = "0"}, "t.csv:2: the weight 'w' is no number"},
        {"a,b\n,0\n,1\n", {.fill = "mean"}, "t.csv: column 'a' has no value at all"},
        {"a,b\n", {0}, "t.csv: no rows behind the names"},
        {"a,b\n\n \n", {0}, "t.csv: no rows behind the names"},
        {"", {0}, "t.csv: it is empty"},
        {"1\n2\n", {0}, "t.csv: one column; inputs and a target are wanted"},
        {"a,b\n1,2\n", {.weights = "a"}, "t.csv: one column; inputs and a target are wanted"},
        {"a,b\n1,2\n", {.targets = c, .target_count = 1}, "t.csv: no column 'c'; the first is 'a'"},
        {"a,b\n1,2\n", {.targets = zero, .target_count = 1}, "t.csv: no column '0'; the first is"},
        {"a,b,c\n1,2,3\n",
         {.inputs = four, .input_count = 1},
         "t.csv: no column '4'; the first is"},
        {"late,b\n1,2\n",
         {.targets = late, .target_count = 1},
         "t.csv: no column 'latte'; did you mean 'late'?"},
        {"weight,b\n1,2\n",
         {.weights = "weigth"},
         "no column 'weigth'; did you mean 'weight'?; `sample_weights=none` leaves weights out"},
        {"a,b\n1,2\n",
         {.weights = "b", .targets = b, .target_count = 1},
         "t.csv: column 'b' is target and weight"},
        {"a,b\n1,2\n",
         {.inputs = b, .input_count = 1},
         "t.csv: column 'b' is input and target or weight"},
        {"a,b,c\n1,2,3\n",
         {.weights = "a", .inputs = a, .input_count = 1},
         "t.csv: column 'a' is input and target or weight"},
        {"a,a,b\n1,2,3\n",
         {0},
         "t.csv: several columns are called 'a': give each a name of its own"},
        {"c,a,a\n1,2,3\n", {.inputs = c, .input_count = 1}, "several columns are called 'a'"},
        {"a,b\n1,yes\n2,x\n",
         {.class_names = known, .class_count = 2},
         "t.csv: the class 'x' is none of the 2 that the network knows"},
        {"a,b\n1,1\n", {.class_names = known, .class_count = 2}, "the class '1' is none of the 2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_table_desc desc = rows[i].desc;
        struct grt_table_result result;
        desc.source = write_text("t.csv", rows[i].text, strlen(rows[i].text));
        desc.path = data_kit_path("never.h5");
        TEST_REFUSED(grt_table_import(&desc, &result), GRT_BAD_DATA, rows[i].says);
        assert_int_equal(access(desc.path, F_OK), -1);
    }
    // Two of one name are no harm where neither is taken; one twice is an input twice.
    struct grt_table_result result;
    const char *table = write_text("t.csv", "a,a,b\n1,2,3\n", 12), *path = data_kit_path("t.h5");
    assert_true(grt_table_import(grt_table_desc(.source = table, .path = path, .inputs = b,
                                                .input_count = 1, .no_targets = true),
                                 &result));
    grt_table_result_finish(&result);
    table = write_text("t.csv", "a,b\n1,2\n", 8);
    assert_true(grt_table_import(
        grt_table_desc(.source = table, .path = path, .inputs = twice, .input_count = 2), &result));
    assert_string_equal(result.input_names, "a\na\n");
    grt_table_result_finish(&result);
    TEST_REFUSED(
        grt_table_import(
            grt_table_desc(.source = write_text("t.csv", "a,b\n1,\0\n", 8), .path = path), &result),
        GRT_BAD_DATA, "t.csv: it is no text: it has bytes of 0");
    static const char *const fills[] = {"", "x", "1x", "inf", "nan", "means"};
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++) {
        char says[64];
        snprintf(says, sizeof says, "fill is a number or mean, not '%s'", fills[i]);
        TEST_REFUSED(grt_table_import(
                         grt_table_desc(.source = table, .path = path, .fill = fills[i]), &result),
                     GRT_CONFIG, says);
    }
    TEST_REFUSED(grt_table_import(grt_table_desc(.source = table), &result), GRT_INVALID,
                 "a source, a path and a result are wanted");
    TEST_REFUSED(grt_table_import(grt_table_desc(.source = table, .path = path), NULL), GRT_INVALID,
                 "a source, a path and a result are wanted");
    TEST_REFUSED(grt_table_import(grt_table_desc(.source = data_kit_path("none.csv"), .path = path),
                                  &result),
                 GRT_NO_INPUT, "none.csv");
    TEST_REFUSED(grt_table_import(grt_table_desc(.source = write_text("t.csv", "a,b\n1,2\n", 8),
                                                 .path = data_kit_path("no/where.h5")),
                                  &result),
                 GRT_NO_OUTPUT, "where.h5");
}

// The most columns, and the longest number.
static void limits(void **state) {
    (void)state;
    enum { MOST = 16384 };
    char *text = test_alloc(2 * MOST + 16);
    for (int more = 0; more < 2; more++) {
        struct grt_table_result result;
        size_t length = 2 * (MOST + (size_t)more);
        for (size_t i = 0; i < length; i++) {
            text[i] = i % 2 ? ',' : '1';
        }
        text[length - 1] = '\n';
        const struct grt_table_desc desc = {.source = write_text("t.csv", text, length),
                                            .path = data_kit_path("t.h5")};
        if (more) {
            TEST_REFUSED(grt_table_import(&desc, &result), GRT_BAD_DATA,
                         "t.csv:1: more than 16384 columns");
            continue;
        }
        assert_true(grt_table_import(&desc, &result));
        assert_int_equal(result.inputs, MOST - 1);
        grt_table_result_finish(&result);
    }
    for (int digits = 127; digits <= 128; digits++) {
        struct grt_table_result result;
        int length = snprintf(text, 2 * MOST, "a,b\n%0*d,2.5\n", digits, 7);
        const struct grt_table_desc desc = {.source = write_text("t.csv", text, (size_t)length),
                                            .path = data_kit_path("t.h5")};
        if (digits == 128) {
            TEST_REFUSED(grt_table_import(&desc, &result), GRT_BAD_DATA, "is no number");
            continue;
        }
        char x[256];
        assert_true(grt_table_import(&desc, &result));
        show(desc.path, "x", x);
        assert_string_equal(x, "f2|7");
        grt_table_result_finish(&result);
    }
    // More rows than there is room for at first.
    size_t used = 0;
    char *rows = test_alloc(64 << 10);
    used += (size_t)snprintf(rows, 64 << 10, "a,b\n");
    for (int i = 0; i < 3200; i++) {
        used += (size_t)snprintf(rows + used, (64 << 10) - used, "%d,%d.5\n", i, 3 * i);
    }
    struct grt_table_result result;
    const char *path = data_kit_path("t.h5");
    assert_true(grt_table_import(
        grt_table_desc(.source = write_text("t.csv", rows, used), .path = path), &result));
    assert_int_equal(result.rows, 3200);
    float *x = data_kit_read(path, "x"), *y = data_kit_read(path, "y");
    for (int i = 0; i < 3200; i++) {
        assert_true(x[i] == (float)i && y[i] == 3 * (float)i + 0.5f);
    }
    free(x);
    free(y);
    grt_table_result_finish(&result);
    free(rows);
    free(text);
}

// Files by their endings: tables and arrays are taken, Parquet is told how it is; others, and what
// is not there, are left to who opens them.
static void forms_of_files(void **state) {
    (void)state;
    struct grt_direct direct;
    static const char *const names[] = {"t.h5",     "t",        "t.CSV",
                                        "t.csv.h5", "none.csv", "none.parquet"};
    for (int i = 0; i < 6; i++) {
        const char *path = i < 4 ? write_text(names[i], "a,b\n1,2\n", 8) : data_kit_path(names[i]);
        assert_true(grt_direct(grt_direct_desc(.path = path), &direct));
        assert_string_equal(direct.path, path);
        assert_false(direct.columns);
    }
    static const char *const tables_of[] = {"t.csv", "t.tsv"};
    for (int i = 0; i < 2; i++) {
        const char *path = write_text(tables_of[i], i ? "a\tb\n1\tx\n" : "a,b\n1,x\n", 8);
        assert_true(grt_direct(grt_direct_desc(.path = path), &direct));
        assert_string_not_equal(direct.path, path);
        assert_string_equal(grt_direct_path(path), direct.path);
        assert_true(direct.columns);
        assert_string_equal(direct.input_names, "a\n");
        assert_string_equal(direct.target_names, "b\n");
        assert_string_equal(direct.class_names, "x\n");
    }
    static const char *const parquets[] = {"a.b.parquet", "t.PQ", "t.Parquet"};
    static const char *const becomes[] = {"a.b.csv'", "t.csv'", "t.csv'"};
    for (int i = 0; i < 3; i++) {
        const char *path = write_text(parquets[i], "PAR1", 4);
        TEST_REFUSED(grt_direct(grt_direct_desc(.path = path), &direct), GRT_BAD_DATA,
                     "Parquet is not read; python3 -c");
        assert_non_null(strstr(grt_last_error(), becomes[i]));
        assert_null(grt_direct_path(NULL));
        test_log.expected++;
    }
    TEST_REFUSED(grt_direct(NULL, &direct), GRT_INVALID, "a path and a result are wanted");
    TEST_REFUSED(grt_direct(grt_direct_desc(.path = "x"), NULL), GRT_INVALID,
                 "a path and a result");
    // One array is x alone: what else is wanted is another file.
    const char *npy = write_text("x.npy", "x", 1);
    static const char *const two[] = {"y.npy", "z.npy"}, *const y[] = {"y"};
    TEST_REFUSED(grt_direct(grt_direct_desc(.path = npy, .inputs = y, .input_count = 1), &direct),
                 GRT_CONFIG, "x.npy is one array, x: leave `inputs` out; several are a .npz");
    for (uint32_t count = 1; count <= 2; count++) {
        TEST_REFUSED(grt_direct(grt_direct_desc(.path = npy, .targets = count > 1 ? two : y,
                                                .target_count = count),
                                &direct),
                     GRT_CONFIG, "x.npy is one array, x: the target is another .npy");
    }
    TEST_REFUSED(grt_direct(grt_direct_desc(.path = npy, .weights = "w"), &direct), GRT_CONFIG,
                 "x.npy is one array, x: the weights are another .npy, `sample_weights=w.npy`");
    TEST_REFUSED(grt_direct(grt_direct_desc(.path = npy), &direct), GRT_BAD_DATA, "x.npy: no .npy");
}

// Other classes that are known make another table. 64 tables are there at a time: the next one
// takes the place of the first, whose file goes; one that fails takes nobody's.
static void places_of_tables(void **state) {
    (void)state;
    struct grt_direct direct;
    static const char *const more[] = {"no", "other", "yes"};
    const char *path = write_text("k.csv", "a,b\n1,no\n2,yes\n", 15);
    char one[512];
    assert_true(
        grt_direct(grt_direct_desc(.path = path, .class_names = known, .class_count = 2), &direct));
    snprintf(one, sizeof one, "%s", direct.path);
    assert_true(
        grt_direct(grt_direct_desc(.path = path, .class_names = more, .class_count = 3), &direct));
    assert_string_not_equal(direct.path, one);
    assert_string_equal(direct.class_names, "no\nother\nyes\n");
    char files[66][512];
    for (int i = 0; i < 66; i++) {
        char name[16], text[16];
        snprintf(name, sizeof name, "f%d.csv", i);
        int length = snprintf(text, sizeof text, "a,b\n%d,0.5\n", i);
        const struct grt_direct_desc desc = {.path = write_text(name, text, (size_t)length)};
        assert_true(grt_direct(&desc, &direct));
        snprintf(files[i], sizeof files[i], "%s", direct.path);
        assert_int_equal(access(files[i], F_OK), 0);
        if (i == 63) {
            const char *bad = write_text("bad.csv", "a,b\n1\n", 6);
            TEST_REFUSED(grt_direct(grt_direct_desc(.path = bad), &direct), GRT_BAD_DATA,
                         "bad.csv:2: 1 fields");
            assert_int_equal(access(files[1], F_OK), 0);
        }
    }
    assert_int_equal(access(one, F_OK), -1);
    for (int i = 0; i < 66; i++) {
        assert_int_equal(access(files[i], F_OK), i < 2 ? -1 : 0);
    }
    // It is taken again, when it is wanted.
    assert_true(grt_direct(grt_direct_desc(.path = data_kit_path("f0.csv")), &direct));
    assert_int_equal(access(direct.path, F_OK), 0);
}

static const struct CMUnitTest cases[] = {
    DATA_CASE(tables),         DATA_CASE(wrong_tables),     DATA_CASE(limits),
    DATA_CASE(forms_of_files), DATA_CASE(places_of_tables),
};
TEST_SUITE(tables, false, cases);
