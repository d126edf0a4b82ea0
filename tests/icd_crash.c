// SPDX-License-Identifier: Apache-2.0
// A Vulkan driver that misbehaves as soon as the loader speaks to it. Built three times: MISDEED 0
// crashes, 1 hangs, 2 ends the process, as drivers have been seen to do.
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((visibility("default"))) int32_t
vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version);
__attribute__((visibility("default"))) void (*vk_icdGetInstanceProcAddr(void *instance,
                                                                        const char *name))(void);

int32_t vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version) {
    (void)version;
#if MISDEED == 0
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
#elif MISDEED == 1
    for (;;) {
        sleep(1);
    }
#else
    _exit(3);
#endif
    return 0;
}

void (*vk_icdGetInstanceProcAddr(void *instance, const char *name))(void) {
    (void)instance;
    (void)name;
    return NULL;
}
