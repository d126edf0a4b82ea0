// SPDX-License-Identifier: Apache-2.0
// The facts half of gpurt doctor: GPUs, device nodes, container, cache. Looks where the kernel and
// the container engines put things, and writes down what is there. Nothing is judged.
#include "doctor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache.h"
#include "doctor_files.h"

// What every step of the gathering works on.
struct gather {
    struct doctor_facts *facts;
    const struct doctor_source *source;
    const char *root;
};

// ---- GPUs and their nodes ----

// The last part of what a link points to, or "".
static void read_link_name(const char *root, const char *path, char *name, size_t capacity) {
    char full[DOCTOR_PATH];
    char target[DOCTOR_PATH];
    doctor_full_path(full, root, path);
    ssize_t length = readlink(full, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(target, '/');
    snprintf(name, capacity, "%.31s", slash ? slash + 1 : target);
}

// The node a GPU is opened by: the one its kernel driver lists, or the driver's usual one.
static void find_node(struct gather *g, struct doctor_gpu *gpu, const char *folder) {
    char pattern[DOCTOR_PATH + 32];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/drm/renderD*", folder);
    size_t count = doctor_matches(g->root, pattern, &found);
    if (strcmp(gpu->kernel_driver, "nvidia") == 0) {
        snprintf(gpu->node, sizeof gpu->node, "/dev/nvidiactl");
    } else if (gpu->kernel_driver[0]) {
        const char *name = count ? strrchr(found.gl_pathv[0], '/') + 1 : "renderD128";
        snprintf(gpu->node, sizeof gpu->node, "/dev/dri/%s", name);
    }
    globfree(&found);
}

// A GPU that we could use: display controllers, and AMD's accelerators (Intel's class 12 are NPUs),
// unless it is kept for a virtual machine.
static void gather_gpu(struct gather *g, const char *folder) {
    char path[DOCTOR_PATH + 16];
    char class_text[16];
    char vendor_text[16];
    snprintf(path, sizeof path, "%s/class", folder);
    bool readable = doctor_read_text(g->root, path, class_text, sizeof class_text);
    snprintf(path, sizeof path, "%s/vendor", folder);
    readable = readable && doctor_read_text(g->root, path, vendor_text, sizeof vendor_text);
    if (!readable || g->facts->gpu_count == DOCTOR_MAX_GPUS) {
        return;
    }
    unsigned long class = strtoul(class_text, NULL, 16) >> 16;
    unsigned long vendor = strtoul(vendor_text, NULL, 16);
    bool ours = vendor == 0x10de || vendor == 0x1002 || vendor == 0x8086;
    if (!ours || !(class == 0x03 || (class == 0x12 && vendor != 0x8086))) {
        return;
    }
    struct doctor_gpu *gpu = &g->facts->gpus[g->facts->gpu_count];
    snprintf(gpu->pci, sizeof gpu->pci, "%.15s", strrchr(folder, '/') + 1);
    gpu->vendor = (uint32_t)vendor;
    snprintf(path, sizeof path, "%s/driver", folder);
    read_link_name(g->root, path, gpu->kernel_driver, sizeof gpu->kernel_driver);
    if (strcmp(gpu->kernel_driver, "vfio-pci") != 0) {
        find_node(g, gpu, folder);
        g->facts->gpu_count++;
    }
}

static void gather_gpus(struct gather *g) {
    glob_t found;
    size_t count = doctor_matches(g->root, "/sys/bus/pci/devices/*", &found);
    for (size_t i = 0; i < count; i++) {
        gather_gpu(g, doctor_match(g->root, &found, i));
    }
    globfree(&found);
}

static void find_group_name(const char *root, struct doctor_node *node) {
    char line[DOCTOR_PATH];
    doctor_full_path(line, root, "/etc/group");
    FILE *file = fopen(line, "r");
    while (file && !node->group[0] && fgets(line, sizeof line, file)) {
        char *rest = NULL;  // name:password:number:members
        const char *name = strtok_r(line, ":", &rest);
        const char *password = strtok_r(NULL, ":", &rest);
        const char *number = password ? strtok_r(NULL, ":", &rest) : NULL;
        if (number && strtoul(number, NULL, 10) == node->gid) {
            snprintf(node->group, sizeof node->group, "%.31s", name);
        }
    }
    if (file) {
        fclose(file);
    }
}

// By mode bits, so that any user can be asked about. Where they refuse this process's own user, the
// kernel has the last word: an access list (logind makes one at the seat) may still allow it.
static bool may_open(const struct doctor_user *user, const struct stat *st, const char *full) {
    if (user->uid == 0) {
        return true;
    }
    mode_t bits = st->st_mode & 7u;
    for (uint32_t i = 0; i < user->gid_count; i++) {
        if (user->gids[i] == st->st_gid) {
            bits = (st->st_mode >> 3) & 7u;
        }
    }
    if (user->uid == st->st_uid) {
        bits = (st->st_mode >> 6) & 7u;
    }
    return (bits & 6u) == 6u || (user->uid == geteuid() && access(full, R_OK | W_OK) == 0);
}

static void gather_nodes(struct gather *g) {
    static const char *const patterns[] = {
        "/dev/dri/renderD*", "/dev/nvidia[0-9]*", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/dxg",
    };
    for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++) {
        glob_t found;
        size_t count = doctor_matches(g->root, patterns[p], &found);
        for (size_t i = 0; i < count && g->facts->node_count < DOCTOR_MAX_NODES; i++) {
            struct doctor_node *node = &g->facts->nodes[g->facts->node_count];
            struct stat st;
            if (stat(found.gl_pathv[i], &st) == 0) {
                snprintf(node->path, sizeof node->path, "%s", doctor_match(g->root, &found, i));
                node->gid = st.st_gid;
                node->group_may = (st.st_mode & 060u) == 060u;
                node->denied = !may_open(&g->source->user, &st, found.gl_pathv[i]);
                find_group_name(g->root, node);
                g->facts->node_count++;
            }
        }
        globfree(&found);
    }
}

const struct doctor_node *doctor_facts_node(const struct doctor_facts *facts, const char *path) {
    for (uint32_t i = 0; i < facts->node_count; i++) {
        if (strcmp(facts->nodes[i].path, path) == 0) {
            return &facts->nodes[i];
        }
    }
    return NULL;
}

// ---- the system around us ----

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  ...": the first word that begins
// with a digit.
static void gather_nvidia_version(struct gather *g) {
    char text[256];
    char *rest = NULL;
    doctor_read_text(g->root, "/proc/driver/nvidia/version", text, sizeof text);
    for (char *word = strtok_r(text, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest)) {
        if (word[0] >= '0' && word[0] <= '9') {
            snprintf(g->facts->nvidia_version, sizeof g->facts->nvidia_version, "%.31s", word);
            return;
        }
    }
}

static void gather_container(struct gather *g) {
    static const char *const marks[] = {"/.dockerenv", "/run/.containerenv"};
    static const char *const words[] = {"docker", "kubepods", "containerd", "libpod", "lxc"};
    char text[4096];
    for (size_t i = 0; i < sizeof marks / sizeof marks[0] && !g->facts->container; i++) {
        g->facts->container = doctor_exists(g->root, marks[i]) ? marks[i] : NULL;
    }
    doctor_read_text(g->root, "/proc/1/cgroup", text, sizeof text);
    for (size_t i = 0; i < sizeof words / sizeof words[0] && !g->facts->container; i++) {
        g->facts->container = strstr(text, words[i]) ? "/proc/1/cgroup" : NULL;
    }
}

static void gather_wsl(struct gather *g) {
    char text[256];
    doctor_read_text(g->root, "/proc/sys/kernel/osrelease", text, sizeof text);
    g->facts->wsl = strstr(text, "microsoft") || strstr(text, "Microsoft");
}

// Whether the folder is there and can be written, or can be made; what is made is taken away again.
// `below` is the rest of the way, to be tried inside.
static bool try_folder(const char *full, const char *below) {
    char inner[DOCTOR_PATH + 16];
    bool made = mkdir(full, 0700) == 0;
    bool writable = (made || errno == EEXIST) && access(full, W_OK | X_OK) == 0;
    if (writable && below) {
        snprintf(inner, sizeof inner, "%s/%s", full, below);
        writable = try_folder(inner, NULL);
    }
    int error = errno;
    if (made) {
        rmdir(full);
    }
    errno = error;
    return writable;
}

// Where the runtime would keep its cache, and why it could not.
static void gather_cache(struct gather *g) {
    const struct doctor_env *env = &g->source->env;
    char base[DOCTOR_PATH];
    char full[DOCTOR_PATH];
    if (!grt_cache_base(env->cache_home, env->home, base, sizeof base)) {
        return;
    }
    snprintf(g->facts->cache_dir, DOCTOR_PATH, "%.500s/gpurt", base);
    doctor_full_path(full, g->root, base);
    if (!try_folder(full, "gpurt")) {
        snprintf(g->facts->cache_problem, sizeof g->facts->cache_problem, "%s", strerror(errno));
    }
}

void doctor_facts_gather(struct doctor_facts *facts, const struct doctor_source *source) {
    struct gather g = {.facts = facts, .source = source, .root = source->root};
    memset(facts, 0, sizeof *facts);
    facts->env = source->env;
    facts->list = source->list;
    facts->coopmat = source->coopmat;
    if (source->env.device && source->list) {
        facts->chosen = grt_dev_choose(source->list, grt_dev_desc(.device = source->env.device));
    }
    doctor_drivers_gather(facts->apis, source);
    gather_gpus(&g);
    gather_nodes(&g);
    gather_nvidia_version(&g);
    gather_container(&g);
    gather_wsl(&g);
    gather_cache(&g);
}
