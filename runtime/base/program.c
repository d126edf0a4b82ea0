// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

extern char **environ;

#define MOST_WORDS ((size_t)1 << 20)

// Reads to the end of the pipe, or until the time is over: then false.
static bool listen_to(int fd, double until, char **said) {
    size_t used = 0, room = 0;
    for (;;) {
        double left = until - grt_seconds();
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int got = left > 0 ? poll(&ready, 1, (int)(left * 1000) + 1) : 0;
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        if (room - used < 4096 && used < MOST_WORDS) {
            char *more = realloc(*said, room + 65536);
            if (!more) {
                return false;
            }
            *said = more;
            room += 65536;
        }
        char rest[4096];
        bool keep = used < MOST_WORDS;
        ssize_t n = read(fd, keep ? *said + used : rest, keep ? room - used - 1 : sizeof rest);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        used += keep && n > 0 ? (size_t)n : 0;
        (*said)[used] = '\0';
        if (n <= 0) {
            return true;
        }
    }
}

int grt_program_run(const char *const *argv, double seconds, char **said) {
    int ends[2], status = 0;
    pid_t pid = -1;
    posix_spawn_file_actions_t actions;
    *said = NULL;
    if (pipe(ends) != 0) {
        return GRT_PROGRAM_NONE;
    }
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    int code = posix_spawn_file_actions_init(&actions);
    if (code == 0) {
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
        code = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[1]);
    if (code != 0) {
        close(ends[0]);
        return GRT_PROGRAM_NONE;
    }
    bool ended = listen_to(ends[0], grt_seconds() + seconds, said);
    close(ends[0]);
    if (!ended) {
        kill(pid, SIGKILL);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!ended || !WIFEXITED(status)) {
        return GRT_PROGRAM_KILLED;
    }
    // 127: what a shell, and some systems' posix_spawnp(), say of a program that is not there.
    return WEXITSTATUS(status) == 127 ? GRT_PROGRAM_NONE : WEXITSTATUS(status);
}

static bool has_word(const char *at, size_t length, const char *word) {
    size_t size = strlen(word);
    for (size_t i = 0; i + size <= length; i++) {
        if (strncasecmp(at + i, word, size) == 0) {
            return true;
        }
    }
    return false;
}

void grt_program_error(const char *said, char *line, size_t capacity) {
    const char *found = NULL;
    size_t found_length = 0;
    for (const char *at = said ? said : ""; *at;) {
        size_t length = strcspn(at, "\n");
        // NVIDIA's compiler only warns of an undeclared function, and its linker, which does not
        // find it, names no line.
        bool error = has_word(at, length, "error:") ||
                     has_word(at, length, "implicit declaration of function");
        if (length > 0 && (error || !found)) {
            found = at;
            found_length = length;
        }
        if (error) {
            break;
        }
        at += length + (at[length] == '\n');
    }
    // glslang and PoCL begin with the word.
    static const char *const words[] = {"ERROR: ", "error: "};
    for (size_t i = 0; found && i < sizeof words / sizeof words[0]; i++) {
        if (strncmp(found, words[i], strlen(words[i])) == 0) {
            found += strlen(words[i]);
            found_length -= strlen(words[i]);
        }
    }
    if (found) {
        snprintf(line, capacity, "%.*s", (int)found_length, found);
    } else {
        snprintf(line, capacity, "the compiler said nothing");
    }
}

void grt_program_place(const char *text, unsigned before, char *line, size_t capacity) {
    unsigned wanted = 0;
    int rest = 0;
    if (sscanf(line, "<kernel>:%u:%n", &wanted, &rest) != 1 || rest == 0 || wanted <= before) {
        return;
    }
    wanted -= before;
    char file[256] = "";
    unsigned number = 0;  // that the file has for the line that `at` begins
    const char *at = text;
    for (unsigned k = 1; k < wanted && *at; k++) {
        if (sscanf(at, "#line %u \"%255[^\"]\"", &number, file) != 2) {
            number++;
        }
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    if (file[0] != '\0') {
        char *words = strdup(line + rest);
        if (words) {
            snprintf(line, capacity, "%s:%u:%s", file, number, words);
            free(words);
        }
    }
}
