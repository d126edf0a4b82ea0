// SPDX-License-Identifier: Apache-2.0
#include "look.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static void push(struct look_past *past, double value) {
    if (past->count == LOOK_PAST) {
        memmove(past->values, past->values + 1, (LOOK_PAST - 1) * sizeof *past->values);
        past->count--;
    }
    past->values[past->count++] = value;
}

double look_mean(const struct look_past *past, size_t most) {
    double sum = 0;
    size_t known = 0;
    for (size_t i = past->count > most ? past->count - most : 0; i < past->count; i++) {
        if (!isnan(past->values[i])) {
            sum += past->values[i];
            known++;
        }
    }
    return known ? sum / (double)known : NAN;
}

double look_filled(const struct sensor_device *device) {
    double total = device->values[SENSOR_MEMORY_TOTAL];
    return total > 0 ? device->values[SENSOR_MEMORY_USED] / total : NAN;
}

struct look *look_open(const struct sensors_desc *desc) {
    struct look *look = calloc(1, sizeof *look);
    if (!look) {
        return NULL;
    }
    look->root = desc && desc->root ? desc->root : "";
    look->sensors = sensors_open(desc);
    if (!look->sensors) {
        free(look);
        return NULL;
    }
    look_again(look);
    return look;
}

static double seconds_before(const struct look_process *before, size_t count, double pid) {
    for (size_t i = 0; i < count; i++) {
        if (before[i].state.pid == pid) {
            return before[i].seconds;
        }
    }
    return NAN;
}

static void look_at_processes(struct look *look, double elapsed) {
    struct look_process before[STATE_MOST];
    struct state states[STATE_MOST];
    size_t before_count = look->process_count;
    memcpy(before, look->processes, sizeof before);
    look->process_count = state_read_all(states);
    for (size_t i = 0; i < look->process_count; i++) {
        struct look_process *p = &look->processes[i];
        p->state = states[i];
        p->device = state_device(&p->state, &look->sample);
        p->seconds = sensor_process_seconds(look->root, (int64_t)p->state.pid);
        double used = p->seconds - seconds_before(before, before_count, p->state.pid);
        p->cpus = used >= 0 && elapsed > 0 ? used / elapsed : NAN;
    }
}

void look_again(struct look *look) {
    double before = look->sample.seconds;
    sensors_read(look->sensors, &look->sample);
    for (size_t i = 0; i < look->sample.count; i++) {
        const struct sensor_device *device = &look->sample.devices[i];
        push(&look->busy[i], device->values[SENSOR_UTILISATION]);
        push(&look->filled[i], look_filled(device));
    }
    look_at_processes(look, before > 0 ? look->sample.seconds - before : 0);
}

void look_close(struct look **look) {
    if (*look) {
        sensors_close(&(*look)->sensors);
    }
    free(*look);
    *look = NULL;
}

// ---- aims ----

// What makes the work of a step larger: environments where there are such.
static const char *larger_word(const char *app) {
    static const char *const worlds[] = {" es", " standing", " ppo", " uav", " rollout"};
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        if (strstr(app, worlds[i])) {
            return "num_envs";
        }
    }
    return "batch_size";
}

size_t look_warnings(const struct look *look, size_t device,
                     char warnings[LOOK_WARNINGS][LOOK_WARNING]) {
    const struct state *state = NULL;
    size_t count = 0;
    for (size_t i = 0; i < look->process_count; i++) {
        if (look->processes[i].device == (int)device) {
            state = &look->processes[i].state;
        }
    }
    // Before its first step a process compiles and reads; a CPU is not the GPU that was meant.
    if (!state || !(state->step > 0) || state->software == 1) {
        return 0;
    }
    const char *larger = larger_word(state->app);
    bool batches = strcmp(larger, "batch_size") == 0;
    double busy = look_mean(&look->busy[device], LOOK_AIM_SAMPLES);
    double filled = look_mean(&look->filled[device], LOOK_AIM_SAMPLES);
    if (busy < LOOK_BUSY_LEAST) {
        snprintf(warnings[count++], LOOK_WARNING,
                 "busy %.0f %% of the time; aim: above 70 %%, best above 90 %%. Remedy: a larger "
                 "%s%s",
                 100 * busy, larger,
                 batches ? ", and more num_workers or cache: ram if it waits for data" : "");
    }
    if (filled < LOOK_FILLED_LEAST) {
        snprintf(warnings[count++], LOOK_WARNING,
                 "memory filled by %.0f %%; aim: 60 to 80 %%. Remedy: a larger %s", 100 * filled,
                 larger);
    } else if (filled > LOOK_FILLED_MOST) {
        snprintf(warnings[count++], LOOK_WARNING,
                 "memory filled by %.0f %%; aim: 60 to 80 %%. It may run out. Remedy: a smaller "
                 "%s%s",
                 100 * filled, larger, batches ? " with a larger accumulate" : "");
    }
    return count;
}
