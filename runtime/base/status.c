// SPDX-License-Identifier: Apache-2.0
// Statuses, the newest failure of each thread, and the log.
#include "gpurt/status.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gpurt/gpurt.h"
#include "log.h"
#include "visible.h"

static _Thread_local enum grt_status last_status;
static _Thread_local char last_error[2048];
static _Thread_local bool quiet;
static _Thread_local enum grt_status quiet_status;
static _Thread_local char quiet_error[sizeof last_error];

static void log_to_stderr(void *context, enum grt_log_level level, const char *line) {
    (void)context;
    fprintf(stderr, "gpurt: %s: %s\n", grt_log_level_text(level), line);
}

void grt_log_no_errors(void *context, enum grt_log_level level, const char *line) {
    if (level != GRT_LOG_ERROR && line) {
        log_to_stderr(context, level, line);
    }
}

static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;
static grt_log_fn *log_fn = log_to_stderr;
static void *log_context;
static enum grt_log_level log_level = GRT_LOG_WARN;

const char *grt_version(void) {
    return GPURT_VERSION;
}

bool grt_built_with_coopmat(void) {
    return GPURT_COOPMAT != 0;
}

const char *grt_status_text(enum grt_status status) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_STATUSES(X)
#undef X
    };
    return (unsigned)status < GRT_STATUS_COUNT ? texts[status] : "unknown status";
}

const char *grt_log_level_text(enum grt_log_level level) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_LOG_LEVELS(X)
#undef X
    };
    return (unsigned)level < GRT_LOG_LEVEL_COUNT ? texts[level] : "unknown level";
}

enum grt_status grt_last_status(void) {
    return last_status;
}

const char *grt_last_error(void) {
    return last_error;
}

static void lock_log(void) {
    pthread_mutex_lock(&log_mutex);
}

static void unlock_log(void) {
    pthread_mutex_unlock(&log_mutex);
}

// Makes fork() wait until no thread is in the middle of a line: the child has a copy of the mutex,
// and must find it unlocked.
static void guard_forks(void) {
    pthread_atfork(lock_log, unlock_log, unlock_log);
}

static void enter_log(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, guard_forks);
    lock_log();
}

void grt_log_set(grt_log_fn *fn, void *context, enum grt_log_level level) {
    enter_log();
    log_fn = fn ? fn : log_to_stderr;
    log_context = fn ? context : NULL;
    log_level = fn ? level : GRT_LOG_WARN;
    unlock_log();
}

// Lines hold names out of files and drivers' words: what leaves here is one line and does nothing
// to a terminal.
static void pass_on(enum grt_log_level level, const char *line) {
    char visible[sizeof last_error];
    grt_visible(line, visible, sizeof visible);
    enter_log();
    if (level <= log_level) {
        log_fn(log_context, level, visible);
    }
    unlock_log();
}

bool grt_fail(enum grt_status status, const char *format, ...) {
    char line[sizeof last_error];  // an argument may be the last error itself
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (quiet) {
        if (quiet_status == GRT_OK) {
            quiet_status = status;
            grt_visible(line, quiet_error, sizeof quiet_error);
        }
        pass_on(GRT_LOG_DEBUG, line);
        return false;
    }
    grt_visible(line, last_error, sizeof last_error);
    last_status = status;
    pass_on(GRT_LOG_ERROR, last_error);
    return false;
}

bool grt_quiet(bool on) {
    bool before = quiet;
    quiet = on;
    if (on && !before) {
        quiet_status = GRT_OK;
        quiet_error[0] = '\0';
    }
    return before;
}

enum grt_status grt_quiet_status(void) {
    return quiet_status;
}

const char *grt_quiet_error(void) {
    return quiet_error;
}

void grt_log(enum grt_log_level level, const char *format, ...) {
    char line[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    pass_on(level, line);
}
