// SPDX-License-Identifier: Apache-2.0
// What a trace says without a device: texts.
#include "harness/harness.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "gpurt/timeline.h"

// Names that are no UTF-8: a byte that begins no character, or one that is cut short, longer than
// needed, half of a pair or beyond the last, becomes a question mark. Beside them the first and the
// last that are right.
static void names_are_characters(void **state) {
    (void)state;
    static const struct {
        const char *given, *told;
    } names[] = {{"a\x80z", "a?z"},
                 {"a\xc1\xbfz", "a??z"},
                 {"a\xc2\x80z", "a\xc2\x80z"},
                 {"a\xdf\xbfz", "a\xdf\xbfz"},
                 {"a\xc3", "a?"},
                 {"a\xe0\x9f\xbfz", "a???z"},
                 {"a\xe0\xa0\x80z", "a\xe0\xa0\x80z"},
                 {"a\xed\x9f\xbfz", "a\xed\x9f\xbfz"},
                 {"a\xed\xa0\x80z", "a???z"},
                 {"a\xef\xbfz", "a??z"},
                 {"a\xf0\x8f\xbf\xbfz", "a????z"},
                 {"a\xf0\x90\x80\x80z", "a\xf0\x90\x80\x80z"},
                 {"a\xf4\x8f\xbf\xbfz", "a\xf4\x8f\xbf\xbfz"},
                 {"a\xf4\x90\x80\x80z", "a????z"},
                 {"a\xf5\x80\x80\x80z", "a????z"},
                 {"\x1f \"\\", "\x1f \"\\"}};
    enum { COUNT = sizeof names / sizeof *names };
    struct grt_timeline *t = grt_timeline_begin(NULL, grt_timeline_desc(.events = true));
    assert_non_null(t);
    double begun = grt_seconds();
    for (size_t i = 0; i < COUNT; i++) {
        grt_timeline_span(names[i].given, begun, begun + 1e-5);
    }
    assert_true(grt_timeline_end(t));
    char path[64];
    snprintf(path, sizeof path, "/tmp/gpurt_test_trace.%ld.json", (long)getpid());
    assert_true(grt_timeline_write_trace(t, path));
    json_t *trace = json_load_file(path, 0, NULL), *event;
    unlink(path);
    size_t i, found = 0;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
        const char *name = json_string_value(json_object_get(event, "name"));
        found += name && found < COUNT && strcmp(name, names[found].told) == 0;
    }
    assert_int_equal(found, COUNT);
    json_decref(trace);
    grt_timeline_destroy(&t);
}

static const struct CMUnitTest cases[] = {TEST_CASE(names_are_characters)};
TEST_SUITE(trace, false, cases);
