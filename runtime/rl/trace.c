// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "gpurt/rollout.h"
#include "ops/op_support.h"
#include "shaders/host.h"
#include "shaders/rl/rollout_params.k"

#define WG 64

void grt_op_trace(struct grt_graph *graph, const struct grt_trace_desc *desc) {
    if (!graph || !desc || !desc->env || desc->frames == 0) {
        grt_graph_reject(graph, GRT_INVALID, "trace: no %s",
                         desc && desc->env ? "frames" : "environment");
        return;
    }
    if (desc->env->world) {
        grt_graph_reject(graph, GRT_INVALID, "trace of '%s': its state is not held in registers",
                         desc->env->name);
        return;
    }
    char name[64];
    snprintf(name, sizeof name, "%s_trace", desc->env->name);
    const struct grt_kernel_desc kernel = {
        .name = name, .specs = {{"WG", WG}}, .source = desc->env->source};
    const struct trace_params params = {.frames = desc->frames};
    const struct grt_range ranges[] = {desc->states, desc->obs, desc->shapes};
    const uint32_t groups[3] = {(desc->frames + WG - 1) / WG, 1, 1};
    grt_op_launch(graph, &kernel, &params, sizeof params, ranges, 3, groups);
}
