// SPDX-License-Identifier: Apache-2.0
// Inside the preprocessor: macros, and the failure that ends it all.
#ifndef GRT_MACROS_H
#define GRT_MACROS_H

#include "tokens.h"

struct macros {
    struct arena arena;
    struct macro *list;
    uint32_t token_count;
    bool failed;
};

// Says file, line, what, and the name if there is one; the first time only. False.
bool macros_fail(struct macros *m, const struct token *at, const char *what,
                 const struct token *name);
bool macros_define(struct macros *m, struct token *name, struct token *end);
void macros_undefine(struct macros *m, const struct token *name);
bool macros_has(const struct macros *m, const struct token *name);
// Whether a macro is called at the front of a list, and then the list with its replacement.
bool macros_expand(struct macros *m, struct token **list);
struct token *macros_expand_all(struct macros *m, struct token *list);
// The tokens from t on, up to `end`, as a list of their own.
struct token *macros_copy(struct macros *m, const struct token *t, const struct token *end);

#endif
