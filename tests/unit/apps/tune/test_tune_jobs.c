// SPDX-License-Identifier: Apache-2.0
// `gpurt tune` with a worker that was made up: what it asks of it, which job gets how much time,
// the rows that come of it, what is stored and what is not, and what it says at the end.
#include "made_tune.h"

static size_t tasks(enum tune_task_kind kind) {
    size_t count = 0;
    for (size_t i = 0; i < m.count; i++) {
        count += m.tasks[i].kind == kind;
    }
    return count;
}

static const struct tune_task *task(enum tune_task_kind kind, size_t nth) {
    for (size_t i = 0; i < m.count; i++) {
        if (m.tasks[i].kind == kind && nth-- == 0) {
            return &m.tasks[i];
        }
    }
    fail_msg("no such task");
    return NULL;
}

// ---- one job ----

static void stored(void **state) {
    (void)state;
    assert_int_equal(tune("--variant plain --shape 64x32x16 --precision f32 --level 2"), 0);
    assert_int_equal(made_count(), 1);
    TEXT(0, "op", "gemm");
    TEXT(0, "variant", "plain");
    TEXT(0, "precision", "f32");
    TEXT(0, "class", "large");
    TEXT(0, "shape", "64x32x16");
    TEXT(0, "trans", "nn");
    TEXT(0, "before", "64");
    NUMBER(0, "before_gflop_per_s", 1.5);
    TEXT(0, "after", "32");
    NUMBER(0, "after_gflop_per_s", 4);
    NUMBER(0, "spread", 0.02);
    NUMBER(0, "tried", 5);
    NUMBER(0, "failed", 1);
    TEXT(0, "result", "stored");
    SAID("1 of 1 settings improved, in ");
    SAID("/gpurt/opencl-made-up-9000.profile");
    assert_non_null(strstr(profile_text(), "\ngemm.plain = 32  # WG\n"));
    assert_non_null(
        strstr(profile_text(), ", none 0.1, 4 GFLOP/s in f32 64x32x16; 1.5 before\ngemm.plain"));
    assert_non_null(strstr(profile_text(), "from = measured: 2"));
    // What is in use first, each once, and then both in turns.
    assert_int_equal(tasks(TUNE_TRY), 5);
    assert_int_equal(task(TUNE_TRY, 0)->values[0][0], 64);
    assert_int_equal(tasks(TUNE_DUEL), 2);  // for this shape, and for a cube that it must not harm
    assert_int_equal(task(TUNE_DUEL, 0)->values[0][0], 64);
    assert_int_equal(task(TUNE_DUEL, 0)->values[1][0], 32);
    assert_int_equal(task(TUNE_DUEL, 0)->shape.n, 32);
    assert_int_equal(task(TUNE_DUEL, 1)->shape.m, task(TUNE_DUEL, 1)->shape.k);
    // It is what the next run begins with.
    assert_int_equal(tune("--variant plain --shape 64 --precision f32 --level 2"), 0);
    TEXT(0, "before", "32");
    TEXT(0, "after", "32");
    TEXT(0, "result", "kept");
    assert_int_equal(tasks(TUNE_DUEL), 0);
    SAID("0 of 1 settings improved, so nothing is written in ");
}

static void kept(void **state) {
    (void)state;
    static const char line[] = "--variant plain --shape 64 --precision f32 --level 2";
    m.loses = true;
    assert_int_equal(tune(line), 0);
    TEXT(0, "result", "kept");
    TEXT(0, "before", "64");
    TEXT(0, "after", "64");
    NUMBER(0, "after_gflop_per_s", 1.5);
    assert_string_equal(profile_text(), "");
    // Round by round faster, and yet not by the median of the duel; and a duel that nobody ends.
    m.loses = false;
    m.duel = 1.01 * 4 / 1.5;
    m.claims = true;
    assert_int_equal(tune(line), 0);
    TEXT(0, "result", "kept");
    m.duel = 1;
    m.claims = false;
    m.dies_in_duel = true;
    assert_int_equal(tune(line), 0);
    TEXT(0, "result", "kept");
    assert_string_equal(profile_text(), "");
    m.dies_in_duel = false;
    assert_int_equal(tune("--variant plain --shape 64 --precision f32 --level 0"), 0);
    TEXT(0, "result", "measured");
    NUMBER(0, "tried", 1);
    assert_int_equal(m.count, 1);
    assert_string_equal(profile_text(), "");
}

static void what_does_not_run(void **state) {
    (void)state;
    static const char line[] = "--variant plain --shape 64 --precision f32 --level 2";
    // What was in use does not: whatever does takes its place without a duel.
    m.speeds[64] = -1;
    assert_int_equal(tune(line), 0);
    TEXT(0, "result", "stored");
    TEXT(0, "before", "64");
    assert_false(made_known(0, "before_gflop_per_s"));
    NUMBER(0, "after_gflop_per_s", 4);
    NUMBER(0, "failed", 2);
    assert_int_equal(tasks(TUNE_DUEL), 0);
    assert_non_null(strstr(profile_text(), "; 0 before\n"));
    empty_folder();
    for (int i = 0; i < 257; i++) {
        m.speeds[i] = -1;
    }
    assert_int_equal(tune(line), COMMAND_INTERNAL);
    TEXT(0, "result", "none runs");
    assert_false(made_known(0, "after_gflop_per_s"));
    assert_false(made_known(0, "spread"));
    NUMBER(0, "tried", 5);
    NUMBER(0, "failed", 5);
    SAID("no setting could be measured");
    m.nobody = true;
    assert_int_equal(tune(line), COMMAND_NO_DEVICE);
    assert_int_equal(made_count(), 0);
    assert_int_equal(m.count, 1);
    NOT_SAID("improved");
}

// Harm: the setting serves all products, so the cube must not be slower by more than the noise.
static void harm(void **state) {
    (void)state;
    static const char line[] = "--variant plain --shape 32 --precision f32 --level 2";
    // The small product of the user's is faster; the cube, which is timed with it, is not.
    m.slower_small = 9;
    m.speeds[32] = 1.5 / 1.05;
    m.spread = 0.02;
    assert_int_equal(tune(line), 0);
    TEXT(0, "result", "kept");
    m.spread = 0.03;  // 6 % of both
    assert_int_equal(tune(line), 0);
    TEXT(0, "result", "stored");
    TEXT(0, "after", "32");
}

// ---- several shapes ----

static void shapes(void **state) {
    (void)state;
    assert_int_equal(
        tune("--variant plain --shape 64 --shape 32x64x16,128 --precision f32 --level 2"), 0);
    assert_int_equal(made_count(), 1);
    TEXT(0, "shape", "64x64x64 and 2 more");
    NUMBER(0, "before_gflop_per_s", 1.5);
    NUMBER(0, "after_gflop_per_s", 4);
    TEXT(0, "result", "stored");
    assert_int_equal(tasks(TUNE_TRY), 3 * 4 + 1);  // one fails with the first shape
    assert_non_null(strstr(profile_text(), "in f32 64x64x64 and 2 more; "));
    empty_folder();
    // One that it makes slower: 32 is out, and so is all else.
    m.slower_small = 1;
    assert_int_equal(tune("--variant plain --shape 256,32x8x8 --precision f32 --level 2"), 0);
    TEXT(0, "result", "kept");
    TEXT(0, "after", "64");
    char line[512] = "--variant plain --precision f32 --level 0 --shape 8";
    for (int i = 1; i < 16; i++) {
        strcat(line, ",8");
    }
    assert_int_equal(tune(line), 0);
    TEXT(0, "shape", "8x8x8 and 15 more");
    strcat(line, ",8");
    assert_int_equal(tune(line), COMMAND_USAGE);
    SAID("more than 16 shapes are large products");
}

// ---- what there is to do ----

static void choices(void **state) {
    (void)state;
    m.used[1] = true;
    // What serves, and of that one size, or all of them.
    assert_int_equal(tune("--precision f32 --level 1 --budget 10m"), 0);
    assert_int_equal(made_count(), 1);
    TEXT(0, "variant", "tiled");
    TEXT(0, "class", "large");
    assert_int_equal(tasks(TUNE_VARIANTS), 1);
    assert_int_equal(task(TUNE_VARIANTS, 0)->shape.m, 0);
    assert_true(task(TUNE_VARIANTS, 0)->limit == 30);
    empty_folder();
    assert_int_equal(tune("--precision f32 --level 2 --budget 10m"), 0);
    assert_int_equal(made_count(), 3);
    TEXT(1, "class", "medium");
    TEXT(2, "class", "small");
    empty_folder();
    // Level 3 and --variant all take the others too.
    assert_int_equal(tune("--precision f32 --level 3 --budget 10m"), 0);
    assert_int_equal(made_count(), 4);
    TEXT(0, "variant", "plain");
    TEXT(1, "variant", "tiled");
    empty_folder();
    assert_int_equal(tune("--precision f32,bf16 --variant all --level 1 --budget 10m"), 0);
    assert_int_equal(made_count(), 3);
    TEXT(2, "precision", "bf16");
    TEXT(2, "variant", "plain");
    empty_folder();
    // What serves bf16 has no settings.
    assert_int_equal(tune("--precision bf16 --level 1"), 0);
    assert_int_equal(made_count(), 0);
    SAID("gemm in bf16 is done by 'wgmma', which has no settings; --variant all tunes the others");
    NOT_SAID("improved");
    // f32 and f16 on a GPU, f32 on a CPU.
    assert_int_equal(tune("--variant plain --shape 64 --level 0"), 0);
    assert_int_equal(made_count(), 2);
    TEXT(1, "precision", "f16");
    made_software();
    assert_int_equal(tune("--variant plain --shape 64 --level 0"), 0);
    assert_int_equal(made_count(), 1);
    assert_int_equal(tune("--variant lain,plai,plainer --level 0"), COMMAND_NO_DEVICE);
    SAID("nothing to tune: no variant 'lain,plai,plainer' with settings on opencl:0");
    assert_int_equal(tune("--variant x,tiled --shape 64 --level 0"), 0);
    TEXT(0, "variant", "tiled");
    TEXT(0, "class", "small");
    TEXT(0, "before", "32 32 16 4 4");
    assert_int_equal(tune("--variant tiled --shape 2048,64,300 --level 0"), 0);
    assert_int_equal(made_count(), 3);
    TEXT(0, "class", "large");
    TEXT(2, "shape", "300x300x300");
    TEXT(2, "class", "medium");
}

static void ways(void **state) {
    (void)state;
    static const char *const names[] = {"nn", "nt", "tn", "tt"};
    for (uint32_t i = 0; i < 4; i++) {
        char line[200];
        snprintf(line, sizeof line,
                 "--variant plain --shape 64 --level 0 --precision f32 --trans %s", names[i]);
        assert_int_equal(tune(line), 0);
        TEXT(0, "trans", names[i]);
        assert_int_equal(task(TUNE_TRY, 0)->shape.trans, i);
        snprintf(line, sizeof line, "--variant plain --level 0 --precision f32 --trans %s",
                 names[i]);
        assert_int_equal(tune(line), 0);
        TEXT(0, "trans", names[i]);
    }
}

// A cube that leaves time for many: a thousandth of the budget for a product.
static void cubes(void **state) {
    (void)state;
    static const struct {
        const char *budget, *shape;
    } rows[] = {{"1s", "128x128x128"},
                {"60s", "256x256x256"},
                {"10m", "512x512x512"},
                {"24h", "2048x2048x2048"}};
    for (size_t i = 0; i < 4; i++) {
        char line[200];
        snprintf(line, sizeof line, "--variant plain --level 0 --precision f32 --budget %s",
                 rows[i].budget);
        assert_int_equal(tune(line), 0);
        TEXT(0, "shape", rows[i].shape);
        NUMBER(0, "tried", 1);  // the first, smaller one does not count
    }
}

// ---- time ----

static void limits(void **state) {
    (void)state;
    static const struct {
        const char *budget;
        double limit, seconds, hopeless;
    } rows[] = {{"1s", 10, 0.05, 1e-3}, {"15s", 10, 0.05, 0.015}, {"30", 10, 0.1, 0.03},
                {"60s", 12, 0.2, 0.06}, {"2m", 24, 0.2, 0.12},    {"150s", 30, 0.2, 0.15},
                {"1h", 30, 0.2, 3.6}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[200];
        snprintf(line, sizeof line,
                 "--variant plain --shape 64 --level 2 --precision f32 --budget %s",
                 rows[i].budget);
        empty_folder();
        assert_int_equal(tune(line), 0);
        const struct tune_task *first = task(TUNE_TRY, 0);
        assert_true(first->limit == rows[i].limit);
        assert_true(fabs(first->seconds - rows[i].seconds) < 1e-12);
        assert_true(fabs(first->hopeless - rows[i].hopeless) < 1e-12);
        if (i > 1) {
            // From then on half as slow again as the best is.
            double best = 2e-9 * 64 * 64 * 64 / 1.5;
            assert_true(fabs(task(TUNE_TRY, 1)->hopeless / (1.5 * best) - 1) < 1e-9);
            assert_true(fabs(task(TUNE_DUEL, 0)->seconds - 8 * rows[i].seconds) < 1e-12);
            assert_true(task(TUNE_DUEL, 0)->limit == 3 * rows[i].limit);
        }
    }
}

// A task takes a second here. What serves has four times the time of what does not; a part is kept
// for the comparison.
static void shares_of_time(void **state) {
    (void)state;
    m.used[1] = true;
    m.speeds[128] = 1.2;
    assert_int_equal(tune("--precision f32 --variant all --level 1 --budget 100s --shape 2048"), 0);
    assert_int_equal(made_count(), 2);
    NUMBER(0, "tried", 5);
    // 100 s less those of the first job, of which the rest is all for the second.
    double left = 100 - 1 - 5 - 2;
    double tried = json_number_value(made_cell(1, "tried"));
    assert_true(tried >= 0.85 * left - 3 && tried <= 0.85 * left + 2);
    empty_folder();
    // Other way round: twenty seconds for one that nothing uses.
    m.used[0] = true;
    m.used[1] = true;
    assert_int_equal(tune("--precision f32 --variant tiled --level 2 --budget 90s"), 0);
    assert_int_equal(made_count(), 3);
    for (size_t i = 0; i < 3; i++) {
        tried = json_number_value(made_cell(i, "tried"));
        assert_true(tried >= 18 && tried <= 32);
    }
    // What was in use is measured whatever the time.
    empty_folder();
    assert_int_equal(tune("--precision f32 --variant tiled --level 2 --budget 1s"), 0);
    for (size_t i = 0; i < 3; i++) {
        NUMBER(i, "tried", 1);
        TEXT(i, "result", "kept");
    }
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *line, *said;
        int code;
    } rows[] = {
        {"--budget 0.9s", "a time from 1s to 24h is wanted", 64},
        {"--budget 25h", "a time from 1s to 24h is wanted", 64},
        {"--budget 86401", "a time from 1s to 24h is wanted", 64},
        {"--budget 1d", "a time from 1s to 24h is wanted", 64},
        {"--budget s", "a time from 1s to 24h is wanted", 64},
        {"--level 4", "a level from 0 to 3 is wanted", 64},
        {"--level 10", "a level from 0 to 3 is wanted", 64},
        {"--level -1", "a level from 0 to 3 is wanted", 64},
        {"--op conv", "known is gemm", 64},
        {"--trans nn,tn", "--trans: settings are for one way, such as tn", 64},
        {"--data c.yaml --shape 8", "--data has shapes, types and transpositions", 64},
        {"--data c.yaml --precision f32", "--data has shapes, types and transpositions", 64},
        {"--data c.yaml --trans tn", "--data has shapes, types and transpositions", 64},
        {"--data /nowhere/c.yaml", "/nowhere/c.yaml", 66},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int code = tune(rows[i].line);
        if (code != rows[i].code || !strstr(made_said, rows[i].said)) {
            fail_msg("%s: exit code %d, said: %s", rows[i].line, code, made_said);
        }
        assert_int_equal(m.count, 0);
    }
    static const char *const good[] = {"1s", "86400", "24h", "1440m", "1.5"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char line[100];
        snprintf(line, sizeof line, "--variant plain --shape 8 --level 0 --budget %s", good[i]);
        assert_int_equal(tune(line), 0);
    }
    // A folder that cannot be had is said before anything is tried, but not where nothing is kept.
    setenv("XDG_CONFIG_HOME", "/proc/none", 1);
    assert_int_equal(tune("--variant plain --shape 8 --level 1"), COMMAND_CANNOT_CREATE);
    assert_int_equal(m.count, 0);
    assert_int_equal(tune("--variant plain --shape 8 --level 0"), 0);
}

static void words_at_the_end(void **state) {
    (void)state;
    static const char line[] = "--variant plain --shape 64 --precision f32 --level 2";
    char path[128];
    assert_int_equal(tune("--variant plain --shape 64 --precision f32 --level 2 -q"), 0);
    NOT_SAID("improved");
    TEXT(0, "result", "stored");
    empty_folder();
    snprintf(path, sizeof path, "%s/mine.profile", folder);
    FILE *file = fopen(path, "w");
    fputs("gpurt-profile 1\nlevel = user\nend\n", file);
    fclose(file);
    setenv("GPURT_PROFILE", path, 1);
    assert_int_equal(tune(line), 0);
    SAID("GPURT_PROFILE names ");
    SAID(", which stands above that file");
    // Nothing was stored: nothing stands above it.
    assert_int_equal(tune(line), 0);
    NOT_SAID("GPURT_PROFILE names ");
    unsetenv("GPURT_PROFILE");
    unlink(path);
    assert_int_equal(made_plain(cmd_tune, "tune --variant plain --shape 64 --level 0 --verbose"),
                     0);
    assert_non_null(strstr(made_out, "gemm on opencl:0: Made-up 9000, none 0.1"));
    m.speeds[32] = -1;
    assert_int_equal(tune("--variant plain --shape 64 --precision f32 --level 0 -v"), 70);
    SAID("plain 32: the result is wrong");
}

// What a training asks for: no rows, no words but one, and a mistake of files is none.
static void of_a_training(void **state) {
    (void)state;
    struct options common = {.backend = "auto"};
    struct grt_config config;
    grt_config_init(&config);
    int code = tune_for_training(
        &(struct tune_training){.common = &common, .seconds = 30, .config = &config});
    assert_int_not_equal(code, 0);  // no data
    assert_int_equal(m.count, 0);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest cases[] = {
        CASE(stored),         CASE(kept),    CASE(what_does_not_run),
        CASE(harm),           CASE(shapes),  CASE(choices),
        CASE(ways),           CASE(cubes),   CASE(limits),
        CASE(shares_of_time), CASE(refused), CASE(words_at_the_end),
        CASE(of_a_training),
    };
#undef CASE
    return cmocka_run_group_tests(cases, make, unmake);
}
