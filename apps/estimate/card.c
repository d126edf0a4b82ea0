// SPDX-License-Identifier: Apache-2.0
#include "card.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/gpurt.h"

// X(key, field, scale, least, most, wanted): numbers of a card, bounds in the unit of the file.
#define CARD_NUMBERS(X)                                                                            \
    X("units", units, 1, 1, 1e5, true)                                                             \
    X("clock_mhz", clock, 1e6, 1, 1e5, true)                                                       \
    X("fp32_tflops", plain, 1e12, 1e-4, 1e6, true)                                                 \
    X("matrix_tflops", matrix, 1e12, 1e-4, 1e7, false)                                             \
    X("bandwidth_gb_per_s", bandwidth, 1e9, 1e-2, 1e6, true)                                       \
    X("memory_gib", memory, 1073741824.0, 1e-2, 1e5, true)
#define CARD_TEXTS(X)                                                                              \
    X("id", id)                                                                                    \
    X("name", name)                                                                                \
    X("vendor", vendor)                                                                            \
    X("source", source)
#define TEXT_MOST 300

static void say(char why[CARD_WHY], const char *format, ...) GRT_PRINTF(2, 3);
static void say(char why[CARD_WHY], const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(why, CARD_WHY, format, args);
    va_end(args);
}
// False, in sight of checkers, which do not follow calls with `...`.
#define wrong(...) (say(__VA_ARGS__), false)

void cards_init(struct cards *cards) {
    *cards = (struct cards){0};
}

void cards_finish(struct cards *cards) {
    for (size_t i = 0; i < cards->text_count; i++) {
        json_decref(cards->texts[i]);
    }
    free(cards->texts);
    free(cards->list);
    *cards = (struct cards){0};
}

// Visible ASCII: names are printed to terminals and pages.
static bool plain_text(const char *text) {
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        if (text[i] < ' ' || text[i] > '~') {
            return false;
        }
    }
    return length > 0 && length <= TEXT_MOST;
}

static bool known_key(const char *key) {
#define X(name, ...) || strcmp(key, name) == 0
    return false CARD_NUMBERS(X) CARD_TEXTS(X);
#undef X
}

static bool read_number(const json_t *object, const char *key, double least, double most,
                        bool wanted, double *into, char why[CARD_WHY]) {
    const json_t *value = json_object_get(object, key);
    if (!value && !wanted) {
        return true;
    }
    if (!json_is_number(value)) {
        return wrong(why, "%s is %s", key, value ? "no number" : "missing");
    }
    *into = json_number_value(value);
    if (!(*into >= least && *into <= most)) {
        return wrong(why, "%s is %g; from %g to %g is allowed", key, *into, least, most);
    }
    return true;
}

static bool read_card(const json_t *object, struct card *card, char why[CARD_WHY]) {
    const char *key;
    json_t *value;
    *card = (struct card){0};
    if (!json_is_object(object)) {
        return wrong(why, "is no object");
    }
    json_object_foreach((json_t *)object, key, value) {
        if (!known_key(key)) {
            return wrong(why, "'%.40s' is not known", key);
        }
    }
#define X(name, field)                                                                             \
    card->field = json_string_value(json_object_get(object, name));                                \
    if (!card->field || !plain_text(card->field)) {                                                \
        return wrong(why, "%s is wanted, up to %d letters", name, TEXT_MOST);                      \
    }
    CARD_TEXTS(X)
#undef X
    if (strspn(card->id, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(card->id)) {
        return wrong(why, "id '%.40s' has other than a-z, 0-9 and -", card->id);
    }
    bool good = true;
#define X(name, field, scale, least, most, wanted)                                                 \
    good = good && read_number(object, name, least, most, wanted, &card->field, why);              \
    card->field *= scale;
    CARD_NUMBERS(X)
#undef X
    return good;
}

static bool add(struct cards *cards, const struct card *card, char why[CARD_WHY]) {
    for (size_t i = 0; i < cards->count; i++) {
        if (strcmp(cards->list[i].id, card->id) == 0) {
            cards->list[i] = *card;
            return true;
        }
    }
    if (cards->count == CARD_MAX) {
        return wrong(why, "more than %d cards in all", CARD_MAX);
    }
    cards->list[cards->count++] = *card;
    return true;
}

// Reads all into `more` before any is added.
static bool read_all(const json_t *list, size_t count, struct card *more, char why[CARD_WHY]) {
    for (size_t i = 0; i < count; i++) {
        char inner[CARD_WHY];
        if (!read_card(json_array_get(list, i), &more[i], inner)) {
            return wrong(why, "card %zu: %.200s", i + 1, inner);
        }
        for (size_t k = 0; k < i; k++) {
            if (strcmp(more[k].id, more[i].id) == 0) {
                return wrong(why, "card %zu: '%.40s' stands twice", i + 1, more[i].id);
            }
        }
    }
    return true;
}

static bool read_list(struct cards *cards, json_t *root, char why[CARD_WHY]) {
    const char *schema = json_string_value(json_object_get(root, "schema"));
    const json_t *list = json_object_get(root, "cards");
    size_t count = json_array_size(list);
    if (!schema || strcmp(schema, "gpurt.cards/1") != 0) {
        return wrong(why, "schema gpurt.cards/1 is wanted");
    }
    if (count == 0 || count > CARD_MAX) {
        return wrong(why, "cards: a list of 1 to %d is wanted", CARD_MAX);
    }
    struct card *more = calloc(count, sizeof *more);
    struct card *bigger = realloc(cards->list, (cards->count + count) * sizeof *bigger);
    void **texts = realloc(cards->texts, (cards->text_count + 1) * sizeof *texts);
    cards->list = bigger ? bigger : cards->list;
    cards->texts = texts ? texts : cards->texts;
    if (!more || !bigger || !texts) {
        free(more);
        return wrong(why, "out of memory");
    }
    bool good = read_all(list, count, more, why);
    size_t before = cards->count;
    for (size_t i = 0; good && i < count; i++) {
        good = add(cards, &more[i], why);
    }
    cards->count = good ? cards->count : before;
    if (good) {
        cards->texts[cards->text_count++] = json_incref(root);
    }
    free(more);
    return good;
}

bool cards_read(struct cards *cards, const char *text, size_t size, char why[CARD_WHY]) {
    json_error_t error;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        return wrong(why, "line %d: %.160s", error.line, error.text);
    }
    bool good = read_list(cards, root, why);
    json_decref(root);
    return good;
}

const struct card *cards_find(const struct cards *cards, const char *id) {
    for (size_t i = 0; i < cards->count; i++) {
        if (strcmp(cards->list[i].id, id) == 0) {
            return &cards->list[i];
        }
    }
    return NULL;
}

// The next letter or digit outside parentheses, in lower case; '\0' at the end.
static char next_letter(const char **text) {
    for (int depth = 0; **text; ++*text) {
        depth += **text == '(' ? 1 : **text == ')' && depth > 0 ? -1 : 0;
        if (depth == 0 && isalnum((unsigned char)**text)) {
            return (char)tolower((unsigned char)*(*text)++);
        }
    }
    return '\0';
}

static bool same_name(const char *a, const char *b) {
    char letter;
    do {
        letter = next_letter(&a);
        if (letter != next_letter(&b)) {
            return false;
        }
    } while (letter);
    return true;
}

const struct card *cards_named(const struct cards *cards, const char *name) {
    for (size_t i = 0; i < cards->count; i++) {
        if (same_name(cards->list[i].name, name)) {
            return &cards->list[i];
        }
    }
    return NULL;
}
