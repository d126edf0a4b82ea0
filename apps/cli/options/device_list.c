// SPDX-License-Identifier: Apache-2.0
#include "device_list.h"

#include <stdio.h>
#include <string.h>

#include "cli/talk.h"

// Where a word of a list ends. A comma in parentheses is part of a device's name: "llvmpipe (LLVM
// 15.0.6, 256 bits)".
static size_t word_length(const char *word) {
    size_t length = 0;
    for (int open = 0; word[length] && (word[length] != ',' || open > 0); length++) {
        open += (word[length] == '(') - (word[length] == ')');
    }
    return length;
}

uint32_t devices_count(const char *list) {
    uint32_t count = 1;
    for (const char *at = list + word_length(list); *at; at += 1 + word_length(at + 1)) {
        count++;
    }
    return count;
}

bool devices_named(const char *list) {
    bool named = true;
    for (const char *at = list; at; at = *at ? at + 1 : NULL) {
        size_t length = word_length(at);
        named = named && strspn(at, " ") < length;
        at += length;
    }
    if (!named) {
        talk_error("the devices '%s' have an empty entry: name one on each side of a comma", list);
    }
    return named;
}

void devices_word(const char *list, uint32_t i, char *word, size_t size) {
    const char *begin = list;
    for (uint32_t k = i % devices_count(list); k > 0; k--) {
        begin += word_length(begin) + 1;
    }
    snprintf(word, size, "%.*s", (int)word_length(begin), begin);
}
