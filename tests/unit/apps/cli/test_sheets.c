// SPDX-License-Identifier: Apache-2.0
// Sheets of images, pixel by pixel, and tables that fold into a narrow terminal.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/apps/caught.h"
#include "cli/command.h"
#include "cli/output/sheet.h"
#include "cli/output/table.h"
#include "cli/talk.h"

static char root[64];

static int begin(void **state) {
    (void)state;
    snprintf(root, sizeof root, "/tmp/gpurt_test_parts.XXXXXX");
    return mkdtemp(root) && chdir(root) == 0 ? 0 : -1;
}

static int end(void **state) {
    char command[128];
    (void)state;
    if (chdir("/") != 0) {
        return -1;
    }
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static const char *read_back(const char *name) {
    static char text[65536];
    FILE *file = fopen(name, "r");
    text[file ? fread(text, 1, sizeof text - 1, file) : 0] = '\0';
    if (file) {
        fclose(file);
    }
    return text;
}

// ---- sheets ----

static void sheets(void **state) {
    static const struct {
        const char *name;
        bool good;
    } names[] = {{"a.png", true},    {"a.svg", true}, {".png", false}, {"a.PNG", false},
                 {"a.png.x", false}, {"png", false},  {"d/.svg", true}};
    struct sheet s;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        catch_begin();
        assert_int_equal(sheet_named("play", names[i].name), names[i].good);
        catch_end();
        assert_int_equal(caught[0] == '\0', names[i].good);
    }
    // Cells are 96 pixels long at least, as far as whole pixels make them.
    static const uint32_t zooms[][3] = {{1, 1, 96},  {96, 2, 1},  {2, 96, 1},  {48, 10, 2},
                                        {10, 48, 2}, {49, 40, 1}, {32, 32, 3}, {200, 3, 1}};
    for (size_t i = 0; i < sizeof zooms / sizeof *zooms; i++) {
        assert_true(sheet_init(&s, 1, 1, zooms[i][0], zooms[i][1]));
        assert_int_equal(s.zoom, zooms[i][2]);
        sheet_finish(&s);
        assert_null(s.rgb);
    }
    // Two lines of two cells of 1x48 pixels, each twice: 4 + 2 * 48 zoom 2.
    assert_true(sheet_init(&s, 2, 3, 1, 48));
    size_t wide = 3 * (96 + 2) + 2;
    float image[48] = {0, 1, 2, 3, 4, 5, -1, 9};
    sheet_put(&s, 1, 2, image, 1, 48, 1, 4);
    static const uint8_t want[] = {0, 0, 64, 64, 128, 128, 191, 191, 255, 255, 255, 255, 0, 0, 255};
    size_t top = 2 + 1 * (2 + 2), left = 2 + 2 * (96 + 2);
    for (size_t y = 0; y < 2; y++) {
        for (size_t x = 0; x < sizeof want; x++) {
            for (size_t c = 0; c < 3; c++) {
                assert_int_equal(s.rgb[3 * ((top + y) * wide + left + x) + c], want[x]);
            }
        }
    }
    assert_int_equal(s.rgb[3 * ((top - 1) * wide + left)], 255);
    assert_int_equal(s.rgb[3 * (top * wide + left - 1)], 255);
    assert_int_equal(s.rgb[3 * (top * wide + left + 16)], 0);
    float color[3] = {1, 2, 4};
    sheet_put(&s, 0, 0, color, 1, 1, 3, 4);
    for (size_t c = 0; c < 3; c++) {
        assert_int_equal(s.rgb[3 * (2 * wide + 2) + c], c == 0 ? 64 : c == 1 ? 128 : 255);
    }
    snprintf(s.texts[1], sizeof s.texts[1], "a<b");
    assert_int_equal(sheet_save(&s, "s.svg"), COMMAND_OK);
    assert_int_equal(sheet_save(&s, "s.png"), COMMAND_OK);
    assert_int_equal(sheet_save(&s, "nowhere/s.png") == COMMAND_OK, false);
    sheet_finish(&s);
    const char *text = read_back("s.svg");
    assert_non_null(strstr(text, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"576\" "
                                 "height=\"10\">"));
    assert_non_null(strstr(text, "<image width=\"296\" height=\"10\" href=\"data:image/png;base64,"
                                 "iVBORw0KGgo"));
    assert_non_null(strstr(text, "<text x=\"302\" y=\"16\""));
    assert_non_null(strstr(text, "<text x=\"302\" y=\"20\" font-family=\"sans-serif\" font-size="
                                 "\"12\" fill=\"#222\">a&lt;b</text>"));
    // The base64 is the file: it ends as the checksum of IEND does, AE 42 60 82.
    static const char *const ends[] = {"SuQmCC\"/>", "rkJggg==\"/>", "K5CYII=\"/>"};
    struct stat info;
    assert_int_equal(stat("s.png", &info), 0);
    assert_non_null(strstr(text, ends[info.st_size % 3]));
    assert_memory_equal(read_back("s.png"), "\x89PNG", 4);
}

// ---- tables ----

static char *folded(int fit, const struct table_column *columns, size_t count) {
    static char last[] = "a text that is rather long";
    char *text = NULL;
    size_t size = 0;
    struct output output = {.file = open_memstream(&text, &size)};
    struct table_cell cells[8];
    struct table table;
    for (size_t i = 0; i < count; i++) {
        cells[i] = columns[i].type == TABLE_TEXT
                       ? TABLE_CELL(.text = i + 1 == count ? last : "words")
                       : TABLE_CELL(.count = 12345);
    }
    assert_true(table_open(&table, &(struct table_desc){.output = &output,
                                                        .columns = columns,
                                                        .column_count = count,
                                                        .schema = "x/1",
                                                        .fit = fit}));
    assert_true(table_section(&table, NULL, (1u << count) - 1, cells, 1));
    assert_true(table_row(&table, cells));
    assert_true(table_close(&table));
    fclose(output.file);
    *strrchr(text, '\n') = '\0';
    return text;
}

// A narrow terminal loses the columns that matter least, one after the other, and no more than it
// must; a text at the end of the line is cut at its edge.
static void folds(void **state) {
    static const struct table_column counts[] = {{"case", "case", NULL, TABLE_TEXT, 0, 0, 0},
                                                 {"depth", "depth", NULL, TABLE_COUNT, 0, 0, 0},
                                                 {"pci", "pci", NULL, TABLE_TEXT, 0, 0, 0},
                                                 {NULL, "spread", NULL, TABLE_COUNT, 0, 0, 0},
                                                 {"rate", "rate", NULL, TABLE_COUNT, 0, 0, 0}};
    static const struct table_column texts[] = {{"case", "case", NULL, TABLE_TEXT, 0, 0, 0},
                                                {"rate", "rate", NULL, TABLE_COUNT, 0, 0, 0},
                                                {"name", "name", NULL, TABLE_TEXT, 0, 0, 20}};
    static const struct {
        const struct table_column *columns;
        size_t count;
        int fit;
        const char *text;
    } rows[] = {
        // words 5, 5, 5, 6 and 5 wide, with two between.
        {counts, 5, 34, "case   depth  pci    spread   rate\nwords  12345  words   12345  12345"},
        {counts, 5, 33, "case   depth  spread   rate\nwords  12345   12345  12345"},
        {counts, 5, 27, "case   depth  spread   rate\nwords  12345   12345  12345"},
        {counts, 5, 26, "case   depth   rate\nwords  12345  12345"},
        {counts, 5, 18, "case    rate\nwords  12345"},
        {counts, 5, 5, "case    rate\nwords  12345"},
        {texts, 3, 0, "case    rate  name\nwords  12345  a text that is rat.."},
        {texts, 3, 34, "case    rate  name\nwords  12345  a text that is rat.."},
        {texts, 3, 33, "case    rate  name\nwords  12345  a text that is ra.."},
        {texts, 3, 22, "case    rate  name\nwords  12345  a text.."},
        {texts, 3, 21, "case    rate  name\nwords  12345  a text that is rat.."},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = folded(rows[i].fit, rows[i].columns, rows[i].count);
        assert_string_equal(text, rows[i].text);
        free(text);
    }
}

// Markdown aligns numbers to the right; JSON of one line is whole in each; what CSV quotes.
static void forms(void **state) {
    static const struct table_column columns[] = {{"a", "a", NULL, TABLE_TEXT, 0, 0, 4},
                                                  {"f", "f", NULL, TABLE_FLAG, 0, 0, 0},
                                                  {"n", "", "ms", TABLE_NUMBER, 1, 0, 0}};
    static const struct {
        const char *text, *csv;
    } fields[] = {
        {"a b", "a b"}, {"a,b", "\"a,b\""}, {"a\"b", "\"a\"\"b\""}, {"a\nb", "a\\x0ab"}, {"", ""}};
    (void)state;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        char *text = NULL, want[64];
        size_t size = 0;
        struct output output = {.file = open_memstream(&text, &size)};
        struct table table;
        const struct table_cell cells[] = {
            TABLE_CELL(.text = fields[i].text), {0}, TABLE_CELL(.number = -0.125)};
        assert_true(table_open(&table, &(struct table_desc){.output = &output,
                                                            .format = TABLE_CSV,
                                                            .columns = columns,
                                                            .column_count = 3}));
        assert_true(table_section(&table, "one", 7, NULL, 0));
        assert_true(table_row(&table, cells));
        assert_true(table_section(&table, "two", 7, NULL, 0));  // no second header
        assert_true(table_note(&table, "key", json_integer(3)));
        assert_true(table_close(&table));
        fclose(output.file);
        snprintf(want, sizeof want, "a,f,n\n%s,,-0.125\n", fields[i].csv);
        assert_string_equal(text, want);
        free(text);
    }
    char *text = NULL;
    size_t size = 0;
    struct output output = {.file = open_memstream(&text, &size)};
    struct table table;
    const struct table_cell cells[] = {TABLE_CELL(.text = "a|b|c"), TABLE_CELL(.count = 1),
                                       TABLE_CELL(.number = 2.25)};
    assert_true(table_open(
        &table, &(struct table_desc){
                    .output = &output, .format = TABLE_MD, .columns = columns, .column_count = 3}));
    assert_true(table_section(&table, NULL, 7, cells, 1));
    assert_true(table_row(&table, cells));
    assert_true(table_section(&table, "t", 2, NULL, 0));
    assert_true(table_close(&table));
    fclose(output.file);
    assert_string_equal(text, "| a       | f   |  ms |\n"
                              "|:--------|:----|----:|\n"
                              "| a\\|b\\|c | yes | 2.2 |\n"
                              "\n### t\n\n| f |\n|:--|\n");
    free(text);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {CASE(sheets), CASE(folds), CASE(forms)};
    talk_set_level(-1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
