// SPDX-License-Identifier: Apache-2.0
// The system that the tests of gpurt doctor look at: a temporary folder with a healthy AMD machine
// in it, whose GPU Vulkan and OpenCL list, and a user who is neither root nor the one who runs the
// test. For the test_doctor*.c programs: each test is a function that gets a world of its own.
#ifndef TESTS_DOCTOR_WORLD_H
#define TESTS_DOCTOR_WORLD_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/doctor.h"

#define USER_ID 4242
#define LIB "/usr/lib/any-linux-gnu/"
#define GPU_FOLDER "/sys/bus/pci/devices/0000:03:00.0"
#define MANIFEST "/usr/share/vulkan/icd.d/radeon_icd.json"
#define NODE "/dev/dri/renderD128"
#define CONTAINER_REMEDY "start the container with --gpus all -e NVIDIA_DRIVER_CAPABILITIES=all"

struct world;
typedef void world_test(struct world *w);

struct world {
    world_test *test;
    char root[64];
    struct doctor_source source;
    struct grt_dev_list list;
    struct grt_dev_info devices[3];
    struct doctor_facts facts;
    struct doctor_findings findings;
    uint32_t expected;  // problems that were expected so far
};

// ---- the faked system ----

static const char *under(const struct world *w, const char *path) {
    static char full[384];
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
    unlink(under(w, path));
    put(w, path, "");
    assert_int_equal(chmod(under(w, path), mode), 0);
}

// Another maker's GPU in the place of AMD's, opened by `node`, and not listed by any API.
static void put_gpu(struct world *w, const char *vendor, const char *kernel_driver,
                    const char *node) {
    unlink(under(w, NODE));
    unlink(under(w, GPU_FOLDER "/drm/renderD128"));
    unlink(under(w, GPU_FOLDER "/driver"));
    put(w, GPU_FOLDER "/vendor", vendor);
    if (kernel_driver) {
        put_link(w, GPU_FOLDER "/driver", kernel_driver);
    }
    if (node) {
        put_node(w, node, 0666);
    }
    w->devices[0].caps.software = 1;
    w->devices[1].caps.software = 1;
}

static int set_up(void **state) {
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->test = *(world_test **)*state;
    *state = w;
    strcpy(w->root, "/tmp/gpurt-doctor-XXXXXX");
    assert_non_null(mkdtemp(w->root));
    put(w, LIB "libvulkan.so.1", "");
    put(w, LIB "libvulkan_radeon.so", "");
    put(w, LIB "libOpenCL.so.1", "");
    put(w, LIB "libRusticlOpenCL.so.1", "");
    put_manifest(w, MANIFEST, LIB "libvulkan_radeon.so");
    put(w, "/etc/OpenCL/vendors/rusticl.icd", "libRusticlOpenCL.so.1\n");
    put(w, GPU_FOLDER "/class", "0x030000\n");
    put(w, GPU_FOLDER "/vendor", "0x1002\n");
    put(w, GPU_FOLDER "/drm/renderD128", "");
    put_link(w, GPU_FOLDER "/driver", "../../../bus/pci/drivers/amdgpu");
    put_node(w, NODE, 0666);
    put(w, "/proc/sys/kernel/osrelease", "6.1.0-28-amd64\n");
    put(w, "/proc/1/cgroup", "0::/init.scope\n");
    put(w, "/people/anna/.profile", "");
    w->source.root = w->root;
    w->source.env.home = "/people/anna";
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

static void remove_tree(const char *path) {
    DIR *folder = remove(path) != 0 ? opendir(path) : NULL;
    if (!folder) {
        return;
    }
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        char inner[512];
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            snprintf(inner, sizeof inner, "%.240s/%s", path, entry->d_name);
            remove_tree(inner);
        }
    }
    closedir(folder);
    remove(path);
}

static int tear_down(void **state) {
    struct world *w = *state;
    remove_tree(w->root);
    free(w);
    return 0;
}

static void in_world(void **state) {
    struct world *w = *state;
    w->test(w);
}

#define WORLD_TEST(name)                                                                           \
    ((struct CMUnitTest){#name, in_world, set_up, tear_down, &(world_test *){test_##name}})

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

// What the library complains about is a finding here, so its log is not needed.
static void drop_line(void *context, enum grt_log_level level, const char *line) {
    (void)context;
    (void)level;
    (void)line;
}

// Nothing was found but what was expected. A failure prints the ids of all that was found.
static void expect_no_more(const struct world *w) {
    uint32_t problems = 0;
    char ids[512] = "";
    for (uint32_t i = 0; i < w->findings.count; i++) {
        if (w->findings.items[i].level != DOCTOR_OK) {
            size_t used = strlen(ids);
            snprintf(ids + used, sizeof ids - used, " %s", w->findings.items[i].id);
            problems++;
        }
    }
    assert_string_equal(problems > w->expected ? ids : "", "");
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
