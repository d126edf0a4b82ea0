// SPDX-License-Identifier: Apache-2.0
// A driver that misbehaves as soon as a loader speaks to it, Vulkan's when it negotiates versions
// and OpenCL's when it asks for platforms. Built four times: MISDEED 0 crashes, 1 hangs, 2 ends the
// process, as drivers have been seen to do, and 3 crashes already while it is opened.
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef void function(void);

EXPORT int32_t vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version);
EXPORT function *vk_icdGetInstanceProcAddr(void *instance, const char *name);
EXPORT int32_t clIcdGetPlatformIDsKHR(uint32_t capacity, void **platforms, uint32_t *count);
EXPORT int32_t clGetPlatformInfo(void *platform, uint32_t what, size_t size, void *value,
                                 size_t *got);
EXPORT function *clGetExtensionFunctionAddress(const char *name);

#if MISDEED == 3
__attribute__((constructor))
#endif
static void
misbehave(void) {
#if MISDEED == 1
    for (;;) {
        sleep(1);
    }
#elif MISDEED == 2
    _exit(3);
#else
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
#endif
}

// ---- Vulkan ----

int32_t vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version) {
    (void)version;
    misbehave();
    return 0;
}

function *vk_icdGetInstanceProcAddr(void *instance, const char *name) {
    (void)instance, (void)name;
    return NULL;
}

// ---- OpenCL ----

int32_t clIcdGetPlatformIDsKHR(uint32_t capacity, void **platforms, uint32_t *count) {
    (void)capacity, (void)platforms, (void)count;
    misbehave();
    return -1001;
}

int32_t clGetPlatformInfo(void *platform, uint32_t what, size_t size, void *value, size_t *got) {
    (void)platform, (void)what, (void)size, (void)value, (void)got;
    return -32;
}

function *clGetExtensionFunctionAddress(const char *name) {
    return strcmp(name, "clIcdGetPlatformIDsKHR") == 0 ? (function *)clIcdGetPlatformIDsKHR
           : strcmp(name, "clGetPlatformInfo") == 0    ? (function *)clGetPlatformInfo
                                                       : NULL;
}
