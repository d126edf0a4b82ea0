// SPDX-License-Identifier: Apache-2.0
// The profiles that are shipped: each can be read, reaches its devices, says where its numbers come
// from and asks nothing of a device that it has not got.
#include "harness/harness.h"

#include <stdio.h>
#include <string.h>

#include "kits/profile_kit.h"
#include "gpurt/es.h"
#include "tuning/profile_file.h"
#include "gpurt/tunable.h"

static void readable(void **state) {
    (void)state;
    uint32_t count = 0;
    for (; profile_texts[count].name; count++) {
        const char *text = profile_texts[count].text;
        struct profile_file file;
        char why[PROFILE_WHY] = "";
        if (!profile_parse(profile_texts[count].name, text, strlen(text), &file, why)) {
            print_error("%s\n", why);
            fail();
        }
        assert_int_not_equal(file.level, GRT_PROFILE_USER);
        uint32_t rows = 0;
        for (uint32_t key = 0; key < GRT_KEY_COUNT; key++) {
            rows += file.rows[key].line != 0;
            assert_true(file.rows[key].line == 0 || file.rows[key].from[0] != '\0');
        }
        assert_int_not_equal(rows, 0);
    }
    assert_in_range(count, 20, 60);
}

// A device of each kind that is shipped for, and a number that only its own profile gives it.
static void reach_their_devices(void **state) {
    (void)state;
    kit_enter_home();
    const struct {
        const char *name, *vendor;
        double gib;
        const char *profile;
        enum grt_profile_key key;
        double want;
    } rows[] = {
        {"NVIDIA A100-SXM4-80GB", "NVIDIA", 79.2, "nvidia-a100", GRT_KEY_NUM_ENVS, 1024},
        {"NVIDIA A100-SXM4-80GB", "NVIDIA", 79.2, "nvidia-a100", GRT_KEY_NUM_DIRS, 64},
        {"NVIDIA A100-SXM4-80GB", "NVIDIA", 79.2, "nvidia-a100", GRT_KEY_DIR_CHUNK, 64},
        {"NVIDIA A100-SXM4-80GB", "NVIDIA", 79.2, "nvidia-a100", GRT_KEY_MEM_FRACTION, 0.95},
        {"NVIDIA A100-SXM4-80GB", "NVIDIA", 79.2, "nvidia-a100", GRT_KEY_AUTOTUNE, 3},
        {"NVIDIA A100-SXM4-80GB", "NVIDIA", 79.2, "gpu-80g", GRT_KEY_SMALL_BATCH, 4096},
        {"NVIDIA A100-SXM4-80GB", "NVIDIA", 79.2, "gpu-80g", GRT_KEY_SMALL_WORKERS, 12},
        {"NVIDIA A100-SXM4-80GB", "NVIDIA", 79.2, "gpu-80g", GRT_KEY_LARGE_ACCUMULATE, 4},
        {"NVIDIA A100-PCIE-40GB", "NVIDIA Corporation", 39.4, "gpu-40g", GRT_KEY_MEDIUM_BATCH, 512},
        {"NVIDIA A100-PCIE-40GB", "NVIDIA Corporation", 39.4, "nvidia-a100", GRT_KEY_NUM_ENVS,
         1024},
        {"NVIDIA GeForce RTX 3060 Laptop GPU", "NVIDIA", 5.8, "nvidia-rtx-3060-laptop",
         GRT_KEY_MEM_FRACTION, 0.85},
        {"NVIDIA GeForce RTX 3060 Laptop GPU", "NVIDIA", 5.8, "nvidia-rtx-3060-laptop",
         GRT_KEY_NUM_ENVS, 256},
        {"NVIDIA GeForce RTX 3060 Laptop GPU", "NVIDIA", 5.8, "nvidia-rtx-3060-laptop",
         GRT_KEY_DIR_CHUNK, 16},
        {"NVIDIA GeForce RTX 3060", "NVIDIA", 11.8, "gpu-12g", GRT_KEY_MEDIUM_BATCH, 128},
        {"NVIDIA GeForce RTX 3060", "NVIDIA", 11.8, "gpu-12g", GRT_KEY_MEDIUM_ACCUMULATE, 4},
        {"NVIDIA GeForce RTX 3060", "NVIDIA", 11.8, "gpu-12g", GRT_KEY_MEDIUM_WORKERS, 6},
        {"NVIDIA GeForce RTX 3060", "NVIDIA", 11.8, "nvidia-rtx-3060", GRT_KEY_DIR_CHUNK, 32},
        {"NVIDIA GeForce RTX 3090", "NVIDIA", 23.7, "gpu-24g", GRT_KEY_SMALL_BATCH, 1024},
        {"NVIDIA GeForce RTX 3090", "NVIDIA", 23.7, "nvidia-rtx-3090", GRT_KEY_DIR_CHUNK, 32},
        {"NVIDIA GeForce RTX 4090", "NVIDIA", 23.6, "nvidia-rtx-4090", GRT_KEY_GEMM_TILED_MEDIUM,
         64},
        // Of that name, with other memory and another chip.
        {"NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA", 15.7, "gpu-12g", GRT_KEY_NUM_ENVS, 256},
        {"NVIDIA GeForce RTX 3060 Ti", "NVIDIA", 7.8, "gpu", GRT_KEY_NUM_ENVS, 256},
        {"NVIDIA H100 80GB HBM3", "NVIDIA", 79.1, "nvidia-hopper", GRT_KEY_NUM_ENVS, 2048},
        {"NVIDIA H200", "NVIDIA", 139.8, "nvidia-hopper", GRT_KEY_AUTOTUNE, 3},
        {"AMD Radeon RX 6800 (RADV NAVI21)", "AMD", 16, "amd-rdna2", GRT_KEY_GEMM_TILED_MEDIUM, 32},
        {"gfx1030", "Advanced Micro Devices, Inc.", 16, "amd-rdna2", GRT_KEY_GEMM_TILED_MEDIUM, 32},
        {"gfx1100", "Advanced Micro Devices, Inc.", 24, "amd-rdna3", GRT_KEY_GEMM_TILED_MEDIUM, 32},
        {"gfx90a:sramecc+:xnack-", "Advanced Micro Devices, Inc.", 64, "amd-cdna2",
         GRT_KEY_NUM_ENVS, 1024},
        {"Intel(R) Arc(TM) A770 Graphics (DG2)", "Intel", 15.9, "intel-dg2",
         GRT_KEY_GEMM_TILED_MEDIUM, 32},
        {"Intel(R) Arc(TM) B580 Graphics", "Intel(R) Corporation", 11.9, "intel-battlemage",
         GRT_KEY_GEMM_TILED_MEDIUM, 64},
        {"Apple M2 Pro", "Apple", 10.7, "apple", GRT_KEY_MEM_FRACTION, 0.7},
        {"Adreno (TM) 740", "Qualcomm", 7, "qualcomm-adreno", GRT_KEY_STREAM_WG, 128},
        {"Mali-G710", "Arm", 7, "arm-mali", GRT_KEY_STREAM_WG, 64},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct grt_dev_info info = kit_gpu(rows[i].name, rows[i].vendor, rows[i].gib);
        struct grt_profile *profile = grt_profile_create(&info);
        assert_non_null(profile);
        const struct grt_profile_value *value = grt_profile_get(profile, rows[i].key);
        if (strncmp(value->profile, rows[i].profile, strlen(rows[i].profile)) != 0) {
            print_error("%s: %s comes from %s, wanted %s\n", rows[i].name,
                        grt_profile_key_info(rows[i].key)->key, value->profile, rows[i].profile);
            fail();
        }
        kit_expect(profile, rows[i].key, rows[i].want);
        grt_profile_destroy(&profile);
    }
    kit_leave_home();
}

// What drivers call their devices, under OpenCL and Vulkan, and what that is.
static void names_of_drivers(void **state) {
    (void)state;
    static const struct {
        const char *name, *vendor, *maker, *arch;
    } rows[] = {
        {"Quadro RTX 6000", "NVIDIA Corporation", "nvidia", "turing"},
        {"NVIDIA GeForce RTX 2080 Ti", "NVIDIA", "nvidia", "turing"},
        {"NVIDIA RTX A2000 12GB", "NVIDIA", "nvidia", "ampere-consumer"},
        {"NVIDIA A10G", "NVIDIA Corporation", "nvidia", "ampere-consumer"},
        {"NVIDIA A2", "NVIDIA Corporation", "nvidia", "ampere-consumer"},
        {"NVIDIA A100 80GB PCIe", "NVIDIA Corporation", "nvidia", "ampere"},
        {"GRID A100D-40C", "NVIDIA", "nvidia", "ampere"},
        {"Microsoft Direct3D12 (NVIDIA GeForce RTX 3060 Laptop GPU)", "NVIDIA", "nvidia",
         "ampere-consumer"},
        {"NVIDIA RTX 2000 Ada Generation", "NVIDIA", "nvidia", "ada"},
        {"NVIDIA RTX 4000 SFF Ada Generation", "NVIDIA", "nvidia", "ada"},
        {"NVIDIA RTX 5000 Ada Generation Laptop GPU", "NVIDIA", "nvidia", "ada"},
        {"NVIDIA L40S", "NVIDIA Corporation", "nvidia", "ada"},
        {"NVIDIA GH200 480GB", "NVIDIA Corporation", "nvidia", "hopper"},
        {"NVIDIA H100 PCIe", "NVIDIA", "nvidia", "hopper"},
        {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "NVIDIA", "nvidia", "blackwell"},
        {"NVIDIA GeForce GTX 1080", "NVIDIA", "nvidia", ""},
        {"AMD Radeon RX 7900 XTX (RADV NAVI31)", "AMD", "amd", "rdna3"},
        {"AMD Radeon RX 7900 XTX (radeonsi, navi31, LLVM 15.0.7, DRM 3.49)", "AMD", "amd", "rdna3"},
        {"AMD Radeon 780M (RADV GFX1103_R1)", "AMD", "amd", "rdna3"},
        {"AMD Radeon PRO W7900", "Advanced Micro Devices, Inc.", "amd", "rdna3"},
        {"AMD Custom GPU 0405 (RADV VANGOGH)", "AMD", "amd", "rdna2"},
        {"AMD Radeon 680M (RADV REMBRANDT)", "AMD", "amd", "rdna2"},
        {"AMD Instinct MI210", "AMD", "amd", "cdna2"},
        {"gfx942:sramecc+:xnack-", "Advanced Micro Devices, Inc.", "amd", ""},
        {"Intel(R) Arc(tm) A770 Graphics (DG2)", "Intel", "intel", "dg2"},
        {"Mesa Intel(R) Arc(tm) A380 Graphics (DG2)", "Intel", "intel", "dg2"},
        {"Intel(R) Graphics [0x56a0]", "Intel(R) Corporation", "intel", "dg2"},
        {"Intel(R) Arc(TM) Pro A60 Graphics", "Intel(R) Corporation", "intel", "dg2"},
        {"Intel(R) Data Center GPU Flex 170", "Intel(R) Corporation", "intel", "dg2"},
        {"Intel(R) Arc(tm) B580 Graphics (BMG G21)", "Intel", "intel", "battlemage"},
        {"Intel(R) Arc(TM) Pro B50 Graphics", "Intel(R) Corporation", "intel", "battlemage"},
        {"Intel(R) Graphics [0xe20b]", "Intel(R) Corporation", "intel", "battlemage"},
        {"Intel(R) Arc(TM) Graphics", "Intel(R) Corporation", "intel", ""},
        {"Intel(R) UHD Graphics 770 (ADL-S GT1)", "Intel", "intel", ""},
        {"Apple M1 Max", "Apple", "apple", "apple"},
        {"Apple M1 (G13G B1)", "Mesa", "apple", "apple"},
        {"Turnip Adreno (TM) 740", "Qualcomm", "qualcomm", "adreno"},
        {"QUALCOMM Adreno(TM)", "QUALCOMM", "qualcomm", "adreno"},
        {"Mali-G715-Immortalis MC11 r1p2", "ARM", "arm", "mali"},
        {"Mali-G610 (Panfrost)", "Arm", "arm", "mali"},
        {"Immortalis-G720", "Arm", "arm", "mali"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct grt_dev_info info = kit_gpu(rows[i].name, rows[i].vendor, 8);
        struct profile_kind kind = profile_kind_of(&info);
        if (strcmp(kind.vendor, rows[i].maker) != 0 || strcmp(kind.arch, rows[i].arch) != 0) {
            print_error("%s: %s '%s', wanted %s '%s'\n", rows[i].name, kind.vendor, kind.arch,
                        rows[i].maker, rows[i].arch);
            fail();
        }
        assert_string_equal(kind.class, "gpu");
    }
    // CPU drivers, whose vendor is that of the CPU.
    static const struct {
        const char *name, *vendor, *driver, *arch;
    } cpus[] = {
        {"pthread-skylake-avx512-Intel(R) Xeon(R) Platinum 8370C", "GenuineIntel",
         "Portable Computing Language", "pocl"},
        {"cpu-haswell-AMD EPYC 7763", "AuthenticAMD", "Portable Computing Language", "pocl"},
        {"llvmpipe (LLVM 17.0.6, 256 bits)", "Mesa", "llvmpipe", "lavapipe"},
        {"Intel(R) Xeon(R) CPU", "Intel(R) Corporation", "Intel(R) OpenCL", ""},
    };
    for (size_t i = 0; i < sizeof cpus / sizeof cpus[0]; i++) {
        struct grt_dev_info info = kit_gpu(cpus[i].name, cpus[i].vendor, 8);
        info.caps.software = true;
        snprintf(info.driver, sizeof info.driver, "%s", cpus[i].driver);
        struct profile_kind kind = profile_kind_of(&info);
        assert_string_equal(kind.vendor, "");
        assert_string_equal(kind.arch, cpus[i].arch);
        assert_string_equal(kind.class, "cpu");
    }
}

// Evolution strategies by the two guides' devices, and others by memory and by compute units.
static void sizes_of_rollouts(void **state) {
    (void)state;
    kit_enter_home();
    const struct {
        const char *name, *vendor;
        double gib;
        uint32_t units;  // 0: the driver does not tell
        struct grt_es_sizes want;
    } rows[] = {
        {"NVIDIA A100-SXM4-80GB", "NVIDIA", 79.2, 108, {1024, 64, 64}},
        {"NVIDIA A100-PCIE-40GB", "NVIDIA", 39.4, 108, {1024, 64, 64}},
        {"NVIDIA GeForce RTX 3060 Laptop GPU", "NVIDIA", 5.8, 30, {256, 32, 16}},
        {"NVIDIA H200", "NVIDIA", 139.8, 132, {2048, 64, 64}},
        {"Voodoo 9", "3dfx", 6, 0, {256, 32, 16}},
        {"Voodoo 9", "3dfx", 12, 40, {256, 32, 32}},
        {"Voodoo 9", "3dfx", 24, 0, {1024, 64, 32}},
        {"Voodoo 9", "3dfx", 48, 80, {1024, 64, 64}},
        {"Voodoo 9", "3dfx", 96, 80, {1024, 64, 64}},
        {"Voodoo 9", "3dfx", 96, 8, {128, 64, 64}},  // a small GPU that shares the host's memory
        {"Voodoo 9", "3dfx", 96, 1, {16, 64, 64}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct grt_dev_info info = kit_gpu(rows[i].name, rows[i].vendor, rows[i].gib);
        info.caps.compute_units = rows[i].units;
        struct grt_profile *profile = grt_profile_create(&info);
        assert_non_null(profile);
        struct grt_es_sizes got = grt_es_sizes(profile, &info);
        print_message("# %s, %g GiB, %u units: %u x %u, %u at once\n", rows[i].name, rows[i].gib,
                      rows[i].units, got.num_envs, got.num_dirs, got.dir_chunk);
        assert_memory_equal(&got, &rows[i].want, sizeof got);
        grt_profile_destroy(&profile);
    }
    kit_leave_home();
}

// What was not measured by us is not called so: measured numbers stand only in profiles of devices
// that we had, and name their date.
static void measured_where_we_were(void **state) {
    (void)state;
    static const char *const had[] = {"pocl", "lavapipe", "nvidia-h200"};
    for (uint32_t i = 0; profile_texts[i].name; i++) {
        bool ours = false;
        for (size_t k = 0; k < sizeof had / sizeof had[0]; k++) {
            ours = ours || strcmp(had[k], profile_texts[i].name) == 0;
        }
        if (!ours && strstr(profile_texts[i].text, "from = measured")) {
            print_error("%s has measured numbers\n", profile_texts[i].name);
            fail();
        }
    }
}

// No shipped tile needs what its device has not got.
static void tiles_are_sensible(void **state) {
    (void)state;
    kit_enter_home();
    const struct {
        const char *name, *vendor;
        uint32_t max_wg, shmem;
    } devices[] = {
        {"NVIDIA A100-SXM4-80GB", "NVIDIA", 1024, 48 << 10},
        {"NVIDIA GeForce RTX 3060", "NVIDIA", 1024, 48 << 10},
        {"NVIDIA GeForce RTX 3090", "NVIDIA", 1024, 48 << 10},
        {"NVIDIA GeForce RTX 4090", "NVIDIA", 1024, 48 << 10},
        {"NVIDIA H200", "NVIDIA", 1024, 48 << 10},
        {"gfx1030", "AMD", 256, 64 << 10},
        {"gfx1100", "AMD", 256, 64 << 10},
        {"gfx90a", "AMD", 256, 64 << 10},
        {"Intel(R) Arc(TM) A770", "Intel", 512, 64 << 10},
        {"Intel(R) Arc(TM) B580", "Intel", 512, 64 << 10},
        {"Apple M2", "Apple", 1024, 32 << 10},
        {"Adreno (TM) 740", "Qualcomm", 512, 32 << 10},
        {"Mali-G710", "Arm", 256, 32 << 10},
        {"Voodoo 9", "3dfx", 256, 48 << 10},
    };
    for (size_t d = 0; d < sizeof devices / sizeof devices[0]; d++) {
        struct grt_dev_info info = kit_gpu(devices[d].name, devices[d].vendor, 16);
        info.caps.max_wg = devices[d].max_wg;
        info.caps.shmem = devices[d].shmem;
        struct grt_profile *profile = grt_profile_create(&info);
        assert_non_null(profile);
        for (uint32_t t = 0; grt_tunable(t); t++) {
            const struct grt_tunable *tunable = grt_tunable(t);
            if (strcmp(tunable->variant, "panel") == 0) {
                continue;  // of CPUs
            }
            for (uint32_t size = 0; size < tunable->classes; size++) {
                enum grt_profile_key key = (enum grt_profile_key)(tunable->key + size);
                const struct grt_profile_value *value = grt_profile_get(profile, key);
                uint32_t values[GRT_PROFILE_NUMBERS];
                char why[GRT_TUNABLE_WHY] = "";
                for (uint32_t i = 0; i < value->count; i++) {
                    values[i] = (uint32_t)value->numbers[i];
                }
                if (!grt_tunable_sensible(tunable, &info, values, why)) {
                    print_error("%s, %s of %s: %s\n", info.name, grt_profile_key_info(key)->key,
                                value->profile, why);
                    fail();
                }
            }
        }
        grt_profile_destroy(&profile);
    }
    kit_leave_home();
}

// Settings of matrix units: zeros mean the runtime's own choice and are always possible; what
// cannot run is refused with a sentence, before a driver sees it.
static void settings_of_matrix_units(void **state) {
    (void)state;
    struct grt_dev_info info = kit_gpu("NVIDIA H200", "NVIDIA", 140);
    struct grt_dev_info bare = info;
    info.caps.max_wg = bare.caps.max_wg = 1024;
    info.caps.shmem = bare.caps.shmem = 48 << 10;
    info.caps.subgroup = bare.caps.subgroup = 32;
    info.caps.matrix_shape_count = 2;
    info.caps.matrix_shapes[0] = (struct grt_matrix_shape){16, 16, 16, GRT_F16, GRT_F32};
    info.caps.matrix_shapes[1] = (struct grt_matrix_shape){16, 16, 16, GRT_BF16, GRT_F32};
    bare.caps.matrix_shape_count = 0;
    const struct {
        const char *variant;
        uint32_t values[GRT_PROFILE_NUMBERS];
        bool possible;
    } rows[] = {
        {"coop", {128, 256, 32, 64, 64, 2}, true},
        {"coop", {128, 256, 64, 64, 64, 2}, false},
        {"coop", {128, 100, 32, 64, 64, 1}, false},
        {"coop", {256, 256, 32, 128, 64, 1}, false},
        {"coop", {128, 128, 32, 64, 0, 1}, false},
        {"split", {64, 128, 16, 32, 64}, true},
        {"split", {256, 256, 32, 64, 32}, false},
        {"split", {128, 128, 16, 64, 64}, false},
        {"split_mma", {128, 128, 32, 64, 32}, true},
        {"split_mma", {128, 128, 24, 64, 32}, false},
        {"split_wgmma", {128, 128, 32}, true},
        {"split_wgmma", {128, 256, 32}, false},
        {"split_wgmma", {96, 128, 32}, false},
        {"mma", {128, 256, 64, 64, 64, 3}, true},
        {"mma", {128, 256, 64, 64, 64, 1}, false},
        {"mma", {256, 256, 64, 64, 64, 4}, false},
        {"wgmma", {128, 256, 4}, true},
        {"wgmma", {128, 256, 6}, false},
        {"wgmma", {100, 256, 4}, false},
        {"wgmma_48k", {128, 256, 5, 3}, true},
        {"wgmma_48k", {128, 256, 6, 3}, false},
        {"wgmma_48k", {128, 192, 5, 3}, false},
        {"wgmma_48k", {128, 256, 5, 5}, false},
        {"wgmma_48k", {64, 256, 5, 3}, false},
    };
    for (uint32_t t = 0; grt_tunable(t); t++) {
        const struct grt_tunable *tunable = grt_tunable(t);
        const uint32_t zeros[GRT_PROFILE_NUMBERS] = {0};
        char why[GRT_TUNABLE_WHY] = "";
        bool matrix = false;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            if (strcmp(rows[i].variant, tunable->variant) != 0) {
                continue;
            }
            matrix = true;
            if (tunable->possible(&info, rows[i].values, why) != rows[i].possible) {
                print_error("%s, row %zu: %s\n", rows[i].variant, i, why);
                fail();
            }
            assert_true(rows[i].possible || strlen(why) > 20);
            why[0] = '\0';
        }
        assert_true(!matrix || tunable->possible(&bare, zeros, why));
        // Every candidate of the tuner that is worth trying is made of numbers that fit the key.
        for (uint32_t k = 0; k < GRT_PROFILE_NUMBERS && tunable->knobs[k].name; k++) {
            assert_non_null(
                strstr(grt_profile_key_info(tunable->key)->numbers, tunable->knobs[k].name));
        }
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(readable),
    TEST_CASE(reach_their_devices),
    TEST_CASE(names_of_drivers),
    TEST_CASE(sizes_of_rollouts),
    TEST_CASE(measured_where_we_were),
    TEST_CASE(tiles_are_sensible),
    TEST_CASE(settings_of_matrix_units),
};
TEST_SUITE(shipped, false, cases);
