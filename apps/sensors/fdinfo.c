// SPDX-License-Identifier: Apache-2.0
// GPUs of any other DRM driver, by what it tells of each process that has the GPU open (the
// kernel's documentation, "DRM client usage stats"):
//
//     /proc/PID/fd/N -> /dev/dri/...      says which are looked at
//     /proc/PID/fdinfo/N                  drm-pdev: 0000:00:02.0      which GPU
//                                         drm-client-id: 7            several N may have one client
//                                         drm-engine-render: 123 ns   busy since it was opened
//                                         drm-engine-capacity-video: 2
//                                         drm-cycles-rcs: 1, drm-total-cycles-rcs: 9    (xe)
//                                         drm-resident-local0: 4 MiB
//
// An engine's share of the time is the sum over clients between two readings; a GPU is as busy as
// its busiest engine. Processes of other users are seen by root only.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reader.h"

#define USES 512       // engines of clients that are followed
#define MOST_FILES 64  // of one process

struct use {
    char pci[16];
    uint64_t client;
    char engine[24];
    double busy, clock;  // in the same unit
    double capacity;
};

struct fdinfo {
    const char *root;
    struct use *before, *now;  // USES each
    size_t before_count, now_count;
    struct sensor_sample *sample;  // while it is read
};

static void fdinfo_close(void *self) {
    struct fdinfo *f = self;
    free(f->before);
    free(f->now);
    free(f);
}

static void *fdinfo_open(const struct sensors_desc *desc) {
    struct fdinfo *f = calloc(1, sizeof *f);
    if (!f) {
        return NULL;
    }
    f->root = desc->root;
    f->before = calloc(USES, sizeof *f->before);
    f->now = calloc(USES, sizeof *f->now);
    if (!f->before || !f->now) {
        fdinfo_close(f);
        return NULL;
    }
    return f;
}

// ---- one client ----

struct client {
    char pci[16];
    bool known;  // its id is
    uint64_t id;
    double resident, total;  // bytes
};

// "4 MiB" in bytes.
static double bytes_of(const char *text) {
    char *end = NULL;
    double number = strtod(text, &end);
    end += strspn(end, " \t");
    return number * (strncmp(end, "KiB", 3) == 0   ? 1024.0
                     : strncmp(end, "MiB", 3) == 0 ? 1048576.0
                     : strncmp(end, "GiB", 3) == 0 ? 1073741824.0
                                                   : 1.0);
}

// What stands behind the prefix, or NULL.
static const char *behind(const char *key, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(key, prefix, length) == 0 ? key + length : NULL;
}

// The engine of this name among those of the client, which begin at `first`.
static struct use *use_of(struct fdinfo *f, size_t first, const char *engine) {
    size_t i = first;
    while (i < f->now_count && strncmp(f->now[i].engine, engine, sizeof f->now->engine - 1) != 0) {
        i++;
    }
    if (i == USES) {
        return NULL;
    }
    if (i == f->now_count) {
        f->now_count++;
        f->now[i] = (struct use){.capacity = 1, .clock = NAN};
        snprintf(f->now[i].engine, sizeof f->now->engine, "%.23s", engine);
    }
    return &f->now[i];
}

static void take_line(struct fdinfo *f, size_t first, struct client *client, const char *key,
                      const char *value) {
    // The longer prefix first, where one begins with the other.
    static const char *const counts[] = {"drm-engine-capacity-", "drm-engine-", "drm-total-cycles-",
                                         "drm-cycles-"};
    const char *rest = NULL;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        rest = behind(key, counts[i]);
        if (!rest) {
            continue;
        }
        struct use *use = use_of(f, first, rest);
        double number = strtod(value, NULL);
        if (use && i == 0) {
            use->capacity = number >= 1 ? number : 1;
        } else if (use && i == 2) {
            use->clock = number;
        } else if (use) {
            use->busy = number;
        }
        return;
    }
    if (strcmp(key, "drm-pdev") == 0) {
        sensor_pci(value, client->pci);
    } else if (strcmp(key, "drm-client-id") == 0) {
        client->id = strtoull(value, NULL, 10);
        client->known = true;
    } else if (behind(key, "drm-resident-") || behind(key, "drm-memory-")) {
        client->resident += bytes_of(value);
    } else if (behind(key, "drm-total-")) {
        client->total += bytes_of(value);
    }
}

static bool seen_before(const struct fdinfo *f, size_t first, const struct client *client) {
    for (size_t i = 0; i < first; i++) {
        if (f->now[i].client == client->id && strcmp(f->now[i].pci, client->pci) == 0) {
            return true;
        }
    }
    return false;
}

static struct sensor_device *device_of(struct sensor_sample *sample, const char *pci) {
    for (size_t i = 0; i < sample->count; i++) {
        struct sensor_device *device = &sample->devices[i];
        if (strcmp(device->reader, sensor_fdinfo.name) == 0 && strcmp(device->pci, pci) == 0) {
            return device;
        }
    }
    return NULL;
}

static void read_client(struct fdinfo *f, const char *path) {
    struct client client = {0};
    size_t first = f->now_count;
    char line[256];
    FILE *file = fopen(path, "re");
    for (int lines = 0; file && lines < 256 && fgets(line, sizeof line, file); lines++) {
        char *colon = strchr(line, ':');
        if (colon) {
            *colon = '\0';
            take_line(f, first, &client, line, colon + 1 + strspn(colon + 1, " \t"));
        }
    }
    if (file) {
        fclose(file);
    }
    client.pci[strcspn(client.pci, "\r\n")] = '\0';
    struct sensor_device *device = device_of(f->sample, client.pci);
    if (!client.known || !device || seen_before(f, first, &client)) {
        f->now_count = first;
        return;
    }
    double bytes = client.resident > 0 ? client.resident : client.total;
    double *used = &device->values[SENSOR_MEMORY_USED];
    *used = (isnan(*used) ? 0 : *used) + bytes;
    for (size_t i = first; i < f->now_count; i++) {
        f->now[i].client = client.id;
        snprintf(f->now[i].pci, sizeof f->now->pci, "%s", client.pci);
        if (isnan(f->now[i].clock)) {
            f->now[i].clock = f->sample->seconds * 1e9;
        }
    }
}

static void read_process(struct fdinfo *f, const char *pid) {
    struct sensor_names names = sensor_names("%s/proc/%s/fd", f->root, pid);
    char name[256], path[SENSOR_PATH], target[64];
    int files = 0;
    while (sensor_next(&names, name)) {
        snprintf(path, sizeof path, "%s/proc/%.16s/fd/%.16s", f->root, pid, name);
        ssize_t length = readlink(path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        if (behind(target, "/dev/dri/") && files++ < MOST_FILES) {
            snprintf(path, sizeof path, "%s/proc/%.16s/fdinfo/%.16s", f->root, pid, name);
            read_client(f, path);
        }
    }
}

// ---- devices ----

static void add_card(void *context, const char *folder, const char *pci) {
    static const struct {
        unsigned vendor;
        const char *name;
    } makers[] = {{0x8086, "Intel"}, {0x10de, "NVIDIA"}, {0x1002, "AMD"}};
    // By driver, within the folder of the card: i915, then xe.
    static const char *const clocks[] = {"drm/%s/gt_act_freq_mhz", "drm/%s/gt_cur_freq_mhz",
                                         "tile0/gt0/freq0/act_freq"};
    struct fdinfo *f = context;
    struct sensor_device *device =
        sensor_has(f->sample, pci) ? NULL : sensor_add(f->sample, sensor_fdinfo.name);
    char number[32], name[256], card[256] = "";
    if (!device) {
        return;
    }
    const char *maker = "";
    unsigned vendor = 0;
    if (sensor_text(number, sizeof number, "%s/vendor", folder)) {
        vendor = (unsigned)strtoul(number, NULL, 16);
    }
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        maker = makers[i].vendor == vendor ? makers[i].name : maker;
    }
    sensor_text(number, sizeof number, "%s/device", folder);
    snprintf(device->pci, sizeof device->pci, "%s", pci);
    snprintf(device->name, sizeof device->name, "%s%sGPU %s", maker, *maker ? " " : "", number);
    struct sensor_names names = sensor_names("%s/drm", folder);
    while (sensor_next(&names, name)) {
        if (strncmp(name, "card", 4) == 0) {
            snprintf(card, sizeof card, "%s", name);
        }
    }
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        char file[SENSOR_PATH];
        const char *hole = strstr(clocks[i], "%s");
        int before = hole ? (int)(hole - clocks[i]) : (int)strlen(clocks[i]);
        snprintf(file, sizeof file, "%.*s%.32s%s", before, clocks[i], hole ? card : "",
                 hole ? hole + 2 : "");
        if (isnan(device->values[SENSOR_CLOCK])) {
            device->values[SENSOR_CLOCK] = sensor_number("%s/%s", folder, file);
        }
    }
    device->values[SENSOR_MEMORY_TOTAL] =
        sensor_number("%s/drm/%.32s/lmem_total_bytes", folder, card);
    sensor_hwmon(folder, device);
}

static const struct use *same_before(const struct fdinfo *f, const struct use *use) {
    for (size_t i = 0; i < f->before_count; i++) {
        const struct use *b = &f->before[i];
        if (b->client == use->client && strcmp(b->pci, use->pci) == 0 &&
            strcmp(b->engine, use->engine) == 0) {
            return b;
        }
    }
    return NULL;
}

// The share of one engine, over all clients that were there at both readings.
static double engine_share(const struct fdinfo *f, const char *pci, const char *engine) {
    double share = NAN;
    for (size_t i = 0; i < f->now_count; i++) {
        const struct use *now = &f->now[i];
        if (strcmp(now->pci, pci) != 0 || strcmp(now->engine, engine) != 0) {
            continue;
        }
        const struct use *before = same_before(f, now);
        if (before && now->clock > before->clock && now->busy >= before->busy) {
            share = (isnan(share) ? 0 : share) +
                    (now->busy - before->busy) / (now->clock - before->clock) / now->capacity;
        }
    }
    return share;
}

static void fdinfo_read(void *self, struct sensor_sample *sample) {
    struct fdinfo *f = self;
    struct use *spare = f->before;
    size_t first = sample->count;
    char name[256];
    f->sample = sample;
    sensor_cards(f->root, 0, add_card, f);
    if (sample->count == first) {
        return;  // no such GPU: nobody's files are looked at
    }
    f->before = f->now;
    f->before_count = f->now_count;
    f->now = spare;
    f->now_count = 0;
    struct sensor_names names = sensor_names("%s/proc", f->root);
    while (sensor_next(&names, name)) {
        if (name[strspn(name, "0123456789")] == '\0') {
            read_process(f, name);
        }
    }
    for (size_t i = 0; i < f->now_count; i++) {
        struct sensor_device *device = device_of(sample, f->now[i].pci);
        double share = engine_share(f, f->now[i].pci, f->now[i].engine);
        if (device && !isnan(share) && !(device->values[SENSOR_UTILISATION] >= share)) {
            device->values[SENSOR_UTILISATION] = share > 1 ? 1 : share;
        }
    }
}

const struct sensor_reader sensor_fdinfo = {"fdinfo", fdinfo_open, fdinfo_read, fdinfo_close};
