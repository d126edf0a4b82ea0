// SPDX-License-Identifier: Apache-2.0
// What a machine tells about its GPUs: how busy, how full, how warm and how fast they are.
//
//     reader   one way to ask: a file READER.c and a row of SENSOR_READERS
//     sample   what all readers told at one time: a device each, a number for each quantity
//
// A quantity that a driver does not tell is NaN. What follows from two readings (shares of time,
// power from energy) is NaN in the first.
#ifndef APPS_SENSORS_H
#define APPS_SENSORS_H

#include <stddef.h>
#include <stdint.h>

// In the order they are asked. A device that one has told is left out by those behind it.
#define SENSOR_READERS(X)                                                                          \
    X(nvml)   /* NVIDIA's library, loaded at run time */                                           \
    X(amdgpu) /* /sys/class/drm of AMD's driver */                                                 \
    X(fdinfo) /* any other DRM driver: /proc/PID/fdinfo of who uses it */                          \
    X(cpu)    /* /proc: for drivers that run on the CPU */

// X(NAME, "key", "unit of metrics", "what it is")
#define SENSOR_QUANTITIES(X)                                                                       \
    X(UTILISATION, "utilisation", "ratio", "share of the time that the device worked")             \
    X(MEMORY_USED, "memory_used", "bytes", "memory in use, by all processes")                      \
    X(MEMORY_TOTAL, "memory_total", "bytes", "memory that there is")                               \
    X(POWER, "power", "watts", "power drawn")                                                      \
    X(POWER_LIMIT, "power_limit", "watts", "power that it may draw")                               \
    X(TEMPERATURE, "temperature", "celsius", "temperature")                                        \
    X(CLOCK, "clock", "mhz", "clock of the cores")                                                 \
    X(MEMORY_CLOCK, "memory_clock", "mhz", "clock of the memory")                                  \
    X(ENERGY, "energy", "joules", "energy used since some fixed time")

enum sensor_quantity {
#define X(name, key, unit, text) SENSOR_##name,
    SENSOR_QUANTITIES(X)
#undef X
        SENSOR_COUNT,
};

#define SENSOR_DEVICES 16  // told at most
#define SENSOR_NAME 96

struct sensor_device {
    const char *reader;  // "nvml"
    char name[SENSOR_NAME];
    char pci[16];  // "0000:65:00.0", or ""
    double values[SENSOR_COUNT];
};

struct sensor_sample {
    double seconds;  // of grt_seconds(), when it was taken
    size_t count;
    struct sensor_device devices[SENSOR_DEVICES];
};

struct sensors_desc {
    const char *root;  // stands before /sys and /proc; NULL: nothing
    const char *nvml;  // the library; NULL: where the system has it
};

struct sensors;

// NULL: out of memory. What is not there is not told; nothing fails.
struct sensors *sensors_open(const struct sensors_desc *desc);
void sensors_read(struct sensors *sensors, struct sensor_sample *sample);
void sensors_close(struct sensors **sensors);

const char *sensor_key(enum sensor_quantity quantity);
// Seconds of all CPUs that a process has used; NaN: there is none, or it may not be looked at.
double sensor_process_seconds(const char *root, int64_t pid);

#endif
