// SPDX-License-Identifier: Apache-2.0
// Buffers by their addresses. NVIDIA's driver goes through all buffer arguments at every launch: on
// its host that takes 5.4 us without any and half a microsecond more for each (H200, driver
// 580.159.04, 2026-11-16), which is most of a small kernel's time. Its buffers stay where they are
// for their life, so kernels there take addresses, which are plain numbers, in place of buffers
// (GRT_BUFFER in cl/dialect.h). A launch went from 5.8 to 4.0 us, the training step of 3 layers of
// 16 at 4096 samples from 34 to 18 us; long kernels are the same within 3 %.
//
// OpenCL promises neither, so it is tried when the device is opened: a kernel tells where a buffer
// lies, another writes there. Where that fails kernels take buffers, as on all other devices.
// GPURT_ADDRESSES=1 tries it on any driver, for tests; 0 on none.
#include "opencl.h"

#include <stdlib.h>
#include <string.h>

#define MARK 0x600du

static const char text[] = "kernel void where(global const uchar *buf, global ulong *at) {\n"
                           "    *at = (ulong)buf;\n"
                           "}\n"
                           "kernel void mark(ulong at, ulong value) {\n"
                           "    *(global ulong *)at = value;\n"
                           "}\n";

static bool read_slot(struct gcl_dev *dev, cl_ulong *value) {
    return gcl.clEnqueueReadBuffer(dev->queue, dev->slot, CL_TRUE, 0, sizeof *value, value, 0, NULL,
                                   NULL) == CL_SUCCESS;
}

static bool launch_one(struct gcl_dev *dev, cl_kernel kernel) {
    const size_t one = 1;
    return gcl.clEnqueueNDRangeKernel(dev->queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL) ==
           CL_SUCCESS;
}

static bool ask_where(struct gcl_dev *dev, cl_mem handle, cl_ulong *address) {
    return gcl.clSetKernelArg(dev->where, 0, sizeof(cl_mem), &handle) == CL_SUCCESS &&
           gcl.clSetKernelArg(dev->where, 1, sizeof(cl_mem), &dev->slot) == CL_SUCCESS &&
           launch_one(dev, dev->where) && read_slot(dev, address) && *address != 0;
}

// Whether a kernel that is given the address alone reaches the buffer.
static bool reaches(struct gcl_dev *dev, cl_program program) {
    cl_int code = CL_SUCCESS;
    const cl_ulong value = MARK;
    cl_ulong address = 0, found = 0;
    cl_kernel mark = gcl.clCreateKernel(program, "mark", &code);
    bool good = mark && ask_where(dev, dev->slot, &address) &&
                gcl.clSetKernelArg(mark, 0, sizeof address, &address) == CL_SUCCESS &&
                gcl.clSetKernelArg(mark, 1, sizeof value, &value) == CL_SUCCESS &&
                launch_one(dev, mark) && read_slot(dev, &found) && found == MARK;
    if (mark) {
        gcl_check_release(gcl.clReleaseKernel(mark), "kernel");
    }
    return good;
}

static bool wanted(const char *extensions) {
    const char *said = getenv("GPURT_ADDRESSES");
    bool nvidia = strstr(extensions, " cl_nv_device_attribute_query ") != NULL;
    return said && said[0] ? strcmp(said, "0") != 0 : nvidia;
}

void gcl_addresses_create(struct gcl_dev *dev, const char *extensions) {
    cl_int code = CL_SUCCESS;
    const char *source = text;
    if (!wanted(extensions)) {
        return;
    }
    cl_program program = gcl.clCreateProgramWithSource(dev->context, 1, &source, NULL, &code);
    dev->slot = gcl.clCreateBuffer(dev->context, CL_MEM_READ_WRITE, sizeof(cl_ulong), NULL, &code);
    if (program && dev->slot &&
        gcl.clBuildProgram(program, 1, &dev->device, "-cl-std=CL1.2", NULL, NULL) == CL_SUCCESS) {
        dev->where = gcl.clCreateKernel(program, "where", &code);
    }
    dev->by_address = dev->where && reaches(dev, program);
    if (!dev->by_address) {
        grt_log(GRT_LOG_DEBUG, "%s: kernels take buffers: an address alone does not reach one",
                dev->base.info.selector);
        gcl_addresses_destroy(dev);
    }
    if (program) {
        gcl_check_release(gcl.clReleaseProgram(program), "program");
    }
}

void gcl_addresses_destroy(struct gcl_dev *dev) {
    if (dev->where) {
        gcl_check_release(gcl.clReleaseKernel(dev->where), "kernel");
        dev->where = NULL;
    }
    if (dev->slot) {
        gcl_check_release(gcl.clReleaseMemObject(dev->slot), "buffer");
        dev->slot = NULL;
    }
}

bool gcl_buf_address(struct gcl_dev *dev, struct gcl_buf *buf, cl_ulong *address) {
    if (!buf->address && !ask_where(dev, buf->handle, &buf->address)) {
        buf->address = 0;
        return gcl_fail(dev, GRT_LOST, CL_INVALID_VALUE,
                        "where a buffer of %llu bytes lies is not known",
                        (unsigned long long)buf->base.size);
    }
    *address = buf->address;
    return true;
}
