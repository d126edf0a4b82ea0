// SPDX-License-Identifier: Apache-2.0
// What `gpurt bench train` recommends and advises, from rows that were made up: the choice for each
// kind of row, the sentence for each threshold on both of its sides, and the command that is next.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/train/bench_train.h"
#include "cli/talk.h"

#define GB 1000000000ull
#define MOST_ROWS 16

// In place of the library's, the terminal's and the table's: a device of 10 GB that was never
// opened, Ctrl-C that nobody pressed, and bytes as a number.
static struct grt_dev_info device;
static bool stopped;

const struct grt_dev_info *grt_dev_info(const struct grt_dev *dev) {
    (void)dev;
    return &device;
}

bool talk_stopped(void) {
    return stopped;
}

void table_bytes_text(uint64_t bytes, char text[TABLE_TEXT_SIZE]) {
    snprintf(text, TABLE_TEXT_SIZE, "%llu B", (unsigned long long)bytes);
}

static struct train_bench bench;  // two configs of 40 KB and more
static struct train_row rows[MOST_ROWS];
static struct train_advice advice;

static int begin(void **state) {
    (void)state;
    device = (struct grt_dev_info){.name = "GPU", .selector = "vulkan:0"};
    device.caps.memory = 10 * GB;
    stopped = false;
    memset(rows, 0, sizeof rows);
    bench = (struct train_bench){.rows = rows, .cache = TRAIN_CACHE_AUTO};
    bench.common.backend = "auto";
    bench.common.max_submit_ms = OPTIONS_SUBMIT_MS;
    bench.precisions = 1;
    bench.task.info.rows = 1u << 20;
    bench.task.info.x_width = 3;
    bench.task.info.y_width = 1;
    bench.source = (struct bench_source){.path = "d.h5"};
    return 0;
}

// A steady row that waits for nothing.
static struct train_row *add(uint32_t batch, double rate, uint64_t memory) {
    struct train_row *row = &rows[bench.count];
    bench.count++;
    *row = (struct train_row){.batch = batch,
                              .workers = 2,
                              .pin = true,
                              .cache = GRT_CACHE_NONE,
                              .rate = rate,
                              .memory = memory,
                              .busy = 0.8,
                              .spread = 0.1};
    return row;
}

static uint32_t recommended(void) {
    struct train_summary s = train_summarise(&bench);
    return s.recommended ? s.recommended->batch : 0;
}

static void advise(void) {
    struct train_summary s = train_summarise(&bench);
    train_advise(&bench, &s, &advice);
}

// How many sentences begin with, or have, this text.
static size_t told(const char *text) {
    size_t count = 0;
    for (size_t i = 0; i < advice.count; i++) {
        count += strstr(advice.texts[i], text) != NULL;
    }
    return count;
}

static void next_is(const char *command) {
    assert_string_equal(advice.next, command);
}

// ---- the choice ----

static void the_leanest_of_the_fast_ones(void **state) {
    (void)state;
    add(64, 1000, 1 * GB);
    add(128, 1500, 2 * GB);
    add(256, 1540, 6 * GB);
    add(512, 1600, 9 * GB);
    struct train_row *oom = add(1024, 9999, 1);
    oom->status = TRAIN_OOM;
    struct train_row *nan = add(2048, 9999, 1);
    nan->status = TRAIN_NOT_FINITE;
    struct train_summary s = train_summarise(&bench);
    assert_int_equal(s.fastest->batch, 512);
    assert_int_equal(s.efficient->batch, 64);
    // 512 takes more than 8 GB; of what fits, 95 % of 1540 is 1463.
    assert_int_equal(s.recommended->batch, 128);
    rows[1].rate = 1460;
    assert_int_equal(recommended(), 256);
    // Just what is safe fits.
    rows[3].memory = 8 * GB;
    assert_int_equal(recommended(), 256);
    rows[2].rate = 1519;
    assert_int_equal(recommended(), 512);
    rows[3].memory++;
    assert_int_equal(recommended(), 128);
}

static void memory_that_is_allowed(void **state) {
    (void)state;
    add(64, 1000, 1 * GB);
    add(128, 1500, 2 * GB);
    assert_int_equal(recommended(), 128);
    bench.common.mem_limit = 2 * GB;
    assert_true(train_memory(&bench) == 2 * GB);
    assert_int_equal(recommended(), 64);
    bench.common.mem_limit = 1 * GB;
    assert_int_equal(recommended(), 0);
    // No limit is more than the device has; one that does not say has no other.
    bench.common.mem_limit = 20 * GB;
    assert_true(train_memory(&bench) == 10 * GB);
    device.caps.memory = 0;
    assert_true(train_memory(&bench) == 20 * GB);
    bench.common.mem_limit = 0;
    rows[1].memory = 900 * GB;
    assert_int_equal(recommended(), 128);
}

static void steady_rows_first(void **state) {
    (void)state;
    add(64, 1000, 1 * GB);
    add(128, 1500, 2 * GB);
    add(256, 1540, 6 * GB);
    rows[1].spread = 0.5;
    assert_int_equal(recommended(), 256);
    rows[1].spread = 0.49;
    assert_int_equal(recommended(), 128);
    // What is steady has less than 80 % of the best: steadiness costs too much.
    rows[1].spread = rows[2].spread = 0.9;
    assert_int_equal(recommended(), 128);
    rows[0].rate = 1232;
    assert_int_equal(recommended(), 64);
}

static void ties(void **state) {
    (void)state;
    add(64, 1500, 1 * GB)->workers = 4;
    add(65, 1490, 1 * GB)->workers = 1;
    add(66, 1495, 1 * GB)->workers = 1;
    assert_int_equal(recommended(), 66);
    assert_int_equal(train_summarise(&bench).fastest->batch, 64);
    // One gigabyte and 1500 samples a second: 1500 a gigabyte.
    double efficiency = train_efficiency(&rows[0]);
    assert_true(efficiency > 1499.9 && efficiency < 1500.1);
}

// ---- the advice ----

static void nothing_ran(void **state) {
    (void)state;
    advise();
    assert_int_equal(advice.count, 1);
    assert_int_equal(told("No configuration ran"), 1);
    next_is("gpurt bench --data d.h5 --model small --batch-sizes '1-64*4'");
}

static void stopped_before_a_row(void **state) {
    (void)state;
    stopped = true;
    bench.apply = "a.yaml";
    advise();
    assert_int_equal(advice.count, 1);
    assert_int_equal(told("Interrupted before the first row"), 1);
    next_is("gpurt bench --data d.h5 --apply a.yaml");
}

static void data_hold_it_back(void **state) {
    (void)state;
    uint64_t workers[] = {1, 2, 4};
    struct train_row *row = add(64, 1000, 1 * GB);
    row->stall = 0.19;
    advise();
    assert_int_equal(told("Data loading"), 0);
    row->stall = 0.2;
    advise();
    assert_int_equal(told("waits for it 20% of a step. Use more workers"), 1);
    assert_int_equal(told("cache: ram, 16777216 B"), 1);
    next_is("gpurt bench --data d.h5 --batch-sizes 64 --num-workers 2,4 --precision f32");
    row->cache = GRT_CACHE_RAM;
    advise();
    assert_int_equal(told("on the device (cache: device, 16777216 B)"), 1);
    row->cache = GRT_CACHE_DEVICE;
    advise();
    assert_int_equal(told("Data loading"), 0);
    // More workers were measured, and gave half of it.
    row->cache = GRT_CACHE_NONE;
    bench.workers.values = workers;
    bench.workers.count = 3;
    add(64, 500, 1 * GB)->workers = 4;
    advise();
    assert_int_equal(told("More workers do not help (4: 0.50 times the throughput)"), 1);
    next_is("gpurt bench --data d.h5 --cache ram --batch-sizes 64 --num-workers 2 --precision f32");
    // Of another batch, or without pinned memory, they say nothing.
    rows[1].batch = 63;
    advise();
    assert_int_equal(told("do not help"), 0);
    next_is("gpurt bench --data d.h5 --batch-sizes 64 --num-workers 4,8 --precision f32");
    rows[1].batch = 64;
    rows[1].pin = false;
    advise();
    assert_int_equal(told("do not help"), 0);
}

static void memory_holds_it_back(void **state) {
    (void)state;
    add(64, 1000, 1 * GB);
    add(1024, 0, 0)->status = TRAIN_OOM;
    add(512, 0, 0)->status = TRAIN_OOM;
    advise();
    assert_int_equal(told("Memory-bound: batches from 512 on do not fit"), 1);
    assert_int_equal(told("f16 halves activations"), 1);
    bench.precisions = 3;
    advise();
    assert_int_equal(told("f16 halves activations"), 0);
    bench.count = 1;
    add(128, 1500, 9 * GB);
    advise();
    assert_int_equal(told("the fastest configuration takes 90% of the memory"), 1);
    rows[1].memory = 8 * GB;
    advise();
    assert_int_equal(told("Memory-bound"), 0);
    // Nothing fits well.
    rows[0].memory = rows[1].memory = 9 * GB;
    advise();
    assert_int_equal(told("Nothing is recommended: every row takes over 80%"), 1);
}

static void a_larger_batch(void **state) {
    (void)state;
    struct train_row *one = add(64, 1000, 1 * GB);
    // One size that keeps the device busy says nothing of others.
    one->busy = 0.7;
    advise();
    assert_int_equal(told("under-used"), 0);
    assert_int_equal(told("larger batches were not tried"), 1);
    one->busy = 0.69;
    advise();
    assert_int_equal(told("busy for 69% of a step. A larger batch gives it more"), 1);
    next_is("gpurt bench --data d.h5 --batch-sizes '64-256*2'");
    // Data do not have four times as many rows.
    bench.task.info.rows = 255;
    advise();
    next_is("gpurt bench --data d.h5 --batch-sizes 64 --num-workers 2 --precision f32"
            " --apply best.yaml");
    bench.task.info.rows = 256;
    advise();
    next_is("gpurt bench --data d.h5 --batch-sizes '64-256*2'");
    // Waiting for data is another matter.
    one->stall = 0.5;
    advise();
    assert_int_equal(told("under-used"), 0);
    one->stall = 0;
    bench.task.info.rows = 1u << 20;
    struct train_row *two = add(128, 1100, 2 * GB);
    advise();
    assert_int_equal(told("still grows at the largest batch, 128: 1.10 times"), 1);
    next_is("gpurt bench --data d.h5 --batch-sizes '128-512*2'");
    // Rows with other memory, workers or numbers say nothing of it.
    struct train_row *other = add(256, 900, 3 * GB);
    for (int i = 0; i < 3; i++) {
        other->pin = i != 0;
        other->workers = i == 1 ? 4 : 2;
        other->precision = i == 2 ? GRT_BF16 : GRT_F32;
        advise();
        assert_int_equal(told("still grows at the largest batch, 128: 1.10 times"), 1);
    }
    bench.count--;
    two->rate = 1099;
    two->busy = 0.5;
    advise();
    assert_int_equal(told("still grows"), 0);
    assert_int_equal(told("Larger batches gain little: a larger model, or cache: device"), 1);
    two->cache = GRT_CACHE_DEVICE;
    advise();
    assert_int_equal(told("Larger batches gain little; a larger model"), 1);
    two->rate = 2000;
    add(256, 0, 0)->status = TRAIN_OOM;
    advise();
    assert_int_equal(told("still grows"), 0);
    assert_int_equal(told("A larger batch does not fit; a larger model"), 1);
}

static void sixteen_bits(void **state) {
    (void)state;
    struct train_row *full = add(64, 1000, 2 * GB);
    full->busy = 0.89;
    advise();
    assert_int_equal(told("Compute-bound"), 0);
    full->busy = 0.9;
    advise();
    assert_int_equal(told("busy for 90% of a step. Mixed precision may help"), 1);
    next_is("gpurt bench --data d.h5 --batch-sizes 64 --num-workers 2 --precision f32,f16");
    device.caps.software = 1;
    advise();
    assert_int_equal(told("It is a CPU"), 1);
    device.caps.software = 0;
    struct train_row *half = add(64, 1100, 1 * GB);
    half->precision = GRT_F16;
    advise();
    assert_int_equal(told("Mixed precision pays: f16 is 1.10 times as fast"), 1);
    half->rate = 500;
    advise();
    assert_int_equal(told("does not pay here: f16 has 0.50 times the throughput of f32"), 1);
    // A row of another batch is no row of f32.
    half->batch = 65;
    advise();
    assert_int_equal(told("pay"), 0);
}

static void unsteady(void **state) {
    (void)state;
    struct train_row *row = add(64, 1000, 1 * GB);
    row->spread = 0.5;
    advise();
    assert_int_equal(told("unsteady (spread 50%)"), 1);
    row->spread = 0.49;
    advise();
    assert_int_equal(told("unsteady"), 0);
}

// All that was given, each once; the first finding is the one that is followed.
static void the_command(void **state) {
    (void)state;
    uint64_t workers[] = {0, 3};
    add(64, 1000, 1 * GB)->pin = false;
    bench.common.backend = "vulkan";
    bench.common.device = "it's";
    bench.common.require_gpu = 1;
    bench.common.mem_limit = 4 * GB + 1;
    bench.common.max_submit_ms = 50;
    bench.config_path = "c.yaml";
    bench.cache = GRT_CACHE_RAM;
    bench.workers.values = workers;
    bench.workers.count = 2;
    bench.model = (struct bench_model){.depth = 3, .hidden = 32};
    bench.given = (struct train_given){.workers = true,
                                       .model = true,
                                       .precisions = 5,
                                       .pins = 3,
                                       .steps = 9,
                                       .seconds = 0.5,
                                       .mem_fraction = 0.25};
    rows[0].busy = 0.1;
    advise();
    next_is("gpurt bench --config c.yaml --backend vulkan --device 'it'\\''s' --require-gpu"
            " --mem-limit 4000000001B --mem-fraction 0.25 --max-submit-ms 50 --data d.h5"
            " --model depth=3,hidden=32 --cache ram --batch-sizes '64-256*2' --num-workers 0,3"
            " --precision f32,bf16 --pin-memory on,off --steps 9 --time 0.5");
    bench.common.mem_limit = 4 * GB;
    bench.apply = "a.yaml";
    advise();
    next_is("gpurt train supervised --config a.yaml --backend vulkan --device 'it'\\''s'"
            " --require-gpu --mem-limit 4000MB --mem-fraction 0.25 --max-submit-ms 50"
            " --data d.h5");
    bench.source.synthetic = true;
    advise();
    assert_non_null(strstr(advice.next, " --data FILE"));
}

// ---- the config ----

static void read_back(const char *path, char *text, size_t size) {
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

// A batch in pieces that fit, and the rate by the root of what a step has more.
static void applied(void **state) {
    (void)state;
    char path[] = "/tmp/gpurt-advice-XXXXXX", text[4096] = "";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    struct train_row *row = add(64, 1000, 1 * GB);
    row->precision = GRT_F16;
    row->pin = false;
    grt_config_init(&bench.config);
    grt_config_init(&bench.task.config);
    assert_true(grt_config_override(&bench.config, "batch_size=100"));
    assert_true(grt_config_override(&bench.config, "accumulate=2"));
    assert_true(grt_config_override(&bench.config, "learning_rate=0.01"));
    bench.model.depth = 2;
    bench.named = true;
    bench.apply = path;
    assert_true(train_apply(&bench, row));
    read_back(path, text, sizeof text);
    // 200 samples in four pieces of 64: 256, and the rate times the root of 256 / 200.
    static const char *const lines[] = {"\n  batch_size: 64\n",          "\n  accumulate: 4\n",
                                        "\n  num_workers: 2\n",          "\n  pin_memory: false\n",
                                        "\n  precision: f16\n",          "\n  depth: 2\n",
                                        "\n  learning_rate: 0.0113137\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (!strstr(text, lines[i])) {
            fail_msg("no '%s' in:\n%s", lines[i], text);
        }
    }
    // A network that nobody named is no setting.
    bench.named = false;
    assert_true(train_apply(&bench, row));
    read_back(path, text, sizeof text);
    assert_non_null(strstr(text, "\n  batch_size: 64\n"));
    assert_true(!strstr(text, "depth") && !strstr(text, "hidden") && !strstr(text, "model"));
    remove(path);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest cases[] = {
        CASE(the_leanest_of_the_fast_ones),
        CASE(memory_that_is_allowed),
        CASE(steady_rows_first),
        CASE(ties),
        CASE(nothing_ran),
        CASE(stopped_before_a_row),
        CASE(data_hold_it_back),
        CASE(memory_holds_it_back),
        CASE(a_larger_batch),
        CASE(sixteen_bits),
        CASE(unsteady),
        CASE(the_command),
        CASE(applied),
    };
#undef CASE
    return cmocka_run_group_tests(cases, NULL, NULL);
}
