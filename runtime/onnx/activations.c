// SPDX-License-Identifier: Apache-2.0
// Activations are known by what they compute: programs write gelu and silu in many ways, as one
// node or as ten. The function between two values is tried at some points and compared with those
// that there are.
#include <math.h>
#include <string.h>

#include "reading.h"

#define POINTS 12
#define MOST_STEPS 12   // values above each other that are tried
#define MOST_VALUES 64  // between the two
#define CLOSE 3e-5      // gelu and its approximation are 2e-4 apart

static const double points[POINTS] = {-30, -8, -3.1, -1.6, -0.7, -0.1, 0.2, 0.9, 1.7, 3.3, 8, 30};

static double relu(double x) {
    return x > 0 ? x : 0;
}

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static double silu(double x) {
    return x * sigmoid(x);
}

static double gelu(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

static double gelu_exact(double x) {
    return 0.5 * x * (1 + erf(x / sqrt(2)));
}

static const struct {
    const char *word;
    double (*of)(double);
} activations[] = {{"relu", relu}, {"gelu", gelu},      {"tanh", tanh}, {"gelu_exact", gelu_exact},
                   {"silu", silu}, {"sigmoid", sigmoid}};

static double negative(double x) {
    return -x;
}

static const struct {
    const char *op;
    double (*of)(double);
} unary[] = {{"Relu", relu}, {"Tanh", tanh}, {"Sigmoid", sigmoid}, {"Erf", erf},
             {"Sqrt", sqrt}, {"Exp", exp},   {"Neg", negative}};

static bool compute(const struct onnx_node *n, const double *a, const double *b, double *y) {
    const struct onnx_attribute *how = onnx_attribute(n, "approximate");
    for (size_t i = 0; i < sizeof unary / sizeof *unary; i++) {
        if (strcmp(unary[i].op, n->op) == 0) {
            *y = unary[i].of(*a);
            return true;
        }
    }
    if (strcmp(n->op, "Gelu") == 0) {
        *y = how && strcmp(how->text, "tanh") == 0 ? gelu(*a) : gelu_exact(*a);
        return true;
    }
    char op = strcmp(n->op, "Add") == 0   ? '+'
              : strcmp(n->op, "Sub") == 0 ? '-'
              : strcmp(n->op, "Mul") == 0 ? '*'
              : strcmp(n->op, "Div") == 0 ? '/'
              : strcmp(n->op, "Pow") == 0 ? '^'
                                          : 0;
    if (!op || !b) {
        return false;
    }
    *y = op == '+'   ? *a + *b
         : op == '-' ? *a - *b
         : op == '*' ? *a * *b
         : op == '/' ? *a / *b
                     : pow(*a, *b);
    return true;
}

struct trial {
    const struct reading *r;
    uint32_t from;
    double numbers[MOST_VALUES][POINTS];
    bool known[MOST_VALUES];
};

// A value at a point: between the two, or a constant of one number.
static const double *number_of(const struct trial *t, uint32_t value, uint32_t point,
                               double *constant) {
    const struct onnx_tensor *c = value != ONNX_NONE ? t->r->model->values[value].constant : NULL;
    if (c && c->count == 1 && c->reals) {
        *constant = (double)c->reals[0];
        return constant;
    }
    bool inside = value != ONNX_NONE && value >= t->from && value - t->from < MOST_VALUES;
    return inside && t->known[value - t->from] ? &t->numbers[value - t->from][point] : NULL;
}

// Whether `value` is a function of `from` alone, number by number.
static bool follow(struct trial *t, uint32_t value) {
    memset(t->known, 0, sizeof t->known);
    memcpy(t->numbers[0], points, sizeof points);
    t->known[0] = true;
    for (uint32_t v = t->from + 1; v <= value; v++) {
        const struct onnx_value *of = &t->r->model->values[v];
        const struct onnx_node *n =
            of->producer != ONNX_NONE ? &t->r->model->nodes[of->producer] : NULL;
        bool good = n && !of->constant && n->input_count >= 1 && n->input_count <= 2;
        for (uint32_t p = 0; good && p < POINTS; p++) {
            double one, other;
            const double *a = number_of(t, n->inputs[0], p, &one);
            const double *b = n->input_count == 2 ? number_of(t, n->inputs[1], p, &other) : NULL;
            good = a && (n->input_count == 1 || b) && compute(n, a, b, &t->numbers[v - t->from][p]);
        }
        t->known[v - t->from] = good;
    }
    return t->known[value - t->from];
}

// What is no number is close to none.
static const char *match(const double *y) {
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
        bool same = true;
        for (uint32_t p = 0; same && p < POINTS; p++) {
            same = fabs(activations[i].of(points[p]) - y[p]) < CLOSE;
        }
        if (same) {
            return activations[i].word;
        }
    }
    return NULL;
}

const char *onnx_activation(const struct reading *r, uint32_t value, uint32_t *before) {
    struct trial t = {.r = r};
    uint32_t x = value;
    for (uint32_t i = 0; i < MOST_STEPS && r->known[x].depth > 0; i++) {
        x = r->known[x].above;
        if (x >= value || value - x >= MOST_VALUES) {
            return NULL;
        }
        t.from = x;
        if (!follow(&t, value)) {
            return NULL;
        }
        const char *word = match(t.numbers[value - x]);
        if (word) {
            *before = x;
            return word;
        }
    }
    return NULL;
}
