// SPDX-License-Identifier: Apache-2.0
// What a reader of sensors is, and what readers share.
#ifndef APPS_SENSORS_READER_H
#define APPS_SENSORS_READER_H

#include <stdbool.h>

#include "sensors.h"
#include "gpurt/status.h"

struct sensor_reader {
    const char *name;
    // NULL: there is nothing of its kind on this machine, or no memory.
    void *(*open)(const struct sensors_desc *desc);
    void (*read)(void *self, struct sensor_sample *sample);  // adds its devices
    void (*close)(void *self);
};
#define X(name) extern const struct sensor_reader sensor_##name;
SENSOR_READERS(X)
#undef X

// A device with all quantities unknown at the end of the sample; NULL: there is no room.
struct sensor_device *sensor_add(struct sensor_sample *sample, const char *reader);
// Whether a device of this PCI address is in the sample.
bool sensor_has(const struct sensor_sample *sample, const char *pci);
// "0000:65:00.0" of what NVML and the kernel write: a domain of 8 digits, capitals.
void sensor_pci(const char *text, char pci[16]);

// ---- files of the kernel ----

#define SENSOR_PATH 512
// The text of a file up to the end of its first line; false: it cannot be read, or is empty.
bool sensor_text(char *text, size_t size, const char *format, ...) GRT_PRINTF(3, 4);
// The number a file begins with; NaN: there is none.
double sensor_number(const char *format, ...) GRT_PRINTF(1, 2);
// Power, its limit, temperature, clocks and energy of the first hwmon folder below `folder`.
void sensor_hwmon(const char *folder, struct sensor_device *device);

// Names in a folder, one after the other; false at the end. `into` has 256 bytes.
struct sensor_names {
    void *folder;
};
struct sensor_names sensor_names(const char *format, ...) GRT_PRINTF(1, 2);
bool sensor_next(struct sensor_names *names, char *into);

// Cards of the kernel's DRM drivers, of a vendor, or with 0 of all: calls for each folder
// /sys/class/drm/cardN/device.
typedef void sensor_card_fn(void *context, const char *folder, const char *pci);
void sensor_cards(const char *root, unsigned vendor, sensor_card_fn *fn, void *context);

#endif
