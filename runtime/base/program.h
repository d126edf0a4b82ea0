// SPDX-License-Identifier: Apache-2.0
// Inside gpurt: other programs, compilers, and what they say.
#ifndef GRT_PROGRAM_H
#define GRT_PROGRAM_H

#include <stddef.h>

#define GRT_PROGRAM_NONE (-1)    // there is no such program, or the system does not start it
#define GRT_PROGRAM_KILLED (-2)  // by a signal, or because it took too long

// Runs a program, found by PATH unless its name has a slash, and waits at most `seconds`. `argv`
// ends with NULL. It reads nothing; what it writes to both outputs comes back in *said, to be
// freed, or NULL when there is no memory. Returns its exit code or one of the above.
int grt_program_run(const char *const *argv, double seconds, char **said);

// The first line of a compiler's words that says "error:" or warns of an undeclared function, or
// the first at all, without what comes before the file's name.
void grt_program_error(const char *said, char *line, size_t capacity);

// NVIDIA's compiler of OpenCL passes over #line and says "<kernel>:98:43: ..." of the 98th line of
// all it was given. Puts file and line of `text`, which `before` lines stood in front of, in their
// place; leaves other words as they are.
void grt_program_place(const char *text, unsigned before, char *line, size_t capacity);

#endif
