// SPDX-License-Identifier: Apache-2.0
// Walks the tokens of a description; they stand apart, by spaces.
#include "describe.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "expression.h"
#include "gpurt/graph.h"

#define MAX_WORD 256
#define MAX_EXPRESSION 8192
#define MAX_STRUCTS 8  // in one another

struct walk {
    const char *at;
    const char *file;
};

static const char *skip(const char *at) {
    for (;;) {
        at += strspn(at, " \n");
        if (strncmp(at, "#line", 5) != 0 && strncmp(at, "#pragma", 7) != 0) {
            return at;
        }
        at += strcspn(at, "\n");
    }
}

// The next token; "" at the end.
static bool next(struct walk *w, char word[MAX_WORD]) {
    w->at = skip(w->at);
    size_t length = strcspn(w->at, " \n");
    if (w->at[0] == '"') {
        length = 1 + strcspn(w->at + 1, "\"");
        length += w->at[length] == '"';
    }
    snprintf(word, MAX_WORD, "%.*s", (int)(length < MAX_WORD ? length : MAX_WORD - 1), w->at);
    w->at += length;
    return length > 0;
}

static bool expect(struct walk *w, const char *text) {
    char word[MAX_WORD];
    next(w, word);
    return strcmp(word, text) == 0 ||
           grt_fail(GRT_BAD_DATA, "%s: '%s' is expected in a list of the kernel, not '%s'", w->file,
                    text, word);
}

static bool is_name(const char *word) {
    return isalpha((unsigned char)word[0]) || word[0] == '_';
}

// Tokens up to a comma or ) outside parentheses, which is left.
static bool until_comma(struct walk *w, char text[MAX_EXPRESSION]) {
    size_t used = 0;
    int depth = 0;
    text[0] = '\0';
    for (;;) {
        const char *before = w->at;
        char word[MAX_WORD];
        if (!next(w, word) || used + strlen(word) + 2 > MAX_EXPRESSION) {
            return grt_fail(GRT_BAD_DATA, "%s: a list of the kernel does not end", w->file);
        }
        if (depth == 0 &&
            (strcmp(word, ",") == 0 || strcmp(word, ")") == 0 || strcmp(word, "]") == 0)) {
            w->at = before;
            return true;
        }
        depth += (word[0] == '(') - (word[0] == ')');
        used += (size_t)snprintf(text + used, MAX_EXPRESSION - used, "%s%s", used ? " " : "", word);
    }
}

static bool no_names(void *context, const char *name, size_t length, double *value) {
    (void)context;
    (void)name;
    (void)length;
    (void)value;
    return false;
}

static bool evaluate(const struct walk *w, const char *what, const char *text, double *value) {
    char why[128];
    return grt_expression(text, no_names, NULL, value, why) ||
           grt_fail(GRT_BAD_DATA, "%s: %s is no number: %s", w->file, what, why);
}

// A word kept with the description.
static const char *keep(struct grt_described *d, size_t *used, const char *text) {
    char *at = d->memory + *used;
    *used += strlen(text) + 1;
    memcpy(at, text, strlen(text) + 1);
    return at;
}

static uint32_t size_of(const char *type) {
    static const struct {
        const char *type;
        uint32_t size;
    } rows[] = {{"float", 4}, {"uint", 4}, {"int", 4}, {"u16", 2}, {"f32x4", 16}, {"u32x4", 16}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].type, type) == 0) {
            return rows[i].size;
        }
    }
    return 0;
}

// Goes behind the name of a struct's definition.
static bool find_struct(struct walk *w, const char *name) {
    char word[MAX_WORD], before[MAX_WORD] = "";
    while (next(w, word) && !(strcmp(before, "grt_struct") == 0 && strcmp(word, name) == 0)) {
        memcpy(before, word, sizeof before);
    }
    return word[0] != '\0';
}

// So many more elements of a struct, if a dispatch has room for them.
static bool add_member(const char *file, uint32_t bytes, double elements, uint32_t *size) {
    bool fits = elements >= 1 && elements <= GRT_MAX_PARAMS &&
                *size + bytes * (uint32_t)elements <= GRT_MAX_PARAMS;
    *size += fits ? bytes * (uint32_t)elements : 0;
    return fits || grt_fail(GRT_BAD_DATA,
                            "%s: parameters of a kernel are 1 to %d bytes, and arrays of them have "
                            "elements",
                            file, GRT_MAX_PARAMS);
}

// Bytes of a struct of four-byte numbers, and of structs of these.
static bool struct_size(const char *file, const char *text, const char *name, uint32_t depth,
                        uint32_t *size) {
    struct walk w = {text, file};
    char word[MAX_WORD];
    if (!find_struct(&w, name)) {
        return grt_fail(GRT_BAD_DATA, "%s: no STRUCT(%s) for the parameters of a kernel", file,
                        name);
    }
    *size = 0;
    if (!expect(&w, "{")) {
        return false;
    }
    while (next(&w, word) && strcmp(word, "}") != 0) {
        uint32_t bytes = size_of(word);
        char count[MAX_EXPRESSION];
        double elements = 1, length = 1;
        bool inner =
            bytes == 0 && depth < MAX_STRUCTS && find_struct(&(struct walk){text, file}, word);
        if (inner && !struct_size(file, text, word, depth + 1, &bytes)) {
            return false;
        }
        if (bytes != 4 && !inner) {
            return grt_fail(GRT_BAD_DATA,
                            "%s: parameters of a kernel are float, uint or int, not '%s'", file,
                            word);
        }
        while (next(&w, word) && strcmp(word, ";") != 0) {
            if (strcmp(word, "[") == 0 &&
                (!until_comma(&w, count) || !expect(&w, "]") ||
                 !evaluate(&w, "the length of an array", count, &length))) {
                return false;
            }
            elements *= length;
            length = 1;
            if (strcmp(word, ",") == 0) {
                if (!add_member(file, bytes, elements, size)) {
                    return false;
                }
                elements = 1;
            }
        }
        if (!add_member(file, bytes, elements, size)) {
            return false;
        }
    }
    return true;
}

struct values {
    const struct grt_kernel_info *info;
    const uint32_t *values;
};

static bool constant(void *context, const char *name, size_t length, double *value) {
    const struct values *v = context;
    for (uint32_t i = 0; i < v->info->spec_count; i++) {
        const char *spec = v->info->specs[i].name;
        if (strlen(spec) == length && memcmp(spec, name, length) == 0) {
            *value = v->values[i];
            return true;
        }
    }
    return false;
}

static uint32_t shmem_bytes(const struct grt_kernel_info *info, const uint32_t *spec_values) {
    const struct grt_described *d = (const struct grt_described *)info;
    struct values values = {info, spec_values};
    double sum = 0;
    for (uint32_t i = 0; i < d->shmem_count; i++) {
        double count = 0;
        char why[128];
        if (!grt_expression(d->shmem[i].count, constant, &values, &count, why)) {
            return UINT32_MAX;  // more than any device has
        }
        sum += (double)(((uint64_t)(d->shmem[i].element * count) + 15) & ~(uint64_t)15);
    }
    return sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
}

// grt_spec ( 1 , QUADS , 1 )
static bool read_spec(struct grt_described *d, struct walk *w, size_t *used) {
    char id[MAX_EXPRESSION], name[MAX_EXPRESSION], value[MAX_EXPRESSION];
    double number = 0, place = 0;
    uint32_t i = d->info.spec_count;
    if (!until_comma(w, id) || !expect(w, ",") || !until_comma(w, name) || !expect(w, ",") ||
        !until_comma(w, value) || !expect(w, ")") || !evaluate(w, name, value, &number) ||
        !evaluate(w, name, id, &place)) {
        return false;
    }
    if (i >= GRT_MAX_SPECS || place != i) {
        return grt_fail(GRT_BAD_DATA,
                        "%s: constant %s is number %s; they are counted from 1, to at most %d",
                        w->file, name, id, GRT_MAX_SPECS - 1);
    }
    d->specs[d->info.spec_count++] = (struct grt_spec_info){keep(d, used, name), (uint32_t)number};
    return true;
}

// grt_read ( 0 , float , x )
static bool read_arg(struct grt_described *d, struct walk *w, size_t *used,
                     enum grt_access access) {
    char id[MAX_EXPRESSION], type[MAX_EXPRESSION], name[MAX_EXPRESSION];
    double place = 0;
    uint32_t i = d->info.arg_count;
    if (!until_comma(w, id) || !expect(w, ",") || !until_comma(w, type) || !expect(w, ",") ||
        !until_comma(w, name) || !expect(w, ")") || !evaluate(w, name, id, &place)) {
        return false;
    }
    if (i >= GRT_MAX_BINDINGS || place != i) {
        return grt_fail(GRT_BAD_DATA,
                        "%s: buffer %s is number %s; they are counted from 0, to at most %d",
                        w->file, name, id, GRT_MAX_BINDINGS - 1);
    }
    if (size_of(type) == 0 && strcmp(type, "texels") != 0) {
        return grt_fail(GRT_BAD_DATA,
                        "%s: buffer %s is of '%s'; there are float, uint, int, u16, f32x4, u32x4",
                        w->file, name, type);
    }
    d->args[d->info.arg_count++] =
        (struct grt_arg_info){keep(d, used, name), keep(d, used, type), access};
    return true;
}

static bool read_shmem(struct grt_described *d, struct walk *w, size_t *used) {
    char type[MAX_EXPRESSION], name[MAX_EXPRESSION], count[MAX_EXPRESSION];
    if (!until_comma(w, type) || !expect(w, ",") || !until_comma(w, name) || !expect(w, ",") ||
        !until_comma(w, count) || !expect(w, ")")) {
        return false;
    }
    if (size_of(type) == 0 || d->shmem_count == GRT_MAX_SHMEM) {
        return grt_fail(GRT_BAD_DATA, "%s: shared memory %s of '%s': %s", w->file, name, type,
                        size_of(type) ? "too many rows" : "no such type");
    }
    d->shmem[d->shmem_count].element = size_of(type);
    d->shmem[d->shmem_count++].count = keep(d, used, count);
    return true;
}

bool grt_describe_kernel(struct grt_described *d, const char *file, const char *text) {
    struct walk w = {text, file};
    char word[MAX_WORD], name[MAX_WORD], params[MAX_WORD];
    size_t used = 0;
    while (next(&w, word) && strcmp(word, "grt_kernel") != 0) {
    }
    if (!word[0]) {
        return grt_fail(GRT_BAD_DATA, "%s: no kernel: it begins with KERNEL(name, ...)", file);
    }
    d->specs = calloc(GRT_MAX_SPECS, sizeof *d->specs);
    d->args = calloc(GRT_MAX_BINDINGS, sizeof *d->args);
    d->memory = malloc(strlen(w.at) + 256);  // words are copied from there, and ends added
    if (!d->specs || !d->args || !d->memory) {
        return grt_fail(GRT_NO_MEMORY, "no host memory to describe %s", file);
    }
    next(&w, name);
    next(&w, params);
    if (!is_name(name) || !is_name(params)) {
        return grt_fail(GRT_BAD_DATA, "%s: KERNEL(%s, %s, ...) does not name a kernel", file, name,
                        params);
    }
    uint32_t size = 0;
    if (!struct_size(file, text, params, 0, &size) || !expect(&w, "{")) {
        return false;
    }
    d->specs[0] = (struct grt_spec_info){"WG", 64};
    d->info = (struct grt_kernel_info){.name = keep(d, &used, name),
                                       .specs = d->specs,
                                       .spec_count = 1,
                                       .args = d->args,
                                       .params_size = size,
                                       .shmem = shmem_bytes};
    while (next(&w, word) && strcmp(word, "}") != 0) {
        static const char *const accesses[] = {"grt_read", "grt_write", "grt_update"};
        bool ok = expect(&w, "(");
        int access = 0;
        while (access < 3 && strcmp(word, accesses[access]) != 0) {
            access++;
        }
        if (ok && access < 3) {
            ok = read_arg(d, &w, &used, (enum grt_access)access);
        } else if (ok && strcmp(word, "grt_spec") == 0) {
            ok = read_spec(d, &w, &used);
        } else if (ok && strcmp(word, "grt_shmem") == 0) {
            ok = read_shmem(d, &w, &used);
        } else if (ok) {
            ok = grt_fail(GRT_BAD_DATA, "%s: '%s' in the lists of kernel %s", file, word, name);
        }
        if (!ok) {
            return false;
        }
    }
    while (next(&w, word)) {
        if (strcmp(word, "grt_kernel") == 0) {
            return grt_fail(GRT_BAD_DATA, "%s: more than one kernel; each wants a text of its own",
                            file);
        }
    }
    return true;
}

void grt_describe_finish(struct grt_described *d) {
    free(d->memory);
    free(d->specs);
    free(d->args);
    *d = (struct grt_described){0};
}

// The texts of a row up to its ), strings without their quotes. False with a sentence.
static bool row_texts(struct walk *w, char (*texts)[MAX_EXPRESSION], uint32_t *count) {
    char word[MAX_WORD] = ",";
    *count = 0;
    while (strcmp(word, ",") == 0) {
        if (*count == GRT_DESCRIBE_TEXTS || !until_comma(w, texts[*count]) || !next(w, word)) {
            return grt_fail(GRT_BAD_DATA, "%s: a row of a list of the environment does not end",
                            w->file);
        }
        char *text = texts[(*count)++];
        size_t length = strlen(text);
        if (length > 1 && text[0] == '"' && text[length - 1] == '"') {
            memmove(text, text + 1, length - 2);
            text[length - 2] = '\0';
        }
    }
    return true;
}

// grt_fact ( obs , 4 ) grt_state ( 0 , x ) grt_setting ( uint , map , 32 , 4 , 128 , "cells" ) ...
// }
static bool describe_rows(struct grt_describe_env *env, struct walk *w) {
    char word[MAX_WORD];
    double number = 0, states = 0;
    uint32_t count = 0;
    char(*texts)[MAX_EXPRESSION] = malloc(GRT_DESCRIBE_TEXTS * sizeof *texts);
    bool ok = texts != NULL;
    if (!ok) {
        grt_fail(GRT_NO_MEMORY, "no host memory to describe %s", w->file);
    }
    while (ok && next(w, word) && strcmp(word, "}") != 0) {
        bool fact = strcmp(word, "grt_fact") == 0, state = strcmp(word, "grt_state") == 0;
        ok = expect(w, "(") && row_texts(w, texts, &count);
        if (ok && (fact || state) && count != 2) {
            ok = grt_fail(GRT_BAD_DATA, "%s: '%s' in a list of the environment has no two parts",
                          w->file, texts[0]);
        } else if (ok && fact) {
            ok = evaluate(w, texts[0], texts[1], &number) &&
                 env->fact(env->context, texts[0], number);
        } else if (ok && state) {
            ok = evaluate(w, "a number in ENV_STATE", texts[0], &number);
            if (ok && number != states++) {
                ok = grt_fail(GRT_BAD_DATA,
                              "%s: ENV_STATE counts its numbers from 0 without gaps; %s is %s",
                              w->file, texts[1], texts[0]);
            }
            ok = ok && env->state(env->context, texts[1]);
        } else if (ok) {
            const char *rows[GRT_DESCRIBE_TEXTS] = {NULL};
            for (uint32_t i = 0; i < count; i++) {
                rows[i] = texts[i];
            }
            ok = env->row(env->context, word, rows, count);
        }
    }
    free(texts);
    return ok;
}

bool grt_describe_env(struct grt_describe_env *env, const char *file, const char *text) {
    struct walk w = {text, file};
    char word[MAX_WORD];
    while (next(&w, word) && strcmp(word, "grt_env") != 0) {
    }
    next(&w, word);
    if (!is_name(word) || strcmp(word, "ENV") == 0) {
        return grt_fail(GRT_BAD_DATA,
                        "%s: no environment: it defines ENV, ENV_OBS, ENV_ACT and ENV_STATE and "
                        "includes \"env/state.k\", or ENV, ENV_AGENTS, ENV_OBS, ENV_WORDS and "
                        "\"env/world.k\"",
                        file);
    }
    if (strlen(word) >= sizeof env->name) {
        return grt_fail(GRT_BAD_DATA, "%s: ENV %s is longer than %zu characters", file, word,
                        sizeof env->name - 1);
    }
    memcpy(env->name, word, strlen(word) + 1);
    if (!expect(&w, "{")) {
        return false;
    }
    return describe_rows(env, &w);
}
