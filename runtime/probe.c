// SPDX-License-Identifier: Apache-2.0
// Asks a backend for its devices in a child process: a driver that crashes, hangs or ends the
// process while it is loaded (all seen) then costs one line of the list. The child sends back plain
// structs through a pipe.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"
#include "report.h"

#define PROBE_SECONDS 10.0

struct answer {
    int32_t count;
    char problem[256];
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double time_limit(void) {
    const char *text = getenv("GPURT_PROBE_SECONDS");
    double seconds = text ? strtod(text, NULL) : 0.0;
    return seconds > 0.0 ? seconds : PROBE_SECONDS;
}

static bool send_all(int fd, const void *data, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, (const char *)data + done, size - done);
        if (n <= 0) {
            return false;
        }
        done += (size_t)n;
    }
    return true;
}

static bool receive_all(int fd, void *data, size_t size, double deadline) {
    for (size_t done = 0; done < size;) {
        struct pollfd waiting = {.fd = fd, .events = POLLIN};
        double left = deadline - now();
        int ready = left > 0.0 ? poll(&waiting, 1, (int)(left * 1e3) + 1) : 0;
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        ssize_t n = ready > 0 ? read(fd, (char *)data + done, size - done) : 0;
        if (n <= 0) {
            return false;
        }
        done += (size_t)n;
    }
    return true;
}

// Never returns. Whatever the driver prints is not ours to show: stdout may be somebody's data.
static void child(enum grt_backend_id id, struct grt_dev_info *infos, uint32_t capacity, int fd) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    signal(SIGPIPE, SIG_DFL);
    int null = open("/dev/null", O_WRONLY);
    if (null >= 0) {
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
    }
    struct answer answer = {0};
    answer.count = grt_backends[id]->list(infos, capacity, answer.problem);
    if (answer.count > (int32_t)capacity) {
        answer.count = (int32_t)capacity;
    }
    size_t size = answer.count > 0 ? (size_t)answer.count * sizeof *infos : 0;
    bool sent = send_all(fd, &answer, sizeof answer) && send_all(fd, infos, size);
    _exit(sent ? 0 : 1);  // no exit handlers: the driver's may be as broken as the driver
}

// Says in `problem` how the child ended when it did not answer.
static void explain(pid_t pid, bool late, char *problem) {
    if (late) {
        kill(pid, SIGKILL);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (late) {
        snprintf(problem, 256, "the driver did not answer within %g s while listing its devices",
                 time_limit());
    } else if (WIFSIGNALED(status)) {
        snprintf(problem, 256, "the driver crashed (signal %d, %s) while listing its devices",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else {
        snprintf(problem, 256,
                 "the driver ended the process (exit code %d) while listing its devices",
                 WEXITSTATUS(status));
    }
}

int32_t grt_probe(enum grt_backend_id id, struct grt_dev_info *infos, uint32_t capacity,
                  char *problem) {
    int ends[2];
    problem[0] = '\0';
    if (pipe(ends) != 0) {
        snprintf(problem, 256, "no pipe for the probe: %s", strerror(errno));
        return -1;
    }
    pid_t pid = fork();
    if (pid < 0) {
        snprintf(problem, 256, "no child process for the probe: %s", strerror(errno));
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    if (pid == 0) {
        close(ends[0]);
        child(id, infos, capacity, ends[1]);
    }
    close(ends[1]);
    double deadline = now() + time_limit();
    struct answer answer = {.count = -1};
    bool answered = receive_all(ends[0], &answer, sizeof answer, deadline) &&
                    answer.count <= (int32_t)capacity &&
                    (answer.count <= 0 ||
                     receive_all(ends[0], infos, (size_t)answer.count * sizeof *infos, deadline));
    close(ends[0]);
    if (!answered) {
        explain(pid, now() >= deadline, problem);
        return -1;
    }
    // A child that answered may still hang in its exit; it is not waited for longer than it takes.
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    answer.problem[sizeof answer.problem - 1] = '\0';
    memcpy(problem, answer.problem, sizeof answer.problem);
    return answer.count;
}
