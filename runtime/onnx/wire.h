// SPDX-License-Identifier: Apache-2.0
// Protocol buffers as bytes: fields of a number and a type, one behind the other.
//
//     | number << 3 | type | value |      type 0: a varint   1: 8 bytes   2: length, bytes   5: 4
//
// A message inside another is a field of type 2. Its length is written behind it, in five bytes,
// which every reader takes for the shorter form: so one buffer serves, and nothing is copied.
#ifndef GRT_ONNX_WIRE_H
#define GRT_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire {
    unsigned char *bytes;
    size_t size, room;
    bool failed;  // no host memory
};

void wire_whole(struct wire *w, uint32_t field, int64_t value);
void wire_real(struct wire *w, uint32_t field, float value);
void wire_bytes(struct wire *w, uint32_t field, const void *bytes, size_t size);
void wire_text(struct wire *w, uint32_t field, const char *text);
// A message that follows; what it returns goes to wire_end().
size_t wire_begin(struct wire *w, uint32_t field);
void wire_end(struct wire *w, size_t at);

// ---- reading ----

// A message, or what is left of it.
struct wire_part {
    const unsigned char *at;
    size_t size;
};
struct wire_field {
    uint32_t number, type;
    uint64_t whole;           // of type 0, and the bits of types 1 and 5
    struct wire_part inside;  // of type 2
};
// The next field of a part, which is cut off it. False at the end, or, with *broken set, where the
// bytes are none.
bool wire_next(struct wire_part *part, struct wire_field *field, bool *broken);
// The next of packed varints.
bool wire_varint(struct wire_part *part, uint64_t *value);

#endif
