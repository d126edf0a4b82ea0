// SPDX-License-Identifier: Apache-2.0
// Where results go: stdout, or a file that appears under its name only when it is complete.
#ifndef APPS_OUTPUT_H
#define APPS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "gpurt/gpurt.h"

struct output {
    FILE *file;
    struct grt_whole_file *whole;  // what the stream writes to; NULL: stdout
    int error;                     // errno of the first write that failed
    bool said;                     // so it was, and output_close() need not
};

// path NULL or "-" is stdout; whole_file.h says what becomes of links, devices and pipes. Returns
// an exit code, 0 when open; a failure is said.
int output_open(struct output *output, const char *path);
// A line with text from anywhere in it, made visible.
void output_line(FILE *file, const char *format, ...) GRT_PRINTF(2, 3);
// Hands over what was printed so far; false when that failed, now or before.
bool output_flush(struct output *output);
// Ends the writing; unless `keep`, the file is thrown away. Returns an exit code; a failure is
// said, except that a reader who closed the pipe has what he wanted.
int output_close(struct output *output, bool keep);
// The same for a command that has come to `code`: rows that could not be written are why it failed.
int output_end(struct output *output, bool keep, int code);

#endif
