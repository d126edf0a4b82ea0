// SPDX-License-Identifier: Apache-2.0
// The tables of kernels and environments, from their lists.
#include "kernels.h"

#include "envs.h"
#include "backends/kernel_info.h"

#define X(readings, folder, name) extern const struct grt_kernel_info grt_kernel_##name;
#define OF_ENV(readings, folder, env, user) X(readings, folder, env##_##user)
#define ENV(kind, name) GRT_OF_ENV(OF_ENV, kind, name)
GRT_KERNELS(X)
GRT_ENVS(ENV)
#undef X

const struct grt_kernel_info *const grt_kernel_table[] = {
#define X(readings, folder, name) &grt_kernel_##name,
    GRT_KERNELS(X) GRT_ENVS(ENV)
#undef X
        NULL,
};

#define X(kind, name) extern const struct grt_env_info grt_env_##name;
GRT_ENVS(X)
#undef X

const struct grt_env_info *const grt_env_table[] = {
#define X(kind, name) &grt_env_##name,
    GRT_ENVS(X)
#undef X
        NULL,
};
