// SPDX-License-Identifier: Apache-2.0
// The environments that are built in, in the order of GRT_ENVS.
#ifndef GRT_SHADERS_ENVS_H
#define GRT_SHADERS_ENVS_H

struct grt_env_info;

// Ends with NULL.
extern const struct grt_env_info *const grt_env_table[];

#endif
