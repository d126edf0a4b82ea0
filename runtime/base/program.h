// SPDX-License-Identifier: Apache-2.0
// Inside gpurt: other programs, compilers, and what they say.
#ifndef GRT_PROGRAM_H
#define GRT_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#define GRT_PROGRAM_NONE (-1)    // there is no such program, or the system does not start it
#define GRT_PROGRAM_KILLED (-2)  // by a signal, or because it took too long

// Runs a program, found by PATH unless its name has a slash, and waits at most `seconds`. `argv`
// ends with NULL. It reads nothing; what it writes to both outputs comes back in *said, to be
// freed, or NULL when there is no memory. Returns its exit code or one of the above.
int grt_program_run(const char *const *argv, double seconds, char **said);

// The line of a compiler's words that is the mistake, without what comes before the file's name:
// the first that says "error:" or warns of an undeclared function, rather one with a place than one
// without; else the first that is no warning.
void grt_program_error(const char *said, char *line, size_t capacity);

// Whether such a line has a place, "a.k:7:".
bool grt_program_placed(const char *line);

// Gives such a line a place. NVIDIA's compiler of OpenCL passes over #line and says
// "<kernel>:98:43: ..." of the 98th line of all it was given: file and line of `text`, which
// `before` lines stood in front of, take its place. A linker says no more than the name of a
// function that it does not find: file and line of its first use. Words that have no place get
// `name` (or NULL) in front; others stay as they are.
void grt_program_place(const char *text, unsigned before, const char *name, char *line,
                       size_t capacity);

#endif
