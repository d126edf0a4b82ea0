// SPDX-License-Identifier: Apache-2.0
// Talking to the person at the terminal: messages, progress and Ctrl-C. Everything goes to stderr,
// so that stdout holds data only.
#ifndef APPS_TALK_H
#define APPS_TALK_H

#include <stdbool.h>
#include <stdio.h>

#include "gpurt.h"

// Sends the library's lines here and turns Ctrl-C into talk_stopped(). Called once.
void talk_init(void);
// How much is said: -1 quiet, 0 warnings, 1 notes, 2 everything.
void talk_set_level(int level);

// "gpurt: ..." and the end of the line.
void talk_error(const char *format, ...) GRT_PRINTF(1, 2);

// A line as it is, unless --quiet.
void talk_line(const char *format, ...) GRT_PRINTF(1, 2);
// Whether talk_progress() shows anything.
bool talk_shows_progress(void);

// Replaces the progress line; does nothing where stderr is no terminal.
void talk_progress(const char *format, ...) GRT_PRINTF(1, 2);
// Takes the progress line away, before anything else is printed.
void talk_clear(void);

// From here on SIGTERM is as Ctrl-C: for verbs that can be resumed.
void talk_stop_on_term(void);
// True once Ctrl-C was pressed: finish the step and return. A second one ends the process.
bool talk_stopped(void);
// Ctrl-C was obeyed and nothing is lost: the command ends with its own exit code.
void talk_resume(void);

// Whether this stream shows bold and colour: a terminal, and NO_COLOR is not set.
bool talk_styled(FILE *file);

#endif
