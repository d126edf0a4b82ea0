// SPDX-License-Identifier: Apache-2.0
// Kernels: compiled programs of a device, made from the list in shaders/kernels.h.
//
// A kernel is looked up by name and specialization values. The device keeps it: asking again for
// the same pair costs a look-up, and it is destroyed with the device.
#ifndef GRT_KERNEL_H
#define GRT_KERNEL_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_MAX_SPECS 24

struct grt_spec {
    const char *name;  // "WG" or a constant of the kernel; NULL ends the list
    uint32_t value;
};

struct grt_source;

struct grt_kernel_desc {
    const char *name;
    struct grt_spec specs[GRT_MAX_SPECS];  // what differs from the kernel's defaults
    const struct grt_source *source;       // that it is made of; NULL: one of gpurt's own
};
#define grt_kernel_desc(...) GRT_DESC(struct grt_kernel_desc, __VA_ARGS__)

struct grt_kernel;

// A kernel from source text in gpurt's dialect (shaders/env/README.md lists its words), compiled at
// run time for the device that asks for it: by the driver in OpenCL, by the program glslang for
// Vulkan, by the system's C compiler for ref. Compiled results are cached by content. Its buffers,
// constants and parameters are what its own lists say.
struct grt_source_desc {
    const char *text;  // one kernel; NULL: it is read from `file`
    const char *
        // its name in messages; what it includes is looked for beside it, then among gpurt's own
        file;
};
#define grt_source_desc(...) GRT_DESC(struct grt_source_desc, __VA_ARGS__)

// NULL with a sentence: GRT_BAD_DATA with file and line, or GRT_NO_INPUT. What a compiler finds
// wrong is said by grt_kernel_get(), in the same way.
GRT_API struct grt_source *grt_source_create(const struct grt_source_desc *desc);
// Devices keep what they use of it.
GRT_API void grt_source_destroy(struct grt_source **source);
// Name of its kernel.
GRT_API const char *grt_source_kernel(const struct grt_source *source);

GRT_API const struct grt_kernel *grt_kernel_get(struct grt_dev *dev,
                                                const struct grt_kernel_desc *desc);

// Told before a driver compiles a kernel, or takes a compiled one: the n-th of so many that a graph
// still lacks. NULL: nobody. For the whole process.
typedef void grt_kernel_watch_fn(void *context, const char *name, uint32_t nth, uint32_t of);
GRT_API void grt_kernel_watch(grt_kernel_watch_fn *fn, void *context);

// Whether there is a kernel of this name for the device's backend.
GRT_API bool grt_kernel_exists(const struct grt_dev *dev, const char *name);
// Name of the i-th kernel of the list, or NULL past the last.
GRT_API const char *grt_kernel_name(uint32_t i);

#ifdef __cplusplus
}
#endif
#endif
