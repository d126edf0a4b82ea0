// SPDX-License-Identifier: Apache-2.0
// `gpurt bench gemm` and `conv` on a made-up device: figures by the device's own rates, shares of
// what its arithmetic and its matrix units do at most, a peer in turns, names, defaults, mistakes.
#include "unit/apps/made_device.h"

#include "bench/bench.h"
#include "bench/bench_conv.h"
#include "bench/bench_peaks.h"
#include "bench/gemm/bench_gemm_case.h"
#include "cli/command.h"

#define QUICK " --time 0.001 --samples 3"

// ---- in place of the command's and the library's ----

static bool peer_is_there;
static double peer_rate;

bool bench_gemm_peer_open(struct bench_gemm_peer *peer) {
    static const union {
        void (*any)(void);
        bench_sgemm_fn *sgemm;
    } is = {.any = abort};
    if (!peer_is_there) {
        fprintf(stderr, "no peer\n");
        return false;
    }
    peer->sgemm = is.sgemm;
    peer->cpus = 4;
    return true;
}

void bench_gemm_peer_close(struct bench_gemm_peer *peer) {
    *peer = (struct bench_gemm_peer){0};
}

double bench_gemm_peer_run(const struct bench_gemm_peer *peer, struct bench_gemm_case *g,
                           uint32_t count) {
    const float *a = g->host_a, *b = g->host_b;
    float *c = g->host_c;
    uint64_t m = g->shape.m, n = g->shape.n, k = g->shape.k;
    assert_true(peer->cpus == 4 && !g->a_transposed && !g->b_transposed);
    memset(c, 0, g->batch * m * n * sizeof *c);
    for (uint64_t i = 0; i < g->batch * m * k; i++) {
        for (uint64_t j = 0; j < n; j++) {
            c[i / k * n + j] += a[i] * b[(i / (m * k) * k + i % k) * n + j];
        }
    }
    double seconds = count * bench_gemm_case_flops(g) / peer_rate;
    made.now += seconds;
    return seconds;
}

static enum bench_outcome conv_outcome;

enum bench_outcome bench_conv_check(struct bench_conv_run *r) {
    r->error = 0.25;
    return conv_outcome;
}

static void nothing(const struct made_work *work) {
    (void)work;
}

void grt_op_conv2d(struct grt_graph *graph, const struct grt_conv2d_desc *d) {
    double work = 2.0 * (double)grt_tensor_count(d->y) * (double)d->w->shape[1] *
                  (double)d->w->shape[2] * (double)d->w->shape[3];
    made_add(graph, &(struct made_work){.run = nothing, .seconds = work / made.product_rate});
}

uint64_t grt_op_conv2d_scratch(struct grt_dev *dev, const struct grt_conv2d_desc *desc) {
    (void)dev;
    return strcmp(desc->variant, "patches") == 0 ? 1001 : 0;
}

const char *grt_conv2d_variant(struct grt_dev *dev, const struct grt_conv2d_desc *desc,
                               uint32_t i) {
    static const char *const names[] = {"patches", "direct"};
    (void)dev;
    for (uint32_t k = 0; k < 2; k++) {
        if ((!desc->variant || strcmp(desc->variant, names[k]) == 0) && i-- == 0) {
            return names[k];
        }
    }
    return NULL;
}

static int begin(void **state) {
    peer_is_there = true;
    peer_rate = 2e8;
    conv_outcome = BENCH_GOOD;
    int code = made_begin(state);
    made.product_rate = 1e8;
    return code;
}

// ---- products ----

// By the device's clock, which says half of the time: 0.2 GFLOP/s. f32 goes by tiles, f16 by the
// first of the matrix units' kernels.
static void products(void **state) {
    (void)state;
    assert_int_equal(
        made_run(cmd_bench,
                 "bench gemm --shape 5x6x7,9 --batch-count 1,3 --trans nn,nt,tn,tt" QUICK),
        0);
    assert_int_equal(made_count(), 2 * 2 * 2 * 4);
    static const char *const ways[] = {"nn", "nt", "tn", "tt"};
    for (size_t i = 0; i < made_count(); i++) {
        bool half = i / 4 % 2, cube = i / 16;
        double batch = i / 8 % 2 ? 3 : 1, flops = 2 * batch * (cube ? 9 * 9 * 9 : 5 * 6 * 7);
        TEXT(i, "kind", "gemm");
        TEXT(i, "shape", cube ? "9x9x9" : "5x6x7");
        NUMBER(i, "batch", batch);
        TEXT(i, "trans", ways[i % 4]);
        TEXT(i, "precision", half ? "f16" : "f32");
        TEXT(i, "variant", half ? "wgmma" : "tiled");
        NUMBER(i, "ms", flops / 2e8 * 1e3);
        NUMBER(i, "gflop_per_s", 0.2);
        NUMBER(i, "of_peak", 0.2e9 / (half ? 2 * 8e12 / 0.5 : 2e12 / 0.5));
        assert_true(json_number_value(made_cell(i, "error")) <= 1);
        TEXT(i, "timer", "device");
        TEXT(i, "check", "ok");
        assert_false(made_known(i, "ratio"));
        assert_false(made_known(i, "cpus"));
        assert_false(made_known(i, "profile"));
    }
}

// Runs that vary: of three samples, one of each length, the one between.
static void middle(void **state) {
    (void)state;
    static const double slower[] = {1, 2, 3};
    memcpy(made.slower, slower, sizeof slower);
    assert_int_equal(made_run(cmd_bench, "bench gemm --shape 8 --precision f32" QUICK), 0);
    NUMBER(0, "ms", 2 * 1024 / 2e8 * 1e3);
    NUMBER(0, "gflop_per_s", 0.1);
    NUMBER(0, "spread", 0.25);
    // What the device does at most is the quickest run.
    NUMBER(0, "of_peak", 0.1e9 / (2e12 / 0.5));
    assert_int_equal(made_run(cmd_bench, "bench conv --shape 1x4x4x1x1 --pass data" QUICK), 0);
    NUMBER(0, "ms", 2 * 2.0 * 16 * 9 / 2e8 * 1e3);
    NUMBER(0, "spread", 0.25);
}

// Each instruction has a peak of its own, and both 16-bit types; what has none has no share.
static void peaks(void **state) {
    (void)state;
    static const char *const names[] = {"wgmma", "mma", "coop", "tiled", "plain"};
    made.info.caps.matrix_shape_count = 2;
    made.info.caps.matrix_shapes[0] = (struct grt_matrix_shape){16, 8, 16, GRT_F16, GRT_F32};
    made.info.caps.matrix_shapes[1] = (struct grt_matrix_shape){16, 16, 16, GRT_F16, GRT_F32};
    static const char line[] = "bench gemm --shape 8 --precision f16,bf16 --variant all" QUICK;
    assert_int_equal(made_run(cmd_bench, line), 0);
    assert_int_equal(made_count(), 10);
    for (size_t i = 0; i < 10; i++) {
        static const double times[] = {2, 1, 3};
        TEXT(i, "variant", names[i % 5]);
        TEXT(i, "precision", i / 5 ? "bf16" : "f16");
        double rate = (i % 5 == 4 ? 0.1e9 : 0.2e9);
        NUMBER(i, "gflop_per_s", rate / 1e9);
        if (i == 7) {  // no such matrices of bf16
            assert_false(made_known(i, "of_peak"));
        } else {
            NUMBER(i, "of_peak", rate / (i % 5 < 3 ? times[i % 5] * 8e12 / 0.5 : 2e12 / 0.5));
        }
    }
    assert_non_null(strstr(made.kernels, "peak_coop_f16"));
    assert_null(strstr(made.kernels, "peak_coop_bf16"));
    // Vulkan has no kernel of that kind here.
    made.info.backend = GRT_BACKEND_VULKAN;
    made.kernels[0] = '\0';
    assert_int_equal(made_run(cmd_bench, line), 0);
    assert_false(made_known(0, "of_peak"));
    assert_true(made_known(1, "of_peak"));
    assert_null(strstr(made.kernels, "peak_wgmma"));
    // Faster than what is called the most: no share.
    made.arithmetic_rate = 0.99e8;
    assert_int_equal(made_run(cmd_bench, "bench gemm --shape 8 --precision f32" QUICK), 0);
    assert_false(made_known(0, "of_peak"));
    made.arithmetic_rate = 1.01e8;
    assert_int_equal(made_run(cmd_bench, "bench gemm --shape 8 --precision f32" QUICK), 0);
    NUMBER(0, "of_peak", 1 / 1.01);
}

// Vectors of a CPU as they are, and only of OpenCL's drivers.
static void panels(void **state) {
    (void)state;
    static const uint32_t wide[] = {1, 4, 8, 15, 16, 32};
    made_software();
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        made.info.caps.vector = wide[i];
        made.kernels[0] = '\0';
        struct watch_peaks most = bench_peaks(&made.dev);
        assert_true(fabs(most.operations / 2e12 - 1) < 0.01);
        assert_non_null(strstr(made.kernels, "peak_panel"));
        // Copies by a kernel are the faster ones here; read and written.
        assert_true(fabs(most.bytes / (2 * 2e9) - 1) < 0.2);
    }
    made.kernels[0] = '\0';
    made.info.backend = GRT_BACKEND_VULKAN;
    made.copy_rate[0] = 8e9;
    struct watch_peaks most = bench_peaks(&made.dev);
    assert_null(strstr(made.kernels, "peak_panel"));
    assert_true(fabs(most.bytes / (2 * 8e9) - 1) < 0.4);
    made.memory = 3 * 4096;  // less than a page of each
    assert_true(bench_peaks(&made.dev).bytes == 0);
}

static void variants(void **state) {
    (void)state;
    static const struct grt_profile_value value = {.profile = "/etc/cards/mine.profile:7"};
    static const struct grt_profile_value shipped = {.profile = "nvidia:10"};
    made.in_use = &value;
    assert_int_equal(
        made_run(cmd_bench, "bench gemm --shape 8 --precision f32 --variant tiled,plain" QUICK), 0);
    assert_int_equal(made_count(), 2);
    TEXT(0, "profile", "mine.profile:7");
    assert_false(made_known(1, "profile"));
    NUMBER(1, "gflop_per_s", 0.1);
    made.in_use = &shipped;
    assert_int_equal(made_run(cmd_bench, "bench gemm --shape 8 --out f32" QUICK), 0);
    TEXT(0, "precision", "f32");
    TEXT(0, "profile", "nvidia:10");
    TEXT(1, "precision", "f16>f32");
    // One that the device lacks is a row of its own.
    assert_int_equal(
        made_run(cmd_bench, "bench gemm --shape 8 --precision f32 --variant turbo,plain" QUICK), 0);
    TEXT(0, "check", "unsuited");
    assert_false(made_known(0, "gflop_per_s"));
    assert_false(made_known(0, "of_peak"));
    TEXT(1, "check", "ok");
    SAID("gemm of f32: no variant 'turbo' on opencl:0; there are tiled, plain");
    assert_int_equal(made_run(cmd_bench, "bench gemm --shape 8 --variant turbo" QUICK), 69);
    SAID("gemm of f16: no variant 'turbo' on opencl:0; there are wgmma, mma, coop, tiled, plain");
    // As many as there is room for, and one more.
    char line[512] =
        "bench gemm --shape 8 --precision f32 --time 0.001 --samples 1 --variant plain";
    for (int i = 1; i < 32; i++) {
        strcat(line, ",plain");
    }
    assert_int_equal(made_run(cmd_bench, line), 0);
    assert_int_equal(made_count(), 32);
    strcat(line, ",plain");
    assert_int_not_equal(made_run(cmd_bench, line), 0);
    SAID("gemm: more than 32 variants");
}

static void wrong_products(void **state) {
    (void)state;
    for (made.wrong = 1; made.wrong <= 2; made.wrong++) {
        assert_int_equal(made_run(cmd_bench, "bench gemm --shape 8 --precision f32" QUICK), 70);
        TEXT(0, "check", "FAILED");
        assert_false(made_known(0, "ms"));
        assert_true(made_known(0, "error"));
        SAID(made.wrong == 1 ? "gemm tiled: c[0][0][3] is " : "gemm tiled: element 0 of c was not");
        SAID("not timed: 1");
    }
    made.wrong = 0;
    made.memory = 1000;  // three of 256 bytes each, and none of 2000
    assert_int_equal(made_run(cmd_bench, "bench gemm --shape 8,4x125x4 --precision f32" QUICK), 0);
    TEXT(0, "check", "ok");
    TEXT(1, "check", "no memory");
    TEXT(1, "variant", "-");
    assert_false(made_known(1, "error"));
    assert_int_equal(made_run(cmd_bench, "bench gemm --shape 4x125x4 --precision f32" QUICK), 71);
    NOT_SAID("failed their check");
}

// Both by the wall, with nothing for a submit: ours at 0.1 GFLOP/s, the peer at 0.2.
static void beside_a_peer(void **state) {
    (void)state;
    made.submit = 0;
    assert_int_equal(made_run(cmd_bench, "bench gemm --shape 8 --peer openblas" QUICK), 0);
    assert_int_equal(made_count(), 3);
    TEXT(0, "variant", "tiled");
    TEXT(0, "timer", "wall");
    NUMBER(0, "gflop_per_s", 0.1);
    NUMBER(0, "ratio", 0.5);
    assert_false(made_known(0, "cpus"));  // of a GPU
    TEXT(1, "variant", "openblas");
    NUMBER(1, "gflop_per_s", 0.2);
    assert_false(made_known(1, "ratio"));
    assert_true(made_known(1, "cpus"));
    assert_false(made_known(1, "of_peak"));
    TEXT(2, "precision", "f16");  // the peer has none
    assert_false(made_known(2, "ratio"));
    NOT_SAID("busy");  // a small product
    made_software();
    peer_rate = 1e6;
    assert_int_equal(
        made_run(cmd_bench,
                 "bench gemm --shape 128x256x128 --peer openblas --time 0.1 --samples 1"),
        0);
    assert_int_equal(made_count(), 2);
    assert_true(made_known(0, "cpus"));
    SAID("the machine is busy: openblas had 0.0");
    SAID(" of 4 CPUs");
    assert_int_equal(
        made_run(cmd_bench,
                 "bench gemm --shape 128x255x128 --batch-count 2 --peer openblas --time 0.1 "
                 "--samples 1"),
        0);
    NOT_SAID("busy");
    peer_is_there = false;
    assert_int_equal(made_run(cmd_bench, "bench gemm --shape 8 --peer openblas" QUICK), 69);
    assert_int_equal(made_count(), 0);
}

static void defaults(void **state) {
    (void)state;
    static const struct {
        bool software, quick;
        size_t count;
        uint64_t first, last;
        uint32_t precisions;
    } rows[] = {{false, false, 4, 1024, 8192, 3},
                {false, true, 1, 4096, 4096, 3},
                {true, false, 2, 512, 1024, 1},
                {true, true, 1, 512, 512, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench_gemm_options o = {0};
        assert_true(bench_gemm_defaults(&o, rows[i].software, rows[i].quick));
        assert_int_equal(o.shapes.count, rows[i].count);
        assert_int_equal(o.shapes.values[0].m, rows[i].first);
        assert_int_equal(o.shapes.values[o.shapes.count - 1].k, rows[i].last);
        assert_int_equal(o.precisions, rows[i].precisions);
        bench_gemm_options_end(&o);
        assert_null(o.shapes.values);
        o.precisions = 4;
        assert_true(bench_gemm_defaults(&o, rows[i].software, rows[i].quick));
        assert_int_equal(o.precisions, 4);
        bench_gemm_options_end(&o);
    }
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *line, *said;
    } rows[] = {
        {"bench gemm --shape 16777217", "from 1 to 16777216"},
        {"bench gemm --shape 0", "at character 1: MxNxK is wanted"},
        {"bench gemm --shape 8,8x8", "at character 3: "},
        {"bench gemm --shape 8x8x8x8", "at character 1: "},
        {"bench gemm --shape 8x8x0", "at character 1: "},
        {"bench gemm --shape 8,", "at character 3: "},
        {"bench gemm --batch-count 16777217", "1 to 16777216"},
        {"bench gemm --out f16", "one is wanted, known are same f32"},
        {"bench gemm --out same,f32", "one is wanted, known are same f32"},
        {"bench gemm --peer mkl", "known are openblas"},
        {"bench gemm --precision f32,f64", "known are f32 f16 bf16"},
        {"bench gemm --trans t", "known are nn nt tn tt"},
        {"bench gemm --variant a,,b", "auto, all, or names with commas between"},
        {"bench gemm --variant ,a", "auto, all, or names with commas between"},
        {"bench gemm --variant a,", "auto, all, or names with commas between"},
        {"bench conv --shape 1x1x1x1x1048577", "each from 1 to 1048576"},
        {"bench conv --shape 1x1x1x1x0", "at character 1: NxHxWxCxK"},
        {"bench conv --shape 1x2x2x1x1,3x3", "at character 11: NxHxWxCxK"},
        {"bench conv --kernel 0", "1 to 65536"},
        {"bench conv --kernel 65537", "1 to 65536"},
        {"bench conv --stride 0", "1 to 65536"},
        {"bench conv --padding 65536", "0 to 65535"},
        {"bench conv --images 0", "1 to 65536"},
        {"bench conv --precision f8", "f32"},
        {"bench conv --pass back", "forward"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int code = made_run(cmd_bench, rows[i].line);
        if (code != COMMAND_USAGE || !strstr(made_said, rows[i].said)) {
            fail_msg("%s: exit code %d, said: %s", rows[i].line, code, made_said);
        }
    }
}

// ---- convolutions ----

static void convolutions(void **state) {
    (void)state;
    static const char *const passes[] = {"forward", "data", "weight"};
    made.matrix_rate = 8e12;
    assert_int_equal(
        made_run(cmd_bench,
                 "bench conv --shape 2x5x6x3x4,1x4x4x1x1 --kernel 3 --stride 2 --precision "
                 "f32,f16,bf16" QUICK),
        0);
    assert_int_equal(made_count(), 2 * 3 * 3);
    static const char *const types[] = {"f32", "f16", "bf16"};
    for (size_t i = 0; i < 18; i++) {
        bool second = i / 9;
        // Windows of 3x3 two apart with a border of 1: 3 x 3 of 5 x 6, and 2 x 2 of 4 x 4.
        double flops = second ? 2.0 * 2 * 2 * 9 : 2.0 * 2 * 3 * 3 * 9 * 3 * 4;
        TEXT(i, "kind", "conv");
        TEXT(i, "test", passes[i % 3]);
        TEXT(i, "precision", types[i / 3 % 3]);
        TEXT(i, "images", second ? "1x4x4x1x1" : "2x5x6x3x4");
        TEXT(i, "window", "3x3/2+1");
        TEXT(i, "variant", "patches");
        NUMBER(i, "ms", flops / 2e8 * 1e3);
        NUMBER(i, "gflop_per_s", 0.2);
        NUMBER(i, "of_peak", 0.2e9 / (i / 3 % 3 ? 2 * 8e12 / 0.5 : 2e12 / 0.5));
        NUMBER(i, "error", 0.25);
        TEXT(i, "timer", "device");
    }
    assert_int_equal(made_run(cmd_bench, "bench conv --shape 1x4x4x1x1 --padding 0 --pass data "
                                         "--kernel 2 --variant all" QUICK),
                     0);
    assert_int_equal(made_count(), 2);
    TEXT(0, "precision", "f16");  // of a GPU, unless another is asked for
    TEXT(0, "window", "2x2/1+0");
    TEXT(1, "variant", "direct");
    // Half of the window is the border where nothing is said.
    assert_int_equal(made_run(cmd_bench,
                              "bench conv --shape 1x4x4x1x1 --pass data --kernel 5 --variant "
                              "direct" QUICK),
                     0);
    TEXT(0, "window", "5x5/1+2");
    TEXT(0, "variant", "direct");
    made_software();
    assert_int_equal(made_run(cmd_bench, "bench conv --shape 1x4x4x1x1 --pass data" QUICK), 0);
    TEXT(0, "precision", "f32");
    TEXT(0, "timer", "wall");
}

// ResNet-18's layers, with as many images as a CPU or a GPU is asked for.
static void layers(void **state) {
    (void)state;
    made.memory = 1ull << 30;
    made.product_rate = 1e11;
    made.blank = true;
    made_software();
    assert_int_equal(made_run(cmd_bench, "bench conv --pass forward --time 0.001 --samples 1"), 0);
    assert_int_equal(made_count(), 15);
    TEXT(0, "images", "4x32x32x3x64");
    TEXT(8, "images", "4x96x96x3x64");
    TEXT(8, "window", "7x7/2+3");
    TEXT(11, "window", "1x1/2+0");
    TEXT(14, "images", "4x3x3x512x512");
    assert_int_equal(
        made_run(cmd_bench, "bench conv --pass forward --time 0.001 --samples 1 --images 3"), 0);
    TEXT(1, "images", "3x32x32x64x64");
}

static void wrong_windows(void **state) {
    (void)state;
    static const struct {
        const char *line, *said;
    } rows[] = {
        {"bench conv --shape 1x2x4x1x1 --kernel 3 --padding 0" QUICK,
         "conv: a window of 3x3 with padding 0 does not fit into 2x4"},
        {"bench conv --shape 1x4x2x1x1 --kernel 3 --padding 0" QUICK, "does not fit into 4x2"},
        {"bench conv --shape 1x4x4x1x1 --kernel 3 --padding 3" QUICK, "with padding 3 does not"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(made_run(cmd_bench, rows[i].line), COMMAND_USAGE);
        assert_int_equal(made_count(), 0);
        SAID(rows[i].said);
    }
    assert_int_equal(
        made_run(cmd_bench,
                 "bench conv --shape 1x3x3x1x1 --kernel 3 --padding 0 --pass data" QUICK),
        0);
    assert_int_equal(
        made_run(cmd_bench,
                 "bench conv --shape 1x1x1x1x1 --kernel 3 --padding 2 --pass data" QUICK),
        0);
    conv_outcome = BENCH_WRONG;
    assert_int_equal(made_run(cmd_bench, "bench conv --shape 1x4x4x1x1" QUICK), COMMAND_INTERNAL);
    assert_int_equal(made_count(), 3);
    TEXT(0, "check", "FAILED");
    assert_false(made_known(0, "ms"));
    assert_false(made_known(0, "of_peak"));
    SAID("not timed: 3");
    conv_outcome = BENCH_GOOD;
    made.memory = 2000;
    assert_int_equal(made_run(cmd_bench, "bench conv --shape 1x4x4x1x1,64x9x9x1x1" QUICK), 0);
    TEXT(2, "check", "ok");
    TEXT(3, "check", "no memory");
    assert_false(made_known(3, "error"));
    assert_int_equal(made_run(cmd_bench, "bench conv --shape 1x4x4x1x1 --variant turbo" QUICK), 69);
    SAID("conv: no variant 'turbo' for this on opencl:0");
    TEXT(0, "variant", "turbo");
    TEXT(0, "check", "unsuited");
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest cases[] = {
        CASE(products), CASE(middle),         CASE(peaks),         CASE(panels),
        CASE(variants), CASE(wrong_products), CASE(beside_a_peer), CASE(defaults),
        CASE(refused),  CASE(convolutions),   CASE(layers),        CASE(wrong_windows),
    };
#undef CASE
    return cmocka_run_group_tests(cases, NULL, NULL);
}
