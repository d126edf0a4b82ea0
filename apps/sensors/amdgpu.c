// SPDX-License-Identifier: Apache-2.0
// AMD's GPUs, by the files of its kernel driver (the kernel's documentation, "GPU Power/Thermal
// Controls and Monitoring"):
//
//     /sys/class/drm/cardN/device/gpu_busy_percent, mem_info_vram_used, mem_info_vram_total
//     .../product_name, device                 names where the board has one, else its number
//     .../hwmon/hwmonM/power1_average, ...     kernel_files.c
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "reader.h"

#define VENDOR_AMD 0x1002u

struct amdgpu {
    const char *root;
    struct sensor_sample *sample;  // while it is read
};

static void *amdgpu_open(const struct sensors_desc *desc) {
    struct amdgpu *a = calloc(1, sizeof *a);
    if (a) {
        a->root = desc->root;
    }
    return a;
}

static void read_card(void *context, const char *folder, const char *pci) {
    struct amdgpu *a = context;
    double total = sensor_number("%s/mem_info_vram_total", folder);
    double busy = sensor_number("%s/gpu_busy_percent", folder);
    // The older driver, radeon, has neither: it is for the next reader.
    if ((isnan(total) && isnan(busy)) || sensor_has(a->sample, pci)) {
        return;
    }
    struct sensor_device *device = sensor_add(a->sample, sensor_amdgpu.name);
    char number[32];
    if (!device) {
        return;
    }
    snprintf(device->pci, sizeof device->pci, "%s", pci);
    if (!sensor_text(device->name, sizeof device->name, "%s/product_name", folder)) {
        sensor_text(number, sizeof number, "%s/device", folder);
        snprintf(device->name, sizeof device->name, "AMD GPU %s", number);
    }
    device->values[SENSOR_UTILISATION] = busy / 100;
    device->values[SENSOR_MEMORY_TOTAL] = total;
    device->values[SENSOR_MEMORY_USED] = sensor_number("%s/mem_info_vram_used", folder);
    sensor_hwmon(folder, device);
}

static void amdgpu_read(void *self, struct sensor_sample *sample) {
    struct amdgpu *a = self;
    a->sample = sample;
    sensor_cards(a->root, VENDOR_AMD, read_card, a);
}

const struct sensor_reader sensor_amdgpu = {"amdgpu", amdgpu_open, amdgpu_read, free};
