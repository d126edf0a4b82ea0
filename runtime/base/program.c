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

// ---- what compilers say ----

// Where `word` stands in a line, in any case, with spaces allowed before a colon at its end
// ("error   :" is ptxas's way); NULL: nowhere.
static const char *find_word(const char *at, size_t length, const char *word) {
    size_t size = strlen(word);
    bool colon = word[size - 1] == ':';
    size -= colon;
    for (size_t i = 0; i + size + colon <= length; i++) {
        if (strncasecmp(at + i, word, size) == 0) {
            size_t end = i + size;
            while (colon && end < length && at[end] == ' ') {
                end++;
            }
            if (!colon || (end < length && at[end] == ':')) {
                return at + i;
            }
        }
    }
    return NULL;
}

// Whether a line has a place, "a.k:7:".
static bool has_place(const char *at, size_t length) {
    for (size_t i = 1; i + 1 < length; i++) {
        size_t digits = at[i] == ':' ? strspn(at + i + 1, "0123456789") : 0;
        if (digits > 0 && i + 1 + digits < length && at[i + 1 + digits] == ':') {
            return true;
        }
    }
    return false;
}

// A linker's words of a function that is nowhere; NULL: the line has none.
static const char *find_open(const char *at, size_t length) {
    const char *found = find_word(at, length, "unresolved extern function");
    return found ? found : find_word(at, length, "undefined reference to");
}

// The first line of the highest rank is the mistake. NVIDIA's compiler only warns of an undeclared
// function, and its linker, which does not find it, names no line.
enum rank { SILENCE, WARNING, WORDS, MISTAKE, PLACED_MISTAKE };
static enum rank rank_of(const char *at, size_t length) {
    bool mistake = find_word(at, length, "error:") || find_word(at, length, "fatal:") ||
                   find_word(at, length, "implicit declaration of function") ||
                   find_open(at, length);
    if (mistake) {
        return has_place(at, length) ? PLACED_MISTAKE : MISTAKE;
    }
    if (find_word(at, length, "warning:") || find_word(at, length, "note:")) {
        return WARNING;
    }
    return strspn(at, " \t\r") < length ? WORDS : SILENCE;
}

void grt_program_error(const char *said, char *line, size_t capacity) {
    const char *found = NULL;
    size_t found_length = 0;
    enum rank rank = SILENCE;
    for (const char *at = said ? said : ""; *at;) {
        size_t length = strcspn(at, "\n");
        enum rank other = rank_of(at, length);
        if (other > rank) {
            rank = other;
            found = at;
            found_length = length;
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
    if (rank == SILENCE) {
        snprintf(line, capacity, "the compiler said nothing");
    } else if (rank == WARNING) {
        snprintf(line, capacity,
                 "the compiler refuses it and names no mistake: is every function defined?");
    } else {
        snprintf(line, capacity, "%.*s", (int)found_length, found);
    }
}

bool grt_program_placed(const char *line) {
    return has_place(line, strlen(line));
}

// The line of `text`, from 1 on, that has the first use of a name; 0: none has.
static unsigned line_with(const char *text, const char *name, size_t length) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    unsigned line = 1;
    for (const char *at = text; *at;) {
        size_t word = strspn(at, letters);
        if (word == length && length > 0 && memcmp(at, name, length) == 0) {
            return line;
        }
        line += word == 0 && *at == '\n';
        at += word > 0 ? word : 1;
    }
    return 0;
}

// File and line that the directives of `text` give its `wanted`-th line. False: they give none.
static bool place_of(const char *text, unsigned wanted, char file[256], unsigned *number) {
    const char *at = text;
    file[0] = '\0';
    *number = 0;  // that the file has for the line that `at` begins
    for (unsigned k = 1; k < wanted && *at; k++) {
        if (sscanf(at, "#line %u \"%255[^\"]\"", number, file) != 2) {
            (*number)++;
        }
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    return file[0] != '\0';
}

void grt_program_place(const char *text, unsigned before, const char *name, char *line,
                       size_t capacity) {
    unsigned wanted = 0, number = 0;
    int rest = 0;
    char file[256];
    char *words = strdup(line);
    if (!words) {
        return;
    }
    bool counted = sscanf(words, "<kernel>:%u:%n", &wanted, &rest) == 1 && rest > 0;
    const char *open = find_open(words, strlen(words));
    const char *quoted = open ? strchr(open, '\'') : NULL;
    if (counted) {
        wanted = wanted > before ? wanted - before : 0;
        if (wanted > 0 && place_of(text, wanted, file, &number)) {
            snprintf(line, capacity, "%s:%u:%s", file, number, words + rest);
        }
    } else if (!grt_program_placed(words)) {
        wanted = quoted ? line_with(text, quoted + 1, strcspn(quoted + 1, "'")) : 0;
        if (wanted > 0 && place_of(text, wanted, file, &number)) {
            snprintf(line, capacity, "%s:%u: %s", file, number, open);
        } else if (name) {
            snprintf(line, capacity, "%s: %s", name, words);
        }
    }
    free(words);
}
