// SPDX-License-Identifier: Apache-2.0
#include "crash.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gpurt/gpurt.h"
#include "gpurt/unfinished.h"
#include "talk.h"

#define SIGNALS(X) X(SIGSEGV) X(SIGBUS) X(SIGILL) X(SIGFPE) X(SIGABRT)

static char advice[256];  // made before it is needed: a handler may hardly call anything

static void print(const char *text) {
    (void)!write(STDERR_FILENO, text, strlen(text));
}

static void on_crash(int signal_number) {
    const char *name = "a signal";
#define X(number)                                                                                  \
    if (signal_number == (number))                                                                 \
        name = #number;
    SIGNALS(X)
#undef X
    const char *driver = grt_dev_opened();
    talk_restore();
    print("gpurt: crashed (");
    print(name);
    print(")");
    print(driver[0] ? " while this driver was in use: " : " with no driver in use");
    print(driver);
    print(advice);
    print("\n");
    grt_unfinished_unlink();
    raise(signal_number);  // with its default action, by SA_RESETHAND
}

void crash_init(void) {
// A sanitizer has more to say.
#ifndef __SANITIZE_ADDRESS__
    static const int signals[] = {
#define X(number) number,
        SIGNALS(X)
#undef X
    };
    static char stack[1 << 16];  // the own one may be what is used up
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        snprintf(advice, sizeof advice,
                 "; address space is limited to %llu MiB (ulimit -v), and drivers crash where they "
                 "get no memory: raise the limit, or choose another --device",
                 (unsigned long long)(limit.rlim_cur >> 20));
    } else {
        snprintf(advice, sizeof advice, "; another --device may serve, `gpurt devices` lists them");
    }
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction action = {.sa_handler = on_crash,
                                   .sa_flags = (int)SA_RESETHAND | SA_ONSTACK | SA_NODEFER};
        sigemptyset(&action.sa_mask);
        sigaction(signals[i], &action, NULL);
    }
#endif
}
