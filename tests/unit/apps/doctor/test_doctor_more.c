// SPDX-License-Identifier: Apache-2.0
// gpurt doctor where there is more than one of a thing: drivers, GPUs, nodes and folders; limits of
// what is looked at; and what the command prints of a made-up system.
#include "doctor_world.h"

#include "unit/apps/caught.h"
#include "cli/command.h"
#include "cli/talk.h"
#include "doctor/doctor_files.h"

// ---- drivers ----

static void test_several_drivers(struct world *w) {
    put_manifest(w, "/usr/share/vulkan/icd.d/a.json", LIB "libvulkan_radeon.so");
    put_manifest(w, "/etc/vulkan/icd.d/z.json", LIB "libvulkan_radeon.so");
    put_manifest(w, "/etc/vulkan/icd.d/gone.json", "libgone.so");
    put_manifest(w, "/etc/vulkan/icd.d/lost.json", "liblost.so");
    put(w, "/etc/vulkan/icd.d/none.txt", "{}");
    put_manifest(w, "/etc/vulkan/icd.d/empty.json", "");
    examine(w);
    expect(w, "vulkan-drivers", DOCTOR_OK, "3 Vulkan drivers: z.json, a.json, radeon_icd.json", "");
    static const char *const broken[] = {
        "/etc/vulkan/icd.d/gone.json names a library that is not there: libgone.so",
        "/etc/vulkan/icd.d/lost.json names a library that is not there: liblost.so",
        "/etc/vulkan/icd.d/empty.json names no library"};
    size_t found = 0;
    for (uint32_t i = 0; i < w->findings.count; i++) {
        for (size_t k = 0; k < 3; k++) {
            found += strcmp(w->findings.items[i].sentence, broken[k]) == 0;
        }
    }
    assert_int_equal(found, 3);
    assert_true(w->findings.counts[DOCTOR_WARNING] >= 2);
    assert_int_equal(w->findings.counts[DOCTOR_ERROR], 0);
    // Where the listing failed, every driver that can be used is tried, or those that are named.
    strcpy(w->list.reports[GRT_BACKEND_VULKAN].problem, "it hung while listing its devices");
    examine(w);
    expect(w, "vulkan-driver-failed", DOCTOR_ERROR, "Vulkan: it hung while listing its devices",
           "find the culprit, one driver at a time: for f in /etc/vulkan/icd.d/z.json "
           "/usr/share/vulkan/icd.d/a.json " MANIFEST
           "; do VK_ICD_FILENAMES=$f gpurt devices; done");
    strcpy(w->list.reports[GRT_BACKEND_VULKAN].problem,
           "left out /v/z.json: x; /v/a.json: y while listing its devices");
    examine(w);
    expect(w, "vulkan-driver-failed", DOCTOR_ERROR,
           "Vulkan: left out /v/z.json: x; /v/a.json: y while listing its devices",
           "reinstall the package it belongs to (dpkg -S /etc/vulkan/icd.d/z.json "
           "/usr/share/vulkan/icd.d/a.json tells which), or remove it");
    // The end of another name is no name: za.json is not a.json.
    strcpy(w->list.reports[GRT_BACKEND_VULKAN].problem,
           "left out /v/za.json: x while listing its devices");
    examine(w);
    assert_non_null(strstr(find(w, "vulkan-driver-failed", false)->remedy, "find the culprit"));
}

// No more drivers than there is room for, and the first of them.
static void test_most_drivers(struct world *w) {
    take(w, MANIFEST);
    for (int i = 0; i < DOCTOR_MAX_DRIVERS + 3; i++) {
        char path[64];
        snprintf(path, sizeof path, "/etc/vulkan/icd.d/%02d.json", i);
        put_manifest(w, path, LIB "libvulkan_radeon.so");
    }
    examine(w);
    const struct doctor_api *api = &w->facts.apis[GRT_BACKEND_VULKAN];
    assert_int_equal(api->driver_count, DOCTOR_MAX_DRIVERS);
    assert_string_equal(api->drivers[DOCTOR_MAX_DRIVERS - 1].file, "/etc/vulkan/icd.d/31.json");
    assert_non_null(
        strstr(find(w, "vulkan-drivers", true)->sentence, "32 Vulkan drivers: 00.json"));
}

// What a variable names stands before the folders' order; all that it names is looked at.
static void test_variables(struct world *w) {
    put_manifest(w, "/one.json", LIB "libvulkan_radeon.so");
    put_manifest(w, "/two.json", LIB "libvulkan_radeon.so");
    w->source.env.driver_files = "/one.json:/nowhere.json:/two.json";
    w->source.env.add_driver_files = "/gone.json";
    examine(w);
    expect(w, "vulkan-drivers", DOCTOR_OK, "2 Vulkan drivers: one.json, two.json", "");
    const struct doctor_api *api = &w->facts.apis[GRT_BACKEND_VULKAN];
    assert_int_equal(api->driver_count, 4);
    assert_string_equal(api->drivers[0].variable, "VK_ADD_DRIVER_FILES");
    assert_string_equal(api->drivers[3].variable, "VK_DRIVER_FILES");
    size_t named = 0;
    for (uint32_t i = 0; i < w->findings.count; i++) {
        named += strcmp(w->findings.items[i].id, "vulkan-named-driver") == 0;
    }
    assert_int_equal(named, 2);
    // Added ones stand beside the folders.
    w->source.env.driver_files = NULL;
    w->source.env.add_driver_files = "/two.json";
    examine(w);
    expect(w, "vulkan-drivers", DOCTOR_OK, "2 Vulkan drivers: two.json, radeon_icd.json", "");
    // All that was named is broken: that is the problem, not that there is none.
    w->source.env.add_driver_files = NULL;
    w->source.env.icd_filenames = "/nowhere.json";
    examine(w);
    assert_string_equal(find(w, "vulkan-drivers", false)->sentence, "(no such finding)");
}

// ---- GPUs ----

static void put_second(const struct world *w, const char *vendor, const char *class,
                       const char *driver) {
    unlink(under(w, "/sys/bus/pci/devices/0000:0A:00.0/driver"));
    put(w, "/sys/bus/pci/devices/0000:0A:00.0/class", class);
    put(w, "/sys/bus/pci/devices/0000:0A:00.0/vendor", vendor);
    if (driver) {
        put_link(w, "/sys/bus/pci/devices/0000:0A:00.0/driver", driver);
    }
}

// Which devices of the bus are GPUs for us, and by which node they are opened.
static void test_kinds_of_gpus(struct world *w) {
    static const struct {
        const char *vendor, *class, *driver, *drm;
        const char *node;  // NULL: it is none
    } rows[] = {
        {"0x8086", "0x030000\n", "i915", "renderD129", "/dev/dri/renderD129"},
        {"0x8086", "0x038000", "xe", NULL, "/dev/dri/renderD128"},
        {"0x8086", "0x120000", "intel_vpu", NULL, NULL},
        {"0x1002", "0x120000", "amdgpu", "renderD131", "/dev/dri/renderD131"},
        {"0x1002", "0x040300", "snd", NULL, NULL},
        {"0x10de", "0x030200", "nvidia", "renderD130", "/dev/nvidiactl"},
        {"0x10de", "0x030000", "nouveau", "renderD130", "/dev/dri/renderD130"},
        {"0x10de", "0x030000", NULL, NULL, ""},
        {"0x10de", "0x030000", "vfio-pci", NULL, NULL},
        {"0x1af4", "0x030000", "virtio", NULL, NULL},
        {"", "0x030000", "x", NULL, NULL},
    };
    put_gpu(w, "0x10de", "nouveau", NODE);
    examine(w);
    assert_string_equal(w->facts.gpus[0].node, NODE);
    assert_int_equal(w->facts.gpus[0].vendor, 0x10de);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[96] = "";
        put_second(w, rows[i].vendor, rows[i].class, rows[i].driver);
        if (rows[i].drm) {
            snprintf(path, sizeof path, "/sys/bus/pci/devices/0000:0A:00.0/drm/%s", rows[i].drm);
            put(w, path, "");
        }
        examine(w);
        assert_int_equal(w->facts.gpu_count, rows[i].node ? 2 : 1);
        if (rows[i].node) {
            assert_string_equal(w->facts.gpus[1].node, rows[i].node);
            assert_string_equal(w->facts.gpus[1].pci, "0000:0A:00.0");
            assert_string_equal(w->facts.gpus[1].kernel_driver,
                                rows[i].driver ? rows[i].driver : "");
        }
        if (path[0]) {
            take(w, path);
        }
    }
}

// A second card that nothing lists: by its own address, whatever letters that has.
static void test_second_gpu(struct world *w) {
    expect_none(w);
    put_second(w, "0x8086", "0x030000", "i915");
    put_node(w, "/dev/dri/renderD128", 0666);
    expect_only(w, "gpu-idle", DOCTOR_WARNING,
                "the Intel GPU 0000:0A:00.0 (kernel driver i915) is not used: no Vulkan or OpenCL "
                "driver lists it",
                "apt install mesa-vulkan-drivers for Vulkan, or intel-opencl-icd for OpenCL; if it "
                "is installed, a newer one");
    // Listed, in small letters.
    struct grt_dev_info before = w->devices[2];
    w->devices[2] = (struct grt_dev_info){.backend = GRT_BACKEND_VULKAN,
                                          .selector = "vulkan:1",
                                          .vendor = "Intel Corporation",
                                          .pci = "0000:0a:00.0"};
    examine(w);
    expect(w, "gpu-apis", DOCTOR_NOTE, "the Intel GPU 0000:0A:00.0 is used through Vulkan only",
           "for OpenCL too: apt install intel-opencl-icd");
    assert_string_equal(find(w, "gpu-idle", false)->sentence, "(no such finding)");
    // Without an address the maker's name tells; a CPU driver of it does not count.
    w->devices[2].pci[0] = '\0';
    w->devices[2].backend = GRT_BACKEND_OPENCL;
    examine(w);
    expect(w, "gpu-apis", DOCTOR_NOTE, "the Intel GPU 0000:0A:00.0 is used through OpenCL only",
           "for Vulkan too: apt install mesa-vulkan-drivers");
    w->devices[2].caps.software = 1;
    examine(w);
    assert_non_null(strstr(find(w, "gpu-idle", false)->sentence, "0000:0A:00.0"));
    w->devices[2] = before;
    put_second(w, "0x8086", "0x030000", NULL);
    expect_only(w, "gpu-idle", DOCTOR_WARNING, "the Intel GPU 0000:0A:00.0 has no kernel driver",
                "modprobe i915, or xe for the newest");
    put_second(w, "0x1002", "0x030000", NULL);
    strcpy(w->devices[1].pci, "0000:03:00.0");
    expect_only(w, "gpu-idle", DOCTOR_WARNING, "the AMD GPU 0000:0A:00.0 has no kernel driver",
                "apt install firmware-amd-graphics, then modprobe amdgpu");
    strcpy(w->devices[0].vendor, "nobody");
    w->devices[0].pci[0] = '\0';
    strcpy(w->devices[1].vendor, "nobody");
    w->devices[1].pci[0] = '\0';
    examine(w);
    assert_int_equal(w->facts.gpu_count, 2);
    size_t idle = 0;
    for (uint32_t i = 0; i < w->findings.count; i++) {
        idle += strcmp(w->findings.items[i].id, "gpu-idle") == 0;
    }
    assert_int_equal(idle, 2);
}

// Where NVIDIA's libraries were kept out of a container, another maker's GPU wants its package.
static void test_other_maker_in_container(struct world *w) {
    w->source.env.nvidia_devices = "all";
    put(w, "/.dockerenv", "");
    w->devices[0].caps.software = 1;
    w->devices[1].caps.software = 1;
    examine(w);
    assert_non_null(
        strstr(find(w, "gpu-unused", false)->remedy, "apt install mesa-vulkan-drivers"));
}

// ---- the system ----

static void test_words_of_the_system(struct world *w) {
    static const struct {
        const char *cgroup, *container;
    } groups[] = {{"0::/docker/1", "/proc/1/cgroup"}, {"1:x:/a\n2:y:/kubepods/b", "/proc/1/cgroup"},
                  {"/containerd", "/proc/1/cgroup"},  {"/libpod-7", "/proc/1/cgroup"},
                  {"/lxc/9", "/proc/1/cgroup"},       {"/system.slice", NULL}};
    static const struct {
        const char *release;
        bool wsl;
    } releases[] = {{"5.15-microsoft-standard-WSL2", true},
                    {"4.4.0-19041-Microsoft", true},
                    {"6.1.0-MICROSOFT", false},
                    {"6.1.0-28-amd64", false}};
    static const struct {
        const char *text, *version;
    } versions[] = {
        {"NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22", "550.54.14"},
        {"no number", ""},
        {"x86 9", "9"},
        {"", ""}};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        put(w, "/proc/1/cgroup", groups[i].cgroup);
        examine(w);
        assert_string_equal(w->facts.container ? w->facts.container : "none",
                            groups[i].container ? groups[i].container : "none");
    }
    for (size_t i = 0; i < sizeof releases / sizeof *releases; i++) {
        put(w, "/proc/sys/kernel/osrelease", releases[i].release);
        examine(w);
        assert_int_equal(w->facts.wsl, releases[i].wsl);
    }
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        put(w, "/proc/driver/nvidia/version", versions[i].text);
        examine(w);
        assert_string_equal(w->facts.nvidia_version, versions[i].version);
    }
    // In a container of WSL the engine passes the GPU on.
    put(w, "/proc/sys/kernel/osrelease", "5.15-microsoft-standard-WSL2");
    put(w, "/.dockerenv", "");
    examine(w);
    expect(w, "wsl-gpu", DOCTOR_WARNING, "WSL without /dev/dxg: Windows lends no GPU",
           "start the container with --device /dev/dxg -v /usr/lib/wsl:/usr/lib/wsl");
}

// Words of NVIDIA's variable are whole words.
static void test_capabilities(struct world *w) {
    static const struct {
        const char *capabilities, *devices;
        bool withheld;
    } rows[] = {{"graphics", "all", false},
                {"compute,,graphics", "all", false},
                {"graphics2,utility", "all", true},
                {"allx", "all", true},
                {"", "all", true},
                {"compute", "none", false},
                {"compute", "void", false},
                {"compute", NULL, false},
                {"compute", "voidx", true},
                {"compute,all", "0,1", false}};
    put(w, "/.dockerenv", "");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        w->source.env.nvidia_capabilities = rows[i].capabilities;
        w->source.env.nvidia_devices = rows[i].devices;
        examine(w);
        assert_int_equal(find(w, "container-graphics", false)->level == DOCTOR_WARNING,
                         rows[i].withheld);
    }
}

// The owner's own bits come before the group's, and those before the others'.
static void test_modes(struct world *w) {
    static const struct {
        mode_t mode;
        bool others, group, owner;  // whether each may open it
    } rows[] = {{0600, false, false, true},  {0060, false, true, false},
                {0006, true, false, false},  {0666, true, true, true},
                {0404, false, false, false}, {0440, false, false, false},
                {0226, true, false, false}};
    struct stat st;
    assert_int_equal(stat(under(w, NODE), &st), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put_node(w, NODE, rows[i].mode);
        for (int who = 0; who < 3; who++) {
            w->source.user =
                (struct doctor_user){.uid = USER_ID, .gids = {USER_ID}, .gid_count = 1};
            if (who == 1) {
                w->source.user.gids[w->source.user.gid_count++] = st.st_gid;
            } else if (who == 2) {
                w->source.user.uid = st.st_uid;
            }
            // Root, and who the kernel is asked for, may do more.
            if (w->source.user.uid == 0 || w->source.user.uid == geteuid()) {
                continue;
            }
            examine(w);
            bool may = who == 0 ? rows[i].others : who == 1 ? rows[i].group : rows[i].owner;
            assert_int_equal(doctor_facts_node(&w->facts, NODE)->denied, !may);
        }
    }
    assert_null(doctor_facts_node(&w->facts, "/dev/dri/renderD12"));
}

// Of a file with names of groups, the line of this number.
static void test_group_names(struct world *w) {
    struct stat st;
    char text[256];
    assert_int_equal(stat(under(w, NODE), &st), 0);
    snprintf(text, sizeof text, "odd\nother:x:%u:\nmine:x:%u:anna\nagain:x:%u:\n",
             (unsigned)st.st_gid + 1, (unsigned)st.st_gid, (unsigned)st.st_gid);
    put(w, "/etc/group", text);
    examine(w);
    assert_string_equal(w->facts.nodes[0].group, "mine");
}

// Files that include others, four deep; a name without a slash lies in /etc.
static void test_linker_folders(struct world *w) {
    take(w, LIB "libvulkan.so.1");
    put(w, "/deep/libvulkan.so.1", "");
    for (int depth = 1; depth <= 5; depth++) {
        char path[64], text[64];
        snprintf(path, sizeof path, "/etc/%d.conf", depth);
        snprintf(text, sizeof text, "include %d.conf\n", depth + 1);
        put(w, path, depth < 5 ? text : "/deep\n");
    }
    w->list.reports[GRT_BACKEND_VULKAN].device_count = 0;
    put(w, "/etc/ld.so.conf", "include /etc/2.conf\n");  // 2, 3, 4: not 5
    examine(w);
    assert_string_equal(find(w, "vulkan-loader", true)->sentence, "(no such finding)");
    put(w, "/etc/ld.so.conf", "include /etc/3.conf\n");
    examine(w);
    expect(w, "vulkan-loader", DOCTOR_OK, "Vulkan loader /deep/libvulkan.so.1", "");
    put(w, "/etc/ld.so.conf", "# include /etc/3.conf\nrelative\n");
    examine(w);
    assert_string_equal(find(w, "vulkan-loader", true)->sentence, "(no such finding)");
    static const char *const places[] = {"/lib64",   "/usr/lib64",     "/lib",
                                         "/usr/lib", "/usr/local/lib", "/run/opengl-driver/lib"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char path[64], sentence[96];
        snprintf(path, sizeof path, "%s/libvulkan.so.1", places[i]);
        snprintf(sentence, sizeof sentence, "Vulkan loader %s", path);
        put(w, path, "");
        examine(w);
        expect(w, "vulkan-loader", DOCTOR_OK, sentence, "");
        take(w, path);
    }
}

static void test_files(struct world *w) {
    char text[8], full[DOCTOR_PATH], name[DOCTOR_PATH + 8] = "/";
    put(w, "/a", "word\t \r\n");
    assert_true(doctor_read_text(w->root, "/a", text, sizeof text));
    assert_string_equal(text, "word");
    put(w, "/a", "123456789");
    assert_true(doctor_read_text(w->root, "/a", text, sizeof text));
    assert_string_equal(text, "1234567");
    put(w, "/a", " \n");
    assert_false(doctor_read_text(w->root, "/a", text, sizeof text));
    assert_false(doctor_read_text(w->root, "/nowhere", text, sizeof text));
    assert_string_equal(text, "");
    put(w, "/a", "xxOCLxx");
    assert_true(doctor_contains(w->root, "/a", "OCL"));
    assert_true(doctor_contains(w->root, "/a", "xxOCLxx"));
    assert_false(doctor_contains(w->root, "/a", "xxOCLxxx"));
    assert_false(doctor_contains(w->root, "/nowhere", "x"));
    assert_true(doctor_exists(w->root, "/a") && !doctor_is_folder(w->root, "/a"));
    assert_true(doctor_is_folder(w->root, "/etc") && !doctor_is_folder(w->root, "/nowhere"));
    memset(name + 1, 'x', DOCTOR_PATH);
    doctor_full_path(full, "", name);
    assert_string_equal(full, "");  // nothing, where half a name might be another file
    name[DOCTOR_PATH - 1] = '\0';
    doctor_full_path(full, "", name);
    assert_int_equal(strlen(full), DOCTOR_PATH - 1);
    doctor_full_path(full, "/root", "relative");
    assert_string_equal(full, "relative");
}

// ---- what is printed ----

static int doctor(char *const *words) {
    char *argv[8] = {"doctor"};
    int argc = 1;
    for (; words[argc - 1]; argc++) {
        argv[argc] = words[argc - 1];
    }
    argv[argc] = NULL;
    catch_begin();
    int code = cmd_doctor(argc, argv);
    catch_end();
    talk_set_level(-1);
    grt_log_set(drop_line, NULL, GRT_LOG_ERROR);
    return code;
}
#define DOCTOR(...) doctor((char *const[]){__VA_ARGS__, NULL})

static void has(const char *word) {
    if (!strstr(caught, word)) {
        fail_msg("no '%s' in: %s", word, caught);
    }
}

static void test_command(struct world *w) {
    setenv("XDG_CACHE_HOME", "/people/anna", 1);
    unsetenv("GPURT_DEVICE");
    unsetenv("VK_ICD_FILENAMES");
    unsetenv("OCL_ICD_VENDORS");
    unsetenv("LD_LIBRARY_PATH");
    assert_int_equal(DOCTOR("--root", w->root), COMMAND_OK);
    has("Vulkan\n  ok       Vulkan loader " LIB "libvulkan.so.1\n  ok       1 Vulkan driver: "
        "radeon_icd.json\n\nOpenCL\n");
    has("\ndevices\n  not listed\n\n");
    assert_null(strstr(caught, "error"));
    // Two that lack the same have one remedy, which stands behind the second.
    put_manifest(w, "/etc/vulkan/icd.d/gone.json", "libgone.so");
    put_second(w, "0x8086", "0x030000", "i915");
    take(w, NODE);
    assert_int_equal(DOCTOR("--root", w->root), COMMAND_NO_DEVICE);
    has("  error    /dev/dri/renderD128 is missing, although the kernel driver amdgpu has the AMD "
        "GPU 0000:03:00.0\n  error    /dev/dri/renderD128 is missing, although the kernel driver "
        "i915 has the Intel GPU 0000:0A:00.0\n           -> sudo udevadm trigger; if that makes "
        "none, dmesg tells why\n");
    has("\n2 errors, 1 warning");
    // Two that lack different things have each its own.
    put_second(w, "0x10de", "0x030000", "nvidia");
    assert_int_equal(DOCTOR("--root", w->root), COMMAND_NO_DEVICE);
    has("           -> sudo udevadm trigger; if that makes none, dmesg tells why\n");
    has("           -> sudo nvidia-modprobe -c 0 -u\n");
    put_second(w, "0x8086", "0x030000", "i915");
    assert_int_equal(DOCTOR("--root", w->root, "--format", "csv"), COMMAND_NO_DEVICE);
    has("group,level,id,sentence,remedy\n");
    has("Vulkan,ok,vulkan-drivers,1 Vulkan driver: radeon_icd.json,\n");
    has("GPUs,error,node-missing,");
    assert_int_equal(DOCTOR("--root", w->root, "--format", "json"), COMMAND_NO_DEVICE);
    has("\"schema\": \"gpurt.doctor/1\"");
    has("\"devices\": []");
    char nowhere[128];
    snprintf(nowhere, sizeof nowhere, "%s/nowhere", w->root);
    assert_int_equal(DOCTOR("--root", nowhere), COMMAND_NO_INPUT);
    has(": No such file or directory\n");
    snprintf(nowhere, sizeof nowhere, "%s/etc/OpenCL/vendors/rusticl.icd", w->root);
    assert_int_equal(DOCTOR("--root", nowhere), COMMAND_NO_INPUT);
    has(": Not a directory\n");
    assert_int_equal(DOCTOR("--root", w->root, "-o", "/nowhere/x"), COMMAND_CANNOT_CREATE);
    assert_int_equal(DOCTOR("word"), COMMAND_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WORLD_TEST(several_drivers),
        WORLD_TEST(most_drivers),
        WORLD_TEST(variables),
        WORLD_TEST(kinds_of_gpus),
        WORLD_TEST(second_gpu),
        WORLD_TEST(modes),
        WORLD_TEST(capabilities),
        WORLD_TEST(words_of_the_system),
        WORLD_TEST(group_names),
        WORLD_TEST(linker_folders),
        WORLD_TEST(files),
        WORLD_TEST(command),
        WORLD_TEST(other_maker_in_container),
    };
    grt_log_set(drop_line, NULL, GRT_LOG_ERROR);
    talk_set_level(-1);
    grt_log_set(drop_line, NULL, GRT_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
