// SPDX-License-Identifier: Apache-2.0
#include "screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/visible.h"
#include "cli/talk.h"

// Alternate screen, no cursor, no wrapping at the edge; and back.
#define ENTER "\033[?1049h\033[?25l\033[?7l\033[2J"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"
// A terminal that knows it shows all that is between at once.
#define FRAME "\033[?2026h\033[H"
#define FRAME_END "\033[J\033[?2026l"

static struct {
    volatile sig_atomic_t drawn;  // the terminal is ours
    volatile sig_atomic_t resized, suspended;
    bool keys;  // stdin is the terminal
    struct termios before;
} screen;

// May be called by a signal handler, as what it calls may.
static void leave(void) {
    if (screen.drawn) {
        screen.drawn = 0;
        (void)!write(STDOUT_FILENO, LEAVE, sizeof LEAVE - 1);
        if (screen.keys) {
            tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
        }
    }
}

static void enter(void) {
    if (screen.keys) {
        struct termios quiet = screen.before;
        quiet.c_lflag &= ~(tcflag_t)(ECHO | ICANON);  // signals of keys stay
        tcsetattr(STDIN_FILENO, TCSANOW, &quiet);
    }
    screen.drawn = 1;
    (void)!write(STDOUT_FILENO, ENTER, sizeof ENTER - 1);
}

static void on_resize(int signal_number) {
    (void)signal_number;
    screen.resized = 1;
}

static void on_suspend(int signal_number) {
    (void)signal_number;
    screen.suspended = 1;
}

static void on_quit(int signal_number) {
    leave();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void take(int signal_number, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler};  // no SA_RESTART: poll() comes back
    sigemptyset(&action.sa_mask);
    sigaction(signal_number, &action, NULL);
}

bool screen_open(void) {
    const char *term = getenv("TERM");
    if (!isatty(STDOUT_FILENO) || !term || strcmp(term, "dumb") == 0) {
        return false;
    }
    screen.keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &screen.before) == 0;
    talk_at_end(leave);
    take(SIGWINCH, on_resize);
    take(SIGTSTP, on_suspend);
    take(SIGQUIT, on_quit);
    enter();
    return true;
}

void screen_close(void) {
    leave();
    talk_at_end(NULL);
    take(SIGWINCH, SIG_DFL);
    take(SIGTSTP, SIG_DFL);
    take(SIGQUIT, SIG_DFL);
}

struct screen_size screen_size(void) {
    struct winsize size = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0;
    return known ? (struct screen_size){size.ws_row, size.ws_col} : (struct screen_size){24, 80};
}

static const char *style_of(char style, bool styled) {
    return !styled ? "" : style == 'b' ? "\033[1m" : style == 'w' ? "\033[33m" : "";
}

static void put_line(FILE *frame, const char *line, size_t length, int columns, bool styled) {
    char text[2048];
    size_t used = 0;
    snprintf(text, sizeof text, "%.*s", (int)(length - 1), line + 1);
    size_t fits = grt_visible_fit(text, (size_t)columns, &used);
    const char *style = style_of(line[0], styled);
    fprintf(frame, "%s%.*s%s", style, (int)fits, text, *style ? "\033[0m" : "");
    if (used < (size_t)columns) {
        fputs("\033[K", frame);
    }
}

static void write_all(const char *bytes, size_t size) {
    while (size > 0) {
        ssize_t wrote = write(STDOUT_FILENO, bytes, size);
        if (wrote < 0 && errno != EINTR) {
            return;
        }
        bytes += wrote > 0 ? wrote : 0;
        size -= wrote > 0 ? (size_t)wrote : 0;
    }
}

void screen_show(const char *text) {
    struct screen_size size = screen_size();
    bool styled = talk_styled(stdout);
    char *bytes = NULL;
    size_t count = 0;
    FILE *frame = open_memstream(&bytes, &count);
    if (!frame) {
        return;
    }
    fputs(FRAME, frame);
    for (int row = 0; row < size.rows && *text; row++) {
        size_t length = strcspn(text, "\n");
        fputs(row ? "\r\n" : "", frame);
        if (length > 0) {
            put_line(frame, text, length, size.columns, styled);
        } else {
            fputs("\033[K", frame);
        }
        text += length + (text[length] == '\n');
    }
    fputs(FRAME_END, frame);
    if (fclose(frame) == 0 && screen.drawn) {
        write_all(bytes, count);
    }
    free(bytes);
}

void screen_lines(FILE *file, char *text) {
    const char *style = SCREEN_BOLD;
    char *rest = NULL;
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line && file;
         line = strtok_r(NULL, "\n", &rest)) {
        fprintf(file, "%s%s\n", style, line);
        style = SCREEN_PLAIN;
    }
}

// Leaves the terminal to the shell until it is continued.
static void suspend(void) {
    screen.suspended = 0;
    leave();
    raise(SIGSTOP);
    enter();
}

enum screen_event screen_wait(double seconds) {
    struct pollfd keys = {.fd = screen.keys ? STDIN_FILENO : -1, .events = POLLIN};
    if (!screen.resized && !screen.suspended && !talk_stopped()) {
        poll(&keys, 1, (int)(1000 * seconds));
    }
    if (screen.suspended) {
        suspend();
        return SCREEN_RESIZED;
    }
    if (screen.resized) {
        screen.resized = 0;
        (void)!write(STDOUT_FILENO, "\033[2J", 4);
        return SCREEN_RESIZED;
    }
    char key = 0;
    if (keys.revents && (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q')) {
        return SCREEN_QUIT;  // or nobody is there any more
    }
    return key ? SCREEN_RESIZED : SCREEN_TIME;
}
