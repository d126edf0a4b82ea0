// SPDX-License-Identifier: Apache-2.0
// From nodes to a list of layers. First every value gets its shape, and the value above it: the
// last one that all ways from the input to it go through. Then the list is found backwards, from
// the output to the input:
//
//     a node with a row in operators.c    its layer
//     a sum or concatenation              its branches, each from the value above to an input of it
//     a function of one number            an activation (activations.c)
//     constants per channel               at the beginning, the normaliser
#include "network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gpurt/config.h"
#include "reading.h"

#define MOST_INSIDE 24   // branches inside branches
#define MOST_STEPS 4096  // of one list
#define MOST_FOLDED (1ull << 28)

// ---- shapes ----

static bool is(const struct onnx_node *n, const char *op) {
    return strcmp(n->op, op) == 0;
}

static bool is_pair(const struct onnx_node *n) {
    return is(n, "Add") || is(n, "Sub") || is(n, "Mul") || is(n, "Div");
}

// A Constant, and constants through Identity and Transpose: programs keep weights so.
static bool fold(struct reading *r, struct onnx_node *n) {
    struct onnx_value *to = &r->model->values[n->output];
    const struct onnx_tensor *from = onnx_constant(r, n, 0);
    if (is(n, "Constant")) {
        for (uint32_t i = 0; i < n->attribute_count && !to->constant; i++) {
            if (strcmp(n->attributes[i].name, "value") == 0) {
                to->constant = n->attributes[i].tensor;
                n->attributes[i].tensor = NULL;
            }
        }
        return to->constant || onnx_lacks(r, n, "without a tensor is not known here");
    }
    bool turn = is(n, "Transpose") && from && from->rank == 2;
    if (!from || !from->reals || (!turn && !is(n, "Identity"))) {
        return true;
    }
    r->folded += from->count;
    if (r->folded > MOST_FOLDED) {
        return onnx_lacks(r, n,
                          "copies a constant, and all that do more than 2^28 numbers: fold "
                          "constants where the file is written");
    }
    struct onnx_tensor *t = calloc(1, sizeof *t);
    float *reals = malloc((from->count + 1) * sizeof *reals);
    if (!t || !reals) {
        free(t);
        free(reals);
        return grt_fail(GRT_NO_MEMORY, "no host memory for %s", r->model->path);
    }
    *t = *from;
    t->reals = reals;
    uint64_t rows = turn ? from->dims[0] : 1, cols = turn ? from->dims[1] : from->count;
    for (uint64_t i = 0; i < from->count; i++) {
        reals[i] = from->reals[turn ? i % rows * cols + i / rows : i];
    }
    if (turn) {
        t->dims[0] = cols;
        t->dims[1] = rows;
    }
    to->constant = t;
    return true;
}

// The nearest value that is above both.
static uint32_t meet(const struct reading *r, uint32_t a, uint32_t b) {
    while (a != b) {
        if (r->known[a].depth >= r->known[b].depth) {
            a = r->known[a].above;
        } else {
            b = r->known[b].above;
        }
    }
    return a;
}

static bool too_large(const struct known *x) {
    uint64_t count = 1;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (x->dim[i] > ONNX_MOST_NUMBERS / count) {
            return true;
        }
        count *= x->dim[i] > 0 ? x->dim[i] : 1;
    }
    return false;
}

static bool infer_node(struct reading *r, struct onnx_node *n) {
    const struct onnx_op *op = onnx_operator(n->op);
    uint32_t above = ONNX_NONE;
    bool whole = n->input_count > 0 && n->inputs[0] != ONNX_NONE;
    if (!fold(r, n)) {
        return false;
    }
    if (r->model->values[n->output].constant) {
        return true;
    }
    for (uint32_t i = 0; i < n->input_count; i++) {
        uint32_t v = n->inputs[i];
        if (v != ONNX_NONE && !r->model->values[v].constant) {
            whole = whole && r->known[v].known;
            above = above == ONNX_NONE || !whole ? v : meet(r, above, v);
        }
    }
    // What is lacking is said where the network needs it.
    if (!op || !whole || above == ONNX_NONE) {
        return true;
    }
    struct known out = {0};
    bool pair = is_pair(n) || is(n, "Pow");
    if (!pair && !r->known[n->inputs[0]].known) {
        return true;
    }
    if (!op->infer(r, n, &out)) {
        return false;
    }
    if (too_large(&out)) {
        return onnx_lacks(r, n, "gives more than 2^31 numbers of a sample");
    }
    out.known = true;
    out.above = above;
    out.depth = r->known[above].depth + 1;
    r->known[n->output] = out;
    return true;
}

// Whether images come with their channels last: they are turned before anything looks at them.
static bool input_is_rows(const struct onnx_model *m) {
    uint32_t value = m->input;
    if (m->input_rank != 3 || strcmp(m->producer, "gpurt") == 0) {
        return true;
    }
    for (uint32_t i = 0; i < m->node_count; i++) {
        const struct onnx_node *n = &m->nodes[i];
        const struct onnx_attribute *perm = onnx_attribute(n, "perm");
        if (n->input_count == 0 || n->inputs[0] != value) {
            continue;
        }
        if (perm && is(n, "Transpose")) {
            return perm->count == 4 && perm->wholes[1] == 3;
        }
        if (!is_pair(n)) {
            return false;
        }
        value = n->output;
    }
    return false;
}

static bool begin(struct reading *r) {
    const struct onnx_model *m = r->model;
    struct onnx_network *net = r->network;
    struct known *x = &r->known[m->input];
    if (m->input_rank > READING_RANK) {
        return grt_fail(GRT_BAD_DATA, "%s: samples of %u axes; known are up to three", m->path,
                        m->input_rank);
    }
    bool rows = input_is_rows(m);
    *x = (struct known){.known = true, .rank = m->input_rank};
    x->layout = rows ? LAYOUT_ROWS : LAYOUT_PLANES;
    for (uint32_t i = 0; i < x->rank; i++) {
        x->dim[i] = m->input_dims[rows ? i : (i + 1) % x->rank];
    }
    net->rank = x->rank;
    memcpy(net->dims, x->dim, sizeof net->dims);
    for (uint32_t i = 0; i < m->node_count; i++) {
        if (!infer_node(r, &r->model->nodes[i])) {
            return false;
        }
    }
    return true;
}

// ---- the list, backwards ----

enum step_kind { STEP_LAYER, STEP_ACT, STEP_MERGE, STEP_AFFINE, STEP_SOFTMAX };

struct step {
    enum step_kind kind;
    const struct onnx_node *node;
    const struct onnx_tensor *added;  // a bias behind a MatMul
    const char *word;                 // of an activation
    uint32_t fork;                    // of branches
};

static const struct onnx_node *producer(const struct reading *r, uint32_t value) {
    uint32_t node = r->model->values[value].producer;
    return node != ONNX_NONE ? &r->model->nodes[node] : NULL;
}

// A pair with a constant: which input that is, and which value the other.
static const struct onnx_tensor *constant_of(const struct reading *r, const struct onnx_node *n,
                                             uint32_t *other) {
    const struct onnx_tensor *first = onnx_constant(r, n, 0);
    *other = n->inputs[first ? 1 : 0];
    return first ? first : onnx_constant(r, n, 1);
}

// The first node on the way to a value that nothing is known of.
static const struct onnx_node *unknown_before(const struct reading *r, const struct onnx_node *n) {
    bool found = true;
    while (found) {
        found = false;
        for (uint32_t i = 0; i < n->input_count && !found; i++) {
            uint32_t v = n->inputs[i];
            bool unknown = v != ONNX_NONE && !r->model->values[v].constant && !r->known[v].known;
            const struct onnx_node *before = unknown ? producer(r, v) : NULL;
            found = before != NULL;
            n = found ? before : n;
        }
    }
    return n;
}

// One step back from a value; *value becomes what comes before.
static bool step_back(const struct reading *r, uint32_t *value, struct step *step, bool *none) {
    const struct onnx_node *n = producer(r, *value);
    const struct onnx_op *op = n ? onnx_operator(n->op) : NULL;
    uint32_t other = ONNX_NONE;
    *none = false;
    *step = (struct step){.node = n};
    if (!n || !op || !r->known[*value].known) {
        return n ? onnx_lacks(r, unknown_before(r, n), "has no layer here, or not with such inputs")
                 : grt_fail(GRT_BAD_DATA, "%s: '%s' is no output of a network", r->model->path,
                            r->model->values[*value].name);
    }
    bool flat = op->emit && r->known[n->inputs[0]].rank == 1 && r->known[*value].rank == 1 &&
                (is(n, "Flatten") || is(n, "Reshape") || is(n, "Squeeze"));
    if (is(n, "Identity") || is(n, "Dropout") || is(n, "Transpose") || flat) {
        *none = true;
        *value = n->inputs[0];
        return true;
    }
    step->word = onnx_activation(r, *value, &other);
    if (step->word) {
        step->kind = STEP_ACT;
        *value = other;
        return true;
    }
    const struct onnx_tensor *constant = is_pair(n) ? constant_of(r, n, &other) : NULL;
    const struct onnx_node *before = constant ? producer(r, other) : NULL;
    if (before && is(n, "Add") && is(before, "MatMul") && constant->rank <= 1 &&
        constant->count == r->known[*value].dim[r->known[*value].rank - 1]) {
        *step = (struct step){STEP_LAYER, before, constant, NULL, 0};
        *value = before->inputs[0];
    } else if (constant) {
        step->kind = STEP_AFFINE;
        *value = other;
    } else if (is(n, "Add") || is(n, "Mul") || is(n, "Concat")) {
        step->kind = STEP_MERGE;
        step->fork = *value = r->known[*value].above;
    } else if (is(n, "Softmax") || is(n, "LogSoftmax")) {
        step->kind = STEP_SOFTMAX;
        *value = n->inputs[0];
    } else if (op->emit) {
        step->kind = STEP_LAYER;
        *value = n->inputs[0];
    } else {
        return onnx_lacks(r, n, "by itself has no layer here");
    }
    return true;
}

// The steps from one value to another, the last first, to be freed; NULL with the sentence.
static struct step *steps_between(const struct reading *r, uint32_t from, uint32_t to,
                                  uint32_t *count) {
    struct step *steps = calloc(MOST_STEPS, sizeof *steps);
    bool good = true;
    *count = 0;
    if (!steps) {
        grt_fail(GRT_NO_MEMORY, "no host memory for %s", r->model->path);
        return NULL;
    }
    while (good && to != from) {
        bool none = false;
        if (*count == MOST_STEPS) {
            good = grt_fail(GRT_BAD_DATA, "%s: more than %d layers", r->model->path, MOST_STEPS);
        } else {
            good = step_back(r, &to, &steps[*count], &none);
            *count += good && !none;
        }
        if (good && to != from && r->known[to].depth < r->known[from].depth) {
            good = grt_fail(GRT_BAD_DATA, "%s: branches at '%s' that do not meet again",
                            r->model->path, r->model->values[to].name);
        }
    }
    if (!good) {
        free(steps);
        return NULL;
    }
    return steps;
}

// ---- the normaliser ----

// y = scale x + shift of each channel, and one more node behind it.
static bool apply(struct reading *r, const struct onnx_node *n, double *scale, double *shift) {
    uint32_t other = 0;
    const struct onnx_tensor *c = constant_of(r, n, &other);
    const struct known *x = &r->known[other];
    uint64_t width = x->dim[x->rank - 1];
    uint32_t behind = x->layout == LAYOUT_PLANES ? x->rank : 1;  // axes from the channels' on
    bool wide = c->rank >= behind && c->dims[c->rank - behind] == width && c->count == width;
    bool turned = onnx_constant(r, n, 0) != NULL;
    if (!c->reals || (c->count != 1 && !wide) || (turned && is(n, "Div"))) {
        return onnx_lacks(r, n, "by these constants is no normaliser of channels");
    }
    for (uint64_t i = 0; i < width; i++) {
        double v = (double)c->reals[c->count == 1 ? 0 : i];
        double by = is(n, "Mul") ? v : is(n, "Div") ? 1 / v : turned && is(n, "Sub") ? -1 : 1;
        double add = is(n, "Add") ? v : is(n, "Sub") ? (turned ? v : -v) : 0;
        scale[i] *= by;
        shift[i] = shift[i] * by + add;
    }
    return true;
}

// The steps at the beginning that are one; *count becomes the number of those behind it.
static bool take_normaliser(struct reading *r, const struct step *steps, uint32_t *count) {
    struct onnx_network *net = r->network;
    uint64_t width = net->dims[net->rank - 1];
    uint32_t first = *count;
    while (first > 0 && steps[first - 1].kind == STEP_AFFINE) {
        first--;
    }
    if (first == *count) {
        return true;
    }
    double *scale = calloc(2 * width, sizeof *scale), *shift = scale ? scale + width : NULL;
    net->mean = calloc(width, sizeof *net->mean);
    net->std = calloc(width, sizeof *net->std);
    bool good = scale && net->mean && net->std;
    for (uint64_t i = 0; good && i < width; i++) {
        scale[i] = 1;
    }
    r->failed = r->failed || !good;
    for (uint32_t i = *count; good && i > first; i--) {
        good = apply(r, steps[i - 1].node, scale, shift);
    }
    for (uint64_t i = 0; good && i < width; i++) {
        good = (scale[i] > 0 && scale[i] < 1e30) ||
               onnx_lacks(r, steps[first].node, "scales a channel by %g, which no normaliser does",
                          scale[i]);
        net->mean[i] = good ? (float)(-shift[i] / scale[i]) : 0;
        net->std[i] = good ? (float)(1 / scale[i]) : 1;
    }
    free(scale);
    *count = first;
    return good;
}

// ---- the list, forwards ----

static bool write_list(struct reading *r, uint32_t from, uint32_t to, uint32_t inside);

// [layers] of a branch; one without any is all of its columns.
static bool write_branch(struct reading *r, uint32_t from, uint32_t to, uint32_t inside) {
    const struct known *x = &r->known[to];
    size_t begun = r->size + 1;
    onnx_write(r, "[");
    bool good = write_list(r, from, to, inside);
    if (good && !r->failed && r->size == begun) {
        onnx_write(r, "{columns: {first: 0, count: %llu}}",
                   (unsigned long long)x->dim[x->rank - 1]);
    }
    onnx_write(r, "]");
    return good;
}

// Whether a way is of columns and functions alone; *good becomes false with the sentence.
static bool is_plain(const struct reading *r, uint32_t from, uint32_t to, bool *good) {
    uint32_t count = 0;
    struct step *steps = steps_between(r, from, to, &count);
    bool plain = steps != NULL;
    *good = *good && plain;
    for (uint32_t i = 0; i < count && plain; i++) {
        plain = steps[i].kind == STEP_ACT || is(steps[i].node, "Slice");
    }
    free(steps);
    return plain;
}

// The second half's gelu times the first.
static bool write_product(struct reading *r, const struct step *s, uint32_t inside) {
    char want[2][96];
    const struct known *x = &r->known[s->fork];
    unsigned long long half = x->dim[x->rank - 1] / 2;
    size_t begun = r->size;
    bool found = false, good = true;
    snprintf(want[0], sizeof want[0], "[{columns: {first: 0, count: %llu}}]", half);
    snprintf(want[1], sizeof want[1], "[{columns: {first: %llu, count: %llu}}, gelu]", half, half);
    bool plain = is_plain(r, s->fork, s->node->inputs[0], &good) &&
                 is_plain(r, s->fork, s->node->inputs[1], &good);
    if (plain) {
        good = write_branch(r, s->fork, s->node->inputs[0], inside) &&
               write_branch(r, s->fork, s->node->inputs[1], inside);
    }
    if (!good) {
        return false;
    }
    for (uint32_t i = 0; plain && i < 2 && !found && !r->failed; i++) {
        char both[200];
        snprintf(both, sizeof both, "%s%s", want[i], want[1 - i]);
        found = strcmp(r->text + begun, both) == 0;
    }
    r->size = begun;
    onnx_write(r, "geglu");
    return found || onnx_lacks(r, s->node, "of two values has no layer here, but for geglu");
}

static bool write_sum(struct reading *r, const struct step *s, uint32_t inside) {
    const struct onnx_node *n = s->node;
    uint32_t body = n->inputs[0] == s->fork ? 1 : 0, other = 1 - body;
    if (n->inputs[body] == s->fork) {
        return onnx_lacks(r, n, "of a value and itself has no layer here");
    }
    if (n->inputs[other] == s->fork) {
        onnx_write(r, "{residual: ");
        bool good = write_branch(r, s->fork, n->inputs[body], inside);
        onnx_write(r, "}");
        return good;
    }
    onnx_write(r, "{residual: {of: ");
    bool good = write_branch(r, s->fork, n->inputs[body], inside);
    onnx_write(r, ", shortcut: ");
    good = good && write_branch(r, s->fork, n->inputs[other], inside);
    onnx_write(r, "}}");
    return good;
}

static bool write_merge(struct reading *r, const struct step *s, uint32_t inside) {
    const struct onnx_node *n = s->node;
    if (inside >= MOST_INSIDE) {
        return onnx_lacks(r, n, "stands inside more than %d branches", MOST_INSIDE);
    }
    if (!is(n, "Concat")) {
        return is(n, "Mul") ? write_product(r, s, inside + 1) : write_sum(r, s, inside + 1);
    }
    bool good = true;
    onnx_write(r, "{branches: {merge: concat, of: [");
    for (uint32_t i = 0; good && i < n->input_count; i++) {
        onnx_write(r, i > 0 ? ", " : "");
        good = write_branch(r, s->fork, n->inputs[i], inside + 1);
    }
    onnx_write(r, "]}}");
    return good && (n->input_count > 1 || onnx_lacks(r, n, "of one input is not known here"));
}

static bool too_long(const struct reading *r) {
    return grt_fail(GRT_BAD_DATA, "%s: its layers as a text are longer than a config takes",
                    r->model->path);
}

// A layer with numbers is written once: a second one would have its own.
static bool write_layer(struct reading *r, const struct step *s, bool last) {
    bool linear = is(s->node, "Gemm") || is(s->node, "MatMul");
    bool *written = &r->written[s->node - r->model->nodes];
    uint32_t before = r->network->piece_count;
    if (*written) {
        return onnx_lacks(r, s->node, "stands in two branches: give each a layer of its own");
    }
    bool good = linear ? onnx_emit_linear(r, s->node, s->added, last)
                       : onnx_operator(s->node->op)->emit(r, s->node);
    *written = r->network->piece_count > before;
    return good;
}

static bool write_step(struct reading *r, const struct step *s, bool last, uint32_t inside) {
    bool linear = is(s->node, "Gemm") || is(s->node, "MatMul");
    bool mixed = s->kind == STEP_LAYER && !linear && s->node->input_count > 0 &&
                 r->known[s->node->inputs[0]].layout == LAYOUT_MIXED;
    if (r->size >= GRT_CONFIG_TREE_SIZE) {
        return too_long(r);
    }
    if (mixed) {
        return onnx_lacks(r, s->node,
                          "behind images as one axis, before a linear layer, has no "
                          "layer here");
    }
    switch (s->kind) {
    case STEP_ACT:
        onnx_write(r, "%s", s->word);
        return true;
    case STEP_MERGE:
        return write_merge(r, s, inside);
    case STEP_AFFINE:
        return onnx_lacks(r, s->node, "by constants has no layer here, but at the beginning");
    case STEP_SOFTMAX:
        return onnx_lacks(r, s->node, "has no layer here, but at the end");
    default:
        return write_layer(r, s, last && inside == 0);
    }
}

static bool write_list(struct reading *r, uint32_t from, uint32_t to, uint32_t inside) {
    uint32_t count = 0, last = 0;
    struct step *steps = steps_between(r, from, to, &count);
    bool good = steps != NULL;
    if (good && inside == 0 && count > 0 && steps[0].kind == STEP_SOFTMAX) {
        r->network->softmax = true;
        last = 1;
    }
    good = good && (inside > 0 || take_normaliser(r, steps, &count));
    for (uint32_t i = count; good && !r->failed && i > last; i--) {
        onnx_write(r, i < count ? ", " : "");
        good = write_step(r, &steps[i - 1], i - 1 == last, inside);
    }
    free(steps);
    return good;
}

// ---- the whole ----

static bool write_network(struct reading *r) {
    const struct onnx_model *m = r->model;
    struct onnx_network *net = r->network;
    if (!begin(r)) {
        return false;
    }
    onnx_write(r, "[");
    bool good = write_list(r, m->input, m->output, 0);
    onnx_write(r, "]");
    const struct known *y = &r->known[m->output];
    net->outputs = 1;
    for (uint32_t i = 0; i < y->rank; i++) {
        net->outputs *= y->dim[i];
    }
    if (good && r->failed) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for %s", m->path);
    }
    if (good && y->layout == LAYOUT_MIXED) {
        return grt_fail(GRT_BAD_DATA, "%s: it ends with the numbers of images as one axis",
                        m->path);
    }
    if (good && net->piece_count == 0) {
        return grt_fail(GRT_BAD_DATA, "%s: it has no layer with numbers to learn", m->path);
    }
    if (good && y->rank > 1) {
        return onnx_lacks(r, producer(r, m->output),
                          "gives the output with %u axes of a sample; here it has one: flatten it",
                          y->rank);
    }
    return good && (r->size < GRT_CONFIG_TREE_SIZE || too_long(r));
}

struct onnx_network *onnx_network_load(const char *path) {
    struct reading r = {.model = onnx_model_load(path)};
    if (!r.model) {
        return NULL;
    }
    r.known = calloc(r.model->value_count + 1, sizeof *r.known);
    r.written = calloc(r.model->node_count + 1, sizeof *r.written);
    r.network = calloc(1, sizeof *r.network);
    bool good = r.known && r.written && r.network;
    if (!good) {
        grt_fail(GRT_NO_MEMORY, "no host memory for %s", path);
    }
    good = good && write_network(&r);
    if (r.network) {
        r.network->text = r.text;
    }
    if (!good) {
        onnx_network_destroy(&r.network);
    }
    free(r.known);
    free(r.written);
    onnx_model_destroy(&r.model);
    return r.network;
}

void onnx_network_destroy(struct onnx_network **network) {
    struct onnx_network *net = *network;
    if (!net) {
        return;
    }
    *network = NULL;
    for (uint32_t i = 0; i < net->piece_count; i++) {
        free(net->pieces[i].numbers);
    }
    free(net->pieces);
    free(net->text);
    free(net->mean);
    free(net->std);
    free(net);
}
