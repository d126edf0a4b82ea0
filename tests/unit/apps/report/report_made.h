// SPDX-License-Identifier: Apache-2.0
// Made-up results for the tests of `gpurt report`: heads, rows, and the forms and charts of them.
#ifndef TEST_APPS_REPORT_MADE_H
#define TEST_APPS_REPORT_MADE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/chart.h"
#include "report/read.h"
#include "report/write.h"

#define HEAD(device, api, date)                                                                    \
    "{\"schema\":\"gpurt.bench/1\",\"gpurt\":\"0.1.0\",\"command\":[\"gpurt\",\"bench\"],"         \
    "\"date\":\"" date "\",\"device\":{\"name\":\"" device "\",\"backend\":\"" api "\"}}\n"
#define A HEAD("A", "vulkan", "2026-01-01T00:00:00Z")
#define B HEAD("B", "vulkan", "2026-01-02T00:00:00Z")
#define PREDICTED                                                                                  \
    "{\"schema\":\"gpurt.bench/"                                                                   \
    "1\",\"nature\":\"predicted\",\"device\":{\"name\":\"P\",\"backend\":"                         \
    "\"vulkan\"}}\n"
#define ROW(shape, figure, more)                                                                   \
    "{\"kind\":\"gemm\",\"shape\":\"" shape                                                        \
    "\",\"precision\":\"f32\",\"gflop_per_s\":" figure more "}\n"
#define LAUNCH(us) "{\"kind\":\"launch\",\"test\":\"x\",\"dispatches\":1,\"us\":" us "}\n"

static struct report r;
static struct report_summary summary;
static struct report_changes changes;

static inline int begin(void **state) {
    (void)state;
    report_init(&r);
    changes = (struct report_changes){0};
    return 0;
}

static inline int end(void **state) {
    (void)state;
    free(changes.list);
    report_finish(&r);
    return 0;
}

static inline void add(const char *name, const char *text, bool baseline) {
    char why[REPORT_WHY] = "";
    if (!report_read_text(&r, name, text, strlen(text), baseline, why)) {
        fail_msg("%s: %s", name, why);
    }
}

static inline void settle(double fail_under) {
    report_settle(&r);
    assert_true(report_summarize(&r, &summary));
    assert_true(report_compare(&r, fail_under, &changes));
}

static inline void near_to(double got, double want) {
    if (!(fabs(got - want) <= 1e-9 * fabs(want))) {
        fail_msg("%.12g, wanted %.12g", got, want);
    }
}

static inline void has(const char *text, const char *word) {
    if (!strstr(text, word)) {
        fail_msg("no '%s' in: %s", word, text);
    }
}

static inline size_t count_of(const char *text, const char *word) {
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word)) {
        count++;
    }
    return count;
}

// What a form is, freed by the caller.
static inline char *form(void (*write)(FILE *, const struct report_view *), double fail_under) {
    const struct report_view view = {.report = &r,
                                     .summary = &summary,
                                     .changes = changes.count ? &changes : NULL,
                                     .fail_under = fail_under,
                                     .title = "A|B"};
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    write(file, &view);
    assert_int_equal(fclose(file), 0);
    return text;
}

static inline char *chart(const char *id, size_t *panels) {
    const struct report_chart *c = report_charts;
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    while (strcmp(c->id, id) != 0) {
        assert_true(++c < report_charts + report_chart_count);
    }
    *panels = report_chart_write(file, &r, c);
    assert_int_equal(fclose(file), 0);
    char *whole = strdup(text);  // GCC 12 takes the text itself for one of this function
    assert_non_null(whole);
    free(text);
    return whole;
}

#endif
