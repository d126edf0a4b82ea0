// SPDX-License-Identifier: Apache-2.0
// Devices: what there is, what each can do, and how one is chosen and opened.
//
// Listing runs each driver in a child process first, so a driver that crashes or hangs while it is
// asked for its devices costs one line of the list and nothing more.
#ifndef GRT_DEVICE_H
#define GRT_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

// In order of preference: with equal hardware the earlier backend is chosen. Among CPU drivers
// OpenCL comes first: PoCL runs the same kernels several times faster than lavapipe.
#define GRT_BACKENDS(X)                                                                            \
    X(VULKAN, "vulkan")                                                                            \
    X(OPENCL, "opencl")                                                                            \
    X(REF, "ref")

enum grt_backend_id {
#define X(name, text) GRT_BACKEND_##name,
    GRT_BACKENDS(X)
#undef X
        GRT_BACKEND_COUNT,
};

GRT_API const char *grt_backend_text(enum grt_backend_id id);

#define GRT_MAX_MATRIX_SHAPES 16

// Element types of tensors and matrix units, with their size in bytes.
#define GRT_DTYPES(X)                                                                              \
    X(F32, "f32", 4)                                                                               \
    X(F16, "f16", 2)                                                                               \
    X(BF16, "bf16", 2)                                                                             \
    X(U32, "u32", 4)                                                                               \
    X(I32, "i32", 4)                                                                               \
    X(I8, "i8", 1)                                                                                 \
    X(U8, "u8", 1)

enum grt_dtype {
#define X(name, text, size) GRT_##name,
    GRT_DTYPES(X)
#undef X
        GRT_DTYPE_COUNT,
};

GRT_API const char *grt_dtype_text(enum grt_dtype dtype);
GRT_API uint32_t grt_dtype_size(enum grt_dtype dtype);

// One shape that the device's matrix unit multiplies: [m][k] x [k][n] of `in` summed into `out`.
struct grt_matrix_shape {
    uint32_t m, n, k;
    enum grt_dtype in, out;
};

// What a device can do. Zero means "no" or "unknown" throughout.
struct grt_caps {
    uint32_t software;    // 1: a CPU driver (PoCL, lavapipe, ref), which wants other kernel shapes
    uint32_t integrated;  // 1: shares the host's memory
    uint32_t compute_units;
    uint32_t subgroup;        // threads that run together
    uint32_t shuffle;         // Vulkan: one of them can read what another has
    uint32_t vector;          // f32 lanes of a CPU driver's vector registers
    uint32_t max_wg;          // invocations of a workgroup
    uint32_t max_groups[3];   // workgroups of a dispatch, per axis
    uint32_t shmem;           // bytes of shared memory a workgroup can have
    uint32_t align;           // bytes; the offset of a binding is a multiple of it
    uint32_t f16_storage;     // 16-bit elements in buffers
    uint32_t f16_arith;       // half arithmetic in kernels
    uint32_t i16_arith;       // that of 16-bit integers
    uint32_t bf16;            // bfloat16 arithmetic or matrix products
    uint32_t matrix_convert;  // sums of a matrix product can be an operand of the next one
    uint32_t mma_layout;      // a subgroup holds matrices as NVIDIA's mma.sync does (gemm_stream.k)
    uint32_t imports;         // Vulkan: takes kernels in NVIDIA's PTX; 2: on Hopper with all of a
                              // processor's shared memory
    uint32_t timestamps;      // device times of phases
    uint64_t max_binding;     // bytes a kernel can reach through one binding
    uint64_t max_texels;      // vectors of 16 bytes that a kernel can fetch through one binding
    uint64_t max_buffer;      // bytes of one buffer
    uint64_t memory;          // bytes of device memory
    uint32_t matrix_shape_count;
    struct grt_matrix_shape matrix_shapes[GRT_MAX_MATRIX_SHAPES];
};

struct grt_dev_info {
    enum grt_backend_id backend;
    uint32_t index;     // position within its backend
    char selector[16];  // "vulkan:0"
    char name[128];
    char vendor[64];
    char driver[128];  // name of the driver
    char driver_version[64];
    char api_version[64];
    char pci[16];  // "0000:65:00.0", or ""
    struct grt_caps caps;
};

// One backend's answer to "what is there?". `problem` is "" when its devices could be listed.
struct grt_backend_report {
    enum grt_backend_id backend;
    uint32_t device_count;
    char problem[256];  // "the driver crashed (signal 11) while listing its devices"
    char note[256];     // "made a Vulkan manifest for libEGL_nvidia.so.0 in ..."
};

struct grt_dev_list {
    uint32_t count;
    struct grt_dev_info *devices;  // vulkan first, then opencl, then ref
    struct grt_backend_report reports[GRT_BACKEND_COUNT];
};

// Lists every device of every backend. NULL only when out of memory.
GRT_API struct grt_dev_list *grt_dev_list_create(void);
GRT_API void grt_dev_list_destroy(struct grt_dev_list **list);

struct grt_dev_desc {
    // Backend name, or NULL or "auto" for the best device of any.
    const char *backend;
    // Selector "vulkan:0", a backend's name, part of a device's name, a PCI address, "cpu" for the
    // fastest driver that runs on one, or "gpu" for the best that is none; so do "cuda", "hip",
    // "rocm", "mps" and "xpu", also with ":0". NULL, "" or "auto" for the best of all.
    const char *device;
    bool require_gpu;     // refuse a CPU driver
    bool validate;        // count complaints of the Vulkan validation layer and log them
    double mem_fraction;  // share of the free device memory that may be taken; 0: the profile's
    uint64_t mem_limit;   // bytes that may be taken at most; 0: no further limit
    // bytes of shared memory that a workgroup may have at most; 0: the device's
    uint32_t shmem_limit;
    double max_submit_ms;  // no submit runs longer where it can be split; 0: 500
    bool reverse_windows;  // ref only: run commands that may overlap in the opposite order
    // A CPU driver is taken for a GPU with memory of its own: the shapes of kernels and the
    // transfers through staging that GPUs get run there, to be tested.
    bool as_gpu;
};
#define grt_dev_desc(...) GRT_DESC(struct grt_dev_desc, __VA_ARGS__)

// Which device of `list` a desc means, hardware before software, or NULL with a sentence that lists
// what there is (GRT_NO_DEVICE).
GRT_API const struct grt_dev_info *grt_dev_choose(const struct grt_dev_list *list,
                                                  const struct grt_dev_desc *desc);

struct grt_dev;

// Opens a device; desc NULL means the best there is. The caller destroys it after everything that
// was made on it.
GRT_API struct grt_dev *grt_dev_create(const struct grt_dev_desc *desc);
GRT_API void grt_dev_destroy(struct grt_dev **dev);
// The device that is open, or is being opened, of several the first, with its driver: "vulkan:0,
// llvmpipe ..., Mesa 22.3.6"; "" when there is none. For the last words of a crash: it may be
// called in a signal handler.
GRT_API const char *grt_dev_opened(void);

GRT_API const struct grt_dev_info *grt_dev_info(const struct grt_dev *dev);
// Bytes that the offset of a binding must be a multiple of, at least 16; and `bytes` rounded up to
// a multiple.
GRT_API uint64_t grt_dev_align(const struct grt_dev *dev);
GRT_API uint64_t grt_dev_align_up(const struct grt_dev *dev, uint64_t bytes);
// GRT_OK, or the status of the first failure that left the device unusable.
GRT_API enum grt_status grt_dev_status(const struct grt_dev *dev);
// Waits until everything queued has finished, on both queues.
GRT_API bool grt_dev_wait(struct grt_dev *dev);

// A device has two queues: one for compute, and one for copies to it, and from it to the host, that
// run beside it (grt_graph_aside()). Each runs in order. Between the two only grt_dev_after()
// orders anything.
enum grt_lane { GRT_LANE_MAIN, GRT_LANE_ASIDE, GRT_LANE_COUNT };

// 2, or 1 where the device has one queue only: all graphs then run on it, in order.
GRT_API uint32_t grt_dev_lanes(const struct grt_dev *dev);
// Returns a marker for everything queued so far.
GRT_API uint64_t grt_dev_mark(struct grt_dev *dev, enum grt_lane lane);
// What is queued on `lane` from now on waits until the other queue has reached its marker; 0 waits
// for nothing.
GRT_API bool grt_dev_after(struct grt_dev *dev, enum grt_lane lane, uint64_t mark);
// On: graphs that are run from now on may go to the driver together, as many as take max_submit_ms,
// which leaves less time between them, when it is switched off again or something is waited for.
// For a few calls only: the device may have nothing to do meanwhile. False where the driver refuses
// what was held: it is lost, and the device with it.
GRT_API bool grt_dev_hold(struct grt_dev *dev, bool on);
// Whether a queue has reached its marker; does not wait.
GRT_API bool grt_dev_passed(struct grt_dev *dev, enum grt_lane lane, uint64_t mark);
// Waits until it has, and not for what was queued after the marker.
GRT_API bool grt_dev_wait_for(struct grt_dev *dev, enum grt_lane lane, uint64_t mark);
// Messages of the validation layer so far; a correct program has none.
GRT_API uint32_t grt_dev_complaints(const struct grt_dev *dev);
// Whether the validation layer watches: asked for with desc.validate, and installed.
GRT_API bool grt_dev_validated(const struct grt_dev *dev);

// The account of a device's memory: bytes under one label, or in all when label is NULL.
struct grt_mem_use {
    char label[48];
    uint64_t current;
    uint64_t peak;
    uint32_t buffers;
};
GRT_API struct grt_mem_use grt_dev_mem_use(const struct grt_dev *dev, const char *label);
// The i-th label of the account; false past the last.
GRT_API bool grt_dev_mem_label(const struct grt_dev *dev, uint32_t i, struct grt_mem_use *use);
// Bytes that could still be taken: the driver's free memory times mem_fraction, or what mem_limit
// leaves.
GRT_API uint64_t grt_dev_mem_left(struct grt_dev *dev);
// Bytes that may be taken at most, of mem_fraction and mem_limit: the same for as long as the
// device is open. 0: not known.
GRT_API uint64_t grt_dev_mem_most(const struct grt_dev *dev);

#ifdef __cplusplus
}
#endif
#endif
