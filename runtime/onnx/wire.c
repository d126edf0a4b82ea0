// SPDX-License-Identifier: Apache-2.0
#include "wire.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH_BYTES 5  // of a message that is written before its length is known

// Room for more bytes behind the others, or NULL.
static unsigned char *more(struct wire *w, size_t size) {
    if (w->failed || size > SIZE_MAX / 4 - w->size) {
        w->failed = true;
        return NULL;
    }
    if (w->size + size > w->room) {
        size_t room = 2 * (w->size + size) + 256;
        unsigned char *bytes = realloc(w->bytes, room);
        if (!bytes) {
            w->failed = true;
            return NULL;
        }
        w->bytes = bytes;
        w->room = room;
    }
    w->size += size;
    return w->bytes + w->size - size;
}

static void varint(struct wire *w, uint64_t value) {
    unsigned char bytes[10];
    size_t count = 0;
    do {
        bytes[count++] = (unsigned char)((value & 127) | (value > 127 ? 128 : 0));
        value >>= 7;
    } while (value > 0);
    unsigned char *to = more(w, count);
    if (to) {
        memcpy(to, bytes, count);
    }
}

static void key(struct wire *w, uint32_t field, uint32_t type) {
    varint(w, (uint64_t)field << 3 | type);
}

void wire_whole(struct wire *w, uint32_t field, int64_t value) {
    key(w, field, 0);
    varint(w, (uint64_t)value);
}

void wire_real(struct wire *w, uint32_t field, float value) {
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    key(w, field, 5);
    unsigned char *to = more(w, 4);
    for (uint32_t i = 0; to && i < 4; i++) {
        to[i] = (unsigned char)(word >> 8 * i);
    }
}

void wire_bytes(struct wire *w, uint32_t field, const void *bytes, size_t size) {
    key(w, field, 2);
    varint(w, size);
    unsigned char *to = more(w, size);
    if (to && size > 0) {
        memcpy(to, bytes, size);
    }
}

void wire_text(struct wire *w, uint32_t field, const char *text) {
    wire_bytes(w, field, text, strlen(text));
}

size_t wire_begin(struct wire *w, uint32_t field) {
    key(w, field, 2);
    more(w, LENGTH_BYTES);
    return w->size;
}

void wire_end(struct wire *w, size_t at) {
    uint64_t length = w->size - at;
    for (size_t i = 0; !w->failed && i < LENGTH_BYTES; i++) {
        bool last = i + 1 == LENGTH_BYTES;
        w->bytes[at - LENGTH_BYTES + i] =
            (unsigned char)((length >> 7 * i & 127) | (last ? 0 : 128));
    }
}

// ---- reading ----

bool wire_varint(struct wire_part *part, uint64_t *value) {
    *value = 0;
    for (uint32_t shift = 0; shift < 70; shift += 7) {
        if (part->size == 0) {
            return false;
        }
        unsigned char byte = *part->at++;
        part->size--;
        *value |= shift < 64 ? (uint64_t)(byte & 127) << shift : 0;
        if (byte < 128) {
            return true;
        }
    }
    return false;
}

static bool fixed(struct wire_part *part, uint32_t bytes, uint64_t *value) {
    *value = 0;
    for (uint32_t i = 0; i < bytes && part->size >= bytes; i++) {
        *value |= (uint64_t)part->at[i] << 8 * i;
    }
    bool whole = part->size >= bytes;
    part->at += whole ? bytes : 0;
    part->size -= whole ? bytes : 0;
    return whole;
}

bool wire_next(struct wire_part *part, struct wire_field *field, bool *broken) {
    uint64_t head = 0, length = 0;
    *field = (struct wire_field){0};
    if (part->size == 0) {
        return false;
    }
    bool good = wire_varint(part, &head) && head >> 3 > 0 && head >> 3 <= UINT32_MAX;
    field->number = (uint32_t)(head >> 3);
    field->type = head & 7;
    switch (field->type) {
    case 0:
        good = good && wire_varint(part, &field->whole);
        break;
    case 1:
    case 5:
        good = good && fixed(part, field->type == 1 ? 8 : 4, &field->whole);
        break;
    case 2:
        good = good && wire_varint(part, &length) && length <= part->size;
        if (good) {
            field->inside = (struct wire_part){part->at, (size_t)length};
            part->at += length;
            part->size -= (size_t)length;
        }
        break;
    default:
        good = false;
    }
    *broken = *broken || !good;
    return good;
}
