// SPDX-License-Identifier: Apache-2.0
#include "file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

struct timeline_file *timeline_file_open(const struct grt_timeline *t, const char *path,
                                         const char *call) {
    if (!t || !path || !t->ended) {
        grt_fail(GRT_INVALID, "%s: %s", call,
                 !t      ? "no timeline"
                 : !path ? "no path"
                         : "the timeline has not ended");
        return NULL;
    }
    struct timeline_file *file = malloc(sizeof *file);
    if (!file) {
        grt_fail(GRT_NO_MEMORY, "no host memory to write %s", path);
        return NULL;
    }
    file->good = true;
    file->used = 0;
    if (!grt_whole_file_open(&file->file, path)) {
        free(file);
        return NULL;
    }
    return file;
}

static void flush(struct timeline_file *file) {
    file->good =
        file->good && grt_whole_file_write(&file->file, file->buffer, (uint64_t)file->used);
    file->used = 0;
}

static void put(struct timeline_file *file, const char *bytes, size_t count) {
    if (count > sizeof file->buffer - file->used) {
        flush(file);
    }
    memcpy(file->buffer + file->used, bytes, count);
    file->used += (uint32_t)count;
}

void timeline_put(struct timeline_file *file, const char *format, ...) {
    char piece[512];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    if (length > 0) {
        put(file, piece, (size_t)length < sizeof piece ? (size_t)length : sizeof piece - 1);
    }
}

// Bytes of the character that begins here, 0 when it is none.
static size_t character(const unsigned char *text) {
    size_t length = text[0] < 0x80                      ? 1
                    : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
                    : text[0] >= 0xe0 && text[0] < 0xf0 ? 3
                    : text[0] >= 0xf0 && text[0] < 0xf5 ? 4
                                                        : 0;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    // Longer than needed, a half of a pair, or beyond the last.
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f)) {
        return 0;
    }
    return length;
}

void timeline_put_text(struct timeline_file *file, const char *text) {
    put(file, "\"", 1);
    while (*text) {
        unsigned char c = (unsigned char)*text;
        size_t length = character((const unsigned char *)text);
        if (length == 0) {
            put(file, "?", 1);
            length = 1;
        } else if (c < 0x20 || c == '"' || c == '\\') {
            timeline_put(file, "\\u%04x", c);
        } else {
            put(file, text, length);
        }
        text += length;
    }
    put(file, "\"", 1);
}

bool timeline_file_close(struct timeline_file *file) {
    flush(file);
    bool good = grt_whole_file_close(&file->file, file->good) && file->good;
    free(file);
    return good;
}
