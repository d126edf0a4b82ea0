// SPDX-License-Identifier: Apache-2.0
// A library that answers as NVML does, for a machine with two GPUs: the second tells its name and
// memory only, in the old way. Layouts are written down here once more, from NVIDIA's
// documentation: they judge what apps/sensors/nvml.c declares.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID = 2, NOT_SUPPORTED = 3 };

typedef struct {
    char busIdLegacy[16];
    unsigned int domain;
    unsigned int bus;
    unsigned int device;
    unsigned int pciDeviceId;
    unsigned int pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;
typedef struct {
    unsigned int gpu;
    unsigned int memory;
} nvmlUtilization_t;
typedef struct {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
} nvmlMemory_t;
typedef struct {
    unsigned int version;
    unsigned long long total;
    unsigned long long reserved;
    unsigned long long free;
    unsigned long long used;
} nvmlMemory_v2_t;

#define EXPORT __attribute__((visibility("default")))

static int devices[2] = {1, 2};
static int begun;

static int is_first(const void *device) {
    return device == &devices[0];
}

EXPORT int nvmlInit_v2(void) {
    begun++;
    return SUCCESS;
}

EXPORT int nvmlShutdown(void) {
    return begun-- > 0 ? SUCCESS : INVALID;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned int *count) {
    *count = 2;
    return begun > 0 ? SUCCESS : INVALID;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device) {
    *device = index < 2 ? &devices[index] : NULL;
    return index < 2 ? SUCCESS : INVALID;
}

EXPORT int nvmlDeviceGetName(void *device, char *name, unsigned int length) {
    // An escape of a terminal in a name must not reach one.
    const char *text = is_first(device) ? "NVIDIA Fake" : "NVIDIA \033[31mOld";
    strncpy(name, text, length);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetPciInfo_v3(void *device, nvmlPciInfo_t *pci) {
    memset(pci, 0, sizeof *pci);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%s",
             is_first(device) ? "0000:65:00.0" : "0000:CA:00.0");
    snprintf(pci->busId, sizeof pci->busId, "%s",
             is_first(device) ? "00000000:65:00.0" : "00000000:CA:00.0");
    return SUCCESS;
}

EXPORT int nvmlDeviceGetUtilizationRates(void *device, nvmlUtilization_t *rates) {
    rates->gpu = 42;
    rates->memory = 17;
    return is_first(device) ? SUCCESS : NOT_SUPPORTED;
}

EXPORT int nvmlDeviceGetMemoryInfo(void *device, nvmlMemory_t *memory) {
    (void)device;
    memory->total = 16ull << 30;
    memory->free = 12ull << 30;
    memory->used = 4ull << 30;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetMemoryInfo_v2(void *device, nvmlMemory_v2_t *memory) {
    if (!is_first(device) || memory->version != (unsigned int)(sizeof *memory | (2 << 24))) {
        return INVALID;
    }
    memory->total = 80ull << 30;
    memory->reserved = 1ull << 30;
    memory->free = 7ull << 30;
    memory->used = 72ull << 30;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetPowerUsage(void *device, unsigned int *milliwatts) {
    *milliwatts = 345678;
    return is_first(device) ? SUCCESS : NOT_SUPPORTED;
}

EXPORT int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned int *milliwatts) {
    *milliwatts = 700000;
    return is_first(device) ? SUCCESS : NOT_SUPPORTED;
}

EXPORT int nvmlDeviceGetTemperature(void *device, int sensor, unsigned int *celsius) {
    *celsius = 61;
    return is_first(device) && sensor == 0 ? SUCCESS : NOT_SUPPORTED;
}

EXPORT int nvmlDeviceGetClockInfo(void *device, int type, unsigned int *mhz) {
    *mhz = type == 0 ? 1980 : type == 2 ? 3201 : 1;
    return is_first(device) ? SUCCESS : NOT_SUPPORTED;
}

// 50 J more at each call; none where FAKE_NVML_NO_ENERGY is set, as of cards before Volta.
EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules) {
    static unsigned long long used = 1000000;
    if (!is_first(device) || getenv("FAKE_NVML_NO_ENERGY")) {
        return NOT_SUPPORTED;
    }
    used += 50000;
    *millijoules = used;
    return SUCCESS;
}
