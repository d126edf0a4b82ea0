// SPDX-License-Identifier: Apache-2.0
// Every kernel of gpurt, one row each: X(folder, name) is the file shaders/folder/name.k, and the
// kernel inside it has the same name. The build reads this list to make SPIR-V and OpenCL text; the
// C compiler reads it to make the table of kernels. A new kernel is one file and one row.
#define GRT_KERNELS(X)                                                                             \
    X(core, fill)                                                                                  \
    X(core, fill16)                                                                                \
    X(core, copy)                                                                                  \
    X(core, copy4)                                                                                 \
    X(core, widen)                                                                                 \
    X(core, narrow)                                                                                \
    X(core, recode)                                                                                \
    X(core, map)                                                                                   \
    X(core, reduce)                                                                                \
    X(core, argmax)                                                                                \
    X(core, transpose)                                                                             \
    X(core, transpose16)                                                                           \
    X(core, random)                                                                                \
    X(core, tick)                                                                                  \
    X(env, cartpole)                                                                               \
    X(gemm, gemm_plain_f32)                                                                        \
    X(gemm, gemm_plain_16)                                                                         \
    X(gemm, gemm_plain_16f32)                                                                      \
    X(gemm, gemm_tiled_f32)                                                                        \
    X(gemm, gemm_tiled_16)                                                                         \
    X(gemm, gemm_tiled_16f32)
