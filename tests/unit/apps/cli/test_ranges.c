// SPDX-License-Identifier: Apache-2.0
// Numbers on the command line: lists, ranges and sizes, and what is no number.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/options/ranges.h"

static const struct ranges_rule plain = {false, 0, 0};
static const struct ranges_rule bytes = {true, 1, 0};

static void expect(const char *text, const struct ranges_rule *rule, size_t count,
                   const uint64_t *values) {
    struct ranges list = {0};
    char why[RANGES_WHY] = "";
    if (!ranges_parse(text, rule, &list, why)) {
        print_error("'%s' refused: %s\n", text, why);
        fail();
    }
    assert_int_equal(list.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(list.values[i], values[i]);
    }
    ranges_destroy(&list);
    assert_null(list.values);
    assert_int_equal(list.count, 0);
}

static void refuse(const char *text, const struct ranges_rule *rule) {
    struct ranges list = {0};
    char why[RANGES_WHY];
    memset(why, '?', sizeof why);
    if (ranges_parse(text, rule, &list, why)) {
        print_error("'%s' not refused, %zu values\n", text, list.count);
        fail();
    }
    assert_null(list.values);
    assert_int_equal(list.count, 0);
    assert_non_null(memchr(why, '\0', sizeof why));
    assert_true(why[0] != '\0');
    ranges_destroy(&list);
}

static void lists(void **state) {
    (void)state;
    expect("7", &plain, 1, (uint64_t[]){7});
    expect("0", &plain, 1, (uint64_t[]){0});
    expect("32,64", &plain, 2, (uint64_t[]){32, 64});
    expect("3,1,2,1", &plain, 4, (uint64_t[]){3, 1, 2, 1});
    expect("18446744073709551615", &plain, 1, (uint64_t[]){UINT64_MAX});
}

static void steps(void **state) {
    (void)state;
    expect("1-4", &plain, 4, (uint64_t[]){1, 2, 3, 4});
    expect("5-5", &plain, 1, (uint64_t[]){5});
    expect("1-8+1", &plain, 8, (uint64_t[]){1, 2, 3, 4, 5, 6, 7, 8});
    expect("1-8+3", &plain, 3, (uint64_t[]){1, 4, 7});
    expect("32-1024*2", &plain, 6, (uint64_t[]){32, 64, 128, 256, 512, 1024});
    expect("3-100*3", &plain, 4, (uint64_t[]){3, 9, 27, 81});
    expect("1,4-6,9-27*3", &plain, 6, (uint64_t[]){1, 4, 5, 6, 9, 27});
    // The last step leads past the largest number there is: it ends, and does not begin anew.
    expect("18446744073709551610-18446744073709551615+4", &plain, 2,
           (uint64_t[]){UINT64_MAX - 5, UINT64_MAX - 1});
    expect("4611686018427387904-18446744073709551615*2", &plain, 2,
           (uint64_t[]){(uint64_t)1 << 62, (uint64_t)1 << 63});
}

static void sizes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } rows[] = {
        {"4", 4},
        {"4K", 4096},
        {"4KiB", 4096},
        {"4KB", 4000},
        {"1MiB", 1 << 20},
        {"1MB", 1000000},
        {"1.5GiB", (uint64_t)3 << 29},
        {"2G", (uint64_t)2 << 30},
        {"0.5K", 512},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t got = 0;
        char why[RANGES_WHY] = "";
        assert_true(ranges_parse_size(rows[i].text, &got, why));
        assert_int_equal(got, rows[i].bytes);
    }
    expect("4KB-256MB*4", &bytes, 8,
           (uint64_t[]){4000, 16000, 64000, 256000, 1024000, 4096000, 16384000, 65536000});
    expect("1MiB,1.5GiB", &bytes, 2, (uint64_t[]){1 << 20, (uint64_t)3 << 29});
    static const char *const bad[] = {"",
                                      "K",
                                      "4Q",
                                      "4KiBs",
                                      "-1",
                                      "1e9",
                                      "1.2.3",
                                      "4 K",
                                      " 4",
                                      "0x10",
                                      "1.",
                                      "1,2",
                                      "99999999999999999999",
                                      "18446744073709551615K"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t got = 77;
        char why[RANGES_WHY] = "";
        if (ranges_parse_size(bad[i], &got, why)) {
            print_error("'%s' not refused: %llu\n", bad[i], (unsigned long long)got);
            fail();
        }
        assert_true(why[0] != '\0');
    }
}

static void mistakes(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        ",",
        "1,",
        ",1",
        "1,,2",
        "x",
        "1x",
        "-1",
        "1-",
        "-",
        "5-4",
        "1-8+0",
        "1-8*0",
        "1-8*1",
        "1-8+",
        "1-8*",
        "1-8/2",
        "1 2",
        "1-2-3",
        "1.5",
        "0-8*2",
        "4K",
        "0x10",
        "+1",
        "18446744073709551616",
        "1-20000",
        "0-18446744073709551615",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        refuse(bad[i], &plain);
    }
}

// What is wrong, and where.
static void said(void **state) {
    static const struct {
        const char *text;
        const struct ranges_rule *rule;
        const char *why;
    } rows[] = {
        {"", &plain, "at character 1 (the end): a number is missing"},
        {"1,", &plain, "at character 3 (the end): a number is missing"},
        {"1;2", &plain, "at character 2 (';2'): ';' is not expected here"},
        {"5-4", &plain, "at character 3 ('4'): the end of a range lies before its start"},
        {"1-8*1", &plain, "at character 5 ('1'): the factor must be 2 or more"},
        {"1-8+0", &plain, "at character 5 ('0'): the step must be 1 or more"},
        {"0-8*2", &plain, "at character 1 ('0-8*2'): a range by factors cannot start at 0"},
        {"1-10001", &plain, "at character 1 ('1-10001'): the list has more than 10000 values"},
        {"1.5", &bytes, "at character 1 ('1.5'): a part of a byte needs a unit, as in 1.5GiB"},
        {"1.5B", &bytes, "at character 1 ('1.5B'): a part of a byte needs a unit, as in 1.5GiB"},
        {"1.K", &bytes, "at character 3 ('K'): digits are missing after the point"},
        {"1.1234567K", &bytes, "at character 3 ('1234567K'): at most 6 digits may follow the"},
        {"4Q", &bytes, "at character 2 ('Q'): unknown unit 'Q'; known are B, KB, MB, GB, TB and"},
        {"0", &bytes, "at character 1 ('0'): it lies outside 1 to 1125899906842624"},
        {"1-99999999999999999999+99999999999999999999", &plain, "at character 3 ("},
        {"1-5+99999999999999999999", &plain, "at character 5 ('99999999999999999999'): the number"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ranges list = {0};
        char why[RANGES_WHY] = "";
        assert_false(ranges_parse(rows[i].text, rows[i].rule, &list, why));
        if (strncmp(why, rows[i].why, strlen(rows[i].why)) != 0) {
            fail_msg("'%s': %s", rows[i].text, why);
        }
    }
    expect("1.0B,1.5kb,2tib", &bytes, 3, (uint64_t[]){1, 1500, (uint64_t)2 << 40});
    expect("1.123456MB", &bytes, 1, (uint64_t[]){1123456});
    expect("2KiB-4KiB+1KiB", &bytes, 3, (uint64_t[]){2048, 3072, 4096});
}

static void limits(void **state) {
    (void)state;
    const struct ranges_rule rule = {false, 2, 9};
    expect("2-9", &rule, 8, (uint64_t[]){2, 3, 4, 5, 6, 7, 8, 9});
    refuse("1", &rule);
    refuse("10", &rule);
    refuse("5-10", &rule);
    refuse("4,11", &rule);
    struct ranges list = {0};
    char why[RANGES_WHY];
    assert_true(ranges_parse("1-10000", &plain, &list, why));
    assert_int_equal(list.count, RANGES_MAX);
    ranges_destroy(&list);
    refuse("1-10001", &plain);
    refuse("1-9999,1,2", &plain);
    // What is refused for its size is told the range, however large it is.
    static const char *const beyond[] = {"1", "10", "-1", "18446744073709551616",
                                         "5-99999999999999999999"};
    for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++) {
        assert_false(ranges_parse(beyond[i], &rule, &list, why));
        assert_non_null(strstr(why, "2 to 9"));
    }
    expect("1024TiB", &bytes, 1, (uint64_t[]){RANGES_MAX_BYTES});
    refuse("1024.000001TiB", &bytes);
    refuse("18446744073709551615", &bytes);
}

int main(void) {
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(lists),    cmocka_unit_test(steps),  cmocka_unit_test(sizes),
        cmocka_unit_test(mistakes), cmocka_unit_test(limits), cmocka_unit_test(said),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
