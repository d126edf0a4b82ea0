// SPDX-License-Identifier: Apache-2.0
#include "timeline_kit.h"

#include <string.h>
#include <unistd.h>

bool kit_row(const struct grt_timeline *t, const char *name, struct grt_timeline_kernel *row) {
    for (uint32_t i = 0; grt_timeline_kernel(t, i, row); i++) {
        if (strcmp(row->name, name) == 0) {
            return true;
        }
    }
    *row = (struct grt_timeline_kernel){0};
    return false;
}

void kit_record(struct grt_graph *graph, bool phases) {
    if (phases) {
        grt_graph_phase(graph, "up");
    }
    grt_graph_copy(graph, kit_whole(kit.a), kit_whole(kit.up));
    if (phases) {
        grt_graph_phase(graph, "work");
    }
    for (uint32_t i = 0; i < KIT_COPIES; i++) {
        struct grt_range y =
            kit_part(kit.b, i * (uint64_t)kit.step * 4 % KIT_BYTES, KIT_COPIED * 4);
        kit_copy(graph, y, kit_part(kit.a, 0, KIT_COPIED * 4), KIT_COPIED);
    }
    grt_graph_fill(graph, kit_part(kit.a, KIT_BYTES - 64, 64), 5);
    grt_graph_copy(graph, kit_whole(kit.down), kit_whole(kit.b));
    assert_true(grt_graph_bake(graph));
}

void kit_run_all(struct grt_graph *graph, uint32_t runs) {
    for (uint32_t i = 0; i < runs; i++) {
        assert_true(grt_graph_run(graph));
    }
}

struct grt_timeline *kit_timeline(const struct grt_timeline_desc *desc) {
    struct grt_timeline *t = grt_timeline_begin(test.dev, desc);
    assert_non_null(t);
    return t;
}

void kit_calls(const struct grt_timeline *t, const char *name, uint64_t calls) {
    struct grt_timeline_kernel row;
    assert_int_equal(kit_row(t, name, &row), calls > 0);
    assert_int_equal(row.calls, calls);
    assert_int_equal(row.timed, calls);
    assert_true(row.seconds >= 0.0);
}

static char path[64];

json_t *kit_read_trace(bool (*write)(const struct grt_timeline *, const char *),
                       const struct grt_timeline *t) {
    snprintf(path, sizeof path, "/tmp/gpurt-timeline-%ld.json", (long)getpid());
    assert_true(write(t, path));
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    if (!json) {
        print_error("%s:%d: %s\n", path, error.line, error.text);
    }
    assert_non_null(json);
    unlink(path);
    return json;
}

double kit_number(const json_t *event, const char *key) {
    const json_t *value = json_object_get(event, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

void kit_see(const json_t *event, struct kit_seen *seen) {
    const char *kind = json_string_value(json_object_get(event, "ph"));
    const char *name = json_string_value(json_object_get(event, "name"));
    const char *category = json_string_value(json_object_get(event, "cat"));
    assert_true(json_is_integer(json_object_get(event, "pid")));
    if (!kind || !name) {
        fail_msg("an event without a kind or a name");
        return;
    }
    double tid = kit_number(event, "tid");
    assert_true(tid >= 0 && tid < KIT_THREADS);
    size_t thread = (size_t)tid;
    if (strcmp(kind, "M") == 0) {
        assert_true(strcmp(name, "process_name") == 0 || strcmp(name, "thread_name") == 0);
        assert_true(json_is_string(json_object_get(json_object_get(event, "args"), "name")));
        seen->named[thread] = seen->named[thread] || strcmp(name, "thread_name") == 0;
        seen->names++;
        return;
    }
    double at = kit_number(event, "ts");
    assert_true(at >= 0.0);
    if (strcmp(kind, "C") == 0) {
        assert_true(kit_number(json_object_get(event, "args"), "bytes") >= 0.0);
        seen->counters++;
    } else if (strcmp(kind, "i") == 0) {
        seen->end_us = at;
    } else {
        double lasts = kit_number(event, "dur");
        assert_string_equal(kind, "X");
        assert_true(seen->named[thread]);
        category = category ? category : "";
        assert_true(category[0] != 0);
        assert_true(lasts >= 0.0);
        assert_true(at >= seen->until[thread] - 1e-6);  // as far as doubles tell microseconds
        seen->until[thread] = at + lasts;
        seen->spans++;
        bool device = strcmp(category, "device") == 0;
        seen->kernels += device && strcmp(name, "copy") == 0;
        seen->uploads += strcmp(name, "(upload)") == 0;
        seen->phases += strcmp(category, "phase") == 0;
        seen->waits += strcmp(category, "host") == 0 && strcmp(name, "wait") == 0;
        seen->kernel_us += device ? lasts : 0.0;
    }
}

void kit_see_all(const json_t *trace, struct kit_seen *seen) {
    const json_t *events = json_object_get(trace, "traceEvents");
    size_t i;
    json_t *event;
    assert_true(json_is_array(events));
    json_array_foreach(events, i, event) {
        kit_see(event, seen);
    }
    assert_true(seen->kernel_us <= seen->end_us);
    for (i = 0; i < KIT_THREADS; i++) {
        assert_true(seen->until[i] <= seen->end_us + 1.0);  // clocks are aligned to less than that
    }
}
