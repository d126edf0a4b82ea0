// SPDX-License-Identifier: Apache-2.0
// The system that the tests of gpurt doctor look at: a temporary folder with a healthy AMD machine
// in it, whose GPU Vulkan and OpenCL list, and a user who is neither root nor the one who runs the
// test. Included by test_doctor.c alone.
#ifndef TESTS_DOCTOR_WORLD_H
#define TESTS_DOCTOR_WORLD_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/doctor.h"

#define USER_ID 4242
#define GPU_FOLDER "/sys/bus/pci/devices/0000:03:00.0"
#define MANIFEST "/usr/share/vulkan/icd.d/radeon_icd.json"
#define NODE "/dev/dri/renderD128"

struct world {
    char root[64];
    struct doctor_source source;
    struct grt_dev_list list;
    struct grt_dev_info devices[3];
    struct doctor_facts facts;
    struct doctor_findings findings;
    uint32_t expected;      // problems that were expected so far
};

// ---- the faked system ----

static const char *under(const struct world *w, const char *path) {
    static char full[256];
    snprintf(full, sizeof full, "%s%s", w->root, path);
    return full;
}

static void make_parents(const struct world *w, const char *path) {
    char part[256];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        mkdir(under(w, part), 0755);
    }
}

static void put_bytes(const struct world *w, const char *path, const void *bytes, size_t size) {
    make_parents(w, path);
    FILE *file = fopen(under(w, path), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void put(const struct world *w, const char *path, const char *text) {
    put_bytes(w, path, text, strlen(text));
}

static void put_link(const struct world *w, const char *path, const char *target) {
    make_parents(w, path);
    unlink(under(w, path));
    assert_int_equal(symlink(target, under(w, path)), 0);
}

static void take(const struct world *w, const char *path) {
    assert_int_equal(remove(under(w, path)), 0);
}

static void put_manifest(const struct world *w, const char *path, const char *library) {
    char text[256];
    snprintf(text, sizeof text, "{\"ICD\": {\"library_path\": \"%s\"}}", library);
    put(w, path, text);
}

static void put_node(const struct world *w, const char *path, mode_t mode) {
    put(w, path, "");
    assert_int_equal(chmod(under(w, path), mode), 0);
}

// Another maker's GPU in the place of AMD's, opened by `node`, and not listed by any API.
static void put_gpu(struct world *w, const char *vendor, const char *kernel_driver,
                    const char *node) {
    take(w, NODE);
    take(w, GPU_FOLDER "/drm/renderD128");
    put(w, GPU_FOLDER "/vendor", vendor);
    put_link(w, GPU_FOLDER "/driver", kernel_driver);
    if (node) {
        put_node(w, node, 0666);
    }
    w->devices[0].caps.software = 1;
    w->devices[1].caps.software = 1;
}

static int set_up(void **state) {
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    *state = w;
    strcpy(w->root, "/tmp/gpurt-doctor-XXXXXX");
    assert_non_null(mkdtemp(w->root));
    put(w, "/usr/lib/any-linux-gnu/libvulkan.so.1", "");
    put(w, "/usr/lib/any-linux-gnu/libvulkan_radeon.so", "");
    put(w, "/usr/lib/any-linux-gnu/libOpenCL.so.1", "");
    put(w, "/usr/lib/any-linux-gnu/libRusticlOpenCL.so.1", "");
    put_manifest(w, MANIFEST, "/usr/lib/any-linux-gnu/libvulkan_radeon.so");
    put(w, "/etc/OpenCL/vendors/rusticl.icd", "libRusticlOpenCL.so.1\n");
    put(w, GPU_FOLDER "/class", "0x030000\n");
    put(w, GPU_FOLDER "/vendor", "0x1002\n");
    put(w, GPU_FOLDER "/drm/renderD128", "");
    put_link(w, GPU_FOLDER "/driver", "../../../bus/pci/drivers/amdgpu");
    put_node(w, NODE, 0666);
    put(w, "/proc/sys/kernel/osrelease", "6.1.0-28-amd64\n");
    put(w, "/proc/1/cgroup", "0::/init.scope\n");
    put(w, "/home/anna/.profile", "");
    w->source.root = w->root;
    w->source.env.home = "/home/anna";
    w->source.user = (struct doctor_user){.uid = USER_ID, .gids = {USER_ID}, .gid_count = 1};
    w->source.list = &w->list;
    w->source.coopmat = true;
    w->list.devices = w->devices;
    w->list.count = 3;
    w->devices[0] = (struct grt_dev_info){.backend = GRT_BACKEND_VULKAN,
                                          .selector = "vulkan:0",
                                          .name = "Radeon RX 7900",
                                          .vendor = "AMD",
                                          .pci = "0000:03:00.0"};
    w->devices[1] = (struct grt_dev_info){.backend = GRT_BACKEND_OPENCL,
                                          .selector = "opencl:0",
                                          .name = "Radeon RX 7900",
                                          .vendor = "Advanced Micro Devices"};
    w->devices[2] = (struct grt_dev_info){
        .backend = GRT_BACKEND_REF, .selector = "ref:0", .name = "ref", .caps.software = 1};
    w->list.reports[GRT_BACKEND_VULKAN].device_count = 1;
    w->list.reports[GRT_BACKEND_OPENCL].device_count = 1;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int tear_down(void **state) {
    struct world *w = *state;
    int failed = nftw(w->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(w);
    return failed;
}

// ---- what is expected ----

static void examine(struct world *w) {
    doctor_facts_gather(&w->facts, &w->source);
    doctor_findings_make(&w->findings, &w->facts);
    w->expected = 0;
}

static const struct doctor_finding *find(const struct world *w, const char *id, bool good) {
    static const struct doctor_finding none = {.sentence = "(no such finding)"};
    for (uint32_t i = 0; i < w->findings.count; i++) {
        const struct doctor_finding *finding = &w->findings.items[i];
        if (strcmp(finding->id, id) == 0 && (finding->level == DOCTOR_OK) == good) {
            return finding;
        }
    }
    return &none;
}

static void expect(struct world *w, const char *id, enum doctor_level level, const char *sentence,
                   const char *remedy) {
    const struct doctor_finding *finding = find(w, id, level == DOCTOR_OK);
    assert_string_equal(finding->sentence, sentence);
    assert_string_equal(finding->remedy, remedy);
    assert_string_equal(doctor_level_text(finding->level), doctor_level_text(level));
    w->expected += level != DOCTOR_OK;
}

// Nothing was found but what was expected. Compared as text, so that a failure names the surplus.
static void expect_no_more(const struct world *w) {
    uint32_t problems = 0;
    const char *last = "";
    for (uint32_t i = 0; i < w->findings.count; i++) {
        if (w->findings.items[i].level != DOCTOR_OK) {
            last = w->findings.items[i].sentence;
            problems++;
        }
    }
    assert_string_equal(problems > w->expected ? last : "", "");
    assert_int_equal(problems, w->expected);
}

// Examines, and expects this problem alone.
static void expect_only(struct world *w, const char *id, enum doctor_level level,
                        const char *sentence, const char *remedy) {
    examine(w);
    expect(w, id, level, sentence, remedy);
    expect_no_more(w);
}

static void expect_none(struct world *w) {
    examine(w);
    expect_no_more(w);
}

#endif
