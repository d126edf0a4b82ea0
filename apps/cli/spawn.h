// SPDX-License-Identifier: Apache-2.0
// Programs beside this one: trials of a sweep, benches on several devices at once.
#ifndef APPS_SPAWN_H
#define APPS_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#define SPAWN_NO_PROGRAM 127  // exit code: what was to be started is not there

// Starts a program, found by PATH unless its name has a slash, that appends what it writes to these
// files, reads nothing and gets SIGTERM when this process ends. It is a group of its own: Ctrl-C in
// the terminal does not reach it. -1 with the sentence: it cannot be started. `hold` is kept open
// in it; -1: nothing.
pid_t spawn_program(char *const *argv, const char *output, const char *errors, int hold);
// Whether it has ended. *known: false where another has waited for it; *code: its exit code, below
// 0 a signal.
bool spawn_ended(pid_t pid, bool *known, int *code);

#endif
