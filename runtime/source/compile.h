// SPDX-License-Identifier: Apache-2.0
// Compilers that are programs: glslang for Vulkan, the system's C compiler for ref. What they make
// is kept in the cache of kernels, by content.
#ifndef GRT_COMPILE_H
#define GRT_COMPILE_H

#include <stddef.h>
#include <stdint.h>

// SPIR-V of a GLSL text, to be freed; NULL with a sentence: GRT_BAD_DATA with the user's file and
// line, or GRT_UNSUPPORTED with the remedy when there is no compiler.
uint32_t *grt_compile_glsl(const char *file, const char *text, size_t *size);
// A shared object of a C text, opened, for dlclose(); NULL with a sentence as above.
void *grt_compile_c(const char *file, const char *text);

#endif
