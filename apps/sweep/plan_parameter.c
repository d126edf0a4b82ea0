// SPDX-License-Identifier: Apache-2.0
// One parameter of a sweep: what may stand below its name, and what goes with which distribution.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/closest.h"
#include "plan_parts.h"

static const struct word {
    const char *word;
    uint32_t numbers;
} words[] = {
#define X(name, word, numbers) {word, numbers},
    SWEEP_DISTRIBUTIONS(X)
#undef X
};

const char *sweep_distribution_word(enum sweep_distribution distribution) {
    return words[distribution].word;
}

// What stands below a name, as it was found.
struct given {
    const struct grt_node *value, *values, *min, *max, *q, *mu, *sigma, *distribution, *shares,
        *inner;
};

static const struct slot {
    const char *name;
    size_t at;
} slots[] = {
    {"value", offsetof(struct given, value)},
    {"values", offsetof(struct given, values)},
    {"min", offsetof(struct given, min)},
    {"max", offsetof(struct given, max)},
    {"q", offsetof(struct given, q)},
    {"mu", offsetof(struct given, mu)},
    {"sigma", offsetof(struct given, sigma)},
    {"distribution", offsetof(struct given, distribution)},
    {"probabilities", offsetof(struct given, shares)},
    {"parameters", offsetof(struct given, inner)},
};
#define SLOT_COUNT (sizeof slots / sizeof *slots)

static bool collect(const struct sweep_plan *plan, const struct grt_node *entry,
                    struct given *given) {
    for (const struct grt_node *e = entry->first->first; e; e = e->next) {
        size_t i = 0;
        while (i < SLOT_COUNT && strcmp(slots[i].name, e->text) != 0) {
            i++;
        }
        if (i == SLOT_COUNT) {
            const char *close = grt_closest(e->text, slots, SLOT_COUNT, sizeof *slots);
            return plan_wrong(plan, e,
                              "%s: no '%s' of a parameter; %s%s%s there are value, values, "
                              "min, max, q, mu, sigma, distribution and probabilities",
                              entry->text, e->text, close ? "did you mean '" : "",
                              close ? close : "", close ? "'?" : "");
        }
        const struct grt_node **slot = (const struct grt_node **)((char *)given + slots[i].at);
        if (*slot) {
            return plan_wrong(plan, e, "%s: %s was given in line %u already", entry->text, e->text,
                              (*slot)->line);
        }
        *slot = e;
    }
    return true;
}

// ---- values ----

static bool add_value(struct sweep_plan *plan, struct sweep_parameter *p,
                      const struct grt_node *node) {
    char text[SWEEP_VALUE];
    size_t length = node->kind == GRT_NODE_TEXT
                        ? (size_t)snprintf(text, sizeof text, "%s", node->text)
                        : grt_tree_text(node, text, sizeof text);
    if (length >= sizeof text) {
        return plan_wrong(plan, node, "%s: a value of more than %d characters", p->name,
                          SWEEP_VALUE - 1);
    }
    for (uint32_t i = 0; i < p->count; i++) {
        if (strcmp(p->values[i].text, text) == 0) {
            return plan_wrong(plan, node, "%s: %s stands there twice", p->name, text);
        }
    }
    if (p->count == SWEEP_MAX_VALUES) {
        return plan_wrong(plan, node, "%s: more than %d values", p->name, SWEEP_MAX_VALUES);
    }
    struct sweep_value *more = realloc(p->values, (p->count + 1) * sizeof *more);
    char *copy = strdup(text);
    if (more) {
        p->values = more;
    }
    if (!more || !copy) {
        free(copy);
        return grt_fail(GRT_NO_MEMORY, "no host memory for %s", plan->path);
    }
    p->values[p->count++] =
        (struct sweep_value){.text = copy, .line = node->line, .column = node->column};
    return sweep_takes(plan, p, text, node->line, node->column);
}

static bool add_values(struct sweep_plan *plan, struct sweep_parameter *p,
                       const struct grt_node *list, const struct grt_node *at) {
    if (list->kind != GRT_NODE_LIST) {
        return plan_wrong(plan, list, "%s: values wants a list, as in values: [1, 2]", p->name);
    }
    if (!list->first) {
        return plan_wrong(plan, at, "%s: the list is empty: name at least one value", p->name);
    }
    for (const struct grt_node *e = list->first; e; e = e->next) {
        if (!add_value(plan, p, e)) {
            return false;
        }
    }
    return true;
}

static bool read_shares(struct sweep_plan *plan, struct sweep_parameter *p,
                        const struct grt_node *entry) {
    double sum = 0;
    uint32_t i = 0;
    const struct grt_node *e = entry->first->first;
    for (; e && i < p->count; e = e->next, i++) {
        struct grt_node one = {.kind = GRT_NODE_MAP, .text = entry->text, .first = NULL};
        struct grt_node value = *e;
        value.next = NULL;
        one.first = &value;
        one.line = e->line;
        one.column = e->column;
        if (!plan_number(plan, &one, &p->values[i].share)) {
            return false;
        }
        if (p->values[i].share < 0) {
            return plan_wrong(plan, e, "%s: a probability is at least 0", p->name);
        }
        sum += p->values[i].share;
    }
    if (e || i < p->count || fabs(sum - 1) > 1e-6) {
        return plan_wrong(plan, entry, "%s: probabilities wants %u numbers whose sum is 1", p->name,
                          p->count);
    }
    return true;
}

// ---- ranges ----

// A bound, where the config takes it: `value` is what it stands for.
static bool check_bound(struct sweep_plan *plan, struct sweep_parameter *p,
                        const struct grt_node *entry, double value) {
    char text[SWEEP_VALUE];
    sweep_number_text(value, text);
    return sweep_takes(plan, p, text, entry->first->line, entry->first->column);
}

static bool is_log(enum sweep_distribution d) {
    return d == SWEEP_LOG_UNIFORM || d == SWEEP_Q_LOG_UNIFORM;
}

static bool read_range(struct sweep_plan *plan, struct sweep_parameter *p,
                       const struct grt_node *entry, const struct given *g) {
    if (!g->min || !g->max) {
        return plan_wrong(plan, entry, "%s: %s wants min and max", p->name,
                          sweep_distribution_word(p->distribution));
    }
    if (!plan_number(plan, g->min, &p->min) || !plan_number(plan, g->max, &p->max)) {
        return false;
    }
    if (!(p->min < p->max)) {
        return plan_wrong(plan, g->max, "%s: max %g is not above min %g", p->name, p->max, p->min);
    }
    bool whole = p->min == floor(p->min) && p->max == floor(p->max);
    if (p->distribution == SWEEP_INT_UNIFORM && (!whole || p->max - p->min > 1e9)) {
        return plan_wrong(plan, g->min, "%s: int_uniform wants whole numbers, at most 1e9 apart",
                          p->name);
    }
    bool values = p->distribution == SWEEP_LOG_UNIFORM_VALUES ||
                  p->distribution == SWEEP_Q_LOG_UNIFORM_VALUES;
    if (values && p->min <= 0) {
        return plan_wrong(plan, g->min, "%s: %s wants min above 0; uniform takes 0", p->name,
                          sweep_distribution_word(p->distribution));
    }
    if (is_log(p->distribution) && (p->max > 700 || p->min < -700)) {
        return plan_wrong(plan, g->max,
                          "%s: of %s min and max are exponents of e; log_uniform_values takes the "
                          "values themselves",
                          p->name, sweep_distribution_word(p->distribution));
    }
    bool exponents = is_log(p->distribution);
    return check_bound(plan, p, g->min, exponents ? exp(p->min) : p->min) &&
           check_bound(plan, p, g->max, exponents ? exp(p->max) : p->max);
}

static bool read_normal(struct sweep_plan *plan, struct sweep_parameter *p, const struct given *g) {
    p->sigma = 1;
    if ((g->mu && !plan_number(plan, g->mu, &p->mu)) ||
        (g->sigma && !plan_number(plan, g->sigma, &p->sigma))) {
        return false;
    }
    return p->sigma > 0 || plan_wrong(plan, g->sigma, "%s: sigma is above 0", p->name);
}

static bool read_q(struct sweep_plan *plan, struct sweep_parameter *p, const struct given *g) {
    bool takes = sweep_distribution_word(p->distribution)[0] == 'q';
    p->q = 1;
    if (g->q && !takes) {
        return plan_wrong(plan, g->q, "%s: q goes with q_%s", p->name,
                          sweep_distribution_word(p->distribution));
    }
    if (g->q && !plan_number(plan, g->q, &p->q)) {
        return false;
    }
    return p->q > 0 || plan_wrong(plan, g->q, "%s: q is above 0", p->name);
}

// ---- the whole ----

// Without a word: values are categorical, whole bounds int_uniform, other bounds uniform.
static bool find_distribution(struct sweep_plan *plan, struct sweep_parameter *p,
                              const struct grt_node *entry, const struct given *g) {
    double min = 0.5, max = 0.5;
    if (!g->distribution) {
        if (g->min && g->max &&
            (!plan_number(plan, g->min, &min) || !plan_number(plan, g->max, &max))) {
            return false;
        }
        p->distribution = g->value                                 ? SWEEP_CONSTANT
                          : g->shares                              ? SWEEP_CATEGORICAL_SHARES
                          : g->values                              ? SWEEP_CATEGORICAL
                          : g->mu                                  ? SWEEP_NORMAL
                          : min == floor(min) && max == floor(max) ? SWEEP_INT_UNIFORM
                                                                   : SWEEP_UNIFORM;
        return g->value || g->values || g->mu || (g->min && g->max) ||
               plan_wrong(plan, entry, "%s: value, values, or min and max are wanted", p->name);
    }
    const char *word = plan_text(plan, g->distribution);
    uint32_t i = 0;
    while (word && i < SWEEP_DISTRIBUTION_COUNT && strcmp(words[i].word, word) != 0) {
        i++;
    }
    if (word && i == SWEEP_DISTRIBUTION_COUNT) {
#define X(name, word, numbers) " " word
        return plan_wrong(plan, g->distribution->first,
                          "%s: no distribution '%s'; there are" SWEEP_DISTRIBUTIONS(X), p->name,
                          word);
#undef X
    }
    p->distribution = word ? (enum sweep_distribution)i : SWEEP_CONSTANT;
    return word != NULL;
}

static struct sweep_parameter *add(struct sweep_plan *plan, const char *section,
                                   const struct grt_node *entry) {
    if (plan->parameter_count == SWEEP_MAX_PARAMETERS) {
        plan_wrong(plan, entry, "more than %d parameters", SWEEP_MAX_PARAMETERS);
        return NULL;
    }
    struct sweep_parameter *p = &plan->parameters[plan->parameter_count];
    *p = (struct sweep_parameter){.line = entry->line, .column = entry->column};
    int length =
        snprintf(p->name, sizeof p->name, "%s%s%s", section, *section ? "." : "", entry->text);
    if (length >= (int)sizeof p->name) {
        plan_wrong(plan, entry, "a name of more than %d characters", SWEEP_NAME - 1);
        return NULL;
    }
    enum grt_config_key key = grt_config_key_find(plan->kind->scope, p->name);
    if (key == GRT_CONFIG_DEVICE || key == GRT_CONFIG_LOG || key == GRT_CONFIG_TENSORBOARD ||
        key == GRT_CONFIG_CHECKPOINT_DIR) {
        plan_wrong(plan, entry, "%s is no parameter: %s", p->name,
                   key == GRT_CONFIG_DEVICE ? "--devices names the slots that trials run on"
                                            : "each trial has a folder of its own");
        return NULL;
    }
    for (uint32_t i = 0; i < plan->parameter_count; i++) {
        const struct sweep_parameter *o = &plan->parameters[i];
        if (strcmp(o->name, p->name) == 0 ||
            (key != GRT_CONFIG_KEY_COUNT &&
             grt_config_key_find(plan->kind->scope, o->name) == key)) {
            plan_wrong(plan, entry, "%s was given in line %u already%s%s", p->name, o->line,
                       strcmp(o->name, p->name) == 0 ? "" : ", as ",
                       strcmp(o->name, p->name) == 0 ? "" : o->name);
            return NULL;
        }
    }
    plan->parameter_count++;
    return p;
}

bool plan_parameter(struct sweep_plan *plan, const char *section, const struct grt_node *entry) {
    struct given g = {0};
    if (entry->first->kind != GRT_NODE_MAP) {
        return plan_wrong(plan, entry->first,
                          "%s wants a map below `parameters`, such as {values: [1, 2]}",
                          entry->text);
    }
    if (!collect(plan, entry, &g)) {
        return false;
    }
    if (g.inner && g.inner->first->kind == GRT_NODE_MAP) {
        bool good = true;
        for (const struct grt_node *e = g.inner->first->first; e && good; e = e->next) {
            good = plan_parameter(plan, entry->text, e);
        }
        return good;
    }
    struct sweep_parameter *p = add(plan, section, entry);
    if (!p || !find_distribution(plan, p, entry, &g) || !read_q(plan, p, &g)) {
        return false;
    }
    uint32_t numbers = words[p->distribution].numbers;
    if (numbers > 0) {
        const struct grt_node *other = g.value ? g.value : g.values ? g.values : g.shares;
        if (other) {
            return plan_wrong(plan, other, "%s: %s does not go with %s", p->name, other->text,
                              words[p->distribution].word);
        }
        return numbers == 1 ? read_range(plan, p, entry, &g) : read_normal(plan, p, &g);
    }
    const struct grt_node *list = p->distribution == SWEEP_CONSTANT ? g.value : g.values;
    const struct grt_node *range = g.min ? g.min : g.max ? g.max : g.mu ? g.mu : g.sigma;
    if (!list || range) {
        return plan_wrong(plan, range ? range : entry, "%s: %s wants %s%s%s", p->name,
                          words[p->distribution].word,
                          p->distribution == SWEEP_CONSTANT ? "value" : "values",
                          range ? ", not " : "", range ? range->text : "");
    }
    if (p->distribution == SWEEP_CONSTANT) {
        return add_value(plan, p, list->first);
    }
    if (p->distribution == SWEEP_CATEGORICAL_SHARES && !g.shares) {
        return plan_wrong(plan, entry, "%s: %s wants probabilities", p->name,
                          words[p->distribution].word);
    }
    return add_values(plan, p, list->first, list) && (!g.shares || read_shares(plan, p, g.shares));
}

bool plan_list(struct sweep_plan *plan, const char *section, const struct grt_node *entry) {
    struct sweep_parameter *p = add(plan, section, entry);
    if (p) {
        p->distribution = SWEEP_CATEGORICAL;
    }
    return p && add_values(plan, p, entry->first, entry);
}
