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
//
// Parts of a buffer are bound as sub-buffers, each made once and kept as long as the buffer. NVIDIA's
// driver faults in clReleaseMemObject when overlapping ones are released in another order than the
// opposite of their making, so that is the order here. It also slows down when many overlap: with parts
// that all reached to the end of their buffer, 1,024 dispatches took longer than 20 s (both 580.159.04,
// 2026-11).
#include "opencl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct gcl_part {
    uint64_t offset, size;
    uint32_t number;  // in the order of their making
    cl_mem handle;
};

static int newest_first(const void *a, const void *b) {
    const struct gcl_part *x = a, *y = b;
    return x->number < y->number ? 1 : x->number > y->number ? -1 : 0;
}

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

// A CPU driver takes the memory at the first use, and PoCL aborts the process where the system then has
// none. So it is asked for here, and given back.
static bool host_has(uint64_t size) {
    void *memory = size <= SIZE_MAX ? malloc((size_t)size) : NULL;
    bool there = memory != NULL;
    free(memory);
    return there ||
           grt_fail(GRT_NO_MEMORY, "no host memory for a buffer of %" PRIu64 " bytes", size);
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
    if (buf->part_count > 0) {
        qsort(buf->parts, buf->part_count, sizeof *buf->parts, newest_first);
    }
    for (uint32_t i = 0; i < buf->part_count; i++) {
        gcl_check_release(gcl.clReleaseMemObject(buf->parts[i].handle), "sub-buffer");
    }
    gcl_check_release(gcl.clReleaseMemObject(buf->handle), "buffer");
    free(buf->parts);
    free(buf);
}

// Where the part is, or where it would have to be put in.
static uint32_t place_of(const struct gcl_buf *buf, uint64_t offset, uint64_t size) {
    uint32_t low = 0, high = buf->part_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct gcl_part *part = &buf->parts[middle];
        if (part->offset < offset || (part->offset == offset && part->size < size)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

cl_mem gcl_buf_part(struct gcl_buf *buf, uint64_t offset, uint64_t size, cl_int *code) {
    if (offset == 0 && size == buf->base.size) {
        return buf->handle;
    }
    uint32_t place = place_of(buf, offset, size);
    struct gcl_part *found = place < buf->part_count ? &buf->parts[place] : NULL;
    if (found && found->offset == offset && found->size == size) {
        return found->handle;
    }
    if (!buf->parts || buf->part_count == buf->part_room) {
        uint32_t room = buf->part_room ? 2 * buf->part_room : 8;
        struct gcl_part *parts = realloc(buf->parts, room * sizeof *parts);
        if (!parts) {
            *code = CL_OUT_OF_HOST_MEMORY;
            return NULL;
        }
        buf->parts = parts;
        buf->part_room = room;
    }
    const cl_buffer_region region = {(size_t)offset, (size_t)size};
    cl_mem handle =
        gcl.clCreateSubBuffer(buf->handle, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, code);
    if (handle) {
        memmove(&buf->parts[place + 1], &buf->parts[place],
                (buf->part_count - place) * sizeof *buf->parts);
        buf->parts[place] = (struct gcl_part){offset, size, buf->part_count, handle};
        buf->part_count++;
    }
    return handle;
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
