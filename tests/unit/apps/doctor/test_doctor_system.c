// SPDX-License-Identifier: Apache-2.0
// gpurt doctor: NVIDIA's driver, device nodes, containers, WSL and gpurt itself. Each test begins
// with the healthy system of doctor_world.h, breaks one thing in it and expects exactly the
// findings that follow.
#include "doctor_world.h"

#include "doctor/doctor_files.h"

// ---- NVIDIA ----

static void test_nvidia_file(struct world *w) {
    put(w, LIB "libEGL_nvidia.so.0", "");
    put(w, LIB "libnvidia-opencl.so.1", "");
    strcpy(w->list.reports[GRT_BACKEND_OPENCL].note, "made one in /tmp");
    examine(w);
    expect(w, "vulkan-nvidia-file", DOCTOR_NOTE,
           "NVIDIA's " LIB "libEGL_nvidia.so.0 has no Vulkan manifest; gpurt makes its own when no "
           "other GPU is listed",
           "for other programs too: apt install nvidia-vulkan-icd");
    expect(w, "opencl-nvidia-file", DOCTOR_NOTE,
           "NVIDIA's " LIB "libnvidia-opencl.so.1 has no OpenCL vendor file; made one in /tmp",
           "for other programs too: apt install nvidia-opencl-icd");
    expect_no_more(w);
    put_manifest(w, "/etc/vulkan/icd.d/nvidia_icd.json", "libEGL_nvidia.so.0");
    put(w, "/etc/OpenCL/vendors/nvidia.icd", "libnvidia-opencl.so.1");
    expect_none(w);
    w->source.env.icd_filenames = MANIFEST;
    expect_only(w, "vulkan-nvidia-file", DOCTOR_NOTE,
                "NVIDIA's " LIB "libEGL_nvidia.so.0 has no Vulkan manifest; as VK_ICD_FILENAMES is "
                "set, gpurt makes none",
                "unset VK_ICD_FILENAMES, or add it there");
}

// A manifest of another version's library tells the loader nothing either.
static void test_nvidia_file_broken(struct world *w) {
    put(w, LIB "libEGL_nvidia.so.0", "");
    put_manifest(w, "/etc/vulkan/icd.d/old.json", "libnvidia-gone.so.0");
    examine(w);
    expect(w, "vulkan-broken-driver", DOCTOR_WARNING,
           "/etc/vulkan/icd.d/old.json names a library that is not there: libnvidia-gone.so.0",
           "reinstall the package it belongs to (dpkg -S /etc/vulkan/icd.d/old.json tells which), "
           "or remove it");
    expect(w, "vulkan-nvidia-file", DOCTOR_NOTE,
           "NVIDIA's " LIB "libEGL_nvidia.so.0 has no Vulkan manifest; gpurt makes its own when no "
           "other GPU is listed",
           "for other programs too: apt install nvidia-vulkan-icd");
    expect_no_more(w);
}

static void test_nvidia_library(struct world *w) {
    put(w, "/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n");
    examine(w);
    expect(w, "vulkan-nvidia-library", DOCTOR_WARNING,
           "NVIDIA's kernel driver 580.159.04 is loaded, but its Vulkan library is not here",
           "apt install nvidia-vulkan-icd");
    expect(w, "opencl-nvidia-library", DOCTOR_WARNING,
           "NVIDIA's kernel driver 580.159.04 is loaded, but its OpenCL library is not here",
           "apt install nvidia-opencl-icd");
    expect_no_more(w);
    put(w, "/.dockerenv", "");
    examine(w);
    expect(w, "opencl-nvidia-library", DOCTOR_WARNING,
           "NVIDIA's kernel driver 580.159.04 is loaded, but its OpenCL library is not here",
           CONTAINER_REMEDY);
}

// ---- device nodes ----

static gid_t node_group(const struct world *w) {
    struct stat st;
    assert_int_equal(stat(under(w, NODE), &st), 0);
    return st.st_gid;
}

// Gives the node a group that is neither root's nor, to our knowledge, anybody's; only root can.
static bool regroup(const struct world *w, gid_t gid) {
    return chown(under(w, NODE), (uid_t)-1, gid) == 0;
}

static void test_node_denied(struct world *w) {
    char sentence[128];
    char remedy[128];
    w->devices[0].caps.software = 1;  // what denied nodes lead to must not be explained twice
    w->devices[1].caps.software = 1;
    put_node(w, NODE, 0600);
    snprintf(sentence, sizeof sentence, "no permission to open " NODE " (group without a name, %u)",
             (unsigned)node_group(w));
    examine(w);
    expect(w, "node-denied", DOCTOR_ERROR, sentence,
           "sudo chgrp render " NODE " && sudo chmod 660 " NODE);
    assert_string_equal(find(w, "gpu-unused", false)->sentence, "(no such finding)");
    put_node(w, NODE, 0660);
    if (!regroup(w, 105) && node_group(w) == 0) {
        return;
    }
    gid_t gid = node_group(w);
    snprintf(sentence, sizeof sentence, "no permission to open " NODE " (group without a name, %u)",
             (unsigned)gid);
    snprintf(remedy, sizeof remedy,
             "sudo groupadd -g %u render && sudo usermod -aG render $USER, then log in again",
             (unsigned)gid);
    examine(w);
    expect(w, "node-denied", DOCTOR_ERROR, sentence, remedy);

    char groups[128];
    snprintf(groups, sizeof groups, "root:x:0:\nrender:x:%u:anna\n", (unsigned)gid);
    put(w, "/etc/group", groups);
    snprintf(sentence, sizeof sentence, "no permission to open " NODE " (group render, %u)",
             (unsigned)gid);
    examine(w);
    expect(w, "node-denied", DOCTOR_ERROR, sentence,
           "sudo usermod -aG render $USER, then log in again");
    put(w, "/run/.containerenv", "");
    snprintf(remedy, sizeof remedy, "start the container with --group-add %u", (unsigned)gid);
    examine(w);
    expect(w, "node-denied", DOCTOR_ERROR, sentence, remedy);
}

static void test_node_allowed(struct world *w) {
    struct stat st;
    put_node(w, NODE, 0060);
    w->source.user.gids[0] = node_group(w);
    expect_none(w);
    put_node(w, NODE, 0600);
    assert_int_equal(stat(under(w, NODE), &st), 0);
    w->source.user.uid = st.st_uid;
    expect_none(w);
    put_node(w, NODE, 0);
    w->source.user.uid = 0;
    expect_none(w);
}

// All that one group keeps closed is one finding.
static void test_node_list(struct world *w) {
    static const char *const nodes[] = {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"};
    char sentence[160];
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        put_node(w, nodes[i], 0600);
    }
    put_node(w, "/dev/nvidia-caps", 0600);  // root's alone everywhere
    snprintf(sentence, sizeof sentence,
             "no permission to open /dev/nvidia0 /dev/nvidiactl /dev/nvidia-uvm (group without a "
             "name, %u)",
             (unsigned)node_group(w));
    expect_only(w, "node-denied", DOCTOR_ERROR, sentence,
                "sudo chgrp render /dev/nvidia0 /dev/nvidiactl /dev/nvidia-uvm && sudo chmod 660 "
                "/dev/nvidia0 /dev/nvidiactl /dev/nvidia-uvm");
    expect(w, "node-denied", DOCTOR_OK, NODE " can be opened", "");
}

// Nodes of several groups, of which some may not open theirs: a finding and a remedy for each kind.
static void test_node_groups(struct world *w) {
    examine(w);
    const struct doctor_node nodes[] = {
        {"/dev/a", "render", 105, true, true},  {"/dev/b", "video", 106, true, true},
        {"/dev/c", "render", 105, true, true},  {"/dev/d", "render", 105, false, true},
        {"/dev/e", "render", 105, true, false}, {"/dev/f", "", 107, true, true},
        {"/dev/g", "render", 105, true, false},
    };
    static const char *const wanted[][2] = {
        {"no permission to open /dev/a /dev/c (group render, 105)",
         "sudo usermod -aG render $USER, then log in again"},
        {"no permission to open /dev/b (group video, 106)",
         "sudo usermod -aG video $USER, then log in again"},
        {"no permission to open /dev/d (group render, 105)",
         "sudo chgrp render /dev/d && sudo chmod 660 /dev/d"},
        {"no permission to open /dev/f (group without a name, 107)",
         "sudo groupadd -g 107 render && sudo usermod -aG render $USER, then log in again"},
        {"/dev/e, /dev/g can be opened", ""},
    };
    w->facts.node_count = sizeof nodes / sizeof *nodes;
    memcpy(w->facts.nodes, nodes, sizeof nodes);
    doctor_findings_make(&w->findings, &w->facts);
    size_t found = 0;
    for (uint32_t i = 0; i < w->findings.count; i++) {
        const struct doctor_finding *finding = &w->findings.items[i];
        if (strcmp(finding->id, "node-denied") == 0) {
            assert_true(found < sizeof wanted / sizeof *wanted);
            assert_string_equal(finding->sentence, wanted[found][0]);
            assert_string_equal(finding->remedy, wanted[found][1]);
            found++;
        }
    }
    assert_int_equal(found, sizeof wanted / sizeof *wanted);
}

static void test_node_missing(struct world *w) {
    take(w, NODE);
    put_node(w, "/dev/dri/renderD129", 0666);  // another GPU's
    expect_only(w, "node-missing", DOCTOR_ERROR,
                NODE " is missing, although the kernel driver amdgpu has the AMD GPU 0000:03:00.0",
                "sudo udevadm trigger; if that makes none, dmesg tells why");
    put_gpu(w, "0x10de", "nvidia", NULL);
    examine(w);
    expect(w, "node-missing", DOCTOR_ERROR,
           "/dev/nvidiactl is missing, although the kernel driver nvidia has the NVIDIA GPU "
           "0000:03:00.0",
           "sudo nvidia-modprobe -c 0 -u");
    assert_string_equal(find(w, "gpu-unused", false)->sentence, "(no such finding)");
}

// ---- containers ----

static void test_container_signs(struct world *w) {
    static const struct {
        const char *path, *text, *sentence;
    } signs[] = {
        {"/proc/1/cgroup", "12:cpu:/kubepods/pod1\n", "in a container (/proc/1/cgroup)"},
        {"/run/.containerenv", "", "in a container (/run/.containerenv)"},
        {"/.dockerenv", "", "in a container (/.dockerenv)"},
    };
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        put(w, signs[i].path, signs[i].text);
        expect_none(w);
        expect(w, "container-graphics", DOCTOR_OK, signs[i].sentence, "");
    }
}

static void test_container_graphics(struct world *w) {
    static const char without[] =
        "this container was given NVIDIA devices without the graphics capability "
        "(NVIDIA_DRIVER_CAPABILITIES is compute,utility): there is no Vulkan on them";
    static const char unset[] =
        "this container was given NVIDIA devices without the graphics capability "
        "(NVIDIA_DRIVER_CAPABILITIES is unset): there is no Vulkan on them";
    w->source.env.nvidia_devices = "all";
    w->source.env.nvidia_capabilities = "compute,utility";
    expect_none(w);  // outside of a container the variables mean nothing
    put(w, "/.dockerenv", "");
    expect_only(w, "container-graphics", DOCTOR_WARNING, without, CONTAINER_REMEDY);
    w->source.env.nvidia_capabilities = NULL;
    expect_only(w, "container-graphics", DOCTOR_WARNING, unset, CONTAINER_REMEDY);
    w->source.env.nvidia_capabilities = "compute,graphics";
    expect_none(w);
    w->source.env.nvidia_capabilities = "all";
    expect_none(w);
    w->source.env.nvidia_capabilities = "compute";
    w->source.env.nvidia_devices = "void";
    expect_none(w);
    // Some engines mount every library whatever was asked for.
    w->source.env.nvidia_devices = "0";
    put_manifest(w, "/etc/vulkan/icd.d/nvidia_icd.json", "libEGL_nvidia.so.0");
    put(w, LIB "libEGL_nvidia.so.0", "");
    expect_none(w);
}

// The container's start is then the remedy for the unused GPU too, not a package.
static void test_container_gpu_unused(struct world *w) {
    put_gpu(w, "0x10de", "nvidia", "/dev/nvidiactl");
    put(w, "/.dockerenv", "");
    put(w, "/proc/driver/nvidia/version", "NVRM version: 580.1");
    put(w, LIB "libnvidia-opencl.so.1", "");
    put(w, "/etc/OpenCL/vendors/nvidia.icd", "libnvidia-opencl.so.1");
    w->source.env.nvidia_devices = "all";
    examine(w);
    expect(w, "gpu-unused", DOCTOR_ERROR,
           "the NVIDIA GPU 0000:03:00.0 (kernel driver nvidia) is not used: no Vulkan or OpenCL "
           "driver lists it",
           CONTAINER_REMEDY);
    assert_string_equal(find(w, "vulkan-nvidia-library", false)->sentence, "(no such finding)");
}

static void test_container_nodes(struct world *w) {
    put(w, "/.dockerenv", "");
    take(w, NODE);
    expect_only(w, "container-nodes", DOCTOR_WARNING,
                "this container was not given " NODE ", the AMD GPU 0000:03:00.0",
                "start the container with --device /dev/dri --group-add "
                "$(stat -c %g /dev/dri/renderD128)");
    put_gpu(w, "0x10de", "nvidia", NULL);
    examine(w);
    expect(w, "container-nodes", DOCTOR_WARNING,
           "this container was not given /dev/nvidiactl, the NVIDIA GPU 0000:03:00.0",
           CONTAINER_REMEDY);
}

// ---- WSL ----

static void test_wsl(struct world *w) {
    put(w, "/proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n");
    expect_only(w, "wsl-gpu", DOCTOR_WARNING, "WSL without /dev/dxg: Windows lends no GPU",
                "in Windows: install the maker's newest GPU driver, wsl --update, wsl --shutdown; "
                "WSL1 has no GPU");
    put_node(w, "/dev/dxg", 0666);
    expect_none(w);
    expect(w, "wsl-gpu", DOCTOR_OK, "WSL2 with /dev/dxg", "");
    take(w, GPU_FOLDER "/class");  // WSL shows no PCI device of the GPU
    w->devices[0].caps.software = 1;
    w->devices[1].caps.software = 1;
    examine(w);
    expect(w, "wsl-vulkan", DOCTOR_WARNING,
           "WSL2 reaches the GPU through Mesa's dzn driver (Vulkan on Direct3D 12), which is not "
           "installed",
           "apt install mesa-vulkan-drivers; where it has no dzn_icd.*.json, build Mesa with "
           "-Dvulkan-drivers=microsoft-experimental");
    expect(w, "wsl-opencl", DOCTOR_NOTE, "no native OpenCL on this GPU under WSL2",
           "use Vulkan; on Intel GPUs, apt install intel-opencl-icd gives OpenCL");
    put(w, LIB "libvulkan_dzn.so", "");
    put_manifest(w, "/etc/vulkan/icd.d/dzn_icd.json", "libvulkan_dzn.so");
    examine(w);
    assert_string_equal(find(w, "wsl-vulkan", false)->sentence, "(no such finding)");
}

// ---- gpurt itself ----

static void test_coopmat(struct world *w) {
    w->source.coopmat = false;
    expect_only(w, "coopmat", DOCTOR_NOTE,
                "built without cooperative-matrix kernels, as its glslang did not know them: "
                "Vulkan leaves the matrix units of GPUs idle",
                "build a newer glslang with ci/glslang.sh, then build gpurt again");
}

static void test_cache(struct world *w) {
    static const char remedy[] = "set XDG_CACHE_HOME to a folder that can be written";
    w->source.env.home = "/people/anna/.profile";  // a file: not even root can write below it
    expect_only(w, "cache", DOCTOR_WARNING,
                "no cache: /people/anna/.profile/.cache/gpurt cannot be written (Not a directory); "
                "kernels are compiled anew at each start, which costs time only",
                remedy);
    w->source.env.home = NULL;
    expect_only(w, "cache", DOCTOR_WARNING,
                "no cache: neither XDG_CACHE_HOME nor HOME names a folder; kernels are compiled "
                "anew at each start, which costs time only",
                remedy);
    w->source.env.cache_home = "/people/anna";
    expect_none(w);
    expect(w, "cache", DOCTOR_OK, "cache /people/anna/gpurt", "");
    assert_int_equal(access(under(w, "/people/anna/gpurt"), F_OK), -1);  // only tried
}

static void test_device_setting(struct world *w) {
    w->source.env.device = "opencl:0";
    expect_none(w);
    expect(w, "device-setting", DOCTOR_OK, "GPURT_DEVICE=opencl:0 is opencl:0", "");
    w->source.env.device = "GeForce";
    expect_only(w, "device-setting", DOCTOR_ERROR,
                "GPURT_DEVICE is 'GeForce', which is no device here",
                "unset it, or set it to one of: vulkan:0, opencl:0, ref:0");
}

// Parts of a list of folders; one that is too long for its place is passed over.
static void parts_of_a_list(void **state) {
    (void)state;
    char list[2 * DOCTOR_PATH + 32] = "/a::", part[DOCTOR_PATH + 1] = "";
    for (int more = 0; more < 2; more++) {
        char *end = list + strlen(list);
        memset(end, 'x', (size_t)(DOCTOR_PATH - 1 + more));
        memcpy(end + DOCTOR_PATH - 1 + more, more ? ":/b" : ":", more ? 4 : 2);
    }
    const char *at = list;
    part[DOCTOR_PATH] = '!';
    assert_true(doctor_next_part(&at, part));
    assert_string_equal(part, "/a");
    assert_true(doctor_next_part(&at, part));
    assert_int_equal(strlen(part), DOCTOR_PATH - 1);
    assert_true(doctor_next_part(&at, part));
    assert_string_equal(part, "/b");
    assert_false(doctor_next_part(&at, part));
    assert_int_equal(part[DOCTOR_PATH], '!');
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WORLD_TEST(nvidia_file),
        WORLD_TEST(nvidia_file_broken),
        WORLD_TEST(nvidia_library),
        WORLD_TEST(node_denied),
        WORLD_TEST(node_allowed),
        WORLD_TEST(node_list),
        WORLD_TEST(node_groups),
        WORLD_TEST(node_missing),
        WORLD_TEST(container_signs),
        WORLD_TEST(container_graphics),
        WORLD_TEST(container_gpu_unused),
        WORLD_TEST(container_nodes),
        WORLD_TEST(wsl),
        WORLD_TEST(coopmat),
        WORLD_TEST(cache),
        WORLD_TEST(device_setting),
        cmocka_unit_test(parts_of_a_list),
    };
    grt_log_set(drop_line, NULL, GRT_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
