// SPDX-License-Identifier: Apache-2.0
// Command lines: values of every kind with their bounds, what is said of a mistake, exit codes,
// keys as options and options as keys.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/command.h"
#include "cli/options/options.h"
#include "cli/talk.h"

struct values {
    struct options common;
    uint32_t runs;
    uint32_t kinds;
    uint32_t given;  // of --each
    double time;
};

static bool read_kinds(const char *text, void *into, char why[RANGES_WHY]) {
    static const char *const names[] = {"gemm", "mlp", "conv"};
    return options_bits(text, names, 3, into, why);
}

static bool count_each(const char *text, void *into, char why[RANGES_WHY]) {
    uint64_t value = 0;
    bool good = options_whole(text, 2, 40, &value, why);
    *(uint32_t *)into += (uint32_t)value;
    return good;
}

#define AT(field) offsetof(struct values, field)
static const struct option_row own_rows[] = {
    {.name = "runs",
     .letter = "n",
     .value = "N",
     .help = "runs",
     .fallback = "3",
     .read = options_read_count,
     .at = AT(runs)},
    {.name = "kinds", .value = "LIST", .help = "kinds", .read = read_kinds, .at = AT(kinds)},
    {.name = "each",
     .value = "N",
     .help = "each",
     .read = count_each,
     .at = AT(given),
     .each = true},
    {.name = "time", .value = "S", .help = "time", .read = options_read_positive, .at = AT(time)},
};

static char said[4096];  // to stdout and stderr, by the last command line

// Exit code of a command line, -1 when it is good.
static int parse(struct values *values, const char *words, size_t *word_count, char *const *given) {
    static struct option_list lists[4];
    const struct option_list all[] = {
        OPTION_LIST("Own", own_rows), OPTION_LIST("Device", options_device),
        OPTION_LIST("Output", options_output), OPTION_LIST("General", options_general)};
    memcpy(lists, all, sizeof all);
    lists[2].hidden = true;
    char *argv[12] = {"bench"};
    const char *found[12];
    int argc = 1;
    while (*given && argc < 11) {
        argv[argc++] = *given++;
    }
    *values = (struct values){0};
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    int out = dup(1), err = dup(2);
    dup2(fileno(file), 1);
    dup2(fileno(file), 2);
    const struct options_desc desc = {"bench", words, "About.\n", lists, 4, 0};
    int code = options_parse(&desc, argc, argv, &values->common, found, word_count);
    fflush(stdout);
    dup2(out, 1);
    dup2(err, 2);
    close(out);
    close(err);
    rewind(file);
    said[fread(said, 1, sizeof said - 1, file)] = '\0';
    fclose(file);
    return code;
}

static struct values v;
static size_t words;
#define PARSE(...) parse(&v, NULL, &words, (char *const[]){__VA_ARGS__, NULL})
#define PARSE_KEYS(...) parse(&v, "KEY=VALUE...", &words, (char *const[]){__VA_ARGS__, NULL})
#define REFUSED(text, ...)                                                                         \
    do {                                                                                           \
        assert_int_equal(PARSE(__VA_ARGS__), COMMAND_USAGE);                                       \
        assert_string_equal(said, "gpurt: " text "\n");                                            \
    } while (0)

static void defaults(void **state) {
    (void)state;
    unsetenv("GPURT_DEVICE");
    assert_int_equal(PARSE(NULL), -1);
    assert_int_equal(v.runs, 3);
    assert_int_equal(v.kinds, 0);
    assert_string_equal(v.common.backend, "auto");
    assert_null(v.common.device);
    assert_true(v.common.max_submit_ms == 500 && v.common.mem_fraction == 0);
    assert_int_equal(v.common.format, TABLE_PLAIN);
    struct grt_dev_desc desc = options_device_desc(&v.common);
    assert_true(!desc.require_gpu && desc.mem_limit == 0 && desc.max_submit_ms == 500);
}

static void given(void **state) {
    (void)state;
    assert_int_equal(PARSE("-n7", "--kinds=conv,gemm", "--time", "0.25", "--mem-limit", "2KiB",
                           "--mem-fraction", "1", "--require-gpu", "-vv"),
                     -1);
    assert_int_equal(v.runs, 7);
    assert_int_equal(v.kinds, 5);
    assert_true(v.time == 0.25 && v.common.mem_fraction == 1);
    struct grt_dev_desc desc = options_device_desc(&v.common);
    assert_true(desc.require_gpu && desc.mem_limit == 2048 && desc.mem_fraction == 1);
    assert_int_equal(v.common.verbose, 2);
    talk_set_level(0);
    // The last counts, of --each all do.
    assert_int_equal(PARSE("--runs", "1", "--runs", "9", "--each", "2", "--each", "40"), -1);
    assert_int_equal(v.runs, 9);
    assert_int_equal(v.given, 42);
    assert_int_equal(PARSE("--format", "jsonl"), -1);
    assert_int_equal(v.common.format, TABLE_JSONL);
}

static void environment(void **state) {
    (void)state;
    setenv("GPURT_DEVICE", "vulkan:1", 1);
    assert_int_equal(PARSE(NULL), -1);
    assert_string_equal(v.common.device, "vulkan:1");
    assert_int_equal(PARSE("--device", "ref"), -1);
    assert_string_equal(v.common.device, "ref");
    // A backend that was named stands above it; auto names none.
    assert_int_equal(PARSE("--backend", "opencl"), -1);
    assert_null(v.common.device);
    assert_int_equal(PARSE("--backend", "auto"), -1);
    assert_string_equal(v.common.device, "vulkan:1");
    unsetenv("GPURT_DEVICE");
}

static void mistakes(void **state) {
    (void)state;
    REFUSED("--runs '0': at character 1 ('0'): it lies outside 1 to 4294967295", "--runs", "0");
    REFUSED("--runs '1,2': one number is wanted", "--runs", "1,2");
    REFUSED("--each '41': at character 1 ('41'): it lies outside 2 to 40", "--each", "41", "--each",
            "2");
    REFUSED("--kinds 'gemm,ml': known are gemm mlp conv", "--kinds", "gemm,ml");
    REFUSED("'--kinds' needs a value; see `gpurt bench --help`", "--kinds", "");
    REFUSED("--time '0': a number above 0 and up to 1e+09 is wanted", "--time", "0");
    REFUSED("--time '1.1e9': a number above 0 and up to 1e+09 is wanted", "--time", "1.1e9");
    REFUSED("--time '1s': a number above 0 and up to 1e+09 is wanted", "--time", "1s");
    REFUSED("--time 'nan': a number above 0 and up to 1e+09 is wanted", "--time", "nan");
    REFUSED("--mem-fraction '1.01': a number above 0 and up to 1 is wanted", "--mem-fraction",
            "1.01");
    REFUSED("--mem-limit '0': a size above 0 is wanted, such as 512MB or 2GiB", "--mem-limit", "0");
    REFUSED("--backend 'cuda': known are auto vulkan opencl ref", "--backend", "cuda");
    REFUSED("--format 'xml': known are table md csv json jsonl", "--format", "xml");
    REFUSED("'--runs' needs a value; see `gpurt bench --help`", "--runs");
    // An option is no value of another; behind a = it is one.
    REFUSED("'--runs' needs a value before '--time'; see `gpurt bench --help`", "--runs", "--time",
            "4");
    REFUSED("'--ru' needs a value before '--'; see `gpurt bench --help`", "--ru", "--", "word");
    REFUSED("'-vn' needs a value before '-q'; see `gpurt bench --help`", "-vn", "-q");
    REFUSED("'--output' needs a value before '-vo'; see `gpurt bench --help`", "--output", "-vo",
            "x");
    REFUSED("--time '-1': a number above 0 and up to 1e+09 is wanted", "--time", "-1");
    assert_int_equal(PARSE("--output", "-", "-n", "4", "--device=--x", "-v", "-o-q"), -1);
    assert_string_equal(v.common.output, "-q");
    assert_string_equal(v.common.device, "--x");
    talk_set_level(0);
    assert_int_equal(PARSE("--runs", "--help", "--help"), COMMAND_OK);
    REFUSED("no option '--rums'; did you mean '--runs'?", "--rums", "3");
    REFUSED("no option '--nothing-like-it'; see `gpurt bench --help`", "--nothing-like-it");
    REFUSED("no option '-x'; see `gpurt bench --help`", "-x");
    REFUSED("'--require-gpu' takes no value; see `gpurt bench --help`", "--require-gpu=1");
    REFUSED("bench: 'word' is not expected; see `gpurt bench --help`", "word");
}

static void help(void **state) {
    (void)state;
    // Whatever else is wrong.
    assert_int_equal(PARSE("--runs", "0", "--help"), COMMAND_OK);
    static const char begin[] = "usage: gpurt bench [OPTION...]\n\nAbout.\n\nOwn:\n"
                                "  -n, --runs N                           runs (default: 3)\n"
                                "      --kinds LIST                       kinds\n";
    assert_memory_equal(said, begin, sizeof begin - 1);
    assert_non_null(strstr(said, "  -h, --help                             show this and exit\n"));
    assert_non_null(strstr(said, "(default: $GPURT_DEVICE)\n"));
    assert_null(strstr(said, "--format"));  // its list is hidden
}

static void settings(void **state) {
    (void)state;
    assert_int_equal(PARSE_KEYS("batch_size=3", "word"), -1);
    assert_int_equal(words, 2);
    assert_int_equal(PARSE_KEYS("--batch-size", "3"), COMMAND_USAGE);
    assert_string_equal(said, "gpurt: no option '--batch-size'; it is a setting: give it as "
                              "batch_size=VALUE\n");
    assert_int_equal(PARSE_KEYS("max_submit_ms=3"), COMMAND_USAGE);
    assert_string_equal(said, "gpurt: 'max_submit_ms=3': it is an option: give it as "
                              "--max-submit-ms VALUE\n");
    assert_int_equal(PARSE_KEYS("require_gpu=3"), -1);  // a flag is no option with a value
}

static void keys_as_options(void **state) {
    (void)state;
    static const struct option_list lists[] = {OPTION_LIST("Own", own_rows)};
    char *argv[] = {"train",   "--num-envs", "64",  "--runs", "2",          "--gae-lambda=0.9",
                    "--until", "--kinds",    "mlp", "--",     "--last-one", "1"};
    struct options_keys keys;
    assert_true(options_keys_begin(&keys, lists, 1, 12, argv));
    static const char *const want[] = {"train",   "num_envs=64", "--runs", "2",  "gae_lambda=0.9",
                                       "--until", "--kinds",     "mlp",    "--", "--last-one",
                                       "1"};
    assert_int_equal(keys.argc, 11);
    assert_int_equal(keys.made_count, 2);
    for (int i = 0; i < keys.argc; i++) {
        assert_string_equal(keys.argv[i], want[i]);
    }
    assert_null(keys.argv[keys.argc]);
    options_keys_end(&keys);
    // What stands behind an option with a value stays as it is.
    char *eaten[] = {"train", "--kinds", "--num-envs", "64", "--kinds=mlp", "--num-envs", "64"};
    static const char *const left[] = {"train", "--kinds",     "--num-envs",
                                       "64",    "--kinds=mlp", "num_envs=64"};
    assert_true(options_keys_begin(&keys, lists, 1, 7, eaten));
    assert_int_equal(keys.argc, 6);
    for (int i = 0; i < keys.argc; i++) {
        assert_string_equal(keys.argv[i], left[i]);
    }
    options_keys_end(&keys);
}

static void exit_codes(void **state) {
    (void)state;
    static const int codes[GRT_STATUS_COUNT] = {
        [GRT_OK] = 70,        [GRT_INVALID] = 70,  [GRT_UNSUPPORTED] = 69, [GRT_NO_MEMORY] = 71,
        [GRT_COMPILE] = 70,   [GRT_LOST] = 70,     [GRT_IO] = 74,          [GRT_CONFIG] = 78,
        [GRT_NO_DEVICE] = 69, [GRT_BAD_DATA] = 65, [GRT_NO_INPUT] = 66,    [GRT_NO_OUTPUT] = 73,
    };
    for (int i = 0; i < GRT_STATUS_COUNT; i++) {
        assert_int_equal(command_exit_of((enum grt_status)i), codes[i]);
        assert_int_equal(command_exit_of_input((enum grt_status)i),
                         i == GRT_INVALID ? 64 : codes[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(given),
        cmocka_unit_test(environment),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(help),
        cmocka_unit_test(settings),
        cmocka_unit_test(keys_as_options),
        cmocka_unit_test(exit_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
