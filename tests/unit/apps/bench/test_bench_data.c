// SPDX-License-Identifier: Apache-2.0
// `gpurt bench data` with a loader that was made up: rates beside those of reading and of copying,
// medians, the slowest stage, batches that differ, and what is refused.
#include "unit/apps/made_device.h"

#include "bench/bench_more.h"
#include "cli/command.h"
#include "gpurt/loader.h"
#include "gpurt/make.h"
#include "gpurt/timeline.h"

static char data[64], bytes[64];

// ---- in place of the library's ----

struct grt_loader {
    struct grt_loader_desc desc;
    uint32_t turn;
    float x[256];
};

static struct {
    double batch[4];   // seconds of a batch, one after the other; 0: the end
    double raw, copy;  // of a row
    double stages[GRT_STAGE_COUNT];
    bool differs, fails;
    uint32_t threads, turns;
    uint64_t raw_batches, copy_batches;
    struct grt_loader_desc seen;
} m;

struct grt_loader *grt_loader_create(const struct grt_loader_desc *desc) {
    struct grt_loader *loader = calloc(1, sizeof *loader);
    loader->desc = *desc;
    m.seen = desc->workers ? *desc : m.seen;
    return loader;
}

void grt_loader_destroy(struct grt_loader **loader) {
    free(*loader);
    *loader = NULL;
}

struct grt_loader_info grt_loader_info(const struct grt_loader *loader) {
    (void)loader;
    return (struct grt_loader_info){.batches_per_epoch = 3};
}

bool grt_loader_next(struct grt_loader *loader, struct grt_batch *batch) {
    size_t count = 0;
    while (count < 4 && m.batch[count] > 0) {
        count++;
    }
    made.now += m.batch[m.turns++ % count];
    loader->x[0] = (float)loader->turn++;
    loader->x[0] += m.differs && loader->desc.workers && loader->turn == 3;
    *batch = (struct grt_batch){.rows = 1, .x = loader->x, .y = loader->x};
    return !m.fails || grt_fail(GRT_IO, "made up");
}

void grt_loader_release(struct grt_loader *loader, const struct grt_batch *batch) {
    (void)loader;
    (void)batch;
}

bool grt_loader_raw(const struct grt_loader *loader, uint32_t threads, uint64_t batches,
                    struct grt_loader_raw *raw) {
    (void)loader;
    m.threads = threads;
    m.raw_batches = batches;
    *raw = (struct grt_loader_raw){.rows = 10, .seconds = 10 * m.raw};
    made.now += 1e-3;
    return true;
}

struct grt_copier *grt_copier_create(const struct grt_loader *loader) {
    assert_non_null(loader);
    return calloc(1, 1);
}

void grt_copier_destroy(struct grt_copier **copier) {
    free(*copier);
    *copier = NULL;
}

bool grt_copier_run(struct grt_copier *copier, uint32_t threads, uint64_t batches,
                    struct grt_loader_raw *raw) {
    (void)copier;
    assert_int_equal(threads, m.threads);
    m.copy_batches = batches;
    *raw = (struct grt_loader_raw){.rows = 20, .seconds = 20 * m.copy};
    return true;
}

struct grt_timeline *grt_timeline_begin(struct grt_dev *dev, const struct grt_timeline_desc *desc) {
    assert_true(!dev && !desc);
    return calloc(1, 1);
}

bool grt_timeline_end(struct grt_timeline *timeline) {
    (void)timeline;
    return true;
}

void grt_timeline_destroy(struct grt_timeline **timeline) {
    free(*timeline);
    *timeline = NULL;
}

struct grt_timeline_totals grt_timeline_totals(const struct grt_timeline *timeline) {
    struct grt_timeline_totals totals = {0};
    (void)timeline;
    memcpy(totals.stages, m.stages, sizeof m.stages);
    return totals;
}

static int begin(void **state) {
    memset(&m, 0, sizeof m);
    m.batch[0] = 0.01;
    m.raw = 0.002;
    m.copy = 0.001;
    return made_begin(state);
}

static int make(void **state) {
    (void)state;
    snprintf(data, sizeof data, "/tmp/gpurt-bench-data-%d.h5", (int)getpid());
    snprintf(bytes, sizeof bytes, "/tmp/gpurt-bench-bytes-%d.h5", (int)getpid());
    return grt_data_make(grt_make_desc(.path = data, .samples = 50, .features = 5)) &&
                   grt_data_make(grt_make_desc(.path = bytes, .make = GRT_MAKE_SHAPES,
                                               .samples = 50, .features = 1, .pixels = 8))
               ? 0
               : -1;
}

static int unmake(void **state) {
    (void)state;
    return unlink(data) + unlink(bytes);
}

static int run(const char *words) {
    char line[512];
    snprintf(line, sizeof line, "data --data %s %s", data, words);
    return made_run(bench_data, line);
}

static void figures(void **state) {
    (void)state;
    m.stages[GRT_STAGE_READ] = 3;
    m.stages[GRT_STAGE_INFLATE] = 5;
    m.stages[GRT_STAGE_CONVERT] = 2;
    m.stages[GRT_STAGE_WAIT] = 90;  // of the host, no part of making a batch
    assert_int_equal(run("--batch-sizes 4,8 --num-workers 0,3 --time 0.5"), 0);
    assert_int_equal(made_count(), 4);
    for (size_t i = 0; i < 4; i++) {
        NUMBER(i, "batch", i / 2 ? 8 : 4);
        NUMBER(i, "workers", i % 2 ? 3 : 0);
        TEXT(i, "cache", "none");
        TEXT(i, "order", "shuffled");
        // Rows of 24 bytes: 100, 500 and 1000 of them a second.
        NUMBER(i, "samples_per_s", 100);
        NUMBER(i, "mb_per_s", 100 * 24e-6);
        NUMBER(i, "raw_mb_per_s", 500 * 24e-6);
        NUMBER(i, "of_raw", 0.2);
        NUMBER(i, "memcpy_mb_per_s", 1000 * 24e-6);
        NUMBER(i, "of_memcpy", 0.1);
        TEXT(i, "slowest_stage", "inflate");
        NUMBER(i, "slowest_share", 0.5);
        NUMBER(i, "spread", 0);
        NUMBER(i, "samples", 5);
        assert_true(json_is_false(made_cell(i, "synthetic")));
        TEXT(i, "check", "ok");
    }
    assert_int_equal(m.threads, 3);
    // As many batches raw as the loader made in a tenth of a second, and one for each thread;
    // of those that are read an eighth, and no fewer than threads.
    assert_int_equal(m.copy_batches, (uint64_t)(100 * 0.1 / 8) + 3);
    assert_int_equal(m.raw_batches, 3);
    assert_true(m.seen.shuffle && m.seen.part == GRT_PART_ALL && m.seen.cache == GRT_CACHE_NONE);
    memset(m.stages, 0, sizeof m.stages);
    assert_int_equal(run("--batch-sizes 4 --num-workers 1 --time 2 --cache ram --order sequential"),
                     0);
    TEXT(0, "cache", "ram");
    TEXT(0, "order", "sequential");
    assert_false(made_known(0, "slowest_stage"));
    assert_false(made_known(0, "slowest_share"));
    assert_false(m.seen.shuffle);
    assert_int_equal(m.seen.cache, GRT_CACHE_RAM);
    assert_in_range((uint64_t)json_number_value(made_cell(0, "samples")), 15, 25);
}

// A row of 192 bytes and a class of four is delivered as 192 floats and a class.
static void narrow_rows(void **state) {
    (void)state;
    char line[256];
    snprintf(line, sizeof line, "data --data %s --batch-sizes 4 --num-workers 0 --time 0.1", bytes);
    assert_int_equal(made_run(bench_data, line), 0);
    NUMBER(0, "samples_per_s", 100);
    NUMBER(0, "mb_per_s", 100 * 196e-6);
    NUMBER(0, "raw_mb_per_s", 500 * 196e-6);
    NUMBER(0, "memcpy_mb_per_s", 1000 * 772e-6);
}

static void middle(void **state) {
    (void)state;
    // Every second slice is one batch of 0.1, 0.2, 0.3 or 0.4 s.
    static const double turns[] = {0.1, 0.2, 0.3, 0.4};
    memcpy(m.batch, turns, sizeof turns);
    assert_int_equal(run("--batch-sizes 4 --num-workers 0 --time 1e-9"), 0);
    NUMBER(0, "samples", 5);
    double rate = json_number_value(made_cell(0, "samples_per_s"));
    // Of five that follow each other one stands twice, at an end or not.
    assert_true(fabs(rate - 1 / 0.2) < 1e-6 || fabs(rate - 1 / 0.3) < 1e-3);
    assert_true(json_number_value(made_cell(0, "spread")) > 0.1);
}

static void differing(void **state) {
    (void)state;
    m.differs = true;
    assert_int_equal(run("--batch-sizes 4 --num-workers 0,2 --time 0.1"), COMMAND_INTERNAL);
    assert_int_equal(made_count(), 2);
    TEXT(0, "check", "ok");
    TEXT(1, "check", "FAILED");
    assert_true(made_known(0, "samples_per_s"));
    static const char *const measured[] = {"samples_per_s", "mb_per_s",        "raw_mb_per_s",
                                           "of_raw",        "memcpy_mb_per_s", "of_memcpy",
                                           "spread",        "samples"};
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        assert_false(made_known(1, measured[i]));
    }
    SAID("batches differ with the number of workers");
    m.differs = false;
    m.fails = true;
    assert_int_equal(run("--batch-sizes 4 --num-workers 0 --time 0.1"), COMMAND_IO);
    assert_int_equal(made_count(), 0);
}

static void refused(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"--order random", "known are shuffled and sequential"},
        {"--cache device", "known are none and ram"},
        {"--cache disk", "known are none and ram"},
        {"--batch-sizes 0", "1 to 16777216"},
        {"--num-workers 257", "0 to 256"},
        {"--time 0", "above 0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (run(rows[i][0]) != COMMAND_USAGE || !strstr(made_said, rows[i][1])) {
            fail_msg("%s: %s", rows[i][0], made_said);
        }
    }
    char line[200];
    snprintf(line, sizeof line, "-o %s", data);
    assert_int_equal(run(line), COMMAND_USAGE);
    assert_int_equal(made_run(bench_data, "data --data /nowhere/d.h5"), COMMAND_NO_INPUT);
    // 256 and 4096 rows with 0 and 2 workers, unless others are asked for.
    assert_int_equal(run("--time 0.1"), 0);
    assert_int_equal(made_count(), 4);
    NUMBER(3, "batch", 4096);
    NUMBER(3, "workers", 2);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest cases[] = {
        CASE(figures), CASE(narrow_rows), CASE(middle), CASE(differing), CASE(refused),
    };
#undef CASE
    return cmocka_run_group_tests(cases, make, unmake);
}
