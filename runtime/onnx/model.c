// SPDX-License-Identifier: Apache-2.0
// Reads an ONNX file. Everything is checked before it is believed: lengths against the file, shapes
// against the bytes of their tensors, names against what was there before.
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/whole_file.h"
#include "proto.h"
#include "wire.h"

static bool broken(const struct onnx_model *m, const char *what) {
    grt_fail(GRT_BAD_DATA, "%s: no ONNX file, or a damaged one: %s", m->path, what);
    return false;
}

// What a file may well have and is not read here.
static bool beyond(const struct onnx_model *m, const char *what, unsigned most) {
    grt_fail(GRT_BAD_DATA, "%s: %s; %u are read", m->path, what, most);
    return false;
}

static bool no_memory(const struct onnx_model *m) {
    grt_fail(GRT_NO_MEMORY, "no host memory for %s", m->path);
    return false;
}

static bool copy_text(struct wire_part part, char *text, size_t room) {
    text[0] = '\0';
    if (part.size == 0 || part.size >= room || memchr(part.at, '\0', part.size)) {
        return part.size == 0;
    }
    memcpy(text, part.at, part.size);
    text[part.size] = '\0';
    return true;
}

// ---- values by name ----

static uint32_t place_of(const struct onnx_model *m, const char *name) {
    uint32_t hash = 2166136261u;
    for (const char *c = name; *c; c++) {
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    }
    uint32_t at = hash % m->table_size;
    while (m->table[at] != ONNX_NONE && strcmp(m->values[m->table[at]].name, name) != 0) {
        at = (at + 1) % m->table_size;
    }
    return at;
}

static uint32_t find(const struct onnx_model *m, const char *name) {
    return m->table[place_of(m, name)];
}

// ONNX_NONE with the sentence where the name is in use.
static uint32_t add_value(struct onnx_model *m, const char *name) {
    char what[ONNX_NAME + 32];
    uint32_t at = place_of(m, name);
    if (m->table[at] != ONNX_NONE || m->value_count == m->value_room) {
        snprintf(what, sizeof what, "'%s' is made twice", name);
        broken(m, what);
        return ONNX_NONE;
    }
    struct onnx_value *v = &m->values[m->value_count];
    *v = (struct onnx_value){.producer = ONNX_NONE};
    snprintf(v->name, sizeof v->name, "%s", name);
    m->table[at] = m->value_count;
    return m->value_count++;
}

// ---- tensors ----

static void free_tensor(struct onnx_tensor **t) {
    if (*t) {
        free((*t)->reals);
        free((*t)->wholes);
        free(*t);
        *t = NULL;
    }
}

static float real_of(uint64_t bits) {
    uint32_t word = (uint32_t)bits;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

// One more listed number, or many that are packed.
static bool take_listed(struct onnx_tensor *t, const struct wire_field *f, uint64_t *taken) {
    struct wire_part part = f->inside;
    bool packed = f->type == 2;
    while (!packed || part.size > 0) {
        uint64_t bits = f->whole;
        if (*taken >= t->count) {
            return false;
        }
        if (packed && t->reals) {
            struct wire_part word = {part.at, 4};
            if (part.size < 4) {
                return false;
            }
            bits = (uint64_t)word.at[0] | (uint64_t)word.at[1] << 8 | (uint64_t)word.at[2] << 16 |
                   (uint64_t)word.at[3] << 24;
            part.at += 4;
            part.size -= 4;
        } else if (packed && !wire_varint(&part, &bits)) {
            return false;
        }
        if (t->reals) {
            t->reals[(*taken)++] = real_of(bits);
        } else {
            t->wholes[(*taken)++] = (int64_t)bits;
        }
        if (!packed) {
            break;
        }
    }
    return true;
}

// The second pass over a tensor: its numbers.
static bool fill_tensor(struct onnx_tensor *t, struct wire_part message, int64_t type) {
    struct wire_field f;
    bool bad = false;
    uint64_t taken = 0;
    uint32_t size = type == ELEMENT_FLOAT ? 4 : 8, listed = type == ELEMENT_FLOAT ? 4 : 7;
    while (!bad && wire_next(&message, &f, &bad)) {
        if (f.number == TENSOR_RAW && f.type == 2) {
            bad = f.inside.size != t->count * size || taken > 0;
            for (uint64_t i = 0; !bad && i < t->count; i++) {
                uint64_t bits = 0;
                for (uint32_t k = 0; k < size; k++) {
                    bits |= (uint64_t)f.inside.at[i * size + k] << 8 * k;
                }
                if (t->reals) {
                    t->reals[i] = real_of(bits);
                } else {
                    t->wholes[i] = (int64_t)bits;
                }
            }
            taken = t->count;
        } else if (f.number == listed) {
            bad = !take_listed(t, &f, &taken);
        }
    }
    return !bad && taken == t->count;
}

static bool add_dim(struct onnx_tensor *t, uint64_t dim) {
    bool good =
        t->rank < ONNX_RANK && dim <= 1u << 30 && (dim == 0 || t->count <= ONNX_MOST_NUMBERS / dim);
    if (good) {
        t->dims[t->rank++] = dim;
        t->count *= dim;
    }
    return good;
}

// Its name too; NULL with the sentence.
static struct onnx_tensor *read_tensor(const struct onnx_model *m, struct wire_part message,
                                       char name[ONNX_NAME]) {
    struct onnx_tensor *t = calloc(1, sizeof *t);
    struct wire_part rest = message;
    struct wire_field f;
    int64_t type = 0, location = 0;
    bool bad = false, shaped = true;
    name[0] = '\0';
    if (!t) {
        no_memory(m);
        return NULL;
    }
    t->count = 1;
    while (!bad && shaped && wire_next(&rest, &f, &bad)) {
        if (f.number == TENSOR_DIMS && f.type == 0) {
            shaped = add_dim(t, f.whole);
        } else if (f.number == TENSOR_DIMS) {
            uint64_t dim = 0;
            while (shaped && f.inside.size > 0) {
                shaped = wire_varint(&f.inside, &dim) && add_dim(t, dim);
            }
        } else if (f.number == TENSOR_TYPE) {
            type = (int64_t)f.whole;
        } else if (f.number == TENSOR_LOCATION) {
            location = (int64_t)f.whole;
        } else if (f.number == TENSOR_NAME) {
            bad = !copy_text(f.inside, name, ONNX_NAME);
        }
    }
    const char *why = bad       ? "its fields are damaged"
                      : !shaped ? "it has more than 6 axes, or is larger than 2^31 numbers"
                                : NULL;
    if (!why && location == 1) {
        grt_fail(GRT_BAD_DATA,
                 "%s: the numbers of '%s' lie in another file: write one file, with PyTorch "
                 "external_data=False",
                 m->path, name);
    } else if (!why && type != ELEMENT_FLOAT && type != ELEMENT_INT64) {
        grt_fail(GRT_BAD_DATA,
                 "%s: '%s' is of element type %lld; known are float32 (1) and int64 (7)", m->path,
                 name, (long long)type);
    } else if (!why) {
        // A damaged file cannot ask for more than its own bytes are worth.
        bool held = t->count * 4 <= message.size * 4 + 64;
        t->reals = held && type == ELEMENT_FLOAT ? malloc((t->count + 1) * sizeof *t->reals) : NULL;
        t->wholes =
            held && type == ELEMENT_INT64 ? malloc((t->count + 1) * sizeof *t->wholes) : NULL;
        if ((t->reals || t->wholes) && fill_tensor(t, message, type)) {
            return t;
        }
        why = "its numbers are not as many as its shape says";
    }
    if (why) {
        grt_fail(GRT_BAD_DATA, "%s: tensor '%s': %s", m->path, name, why);
    }
    free_tensor(&t);
    return NULL;
}

static bool add_initializer(struct onnx_model *m, struct wire_part message) {
    char name[ONNX_NAME];
    struct onnx_tensor *t = read_tensor(m, message, name);
    uint32_t value = t ? add_value(m, name) : ONNX_NONE;
    if (value == ONNX_NONE) {
        free_tensor(&t);
        return false;
    }
    m->values[value].constant = t;
    return true;
}

// ---- nodes ----

static bool read_attribute(struct onnx_model *m, struct wire_part message,
                           struct onnx_attribute *a) {
    struct wire_field f;
    bool bad = false;
    char unused[ONNX_NAME];
    while (!bad && wire_next(&message, &f, &bad)) {
        if (f.number == ATTRIBUTE_NAME) {
            bad = !copy_text(f.inside, a->name, sizeof a->name);
        } else if (f.number == ATTRIBUTE_F) {
            a->real = real_of(f.whole);
        } else if (f.number == ATTRIBUTE_I) {
            a->whole = (int64_t)f.whole;
        } else if (f.number == ATTRIBUTE_S) {
            copy_text(f.inside, a->text, sizeof a->text);
        } else if (f.number == ATTRIBUTE_T && !a->tensor) {
            a->tensor = read_tensor(m, f.inside, unused);
            if (!a->tensor) {
                return false;
            }
        } else if (f.number == ATTRIBUTE_INTS) {
            uint64_t value = f.whole;
            do {
                bad = (f.type == 2 && !wire_varint(&f.inside, &value)) ||
                      a->count == sizeof a->wholes / sizeof *a->wholes;
                if (!bad) {
                    a->wholes[a->count++] = (int64_t)value;
                }
            } while (!bad && f.type == 2 && f.inside.size > 0);
        }
    }
    return !bad || broken(m, "an attribute");
}

static bool take_input(struct onnx_model *m, struct onnx_node *n, struct wire_part text) {
    char name[ONNX_NAME], what[2 * ONNX_NAME];
    if (n->input_count == ONNX_NODE_INPUTS) {
        return beyond(m, "a node takes more inputs", ONNX_NODE_INPUTS);
    }
    if (!copy_text(text, name, sizeof name)) {
        return beyond(m, "a name has more bytes, or a zero among them", ONNX_NAME - 1);
    }
    uint32_t value = name[0] ? find(m, name) : ONNX_NONE;
    if (name[0] && value == ONNX_NONE) {
        snprintf(what, sizeof what, "a node takes '%s', which nothing before it makes", name);
        return broken(m, what);
    }
    n->inputs[n->input_count++] = value;
    return true;
}

static bool read_node(struct onnx_model *m, struct wire_part message, struct onnx_node *n) {
    struct wire_part rest = message;
    struct wire_field f;
    bool bad = false, good = true;
    char domain[ONNX_NAME] = "";
    n->output = ONNX_NONE;
    while (good && !bad && wire_next(&rest, &f, &bad)) {
        if (f.number == NODE_INPUT) {
            good = take_input(m, n, f.inside);
        } else if (f.number == NODE_OP) {
            bad = !copy_text(f.inside, n->op, sizeof n->op);
        } else if (f.number == NODE_NAME) {
            copy_text(f.inside, n->name, sizeof n->name);
        } else if (f.number == NODE_DOMAIN) {
            bad = !copy_text(f.inside, domain, sizeof domain);
        } else if (f.number == NODE_ATTRIBUTE) {
            good = n->attribute_count < ONNX_NODE_ATTRIBUTES
                       ? read_attribute(m, f.inside, &n->attributes[n->attribute_count])
                       : beyond(m, "a node has more attributes", ONNX_NODE_ATTRIBUTES);
            n->attribute_count += n->attribute_count < ONNX_NODE_ATTRIBUTES;
        }
    }
    rest = message;
    while (good && !bad && wire_next(&rest, &f, &bad)) {
        char name[ONNX_NAME];
        if (f.number != NODE_OUTPUT) {
            continue;
        }
        bad = !copy_text(f.inside, name, sizeof name);
        uint32_t value = bad || !name[0] ? ONNX_NONE : add_value(m, name);
        good = bad || !name[0] || value != ONNX_NONE;
        if (n->output == ONNX_NONE && value != ONNX_NONE) {
            n->output = value;
            m->values[value].producer = (uint32_t)(n - m->nodes);
        }
    }
    if (good && !bad && n->output == ONNX_NONE) {
        good = broken(m, "a node without an output");
    }
    if (good && !bad && domain[0] && strcmp(domain, "ai.onnx") != 0) {
        return grt_fail(GRT_BAD_DATA,
                        "%s: node '%s': %s is of domain '%s'; known are operators of ai.onnx: "
                        "write the file without others",
                        m->path, n->name[0] ? n->name : m->values[n->output].name, n->op, domain);
    }
    return good && (!bad || broken(m, "a node"));
}

// ---- inputs and outputs ----

static bool read_dim(struct wire_part message, uint64_t *dim) {
    struct wire_field f;
    bool bad = false;
    *dim = 0;
    while (wire_next(&message, &f, &bad)) {
        *dim = f.number == DIM_VALUE ? f.whole : *dim;
    }
    return !bad;
}

// The message at a path of fields inside another; of several the last.
static bool inside(struct wire_part *message, const uint32_t *path, uint32_t length) {
    bool bad = false, found = true;
    for (uint32_t i = 0; found && !bad && i < length; i++) {
        struct wire_part rest = *message;
        struct wire_field f;
        found = false;
        while (wire_next(&rest, &f, &bad)) {
            if (f.number == path[i] && f.type == 2) {
                *message = f.inside;
                found = true;
            }
        }
    }
    return found && !bad;
}

static bool name_of(struct wire_part message, char name[ONNX_NAME]) {
    static const uint32_t path[] = {VALUE_NAME};
    return inside(&message, path, 1) && copy_text(message, name, ONNX_NAME) && name[0];
}

// Older files list their constants among the inputs.
static bool add_input(struct onnx_model *m, struct wire_part message) {
    static const uint32_t path[] = {VALUE_TYPE, TYPE_TENSOR, TENSOR_TYPE_SHAPE};
    char name[ONNX_NAME];
    if (!name_of(message, name)) {
        return broken(m, "an input without a name");
    }
    if (find(m, name) != ONNX_NONE) {
        return true;
    }
    if (m->input != ONNX_NONE) {
        return grt_fail(GRT_BAD_DATA,
                        "%s: it has several inputs, '%s' and '%s'; networks of one are read",
                        m->path, m->values[m->input].name, name);
    }
    m->input = add_value(m, name);
    uint64_t count = 1;
    struct wire_field f;
    bool bad = !inside(&message, path, 3);
    for (uint32_t axis = 0; !bad && wire_next(&message, &f, &bad); axis++) {
        uint64_t dim = 0;
        bad = f.number != SHAPE_DIM || !read_dim(f.inside, &dim) || m->input_rank == ONNX_RANK;
        if (!bad && axis > 0 && (dim == 0 || dim > 1u << 24)) {
            return grt_fail(GRT_BAD_DATA,
                            "%s: axis %u of input '%s' has no size, or one beyond 2^24: only the "
                            "first, the batch, may be open",
                            m->path, axis, name);
        }
        if (!bad && axis > 0 && count > ONNX_MOST_NUMBERS / dim) {
            return grt_fail(GRT_BAD_DATA,
                            "%s: a sample of input '%s' has more than 2^31 numbers: make it "
                            "smaller",
                            m->path, name);
        }
        if (!bad && axis > 0) {
            count *= dim;
            m->input_dims[m->input_rank++] = dim;
        }
    }
    return (!bad && m->input_rank > 0) || broken(m, "its input has no shape");
}

static bool take_output(struct onnx_model *m, struct wire_part message) {
    char name[ONNX_NAME];
    if (!name_of(message, name) || find(m, name) == ONNX_NONE) {
        return broken(m, "an output that nothing makes");
    }
    if (m->output != ONNX_NONE) {
        return grt_fail(GRT_BAD_DATA,
                        "%s: it has several outputs, '%s' and '%s'; networks of one are read",
                        m->path, m->values[m->output].name, name);
    }
    m->output = find(m, name);
    return true;
}

// ---- the whole ----

// Room for all values: a field makes one at most, but for the outputs of nodes.
static bool make_room(struct onnx_model *m, struct wire_part graph) {
    uint64_t values = 1, nodes = 0;
    struct wire_field f;
    bool bad = false;
    while (wire_next(&graph, &f, &bad)) {
        struct wire_field in;
        values++;
        nodes += f.number == GRAPH_NODE;
        while (f.number == GRAPH_NODE && f.type == 2 && wire_next(&f.inside, &in, &bad)) {
            values += in.number == NODE_OUTPUT;
        }
    }
    if (bad) {
        return broken(m, "its fields end before their length");
    }
    if (nodes > ONNX_MOST_NODES || values > 8 * ONNX_MOST_NODES) {
        grt_fail(GRT_BAD_DATA, "%s: %llu nodes; networks of up to %d are read", m->path,
                 (unsigned long long)nodes, ONNX_MOST_NODES);
        return false;
    }
    m->value_room = (uint32_t)values;
    m->table_size = 2 * m->value_room + 1;
    m->values = calloc(m->value_room, sizeof *m->values);
    m->nodes = calloc(nodes + 1, sizeof *m->nodes);
    m->table = malloc(m->table_size * sizeof *m->table);
    for (uint32_t i = 0; m->table && i < m->table_size; i++) {
        m->table[i] = ONNX_NONE;
    }
    return (m->values && m->nodes && m->table) || no_memory(m);
}

static bool read_graph(struct onnx_model *m, struct wire_part graph) {
    static const uint32_t order[] = {GRAPH_INITIALIZER, GRAPH_INPUT, GRAPH_NODE, GRAPH_OUTPUT};
    bool good = make_room(m, graph);
    for (size_t i = 0; good && i < sizeof order / sizeof *order; i++) {
        struct wire_part rest = graph;
        struct wire_field f;
        bool bad = false;
        while (good && wire_next(&rest, &f, &bad)) {
            if (f.number != order[i]) {
                continue;
            }
            if (f.type != 2) {
                return broken(m, "a field of another type");
            }
            switch (order[i]) {
            case GRAPH_INITIALIZER:
                good = add_initializer(m, f.inside);
                break;
            case GRAPH_INPUT:
                good = add_input(m, f.inside);
                break;
            case GRAPH_NODE:
                m->node_count++;
                good = read_node(m, f.inside, &m->nodes[m->node_count - 1]);
                break;
            default:
                good = take_output(m, f.inside);
            }
        }
    }
    if (good && (m->input == ONNX_NONE || m->output == ONNX_NONE)) {
        good = broken(m, m->input == ONNX_NONE ? "it has no input" : "it has no output");
    }
    return good;
}

static bool read_opset(struct onnx_model *m, struct wire_part message) {
    struct wire_field f;
    bool bad = false, own = true;
    int64_t version = 0;
    char domain[ONNX_NAME] = "";
    while (wire_next(&message, &f, &bad)) {
        if (f.number == OPSET_DOMAIN) {
            // The operators of ONNX itself have no name, or this one.
            own = copy_text(f.inside, domain, sizeof domain) &&
                  (!domain[0] || strcmp(domain, "ai.onnx") == 0);
        }
        version = f.number == OPSET_VERSION ? (int64_t)f.whole : version;
    }
    m->opset = own ? version : m->opset;
    return !bad || broken(m, "its version");
}

static bool read_model(struct onnx_model *m, struct wire_part bytes) {
    struct wire_part graph = {0};
    struct wire_field f;
    bool bad = false, good = true;
    while (good && wire_next(&bytes, &f, &bad)) {
        if (f.number == MODEL_GRAPH && f.type == 2) {
            graph = f.inside;
        } else if (f.number == MODEL_OPSET && f.type == 2) {
            good = read_opset(m, f.inside);
        } else if (f.number == MODEL_PRODUCER && f.type == 2) {
            copy_text(f.inside, m->producer, sizeof m->producer);
        }
    }
    if (bad) {
        return broken(m, "its fields end before their length");
    }
    if (good && graph.size == 0) {
        return broken(m, "it has no graph");
    }
    if (good && (m->opset < 7 || m->opset > 100)) {
        return grt_fail(GRT_BAD_DATA, "%s: opset %lld; known are those from 7 on", m->path,
                        (long long)m->opset);
    }
    return good && read_graph(m, graph);
}

struct onnx_model *onnx_model_load(const char *path) {
    uint64_t size = 0;
    void *bytes = grt_whole_file_read(path, ONNX_MOST_BYTES, &size);
    struct onnx_model *m = bytes ? calloc(1, sizeof *m) : NULL;
    if (bytes && !m) {
        grt_fail(GRT_NO_MEMORY, "no host memory for %s", path);
    }
    if (m) {
        m->path = path;
        m->input = m->output = ONNX_NONE;
        if (!read_model(m, (struct wire_part){bytes, (size_t)size})) {
            onnx_model_destroy(&m);
        }
    }
    free(bytes);
    return m;
}

void onnx_model_destroy(struct onnx_model **model) {
    struct onnx_model *m = *model;
    if (!m) {
        return;
    }
    *model = NULL;
    for (uint32_t i = 0; i < m->value_count; i++) {
        free_tensor(&m->values[i].constant);
    }
    for (uint32_t i = 0; i < m->node_count; i++) {
        for (uint32_t k = 0; k < m->nodes[i].attribute_count; k++) {
            free_tensor(&m->nodes[i].attributes[k].tensor);
        }
    }
    free(m->values);
    free(m->nodes);
    free(m->table);
    free(m);
}

const struct onnx_attribute *onnx_attribute(const struct onnx_node *node, const char *name) {
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        if (strcmp(node->attributes[i].name, name) == 0) {
            return &node->attributes[i];
        }
    }
    return NULL;
}

int64_t onnx_whole(const struct onnx_node *node, const char *name, int64_t otherwise) {
    const struct onnx_attribute *a = onnx_attribute(node, name);
    return a ? a->whole : otherwise;
}
