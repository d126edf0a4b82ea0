// SPDX-License-Identifier: Apache-2.0
// Two locks. `mutex` guards what the work leaves here and is held for copies only; `reading` is
// held while sensors are read, by the thread or by who asks for means. The state is static: a
// process has one.
#include "publish.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "metrics.h"
#include "sensors/sensors.h"

#define END_SECONDS 10      // that a sensor has to answer in, at the end
#define PATIENCE_SECONDS 1  // that training waits for a sensor
#define FRESH_SECONDS 0.02  // a sample so new is not taken again

struct sums {
    double begun;
    uint32_t samples;
    double utilisation, power, clock;  // sums, and how many were known
    uint32_t utilisations, powers, clocks;
    double temperature, memory_used;
    double joules;  // NaN: unknown
};

static struct publisher {
    bool running, done, stop;
    pthread_t thread;
    pthread_mutex_t mutex, reading;
    pthread_cond_t wake, ended;
    struct state self;   // app and device, which do not change
    struct state state;  // the newest
    bool changed;
    struct state_file file;
    char metrics[4096];
    bool metrics_failed;
    struct sensors *sensors;  // NULL: nothing is sampled
    struct sensor_sample sample;
    int device;  // in the sample; -1: not there
    struct sums since, whole;
} publisher = {.mutex = PTHREAD_MUTEX_INITIALIZER, .reading = PTHREAD_MUTEX_INITIALIZER};

static double now_1970(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// ---- sums ----

static void begin_sums(struct sums *sums) {
    *sums = (struct sums){
        .begun = grt_seconds(), .temperature = NAN, .memory_used = NAN, .joules = NAN};
}

static void add_mean(double value, double *sum, uint32_t *count) {
    if (!isnan(value)) {
        *sum += value;
        (*count)++;
    }
}

static void add_highest(double value, double *highest) {
    if (!isnan(value) && !(*highest >= value)) {
        *highest = value;
    }
}

static void add_sample(struct sums *sums, const double *values, double joules) {
    sums->samples++;
    add_mean(values[SENSOR_UTILISATION], &sums->utilisation, &sums->utilisations);
    add_mean(values[SENSOR_POWER], &sums->power, &sums->powers);
    add_mean(values[SENSOR_CLOCK], &sums->clock, &sums->clocks);
    add_highest(values[SENSOR_TEMPERATURE], &sums->temperature);
    add_highest(values[SENSOR_MEMORY_USED], &sums->memory_used);
    if (!isnan(joules)) {
        sums->joules = (isnan(sums->joules) ? 0 : sums->joules) + joules;
    }
}

// One sample, with `reading` held.
static void take_sample(struct publisher *w) {
    struct sensor_sample before = w->sample;
    int device_before = w->device;
    sensors_read(w->sensors, &w->sample);
    w->device = state_device(&w->self, &w->sample);
    if (w->device < 0) {
        return;
    }
    const double *values = w->sample.devices[w->device].values;
    double joules = NAN, elapsed = w->sample.seconds - before.seconds;
    if (device_before >= 0 && before.count > 0) {
        double counted =
            values[SENSOR_ENERGY] - before.devices[device_before].values[SENSOR_ENERGY];
        joules = counted >= 0 ? counted : values[SENSOR_POWER] * elapsed;
    }
    add_sample(&w->since, values, joules);
    add_sample(&w->whole, values, joules);
}

static void give_means(const struct publisher *w, const struct sums *sums,
                       struct publish_means *means) {
    bool known = w->device >= 0;
    *means = (struct publish_means){
        .seconds = grt_seconds() - sums->begun,
        .samples = sums->samples,
        .utilisation = sums->utilisations ? sums->utilisation / sums->utilisations : NAN,
        .power = sums->powers ? sums->power / sums->powers : NAN,
        .clock = sums->clocks ? sums->clock / sums->clocks : NAN,
        .temperature = sums->temperature,
        .memory_used = sums->memory_used,
        .memory_total = known ? w->sample.devices[w->device].values[SENSOR_MEMORY_TOTAL] : NAN,
        .energy = sums->joules,
        .reader = known ? w->sample.devices[w->device].reader : "",
    };
}

// ---- the thread ----

static void work(struct publisher *w, bool last) {
    pthread_mutex_lock(&w->mutex);
    struct state state = w->state;
    bool changed = w->changed;
    w->changed = false;
    pthread_mutex_unlock(&w->mutex);
    if (changed && !last) {
        state_publish(&w->file, &state);
    }
    pthread_mutex_lock(&w->reading);
    if (w->sensors) {
        take_sample(w);
    }
    struct sensor_sample sample = w->sample;
    pthread_mutex_unlock(&w->reading);
    if (w->metrics[0] && !w->metrics_failed) {
        // Said once: a file that cannot be written is not tried again.
        w->metrics_failed = !metrics_write(w->metrics, &state, &sample, !last);
    }
}

static void in_seconds(double seconds, struct timespec *time) {
    clock_gettime(CLOCK_MONOTONIC, time);
    long nanoseconds = time->tv_nsec + (long)((seconds - (double)(long)seconds) * 1e9);
    time->tv_sec += (time_t)seconds + nanoseconds / 1000000000;
    time->tv_nsec = nanoseconds % 1000000000;
}

static void *publish_main(void *context) {
    struct publisher *w = context;
    bool stop = false;
    while (!stop) {
        struct timespec until;
        work(w, false);
        in_seconds(PUBLISH_SECONDS, &until);
        pthread_mutex_lock(&w->mutex);
        while (!w->stop && pthread_cond_timedwait(&w->wake, &w->mutex, &until) == 0) {
        }
        stop = w->stop;
        pthread_mutex_unlock(&w->mutex);
    }
    work(w, true);
    pthread_mutex_lock(&w->mutex);
    w->done = true;
    pthread_cond_signal(&w->ended);
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

static bool start_thread(struct publisher *w) {
    pthread_condattr_t monotonic;
    sigset_t all, before;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &monotonic);
    pthread_cond_init(&w->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    // Signals are for the thread that works.
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool good = pthread_create(&w->thread, NULL, publish_main, w) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return good;
}

// ---- calls ----

void publish_begin(const struct publish_desc *desc) {
    struct publisher *w = &publisher;
    if (w->running) {
        return;
    }
    const struct grt_dev_info *info = desc->device;
    state_init(&w->self);
    snprintf(w->self.app, STATE_TEXT, "%s", desc->app ? desc->app : "");
    snprintf(w->self.device, STATE_TEXT, "%s", info->selector);
    snprintf(w->self.name, STATE_TEXT, "%.95s", info->name);
    snprintf(w->self.pci, STATE_TEXT, "%s", info->pci);
    w->self.software = info->caps.software;
    w->self.updated = now_1970();
    w->state = w->self;
    w->changed = true;
    w->done = w->stop = false;
    w->file = STATE_FILE;
    w->device = -1;
    w->metrics_failed = false;
    snprintf(w->metrics, sizeof w->metrics, "%s", desc->metrics ? desc->metrics : "");
    w->sensors = desc->sample || desc->metrics ? sensors_open(NULL) : NULL;
    begin_sums(&w->since);
    begin_sums(&w->whole);
    w->running = start_thread(w);
    if (!w->running) {
        sensors_close(&w->sensors);
    }
}

void publish_tell(const struct state *state) {
    struct publisher *w = &publisher;
    if (!w->running) {
        return;
    }
    pthread_mutex_lock(&w->mutex);
    w->state = *state;
    memcpy(w->state.app, w->self.app, STATE_TEXT);
    memcpy(w->state.device, w->self.device, STATE_TEXT);
    memcpy(w->state.name, w->self.name, STATE_TEXT);
    memcpy(w->state.pci, w->self.pci, STATE_TEXT);
    w->state.software = w->self.software;
    w->state.updated = now_1970();
    w->changed = true;
    pthread_mutex_unlock(&w->mutex);
}

// Whoever trains does not wait for a sensor that does not answer.
static bool take_turn(struct publisher *w) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_SECONDS;
    return pthread_mutex_timedlock(&w->reading, &until) == 0;
}

static bool means_of(struct sums *sums, bool anew, struct publish_means *means) {
    struct publisher *w = &publisher;
    if (!w->running || !w->sensors) {
        return false;
    }
    if (!take_turn(w)) {
        return false;
    }
    if (grt_seconds() - w->sample.seconds > FRESH_SECONDS) {
        take_sample(w);
    }
    give_means(w, sums, means);
    if (anew) {
        begin_sums(sums);
    }
    pthread_mutex_unlock(&w->reading);
    return true;
}

void publish_restart(void) {
    struct publish_means before;
    if (publish_take(&before) && take_turn(&publisher)) {
        begin_sums(&publisher.whole);
        pthread_mutex_unlock(&publisher.reading);
    }
}

bool publish_take(struct publish_means *means) {
    return means_of(&publisher.since, true, means);
}

bool publish_whole(struct publish_means *means) {
    return means_of(&publisher.whole, false, means);
}

void publish_end(void) {
    struct publisher *w = &publisher;
    struct timespec until;
    if (!w->running) {
        return;
    }
    in_seconds(END_SECONDS, &until);
    pthread_mutex_lock(&w->mutex);
    w->stop = true;
    pthread_cond_signal(&w->wake);
    while (!w->done && pthread_cond_timedwait(&w->ended, &w->mutex, &until) == 0) {
    }
    bool done = w->done;
    pthread_mutex_unlock(&w->mutex);
    state_withdraw(&w->file);
    if (done) {
        pthread_join(w->thread, NULL);
        sensors_close(&w->sensors);
        w->running = false;
    }
}
