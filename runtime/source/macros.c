// SPDX-License-Identifier: Apache-2.0
// Recursion of macros is stopped as the standard says, by the set of names that each token came out
// of (Prosser's algorithm).
#include "macros.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

#define MAX_PARAMS 16
#define MAX_TOKENS (4u << 20)  // that are made: macros can grow without end

struct macro {
    const struct token *name;
    bool call;  // has parameters, maybe none
    uint32_t param_count;
    const struct token *params[MAX_PARAMS];
    struct token *body;
    struct macro *next;
};

bool macros_fail(struct macros *macros, const struct token *at, const char *what,
                 const struct token *name) {
    if (!macros->failed) {
        grt_fail(GRT_BAD_DATA, "%s:%u: error: %s%s%.*s%s", at ? at->file : "?", at ? at->line : 0,
                 what, name ? " '" : "", name ? (int)name->length : 0, name ? name->at : "",
                 name ? "'" : "");
    }
    macros->failed = true;
    return false;
}

static struct macro *find_macro(const struct macros *macros, const struct token *name) {
    struct macro *m = name->kind == TOKEN_NAME ? macros->list : NULL;
    while (m &&
           !(m->name->length == name->length && memcmp(m->name->at, name->at, name->length) == 0)) {
        m = m->next;
    }
    return m;
}

static bool is_hidden(const struct token *token, const struct macro *macro) {
    const struct hidden *h = token->hidden;
    while (h && h->macro != macro) {
        h = h->next;
    }
    return h != NULL;
}

static struct hidden *hide(struct macros *macros, struct hidden *set, const struct macro *macro) {
    for (const struct hidden *h = set; h; h = h->next) {
        if (h->macro == macro) {
            return set;
        }
    }
    struct hidden *h = arena_take(&macros->arena, sizeof *h);
    if (!h) {
        return set;
    }
    *h = (struct hidden){macro, set};
    return h;
}

static struct hidden *hide_all(struct macros *macros, struct hidden *set,
                               const struct hidden *more) {
    for (; more; more = more->next) {
        set = hide(macros, set, more->macro);
    }
    return set;
}

static struct hidden *hidden_in_both(struct macros *macros, const struct token *a,
                                     const struct token *b) {
    struct hidden *set = NULL;
    for (const struct hidden *h = a->hidden; h; h = h->next) {
        set = is_hidden(b, h->macro) ? hide(macros, set, h->macro) : set;
    }
    return set;
}

static struct token *copy(struct macros *macros, const struct token *token) {
    struct token *t = arena_take(&macros->arena, sizeof *t);
    if (!t || ++macros->token_count > MAX_TOKENS) {
        macros_fail(macros, token, "macros grow without end at", token);
        return NULL;
    }
    *t = *token;
    t->next = NULL;
    return t;
}

static struct token *copy_list(struct macros *macros, const struct token *list) {
    struct token *first = NULL, **tail = &first;
    for (; list && !macros->failed; list = list->next) {
        if ((*tail = copy(macros, list))) {
            tail = &(*tail)->next;
        }
    }
    return first;
}

static struct token *made_of(struct macros *macros, const struct token *like, enum token_kind kind,
                             const char *text, size_t length) {
    struct token *t = copy(macros, like);
    char *kept = arena_take(&macros->arena, length + 1);
    if (t && kept) {
        memcpy(kept, text, length);
        t->kind = kind;
        t->at = kept;
        t->length = (uint32_t)length;
    }
    return kept ? t : NULL;
}

// "a b": the tokens of an argument as a text.
static struct token *stringify(struct macros *macros, const struct token *like,
                               const struct token *list) {
    char text[1024] = "\"";
    size_t n = 1;
    for (const struct token *t = list; t; t = t->next) {
        if (t != list && t->space) {
            text[n++] = ' ';
        }
        for (uint32_t i = 0; i < t->length; i++) {
            if (n + 4 > sizeof text) {
                macros_fail(macros, like, "too long for # at", like);
                return NULL;
            }
            if (t->kind == TOKEN_TEXT && (t->at[i] == '"' || t->at[i] == '\\')) {
                text[n++] = '\\';
            }
            text[n++] = t->at[i];
        }
        if (n + 4 > sizeof text) {
            macros_fail(macros, like, "too long for # at", like);
            return NULL;
        }
    }
    text[n++] = '"';
    return made_of(macros, like, TOKEN_TEXT, text, n);
}

static struct token *paste(struct macros *macros, const struct token *a, const struct token *b) {
    char text[512];
    if ((size_t)a->length + b->length > sizeof text) {
        macros_fail(macros, a, "too long for ## at", a);
        return NULL;
    }
    memcpy(text, a->at, a->length);
    memcpy(text + a->length, b->at, b->length);
    struct token *t = made_of(macros, a, a->kind, text, (size_t)a->length + b->length);
    if (t) {
        t->hidden = hidden_in_both(macros, a, b);
    }
    return t;
}

static int param_of(const struct macro *m, const struct token *t) {
    for (uint32_t i = 0; t && t->kind == TOKEN_NAME && i < m->param_count; i++) {
        if (m->params[i]->length == t->length && memcmp(m->params[i]->at, t->at, t->length) == 0) {
            return (int)i;
        }
    }
    return -1;
}

// The body of a macro with its arguments in their places, all of it on the line of the call, before
// `rest`.
static struct token *substitute(struct macros *macros, const struct macro *m,
                                const struct token *call, struct token **args,
                                struct hidden *hidden, struct token *rest) {
    struct token *first = NULL, **tail = &first, *last = NULL;
    bool pasting = false;
    for (const struct token *t = m->body; t && !macros->failed; t = t->next) {
        int p = param_of(m, t);
        struct token *piece;
        if (token_is(t, "#") && m->call && param_of(m, t->next) >= 0) {
            t = t->next;
            piece = stringify(macros, t, args[param_of(m, t)]);
        } else if (token_is(t, "##") && last && t->next) {
            pasting = true;
            continue;
        } else if (p >= 0) {
            // Beside ## an argument is taken as it is, elsewhere expanded.
            bool raw = pasting || token_is(t->next, "##");
            piece = copy_list(macros, args[p]);
            piece = raw ? piece : macros_expand_all(macros, piece);
        } else {
            piece = copy(macros, t);
        }
        if (pasting && piece && last) {
            struct token *joined = paste(macros, last, piece);
            if (joined) {
                joined->next = piece->next;
                *last = *joined;
            }
            piece = NULL;
            for (; last->next; last = last->next) {
            }
            tail = &last->next;
        }
        pasting = false;
        for (*tail = piece; *tail; tail = &(*tail)->next) {
            last = *tail;
        }
    }
    for (struct token *t = first; t; t = t->next) {
        t->hidden = hide_all(macros, hidden, t->hidden);
        t->file = call->file;
        t->line = call->line;
        t->depth = call->depth;
        t->first = false;
    }
    *tail = rest;
    return first;
}

// The arguments of a call whose ( is `open`; `*close` is its ).
static bool gather(struct macros *macros, const struct macro *m, const struct token *call,
                   struct token *open, struct token **args, struct token **close) {
    uint32_t count = 0;
    int depth = 0;
    struct token **tail = &args[0];
    struct token *t = open->next;
    for (; t && !(depth == 0 && token_is(t, ")")); t = t->next) {
        depth += token_is(t, "(") - token_is(t, ")");
        if (depth == 0 && token_is(t, ",") && count + 1 < MAX_PARAMS) {
            tail = &args[++count];
            continue;
        }
        *tail = copy(macros, t);
        if (!*tail) {
            return false;
        }
        tail = &(*tail)->next;
    }
    *close = t;
    count += m->param_count > 0 || args[0];
    if (!t) {
        return macros_fail(macros, call, "no ) after the arguments of", m->name);
    }
    return count == m->param_count ||
           macros_fail(macros, call, "wrong number of arguments of", m->name);
}

// What stands for the call of a macro and the tokens behind it.
static struct token *expand(struct macros *macros, const struct macro *m, struct token *token) {
    struct token *args[MAX_PARAMS] = {0}, *open = token->next, *close = NULL;
    if (!m->call) {
        return substitute(macros, m, token, args, hide(macros, token->hidden, m), open);
    }
    if (!open || !gather(macros, m, token, open, args, &close)) {
        return NULL;
    }
    struct hidden *hidden = hide(macros, hidden_in_both(macros, token, close), m);
    return substitute(macros, m, token, args, hidden, close->next);
}

bool macros_expand(struct macros *macros, struct token **list) {
    const struct macro *m = find_macro(macros, *list);
    if (!m || is_hidden(*list, m) || (m->call && !token_is((*list)->next, "("))) {
        return false;
    }
    *list = expand(macros, m, *list);
    return true;
}

struct token *macros_expand_all(struct macros *macros, struct token *list) {
    struct token *first = list, **at = &first;
    while (*at && !macros->failed) {
        if (!macros_expand(macros, at)) {
            at = &(*at)->next;
        }
    }
    return first;
}

bool macros_has(const struct macros *macros, const struct token *name) {
    return find_macro(macros, name) != NULL;
}

// The tokens of a line from t on, as a list of their own.
struct token *macros_copy(struct macros *macros, const struct token *t, const struct token *end) {
    struct token *first = NULL, **tail = &first;
    for (; t != end && !macros->failed; t = t->next) {
        if ((*tail = copy(macros, t))) {
            tail = &(*tail)->next;
        }
    }
    return first;
}

bool macros_define(struct macros *macros, struct token *name, struct token *end) {
    if (name == end || name->kind != TOKEN_NAME) {
        return macros_fail(macros, name, "#define wants a name", NULL);
    }
    struct macro *m = arena_take(&macros->arena, sizeof *m);
    if (!m) {
        return false;
    }
    *m = (struct macro){.name = name, .next = macros->list};
    struct token *t = name->next;
    if (t != end && token_is(t, "(") && !t->space) {
        m->call = true;
        for (t = t->next; t != end && !token_is(t, ")"); t = t->next) {
            if (t->kind == TOKEN_NAME && m->param_count < MAX_PARAMS) {
                m->params[m->param_count++] = t;
            } else if (!token_is(t, ",")) {
                return macros_fail(macros, t, "no parameter of a macro:", t);
            }
        }
        if (t == end) {
            return macros_fail(macros, name, "no ) in #define", name);
        }
        t = t->next;
    }
    m->body = macros_copy(macros, t, end);
    macros->list = m;
    return !macros->failed;
}

void macros_undefine(struct macros *macros, const struct token *name) {
    const struct macro *gone = find_macro(macros, name);
    for (struct macro **m = &macros->list; *m;) {
        if (gone && (*m)->name->length == gone->name->length &&
            memcmp((*m)->name->at, gone->name->at, gone->name->length) == 0) {
            *m = (*m)->next;
        } else {
            m = &(*m)->next;
        }
    }
}
