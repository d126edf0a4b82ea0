// SPDX-License-Identifier: Apache-2.0
// A physical device: may gpurt use it, what is it called, what can it do. list() and open() ask the
// same functions, so the index of a device means the same in both.
//
// Needed: Vulkan 1.2, a queue with compute, timeline semaphores. Everything else is a cap, and
// zero where the device has not got it. Structs of an extension are asked for only where the
// extension is advertised: some drivers fill in what they do not have.
#include "vulkan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Hangs `next` at the end of a chain that begins at *tail.
static void chain(void **tail, void *next) {
    VkBaseOutStructure *last = *tail;
    last->pNext = next;
    *tail = next;
}

static bool find_exts(const struct gvk_instance *instance, struct gvk_physical *physical) {
    uint32_t count = 0;
    if (instance->EnumerateDeviceExtensionProperties(physical->handle, NULL, &count, NULL) < 0) {
        return false;
    }
    VkExtensionProperties *list = calloc(count ? count : 1, sizeof *list);
    if (list == NULL) {
        return false;
    }
    VkResult result =
        instance->EnumerateDeviceExtensionProperties(physical->handle, NULL, &count, list);
    for (uint32_t i = 0; result >= 0 && i < count; i++) {
#define X(name, text, enable)                                                                      \
    if (strcmp(list[i].extensionName, text) == 0) {                                                \
        physical->ext[GVK_EXT_##name] = true;                                                      \
    }
        GVK_EXTS(X)
#undef X
    }
    free(list);
    return result >= 0;
}

uint32_t gvk_family_of(const VkQueueFamilyProperties *families, uint32_t count, bool imports) {
    uint32_t first = count;
    for (uint32_t i = 0; i < count; i++) {
        VkQueueFlags flags = families[i].queueFlags;
        if ((flags & VK_QUEUE_COMPUTE_BIT) && first == count) {
            first = i;
        }
        if (imports && (flags & VK_QUEUE_COMPUTE_BIT) && !(flags & VK_QUEUE_GRAPHICS_BIT)) {
            return i;
        }
    }
    return first;
}

static bool find_family(const struct gvk_instance *instance, struct gvk_physical *physical) {
    VkQueueFamilyProperties families[32];
    uint32_t count = sizeof families / sizeof families[0];
    instance->GetPhysicalDeviceQueueFamilyProperties(physical->handle, &count, families);
    uint32_t family = gvk_family_of(families, count, physical->ext[GVK_EXT_BINARY_IMPORT]);
    if (family == count) {
        return false;
    }
    physical->family = family;
    physical->graphics = families[family].queueFlags & VK_QUEUE_GRAPHICS_BIT;
    physical->timestamp_bits = families[family].timestampValidBits;
    physical->aside = family;
    physical->aside_index = 1;
    physical->has_aside = families[family].queueCount > 1;
    // A family that copies and does nothing else is a DMA engine, which a second queue need not be.
    const VkQueueFlags only =
        VK_QUEUE_TRANSFER_BIT | VK_QUEUE_SPARSE_BINDING_BIT | VK_QUEUE_PROTECTED_BIT;
    for (uint32_t i = 0; i < count; i++) {
        VkQueueFlags flags = families[i].queueFlags;
        if ((flags & VK_QUEUE_TRANSFER_BIT) && !(flags & ~only)) {
            physical->aside = i;
            physical->aside_index = 0;
            physical->has_aside = true;
            break;
        }
    }
    physical->aside_bits = physical->has_aside ? families[physical->aside].timestampValidBits : 0;
    return true;
}

// False with the reason in `why` (128 bytes) when gpurt cannot use the device.
static bool query(const struct gvk_instance *instance, VkPhysicalDevice handle,
                  struct gvk_physical *physical, char *why) {
    *physical = (struct gvk_physical){.handle = handle};
    VkPhysicalDeviceProperties properties;
    instance->GetPhysicalDeviceProperties(handle, &properties);
    if (properties.apiVersion < VK_API_VERSION_1_2) {
        snprintf(why, 128, "%.80s has Vulkan %u.%u, gpurt needs 1.2", properties.deviceName,
                 VK_API_VERSION_MAJOR(properties.apiVersion),
                 VK_API_VERSION_MINOR(properties.apiVersion));
        return false;
    }
    physical->is_13 = properties.apiVersion >= VK_API_VERSION_1_3;
    if (!find_exts(instance, physical) || !find_family(instance, physical)) {
        snprintf(why, 128, "%.80s has no compute queue", properties.deviceName);
        return false;
    }

    VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    physical->f11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    physical->f12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    physical->f13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
    physical->matrix.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
    physical->matrix2.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV;
    physical->bfloat16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR;
    void *tail = &features;
    chain(&tail, &physical->f11);
    chain(&tail, &physical->f12);
    if (physical->is_13) {
        chain(&tail, &physical->f13);
    }
    if (physical->ext[GVK_EXT_COOPERATIVE_MATRIX]) {
        chain(&tail, &physical->matrix);
    }
    if (physical->ext[GVK_EXT_COOPERATIVE_MATRIX_2]) {
        chain(&tail, &physical->matrix2);
    }
    if (physical->ext[GVK_EXT_BFLOAT16]) {
        chain(&tail, &physical->bfloat16);
    }
    instance->GetPhysicalDeviceFeatures2(handle, &features);
    physical->features = features.features;
    if (!physical->f12.timelineSemaphore) {
        snprintf(why, 128, "%.80s has no timeline semaphores", properties.deviceName);
        return false;
    }
    return true;
}

struct gvk_physical *gvk_physical_list(const struct gvk_instance *instance, uint32_t *count,
                                       char *problem) {
    VkPhysicalDevice handles[64];
    uint32_t handle_count = sizeof handles / sizeof handles[0];
    *count = 0;
    VkResult result = instance->EnumeratePhysicalDevices(instance->handle, &handle_count, handles);
    // The loader's word for "every driver looked and found nothing" is INITIALIZATION_FAILED.
    if (result == VK_ERROR_INITIALIZATION_FAILED) {
        handle_count = 0;
    } else if (result != VK_SUCCESS && result != VK_INCOMPLETE) {
        snprintf(problem, GVK_PROBLEM_SIZE, "vkEnumeratePhysicalDevices failed: %s (%d)",
                 gvk_result_text(result), (int)result);
        return NULL;
    }
    if (handle_count == 0) {
        snprintf(
            problem, GVK_PROBLEM_SIZE,
            "the installed Vulkan drivers found no device: install the GPU vendor's driver, or "
            "for a CPU device apt-get install mesa-vulkan-drivers");
        return NULL;
    }
    struct gvk_physical *list = calloc(handle_count, sizeof *list);
    if (list == NULL) {
        snprintf(problem, GVK_PROBLEM_SIZE, "out of memory");
        return NULL;
    }
    char why[128] = "";
    for (uint32_t i = 0; i < handle_count; i++) {
        if (query(instance, handles[i], &list[*count], why)) {
            (*count)++;
        }
    }
    if (*count == 0) {
        snprintf(problem, GVK_PROBLEM_SIZE, "no usable Vulkan device: %s", why);
        free(list);
        return NULL;
    }
    return list;
}

// ---- what it is ----

#define NVIDIA 0x10de

static const char *vendor_text(uint32_t id) {
    switch (id) {
    case NVIDIA:
        return "NVIDIA";
    case 0x1002:
        return "AMD";
    case 0x8086:
        return "Intel";
    case 0x13b5:
        return "Arm";
    case 0x5143:
        return "Qualcomm";
    case 0x1010:
        return "Imagination";
    case 0x106b:
        return "Apple";
    case 0x14e4:
        return "Broadcom";
    case 0x1ae0:
        return "Google";
    case VK_VENDOR_ID_MESA:
        return "Mesa";
    default:
        return NULL;
    }
}

static void describe_driver(const VkPhysicalDeviceProperties *properties,
                            const VkPhysicalDeviceDriverProperties *driver,
                            struct grt_dev_info *info) {
    snprintf(info->driver, sizeof info->driver, "%.*s", (int)sizeof info->driver - 1,
             driver->driverName);
    uint32_t v = properties->driverVersion;
    if (driver->driverInfo[0]) {
        snprintf(info->driver_version, sizeof info->driver_version, "%.*s",
                 (int)sizeof info->driver_version - 1, driver->driverInfo);
    } else if (driver->driverID == VK_DRIVER_ID_NVIDIA_PROPRIETARY) {
        // NVIDIA packs 10, 8, 8 and 6 bits.
        snprintf(info->driver_version, sizeof info->driver_version, "%u.%u.%u.%u", v >> 22,
                 v >> 14 & 0xff, v >> 6 & 0xff, v & 0x3f);
    } else {
        snprintf(info->driver_version, sizeof info->driver_version, "%u.%u.%u", VK_VERSION_MAJOR(v),
                 VK_VERSION_MINOR(v), VK_VERSION_PATCH(v));
    }
}

// ---- what it can do ----

static bool dtype_of(VkComponentTypeKHR type, enum grt_dtype *dtype) {
    static const struct {
        uint32_t type;
        enum grt_dtype dtype;
    } rows[] = {
        {VK_COMPONENT_TYPE_FLOAT16_KHR, GRT_F16},   {VK_COMPONENT_TYPE_FLOAT32_KHR, GRT_F32},
        {VK_COMPONENT_TYPE_BFLOAT16_KHR, GRT_BF16}, {VK_COMPONENT_TYPE_SINT8_KHR, GRT_I8},
        {VK_COMPONENT_TYPE_UINT8_KHR, GRT_U8},      {VK_COMPONENT_TYPE_SINT32_KHR, GRT_I32},
        {VK_COMPONENT_TYPE_UINT32_KHR, GRT_U32},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].type == (uint32_t)type) {
            *dtype = rows[i].dtype;
            return true;
        }
    }
    return false;
}

static void add_shape(struct grt_caps *caps, const VkCooperativeMatrixPropertiesKHR *p) {
    struct grt_matrix_shape shape = {.m = p->MSize, .n = p->NSize, .k = p->KSize};
    if (p->scope != VK_SCOPE_SUBGROUP_KHR || p->AType != p->BType || p->CType != p->ResultType ||
        !dtype_of(p->AType, &shape.in) || !dtype_of(p->ResultType, &shape.out) ||
        caps->matrix_shape_count == GRT_MAX_MATRIX_SHAPES) {
        return;
    }
    // The same product is listed again with saturating sums.
    for (uint32_t i = 0; i < caps->matrix_shape_count; i++) {
        const struct grt_matrix_shape *s = &caps->matrix_shapes[i];
        if (s->m == shape.m && s->n == shape.n && s->k == shape.k && s->in == shape.in &&
            s->out == shape.out) {
            return;
        }
    }
    caps->matrix_shapes[caps->matrix_shape_count++] = shape;
}

static void describe_matrix(const struct gvk_instance *instance,
                            const struct gvk_physical *physical, struct grt_caps *caps) {
    if (!physical->matrix.cooperativeMatrix ||
        !instance->GetPhysicalDeviceCooperativeMatrixPropertiesKHR) {
        return;
    }
    VkCooperativeMatrixPropertiesKHR list[128];
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        list[i] = (VkCooperativeMatrixPropertiesKHR){
            .sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR};
    }
    uint32_t count = sizeof list / sizeof list[0];
    VkResult result =
        instance->GetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical->handle, &count, list);
    for (uint32_t i = 0; result >= 0 && i < count; i++) {
        add_shape(caps, &list[i]);
    }
}

bool gvk_aside_stamps(const struct gvk_physical *physical) {
    return physical->f12.hostQueryReset && physical->aside_bits == physical->timestamp_bits;
}

uint32_t gvk_local_heap(const VkPhysicalDeviceMemoryProperties *memory) {
    uint64_t size = 0;
    uint32_t heap = 0;
    for (uint32_t i = 0; i < memory->memoryHeapCount; i++) {
        bool is_local = (memory->memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0;
        if (is_local && memory->memoryHeaps[i].size > size) {
            size = memory->memoryHeaps[i].size;
            heap = i;
        }
    }
    return heap;
}

void gvk_physical_describe(const struct gvk_instance *instance, const struct gvk_physical *physical,
                           struct grt_dev_info *info) {
    VkPhysicalDeviceProperties2 properties = {.sType =
                                                  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    VkPhysicalDeviceVulkan11Properties p11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES};
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceMaintenance4Properties p13 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES};
    VkPhysicalDevicePCIBusInfoPropertiesEXT pci = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT};
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nv = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
    VkPhysicalDeviceShaderCorePropertiesAMD amd = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD};
    VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM arm = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_BUILTINS_PROPERTIES_ARM};
    const struct {
        bool present;
        void *part;
    } parts[] = {
        {true, &p11},
        {true, &driver},
        {physical->is_13, &p13},
        {physical->ext[GVK_EXT_PCI_BUS_INFO], &pci},
        {physical->ext[GVK_EXT_SM_BUILTINS_NV], &nv},
        {physical->ext[GVK_EXT_CORE_PROPERTIES_AMD], &amd},
        {physical->ext[GVK_EXT_CORE_BUILTINS_ARM], &arm},
    };
    void *tail = &properties;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].present) {
            chain(&tail, parts[i].part);
        }
    }
    instance->GetPhysicalDeviceProperties2(physical->handle, &properties);
    VkPhysicalDeviceMemoryProperties2 memory = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    instance->GetPhysicalDeviceMemoryProperties2(physical->handle, &memory);

    const VkPhysicalDeviceProperties *p = &properties.properties;
    const VkPhysicalDeviceLimits *limits = &p->limits;
    snprintf(info->name, sizeof info->name, "%.*s", (int)sizeof info->name - 1, p->deviceName);
    const char *vendor = vendor_text(p->vendorID);
    if (vendor) {
        snprintf(info->vendor, sizeof info->vendor, "%s", vendor);
    } else {
        snprintf(info->vendor, sizeof info->vendor, "vendor 0x%04x", p->vendorID);
    }
    describe_driver(p, &driver, info);
    snprintf(info->api_version, sizeof info->api_version, "%u.%u.%u",
             VK_API_VERSION_MAJOR(p->apiVersion), VK_API_VERSION_MINOR(p->apiVersion),
             VK_API_VERSION_PATCH(p->apiVersion));
    if (physical->ext[GVK_EXT_PCI_BUS_INFO]) {
        snprintf(info->pci, sizeof info->pci, "%04x:%02x:%02x.%x", pci.pciDomain & 0xfffffu,
                 pci.pciBus & 0xffu, pci.pciDevice & 0xffu, pci.pciFunction & 0xfu);
    }

    struct grt_caps *caps = &info->caps;
    caps->software = p->deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    caps->integrated = p->deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    long cpus = caps->software ? sysconf(_SC_NPROCESSORS_ONLN) : 0;
    caps->compute_units =
        nv.shaderSMCount + arm.shaderCoreCount +
        amd.shaderEngineCount * amd.shaderArraysPerEngineCount * amd.computeUnitsPerShaderArray +
        (cpus > 0 ? (uint32_t)cpus : 0);
    caps->subgroup = p11.subgroupSize;
    caps->shuffle = (p11.subgroupSupportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) != 0 &&
                    (p11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
    caps->max_wg = limits->maxComputeWorkGroupInvocations < limits->maxComputeWorkGroupSize[0]
                       ? limits->maxComputeWorkGroupInvocations
                       : limits->maxComputeWorkGroupSize[0];
    memcpy(caps->max_groups, limits->maxComputeWorkGroupCount, sizeof caps->max_groups);
    caps->shmem = limits->maxComputeSharedMemorySize;
    caps->align = limits->minStorageBufferOffsetAlignment > 16
                      ? (uint32_t)limits->minStorageBufferOffsetAlignment
                      : 16;
    caps->f16_storage = physical->f11.storageBuffer16BitAccess;
    caps->f16_arith = physical->f12.shaderFloat16;
    caps->i16_arith = physical->features.shaderInt16;
    caps->bf16 = physical->bfloat16.shaderBFloat16Type;
    caps->timestamps = physical->timestamp_bits > 0 && limits->timestampPeriod > 0;
    caps->max_binding = limits->maxStorageBufferRange / caps->align * caps->align;
    caps->max_texels =
        limits->minTexelBufferOffsetAlignment <= caps->align ? limits->maxTexelBufferElements : 0;
    caps->max_buffer = p11.maxMemoryAllocationSize;
    if (p13.maxBufferSize > 0 && p13.maxBufferSize < caps->max_buffer) {
        caps->max_buffer = p13.maxBufferSize;
    }
    caps->max_buffer = caps->max_buffer / 4 * 4;
    caps->memory =
        memory.memoryProperties.memoryHeaps[gvk_local_heap(&memory.memoryProperties)].size;
    // Vulkan does not say how a subgroup holds a matrix. NVIDIA's drivers do it in one way on all
    // chips so far, and each variant that depends on it is checked before its first use
    // (runtime/ops/gemm/check.c).
    caps->mma_layout = p->vendorID == NVIDIA;
    caps->matrix_convert = physical->matrix2.cooperativeMatrixConversions;
    caps->imports = gvk_imports(physical, p->driverVersion);
    describe_matrix(instance, physical, caps);
}
