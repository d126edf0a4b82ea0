// SPDX-License-Identifier: Apache-2.0
#include "tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <yaml.h>

#include "base/log.h"

struct reader {
    const struct grt_tree_source *source;
    size_t lines;  // of the text
    yaml_parser_t parser;
    yaml_event_t event;
    uint32_t depth;
};

void grt_tree_where(const struct grt_tree_source *source, uint32_t line, uint32_t column,
                    char *text, size_t size) {
    const struct grt_tree_source *s = source;
    int room = (int)size - 40;  // for a path or a name
    if (s->path) {
        bool known = !s->whole || s->line == 0;
        snprintf(text, size, "%.*s:%u:%u: ", room, s->path, known ? line : s->line,
                 known ? column : s->column);
    } else if (s->whole) {
        snprintf(text, size, "%.*s: ", room, s->name);
    } else if (line > 1) {
        snprintf(text, size, "%.*s at line %u, character %u: ", room, s->name, line, column);
    } else {
        snprintf(text, size, "%.*s at character %u: ", room, s->name, column);
    }
}

static bool wrong(const struct reader *r, yaml_mark_t mark, const char *what) {
    char where[1100];
    if (!r->source->path && mark.line >= r->lines) {
        return grt_fail(GRT_CONFIG, "%s at its end: %s", r->source->name, what);
    }
    grt_tree_where(r->source, (uint32_t)mark.line + 1, (uint32_t)mark.column + 1, where,
                   sizeof where);
    return grt_fail(GRT_CONFIG, "%s%s", where, what);
}

static const char *called(const struct grt_tree_source *source) {
    return source->path ? source->path : source->name;
}

static bool next(struct reader *r) {
    yaml_event_delete(&r->event);
    if (yaml_parser_parse(&r->parser, &r->event)) {
        return true;
    }
    memset(&r->event, 0, sizeof r->event);
    return wrong(r, r->parser.problem_mark,
                 r->parser.problem ? r->parser.problem : "not YAML, or no host memory");
}

static struct grt_node *new_node(struct reader *r, enum grt_node_kind kind) {
    struct grt_node *node = calloc(1, sizeof *node);
    if (!node) {
        grt_fail(GRT_NO_MEMORY, "no host memory for %s", called(r->source));
        return NULL;
    }
    node->kind = kind;
    node->line = (uint32_t)r->event.start_mark.line + 1;
    node->column = (uint32_t)r->event.start_mark.column + 1;
    return node;
}

static char *scalar(struct reader *r) {
    const char *value = (const char *)r->event.data.scalar.value;
    if (strlen(value) != r->event.data.scalar.length) {
        wrong(r, r->event.start_mark, "a byte 0 that is no text");
        return NULL;
    }
    char *text = strdup(value);
    if (!text) {
        grt_fail(GRT_NO_MEMORY, "no host memory for %s", called(r->source));
    }
    return text;
}

static struct grt_node *read_node(struct reader *r);

// The entries behind the start of a list or a map, which is the newest event.
static bool read_entries(struct reader *r, struct grt_node *of) {
    struct grt_node **last = &of->first;
    yaml_event_type_t end =
        of->kind == GRT_NODE_MAP ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    if (++r->depth > GRT_CONFIG_MAX_DEPTH) {
        return wrong(r, r->event.start_mark, "nested too deep");
    }
    while (next(r)) {
        if (r->event.type == end) {
            r->depth--;
            return true;
        }
        if (of->kind == GRT_NODE_LIST) {
            *last = read_node(r);
        } else {
            if (r->event.type != YAML_SCALAR_EVENT) {
                return wrong(r, r->event.start_mark, "a key must be one word");
            }
            *last = new_node(r, GRT_NODE_MAP);
            if (*last) {
                (*last)->text = scalar(r);
                (*last)->first = (*last)->text && next(r) ? read_node(r) : NULL;
            }
            if (*last && !(*last)->first) {
                return false;
            }
        }
        if (!*last) {
            return false;
        }
        last = &(*last)->next;
    }
    return false;
}

// The node that the newest event begins.
static struct grt_node *read_node(struct reader *r) {
    struct grt_node *node = NULL;
    switch (r->event.type) {
    case YAML_SCALAR_EVENT:
        node = new_node(r, GRT_NODE_TEXT);
        if (node && !(node->text = scalar(r))) {
            grt_tree_destroy(&node);
        }
        return node;
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        node =
            new_node(r, r->event.type == YAML_MAPPING_START_EVENT ? GRT_NODE_MAP : GRT_NODE_LIST);
        if (node && !read_entries(r, node)) {
            grt_tree_destroy(&node);
        }
        return node;
    default:
        wrong(r, r->event.start_mark,
              "a list, a map or a value is wanted; references are not taken");
        return NULL;
    }
}

struct grt_node *grt_tree_create(const struct grt_tree_source *source, const char *text) {
    struct reader r = {.source = source, .lines = 1};
    uint32_t line = source->line, column = source->column;
    // As many empty lines and spaces before the text as in the file it is from: then marks are
    // right.
    size_t length = strlen(text),
           before = (line > 0 ? line - 1 : 0) + (column > 0 ? column - 1 : 0);
    char *whole = malloc(before + length + 2);
    if (!whole || !yaml_parser_initialize(&r.parser)) {
        free(whole);
        grt_fail(GRT_NO_MEMORY, "no host memory for %s", called(source));
        return NULL;
    }
    for (const char *c = strchr(text, '\n'); c; c = strchr(c + 1, '\n')) {
        r.lines++;
    }
    memset(whole, '\n', before);
    memset(whole + (line > 0 ? line - 1 : 0), ' ', column > 0 ? column - 1 : 0);
    memcpy(whole + before, text, length + 1);
    whole[before + length] = '\n';
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)whole, before + length + 1);
    struct grt_node *tree = NULL;
    bool good = next(&r) && next(&r);  // the stream's start, then a document's
    if (good && r.event.type == YAML_STREAM_END_EVENT) {
        good = wrong(&r, r.event.start_mark, "there is nothing here");
    }
    if (good && next(&r)) {
        tree = read_node(&r);
    }
    if (tree && (!next(&r) || !next(&r) || r.event.type != YAML_STREAM_END_EVENT)) {
        wrong(&r, r.event.start_mark, "something stands behind the end");
        grt_tree_destroy(&tree);
    }
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    free(whole);
    return tree;
}

void grt_tree_destroy(struct grt_node **tree) {
    while (tree && *tree) {
        struct grt_node *node = *tree;
        *tree = node->next;
        grt_tree_destroy(&node->first);
        free(node->text);
        free(node);
    }
}

struct writer {
    char *text;
    size_t capacity, used;
};

static void put(struct writer *w, const char *more) {
    for (; *more; more++, w->used++) {
        if (w->used + 1 < w->capacity) {
            w->text[w->used] = *more;
        }
    }
}

// Words as they are, whatever else in quotes.
static void put_scalar(struct writer *w, const char *text) {
    bool plain = text[0] &&
                 strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "0123456789_.+-") == strlen(text) &&
                 text[0] != '-';
    put(w, plain ? "" : "\"");
    for (; *text; text++) {
        put(w, !plain && (*text == '"' || *text == '\\') ? "\\" : "");
        put(w, (char[]){*text, '\0'});
    }
    put(w, plain ? "" : "\"");
}

static void put_node(struct writer *w, const struct grt_node *node) {
    if (node->kind == GRT_NODE_TEXT) {
        put_scalar(w, node->text);
        return;
    }
    put(w, node->kind == GRT_NODE_LIST ? "[" : "{");
    for (const struct grt_node *entry = node->first; entry; entry = entry->next) {
        put(w, entry == node->first ? "" : ", ");
        if (node->kind == GRT_NODE_MAP) {
            put_scalar(w, entry->text);
            put(w, ": ");
        }
        put_node(w, node->kind == GRT_NODE_MAP ? entry->first : entry);
    }
    put(w, node->kind == GRT_NODE_LIST ? "]" : "}");
}

size_t grt_tree_text(const struct grt_node *tree, char *text, size_t capacity) {
    struct writer w = {text, capacity, 0};
    put_node(&w, tree);
    if (capacity > 0) {
        text[w.used < capacity ? w.used : capacity - 1] = '\0';
    }
    return w.used;
}

int grt_flag_of(const char *text) {
    static const struct {
        const char *text;
        int value;
    } words[] = {{"true", 1}, {"yes", 1}, {"on", 1}, {"false", 0}, {"no", 0}, {"off", 0}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcasecmp(text, words[i].text) == 0) {
            return words[i].value;
        }
    }
    return -1;
}
