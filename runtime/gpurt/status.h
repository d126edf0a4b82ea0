// SPDX-License-Identifier: Apache-2.0
// How every call of gpurt reports: it returns false or NULL, and the sentence that says what went
// wrong, with names and numbers, goes to the log. The status and the sentence of the newest failure
// in this thread stay readable, so a program can choose an exit code or show its own message.
#ifndef GRT_STATUS_H
#define GRT_STATUS_H

#include <stdbool.h>

// A pointer to a struct that the braces' contents describe, for arguments: grt_buf_desc(.size =
// 64). The macros named grt_..._desc are made with it. In C++ the struct ends with the full
// expression, so such a pointer must not be kept in a variable; before C++20, -Wpedantic calls
// designated initializers an extension.
#ifdef __cplusplus
extern "C++" {
template <typename T> inline const T *grt_desc_address(T &&desc) {
    return &desc;
}
}
#define GRT_DESC(type, ...) grt_desc_address<type>({__VA_ARGS__})
#else
#define GRT_DESC(type, ...) (&(type){__VA_ARGS__})
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GRT_API __attribute__((visibility("default")))
#define GRT_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define GRT_API
#define GRT_PRINTF(text, first)
#endif

#define GRT_STATUSES(X)                                                                            \
    X(OK, "ok")                                                                                    \
    X(INVALID, "invalid argument")                                                                 \
    X(UNSUPPORTED, "not supported by this device")                                                 \
    X(NO_DEVICE, "no such device")                                                                 \
    X(NO_MEMORY, "out of memory")                                                                  \
    X(COMPILE, "kernel does not build")                                                            \
    X(LOST, "device lost")                                                                         \
    X(IO, "input or output failed")                                                                \
    X(NO_OUTPUT, "cannot create")                                                                  \
    X(NO_INPUT, "no such file")                                                                    \
    X(BAD_DATA, "bad input data")                                                                  \
    X(CONFIG, "bad configuration")

enum grt_status {
#define X(name, text) GRT_##name,
    GRT_STATUSES(X)
#undef X
        GRT_STATUS_COUNT,
};

#define GRT_LOG_LEVELS(X)                                                                          \
    X(ERROR, "error")                                                                              \
    X(WARN, "warning")                                                                             \
    X(INFO, "note")                                                                                \
    X(DEBUG, "debug")

enum grt_log_level {
#define X(name, text) GRT_LOG_##name,
    GRT_LOG_LEVELS(X)
#undef X
        GRT_LOG_LEVEL_COUNT,
};

// Receives one line without its end. May be called from any thread, one call at a time.
typedef void grt_log_fn(void *context, enum grt_log_level level, const char *line);

// Text of a status, "ok" to "bad configuration"; "unknown status" for any other number.
GRT_API const char *grt_status_text(enum grt_status status);
// Word of a level, "error" to "debug".
GRT_API const char *grt_log_level_text(enum grt_log_level level);

// Status and sentence of the newest failed call in this thread. The sentence is "" before the first
// failure, and belongs to gpurt.
GRT_API enum grt_status grt_last_status(void);
GRT_API const char *grt_last_error(void);

// Where lines go, and the least important level that is passed on. The default writes warnings and
// errors to stderr; fn NULL restores it.
GRT_API void grt_log_set(grt_log_fn *fn, void *context, enum grt_log_level level);
// For grt_log_set(), where errors are told another way, such as exceptions with grt_last_error():
// writes what the default does but no errors.
GRT_API void grt_log_no_errors(void *context, enum grt_log_level level, const char *line);

// For modules and programs that report the way gpurt does. grt_fail() keeps the status and the
// sentence for grt_last_status() and grt_last_error(), logs the sentence as an error, and returns
// false.
GRT_API bool grt_fail(enum grt_status status, const char *format, ...) GRT_PRINTF(2, 3);
GRT_API void grt_log(enum grt_log_level level, const char *format, ...) GRT_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif
#endif
