// SPDX-License-Identifier: Apache-2.0
// Which device a desc means, on lists made up here; no driver is asked.
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    enum grt_backend_id backend;
    uint32_t index;
    const char *name;
    const char *pci;
    uint32_t software, integrated;
};

#define MAX_ROWS 8

struct made {
    struct grt_dev_list list;
    struct grt_dev_info infos[MAX_ROWS];
};

static const struct grt_dev_list *make(struct made *made, const struct row *rows, uint32_t count) {
    memset(made, 0, sizeof *made);
    made->list.count = count;
    made->list.devices = made->infos;
    for (uint32_t i = 0; i < GRT_BACKEND_COUNT; i++) {
        made->list.reports[i].backend = (enum grt_backend_id)i;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct grt_dev_info *info = &made->infos[i];
        info->backend = rows[i].backend;
        info->index = rows[i].index;
        snprintf(info->selector, sizeof info->selector, "%s:%u", grt_backend_text(info->backend),
                 rows[i].index % 100);
        snprintf(info->name, sizeof info->name, "%s", rows[i].name);
        snprintf(info->pci, sizeof info->pci, "%s", rows[i].pci);
        info->caps.software = rows[i].software;
        info->caps.integrated = rows[i].integrated;
        made->list.reports[info->backend].device_count++;
    }
    return &made->list;
}

static const struct row workstation[] = {
    {GRT_BACKEND_VULKAN, 0, "llvmpipe (LLVM 15.0.6, 128 bits)", "", 1, 1},
    {GRT_BACKEND_VULKAN, 1, "Acme Igp 7", "0000:00:02.0", 0, 1},
    {GRT_BACKEND_VULKAN, 2, "Acme Card 9", "0000:65:00.0", 0, 0},
    {GRT_BACKEND_OPENCL, 0, "Acme Card 9", "0000:65:00.0", 0, 0},
    {GRT_BACKEND_OPENCL, 1, "pthread-skylake", "0001:ab:00.0", 1, 1},
    {GRT_BACKEND_REF, 0, "C reading on the CPU", "", 1, 1},
};
#define WORKSTATION workstation, 6

static void expect(const struct grt_dev_list *list, const struct grt_dev_desc *desc,
                   const char *selector) {
    const struct grt_dev_info *info = grt_dev_choose(list, desc);
    assert_non_null(info);
    assert_string_equal(info->selector, selector);
}

static void best_of_all(void **state) {
    (void)state;
    struct made made;
    const struct grt_dev_list *list = make(&made, WORKSTATION);
    expect(list, NULL, "vulkan:2");
    expect(list, grt_dev_desc(.device = NULL), "vulkan:2");
    expect(list, grt_dev_desc(.device = ""), "vulkan:2");
    expect(list, grt_dev_desc(.backend = "auto"), "vulkan:2");
    expect(list, grt_dev_desc(.require_gpu = true), "vulkan:2");
    expect(make(&made, workstation, 2), NULL, "vulkan:1");
    expect(make(&made, workstation + 4, 2), NULL, "opencl:1");
    expect(make(&made, workstation + 5, 1), NULL, "ref:0");
}

// A GPU that only OpenCL knows comes before a CPU driver of an earlier backend.
static void hardware_before_backend(void **state) {
    (void)state;
    struct made made;
    const struct row rows[] = {workstation[0], workstation[3], workstation[5]};
    expect(make(&made, rows, 3), NULL, "opencl:0");
    const struct row same[] = {workstation[0], workstation[2], workstation[3]};
    expect(make(&made, same, 3), NULL, "vulkan:2");
}

static void of_one_backend(void **state) {
    (void)state;
    struct made made;
    const struct grt_dev_list *list = make(&made, WORKSTATION);
    expect(list, grt_dev_desc(.backend = "vulkan"), "vulkan:2");
    expect(list, grt_dev_desc(.backend = "opencl"), "opencl:0");
    expect(list, grt_dev_desc(.backend = "ref"), "ref:0");
}

static void by_device(void **state) {
    (void)state;
    struct made made;
    const struct grt_dev_list *list = make(&made, WORKSTATION);
    expect(list, grt_dev_desc(.device = "vulkan:0"), "vulkan:0");
    expect(list, grt_dev_desc(.device = "opencl:1"), "opencl:1");
    expect(list, grt_dev_desc(.device = "ref:0"), "ref:0");
    expect(list, grt_dev_desc(.device = "llvmpipe"), "vulkan:0");
    expect(list, grt_dev_desc(.device = "LLVMPIPE"), "vulkan:0");
    expect(list, grt_dev_desc(.device = "igp"), "vulkan:1");
    expect(list, grt_dev_desc(.device = "0000:00:02.0"), "vulkan:1");
    expect(list, grt_dev_desc(.device = "cpu"), "opencl:1");
    expect(list, grt_dev_desc(.device = "cpu", .backend = "vulkan"), "vulkan:0");
    expect(list, grt_dev_desc(.device = "auto"), "vulkan:2");
    expect(list, grt_dev_desc(.device = "cuda"), "vulkan:2");
    expect(list, grt_dev_desc(.device = "hip:0", .backend = "opencl"), "opencl:0");
    // As lspci and nvidia-smi print it.
    expect(list, grt_dev_desc(.device = "00:02.0"), "vulkan:1");
    expect(list, grt_dev_desc(.device = "00000000:00:02.0"), "vulkan:1");
    expect(list, grt_dev_desc(.device = "0001:AB:00.0"), "opencl:1");
    // The same card through two APIs: the earlier backend.
    expect(list, grt_dev_desc(.device = "0000:65:00.0"), "vulkan:2");
    expect(list, grt_dev_desc(.device = "card 9"), "vulkan:2");
    expect(list, grt_dev_desc(.device = "card 9", .backend = "opencl"), "opencl:0");
    // A backend's name is no part of a card's.
    const struct row likeness[] = {{GRT_BACKEND_VULKAN, 0, "Acme Reference 1", "", 0, 0},
                                   workstation[5]};
    list = make(&made, likeness, 2);
    expect(list, grt_dev_desc(.device = "ref"), "ref:0");
    expect(list, grt_dev_desc(.device = "refer"), "vulkan:0");
}

static void refusals(void **state) {
    (void)state;
    struct made made;
    const struct grt_dev_list *list = make(&made, WORKSTATION);
    // Each sentence lists what there is.
    TEST_REFUSED(grt_dev_choose(list, grt_dev_desc(.device = "vulkan:7")), GRT_NO_DEVICE,
                 "Acme Card 9");
    TEST_REFUSED(grt_dev_choose(list, grt_dev_desc(.device = "vulkan:")), GRT_NO_DEVICE,
                 "opencl:1");
    TEST_REFUSED(grt_dev_choose(list, grt_dev_desc(.device = "ab:00.0")), GRT_NO_DEVICE, "ref:0");
    TEST_REFUSED(grt_dev_choose(list, grt_dev_desc(.device = "00:02.0.0")), GRT_NO_DEVICE, "ref:0");
    TEST_REFUSED(grt_dev_choose(list, grt_dev_desc(.device = "voodoo")), GRT_NO_DEVICE, "voodoo");
    TEST_REFUSED(grt_dev_choose(list, grt_dev_desc(.device = "voodoo")), GRT_NO_DEVICE, "ref:0");
    TEST_REFUSED(grt_dev_choose(list, grt_dev_desc(.device = "igp", .backend = "opencl")),
                 GRT_NO_DEVICE, "Acme Igp 7");
    TEST_REFUSED(grt_dev_choose(list, grt_dev_desc(.device = "cpu", .require_gpu = true)),
                 GRT_NO_DEVICE, "cpu");
    TEST_REFUSED(grt_dev_choose(list, grt_dev_desc(.device = "llvmpipe", .require_gpu = true)),
                 GRT_NO_DEVICE, "CPU");
    TEST_REFUSED(grt_dev_choose(list, grt_dev_desc(.backend = "ref", .require_gpu = true)),
                 GRT_NO_DEVICE, "ref:0");
    TEST_REFUSED(grt_dev_choose(list, grt_dev_desc(.backend = "cuda")), GRT_INVALID, "cuda");
    TEST_REFUSED(grt_dev_choose(NULL, NULL), GRT_INVALID, "list");
    list = make(&made, workstation + 4, 2);
    TEST_REFUSED(grt_dev_choose(list, grt_dev_desc(.require_gpu = true)), GRT_NO_DEVICE,
                 "pthread-skylake");
    static const char *const gpus[] = {"gpu", "cuda", "cuda:0", "hip", "rocm", "mps", "xpu:0"};
    for (size_t i = 0; i < sizeof gpus / sizeof gpus[0]; i++) {
        TEST_REFUSED(grt_dev_choose(list, grt_dev_desc(.device = gpus[i])), GRT_NO_DEVICE, gpus[i]);
        TEST_REFUSED(grt_dev_choose(list, grt_dev_desc(.device = gpus[i])), GRT_NO_DEVICE, "'cpu'");
    }
    expect(list, grt_dev_desc(.device = "auto"), "opencl:1");
    list = make(&made, workstation, 0);
    TEST_REFUSED(grt_dev_choose(list, NULL), GRT_NO_DEVICE, "none");
}

// What kept a backend from answering belongs into the sentence.
static void problems_are_told(void **state) {
    (void)state;
    struct made made;
    const struct grt_dev_list *list = make(&made, workstation + 5, 1);
    snprintf(made.list.reports[GRT_BACKEND_VULKAN].problem, 256, "the driver crashed (signal 11)");
    TEST_REFUSED(grt_dev_choose(list, grt_dev_desc(.backend = "vulkan")), GRT_NO_DEVICE,
                 "signal 11");
    TEST_REFUSED(grt_dev_choose(list, grt_dev_desc(.require_gpu = true)), GRT_NO_DEVICE, "ref:0");
}

// Names are the driver's: they may be as long as the field.
static void long_names(void **state) {
    (void)state;
    struct made made;
    char name[128];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    struct row rows[MAX_ROWS];
    for (uint32_t i = 0; i < MAX_ROWS; i++) {
        rows[i] = (struct row){GRT_BACKEND_VULKAN, i, name, "", 0, 0};
    }
    const struct grt_dev_list *list = make(&made, rows, MAX_ROWS);
    TEST_REFUSED(grt_dev_choose(list, grt_dev_desc(.device = "vulkan:9")), GRT_NO_DEVICE,
                 "vulkan:5");
    expect(list, grt_dev_desc(.device = name), "vulkan:0");
}

static void bad_descs(void **state) {
    (void)state;
    TEST_REFUSED(grt_dev_create(grt_dev_desc(.mem_fraction = -0.5)), GRT_INVALID, "mem_fraction");
    TEST_REFUSED(grt_dev_create(grt_dev_desc(.mem_fraction = 1.5)), GRT_INVALID, "1.5");
    TEST_REFUSED(grt_dev_create(grt_dev_desc(.max_submit_ms = -1)), GRT_INVALID, "max_submit_ms");
    TEST_REFUSED(grt_dev_create(grt_dev_desc(.backend = "ref", .device = "ref:9")), GRT_NO_DEVICE,
                 "ref:0");
    // A selector of another backend than the one named: what that one has.
    TEST_REFUSED(grt_dev_create(grt_dev_desc(.backend = "ref", .device = "vulkan:0")),
                 GRT_NO_DEVICE, "there is ref:0");
    // A selector of no backend: what there is must be told all the same.
    TEST_REFUSED(grt_dev_create(grt_dev_desc(.device = "voodoo:0")), GRT_NO_DEVICE, "ref:0");
    grt_dev_destroy(NULL);
    struct grt_dev *none = NULL;
    grt_dev_destroy(&none);
    assert_null(grt_dev_info(NULL));
    assert_int_equal(grt_dev_status(NULL), GRT_INVALID);
}

// The variable stands for a desc that names neither backend nor device, and for no other.
static void environment(void **state) {
    (void)state;
    const char *value = getenv("GPURT_DEVICE");
    char *before = value ? strdup(value) : NULL;
    setenv("GPURT_DEVICE", "ref:0", 1);
    struct grt_dev *dev = grt_dev_create(NULL);
    assert_non_null(dev);
    assert_string_equal(grt_dev_info(dev)->selector, "ref:0");
    grt_dev_destroy(&dev);
    setenv("GPURT_DEVICE", "ref:7", 1);
    TEST_REFUSED(grt_dev_create(NULL), GRT_NO_DEVICE, "ref:7");
    dev = grt_dev_create(grt_dev_desc(.backend = "ref"));
    assert_non_null(dev);
    grt_dev_destroy(&dev);
    dev = grt_dev_create(grt_dev_desc(.device = "ref:0"));
    assert_non_null(dev);
    grt_dev_destroy(&dev);
    unsetenv("GPURT_DEVICE");
    if (before) {
        setenv("GPURT_DEVICE", before, 1);
        free(before);
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(best_of_all),    TEST_CASE(hardware_before_backend),
    TEST_CASE(of_one_backend), TEST_CASE(by_device),
    TEST_CASE(refusals),       TEST_CASE(problems_are_told),
    TEST_CASE(long_names),     TEST_CASE(bad_descs),
    TEST_CASE(environment),
};
TEST_SUITE(choose, false, cases);
