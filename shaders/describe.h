// SPDX-License-Identifier: Apache-2.0
// The dialect read as a description, without any compiler: what is left of a kernel is its lists,
// in the form that runtime/source/describe.c reads. Everything else passes through and is not
// looked at.
#define GRT_DESCRIBE 1

#define STRUCT(name) grt_struct name
#define REACHED(id, type, name)
#define REACHED_BY(type, name)
#define REACHED_ARG(U, id, type, name) U(id, type, name)
#define REACH_SET(handle, name)
#define TEXELS(R, id, name) R(id, texels, name)

#define KERNEL(name, P, specs, args, shmem) DESCRIBE(name, P, specs, args, shmem)
#define END_KERNEL
#define DESCRIBE(name, P, specs, args, shmem)                                                      \
    grt_kernel name P {                                                                            \
        specs(grt_spec) args(grt_read, grt_write, grt_update) shmem(grt_shmem)                     \
    }
#define DESCRIBE_FOR(vendor, name, P, specs, args, shmem) DESCRIBE(name, P, specs, args, shmem)
#define NONE(X)
#define U32(x) (x)
