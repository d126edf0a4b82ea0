// SPDX-License-Identifier: Apache-2.0
// Findings about GPUs on the bus, their device nodes, containers and WSL. A GPU that no API lists
// is explained once, by the first of: no node (in a container: not passed in), no permission, no
// kernel driver, no driver package.
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "doctor_findings.h"

// Who makes a GPU, and the Debian packages that drive it. The first row that fits counts.
struct maker {
    uint32_t vendor;
    const char *kernel_driver;  // NULL: any
    const char *name;
    const char *words[2];  // in the vendor text of a device
    const char *kernel;    // what gives a kernel driver
    const char *packages[DOCTOR_API_COUNT];
};

static const struct maker makers[] = {
    {0x10de,
     "nouveau",
     "NVIDIA",
     {"NVIDIA"},
     "",
     {"mesa-vulkan-drivers (NVK, Mesa 24.1 or newer)",
      "nvidia-driver nvidia-opencl-icd (in place of nouveau)"}},
    {0x10de,
     NULL,
     "NVIDIA",
     {"NVIDIA"},
     "apt install nvidia-driver",
     {"nvidia-vulkan-icd", "nvidia-opencl-icd"}},
    {0x1002,
     NULL,
     "AMD",
     {"AMD", "Advanced Micro"},
     "apt install firmware-amd-graphics, then modprobe amdgpu",
     {"mesa-vulkan-drivers", "mesa-opencl-icd (rusticl; set RUSTICL_ENABLE=radeonsi)"}},
    {0x8086,
     NULL,
     "Intel",
     {"Intel"},
     "modprobe i915, or xe for the newest",
     {"mesa-vulkan-drivers", "intel-opencl-icd"}},
};

static const struct maker *maker_of(const struct doctor_gpu *gpu) {
    const struct maker *maker = makers;
    while (maker->vendor != gpu->vendor ||
           (maker->kernel_driver && strcmp(maker->kernel_driver, gpu->kernel_driver) != 0)) {
        maker++;  // ends: the facts hold GPUs of these makers only
    }
    return maker;
}

// ---- what the device list says ----

static bool is_gpu(const struct grt_dev_info *info, const struct doctor_gpu *gpu) {
    if (info->pci[0]) {
        return strcasecmp(info->pci, gpu->pci) == 0;
    }
    const struct maker *maker = maker_of(gpu);
    return strstr(info->vendor, maker->words[0]) ||
           (maker->words[1] && strstr(info->vendor, maker->words[1]));
}

// Whether an API lists a GPU: this one, or any when gpu is NULL.
static bool is_listed(const struct doctor_facts *facts, enum grt_backend_id api,
                      const struct doctor_gpu *gpu) {
    for (uint32_t i = 0; facts->list && i < facts->list->count; i++) {
        const struct grt_dev_info *info = &facts->list->devices[i];
        if (info->backend == api && !info->caps.software && (!gpu || is_gpu(info, gpu))) {
            return true;
        }
    }
    return false;
}

static bool any_listed(const struct doctor_facts *facts, const struct doctor_gpu *gpu) {
    return is_listed(facts, GRT_BACKEND_VULKAN, gpu) || is_listed(facts, GRT_BACKEND_OPENCL, gpu);
}

bool doctor_was_listed(const struct doctor_facts *facts) {
    return facts->list && facts->list->count > 0;
}

// ---- GPUs ----

static bool lacks_node(const struct doctor_facts *facts, const struct doctor_gpu *gpu) {
    return gpu->node[0] && !doctor_facts_node(facts, gpu->node);
}

static bool is_denied(const struct doctor_facts *facts, const struct doctor_gpu *gpu) {
    const struct doctor_node *node = doctor_facts_node(facts, gpu->node);
    return node && node->denied;
}

static void say_idle_gpus(const struct check *c) {
    const struct doctor_facts *facts = c->facts;
    for (uint32_t i = 0; doctor_was_listed(facts) && i < facts->gpu_count; i++) {
        const struct doctor_gpu *gpu = &facts->gpus[i];
        const struct maker *maker = maker_of(gpu);
        char remedy[384];
        if (any_listed(facts, gpu) || lacks_node(facts, gpu) || is_denied(facts, gpu)) {
            continue;
        }
        if (!gpu->kernel_driver[0]) {
            doctor_bad(c, maker->kernel, "the %s GPU %s has no kernel driver", maker->name,
                       gpu->pci);
            continue;
        }
        snprintf(remedy, sizeof remedy,
                 "apt install %s for Vulkan, or %s for OpenCL; if it is installed, a newer one",
                 maker->packages[GRT_BACKEND_VULKAN], maker->packages[GRT_BACKEND_OPENCL]);
        bool withheld = gpu->vendor == 0x10de && doctor_graphics_withheld(facts);
        doctor_bad(c, withheld ? DOCTOR_NVIDIA_CONTAINER : remedy,
                   "the %s GPU %s (kernel driver %s) is not used: no Vulkan or OpenCL driver lists "
                   "it",
                   maker->name, gpu->pci, gpu->kernel_driver);
    }
}

void doctor_find_gpu_unused(const struct check *c) {
    if (!any_listed(c->facts, NULL)) {
        say_idle_gpus(c);
    }
}

void doctor_find_gpu_idle(const struct check *c) {
    if (any_listed(c->facts, NULL)) {
        say_idle_gpus(c);
    }
}

// One API is enough to train; the other one is worth a line.
void doctor_find_gpu_apis(const struct check *c) {
    for (uint32_t i = 0; i < c->facts->gpu_count; i++) {
        const struct doctor_gpu *gpu = &c->facts->gpus[i];
        bool vulkan = is_listed(c->facts, GRT_BACKEND_VULKAN, gpu);
        bool opencl = is_listed(c->facts, GRT_BACKEND_OPENCL, gpu);
        const char *name = maker_of(gpu)->name;
        if (vulkan && opencl) {
            doctor_good(c, "%s GPU %s through Vulkan and OpenCL", name, gpu->pci);
        } else if (vulkan || opencl) {
            enum grt_backend_id lacking = vulkan ? GRT_BACKEND_OPENCL : GRT_BACKEND_VULKAN;
            char remedy[128];
            snprintf(remedy, sizeof remedy, "for %s too: apt install %s",
                     doctor_api_words[lacking].name, maker_of(gpu)->packages[lacking]);
            doctor_bad(c, remedy, "the %s GPU %s is used through %s only", name, gpu->pci,
                       doctor_api_words[vulkan ? GRT_BACKEND_VULKAN : GRT_BACKEND_OPENCL].name);
        }
    }
}

void doctor_find_software_only(const struct check *c) {
    char names[384] = "";
    if (!doctor_was_listed(c->facts) || any_listed(c->facts, NULL)) {
        return;
    }
    for (uint32_t i = 0; i < c->facts->list->count; i++) {
        doctor_append(names, sizeof names, ", ", c->facts->list->devices[i].selector);
    }
    doctor_bad(c,
               c->facts->gpu_count
                   ? "see what is said about the GPU here"
                   : "no GPU of AMD, Intel or NVIDIA is on the PCI bus: in a virtual "
                     "machine, pass one through",
               "only CPU drivers are there (%s): good for tests, far too slow for training", names);
}

// ---- nodes ----

// Nodes of one group have one remedy, so they are said together.
void doctor_find_node_denied(const struct check *c) {
    const struct doctor_facts *facts = c->facts;
    char allowed[256] = "";
    bool said[DOCTOR_MAX_NODES] = {false};
    for (uint32_t i = 0; i < facts->node_count; i++) {
        const struct doctor_node *node = &facts->nodes[i];
        if (!node->denied) {
            doctor_append(allowed, sizeof allowed, ", ", node->path);
        }
        if (!node->denied || said[i]) {
            continue;
        }
        char paths[256] = "";
        char remedy[512];
        for (uint32_t k = i; k < facts->node_count; k++) {
            const struct doctor_node *other = &facts->nodes[k];
            if (other->denied && other->gid == node->gid && other->group_may == node->group_may) {
                doctor_append(paths, sizeof paths, " ", other->path);
                said[k] = true;
            }
        }
        if (!node->group_may || node->gid == 0) {
            snprintf(remedy, sizeof remedy, "sudo chgrp render %s && sudo chmod 660 %s", paths,
                     paths);
        } else if (facts->container) {
            snprintf(remedy, sizeof remedy, "start the container with --group-add %u",
                     (unsigned)node->gid);
        } else if (node->group[0]) {
            snprintf(remedy, sizeof remedy, "sudo usermod -aG %s $USER, then log in again",
                     node->group);
        } else {
            snprintf(remedy, sizeof remedy,
                     "sudo groupadd -g %u render && sudo usermod -aG render $USER, then log in "
                     "again",
                     (unsigned)node->gid);
        }
        doctor_bad(c, remedy, "no permission to open %s (group %s, %u)", paths,
                   node->group[0] ? node->group : "without a name", (unsigned)node->gid);
    }
    if (allowed[0]) {
        doctor_good(c, "%s can be opened", allowed);
    }
}

void doctor_find_node_missing(const struct check *c) {
    for (uint32_t i = 0; i < c->facts->gpu_count; i++) {
        const struct doctor_gpu *gpu = &c->facts->gpus[i];
        if (!c->facts->container && lacks_node(c->facts, gpu)) {
            bool nvidia = strcmp(gpu->kernel_driver, "nvidia") == 0;
            doctor_bad(c,
                       nvidia ? "sudo nvidia-modprobe -c 0 -u"
                              : "sudo udevadm trigger; if that makes none, dmesg tells why",
                       "%s is missing, although the kernel driver %s has the %s GPU %s", gpu->node,
                       gpu->kernel_driver, maker_of(gpu)->name, gpu->pci);
        }
    }
}

// ---- containers ----

static bool has_word(const char *list, const char *word) {
    size_t length = strlen(word);
    for (; *list; list += strspn(list, ",")) {
        size_t part = strcspn(list, ",");
        if (part == length && strncmp(list, word, length) == 0) {
            return true;
        }
        list += part;
    }
    return false;
}

bool doctor_graphics_withheld(const struct doctor_facts *facts) {
    const char *devices = facts->env.nvidia_devices;
    const char *capabilities = facts->env.nvidia_capabilities;
    if (!facts->container || !devices || strcmp(devices, "void") == 0 ||
        strcmp(devices, "none") == 0 || facts->apis[GRT_BACKEND_VULKAN].nvidia[0]) {
        return false;
    }
    // Unset means "utility,compute" to NVIDIA's container toolkit.
    return !capabilities || (!has_word(capabilities, "graphics") && !has_word(capabilities, "all"));
}

void doctor_find_container_graphics(const struct check *c) {
    const char *capabilities = c->facts->env.nvidia_capabilities;
    if (doctor_graphics_withheld(c->facts)) {
        doctor_bad(c, DOCTOR_NVIDIA_CONTAINER,
                   "this container was given NVIDIA devices without the graphics capability "
                   "(NVIDIA_DRIVER_CAPABILITIES is %s): there is no Vulkan on them",
                   capabilities ? capabilities : "unset");
    } else if (c->facts->container) {
        doctor_good(c, "in a container (%s)", c->facts->container);
    }
}

void doctor_find_container_nodes(const struct check *c) {
    for (uint32_t i = 0; i < c->facts->gpu_count; i++) {
        const struct doctor_gpu *gpu = &c->facts->gpus[i];
        if (c->facts->container && lacks_node(c->facts, gpu)) {
            bool nvidia = strcmp(gpu->kernel_driver, "nvidia") == 0;
            doctor_bad(c,
                       nvidia ? DOCTOR_NVIDIA_CONTAINER
                              : "start the container with --device /dev/dri --group-add "
                                "$(stat -c %g /dev/dri/renderD128)",
                       "this container was not given %s, the %s GPU %s", gpu->node,
                       maker_of(gpu)->name, gpu->pci);
        }
    }
}

// ---- WSL ----

static bool has_dxg(const struct doctor_facts *facts) {
    return doctor_facts_node(facts, "/dev/dxg") != NULL;
}

void doctor_find_wsl_gpu(const struct check *c) {
    if (!c->facts->wsl) {
        return;
    }
    if (has_dxg(c->facts)) {
        doctor_good(c, "WSL2 with /dev/dxg");
        return;
    }
    doctor_bad(c,
               c->facts->container
                   ? "start the container with --device /dev/dxg -v /usr/lib/wsl:/usr/lib/wsl"
                   : "in Windows: install the maker's newest GPU driver, wsl --update, wsl "
                     "--shutdown; WSL1 has no GPU",
               "WSL without /dev/dxg: Windows lends no GPU");
}

void doctor_find_wsl_vulkan(const struct check *c) {
    const struct doctor_api *api = &c->facts->apis[GRT_BACKEND_VULKAN];
    bool dzn = is_listed(c->facts, GRT_BACKEND_VULKAN, NULL);
    for (uint32_t i = 0; i < api->driver_count; i++) {
        dzn = dzn || (api->drivers[i].state == DOCTOR_DRIVER_OK &&
                      strstr(api->drivers[i].library, "vulkan_dzn"));
    }
    if (c->facts->wsl && has_dxg(c->facts) && !dzn) {
        doctor_bad(
            c,
            "apt install mesa-vulkan-drivers; where it has no dzn_icd.*.json, build Mesa with "
            "-Dvulkan-drivers=microsoft-experimental",
            "WSL2 reaches the GPU through Mesa's dzn driver (Vulkan on Direct3D 12), which "
            "is not installed");
    }
}

void doctor_find_wsl_opencl(const struct check *c) {
    if (c->facts->wsl && has_dxg(c->facts) && !is_listed(c->facts, GRT_BACKEND_OPENCL, NULL)) {
        doctor_bad(c, "use Vulkan; on Intel GPUs, apt install intel-opencl-icd gives OpenCL",
                   "no native OpenCL on this GPU under WSL2");
    }
}
