// SPDX-License-Identifier: Apache-2.0
#include "visible.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "width_ranges.h"

// The character at `text` and its bytes; 0 bytes when it is no UTF-8: cut short, too long a form, a
// surrogate, or beyond the last.
static size_t decode(const unsigned char *text, uint32_t *character) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t size = text[0] < 0x80             ? 1
                  : (text[0] & 0xe0) == 0xc0 ? 2
                  : (text[0] & 0xf0) == 0xe0 ? 3
                  : (text[0] & 0xf8) == 0xf0 ? 4
                                             : 0;
    *character = size > 1 ? text[0] & (0x7fu >> size) : text[0];
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;  // the end of the text as well
        }
        *character = *character << 6 | (text[i] & 0x3fu);
    }
    bool known = *character >= least[size] && *character <= 0x10ffff &&
                 !(*character >= 0xd800 && *character <= 0xdfff);
    return known ? size : 0;
}

static bool acts(uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) ||  // C0, DEL, C1
           c == 0x2028 || c == 0x2029 ||           // ends of lines and paragraphs
           (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);  // directions
}

size_t grt_visible(const char *text, char *into, size_t capacity) {
    size_t used = 0;
    for (size_t at = 0; text[at];) {
        uint32_t character = 0;
        size_t size = decode((const unsigned char *)text + at, &character);
        bool escape = size == 0 || acts(character);
        size = size ? size : 1;
        if (used + (escape ? 4 * size : size) >= capacity) {
            break;
        }
        for (size_t i = 0; i < size; i++) {
            if (escape) {
                used += (size_t)snprintf(into + used, capacity - used, "\\x%02x",
                                         (unsigned)(unsigned char)text[at + i]);
            } else {
                into[used++] = text[at + i];
            }
        }
        at += size;
    }
    if (capacity > 0) {
        into[used] = '\0';
    }
    return used;
}

static bool is_among(const struct width_range *ranges, size_t count, uint32_t character) {
    size_t from = 0;
    while (from < count) {
        size_t middle = from + (count - from) / 2;
        if (character > ranges[middle].last) {
            from = middle + 1;
        } else if (character < ranges[middle].first) {
            count = middle;
        } else {
            return true;
        }
    }
    return false;
}

static size_t columns_of(uint32_t c) {
    if (c < 0x300) {
        return 1;
    }
#define AMONG(ranges) is_among(ranges, sizeof(ranges) / sizeof *(ranges), c)
    return AMONG(width_none) ? 0 : AMONG(width_two) ? 2 : 1;
#undef AMONG
}

size_t grt_visible_fit(const char *text, size_t columns, size_t *used) {
    size_t at = 0, width = 0;
    while (text[at]) {
        uint32_t character = 0;
        size_t size = decode((const unsigned char *)text + at, &character);
        size_t more = size ? columns_of(character) : 1;
        if (width + more > columns) {
            break;
        }
        width += more;
        at += size ? size : 1;
    }
    if (used) {
        *used = width;
    }
    return at;
}

size_t grt_visible_width(const char *text) {
    size_t width = 0;
    grt_visible_fit(text, SIZE_MAX, &width);
    return width;
}
