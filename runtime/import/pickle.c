// SPDX-License-Identifier: Apache-2.0
// Pickles as far as CIFAR's batches need them: dictionaries, lists, tuples, texts, whole numbers
// and arrays of NumPy. The stack machine makes values and calls nothing: a global is its name, and
// what would be called becomes a list of what it would be called with.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/whole_file.h"
#include "import.h"

#define MOST_BYTES (1ull << 32)
#define MOST_VALUES (1u << 22)

enum kind { NOTHING, WHOLE, TEXT, LIST, MARK };

struct value {
    enum kind kind;
    int64_t whole;
    const uint8_t *bytes;  // of a text
    uint64_t size;         // of a text, or entries of a list
    uint32_t *entries;     // numbers of values; of a dictionary keys and values in turn
};

struct machine {
    const char *path;
    uint8_t *file;
    const uint8_t *at, *end;
    struct value *values;
    uint32_t count, room;
    uint32_t *stack, depth, stack_room;
    uint32_t *memo, memo_count, memo_room;
    bool failed;
};

static void fail(struct machine *m, const char *what) {
    if (!m->failed) {
        grt_fail(GRT_BAD_DATA, "%s: no pickle that is understood: %s at byte %llu", m->path, what,
                 (unsigned long long)(m->at - m->file));
    }
    m->failed = true;
}

// Room for one more in an array of numbers.
static bool grow(struct machine *m, uint32_t **list, uint32_t count, uint32_t *room) {
    if (count < *room) {
        return true;
    }
    uint32_t more = *room ? 2 * *room : 64;
    uint32_t *longer = more <= 4 * MOST_VALUES ? realloc(*list, more * sizeof **list) : NULL;
    if (!longer) {
        fail(m, "too large");
        return false;
    }
    *list = longer;
    *room = more;
    return true;
}

static void push(struct machine *m, uint32_t value) {
    if (grow(m, &m->stack, m->depth, &m->stack_room)) {
        m->stack[m->depth++] = value;
    }
}

static uint32_t pop(struct machine *m) {
    if (m->depth == 0) {
        fail(m, "nothing on the stack");
        return 0;
    }
    return m->stack[--m->depth];
}

static uint32_t add(struct machine *m, struct value v) {
    if (m->count == m->room) {
        uint32_t more = m->room ? 2 * m->room : 256;
        struct value *longer =
            more <= MOST_VALUES ? realloc(m->values, more * sizeof *longer) : NULL;
        if (!longer) {
            fail(m, "too many values");
            return 0;
        }
        m->values = longer;
        m->room = more;
    }
    m->values[m->count] = v;
    return m->count++;
}

static uint64_t number(struct machine *m, uint32_t bytes) {
    uint64_t value = 0;
    if ((uint64_t)(m->end - m->at) < bytes) {
        fail(m, "it ends");
        return 0;
    }
    for (uint32_t i = 0; i < bytes; i++) {
        value |= (uint64_t)m->at[i] << 8 * i;
    }
    m->at += bytes;
    return value;
}

static void push_text(struct machine *m, uint64_t size) {
    if ((uint64_t)(m->end - m->at) < size) {
        fail(m, "it ends");
        return;
    }
    push(m, add(m, (struct value){.kind = TEXT, .bytes = m->at, .size = size}));
    m->at += size;
}

static void push_line(struct machine *m) {
    const uint8_t *stop = memchr(m->at, '\n', (size_t)(m->end - m->at));
    if (!stop) {
        fail(m, "it ends");
        return;
    }
    push_text(m, (uint64_t)(stop - m->at));
    m->at++;
}

static void append(struct machine *m, uint32_t list, uint32_t entry) {
    struct value *v = &m->values[list];
    if (m->failed || v->kind != LIST) {
        fail(m, "no list to append to");
        return;
    }
    if ((v->size & (v->size - 1)) == 0) {  // room for 1, 2, 4, ...
        uint32_t *longer = realloc(v->entries, (v->size ? 2 * v->size : 1) * sizeof *longer);
        if (!longer) {
            fail(m, "no host memory");
            return;
        }
        v->entries = longer;
    }
    v->entries[v->size++] = entry;
}

// Where the newest mark is on the stack.
static uint32_t mark(struct machine *m) {
    uint32_t i = m->depth;
    while (i > 0 && m->values[m->stack[i - 1]].kind != MARK) {
        i--;
    }
    if (i == 0) {
        fail(m, "no mark");
    }
    return i;
}

// The stack from `first` on into a list, which is there already or is made.
static void collect(struct machine *m, uint32_t first, uint32_t list) {
    for (uint32_t i = first; i < m->depth && !m->failed; i++) {
        append(m, list, m->stack[i]);
    }
    m->depth = first < m->depth ? first : m->depth;
}

static void push_tuple(struct machine *m, uint32_t count) {
    if (m->depth < count) {
        fail(m, "nothing on the stack");
        return;
    }
    uint32_t list = add(m, (struct value){.kind = LIST});
    collect(m, m->depth - count, list);
    push(m, list);
}

// Everything behind the mark to the list before it.
static void extend(struct machine *m) {
    uint32_t first = mark(m);
    if (m->failed || first < 2) {
        fail(m, "no list before the mark");
        return;
    }
    collect(m, first, m->stack[first - 2]);
    m->depth = first - 1;
}

static void remember(struct machine *m, uint64_t slot) {
    if (m->depth == 0 || slot >= MOST_VALUES) {
        fail(m, "a memo of nothing");
        return;
    }
    while (m->memo_count <= slot && grow(m, &m->memo, m->memo_count, &m->memo_room)) {
        m->memo[m->memo_count++] = 0;
    }
    if (!m->failed) {
        m->memo[slot] = m->stack[m->depth - 1];
    }
}

static void recall(struct machine *m, uint64_t slot) {
    if (slot >= m->memo_count) {
        fail(m, "a memo that was never made");
        return;
    }
    push(m, m->memo[slot]);
}

static void push_whole(struct machine *m, int64_t whole) {
    push(m, add(m, (struct value){.kind = WHOLE, .whole = whole}));
}

static void push_mark_tuple(struct machine *m) {
    uint32_t first = mark(m);
    if (!m->failed) {
        uint32_t list = add(m, (struct value){.kind = LIST});
        collect(m, first, list);
        m->depth = first - 1;
        push(m, list);
    }
}

// Texts and numbers; false: the operation is none of them.
static bool run_scalar(struct machine *m, uint8_t op) {
    switch (op) {
    case 'U':
    case 'C':
    case 0x8c:
        push_text(m, number(m, 1));
        return true;
    case 'T':
    case 'X':
    case 'B':
        push_text(m, number(m, 4));
        return true;
    case 0x96:
    case 0x8d:
    case 0x8e:
        push_text(m, number(m, 8));
        return true;
    case 'K':
        push_whole(m, (int64_t)number(m, 1));
        return true;
    case 'M':
        push_whole(m, (int64_t)number(m, 2));
        return true;
    case 'J':
        push_whole(m, (int32_t)number(m, 4));
        return true;
    case 0x8a: {  // whole number of some bytes
        uint64_t size = number(m, 1);
        if (size > 8) {
            fail(m, "a number of more than 8 bytes");
        } else {
            // Two's complement, of that many bytes.
            uint32_t above = 64 - 8 * (uint32_t)size;
            uint64_t bits = number(m, (uint32_t)size);
            push_whole(m, size > 0 ? (int64_t)(bits << above) >> above : 0);
        }
        return true;
    }
    case 'N':
    case 0x88:
    case 0x89:
        push_whole(m, op == 0x88);
        return true;
    case 'c':
        push_line(m);
        push_line(m);
        push_tuple(m, 2);
        return true;
    default:
        return false;
    }
}

static void run_rest(struct machine *m, uint8_t op) {
    uint32_t top;
    switch (op) {
    case 0x80:
        number(m, 1);
        break;
    case 0x95:
        number(m, 8);
        break;
    case '(':
        push(m, add(m, (struct value){.kind = MARK}));
        break;
    case '}':
    case ']':
    case ')':
    case 0x8f:
        push_tuple(m, 0);
        break;
    case 0x85:
    case 0x86:
    case 0x87:
        push_tuple(m, op - 0x84u);
        break;
    case 't':
    case 'l':
    case 'd':
        push_mark_tuple(m);
        break;
    case 'e':
    case 'u':
    case 0x90:
        extend(m);
        break;
    case 'a':
        top = pop(m);
        append(m, m->depth ? m->stack[m->depth - 1] : 0, top);
        break;
    case 's':
        if (m->depth < 3) {
            fail(m, "nothing on the stack");
            break;
        }
        collect(m, m->depth - 2, m->stack[m->depth - 3]);
        break;
    case 'R':
    case 'b':
    case 0x81:
    case 0x93:
        push_tuple(m, 2);
        break;
    case 'q':
        remember(m, number(m, 1));
        break;
    case 'r':
        remember(m, number(m, 4));
        break;
    case 0x94:
        remember(m, m->memo_count);
        break;
    case 'h':
        recall(m, number(m, 1));
        break;
    case 'j':
        recall(m, number(m, 4));
        break;
    default:
        fail(m, "an operation that is not known");
    }
}

static bool load(struct machine *m, const char *path) {
    uint64_t size = 0;
    *m = (struct machine){.path = path};
    m->file = grt_whole_file_read(path, MOST_BYTES, &size);
    if (!m->file) {
        return false;
    }
    m->at = m->file;
    m->end = m->file + size;
    add(m, (struct value){.kind = NOTHING});
    while (!m->failed) {
        uint8_t op = (uint8_t)number(m, 1);
        if (m->failed || op == '.') {
            break;
        }
        if (!run_scalar(m, op)) {
            run_rest(m, op);
        }
    }
    if (!m->failed && (m->depth != 1 || m->values[m->stack[0]].kind != LIST)) {
        fail(m, "no dictionary");
    }
    return !m->failed;
}

static void unload(struct machine *m) {
    for (uint32_t i = 0; i < m->count; i++) {
        free(m->values[i].entries);
    }
    free(m->values);
    free(m->stack);
    free(m->memo);
    free(m->file);
}

// What stands under a key of the dictionary, or NULL.
static const struct value *find(const struct machine *m, const char *key) {
    const struct value *dictionary = &m->values[m->stack[0]];
    for (uint64_t i = 0; i + 1 < dictionary->size; i += 2) {
        const struct value *k = &m->values[dictionary->entries[i]];
        if (k->kind == TEXT && k->size == strlen(key) && memcmp(k->bytes, key, k->size) == 0) {
            return &m->values[dictionary->entries[i + 1]];
        }
    }
    return NULL;
}

// The longest text within a value: of an array it is its numbers.
static const struct value *longest(const struct machine *m, const struct value *v, int depth) {
    const struct value *found = v->kind == TEXT ? v : NULL;
    for (uint64_t i = 0; v->kind == LIST && depth < 8 && i < v->size; i++) {
        const struct value *inside = longest(m, &m->values[v->entries[i]], depth + 1);
        found = inside && (!found || inside->size > found->size) ? inside : found;
    }
    return found;
}

bool import_read_pickle(const char *path, const char *label, struct import_pickle *pickle) {
    struct machine m;
    *pickle = (struct import_pickle){0};
    bool good = load(&m, path);
    const struct value *data = good ? find(&m, "data") : NULL;
    const struct value *labels = good ? find(&m, label) : NULL;
    const struct value *bytes = data ? longest(&m, data, 0) : NULL;
    if (good && bytes && labels && labels->kind == LIST) {
        pickle->at = (uint64_t)(bytes->bytes - m.file);
        pickle->bytes = bytes->size;
        pickle->label_count = labels->size;
        pickle->labels = calloc(labels->size + 1, sizeof *pickle->labels);
        for (uint64_t i = 0; pickle->labels && i < pickle->label_count; i++) {
            pickle->labels[i] = (int32_t)m.values[labels->entries[i]].whole;
        }
        good = pickle->labels || grt_fail(GRT_NO_MEMORY, "no host memory for labels");
    } else if (good) {
        good = grt_fail(GRT_BAD_DATA, "%s: a pickle without data and %s", path, label);
    }
    unload(&m);
    return good;
}

bool import_read_pickled_names(struct import *import, const char *path, const char *key) {
    struct machine m;
    bool good = load(&m, path);
    const struct value *names = good ? find(&m, key) : NULL;
    if (good && (!names || names->kind != LIST)) {
        good = grt_fail(GRT_BAD_DATA, "%s: a pickle without %s", path, key);
    }
    for (uint64_t i = 0; good && i < names->size; i++) {
        const struct value *name = &m.values[names->entries[i]];
        good = (name->kind == TEXT || grt_fail(GRT_BAD_DATA, "%s: a name that is no text", path)) &&
               import_add_name(import, (const char *)name->bytes, (size_t)name->size);
    }
    unload(&m);
    return good;
}
