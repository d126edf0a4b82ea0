// SPDX-License-Identifier: Apache-2.0
// Inside the preprocessor: tokens in lists, all of them freed at the end together.
#ifndef GRT_TOKENS_H
#define GRT_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum token_kind { TOKEN_NAME, TOKEN_NUMBER, TOKEN_TEXT, TOKEN_MARK };  // TEXT: "..." and '...'

// Names of macros that a token came out of, and that do not expand it again.
struct hidden {
    const struct macro *macro;
    struct hidden *next;
};

struct token {
    enum token_kind kind;
    bool first;  // of its line
    bool space;  // before it
    const char *at;
    uint32_t length, line;
    uint32_t depth;  // of #include
    const char *file;
    struct hidden *hidden;
    struct token *next;
};

// Blocks of memory that live until the end.
struct arena {
    struct arena_block *blocks;
    bool failed;
};

void *arena_take(struct arena *arena, size_t size);  // NULL: `failed` is set
// Frees `memory` with the rest.
void arena_keep(struct arena *arena, void *memory);
void arena_finish(struct arena *arena);

// The tokens of a text, which must stay; comments are spaces. *end is where more can be appended.
struct token *tokens_read(struct arena *arena, const char *file, uint32_t depth, char *text,
                          struct token ***end);
bool token_is(const struct token *token, const char *text);

#endif
