// SPDX-License-Identifier: Apache-2.0
#include "gpurt/rollout.h"

#include <stdio.h>

#include "device/kernels.h"
#include "ops/op_support.h"
#include "gpurt/profile.h"
#include "shaders/host.h"
#include "shaders/es/es_params.k"
#include "shaders/rl/rollout_params.k"

#define MAX_NAME 64
#define LEAST_WG 8
#define FLAT 64  // lanes where nothing is shared

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

// The kernel's name, and how many environments it runs at once in vectors: PoCL has a kernel of its
// own for that (cl/cpu/lib/wide.k).
static uint32_t choose_kernel(const struct grt_dev *dev, const struct grt_rollout_desc *desc,
                              char kernel[MAX_NAME]) {
    const struct grt_dev_info *info = grt_dev_info(dev);
    snprintf(kernel, MAX_NAME, "%s_rollout_wide", desc->env->name);
    bool usable = !desc->narrow && info->backend == GRT_BACKEND_OPENCL && info->caps.software &&
                  grt_kernel_known(
                      dev, &(struct grt_kernel_desc){.name = kernel, .source = desc->env->source});
    if (!usable) {
        snprintf(kernel, MAX_NAME, "%s_rollout", desc->env->name);
        return 1;
    }
    return info->caps.vector >= 4 && info->caps.vector <= 16 ? info->caps.vector : 4;
}

// Hidden units whose weights shared memory holds, beside the actions' bias and the normalisation;
// all of them in the kernel in vectors, which keeps them in memory of its own.
static uint32_t held_units(const struct grt_dev *dev, const struct grt_rollout_desc *desc) {
    const struct grt_env_info *env = desc->env;
    uint32_t hidden = desc->policy ? desc->policy->hidden : 0;
    char name[MAX_NAME];
    if (hidden == 0 || choose_kernel(dev, desc, name) > 1) {
        return hidden;
    }
    uint32_t four = grt_policy_quads_of_four(env);
    uint32_t others = grt_policy_quads(desc->policy, env) - hidden / 4 * four + (env->obs + 1) / 2;
    uint32_t room = grt_dev_info(dev)->caps.shmem / 16;
    uint32_t held = room > others ? (room - others) / four * 4 : 0;
    return held < hidden ? held : hidden;
}

uint64_t grt_op_rollout_scratch(const struct grt_dev *dev, const struct grt_rollout_desc *desc) {
    if (!dev || !desc || !desc->env || !desc->policy ||
        held_units(dev, desc) == desc->policy->hidden) {
        return 0;
    }
    return (uint64_t)16 * grt_policy_quads(desc->policy, desc->env) * desc->sides;
}

static bool check(struct grt_graph *graph, const struct grt_rollout_desc *desc) {
    if (!graph || !desc || !desc->env) {
        grt_graph_reject(graph, GRT_INVALID, "rollout: no %s", desc ? "environment" : "desc");
        return false;
    }
    if (desc->env->world) {
        grt_graph_reject(graph, GRT_INVALID, "rollout of '%s': its state is not held in registers",
                         desc->env->name);
        return false;
    }
    if (desc->envs == 0 || desc->sides == 0 || desc->steps == 0) {
        grt_graph_reject(graph, GRT_INVALID,
                         "rollout of '%s': %u environments, %u sides and %u steps; each must be at "
                         "least 1",
                         desc->env->name, desc->envs, desc->sides, desc->steps);
        return false;
    }
    if (desc->policy && !grt_policy_check(desc->policy)) {
        grt_graph_reject(graph, GRT_INVALID, "%s", grt_last_error());
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
    return grt_op_scratch(graph, "rollout", desc->env->name, desc->scratch,
                          grt_op_rollout_scratch(grt_graph_dev(graph), desc));
}

// The policies of all sides in device memory, for the units that shared memory does not hold.
static void perturb(struct grt_graph *graph, const struct grt_rollout_desc *desc, uint32_t quads) {
    const struct es_perturb_params params = {
        .quads = quads, .direction = desc->direction, .sigma = desc->sigma};
    const struct grt_range ranges[] = {desc->control, desc->theta, desc->scratch};
    const uint32_t groups[3] = {(quads + FLAT - 1) / FLAT, desc->sides, 1};
    grt_op_launch(graph, grt_kernel_desc(.name = "es_perturb", .specs = {{"WG", FLAT}}), &params,
                  sizeof params, ranges, 3, groups);
}

void grt_op_rollout(struct grt_graph *graph, const struct grt_rollout_desc *desc) {
    // After a mistake nothing is recorded: a kernel that does not build is not asked for at every
    // step.
    if (!check(graph, desc) || grt_graph_rejected(graph)) {
        return;
    }
    struct grt_dev *dev = grt_graph_dev(graph);
    const struct grt_policy *policy = desc->policy;
    char name[MAX_NAME];
    uint32_t width = choose_kernel(dev, desc, name);
    uint32_t block = desc->wg ? desc->wg : grt_rollout_wg(dev, desc->envs);
    uint32_t quads = policy ? grt_policy_quads(policy, desc->env) : 1;
    uint32_t hidden = policy ? policy->hidden : 0;
    uint32_t held = held_units(dev, desc);
    // An episode's policies are made when it begins.
    if (held < hidden && desc->first == 0) {
        perturb(graph, desc, quads);
    }
    struct grt_kernel_desc kernel = {
        .name = name,
        .source = desc->env->source,
        .specs = {{"WG", width > 1 ? 1 : block},
                  {"POLICY", !policy          ? 0
                             : policy->hidden ? 2
                                              : 1},
                  {"QUADS", quads - (hidden - held) / 4 * grt_policy_quads_of_four(desc->env)},
                  {"HIDDEN", hidden},
                  {"HELD", held},
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
    const struct rollout_params params = {.envs = desc->envs,
                                          .direction = desc->direction,
                                          .lanes = desc->envs * desc->sides,
                                          .first = desc->first,
                                          .steps = desc->steps,
                                          .phase = desc->phase,
                                          .sigma = desc->sigma};
    struct grt_dispatch dispatch = {
        .kernel = grt_kernel_promise(dev, &kernel),
        .params = &params,
        .params_size = sizeof params,
        .groups = {(desc->envs + block - 1) / block, desc->sides, 1},
        .bindings = {desc->control, desc->theta, desc->norm, desc->state, desc->score, desc->sums,
                     held < hidden ? desc->scratch : desc->theta},  // which nobody looks at
    };
    if (!dispatch.kernel) {
        grt_graph_reject(graph, grt_last_status(), "%s", grt_last_error());
        return;
    }
    grt_graph_dispatch(graph, &dispatch);
}
