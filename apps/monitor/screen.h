// SPDX-License-Identifier: Apache-2.0
// A terminal that is drawn on anew, again and again: the alternate screen, without echo.
//
// A frame is one write, from the top left corner, and erases only what is not written over, so
// nothing flickers. However the process ends, by Ctrl-C, a signal or a crash, the terminal is left
// as it was: only SIGKILL leaves no time for that.
#ifndef APPS_MONITOR_SCREEN_H
#define APPS_MONITOR_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// False: stdout is no terminal that can be drawn on.
bool screen_open(void);
void screen_close(void);

struct screen_size {
    int rows, columns;
};
struct screen_size screen_size(void);

// Draws lines that end with \n. The first character of each says how: ' ' plain, 'b' bold, 'w' a
// warning. What does not fit is cut.
void screen_show(const char *text);

// What begins each line.
#define SCREEN_PLAIN " "
#define SCREEN_BOLD "b"
#define SCREEN_WARNING "w"

// Writes the lines of a table, the first of which is its headings, as lines to draw. `text` is
// changed; NULL: nothing.
void screen_lines(FILE *file, char *text);

enum screen_event { SCREEN_TIME, SCREEN_RESIZED, SCREEN_QUIT };
// Waits so long, or until there is something to do: another size, a key that ends it (q), or a
// signal that asks to stop, after which it is SCREEN_TIME.
enum screen_event screen_wait(double seconds);

#endif
