// SPDX-License-Identifier: Apache-2.0
// The core of gpurt: devices, buffers, kernels, graphs, tensor plans, ops. Data, networks,
// learners, stores and runs have headers of their own.
#ifndef GPURT_H
#define GPURT_H

#include "buffer.h"
#include "conv.h"
#include "device.h"
#include "env.h"
#include "gemm.h"
#include "graph.h"
#include "kernel.h"
#include "ops.h"
#include "plan.h"
#include "profile.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

// "0.1.0"
GRT_API const char *grt_version(void);
// Whether the compiler of this build knew cooperative matrices, so that their kernels are in it.
GRT_API bool grt_built_with_coopmat(void);

#ifdef __cplusplus
}
#endif
#endif
