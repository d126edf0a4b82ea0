// SPDX-License-Identifier: Apache-2.0
// One list of tokens is read from its front: a macro puts its replacement there, an #include the
// tokens of its file. Each token knows its file and line, so there is no stack of files.
#include "preprocess.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "expression.h"
#include "macros.h"

#define MAX_IFS 64
#define MAX_INCLUDES 32  // in one another
#define MAX_GAP 8        // lines that are left empty rather than counted anew

struct condition {
    const struct token *begin;
    bool taken;   // one branch was
    bool active;  // the present branch is
};

struct pp {
    struct macros macros;
    grt_pp_open_fn *open;
    void *context;
    struct token *rest;
    struct condition ifs[MAX_IFS];
    uint32_t if_count;
    char *out;
    size_t used, room;
    const char *out_file;
    uint32_t out_line;
};

// ---- output ----

static void put(struct pp *pp, const char *text, size_t length) {
    if (pp->used + length + 1 > pp->room) {
        size_t room = 2 * pp->room + length + 4096;
        char *out = realloc(pp->out, room);
        if (!out) {
            pp->macros.arena.failed = true;
            return;
        }
        pp->out = out;
        pp->room = room;
    }
    memcpy(pp->out + pp->used, text, length);
    pp->used += length;
    pp->out[pp->used] = '\0';
}

static void put_line(struct pp *pp, const char *file, uint32_t line) {
    char number[32];
    snprintf(number, sizeof number, "%s#line %u \"", pp->used ? "\n" : "", line);
    put(pp, number, strlen(number));
    for (const char *c = file; *c; c++) {
        put(pp, *c == '"' || *c == '\\' || (unsigned char)*c < ' ' ? "_" : c, 1);
    }
    put(pp, "\"\n", 2);
    pp->out_file = file;
    pp->out_line = line;
}

static void emit(struct pp *pp, const struct token *token) {
    if (pp->out_file != token->file || token->line < pp->out_line ||
        token->line > pp->out_line + MAX_GAP) {
        put_line(pp, token->file, token->line);
    }
    bool fresh = pp->out_line < token->line;
    for (; pp->out_line < token->line; pp->out_line++) {
        put(pp, "\n", 1);
    }
    // Between tokens of a macro there may be no space, and they must not grow together.
    if (!fresh) {
        put(pp, " ", 1);
    }
    put(pp, token->at, token->length);
}

// A line that the compiler is to see as it stands.
static void emit_directive(struct pp *pp, const struct token *hash) {
    put_line(pp, hash->file, hash->line);
    const struct token *t = hash;
    do {
        if (t != hash && t->space) {
            put(pp, " ", 1);
        }
        put(pp, t->at, t->length);
        t = t->next;
    } while (t && !t->first);
    put(pp, "\n", 1);
    pp->out_line++;
}

// ---- directives ----

// The first token of the next line.
static struct token *line_end(struct token *t) {
    do {
        t = t->next;
    } while (t && !t->first);
    return t;
}

static bool zero(void *context, const char *name, size_t length, double *value) {
    (void)context;
    (void)name;
    (void)length;
    *value = 0;
    return true;
}

// Whether the expression from t to the line's end is true.
static bool condition(struct pp *pp, const struct token *hash, struct token *t, struct token *end) {
    char text[2048], why[128];
    size_t used = 0;
    double value = 0;
    struct token *list = macros_copy(&pp->macros, t, end);
    for (struct token *d = list; d; d = d->next) {
        if (token_is(d, "defined") && d->next) {
            bool paren = token_is(d->next, "(");
            const struct token *name = paren ? d->next->next : d->next;
            struct token *last = paren && name ? name->next : (struct token *)name;
            if (!name || !last) {
                return macros_fail(&pp->macros, hash, "defined wants a name", NULL);
            }
            d->at = macros_has(&pp->macros, name) ? "1" : "0";
            d->length = 1;
            d->kind = TOKEN_NUMBER;
            d->next = last->next;
        }
    }
    text[0] = '\0';
    for (const struct token *e = macros_expand_all(&pp->macros, list); e; e = e->next) {
        if (used + e->length + 2 > sizeof text) {
            return macros_fail(&pp->macros, hash, "too long a condition", NULL);
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "%.*s ", (int)e->length, e->at);
    }
    if (!pp->macros.failed && !grt_expression(text, zero, NULL, &value, why)) {
        char what[160];
        snprintf(what, sizeof what, "no condition: %s", why);
        return macros_fail(&pp->macros, hash, what, NULL);
    }
    return value != 0;
}

static bool active(const struct pp *pp) {
    for (uint32_t i = 0; i < pp->if_count; i++) {
        if (!pp->ifs[i].active) {
            return false;
        }
    }
    return true;
}

static void begin_if(struct pp *pp, const struct token *hash, bool is_true) {
    if (pp->if_count == MAX_IFS) {
        macros_fail(&pp->macros, hash, "too many #if in one another", NULL);
        return;
    }
    pp->ifs[pp->if_count++] = (struct condition){hash, is_true, is_true};
}

static void include(struct pp *pp, const struct token *hash, struct token *name,
                    struct token *end) {
    char text[1024];
    struct grt_pp_file file = {0};
    if (name != end && token_is(name, "<")) {
        emit_directive(pp, hash);
        return;
    }
    if (name == end || name->kind != TOKEN_TEXT || name->length < 3 || name->at[0] != '"' ||
        name->length > sizeof text) {
        macros_fail(&pp->macros, hash, "#include wants \"a file\"", NULL);
        return;
    }
    snprintf(text, sizeof text, "%.*s", (int)name->length - 2, name->at + 1);
    if (hash->depth >= MAX_INCLUDES) {
        macros_fail(&pp->macros, hash, "files that include one another without end:", name);
    } else if (!pp->open(pp->context, hash->file, text, &file)) {
        macros_fail(&pp->macros, hash, "there is no file", name);
    } else {
        struct token **tail = NULL;
        arena_keep(&pp->macros.arena, file.text);
        struct token *list =
            tokens_read(&pp->macros.arena, file.name, hash->depth + 1, file.text, &tail);
        *tail = end;
        pp->rest = list;
    }
}

static void directive(struct pp *pp, struct token *hash) {
    struct token *end = line_end(hash);
    struct token *word = hash->next, *rest = word && word != end ? word->next : end;
    bool on = active(pp);
    struct condition *top = pp->if_count ? &pp->ifs[pp->if_count - 1] : NULL;
    pp->rest = end;
    if (word == end || !word) {
        return;
    }
    if (token_is(word, "ifdef") || token_is(word, "ifndef")) {
        bool there = rest != end && macros_has(&pp->macros, rest);
        begin_if(pp, hash, on && there == (word->length == 5));
    } else if (token_is(word, "if")) {
        begin_if(pp, hash, on && condition(pp, hash, rest, end));
    } else if (token_is(word, "elif") || token_is(word, "else") || token_is(word, "endif")) {
        if (!top) {
            macros_fail(&pp->macros, hash, "no #if before", word);
        } else if (word->length == 5) {
            pp->if_count--;
        } else {
            top->active = true;
            bool live = active(pp) && !top->taken;
            top->active = live && (word->at[2] == 's' || condition(pp, hash, rest, end));
            top->taken = top->taken || top->active || !live;
        }
    } else if (!on) {
        return;
    } else if (token_is(word, "define")) {
        macros_define(&pp->macros, rest, end);
    } else if (token_is(word, "undef") && rest != end) {
        macros_undefine(&pp->macros, rest);
    } else if (token_is(word, "include")) {
        include(pp, hash, rest, end);
    } else if (token_is(word, "error")) {
        macros_fail(&pp->macros, hash, "#error", rest == end ? NULL : rest);
    } else if (token_is(word, "pragma") || token_is(word, "extension") ||
               token_is(word, "version")) {
        emit_directive(pp, hash);
    } else {
        macros_fail(&pp->macros, hash, "unknown directive", word);
    }
}

char *grt_preprocess(const char *name, const char *text, grt_pp_open_fn *open, void *context) {
    struct pp pp = {.open = open, .context = context};
    struct token **end = NULL;
    char *own = arena_take(&pp.macros.arena, strlen(text) + 1);
    if (own) {
        memcpy(own, text, strlen(text) + 1);
        pp.rest = tokens_read(&pp.macros.arena, name, 0, own, &end);
    }
    while (pp.rest && !pp.macros.failed && !pp.macros.arena.failed) {
        struct token *t = pp.rest;
        bool on = active(&pp);
        if (t->first && token_is(t, "#")) {
            directive(&pp, t);
        } else if (!on || !macros_expand(&pp.macros, &pp.rest)) {
            if (on) {
                emit(&pp, t);
            }
            pp.rest = t->next;
        }
    }
    if (!pp.macros.failed && pp.if_count) {
        macros_fail(&pp.macros, pp.ifs[pp.if_count - 1].begin, "no #endif for this condition",
                    NULL);
    }
    if (!pp.macros.failed && pp.macros.arena.failed) {
        grt_fail(GRT_NO_MEMORY, "no host memory to read %s", name);
        pp.macros.failed = true;
    }
    put(&pp, "\n", 1);
    arena_finish(&pp.macros.arena);
    if (pp.macros.failed) {
        free(pp.out);
        pp.out = NULL;
    }
    return pp.out;
}
