// SPDX-License-Identifier: Apache-2.0
// Which figures the charts of `gpurt report` show: of each case the newest and best, of what was
// measured or predicted as the chart says, a panel for each value of its keys; and curves of more
// than one point.
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_curves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
