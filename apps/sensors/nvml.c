// SPDX-License-Identifier: Apache-2.0
// NVIDIA's GPUs, by its management library. The library is part of the driver and is loaded at run
// time; what is called of it is declared here, since its header belongs to a toolkit that nobody
// needs for this. Names with a version suffix have the layout that NVIDIA keeps for that name.
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader.h"

typedef struct nvml_device *nvml_handle;  // opaque

struct nvml_pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];  // "00000000:65:00.0"
};
struct nvml_utilisation {
    unsigned gpu, memory;  // percent of the last sampling period
};
struct nvml_memory {
    unsigned long long total, free, used;
};
// What the driver keeps for itself is apart from what is used, as nvidia-smi shows it.
struct nvml_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
#define NVML_MEMORY_V2 (unsigned)(sizeof(struct nvml_memory_v2) | 2u << 24)

enum { NVML_TEMPERATURE_GPU = 0, NVML_CLOCK_GRAPHICS = 0, NVML_CLOCK_MEMORY = 2 };

// X(field, symbol, arguments): each returns 0 when it went well. A symbol that a driver does not
// have is NULL: what it tells is not available.
#define NVML_CALLS(X)                                                                              \
    X(init, "nvmlInit_v2", (void))                                                                 \
    X(shutdown, "nvmlShutdown", (void))                                                            \
    X(count, "nvmlDeviceGetCount_v2", (unsigned *))                                                \
    X(handle, "nvmlDeviceGetHandleByIndex_v2", (unsigned, nvml_handle *))                          \
    X(name, "nvmlDeviceGetName", (nvml_handle, char *, unsigned))                                  \
    X(pci, "nvmlDeviceGetPciInfo_v3", (nvml_handle, struct nvml_pci *))                            \
    X(utilisation, "nvmlDeviceGetUtilizationRates", (nvml_handle, struct nvml_utilisation *))      \
    X(memory, "nvmlDeviceGetMemoryInfo", (nvml_handle, struct nvml_memory *))                      \
    X(memory_v2, "nvmlDeviceGetMemoryInfo_v2", (nvml_handle, struct nvml_memory_v2 *))             \
    X(power, "nvmlDeviceGetPowerUsage", (nvml_handle, unsigned *))                                 \
    X(limit, "nvmlDeviceGetEnforcedPowerLimit", (nvml_handle, unsigned *))                         \
    X(temperature, "nvmlDeviceGetTemperature", (nvml_handle, int, unsigned *))                     \
    X(clock, "nvmlDeviceGetClockInfo", (nvml_handle, int, unsigned *))                             \
    X(energy, "nvmlDeviceGetTotalEnergyConsumption", (nvml_handle, unsigned long long *))

struct nvml {
    void *library;
#define X(field, symbol, arguments) int(*field) arguments;
    NVML_CALLS(X)
#undef X
};

static void *nvml_open(const struct sensors_desc *desc) {
    static const char *const places[] = {"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"};
    struct nvml *n = calloc(1, sizeof *n);
    if (!n) {
        return NULL;
    }
    if (desc->nvml) {
        n->library = dlopen(desc->nvml, RTLD_NOW | RTLD_LOCAL);
    }
    for (size_t i = 0; !desc->nvml && !n->library && i < sizeof places / sizeof *places; i++) {
        n->library = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
    }
    if (!n->library) {
        goto undo_memory;
    }
    // ISO C has no cast from an object pointer to a function's; POSIX wants them alike.
#define X(field, symbol, arguments) *(void **)&n->field = dlsym(n->library, symbol);
    NVML_CALLS(X)
#undef X
    if (!n->init || !n->shutdown || !n->count || !n->handle || n->init() != 0) {
        goto undo_library;
    }
    return n;
undo_library:
    dlclose(n->library);
undo_memory:
    free(n);
    return NULL;
}

static void read_memory(const struct nvml *n, nvml_handle handle, double *values) {
    struct nvml_memory_v2 exact = {.version = NVML_MEMORY_V2};
    struct nvml_memory plain = {0};
    if (n->memory_v2 && n->memory_v2(handle, &exact) == 0) {
        values[SENSOR_MEMORY_TOTAL] = (double)exact.total;
        values[SENSOR_MEMORY_USED] = (double)exact.used;
    } else if (n->memory && n->memory(handle, &plain) == 0) {
        values[SENSOR_MEMORY_TOTAL] = (double)plain.total;
        values[SENSOR_MEMORY_USED] = (double)plain.used;
    }
}

static void read_one(const struct nvml *n, nvml_handle handle, struct sensor_device *device) {
    double *values = device->values;
    struct nvml_pci pci = {0};
    struct nvml_utilisation utilisation = {0};
    unsigned number = 0;
    unsigned long long large = 0;
    if (!n->name || n->name(handle, device->name, sizeof device->name) != 0) {
        snprintf(device->name, sizeof device->name, "NVIDIA GPU");
    }
    device->name[sizeof device->name - 1] = '\0';
    if (n->pci && n->pci(handle, &pci) == 0) {
        pci.bus_id[sizeof pci.bus_id - 1] = '\0';
        sensor_pci(pci.bus_id, device->pci);
    }
    if (n->utilisation && n->utilisation(handle, &utilisation) == 0) {
        values[SENSOR_UTILISATION] = utilisation.gpu / 100.0;
    }
    read_memory(n, handle, values);
    if (n->power && n->power(handle, &number) == 0) {
        values[SENSOR_POWER] = number / 1e3;
    }
    if (n->limit && n->limit(handle, &number) == 0) {
        values[SENSOR_POWER_LIMIT] = number / 1e3;
    }
    if (n->temperature && n->temperature(handle, NVML_TEMPERATURE_GPU, &number) == 0) {
        values[SENSOR_TEMPERATURE] = number;
    }
    if (n->clock && n->clock(handle, NVML_CLOCK_GRAPHICS, &number) == 0) {
        values[SENSOR_CLOCK] = number;
    }
    if (n->clock && n->clock(handle, NVML_CLOCK_MEMORY, &number) == 0) {
        values[SENSOR_MEMORY_CLOCK] = number;
    }
    if (n->energy && n->energy(handle, &large) == 0) {
        values[SENSOR_ENERGY] = (double)large / 1e3;
    }
}

static void nvml_read(void *self, struct sensor_sample *sample) {
    const struct nvml *n = self;
    unsigned count = 0;
    if (n->count(&count) != 0) {
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        nvml_handle handle = NULL;
        struct sensor_device *device =
            n->handle(i, &handle) == 0 ? sensor_add(sample, sensor_nvml.name) : NULL;
        if (device) {
            read_one(n, handle, device);
        }
    }
}

static void nvml_close(void *self) {
    struct nvml *n = self;
    n->shutdown();
    dlclose(n->library);
    free(n);
}

const struct sensor_reader sensor_nvml = {"nvml", nvml_open, nvml_read, nvml_close};
