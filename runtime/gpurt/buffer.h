// SPDX-License-Identifier: Apache-2.0
// Buffers: bytes on the device, and host memory that the device copies from and to.
#ifndef GRT_BUFFER_H
#define GRT_BUFFER_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_BUF_KINDS(X)                                                                           \
    X(DEVICE, "device")     /* fast memory; kernels read and write it */                           \
    X(UPLOAD, "upload")     /* host memory: the program writes, graphs copy from it */             \
    X(READBACK, "readback") /* host memory: graphs copy to it, the program reads */

enum grt_buf_kind {
#define X(name, text) GRT_BUF_##name,
    GRT_BUF_KINDS(X)
#undef X
        GRT_BUF_KIND_COUNT,
};

struct grt_buf_desc {
    uint64_t size;  // bytes, at least 1; rounded up to a multiple of 4
    enum grt_buf_kind kind;
    const char *label;  // the account it is counted under; NULL: "unnamed"
};
#define grt_buf_desc(...) GRT_DESC(struct grt_buf_desc, __VA_ARGS__)

struct grt_buf;

// NULL when it does not fit: refused by the account before the driver is asked (GRT_NO_MEMORY).
GRT_API struct grt_buf *grt_buf_create(struct grt_dev *dev, const struct grt_buf_desc *desc);
// A baked graph keeps the buffers it uses alive.
GRT_API void grt_buf_destroy(struct grt_buf **buf);
GRT_API uint64_t grt_buf_size(const struct grt_buf *buf);
GRT_API enum grt_buf_kind grt_buf_kind(const struct grt_buf *buf);
// Address of an upload or readback buffer, valid as long as the buffer; NULL for device buffers.
GRT_API void *grt_buf_host(const struct grt_buf *buf);

// Blocking transfers of any buffer, after all that is queued. For set-up and tests: a training loop
// copies through staging buffers inside its graph.
GRT_API bool grt_buf_write(struct grt_buf *buf, uint64_t offset, const void *data, uint64_t size);
GRT_API bool grt_buf_read(struct grt_buf *buf, uint64_t offset, void *data, uint64_t size);

#ifdef __cplusplus
}
#endif
#endif
