// SPDX-License-Identifier: Apache-2.0
#include "tokens.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK ((size_t)64 << 10)

struct arena_block {
    struct arena_block *next;
    void *kept;
    size_t used, size;
    max_align_t data[];
};

static struct arena_block *add_block(struct arena *arena, size_t size) {
    struct arena_block *block = malloc(sizeof *block + size);
    if (!block) {
        arena->failed = true;
        return NULL;
    }
    *block = (struct arena_block){.next = arena->blocks, .size = size};
    arena->blocks = block;
    return block;
}

void *arena_take(struct arena *arena, size_t size) {
    size = (size + 15) & ~(size_t)15;
    struct arena_block *block = arena->blocks;
    if (!block || block->size - block->used < size) {
        block = add_block(arena, size > BLOCK ? size : BLOCK);
    }
    if (!block) {
        return NULL;
    }
    void *memory = (char *)block->data + block->used;
    block->used += size;
    return memory;
}

void arena_keep(struct arena *arena, void *memory) {
    struct arena_block *block = add_block(arena, 0);
    if (block) {
        block->kept = memory;
    } else {
        free(memory);
    }
}

void arena_finish(struct arena *arena) {
    while (arena->blocks) {
        struct arena_block *next = arena->blocks->next;
        free(arena->blocks->kept);
        free(arena->blocks);
        arena->blocks = next;
    }
}

bool token_is(const struct token *token, const char *text) {
    return token && token->length == strlen(text) && memcmp(token->at, text, token->length) == 0;
}

// Takes out backslashes at ends of lines, and leaves as many newlines behind the line that they
// made.
static void join_lines(char *text) {
    char *to = text;
    size_t joined = 0;
    for (const char *from = text; *from; from++) {
        size_t cut =
            from[0] == '\\' ? (from[1] == '\n') + 2 * (from[1] == '\r' && from[2] == '\n') : 0;
        if (cut) {
            from += cut;
            joined++;
            continue;
        }
        *to++ = *from;
        for (; *from == '\n' && joined > 0; joined--) {
            *to++ = '\n';
        }
    }
    *to = '\0';
}

// Length of the token at `at`, and its kind.
static size_t measure(const char *at, enum token_kind *kind) {
    size_t n = 1;
    if (isalpha((unsigned char)*at) || *at == '_') {
        while (isalnum((unsigned char)at[n]) || at[n] == '_') {
            n++;
        }
        *kind = TOKEN_NAME;
    } else if (isdigit((unsigned char)*at) || (*at == '.' && isdigit((unsigned char)at[1]))) {
        bool hex = at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
        while (isalnum((unsigned char)at[n]) || at[n] == '_' || at[n] == '.' ||
               (!hex && strchr("eE", at[n - 1]) && (at[n] == '+' || at[n] == '-'))) {
            n++;
        }
        *kind = TOKEN_NUMBER;
    } else if (*at == '"' || *at == '\'') {
        while (at[n] && at[n] != '\n' && at[n] != *at) {
            n += at[n] == '\\' && at[n + 1] && at[n + 1] != '\n' ? 2 : 1;
        }
        n += at[n] == *at;
        *kind = TOKEN_TEXT;
    } else {
        static const char *const marks[] = {
            "<<=", ">>=", "...", "##", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
            "++",  "--",  "+=",  "-=", "*=", "/=", "%=", "&=", "|=", "^=", "->"};
        for (size_t i = 0; n == 1 && i < sizeof marks / sizeof marks[0]; i++) {
            n = strncmp(at, marks[i], strlen(marks[i])) == 0 ? strlen(marks[i]) : n;
        }
        *kind = TOKEN_MARK;
    }
    return n;
}

struct token *tokens_read(struct arena *arena, const char *file, uint32_t depth, char *text,
                          struct token ***end) {
    struct token *list = NULL, **tail = &list;
    uint32_t line = 1;
    bool first = true, space = false;
    join_lines(text);
    for (const char *at = text; *at;) {
        if (*at == '\n') {
            line++;
            first = true;
            at++;
        } else if (isspace((unsigned char)*at)) {
            space = true;
            at++;
        } else if (at[0] == '/' && at[1] == '/') {
            at += strcspn(at, "\n");
        } else if (at[0] == '/' && at[1] == '*') {
            for (at += 2; *at && !(at[0] == '*' && at[1] == '/'); at++) {
                line += *at == '\n';
            }
            at += *at ? 2 : 0;
            space = true;
        } else {
            struct token *token = arena_take(arena, sizeof *token);
            if (!token) {
                break;
            }
            enum token_kind kind;
            size_t length = measure(at, &kind);
            *token = (struct token){.kind = kind,
                                    .first = first,
                                    .space = space,
                                    .at = at,
                                    .length = (uint32_t)length,
                                    .line = line,
                                    .depth = depth,
                                    .file = file};
            *tail = token;
            tail = &token->next;
            at += length;
            first = space = false;
        }
    }
    *end = tail;
    return list;
}
