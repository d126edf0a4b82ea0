// SPDX-License-Identifier: Apache-2.0
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "command.h"
#include "gpurt/status.h"

// Only what may be called between fork() and execve().
static void be_program(char *const *argv, int output, int errors, int hold, pid_t parent) {
    static const int defaults[] = {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGALRM};
    sigset_t none;
    sigemptyset(&none);
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        signal(defaults[i], SIG_DFL);
    }
    setpgid(0, 0);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
    if (getppid() != parent) {
        _exit(COMMAND_RESUMABLE);
    }
    int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    if (hold >= 0) {
        fcntl(hold, F_SETFD, 0);
    }
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(argv[0], argv);
    _exit(SPAWN_NO_PROGRAM);
}

static int open_file(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) {
        grt_fail(GRT_NO_OUTPUT, "cannot create %s: %s", path, strerror(errno));
    }
    return fd;
}

pid_t spawn_program(char *const *argv, const char *output, const char *errors, int hold) {
    pid_t parent = getpid(), pid = -1;
    if (!argv || !argv[0]) {
        grt_fail(GRT_INVALID, "no program to start");
        return -1;
    }
    int fd = open_file(output), other = fd >= 0 ? open_file(errors) : -1;
    if (fd >= 0 && other >= 0) {
        fflush(NULL);
        pid = fork();
        if (pid == 0) {
            be_program(argv, fd, other, hold, parent);
        }
        if (pid < 0) {
            grt_fail(GRT_IO, "no process for %s: %s", argv[0], strerror(errno));
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    if (other >= 0) {
        close(other);
    }
    return pid;
}

bool spawn_ended(pid_t pid, bool *known, int *code) {
    int status = 0;
    pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR)) {
        return false;
    }
    *known = got > 0;
    *code = got > 0 && WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    return true;
}
