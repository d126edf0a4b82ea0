// SPDX-License-Identifier: Apache-2.0
// See verdict.h.
#include "verdict.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "base/log.h"

// Of the kernels of all variants of an op, as this device reads them.
static uint64_t kernels_digest(const struct grt_dev_info *info, const char *op) {
    uint64_t digest = 0;
    size_t length = strlen(op);
    for (uint32_t i = 0; grt_kernel_table[i]; i++) {
        const struct grt_kernel_info *kernel = grt_kernel_table[i];
        if (strncmp(kernel->name, op, length) != 0 || kernel->name[length] != '_') {
            continue;
        }
        bool imported = info->caps.imports && kernel->imports;
        if (info->backend == GRT_BACKEND_VULKAN && kernel->spirv) {
            digest = grt_digest(kernel->spirv, kernel->spirv_size, digest);
        } else if ((info->backend == GRT_BACKEND_OPENCL || imported) && kernel->opencl) {
            digest = grt_digest(kernel->opencl, strlen(kernel->opencl), digest);
        }
    }
    return digest;
}

// What tells Mesa's CPU driver how to compile, or "".
static const char *compiled_how(const struct grt_dev_info *info) {
    const char *how = info->caps.software ? getenv("GALLIVM_PERF") : NULL;
    return how ? how : "";
}

// Names everything that the verdict depends on.
static void make_key(const struct grt_dev_info *info, const struct grt_check *c, char *key,
                     size_t size) {
    snprintf(key, size, "%s check|%s|%016" PRIx64 "|%s|%s|%s|%s|%s|%s|%s", c->op, GPURT_VERSION,
             kernels_digest(info, c->op), grt_backend_text(info->backend), info->name, info->driver,
             info->driver_version, compiled_how(info), c->variant, c->what);
}

static enum grt_verdict recall(const char *key) {
    size_t size = 0;
    unsigned char *kept = grt_cache_load(key, &size);
    bool whole =
        kept && size == 1 && (kept[0] == GRT_VERDICT_RIGHT || kept[0] == GRT_VERDICT_WRONG);
    enum grt_verdict verdict = whole ? (enum grt_verdict)kept[0] : GRT_VERDICT_UNKNOWN;
    free(kept);
    return verdict;
}

static uint64_t variant_digest(const struct grt_check *c) {
    uint64_t digest = grt_digest(c->op, strlen(c->op) + 1, 0);
    return grt_digest(c->variant, strlen(c->variant) + 1, digest);
}

static uint64_t digest_of(const struct grt_check *c) {
    return grt_digest(c->what, strlen(c->what), variant_digest(c));
}

static bool is_faulty(const struct grt_dev *dev, const struct grt_check *c) {
    return dev->fault_variant && strcmp(dev->fault_op, c->op) == 0 &&
           (strcmp(dev->fault_variant, "*") == 0 || strcmp(dev->fault_variant, c->variant) == 0);
}

// One line for a variant, whatever it is wrong in.
static void warn(const struct grt_dev *dev, const struct grt_check *c, bool known) {
    const char *folder = grt_cache_dir(NULL);
    bool lost = grt_dev_status(dev) != GRT_OK;
    for (uint32_t i = 0; i < dev->verdict_count; i++) {
        const struct grt_verdict_row *row = &dev->verdicts[i];
        if (row->verdict == GRT_VERDICT_WRONG && row->variant == variant_digest(c)) {
            return;
        }
    }
    grt_log(GRT_LOG_WARN,
            "%s: variant '%s' %s in its check (%s) on %s, %s %s; it is left out there until the "
            "driver changes and the next one serves%s%s%s",
            c->op, c->variant,
            lost    ? "lost the device"
            : known ? "was wrong"
                    : "is wrong",
            c->what, dev->info.selector, dev->info.driver, dev->info.driver_version,
            folder ? "; without the folder " : "", folder ? folder : "",
            folder ? " it is checked again" : "");
}

static enum grt_verdict ask(struct grt_dev *dev, const struct grt_check *c) {
    char key[1024];
    make_key(&dev->info, c, key, sizeof key);
    enum grt_verdict verdict = recall(key);
    bool known = verdict != GRT_VERDICT_UNKNOWN;
    if (!known) {
        bool before = grt_quiet(true);
        verdict = c->run(c->subject, is_faulty(dev, c));
        if (verdict == GRT_VERDICT_WRONG && grt_quiet_status() == GRT_NO_MEMORY) {
            verdict = GRT_VERDICT_UNKNOWN;
        }
        grt_quiet(before);
    }
    // A device that was lost in the check would be lost in that of the next start too.
    if (!known && verdict != GRT_VERDICT_UNKNOWN) {
        const unsigned char kept = (unsigned char)verdict;
        grt_cache_store(key, &kept, 1);
    }
    if (verdict == GRT_VERDICT_WRONG) {
        warn(dev, c, known);
    }
    return verdict;
}

bool grt_check_trusts(struct grt_dev *dev, const struct grt_check *c) {
    uint64_t of = digest_of(c);
    for (uint32_t i = 0; i < dev->verdict_count; i++) {
        if (dev->verdicts[i].of == of) {
            return dev->verdicts[i].verdict != GRT_VERDICT_WRONG;
        }
    }
    if (grt_dev_status(dev) != GRT_OK) {
        return true;
    }
    enum grt_verdict verdict = ask(dev, c);
    // Without memory it is asked again.
    if (dev->verdict_count == dev->verdict_room) {
        uint32_t room = dev->verdict_room ? 2 * dev->verdict_room : 32;
        struct grt_verdict_row *rows = realloc(dev->verdicts, room * sizeof *rows);
        if (!rows) {
            return verdict != GRT_VERDICT_WRONG;
        }
        dev->verdicts = rows;
        dev->verdict_room = room;
    }
    dev->verdicts[dev->verdict_count++] = (struct grt_verdict_row){of, variant_digest(c), verdict};
    return verdict != GRT_VERDICT_WRONG;
}

void grt_check_fault(struct grt_dev *dev, const char *op, const char *variant) {
    dev->fault_op = op;
    dev->fault_variant = variant;
}

uint32_t grt_check_failures(const struct grt_dev *dev) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < dev->verdict_count; i++) {
        count += dev->verdicts[i].verdict == GRT_VERDICT_WRONG;
    }
    return count;
}
