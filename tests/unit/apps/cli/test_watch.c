// SPDX-License-Identifier: Apache-2.0
// What --kernels says of the bottleneck, from rows that were made up: each sentence, and each
// threshold on both of its sides.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/options/watch.h"

static const struct watch_peaks peaks = {.operations = 1e12, .bytes = 1e11};
static char text[WATCH_ADVICE_SIZE];

static void has(const char *part) {
    if (!strstr(text, part)) {
        fail_msg("'%s' is not in: %s", part, text);
    }
}

static void lacks(const char *part) {
    if (strstr(text, part)) {
        fail_msg("'%s' is in: %s", part, text);
    }
}

// A second of which the device worked for such a share.
static struct grt_timeline_totals second(double worked) {
    return (struct grt_timeline_totals){
        .wall = 1.0, .active = 1.0, .compute = worked, .dispatches = 10, .submits = 1000};
}

// A product that took 0.4 s in a thousand calls.
static struct grt_timeline_kernel product(double operations) {
    return (struct grt_timeline_kernel){.name = "gemm_tiled_f32",
                                        .calls = 1000,
                                        .timed = 1000,
                                        .seconds = 0.4,
                                        .operations = operations,
                                        .is_kernel = true,
                                        .of_operations = true};
}

// A kernel that adds, by the bytes it binds.
static struct grt_timeline_kernel stream(double bytes) {
    return (struct grt_timeline_kernel){.name = "map",
                                        .calls = 1000,
                                        .timed = 1000,
                                        .seconds = 0.4,
                                        .bytes = bytes,
                                        .is_kernel = true};
}

static void say(const struct grt_timeline_totals *totals, const struct grt_timeline_kernel *row) {
    watch_advice(totals, row, row ? 1 : 0, &peaks, text);
}

static void nothing_was_done(void **state) {
    (void)state;
    struct grt_timeline_totals none = {0}, some = second(0.8);
    struct grt_timeline_kernel row = product(1e9);
    say(&some, NULL);
    assert_string_equal(text, "the device did nothing that has a time");
    say(&none, &row);
    assert_string_equal(text, "the device did nothing that has a time");
}

static void batches_were_waited_for(void **state) {
    (void)state;
    static const struct {
        enum grt_stage stage;
        const char *remedy;
    } stages[] = {{GRT_STAGE_READ, "is read: cache: ram or device reads the file once"},
                  {GRT_STAGE_INFLATE, "is inflate: more workers, cache: ram or device, or a file"},
                  {GRT_STAGE_DECODE, "is decode: more workers, or `gpurt data import`"},
                  {GRT_STAGE_CONVERT, "is convert: more workers, or cache"}};
    struct grt_timeline_kernel row = product(1e9);
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        struct grt_timeline_totals t = second(0.5);
        t.stages[GRT_STAGE_WAIT] = 0.25;
        t.stages[GRT_STAGE_READ] = t.stages[GRT_STAGE_CONVERT] = 0.1;
        t.stages[stages[i].stage] = 0.2;
        t.stages[GRT_STAGE_TRANSFORM] = 0.3;  // the device's, which was idle
        say(&t, &row);
        has("idle for 50 % of the time, most of it waiting for batches, whose slowest stage");
        has(stages[i].remedy);
        assert_int_equal(watch_slowest(&t), GRT_STAGE_TRANSFORM);
        t.stages[GRT_STAGE_WAIT] = 0.24;  // less than half of the idle time
        say(&t, &row);
        lacks("batches");
    }
    struct grt_timeline_totals t = second(0.5);
    assert_int_equal(watch_slowest(&t), GRT_STAGE_COUNT);
    t.stages[GRT_STAGE_WAIT] = 0.5;
    say(&t, &row);
    has("waiting for batches: more workers, or cache");
}

static void the_host_held_it_up(void **state) {
    (void)state;
    struct grt_timeline_kernel row = product(1e9);
    struct grt_timeline_totals t = second(0.6);
    t.submitting = 0.2;
    say(&t, &row);
    has("idle for 40 % of the time, most of it while the host handed work to the driver (200 us a "
        "submit): larger batches need fewer submits");
    struct grt_timeline_kernel rows[] = {row, {.name = "(upload)", .calls = 1, .seconds = 0.1}};
    watch_advice(&t, rows, 2, &peaks, text);
    has("larger batches, or data on the device (cache: device), need fewer submits");
    t.submitting = 0.19;
    say(&t, &row);
    has("while the host did something else: evaluate, log and save less often");
}

static void idle_begins_at_three_tenths(void **state) {
    (void)state;
    struct grt_timeline_kernel row = product(1e9);
    struct grt_timeline_totals t = second(0.6999);
    say(&t, &row);
    has("idle for 30 %");
    t = second(0.7001);
    say(&t, &row);
    has("gemm_tiled_f32 takes 57 % of the device's time");
    t.upload = 0.1;  // of all queues
    say(&t, &row);
    has("takes 50 %");
}

static void a_kernel_takes_the_time(void **state) {
    (void)state;
    struct grt_timeline_totals t = second(0.8);
    struct grt_timeline_kernel row = product(0.61 * 0.4e12);
    say(&t, &row);
    assert_string_equal(text, "gemm_tiled_f32 takes 50 % of the device's time, at 61 % of its "
                              "peak: it is near the device's limit, which a lower precision (f16, "
                              "bf16) or less work moves");
    row = product(0.59 * 0.4e12);
    say(&t, &row);
    has("at 59 % of its peak: `gpurt tune` may find");
    row.calls = 20001;
    say(&t, &row);
    has("its calls are short, and larger batches make them longer");
    row.calls = 19999;
    say(&t, &row);
    has("`gpurt tune`");
    row.name = "gemm_wgmma_16";  // matrix units: their peak was not measured
    say(&t, &row);
    lacks("peak");
}

static void bytes_say_little_of_a_kernel_that_computes(void **state) {
    (void)state;
    struct grt_timeline_totals t = second(0.8);
    struct grt_timeline_kernel row = stream(0.21 * 0.4e11);
    say(&t, &row);
    has("at 21 % of its bandwidth");
    row = stream(0.19 * 0.4e11);
    say(&t, &row);
    lacks("bandwidth");
    row = stream(1.01 * 0.4e11);  // more than can be read
    say(&t, &row);
    lacks("bandwidth");
    row.is_kernel = false;
    say(&t, &row);
    has(": data that stays on the device (cache: device) is not copied");
}

// 1000 samples in 10.1 s, and in 9.9 s.
static void a_transform_is_slow(void **state) {
    (void)state;
    struct grt_timeline_kernel row = {.name = "image_blur_f32", .seconds = 10.1, .samples = 1000};
    assert_true(watch_slow_transform(&row, text));
    has("image_blur_f32 takes 10.1 ms a sample: ");
    row.seconds = 9.9;
    assert_false(watch_slow_transform(&row, text));
    row.samples = 0.0;  // no transform
    assert_false(watch_slow_transform(&row, text));
}

static void row(struct grt_timeline_kernel kernel, double all, const char *want) {
    watch_row(&kernel, all, &peaks, text);
    assert_string_equal(text, want);
}

static void rows_of_kernels(void **state) {
    (void)state;
    row(product(1e11), 0.5,
        "gemm_tiled_f32               1000   400.000     400.0  80.0%  250 GFLOP/s   25%");
    row(stream(1e9), 0.4,
        "map                          1000   400.000     400.0 100.0%     2.5 GB/s    2%");
    // The first that takes another prefix, and the last that does not.
    row(stream(0.4 * 999.4e6), 0.4,
        "map                          1000   400.000     400.0 100.0%     999 MB/s    1%");
    row(stream(0.4 * 999.6e6), 0.4,
        "map                          1000   400.000     400.0 100.0%       1 GB/s    1%");
    row(stream(0.4 * 12), 0.8,
        "map                          1000   400.000     400.0  50.0%       12 B/s    0%");
    row(stream(0.4e18 * 12345), 0.0,
        "map                          1000   400.000     400.0   0.0% 1.23e+07 PB/s     -");
    // Not timed: what is counted alone.
    row((struct grt_timeline_kernel){.name = "a_name_that_is_longer_than_its_column",
                                     .calls = 7,
                                     .seconds = 1},
        1.0, "a_name_that_is_longer_th        7         -         -      -            -     -");
}

static void what_batches_took(void **state) {
    (void)state;
    struct grt_timeline_totals t = second(0.5);
    t.stages[GRT_STAGE_WAIT] = 2.0;
    assert_false(watch_stages(&t, text));
    t.stages[GRT_STAGE_READ] = 0.25;
    t.stages[GRT_STAGE_CONVERT] = 0.75;
    assert_true(watch_stages(&t, text));
    assert_string_equal(text, "data: the slowest stage is convert (read 25%, convert 75% of 1.000 "
                              "s in all); the host waited 2.000 s for batches");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_was_done),
        cmocka_unit_test(batches_were_waited_for),
        cmocka_unit_test(the_host_held_it_up),
        cmocka_unit_test(idle_begins_at_three_tenths),
        cmocka_unit_test(a_kernel_takes_the_time),
        cmocka_unit_test(bytes_say_little_of_a_kernel_that_computes),
        cmocka_unit_test(a_transform_is_slow),
        cmocka_unit_test(rows_of_kernels),
        cmocka_unit_test(what_batches_took),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
