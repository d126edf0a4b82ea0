// SPDX-License-Identifier: Apache-2.0
// The most operations a device does, by kernels that do nothing but multiply and add in registers.
//
// f32 arithmetic: chains of multiply-adds (shaders/core/peak.k), in shapes that suit different
// devices. GPUs want many lanes, lavapipe a subgroup with chains that fit its registers, PoCL one
// lane with vectors and chains enough to keep its units busy (cl/cpu/peak_panel.k). Matrix units:
// the instruction of the variant that is measured.
//
// The fastest sample counts: whatever slows one down, a busy neighbour say, is no limit of the
// device; on CPUs samples are shorter than a slice of the scheduler.
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_peaks.h"
#include "base/clock.h"
#include "cli/talk.h"
#include "shaders/host.h"
#include "shaders/lib/op_params.k"

#define STEPS 64u  // of one lane, for each piece of work
#define MOST 65536u
#define SLICE_SECONDS 0.002

struct peak_run {
    struct bench *bench;
    struct grt_buf *y;
    struct grt_kernel_desc kernel;
    float a, b;
    uint32_t wg, groups;
    double operations;      // of a workgroup in a step
    double result, gained;  // what a lane's y is: a number, or so much for each step
    bool phase;
};

static struct grt_graph *record(void *context, uint32_t count) {
    struct peak_run *run = context;
    const struct grt_kernel *kernel = grt_kernel_get(run->bench->dev, &run->kernel);
    struct grt_graph *graph = kernel ? grt_graph_create(run->bench->dev, "bench peak") : NULL;
    const struct peak_params params = {.steps = STEPS * count, .a = run->a, .b = run->b};
    if (!graph) {
        return NULL;
    }
    if (run->phase) {
        grt_graph_phase(graph, "peak");
    }
    grt_graph_dispatch(graph, grt_dispatch(.kernel = kernel, .bindings = {{run->y, 0, 0}},
                                           .params = &params, .params_size = sizeof params,
                                           .groups = {run->groups}));
    if (!grt_graph_bake(graph)) {
        grt_graph_destroy(&graph);
    }
    return graph;
}

// Whether every chain of every lane has run.
static bool right(struct peak_run *run, uint32_t steps) {
    size_t count = (size_t)run->groups * run->wg;
    float *y = calloc(count, sizeof *y);
    bool good = y && grt_buf_read(run->y, 0, y, count * sizeof *y);
    double want = run->result + run->gained * steps;
    for (size_t i = 0; good && i < count; i++) {
        good = fabs((double)y[i] - want) <= 1e-5 * want;  // sums of 64 numbers round
    }
    free(y);
    return good;
}

// Operations a second; 0 when a call failed or the result was wrong.
static double measure(struct peak_run *run) {
    struct bench_timing timing = {.replays = 1, .device_timer = run->phase};
    struct stats stats = {0};
    if (grt_dev_info(run->bench->dev)->caps.software) {
        timing.run_seconds = SLICE_SECONDS;
    }
    uint32_t count = bench_fill_run(&timing, MOST, record, run);
    bool good = count && right(run, STEPS * count) && bench_time(run->bench, &timing, &stats);
    grt_graph_destroy(&timing.graph);
    return good && stats.min > 0 ? run->operations * run->groups * STEPS * count / stats.min : 0;
}

static uint32_t units(const struct bench *bench) {
    uint32_t count = grt_dev_info(bench->dev)->caps.compute_units;
    return count ? count : 16;
}

// 0 where the device has no such kernel: Vulkan imports not all of those that OpenCL has.
static double measure_with(struct peak_run *run, uint32_t groups) {
    if (!grt_kernel_exists(run->bench->dev, run->kernel.name)) {
        return 0;
    }
    run->groups = groups;
    run->phase = grt_dev_info(run->bench->dev)->caps.timestamps != 0;
    run->y = grt_buf_create(
        run->bench->dev,
        grt_buf_desc(.size = (uint64_t)groups * run->wg * sizeof(float), .label = "bench peak"));
    double peak = run->y ? measure(run) : 0;
    grt_buf_destroy(&run->y);
    return peak;
}

// ---- f32 arithmetic ----

// In a CPU's own vectors, as the panels have them: AVX2 has 16 registers, the others 32.
static double peak_panel(struct bench *bench) {
    const struct grt_dev_info *info = grt_dev_info(bench->dev);
    uint32_t vw = info->caps.vector >= 16 ? 16 : info->caps.vector >= 8 ? 8 : 4;
    uint32_t chains = vw == 8 ? 12 : 24;
    if (!info->caps.software || info->backend != GRT_BACKEND_OPENCL) {
        return 0;
    }
    // An odd chain stays at 1, an even one gains a in each of the four rounds of a step.
    struct peak_run run = {
        .bench = bench,
        .kernel = {"peak_panel", {{"WG", 1}, {"CHAINS", chains}, {"VW", vw}}},
        .a = 0x1p-10f,
        .wg = 1,
        .operations = 2.0 * 4 * vw * chains,
        .result = vw * chains / 2.0,
        .gained = 4 * 0x1p-10 * vw * chains / 2,
    };
    return measure_with(&run, units(bench) * 16);
}

static double peak_f32(struct bench *bench) {
    const struct grt_caps *caps = &grt_dev_info(bench->dev)->caps;
    uint32_t wide = caps->software ? (caps->subgroup > 1 ? caps->subgroup : 16) : 256;
    const struct { uint32_t wg, chains; } shapes[] = {{wide, 4}, {caps->software ? 1 : wide, 16}};
    double most = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        // A step is four rounds of four numbers in each chain; all end at 2.
        struct peak_run run = {
            .bench = bench,
            .kernel = {"peak", {{"WG", shapes[i].wg}, {"CHAINS", shapes[i].chains}}},
            .a = 0.5f,
            .b = 1.0f,
            .wg = shapes[i].wg,
            .operations = 2.0 * 16 * shapes[i].chains * shapes[i].wg,
            .result = 8.0 * shapes[i].chains,
        };
        double peak = measure_with(&run, units(bench) * 16);
        most = peak > most ? peak : most;
    }
    double panel = peak_panel(bench);
    return panel > most ? panel : most;
}

// ---- matrix units ----

// Two 16-bit numbers in the bits of a float: 1, and 1/1024.
static float both(enum grt_dtype dtype, bool one) {
    uint32_t bits =
        dtype == GRT_F16 ? (one ? 0x3c003c00u : 0x14001400u) : (one ? 0x3f803f80u : 0x3a803a80u);
    float value = 0;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double peak_coop(struct bench *bench, enum grt_dtype dtype) {
    const struct grt_caps *caps = &grt_dev_info(bench->dev)->caps;
    enum { CHAINS = 8, SUBGROUPS = 8 };
    for (uint32_t i = 0; i < caps->matrix_shape_count; i++) {
        const struct grt_matrix_shape *s = &caps->matrix_shapes[i];
        if (s->in != dtype || s->out != GRT_F32 || s->m != 16 || s->n != 16 || s->k != 16) {
            continue;
        }
        struct peak_run run = {
            .bench = bench,
            .kernel = {dtype == GRT_F16 ? "peak_coop_f16" : "peak_coop_bf16",
                       {{"WG", SUBGROUPS * caps->subgroup}, {"CHAINS", CHAINS}}},
            .a = both(dtype, true),
            .b = both(dtype, false),
            .wg = SUBGROUPS * caps->subgroup,
            .operations = 2.0 * 16 * 16 * 16 * CHAINS * SUBGROUPS,
            .gained = 16.0 / 1024 * CHAINS * (16.0 * 16 / caps->subgroup),
        };
        return measure_with(&run, units(bench) * 4);
    }
    return 0;
}

static double peak_mma(struct bench *bench, enum grt_dtype dtype) {
    enum { CHAINS = 16, WARPS = 8 };
    struct peak_run run = {
        .bench = bench,
        .kernel = {"peak_mma",
                   {{"WG", WARPS * 32}, {"CHAINS", CHAINS}, {"KIND", dtype == GRT_BF16}}},
        .a = both(dtype, true),
        .b = both(dtype, false),
        .wg = WARPS * 32,
        .operations = 2.0 * 16 * 8 * 16 * CHAINS * WARPS,
        .gained = 16.0 / 1024 * CHAINS,
    };
    return measure_with(&run, units(bench) * 4);
}

static double peak_wgmma(struct bench *bench, enum grt_dtype dtype) {
    struct peak_run run = {
        .bench = bench,
        .kernel = {"peak_wgmma", {{"WG", 256}, {"KIND", dtype == GRT_BF16}}},
        .a = both(dtype, true),
        .b = both(dtype, false),
        .wg = 256,
        .operations = 2.0 * 64 * 256 * 64 * 2,
        .gained = 64.0 / 1024,
    };
    return measure_with(&run, units(bench) * 2);
}

double bench_peak(struct bench *bench, const char *variant, enum grt_dtype dtype) {
    // The instruction of each variant that has a matrix unit's; the others do arithmetic in f32.
    enum { COOP, MMA, WGMMA };
    static const struct {
        const char *variant;
        int instruction;
    } rows[] = {{"coop", COOP},       {"coop_deep", COOP},
                {"stream", COOP},     {"mma", MMA},
                {"wgmma", WGMMA},     {"wgmma_b_shared", WGMMA},
                {"wgmma_48k", WGMMA}, {"wgmma_b_registers", WGMMA}};
    double *kept = &bench->peaks[0];
    size_t i = 0;
    while (i < sizeof rows / sizeof *rows && strcmp(rows[i].variant, variant) != 0) {
        i++;
    }
    if (i < sizeof rows / sizeof *rows) {
        kept = &bench->peaks[1 + 2 * rows[i].instruction + (dtype == GRT_BF16)];
    }
    if (*kept == 0) {
        talk_progress("what the device can do at most");
        double peak = kept == bench->peaks          ? peak_f32(bench)
                      : rows[i].instruction == COOP ? peak_coop(bench, dtype)
                      : rows[i].instruction == MMA  ? peak_mma(bench, dtype)
                                                    : peak_wgmma(bench, dtype);
        *kept = peak > 0 ? peak : -1;  // not tried again
    }
    return *kept > 0 ? *kept : 0;
}

// ---- a device without a bench ----

#define COPY_RUNS 4
#define COPIES 8  // of a run on a GPU, so that handing it over is a small part of its time

// Bytes a second that copies by the driver, or by a kernel, read and write, of the fastest run.
static double copies_rate(struct grt_dev *dev, struct grt_buf *to, struct grt_buf *from,
                          uint64_t size, bool by_kernel) {
    const struct grt_tensor y = {{to, 0, size}, GRT_U32, 1, {size / 4}, "peak"};
    const struct grt_tensor x = {{from, 0, size}, GRT_U32, 1, {size / 4}, "peak"};
    int copies = grt_dev_info(dev)->caps.software ? 1 : COPIES;
    struct grt_graph *graph = grt_graph_create(dev, "peak");
    double best = 0.0;
    for (int i = 0; graph && i < copies; i++) {
        if (by_kernel) {
            grt_op_copy(graph, &y, &x);
        } else {
            grt_graph_copy(graph, y.range, x.range);
        }
    }
    bool good = graph && grt_graph_finish(graph);
    for (int i = 0; good && i < COPY_RUNS; i++) {
        double begun = grt_seconds();
        good = grt_graph_run(graph) && grt_dev_wait(dev);
        double rate = 2.0 * copies * (double)size / (grt_seconds() - begun);
        best = rate > best ? rate : best;
    }
    grt_graph_destroy(&graph);
    return good ? best : 0.0;
}

// The faster of both: an H200 copies 0.85 TB/s by its Vulkan driver and 4.2 by a kernel.
static double copy_rate(struct grt_dev *dev) {
    const struct grt_caps *caps = &grt_dev_info(dev)->caps;
    uint64_t size = (uint64_t)(caps->software ? 64 : 256) << 20;
    uint64_t most = grt_dev_mem_left(dev) / 4 / 4096 * 4096;
    most = caps->max_buffer > 0 && most > caps->max_buffer ? caps->max_buffer : most;
    size = size < most ? size : most;
    if (size == 0) {
        return 0.0;
    }
    struct grt_buf *from = grt_buf_create(dev, grt_buf_desc(.size = size, .label = "peak"));
    struct grt_buf *to =
        from ? grt_buf_create(dev, grt_buf_desc(.size = size, .label = "peak")) : NULL;
    double driver = to ? copies_rate(dev, to, from, size, false) : 0.0;
    double kernel = to ? copies_rate(dev, to, from, size, true) : 0.0;
    grt_buf_destroy(&to);
    grt_buf_destroy(&from);
    return kernel > driver ? kernel : driver;
}

struct watch_peaks bench_peaks(struct grt_dev *dev) {
    struct bench bench = {.dev = dev, .seconds = 0.05, .samples = 3};
    return (struct watch_peaks){bench_peak(&bench, "tiled", GRT_F32), copy_rate(dev)};
}
