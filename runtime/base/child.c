// SPDX-License-Identifier: Apache-2.0
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "clock.h"
#include "log.h"

#define HOW 160
#define KILL_SECONDS 2.0  // a process inside a driver's call may not die at once

// Never returns.
static void be_child(struct grt_child *parent, grt_child_fn *fn, void *context) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    // A program's handlers for crashes (a test runner's jump back into its tests) are for its own.
    static const int crashes[] = {SIGPIPE, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS};
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++) {
        signal(crashes[i], SIG_DFL);
    }
    // Ctrl-C, a hang-up and a batch system's signals reach the whole group of processes; what they
    // mean is the parent's to say.
    static const int stops[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
        signal(stops[i], SIG_IGN);
    }
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    int null = open("/dev/null", O_WRONLY);
    if (null >= 0) {
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
    }
    _exit(fn(parent, context));  // no exit handlers: the driver's may be as broken as the driver
}

bool grt_child_start(struct grt_child *child, grt_child_fn *fn, void *context, char *why) {
    int down[2], up[2];
    *child = GRT_NO_CHILD;
    if (pipe(down) != 0) {
        goto failed;
    }
    if (pipe(up) != 0) {
        goto undo_down;
    }
    // Forked processes share what is buffered: it would be printed twice.
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        goto undo_up;
    }
    if (pid == 0) {
        close(down[1]);
        close(up[0]);
        be_child(&(struct grt_child){0, down[0], up[1]}, fn, context);
    }
    close(down[0]);
    close(up[1]);
    *child = (struct grt_child){(int)pid, up[0], down[1]};
    return true;
undo_up:
    close(up[0]);
    close(up[1]);
undo_down:
    close(down[0]);
    close(down[1]);
failed:
    snprintf(why, 256, "no child process: %s", strerror(errno));
    return false;
}

bool grt_child_send(const struct grt_child *child, const void *data, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t n = write(child->to, (const char *)data + done, size - done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        done += (size_t)n;
    }
    return true;
}

enum grt_child_news grt_child_receive(const struct grt_child *child, void *data, size_t size,
                                      double seconds, bool (*stop)(void)) {
    double deadline = grt_seconds() + seconds;
    for (size_t done = 0; done < size;) {
        struct pollfd waiting = {.fd = child->from, .events = POLLIN};
        double left = deadline - grt_seconds();
        if (stop && stop()) {
            return GRT_CHILD_STOPPED;
        }
        if (seconds > 0 && left <= 0) {
            return GRT_CHILD_LATE;
        }
        int ready = poll(&waiting, 1, seconds > 0 ? (int)(left * 1e3) + 1 : -1);
        if (ready <= 0) {
            continue;  // the time is over, or a signal came: both are looked at above
        }
        ssize_t n = read(child->from, (char *)data + done, size - done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return GRT_CHILD_ENDED;
        }
        done += (size_t)n;
    }
    return GRT_CHILD_ANSWERED;
}

static void say_how(int status, char *how) {
    if (WIFSIGNALED(status)) {
        snprintf(how, HOW, "crashed (signal %d, %s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    } else {
        snprintf(how, HOW, "ended the process (exit code %d)", WEXITSTATUS(status));
    }
}

void grt_child_end(struct grt_child *child, char *how) {
    int status = 0;
    if (how) {
        how[0] = '\0';
    }
    if (child->pid <= 0) {
        return;
    }
    // Closing its pipe tells a child that waits for the next request to go; one that has closed its
    // own is on its way out, and is given the time to say how.
    struct pollfd gone = {.fd = child->from, .events = POLLIN};
    bool ending = poll(&gone, 1, 0) > 0 && (gone.revents & POLLHUP);
    double deadline = grt_seconds() + KILL_SECONDS;
    if (!ending) {
        kill(child->pid, SIGKILL);
    }
    pid_t ended = 0;
    while (ended == 0 && grt_seconds() < deadline) {
        ended = waitpid(child->pid, &status, WNOHANG);
        if (ended == 0) {
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
    }
    if (ending && ended == 0) {
        kill(child->pid, SIGKILL);
    }
    if (ending && ended > 0 && how) {
        say_how(status, how);
    }
    close(child->from);
    close(child->to);
    *child = GRT_NO_CHILD;
}

// ---- a trial ----

struct trial {
    void (*fn)(void *context);
    void *context;
};

static int try_it(struct grt_child *parent, void *context) {
    const struct trial *trial = context;
    trial->fn(trial->context);
    return grt_child_send(parent, "", 1) ? 0 : 1;
}

bool grt_child_survives(void (*fn)(void *context), void *context, double seconds, char *how) {
    struct grt_child child = GRT_NO_CHILD;
    struct trial trial = {fn, context};
    char why[256] = "", byte;
    if (!grt_child_start(&child, try_it, &trial, why)) {
        snprintf(how, HOW, "cannot be tried, there is %.120s", why);
        return false;
    }
    enum grt_child_news news = grt_child_receive(&child, &byte, 1, seconds, NULL);
    grt_child_end(&child, how);
    if (news == GRT_CHILD_LATE) {
        snprintf(how, HOW, "did not come back within %g s", seconds);
    }
    return news == GRT_CHILD_ANSWERED;
}
