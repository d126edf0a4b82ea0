// SPDX-License-Identifier: Apache-2.0
// Listing, choosing and opening devices.
#include "gpurt/device.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "probe.h"
#include "gpurt/profile.h"
#include "base/log.h"
#include "base/visible.h"
#include "tuning/profile_file.h"

#define MAX_DEVICES_PER_BACKEND 32

const struct grt_backend *const grt_backends[GRT_BACKEND_COUNT] = {
    &grt_backend_vulkan,
    &grt_backend_opencl,
    &grt_backend_ref,
};

// ---- listing ----

static bool any_hardware(const struct grt_dev_info *infos, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        if (!infos[i].caps.software) {
            return true;
        }
    }
    return false;
}

// What is known of a backend for the life of the process. Once one of its devices was opened here
// its driver has threads and locks of its own in this process, and a forked child could hang in
// them: from then on the list of before serves.
static struct known {
    bool asked;  // add_drivers() had its chance
    char note[256];
    bool opened;
    int32_t count;
    char problem[256];
    char left_out[256];  // by the probe, for the life of the process
    struct grt_dev_info infos[MAX_DEVICES_PER_BACKEND];
} known[GRT_BACKEND_COUNT];
static pthread_mutex_t known_mutex = PTHREAD_MUTEX_INITIALIZER;

static void probe_drivers(enum grt_backend_id id) {
    struct known *k = &known[id];
    k->count = grt_probe(id, k->infos, MAX_DEVICES_PER_BACKEND, k->problem);
    if (k->count >= 0 && k->problem[0]) {
        memcpy(k->left_out, k->problem, sizeof k->left_out);
    } else if (k->count >= 0) {
        memcpy(k->problem, k->left_out, sizeof k->problem);
    }
}

static void probe_backend(enum grt_backend_id id) {
    const struct grt_backend *backend = grt_backends[id];
    struct known *k = &known[id];
    k->problem[0] = '\0';
    if (id == GRT_BACKEND_REF) {
        k->count = backend->list(k->infos, MAX_DEVICES_PER_BACKEND, k->problem);
        return;
    }
    probe_drivers(id);
    if (!any_hardware(k->infos, k->count) && !k->asked && backend->add_drivers) {
        k->asked = true;
        bool anew = true;
        bool added = backend->add_drivers(k->note, &anew);
        if (k->note[0]) {
            // Said once; a user who was told need not read it at every start.
            grt_log(anew ? GRT_LOG_WARN : GRT_LOG_INFO, "%s", k->note);
        }
        if (added) {
            probe_drivers(id);
        }
    }
}

// Lists one backend into infos and fills its report.
static uint32_t list_backend(enum grt_backend_id id, struct grt_dev_info *infos,
                             struct grt_backend_report *report) {
    pthread_mutex_lock(&known_mutex);
    struct known *k = &known[id];
    if (!k->opened) {
        probe_backend(id);
    }
    report->backend = id;
    report->device_count = k->count > 0 ? (uint32_t)k->count : 0;
    memcpy(report->problem, k->problem, sizeof report->problem);
    memcpy(report->note, k->note, sizeof report->note);
    memcpy(infos, k->infos, report->device_count * sizeof *infos);
    pthread_mutex_unlock(&known_mutex);
    for (uint32_t i = 0; i < report->device_count; i++) {
        infos[i].backend = id;
        infos[i].index = i;
        snprintf(infos[i].selector, sizeof infos[i].selector, "%s:%u", grt_backend_text(id),
                 i % 1000u);
    }
    return report->device_count;
}

static void note_opened(enum grt_backend_id id) {
    pthread_mutex_lock(&known_mutex);
    known[id].opened = true;
    pthread_mutex_unlock(&known_mutex);
}

static struct grt_dev_list *list_create(const bool *wanted) {
    struct grt_dev_list *list = calloc(1, sizeof *list);
    if (!list) {
        goto out_of_memory;
    }
    list->devices = calloc(GRT_BACKEND_COUNT * MAX_DEVICES_PER_BACKEND, sizeof *list->devices);
    if (!list->devices) {
        goto undo_list;
    }
    for (uint32_t id = 0; id < GRT_BACKEND_COUNT; id++) {
        list->reports[id].backend = (enum grt_backend_id)id;
        if (!wanted || wanted[id]) {
            list->count += list_backend((enum grt_backend_id)id, list->devices + list->count,
                                        &list->reports[id]);
        }
    }
    return list;
undo_list:
    free(list);
out_of_memory:
    grt_fail(GRT_NO_MEMORY, "no host memory for the list of devices");
    return NULL;
}

struct grt_dev_list *grt_dev_list_create(void) {
    return list_create(NULL);
}

void grt_dev_list_destroy(struct grt_dev_list **list) {
    if (list && *list) {
        free((*list)->devices);
        free(*list);
        *list = NULL;
    }
}

// ---- choosing ----

static bool contains_ignoring_case(const char *text, const char *part) {
    size_t length = strlen(part);
    for (; *text; text++) {
        size_t i = 0;
        while (i < length && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i])) {
            i++;
        }
        if (i == length) {
            return true;
        }
    }
    return false;
}

static bool same_backend(const char *name, enum grt_backend_id id) {
    return !name || !name[0] || strcmp(name, "auto") == 0 ||
           strcmp(name, grt_backend_text(id)) == 0;
}

// A PCI address as lspci, nvidia-smi and we write it: with a domain of any width, or without the
// first.
static bool read_pci(const char *text, unsigned long at[4]) {
    const char *colon = strchr(text, ':');
    const char *ends = colon && strchr(colon + 1, ':') ? "::." : ":.";
    char *end = NULL;
    at[0] = 0;
    for (int i = ends[2] ? 0 : 1; i < 4; i++) {
        if (!isxdigit((unsigned char)*text)) {
            return false;
        }
        at[i] = strtoul(text, &end, 16);
        if (*end != *ends) {
            return false;
        }
        text = end + (*ends ? 1 : 0);
        ends++;
    }
    return true;
}

static bool same_pci(const char *a, const char *b) {
    unsigned long x[4], y[4];
    return read_pci(a, x) && read_pci(b, y) && memcmp(x, y, sizeof x) == 0;
}

// What other tools call a GPU, alone or as the first of them ("cuda:0"). Which vendor's it is does
// not matter.
static bool means_gpu(const char *device) {
    static const char *const words[] = {"gpu", "cuda", "hip", "rocm", "mps", "xpu"};
    for (size_t i = 0; device && i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i]);
        if (strncmp(device, words[i], length) == 0 &&
            (!device[length] || strcmp(device + length, ":0") == 0)) {
            return true;
        }
    }
    return false;
}

// A selector names its backend, and so does the backend's own name, even where that is a part of a
// card's: the others' drivers need not be loaded.
static bool may_select(const char *device, enum grt_backend_id id) {
    for (uint32_t other = 0; device && other < GRT_BACKEND_COUNT; other++) {
        const char *name = grt_backend_text((enum grt_backend_id)other);
        size_t length = strlen(name);
        if (strncmp(device, name, length) == 0 && (device[length] == ':' || !device[length])) {
            return other == id;
        }
    }
    return true;
}

static bool matches(const struct grt_dev_info *info, const char *backend, const char *device,
                    bool require_gpu) {
    if (!same_backend(backend, info->backend) || !may_select(device, info->backend) ||
        (require_gpu && info->caps.software)) {
        return false;
    }
    if (device && strcmp(device, "cpu") == 0) {
        return info->caps.software;
    }
    if (means_gpu(device)) {
        return !info->caps.software;
    }
    return !device || !device[0] || strcmp(device, "auto") == 0 ||
           strcmp(device, info->selector) == 0 ||
           strcmp(device, grt_backend_text(info->backend)) == 0 || same_pci(info->pci, device) ||
           contains_ignoring_case(info->name, device);
}

// Lower is better: a card of its own, then one that shares the host's memory, then CPU drivers, of
// which PoCL runs the same kernels several times faster than lavapipe, and ref last.
static uint32_t rank(const struct grt_dev_info *info) {
    if (!info->caps.software) {
        return info->caps.integrated ? 1 : 0;
    }
    return info->backend == GRT_BACKEND_OPENCL ? 2 : info->backend == GRT_BACKEND_VULKAN ? 3 : 4;
}

// "vulkan:0 'llvmpipe ...' (CPU driver), ..."; backends that could not be listed say why.
static void describe(const struct grt_dev_list *list, char *text, size_t capacity) {
    size_t used = list->count == 0 ? (size_t)snprintf(text, capacity, "none") : 0;
    for (uint32_t i = 0; list->devices && i < list->count && used < capacity; i++) {
        const struct grt_dev_info *info = &list->devices[i];
        used += (size_t)snprintf(text + used, capacity - used, "%s%s '%s'%s", i ? ", " : "",
                                 info->selector, info->name,
                                 info->caps.software ? " (CPU driver)" : "");
    }
    for (uint32_t i = 0; i < GRT_BACKEND_COUNT && used < capacity; i++) {
        const struct grt_backend_report *report = &list->reports[i];
        if (report->problem[0]) {
            used += (size_t)snprintf(text + used, capacity - used, "; %s: %s",
                                     grt_backend_text(report->backend), report->problem);
        }
    }
}

static bool known_backend(const char *name) {
    if (!name || !name[0] || strcmp(name, "auto") == 0) {
        return true;
    }
    for (uint32_t id = 0; id < GRT_BACKEND_COUNT; id++) {
        if (strcmp(name, grt_backend_text((enum grt_backend_id)id)) == 0) {
            return true;
        }
    }
    return false;
}

const struct grt_dev_info *grt_dev_choose(const struct grt_dev_list *list,
                                          const struct grt_dev_desc *desc) {
    if (!list) {
        grt_fail(GRT_INVALID, "grt_dev_choose: no list");
        return NULL;
    }
    const char *backend = desc ? desc->backend : NULL;
    const char *device = desc ? desc->device : NULL;
    bool require_gpu = desc && desc->require_gpu;
    if (!known_backend(backend)) {
        grt_fail(GRT_INVALID, "no backend '%s': there are auto, vulkan, opencl and ref", backend);
        return NULL;
    }
    const struct grt_dev_info *best = NULL;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct grt_dev_info *info = &list->devices[i];
        if (matches(info, backend, device, require_gpu) && (!best || rank(info) < rank(best))) {
            best = info;
        }
    }
    if (!best) {
        char there[1024];
        describe(list, there, sizeof there);
        bool named = device && device[0];
        bool one = backend && backend[0] && strcmp(backend, "auto") != 0;
        bool gpu = require_gpu || means_gpu(device);
        grt_fail(GRT_NO_DEVICE,
                 "no %s%s%s%s%s%s here; there is %s; %s'gpurt doctor' tells what is missing",
                 gpu ? "GPU" : "device", named ? " '" : "", named ? device : "", named ? "'" : "",
                 one ? " of backend " : "", one ? backend : "", there,
                 means_gpu(device) ? "device 'cpu' computes on the CPU, " : "");
    }
    return best;
}

// ---- opening ----

static char opened[sizeof((struct grt_dev_info *)0)->name + 256];

const char *grt_dev_opened(void) {
    return opened;
}

static void say_opened(const struct grt_dev_info *info) {
    if (!opened[0]) {
        char text[sizeof opened];
        snprintf(text, sizeof text, "%s: %s, %s %s", info->selector, info->name, info->driver,
                 info->driver_version);
        grt_visible(text, opened, sizeof opened);
    }
}

static void say_closed(const struct grt_dev_info *info) {
    size_t length = strlen(info->selector);
    if (strncmp(opened, info->selector, length) == 0 && opened[length] == ':') {
        opened[0] = '\0';
    }
}

// Opens it with its profile, which has the last defaults.
static struct grt_dev *open_device(const struct grt_dev_info *info, struct grt_dev_desc *desc) {
    struct grt_profile *profile = grt_profile_create(info);
    if (!profile) {
        return NULL;
    }
    if (desc->mem_fraction <= 0.0) {
        desc->mem_fraction = grt_profile_get(profile, GRT_KEY_MEM_FRACTION)->numbers[0];
    }
    note_opened(info->backend);
    say_opened(info);
    struct grt_dev *dev = grt_backends[info->backend]->open(info, desc);
    if (!dev) {
        say_closed(info);
        grt_profile_destroy(&profile);
        return NULL;
    }
    dev->desc = *desc;
    dev->desc.backend = NULL;  // the caller's strings are not kept
    dev->desc.device = NULL;
    dev->info = *info;
    if (desc->shmem_limit > 0 && desc->shmem_limit < info->caps.shmem) {
        dev->info.caps.shmem = desc->shmem_limit;
        dev->info.caps.imports = info->caps.imports > 0;
    }
    dev->profile = profile;
    return dev;
}

struct grt_dev *grt_dev_create(const struct grt_dev_desc *desc) {
    struct grt_dev_desc full = desc ? *desc : (struct grt_dev_desc){0};
    if (full.mem_fraction < 0.0 || full.mem_fraction > 1.0 || full.max_submit_ms < 0.0) {
        grt_fail(GRT_INVALID, "%s is %g: it lies %s",
                 full.max_submit_ms < 0.0 ? "max_submit_ms" : "mem_fraction",
                 full.max_submit_ms < 0.0 ? full.max_submit_ms : full.mem_fraction,
                 full.max_submit_ms < 0.0 ? "above 0" : "between 0 and 1");
        return NULL;
    }
    full.max_submit_ms = full.max_submit_ms > 0.0 ? full.max_submit_ms : 500.0;
    bool no_device = !full.device || !full.device[0];
    bool no_backend = !full.backend || !full.backend[0] || strcmp(full.backend, "auto") == 0;
    if (no_device && no_backend) {
        full.device = getenv("GPURT_DEVICE");
    }
    bool wanted[GRT_BACKEND_COUNT];
    bool any = false;
    for (uint32_t id = 0; id < GRT_BACKEND_COUNT; id++) {
        wanted[id] = same_backend(full.backend, (enum grt_backend_id)id) &&
                     may_select(full.device, (enum grt_backend_id)id);
        any = any || wanted[id];
    }
    // A selector of another backend than the one named matches nothing: then it is told what that
    // has.
    for (uint32_t id = 0; !any && id < GRT_BACKEND_COUNT; id++) {
        wanted[id] = same_backend(full.backend, (enum grt_backend_id)id);
    }
    struct grt_dev_list *list = list_create(wanted);
    if (list && list->count == 0) {  // what is said then names all that is here
        grt_dev_list_destroy(&list);
        list = list_create(NULL);
    }
    if (!list) {
        return NULL;
    }
    const struct grt_dev_info *info = grt_dev_choose(list, &full);
    if (info && full.as_gpu) {
        struct grt_caps *caps = &list->devices[info - list->devices].caps;
        caps->software = caps->integrated = caps->vector = 0;
        caps->subgroup = caps->subgroup > 1 ? caps->subgroup : 32;
    }
    struct grt_dev *dev = info ? open_device(info, &full) : NULL;
    grt_dev_list_destroy(&list);
    return dev;
}

void grt_dev_destroy(struct grt_dev **dev) {
    if (!dev || !*dev) {
        return;
    }
    struct grt_dev *d = *dev;
    *dev = NULL;
    d->fns->wait(d);
    grt_buf_destroy(&d->unused);
    if (d->objects > 0) {
        // Freeing the device under living buffers would turn a leak into a crash.
        grt_log(GRT_LOG_ERROR, "%s: %u buffers or graphs outlive their device, which stays open",
                d->info.selector, d->objects);
        return;
    }
    grt_kernels_destroy(d);
    grt_dev_destroy(&d->compiler);
    grt_profile_destroy(&d->profile);
    free(d->verdicts);
    struct grt_dev_info info = d->info;
    d->fns->destroy(d);
    say_closed(&info);
}

const struct grt_dev_info *grt_dev_info(const struct grt_dev *dev) {
    return dev ? &dev->info : NULL;
}

uint64_t grt_dev_align(const struct grt_dev *dev) {
    return dev && dev->info.caps.align > 16 ? dev->info.caps.align : 16;
}

uint64_t grt_dev_align_up(const struct grt_dev *dev, uint64_t bytes) {
    uint64_t align = grt_dev_align(dev);
    return (bytes + align - 1) / align * align;
}

enum grt_status grt_dev_status(const struct grt_dev *dev) {
    return dev ? dev->status : GRT_INVALID;
}

bool grt_dev_usable(struct grt_dev *dev) {
    return dev->status == GRT_OK ||
           grt_fail(dev->status, "%s failed earlier and is closed to further work",
                    dev->info.selector);
}

bool grt_dev_wait(struct grt_dev *dev) {
    if (!dev) {
        return grt_fail(GRT_INVALID, "grt_dev_wait: no device");
    }
    if (!grt_dev_usable(dev)) {
        return false;
    }
    double begun = grt_timed_clock(dev);
    bool good = dev->fns->wait(dev);
    grt_timed_waited(dev, begun);
    return good;
}

uint32_t grt_dev_lanes(const struct grt_dev *dev) {
    return dev && dev->lanes > 1 ? dev->lanes : 1;
}

static bool is_lane(const struct grt_dev *dev, enum grt_lane lane, const char *call) {
    return (dev && (unsigned)lane < GRT_LANE_COUNT) ||
           grt_fail(GRT_INVALID, "%s: no such %s", call, dev ? "lane" : "device");
}

uint64_t grt_dev_mark(struct grt_dev *dev, enum grt_lane lane) {
    return is_lane(dev, lane, "grt_dev_mark") && dev->fns->lane_mark && dev->status == GRT_OK
               ? dev->fns->lane_mark(dev, lane)
               : 0;
}

bool grt_dev_after(struct grt_dev *dev, enum grt_lane lane, uint64_t mark) {
    if (!is_lane(dev, lane, "grt_dev_after") || !grt_dev_usable(dev)) {
        return false;
    }
    return mark == 0 || dev->lanes < 2 || dev->fns->lane_after(dev, lane, mark);
}

bool grt_dev_hold(struct grt_dev *dev, bool on) {
    if (!dev) {
        return grt_fail(GRT_INVALID, "grt_dev_hold: no device");
    }
    if (dev->status != GRT_OK) {
        return on && grt_dev_usable(dev);  // off: what failed was said
    }
    dev->holds = on && dev->fns->hold != NULL;
    dev->held = 0.0;
    return !dev->fns->hold || dev->fns->hold(dev, on);
}

bool grt_dev_passed(struct grt_dev *dev, enum grt_lane lane, uint64_t mark) {
    return is_lane(dev, lane, "grt_dev_passed") &&
           (mark == 0 || !dev->fns->lane_passed || dev->fns->lane_passed(dev, lane, mark));
}

bool grt_dev_wait_for(struct grt_dev *dev, enum grt_lane lane, uint64_t mark) {
    if (!is_lane(dev, lane, "grt_dev_wait_for") || !grt_dev_usable(dev)) {
        return false;
    }
    double begun = grt_timed_clock(dev);
    bool good = mark == 0 || !dev->fns->lane_wait || dev->fns->lane_wait(dev, lane, mark);
    grt_timed_waited(dev, begun);
    return good;
}

uint32_t grt_dev_complaints(const struct grt_dev *dev) {
    return dev ? dev->complaints : 0;
}

bool grt_dev_validated(const struct grt_dev *dev) {
    return dev && dev->validated;
}

const struct grt_profile *grt_dev_profile(const struct grt_dev *dev) {
    return dev ? dev->profile : NULL;
}

bool grt_dev_profile_set(struct grt_dev *dev, enum grt_profile_key key,
                         const struct grt_profile_value *value) {
    if (!dev || !value) {
        return grt_fail(GRT_INVALID, "grt_dev_profile_set: no %s", dev ? "value" : "device");
    }
    return profile_set(dev->profile, key, value);
}
