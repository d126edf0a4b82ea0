// SPDX-License-Identifier: Apache-2.0
// Kernels made of a source at run time: the public calls are in gpurt/kernel.h. A source is read
// once and serves several units, each a kernel: files of gpurt before and behind it make the rest.
// Readings are made when a backend first asks.
//
//     source --preprocess--> lists ----> description                          when it is created
//            --preprocess--> OpenCL C --the driver-->                          opencl
//            --preprocess--> GLSL ------glslang-----> SPIR-V                   vulkan
//            --preprocess--> C ---------cc----------> shared object            ref
#ifndef GRT_SOURCE_H
#define GRT_SOURCE_H

#include "backends/kernel_info.h"
#include "gpurt/kernel.h"

struct grt_source_unit {
    const char *before, *behind;  // files of gpurt that are read too, or NULL
    bool opencl_only;
};

// `file` (may be NULL with a text) is its name in messages, and includes are looked for beside it;
// `text` NULL: it is read from there. NULL with a sentence.
struct grt_source *grt_source_read(const char *file, const char *text);
// Once: describes its kernels. False with a sentence.
bool grt_source_set_units(struct grt_source *source, const struct grt_source_unit *units,
                          uint32_t count);
void grt_source_ref(struct grt_source *source);
void grt_source_unref(struct grt_source *source);
const struct grt_kernel_info *grt_source_find(const struct grt_source *source, const char *name);
// Makes the reading that a backend needs, unless it is there. False with a sentence.
bool grt_source_compile(const struct grt_kernel_info *info, enum grt_backend_id backend);
// The description's reading of the source with a file of gpurt behind it; to be freed.
char *grt_source_describe(struct grt_source *source, const char *behind);
// Of its text, without what it includes.
uint64_t grt_source_digest(const struct grt_source *source);
// The name in messages.
const char *grt_source_file(const struct grt_source *source);

#endif
