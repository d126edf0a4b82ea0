// SPDX-License-Identifier: Apache-2.0
// Which devices there are, what they are called and what they can do. list() and open() ask the
// same functions, so the index of a device means the same in both: its place in one walk over all
// platforms, in the order of the loader. A device that cannot compile is left out: nothing could
// run on it.
#include "opencl.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PLATFORMS 16

// Of cl_nv_device_attribute_query, but in no header.
#define CL_DEVICE_PCI_BUS_ID_NV 0x4008
#define CL_DEVICE_PCI_SLOT_ID_NV 0x4009
#define CL_DEVICE_PCI_DOMAIN_ID_NV 0x400A

enum { VENDOR_NVIDIA = 0x10DE };

// ---- questions: what the driver does not answer stays zero or "" ----

bool gcl_ask(cl_device_id device, cl_device_info what, void *value, size_t size) {
    size_t got = 0;
    cl_int code = gcl.clGetDeviceInfo(device, what, size, value, &got);
    if (code != CL_SUCCESS || got > size) {
        memset(value, 0, size);
        return false;
    }
    return true;
}

static uint32_t ask_u32(cl_device_id device, cl_device_info what) {
    cl_uint value = 0;
    gcl_ask(device, what, &value, sizeof value);
    return value;
}

uint64_t gcl_ask_u64(cl_device_id device, cl_device_info what) {
    cl_ulong value = 0;
    gcl_ask(device, what, &value, sizeof value);
    return value;
}

static size_t ask_size(cl_device_id device, cl_device_info what) {
    size_t value = 0;
    gcl_ask(device, what, &value, sizeof value);
    return value;
}

// Copies what fits, without the blanks that some drivers put around names.
static void copy_text(char *out, size_t size, const char *text) {
    while (isspace((unsigned char)*text)) {
        text++;
    }
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1])) {
        length--;
    }
    snprintf(out, size, "%.*s", (int)length, text);
}

static void ask_text(cl_device_id device, cl_device_info what, char *out, size_t size) {
    char text[512] = "";
    if (gcl.clGetDeviceInfo(device, what, sizeof text, text, NULL) != CL_SUCCESS) {
        text[0] = '\0';
    }
    text[sizeof text - 1] = '\0';
    copy_text(out, size, text);
}

void gcl_ask_platform(cl_platform_id platform, cl_platform_info what, char *out, size_t size) {
    char text[512] = "";
    if (gcl.clGetPlatformInfo(platform, what, sizeof text, text, NULL) != CL_SUCCESS) {
        text[0] = '\0';
    }
    text[sizeof text - 1] = '\0';
    copy_text(out, size, text);
}

// AMD's driver says "gfx1100" and keeps the name on the box for an extension.
void gcl_ask_name(cl_device_id device, char *out, size_t size) {
    char chip[64], board[128];
    ask_text(device, CL_DEVICE_NAME, chip, sizeof chip);
    ask_text(device, CL_DEVICE_BOARD_NAME_AMD, board, sizeof board);
    if (board[0] != '\0') {
        snprintf(out, size, "%.100s (%.24s)", board, chip);
    } else {
        ask_text(device, CL_DEVICE_NAME, out, size);
    }
}

char *gcl_ask_extensions(cl_device_id device) {
    size_t size = 0;
    if (gcl.clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 0, NULL, &size) != CL_SUCCESS) {
        size = 0;
    }
    char *text = calloc(1, size + 3);
    if (text && size > 0) {
        text[0] = ' ';
        if (gcl.clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, size, text + 1, NULL) != CL_SUCCESS) {
            text[1] = '\0';
        }
        text[strlen(text)] = ' ';
    }
    return text;
}

// ---- the walk ----

// A loader may cut lists at their colons where they lie in the environment, as on a machine with
// CUDA 13 (2026-11): what is started later would know the first driver alone.
static cl_int ask_platforms(cl_platform_id platforms[MAX_PLATFORMS], cl_uint *count) {
    static const char *const names[] = {"OCL_ICD_FILENAMES", "OPENCL_LAYERS"};
    enum { NAMES = sizeof names / sizeof *names };
    char *whole[NAMES];
    for (size_t i = 0; i < NAMES; i++) {
        const char *list = getenv(names[i]);
        whole[i] = list ? strdup(list) : NULL;
    }
    cl_int code = gcl.clGetPlatformIDs(MAX_PLATFORMS, platforms, count);
    for (size_t i = 0; i < NAMES; i++) {
        const char *left = getenv(names[i]);
        if (whole[i] && left && strcmp(left, whole[i]) != 0) {
            setenv(names[i], whole[i], 1);
        }
        free(whole[i]);
    }
    return code;
}

uint32_t gcl_find_devices(struct gcl_found *found, cl_int *code) {
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_device_id devices[GCL_MAX_DEVICES];
    cl_uint platform_count = 0;
    uint32_t count = 0;
    *code = ask_platforms(platforms, &platform_count);
    if (*code != CL_SUCCESS) {
        return 0;
    }
    for (cl_uint p = 0; p < platform_count && p < MAX_PLATFORMS; p++) {
        cl_uint device_count = 0;
        if (gcl.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, GCL_MAX_DEVICES, devices,
                               &device_count) != CL_SUCCESS) {
            continue;
        }
        for (cl_uint d = 0; d < device_count && d < GCL_MAX_DEVICES && count < GCL_MAX_DEVICES;
             d++) {
            if (ask_u32(devices[d], CL_DEVICE_AVAILABLE) &&
                ask_u32(devices[d], CL_DEVICE_COMPILER_AVAILABLE)) {
                found[count++] = (struct gcl_found){platforms[p], devices[d]};
            }
        }
    }
    return count;
}

// ---- what a device is and can do ----

static void fill_pci(cl_device_id device, const char *extensions, char *out, size_t size) {
    cl_device_pci_bus_info_khr at = {0};
    bool known = false;
    if (strstr(extensions, " cl_khr_pci_bus_info ")) {
        known = gcl_ask(device, CL_DEVICE_PCI_BUS_INFO_KHR, &at, sizeof at);
    } else if (strstr(extensions, " cl_nv_device_attribute_query ")) {
        cl_uint slot = 0;  // device number and function in one
        known = gcl_ask(device, CL_DEVICE_PCI_BUS_ID_NV, &at.pci_bus, sizeof at.pci_bus) &&
                gcl_ask(device, CL_DEVICE_PCI_SLOT_ID_NV, &slot, sizeof slot);
        at.pci_domain = ask_u32(device, CL_DEVICE_PCI_DOMAIN_ID_NV);
        at.pci_device = slot >> 3;
        at.pci_function = slot & 7;
    } else if (strstr(extensions, " cl_amd_device_attribute_query ")) {
        // A type (1: PCI Express), 17 unused bytes, then bus, device and function; no domain.
        unsigned char raw[24];
        cl_uint type = 0;
        known = gcl_ask(device, CL_DEVICE_TOPOLOGY_AMD, raw, sizeof raw);
        memcpy(&type, raw, sizeof type);
        known = known && type == CL_DEVICE_TOPOLOGY_TYPE_PCIE_AMD;
        at.pci_bus = raw[21];
        at.pci_device = raw[22];
        at.pci_function = raw[23];
    }
    if (known) {
        snprintf(out, size, "%04x:%02x:%02x.%x", at.pci_domain & 0xffff, at.pci_bus & 0xff,
                 at.pci_device & 0xff, at.pci_function & 0xf);
    }
}

static uint32_t find_subgroup(cl_device_id device, const char *extensions) {
    if (strstr(extensions, " cl_nv_device_attribute_query ")) {
        return ask_u32(device, CL_DEVICE_WARP_SIZE_NV);
    }
    if (strstr(extensions, " cl_amd_device_attribute_query ")) {
        return ask_u32(device, CL_DEVICE_WAVEFRONT_WIDTH_AMD);
    }
    if (strstr(extensions, " cl_intel_required_subgroup_size ")) {
        // The compiler chooses per kernel among {8, 16, 32}, most often the one in the middle.
        size_t sizes[8] = {0}, bytes = 0;
        if (gcl.clGetDeviceInfo(device, CL_DEVICE_SUB_GROUP_SIZES_INTEL, sizeof sizes, sizes,
                                &bytes) == CL_SUCCESS &&
            bytes >= sizeof sizes[0] && bytes <= sizeof sizes) {
            return (uint32_t)sizes[bytes / sizeof sizes[0] / 2];
        }
    }
    return 0;
}

static void fill_caps(cl_device_id device, const char *extensions, struct grt_caps *caps) {
    bool nvidia = ask_u32(device, CL_DEVICE_VENDOR_ID) == VENDOR_NVIDIA;
    size_t items[3] = {0};
    gcl_ask(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, items, sizeof items);
    size_t max_wg = ask_size(device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    max_wg = items[0] > 0 && items[0] < max_wg ? items[0] : max_wg;
    // A dispatch is counted in invocations, as a size_t of the device.
    uint32_t max_groups = INT32_MAX;
    if (ask_u32(device, CL_DEVICE_ADDRESS_BITS) == 32 && max_wg > 0) {
        max_groups = UINT32_MAX / (uint32_t)max_wg;
    }
    // On NVIDIA 48 KiB exactly fails at launch when they are an argument of the kernel. As an array
    // of its text they may be all that the processor has, 227 KiB on Hopper (225 were run), if the
    // driver compiles for an architecture with an "a", as sm_90a (H200, driver 580.159.04,
    // 2026-11); kernels of that one architecture use it (gemm_wgmma.k), others keep to what every
    // device admits to.
    uint64_t shmem = gcl_ask_u64(device, CL_DEVICE_LOCAL_MEM_SIZE);
    shmem -= nvidia && shmem > 1024 ? 1024 : 0;
    uint32_t align = ask_u32(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
    uint64_t max_alloc = gcl_ask_u64(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);

    bool software = (gcl_ask_u64(device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;

    *caps = (struct grt_caps){
        .software = software,
        .integrated = ask_u32(device, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0,
        .compute_units = ask_u32(device, CL_DEVICE_MAX_COMPUTE_UNITS),
        .subgroup = find_subgroup(device, extensions),
        .vector = software ? ask_u32(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT) : 0,
        .max_wg = (uint32_t)max_wg,
        .max_groups = {max_groups, max_groups, max_groups},
        .shmem = (uint32_t)(shmem < INT32_MAX ? shmem : INT32_MAX),
        .align = align < 4 ? 4 : align,
        .f16_storage = 1,  // elements are ushort; vload_half is core
        .f16_arith = strstr(extensions, " cl_khr_fp16 ") != NULL,
        .i16_arith = 1,  // short is core
        .timestamps = (GCL_QUEUE_PROPERTIES & CL_QUEUE_PROFILING_ENABLE) != 0,
        .max_binding = max_alloc,
        .max_texels = max_alloc / 16,
        .max_buffer = max_alloc,
        .memory = gcl_ask_u64(device, CL_DEVICE_GLOBAL_MEM_SIZE),
    };
}

bool gcl_describe(const struct gcl_found *found, struct grt_dev_info *info) {
    cl_device_id device = found->device;
    char *extensions = gcl_ask_extensions(device);
    if (!extensions) {
        return false;
    }
    memset(info, 0, sizeof *info);
    gcl_ask_name(device, info->name, sizeof info->name);
    ask_text(device, CL_DEVICE_VENDOR, info->vendor, sizeof info->vendor);
    gcl_ask_platform(found->platform, CL_PLATFORM_NAME, info->driver, sizeof info->driver);
    ask_text(device, CL_DRIVER_VERSION, info->driver_version, sizeof info->driver_version);
    ask_text(device, CL_DEVICE_VERSION, info->api_version, sizeof info->api_version);
    fill_pci(device, extensions, info->pci, sizeof info->pci);
    fill_caps(device, extensions, &info->caps);
    free(extensions);
    return true;
}
