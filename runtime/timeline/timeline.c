// SPDX-License-Identifier: Apache-2.0
#include "timeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

_Atomic(struct grt_timeline *) grt_timeline_going;

// Of all timelines: a thread that waits for it may find that its timeline has gone meanwhile.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct grt_timeline *grt_timeline_enter(void) {
    if (!grt_timeline_on()) {
        return NULL;
    }
    pthread_mutex_lock(&lock);
    struct grt_timeline *t = grt_timeline_on();
    if (!t) {
        pthread_mutex_unlock(&lock);
    }
    return t;
}

void grt_timeline_leave(void) {
    pthread_mutex_unlock(&lock);
}

// Which track is this thread's, in which timeline: a later one numbers them anew.
static _Thread_local struct {
    uint64_t of;
    uint16_t track;
    double staged;  // seconds told of stages
} mine;

const char *grt_stage_text(enum grt_stage stage) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_STAGES(X)
#undef X
    };
    return (unsigned)stage < GRT_STAGE_COUNT ? texts[stage] : "unknown";
}

bool grt_timeline_grow(struct grt_timeline *t, void **array, uint64_t count, uint64_t *room,
                       uint64_t size) {
    if (count < *room) {
        return true;
    }
    uint64_t wanted = *room ? 2 * *room : 64;
    void *larger = wanted <= SIZE_MAX / size ? realloc(*array, wanted * size) : NULL;
    if (!larger) {
        t->short_of_memory = true;
        return false;
    }
    *array = larger;
    *room = wanted;
    return true;
}

// ---- names ----

static uint32_t hash_of(const char *text) {
    uint32_t hash = 2166136261u;
    for (; *text; text++) {
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    }
    return hash;
}

static bool grow_index(struct grt_timeline *t) {
    uint32_t size = t->index_size ? 2 * t->index_size : 256;
    uint32_t *index = calloc(size, sizeof *index);
    if (!index) {
        t->short_of_memory = true;
        return false;
    }
    for (uint32_t i = 0; i < t->name_count; i++) {
        uint32_t at = t->names[i].hash & (size - 1);
        while (index[at]) {
            at = (at + 1) & (size - 1);
        }
        index[at] = i + 1;
    }
    free(t->index);
    t->index = index;
    t->index_size = size;
    return true;
}

// Name 0 is "unnamed", which also stands for those that memory was short for.
uint32_t grt_timeline_number(struct grt_timeline *t, const char *text) {
    text = text && text[0] ? text : "unnamed";
    uint32_t hash = hash_of(text);
    if (2 * t->name_count >= t->index_size && !grow_index(t)) {
        return 0;
    }
    uint32_t at = hash & (t->index_size - 1);
    for (; t->index[at]; at = (at + 1) & (t->index_size - 1)) {
        if (strcmp(t->names[t->index[at] - 1].text, text) == 0) {
            return t->index[at] - 1;
        }
    }
    uint64_t room = t->name_room;
    void *names = t->names;
    char *copy = strdup(text);
    if (!copy || !grt_timeline_grow(t, &names, t->name_count, &room, sizeof *t->names)) {
        free(copy);
        t->short_of_memory = true;
        return 0;
    }
    t->names = names;
    t->name_room = (uint32_t)room;
    t->names[t->name_count] = (struct grt_name){.text = copy, .hash = hash};
    t->index[at] = ++t->name_count;
    return t->name_count - 1;
}

uint32_t grt_timeline_name(struct grt_timeline *t, const char *name) {
    pthread_mutex_lock(&lock);
    uint32_t number = grt_timeline_number(t, name);
    pthread_mutex_unlock(&lock);
    return number;
}

// ---- begin and end ----

struct grt_timeline *grt_timeline_start(struct grt_dev *dev, const struct grt_timeline_desc *desc) {
    struct grt_timeline *t = calloc(1, sizeof *t);
    if (!t) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a timeline");
        return NULL;
    }
    t->dev = dev;
    t->desc = desc ? *desc : (struct grt_timeline_desc){0};
    t->desc.most_events = t->desc.most_events ? t->desc.most_events : GRT_TIMELINE_EVENTS;
    grt_timeline_number(t, "unnamed");
    if (t->name_count == 0) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a timeline");
        t->ended = true;
        grt_timeline_destroy(&t);
        return NULL;
    }
    static _Atomic uint64_t ids;
    t->id = 1 + atomic_fetch_add(&ids, 1);
    t->begin = t->zero = grt_seconds();
    struct grt_timeline *none = NULL;
    if (!atomic_compare_exchange_strong(&grt_timeline_going, &none, t)) {
        grt_fail(GRT_INVALID, "a timeline is going already; there is one at a time");
        t->ended = true;
        grt_timeline_destroy(&t);
    }
    return t;
}

static bool comes_before(const struct grt_name *x, const struct grt_name *y) {
    return x->seconds != y->seconds ? x->seconds > y->seconds : strcmp(x->text, y->text) < 0;
}

// There are as many rows as kernels: each is put in its place among those before.
static void order_rows(struct grt_timeline *t) {
    t->order = calloc(t->name_count + 1, sizeof *t->order);
    if (!t->order) {
        t->short_of_memory = true;
        return;
    }
    for (uint32_t i = 0; i < t->name_count; i++) {
        if (t->names[i].calls == 0) {
            continue;
        }
        uint32_t at = t->row_count++;
        for (; at > 0 && comes_before(&t->names[i], &t->names[t->order[at - 1]]); at--) {
            t->order[at] = t->order[at - 1];
        }
        t->order[at] = i;
    }
}

void grt_timeline_zero(struct grt_timeline *t) {
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < t->name_count; i++) {
        t->names[i] = (struct grt_name){.text = t->names[i].text, .hash = t->names[i].hash};
    }
    t->totals =
        (struct grt_timeline_totals){.left_out = t->totals.left_out, .stamp = t->totals.stamp};
    t->untimed = 0.0;
    t->computes = false;
    t->zero = grt_seconds();
    pthread_mutex_unlock(&lock);
}

// Commands that are timed do not run side by side, which takes longer. Where they stand for others,
// the compute queue is busy for the whole time at most.
static void fit_to_wall(struct grt_timeline *t) {
    double compute = 0.0;
    for (uint32_t i = 0; i < t->name_count; i++) {
        compute += t->names[i].seconds - t->names[i].uploads;
    }
    double scale = t->untimed > 0.0 && compute > t->totals.wall ? t->totals.wall / compute : 1.0;
    for (uint32_t i = 0; i < t->name_count; i++) {
        struct grt_name *name = &t->names[i];
        name->seconds = name->uploads + scale * (name->seconds - name->uploads);
    }
}

// What the timed calls say of all.
static void sum_up(struct grt_timeline *t) {
    for (uint32_t i = 0; i < t->name_count; i++) {
        struct grt_name *name = &t->names[i];
        double scale = name->stand_for > 0.0 ? (double)name->calls / name->stand_for : 1.0;
        name->seconds *= scale;
        name->operations *= scale;
        name->bytes *= scale;
        name->samples *= scale;
        name->uploads *= scale;
    }
    fit_to_wall(t);
    for (uint32_t i = 0; i < t->name_count; i++) {
        const struct grt_name *name = &t->names[i];
        t->totals.upload += name->uploads;
        t->totals.compute += name->seconds - name->uploads;
        t->totals.stages[GRT_STAGE_TRANSFORM] += name->samples > 0.0 ? name->seconds : 0.0;
    }
    if (t->untimed > 0.0) {
        double last = grt_timeline_at(t, t->last, t->last_by_device);
        t->totals.active += t->untimed > last ? t->untimed - last : 0.0;
        t->totals.active =
            t->totals.active > t->totals.compute ? t->totals.active : t->totals.compute;
    }
}

void grt_timeline_stop(struct grt_timeline *t) {
    struct grt_timeline *this_one = t;
    pthread_mutex_lock(&lock);
    atomic_compare_exchange_strong(&grt_timeline_going, &this_one, NULL);
    t->end = grt_seconds();
    t->ended = true;
    t->totals.wall = t->end - t->zero;
    t->totals.events = t->event_count;
    sum_up(t);
    order_rows(t);
    pthread_mutex_unlock(&lock);
    if (t->short_of_memory) {
        grt_log(GRT_LOG_WARN, "host memory was short: the timeline is not complete");
    }
}

void grt_timeline_destroy(struct grt_timeline **timeline) {
    if (!timeline || !*timeline) {
        return;
    }
    struct grt_timeline *t = *timeline;
    *timeline = NULL;
    if (!t->ended) {
        grt_timeline_stop(t);
    }
    for (uint32_t i = 0; i < t->name_count; i++) {
        free(t->names[i].text);
    }
    free(t->names);
    free(t->index);
    free(t->events);
    free(t->levels);
    free(t->allocations);
    free(t->parts);
    free(t->order);
    free(t);
}

struct grt_timeline_totals grt_timeline_totals(const struct grt_timeline *t) {
    return t ? t->totals : (struct grt_timeline_totals){0};
}

double grt_timeline_at(const struct grt_timeline *t, double at, bool by_device) {
    if (!by_device) {
        return at;
    }
    double span = t->device_clock[1] - t->device_clock[0];
    double rate = span > 0.0 ? (t->host_clock[1] - t->host_clock[0]) / span : 1.0;
    return t->host_clock[0] + (at - t->device_clock[0]) * rate;
}

// ---- what is told ----

// With the lock held.
static void keep(struct grt_timeline *t, const struct grt_event *event) {
    if (!t->desc.events) {
        return;
    }
    void *events = t->events;
    if (t->event_count >= t->desc.most_events ||
        !grt_timeline_grow(t, &events, t->event_count, &t->event_room, sizeof *event)) {
        t->totals.left_out++;
        return;
    }
    t->events = events;
    t->events[t->event_count++] = *event;
}

void grt_timeline_commands(struct grt_timeline *t, const struct grt_command_time *commands,
                           uint32_t count) {
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < count; i++) {
        const struct grt_command_time *c = &commands[i];
        struct grt_name *name = &t->names[c->name];
        bool timed = !isnan(c->begin);
        double seconds =
            c->stands > 0.0 ? c->stands * (timed ? c->end - c->begin : c->seconds) : 0.0;
        name->is_kernel = c->is_kernel;
        name->calls += c->calls;
        *(c->is_kernel ? &t->totals.dispatches : &t->totals.copies) += c->calls;
        name->stand_for += c->stands;
        name->seconds += seconds;
        name->uploads += c->track == GRT_TRACK_UPLOAD ? seconds : 0.0;
        name->operations += c->stands * c->operations;
        name->samples += c->stands * (double)c->samples;
        name->bytes += c->stands * (double)c->bytes;
        if (!timed) {
            continue;
        }
        name->timed++;
        t->totals.timed++;
        name->told += c->operations > 0.0;
        if (c->track == GRT_TRACK_COMPUTE) {
            t->first = t->computes && t->first < c->begin ? t->first : c->begin;
            if (!t->computes || c->end > t->last) {
                t->last = c->end;
                t->last_by_device = c->by_device;
            }
            t->computes = true;
            t->totals.active = t->last - t->first;
        }
        keep(t, &(struct grt_event){c->begin, c->end, c->name, (uint16_t)c->track, c->by_device});
    }
    pthread_mutex_unlock(&lock);
}

void grt_timeline_untimed(struct grt_timeline *t) {
    pthread_mutex_lock(&lock);
    t->untimed = grt_seconds();
    pthread_mutex_unlock(&lock);
}

void grt_timeline_phase(struct grt_timeline *t, uint32_t name, double begin, double end,
                        bool by_device) {
    pthread_mutex_lock(&lock);
    keep(t, &(struct grt_event){begin, end, name, GRT_TRACK_PHASES, by_device});
    pthread_mutex_unlock(&lock);
}

// With the lock held.
static uint16_t my_track(struct grt_timeline *t, const char *name) {
    if (mine.of == t->id && !name) {
        return mine.track;
    }
    if (mine.of != t->id) {
        if (t->track_count == GRT_MOST_TRACKS) {
            return GRT_TRACK_THREADS + GRT_MOST_TRACKS - 1;
        }
        mine.of = t->id;
        mine.track = (uint16_t)(GRT_TRACK_THREADS + t->track_count++);
    }
    snprintf(t->tracks[mine.track - GRT_TRACK_THREADS], sizeof t->tracks[0], "%s",
             name ? name : "host");
    return mine.track;
}

void grt_timeline_thread(const char *name) {
    struct grt_timeline *t = grt_timeline_enter();
    if (t) {
        my_track(t, name);
        grt_timeline_leave();
    }
}

// With the lock held.
static void add_host(struct grt_timeline *t, enum grt_host_work work, const char *name,
                     double begin, double end) {
    t->totals.submits += work == GRT_HOST_SUBMIT;
    t->totals.submitting += work == GRT_HOST_SUBMIT ? end - begin : 0.0;
    t->totals.waiting += work == GRT_HOST_WAIT ? end - begin : 0.0;
    if (t->desc.events) {
        uint32_t number = grt_timeline_number(t, name);
        keep(t, &(struct grt_event){begin, end, number, my_track(t, NULL), false});
    }
}

void grt_timeline_host(struct grt_timeline *t, enum grt_host_work work, const char *name,
                       double begin, double end) {
    pthread_mutex_lock(&lock);
    if (!t->ended) {
        add_host(t, work, name, begin, end);
    }
    pthread_mutex_unlock(&lock);
}

void grt_timeline_span(const char *name, double begin, double end) {
    struct grt_timeline *t = end >= begin ? grt_timeline_enter() : NULL;
    if (t) {
        add_host(t, GRT_HOST_OTHER, name, begin, end);
        grt_timeline_leave();
    }
}

double grt_timeline_clock(void) {
    return grt_timeline_on() ? grt_seconds() : 0.0;
}

double grt_timeline_staged(void) {
    return mine.staged;
}

static void add_stage(enum grt_stage stage, double seconds) {
    struct grt_timeline *t = seconds > 0.0 ? grt_timeline_enter() : NULL;
    if (t) {
        t->totals.stages[stage] += seconds;
        grt_timeline_leave();
    }
}

void grt_timeline_stage(enum grt_stage stage, double begun) {
    if (begun > 0.0) {
        double seconds = grt_seconds() - begun;
        mine.staged += stage == GRT_STAGE_WAIT ? 0.0 : seconds;
        add_stage(stage, seconds);
    }
}

void grt_timeline_batch(double begun, double staged) {
    if (begun > 0.0) {
        double now = grt_seconds();
        grt_timeline_span("make a batch", begun, now);
        add_stage(GRT_STAGE_CONVERT, now - begun - (mine.staged - staged));
    }
}
