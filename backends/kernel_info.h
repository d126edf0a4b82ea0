// SPDX-License-Identifier: Apache-2.0
// What is known of a kernel before run time, made by the lists of the dialect. The C reading
// includes this file, at run time too: it takes nothing of gpurt.
#ifndef GRT_KERNEL_INFO_H
#define GRT_KERNEL_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum grt_access { GRT_READ, GRT_WRITE, GRT_UPDATE };

struct grt_arg_info {
    const char *name;
    const char *type;  // "float", "uint", "int", "u16", a vector, or "texels"
    enum grt_access access;
};

struct grt_spec_info {
    const char *name;
    uint32_t value;  // default
};

struct ref_lane;

// Everything about a kernel that is known before run time. Spec 0 is WG, the workgroup size. A
// kernel of one GPU language has only that reading; the others are NULL.
struct grt_kernel_info {
    const char *name;
    const struct grt_spec_info *specs;
    uint32_t spec_count;
    const struct grt_arg_info *args;
    uint32_t arg_count;
    uint32_t params_size;
    // Bytes of shared memory.
    uint32_t (*shmem)(const struct grt_kernel_info *info, const uint32_t *spec_values);
    void (*lane)(struct ref_lane *lane);  // the C reading
    const uint32_t *spirv;                // the GLSL reading
    size_t spirv_size;                    // bytes
    const char *opencl;                   // the OpenCL reading
    // Part of the name of the only vendor whose devices can build it, or NULL. Not all of them may:
    // whoever uses it asks grt_kernel_builds() first.
    const char *vendor;
    // Made of a source at run time, or NULL: its readings come when they are needed
    // (runtime/source/source.h).
    struct grt_source *source;
    const char *file;  // of such: its name in messages
    bool opencl_only;  // of such: it has no other reading
    bool imports;  // its OpenCL reading can reach a Vulkan device as PTX (runtime/device/import.c)
};

// Ends with NULL.
extern const struct grt_kernel_info *const grt_kernel_table[];

#endif
