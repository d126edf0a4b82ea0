// SPDX-License-Identifier: Apache-2.0
// One progress line at most is on the screen; `shown` remembers it, and every other message takes
// it away first. State is per process, as the terminal is.
#include "talk.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "visible.h"

static volatile sig_atomic_t stopped;
static bool quiet;
static bool answers;  // Ctrl-C, because somebody sees it
static bool shown;

static bool terminal(FILE *file) {
    const char *term = getenv("TERM");
    return isatty(fileno(file)) && term && strcmp(term, "dumb") != 0;
}

static void log_line(void *context, enum grt_log_level level, const char *text) {
    (void)context;
    talk_clear();
    fprintf(stderr, "gpurt: %s: %s\n", grt_log_level_text(level), text);
}

// At a terminal says that it was heard: what runs on the device is waited for, which may take a while.
static void on_interrupt(int signal_number) {
    static const char heard[] = "\ngpurt: stopping after this step; Ctrl-C again ends at once\n";
    int error = errno;
    if (signal_number == SIGINT && answers && !quiet)
        (void)!write(STDERR_FILENO, heard, sizeof heard - 1);
    errno = error;
    stopped = 1;
}

static void stop_on(int signal_number) {
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(signal_number, &action, NULL);
}

void talk_init(void) {
    answers = terminal(stderr);
    stop_on(SIGINT);
    talk_set_level(0);
}

void talk_stop_on_term(void) {
    stop_on(SIGTERM);
}

void talk_set_level(int level) {
    enum grt_log_level least = level < 0    ? GRT_LOG_ERROR
                               : level == 0 ? GRT_LOG_WARN
                               : level == 1 ? GRT_LOG_INFO
                                            : GRT_LOG_DEBUG;
    quiet = level < 0;
    grt_log_set(log_line, NULL, least);
}

// One line, with names from everywhere in it made visible.
static void print_line(const char *begin, const char *format, va_list args) {
    char line[4096], visible[2 * sizeof line];
    vsnprintf(line, sizeof line, format, args);
    grt_visible(line, visible, sizeof visible);
    talk_clear();
    fprintf(stderr, "%s%s\n", begin, visible);
}

void talk_error(const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_line("gpurt: ", format, args);
    va_end(args);
}

void talk_line(const char *format, ...) {
    if (quiet)
        return;
    va_list args;
    va_start(args, format);
    print_line("", format, args);
    va_end(args);
}

bool talk_shows_progress(void) {
    return !quiet && terminal(stderr);
}

// A line that wraps could not be taken away again.
static int line_width(void) {
    struct winsize size;
    return ioctl(fileno(stderr), TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
}

void talk_progress(const char *format, ...) {
    char line[512], visible[512];
    if (!talk_shows_progress())
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    grt_visible(line, visible, sizeof visible);
    fprintf(stderr, "\r\033[K%.*s", line_width(), visible);
    fflush(stderr);
    shown = true;
}

void talk_clear(void) {
    if (shown)
        fputs("\r\033[K", stderr);
    shown = false;
}

bool talk_stopped(void) {
    return stopped != 0;
}

void talk_resume(void) {
    stopped = 0;
}

bool talk_styled(FILE *file) {
    const char *no_color = getenv("NO_COLOR");
    return terminal(file) && !(no_color && *no_color);
}
