// SPDX-License-Identifier: Apache-2.0
// How `gpurt report` writes numbers and names, the axes of its charts, and what it reads of heads,
// command lines, snapshots of memory and sweeps: a fact a row, at the limits.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/read.h"
#include "report/svg.h"
#include "report/text.h"

static void near_to(double got, double want) {
    if (!(fabs(got - want) <= 1e-9 * fabs(want))) {
        fail_msg("%.12g, wanted %.12g", got, want);
    }
}

// ---- numbers and names ----

static void quantities(void **state) {
    static const struct {
        double value;
        const char *unit, *text;
    } rows[] = {
        {0, "s", "0 s"},
        {0, "", "0"},
        {-2, "FLOP/s", "-2 FLOP/s"},
        {-1500, "FLOP/s", "-1.50 kFLOP/s"},
        {999, "FLOP/s", "999 FLOP/s"},
        {999.4, "FLOP/s", "999 FLOP/s"},
        {999.5, "FLOP/s", "1.00 kFLOP/s"},
        {1000, "FLOP/s", "1.00 kFLOP/s"},
        {9.994, "s", "9.99 s"},
        {9.996, "s", "10.0 s"},
        {99.94, "s", "99.9 s"},
        {99.96, "s", "100 s"},
        {1, "s", "1 s"},
        {0.9996, "s", "1 s"},
        {0.999, "s", "999 ms"},
        {1e-3, "s", "1.00 ms"},
        {5e-6, "s", "5.00 µs"},
        {7e-9, "s", "7.00 ns"},
        {3e-12, "s", "3.00 ps"},
        {3e-15, "s", "0.00 ps"},
        {0.5, "samples/s", "0.5 samples/s"},
        {1023, "B", "1023 B"},
        {1023.6, "B", "1.00 KiB"},
        {1000, "B", "1000 B"},
        {1024, "B", "1.00 KiB"},
        {1 << 20, "B", "1.00 MiB"},
        {1073741824.0, "B", "1.00 GiB"},
        {1099511627776.0, "B", "1.00 TiB"},
        {1e15, "FLOP/s", "1.00 PFLOP/s"},
        {1e18, "FLOP/s", "1.00 EFLOP/s"},
        {1e22, "FLOP/s", "10000 EFLOP/s"},
        {2e3, "agent steps/s", "2.00 k agent steps/s"},
        {1234, "images/s", "1.23 k images/s"},
        {0.0123456, "", "0.0123"},
        {12.5, "", "12.5"},
        {1000, "", "1.00 k"},
    };
    static const struct {
        double times;
        const char *text;
    } times[] = {{1, "1.00"},    {9.994, "9.99"},  {9.995, "10.0"}, {99.94, "99.9"},
                 {99.96, "100"}, {3791.4, "3791"}, {0, "0.00"}};
    char text[REPORT_QUANTITY];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        report_quantity(rows[i].value, rows[i].unit, text);
        if (strcmp(text, rows[i].text) != 0) {
            fail_msg("%.9g %s: '%s', wanted '%s'", rows[i].value, rows[i].unit, text, rows[i].text);
        }
    }
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        report_times(times[i].times, text);
        assert_string_equal(text, times[i].text);
    }
}

static void written(char text[512], void (*write)(FILE *, const char *), const char *from) {
    FILE *file = fmemopen(text, 512, "w");
    assert_non_null(file);
    write(file, from);
    fputc('\0', file);
    fclose(file);
}

static void fields(void **state) {
    static const struct {
        void (*write)(FILE *, const char *);
        const char *from, *to;
    } rows[] = {
        {report_csv_text, "", ""},
        {report_csv_text, "a b", "a b"},
        {report_csv_text, " a", "\" a\""},
        {report_csv_text, "a;b", "\"a;b\""},
        {report_csv_text, "a\tb", "\"a\tb\""},
        {report_csv_text, "a\nb", "\"a\nb\""},
        {report_csv_text, "a\rb", "\"a\rb\""},
        {report_csv_text, "-1", "\"'-1\""},
        {report_csv_text, "+1", "\"'+1\""},
        {report_csv_text, "a=1", "a=1"},
        {report_csv_text, "\"", "\"\"\"\""},
        {report_markdown, "a: b", "a: b"},
        {report_markdown, "a:/b", "a&#58;/b"},
        {report_markdown, "~$#!_*\\", "\\~\\$\\#\\!\\_\\*\\\\"},
        {report_markdown, "a & b", "a &#38; b"},
        {report_markdown, "±%", "±%"},
    };
    static const struct {
        const char *a, *b;
        int order;
    } orders[] = {{"", "", 0},         {"", "a", -1},     {"a", "", 1},       {"a", "ab", -1},
                  {"a1", "a", 1},      {"a2", "a10", -1}, {"a10", "a10", 0},  {"a10", "a11", -1},
                  {"a010", "a10", 0},  {"a0", "a00", 0},  {"a1b", "a1c", -1}, {"a1", "aa", -1},
                  {"1x2", "1x10", -1}, {"B", "a", -1},    {"é", "z", 1},      {"9", "10", -1}};
    char text[512];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        written(text, rows[i].write, rows[i].from);
        assert_string_equal(text, rows[i].to);
    }
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        int order = report_order(orders[i].a, orders[i].b);
        if ((order > 0) - (order < 0) != orders[i].order) {
            fail_msg("'%s' and '%s': %d", orders[i].a, orders[i].b, order);
        }
    }
}

// ---- axes ----

static void axes(void **state) {
    static const struct {
        bool log;
        double lo, hi, min, max;
    } rows[] = {
        // A fifth of the range, or the next of 1, 2, 5 above it, is a step; from 0 where that is
        // near.
        {false, 0, 10, 0, 12}, {false, 1, 9, 0, 10},        {false, 8, 10, 8, 10.5},
        {false, 6, 10, 6, 11}, {false, 5.9, 10, 0, 11},     {false, -10, 10, -10, 15},
        {false, 0, 0, 0, 0.2}, {false, 7, 7, 6, 8},         {false, -7, -7, -8, -6},
        {false, 0, 4.9, 0, 5}, {true, 1, 1000, 0.5, 2000},  {true, 1.2, 800, 1, 1000},
        {true, 3, 3, 2, 5},    {true, 0.02, 0.3, 0.01, 0.5}};
    static const struct {
        double value;
        const char *text;
    } texts[] = {{0, "0"},        {0.5, "0.5"},     {12345, "12.35 k"}, {9999, "9999"},
                 {10000, "10 k"}, {1e6, "1 M"},     {2.5e9, "2.5 G"},   {1e12, "1 T"},
                 {1e15, "1 P"},   {1e18, "1000 P"}, {0.001, "0.001"},   {0.0009, "900 µ"},
                 {1e-6, "1 µ"},   {2e-9, "2 n"},    {3e-12, "3 p"},     {-20000, "-20 k"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct svg_axis axis = {.log = rows[i].log, .from = 0, .to = 100};
        svg_axis_fit(&axis, rows[i].lo, rows[i].hi);
        near_to(100 + axis.min, 100 + rows[i].min);
        near_to(axis.max, rows[i].max);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[32];
        svg_tick_text(texts[i].value, text, sizeof text);
        assert_string_equal(text, texts[i].text);
    }
    // A figure from 0 on where the smallest is below 0.6 of the largest, else near to them.
    struct svg_axis axis = {.from = 200, .to = 20};
    svg_axis_fit(&axis, 5, 10);
    near_to(axis.min + 1, 1);
    svg_axis_fit(&axis, 6, 10);
    near_to(axis.min, 6);
    near_to(axis.max, 11);
    near_to(svg_at(&axis, 6), 200);
    near_to(svg_at(&axis, 11), 20);
    near_to(svg_at(&axis, 8.5), 110);
    near_to(svg_at(&axis, -100), 200);
    near_to(svg_at(&axis, 100), 20);
    near_to(svg_at(&axis, NAN), 200);
    struct svg_axis log = {.log = true, .min = 1, .max = 10000, .from = 0, .to = 400};
    near_to(svg_at(&log, 100), 200);
    near_to(1 + svg_at(&log, 0), 1);
}

static void ticks_are(const struct svg_axis *axis, double apart, const double *want, size_t count) {
    double ticks[SVG_MAX_TICKS];
    size_t got = svg_ticks(axis, apart, ticks);
    assert_int_equal(got, count);
    for (size_t i = 0; i < count; i++) {
        near_to(1 + ticks[i], 1 + want[i]);
    }
}
#define TICKS(axis, apart, ...)                                                                    \
    ticks_are(axis, apart, (const double[]){__VA_ARGS__},                                          \
              sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static void ticks(void **state) {
    (void)state;
    TICKS(&((struct svg_axis){.min = 0, .max = 10, .from = 0, .to = 400}), 40, 0, 2, 4, 6, 8, 10);
    TICKS(&((struct svg_axis){.min = 0, .max = 10, .from = 400, .to = 0}), 200, 0, 5, 10);
    TICKS(&((struct svg_axis){.min = -3, .max = 3, .from = 0, .to = 400}), 40, -2, 0, 2);
    TICKS(&((struct svg_axis){.log = true, .min = 1, .max = 100, .from = 0, .to = 400}), 40, 1, 2,
          5, 10, 20, 50, 100);
    TICKS(&((struct svg_axis){.log = true, .min = 1, .max = 1e4, .from = 0, .to = 400}), 40, 1, 10,
          100, 1000, 10000);
    TICKS(&((struct svg_axis){.log = true, .min = 1, .max = 1e8, .from = 0, .to = 400}), 90, 1, 100,
          1e4, 1e6, 1e8);
    TICKS(&((struct svg_axis){.log = true, .min = 2, .max = 5e3, .from = 0, .to = 100}), 40, 10,
          1000);
    // No more than there is room for.
    double many[SVG_MAX_TICKS];
    assert_in_range(
        svg_ticks(&(struct svg_axis){.log = true, .min = 1e-9, .max = 1e9, .to = 4000}, 1, many),
        10, SVG_MAX_TICKS);
}

static char *drawn(double room, const char *text) {
    static char all[1024];
    FILE *file = fmemopen(all, sizeof all, "w");
    svg_text(file, "label", 1.25, 2, room > 0 ? 'e' : 's', room, text);
    svg_mark(file, 9, 1, 2, "<x>");
    fputc('\0', file);
    fclose(file);
    return all;
}

static void texts_of_charts(void **state) {
    (void)state;
    assert_non_null(strstr(drawn(0, "a<b"), "<text class=\"label\" x=\"1.2\" y=\"2.0\" "
                                            "text-anchor=\"start\">a&lt;b</text>"));
    // 64 pixels are ten letters.
    assert_non_null(strstr(drawn(64, "0123456789"), "text-anchor=\"end\">0123456789</text>"));
    assert_non_null(strstr(drawn(64, "0123456789a"), ">012345678…<title>0123456789a</title></tex"));
    // A long one keeps its end: of 30 letters 19 and 10.
    assert_non_null(strstr(drawn(30 * SVG_LETTER, "abcdefghijklmnopqrstuvwxyz0123456789"),
                           ">abcdefghijklmnopqrs…0123456789<title>"));
    assert_non_null(strstr(drawn(1, "µµµ"), ">µ…<title>"));
    near_to(svg_text_width("aµ"), 2 * SVG_LETTER);
    // Colours repeat after eight, with another shape.
    static const uint32_t shapes[] = {0, 1, 2, 3, 0, 1, 2, 3, 1, 2, 3, 0};
    for (uint32_t i = 0; i < 12; i++) {
        assert_int_equal(svg_shape(i), shapes[i]);
    }
    assert_non_null(strstr(drawn(0, "a"), "<g class=\"mark c1\"><title>&lt;x&gt;</title>"));
}

// ---- heads ----

static bool reads(struct report *r, const char *text, char why[REPORT_WHY]) {
    return report_read_text(r, "dir/x.json", text, strlen(text), false, why);
}

// What of a command line is part of a case.
static void settings(void **state) {
    static const struct {
        const char *command, *command_text, *settings;
    } rows[] = {
        {"\"gpurt\"", "gpurt", ""},
        {"\"gpurt\",\"bench\",\"ppo\",\"--map\",\"12\"", "gpurt bench ppo --map 12", "map=12"},
        {"\"gpurt\",\"--map=12\",\"epochs=2\"", "gpurt --map=12 epochs=2", "map=12 epochs=2"},
        {"\"gpurt\",\"--device\",\"vulkan:0\",\"--seed=3\",\"backend=x\"",
         "gpurt --device vulkan:0 --seed=3 backend=x", ""},
        {"\"gpurt\",\"--quiet\",\"--map\",\"3\",\"-v\",\"a=1\"", "gpurt --quiet --map 3 -v a=1",
         "map=3 a=1"},
        {"\"gpurt\",\"--require-gpu\",\"--kernels\",\"--every-command\",\"--monitor\",\"-q\"",
         "gpurt --require-gpu --kernels --every-command --monitor -q", ""},
        {"\"gpurt\",\"--memory-snapshot\",\"a\",\"--trace\",\"b\",\"--metrics\",\"c\"",
         "gpurt --memory-snapshot a --trace b --metrics c", ""},
        {"\"gpurt\",\"-o\",\"a b\",\"--last\"", "gpurt -o 'a b' --last", "last="},
        {"\"gpurt\",\"--mem-limit\",\"1\",\"--max-submit-ms\",\"2\",\"--loop\",\"host\"",
         "gpurt --mem-limit 1 --max-submit-ms 2 --loop host", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct report r;
        char text[1024], why[REPORT_WHY] = "";
        report_init(&r);
        snprintf(text, sizeof text, "{\"schema\":\"gpurt.bench/1\",\"command\":[%s],\"rows\":[]}",
                 rows[i].command);
        assert_true(reads(&r, text, why));
        assert_string_equal(r.sources[0].command, rows[i].command_text);
        assert_string_equal(r.sources[0].settings, rows[i].settings);
        report_finish(&r);
    }
}

static void heads(void **state) {
    struct report r;
    char why[REPORT_WHY] = "";
    (void)state;
    report_init(&r);
    assert_true(reads(&r,
                      "{\"schema\":\"gpurt.bench/1\",\"gpurt\":\"9.9\",\"date\":\"today\","
                      "\"partial\":true,\"device\":{\"name\":\"A\",\"backend\":\"opencl\","
                      "\"memory\":64,\"unified\":false,\"f16\":true,\"profiles\":[{\"name\":\"a\"},"
                      "{\"name\":\"b\"}]},\"model\":{\"depth\":3,\"batch\":9},\"data\":{\"rows\":"
                      "7},\"rows\":[{\"kind\":\"gemm\",\"gflop_per_s\":1,\"batch\":2}]}",
                      why));
    const struct report_source *s = &r.sources[0];
    assert_string_equal(s->file, "dir/x.json");
    assert_string_equal(s->version, "9.9");
    assert_string_equal(s->date, "today");
    assert_true(s->partial);
    assert_int_equal(s->nature, REPORT_MEASURED);
    assert_int_equal(s->row_count, 1);
    static const struct {
        const char *key, *text;
        double number;
    } facts[] = {{"name", "A", 0},     {"backend", "opencl", 0}, {"memory", NULL, 64},
                 {"unified", "no", 0}, {"f16", "yes", 0},        {"profiles", "a, b", 0}};
    assert_int_equal(s->fact_count, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(s->facts[i].key, facts[i].key);
        if (facts[i].text) {
            assert_string_equal(s->facts[i].text, facts[i].text);
        } else {
            assert_null(s->facts[i].text);
            near_to(s->facts[i].number, facts[i].number);
        }
    }
    // What holds for all rows of a command is each row's, unless that says another.
    near_to(report_number(&r.rows[0], "depth"), 3);
    near_to(report_number(&r.rows[0], "batch"), 2);
    near_to(report_number(&r.rows[0], "rows"), 7);
    assert_true(isnan(report_number(&r.rows[0], "kind")));
    assert_null(report_cell(&r.rows[0], "nothing"));
    // Another product beside it; a device that a row names; the host; a prediction.
    assert_true(reads(&r,
                      "{\"schema\":\"gpurt.bench/1\",\"device\":{\"name\":\"A\",\"backend\":"
                      "\"opencl\"},\"rows\":[{\"kind\":\"gemm\",\"gflop_per_s\":1,\"variant\":"
                      "\"openblas\"},{\"kind\":\"gemm\",\"gflop_per_s\":1,\"variant\":\"other\"}]}",
                      why));
    assert_string_equal(r.contenders[r.rows[1].contender].label, "A · openblas");
    assert_string_equal(r.contenders[r.rows[2].contender].label, "A · opencl");
    assert_true(reads(&r,
                      "{\"schema\":\"gpurt.static/1\",\"rows\":[{\"device\":\"B\",\"target\":\"x\","
                      "\"kernel\":\"k\",\"registers\":5}]}",
                      why));
    assert_int_equal(r.sources[2].contender, REPORT_NONE);
    assert_int_equal(r.rows[3].nature, REPORT_STATIC);
    assert_string_equal(r.contenders[r.rows[3].contender].label, "B · x");
    assert_true(reads(&r, "{\"schema\":\"gpurt.bench/1\",\"rows\":[]}", why));
    assert_string_equal(r.contenders[r.sources[3].contender].label, "host");
    assert_true(reads(&r,
                      "{\"schema\":\"gpurt.bench/1\",\"nature\":\"predicted\",\"command\":[\"gpurt"
                      "\",\"--map\",\"3\"],\"device\":{\"name\":\"A\",\"backend\":\"opencl\"}}",
                      why));
    assert_string_equal(r.contenders[r.sources[4].contender].label, "A · opencl (predicted)");
    assert_string_equal(r.sources[4].settings, "");  // a model has no such options
    static const char same[] =
        "{\"schema\":\"gpurt.bench/1\",\"device\":{\"name\":\"A\",\"backend\":\"opencl\"}}";
    assert_true(report_read_text(&r, "b", same, strlen(same), true, why));
    assert_string_equal(r.contenders[r.sources[5].contender].label, "A · opencl (baseline)");
    // Lines are counted over several objects, and a row may have 64 values.
    assert_false(
        reads(&r, "{\"schema\":\"gpurt.bench/1\",\n\"rows\":[]}\n\n{\"a\":1,\n\"b\":}", why));
    assert_non_null(strstr(why, "line 5: "));
    assert_false(reads(&r, "{\"schema\":\"gpurt.bench/1\",\n\"rows\":[]}\n\n[1,\n2]", why));
    assert_non_null(strstr(why, "line 4: an object is wanted"));
    for (int count = 64; count <= 65; count++) {
        char text[2048];
        int used = sprintf(text, "{\"schema\":\"gpurt.bench/1\"}\n{\"kind\":\"gemm\"");
        for (int i = 1; i < count; i++) {
            used += sprintf(text + used, ",\"k%d\":1", i);
        }
        sprintf(text + used, "}");
        assert_int_equal(reads(&r, text, why), count == 64);
    }
    report_finish(&r);
}

static void schemas(void **state) {
    static const struct {
        const char *schema, *kind, *name;
    } rows[] = {{"gpurt.bench/1", "gemm", "gemm"},
                {"gpurt.bench/1", NULL, NULL},
                {"gpurt.bench/1", "launch", "launch"},
                {"gpurt.bench.train/1", NULL, "train"},
                {"gpurt.bench.train/1", "gemm", NULL},
                {"gpurt.bench.ppo/1", "phase", "phase"},
                {"gpurt.bench.ppo/1", "iteration", "ppo"},
                {"gpurt.static/1", NULL, "static"},
                {"gpurt.bench.scaling/1", "step", "scaling"},
                {"gpurt.bench.data/1", NULL, "data"}};
    static const struct {
        const char *schema;
        bool known, name;
    } names[] = {{"gpurt.bench/1", true, true},      {"gpurt.bench/2", false, true},
                 {"gpurt.bench.mlp/7", false, true}, {"gpurt.bench.ml/1", false, false},
                 {"gpurt.benches/1", false, false},  {"gpurt.bench", false, false},
                 {"gpurt.static/1", true, true}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct report_bench *b = report_bench_of(rows[i].schema, rows[i].kind);
        assert_string_equal(b ? b->name : "none", rows[i].name ? rows[i].name : "none");
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(report_knows_schema(names[i].schema), names[i].known);
        assert_int_equal(report_knows_name(names[i].schema), names[i].name);
    }
    // Less is better of times and registers only.
    for (size_t i = 0; i < report_bench_count; i++) {
        const struct report_bench *b = &report_benches[i];
        bool less = strcmp(b->unit, "s") == 0 || strcmp(b->unit, "registers") == 0;
        assert_int_equal(b->lower, less);
        near_to(report_share(b, 2, 4), less ? 2 : 0.5);
        assert_int_equal(b->compared,
                         strcmp(b->name, "phase") != 0 && strcmp(b->name, "static") != 0);
    }
}

// What tells cases apart, and what is usual and left out.
static void cases(void **state) {
    static const struct {
        const char *schema, *row, *subject;
    } rows[] = {
        {"gpurt.bench/1",
         "\"kind\":\"gemm\",\"shape\":\"2x3x4\",\"batch\":5,\"precision\":\"f16\",\"trans\":\"tn\"",
         "2x3x4 x 5 f16 tn"},
        {"gpurt.bench/1", "\"kind\":\"gemm\",\"shape\":\"2x3x4\",\"batch\":1,\"trans\":\"nn\"",
         "2x3x4"},
        {"gpurt.bench/1",
         "\"kind\":\"conv\",\"images\":\"8x3\",\"window\":\"w3\",\"precision\":\"f32\",\"test\":"
         "\"forward\"",
         "8x3 w3 f32 forward"},
        {"gpurt.bench/1",
         "\"kind\":\"rollout\",\"test\":\"uav\",\"policy\":\"mlp32\",\"num_envs\":4,\"num_dirs\":2,"
         "\"dir_chunk\":1",
         "uav mlp32 envs 4 dirs 2 chunk 1"},
        {"gpurt.bench/1", "\"kind\":\"launch\",\"test\":\"graph\",\"dispatches\":64", "graph x 64"},
        {"gpurt.bench.ppo/1",
         "\"kind\":\"phase\",\"env\":\"e\",\"num_envs\":4,\"agents\":1,\"rollout_steps\":8,"
         "\"precision\":\"f32\",\"loop\":\"host\",\"phase\":\"update\"",
         "e envs 4 steps 8 f32 loop host: update"},
        {"gpurt.bench.scaling/1",
         "\"kind\":\"step\",\"train\":\"mlp\",\"parameters\":12,\"batch\":8,\"ranks\":2",
         "mlp parameters 12 batch 8 ranks 2"},
        {"gpurt.bench.data/1",
         "\"batch\":8,\"workers\":2,\"cache\":\"off\",\"order\":\"shuffled\",\"row_bytes\":4096,"
         "\"compressed\":0",
         "batch 8 workers 2 cache off shuffled rows of 4.00 KiB"},
        {"gpurt.bench.data/1", "\"workers\":2,\"compressed\":1", "workers 2 compressed 1"},
        {"gpurt.bench.images/1",
         "\"model\":\"r18\",\"resolution\":32,\"batch\":64,\"precision\":\"f16\"",
         "r18 side 32 batch 64 f16"},
        {"gpurt.bench.train/1",
         "\"depth\":2,\"hidden\":8,\"batch\":64,\"precision\":\"f32\",\"workers\":0,\"cache\":"
         "\"ram\",\"pin_memory\":0",
         "2x8 batch 64 f32 workers 0 cache ram pin_memory 0"},
        {"gpurt.static/1", "\"device\":\"d\",\"target\":\"t\",\"kernel\":\"k\",\"mode\":\"fast\"",
         "t k fast"},
        {"gpurt.static/1",
         "\"target\":\"t\",\"kernel\":\"k\",\"mode\":\"default\",\"setting\":\"\"", "t k"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct report r;
        char text[1024], why[REPORT_WHY] = "";
        report_init(&r);
        snprintf(text, sizeof text, "{\"schema\":\"%s\",\"rows\":[{%s}]}", rows[i].schema,
                 rows[i].row);
        assert_true(reads(&r, text, why));
        assert_string_equal(r.rows[0].subject, rows[i].subject);
        report_finish(&r);
    }
}

// ---- snapshots of memory, and sweeps ----

#define SNAPSHOT(numbers, list)                                                                    \
    "{\"schema\":\"gpurt.memory/1\",\"device\":{\"name\":\"A\"}," numbers "\"allocations\":[" list \
    "]}"
#define NUMBERS "\"seconds\":10,\"peak\":7,\"peak_at\":3,"
#define BLOCK(label, kind, size, begin, end)                                                       \
    "{\"label\":\"" label "\",\"kind\":\"" kind "\",\"size\":" size ",\"begin\":" begin            \
    ",\"end\":" end ",\"tensors\":[1,2]}"
#define SWEEP(about) "{\"schema\":\"gpurt.sweep/1\",\"sweep\":{" about "}}\n"
#define ABOUT "\"metric\":\"m\",\"goal\":\"minimize\",\"parameters\":[{\"name\":\"a\"}]"

static void refused(void **state) {
    static const char lacks[] = "a snapshot of memory lacks seconds, peak, peak_at or allocations";
    static const char block[] = "an allocation lacks its label, kind, size or times";
    static const struct {
        const char *text, *why;  // NULL: it is read
    } rows[] = {
        {SNAPSHOT(NUMBERS, ""), NULL},
        {SNAPSHOT("\"seconds\":10,\"peak\":7,", ""), lacks},
        {SNAPSHOT("\"seconds\":-1,\"peak\":7,\"peak_at\":3,", ""), lacks},
        {SNAPSHOT("\"seconds\":1e13,\"peak\":7,\"peak_at\":3,", ""), lacks},
        {SNAPSHOT("\"seconds\":1e12,\"peak\":1e18,\"peak_at\":0,", ""), NULL},
        {SNAPSHOT("\"seconds\":1,\"peak\":2e18,\"peak_at\":0,", ""), lacks},
        {SNAPSHOT("\"seconds\":1,\"peak\":\"7\",\"peak_at\":0,", ""), lacks},
        {"{\"schema\":\"gpurt.memory/1\"," NUMBERS "\"allocations\":3}", lacks},
        {SNAPSHOT(NUMBERS, BLOCK("a", "device", "1", "2", "2")), NULL},
        {SNAPSHOT(NUMBERS, BLOCK("a", "device", "1", "2", "1.9")), "an allocation ends before it"},
        {SNAPSHOT(NUMBERS, BLOCK("a", "device", "-1", "2", "3")), block},
        {SNAPSHOT(NUMBERS, BLOCK("a", "device", "1", "-2", "3")), block},
        {SNAPSHOT(NUMBERS, BLOCK("a", "device", "1", "2", "\"3\"")), block},
        {SNAPSHOT(NUMBERS, "{\"label\":\"a\",\"size\":1,\"begin\":1,\"end\":2}"), block},
        {SNAPSHOT(NUMBERS, "{\"kind\":\"device\",\"size\":1,\"begin\":1,\"end\":2}"), block},
        {"{\"schema\":\"gpurt.memory/2\"}", "its form is gpurt.memory/2, of another version"},
        {"{\"schema\":\"gpurt.sweep/2\"}", "its form is gpurt.sweep/2, of another version"},
        {"{\"schema\":\"gpurt.sweeps/1\"}", "'gpurt.sweeps/1' is no form of results"},
        {SWEEP(ABOUT), NULL},
        {SWEEP("\"metric\":\"m\",\"goal\":\"maximize\",\"parameters\":[]"),
         "a sweep lacks its metric, goal or parameters"},
        {SWEEP("\"goal\":\"maximize\",\"parameters\":[{\"name\":\"a\"}]"), "a sweep lacks its"},
        {SWEEP("\"metric\":\"m\",\"parameters\":[{\"name\":\"a\"}]"), "a sweep lacks its"},
        {SWEEP("\"metric\":\"m\",\"goal\":\"x\",\"parameters\":[{}]"),
         "a parameter of a sweep lacks its name"},
        {SWEEP(ABOUT) "{\"trial\":0,\"state\":\"done\",\"a\":1}\n", NULL},
        {SWEEP(ABOUT) "{\"trial\":0.5,\"state\":\"done\",\"a\":1}\n",
         "line 2: a trial lacks its number or state"},
        {SWEEP(ABOUT) "{\"trial\":0,\"a\":1}\n", "a trial lacks its number or state"},
        {SWEEP(ABOUT) "{\"trial\":0,\"state\":\"done\"}\n", "a trial lacks a parameter"},
        {SWEEP(ABOUT) "{\"trial\":0,\"state\":\"done\",\"a\":true}\n", "a trial lacks a parameter"},
        {"{\"schema\":\"gpurt.bench/1\",\"nature\":\"measured\"}", NULL},
        {"{\"schema\":\"gpurt.bench/1\",\"nature\":\"static\"}", NULL},
        {"{\"schema\":\"gpurt.bench/1\",\"nature\":\"seen\"}",
         "nature 'seen' is not known; known are measured, static, predicted"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct report r;
        char why[REPORT_WHY] = "";
        report_init(&r);
        bool good = reads(&r, rows[i].text, why);
        if (good != !rows[i].why || (rows[i].why && !strstr(why, rows[i].why))) {
            fail_msg("%s: said '%s', wanted '%s'", rows[i].text, why,
                     rows[i].why ? rows[i].why : "nothing");
        }
        report_finish(&r);
    }
    // 32 parameters are read, one more is not.
    for (int count = 32; count <= 33; count++) {
        struct report r;
        char text[2048], why[REPORT_WHY] = "";
        int used = sprintf(text, "{\"schema\":\"gpurt.sweep/1\",\"sweep\":{\"metric\":\"m\","
                                 "\"goal\":\"minimize\",\"parameters\":[");
        for (int i = 0; i < count; i++) {
            used += sprintf(text + used, "%s{\"name\":\"p%d\"}", i ? "," : "", i);
        }
        sprintf(text + used, "]}}");
        report_init(&r);
        assert_int_equal(reads(&r, text, why), count == 32);
        assert_int_equal(r.sweep_count, count == 32);
        report_finish(&r);
    }
}

// Each block lies in the lowest place that is free for its life: what ends when another begins is
// gone. Other memory, and none, is not drawn; one that never ended lasts to the end.
static void places(void **state) {
    static const double at[] = {0, 4, 0, 6, 1, 0}, ends[] = {2, 10, 6, 7, 8, 10};
    struct report r;
    char why[REPORT_WHY] = "";
    (void)state;
    report_init(&r);
#define LOWER BLOCK("a", "device", "4", "0", "2") "," BLOCK("b", "device", "2", "1", "null")
#define UNSEEN BLOCK("u", "upload", "9", "0", "9") "," BLOCK("z", "device", "0", "0", "9")
#define MIDDLE BLOCK("c", "device", "1", "2", "6") "," BLOCK("d", "device", "5", "3", "7")
#define LAST BLOCK("e", "device", "3", "4", "8") "," BLOCK("f", "device", "1", "6", "10")
    assert_true(reads(&r, SNAPSHOT(NUMBERS, LOWER "," UNSEEN "," MIDDLE "," LAST), why));
    const struct report_memory *m = &r.memories[0];
    assert_int_equal(m->count, 6);
    near_to(m->seconds, 10);
    near_to(m->peak, 7);
    near_to(m->peak_at, 3);
    for (size_t i = 0; i < 6; i++) {
        near_to(1 + m->blocks[i].at, 1 + at[i]);
        near_to(m->blocks[i].end, ends[i]);
        assert_int_equal(m->blocks[i].tensors, 2);
    }
    report_finish(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantities), cmocka_unit_test(fields),          cmocka_unit_test(axes),
        cmocka_unit_test(ticks),      cmocka_unit_test(texts_of_charts), cmocka_unit_test(settings),
        cmocka_unit_test(heads),      cmocka_unit_test(schemas),         cmocka_unit_test(cases),
        cmocka_unit_test(refused),    cmocka_unit_test(places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
