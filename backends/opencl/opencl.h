// SPDX-License-Identifier: Apache-2.0
// Inside backends/opencl: its objects, the table of OpenCL functions, and how errors are said.
//
//     gcl_dev     one context and two in-order queues on one device: all work, and uploads beside
//                 it
//     gcl_buf     device memory, or pinned host memory that stays mapped for the buffer's life
//     gcl_kernel  one program, built for one set of specialization values
//     gcl_cmds    a list of enqueue calls, every argument set beforehand (commands.c)
//
// Only OpenCL 1.2 is needed, called through the table `gcl` that loader.c fills at run time: a
// machine without OpenCL still starts.
#ifndef GCL_OPENCL_H
#define GCL_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS  // clCreateCommandQueue is all that 1.2 has
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "backends/backend.h"
#include "base/cache.h"
#include "base/clock.h"
#include "base/log.h"

// Profiling gives the times of phases. The one place to change it.
#define GCL_QUEUE_PROPERTIES CL_QUEUE_PROFILING_ENABLE

#define GCL_FUNCTIONS(X)                                                                           \
    X(clGetPlatformIDs)                                                                            \
    X(clGetPlatformInfo)                                                                           \
    X(clGetDeviceIDs)                                                                              \
    X(clGetDeviceInfo)                                                                             \
    X(clCreateContext)                                                                             \
    X(clReleaseContext)                                                                            \
    X(clCreateCommandQueue)                                                                        \
    X(clReleaseCommandQueue)                                                                       \
    X(clCreateBuffer)                                                                              \
    X(clReleaseMemObject)                                                                          \
    X(clCreateProgramWithSource)                                                                   \
    X(clCreateProgramWithBinary)                                                                   \
    X(clBuildProgram)                                                                              \
    X(clGetProgramInfo)                                                                            \
    X(clGetProgramBuildInfo)                                                                       \
    X(clReleaseProgram)                                                                            \
    X(clCreateKernel)                                                                              \
    X(clSetKernelArg)                                                                              \
    X(clGetKernelInfo)                                                                             \
    X(clGetKernelWorkGroupInfo)                                                                    \
    X(clReleaseKernel)                                                                             \
    X(clRetainKernel)                                                                              \
    X(clEnqueueNDRangeKernel)                                                                      \
    X(clEnqueueWriteBuffer)                                                                        \
    X(clEnqueueReadBuffer)                                                                         \
    X(clEnqueueCopyBuffer)                                                                         \
    X(clEnqueueFillBuffer)                                                                         \
    X(clEnqueueMapBuffer)                                                                          \
    X(clEnqueueUnmapMemObject)                                                                     \
    X(clEnqueueMigrateMemObjects)                                                                  \
    X(clEnqueueMarkerWithWaitList)                                                                 \
    X(clEnqueueBarrierWithWaitList)                                                                \
    X(clGetEventInfo)                                                                              \
    X(clWaitForEvents)                                                                             \
    X(clGetEventProfilingInfo)                                                                     \
    X(clReleaseEvent)                                                                              \
    X(clFlush)                                                                                     \
    X(clFinish)

// Types of the functions that the headers declare: which names they give these types differs from
// release to release.
struct gcl_api {
#define X(name) __typeof__(name) *name;
    GCL_FUNCTIONS(X)
#undef X
    // OpenCL 2.1; NULL in an older library.
    cl_int(CL_API_CALL *clGetDeviceAndHostTimer)(cl_device_id, cl_ulong *, cl_ulong *);
};

extern struct gcl_api gcl;

#define GCL_MARKS 32  // of a lane that are remembered

// A queue in order, and events that stand for places in it.
struct gcl_lane {
    cl_command_queue queue;
    cl_event marks[GCL_MARKS];  // of mark i at i % GCL_MARKS
    uint64_t marked;            // the newest mark; they count from 1
};

struct gcl_dev {
    struct grt_dev base;
    struct grt_dev_fns fns;  // base.fns points here: mem_free differs from driver to driver
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;  // of the main lane
    struct gcl_lane lanes[GRT_LANE_COUNT];
    bool exact_divide;           // division and square root can be rounded correctly
    bool keeps_binaries;         // the driver has a kernel cache of its own; ours stays out
    _Atomic bool needs_header;   // and does not build kernels without its own: kernel.c
    char platform_version[128];  // part of the cache key
    // Kernels take addresses in place of buffers: address.c.
    bool by_address;
    cl_kernel where;
    cl_mem slot;
    // fill.c: bytes from a buffer's beginning that the driver's own fills serve.
    uint64_t fill_reach;
    cl_program fill;  // NULL before the first fill beyond
    // clocks.c: the nanosecond that seconds are counted from.
    cl_ulong origin;
    bool origin_known;
};

struct gcl_buf {
    struct grt_buf base;
    cl_mem handle;
    cl_ulong address;  // 0: not asked for yet
};

struct gcl_kernel {
    struct grt_kernel base;
    cl_program program;
};

// ---- loader.c ----

// Opens the library on the first call. False with the reason in `problem` (256 bytes) when there is
// none; says nothing.
bool gcl_load(char *problem);
bool gcl_add_drivers(char *note, bool *anew);
bool gcl_driver(uint32_t i, char *file);
bool gcl_keep_drivers(uint32_t keep);

// ---- caps.c ----

#define GCL_MAX_DEVICES 64

struct gcl_found {
    cl_platform_id platform;
    cl_device_id device;
};

// Fills `found` (GCL_MAX_DEVICES) and returns how many. A platform that fails has no devices; *code
// is the answer of the loader itself.
uint32_t gcl_find_devices(struct gcl_found *found, cl_int *code);
// Everything of info but backend, index and selector. False when out of host memory.
bool gcl_describe(const struct gcl_found *found, struct grt_dev_info *info);

// Questions; what the driver does not answer is false and zero, or "".
bool gcl_ask(cl_device_id device, cl_device_info what, void *value, size_t size);
uint64_t gcl_ask_u64(cl_device_id device, cl_device_info what);
void gcl_ask_name(cl_device_id device, char *out, size_t size);
void gcl_ask_platform(cl_platform_id platform, cl_platform_info what, char *out, size_t size);
// The extensions between blanks, so that " name " finds one and not the beginning of another. To be
// freed; NULL when out of host memory.
char *gcl_ask_extensions(cl_device_id device);

// ---- device.c ----

// "CL_OUT_OF_RESOURCES", or "unknown OpenCL error".
const char *gcl_error_name(cl_int code);
// What a code means for gpurt. `running` is true where the call could report a fault of work queued
// before: CL_OUT_OF_RESOURCES then means that a kernel crashed, and not that memory ran out.
enum grt_status gcl_status(cl_int code, bool running);
// grt_fail() with the error's name and number behind the sentence. The first loss sticks to the
// device; dev may be NULL.
bool gcl_fail(struct gcl_dev *dev, enum grt_status status, cl_int code, const char *format, ...)
    GRT_PRINTF(4, 5);
// For clRelease... calls, after which nothing is left to do: a debug line when one failed.
void gcl_check_release(cl_int code, const char *what);

// ---- buffer.c, kernel.c, commands.c: slots of grt_dev_fns ----

struct grt_buf *gcl_buf_create(struct grt_dev *dev, uint64_t size, enum grt_buf_kind kind);
void gcl_buf_destroy(struct grt_buf *buf);
bool gcl_buf_write(struct grt_buf *buf, uint64_t offset, const void *data, uint64_t size);
bool gcl_buf_read(struct grt_buf *buf, uint64_t offset, void *data, uint64_t size);

struct grt_kernel *gcl_kernel_create(struct grt_dev *dev, const struct grt_kernel_info *info,
                                     const uint32_t *spec_values);
void gcl_kernel_destroy(struct grt_kernel *kernel);
enum grt_status gcl_kernel_ptx(struct grt_dev *dev, const struct grt_kernel_info *info,
                               const uint32_t *spec_values, char **ptx);

void *gcl_cmds_create(struct grt_dev *dev, const struct grt_cmd *cmds, uint32_t count,
                      uint32_t phase_count, enum grt_lane lane, bool timed);
void gcl_cmds_destroy(struct grt_dev *dev, void *native);
bool gcl_cmds_run(struct grt_dev *dev, void *native);
bool gcl_cmds_times(struct grt_dev *dev, void *native, double *begin, double *end);
void gcl_cmds_choose(struct grt_dev *base, void *native, const bool *chosen);
bool gcl_cmds_stamps(struct grt_dev *dev, void *native, struct grt_stamps *stamps);

// ---- address.c ----

// Sets dev->by_address where an address is all that a kernel needs of a buffer.
void gcl_addresses_create(struct gcl_dev *dev, const char *extensions);
void gcl_addresses_destroy(struct gcl_dev *dev);
// Waits for the queue the first time.
bool gcl_buf_address(struct gcl_dev *dev, struct gcl_buf *buf, cl_ulong *address);

// ---- fill.c ----

#define GCL_FILL_REACH ((uint64_t)1 << 32)

// Whether a kernel of our own fills that range.
bool gcl_fill_is_far(const struct gcl_dev *dev, const struct grt_range *range);
// That kernel with its arguments, to be released, and how it is launched; NULL when it failed.
cl_kernel gcl_fill_kernel(struct gcl_dev *dev, const struct grt_range *range, cl_uint value,
                          size_t *global, size_t *local);
void gcl_fills_destroy(struct gcl_dev *dev);

// ---- lanes.c ----

bool gcl_lanes_create(struct gcl_dev *dev, const char *name);
void gcl_lanes_destroy(struct gcl_dev *dev);
bool gcl_wait(struct grt_dev *dev);
uint64_t gcl_lane_mark(struct grt_dev *dev, enum grt_lane lane);
bool gcl_lane_after(struct grt_dev *dev, enum grt_lane lane, uint64_t mark);
bool gcl_lane_passed(struct grt_dev *dev, enum grt_lane lane, uint64_t mark);
bool gcl_lane_wait(struct grt_dev *dev, enum grt_lane lane, uint64_t mark);

// ---- clocks.c ----

bool gcl_clocks(struct grt_dev *dev, double *device, double *host);
// Seconds between the first call of gcl_clocks() and a time of an event.
double gcl_clock_seconds(const struct gcl_dev *dev, cl_ulong nanoseconds);

#endif
