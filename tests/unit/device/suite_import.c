// SPDX-License-Identifier: Apache-2.0
// Kernels that reach a Vulkan device as PTX: where the text comes from, that the disk keeps it, and
// that one with more shared memory than the device has is never launched; what no text may have.
// Both devices are made up, since no CPU driver takes PTX; each case has a cache folder of its own.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/vulkan/vulkan.h"
#include "kits/cache_kit.h"
#include "device/graph_parts.h"
#include "device/import.h"
#include "device/kernels.h"
#include "base/log.h"

#define PTX_HEAD ".version 9.0\n.target sm_90a, texmode_independent\n"

// ---- a device that takes PTX, and one that makes it ----

static struct world {
    const char *text;  // what the compiler makes; NULL: it cannot
    enum grt_status refusal;
    uint32_t made, imported;
    char got[512];
} world;

static enum grt_status make(struct grt_dev *dev, const struct grt_kernel_info *info,
                            const uint32_t *values, char **ptx) {
    (void)dev, (void)values;
    world.made++;
    *ptx = world.text ? strdup(world.text) : NULL;
    if (!world.text) {
        grt_fail(world.refusal, "kernel %s is not made", info->name);
    }
    return world.text ? GRT_OK : world.refusal;
}

static struct grt_kernel *take(struct grt_dev *dev, const struct grt_kernel_info *info,
                               const uint32_t *values, const char *ptx) {
    (void)dev, (void)info, (void)values;
    world.imported++;
    snprintf(world.got, sizeof world.got, "%s", ptx);
    return calloc(1, sizeof(struct grt_kernel));
}

static const struct grt_dev_fns maker_fns = {.kernel_ptx = make};
static const struct grt_dev_fns taker_fns = {.kernel_import = take};
static struct grt_dev maker, taker;
static const struct grt_spec_info specs[] = {{"WG", 64}, {"BN", 128}};
static const struct grt_kernel_info kernel = {
    .name = "made_up", .specs = specs, .spec_count = 2, .opencl = "text", .imports = true};

static void begin(const char *text) {
    world = (struct world){.text = text, .refusal = GRT_UNSUPPORTED};
    maker = (struct grt_dev){.fns = &maker_fns};
    taker = (struct grt_dev){.fns = &taker_fns,
                             .compiler = &maker,
                             .info = {.name = "Made Up 1",
                                      .driver_version = "1.0",
                                      .selector = "vulkan:9",
                                      .caps = {.imports = 2, .shmem = 49152}}};
}

static bool imports(uint32_t bn) {
    const uint32_t values[] = {64, bn};
    struct grt_kernel *made = grt_import_kernel(&taker, &kernel, values);
    free(made);
    return made != NULL;
}

// ---- cases ----

static void shared_memory_is_counted(void **state) {
    (void)state;
    assert_int_equal(grt_ptx_shared(PTX_HEAD), 0);
    assert_int_equal(grt_ptx_shared(PTX_HEAD "\t.shared .align 4 .u32 last;\n"), 8);
    assert_int_equal(grt_ptx_shared(PTX_HEAD "\t.shared .align 4 .b8 few[20];\n"
                                             ".shared .align 1024 .b8 ring[45056];\n"
                                             "ld.shared.u32 %r1, [ring];\n"),
                     1024 + 45056);
}

static void the_text_is_made_once(void **state) {
    (void)state;
    begin(PTX_HEAD "one");
    assert_true(imports(128));
    assert_string_equal(world.got, PTX_HEAD "one");
    assert_true(imports(128));
    assert_int_equal(world.made, 1);
    assert_int_equal(world.imported, 2);

    // Another constant, another driver, another text: made anew.
    world.text = PTX_HEAD "two";
    assert_true(imports(256));
    assert_string_equal(world.got, PTX_HEAD "two");
    strcpy(taker.info.driver_version, "1.1");
    assert_true(imports(256));
    assert_int_equal(world.made, 3);
}

// As much as Vulkan says, or, of Hopper, as its processors have.
static void too_much_shared_memory_is_refused(void **state) {
    (void)state;
    static const char other[] = ".version 9.0\n.target sm_89\n";
    char text[256] = "";
    begin(text);
    for (uint32_t hopper = 0; hopper < 2; hopper++) {
        const char *head = hopper ? PTX_HEAD : other;
        uint32_t most = hopper ? 232448 : 49152;
        char why[96];
        snprintf(text, sizeof text, "%s.shared .align 1024 .b8 ring[%u];\n", head, most);
        assert_true(imports(128 + hopper));
        snprintf(text, sizeof text,
                 "%s.shared .align 1024 .b8 ring[%u];\n.shared .align 8 .b8 more[8];\n", head,
                 most);
        snprintf(why, sizeof why, "%u bytes of shared memory, vulkan:9 has %u", most + 8, most);
        TEST_REFUSED(imports(256 + hopper), GRT_UNSUPPORTED, why);
        assert_int_equal(world.imported, 1 + hopper);
    }
    // Unless its queue has graphics, its driver is older, or the caller set a limit.
    taker.info.caps.imports = 1;
    TEST_REFUSED(imports(512), GRT_UNSUPPORTED, "vulkan:9 has 49152");
    taker.info.caps.imports = 2;
}

static void what_a_device_cannot_is_remembered(void **state) {
    (void)state;
    begin(NULL);
    TEST_REFUSED(imports(128), GRT_UNSUPPORTED, "is not made");
    TEST_REFUSED(imports(128), GRT_UNSUPPORTED, "not for Made Up 1");
    assert_int_equal(world.made, 1);

    // A failure that may pass is not, nor does it matter whether anybody hears of it.
    world.refusal = GRT_COMPILE;
    TEST_REFUSED(imports(256), GRT_COMPILE, "is not made");
    bool before = grt_quiet(true);
    assert_false(imports(256));
    grt_quiet(before);
    assert_int_equal(world.made, 3);
    world.text = PTX_HEAD;
    assert_true(imports(256));
}

static void without_a_compiler_there_is_no_kernel(void **state) {
    (void)state;
    begin(PTX_HEAD);
    taker.compiler = NULL;
    taker.no_compiler = true;
    TEST_REFUSED(imports(128), GRT_UNSUPPORTED, "does not know 'Made Up 1'");
    assert_int_equal(world.imported, 0);
}

// Two products that touch nothing in common, by one kernel: of PTX they wait for each other, else
// not.
static void launches_of_one_kernel_wait(void **state) {
    (void)state;
    static const struct grt_arg_info args[] = {{"y", "float", GRT_WRITE}};
    struct grt_kernel_info info = {.name = "made_up", .args = args, .arg_count = 1};
    struct grt_kernel one = {.info = &info}, another = {.info = &info};
    struct grt_buf buf = {.size = 1024};
    for (uint32_t i = 0; i < 4; i++) {
        info.imports = i % 2 == 1;
        struct grt_cmd cmds[2] = {
            {.kind = GRT_CMD_DISPATCH, .kernel = &one, .bindings = {{&buf, 0, 256}}},
            {.kind = GRT_CMD_DISPATCH, .kernel = &one, .bindings = {{&buf, 256, 256}}}};
        cmds[1].kernel = i < 2 ? &one : &another;
        bool waits = info.imports && i < 2;
        assert_int_equal(grt_find_hazards(cmds, 2), waits);
        assert_int_equal(cmds[1].sync, waits ? 0 : -1);
    }
}

// Kernels in PTX are there for Vulkan devices of NVIDIA that take them, and for its OpenCL.
static void who_has_them(void **state) {
    (void)state;
    struct grt_dev dev = {.info = {.backend = GRT_BACKEND_VULKAN, .vendor = "NVIDIA"}};
    assert_false(grt_kernel_exists(&dev, "gemm_wgmma_48k_16"));
    dev.info.caps.imports = 1;
    assert_true(grt_kernel_exists(&dev, "gemm_wgmma_48k_16"));
    assert_true(grt_kernel_exists(&dev, "gemm_wgmma_16"));
    strcpy(dev.info.vendor, "Mesa");
    assert_false(grt_kernel_exists(&dev, "gemm_wgmma_48k_16"));
    dev.info = (struct grt_dev_info){.backend = GRT_BACKEND_OPENCL, .vendor = "NVIDIA"};
    assert_true(grt_kernel_exists(&dev, "gemm_wgmma_48k_16"));
    assert_true(grt_kernel_exists(&dev, "gemm_wgmma_16"));
}

// Imported kernels run on a queue without graphics, where they have all shared memory if the driver
// is as new as the one that was tried.
static void queues_without_graphics(void **state) {
    (void)state;
    const VkQueueFlags both = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT;
    const VkQueueFamilyProperties h200[] = {{.queueFlags = both | VK_QUEUE_TRANSFER_BIT},
                                            {.queueFlags = VK_QUEUE_TRANSFER_BIT},
                                            {.queueFlags = VK_QUEUE_COMPUTE_BIT},
                                            {.queueFlags = VK_QUEUE_COMPUTE_BIT}};
    assert_int_equal(gvk_family_of(h200, 4, true), 2);
    assert_int_equal(gvk_family_of(h200, 4, false), 0);
    assert_int_equal(gvk_family_of(h200 + 1, 3, false), 1);
    assert_int_equal(gvk_family_of(h200, 2, true), 0);
    assert_int_equal(gvk_family_of(h200 + 1, 1, true), 1);  // there is none
    struct gvk_physical physical = {.f12 = {.bufferDeviceAddress = VK_TRUE}};
    const uint32_t seen = 580u << 22 | 159u << 14, older = 575u << 22 | 255u << 14;
    assert_int_equal(gvk_imports(&physical, seen), 0);
    physical.ext[GVK_EXT_BINARY_IMPORT] = true;
    assert_int_equal(gvk_imports(&physical, seen), 2);
    assert_int_equal(gvk_imports(&physical, older), 1);
    physical.graphics = true;
    assert_int_equal(gvk_imports(&physical, seen), 1);
    assert_true(gvk_takes_ptx(&physical));
}

// ---- what a launch is made of ----

static struct seen {
    VkCuLaunchInfoNVX launch;
    unsigned char block[512];
    size_t size;
} seen;

static void VKAPI_PTR see_launch(VkCommandBuffer cmds, const VkCuLaunchInfoNVX *launch) {
    (void)cmds;
    seen.launch = *launch;
    // As cuLaunchKernel() reads them: 1, the block, 2, its size, 0.
    assert_ptr_equal(launch->pExtras[0], (const void *)1);
    assert_ptr_equal(launch->pExtras[2], (const void *)2);
    assert_null(launch->pExtras[4]);
    memcpy(&seen.size, launch->pExtras[3], sizeof seen.size);
    assert_true(seen.size <= sizeof seen.block);
    memcpy(seen.block, launch->pExtras[1], seen.size);
}

// As cl/dialect.h declares arguments with GRT_ADDRESSES: where each binding begins, parameters.
static void arguments_of_a_launch(void **state) {
    (void)state;
    struct gvk_dev dev = {.vk = {.vkCmdCuLaunchKernelNVX = see_launch}};
    struct gvk_buf bufs[3] = {{.address = 0x1000}, {.address = 0x2000}, {.address = 0x30000000000}};
    const struct grt_kernel_info info = {.name = "made_up", .arg_count = 3, .params_size = 12};
    struct gvk_kernel made = {.base = {.info = &info, .spec_values = {384}},
                              .function = (VkCuFunctionNVX)(uintptr_t)77};
    struct grt_cmd cmd = {.kind = GRT_CMD_DISPATCH,
                          .kernel = &made.base,
                          .bindings = {{&bufs[0].base, 0, 64},
                                       {&bufs[1].base, 512, 64},
                                       {&bufs[2].base, 0x200000010, 64}},
                          .groups = {132, 2, 3},
                          .params_size = 12,
                          .params = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
    gvk_import_launch(&dev, NULL, &cmd);
    const uint64_t want[12] = {0x1000, 0x2000 + 512, 0x30000000000 + 0x200000010};
    assert_int_equal(seen.size, sizeof want + 12);
    assert_memory_equal(seen.block, want, sizeof want);
    assert_memory_equal(seen.block + sizeof want, cmd.params, 12);
    assert_int_equal(seen.launch.gridDimX, 132);
    assert_int_equal(seen.launch.gridDimY, 2);
    assert_int_equal(seen.launch.gridDimZ, 3);
    assert_int_equal(seen.launch.blockDimX, 384);
    assert_int_equal(seen.launch.blockDimY * seen.launch.blockDimZ, 1);
    assert_int_equal(seen.launch.sharedMemBytes, 0);
    assert_true(seen.launch.function == made.function);
}

// Where a workgroup stands is by OpenCL's own words a sum with registers that no launch of Vulkan
// sets (cl/nvidia/lib/launch.k): kernels that had them wrote wrong numbers there, or never ended.
static void texts_stand_without_opencl(void **state) {
    (void)state;
    static const char *const words[] = {"get_group_id", "get_num_groups", "get_global_"};
    uint32_t imports = 0;
    for (uint32_t i = 0; grt_kernel_table[i]; i++) {
        const struct grt_kernel_info *info = grt_kernel_table[i];
        if (!info->imports) {
            continue;
        }
        imports++;
        bool good = strstr(info->opencl, "#pragma gpurt ptx_target ") != NULL;
        for (uint32_t k = 0; k < sizeof words / sizeof *words; k++) {
            good = good && !strstr(info->opencl, words[k]);
        }
        if (!good) {
            fail_msg("kernel %s names no target, or asks OpenCL where it stands", info->name);
        }
    }
    assert_in_range(imports, 20, 1000);
}

static const struct CMUnitTest cases[] = {
    CACHE_CASE(texts_stand_without_opencl),
    CACHE_CASE(shared_memory_is_counted),
    CACHE_CASE(the_text_is_made_once),
    CACHE_CASE(too_much_shared_memory_is_refused),
    CACHE_CASE(what_a_device_cannot_is_remembered),
    CACHE_CASE(without_a_compiler_there_is_no_kernel),
    CACHE_CASE(launches_of_one_kernel_wait),
    CACHE_CASE(who_has_them),
    CACHE_CASE(queues_without_graphics),
    CACHE_CASE(arguments_of_a_launch),
};
TEST_SUITE(import, false, cases);
