// SPDX-License-Identifier: Apache-2.0
// `gpurt devices` and `gpurt profile` of devices that are not here: every column of a list that was
// made up, for people and for programs, what is said of backends, and settings by a name alone.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/apps/made_run.h"

#include "cli/command.h"
#include "gpurt/device.h"
#include "gpurt/profile.h"

static struct grt_dev_info devices[3];
static struct grt_dev_list made_list;

// In place of the library's, which asks drivers.
struct grt_dev_list *grt_dev_list_create(void) {
    struct grt_dev_list *list = calloc(1, sizeof *list);
    *list = made_list;
    list->devices = devices;
    return list;
}

void grt_dev_list_destroy(struct grt_dev_list **list) {
    free(*list);
    *list = NULL;
}

static int begin(void **state) {
    (void)state;
    setenv("XDG_CONFIG_HOME", "/nowhere", 1);
    unsetenv("GPURT_PROFILE");
    unsetenv("GPURT_DEVICE");
    memset(devices, 0, sizeof devices);
    devices[0] = (struct grt_dev_info){.backend = GRT_BACKEND_VULKAN,
                                       .selector = "vulkan:0",
                                       .name = "NVIDIA H200",
                                       .vendor = "NVIDIA",
                                       .driver = "NVIDIA driver of this card",
                                       .driver_version = "580.95",
                                       .api_version = "1.3.277",
                                       .pci = "0000:65:00.0",
                                       .caps = {.compute_units = 132,
                                                .subgroup = 32,
                                                .max_wg = 1024,
                                                .max_groups = {11, 22, 33},
                                                .shmem = 49152,
                                                .align = 16,
                                                .f16_storage = 1,
                                                .f16_arith = 1,
                                                .i16_arith = 1,
                                                .bf16 = 1,
                                                .imports = 2,
                                                .timestamps = 1,
                                                .max_binding = 4096,
                                                .max_buffer = 8192,
                                                .memory = 141ull << 30,
                                                .matrix_shape_count = 1,
                                                .matrix_shapes = {{16, 8, 4, GRT_F16, GRT_F32}}}};
    devices[1] = (struct grt_dev_info){.backend = GRT_BACKEND_OPENCL,
                                       .selector = "opencl:0",
                                       .name = "Small",
                                       .driver = "rusticl",
                                       .driver_version = "1",
                                       .caps = {.integrated = 1, .f16_storage = 1}};
    devices[2] = (struct grt_dev_info){.backend = GRT_BACKEND_REF,
                                       .selector = "ref:0",
                                       .name = "C reference",
                                       .driver = "ref",
                                       .caps = {.software = 1, .integrated = 1}};
    made_list = (struct grt_dev_list){.count = 3};
    for (uint32_t i = 0; i < GRT_BACKEND_COUNT; i++) {
        made_list.reports[i] =
            (struct grt_backend_report){.backend = (enum grt_backend_id)i, .device_count = 1 + i};
    }
    return 0;
}

static void flag(size_t row, const char *key, bool want) {
    if (!json_is_boolean(made_cell(row, key)) || json_is_true(made_cell(row, key)) != want) {
        fail_msg("row %zu: %s is not %d", row, key, want);
    }
}

static void columns(void **state) {
    (void)state;
    assert_int_equal(made_run(cmd_devices, "devices"), 0);
    assert_int_equal(made_count(), 3);
    TEXT(0, "selector", "vulkan:0");
    TEXT(0, "name", "NVIDIA H200");
    TEXT(0, "vendor", "NVIDIA");
    TEXT(0, "driver", "NVIDIA driver of this card");
    TEXT(0, "driver_version", "580.95");
    TEXT(0, "backend", "vulkan");
    TEXT(0, "api_version", "1.3.277");
    TEXT(0, "type", "gpu");
    TEXT(0, "pci", "0000:65:00.0");
    NUMBER(0, "memory", 141.0 * (1ull << 30));
    NUMBER(0, "max_buffer", 8192);
    NUMBER(0, "max_binding", 4096);
    NUMBER(0, "align", 16);
    NUMBER(0, "compute_units", 132);
    NUMBER(0, "subgroup", 32);
    NUMBER(0, "max_workgroup", 1024);
    NUMBER(0, "shared_memory", 49152);
    for (int i = 0; i < 3; i++) {
        const json_t *groups = made_cell(0, "max_groups");
        assert_int_equal(json_integer_value(json_array_get(groups, (size_t)i)), 11 * (i + 1));
    }
    const json_t *matrix = json_array_get(made_cell(0, "matrix"), 0);
    assert_int_equal(json_integer_value(json_object_get(matrix, "m")), 16);
    assert_int_equal(json_integer_value(json_object_get(matrix, "n")), 8);
    assert_int_equal(json_integer_value(json_object_get(matrix, "k")), 4);
    assert_string_equal(json_string_value(json_object_get(matrix, "in")), "f16");
    assert_string_equal(json_string_value(json_object_get(matrix, "out")), "f32");
    static const char *const flags[] = {"f16_storage", "f16_arithmetic", "i16_arithmetic",
                                        "bf16",        "imports_ptx",    "timestamps"};
    for (size_t i = 0; i < 6; i++) {
        flag(0, flags[i], true);
        flag(1, flags[i], i == 0);
        flag(2, flags[i], false);
    }
    TEXT(1, "type", "integrated");
    TEXT(2, "type", "software");
    // What is not known is left out.
    static const char *const unknown[] = {"vendor", "pci", "memory", "compute_units", "align"};
    for (size_t i = 0; i < 5; i++) {
        assert_false(made_known(1, unknown[i]));
    }
    // The most specific profile first.
    const json_t *profile = json_array_get(made_cell(0, "profiles"), 0);
    assert_string_equal(json_string_value(json_object_get(profile, "name")), "nvidia-h200");
    assert_non_null(json_string_value(json_object_get(profile, "why")));
    flag(0, "default", true);
    flag(1, "default", false);
    const json_t *reports = json_object_get(made_head, "backends");
    assert_int_equal(json_array_size(reports), 3);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(reports, 2), "devices")), 3);
}

// Each of several that were found has its own flag: what turns on one turns on no other.
static void one_by_one(void **state) {
    (void)state;
    static const char *const keys[] = {"f16_storage", "f16_arithmetic", "i16_arithmetic",
                                       "bf16",        "imports_ptx",    "timestamps"};
    for (size_t i = 0; i < 6; i++) {
        struct grt_caps *caps = &devices[1].caps;
        *caps = (struct grt_caps){0};
        uint32_t *const fields[] = {&caps->f16_storage, &caps->f16_arith, &caps->i16_arith,
                                    &caps->bf16,        &caps->imports,   &caps->timestamps};
        *fields[i] = 1;
        assert_int_equal(made_run(cmd_devices, "devices"), 0);
        for (size_t k = 0; k < 6; k++) {
            flag(1, keys[k], k == i);
        }
    }
}

static void out_has(const char *part, bool wanted) {
    if (!strstr(made_out, part) == wanted) {
        fail_msg("'%s' is %sthere: %s", part, wanted ? "not " : "", made_out);
    }
}

static void for_people(void **state) {
    (void)state;
    assert_int_equal(made_plain(cmd_devices, "devices"), 0);
    out_has("NVIDIA driver .. 580.95", true);  // 14 letters, and the version
    out_has("rusticl 1", true);
    out_has("full", true);
    out_has("storage", true);
    out_has("141 GiB", true);
    out_has("132", false);  // of a block
    out_has("doctor", false);
    char *star = strstr(made_out, "*");
    assert_true(star && strncmp(star + 1 + strspn(star + 1, " "), "vulkan:0", 8) == 0);
    assert_null(strchr(star + 1, '*'));
    assert_int_equal(made_plain(cmd_devices, "devices -v"), 0);
    out_has("11 x 22 x 33", true);
    out_has("132", true);
    setenv("GPURT_DEVICE", "opencl:0", 1);
    assert_int_equal(made_run(cmd_devices, "devices"), 0);
    flag(0, "default", false);
    flag(1, "default", true);
    unsetenv("GPURT_DEVICE");
    // A note is told; only a problem has a remedy, and what is not asked for is not told.
    snprintf(made_list.reports[1].note, sizeof made_list.reports[1].note, "a note of it");
    assert_int_equal(made_plain(cmd_devices, "devices"), 0);
    out_has("\nopencl: a note of it\n", true);
    out_has("doctor", false);
    snprintf(made_list.reports[0].problem, sizeof made_list.reports[0].problem, "it crashed");
    assert_int_equal(made_plain(cmd_devices, "devices"), 0);
    out_has("\nvulkan: it crashed\nopencl: a note of it\nFor a remedy run `gpurt doctor`.\n", true);
    assert_int_equal(made_plain(cmd_devices, "devices --backend opencl"), 0);
    out_has("it crashed", false);
    out_has("doctor", false);
    out_has("vulkan:0", false);
    assert_int_equal(made_run(cmd_devices, "devices --backend opencl"), 0);
    assert_int_equal(made_count(), 1);
    const json_t *reports = json_object_get(made_head, "backends");
    assert_int_equal(json_array_size(reports), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(reports, 0), "note")),
                        "a note of it");
    assert_int_equal(made_plain(cmd_devices, "devices --format csv"), 0);
    out_has("doctor", false);
    made_list.count = 0;
    assert_int_equal(made_run(cmd_devices, "devices"), 0);
    assert_int_equal(made_count(), 0);
}

// ---- settings ----

static size_t row_of(const char *setting) {
    for (size_t i = 0; i < made_count(); i++) {
        const char *text = json_string_value(made_cell(i, "setting"));
        if (text && strcmp(text, setting) == 0) {
            return i;
        }
    }
    fail_msg("no setting %s", setting);
    return 0;
}

static void settings(void **state) {
    (void)state;
    assert_int_equal(made_run(cmd_profile, "profile --as Voodoo --memory 4GiB"), 0);
    assert_int_equal(made_count(), GRT_KEY_COUNT);
    NOT_SAID("its memory is not known");
    size_t plain = row_of("gemm.plain"), tiled = row_of("gemm.tiled.large");
    TEXT(plain, "numbers", "WG");
    assert_true(made_known(plain, "meaning"));
    assert_true(made_known(plain, "workgroup"));
    TEXT(tiled, "numbers", "BM BN BK TM TN");
    // Lanes of a tile: rows and columns by those of a lane.
    int bm = 0, bn = 0, bk = 0, tm = 0, tn = 0;
    const char *value = json_string_value(made_cell(tiled, "value"));
    assert_int_equal(sscanf(value, "%d %d %d %d %d", &bm, &bn, &bk, &tm, &tn), 5);
    NUMBER(tiled, "workgroup", (double)bm / tm * bn / tn);
    NUMBER(plain, "workgroup", atof(json_string_value(made_cell(plain, "value"))));
    assert_false(made_known(row_of("mem_fraction"), "workgroup"));
    // A card of this name has a profile of its own, by its memory too.
    assert_int_equal(made_run(cmd_profile, "profile --as A100"), 0);
    SAID("its memory is not known, so settings by memory are left out; --memory 12GiB");
    const char *from = json_string_value(made_cell(row_of("train.num_envs"), "profile"));
    assert_non_null(strstr(from, "nvidia-a100:"));
    assert_int_equal(made_run(cmd_profile, "profile --as A100 -q"), 0);
    NOT_SAID("its memory");
    // Of the device that would be taken, or that is named.
    assert_int_equal(made_run(cmd_profile, "profile"), 0);
    from = json_string_value(made_cell(row_of("train.num_envs"), "profile"));
    assert_non_null(strstr(from, "nvidia-hopper:"));
    assert_int_equal(made_run(cmd_profile, "profile --device opencl:0"), 0);
    from = json_string_value(made_cell(row_of("train.num_envs"), "profile"));
    assert_null(strstr(from, "nvidia"));
    assert_int_equal(made_plain(cmd_profile, "profile"), 0);
    out_has("NVIDIA H200", true);
    out_has("workgroup of the plain product", false);
    assert_int_equal(made_plain(cmd_profile, "profile -v"), 0);
    out_has("workgroup of the plain product", true);
}

static void refused(void **state) {
    (void)state;
    assert_int_equal(made_run(cmd_profile, "profile --memory 4GiB"), COMMAND_USAGE);
    SAID("'--memory' is of a GPU that is not here: give its name too, --as NAME");
    assert_int_equal(made_run(cmd_profile, "profile --as= "), COMMAND_USAGE);
    assert_int_equal(made_run(cmd_profile, "profile --as X --memory 4Q"), COMMAND_USAGE);
    assert_int_equal(made_run(cmd_profile, "profile --device vulkan:3"), COMMAND_NO_DEVICE);
    made_list.count = 0;
    assert_int_equal(made_run(cmd_profile, "profile"), COMMAND_NO_DEVICE);
    assert_int_equal(made_run(cmd_profile, "profile --as X"), 0);
    setenv("GPURT_PROFILE", "/nowhere/x.profile", 1);
    assert_int_equal(made_run(cmd_profile, "profile --as X"), COMMAND_CONFIG);
    unsetenv("GPURT_PROFILE");
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest cases[] = {
        CASE(columns), CASE(one_by_one), CASE(for_people), CASE(settings), CASE(refused),
    };
#undef CASE
    return cmocka_run_group_tests(cases, NULL, NULL);
}
