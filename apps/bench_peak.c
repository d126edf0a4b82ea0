// SPDX-License-Identifier: Apache-2.0
// The most f32 operations a device does: chains of multiply-adds in registers (shaders/core/peak.k),
// in shapes that suit different devices. The fastest sample counts: whatever slows one down, a busy
// neighbour say, is no limit of the device; on CPUs samples are shorter than a slice of the scheduler. GPUs want many lanes, lavapipe a subgroup
// with chains that fit its registers, PoCL one lane with chains enough to keep its units busy.
#include "bench.h"

#include <stdlib.h>

#include "talk.h"

#define STEPS 64u  // of one lane, for each piece of work
#define ROUND 16u  // multiply-adds of a chain in a step: four rounds of four numbers
#define MOST 65536u
#define SLICE_SECONDS 0.002

struct peak_run {
    struct bench *bench;
    struct grt_buf *y;
    uint32_t wg, groups, chains;
    bool phase;
};

static struct grt_graph *record(void *context, uint32_t count) {
    struct peak_run *run = context;
    const struct grt_kernel *kernel = grt_kernel_get(
        run->bench->dev,
        grt_kernel_desc(.name = "peak", .specs = {{"WG", run->wg}, {"CHAINS", run->chains}}));
    struct grt_graph *graph = kernel ? grt_graph_create(run->bench->dev, "bench peak") : NULL;
    const struct {
        uint32_t steps;
        float a, b;
    } params = {STEPS * count, 0.5f, 1.0f};
    if (!graph)
        return NULL;
    if (run->phase)
        grt_graph_phase(graph, "peak");
    grt_graph_dispatch(graph, grt_dispatch(.kernel = kernel, .bindings = {{run->y, 0, 0}},
                                           .params = &params, .params_size = sizeof params,
                                           .groups = {run->groups}));
    if (!grt_graph_bake(graph))
        grt_graph_destroy(&graph);
    return graph;
}

// Whether every chain of every lane has run.
static bool right(struct peak_run *run) {
    size_t count = (size_t)run->groups * run->wg;
    float *y = calloc(count, sizeof *y);
    bool good = y && grt_buf_read(run->y, 0, y, count * sizeof *y);
    for (size_t i = 0; good && i < count; i++)
        good = y[i] == 8.0f * (float)run->chains;
    free(y);
    return good;
}

static double measure(struct peak_run *run) {
    struct bench_timing timing = {.replays = 1, .device_timer = run->phase};
    struct stats stats = {0};
    if (grt_dev_info(run->bench->dev)->caps.software)
        timing.run_seconds = SLICE_SECONDS;
    uint32_t count = bench_fill_run(&timing, MOST, record, run);
    bool good = count && right(run) && bench_time(run->bench, &timing, &stats);
    grt_graph_destroy(&timing.graph);
    double operations = 2.0 * ROUND * STEPS * count * run->chains * (double)run->wg * run->groups;
    return good && stats.min > 0 ? operations / stats.min : 0;
}

double bench_peak_f32(struct bench *bench) {
    const struct grt_caps *caps = &grt_dev_info(bench->dev)->caps;
    uint32_t units = caps->compute_units ? caps->compute_units : 16;
    uint32_t wide = caps->software ? (caps->subgroup > 1 ? caps->subgroup : 16) : 256;
    const struct {
        uint32_t wg, groups, chains;
    } shapes[] = {
        {wide, units * 16, 4},
        {caps->software ? 1 : wide, units * 16, 16},
    };
    if (bench->peak_f32 > 0)
        return bench->peak_f32;
    talk_progress("gemm: what the device can do at most");
    struct peak_run run = {.bench = bench, .phase = caps->timestamps != 0};
    uint64_t bytes = (uint64_t)units * 16 * wide * sizeof(float);
    run.y = grt_buf_create(bench->dev, grt_buf_desc(.size = bytes, .label = "bench peak"));
    for (size_t i = 0; run.y && i < sizeof shapes / sizeof *shapes; i++) {
        run.wg = shapes[i].wg;
        run.groups = shapes[i].groups;
        run.chains = shapes[i].chains;
        double peak = measure(&run);
        bench->peak_f32 = peak > bench->peak_f32 ? peak : bench->peak_f32;
    }
    grt_buf_destroy(&run.y);
    return bench->peak_f32;
}
