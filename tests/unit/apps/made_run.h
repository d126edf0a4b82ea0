// SPDX-License-Identifier: Apache-2.0
// Runs a verb within a test_*.c program, and looks at the rows and words that come of it.
#ifndef TESTS_MADE_RUN_H
#define TESTS_MADE_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static json_t *made_rows, *made_head, *made_notes;
static char made_said[1 << 15], made_out[1 << 16];
static bool made_forks;  // verbs that run once in a process have one of their own

static inline void made_read(FILE *file, char *text, size_t size) {
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

// Runs a command; what it said on stderr is in made_said, what it printed in made_out.
static inline int made_plain(int (*run)(int argc, char **argv), const char *line) {
    static char words[2048];
    char *argv[128] = {NULL};
    int argc = 0;
    snprintf(words, sizeof words, "%s", line);
    for (char *rest = words, *word; (word = strtok_r(rest, " ", &rest)) && argc < 127;) {
        argv[argc++] = word;
    }
    FILE *said = tmpfile(), *out = tmpfile();
    fflush(NULL);
    int keep[2] = {dup(1), dup(2)};
    dup2(fileno(out), 1);
    dup2(fileno(said), 2);
    int code = 0;
    pid_t child = made_forks ? fork() : -1;
    if (child > 0) {
        waitpid(child, &code, 0);
        code = WIFEXITED(code) ? WEXITSTATUS(code) : -1;
    } else {
        code = run(argc, argv);
    }
    fflush(NULL);
    if (child == 0) {
        _exit(code);
    }
    dup2(keep[0], 1);
    dup2(keep[1], 2);
    close(keep[0]);
    close(keep[1]);
    made_read(said, made_said, sizeof made_said);
    made_read(out, made_out, sizeof made_out);
    return code;
}

// The same with rows for programs, which are read.
static inline int made_run(int (*run)(int argc, char **argv), const char *line) {
    char whole[2048];
    snprintf(whole, sizeof whole, "%s --format jsonl", line);
    int code = made_plain(run, whole);
    json_decref(made_rows);
    json_decref(made_head);
    json_decref(made_notes);
    made_rows = json_array();
    made_notes = json_object();
    made_head = NULL;
    char *rest = made_out;
    for (char *text; (text = strtok_r(rest, "\n", &rest));) {
        json_t *row = json_loads(text, 0, NULL);
        if (!row) {
            fail_msg("no JSON: %s", text);
        }
        if (!made_head) {
            made_head = row;
        } else if (json_object_size(row) == 1) {
            json_object_update(made_notes, row);
            json_decref(row);
        } else {
            json_array_append_new(made_rows, row);
        }
    }
    return code;
}

static inline size_t made_count(void) {
    return json_array_size(made_rows);
}

static inline const json_t *made_cell(size_t row, const char *key) {
    return json_object_get(json_array_get(made_rows, row), key);
}

static inline bool made_known(size_t row, const char *key) {
    return made_cell(row, key) && !json_is_null(made_cell(row, key));
}

static inline void made_number(size_t row, const char *key, double want, int line) {
    double got = json_number_value(made_cell(row, key));
    if (!made_known(row, key) || !(fabs(got - want) <= 2e-6 * fabs(want) + 1e-12)) {
        fail_msg("line %d, row %zu: %s is %.9g, not %.9g", line, row, key, got, want);
    }
}
#define NUMBER(row, key, want) made_number(row, key, want, __LINE__)

static inline void made_text(size_t row, const char *key, const char *want, int line) {
    const char *got = json_string_value(made_cell(row, key));
    if (!got || strcmp(got, want) != 0) {
        fail_msg("line %d, row %zu: %s is '%s', not '%s'", line, row, key, got ? got : "-", want);
    }
}
#define TEXT(row, key, want) made_text(row, key, want, __LINE__)

static inline void made_tells(const char *part, bool wanted, int line) {
    if (!strstr(made_said, part) == wanted) {
        fail_msg("line %d: '%s' is %ssaid: %s", line, part, wanted ? "not " : "", made_said);
    }
}
#define SAID(part) made_tells(part, true, __LINE__)
#define NOT_SAID(part) made_tells(part, false, __LINE__)

#endif
