// SPDX-License-Identifier: Apache-2.0
// The model, the reader and the comparison of `gpurt report`, on results made by hand whose winners
// and regressions are known, and on files that are broken or meant to do harm.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/compare.h"
#include "report/read.h"
#include "report/summary.h"
#include "cli/output/markup.h"
#include "report/text.h"

#define HEAD(device, date)                                                                         \
    "{\"schema\":\"gpurt.bench/1\",\"gpurt\":\"0.1.0\",\"command\":[\"gpurt\",\"bench\"],"         \
    "\"date\":\"" date "\",\"device\":{\"name\":\"" device "\",\"backend\":\"vulkan\"}}\n"
#define GEMM(shape, gflops, spread)                                                                \
    "{\"kind\":\"gemm\",\"shape\":\"" shape "\",\"batch\":1,\"precision\":\"f32\","                \
    "\"trans\":\"nn\",\"gflop_per_s\":" gflops ",\"spread\":" spread ",\"check\":\"ok\"}\n"
#define PEER(gflops)                                                                               \
    "{\"kind\":\"gemm\",\"shape\":\"8x8x8\",\"batch\":1,\"precision\":\"f32\",\"trans\":\"nn\","   \
    "\"variant\":\"openblas\",\"gflop_per_s\":" gflops ",\"spread\":0,\"check\":\"ok\"}\n"
#define LAUNCH(us)                                                                                 \
    "{\"kind\":\"launch\",\"test\":\"in order\",\"dispatches\":64,\"us\":" us                      \
    ",\"spread\":0.01,\"check\":\"ok\"}\n"

static void read_good(struct report *r, const char *name, const char *text, bool baseline) {
    char why[REPORT_WHY] = "";
    if (!report_read_text(r, name, text, strlen(text), baseline, why)) {
        fail_msg("%s: %s", name, why);
    }
}

static void near_to(double got, double want) {
    if (!(fabs(got - want) <= 1e-9 * fabs(want))) {
        fail_msg("%.12g, wanted %.12g", got, want);
    }
}

// ---- winners ----

// B has twice A's rate in one product and half in two; dispatches cost A a third. By hand: A leads
// by 2 and 2 in products, and by 3 in dispatches, where less is better.
static void test_winners(void **state) {
    struct report r;
    struct report_summary s;
    char text[REPORT_SENTENCE];
    (void)state;
    report_init(&r);
    read_good(&r, "a",
              HEAD("A", "2026-01-01T00:00:00Z") GEMM("8x8x8", "10", "0.01")
                  GEMM("64x64x64", "20", "0.01") GEMM("256x256x256", "30", "0.01") LAUNCH("2"),
              false);
    read_good(&r, "b",
              HEAD("B", "2026-01-02T00:00:00Z") GEMM("8x8x8", "20", "0.01")
                  GEMM("64x64x64", "10", "0.01") GEMM("256x256x256", "15", "0.01")
                      GEMM("9x9x9", "1", "0.01") LAUNCH("6"),
              false);
    report_settle(&r);
    assert_true(report_summarize(&r, &s));
    assert_int_equal(s.count, 2);
    const struct report_lead *gemm = &s.leads[0], *launch = &s.leads[1];
    assert_string_equal(gemm->bench->name, "gemm");
    assert_int_equal(gemm->shared, 3);
    assert_string_equal(r.contenders[gemm->standings[0].contender].label, "A · vulkan");
    assert_int_equal(gemm->standings[0].leads, 2);
    assert_int_equal(gemm->standings[1].leads, 1);
    assert_int_equal(gemm->standings[1].alone, 1);
    near_to(gemm->times, 2);
    near_to(gemm->standings[0].relative, pow(0.5, 1.0 / 3));
    near_to(gemm->standings[1].relative, pow(0.25, 1.0 / 3));
    near_to(gemm->best->value, 30e9);
    assert_string_equal(r.contenders[launch->standings[0].contender].label, "A · vulkan");
    near_to(launch->times, 3);
    report_lead_text(&r, gemm, text);
    assert_non_null(strstr(text, "A · vulkan leads in 2 of 3 products, by 2.00 times"));
    // Cases come by the numbers in them, not by their letters.
    assert_string_equal(r.rows[0].subject, "8x8x8 f32");
    assert_string_equal(r.rows[2].subject, "9x9x9 f32");
    assert_string_equal(r.rows[3].subject, "64x64x64 f32");
    report_finish(&r);
}

// A and B lead once each. By hand: A has 1 and 1/2 of the best, B 0.9 and 1, so B is first by its
// mean of sqrt(0.9); C leads nowhere and is last, though its rows come first. Where all is alike,
// the first to come is first. What failed its check is no rival.
static void test_order_of_standings(void **state) {
    struct report r;
    struct report_summary s;
    (void)state;
    report_init(&r);
    read_good(&r, "c",
              HEAD("C", "2026-01-01T00:00:00Z") GEMM("8x8x8", "9.5", "0")
                  GEMM("64x64x64", "19.9", "0"),
              false);
    read_good(&r, "a",
              HEAD("A", "2026-01-01T00:00:00Z") GEMM("8x8x8", "10", "0")
                  GEMM("64x64x64", "10", "0"),
              false);
    read_good(&r, "b",
              HEAD("B", "2026-01-01T00:00:00Z") GEMM("8x8x8", "9", "0") GEMM("64x64x64", "20", "0"),
              false);
    read_good(&r, "d",
              HEAD("D", "2026-01-01T00:00:00Z") "{\"kind\":\"gemm\",\"shape\":\"8x8x8\","
                                                "\"gflop_per_s\":99,\"check\":\"failed\"}\n",
              false);
    report_settle(&r);
    assert_true(report_summarize(&r, &s));
    const struct report_lead *lead = &s.leads[0];
    static const char *const order[] = {"B", "A", "C"};
    assert_int_equal(lead->count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(r.contenders[lead->standings[i].contender].name, order[i]);
        assert_int_equal(lead->standings[i].leads, i < 2);
        assert_int_equal(lead->standings[i].cases, 2);
    }
    near_to(lead->standings[0].relative, sqrt(0.9));
    near_to(lead->standings[1].relative, sqrt(0.5));
    near_to(lead->times, 20 / 19.9);  // B's lead, where it leads: over C
    near_to(lead->most, 20 / 19.9);
    assert_string_equal(lead->most_of->subject, "64x64x64 f32");
    report_finish(&r);
    report_init(&r);
    read_good(&r, "z", HEAD("Z", "2026-01-01T00:00:00Z") GEMM("8x8x8", "7", "0"), false);
    read_good(&r, "y", HEAD("Y", "2026-01-01T00:00:00Z") GEMM("8x8x8", "7", "0"), false);
    report_settle(&r);
    assert_true(report_summarize(&r, &s));
    assert_string_equal(r.contenders[s.leads[0].standings[0].contender].name, "Z");
    near_to(s.leads[0].times, 1);
    report_finish(&r);
}

// The newest file counts, though an older one is faster; within one, the best variant.
static void test_newest(void **state) {
    struct report r;
    (void)state;
    report_init(&r);
    read_good(&r, "new",
              HEAD("A", "2026-02-01T00:00:00Z") GEMM("8x8x8", "10", "0") GEMM("8x8x8", "12", "0")
                  GEMM("8x8x8", "11", "0"),
              false);
    read_good(&r, "old", HEAD("A", "2026-01-01T00:00:00Z") GEMM("8x8x8", "99", "0"), false);
    report_settle(&r);
    assert_int_equal(r.contender_count, 1);
    size_t chosen = 0;
    for (size_t i = 0; i < r.row_count; i++) {
        if (r.rows[i].chosen) {
            near_to(r.rows[i].value, 12e9);
            chosen++;
        }
    }
    assert_int_equal(chosen, 1);
    report_finish(&r);
}

// ---- regressions ----

static void test_compare(void **state) {
    // before and after of one product with their spreads, what --fail-under 0.95 makes of it
    static const struct {
        const char *before, *p, *after, *q;
        enum report_verdict verdict;
        bool below;
    } cases[] = {
        {"100", "0", "94", "0", REPORT_SLOWER, true},
        {"100", "0", "96", "0", REPORT_SLOWER, false},
        {"100", "0.02", "94", "0.02", REPORT_SLOWER, false},   // 0.94 1.02 / 0.98 = 0.978
        {"100", "0.02", "97", "0.02", REPORT_SAME, false},     // up to 1.0096
        {"100", "0.02", "105", "0.02", REPORT_FASTER, false},  // from 1.0088
        {"100", "0.02", "104", "0.02", REPORT_SAME, false},    // from 0.9992
        {"100", "0.002", "90", "0.002", REPORT_SLOWER, true},
        {"100", "5", "50", "5", REPORT_SAME, false},  // a spread of five times says nothing
        {"100", "0", "0", "0", REPORT_BROKEN, true},
        {"0", "0", "100", "0", REPORT_MENDED, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct report r;
        struct report_changes c;
        char text[2][1024];
        const char *rates[2] = {cases[i].before, cases[i].after};
        const char *spreads[2] = {cases[i].p, cases[i].q};
        report_init(&r);
        for (int k = 0; k < 2; k++) {
            snprintf(text[k], sizeof text[k],
                     HEAD("A", "2026-01-01T00:00:00Z") "{\"kind\":\"gemm\",\"shape\":\"8x8x8\","
                                                       "\"gflop_per_s\":%s,\"spread\":%s,"
                                                       "\"check\":\"ok\"}",
                     rates[k], spreads[k]);
            read_good(&r, k ? "new" : "old", text[k], k == 0);
        }
        report_settle(&r);
        assert_true(report_compare(&r, 0.95, &c));
        assert_int_equal(c.count, 1);
        if (c.list[0].verdict != cases[i].verdict || c.list[0].below != cases[i].below) {
            fail_msg("case %zu: %s%s", i, report_verdict_text(c.list[0].verdict),
                     c.list[0].below ? ", below" : "");
        }
        free(c.list);
        report_finish(&r);
    }
}

// A time that doubles is half as good; what only one side has is counted; another device is
// compared with its own baseline where there is one.
static void test_compare_sides(void **state) {
    struct report r;
    struct report_changes c;
    (void)state;
    report_init(&r);
    read_good(&r, "old",
              HEAD("A", "2026-01-01T00:00:00Z") LAUNCH("2") GEMM("8x8x8", "1", "0")
                  HEAD("B", "2026-01-01T00:00:00Z") LAUNCH("8"),
              true);
    read_good(&r, "new",
              HEAD("B", "2026-01-01T00:00:00Z") LAUNCH("16") HEAD("C", "2026-01-01T00:00:00Z")
                  LAUNCH("1") GEMM("9x9x9", "1", "0"),
              false);
    report_settle(&r);
    assert_true(report_compare(&r, 0, &c));
    assert_int_equal(c.count, 2);
    near_to(c.list[0].share, 0.5);  // B against B
    near_to(c.list[1].share, 2);    // C against A, the first
    assert_int_equal(c.missing, 1);
    assert_int_equal(c.added, 1);
    assert_int_equal(c.below, 0);
    free(c.list);
    report_finish(&r);
}

// What is not gpurt's is compared with what is not, also where the devices have other names: on C
// twice as many products a second as on A, and 1.25 times as many of OpenBLAS.
static void test_compare_peers(void **state) {
    struct report r;
    struct report_changes c;
    (void)state;
    for (int turned = 0; turned < 2; turned++) {
        report_init(&r);
        read_good(&r, "old",
                  turned ? HEAD("A", "2026-01-01T00:00:00Z") PEER("400") GEMM("8x8x8", "100", "0")
                         : HEAD("A", "2026-01-01T00:00:00Z") GEMM("8x8x8", "100", "0") PEER("400"),
                  true);
        read_good(&r, "new",
                  HEAD("C", "2026-01-01T00:00:00Z") GEMM("8x8x8", "200", "0") PEER("500"), false);
        report_settle(&r);
        assert_true(report_compare(&r, 0, &c));
        assert_int_equal(c.count, 2);
        for (int i = 0; i < 2; i++) {
            near_to(c.list[i].share, r.contenders[c.list[i].after->contender].peer ? 1.25 : 2);
        }
        assert_ptr_not_equal(c.list[0].before, c.list[1].before);
        free(c.list);
        report_finish(&r);
    }
}

// ---- cases ----

static void test_subjects(void **state) {
    static const struct {
        const char *text, *subject;
        double value;
    } cases[] = {
        {"{\"schema\":\"gpurt.bench.train/1\",\"device\":{\"name\":\"A\"},\"model\":{\"depth\":3,"
         "\"hidden\":16},\"rows\":[{\"batch\":64,\"workers\":2,\"precision\":\"f16\","
         "\"pin_memory\":true,\"samples_per_s\":5,\"status\":\"ok\"}]}",
         "3x16 batch 64 f16 workers 2", 5},
        {"{\"schema\":\"gpurt.bench.mlp/1\",\"device\":{\"name\":\"A\"},\"rows\":[{\"model\":"
         "\"small\",\"depth\":3,\"hidden\":16,\"batch\":64,\"precision\":\"f32\","
         "\"msamples_per_s\":2,\"check\":\"ok\"}]}",
         "3x16 batch 64 f32", 2e6},
        {"{\"schema\":\"gpurt.bench/1\",\"rows\":[{\"kind\":\"memory\",\"test\":\"upload\","
         "\"size\":1048576,\"gb_per_s\":3,\"check\":\"ok\"}]}",
         "upload 1.00 MiB", 3e9},
        {"{\"schema\":\"gpurt.bench/1\",\"command\":[\"gpurt\",\"bench\",\"rollout\",\"--env\","
         "\"uav\",\"-q\",\"--set\",\"map=16\",\"--time\",\"0.1\",\"-o\",\"x\"],\"rows\":[{\"kind\":"
         "\"rollout\",\"test\":\"uav\",\"num_envs\":64,\"steps_per_s\":7,\"check\":\"ok\"}]}",
         "uav envs 64 set=map=16", 7},
        {"{\"schema\":\"gpurt.bench.ppo/1\",\"command\":[\"gpurt\",\"bench\",\"ppo\",\"--map\","
         "\"12\",\"epochs=2\"],\"rows\":[{\"kind\":\"iteration\",\"env\":\"uav\",\"loop\":"
         "\"device\",\"num_envs\":8,\"agents\":3,\"rollout_steps\":16,\"precision\":\"f32\","
         "\"agent_steps_per_s\":9,\"check\":\"ok\"}]}",
         "uav envs 8 agents 3 steps 16 f32 map=12 epochs=2", 9},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct report r;
        report_init(&r);
        read_good(&r, "x", cases[i].text, false);
        assert_int_equal(r.row_count, 1);
        assert_string_equal(r.rows[0].subject, cases[i].subject);
        assert_true(r.rows[0].good);
        near_to(r.rows[0].value, cases[i].value);
        report_finish(&r);
    }
}

// ---- logs ----

static void test_log(void **state) {
    struct report r;
    (void)state;
    report_init(&r);
    read_good(&r, "log.jsonl",
              "{\"event\":\"start\",\"time\":1794827839.75,\"step\":0,\"kind\":\"ppo\",\"device\":"
              "\"A\",\"env\":\"cartpole\",\"seed\":1}\n"
              "{\"event\":\"train\",\"step\":1,\"return\":3,\"seconds\":0.5}\n"
              "{\"event\":\"evaluate\",\"step\":2,\"return\":5,\"seconds\":1}\n"
              "{\"event\":\"evaluate\",\"step\":3,\"return\":\"NaN\",\"seconds\":2}\n"
              "{\"event\":\"evaluate\",\"step\":4,\"return\":9,\"seconds\":3}\n"
              "{\"event\":\"end\",\"step\":4,\"ended\":\"iterations\"}\n"
              "{\"event\":\"start\",\"time\":1794827840,\"step\":0,\"kind\":\"ppo\",\"device\":"
              "\"A\",\"env\":\"cartpole\",\"seed\":2}\n"
              "{\"event\":\"evaluate\",\"step\":2,\"return\":7,\"seconds\":1}\n",
              false);
    assert_int_equal(r.curve_count, 3);
    assert_int_equal(r.source_count, 1);
    assert_string_equal(r.curves[0].what, "training return");
    assert_string_equal(r.curves[1].what, "return");
    assert_string_equal(r.curves[1].group, "ppo cartpole");
    assert_string_equal(r.curves[1].name, "seed 1");
    assert_string_equal(r.curves[2].name, "seed 2");
    assert_int_equal(r.curves[1].count, 2);
    near_to(r.curves[1].points[1].value, 9);
    near_to(r.curves[1].points[1].seconds, 3);
    assert_string_equal(r.sources[0].date, "2026-11-16T11:17:19Z");
    report_finish(&r);
}

// Rows `evaluate` alone: another run begins where steps fall, or with another seed, and not where a
// step is told again or where a row of training is behind one.
static void test_log_of_rows(void **state) {
    struct report r;
    (void)state;
    report_init(&r);
    read_good(&r, "cut/log.jsonl",
              "{\"event\":\"evaluate\",\"step\":2,\"loss\":5,\"seconds\":1}\n"
              "{\"event\":\"evaluate\",\"step\":2,\"loss\":4,\"seconds\":1}\n"
              "{\"event\":\"evaluate\",\"step\":4,\"loss\":3,\"seconds\":2}\n"
              "{\"event\":\"train\",\"step\":3,\"loss\":6,\"seconds\":1.5}\n"
              "{\"event\":\"train\",\"step\":3,\"loss\":7,\"seconds\":1.5}\n"
              "{\"event\":\"evaluate\",\"step\":3,\"loss\":9,\"seconds\":1}\n"
              "{\"event\":\"evaluate\",\"step\":5,\"loss\":8,\"seconds\":3,\"seed\":2}\n",
              false);
    static const struct {
        const char *what, *name;
        size_t count;
        double last;
    } curves[] = {{"loss", "", 3, 3},
                  {"training loss", "", 2, 7},
                  {"loss", "", 1, 9},
                  {"loss", "seed 2", 1, 8}};
    assert_int_equal(r.curve_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(r.curves[i].what, curves[i].what);
        assert_string_equal(r.curves[i].name, curves[i].name);
        assert_string_equal(r.curves[i].group, "training");
        assert_int_equal(r.curves[i].count, curves[i].count);
        near_to(r.curves[i].points[curves[i].count - 1].value, curves[i].last);
    }
    assert_int_equal(r.contender_count, 1);
    assert_string_equal(r.contenders[0].name, "log.jsonl");
    report_finish(&r);
}

// A log says no API: its curve goes to the contender of the same device, and colours to those with
// the most figures.
static void test_colors(void **state) {
    struct report r;
    (void)state;
    report_init(&r);
    read_good(&r, "few", HEAD("A", "2026-01-01T00:00:00Z") GEMM("8x8x8", "1", "0"), false);
    read_good(&r, "many",
              HEAD("B", "2026-01-01T00:00:00Z") GEMM("8x8x8", "1", "0") GEMM("9x9x9", "1", "0"),
              false);
    read_good(&r, "log",
              "{\"event\":\"start\",\"kind\":\"ppo\",\"device\":\"B\",\"seed\":1}\n"
              "{\"event\":\"evaluate\",\"step\":2,\"return\":5,\"seconds\":1}\n",
              false);
    assert_int_equal(r.contender_count, 3);
    report_settle(&r);
    assert_string_equal(r.contenders[r.curves[0].contender].label, "B · vulkan");
    assert_int_equal(r.contenders[1].color, 0);
    assert_int_equal(r.contenders[0].color, 1);
    assert_int_equal(r.contenders[2].color, 2);
    report_finish(&r);
    // Of a device with two APIs nobody knows which it was.
    report_init(&r);
    read_good(&r, "vulkan", HEAD("B", "2026-01-01T00:00:00Z") GEMM("8x8x8", "1", "0"), false);
    read_good(
        &r, "opencl",
        "{\"schema\":\"gpurt.bench/1\",\"device\":{\"name\":\"B\",\"backend\":\"opencl\"}}\n" GEMM(
            "8x8x8", "1", "0"),
        false);
    read_good(&r, "log",
              "{\"event\":\"start\",\"kind\":\"ppo\",\"device\":\"B\",\"seed\":1}\n"
              "{\"event\":\"evaluate\",\"step\":2,\"return\":5,\"seconds\":1}\n",
              false);
    report_settle(&r);
    assert_string_equal(r.contenders[r.curves[0].contender].label, "B");
    report_finish(&r);
}

// ---- broken files ----

static void test_refused(void **state) {
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "is empty"},
        {" \n \n", "is empty"},
        {"[1]", "line 1: an object is wanted"},
        {"7", "line 1: '[' or '{' expected"},
        {"epochs: 3\n", "expected near 'epochs'; results are wanted, as --format json writes them"},
        {"{\"rows\":[]}", "no schema"},
        {"{\"schema\":7,\"rows\":[]}", "no schema"},
        {"{\"schema\":\"gpurt.bench/2\",\"rows\":[]}", "another version of gpurt"},
        {"{\"schema\":\"other/1\",\"rows\":[]}", "'other/1' is no form"},
        {"{\"schema\":\"gpurt.bench/1\",\"rows\":{}}", "rows is no list"},
        {"{\"schema\":\"gpurt.bench/1\",\"rows\":[3]}", "row 1: a row is no object"},
        {"{\"schema\":\"gpurt.bench/1\",\"device\":3,\"rows\":[]}", "device is no object"},
        {"{\"schema\":\"gpurt.bench/1\",\"nature\":\"guessed\",\"rows\":[]}", "'guessed'"},
        {"{\"schema\":\"gpurt.bench/1\",\"rows\":[{\"kind\":\"gemm\",\"gflop_per_s\":1},"
         "{\"kind\":\"warp\"}]}",
         "row 2: rows of kind 'warp'"},
        {"{\"schema\":\"gpurt.bench/1\",\"rows\":[{\"kind\":\"gemm\",\"gflop_per_s\":\"x\"}]}",
         "gflop_per_s is no number"},
        {"{\"schema\":\"gpurt.bench/1\",\"schema\":\"gpurt.bench/1\"}", "duplicate"},
        {"{\"schema\":\"gpurt.bench/1\",\"rows\":[", "line 1:"},
        {"{\"schema\":\"gpurt.bench/1\",\"rows\":[{\"kind\":\"gemm\",\"ms\":1e999}]}", "overflow"},
        {"\n\n{\"kind\":\"gemm\",\"ms\":1}", "line 3: a row before its head"},
        {"{\"schema\":\"gpurt.bench/1\"}\n{\"kind\":\"gemm\"\n", "line 3:"},
        {"{\"a\":\"\xff\"}", "unable to decode byte"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct report r;
        char why[REPORT_WHY] = "";
        report_init(&r);
        bool good = report_read_text(&r, "x", cases[i].text, strlen(cases[i].text), false, why);
        if (good || !strstr(why, cases[i].why) || strchr(why, '\n')) {
            fail_msg("%s: said '%s', wanted '%s'", cases[i].text, why, cases[i].why);
        }
        report_finish(&r);
    }
}

// Deep nesting, long names, many rows and many values end with a sentence or are cut.
static void test_bounds(void **state) {
    struct report r;
    char why[REPORT_WHY] = "";
    size_t size = 1u << 20, used;
    char *text = malloc(size);
    (void)state;
    assert_non_null(text);
    memset(text, '[', size);
    text[size - 1] = '\0';
    report_init(&r);
    assert_false(report_read_text(&r, "x", text, size - 1, false, why));
    assert_non_null(strstr(why, "depth"));
    used = (size_t)sprintf(text, "{\"schema\":\"gpurt.bench/1\",\"device\":{\"name\":\"");
    memset(text + used, 'n', 5000);
    used += 5000;
    used += (size_t)sprintf(text + used, "\"}}\n{\"kind\":\"gemm\"");
    for (int i = 0; i < 70; i++) {
        used += (size_t)sprintf(text + used, ",\"k%d\":1", i);
    }
    used += (size_t)sprintf(text + used, "}");
    assert_false(report_read_text(&r, "x", text, used, false, why));
    assert_non_null(strstr(why, "line 2: a row has 71 values; 64 are allowed"));
    assert_true(strlen(r.contenders[0].label) < 3 * REPORT_TEXT);
    // Bytes that act on a terminal are seen instead.
    used = (size_t)sprintf(text, "{\"schema\":\"gpurt.bench/1\",\"device\":{\"name\":"
                                 "\"a\\u001b[2Jb\",\"backend\":\"vulkan\"}}");
    assert_true(report_read_text(&r, "x", text, used, false, why));
    assert_string_equal(r.contenders[1].name, "a\\x1b[2Jb");
    report_finish(&r);
    free(text);
}

// ---- texts ----

static void written(char text[256], void (*write)(FILE *, const char *), const char *from) {
    FILE *file = fmemopen(text, 256, "w");
    assert_non_null(file);
    write(file, from);
    fputc('\0', file);
    fclose(file);
}

static void test_texts(void **state) {
    static const struct {
        double value;
        const char *unit, *text;
    } quantities[] = {
        {64.531e12, "FLOP/s", "64.5 TFLOP/s"},
        {8.51e6, "samples/s", "8.51 M samples/s"},
        {203.5e-9, "s", "204 ns"},
        {0.042, "s", "42.0 ms"},
        {1, "samples/s", "1 samples/s"},
        {268435456, "B", "256 MiB"},
        {999.96, "FLOP/s", "1.00 kFLOP/s"},
        {0.25, "", "0.25"},
        {40, "registers", "40 registers"},
        {1e9, "", "1.00 G"},
    };
    char text[256];
    (void)state;
    for (size_t i = 0; i < sizeof quantities / sizeof *quantities; i++) {
        report_quantity(quantities[i].value, quantities[i].unit, text);
        assert_string_equal(text, quantities[i].text);
    }
    written(text, markup_text, "<b>\"'&");
    assert_string_equal(text, "&lt;b&gt;&quot;&#39;&amp;");
    written(text, report_markdown, "a|b <i> @me `x` http://y [z](w)");
    assert_string_equal(text, "a\\|b &#60;i&#62; &#64;me \\`x\\` http&#58;//y \\[z\\](w)");
    written(text, report_csv_text, "=1+2");
    assert_string_equal(text, "\"'=1+2\"");
    written(text, report_csv_text, " @x");
    assert_string_equal(text, "\"' @x\"");
    written(text, report_csv_text, "a \"b\", c");
    assert_string_equal(text, "\"a \"\"b\"\", c\"");
    written(text, report_csv_text, "plain-text");
    assert_string_equal(text, "plain-text");
    assert_true(report_order("batch 64", "batch 256") < 0);
    assert_true(report_order("a 10 b", "a 9 c") > 0);
    assert_int_equal(report_order("x07", "x7"), 0);
}

// Seven trials and one without a value. By hand: ranks of lr and value differ by 2 1 1 2 1 1 0, so
// the rank correlation is 1 - 6 * 12 / (7 * 48) = 11/14; the values of a have the mean rank 5 and
// those of b 8/3, so the correlation ratio is (4 + 16/3) / 28 = 1/3.
static void test_sweep(void **state) {
    static const int values[] = {3, 1, 4, 2, 6, 5, 7};
    char text[2048];
    struct report r;
    (void)state;
    size_t used = (size_t)snprintf(
        text, sizeof text,
        "{\"schema\":\"gpurt.sweep/1\",\"sweep\":{\"metric\":\"val_loss\",\"goal\":\"minimize\","
        "\"parameters\":[{\"name\":\"lr\",\"log\":true},{\"name\":\"optimizer\",\"log\":false},"
        "{\"name\":\"seed\",\"log\":false}]}}\n");
    for (int i = 0; i < 7; i++) {
        used +=
            (size_t)snprintf(text + used, sizeof text - used,
                             "{\"trial\":%d,\"state\":\"%s\",\"value\":%d,\"lr\":%d,"
                             "\"optimizer\":\"%s\",\"seed\":1}\n",
                             i, i == 1 ? "halved" : "done", values[i], i + 1, i % 2 ? "b" : "a");
    }
    snprintf(text + used, sizeof text - used,
             "{\"trial\":7,\"state\":\"failed\",\"lr\":9,\"optimizer\":\"c\",\"seed\":1}\n");
    report_init(&r);
    read_good(&r, "s.jsonl", text, false);
    report_settle(&r);
    assert_int_equal(r.sweep_count, 1);
    const struct report_sweep *s = &r.sweeps[0];
    assert_int_equal(s->count, 8);
    assert_int_equal(report_sweep_best(s)->number, 1);
    near_to(s->parameters[0].importance, 121.0 / 196);
    near_to(s->parameters[1].importance, 1.0 / 3);
    assert_true(isnan(s->parameters[2].importance));
    assert_true(s->parameters[1].words && !s->parameters[0].words);
    near_to(s->trials[7].places[1], 2);
    report_finish(&r);
}

// A sweep of these trials, whose values rise by 1.
static void read_trials(struct report *r, int trials, const int (*values)[2]) {
    char text[2048];
    size_t used = (size_t)snprintf(
        text, sizeof text,
        "{\"schema\":\"gpurt.sweep/1\",\"sweep\":{\"metric\":\"m\",\"goal\":\"minimize\","
        "\"parameters\":[{\"name\":\"a\"},{\"name\":\"b\"}]}}\n");
    for (int i = 0; i < trials; i++) {
        used +=
            (size_t)snprintf(text + used, sizeof text - used,
                             "{\"trial\":%d,\"state\":\"done\",\"value\":%d,\"a\":%d,\"b\":%d}\n",
                             i, i + 1, values[i][0], values[i][1]);
    }
    report_init(r);
    read_good(r, "s.jsonl", text, false);
    report_settle(r);
}

// Five values are few: groups by a have the mean ranks 1 2 3 4 5.5 5.5, so the ratio is 17 / 17.5.
// Six are many: ranks of b differ from those of the metric by 4 1 1 2 2 0, so the correlation is
// 1 - 6 * 26 / 210 = 9/35. Of three trials nothing is said, of four it is.
static void test_importance(void **state) {
    static const int values[][2] = {{5, 5}, {1, 1}, {4, 4}, {2, 2}, {3, 3}, {3, 6}};
    struct report r;
    (void)state;
    read_trials(&r, 6, values);
    near_to(r.sweeps[0].parameters[0].importance, 34.0 / 35);
    near_to(r.sweeps[0].parameters[1].importance, 81.0 / 1225);
    report_finish(&r);
    read_trials(&r, 4, values);
    near_to(r.sweeps[0].parameters[0].importance, 1);
    report_finish(&r);
    read_trials(&r, 3, values);
    assert_true(isnan(r.sweeps[0].parameters[0].importance));
    report_finish(&r);
}

// A file that is not whole says so in its head or behind its rows; of two commands of one file each
// says it for itself.
static void test_partial(void **state) {
    struct report r;
    (void)state;
    report_init(&r);
    read_good(&r, "whole", HEAD("A", "2026-01-01T00:00:00Z") GEMM("8x8x8", "1", "0"), false);
    read_good(&r, "behind",
              HEAD("A", "2026-01-01T00:00:00Z")
                  GEMM("8x8x8", "1", "0") "{\"partial\":true}\n" HEAD("A", "2026-01-02T00:00:00Z")
                      GEMM("8x8x8", "1", "0") "{\"partial\":false}\n",
              false);
    read_good(&r, "head",
              "{\"schema\":\"gpurt.bench/1\",\"partial\":true,\"device\":{\"name\":\"A\","
              "\"backend\":\"vulkan\"},\"rows\":[]}",
              false);
    static const bool partial[] = {false, true, false, true};
    assert_int_equal(r.source_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(r.sources[i].partial, partial[i]);
    }
    report_finish(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_winners),       cmocka_unit_test(test_newest),
        cmocka_unit_test(test_compare),       cmocka_unit_test(test_compare_sides),
        cmocka_unit_test(test_compare_peers), cmocka_unit_test(test_subjects),
        cmocka_unit_test(test_log),           cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bounds),        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_colors),        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_log_of_rows),   cmocka_unit_test(test_order_of_standings),
        cmocka_unit_test(test_importance),    cmocka_unit_test(test_partial),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
