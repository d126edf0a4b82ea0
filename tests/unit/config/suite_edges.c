// SPDX-License-Identifier: Apache-2.0
// Every key at the ends of what it takes: the last value that is taken is read back, the first that
// is not is refused in a line with the value and the range.
#include "harness/harness.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/config.h"

// Set, and read back as it would be written.
static void takes(enum grt_config_key key, const char *given, const char *want) {
    struct grt_config c;
    char text[GRT_CONFIG_TEXT_SIZE];
    grt_config_init_for(&c, GRT_CONFIG_OF_ALL);
    if (!grt_config_set(&c, key, given)) {
        fail_msg("%s=%s: %s", grt_config_key_info(key)->name, given, grt_last_error());
    }
    size_t length = grt_config_value_text(&c, key, text, sizeof text);
    if (strcmp(text, want) != 0 || length != strlen(want)) {
        fail_msg("%s=%s is %s, wanted %s", grt_config_key_info(key)->name, given, text, want);
    }
    // The length is that of the whole text, however little room there is.
    char little[3] = "??";
    assert_int_equal(grt_config_value_text(&c, key, little, 2), length);
    assert_true(little[0] == want[0] && little[1] == '\0' && little[2] == '\0');
}

static void refuses(enum grt_config_key key, const char *given, const char *part) {
    struct grt_config c;
    char before[GRT_CONFIG_TEXT_SIZE], after[GRT_CONFIG_TEXT_SIZE];
    grt_config_init_for(&c, GRT_CONFIG_OF_ALL);
    grt_config_value_text(&c, key, before, sizeof before);
    TEST_REFUSED(grt_config_set(&c, key, given), GRT_CONFIG, part);
    assert_false(grt_config_given(&c, key));
    grt_config_value_text(&c, key, after, sizeof after);
    assert_string_equal(after, before);
}

static void ranges(void **state) {
    (void)state;
    uint32_t wholes = 0, reals = 0;
    for (uint32_t i = 0; i < GRT_CONFIG_KEY_COUNT; i++) {
        enum grt_config_key key = (enum grt_config_key)i;
        const struct grt_config_key_info *info = grt_config_key_info(key);
        char given[64], text[64], line[256];
        if (info->type != GRT_CONFIG_IS_WHOLE && info->type != GRT_CONFIG_IS_REAL) {
            continue;
        }
        bool whole = info->type == GRT_CONFIG_IS_WHOLE;
        wholes += whole;
        reals += !whole;
        // What is read back is the same number, though another text may stand for it.
        const double ends[2] = {info->min, info->max};
        for (int end = 0; end < 2; end++) {
            struct grt_config c;
            grt_config_init_for(&c, GRT_CONFIG_OF_ALL);
            snprintf(given, sizeof given, whole ? "%.0f" : "%.17g", ends[end]);
            if (!grt_config_set(&c, key, given)) {
                fail_msg("%s=%s: %s", info->name, given, grt_last_error());
            }
            grt_config_value_text(&c, key, text, sizeof text);
            assert_true(strtod(text, NULL) == strtod(given, NULL));
            double step = (end ? 1 : -1) * (fabs(ends[end]) * 1e-9 + 1e-300);
            if (whole) {  // of the largest a double does not have the next
                snprintf(given, sizeof given, "%" PRId64, (int64_t)ends[end] + (end ? 1 : -1));
            } else {
                snprintf(given, sizeof given, "%.17g", ends[end] + step);
            }
            snprintf(line, sizeof line, "%s: %s is not between %.12g and %.16g", info->name, given,
                     info->min, info->max);
            refuses(key, given, line);
        }
        snprintf(line, sizeof line, "%s wants %s, not '1x'", info->name,
                 whole ? "a whole number" : "a number");
        refuses(key, "1x", line);
        snprintf(line, sizeof line, "%s has no value", info->name);
        refuses(key, "", line);
        if (whole && info->min < 2.5 && info->max > 2.5) {
            snprintf(line, sizeof line, "%s: 2.5 is not whole", info->name);
            refuses(key, "2.5", line);
        }
    }
    assert_true(wholes > 20 && reals > 20);
}

// Every word and every other name of it, in letters of any size, is its first name.
static void words(void **state) {
    (void)state;
    uint32_t count = 0;
    for (uint32_t i = 0; i < GRT_CONFIG_KEY_COUNT; i++) {
        enum grt_config_key key = (enum grt_config_key)i;
        const struct grt_config_key_info *info = grt_config_key_info(key);
        char line[512], list[256] = "";
        if (info->type != GRT_CONFIG_IS_WORD) {
            continue;
        }
        for (const char *group = info->words; *group;) {
            char first[64], word[64];
            snprintf(first, sizeof first, "%.*s", (int)strcspn(group, "=|"), group);
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", *list ? ", " : "",
                     first);
            for (size_t at = 0, end = strcspn(group, "|"); at < end; count++) {
                size_t length = strcspn(group + at, "=|");
                snprintf(word, sizeof word, "%.*s", (int)length, group + at);
                takes(key, word, first);
                for (char *c = word; *c; c++) {
                    *c = (char)toupper((unsigned char)*c);
                }
                takes(key, word, first);
                at += length + 1;
            }
            group += strcspn(group, "|");
            group += *group == '|';
        }
        snprintf(line, sizeof line, "%s: no 'voodoo'; there are %s", info->name, list);
        refuses(key, "voodoo", line);
    }
    assert_true(count > 30);
}

static void flags(void **state) {
    (void)state;
    static const char *const yes[] = {"true", "yes", "on", "True", "YES"};
    static const char *const no[] = {"false", "no", "off", "False", "NO"};
    uint32_t count = 0;
    for (uint32_t i = 0; i < GRT_CONFIG_KEY_COUNT; i++) {
        enum grt_config_key key = (enum grt_config_key)i;
        const struct grt_config_key_info *info = grt_config_key_info(key);
        if (info->type != GRT_CONFIG_IS_FLAG) {
            continue;
        }
        for (size_t k = 0; k < sizeof yes / sizeof *yes; k++) {
            takes(key, yes[k], "true");
            takes(key, no[k], "false");
        }
        char line[256];
        snprintf(line, sizeof line, "%s wants true or false, not 'perhaps'", info->name);
        refuses(key, "perhaps", line);
        count++;
    }
    assert_true(count > 5);
}

// Times, shares and lists by their forms.
static void forms(void **state) {
    (void)state;
    struct grt_config c;
    const struct {
        const char *text;
        double seconds;
    } times[] = {{"90", 90},     {"90s", 90},       {"10m", 600},    {"1.5h", 5400},
                 {"2d", 172800}, {"0.5m", 30},      {"1e3", 1000},   {"0", 0},
                 {".25h", 900},  {"1e-1d", 8640.0}, {"0.001d", 86.4}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        grt_config_init_for(&c, GRT_CONFIG_OF_ALL);
        assert_true(grt_config_set(&c, GRT_CONFIG_MAX_TIME, times[i].text));
        assert_true(fabs(c.max_time - times[i].seconds) <= 1e-12 * times[i].seconds);
    }
    static const char *const no_times[] = {"h", "1w", "-1", "1hh", "1 h", "nan", "inf", "0x10"};
    for (size_t i = 0; i < sizeof no_times / sizeof *no_times; i++) {
        char part[64];
        snprintf(part, sizeof part, "seconds, not '%s'", no_times[i]);
        refuses(GRT_CONFIG_MAX_TIME, no_times[i], part);
    }
    const struct {
        const char *text;
        double amount;
    } amounts[] = {{"3", 3}, {"0.5", 0.5}, {"50%", 0.5}, {"0.125", 0.125}, {"1", 1}, {"1%", 0.01}};
    for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++) {
        grt_config_init_for(&c, GRT_CONFIG_OF_ALL);
        assert_true(grt_config_set(&c, GRT_CONFIG_LIMIT_TRAIN_BATCHES, amounts[i].text));
        assert_true(c.limit_train_batches == amounts[i].amount);
    }
    refuses(GRT_CONFIG_LIMIT_TRAIN_BATCHES, "1.5",
            "limit_train_batches: 1.5 is neither a whole number nor a share of at most 1.0");
    refuses(GRT_CONFIG_LIMIT_TRAIN_BATCHES, "101%", "101% is neither a whole number nor a share");
    refuses(GRT_CONFIG_LIMIT_TRAIN_BATCHES, "%", "not '%'");
    // Lists, as one text; every number of one has the key's range.
    grt_config_init_for(&c, GRT_CONFIG_OF_ALL);
    assert_true(grt_config_set(&c, GRT_CONFIG_BATCH_SIZES, " [ 4, 8 ,16]"));
    assert_int_equal(c.batch_sizes.count, 3);
    assert_true(c.batch_sizes.values[0] == 4 && c.batch_sizes.values[1] == 8 &&
                c.batch_sizes.values[2] == 16);
    assert_true(grt_config_set(&c, GRT_CONFIG_INPUTS, "a, b c ,d"));
    assert_int_equal(c.inputs.count, 3);
    assert_string_equal(c.inputs.values[1], "b c");
    assert_string_equal(c.inputs.values[2], "d");
    refuses(GRT_CONFIG_INPUTS, "a,,b", "inputs: an empty name");
    // In brackets names may be in quotes, as YAML has them.
    assert_true(grt_config_set(&c, GRT_CONFIG_INPUTS,
                               "[\"a, b\" , 'it''s, \"c\"',\"d\\\"\\\\\\e\", f\"g]"));
    assert_int_equal(c.inputs.count, 4);
    assert_string_equal(c.inputs.values[0], "a, b");
    assert_string_equal(c.inputs.values[1], "it's, \"c\"");
    assert_string_equal(c.inputs.values[2], "d\"\\\\e");
    assert_string_equal(c.inputs.values[3], "f\"g");
    assert_true(grt_config_set(&c, GRT_CONFIG_INPUTS, "\"a,b\""));  // without them they are letters
    assert_int_equal(c.inputs.count, 2);
    assert_string_equal(c.inputs.values[1], "b\"");
    refuses(GRT_CONFIG_INPUTS, "[\"a, b]", "inputs: a name that begins with \" ends with it");
    refuses(GRT_CONFIG_INPUTS, "['a' b]", "inputs: a name that begins with ' ends with it");
    refuses(GRT_CONFIG_INPUTS, "[\"\"]", "inputs: an empty name");
    refuses(GRT_CONFIG_INPUTS, "[\"a\",]", "inputs: an empty name");
    refuses(GRT_CONFIG_HIDDEN, "[\"8\"]", "hidden wants");
    refuses(GRT_CONFIG_BATCH_SIZES, "4,5.5", "batch_sizes: 5.5 is not whole");
    refuses(GRT_CONFIG_BATCH_SIZES, "4,", "batch_sizes wants");
    // Devices, one or many.
    takes(GRT_CONFIG_DEVICE, "[0, 1]", "\"0,1\"");
    refuses(GRT_CONFIG_DEVICE, "[]", "device has no value");
    // No text has a byte that is none.
    refuses(GRT_CONFIG_DATA, "a\tb", "data: a byte 9 that is no text");
    refuses(GRT_CONFIG_DATA, "a\x7f", "data: a byte 127 that is no text");
    char longest[GRT_CONFIG_TEXT_SIZE + 1];
    memset(longest, 'x', sizeof longest);
    longest[GRT_CONFIG_TEXT_SIZE - 1] = '\0';
    grt_config_init_for(&c, GRT_CONFIG_OF_ALL);
    assert_true(grt_config_set(&c, GRT_CONFIG_DATA, longest));
    assert_string_equal(c.data, longest);
    longest[GRT_CONFIG_TEXT_SIZE - 1] = 'x';
    longest[GRT_CONFIG_TEXT_SIZE] = '\0';
    char part[64];
    snprintf(part, sizeof part, "data has more than %d characters", GRT_CONFIG_TEXT_SIZE - 1);
    refuses(GRT_CONFIG_DATA, longest, part);
    refuses(GRT_CONFIG_DEVICE, longest, "device has too many of them");
    longest[GRT_CONFIG_TEXT_SIZE - 1] = '\0';
    assert_true(grt_config_set(&c, GRT_CONFIG_DEVICE, longest));
    assert_string_equal(c.device, longest);
}

// What is no text at all.
static void nothing_there(void **state) {
    (void)state;
    struct grt_config c;
    grt_config_init(&c);
    TEST_REFUSED(grt_config_parse(&c, "a", NULL, 1), GRT_INVALID,
                 "a config, a path and a text are wanted");
    TEST_REFUSED(grt_config_parse(&c, NULL, "", 0), GRT_INVALID, "a path and a text");
    TEST_REFUSED(grt_config_parse(NULL, "a", "", 0), GRT_INVALID, "a config, a path");
    assert_true(grt_config_parse(&c, "a", NULL, 0));
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(ranges), TEST_CASE(words),         TEST_CASE(flags),
    TEST_CASE(forms),  TEST_CASE(nothing_there),
};
TEST_SUITE(edges, false, cases);
