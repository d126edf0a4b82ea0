// SPDX-License-Identifier: Apache-2.0
// The CPU, which is the device of drivers such as PoCL and lavapipe, as /proc and /sys tell it:
//
//     /proc/stat               ticks of all CPUs, by what they did: busy is all but idle and iowait
//     /proc/meminfo            MemTotal, MemAvailable
//     /proc/cpuinfo            the name, and clocks where cpufreq tells none
//     /sys/class/powercap/     energy of each package, where this user may read it
//     /sys/class/hwmon/        temperature
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reader.h"

#define PACKAGES 8

struct cpu {
    const char *root;
    char name[SENSOR_NAME];
    double busy, all;  // ticks at the reading before
    double energy[PACKAGES];
    double joules;  // since it was opened
};

// The number behind `key` and a colon in /proc/meminfo, in KiB.
static double memory_of(const char *root, const char *key) {
    char path[SENSOR_PATH], line[256];
    double found = NAN;
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    FILE *file = fopen(path, "re");
    size_t length = strlen(key);
    while (file && isnan(found) && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, length) == 0 && line[length] == ':') {
            found = strtod(line + length + 1, NULL);
        }
    }
    if (file) {
        fclose(file);
    }
    return found;
}

// The name, and the mean of the clocks, which is NaN where none is told.
static double look_at_cpuinfo(const char *root, char name[SENSOR_NAME]) {
    char path[SENSOR_PATH], line[512];
    double sum = 0;
    unsigned count = 0;
    snprintf(path, sizeof path, "%s/proc/cpuinfo", root);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (!colon) {
            continue;
        }
        if (!name[0] && (strncmp(line, "model name", 10) == 0 || strncmp(line, "Model", 5) == 0)) {
            snprintf(name, SENSOR_NAME, "%.90s", colon + 1 + strspn(colon + 1, " "));
            name[strcspn(name, "\n")] = '\0';
        }
        if (strncmp(line, "cpu MHz", 7) == 0) {
            sum += strtod(colon + 1, NULL);
            count++;
        }
    }
    if (file) {
        fclose(file);
    }
    return count ? sum / count : NAN;
}

static void *cpu_open(const struct sensors_desc *desc) {
    struct cpu *c = calloc(1, sizeof *c);
    if (!c) {
        return NULL;
    }
    c->root = desc->root;
    c->busy = NAN;
    for (size_t i = 0; i < PACKAGES; i++) {
        c->energy[i] = NAN;
    }
    look_at_cpuinfo(c->root, c->name);
    if (!c->name[0]) {
        snprintf(c->name, sizeof c->name, "CPU");
    }
    return c;
}

static double read_utilisation(struct cpu *c) {
    char line[512];
    double ticks[10] = {0}, all = 0, share = NAN;
    if (!sensor_text(line, sizeof line, "%s/proc/stat", c->root) || strncmp(line, "cpu ", 4) != 0) {
        return NAN;
    }
    char *at = line + 4;
    for (size_t i = 0; i < 8; i++) {  // guest times behind them are part of user and nice
        ticks[i] = strtod(at, &at);
        all += ticks[i];
    }
    double busy = all - ticks[3] - ticks[4];
    if (!isnan(c->busy) && all > c->all) {
        share = (busy - c->busy) / (all - c->all);
        share = share < 0 ? 0 : share > 1 ? 1 : share;
    }
    c->busy = busy;
    c->all = all;
    return share;
}

// Counters of packages run over at a number of their own.
static double read_energy(struct cpu *c) {
    bool any = false;
    for (int i = 0; i < PACKAGES; i++) {
        double now = sensor_number("%s/sys/class/powercap/intel-rapl:%d/energy_uj", c->root, i);
        double more = now - c->energy[i];
        if (more < 0) {
            more += sensor_number("%s/sys/class/powercap/intel-rapl:%d/max_energy_range_uj",
                                  c->root, i);
        }
        c->joules += more > 0 ? more * 1e-6 : 0;
        c->energy[i] = now;
        any = any || !isnan(now);
    }
    return any ? c->joules : NAN;
}

static double read_temperature(const struct cpu *c) {
    static const char *const chips[] = {"coretemp", "k10temp", "zenpower", "cpu_thermal"};
    struct sensor_names names = sensor_names("%s/sys/class/hwmon", c->root);
    char folder[256], chip[64];
    double found = NAN;
    while (sensor_next(&names, folder)) {
        sensor_text(chip, sizeof chip, "%s/sys/class/hwmon/%s/name", c->root, folder);
        for (size_t i = 0; isnan(found) && i < sizeof chips / sizeof *chips; i++) {
            if (strcmp(chip, chips[i]) == 0) {
                found = sensor_number("%s/sys/class/hwmon/%s/temp1_input", c->root, folder) * 1e-3;
            }
        }
    }
    return found;
}

static void cpu_read(void *self, struct sensor_sample *sample) {
    struct cpu *c = self;
    struct sensor_device *device = sensor_add(sample, sensor_cpu.name);
    if (!device) {
        return;
    }
    double *values = device->values;
    snprintf(device->name, sizeof device->name, "%s", c->name);
    values[SENSOR_UTILISATION] = read_utilisation(c);
    values[SENSOR_MEMORY_TOTAL] = 1024 * memory_of(c->root, "MemTotal");
    values[SENSOR_MEMORY_USED] =
        values[SENSOR_MEMORY_TOTAL] - 1024 * memory_of(c->root, "MemAvailable");
    values[SENSOR_CLOCK] =
        1e-3 * sensor_number("%s/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", c->root);
    if (isnan(values[SENSOR_CLOCK])) {
        values[SENSOR_CLOCK] = look_at_cpuinfo(c->root, c->name);
    }
    values[SENSOR_TEMPERATURE] = read_temperature(c);
    values[SENSOR_ENERGY] = read_energy(c);
}

double sensor_process_seconds(const char *root, int64_t pid) {
    char line[1024];
    double ticks[2];
    if (!sensor_text(line, sizeof line, "%s/proc/%lld/stat", root, (long long)pid)) {
        return NAN;
    }
    // The name stands in parentheses and may have any character, those too. utime and stime are the
    // 14th and 15th field, the 12th and 13th behind it.
    char *at = strrchr(line, ')');
    for (int i = 0; at && i < 12; i++) {
        at = strchr(at + 1, ' ');
    }
    if (!at) {
        return NAN;
    }
    ticks[0] = strtod(at, &at);
    ticks[1] = strtod(at, &at);
    return (ticks[0] + ticks[1]) / (double)sysconf(_SC_CLK_TCK);
}

const struct sensor_reader sensor_cpu = {"cpu", cpu_open, cpu_read, free};
