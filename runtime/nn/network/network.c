// SPDX-License-Identifier: Apache-2.0
// Makes modules of a list of layers. A new layer is its own file and a row of the table here.
#include "gpurt/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/closest.h"
#include "base/log.h"
#include "network_parts.h"

#define MOST_LAYERS 4096  // of a network, repeated ones too
#define MOST_NAMED 32     // networks by name

static const char *const act_words[] = {
#define X(name, text) text,
    GRT_ACTS(X)
#undef X
};

static void say_where(struct grt_module *module, const struct network_reading *r,
                      const struct grt_node *at) {
    grt_tree_where(&r->source, at->line, at->column, module->where, sizeof module->where);
}

// ---- layers ----

static struct grt_module *make_list(struct network_reading *r, const struct grt_node *list,
                                    const char *what);

static struct grt_module *make_linear(struct network_reading *r, const struct grt_node *value) {
    static const char *const keys[] = {"outputs", "bias", NULL};
    struct grt_linear_desc desc = {0};
    const struct grt_node *width = value;
    bool bias = true;
    if (value->kind == GRT_NODE_MAP) {
        width = network_entry(value, "outputs");
        if (!network_only(r, value, "linear", keys)) {
            return NULL;
        }
        if (!width) {
            return network_wrong(r, value, "linear wants outputs");
        }
        if (!network_flag(r, value, "bias", &bias)) {
            return NULL;
        }
    }
    desc.no_bias = !bias;
    return network_width(r, width, "linear", &desc.outputs) ? grt_linear_create(&desc) : NULL;
}

static struct grt_module *make_conv(struct network_reading *r, const struct grt_node *value) {
    static const char *const keys[] = {"outputs", "size", "stride", "padding", "bias", NULL};
    struct grt_conv_desc desc = {.size = 3, .stride = 1};
    const struct grt_node *width = value;
    bool bias = true, map = value->kind == GRT_NODE_MAP;
    if (map) {
        width = network_entry(value, "outputs");
        if (!network_only(r, value, "conv", keys)) {
            return NULL;
        }
        if (!width) {
            return network_wrong(r, value, "conv wants outputs");
        }
        if (!network_number(r, value, "size", 1, &desc.size)) {
            return NULL;
        }
    }
    desc.padding = (desc.size - 1) / 2;
    if (map && (!network_number(r, value, "stride", 1, &desc.stride) ||
                !network_number(r, value, "padding", 0, &desc.padding) ||
                !network_flag(r, value, "bias", &bias))) {
        return NULL;
    }
    if (desc.padding >= desc.size) {
        return network_wrong(r, network_entry(value, "padding"),
                             "padding must be below the size, %u", desc.size);
    }
    desc.no_bias = !bias;
    return network_width(r, width, "conv", &desc.outputs) ? grt_conv_create(&desc) : NULL;
}

static struct grt_module *make_window_pool(struct network_reading *r, const struct grt_node *value,
                                           const char *what, enum grt_pool pool) {
    static const char *const keys[] = {"size", "stride", "padding", NULL};
    struct grt_window_pool_desc desc = {.pool = pool};
    if (value->kind != GRT_NODE_MAP) {
        return network_whole(r, value, what, NETWORK_MOST_WINDOW, &desc.size)
                   ? grt_window_pool_create(&desc)
                   : NULL;
    }
    if (!network_only(r, value, what, keys) || !network_number(r, value, "size", 1, &desc.size) ||
        !network_number(r, value, "stride", 1, &desc.stride) ||
        !network_number(r, value, "padding", 0, &desc.padding)) {
        return NULL;
    }
    if (desc.size == 0) {
        return network_wrong(r, value, "%s wants a size", what);
    }
    if (desc.padding > desc.size / 2) {
        return network_wrong(r, network_entry(value, "padding"),
                             "padding is at most half the size, %u", desc.size);
    }
    return grt_window_pool_create(&desc);
}

static struct grt_module *make_max_pool(struct network_reading *r, const struct grt_node *value) {
    return make_window_pool(r, value, "max_pool", GRT_POOL_MAX);
}

static struct grt_module *make_avg_pool(struct network_reading *r, const struct grt_node *value) {
    return make_window_pool(r, value, "avg_pool", GRT_POOL_MEAN);
}

static struct grt_module *make_norm(struct network_reading *r, const struct grt_node *value) {
    static const char *const words[] = {"layer", "batch"};
    int word = network_word(r, value, "norm", words, 2);
    return word < 0 ? NULL : word == 0 ? grt_layer_norm_create() : grt_batch_norm_create(NULL);
}

static struct grt_module *make_dropout(struct network_reading *r, const struct grt_node *value) {
    double p = 0;
    return network_share(r, value, "dropout", &p) ? grt_dropout_create(p) : NULL;
}

static struct grt_module *make_pool(struct network_reading *r, const struct grt_node *value) {
    static const char *const words[] = {
#define X(name, text) text,
        GRT_POOLS(X)
#undef X
    };
    int word = network_word(r, value, "pool", words, GRT_POOL_COUNT);
    return word >= 0 ? grt_pool_create((enum grt_pool)word) : NULL;
}

static struct grt_module *make_flatten(struct network_reading *r, const struct grt_node *value) {
    (void)r;
    (void)value;
    return grt_flatten_create();
}

static struct grt_module *make_geglu(struct network_reading *r, const struct grt_node *value) {
    (void)r;
    (void)value;
    return grt_geglu_create();
}

static struct grt_module *make_residual(struct network_reading *r, const struct grt_node *value) {
    static const char *const keys[] = {"of", "shortcut", "activation", NULL};
    const struct grt_node *body = value, *shortcut = NULL, *act = NULL;
    int word = GRT_ACT_NONE;
    if (value->kind == GRT_NODE_MAP) {
        body = network_entry(value, "of");
        shortcut = network_entry(value, "shortcut");
        act = network_entry(value, "activation");
        if (!network_only(r, value, "residual", keys)) {
            return NULL;
        }
        if (!body) {
            return network_wrong(r, value, "residual wants a list of layers under `of`");
        }
    }
    if (act && (word = network_word(r, act, "activation", act_words, GRT_ACT_COUNT)) < 0) {
        return NULL;
    }
    r->whole |= !shortcut && !r->inside;  // what is added is the sample
    struct grt_module *inner = make_list(r, body, "residual");
    struct grt_module *other = inner && shortcut ? make_list(r, shortcut, "shortcut") : NULL;
    if (!inner || (shortcut && !other)) {
        grt_module_destroy(&inner);
        return NULL;
    }
    return grt_residual_create(inner, other, (enum grt_act)word);
}

// The entries of a list through `one`, each `times` times.
static struct grt_module **
make_parts(struct network_reading *r, const struct grt_node *list, uint32_t times, uint32_t *count,
           struct grt_module *(*one)(struct network_reading *r, const struct grt_node *node)) {
    uint32_t entries = 0;
    for (const struct grt_node *e = list->first; e; e = e->next) {
        entries++;
    }
    struct grt_module **parts = calloc((size_t)entries * times + 1, sizeof(struct grt_module *));
    bool good = true;
    *count = 0;
    if (!parts) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a network");
        return NULL;
    }
    for (uint32_t t = 0; good && t < times; t++) {
        for (const struct grt_node *e = list->first; good && e; e = e->next) {
            parts[*count] = one(r, e);
            good = parts[*count] != NULL;
            *count += good;
        }
    }
    while (!good && *count > 0) {
        grt_module_destroy(&parts[--*count]);
    }
    if (!good) {
        free(parts);
        return NULL;
    }
    return parts;
}

static struct grt_module *make_layer(struct network_reading *r, const struct grt_node *node);

static struct grt_module *make_repeated(struct network_reading *r, const struct grt_node *list,
                                        const char *what, uint32_t times) {
    if (list->kind != GRT_NODE_LIST || !list->first) {
        return network_wrong(r, list, "%s wants a list of layers", what);
    }
    uint32_t count = 0;
    struct grt_module **parts = make_parts(r, list, times, &count, make_layer);
    struct grt_module *made = parts ? grt_sequence_create(parts, count) : NULL;
    free(parts);
    return made;
}

static struct grt_module *make_list(struct network_reading *r, const struct grt_node *list,
                                    const char *what) {
    bool inside = r->inside;
    struct grt_module *made = make_repeated(r, list, what, 1);
    r->inside = inside;  // the next branch takes what this one takes
    return made;
}

static struct grt_module *make_repeat(struct network_reading *r, const struct grt_node *value) {
    static const char *const keys[] = {"times", "of", NULL};
    const struct grt_node *times = NULL, *of = NULL;
    uint32_t count = 0;
    if (value->kind == GRT_NODE_MAP && network_only(r, value, "repeat", keys)) {
        times = network_entry(value, "times");
        of = network_entry(value, "of");
    }
    if (!times || !of) {
        return value->kind == GRT_NODE_MAP && (times || of || !value->first)
                   ? network_wrong(r, value, "repeat wants `times` and `of`")
               : value->kind == GRT_NODE_MAP
                   ? NULL
                   : network_wrong(r, value, "repeat wants {times: 3, of: [...]}");
    }
    return network_whole(r, times, "times", MOST_LAYERS, &count)
               ? make_repeated(r, of, "repeat", count)
               : NULL;
}

static struct grt_module *make_branch(struct network_reading *r, const struct grt_node *node) {
    return make_list(r, node, "a branch");
}

static struct grt_module *make_branches(struct network_reading *r, const struct grt_node *value) {
    static const char *const keys[] = {"of", "merge", NULL}, *const words[] = {"sum", "concat"};
    const struct grt_node *of = value, *merge = NULL;
    int word = 0;
    if (value->kind == GRT_NODE_MAP) {
        of = network_entry(value, "of");
        merge = network_entry(value, "merge");
        if (!network_only(r, value, "branches", keys) ||
            (merge && (word = network_word(r, merge, "merge", words, 2)) < 0)) {
            return NULL;
        }
    }
    if (!of || of->kind != GRT_NODE_LIST || !of->first || !of->first->next) {
        return network_wrong(r, of ? of : value, "branches wants at least two lists of layers%s",
                             of ? "" : " under `of`");
    }
    uint32_t count = 0;
    struct grt_module **parts = make_parts(r, of, 1, &count, make_branch);
    struct grt_module *made = !parts      ? NULL
                              : word == 0 ? grt_branches_create(parts, count)
                                          : grt_concat_create(parts, count);
    free(parts);
    return made;
}

static struct grt_module *make_columns(struct network_reading *r, const struct grt_node *value) {
    static const char *const keys[] = {"first", "count", NULL};
    const struct grt_node *from = NULL, *how_many = NULL;
    uint32_t first = 0, count = 0;
    if (value->kind == GRT_NODE_MAP) {
        if (!network_only(r, value, "columns", keys)) {
            return NULL;
        }
        from = network_entry(value, "first");
        how_many = network_entry(value, "count");
    }
    if (!how_many) {
        return network_wrong(r, value, "columns wants {first: 0, count: 3}");
    }
    bool zero = !from || (from->kind == GRT_NODE_TEXT && strcmp(from->text, "0") == 0);
    return (zero || network_whole(r, from, "first", NETWORK_MOST_WIDTH, &first)) &&
                   network_whole(r, how_many, "count", NETWORK_MOST_WIDTH, &count)
               ? grt_columns_create(first, count)
               : NULL;
}

// Without the slash that an HDF5 path may begin with.
static const char *bare(const char *name) {
    return name + (name[0] == '/');
}

static struct grt_module *make_one_input(struct network_reading *r, const struct grt_node *node) {
    const struct grt_network_desc *d = r->desc;
    const char *text = node->kind == GRT_NODE_TEXT ? bare(node->text) : "";
    const char *names[GRT_NETWORK_INPUTS];
    uint32_t count = d->input_count < GRT_NETWORK_INPUTS ? d->input_count : GRT_NETWORK_INPUTS;
    const struct grt_input *found = NULL;
    char list[160] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        names[i] = bare(d->inputs[i].name);
        if (strcmp(names[i], text) == 0) {  // a data set that is listed twice is one
            r->taken[i] = true;
            found = found ? found : &d->inputs[i];
        }
        used += used < sizeof list ? (size_t)snprintf(list + used, sizeof list - used, "%s%.60s",
                                                      i ? ", " : "", names[i])
                                   : 0;
    }
    if (found) {
        return grt_input_create(found);
    }
    if (!text[0]) {
        return network_wrong(r, node, "input wants a name: %s", list);
    }
    const char *closest = grt_closest(text, names, count, sizeof *names);
    return closest ? network_wrong(r, node, "no input '%.60s'; did you mean '%s'?", text, closest)
                   : network_wrong(r, node, "no input '%.60s'; inputs are %s", text, list);
}

// A sample's input, or several one behind the other.
static struct grt_module *make_input(struct network_reading *r, const struct grt_node *value) {
    if (r->desc->input_count == 0 || !r->desc->inputs) {
        return network_wrong(r, value, "input: samples have one input here, which has no name");
    }
    if (r->inside) {
        return network_wrong(r, value,
                             "input stands at the beginning of the network, or of its branches: "
                             "here another layer comes before");
    }
    if (r->line == 0) {
        r->line = value->line;
        r->column = value->column;
    }
    if (value->kind != GRT_NODE_LIST || !value->first || !value->first->next) {
        return make_one_input(r,
                              value->kind == GRT_NODE_LIST && value->first ? value->first : value);
    }
    uint32_t count = 0;
    struct grt_module **parts = make_parts(r, value, 1, &count, make_one_input);
    struct grt_module *made = parts ? grt_concat_create(parts, count) : NULL;
    free(parts);
    return made;
}

static const struct layer {
    const char *name;
    const char *value;  // what stands behind it; NULL: nothing
    struct grt_module *(*make)(struct network_reading *r, const struct grt_node *value);
    bool hands_on;  // takes no sample itself: the layers inside do, or it names inputs
} layers[] = {
    {"linear", "256, out, or {outputs: 256, bias: false}", make_linear},
    {"conv", "64, or {outputs: 64, size: 3, stride: 1, padding: 1, bias: true}", make_conv},
    {"norm", "layer or batch", make_norm},
    {"dropout", "0.1", make_dropout},
    {"flatten", NULL, make_flatten},
    {"geglu", NULL, make_geglu},
    {"pool", "max or mean", make_pool},
    {"max_pool", "2, or {size: 3, stride: 2, padding: 1}", make_max_pool},
    {"avg_pool", "2, or {size: 3, stride: 2, padding: 1}", make_avg_pool},
    {"residual", "[layers], or {of: [layers], shortcut: [layers], activation: relu}", make_residual,
     true},
    {"repeat", "{times: 3, of: [layers]}", make_repeat, true},
    {"branches", "[[layers], [layers]], or {of: [[layers], [layers]], merge: concat}",
     make_branches, true},
    {"columns", "{first: 0, count: 3}", make_columns},
    {"input", "a name of `inputs`, or a list of them", make_input, true},
};
#define LAYER_COUNT (sizeof layers / sizeof *layers)

static struct grt_module *unknown(struct network_reading *r, const struct grt_node *at,
                                  const char *name) {
    // In one list: the closest of all is meant, not what is somewhat like it among layers.
    const char *known[LAYER_COUNT + GRT_ACT_COUNT + MOST_NAMED];
    size_t count = 0;
    for (size_t i = 0; i < LAYER_COUNT; i++) {
        known[count++] = layers[i].name;
    }
    for (size_t i = 1; i < GRT_ACT_COUNT; i++) {  // the first is none
        known[count++] = act_words[i];
    }
    for (uint32_t i = 0; i < MOST_NAMED && network_name(i); i++) {
        known[count++] = network_name(i);
    }
    const char *closest = grt_closest(name, known, count, sizeof *known);
    // The beginning of several words may be that of one layer.
    closest = closest ? closest : grt_closest(name, layers, LAYER_COUNT, sizeof *layers);
    if (closest) {
        return network_wrong(r, at, "no layer '%.40s'; did you mean '%s'?", name, closest);
    }
    char list[320] = "";
    size_t used = 0;
    for (size_t i = 0; i < LAYER_COUNT + GRT_ACT_COUNT - 1 && used < sizeof list; i++) {
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                                 i < LAYER_COUNT ? layers[i].name : act_words[i - LAYER_COUNT + 1]);
    }
    return network_wrong(r, at, "no layer '%.40s'; layers are %s", name, list);
}

static struct grt_module *make_named(struct network_reading *r, const struct grt_node *at,
                                     const char *name, const struct grt_node *value) {
    for (size_t i = 0; i < LAYER_COUNT; i++) {
        if (strcmp(layers[i].name, name) == 0) {
            if (layers[i].value && !value) {
                return network_wrong(r, at, "%s wants a value: %s", name, layers[i].value);
            }
            if (!layers[i].value && value) {
                return network_wrong(r, value, "%s takes no value", name);
            }
            r->whole |= !r->inside && !layers[i].hands_on;
            return layers[i].make(r, value);
        }
    }
    for (uint32_t act = 1; act < GRT_ACT_COUNT; act++) {
        if (strcmp(act_words[act], name) == 0) {
            r->whole |= !r->inside;
            return value ? network_wrong(r, value, "%s takes no value", name)
                         : grt_activation_create((enum grt_act)act);
        }
    }
    bool known = false;
    struct grt_module *made = network_named(r, name, value, &known);
    r->whole |= known && !r->inside;
    return known ? made : unknown(r, at, name);
}

// `relu`, or `linear: 64`.
static struct grt_module *make_layer(struct network_reading *r, const struct grt_node *node) {
    if (++r->made > MOST_LAYERS) {
        return network_wrong(r, node, "more than %d layers", MOST_LAYERS);
    }
    const struct grt_node *one = node->kind == GRT_NODE_MAP ? node->first : NULL;
    if (node->kind == GRT_NODE_LIST || (node->kind == GRT_NODE_MAP && (!one || one->next))) {
        return network_wrong(r, node, "a layer is one word, or one word with its value");
    }
    struct grt_module *made =
        make_named(r, node, one ? one->text : node->text, one ? one->first : NULL);
    r->inside = true;
    if (made) {
        say_where(made, r, node);
    }
    return made;
}

// A network that names inputs takes all of them: data that nobody uses are a mistake.
static bool all_taken(const struct network_reading *r) {
    const char *taken = NULL, *left = NULL;
    char where[1100];
    grt_tree_where(&r->source, r->line, r->column, where, sizeof where);
    for (uint32_t i = 0; i < r->desc->input_count && i < GRT_NETWORK_INPUTS; i++) {
        const char **first = r->taken[i] ? &taken : &left;
        *first = *first ? *first : bare(r->desc->inputs[i].name);
    }
    return r->whole || !taken || !left ||
           grt_fail(GRT_CONFIG,
                    "%sthe network takes input '%.60s', and nothing takes input '%.60s': "
                    "begin a branch with {input: %.60s}, or leave it out of `inputs`",
                    where, taken, left, left);
}

static bool is_named(const struct grt_node *node) {
    const char *name = node->kind == GRT_NODE_MAP && node->first ? node->first->text : node->text;
    uint32_t i = 0;
    while (name && network_name(i) && strcmp(network_name(i), name) != 0) {
        i++;
    }
    return name && network_name(i);
}

struct grt_module *grt_network_create(const struct grt_network_desc *desc) {
    if (!desc || !desc->text) {
        grt_fail(GRT_INVALID, "network: no %s", desc ? "text" : "desc");
        return NULL;
    }
    struct network_reading r = {.desc = desc, .source = network_source(desc, "network")};
    struct grt_node *tree = grt_tree_create(&r.source, desc->text);
    // A network by name that stands alone is the whole network, so its parameters have its own
    // names.
    const struct grt_node *alone = tree && tree->kind == GRT_NODE_LIST ? tree->first : NULL;
    bool named = alone && !alone->next && is_named(alone);
    struct grt_module *made = !tree   ? NULL
                              : named ? make_layer(&r, alone)
                                      : make_list(&r, tree, "the network");
    for (const struct grt_node *layer = made ? tree->first : NULL; layer; layer = layer->next) {
        say_where(made, &r, layer);  // what the last one gives is what the network gives
    }
    grt_tree_destroy(&tree);
    if (made && !all_taken(&r)) {
        grt_module_destroy(&made);
    }
    return made;
}

struct grt_module *grt_network_make(const void *desc) {
    return grt_network_create(desc);
}
