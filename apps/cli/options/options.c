// SPDX-License-Identifier: Apache-2.0
// The rows shared by verbs, how their values are read, and what they ask of a device. The machinery
// that walks rows is in options_parse.c.
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_list.h"
#include "watch.h"

#define WHY(...) (snprintf(why, RANGES_WHY, __VA_ARGS__), false)

bool options_read_text(const char *text, void *into, char why[RANGES_WHY]) {
    if (!*text) {
        return WHY("may not be empty");
    }
    *(const char **)into = text;
    return true;
}

static bool read_backend(const char *text, void *into, char why[RANGES_WHY]) {
#define X(name, word)                                                                              \
    if (strcmp(text, word) == 0)                                                                   \
        return options_read_text(word, into, why);
    X(AUTO, "auto")
    GRT_BACKENDS(X)
#undef X
#define X(name, word) " " word
    return WHY("known are auto" GRT_BACKENDS(X));
#undef X
}

static bool read_format(const char *text, void *into, char why[RANGES_WHY]) {
#define X(name, word)                                                                              \
    if (strcmp(text, word) == 0) {                                                                 \
        *(enum table_format *)into = TABLE_##name;                                                 \
        return true;                                                                               \
    }
    TABLE_FORMATS(X)
#undef X
#define X(name, word) " " word
    return WHY("known are" TABLE_FORMATS(X));
#undef X
}

// A finite number and nothing behind it.
static bool number(const char *text, double *value) {
    char *end = NULL;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && *value - *value == 0;
}

bool options_read_positive(const char *text, void *into, char why[RANGES_WHY]) {
    double value = 0;
    if (!number(text, &value) || !(value > 0 && value <= OPTIONS_MOST)) {
        return WHY("a number above 0 and up to %g is wanted", OPTIONS_MOST);
    }
    *(double *)into = value;
    return true;
}

bool options_whole(const char *text, uint64_t min, uint64_t max, uint64_t *into,
                   char why[RANGES_WHY]) {
    struct ranges list;
    if (!ranges_parse(text, &(struct ranges_rule){.min = min, .max = max}, &list, why)) {
        return false;
    }
    *into = list.values[0];
    bool one = list.count == 1;
    ranges_destroy(&list);
    return one || WHY("one number is wanted");
}

bool options_read_count(const char *text, void *into, char why[RANGES_WHY]) {
    uint64_t value = 0;
    bool ok = options_whole(text, 1, UINT32_MAX, &value, why);
    *(uint32_t *)into = (uint32_t)value;
    return ok;
}

bool options_bits(const char *text, const char *const *names, size_t count, uint32_t *into,
                  char why[RANGES_WHY]) {
    *into = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ","), i = 0;
        while (i < count && (strlen(names[i]) != length || memcmp(names[i], at, length) != 0)) {
            i++;
        }
        if (i == count) {
            int n = snprintf(why, RANGES_WHY, "known are");
            for (i = 0; i < count; i++) {
                n += snprintf(why + n, (size_t)(RANGES_WHY - n), " %s", names[i]);
            }
            return false;
        }
        *into |= 1u << i;
        at += length;
        if (!*at) {
            return true;
        }
    }
}

bool options_read_fraction(const char *text, void *into, char why[RANGES_WHY]) {
    double value = 0;
    if (!number(text, &value) || !(value > 0 && value <= 1)) {
        return WHY("a number above 0 and up to 1 is wanted");
    }
    *(double *)into = value;
    return true;
}

static bool read_size(const char *text, void *into, char why[RANGES_WHY]) {
    uint64_t bytes = 0;
    if (!ranges_parse_size(text, &bytes, why)) {
        return false;
    }
    if (bytes == 0) {
        return WHY("a size above 0 is wanted, such as 512MB or 2GiB");
    }
    *(uint64_t *)into = bytes;
    return true;
}

#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)
#define AT(field) offsetof(struct options, field)

const struct option_row options_general[] = {
    {.name = "help", .letter = "h", .help = "show this and exit", .at = AT(help)},
    {.name = "verbose", .letter = "v", .help = "say more; twice: all", .at = AT(verbose)},
    {.name = "quiet", .letter = "q", .help = "errors only, no progress", .at = AT(quiet)},
};

const struct option_row options_device[] = {
    {.name = "backend",
     .value = "auto|vulkan|opencl|ref",
     .help = "the GPU API",
     .fallback = "auto",
     .read = read_backend,
     .at = AT(backend)},
    {.name = "device",
     .value = "DEVICE",
     .help = "vulkan:0, vulkan, part of a name, PCI address, cpu, gpu (or cuda), or auto; of "
             "bench, train and tune several with commas",
     .env = "GPURT_DEVICE",
     .read = options_read_text,
     .at = AT(device)},
    {.name = "require-gpu", .help = "refuse drivers that run on the CPU", .at = AT(require_gpu)},
    {.name = "mem-fraction",
     .value = "F",
     .help = "share of free device memory to take (default: 0.9, or by profile)",
     .read = options_read_fraction,
     .at = AT(mem_fraction)},
    {.name = "mem-limit",
     .value = "SIZE",
     .help = "device memory to take at most: 2GB, 512MiB",
     .read = read_size,
     .at = AT(mem_limit)},
    {.name = "max-submit-ms",
     .value = "MS",
     .help = "split work so that no submit runs longer",
     .fallback = TEXT_OF(OPTIONS_SUBMIT_MS),
     .read = options_read_positive,
     .at = AT(max_submit_ms)},
};

const struct option_row options_output[] = {
    {.name = "format",
     .value = "table|md|csv|json|jsonl",
     .help = "form of the results",
     .fallback = "table",
     .read = read_format,
     .at = AT(format)},
    {.name = "output",
     .letter = "o",
     .value = "FILE",
     .help = "write to FILE, which appears when complete",
     .read = options_read_text,
     .at = AT(output)},
};

struct grt_dev_desc options_device_desc(const struct options *options) {
    return (struct grt_dev_desc){
        .backend = options->backend,
        .device = options->device,
        .require_gpu = options->require_gpu != 0,
        .mem_fraction = options->mem_fraction,
        .mem_limit = options->mem_limit,
        .max_submit_ms = options->max_submit_ms,
    };
}

// The C reference is for tests: somebody who did not ask for it has no driver, and may not know.
static void warn_of_reference(const struct grt_dev_desc *desc, const struct grt_dev *dev) {
    const char *device = desc->device ? desc->device : "";
    bool cpu = strcmp(device, "cpu") == 0;
    bool named = (*device && !cpu && strcmp(device, "auto") != 0) ||
                 (desc->backend && strcmp(desc->backend, "ref") == 0);
    const struct grt_dev_info *info = grt_dev_info(dev);
    if (info->backend == GRT_BACKEND_REF && !named) {
        grt_log(GRT_LOG_WARN,
                "no OpenCL or Vulkan driver%s was found: %s, the reference in C, computes instead, "
                "many times slower than PoCL on the same CPU; `gpurt doctor` tells what is missing",
                cpu ? " for the CPU" : "", info->selector);
    }
}

struct grt_dev *options_open_device(const struct options *options) {
    struct grt_dev_desc desc = options_device_desc(options);
    if (desc.device && devices_count(desc.device) > 1) {
        grt_fail(GRT_NO_DEVICE,
                 "'%s' names several devices, and this works on one: lists are for `train`, and as "
                 "--device for `tune` and `bench`",
                 desc.device);
        return NULL;
    }
    struct grt_dev *dev = watch_check(options) ? grt_dev_create(&desc) : NULL;
    if (dev) {
        warn_of_reference(&desc, dev);
    }
    if (dev && !watch_begin(options, dev)) {
        grt_dev_destroy(&dev);
    }
    return dev;
}
