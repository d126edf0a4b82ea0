// SPDX-License-Identifier: Apache-2.0
// Buffers.
//
//     device      cl_mem in device memory
//     upload      cl_mem in pinned host memory (CL_MEM_ALLOC_HOST_PTR), mapped once for its life:
//     readback    base.host is the pointer, and the queue copies from and to that pointer
//
// The cl_mem of a mapped buffer is never given to a command: the standard leaves undefined what the
// device sees of it. Writing from and reading to the mapped pointer is defined everywhere, and fast
// where the driver knows the pointer as pinned.
//
// OpenCL allocates device memory at the first use and reports a lack of it there, inside some later
// command. On hardware a new buffer is therefore moved to the device at once, with contents that
// nobody needs, so that "out of memory" is the answer of buf_create.
#include "opencl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE_PAGES_FROM (UINT64_C(4) << 20)  // bytes of a buffer

// Makes the driver allocate the buffer now.
static bool settle(struct gcl_dev *dev, cl_mem handle, uint64_t size) {
    cl_int code = gcl.clEnqueueMigrateMemObjects(
        dev->queue, 1, &handle, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0, NULL, NULL);
    if (code == CL_SUCCESS) {
        code = gcl.clFinish(dev->queue);
    }
    if (code != CL_SUCCESS) {
        return gcl_fail(dev, gcl_status(code, false), code,
                        "no device memory for a buffer of %" PRIu64 " bytes", size);
    }
    return true;
}

// A CPU driver takes the memory at the first use, and PoCL aborts the process where the system then
// has none. So it is asked for here, and given back.
static bool host_has(uint64_t size) {
    void *memory = size <= SIZE_MAX ? malloc((size_t)size) : NULL;
    bool there = memory != NULL;
    free(memory);
    return there ||
           grt_fail(GRT_NO_MEMORY, "no host memory for a buffer of %" PRIu64 " bytes", size);
}

// Rows that are read in any order miss the processor's table of pages more often than its caches:
// large pages make the pass over shuffled rows of 66 MB a sixth faster (PoCL 3.1, Neoverse N1,
// 2026-11). Where the system has none to give nothing changes.
static void take_large_pages(struct gcl_dev *dev, cl_mem handle, uint64_t size) {
    cl_int code = CL_SUCCESS;
    char *memory = gcl.clEnqueueMapBuffer(dev->queue, handle, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                          0, (size_t)size, 0, NULL, NULL, &code);
    if (!memory) {
        return;
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE), before = (page - (uintptr_t)memory % page) % page;
    madvise(memory + before, ((size_t)size - before) / page * page, MADV_HUGEPAGE);
    // Another queue may have its first use.
    code = gcl.clEnqueueUnmapMemObject(dev->queue, handle, memory, 0, NULL, NULL);
    gcl_check_release(code == CL_SUCCESS ? gcl.clFinish(dev->queue) : code, "large pages");
}

struct grt_buf *gcl_buf_create(struct grt_dev *base, uint64_t size, enum grt_buf_kind kind) {
    struct gcl_dev *dev = (struct gcl_dev *)base;
    cl_mem_flags flags = CL_MEM_READ_WRITE | (kind == GRT_BUF_DEVICE ? 0 : CL_MEM_ALLOC_HOST_PTR);
    cl_int code = CL_SUCCESS;
    // What was queued before reports its faults here; an error after this is about memory.
    if (!gcl_wait(base)) {
        return NULL;
    }
    if (dev->base.info.caps.software && !host_has(size)) {
        return NULL;
    }
    struct gcl_buf *buf = calloc(1, sizeof *buf);
    if (!buf) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a buffer object");
        return NULL;
    }
    buf->handle = gcl.clCreateBuffer(dev->context, flags, (size_t)size, NULL, &code);
    if (!buf->handle) {
        gcl_fail(dev, gcl_status(code, false), code,
                 "no %s buffer of %" PRIu64 " bytes; the driver allows %" PRIu64
                 " bytes in one buffer",
                 kind == GRT_BUF_DEVICE ? "device" : "pinned host", size,
                 dev->base.info.caps.max_buffer);
        goto undo_memory;
    }
    if (kind == GRT_BUF_DEVICE) {
        // A CPU driver has no memory of its own to settle in.
        if (!dev->base.info.caps.software && !settle(dev, buf->handle, size)) {
            goto undo_handle;
        }
        if (dev->base.info.caps.software && size >= LARGE_PAGES_FROM) {
            take_large_pages(dev, buf->handle, size);
        }
        return &buf->base;
    }
    buf->base.host =
        gcl.clEnqueueMapBuffer(dev->queue, buf->handle, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                               (size_t)size, 0, NULL, NULL, &code);
    if (!buf->base.host) {
        gcl_fail(dev, gcl_status(code, false), code,
                 "cannot map %" PRIu64 " bytes of pinned host memory", size);
        goto undo_handle;
    }
    return &buf->base;

undo_handle:
    gcl_check_release(gcl.clReleaseMemObject(buf->handle), "buffer");
undo_memory:
    free(buf);
    return NULL;
}

void gcl_buf_destroy(struct grt_buf *base) {
    struct gcl_buf *buf = (struct gcl_buf *)base;
    struct gcl_dev *dev = (struct gcl_dev *)base->dev;
    if (base->host) {
        cl_int code =
            gcl.clEnqueueUnmapMemObject(dev->queue, buf->handle, base->host, 0, NULL, NULL);
        // The memory lives until the queue has come to the unmapping.
        code = code == CL_SUCCESS ? gcl.clFlush(dev->queue) : code;
        gcl_check_release(code, "mapped buffer");
    }
    gcl_check_release(gcl.clReleaseMemObject(buf->handle), "buffer");
    free(buf);
}

bool gcl_buf_write(struct grt_buf *base, uint64_t offset, const void *data, uint64_t size) {
    struct gcl_buf *buf = (struct gcl_buf *)base;
    struct gcl_dev *dev = (struct gcl_dev *)base->dev;
    cl_int code = gcl.clEnqueueWriteBuffer(dev->queue, buf->handle, CL_TRUE, (size_t)offset,
                                           (size_t)size, data, 0, NULL, NULL);
    if (code != CL_SUCCESS) {
        return gcl_fail(dev, gcl_status(code, true), code,
                        "cannot write %" PRIu64 " bytes at %" PRIu64 " of a buffer of %" PRIu64
                        " bytes",
                        size, offset, base->size);
    }
    return true;
}

bool gcl_buf_read(struct grt_buf *base, uint64_t offset, void *data, uint64_t size) {
    struct gcl_buf *buf = (struct gcl_buf *)base;
    struct gcl_dev *dev = (struct gcl_dev *)base->dev;
    cl_int code = gcl.clEnqueueReadBuffer(dev->queue, buf->handle, CL_TRUE, (size_t)offset,
                                          (size_t)size, data, 0, NULL, NULL);
    if (code != CL_SUCCESS) {
        return gcl_fail(dev, gcl_status(code, true), code,
                        "cannot read %" PRIu64 " bytes at %" PRIu64 " of a buffer of %" PRIu64
                        " bytes",
                        size, offset, base->size);
    }
    return true;
}
