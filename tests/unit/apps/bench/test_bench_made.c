// SPDX-License-Identifier: Apache-2.0
// `gpurt bench memory` and `launch` on a made-up device, and what all kinds share: every figure of
// a row by what the device says that work takes, rows that are wrong or do not fit, and exit codes.
#include "unit/apps/made_device.h"

#include "bench/bench.h"
#include "cli/command.h"

#define QUICK " --time 0.001 --samples 3"

static int begin(void **state) {
    int code = made_begin(state);
    made.copy_rate[0] = 1e8;
    made.copy_rate[1] = 2e8;
    return code;
}

static const char *const copies[] = {"device copy", "driver copy", "upload", "readback"};

// By the device's clock, which says half: copies at 0.2 GB/s by a kernel, 0.1 by the driver; those
// on the device are read and written.
static void memory(void **state) {
    (void)state;
    static const double rates[] = {0.2 * 2 / 0.5, 0.2 * 1 / 0.5, 0.1 / 0.5, 0.1 / 0.5};
    assert_int_equal(made_run(cmd_bench, "bench memory --size 1001,64KiB" QUICK), 0);
    assert_int_equal(made_count(), 8);
    for (size_t i = 0; i < 8; i++) {
        TEXT(i, "kind", "memory");
        TEXT(i, "test", copies[i / 2]);
        NUMBER(i, "size", i % 2 ? 65536 : 1004);
        NUMBER(i, "gb_per_s", rates[i / 2]);
        // A quarter of what is left, in slots of 1024 bytes and of 64 KiB.
        NUMBER(i, "working_set", i % 2 ? 4 * 65536 : 256 * 1004);
        NUMBER(i, "spread", 0);
        NUMBER(i, "samples", 3);
        TEXT(i, "timer", "device");
        TEXT(i, "check", "ok");
    }
    assert_true(made.closed);
    // Of the 1 ms that a row has, no more samples than fit.
    assert_int_equal(made_run(cmd_bench, "bench memory --size 64KiB --time 0.19 --samples 1"), 0);
    assert_in_range((uint64_t)json_number_value(made_cell(0, "samples")), 3, 5);
}

static void slots(void **state) {
    (void)state;
    made.info.caps.align = 4096;
    assert_int_equal(made_run(cmd_bench, "bench memory --size 1000" QUICK), 0);
    NUMBER(0, "working_set", 64 * 1000);
    made.info.caps.align = 0;
    assert_int_equal(made_run(cmd_bench, "bench memory --size 1024,1028" QUICK), 0);
    NUMBER(0, "working_set", 256 * 1024);
    NUMBER(1, "working_set", 204 * 1028);  // 1280 apart
    made.info.caps.max_buffer = 100000;
    made.largest = 0;
    assert_int_equal(made_run(cmd_bench, "bench memory --size 50000" QUICK), 0);
    NUMBER(0, "working_set", 50000);
    assert_int_equal(made.largest, 50176);
    // What one run touches, where it has fewer copies than slots: of 12.5 ms each, two.
    made.info.caps.max_buffer = 0;
    made.copy_rate[1] = 2e6;
    assert_int_equal(made_run(cmd_bench, "bench memory --size 50000" QUICK), 0);
    NUMBER(0, "working_set", 2 * 50000);
    // The whole set is 256 MiB on a GPU, 64 on a CPU.
    made.memory = 2ull << 30;
    made.copy_rate[0] = made.copy_rate[1] = 1e7;
    for (int software = 0; software < 2; software++) {
        made.info.caps.software = (uint32_t)software;
        made.largest = 0;
        assert_int_equal(made_run(cmd_bench, "bench memory --size 2MiB" QUICK), 0);
        assert_int_equal(made.largest, (software ? 64u : 256u) << 20);
    }
}

// Without --size those that fit, and one at least.
static void default_sizes(void **state) {
    (void)state;
    made.copy_rate[0] = made.copy_rate[1] = 1e7;  // one copy a run
    for (int software = 0; software < 2; software++) {
        made.info.caps.software = (uint32_t)software;
        made.memory = 16 << 20;
        assert_int_equal(made_run(cmd_bench, "bench memory" QUICK), 0);
        assert_int_equal(made_count(), 8);
        for (size_t i = 0; i < 8; i++) {
            NUMBER(i, "size", i % 2 ? 4 << 20 : 1 << 20);
        }
        made.memory = (16 << 20) - 4;
        assert_int_equal(made_run(cmd_bench, "bench memory" QUICK), 0);
        assert_int_equal(made_count(), 4);
        made.memory = 1 << 19;
        assert_int_equal(made_run(cmd_bench, "bench memory" QUICK), COMMAND_NO_MEMORY);
        assert_int_equal(made_count(), 4);
        NUMBER(0, "size", 1 << 20);
    }
}

// A device whose clock tells nothing, and one without.
static void by_the_wall(void **state) {
    (void)state;
    made.submit = 0;
    for (int software = 0; software < 2; software++) {
        made.clock_stands = !software;
        if (software) {
            made_software();
        }
        assert_int_equal(made_run(cmd_bench, "bench memory --size 64KiB" QUICK), 0);
        NUMBER(0, "gb_per_s", 0.4);
        NUMBER(3, "gb_per_s", 0.1);
        TEXT(3, "timer", "wall");
    }
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Median and half the interquartile range of the last nine runs, which are the samples.
static void median_and_spread(void **state) {
    (void)state;
    static const double slower[] = {1, 1.1, 1.4, 1.2, 1.05, 2, 1.3};
    double runs[9];
    memcpy(made.slower, slower, sizeof slower);
    assert_int_equal(made_run(cmd_bench, "bench memory --size 64KiB --time 1e-9 --samples 9"), 0);
    for (size_t i = 0; i < 9; i++) {
        runs[i] = made.runs[made.finishes - 9 + i];
    }
    qsort(runs, 9, sizeof *runs, ascending);
    assert_true(runs[8] > runs[4]);
    NUMBER(3, "samples", 9);
    NUMBER(3, "spread", (runs[6] - runs[2]) / 2 / runs[4]);
    // Its copies: the least of the runs, at 0.1 GB/s and half of the time told, is not slower.
    double bytes = runs[0] * 2e8;
    NUMBER(3, "gb_per_s", bytes / runs[4] / 1e9);
}

static void what_does_not_fit(void **state) {
    (void)state;
    assert_int_equal(made_run(cmd_bench, "bench memory --size 64KiB,2MiB" QUICK), 0);
    assert_int_equal(made_count(), 8);
    TEXT(1, "check", "no memory");
    static const char *const measured[] = {"gb_per_s", "spread", "samples", "timer", "working_set"};
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        assert_true(made_known(0, measured[i]));
        assert_false(made_known(1, measured[i]));
    }
    NUMBER(1, "size", 2 << 20);
    assert_int_equal(made_run(cmd_bench, "bench memory --size 2MiB" QUICK), COMMAND_NO_MEMORY);
    assert_int_equal(made_count(), 4);
    // Of two buffers the second may be the one that has no room: the first is given back.
    NOT_SAID("failed their check");
}

static void what_is_wrong(void **state) {
    (void)state;
    made.wrong = 1;
    assert_int_equal(made_run(cmd_bench, "bench memory --size 1000" QUICK), COMMAND_INTERNAL);
    assert_int_equal(made_count(), 4);
    SAID("device copy of 1000 bytes: byte 996 of copy 0 is wrong");
    SAID("upload of 1000 bytes: byte 996 of copy 0 is wrong");
    SAID("rows that failed their check, not timed: 4");
    TEXT(2, "check", "FAILED");
    assert_false(made_known(2, "gb_per_s"));
    assert_false(made_known(2, "timer"));
    assert_int_equal(made_run(cmd_bench, "bench launch --count 2" QUICK), COMMAND_INTERNAL);
    SAID("independent, 2 dispatches: number 0 is 0 and not 1");
    SAID("in order, 2 dispatches: number 0 is 0 and not 2");
    SAID("replay, 1 dispatches: number 0 is 0 and not 1");
    SAID("not timed: 3");
    TEXT(2, "test", "empty");
    TEXT(2, "check", "ok");
    assert_false(made_known(1, "us"));
}

// A call that fails ends the bench with its exit code, whatever was measured before.
static void what_fails(void **state) {
    (void)state;
    static const struct {
        enum grt_status status;
        int code;
    } rows[] = {{GRT_LOST, 70}, {GRT_NO_MEMORY, 71}, {GRT_UNSUPPORTED, 69}, {GRT_IO, 74}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        made.finishes = 0;
        made.fail_at = 20;
        made.failure = rows[i].status;
        assert_int_equal(made_run(cmd_bench, "bench memory --size 64KiB" QUICK), rows[i].code);
        assert_in_range(made_count(), 1, 3);
        assert_true(made.closed);
    }
    made.fail_at = 0;
    assert_int_equal(made_run(cmd_bench, "bench memory --size 64KiB" QUICK), 0);
}

// ---- launch ----

static const char *const launches[] = {"independent", "in order", "empty", "replay"};

// One dispatch costs 1 us and each submit 10.
static void launch(void **state) {
    (void)state;
    static const double counts[] = {1, 4, 16, 64, 256, 1024};
    assert_int_equal(made_run(cmd_bench, "bench launch" QUICK), 0);
    assert_int_equal(made_count(), 19);
    for (size_t i = 0; i < 19; i++) {
        double count = i < 18 ? counts[i % 6] : 1;
        TEXT(i, "kind", "launch");
        TEXT(i, "test", launches[i / 6]);
        NUMBER(i, "dispatches", count);
        NUMBER(i, "us", 10 / count + 1);
        TEXT(i, "timer", "wall");
        TEXT(i, "check", "ok");
    }
}

// One run, twice and three times as long, one after the other: of three samples the one between.
static void launches_vary(void **state) {
    (void)state;
    static const double slower[] = {1, 2, 3};
    memcpy(made.slower, slower, sizeof slower);
    made.submit = 0;
    made.dispatch = 0.01;
    assert_int_equal(made_run(cmd_bench, "bench launch --count 1,2" QUICK), 0);
    for (size_t i = 0; i < 7; i++) {
        NUMBER(i, "us", 2e4);
        NUMBER(i, "spread", 0.25);
    }
}

static void lists(void **state) {
    (void)state;
    static const char *const lines[] = {
        "bench launch --count 1 2 3" QUICK, "bench --count 1 2 3 launch" QUICK,
        "bench --time 0.001 launch --samples 3 --count 1,2 3", "bench launch --count 1-3" QUICK};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_int_equal(made_run(cmd_bench, lines[i]), 0);
        assert_int_equal(made_count(), 10);
        NUMBER(2, "dispatches", 3);
        NUMBER(3, "dispatches", 1);
    }
    // Only behind an option, and not where it has its value already.
    assert_int_equal(made_run(cmd_bench, "bench launch --count=1 2" QUICK), COMMAND_USAGE);
    SAID("'2'");
    assert_int_equal(made_run(cmd_bench, "bench launch 2" QUICK), COMMAND_USAGE);
    // Two lists of one line stay apart.
    assert_int_equal(
        made_run(cmd_bench, "bench memory launch --size 1000 2000 --count 1 2 3" QUICK), 0);
    assert_int_equal(made_count(), 8 + 10);
    NUMBER(1, "size", 2000);
    NUMBER(10, "dispatches", 3);
}

static void bounds(void **state) {
    (void)state;
    static const struct {
        const char *line;
        int code;
        const char *said;
    } rows[] = {
        {"bench launch --count 65537" QUICK, 64, "1 to 65536"},
        {"bench launch --count 0" QUICK, 64, "1 to 65536"},
        {"bench memory --size 3" QUICK, 64, "4 to"},
        {"bench memory --size 4" QUICK, 0, ""},
        {"bench launch --count 1 --samples 1000 --time 0.001", 0, ""},
        {"bench memory --size 4 --samples 1001", 64, "1 to 1000"},
        {"bench memory --size 4 --samples 0", 64, "1 to 1000"},
        {"bench memory --size 4 --time 0", 64, "above 0"},
        {"bench launch --size 4" QUICK, 64, "'--size' is an option of `gpurt bench memory`"},
        {"bench memory --count 4" QUICK, 64, "'--count' is an option of `gpurt bench launch`"},
        {"bench memory rollout --shape 4" QUICK, 64,
         "'--shape' is an option of `gpurt bench gemm`"},
        {"bench launch --num-envs 4" QUICK, 64,
         "'--num-envs' is an option of `gpurt bench rollout`"},
        {"bench memory lunch" QUICK, 64, "no kind of bench 'lunch'; did you mean 'launch'?"},
        {"bench all memory" QUICK, 64, "no kind of bench 'all'"},
        {"bench memory --contribute a.json" QUICK, 64, "'--contribute' is of `gpurt bench all`"},
        {"bench memory xyzzy" QUICK, 64, "see `gpurt bench --help`"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int code = made_run(cmd_bench, rows[i].line);
        if (code != rows[i].code || !strstr(made_said, rows[i].said)) {
            fail_msg("%s: exit code %d, said: %s", rows[i].line, code, made_said);
        }
    }
    // The largest there is: too many cells for this device, and not too many dispatches.
    assert_int_equal(made_run(cmd_bench, "bench launch --count 65536" QUICK), 0);
    TEXT(0, "check", "no memory");
    TEXT(1, "check", "ok");
    NUMBER(1, "us", 1 + 10.0 / 65536);
}

// Which device, in the titles for people and the head for programs; each kind has its own.
static void titles(void **state) {
    (void)state;
    assert_int_equal(made_plain(cmd_bench, "bench memory launch --size 1000 --count 1" QUICK), 0);
    static const char *const parts[] = {"memory on opencl:0: Made-up 9000, none 0.1",
                                        "launch on opencl:0: Made-up 9000, none 0.1",
                                        "GB/s",
                                        "us/dispatch",
                                        "rotating over",
                                        "1000 B"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!strstr(made_out, parts[i])) {
            fail_msg("no '%s' in: %s", parts[i], made_out);
        }
    }
    assert_null(strstr(made_out, "GFLOP/s"));
    assert_int_equal(made_run(cmd_bench, "bench memory --size 1000" QUICK), 0);
    assert_string_equal(json_string_value(json_object_get(made_head, "schema")), "gpurt.bench/1");
    const json_t *device = json_object_get(made_head, "device");
    assert_string_equal(json_string_value(json_object_get(device, "name")), "Made-up 9000");
    assert_null(json_object_get(made_notes, "partial"));
    // So many rows that it takes long are said to; 1.5 times --time is the least.
    static const struct {
        const char *line, *said;
    } rows[] = {{"bench launch --count 1 --time 3.34 --samples 1",
                 "4 rows of 3.34 s each and more: about 20 s"},
                {"bench launch --count 1 --time 16.6 --samples 1", "about 100 s"},
                {"bench launch --count 1 --time 20 --samples 1", "about 2 min"},
                {"bench launch --count 1 --time 990 --samples 1", "about 99 min"},
                {"bench launch --count 1 --time 1200 --samples 1", "about 2.0 h"}};
    made.dispatch = 1;
    assert_int_equal(made_run(cmd_bench, "bench launch --count 1 --time 3.33 --samples 1"), 0);
    NOT_SAID("rows of");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(made_run(cmd_bench, rows[i].line), 0);
        SAID(rows[i].said);
    }
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest cases[] = {
        CASE(memory),
        CASE(slots),
        CASE(default_sizes),
        CASE(by_the_wall),
        CASE(median_and_spread),
        CASE(what_does_not_fit),
        CASE(what_is_wrong),
        CASE(what_fails),
        CASE(launch),
        CASE(launches_vary),
        CASE(lists),
        CASE(bounds),
        CASE(titles),
    };
#undef CASE
    return cmocka_run_group_tests(cases, NULL, NULL);
}
