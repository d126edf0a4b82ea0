// SPDX-License-Identifier: Apache-2.0
// Small files that the kernel writes. Each is read by one call, and never more of it than fits.
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reader.h"

static bool read_line(const char *path, char *text, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    ssize_t got = read(fd, text, size - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return text[0] != '\0';
}

bool sensor_text(char *text, size_t size, const char *format, ...) {
    char path[SENSOR_PATH];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(path, sizeof path, format, list);
    va_end(list);
    text[0] = '\0';
    return length > 0 && length < SENSOR_PATH && read_line(path, text, size);
}

double sensor_number(const char *format, ...) {
    char path[SENSOR_PATH], text[64];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(path, sizeof path, format, list);
    va_end(list);
    if (length <= 0 || length >= SENSOR_PATH || !read_line(path, text, sizeof text)) {
        return NAN;
    }
    char *end = NULL;
    double number = strtod(text, &end);
    return end != text && isfinite(number) ? number : NAN;
}

struct sensor_names sensor_names(const char *format, ...) {
    char path[SENSOR_PATH];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(path, sizeof path, format, list);
    va_end(list);
    return (struct sensor_names){length > 0 && length < SENSOR_PATH ? opendir(path) : NULL};
}

bool sensor_next(struct sensor_names *names, char *into) {
    struct dirent *entry = NULL;
    while (names->folder && (entry = readdir(names->folder)) != NULL) {
        if (entry->d_name[0] != '.') {
            snprintf(into, 256, "%.255s", entry->d_name);
            return true;
        }
    }
    if (names->folder) {
        closedir(names->folder);
        names->folder = NULL;
    }
    return false;
}

// The files of hwmon, by the kernel's documentation: micro-watts, micro-joules, milli-degrees, Hz.
// Of two that tell the same the first counts.
static const struct {
    const char *file;
    enum sensor_quantity quantity;
    double scale;
} hwmon_files[] = {
    {"power1_average", SENSOR_POWER, 1e-6},     {"power1_input", SENSOR_POWER, 1e-6},
    {"power1_cap", SENSOR_POWER_LIMIT, 1e-6},   {"power1_max", SENSOR_POWER_LIMIT, 1e-6},
    {"energy1_input", SENSOR_ENERGY, 1e-6},     {"temp1_input", SENSOR_TEMPERATURE, 1e-3},
    {"temp2_input", SENSOR_TEMPERATURE, 1e-3},  {"freq1_input", SENSOR_CLOCK, 1e-6},
    {"freq2_input", SENSOR_MEMORY_CLOCK, 1e-6},
};

void sensor_hwmon(const char *folder, struct sensor_device *device) {
    struct sensor_names names = sensor_names("%s/hwmon", folder);
    char name[256];
    while (sensor_next(&names, name)) {
        for (size_t i = 0; i < sizeof hwmon_files / sizeof *hwmon_files; i++) {
            double *value = &device->values[hwmon_files[i].quantity];
            if (isnan(*value)) {
                *value = hwmon_files[i].scale *
                         sensor_number("%s/hwmon/%s/%s", folder, name, hwmon_files[i].file);
            }
        }
    }
}

static int by_number(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

void sensor_cards(const char *root, unsigned vendor, sensor_card_fn *fn, void *context) {
    int cards[64] = {0};
    size_t count = 0;
    char name[256];
    struct sensor_names names = sensor_names("%s/sys/class/drm", root);
    while (sensor_next(&names, name)) {
        char rest = '\0';
        // "card0-HDMI-A-1" is a connector.
        if (count < 64 && sscanf(name, "card%d%c", &cards[count], &rest) == 1) {
            count++;
        }
    }
    qsort(cards, count, sizeof *cards, by_number);
    for (size_t i = 0; i < count; i++) {
        char folder[SENSOR_PATH], text[64], pci[16] = "", link[SENSOR_PATH];
        snprintf(folder, sizeof folder, "%s/sys/class/drm/card%d/device", root, cards[i]);
        // A device of no bus, such as a virtual display, has no vendor.
        bool known = sensor_text(text, sizeof text, "%s/vendor", folder);
        unsigned found = known ? (unsigned)strtoul(text, NULL, 16) : 0;
        ssize_t length = readlink(folder, link, sizeof link - 1);
        if (length > 0) {
            link[length] = '\0';
            const char *slash = strrchr(link, '/');
            sensor_pci(slash ? slash + 1 : link, pci);
        }
        if (known && (!vendor || found == vendor)) {
            fn(context, folder, pci);
        }
    }
}
