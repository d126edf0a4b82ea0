// SPDX-License-Identifier: Apache-2.0
// Which kernels fit a device, which build, and what is remembered of both; what devices of a list
// are told apart by; what physical devices are called. Devices and drivers are made up.
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "backends/vulkan/vulkan.h"
#include "device/internal.h"

// ---- limits of kernels ----

static void limits(void **state) {
    (void)state;
    static const struct {
        const char *name, *spec;
        uint32_t value, max_wg, shmem, storage, texels;
        const char *why;  // "": it fits
    } rows[] = {
        {"copy", "WG", 64, 64, 0, 0, 0, ""},
        {"copy", "WG", 65, 64, 0, 0, 0, "kernel 'copy': a workgroup of 65, ref:3 allows 1 to 64"},
        {"copy", "WG", 1, 64, 0, 0, 0, ""},
        {"copy", "WG", 0, 64, 0, 0, 0, "kernel 'copy': a workgroup of 0, ref:3 allows 1 to 64"},
        {"fill16", "WG", 1, 64, 0, 1, 0, ""},
        {"fill16", "WG", 1, 64, 0, 0, 0, "kernel 'fill16' needs 16-bit storage, ref:3 has none"},
        {"widen", "WG", 1, 64, 0, 0, 0, "kernel 'widen' needs 16-bit storage, ref:3 has none"},
        {"gemm_lanes_f32", "WG", 1, 64, 1 << 20, 1, 1, ""},
        {"gemm_lanes_f32", "WG", 1, 64, 1 << 20, 1, 0,
         "kernel 'gemm_lanes_f32' needs texel buffers, ref:3 has none"},
        {"probe_mma", "WG", 32, 64, 1 << 20, 1, 1, "kernel 'probe_mma' does not run on ref:3"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct grt_dev_info info = {.backend = GRT_BACKEND_REF,
                                          .selector = "ref:3",
                                          .caps = {.max_wg = rows[i].max_wg,
                                                   .shmem = rows[i].shmem,
                                                   .f16_storage = rows[i].storage,
                                                   .max_texels = rows[i].texels}};
        const struct grt_kernel_desc desc = {rows[i].name, {{rows[i].spec, rows[i].value}}};
        char why[256] = "";
        assert_int_equal(grt_kernel_fits(&info, &desc, why), !rows[i].why[0]);
        assert_string_equal(why, rows[i].why);
    }
    // Shared memory to the last byte.
    const struct grt_kernel_desc transpose = {"transpose", {{"TILE", 16}}};
    struct grt_dev_info info = {.selector = "ref:3",
                                .backend = GRT_BACKEND_REF,
                                .caps = {.max_wg = 1024, .shmem = 1 << 20}};
    const struct grt_kernel_info *found = NULL;
    for (uint32_t i = 0; grt_kernel_table[i]; i++) {
        found = strcmp(grt_kernel_table[i]->name, "transpose") == 0 ? grt_kernel_table[i] : found;
    }
    assert_non_null(found);
    uint32_t values[GRT_MAX_SPECS] = {0};
    for (uint32_t i = 0; i < found->spec_count; i++) {
        values[i] = strcmp(found->specs[i].name, "TILE") == 0 ? 16 : found->specs[i].value;
    }
    uint32_t needs = found->shmem(found, values);
    char why[256] = "", want[256];
    assert_true(needs >= 16 * 16 * 4);
    info.caps.shmem = needs;
    assert_true(grt_kernel_fits(&info, &transpose, why));
    info.caps.shmem = needs - 1;
    assert_false(grt_kernel_fits(&info, &transpose, why));
    snprintf(want, sizeof want, "kernel 'transpose' needs %u bytes of shared memory, ref:3 has %u",
             needs, needs - 1);
    assert_string_equal(why, want);
}

// ---- builds that are remembered ----

static uint32_t builds;
static bool refuses;
static struct grt_kernel *make_kernel(struct grt_dev *dev, const struct grt_kernel_info *info,
                                      const uint32_t *values) {
    (void)dev, (void)values;
    builds++;
    if (refuses) {
        grt_fail(GRT_COMPILE, "kernel %s is refused", info->name);
        return NULL;
    }
    return calloc(1, sizeof(struct grt_kernel));
}
static uint32_t ended;
static void end_kernel(struct grt_kernel *kernel) {
    ended++;
    free(kernel);
}

static void what_builds(void **state) {
    (void)state;
    static const struct grt_dev_fns fns = {.kernel_create = make_kernel,
                                           .kernel_destroy = end_kernel};
    struct grt_dev dev = {.fns = &fns,
                          .info = {.backend = GRT_BACKEND_OPENCL,
                                   .vendor = "NVIDIA",
                                   .selector = "opencl:9",
                                   .caps = {.max_wg = 1024, .shmem = 1 << 20, .f16_storage = 1}}};
    // Once, whether it builds or not; and no line of the log is an error.
    refuses = true;
    for (int i = 0; i < 3; i++) {
        assert_false(grt_kernel_builds(&dev, "probe_mma"));
        assert_int_equal(builds, 1);
    }
    refuses = false;
    assert_false(grt_kernel_builds(&dev, "probe_mma"));
    for (int i = 0; i < 3; i++) {
        assert_true(grt_kernel_builds(&dev, "probe_wgmma"));
        assert_int_equal(builds, 2);
    }
    // Kernels by their constants, each once.
    const struct grt_kernel *a = grt_kernel_get(&dev, grt_kernel_desc(.name = "copy"));
    const struct grt_kernel *b =
        grt_kernel_get(&dev, grt_kernel_desc(.name = "copy", .specs = {{"WG", 96}}));
    assert_true(a && b && a != b && a->dev == &dev && b->spec_values[0] == 96);
    assert_ptr_equal(grt_kernel_get(&dev, grt_kernel_desc(.name = "copy")), a);
    assert_int_equal(builds, 4);
    assert_false(grt_kernel_builds(&dev, "no such kernel"));
    TEST_REFUSED(grt_kernel_get(&dev, grt_kernel_desc(.name = "copy", .specs = {{"BN", 1}})),
                 GRT_INVALID, "kernel 'copy' has no constant 'BN'");
    TEST_REFUSED(grt_kernel_get(&dev, grt_kernel_desc(.name = "none")), GRT_INVALID,
                 "no kernel 'none'");
    // Not on a CPU driver, and not of another maker.
    dev.info.caps.software = 1;
    assert_false(grt_kernel_builds(&dev, "probe_wgmma"));
    dev.info.caps.software = 0;
    strcpy(dev.info.vendor, "AMD");
    assert_false(grt_kernel_builds(&dev, "probe_wgmma"));
    strcpy(dev.info.vendor, "NVIDIA");
    assert_true(grt_kernels_roomy(&dev));
    dev.info.caps.imports = 1;
    assert_false(grt_kernels_roomy(&dev));
    assert_int_equal(builds, 4);
    grt_kernels_destroy(&dev);
    assert_int_equal(ended, 3);
    assert_null(dev.kernels);
}

// ---- devices ----

static void alignment(void **state) {
    (void)state;
    static const struct {
        uint32_t align;
        uint64_t told, up_1, up_512, up_513;
    } rows[] = {{4, 16, 16, 512, 528},
                {16, 16, 16, 512, 528},
                {64, 64, 64, 512, 576},
                {256, 256, 256, 512, 768}};
    for (size_t i = 0; i < 4; i++) {
        const struct grt_dev dev = {.info = {.caps = {.align = rows[i].align}}};
        assert_int_equal(grt_dev_align(&dev), rows[i].told);
        assert_int_equal(grt_dev_align_up(&dev, 0), 0);
        assert_int_equal(grt_dev_align_up(&dev, 1), rows[i].up_1);
        assert_int_equal(grt_dev_align_up(&dev, 512), rows[i].up_512);
        assert_int_equal(grt_dev_align_up(&dev, 513), rows[i].up_513);
    }
    assert_int_equal(grt_dev_align(NULL), 16);
    assert_int_equal(grt_dev_complaints(NULL), 0);
    assert_false(grt_dev_validated(NULL));
    assert_null(grt_dev_profile(NULL));
    assert_int_equal(grt_dev_lanes(NULL), 1);
    TEST_REFUSED(grt_dev_profile_set(NULL, GRT_KEY_AUTOTUNE, NULL), GRT_INVALID, "no device");
}

// What is said of a list where nothing suits, to the last word.
static void nothing_suits(void **state) {
    (void)state;
    struct grt_dev_info infos[2] = {
        {.backend = GRT_BACKEND_VULKAN, .name = "card", .selector = "vulkan:0", .pci = "0:1:2.3"},
        {.backend = GRT_BACKEND_REF, .name = "C", .selector = "ref:0", .caps = {.software = 1}}};
    struct grt_dev_list list = {.count = 2, .devices = infos};
    list.reports[GRT_BACKEND_OPENCL].backend = GRT_BACKEND_OPENCL;
    list.reports[GRT_BACKEND_REF].backend = GRT_BACKEND_REF;
    snprintf(list.reports[GRT_BACKEND_OPENCL].problem, 256, "it is not here");
#define THERE "there is vulkan:0 'card', ref:0 'C' (CPU driver); opencl: it is not here; "
    static const struct {
        struct grt_dev_desc desc;
        const char *said;
    } rows[] = {
        {{.device = "x"}, "no device 'x' here; " THERE "'gpurt doctor' tells what is missing"},
        {{.backend = "opencl"}, "no device of backend opencl here; " THERE "'gpurt doctor'"},
        {{.backend = "opencl", .device = "gpu"},
         "no GPU 'gpu' of backend opencl here; " THERE
         "device 'cpu' computes on the CPU, 'gpurt doctor' tells"},
        {{.backend = "ref", .require_gpu = true}, "no GPU of backend ref here; " THERE "'gpurt"},
        {{.backend = "none"}, "no backend 'none': there are auto, vulkan, opencl and ref"},
        {{.device = "0:1:2.4"}, "no device '0:1:2.4' here; "},
        {{.device = "cuda:1"}, "no device 'cuda:1' here; "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TEST_REFUSED(grt_dev_choose(&list, &rows[i].desc),
                     rows[i].desc.backend && strcmp(rows[i].desc.backend, "none") == 0
                         ? GRT_INVALID
                         : GRT_NO_DEVICE,
                     rows[i].said);
    }
    assert_ptr_equal(grt_dev_choose(&list, grt_dev_desc(.device = "0000:01:02.3")), &infos[0]);
    assert_ptr_equal(grt_dev_choose(&list, grt_dev_desc(.device = "ref")), &infos[1]);
    assert_ptr_equal(grt_dev_choose(&list, grt_dev_desc(.device = "cpu")), &infos[1]);
}

// Numbers of a desc at their limits; which device is open, the first of several.
static void opening(void **state) {
    (void)state;
    TEST_REFUSED(grt_dev_create(grt_dev_desc(.backend = "ref", .mem_fraction = 1.0001)),
                 GRT_INVALID, "mem_fraction is 1.0001: it lies between 0 and 1");
    TEST_REFUSED(grt_dev_create(grt_dev_desc(.backend = "ref", .max_submit_ms = -0.5)), GRT_INVALID,
                 "max_submit_ms is -0.5: it lies above 0");
    assert_string_equal(grt_dev_opened(), "");
    struct grt_dev *dev = grt_dev_create(grt_dev_desc(.backend = "ref", .mem_fraction = 1.0));
    assert_non_null(dev);
    assert_true(dev->desc.mem_fraction == 1.0 && dev->desc.max_submit_ms == 500.0);
    assert_true(!dev->desc.backend && !dev->desc.device);
    uint32_t shmem = dev->info.caps.shmem;
    char first[512], want[512];
    snprintf(first, sizeof first, "%s", grt_dev_opened());
    snprintf(want, sizeof want, "ref:0: %s, %s %s", dev->info.name, dev->info.driver,
             dev->info.driver_version);
    assert_string_equal(first, want);
    struct grt_dev *other = grt_dev_create(
        grt_dev_desc(.backend = "ref", .max_submit_ms = 7, .shmem_limit = shmem - 1));
    assert_non_null(other);
    assert_true(other->desc.max_submit_ms == 7 && other->desc.mem_fraction > 0);
    assert_int_equal(other->info.caps.shmem, shmem - 1);
    assert_string_equal(grt_dev_opened(), first);
    grt_dev_destroy(&other);
    other = grt_dev_create(grt_dev_desc(.backend = "ref", .shmem_limit = shmem + 1));
    assert_non_null(other);
    assert_int_equal(other->info.caps.shmem, shmem);
    grt_dev_destroy(&other);
    grt_dev_destroy(&dev);
    assert_string_equal(grt_dev_opened(), "");
    // A CPU driver that is taken for a GPU.
    dev = grt_dev_create(grt_dev_desc(.backend = "ref", .as_gpu = true));
    assert_non_null(dev);
    const struct grt_caps *caps = &dev->info.caps;
    assert_true(!caps->software && !caps->integrated && caps->vector == 0 && caps->subgroup == 32);
    grt_dev_destroy(&dev);
}

// ---- physical devices of Vulkan ----

static VkPhysicalDeviceProperties card;
static const char *driver_info;
static VkResult list_answer;
static uint32_t card_count;

static void VKAPI_CALL tell_all(VkPhysicalDevice handle, VkPhysicalDeviceProperties2 *p) {
    (void)handle;
    p->properties = card;
    for (VkBaseOutStructure *s = p->pNext; s; s = s->pNext) {
        if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES) {
            VkPhysicalDeviceDriverProperties *d = (VkPhysicalDeviceDriverProperties *)s;
            snprintf(d->driverName, sizeof d->driverName, "made up");
            snprintf(d->driverInfo, sizeof d->driverInfo, "%s", driver_info);
        } else if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES) {
            VkPhysicalDeviceVulkan11Properties *p11 = (VkPhysicalDeviceVulkan11Properties *)s;
            p11->subgroupSupportedOperations = VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
            p11->subgroupSupportedStages = card.limits.maxComputeSharedMemorySize
                                               ? VK_SHADER_STAGE_COMPUTE_BIT
                                               : VK_SHADER_STAGE_VERTEX_BIT;
        }
    }
}
static void VKAPI_CALL tell_memory(VkPhysicalDevice handle, VkPhysicalDeviceMemoryProperties2 *m) {
    (void)handle;
    m->memoryProperties.memoryHeapCount = 1;
}
static VkResult VKAPI_CALL list_cards(VkInstance instance, uint32_t *count,
                                      VkPhysicalDevice *list) {
    (void)instance;
    for (uint32_t i = 0; i < card_count; i++) {
        list[i] = (VkPhysicalDevice)(uintptr_t)8;
    }
    *count = card_count;
    return list_answer;
}
static void VKAPI_CALL tell_old(VkPhysicalDevice handle, VkPhysicalDeviceProperties *p) {
    (void)handle;
    *p = card;
}

static void cards(void **state) {
    (void)state;
    static const struct {
        uint32_t id;
        const char *vendor;
    } rows[] = {{0x10de, "NVIDIA"}, {0x1002, "AMD"},        {0x8086, "Intel"},
                {0x13b5, "Arm"},    {0x5143, "Qualcomm"},   {0x1010, "Imagination"},
                {0x106b, "Apple"},  {0x14e4, "Broadcom"},   {0x1ae0, "Google"},
                {0x10005, "Mesa"},  {0x12, "vendor 0x0012"}};
    const struct gvk_instance instance = {.GetPhysicalDeviceProperties2 = tell_all,
                                          .GetPhysicalDeviceMemoryProperties2 = tell_memory,
                                          .EnumeratePhysicalDevices = list_cards,
                                          .GetPhysicalDeviceProperties = tell_old};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_dev_info info = {0};
        card = (VkPhysicalDeviceProperties){.vendorID = rows[i].id,
                                            .driverVersion = VK_MAKE_API_VERSION(0, 23, 1, 7),
                                            .deviceType = i % 2 ? VK_PHYSICAL_DEVICE_TYPE_CPU
                                                                : VK_PHYSICAL_DEVICE_TYPE_OTHER};
        driver_info = i % 3 ? "Mesa 23" : "";
        card.limits.maxComputeSharedMemorySize = i % 2;
        card.limits.timestampPeriod = 1.0f;
        // Each cap is of its own feature.
        struct gvk_physical physical = {.timestamp_bits = i % 4};
        physical.f11.storageBuffer16BitAccess = i == 1;
        physical.f12.shaderFloat16 = i == 2;
        physical.features.shaderInt16 = i == 3;
        physical.bfloat16.shaderBFloat16Type = i == 4;
        physical.matrix2.cooperativeMatrixConversions = i == 5;
        gvk_physical_describe(&instance, &physical, &info);
        assert_string_equal(info.vendor, rows[i].vendor);
        assert_string_equal(info.driver, "made up");
        assert_string_equal(info.driver_version, i % 3 ? "Mesa 23" : "23.1.7");
        const struct grt_caps *caps = &info.caps;
        assert_true(caps->software == i % 2 && !caps->integrated);
        assert_true((caps->compute_units > 0) == (i % 2 == 1));
        assert_int_equal(caps->f16_storage, i == 1);
        assert_int_equal(caps->f16_arith, i == 2);
        assert_int_equal(caps->i16_arith, i == 3);
        assert_int_equal(caps->bf16, i == 4);
        assert_int_equal(caps->matrix_convert, i == 5);
        assert_int_equal(caps->shuffle, i % 2);
        assert_int_equal(caps->timestamps, i % 4 != 0);
        assert_int_equal(caps->mma_layout, i == 0);
    }
    // Why there is none.
    static const struct {
        VkResult answer;
        uint32_t count;
        const char *problem;
    } none[] = {
        {VK_SUCCESS, 0, "the installed Vulkan drivers found no device: install the GPU vendor's"},
        {VK_ERROR_INITIALIZATION_FAILED, 3, "the installed Vulkan drivers found no device"},
        {VK_ERROR_OUT_OF_HOST_MEMORY, 1,
         "vkEnumeratePhysicalDevices failed: VK_ERROR_OUT_OF_HOST_MEMORY (-1)"},
        {VK_SUCCESS, 2, "no usable Vulkan device: old has Vulkan 1.1, gpurt needs 1.2"},
        {VK_INCOMPLETE, 2, "no usable Vulkan device: old has Vulkan 1.1, gpurt needs 1.2"},
    };
    card = (VkPhysicalDeviceProperties){.apiVersion = VK_API_VERSION_1_1, .deviceName = "old"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char problem[GVK_PROBLEM_SIZE] = "";
        uint32_t count = 77;
        list_answer = none[i].answer;
        card_count = none[i].count;
        assert_null(gvk_physical_list(&instance, &count, problem));
        assert_int_equal(count, 0);
        if (strncmp(problem, none[i].problem, strlen(none[i].problem)) != 0) {
            fail_msg("%s", problem);
        }
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(limits),        TEST_CASE(what_builds), TEST_CASE(alignment),
    TEST_CASE(nothing_suits), TEST_CASE(opening),     TEST_CASE(cards),
};
TEST_SUITE(fits, false, cases);
