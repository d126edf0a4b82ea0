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

struct grt_kernel_desc {
    const char *name;
    struct grt_spec specs[GRT_MAX_SPECS];  // what differs from the kernel's defaults
};
#define grt_kernel_desc(...) GRT_DESC(struct grt_kernel_desc, __VA_ARGS__)

struct grt_kernel;

GRT_API const struct grt_kernel *grt_kernel_get(struct grt_dev *dev,
                                                const struct grt_kernel_desc *desc);

// Told before a driver compiles a kernel, or takes a compiled one: the n-th of so many that a graph still
// lacks. NULL: nobody. For the whole process.
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
