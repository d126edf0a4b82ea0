// SPDX-License-Identifier: Apache-2.0
// Which figures the charts of `gpurt report` show: of each case the newest and best, of what was
// measured or predicted as the chart says, a panel for each value of its keys; curves of more than
// one point; memory at its peak, and trials of a sweep by their ranks.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/chart.h"
#include "report/read.h"

#define HEAD(more)                                                                                 \
    "{\"schema\":\"gpurt.bench/1\"," more "\"device\":{\"name\":\"A\",\"backend\":\"vulkan\"}}\n"
#define GEMM(shape, precision, gflops, check)                                                      \
    "{\"kind\":\"gemm\",\"shape\":\"" shape "\",\"batch\":1,\"precision\":\"" precision            \
    "\",\"trans\":\"nn\",\"gflop_per_s\":" gflops ",\"check\":\"" check "\"}\n"

static void read_good(struct report *r, const char *name, const char *text) {
    char why[REPORT_WHY] = "";
    if (!report_read_text(r, name, text, strlen(text), false, why)) {
        fail_msg("%s: %s", name, why);
    }
}

// What a chart draws, freed by the caller, and how many panels it has.
static char *draw(const struct report *r, const char *id, size_t *panels) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    const struct report_chart *chart = report_charts;
    while (strcmp(chart->id, id) != 0) {
        assert_true(++chart < report_charts + report_chart_count);
    }
    assert_non_null(file);
    *panels = report_chart_write(file, r, chart);
    assert_int_equal(fclose(file), 0);
    return text;
}

static void test_rows(void **state) {
    (void)state;
    struct report r;
    size_t panels = 0;
    report_init(&r);
    read_good(&r, "new",
              HEAD("\"date\":\"2026-02-01T00:00:00Z\",") GEMM("8x8x8", "f32", "10", "ok")
                  GEMM("8x8x8", "f32", "12", "ok") GEMM("64x64x64", "f32", "55", "failed")
                      GEMM("64x64x64", "f16", "77", "ok"));
    read_good(&r, "old",
              HEAD("\"date\":\"2026-01-01T00:00:00Z\",") GEMM("8x8x8", "f32", "99", "ok"));
    read_good(&r, "predicted", HEAD("\"nature\":\"predicted\",") GEMM("8x8x8", "f32", "44", "ok"));
    report_settle(&r);
    char *text = draw(&r, "gemm", &panels);
    assert_int_equal(panels, 2);  // f16 and f32
    assert_non_null(strstr(text, "12.0 GFLOP/s"));
    assert_non_null(strstr(text, "77.0 GFLOP/s"));
    static const char *const others[] = {"10.0 GFLOP/s", "99.0 GFLOP/s", "55.0 GFLOP/s",
                                         "44.0 GFLOP/s"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_null(strstr(text, others[i]));
    }
    free(text);
    text = draw(&r, "predicted-gemm", &panels);
    assert_int_equal(panels, 1);
    assert_non_null(strstr(text, "44.0 GFLOP/s"));
    assert_null(strstr(text, "12.0 GFLOP/s"));
    free(text);
    text = draw(&r, "memory", &panels);
    assert_true(panels == 0 && text[0] == '\0');
    free(text);
    report_finish(&r);
}

// A panel for each group of curves and what they follow; a point alone is no curve.
static void test_curves(void **state) {
    (void)state;
    struct report r;
    size_t panels = 0;
    report_init(&r);
    read_good(&r, "log",
              "{\"event\":\"start\",\"kind\":\"ppo\",\"device\":\"A\",\"seed\":1}\n"
              "{\"event\":\"evaluate\",\"step\":1,\"return\":5,\"seconds\":1}\n"
              "{\"event\":\"evaluate\",\"step\":2,\"return\":6,\"seconds\":2}\n"
              "{\"event\":\"train\",\"step\":1,\"return\":7,\"seconds\":1}\n"
              "{\"event\":\"start\",\"kind\":\"ppo\",\"device\":\"A\",\"seed\":2}\n"
              "{\"event\":\"evaluate\",\"step\":1,\"return\":5,\"seconds\":1}\n"
              "{\"event\":\"evaluate\",\"step\":2,\"return\":6,\"seconds\":2}\n"
              "{\"event\":\"start\",\"kind\":\"es\",\"device\":\"A\",\"seed\":1}\n"
              "{\"event\":\"evaluate\",\"step\":1,\"return\":5,\"seconds\":1}\n");
    report_settle(&r);
    assert_int_equal(r.curve_count, 4);
    char *text = draw(&r, "learning", &panels);
    assert_int_equal(panels, 1);
    assert_non_null(strstr(text, "ppo: return"));
    assert_null(strstr(text, "ppo: training return"));
    assert_null(strstr(text, "es: return"));
    free(text);
    read_good(&r, "more",
              "{\"event\":\"start\",\"kind\":\"es\",\"device\":\"A\",\"seed\":3}\n"
              "{\"event\":\"evaluate\",\"step\":1,\"return\":5,\"seconds\":1}\n"
              "{\"event\":\"evaluate\",\"step\":2,\"return\":5,\"seconds\":2}\n");
    report_settle(&r);
    text = draw(&r, "learning", &panels);
    assert_int_equal(panels, 2);
    assert_non_null(strstr(text, "es: return"));
    free(text);
    report_finish(&r);
}

// What one of the functions that draw all of a kind writes, freed by the caller.
static char *drawn(const struct report *r, void (*draw_all)(FILE *, const struct report *)) {
    size_t size = 0;
    char *text = NULL;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    draw_all(file, r);
    assert_int_equal(fclose(file), 0);
    char *whole = strdup(text);  // GCC 12 takes the text itself for one of this function
    assert_non_null(whole);
    free(text);
    return whole;
}

static size_t count_of(const char *text, const char *word) {
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word)) {
        count++;
    }
    return count;
}

#define SNAPSHOT                                                                                   \
    "{\"schema\":\"gpurt.memory/1\",\"device\":{\"name\":\"A\",\"backend\":\"vulkan\"},"           \
    "\"seconds\":10,\"peak\":1024,\"peak_at\":4,\"allocations\":["

// Behind what the text has of a snapshot.
static void add_block(char *text, size_t room, const char *label, int bytes, int begin,
                      const char *end) {
    size_t used = strlen(text);
    snprintf(text + used, room - used,
             "%s{\"label\":\"%s\",\"kind\":\"device\",\"size\":%d,\"begin\":%d,\"end\":%s,"
             "\"tensors\":[]}",
             text[used - 1] == '[' ? "" : ",", label, bytes, begin, end);
}

static void end_blocks(char *text, size_t room) {
    size_t used = strlen(text);
    snprintf(text + used, room - used, "]}");
}

// Labels by what they have at the peak: one that ends there is gone, one that begins there is not;
// two of one label add up. Seven have colours, the others share the last.
static void test_memory(void **state) {
    static const char *const legend[] = {
        "p0\"></i>begun, 512 KiB<", "p1\"></i>l8, 10.0 KiB<",      "p2\"></i>l7, 8.00 KiB<",
        "p3\"></i>l6, 7.00 KiB<",   "p4\"></i>l5, 6.00 KiB<",      "p5\"></i>l4, 5.00 KiB<",
        "p6\"></i>l3, 4.00 KiB<",   "p7\"></i>5 others, 6.00 KiB<"};
    static const int blocks[] = {1, 2, 1, 1, 1, 1, 1, 5};
    char text[4096] = SNAPSHOT;
    struct report r;
    (void)state;
    add_block(text, sizeof text, "ended", 1 << 20, 0, "4");
    for (int i = 0; i < 9; i++) {
        char label[8];
        snprintf(label, sizeof label, "l%d", i);
        add_block(text, sizeof text, label, 1024 * (i + 1), 0, "null");
    }
    add_block(text, sizeof text, "l8", 1024, 3, "5");
    add_block(text, sizeof text, "begun", 512 << 10, 4, "5");
    add_block(text, sizeof text, "later", 2 << 20, 5, "6");
    end_blocks(text, sizeof text);
    report_init(&r);
    read_good(&r, "m", text);
    report_settle(&r);
    char *page = drawn(&r, chart_memories);
    for (size_t i = 0; i < 8; i++) {
        char class[32];
        snprintf(class, sizeof class, "\"block p%zu\"", i);
        assert_int_equal(count_of(page, class), blocks[i]);
        assert_int_equal(count_of(page, legend[i]), 1);
    }
    assert_int_equal(count_of(page, "<li>"), 8);
    assert_null(strstr(page, "not drawn"));
    free(page);
    report_finish(&r);
}

// Of more than 1500 blocks the smallest are left out, and it is said how many.
static void test_small_blocks(void **state) {
    size_t room = 200000;
    char *text = malloc(room);
    struct report r;
    (void)state;
    assert_non_null(text);
    snprintf(text, room, "%s", SNAPSHOT);
    for (int i = 0; i < 1510; i++) {
        add_block(text, room, "x", i % 151 == 0 ? 4 : i % 151 == 1 ? 2 : 1, 0, "1");
    }
    end_blocks(text, room);
    report_init(&r);
    read_good(&r, "m", text);
    report_settle(&r);
    char *page = drawn(&r, chart_memories);
    assert_int_equal(count_of(page, "\"block p"), 20);
    assert_non_null(strstr(page, "; 1490 small allocations are not drawn"));
    free(page);
    free(text);
    report_finish(&r);
}

// Lines of trials from the worst to the best, and a colour for each quarter; the least important of
// seven parameters has no axis; the best so far steps where a trial is better.
static void test_sweeps(void **state) {
    static const char *const classes[] = {"p0", "p0", "p1", "p1", "p2", "p2", "c0", "c0"};
    static const int values[] = {5, 3, 8, 6, 1, 7, 2, 4};
    static const int order[2][8] = {{2, 5, 3, 0, 7, 1, 6, 4}, {4, 6, 1, 7, 0, 3, 5, 2}};
    (void)state;
    for (int maximize = 0; maximize < 2; maximize++) {
        char text[4096];
        struct report r;
        size_t used = (size_t)snprintf(
            text, sizeof text,
            "{\"schema\":\"gpurt.sweep/1\",\"sweep\":{\"metric\":\"m\",\"goal\":\"%s\","
            "\"parameters\":[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"c\"},{\"name\":\"d\"},"
            "{\"name\":\"none\"},{\"name\":\"f\"},{\"name\":\"g\"}]}}\n",
            maximize ? "maximize" : "minimize");
        for (int i = 0; i < 9; i++) {
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "{\"trial\":%d,\"state\":\"%s\",%s%.0d%s\"a\":%d,\"b\":%d,"
                                     "\"c\":%d,\"d\":%d,\"none\":1,\"f\":%d,\"g\":%d}\n",
                                     i, i < 8 ? "done" : "nan", i < 8 ? "\"value\":" : "",
                                     i < 8 ? values[i] : 0, i < 8 ? "," : "", i, i / 2, i / 3,
                                     i % 2, i % 3, i % 4);
        }
        report_init(&r);
        read_good(&r, "s", text);
        report_settle(&r);
        char *page = drawn(&r, chart_sweeps);
        const char *at = page;
        for (size_t i = 0; i < 8; i++) {
            char title[32];
            at = strstr(at, "<polyline class=\"line ");
            assert_non_null(at);
            assert_memory_equal(at + strlen("<polyline class=\"line "), classes[i], 2);
            at = strstr(at, "<title>");
            snprintf(title, sizeof title, "trial %d: m %d,", order[maximize][i],
                     values[order[maximize][i]]);
            assert_memory_equal(at + strlen("<title>"), title, strlen(title));
        }
        // Seven axes are six parameters and the metric.
        assert_non_null(strstr(page, "8 trials over 6 parameters"));
        assert_non_null(strstr(page, "The 6 most important of 7 parameters."));
        assert_non_null(strstr(page, ">f</text>"));
        assert_null(strstr(page, ">none</text>"));
        // A point for each trial with a value, and one more where the best changes.
        size_t points = 0;
        at = strstr(at, "The metric over trials");
        at = strstr(at, "line p1\"");
        for (size_t i = 0; at[i] != '/'; i++) {
            points += at[i] == ',';
        }
        assert_int_equal(points, maximize ? 8 + 1 : 8 + 2);
        free(page);
        report_finish(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),   cmocka_unit_test(test_curves),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_small_blocks),
        cmocka_unit_test(test_sweeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
