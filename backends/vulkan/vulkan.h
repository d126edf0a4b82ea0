// SPDX-License-Identifier: Apache-2.0
// Inside the Vulkan backend: its objects and what its files ask of each other.
//
//     loader.c    libvulkan, the instance, the validation layer, drivers the loader does not find
//     caps.c      a physical device: may we use it, what is it, what can it do
//     device.c    list, open, destroy
//     buffer.c    memory types, buffers, blocking transfers through a staging buffer
//     kernel.c    pipelines and the pipeline cache
//     import.c    kernels in PTX, on NVIDIA's driver
//     commands.c  command lists, times
//     lanes.c     submits, marks, waiting
//     clocks.c    the device's clock beside the host's
//
// Every open device has its own instance and its own tables of entry points: volk's global ones
// would be overwritten by the next instance, which may lack the debug extension of the first.
#ifndef GVK_VULKAN_H
#define GVK_VULKAN_H

#include <volk.h>

#include "backends/backend.h"
#include "khr_extra.h"
#include "base/clock.h"
#include "base/log.h"

#define GVK_PROBLEM_SIZE 256  // of the `problem` and `note` of the seam

// ---- loader.c ----

// Entry points of an instance: what every one has, and what only some have.
#define GVK_INSTANCE_FNS(X)                                                                        \
    X(CreateDevice)                                                                                \
    X(DestroyInstance)                                                                             \
    X(EnumerateDeviceExtensionProperties)                                                          \
    X(EnumeratePhysicalDevices)                                                                    \
    X(GetDeviceProcAddr)                                                                           \
    X(GetPhysicalDeviceFeatures2)                                                                  \
    X(GetPhysicalDeviceMemoryProperties2)                                                          \
    X(GetPhysicalDeviceProperties)                                                                 \
    X(GetPhysicalDeviceProperties2)                                                                \
    X(GetPhysicalDeviceQueueFamilyProperties)

#define GVK_INSTANCE_EXTRA_FNS(X)                                                                  \
    X(CreateDebugUtilsMessengerEXT)                                                                \
    X(DestroyDebugUtilsMessengerEXT)                                                               \
    X(SetDebugUtilsObjectNameEXT)                                                                  \
    X(GetPhysicalDeviceCooperativeMatrixPropertiesKHR)

struct gvk_instance {
    VkInstance handle;
    VkDebugUtilsMessengerEXT messenger;  // VK_NULL_HANDLE without validation
#define X(name) PFN_vk##name name;
    GVK_INSTANCE_FNS(X)
    GVK_INSTANCE_EXTRA_FNS(X)  // each may be NULL
#undef X
};

// "VK_ERROR_DEVICE_LOST"; messages add the number, for results that have no name here.
const char *gvk_result_text(VkResult result);
// With `watch` the validation layer is on, if installed, and its complaints are counted there.
// False with a sentence in `problem`; it logs no failure, because list() must not.
bool gvk_instance_create(struct gvk_instance *instance, struct grt_dev *watch, char *problem);
void gvk_instance_destroy(struct gvk_instance *instance);
bool gvk_add_drivers(char *note, bool *anew);

// ---- caps.c ----

// Extensions we ask about; those with a 1 are enabled on the device, the others only say something.
#define GVK_EXTS(X)                                                                                \
    X(MEMORY_BUDGET, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME, 1)                                       \
    X(COOPERATIVE_MATRIX, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, 1)                             \
    X(COOPERATIVE_MATRIX_2, VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME, 1)                          \
    X(BFLOAT16, VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME, 1)                                          \
    X(BINARY_IMPORT, VK_NVX_BINARY_IMPORT_EXTENSION_NAME, 1)                                       \
    X(CALIBRATED_TIMESTAMPS, "VK_KHR_calibrated_timestamps", 1)                                    \
    X(CALIBRATED_TIMESTAMPS_EXT, VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME, 1)                   \
    X(PCI_BUS_INFO, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME, 0)                                         \
    X(SM_BUILTINS_NV, VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME, 0)                                  \
    X(CORE_PROPERTIES_AMD, VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME, 0)                        \
    X(CORE_BUILTINS_ARM, VK_ARM_SHADER_CORE_BUILTINS_EXTENSION_NAME, 0)

enum gvk_ext {
#define X(name, text, enable) GVK_EXT_##name,
    GVK_EXTS(X)
#undef X
        GVK_EXT_COUNT,
};

// A device that we can use. Feature structs of what the device does not have are all zero.
struct gvk_physical {
    VkPhysicalDevice handle;
    uint32_t family;       // of the main queue: see gvk_family_of()
    bool graphics;         // of that family
    uint32_t aside;        // of the queue for uploads
    uint32_t aside_index;  // in its family
    bool has_aside;
    uint32_t timestamp_bits;
    uint32_t aside_bits;  // of timestamps on the queue for uploads
    bool is_13;
    bool ext[GVK_EXT_COUNT];
    VkPhysicalDeviceFeatures features;
    VkPhysicalDeviceVulkan11Features f11;
    VkPhysicalDeviceVulkan12Features f12;
    VkPhysicalDeviceVulkan13Features f13;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix;
    VkPhysicalDeviceCooperativeMatrix2FeaturesNV matrix2;
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16;
};

// The usable devices, to be freed, in the order of their index; NULL with a sentence in `problem`
// when there is none.
struct gvk_physical *gvk_physical_list(const struct gvk_instance *instance, uint32_t *count,
                                       char *problem);
// Fills all of `info` that a backend fills.
void gvk_physical_describe(const struct gvk_instance *instance, const struct gvk_physical *physical,
                           struct grt_dev_info *info);

// Whether lists of the queue for uploads can be timed: its clock has as many bits, since one mask
// serves both queues, and the host resets its queries.
bool gvk_aside_stamps(const struct gvk_physical *physical);

// The largest heap that is local to the device.
uint32_t gvk_local_heap(const VkPhysicalDeviceMemoryProperties *memory);

// ---- device.c ----

struct gvk_buf;

#define GVK_HELD 32  // lists of a submit

// A queue in order, and the count of its submits; without a queue the host copies (lanes.c).
struct gvk_lane {
    VkQueue queue;
    VkCommandPool pool;
    VkSemaphore timeline;
    uint64_t submitted;  // the timeline's value when everything queued has finished
    uint64_t after;      // of the other lane's timeline: what the next submit waits for
    // Lists that go out in one submit; all have finished when `submitted` is reached.
    bool holds;
    VkCommandBuffer held[GVK_HELD];
    uint32_t held_count;
};

struct gvk_dev {
    struct grt_dev base;
    struct grt_dev_fns fns;  // without the slots that this device cannot serve
    struct gvk_instance instance;
    VkPhysicalDevice physical;
    VkDevice handle;
    struct VolkDeviceTable vk;
    struct gvk_lane lanes[GRT_LANE_COUNT];
    uint32_t families[GRT_LANE_COUNT];  // of the queues; the same where there is one

    VkPhysicalDeviceMemoryProperties memory;
    bool shared_memory;  // the host reads and writes device buffers in place
    uint32_t software;   // 1: a CPU driver; kernels are told
    bool budget;         // the driver tells how much memory is free
    uint32_t heap;       // the largest that is local to the device
    uint32_t max_args;   // storage buffers that a kernel can have
    bool imports;        // takes PTX; buffers then have addresses

    struct gvk_buf *staging;  // made at the first blocking transfer that needs it
    VkCommandBuffer staging_cmds;

    VkPipelineCache cache;
    char cache_key[256];
    size_t cache_size;  // of what the disk has

    double tick;         // seconds of one timestamp unit; 0: no timestamps
    uint64_t tick_mask;  // of the bits that count
    uint64_t origin;     // clocks.c: the tick that seconds are counted from
    uint64_t newest;     // tick, with the bits that ran over
    bool origin_known;
    // Tells the driver's clock and the host's at once; NULL: the driver cannot.
    PFN_vkGetCalibratedTimestampsEXT read_clocks;
    bool host_reset;    // the host resets queries
    bool aside_stamps;  // the queue for uploads has timestamps
};

// Says what failed and why: out-of-memory results become GRT_NO_MEMORY, a lost device GRT_LOST
// (which sticks), any other `otherwise`. Returns false.
bool gvk_fail(struct gvk_dev *dev, enum grt_status otherwise, VkResult result, const char *format,
              ...) GRT_PRINTF(4, 5);
// The device with its queues, and of its features and extensions those that our kernels use.
bool gvk_device_create(struct gvk_dev *dev, const struct gvk_physical *physical);
// What the other files look up again and again.
void gvk_limits_read(struct gvk_dev *dev, const struct gvk_physical *physical,
                     const struct grt_caps *caps);

// ---- buffer.c ----

struct gvk_buf {
    struct grt_buf base;
    struct gvk_dev *dev;  // base.dev is filled by the runtime, after the create call
    VkBuffer handle;
    VkDeviceMemory memory;
    void *map;                // NULL when the host cannot reach it
    VkDeviceAddress address;  // 0 unless the device takes PTX
};

struct grt_buf *gvk_buf_create(struct grt_dev *base, uint64_t size, enum grt_buf_kind kind);
void gvk_buf_destroy(struct grt_buf *base);
bool gvk_buf_write(struct grt_buf *base, uint64_t offset, const void *data, uint64_t size);
bool gvk_buf_read(struct grt_buf *base, uint64_t offset, void *data, uint64_t size);
void gvk_staging_destroy(struct gvk_dev *dev);
uint64_t gvk_mem_free(struct grt_dev *base);

// ---- kernel.c ----

struct gvk_kernel {
    struct grt_kernel base;
    struct gvk_dev *dev;
    VkDescriptorSetLayout set_layout;  // VK_NULL_HANDLE for a kernel without arguments
    VkPipelineLayout layout;
    VkPipeline handle;
    uint32_t params_size;  // rounded up to a multiple of 4
    VkCuModuleNVX module;  // of a kernel in PTX, which has no pipeline
    VkCuFunctionNVX function;
};

// Whether an argument is bound as a texel buffer (shaders/dialect.h, TEXELS).
bool gvk_is_texels(const struct grt_arg_info *arg);
struct grt_kernel *gvk_kernel_create(struct grt_dev *base, const struct grt_kernel_info *info,
                                     const uint32_t *spec_values);
void gvk_kernel_destroy(struct grt_kernel *base);
// The pipeline cache of `info`'s device and driver; false only when an empty one is refused too.
bool gvk_cache_open(struct gvk_dev *dev, const struct grt_dev_info *info);
void gvk_cache_store(struct gvk_dev *dev);
void gvk_cache_close(struct gvk_dev *dev);

// ---- import.c ----

// The family whose first queue does the work, or `count`: the first with compute; for a device that
// imports kernels the first of those without graphics, if there is one (import.c).
uint32_t gvk_family_of(const VkQueueFamilyProperties *families, uint32_t count, bool imports);

// Whether the device takes PTX.
bool gvk_takes_ptx(const struct gvk_physical *physical);
// That as `imports` of its caps has it; `driver` is its driverVersion.
uint32_t gvk_imports(const struct gvk_physical *physical, uint32_t driver);
struct grt_kernel *gvk_kernel_import(struct grt_dev *base, const struct grt_kernel_info *info,
                                     const uint32_t *spec_values, const char *ptx);
void gvk_import_destroy(struct gvk_kernel *kernel);
// Records the launch of a kernel that was imported.
void gvk_import_launch(struct gvk_dev *dev, VkCommandBuffer cmds, const struct grt_cmd *cmd);

// ---- commands.c ----

void *gvk_cmds_create(struct grt_dev *base, const struct grt_cmd *cmds, uint32_t count,
                      uint32_t phase_count, enum grt_lane lane, bool timed);
void gvk_cmds_destroy(struct grt_dev *base, void *native);
bool gvk_cmds_run(struct grt_dev *base, void *native);
bool gvk_cmds_times(struct grt_dev *base, void *native, double *begin, double *end);
bool gvk_cmds_stamps(struct grt_dev *base, void *native, struct grt_stamps *stamps);
// A memory barrier over everything: what `from` wrote is seen by `to`.
void gvk_barrier(struct gvk_dev *dev, VkCommandBuffer cmds, VkPipelineStageFlags from,
                 VkAccessFlags written, VkPipelineStageFlags to, VkAccessFlags used);

// ---- lanes.c ----

bool gvk_lanes_create(struct gvk_dev *dev, const struct gvk_physical *physical);
void gvk_lanes_destroy(struct gvk_dev *dev);
// Queues a command buffer; allocates nothing.
bool gvk_submit(struct gvk_dev *dev, enum grt_lane lane, VkCommandBuffer cmds);
// Lists of the main lane wait for each other from now on, or no more; submits those that do.
bool gvk_hold(struct grt_dev *base, bool on);
// Waits until a lane has come to a mark.
bool gvk_lane_wait(struct grt_dev *base, enum grt_lane lane, uint64_t mark);
bool gvk_wait(struct grt_dev *base);
uint64_t gvk_lane_mark(struct grt_dev *base, enum grt_lane lane);
bool gvk_lane_after(struct grt_dev *base, enum grt_lane lane, uint64_t mark);
bool gvk_lane_passed(struct grt_dev *base, enum grt_lane lane, uint64_t mark);

// ---- clocks.c ----

// What tells the driver's clock and the host's at once; NULL: nothing does.
PFN_vkGetCalibratedTimestampsEXT gvk_clock_reader(const struct gvk_dev *dev,
                                                  const struct gvk_physical *physical);
bool gvk_clocks(struct grt_dev *base, double *device, double *host);
// Seconds between the first call of gvk_clocks() and a tick.
double gvk_clock_seconds(struct gvk_dev *dev, uint64_t tick);

#endif
