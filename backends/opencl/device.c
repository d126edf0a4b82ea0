// SPDX-License-Identifier: Apache-2.0
// Reading OpenCL's errors; listing devices and opening one.
//
// A device is a context and its queues (lanes.c). list() runs in a child process and open() in the
// parent, so open() makes sure that it found the device that was meant.
#include "opencl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- errors ----

#define GCL_ERRORS(X)                                                                              \
    X(CL_SUCCESS)                                                                                  \
    X(CL_DEVICE_NOT_FOUND)                                                                         \
    X(CL_DEVICE_NOT_AVAILABLE)                                                                     \
    X(CL_COMPILER_NOT_AVAILABLE)                                                                   \
    X(CL_MEM_OBJECT_ALLOCATION_FAILURE)                                                            \
    X(CL_OUT_OF_RESOURCES)                                                                         \
    X(CL_OUT_OF_HOST_MEMORY)                                                                       \
    X(CL_PROFILING_INFO_NOT_AVAILABLE)                                                             \
    X(CL_MEM_COPY_OVERLAP)                                                                         \
    X(CL_BUILD_PROGRAM_FAILURE)                                                                    \
    X(CL_MAP_FAILURE)                                                                              \
    X(CL_MISALIGNED_SUB_BUFFER_OFFSET)                                                             \
    X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)                                                \
    X(CL_INVALID_VALUE)                                                                            \
    X(CL_INVALID_DEVICE_TYPE)                                                                      \
    X(CL_INVALID_PLATFORM)                                                                         \
    X(CL_INVALID_DEVICE)                                                                           \
    X(CL_INVALID_CONTEXT)                                                                          \
    X(CL_INVALID_QUEUE_PROPERTIES)                                                                 \
    X(CL_INVALID_COMMAND_QUEUE)                                                                    \
    X(CL_INVALID_HOST_PTR)                                                                         \
    X(CL_INVALID_MEM_OBJECT)                                                                       \
    X(CL_INVALID_BINARY)                                                                           \
    X(CL_INVALID_BUILD_OPTIONS)                                                                    \
    X(CL_INVALID_PROGRAM)                                                                          \
    X(CL_INVALID_PROGRAM_EXECUTABLE)                                                               \
    X(CL_INVALID_KERNEL_NAME)                                                                      \
    X(CL_INVALID_KERNEL_DEFINITION)                                                                \
    X(CL_INVALID_KERNEL)                                                                           \
    X(CL_INVALID_ARG_INDEX)                                                                        \
    X(CL_INVALID_ARG_VALUE)                                                                        \
    X(CL_INVALID_ARG_SIZE)                                                                         \
    X(CL_INVALID_KERNEL_ARGS)                                                                      \
    X(CL_INVALID_WORK_DIMENSION)                                                                   \
    X(CL_INVALID_WORK_GROUP_SIZE)                                                                  \
    X(CL_INVALID_WORK_ITEM_SIZE)                                                                   \
    X(CL_INVALID_EVENT)                                                                            \
    X(CL_INVALID_OPERATION)                                                                        \
    X(CL_INVALID_BUFFER_SIZE)                                                                      \
    X(CL_INVALID_GLOBAL_WORK_SIZE)                                                                 \
    X(CL_PLATFORM_NOT_FOUND_KHR)                                                                   \
    X(NVIDIA_ILLEGAL_READ_OR_WRITE)

// What NVIDIA's driver returns after a kernel left its buffers; it has no official name.
#define NVIDIA_ILLEGAL_READ_OR_WRITE (-9999)

const char *gcl_error_name(cl_int code) {
    switch (code) {
#define X(name)                                                                                    \
    case name:                                                                                     \
        return #name;
        GCL_ERRORS(X)
#undef X
    default:
        return "unknown OpenCL error";
    }
}

enum grt_status gcl_status(cl_int code, bool running) {
    switch (code) {
    case CL_SUCCESS:
        return GRT_OK;
    case CL_OUT_OF_RESOURCES:
        return running ? GRT_LOST : GRT_NO_MEMORY;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE:
    case CL_MAP_FAILURE:
        return GRT_NO_MEMORY;
    case CL_DEVICE_NOT_AVAILABLE:
    case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST:
    case CL_INVALID_COMMAND_QUEUE:
    case CL_INVALID_CONTEXT:
    case NVIDIA_ILLEGAL_READ_OR_WRITE:
        return GRT_LOST;
    case CL_DEVICE_NOT_FOUND:
    case CL_PLATFORM_NOT_FOUND_KHR:
        return GRT_NO_DEVICE;
    case CL_BUILD_PROGRAM_FAILURE:
    case CL_INVALID_BINARY:
    case CL_INVALID_BUILD_OPTIONS:
    case CL_INVALID_KERNEL_NAME:
        return GRT_COMPILE;
    default:
        return GRT_UNSUPPORTED;
    }
}

bool gcl_fail(struct gcl_dev *dev, enum grt_status status, cl_int code, const char *format, ...) {
    char sentence[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    if (dev && status == GRT_LOST && dev->base.status == GRT_OK) {
        dev->base.status = GRT_LOST;
    }
    return grt_fail(status, "%s: %s (%d)%s", sentence, gcl_error_name(code), (int)code,
                    status == GRT_LOST ? "; the device must be opened again" : "");
}

void gcl_check_release(cl_int code, const char *what) {
    if (code != CL_SUCCESS) {
        grt_log(GRT_LOG_DEBUG, "OpenCL did not release a %s: %s (%d)", what, gcl_error_name(code),
                (int)code);
    }
}

// ---- listing ----

static int32_t list(struct grt_dev_info *infos, uint32_t capacity, char *problem) {
    struct gcl_found found[GCL_MAX_DEVICES];
    cl_int code;
    if (!gcl_load(problem)) {
        return -1;
    }
    uint32_t count = gcl_find_devices(found, &code);
    if (code != CL_SUCCESS) {
        snprintf(problem, 256,
                 "no OpenCL driver is installed (%s); install the one of your GPU's vendor, or the "
                 "package pocl-opencl-icd to run on the CPU",
                 gcl_error_name(code));
        return -1;
    }
    for (uint32_t i = 0; i < count && i < capacity; i++) {
        if (!gcl_describe(&found[i], &infos[i])) {
            snprintf(problem, 256, "out of memory while listing the OpenCL devices");
            return -1;
        }
    }
    return (int32_t)count;
}

// ---- opening ----

static uint64_t mem_free_amd(struct grt_dev *base) {
    struct gcl_dev *dev = (struct gcl_dev *)base;
    // KiB free in all, then KiB of the largest free piece.
    size_t free_kib[2] = {0};
    gcl_ask(dev->device, CL_DEVICE_GLOBAL_FREE_MEMORY_AMD, free_kib, sizeof free_kib);
    return (uint64_t)free_kib[0] * 1024;
}

static void destroy(struct grt_dev *base) {
    struct gcl_dev *dev = (struct gcl_dev *)base;
    gcl_addresses_destroy(dev);
    gcl_fills_destroy(dev);
    gcl_lanes_destroy(dev);
    gcl_check_release(gcl.clReleaseContext(dev->context), "context");
    free(dev);
}

// May come from a thread of the driver. What it says is a hint for whoever debugs; the failed call
// reports on its own.
static void CL_CALLBACK on_message(const char *message, const void *data, size_t size, void *user) {
    (void)data, (void)size, (void)user;
    grt_log(GRT_LOG_DEBUG, "OpenCL driver: %s", message);
}

static struct grt_dev *open_device(const struct grt_dev_info *info,
                                   const struct grt_dev_desc *desc) {
    (void)desc;  // nothing in it concerns OpenCL
    struct gcl_found found[GCL_MAX_DEVICES];
    char text[256] = "";
    cl_int code = CL_SUCCESS;
    if (!gcl_load(text)) {
        grt_fail(GRT_NO_DEVICE, "cannot open opencl:%u: %s", info->index, text);
        return NULL;
    }
    uint32_t count = gcl_find_devices(found, &code);
    if (info->index >= count) {
        grt_fail(GRT_NO_DEVICE,
                 "opencl:%u (%s) has gone: there are %u OpenCL devices now (%s); list them again",
                 info->index, info->name, count, gcl_error_name(code));
        return NULL;
    }
    const struct gcl_found *chosen = &found[info->index];
    gcl_ask_name(chosen->device, text, sizeof info->name);
    if (strcmp(text, info->name) != 0) {
        grt_fail(GRT_NO_DEVICE, "opencl:%u is now '%s' and no longer '%s'; list the devices again",
                 info->index, text, info->name);
        return NULL;
    }

    struct gcl_dev *dev = calloc(1, sizeof *dev);
    char *extensions = gcl_ask_extensions(chosen->device);
    if (!dev || !extensions) {
        grt_fail(GRT_NO_MEMORY, "no host memory for the OpenCL device '%s'", info->name);
        goto undo_memory;
    }
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)chosen->platform, 0};
    dev->device = chosen->device;
    dev->context = gcl.clCreateContext(properties, 1, &dev->device, on_message, NULL, &code);
    if (!dev->context) {
        gcl_fail(NULL, gcl_status(code, false), code, "no OpenCL context on '%s'", info->name);
        goto undo_memory;
    }
    if (!gcl_lanes_create(dev, info->name)) {
        goto undo_context;
    }
    cl_device_fp_config fp = gcl_ask_u64(dev->device, CL_DEVICE_SINGLE_FP_CONFIG);
    dev->exact_divide = (fp & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
    dev->keeps_binaries = strstr(info->driver, "Portable Computing Language") != NULL;
    gcl_ask_platform(chosen->platform, CL_PLATFORM_VERSION, dev->platform_version,
                     sizeof dev->platform_version);
    dev->fns = (struct grt_dev_fns){
        .destroy = destroy,
        .buf_create = gcl_buf_create,
        .buf_destroy = gcl_buf_destroy,
        .buf_write = gcl_buf_write,
        .buf_read = gcl_buf_read,
        .kernel_create = gcl_kernel_create,
        .kernel_destroy = gcl_kernel_destroy,
        .kernel_ptx = strstr(info->vendor, "NVIDIA") ? gcl_kernel_ptx : NULL,
        .cmds_create = gcl_cmds_create,
        .cmds_destroy = gcl_cmds_destroy,
        .cmds_run = gcl_cmds_run,
        .cmds_times = info->caps.timestamps ? gcl_cmds_times : NULL,
        .cmds_choose = gcl_cmds_choose,
        .cmds_stamps = info->caps.timestamps ? gcl_cmds_stamps : NULL,
        .clocks = info->caps.timestamps ? gcl_clocks : NULL,
        .wait = gcl_wait,
        .lane_mark = gcl_lane_mark,
        .lane_after = gcl_lane_after,
        .lane_passed = gcl_lane_passed,
        .lane_wait = gcl_lane_wait,
        // NVIDIA, Intel and PoCL have no such query.
        .mem_free = strstr(extensions, " cl_amd_device_attribute_query ") ? mem_free_amd : NULL,
    };
    dev->base.fns = &dev->fns;
    dev->fill_reach = GCL_FILL_REACH;
    gcl_addresses_create(dev, extensions);
    free(extensions);
    return &dev->base;

undo_context:
    gcl_check_release(gcl.clReleaseContext(dev->context), "context");
undo_memory:
    free(extensions);
    free(dev);
    return NULL;
}

const struct grt_backend grt_backend_opencl = {
    .list = list,
    .add_drivers = gcl_add_drivers,
    .driver = gcl_driver,
    .keep_drivers = gcl_keep_drivers,
    .open = open_device,
};
