// SPDX-License-Identifier: Apache-2.0
// Tables with characters that take two columns of a terminal, or none. The C library's wcwidth()
// judges: its tables are its own.
#include <fcntl.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include <cmocka.h>

#include "base/visible.h"
#include "cli/output/table.h"

#define GA "\xea\xb0\x80"  // a syllable of Hangul: two columns
#define ACUTE "\xcc\x81"   // combining: none

// The locale's own answer; -1: it does not know the character.
static int judged(uint32_t character) {
    return wcwidth((wchar_t)character);
}

static size_t put_utf8(uint32_t c, char text[8]) {
    wchar_t wide = (wchar_t)c;
    mbstate_t state = {0};
    size_t size = wcrtomb(text, wide, &state);
    text[size == (size_t)-1 ? 0 : size] = '\0';
    return size;
}

static int judged_text(const char *text, size_t size) {
    wchar_t wide[512];
    char copy[512];
    snprintf(copy, sizeof copy, "%.*s", (int)size, text);
    size_t count = mbstowcs(wide, copy, 512);
    assert_true(count < 512);
    return wcswidth(wide, count);
}

// Every character that the C library knows. A newer one than our ranges may know more, so a few may
// differ; of scripts that do not grow any more none may.
static void every_character(void **state) {
    (void)state;
    static const uint32_t settled[][2] = {
        {0x20, 0x7e},     {0xa1, 0x36f},      {0x400, 0x482},     {0x1100, 0x11ff},
        {0x3041, 0x3096}, {0x4e00, 0x9fef},   {0xac00, 0xd7a3},   {0xff01, 0xff60},
        {0x2580, 0x259f}, {0x1f600, 0x1f64f}, {0x20000, 0x2a6d6}, {0x200b, 0x200d},
    };
    uint32_t known = 0, other = 0;
    for (uint32_t c = 0x20; c < 0xe0200; c++) {
        char text[8];
        int want = judged(c);
        if (want < 0 || put_utf8(c, text) == (size_t)-1) {
            continue;
        }
        known++;
        if ((int)grt_visible_width(text) == want) {
            continue;
        }
        other++;
        for (size_t i = 0; i < sizeof settled / sizeof *settled; i++) {
            if (c >= settled[i][0] && c <= settled[i][1]) {
                fail_msg("U+%04X takes %zu columns here and %d by wcwidth()", c,
                         grt_visible_width(text), want);
            }
        }
    }
    assert_true(known > 100000);
    assert_true(other < 600);
}

static void beginnings(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t columns, bytes, used;
    } rows[] = {
        {"abc", 2, 2, 2},
        {"abc", 9, 3, 3},
        {GA GA GA, 4, 6, 4},
        {GA GA GA, 5, 6, 4},       // half of the third does not fit
        {"e" ACUTE "f", 1, 3, 1},  // the mark stays with its letter
        {"", 3, 0, 0},
        {"a\xff z", 2, 2, 2},
        {GA, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t used = 99;
        assert_int_equal(grt_visible_fit(rows[i].text, rows[i].columns, &used), rows[i].bytes);
        assert_int_equal(used, rows[i].used);
    }
}

static const struct table_column columns[] = {
    {"name", "name", NULL, TABLE_TEXT, 0, 0, 12},
    {"count", "count", NULL, TABLE_COUNT, 0, 0, 0},
    {"place", "place", NULL, TABLE_TEXT, 0, 0, 0},
};
static const char *const names[] = {"plain", GA GA GA, GA GA GA GA GA GA GA GA,
                                    "e" ACUTE "te" ACUTE};

static void print(FILE *file) {
    struct output output = {.file = file};
    struct table table;
    struct table_cell cells[4][3];
    for (size_t i = 0; i < 4; i++) {
        cells[i][0] = TABLE_CELL(.text = names[i]);
        cells[i][1] = TABLE_CELL(.count = 7);
        cells[i][2] = TABLE_CELL(.text = "|" GA GA GA GA GA GA GA GA GA GA GA GA GA GA GA GA);
    }
    struct table_desc desc = {
        .output = &output, .columns = columns, .column_count = 3, .schema = "gpurt.test/1"};
    assert_true(table_open(&table, &desc));
    assert_true(table_section(&table, NULL, 7, cells[0], 4));
    for (size_t i = 0; i < 4; i++) {
        assert_true(table_row(&table, cells[i]));
    }
    assert_true(table_close(&table));
    fflush(file);
}

// The last column begins at the same place of the terminal in every row.
static void rows_line_up(void **state) {
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    print(file);
    // A stream in memory has no descriptor; the table asks for one to find a terminal.
    fclose(file);
    int place = -1, lines = 0;
    char *rest = strchr(text, '\n') + 1;
    for (char *line = strtok_r(rest, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        const char *bar = strchr(line, '|');
        assert_non_null(bar);
        int at = judged_text(line, (size_t)(bar - line));
        assert_true(place < 0 || at == place);
        place = at;
        lines++;
    }
    assert_int_equal(lines, 4);
    free(text);
}

#define END '\x1e'  // no table has it

// On a terminal of 40 columns no line is wider, and what was cut shows it.
static void cut_at_the_edge(void **state) {
    (void)state;
    int leader = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(leader >= 0 && grantpt(leader) == 0 && unlockpt(leader) == 0);
    int side = open(ptsname(leader), O_RDWR | O_NOCTTY);
    assert_true(side >= 0);
    struct winsize size = {.ws_row = 24, .ws_col = 40};
    assert_int_equal(ioctl(side, TIOCSWINSZ, &size), 0);
    FILE *file = fdopen(side, "w");
    setenv("NO_COLOR", "1", 1);
    print(file);
    fprintf(file, "%c\n", END);
    fflush(file);
    // What was written comes in pieces.
    char text[4096] = "";
    size_t length = 0;
    while (length == 0 || !memchr(text, END, length)) {
        ssize_t got = read(leader, text + length, sizeof text - 1 - length);
        assert_true(got > 0);
        length += (size_t)got;
    }
    *(char *)memchr(text, END, length) = '\0';
    int lines = 0, cut = 0;
    char *rest = text;
    for (char *line = strtok_r(rest, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
        int width = judged_text(line, strlen(line));
        assert_in_range(width, 1, 40);
        cut += strlen(line) > 2 && strcmp(line + strlen(line) - 2, "..") == 0;
        lines++;
    }
    assert_int_equal(lines, 5);
    assert_int_equal(cut, 4);
    fclose(file);
    close(leader);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_character),
        cmocka_unit_test(beginnings),
        cmocka_unit_test(rows_line_up),
        cmocka_unit_test(cut_at_the_edge),
    };
    if (!setlocale(LC_ALL, "C.UTF-8")) {
        printf("SKIPPED: there is no locale C.UTF-8\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
