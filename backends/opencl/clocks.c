// SPDX-License-Identifier: Apache-2.0
// The device's clock beside the host's, so that a timeline can show both.
//
// Measured: four bytes are filled and waited for (of markers some drivers tell no time). The end
// lies between the host's times before and after; of several tries the one with the least between
// counts, and its middle is taken. Where the driver tells both clocks at once
// (clGetDeviceAndHostTimer) its answer is taken, if it lies within what was measured.
#include "opencl.h"

#include <stdio.h>

#define TRIES 5

double gcl_clock_seconds(const struct gcl_dev *dev, cl_ulong nanoseconds) {
    return 1e-9 * (double)(int64_t)(nanoseconds - dev->origin);
}

// What a measurement knows: the host's clock read `before` and `after` the device's had `at`.
struct bracket {
    cl_ulong at;
    double before, after;
};

static cl_int stamp(struct gcl_dev *dev, cl_mem word, struct bracket *bracket) {
    const cl_uint zero = 0;
    cl_event event = NULL;
    bracket->before = grt_seconds();
    cl_int code = gcl.clEnqueueFillBuffer(dev->queue, word, &zero, sizeof zero, 0, sizeof zero, 0,
                                          NULL, &event);
    if (code == CL_SUCCESS) {
        code = gcl.clWaitForEvents(1, &event);
        bracket->after = grt_seconds();
    }
    if (code == CL_SUCCESS) {
        code = gcl.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof bracket->at,
                                           &bracket->at, NULL);
    }
    if (code == CL_SUCCESS && bracket->at == 0) {
        code = CL_PROFILING_INFO_NOT_AVAILABLE;
    }
    if (event) {
        gcl_check_release(gcl.clReleaseEvent(event), "event");
    }
    return code;
}

// Where a time of the device lies on the host's clock, by the driver's own pair; false when it has
// none. The pair's host clock need not be ours, so ours is read around the call.
static bool ask(const struct gcl_dev *dev, cl_ulong at, double *there) {
    char version[64] = "";
    unsigned major = 0, minor = 0;
    cl_ulong device = 0, host = 0;
    gcl_ask(dev->device, CL_DEVICE_VERSION, version, sizeof version - 1);
    if (!gcl.clGetDeviceAndHostTimer || sscanf(version, "OpenCL %u.%u", &major, &minor) != 2 ||
        10 * major + minor < 21) {
        return false;
    }
    double before = grt_seconds();
    cl_int code = gcl.clGetDeviceAndHostTimer(dev->device, &device, &host);
    double when = 0.5 * (before + grt_seconds());
    *there = when - 1e-9 * (double)(int64_t)(device - at);
    return code == CL_SUCCESS && device != 0;
}

// The best of some tries.
static cl_int measure(struct gcl_dev *dev, struct bracket *best) {
    cl_int code = CL_SUCCESS;
    cl_mem word = gcl.clCreateBuffer(dev->context, CL_MEM_READ_WRITE, sizeof(cl_uint), NULL, &code);
    for (int i = 0; code == CL_SUCCESS && i < TRIES; i++) {
        struct bracket bracket = {0};
        code = stamp(dev, word, &bracket);
        if (i == 0 || bracket.after - bracket.before < best->after - best->before) {
            *best = bracket;
        }
    }
    if (word) {
        gcl_check_release(gcl.clReleaseMemObject(word), "buffer");
    }
    return code;
}

bool gcl_clocks(struct grt_dev *base, double *device, double *host) {
    struct gcl_dev *dev = (struct gcl_dev *)base;
    struct bracket best = {0};
    double there = 0.0;
    cl_int code = measure(dev, &best);
    if (code != CL_SUCCESS) {
        return gcl_fail(dev, gcl_status(code, true), code, "the device's clock cannot be read");
    }
    if (!dev->origin_known) {
        dev->origin = best.at;
        dev->origin_known = true;
    }
    *device = gcl_clock_seconds(dev, best.at);
    *host = 0.5 * (best.before + best.after);
    if (ask(dev, best.at, &there)) {
        if (there >= best.before && there <= best.after) {
            *host = there;
        } else {
            grt_log(GRT_LOG_DEBUG, "%s: its timers are off by %.3g s, and not used",
                    base->info.selector, there - *host);
        }
    }
    return true;
}
