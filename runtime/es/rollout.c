// SPDX-License-Identifier: Apache-2.0
#include "rollout.h"

#include <stdio.h>

#include "../device.h"
#include "../graph_parts.h"
#include "../profile.h"
#include "../report.h"

#define LEAST_WG 8

// No larger than needed: idle lanes cost time on CPU drivers.
uint32_t grt_rollout_wg(const struct grt_dev *dev, uint32_t envs) {
    const struct grt_caps *caps = &grt_dev_info(dev)->caps;
    uint32_t wg = grt_profile_whole(grt_dev_profile(dev), GRT_KEY_ROLLOUT_WG);
    wg = wg < caps->max_wg ? wg : caps->max_wg;
    while (wg / 2 >= envs && wg / 2 >= LEAST_WG) {
        wg /= 2;
    }
    return wg;
}

// PoCL runs a kernel of its own, in vectors (cl/lib/wide.k); 1 where there is none.
static uint32_t vector_width(const struct grt_dev *dev, const char *kernel) {
    const struct grt_dev_info *info = grt_dev_info(dev);
    bool usable = info->backend == GRT_BACKEND_OPENCL && info->caps.software &&
                  grt_kernel_exists(dev, kernel);
    return !usable ? 1 : info->caps.vector >= 4 && info->caps.vector <= 16 ? info->caps.vector : 4;
}

static bool check(struct grt_graph *graph, const struct grt_rollout_desc *desc) {
    if (!graph || !desc || !desc->env) {
        grt_graph_reject(graph, GRT_INVALID, "rollout: no %s", desc ? "environment" : "desc");
        return false;
    }
    if (desc->envs == 0 || desc->sides == 0 || desc->steps == 0) {
        grt_graph_reject(graph, GRT_INVALID,
                         "rollout of '%s': %u environments, %u sides and %u steps; each must be at "
                         "least 1",
                         desc->env->name, desc->envs, desc->sides, desc->steps);
        return false;
    }
    // Indices of state, score and sums are counted in 32 bits.
    uint64_t rows = desc->env->state > 2 * desc->env->obs ? desc->env->state : 2 * desc->env->obs;
    if ((uint64_t)desc->envs * desc->sides * rows >= (uint64_t)1 << 32) {
        grt_graph_reject(graph, GRT_INVALID,
                         "rollout of '%s': %u environments for each of %u sides are more than one "
                         "launch can count; use fewer directions at once",
                         desc->env->name, desc->envs, desc->sides);
        return false;
    }
    return true;
}

bool grt_rollout_fits(struct grt_dev *dev, const struct grt_policy *policy,
                      const struct grt_env_info *env) {
    uint32_t shmem = grt_dev_info(dev)->caps.shmem;
    uint64_t wanted = (uint64_t)grt_policy_quads(policy, env) * 16 + 8 * env->obs;
    return wanted <= shmem ||
           grt_fail(GRT_UNSUPPORTED,
                    "a policy of %u hidden units needs %llu bytes of shared memory and %s has %u; "
                    "use fewer, or another device",
                    policy->hidden, (unsigned long long)wanted, grt_dev_info(dev)->selector, shmem);
}

void grt_op_rollout(struct grt_graph *graph, const struct grt_rollout_desc *desc) {
    // After a mistake nothing is recorded: a kernel that does not build is not asked for at every step.
    if (!check(graph, desc) || graph->mistake != GRT_OK) {
        return;
    }
    struct grt_dev *dev = grt_graph_dev(graph);
    const struct grt_policy *policy = desc->policy;
    char wide[64];
    snprintf(wide, sizeof wide, "%s_wide", desc->env->name);
    uint32_t width = desc->narrow ? 1 : vector_width(dev, wide);
    uint32_t block = desc->wg ? desc->wg : grt_rollout_wg(dev, desc->envs);
    struct grt_kernel_desc kernel = {
        .name = width > 1 ? wide : desc->env->name,
        .specs = {{"WG", width > 1 ? 1 : block},
                  {"POLICY", !policy          ? 0
                             : policy->hidden ? 2
                                              : 1},
                  {"QUADS", policy ? grt_policy_quads(policy, desc->env) : 1},
                  {"HIDDEN", policy && policy->hidden ? policy->hidden : GRT_POLICY_LEAST},
                  {"TANH", policy && policy->tanh},
                  {"BIAS", policy && policy->bias},
                  {"NORM", desc->normalise},
                  {"SHIFT", GRT_ROLLOUT_SHIFT},
                  {"RESTART", desc->restart}},
    };
    if (width > 1) {
        uint32_t count = 0;
        while (kernel.specs[count].name) {
            count++;
        }
        kernel.specs[count] = (struct grt_spec){"WIDTH", width};
        kernel.specs[count + 1] = (struct grt_spec){"BLOCK", block};
    }
    const struct {
        uint32_t envs, direction, lanes, first, steps, phase;
        float sigma;
    } params = {desc->envs,  desc->direction, desc->envs * desc->sides, desc->first, desc->steps,
                desc->phase, desc->sigma};
    struct grt_dispatch dispatch = {
        .kernel = grt_kernel_get(dev, &kernel),
        .params = &params,
        .params_size = sizeof params,
        .groups = {(desc->envs + block - 1) / block, desc->sides, 1},
        .bindings = {desc->control, desc->theta, desc->norm, desc->state, desc->score, desc->sums},
    };
    if (!dispatch.kernel) {
        grt_graph_reject(graph, grt_last_status(), "%s", grt_last_error());
        return;
    }
    grt_graph_dispatch(graph, &dispatch);
}
