// SPDX-License-Identifier: Apache-2.0
// gpurt doctor: loaders, drivers and GPUs. Each test begins with the healthy system of
// doctor_world.h, breaks one thing in it and expects exactly the findings that follow: sentence,
// remedy, level, and no other problem.
#include "doctor_world.h"

static void test_healthy(struct world *w) {
    static const char *const ids[] = {
        "vulkan-loader", "vulkan-drivers", "opencl-loader", "opencl-drivers",
        "gpu-apis",      "node-denied",    "coopmat",       "cache",
    };
    expect_none(w);
    for (uint32_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        assert_string_equal(w->findings.items[i].id, ids[i]);
    }
    assert_int_equal(w->findings.count, sizeof ids / sizeof ids[0]);
    expect(w, "vulkan-loader", DOCTOR_OK, "Vulkan loader " LIB "libvulkan.so.1", "");
    expect(w, "vulkan-drivers", DOCTOR_OK, "1 Vulkan driver: radeon_icd.json", "");
    expect(w, "gpu-apis", DOCTOR_OK, "AMD GPU 0000:03:00.0 through Vulkan and OpenCL", "");
    expect(w, "node-denied", DOCTOR_OK, NODE " can be opened", "");
    expect(w, "cache", DOCTOR_OK, "cache /people/anna/.cache/gpurt", "");
}

// ---- loaders ----

static void test_no_loader(struct world *w) {
    take(w, LIB "libvulkan.so.1");
    take(w, LIB "libOpenCL.so.1");
    expect_none(w);  // devices that are listed prove that there are loaders
    w->list.reports[GRT_BACKEND_VULKAN].device_count = 0;
    w->list.reports[GRT_BACKEND_OPENCL].device_count = 0;
    examine(w);
    expect(w, "vulkan-loader", DOCTOR_WARNING, "no Vulkan loader: libvulkan.so.1 is not installed",
           "apt install libvulkan1");
    expect(w, "opencl-loader", DOCTOR_WARNING, "no OpenCL loader: libOpenCL.so.1 is not installed",
           "apt install ocl-icd-libopencl1");
    expect_no_more(w);
}

// One for another processor is passed over, by its class (32 or 64 bits) and by its machine: each
// alone suffices.
static void test_foreign_loader(struct world *w) {
    unsigned char header[20];
    FILE *own = fopen("/proc/self/exe", "rb");
    assert_non_null(own);
    assert_int_equal(fread(header, 1, sizeof header, own), sizeof header);
    fclose(own);
    put_bytes(w, LIB "libvulkan.so.1", header, sizeof header);
    examine(w);
    expect(w, "vulkan-loader", DOCTOR_OK, "Vulkan loader " LIB "libvulkan.so.1", "");
    w->list.reports[GRT_BACKEND_VULKAN].device_count = 0;
    for (size_t at = 4; at <= 18; at += 14) {
        header[at] ^= 3;
        put_bytes(w, LIB "libvulkan.so.1", header, sizeof header);
        header[at] ^= 3;
        expect_only(w, "vulkan-loader", DOCTOR_WARNING,
                    "no Vulkan loader: libvulkan.so.1 is not installed", "apt install libvulkan1");
    }
}

static void test_library_places(struct world *w) {
    take(w, LIB "libvulkan.so.1");
    put(w, "/etc/ld.so.conf", "# ours\ninclude ld.so.conf.d/*.conf\n");
    put(w, "/etc/ld.so.conf.d/x.conf", "/opt/x, /opt/y # two\n");
    put(w, "/opt/y/libvulkan.so.1", "");
    examine(w);
    expect(w, "vulkan-loader", DOCTOR_OK, "Vulkan loader /opt/y/libvulkan.so.1", "");
    put(w, "/opt/z/libvulkan.so.1", "");
    w->source.env.ld_library_path = "relative::/opt/z";
    examine(w);
    expect(w, "vulkan-loader", DOCTOR_OK, "Vulkan loader /opt/z/libvulkan.so.1", "");
    // A bundle's own loader comes before all, its fallback after all.
    put(w, "/opt/gpurt/lib/libvulkan.so.1", "");
    put(w, "/opt/gpurt/lib/fallback/libOpenCL.so.1", "");
    w->source.prefix = "/opt/gpurt";
    examine(w);
    expect(w, "vulkan-loader", DOCTOR_OK, "Vulkan loader /opt/gpurt/lib/libvulkan.so.1", "");
    expect(w, "opencl-loader", DOCTOR_OK, "OpenCL loader " LIB "libOpenCL.so.1", "");
    take(w, LIB "libOpenCL.so.1");
    examine(w);
    expect(w, "opencl-loader", DOCTOR_OK, "OpenCL loader /opt/gpurt/lib/fallback/libOpenCL.so.1",
           "");
}

// ---- drivers ----

static void test_no_drivers(struct world *w) {
    take(w, MANIFEST);
    take(w, "/etc/OpenCL/vendors/rusticl.icd");
    examine(w);
    expect(w, "vulkan-drivers", DOCTOR_WARNING,
           "no Vulkan driver: no manifest that can be used in /etc/vulkan/icd.d, "
           "/usr/share/vulkan/icd.d and the XDG folders",
           "apt install mesa-vulkan-drivers (AMD, Intel, CPU) or nvidia-vulkan-icd (NVIDIA)");
    expect(w, "opencl-drivers", DOCTOR_WARNING,
           "no OpenCL driver: no vendor file that can be used in /etc/OpenCL/vendors",
           "apt install pocl-opencl-icd (CPU), intel-opencl-icd, mesa-opencl-icd (AMD) or "
           "nvidia-opencl-icd");
    expect_no_more(w);
}

static void test_manifest_folders(struct world *w) {
    static const struct {
        const char *folder;
        struct doctor_env env;
    } places[] = {
        {"/etc/vulkan/icd.d", {0}},
        {"/etc/xdg/vulkan/icd.d", {0}},
        {"/usr/local/share/vulkan/icd.d", {0}},
        {"/people/anna/.config/vulkan/icd.d", {.home = "/people/anna"}},
        {"/people/anna/.local/share/vulkan/icd.d", {.home = "/people/anna"}},
        {"/c/vulkan/icd.d", {.config_home = "/c"}},
        {"/d/vulkan/icd.d", {.data_home = "/d"}},
        {"/e/vulkan/icd.d", {.config_dirs = "/x:/e"}},
        {"/f/vulkan/icd.d", {.data_dirs = "/f:/x:/f"}},  // twice, taken once
        {"/g/any", {.driver_files = "/g/any", .icd_filenames = "/nowhere.json"}},
        {"/h/any", {.icd_filenames = "/h/any/one_icd.json"}},
        {"/i/any", {.add_driver_files = "/i/any/one_icd.json"}},
    };
    take(w, MANIFEST);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/one_icd.json", places[i].folder);
        put_manifest(w, path, "libvulkan_radeon.so");
        w->source.env = places[i].env;
        w->source.env.cache_home = "/people/anna";
        expect_none(w);
        expect(w, "vulkan-drivers", DOCTOR_OK, "1 Vulkan driver: one_icd.json", "");
        assert_string_equal(w->facts.apis[GRT_BACKEND_VULKAN].drivers[0].file, path);
        take(w, path);
    }
}

static void test_vendor_places(struct world *w) {
    static const struct {
        struct doctor_env env;
        const char *sentence;
    } places[] = {
        {{.ocl_vendor_path = "/v"}, "1 OpenCL driver: v.icd"},
        {{.ocl_vendors = "/v"}, "1 OpenCL driver: v.icd"},
        {{.ocl_vendors = "/v/v.icd"}, "1 OpenCL driver: v.icd"},
        {{.ocl_vendors = "rusticl.icd"}, "1 OpenCL driver: rusticl.icd"},
        {{.ocl_vendors = LIB "libRusticlOpenCL.so.1"}, "1 OpenCL driver: libRusticlOpenCL.so.1"},
        {{.ocl_filenames = "libRusticlOpenCL.so.1"},
         "2 OpenCL drivers: rusticl.icd, libRusticlOpenCL.so.1"},
    };
    put(w, "/v/v.icd", "libRusticlOpenCL.so.1");
    put(w, LIB "libOpenCL.so.1", "a loader with OCL_ICD_FILENAMES in it");
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        w->source.env = places[i].env;
        w->source.env.home = "/people/anna";
        expect_none(w);
        expect(w, "opencl-drivers", DOCTOR_OK, places[i].sentence, "");
    }
}

static void test_filenames(struct world *w) {
    w->source.env.ocl_filenames = "libRusticlOpenCL.so.1";
    expect_only(w, "opencl-filenames", DOCTOR_WARNING,
                "OCL_ICD_FILENAMES is set, but " LIB "libOpenCL.so.1 does not know it",
                "unset it: gpurt then finds the drivers itself");
}

static void test_named_driver(struct world *w) {
    w->source.env.icd_filenames = "/nowhere.json";
    expect_only(w, "vulkan-named-driver", DOCTOR_ERROR,
                "VK_ICD_FILENAMES names /nowhere.json, which does not exist",
                "unset VK_ICD_FILENAMES, or correct it");
    put_manifest(w, "/named.json", "libgone.so");
    w->source.env.icd_filenames = "/named.json";
    expect_only(w, "vulkan-named-driver", DOCTOR_ERROR,
                "VK_ICD_FILENAMES names /named.json, which names a library that is not there: "
                "libgone.so",
                "unset VK_ICD_FILENAMES, or correct it");
    w->source.env.icd_filenames = NULL;
    w->source.env.ocl_vendors = "/nowhere";
    expect_only(w, "opencl-named-driver", DOCTOR_ERROR,
                "OCL_ICD_VENDORS names /nowhere, which does not exist",
                "unset OCL_ICD_VENDORS, or correct it");
}

static void test_broken_driver(struct world *w) {
    put_manifest(w, "/etc/vulkan/icd.d/gone.json", "../lib/libgone.so");
    expect_only(w, "vulkan-broken-driver", DOCTOR_WARNING,
                "/etc/vulkan/icd.d/gone.json names a library that is not there: "
                "/etc/vulkan/icd.d/../lib/libgone.so",
                "reinstall the package it belongs to (dpkg -S /etc/vulkan/icd.d/gone.json tells "
                "which), or remove it");
    put(w, "/etc/vulkan/lib/libgone.so", "");
    expect_none(w);
    put(w, "/etc/vulkan/icd.d/gone.json", "{\"ICD\": 1");
    examine(w);
    expect(w, "vulkan-broken-driver", DOCTOR_WARNING,
           "/etc/vulkan/icd.d/gone.json names no library",
           "reinstall the package it belongs to (dpkg -S /etc/vulkan/icd.d/gone.json tells which), "
           "or remove it");
    take(w, "/etc/vulkan/icd.d/gone.json");
    put(w, "/etc/OpenCL/vendors/gone.icd", "libgone.so\n");
    expect_only(w, "opencl-broken-driver", DOCTOR_WARNING,
                "/etc/OpenCL/vendors/gone.icd names a library that is not there: libgone.so",
                "reinstall the package it belongs to (dpkg -S /etc/OpenCL/vendors/gone.icd tells "
                "which), or remove it");
}

static void test_driver_failed(struct world *w) {
    strcpy(w->list.reports[GRT_BACKEND_VULKAN].problem,
           "the driver crashed (signal 11) while listing its devices");
    strcpy(w->list.reports[GRT_BACKEND_OPENCL].problem,
           "the driver did not answer within 10 s while listing its devices");
    examine(w);
    expect(w, "vulkan-driver-failed", DOCTOR_ERROR,
           "Vulkan: the driver crashed (signal 11) while listing its devices",
           "find the culprit, one driver at a time: for f in " MANIFEST
           "; do VK_ICD_FILENAMES=$f gpurt devices; done");
    expect(w, "opencl-driver-failed", DOCTOR_ERROR,
           "OpenCL: the driver did not answer within 10 s while listing its devices",
           "find the culprit, one driver at a time: for f in /etc/OpenCL/vendors/rusticl.icd; do "
           "d=$(mktemp -d); cp $f $d; OCL_ICD_VENDORS=$d/ gpurt devices; done");
    expect_no_more(w);
}

static void test_driver_left_out(struct world *w) {
    strcpy(w->list.reports[GRT_BACKEND_OPENCL].problem,
           "left out /etc/OpenCL/vendors/rusticl.icd: the driver crashed (signal 11) while listing "
           "its devices");
    expect_only(
        w, "opencl-driver-failed", DOCTOR_ERROR,
        "OpenCL: left out /etc/OpenCL/vendors/rusticl.icd: the driver crashed (signal 11) "
        "while listing its devices",
        "reinstall the package it belongs to (dpkg -S /etc/OpenCL/vendors/rusticl.icd tells "
        "which), or remove it");
}

static void test_other_problem(struct world *w) {
    strcpy(w->list.reports[GRT_BACKEND_OPENCL].problem, "the loader is too old");
    expect_only(w, "opencl-problem", DOCTOR_WARNING, "OpenCL: the loader is too old", "");
    w->source.env.ocl_vendors = "/etc/OpenCL/vendors";
    examine(w);
    expect(w, "opencl-problem", DOCTOR_WARNING, "OpenCL: the loader is too old",
           "end OCL_ICD_VENDORS with a slash: some loaders need it");
    w->source.env.ocl_vendors = NULL;
    take(w, "/etc/OpenCL/vendors/rusticl.icd");  // explains it
    examine(w);
    assert_string_equal(find(w, "opencl-problem", false)->sentence, "(no such finding)");
}

static void test_no_devices(struct world *w) {
    w->list.count = 2;
    w->list.devices = w->devices + 1;
    w->list.reports[GRT_BACKEND_VULKAN].device_count = 0;
    examine(w);
    expect(w, "vulkan-no-devices", DOCTOR_NOTE, "no Vulkan device, although there are drivers", "");
    w->list.count = 0;  // nothing was listed
    expect_none(w);
}

static void test_pocl_without_cache(struct world *w) {
    put(w, LIB "libpocl.so.2", "");
    put(w, "/etc/OpenCL/vendors/rusticl.icd", "libpocl.so.2");
    w->list.reports[GRT_BACKEND_OPENCL].device_count = 0;
    expect_only(w, "opencl-no-devices", DOCTOR_NOTE, "no OpenCL device, although there are drivers",
                "for PoCL: set XDG_CACHE_HOME to a folder that can be written (it also keeps a "
                "cache)");
}

// ---- GPUs ----

static void test_software_only(struct world *w) {
    w->devices[0].caps.software = 1;
    w->devices[1].caps.software = 1;
    take(w, GPU_FOLDER "/class");
    expect_only(w, "software-only", DOCTOR_NOTE,
                "only CPU drivers are there (vulkan:0, opencl:0, ref:0): good for tests, far too "
                "slow for training",
                "no GPU of AMD, Intel or NVIDIA is on the PCI bus: in a virtual machine, pass one "
                "through");
}

static void test_gpu_unused(struct world *w) {
    static const struct {
        const char *vendor, *driver, *node, *sentence, *remedy;
    } cases[] = {
#define UNUSED(name, driver)                                                                       \
    "the " name " GPU 0000:03:00.0 (kernel driver " driver                                         \
    ") is not used: no Vulkan or OpenCL driver lists it"
#define INSTALL(vulkan, opencl)                                                                    \
    "apt install " vulkan " for Vulkan, or " opencl " for OpenCL; if it is installed, a newer one"
        {"0x1002", "amdgpu", NODE, UNUSED("AMD", "amdgpu"),
         INSTALL("mesa-vulkan-drivers", "mesa-opencl-icd (rusticl; set RUSTICL_ENABLE=radeonsi)")},
        {"0x8086", "xe", NODE, UNUSED("Intel", "xe"),
         INSTALL("mesa-vulkan-drivers", "intel-opencl-icd")},
        {"0x10de", "nvidia", "/dev/nvidiactl", UNUSED("NVIDIA", "nvidia"),
         INSTALL("nvidia-vulkan-icd", "nvidia-opencl-icd")},
        {"0x10de", "nouveau", NODE, UNUSED("NVIDIA", "nouveau"),
         INSTALL("mesa-vulkan-drivers (NVK, Mesa 24.1 or newer)",
                 "nvidia-driver nvidia-opencl-icd (in place of nouveau)")},
        {"0x10de", NULL, NULL, "the NVIDIA GPU 0000:03:00.0 has no kernel driver",
         "apt install nvidia-driver"},
#undef UNUSED
#undef INSTALL
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put_gpu(w, cases[i].vendor, cases[i].driver, cases[i].node);
        examine(w);
        expect(w, "gpu-unused", DOCTOR_ERROR, cases[i].sentence, cases[i].remedy);
        expect(w, "software-only", DOCTOR_NOTE,
               "only CPU drivers are there (vulkan:0, opencl:0, ref:0): good for tests, far too "
               "slow for training",
               "see what is said about the GPU here");
        expect_no_more(w);
    }
}

static void test_gpu_idle(struct world *w) {
    put(w, "/sys/bus/pci/devices/0000:65:00.0/class", "0x120000");
    put(w, "/sys/bus/pci/devices/0000:65:00.0/vendor", "0x10de");
    expect_only(w, "gpu-idle", DOCTOR_WARNING, "the NVIDIA GPU 0000:65:00.0 has no kernel driver",
                "apt install nvidia-driver");
    // Neither a GPU that is kept for a virtual machine nor an NPU is ours.
    put_link(w, "/sys/bus/pci/devices/0000:65:00.0/driver", "/drivers/vfio-pci");
    expect_none(w);
    take(w, "/sys/bus/pci/devices/0000:65:00.0/driver");
    put(w, "/sys/bus/pci/devices/0000:65:00.0/vendor", "0x8086");
    expect_none(w);
}

static void test_gpu_apis(struct world *w) {
    w->devices[0].caps.software = 1;
    expect_only(w, "gpu-apis", DOCTOR_NOTE, "the AMD GPU 0000:03:00.0 is used through OpenCL only",
                "for Vulkan too: apt install mesa-vulkan-drivers");
    w->devices[0].caps.software = 0;
    strcpy(w->devices[1].pci, "0000:04:00.0");  // another card of the same maker
    examine(w);
    expect(w, "gpu-apis", DOCTOR_NOTE, "the AMD GPU 0000:03:00.0 is used through Vulkan only",
           "for OpenCL too: apt install mesa-opencl-icd (rusticl; set RUSTICL_ENABLE=radeonsi)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WORLD_TEST(healthy),        WORLD_TEST(no_loader),     WORLD_TEST(foreign_loader),
        WORLD_TEST(library_places), WORLD_TEST(no_drivers),    WORLD_TEST(manifest_folders),
        WORLD_TEST(vendor_places),  WORLD_TEST(filenames),     WORLD_TEST(named_driver),
        WORLD_TEST(broken_driver),  WORLD_TEST(driver_failed), WORLD_TEST(driver_left_out),
        WORLD_TEST(other_problem),  WORLD_TEST(no_devices),    WORLD_TEST(pocl_without_cache),
        WORLD_TEST(software_only),  WORLD_TEST(gpu_unused),    WORLD_TEST(gpu_idle),
        WORLD_TEST(gpu_apis),
    };
    grt_log_set(drop_line, NULL, GRT_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
