// SPDX-License-Identifier: Apache-2.0
// Chrome's trace format: an object with an array of events, each an object. Perfetto, Chrome's
// about:tracing and speedscope open it.
//
//     process 1 "host"       a thread for each of the program's that said something
//     process 2 "device"     compute queue, upload queue, phases; counter "device memory"
//
// Times are microseconds with three digits, since the beginning, on the host's clock. An event that
// would overlap another of its track goes to a second track, "NAME, overlapping": viewers nest
// what overlaps.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "file.h"

#define HOST 1
#define DEVICE 2
#define SIDES 8  // tracks of one kind at most; what still overlaps is cut

// An event in nanoseconds since the beginning, so that ends and begins compare exactly.
struct place {
    int64_t begin, end;
    uint32_t name;
    uint16_t track, side;
};

static int64_t nanoseconds(const struct grt_timeline *t, double at, bool by_device) {
    double seconds = grt_timeline_at(t, at, by_device) - t->begin;
    return llround(1e9 * (seconds > 0.0 ? seconds : 0.0));
}

static int in_order(const void *a, const void *b) {
    const struct place *x = a, *y = b;
    if (x->track != y->track) {
        return x->track < y->track ? -1 : 1;
    }
    if (x->begin != y->begin) {
        return x->begin < y->begin ? -1 : 1;
    }
    return x->end < y->end ? -1 : x->end > y->end;
}

// Puts each event of a track on the first side that is free when it begins.
static void choose_sides(struct place *places, uint64_t count) {
    int64_t free_from[SIDES] = {0};
    for (uint64_t i = 0; i < count; i++) {
        if (i == 0 || places[i].track != places[i - 1].track) {
            memset(free_from, 0, sizeof free_from);
        }
        uint16_t side = 0;
        while (side < SIDES - 1 && free_from[side] > places[i].begin) {
            side++;
        }
        if (places[i].begin < free_from[side]) {
            places[i].begin = free_from[side];
            places[i].end = places[i].end < places[i].begin ? places[i].begin : places[i].end;
        }
        places[i].side = side;
        free_from[side] = places[i].end;
    }
}

static uint32_t process_of(uint16_t track) {
    return track < GRT_TRACK_THREADS ? DEVICE : HOST;
}

static uint32_t thread_of(const struct place *place) {
    return (uint32_t)place->track * SIDES + place->side + 1;
}

static void put_name(struct timeline_file *file, const char *what, uint32_t process,
                     uint32_t thread, const char *name) {
    timeline_put(
        file,
        "{\"name\": \"%s\", \"ph\": \"M\", \"pid\": %u, \"tid\": %u, \"args\": {\"name\": ", what,
        process, thread);
    timeline_put_text(file, name);
    timeline_put(file, "}},\n");
}

static void put_names(struct timeline_file *file, const struct grt_timeline *t,
                      const struct place *places, uint64_t count) {
    static const char *const texts[] = {"compute queue", "upload queue", "phases"};
    bool named[(GRT_TRACK_THREADS + GRT_MOST_TRACKS) * SIDES] = {false};
    put_name(file, "process_name", HOST, 0, "host");
    put_name(file, "process_name", DEVICE, 0, t->device);
    for (uint64_t i = 0; i < count; i++) {
        uint16_t track = places[i].track;
        bool *done = &named[track * SIDES + places[i].side];
        if (!*done) {
            char name[64];
            snprintf(name, sizeof name, "%s%s",
                     track < GRT_TRACK_THREADS ? texts[track]
                                               : t->tracks[track - GRT_TRACK_THREADS],
                     places[i].side ? ", overlapping" : "");
            put_name(file, "thread_name", process_of(track), thread_of(&places[i]), name);
            *done = true;
        }
    }
}

static void put_time(struct timeline_file *file, const char *key, int64_t value) {
    timeline_put(file, ", \"%s\": %lld.%03lld", key, (long long)(value / 1000),
                 (long long)(value % 1000));
}

static void put_events(struct timeline_file *file, const struct grt_timeline *t,
                       const struct place *places, uint64_t count) {
    static const char *const categories[] = {"device", "upload", "phase"};
    for (uint64_t i = 0; i < count; i++) {
        const struct place *place = &places[i];
        timeline_put(file, "{\"name\": ");
        timeline_put_text(file, t->names[place->name].text);
        timeline_put(file, ", \"cat\": \"%s\", \"ph\": \"X\", \"pid\": %u, \"tid\": %u",
                     place->track < GRT_TRACK_THREADS ? categories[place->track] : "host",
                     process_of(place->track), thread_of(place));
        put_time(file, "ts", place->begin);
        put_time(file, "dur", place->end - place->begin);
        timeline_put(file, "},\n");
    }
}

static void put_levels(struct timeline_file *file, const struct grt_timeline *t) {
    for (uint64_t i = 0; i < t->level_count; i++) {
        timeline_put(file, "{\"name\": \"device memory\", \"ph\": \"C\", \"pid\": %u, \"tid\": 0",
                     DEVICE);
        put_time(file, "ts", nanoseconds(t, t->levels[i].at, false));
        timeline_put(file, ", \"args\": {\"bytes\": %llu}},\n",
                     (unsigned long long)t->levels[i].bytes);
    }
}

bool grt_timeline_write_trace(const struct grt_timeline *t, const char *path) {
    struct timeline_file *file = timeline_file_open(t, path, "grt_timeline_write_trace");
    if (!file) {
        return false;
    }
    struct place *places = malloc((t->event_count + 1) * sizeof *places);
    if (!places) {
        file->good = grt_fail(GRT_NO_MEMORY, "no host memory to write a trace");
        return timeline_file_close(file);
    }
    for (uint64_t i = 0; i < t->event_count; i++) {
        const struct grt_event *e = &t->events[i];
        places[i] = (struct place){nanoseconds(t, e->begin, e->by_device),
                                   nanoseconds(t, e->end, e->by_device), e->name, e->track, 0};
    }
    qsort(places, t->event_count, sizeof *places, in_order);
    choose_sides(places, t->event_count);
    timeline_put(file,
                 "{\"displayTimeUnit\": \"ms\", \"otherData\": {\"left_out\": %llu, "
                 "\"untimed\": %llu},\n",
                 (unsigned long long)t->totals.left_out,
                 (unsigned long long)(t->totals.dispatches + t->totals.copies - t->totals.timed));
    timeline_put(file, "\"traceEvents\": [\n");
    put_names(file, t, places, t->event_count);
    put_events(file, t, places, t->event_count);
    put_levels(file, t);
    // The end, which also spares the comma.
    timeline_put(file, "{\"name\": \"end\", \"ph\": \"i\", \"s\": \"g\", \"pid\": %u, \"tid\": 0",
                 HOST);
    put_time(file, "ts", llround(1e9 * (t->end - t->begin)));
    timeline_put(file, "}\n]}\n");
    free(places);
    return timeline_file_close(file);
}
