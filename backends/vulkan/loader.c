// SPDX-License-Identifier: Apache-2.0
// The way into Vulkan: libvulkan found at run time, an instance with its entry points, and, on
// request, the Khronos validation layer. What the layer says is logged and counted, since a correct
// program is told nothing; a message is ignored only by its id and with a reason (harmless[]).
//
// Drivers: NVIDIA's user-space driver is often mounted into a container without the one-line
// manifest that the Vulkan loader looks for. gvk_add_drivers() writes that line and tells the
// loader of it through the environment of this process; nothing outside the cache folder changes.
#include "vulkan.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/library.h"
#include "base/log.h"
#include "base/whole_file.h"

#define LAYER "VK_LAYER_KHRONOS_validation"
#define MANIFEST "nvidia_icd.json"

// Messages that say nothing about gpurt: id, what the text contains, and why it is harmless.
static const struct {
    const char *id;
    const char *text;
    const char *why;
} harmless[] = {
    {"VUID-VkDeviceCreateInfo-pNext-pNext", "unknown VkStructureType (1000506000)",
     "older layers do not know VK_KHR_cooperative_matrix; the driver does"},
    {"VUID-VkDeviceCreateInfo-pNext-pNext", "unknown VkStructureType (1000593000)",
     "older layers do not know VK_NV_cooperative_matrix2; the driver does"},
    {"VUID-VkDeviceCreateInfo-pNext-pNext", "unknown VkStructureType (1000141000)",
     "older layers do not know VK_KHR_shader_bfloat16; the driver does"},
    {"VALIDATION-SETTINGS", "Both GPU Assisted Validation and Normal Core Check Validation",
     "both are wanted; GPURT_GPU_ASSISTED=1 is for tests, which may be slow"},
    {"WARNING-GPU-Assisted-Validation", "Internal Warning: Forcing ",
     "the layer enables for its own checks what gpurt does not use"},
    {"WARNING-GPU-Assisted-Validation", "Internal Warning: Ray Query validation",
     "gpurt traces no rays"},
};

const char *gvk_result_text(VkResult result) {
#define CASE(name)                                                                                 \
    case name:                                                                                     \
        return #name;
    switch (result) {
        CASE(VK_SUCCESS)
        CASE(VK_NOT_READY)
        CASE(VK_TIMEOUT)
        CASE(VK_INCOMPLETE)
        CASE(VK_ERROR_OUT_OF_HOST_MEMORY)
        CASE(VK_ERROR_OUT_OF_DEVICE_MEMORY)
        CASE(VK_ERROR_INITIALIZATION_FAILED)
        CASE(VK_ERROR_DEVICE_LOST)
        CASE(VK_ERROR_MEMORY_MAP_FAILED)
        CASE(VK_ERROR_LAYER_NOT_PRESENT)
        CASE(VK_ERROR_EXTENSION_NOT_PRESENT)
        CASE(VK_ERROR_FEATURE_NOT_PRESENT)
        CASE(VK_ERROR_INCOMPATIBLE_DRIVER)
        CASE(VK_ERROR_TOO_MANY_OBJECTS)
        CASE(VK_ERROR_FRAGMENTED_POOL)
        CASE(VK_ERROR_OUT_OF_POOL_MEMORY)
        CASE(VK_ERROR_FRAGMENTATION)
        CASE(VK_ERROR_INVALID_EXTERNAL_HANDLE)
        CASE(VK_ERROR_INVALID_SHADER_NV)
        CASE(VK_ERROR_NOT_PERMITTED_KHR)
        CASE(VK_PIPELINE_COMPILE_REQUIRED)
        CASE(VK_ERROR_UNKNOWN)
    default:
        return "a VkResult without a name";
    }
#undef CASE
}

// volk keeps the loader's entry points in globals: set once, then only read.
static bool loader_open(char *problem) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static bool is_open = false;
    bool ok = true;
    pthread_mutex_lock(&mutex);
    if (!is_open) {
        if (volkInitialize() != VK_SUCCESS || vkGetInstanceProcAddr == NULL) {
            snprintf(problem, GVK_PROBLEM_SIZE,
                     "libvulkan.so.1 is not installed: apt-get install libvulkan1");
            ok = false;
        } else if (volkGetInstanceVersion() < VK_API_VERSION_1_2) {
            snprintf(problem, GVK_PROBLEM_SIZE,
                     "libvulkan.so.1 speaks Vulkan %u.%u and gpurt needs 1.2: install a newer "
                     "libvulkan1",
                     VK_API_VERSION_MAJOR(volkGetInstanceVersion()),
                     VK_API_VERSION_MINOR(volkGetInstanceVersion()));
            ok = false;
        }
        is_open = ok;
    }
    pthread_mutex_unlock(&mutex);
    return ok;
}

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT types,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data,
                                                 void *user) {
    (void)types;
    struct grt_dev *watch = user;
    const char *id = data->pMessageIdName ? data->pMessageIdName : "";
    const char *text = data->pMessage ? data->pMessage : id;
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) {
        if (strcmp(id, harmless[i].id) == 0 && strstr(text, harmless[i].text)) {
            grt_log(GRT_LOG_DEBUG, "Vulkan validation, ignored: %s (%s)", id, harmless[i].why);
            return VK_FALSE;
        }
    }
    watch->complaints++;
    bool is_error = (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT) != 0;
    grt_log(is_error ? GRT_LOG_ERROR : GRT_LOG_WARN, "Vulkan validation: %s", text);
    return VK_FALSE;  // the call goes on as without the layer
}

static bool has_layer(void) {
    VkLayerProperties layers[64];
    uint32_t count = sizeof layers / sizeof layers[0];
    VkResult result = vkEnumerateInstanceLayerProperties(&count, layers);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(layers[i].layerName, LAYER) == 0) {
            return true;
        }
    }
    return false;
}

static bool load_entry_points(struct gvk_instance *instance, char *problem) {
#define X(name) instance->name = (PFN_vk##name)vkGetInstanceProcAddr(instance->handle, "vk" #name);
    GVK_INSTANCE_FNS(X)
    GVK_INSTANCE_EXTRA_FNS(X)
#undef X
    const char *missing = NULL;
#define X(name)                                                                                    \
    if (instance->name == NULL) {                                                                  \
        missing = "vk" #name;                                                                      \
    }
    GVK_INSTANCE_FNS(X)
#undef X
    if (missing) {
        snprintf(problem, GVK_PROBLEM_SIZE, "libvulkan.so.1 has no %s: install a newer libvulkan1",
                 missing);
    }
    return missing == NULL;
}

bool gvk_instance_create(struct gvk_instance *instance, struct grt_dev *watch, char *problem) {
    *instance = (struct gvk_instance){0};
    if (!loader_open(problem)) {
        return false;
    }
    bool validate = watch != NULL && has_layer();
    if (watch != NULL) {
        watch->validated = validate;
    }
    if (watch != NULL && !validate) {
        grt_log(GRT_LOG_WARN, "validation was asked for, but " LAYER " is not installed: apt-get "
                              "install vulkan-validationlayers");
    }

    // The messenger's description also hangs on the instance's: then creation and destruction of
    // the instance itself are watched too.
    VkDebugUtilsMessengerCreateInfoEXT messenger = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                           VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
        .pfnUserCallback = on_message,
        .pUserData = watch,
    };
    const VkValidationFeatureEnableEXT enable[] = {
        VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,
        VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT,
        VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_RESERVE_BINDING_SLOT_EXT,
    };
    const char *assisted = getenv("GPURT_GPU_ASSISTED");
    const VkValidationFeaturesEXT checks = {
        .sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
        .pNext = &messenger,
        .enabledValidationFeatureCount = assisted && strcmp(assisted, "1") == 0 ? 3 : 1,
        .pEnabledValidationFeatures = enable,
    };
    const char *layers[] = {LAYER};
    const char *extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME,
                                VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
    const VkApplicationInfo app = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pApplicationName = "gpurt",
        .pEngineName = "gpurt",
        .apiVersion = VK_API_VERSION_1_3,
    };
    const VkInstanceCreateInfo create = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pNext = validate ? &checks : NULL,
        .pApplicationInfo = &app,
        .enabledLayerCount = validate ? 1 : 0,
        .ppEnabledLayerNames = layers,
        .enabledExtensionCount = validate ? 2 : 0,
        .ppEnabledExtensionNames = extensions,
    };
    VkResult result = vkCreateInstance(&create, NULL, &instance->handle);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
        const char *name = getenv("VK_DRIVER_FILES") ? "VK_DRIVER_FILES" : "VK_ICD_FILENAMES";
        const char *files = getenv(name);
        if (files) {
            snprintf(problem, GVK_PROBLEM_SIZE,
                     "no Vulkan driver where %s says, '%.90s': unset it to have the installed ones",
                     name, files);
        } else {
            snprintf(problem, GVK_PROBLEM_SIZE,
                     "no Vulkan driver is installed: install the GPU vendor's, or for a CPU device "
                     "apt-get install mesa-vulkan-drivers");
        }
        return false;
    }
    if (result != VK_SUCCESS) {
        snprintf(problem, GVK_PROBLEM_SIZE, "vkCreateInstance failed: %s (%d)%s",
                 gvk_result_text(result), (int)result,
                 validate ? "; the validation layer may be at fault: try without it" : "");
        return false;
    }
    if (!load_entry_points(instance, problem)) {
        goto undo_instance;
    }
    if (validate && instance->CreateDebugUtilsMessengerEXT) {
        result = instance->CreateDebugUtilsMessengerEXT(instance->handle, &messenger, NULL,
                                                        &instance->messenger);
        if (result != VK_SUCCESS) {
            snprintf(problem, GVK_PROBLEM_SIZE, "vkCreateDebugUtilsMessengerEXT failed: %s (%d)",
                     gvk_result_text(result), (int)result);
            goto undo_instance;
        }
    }
    return true;

undo_instance:
    gvk_instance_destroy(instance);
    return false;
}

void gvk_instance_destroy(struct gvk_instance *instance) {
    if (instance->messenger) {
        instance->DestroyDebugUtilsMessengerEXT(instance->handle, instance->messenger, NULL);
    }
    if (instance->handle && instance->DestroyInstance) {
        instance->DestroyInstance(instance->handle, NULL);
    }
    *instance = (struct gvk_instance){0};
}

// ---- drivers that the loader does not find ----

static bool write_manifest(const char *dir, const char *library, char *path, size_t size,
                           bool *anew) {
    char text[1024];
    int length = snprintf(path, size, "%s/" MANIFEST, dir);
    int text_length =
        snprintf(text, sizeof text,
                 "{\"file_format_version\": \"1.0.0\", \"ICD\": {\"library_path\": \"%s\", "
                 "\"api_version\": \"1.3.277\"}}\n",
                 library);
    if (length <= 0 || (size_t)length >= size || text_length <= 0 ||
        (size_t)text_length >= sizeof text) {
        return false;
    }
    *anew = access(path, F_OK) != 0;
    bool before = grt_quiet(true);  // there are other places to try
    bool saved = grt_whole_file_save(path, text, (uint64_t)text_length);
    grt_quiet(before);
    return saved;
}

static bool is_vulkan_driver(const char *library, char *note) {
    void *handle =
        grt_probe_library(library, note) ? dlopen(library, RTLD_LAZY | RTLD_LOCAL) : NULL;
    if (handle == NULL) {
        return false;
    }
    bool is_driver = dlsym(handle, "vk_icdGetInstanceProcAddr") != NULL;
    dlclose(handle);
    return is_driver;
}

bool gvk_add_drivers(char *note, bool *anew) {
    // The user's own choice of drivers stands, also when it is empty of hardware.
    if (getenv("VK_ICD_FILENAMES") || getenv("VK_DRIVER_FILES") || getenv("VK_ADD_DRIVER_FILES")) {
        return false;
    }
    // The EGL library works without X libraries, the GLX one needs libX11 and libXext.
    const char *const libraries[] = {"libEGL_nvidia.so.0", "libGLX_nvidia.so.0"};
    const char *library = NULL;
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0] && library == NULL; i++) {
        library = is_vulkan_driver(libraries[i], note) ? libraries[i] : NULL;
    }
    if (library == NULL) {
        return false;
    }
    char temp_dir[512];
    char path[1024];
    const char *dir = grt_cache_dir(NULL);
    if (dir == NULL && grt_cache_temp_dir(temp_dir, sizeof temp_dir)) {
        dir = temp_dir;
    }
    if (dir == NULL || !write_manifest(dir, library, path, sizeof path, anew) ||
        setenv("VK_ADD_DRIVER_FILES", path, 1) != 0) {
        return false;
    }
    snprintf(note, GVK_PROBLEM_SIZE,
             "the Vulkan loader did not know %s; made a manifest for it, %.160s", library, path);
    return true;
}
