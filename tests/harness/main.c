// SPDX-License-Identifier: Apache-2.0
// gpurt-test: the suites of suites.h over one device.
//
// Exit status: 0 all passed, 1 a case failed, 64 usage, 69 the device cannot be opened. A missing
// device is a failure: what is silently skipped is soon broken.
#include "harness.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "suites.h"

#define EXIT_USAGE 64
#define EXIT_NO_DEVICE 69

#define X(name, where) extern const struct test_suite suite_##name;
TEST_SUITES(X)
#undef X

static const struct test_suite *const suites[] = {
#define X(name, where) &suite_##name,
    TEST_SUITES(X)
#undef X
};
#define SUITE_COUNT (sizeof suites / sizeof suites[0])

struct test_context test = {.selector = "ref"};

static int usage(FILE *to) {
    fprintf(to, "usage: gpurt-test [--device SELECTOR] [--case PATTERN] [--list] [SUITE ...]\n"
                "\n"
                "Runs the suites (all without SUITE) on a device (default: ref).\n"
                "  --device SELECTOR  vulkan:0, opencl:0, ref, or part of a device's name\n"
                "  --case PATTERN     only cases whose name matches, with * and ?\n"
                "  --list             print the suites, H: run once, D: run per device, and the\n"
                "                     seconds that each took last, by device\n"
                "\n"
                "GPURT_TEST_SMALL=1 shrinks the cases; GPURT_TEST_BIG=1 adds those of many GiB.\n"
                "GPURT_TEST_AS_GPU=1 takes a CPU driver for a GPU.\n");
    return to == stdout ? 0 : EXIT_USAGE;
}

static bool flag(const char *name) {
    const char *value = getenv(name);
    return value && strcmp(value, "1") == 0;
}

static void find_here(void) {
    ssize_t length = readlink("/proc/self/exe", test.here, sizeof test.here - 1);
    test.here[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(test.here, '/');
    if (slash) {
        *slash = '\0';
    }
}

static int open_devices(void **state) {
    (void)state;
    bool named_ref = strcmp(test.selector, "ref") == 0;
    test.dev = grt_dev_create(grt_dev_desc(.device = named_ref ? "ref:0" : test.selector,
                                           .validate = true, .as_gpu = test.as_gpu));
    test.ref = grt_dev_create(grt_dev_desc(.device = "ref:0"));
    if (!test.dev || !test.ref) {
        return -1;
    }
    test.on_ref = grt_dev_info(test.dev)->backend == GRT_BACKEND_REF;
    return 0;
}

static int close_devices(void **state) {
    (void)state;
    grt_dev_destroy(&test.dev);
    grt_dev_destroy(&test.ref);
    return 0;
}

// Opens and closes the device once before the first suite, so that a missing one is said once and
// with its own exit status.
static bool device_there(void) {
    bool there = open_devices(NULL) == 0;
    if (there) {
        const struct grt_dev_info *info = grt_dev_info(test.dev);
        printf("# device %s: %s, %s %s\n", info->selector, info->name, info->driver,
               info->driver_version);
    } else {
        fprintf(stderr, "gpurt-test: cannot open %s: %s\n", test.selector, grt_last_error());
    }
    close_devices(NULL);
    return there;
}

// ---- what suites took last ----

// A file for each suite and device beside the program: tests that run at once do not meet. Where
// nothing can be written, nothing is known.
#define TIMES "gpurt-test-times"

static void note_time(const char *name, double seconds) {
    char path[sizeof test.here + 128];
    snprintf(path, sizeof path, "%s/" TIMES, test.here);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/" TIMES "/%s", test.here, name);
    FILE *file = fopen(path, "w");
    if (file) {
        fprintf(file, "%.3f\n", seconds);
        fclose(file);
    }
}

// Seconds, or below 0 where nobody knows.
static double last_time(const char *suite, const char *where) {
    char path[sizeof test.here + 128], text[32] = "";
    snprintf(path, sizeof path, "%s/" TIMES "/%s.%s", test.here, suite, where);
    FILE *file = fopen(path, "r");
    if (!file) {
        return -1;
    }
    bool read = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    return read ? strtod(text, NULL) : -1;
}

static int run_suite(const struct test_suite *suite, bool whole) {
    // The name of the group is all that tells apart the output of two devices.
    char name[64];
    snprintf(name, sizeof name, "%s.%s", suite->name, suite->on_device ? test.selector : "host");
    double begun = grt_seconds();
    int failed = _cmocka_run_group_tests(name, suite->cases, suite->case_count,
                                         suite->on_device ? open_devices : NULL,
                                         suite->on_device ? close_devices : NULL);
    // ref:0 and ref are one; a selector that is a part of a name may hold anything.
    size_t length = strlen(suite->name) + 1;
    name[length + strcspn(name + length, ":")] = '\0';
    if (whole && failed == 0 && !flag("GPURT_TEST_AS_GPU") && !strpbrk(name, "/ ")) {
        note_time(name, grt_seconds() - begun);
    }
    return failed;
}

static const struct test_suite *find_suite(const char *name) {
    for (size_t i = 0; i < SUITE_COUNT; i++) {
        if (strcmp(suites[i]->name, name) == 0) {
            return suites[i];
        }
    }
    return NULL;
}

static int list_suites(void) {
    static const char *const places[] = {"host", "ref", "opencl", "vulkan"};
    find_here();
    for (size_t i = 0; i < SUITE_COUNT; i++) {
        printf("%s %c", suites[i]->name, suites[i]->on_device ? 'D' : 'H');
        for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
            double seconds = last_time(suites[i]->name, places[k]);
            if (seconds >= 0) {
                printf("  %s %.2f s", places[k], seconds);
            }
        }
        printf("\n");
    }
    return 0;
}

static bool has_case(const struct test_suite *const *chosen, size_t count, const char *filter) {
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < chosen[i]->case_count; k++) {
            if (fnmatch(filter, chosen[i]->cases[k].name, 0) == 0) {
                return true;
            }
        }
    }
    return false;
}

int main(int argc, char **argv) {
    const struct test_suite *chosen[SUITE_COUNT];
    const char *filter = NULL;
    size_t count = 0;
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            return usage(stdout);
        }
        if (strcmp(arg, "--list") == 0) {
            return list_suites();
        }
        if (strcmp(arg, "--device") == 0 && i + 1 < argc) {
            i++;
            test.selector = argv[i];
        } else if (strcmp(arg, "--case") == 0 && i + 1 < argc) {
            i++;
            filter = argv[i];
        } else if (arg[0] != '-' && find_suite(arg) && count < SUITE_COUNT) {
            chosen[count] = find_suite(arg);
            count++;
        } else {
            fprintf(stderr, "gpurt-test: no suite or option '%s'\n", arg);
            return usage(stderr);
        }
    }
    if (count == 0) {
        memcpy(chosen, suites, sizeof suites);
        count = SUITE_COUNT;
    }
    // Nothing run would be nothing failed.
    if (filter && !has_case(chosen, count, filter)) {
        fprintf(stderr, "gpurt-test: no case '%s'\n", filter);
        return usage(stderr);
    }
    cmocka_set_test_filter(filter);
    test.as_gpu = flag("GPURT_TEST_AS_GPU");
    test.small = flag("GPURT_TEST_SMALL");
    test.big = flag("GPURT_TEST_BIG");
    find_here();
    test_log_install();
    bool on_device = false;
    for (size_t i = 0; i < count; i++) {
        on_device = on_device || chosen[i]->on_device;
    }
    if (on_device && !device_there()) {
        return EXIT_NO_DEVICE;
    }
    int failed = 0;
    for (size_t i = 0; i < count; i++) {
        failed += run_suite(chosen[i], !filter && !test.small) != 0;
    }
    return failed > 0 ? 1 : 0;
}
