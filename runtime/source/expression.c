// SPDX-License-Identifier: Apache-2.0
// Descends by the precedence of operators, the loosest first.
#include "expression.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHY 128
#define MAX_DEPTH 200  // parentheses in parentheses

struct value {
    double x;
    bool whole;
};

struct reader {
    const char *at;
    grt_expression_name_fn *name;
    void *context;
    char *why;
    bool failed;
    int depth;
};

static struct value choice(struct reader *r);

static struct value stop(struct reader *r, const char *what, const char *at, size_t length) {
    if (!r->failed) {
        snprintf(r->why, WHY, "%s '%.*s'", what, length < 40 ? (int)length : 40, at);
    }
    r->failed = true;
    return (struct value){0, true};
}

static void skip(struct reader *r) {
    r->at += strspn(r->at, " \t\r\n");
}

static struct value number(struct reader *r) {
    char *end = NULL;
    bool hex = r->at[0] == '0' && (r->at[1] == 'x' || r->at[1] == 'X');
    size_t digits = strspn(r->at, "0123456789");
    bool real = !hex && digits > 0 && r->at[digits] && strchr(".eE", r->at[digits]);
    real = real || r->at[0] == '.';
    struct value v = {real ? strtod(r->at, &end) : (double)strtoull(r->at, &end, 0), !real};
    end += strspn(end, real ? "fF" : "uUlL");
    if (isalnum((unsigned char)*end) || *end == '_' || *end == '.') {
        return stop(r, "no number:", r->at, strcspn(r->at, " )"));
    }
    r->at = end;
    return v;
}

static struct value primary(struct reader *r) {
    skip(r);
    const char *at = r->at;
    if (r->failed || ++r->depth > MAX_DEPTH) {
        return stop(r, "too deep at", at, strlen(at));
    }
    struct value v = {0, true};
    if (*at == '(') {
        r->at++;
        v = choice(r);
        skip(r);
        v = *r->at == ')' ? v : stop(r, "no ) before", r->at, strlen(r->at));
        r->at += *r->at == ')';
    } else if (*at && strchr("-+!~", *at)) {
        r->at++;
        v = primary(r);
        v.x = *at == '-' ? -v.x : *at == '!' ? v.x == 0 : *at == '~' ? (double)~(int64_t)v.x : v.x;
        v.whole = v.whole || *at == '!';
    } else if (isdigit((unsigned char)*at) || *at == '.') {
        v = number(r);
    } else if (isalpha((unsigned char)*at) || *at == '_') {
        size_t length = 1;
        while (isalnum((unsigned char)at[length]) || at[length] == '_') {
            length++;
        }
        r->at += length;
        if (!r->name(r->context, at, length, &v.x)) {
            v = stop(r, "unknown name", at, length);
        }
    } else {
        v = stop(r, "no number at", at, strlen(at));
    }
    r->depth--;
    return v;
}

// Tighter binds first; where one begins with another, the longer stands before it.
static const struct {
    const char *text;
    int level;
} operators[] = {{"||", 0}, {"&&", 1}, {"|", 2},  {"^", 3},  {"&", 4},  {"==", 5},
                 {"!=", 5}, {"<<", 7}, {">>", 7}, {"<=", 6}, {">=", 6}, {"<", 6},
                 {">", 6},  {"+", 8},  {"-", 8},  {"*", 9},  {"/", 9},  {"%", 9}};

static struct value apply(struct reader *r, const char *op, struct value a, struct value b) {
    int64_t x = (int64_t)a.x, y = (int64_t)b.x;
    bool whole = a.whole && b.whole;
    bool divides = *op == '/' || *op == '%';
    if (divides && whole && y == 0) {
        return stop(r, "division by zero:", op, strlen(op));
    }
    bool two = op[1] != '\0';
    switch (*op) {
    case '|':
        return (struct value){two ? a.x != 0 || b.x != 0 : (double)(x | y), true};
    case '&':
        return (struct value){two ? a.x != 0 && b.x != 0 : (double)(x & y), true};
    case '^':
        return (struct value){(double)(x ^ y), true};
    case '=':
        return (struct value){a.x == b.x, true};
    case '!':
        return (struct value){a.x != b.x, true};
    case '<':
        if (op[1] == '<') {
            return (struct value){(double)(int64_t)((uint64_t)x << (y & 63)), true};
        }
        return (struct value){two ? a.x <= b.x : a.x < b.x, true};
    case '>':
        if (op[1] == '>') {
            return (struct value){(double)(x >> (y & 63)), true};
        }
        return (struct value){two ? a.x >= b.x : a.x > b.x, true};
    case '+':
        return (struct value){a.x + b.x, whole};
    case '-':
        return (struct value){a.x - b.x, whole};
    case '*':
        return (struct value){a.x * b.x, whole};
    case '/':
        return (struct value){whole ? trunc(a.x / b.x) : a.x / b.x, whole};
    default:
        return (struct value){y != 0 && y != -1 ? (double)(x % y) : 0, true};
    }
}

static struct value binary(struct reader *r, int level) {
    struct value a = primary(r);
    while (!r->failed) {
        skip(r);
        size_t i = 0, count = sizeof operators / sizeof operators[0];
        while (i < count && strncmp(r->at, operators[i].text, strlen(operators[i].text)) != 0) {
            i++;
        }
        if (i == count || operators[i].level < level) {
            break;
        }
        r->at += strlen(operators[i].text);
        struct value b = binary(r, operators[i].level + 1);
        a = apply(r, operators[i].text, a, b);
    }
    return a;
}

static struct value choice(struct reader *r) {
    struct value v = binary(r, 0);
    skip(r);
    if (!r->failed && *r->at == '?') {
        r->at++;
        struct value yes = choice(r);
        skip(r);
        if (*r->at != ':') {
            return stop(r, "no : before", r->at, strlen(r->at));
        }
        r->at++;
        struct value no = choice(r);
        v = v.x != 0 ? yes : no;
    }
    return v;
}

bool grt_expression(const char *text, grt_expression_name_fn *name, void *context, double *value,
                    char *why) {
    struct reader r = {.at = text, .name = name, .context = context, .why = why};
    why[0] = '\0';
    struct value v = choice(&r);
    skip(&r);
    if (!r.failed && *r.at) {
        stop(&r, "no operator at", r.at, strlen(r.at));
    }
    *value = v.x;
    return !r.failed;
}
