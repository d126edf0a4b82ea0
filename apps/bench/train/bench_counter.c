// SPDX-License-Identifier: Apache-2.0
// Vendors' counters, asked without needing their headers: the library is found at run time, or not.
#include "bench_counter.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

// A function of a library, by the only cast from an object pointer that C allows.
static void function(void *library, const char *name, void *into) {
    void *found = dlsym(library, name);
    memcpy(into, &found, sizeof found);
}

static bool open_nvidia(struct bench_counter *counter, const char *pci) {
    int (*begin)(void) = NULL;
    int (*find)(const char *, void **) = NULL;
    counter->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!counter->library) {
        return false;
    }
    function(counter->library, "nvmlInit_v2", &begin);
    function(counter->library, "nvmlShutdown", &counter->end);
    function(counter->library, "nvmlDeviceGetHandleByPciBusId_v2", &find);
    function(counter->library, "nvmlDeviceGetUtilizationRates", &counter->read);
    bool begun = begin && find && counter->read && counter->end && begin() == 0;
    if (begun && find(pci, &counter->device) == 0) {
        return true;
    }
    if (begun) {
        counter->end();
    }
    dlclose(counter->library);
    *counter = (struct bench_counter){0};
    return false;
}

void bench_counter_open(struct bench_counter *counter, const struct grt_dev_info *info) {
    *counter = (struct bench_counter){0};
    if (!info->pci[0] || open_nvidia(counter, info->pci)) {
        return;
    }
    snprintf(counter->path, sizeof counter->path, "/sys/bus/pci/devices/%.15s/gpu_busy_percent",
             info->pci);
    if (bench_counter_read(counter) < 0) {
        counter->path[0] = '\0';
    }
}

void bench_counter_close(struct bench_counter *counter) {
    if (counter->library) {
        counter->end();
        dlclose(counter->library);
    }
    *counter = (struct bench_counter){0};
}

double bench_counter_read(const struct bench_counter *counter) {
    unsigned busy_and_memory[2] = {0}, percent = 0;
    if (counter->library) {
        return counter->read(counter->device, busy_and_memory) == 0 ? busy_and_memory[0] / 100.0
                                                                    : -1;
    }
    FILE *file = counter->path[0] ? fopen(counter->path, "r") : NULL;
    bool known = file && fscanf(file, "%3u", &percent) == 1;
    if (file) {
        fclose(file);
    }
    return known ? percent / 100.0 : -1;
}
