// SPDX-License-Identifier: Apache-2.0
// Listing devices while a driver crashes, hangs or ends the process: one line of the list is lost
// and nothing more. The drivers are built from icd_crash.c and lie beside this program. Each case
// has a folder of its own, for the vendor file that names one to OpenCL.
#include "kits/cache_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/library.h"
#include "device/probe.h"

// Put back after each case. The first are also cleared before it: not VK_ADD_DRIVER_FILES nor
// OCL_ICD_VENDORS, which gpurt sets itself where a driver's file is missing.
#define CLEARED 3
#define CHANGED 4
static const char *const changed[CHANGED] = {"VK_DRIVER_FILES", "VK_ICD_FILENAMES",
                                             "GPURT_PROBE_SECONDS", "OCL_ICD_VENDORS"};
static char *before[CHANGED];

static int begin(void **state) {
    for (int i = 0; i < CHANGED; i++) {
        const char *value = getenv(changed[i]);
        before[i] = value ? strdup(value) : NULL;
        if (i < CLEARED) {
            unsetenv(changed[i]);
        }
    }
    return kit_cache_begin(state);
}

static int end(void **state) {
    for (int i = 0; i < CHANGED; i++) {
        if (before[i]) {
            setenv(changed[i], before[i], 1);
        } else {
            unsetenv(changed[i]);
        }
        free(before[i]);
    }
    return kit_cache_end(state);
}

#define PROBE_CASE(function)                                                                       \
    { #function, function, begin, end, NULL }

#define FILE_SIZE 4200

// A file of the drivers' folder. Where that was not copied along with this program, the case is
// skipped; in a build tree that fails the test, see CMakeLists.txt.
static void find_driver(char *path, const char *prefix, const char *name, const char *suffix) {
    snprintf(path, FILE_SIZE, "%s/gpurt-test-icd/%s%s%s", test.here, prefix, name, suffix);
    if (access(path, R_OK) != 0) {
        print_message("skipped: no %s, the test's own driver\n", path);
        skip();
    }
}

static void choose_vulkan(const char *name) {
    char path[FILE_SIZE];
    find_driver(path, "", name, ".json");
    setenv("VK_ICD_FILENAMES", path, 1);
}

static void choose_opencl(const char *name) {
    char library[FILE_SIZE], folder[300], path[600];
    find_driver(library, "libicd_", name, ".so");
    snprintf(folder, sizeof folder, "%s/vendors/", kit_cache);
    snprintf(path, sizeof path, "%s%s.icd", folder, name);
    mkdir(folder, 0700);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fprintf(file, "%s\n", library) > 0);
    assert_int_equal(fclose(file), 0);
    setenv("OCL_ICD_VENDORS", folder, 1);
}

// Lists with the driver that was chosen; its report must contain `part`, and ref must be there.
static void list_with_it(enum grt_backend_id id, const char *part) {
    struct grt_dev_list *list = grt_dev_list_create();
    assert_non_null(list);
    const struct grt_backend_report *report = &list->reports[id];
    if (!strstr(report->problem, part)) {
        print_error("the report lacks '%s': '%s', %u devices\n", part, report->problem,
                    report->device_count);
        fail();
    }
    assert_int_equal(report->device_count, 0);
    assert_string_equal(list->reports[GRT_BACKEND_REF].problem, "");
    assert_in_range(list->count, 1, 1000);
    assert_string_equal(list->devices[list->count - 1].selector, "ref:0");
    grt_dev_list_destroy(&list);
    assert_null(list);

    TEST_REFUSED(grt_dev_create(grt_dev_desc(.backend = grt_backend_text(id))), GRT_NO_DEVICE,
                 part);
    struct grt_dev *ref = grt_dev_create(grt_dev_desc(.backend = "ref"));
    assert_non_null(ref);
    test_usable(ref);
    grt_dev_destroy(&ref);
}

static void list_with(const char *name, const char *part) {
    choose_vulkan(name);
    list_with_it(GRT_BACKEND_VULKAN, part);
    unsetenv("VK_ICD_FILENAMES");
    choose_opencl(name);
    list_with_it(GRT_BACKEND_OPENCL, part);
}

static void driver_crashes(void **state) {
    (void)state;
    list_with("crash", "crashed (signal 11");
}

static void driver_crashes_when_opened(void **state) {
    (void)state;
    list_with("load", "crashed (signal 11");
}

static void driver_hangs(void **state) {
    (void)state;
    setenv("GPURT_PROBE_SECONDS", "0.5", 1);
    list_with("hang", "did not answer");
}

static void driver_ends_the_process(void **state) {
    (void)state;
    list_with("exit", "exit code 3");
}

// A driver without a file that names it is opened by gpurt itself: not before a child has tried.
static void library_cannot_be_opened(void **state) {
    (void)state;
    char library[FILE_SIZE], problem[256] = "";
    find_driver(library, "libicd_", "load", ".so");
    assert_false(grt_probe_library(library, problem));
    assert_non_null(strstr(problem, "crashed (signal 11"));
    assert_non_null(strstr(problem, "left out"));
    problem[0] = '\0';
    find_driver(library, "libicd_", "crash", ".so");
    assert_true(grt_probe_library(library, problem));
    assert_true(grt_probe_library("libno-such-driver.so.1", problem));
    assert_string_equal(problem, "");
}

// What is listed carries what a program needs to show and to choose.
static void list_is_whole(void **state) {
    (void)state;
    struct grt_dev_list *list = grt_dev_list_create();
    assert_non_null(list);
    uint32_t total = 0;
    for (uint32_t b = 0; b < GRT_BACKEND_COUNT; b++) {
        assert_int_equal(list->reports[b].backend, (enum grt_backend_id)b);
        total += list->reports[b].device_count;
    }
    assert_int_equal(total, list->count);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct grt_dev_info *info = &list->devices[i];
        char selector[32];
        snprintf(selector, sizeof selector, "%s:%u", grt_backend_text(info->backend), info->index);
        assert_string_equal(info->selector, selector);
        assert_true(info->name[0] && info->driver[0]);
        assert_true(i == 0 || info->backend >= list->devices[i - 1].backend);
        const struct grt_caps *caps = &info->caps;
        assert_in_range(caps->max_wg, 64, 1u << 20);
        assert_in_range(caps->max_groups[0], 65535, UINT32_MAX);
        assert_in_range(caps->shmem, 16384, UINT32_MAX);
        assert_true(caps->align >= 4 && (caps->align & (caps->align - 1)) == 0);
        assert_true(caps->max_binding >= 1u << 27 && caps->max_buffer >= 1u << 27);
        assert_true(caps->memory >= 1u << 27);
        assert_in_range(caps->matrix_shape_count, 0, GRT_MAX_MATRIX_SHAPES);
    }
    grt_dev_list_destroy(&list);
    grt_dev_list_destroy(&list);
    grt_dev_list_destroy(NULL);
}

// The probe forks: drivers already open in the parent must not disturb it, nor it them.
static void list_beside_open_devices(void **state) {
    (void)state;
    struct grt_dev_list *list = grt_dev_list_create();
    assert_non_null(list);
    struct grt_dev *open[8] = {0};
    uint32_t count = list->count < 8 ? list->count : 8;
    for (uint32_t i = 0; i < count; i++) {
        open[i] = grt_dev_create(grt_dev_desc(.device = list->devices[i].selector));
        assert_non_null(open[i]);
        test_usable(open[i]);
    }
    struct grt_dev_list *again = grt_dev_list_create();
    assert_non_null(again);
    assert_int_equal(again->count, list->count);
    for (uint32_t i = 0; i < count; i++) {
        test_usable(open[i]);
        struct grt_dev *second = grt_dev_create(grt_dev_desc(.device = list->devices[i].selector));
        assert_non_null(second);
        test_usable(second);
        grt_dev_destroy(&second);
        grt_dev_destroy(&open[i]);
        assert_null(open[i]);
    }
    grt_dev_list_destroy(&again);
    grt_dev_list_destroy(&list);
}

// A cache that cannot be written costs time and no device: PoCL alone would have none.
static void list_without_a_cache(void **state) {
    (void)state;
    const char *value = getenv("XDG_CACHE_HOME");
    char *cache = value ? strdup(value) : NULL;
    struct grt_dev_list *list = grt_dev_list_create();
    setenv("XDG_CACHE_HOME", "/dev/null", 1);
    struct grt_dev_list *without = grt_dev_list_create();
    pid_t pid = fork();
    if (pid == 0) {
        // A process of its own: the loader is opened once in each.
        bool ok = true;
        for (uint32_t i = 0; without && i < without->count; i++) {
            struct grt_dev *dev =
                grt_dev_create(grt_dev_desc(.device = without->devices[i].selector));
            struct grt_buf *buf = dev ? grt_buf_create(dev, grt_buf_desc(.size = 4)) : NULL;
            const struct grt_kernel *kernel =
                dev ? grt_kernel_get(dev, grt_kernel_desc(.name = "copy")) : NULL;
            ok = ok && buf && kernel;
        }
        _exit(ok ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (cache) {
        setenv("XDG_CACHE_HOME", cache, 1);
    } else {
        unsetenv("XDG_CACHE_HOME");
    }
    free(cache);
    assert_true(list && without);
    for (uint32_t b = 0; b < GRT_BACKEND_COUNT; b++) {
        assert_int_equal(without->reports[b].device_count, list->reports[b].device_count);
    }
    assert_int_equal(status, 0);
    grt_dev_list_destroy(&without);
    grt_dev_list_destroy(&list);
}

static const struct CMUnitTest cases[] = {
    PROBE_CASE(list_is_whole),
    PROBE_CASE(list_without_a_cache),
    PROBE_CASE(driver_crashes),
    PROBE_CASE(driver_crashes_when_opened),
    PROBE_CASE(library_cannot_be_opened),
    PROBE_CASE(driver_hangs),
    PROBE_CASE(driver_ends_the_process),
    PROBE_CASE(list_beside_open_devices),  // last: an open device's backend is not probed again
};
TEST_SUITE(probe, false, cases);
