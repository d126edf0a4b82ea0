// SPDX-License-Identifier: Apache-2.0
// The dialect read as OpenCL C 1.2: expanded at build time, embedded as text, compiled at run time.
//
// Storage buffers are the first arguments in binding order, then come the places in them where each
// binding begins, and the parameters, by value. Sub-buffers would say the same, but NVIDIA's driver
// faults when overlapping ones are released out of order and slows down with their number
// (580.159.04, 2026-11). WG and the kernel's own constants arrive as -D options of the build.
//
// Built-in functions of the language are avoided where an expression does: PoCL on aarch64 compiles
// its own for another processor than kernels, so none is inlined and no loop with one becomes
// vectors (PoCL 3.1, 2026-11).
#pragma OPENCL FP_CONTRACT OFF

#define GRT_OPENCL_C 1

#define STRUCT(name)                                                                               \
    typedef struct name name;                                                                      \
    struct name
#define FN static inline __attribute__((always_inline))
#define EXACT
// Counts loops in pure functions; one number in every reading (cpu/lib/wide.k).
#define COUNTER uint
#define u16 ushort
#define u32x4 uint4
#define f32x4 float4

#define F32(x) ((float)(x))
#define I32(x) ((int)(x))
#define U32(x) ((uint)(x))
#define AS_F32(x) as_float(x)
#define AS_U32(x) as_uint(x)
#define ISNAN(x) ((x) != (x))
#define MULHI(a, b) ((uint)(((ulong)(uint)(a) * (uint)(b)) >> 32))
// What the backend says makes the instruction: see make_options() there.
#define MAD(a, b, c) GRT_FMA(a, b, c)
// Whether a*b + c of the functions that follow may be rounded once: CONTRACT(ON), and CONTRACT(OFF)
// at their end.
#define PRAGMA(words) _Pragma(#words)
#define CONTRACT(state) PRAGMA(OPENCL FP_CONTRACT state)

#define F32X4(x, y, z, w) ((float4)(x, y, z, w))
#define U32X4(x, y, z, w) ((uint4)(x, y, z, w))
#define SPLAT4(x) ((float4)(x))
FN float4 MAD4(float4 a, float4 b, float4 c) {
#pragma OPENCL FP_CONTRACT ON
    return a * b + c;
}

// Guards work that changes nothing where x is false, so that it may be left out there: a branch on
// GPUs, where the lanes of a subgroup mostly agree; one branch for all numbers in the wide reading
// (cpu/lib/wide.k).
#define SOME(x) (x)
// 1/a and 1/sqrt(a) in one instruction where the backend says that the device is a GPU: see
// lib/quick.k.
#define NATIVE_RCP(a, otherwise) (GRT_NATIVE ? native_recip(a) : (otherwise))
#define NATIVE_RSQRT(a, otherwise) (GRT_NATIVE ? native_rsqrt(a) : (otherwise))
// Set bits of a word, there too.
#define NATIVE_COUNT(word, otherwise) (GRT_NATIVE ? popcount(word) : (otherwise))

// 0 in round t of a loop, which no compiler knows: what is indexed with it is loaded in every
// round. NVIDIA's moves loads and addresses that do not change out of a loop, more of them than
// there are registers (rollout.k).
#define ANEW(t) ((t) >> 31u)

#define ARRAY(type, name, count, most) type name[count];
#define UNROLL __attribute__((opencl_unroll_hint))
// A loop that stays one.
#define ROLLED __attribute__((opencl_unroll_hint(1)))
// Rounds of the loop that follows wait for nothing of each other: a CPU takes 16 at once.
#if GRT_NATIVE
#define ABREAST UNROLL
#else
#define ABREAST PRAGMA(clang loop vectorize_width(4) interleave_count(4))
#endif

#define LOAD_U16(array, i) ((uint)(array)[i])
#define STORE_U16(array, i, v) ((array)[i] = (ushort)(v))

#define TEXELS(R, id, name) R(id, float4, name)
#define FETCH4(array, i) (array)[i]
// Element i will be read soon: a CPU brings it nearer. GRT_ASK comes with the build.
#define ASK(array, i) GRT_ASK((array) + (i))

#define SPEC(id, name, value)
// GRT_BUFFER and GRT_WHOLE come with the build: nothing where bindings begin at addresses and there
// are no buffers (backends/opencl/address.c, runtime/device/import.c), else what stands in them,
// and the buffer's beginning.
#define ARG_R(id, type, name) GRT_BUFFER(global const type *restrict name##_whole)
#define ARG_W(id, type, name) GRT_BUFFER(global type *restrict name##_whole)
#define ARG_U(id, type, name) ARG_W(id, type, name)
#define BINDING_R(id, type, name)                                                                  \
    global const type *restrict name = (global const type *)(GRT_WHOLE(name##_whole) places.of[id]);
#define BINDING_W(id, type, name)                                                                  \
    global type *restrict name = (global type *)(GRT_WHOLE(name##_whole) places.of[id]);
#define BINDING_U(id, type, name) BINDING_W(id, type, name)
typedef struct {
    ulong of[12];
} binding_places;
// See shaders/dialect.h.
#define REACHED(id, type, name)
#define REACHED_BY(type, name) global type *name;
#define REACHED_ARG(U, id, type, name) U(id, type, name)
#define REACH_SET(handle, name) handle.name = name;
#define REACH(handle, name) (handle).name
#define SHMEM(type, name, count) local type name[count];

#define LID ((uint)get_local_id(0))
#define GROUP(axis) ((uint)get_group_id(axis))
#define GROUPS(axis) ((uint)get_num_groups(axis))
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)

// The arguments of a kernel, and what its body begins with.
#define ARGS(args, P) args(ARG_R, ARG_W, ARG_U) const binding_places places, const P p
#define BINDINGS(args) args(BINDING_R, BINDING_W, BINDING_U)
#define KERNEL(name, P, specs, args, shmem)                                                        \
    kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void name(ARGS(args, P)) {              \
        BINDINGS(args)                                                                             \
        shmem(SHMEM)
#define END_KERNEL }
#define NONE(X)
