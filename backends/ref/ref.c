// SPDX-License-Identifier: Apache-2.0
// The ref backend: the C reading of the kernels, run on the calling thread. It is always there,
// runs under a debugger and sanitizers, and is what the drivers are checked against.
//
// A buffer is host memory whatever its kind. A command list is a copy of the commands; running it
// has finished when it returns. With desc.reverse_windows the commands between two barriers run in
// the opposite order: results then differ exactly when the graph missed a hazard.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/backend.h"
#include "lane.h"
#include "base/clock.h"
#include "base/log.h"

struct ref_dev {
    struct grt_dev base;
    struct ref_group group;  // for the largest dispatch of all lists: one runs at a time
};

static struct ref_group *group_of(struct grt_dev *dev) {
    return &((struct ref_dev *)dev)->group;
}

struct ref_cmds {
    struct grt_cmd *cmds;
    uint32_t count;
    uint32_t phase_count;
    double *begin, *end;  // [phase_count]
    double *stamps;       // [count][2], of a timed list; else NULL
};

static int32_t ref_list(struct grt_dev_info *infos, uint32_t capacity, char *problem) {
    (void)problem;
    if (capacity == 0) {
        return 0;
    }
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);
    uint64_t memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : (uint64_t)1 << 30;
    infos[0] = (struct grt_dev_info){
        .name = "C reference",
        .vendor = "gpurt",
        .driver = "ref",
        .driver_version = GPURT_VERSION,
        .api_version = "C11",
        .caps =
            {
                .software = 1,
                .integrated = 1,
                .compute_units = 1,
                .subgroup = 1,
                .max_wg = 1024,
                .max_groups = {0x7fffffff, 65535, 65535},
                .shmem = 64 << 10,
                .align = 512,  // needs none: as strict as the strictest driver, to find mistakes
                .f16_storage = 1,
                .i16_arith = 1,
                .timestamps = 1,
                .max_binding = memory,
                .max_texels = memory / 16,
                .max_buffer = memory,
                .memory = memory,
            },
    };
    return 1;
}

static struct grt_buf *ref_buf_create(struct grt_dev *dev, uint64_t size, enum grt_buf_kind kind) {
    (void)dev;
    struct grt_buf *buf = calloc(1, sizeof *buf);
    void *memory = size <= SIZE_MAX ? malloc((size_t)size) : NULL;
    if (!buf || !memory) {
        free(buf);
        free(memory);
        grt_fail(GRT_NO_MEMORY, "no host memory for a buffer of %.1f MB", (double)size / 1e6);
        return NULL;
    }
    buf->host = memory;
    (void)kind;
    return buf;
}

static void ref_buf_destroy(struct grt_buf *buf) {
    free(buf->host);
    free(buf);
}

static bool ref_buf_write(struct grt_buf *buf, uint64_t offset, const void *data, uint64_t size) {
    memcpy((char *)buf->host + offset, data, size);
    return true;
}

static bool ref_buf_read(struct grt_buf *buf, uint64_t offset, void *data, uint64_t size) {
    memcpy(data, (char *)buf->host + offset, size);
    return true;
}

static struct grt_kernel *ref_kernel_create(struct grt_dev *dev, const struct grt_kernel_info *info,
                                            const uint32_t *spec_values) {
    (void)dev;
    (void)info;
    (void)spec_values;
    struct grt_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel) {
        grt_fail(GRT_NO_MEMORY, "no host memory for kernel '%s'", info->name);
    }
    return kernel;
}

static void ref_kernel_destroy(struct grt_kernel *kernel) {
    free(kernel);
}

static void ref_cmds_destroy(struct grt_dev *dev, void *native) {
    (void)dev;
    struct ref_cmds *list = native;
    if (list) {
        free(list->cmds);
        free(list->begin);
        free(list->end);
        free(list->stamps);
        free(list);
    }
}

static void *ref_cmds_create(struct grt_dev *dev, const struct grt_cmd *cmds, uint32_t count,
                             uint32_t phase_count, enum grt_lane lane, bool timed) {
    (void)lane;  // a list is over when its run returns
    struct ref_cmds *list = calloc(1, sizeof *list);
    if (!list) {
        goto out_of_memory;
    }
    list->count = count;
    list->phase_count = phase_count;
    list->cmds = malloc((count + 1) * sizeof *cmds);
    list->begin = calloc(phase_count + 1, sizeof *list->begin);
    list->end = calloc(phase_count + 1, sizeof *list->end);
    list->stamps = timed ? calloc(count + 1, 2 * sizeof *list->stamps) : NULL;
    if (!list->cmds || !list->begin || !list->end || (timed && !list->stamps)) {
        goto undo_list;
    }
    memcpy(list->cmds, cmds, count * sizeof *cmds);
    for (uint32_t i = 0; i < count; i++) {
        if (cmds[i].kind == GRT_CMD_DISPATCH && !ref_group_fit(group_of(dev), &cmds[i])) {
            goto undo_list;
        }
    }
    return list;
undo_list:
    ref_cmds_destroy(dev, list);
out_of_memory:
    grt_fail(GRT_NO_MEMORY, "no host memory for a list of %u commands", count);
    return NULL;
}

static void run_one(struct grt_dev *dev, const struct grt_cmd *cmd) {
    if (cmd->kind == GRT_CMD_DISPATCH) {
        ref_lanes_run(group_of(dev), cmd);
        return;
    }
    if (cmd->kind == GRT_CMD_PHASE) {
        return;
    }
    char *dst = (char *)cmd->dst.buf->host + cmd->dst.offset;
    if (cmd->kind == GRT_CMD_COPY) {
        memcpy(dst, (char *)cmd->src.buf->host + cmd->src.offset, cmd->dst.size);
        return;
    }
    for (uint64_t i = 0; i < cmd->dst.size; i += sizeof cmd->value) {
        memcpy(dst + i, &cmd->value, sizeof cmd->value);
    }
}

static bool ref_cmds_run(struct grt_dev *dev, void *native) {
    struct ref_cmds *list = native;
    int64_t phase = -1;
    for (uint32_t first = 0; first < list->count;) {
        if (list->cmds[first].kind == GRT_CMD_PHASE) {
            double t = grt_seconds();
            if (phase >= 0) {
                list->end[phase] = t;
            }
            phase = list->cmds[first].phase;
            list->begin[phase] = t;
            first++;
            continue;
        }
        // A window: commands up to the next that must wait, which may run in any order.
        uint32_t last = first + 1;
        while (last < list->count && list->cmds[last].sync < 0 &&
               list->cmds[last].kind != GRT_CMD_PHASE) {
            last++;
        }
        for (uint32_t i = first; i < last; i++) {
            uint32_t turn = dev->desc.reverse_windows ? last - 1 - (i - first) : i;
            double begun = list->stamps ? grt_seconds() : 0.0;
            run_one(dev, &list->cmds[turn]);
            if (list->stamps) {
                list->stamps[2 * turn] = begun;
                list->stamps[2 * turn + 1] = grt_seconds();
            }
        }
        first = last;
    }
    if (phase >= 0) {
        list->end[phase] = grt_seconds();
    }
    return true;
}

static bool ref_cmds_times(struct grt_dev *dev, void *native, double *begin, double *end) {
    (void)dev;
    struct ref_cmds *list = native;
    memcpy(begin, list->begin, list->phase_count * sizeof *begin);
    memcpy(end, list->end, list->phase_count * sizeof *end);
    return true;
}

static bool ref_cmds_stamps(struct grt_dev *dev, void *native, struct grt_stamps *stamps) {
    (void)dev;
    const struct ref_cmds *list = native;
    stamps->host = true;
    for (uint32_t i = 0; i < list->count; i++) {
        bool mark = list->cmds[i].kind == GRT_CMD_PHASE;
        stamps->begin[i] = mark ? NAN : list->stamps[2 * i];
        stamps->end[i] = list->stamps[2 * i + 1];
    }
    return true;
}

static bool ref_clocks(struct grt_dev *dev, double *device, double *host) {
    (void)dev;
    *device = *host = grt_seconds();
    return true;
}

static bool ref_wait(struct grt_dev *dev) {
    (void)dev;
    return true;
}

static void ref_destroy(struct grt_dev *dev) {
    ref_group_finish(group_of(dev));
    free(dev);
}

static const struct grt_dev_fns ref_fns = {
    .destroy = ref_destroy,
    .buf_create = ref_buf_create,
    .buf_destroy = ref_buf_destroy,
    .buf_write = ref_buf_write,
    .buf_read = ref_buf_read,
    .kernel_create = ref_kernel_create,
    .kernel_destroy = ref_kernel_destroy,
    .cmds_create = ref_cmds_create,
    .cmds_destroy = ref_cmds_destroy,
    .cmds_run = ref_cmds_run,
    .cmds_times = ref_cmds_times,
    .cmds_stamps = ref_cmds_stamps,
    .clocks = ref_clocks,
    .wait = ref_wait,
};

static struct grt_dev *ref_open(const struct grt_dev_info *info, const struct grt_dev_desc *desc) {
    (void)info;
    (void)desc;
    struct ref_dev *dev = calloc(1, sizeof *dev);
    if (!dev) {
        grt_fail(GRT_NO_MEMORY, "no host memory for the ref device");
        return NULL;
    }
    dev->base.fns = &ref_fns;
    return &dev->base;
}

const struct grt_backend grt_backend_ref = {
    .list = ref_list,
    .open = ref_open,
};
