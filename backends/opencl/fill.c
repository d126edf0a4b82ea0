// SPDX-License-Identifier: Apache-2.0
// Fills that lie far behind a buffer's beginning. NVIDIA's clEnqueueFillBuffer writes outside of
// the buffer from 2^33 bytes on, and the device is lost; over 2^33 bytes at once it does not come
// back (580.159.04, 2026-11-17). Writes, reads and copies are right there. So beyond
// dev->fill_reach a kernel of our own fills, on every driver.
#include "opencl.h"

#define LANES 256u
#define MOST_GROUPS 2048u

static const char text[] =
    "kernel void fill(global uint *buf, ulong first, ulong count, uint value) {\n"
    "    for (ulong i = get_global_id(0); i < count; i += get_global_size(0)) {\n"
    "        buf[first + i] = value;\n"
    "    }\n"
    "}\n";

static bool build(struct gcl_dev *dev) {
    cl_int code = CL_SUCCESS;
    const char *source = text;
    if (dev->fill) {
        return true;
    }
    dev->fill = gcl.clCreateProgramWithSource(dev->context, 1, &source, NULL, &code);
    if (dev->fill) {
        code = gcl.clBuildProgram(dev->fill, 1, &dev->device, "-cl-std=CL1.2", NULL, NULL);
    }
    if (code != CL_SUCCESS) {
        gcl_fills_destroy(dev);
        return gcl_fail(dev, gcl_status(code, false), code, "no kernel that fills buffers");
    }
    return true;
}

bool gcl_fill_is_far(const struct gcl_dev *dev, const struct grt_range *range) {
    return range->offset + range->size > dev->fill_reach;
}

cl_kernel gcl_fill_kernel(struct gcl_dev *dev, const struct grt_range *range, cl_uint value,
                          size_t *global, size_t *local) {
    cl_int code = CL_SUCCESS;
    const cl_ulong first = range->offset / sizeof value, count = range->size / sizeof value;
    cl_kernel kernel = build(dev) ? gcl.clCreateKernel(dev->fill, "fill", &code) : NULL;
    if (!kernel) {
        if (code != CL_SUCCESS) {
            gcl_fail(dev, gcl_status(code, false), code, "no kernel that fills buffers");
        }
        return NULL;
    }
    const struct {
        size_t size;
        const void *value;
    } args[] = {{sizeof(cl_mem), &((struct gcl_buf *)range->buf)->handle},
                {sizeof first, &first},
                {sizeof count, &count},
                {sizeof value, &value}};
    for (cl_uint i = 0; code == CL_SUCCESS && i < sizeof args / sizeof args[0]; i++) {
        code = gcl.clSetKernelArg(kernel, i, args[i].size, args[i].value);
    }
    if (code != CL_SUCCESS) {
        gcl_check_release(gcl.clReleaseKernel(kernel), "kernel");
        gcl_fail(dev, gcl_status(code, false), code, "the kernel that fills buffers refuses one");
        return NULL;
    }
    uint32_t most = dev->base.info.caps.max_wg;
    *local = most < LANES ? most : LANES;
    uint64_t groups = (count + *local - 1) / *local;
    *global = *local * (size_t)(groups < MOST_GROUPS ? groups : MOST_GROUPS);
    return kernel;
}

void gcl_fills_destroy(struct gcl_dev *dev) {
    if (dev->fill) {
        gcl_check_release(gcl.clReleaseProgram(dev->fill), "program");
        dev->fill = NULL;
    }
}
