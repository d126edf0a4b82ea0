// SPDX-License-Identifier: Apache-2.0
// Calls, as guides write networks and transforms, into the list that they mean:
//
//     wideresnet(depth=28, width=2)              [{wideresnet: {depth: 28, width: 2}}]
//     resize(96) | normalize | crop(a=(1, 2))    [{resize: {"0": 96}}, normalize,
//                                                 {crop: {a: [1, 2]}}]
#include <stdio.h>
#include <string.h>

#include "config_parts.h"

#define WHY(...) (snprintf(why, CONFIG_WHY, __VA_ARGS__), false)
#define WORD                                                                                       \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"                                         \
    "0123456789_.+-"

struct calls {
    const char *begin, *at;
    char *list;
    size_t capacity, used;
};

static void put(struct calls *c, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++, c->used++) {
        if (c->used + 1 < c->capacity) {
            c->list[c->used] = text[i];
        }
    }
}

static void put_text(struct calls *c, const char *text) {
    put(c, text, strlen(text));
}

// Steps over spaces, and over one character where it is that.
static bool takes(struct calls *c, char wanted) {
    c->at += strspn(c->at, " \t\n");
    if (*c->at != wanted || wanted == '\0') {
        return false;
    }
    c->at++;
    return true;
}

static size_t word(struct calls *c) {
    c->at += strspn(c->at, " \t\n");
    return strspn(c->at, WORD);
}

static bool wanted(const struct calls *c, const char *what, char *why) {
    return WHY("%s is wanted at character %zu of '%.120s'", what, (size_t)(c->at - c->begin) + 1,
               c->begin);
}

// A word, or words in brackets of either kind.
static bool read_value(struct calls *c, char *why) {
    char close = '\0';
    if (takes(c, '(')) {
        close = ')';
    } else if (takes(c, '[')) {
        close = ']';
    }
    put_text(c, close ? "[" : "");
    for (bool first = true; first || (close && takes(c, ',')); first = false) {
        size_t length = word(c);
        if (length == 0) {
            return wanted(c, "a value", why);
        }
        put_text(c, first ? "" : ", ");
        put(c, c->at, length);
        c->at += length;
    }
    put_text(c, close ? "]" : "");
    return !close || takes(c, close) || wanted(c, close == ')' ? "')'" : "']'", why);
}

// What stands between the parentheses; values without a name are called by their number.
static bool read_arguments(struct calls *c, char *why) {
    unsigned count = 0;
    put_text(c, ": {");
    while (!takes(c, ')')) {
        if (count > 0 && !takes(c, ',')) {
            return wanted(c, "',' or ')'", why);
        }
        size_t length = word(c);
        char number[16];
        const char *name = c->at + length;
        name += strspn(name, " ");
        put_text(c, count > 0 ? ", " : "");
        if (length > 0 && *name == '=') {
            put(c, c->at, length);
            c->at = name + 1;
        } else {
            snprintf(number, sizeof number, "\"%u\"", count);
            put_text(c, number);
        }
        put_text(c, ": ");
        if (!read_value(c, why)) {
            return false;
        }
        count++;
    }
    put_text(c, "}");
    return true;
}

bool config_calls(const char *text, char *list, size_t capacity, char why[CONFIG_WHY]) {
    struct calls c = {.begin = text, .at = text, .list = list, .capacity = capacity};
    put_text(&c, "[");
    for (bool first = true; first || takes(&c, '|'); first = false) {
        size_t length = word(&c);
        if (length == 0) {
            return wanted(&c, "a name", why);
        }
        const char *name = c.at;
        c.at += length;
        bool call = takes(&c, '(');
        put_text(&c, first ? "" : ", ");
        put_text(&c, call ? "{" : "");
        put(&c, name, length);
        if (call && !read_arguments(&c, why)) {
            return false;
        }
        put_text(&c, call ? "}" : "");
    }
    put_text(&c, "]");
    takes(&c, ' ');
    if (*c.at) {
        return wanted(&c, "'|' or the end", why);
    }
    if (c.used >= capacity) {
        return WHY("'%.120s' is too long", text);
    }
    list[c.used] = '\0';
    return true;
}
