// SPDX-License-Identifier: Apache-2.0
// Messages of an event file, by field number of TensorFlow's event.proto and summary.proto:
//
//     Event    1 wall_time double   2 step int64   3 file_version string   5 summary Summary
//     Summary  1 value Value        Value  1 tag string   2 simple_value float
#include "gpurt/runlog.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "base/log.h"
#include "base/whole_file.h"
#include "gpurt/checkpoint.h"
#include "runlog_parts.h"

// ---- CRC-32C ----

uint32_t grt_crc32c(const void *data, size_t size, uint32_t crc) {
    const unsigned char *bytes = data;
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (uint32_t bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
        }
    }
    return ~crc;
}

// Turned and shifted: a CRC over bytes that hold CRCs would be a weak one.
uint32_t grt_crc32c_masked(const void *data, size_t size) {
    uint32_t crc = grt_crc32c(data, size, 0);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

// ---- messages ----

void message_put(struct message *m, const void *data, size_t size) {
    if (m->size + size > sizeof m->bytes) {
        m->full = true;
        return;
    }
    memcpy(m->bytes + m->size, data, size);
    m->size += size;
}

void message_put_varint(struct message *m, uint64_t value) {
    do {
        unsigned char byte = (unsigned char)((value & 127) | (value > 127 ? 128 : 0));
        message_put(m, &byte, 1);
        value >>= 7;
    } while (value > 0);
}

void message_put_little(struct message *m, uint64_t bits, uint32_t size) {
    for (uint32_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)(bits >> 8 * i);
        message_put(m, &byte, 1);
    }
}

void message_put_double(struct message *m, uint32_t field, double value) {
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    message_put_varint(m, field << 3 | 1);
    message_put_little(m, bits, 8);
}

void message_put_float(struct message *m, uint32_t field, float value) {
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    message_put_varint(m, field << 3 | 5);
    message_put_little(m, bits, 4);
}

void message_put_bytes(struct message *m, uint32_t field, const void *data, size_t size) {
    message_put_varint(m, field << 3 | 2);
    message_put_varint(m, size);
    message_put(m, data, size);
}

// ---- files ----

// A log that cannot be written is given up; the run goes on. Said however little is to be said:
// what is lost is lost.
void runlog_give_up(struct grt_runlog *log, FILE **file, const char *path) {
    grt_log(GRT_LOG_ERROR, "cannot write %s: %s; nothing more is logged there", path,
            strerror(errno ? errno : EIO));
    fclose(*file);
    *file = NULL;
    log->failed = true;
}

bool grt_runlog_failed(const struct grt_runlog *log) {
    return log && log->failed;
}

static bool write_record(FILE *file, const struct message *message) {
    struct message head = {0};
    struct message tail = {0};
    message_put_little(&head, message->size, 8);
    message_put_little(&head, grt_crc32c_masked(head.bytes, 8), 4);
    message_put_little(&tail, grt_crc32c_masked(message->bytes, message->size), 4);
    return fwrite(head.bytes, 1, head.size, file) == head.size &&
           fwrite(message->bytes, 1, message->size, file) == message->size &&
           fwrite(tail.bytes, 1, tail.size, file) == tail.size && fflush(file) == 0;
}

double runlog_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static FILE *open_file(const char *path, const char *mode) {
    FILE *file = fopen(path, mode);
    if (!file) {
        grt_whole_file_refuse(path, errno);
    }
    return file;
}

// A new file for each run, named as TensorBoard looks for them.
static bool open_events(struct grt_runlog *log, const char *dir) {
    char host[256] = "host";
    char path[4096];
    if (!grt_checkpoint_make_dir(dir)) {
        return false;
    }
    if (gethostname(host, sizeof host - 1) != 0 || strchr(host, '/')) {
        snprintf(host, sizeof host, "host");
    }
    snprintf(path, sizeof path, "%.3000s/events.out.tfevents.%010lld.%s.%ld.0", dir,
             (long long)time(NULL), host, (long)getpid());
    log->events_path = strdup(path);
    log->events = log->events_path ? open_file(path, "ab") : NULL;
    if (!log->events) {
        return false;
    }
    struct message event = {0};
    message_put_double(&event, 1, runlog_now());
    message_put_bytes(&event, 3, "brain.Event:2", 13);
    if (!write_record(log->events, &event)) {
        runlog_give_up(log, &log->events, log->events_path);
    }
    return true;
}

// The folder that `path` lies in.
static void folder_of(const char *path, char dir[4096]) {
    const char *slash = strrchr(path, '/');
    int length = slash == path ? 1 : slash ? (int)(slash - path) : 1;
    snprintf(dir, 4096, "%.*s", length, slash ? path : ".");
}

// The next folder up that is there: what is missing below is made there.
static void existing_folder(const char *path, char dir[4096]) {
    char next[4096];
    snprintf(dir, 4096, "%s", path);
    while (access(dir, F_OK) != 0 && errno == ENOENT && strcmp(dir, "/") != 0 &&
           strcmp(dir, ".") != 0) {
        size_t length = strlen(dir);
        while (length > 1 && dir[length - 1] == '/') {
            dir[--length] = '\0';
        }
        folder_of(dir, next);
        snprintf(dir, 4096, "%s", next);
    }
}

bool grt_runlog_check(const struct grt_runlog_desc *desc) {
    char dir[4096];
    struct stat info;
    if (desc->jsonl && desc->jsonl[0]) {
        bool there = stat(desc->jsonl, &info) == 0;
        folder_of(desc->jsonl, dir);
        int error = there && S_ISDIR(info.st_mode) ? EISDIR
                    : access(there ? desc->jsonl : dir, there ? W_OK : W_OK | X_OK) != 0 ? errno
                                                                                         : 0;
        if (error) {
            return grt_whole_file_refuse(desc->jsonl, error);
        }
    }
    if (desc->tensorboard && desc->tensorboard[0]) {
        existing_folder(desc->tensorboard, dir);
        int error = stat(dir, &info) != 0           ? errno
                    : !S_ISDIR(info.st_mode)        ? ENOTDIR
                    : access(dir, W_OK | X_OK) != 0 ? errno
                                                    : 0;
        if (error) {
            return grt_fail(GRT_NO_OUTPUT, "cannot make the folder %s: %s", desc->tensorboard,
                            strerror(error));
        }
    }
    return true;
}

struct grt_runlog *grt_runlog_create(const struct grt_runlog_desc *desc) {
    struct grt_runlog *log = calloc(1, sizeof *log);
    if (!log) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a log");
        return NULL;
    }
    if (desc && desc->jsonl && desc->jsonl[0]) {
        log->jsonl_path = strdup(desc->jsonl);
        log->jsonl = log->jsonl_path ? open_file(desc->jsonl, "a") : NULL;
        if (!log->jsonl) {
            grt_runlog_destroy(&log);
            return NULL;
        }
    }
    if (desc && desc->tensorboard && desc->tensorboard[0] && !open_events(log, desc->tensorboard)) {
        grt_runlog_destroy(&log);
    }
    return log;
}

void grt_runlog_destroy(struct grt_runlog **log) {
    if (!log || !*log) {
        return;
    }
    if ((*log)->jsonl) {
        fclose((*log)->jsonl);
    }
    if ((*log)->events) {
        fclose((*log)->events);
    }
    free((*log)->jsonl_path);
    free((*log)->events_path);
    free(*log);
    *log = NULL;
}

// ---- rows ----

static json_t *field_json(const struct grt_runlog_field *field) {
    if (field->text) {
        return json_string(field->text);
    }
    if (!isfinite(field->number)) {
        return json_string(isnan(field->number) ? "NaN"
                           : field->number > 0  ? "Infinity"
                                                : "-Infinity");
    }
    if (field->number == floor(field->number) && fabs(field->number) < 9e15) {
        return json_integer((json_int_t)field->number);
    }
    return json_real(field->number);
}

static void write_json(struct grt_runlog *log, const char *event, double time, uint64_t step,
                       const struct grt_runlog_field *fields, size_t count) {
    json_t *row =
        json_pack("{s:s, s:f, s:I}", "event", event, "time", time, "step", (json_int_t)step);
    for (size_t i = 0; row && i < count; i++) {
        json_object_set_new(row, fields[i].name, field_json(&fields[i]));
    }
    errno = 0;
    // Nine digits tell every float from its neighbours; the time has ten before the point.
    bool good = row && json_dumpf(row, log->jsonl, JSON_COMPACT | JSON_REAL_PRECISION(13)) == 0 &&
                fputc('\n', log->jsonl) != EOF && fflush(log->jsonl) == 0;
    json_decref(row);
    if (!good) {
        runlog_give_up(log, &log->jsonl, log->jsonl_path);
    }
}

void runlog_summary(struct grt_runlog *log, double time, uint64_t step,
                    const struct message *summary) {
    struct message m = {0};
    message_put_double(&m, 1, time);
    message_put_varint(&m, 2 << 3);
    message_put_varint(&m, step);
    message_put_bytes(&m, 5, summary->bytes, summary->size);
    if (summary->full || m.full) {
        grt_log(GRT_LOG_WARN, "%s: a row of more than %zu bytes is left out", log->events_path,
                sizeof m.bytes);
        return;
    }
    errno = 0;
    if (!write_record(log->events, &m)) {
        runlog_give_up(log, &log->events, log->events_path);
    }
}

static void write_event(struct grt_runlog *log, const char *event, double time, uint64_t step,
                        const struct grt_runlog_field *fields, size_t count) {
    struct message summary = {0};
    for (size_t i = 0; i < count; i++) {
        struct message value = {0};
        char tag[256];
        if (fields[i].text) {
            continue;
        }
        int length = snprintf(tag, sizeof tag, "%.120s/%.120s", event, fields[i].name);
        message_put_bytes(&value, 1, tag, (size_t)length);
        message_put_float(&value, 2, (float)fields[i].number);
        message_put_bytes(&summary, 1, value.bytes, value.size);
    }
    if (summary.size > 0) {
        runlog_summary(log, time, step, &summary);
    }
}

void grt_runlog_row(struct grt_runlog *log, const char *event, uint64_t step,
                    const struct grt_runlog_field *fields, size_t count) {
    double time = runlog_now();
    if (log && log->jsonl) {
        write_json(log, event, time, step, fields, count);
    }
    if (log && log->events) {
        write_event(log, event, time, step, fields, count);
    }
}
