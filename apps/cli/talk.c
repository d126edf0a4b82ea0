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

#include "command.h"
#include "gpurt/kernel.h"
#include "stats.h"
#include "gpurt/unfinished.h"
#include "base/visible.h"

static volatile sig_atomic_t stopped;
static volatile sig_atomic_t how_to_stop = TALK_STOP_SOON;
static volatile sig_atomic_t quiet;
static bool answers;  // Ctrl-C, because somebody sees it
static volatile sig_atomic_t shown;
static char own[32] = "gpurt: ";  // begins each message
static int wanted_level;          // of talk_set_level(), also where a rank is silent

static bool terminal(FILE *file) {
    const char *term = getenv("TERM");
    // mpirun gives its first rank a terminal, wherever its own output goes.
    bool ranked = getenv("OMPI_COMM_WORLD_RANK") != NULL;
    return isatty(fileno(file)) && !ranked && term && strcmp(term, "dumb") != 0;
}

static void log_line(void *context, enum grt_log_level level, const char *text) {
    (void)context;
    talk_clear();
    fprintf(stderr, "%s%s: %s\n", own, grt_log_level_text(level), text);
}

// ---- signals ----

// Within this time after a signal a verb has come to its end, or is ended.
#define STOP_SECONDS 4
#define KERNELS_SECONDS 3.0  // of compiling before that is said where nobody sees progress

// Only calls that a signal handler may make, as everything down to on_signal().
static void say_in_handler(const char *text) {
    if (shown) {
        (void)!write(STDERR_FILENO, "\n", 1);
    }
    if (!quiet) {
        (void)!write(STDERR_FILENO, text, strlen(text));
    }
}

static void (*volatile at_end)(void);

void talk_at_end(void (*restore)(void)) {
    at_end = restore;
}

void talk_restore(void) {
    void (*restore)(void) = at_end;
    if (restore) {
        restore();
    }
}

static void end_process(int code) {
    talk_restore();
    grt_unfinished_unlink();
    _exit(code);
}

static void on_deadline(int signal_number) {
    (void)signal_number;
    say_in_handler("gpurt: interrupted in the middle of its work\n");
    end_process(COMMAND_INTERRUPTED);
}

static void on_signal(int signal_number) {
    static volatile sig_atomic_t interrupts;
    int error = errno;
    if (how_to_stop == TALK_STOP_AT_ONCE) {
        say_in_handler("gpurt: stopped before the first step; the same command begins again\n");
        end_process(COMMAND_RESUMABLE);
    }
    // A person presses Ctrl-C twice because it takes too long. Other signals come more than once
    // without that meaning: a hang-up comes from the kernel and from the shell.
    if (signal_number == SIGINT && ++interrupts > 1) {
        end_process(COMMAND_INTERRUPTED);
    }
    // What runs on the device is waited for, which may take a while.
    if (signal_number == SIGINT && answers && !quiet && how_to_stop != TALK_STOP_QUIETLY) {
        const char *heard = how_to_stop == TALK_STOP_AFTER_STEP
                                ? "\ngpurt: stopping after this step; Ctrl-C again ends at once\n"
                                : "\ngpurt: stopping; Ctrl-C again ends at once\n";
        (void)!write(STDERR_FILENO, heard, strlen(heard));
    }
    stopped = 1;
    if (how_to_stop != TALK_STOP_AFTER_STEP) {
        alarm(STOP_SECONDS);
    }
    errno = error;
}

static const int stops[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
static bool ignored[sizeof stops / sizeof *stops];
static pid_t owner;  // child processes ignore them: child.c

// Again and again, since drivers bring handlers of their own: LLVM's, which PoCL has in it, takes
// SIGUSR1 when the first kernel is built and does nothing with it.
static void take_signals(void) {
    struct sigaction action = {.sa_handler = on_signal}, none = {.sa_handler = SIG_IGN};
    struct sigaction deadline = {.sa_handler = on_deadline};
    if (getpid() != owner) {
        return;
    }
    sigfillset(&action.sa_mask);
    sigfillset(&deadline.sa_mask);
    sigaction(SIGALRM, &deadline, NULL);
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        sigaction(stops[i], ignored[i] ? &none : &action, NULL);
    }
}

// What nohup or a service manager ignores stays ignored. Shells without job control ignore SIGINT
// for whatever they start with `&`; whoever sends it to such a process means it.
static void find_ignored(void) {
    struct sigaction before;
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        ignored[i] = stops[i] != SIGINT && sigaction(stops[i], NULL, &before) == 0 &&
                     before.sa_handler == SIG_IGN;
    }
}

void talk_stop_by(enum talk_stop how) {
    take_signals();
    how_to_stop = how;
    if (how == TALK_STOP_AFTER_STEP || how == TALK_STOP_AT_ONCE) {
        alarm(0);
    }
    // Asked for before: as if it came now.
    if (how == TALK_STOP_AT_ONCE && stopped) {
        raise(SIGTERM);
    }
}

// On a terminal each kernel; elsewhere one line, and only when there is a wait: a driver that has
// them compiled already takes no time.
static void on_kernel(void *context, const char *name, uint32_t nth, uint32_t of) {
    static double begun;
    static bool said;
    static uint32_t before, known;  // of the graphs before this one; of all so far
    (void)context;
    before = nth == 1 ? known : before;
    known = before + of;
    nth += before;
    of = known;
    begun = begun > 0 ? begun : grt_seconds();
    talk_progress("compiling kernels %u of %u: %s", nth, of, name);
    if (!said && !talk_shows_progress() && grt_seconds() - begun > KERNELS_SECONDS) {
        talk_line("compiling kernels, %u of %u so far; the next start finds them compiled", nth,
                  of);
        said = true;
    }
}

void talk_init(void) {
    answers = terminal(stderr);
    owner = getpid();
    find_ignored();
    take_signals();
    talk_set_level(0);
    grt_kernel_watch(on_kernel, NULL);
}

void talk_set_level(int level) {
    enum grt_log_level least = level < 0    ? GRT_LOG_ERROR
                               : level == 0 ? GRT_LOG_WARN
                               : level == 1 ? GRT_LOG_INFO
                                            : GRT_LOG_DEBUG;
    quiet = level < 0;
    wanted_level = level;
    grt_log_set(log_line, NULL, least);
}

void talk_as_rank(unsigned rank) {
    int level = wanted_level;
    snprintf(own, sizeof own, "gpurt: rank %u: ", rank);
    talk_set_level(-1);
    wanted_level = level;
}

void talk_as_first(void) {
    snprintf(own, sizeof own, "gpurt: ");
    talk_set_level(wanted_level);
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
    print_line(own, format, args);
    va_end(args);
}

void talk_line(const char *format, ...) {
    if (quiet) {
        return;
    }
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
    take_signals();
    if (!talk_shows_progress()) {
        return;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    grt_visible(line, visible, sizeof visible);
    size_t fits = grt_visible_fit(visible, (size_t)line_width(), NULL);
    fprintf(stderr, "\r\033[K%.*s", (int)fits, visible);
    fflush(stderr);
    shown = true;
}

void talk_clear(void) {
    if (shown) {
        fputs("\r\033[K", stderr);
    }
    shown = false;
}

bool talk_stopped(void) {
    take_signals();
    return stopped != 0;
}

void talk_resume(void) {
    alarm(0);
    stopped = 0;
}

bool talk_styled(FILE *file) {
    const char *no_color = getenv("NO_COLOR");
    return terminal(file) && !(no_color && *no_color);
}
