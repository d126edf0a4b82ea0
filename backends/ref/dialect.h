// SPDX-License-Identifier: Apache-2.0
// The dialect read as C11, for the ref backend; and, from the same lists, the kernel's description
// that all backends use: the C compiler writes the binding tables.
//
// One call of the lane function is one invocation. A kernel with shared memory runs its lanes as
// coroutines that take turns at each barrier (lane.c); one without runs them in a plain loop.
// Built with -ffp-contract=off: EXACT holds everywhere.
#ifndef GRT_REF_DIALECT_H
#define GRT_REF_DIALECT_H

#include <math.h>
#include <string.h>

#include "backends/kernel_info.h"
#include "backends/ref/ref_lane.h"

#define GRT_C 1

typedef uint32_t uint;
typedef uint16_t u16;
typedef struct {
    uint32_t x, y, z, w;
} u32x4;

typedef struct {
    float x, y, z, w;
} f32x4;

#define STRUCT(name)                                                                               \
    typedef struct name name;                                                                      \
    struct name
#define FN static inline
#define EXACT
#define COUNTER uint  // counts loops in pure functions: see cl/cpu/lib/wide.k

#define F32(x) ((float)(x))
#define I32(x) ((int32_t)(x))
#define U32(x) ((uint32_t)(x))
#define ISNAN(x) (isnan(x) != 0)
#define MULHI(a, b) ((uint32_t)(((uint64_t)(a) * (uint64_t)(b)) >> 32))

static inline float AS_F32(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t AS_U32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

#define MAD(a, b, c) fmaf(a, b, c)
#define CONTRACT(state)
#define F32X4(a, b, c, d) ((f32x4){a, b, c, d})
#define U32X4(a, b, c, d) ((u32x4){a, b, c, d})
#define SPLAT4(v) ((f32x4){v, v, v, v})
static inline f32x4 MAD4(f32x4 a, f32x4 b, f32x4 c) {
    return (f32x4){MAD(a.x, b.x, c.x), MAD(a.y, b.y, c.y), MAD(a.z, b.z, c.z), MAD(a.w, b.w, c.w)};
}
#define ANEW(t) 0u
#define SOME(x) (x)
#define NATIVE_RCP(a, otherwise) (otherwise)
#define NATIVE_RSQRT(a, otherwise) (otherwise)
#define NATIVE_COUNT(word, otherwise) (otherwise)
#define ARRAY(type, name, count, most) type name[most];
#define UNROLL
#define ROLLED
#define ABREAST

#define LOAD_U16(array, i) ((uint32_t)(array)[i])
#define STORE_U16(array, i, v) ((array)[i] = (uint16_t)(v))

typedef f32x4 texels;
#define TEXELS(R, id, name) R(id, texels, name)
#define FETCH4(array, i) (array)[i]
#define ASK(array, i) ((void)(i))

// Locals of macros end in _, so that they do not clash with a kernel's own names.
#define SPEC_ROW(id, name, value) {#name, value},
#define SPEC_LOCAL(id, name, value)                                                                \
    const uint32_t name = spec_[id];                                                               \
    (void)name;
// In two steps: a type given by a macro is read before it is made a string.
#define ROW(name, type, access) {#name, #type, access},
#define ROW_R(id, type, name) ROW(name, type, GRT_READ)
#define ROW_W(id, type, name) ROW(name, type, GRT_WRITE)
#define ROW_U(id, type, name) ROW(name, type, GRT_UPDATE)
#define PTR_R(id, type, name)                                                                      \
    const type *name = self_->bindings[id];                                                        \
    (void)name;
#define PTR_W(id, type, name)                                                                      \
    type *name = self_->bindings[id];                                                              \
    (void)name;
// See shaders/dialect.h.
#define REACHED(id, type, name)
#define REACHED_BY(type, name) type *name;
#define REACHED_ARG(U, id, type, name) U(id, type, name)
#define REACH_SET(handle, name) handle.name = name;
#define REACH(handle, name) (handle).name
#define SHMEM_SIZE(type, name, count) size_ += (uint32_t)(sizeof(type) * (count) + 15) & ~15u;
#define SHMEM_PTR(type, name, count)                                                               \
    type *name = (void *)(self_->shmem + size_);                                                   \
    SHMEM_SIZE(type, name, count)

#define LID (self_->lid)
#define GROUP(axis) (self_->group[axis])
#define GROUPS(axis) (self_->groups[axis])
#define BARRIER() self_->barrier(self_)

// In two steps, so that a name given by a macro is read before it is pasted.
#define KERNEL(name_, P, specs_, args_, shmem_) KERNEL_OF(name_, P, specs_, args_, shmem_)
#define KERNEL_OF(name_, P, specs_, args_, shmem_)                                                 \
    static void name_##_lane(struct ref_lane *self_);                                              \
    DESCRIPTION(name_, P, specs_, args_, shmem_, name_##_lane, NULL)                               \
    static void name_##_lane(struct ref_lane *self_) {                                             \
        const uint32_t *spec_ = self_->spec;                                                       \
        SPEC_LOCAL(0, WG, 0)                                                                       \
        specs_(SPEC_LOCAL) args_(PTR_R, PTR_W, PTR_W) uint32_t size_ = 0;                          \
        shmem_(SHMEM_PTR)(void) size_;                                                             \
        P p;                                                                                       \
        memcpy(&p, self_->params, sizeof p);
#define END_KERNEL }

// A kernel of one GPU language: the description without a C reading.
#define DESCRIBE(name_, P, specs_, args_, shmem_)                                                  \
    DESCRIPTION(name_, P, specs_, args_, shmem_, NULL, NULL)
// The same for one vendor's devices, named by a string.
#define DESCRIBE_FOR(vendor_, name_, P, specs_, args_, shmem_)                                     \
    DESCRIPTION(name_, P, specs_, args_, shmem_, NULL, vendor_)

#define DESCRIPTION(name_, P, specs_, args_, shmem_, lane_, vendor_)                               \
    DESCRIPTION_OF(name_, P, specs_, args_, shmem_, lane_, vendor_)
#define DESCRIPTION_OF(name_, P, specs_, args_, shmem_, lane_, vendor_)                            \
    static uint32_t name_##_shmem_size(const struct grt_kernel_info *info_,                        \
                                       const uint32_t *spec_) {                                    \
        (void)info_;                                                                               \
        SPEC_LOCAL(0, WG, 0)                                                                       \
        specs_(SPEC_LOCAL) uint32_t size_ = 0;                                                     \
        shmem_(SHMEM_SIZE) return size_;                                                           \
    }                                                                                              \
    static const struct grt_spec_info name_##_spec_table[] = {{"WG", 64}, specs_(SPEC_ROW)};       \
    static const struct grt_arg_info name_##_arg_table[] = {args_(ROW_R, ROW_W, ROW_U)};           \
    extern const struct grt_kernel_info grt_kernel_##name_;                                        \
    const struct grt_kernel_info grt_kernel_##name_ = {                                            \
        .name = #name_,                                                                            \
        .specs = name_##_spec_table,                                                               \
        .spec_count = sizeof name_##_spec_table / sizeof name_##_spec_table[0],                    \
        .args = name_##_arg_table,                                                                 \
        .arg_count = sizeof name_##_arg_table / sizeof name_##_arg_table[0],                       \
        .params_size = sizeof(P),                                                                  \
        .shmem = name_##_shmem_size,                                                               \
        .lane = lane_,                                                                             \
        .spirv = GRT_SPIRV,                                                                        \
        .spirv_size = GRT_SPIRV_SIZE,                                                              \
        .opencl = (const char *)GRT_OPENCL,                                                        \
        .vendor = vendor_,                                                                         \
        .imports = GRT_IMPORTS,                                                                    \
    };
#define NONE(X)

#endif
