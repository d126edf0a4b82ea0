// SPDX-License-Identifier: Apache-2.0
#include "profile_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tuning/profile_file.h"

#define TEMPLATE "/tmp/gpurt-profile-XXXXXX"

char kit_home[] = TEMPLATE;

void kit_enter_home(void) {
    assert_non_null(mkdtemp(kit_home));
    setenv("XDG_CONFIG_HOME", kit_home, 1);
    unsetenv("GPURT_PROFILE");
}

void kit_leave_home(void) {
    char dir[sizeof kit_home + 8];
    snprintf(dir, sizeof dir, "%s/gpurt", kit_home);
    rmdir(dir);
    assert_int_equal(rmdir(kit_home), 0);
    snprintf(kit_home, sizeof kit_home, TEMPLATE);
    unsetenv("XDG_CONFIG_HOME");
}

void kit_write(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

void kit_remove_user_file(const struct grt_dev_info *info) {
    char path[PROFILE_PATH];
    assert_true(grt_profile_user_path(info, path, sizeof path));
    unlink(path);
}

void kit_write_user_file(const struct grt_dev_info *info, const char *text) {
    char path[PROFILE_PATH];
    char dir[sizeof kit_home + 8];
    snprintf(dir, sizeof dir, "%s/gpurt", kit_home);
    mkdir(dir, 0700);
    assert_true(grt_profile_user_path(info, path, sizeof path));
    kit_write(path, text);
}

struct grt_dev_info kit_gpu(const char *name, const char *vendor, double gib) {
    struct grt_dev_info info = {.backend = GRT_BACKEND_VULKAN, .selector = "vulkan:0"};
    snprintf(info.name, sizeof info.name, "%s", name);
    snprintf(info.vendor, sizeof info.vendor, "%s", vendor);
    info.caps.memory = (uint64_t)(gib * (1 << 30));
    info.caps.max_wg = 1024;
    info.caps.shmem = 48 << 10;
    info.caps.f16_storage = 1;
    return info;
}

void kit_expect(const struct grt_profile *profile, enum grt_profile_key key, double want) {
    const struct grt_profile_value *value = grt_profile_get(profile, key);
    if (value->numbers[0] != want) {
        print_error("%s is %g (%s), wanted %g\n", grt_profile_key_info(key)->key, value->numbers[0],
                    value->profile, want);
        fail();
    }
}

struct grt_dev kit_h200(void) {
    struct grt_dev dev = {.info = kit_gpu("NVIDIA H200", "NVIDIA", 139.8)};
    struct grt_caps *caps = &dev.info.caps;
    caps->compute_units = 132;
    caps->subgroup = 32;
    for (uint32_t d = 0; d < 3; d++) {
        caps->max_groups[d] = d ? 65535 : INT32_MAX;
    }
    caps->matrix_shapes[0] = (struct grt_matrix_shape){16, 16, 16, GRT_F16, GRT_F32};
    caps->matrix_shapes[1] = (struct grt_matrix_shape){16, 16, 16, GRT_BF16, GRT_F32};
    caps->matrix_shape_count = 2;
    dev.profile = grt_profile_create(&dev.info);
    assert_non_null(dev.profile);
    return dev;
}
