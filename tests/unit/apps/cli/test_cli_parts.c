// SPDX-License-Identifier: Apache-2.0
// What all verbs share: files that clash, results that appear when they are whole, lists of
// devices, samples that are timed, values at their limits, and what is said.
#include <math.h>
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

#include "base/closest.h"
#include "base/log.h"
#include "unit/apps/caught.h"
#include "cli/command.h"
#include "cli/options/options.h"
#include "cli/options/spread.h"
#include "cli/output/files.h"
#include "cli/output/output.h"
#include "cli/stats.h"
#include "cli/talk.h"

static char root[64];

static int begin(void **state) {
    (void)state;
    snprintf(root, sizeof root, "/tmp/gpurt_test_parts.XXXXXX");
    unsetenv("GPURT_PROFILE");
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

static void put(const char *name, const char *text) {
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
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

// ---- files ----

static void files(void **state) {
    static const struct {
        struct file_named files[3];
        const char *said;  // NULL: they go together
    } rows[] = {
        {{{FILE_READ, "a", "x"}, {FILE_READ, "b", "x"}}, NULL},
        {{{FILE_READ, "a", "x"}, {FILE_WRITTEN, "b", "y"}}, NULL},
        {{{FILE_READ, "a", "x"}, {FILE_WRITTEN, "b", "x"}},
         "'x' (b) is read as a and would be overwritten: name another file"},
        {{{FILE_WRITTEN, "a", "x"}, {FILE_READ, "b", "x"}},
         "'x' (a) is read as b and would be overwritten: name another file"},
        {{{FILE_WRITTEN, "a", "x"}, {FILE_WRITTEN, "b", "./x"}},
         "'x' (a) is written as b too: name two files"},
        {{{FILE_WRITTEN, "a", "x"}, {FILE_KEPT, "b", "x"}},
         "'x' (a) is written as b too: name two files"},
        {{{FILE_KEPT, "a", "x"}, {FILE_KEPT, "b", "x"}}, "is written as"},
        {{{FILE_KEPT, "a", "x"}, {FILE_READ, "b", "x"}}, NULL},
        {{{FILE_READ, "a", "x"}, {FILE_KEPT, "b", "x"}}, NULL},
        {{{FILE_WRITTEN, "a", ""}, {FILE_WRITTEN, "b", ""}}, NULL},
        {{{FILE_WRITTEN, "a", "link"}, {FILE_READ, "b", "x"}}, "'link' (a) is read as b"},
        {{{FILE_WRITTEN, "a", "new"}, {FILE_WRITTEN, "b", "new"}}, "'new' (a) is written as b too"},
        {{{FILE_WRITTEN, "a", "/dev/null"}, {FILE_WRITTEN, "b", "/dev/null"}}, NULL},
        {{{FILE_READ, "a", "x"}, {FILE_READ, "b", "y"}, {FILE_WRITTEN, "c", "y"}},
         "'y' (c) is read as b"},
        {{{FILE_WRITTEN, "a", "dir/best.h5"}, {FILE_FOLDER, "b", "dir"}},
         "'dir/best.h5' (a) is read as b"},
        {{{FILE_FOLDER, "b", "dir"}, {FILE_WRITTEN, "a", "dir/step-000000000507.h5"}},
         "'dir/step-000000000507.h5' (a) is read as b"},
        {{{FILE_WRITTEN, "a", "dir/step-12.h5x"}, {FILE_FOLDER, "b", "dir"}}, NULL},
        {{{FILE_WRITTEN, "a", "dir/step-x.h5"}, {FILE_FOLDER, "b", "dir"}}, NULL},
        {{{FILE_WRITTEN, "a", "dir/log.jsonl"}, {FILE_FOLDER, "b", "dir"}}, NULL},
        {{{FILE_WRITTEN, "a", "best.h5"}, {FILE_FOLDER, "b", "dir"}}, NULL},
        {{{FILE_READ, "a", "dir/best.h5"}, {FILE_FOLDER, "b", "dir"}}, NULL},
        {{{FILE_WRITTEN, "a", "inside"}, {FILE_FOLDER, "b", "dir"}}, "'inside' (a)"},
    };
    (void)state;
    put("x", "");
    put("y", "");
    assert_int_equal(mkdir("dir", 0777), 0);
    put("dir/best.h5", "");
    assert_int_equal(symlink("x", "link") + symlink("dir/best.h5", "inside"), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        catch_begin();
        int code = files_apart(rows[i].files, 3);
        catch_end();
        if (code != (rows[i].said ? COMMAND_USAGE : COMMAND_OK) ||
            (rows[i].said ? !strstr(caught, rows[i].said) : caught[0] != '\0')) {
            fail_msg("row %zu: %d, %s", i, code, caught);
        }
    }
    setenv("GPURT_PROFILE", "x", 1);
    catch_begin();
    assert_int_equal(FILES_APART({FILE_WRITTEN, "a", "x"}), COMMAND_USAGE);
    assert_int_equal(FILES_APART({FILE_READ, "a", "x"}), COMMAND_OK);
    catch_end();
    unsetenv("GPURT_PROFILE");
    assert_string_equal(caught, "gpurt: 'x' (a) is read as GPURT_PROFILE and would be overwritten: "
                                "name another file\n");
}

static void outputs(void **state) {
    struct output output;
    (void)state;
    put("kept", "before");
    for (int keep = 0; keep < 2; keep++) {
        assert_int_equal(output_open(&output, "kept"), COMMAND_OK);
        fputs("after", output.file);
        assert_true(output_flush(&output));
        assert_string_equal(read_back("kept"), "before");
        assert_int_equal(output_close(&output, keep), COMMAND_OK);
        assert_string_equal(read_back("kept"), keep ? "after" : "before");
        assert_null(output.file);
        assert_int_equal(output_close(&output, true), COMMAND_OK);  // closed already
    }
    for (int k = 0; k < 2; k++) {
        assert_int_equal(output_open(&output, k ? "-" : NULL), COMMAND_OK);
        assert_true(output.file == stdout && !output.whole);
        assert_int_equal(output_close(&output, true), COMMAND_OK);
    }
    assert_false(access("-", F_OK) == 0);
    catch_begin();
    assert_int_equal(output_open(&output, "nowhere/x"), COMMAND_CANNOT_CREATE);
    catch_end();
    // A failure to write is told once, and is why a command failed that could not say its rows.
    static const struct {
        int code, want;
    } ends[] = {
        {COMMAND_OK, COMMAND_IO}, {COMMAND_INTERNAL, COMMAND_IO}, {COMMAND_DATA, COMMAND_DATA}};
    for (int i = 0; i < 3; i++) {
        output = (struct output){.file = fopen("/dev/full", "w")};
        assert_non_null(output.file);
        fputs("x", output.file);
        assert_false(output_flush(&output));
        assert_false(output_flush(&output));
        catch_begin();
        assert_int_equal(output_end(&output, true, ends[i].code), ends[i].want);
        catch_end();
        assert_string_equal(caught, "gpurt: cannot write the results: No space left on device\n");
    }
    output = (struct output){.file = fopen("/dev/full", "w"), .said = true};
    fputs("x", output.file);
    catch_begin();
    assert_int_equal(output_close(&output, true), COMMAND_IO);
    catch_end();
    assert_string_equal(caught, "");
    // A command that failed by itself keeps its code where all was written.
    output = (struct output){.file = fopen("/dev/null", "w")};
    assert_int_equal(output_end(&output, true, COMMAND_INTERNAL), COMMAND_INTERNAL);
    // Who has closed the pipe has what he wanted.
    output = (struct output){.file = fopen("/dev/null", "w"), .error = 32};
    catch_begin();
    assert_int_equal(output_close(&output, true), COMMAND_OK);
    catch_end();
    assert_string_equal(caught, "");
    FILE *file = fopen("lines", "w");
    output_line(file, "%s", "a\033b");
    fclose(file);
    assert_string_equal(read_back("lines"), "a\\x1bb\n");
}

// ---- devices ----

static void devices(void **state) {
    static const struct {
        const char *list;
        uint32_t count;
        bool named;
        const char *words[3];
    } rows[] = {
        {"vulkan:0", 1, true, {"vulkan:0", "vulkan:0"}},
        {"a,b", 2, true, {"a", "b", "a"}},
        {"a,b,c", 3, true, {"a", "b", "c"}},
        {"llvmpipe (LLVM 15, 256 bits),b", 2, true, {"llvmpipe (LLVM 15, 256 bits)", "b"}},
        {"x (a (b, c), d),e", 2, true, {"x (a (b, c), d)", "e"}},
        {"a,", 2, false, {"a", ""}},
        {",a", 2, false, {"", "a"}},
        {"a,,b", 3, false, {"a", "", "b"}},
        {"a, ,b", 3, false, {"a", " ", "b"}},
        {"", 1, false, {"", ""}},
    };
    char word[64];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(devices_count(rows[i].list), rows[i].count);
        catch_begin();
        assert_int_equal(devices_named(rows[i].list), rows[i].named);
        catch_end();
        assert_int_equal(caught[0] == '\0', rows[i].named);
        for (uint32_t k = 0; k < 3 && rows[i].words[k]; k++) {
            devices_word(rows[i].list, k, word, sizeof word);
            assert_string_equal(word, rows[i].words[k]);
        }
    }
    catch_begin();
    devices_named("a,");
    catch_end();
    assert_string_equal(caught,
                        "gpurt: the devices 'a,' have an empty entry: name one on each side "
                        "of a comma\n");
    devices_word("a,b,c", 7, word, sizeof word);
    assert_string_equal(word, "b");
}

static int spread(char *const *words) {
    char *argv[12] = {"bench"};
    int argc = 1;
    for (; words[argc - 1]; argc++) {
        argv[argc] = words[argc - 1];
    }
    argv[argc] = NULL;
    catch_begin();
    int code = spread_devices("bench", argc, argv);
    catch_end();
    return code;
}
#define SPREAD(...) spread((char *const[]){__VA_ARGS__, NULL})

// One device is the verb's own matter, and so is --help.
static void spread_lines(void **state) {
    char many[300] = "--device=v";
    (void)state;
    assert_int_equal(SPREAD("mlp"), -1);
    assert_int_equal(SPREAD("--device", "a"), -1);
    assert_int_equal(SPREAD("--device", "a (b, c)"), -1);
    assert_int_equal(SPREAD("--device", "a,b", "--help"), -1);
    assert_int_equal(SPREAD("-h", "--device", "a,b"), -1);
    assert_int_equal(SPREAD("--device", "a,b", "--device", "c"), -1);  // the last counts
    assert_int_equal(SPREAD("--device"), -1);
    assert_int_equal(SPREAD("--devices", "a,b"), -1);
    assert_int_equal(SPREAD("--device", "a,"), COMMAND_USAGE);
    assert_non_null(strstr(caught, "have an empty entry"));
    assert_int_equal(SPREAD("--device=a,b", "--trace", "t"), COMMAND_USAGE);
    assert_string_equal(caught, "gpurt: --trace is of one device, and --device names 2\n");
    static char *const files[] = {"--memory-snapshot", "--metrics", "--contribute", "--apply"};
    for (int i = 0; i < 4; i++) {
        char want[128];
        assert_int_equal(SPREAD(files[i], "t", "--dev", "a,b,c"), COMMAND_USAGE);
        snprintf(want, sizeof want, "gpurt: %s is of one device, and --device names 3\n", files[i]);
        assert_string_equal(caught, want);
    }
    assert_int_equal(SPREAD("--device=a,b", "--format", "csv"), COMMAND_USAGE);
    assert_string_equal(caught, "gpurt: csv has no column for the device, and --device names 2: "
                                "--format json or jsonl has it\n");
    assert_int_equal(SPREAD("--device=a,b", "--form=csv"), COMMAND_USAGE);
    for (int i = 1; i < 65; i++) {
        strcat(many, ",v");
    }
    assert_int_equal(SPREAD(many), COMMAND_USAGE);
    assert_string_equal(caught, "gpurt: --device: at most 64 devices\n");
    many[strlen(many) - 2] = '\0';
    assert_int_equal(SPREAD(many, "--format=csv"), COMMAND_USAGE);
    assert_non_null(strstr(caught, "--device names 64"));
}

// ---- samples ----

static uint32_t ran, ends_at;
static bool sample(void *context, double *seconds) {
    const double *values = context;
    *seconds = values[ran % 4];
    ran++;
    return ran != ends_at;
}

static void samples(void **state) {
    static double values[] = {9, 1, 3, 2};
    struct stats s = {0};
    (void)state;
    ran = ends_at = 0;
    assert_true(stats_measure(&(struct stats_desc){.min_samples = 3}, sample, values, &s));
    assert_int_equal(ran, 4);  // one warms up and does not count
    assert_int_equal(s.count, 3);
    assert_true(s.min == 1 && s.median == 2 && s.upper == 2.5 && s.lower == 1.5);
    assert_true(s.spread == 0.25);
    ran = 0;
    assert_true(stats_measure(&(struct stats_desc){.min_samples = 0}, sample, values, &s));
    assert_int_equal(s.count, 7);
    ran = 0;
    assert_true(stats_measure(&(struct stats_desc){.min_samples = 5000}, sample, values, &s));
    assert_int_equal(s.count, STATS_MAX_SAMPLES);
    // More than the least while there is time, and never more than there is room for.
    ran = 0;
    assert_true(stats_measure(&(struct stats_desc){.budget = 60}, sample, values, &s));
    assert_int_equal(s.count, STATS_MAX_SAMPLES);
    for (ends_at = 1; ends_at < 4; ends_at++) {
        ran = 0;
        assert_false(stats_measure(&(struct stats_desc){.min_samples = 3}, sample, values, &s));
        assert_int_equal(ran, ends_at);
    }
    double below[] = {-1, -2, -3}, none[] = {0, 0};
    assert_true(stats_of(below, 3).spread == 0 && stats_of(none, 2).spread == 0);
    double one[] = {5};
    s = stats_of(one, 1);
    assert_true(s.lower == 5 && s.median == 5 && s.upper == 5 && s.spread == 0);
    static const double first[] = {2, 2, 2, 2}, second[] = {1, 1, 1, 3}, third[] = {1, 1, 2, 3};
    assert_true(stats_wins(first, second, 4));
    assert_false(stats_wins(first, third, 4));
    assert_true(stats_wins(first, second, 1));
    double before = stats_cpu();
    for (volatile int i = 0; i < 100000; i++) {
    }
    assert_true(stats_cpu() > before);
}

// ---- values ----

static void limits(void **state) {
    static const struct {
        options_read_fn *read;
        const char *text;
        bool good;
        double value;
    } rows[] = {
        {options_read_positive, "1e9", true, 1e9},
        {options_read_positive, "1e-9", true, 1e-9},
        {options_read_positive, "0", false, 0},
        {options_read_positive, "-1", false, 0},
        {options_read_positive, "inf", false, 0},
        {options_read_positive, "", false, 0},
        {options_read_positive, "1000000001", false, 0},
        {options_read_fraction, "1", true, 1},
        {options_read_fraction, "0.001", true, 0.001},
        {options_read_fraction, "0", false, 0},
        {options_read_fraction, "1.0001", false, 0},
        {options_read_fraction, "-0.5", false, 0},
        {options_read_fraction, "0.5 ", false, 0},
    };
    char why[RANGES_WHY];
    uint64_t whole = 0;
    uint32_t count = 0, bits = 0;
    const char *text = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double value = 0;
        assert_int_equal(rows[i].read(rows[i].text, &value, why), rows[i].good);
        assert_true(!rows[i].good || value == rows[i].value);
    }
    assert_true(options_read_count("4294967295", &count, why) && count == UINT32_MAX);
    assert_false(options_read_count("4294967296", &count, why));
    assert_true(options_read_count("1", &count, why) && count == 1);
    assert_false(options_read_count("0", &count, why));
    assert_true(options_whole("5", 5, 5, &whole, why) && whole == 5);
    assert_false(options_whole("4", 5, 7, &whole, why));
    assert_false(options_whole("8", 5, 7, &whole, why));
    assert_false(options_whole("5-6", 5, 7, &whole, why));
    assert_string_equal(why, "one number is wanted");
    assert_true(options_whole("18446744073709551615", 0, 0, &whole, why) && whole == UINT64_MAX);
    static const char *const names[] = {"a", "ab", "b"};
    assert_true(options_bits("b,a", names, 3, &bits, why) && bits == 5);
    assert_true(options_bits("ab", names, 3, &bits, why) && bits == 2);
    assert_true(options_bits("a,a", names, 3, &bits, why) && bits == 1);
    assert_false(options_bits("a,", names, 3, &bits, why));
    assert_false(options_bits("", names, 3, &bits, why));
    assert_false(options_bits("abc", names, 3, &bits, why));
    assert_string_equal(why, "known are a ab b");
    assert_false(options_read_text("", &text, why));
    assert_string_equal(why, "may not be empty");
    assert_null(text);
}

// ---- what is said ----

static void talk(void **state) {
    (void)state;
    talk_set_level(0);
    catch_begin();
    talk_line("line %d", 1);
    talk_error("error %s", "a\tb");
    talk_as_rank(3);
    talk_line("not said");
    talk_error("said");
    grt_log(GRT_LOG_ERROR, "logged");
    grt_log(GRT_LOG_WARN, "not logged");
    talk_as_first();
    talk_line("line 2");
    grt_log(GRT_LOG_WARN, "warned");
    grt_log(GRT_LOG_INFO, "not noted");
    talk_set_level(1);
    grt_log(GRT_LOG_INFO, "noted");
    grt_log(GRT_LOG_DEBUG, "not shown");
    talk_set_level(2);
    grt_log(GRT_LOG_DEBUG, "shown");
    talk_set_level(-1);
    talk_line("quiet");
    talk_progress("no terminal");
    grt_log(GRT_LOG_WARN, "quiet");
    grt_log(GRT_LOG_ERROR, "an error");
    talk_error("the end");
    catch_end();
    assert_false(talk_shows_progress());
    assert_string_equal(caught, "line 1\n"
                                "gpurt: error a\\x09b\n"
                                "gpurt: rank 3: said\n"
                                "gpurt: rank 3: error: logged\n"
                                "line 2\n"
                                "gpurt: warning: warned\n"
                                "gpurt: note: noted\n"
                                "gpurt: debug: shown\n"
                                "gpurt: error: an error\n"
                                "gpurt: the end\n");
    // What a rank was told to say it says as the first.
    talk_set_level(-1);
    talk_as_rank(1);
    talk_as_first();
    catch_begin();
    talk_line("quiet");
    catch_end();
    assert_string_equal(caught, "");
    static const char *const names[] = {"train", "tune"};
    catch_begin();
    assert_int_equal(command_unknown(&(struct command_unknown){"verb", "trian", NULL, "gpurt -h"},
                                     names, 2, sizeof *names),
                     COMMAND_USAGE);
    command_unknown(&(struct command_unknown){"option", "xyzzy", "--", "gpurt -h"}, names, 2,
                    sizeof *names);
    catch_end();
    assert_string_equal(caught, "gpurt: no verb 'trian'; did you mean 'train'?\n"
                                "gpurt: no option '--xyzzy'; see `gpurt -h`\n");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(files),   CASE(outputs), CASE(devices), CASE(spread_lines),
        CASE(samples), CASE(limits),  CASE(talk),
    };
    talk_set_level(-1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
