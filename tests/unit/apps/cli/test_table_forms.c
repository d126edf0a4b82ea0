// SPDX-License-Identifier: Apache-2.0
// Tables, to the byte: every form, what is unknown, too long, quoted or not a number.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/output/table.h"

enum { NAME, OK, COUNT, SIZE, TIME, SHARE, NOTE, COLUMNS };

static const struct table_column columns[COLUMNS] = {
    {"name", "name", NULL, TABLE_TEXT, 0, 6, 8},      {"ok", "ok", NULL, TABLE_FLAG, 0, 0, 0},
    {"count", "n", NULL, TABLE_COUNT, 0, 4, 0},       {"size", "size", NULL, TABLE_BYTES, 0, 0, 0},
    {"time_ms", "time", "ms", TABLE_NUMBER, 2, 0, 0}, {"share", "of", NULL, TABLE_SHARE, 1, 0, 0},
    {NULL, "note", NULL, TABLE_TEXT, 0, 0, 0},
};
#define ALL ((1ull << COLUMNS) - 1)

static const struct table_cell rows[2][COLUMNS] = {
    {TABLE_CELL(.text = "gemm"), TABLE_CELL(.count = 1), TABLE_CELL(.count = 12),
     TABLE_CELL(.count = 1536), TABLE_CELL(.number = 3.14159), TABLE_CELL(.number = 0.0234),
     TABLE_CELL(.text = "fast")},
    {TABLE_CELL(.text = "a|b, \"c\" and more"),
     TABLE_CELL(.count = 0),
     TABLE_CELL(.count = 123456),
     TABLE_CELL(.count = 0),
     TABLE_CELL(.number = 0.00012345),
     {0},
     TABLE_CELL(.text = "x|y")},
};

// What the table of both rows, or with `blocks` of each as a block, looks like; to be freed.
static char *print(enum table_format format, bool blocks, uint64_t shown, const char *title) {
    char *text = NULL;
    size_t size = 0;
    struct output output = {.file = open_memstream(&text, &size)};
    assert_non_null(output.file);
    struct table table;
    char *argv[] = {"mlp", "--time", "1"};
    assert_true(table_open(&table, &(struct table_desc){.output = &output,
                                                        .format = format,
                                                        .columns = columns,
                                                        .column_count = COLUMNS,
                                                        .schema = "gpurt.test/1",
                                                        .verb = "bench mlp",
                                                        .argc = 3,
                                                        .argv = argv,
                                                        .head = json_pack("{s:i}", "seed", 7),
                                                        .blocks = blocks}));
    assert_true(table_section(&table, title, shown, rows[0], 2));
    assert_true(table_row(&table, rows[0]));
    assert_true(table_row(&table, rows[1]));
    assert_true(table_note(&table, "best", json_string("gemm")));
    assert_true(table_section(&table, "empty", 0, NULL, 0));
    assert_true(table_close(&table));
    fclose(output.file);
    return text;
}

static void expect(char *got, const char *want) {
    assert_string_equal(got, want);
    free(got);
}

static void plain(void **state) {
    (void)state;
    expect(print(TABLE_PLAIN, false, ALL, "two rows"),
           "two rows\n"
           "name      ok        n     size  time ms    of  note\n"
           "gemm      yes      12  1.5 KiB     3.14  2.3%  fast\n"
           "a|b, \"..  no   123456      0 B  0.00012     -  x|y\n"
           "\n"
           "empty\n");
    // The last column shown is not padded, and no title has no line.
    expect(print(TABLE_PLAIN, false, 1u << COUNT | 1u << NAME | 1u << OK, NULL),
           "name      ok        n\n"
           "gemm      yes      12\n"
           "a|b, \"..  no   123456\n"
           "\n"
           "empty\n");
    expect(print(TABLE_PLAIN, false, 1u << OK, NULL), "ok\nyes\nno\n\nempty\n");
}

static void markdown(void **state) {
    (void)state;
    expect(print(TABLE_MD, false, 1u << NAME | 1u << TIME | 1u << NOTE, "two"),
           "### two\n\n"
           "| name               | time ms | note |\n"
           "|:-------------------|--------:|:-----|\n"
           "| gemm               |    3.14 | fast |\n"
           "| a\\|b, \"c\" and more | 0.00012 | x\\|y |\n"
           "\n### empty\n\n");
}

static void blocks(void **state) {
    (void)state;
    expect(print(TABLE_PLAIN, true, ALL, "unseen"), "gemm\n"
                                                    "    ok    yes\n"
                                                    "    n     12\n"
                                                    "    size  1.5 KiB\n"
                                                    "    time  3.14 ms\n"
                                                    "    of    2.3%\n"
                                                    "\n"
                                                    "a|b, \"c\" and more\n"
                                                    "    ok    no\n"
                                                    "    n     123456\n"
                                                    "    size  0 B\n"
                                                    "    time  0.00012 ms\n"
                                                    "    of    -\n");
}

static void csv(void **state) {
    (void)state;
    expect(print(TABLE_CSV, false, 1u << NAME, "unseen"),
           "name,ok,count,size,time_ms,share\n"
           "gemm,1,12,1536,3.14159,0.0234\n"
           "\"a|b, \"\"c\"\" and more\",0,123456,0,0.00012345,\n");
}

static void jsonl(void **state) {
    (void)state;
    char *got = print(TABLE_JSONL, false, 1u << NAME, "unseen");
    char *lines = strchr(got, '\n');
    assert_non_null(lines);
    *lines = '\0';
    assert_string_equal(lines + 1,
                        "{\"name\":\"gemm\",\"ok\":true,\"count\":12,\"size\":1536,"
                        "\"time_ms\":3.14159,\"share\":0.0234}\n"
                        "{\"name\":\"a|b, \\\"c\\\" and more\",\"ok\":false,\"count\":123456,"
                        "\"size\":0,\"time_ms\":0.00012345}\n"
                        "{\"best\":\"gemm\"}\n");
    json_t *head = json_loads(got, 0, NULL);
    assert_non_null(head);
    assert_int_equal(json_object_size(head), 6);
    assert_string_equal(json_string_value(json_object_get(head, "schema")), "gpurt.test/1");
    assert_string_equal(json_string_value(json_object_get(head, "gpurt")), GPURT_VERSION);
    assert_int_equal(strlen(json_string_value(json_object_get(head, "date"))), 20);
    assert_int_equal(json_integer_value(json_object_get(head, "seed")), 7);
    char *command = json_dumps(json_object_get(head, "command"), JSON_COMPACT);
    char *units = json_dumps(json_object_get(head, "units"), JSON_COMPACT);
    assert_string_equal(command, "[\"gpurt\",\"bench\",\"mlp\",\"--time\",\"1\"]");
    assert_string_equal(units, "{\"size\":\"B\",\"time_ms\":\"ms\"}");
    free(command);
    free(units);
    json_decref(head);
    free(got);
}

static void json(void **state) {
    (void)state;
    char *got = print(TABLE_JSON, false, 1u << NAME, "unseen");
    json_t *all = json_loads(got, 0, NULL);
    assert_non_null(all);
    assert_int_equal(json_object_size(all), 8);
    assert_int_equal(json_array_size(json_object_get(all, "rows")), 2);
    assert_string_equal(json_string_value(json_object_get(all, "best")), "gemm");
    const json_t *second = json_array_get(json_object_get(all, "rows"), 1);
    assert_null(json_object_get(second, "share"));
    assert_int_equal(json_integer_value(json_object_get(second, "count")), 123456);
    json_decref(all);
    free(got);
}

static void text_of(const struct table_column *column, struct table_cell cell, const char *want) {
    char text[TABLE_TEXT_SIZE];
    table_cell_text(column, &cell, text);
    assert_string_equal(text, want);
}

static void cells(void **state) {
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = {{0, "0 B"},
                 {1023, "1023 B"},
                 {1024, "1 KiB"},
                 {1 << 20, "1 MiB"},
                 {3ull << 29, "1.5 GiB"},
                 {1ull << 40, "1 TiB"},
                 {5000ull << 40, "5000 TiB"}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char text[TABLE_TEXT_SIZE];
        table_bytes_text(sizes[i].bytes, text);
        assert_string_equal(text, sizes[i].text);
    }
    text_of(&columns[TIME], TABLE_CELL(.number = 0), "0.00");
    text_of(&columns[TIME], TABLE_CELL(.number = 0.01), "0.01");
    text_of(&columns[TIME], TABLE_CELL(.number = -0.0012), "-0.0012");
    text_of(&columns[TIME], TABLE_CELL(.number = -12.346), "-12.35");
    text_of(&columns[SHARE], TABLE_CELL(.number = 1), "100.0%");
    text_of(&columns[NAME], TABLE_CELL(.text = "a\nb"), "a\\x0ab");
    text_of(&columns[NAME], (struct table_cell){.text = "unknown"}, "-");
    // JSON has no number for these, and no text that is not UTF-8.
    struct table_cell row[COLUMNS] = {
        TABLE_CELL(.text = "\xff!"), {0}, {0}, {0}, TABLE_CELL(.number = 1e308 * 10)};
    json_t *object = table_object(columns, COLUMNS, row);
    char *text = json_dumps(object, JSON_COMPACT);
    assert_string_equal(text, "{\"name\":\"?!\",\"time_ms\":null}");
    free(text);
    json_decref(object);
}

// What cannot be written is remembered.
static void times_and_rates(void **state) {
    (void)state;
    static const struct {
        double value;
        const char *time, *rate;
    } cases[] = {
        {0, "0:00", "0/s"},
        {0.5, "0:01", "0.5/s"},
        {59.4, "0:59", "59.4/s"},
        {59.6, "1:00", "59.6/s"},
        {999.9, "16:40", "999.9/s"},
        {1000, "16:40", "1k/s"},
        {3599.4, "59:59", "3.599k/s"},
        {3599.6, "1:00:00", "3.6k/s"},
        {3600, "1:00:00", "3.6k/s"},
        {90061, "25:01:01", "90.06k/s"},
        {1e6, "277:46:40", "1M/s"},
        {2.5e8, "27777:46:39", "250M/s"},
        {-1, "", ""},
        {NAN, "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[TABLE_SHORT_SIZE];
        table_time_text(cases[i].value, text);
        assert_string_equal(text, cases[i].time);
        table_rate_text(cases[i].value, text);
        assert_string_equal(text, cases[i].rate);
    }
}

static void errors(void **state) {
    (void)state;
    struct output output = {.file = fopen("/dev/full", "w")};
    assert_non_null(output.file);
    struct table table;
    assert_true(table_open(&table, &(struct table_desc){.output = &output,
                                                        .format = TABLE_CSV,
                                                        .columns = columns,
                                                        .column_count = COLUMNS}));
    assert_false(table_section(&table, NULL, 1, NULL, 0));
    assert_int_equal(output.error, 28);  // ENOSPC
    assert_false(table_row(&table, rows[0]));
    assert_false(table_close(&table));
    fclose(output.file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain), cmocka_unit_test(markdown),        cmocka_unit_test(blocks),
        cmocka_unit_test(csv),   cmocka_unit_test(jsonl),           cmocka_unit_test(json),
        cmocka_unit_test(cells), cmocka_unit_test(times_and_rates), cmocka_unit_test(errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
