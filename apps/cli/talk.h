// SPDX-License-Identifier: Apache-2.0
// Talking to the person at the terminal: messages, progress, and signals that ask to stop.
// Everything goes to stderr, so that stdout holds data only.
#ifndef APPS_TALK_H
#define APPS_TALK_H

#include <stdbool.h>
#include <stdio.h>

#include "gpurt/gpurt.h"

// Sends the library's lines here and takes the signals that ask to stop: SIGINT, SIGTERM, SIGHUP
// and SIGUSR1, which batch systems send before they preempt. Called once.
void talk_init(void);
// How much is said: -1 quiet, 0 warnings, 1 notes, 2 everything.
void talk_set_level(int level);

// Of several processes that train together this one says only what went wrong, after "rank 2: ".
void talk_as_rank(unsigned rank);
// It speaks for all from here on, as it would have from the beginning.
void talk_as_first(void);

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

// What such a signal does from here on; at first TALK_STOP_SOON.
enum talk_stop {
    TALK_STOP_SOON,  // talk_stopped() says it; a verb still there after 4 seconds is ended
    // talk_stopped() says it; the step and its checkpoint have the time they need
    TALK_STOP_AFTER_STEP,
    TALK_STOP_AT_ONCE,  // the process ends with exit code 75: a run that has done nothing yet
    TALK_STOP_QUIETLY,  // as TALK_STOP_SOON, of what has no other end: there is nothing to say
};
void talk_stop_by(enum talk_stop how);
// True once it was asked for: finish the step and return. A second Ctrl-C ends the process.
bool talk_stopped(void);
// It was obeyed and nothing is lost: the command ends with its own exit code.
void talk_resume(void);

// What puts the terminal back as it was, for a verb that draws on it; NULL: nothing is to be done.
// Called when a signal ends the process, so it may call only what a signal handler may.
void talk_at_end(void (*restore)(void));
// Calls it. For signal handlers that end the process.
void talk_restore(void);

// Whether this stream shows bold and colour: a terminal, and NO_COLOR is not set.
bool talk_styled(FILE *file);

#endif
