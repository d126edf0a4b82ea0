// SPDX-License-Identifier: Apache-2.0
// Both sides of the limits of the ways to multiply and to convolve: which products each can do, and
// for which it pays, on devices that are made up. The kernels that devices are asked for by a build
// are there or refused beforehand, so that no driver is asked.
#include "kits/profile_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "ops/conv/case.h"
#include "ops/gemm/case.h"

enum { MMA = 1, ROOMY = 2, HOPPER = 4, XMX16 = 8, XMX8 = 16 };  // kernels that build
static const char *const probes[] = {"probe_mma", "probe_wgmma", "probe_wgmma_48k", "probe_xmx16",
                                     "probe_xmx8"};

struct made {
    struct grt_dev dev;
    struct grt_kernel kernels[5];
};

static void make(struct made *made, enum grt_backend_id backend, uint32_t builds) {
    struct grt_dev *dev = &made->dev;
    memset(made, 0, sizeof *made);
    dev->info = kit_gpu("NVIDIA H200", "NVIDIA", 139.8);
    dev->info.backend = backend;
    struct grt_caps *caps = &dev->info.caps;
    caps->compute_units = 132;
    caps->subgroup = 32;
    caps->max_wg = 1024;
    caps->shmem = 49152;
    caps->f16_storage = 1;
    caps->max_texels = 1 << 20;
    caps->max_groups[0] = INT32_MAX;
    caps->max_groups[1] = caps->max_groups[2] = 65535;
    dev->profile = grt_profile_create(&dev->info);
    assert_non_null(dev->profile);
    const struct grt_profile_value yes = {.count = 1, .numbers = {1}};
    assert_true(grt_dev_profile_set(dev, GRT_KEY_GEMM_SPLIT_USE, &yes));
    for (uint32_t p = 0; p < 5; p++) {
        const struct grt_kernel_info *info = NULL;
        for (uint32_t i = 0; grt_kernel_table[i]; i++) {
            info = strcmp(grt_kernel_table[i]->name, probes[p]) == 0 ? grt_kernel_table[i] : info;
        }
        assert_non_null(info);
        if (!(builds >> p & 1)) {
            dev->refused[dev->refused_count++] = info;
            continue;
        }
        struct grt_kernel *k = &made->kernels[p];
        *k = (struct grt_kernel){.dev = dev, .info = info, .next = dev->kernels};
        for (uint32_t i = 0; i < info->spec_count; i++) {
            k->spec_values[i] = info->specs[i].value;
        }
        dev->kernels = k;
    }
}

static int begin(void **state) {
    kit_enter_home();
    return test_case_begin(state);
}
static int end(void **state) {
    kit_leave_home();
    return test_case_end(state);
}
#define PAYS_CASE(function)                                                                        \
    { #function, function, begin, end, NULL }

// A product, with operands whose rows have no gaps.
enum { A_T = 1, B_T = 2, RAGGED_A = 4, RAGGED_B = 8 };
static struct grt_gemm_desc desc;
static struct gemm_case product(struct made *made, enum grt_dtype in, uint32_t m, uint32_t n,
                                uint32_t k, uint32_t batch, uint32_t flags) {
    static struct grt_tensor a, b;
    a = (struct grt_tensor){.dtype = in, .rank = 2, .shape = {m, k}};
    b = (struct grt_tensor){.dtype = in, .rank = 2, .shape = {k, n}};
    desc = (struct grt_gemm_desc){
        .a = &a, .b = &b, .a_transposed = flags & A_T, .b_transposed = (flags & B_T) != 0};
    struct gemm_case g = {.dev = &made->dev,
                          .desc = &desc,
                          .m = m,
                          .n = n,
                          .k = k,
                          .batch = batch,
                          .in = in,
                          .out = in};
    g.params.lda = (flags & A_T ? m : k) + (flags & RAGGED_A ? 4 : 0);
    g.params.ldb = (flags & B_T ? k : n) + (flags & RAGGED_B ? 4 : 0);
    g.params.ldc = n;
    return g;
}

struct row {
    const struct gemm_variant *variant;
    enum grt_dtype in;
    uint32_t m, n, k, batch, flags;
    int usable, pays;  // -1: not asked
};

static void check(struct made *made, const struct row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct row *r = &rows[i];
        struct gemm_case g = product(made, r->in, r->m, r->n, r->k, r->batch, r->flags);
        bool usable = r->variant->usable(&g), pays = !r->variant->pays || r->variant->pays(&g);
        if ((r->usable >= 0 && usable != r->usable) || (r->pays >= 0 && pays != r->pays)) {
            print_error("%s, %s %u x %u x %u, %u of them: usable %d, pays %d\n", r->variant->name,
                        grt_dtype_text(r->in), r->m, r->n, r->k, r->batch, usable, pays);
            fail();
        }
    }
    grt_profile_destroy(&made->dev.profile);
}
#define CHECK(made, rows) check(made, rows, sizeof(rows) / sizeof *(rows))
#define V(name) &gemm_variant_##name

static void opencl_of_nvidia(void **state) {
    (void)state;
    struct made made;
    static const struct row rows[] = {
        {V(mma), GRT_F16, 7, 7, 7, 1, 0, 1, 1},
        {V(mma), GRT_BF16, 7, 7, 7, 1, 0, 1, 1},
        {V(mma), GRT_F32, 7, 7, 7, 1, 0, 0, 1},
        {V(split_mma), GRT_F32, 16, 16, 16, 1, 0, 1, 1},
        {V(split_mma), GRT_F32, 16, 16, 16, 2, 0, 1, 0},
        {V(split_mma), GRT_F32, 17, 16, 16, 2, 0, 1, 1},
        {V(split_mma), GRT_F32, 16, 17, 16, 2, 0, 1, 1},
        {V(split_mma), GRT_F32, 16, 16, 17, 2, 0, 1, 1},
        {V(split_mma), GRT_F16, 16, 16, 17, 2, 0, 0, 1},
        {V(split_wgmma), GRT_F32, 32, 32, 500, 1, 0, 1, 0},
        {V(split_wgmma), GRT_F32, 33, 32, 500, 1, 0, 1, 1},
        {V(split_wgmma), GRT_F32, 32, 33, 1, 1, 0, 1, 1},
        {V(split_wgmma), GRT_F16, 33, 32, 500, 1, 0, 0, 1},
        // Rows are read 16 bytes at a time.
        {V(wgmma), GRT_F16, 4096, 4096, 4096, 1, 0, 1, 1},
        {V(wgmma), GRT_F16, 32, 32, 4096, 1, 0, 1, 0},
        {V(wgmma), GRT_F16, 4096, 4096, 4096, 1, RAGGED_A, 0, -1},
        {V(wgmma), GRT_F16, 4096, 4096, 4096, 1, RAGGED_B, 0, -1},
        {V(wgmma), GRT_F32, 4096, 4096, 4096, 1, 0, 0, -1},
        {V(wgmma_48k), GRT_F16, 4096, 4096, 4096, 1, 0, 1, 0},  // wgmma is to be had
        {V(wgmma_48k), GRT_F16, 8, 8, 0, 1, 0, 0, -1},
        {V(wgmma_48k), GRT_F16, 8, 8, 12, 1, A_T, 1, -1},
        {V(wgmma_48k), GRT_F16, 8, 8, 12, 1, RAGGED_A, 0, -1},
        {V(wgmma_b_registers), GRT_F16, 65536, 256, 256, 1, 0, 1, 0},
        {V(wgmma_b_shared), GRT_F16, 33792, 256, 256, 1, 0, 1, 1},  // 528 tiles
        {V(wgmma_b_shared), GRT_F16, 33728, 256, 256, 1, 0, 1, 0},
        {V(wgmma_b_shared), GRT_F16, 33729, 256, 256, 1, 0, 1, 1},
        {V(wgmma_b_shared), GRT_F16, 33792, 264, 256, 1, 0, 0, -1},
        {V(wgmma_b_shared), GRT_F16, 33792, 256, 264, 1, 0, 0, -1},
        {V(wgmma_b_shared), GRT_F16, 33792, 32, 256, 1, 0, 1, 0},
        {V(wgmma_b_shared), GRT_F16, 33792, 40, 256, 1, 0, 1, 1},
        {V(wgmma_b_shared), GRT_F16, 33792, 32, 264, 1, 0, 1, 1},
        {V(wgmma_b_shared), GRT_F16, 33728, 32, 264, 1, 0, 1, 0},
        {V(wgmma), GRT_F16, 2048, 32, 4096, 1, 0, 1, 0},  // mma has a tile for it
        {V(wgmma_b_shared), GRT_F16, 33792, 64, 264, 1, 0, 1, 1},
        {V(wgmma_b_shared), GRT_F16, 16896, 64, 264, 1, 0, 1, 1},  // 264 tiles of a long k
        {V(wgmma_b_shared), GRT_F16, 16832, 64, 264, 1, 0, 1, 0},
        {V(wgmma_b_shared), GRT_F16, 16896, 64, 256, 1, 0, 1, 0},
        {V(wgmma_b_shared), GRT_F16, 33792, 64, 1024, 1, 0, 1, 1},
        {V(wgmma_b_shared), GRT_F16, 33792, 64, 1032, 1, 0, 0, -1},
        {V(wgmma_b_shared), GRT_F16, 33792, 72, 264, 1, 0, 0, -1},
        {V(wgmma_b_shared), GRT_F16, 512, 64, 64, 66, 0, 1, 1},
        {V(wgmma_b_shared), GRT_F16, 511, 64, 64, 66, 0, 1, 0},
        {V(wgmma_b_shared), GRT_F16, 512, 64, 64, 65, 0, 1, 0},
        {V(wgmma_b_shared), GRT_F16, 512, 64, 0, 66, 0, 0, -1},
        {V(few_rows), GRT_F32, 1, 4096, 4096, 1, 0, 1, 1},
        {V(few_rows), GRT_F32, 4, 4096, 2047, 1, B_T, 1, 1},
        {V(few_rows), GRT_F32, 4, 4096, 2048, 1, B_T, 1, 0},
        {V(few_rows), GRT_F32, 3, 4096, 2048, 1, 0, 1, 1},
        {V(few_rows), GRT_F32, 5, 4096, 2047, 1, 0, 0, 0},
        // Panels are for CPU drivers.
        {V(panel), GRT_F32, 64, 64, 64, 1, 0, 0, -1},
        {V(lanes), GRT_F32, 64, 64, 64, 1, 0, 0, -1},
        {V(tiny), GRT_F32, 16, 16, 16, 2, 0, 1, 1},
        {V(tiny), GRT_F32, 16, 16, 16, 1, 0, 0, -1},
        {V(tiny), GRT_F32, 17, 16, 16, 2, 0, 1, 0},
        {V(tiny), GRT_F32, 16, 17, 16, 2, 0, 1, 0},
        {V(tiny), GRT_F32, 64, 64, 16, 2, 0, 1, 0},
        {V(tiny), GRT_F32, 65, 64, 16, 2, 0, 0, -1},
        {V(tiny), GRT_F32, 64, 65, 16, 2, 0, 0, -1},
        {V(tiny), GRT_F32, 16, 16, 0, 2, 0, 0, -1},
        {V(tiled), GRT_F32, 64, 64, 64, 1, 0, 1, 1},
        {V(xmx), GRT_F16, 64, 64, 64, 1, 0, 0, 1},
    };
    make(&made, GRT_BACKEND_OPENCL, MMA | ROOMY | HOPPER);
    CHECK(&made, rows);
    // Few columns of many rows, the larger tile where rows of b are short.
    static const uint32_t narrow[][6] = {
        // m, n, k, flags: BM, BN
        {2048, 32, 600, 0, 64, 32}, {8192, 32, 600, 0, 64, 32},   {8192, 24, 600, 0, 128, 32},
        {8184, 24, 600, 0, 64, 32}, {8192, 24, 600, B_T, 64, 32}, {8192, 24, 600, A_T, 128, 32},
        {2048, 40, 600, 0, 64, 64},
    };
    make(&made, GRT_BACKEND_OPENCL, MMA | ROOMY | HOPPER);
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++) {
        const uint32_t *r = narrow[i];
        struct gemm_case g = product(&made, GRT_F16, r[0], r[1], r[2], 1, r[3]);
        uint32_t v[GRT_PROFILE_NUMBERS] = {0};
        gemm_mma_tile(&g, v);
        assert_true(v[0] == r[4] && v[1] == r[5]);
        assert_int_equal(gemm_mma_narrow(&g), r[1] <= 32);
        // No other tile has rows that begin anywhere, or fewer of them.
        g.params.lda += 4;
        assert_false(gemm_mma_narrow(&g));
        g = product(&made, GRT_F16, 2047, r[1], r[2], 1, r[3]);
        assert_false(gemm_mma_narrow(&g));
    }
    grt_profile_destroy(&made.dev.profile);
    // Where these kernels do not build.
    static const struct row none[] = {
        {V(mma), GRT_F16, 64, 64, 64, 1, 0, 0, -1},
        {V(split_mma), GRT_F32, 64, 64, 64, 1, 0, 0, -1},
        {V(split_wgmma), GRT_F32, 64, 64, 64, 1, 0, 0, -1},
        {V(wgmma), GRT_F16, 64, 64, 64, 1, 0, 0, -1},
        {V(wgmma_48k), GRT_F16, 64, 64, 64, 1, 0, 0, -1},
        {V(wgmma_b_shared), GRT_F16, 64, 64, 64, 1, 0, 0, -1},
        {V(wgmma_b_registers), GRT_F16, 64, 64, 64, 1, 0, 0, -1},
    };
    make(&made, GRT_BACKEND_OPENCL, XMX16 | XMX8);
    CHECK(&made, none);
    // One sort alone.
    static const struct row hopper[] = {
        {V(wgmma), GRT_F16, 64, 64, 64, 1, 0, 0, -1},
        {V(wgmma_48k), GRT_F16, 64, 64, 64, 1, 0, 1, -1},
        {V(wgmma_b_registers), GRT_F16, 64, 64, 64, 1, 0, 1, -1},
        {V(wgmma_b_shared), GRT_F16, 64, 64, 64, 1, 0, 0, -1},
        {V(mma), GRT_F16, 64, 64, 64, 1, 0, 0, -1},
    };
    make(&made, GRT_BACKEND_OPENCL, HOPPER);
    CHECK(&made, hopper);
}

static void vulkan_with_imports(void **state) {
    (void)state;
    struct made made;
    static const struct row rows[] = {
        // Work enough to compile a kernel for: 2^24, or 2^21 where rows are ragged or k is long.
        {V(mma), GRT_F16, 256, 256, 256, 1, 0, 1, 1},
        {V(mma), GRT_F16, 256, 248, 256, 1, 0, 1, 0},
        {V(mma), GRT_F16, 64, 64, 512, 1, 0, 1, 1},
        {V(mma), GRT_F16, 64, 56, 512, 1, 0, 1, 0},
        {V(mma), GRT_F16, 64, 64, 504, 2, 0, 1, 0},
        {V(mma), GRT_F16, 128, 128, 128, 1, RAGGED_A, 1, 1},
        {V(mma), GRT_F16, 128, 127, 128, 1, RAGGED_A, 1, 0},
        {V(split_wgmma), GRT_F32, 128, 128, 128, 1, 0, 1, 1},
        {V(split_wgmma), GRT_F32, 128, 127, 128, 1, 0, 1, 0},
        {V(split_wgmma), GRT_F32, 130, 130, 127, 1, 0, 1, 0},
        {V(split_wgmma), GRT_F32, 512, 512, 64, 1, 0, 1, 1},
        {V(wgmma_48k), GRT_F16, 4096, 4096, 4096, 1, 0, 1, 1},
        {V(wgmma), GRT_F16, 4096, 4096, 4096, 1, 0, 0, -1},
        {V(wgmma_b_shared), GRT_F16, 65536, 256, 256, 1, 0, 0, -1},
        {V(wgmma_b_registers), GRT_F16, 12672, 256, 256, 1, 0, 1, 1},  // 198 tiles
        {V(wgmma_b_registers), GRT_F16, 12608, 256, 256, 1, 0, 1, 0},
        {V(wgmma_b_registers), GRT_F16, 12672, 32, 256, 1, 0, 1, 0},
        {V(wgmma_b_registers), GRT_F16, 12672, 40, 256, 1, 0, 1, 1},
        {V(wgmma_b_registers), GRT_F16, 256, 64, 64, 50, 0, 1, 1},
        {V(wgmma_b_registers), GRT_F16, 255, 64, 64, 50, 0, 1, 0},
        {V(wgmma_b_registers), GRT_F16, 256, 64, 64, 49, 0, 1, 0},
        {V(wgmma_b_registers), GRT_F16, 12672, 264, 256, 1, 0, 0, -1},
        {V(wgmma_b_registers), GRT_F16, 12672, 256, 264, 1, 0, 0, -1},
        {V(wgmma_b_registers), GRT_F32, 12672, 256, 256, 1, 0, 0, -1},
        // Eight columns each for half of the units.
        {V(few_rows), GRT_F32, 1, 521, 64, 1, 0, 1, 1},
        {V(few_rows), GRT_F32, 1, 520, 64, 1, 0, 1, 0},
        {V(few_rows), GRT_F32, 1, 8, 64, 66, 0, 1, 1},
        {V(few_rows), GRT_F32, 1, 8, 64, 65, 0, 1, 0},
        {V(few_rows), GRT_F32, 4, 521, 4096, 1, 0, 1, 1},
        {V(few_rows), GRT_F32, 2, 521, 64, 2, 0, 1, 0},
        {V(few_rows), GRT_F32, 5, 4096, 64, 1, 0, 0, 0},
        {V(few_rows), GRT_F32, 1, 4096, 0, 1, 0, 0, -1},
        {V(few_rows), GRT_F16, 1, 4096, 64, 1, 0, 0, -1},
    };
    make(&made, GRT_BACKEND_VULKAN, MMA | HOPPER);
    made.dev.info.caps.imports = 1;
    CHECK(&made, rows);
    // All of the shared memory: OpenCL's kernels serve.
    static const struct row roomy[] = {
        {V(wgmma), GRT_F16, 4096, 4096, 4096, 1, 0, 1, 1},
        {V(wgmma), GRT_F16, 64, 64, 64, 1, 0, 1, 0},
        {V(wgmma_48k), GRT_F16, 4096, 4096, 4096, 1, 0, 1, 0},
        {V(wgmma_b_shared), GRT_F16, 33792, 256, 256, 1, 0, 1, 1},
        {V(wgmma_b_registers), GRT_F16, 12672, 256, 256, 1, 0, 1, 0},
    };
    make(&made, GRT_BACKEND_VULKAN, MMA | HOPPER);
    made.dev.info.caps.imports = 2;
    CHECK(&made, roomy);
}

static void cooperative_matrices(void **state) {
    (void)state;
    struct made made;
    static const struct row rows[] = {
        {V(stream), GRT_F16, 33792, 128, 128, 1, 0, 1, 1},  // 256 rows for each of 132 units
        {V(stream), GRT_F16, 33791, 128, 128, 1, 0, 1, 0},
        {V(stream), GRT_F16, 256, 128, 128, 132, 0, 1, 1},
        {V(stream), GRT_BF16, 33792, 128, 128, 1, 0, 1, 1},
        {V(stream), GRT_F32, 33792, 128, 128, 1, 0, 0, -1},
        {V(stream), GRT_F16, 33792, 128, 128, 1, A_T, 0, -1},
        {V(stream), GRT_F16, 33792, 128, 128, 1, RAGGED_A, 0, -1},
        {V(stream), GRT_F16, 33792, 128, 128, 1, RAGGED_B, 0, -1},
        {V(stream), GRT_F16, 33792, 124, 128, 1, 0, 0, -1},
        {V(stream), GRT_F16, 33792, 128, 0, 1, 0, 0, -1},
        {V(stream), GRT_F16, 33792, 8, 264, 1, 0, 0, 0},
        {V(stream), GRT_F16, 33792, 256, 256, 1, 0, 1, 1},  // b in registers
        {V(stream), GRT_F16, 33792, 192, 256, 1, 0, 1, 0},
        {V(stream), GRT_F16, 33792, 248, 256, 1, 0, 0, 0},  // and whole strips
        {V(stream), GRT_F16, 33792, 512, 32, 1, 0, 1, 1},
        {V(stream), GRT_F16, 33792, 520, 32, 1, 0, 0, 0},
        {V(split_direct), GRT_F32, 64, 64, 64, 67, 0, 1, 1},  // two workgroups each
        {V(split_direct), GRT_F32, 64, 64, 64, 66, 0, 1, 0},
        {V(split_direct), GRT_F32, 65, 64, 64, 67, 0, 1, 0},
        {V(split_direct), GRT_F32, 64, 65, 64, 67, 0, 1, 0},
        {V(split_direct), GRT_F32, 64, 64, 65, 67, 0, 1, 0},
        {V(split_direct), GRT_F16, 64, 64, 64, 1, 0, 0, -1},
        {V(split), GRT_F32, 64, 64, 64, 1, 0, 1, 1},
        {V(split), GRT_F16, 64, 64, 64, 1, 0, 0, -1},
        {V(coop), GRT_F16, 64, 64, 64, 1, 0, 1, 1},
        {V(coop), GRT_BF16, 64, 64, 64, 1, 0, 1, 1},
        {V(coop), GRT_F32, 64, 64, 64, 1, 0, 0, -1},
        {V(coop_deep), GRT_F16, 64, 64, 64, 1, 0, -1, 0},
    };
    for (int without = 0; without < 6; without++) {
        make(&made, GRT_BACKEND_VULKAN, 0);
        struct grt_caps *caps = &made.dev.info.caps;
        caps->matrix_shapes[0] = (struct grt_matrix_shape){16, 16, 16, GRT_F16, GRT_F32};
        caps->matrix_shapes[1] = (struct grt_matrix_shape){16, 16, 16, GRT_BF16, GRT_F32};
        caps->matrix_shape_count = without == 1 ? 0 : 2;
        caps->mma_layout = without != 2;
        caps->subgroup = without == 3 ? 64 : 32;
        if (without == 4) {
            caps->matrix_shapes[0].k = caps->matrix_shapes[1].k = 8;
        }
        if (without == 5) {
            caps->matrix_shapes[0].k = caps->matrix_shapes[1].k = 32;  // not ours
        }
        if (without == 0) {
            CHECK(&made, rows);
            continue;
        }
        struct gemm_case g = product(&made, GRT_F16, 33792, 128, 128, 1, 0);
        assert_false(gemm_variant_stream.usable(&g));
        assert_int_equal(gemm_variant_coop.usable(&g), without != 1 && without != 5);
        g = product(&made, GRT_F32, 64, 64, 64, 1, 0);
        assert_false(gemm_variant_split_direct.usable(&g));
        assert_int_equal(gemm_variant_split.usable(&g), without == 2 || without == 4);
        // Where cutting floats does not pay, nobody does it unasked.
        const struct grt_profile_value no = {.count = 1, .numbers = {0}};
        assert_true(grt_dev_profile_set(&made.dev, GRT_KEY_GEMM_SPLIT_USE, &no));
        assert_false(gemm_variant_split_direct.pays(&g) || gemm_variant_split.pays(&g));
        assert_false(gemm_variant_split_mma.pays(&g) || gemm_variant_split_wgmma.pays(&g));
        grt_profile_destroy(&made.dev.profile);
    }
}

static void processors(void **state) {
    (void)state;
    struct made made;
    // Which of these can be used by lavapipe, by the C reading and by PoCL.
    static const struct {
        const struct gemm_variant *variant;
        bool usable[3], pays[3];
    } rows[] = {
        {V(lanes), {true, true, false}, {true, true, true}},
        {V(panel), {false, false, true}, {true, true, true}},
        {V(tiled), {true, true, true}, {true, false, false}},
        {V(tiny), {true, true, true}, {false, false, false}},
        {V(few_rows), {false, false, false}, {false, false, false}},
        {V(coop), {false, false, false}, {false, false, false}},
        {V(plain), {true, true, true}, {true, true, true}},
    };
    for (int d = 0; d < 3; d++) {
        static const enum grt_backend_id backends[] = {GRT_BACKEND_VULKAN, GRT_BACKEND_REF,
                                                       GRT_BACKEND_OPENCL};
        make(&made, backends[d], 0);
        struct grt_caps *caps = &made.dev.info.caps;
        caps->software = 1;
        caps->shuffle = 1;
        caps->subgroup = d == 0 ? 4 : d == 1 ? 1 : 0;
        caps->vector = 4;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            struct gemm_case g = product(&made, GRT_F32, 16, 16, 16, 2, 0);
            const struct gemm_variant *v = rows[i].variant;
            if (v->usable(&g) != rows[i].usable[d] ||
                (!v->pays || v->pays(&g)) != rows[i].pays[d]) {
                fail_msg("%s on %d", v->name, d);
            }
        }
        // Halves want storage of 16 bits.
        struct gemm_case g = product(&made, GRT_F16, 16, 16, 16, 2, 0);
        for (uint32_t has = 0; has < 2; has++) {
            caps->f16_storage = has;
            assert_int_equal(gemm_variant_plain.usable(&g), has);
            assert_int_equal(gemm_variant_tiny.usable(&g), has);
            assert_int_equal(gemm_variant_lanes.usable(&g), has && d < 2);
        }
        // Lanes that hand numbers around; texels that reach all of an operand.
        g = product(&made, GRT_F32, 16, 16, 16, 1, 0);
        caps->shuffle = 0;
        assert_int_equal(gemm_variant_lanes.usable(&g), d == 1);
        caps->shuffle = 1;
        caps->max_texels = 64;  // 16 x 16 of four bytes
        assert_int_equal(gemm_variant_lanes.usable(&g), d < 2);
        caps->max_texels = 63;
        assert_false(gemm_variant_lanes.usable(&g));
        grt_profile_destroy(&made.dev.profile);
    }
}

static void intel(void **state) {
    (void)state;
    for (uint32_t builds = 0; builds < 4; builds++) {
        struct made made;
        make(&made, GRT_BACKEND_OPENCL, (builds & 1 ? XMX16 : 0) | (builds & 2 ? XMX8 : 0));
        snprintf(made.dev.info.vendor, sizeof made.dev.info.vendor, "Intel(R) Corporation");
        struct gemm_case g = product(&made, GRT_BF16, 64, 64, 64, 1, 0);
        assert_int_equal(gemm_variant_xmx.usable(&g), builds > 0);
        g.in = GRT_F32;
        assert_false(gemm_variant_xmx.usable(&g));
        grt_profile_destroy(&made.dev.profile);
    }
}

// ---- convolutions ----

struct conv_row {
    const struct conv_variant *variant;
    enum grt_conv_pass pass;
    enum grt_dtype type;
    uint32_t size, stride, padding, rows, side, channels, outputs;
    int usable, pays;  // -1: not asked
};

static void check_convolutions(struct made *made, const struct conv_row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct conv_row *r = &rows[i];
        uint32_t out = (r->side + 2 * r->padding - r->size) / r->stride + 1;
        const struct grt_tensor x = {.dtype = r->type,
                                     .rank = 4,
                                     .shape = {r->rows, r->side, r->side, r->channels}},
                                w = {.dtype = r->pass == GRT_CONV_WEIGHT ? GRT_F32 : r->type,
                                     .rank = 4,
                                     .shape = {r->outputs, r->size, r->size, r->channels}},
                                y = {.dtype = r->type,
                                     .rank = 4,
                                     .shape = {r->rows, out, out, r->outputs}};
        const struct grt_conv2d_desc d = {
            .pass = r->pass, .x = &x, .w = &w, .y = &y, .stride = r->stride, .padding = r->padding};
        struct conv_case c;
        conv_fill_case(&c, &made->dev, &d);
        bool usable = r->usable >= 0 && r->variant->usable(&c);
        bool pays = r->pays >= 0 && (!r->variant->pays || r->variant->pays(&c));
        if ((r->usable >= 0 && usable != r->usable) || (r->pays >= 0 && pays != r->pays)) {
            print_error("row %zu, %s, pass %d, %u of %u x %u x %u to %u, size %u by %u: usable %d, "
                        "pays %d\n",
                        i, r->variant->name, (int)r->pass, r->rows, r->side, r->side, r->channels,
                        r->outputs, r->size, r->stride, usable, pays);
            fail();
        }
    }
    grt_profile_destroy(&made->dev.profile);
}
#define CHECK_CONV(made, rows) check_convolutions(made, rows, sizeof(rows) / sizeof *(rows))
#define C(name) &conv_variant_##name
#define TO GRT_CONV_FORWARD
#define BACK GRT_CONV_DATA
#define UP GRT_CONV_WEIGHT

static void convolutions_of_hopper(void **state) {
    (void)state;
    struct made made;
    static const struct conv_row rows[] = {
        {C(product), TO, GRT_F32, 1, 1, 0, 4, 8, 7, 5, 1, 1},
        {C(product), TO, GRT_F32, 1, 2, 0, 4, 8, 7, 5, 0, 1},
        {C(product), TO, GRT_F32, 3, 1, 1, 4, 8, 7, 5, 0, 1},
        {C(wgmma), TO, GRT_F16, 3, 1, 1, 64, 16, 64, 64, 1, 1},
        {C(wgmma), BACK, GRT_BF16, 3, 2, 1, 64, 16, 64, 64, 1, 1},
        {C(wgmma), UP, GRT_F16, 3, 2, 1, 64, 16, 64, 64, 1, 1},
        {C(wgmma), TO, GRT_F32, 3, 1, 1, 64, 16, 64, 64, 0, -1},
        {C(wgmma), TO, GRT_F16, 3, 3, 1, 64, 16, 64, 64, 0, -1},
        {C(wgmma), TO, GRT_F16, 3, 1, 1, 64, 16, 60, 64, 0, -1},
        {C(wgmma), TO, GRT_F16, 3, 1, 1, 64, 16, 64, 60, 0, -1},
        {C(wgmma), TO, GRT_F16, 3, 1, 1, 64, 16, 16, 16, 1, 1},
        {C(wgmma), TO, GRT_F16, 3, 1, 1, 64, 16, 8, 16, 1, 0},
        {C(wgmma), TO, GRT_F16, 3, 1, 1, 64, 16, 16, 8, 1, 0},
        {C(wgmma), TO, GRT_F16, 16, 1, 8, 64, 16, 64, 64, 1, 1},
        {C(wgmma), TO, GRT_F16, 17, 1, 8, 64, 16, 64, 64, 0, -1},
        {C(wgmma), TO, GRT_F16, 3, 2, 1, 64, 2, 64, 64, 1, -1},
        {C(wgmma), TO, GRT_F16, 1, 2, 0, 64, 1, 64, 64, 0, -1},
        {C(wgmma), TO, GRT_F16, 3, 1, 1, 1 << 20, 32, 64, 64, 0, -1},
        {C(wgmma), TO, GRT_F16, 3, 1, 1, (1 << 20) - 1, 32, 64, 64, 1, -1},
        {C(wgmma_48k), TO, GRT_F16, 3, 1, 1, 64, 16, 64, 64, 1, 0},
        {C(wgmma_x_registers), TO, GRT_F16, 3, 1, 1, 64, 16, 64, 160, 1, 0},
        {C(wgmma_x_registers), UP, GRT_F16, 3, 1, 1, 64, 16, 64, 160, 0, -1},
        {C(wgmma_w_registers), TO, GRT_F16, 3, 1, 1, 64, 16, 64, 64, 1, 1},
        {C(wgmma_w_registers), BACK, GRT_F16, 3, 1, 1, 64, 16, 64, 64, 1, 1},
        {C(wgmma_w_registers), UP, GRT_F16, 3, 1, 1, 64, 16, 64, 64, 0, -1},
        {C(wgmma_w_registers), TO, GRT_F16, 3, 2, 1, 64, 16, 64, 64, 0, -1},
        {C(wgmma_w_registers), TO, GRT_F16, 3, 1, 0, 64, 16, 64, 64, 0, -1},
        {C(wgmma_w_registers), TO, GRT_F16, 5, 1, 1, 64, 16, 64, 64, 0, -1},
        {C(wgmma_w_registers), TO, GRT_F16, 3, 1, 1, 64, 16, 128, 64, 1, 0},
        {C(wgmma_w_registers), TO, GRT_F16, 3, 1, 1, 64, 16, 136, 64, 0, -1},
        {C(wgmma_w_registers), TO, GRT_F16, 3, 1, 1, 64, 16, 56, 64, 1, 0},
        {C(wgmma_w_registers), TO, GRT_F16, 3, 1, 1, 64, 16, 64, 72, 1, 0},
        {C(wgmma_w_registers), TO, GRT_F16, 3, 1, 1, 64, 5, 64, 64, 1, 0},  // boxes half full
        {C(wgmma_columns), UP, GRT_F16, 3, 1, 1, 64, 16, 64, 64, 1, 1},
        {C(wgmma_columns), TO, GRT_F16, 3, 1, 1, 64, 16, 64, 64, 0, -1},
        {C(wgmma_columns), UP, GRT_F16, 3, 1, 1, 64, 5, 64, 64, 1, 0},
        {C(wgmma_columns), UP, GRT_F16, 3, 1, 1, 64, 16, 8, 64, 1, 0},
        {C(folded), TO, GRT_F16, 5, 2, 2, 64, 16, 4, 64, -1, 1},
        {C(folded), TO, GRT_F16, 4, 2, 1, 64, 16, 4, 64, -1, 0},
        {C(folded), TO, GRT_F16, 5, 2, 2, 64, 16, 4, 96, -1, 0},
        {C(folded), BACK, GRT_F16, 5, 2, 2, 64, 16, 4, 64, 0, -1},
        {C(folded), TO, GRT_F16, 5, 1, 2, 64, 16, 4, 64, 0, -1},
        {C(folded), TO, GRT_F32, 5, 2, 2, 64, 16, 4, 64, 0, -1},
        {C(panel), TO, GRT_F32, 3, 1, 1, 64, 16, 64, 64, 0, -1},
        {C(widened), TO, GRT_F16, 3, 1, 1, 64, 16, 64, 64, 0, -1},
        {C(patches), TO, GRT_F16, 3, 1, 1, 64, 16, 64, 64, 1, 1},
    };
    make(&made, GRT_BACKEND_OPENCL, MMA | ROOMY | HOPPER);
    CHECK_CONV(&made, rows);
    // Within 48 KiB.
    static const struct conv_row lean[] = {
        {C(wgmma), TO, GRT_F16, 3, 1, 1, 64, 16, 64, 64, 0, -1},
        {C(wgmma_48k), TO, GRT_F16, 3, 1, 1, 64, 16, 16, 16, 1, 1},
        {C(wgmma_48k), TO, GRT_F16, 3, 1, 1, 64, 16, 8, 16, 1, 0},
        {C(wgmma_x_registers), TO, GRT_F16, 3, 1, 1, 64, 16, 16, 16, 1, 1},
        {C(wgmma_x_registers), TO, GRT_F16, 3, 1, 1, 64, 16, 8, 16, 1, 0},
        {C(wgmma_x_registers), TO, GRT_F16, 3, 1, 1, 64, 16, 16, 8, 1, 0},
        {C(wgmma_w_registers), TO, GRT_F16, 3, 1, 1, 64, 16, 128, 64, 1, 1},
        {C(wgmma_w_registers), BACK, GRT_F16, 3, 1, 1, 64, 16, 64, 128, 1, 1},
        {C(wgmma_w_registers), BACK, GRT_F16, 3, 1, 1, 64, 16, 64, 136, 0, -1},
    };
    make(&made, GRT_BACKEND_VULKAN, HOPPER);
    made.dev.info.caps.imports = 1;
    CHECK_CONV(&made, lean);
    static const struct conv_row roomy[] = {
        {C(wgmma), TO, GRT_F16, 3, 1, 1, 64, 16, 64, 64, 1, 1},
        {C(wgmma_48k), TO, GRT_F16, 3, 1, 1, 64, 16, 64, 64, 1, 0},
        {C(wgmma_x_registers), TO, GRT_F16, 3, 1, 1, 64, 16, 64, 128, 1, 0},
        {C(wgmma_x_registers), TO, GRT_F16, 3, 1, 1, 64, 16, 64, 136, 1, 1},
        {C(wgmma_x_registers), TO, GRT_F16, 3, 1, 1, 64, 16, 64, 160, 1, 1},
        {C(wgmma_x_registers), TO, GRT_F16, 3, 1, 1, 64, 16, 64, 168, 1, 0},
        {C(wgmma_x_registers), BACK, GRT_F16, 3, 1, 1, 64, 16, 160, 64, 1, 1},
        {C(wgmma_x_registers), BACK, GRT_F16, 3, 1, 1, 64, 16, 64, 160, 1, 0},
    };
    make(&made, GRT_BACKEND_VULKAN, HOPPER);
    made.dev.info.caps.imports = 2;
    CHECK_CONV(&made, roomy);
}

static void convolutions_of_processors(void **state) {
    (void)state;
    struct made made;
    for (uint32_t software = 0; software < 2; software++) {
        const struct conv_row rows[] = {
            {C(panel), TO, GRT_F32, 3, 1, 1, 4, 8, 8, 4, (int)software, 1},
            {C(panel), TO, GRT_F32, 3, 1, 1, 4, 8, 8, 3, (int)software, 0},  // vectors of four
            {C(panel), BACK, GRT_F32, 3, 1, 1, 4, 8, 4, 3, (int)software, 1},
            {C(panel), BACK, GRT_F32, 3, 1, 1, 4, 8, 3, 8, (int)software, 0},
            {C(panel), TO, GRT_F16, 3, 1, 1, 4, 8, 8, 4, 0, -1},
            {C(widened), TO, GRT_F16, 3, 1, 1, 4, 8, 8, 4, (int)software, 1},
            {C(widened), TO, GRT_F32, 3, 1, 1, 4, 8, 8, 4, 0, 0},
            {C(tiled), TO, GRT_F32, 3, 1, 1, 4, 8, 8, 4, 1, software ? 0 : -1},
        };
        make(&made, GRT_BACKEND_OPENCL, 0);
        made.dev.info.caps.software = software;
        made.dev.info.caps.vector = 4;
        CHECK_CONV(&made, rows);
    }
}

static const struct CMUnitTest cases[] = {
    PAYS_CASE(convolutions_of_hopper),
    PAYS_CASE(convolutions_of_processors),
    PAYS_CASE(opencl_of_nvidia),
    PAYS_CASE(vulkan_with_imports),
    PAYS_CASE(cooperative_matrices),
    PAYS_CASE(processors),
    PAYS_CASE(intel),
};
TEST_SUITE(pays, false, cases);
