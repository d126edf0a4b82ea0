// SPDX-License-Identifier: Apache-2.0
// The table of readers, and what follows from two readings of one device.
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "reader.h"

enum {
#define X(name) READER_##name,
    SENSOR_READERS(X)
#undef X
        READER_COUNT,
};
static const struct sensor_reader *const readers[READER_COUNT] = {
#define X(name) &sensor_##name,
    SENSOR_READERS(X)
#undef X
};

struct sensors {
    void *selves[READER_COUNT];
    struct sensor_sample last;
};

const char *sensor_key(enum sensor_quantity quantity) {
    static const char *const keys[] = {
#define X(name, key, unit, text) key,
        SENSOR_QUANTITIES(X)
#undef X
    };
    return keys[quantity];
}

struct sensor_device *sensor_add(struct sensor_sample *sample, const char *reader) {
    if (sample->count == SENSOR_DEVICES) {
        return NULL;
    }
    struct sensor_device *device = &sample->devices[sample->count++];
    *device = (struct sensor_device){.reader = reader};
    for (size_t i = 0; i < SENSOR_COUNT; i++) {
        device->values[i] = NAN;
    }
    return device;
}

bool sensor_has(const struct sensor_sample *sample, const char *pci) {
    for (size_t i = 0; i < sample->count; i++) {
        if (*pci && strcmp(sample->devices[i].pci, pci) == 0) {
            return true;
        }
    }
    return false;
}

void sensor_pci(const char *text, char pci[16]) {
    const char *colon = strchr(text, ':');
    size_t domain = colon ? (size_t)(colon - text) : 0;
    size_t i = 0;
    text += domain > 4 ? domain - 4 : 0;
    for (; i < 15 && text[i]; i++) {
        pci[i] = (char)tolower((unsigned char)text[i]);
    }
    pci[i] = '\0';
}

struct sensors *sensors_open(const struct sensors_desc *desc) {
    struct sensors *sensors = calloc(1, sizeof *sensors);
    struct sensors_desc whole = desc ? *desc : (struct sensors_desc){0};
    whole.root = whole.root ? whole.root : "";
    for (size_t i = 0; sensors && i < READER_COUNT; i++) {
        sensors->selves[i] = readers[i]->open(&whole);
    }
    return sensors;
}

// Devices keep their order from one sample to the next; where one went, it is unknown once.
static void derive(struct sensor_device *now, const struct sensor_device *before, double seconds) {
    bool same = strcmp(now->name, before->name) == 0 && strcmp(now->pci, before->pci) == 0;
    double energy = now->values[SENSOR_ENERGY] - before->values[SENSOR_ENERGY];
    if (same && isnan(now->values[SENSOR_POWER]) && seconds > 0 && energy >= 0) {
        now->values[SENSOR_POWER] = energy / seconds;
    }
}

void sensors_read(struct sensors *sensors, struct sensor_sample *sample) {
    *sample = (struct sensor_sample){.seconds = grt_seconds()};
    for (size_t i = 0; i < READER_COUNT; i++) {
        if (sensors->selves[i]) {
            readers[i]->read(sensors->selves[i], sample);
        }
    }
    for (size_t i = 0; i < sample->count && i < sensors->last.count; i++) {
        derive(&sample->devices[i], &sensors->last.devices[i],
               sample->seconds - sensors->last.seconds);
    }
    sensors->last = *sample;
}

void sensors_close(struct sensors **sensors) {
    if (!*sensors) {
        return;
    }
    for (size_t i = 0; i < READER_COUNT; i++) {
        if ((*sensors)->selves[i]) {
            readers[i]->close((*sensors)->selves[i]);
        }
    }
    free(*sensors);
    *sensors = NULL;
}
