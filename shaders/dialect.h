// SPDX-License-Identifier: Apache-2.0
// The dialect read as GLSL: compiled to SPIR-V at build time, for the Vulkan backend.
//
// Storage buffers are bindings 0, 1, ... of set 0; parameters are push constants; WG is
// specialization constant 0 and the kernel's own constants follow from 1.
#extension GL_EXT_control_flow_attributes : enable
#extension GL_EXT_shader_16bit_storage : enable

#define GRT_GLSL 1

#define STRUCT(name) struct name
#define FN
#define EXACT precise
#define COUNTER uint  // counts loops in pure functions: see cl/cpu/lib/wide.k
#define u16 uint16_t
#define u32x4 uvec4
#define f32x4 vec4

#define F32(x) float(x)
#define I32(x) int(x)
#define U32(x) uint(x)
#define AS_F32(x) uintBitsToFloat(x)
#define AS_U32(x) floatBitsToUint(x)
#define ISNAN(x) isnan(x)
// Fused where the device does that in one instruction: GPU compilers contract this, and lavapipe,
// which makes a library call of fma(), does not.
#define MAD(a, b, c) ((a) * (b) + (c))
// Whether a*b + c of the functions that follow may be rounded once: drivers of GPUs do where
// nothing is EXACT.
#define CONTRACT(state)
// Four at once, for those who count operations: fused where that is one instruction.
#define F32X4(x, y, z, w) vec4(x, y, z, w)
#define U32X4(x, y, z, w) uvec4(x, y, z, w)
#define SPLAT4(x) vec4(x)
#define MAD4(a, b, c) ((a) * (b) + (c))

// See cl/dialect.h. lavapipe takes both sides of a branch.
#define SOME(x) (SOFTWARE != 0u || (x))
#define NATIVE_RCP(a, otherwise) (SOFTWARE != 0u ? (otherwise) : 1.0f / (a))
#define NATIVE_RSQRT(a, otherwise) (SOFTWARE != 0u ? (otherwise) : inversesqrt(a))
#define NATIVE_COUNT(word, otherwise) (SOFTWARE != 0u ? (otherwise) : uint(bitCount(word)))

// See cl/dialect.h; compilers of SPIR-V leave loads in their loop.
#define ANEW(t) 0u

// An array of a lane's own, its size a specialization constant; `most` is the largest it may be.
#define ARRAY(type, name, count, most) type name[count];
#define UNROLL [[unroll]]
#define ROLLED [[dont_unroll]]
#define ABREAST UNROLL

// 1 on CPU drivers, set by the Vulkan backend; a driver drops the branch that is not taken.
layout(constant_id = 100) const uint SOFTWARE = 0;

// The high word of a 64-bit product. lavapipe makes a 64-bit multiply of umulExtended, and its LLVM
// takes SVE instructions for that wherever the core's name promises them: on virtual machines that
// hide SVE the process dies (SIGILL, Mesa 22.3 on a Neoverse V1 without SVE). There it is put
// together from halves.
uint MULHI(uint a, uint b) {
    if (SOFTWARE != 0u) {
        uint low = (a & 0xffffu) * (b & 0xffffu);
        uint cross = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
        uint other = (a & 0xffffu) * (b >> 16u) + (cross & 0xffffu);
        return (a >> 16u) * (b >> 16u) + (cross >> 16u) + (other >> 16u);
    }
    uint hi;
    uint lo;
    umulExtended(a, b, hi, lo);
    return hi;
}

// A 16-bit buffer element as a number: the bits travel as unsigned integers in every reading.
#define LOAD_U16(array, i) uint(array[i])
#define STORE_U16(array, i, v) array[i] = uint16_t(v)

// A buffer read in vectors of 16 bytes, with an index of its own: what lavapipe reads fast. Its
// storage buffers are read lane by lane through memory, 370 cycles for four lanes of four numbers,
// a texel buffer in 20 (Mesa 22.3, 2026-11). R is the list's word for a binding that is read.
#define TEXELS(R, id, name) layout(set = 0, binding = id) uniform textureBuffer name;
#define FETCH4(array, i) texelFetch(array, int(i))
#define ASK(array, i)  // see cl/dialect.h

#define SPEC(id, name, value) layout(constant_id = id) const uint name = value;
#define ARG_R(id, type, name)                                                                      \
    layout(std430, set = 0, binding = id) readonly buffer b_##name {                               \
        type name[];                                                                               \
    };
#define ARG_W(id, type, name)                                                                      \
    layout(std430, set = 0, binding = id) writeonly buffer b_##name {                              \
        type name[];                                                                               \
    };
#define ARG_U(id, type, name)                                                                      \
    layout(std430, set = 0, binding = id) buffer b_##name {                                        \
        type name[];                                                                               \
    };
// A buffer that functions reach through a handle, a struct: GLSL's functions take no buffers, so
// there it is a global, declared before them, and the handle has no member of it. REACHED declares
// it, REACHED_BY is the member, REACHED_ARG its row in the list of a kernel, REACH_SET fills the
// member in, and REACH names the array.
#define REACHED(id, type, name) ARG_U(id, type, name)
#define REACHED_BY(type, name)
#define REACHED_ARG(U, id, type, name)
#define REACH_SET(handle, name)
#define REACH(handle, name) name

#define SHMEM(type, name, count) shared type name[count];

#define WG gl_WorkGroupSize.x
#define LID gl_LocalInvocationID.x
#define GROUP(axis) gl_WorkGroupID[axis]
#define GROUPS(axis) gl_NumWorkGroups[axis]
#define BARRIER() barrier()

#define KERNEL(name, P, specs, args, shmem)                                                        \
    layout(local_size_x = 64, local_size_x_id = 0) in;                                             \
    specs(SPEC) args(ARG_R, ARG_W, ARG_U) shmem(SHMEM) layout(push_constant) uniform grt_push {    \
        P p;                                                                                       \
    };                                                                                             \
    void main() {
#define END_KERNEL }
#define NONE(X)
